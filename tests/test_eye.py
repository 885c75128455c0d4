"""The eye: its sizes and its parameter block, and the maps that the engine gives."""

from __future__ import annotations

import numpy as np
import pytest
from eyes import ALL_SIZES, SMALL, look, look_slowly, random_eye, random_tiles
from messages import refused

from nlnet.engine.library import SET_VARIABLE, available_sets, instruction_set
from nlnet.engine.network import EngineEye
from nlnet.errors import InputError, ModelError
from nlnet.network.eye import Eye, EyeConfig

pytestmark = pytest.mark.numerical


@pytest.mark.parametrize("config", ALL_SIZES, ids=str)
@pytest.mark.parametrize("channels", [1, 3])
def test_the_engine_gives_the_maps_of_the_plain_version(config, channels):
    eye = random_eye(config)
    for height, width in ((config.unit, 3 * config.unit), (96, 48)):
        tiles = random_tiles(2, channels, height, width)
        maps = look(eye, tiles)
        wanted = look_slowly(eye, tiles)
        assert maps.dtype == np.float32
        np.testing.assert_allclose(maps, wanted, rtol=0, atol=1e-4)


@pytest.mark.parametrize("channels", [1, 3])
def test_it_is_what_torch_makes_of_it(channels):
    torch = pytest.importorskip("torch")
    from torch.nn import functional as F  # noqa: N812

    eye = random_eye(EyeConfig())
    tiles = random_tiles(3, channels, 64, 96)
    planes = torch.zeros(3, 3, 64, 96, dtype=torch.float64)
    if channels == 3:
        red, green, blue = torch.tensor(tiles, dtype=torch.float64).unbind(1)
        opponent = (red + green + blue) / 3, (red - blue) / 2, red / 4 - green / 2 + blue / 4
        planes = torch.stack(opponent, 1)
    else:
        planes[:, :1] = torch.tensor(tiles)
    means = F.avg_pool2d(F.pad(planes, (2, 2, 2, 2), mode="replicate"), 5, 1)
    seen = torch.cat([(planes[:, :1] - 127.5) / 64, torch.asinh((planes - means) / 2)], 1)
    layers = iter(eye.layers)

    def convolve(planes: torch.Tensor, stride: int = 1) -> torch.Tensor:
        weights, biases = (torch.tensor(array, dtype=torch.float64) for array in next(layers))
        return F.conv2d(planes, weights, biases, stride, 1 if stride == 1 else 0)

    values = convolve(F.pixel_unshuffle(seen, 2))
    for level in range(4):
        values = convolve(values, 2) if level else values
        values = values + convolve(F.relu(convolve(values)))
    wanted = convolve(F.relu(values)).numpy()
    np.testing.assert_allclose(look(eye, tiles), wanted, rtol=0, atol=1e-4)


def test_threads_change_nothing_and_sets_only_the_rounding(monkeypatch):
    eye, tiles = random_eye(EyeConfig()), random_tiles(7, 3, 96, 80)
    maps = look(eye, tiles, threads=1)
    for threads in (2, 5):
        np.testing.assert_array_equal(look(eye, tiles, threads), maps)
    for name in available_sets():
        monkeypatch.setenv(SET_VARIABLE, name)
        np.testing.assert_allclose(look(eye, tiles), maps, rtol=0, atol=1e-4)


def test_a_tile_is_seen_alone():
    eye, tiles = random_eye(), random_tiles(3, 1, 32, 32)
    together = look(eye, tiles)
    for tile, maps in zip(tiles, together, strict=True):
        np.testing.assert_array_equal(look(eye, tile[None]), maps[None])


def test_a_flat_gray_tile_has_no_feature_but_its_luminance():
    """Layers that copy features 1 to 3 of a pixel to the maps: they are exactly zero."""
    config = EyeConfig((16,), (0,), 16)
    eye = random_eye(config)
    for layer in eye.layers:
        layer.weights[:], layer.biases[:] = 0, 0
        layer.weights[range(16), range(16), 1, 1] = 1
    maps = look(eye, np.full((1, 3, 16, 16), 255, np.float32))
    np.testing.assert_allclose(maps[0, :4], 127.5 / 64, rtol=1e-6)
    assert np.abs(maps[0, 4:]).max() < 1e-4


@pytest.mark.parametrize(
    "shape",
    [
        (1, 2, 32, 32),
        (1, 1, 30, 32),
        (1, 1, 32, 1028),
        (1, 1, 0, 32),
    ],
)
def test_tiles_of_another_shape_are_refused(shape):
    with pytest.raises(InputError):
        look(random_eye(), np.zeros(shape, np.float32))


@pytest.mark.parametrize(
    ("sizes", "name"),
    [
        ({"widths": (12, 8)}, "widths"),
        ({"widths": ()}, "widths"),
        ({"widths": (8,) * 5}, "widths"),
        ({"down": (1,)}, "down"),
        ({"down": (1, 9)}, "down"),
        ({"outputs": 12}, "outputs"),
        ({"outputs": 0}, "outputs"),
    ],
)
def test_sizes_out_of_bounds_are_errors(sizes, name):
    with refused(ModelError, name):
        EyeConfig(**{"widths": (8, 16), "down": (1, 1), "outputs": 8, **sizes})


def test_layers_of_other_shapes_or_values_are_errors():
    layers = random_eye().layers
    with refused(ModelError, "layers"):
        Eye(SMALL, layers[1:])
    with refused(ModelError, "head"):
        Eye(SMALL, (layers[1], *layers[1:]))
    broken = layers[0]._replace(biases=np.full_like(layers[0].biases, np.nan))
    with refused(ModelError, "head"):
        Eye(SMALL, (broken, *layers[1:]))


def test_the_engine_refuses_what_is_no_eye():
    block = random_eye().pack()
    EngineEye(block, instruction_set())
    for damaged in (block[:-4], block + bytes(8), b"nlnetpar" + block[8:], b""):
        with pytest.raises(ModelError):
            EngineEye(damaged, instruction_set())
