"""What a test does: which tokens are processed, in which calls, and what is timed."""

from __future__ import annotations

import pytest

from akunu.base.errors import AkunuError
from akunu.cli.bench.params import BenchParams, Case, list_cases
from akunu.cli.bench.runner import CHAIN, LoadedModel, run_cases, run_test
from akunu.loading.facts import ModelFacts, model_facts
from akunu.loading.synthetic import SyntheticModel

from .fakes import CPU, FakeEngine

FACTS = ModelFacts("x", "t", 1, 1)


def case(**sizes: object) -> Case:
    empty = {"n_prompt": (0,), "n_gen": (0,)}
    lists = {name: (value,) for name, value in sizes.items()}
    return list_cases(BenchParams(**{**empty, **lists}))[0]  # type: ignore[arg-type]


def run(engine: FakeEngine, test: Case, *, repetitions: int = 1, warmup: bool = False) -> list[str]:
    log: list[str] = []
    loaded = LoadedModel(engine, FACTS, 100, CPU)
    samples = run_test(loaded, test, repetitions=repetitions, warmup=warmup, log=log.append)
    assert len(samples) == repetitions
    assert all(ns > 0 for ns in samples)
    return log


def total(engine: FakeEngine, name: str) -> int:
    return sum(n for call, n in engine.calls if call == name)


def test_a_size_label_is_one_line():
    facts = model_facts("x", {"general.architecture": "llama", "general.size_label": "1B\n| forged |"}, [])
    assert facts.type == "llama 1B | forged | mixed"


def test_a_prompt_is_processed_whole_in_each_repetition():
    engine = FakeEngine(64)
    run(engine, case(n_prompt=10), repetitions=3)
    assert total(engine, "prefill") == 30
    assert total(engine, "decode") == 0


def test_batches_end_with_logits_of_their_own():
    engine = FakeEngine(64, chunk=4)
    run(engine, case(n_prompt=10, n_batch=5))
    assert [n for call, n in engine.calls if call == "prefill"] == [4, 1, 4, 1]


def test_generation_starts_from_one_untimed_token_and_runs_in_chains():
    engine = FakeEngine(512)
    run(engine, case(n_gen=CHAIN + 10))
    assert [call for call in engine.calls if call[0] != "truncate"] == [
        ("prefill", 1),
        ("decode", CHAIN),
        ("decode", 10),
    ]


def test_prompt_and_generation_in_one_test():
    engine = FakeEngine(64)
    run(engine, case(n_pg=(8, 3)))
    assert total(engine, "prefill") == 8
    assert total(engine, "decode") == 3


def test_depth_is_computed_once_for_all_repetitions():
    engine = FakeEngine(64)
    log = run(engine, case(n_prompt=4, n_depth=20), repetitions=3)
    assert total(engine, "prefill") == 20 + 3 * 4
    assert log.count("depth run 1/3") == 1
    assert log.count("depth run 2/3 (cached)") == 1


def test_depth_is_shared_by_tests_on_one_engine():
    engine = FakeEngine(64)
    loaded = LoadedModel(engine, FACTS, 100, CPU)
    for test in list_cases(BenchParams(n_prompt=(4,), n_gen=(3,), n_depth=(16, 24))):
        run_test(loaded, test, repetitions=2, warmup=True, log=lambda _text: None)
    untimed_starts = 2 * (2 + 1)
    assert total(engine, "prefill") == 24 + 2 * 3 * 4 + untimed_starts


def test_each_run_begins_at_the_depth():
    engine = FakeEngine(64)
    positions: list[int] = []
    original = engine.begin
    engine.begin = lambda ids, **options: positions.append(original(ids, **options)) or positions[-1]  # type: ignore
    run(engine, case(n_gen=5, n_depth=8), repetitions=2, warmup=True)
    assert positions == [0, 8, 8, 8]


@pytest.mark.parametrize("depth", [0, 8, 33])
def test_an_engine_that_caches_earlier_texts_computes_each_run(depth):
    """The real one, on the embedded model."""
    from akunu.cli.bench.cases import load_case

    test = case(models="ember", n_pg=(40, 3), n_depth=depth, n_threads=1)
    loaded = load_case(test, depth + 48)
    run_test(loaded, test, repetitions=3, warmup=True, log=lambda _text: None)
    assert loaded.sequence.tokens.size == depth + 43
    loaded.engine.close()


def test_warmup_runs_the_prompt_and_one_token():
    engine = FakeEngine(64)
    log = run(engine, case(n_pg=(8, 3)), warmup=True)
    assert total(engine, "prefill") == 8 + 1 + 8
    assert total(engine, "decode") == 1 + 3
    assert log[:2] == ["warmup prompt run", "warmup generation run"]


def test_an_engine_that_stops_is_an_error():
    engine = FakeEngine(8)
    with pytest.raises(AkunuError, match="stopped after 7 of 20"):
        run(engine, case(n_gen=20))


def test_an_engine_is_loaded_for_the_largest_of_its_tests_and_closed():
    loads: list[tuple[int, int]] = []
    engines: list[FakeEngine] = []

    def load(test: Case, context: int) -> LoadedModel:
        loads.append((test.n_threads, context))
        engines.append(FakeEngine(context))
        return LoadedModel(engines[-1], FACTS, 100, CPU)

    cases = list_cases(BenchParams(n_prompt=(4, 8), n_gen=(2,), n_depth=(0, 16), n_threads=(1, 2)))
    results = list(run_cases(cases, load, repetitions=2, warmup=False, delay=0, log=lambda _text: None))
    assert loads == [(1, 25), (2, 25)]
    assert all(engine.closed for engine in engines)
    assert [result.case for result in results] == cases
    assert all(len(result.samples_ns) == 2 for result in results)


def test_progress_is_told_as_llama_bench_does():
    log: list[str] = []
    cases = list_cases(BenchParams(n_prompt=(4,), n_gen=(2,)))
    load = lambda _case, context: LoadedModel(FakeEngine(context), FACTS, 100, CPU)  # noqa: E731
    list(run_cases(cases, load, repetitions=1, warmup=True, delay=0, log=log.append))
    assert log == [
        "benchmark 1/2: starting",
        "benchmark 1/2: warmup prompt run",
        "benchmark 1/2: prompt run 1/1",
        "benchmark 2/2: starting",
        "benchmark 2/2: warmup generation run",
        "benchmark 2/2: generation run 1/1",
    ]


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        (
            {"general.architecture": "qwen3", "general.size_label": "0.6B", "general.file_type": 2},
            "qwen3 0.6B Q4_0",
        ),
        ({"general.architecture": "llama", "general.file_type": 15}, "llama 15.2M Q4_K - Medium"),
        ({"general.architecture": "llama", "general.file_type": 999}, "llama 15.2M mixed"),
        ({}, "? 15.2M Q8_0"),
    ],
)
def test_model_type(metadata, expected):
    facts = model_facts("x", metadata, SyntheticModel("stories15m:q8_0").tensors)
    assert facts.type == expected


def test_size_and_parameters_are_those_that_llama_bench_reports():
    facts = model_facts("x", {}, SyntheticModel("stories15m:q8_0").tensors)
    assert (facts.size, facts.n_params) == (16152192, 15191712)
    facts = model_facts("x", {}, SyntheticModel("smollm-135m:q4_k_m").tensors)
    assert (facts.size, facts.n_params) == (103668480, 134515008)
