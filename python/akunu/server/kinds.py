"""The kinds of models that a server holds, and which routes take which."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from akunu.base.errors import AkunuError
from akunu.loading.options import OF_SPEECH, OF_TEXT, OF_VECTORS

if TYPE_CHECKING:
    from akunu.api.scheduling import ModelStats
    from akunu.base.memory import Memory

__all__ = ["EMBEDDING", "KINDS", "RERANKER", "SPEECH", "TEXT", "Kind", "ServedModel", "kind_of", "thinks"]


class ServedModel(Protocol):
    """The part of a model of any kind that the server needs."""

    @property
    def device(self) -> str:
        """Name of the device that it runs on."""

    @property
    def context(self) -> int:
        """Most tokens of a sequence."""

    @property
    def memory(self) -> Memory:
        """Bytes that it uses."""

    @property
    def stats(self) -> ModelStats:
        """The counts of the model; its `steps` grow while it gets on."""

    def cancel(self) -> None:
        """End what runs."""

    def close(self) -> None:
        """Free its memory."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of model.

    Attributes
    ----------
    name : str
        What such a model is.
    routes : str
        Where requests for it go.
    settings : tuple of str
        Arguments of `akunu.load` that have a meaning for it.
    has : callable
        Whether a model is of this kind.
    """

    name: str
    routes: str
    settings: tuple[str, ...]
    has: Callable[[object], bool]


# The classes are imported once there is a model: a load may begin before (`akunu.server.preloading`).
def _makes_vectors(model: object, task: str) -> bool:
    from akunu.api.encoders.model import EmbeddingModel

    encoder = model.config.encoder if isinstance(model, EmbeddingModel) else None
    return encoder is not None and encoder.task == task


def _writes_text(model: object) -> bool:
    from akunu.api.model import Model

    return isinstance(model, Model)


def _transcribes(model: object) -> bool:
    from akunu.speech.whisper_model import WhisperModel

    return isinstance(model, WhisperModel)


EMBEDDING: Final = Kind(
    "an embedding model", "/v1/embeddings", OF_VECTORS, lambda model: _makes_vectors(model, "embed")
)
RERANKER: Final = Kind("a reranker", "/v1/rerank", OF_VECTORS, lambda model: _makes_vectors(model, "rank"))
TEXT: Final = Kind(
    "a text model",
    "/v1/chat/completions and /v1/completions",
    OF_TEXT,
    _writes_text,
)
SPEECH: Final = Kind(
    "a speech model",
    "/v1/audio/transcriptions and /v1/audio/translations",
    OF_SPEECH,
    _transcribes,
)

KINDS: Final = (TEXT, EMBEDDING, RERANKER, SPEECH)


def kind_of(model: ServedModel) -> Kind:
    """The kind of a loaded model."""
    return next(kind for kind in KINDS if kind.has(model))


def thinks(model: Any) -> bool:
    """Whether a text model can think before it answers."""
    try:
        return bool(model.chat_template.reasons)
    except AkunuError:  # it has no template
        return False
