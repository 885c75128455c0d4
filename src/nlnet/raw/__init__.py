"""Cameras' raw files, denoised before they are developed; the extra ``raw`` is for reading them.

`mosaic` works on arrays, with no file in sight; `files` reads, develops and writes with rawpy.
"""
