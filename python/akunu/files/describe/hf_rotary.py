"""Rotary frequencies from a `config.json`, by Transformers' `modeling_rope_utils.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from akunu.base.errors import ModelFileError, UnsupportedError
from akunu.files.describe.config_numbers import shown
from akunu.files.describe.hf_numbers import FULL, SLIDING, HfNumbers
from akunu.files.describe.rotary import (
    DIVISORS,
    inverse_frequencies,
    is_divisor,
    llama3,
    longrope_scale,
    proportional,
    yarn,
    yarn_scale,
)

__all__ = ["HfRotary"]

ROPE_TYPES: Final = (
    "default", "dynamic", "linear", "llama3", "yarn", "longrope", "mrope", "proportional",
)  # fmt: skip


class HfRotary:
    """The rotary parameters of a model, for all layers or by type of layer.

    Transformers 5 writes `rope_parameters`; before it was `rope_scaling`, with thetas beside it.
    """

    def __init__(
        self,
        config: Mapping[str, object],
        numbers: HfNumbers,
        head_dim: int,
        context_length: int,
        context: int,
        *,
        plain_local: bool = False,
        rope_dim: int = 0,
        local_head_dim: int = 0,
    ) -> None:
        self._local_head_dim = local_head_dim or head_dim
        self._config = config
        self._rope_dim = rope_dim
        self._numbers = numbers
        self._head_dim = head_dim
        self._context_length = context_length
        self._context = context
        self.where = "rope_parameters" if config.get("rope_parameters") is not None else "rope_scaling"
        parameters = config.get(self.where)
        if parameters is None:
            parameters = {}
        if not isinstance(parameters, Mapping):
            raise ModelFileError(f"config.json: {self.where}: found {shown(parameters)}, expected an object")
        self._parameters = parameters
        self._nested = bool(parameters.keys() & {FULL, SLIDING})
        beside = parameters.get("rope_type", parameters.get("type", "default"))
        if self._nested and beside != "default":
            raise ModelFileError(
                f"config.json: {self.where}.rope_type: found {shown(beside)} beside parameters for each type "
                "of layer; remove what the model was not trained with"
            )
        self._check_scaling(config.get("rope_scaling"))
        self.has_local = SLIDING in parameters or numbers.has("local_rope_theta") or plain_local

    def _check_scaling(self, scaling: object) -> None:
        """Raise where the old key says something else than the new one: Transformers would follow either."""
        if self.where == "rope_scaling" or not scaling:
            return
        if not isinstance(scaling, Mapping):
            raise ModelFileError(f"config.json: rope_scaling: found {shown(scaling)}, expected an object")
        full = self._parameters.get(FULL) if self._nested else self._parameters

        def said(values: object) -> dict[str, object]:
            found = dict(values) if isinstance(values, Mapping) else {}
            kind = found.pop("type", "default")
            beside = ("rope_theta", "partial_rotary_factor")  # which the old key did not hold
            return {"rope_type": kind} | {key: found[key] for key in found if key not in beside}

        if said(scaling) != said(full):
            raise ModelFileError(
                f"config.json: rope_scaling: {shown(dict(scaling))}, but rope_parameters, the new name, "
                f"is {shown(full)}; put what the model needs into rope_parameters and remove rope_scaling"
            )

    def temperature(self) -> tuple[float, int]:
        """The weight of the temperature of queries, and its length; both 0 where there is none."""
        rope, _ = self.read(FULL)
        if not rope.get("llama_4_scaling_beta"):
            return 0.0, 0
        length = rope.integer("rope_original_context", default=self._context_length)
        return rope.real("temperature"), length

    def score_scale(self) -> float:
        """Factor on the scores of latent attention: YaRN's on queries and keys together."""
        rope, kind = self.read(FULL)
        if kind == "default" or not rope.get("mscale_all_dim"):
            return 1.0
        return yarn_scale(rope.real("rope_factor"), rope.real("yarn_mscale_all")) ** 2

    def theta(self, layer: str) -> float:
        """The theta of the layers of one type, of a model that knows no scaling."""
        rope, kind = self.read(layer)
        if kind != "default":
            raise UnsupportedError(
                f"{rope.shown_key('rope_type')}: found {kind!r}; only 'default' is supported"
            )
        return rope.real("rope_theta")

    def frequencies(self, layer: str) -> tuple[npt.NDArray[np.float64], float]:
        """float64 [rope_dim/2] of the layers of one type, and the factor on their cos and sin."""
        rope, kind = self.read(layer)
        head_dim = self._local_head_dim if layer == SLIDING else self._head_dim
        if kind == "proportional":
            frequencies = proportional(rope.real("rope_theta"), head_dim, rope.real("rope_share"))
            return frequencies / rope.real("rope_factor"), 1.0
        rope_dim = self._rope_dim or int(head_dim * rope.real("rope_share"))
        if rope_dim < 2 or rope_dim % 2:
            raise ModelFileError(
                f"{rope.name('rope_share')}: makes {rope_dim} of a head's {head_dim} elements rotate, "
                "expected an even number from 2"
            )
        theta = rope.real("rope_theta")
        inv_freq = inverse_frequencies(theta, rope_dim)
        if kind == "default":
            return inv_freq, 1.0
        original = rope.integer("rope_original_context", default=self._context_length)
        ratio = self._context_length / original
        if kind == "longrope":
            factor = rope.real("rope_factor", default=ratio)
            short, long = (self._divisors(rope, f"{n}_factor", rope_dim // 2) for n in ("short", "long"))
            inv_freq = inv_freq / (long if self._context > original else short)
            return inv_freq, rope.real("yarn_attn_factor", default=longrope_scale(factor, original))
        if rope.get("factor") is None:
            raise ModelFileError(f"{rope.name('rope_factor')} is missing; {kind} scaling needs it")
        factor = rope.real("rope_factor")
        if kind == "linear":
            return inv_freq / factor, 1.0
        if kind == "llama3":
            low, high = rope.real("rope_low_freq"), rope.real("rope_high_freq")
            if not low < high:
                raise ModelFileError(
                    f"{rope.name('rope_high_freq')}: found {high}, expected more than low_freq_factor, {low}"
                )
            return llama3(inv_freq, factor=factor, low_freq=low, high_freq=high, original=original), 1.0
        inv_freq = yarn(
            inv_freq,
            theta=theta,
            factor=factor,
            original=original,
            beta_fast=rope.real("yarn_beta_fast"),
            beta_slow=rope.real("yarn_beta_slow"),
            truncate=rope.get("truncate") is not False,
        )
        weight, weight_all = rope.real("yarn_mscale"), rope.real("yarn_mscale_all")
        scale = yarn_scale(factor)
        if weight and weight_all:
            scale = yarn_scale(factor, weight) / yarn_scale(factor, weight_all)
        return inv_freq, rope.real("yarn_attn_factor", default=scale)

    def read(self, layer: str) -> tuple[HfNumbers, str]:
        """The parameters of the layers of one type, and the kind of scaling."""
        parameters: object = self._parameters
        where = f"{self.where}."
        if self._nested:
            parameters = self._parameters.get(layer) or {}
            where += f"{layer}."
        elif layer == SLIDING:
            parameters = {}  # a local theta is not scaled
        if not isinstance(parameters, Mapping):
            raise ModelFileError(f"config.json: {where[:-1]}: found {shown(parameters)}, expected an object")
        local = layer == SLIDING
        theta = self._numbers.real("rope_theta")
        # ModernBERT's null means that of the other layers, where no key means the class's own.
        if local and self._config.get("local_rope_theta", 0) is not None:
            theta = self._numbers.real("local_rope_theta", default=theta)
        share, original = "partial_rotary_factor", "original_max_position_embeddings"
        outer = {key: self._config[key] for key in (share, original) if self._config.get(key) is not None}
        rotated = self._config.get("rotary_dim")  # MiniMax's way to say it
        if isinstance(rotated, int) and share not in outer and share not in parameters:
            outer[share] = rotated / self._head_dim
        values = {"rope_theta": theta, share: self._numbers.real("rope_share")} | outer | dict(parameters)
        if original in outer:  # Phi 3 keeps its first context outside, and that is the one that counts
            values[original] = outer[original]
        kind = values.get("rope_type", values.get("type", "default"))
        if kind in ("su", "yarn") and "long_factor" in values:
            kind = "longrope"  # its first names
        if kind not in ROPE_TYPES:
            raise UnsupportedError(
                f"config.json: {where}rope_type: found {shown(kind)}; supported are {', '.join(ROPE_TYPES)}"
            )
        if kind == "dynamic" and self._numbers.has("rope_alpha") and values.get("alpha"):
            alpha = HfNumbers(values, {}, self._numbers.owner, where).real("rope_alpha")
            rope_dim = self._head_dim
            values["rope_theta"] = theta * alpha ** (rope_dim / (rope_dim - 2))
        if kind == "mrope":  # of text, all its positions are one
            kind = "default"
        if kind == "dynamic":  # up to the context that the model was trained for, and there is no other here
            kind = "default"
        return HfNumbers(values, {}, self._numbers.owner, where), str(kind)

    def _divisors(self, rope: HfNumbers, key: str, n: int) -> npt.NDArray[np.float64]:
        """LongRoPE's divisors, [rope_dim/2]."""
        values = rope.get(key)
        name = rope.shown_key(key)
        if not isinstance(values, list) or len(values) != n:
            raise ModelFileError(f"{name}: found {shown(values)}, expected a list of {n} numbers")
        # bool is a subclass of int
        if not all(isinstance(v, int | float) and not isinstance(v, bool) and is_divisor(v) for v in values):
            raise ModelFileError(f"{name}: expected {n} {DIVISORS}")
        return np.asarray(values, np.float64)
