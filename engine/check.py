"""``make engine-check``: the engine's test program and its fuzz target under sanitizers.

Threads in one build, address and undefined behaviour in another. All programs are built first, and
then run side by side. The thread sanitizer sees only what runs in several threads; in the fuzz
target, jobs get all of their threads for it. ``--cases`` says how many cases there are, ``--seed``
where they begin; the same seed gives the same cases.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from engine import compilers
from engine.build import ENGINE, Build
from engine.compilers import Compiler
from engine.targets import BuildError, host

TESTS = ENGINE / "tests"

# Optimised a little: unoptimised vectors take ten times as long. The kernels are a few huge
# functions, in which checks of every address by undefined behaviour's sanitizer, of the stack, and
# of all that is not a call take minutes to compile; the address sanitizer sees the heap.
_COMMON = ("-O1", "-g1", "-fno-omit-frame-pointer")
_UNDEFINED = ("-fno-sanitize=null,alignment,object-size", "-fno-sanitize-recover=all")
SANITIZERS = {
    "thread": (*_COMMON, "-fsanitize=thread"),  # the slowest programs first
    "address": (*_COMMON, "-fsanitize=address,undefined", *_UNDEFINED),
}
_GCC = {
    "address": (
        "--param=asan-instrumentation-with-call-threshold=0",
        "--param=asan-stack=0",
    ),
}
# libFuzzer looks for inputs that reach new code; only Clang has it.
FUZZER = ("-DNLNET_LIBFUZZER", "-fsanitize=fuzzer")


def programs(options: argparse.Namespace, compiler: Compiler) -> Iterator[tuple[Path, str]]:
    """Build the programs, and yield each with its arguments, separated by blanks."""
    seed = f"--seed {options.seed}"
    for name, flags in SANITIZERS.items():
        own = _GCC.get(name, ()) if compiler.family == "gcc" else ()
        build = Build(host(), compiler, name, (*flags, *own))
        fuzz, check = f"--cases {options.cases} {seed}", f"--rounds {options.rounds}"
        if name == "thread":
            fuzz, check = f"--threads {fuzz}", f"--threads {check}"
        yield build.program(TESTS / "fuzz.cpp"), fuzz
        yield build.program(TESTS / "check.cpp"), check
    if compiler.family == "clang":
        flags = (*SANITIZERS["address"], *FUZZER)
        yield Build(host(), compiler, "fuzzer", flags).program(TESTS / "fuzz.cpp"), "-runs=2000"


def run(program: Path, arguments: str) -> None:
    """Run a program, and show what it has printed once it has ended."""
    command = [str(program), *arguments.split()]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(f"$ {program.parent.name}/{program.name} {arguments}\n{done.stdout}", end="", flush=True)
    done.check_returncode()


def main() -> None:
    """Build and run everything; after a failure nothing else begins."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=4, help="of every check")
    parser.add_argument("--cases", type=int, default=1500, help="of the fuzz target")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    compiler = compilers.system_compiler()
    if compiler is None:
        print("The engine is not checked: the sanitizers need GCC 12 or Clang 14.")
        return
    try:
        built = list(programs(options, compiler))
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(run, *zip(*built, strict=True)))
    except BuildError as error:
        sys.exit(str(error))
    except subprocess.CalledProcessError as error:
        sys.exit(f"{Path(error.cmd[0]).name} failed with exit code {error.returncode}.")


if __name__ == "__main__":
    main()
