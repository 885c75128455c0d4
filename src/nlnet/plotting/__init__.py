"""Figures: training curves, and what a model has learned (extra ``plot``)."""
