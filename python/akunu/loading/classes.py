"""The classes of models as `akunu` has them: one that is called with a name loads it."""

from __future__ import annotations

from typing import Final

from akunu.api.base_model import Loading
from akunu.base.lazy_names import lazy_names
from akunu.loading.load import load

__all__ = ["EmbeddingModel", "Model", "WhisperModel"]  # noqa: F822  # found on first use

Loading.load = staticmethod(load)

_HOME: Final = {
    "EmbeddingModel": "akunu.api.encoders.model",
    "Model": "akunu.api.model",
    "WhisperModel": "akunu.speech.whisper_model",
}

__getattr__ = lazy_names(__name__, _HOME, globals())
