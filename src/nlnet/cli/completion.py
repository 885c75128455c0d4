"""Print a completion script for your shell.

Print a script that lets your shell complete commands, options, models and file names. It contains
the models of this version of nlnet, so print it again after an update. Printing it needs shtab (pip
install 'nlnet[completion]'); the script itself needs nothing.

Examples
--------
  nlnet completion bash > ~/.local/share/bash-completion/completions/nlnet
  nlnet completion zsh > "${fpath[1]}/_nlnet"
  nlnet completion fish > ~/.config/fish/completions/nlnet.fish

It works in new shells. To try it in this one: source <(nlnet completion bash)
"""

import argparse
from pathlib import Path

from nlnet.cli.arguments import argument
from nlnet.cli.output import needs_extra

SHELLS = ("bash", "zsh", "fish")

ARGUMENTS = (argument("shell SHELL", "bash, zsh or fish", choices=SHELLS),)


def run(arguments: argparse.Namespace) -> None:
    """Print the script.

    shtab turns the parser into a script of the shell, once: Tab then starts no Python, as it would
    with argcomplete, and the script needs neither shtab nor a hook in the shell.
    """
    from nlnet.cli import build_parser
    from nlnet.model.loading import family_of, shipped_models

    with needs_extra("completion", "shtab"):
        import shtab

    parser, models = build_parser(), shipped_models()
    names = [*dict.fromkeys(sorted(map(family_of, models))), *models]
    for action in [each for command in parser.commands.values() for each in command._actions]:
        if action.dest == "model" and action.type is not Path:
            action.complete = _names_or_files(names)  # type: ignore[attr-defined]
        elif action.type is Path or action.dest in ("inputs", "output"):
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    print(shtab.complete(parser, shell=arguments.shell))


def _names_or_files(names: list[str]) -> dict[str, object]:
    """Return, for each shell, what completes an argument that is a model's name or a file."""
    words = " ".join(names)
    function = "_nlnet_model_or_file"
    return {
        "bash": function,
        "zsh": function,
        "fish": f"(string split ' ' '{words}'; __fish_complete_path (commandline -ct))",
        "preamble": {
            "bash": f'{function}() {{ compgen -W "{words}" -- "$1"; compgen -f -- "$1"; }}',
            "zsh": f"{function}() {{ _alternative 'm:model:({words})' 'f:model file:_files'; }}",
        },
    }
