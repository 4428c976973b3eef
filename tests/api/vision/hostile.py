"""Pictures as strangers send them: of rare kinds, and damaged, empty, huge or none at all."""

from __future__ import annotations

import io
import struct
import zlib
from functools import cache
from typing import Any

import numpy as np
from PIL import Image

RED = (255, 0, 0)
"""What every right picture shows in its first pixel, nearly."""


def saved(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def _noise() -> Image.Image:
    return Image.fromarray(np.random.RandomState(0).randint(0, 256, (64, 64, 3)).astype(np.uint8))


def _red(mode: str = "RGB", size: tuple[int, int] = (48, 32)) -> Image.Image:
    return Image.new("RGB", size, RED).convert(mode)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(
    width: int, height: int, data: bytes = b"", depth: int = 8, kind: int = 2, extra: bytes = b""
) -> bytes:
    """A PNG file, chunk by chunk: `data` are its rows, `kind` 2 is red, green and blue."""
    head = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0)
    rows = _chunk(b"IDAT", zlib.compress(data))
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", head) + extra + rows + _chunk(b"IEND", b"")


def clear_grey(value: int) -> bytes:
    """A chunk that makes one grey of 16 bits transparent."""
    return _chunk(b"tRNS", struct.pack(">H", value))


def _patched(data: bytes, at: int, new: bytes) -> bytes:
    return data[:at] + new + data[at + len(new) :]


@cache
def right() -> dict[str, bytes]:
    """Files of rare kinds, all of a red picture."""
    turned = Image.Exif()
    turned[0x0112] = 6
    palette = _red("P")
    deep = b"".join(b"\0" + struct.pack(">3H", 65535, 0, 0) * 16 for _ in range(16))
    clear = Image.new("RGBA", (48, 32), (*RED, 255))
    frames = [Image.new("RGB", (48, 32), colour) for colour in (RED, (0, 0, 255), (0, 255, 0))]
    return {
        "turned by EXIF": saved(_red(), "JPEG", exif=turned, quality=95),
        "four inks, JPEG": saved(_red("CMYK"), "JPEG", quality=95),
        "four inks, TIFF": saved(_red("CMYK"), "TIFF"),
        "16 bits a channel": png(16, 16, deep, 16),
        "a palette": saved(palette),
        "a palette with alpha": saved(palette, transparency=bytes([255] * 256)),
        "alpha": saved(clear),
        "animated GIF": saved(frames[0], "GIF", save_all=True, append_images=frames[1:]),
        "animated PNG": saved(frames[0], save_all=True, append_images=frames[1:]),
        "animated WebP": saved(frames[0], "WEBP", save_all=True, append_images=frames[1:], lossless=True),
        "damaged EXIF": saved(_red(), "PNG", exif=b"Exif\0\0II*\0\xff\xff\xff\xff"),
        "rows from below": _patched(saved(_red(), "BMP"), 22, struct.pack("<i", -32)),
        "more data than pixels": png(1, 1, b"\0\xff\0\0" + bytes(1 << 24)),
    }


@cache
def wrong() -> dict[str, tuple[bytes, str]]:
    """Files that are refused, each with words of the message."""
    noise = _noise()
    jpeg, gif, tiff, whole = (saved(noise, kind) for kind in ("JPEG", "GIF", "TIFF", "PNG"))
    frame, size = gif.index(b"\x2c\0\0\0\0\x40\0\x40\0"), jpeg.index(b"\xff\xc0") + 5
    bomb = zlib.compress(bytes(1 << 27), 1)
    huge = r"pixels, more than 67108864; make it smaller"
    damaged = r"a damaged, cut off or empty {} file"
    return {
        "nothing": (b"", "it is empty"),
        "no rows": (png(5, 0), damaged.format("PNG")),
        "no columns": (png(0, 5), damaged.format("PNG")),
        "a JPEG without rows": (_patched(jpeg, size, struct.pack(">HH", 0, 64)), damaged.format("JPEG")),
        "half a PNG": (whole[: len(whole) // 2], "a damaged or cut off PNG file of 64 × 64"),
        "half a JPEG": (jpeg[: len(jpeg) // 2], "a damaged or cut off JPEG file of 64 × 64"),
        "half a GIF": (gif[: len(gif) // 2], "a damaged or cut off GIF file of 64 × 64"),
        "half a TIFF": (tiff[: len(tiff) // 2], "TIFF file"),
        "the start of a PNG": (whole[:20], damaged.format("PNG")),
        "the start of a WebP": (saved(noise, "WEBP")[:40], damaged.format("WebP")),
        "the start of an AVIF": (saved(noise, "AVIF")[:300], "a damaged or cut off AVIF file"),
        "a huge PNG": (png(60000, 60000), huge),
        "a huge JPEG": (_patched(jpeg, size, struct.pack(">HH", 65535, 65535)), huge),
        "a huge GIF": (_patched(gif, 6, struct.pack("<HH", 65535, 65535)), huge),
        "a huge frame": (_patched(gif, frame + 5, struct.pack("<HH", 65535, 65535)), huge),
        "a huge BMP": (_patched(saved(noise, "BMP"), 18, struct.pack("<ii", 2**31 - 1, 2**31 - 1)), huge),
        "a huge PPM": (b"P6 99999999 99999999 255\n" + b"a" * 10, huge),
        "a bomb of text": (
            png(1, 1, b"\0abc", extra=_chunk(b"zTXt", b"a\0\0" + bomb)),
            damaged.format("PNG"),
        ),
        "a bomb of colours": (
            png(1, 1, b"\0abc", extra=_chunk(b"iCCP", b"a\0\0" + bomb)),
            damaged.format("PNG"),
        ),
        "a drawing": (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "an SVG drawing; make a PNG"),
        "a drawing with a remark": (b"<!-- by hand -->\n<svg/>", "an SVG drawing; make a PNG"),
        "a drawing with a type": (b"<!DOCTYPE svg PUBLIC ''>\n<svg/>", "an SVG drawing; make a PNG"),
        "a packed drawing": (b"\x1f\x8b\x08" + bytes(20), "a compressed file"),
        "an icon": (saved(noise, "ICO"), "an icon; make a PNG"),
        "a document": (b"%PDF-1.7\n", "a PDF document"),
        "a phone's photo": (b"\0\0\0\x18ftypheic\0\0\0\0", "a HEIC image; make a JPEG"),
        "a text": (b"This is no picture.", "no image that is read here"),
        "other colours": (saved(Image.new("LAB", (8, 8)), "TIFF"), r"L\*a\*b\*"),
    }
