"""Hatchling's build hook: compiles the engine into wheels, see ``engine/build.py``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent))

from engine import build, compilers
from engine.targets import TARGETS, BuildError, host_wheel_tag


class EngineHook(BuildHookInterface):  # type: ignore[type-arg]
    """Puts the engine beside the Python modules that load it.

    The environment variable ``NLNET_TARGET`` names another platform that the wheel is for, as in
    ``engine/targets.py``; without it, the wheel is for this one.
    """

    def dependencies(self) -> list[str]:
        """Ask for a compiler where there is none that serves; a source distribution needs none."""
        served = not os.environ.get("NLNET_TARGET") and compilers.system_compiler() is not None
        if self.target_name == "sdist" or served:
            return []
        return list(self.metadata.core.optional_dependencies["cross"])

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the library, and name the platform that the wheel is for."""
        if self.target_name == "sdist":
            return
        name = os.environ.get("NLNET_TARGET")
        try:
            library = build.place() if version == "editable" else build.build_for(name).library()
        except BuildError as error:
            sys.exit(str(error))
        if version != "editable":
            for path in (library, build.HEADER):
                build_data["force_include"][str(path)] = f"nlnet/engine/{path.name}"
        platform = TARGETS[name].wheel if name else host_wheel_tag()
        build_data["tag"] = f"py3-none-{platform}"
        build_data["pure_python"] = False
