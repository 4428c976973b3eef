"""The sampling kernels sample as docs/sampling.md says, in every schedule, and their tests see their bugs."""

# ruff: noqa: E501  (MSL reads better unbroken)
from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from kernels.builders.tokens import _Slots
from kernels.case import Case, case
from kernels.cases import CHECKS
from kernels.problem import Problem, pack
from kernels.runner import run
from metal import sampling_lab
from metal.sampling_lab import INCLUDE, KERNELS, SamplingLab
from metal_emulator.harness import (
    FIFO,
    SCHEDULES_DEFAULT,
    KernelError,
    Schedule,
    in_sanitizer,
    lint,
)
from sampling import reference
from sampling.reference import Settings

FILES = sorted(KERNELS.glob("*.metal"))
CASES = [
    c for c in CHECKS if c.builder in ("argmax", "sample_prepare", "sample", "logprobs", "accept", "advance")
]
ODD = [
    case("sample", vocab=31, samples=3, temperature=0.9, top_k=9, top_p=0.9, min_p=0.02, typical_p=0.95),
    case("sample", vocab=2049, samples=2, temperature=1.0, top_p=0.7),  # a slice of one token
    case("sample", vocab=4099, samples=2, sigma=0.01, temperature=1.0, top_k=4000, min_p=0.5),
    case("sample", vocab=2051, samples=2, temperature=1.3),
    case("sample_prepare", vocab=1027, biased=True, repeat_penalty=1.3, frequency_penalty=0.5, penalty_window=-1),
    case("sample", vocab=2050, samples=2, rows=3, temperature=1.0, top_p=0.8),
    case("sample", vocab=2049, samples=2, temperature=1.3, top_n_sigma=1.2, top_p=0.9),
    case("sample", vocab=4097, samples=3, temperature=1.0, top_p=0.99, min_p=0.001, xtc_probability=0.7, xtc_threshold=0.01, min_keep=3),
    case("sample_prepare", vocab=1027, position=300, rows=2, breakers=True, dry_multiplier=0.8, repeat_penalty=1.3),
    case("sample_prepare", vocab=1027, biased=True, masked=True, rows=2, repeat_penalty=1.3),
    case("argmax", vocab=4097, kind="ties", rows=2),
    case("logprobs", vocab=2050, top=20, step=1, rows=3),
    case("accept", drafts=(0, 3, 0, 5, 2), holds=(0, 1, 0, 5, 0), limit=3),
    case("accept", drafts=(1,) * 70, holds=(0, 1) * 35, end=True),  # more rows than threads
    case("advance", tokens=(1, 0, 2) * 30, each=2, axes=True, spans=True),
]  # fmt: skip


@pytest.fixture(scope="module")
def labs() -> dict[Schedule, SamplingLab]:
    return {schedule: SamplingLab(schedule) for schedule in SCHEDULES_DEFAULT}


@pytest.mark.long  # tests/kernels asks the device
@pytest.mark.in_turn
@pytest.mark.parametrize("row", CASES, ids=lambda c: c.id)
def test_the_kernel_table(labs: dict[Schedule, SamplingLab], row: Case) -> None:
    lab = labs[FIFO]
    assert not run(row.build(lab), lab)  # type: ignore[arg-type]


@pytest.mark.long
@pytest.mark.in_turn
@pytest.mark.parametrize("row", ODD, ids=lambda c: c.id)
def test_no_schedule_changes_a_result(labs: dict[Schedule, SamplingLab], row: Case) -> None:
    for lab in labs.values():
        assert not run(row.build(lab), lab)  # type: ignore[arg-type]


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_free_of_lint(path: Any) -> None:
    assert lint(path, include=INCLUDE) == []


def select(
    lab: SamplingLab,
    logits: np.ndarray[Any, np.dtype[np.float32]],
    settings: Settings,
    *,
    seed: int = 3,
    history: list[int] | None = None,
) -> int:
    """The token that the kernels sample from these logits."""
    past = history or [0, 1]
    vocab, position, p = len(logits), len(past), Problem()
    fields = {name: getattr(settings, name) for name in Settings.__dataclass_fields__}
    fields["logit_bias"] = dict(settings.logit_bias)
    fields["top_k"] = min(fields["top_k"], 2**32 - 1)
    s = _Slots(p, np.random.default_rng(1), vocab, [fields | {"seed": seed}], position)
    s.history[s.slots[0], :position] = past
    where, params = s.rows(position), s.params(position)
    state, bias, mask, rows, logit_rows, breakers = (
        p.buffers[name].data  # type: ignore[union-attr]
        for name in ("state", "bias", "mask", where, "logit_rows", "breakers")
    )
    scaled, sampled = np.zeros(2 * vocab, np.float32), np.full(1, 0xDEAD, np.uint32)
    buffers = [logits, s.history, state, bias, mask, scaled, rows, logit_rows, breakers]
    lab.run("sample_prepare", buffers, pack("sample_prepare", **params))
    lab.run("sample_select", [scaled, state, sampled, rows, logit_rows], pack("sample_select", **params))
    return int(sampled[0])


EDGES = {
    "smallest temperature": Settings(temperature=1e-45, top_p=0.9),
    "frozen": Settings(temperature=1e-6, top_k=40),
    "boiling": Settings(temperature=1e6, top_p=0.3),
    "top_k of all": Settings(top_k=1 << 31, temperature=0.3),
    "tiny top_p": Settings(top_p=1e-30),
    "nearly all top_p": Settings(temperature=3.0, top_p=0.9999999),
    "min_p of one": Settings(min_p=1.0),
    "tiny min_p": Settings(min_p=1e-38),
    "few sigmas": Settings(top_n_sigma=0.5, top_k=30),
    "sigmas of huge logits": Settings(top_n_sigma=2.0, logit_bias={9: 3.4e38, 11: -3.4e38}),
    "XTC of most": Settings(temperature=3.0, xtc_probability=1.0, xtc_threshold=1e-3),
    "XTC of all": Settings(xtc_probability=1.0, xtc_threshold=0.0, top_k=20),
    "XTC that leaves enough": Settings(xtc_probability=1.0, xtc_threshold=1e-3, min_p=0.01, min_keep=30),
    "enough of few": Settings(top_p=1e-30, typical_p=0.01, min_p=1.0, min_keep=4),
    "DRY": Settings(temperature=0, dry_multiplier=100.0, dry_allowed_length=0),
    "small typical_p": Settings(typical_p=0.05),
    "typical_p alone, flat": Settings(temperature=50.0, typical_p=0.5),
    "huge penalties": Settings(repeat_penalty=1e38, presence_penalty=3e38, frequency_penalty=3e38),
    "huge bias": Settings(logit_bias={9: 3.4e38, 11: -3.4e38}),
    "bans": Settings(temperature=2.0, top_p=0.9, logit_bias=dict.fromkeys(range(3, 240), -np.inf)),
    "one left": Settings(typical_p=0.9, logit_bias=dict.fromkeys([*range(50), *range(51, 263)], -np.inf)),
    "nothing left": Settings(top_k=7, top_p=0.5, logit_bias=dict.fromkeys(range(263), -np.inf)),
}


@pytest.mark.parametrize("name", EDGES)
def test_settings_at_their_limits(labs: dict[Schedule, SamplingLab], name: str) -> None:
    rng = np.random.default_rng(5)
    for seed in range(6):
        logits = (rng.standard_normal(263) * 3).astype(np.float32)
        history = rng.integers(0, 263, 20).tolist()
        expected = reference.allowed(logits, history, EDGES[name], seed)
        assert select(labs[FIFO], logits, EDGES[name], seed=seed, history=history) in expected


@pytest.mark.parametrize(
    "settings",
    [Settings(temperature=0), Settings(), Settings(top_k=20), Settings(top_p=0.9, typical_p=0.9)],
    ids=["greedy", "plain", "top_k", "typical_p"],
)
def test_nan_is_never_drawn_and_infinity_is_large(
    labs: dict[Schedule, SamplingLab], settings: Settings
) -> None:
    rng = np.random.default_rng(6)
    logits = rng.standard_normal(3000).astype(np.float32)
    logits[::2] = np.nan
    logits[1::4] = -np.inf
    drawn = {select(labs[FIFO], logits, settings, seed=seed) for seed in range(4)}
    assert all(token % 4 == 3 for token in drawn)
    assert all(t in reference.allowed(logits, [0, 1], settings, s) for s in range(4) if (t := select(labs[FIFO], logits, settings, seed=s)) >= 0)  # fmt: skip
    logits[2047] = np.inf
    assert select(labs[FIFO], logits, settings) == 2047
    logits[:] = np.nan
    assert select(labs[FIFO], logits, settings) == 0


@pytest.mark.parametrize("p", [0.25, 0.5, 0.75])
def test_equal_tokens_are_cut_by_id(labs: dict[Schedule, SamplingLab], p: float) -> None:
    """A share that is reached exactly keeps exactly so many, those with the lowest ids."""
    vocab = 64
    logits = np.full(vocab, 1.25, np.float32)
    for settings in (Settings(top_p=p), Settings(typical_p=p), Settings(top_k=int(p * vocab))):
        for seed in range(20):
            expected = int(np.argmax(reference.gumbel(seed, 2, vocab)[: int(p * vocab)]))
            assert select(labs[FIFO], logits, settings, seed=seed) == expected


def test_zeros_of_both_signs_are_equal(labs: dict[Schedule, SamplingLab]) -> None:
    logits = np.full(10, -1, np.float32)
    logits[[3, 7]] = -0.0, 0.0
    assert select(labs[FIFO], logits, Settings(temperature=0)) == 3


@pytest.mark.long
@pytest.mark.parametrize("sanitizer", ["tsan", "asan"])
def test_clean_under_sanitizers(sanitizer: str) -> None:
    rows = [(c.builder, dict(c.args)) for c in ODD]
    done = in_sanitizer(sanitizer, sampling_lab.__file__, "run_cases", rows, "priority", 1, sanitizer)
    assert done.returncode == 0 and done.stdout == "clean\n", done.stderr[-4000:]


BARRIER = "threadgroup_barrier(mem_flags::mem_threadgroup);"
SELECT = dict(vocab=2300, samples=3, sigma=1.0, temperature=1.0, top_k=200, top_p=0.9, typical_p=0.9)
FLAT = dict(vocab=2300, samples=6, sigma=0.3, temperature=1.0, top_p=0.1)
# (file, text, replacement, case)
MUTATIONS: dict[str, tuple[str, str, str, Case]] = {
    "slice too short": ("argmax", "min(p.vocab, (slice + 1)", "min(p.vocab - 1, (slice + 1)", case("argmax", vocab=15, kind="last")),
    "one row's scratch memory for all": ("argmax", "best += ulong(row) * slices;", "", case("argmax", vocab=4097, kind="peak", rows=3)),
    "uneven slices": ("argmax", "slice * kSliceTokens + thread_id", "slice * (kSliceTokens + 1) + thread_id", case("argmax", vocab=4097, kind="last")),
    "histogram not cleared": ("select", f"    if (thread_id < 2) atomic_store_explicit(&moment[thread_id], 0, memory_order_relaxed);\n    {BARRIER}", "", case("sample", **SELECT)),
    "a cut keeps one too many": ("select", "before + to >= want &&", "before + to > want &&", case("sample", vocab=15, samples=40, temperature=5.0, top_k=2)),
    "a cut forgets what came before": ("select", "before = space.before;", "before = 0;", case("sample", **FLAT)),
    "wrong words of the noise": ("select", "words[i])", "words[3 - i])", case("sample", vocab=2000, samples=4, temperature=1.0)),
    "window off by one": ("prepare", "i < row.position;", "i <= row.position;", case("sample_prepare", vocab=15, frequency_penalty=1.3)),
    "count not cleared": ("prepare", "atomic_store_explicit(&count[i], 0, memory_order_relaxed);", "", case("sample_prepare", vocab=1000, frequency_penalty=1.3)),
    "another sequence's history": ("prepare", "history += ulong(row.slot) * p.history_stride;", "", case("sample_prepare", vocab=100, rows=3, repeat_penalty=1.3)),
    "another row's mask": ("prepare", "masks += ulong(slice_and_row.y)", "masks += ulong(row.slot)", case("sample_prepare", vocab=100, rows=3, masked=True)),
    "a mask's highest bit first": ("prepare", ">> (id % 32) & 1", ">> (31 - id % 32) & 1", case("sample_prepare", vocab=100, masked=True)),
    "another row's list": ("select", "scratch += logit * select_bytes(p.vocab);", "", case("sample", vocab=300, samples=3, rows=3, temperature=1.0, top_p=0.5)),
    "a draft that fails counts": ("accept", "i < p.rows && drafts_hold && stopped == 0", "i < p.rows && stopped == 0", case("accept", drafts=(3, 2), holds=(1, 2))),
    "tokens behind the end": ("accept", "&& stopped == 0; ++i", "; ++i", case("accept", drafts=(5,), holds=(5,), limit=3)),
    "a sequence that stopped": ("accept", "if (stopped != 0) continue;", "stopped = 0;", case("accept", drafts=(0, 2), holds=(0, 2), stopped=True)),
    "the first to stop ends all": ("accept", "memory_order_relaxed) == 1)", "memory_order_relaxed) != 0)", case("accept", drafts=(0, 5), holds=(0, 5), limit=3)),
    "an ended sequence's rows move": ("accept", "if (tokens == 0) continue;  // it had ended before", "if (tokens == 0) record.steps += 1;", case("advance", tokens=(1, 0), each=3)),
    "the state of the row behind": ("accept", "i * each + tokens - 1", "i * each + tokens", case("advance", tokens=(1, 2), each=3)),
    "a state that was stashed": ("accept", "spans[slot].from = spans[slot].to;", "spans[slot].from = next;", case("advance", tokens=(2, 3), each=3, spans=True)),
    "records of one step": ("logprobs", "ulong(p.step) * p.rows + row", "p.step + row", case("logprobs", vocab=300, top=3, step=2, rows=3)),
    "records that nobody wants": ("logprobs", "    if (settings.want_logprobs == 0) return;  // all threads\n    logits += ulong(row) * p.vocab;\n    slices", "    logits += ulong(row) * p.vocab;\n    slices", case("logprobs", vocab=300, top=3, step=0, rows=3)),
    "a token taken twice": ("logprobs", "taken |= 1u <<", "taken |= 2u <<", case("logprobs", vocab=3000, top=20, step=0)),
    "slices not scaled": ("logprobs", "* relative_exp(my_max, top)", "* 1.0f", case("logprobs", vocab=9000, top=0, step=0)),
}  # fmt: skip


@pytest.mark.mutation
@pytest.mark.long
@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mutation_is_seen(name: str) -> None:
    file, old, new, row = MUTATIONS[name]
    lab = SamplingLab(mutation=(file, old, new))
    with suppress(KernelError):
        assert run(row.build(lab), lab)  # type: ignore[arg-type]


# What follows the barrier that is removed. Where only atomics are shared, there is no race but a wrong result.
BARRIERS = {
    "values": ("prepare", "\n\n    // Ids are unique", case("sample_prepare", vocab=1000, biased=True)),
    "counts": ("prepare", "\n\n    for (uint i = thread_id; i < n;", case("sample_prepare", vocab=1000, biased=True)),
    "cleared histogram": ("select", "\n    ulong my_moment", case("sample", **FLAT)),
    "gathered depth": ("select", "\n    const float top = as_type<float>(bits_of_rank(best.key)), inverse = inverse_of(settings.temperature);\n    device Ranked* entries", case("sample", **FLAT)),
    "cut histogram": ("select", "\n        if (simd == 0) choose_bucket", case("sample", **FLAT)),
    "chosen bucket": ("select", "\n        prefix = prefix <<", case("sample", **FLAT)),
    "maximum of slices": ("logprobs", "\n    return simd_sum(lane < n_simds", case("logprobs", vocab=2050, top=3, step=0)),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("name", BARRIERS)
def test_a_missing_barrier_is_seen(name: str) -> None:
    file, behind, row = BARRIERS[name]
    mutation = [file, f"{BARRIER}{behind}", behind]
    rows = [(row.builder, dict(row.args))]
    for sanitizer, seed in (*(("", seed) for seed in range(8)), ("tsan", 1)):
        if sanitizer:
            done = in_sanitizer(
                sanitizer, sampling_lab.__file__, "run_cases", rows, "priority", seed, sanitizer, mutation
            )
            assert done.returncode != 0, "neither a race nor a wrong result"
            return
        lab = SamplingLab(Schedule("priority", seed, workers=2), mutation=(file, mutation[1], mutation[2]))
        try:
            if run(row.build(lab), lab):  # type: ignore[arg-type]
                return
        except KernelError:
            return
