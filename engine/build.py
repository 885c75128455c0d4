"""Build the engine: one shared library without any dependency but the C library.

``python -m engine.build`` builds it for this machine and puts it where the package looks for it,
``--target`` for another machine with the compiler of ziglang. Nothing is compiled twice: an object
file is named after what it was made from, wherever that lies; the environment variable
``NLNET_ENGINE_BUILD`` names a folder for them, which copies of the sources may share. Needs nothing
but Python's standard library.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from engine import compilers
from engine.compilers import Compiler
from engine.targets import TARGETS, BuildError, InstructionSet, Target, host

ENGINE = Path(__file__).parent
ROOT = ENGINE.parent
BUILT = Path(os.environ.get("NLNET_ENGINE_BUILD", ROOT / "build" / "engine"))
PACKAGE = ROOT / "src" / "nlnet" / "engine"
HEADER = ENGINE / "include" / "nlnet_engine.h"

# How the files that are compiled once for each instruction set may round. Groups are the same to
# the bit on every CPU. So is what stages make of them, since groups at the full size are found in
# what smaller ones have left. Nothing is fused there, nor in files that are not named here.
CONTRACTION = {
    "convolve": "fast",
    "matching": "off",
    "patches": "off",
    "pixels": "off",
    "removal_rows": "off",
    "series": "off",
    "stages": "off",
}

CXX_FLAGS = (
    "-std=c++17",
    "-nostdinc++",  # C headers only
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-threadsafe-statics",
    "-fno-math-errno",
    "-fno-stack-protector",
    "-fvisibility=hidden",
    "-fvisibility-inlines-hidden",
)
C_FLAGS = ("-x", "c", "-std=c99")
WARNINGS = ("-Wall", "-Wextra", "-Wno-psabi")  # a vector never crosses a call


@dataclass(frozen=True)
class Unit:
    """A source file, and the instruction set it is compiled for if it is one of several."""

    source: Path
    contraction: str = "off"
    instructions: InstructionSet | None = None

    @property
    def name(self) -> str:
        """A name that no other unit has, such as ``stages.avx2``."""
        return (
            f"{self.source.stem}.{self.instructions.name}"
            if self.instructions
            else self.source.stem
        )

    @property
    def flags(self) -> list[str]:
        """What this unit is compiled with, apart from what all are."""
        flags = [f"-ffp-contract={self.contraction}", f"-I{ENGINE / 'include'}", *WARNINGS]
        flags += C_FLAGS if self.source.suffix == ".c" else CXX_FLAGS
        if self.instructions is not None:
            header = ENGINE / "src" / "sets" / f"{self.instructions.name}.h"
            flags += [*self.instructions.flags, "-include", str(header)]
        return flags


def units(target: Target) -> list[Unit]:
    """Return everything that the library for the target consists of, the slowest first."""
    once, per_set = [], []
    for source in sorted((ENGINE / "src").rglob("*.cpp")):
        contraction = CONTRACTION.get(source.stem)
        if contraction is None:
            once.append(Unit(source))
        else:
            per_set += [Unit(source, contraction, instructions) for instructions in target.sets]
    return per_set[::-1] + once


@dataclass(frozen=True)
class Build:
    """A build for a target: the library, or programs that hold all of it.

    A variant is a name for its flags, such as those of a sanitizer.
    """

    target: Target
    compiler: Compiler
    variant: str = "release"
    flags: tuple[str, ...] = ("-O3",)

    @property
    def folder(self) -> Path:
        """Where everything that is built goes."""
        return BUILT / f"{self.target.name}-{self.compiler.family}-{self.variant}"

    def objects(self) -> list[Path]:
        """Compile what has changed, and return the object files of the library."""
        return self._compile(units(self.target))

    def library(self) -> Path:
        """Build the shared library, and return its path."""
        flags = link_flags(self.target, self.compiler)
        return self._link(self.folder / self.target.library, self.objects(), flags)

    def program(self, source: Path, flags: Sequence[str] = ()) -> Path:
        """Build a program with all of the engine inside, and return its path.

        Its sources are the given one and those whose names begin with its name and ``_``.
        """
        more = source.parent.glob(f"{source.stem}_*{source.suffix}")
        own = [Unit(path) for path in (source, *sorted(more))]
        suffix = {"windows": ".exe", "wasi": ".wasm"}.get(self.target.system, "")
        objects = self._compile([*own, *units(self.target)])
        flags = [*program_flags(self.target, self.compiler), *flags]
        return self._link(self.folder / f"{source.stem}{suffix}", objects, flags)

    def _compile(self, wanted: Sequence[Unit]) -> list[Path]:
        self.folder.mkdir(parents=True, exist_ok=True)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return list(pool.map(self._object, wanted))

    def _object(self, unit: Unit) -> Path:
        flags = [*self.target.code_flags, *self.flags, *unit.flags, "-c", str(unit.source)]
        command = [*self.compiler.for_target(self.target), *flags]
        folders = {ENGINE / "include", ENGINE / "src", unit.source.parent}
        headers = [header for folder in folders for header in folder.rglob("*.h")]
        made_from = digest([unit.source, *headers], *command)
        path = self.folder / f"{unit.name}-{made_from}.o"
        if not path.exists():
            for old in self.folder.glob(f"{unit.name}-*.o"):
                old.unlink(missing_ok=True)
            run(command, path)
        return path

    def _link(self, path: Path, objects: Sequence[Path], flags: Sequence[str]) -> Path:
        command = [*self.compiler.for_target(self.target), *self.target.code_flags, *self.flags]
        command += [*map(str, objects), *flags]
        made_from, stamp = digest([], *command), path.with_name(f"{path.name}.made_from")
        if not (path.exists() and stamp.exists() and stamp.read_text() == made_from):
            run(command, path)
            stamp.write_text(made_from)
        return path


def link_flags(target: Target, compiler: Compiler) -> list[str]:
    """Return what makes a shared library with nothing of C++ in it."""
    flags = ["-shared", "-nostdlib++", *(["-s"] if compiler.family == "zig" else [])]
    if target.system == "linux":
        if compiler.family != "zig":
            # Without the start files, which bring static constructors.
            flags = ["-shared", "-nostdlib", "-lc", "-lgcc"]
        flags += ["-Wl,-z,defs", f"-Wl,-soname,{target.library}"]
    elif target.system == "macos":
        flags += [f"-Wl,-install_name,@rpath/{target.library}"]
    elif target.system == "windows":
        flags = ["-shared", "-nostdlib", "-s", "-Wl,--no-entry"]  # see src/win32_libc.cpp
    elif target.system == "freestanding":
        # Memory is the page's, and each thread brings a stack of its own.
        exported = [f"-Wl,--export={name}" for name in ("__stack_pointer", "__heap_base")]
        flags = ["-nostdlib", "-s", "-Wl,--no-entry", "-Wl,--import-memory", "-rdynamic", *exported]
    return [*flags, *target.link_flags]


def program_flags(target: Target, compiler: Compiler) -> list[str]:
    """Return what a program is linked with."""
    flags = ["-nostdlib++"] if compiler.family == "zig" else ["-Wl,--as-needed"]
    return [*flags, *(["-pthread"] if target.system != "wasi" else []), *target.link_flags]


def digest(files: Iterable[Path], *words: str) -> str:
    """Return a name for the content of files and for words, such as those of a command.

    It is the same for equal files in another folder.
    """
    hashed = hashlib.sha256("\0".join(words).replace(str(ROOT), "").encode())
    for path in sorted(files):
        hashed.update(path.read_bytes())
    return hashed.hexdigest()[:16]


def run(command: Sequence[str], output: Path) -> None:
    """Run a compiler; the output is whole or not there."""
    cache = {"ZIG_GLOBAL_CACHE_DIR": str(BUILT / "zig"), "ZIG_LOCAL_CACHE_DIR": str(BUILT / "zig")}
    with tempfile.TemporaryDirectory(dir=output.parent) as folder:
        unfinished = Path(folder) / output.name  # libraries hold the name they are linked under
        command = [*command, "-o", str(unfinished)]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env={**cache, **os.environ}
        )
        if done.returncode != 0:
            raise BuildError(f"{shlex.join(command)}\n{done.stderr}")
        sys.stderr.write(done.stderr)  # warnings
        unfinished.replace(output)


def build_for(name: str | None = None) -> Build:
    """Return the build for a named target by ziglang, or for this machine by what it has."""
    if name is not None and name not in TARGETS:
        raise BuildError(f"There is no target {name!r} among {', '.join(TARGETS)}.")
    target = host() if name is None else TARGETS[name]
    compiler = compilers.find_compiler() if name is None else compilers.zig()
    if compiler is None:
        raise BuildError(compilers.MISSING)
    return Build(target, compiler)


def place() -> Path:
    """Build the library for this machine if a source has changed.

    It is put where nlnet loads it, beside the header, which nlnet reads.
    """
    path, header, stamp = PACKAGE / host().library, PACKAGE / HEADER.name, BUILT / "placed"
    sources = [p for p in ENGINE.rglob("*") if p.suffix in (".h", ".cpp", ".py")]
    made_from = digest(sources, os.environ.get("CXX", ""), str(path))
    there = path.exists() and header.exists() and stamp.exists()
    if not (there and stamp.read_text() == made_from):
        PACKAGE.mkdir(exist_ok=True)
        for built, target in ((build_for().library(), path), (HEADER, header)):
            # Replaced, not written over: a process may have it loaded.
            copy = target.with_name(f"{os.getpid()}-{target.name}")
            shutil.copy(built, copy)
            copy.replace(target)
        stamp.write_text(made_from)
    return path


def main() -> None:
    """Build what the command line asks for, and print where it is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", choices=TARGETS, help="build for it with ziglang's compiler")
    target = parser.parse_args().target
    try:
        path = build_for(target).library() if target else place()
    except BuildError as error:
        sys.exit(str(error))
    print(path)


if __name__ == "__main__":
    main()
