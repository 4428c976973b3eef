"""A model's files, opened: a GGUF file, or a folder of SafeTensors. What is loaded does not ask which."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from akunu.base.errors import errors_of
from akunu.files.describe.architectures import ARCHITECTURES
from akunu.files.describe.encoder_modules import Modules, gguf_makes_vectors
from akunu.files.describe.gguf_config import resolve

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from akunu._core import TensorEntry, TensorFiles
    from akunu.files.describe.config import ModelSpec
    from akunu.files.describe.gguf_rotary import GgufSource
    from akunu.files.describe.quantized import Weight
    from akunu.tokenizer import Tokenizer

__all__ = ["TOWERS", "GgufModel", "ModelFiles", "gguf_spec", "open_model"]

TOWERS: Final = ("v.*", "a.*", "mm.*", "resampler.*")
"""Tensors of what sees and hears, in files that hold the model of text beside it, as Ollama's do."""


class ModelFiles(Protocol):
    """The part of a model's files that `akunu.load` needs."""

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
        """The modules that the files of an embedding model name besides."""

    @property
    def metadata(self) -> Mapping[str, object]:
        """The model's name, chat template and recommended sampling, by the keys of GGUF; maybe more."""

    def override(self, keys: Mapping[str, object], scaling: Mapping[str, Any]) -> None:
        """Take other values for these keys, and another rotary scaling, than the files have.

        Raises
        ------
        UnsupportedError
            The files have no such keys.
        """

    def spec(
        self, context: int | None = None, *, sees: bool = False, drafts: bool | None = False
    ) -> ModelSpec:
        """The model's numbers and the place of its tensors, for an engine of so many positions.

        Where it `sees`, its tower is loaded beside it, and nothing is said of the tower's tensors. `drafts`:
        with the head that drafts, if it has one; None: without it, which is warned of.
        """

    def tokenizer(self, n_tokens: int) -> Tokenizer | None:
        """The tokenizer of a model of `n_tokens` tokens, if there is one."""


@dataclass(frozen=True)
class _Source:
    """A GGUF file with other metadata."""

    metadata: Mapping[str, object]
    file: TensorFiles

    @property
    def tensors(self) -> Sequence[TensorEntry]:
        return self.file.tensors

    def tensor_bytes(self, name: str) -> npt.NDArray[np.uint8]:
        return self.file.tensor_bytes(name)


class GgufModel:
    """An opened GGUF file."""

    def __init__(self, path: Path) -> None:
        from akunu import _core

        self._path = path
        file = _core.GgufFile(str(path))
        self.files: TensorFiles = file
        self.format = f"GGUF v{file.version}"
        self.metadata: Mapping[str, object] = file.metadata
        labels = self.metadata.get(f"{self.metadata.get('general.architecture')}.classifier.output_labels")
        self.modules = Modules(labels=tuple(map(str, labels)) if isinstance(labels, list) else ())
        self._noticed = False

    def override(self, keys: Mapping[str, object], scaling: Mapping[str, Any]) -> None:
        """Take other values for these keys, and another rotary scaling, than the file has."""
        self.metadata = {**self.metadata, **keys}
        if scaling:
            from akunu.files.overrides import gguf_scaling

            self.metadata = {**self.metadata, **gguf_scaling(self.metadata, scaling)}

    def join_head(self, other: GgufModel) -> bool:
        """Take the head that drafts from another file, if that has one for this model and nothing else."""
        from akunu import _core

        arch = self.metadata.get("general.architecture")
        keys = [f"{arch}.block_count", f"{arch}.nextn_predict_layers"]
        layers, heads = (other.metadata.get(key) for key in keys)
        if not (isinstance(layers, int) and isinstance(heads, int) and 0 < heads < layers):
            return False
        prefix = f"blk.{layers - heads}."
        if any(t.name.startswith("blk.") and not t.name.startswith(prefix) for t in other.files.tensors):
            return False
        self.files = _core.JoinedFiles(self.files, other.files, prefix)
        self.metadata = {**self.metadata, keys[0]: layers, keys[1]: heads}
        return True

    @property
    def weights(self) -> Sequence[TensorEntry]:
        """The tensors of the file."""
        return self.files.tensors

    def spec(
        self, context: int | None = None, *, sees: bool = False, drafts: bool | None = False
    ) -> ModelSpec:
        """See `akunu.files.describe.gguf_config.resolve`."""
        with errors_of(self._path):
            spec = gguf_spec(_Source(self.metadata, self.files), context, drafts=drafts)
        if not sees and not self._noticed and any(map(_is_of_a_tower, self.files.tensors)):
            self._noticed = True
            warnings.warn(
                f"{self._path.name} has a tower for pictures or sounds, which is left out: it reads text",
                RuntimeWarning,
                stacklevel=4,
            )
        return spec

    def tokenizer(self, n_tokens: int) -> Tokenizer | None:
        """The tokenizer; None when the file says that it has no vocabulary."""
        if self.metadata.get("tokenizer.ggml.model") in (None, "none", "no_vocab"):
            return None
        from akunu.tokenizer import Tokenizer

        metadata = self.metadata
        row = ARCHITECTURES.get(str(metadata.get("general.architecture")))
        # Ollama's converters do not know how each vocabulary cuts a text.
        if row is not None and row.pre_tokenizer and metadata.get("tokenizer.ggml.pre") == "default":
            metadata = {**metadata, "tokenizer.ggml.pre": row.pre_tokenizer}
        with errors_of(self._path):
            return Tokenizer.from_metadata(metadata)


def gguf_spec(gguf: GgufSource, context: int | None = None, *, drafts: bool | None = False) -> ModelSpec:
    """The model of a GGUF file: see `akunu.files.describe.gguf_config.resolve`."""
    if gguf_makes_vectors(gguf.metadata) or any(
        tensor.name == "cls.output.weight" for tensor in gguf.tensors
    ):
        from akunu.files.describe.encoder_config import resolve_gguf_vectors

        return resolve_gguf_vectors(gguf, context=context)
    return resolve(gguf, context=context, ignored=TOWERS, drafts=drafts)


def _is_of_a_tower(tensor: TensorEntry) -> bool:
    return any(fnmatchcase(tensor.name, pattern) for pattern in TOWERS)


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
