"""How much an error in each column of a model's weights counts: an importance matrix.

A column of a matrix is multiplied by one element of its input. The mean square of that element over a text is
what the squared error of the column's weights adds to the squared error of the product, if inputs do not
correlate; so the quantisers make the sum of errors least that are weighed with it. llama.cpp's
`llama-imatrix` computes the same means, of windows of 512 tokens.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from akunu.architectures import ARCHITECTURES
from akunu.config import ModelConfig
from akunu.errors import InvalidArgumentError, ModelFileError
from akunu.options import as_path
from akunu.progress import Progress, reporter

__all__ = ["WINDOW", "ImportanceMatrix", "text_windows"]

WINDOW: Final = 512
"""Tokens of a text that are run together."""

Floats = npt.NDArray[np.float32]

_FUSED: Final = {"ffn_gate": "ffn_gate_up", "ffn_up": "ffn_gate_up"}
"""Commands that multiply with more than one matrix, by those they multiply with."""


@dataclass(frozen=True, eq=False)
class ImportanceMatrix:
    """What `Model.importance_matrix` has measured, or `read` has found in a file.

    Attributes
    ----------
    means
        By a matrix's name in GGUF files ("blk.0.attn_q.weight"): the mean square of each input, float32
        [columns]. Embedding and output head have none.
    tokens
        Over how many tokens, by the same names.
    window
        Tokens that were run together.
    texts
        Names of the texts.
    """

    means: Mapping[str, Floats]
    tokens: Mapping[str, int]
    window: int = WINDOW
    texts: tuple[str, ...] = ()

    @property
    def windows(self) -> int:
        """Of how many windows the text was, about."""
        return max((-(-n // self.window) for n in self.tokens.values()), default=0)

    @staticmethod
    def read(path: str | os.PathLike[str]) -> ImportanceMatrix:
        """A file that `write` or llama.cpp's `llama-imatrix` has written, GGUF or the older `.dat`.

        Raises
        ------
        ModelFileError
            It is missing, damaged, or something else.
        """
        from akunu.conversion.importance_file import read

        return read(as_path("path", path).expanduser())

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write a file for llama.cpp: GGUF where the name ends in `.gguf`, else the older format.

        Raises
        ------
        InvalidArgumentError
            The folder does not exist.
        OSError
            The file cannot be written.
        """
        from akunu.conversion.importance_file import write

        write(self, as_path("path", path).expanduser())

    def columns(self, tensor: str, n_cols: int) -> Floats | None:
        """What the columns of a matrix count; None where nothing is known of it.

        Raises
        ------
        ModelFileError
            The matrix has another number of columns.
        """
        found = self.means.get(tensor)
        if found is not None and len(found) != n_cols:
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
    squares: Mapping[str, npt.NDArray[np.float64]],
    config: ModelConfig,
    tokens: int,
    *,
    window: int,
    texts: tuple[str, ...],
) -> ImportanceMatrix:
    """The matrix of what `_core.Engine.input_squares` gave for so many tokens."""
    means: dict[str, Floats] = {}
    for layer in range(config.n_layers):
        for rule in ARCHITECTURES[config.arch].rules:
            part = rule.parts[0][0]
            if rule.cols is None or "{n}" not in rule.source:
                continue
            names = [f"layers.{layer}.{name}" for name in (part, _FUSED.get(part, part))]
            sums = next((squares[name] for name in names if name in squares), None)
            if sums is not None:
                means[rule.source.replace("{n}", str(layer))] = (sums / tokens).astype(np.float32)
    return ImportanceMatrix(means, dict.fromkeys(means, tokens), window, texts)


def importance_of(
    imatrix: ImportanceMatrix | str | os.PathLike[str] | None,
    model: Path,
    threads: int | None,
    progress: bool | Progress,
) -> ImportanceMatrix | None:
    """The matrix that `akunu.convert` was given: itself, in a file, or of a text that `model` is run over."""
    if imatrix is None or isinstance(imatrix, ImportanceMatrix):
        return imatrix
    from akunu.conversion.importance_file import is_importance_file

    path = as_path("imatrix", imatrix).expanduser()
    if is_importance_file(path):
        return ImportanceMatrix.read(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgumentError(
            f"imatrix: {path} is neither UTF-8 text nor an importance matrix: {error}"
        ) from error
    if not text:
        raise InvalidArgumentError(f"imatrix: {path} is empty")
    from akunu.loading import load

    with (
        load(model, device="cpu", context=None, threads=threads, parallel=1, progress=progress) as loaded,
        reporter(progress, "Measuring", unit="count") as report,
    ):
        return loaded.importance_matrix(text, name=path.name, progress=report)
