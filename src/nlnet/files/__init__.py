"""Denoising image files: one, or many in one run."""
