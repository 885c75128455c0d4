"""The directive ``command-help``: a section for every command, with the help it prints."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from unittest import mock

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

from nlnet.cli import build_parser

_COLUMNS = "96"


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("command-help", CommandHelp)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class CommandHelp(Directive):
    """Sections for ``nlnet`` and all its commands, in the order of its own help."""

    def run(self) -> list[nodes.Node]:
        """Build the sections from the parser, so that they are what ``--help`` prints."""
        return [_section(parser) for parser in all_parsers()]


def all_parsers() -> Iterator[argparse.ArgumentParser]:
    """Yield the parser of the whole command line, then that of every command."""
    parser = build_parser()
    yield parser
    yield from parser.commands.values()


def _section(parser: argparse.ArgumentParser) -> nodes.section:
    section = nodes.section(ids=[nodes.make_id(parser.prog)], names=[parser.prog])
    section += nodes.title(parser.prog, parser.prog)
    # argparse breaks lines for the terminal it finds.
    with mock.patch.dict(os.environ, COLUMNS=_COLUMNS, NO_COLOR="1"):
        text = parser.format_help()
    section += nodes.literal_block(text, text, language="text", classes=["command-help"])
    return section
