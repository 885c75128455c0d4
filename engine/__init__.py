"""Building the native engine: `python -m engine.build`, for this machine and for others."""
