"""Build the source distribution and a wheel for each platform into ``dist/``, and check the wheels.

Everything is built on this machine, with the compiler that the extra ``cross`` brings. A wheel's
name promises where its library runs; the library's own headers say what it asks for.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

from engine.targets import WHEELS, Target
from scripts.binaries import needs

ROOT = Path(__file__).parent.parent
DIST = ROOT / "dist"

# What the libraries may ask for. On ARM, macOS runs nothing that is not signed.
ALLOWED = {
    "manylinux-x86_64": r"x86_64 glibc 2\.([0-9]|1[0-7])(\.\d+)?",
    "manylinux-aarch64": r"aarch64 glibc 2\.17",
    "musllinux-x86_64": "x86_64 any C library",
    "musllinux-aarch64": "aarch64 any C library",
    "macos-x86_64": r"x86_64 macOS 10\.13( signed)?",
    "macos-arm64": r"arm64 macOS 11\.0 signed",
    "windows-x86_64": "x86_64",
}


def main() -> None:
    """Build and check everything; the first failure ends it."""
    build("--sdist")
    for target in WHEELS:
        before = set(DIST.glob("*.whl"))
        build("--wheel", target=target.name)
        (wheel,) = set(DIST.glob("*.whl")) - before
        check(wheel, target)


def build(what: str, target: str | None = None) -> None:
    """Run the build backend for this project."""
    environment = {**os.environ, **({"NLNET_TARGET": target} if target else {})}
    command = [
        sys.executable,
        "-m",
        "build",
        "--no-isolation",
        what,
        "--outdir",
        str(DIST),
        str(ROOT),
    ]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stdout + done.stderr)


def check(wheel: Path, target: Target) -> None:
    """Compare the wheel's name with what the library inside asks for."""
    if wheel.stem.split("-", 2)[2] != f"py3-none-{target.wheel}":
        sys.exit(f"{wheel.name} is not tagged py3-none-{target.wheel}.")
    with zipfile.ZipFile(wheel) as archive:
        asked = needs(archive.read(f"nlnet/engine/{target.library}"))
    if not re.fullmatch(ALLOWED[target.name], asked):
        sys.exit(f"{wheel.name} asks for more than its name promises: {asked}.")
    print(f"{wheel.name}: {asked}")


if __name__ == "__main__":
    main()
