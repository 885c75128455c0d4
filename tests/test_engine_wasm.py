"""The engine in WebAssembly, called by JavaScript, gives what Python gives."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from paths import PROJECT

import nlnet
from nlnet.engine.library import SET_VARIABLE, available_sets
from nlnet.model.family import Family
from nlnet.noise.camera import Camera
from nlnet.noise.levels import Level, Nodes
from nlnet.noise.record import Curve, Photon
from nlnet.noise.sample import Sample

LIBRARIES = sorted((PROJECT / "build" / "engine").glob("wasm-*/*.wasm"))

pytestmark = [
    pytest.mark.numerical,
    pytest.mark.filterwarnings("ignore:What looks like noise"),
    pytest.mark.skipif(shutil.which("node") is None, reason="needs node"),
    pytest.mark.skipif(not LIBRARIES, reason="make engine-wasm builds the library"),
]

LEVEL, NODES = Level(1.2, 4.0, 5.0), Nodes(((0.0, 4.0), (100.0, 9.0), (255.0, 14.0)))
MAP = np.linspace(3, 14, 2 * 3 * 2 * 3, dtype=np.float32).reshape(2, 3, 2, 3)
NOISES = {
    "white": nlnet.Noise.white(12.0),
    "photon": Photon((LEVEL,)),
    "curve": Curve((NODES,)),
    "camera": Camera(MAP, certainty=0.6),
}


def told(noise: nlnet.Noise) -> dict[str, Any]:
    """Noise as JavaScript takes it."""
    if isinstance(noise, Camera):
        rows, columns = noise.strengths.shape[2:]
        maps = {"strengths": noise.strengths.ravel().tolist(), "rows": rows, "columns": columns}
        return {"kind": "camera", "certainty": noise.certainty, **maps}
    if noise.sigma is not None:
        return {"kind": "white", "sigma": noise.sigma}
    levels = [
        {"gain": level.gain, "offset": level.offset}
        if isinstance(level, Level)
        else {"points": level.nodes}
        for level in noise.levels
    ]
    return {"kind": noise.kind, "levels": levels}


@pytest.mark.parametrize("kind", NOISES)
@pytest.mark.parametrize("channels", [1, 3])
def test_javascript_removes_noise_as_python_does(
    kind: str, channels: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the bit with instructions that round in the same way.

    Where they are fused, which only the refinement allows, one value in 10,000 may differ by one.
    """
    rng = np.random.default_rng(0)
    rows, columns = np.mgrid[:97, :131]
    base = 120 + 80 * np.sin(columns / 11) * np.cos(rows / 9)
    clean = np.stack([base, 0.8 * base + 10, 255 - base], -1)[..., :channels]
    image = np.clip(np.rint(clean + rng.normal(0, 12, clean.shape)), 0, 255).astype(np.uint8)
    family = nlnet.load_model("gray-plus" if channels == 1 else "color-plus")
    assert isinstance(family, Family)
    noise, strength = NOISES[kind], (0.8, 0.8) if channels == 1 else (0.7, 1.4)
    sample = Sample.of(np.moveaxis(image, -1, 0))
    case: dict[str, Any] = {"height": 97, "width": 131, "channels": channels}
    case |= {"low": sample.measures.low, "high": sample.measures.high, "strength": strength}
    pixels = image if channels == 1 else np.concatenate([image, image[..., :1]], axis=-1)
    (tmp_path / "family").write_bytes(family.block())
    (tmp_path / "case.json").write_text(json.dumps({**case, "noise": told(noise)}))
    (tmp_path / "pixels").write_bytes(np.ascontiguousarray(pixels).tobytes())
    script = PROJECT / "engine" / "tests" / "remove_wasm.mjs"
    files = [tmp_path / name for name in ("family", "case.json", "pixels", "result")]
    library = next(path for path in LIBRARIES if "shared" not in str(path))
    subprocess.run(["node", script, library, *files], check=True, timeout=300)
    result = np.frombuffer((tmp_path / "result").read_bytes(), np.uint8).reshape(pixels.shape)

    def apart() -> np.ndarray:
        given = strength if channels == 3 else strength[0]
        expected = nlnet.denoise(image.squeeze(), noise=noise, model=family, strength=given)
        assert np.abs(expected.reshape(image.shape).astype(int) - image).mean() > 1
        return np.abs(result[..., :channels].astype(int) - expected.reshape(image.shape))

    if channels == 3:
        np.testing.assert_array_equal(result[..., 3], image[..., 0])  # alpha stays
    here = apart()
    assert here.max() <= 1
    assert np.count_nonzero(here) <= image.size / 10_000
    if "sse2" in available_sets():
        monkeypatch.setenv(SET_VARIABLE, "sse2")
        assert not apart().any()
