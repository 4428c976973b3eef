"""Images in messages: where they are, and what stands for them in a prompt.

A part of a content is an image in each of the forms that people have: `{"type": "image", "image": …}` with a
path, bytes, a Pillow image or an array, as Transformers has it; OpenAI's `image_url` and `input_image`; and
Anthropic's `source`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from akunu.base.errors import InvalidArgumentError
from akunu.chat.pictures.preprocess import ImagePart, Run
from akunu.tokenizer import Segment

__all__ = ["DETAILS", "GivenImage", "RowsSegment", "ShownImages", "image_of", "images_in"]

_KINDS: Final = ("image", "image_url", "input_image")
DETAILS: Final = ("auto", "high", "low", "original")
"""The values of `detail` in OpenAI's API, which say how closely an image is looked at."""
_NAMES: Final = ("image", "image_url", "url", "path", "base64", "data", "source")
"""The names under which a part has its image."""


class GivenImage(NamedTuple):
    """An image of a message, as it was given."""

    source: object
    """The image, as `akunu.chat.pictures.opening.open_picture` takes it."""
    path: str
    """The place of the image, such as "messages[0].content[1]"."""
    low: bool = False
    """A few tokens are enough: OpenAI's `detail` is "low"."""


def image_of(part: Mapping[str, Any], path: str) -> object | None:
    """The image of a part of a content, as it was given; None where the part is none.

    Raises
    ------
    InvalidArgumentError
        The part is an image in a form that nobody has.
    """
    kind = part.get("type")
    if kind not in _KINDS:
        return None
    name = next((name for name in _NAMES if part.get(name) is not None), "")
    value: object = part.get(name)
    if isinstance(value, Mapping):
        name = "data" if value.get("type") == "base64" else "url"
        value = value.get(name)
        if not isinstance(value, str):
            raise InvalidArgumentError(f"{path}: found no {name!r} in its image, expected a text")
    if value is None:
        raise InvalidArgumentError(
            f'{path}: a part of the type {kind!r} without an image; expected {{"type": "image", "image": …}} '
            "with a path, bytes, a Pillow image or an array"
        )
    if name in ("base64", "data") and isinstance(value, str) and not value.startswith("data:"):
        return f"data:;base64,{value}"
    return value


def images_in(messages: Sequence[Mapping[str, Any]]) -> Iterator[GivenImage]:
    """The images of messages, in their order."""
    for n, message in enumerate(messages):
        content = message.get("content")
        if not isinstance(content, list | tuple):
            continue
        for i, part in enumerate(content):
            if not isinstance(part, Mapping):
                continue
            path = str(part.get("at") or f"messages[{n}].content[{i}]")
            if (source := image_of(part, path)) is not None:
                yield GivenImage(source, path, _detail(part, path) == "low")


def _detail(part: Mapping[str, Any], path: str) -> object:
    nested = part.get("image_url")
    detail = nested.get("detail") if isinstance(nested, Mapping) else part.get("detail")
    if detail not in (None, *DETAILS):
        raise InvalidArgumentError(
            f"{path}: detail: found {detail!r:.40}, expected one of {', '.join(DETAILS)}"
        )
    return detail


@dataclass(frozen=True)
class ShownImages:
    """The strings and rows that stand for the images of a conversation in its prompt.

    Attributes
    ----------
    marker : str
        The control token that a template writes where an image is.
    around : tuple of str
        Text before and after an image, for a template that knows of none.
    token : int
        Stands in the place of each of an image's rows.
    images : sequence
        The parts of each image, in the order of the messages.
    """

    marker: str
    around: tuple[str, str]
    token: int
    images: Sequence[Sequence[ImagePart]]

    def segments(self, n: int) -> Iterator[Segment]:
        """Yield what stands for image number `n`."""
        for part in self.images[n]:
            if isinstance(part, Run):
                yield RowsSegment("", ids=(self.token,) * part.count, run=part)
            else:
                yield Segment(part, parse_special=True)

    def placed(self, segments: Sequence[Segment], mark: str, *, bare: bool) -> list[Segment] | None:
        """The segments with the images in the places of `mark`; None where there are more or fewer of these.

        Parameters
        ----------
        segments
            The segments of a rendering.
        mark
            What stands for an image there: the marker, or any character.
        bare
            It is a character that the template knows nothing of: it is looked for in all segments, and what
            the family writes around an image is added.
        """
        found: list[Segment] = []
        n = 0
        for segment in segments:
            if not (bare or segment.parse_special):
                found.append(segment)
                continue
            texts = segment.text.split(mark)
            for i, text in enumerate(texts):
                if text:
                    found.append(Segment(text, segment.parse_special))
                if i == len(texts) - 1:
                    break
                if n == len(self.images):
                    return None
                before, after = self.around if bare else ("", "")
                found += [Segment(before, parse_special=True)] if before else []
                found += self.segments(n)
                found += [Segment(after, parse_special=True)] if after else []
                n += 1
        return found if n == len(self.images) else None


@dataclass(frozen=True, slots=True)
class RowsSegment(Segment):
    """Rows of an image in the place of tokens."""

    run: Run | None = None
