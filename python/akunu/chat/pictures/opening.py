"""Opening images: whatever a caller has, as rows of red, green and blue.

What comes from outside is bounded before it is decoded: by the bytes of the file, and by the pixels that its
head announces, however well they are packed. Formats whose readers run other programs are not opened at all.
`Pillow` is imported when the first image is opened.
"""

from __future__ import annotations

import base64
import binascii
import io
import os
import re
import stat
import struct
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, unquote_to_bytes, urlsplit

import numpy as np

from akunu.base.errors import AkunuError, ImageError, InvalidArgumentError

if TYPE_CHECKING:
    import numpy.typing as npt
    from PIL.Image import Image

__all__ = [
    "MOST_BYTES",
    "MOST_PIXELS",
    "Picture",
    "base64_bytes",
    "data_url",
    "data_url_bytes",
    "open_picture",
    "picture_bytes",
    "png_bytes",
]

MOST_PIXELS: Final = 1 << 26
"""Pixels of an image, which take four bytes each while it is decoded."""
MOST_BYTES: Final = 1 << 27
"""Bytes of an image file."""

FORMATS: Final = {
    "PNG": "Png", "JPEG": "Jpeg", "WEBP": "WebP", "GIF": "Gif", "BMP": "Bmp", "DIB": "Bmp",
    "TIFF": "Tiff", "AVIF": "Avif", "JPEG2000": "Jpeg2K", "PPM": "Ppm",
}  # fmt: skip
"""Pillow's names of the formats that are read, and of their modules. None has files of others in it, whose
size is not that of its head."""
_HEADS: Final = (
    (0, b"\x89PNG", "PNG"), (0, b"\xff\xd8\xff", "JPEG"), (0, b"GIF8", "GIF"), (8, b"WEBP", "WebP"),
    (0, b"BM", "BMP"), (0, b"II*\0", "TIFF"), (0, b"MM\0*", "TIFF"), (0, b"\0\0\0\x0cjP", "JPEG 2000"),
    (0, b"\xff\x4f\xff\x51", "JPEG 2000"),
    *((0, b"P%d" % n + end, "PPM") for n in range(1, 7) for end in (b" ", b"\n", b"\r", b"\t")),
)  # fmt: skip
"""The beginnings of files in the formats that are read: the bytes at a place."""
_KNOWN: Final = (
    (0, b"%PDF", "a PDF document; make an image of the page that is meant"),
    (0, b"<svg", "an SVG drawing; make a PNG of it"),
    (0, b"<!DOCTYPE svg", "an SVG drawing; make a PNG of it"),
    (0, b"<?xml", "an XML document, maybe an SVG drawing; make a PNG of it"),
    (0, b"<!DOCTYPE", "a web page, not an image"),
    (0, b"<html", "a web page, not an image"),
    (0, b"%!PS", "a PostScript document; make a PNG of it"),
    (4, b"ftyphei", "a HEIC image; make a JPEG of it"),
    (4, b"ftyphev", "a HEIC image; make a JPEG of it"),
    (4, b"ftypmif1", "a HEIF image; make a JPEG of it"),
    (4, b"ftypavi", "a damaged or cut off AVIF file"),
    (4, b"ftyp", "a video; give a frame of it"),
    (0, b"\x1aE\xdf\xa3", "a video; give a frame of it"),
    (0, b"\0\0\1\0", "an icon; make a PNG of it"),
    (0, b"8BPS", "a Photoshop document; make a PNG of it"),
    (0, b"\x1f\x8b", "a compressed file, maybe an SVG drawing; unpack it and make a PNG of it"),
    (0, b"PK\3\4", "an archive or an office document; give an image out of it"),
)
"""Other files that people have, by the bytes at a place: no image that is read here."""

Picture = np.ndarray[Any, np.dtype[np.uint8]]
"""An image, uint8 [height, width, 3]: red, green, blue."""


def open_picture(source: object, *, most_pixels: int = MOST_PIXELS) -> Picture:
    """Open an image.

    Parameters
    ----------
    source
        A path, the bytes of a file, a `data:` URL, a Pillow image, or an array: [height, width] or
        [height, width, channels] with 1, 3 or 4 channels, also with the channels first, in integers of 8 or
        16 bits, or in floats from 0 to 1.
    most_pixels
        An image with more of them is refused before it is decoded.

    Returns
    -------
    numpy.ndarray
        uint8 [height, width, 3]. It stands upright, as its EXIF data say; what is transparent is white; of
        an animation it is the first frame.

    Raises
    ------
    ImageError
        There is no such file, it is no image, of a format that is not read, damaged, cut off, empty or too
        large.
    InvalidArgumentError
        `source` is nothing of the above.
    """
    if isinstance(source, str | os.PathLike | bytes | bytearray | memoryview):
        return _decoded(picture_bytes(source), most_pixels)
    if type(source).__module__.startswith("PIL.") and hasattr(source, "mode"):
        return _loaded(source, most_pixels)  # type: ignore[arg-type]
    if hasattr(source, "__array__") or hasattr(source, "__array_interface__"):
        return _from_array(source, most_pixels)
    raise InvalidArgumentError(
        f"image: found {type(source).__name__}, expected a path, the bytes of a file, a data: URL, a Pillow "
        "image or an array"
    )


def picture_bytes(source: str | os.PathLike[str] | bytes | bytearray | memoryview) -> bytes:
    """The bytes of an image file, by its path or `data:` URL, or as they are.

    Raises
    ------
    ImageError
        There is no such file, or it cannot be read.
    """
    if isinstance(source, bytes | bytearray | memoryview):
        return _bounded(bytes(source))
    if isinstance(source, str):
        scheme = source[:8].partition(":")[0].lower()
        if scheme == "data":
            return _bounded(data_url_bytes(source))
        if scheme in ("http", "https") and "//" in source[:8]:
            raise ImageError(
                f"image: {source:.100} is an address, which is not fetched here; give the bytes of the image"
            )
        if scheme == "file":
            source = unquote(urlsplit(source).path)
    try:
        path = Path(source).expanduser()
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise ImageError(f"image: {path} is not a regular file")
        if status.st_size > MOST_BYTES:
            raise ImageError(f"image: {path} has {status.st_size} bytes, more than {MOST_BYTES}")
        return _bounded(path.read_bytes())
    except FileNotFoundError:
        raise ImageError(f"image: there is no file {str(source)!r:.300}") from None
    except (OSError, ValueError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise ImageError(f"image: {str(source)!r:.300} cannot be read: {reason or error}") from error


def data_url_bytes(url: str) -> bytes:
    """The bytes of a `data:` URL.

    Raises
    ------
    ImageError
        It is none, or its Base64 is not.
    """
    head, comma, data = url.partition(",")
    if not comma or not head.lower().startswith("data:"):
        raise ImageError(f"image: found {url[:40]!r}, expected data:image/png;base64,… or the like")
    kind = head[5:].partition(";")[0].strip().lower()
    if kind.partition("/")[0] not in ("", "image") and kind != "application/octet-stream":
        raise ImageError(
            f"image: found a data: URL of the type {kind!r:.60}, expected an image such as image/png"
        )
    if not head.lower().rstrip().endswith(";base64"):
        return unquote_to_bytes(data)
    return base64_bytes(unquote(data) if "%" in data else data)


def base64_bytes(text: str) -> bytes:
    """The bytes that a text in Base64 stands for, of either alphabet, with or without its padding.

    Raises
    ------
    ImageError
        It is no Base64.
    """
    packed = "".join(text.split()).replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(packed + "=" * (-len(packed) % 4), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ImageError(f"image: its Base64 cannot be read: {error}") from None


def data_url(data: bytes) -> str:
    """A `data:` URL of an image file."""
    return f"data:;base64,{base64.b64encode(data).decode()}"


def png_bytes(picture: Picture) -> bytes:
    """An image as a PNG file."""
    file = io.BytesIO()
    _pillow().fromarray(picture).save(file, "PNG")
    return file.getvalue()


def _bounded(data: bytes) -> bytes:
    if not data:
        raise ImageError("image: it is empty (0 bytes)")
    if len(data) > MOST_BYTES:
        raise ImageError(f"image: found {len(data)} bytes, more than {MOST_BYTES}")
    return data


def _decoded(data: bytes, most_pixels: int) -> Picture:
    pillow = _pillow()
    for module in FORMATS.values():
        import_module(f"PIL.{module}ImagePlugin")
    try:
        image = pillow.open(io.BytesIO(data), formats=list(FORMATS))
    except (pillow.DecompressionBombError, pillow.DecompressionBombWarning) as error:
        found = re.search(r"\d+", str(error))
        count = found[0] if found else "too many"
        raise ImageError(f"image: it has {count} pixels, more than {most_pixels}; make it smaller") from None
    except Exception as error:
        raise ImageError(f"image: {_what_it_is(data)}") from error
    with image:
        return _loaded(image, most_pixels)


def _loaded(image: Image, most_pixels: int) -> Picture:
    """The pixels of an image, which may still have to be read from its file."""
    _check_size(image.size, most_pixels)
    try:
        image.load()
        return _from_pillow(image)
    except AkunuError:
        raise
    except Exception as error:  # decoders raise whatever they like
        what = (
            f"a damaged or cut off {image.format} file"
            if image.format
            else f"an image of the mode {image.mode}"
        )
        raise ImageError(f"image: {what} of {image.width} × {image.height} pixels: {error}") from error


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise AkunuError("images need Pillow: pip install pillow") from error
    return Image


def _what_it_is(data: bytes) -> str:
    start = data[:64].lstrip(b"\xef\xbb\xbf \r\n\t")
    for place, mark, what in _KNOWN:
        if (data[place:] if place else start)[: len(mark)].lower() == mark.lower():
            return f"it is {what}"
    if start[:1] == b"<" and b"<svg" in data[:4096].lower():
        return "it is an SVG drawing; make a PNG of it"
    for place, mark, name in _HEADS:
        if data[place : place + len(mark)] == mark:
            return f"a damaged, cut off or empty {name} file"
    return (
        f"it is no image that is read here (it begins with {data[:8].hex(' ')}); expected PNG, JPEG, WebP, "
        "GIF, BMP, TIFF or AVIF"
    )


def _check_size(size: tuple[int, int], most_pixels: int) -> None:
    width, height = size
    if width < 1 or height < 1:
        raise ImageError(f"image: it has {width} × {height} pixels, expected one at least")
    if width * height > most_pixels:
        raise ImageError(f"image: it has {width} × {height} pixels, more than {most_pixels}; make it smaller")


def _from_pillow(image: Image) -> Picture:
    from PIL import ImageOps

    _check_size(image.size, 1 << 62)
    try:
        turned = ImageOps.exif_transpose(image)
    except (SyntaxError, ValueError, TypeError, KeyError, IndexError, struct.error):  # damaged EXIF data
        turned = image
    if turned.mode.startswith("I") or turned.mode == "F":
        values = np.array(turned)
        clear = turned.info.get("transparency")
        if isinstance(clear, int):
            values[values == clear] = 65535
        return _from_array(values, 1 << 62)
    if turned.mode == "LAB":
        raise ImageError("image: its colours are in L*a*b*; make a PNG or JPEG of it")
    if "A" in turned.getbands() or "a" in turned.getbands() or turned.info.get("transparency") is not None:
        layer = turned.convert("RGBA")
        white = _pillow().new("RGBA", layer.size, (255, 255, 255, 255))
        turned = _pillow().alpha_composite(white, layer)
    return np.array(turned.convert("RGB"))


def _from_array(given: object, most_pixels: int) -> Picture:
    try:
        values = np.asarray(given)
    except Exception as error:  # a tensor on another device, for example
        raise InvalidArgumentError(f"image: cannot be read as an array: {error}") from error
    if values.ndim == 3 and values.shape[2] not in (1, 3, 4) and values.shape[0] in (1, 3, 4):
        values = np.moveaxis(values, 0, 2)
    if values.ndim == 2:
        values = values[:, :, None]
    if values.ndim != 3 or values.shape[2] not in (1, 3, 4):
        raise InvalidArgumentError(
            f"image: found an array {list(values.shape)}, expected [height, width] or [height, width, "
            "channels] with 1, 3 or 4 channels"
        )
    _check_size((values.shape[1], values.shape[0]), most_pixels)
    small = _in_bytes(values)
    if small.shape[2] == 4:
        return _from_pillow(_pillow().fromarray(small, "RGBA"))
    return np.array(np.broadcast_to(small, (*small.shape[:2], 3)))


def _in_bytes(values: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Integers of 8 bits; those of 16 keep their upper half, floats are from 0 to 1."""
    kind = values.dtype
    if kind.kind not in "buif":
        raise InvalidArgumentError(f"image: found an array of {kind}, expected integers or floats")
    low, high = values.min(), values.max()
    if not low >= 0 or not high <= 65535:
        raise InvalidArgumentError(
            f"image: found values from {low} to {high}, expected 0 to 255 or 0 to 1, before any normalisation"
        )
    factor = 1.0
    if kind == np.bool_ or (kind.kind == "f" and high <= 1 + 1e-6):
        factor = 255.0
    elif kind == np.uint16 or high > 255:
        factor = 1 / 257
    return np.rint(values * factor).clip(0, 255).astype(np.uint8)
