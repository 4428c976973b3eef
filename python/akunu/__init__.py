"""Akunu runs transformer models from GGUF files on the machine in front of you.

>>> import akunu
>>> with akunu.load("ember") as model:  # doctest: +SKIP
...     print(model.generate("The old clock", max_tokens=40))

`import akunu` itself is light: what a name needs is imported when the name is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from akunu.base.errors import (
    AkunuError,
    AudioError,
    BusyError,
    ContextLengthError,
    DeviceError,
    ImageError,
    InvalidArgumentError,
    ModelFileError,
    TemplateError,
    TokenizerError,
    UnsupportedError,
)
from akunu.base.lazy_names import lazy_names
from akunu.base.version import __version__

if TYPE_CHECKING:
    from akunu._core import devices
    from akunu.api.chat_options import ChatOptions
    from akunu.api.encoders.model import EmbeddingModel
    from akunu.api.model import Model
    from akunu.api.options import GenerationOptions
    from akunu.api.results import BatchError, Completion, Piece, Stats, TokenLogprob
    from akunu.api.scheduling import ModelStats
    from akunu.api.session import Session
    from akunu.api.streams import AsyncStream, Stream
    from akunu.base.memory import Memory
    from akunu.chat import ChatTemplate
    from akunu.chat.structured import StructuralTag, Tag
    from akunu.files.describe.sampling import Sampling
    from akunu.files.importance import ImportanceMatrix
    from akunu.loading.conversion import convert
    from akunu.loading.load import from_pretrained, load
    from akunu.speech.segments import Segment
    from akunu.speech.transcript import Transcription
    from akunu.speech.whisper_model import WhisperModel
    from akunu.tokenizer import Tokenizer

__all__ = [
    "AkunuError",
    "AsyncStream",
    "AudioError",
    "BatchError",
    "BusyError",
    "ChatOptions",
    "ChatTemplate",
    "Completion",
    "ContextLengthError",
    "DeviceError",
    "EmbeddingModel",
    "GenerationOptions",
    "ImageError",
    "ImportanceMatrix",
    "InvalidArgumentError",
    "Memory",
    "Model",
    "ModelFileError",
    "ModelStats",
    "Piece",
    "Sampling",
    "Segment",
    "Session",
    "Stats",
    "Stream",
    "StructuralTag",
    "Tag",
    "TemplateError",
    "TokenLogprob",
    "Tokenizer",
    "TokenizerError",
    "Transcription",
    "UnsupportedError",
    "WhisperModel",
    "__version__",
    "convert",
    "devices",
    "from_pretrained",
    "load",
]

_HOME: Final = {
    "AsyncStream": "akunu.api.streams",
    "BatchError": "akunu.api.results",
    "ChatOptions": "akunu.api.chat_options",
    "ChatTemplate": "akunu.chat",
    "Completion": "akunu.api.results",
    "EmbeddingModel": "akunu.loading.classes",
    "GenerationOptions": "akunu.api.options",
    "ImportanceMatrix": "akunu.files.importance",
    "Memory": "akunu.base.memory",
    "Model": "akunu.loading.classes",
    "ModelStats": "akunu.api.scheduling",
    "Piece": "akunu.api.results",
    "Sampling": "akunu.files.describe.sampling",
    "Segment": "akunu.speech.segments",
    "Session": "akunu.api.session",
    "Stats": "akunu.api.results",
    "Stream": "akunu.api.streams",
    "StructuralTag": "akunu.chat.structured",
    "Tag": "akunu.chat.structured",
    "TokenLogprob": "akunu.api.results",
    "Tokenizer": "akunu.tokenizer",
    "Transcription": "akunu.speech.transcript",
    "WhisperModel": "akunu.loading.classes",
    "convert": "akunu.loading.conversion",
    "devices": "akunu._core",
    "from_pretrained": "akunu.loading.load",
    "load": "akunu.loading.load",
}
"""The module of each name that is imported on first use."""


__getattr__ = lazy_names(__name__, _HOME, globals())


def __dir__() -> list[str]:
    return sorted(__all__)
