"""Add noise to a photo, remove it again, and write the three images side by side."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

import numpy as np

import nlnet
from nlnet.evaluation.metrics import psnr
from nlnet.images import ImageFile, read_image, write_image
from nlnet.noise import add_noise

SIGMA = 25
SEED = 0
WARM_CALLS = 5
PHOTO = Path(__file__).with_name("cat.png")
OUTPUT = Path("demo.png")


def main() -> None:
    """Run the demo."""
    clean = read_image(PHOTO).pixels
    noisy = add_noise(clean, SIGMA, SEED).astype(np.float32)
    model = nlnet.load_model("color-5x5-s25")
    print(f"{PHOTO.name}, {clean.shape[1]} x {clean.shape[0]} pixels, noise of sigma {SIGMA}")

    denoised, first = timed_denoise(noisy, model)
    warm = statistics.median(timed_denoise(noisy, model)[1] for _ in range(WARM_CALLS))

    print(f"first call   {first:6.2f} s")
    print(f"warm call    {warm:6.2f} s  (median of {WARM_CALLS})")
    print(f"PSNR before  {psnr(clean, np.clip(noisy, 0, 255)):6.2f} dB")
    print(f"PSNR after   {psnr(clean, denoised):6.2f} dB")

    side_by_side = np.concatenate([noisy, denoised, clean], axis=1)
    write_image(OUTPUT, ImageFile(np.rint(np.clip(side_by_side, 0, 255)).astype(np.uint8)))
    print(f"{OUTPUT}: noisy, denoised, clean")


def timed_denoise(noisy: np.ndarray, model: nlnet.Model | nlnet.Family) -> tuple[np.ndarray, float]:
    """Denoise and return the result with the seconds it took."""
    start = time.perf_counter()
    denoised = nlnet.denoise(noisy, SIGMA, model=model, data_range=255)
    return denoised, time.perf_counter() - start


if __name__ == "__main__":
    main()
