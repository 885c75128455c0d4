"""Uploads gone wrong: image files and forms, damaged at random but repeatably."""

from __future__ import annotations

import dataclasses
import io
import struct
import zlib

import numpy as np
from pictures import random_image
from PIL import Image

from nlnet.images import ImageFile, encode

Random = np.random.Generator
SIGNATURE_BYTES = 16
INTERESTING = (0, 1, 0x7F, 0x80, 0xFE, 0xFF)
BOUNDARY = b"nlnet-boundary"
FIELD_VALUES = (b"auto", b"", b"0", b"25", b"1e-320", b"nan", b"-inf", b"\xff\xfe", b"9" * 400)
SOUND_VALUES = {
    b"noise": (b"auto", b"white"),
    b"strength": (b"0.5", b"0.25,1"),
    b"data_range": (b"auto", b"4095", b"1e-30", b"1e30"),
    b"format": (b"same", b"png", b"jpeg", b"tiff", b"webp", b"npy"),
    b"quality": (b"1", b"100"),
    b"preview": (b"yes", b"no"),
    b"job": (b"12345678",),
}


def sound_files() -> list[bytes]:
    """Small images of many kinds: what there is to damage."""
    shapes = [((16, 18), np.uint8), ((16, 18), np.uint16), ((16, 18, 3), np.uint8)]
    files = []
    for shape, dtype in shapes:
        pixels = random_image(shape, dtype)
        files += [encode(ImageFile(pixels, pixels.reshape(16, 18, -1)[..., 0]), ".png")]
        files += [encode(ImageFile(pixels), ".tif")]
    files.append(encode(ImageFile(random_image((16, 18, 3))), ".jpg"))
    photo = Image.fromarray(random_image((40, 48, 3)))
    variants: list[tuple[str, dict[str, object]]] = [
        ("JPEG", {"progressive": True, "exif": photo.getexif().tobytes()}),
        ("PNG", {"icc_profile": bytes(300)}),
        ("TIFF", {"compression": "raw"}),
        ("TIFF", {"compression": "tiff_lzw"}),
        ("TIFF", {"compression": "jpeg"}),
        ("GIF", {}),
        ("BMP", {}),
        ("WEBP", {}),
    ]
    for kind, options in variants:
        stream = io.BytesIO()
        photo.save(stream, kind, **options)
        files.append(stream.getvalue())
    return files


def damage(data: bytes, others: list[bytes], random: Random) -> bytes:
    """Damage a file in one to three ways."""
    ways = (_flip, _set, _cut, _insert, _remove, _repeat, _blank, _splice, _resize, _restart)
    for _ in range(random.choice([1, 1, 2, 3])):
        way = ways[random.integers(len(ways))]
        data = way(bytearray(data), others, random)
    return data


def _place(data: bytearray, random: Random) -> int:
    # Half of the time near the start, where formats keep what matters most.
    end = len(data) if random.random() < 0.5 else min(len(data), 128)
    return int(random.integers(max(end, 1)))


def _flip(data: bytearray, others: list[bytes], random: Random) -> bytes:
    for _ in range(random.integers(1, 9)):
        if data:
            data[_place(data, random)] ^= 1 << random.integers(8)
    return bytes(data)


def _set(data: bytearray, others: list[bytes], random: Random) -> bytes:
    start = _place(data, random)
    length = int(random.choice([1, 2, 4, 8]))
    data[start : start + length] = bytes([int(random.choice(INTERESTING))]) * length
    return bytes(data)


def _cut(data: bytearray, others: list[bytes], random: Random) -> bytes:
    return bytes(data[: _place(data, random)])


def _insert(data: bytearray, others: list[bytes], random: Random) -> bytes:
    start = _place(data, random)
    return bytes(data[:start]) + random.bytes(int(random.integers(1, 64))) + bytes(data[start:])


def _remove(data: bytearray, others: list[bytes], random: Random) -> bytes:
    start = _place(data, random)
    return bytes(data[:start] + data[start + int(random.integers(1, 64)) :])


def _repeat(data: bytearray, others: list[bytes], random: Random) -> bytes:
    start, length = _place(data, random), int(random.integers(1, 200))
    return bytes(data[: start + length]) + bytes(data[start:])


def _blank(data: bytearray, others: list[bytes], random: Random) -> bytes:
    start, length = _place(data, random), int(random.integers(1, 200))
    return (
        bytes(data[:start])
        + bytes(len(data[start : start + length]))
        + bytes(data[start + length :])
    )


def _splice(data: bytearray, others: list[bytes], random: Random) -> bytes:
    other = others[random.integers(len(others))]
    return bytes(data[: _place(data, random)]) + other[int(random.integers(len(other))) :]


def _restart(data: bytearray, others: list[bytes], random: Random) -> bytes:
    """Put the start of another format before the rest."""
    other = others[random.integers(len(others))]
    return other[:SIGNATURE_BYTES] + bytes(data[SIGNATURE_BYTES:])


def _resize(data: bytearray, others: list[bytes], random: Random) -> bytes:
    """Lie about a PNG's size, depth or kind, and keep its check sum right."""
    if not data.startswith(b"\x89PNG") or len(data) < 33:
        return bytes(data)
    width, height = (int(2 ** random.uniform(0, 31.9)) for _ in range(2))
    depth, kind = int(random.choice([1, 2, 4, 8, 16])), int(random.choice([0, 2, 3, 4, 6]))
    header = b"IHDR" + struct.pack(">IIBB", width, height, depth, kind) + bytes(data[26:29])
    return bytes(data[:12]) + header + struct.pack(">I", zlib.crc32(header)) + bytes(data[33:])


@dataclasses.dataclass(frozen=True)
class Sent:
    """A request: its content type and its body."""

    content_type: bytes
    body: bytes


def request(data: bytes, others: list[bytes], random: Random) -> Sent:
    """Put a file into a form, which one time in five is damaged too."""
    parts = [_part(b'name="file"; filename="a.png"', data)]
    for name in (b"sigma", b"model"):
        if random.random() < 0.2:
            value = FIELD_VALUES[random.integers(len(FIELD_VALUES))]
            parts.append(_part(b'name="' + name + b'"', value))
    for name, values in SOUND_VALUES.items():
        if random.random() < 0.1:
            pool = values if random.random() < 0.7 else FIELD_VALUES
            parts.append(_part(b'name="' + name + b'"', pool[random.integers(len(pool))]))
    body = b"".join(parts) + b"--" + BOUNDARY + b"--\r\n"
    content_type = b"multipart/form-data; boundary=" + BOUNDARY
    if random.random() < 0.2:
        body = damage(body, others, random)
    if random.random() < 0.02:
        content_type = content_type[: random.integers(1, len(content_type))]
    return Sent(content_type, body)


def _part(disposition: bytes, content: bytes) -> bytes:
    head = b"--" + BOUNDARY + b"\r\nContent-Disposition: form-data; " + disposition
    return head + b"\r\n\r\n" + content + b"\r\n"
