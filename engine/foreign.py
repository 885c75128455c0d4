"""``make engine-foreign``: the engine's test program for ARM under qemu, for Windows under wine.

On Windows the library itself, too: the example in C, linked with it, denoises an image as on this
machine. What is not installed here is left out, and that is said.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from engine.build import ENGINE, Build, build_for, run
from engine.targets import BuildError

# A program for musl is static: it needs nothing of the system that it is for.
RUNNERS = {"musllinux-aarch64": "qemu-aarch64", "windows-x86_64": "wine"}
EXAMPLE = ENGINE / "examples" / "denoise_pgm.c"
WIDTH, HEIGHT = 150, 100


def main() -> None:
    """Build and run everything that this machine can run; the first failure ends it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", default="20", help="of every check")
    rounds = parser.parse_args().rounds
    try:
        for target, runner in RUNNERS.items():
            if shutil.which(runner) is None:
                print(f"{target}: left out, there is no {runner}.", flush=True)
                continue
            print(f"{target}, under {runner}", flush=True)
            build = build_for(target)
            start(runner, build.program(ENGINE / "tests" / "check.cpp"), "--rounds", rounds)
            if build.target.system == "windows":
                check_library(build, runner)
    except BuildError as error:
        sys.exit(str(error))
    except subprocess.CalledProcessError as error:
        sys.exit(f"{Path(error.cmd[1]).name} failed with exit code {error.returncode}.")


def start(*command: str | Path) -> None:
    """Run a program; wine keeps its files below the build's, and its own messages to itself."""
    wine = {"WINEPREFIX": str(ENGINE.parent / "build" / "wine"), "WINEDEBUG": "-all"}
    words = [str(word) for word in command]
    subprocess.run(words, check=True, env={**os.environ, **wine})


def check_library(build: Build, runner: str) -> None:
    """Denoise by the library for another system, and compare with this machine's program."""
    library = build.library()
    program = library.with_name("denoise_pgm_by_library.exe")
    compiler = build.compiler.for_target(build.target)
    run(
        [*compiler, f"-I{ENGINE / 'include'}", "-x", "c", str(EXAMPLE), "-x", "none", str(library)],
        program,
    )
    with tempfile.TemporaryDirectory() as name:
        model, noisy, here, there = (Path(name) / part for part in ("model", "noisy", "a", "b"))
        export = [sys.executable, "-m", "nlnet", "export", "gray-5x5-s25", "-o", str(model)]
        subprocess.run(export, check=True, stdout=subprocess.DEVNULL)
        pixels = random.Random(0).choices(range(90, 170), k=WIDTH * HEIGHT)
        noisy.write_bytes(b"P5\n%d %d\n255\n" % (WIDTH, HEIGHT) + bytes(pixels))
        start(build_for().program(EXAMPLE), model, noisy, here)
        start(runner, program, model, noisy, there)
        results = zip(here.read_bytes(), there.read_bytes(), strict=True)
        other = sum(one != two for one, two in results)
    print(f"{library.name}: {other} of {WIDTH * HEIGHT} pixels are rounded otherwise than here")
    if other > WIDTH * HEIGHT // 1000:
        sys.exit(f"{library.name} computes something else than this machine's library.")


if __name__ == "__main__":
    main()
