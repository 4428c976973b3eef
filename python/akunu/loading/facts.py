"""Describe a model for a table: architecture, size and file type, as llama-bench does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from akunu.files.describe.filetypes import FILE_TYPE_NAMES

__all__ = ["ModelFacts", "Tensor", "model_facts", "size_label"]


@dataclass(frozen=True)
class ModelFacts:
    """The columns of a model in a table: `type` as "qwen3 0.6B Q4_0", bytes and number of its weights.

    `load_mode` is "mmap" for a file and "none" for weights that were made up.
    """

    filename: str
    type: str
    size: int
    n_params: int
    load_mode: str = "mmap"


class Tensor(Protocol):
    """The part of a tensor that counts: see `akunu._core.TensorEntry`."""

    @property
    def dtype(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def nbytes(self) -> int: ...


def size_label(n_params: int) -> str:
    """A number of parameters as model cards give it: "1.5B"."""
    return f"{n_params / 1e9:.1f}B" if n_params >= 1e9 else f"{n_params / 1e6:.3g}M"


def model_facts(
    filename: str, metadata: Mapping[str, object], tensors: Sequence[Tensor], load_mode: str = "mmap"
) -> ModelFacts:
    """Describe a model the way llama-bench does: architecture, size, file type."""
    n_params = sum(int(np.prod(tensor.shape, dtype=np.int64)) for tensor in tensors)
    label = metadata.get("general.size_label")
    label = " ".join(label.split()) if isinstance(label, str) else ""  # one line of a table
    if not label:
        label = size_label(n_params)
    file_type = metadata.get("general.file_type")
    kind = FILE_TYPE_NAMES.get(file_type) if isinstance(file_type, int) else None
    if file_type is None:  # a folder does not say
        types = {tensor.dtype for tensor in tensors if len(tensor.shape) > 1}
        kind = types.pop().upper() if len(types) == 1 else None
    architecture = metadata.get("general.architecture", "?")
    size = sum(tensor.nbytes for tensor in tensors)
    return ModelFacts(filename, f"{architecture} {label} {kind or 'mixed'}", size, n_params, load_mode)
