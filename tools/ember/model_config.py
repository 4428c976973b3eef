"""Ember's sizes, apart from the PyTorch model, so that the export needs no PyTorch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Config:
    """All matrix rows are multiples of 256, so that every GGUF block format applies."""

    vocab: int = 4096
    context: int = 2048
    dim: int = 256
    layers: int = 8
    heads: int = 4
    kv_heads: int = 2
    ffn: int = 1024
    rope_base: float = 10_000.0
    norm_eps: float = 1e-5

    @property
    def head_dim(self) -> int:
        return self.dim // self.heads
