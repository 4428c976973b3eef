"""Images in a terminal: files that are some, and paths that were typed or dragged into a message."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import click

from akunu.base.errors import ImageError
from akunu.cli.values import Integer

__all__ = ["content_of", "image_tokens_option", "is_image", "named_as_image", "named_in", "naming", "text_of"]

_BEGINNINGS: Final = re.compile(
    rb"\x89PNG\r\n|\xff\xd8\xff|GIF8[79]a|RIFF.{4}WEBP|BM.{4}\0\0\0\0|II\*\0|MM\0\*|.{4}ftypavi[fs]"
    rb"|\0\0\0\x0cjP  ",
    re.DOTALL,
)
_SUFFIXES: Final = re.compile(
    r"\.(a?png|jp[eg]|jpeg|jfif|gif|webp|bmp|dib|tiff?|avif|jp2|j2k|p[pgb]m|hei[cf]|ico|psd|raw|dng|xcf)",
    re.IGNORECASE,
)

image_tokens_option = click.option(
    "--image-tokens",
    type=Integer(min=1),
    metavar="N",
    help="Show an image in at most N tokens, where the model can be shown it in more or fewer: more for "
    "small print, fewer for speed. [default: the model's own number, or at most 1024]",
)


def is_image(path: str | os.PathLike[str]) -> bool:
    """Whether a file is an image, by how it begins."""
    try:
        with open(path, "rb") as file:
            return _BEGINNINGS.match(file.read(16)) is not None
    except (OSError, ValueError):
        return False


def named_as_image(path: str | os.PathLike[str]) -> bool:
    """Whether a file has the name of an image or of something like one, whatever is in it."""
    return _SUFFIXES.fullmatch(os.path.splitext(path)[1]) is not None and os.path.isfile(path)


def content_of(text: str, images: Sequence[str]) -> str | list[dict[str, Any]]:
    """The content of a message: images first, by their whole paths, so that it means the same elsewhere."""
    if not images:
        return text
    parts: list[dict[str, Any]] = [{"type": "image", "image": str(Path(name).absolute())} for name in images]
    return [*parts, {"type": "text", "text": text}]


@contextmanager
def naming(images: Sequence[str], number: int) -> Iterator[None]:
    """Say of an image of message `number` that cannot be shown which file it is, not which part."""
    try:
        yield
    except ImageError as error:
        place = re.match(rf"messages\[{number}\]\.content\[(\d+)\]: ", str(error))
        if place is None or int(place[1]) >= len(images):
            raise
        raise ImageError(f"{images[int(place[1])]}: {str(error)[place.end() :]}") from error


def text_of(content: object) -> str:
    """Return the text of a content, for people."""
    if not isinstance(content, list):
        return str(content)
    texts = (str(part.get("text", "[image]")) for part in content)
    return " ".join(text for text in texts if text)


def named_in(text: str) -> tuple[str, list[str]]:
    """A message without the paths of images in it, and these, as they are typed or as terminals drop them."""
    if "\n" in text or not re.search(r"\.\w{3,4}\b", text):
        return text, []
    lexer = shlex.shlex(text, posix=True, punctuation_chars=False)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        words = list(lexer)
    except ValueError:  # an apostrophe is no quote
        words = text.split()
    found = {word: path for word in words if (path := _image(word)) is not None}
    if not found:
        return text, []
    for word in found:
        # The path may stand in the line quoted, with backslashes before blanks, or plain.
        for spelt in (f"'{word}'", f'"{word}"', re.sub(r"([^\w@%+=:,./-])", r"\\\1", word), word):
            if spelt in text:
                text = text.replace(spelt, " ", 1)
                break
    return " ".join(text.split()), list(dict.fromkeys(found.values()))


def _image(word: str) -> str | None:
    """The path of the image that a word names, if there is one."""
    if word.startswith("file://"):
        word = unquote(urlsplit(word).path)
    path = os.path.expanduser(word)
    return path if os.path.splitext(path)[1] and is_image(path) else None
