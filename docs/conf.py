"""Sphinx's settings: ``make docs``. Nothing is fetched, neither by the build nor by its pages."""

from __future__ import annotations

import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path[:0] = [str(DOCS), str(DOCS.parent)]

import nlnet  # noqa: E402

project = "nlnet"
author = "the nlnet authors"
copyright = author  # noqa: A001 - Sphinx calls it so
version = release = nlnet.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
    "extensions.command_help",
    "extensions.drawings",
    "extensions.formulas",
]
exclude_patterns = ["results/*", "sg_execution_times.rst", "gallery/sg_execution_times.rst"]

myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3

autodoc_typehints = "none"  # the docstrings tell types, in words
autodoc_member_order = "bysource"
maximum_signature_line_length = 88
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "backreferences_dir": "gallery/uses",
    "filename_pattern": r"/\d_",
    "ignore_pattern": r"demo\.py",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "min_reported_time": 1e9,  # times of the machine that built the pages say little
    "remove_config_comments": True,
    "thumbnail_size": (480, 320),
    "matplotlib_animations": False,
    "parallel": False,
}

html_theme = "furo"
html_title = "nlnet"
html_static_path = ["static"]
html_css_files = ["nlnet.css"]
html_show_sphinx = False
html_copy_source = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1f5f99", "color-brand-content": "#1f5f99"},
    "dark_css_variables": {"color-brand-primary": "#7db8ef", "color-brand-content": "#7db8ef"},
}
pygments_style = "friendly"
pygments_dark_style = "github-dark"
