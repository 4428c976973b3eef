"""Images of a chat: opened, brought to what the model's tower takes, and encoded, for one model."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from akunu.api.vision.inputs import Inputs, Placed, place
from akunu.base.arguments import Limit
from akunu.base.errors import ContextLengthError, ImageError, InvalidArgumentError, UnsupportedError
from akunu.base.kept import Kept
from akunu.chat.images import GivenImage, ShownImages, images_in
from akunu.chat.pictures.opening import open_picture, picture_bytes
from akunu.chat.pictures.preprocess import ImagePart, Run, processor_of

if TYPE_CHECKING:
    from akunu.api.vision.tower import Tower
    from akunu.tokenizer import Tokenizer

__all__ = ["PlacedRows", "Sight"]

KEPT_BYTES: Final = 128 << 20
"""Bytes of images that are kept ready for the tower: the next turn of a conversation opens none again."""
MOST_IMAGES: Final = 256
"""Images that one conversation may have."""
_TOKENS: Final = Limit(int, 1, 1 << 20)
USUAL_TOKENS: Final = 1024
"""Most of an image where nothing else is asked for and the family has no number of its own: about a million
pixels. The processors' own limits, of 16 million, would fill a context and take minutes on a CPU."""
LOW_TOKENS: Final = 256
"""Most of an image of low detail."""
_FEWEST: Final = 64
_AT_ONCE: Final = 2
"""Images that are opened at a time: a large one takes half a gigabyte until it is small."""

PlacedRows = Sequence[tuple[int, Run]]
"""Rows of images, each with the index of its first among a prompt's tokens."""


class _Key(NamedTuple):
    data: bytes
    tokens: int | None


class Sight:
    """The images of a model's prompts: prepared, encoded and kept.

    Parameters
    ----------
    tower
        Encodes them.
    tokenizer
        The model's.
    context
        The model's.
    """

    def __init__(self, tower: Tower, tokenizer: Tokenizer, context: int) -> None:
        self.tower = tower
        self._processor = processor_of(tower.spec)
        self._token = _placeholder(tokenizer, self._processor.marker, self._processor.token)
        self._context = context
        self._ready: Kept[_Key, list[ImagePart]] = Kept(KEPT_BYTES, _size)
        self._lock = threading.Lock()
        self._opening = threading.Semaphore(_AT_ONCE)

    def shown(self, messages: Sequence[Mapping[str, Any]], tokens: object = None) -> ShownImages | None:
        """Return what stands for the images of messages; None where they have none.

        Parameters
        ----------
        messages
            Checked to be mappings.
        tokens
            Most tokens of each image; None: what suits the model and its context.

        Raises
        ------
        ImageError
            An image cannot be opened, or the model cannot be shown one of its shape.
        InvalidArgumentError
            The model has no such number of tokens, or there are too many images.
        ContextLengthError
            The images alone take more than the context.
        """
        given = list(images_in(messages))
        if not given:
            return None
        if len(given) > MOST_IMAGES:
            raise InvalidArgumentError(
                f"messages: found {len(given)} images; a conversation may have {MOST_IMAGES}"
            )
        most = None if tokens is None else _TOKENS.check("image_tokens", tokens)
        if most is None and self._processor.budgets is None:
            most = max(min(USUAL_TOKENS, self._context // 2), _FEWEST)
        images = [self._parts(each, self._low(most) if each.low else most) for each in given]
        total = sum(part.count for parts in images for part in parts if isinstance(part, Run))
        if total >= self._context:
            raise ContextLengthError(
                f"the prompt has at least {total} tokens, the context holds {self._context}; of them the "
                f"{len(images)} images take all: image_tokens makes them smaller"
            )
        processor = self._processor
        return ShownImages(processor.marker, processor.around, self._token, images)

    def inputs(self, n: int, rows: PlacedRows) -> Inputs:
        """Return what a prompt of `n` tokens has besides them: the images, which are encoded first."""
        encoded = {patches: self.tower.encode(patches) for patches in {run.patches: None for _, run in rows}}
        parts = [Placed(start, encoded[run.patches], run.first, run.count) for start, run in rows]
        return place(n, parts, self.tower.spec)

    def close(self) -> None:
        """Free the memory of the tower."""
        self.tower.close()

    def _low(self, most: int | None) -> int | None:
        """Most tokens of an image of low detail, if others may have `most`."""
        budgets = self._processor.budgets
        if budgets is None:
            return LOW_TOKENS if most is None else min(most, LOW_TOKENS)
        fitting = [n for n in budgets if n <= min(most or LOW_TOKENS, LOW_TOKENS)]
        return max(fitting, default=most)

    def _parts(self, given: GivenImage, tokens: int | None) -> list[ImagePart]:
        source = given.source
        try:
            if not isinstance(source, str | os.PathLike | bytes | bytearray | memoryview):
                with self._opening:
                    return self._processor(open_picture(source), tokens)
            data = picture_bytes(source)
            key = _Key(blake2b(data, digest_size=20).digest(), tokens)
            with self._lock:
                if (found := self._ready.get(key)) is not None:
                    return found
            with self._opening:
                made = self._processor(open_picture(data), tokens)
        except (ImageError, InvalidArgumentError) as error:
            raise error.renamed(lambda name: given.path if name == "image" else name) from error
        with self._lock:
            self._ready.keep(key, made)
        return made


def _size(parts: Sequence[ImagePart]) -> int:
    return sum(patches.picture.nbytes for patches in {p.patches for p in parts if isinstance(p, Run)})


def _placeholder(tokenizer: Tokenizer, marker: str, token: str) -> int:
    """The token that stands in the place of an image's rows.

    Raises
    ------
    UnsupportedError
        The vocabulary has no marker for an image.
    """
    for text in (token, marker):
        ids = tokenizer.split_added(text, parse_special=True)
        if len(ids) == 1 and isinstance(ids[0], int):
            return ids[0]
    raise UnsupportedError(
        f"images: the vocabulary of this model has no token {marker!r}, by which chat templates show an image"
    )
