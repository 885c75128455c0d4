"""What the engine is built for: platforms, their instruction sets, and the flags of each."""

from __future__ import annotations

import platform
import sys
import sysconfig
from dataclasses import dataclass


class BuildError(RuntimeError):
    """The engine cannot be built; the message says why."""


@dataclass(frozen=True)
class InstructionSet:
    """Flags for the files that are compiled once for each set, see ``engine/src/sets``."""

    name: str
    flags: tuple[str, ...] = ()


_AVX2 = ("-mavx2", "-mfma", "-mbmi", "-mbmi2")
_AVX512 = (*_AVX2, "-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl")

SETS = {
    "x86_64": (
        InstructionSet("sse2"),
        InstructionSet("avx2", _AVX2),
        InstructionSet("avx512", (*_AVX512, "-mprefer-vector-width=512")),
    ),
    "aarch64": (InstructionSet("neon"),),
    "wasm32": (InstructionSet("simd128"),),
}

# For every file of an architecture.
BASELINE = {
    "x86_64": (),
    # Outlined atomics ask for the CPU's kind in a static constructor.
    "aarch64": ("-mno-outline-atomics",),
    "wasm32": ("-msimd128", "-mbulk-memory"),
}


@dataclass(frozen=True)
class Target:
    """A platform: how zig names it, and how pip does.

    A version behind the name of a C library or of macOS is the oldest that the library runs on.
    """

    name: str
    architecture: str
    zig: str
    wheel: str = ""
    flags: tuple[str, ...] = ()
    link_flags: tuple[str, ...] = ()

    @property
    def system(self) -> str:
        """One of linux, macos, windows, wasi and freestanding."""
        return self.zig.split("-")[1].partition(".")[0]

    @property
    def library(self) -> str:
        """The file name of the shared library."""
        names = {
            "macos": "libnlnet_engine.dylib",
            "windows": "nlnet_engine.dll",
            "freestanding": "nlnet_engine.wasm",
        }
        return names.get(self.system, "libnlnet_engine.so")

    @property
    def sets(self) -> tuple[InstructionSet, ...]:
        """The instruction sets inside one library."""
        return SETS[self.architecture]

    @property
    def code_flags(self) -> tuple[str, ...]:
        """Flags for every file."""
        pic = () if self.system in ("windows", "wasi", "freestanding") else ("-fPIC",)
        return (*pic, *BASELINE[self.architecture], *self.flags)


_MACOS_ARM, _MACOS_INTEL = "11.0", "10.13"

WHEELS = (
    Target(
        "manylinux-x86_64",
        "x86_64",
        "x86_64-linux-gnu.2.17",
        "manylinux_2_17_x86_64.manylinux2014_x86_64",
    ),
    Target(
        "manylinux-aarch64",
        "aarch64",
        "aarch64-linux-gnu.2.17",
        "manylinux_2_17_aarch64.manylinux2014_aarch64",
    ),
    Target("musllinux-x86_64", "x86_64", "x86_64-linux-musl", "musllinux_1_2_x86_64"),
    Target("musllinux-aarch64", "aarch64", "aarch64-linux-musl", "musllinux_1_2_aarch64"),
    Target("macos-x86_64", "x86_64", f"x86_64-macos.{_MACOS_INTEL}", "macosx_10_13_x86_64"),
    Target("macos-arm64", "aarch64", f"aarch64-macos.{_MACOS_ARM}", "macosx_11_0_arm64"),
    Target("windows-x86_64", "x86_64", "x86_64-windows-gnu", "win_amd64"),
)

WASM = (
    Target("wasm", "wasm32", "wasm32-freestanding"),
    Target(
        "wasm-shared",
        "wasm32",
        "wasm32-freestanding",
        flags=("-matomics",),
        link_flags=("-Wl,--shared-memory", "-Wl,--max-memory=4294901760"),
    ),
    Target(
        "wasi",
        "wasm32",
        "wasm32-wasi",
        flags=("-D_WASI_EMULATED_PROCESS_CLOCKS",),
        link_flags=("-lwasi-emulated-process-clocks",),
    ),
)

TARGETS = {target.name: target for target in (*WHEELS, *WASM)}


def host() -> Target:
    """Return the target that this Python runs on."""
    kinds = {
        "linux": "musllinux"
        if "musl" in (sysconfig.get_config_var("SOABI") or "")
        else "manylinux",
        "darwin": "macos",
        "win32": "windows",
    }
    machine = platform.machine().lower().replace("amd64", "x86_64")
    target = TARGETS.get(f"{kinds.get(sys.platform, sys.platform)}-{machine}")
    if target is None or sys.maxsize < 2**32:
        raise BuildError(
            f"The engine is for 64-bit Linux and macOS on x86-64 and ARM and for Windows on "
            f"x86-64, not for this Python on {sysconfig.get_platform()}."
        )
    return target


def host_wheel_tag() -> str:
    """Return the platform of a wheel with what this machine's compiler builds.

    On Linux that asks for this machine's C library, which is less than a manylinux wheel promises.
    """
    target = host()
    return f"linux_{target.architecture}" if target.system == "linux" else target.wheel
