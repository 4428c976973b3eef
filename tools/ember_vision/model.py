"""ember-vision in PyTorch: Pixtral's tower before a Llama, whose pairs of rotary elements are neighbours."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tools.ember.model import Block, Norm, causal
from tools.ember.model_config import Config as Stack
from tools.ember_vision.config import DEVIATION, MEAN, MERGE, VALUES, Config
from tools.ember_vision.scene import COLOURS, SHAPES, SLOTS
from tools.ember_vision.tokens import IMAGE

LETTERS = 96  # the printable characters of ASCII, and none
_CLASSES = (*(LETTERS,) * SLOTS, 1 + len(SHAPES), 1 + len(COLOURS))


def everywhere(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention in both directions."""
    return F.scaled_dot_product_attention(q, k, v)


def in_parts(parts: Tensor) -> Tensor:
    """What each row may see [batch, 1, rows, rows]: rows of part 0 and of its own part, up to itself."""
    seen = (parts[:, None, :] == 0) | (parts[:, None, :] == parts[:, :, None])
    return seen.tril()[:, None]


def masked(block: nn.Module, x: Tensor, cos: Tensor, sin: Tensor, seen: Tensor) -> Tensor:
    """One block, where `seen` says what each row may see."""

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        groups = q.shape[1] // k.shape[1]
        k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=seen)

    return block(x, cos, sin, attend)  # type: ignore[no-any-return]


def frequencies(c: Stack) -> Tensor:
    """Of the rotary pairs of a head."""
    return c.rope_base ** (-torch.arange(0, c.head_dim, 2).float() / c.head_dim)


class Tower(nn.Module):
    """Patches [batch, patches, VALUES] to rows [batch, cells, width of the text].

    The patches of a cell stand together. Half of the rotary pairs turn by the row of a patch, with every
    second frequency, and half by its column, with the others.
    """

    def __init__(self, c: Stack, out: int) -> None:
        super().__init__()
        self.patch_embd = nn.Linear(VALUES, c.dim, bias=False)
        self.pre_norm = Norm(c.dim, c.norm_eps)
        self.blocks = nn.ModuleList(Block(c) for _ in range(c.layers))
        self.input_norm = Norm(c.dim, c.norm_eps)
        self.patch_merger = nn.Linear(c.dim * MERGE**2, c.dim, bias=False)
        self.first, self.last = nn.Linear(c.dim, out, bias=False), nn.Linear(out, out, bias=False)
        self.register_buffer("frequency", frequencies(c), persistent=False)

    def angles(self, places: Tensor) -> tuple[Tensor, Tensor]:
        """Cosines and sines [batch, 1, patches, pairs] for places [batch, patches, (row, column)]."""
        down, across = self.frequency[0::2], self.frequency[1::2]  # type: ignore[index]
        row, column = places.float().unsqueeze(-1).unbind(-2)
        angle = torch.cat([row * down, column * across], -1)[:, None]
        return angle.cos(), angle.sin()

    def forward(self, patches: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
        """The rows, and the cells [batch, cells, width of the tower] that they are made of."""
        x = self.pre_norm(self.patch_embd(patches))
        cos, sin = self.angles(places)
        for block in self.blocks:
            x = block(x, cos, sin, everywhere)
        # The merger takes the four patches element by element.
        merged = self.input_norm(x).unflatten(1, (-1, MERGE**2)).transpose(2, 3).flatten(2)
        cells = self.patch_merger(merged)
        return self.last(F.gelu(self.first(cells))), cells


class Vision(nn.Module):
    """The whole; `heads` on the tower are only for the training, and `step` is how a block is run."""

    step = staticmethod(masked)

    def __init__(self, c: Config) -> None:
        super().__init__()
        self.config = c
        text = c.text
        self.tower = Tower(c.tower, text.dim)
        self.token_embd = nn.Embedding(text.vocab, text.dim)
        self.blocks = nn.ModuleList(Block(text) for _ in range(text.layers))
        self.output_norm = Norm(text.dim, text.norm_eps)
        self.heads = nn.Linear(c.tower.dim, sum(_CLASSES))
        angle = torch.outer(torch.arange(text.context).float(), frequencies(text))
        self.register_buffer("cos", angle.cos(), persistent=False)
        self.register_buffer("sin", angle.sin(), persistent=False)
        for name, p in self.named_parameters():
            if p.ndim == 2:
                layers = c.tower.layers if name.startswith("tower") else text.layers
                last = name.endswith(("attn_output.weight", "ffn_down.weight"))
                scale = (2 * layers) ** -0.5 if last else 1.0
                nn.init.normal_(p, std=0.02 if "token_embd" in name else p.shape[1] ** -0.5 * scale)

    def forward(
        self,
        ids: Tensor,
        patches: Tensor,
        places: Tensor,
        parts: Tensor | None = None,
        at: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Logits [batch, rows, vocab] and what the heads say [batch, cells, classes].

        ids [batch, rows] have IMAGE in the place of each cell of the picture, uint8 patches [batch, patches,
        VALUES], whose rows and columns are `places`. `parts` and the places `at` of the tokens are those of a
        batch; without them all is one text.
        """
        pixels = (patches.to(self.token_embd.weight.dtype) / 255 - MEAN) / DEVIATION
        rows, cells = self.tower(pixels, places)
        x = self.token_embd(ids)
        x = x.masked_scatter((ids == IMAGE)[..., None], rows.to(x.dtype))
        if parts is None or at is None:
            cos, sin = self.cos[: ids.shape[1]], self.sin[: ids.shape[1]]  # type: ignore[index]
            for block in self.blocks:
                x = block(x, cos, sin, causal)
        else:
            cos, sin = self.cos[at][:, None], self.sin[at][:, None]  # type: ignore[index]
            seen = in_parts(parts)
            for block in self.blocks:
                x = self.step(block, x, cos, sin, seen)
        return F.linear(self.output_norm(x), self.token_embd.weight), self.heads(cells)


def places_of(rows: Tensor, columns: Tensor, cells: int) -> Tensor:
    """Rows and columns of patches [batch, 4 * cells, 2], cell by cell, of pictures with so many cells."""
    number = torch.arange(cells, device=rows.device)
    row, column = number // columns[:, None], number % columns[:, None]
    inside = torch.arange(MERGE, device=rows.device)
    down = (row[..., None] * MERGE + inside)[..., :, None].expand(-1, -1, MERGE, MERGE)
    across = (column[..., None] * MERGE + inside)[..., None, :].expand(-1, -1, MERGE, MERGE)
    return torch.stack([down, across], -1).flatten(1, 3)


def cells_loss(said: Tensor, cells: Tensor) -> Tensor:
    """What the heads' words about the cells [batch, cells, SLOTS + 2] cost; empty ones count less."""
    total = said.new_zeros((), dtype=torch.float32)
    for part, truth in zip(said.split(_CLASSES, -1), cells.long().unbind(-1), strict=True):
        cost = F.cross_entropy(part.float().flatten(0, 1), truth.flatten(), reduction="none")
        weight = torch.where(truth.flatten() > 0, 1.0, 0.05)
        total = total + (cost * weight).sum() / weight.sum()
    return total


def gguf_names(state: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The tensors of the text and of the tower, by their names in GGUF files."""
    text: dict[str, Any] = {}
    tower: dict[str, Any] = {}
    layer = {"attn_norm": "ln1", "ffn_norm": "ln2", "attn_output": "attn_out"}
    whole = {
        "patch_embd": "v.patch_embd", "pre_norm": "v.pre_ln", "input_norm": "mm.input_norm",
        "patch_merger": "mm.patch_merger", "first": "mm.1", "last": "mm.2",
    }  # fmt: skip
    for name, tensor in state.items():
        if name.startswith("heads."):
            continue
        if not name.startswith("tower."):
            text[name.replace("blocks.", "blk.")] = tensor
            continue
        own = name.removeprefix("tower.").removesuffix(".weight")
        if own.startswith("blocks."):
            _, n, part = own.split(".")
            tower[f"v.blk.{n}.{layer.get(part, part)}.weight"] = tensor
        else:
            tower[f"{whole[own]}.weight"] = tensor
    return text, tower
