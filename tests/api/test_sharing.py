"""Owners who share an engine: who runs without whom, and readers who want the whole of an output."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator

import pytest

import akunu
from akunu.api.item_streams import AsyncItems, ItemStream
from akunu.api.scheduling import Scheduler, Sequence
from akunu.api.scheduling.drafts import StepCosts
from akunu.api.scheduling.sequence import AHEAD, WHOLE_AHEAD
from akunu.api.scheduling.sharing import Sharing

from .fakes import FakeChunk, FakeEngine, hashed
from .test_scheduler import VOCAB, Spelled, owned, sequence_of


def known_costs(sharing: Sharing, per_row: float, fixed: float = 0.0) -> None:
    sharing.costs = StepCosts()
    for _ in range(200):
        for rows in (1, 2, 4, 8, 16, 32):
            sharing.costs.measured(rows, fixed + per_row * rows)


def writing_sequences(scheduler: Scheduler, owners: str) -> list[Sequence]:
    """Sequences of these owners that have a token each, which their readers have taken."""
    found = [owned(owner, seed, 300) for seed, owner in enumerate(owners)]
    for each in found:
        each.speculative = False
        scheduler.submit(each)
    while any(not each.tokens for each in found):
        scheduler._step()
    for each in found:
        each.ready.clear()
    return found


@pytest.fixture
def scheduler() -> Scheduler:
    return Scheduler(FakeEngine(hashed(VOCAB, 4), vocab=VOCAB, context=400, chunk=16, parallel=8))


def owners_of(scheduler: Scheduler) -> str:
    plan = scheduler._planner.plan()
    return "".join(sorted(str(part.sequence.salt) for part in plan.parts))


def test_an_owner_runs_without_the_many_rows_of_another_for_as_long_as_their_step_took(
    scheduler: Scheduler,
) -> None:
    sharing = scheduler._planner._sharing
    writing_sequences(scheduler, "bbbba")
    known_costs(sharing, 0.001)
    sharing.ran("ab", 0.005, False)
    assert owners_of(scheduler) == "a"
    sharing.ran("a", 0.0045, True)  # half a millisecond is left, and its step takes one
    assert owners_of(scheduler) == "abbbb"
    sharing.ran("ab", 0.005, False)
    plan = scheduler._planner.plan()
    assert plan.without_heaviest and plan.steps <= 5


def test_masks_count_as_rows_do(scheduler: Scheduler) -> None:
    sharing = scheduler._planner._sharing
    sequences = writing_sequences(scheduler, "aabbb")
    known_costs(sharing, 0.001, 0.010)
    sharing.ran("ab", 0.030, False)
    for each in sequences[2:]:
        each.constraint = Spelled([])
    sharing.masked("a", 0.100)  # of a sequence that has ended
    sharing.masked("b", 0.001)
    assert owners_of(scheduler) == "aabbb"
    for _ in range(40):
        sharing.masked("b", 0.005)
    assert owners_of(scheduler) == "aa"


def test_masks_alone_say_nothing_while_no_step_was_measured(scheduler: Scheduler) -> None:
    sharing = scheduler._planner._sharing
    sequences = writing_sequences(scheduler, "abb")
    sharing.costs = StepCosts()
    sharing.ran("ab", 0.030, False)
    for each in sequences:
        each.constraint = Spelled([])
    sharing.masked("a", 0.001)
    sharing.masked("b", 0.005)
    assert owners_of(scheduler) == "abb"


@pytest.mark.parametrize(
    ("owners", "fixed"),
    [("abbbb", 0.010), ("aabb", 0.0), ("bbbb", 0.0)],
    ids=["rows cost little", "both have as many", "nobody else is there"],
)
def test_a_step_is_for_everybody_where_others_gain_little_without_it(
    scheduler: Scheduler, owners: str, fixed: float
) -> None:
    sharing = scheduler._planner._sharing
    writing_sequences(scheduler, owners)
    known_costs(sharing, 0.001, fixed)
    sharing.ran("ab", 1.0, False)
    assert owners_of(scheduler) == owners


def test_a_short_prompt_of_another_owner_comes_before_the_next_step_of_many_rows(
    scheduler: Scheduler,
) -> None:
    sharing = scheduler._planner._sharing
    writing_sequences(scheduler, "bbbbbb")
    known_costs(sharing, 0.001)
    scheduler.submit(short := owned("a", 9))
    short.prompt, short.known = short.prompt[:2], 2
    sharing.ran("b", 0.006, False)
    assert owners_of(scheduler) == "a"
    sharing.ran("a", 0.006, True)
    assert owners_of(scheduler) == "abbbbbb"


def test_who_writes_has_steps_without_the_long_prompt_of_another_owner(scheduler: Scheduler) -> None:
    sharing = scheduler._planner._sharing
    writing_sequences(scheduler, "a")
    known_costs(sharing, 0.001)
    long = sequence_of(200, 9)
    long.salt = "b"
    scheduler.submit(long)
    sharing.ran("b", 0.006, False)
    assert owners_of(scheduler) == "a"
    sharing.ran("a", 0.006, True)
    assert owners_of(scheduler) == "ab"


def test_rows_of_prompts_cost_what_prompts_did_and_not_what_is_guessed_of_decoding(
    scheduler: Scheduler,
) -> None:
    """Beside a long prompt nothing decodes with many rows: what is known of that fades to a guess."""
    sharing = scheduler._planner._sharing
    writing_sequences(scheduler, "a")
    for _ in range(20000):
        sharing.costs.measured(1, 0.001)
    assert sharing.costs.usual(9) < 0.0015
    long = sequence_of(200, 9)
    long.salt = "b"
    scheduler.submit(long)
    for rows_a_second, owners in ((1000, "a"), (100_000, "ab")):
        sharing.read(200, 200 / rows_a_second)
        sharing.ran("b", 0.006, False)
        assert owners_of(scheduler) == owners


def test_the_heaviest_owner_has_half_of_the_time_whoever_else_comes(scheduler: Scheduler) -> None:
    sharing, per_row = scheduler._planner._sharing, 0.001
    sequences = writing_sequences(scheduler, "bbbbba")
    known_costs(sharing, per_row)
    times = {True: 0.0, False: 0.0}
    for _ in range(60):
        plan = scheduler._planner.plan()
        seconds = per_row * plan.steps * len(plan.parts)
        sharing.ran((part.sequence.salt for part in plan.parts), seconds, plan.without_heaviest)
        times[plan.without_heaviest] += seconds
        for each in sequences:
            each.ready.clear()
    assert 0 < times[True] <= times[False]


def test_a_slow_step_is_remembered_longer_for_others_than_for_its_owner() -> None:
    costs = StepCosts()
    for _ in range(200):
        costs.measured(1, 0.001)
        costs.measured(16, 0.016)
    # 32 rows were never measured: what is guessed of them does not make 16 cheaper.
    assert costs.usual(16) == pytest.approx(0.016, rel=0.1)
    for _ in range(800):  # only few rows are measured meanwhile
        costs.measured(1, 0.001)
    assert costs.of(16) < 0.6 * costs.usual(16)
    assert costs.rows_within(8, 0.010) < 16


def test_a_patient_reader_is_woken_when_half_of_what_may_run_ahead_is_there() -> None:
    sequence = sequence_of(4, 1)
    assert sequence.ahead == AHEAD
    sequence.ready.append(FakeChunk([5]))
    assert sequence.due and sequence.hungry
    sequence.ahead = WHOLE_AHEAD
    assert not sequence.due and sequence.idle_for() == 0
    sequence.ready.extend(FakeChunk([5]) for _ in range(WHOLE_AHEAD // 2 - 1))
    assert sequence.due and sequence.hungry
    for left in reversed(range(len(sequence.ready))):
        assert sequence.due  # it takes all
        sequence.pop()
        assert sequence.taking == (left > 0)
    sequence.ready.append(FakeChunk([6]))
    assert not sequence.due
    sequence.ended = True
    assert sequence.due


def test_a_whole_output_has_few_pieces_and_the_same_tokens() -> None:
    with akunu.load("ember", threads=1) as model:
        options = {"max_tokens": 40, "temperature": 0, "speculative": False}
        each = list(model.stream("Once upon a time", **options))
        few = list(model.stream("Once upon a time", **options).patient())
        stopped = model.stream("Once upon a time", stop=["zzzz"], **options).patient()
        assert [token for piece in few for token in piece.ids] == [i for piece in each for i in piece.ids]
        assert "".join(few) == "".join(each)
        assert stopped._generation._sequence.ahead == AHEAD
        assert len(list(stopped)) > len(few)


class Items(ItemStream[int]):
    def cancel(self) -> None:
        self._finish()


def numbers(n: int) -> Generator[int, None, None]:
    yield from range(n)


def test_items_that_come_within_a_time_change_threads_once() -> None:
    threads = list[int]()

    async def read() -> list[list[int]]:
        stream, found = AsyncItems(Items(numbers(5))), list[list[int]]()
        found.append(await stream.several(0.0))
        found.append(await stream.several(1000.0, lambda _: threads.append(threading.get_ident())))
        found.append(await stream.several(1000.0))
        return found

    assert asyncio.run(read()) == [[0], [1, 2, 3, 4], []]
    assert len(threads) == 4 and threading.get_ident() not in threads
