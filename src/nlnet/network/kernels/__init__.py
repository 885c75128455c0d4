"""Compiled loops on plain arrays: matching, grouping, psi and folding."""
