"""Opening images: every kind that people have, and what is no image."""

from __future__ import annotations

import base64
import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from akunu.base.errors import ImageError, InvalidArgumentError
from akunu.chat.pictures.opening import MOST_PIXELS, open_picture
from quietly import quietly

from . import hostile
from .hostile import saved


def corners() -> Image.Image:
    """Three pixels wide, two high: red at the upper left, blue at the lower right."""
    image = Image.new("RGB", (3, 2), (10, 20, 30))
    image.putpixel((0, 0), (255, 0, 0))
    image.putpixel((2, 1), (0, 0, 255))
    return image


CORNERS = np.asarray(corners())


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a picture.png"
    path.write_bytes(saved(corners()))
    return path


def test_every_kind_of_source_is_the_same_image(file: Path) -> None:
    data = file.read_bytes()
    packed = base64.b64encode(data).decode()
    url = "data:image/png;base64,"
    sources: list[object] = [
        *(str(file), file, file.as_uri(), data, bytearray(data), memoryview(data)),
        *(corners(), CORNERS, CORNERS / 255, CORNERS.astype(np.float32) / 255),
        *(CORNERS.astype(np.uint16) * 257, CORNERS.astype(np.int64)),
        *(url + packed, f"data:;base64,{packed.rstrip('=')}", f"DATA:image/png;Base64,{packed}"),
        *(url + packed.replace("+", "-").replace("/", "_"), f"{url}{packed[:30]}\n{packed[30:]}"),
        "data:image/png," + "".join(f"%{byte:02x}" for byte in data),
    ]
    for source in sources:
        found = open_picture(source)
        assert found.dtype == np.uint8
        np.testing.assert_array_equal(found, CORNERS, err_msg=str(source)[:80])


@pytest.mark.parametrize("kind", ["PNG", "WEBP", "BMP", "TIFF", "GIF", "PPM", "JPEG2000"])
def test_formats_without_loss(kind: str) -> None:
    options = {"lossless": True} if kind == "WEBP" else {}
    np.testing.assert_array_equal(open_picture(saved(corners(), kind, **options)), CORNERS)


@pytest.mark.parametrize("kind", ["JPEG", "AVIF", "MPO"])
def test_formats_with_loss(kind: str) -> None:
    image = Image.new("RGB", (40, 24), (200, 30, 90))
    found = open_picture(saved(image, kind, quality=90))
    assert found.shape == (24, 40, 3)
    assert np.abs(found.astype(int) - (200, 30, 90)).max() < 12


@pytest.mark.parametrize("turn", range(1, 9))
def test_a_photo_stands_upright(turn: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = turn
    lying = saved(corners(), "PNG", exif=exif)
    swapped = CORNERS.transpose(1, 0, 2)
    upright = {
        1: CORNERS, 2: CORNERS[:, ::-1], 3: CORNERS[::-1, ::-1], 4: CORNERS[::-1],
        5: swapped, 6: swapped[:, ::-1], 7: swapped[::-1, ::-1], 8: swapped[::-1],
    }  # fmt: skip
    np.testing.assert_array_equal(open_picture(lying), upright[turn])


@quietly("Corrupt EXIF data")
def test_exif_data_that_mean_nothing_turn_nothing() -> None:
    exif = Image.Exif()
    exif[0x0112] = 77
    np.testing.assert_array_equal(open_picture(saved(corners(), "PNG", exif=exif)), CORNERS)
    damaged = saved(corners(), "PNG", exif=b"Exif\x00\x00II*\x00\xff\xff\xff\xff")
    np.testing.assert_array_equal(open_picture(damaged), CORNERS)


def test_what_is_transparent_is_white() -> None:
    clear = Image.new("RGBA", (2, 1), (255, 0, 0, 0))
    clear.putpixel((1, 0), (0, 0, 0, 128))
    for image in (clear, np.asarray(clear), saved(clear), saved(clear, "WEBP", lossless=True)):
        assert open_picture(image).tolist() == [[[255, 255, 255], [127, 127, 127]]]
    grey = Image.new("LA", (1, 1), (0, 0))
    assert open_picture(saved(grey)).tolist() == [[[255, 255, 255]]]
    palette = Image.new("P", (2, 1), 0)
    palette.putpalette([9, 9, 9, 200, 100, 50])
    palette.putpixel((1, 0), 1)
    assert open_picture(saved(palette, transparency=0)).tolist() == [[[255, 255, 255], [200, 100, 50]]]
    assert open_picture(saved(palette)).tolist() == [[[9, 9, 9], [200, 100, 50]]]


def test_sixteen_bits_and_one_bit_and_four_inks() -> None:
    ramp = np.array([[0, 257, 32896, 65535]], np.uint16)
    for source in (saved(Image.fromarray(ramp)), ramp, saved(Image.fromarray(ramp.astype(np.int32)), "TIFF")):
        assert open_picture(source)[0, :, 1].tolist() == [0, 1, 128, 255]
    assert open_picture(saved(Image.fromarray(ramp.astype(np.float32) / 65535), "TIFF"))[
        0, :, 0
    ].tolist() == [0, 1, 128, 255]
    assert open_picture(saved(Image.new("1", (1, 1), 1))).tolist() == [[[255, 255, 255]]]
    assert open_picture(np.array([[True, False]])).tolist() == [[[255] * 3, [0] * 3]]
    ink = open_picture(saved(Image.new("CMYK", (8, 8), (0, 255, 255, 0)), "JPEG"))
    assert ink[0, 0, 0] > 220
    assert ink[0, 0, 1] < 40


@quietly("Corrupt EXIF data")
@pytest.mark.parametrize("name", hostile.right())
def test_rare_kinds_are_right(name: str) -> None:
    found = open_picture(hostile.right()[name])
    assert np.abs(found.astype(int) - hostile.RED).max() < 8


@quietly("Image size")
@pytest.mark.parametrize("name", hostile.wrong())
def test_files_that_are_no_image_are_refused_by_what_they_are(name: str) -> None:
    data, message = hostile.wrong()[name]
    with pytest.raises(ImageError, match=message):
        open_picture(data)


def test_a_colour_that_is_transparent_is_white_in_16_bits_too() -> None:
    grey = hostile.png(2, 1, b"\0" + struct.pack(">2H", 1000, 30000), 16, 0, hostile.clear_grey(1000))
    assert open_picture(grey).tolist() == [[[255] * 3, [117] * 3]]


def test_images_of_pillow_that_cannot_be_read_are_refused() -> None:
    for image in (Image.open(io.BytesIO(hostile.wrong()["half a PNG"][0])), Image.new("La", (2, 2))):
        with pytest.raises(ImageError, match=r"of .* × .* pixels"):
            open_picture(image)
    with pytest.raises(ImageError, match="are in L"):
        open_picture(Image.new("LAB", (2, 2)))


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG", "TIFF"])
def test_an_animation_is_its_first_frame(kind: str) -> None:
    frames = [Image.new("RGB", (4, 4), colour) for colour in ("red", "lime", "blue")]
    found = open_picture(saved(frames[0], kind, save_all=True, append_images=frames[1:]))
    assert np.abs(found[0, 0].astype(int) - (255, 0, 0)).max() < 6


def png_of(width: int, height: int) -> bytes:
    """A PNG file that announces a size and holds almost nothing."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(b"\0" * 100))
        + chunk(b"IEND", b"")
    )


@quietly("Image size")
@pytest.mark.parametrize(("width", "height"), [(8193, 8192), (9000, 9500), (12000, 12000), (60000, 60000)])
def test_too_many_pixels_are_refused_before_they_are_decoded(width: int, height: int) -> None:
    assert width * height > MOST_PIXELS
    with pytest.raises(ImageError, match="pixels"):
        open_picture(png_of(width, height))
    with pytest.raises(ImageError, match="3 × 2 pixels, more than 5"):
        open_picture(corners(), most_pixels=5)


def test_damaged_and_cut_off_files_are_refused() -> None:
    noise = np.random.RandomState(0).randint(0, 256, (64, 64, 3)).astype(np.uint8)
    for kind in ("PNG", "JPEG", "WEBP", "TIFF", "GIF"):
        data = saved(Image.fromarray(noise), kind)
        with pytest.raises(ImageError, match="image: "):
            open_picture(data[: len(data) // 2])
    whole = bytearray(saved(Image.fromarray(noise)))
    whole[60:90] = b"\xff" * 30
    with pytest.raises(ImageError, match="a damaged or cut off PNG file of 64 × 64 pixels"):
        open_picture(bytes(whole))
    with pytest.raises(ImageError, match="cut off"):
        open_picture(png_of(50, 50))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "empty"),
        (b"%PDF-1.7", "a PDF document"),
        (b"\xef\xbb\xbf<?xml version='1.0'?><svg/>", "SVG"),
        (b"<svg xmlns=''/>", "an SVG drawing"),
        (b"<!doctype html>", "a web page"),
        (b"%!PS-Adobe-3.0 EPSF-3.0", "PostScript"),
        (b"\0\0\0\x18ftypheic\0\0", "a HEIC image; make a JPEG"),
        (b"\0\0\0\x18ftypisom\0\0", "a video"),
        (b"hello", "begins with 68 65 6c 6c 6f"),
    ],
)
def test_what_is_no_image_is_named(data: bytes, message: str) -> None:
    with pytest.raises(ImageError, match=message):
        open_picture(data)


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="there is no file"):
        open_picture(tmp_path / "missing.png")
    with pytest.raises(ImageError, match="not a regular file"):
        open_picture(tmp_path)
    with pytest.raises(ImageError, match="not a regular file"):
        open_picture("/dev/zero")
    with pytest.raises(ImageError, match="image: "):
        open_picture("a\0b.png")
    with pytest.raises(ImageError, match="address, which is not fetched"):
        open_picture("https://example.com/a.png")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("data:image/png;base64,@@@@", "Base64"),
        ("data:image/png;base64", "expected data:"),
        ("data:text/html;base64,aGk=", "text/html"),
        ("data:image/png;base64,", "empty"),
    ],
)
def test_data_urls_that_are_none_are_refused(url: str, message: str) -> None:
    with pytest.raises(ImageError, match=message):
        open_picture(url)


NO_IMAGES: dict[str, tuple[object, type[Exception]]] = {
    "no rows": (np.zeros((0, 4, 3), np.uint8), ImageError),
    "two channels": (np.zeros((5, 6, 2), np.uint8), InvalidArgumentError),
    "one axis": (np.zeros(4, np.uint8), InvalidArgumentError),
    "nan": (np.full((4, 4), np.nan), InvalidArgumentError),
    "negative floats": (np.full((4, 4), -1.0), InvalidArgumentError),
    "negative": (np.full((4, 4), -1), InvalidArgumentError),
    "17 bits": (np.full((4, 4), 1 << 17), InvalidArgumentError),
    "strings": (np.array([["a"]]), InvalidArgumentError),
    "a number": (7, InvalidArgumentError),
    "none": (None, InvalidArgumentError),
    "a list": ([[1]], InvalidArgumentError),
    "no columns": (Image.new("RGB", (0, 5)), ImageError),
}


@pytest.mark.parametrize(("value", "error"), NO_IMAGES.values(), ids=list(NO_IMAGES))
def test_arrays_that_are_no_image_are_refused(value: object, error: type[Exception]) -> None:
    with pytest.raises(error, match="image: "):
        open_picture(value)


def test_channels_may_come_first() -> None:
    tall = np.tile(CORNERS, (3, 3, 1))
    np.testing.assert_array_equal(open_picture(tall.transpose(2, 0, 1)), tall)
    np.testing.assert_array_equal(open_picture(tall[None, :, :, 0][0]), tall[:, :, [0, 0, 0]])


def test_the_caller_keeps_the_image() -> None:
    given = np.array(CORNERS)
    found = open_picture(given)
    given[:] = 0
    np.testing.assert_array_equal(found, CORNERS)
