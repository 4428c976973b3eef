"""What a row of the table means: each function fills a Problem with an op's inputs, commands and results."""

from __future__ import annotations

from collections.abc import Callable

from .attention import attention, rope_kv
from .common import Traits
from .matmul import gate_up, matmul
from .rows import embed, gate_act, norm, norm_add, quantize, rope_table
from .tokens import argmax, logprobs, sample, sample_prepare

__all__ = ["BUILDERS", "Traits"]

BUILDERS: dict[str, Callable[..., None]] = {
    f.__name__: f
    for f in (embed, rope_table, norm, norm_add, quantize, matmul, gate_up, gate_act, rope_kv, attention)
} | {f.__name__: f for f in (argmax, sample_prepare, sample, logprobs)}
