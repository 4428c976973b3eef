"""Several sequences of one prompt, and what the model counts."""

from __future__ import annotations

import asyncio
import pickle
import subprocess
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest

import akunu
from akunu.api.scheduling import Scheduler, Sequence
from akunu.api.scheduling.drafts import StepCosts
from models import llama2c

from .conftest import make_model
from .fakes import FakeEngine, hashed

STORY = (
    "Once upon a time, there was a little girl named Lily. She loved to play outside in the big, green park. "
)

TWICE = 2 * STORY


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return llama2c.write("F16", tmp_path_factory.mktemp("llama2c") / "tiny.gguf")


@pytest.fixture
def model(path: Path) -> akunu.Model:
    with akunu.load(path, parallel=3) as model:
        yield model


def test_each_of_n_outputs_is_that_of_its_seed(model: akunu.Model) -> None:
    outputs = model.generate(STORY, n=4, seed=2**64 - 2, max_tokens=12, temperature=1.0)
    assert [output.seed for output in outputs] == [2**64 - 2, 2**64 - 1, 0, 1]
    alone = [model.generate(STORY, seed=output.seed, max_tokens=12, temperature=1.0) for output in outputs]
    assert [output.ids for output in outputs] == [output.ids for output in alone]
    assert len({output.text for output in outputs}) > 1


def test_n_outputs_run_their_prompt_once(model: akunu.Model) -> None:
    tokens = len(model.tokenize(STORY))
    outputs = model.generate(STORY, n=3, max_tokens=4)
    assert tokens > 32 and sorted(output.stats.cached_tokens // 32 for output in outputs) == [
        0,
        tokens // 32,
        tokens // 32,
    ]


def test_n_is_a_list_also_of_one_and_in_a_task(model: akunu.Model) -> None:
    assert model.generate("Once", n=1, seed=5, max_tokens=2).seed == 5
    plain = model.generate("Once", n=2, seed=5, max_tokens=6)
    assert [t.ids for t in asyncio.run(model.agenerate("Once", n=2, seed=5, max_tokens=6))] == [
        t.ids for t in plain
    ]
    messages = [{"role": "user", "content": "Hello"}]
    model.chat_template = akunu.ChatTemplate.named("chatml", model.tokenizer)
    chats = model.chat(messages, n=2, seed=5, max_tokens=6)
    assert [t.message["content"] for t in chats] == [t.text for t in chats]
    assert [t.ids for t in asyncio.run(model.achat(messages, n=2, seed=5, max_tokens=6))] == [
        t.ids for t in chats
    ]


def test_when_one_of_n_outputs_fails_the_others_end_too() -> None:
    model = make_model(parallel=2)
    failing = iter([1])

    def fail(engine: FakeEngine) -> None:
        if next(failing, None):
            raise akunu.DeviceError("out of memory")

    model._engine.before_decode = fail
    with pytest.raises(akunu.DeviceError, match="out of memory"):
        model.generate([1, 5], n=50, max_tokens=100)
    assert len([name for name, _ in model._engine.calls if name == "begin"]) < 50
    assert not model._engine.sequences and len(model.generate([1, 5], n=3, max_tokens=2)) == 3


@pytest.mark.parametrize("n", [0, 257, 1.5, True])
def test_n_has_limits(model: akunu.Model, n: object) -> None:
    with pytest.raises(akunu.InvalidArgumentError, match=r"^n: "):
        model.generate("Once", n=n)


def test_a_task_that_is_cancelled_ends_all_of_its_sequences(model: akunu.Model) -> None:
    async def cancelled() -> None:
        task = asyncio.create_task(model.agenerate("Once", n=3, temperature=1.0, logit_bias={2: -100.0}))
        while not model.stats.running:
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert (model.stats.running, model.stats.waiting) == (0, 0)


def test_a_batch_is_in_the_order_of_its_prompts_and_told_of_as_sequences_end() -> None:
    model, seen = make_model(parallel=3), []
    prompts = [[1, 10 + i] for i in range(7)]
    outputs = model.generate_batch(prompts, max_tokens=6, progress=lambda *done: seen.append(done))
    assert [output.ids for output in outputs] == [model.generate(p, max_tokens=6).ids for p in prompts]
    assert seen == [(done, 7) for done in range(1, 8)]
    assert model.generate_batch([]) == []


def test_a_long_batch_shows_a_bar_as_a_load_does(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = []

    class Bar:
        def __init__(self, title: str, unit: str) -> None:
            shown.append((title, unit))

        def update(self, done: int, total: int, what: str = "") -> None:
            shown.append((done, total))

        def close(self) -> None:
            shown.append("closed")

    monkeypatch.setattr("akunu.base.progress._Bar", Bar)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    model = make_model()
    model.generate_batch([[1, 5], [1, 6]], max_tokens=2, progress=False)
    assert not shown
    model.generate_batch([[1, 5], [1, 6]], max_tokens=2)
    assert shown == [("Generating", "count"), (1, 2), (2, 2), "closed"]


def test_the_constraints_of_a_batch_are_made_as_its_sequences_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    model, alive, most = make_model(parallel=2), set[int](), list[int]()
    constraint = model._compiler.constraint

    def count(*args: object) -> object:
        made = constraint(*args)
        alive.add(id(made))
        weakref.finalize(made, alive.discard, id(made))
        most.append(len(alive))
        return made

    monkeypatch.setattr(model._compiler, "constraint", count)
    outputs = model.generate_batch([[1, 5 + i] for i in range(30)], regex="[a-c]{2}", progress=False)
    assert len(most) == 30 and max(most) <= 6
    assert all(len(output.text) == 2 and set(output.text) <= set("abc") for output in outputs)


def test_sequences_of_a_batch_that_fail_take_no_other_with_them() -> None:
    model = make_model(parallel=2, context=64)
    prompts = [[1, 10], [1] * 65, [1, 11], [1] * 66, [1, 12]]
    with pytest.raises(akunu.BatchError) as caught:
        model.generate_batch(prompts, max_tokens=5)
    error = caught.value
    assert str(error).startswith("2 of 5 outputs failed") and "prompts[1]: the prompt has 65 tokens" in str(
        error
    )
    assert {i: type(e) for i, e in error.errors.items()} == dict.fromkeys((1, 3), akunu.ContextLengthError)
    alone = [model.generate(p, max_tokens=5).ids for p in prompts[::2]]
    assert [c and c.ids for c in error.completions] == [alone[0], None, alone[1], None, alone[2]]
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error) and copy.completions == error.completions


@pytest.mark.parametrize(
    ("prompts", "message"),
    [
        ("Once", "prompts: expected a list of prompts, got a text"),
        (None, "prompts: expected a list of prompts, got NoneType"),
        ([[1, 5], []], r"prompts\[1\]: prompt: it has no tokens"),
        ([[1, 5], [1, 9999]], r"prompts\[1\]: token ids: .*9999"),
    ],
    ids=["text", "none", "empty", "id"],
)
def test_a_batch_with_a_prompt_that_is_none_does_not_begin(prompts: list, message: str) -> None:
    model = make_model()
    with pytest.raises(akunu.InvalidArgumentError, match=message):
        model.generate_batch(prompts)
    for options in ({"progress": 3}, {"temperature": -1}):
        with pytest.raises(akunu.InvalidArgumentError, match=rf"^{next(iter(options))}"):
            model.generate_batch([[1, 5]], **options)
    assert not model._engine.calls


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_a_batch_that_its_progress_ends_is_cancelled(error: type[BaseException]) -> None:
    def progress(done: int, total: int) -> None:
        raise error

    model = make_model(parallel=2)
    with pytest.raises(error):
        model.generate_batch([[1, 5 + i] for i in range(50)], max_tokens=3, progress=progress)
    assert len({tuple(ids) for name, ids in model._engine.calls if name == "begin"}) < 50
    assert not model._engine.sequences and model.generate([1, 5], max_tokens=2).ids


def test_a_beginning_that_another_sequence_is_reading_is_waited_for() -> None:
    engine = FakeEngine(hashed(50), vocab=50, context=300, chunk=64)
    scheduler = Scheduler(engine)
    shared, other = np.arange(130, dtype=np.uint32) % 50, np.arange(7, 137, dtype=np.uint32) % 50
    first, second = (Sequence(np.append(shared, last).astype(np.uint32), {}, 4) for last in (1, 2))
    third = Sequence(other, {}, 4)
    for sequence in (first, second, third):
        scheduler.submit(sequence)
    scheduler._step()
    assert scheduler.running() == [first, third]
    scheduler._step()
    scheduler._step()
    assert scheduler.running() == [first, second, third]


def test_counts_are_those_of_what_was_done(model: akunu.Model) -> None:
    before = model.stats
    assert (before.prompts, before.parallel, before.pages_held) == (0, 3, 0) and before.pages >= 3
    first = model.generate(STORY, max_tokens=5)
    again = model.generate(STORY, max_tokens=5)
    model.generate("The dog", max_tokens=5)
    now = model.stats
    assert (now.prompts, now.hits, now.misses_new, now.misses_evicted) == (3, 1, 2, 0)
    assert now.cached_tokens >= again.stats.cached_tokens == first.stats.prompt_tokens - 1
    tokens = 2 * first.stats.prompt_tokens + len(model.tokenize("The dog"))
    assert now.generated_tokens >= 15 and now.prompt_tokens == tokens
    assert now.pages_cached > 0 == now.pages_held


def test_a_miss_is_told_from_a_page_that_was_given_away(path: Path) -> None:
    with akunu.load(path, parallel=1, context=96) as small:  # four pages
        small.generate(STORY, max_tokens=0)
        assert small.stats().pages == 4
        for other in ("A dog and a cat. ", "The sun and a tree. "):
            small.generate(other * 8, max_tokens=0)
        small.generate(STORY, max_tokens=0)
        assert (small.stats().misses_new, small.stats().misses_evicted) == (3, 1)


@pytest.fixture
def few_pages(path: Path) -> akunu.Model:
    """Seven pages: a sequence that fills the context takes four of them."""
    with akunu.load(path, parallel=4, context=96) as model:
        page = model.stats.page_bytes
    with akunu.load(path, parallel=4, context=96, kv_memory=7 * page) as model:
        yield model


def fill(model: akunu.Model) -> None:
    """Use all memory for other sequences."""
    for i in range(9):
        model.generate([5 + i] * 90, max_tokens=0)


def test_a_beginning_that_is_pinned_stays_and_one_that_is_not_does_not(few_pages: akunu.Model) -> None:
    model = few_pages
    expected = model.generate(TWICE, max_tokens=8, seed=1)
    fill(model)
    assert model.generate(TWICE, max_tokens=8, seed=1).stats.cached_tokens == 0
    fill(model)
    pinned = model.pin(TWICE)
    assert pinned == len(model.tokenize(TWICE)) // 32 * 32 == model.pin(TWICE) == 64
    fill(model)
    assert model.stats.pages_pinned == model.stats.pages_held == 2
    again = model.generate(TWICE, max_tokens=8, seed=1)
    assert (again.ids, again.stats.cached_tokens) == (expected.ids, pinned)
    model.unpin(TWICE)
    assert model.stats.pages_pinned == model.stats.pages_held == 0
    fill(model)
    assert model.generate(TWICE, max_tokens=8, seed=1).stats.cached_tokens == 0
    with pytest.raises(akunu.InvalidArgumentError, match="prompt: it is not pinned"):
        model.unpin(TWICE)
    assert model.pin("Short") == 0 and model.stats.pages_pinned == 0


def test_beginnings_that_share_pages_are_unpinned_each_by_itself(few_pages: akunu.Model) -> None:
    model = few_pages
    ids = model.tokenize(TWICE)
    model.pin(ids[:32])
    model.pin(ids)
    assert model.stats.pages_pinned == 2
    model.unpin(ids[:32])
    assert model.stats.pages_pinned == 2
    model.unpin(ids)
    assert model.stats.pages_pinned == 0


def test_pins_leave_room_for_a_sequence_that_fills_the_context(few_pages: akunu.Model) -> None:
    model = few_pages
    model.pin([7] * 70)
    model.pin([8] * 40)
    with pytest.raises(
        akunu.InvalidArgumentError, match=r"7 pages; with 4 pinned, .* takes 4: more kv_memory"
    ):
        model.pin([9] * 40)
    outputs = model.generate_batch([[i] * 90 for i in range(5, 12)], max_tokens=3, seed=1)
    assert [len(output.ids) for output in outputs] == [3] * 7
    assert model.stats.pages_pinned == 3


def test_what_is_measured_beside_sequences_finds_room(few_pages: akunu.Model) -> None:
    model = few_pages
    options = {"max_tokens": 60, "temperature": 0, "logit_bias": {1: -100.0, 2: -100.0}}
    prompts = [[i] * 30 for i in range(5, 8)]
    expected = [model.generate(prompt, **options).ids for prompt in prompts]
    streams = [model.stream(prompt, **options) for prompt in prompts]
    pieces = [[next(stream), next(stream)] for stream in streams]
    assert model.stats.pages - model.stats.pages_held < 3
    assert model.logits([9] * 96).shape == (96, 512)
    assert len(model.profile(position=90, repeats=1)) > 5
    found = [
        [i for p in [*begun, *stream] for i in p.ids] for begun, stream in zip(pieces, streams, strict=True)
    ]
    assert found == expected


def test_a_profile_of_what_is_no_number_or_beyond_the_context_is_refused(few_pages) -> None:
    for name, value in (("position", -1), ("position", few_pages.context), ("position", "0"), ("repeats", 0)):
        with pytest.raises(akunu.InvalidArgumentError, match=f"^{name}: "):
            few_pages.profile(**{name: value})


def test_256_sequences_at_a_time_are_what_each_is_alone(path: Path) -> None:
    prompts = [[3 + i % 400, 5 + i % 7] for i in range(300)]
    options = {"max_tokens": 6, "temperature": 1.0, "seed": 9}
    with akunu.load(path, parallel=1, context=64) as one, akunu.load(path, parallel=256, context=64) as many:
        streams = [many.stream(prompt, **options) for prompt in prompts]
        pieces = [[next(stream)] for stream in streams[:256]] + [[] for _ in streams[256:]]
        assert many.stats().running == many.stats().parallel == 256
        for read, stream in zip(pieces, streams, strict=True):
            read += stream
        found = [[i for piece in read for i in piece.ids] for read in pieces]
        together = many.generate_batch(prompts, **options)
        assert (
            [output.ids for output in together] == found == [one.generate(p, **options).ids for p in prompts]
        )


def test_the_cache_takes_memory_as_it_is_used() -> None:
    """Short sequences of a model with room for long ones."""
    code = """
import resource
import akunu
with akunu.load("ember", context=2048, kv_memory=1 << 30) as model:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for i in range(20):
        model.generate([5 + i], max_tokens=2)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(result.stdout) * (1 if sys.platform == "darwin" else 1024) < 64 << 20


def test_the_memory_that_a_model_takes_is_said(few_pages: akunu.Model) -> None:
    memory, page = few_pages.memory, few_pages.stats().page_bytes
    assert memory.kv_cache == 7 * page
    assert (
        str(akunu.Memory(3 << 20, 0, 7 * 20480, 5000))
        == "weights 3.0 MiB, KV cache 140.0 KiB, scratch 4.9 KiB"
    )
    mapped = akunu.Memory(0, 3 << 30, 0, 0)
    assert str(mapped) == "weights 0 B and 3.0 GiB of the file, KV cache 0 B, scratch 0 B"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"kv_memory": 3 * 20480},
            "kv_memory is 61440 bytes; a context of 96 tokens needs 81920; give as much",
        ),
        ({"kv_memory": 1 << 62}, "the cache would have .* pages of 20480 bytes, expected fewer"),
        ({"kv_memory": 0}, "kv_memory: found 0, expected"),
        ({"parallel": 257}, "parallel: found 257, expected"),
        ({"parallel": 0}, "parallel: found 0, expected"),
    ],
    ids=str,
)
def test_memory_that_no_sequence_fits_into_is_refused(path: Path, options: dict, message: str) -> None:
    with pytest.raises(akunu.InvalidArgumentError, match=message):
        akunu.load(path, context=96, **options)


def test_sequences_of_another_salt_find_nothing_and_wait_for_nobody(path: Path, tmp_path: Path) -> None:
    with akunu.load(path, context=256, cache_dir=tmp_path) as model:
        options = {"max_tokens": 4, "temperature": 0}
        expected = model.generate(TWICE, **options)
        for salt in ("one", "another", ""):
            first, second = (model.generate(TWICE, cache_salt=salt, **options) for _ in range(2))
            assert first.ids == second.ids == expected.ids
            assert first.stats.cached_tokens == 0 and second.stats.cached_tokens >= 64
        assert model.generate(TWICE, **options).stats.cached_tokens >= 64
        assert model.pin(TWICE, cache_salt="one") == 64 and model.stats.pages_pinned == 2
        with pytest.raises(akunu.InvalidArgumentError, match="it is not pinned"):
            model.unpin(TWICE, cache_salt="another")
        model.unpin(TWICE, cache_salt="one")
        model.flush()
        assert model.stats.disk_written >= 8
    with akunu.load(path, context=256, cache_dir=tmp_path) as later:
        for salt, tokens in (("new", 0), ("one", 64), (None, 64)):
            found = later.generate(TWICE, cache_salt=salt, **options)
            assert found.stats.cached_tokens // 32 * 32 == tokens and found.ids == expected.ids


def test_drafts_are_looked_up_in_sequences_of_the_same_salt(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[int]()
    propose = Sequence.propose
    monkeypatch.setattr(StepCosts, "may_pay", lambda self, rows, most: True)
    monkeypatch.setattr(
        Sequence,
        "propose",
        lambda s, others, context: (asked.append(len(others)), propose(s, others, context))[1],
    )
    scheduler = Scheduler(FakeEngine(hashed(50, 4), vocab=50, context=300))
    sequences = [
        Sequence(np.array([1, 2, 3 + i], np.uint32), {}, 8, salt=salt)
        for i, salt in enumerate((None, "one", "one", "another"))
    ]
    for sequence in sequences:
        scheduler.submit(sequence)
    for _ in range(8):
        for sequence in sequences:
            scheduler.next(sequence)
    assert set(asked) == {1, 2} and len(asked) >= 8
    for sequence in sequences:
        scheduler.end(sequence, sequence.known)


@pytest.mark.parametrize("salt", [3, b"one", "\ud800"])
def test_a_salt_is_a_text(salt: object) -> None:
    with pytest.raises(akunu.InvalidArgumentError, match="cache_salt"):
        make_model().generate([1, 5], cache_salt=salt)


def test_the_memory_of_what_is_cached_is_given_back() -> None:
    with akunu.load("ember", context=1024, parallel=4, threads=1) as model:
        ids = [5 + i % 300 for i in range(1000)]
        for first in range(4, 8):
            model.generate([first, *ids], max_tokens=1)
        stats = model.stats
        assert stats.pages_cached > 100
        held = resident()
        model.clear_cache()
        assert model.stats.pages_cached == 0
        assert held - resident() > 0.7 * stats.pages_cached * stats.page_bytes
        assert model.generate([7, *ids], max_tokens=1).stats.cached_tokens == 0


def resident() -> int:
    """Bytes of this process' own memory."""
    if not Path("/proc/self/smaps_rollup").exists():
        pytest.skip("the system does not tell")
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("RssAnon:"))) * 1024
