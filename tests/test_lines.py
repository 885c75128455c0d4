"""The package does not grow unnoticed: a bound for its lines of code, and one for a module."""

from __future__ import annotations

import pytest

from scripts.lines import PACKAGE, count, lines_of_code

MOST_LINES_OF_CODE = 16_720
"""Lower it when the package shrinks; what raises it has to be worth its lines."""

MOST_LINES_OF_A_MODULE = 300


def test_the_package_is_not_larger_than_it_was() -> None:
    assert sum(count().values()) <= MOST_LINES_OF_CODE


def test_no_module_is_long() -> None:
    lengths = {module: len((PACKAGE / module).read_text().splitlines()) for module in count()}
    assert not {module: n for module, n in lengths.items() if n > MOST_LINES_OF_A_MODULE}


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("", 0),
        ("# a comment\n\nx = 1  # another\n", 1),
        ('"""A docstring\nof two lines."""\n\nx = (\n    1,\n)\n', 3),
        ('def f():\n    """Return nothing."""\n', 1),
        ('text = """two\nlines"""\n', 2),
    ],
)
def test_lines_without_blanks_comments_and_docstrings(source: str, lines: int) -> None:
    assert lines_of_code(source) == lines
