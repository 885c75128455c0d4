"""The commands of the page on raw developers, run with the programs that are installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from documented_code import read_blocks
from paths import PROJECT

from tests.raw_cases import mosaic_of, scene, shoot, stored, write_dng

pytest.importorskip("rawpy")
PROGRAMS = ("darktable-cli", "rawtherapee-cli", "gimp", "convert", "dcraw")
RESULTS = {
    "IMG_0001.dng": b"II*\0",
    "denoised/IMG_0001.dng": b"II*\0",
    "IMG_0001.jpg": b"\xff\xd8",
    "IMG_0001_edited.jpg": b"\xff\xd8",
    "IMG_0001.tif": b"II*\0",
    "IMG_0001_edited.tif": b"II*\0",
    "layers.xcf": b"gimp xcf",
    "part.png": b"\x89PNG",
    "developed.png": b"\x89PNG",
    "again.dng": b"II*\0",
}
MARK = "tests/test_raw_developers.py"
SIDECAR = """<?xml version="1.0"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/">
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
<rdf:Description xmlns:darktable="http://darktable.sf.net/" darktable:xmp_version="5"/>
</rdf:RDF>
</x:xmpmeta>"""


@pytest.mark.skipif(
    any(shutil.which(name) is None for name in PROGRAMS), reason="not all programs are here"
)
def test_the_commands_run(tmp_path: Path) -> None:
    page = PROJECT / "docs" / "raw_developers.md"
    (tmp_path / "examples").mkdir()
    shutil.copy(PROJECT / "examples" / "cat.png", tmp_path / "examples")
    # By their names alone: what is inside of a file decides.
    for name in ("IMG_0001.CR3", "IMG_0002.NEF"):
        write_dng(tmp_path / name, stored(shoot(mosaic_of(scene(320, 480)))))
    (tmp_path / "IMG_0001.CR3.xmp").write_text(SIDECAR)
    (tmp_path / "IMG_0001.CR3.pp3").write_text("[Exposure]\nCompensation=0.5\n")
    home = {"HOME": str(tmp_path / "home"), "PATH": path_with_nlnet()}
    blocks = [
        block
        for block in read_blocks(page, page.name)
        if block.language == "sh" and (block.reason is None or MARK in block.reason)
    ]
    assert len(blocks) > 6
    for block in blocks:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block.code],
            cwd=tmp_path,
            env={**os.environ, **home},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{block}: {done.stderr or done.stdout}"
    for name, start in RESULTS.items():
        assert (tmp_path / name).read_bytes().startswith(start), name


def path_with_nlnet() -> str:
    return f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
