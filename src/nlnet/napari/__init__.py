"""A plugin for napari: a widget that denoises layers, and a movie to try it on.

napari finds it by the entry point ``napari.manifest``. Nothing here imports napari before it is
used.
"""
