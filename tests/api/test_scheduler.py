"""Who runs in the next step: fairness, suspension and pages, on an engine that is fake."""

from __future__ import annotations

import random
import threading
import time

import numpy as np
import pytest

from akunu.api.scheduling import Scheduler, Sequence, planning, scheduler, sharing
from akunu.api.scheduling.choosing import Drafts
from akunu.api.scheduling.drafts import StepCosts
from akunu.base.errors import DeviceError

from .fakes import FakeChunk, FakeEngine, hashed

VOCAB = 50


def sequence_of(length: int, seed: int, limit: float = 30) -> Sequence:
    prompt = np.random.default_rng(seed).integers(0, VOCAB, length).astype(np.uint32)
    return Sequence(prompt, {"end_ids": (3,)}, limit)


def alone(sequence: Sequence) -> list[int]:
    """What the model writes after the prompt."""
    next_token, tokens, written = hashed(VOCAB), sequence.prompt.tolist(), list[int]()
    while len(written) < sequence.limit and written[-1:] != [3]:
        written.append(next_token(tokens + written))
    return written


def test_sequences_that_are_written_are_in_every_step_of_a_long_prompt() -> None:
    engine = FakeEngine(hashed(VOCAB, 4), vocab=VOCAB, context=400, chunk=16)
    scheduler = Scheduler(engine)
    writing, prompt = sequence_of(4, 1), sequence_of(200, 2)
    scheduler.submit(writing)
    assert scheduler.next(writing)
    writing.ready.append(FakeChunk([5], length=writing.length))  # its reader has not come back yet
    scheduler.submit(prompt)
    parts, steps, *_ = scheduler._planner.plan()
    assert [(part.sequence, part.rows) for part in parts] == [(writing, 1), (prompt, 15)] and steps == 1


def owned(salt: str | None, seed: int, limit: float = 30) -> Sequence:
    made = sequence_of(4, seed, limit)
    made.salt = salt
    return made


def test_an_owner_with_all_slots_gives_one_to_another_and_goes_on_later() -> None:
    engine = FakeEngine(hashed(VOCAB), vocab=VOCAB, context=120, parallel=4)
    scheduler = Scheduler(engine)
    many = [owned("bob", seed) for seed in range(9)]
    for each in many:
        scheduler.submit(each)
    assert scheduler.next(many[0])
    assert scheduler.running() == many[:4]
    one, two, three = (owned("alice", seed) for seed in (20, 21, 22))
    for each in (one, two, three):
        scheduler.submit(each)
    scheduler._planner.plan()
    assert [each.salt for each in scheduler.running()].count("alice") == 2  # half, and no more
    assert one in scheduler.running() and two in scheduler.running()
    for each in (one, two, three):
        scheduler.end(each, each.known)
    scheduler._planner.plan()
    assert scheduler.running() == many[:4]  # as before


def test_a_short_prompt_does_not_wait_for_long_ones_of_another_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = FakeEngine(hashed(VOCAB), vocab=VOCAB, context=400, chunk=16, parallel=4)
    scheduler = Scheduler(engine)
    long = [sequence_of(200, seed) for seed in (1, 2)]
    short, other = sequence_of(6, 3), sequence_of(30, 4)
    for each, salt in zip((*long, short, other), ("bob", "bob", "alice", "carol"), strict=True):
        each.salt = salt
        scheduler.submit(each)
    parts = scheduler._planner.plan().parts
    assert {part.sequence: part.rows for part in parts} == {long[0]: 6, short: 6, other: 4}
    monkeypatch.setattr(sharing, "MIXED_ROWS", 7)
    scheduler._planner._sharing._mixed = 7
    parts = scheduler._planner.plan().parts  # the short one samples a token in it, so it is a short step
    assert sum(part.rows for part in parts) == 6 + 7
    # Where a step of few rows is fast, prompts of others have what takes as long, not all that may be.
    scheduler._planner._sharing._mixed, scheduler._planner._sharing._pace = 16, 16 / sharing.CHAIN_SECONDS
    scheduler._planner._sharing.costs.measured(1, sharing.CHAIN_SECONDS / 100)
    assert sum(part.rows for part in scheduler._planner.plan().parts) == 6 + sharing.FOREIGN_ROWS
    own = scheduler._planner._sharing.costs.expected(6, sharing.CHAIN_SECONDS)
    scheduler._planner._sharing._pace = 18.5 / own  # and only half of that
    assert sum(part.rows for part in scheduler._planner.plan().parts) == 6 + 9
    for each in (short, other):
        scheduler.end(each, 0)
    parts = scheduler._planner.plan().parts
    assert [(part.sequence, part.rows) for part in parts] == [(long[0], 16)]  # alone, in the order of arrival


def test_the_end_of_a_long_prompt_is_no_short_one_to_another_owner() -> None:
    engine = FakeEngine(hashed(VOCAB), vocab=VOCAB, context=400, chunk=200, parallel=4)
    scheduler = Scheduler(engine)
    planner = scheduler._planner
    ends, short = [sequence_of(50, seed) for seed in (1, 2)], sequence_of(4, 3)
    for each, salt in zip((*ends, short), ("bob", "bob", "alice"), strict=True):
        each.salt = salt
        scheduler.submit(each)
    planner._sharing.costs.measured(1, sharing.CHAIN_SECONDS / 100)
    planner._sharing._mixed, planner._sharing._pace = 64, 64 / sharing.CHAIN_SECONDS
    rows = {part.sequence: part.rows for part in planner.plan().parts}
    assert rows[short] == 4 and rows[ends[0]] == 4 + sharing.FOREIGN_ROWS  # and not all 100
    scheduler.end(short, 0)
    assert sum(part.rows for part in planner.plan().parts) == 100  # alone


def test_a_chain_is_as_long_as_the_owner_with_the_shortest_would_take_alone() -> None:
    many, few = [owned("bob", seed, 300) for seed in range(3)], owned("alice", 9, 5)
    many[0].chain, few.chain = 32, 2
    assert planning._chain(many, 400) == 32  # the longest of an owner's counts
    assert planning._chain([*many, few], 400) == 2
    few.chain = 16
    assert planning._chain([*many, few], 400) == 5  # all that it wants
    many[1].length = 397
    assert planning._chain([*many, few], 400) == 3  # all that fit


def test_who_waits_for_a_slot_sleeps_while_others_write(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = FakeEngine(hashed(VOCAB), vocab=VOCAB, context=120, parallel=2)
    made = Scheduler(engine)
    waits, waited = scheduler.wait, list[bool]()

    def wait(changed: threading.Condition, seconds: float | None = None) -> None:
        waits(changed, seconds)
        waited.append(seconds is None)

    def step(*arguments: object) -> object:
        time.sleep(0.001)  # others run meanwhile, as while the engine computes
        return steps(*arguments)

    steps = engine.step
    monkeypatch.setattr(engine, "step", step)
    monkeypatch.setattr(scheduler, "wait", wait)
    sequences = [sequence_of(4, seed, 40) for seed in range(16)]
    written = dict[Sequence, list[int]]()

    def read(sequence: Sequence) -> None:
        made.submit(sequence)
        ids = written[sequence] = []
        while (chunk := made.next(sequence)) is not None:
            ids += chunk.ids
        made.end(sequence, sequence.known)

    threads = [threading.Thread(target=read, args=(each,)) for each in sequences]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert all(written[each] == alone(each) for each in sequences)
    # After a step its two readers wake up, and one who leads: not all sixteen.
    assert sum(waited) <= 4 * len(engine.steps)


def test_a_prompt_runs_in_short_steps_while_another_owner_may_come_back() -> None:
    engine = FakeEngine(hashed(VOCAB), vocab=VOCAB, context=400, chunk=200, parallel=4)
    scheduler = Scheduler(engine)
    planner = scheduler._planner
    short, long = sequence_of(6, 1, 2), sequence_of(300, 2, 2)
    short.salt, long.salt = "alice", "bob"
    scheduler.submit(short)
    while scheduler.next(short) is not None:
        pass
    scheduler.end(short, 0)
    scheduler.submit(long)
    planner._sharing._mixed = 400
    assert [part.rows for part in planner.plan().parts] == [50]
    planner._sharing._mixed = 64
    assert [part.rows for part in planner.plan().parts] == [sharing.RECENT_ROWS]
    planner._sharing._seen["alice"] -= sharing.RECENT_SECONDS  # nobody else was here for long
    assert [part.rows for part in planner.plan().parts] == [200]


@pytest.mark.parametrize("pages", [10, 10_000], ids=["few pages", "many pages"])
@pytest.mark.parametrize("seed", range(6))
def test_whatever_comes_and_goes_sequences_are_those_that_run_alone(
    seed: int, pages: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readers in no order, some of whom leave; slots and pages for a few of them only."""
    monkeypatch.setattr(planning, "ABSENT_SECONDS", 0.0)  # who is not reading now has gone away
    rng = random.Random(seed)
    engine = FakeEngine(hashed(VOCAB), vocab=VOCAB, context=120, chunk=24, parallel=3, pages=pages)
    scheduler = Scheduler(engine)
    readers: list[tuple[Sequence, list[int]]] = []
    finished = 0
    for step in range(400):
        if not readers or (rng.random() < 0.25 and len(readers) < 7):
            sequence = sequence_of(rng.randint(1, 60), seed * 1000 + step, rng.randint(1, 40))
            sequence.salt = (None, "bob", "bob", "bob", "alice")[step % 5]
            scheduler.submit(sequence)
            readers.append((sequence, []))
        at = rng.randrange(len(readers))
        sequence, got = readers[at]
        chunk = scheduler.next(sequence) if rng.random() > 0.03 else None
        if chunk is not None:
            got += chunk.ids
            assert got == alone(sequence)[: len(got)]
            continue
        finished += got == alone(sequence)
        scheduler.end(sequence, len(sequence.prompt) + len(got))
        del readers[at]
    for sequence, got in readers:
        scheduler.end(sequence, len(sequence.prompt) + len(got))
    assert finished > 5
    assert not engine.sequences and not scheduler.running()


class Spelled:
    """A constraint that forces tokens after each that is sampled."""

    finished, end_id, exact, ahead = False, 3, True, 1

    def __init__(self, forced: list[int]) -> None:
        self._forced = forced
        self.told: list[int] = []

    def mask(self) -> None:
        return None

    def advance(self, tokens: list[int]) -> None:
        self.told += tokens

    def forced(self) -> list[int]:
        sampled = sum(token not in self._forced for token in self.told)
        missing = sampled * len(self._forced) - (len(self.told) - sampled)
        return self._forced[-missing:] if missing else []


def test_tokens_that_a_constraint_forces_are_rows_of_the_next_step_and_come_before_prompts() -> None:
    engine = FakeEngine(hashed(40, 4), vocab=VOCAB, context=400, chunk=16)
    scheduler = Scheduler(engine)
    writing, prompt = sequence_of(4, 1), sequence_of(200, 2)
    writing.constraint = Spelled([45, 46, 47])
    scheduler.submit(writing)
    first = scheduler.next(writing)
    assert first is not None and first.ids[1:] == [45, 46, 47] and len(first.ids) == 4
    scheduler.submit(prompt)
    parts, steps, *_ = scheduler._planner.plan()
    assert [(part.sequence, part.rows, part.samples) for part in parts] == [
        (writing, 4, True),
        (prompt, 12, False),
    ]
    assert steps == 1
    while len(writing.tokens) < 20:
        assert scheduler.next(writing)
    assert writing.constraint.told == writing.tokens
    sampled = writing.tokens[::4]
    for i, token in enumerate(sampled):
        assert token == hashed(40, 4)([*writing.prompt.tolist(), *writing.tokens[: 4 * i]])


def test_a_sequence_without_room_gets_it_from_one_that_nobody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "ABSENT_SECONDS", 0.0)
    engine = FakeEngine(hashed(VOCAB, 4), vocab=VOCAB, context=300, chunk=64, parallel=2, pages=6)
    scheduler = Scheduler(engine)
    unread, waiting = sequence_of(100, 1, 90), sequence_of(90, 2, 5)
    scheduler.submit(unread)
    assert scheduler.next(unread)
    scheduler.submit(waiting)
    waiting.squeezed_out = True
    unread.ready.append(FakeChunk([5], length=unread.length))
    unread.ready.append(FakeChunk([6], length=unread.length))
    assert not scheduler._planner._has_room(waiting)
    scheduler._planner.plan()
    assert scheduler.running() == [waiting]


@pytest.mark.parametrize("reads", [True, False], ids=["which is read", "which nobody reads"])
def test_a_step_that_fails_is_the_error_of_its_sequences_alone(
    reads: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not of the sequence whose reader happened to lead it, and waits for the slot."""
    monkeypatch.setattr(planning, "ABSENT_SECONDS", 0.0)
    engine = FakeEngine(hashed(VOCAB), vocab=VOCAB, parallel=1)
    scheduler = Scheduler(engine)
    failing, waiting = sequence_of(4, 1), sequence_of(5, 2, 6)
    scheduler.submit(failing)
    assert scheduler.next(failing)

    def fail(engine: FakeEngine) -> None:
        engine.before_decode = lambda engine: None
        raise DeviceError("out of memory")

    engine.before_decode = fail
    scheduler.submit(waiting)
    if reads:
        with pytest.raises(DeviceError):
            scheduler.next(failing)
        scheduler.end(failing, 4)
    found: list[int] = []
    while (chunk := scheduler.next(waiting)) is not None:
        found += chunk.ids
    assert found == alone(waiting)
    if not reads:
        with pytest.raises(DeviceError, match="out of memory"):
            scheduler.next(failing)
        scheduler.end(failing, 4)
    scheduler.end(waiting, 11)
    assert not scheduler.running() and not scheduler.stats.waiting and not engine.sequences


def test_a_chain_ends_after_its_token_when_a_sequence_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "CHAIN_SECONDS", 1000.0)  # whatever else runs on this machine
    engine = FakeEngine(hashed(VOCAB, 4), vocab=VOCAB, context=400)
    scheduler = Scheduler(engine)
    first, second = sequence_of(4, 1, 300), sequence_of(4, 2, 10)
    first.speculative = False

    def come(engine: FakeEngine) -> None:
        if engine.steps[-1] == (1, 16):
            scheduler.submit(second)

    engine.before_decode = come
    scheduler.submit(first)
    got = list[int]()
    while second.began is None:
        chunk = scheduler.next(first)
        assert chunk is not None
        got.append(len(chunk.ids))
    assert got == [1, 1, 2, 4, 8, 1, 1]
    assert [parts for parts, _ in engine.steps] == [1, 1, 1, 1, 1, 1, 2]


def test_a_chain_that_was_planned_before_a_sequence_came_ends_after_its_token(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sharing, "CHAIN_SECONDS", 1000.0)  # whatever else runs on this machine
    engine = FakeEngine(hashed(VOCAB, 4), vocab=VOCAB, context=400)
    scheduler = Scheduler(engine)
    first, second = sequence_of(4, 1, 300), sequence_of(4, 2, 10)
    first.speculative = False
    plan = scheduler._planner.plan

    def planned() -> planning.Plan:
        found = plan()
        if found.steps == 8 and second.slot is None and not scheduler._planner.waiting:
            scheduler.submit(second)
        return found

    monkeypatch.setattr(scheduler._planner, "plan", planned)
    scheduler.submit(first)
    got = list[int]()
    while second.began is None:
        chunk = scheduler.next(first)
        assert chunk is not None
        got.append(len(chunk.ids))
    assert got == [1, 1, 2, 4, 1, 1]


@pytest.mark.parametrize(("salt", "tokens"), [("bob", 1), ("alice", 16)])
def test_a_chain_that_began_without_an_owner_ends_after_its_token_when_its_reader_comes_back(
    monkeypatch: pytest.MonkeyPatch, salt: str, tokens: int
) -> None:
    """A sequence that is as far ahead of its reader as it may be is in no step until that comes back."""
    monkeypatch.setattr(sharing, "CHAIN_SECONDS", 1000.0)  # whatever else runs on this machine
    engine = FakeEngine(hashed(VOCAB, 4), vocab=VOCAB, context=400)
    scheduler = Scheduler(engine)
    writing, behind = owned("alice", 1, 300), owned(salt, 2, 300)
    writing.speculative = behind.speculative = False
    scheduler.submit(behind)
    assert scheduler.next(behind)
    ready = [FakeChunk([5], length=behind.length), FakeChunk([6], length=behind.length)]
    behind.ready.extend(ready)

    def come_back(engine: FakeEngine) -> None:
        if engine.steps[-1] == (1, 16):
            assert scheduler.next(behind) is ready[0]

    engine.before_decode = come_back
    scheduler.submit(writing)
    got = list[int]()
    while len(behind.ready) == 2:
        chunk = scheduler.next(writing)
        assert chunk is not None
        got.append(len(chunk.ids))
    assert got == [1, 1, 2, 4, 8, tokens]


@pytest.mark.parametrize(("owner", "most"), [("bob", 3), ("alice", 16)])
def test_drafts_make_the_steps_of_another_owner_half_as_long_again_at_most(
    monkeypatch: pytest.MonkeyPatch, owner: str, most: int
) -> None:
    engine = FakeEngine(hashed(VOCAB, 4), vocab=VOCAB, context=400)
    scheduler = Scheduler(engine)
    sequences = owned("alice", 1), owned(owner, 2)
    for sequence in sequences:
        scheduler.submit(sequence)
        assert scheduler.next(sequence)
    for sequence in sequences:
        sequence.ready.clear()
    scheduler._planner._sharing.costs = costs = StepCosts()
    for _ in range(200):
        for rows in (1, 2, 4, 8, 16, 32):
            costs.measured(rows, float(rows))
    asked = list[int]()
    monkeypatch.setattr(planning, "choose_drafts", lambda _, rows, most, *more: asked.append(most) or {})
    assert len(scheduler._planner.plan().parts) == 2
    assert asked == [most]


def test_drafts_go_with_the_row_that_is_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where not all rows of a sequence fit in a step there is nothing to verify."""
    engine = FakeEngine(hashed(VOCAB, 4), vocab=VOCAB, context=400, chunk=2)
    scheduler = Scheduler(engine)
    writing = sequence_of(2, 1)
    writing.constraint = Spelled([45, 46, 47])
    scheduler.submit(writing)
    assert scheduler.next(writing)
    monkeypatch.setattr(
        planning, "choose_drafts", lambda sequences, *_: dict.fromkeys(sequences, Drafts([1, 2]))
    )
    (part,) = scheduler._planner.plan().parts
    assert (part.rows, part.samples, part.drafts) == (2, False, [])


def test_a_sequence_that_comes_takes_chains_as_long_as_those_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sharing, "CHAIN_SECONDS", 1000.0)
    engine = FakeEngine(hashed(VOCAB, 4), vocab=VOCAB, context=400)
    scheduler = Scheduler(engine)
    sequences = [sequence_of(4, seed, 300) for seed in (1, 2)]
    for each in sequences:
        each.speculative = False
    scheduler.submit(sequences[0])
    while engine.steps[-1:] != [(1, 16)]:
        scheduler.next(sequences[0])
    scheduler.submit(sequences[1])
    while len(sequences[1].tokens) < 2:
        scheduler.next(sequences[0])
        sequences[1].ready.clear()
    assert next(tokens for parts, tokens in engine.steps if parts == 2 and tokens > 1) >= 16


@pytest.mark.parametrize(("seconds", "rows"), [(1e-9, 64), (0.040, 160), (1000.0, 199)])
def test_a_prompt_beside_others_has_the_rows_that_fit(
    monkeypatch: pytest.MonkeyPatch, seconds: float, rows: int
) -> None:
    monkeypatch.setattr(sharing, "CHAIN_SECONDS", seconds)
    engine = FakeEngine(hashed(VOCAB, 4), vocab=VOCAB, context=400, chunk=200)
    scheduler = Scheduler(engine)
    writing = sequence_of(200, 1)
    scheduler.submit(writing)
    planner = scheduler._planner
    plan = planner.plan()
    assert sum(part.rows for part in plan.parts) == 200
    planner.record(plan, [FakeChunk([5], length=200)], {}, (0.0, 0.0, 0.050))
    writing.ready.clear()
    scheduler.submit(sequence_of(300, 2))
    parts = planner.plan().parts
    assert [part.rows for part in parts] == [1, rows]
    # A few rows do not say how long many take.
    planner.record(
        planner.plan()._replace(parts=parts[:1]), [FakeChunk([6], length=201)], {}, (1.0, 1.0, 1.050)
    )
    writing.ready.clear()
    parts = planner.plan().parts
    assert [part.rows for part in parts] == [1, rows]
