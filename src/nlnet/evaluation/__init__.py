"""How good a result is: metrics, the protocol, and comparisons side by side."""
