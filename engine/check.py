"""``make engine-check``: the engine's test program and its fuzz target under sanitizers.

Address and undefined behaviour in one build, threads in another. ``--cases`` says how long the fuzz
target runs, ``--seed`` where it begins; the same seed gives the same cases.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from engine import compilers
from engine.build import ENGINE, Build
from engine.targets import BuildError, host

TESTS = ENGINE / "tests"

# Optimised a little: unoptimised vectors take ten times as long.
_COMMON = ("-O1", "-g", "-fno-omit-frame-pointer")
SANITIZERS = {
    "address": (*_COMMON, "-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
    "thread": (*_COMMON, "-fsanitize=thread"),
}
# libFuzzer looks for inputs that reach new code; only Clang has it.
FUZZER = ("-DNLNET_LIBFUZZER", "-fsanitize=fuzzer")


def run(*command: str | Path) -> None:
    """Run a program, and show what it prints."""
    print(
        "$", *(Path(word).name if isinstance(word, Path) else word for word in command), flush=True
    )
    subprocess.run([str(word) for word in command], check=True)


def main() -> None:
    """Build and run everything; the first failure ends it."""
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
        for name, flags in SANITIZERS.items():
            build = Build(host(), compiler, name, flags)
            print(f"{name} sanitizer", flush=True)
            run(build.program(TESTS / "check.cpp"), "--rounds", str(options.rounds))
            cases = ("--seed", str(options.seed), "--cases", str(options.cases))
            run(build.program(TESTS / "fuzz.cpp"), *cases)
        if compiler.family == "clang":
            flags = (*SANITIZERS["address"], *FUZZER)
            run(Build(host(), compiler, "fuzzer", flags).program(TESTS / "fuzz.cpp"), "-runs=2000")
    except BuildError as error:
        sys.exit(str(error))
    except subprocess.CalledProcessError as error:
        sys.exit(f"{Path(error.cmd[0]).name} failed with exit code {error.returncode}.")


if __name__ == "__main__":
    main()
