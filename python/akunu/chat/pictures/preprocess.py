"""Images as a model's tower takes them, and the text that stands around them in a prompt.

Each family has an image processor of its own. What it makes is equal to what Transformers' makes: the same
size, the same filter (Pillow's), the same tiles, the same values. What the prompt tells of an image, such as
the row and column of a tile, belongs to the processor too: it depends on the image.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from akunu.base.errors import InvalidArgumentError, ModelFileError, UnsupportedError
from akunu.chat.pictures import sizes

if TYPE_CHECKING:
    import numpy.typing as npt

    from akunu.chat.pictures.opening import Picture

__all__ = ["FAMILIES", "ImagePart", "ImageProcessor", "Patches", "Run", "Tower", "processor_of"]

_NEAREST, _LANCZOS, _BILINEAR, _BICUBIC = 0, 1, 2, 3
"""Pillow's numbers of filters, by which `preprocessor_config.json` names them too."""


class Tower(Protocol):
    """The description of a tower: see `akunu.api.vision.towers.TowerSpec`."""

    @property
    def family(self) -> str: ...
    @property
    def patch_size(self) -> int: ...
    @property
    def merge_size(self) -> int: ...
    @property
    def temporal_patch_size(self) -> int: ...
    @property
    def image_size(self) -> int: ...
    @property
    def processor(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True)
class Scale:
    """The scaling of a pixel's value: (value × factor − mean) ÷ deviation, by channel."""

    factor: float
    mean: tuple[float, float, float]
    deviation: tuple[float, float, float]

    @cached_property
    def table(self) -> npt.NDArray[np.float32]:
        """The result for each of the 256 values, float32 [3, 256]."""
        values = (np.arange(256, dtype=np.float64) * self.factor).astype(np.float32)
        mean, deviation = (np.array(each, np.float32)[:, None] for each in (self.mean, self.deviation))
        return (values - mean) / deviation


@dataclass(frozen=True, eq=False)
class Patches:
    """One image for a tower, cut into patches.

    Attributes
    ----------
    picture : numpy.ndarray
        The image at its final size, uint8 [height, width, 3].
    patch, merge, frames : int
        Pixels of a patch's side, patches of the side of what becomes one row, and how many times an image
        is shown to a tower of films.
    scale : Scale
        What becomes of the values.
    """

    picture: Picture
    patch: int
    merge: int
    frames: int
    scale: Scale

    @property
    def grid(self) -> tuple[int, int, int]:
        """Patches in time, from top to bottom, and from left to right."""
        height, width = self.picture.shape[:2]
        return 1, height // self.patch, width // self.patch

    @property
    def tokens(self) -> int:
        """Rows that the tower makes of it."""
        return self.grid[1] * self.grid[2] // self.merge**2

    @cached_property
    def key(self) -> bytes:
        """A hash of all that the tower is given: SHA-256, for which processors have instructions."""
        found = sha256(repr((self.picture.shape, self.patch, self.merge, self.frames, self.scale)).encode())
        found.update(np.ascontiguousarray(self.picture).data)
        return found.digest()[:16]

    @property
    def pixels(self) -> npt.NDArray[np.float32]:
        """The patches, float32 [patches, values], made anew each time.

        Those that become one row stand together, row-major in it; a patch is [channel, time, y, x].
        """
        _, rows, columns = self.grid
        made = np.empty((rows * columns, 3 * self.frames * self.patch**2), np.float32)
        self.write(made)
        return made

    def write(self, out: npt.NDArray[np.float32]) -> None:
        """Write the same to an array of its size."""
        from akunu import _core

        picture = np.ascontiguousarray(self.picture)
        _core.cut_patches(picture, self.scale.table, self.patch, self.merge, self.frames, out)


@dataclass(frozen=True, eq=False)
class Run:
    """Rows of an image that follow each other in a prompt."""

    patches: Patches
    first: int
    count: int


ImagePart = str | Run
"""A part of what stands for an image in a prompt: text, in which control tokens are read, or rows."""


@dataclass(frozen=True)
class ImageProcessor:
    """The preparation of images for one model.

    Attributes
    ----------
    marker : str
        What the model's chat template writes where an image is: a control token.
    around : tuple of str
        Text before and after the marker, for a template that knows of no images.
    token : str
        The control token that stands in the place of a row, if the vocabulary has it.
    budgets : tuple of int or None
        How many tokens an image can be given; None: any number.
    """

    marker: str
    around: tuple[str, str]
    token: str
    budgets: tuple[int, ...] | None
    _make: Callable[[Picture, int | None], list[ImagePart]] = field(repr=False)

    def __call__(self, picture: Picture, tokens: int | None = None) -> list[ImagePart]:
        """Return what stands for an image in a prompt.

        Parameters
        ----------
        picture
            As `akunu.chat.pictures.opening.open_picture` gives it.
        tokens
            Most tokens of the image, where the family can choose; None: the model's own number.

        Raises
        ------
        ImageError
            The model cannot be shown an image of this shape.
        InvalidArgumentError
            The family has no such number of tokens.
        """
        if tokens is not None and self.budgets is not None and tokens not in self.budgets:
            known = ", ".join(map(str, self.budgets))
            raise InvalidArgumentError(
                f"image_tokens: found {tokens}, expected one of {known} for this model"
                if known
                else "image_tokens: this model has a fixed number of tokens for an image"
            )
        return self._make(picture, tokens)


def processor_of(tower: Tower) -> ImageProcessor:
    """The processor of a tower's family, with the settings of its files.

    Raises
    ------
    UnsupportedError
        The family is not known.
    ModelFileError
        A setting is not of its kind.
    """
    make = FAMILIES.get(tower.family)
    if make is None:
        raise UnsupportedError(f"images: no processor for towers of the family {tower.family!r}")
    return make(tower, _Settings(tower.processor))


class _Settings:
    """The settings of a processor, checked as they are read: they come from a file."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._given = given

    def number(self, name: str, default: int, least: int = 1, most: int = 1 << 32) -> int:
        value = self._given.get(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise ModelFileError(f"image processor: {name}: found {value!r:.60}, expected {least} to {most}")
        return int(value)

    def size(self, name: str, key: str, default: int) -> int:
        """A number that is a setting of its own, or one of a mapping."""
        value = self._given.get(name)
        return (
            _Settings(value).number(key, default)
            if isinstance(value, Mapping)
            else self.number(name, default)
        )

    def flag(self, name: str, default: bool) -> bool:
        value = self._given.get(name)
        return default if value is None else bool(value)

    def real(self, name: str, default: float) -> float:
        value = self._given.get(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
            raise ModelFileError(f"image processor: {name}: found {value!r:.60}, expected a number")
        return float(value)

    def scale(self, mean: Sequence[float], deviation: Sequence[float], *, normalize: bool = True) -> Scale:
        factor = self.real("rescale_factor", 1 / 255)
        if not self.flag("do_normalize", normalize):
            return Scale(factor, (0.0,) * 3, (1.0,) * 3)
        return Scale(factor, self._channels("image_mean", mean), self._channels("image_std", deviation))

    def _channels(self, name: str, default: Sequence[float]) -> tuple[float, float, float]:
        value = self._given.get(name)
        found = default if value is None else [value] * 3 if isinstance(value, int | float) else value
        if (
            not isinstance(found, Sequence)
            or len(found) != 3
            or not all(isinstance(each, int | float) and np.isfinite(each) for each in found)
            or (name == "image_std" and 0 in found)
        ):
            raise ModelFileError(f"image processor: {name}: found {value!r:.60}, expected three numbers")
        return float(found[0]), float(found[1]), float(found[2])


_CLIP_MEAN: Final = (0.48145466, 0.4578275, 0.40821073)
_CLIP_DEVIATION: Final = (0.26862954, 0.26130258, 0.27577711)
_HALF: Final = (0.5, 0.5, 0.5)
_NONE: Final = (0.0, 0.0, 0.0)
_ONE: Final = (1.0, 1.0, 1.0)


def _resized(picture: Picture, size: tuple[int, int], resample: int) -> Picture:
    from PIL import Image

    if picture.shape[:2] == size:
        return picture
    return np.asarray(Image.fromarray(picture).resize(size[::-1], resample=Image.Resampling(resample)))


def _all(patches: Patches) -> Run:
    return Run(patches, 0, patches.tokens)


def _qwen(
    tower: Tower, given: _Settings, least: int, most: int, mean: Sequence[float], deviation: Sequence[float]
) -> ImageProcessor:
    factor = tower.patch_size * tower.merge_size
    least = given.number("min_pixels", given.size("size", "shortest_edge", least))
    most = given.number("max_pixels", given.size("size", "longest_edge", most))
    scale, resample = given.scale(mean, deviation), given.number("resample", _BICUBIC, 0, 5)

    def make(picture: Picture, tokens: int | None) -> list[ImagePart]:
        limit = most if tokens is None else min(most, tokens * factor**2)
        sizes.check_aspect(picture.shape[:2])
        size = sizes.smart_resize(picture.shape[:2], factor, min(least, limit), limit)
        shown = _resized(picture, size, resample)
        return [_all(Patches(shown, tower.patch_size, tower.merge_size, tower.temporal_patch_size, scale))]

    around = ("<|vision_start|>", "<|vision_end|>")
    return ImageProcessor("<|image_pad|>", around, "<|image_pad|>", None, make)


def _qwen2(tower: Tower, given: _Settings) -> ImageProcessor:
    return _qwen(tower, given, 56 * 56, 12845056, _CLIP_MEAN, _CLIP_DEVIATION)


def _qwen3(tower: Tower, given: _Settings) -> ImageProcessor:
    return _qwen(tower, given, 65536, 16777216, _HALF, _HALF)


def _gemma3(tower: Tower, given: _Settings) -> ImageProcessor:
    side = given.size("size", "height", tower.image_size)
    scale, resample = given.scale(_HALF, _HALF), given.number("resample", _BILINEAR, 0, 5)
    scans = given.flag("do_pan_and_scan", False)
    least = given.number("pan_and_scan_min_crop_size", 256)
    most = given.number("pan_and_scan_max_num_crops", 4)
    ratio = given.real("pan_and_scan_min_ratio_to_activate", 1.2)

    def one(picture: Picture) -> list[ImagePart]:
        shown = _resized(picture, (side, side), resample)
        patches = Patches(shown, tower.patch_size, tower.merge_size, tower.temporal_patch_size, scale)
        return ["\n\n<start_of_image>", _all(patches), "<end_of_image>\n\n"]

    def make(picture: Picture, tokens: int | None) -> list[ImagePart]:
        parts = list(sizes.crops(picture.shape[:2], least, most, ratio)) if scans else []
        whole = one(picture)
        if not parts:
            return whole
        found: list[ImagePart] = [
            "Here is the original image ",
            *whole,
            " and here are some crops to help you see better",
        ]
        for part in parts:
            found += [" ", *one(np.ascontiguousarray(picture[part]))]
        return found

    return ImageProcessor("<start_of_image>", ("", ""), "<image_soft_token>", (), make)


def _gemma4(tower: Tower, given: _Settings) -> ImageProcessor:
    factor = tower.patch_size * tower.merge_size
    own = given.number("max_soft_tokens", given.number("image_seq_length", 280))
    scale = given.scale(_NONE, _ONE, normalize=False)
    resample = given.number("resample", _BICUBIC, 0, 5)

    def make(picture: Picture, tokens: int | None) -> list[ImagePart]:
        size = sizes.within_budget(picture.shape[:2], factor, tokens or own)
        shown = _resized(picture, size, resample)
        patches = Patches(shown, tower.patch_size, tower.merge_size, tower.temporal_patch_size, scale)
        return ["<|image>", _all(patches), "<image|>"]

    # A row of an image has the layers' inputs of a pad.
    return ImageProcessor("<|image|>", ("\n\n", "\n\n"), "<pad>", sizes.GEMMA4_BUDGETS, make)


def _idefics3(tower: Tower, given: _Settings) -> ImageProcessor:
    tile = given.size("max_image_size", "longest_edge", tower.image_size)
    longest = given.size("size", "longest_edge", 4 * tile)
    scale, resample = given.scale(_HALF, _HALF), given.number("resample", _LANCZOS, 0, 5)
    splits = given.flag("do_image_splitting", True)

    def one(picture: Picture) -> Run:
        return _all(Patches(picture, tower.patch_size, tower.merge_size, tower.temporal_patch_size, scale))

    def make(picture: Picture, tokens: int | None) -> list[ImagePart]:
        # In two steps, each of which rounds to whole values.
        picture = _resized(picture, sizes.longest_edge(picture.shape[:2], longest), resample)
        whole = (tile, tile)
        if splits:
            picture = _resized(picture, sizes.whole_tiles(picture.shape[:2], tile), resample)
        rows, columns = picture.shape[0] // tile, picture.shape[1] // tile
        found: list[ImagePart] = []
        if splits and rows * columns > 1:
            for row in range(rows):
                for column in range(columns):
                    cut = picture[row * tile : (row + 1) * tile, column * tile : (column + 1) * tile]
                    found += [f"<fake_token_around_image><row_{row + 1}_col_{column + 1}>", one(cut)]
                found.append("\n")
            found.append("\n")
        found += ["<fake_token_around_image><global-img>", one(_resized(picture, whole, resample))]
        return [*found, "<fake_token_around_image>"]

    return ImageProcessor("<image>", ("", ""), "<image>", (), make)


def _lfm2(tower: Tower, given: _Settings) -> ImageProcessor:
    factor = tower.patch_size * tower.merge_size
    fewest, own = given.number("min_image_tokens", 64), given.number("max_image_tokens", 256)
    tile = given.number("tile_size", 512)
    least, most = given.number("min_tiles", 2), given.number("max_tiles", 10, 1, 64)
    tolerance = given.real("max_pixels_tolerance", 2.0)
    splits = given.flag("do_image_splitting", True) and most > 1
    thumbnail = given.flag("use_thumbnail", True)
    scale, resample = given.scale(_HALF, _HALF), given.number("resample", _BILINEAR, 0, 5)

    def one(picture: Picture) -> Run:
        return _all(Patches(picture, tower.patch_size, tower.merge_size, tower.temporal_patch_size, scale))

    def make(picture: Picture, tokens: int | None) -> list[ImagePart]:
        limit = own if tokens is None else min(own, tokens)
        size = picture.shape[:2]
        fitted = sizes.smart_resize(
            size, factor, min(fewest, limit) * factor**2, limit * factor**2, shortest=factor
        )
        area = 1.0
        for side in size:
            area *= max(tower.patch_size, round(side / factor) * factor)
        per_tile = (tile // factor) ** 2
        tiles = most if tokens is None else min(most, (tokens - limit) // per_tile)
        if not splits or tiles < least or area <= own * factor**2 * tolerance:
            return ["<|image_start|>", one(_resized(picture, fitted, resample)), "<|image_end|>"]
        rows, columns = sizes.best_grid(size, tile, least, tiles)
        large = _resized(picture, (rows * tile, columns * tile), resample)
        found: list[ImagePart] = ["<|image_start|>"]
        for row in range(rows):
            for column in range(columns):
                cut = large[row * tile : (row + 1) * tile, column * tile : (column + 1) * tile]
                found += [f"<|img_row_{row + 1}_col_{column + 1}|>", one(cut)]
        if thumbnail and rows * columns > 1:
            found += ["<|img_thumbnail|>", one(_resized(picture, fitted, resample))]
        return [*found, "<|image_end|>"]

    return ImageProcessor("<image>", ("", ""), "<image>", None, make)


def _pixtral(tower: Tower, given: _Settings) -> ImageProcessor:
    factor = tower.patch_size * tower.merge_size
    longest = given.size("size", "longest_edge", tower.image_size)
    scale = given.scale(_CLIP_MEAN, _CLIP_DEVIATION)
    resample = given.number("resample", _BICUBIC, 0, 5)

    def make(picture: Picture, tokens: int | None) -> list[ImagePart]:
        # The square that has so many tokens, and holds an image of any other shape, too.
        limit = longest if tokens is None else min(longest, int(tokens**0.5) * factor)
        size = sizes.whole_patches(picture.shape[:2], factor, max(limit, factor))
        shown = _resized(picture, size, resample)
        patches = Patches(shown, tower.patch_size, tower.merge_size, tower.temporal_patch_size, scale)
        rows, columns = size[0] // factor, size[1] // factor
        found: list[ImagePart] = []
        for row in range(rows):
            found += [Run(patches, row * columns, columns), "[IMG_BREAK]" if row + 1 < rows else "[IMG_END]"]
        return found

    return ImageProcessor("[IMG]", ("", ""), "[IMG]", None, make)


FAMILIES: Final[Mapping[str, Callable[[Tower, _Settings], ImageProcessor]]] = {
    "qwen2_vl": _qwen2,
    "qwen2_5_vl": _qwen2,
    "qwen3_vl": _qwen3,
    "gemma3": _gemma3,
    "gemma4": _gemma4,
    "gemma4_unified": _gemma4,
    "idefics3": _idefics3,
    "lfm2_vl": _lfm2,
    "pixtral": _pixtral,
}
"""The processors, by `TowerSpec.family`."""
