"""Files that other libraries read, each compared with what that library says itself."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
from messages import refused
from pictures import DenoiseFile, noisy_pixels

import nlnet
from nlnet import images
from nlnet.errors import FileError, InputError
from nlnet.images import ImageFile, WritingOptions, read_image, read_pages, write_image, write_pages

DATA = Path(__file__).parent / "data"


@pytest.mark.parametrize(
    ("name", "module", "extra"),
    [("a.heic", "pi_heif", "heic"), ("a.jxl", "pyjpegxl", "jxl"), ("a.fits", "astropy", "fits")],
)
def test_a_missing_library_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, module: str, extra: str
) -> None:
    starts = {"heic": b"\0\0\0\x18ftypheic", "jxl": b"\xff\x0a", "fits": b"SIMPLE  ="}
    (tmp_path / name).write_bytes(starts[extra])
    for each in (module, f"{module}.io.fits"):
        monkeypatch.setitem(sys.modules, each, None)
    with refused(FileError, name, module.replace("_", "-"), f"pip install 'nlnet[{extra}]'"):
        read_image(tmp_path / name)


# HEIC: the files were written by pillow-heif


def heic(name: str) -> tuple[ImageFile, np.ndarray]:
    """What nlnet and pi-heif read."""
    pi_heif = pytest.importorskip("pi_heif")
    file = pi_heif.open_heif(DATA / name, convert_hdr_to_8bit=False)
    return read_image(DATA / name), np.array(file)


@pytest.mark.parametrize(
    ("name", "dtype", "shape"),
    [
        ("turned.heic", np.uint8, (64, 48, 3)),
        ("ten_bits.heic", np.uint16, (48, 64, 3)),
        ("alpha.heic", np.uint8, (48, 64, 4)),
    ],
)
def test_heic(name: str, dtype: type, shape: tuple[int, ...]) -> None:
    image, expected = heic(name)
    assert (image.pixels.dtype, image.bands.shape) == (dtype, shape)
    np.testing.assert_array_equal(image.bands, expected)


@pytest.mark.parametrize("suffix", [".avif", ".jpg", ".tif"])
def test_heic_is_written_as_something_else(
    denoise_file: DenoiseFile, tmp_path: Path, suffix: str
) -> None:
    image, _ = heic("turned.heic")
    assert image.metadata is not None
    assert image.metadata.orientation == 1  # the pixels are upright already
    denoise_file(DATA / "turned.heic", tmp_path / f"out{suffix}")
    back = read_image(tmp_path / f"out{suffix}")
    assert back.pixels.shape == (64, 48, 3)
    with PIL.Image.open(tmp_path / f"out{suffix}") as photo:
        assert photo.getexif()[0x010F] == "Maker"
        assert photo.getexif().get(0x0112, 1) == 1
    with refused(InputError, "HEIC", "only read", "write PNG"):
        write_image(tmp_path / "out.heic", back)


def test_avif_says_that_it_grows(tmp_path: Path) -> None:
    image, _ = heic("turned.heic")
    assert any("several times as large" in note for note in images.losses("a.avif", image))
    smaller = WritingOptions(avif_quality=60)
    assert images.losses("a.avif", image, smaller) == ()
    write_image(tmp_path / "lossless.avif", image)
    write_image(tmp_path / "small.avif", image, smaller)
    sizes = [(tmp_path / name).stat().st_size for name in ("lossless.avif", "small.avif")]
    assert sizes[1] < sizes[0] / 2
    assert (
        np.abs(read_image(tmp_path / "small.avif").pixels - image.pixels.astype(float)).mean() < 9
    )


# JPEG XL


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
def test_jpeg_xl(tmp_path: Path, dtype: type, channels: int) -> None:
    pyjpegxl = pytest.importorskip("pyjpegxl")
    bands = noisy_pixels(dtype, channels).reshape(24, 32, -1)
    write_image(tmp_path / "a.jxl", ImageFile.of_bands(bands))
    np.testing.assert_array_equal(read_image(tmp_path / "a.jxl").bands, bands)
    _, others = pyjpegxl.decode_to_numpy((tmp_path / "a.jxl").read_bytes())
    np.testing.assert_array_equal(others, bands)


def test_jpeg_xl_is_upright_and_keeps_exif(tmp_path: Path) -> None:
    pytest.importorskip("pyjpegxl")
    exif = PIL.Image.Exif()
    exif[0x0112], exif[0x010F] = 6, "Maker"
    stream = io.BytesIO()
    PIL.Image.fromarray(noisy_pixels(np.uint8, 3)).save(stream, "png", exif=exif)
    image = images.decode(stream.getvalue(), "a.png")
    write_image(tmp_path / "a.jxl", image)
    back = read_image(tmp_path / "a.jxl")
    np.testing.assert_array_equal(back.pixels, image.upright(image.pixels))
    write_image(tmp_path / "b.jpg", back)
    with PIL.Image.open(tmp_path / "b.jpg") as other:
        assert other.getexif()[0x010F] == "Maker"
        assert other.getexif().get(0x0112, 1) == 1


# FITS


@pytest.fixture
def fits() -> Any:
    return pytest.importorskip("astropy.io.fits")


@pytest.mark.parametrize(
    "dtype", ["uint8", "int16", "uint16", "int32", "uint32", "float32", "float64"]
)
def test_fits(fits: Any, denoise_file: DenoiseFile, tmp_path: Path, dtype: str) -> None:
    pixels = (noisy_pixels(np.float64) * 200).astype(dtype)
    other = np.arange(6, dtype=np.float32)
    header = fits.Header({"OBJECT": "M 31", "EXPTIME": 30.0})
    source, target = tmp_path / "in.fits", tmp_path / "out.fits"
    hdus = [fits.PrimaryHDU(pixels, header), fits.ImageHDU(other, name="OTHER")]
    fits.HDUList(hdus).writeto(source)
    image = read_image(source)
    assert image.pixels.dtype == dtype
    np.testing.assert_array_equal(image.pixels, pixels)
    denoise_file(source, target)
    with fits.open(target) as after:
        after.verify("exception")
        assert after[0].data.dtype.name == dtype
        assert after[0].data.std() < pixels.std()
        assert (after[0].header["OBJECT"], after[0].header["EXPTIME"]) == ("M 31", 30.0)
        assert "Denoised with nlnet" in str(after[0].header["HISTORY"])
        np.testing.assert_array_equal(after["OTHER"].data, other)
    if dtype == "uint16":
        assert "the FITS header" in images.losses("a.png", image)[0]


def test_fits_that_is_scaled_and_has_blanks(fits: Any, tmp_path: Path) -> None:
    stored = (1000 * noisy_pixels(np.float32)).astype(np.int16)
    stored[3, 4] = -32768
    hdu = fits.ImageHDU(stored)
    hdu.header["BSCALE"], hdu.header["BZERO"], hdu.header["BLANK"] = 1e-3, 0.5, -32768
    fits.HDUList([fits.PrimaryHDU(), hdu]).writeto(tmp_path / "a.fits")
    image = read_image(tmp_path / "a.fits")
    assert np.argwhere(np.isnan(image.pixels)).tolist() == [[3, 4]]
    assert image.pixels[0, 0] == pytest.approx(0.5 + 1e-3 * stored[0, 0])
    np.testing.assert_allclose(image.pixels, fits.getdata(tmp_path / "a.fits", 1))
    write_image(tmp_path / "b.fits", image)
    np.testing.assert_array_equal(fits.getdata(tmp_path / "b.fits", 1), image.pixels)
    with fits.open(tmp_path / "b.fits") as after:
        assert not {"BZERO", "BSCALE", "BLANK"} & set(after[1].header)


def test_nan_in_fits_stays(fits: Any, denoise_file: DenoiseFile, tmp_path: Path) -> None:
    pixels = noisy_pixels(np.float32)
    pixels[3, 4] = np.nan
    fits.PrimaryHDU(pixels).writeto(tmp_path / "a.fits")
    denoise_file(tmp_path / "a.fits", tmp_path / "b.fits")
    np.testing.assert_array_equal(np.isnan(fits.getdata(tmp_path / "b.fits")), np.isnan(pixels))


def test_cubes_tables_and_damage(fits: Any, tmp_path: Path) -> None:
    cube = np.stack([noisy_pixels(np.float32, seed=seed) for seed in range(6)]).reshape(
        2, 3, 24, 32
    )
    fits.CompImageHDU(cube.reshape(6, 24, 32)).writeto(tmp_path / "packed.fits")
    assert len(read_pages(tmp_path / "packed.fits")) == 6
    fits.PrimaryHDU(cube).writeto(tmp_path / "a.fits")
    pages = read_pages(tmp_path / "a.fits")
    np.testing.assert_array_equal([page.pixels for page in pages], cube.reshape(6, 24, 32))
    write_pages(tmp_path / "b.fits", pages)
    np.testing.assert_array_equal(fits.getdata(tmp_path / "b.fits"), cube)
    write_pages(tmp_path / "new.fits", [ImageFile(page.pixels) for page in pages])
    assert fits.getdata(tmp_path / "new.fits").shape == (6, 24, 32)
    fits.HDUList([fits.PrimaryHDU()]).writeto(tmp_path / "empty.fits")
    with refused(InputError, "without an image"):
        read_image(tmp_path / "empty.fits")
    (tmp_path / "c.fits").write_bytes((tmp_path / "a.fits").read_bytes()[:5000])
    with refused(FileError, "damaged or incomplete FITS"):
        list(read_pages(tmp_path / "c.fits"))


# npz


def test_npz_keeps_the_name_of_its_array(denoise_file: DenoiseFile, tmp_path: Path) -> None:
    stack = np.stack([noisy_pixels(np.uint16, seed=seed) for seed in range(4)])
    np.savez_compressed(tmp_path / "a.npz", cells=stack.reshape(2, 2, 24, 32))
    denoise_file(tmp_path / "a.npz", tmp_path / "b.npz")
    with np.load(tmp_path / "b.npz") as archive:
        assert archive.files == ["cells"]
        assert (archive["cells"].shape, archive["cells"].dtype) == ((2, 2, 24, 32), np.uint16)
    write_image(tmp_path / "c.npz", ImageFile(stack[0]))
    np.testing.assert_array_equal(np.load(tmp_path / "c.npz")["arr_0"], stack[0])
    np.savez(tmp_path / "two.npz", a=stack, b=stack)
    with refused(InputError, "2 arrays (a.npy, b.npy)", "one"):
        read_pages(tmp_path / "two.npz")
    with refused(InputError, "max-pixels"):
        read_pages(tmp_path / "a.npz", max_pixels=3 * 24 * 32)
    (tmp_path / "cut.npz").write_bytes((tmp_path / "a.npz").read_bytes()[:500])
    with refused(FileError, "damaged or incomplete npz"):
        read_pages(tmp_path / "cut.npz")


# Files that only other libraries read


@pytest.mark.parametrize(
    ("name", "start", "library"),
    [
        ("a.h5", b"\x89HDF\r\n\x1a\n", "h5py"),
        ("a.mrc", bytes(208) + b"MAP ", "mrcfile"),
        ("a.dcm", bytes(128) + b"DICM", "pydicom"),
        ("a.czi", b"ZISRAWFILE", "czifile"),
        ("a.nd2", b"\xda\xce\xbe\x0a", "nd2"),
        ("a.lif", b"\x70\0\0\0\1\2\3\4\x2a", "liffile"),
    ],
)
def test_libraries_for_other_formats_are_named(
    tmp_path: Path, name: str, start: bytes, library: str
) -> None:
    (tmp_path / name).write_bytes(start + bytes(300))
    with refused(FileError, f"import {library}, nlnet; ", f"nlnet.denoise_stack({library}.", name):
        read_image(tmp_path / name)


@pytest.mark.parametrize("library", ["h5py", "mrcfile", "pydicom", "czifile"])
def test_what_messages_say_works(tmp_path: Path, library: str) -> None:
    module = pytest.importorskip(library)
    stack = np.random.default_rng(0).normal(500, 30, (3, 24, 32)).astype(np.int16)
    path = tmp_path / f"a.{library}"
    write_for(library, module, path, stack)
    with pytest.raises(FileError) as caught:
        read_image(path)
    names: dict[str, Any] = {}
    exec(str(caught.value).partition("in Python: ")[2].removesuffix("."), names)
    np.testing.assert_array_equal(names["clean"], nlnet.denoise_stack(stack))


def write_for(library: str, module: Any, path: Path, stack: np.ndarray) -> None:
    """Write a stack of int16 as a file that the library reads."""
    if library == "h5py":
        with module.File(path, "w") as file:
            file["DATASET"] = stack
    elif library == "mrcfile":
        module.write(path, stack)
    elif library == "pydicom":
        meta = module.dataset.FileMetaDataset()
        meta.TransferSyntaxUID = module.uid.ExplicitVRLittleEndian
        meta.MediaStorageSOPClassUID = module.uid.CTImageStorage
        meta.MediaStorageSOPInstanceUID = module.uid.generate_uid()
        file = module.dataset.FileDataset(path, {}, file_meta=meta, preamble=bytes(128))
        file.NumberOfFrames, file.Rows, file.Columns = stack.shape
        file.BitsAllocated, file.BitsStored, file.HighBit = 16, 16, 15
        file.PixelRepresentation, file.SamplesPerPixel = 1, 1
        file.PhotometricInterpretation = "MONOCHROME2"
        file.PixelData = stack.tobytes()
        file.save_as(path, enforce_file_format=True)
    else:
        writer = pytest.importorskip("pylibCZIrw.czi")
        with writer.create_czi(str(path)) as file:
            for z, page in enumerate(stack.astype(np.uint16)):
                file.write(page[..., None], plane={"Z": z, "C": 0, "T": 0})
