"""Image files denoised: one of them, or many in one run."""
