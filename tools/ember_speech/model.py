"""Whisper in PyTorch, with OpenAI's names of the weights, as files of whisper.cpp have them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tools.ember_speech.synthesis import PHONEMES
from tools.ember_speech.windows import CONTEXT, POSITIONS


@dataclass(frozen=True)
class Config:
    """Sizes; the heads are 64 wide. `aligned` names the heads of the cross-attention, as (layer,
    head), that learn when each token is heard."""

    vocab: int
    width: int = 256
    audio_layers: int = 6
    text_layers: int = 3
    mels: int = 80
    positions: int = POSITIONS
    context: int = CONTEXT
    aligned: tuple[tuple[int, int], ...] = ((1, 0), (2, 0))

    @property
    def heads(self) -> int:
        return self.width // 64


class Attention(nn.Module):
    """The key has no bias."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.heads = width // 64
        self.query, self.value, self.out = (nn.Linear(width, width) for _ in range(3))
        self.key = nn.Linear(width, width, bias=False)

    def _split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, x: Tensor, memory: Tensor | None = None, causal: bool = False) -> Tensor:
        """x [batch, rows, width] attends to `memory`, or to itself."""
        source = x if memory is None else memory
        q, k, v = self._split(self.query(x)), self._split(self.key(source)), self._split(self.value(source))
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return self.out(attended.transpose(1, 2).flatten(2))  # type: ignore[no-any-return]

    def log_weights(self, x: Tensor, memory: Tensor, heads: list[int]) -> Tensor:
        """log of how `heads` attend, [batch, heads, rows, positions], float32."""
        q, k = (self._split(y)[:, heads] for y in (self.query(x), self.key(memory)))
        return (q @ k.mT).float().mul(q.shape[-1] ** -0.5).log_softmax(-1)


class Block(nn.Module):
    """Normalisation before each part; `cross_attn` in the decoder only."""

    def __init__(self, width: int, cross: bool) -> None:
        super().__init__()
        self.attn, self.attn_ln = Attention(width), nn.LayerNorm(width)
        if cross:
            self.cross_attn, self.cross_attn_ln = Attention(width), nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.mlp_ln = nn.LayerNorm(width)


def sinusoids(length: int, width: int) -> Tensor:
    """The encoder's positions."""
    scale = torch.exp(-math.log(10000) / (width // 2 - 1) * torch.arange(width // 2))
    angles = torch.arange(length)[:, None] * scale
    return torch.cat([angles.sin(), angles.cos()], 1)


class Encoder(nn.Module):
    def __init__(self, c: Config) -> None:
        super().__init__()
        self.conv1 = nn.Conv1d(c.mels, c.width, 3, padding=1)
        self.conv2 = nn.Conv1d(c.width, c.width, 3, stride=2, padding=1)
        self.register_buffer("positional_embedding", sinusoids(c.positions, c.width))
        self.blocks = nn.ModuleList(Block(c.width, False) for _ in range(c.audio_layers))
        self.ln_post = nn.LayerNorm(c.width)

    def forward(self, mel: Tensor) -> Tensor:
        """[batch, mels, 2 positions] to [batch, positions, width]."""
        x = F.gelu(self.conv2(F.gelu(self.conv1(mel)))).mT + self.positional_embedding
        for block in self.blocks:
            x = x + block.attn(block.attn_ln(x))
            x = x + block.mlp(block.mlp_ln(x))
        return self.ln_post(x)  # type: ignore[no-any-return]


class Decoder(nn.Module):
    def __init__(self, c: Config) -> None:
        super().__init__()
        self.token_embedding = nn.Embedding(c.vocab, c.width)
        self.positional_embedding = nn.Parameter(torch.randn(c.context, c.width) * 0.01)
        self.blocks = nn.ModuleList(Block(c.width, True) for _ in range(c.text_layers))
        self.ln = nn.LayerNorm(c.width)

    def forward(
        self, ids: Tensor, memory: Tensor, heads: tuple[tuple[int, int], ...] = ()
    ) -> tuple[Tensor, list[Tensor]]:
        """Logits [batch, rows, vocab], and layer by layer the logarithms of how `heads` attend."""
        x = self.token_embedding(ids) + self.positional_embedding[: ids.shape[1]]
        attended = []
        for layer, block in enumerate(self.blocks):
            x = x + block.attn(block.attn_ln(x), causal=True)
            h = block.cross_attn_ln(x)
            if chosen := [head for where, head in heads if where == layer]:
                attended.append(block.cross_attn.log_weights(h, memory, chosen))
            x = x + block.cross_attn(h, memory)
            x = x + block.mlp(block.mlp_ln(x))
        return F.linear(self.ln(x), self.token_embedding.weight), attended


class Whisper(nn.Module):
    """`phonemes` is a head on the encoder that only the training has."""

    def __init__(self, c: Config) -> None:
        super().__init__()
        self.config = c
        self.encoder, self.decoder = Encoder(c), Decoder(c)
        self.phonemes = nn.Linear(c.width, len(PHONEMES))
        for name, p in self.named_parameters():
            if p.ndim == 2 and "embedding" not in name:
                last = name.endswith(("out.weight", "mlp.2.weight"))
                depth = 2 * c.audio_layers if name.startswith("encoder") else 3 * c.text_layers
                nn.init.normal_(p, std=p.shape[1] ** -0.5 * (depth**-0.5 if last else 1.0))
            elif name.endswith("bias"):
                nn.init.zeros_(p)
        nn.init.normal_(self.decoder.token_embedding.weight, std=0.03)
