"""What a folder of SafeTensors will hold: its tensors, its configuration, and its other files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from akunu.base.errors import UnsupportedError
from akunu.conversion.encoder_folder import (
    DENSE_FOLDERS,
    module_files,
    modules_of,
    tensor_name,
    vectors_config,
)
from akunu.conversion.folder_config import (
    check_folder_config,
    folder_config,
    folder_generation,
    folder_model_type,
)
from akunu.conversion.folder_tokenizer import folder_tokenizer
from akunu.conversion.plan import PlannedTensor, adjacent_pairs, refuse_delta_nets, rotated_heads
from akunu.conversion.source_rows import Source
from akunu.describe.config import ModelSpec
from akunu.describe.encoder_modules import DENSE
from akunu.describe.encoder_rows import ENCODERS
from akunu.describe.file_tensors import model_tensors
from akunu.describe.filetypes import MlxType
from akunu.describe.quantized import Matrix, join_planes, with_planes
from akunu.describe.tensor_map import TensorRef, by_name
from akunu.files.folder import MODEL_FILES, ModelFolder
from akunu.files.model_files import GgufModel, ModelFiles

__all__ = ["FolderPlan", "plan_folder"]

_FLOATS: Final = {"f32": "float32", "f16": "float16", "bf16": "bfloat16"}
"""Types of floats, and their names in `config.json`."""
_HEAD: Final = "lm_head.weight"


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
    refuse_delta_nets(model.spec())
    if isinstance(model, ModelFolder):
        return _of_folder(model, kind.dtype)
    assert isinstance(model, GgufModel)
    return _of_gguf(model, kind.dtype)


def _of_folder(model: ModelFolder, dtype: str) -> FolderPlan:
    source = Source(model.files)
    places = model.spec().tensors
    refs = {ref.source: replace(ref, first_row=0) for ref in places.values()}
    exact = _exact(model.spec())
    weights = join_planes(model.config, by_name(model.files.tensors))
    # What the model does not need stays too, in the same types where it is quantized.
    unused = {
        name: TensorRef(name, 0, weight.shape[0], weight.shape[1])
        for name, weight in weights.items()
        if isinstance(weight, Matrix) and name not in refs
    }
    refs |= with_planes(unused, weights)
    tensors = []
    for name, weight in weights.items():
        if name.startswith(DENSE):  # in files of their own, which are copied
            continue
        ref = refs.get(name)
        if ref is not None:
            shape = (weight.shape[0], ref.n_cols) if ref.n_cols else weight.shape
            floats = dtype or _float_dtype(source, ref)
            tensors.append(PlannedTensor(name, shape, floats, ref, exact=name in exact))
        else:
            tensors.append(PlannedTensor(name, weight.shape, weight.dtype))
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


def _exact(spec: ModelSpec) -> set[str]:
    """Tables whose rows are added to others, which stay floats."""
    return {spec.tensors[name].source for name in ("positions", "kinds") if name in spec.tensors}


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


def _of_gguf(model: GgufModel, dtype: str) -> FolderPlan:
    spec = model.spec(drafts=None)
    vectors = spec.config.encoder is not None
    row = None if spec.config.arch in ENCODERS else folder_model_type(spec)[1]
    added = row.norm_add if row else 0.0
    exact = _exact(spec)
    if not dtype:  # as the file has them; what was quantised came mostly from BF16
        matrices = {t.dtype for t in model.files.tensors if len(t.shape) == 2 and t.name not in exact}
        dtype = matrices.pop() if len(matrices) == 1 and matrices <= _FLOATS.keys() else "bf16"
    tensors: dict[str, PlannedTensor] = {}
    for rule, layer, ref, shape in model_tensors(spec):
        heads = rotated_heads(rule, spec, row.rope_style) if row else 0
        order = np.argsort(adjacent_pairs(shape[0], heads)) if heads else None
        if vectors:
            name = tensor_name(spec, rule, layer)
        else:
            name = rule.hf if rule.hf == _HEAD else "model." + rule.hf.replace("{n}", str(layer))
        add = -added if rule.parts[0][0].endswith("norm") else 0.0
        tensors[name] = PlannedTensor(name, shape, dtype, ref, order, add, exact=ref.source in exact)
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
