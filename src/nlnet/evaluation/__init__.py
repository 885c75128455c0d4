"""How good a result is: the metrics, the protocol, and images to look at side by side."""
