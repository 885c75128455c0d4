"""Measurements of nlnet and its peers: ``make bench``, or ``python -m benchmarks --help``.

What is measured, and how, in one place each:

- `pictures`: the noisy images, the same for all methods;
- `methods`, `families`, `peers`, `convolutional`: what runs, with which settings;
- `threads`, `timing`: how many cores a method may use, and how long it takes;
- `memory`: its peak memory, in a process of its own;
- `peak`: how far nlnet is from the speed of a matrix product;
- `suite`: all of it in one run; `report`, `machine`: what becomes of the figures;
- `quality`: PSNR of the others on all of BSD68.

`python -m benchmarks.training` measures training: the engine against plain torch.
"""
