"""Every error that Akunu raises on purpose, but for `akunu.api.results.BatchError`, which holds texts.

A message names the thing (tensor, key, field), what was found, what was expected and, where there
is one, the remedy. One about an argument begins with the argument's name and a colon.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Self

__all__ = [
    "AkunuError",
    "AudioError",
    "BusyError",
    "ContextLengthError",
    "DeviceError",
    "ImageError",
    "InvalidArgumentError",
    "ModelFileError",
    "TemplateError",
    "TokenizerError",
    "UnsupportedError",
    "errors_of",
]


_ARGUMENTS: Final = re.compile(
    r"(?P<one>[A-Za-z_]\w*)(?P<place>(?:\[\d+\][\w.\[\]]*)?)(?=: )"
    r"|(?P<two>\w+) and (?P<other>\w+)(?= exclude each other)"
)
_SIZES: Final = re.compile(
    r"the prompt has (?:at least )?(?P<tokens>\d+) tokens, the context holds (?P<context>\d+)"
    r"(?P<remedy>[^\n]*)"
)


class AkunuError(Exception):
    """Base of all errors that Akunu raises on purpose."""

    @property
    def argument(self) -> str | None:
        """The argument that the error is about, such as "top_k" or "messages[2].content", or None.

        A message about a file may begin with a word and a colon too: ask an `InvalidArgumentError`.
        """
        found = _ARGUMENTS.match(str(self))
        return found and found[0].partition(" and ")[0]

    def renamed(self, name: Callable[[str], str]) -> Self:
        """Return the error; what its message begins with is called `name(argument)`."""
        text = str(self)
        found = _ARGUMENTS.match(text)
        if found is None:
            return self
        if found["one"] is None:
            return type(self)(f"{name(found['two'])} and {name(found['other'])}{text[found.end() :]}")
        return type(self)(name(found["one"]) + found["place"] + text[found.end() :])


class ModelFileError(AkunuError):
    """A model file is missing, truncated, damaged or inconsistent."""


class UnsupportedError(AkunuError):
    """A file is well formed, but uses a type, architecture or feature that Akunu does not know."""


class TokenizerError(AkunuError):
    """Tokenizer metadata is missing or inconsistent, or a text cannot be encoded."""


class TemplateError(AkunuError):
    """A chat template is missing, does not compile, or refuses the messages."""


class ContextLengthError(AkunuError):
    """A prompt does not fit the context; the message states both numbers."""

    @property
    def sizes(self) -> tuple[int, int, str] | None:
        """Tokens of the prompt, tokens that the context holds, and the remedy; None where it is no prompt."""
        found = _SIZES.search(str(self))
        return found and (int(found["tokens"]), int(found["context"]), found["remedy"].strip(";, "))


class InvalidArgumentError(AkunuError, ValueError):
    """An argument is out of range or not supported."""


class AudioError(AkunuError):
    """A recording is missing, unreadable, damaged, cut off or empty."""


class ImageError(AkunuError):
    """An image is missing, unreadable, damaged, cut off, empty or too large."""


class BusyError(AkunuError, TimeoutError):
    """A model did not become free within `wait_timeout`."""


class DeviceError(AkunuError):
    """A device is missing, out of memory, or failed."""


@contextmanager
def errors_of(path: object) -> Iterator[None]:
    """Begin the messages of errors about a model's files with their path, once."""
    try:
        yield
    except (ModelFileError, UnsupportedError, TokenizerError) as error:
        if str(error).startswith(f"{path}: "):
            raise
        raise type(error)(f"{path}: {error}") from error
