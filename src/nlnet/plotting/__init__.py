"""Figures: training curves, models, noise, and images side by side (extra ``plot``)."""
