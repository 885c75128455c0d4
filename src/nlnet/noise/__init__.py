"""Noise: what it is (estimation, records), how to even it out (stabilisation), how to add it."""

from nlnet.noise.adding import add_noise, store

__all__ = ["add_noise", "store"]
