"""What a shared library asks for, read from its own headers: CPU, C library, version of macOS."""

from __future__ import annotations

import re
import struct

_ELF_CPUS = {62: "x86_64", 183: "aarch64"}
_MACH_O_CPUS = {0x01000007: "x86_64", 0x0100000C: "arm64"}
_CODE_SIGNATURE, _VERSION_MIN, _BUILD_VERSION = 0x1D, 0x24, 0x32


def needs(library: bytes) -> str:
    """Return it as words such as ``x86_64 glibc 2.14`` or ``arm64 macOS 11.0 signed``."""
    if library.startswith(b"\x7fELF"):
        return _elf(library)
    if library.startswith(b"\xcf\xfa\xed\xfe"):
        return _mach_o(library)
    if library.startswith(b"MZ"):
        return _pe(library)
    raise ValueError("The library is neither ELF, Mach-O nor PE.")


def _elf(library: bytes) -> str:
    (machine,) = struct.unpack_from("<H", library, 18)
    versions = {
        tuple(map(int, found.split(b"."))) for found in re.findall(rb"GLIBC_([\d.]+)\0", library)
    }
    libc = f"glibc {'.'.join(map(str, max(versions)))}" if versions else "any C library"
    return f"{_ELF_CPUS[machine]} {libc}"


def _mach_o(library: bytes) -> str:
    cpu, _, _, count = struct.unpack_from("<4I", library, 4)
    words, place = [_MACH_O_CPUS[cpu]], 32
    for _ in range(count):
        command, size = struct.unpack_from("<2I", library, place)
        if command in (_VERSION_MIN, _BUILD_VERSION):
            offset = 8 if command == _VERSION_MIN else 12
            (version,) = struct.unpack_from("<I", library, place + offset)
            words.append(f"macOS {version >> 16}.{version >> 8 & 255}")
        elif command == _CODE_SIGNATURE:
            words.append("signed")
        place += size
    return " ".join(words)


def _pe(library: bytes) -> str:
    (place,) = struct.unpack_from("<I", library, 60)
    (machine,) = struct.unpack_from("<H", library, place + 4)
    imported = {name.lower() for name in re.findall(rb"[\w-]+\.dll(?=\0)", library, re.IGNORECASE)}
    names = sorted(name.decode() for name in imported - {b"nlnet_engine.dll"})
    return " ".join(["x86_64" if machine == 0x8664 else hex(machine), *names])
