"""Describe how a model chooses experts: as its file says, or else as its architecture does."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Final

from akunu.base.errors import ModelFileError, UnsupportedError
from akunu.files.describe.blocks import ExpertRouter
from akunu.files.describe.config_numbers import Numbers, shown
from akunu.files.describe.hf_row import HfModel
from akunu.files.describe.tensor_rules import Architecture, Gate, Gating

__all__ = ["GATINGS", "expert_keys", "gguf_router", "hf_gate", "hf_router"]

GATINGS: Final[tuple[Gating, ...]] = ("softmax", "sigmoid", "softmax_chosen", "sqrt_softplus")
"""The gatings by `expert_gating_func`, which counts from 1."""

_HF_GATINGS: Final[Mapping[str, tuple[Gating, ...]]] = {
    "softmax": ("softmax", "softmax_chosen"),
    "sigmoid": ("sigmoid",),
    "sqrtsoftplus": ("sqrt_softplus",),
}
"""The gatings by `scoring_func`."""


def expert_keys(arch: Architecture, numbers: Numbers) -> tuple[str, ...]:
    """The keys of experts that a GGUF file of the architecture may have, of a model of these numbers."""
    if arch.router is None:
        return ()
    counts = ("expert_count", "expert_used_count")
    if numbers.integer("n_experts") == 0:
        return counts
    return (
        *counts,
        "expert_group_count",
        "expert_group_used_count",
        "leading_dense_block_count",
        "interleave_moe_layer_step",
        *(("expert_shared_count",) if arch.shares_expert else ()),
        *(("moe_latent_size",) if any(kind.has("latent_in") for kind in arch.layers.values()) else ()),
    )


def gguf_router(
    arch: Architecture, numbers: Numbers, raw: Mapping[str, object], *, biased: bool = False
) -> ExpertRouter | None:
    """Return the router of a GGUF file; `raw` has the values of its keys without the architecture's prefix.

    `biased`: the file has biases that choose.
    """
    if arch.router is None:
        return None
    rule = arch.biased_router if biased and arch.biased_router else arch.router
    code = raw.get("expert_gating_func")
    if code is not None and code != 0:
        if not isinstance(code, int) or not 1 <= code <= len(GATINGS):
            raise UnsupportedError(
                f"{arch.name}.expert_gating_func: found {shown(code)}; supported are 1 to {len(GATINGS)}: "
                f"{', '.join(GATINGS)}"
            )
        rule = dataclasses.replace(rule, gating=GATINGS[code - 1])
    flag = raw.get("expert_weights_norm")
    if isinstance(flag, bool):
        rule = dataclasses.replace(rule, renormalise=flag)
    return _with_numbers(ExpertRouter(**dataclasses.asdict(rule)), numbers)


def hf_router(
    arch: Architecture, row: HfModel, numbers: Numbers, renormalise: bool | None
) -> ExpertRouter | None:
    """Return the router of a folder.

    `renormalise` is what its class does by the configuration; None: what the class always does.
    """
    rule = row.router or arch.router
    if rule is None:
        return None
    function = numbers.get("scoring_func")
    if function is not None and rule.gating not in _HF_GATINGS.get(str(function), ()):
        raise UnsupportedError(
            f"{numbers.shown_key('scoring_func')}: found {shown(function)}, but the router of a "
            f"{numbers.owner} model is of kind {rule.gating}"
        )
    if renormalise is not None:
        rule = dataclasses.replace(rule, renormalise=renormalise)
    if numbers.has("expert_sum_min"):
        rule = dataclasses.replace(rule, sum_min=numbers.real("expert_sum_min"))
    grouped = (numbers.get("topk_method") or row.topk_method) != "greedy"
    return _with_numbers(ExpertRouter(**dataclasses.asdict(rule)), numbers, grouped=grouped)


def _with_numbers(router: ExpertRouter, numbers: Numbers, *, grouped: bool = True) -> ExpertRouter:
    """Return the router with the scale and the groups that both kinds of files have."""
    router = dataclasses.replace(router, scale=numbers.real("expert_scale"))
    if router.own_norm:
        router = dataclasses.replace(router, input_scale=numbers.integer("dim") ** -0.5)
    groups = numbers.integer("expert_groups")
    used, experts = numbers.integer("expert_groups_used"), numbers.integer("n_experts")
    if groups <= 1 or not grouped or not experts:
        return router
    top = router.best_of_group
    if experts % groups or experts // groups < top:
        raise ModelFileError(
            f"{numbers.name('expert_groups')}: found {groups}, expected a divisor of the {experts} experts "
            f"that leaves {top} or more in each"
        )
    if not 1 <= used <= groups:
        raise ModelFileError(
            f"{numbers.name('expert_groups_used')}: found {used}, expected 1 to the {groups} groups"
        )
    return dataclasses.replace(router, groups=groups, groups_used=used, group_top=top)


def hf_gate(arch: Architecture, numbers: Numbers) -> Gate:
    """Return how the model's experts are gated; only a class that clamps reads it."""
    if arch.gate == Gate():
        return arch.gate
    return dataclasses.replace(
        arch.gate,
        limit=numbers.real("swiglu_limit", default=arch.gate.limit),
        sharpness=numbers.real("swiglu_alpha", default=arch.gate.sharpness),
    )
