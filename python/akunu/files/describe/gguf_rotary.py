"""The rotary frequencies of a GGUF file, by its keys and its tensors of divisors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from akunu.base.errors import ModelFileError, UnsupportedError
from akunu.files.describe.architectures import ARCHITECTURES
from akunu.files.describe.config_keys import ROPE_TENSORS, YARN_UNSET, YARN_WHOLE
from akunu.files.describe.config_numbers import Numbers, shown
from akunu.files.describe.rotary import DIVISORS, UNROTATED, inverse_frequencies, is_divisor, yarn, yarn_scale
from akunu.files.describe.tensor_map import TensorInfo, check_shape

__all__ = ["GgufSource", "gguf_rotary"]

_ROPE_SCALINGS = ("none", "linear", "yarn", "longrope")


class GgufSource(Protocol):
    """The part of an open file that `resolve` needs; `akunu._core.GgufFile` is one."""

    @property
    def metadata(self) -> Mapping[str, object]: ...
    @property
    def tensors(self) -> Sequence[TensorInfo]: ...
    def tensor_bytes(self, name: str) -> npt.NDArray[np.uint8]: ...


def gguf_rotary(
    gguf: GgufSource,
    meta: Numbers,
    tensors: Mapping[str, TensorInfo],
    head_dim: int,
    context: int | None,
    *,
    windowed: bool,
    plain_local: bool = False,
    local_head_dim: int = 0,
) -> list[tuple[npt.NDArray[np.float64], float]]:
    """Return what `model_config` takes as `rotary`; `windowed`: some layers have a window, and are not scaled
    where `plain_local`. Their heads may have another size.
    """
    rope_dim = _rope_dim(meta, "rope_dim", head_dim)
    local_dim = rope_dim
    if local_head_dim not in (0, head_dim):
        local_dim = _rope_dim(meta, "local_rope_dim", local_head_dim)
    sets = [_rotary(gguf, meta, tensors, rope_dim, context)]
    # A layer is local, with the second set, where it is windowed and the model has a local theta. Its
    # frequencies are not scaled, but llama.cpp's factor for all kinds of scaling is also for it.
    if meta.has("local_rope_theta") and windowed:
        local = inverse_frequencies(meta.real("local_rope_theta"), local_dim)
        sets.append((local, 1.0 if plain_local else meta.real("rope_attn_factor")))
    elif plain_local and windowed:
        sets.append((inverse_frequencies(meta.real("rope_theta"), local_dim), 1.0))
    return sets


def _rope_dim(meta: Numbers, field: str, head_dim: int) -> int:
    rope_dim = meta.integer(field, default=head_dim)
    if rope_dim % 2 or rope_dim > head_dim:
        raise ModelFileError(
            f"{meta.name(field)}: found {rope_dim}, expected an even number up to the head size {head_dim}"
        )
    return rope_dim


def _rotary(
    gguf: GgufSource,
    meta: Numbers,
    tensors: Mapping[str, TensorInfo],
    rope_dim: int,
    context: int | None,
) -> tuple[npt.NDArray[np.float64], float]:
    """Frequencies [rope_dim/2] of the global set, and the factor on cos and sin."""
    context_length = meta.integer("context_length")
    context = context or context_length
    scaling = meta.get(f"{meta.owner}.rope.scaling.type")
    if scaling is None:
        # Files of 2023 give only a factor; without one, linear scaling changes nothing.
        row = ARCHITECTURES.get(meta.owner)
        scaling = row.scaling if row else "linear"
    if scaling not in _ROPE_SCALINGS:
        raise UnsupportedError(
            f"{meta.owner}.rope.scaling.type: found {shown(scaling)}; "
            f"supported are {', '.join(_ROPE_SCALINGS)}"
        )
    original = meta.integer("rope_original_context", default=context_length)
    inv_freq = inverse_frequencies(meta.real("rope_theta"), rope_dim)
    divisors = "rope_freqs.weight"
    if divisors not in tensors:
        divisors = f"rope_factors_{'long' if context > original else 'short'}.weight"
    if divisors in tensors:
        inv_freq = inv_freq / _divisors(gguf, tensors[divisors], rope_dim // 2)
    elif scaling == "longrope" or not tensors.keys().isdisjoint(ROPE_TENSORS):  # the other set is there
        raise ModelFileError(f"tensor {divisors} is missing; LongRoPE scaling needs it")
    scale = meta.real("rope_attn_factor")
    factor = meta.real("rope_factor")
    if scaling == "linear":
        inv_freq = inv_freq / factor
    elif scaling == "yarn":
        inv_freq = yarn(
            inv_freq,
            theta=meta.real("rope_theta"),
            factor=factor,
            original=original,
            beta_fast=meta.real("yarn_beta_fast"),
            beta_slow=meta.real("yarn_beta_slow"),
            truncate=meta.get(f"{meta.owner}.{YARN_WHOLE}") is not False,
        )
        usual = yarn_scale(factor)
        if meta.has("yarn_log_multiplier"):
            # Where it is a factor on scores, it is as large as the one that it would be divided by here.
            on_scores = meta.has("latent")
            usual = 1.0 if on_scores else usual / yarn_scale(factor, meta.real("yarn_log_multiplier"))
        unset = meta.get(f"{meta.owner}.rope.scaling.yarn_ext_factor") == YARN_UNSET
        scale *= usual if unset else meta.real("yarn_attn_factor", default=usual)
    return inv_freq, scale


def _divisors(gguf: GgufSource, tensor: TensorInfo, n: int) -> npt.NDArray[np.float64]:
    """The values of a tensor of rotary divisors, F32 [n]."""
    check_shape(tensor, (n,))
    if tensor.dtype != "f32":
        raise UnsupportedError(f"tensor {tensor.name}: found type {tensor.dtype}, expected f32")
    values = np.frombuffer(gguf.tensor_bytes(tensor.name).tobytes(), dtype="<f4").astype(np.float64)
    if values.shape != (n,) or not all(map(is_divisor, values.tolist())):
        raise ModelFileError(f"tensor {tensor.name}: expected {n} {DIVISORS}")
    values[values >= UNROTATED] = np.inf
    return values
