"""Simulated noise of cameras, films and microscopes, to train and to measure with."""
