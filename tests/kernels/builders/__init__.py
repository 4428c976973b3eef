"""What a row of the table means: each function fills a Problem with an op's inputs, commands and results."""

from __future__ import annotations

from collections.abc import Callable

from .attention import attention, copy_records, prepare_heads
from .common import Traits
from .delta_rule import delta_rule, short_conv
from .encoder import embed_position, layer_norm, pool, relative_attention
from .experts import cluster_logits, experts_down, experts_gate_up, route
from .latent import head_matmul, latent_attention
from .lora import lora
from .matmul import gate_up, matmul, norm_gate_up, norm_qkv
from .recurrence import recur
from .rows import affine, column_squares, embed, gate_act, insert_rows, norm, norm_add, quantize, rope_table
from .speech import attention_weights, cross_attention, unfold
from .ssm_scan import gated_norm, ssm_scan
from .streams import add_rows, all_reduce, mix_streams, sparsify
from .tokens import accept, advance, argmax, logprobs, sample, sample_prepare

__all__ = ["BUILDERS", "Traits"]

_MATMULS = (embed, matmul, gate_up, norm_qkv, norm_gate_up)
_ROWS = (
    rope_table, insert_rows, affine, norm, norm_add, quantize, column_squares, gate_act, prepare_heads,
    attention, copy_records,
    add_rows, all_reduce, mix_streams, sparsify,
)  # fmt: skip
_RECURRENT = (recur, short_conv, delta_rule, ssm_scan, gated_norm)
_EXPERTS = (route, experts_gate_up, experts_down, cluster_logits)
_LATENT = (latent_attention, head_matmul)
_ADAPTERS = (lora,)
_ENCODER = (embed_position, layer_norm, pool, relative_attention)
_SPEECH = (unfold, cross_attention, attention_weights)
_TOKENS = (argmax, sample_prepare, sample, logprobs, accept, advance)

BUILDERS: dict[str, Callable[..., None]] = {
    f.__name__: f
    for f in (*_MATMULS, *_ROWS, *_RECURRENT, *_EXPERTS, *_LATENT, *_ADAPTERS, *_ENCODER, *_SPEECH, *_TOKENS)
}
