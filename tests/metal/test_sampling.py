"""The sampling kernels draw what docs/sampling.md says, in every schedule, and their tests see their bugs."""

# ruff: noqa: E501  (MSL reads better unbroken)
from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pytest
import sampling_lab
from sampling_lab import INCLUDE, KERNELS, SamplingLab

from kernels.builders.tokens import _state
from kernels.cases import CHECKS, Case, case
from kernels.problem import pack
from kernels.runner import run
from metal_emulator.harness import (
    FIFO,
    SCHEDULES_DEFAULT,
    KernelError,
    Library,
    Schedule,
    in_sanitizer,
    lint,
)
from sampling import reference
from sampling.reference import Settings

FILES = sorted(KERNELS.glob("*.metal"))
CASES = [c for c in CHECKS if c.builder in ("argmax", "sample_prepare", "sample", "logprobs")]
ODD = [
    case("sample", vocab=31, draws=3, temperature=0.9, top_k=9, top_p=0.9, min_p=0.02, typical_p=0.95),
    case("sample", vocab=2049, draws=2, temperature=1.0, top_p=0.7),  # a slice of one token
    case("sample", vocab=4099, draws=2, sigma=0.01, temperature=1.0, top_k=4000, min_p=0.5),
    case("sample", vocab=2051, draws=2, temperature=1.3),
    case("sample_prepare", vocab=1027, biased=True, repeat_penalty=1.3, frequency_penalty=0.5, penalty_window=-1),
    case("argmax", vocab=4097, kind="ties", end=True),
    case("logprobs", vocab=2050, top=20, step=1),
]  # fmt: skip


@pytest.fixture(scope="module")
def labs() -> dict[Schedule, SamplingLab]:
    return {schedule: SamplingLab(schedule) for schedule in SCHEDULES_DEFAULT}


@pytest.mark.parametrize("row", CASES, ids=lambda c: c.id)
def test_the_kernel_table(labs: dict[Schedule, SamplingLab], row: Case) -> None:
    lab = labs[FIFO]
    assert not run(row.build(lab), lab)  # type: ignore[arg-type]


@pytest.mark.long
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
    control: np.ndarray[Any, np.dtype[np.uint32]] | None = None,
) -> int:
    """The token that the kernels draw from these logits."""
    past = history or [0, 1]
    vocab, position = len(logits), len(past)
    tokens = np.array([*past, 0xDEAD], np.uint32)
    control = np.zeros(2, np.uint32) if control is None else control
    fields = {name: getattr(settings, name) for name in Settings.__dataclass_fields__}
    fields["logit_bias"] = dict(settings.logit_bias)
    fields["top_k"] = min(fields["top_k"], 2**32 - 1)
    state = _state(seed, **fields)
    scaled = np.zeros(2 * vocab, np.float32)
    params = pack("sample_select", position=position, step=0, vocab=vocab)
    lab.run("sample_prepare", [logits, tokens, state, scaled], params)
    lab.run("sample_select", [scaled, tokens, state, control], params)
    return int(tokens[position])


EDGES = {
    "smallest temperature": Settings(temperature=1e-45, top_p=0.9),
    "frozen": Settings(temperature=1e-6, top_k=40),
    "boiling": Settings(temperature=1e6, top_p=0.3),
    "top_k of all": Settings(top_k=1 << 31, temperature=0.3),
    "tiny top_p": Settings(top_p=1e-30),
    "nearly all top_p": Settings(temperature=3.0, top_p=0.9999999),
    "min_p of one": Settings(min_p=1.0),
    "tiny min_p": Settings(min_p=1e-38),
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


@pytest.mark.parametrize("op", ["argmax", "sample_select"])
def test_nothing_is_written_after_the_stop(labs: dict[Schedule, SamplingLab], op: str) -> None:
    logits, history = np.arange(40, dtype=np.float32), np.full(5, 77, np.uint32)
    control = np.array([1, 9], np.uint32)
    params = pack(op, position=3, step=0, vocab=40)
    labs[FIFO].run(op, [logits, history, _state(1, temperature=1.0), control], params)
    assert history.tolist() == [77] * 5 and control.tolist() == [1, 9]


def test_an_end_token_sets_the_stop(labs: dict[Schedule, SamplingLab]) -> None:
    logits, history = np.arange(40, dtype=np.float32), np.zeros(5, np.uint32)
    control = np.zeros(2, np.uint32)
    params = pack("argmax", position=3, step=0, vocab=40)
    labs[FIFO].run("argmax", [logits, history, _state(end_ids=[5, 39]), control], params)
    assert history.tolist() == [0, 0, 0, 39, 0] and control.tolist() == [1, 1]


@pytest.mark.parametrize("vocab", [1, 31, 32, 33, 1000, 32000])
def test_a_grammar_mask_forbids_tokens(vocab: int) -> None:
    rng = np.random.default_rng(vocab)
    logits, allowed = rng.standard_normal(vocab).astype(np.float32), rng.integers(0, 2, vocab).astype(bool)
    bits = np.zeros(-(-vocab // 32) * 32, bool)
    bits[:vocab] = allowed
    mask = np.packbits(bits, bitorder="little").view(np.uint32)
    out = logits.copy()
    library = Library.compile(KERNELS / "mask.metal", include=INCLUDE, fast_math=True)
    library.run(
        "mask_logits_f32",
        {0: out, 1: mask, 8: pack("argmax", position=0, step=0, vocab=vocab)},
        groups=-(-vocab // 256),
        threads=256,
    )
    np.testing.assert_array_equal(out, np.where(allowed, logits, -np.inf))


@pytest.mark.long
@pytest.mark.parametrize("sanitizer", ["tsan", "asan"])
def test_clean_under_sanitizers(sanitizer: str) -> None:
    rows = [(c.builder, dict(c.args)) for c in ODD]
    done = in_sanitizer(sanitizer, sampling_lab.__file__, "run_cases", rows, "priority", 1, sanitizer)
    assert done.returncode == 0 and done.stdout == "clean\n", done.stderr[-4000:]


BARRIER = "threadgroup_barrier(mem_flags::mem_threadgroup);"
SELECT = dict(vocab=2300, draws=3, sigma=1.0, temperature=1.0, top_k=200, top_p=0.9, typical_p=0.9)
FLAT = dict(vocab=2300, draws=6, sigma=0.3, temperature=1.0, top_p=0.1)
# (file, text, replacement, case)
MUTATIONS: dict[str, tuple[str, str, str, Case]] = {
    "slice too short": ("argmax", "min(p.vocab, (slice + 1)", "min(p.vocab - 1, (slice + 1)", case("argmax", vocab=15, kind="last")),
    "uneven slices": ("argmax", "slice * kSliceTokens + thread_id", "slice * (kSliceTokens + 1) + thread_id", case("argmax", vocab=4097, kind="last")),
    "histogram not cleared": ("select", f"    if (thread_id < 2) atomic_store_explicit(&moment[thread_id], 0, memory_order_relaxed);\n    {BARRIER}", "", case("sample", **SELECT)),
    "a cut keeps one too many": ("select", "before + to >= want &&", "before + to > want &&", case("sample", vocab=15, draws=40, temperature=5.0, top_k=2)),
    "a cut forgets what came before": ("select", "before = space.before;", "before = 0;", case("sample", **FLAT)),
    "wrong words of the noise": ("select", "words[i])", "words[3 - i])", case("sample", vocab=2000, draws=4, temperature=1.0)),
    "window off by one": ("prepare", "i < p.position;", "i <= p.position;", case("sample_prepare", vocab=15, repeat_penalty=1.3)),
    "count not cleared": ("prepare", "atomic_store_explicit(&count[i], 0, memory_order_relaxed);", "", case("sample_prepare", vocab=1000, frequency_penalty=1.3)),
    "a token taken twice": ("logprobs", "taken |= 1u <<", "taken |= 2u <<", case("logprobs", vocab=3000, top=20, step=0)),
    "slices not scaled": ("logprobs", "* relative_exp(my_max, top)", "* 1.0f", case("logprobs", vocab=9000, top=0, step=0)),
}  # fmt: skip


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
