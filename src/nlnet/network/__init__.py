"""The paper: its recursion over the planes of an image, and what the stages learn."""
