"""Gemma 3n as a row: its architecture. Facts: llama.cpp's `gemma3n` and its converter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from akunu.base.errors import ModelFileError
from akunu.files.describe.gemma4 import ATTENTION_OF_SHARED_KEYS, LAYER_INPUT, LAYER_INPUTS, OWN_ATTENTION
from akunu.files.describe.layer_rules import BLK, DOWN, FOUR_NORMS, GATE_UP, GLOBAL, HF, matrix, vector
from akunu.files.describe.tensor_rules import Architecture, LayerKind, LayerNumbers, TensorRule

__all__ = ["GEMMA3N_ROWS"]

_SCALE = vector(BLK + "altup_correct_scale.weight", HF + "altup.correct_output_scale", "streams_scale", "dim")
_MIXED = (
    matrix(
        BLK + "altup_router.weight", HF + "altup.modality_router.weight", "streams_router", "streams", "dim"
    ),
    vector(BLK + "altup_router_norm.weight", HF + "altup.router_norm.weight", "streams_norm", "dim"),
    matrix(
        BLK + "altup_predict_coef.weight",
        HF + "altup.prediction_coefs.weight",
        "streams_predict",
        "stream_pairs",
        "streams",
    ),
    matrix(
        BLK + "altup_correct_coef.weight",
        HF + "altup.correction_coefs.weight",
        "streams_correct",
        "streams",
        "streams",
    ),
)
_LAUREL = (
    matrix(BLK + "laurel_l.weight", HF + "laurel.linear_left.weight", "laurel_left", "laurel_rank", "dim"),
    matrix(BLK + "laurel_r.weight", HF + "laurel.linear_right.weight", "laurel_right", "dim", "laurel_rank"),
    vector(BLK + "laurel_post_norm.weight", HF + "laurel.post_laurel_norm.weight", "post_laurel_norm", "dim"),
)


def _streams(source: str, hf: str, name: str) -> TensorRule:
    """The matrices of all streams but the first."""
    return TensorRule(source, hf, ((name, "dim"),), "dim", count="more_streams")


def _kinds() -> Mapping[str, LayerKind]:
    found: dict[str, LayerKind] = {}
    for attention, (rules, unused) in {
        "own keys": OWN_ATTENTION,
        "shared keys": ATTENTION_OF_SHARED_KEYS,
    }.items():
        tensors = (*FOUR_NORMS, *rules, *_LAUREL, *GATE_UP, *DOWN, *_MIXED, *LAYER_INPUT)
        for scaled in (True, False):
            found[f"{attention}, {'scaled' if scaled else 'plain'} streams"] = LayerKind(
                (*tensors, _SCALE) if scaled else tensors,
                ("predict_streams", "attention", "laurel", "feed_forward", "correct_streams", "layer_input"),
                unused if scaled else (*unused, _SCALE),
            )
    return MappingProxyType(found)


def _layer_kinds(numbers: LayerNumbers, n_layers: int) -> Sequence[str]:
    if numbers.integer("streams") < 2:
        raise ModelFileError("altup: found fewer than 2 inputs, which every Gemma 3n has")
    first_shared = n_layers - numbers.integer("shared_kv_layers")
    streams = "plain" if numbers.get("altup_correct_scale") is False else "scaled"
    return [f"{'own' if n < first_shared else 'shared'} keys, {streams} streams" for n in range(n_layers)]


GEMMA3N_ROWS: Final = (
    Architecture(
        name="gemma3n",
        summary="Gemma 3n: several residual streams, learned residuals, gates of which most are 0, inputs of "
        "layers, shared keys and values",
        rope_style="half",
        activation="gelu_tanh",
        tensors=(
            *GLOBAL,
            _streams("altup_proj.weight", "altup_projections.{e}.weight", "streams_in"),
            _streams("altup_unembd_proj.weight", "altup_unembed_projections.{e}.weight", "streams_out"),
        ),
        layers=_kinds(),
        layer_kinds=_layer_kinds,
        layer_inputs=LAYER_INPUTS,
        features=("altup.",),
        fields=("layer_input_dim", "shared_kv_layers", "streams", "active_stream", "deviations"),
        defaults=MappingProxyType(
            {
                "rope_theta": 1e6,
                "local_rope_theta": 1e4,
                "attn_scale": 1.0,
                "final_softcap": 30.0,
                "streams": 4,
            }
        ),
        scale_embedding=True,
        window_period=5,
        soft_caps=("final_softcap",),
        required_keys=("attention.sliding_window_pattern", "attention.sliding_window"),
        norm_values=True,
        sparse_layers=10,
        left_out={"v.*": "images", "mm.*": "images", "a.*": "audio"},
    ),
)
"""See `akunu.files.describe.architectures.ARCHITECTURES`."""
