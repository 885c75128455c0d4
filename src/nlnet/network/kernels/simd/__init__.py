"""The few vector operations that numba's loops cannot express, written in LLVM's own terms.

Numba vectorises long loops well, but not the short fixed-width steps at the heart of grouping,
matching and psi: it cannot know that two arrays do not overlap. The operations here work on
neighbouring elements of flat arrays; LLVM maps them to whatever vectors the CPU has.
"""
