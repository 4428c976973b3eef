"""After every stop the KV cache holds what the caller has seen, and going on equals a fresh run."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from akunu.base.errors import ContextLengthError

from .engines import open_file, run, start, synthetic, write_tiny
from .reference import Settings

PROMPT = [1, 17, 42, 42, 200, 7, 17, 99]
SAMPLED = Settings(temperature=1.2, top_p=0.95, repeat_penalty=1.1)
BOTH = pytest.mark.parametrize("settings", [Settings(temperature=0), SAMPLED], ids=["greedy", "sampled"])


@pytest.fixture(scope="module")
def tiny_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("sampling") / "llama.gguf")


@BOTH
def test_same_seed_same_output(tiny_file: Path, settings: Settings) -> None:
    """For any chunk of the prompt, chain length, number of threads, and with or without a cached prefix."""
    expected = run(open_file(tiny_file), PROMPT, 60, settings, 5)
    for chunk in (1, 3, 512):
        for threads in (1, 2, 3):
            engine = open_file(tiny_file, chunk=chunk, threads=threads)
            assert run(engine, PROMPT, 60, settings, 5, chain=13) == expected, (chunk, threads)
            assert run(engine, PROMPT, 60, settings, 5, chain=1) == expected  # on the cached prompt
            assert run(engine, PROMPT, 60, settings, 5, reuse=False) == expected


def test_another_seed_another_output(tiny_file: Path) -> None:
    engine = open_file(tiny_file)
    # Seeds that differ in the low half, in the high half, in one bit.
    outputs = {
        tuple(run(engine, PROMPT, 20, SAMPLED, seed)) for seed in (0, 1, 1 << 32, 1 << 63, (1 << 64) - 1)
    }
    assert len(outputs) == 5


@BOTH
def test_a_chain_ends_at_an_end_token(tiny_file: Path, settings: Settings) -> None:
    engine = open_file(tiny_file)
    free = run(engine, PROMPT, 60, settings, 5)
    for n in (0, 1, 11, 30):
        end = free[n]
        expected = free[: free.index(end) + 1]
        for chain in (1, 4, 64):
            assert run(engine, PROMPT, 60, settings, 5, chain=chain, end_ids=[262, end]) == expected
            # The end token has not become input.
            assert engine.tokens.tolist() == [*PROMPT, *expected[:-1]]
            assert engine.position == len(PROMPT) + len(expected) - 1


def test_a_chunk_says_that_it_ended(tiny_file: Path) -> None:
    engine = open_file(tiny_file)
    free = run(engine, PROMPT, 10, SAMPLED, 5)
    assert start(engine, PROMPT, SAMPLED, 5, end_ids=free[:1]).ended
    assert not start(engine, PROMPT, SAMPLED, 5, end_ids=free[9:]).ended
    chunk = engine.decode(60)
    assert chunk.ended == (chunk.ids[-1] == free[9])
    assert chunk.ended


@BOTH
def test_truncate_and_continue_equals_a_fresh_run(tiny_file: Path, settings: Settings) -> None:
    engine = open_file(tiny_file)
    ids = run(engine, PROMPT, 30, settings, 5)
    for keep in (0, 3, len(PROMPT), len(PROMPT) + 12):
        run(engine, PROMPT, 30, settings, 5)
        engine.truncate(keep)
        assert engine.tokens.tolist() == [*PROMPT, *ids][:keep]
        prompt = [*PROMPT, *ids[:12], 60, 61]
        assert engine.begin(prompt) >= keep  # earlier sequences that begin like it are found too
        found = run(engine, prompt, 25, settings, 8, chain=6)
        assert found == run(open_file(tiny_file), prompt, 25, settings, 8)
        assert engine.tokens.tolist() == [*prompt, *found[:-1]]


@BOTH
def test_decoding_in_pieces_equals_one_prompt(tiny_file: Path, settings: Settings) -> None:
    """With the tokens so far as prompt, the next ones are the same: a draw depends on its position."""
    engine = open_file(tiny_file)
    ids = run(engine, PROMPT, 40, settings, 5)
    for n in (1, 17, 39):
        assert run(engine, [*PROMPT, *ids[:n]], 40 - n, settings, 5, reuse=False) == ids[n:]


def test_the_context_is_filled_to_the_last_token(tiny_file: Path) -> None:
    engine = open_file(tiny_file, context=32)
    expected = run(open_file(tiny_file), PROMPT, 25, SAMPLED, 5)
    for chain in (1, 7, 200):
        # 24 more tokens fit, and one that is sampled from the last of them.
        assert run(engine, PROMPT, 100, SAMPLED, 5, chain=chain) == expected
        assert engine.position == engine.context == 32
        assert engine.decode(5) is None
    full = [*PROMPT, *expected[:24]]
    assert run(engine, full, 10, SAMPLED, 5) == expected[24:]
    with pytest.raises(ContextLengthError, match=r"33 tokens.*32"):
        engine.begin([*full, 1])


@BOTH
def test_cancel_from_another_thread(settings: Settings) -> None:
    engine = synthetic(8000, 512, layers=6, head_dim=64, context=2048)
    prompt = list(range(1, 9))
    ids = start(engine, prompt, settings, 5).ids
    timer = threading.Timer(0.15, engine.cancel)
    timer.start()
    began = time.perf_counter()
    while True:
        chunk = engine.decode(256)
        ids += chunk.ids
        if len(chunk.ids) < 256:
            break
    assert time.perf_counter() - began < 120  # it ends: a slow machine may take its time
    timer.join()
    assert 1 <= len(ids) < 1500
    assert engine.tokens.tolist() == [*prompt, *ids[:-1]]
    ids += engine.decode(5).ids  # it goes on where it was
    assert engine.tokens.tolist() == [*prompt, *ids[:-1]]
    more = run(engine, [*prompt, *ids], 8, settings, 5)
    assert engine.tokens.tolist() == [*prompt, *ids, *more[:-1]]
    assert more == run(engine, [*prompt, *ids], 8, settings, 5, reuse=False)


def test_cancel_during_the_prompt() -> None:
    engine = synthetic(4000, 512, layers=6, head_dim=64, context=4096, chunk=64)
    prompt = [i % 4000 for i in range(4000)]
    engine.begin(prompt)
    timer = threading.Timer(0.1, engine.cancel)
    timer.start()
    left = len(prompt)
    while True:
        now, chunk = engine.prefill()
        if now == left:
            break
        left = now
    timer.join()
    assert chunk.ids == [] and left > 0
    # Only whole chunks have been kept.
    assert engine.position == len(prompt) - left and engine.position % 64 == 0
    assert engine.tokens.tolist() == prompt[: engine.position]
    assert engine.begin(prompt) == engine.position


def test_no_cancel_is_lost_at_the_end_of_a_step() -> None:
    """A step may be told to stop when its last command runs: it ends whole, and the next one stops."""
    engine = synthetic(4000, 512, layers=6, head_dim=64, context=4096, chunk=64)
    engine.begin([0] * 64)
    began = time.perf_counter()
    engine.prefill()
    step = time.perf_counter() - began
    for i in range(40):
        prompt = list(range(i + 1, 4000))
        engine.begin(prompt)
        timer = threading.Timer(step * i / 20, engine.cancel)  # at every part of the first two steps
        timer.start()
        left, before = engine.prefill()[0], len(prompt)
        while 0 < left < before:
            left, before = engine.prefill()[0], left
        timer.join()
        assert left == before
