"""A device's kernels one by one: small odd shapes against NumPy, and shapes of real models against the clock.

What is expected is computed here in float64 from the weights as the file's format defines them. The module
knows ops and their buffers, no model and no engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from akunu.base.errors import UnsupportedError

if TYPE_CHECKING:
    from akunu._core import Lab

__all__ = ["TYPES", "Checked", "Timed", "checks", "timings"]

TYPES: Final = (
    *("f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "q5_0", "q5_1"),
    *("q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "iq4_nl", "iq4_xs", "mxfp4"),
)
"""Types of weights that numbers can be converted to, and so be compared in."""

F32, Q8, F16 = 1, 2, 4
"""Formats of activations."""
_FORMAT: Final = {"f32": F32, "q8": Q8, "f16": F16}
_BOUND: Final = {"f32": 1e-9, "f16": 1e-6, "q8": 1e-4}
"""Most that a result's error may be, mean square over mean square, by what activations are rounded to."""
_PAGE: Final = 32
_CACHE_BYTES: Final = 128 << 20
"""Weights to be timed are so many copies in turn that no cache holds them."""

Array = npt.NDArray[Any]
Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Checked:
    """A kernel's result beside what is expected.

    Attributes
    ----------
    name
        Op, type of the weights or of the cache, and rows.
    error
        Mean square error over mean square; infinite where a number is missing, None where the device has no
        such kernel.
    bound
        The most that rounding explains.
    note
        Why there is no result.
    """

    name: str
    error: float | None
    bound: float
    note: str = ""

    @property
    def wrong(self) -> bool:
        """Whether the device has the kernel and its result is none."""
        return self.error is not None and not self.error <= self.bound


@dataclass(frozen=True)
class Timed:
    """The median time of a kernel, and what it has to move and to do."""

    name: str
    seconds: float
    bytes: float
    flops: float


@dataclass(frozen=True)
class _Weight:
    data: npt.NDArray[np.uint8]
    values: Values


class _Kernels:
    """Runs single ops of a device."""

    def __init__(self, lab: Lab) -> None:
        from akunu import _core

        self.lab = lab
        self.structs = _core.lab_structs()
        self._rng = np.random.default_rng(0)

    def params(self, op: str, **fields: float) -> bytes:
        """An op's parameters; those that are not named are 0."""
        value = np.zeros((), self.structs[op])
        for name, number in fields.items():
            value[name] = number
        return value.tobytes()

    def run(self, op: str, buffers: list[Any], kv: str = "f16", **fields: float) -> None:
        self.lab.run(op, buffers, self.params(op, **fields), kv_dtype=kv)

    def normal(self, *shape: int) -> npt.NDArray[np.float32]:
        return self._rng.standard_normal(shape).astype(np.float32)

    def weight(self, dtype: str, rows: int, columns: int) -> _Weight:
        from akunu import _core

        data = _core.quantize(dtype, self.normal(rows, columns), columns).reshape(-1)
        values = _core.dequantize(dtype, data, rows * columns).reshape(rows, columns)
        return _Weight(data, values.astype(np.float64))

    def activation(self, x: npt.NDArray[np.float32], dtype: str) -> Array:
        """`x` as a matmul with such weights reads it."""
        form = self.lab.matmul_input(dtype)
        if form == "f32":
            return x
        rows, dim = x.shape
        out = np.zeros(self.lab.activation_bytes(form, rows, dim), np.uint8)
        self.run("quantize", [x, None, out], rows=rows, dim=dim, formats=_FORMAT[form])
        return out

    def bound(self, dtype: str) -> float:
        return _BOUND[self.lab.matmul_input(dtype)]


def _count(rows: int) -> str:
    return "1 row" if rows == 1 else f"{rows} rows"


def checks(lab: Lab) -> Iterator[Checked]:
    """Run every kernel that a decoder needs once, on small shapes with odd numbers of rows."""
    kernels = _Kernels(lab)
    for dtype in TYPES:
        for rows in (1, 2, 5, 16, 17, 40):
            yield _checked(
                f"matmul {dtype}, {_count(rows)}", kernels.bound(dtype), _matmul, kernels, dtype, rows
            )
        for rows in (1, 5, 40):
            yield _checked(
                f"gate_up {dtype}, {_count(rows)}", 4 * kernels.bound(dtype), _gate_up, kernels, dtype, rows
            )
        yield _checked(f"norm_qkv {dtype}", _BOUND["f16"], _norm_qkv, kernels, dtype)
    for kv in ("f16", "f32", "q8_0", "q4_0"):
        for rows, position in ((1, 100), (1, 700), (5, 300), (40, 70)):
            name = f"attention {kv}, {_count(rows)} from {position}"
            bound = {"f16": 1e-6, "f32": 1e-6, "q8_0": 1e-3, "q4_0": 3e-2}[kv]
            yield _checked(name, bound, _attention, kernels, kv, rows, position)
    yield _checked("norm", _BOUND["f32"], _norm, kernels)
    yield _checked("argmax", 0.0, _argmax, kernels)


def _checked(name: str, bound: float, run: Callable[..., tuple[Array, Values]], *args: Any) -> Checked:
    try:
        found, expected = run(*args)
    except UnsupportedError as reason:
        return Checked(name, None, bound, str(reason))
    wide = found.astype(np.float64).reshape(expected.shape)
    error = float(((wide - expected) ** 2).sum() / (expected**2).sum())
    return Checked(name, error if np.isfinite(error) else float("inf"), bound)


def _matmul(kernels: _Kernels, dtype: str, rows: int) -> tuple[Array, Values]:
    n, k = 70, 768
    weight, x = kernels.weight(dtype, n, k), kernels.normal(rows, k)
    y = np.full((rows, n), np.nan, np.float32)
    on_device = kernels.lab.weight(dtype, weight.data, n, k)
    source = kernels.activation(x, dtype)
    kernels.run("matmul", [source, on_device, y, None], rows=rows, n=n, k=k, y_stride=n, format=F32)
    return y, x.astype(np.float64) @ weight.values.T


def _silu(x: Values) -> Values:
    result: Values = x / (1 + np.exp(-x))
    return result


def _gate_up(kernels: _Kernels, dtype: str, rows: int) -> tuple[Array, Values]:
    n, k = 96, 512
    gate, up = kernels.weight(dtype, n, k), kernels.weight(dtype, n, k)
    x = kernels.normal(rows, k) / np.float32(
        np.sqrt(k)
    )  # so that the activation function is no straight line
    out = np.full((rows, n), np.nan, np.float32)
    weights = [kernels.lab.weight(dtype, w.data, n, k) for w in (gate, up)]
    buffers = [kernels.activation(x, dtype), *weights, out, None]
    kernels.run("gate_up", buffers, rows=rows, n=n, k=k, formats=F32)
    wide = x.astype(np.float64)
    return out, _silu(wide @ gate.values.T) * (wide @ up.values.T)


def _norm_qkv(kernels: _Kernels, dtype: str) -> tuple[Array, Values]:
    n_q, n_kv, k, eps = 70, 33, 768, 1e-5
    weights = [kernels.weight(dtype, n, k) for n in (n_q, n_kv, n_kv)]
    x, norm = kernels.normal(1, k), 1 + 0.3 * kernels.normal(k)
    y = np.full(n_q + 2 * n_kv, np.nan, np.float32)
    on_device = [kernels.lab.weight(dtype, w.data, len(w.values), k) for w in weights]
    buffers = [x, norm.astype(np.float32), *on_device, y, None]
    sizes = {"n_q": n_q, "n_kv": n_kv, "k": k, "k_offset": n_q, "v_offset": n_q + n_kv}
    kernels.run("norm_qkv", buffers, "f16", **sizes, eps=eps)
    wide = x[0].astype(np.float64)
    wide = wide / np.sqrt((wide**2).mean() + eps) * norm.astype(np.float32)
    return y, np.concatenate([w.values @ wide for w in weights])


def _norm(kernels: _Kernels) -> tuple[Array, Values]:
    rows, dim, eps = 3, 700, 1e-5
    x, weight = kernels.normal(rows, dim), 1 + 0.3 * kernels.normal(dim)
    out = np.full((rows, dim), np.nan, np.float32)
    buffers = [x, weight.astype(np.float32), out, None, None]
    kernels.run("norm", buffers, rows=rows, dim=dim, eps=eps, formats=F32, sum_scale=1)
    wide = x.astype(np.float64)
    return out, wide / np.sqrt((wide**2).mean(-1, keepdims=True) + eps) * weight.astype(np.float32)


def _argmax(kernels: _Kernels) -> tuple[Array, Values]:
    logits = kernels.normal(1, 32003)
    sampled = np.zeros(1, np.uint32)
    kernels.run("argmax", [logits, sampled], rows=1, vocab=logits.shape[1])
    return sampled, np.array([float(logits.argmax())])


@dataclass(frozen=True)
class _Cache:
    """A layer's cache of one sequence: its pages lie backwards."""

    kv: str
    heads: int
    kv_heads: int
    head_dim: int
    memory: npt.NDArray[np.uint8]
    pages: npt.NDArray[np.uint32]
    page_words: int

    @property
    def sizes(self) -> dict[str, int]:
        """Parameters of the ops that use it."""
        sizes = {"n_kv_heads": self.kv_heads, "head_dim": self.head_dim, "page_words": self.page_words}
        return sizes | {"max_pages": self.pages.shape[1]}


def _cache(kernels: _Kernels, kv: str, shape: tuple[int, int, int], keys: int) -> _Cache:
    heads, kv_heads, head_dim = shape
    stride = -(-kernels.lab.kv_page_bytes(kv, kv_heads, head_dim) // 64) * 64
    n_pages = -(-keys // _PAGE)
    pages = np.arange(n_pages, dtype=np.uint32)[None, ::-1].copy()
    return _Cache(kv, heads, kv_heads, head_dim, np.zeros(n_pages * stride, np.uint8), pages, stride // 4)


def _rows(kernels: _Kernels, first: int, n: int) -> Array:
    rows = np.zeros(n, kernels.structs["Row"])
    rows["position"] = np.arange(first, first + n)
    return rows


def _fill(kernels: _Kernels, cache: _Cache, keys: int, first: int = 0) -> tuple[Array, Array]:
    """Write keys and values [keys, heads, head_dim] from position `first` on, turned by nothing."""
    k, v = (kernels.normal(keys, cache.kv_heads, cache.head_dim) for _ in range(2))
    table = np.zeros((keys, 1, 2), np.float32)
    table[..., 0] = 1
    buffers = [None, k.copy(), v, table, cache.memory, None, _rows(kernels, first, keys), cache.pages]
    buffers[0] = np.zeros_like(k)
    fields = cache.sizes | {"n_heads": cache.kv_heads, "rope_dim": 2, "style": 1}
    kernels.run("prepare_heads", buffers, cache.kv, rows=keys, **fields)
    return k, v


def _attention(kernels: _Kernels, kv: str, rows: int, position: int) -> tuple[Array, Values]:
    heads, kv_heads, head_dim = shape = (6, 2, 64)
    keys = position + rows
    cache = _cache(kernels, kv, shape, keys)
    k, v = _fill(kernels, cache, keys)
    q = kernels.normal(rows, heads, head_dim)
    out = np.full((rows, heads, head_dim), np.nan, np.float32)
    _attend(kernels, cache, q, out, position, kernels.run)
    scores = np.einsum("rhd,khd->hrk", q.astype(np.float64), np.repeat(k, heads // kv_heads, 1))
    seen = np.arange(keys)[None, :] <= position + np.arange(rows)[:, None]
    scores = np.where(seen, scores / np.sqrt(head_dim), -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return out, np.einsum("hrk,khd->rhd", weights, np.repeat(v, heads // kv_heads, 1).astype(np.float64))


def _attend(
    kernels: _Kernels, cache: _Cache, q: Array, out: Array, position: int, run: Callable[..., None]
) -> None:
    """Run the ops of attention: two for one row, where the device has it so."""
    rows = len(q)
    fields: dict[str, float] = {"rows": rows, "keys": position + rows, "n_heads": cache.heads, **cache.sizes}
    fields |= {"scale": cache.head_dim**-0.5, "formats": F32}
    where = _rows(kernels, position, rows)
    inputs = [q, cache.memory]
    if rows == 1 and kernels.lab.split_attention:
        room = kernels.lab.attention_partial_bytes(cache.heads, cache.head_dim, cache.pages.shape[1] * _PAGE)
        partials = np.zeros(room, np.uint8)
        split = [*inputs, partials, where, cache.pages, None, out, None]
        run("attention_split", split, cache.kv, **fields)
        run("attention_merge", [partials, out, None, where, None], cache.kv, **fields)
    else:
        run("attention", [*inputs, out, where, cache.pages, None, None], cache.kv, **fields)


# ---- speed -----------------------------------------------------------------------------------------


def timings(lab: Lab, repeats: int) -> Iterator[Timed]:
    """Time matmuls and attention of a model of some billion weights."""
    kernels = _Kernels(lab)
    n = k = 4096
    for dtype in TYPES:
        data = kernels.weight(dtype, 64, k).data
        weight = np.tile(data, n // 64)
        copies = max(1, min(64, _CACHE_BYTES // weight.nbytes))
        on_device = lab.weight(dtype, weight, n, k, copies=copies)
        for rows in (1, 4, 16, 512):
            source = kernels.activation(kernels.normal(rows, k), dtype)
            buffers: list[Any] = [source, on_device, np.zeros((rows, n), np.float32), None]
            params = kernels.params("matmul", rows=rows, n=n, k=k, y_stride=n, format=F32)
            seconds = lab.time("matmul", buffers, params, repeats=repeats, copies=copies)
            moved = weight.nbytes + source.nbytes + 4 * rows * n
            yield Timed(f"matmul {dtype}, {_count(rows)}", median(seconds), moved, 2.0 * rows * n * k)
    for kv in ("f16", "q8_0"):
        for rows, position in ((1, 100), (1, 500), (1, 8000), (512, 0)):
            yield from _timed_attention(kernels, kv, rows, position, repeats)


def _timed_attention(kernels: _Kernels, kv: str, rows: int, position: int, repeats: int) -> Iterator[Timed]:
    shape, keys = (32, 8, 128), position + rows
    cache = _cache(kernels, kv, shape, keys)
    for first in range(0, keys, 512):
        _fill(kernels, cache, min(512, keys - first), first)
    q, out = kernels.normal(rows, shape[0], shape[2]), np.zeros((rows, shape[0], shape[2]), np.float32)
    read = 2 * keys * shape[1] * shape[2] * {"f16": 2.0, "q8_0": 34 / 32}[kv]
    flops = 4.0 * shape[0] * shape[2] * sum(range(position + 1, keys + 1))
    found: list[Timed] = []

    def timed(op: str, buffers: list[Any], kv: str, **fields: float) -> None:
        seconds = kernels.lab.time(op, buffers, kernels.params(op, **fields), kv_dtype=kv, repeats=repeats)
        first = not found
        name = f"{op} {kv}, {_count(rows)} from {position}"
        found.append(Timed(name, median(seconds), read if first else 0.0, flops if first else 0.0))

    _attend(kernels, cache, q, out, position, timed)
    yield from found
