"""Plan a folder of SafeTensors: its tensors, its configuration, and its other files."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from akunu.base.errors import UnsupportedError
from akunu.files.describe.architectures import ARCHITECTURES
from akunu.files.describe.config import ModelSpec
from akunu.files.describe.encoder_modules import DENSE
from akunu.files.describe.encoder_rows import ENCODERS
from akunu.files.describe.expert_rules import is_expert_name, mlx_rules
from akunu.files.describe.file_tensors import model_rules, model_tensors
from akunu.files.describe.filetypes import MlxType
from akunu.files.describe.hf_row import HfModel
from akunu.files.describe.quantized import Matrix, join_planes, with_planes
from akunu.files.describe.tensor_map import TensorInfo, TensorRef, by_name
from akunu.files.describe.tensor_rules import TensorRule
from akunu.files.folder import MODEL_FILES, ModelFolder
from akunu.files.model_files import GgufModel, ModelFiles
from akunu.loading.conversion.encoder_folder import (
    DENSE_FOLDERS,
    module_files,
    modules_of,
    tensor_name,
    vectors_config,
)
from akunu.loading.conversion.folder_config import (
    check_folder_config,
    folder_config,
    folder_generation,
    folder_model_type,
)
from akunu.loading.conversion.folder_tokenizer import folder_tokenizer
from akunu.loading.conversion.plan import rotated_heads
from akunu.loading.conversion.planned import PlannedTensor, arranged, is_matrix
from akunu.loading.conversion.source_rows import Source

__all__ = ["FolderPlan", "plan_folder"]

_FLOATS: Final = {"f32": "float32", "f16": "float16", "bf16": "bfloat16"}
"""Types of floats, and their names in `config.json`."""
_HEAD: Final = ("lm_head.weight", "lm_head.bias")


@dataclass(frozen=True, eq=False)
class FolderPlan:
    """A folder but for how its weights are quantised.

    Attributes
    ----------
    config
        The object in `config.json`.
    tensors
        Those that the model has, with the type of their floats, and those that are copied.
    files
        The other files by name: what is in them, or the file that is copied.
    dense
        Tensors of floats that have files of their own, by the folders of these.
    """

    config: Mapping[str, Any]
    tensors: tuple[PlannedTensor, ...]
    files: Mapping[str, str | Path]
    dense: Mapping[str, PlannedTensor] = field(default_factory=dict)


def plan_folder(model: ModelFiles, kind: MlxType) -> FolderPlan:
    """The folder of a model.

    Raises
    ------
    UnsupportedError
        Folders of Hugging Face have no way to say what the model or its tokenizer is.
    """
    if isinstance(model, ModelFolder):
        return _of_folder(model, kind)
    assert isinstance(model, GgufModel)
    return _of_gguf(model, kind)


def _of_folder(model: ModelFolder, kind: MlxType) -> FolderPlan:
    dtype = kind.dtype
    source = Source(model.files)
    spec = model.spec()
    places = {name: ref for name, ref in spec.tensors.items() if not _is_experts(name)}
    experts = [ref for name, ref in spec.tensors.items() if _is_experts(name)]
    stored = {name for ref in experts for name in (ref.source, *ref.more)}
    weights = join_planes(model.config, by_name(model.files.tensors))
    refs = {ref.source: _whole(ref, weights) for ref in places.values()}
    exact = {ref.source for name, ref in places.items() if _is_exact(name) or ref.turned}
    wide = {ref.source for name, ref in places.items() if _is_wide(name)}
    # What the model does not need stays too, in the same types where it is quantized.
    unused = {
        weight.name: TensorRef(name, 0, math.prod(weight.shape[:-1]), weight.shape[-1])
        for name, weight in weights.items()
        if isinstance(weight, Matrix) and weight.name not in refs and weight.name not in stored
    }
    refs |= with_planes(unused, weights)
    tensors = []
    for name, weight in weights.items():
        # Some are in files of their own, which are copied.
        own = weight.name
        if name.startswith(DENSE) or own in stored:
            continue
        ref = refs.get(own)
        if ref is not None:
            floats = "f32" if own in wide else dtype or _float_dtype(source, ref)
            tensors.append(PlannedTensor(name, tuple(weight.shape), floats, (ref,), exact=own in exact))
        else:
            tensors.append(PlannedTensor(name, tuple(weight.shape), weight.dtype))
    if experts:
        own = ARCHITECTURES[spec.config.arch].tensors[0].hf
        before = spec.tensors["token_embedding"].source.removesuffix(own)
        floats = dtype or _float_dtype(source, experts[0])
        rules = [rule for rule in _rules(spec, kind) if _is_experts(rule.parts[0][0])]
        tensors += _by_rules(spec, rules, before, floats)
    config = {key: value for key, value in model.config.items() if not key.startswith("quantization")}
    if dtype:
        config |= {key: _FLOATS[dtype] for key in ("dtype", "torch_dtype") if key in config}
    if model.inside != model.path:
        raise UnsupportedError(
            f"{model.path}: has its model in {model.inside.name}, as older folders of Sentence Transformers; "
            "supported is one that SentenceTransformer(IN).save_pretrained(OUT) writes today"
        )
    more = [*model.path.glob("additional_chat_templates/*.jinja"), *model.modules.files]
    names = [*MODEL_FILES, *(str(path.relative_to(model.path)) for path in more)]
    files = {name: model.path / name for name in names if (model.path / name).exists()}
    files.pop("config.json")
    return FolderPlan(config, tuple(tensors), files)


def _whole(ref: TensorRef, weights: Mapping[str, TensorInfo]) -> TensorRef:
    """The tensor that `ref` is of, all of it."""
    weight = weights.get(ref.source) or next(w for w in weights.values() if w.name == ref.source)
    rows = math.prod(weight.shape) // max(ref.n_cols, 1)
    return replace(ref, first_row=0, n_rows=rows, group=None, more=(), turned=False, add=0.0)


def _is_experts(name: str) -> bool:
    """Whether a canonical tensor is of experts, which folders keep in several ways."""
    return is_expert_name(name.rpartition(".")[2])


def _is_exact(name: str) -> bool:
    """Whether a canonical matrix stays floats: rows that are added to others, and what chooses experts."""
    return name.rpartition(".")[2] in (
        *("positions", "kinds", "router", "shared_router"),
        *("streams_router", "streams_predict", "streams_correct"),
        "latent_kv_b",  # whose keys are turned, which codes cannot be
    )


def _is_wide(name: str) -> bool:
    """Whether a canonical vector keeps its 32 bits."""
    return name.rpartition(".")[2] in (
        *("delta_a_log", "delta_decay", "mamba_a_log", "mamba_decay", "router_choice_bias"),
    )


def _rules(spec: ModelSpec, kind: MlxType) -> Sequence[TensorRule]:
    """The tensors of the new folder: with experts as MLX keeps them in codes, else as Transformers does."""
    rules = [rule for rule in model_rules(spec) if rule.hf]
    return mlx_rules(rules) if kind.bits else rules


def _by_rules(
    spec: ModelSpec,
    rules: Sequence[TensorRule],
    before: str,
    dtype: str,
    row: HfModel | None = None,
    *,
    back: bool = False,
) -> Iterator[PlannedTensor]:
    """The tensors of a model by their names in a folder; `before` stands before the decoder's.

    `back`: the old file is GGUF, of whose rotated rows the order is turned back.
    """
    for rule, layer in model_tensors(spec, rules):
        ((part, size), *_) = rule.parts
        if part.endswith("_decay"):  # of which a folder has the logarithm
            rule = replace(rule, parts=((part.replace("_decay", "_a_log"), size),))
        heads = rotated_heads(rule, spec, row.rope_style) if row and back else 0
        planned = arranged(rule, layer, spec, grouped=True, rotated=heads, back=back)
        if planned is None:
            continue
        part = rule.parts[0][0]
        if spec.config.encoder is not None:
            name = tensor_name(spec, rule, layer)
        else:
            name = rule.hf if rule.hf in _HEAD else before + rule.hf.replace("{n}", str(layer))
        shape = planned.shape
        if rule.depthwise:
            shape = (shape[0], 1, shape[1])
        elif rule.turned == "always":
            shape = (*shape[:-2], shape[-1], shape[-2])
        added = row.norm_add if row and back and not part.endswith(row.plain_norms) else 0.0
        planned = replace(
            planned,
            name=name,
            shape=shape,
            dtype="f32" if _is_wide(part) else dtype,
            add=-added if part.endswith("norm") else 0.0,
            turned=planned.turned or rule.turned == "always",
            exact=_is_exact(part) or rule.turned == "always",  # codes have no other side to lie on
        )
        if "{e}" not in rule.hf:
            yield planned
            continue
        rows = (
            np.arange(math.prod(shape if rule.cols is None else shape[:-1]))
            if planned.order is None
            else planned.order
        )
        for e, own in enumerate(rows.reshape(shape[0], -1)):
            yield replace(planned, name=name.replace("{e}", str(e)), shape=shape[1:], order=own)


def _float_dtype(source: Source, ref: TensorRef) -> str:
    """The type of the floats: the weights' own, or that of their scales where these belong to groups."""
    dtype = source.entries[ref.scales or ref.source].dtype
    if ref.dtype and (dtype not in _FLOATS or ref.scale_tile):
        dtype = "bf16"
    if dtype not in _FLOATS:
        raise UnsupportedError(
            f"tensor {ref.source}: found type {dtype}, expected floats or a quantized matrix"
        )
    return dtype


def _of_gguf(model: GgufModel, kind: MlxType) -> FolderPlan:
    dtype = kind.dtype
    spec = model.spec(drafts=None)
    vectors = spec.config.encoder is not None
    row = None if spec.config.arch in ENCODERS else folder_model_type(spec)[1]
    if not dtype:  # as the file has them; what was quantised came mostly from BF16
        exact = {ref.source for name, ref in spec.tensors.items() if _is_exact(name)}
        matrices = {
            t.dtype for t in model.files.tensors if is_matrix(t.name, t.shape) and t.name not in exact
        }
        dtype = matrices.pop() if len(matrices) == 1 and matrices <= _FLOATS.keys() else "bf16"
    tensors = {
        tensor.name: tensor
        for tensor in _by_rules(
            spec, _rules(spec, kind), row.prefix if row else "model.", dtype, row, back=True
        )
    }
    tokenizer = model.tokenizer(spec.config.vocab_size)
    generation = folder_generation(model.metadata, tokenizer)
    config = vectors_config(model, spec) if vectors else folder_config(model, spec)
    config |= {key: value for key, value in generation.items() if key.endswith("_token_id")}
    if spec.config.arch in ENCODERS:  # whose classes have usual ids, and some of them want a number
        first, last = (tokenizer.bos_id, tokenizer.eos_id) if tokenizer is not None else (None, None)
        config |= {"cls_token_id": first, "sep_token_id": last, "eos_token_id": last}
        config["pad_token_id"] = config["pad_token_id"] or 0
    config["torch_dtype"] = _FLOATS[dtype]
    modules = modules_of(spec) if vectors else None
    check_folder_config(model, config, {name: tensor.shape for name, tensor in tensors.items()}, modules)
    files: dict[str, str | Path] = {}
    if modules is not None:
        files |= module_files(spec, modules)
    else:
        files["generation_config.json"] = json.dumps(generation, indent=2) + "\n"
    if tokenizer is not None:
        files |= folder_tokenizer(model.metadata, tokenizer, spec.config.context_length)
    dense = {
        folder: replace(tensors.pop(name), name="linear.weight")
        for i, folder in enumerate(DENSE_FOLDERS)
        if (name := f"{DENSE}{i}.linear.weight") in tensors
    }
    return FolderPlan(config, tuple(tensors.values()), files, dense)
