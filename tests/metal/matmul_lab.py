"""Runs the matmul kernels by the emulator's harness, with any geometry, schedule and sanitizer.

Each function returns the NMSE against float64 on the dequantised weights. They also run in child processes
under a sanitizer, so arguments are plain JSON.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kernels import reference as ref
from kernels.problem import pack
from kernels.runner import nmse
from kernels.weights import random_weight
from metal.buffer_index import PARAMS as PARAMS
from metal_emulator.harness import FIFO, Library, Schedule
from tools.flatten import flatten
from tools.flatten import functions as functions_of

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ROOT / "metal" / "kernels" / "matmul"
INCLUDE = (ROOT / "metal" / "include", ROOT / "cpp")

F32_BOUND = 1e-11  # accumulated in binary32
F16_BOUND = 3e-7  # a weight, or a stored activation, rounded to binary16
TILED = {"f32", "bf16", "f16", "mxfp4"}  # whose GEMM tiles hold the weights exactly


@cache
def library(dtype: str, sanitizer: str = "") -> Library:
    """The kernels of a weight type."""
    return Library.compile(
        KERNELS / f"{dtype}.metal", include=INCLUDE, sanitizer=sanitizer, fast_math=not sanitizer
    )


def _up(a: int, b: int) -> int:
    return -(-a // b)


class Run:
    """Random data of a case, and how its kernels are started."""

    def __init__(
        self,
        dtype: str,
        k: int,
        *case: int | str,
        sanitizer: str = "",
        schedule: Schedule = FIFO,
        kernels: Library | None = None,
        rows_per_simd: int = 4,
        split: int = 1,
        simds: int = 2,
    ) -> None:
        self.dtype, self.k = dtype, k
        self.rng = np.random.default_rng(zlib.crc32(repr((dtype, k, case)).encode()))
        self.library, self.schedule = kernels or library(dtype, sanitizer), schedule
        self.rows_per_simd, self.split, self.simds = rows_per_simd, split, simds
        self.constants: dict[str | int, Any] = {"ROWS_ARE_VECTORS": k % 4 == 0}

    def weight(self, n: int, sigma: float | None = None, dtype: str = "") -> tuple[Any, ref.F64]:
        """A weight's bytes and values."""
        w = random_weight(self.rng, dtype or self.dtype, n, self.k, sigma=sigma)
        return w.data, w.values()

    def normal(self, *shape: int) -> ref.F32:
        return self.rng.standard_normal(shape).astype(np.float32)

    def input(self, rows: int) -> tuple[Any, ref.F64]:
        """x as a kernel reads it, and its values."""
        x = self.normal(rows, self.k)
        stored = x if self.dtype == "f32" else x.astype(np.float16)
        return stored, stored.astype(np.float64)

    @property
    def rows_per_group(self) -> int:
        return self.simds // self.split * self.rows_per_simd

    def gemv(self, name: str, buffers: dict[int, Any], groups: int, suffix: str = "") -> None:
        constants = self.constants | {"ROWS_PER_SIMD": self.rows_per_simd, "K_SPLIT": self.split}
        self._run(name, buffers, groups, 32 * self.simds, constants, suffix)

    def rows(self, name: str, buffers: dict[int, Any], n: int) -> None:
        groups = _up(n, self.simds * (4 if name == "matmul_rows" else 2))
        self._run(name, buffers, groups, 32 * self.simds, self.constants)

    def few(self, name: str, buffers: dict[int, Any], n: int) -> None:
        groups = _up(n, 4 * (8 if name == "matmul_few" else 4))
        self._run(name, buffers, groups, 128, self.constants)

    def gemm(self, name: str, buffers: dict[int, Any], n: int, rows: int) -> None:
        tokens = 16 if "small" in name else 32
        groups = _up(n, 64 if name.startswith("matmul") else 32), _up(rows, tokens)
        self._run(name, buffers, groups, 128, self.constants)

    def grid(self, name: str, buffers: dict[int, Any], groups: tuple[int, int], threads: int) -> None:
        self._run(name, buffers, groups, threads, self.constants)

    def _run(
        self, name: str, buffers: dict[int, Any], groups: Any, threads: int, constants: Any, suffix: str = ""
    ) -> None:
        self.library.run(
            f"{name}_{self.dtype}{suffix}",
            buffers,
            groups=groups,
            threads=threads,
            constants=constants,
            schedule=self.schedule,
        )


def text(dtype: str) -> str:
    """The self-contained text of a weight type's kernels."""
    return flatten(KERNELS / f"{dtype}.metal", list(INCLUDE), set())


def functions(dtype: str) -> list[str]:
    """Names of the kernels in a text."""
    return functions_of(text(dtype), dtype, ["c++"])


def instantiated(dtype: str) -> str:
    """As above, with an ordinary function that uses every kernel: lint looks into no other templates."""
    header = "mlx_kernels.h" if dtype.startswith("mlx") else "matmul_kernels.h"
    last = (KERNELS / f"{dtype}.metal").read_text().splitlines()[-1]
    argument = last[last.index("(") + 1 : -1].split(", ")[-1]  # AKUNU_MATMUL_KERNELS(q4_0, Q4_0)
    found = re.findall(r'AKUNU_KERNEL\("\w+" #\w+, (.*)\)', (INCLUDE[0] / header).read_text())
    kernels = [re.sub(r"\b(F|bits)\b", argument, k) for k in found]
    assert len(kernels) >= 5
    return text(dtype) + "void instantiate() {\n" + "".join(f"    (void)&{k};\n" for k in kernels) + "}\n"


DUMMY = np.zeros(4, np.float32)


def matmul(
    dtype: str,
    rows: int,
    n: int,
    k: int,
    kind: str,
    *,
    bias: bool = False,
    accumulate: bool = False,
    cap: float = 0.0,
    **options: Any,
) -> float:
    """``kind`` is gemv, rows, few, gemm or gemm_small."""
    run = Run(dtype, k, rows, n, **options)
    (w, weights), (x, values) = run.weight(n), run.input(rows)
    b, y = run.normal(n), run.normal(rows, n)
    expected = ref.softcap(values @ weights.T + (b if bias else 0), cap) + (y if accumulate else 0)
    shape = {"rows": rows, "n": n, "k": k, "y_stride": n}
    params = pack(
        "matmul", **shape, accumulate=accumulate, has_bias=bias, softcap=cap, activation=0, format=1
    )
    out = y if accumulate else np.full_like(y, np.nan)
    buffers = {0: x, 1: w, 2: out, 3: b if bias else DUMMY, PARAMS: params}
    name = f"matmul_{kind}"
    if kind == "gemv":
        run.gemv(name, buffers, _up(n, run.rows_per_group))
    elif kind == "rows":
        run.rows(name, buffers, n)
    elif kind == "few":
        run.few(name, buffers, n)
    else:
        run.gemm(name, buffers, n, rows)
    return nmse(out.reshape(-1), expected.reshape(-1))


def extreme_exponents(rows: int, kind: str) -> float:
    """Rows of MXFP4 weights by turns 2^80 times as large and as small as usual; of the worse half."""
    n, k = 70, 96
    run = Run("mxfp4", k, rows, n)
    (w, weights), (x, values) = run.weight(n), run.input(rows)
    blocks, powers = w.copy().reshape(n, k // 32, 17), np.where(np.arange(n) % 2, 80, -80)
    blocks[:, :, 0] += powers[:, None].astype(np.uint8)  # modulo 256
    y = np.full((rows, n), np.nan, np.float32)
    shape = {"rows": rows, "n": n, "k": k, "y_stride": n}
    params = pack("matmul", **shape, accumulate=False, has_bias=False, softcap=0, activation=0, format=1)
    buffers = {0: x, 1: blocks.reshape(w.shape), 2: y, 3: DUMMY, PARAMS: params}
    if kind == "gemv":
        run.gemv("matmul_gemv", buffers, _up(n, run.rows_per_group))
    elif kind == "rows":
        run.rows("matmul_rows", buffers, n)
    elif kind == "few":
        run.few("matmul_few", buffers, n)
    else:
        run.gemm(f"matmul_{kind}", buffers, n, rows)
    found, expected = np.ldexp(y.astype(np.float64), -powers), values @ weights.T
    return max(nmse(found[:, i::2].reshape(-1), expected[:, i::2].reshape(-1)) for i in (0, 1))


def _gated_buffers(rows: int, n: int, formats: int) -> list[Any]:
    """Both outputs; what is not asked for is a dummy."""
    f32 = np.full((rows, n), np.nan, np.float32) if formats & 1 else DUMMY
    f16 = np.full((rows, n), np.nan, np.float16) if formats & 4 else DUMMY
    return [f32, f16]


def _gated_error(outputs: list[Any], formats: int, expected: ref.F64) -> float:
    """The larger NMSE; that of the F16 output is scaled to the bound of F32."""
    found = []
    if formats & 1:
        found.append(nmse(outputs[0].reshape(-1), expected.reshape(-1)))
    if formats & 4:
        found.append(nmse(outputs[1].reshape(-1), expected.reshape(-1)) / F16_BOUND * F32_BOUND)
    return max(found)


def gate_up(
    dtype: str,
    rows: int,
    n: int,
    k: int,
    kind: str,
    *,
    activation: str = "silu",
    formats: int = 4,
    **options: Any,
) -> float:
    """``kind`` is gemv, rows, few or gemm."""
    run = Run(dtype, k, rows, n, **({"rows_per_simd": 2} | options))
    (g, gate), (u, up), (x, values) = run.weight(n), run.weight(n), run.input(rows)
    expected = ref.activation(values @ gate.T, activation) * (values @ up.T)
    params = pack("gate_up", rows=rows, n=n, k=k, activation=activation != "silu", formats=formats)
    outputs = _gated_buffers(rows, n, formats)
    buffers = {0: x, 1: g, 2: u, 3: outputs[0], 4: outputs[1], PARAMS: params}
    name = f"gate_up_{kind}"
    if kind == "gemv":
        run.gemv(name, buffers, _up(n, run.rows_per_group))
    elif kind == "rows":
        run.rows(name, buffers, n)
    elif kind == "few":
        run.few(name, buffers, n)
    else:
        run.gemm(name, buffers, n, rows)
    return _gated_error(outputs, formats, expected)


EPS = 1e-5


def _norm_input(run: Run) -> tuple[ref.F32, ref.F32, ref.F64]:
    x, g = run.normal(run.k), 1 + 0.3 * run.normal(run.k)
    return x, g, ref.rms_norm(x.astype(np.float64), g, EPS)


def norm_qkv(
    dtype: str, n_q: int, n_kv: int, k: int, *, bias: bool = False, v_dtype: str = "", **options: Any
) -> float:
    """Offsets leave gaps between q, k and v, which must stay as they are. `v_dtype`: v's, if another."""
    if v_dtype:
        options.setdefault("kernels", library("norm_qkv_mixed", options.get("sanitizer", "")))
    run = Run(dtype, k, n_q, n_kv, **options)
    (q, wq), (key, wk), (v, wv) = run.weight(n_q), run.weight(n_kv), run.weight(n_kv, dtype=v_dtype)
    x, g, values = _norm_input(run)
    b = run.normal(n_q + 2 * n_kv)
    k_offset, v_offset = n_q + 3, n_q + n_kv + 8
    y = np.full(v_offset + n_kv + 1, 7, np.float32)
    expected = y.astype(np.float64)
    at = 0
    for offset, w in ((0, wq), (k_offset, wk), (v_offset, wv)):
        expected[offset : offset + len(w)] = w @ values + (b[at : at + len(w)] if bias else 0)
        at += len(w)
    params = pack(
        "norm_qkv", n_q=n_q, n_kv=n_kv, k=k, k_offset=k_offset, v_offset=v_offset, has_bias=bias, eps=EPS
    )
    per = run.rows_per_group
    buffers = {0: x, 1: g, 2: q, 3: key, 4: v, 5: y, 6: b if bias else DUMMY, PARAMS: params}
    run.gemv("norm_qkv", buffers, _up(n_q, per) + 2 * _up(n_kv, per), f"_{v_dtype}" if v_dtype else "")
    return nmse(y, expected)


def norm_gate_up(
    dtype: str, n: int, k: int, *, activation: str = "silu", formats: int = 4, **options: Any
) -> float:
    run = Run(dtype, k, n, **({"rows_per_simd": 2} | options))
    (g, gate), (u, up) = run.weight(n), run.weight(n)
    x, norm, values = _norm_input(run)
    expected = ref.activation(gate @ values, activation) * (up @ values)
    params = pack("norm_gate_up", n=n, k=k, activation=activation != "silu", formats=formats, eps=EPS)
    outputs = _gated_buffers(1, n, formats)
    buffers = {0: x, 1: norm, 2: g, 3: u, 4: outputs[0], 5: outputs[1], PARAMS: params}
    run.gemv("norm_gate_up", buffers, _up(n, run.rows_per_group))
    return _gated_error(outputs, formats, expected)


@dataclass(frozen=True)
class Histories:
    """Histories of several slots, rows somewhere in them as of a second step, and these rows' tokens."""

    history: npt.NDArray[np.uint32]
    rows: npt.NDArray[np.uint32]  # slot and position of each
    ids: npt.NDArray[np.uint32]
    step: int = 1


def histories(rng: np.random.Generator, rows: int, vocab: int) -> Histories:
    history = rng.integers(0, vocab, (3, rows + 4)).astype(np.uint32)
    slots, positions = np.sort(rng.integers(0, 3, rows)), rng.integers(1, rows + 4, rows)
    where = np.stack([slots, positions - 1], -1).astype(np.uint32)
    return Histories(history, where, history[slots, positions])


def embed(dtype: str, rows: int, dim: int, vocab: int, **options: Any) -> float:
    """Scaled by 3.5; one id is out of range and is taken for the first."""
    run = Run(dtype, dim, rows, vocab, **options)
    table, values = run.weight(vocab, sigma=1)
    made = histories(run.rng, rows, vocab)
    history, last = made.history, made.rows[-1]
    history[last[0], last[1] + made.step] = vocab + 5
    ids = history[made.rows[:, 0], made.rows[:, 1] + made.step]
    expected = values[np.where(ids < vocab, ids, 0)] * 3.5
    hidden = np.full((rows, dim), np.nan, np.float32)
    common = dict(dim=dim, vocab=vocab, history_stride=history.shape[1])
    params = pack("embed", rows=rows, step=made.step, scale=3.5, accumulate=0, **common)
    threads = 64
    buffers = {0: history, 1: table, 2: hidden, 3: made.rows, PARAMS: params}
    run.grid("embed", buffers, (_up(_up(dim, 4), threads), rows), threads)
    return nmse(hidden.reshape(-1), expected.reshape(-1))


def bound(dtype: str, kind: str) -> float:
    """The largest NMSE: the tiles of a GEMM hold block formats in F16."""
    return F16_BOUND if kind.startswith("gemm") and dtype not in TILED else F32_BOUND


def saturated_gate_up() -> list[float]:
    """Two stored values of a product that binary16 cannot hold."""
    run = Run("f32", 1, rows_per_simd=2)
    outputs = _gated_buffers(1, 2, 4)
    gate, up = np.array([1000, 1000], np.float32), np.array([1000, -1000], np.float32)
    params = pack("gate_up", rows=1, n=2, k=1, activation=0, formats=4)
    buffers = {0: np.ones(1, np.float32), 1: gate, 2: up, 3: outputs[0], 4: outputs[1], PARAMS: params}
    run.gemv("gate_up_gemv", buffers, 1)
    return [float(v) for v in outputs[1][0]]


def run_small(dtype: str, sanitizer: str) -> None:
    """Every kernel on small odd shapes, for a child process under a sanitizer."""
    schedule = Schedule("priority", 1, workers=2)
    options: dict[str, Any] = {"sanitizer": sanitizer, "schedule": schedule}
    if dtype == "mixed":
        errors = [
            norm_qkv(qk, 5, 3, k, split=split, v_dtype=v, bias=True, **options)
            for qk, v, k, split in (
                ("q4_k", "q6_k", 512, 2),
                ("iq4_nl", "q5_k", 256, 1),
                ("q5_0", "q8_0", 96, 2),
            )
        ]
    elif dtype.startswith("mlx_q"):
        from metal import mlx_lab as mlx

        weight = (int(dtype[5:]), 32, "f16")
        errors = [
            mlx.matmul(*weight, 1, 5, 96, "gemv", split=2, **options),
            mlx.matmul(*weight, 3, 5, 96, "rows", **options),
            mlx.matmul(*weight, 9, 5, 96, "few", **options),
            mlx.matmul(*weight, 33, 5, 64, "gemm", **options),
            mlx.matmul(*weight, 17, 5, 64, "gemm_small", **options),
            mlx.embed(*weight, 2, 96, 3, **options),
        ]
    else:
        k = {"f16": 37}.get(dtype, 512)
        errors = [
            matmul(dtype, 1, 5, k, "gemv", accumulate=True, split=2, **options),
            matmul(dtype, 3, 5, k, "rows", bias=True, **options),
            matmul(dtype, 9, 5, k, "few", bias=True, **options),
            matmul(dtype, 33, 5, k, "gemm", **options),
            matmul(dtype, 17, 5, k, "gemm_small", **options),
            gate_up(dtype, 1, 5, k, "gemv", split=2, formats=5, **options),
            gate_up(dtype, 3, 5, k, "rows", **options),
            gate_up(dtype, 9, 5, k, "few", **options),
            gate_up(dtype, 33, 5, k, "gemm", **options),
            norm_qkv(dtype, 5, 3, k, split=2, bias=True, **options),
            norm_gate_up(dtype, 5, k, split=2, **options),
            embed(dtype, 2, k, 3, **options),
        ]
    assert max(errors) <= F16_BOUND, errors
