"""A model's files, opened: a GGUF file, or a folder of SafeTensors. What is loaded does not ask which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from akunu.base.errors import errors_of
from akunu.describe.config import resolve
from akunu.describe.encoder_modules import Modules, gguf_makes_vectors

if TYPE_CHECKING:
    from akunu._core import TensorEntry, TensorFiles
    from akunu.describe.config import GgufSource, ModelSpec
    from akunu.describe.quantized import Weight
    from akunu.tokenizer import Tokenizer

__all__ = ["GgufModel", "ModelFiles", "gguf_spec", "open_model"]


class ModelFiles(Protocol):
    """What `akunu.load` needs of a model's files."""

    @property
    def format(self) -> str:
        """The file format, for people."""

    @property
    def files(self) -> TensorFiles:
        """The tensors."""

    @property
    def weights(self) -> Sequence[TensorEntry | Weight]:
        """The tensors, those of a quantized matrix as one; as they are where they do not fit together."""

    @property
    def modules(self) -> Modules:
        """What the files of an embedding model say besides."""

    @property
    def metadata(self) -> Mapping[str, object]:
        """The model's name, chat template and recommended sampling, by the keys of GGUF; maybe more."""

    def spec(self, context: int | None = None) -> ModelSpec:
        """The model's numbers and the place of its tensors, for an engine of so many positions."""

    def tokenizer(self, n_tokens: int) -> Tokenizer | None:
        """The tokenizer of a model of `n_tokens` tokens, if there is one."""


class GgufModel:
    """An opened GGUF file."""

    def __init__(self, path: Path) -> None:
        from akunu import _core

        self._path = path
        self.files = _core.GgufFile(str(path))
        self.format = f"GGUF v{self.files.version}"
        self.metadata: Mapping[str, object] = self.files.metadata
        self.modules = Modules()

    @property
    def weights(self) -> Sequence[TensorEntry]:
        """Its tensors."""
        return self.files.tensors

    def spec(self, context: int | None = None) -> ModelSpec:
        """See `akunu.describe.config.resolve`."""
        with errors_of(self._path):
            return gguf_spec(self.files, context)

    def tokenizer(self, n_tokens: int) -> Tokenizer | None:
        """The tokenizer; None when the file says that it has no vocabulary."""
        if self.metadata.get("tokenizer.ggml.model") in (None, "none", "no_vocab"):
            return None
        from akunu.tokenizer import Tokenizer

        with errors_of(self._path):
            return Tokenizer.from_metadata(self.metadata)


def gguf_spec(gguf: GgufSource, context: int | None = None) -> ModelSpec:
    """The model of a GGUF file: see `akunu.describe.config.resolve`."""
    if gguf_makes_vectors(gguf.metadata):
        from akunu.describe.encoder_config import resolve_gguf_vectors

        return resolve_gguf_vectors(gguf, context=context)
    return resolve(gguf, context=context)


def open_model(path: Path) -> ModelFiles:
    """Open what `akunu.loading.finding.find_model` found.

    Raises
    ------
    ModelFileError, UnsupportedError
        A file is missing or damaged, or not of a kind that Akunu reads.
    """
    if path.is_dir():
        from akunu.files.folder import ModelFolder

        return ModelFolder(path)
    return GgufModel(path)
