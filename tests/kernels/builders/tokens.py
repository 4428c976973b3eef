"""Argmax, the sampler, log-probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from akunu.tokenizer.breakers import breaker_table
from sampling import reference as sampler

from .. import reference as ref
from ..problem import Problem, poisoned, struct
from .common import (
    CUDA,
    EXACT_NMSE,
    Traits,
    normal,
)


def _states(settings: Sequence[dict[str, Any]], slots: npt.NDArray[np.uint32]) -> npt.NDArray[np.void]:
    """SamplerState of each slot: of `slots` with their `settings`, of others poison."""
    state = poisoned((slots.max() + 2) * struct("SamplerState").itemsize).view(struct("SamplerState"))
    for slot, fields in zip(slots, settings, strict=True):
        fields = dict(fields)
        s = np.zeros((), struct("SamplerState"))
        s["top_p"] = s["typical_p"] = s["repeat_penalty"] = 1
        s["penalty_window"] = 64
        seed, end_ids = fields.pop("seed", 0), fields.pop("end_ids", ())
        s["seed_lo"], s["seed_hi"] = seed & 0xFFFFFFFF, seed >> 32
        s["end_ids"][: len(end_ids)], s["n_end_ids"] = end_ids, len(end_ids)
        s["n_bias"] = len(fields.pop("logit_bias", {}))
        s["dry_base"], s["xtc_threshold"] = 1.75, 0.1
        s["has_dry_breakers"] = bool(fields.pop("dry_breakers", {}))
        s["dry_allowed"] = allowed = fields.pop("dry_allowed_length", 2)
        s["dry_window"] = fields.pop("dry_penalty_last_n", -1) % 2**32
        s["dry_longest"] = allowed + int(88.7228391 / np.log(fields.get("dry_base", 1.75)))
        s["masked"] = fields.pop("mask", None) is not None
        for name, value in fields.items():
            s[name] = value % 2**32 if name == "penalty_window" else value
        state[slot] = s
    return state


class _Slots:
    """Some sequences with settings of their own, as a step's buffers: their slots are in no order."""

    def __init__(
        self,
        p: Problem,
        rng: np.random.Generator,
        vocab: int,
        settings: Sequence[dict[str, Any]],
        position: int = 40,
        room: int = 4,
    ) -> None:
        n = len(settings)
        self.p, self.vocab, self.settings, self.position = p, vocab, settings, position
        self.slots = rng.permutation(n + 1)[:n].astype(np.uint32)
        # A chunk of a prompt between the rows with logits, as in a mixed step.
        self.logit_rows = np.arange(n, dtype=np.uint32) * 2
        self.history = rng.integers(0, vocab, (n + 2, position + room + 1)).astype(np.uint32)
        p.input("state", _states(settings, self.slots))
        p.input("logit_rows", self.logit_rows)
        bias = np.zeros((n + 2, 4096), struct("LogitBias"))
        mask = poisoned(4 * (n + 2) * ((vocab + 31) // 32)).view(np.uint32).reshape(n + 2, -1)
        for row, (slot, s) in enumerate(zip(self.slots, settings, strict=True)):
            for i, (token, value) in enumerate(s.get("logit_bias", {}).items()):
                bias[slot][i] = (token, value)
            if (allowed := s.get("mask")) is not None:
                bits = np.zeros(mask.shape[1] * 32, np.uint8)
                bits[list(allowed)] = 1
                mask[row] = np.packbits(bits, bitorder="little").view(np.uint32)
        words = 256 + 512 * 21 + (vocab + 3) // 4
        breakers = poisoned(4 * (n + 2) * words).view(np.uint32).reshape(n + 2, -1)
        for slot, s in zip(self.slots, settings, strict=True):
            if s.get("dry_breakers"):
                breakers[slot] = breaker_table(s["dry_breakers"], vocab)
        p.input("breakers", breakers)
        p.input("bias", bias)
        p.input("mask", mask)

    def rows(self, position: int) -> str:
        """The rows whose successors go to `position`, of a chain's third step where that is possible."""
        rows = np.zeros(2 * len(self.slots), struct("Row"))
        rows["slot"] = np.repeat(self.slots, 2)
        rows["position"] = position - 1 - self.step(position)
        return self.p.input(f"rows{position}", rows)

    @staticmethod
    def step(position: int) -> int:
        return min(2, position - 1)

    def params(self, position: int, step: int | None = None) -> dict[str, int]:
        return dict(
            rows=len(self.slots),
            step=self.step(position) if step is None else step,
            vocab=self.vocab,
            history_stride=self.history.shape[1],
        )


def _logits(rng: np.random.Generator, vocab: int, sigma: float = 3.0) -> ref.F32:
    return normal(rng, vocab, sigma=sigma)


def _breakers(rng: np.random.Generator, vocab: int) -> dict[int, list[tuple[int, ...]]]:
    """Rare tokens are breakers, and common ones together."""
    few = [0, vocab - 1]
    return {
        vocab // 2: [()],
        vocab // 3: [(), (0,)],
        0: [tuple(rng.choice(few, 6).tolist()), tuple(rng.choice(few, 9).tolist())],
        vocab - 1: [tuple(rng.choice(few, 8).tolist())],
    }


def argmax(p: Problem, dev: Traits, rng: np.random.Generator, vocab: int, kind: str, rows: int = 1) -> None:
    logits, best = np.stack([_logits(rng, vocab) for _ in range(rows)]), rng.integers(0, vocab, rows)
    for x, i in zip(logits, range(rows), strict=True):
        if kind == "equal":
            x[:], best[i] = 1.5, 0
        elif kind == "ties":
            others = rng.integers(best[i], vocab, 5)
            x[others] = x[best[i]] = x.max() + 1
        elif kind == "last":
            best[i] = vocab - 1
            x[best[i]] = x.max() + 1
        else:
            x[x < 1] = -np.inf
            x[best[i]] = 50
    p.run(
        "argmax",
        p.input("logits", logits),
        p.output("sampled", rows, dtype=np.uint32),
        rows=rows,
        step=0,
        vocab=vocab,
        history_stride=1,
    )
    p.bytes = 4 * vocab * rows
    p.expect("sampled", best.astype(np.uint32))


def sample_prepare(
    p: Problem,
    dev: Traits,
    rng: np.random.Generator,
    vocab: int,
    position: int = 40,
    biased: bool = False,
    masked: bool = False,
    rows: int = 1,
    breakers: bool = False,
    **settings: Any,
) -> None:
    """`breakers`: DRY has some, of one token and of several."""
    each = []
    for _ in range(rows):
        own = dict(settings)
        if breakers:
            own["dry_breakers"] = _breakers(rng, vocab)
        if biased:
            ids = np.unique(rng.integers(0, vocab, 40)).tolist()
            own["logit_bias"] = {t: -np.inf if i % 7 == 0 else rng.uniform(-5, 5) for i, t in enumerate(ids)}
        if masked:
            own["mask"] = np.unique(rng.integers(0, vocab, max(vocab // 3, 1))).tolist()
        each.append(own)
    s = _Slots(p, rng, vocab, each, position)
    s.history[:, :position:3] = s.history[:, :1]  # one token many times
    if "dry_multiplier" in settings:
        s.history[:, :position] = rng.integers(0, 2, (len(s.history), position)) * (vocab - 1)
        s.history[:, position // 2 : position // 2 + 3] = vocab // 2  # what has breakers
    logits = np.stack([_logits(rng, vocab) for _ in range(rows)])
    p.run(
        "sample_prepare",
        p.input("logits", logits),
        p.input("history", s.history),
        "state",
        "bias",
        "mask",
        p.inout("scaled", np.zeros((rows, 2, vocab), np.float32)),
        s.rows(position),
        "logit_rows",
        "breakers",
        **s.params(position),
    )
    p.bytes = 8 * vocab * rows
    for i in range(rows if p.checking else 0):
        own = dict(each[i])
        allowed = own.pop("mask", None)
        x = logits[i].copy()
        if allowed is not None:
            forbidden = np.ones(vocab, bool)
            forbidden[allowed] = False
            x[forbidden] = -np.inf
        history = s.history[s.slots[i], :position].tolist()
        p.expect("scaled", sampler.penalised(x, history, sampler.Settings(**own)), EXACT_NMSE, 8 * vocab * i)
        # Counts are left at zero. CUDA counts elsewhere, and its blocks leave one another tokens there.
        if not dev.isa.startswith(CUDA):
            p.expect("scaled", np.zeros(vocab, np.uint32), offset=8 * vocab * i + 4 * vocab)


def sample(
    p: Problem,
    dev: Traits,
    rng: np.random.Generator,
    vocab: int,
    samples: int,
    sigma: float = 3.0,
    seed: int = 7,
    rows: int = 1,
    **settings: Any,
) -> None:
    """Draws tokens one after the other, as a chain does: prepare, select, accept, next position."""
    start = 10
    each = [dict(settings, seed=seed + i) for i in range(rows)]
    s = _Slots(p, rng, vocab, each, start, samples)
    p.inout("history", s.history)
    p.inout("scaled", np.zeros((rows, 2, vocab), np.float32))
    p.inout("sampled", np.zeros(rows, np.uint32))
    slots = np.zeros(rows + 2, struct("SlotState"))
    p.inout("slots", slots)
    control = np.zeros(1, struct("Control"))
    control["active"] = rows
    p.inout("control", control)
    expected = s.history.copy()
    for position in range(start, start + samples):
        logits = np.stack([_logits(rng, vocab, sigma) for _ in range(rows)])
        for i in range(rows if p.checking else 0):
            own = sampler.Settings(**settings)
            while True:  # where rounding could decide between two tokens, other logits
                sequence = expected[s.slots[i]]
                tokens = sampler.allowed(logits[i], sequence[:position].tolist(), own, seed + i)
                sequence[position] = min(tokens)
                if len(tokens) == 1:
                    break
                logits[i] = _logits(rng, vocab, sigma)
        where, params = s.rows(position), s.params(position)
        name = p.input(f"logits{position}", logits)
        p.run(
            "sample_prepare",
            name,
            "history",
            "state",
            "bias",
            "mask",
            "scaled",
            where,
            "logit_rows",
            "breakers",
            **params,
        )
        p.run("sample_select", "scaled", "state", "sampled", where, "logit_rows", **params)
        p.run("accept", "sampled", "history", "state", "slots", "control", where, "logit_rows", **params)
    p.timed = -2
    p.bytes = 4 * vocab * rows
    if p.checking:
        p.expect("history", expected)
        slots = slots.copy()
        slots["produced"][s.slots] = samples
        p.expect("slots", slots)
        p.expect("control", control)


def accept(
    p: Problem,
    dev: Traits,
    rng: np.random.Generator,
    drafts: Sequence[int],
    holds: Sequence[int],
    end: bool = False,
    limit: int = 0,
    stopped: bool = False,
) -> None:
    """Sequences with so many drafts each, of which the first `holds` are what is sampled."""
    vocab, position, n = 50, 7, len(drafts)
    each = [dict(end_ids=[48, 49])] * n
    s = _Slots(p, rng, vocab - 2, each, position, max(drafts) + 2)
    expected, slots = s.history.copy(), np.zeros(n + 2, struct("SlotState"))
    slots["limit"], slots["stopped"] = limit, stopped
    done, sampled, rows = slots.copy(), [], []
    active = n
    for i in range(n):
        slot, sequence = s.slots[i], s.history[s.slots[i]]
        for j in range(drafts[i] + 1):
            rows.append((slot, position - 1 + j))
            draft = sequence[position + j]
            right = j < holds[i]
            token = draft if right else (draft + 1) % (vocab - 2)
            if end and j == 1:
                token = 49
            sampled.append(token)
            before = all(expected[slot, position + k] == sequence[position + k] for k in range(j))
            if before and not done[slot]["stopped"]:
                expected[slot, position + j] = token
                done[slot]["produced"] += 1
                if done[slot]["produced"] == limit or token >= 48:
                    done[slot]["stopped"] = 2 if token >= 48 else 1  # at an end, at the limit
                    active -= 1
    control = np.zeros(1, struct("Control"))
    control["active"] = n
    after = control.copy()
    after["active"], after["stop"] = active, active == 0
    p.run(
        "accept",
        p.input("sampled", np.array(sampled, np.uint32)),
        p.inout("history", s.history),
        "state",
        p.inout("slots", slots),
        p.inout("control", control),
        p.input("rows", np.array(rows, struct("Row"))),
        p.input("all_rows", np.arange(len(rows), dtype=np.uint32)),
        rows=len(rows),
        step=0,
        vocab=vocab,
        history_stride=s.history.shape[1],
    )
    p.bytes = 16 * len(rows)
    p.expect("history", expected)
    p.expect("slots", done)
    p.expect("control", after)


def advance(
    p: Problem,
    dev: Traits,
    rng: np.random.Generator,
    tokens: Sequence[int],
    each: int,
    axes: bool = False,
    spans: bool = False,
) -> None:
    """Sequences of which a step of `each` rows gave so many tokens; none: it had ended before."""
    n = len(tokens)
    gone = np.array(tokens, np.uint32)
    slots = rng.permutation(n + 3)[:n].astype(np.uint32)
    lengths = rng.integers(1, 400, n).astype(np.uint32)
    before = rng.integers(0, 30, n).astype(np.uint32)

    def rows_of(positions: npt.NDArray[np.uint32]) -> npt.NDArray[np.void]:
        rows = np.zeros(positions.shape, struct("Row"))
        rows["slot"], rows["position"] = slots.reshape(n, *[1] * (positions.ndim - 1)), positions
        return rows.reshape(-1)

    first = lengths[:, None] + np.arange(each, dtype=np.uint32)
    states, records = np.zeros(n + 3, struct("SlotState")), np.zeros(n + 3, struct("ChainRecord"))
    states["produced"][slots], states["stopped"][slots] = before + gone, gone == 0
    records["start"][slots], records["steps"][slots] = lengths - before, 4
    records["tokens"][:, :4] = rng.integers(1, 9, (n + 3, 4))
    drafted = np.zeros(n + 3, struct("SlotState"))
    for name in ("stopped", "produced", "limit"):
        drafted[name] = rng.integers(1, 9, n + 3)
    span = np.zeros(n + 3, struct("StateSpan"))
    span["from"], span["to"] = rng.integers(0, 99, (2, n + 3))
    turned = rng.integers(0, 500, (n * each + n, 3)).astype(np.uint32)
    going_on = rng.integers(0, 9, n).astype(np.uint32)
    p.run(
        "advance",
        p.inout("rows", rows_of(first)),
        p.inout("positions", turned[n:]) if axes else None,
        p.input("slots", states),
        p.inout("records", records),
        p.inout("draft_rows", rows_of(lengths - 1)),
        p.inout("draft_positions", turned[:n]) if axes else None,
        p.inout("draft_states", going_on),
        p.inout("sampled_rows", rows_of(lengths)),
        p.inout("draft_slots", drafted),
        p.inout("spans", span) if spans else None,
        rows=n * each,
        has_axes=axes,
        has_spans=spans,
    )
    p.bytes = 16 * n * each
    noted, cleared, moved = records.copy(), drafted.copy(), span.copy()
    cleared[slots] = 0
    on, at = gone > 0, slots[gone > 0]
    noted["tokens"][at, 4], noted["steps"][at] = gone[on], 5
    moved["from"][at], moved["to"][at] = span["to"][at], (lengths + gone)[on] + 1
    p.expect("rows", rows_of(first + gone[:, None]))
    p.expect("records", noted)
    p.expect("draft_rows", rows_of(lengths - 1 + gone))
    p.expect("draft_states", np.where(on, np.arange(n, dtype=np.uint32) * each + gone - 1, going_on))
    p.expect("sampled_rows", rows_of(lengths + gone))
    p.expect("draft_slots", cleared)
    if axes:
        p.expect("positions", turned[n:] + np.repeat(gone, each)[:, None])
        p.expect("draft_positions", turned[:n] + gone[:, None])
    if spans:
        p.expect("spans", moved)


def logprobs(
    p: Problem, dev: Traits, rng: np.random.Generator, vocab: int, top: int, step: int, rows: int = 1
) -> None:
    logits, position = np.stack([_logits(rng, vocab) for _ in range(rows)]), 5
    # Every second sequence does not want any.
    each = [dict(want_logprobs=i % 2 == 0, n_logprobs=top) for i in range(rows)]
    s = _Slots(p, rng, vocab, each, position)
    chosen = rng.integers(0, vocab, rows).astype(np.uint32)
    record = struct("LogprobRecord")
    p.run(
        "logprobs",
        p.input("logits", logits),
        p.input("sampled", chosen),
        "state",
        p.output("records", (step + 1) * rows, dtype=record),
        s.rows(position),
        "logit_rows",
        **s.params(position, step),
    )
    p.bytes = 4 * vocab * rows
    if not p.checking:
        return
    poison = p.buffers["records"].data.copy()  # type: ignore[union-attr]
    for i in range(rows):
        at, k = (step * rows + i) * record.itemsize, min(top, vocab)
        if i % 2:
            p.expect("records", poison[step * rows + i : step * rows + i + 1], offset=at)
            continue
        expected = ref.log_softmax(logits[i].astype(np.float64))
        if vocab > 1:
            p.expect("records", expected[chosen[i]][None], EXACT_NMSE, at)
        else:  # log p = 0, which no relative error fits
            p.expect("records", np.zeros(1, np.float32), offset=at)
        best = np.lexsort((np.arange(vocab), -logits[i]))[:k]
        fields = record.fields
        assert fields is not None
        p.expect("records", best.astype(np.uint32), offset=at + fields["ids"][1])
        if k and vocab > 1:
            p.expect("records", expected[best], EXACT_NMSE, at + fields["values"][1])
    if step:
        p.expect("records", poison[: step * rows])
