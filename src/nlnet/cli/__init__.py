"""Remove noise from grayscale and color images.

Examples
--------
  nlnet denoise noisy.png -o clean.png               denoise one image
  nlnet denoise photos/ -o cleaned/ --sigma 25       denoise all images of a folder
  nlnet noise photo.jpg                              report what kind of noise it has
  nlnet serve                                        do it in the browser
  nlnet models                                       list the models that come with nlnet
  nlnet evaluate photos/ --sigma 25 --model gray-5x5 measure PSNR, SSIM and time

'nlnet COMMAND --help' says more about a command.
"""

# Only the standard library is imported here and by the modules of the commands; whatever takes time
# to load is imported when a command runs.

import argparse
import contextlib
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from nlnet import __version__
from nlnet.cli.arguments import EXIT_ERROR, Parser
from nlnet.cli.messages import error_line
from nlnet.cli.streams import Terminated, orderly_end
from nlnet.errors import NLNetError, cannot

EXIT_INTERRUPTED = 130

_COMMANDS = (
    *("denoise", "noise", "compare", "serve", "evaluate", "models", "import", "export"),
    *("add-noise", "train", "curves", "inspect", "completion"),
)
"""All commands; each has a module, whose docstring is its help."""

_MODULES = {"import": "import_model", "inspect": "inspect_model", "add-noise": "add_noise"}
"""Modules of the commands whose names differ from theirs."""

_EXAMPLES = "Examples\n--------\n"
_OWN_SIGNALS = ("serve", "train")
"""Commands that end in their own way when they are told to."""


class _Version(argparse.Action):
    """Prints the version; what that takes is imported only then."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from nlnet.engine import describe_engine

        print(f"nlnet {__version__} ({describe_engine()})")
        parser.exit()


def build_parser() -> Parser:
    """Return the parser of the whole command line."""
    parser = Parser(prog="nlnet", **_help_of(__doc__ or ""))
    parser.add_argument(
        "--version", action=_Version, nargs=0, help="print the version and what does the computing"
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name in _COMMANDS:
        command = importlib.import_module(f"nlnet.cli.{_MODULES.get(name, name)}")
        summary, _, rest = (command.__doc__ or "").partition(".\n\n")
        added = commands.add_parser(name, help=summary[:1].lower() + summary[1:], **_help_of(rest))
        for add in command.ARGUMENTS:
            add(added)
        added.set_defaults(run=command.run, command=name)
    parser.commands = commands.choices
    return parser


def _help_of(text: str) -> dict[str, Any]:
    """Return what argparse is told of a docstring."""
    description, _, examples = text.partition(_EXAMPLES)
    as_it_is = argparse.RawDescriptionHelpFormatter
    epilog = f"examples:\n{examples}"
    return {"description": description, "epilog": epilog, "formatter_class": as_it_is}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    _open_closed_streams()
    try:
        arguments = build_parser().parse_args(argv)
        own = arguments.command in _OWN_SIGNALS
        with contextlib.nullcontext() if own else orderly_end():
            code: int | None = arguments.run(arguments)
        # Here, not at the interpreter's exit: a stream that takes no more must still be caught.
        sys.stdout.flush()
    except NLNetError as error:
        _complain(error_line(error))
        return EXIT_ERROR
    except KeyboardInterrupt as stop:
        _complain("nlnet: interrupted")
        # What shells report for a process that a signal ended.
        return 128 + stop.args[0] if isinstance(stop, Terminated) else EXIT_INTERRUPTED
    except OSError as error:
        if not _give_up_stdout():
            raise
        if isinstance(error, BrokenPipeError):  # the reader went away, as `head` does
            return 1
        _complain(error_line(str(cannot("write to the standard output", error))))
        return EXIT_ERROR
    return code or 0


def _open_closed_streams() -> None:
    """Replace standard streams that the shell has closed, as `>&-` does, by the null device."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - until the program ends


def _give_up_stdout() -> bool:
    """Tell whether standard output fails; if so, discard what is still buffered."""
    try:
        # An empty line does no harm: if it can be written, a traceback follows.
        print(flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return True
    return False


def _complain(line: str) -> None:
    # If even this fails, there is still the exit code.
    with contextlib.suppress(OSError):
        print(line, file=sys.stderr)
