"""The kernels of MLX's affine formats, run by the emulator's harness; see matmul_lab.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kernels import reference as ref
from kernels.problem import pack
from kernels.runner import nmse
from metal import matmul_lab as lab

BITS = (2, 3, 4, 5, 6, 8)
GROUPS = (32, 64, 128)
SCALE_TYPES = {"f32": 0, "f16": 1, "bf16": 30}


def pack_codes(q: npt.NDArray[np.uint8], bits: int) -> npt.NDArray[np.uint8]:
    """Codes [rows, k] as a dense stream of bits per row, least significant first."""
    stream = (q[:, :, None] >> np.arange(bits, dtype=np.uint8)) & 1
    return np.packbits(stream.reshape(len(q), -1), axis=1, bitorder="little")


def _stored(x: ref.F32, kind: str) -> tuple[Any, ref.F64]:
    """An array in a scale type, and its values."""
    if kind == "bf16":
        raw = (x.view(np.uint32) >> 16).astype(np.uint16)
        return raw, (raw.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    stored = x.astype({"f32": np.float32, "f16": np.float16}[kind])
    return stored, stored.astype(np.float64)


class MlxRun(lab.Run):
    """A run whose weights are three arrays."""

    def __init__(
        self, bits: int, group: int, scale_type: str, k: int, *case: int | str, **options: Any
    ) -> None:
        super().__init__(f"mlx_q{bits}", k, group, scale_type, *case, **options)
        self.bits, self.group, self.scale_type = bits, group, scale_type
        self.constants |= {"MLX_GROUP": group, "MLX_SCALE_TYPE": SCALE_TYPES[scale_type]}

    def mlx_weight(self, n: int) -> tuple[Any, Any, Any, ref.F64]:
        """codes, scales, biases; values."""
        q = self.rng.integers(0, 1 << self.bits, (n, self.k)).astype(np.uint8)
        size = self.k**-0.5 * 3.5 / (1 << self.bits)
        shape = (n, self.k // self.group)
        scales, s = _stored((self.rng.uniform(0.5, 1.5, shape) * size).astype(np.float32), self.scale_type)
        biases, b = _stored(
            (self.rng.uniform(-1, 0, shape) * self.k**-0.5).astype(np.float32), self.scale_type
        )
        values = q * np.repeat(s, self.group, axis=1) + np.repeat(b, self.group, axis=1)
        return pack_codes(q, self.bits), scales, biases, values


def matmul(
    bits: int, group: int, scale_type: str, rows: int, n: int, k: int, kind: str, **options: Any
) -> float:
    """``kind`` is gemv, rows, gemm or gemm_small."""
    run = MlxRun(bits, group, scale_type, k, rows, n, **options)
    codes, scales, biases, weights = run.mlx_weight(n)
    x, values = run.input(rows)
    b = run.normal(n)
    out = np.full((rows, n), np.nan, np.float32)
    shape = {"rows": rows, "n": n, "k": k, "y_stride": n}
    params = pack("matmul", **shape, accumulate=0, has_bias=1, softcap=0, activation=0, format=1)
    buffers = {0: x, 1: codes, 2: out, 3: b, 4: scales, 5: biases, lab.PARAMS: params}
    name = f"matmul_{kind}"
    if kind == "gemv":
        run.gemv(name, buffers, -(-n // run.rows_per_group))
    elif kind == "rows":
        run.rows(name, buffers, n)
    elif kind == "few":
        run.few(name, buffers, n)
    else:
        run.gemm(name, buffers, n, rows)
    return nmse(out.reshape(-1), (values @ weights.T + b).reshape(-1))


def embed(bits: int, group: int, scale_type: str, rows: int, dim: int, vocab: int, **options: Any) -> float:
    run = MlxRun(bits, group, scale_type, dim, rows, vocab, **options)
    codes, scales, biases, values = run.mlx_weight(vocab)
    made = lab.histories(run.rng, rows, vocab)
    hidden = np.full((rows, dim), np.nan, np.float32)
    common = dict(dim=dim, vocab=vocab, history_stride=made.history.shape[1])
    params = pack("embed", rows=rows, step=made.step, scale=1, accumulate=0, **common)
    buffers: dict[int, Any] = {0: made.history, 1: codes, 2: hidden, 3: made.rows, lab.PARAMS: params}
    buffers |= {4: scales, 5: biases}
    run.grid("embed", buffers, (-(-dim // 256), rows), 64)
    return nmse(hidden.reshape(-1), values[made.ids].reshape(-1))
