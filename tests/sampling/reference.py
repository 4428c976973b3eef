"""The sampler in NumPy, float64: docs/sampling.md, step by step, and nothing else.

It is slow and obvious. Every device is tested against it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

__all__ = ["Settings", "allowed", "draw", "gumbel", "penalised", "philox4x32", "probabilities", "words"]

F64 = npt.NDArray[np.float64]

_LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class Settings:
    """Arguments of `Engine.begin`, with its defaults."""

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    typical_p: float = 1.0
    repeat_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    penalty_window: int = 64
    top_n_sigma: float = 0.0
    xtc_probability: float = 0.0
    xtc_threshold: float = 0.1
    min_keep: int = 0
    dry_multiplier: float = 0.0
    dry_base: float = 1.75
    dry_allowed_length: int = 2
    dry_penalty_last_n: int = -1
    dry_breakers: Mapping[int, Sequence[Sequence[int]]] = field(default_factory=dict)
    """Sequence breakers by their first token: what follows it in each; nothing where it is one itself."""
    logit_bias: Mapping[int, float] = field(default_factory=dict)


def philox4x32(counter: Sequence[npt.ArrayLike], key: tuple[int, int]) -> list[npt.NDArray[np.uint64]]:
    """Philox4x32-10: four words from four of counter, elementwise (Salmon et al., SC11, section 3.3)."""
    low = np.uint64(0xFFFFFFFF)
    c0, c1, c2, c3 = (np.asarray(c, np.uint64) for c in counter)
    k0, k1 = key
    for _ in range(10):
        p0, p1 = np.uint64(0xD2511F53) * c0, np.uint64(0xCD9E8D57) * c2
        c0, c1, c2, c3 = (
            (p1 >> np.uint64(32)) ^ c1 ^ np.uint64(k0),
            p1 & low,
            (p0 >> np.uint64(32)) ^ c3 ^ np.uint64(k1),
            p0 & low,
        )
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return [c0, c1, c2, c3]


def words(seed: int, position: int, vocab: int) -> npt.NDArray[np.uint64]:
    """The random word of every token [vocab]."""
    blocks = np.arange((vocab + 3) // 4)
    zero = np.zeros_like(blocks)
    out = philox4x32([blocks, zero + position, zero, zero], (seed & 0xFFFFFFFF, seed >> 32))
    return np.stack(out, axis=1).reshape(-1)[:vocab]


def gumbel(seed: int, position: int, vocab: int) -> F64:
    """Standard Gumbel noise of every token [vocab]."""
    u = (words(seed, position, vocab).astype(np.float64) + 0.5) * 2.0**-32
    return -np.log(-np.log1p(-u))


def penalised(logits: npt.ArrayLike, history: Sequence[int], s: Settings) -> F64:
    """Logits [vocab] after bias and penalties; `history` are all tokens before the one to be drawn."""
    x = np.asarray(logits, np.float64).copy()
    x = np.where(np.isnan(x), -np.inf, np.minimum(x, _LARGEST))
    for token, bias in s.logit_bias.items():
        x[token] += bias
    window = history if s.penalty_window < 0 else history[max(0, len(history) - s.penalty_window) :]
    for token in set(window):
        count = sum(1 for t in window if t == token)
        x[token] = x[token] / s.repeat_penalty if x[token] > 0 else x[token] * s.repeat_penalty
        x[token] -= s.presence_penalty + s.frequency_penalty * count
    for token, length in repeats(history, s).items():
        if () not in map(tuple, s.dry_breakers.get(token, ())):
            x[token] -= s.dry_multiplier * s.dry_base ** _exponent(length, s)
    return np.minimum(x, _LARGEST)


def _exponent(length: int, s: Settings) -> int:
    most = int(np.log(_LARGEST) / np.log(s.dry_base)) if s.dry_base > 1.000001 else length
    return min(length - s.dry_allowed_length, most)


def repeats(history: Sequence[int], s: Settings) -> dict[int, int]:
    """DRY: tokens that would go on with a repeat, and how many tokens at the end of the sequence it has."""
    recent = history if s.dry_penalty_last_n < 0 else history[max(0, len(history) - s.dry_penalty_last_n) :]
    n = len(recent)
    if s.dry_multiplier == 0 or s.dry_base < 1 or n <= s.dry_allowed_length:
        return {}
    limit = n
    for back in range(n):  # the last token first
        at = n - 1 - back
        tails = [
            t for t in s.dry_breakers.get(recent[at], ()) if list(recent[at + 1 : at + 1 + len(t)]) == list(t)
        ]
        if tails:
            limit = back - max(map(len, tails))
            break
    found: dict[int, int] = {}
    for at in range(1, n):  # recent[:at] may end as the sequence does
        length = 0
        while length < at and recent[at - 1 - length] == recent[n - 1 - length]:
            length += 1
        length = min(length, limit)
        if length >= s.dry_allowed_length:
            found[recent[at]] = max(found.get(recent[at], 0), length)
    return found


def _softmax(x: F64) -> F64:
    e = np.exp(x - x.max())
    return np.asarray(e / e.sum())


def _keep(x: F64, order: npt.NDArray[np.intp], n: int) -> F64:
    """Drop all but the first n of `order`."""
    out = np.full_like(x, -np.inf)
    out[order[:n]] = x[order[:n]]
    return out


def _crossing(mass: F64, share: float) -> int:
    """How many it takes until their sum is at least `share`."""
    reached = np.flatnonzero(np.cumsum(mass) >= share)
    return int(reached[0]) + 1 if len(reached) else len(mass)


def chance(seed: int, position: int) -> float:
    """The number in (0, 1) that decides whether XTC applies."""
    word = philox4x32([0, position, 1, 0], (seed & 0xFFFFFFFF, seed >> 32))[0]
    return (float(word) + 0.5) * 2.0**-32


def survivors(logits: F64, s: Settings, seed: int = 0, position: int = 0) -> F64:
    """Penalised logits over the temperature [vocab], -inf for the tokens that were dropped."""
    # Relative to the best, which changes no probability, so that no temperature overflows.
    with np.errstate(over="ignore"):
        x = (logits - logits.max()) / s.temperature
    if s.top_n_sigma > 0:
        floor = logits.max() - s.top_n_sigma * logits[logits > -np.inf].std()
        x = np.where(logits >= floor, x, -np.inf)
    if 0 < s.top_k < len(x):
        x = _keep(x, np.argsort(-x, kind="stable"), s.top_k)
    if s.typical_p < 1:
        p = _softmax(x)
        surprise = -np.log(p, where=p > 0, out=np.full_like(p, -np.inf))
        entropy = float((p * np.where(p > 0, surprise, 0)).sum())
        distance = np.where(p > 0, np.abs(surprise - entropy), np.inf)
        order = np.argsort(distance, kind="stable")
        x = _keep(x, order, max(_crossing(p[order], s.typical_p), s.min_keep))
    if s.top_p < 1:
        order = np.argsort(-x, kind="stable")
        x = _keep(x, order, max(_crossing(_softmax(x)[order], s.top_p), s.min_keep))
    if s.min_p > 0:
        enough = int((x - x.max() >= np.log(s.min_p)).sum())
        x = _keep(x, np.argsort(-x, kind="stable"), max(enough, s.min_keep))
    if s.xtc_threshold <= 0.5 and chance(seed, position) < s.xtc_probability:
        likely = np.flatnonzero((x > -np.inf) & (_softmax(x) >= s.xtc_threshold))
        top = likely[np.argsort(-x[likely], kind="stable")][:-1]
        if (x > -np.inf).sum() - len(top) >= s.min_keep:
            x[top] = -np.inf
    return x


def probabilities(logits: npt.ArrayLike, history: Sequence[int], s: Settings, seed: int = 0) -> F64:
    """Probability of each token to be drawn [vocab]; temperature above 0."""
    return _softmax(survivors(penalised(logits, history, s), s, seed, len(history)))


def draw(logits: npt.ArrayLike, history: Sequence[int], s: Settings, seed: int) -> int:
    """The token at position `len(history)`."""
    x = penalised(logits, history, s)
    if s.temperature == 0 or x.max() == -np.inf:
        return int(np.argmax(x))
    return int(np.argmax(survivors(x, s, seed, len(history)) + gumbel(seed, len(history), len(x))))


def allowed(logits: npt.ArrayLike, history: Sequence[int], s: Settings, seed: int) -> set[int]:
    """What a float32 device may draw: one token, or more where the reference hangs on a rounding.

    A share that decides who survives may be off by 2e-6 of itself, and a logit by 2e-7 of itself.
    """
    x = penalised(logits, history, s)
    if x.max() == -np.inf:
        return {0}
    if s.temperature == 0:
        return set(np.flatnonzero(x >= x.max() - 2e-7 * abs(x.max())).tolist())
    noise = gumbel(seed, len(history), len(x))
    found: set[int] = set()
    for scale in (1 - 2e-6, 1.0, 1 + 2e-6):
        shares = {
            name: min(1.0, value * scale)
            for name in ("typical_p", "top_p", "min_p", "xtc_threshold")
            if 0 < (value := getattr(s, name)) < 1
        }
        settings = replace(s, top_n_sigma=s.top_n_sigma * (1 + 2 * (scale - 1)), **shares)
        keys = survivors(x, settings, seed, len(history)) + noise
        contenders = keys >= keys.max() - 30
        error = 1e-5 + 2e-7 * float(np.abs(x[contenders]).max()) / s.temperature
        found |= set(np.flatnonzero(keys >= keys.max() - error).tolist())
    return found
