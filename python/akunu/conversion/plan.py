"""What a GGUF file will hold: its keys, and where the values of each tensor come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from akunu.architectures import ARCHITECTURES, ROPE_TENSORS, TensorRule
from akunu.config import ModelSpec
from akunu.conversion.gguf_bytes import stored_metadata
from akunu.conversion.hf_metadata import model_metadata
from akunu.conversion.importance import ImportanceMatrix
from akunu.conversion.tokenizer_metadata import tokenizer_metadata
from akunu.filetypes import FILE_TYPES, tensor_dtype
from akunu.folder import ModelFolder
from akunu.model_files import ModelFiles
from akunu.tensor_map import TensorRef

__all__ = ["Plan", "PlannedTensor", "plan_gguf", "quantized_types"]

_QUANTIZATION_VERSION = 2
"""Of the layouts of blocks; GGUF's readers refuse others."""

_SPLIT = "split."


@dataclass(frozen=True, eq=False)
class PlannedTensor:
    """A tensor of the new file.

    Attributes
    ----------
    source
        Where it begins in the old files; None where there are `values`. Its `add` is added to every element.
    heads
        For rows of so many heads, whose halves rotate together: they become adjacent pairs. 0: as they are.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    source: TensorRef | None = None
    heads: int = 0
    values: npt.NDArray[np.float32] | None = None


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything of a GGUF file but its weights."""

    metadata: Mapping[str, object]
    tensors: tuple[PlannedTensor, ...]


def plan_gguf(model: ModelFiles, file_type: str, imatrix: ImportanceMatrix | None = None) -> Plan:
    """The GGUF file of a model with the weights of a file type.

    Raises
    ------
    UnsupportedError
        GGUF has no way to say what the model is.
    """
    spec = model.spec()
    metadata, tensors = _of_folder(model, spec) if isinstance(model, ModelFolder) else _of_gguf(model, spec)
    types: dict[str, object] = {"general.file_type": FILE_TYPES[file_type].id}
    if FILE_TYPES[file_type].dtype not in ("f32", "f16", "bf16"):
        types["general.quantization_version"] = _QUANTIZATION_VERSION
    weighted = imatrix is not None
    if imatrix is not None:
        imatrix.check([tensor.name for tensor in tensors])
        types |= {
            "quantize.imatrix.dataset": " ".join(imatrix.texts),
            "quantize.imatrix.entries_count": len(imatrix.means),
            "quantize.imatrix.chunks_count": imatrix.windows,
        }
    return Plan(metadata | types, tuple(_typed(tensor, file_type, spec, weighted) for tensor in tensors))


def quantized_types(spec: ModelSpec, file_type: str) -> dict[str, str]:
    """The type of each matrix of a model in a file of this type, by canonical name."""
    found = {}
    for rule in ARCHITECTURES[spec.config.arch].tensors:
        for layer in range(spec.config.n_layers if "{n}" in rule.source else 1):
            prefix = f"layers.{layer}." if "{n}" in rule.source else ""
            for name, _ in rule.parts:
                ref = spec.tensors.get(prefix + name)
                if ref is not None and ref.n_cols:
                    source = rule.source.replace("{n}", str(layer))
                    found[prefix + name] = _matrix_type(source, ref.n_cols, file_type, spec)
    return found


def _matrix_type(name: str, n_cols: int, file_type: str, spec: ModelSpec, weighted: bool = False) -> str:
    """The type that the mix has for a matrix of this name in GGUF."""
    config = spec.config
    layer, stem = 0, name.removesuffix(".weight")
    if stem.startswith("blk."):
        _, number, stem = stem.split(".", 2)
        layer = int(number)
    return tensor_dtype(
        file_type,
        stem,
        layer=layer,
        n_layers=config.n_layers,
        cols=n_cols,
        gqa=config.n_heads // config.n_kv_heads,
        tied="output" not in spec.tensors,
        weighted=weighted,
    )


def _typed(tensor: PlannedTensor, file_type: str, spec: ModelSpec, weighted: bool) -> PlannedTensor:
    """The tensor with the type that the mix has for it; vectors stay floats of 32 bits."""
    if len(tensor.shape) != 2 or tensor.source is None:
        return tensor
    return replace(tensor, dtype=_matrix_type(tensor.name, tensor.shape[1], file_type, spec, weighted))


def _of_folder(folder: ModelFolder, spec: ModelSpec) -> tuple[dict[str, object], list[PlannedTensor]]:
    config = spec.config
    metadata, divisors = model_metadata(folder, spec)
    metadata |= tokenizer_metadata(folder.path, folder.tokenizer(config.vocab_size))
    pairs = ARCHITECTURES[config.arch].rope_style == "interleaved" and config.rope_style == "half"
    heads = {"attn_q": config.n_heads, "attn_k": config.n_kv_heads} if pairs else {}

    def planned(rule: TensorRule, layer: int) -> PlannedTensor | None:
        prefix = f"layers.{layer}." if "{n}" in rule.source else ""
        refs = [spec.tensors.get(prefix + name) for name, _ in rule.parts]
        ref = refs[0]
        if ref is None:
            return None
        rows = sum(part.n_rows for part in refs if part is not None)
        return PlannedTensor(
            rule.source.replace("{n}", str(layer)),
            (rows, ref.n_cols) if ref.n_cols else (rows,),
            "f32",
            ref,
            heads.get(rule.parts[0][0].removesuffix("_bias"), 0),
        )

    rules = ARCHITECTURES[config.arch].tensors
    whole = [planned(rule, 0) for rule in rules if "{n}" not in rule.source]
    rotary = [PlannedTensor(name, v.shape, "f32", values=v) for name, v in divisors.items()]
    layers = [planned(rule, n) for n in range(config.n_layers) for rule in rules if "{n}" in rule.source]
    return metadata, [tensor for tensor in (*whole, *rotary, *layers) if tensor is not None]


def _of_gguf(model: ModelFiles, spec: ModelSpec) -> tuple[dict[str, object], list[PlannedTensor]]:
    metadata: dict[str, object] = dict(stored_metadata(Path(model.files.paths[0])))
    for key in [key for key in metadata if key.startswith(_SPLIT) or key == "general.alignment"]:
        del metadata[key]
    tensors = []
    for tensor in model.files.tensors:
        ref = TensorRef(tensor.name, 0, tensor.shape[0], 0)
        planned = PlannedTensor(tensor.name, tensor.shape, "f32", ref)
        if tensor.name in ROPE_TENSORS:
            values = np.frombuffer(model.files.tensor_bytes(tensor.name).tobytes(), "<f4")
            planned = PlannedTensor(tensor.name, tensor.shape, "f32", values=values)
        tensors.append(planned)
    return metadata, tensors
