"""Every error that Akunu raises on purpose, but for `akunu.api.results.BatchError`, which holds texts.

A message names the thing (tensor, key, field), what was found, what was expected and, where there
is one, the remedy.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = [
    "AkunuError",
    "AudioError",
    "BusyError",
    "ContextLengthError",
    "DeviceError",
    "InvalidArgumentError",
    "ModelFileError",
    "TemplateError",
    "TokenizerError",
    "UnsupportedError",
    "errors_of",
]


class AkunuError(Exception):
    """Base of all errors that Akunu raises on purpose."""


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


class InvalidArgumentError(AkunuError, ValueError):
    """An argument is out of range or not supported."""


class AudioError(AkunuError):
    """A recording is missing, unreadable, damaged, cut off or empty."""


class BusyError(AkunuError, TimeoutError):
    """A model did not become free within `wait_timeout`."""


class DeviceError(AkunuError):
    """A device is missing, out of memory, or failed."""


@contextmanager
def errors_of(path: object) -> Iterator[None]:
    """Within it, an error about what a model's files say begins with their path."""
    try:
        yield
    except (ModelFileError, UnsupportedError, TokenizerError) as error:
        raise type(error)(f"{path}: {error}") from error
