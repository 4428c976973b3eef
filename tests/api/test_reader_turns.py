"""Readers of an owner with many sequences are woken in turn, each for all that is ready."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import akunu
from akunu.api.results import Piece
from akunu.api.scheduling import Scheduler, Sequence, sharing
from akunu.api.scheduling.sequence import AHEAD, WHOLE_AHEAD
from akunu.api.scheduling.sharing import FEW, ReaderTurns

from .fakes import FakeChunk, FakeEngine, hashed
from .test_scheduler import VOCAB, owned

NOW = 1000.0


def nobody_else(_: set[str | None]) -> bool:
    return False


def with_chunks(owners: str, chunks: int = 1) -> list[Sequence]:
    """Sequences that have had something, the first one longest ago, with so many chunks to take."""
    found = [owned(owner, seed) for seed, owner in enumerate(owners)]
    for number, each in enumerate(found):
        each.ready.extend(FakeChunk([5]) for _ in range(chunks))
        each.taken_at = NOW - 0.01 + number / 1e6
    return found


def called(sequences: list[Sequence]) -> list[int]:
    return [number for number, each in enumerate(sequences) if each.due]


def test_readers_of_many_sequences_are_woken_in_turn_beside_another_owner() -> None:
    sequences, turns = with_chunks("bbbba"), ReaderTurns()
    turns.ran(sequences, NOW, nobody_else)  # time before the first step is nobody's
    for each in sequences:
        each.called = False
    turns._turns, turns._at = {"b": 0.0}, NOW
    turns.ran(sequences, NOW + 1.5 * sharing.TURN_SECONDS, nobody_else)
    assert called(sequences) == [0, 4]
    sequences[0].pop()
    turns.ran(sequences, NOW + 3.5 * sharing.TURN_SECONDS, nobody_else)
    assert called(sequences) == [1, 2, 4]


def test_nobody_waits_for_longer_than_the_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "TURN_SECONDS", 1e9)
    sequences, turns = with_chunks("bbbba"), ReaderTurns()
    turns._turns, turns._at = {"b": 0.0}, NOW
    turns.ran(sequences, NOW, nobody_else)
    assert called(sequences) == [4]
    turns.ran(sequences, NOW + sharing.MOST_SECONDS, nobody_else)
    assert called(sequences) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("owners", "others"), [("bbbb", False), ("b" * FEW + "a", True)], ids=["alone", "few sequences"]
)
def test_each_chunk_is_given_at_once_to_an_owner(owners: str, others: bool) -> None:
    sequences, turns = with_chunks(owners), ReaderTurns()
    turns._at = NOW
    turns.ran(sequences, NOW, lambda _: others)
    assert called(sequences) == list(range(len(owners)))
    assert all(each.hungry and not each.leads_on for each in sequences)


def test_an_owner_that_may_come_back_is_there() -> None:
    sequences, turns = with_chunks("bbbb"), ReaderTurns()
    turns._turns, turns._at = {"b": 0.0}, NOW
    turns.ran(sequences, NOW, lambda owners: owners == {"b"})
    assert called(sequences) == []


def test_the_first_chunk_and_the_last_do_not_wait() -> None:
    sequence = owned("b", 1)
    sequence.in_turn = True
    sequence.ready.append(FakeChunk([5]))
    assert sequence.due
    sequence.pop()
    assert not sequence.taking and sequence.taken_at > 0
    sequence.ready.append(FakeChunk([6]))
    assert not sequence.due and sequence.hungry and sequence.idle_for() == 0
    sequence.ended = True
    assert sequence.due


def test_one_that_loses_its_slot_gives_what_is_ready() -> None:
    sequence = owned("b", 1)
    sequence.in_turn, sequence.taken_at, sequence.slot = True, NOW, 0
    sequence.ready.append(FakeChunk([5]))
    assert not sequence.due
    sequence.displace()
    assert sequence.due


def test_a_sequence_whose_reader_waits_runs_ahead_and_its_reader_takes_all() -> None:
    sequence = owned("b", 1)
    sequence.in_turn, sequence.taken_at, sequence.slot = True, NOW, 0
    sequence.ready.extend(FakeChunk([n]) for n in range(WHOLE_AHEAD - 1))
    assert len(sequence.ready) > AHEAD and sequence.hungry and sequence.leads_on
    sequence.called = True
    assert not sequence.leads_on
    assert [sequence.pop().ids[0] for _ in range(WHOLE_AHEAD - 1) if sequence.due] == list(
        range(WHOLE_AHEAD - 1)
    )
    assert not sequence.due


def test_one_that_is_cancelled_while_it_waits_is_free_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "TURN_SECONDS", 1e9)
    monkeypatch.setattr(sharing, "MOST_SECONDS", 1e9)
    scheduler = Scheduler(FakeEngine(hashed(VOCAB, 4), vocab=VOCAB, context=400, chunk=16, parallel=8))
    sequences = [owned(owner, seed, 300) for seed, owner in enumerate("bbbba")]
    for each in sequences:
        scheduler.submit(each)
    for each in sequences:
        assert scheduler.next(each) is not None
    for _ in range(3):
        scheduler._step()
    held = sequences[0]
    assert held.in_turn and held.ready and not held.due
    scheduler.cancel(held)
    assert held.due  # what there is comes, and then the end
    while scheduler.next(held) is not None:
        pass
    scheduler.end(held, keep=0)
    assert held not in scheduler.running() and held.slot is None


def pieces_of(model: akunu.Model, owner: str, number: int, begin: threading.Barrier) -> list[Piece]:
    options = {"max_tokens": 40, "temperature": 0.8, "seed": number, "speculative": False, "logprobs": 2}
    with model.stream(f"Once upon a time {number}", cache_salt=owner, **options) as stream:
        first = next(stream)
        begin.wait(60)
        return [first, *stream]


def test_joined_tokens_are_those_that_come_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """With their log-probabilities, in their order, and none is lost."""
    with akunu.load("ember", threads=1, parallel=6) as model:
        alone = [pieces_of(model, "b", n, threading.Barrier(1)) for n in range(5)]
        monkeypatch.setattr(sharing, "TURN_SECONDS", 1e9)
        monkeypatch.setattr(sharing, "MOST_SECONDS", 1e9)
        begin = threading.Barrier(6)
        with ThreadPoolExecutor(6) as pool:
            other = pool.submit(pieces_of, model, "a", 9, begin)
            beside = [pool.submit(pieces_of, model, "b", n, begin) for n in range(5)]
            joined = [each.result(120) for each in beside]
            assert other.result(120)
    for one, many in zip(alone, joined, strict=True):
        assert "".join(many) == "".join(one)
        assert [i for piece in many for i in piece.ids] == [i for piece in one for i in piece.ids]
        assert all(
            piece.logprobs is not None and [each.id for each in piece.logprobs] == piece.ids for piece in many
        )
    assert sum(map(len, joined)) < sum(len(piece.ids) for one in alone for piece in one) / 3
