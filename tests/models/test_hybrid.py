"""Models with a state that cannot be truncated: the same output whatever happens to it, from checkpoints.

What a hybrid computes is compared with float64, and with a lone run bit for bit.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import akunu
from akunu import _core
from akunu._core import PAGE
from akunu.base.errors import InvalidArgumentError, UnsupportedError
from akunu.files import model_files

from . import hybrid, tiny
from .phases import agree
from .test_engine import greedy, nmse
from .test_same_output import DRAFTED, FOUND, Mixes

DEVICE = os.environ.get("AKUNU_TEST_DEVICE", "cpu")  # tests/metal sets another
CONTEXT = 1200
EVERY = 512
"""Positions from one checkpoint of a sequence to the next."""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hybrid") / "hybrid.gguf"
    hybrid.write(path)
    return path


def open_engine(path: Path, **options: Any) -> _core.Engine:
    file = _core.GgufFile(str(path))
    settings = {"device": DEVICE, "context": CONTEXT, "kv_dtype": "f32", "threads": 2, **options}
    return _core.Engine(file, hybrid.spec(file, context=CONTEXT), **settings)


def prompt_of(n: int, seed: int = 1) -> list[int]:
    return np.random.default_rng(seed).integers(3, tiny.ALL[hybrid.BASE].vocab_size, n).tolist()


@pytest.fixture
def engine(path: Path) -> _core.Engine:
    return open_engine(path)


def read(engine: _core.Engine, slot: int, ids: list[int], rows: int = CONTEXT) -> int:
    """Begin a sequence and run all of it but the last token; returns how much of it was cached."""
    cached = at = engine.begin(ids, slot=slot)
    while at < len(ids) - 1:
        n = min(rows, len(ids) - 1 - at, engine.chunk)
        assert engine.reserve(slot, n)
        (chunk,), _ = engine.step([(slot, n, False, 0, [])])
        assert at < chunk.length <= at + n
        at = chunk.length
    return cached


def decode(engine: _core.Engine, slot: int, n: int) -> list[int]:
    """The next tokens of a sequence that `read` has run."""
    ids: list[int] = []
    while len(ids) < n:
        assert engine.reserve(slot, 1, n - len(ids))
        (chunk,), _ = engine.step([(slot, 1, True, 0, [])], n - len(ids))
        ids += chunk.ids
    return ids


# -- what it computes ----------------------------------------------------------------------------------------


def test_logits_are_those_of_float64(path: Path, engine: _core.Engine) -> None:
    ids = prompt_of(90)
    expected = hybrid.HybridReference(path, context=CONTEXT).logits(ids)
    assert nmse(engine.logits(ids), expected) < 1e-9


def test_the_reference_would_notice_a_state_that_is_lost(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reference, ids = hybrid.HybridReference(path, context=CONTEXT), prompt_of(90)
    later = reference.logits(ids)[60:]
    assert nmse(reference.logits(ids[40:])[20:], later) > 1e-4


def test_greedy_ids_are_those_of_float64(path: Path, engine: _core.Engine) -> None:
    ids = prompt_of(70)
    found = greedy(engine, ids, 24)
    logits = hybrid.HybridReference(path, context=CONTEXT).logits([*ids, *found[:-1]])[-24:]
    second, first = np.sort(logits)[:, -2:].T
    assert (first - second).min() > 1e-4
    assert found == logits.argmax(axis=1).tolist()


@pytest.mark.parametrize(("rows", "threads"), [(1, 1), (7, 2), (33, 2)])
def test_chunks_change_no_bit(path: Path, rows: int, threads: int) -> None:
    ids = prompt_of(100)
    whole, cut = open_engine(path), open_engine(path, chunk=rows, threads=threads)
    assert agree(cut.logits(ids), whole.logits(ids))


# -- going back ----------------------------------------------------------------------------------------------


def test_a_sequence_goes_back_to_a_checkpoint_and_on_as_if_it_had_not(engine: _core.Engine) -> None:
    slot, ids = engine.open(), prompt_of(700)
    read(engine, slot, ids)
    expected = decode(engine, slot, 30)
    length = engine.length(slot)
    # One that has not sampled past it has its state, the end of its prompt has a checkpoint, then there are
    # those every so often, then nothing.
    for keep, held in ((length, length), (710, 672), (690, 672), (600, EVERY), (EVERY, EVERY), (511, 0)):
        read(engine, slot, ids)
        decode(engine, slot, 30)
        assert engine.truncate(keep, slot) == held == engine.length(slot)
    engine.forget()
    assert read(engine, slot, ids) == 0
    assert decode(engine, slot, 30) == expected


def test_a_beginning_is_cached_up_to_a_checkpoint(engine: _core.Engine) -> None:
    first, other = engine.open(), engine.open()
    ids = prompt_of(700)
    read(engine, first, ids)
    said = decode(engine, first, 5)
    # While it runs: the end of its prompt, in pages. When it has ended: all of it.
    assert engine.begin([*ids, 5, 6, 7], slot=other) == 672
    assert engine.begin([*ids[:600], 5], slot=other) == EVERY
    assert engine.begin(ids[:500], slot=other) == 0
    engine.close_slot(first)
    assert engine.begin([*ids, *said, 5], slot=other) == len(ids) + 4
    assert engine.begin([*ids, 5], slot=other) == 672


@pytest.mark.table
@pytest.mark.parametrize("length", range(577, 610))
def test_the_next_turn_runs_what_is_new_though_its_answer_opens_otherwise(length: int, path: Path) -> None:
    """A template that leaves reasoning out of earlier answers has other tokens where the prompt ended."""
    engine = open_engine(path)
    slot, ids = engine.open(), prompt_of(length)
    read(engine, slot, ids)
    decode(engine, slot, 5)
    engine.close_slot(slot)
    cached = engine.begin([*ids[:-8], *prompt_of(40, seed=3)], slot=engine.open())
    assert length - 8 - 2 * PAGE < cached <= length - 8


def test_sequences_from_checkpoints_are_those_from_nothing(path: Path, engine: _core.Engine) -> None:
    slot, ids = engine.open(), prompt_of(600)
    read(engine, slot, ids)
    alone = open_engine(path)
    only = alone.open()
    for end, cached in ((600, 599), (580, 576), (513, EVERY)):
        sequence = [*ids[:end], 9, 8, 7]
        assert read(engine, slot, sequence) == cached
        assert read(alone, only, sequence) == 0
        assert decode(engine, slot, 20) == decode(alone, only, 20)
        alone.truncate(0, only)
        alone.forget()


@pytest.mark.parametrize("hold", [0, 1, 3, 8])
def test_drafts_that_are_refused_leave_the_state_as_it_was(engine: _core.Engine, hold: int) -> None:
    slot, ids = engine.open(), prompt_of(45)
    read(engine, slot, ids)
    expected = decode(engine, slot, 40)
    read(engine, slot, ids)
    found: list[int] = []
    while len(found) < 30:
        right = expected[len(found) : len(found) + hold]
        wrong = [(expected[len(found) + hold] + 1) % 200] * (8 - hold)
        assert engine.reserve(slot, 1, 1, 8)
        (chunk,), _ = engine.step([(slot, 1, True, 0, [*right, *wrong])])
        assert 1 <= len(chunk.ids) <= hold + 1
        found += chunk.ids
    assert found == expected[: len(found)]


def test_a_sequence_can_go_back_among_drafts_that_held(engine: _core.Engine) -> None:
    """They are stashed until the next step, so no checkpoint is needed."""
    slot, ids = engine.open(), prompt_of(45)
    read(engine, slot, ids)
    expected = decode(engine, slot, 20)
    read(engine, slot, ids)
    engine.reserve(slot, 1, 1, 8)
    engine.step([(slot, 1, True, 0, expected[:8])])
    assert engine.length(slot) == 53
    assert engine.truncate(50, slot) == 50
    engine.extend(slot, [expected[5]])
    assert decode(engine, slot, 10) == expected[6:16]


def test_a_sequence_that_ends_within_a_chain_of_others_keeps_its_state(engine: _core.Engine) -> None:
    first, second = engine.open(), engine.open()
    ids, other = prompt_of(40), prompt_of(50, seed=2)
    read(engine, first, ids)
    expected = decode(engine, first, 20)
    read(engine, first, ids)
    read(engine, second, other)
    for slot in (first, second):
        engine.reserve(slot, 1, 12)
    chunks, _ = engine.step([(first, 1, True, 5, []), (second, 1, True, 0, [])], 12)
    assert [len(chunk.ids) for chunk in chunks] == [5, 12]
    assert chunks[0].ids + decode(engine, first, 15) == expected


# -- what is kept --------------------------------------------------------------------------------------------


def test_checkpoints_are_bounded_and_go_with_their_pages(path: Path) -> None:
    engine = open_engine(path, parallel=1, kv_memory=(CONTEXT // PAGE + 8) * 40_000)
    slot = engine.open()
    sequences = [prompt_of(70, seed) for seed in range(80)]
    for ids in sequences:
        read(engine, slot, ids)
    most = max(2, engine.pages["pages"] * engine.pages["page_bytes"] // 4 // engine.pages["state_bytes"])
    assert 2 <= engine.pages["checkpoints"] <= most < 2 * len(sequences)
    assert engine.begin(sequences[-2], slot=slot) > 0  # the latest are there, the first are gone
    assert engine.begin(sequences[0], slot=slot) == 0
    engine.close_slot(slot)
    engine.forget()
    assert engine.pages["checkpoints"] == engine.pages["held"] == engine.pages["cached"] == 0


def test_a_prefix_of_a_step_leaves_the_state(path: Path) -> None:
    engine = open_engine(path, activations_apart=True)
    slot, ids = engine.open(), prompt_of(40)
    read(engine, slot, ids)
    expected = decode(engine, slot, 8)
    read(engine, slot, ids)
    for commands in (5, 8, 20):
        assert engine.run_prefix(slot, commands)
    assert decode(engine, slot, 8) == expected
    engine.profile("prefill", rows=4, position=100, repeats=1)


def test_states_count_as_memory_of_the_cache(path: Path) -> None:
    """States are those of the sequences that run, and copies, whose number follows from it."""
    few, many = (open_engine(path, parallel=2, kv_memory=n << 20) for n in (4, 16))
    for engine, memory in ((few, 4 << 20), (many, 16 << 20)):
        assert 0.95 * memory < engine.memory["kv_cache"] <= memory
    assert few.pages["pages"] < many.pages["pages"]
    with pytest.raises(
        InvalidArgumentError, match=r"1200 tokens and the states of 2 sequences needs \d+; give"
    ):
        open_engine(path, parallel=2, kv_memory=few.pages["state_bytes"] * 2)


def test_pages_with_a_state_go_on_in_another_engine(path: Path) -> None:
    ids = prompt_of(100)
    source, engine = open_engine(path), open_engine(path, parallel=2)
    slot = source.open()
    read(source, slot, ids)
    expected = decode(source, slot, 8)
    pages = [source.read_page(np.array(ids[:end], np.uint32)) for end in (32, 64, 96)]
    assert [page[1] is not None for page in pages] == [False, True, True]  # about where the prompt ends
    slot = engine.open()
    for lacking in (False, True):
        assert engine.begin(ids, slot=slot) == 0
        for page in pages:
            assert engine.restore_page(slot, [page[0], None if lacking else page[1]])
        assert engine.finish_restoring(slot) == (0 if lacking else 96)
        while (left := len(ids) - 1 - engine.length(slot)) > 0:
            assert engine.reserve(slot, left)
            engine.step([(slot, left, False, 0, [])])
        assert decode(engine, slot, 8) == expected
        engine.close_slot(slot)
        engine.forget()
        slot = engine.open()
    with pytest.raises(UnsupportedError, match="have a state, which goes with checkpoints"):
        source.pin(np.array(ids[:32], np.uint32))


def test_it_is_planned_for_gpus(path: Path) -> None:
    chips = ("M2", "H100") if sys.platform == "linux" else ("M2",)
    for chip in chips:
        commands = open_engine(path, device=f"plan:{chip}").plan("decode", 1, 0)
        assert [c["layer"] for c in commands if c["op"] == "recur"] == list(hybrid.LAYERS)


# -- with everything around it -------------------------------------------------------------------------------


@pytest.fixture
def mixes(path: Path, tmp_path: Path) -> Mixes:
    return Mixes(path, tmp_path / "pages", hybrid.spec)


def test_a_sequence_is_what_it_is_alone(mixes: Mixes, monkeypatch: pytest.MonkeyPatch) -> None:
    mixes.run_until(FOUND | DRAFTED, range(40), monkeypatch, least=6)


@pytest.mark.long
def test_a_sequence_is_what_it_is_alone_in_many_mixes(mixes: Mixes, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(100, 140):
        mixes.run(seed, monkeypatch)


@pytest.fixture
def model(path: Path, monkeypatch: pytest.MonkeyPatch) -> akunu.Model:
    monkeypatch.setattr(model_files, "resolve", hybrid.spec)
    with akunu.load(path, device=DEVICE, context=400, parallel=3) as model:
        model.chat_template = akunu.ChatTemplate.named("chatml", model.tokenizer)
        yield model


def test_n_outputs_share_their_prompt_and_are_those_of_their_seeds(model: akunu.Model) -> None:
    story = "Once upon a time, there was a little girl. " * 2
    outputs = model.generate(story, n=4, seed=5, max_tokens=12, temperature=1.0)
    alone = [model.generate(story, seed=output.seed, max_tokens=12, temperature=1.0) for output in outputs]
    assert [output.ids for output in outputs] == [output.ids for output in alone]
    assert sum(output.stats.cached_tokens >= PAGE for output in outputs) == 3


def test_a_conversation_is_forked_saved_and_loaded(model: akunu.Model, tmp_path: Path) -> None:
    options = {"max_tokens": 10, "temperature": 0}
    session = model.session([{"role": "system", "content": "Be brief."}], **options)
    session.chat("Who are you?")
    session.save(tmp_path / "talk.json")
    fork, loaded = session.fork(), akunu.Session.load(model, tmp_path / "talk.json", **options)
    answers = [s.chat("Why?") for s in (session, fork, loaded)]
    whole = model.chat(session.messages[:-1], **options)
    assert {answer.text for answer in answers} == {whole.text}
    assert all(answer.stats.cached_tokens >= PAGE for answer in answers)


def test_a_prompt_goes_on_from_files(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_files, "resolve", hybrid.spec)
    story = "Once upon a time, there was a little girl. " * 10
    options = {"max_tokens": 8, "temperature": 0}
    with akunu.load(path, device=DEVICE, context=1000, cache_dir=tmp_path) as model:
        first = model.generate(story, **options)
        other = model.generate(story + "And a boy.", **options)
        model.flush()
    prompt = first.stats.prompt_tokens
    with akunu.load(path, device=DEVICE, context=1000, cache_dir=tmp_path) as model:
        again = model.generate(story + "And a boy.", **options)
        stats = model.stats
    assert again.ids == other.ids and again.stats.cached_tokens >= (prompt - 1) // PAGE * PAGE >= 2 * PAGE
    assert stats.hits_disk == 1 and stats.disk_damaged == stats.disk_vanished == 0
