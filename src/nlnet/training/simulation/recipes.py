"""What is drawn from which range: the one table of the simulator, and the pictures it makes.

| what | share | ranges |
|---|---|---|
| clean | 0.24 | photos, drawings; softened by 0 to 1.2 pixels in a third; JPEG in half |
| white | 0.10 | sigma 0.6 to 70, even in log; rounded to 8 bits and clipped in half |
| soft white | 0.07 | sigma 2 to 40, blurred by 0.3 to 0.8 pixels |
| photons | 0.14 | 2 to 3000 photons in white, read noise 0 to 3, offset 0 to 40; some blurred |
| grain | 0.15 | sigma 3 to 25, size 0.4 to 1.4 pixels, gray or colored, even or in midtones |
| camera | 0.30 | 40 to 8000 photons in white, read noise 0.5 to 8; denoised in 65 % |

Grain, camera and a quarter of the white noise end in a file: JPEG or WebP of quality 50 to 98,
chroma halved in 65 %, twice in 10 %. Half of the photos are scaled down, to 0.45 at most, the
others up, to 3. A third is darkened, by up to a factor of 5. Of the clean ones, half are the places
with the most detail of six.
Sharpening: 45 % of camera pictures, 0.2 to 1.5. Scaling: down to 0.4 in 30 %, up to 1.4 in 7 %.

The eye is trained on more than that (`BROADER`):

- photos scaled down to 0.2, where foliage, sand and crowds become fine textures that are no noise;
  of all pieces of photos, 25 % sharpened and 12 % aliased before anything else;
- in-camera denoisers that expect up to 4 times the noise, and leave it beside edges only;
- in 50 % of the camera pictures, a residue of any spectrum, from grain to blotches of 6 pixels:
  0.02 to 0.4 of the sensor's noise in each octave, and down to a quarter of that in flat areas;
- in 50 % of the camera pictures, denoising that leaves 0.2 to 1 of the noise beside detail, and
  sharpening that spares what is below 0.1 to 1 of the noise in the midtones;
- in half of all pictures, files that were cut anywhere, so that JPEG's blocks begin anywhere; and
  of all files, 30 % that were saved at quality 75 to 98, cut anywhere and saved again;
- photon noise blurred by up to 2.5 pixels, in 40 %.

Some kinds are kept for tests (`HELD_BACK`): nothing is trained on them.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from nlnet.training.simulation import scenes, steps
from nlnet.training.simulation.cameras import InCamera, Residue
from nlnet.training.simulation.means import TRAINED, Means
from nlnet.training.simulation.scenes import Photos, pick
from nlnet.training.simulation.steps import Image, Step, blur

Kind = Literal["clean", "white", "soft", "photons", "grain", "camera"]
KINDS: tuple[tuple[Kind, float], ...] = (
    ("clean", 0.24),
    ("white", 0.10),
    ("soft", 0.07),
    ("photons", 0.14),
    ("grain", 0.15),
    ("camera", 0.30),
)


MARGIN = 16
"""Pixels by which a file is cut at most, above and on the left: a block of halved chroma."""


class Recipe(NamedTuple):
    """A picture, and the steps that it goes through; `picture` is float32 from 0 to 255."""

    kind: Kind
    picture: Image
    steps: tuple[Step, ...]

    def render(self, seed: Sequence[int] | int | None) -> Image:
        """Return the file with the noise of a seed, or what it would be without noise."""
        rng = None if seed is None else np.random.default_rng(seed)
        image = self.picture
        for step in self.steps:
            image = step.apply(image, rng)
        return image

    def truth(self) -> Image:
        """Return the picture without noise, mosaic, in-camera denoising and encoding."""
        image = self.picture
        for step in self.steps:
            if step.faithful:
                image = step.apply(image, None)
        return image

    @property
    def correlated(self) -> bool:
        """Whether neighboring pixels have noise that is alike, or a lossy file made it so."""
        lossy = any(isinstance(step, steps.Encode) for step in self.steps)
        softness = max((getattr(step, "softness", 0.0) for step in self.steps), default=0.0)
        return self.kind in ("soft", "grain", "camera") or lossy or softness > 0


def draw_recipe(
    photos: Photos,
    side: int,
    rng: np.random.Generator,
    *,
    kinds: Sequence[tuple[str, float]] = KINDS,
    means: Means = TRAINED,
) -> Recipe:
    """Draw a picture of `side` x `side` pixels, fewer if it is cut, and what happens to it.

    Examples
    --------
    >>> import cv2, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> gray = np.random.default_rng(0).integers(0, 255, (64, 64, 3), np.uint8)
    >>> _ = cv2.imwrite(folder + "/photo.png", gray)
    >>> recipe = draw_recipe(Photos(folder), 32, np.random.default_rng(1))
    >>> recipe.render(2).shape[:2], recipe.truth().shape[:2]
    ((32, 32), (32, 32))
    """
    kind = pick(rng, kinds)
    draw = {
        "clean": _clean,
        "white": _white,
        "soft": _soft,
        "photons": _photons,
        "grain": _grain,
        "camera": _camera,
    }[kind]
    return draw(photos, side, rng, means)


def _clean(photos: Photos, side: int, rng: np.random.Generator, means: Means) -> Recipe:
    picture = _picture(photos, side, rng, means, places=6 if rng.random() < 0.5 else 2)
    if rng.random() < 0.33:
        picture = blur(picture, float(rng.uniform(0.3, 1.2)))
    file = _file(rng, means) if rng.random() < 0.5 else (steps.Quantise(),)
    return Recipe("clean", picture, file)


def _white(photos: Photos, side: int, rng: np.random.Generator, means: Means) -> Recipe:
    noise = steps.White(_log_uniform(rng, 0.6, 70))
    ends = (steps.Quantise(),) if rng.random() < 0.5 else ()
    file = _file(rng, means) if rng.random() < 0.25 else ends
    return Recipe("white", _picture(photos, side, rng, means), (noise, *file))


def _soft(photos: Photos, side: int, rng: np.random.Generator, means: Means) -> Recipe:
    noise = steps.White(_log_uniform(rng, 2, 40), float(rng.uniform(0.3, 0.8)))
    ends = (steps.Quantise(),) if rng.random() < 0.5 else ()
    return Recipe("soft", _picture(photos, side, rng, means), (noise, *ends))


def _photons(photos: Photos, side: int, rng: np.random.Generator, means: Means) -> Recipe:
    if rng.random() < 0.5:
        picture = (
            scenes.draw_cells(side, side, rng)
            if rng.random() < 0.5
            else scenes.draw_scene(side, side, rng)
        )
    else:
        picture = _piece(photos, side, rng, means)
        if rng.random() < 0.8:
            picture = picture.mean(axis=2)
    peak = _log_uniform(rng, 2, 3000)
    read = float(rng.uniform(0, 3)) if rng.random() < 0.5 else 0.0
    offset = float(rng.uniform(0, 40)) if rng.random() < 0.5 else 0.0
    share, least, most = means.soft
    softness = float(rng.uniform(least, most)) if rng.random() < share else 0.0
    noise = steps.Photons(peak, read, offset, softness)
    form = rng.random()
    if form < 0.35:
        file: tuple[Step, ...] = (steps.Quantise(),)
    elif form < 0.75 and softness == 0:
        file = (steps.Quantise(255 / peak * float(rng.choice([1.0, 0.5, 0.1])), open_ended=True),)
    else:
        file = ()
    return Recipe("photons", picture, (noise, *file))


def _grain(photos: Photos, side: int, rng: np.random.Generator, means: Means) -> Recipe:
    picture = _picture(photos, side, rng, means)
    sigma, size = _log_uniform(rng, 3, 25), float(rng.uniform(0.4, 1.4))
    grain = steps.Grain(sigma, size, bool(rng.random() < 0.4), float(rng.choice([0.0, 0.5, 0.8])))
    file = _file(rng, means) if rng.random() < 0.85 else (steps.Quantise(),)
    return Recipe("grain", picture, (grain, *file))


def _camera(photos: Photos, side: int, rng: np.random.Generator, means: Means) -> Recipe:
    scale = 1.0
    if rng.random() < 0.37:
        scale = float(rng.uniform(0.4, 0.95) if rng.random() < 0.8 else rng.uniform(1.05, 1.4))
    size = 2 * round(side / scale / 2)
    picture = _exposed(_piece(photos, size, rng, means), rng)
    photons = _log_uniform(rng, 40, 8000)
    way: list[Step] = [
        steps.Sensor(
            photons,
            read=_log_uniform(rng, 0.5, 8),
            red=float(rng.uniform(1.2, 2.6)),
            blue=float(rng.uniform(1.2, 2.4)),
            saturation=float(rng.uniform(0, 1)),
            contrast=float(rng.uniform(0, 0.6)),
            demosaicer=pick(rng, means.demosaicers),  # type: ignore[arg-type]
            hot=float(rng.uniform(0, 2e-4)) if rng.random() < 0.05 else 0.0,
        )
    ]
    method = pick(rng, means.denoisers)
    sparing = bool(means.sparing) and bool(rng.random() < means.sparing)
    midtones = float(255 * 0.5 / np.sqrt(0.2 * photons))  # about the noise there
    if method != "none":
        # Cameras remove a half of it to all and a bit more.
        expected = float(rng.uniform(0.3, 1.3))
        if means.strongest > 1.3 and rng.random() < 0.5:
            expected = _log_uniform(rng, 1, means.strongest)
        way.append(
            InCamera(
                method,  # type: ignore[arg-type]
                sigma=min(midtones * expected, 40.0),
                share=float(rng.uniform(0.4, 1)),
                chroma=float(rng.uniform(0, 3)),
                chroma_median=int(rng.choice([0, 0, 3, 5])),
                spared=float(rng.uniform(0.2, 1)) if sparing else 0.0,
            )
        )
    if means.residue and rng.random() < means.residue:
        luma, chroma = (
            tuple(midtones * _log_uniform(rng, 0.02, 0.4) for _ in range(3)) for _ in range(2)
        )
        fineness, flat = _log_uniform(rng, 0.4, 1.5), _log_uniform(rng, 0.25, 1)
        way.append(Residue(luma, chroma, fineness, float(rng.uniform(-0.2, 0.9)), flat))
    if rng.random() < 0.45:
        coring = midtones * _log_uniform(rng, 0.1, 1) if sparing else 0.0
        way.append(
            steps.Sharpen(float(rng.uniform(0.2, 1.5)), float(rng.uniform(0.6, 1.5)), coring)
        )
    if size != side:
        way.append(steps.Scale(side, side))
    way.extend(_file(rng, means) if rng.random() < 0.9 else (steps.Quantise(),))
    return Recipe("camera", picture, tuple(way))


def _picture(
    photos: Photos, side: int, rng: np.random.Generator, means: Means, places: int = 2
) -> Image:
    """Draw a clean picture: a photo mostly, else a drawing; gray in a third."""
    if rng.random() < 0.8:
        picture = _exposed(_piece(photos, side, rng, means, places), rng)
        return picture if rng.random() < 0.67 else picture.mean(axis=2)
    drawing = scenes.draw_scene(side, side, rng)
    return scenes.colored(drawing, rng) if rng.random() < 0.5 else np.clip(drawing, 0, 255)


def _piece(
    photos: Photos, side: int, rng: np.random.Generator, means: Means, places: int = 2
) -> Image:
    return scenes.draw_piece(photos, side, rng, means.harsh, places=places, smallest=means.smallest)


def _exposed(picture: Image, rng: np.random.Generator) -> Image:
    if rng.random() < 0.33:
        return picture * np.float32(_log_uniform(rng, 0.2, 1))
    return picture


def _file(rng: np.random.Generator, means: Means) -> tuple[Step, ...]:
    form = pick(rng, means.encoders)
    halved = bool(rng.random() < 0.65)
    quality = int(rng.integers(50, 99)) if rng.random() < 0.3 else int(rng.integers(75, 99))
    last = steps.Encode(form, quality, halved)  # type: ignore[arg-type]
    if means.cut and rng.random() < means.cut:
        top, left = map(int, rng.integers(MARGIN, size=2))
        return (steps.Encode("jpeg", int(rng.integers(75, 99)), halved), steps.Cut(top, left), last)
    if rng.random() < 0.1:
        return (steps.Encode("jpeg", int(rng.integers(80, 99)), halved), last)
    return (last,)


def _log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return float(low * (high / low) ** rng.uniform())
