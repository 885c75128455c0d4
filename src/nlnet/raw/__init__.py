"""Cameras' raw files, denoised before they are developed; the extra ``raw`` is for reading them.

`mosaic` works on arrays; `files` reads, develops and writes files with rawpy.
"""
