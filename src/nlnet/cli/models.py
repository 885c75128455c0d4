"""List the models that come with nlnet.

List the models that come with nlnet: the noise they are trained for, their size, their mean PSNR
in dB on the 68 test images of BSD68 at sigma 15, 25 and 50, the time they take beside the fast
model for such images, and how they were trained. --quality chooses among them if none is named.

Examples
--------
  nlnet models
  nlnet denoise noisy.png -o clean.png --quality best
  nlnet denoise noisy.png -o clean.png --sigma 25 --model gray-7x7
"""

import argparse

from nlnet.cli.arguments import Argument
from nlnet.cli.messages import table
from nlnet.defaults import FAMILIES

ARGUMENTS: tuple[Argument, ...] = ()

_SIGMAS = (15, 25, 50)


def run(arguments: argparse.Namespace) -> None:
    """Print the table of models, and which of them are chosen."""
    from nlnet.model.figures import psnr_by_sigma, relative_time
    from nlnet.model.loading import load_model, shipped_models

    psnrs = [f"PSNR {sigma}" for sigma in _SIGMAS]
    rows: list[tuple[str, ...]] = [("name", "sigma", "parameters", *psnrs, "time", "trained")]
    for name in shipped_models():
        model = load_model(name)
        psnr, time = psnr_by_sigma(model), relative_time(name)
        figures = [f"{psnr[sigma]:.2f}" if sigma in psnr else "-" for sigma in _SIGMAS]
        taken = "-" if time is None else f"{time:.1f}x"
        recipe = str(model.provenance.get("recipe", "-"))
        rows.append((name, model.noise, f"{model.parameter_count:,}", *figures, taken, recipe))
    print("\n".join(table(rows, left=(0, len(rows[0]) - 1))))
    for quality, families in FAMILIES.items():
        print(f"--quality {quality}: {families[1]} for gray images, {families[3]} for color")
