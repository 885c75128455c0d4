"""The package for npm, in node: results as Python's, and its example in an empty project."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from paths import PROJECT

import nlnet
from benchmarks.browser_cases import KINDS, MOST_DIFFERING, differing, noisy_image

PACKAGE = PROJECT / "js"
HEADERS = PROJECT / "engine" / "include"
NODE, NPM = shutil.which("node"), shutil.which("npm")

pytestmark = [
    pytest.mark.site,
    pytest.mark.skipif(not (PACKAGE / "engine").exists(), reason="make site builds it"),
    pytest.mark.skipif(NODE is None, reason="no node"),
]

PROGRAM = """
import { readFile, writeFile } from "node:fs/promises";
import { denoise, estimateNoise, prepare } from "%s";
const [file, width, height, target, options] = process.argv.slice(2);
const { threads, ...more } = JSON.parse(options);
await prepare({ threads });
const image = { data: new Uint8ClampedArray(await readFile(file)), width: +width, height: +height };
const { kind } = await estimateNoise(image);
const { data } = await denoise(image, more);
await writeFile(target, data);
console.log(kind);
"""


def run_node(
    folder: Path, pixels: np.ndarray, options: dict[str, object]
) -> tuple[np.ndarray, str]:
    """Denoise an image in node, and tell the kind of noise that was found."""
    colors = pixels if pixels.ndim == 3 else np.dstack([pixels] * 3)
    height, width = pixels.shape[:2]
    np.dstack([colors, np.full((height, width), 255, np.uint8)]).tofile(folder / "noisy")
    (folder / "run.mjs").write_text(PROGRAM % (PACKAGE / "src" / "node.js"))
    words = ["run.mjs", "noisy", width, height, "denoised", json.dumps(options)]
    told = subprocess.run(
        [str(NODE), *map(str, words)], cwd=folder, check=True, capture_output=True, text=True
    )
    denoised = np.fromfile(folder / "denoised", np.uint8).reshape(height, width, 4)
    assert (denoised[..., 3] == 255).all()
    return denoised[..., :3] if pixels.ndim == 3 else denoised[..., 0], told.stdout.strip()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_results_are_those_of_python(
    tmp_path: Path, kind: str, channels: int, threads: int
) -> None:
    noisy = noisy_image(kind, channels)
    denoised, found = run_node(tmp_path, noisy, {"threads": threads})
    assert found == nlnet.estimate_noise(noisy).kind
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that some of it may be texture
        np.testing.assert_array_equal(denoised, nlnet.denoise(noisy))


@pytest.mark.parametrize(
    "options",
    [
        {"sigma": 30},
        {"noise": "poisson"},
        {"noise": "camera"},
        {"noise": "camera", "sigma": 12},
        {"strength": [0.5, 1.5]},
        {"quality": "best"},
    ],
    ids=str,
)
def test_options_mean_what_they_mean_in_python(tmp_path: Path, options: dict[str, object]) -> None:
    noisy = noisy_image("white", 3)
    denoised, _ = run_node(tmp_path, noisy, options)
    given = {
        name: tuple(value) if isinstance(value, list) else value for name, value in options.items()
    }
    share, most = differing(denoised, nlnet.denoise(noisy, **given))  # type: ignore[arg-type]
    assert most <= 1
    assert share <= (MOST_DIFFERING if options.get("quality") == "best" else 0)


STRUCTURES = """
import * as structures from "%s";
const all = Object.entries(structures).filter(([, value]) => value.places);
console.log(JSON.stringify(all.map(([name, { size, places }]) =>
  [name, size, Object.fromEntries([...places].map(([field, { at }]) => [field, at]))])));
"""


def test_structures_are_those_of_the_header(tmp_path: Path) -> None:
    pytest.importorskip("ziglang")
    (tmp_path / "list.mjs").write_text(STRUCTURES % (PACKAGE / "src" / "shared" / "structures.js"))
    told = subprocess.run(
        [str(NODE), str(tmp_path / "list.mjs")], check=True, capture_output=True, text=True
    )
    lines = ['#include "nlnet_engine.h"']
    for name, size, fields in json.loads(told.stdout):
        kind = "nlnet" + re.sub("[A-Z]", lambda letter: "_" + letter[0].lower(), name)
        lines.append(f'_Static_assert(sizeof({kind}) == {size}, "size of {kind}");')
        for field, at in fields.items():
            words = f"offsetof({kind}, {field}) == {at}"
            lines.append(f'_Static_assert({words}, "{kind}.{field}");')
    assert len(lines) > 60
    (tmp_path / "check.c").write_text("\n".join(lines))
    flags = ["-target", "wasm32-freestanding", "-c", f"-I{HEADERS}"]
    compiler = [sys.executable, "-m", "ziglang", "cc"]
    subprocess.run([*compiler, *flags, "check.c", "-o", "check.o"], cwd=tmp_path, check=True)


def test_its_own_tests() -> None:
    subprocess.run([str(NODE), "--test", "tests/"], cwd=PACKAGE, check=True)


@pytest.mark.skipif(NPM is None, reason="no npm")
def test_the_example_runs_in_an_empty_project(tmp_path: Path) -> None:
    packed = subprocess.run(
        [str(NPM), "pack", "--silent", "--pack-destination", str(tmp_path)],
        cwd=PACKAGE,
        check=True,
        capture_output=True,
        text=True,
    )
    archive = tmp_path / packed.stdout.strip().splitlines()[-1]
    project = tmp_path / "project"
    project.mkdir()
    (project / "package.json").write_text('{"type": "module", "private": true}')
    words = ["install", "--silent", "--offline", "--no-audit", str(archive)]
    subprocess.run([str(NPM), *words], cwd=project, check=True)
    readme = (PACKAGE / "README.md").read_text()
    (example,) = re.findall(r"<!-- runs in a test -->\n```js\n(.*?)```", readme, re.DOTALL)
    (project / "example.js").write_text(example)
    told = subprocess.run(
        [str(NODE), "example.js"], cwd=project, check=True, capture_output=True, text=True
    )
    assert re.fullmatch(r"white noise of about (19|20|21)\n", told.stdout)
