"""Which compiler builds the engine: the system's if it is new enough, else the one of ziglang."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import lru_cache

from engine.targets import Target

# Vector extensions in C++ are complete from these versions on.
OLDEST = {"gcc": 12, "clang": 14}

MISSING = (
    "Building the engine of nlnet needs GCC 12, Clang 14 or newer of these, or the Python package "
    "ziglang (pip install ziglang); none of them was found."
)


@dataclass(frozen=True)
class Compiler:
    """A command that compiles C++, and its family: gcc, clang or zig."""

    command: tuple[str, ...]
    family: str

    def for_target(self, target: Target) -> tuple[str, ...]:
        """Return the command with what makes it compile for the target, from the oldest CPU on."""
        if self.family == "zig":
            return (*self.command, "-target", target.zig)
        if target.system == "macos":
            return (*self.command, f"-mmacosx-version-min={target.zig.partition('macos.')[2]}")
        return (*self.command, "-march=x86-64") if target.architecture == "x86_64" else self.command


def find_compiler() -> Compiler | None:
    """Return the compiler for this machine: CXX, g++, clang++ or ziglang's, or None."""
    return system_compiler() or zig()


def system_compiler() -> Compiler | None:
    """Return a compiler that is installed and new enough, or None.

    On Windows none counts: GCC misaligns 32-byte vectors on the stack there, and what Clang links
    asks for parts of Visual Studio.
    """
    if sys.platform == "win32":
        return None
    candidates = [os.environ.get("CXX", ""), "g++", "clang++"]
    found = (_examined(tuple(shlex.split(command))) for command in candidates if command.strip())
    return next(filter(None, found), None)


def zig() -> Compiler | None:
    """Return the compiler of the Python package ziglang, or None."""
    if importlib.util.find_spec("ziglang") is None:
        return None
    return Compiler((sys.executable, "-m", "ziglang", "c++"), "zig")


@lru_cache
def _examined(command: tuple[str, ...]) -> Compiler | None:
    """Return what the command is if it can build the engine, by the macros it defines."""
    if shutil.which(command[0]) is None:
        return None
    asked = [*command, "-dM", "-E", "-x", "c++", os.devnull]
    told = subprocess.run(asked, capture_output=True, text=True, check=False)
    macros = dict(re.findall(r"^#define (\w+) (\w+)$", told.stdout, re.MULTILINE))
    family = "clang" if "__clang__" in macros else "gcc"
    version = macros.get("__clang_major__" if family == "clang" else "__GNUC__", "0")
    return Compiler(command, family) if int(version) >= OLDEST[family] else None
