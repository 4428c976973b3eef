"""From an architecture's tensor rules and a file's tensors to the place of every canonical tensor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Protocol

from akunu.base.errors import ModelFileError, UnsupportedError
from akunu.describe.architectures import TensorRule

__all__ = ["TensorInfo", "TensorRef", "by_name", "check_shape", "map_tensors", "rows_of"]

_VECTOR_DTYPES = ("f32", "f16", "bf16")


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
    """Where a canonical tensor lies: rows `first_row` to `first_row + n_rows` of tensor `source`.

    A vector (norm, bias) has one element a row, and `n_cols` 0. `add` is added to every element: some files
    hold the weights of a norm less 1. Of a quantized matrix in several tensors, `dtype` is the type that they
    make, `source` has the codes, and `scales` and `biases` are the others; `scale_tile` is as in
    `akunu.describe.quantized.Matrix`.
    """

    source: str
    first_row: int
    n_rows: int
    n_cols: int
    add: float = 0.0
    dtype: str = ""
    scales: str = ""
    biases: str = ""
    scale_tile: tuple[int, int] | None = None


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
    n_layers: int,
    *,
    owner: str,
    known: Iterable[str] = (),
    ignored: Sequence[str] = (),
) -> dict[str, TensorRef]:
    """Place of every canonical tensor; raises when one is missing, misshapen, or left over.

    Parameters
    ----------
    rules
        What the file may have. Their `source` names tensors of this file.
    tensors
        The file's, by name.
    sizes
        What the rules' symbols stand for.
    owner
        The architecture, for messages.
    known, ignored
        Names, and patterns of names, that may be left over.
    """
    refs: dict[str, TensorRef] = {}
    used = set(known)
    for rule in rules:
        layers = range(int(rule.skips_first), n_layers)
        prefixes = [f"layers.{n}." for n in layers] if "{n}" in rule.source else [""]
        sources = [rule.source.replace("{n}", str(n)) for n in (layers if "{n}" in rule.source else (0,))]
        if rule.optional and not any(source in tensors for source in sources):
            continue
        for prefix, source in zip(prefixes, sources, strict=True):
            tensor = tensors.get(source)
            if tensor is None:
                where = f"the {n_layers} layers of this {owner} model need it" if prefix else "it is needed"
                raise ModelFileError(f"tensor {source} is missing; {where}")
            rows = [sizes[symbol] for _, symbol in rule.parts]
            n_cols = sizes[rule.cols] if rule.cols is not None else 0
            check_shape(tensor, (sum(rows), n_cols) if n_cols else (sum(rows),))
            first = 0
            for (name, _), n_rows in zip(rule.parts, rows, strict=True):
                refs[prefix + name] = TensorRef(source, first, n_rows, n_cols)
                first += n_rows
            used.add(source)
    for name in tensors:
        if name not in used and not any(fnmatchcase(name, pattern) for pattern in ignored):
            shown = name if name.isprintable() else repr(name)
            raise UnsupportedError(
                f"tensor {shown}: the architecture {owner} with {n_layers} layers has no such tensor, "
                "and to leave it out would change the model"
            )
    return refs


def rows_of(tensor: TensorInfo) -> int:
    """Rows of a matrix, which may be written as a vector if it is one."""
    return tensor.shape[0] if len(tensor.shape) > 1 else 1


def check_shape(tensor: TensorInfo, expected: tuple[int, ...]) -> None:
    """Raise unless the tensor has this shape, and a vector a type that vectors have.

    llama.cpp writes a matrix of one row as a vector.
    """
    shape = tuple(tensor.shape)
    if shape != expected and not (len(expected) == 2 and (1, *shape) == expected):
        raise ModelFileError(f"tensor {tensor.name}: found shape {shape}, expected {expected}")
    if len(expected) == 1 and tensor.dtype not in _VECTOR_DTYPES:
        raise UnsupportedError(
            f"tensor {tensor.name}: found type {tensor.dtype}, expected one of {', '.join(_VECTOR_DTYPES)} "
            "for a vector"
        )
