"""Matrices that are repacked, by numbers that no configuration can say: nothing is read past its end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from akunu import _core
from akunu.base.errors import ModelFileError
from akunu.files.repacking import PackedMatrix

from .safetensors_bytes import write_tensors

ROWS, COLS = 32, 64


def repacked(path: Path, layout: str, bits: int, group: int = COLS, **arrays: npt.NDArray[Any]) -> Any:
    file = path / "model.safetensors"
    write_tensors(file, arrays, types={"codes": "I8"} if layout == "bytes" else None)
    matrix = PackedMatrix(
        name="x.",
        layout=layout,
        bits=bits,
        rows=ROWS,
        cols=COLS,
        group=group,
        codes="codes",
        scales="scales",
        zeros="zeros" if "zeros" in arrays else "",
    )
    return _core.RepackedFiles(_core.SafetensorsFiles([str(file)]), [matrix], [])


def words(*shape: int) -> npt.NDArray[np.int32]:
    return np.zeros(shape, np.int32)


def test_a_group_that_wraps_round_is_refused(tmp_path: Path) -> None:
    """With 2^64 - 1 columns in a group the number of groups would wrap round to none."""
    with pytest.raises(ModelFileError, match="in groups of 18446744073709551615; expected sizes from 1 to"):
        repacked(
            tmp_path,
            "gptq",
            4,
            2**64 - 1,
            codes=words(COLS // 8, ROWS),
            scales=np.zeros((0, ROWS), np.float16),
        )


@pytest.mark.parametrize(("layout", "bits", "right"), [("bytes", 4, 8), ("awq", 2, 4), ("table", 8, 4)])
def test_bits_that_a_layout_does_not_have_are_refused(
    layout: str, bits: int, right: int, tmp_path: Path
) -> None:
    codes = np.zeros((ROWS, COLS), np.int8) if layout == "bytes" else words(COLS, ROWS * bits // 32)
    zeros = {"zeros": words(1, ROWS * bits // 32)} if layout == "awq" else {}
    with pytest.raises(ModelFileError, match=f"of {bits} bits .* expected codes of {right} bits"):
        repacked(tmp_path, layout, bits, codes=codes, scales=np.ones(ROWS, np.float16), **zeros)
