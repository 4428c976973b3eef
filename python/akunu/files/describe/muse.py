"""Muse Glimmer: norms without weights, a gate on attention, rotation in windowed layers alone.

Facts: Transformers' `muse_glimmer`. In a GGUF file the norms of q and k are tensors, of whose the one has the
gain of q everywhere, and the norms ahead of blocks and behind them include the 1 that is added here.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from akunu.base.errors import UnsupportedError
from akunu.files.describe.config_numbers import shown
from akunu.files.describe.hf_row import HfModel, defaults_of, layers_of
from akunu.files.describe.layer_rules import (
    BLK,
    FOLDER_BIAS,
    FOUR_NORMS,
    GLOBAL,
    HF,
    PROJECTIONS,
    matrix,
    one_kind,
    vector,
)
from akunu.files.describe.tensor_rules import Architecture

__all__ = ["MUSE_MODELS", "MUSE_ROWS"]

_EPS: Final = 1e-8
"""Epsilon of the norms of what a block adds. A GGUF file has no key for it."""

MUSE_ROWS: Final = (
    Architecture(
        name="muse-glimmer",
        summary="Muse Glimmer, text: three windowed layers, which alone are rotated, to one full",
        rope_style="interleaved",
        activation="silu",
        pre_tokenizer="llama4",
        tensors=GLOBAL,
        layers=one_kind(
            *FOUR_NORMS,
            *PROJECTIONS,
            matrix(BLK + "attn_gate.weight", HF + "self_attn.gate_proj.weight", "attn_gate", "q_dim", "dim"),
            vector(BLK + "attn_q_norm.weight", "", "attn_q_norm", "head_dim"),
            vector(BLK + "attn_k_norm.weight", "", "attn_k_norm", "head_dim"),
            *FOLDER_BIAS,
        ),
        window_period=4,
        rotated="windowed",
        scales=("logit_scale",),
        soft_caps=("final_softcap",),
        defaults=MappingProxyType(
            {"final_softcap": 20.0, "logit_scale": 0.19611613513818404, "window": 2048}
        ),
        norm_embedding=True,
        branch_norm_eps=_EPS,
    ),
)
"""See `akunu.files.describe.architectures.ARCHITECTURES`."""


def _spelled(config: Mapping[str, object], defaults: Mapping[str, float]) -> Mapping[str, object]:
    """The configuration with kinds of layers, of which the full ones are those that are not rotated."""
    found = {key: value for key, value in config.items() if value is not None}
    n_layers = layers_of(found, defaults)
    if n_layers is None:
        return config  # which is refused where it is read
    types = found.get("layer_types")
    if types is None:
        types = [
            ("full" if (n_layers - 1 - n) % 4 == 0 else "sliding") + "_attention" for n in range(n_layers)
        ]
    thetas = found.get("layer_rope_theta")
    if thetas is not None and isinstance(types, list):
        rope = found.get("rope_parameters") or found.get("rope_scaling") or {}
        theta = rope.get("rope_theta") if isinstance(rope, Mapping) else None
        theta = theta if theta is not None else found.get("rope_theta", 10000.0)
        if thetas != [0 if kind == "full_attention" else theta for kind in types]:
            raise UnsupportedError(
                f"config.json: layer_rope_theta: found {shown(thetas)}; only {shown(theta)} in windowed "
                "layers and 0 in full ones is supported"
            )
    return {
        **found,
        "layer_types": types,
        "logit_scale": found.get("output_multiplier", defaults["logit_scale"]),
    }


_IMAGES = MappingProxyType(
    {
        "*vision_tower.*": "images",
        "*vision_adapter.*": "images",
        "*vision_projection.*": "images",
        "*perception_emb_norm.*": "images",
    }
)
_MUSE = HfModel(
    "muse-glimmer",
    windowed="layers",
    defaults=defaults_of(
        dim=6656, n_layers=52, n_heads=32, n_kv_heads=2, head_dim=128, ffn_dim=19968, context_length=131072,
        norm_eps=1e-5, window=2048, final_softcap=20, logit_scale=0.19611613513818404, q_gain=3.87,
        branch_norm_eps=_EPS,
    ),
    norm_add=1.0,
    plain_norms=("output_norm",),
    biases="flag",
    left_out=_IMAGES,
    spelled=_spelled,
)  # fmt: skip

MUSE_MODELS: Final[Mapping[str, HfModel]] = MappingProxyType(
    {"muse_glimmer": _MUSE, "muse_glimmer_text": _MUSE}
)
"""The rows, by `model_type`."""
