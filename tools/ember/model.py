"""Ember in PyTorch: a Llama decoder with the rotary pairs side by side, as GGUF's ``llama`` has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from tools.ember.model_config import Config

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]


def causal(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal attention. q [batch, heads, rows, head_dim], k and v [batch, kv_heads, rows, head_dim]."""
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


def within(mask: Any) -> Attend:
    """Attention through a mask that ``document_mask`` made."""
    if isinstance(mask, Tensor):

        def dense(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            groups = q.shape[1] // k.shape[1]
            k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
            return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

        return dense
    return lambda q, k, v: flex_attention(q, k, v, block_mask=mask, enable_gqa=True)  # type: ignore[return-value]


def document_mask(documents: Tensor, sparse: bool) -> Any:
    """Causal and never across documents. documents [batch, rows], one id per position.

    ``sparse`` gives the block mask of FlexAttention, for compiled models on a GPU; else it is a bool tensor.
    """
    if not sparse:
        return (documents[:, :, None] == documents[:, None, :]).tril()[:, None]

    def visible(b: Tensor, _h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return (i >= j) & (documents[b, i] == documents[b, j])

    batch, rows = documents.shape
    return _compiled_block_mask(visible, batch, None, rows, rows, device=documents.device)


_compiled_block_mask = torch.compile(create_block_mask)


class Norm(nn.Module):
    """RMSNorm, computed in F32."""

    def __init__(self, dim: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        y = x.float()
        y = y * torch.rsqrt(y.square().mean(-1, keepdim=True) + self.eps)
        return (y * self.weight).to(x.dtype)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate adjacent pairs. x [batch, heads, rows, head_dim], cos and sin [rows, head_dim/2]."""
    even, odd = x.float().unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2).to(x.dtype)


class Block(nn.Module):
    def __init__(self, c: Config) -> None:
        super().__init__()
        kv = c.kv_heads * c.head_dim
        self.head_dim = c.head_dim
        self.attn_norm, self.ffn_norm = Norm(c.dim, c.norm_eps), Norm(c.dim, c.norm_eps)
        self.attn_q, self.attn_k, self.attn_v = (nn.Linear(c.dim, n, bias=False) for n in (c.dim, kv, kv))
        self.attn_output = nn.Linear(c.dim, c.dim, bias=False)
        self.ffn_gate, self.ffn_up = (nn.Linear(c.dim, c.ffn, bias=False) for _ in range(2))
        self.ffn_down = nn.Linear(c.ffn, c.dim, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, attend: Attend) -> Tensor:
        h = self.attn_norm(x)
        q, k, v = (
            linear(h).unflatten(-1, (-1, self.head_dim)).transpose(1, 2)
            for linear in (self.attn_q, self.attn_k, self.attn_v)
        )
        out = attend(rotate(q, cos, sin), rotate(k, cos, sin), v)
        x = x + self.attn_output(out.transpose(1, 2).flatten(-2))
        h = self.ffn_norm(x)
        return x + self.ffn_down(F.silu(self.ffn_gate(h)) * self.ffn_up(h))


class Ember(nn.Module):
    """Token ids [batch, rows] to hidden states [batch, rows, dim]; ``logits`` is the (tied) head."""

    def __init__(self, c: Config) -> None:
        super().__init__()
        self.config = c
        self.token_embd = nn.Embedding(c.vocab, c.dim)
        self.blocks = nn.ModuleList(Block(c) for _ in range(c.layers))
        self.output_norm = Norm(c.dim, c.norm_eps)
        frequency = c.rope_base ** (-torch.arange(0, c.head_dim, 2).float() / c.head_dim)
        angle = torch.outer(torch.arange(c.context).float(), frequency)
        self.register_buffer("cos", angle.cos(), persistent=False)
        self.register_buffer("sin", angle.sin(), persistent=False)
        for name, p in self.named_parameters():
            if p.ndim == 2:
                scale = (
                    (2 * c.layers) ** -0.5
                    if name.endswith(("attn_output.weight", "ffn_down.weight"))
                    else 1.0
                )
                nn.init.normal_(p, std=0.02 if "embd" in name else p.shape[1] ** -0.5 * scale)

    def forward(self, ids: Tensor, attend: Attend = causal) -> Tensor:
        x = self.token_embd(ids)
        cos, sin = self.cos[: ids.shape[1]], self.sin[: ids.shape[1]]  # type: ignore[index]
        for block in self.blocks:
            x = block(x, cos, sin, attend)
        return self.output_norm(x)  # type: ignore[no-any-return]

    def logits(self, hidden: Tensor) -> Tensor:
        return F.linear(hidden, self.token_embd.weight)


def gguf_tensors(state: dict[str, Any]) -> dict[str, Any]:
    """A state dict under GGUF's tensor names (``blocks.0.attn_q.weight`` to ``blk.0.attn_q.weight``)."""
    return {name.replace("blocks.", "blk."): tensor for name, tensor in state.items()}


@torch.inference_mode()
def greedy(
    model: Ember, prompts: list[list[int]], stops: set[int], limit: int, batch: int = 256
) -> list[list[int]]:
    """Greedy continuations without a cache: simple, for development only."""
    device = model.token_embd.weight.device
    done: list[list[int]] = [[] for _ in prompts]
    order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
    for start in range(0, len(order), batch):
        chosen = order[start : start + batch]
        length = torch.tensor([len(prompts[i]) for i in chosen], device=device)
        longest = min(int(length.max()) + limit, model.config.context)
        ids = torch.zeros(len(chosen), longest, dtype=torch.long, device=device)
        for row, i in enumerate(chosen):
            ids[row, : len(prompts[i])] = torch.tensor(prompts[i])
        open_ = torch.ones(len(chosen), dtype=torch.bool, device=device)
        stop = torch.tensor(sorted(stops), device=device)
        while bool(open_.any()) and int(length.max()) < longest:
            rows = torch.arange(len(chosen), device=device)
            with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
                hidden = model(ids[:, : int(length.max())])
                best = model.logits(hidden[rows, length - 1]).float().argmax(-1)
            ids[rows[open_], length[open_]] = best[open_]
            length = length + open_
            open_ = open_ & ~torch.isin(best, stop)
        for row, i in enumerate(chosen):
            done[i] = ids[row, len(prompts[i]) : int(length[row])].tolist()
    return done
