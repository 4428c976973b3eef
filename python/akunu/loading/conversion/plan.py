"""Plan a GGUF file: its keys, and where the values of each tensor come from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np
import numpy.typing as npt

from akunu.base.errors import UnsupportedError
from akunu.files.describe.architectures import ARCHITECTURES
from akunu.files.describe.blocks import Attention, LatentAttention
from akunu.files.describe.config import ModelConfig, ModelSpec
from akunu.files.describe.config_keys import ROPE_TENSORS
from akunu.files.describe.encoder_rows import ENCODERS
from akunu.files.describe.file_tensors import matrix_type, model_tensors
from akunu.files.describe.filetypes import FILE_TYPES
from akunu.files.describe.quantized import take_factors
from akunu.files.describe.tensor_map import TensorRef, by_name
from akunu.files.describe.tensor_rules import RopeStyle, TensorRule
from akunu.files.folder import ModelFolder
from akunu.files.gguf_bytes import stored_metadata
from akunu.files.importance import ImportanceMatrix
from akunu.files.model_files import ModelFiles, gguf_spec
from akunu.loading.conversion.hf_metadata import gguf_arch, model_metadata
from akunu.loading.conversion.planned import PlannedTensor, arranged, is_matrix
from akunu.loading.conversion.read_back import refuse_difference
from akunu.loading.conversion.tokenizer_metadata import tokenizer_metadata
from akunu.tokenizer import Tokenizer

__all__ = ["Plan", "plan_gguf", "rotated_heads"]

_QUANTIZATION_VERSION = 2
"""Version of the layouts of blocks; GGUF's readers refuse others."""

_SPLIT = "split."


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything of a GGUF file but its weights."""

    metadata: Mapping[str, object]
    tensors: tuple[PlannedTensor, ...]

    def tensor_bytes(self, name: str) -> npt.NDArray[np.uint8]:
        """The bytes of a tensor that has `values`: with this a plan can be read like the file."""
        values = next(tensor.values for tensor in self.tensors if tensor.name == name)
        assert values is not None
        return values.astype("<f4").view(np.uint8)


def plan_gguf(model: ModelFiles, file_type: str, imatrix: ImportanceMatrix | None = None) -> Plan:
    """The GGUF file of a model with the weights of a file type.

    Raises
    ------
    UnsupportedError
        GGUF has no way to say what the model is.
    """
    spec = model.spec(drafts=None)
    if isinstance(model, ModelFolder):
        _refuse_unknown(spec)
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
    plan = Plan(metadata | types, tuple(_typed(tensor, file_type, spec, weighted) for tensor in tensors))
    if isinstance(model, ModelFolder):
        for context in (None, 1):
            wanted = model.spec(context).config
            wanted = replace(wanted, arch=gguf_arch(wanted))
            if (inputs := wanted.layer_inputs) is not None:  # see `_for_all_tokens`
                rows = max(inputs.vocab_size, wanted.vocab_size)
                wanted = replace(wanted, layer_inputs=replace(inputs, vocab_size=rows))
            what = f"a GGUF file of a {wanted.arch} model"
            but = ("attention.q_gain",)  # which is in tensors then
            refuse_difference(wanted, gguf_spec(plan, context).config, model.path, what, but=but)
        if wanted.encoder is not None and wanted.encoder.task == "rank" and wanted.bidirectional:
            _check_pairs(model, plan, wanted)
    return plan


def _refuse_unknown(spec: ModelSpec) -> None:
    """Raise for an encoder that GGUF has no name for, and for latents whose keys it turns otherwise."""
    if spec.config.mixers(LatentAttention) and spec.config.rope_style != "interleaved":
        raise UnsupportedError(
            "config.json: rope_interleave: found false, which GGUF has no key for: there neighbours in a key "
            "rotate together; convert to a folder (--type mlx-…), or load it as it is"
        )
    row = ENCODERS.get(spec.config.arch)
    if row is not None and not row.in_gguf:
        raise UnsupportedError(
            f"a {spec.config.arch} model cannot be a GGUF file: llama.cpp and its converter do not know it; "
            "convert to a folder (--type mlx-…), or load it as it is"
        )


def _check_pairs(folder: ModelFolder, plan: Plan, config: ModelConfig) -> None:
    """Raise where a query and a document of the GGUF file would become one text in another way."""
    tokenizer = folder.tokenizer(config.vocab_size)
    if tokenizer is None:
        return
    wanted, found = (_pair(each, config) for each in (tokenizer, Tokenizer.from_metadata(plan.metadata)))
    if found != wanted:
        raise UnsupportedError(
            f"{folder.path / 'tokenizer.json'}: tokens between two texts, and kinds of rows: found {wanted}, "
            f"which a GGUF file of a {config.arch} model cannot say; it would be {found}; "
            "convert to a folder (--type mlx-…)"
        )


def _pair(tokenizer: Tokenizer, config: ModelConfig) -> tuple[int, int]:
    """Return how many tokens stand between the texts of a pair, and how many kinds of rows it has."""
    pair = tokenizer.template.pair
    return len(pair.between), min(max(config.kinds, 1), 2 if pair.first_kind is not None else 1)


def rotated_heads(rule: TensorRule, spec: ModelSpec, folder_style: RopeStyle) -> int:
    """Return how many heads have rows in a tensor whose order is another in a folder; 0: it is the same.

    `folder_style`: which elements of a head rotate together there.
    """
    row = ARCHITECTURES.get(spec.config.arch)  # encoders have none
    if row is None or row.rope_style != "interleaved" or folder_style != "half":
        return 0
    heads = {"attn_q": spec.config.n_heads, "attn_k": spec.config.n_kv_heads}
    return heads.get(rule.parts[0][0].removesuffix("_bias"), 0)


def _typed(tensor: PlannedTensor, file_type: str, spec: ModelSpec, weighted: bool) -> PlannedTensor:
    """The tensor with the type that the mix has for it; vectors stay floats of 32 bits."""
    if not tensor.matrix:
        return tensor
    return replace(tensor, dtype=matrix_type(tensor.name, tensor.shape[-1], file_type, spec, weighted))


def _of_folder(folder: ModelFolder, spec: ModelSpec) -> tuple[dict[str, object], list[PlannedTensor]]:
    config = spec.config
    metadata, divisors = model_metadata(folder, spec)
    metadata |= tokenizer_metadata(folder.path, folder.tokenizer(config.vocab_size))
    tensors = [PlannedTensor(name, v.shape, "f32", values=v) for name, v in divisors.items()]
    row = ARCHITECTURES.get(config.arch)
    grouped = row is None or row.value_heads_grouped
    for rule, layer in model_tensors(spec):
        if not rule.source:
            continue
        heads = rotated_heads(rule, spec, config.rope_style)
        planned = arranged(rule, layer, spec, grouped=grouped, rotated=heads)
        if planned is None:
            continue
        if rule.folder_only:
            raise UnsupportedError(
                f"tensor {planned.sources[0].source}: llama.cpp knows no such tensor of a {config.arch} "
                "model; convert to a folder (--type mlx-…)"
            )
        planned = _for_all_tokens(rule, planned, config.vocab_size)
        name, shape = rule.source.replace("{n}", str(layer)), planned.shape
        if rule.parts[0][1] == "one" and rule.cols is not None:  # llama.cpp's matrices of one row are vectors
            shape = shape[1:]
        tensors.append(replace(planned, name=name, shape=shape))
    return metadata, tensors + _constant_norms(config)


def _constant_norms(config: ModelConfig) -> list[PlannedTensor]:
    """The norms of q and k that have no weights in a folder."""
    found = []
    for block in config.blocks:
        if isinstance(block.mixer, Attention) and block.mixer.q_gain:
            for part, gain in (("q", block.mixer.q_gain), ("k", 1.0)):
                values = np.full(block.mixer.head_dim, gain, np.float32)
                name = f"blk.{block.layer}.attn_{part}_norm.weight"
                found.append(PlannedTensor(name, values.shape, "f32", values=values))
    return found


def _for_all_tokens(rule: TensorRule, planned: PlannedTensor, vocab_size: int) -> PlannedTensor:
    """The tensor with a row for each token, where it is a table of layer inputs that lacks some.

    These have its first row. llama.cpp wants as many rows as there are tokens.
    """
    rows = planned.shape[0]
    if rule.parts[0][0] != "layer_input_table" or rows >= vocab_size:
        return planned
    order = np.concatenate([np.arange(rows), np.zeros(vocab_size - rows, np.intp)])
    return replace(planned, shape=(vocab_size, *planned.shape[1:]), order=order)


def _of_gguf(model: ModelFiles, spec: ModelSpec) -> tuple[dict[str, object], list[PlannedTensor]]:
    metadata: dict[str, object] = dict(stored_metadata(Path(model.files.paths[0])))
    for key in [key for key in metadata if key.startswith(_SPLIT) or key == "general.alignment"]:
        del metadata[key]
    row = ARCHITECTURES.get(spec.config.arch)
    beside = tuple(row.left_out) if row is not None else ()
    kept, factors = take_factors(by_name(model.files.tensors))
    tensors = []
    for tensor in model.files.tensors:
        name, shape = tensor.name, tensor.shape
        if name not in kept:  # a part of its weight
            continue
        if name in ROPE_TENSORS:
            values = np.frombuffer(model.files.tensor_bytes(name).tobytes(), "<f4")
            tensors.append(PlannedTensor(name, shape, "f32", values=values))
        elif any(fnmatchcase(name, pattern) for pattern in beside):
            tensors.append(PlannedTensor(name, shape, tensor.dtype))
        else:
            n_cols = shape[-1] if is_matrix(name, shape) else 0
            rows = math.prod(shape) // (n_cols or 1)
            ref = TensorRef(name, 0, rows, n_cols, factor=factors.get(name, ""))
            tensors.append(PlannedTensor(name, shape, "f32", (ref,)))
    return metadata, tensors
