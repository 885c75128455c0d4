"""What PNG and JPEG files say in their chunks and segments, and on the way to other formats."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
from pictures import DenoiseFile, noisy_pixels
from PIL import IptcImagePlugin

from nlnet import images
from nlnet.images import ImageFile, read_image, write_image
from nlnet.images.metadata import Metadata

# PNG


def png_chunks(data: bytes) -> list[tuple[bytes, bytes]]:
    chunks, place = [], 8
    while place < len(data):
        size, kind = struct.unpack_from(">I4s", data, place)
        chunks.append((kind, data[place + 8 : place + 8 + size]))
        place += size + 12
    return chunks


def with_chunks(data: bytes, added: list[tuple[bytes, bytes]]) -> bytes:
    first, *others = png_chunks(data)
    result = data[:8]
    for kind, body in [first, *added, *others]:
        check = zlib.crc32(kind + body)
        result += struct.pack(">I", len(body)) + kind + body + struct.pack(">I", check)
    return result


def png(pixels: np.ndarray, *added: tuple[bytes, bytes]) -> bytes:
    return with_chunks(images.encode(ImageFile(pixels), ".png"), list(added))


COLOR = {
    b"gAMA": struct.pack(">I", 100_000),
    b"cHRM": struct.pack(">8I", 31270, 32900, 64000, 33000, 30000, 60000, 15000, 6000),
    b"cICP": bytes([9, 16, 0, 1]),
    b"sRGB": b"\0",
    b"pHYs": struct.pack(">IIB", 4000, 5000, 1),
    b"tEXt": b"Title\0a cat",
    b"tIME": bytes([7, 228, 1, 2, 3, 4, 5]),
    b"ruSt": b"private, and safe to copy",
}


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("kind", COLOR)
def test_chunks_of_png_are_kept(
    denoise_file: DenoiseFile, tmp_path: Path, kind: bytes, dtype: type
) -> None:
    source, target = tmp_path / "in.png", tmp_path / "out.png"
    source.write_bytes(png(noisy_pixels(dtype, 3), (kind, COLOR[kind])))
    denoise_file(source, target)
    before, after = png_chunks(source.read_bytes()), png_chunks(target.read_bytes())
    kinds = [name for name, _ in after if name != b"IDAT"]
    assert kinds == [b"IHDR", kind, b"IEND"]
    assert after[1] == before[1] == (kind, COLOR[kind])


def test_a_png_without_them_stays_without() -> None:
    data = images.encode(images.decode(png(noisy_pixels(np.uint8)), "a.png"), ".png")
    assert {kind for kind, _ in png_chunks(data)} == {b"IHDR", b"IDAT", b"IEND"}


def test_chunks_of_the_old_pixels_are_left_out_and_named() -> None:
    given = png(noisy_pixels(np.uint8), (b"prVT", b"unsafe to copy"), (b"sBIT", b"\5"))
    image = images.decode(given, "a.png")
    assert image.notes == ("left out, as made for the noisy pixels: PNG prVT",)
    assert dict(png_chunks(images.encode(image, ".png")))[b"sBIT"] == b"\5"
    deep = images.WritingOptions(depth="uint16")
    assert b"sBIT" not in dict(png_chunks(images.encode(image, ".png", deep)))


def test_what_other_formats_have_no_place_for_is_named() -> None:
    names = (b"gAMA", b"cICP", b"tEXt", b"tIME")
    image = images.decode(png(noisy_pixels(np.uint8), *((n, COLOR[n]) for n in names)), "a.png")
    assert images.losses("a.png", image) == ()
    expected = "JPEG has no place for gAMA, cICP, text: left out"
    assert images.losses("a.jpg", image) == (expected,)
    plain = images.decode(
        png(noisy_pixels(np.uint8), (b"sRGB", b"\0"), (b"gAMA", b"\0\0\xb1\x8f")), "a.png"
    )
    assert images.losses("a.jpg", plain) == ()  # without a profile, others take it for sRGB


def exif_with(resolution: float) -> PIL.Image.Exif:
    exif = PIL.Image.Exif()
    exif[0x011A] = exif[0x011B] = resolution
    exif[0x0128], exif[0x010F] = 2, "Maker"
    return exif


def test_the_resolution_of_png_is_its_own() -> None:
    stream = io.BytesIO()
    photo = PIL.Image.fromarray(noisy_pixels(np.uint8))
    photo.save(stream, "png", exif=exif_with(72.0), dpi=(300, 300))
    image = images.decode(stream.getvalue(), "a.png")
    for suffix in (".png", ".jpg", ".tif"):
        with PIL.Image.open(io.BytesIO(images.encode(image, suffix))) as other:
            assert other.info["dpi"] == pytest.approx((300, 300), rel=1e-4)
    stream = io.BytesIO()
    photo.save(stream, "png", exif=exif_with(72.0))
    again = images.encode(images.decode(stream.getvalue(), "a.png"), ".png")
    assert b"pHYs" not in dict(png_chunks(again))


# JPEG


def segments(data: bytes) -> list[tuple[int, bytes]]:
    found, place = [], 2
    while data[place + 1] != 0xDA:
        marker, size = struct.unpack_from(">BH", data, place + 1)
        found.append((marker, data[place + 4 : place + 2 + size]))
        place += 2 + size
    return found


def jpeg(*added: tuple[int, bytes], channels: int = 3) -> bytes:
    """A photo of our own, with nothing but its pixels and the segments that are given."""
    plain = images.encode(ImageFile(noisy_pixels(np.uint8, channels)), ".jpg")
    pixels = plain[2 + 18 :]  # after the first segment
    body = b"".join(
        bytes([0xFF, marker]) + struct.pack(">H", len(data) + 2) + data for marker, data in added
    )
    return plain[:2] + body + pixels


def exif_of_a_camera(thumbnail: bytes = b"", after: bytes = b"") -> bytes:
    """EXIF in an order no library would write: its maker's notes point into it by place."""
    notes = b"MAKER\0" + struct.pack(">I", 140) + bytes(20) + b"pointed at"
    head = b"MM\0*" + struct.pack(">I", 8)
    second = 200
    ifd0 = struct.pack(">H", 2)
    ifd0 += struct.pack(">HHI4s", 0x010F, 2, 4, b"Abc\0")
    ifd0 += struct.pack(">HHII", 0x8769, 4, 1, 60) + struct.pack(">I", second)
    inner = struct.pack(">H", 1) + struct.pack(">HHII", 0x927C, 7, len(notes), 100) + bytes(4)
    data = (head + ifd0).ljust(60, b"\0") + inner
    data = (data.ljust(100, b"\0") + notes).ljust(second, b"\0")
    ifd1 = struct.pack(">H", 2) + struct.pack(">HHII", 0x0201, 4, 1, second + 30)
    ifd1 += struct.pack(">HHII", 0x0202, 4, 1, len(thumbnail)) + bytes(4)
    return data + ifd1 + thumbnail + after


@pytest.mark.parametrize("target", [".jpg", ".png", ".webp"])
@pytest.mark.parametrize("after", [b"", b"and more of the maker's"])
def test_exif_passes_as_the_bytes_it_was_but_for_the_thumbnail(target: str, after: bytes) -> None:
    small = io.BytesIO()
    PIL.Image.new("RGB", (16, 12)).save(small, "jpeg")
    whole = exif_of_a_camera(small.getvalue(), after)
    image = images.decode(jpeg((0xE1, b"Exif\0\0" + whole)), "a.jpg")
    assert image.notes == ("its embedded thumbnail is left out, as it shows the noise",)
    back = images.decode(images.encode(image, target), f"a{target}")
    assert back.metadata is not None
    assert back.metadata.exif is not None
    assert back.notes == ()
    kept, place = back.metadata.exif, 200 + 30
    pointer = struct.pack(">I", 200)
    link = whole.index(pointer)
    expected = whole[:link] + bytes(4) + whole[link + 4 : place]
    if after:
        expected += bytes(len(small.getvalue())) + after
    assert kept == expected
    assert not images.losses(f"a{target}", image)


@pytest.mark.parametrize("origin", [".jpg", ".png", ".webp", ".tif"])
def test_thumbnails_in_xmp_are_left_out(origin: str) -> None:
    whole = b"<x:xmpmeta><xmp:Thumbnails>/9j/4A</xmp:Thumbnails><dc:title/></x:xmpmeta>"
    metadata = Metadata("", xmp=whole)
    given = images.encode(ImageFile(noisy_pixels(np.uint8, 3), metadata=metadata), origin)
    assert b"/9j/4A" in given
    image = images.decode(given, f"a{origin}")
    assert image.notes == ("its embedded thumbnail is left out, as it shows the noise",)
    for target in (origin, ".png"):
        data = images.encode(image, target)
        assert b"<x:xmpmeta><dc:title/></x:xmpmeta>" in data
        assert b"/9j/4A" not in data


def test_nothing_is_invented() -> None:
    image = images.decode(jpeg((0xE1, b"Exif\0\0" + exif_of_a_camera())), "a.jpg")
    data = images.encode(image, ".jpg")
    (first, jfif), (second, exif), *rest = segments(data)
    assert (first, jfif) == (0xE0, b"JFIF\0\1\1\0\0\1\0\1\0\0")
    assert second == 0xE1
    assert image.metadata is not None
    assert exif == b"Exif\0\0" + (image.metadata.exif or b"")
    assert not any(0xE0 <= marker < 0xF0 for marker, _ in rest)
    with PIL.Image.open(io.BytesIO(data)) as photo:
        assert set(photo.getexif()) == {0x010F, 0x8769}
        assert set(photo.getexif().get_ifd(0x8769)) == {0x927C}  # no color space "Uncalibrated"


@pytest.mark.parametrize("unit", [(1, 240, 120), (2, 118, 59)])
def test_the_resolution_of_jpeg_is_kept(unit: tuple[int, int, int]) -> None:
    jfif = b"JFIF\0\1\2" + struct.pack(">BHHBB", *unit, 0, 0)
    image = images.decode(jpeg((0xE0, jfif)), "a.jpg")
    assert segments(images.encode(image, ".jpg"))[0][1][7:12] == struct.pack(">BHH", *unit)


def test_comments_and_long_xmp_are_kept_in_jpeg_and_named_elsewhere() -> None:
    more = b"http://ns.adobe.com/xmp/extension/\0" + bytes(40) + b"<x/>"
    image = images.decode(jpeg((0xFE, b"a comment"), (0xE1, more)), "a.jpg")
    kept = segments(images.encode(image, ".jpg"))
    assert (0xFE, b"a comment") in kept
    assert (0xE1, more) in kept
    expected = "PNG has no place for comment, extended XMP: left out"
    assert images.losses("a.png", image) == (expected,)


def test_other_segments_are_named() -> None:
    credentials = (0xEB, b"JP\0\1jumbc2pa")
    image = images.decode(jpeg((0xE5, b"private"), credentials, (0xEC, b"Ducky\0")), "a.jpg")
    assert image.notes == (
        "left out, as made for the noisy pixels: JPEG APP5, content credentials (APP11)",
    )


def test_the_second_image_of_mpo_is_named(tmp_path: Path) -> None:
    photo = PIL.Image.fromarray(noisy_pixels(np.uint8, 3))
    photo.save(tmp_path / "a.mpo", save_all=True, append_images=[photo])
    (note,) = read_image(tmp_path / "a.mpo").notes
    assert note.startswith("its second image is left out (MPO")


def test_the_video_of_a_motion_photo_is_named() -> None:
    xmp = b'http://ns.adobe.com/xap/1.0/\0<x:xmpmeta GCamera:MotionPhoto="1"/>'
    image = images.decode(jpeg((0xE1, xmp)), "a.jpg")
    assert image.notes == ("its video (motion photo) is left out",)


@pytest.mark.parametrize("target", [".jpg", ".png", ".tif", ".webp"])
@pytest.mark.parametrize("origin", [".jpg", ".png", ".tif", ".webp"])
def test_long_profiles_are_kept(tmp_path: Path, origin: str, target: str) -> None:
    profile = bytes(16) + b"RGB XYZ " + np.random.default_rng(0).bytes(150_000)
    photo = PIL.Image.fromarray(noisy_pixels(np.uint8, 3))
    photo.save(tmp_path / f"a{origin}", icc_profile=profile)
    write_image(tmp_path / f"b{target}", read_image(tmp_path / f"a{origin}"))
    with PIL.Image.open(tmp_path / f"b{target}") as other:
        assert other.info["icc_profile"] == profile


def test_a_gray_profile_does_not_go_with_colors() -> None:
    profile = bytes(16) + b"GRAYXYZ " + bytes(200)
    stream = io.BytesIO()
    PIL.Image.fromarray(noisy_pixels(np.uint8)).save(stream, "png", icc_profile=profile)
    image = images.decode(stream.getvalue(), "a.png")
    assert "color profile" in images.losses("a.webp", image)[1]
    back = images.decode(images.encode(image, ".webp"), "a.webp")
    assert back.metadata is not None
    assert back.metadata.icc is None
    assert images.losses("a.tif", image) == ()


# IPTC

IPTC = b"\x1c\x02\x78\0\x05a cat\x1c\x02\x19\0\x03pet"


def resource(number: int, data: bytes) -> bytes:
    head = b"8BIM" + struct.pack(">HHI", number, 0, len(data))
    return head + data + b"\0" * (len(data) % 2)


@pytest.mark.parametrize("last", [".jpg", ".tif", ".png"])
@pytest.mark.parametrize("middle", [".jpg", ".tif", ".png"])
def test_iptc_is_kept_whole_in_all_combinations(middle: str, last: str) -> None:
    paths = resource(2000, b"a clipping path") + resource(0x0404, IPTC)
    small = resource(0x040C, b"a small picture")
    given = jpeg((0xED, b"Photoshop 3.0\0" + small + paths))
    image = images.decode(given, "a.jpg")
    assert image.notes == ("its embedded thumbnail is left out, as it shows the noise",)
    image = images.decode(images.encode(image, middle), f"a{middle}")
    data = images.encode(image, last)
    back = images.decode(data, f"a{last}")
    assert back.metadata is not None
    assert back.metadata.iptc == IPTC
    assert back.metadata.resources == paths
    if last != ".png":  # Pillow does not look for it there
        with PIL.Image.open(io.BytesIO(data)) as photo:
            found = IptcImagePlugin.getiptcinfo(photo)
        assert found == {(2, 120): b"a cat", (2, 25): b"pet"}
    else:
        with PIL.Image.open(io.BytesIO(data)) as photo:
            text = photo.text["Raw profile type iptc"].split()
        assert text[:2] == ["iptc", str(len(paths))]
        assert bytes.fromhex("".join(text[2:])) == paths
    assert images.losses("a.webp", image)[0].startswith("WebP has no place for IPTC")
