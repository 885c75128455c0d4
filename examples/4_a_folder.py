"""
A folder of images
==================

Denoise many files with one command, and resume after an interruption.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

from nlnet.images import ImageFile, read_image, write_image
from nlnet.noise import add_noise, store

# %%
# A folder with three noisy parts of the photo, each with a different noise level, one of them in a
# subfolder; and a file that is not an image at all.
photo = read_image(Path(sys.argv[0]).with_name("cat.png")).pixels
folder = Path(tempfile.mkdtemp())
corners = {"eye.png": (60, 100), "nose.jpg": (180, 200), "ears/ear.tif": (0, 280)}
for number, (name, (top, left)) in enumerate(corners.items()):
    part = photo[top : top + 100, left : left + 150]
    path = folder / "photos" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    noisy = store(add_noise(part, sigma=10 + 15 * number, seed=number), part.dtype, 255)
    write_image(path, ImageFile(noisy))
(folder / "photos" / "broken.png").write_text("this is not an image")


def nlnet(*arguments: str) -> None:
    """Run a command in the folder, as in a shell, and print what it says."""
    command = [sys.executable, "-m", "nlnet", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    print(done.stdout + done.stderr + f"exit code {done.returncode}")


# %%
# The noise of every file is estimated. A file that cannot be read is reported, and the others are
# still processed; the exit code is then 1.
nlnet("denoise", "photos/", "-o", "cleaned/", "--recursive")

# %%
# Run again, it skips the files that are already done, and only tries the broken one again. A file
# gets its final name only when it is completely written, so this is safe even after a crash.
nlnet("denoise", "photos/", "-o", "cleaned/", "--recursive")

# %%
# Names, formats and folders are the same as in the input.
figure, panels = plt.subplots(2, 3, figsize=(11, 5.2), layout="constrained")
for column, name in enumerate(corners):
    for row, place in enumerate(("photos", "cleaned")):
        panel = panels[row, column]
        panel.imshow(read_image(folder / place / name).pixels, interpolation="nearest")
        panel.set_title(f"{place}/{name}", fontsize=10)
        panel.set_axis_off()
plt.show()
