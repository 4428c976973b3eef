"""Settings that were given for all models of a server: each model takes those that fit it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from akunu.base.errors import InvalidArgumentError
from akunu.files.describe.blocks import Attention, LatentAttention
from akunu.files.describe.config import ModelConfig
from akunu.files.describe.filetypes import kv_dtypes
from akunu.loading.finding import FoundModel
from akunu.loading.placement import device_info, present
from akunu.server.catalog import ModelSpec
from akunu.server.kinds import EMBEDDING, RERANKER, SPEECH, TEXT, Kind
from akunu.speech.recognition import is_speech

__all__ = ["check_shared", "default_context", "fitted"]


def fitted(spec: ModelSpec, found: FoundModel) -> tuple[dict[str, Any], dict[str, str]]:
    """Arguments of `akunu.load`, and the shared settings that are not as they were given, with the reasons.

    A context is at most what the model was trained for; without one, it is that up to 32,768 tokens, as far
    as memory goes: agents begin with prompts of 20,000. What the model has no use for is left out.
    """
    arguments = spec.load_arguments()
    kind, config = _known(spec, found)
    if kind is TEXT and config is not None and not any(arguments.get(name) for name in _OF_CONTEXT):
        arguments |= default_context(config, arguments)
    if not spec.shared:
        return arguments, {}
    trained = 0 if config is None else config.context_length
    unfit = {name: f"{kind.name} has no such setting" for name in sorted(spec.shared - {*kind.settings})}
    arguments = {name: value for name, value in arguments.items() if name not in unfit}
    wanted = arguments.get("context")
    if "context" in spec.shared and wanted is not None and wanted > trained:
        unfit["context"] = f"{wanted} is more than the {trained} tokens that it was trained for"
        arguments["context"] = trained
    return arguments, unfit


def _known(spec: ModelSpec, found: FoundModel) -> tuple[Kind, ModelConfig | None]:
    """The kind of a model that is not loaded yet, and its sizes, unless it is one of speech."""
    if is_speech(found.path):
        return SPEECH, None
    config = found.files.spec(sees=True).config
    if spec.task == "rerank" or (config.encoder is not None and config.encoder.task == "rank"):
        return RERANKER, config
    return TEXT if config.encoder is None else EMBEDDING, config


_OF_CONTEXT: Final = ("context", "rope_scaling", "override_kv")
"""Arguments with which the context is not ours to choose."""
_MOST_CONTEXT: Final = 32768
_LEAST_CONTEXT: Final = 4096
_STEP: Final = 1024
_SHARE: Final = 4
"""A conversation that fills the context has this part of the memory at most."""
_BYTES: Final = {"f16": 2.0, "f32": 4.0, "q8_0": 1.125, "q4_0": 0.5625}
"""Bytes of a value in the KV cache."""


def default_context(config: ModelConfig, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The context of a model where none was asked for.

    A GPU's memory is the cache's from the beginning: there it is no larger than for sequences of 4,096
    tokens, or for one that fills the context.
    """
    keys, values = (_BYTES[name] for name in kv_dtypes(arguments.get("kv_dtype") or "f16"))
    size = sum((keys + values) * each.n_kv_heads * each.head_dim for each in config.mixers(Attention))
    size += sum(keys * (each.latent + each.rope_dim) for each in config.mixers(LatentAttention))
    size = max(1.0, size)
    device = device_info(present(arguments.get("device") or "auto")[0])
    room = int((arguments.get("kv_memory") or device["memory"] / _SHARE) / size)
    room = max(_LEAST_CONTEXT, room // _STEP * _STEP)
    chosen: dict[str, Any] = {"context": min(config.context_length, _MOST_CONTEXT, room)}
    if device["id"] != "cpu" and not arguments.get("kv_memory"):
        tokens = min(chosen["context"], _LEAST_CONTEXT) * (arguments.get("parallel") or 1)
        chosen["kv_memory"] = int(max(chosen["context"], tokens) * size)
    return chosen


def check_shared(unfit: Mapping[ModelSpec, Mapping[str, str]]) -> None:
    """Refuse a setting that was given for all models and fits none of them.

    Raises
    ------
    InvalidArgumentError
        It names the setting, and says of each model why.
    """
    for name in sorted(frozenset[str]().union(*(spec.shared for spec in unfit))):
        asked = {spec: reasons for spec, reasons in unfit.items() if name in spec.shared}
        if all(name in reasons for reasons in asked.values()):
            told = "; ".join(f"{spec.name}: {reasons[name]}" for spec, reasons in asked.items())
            raise InvalidArgumentError(f"{name}: it fits no model here: {told}")
