"""Importance matrices: how much an error in each column of a model's weights counts.

A column of a matrix is multiplied by one element of its input. The mean square of that element over a text is
what the squared error of the column's weights adds to the squared error of the product, if inputs do not
correlate; so the quantisers make the sum of errors least that are weighed with it. llama.cpp's
`llama-imatrix` computes the same means, of windows of 512 tokens.

Files hold them as llama.cpp's programs read and write them. GGUF: `general.type` is "imatrix", and each
matrix has two tensors: `<name>.in_sum2`, the sums of squares [experts, columns], and `<name>.counts`, over
how many tokens [experts, 1].

The older `.dat`, little-endian: an int32 count of entries; of each, the length of its name as int32, the
name, int32 windows, int32 columns and as many float32, which are means times windows; then int32 windows of
all, and the name of the text as the entries' names.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from akunu.base.arguments import as_path
from akunu.base.errors import InvalidArgumentError, ModelFileError
from akunu.base.whole_file import whole_file
from akunu.files.describe.architectures import ARCHITECTURES
from akunu.files.describe.config import ModelConfig
from akunu.files.gguf_bytes import TensorPlace, header, padded

__all__ = ["WINDOW", "ImportanceMatrix", "from_squares", "is_importance_file", "text_windows"]

WINDOW: Final = 512
"""Tokens of a text that are run together."""

Floats = npt.NDArray[np.float32]

_SAME_INPUT: Final = {
    f"{kind}_{part}": f"{kind}_gate_up" for kind in ("ffn", "experts", "shared") for part in ("gate", "up")
}
"""Commands whose input is that of a matrix: those of both."""


@dataclass(frozen=True, eq=False)
class ImportanceMatrix:
    """An importance matrix, which `Model.importance_matrix` has measured or `read` has found in a file.

    Attributes
    ----------
    means
        By a matrix's name in GGUF files ("blk.0.attn_q.weight"): the mean square of each input, float32
        [columns], or of those of each expert, [experts * columns]. Embedding and output head have none.
    tokens
        Over how many tokens, by the same names; of experts, the most of one.
    expert_tokens
        Of experts, over how many tokens each, by the same names.
    window
        Tokens that were run together.
    texts
        Names of the texts.
    """

    means: Mapping[str, Floats]
    tokens: Mapping[str, int]
    window: int = WINDOW
    texts: tuple[str, ...] = ()
    expert_tokens: Mapping[str, Sequence[int]] = field(default_factory=dict)

    @property
    def windows(self) -> int:
        """About how many windows the text had."""
        return max((-(-n // self.window) for n in self.tokens.values()), default=0)

    @staticmethod
    def read(path: str | os.PathLike[str]) -> ImportanceMatrix:
        """A file that `write` or llama.cpp's `llama-imatrix` has written, GGUF or the older `.dat`.

        Raises
        ------
        ModelFileError
            It is missing, damaged, or something else.
        """
        return _read(as_path("path", path).expanduser())

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write a file for llama.cpp: GGUF where the name ends in `.gguf`, else the older format.

        Raises
        ------
        InvalidArgumentError
            The folder does not exist.
        OSError
            The file cannot be written.
        """
        _write(self, as_path("path", path).expanduser())

    def columns(self, tensor: str, n_cols: int, n_matrices: int = 1) -> Floats | None:
        """Return what the columns of a matrix, or of each expert's, count; None where nothing is known of it.

        Raises
        ------
        ModelFileError
            The matrix has another number of columns.
        """
        found = self.means.get(tensor)
        if found is not None and len(found) not in (n_cols, n_cols * n_matrices):
            raise ModelFileError(
                f"importance matrix: tensor {tensor} has {len(found)} columns, the model's has {n_cols}; "
                "it was made for another model"
            )
        return found

    def check(self, tensors: Sequence[str]) -> None:
        """Refuse a matrix that knows none of a model's tensors.

        Raises
        ------
        ModelFileError
            It was made for another model.
        """
        if not any(name in self.means for name in tensors):
            known = next(iter(self.means), "none")
            raise ModelFileError(
                f"importance matrix: has none of the model's tensors, but for example {known}; "
                "it was made for another model"
            )

    def parts(self) -> Iterator[object]:
        """Everything that decides which weights a quantiser makes with it."""
        for name in sorted(self.means):
            yield name
            yield self.means[name].tobytes()


def text_windows(
    ids: npt.NDArray[np.uint32], prefix: Sequence[int], size: int
) -> list[npt.NDArray[np.uint32]]:
    """Tokens of a text, cut into windows of `size`, each with `prefix` before it.

    Raises
    ------
    InvalidArgumentError
        There are no tokens, or no room for one.
    """
    if size <= len(prefix):
        raise InvalidArgumentError(f"context: {size} tokens leave none to measure; give at least 2")
    if len(ids) == 0:
        raise InvalidArgumentError("text: no tokens; an importance matrix needs some thousand of them")
    step = size - len(prefix)
    start = np.asarray(prefix, np.uint32)
    return [np.concatenate([start, ids[i : i + step]]) for i in range(0, len(ids), step)]


def from_squares(
    squares: Mapping[str, tuple[npt.NDArray[np.float64], npt.NDArray[np.float64] | None]],
    config: ModelConfig,
    tokens: int,
    *,
    window: int,
    texts: tuple[str, ...],
) -> ImportanceMatrix:
    """The matrix of what `_core.Engine.input_squares` gave for so many tokens."""
    means: dict[str, Floats] = {}
    counts: dict[str, list[int]] = {}
    for layer in range(config.n_layers):
        for rule in ARCHITECTURES[config.arch].rules:
            part = rule.parts[0][0]
            if rule.cols is None or "{n}" not in rule.source:
                continue
            names = [f"layers.{layer}.{name}" for name in (part, _SAME_INPUT.get(part, part))]
            found = next((squares[name] for name in names if name in squares), None)
            if found is None:
                continue
            (sums, chosen), name = found, rule.source.replace("{n}", str(layer))
            if chosen is None:
                means[name] = (sums / tokens).astype(np.float32)
            else:
                means[name] = _expert_means(sums, chosen)
                counts[name] = chosen.astype(int).tolist()
    most = {name: max(counts.get(name, [tokens])) for name in means}
    return ImportanceMatrix(means, most, window, texts, counts)


def _expert_means(sums: npt.NDArray[Any], counts: npt.NDArray[Any]) -> Floats:
    """The means of each expert, one behind the other; of one that no token has chosen nothing is known."""
    counts = counts.reshape(-1, 1)
    found = np.where(counts > 0, sums / np.maximum(counts, 1), 1)
    return found.reshape(-1).astype(np.float32)


_TYPE: Final = "imatrix"
_SUMS, _COUNTS = ".in_sum2", ".counts"
_MOST_BYTES: Final = 1 << 30
_MOST_ENTRIES: Final = 1 << 16
_MOST_NAME: Final = 1 << 10
_F32: Final = 0


def is_importance_file(path: Path) -> bool:
    """Whether a file is one of the two, and not a text, by its first bytes."""
    if path.exists() and not path.is_file():  # a device may have no end
        raise ModelFileError(f"{path}: is not a regular file")
    try:
        with path.open("rb") as file:
            first = file.read(8)
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be read: {error.strerror}") from error
    return first.startswith(b"GGUF") or b"\0" in first


def _read(path: Path) -> ImportanceMatrix:
    """See `ImportanceMatrix.read`."""
    if not is_importance_file(path):
        raise ModelFileError(f"{path}: is not an importance matrix: expected GGUF, or the older .dat")
    with path.open("rb") as file:
        is_gguf = file.read(4) == b"GGUF"
    matrix = _read_gguf(path) if is_gguf else _read_dat(path)
    if not matrix.means:
        raise ModelFileError(f"{path}: has no entries; not an importance matrix")
    for name, means in matrix.means.items():
        if not (np.isfinite(means).all() and (means >= 0).all()):
            raise ModelFileError(f"{path}: {name} has a mean square that is NaN, infinite or negative")
    return matrix


def _write(matrix: ImportanceMatrix, path: Path) -> None:
    """See `ImportanceMatrix.write`."""
    if not path.parent.is_dir():
        raise InvalidArgumentError(f"out: the folder {path.parent} does not exist")
    data = _gguf_bytes(matrix) if path.suffix.lower() == ".gguf" else _dat_bytes(matrix)
    with whole_file(path) as file:
        file.writelines(data)


def _read_gguf(path: Path) -> ImportanceMatrix:
    from akunu import _core

    file = _core.GgufFile(str(path))
    if file.get("general.type") != _TYPE:
        raise ModelFileError(f"{path}: general.type: found {file.get('general.type')!r}, expected {_TYPE!r}")
    shapes = {tensor.name: tensor.shape for tensor in file.tensors}
    means: dict[str, npt.NDArray[np.float32]] = {}
    tokens: dict[str, int] = {}
    experts: dict[str, list[int]] = {}
    for tensor in file.tensors:
        if not tensor.name.endswith(_SUMS):
            continue
        name = tensor.name.removesuffix(_SUMS)
        n = shapes.get(name + _COUNTS, ())
        # llama.cpp writes no outer dimension of 1, which a matrix without experts has.
        rows = tensor.shape[0] if len(tensor.shape) == 2 else 1
        if len(tensor.shape) > 2 or tensor.dtype != "f32" or n not in ((rows, 1), (rows,)):
            raise ModelFileError(f"{path}: {name}: sums of shape {tensor.shape} and counts of shape {n}")
        sums = _floats(file.tensor_bytes(tensor.name)).reshape(rows, -1)
        counts = _floats(file.tensor_bytes(name + _COUNTS)).reshape(rows, 1)
        means[name] = _expert_means(sums, counts)
        counts = counts if np.isfinite(counts).all() else np.zeros_like(counts)
        tokens[name] = int(counts.max())
        if rows > 1:
            experts[name] = counts.reshape(-1).astype(int).tolist()
    texts = file.get("imatrix.datasets", [])
    window = file.get("imatrix.chunk_size", WINDOW)
    return ImportanceMatrix(
        means,
        tokens,
        window if isinstance(window, int) and 0 < window < 1 << 31 else WINDOW,
        tuple(str(text) for text in texts) if isinstance(texts, list) else (),
        experts,
    )


def _floats(data: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
    return data.view("<f4").astype(np.float32)


def _read_dat(path: Path) -> ImportanceMatrix:
    if path.stat().st_size > _MOST_BYTES:
        raise ModelFileError(f"{path}: has more than the {_MOST_BYTES} bytes of an importance matrix")
    data = path.read_bytes()
    at = 0

    def integer(what: str, most: int) -> int:
        nonlocal at
        (value,) = struct.unpack("<i", take(what, 4))
        if not 0 <= value <= most:
            raise ModelFileError(
                f"{path}: {what}: found {value}, expected 0..{most}; not an importance matrix"
            )
        return int(value)

    def take(what: str, n: int) -> bytes:
        nonlocal at
        if len(data) - at < n:
            raise ModelFileError(f"{path}: ends within {what}; not an importance matrix, or cut off")
        at += n
        return data[at - n : at]

    def text(what: str) -> str:
        return take(what, integer(f"the length of {what}", _MOST_NAME)).decode("utf-8", "surrogateescape")

    means: dict[str, npt.NDArray[np.float32]] = {}
    windows: dict[str, int] = {}
    for i in range(integer("the count of entries", _MOST_ENTRIES)):
        name = text(f"the name of entry {i}")
        windows[name] = integer(f"the windows of {name!r}", (1 << 31) - 1)
        columns = integer(f"the columns of {name!r}", 1 << 28)
        values = np.frombuffer(take(f"the values of {name!r}", 4 * columns), "<f4")
        means[name] = (values / max(windows[name], 1)).astype(np.float32)
    # Files of the first programs end here.
    texts: tuple[str, ...] = ()
    if at < len(data):
        integer("the count of windows", (1 << 31) - 1)
        texts = (text("the name of the text"),)
    return ImportanceMatrix(means, {name: n * WINDOW for name, n in windows.items()}, WINDOW, texts)


def _gguf_bytes(matrix: ImportanceMatrix) -> Iterable[bytes]:
    arrays: list[tuple[str, npt.NDArray[np.float32]]] = []
    for name in sorted(matrix.means):
        counts = matrix.expert_tokens.get(name, [matrix.tokens[name]])
        tokens = np.asarray(counts, np.float32).reshape(-1, 1)
        arrays.append((name + _SUMS, matrix.means[name].reshape(len(tokens), -1) * tokens))
        arrays.append((name + _COUNTS, tokens))
    places, offset = [], 0
    for name, array in arrays:
        places.append(TensorPlace(name, array.shape, _F32, offset, array.nbytes))
        offset += padded(array.nbytes)
    yield header(
        {
            "general.type": _TYPE,
            "imatrix.datasets": list(matrix.texts) or ["?"],
            "imatrix.chunk_count": matrix.windows,
            "imatrix.chunk_size": matrix.window,
        },
        places,
    )
    for _, array in arrays:
        yield array.astype("<f4").tobytes().ljust(padded(array.nbytes), b"\0")


def _dat_bytes(matrix: ImportanceMatrix) -> Iterable[bytes]:
    def text(value: str) -> bytes:
        encoded = value.encode("utf-8", "surrogateescape")
        return struct.pack("<i", len(encoded)) + encoded

    yield struct.pack("<i", len(matrix.means))
    for name in sorted(matrix.means):
        means = matrix.means[name]
        windows = -(-matrix.tokens[name] // matrix.window)
        yield text(name) + struct.pack("<ii", windows, len(means))
        yield (means * np.float32(windows)).astype("<f4").tobytes()
    yield struct.pack("<i", matrix.windows) + text(matrix.texts[-1] if matrix.texts else "?")
