"""Clean pictures to simulate noise on: pieces of photos, drawings, text, cells, stars, phantoms.

Photos come from a folder. The others are drawn at random, for no folder of photos shows them.
"""

import os
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np

from nlnet.errors import InputError
from nlnet.training.simulation.steps import Image, Sharpen, blur


class Photos:
    """A folder of photos, decoded once; (H, W, 3) uint8 each."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        suffixes = (".jpg", ".jpeg", ".png", ".webp")
        names = [path for path in Path(folder).rglob("*") if path.suffix.lower() in suffixes]
        if not names:
            raise InputError(f"{str(folder)!r} has no photos (JPEG, PNG or WebP).")
        self._names = sorted(names)
        self._read: dict[int, np.ndarray] = {}

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, number: int) -> np.ndarray:
        """Return a photo by its number in the order of the names."""
        if number not in self._read:
            pixels = cv2.imread(str(self._names[number]), cv2.IMREAD_COLOR)
            if pixels is None:
                raise InputError(f"{str(self._names[number])!r} cannot be read as an image.")
            self._read[number] = np.ascontiguousarray(pixels[..., ::-1])
        return self._read[number]

    def piece(
        self,
        height: int,
        width: int,
        rng: np.random.Generator,
        *,
        places: int = 2,
        smallest: float = 0.45,
    ) -> Image:
        """Return a piece of a random photo, at a random size from `smallest` to 3 times the file's.

        Photos that were scaled down are sharp, and those of large sensors, seen pixel by pixel, are
        soft: half of the pieces are enlarged. Of so many places, one with much detail is preferred.
        """
        photo = self[int(rng.integers(len(self)))]
        scale = float(rng.uniform(smallest, 1) if rng.random() < 0.5 else 3 ** rng.uniform())
        rows, columns = (
            min(round(n / scale), m) for n, m in zip((height, width), photo.shape, strict=False)
        )
        room = photo.shape[0] - rows + 1, photo.shape[1] - columns + 1
        tries = [rng.integers(room) for _ in range(places)]
        # In most cases the place with the most detail: much of a photo is sky.
        cuts = [photo[top : top + rows, left : left + columns] for top, left in tries]
        cut = max(cuts, key=_detail) if rng.random() < 0.6 else cuts[0]
        way = cv2.INTER_AREA if scale <= 1 else cv2.INTER_CUBIC
        piece = cv2.resize(cut.astype(np.float32), (width, height), interpolation=way)
        return np.clip(piece, 0, 255)


def _detail(photo: np.ndarray) -> float:
    return float(np.abs(np.diff(photo[..., 1].astype(np.int16), axis=1)).mean())


def draw_piece(
    photos: Photos,
    side: int,
    rng: np.random.Generator,
    harsh: tuple[float, float],
    *,
    places: int,
    smallest: float,
) -> Image:
    """Return a piece of a photo; two shares are sharpened and aliased, as some software does."""
    sharpened, aliased = harsh
    if aliased and rng.random() < aliased:
        piece = photos.piece(2 * side, 2 * side, rng, places=places, smallest=smallest)
        return np.ascontiguousarray(piece[::2, ::2])
    piece = photos.piece(side, side, rng, places=places, smallest=smallest)
    if sharpened and rng.random() < sharpened:
        unsharp = Sharpen(float(rng.uniform(0.2, 1.5)), float(rng.uniform(0.6, 1.5)))
        piece = np.clip(unsharp.apply(piece, None), 0, 255)
    return piece


def draw_scene(height: int, width: int, rng: np.random.Generator) -> Image:
    """Return a drawn picture, (H, W), of a random kind."""
    kinds = [draw_shapes, draw_text, draw_cells, draw_stars, draw_phantom, draw_gradient]
    kinds += [draw_strokes, draw_weave, draw_leaves, draw_sand]
    return kinds[int(rng.integers(len(kinds)))](height, width, rng)


def draw_shapes(height: int, width: int, rng: np.random.Generator) -> Image:
    """Draw flat areas with sharp edges, as in charts and cartoons."""
    canvas = np.full((height, width), rng.integers(256), np.uint8)  # OpenCV smooths edges in bytes
    for _ in range(int(rng.integers(3, 25))):
        value, thick = float(rng.uniform(0, 255)), int(rng.choice([-1, 1, 2, 4]))
        points = rng.integers(0, (width, height), (3, 2))
        if rng.random() < 0.5:
            radius = int(rng.integers(2, max(3, min(height, width) // 3)))
            cv2.circle(canvas, tuple(map(int, points[0])), radius, value, thick, cv2.LINE_AA)
        elif thick < 0:
            cv2.fillPoly(canvas, [points.astype(np.int32)], value, cv2.LINE_AA)
        else:
            start, end = (tuple(map(int, point)) for point in points[:2])
            cv2.line(canvas, start, end, value, thick, cv2.LINE_AA)
    return canvas.astype(np.float32)


def draw_text(height: int, width: int, rng: np.random.Generator) -> Image:
    """Draw lines of text on paper."""
    paper, ink = (235.0, 20.0) if rng.random() < 0.7 else (15.0, 230.0)
    canvas = np.full((height, width), paper, np.uint8)
    size = float(rng.uniform(0.3, 0.9))
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz ABCDEFG 0123456789.,:"))
    for line in range(1, int(height / (28 * size)) + 2):
        words = "".join(rng.choice(letters, 60))
        place = (int(rng.integers(-20, 10)), int(28 * size * line))
        cv2.putText(canvas, words, place, cv2.FONT_HERSHEY_SIMPLEX, size, ink, 1, cv2.LINE_AA)
    return canvas.astype(np.float32)


def draw_cells(height: int, width: int, rng: np.random.Generator) -> Image:
    """Draw bright bodies, fibers and spots on a dark ground, as in fluorescence microscopy."""
    canvas = np.full((height, width), rng.uniform(0, 20), np.float32)
    for _ in range(int(rng.integers(2, 14))):
        center = tuple(int(n) for n in rng.integers(0, (width, height)))
        axes = tuple(int(n) for n in rng.integers(6, 40, 2))
        body, angle = np.zeros_like(canvas), float(rng.uniform(0, 180))
        cv2.ellipse(body, center, axes, angle, 0, 360, float(rng.uniform(20, 160)), -1)
        canvas += blur(body, float(rng.uniform(1, 5)))
    texture = blur(rng.standard_normal((height, width), np.float32), float(rng.uniform(1, 6)))
    canvas *= np.clip(
        1 + float(rng.uniform(0, 0.5)) * texture / max(float(texture.std()), 1e-6), 0, 3
    )
    for _ in range(int(rng.integers(0, 40))):
        start = rng.uniform(0, (width, height))
        angles = np.cumsum(rng.normal(0, 0.25, 30)) + rng.uniform(0, 2 * np.pi)
        path = start + np.cumsum(4 * np.stack([np.cos(angles), np.sin(angles)], 1), axis=0)
        cv2.polylines(
            canvas, [path.astype(np.int32)], False, float(rng.uniform(30, 200)), 1, cv2.LINE_AA
        )
    return _filled(blur(canvas, float(rng.uniform(0.6, 1.5))), rng)


def draw_stars(height: int, width: int, rng: np.random.Generator) -> Image:
    """Draw stars of a power law of brightness, and a nebula, on a dark sky."""
    canvas = np.zeros((height, width), np.float32)
    count = int(rng.integers(10, 300))
    brightness = 10 * rng.pareto(float(rng.uniform(0.7, 1.5)), count) + 5
    canvas[rng.integers(height, size=count), rng.integers(width, size=count)] += brightness * 20
    canvas = blur(canvas, float(rng.uniform(0.7, 1.8)))
    nebula = blur(rng.standard_normal((height, width), np.float32), float(rng.uniform(10, 40)))
    nebula = np.maximum(nebula / max(float(nebula.std()), 1e-6), 0) * np.float32(rng.uniform(0, 30))
    return np.asarray(canvas + nebula + np.float32(rng.uniform(1, 40)), np.float32)


def draw_phantom(height: int, width: int, rng: np.random.Generator) -> Image:
    """Draw a round body of smooth and flat parts on an empty ground, as in CT."""
    canvas = np.zeros((height, width), np.float32)
    middle, size = (width // 2, height // 2), min(height, width)
    body = int(0.46 * size), int(0.4 * size)
    cv2.ellipse(canvas, middle, body, 0, 0, 360, 90.0, -1, cv2.LINE_AA)
    for _ in range(int(rng.integers(4, 14))):
        center = tuple(int(n) for n in rng.uniform(0.25, 0.75, 2) * (width, height))
        axes = tuple(int(n) for n in rng.uniform(0.02, 0.15, 2) * size + 1)
        value, angle = float(rng.uniform(20, 230)), float(rng.uniform(0, 180))
        cv2.ellipse(canvas, center, axes, angle, 0, 360, value, -1, cv2.LINE_AA)
    return blur(canvas, float(rng.uniform(0, 1.2)))


def draw_strokes(height: int, width: int, rng: np.random.Generator) -> Image:
    """Draw many short strokes that run about the same way: fur, wool, grass, hair."""
    canvas = np.full((height, width), rng.integers(40, 200), np.uint8)
    angle, spread = rng.uniform(0, np.pi), rng.uniform(0.1, 0.8)
    count, length = height * width // int(rng.integers(20, 80)), float(rng.uniform(4, 25))
    starts = rng.uniform(0, (width, height), (count, 2))
    angles = rng.normal(angle, spread, count)
    ends = starts + length * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    lines = np.rint(16 * np.stack([starts, ends], axis=1)).astype(np.int32)  # sixteenths of a pixel
    contrast = float(rng.uniform(10, 90))
    values = np.clip(rng.normal(120, contrast, count), 0, 255)
    for line, value in zip(lines, values, strict=True):
        cv2.polylines(canvas, [line], False, float(value), 1, cv2.LINE_AA, shift=4)
    return canvas.astype(np.float32)


def draw_weave(height: int, width: int, rng: np.random.Generator) -> Image:
    """Draw a fabric: two waves across each other, a little uneven."""
    rows, columns = np.mgrid[0:height, 0:width].astype(np.float32)
    angle, period = rng.uniform(0, np.pi), rng.uniform(2.2, 12)
    uneven = [4 * blur(rng.standard_normal((height, width), np.float32), 8.0) for _ in range(2)]
    along = np.cos(angle) * columns + np.sin(angle) * rows + uneven[0]
    across = np.cos(angle) * rows - np.sin(angle) * columns + uneven[1]
    waves = np.sin(2 * np.pi * along / period) * np.sin(2 * np.pi * across / period)
    contrast = np.float32(rng.uniform(5, 80))
    return np.asarray(np.clip(128 + contrast * waves, 0, 255), np.float32)


def draw_leaves(height: int, width: int, rng: np.random.Generator) -> Image:
    """Draw discs of all sizes that cover each other: edges at every scale, as photos have them.

    This is the "dead leaves" model, whose statistics are those of natural textures: foliage,
    gravel, bark.
    """
    canvas = np.full((2 * height, 2 * width), rng.integers(256), np.uint8)
    least, most = float(rng.uniform(1.0, 4.0)), float(rng.uniform(8, 80))
    shares = rng.uniform(size=int(height * width / least**2))
    radii = 1 / np.sqrt(least**-2 + shares * (most**-2 - least**-2))  # density of r**-3
    values = np.clip(rng.normal(rng.uniform(60, 190), rng.uniform(8, 80), radii.size), 0, 255)
    centers = rng.integers(0, (2 * width, 2 * height), (radii.size, 2))
    slim, angle = float(rng.uniform(0.3, 1)), float(rng.uniform(0, 180))
    for center, radius, value in zip(centers, radii, values, strict=True):
        axes = (max(1, round(radius)), max(1, round(slim * radius)))
        turned = angle + float(rng.normal(0, 40))
        cv2.ellipse(canvas, tuple(map(int, center)), axes, turned, 0, 360, float(value), -1)
    return _halved(canvas)


def draw_sand(height: int, width: int, rng: np.random.Generator) -> Image:
    """Draw grains of about one size, each with a bright and a dark side: sand, asphalt, seed."""
    canvas = np.full((2 * height, 2 * width), rng.integers(30, 120), np.uint8)
    radius, light = float(rng.uniform(2, 7)), float(rng.uniform(0, 2 * np.pi))
    mean, contrast = float(rng.uniform(70, 180)), float(rng.uniform(8, 60))
    shade = rng.uniform(0, 0.6) * radius * np.array([np.cos(light), np.sin(light)])
    count = int(rng.uniform(0.8, 1.6) * canvas.size / radius**2 / np.pi)
    values = rng.normal(mean, contrast, count)
    sizes = np.rint(8 * radius * rng.uniform(0.6, 1.4, count)).astype(int)  # in eighths of a pixel
    centers = rng.uniform(0, (2 * width, 2 * height), (count, 2))
    dark, bright = (np.rint(8 * at).astype(int).tolist() for at in (centers, centers - shade))
    for below, above, size, value in zip(dark, bright, sizes.tolist(), values, strict=True):
        for place, color in ((below, 0.6 * value), (above, 1.1 * value)):
            cv2.circle(canvas, place, size, float(min(max(color, 0), 255)), -1, shift=3)
    return _halved(canvas)


def _halved(canvas: np.ndarray) -> Image:
    """Return a drawing of twice the size at its own, so that edges are smooth."""
    size = (canvas.shape[1] // 2, canvas.shape[0] // 2)
    return np.asarray(cv2.resize(canvas, size, interpolation=cv2.INTER_AREA), np.float32)


def draw_gradient(height: int, width: int, rng: np.random.Generator) -> Image:
    """Draw a smooth ramp, or nothing but one gray."""
    low, high = sorted(rng.uniform(0, 255, 2)) if rng.random() < 0.7 else [rng.uniform(0, 255)] * 2
    angle = rng.uniform(0, 2 * np.pi)
    rows, columns = np.mgrid[0:height, 0:width]
    ramp = np.cos(angle) * columns / width + np.sin(angle) * rows / height
    ramp = (ramp - ramp.min()) / max(float(np.ptp(ramp)), 1e-6)
    return np.asarray(low + (high - low) * ramp, np.float32)


def colored(gray: Image, rng: np.random.Generator) -> Image:
    """Return a gray drawing in colors: a tint of its own for dark and for bright."""
    dark, bright = rng.uniform(0, 255, 3), rng.uniform(0, 255, 3)
    share = np.clip(gray / 255, 0, 1)[..., np.newaxis]
    return np.asarray(dark + share * (bright - dark), np.float32)


def _filled(canvas: Image, rng: np.random.Generator) -> Image:
    """Scale a drawing so that its brightest places are near white."""
    top = float(np.percentile(canvas, 99.8))
    return canvas * np.float32(rng.uniform(0.5, 1.1) * 255 / max(top, 1e-6))


def pick(rng: np.random.Generator, choices: Sequence[tuple[str, float]]) -> str:
    """Return one of several names, by their weights."""
    names, weights = zip(*choices, strict=True)
    return str(rng.choice(names, p=np.divide(weights, sum(weights))))
