"""Arrays in, denoised arrays out: dtype, value range, any noise, any size."""
