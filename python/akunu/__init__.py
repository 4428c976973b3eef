"""Akunu runs transformer models from GGUF files on the machine in front of you.

>>> import akunu
>>> with akunu.load("ember") as model:  # doctest: +SKIP
...     print(model.generate("The old clock", max_tokens=40))

`import akunu` itself is light: what a name needs is imported when the name is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from akunu.errors import (
    AkunuError,
    AudioError,
    BusyError,
    ContextLengthError,
    DeviceError,
    InvalidArgumentError,
    ModelFileError,
    TemplateError,
    TokenizerError,
    UnsupportedError,
)
from akunu.lazy_names import lazy_names

if TYPE_CHECKING:
    from akunu._core import devices
    from akunu.chat import ChatTemplate
    from akunu.chat.options import ChatOptions
    from akunu.conversion import convert
    from akunu.conversion.importance import ImportanceMatrix
    from akunu.encoders.model import EmbeddingModel
    from akunu.generation import BatchError, Completion, Piece, Stats, TokenLogprob
    from akunu.loading import load
    from akunu.memory import Memory
    from akunu.model import Model
    from akunu.options import GenerationOptions, Sampling
    from akunu.scheduling import ModelStats
    from akunu.session import Session
    from akunu.speech.segments import Segment
    from akunu.speech.transcript import Transcription
    from akunu.speech.whisper_model import WhisperModel
    from akunu.streams import AsyncStream, Stream
    from akunu.structured import StructuralTag, Tag
    from akunu.tokenizer import Tokenizer

__version__ = "0.1.0"

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
    "load",
]

_HOME: Final = {
    "AsyncStream": "akunu.streams",
    "BatchError": "akunu.generation",
    "ChatOptions": "akunu.chat.options",
    "ChatTemplate": "akunu.chat",
    "Completion": "akunu.generation",
    "EmbeddingModel": "akunu.encoders.model",
    "GenerationOptions": "akunu.options",
    "ImportanceMatrix": "akunu.conversion.importance",
    "Memory": "akunu.memory",
    "Model": "akunu.model",
    "ModelStats": "akunu.scheduling",
    "Piece": "akunu.generation",
    "Sampling": "akunu.options",
    "Segment": "akunu.speech.segments",
    "Session": "akunu.session",
    "Stats": "akunu.generation",
    "Stream": "akunu.streams",
    "StructuralTag": "akunu.structured",
    "Tag": "akunu.structured",
    "TokenLogprob": "akunu.generation",
    "Tokenizer": "akunu.tokenizer",
    "Transcription": "akunu.speech.transcript",
    "WhisperModel": "akunu.speech.whisper_model",
    "convert": "akunu.conversion",
    "devices": "akunu._core",
    "load": "akunu.loading",
}
"""The module of each name that is imported on first use."""


__getattr__ = lazy_names(__name__, _HOME, globals())


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
