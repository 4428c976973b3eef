"""From an architecture's tensor rules and a file's tensors to the place of every canonical tensor."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Protocol

from akunu.base.errors import ModelFileError, UnsupportedError
from akunu.files.describe.tensor_rules import TensorRule

__all__ = [
    "LayerTensors",
    "TensorInfo",
    "TensorRef",
    "by_name",
    "check_shape",
    "map_tensors",
    "rows_of",
    "warn_of_left_out",
]

_FLOATS = ("f32", "f16", "bf16")


class TensorInfo(Protocol):
    """One tensor of a file: `shape` is outermost first, so a linear layer is (rows, cols)."""

    @property
    def name(self) -> str: ...
    @property
    def dtype(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...


@dataclass(frozen=True)
class TensorRef:
    """The place of a canonical tensor: rows `first_row` to `first_row + n_rows` of tensor `source`.

    A vector (norm, bias) has one element a row, and `n_cols` 0. `add` is added to every element: some files
    hold the weights of a norm less 1. Of a quantized matrix in several tensors, `dtype` is the type that they
    make, `source` has the codes, and `scales` and `biases` are the others; `scale_tile` is as in
    `akunu.files.describe.quantized.Matrix`. `factor` names the number that NVFP4 weights are multiplied with
    besides, or one of each expert; or its inverse.

    Where `group` is (rows, period), the rows are not one run: from the first one on, `rows` of every `period`
    are taken, `n_rows` in all. Where `more` names tensors, they go on where `source` ends, and each gives as
    many rows; of quantized ones `more_planes` has each one's scales, biases and factor. Where it is `turned`,
    the last two axes of its matrices are exchanged. Of each `swapped` rows the second quarter and the third
    are exchanged; 0: of none.
    """

    source: str
    first_row: int
    n_rows: int
    n_cols: int
    add: float = 0.0
    dtype: str = ""
    scales: str = ""
    biases: str = ""
    factor: str = ""
    inverse: bool = False
    scale_tile: tuple[int, int] | None = None
    group: tuple[int, int] | None = None
    more: tuple[str, ...] = ()
    more_planes: tuple[tuple[str, str, str], ...] = ()
    turned: bool = False
    swapped: int = 0


@dataclass(frozen=True)
class LayerTensors:
    """The tensors of one layer: its rules, and what their symbols stand for in it."""

    rules: tuple[TensorRule, ...]
    sizes: Mapping[str, int]


def by_name(tensors: Sequence[TensorInfo]) -> dict[str, TensorInfo]:
    """The tensors of a file by their names, which differ."""
    found: dict[str, TensorInfo] = {}
    for tensor in tensors:
        if tensor.name in found:
            raise ModelFileError(f"tensor {tensor.name} appears twice")
        found[tensor.name] = tensor
    return found


def map_tensors(
    rules: Iterable[TensorRule],
    tensors: Mapping[str, TensorInfo],
    sizes: Mapping[str, int],
    layers: Sequence[LayerTensors] = (),
    *,
    owner: str,
    known: Iterable[str] = (),
    ignored: Sequence[str] = (),
) -> dict[str, TensorRef]:
    """Place of every canonical tensor; raises when one is missing, misshapen, or left over.

    Parameters
    ----------
    rules
        What the file may have outside of layers. Their `source` names tensors of this file.
    tensors
        The file's, by name.
    sizes
        What the symbols of these rules stand for.
    layers
        What each layer may have, in order.
    owner
        The architecture, for messages.
    known, ignored
        Names, and patterns of names, that may be left over.
    """
    found: dict[TensorRule, list[tuple[str, str, Mapping[str, int]]]] = {
        rule: [("", rule.source, sizes)] for rule in rules
    }
    for n, layer in enumerate(layers):
        for rule in layer.rules:
            if not rule.is_in(layer.sizes):
                continue
            source = rule.source.replace("{n}", str(n))
            found.setdefault(rule, []).append((f"layers.{n}.", source, layer.sizes))
    refs: dict[str, TensorRef] = {}
    used = set(known)
    for rule, places in found.items():
        sources = [_sources(rule, source, own) for _, source, own in places]
        if rule.optional and not any(name in tensors for names in sources for name in names):
            continue
        for (prefix, _, own), names in zip(places, sources, strict=True):
            refs |= _place(rule, names, tensors, own, prefix, owner, len(places))
            used.update(names)
    for name in tensors:
        if name not in used and not any(fnmatchcase(name, pattern) for pattern in ignored):
            shown = name if name.isprintable() else repr(name)
            raise UnsupportedError(
                f"tensor {shown}: the architecture {owner} with {len(layers)} layers has no such tensor, "
                "and to leave it out would change the model"
            )
    return refs


def _sources(rule: TensorRule, source: str, sizes: Mapping[str, int]) -> list[str]:
    """The tensors of the file that a rule is about: one, or one for each of its count."""
    if "{e}" not in source:
        return [source]
    assert rule.count is not None, source
    return [source.replace("{e}", str(e)) for e in range(sizes[rule.count])]


def _place(
    rule: TensorRule,
    sources: Sequence[str],
    tensors: Mapping[str, TensorInfo],
    sizes: Mapping[str, int],
    prefix: str,
    owner: str,
    n_places: int,
) -> dict[str, TensorRef]:
    """Return where the parts of a rule's tensors lie, by their canonical names."""
    rows = [sizes[symbol] for _, symbol in rule.parts]
    n_cols = sizes[rule.cols] if rule.cols is not None else 0
    count = sizes[rule.count] if rule.count is not None else 1
    stacked = rule.count is not None and "{e}" not in rule.source and not rule.flat
    height = sum(rows) * (count if rule.flat else 1)
    turned = False
    shape = (*((count,) if stacked else ()), height, *((n_cols,) if n_cols else ()))
    for source in sources:
        tensor = tensors.get(source)
        if tensor is None:
            where = f"{n_places} layers of this {owner} model need it" if prefix else "it is needed"
            raise ModelFileError(f"tensor {source} is missing; {where}")
        turned = n_cols > 0 and tensor.dtype in _FLOATS and rule.turned != "never"
        if rule.turned == "maybe" and tuple(tensor.shape) == shape:
            turned = False
        check_shape(tensor, (*shape[:-2], n_cols, height) if turned else shape, vector=not n_cols)
    refs: dict[str, TensorRef] = {}
    first = 0
    for i, ((name, _), n_rows) in enumerate(zip(rule.parts, rows, strict=True)):
        group = None
        if rule.interleaved:
            group = (1, len(rows))
        elif len(rows) > 1 and count > 1:
            group = (n_rows, sum(rows))
        refs[prefix + name] = TensorRef(
            sources[0],
            i if rule.interleaved else first,
            n_rows * count,
            n_cols,
            group=group,
            more=tuple(sources[1:]),
            turned=turned,
            swapped=sizes[rule.swapped] if rule.swapped else 0,
        )
        first += n_rows
    return refs


def warn_of_left_out(tensors: Iterable[str], patterns: Mapping[str, str], owner: str) -> None:
    """Say what of a file is not loaded; `patterns` of names, and what such tensors are for."""
    counts: dict[str, int] = {}
    for name in tensors:
        what = next((what for pattern, what in patterns.items() if fnmatchcase(name, pattern)), None)
        if what is not None:
            counts[what] = counts.get(what, 0) + 1
    if counts:
        parts = ", ".join(f"{n} for {what}" for what, n in counts.items())
        warnings.warn(f"tensors of this {owner} model are left out: {parts}", RuntimeWarning, stacklevel=4)


def rows_of(tensor: TensorInfo) -> int:
    """Rows of a matrix, which may be written as a vector if it is one."""
    return tensor.shape[0] if len(tensor.shape) > 1 else 1


def check_shape(tensor: TensorInfo, expected: tuple[int, ...], *, vector: bool | None = None) -> None:
    """Raise unless the tensor has this shape, and a vector a type that vectors have.

    `vector`: it is one, or several of them; by default what has one axis. llama.cpp writes a matrix of one
    row as a vector, and vectors as matrices of one column; some checkpoints, as those of one row.
    """
    shape = tuple(tensor.shape)
    # Convolutions have an axis for the one channel that each reads.
    if len(shape) == 3 and len(expected) == 2:
        shape = tuple(n for n in shape if n != 1)
    as_row = (len(expected) == 2 and (1, *shape) == expected) or (
        len(expected) == 1 and shape in ((1, *expected), (*expected, 1))
    )
    as_row |= expected == (*shape, 1)
    if shape != expected and not as_row:
        raise ModelFileError(f"tensor {tensor.name}: found shape {shape}, expected {expected}")
    if vector is None:
        vector = len(expected) == 1
    if vector and tensor.dtype not in _FLOATS:
        raise UnsupportedError(
            f"tensor {tensor.name}: found type {tensor.dtype}, expected one of {', '.join(_FLOATS)} "
            "for a vector"
        )
