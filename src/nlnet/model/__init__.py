"""Trained networks: what they are, their files, and those that come with nlnet."""
