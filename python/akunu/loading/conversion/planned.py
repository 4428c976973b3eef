"""A tensor of the new files, and how its rows are made of those of the old ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

import numpy as np
import numpy.typing as npt

from akunu.files.describe.blocks import DeltaNet, LatentAttention
from akunu.files.describe.config import ModelSpec
from akunu.files.describe.file_tensors import Shape
from akunu.files.describe.tensor_map import TensorRef
from akunu.files.describe.tensor_rules import TensorRule

__all__ = ["Change", "PlannedTensor", "arranged", "head_order", "is_matrix"]

Order = npt.NDArray[np.intp]


class Change(Enum):
    """A function that changes each value."""

    NONE = "none"
    DECAY = "-exp(x)"
    LOGARITHM = "log(-x)"

    def apply(self, values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        if self is Change.NONE:
            return values
        with np.errstate(all="ignore"):  # what is no number then is refused by its row
            wide = values.astype(np.float64)
            made = -np.exp(wide) if self is Change.DECAY else np.log(-wide)
        return made.astype(np.float32)


@dataclass(frozen=True, eq=False)
class PlannedTensor:
    """A tensor of the new files.

    Attributes
    ----------
    sources
        Where its rows are in the old files, one part behind the other. There are none where it has `values`,
        or is copied as it is.
    order
        Rows of these parts in the order that they get; None: as they are.
    columns
        The order that columns get.
    change, add
        What becomes of each value, after so much was added to it.
    turned
        The last two axes of its matrices are exchanged.
    exact
        Its rows are added to others, and stay floats.
    """

    name: str
    shape: Shape
    dtype: str
    sources: tuple[TensorRef, ...] = ()
    order: Order | None = None
    columns: Order | None = None
    change: Change = Change.NONE
    add: float = 0.0
    turned: bool = False
    exact: bool = False
    values: npt.NDArray[np.float32] | None = None

    @property
    def matrix(self) -> bool:
        """Whether the tensor has rows that may be quantised; vectors, also several of them, stay floats."""
        return bool(self.sources) and self.sources[0].n_cols > 0

    @property
    def n_matrices(self) -> int:
        """The number of matrices: one for each expert, mostly 1."""
        return math.prod(self.shape[:-2]) if self.matrix else 1


_PIECES: Final = {
    "delta_qkv": ("delta_q", "delta_k", "delta_v"),
    "latent_kv_b": ("latent_k", "latent_v"),
}
"""Canonical tensors that some files have in parts."""

_SAME: Final = {
    "delta_decay": ("delta_a_log", Change.DECAY),
    "delta_a_log": ("delta_decay", Change.LOGARITHM),
    "mamba_decay": ("mamba_a_log", Change.DECAY),
    "mamba_a_log": ("mamba_decay", Change.LOGARITHM),
}
"""Canonical tensors that are others after a change."""


def is_matrix(name: str, shape: Shape) -> bool:
    """Whether a tensor of a GGUF file has rows that llama.cpp quantises."""
    return len(shape) > 1 and name.endswith(".weight") and not name.endswith("_norm.weight")


def arranged(
    rule: TensorRule, layer: int, spec: ModelSpec, *, grouped: bool, rotated: int = 0, back: bool = False
) -> PlannedTensor | None:
    """Find the parts of a rule's tensor, and the order of their rows; None where the model lacks it.

    Its name and type are not decided yet, and its shape is that of a GGUF file.

    Parameters
    ----------
    grouped
        Neighbouring value heads of a delta net share a key head in the new files.
    rotated
        Heads whose rows are reordered, because other elements of them rotate together there.
    back
        They are those of a GGUF file, which has adjacent pairs.
    """
    in_layers = "{n}" in (rule.source or rule.hf)
    prefix = f"layers.{layer}." if in_layers else ""
    sizes = _Sizes(spec, layer if in_layers else None)
    sources: list[TensorRef] = []
    orders: list[Order] = []
    change, columns, first = Change.NONE, None, 0
    if not sizes.has(rule):
        return None
    for name, _ in rule.parts:
        refs, change = _refs(spec, prefix, name, sizes)
        if not refs:
            return None
        rows = sum(ref.n_rows for ref in refs)
        own = np.arange(rows)
        if rotated:
            own = own.reshape(rotated, 2, -1).swapaxes(1, 2).reshape(-1)
            own = np.argsort(own) if back else own
        head_rows, head_columns = sizes.value_heads(name, rows, grouped)
        if head_rows is not None:
            own = head_rows
        if head_columns is not None:
            columns = head_columns
        sources += refs
        orders.append(first + own)
        first += rows
    count = sizes.count(rule.count) if rule.count is not None else 1
    order = _joined(orders, count, interleaved=rule.interleaved)
    if len(sources) > 1 and rule.parts[0][0] == "latent_kv_b":  # a head's keys, and then its values
        heads = sizes.count("n_heads")
        ends = np.cumsum([ref.n_rows for ref in sources])[:-1]
        order = _joined(np.split(order, ends), heads, interleaved=False)
    turned = rule.parts[0][0] == "latent_k" and f"{prefix}latent_k" not in spec.tensors
    cols = sources[0].n_cols
    height = first if rule.flat or rule.count is None else first // count
    shape: Shape = (height, cols) if cols else (height,)
    if turned:
        shape = (cols, height)
    if rule.count is not None and not rule.flat:
        shape = (count, *shape)
    return PlannedTensor(
        "",
        shape,
        "f32",
        tuple(sources),
        None if np.array_equal(order, np.arange(first)) else order,
        columns,
        change,
        sources[0].add,
        turned=turned,
    )


def _joined(orders: Sequence[Order], count: int, *, interleaved: bool) -> Order:
    if interleaved:
        return np.stack(orders, axis=1).reshape(-1)
    if count > 1 and len(orders) > 1:
        return np.concatenate([order.reshape(count, -1) for order in orders], axis=1).reshape(-1)
    return np.concatenate(orders)


def _refs(spec: ModelSpec, prefix: str, name: str, sizes: _Sizes) -> tuple[tuple[TensorRef, ...], Change]:
    """Return where a canonical tensor's rows are, whether or not the files have it by this name."""
    found = spec.tensors.get(prefix + name)
    if found is not None:
        return (found,), Change.NONE
    pieces = tuple(spec.tensors.get(prefix + part) for part in _PIECES.get(name, ()))
    if pieces and all(pieces):
        named = zip(_PIECES[name], pieces, strict=True)
        return tuple(sizes.upright(part, ref) for part, ref in named if ref), Change.NONE
    for whole, parts in _PIECES.items():
        ref = spec.tensors.get(prefix + whole)
        if name in parts and ref is not None:
            return (sizes.piece(name, ref),), Change.NONE
    other, change = _SAME.get(name, ("", Change.NONE))
    ref = spec.tensors.get(prefix + other)
    return ((ref,), change) if ref is not None else ((), Change.NONE)


class _Sizes:
    """The counts of a layer's mixers, and the rows of heads."""

    def __init__(self, spec: ModelSpec, layer: int | None) -> None:
        self._counts: dict[str, int] = {}
        self._net: DeltaNet | None = None
        self._latent: LatentAttention | None = None
        if spec.config.streams is not None:
            self._counts["more_streams"] = spec.config.streams.count - 1
        for block in spec.config.blocks:
            if block.layer != layer:
                continue
            mixer = block.mixer
            match mixer.kind:
                case "experts":
                    self._counts["n_experts"] = mixer.count
                case "attention":
                    self._counts |= {"n_heads": mixer.n_heads, "n_kv_heads": mixer.n_kv_heads}
                case "latent_attention":
                    self._counts["n_heads"] = mixer.n_heads
                    self._latent = mixer
                case "mamba2":
                    self._counts |= {"delta_key_heads": mixer.groups, "delta_value_heads": mixer.heads}
                case "delta_net":
                    self._counts["delta_key_heads"] = mixer.key_heads
                    self._net = mixer

    def has(self, rule: TensorRule) -> bool:
        """Whether such a layer has the tensor: queries of latents are projected at once, or in two steps."""
        columns = {"latent_q_whole": False, "latent_q_rank": True}
        latent = self._latent
        return latent is None or columns.get(rule.cols or "", latent.q_rank > 0) is (latent.q_rank > 0)

    def count(self, symbol: str) -> int:
        return self._counts[symbol]

    def piece(self, name: str, whole: TensorRef) -> TensorRef:
        """The rows of q, k or v in the tensor that has all three, or of keys or values of a latent."""
        if (latent := self._latent) is not None:
            both = latent.nope_dim + latent.value_dim
            first, rows = (0, latent.nope_dim) if name == "latent_k" else (latent.nope_dim, latent.value_dim)
            return replace(
                whole,
                first_row=whole.first_row + first,
                n_rows=latent.n_heads * rows,
                group=(rows, both),
            )
        net = self._net
        assert net is not None
        keys, values = net.key_heads * net.key_dim, net.value_heads * net.value_dim
        first, rows = {"delta_q": (0, keys), "delta_k": (keys, keys), "delta_v": (2 * keys, values)}[name]
        return replace(whole, first_row=whole.first_row + first, n_rows=rows)

    def upright(self, name: str, ref: TensorRef) -> TensorRef:
        """Keys of a latent with a row for each element of a key, where they lie on their sides."""
        if name != "latent_k" or (latent := self._latent) is None:
            return ref
        return replace(ref, n_rows=latent.n_heads * latent.nope_dim, n_cols=latent.latent, turned=True)

    def value_heads(self, name: str, rows: int, grouped: bool) -> tuple[Order | None, Order | None]:
        """The order of a tensor's rows and of its columns where value heads have another order."""
        net = self._net
        if net is None or net.grouped is grouped or not name.startswith("delta_"):
            return None, None
        heads = head_order(net.value_heads, net.key_heads, grouped=grouped)
        elements = (heads[:, np.newaxis] * net.value_dim + np.arange(net.value_dim)).reshape(-1)
        match name.removeprefix("delta_"):
            case "b" | "a" | "decay" | "a_log" | "dt_bias":
                return heads, None
            case "v" | "z":
                return elements, None
            case "qkv" | "conv":
                first = rows - len(elements)
                return np.concatenate([np.arange(first), first + elements]), None
            case "output":
                return None, elements
        return None, None


def head_order(value_heads: int, key_heads: int, *, grouped: bool) -> Order:
    """Value heads of the other order by their places where neighbours share a key head, or do not."""
    axes = (-1, key_heads) if grouped else (key_heads, -1)
    return np.arange(value_heads).reshape(axes).T.reshape(-1)
