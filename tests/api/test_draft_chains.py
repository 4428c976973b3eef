"""Chains of drafts, as the scheduler plans them: when, of how many drafts and steps, and what it learns."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from akunu._core import MAX_CHAIN
from akunu.api.scheduling import Scheduler, Sequence, sharing
from akunu.api.scheduling.drafts import CHAIN_SECONDS, PROPOSER_MOST, StepCosts
from akunu.api.scheduling.head_proposer import HeadProposer

from .fakes import FakeEngine, NextToken, decide_drafts, hashed
from .test_drafts import everything, read

CONFIG: Any = SimpleNamespace(dim=64, vocab_size=300, n_layers=8, drafter=None)
MODEL = hashed(300)


def wrong_every(n: int) -> NextToken:
    """A head of whose drafts all hold but one in so many."""
    return lambda tokens: MODEL(tokens) if len(tokens) % n else (MODEL(tokens) + 1) % 300


def scheduler_of(head: NextToken, **options: Any) -> tuple[FakeEngine, Scheduler]:
    engine = FakeEngine(MODEL, chunk=16, **options)
    engine.head = head
    return engine, Scheduler(engine, proposer=HeadProposer(engine, CONFIG))  # type: ignore[arg-type]


def sequence_of(n: int = 100, **options: Any) -> Sequence:
    return Sequence(np.arange(4, dtype=np.uint32), {}, n, **options)


# -- what pays -----------------------------------------------------------------------------------------------


def costs_of(row: float, pause: float = 0.0) -> StepCosts:
    costs = StepCosts()
    for _ in range(400):
        for rows in (1, 2, 4, 8, 16, 32):
            costs.measured(rows, 0.001 * (1 + row * (rows - 1)))
        costs.paused(pause)
    return costs


def test_more_drafts_pay_in_a_chain_the_likelier_they_are() -> None:
    costs = costs_of(0.05)
    lengths = [costs.worth_in_chain([trust], 8, 32, 0.0001)[1] for trust in (0.05, 0.5, 0.8, 0.98)]
    assert lengths[0] == 0 < lengths[1] < lengths[2] < lengths[3] == 8
    assert costs_of(0.9).worth_in_chain([0.9], 8, 32, 0.0001) == (0.0, 0)
    assert StepCosts().worth_in_chain([0.9], 8, 32, 0.0) == (0.0, 0)


def test_all_sequences_of_a_chain_have_as_many_drafts() -> None:
    """A chain has as many drafts as there are rows for, and as pay for all sequences together."""
    costs = costs_of(0.01)
    assert costs.worth_in_chain([0.95] * 4, 8, 32, 0.0)[1] == 7
    assert costs.worth_in_chain([0.95] * 4, 2, 32, 0.0)[1] == 2
    assert costs.worth_in_chain([0.95] * 17, 8, 32, 0.0)[1] == 0
    few, many = (costs.worth_in_chain([0.95] + [trust] * 3, 8, 32, 0.0002)[1] for trust in (0.0, 0.9))
    assert few < many


def test_a_pause_is_paid_once_for_a_chain() -> None:
    """Where the host takes as long as a step, drafts that it writes do not pay, and those of a chain do."""
    costs = costs_of(0.05, pause=0.001)
    speed, drafts = costs.worth_in_chain([0.6], 4, 32, 0.0001)
    alone, _ = costs_of(0.05).worth_in_chain([0.6], 4, 32, 0.0001)
    assert drafts > 0
    assert 0.9 * alone < speed < alone
    assert CHAIN_SECONDS > 0.001


# -- what is planned -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [1, 2, 5, 1000])
def test_a_sequence_is_that_without_drafts(wrong: int, monkeypatch: pytest.MonkeyPatch) -> None:
    decide_drafts(monkeypatch, everything)
    expected = read(Scheduler(FakeEngine(MODEL, chunk=16)), sequence_of())
    engine, scheduler = scheduler_of(wrong_every(wrong))
    sequence = sequence_of()
    assert read(scheduler, sequence) == expected
    assert engine.chains
    stats = scheduler.stats
    assert stats.model_drafted_tokens == sequence.drafted >= sequence.accepted == stats.model_accepted_tokens
    assert (sequence.accepted == 0) == (wrong == 1)


def test_chains_become_longer_and_stay_within_the_context_and_the_longest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    decide_drafts(monkeypatch, everything)
    monkeypatch.setattr(sharing, "CHAIN_SECONDS", 1000.0)  # whatever else runs on this machine
    engine, scheduler = scheduler_of(wrong_every(50), context=1000)
    read(scheduler, sequence_of(2000))
    steps = [steps for _, _, steps in engine.chains]
    assert steps[:3] == [1, 2, 4]
    assert all(steps * (1 + drafts) <= MAX_CHAIN for _, drafts, steps in engine.chains)
    assert max(steps) == MAX_CHAIN // (1 + PROPOSER_MOST)


def test_sequences_that_the_host_has_to_look_at_are_in_no_chain(monkeypatch: pytest.MonkeyPatch) -> None:
    decide_drafts(monkeypatch, everything)
    engine, scheduler = scheduler_of(wrong_every(3))

    class Free:
        end_id, exact, finished, ahead = 0, True, False, 1.0

        def mask(self) -> None: ...
        def advance(self, tokens: list[int]) -> None: ...
        def forced(self) -> list[int]:
            return []

        def fork(self) -> Free:
            return self

    sequence = sequence_of(constraint=Free())
    read(scheduler, sequence)
    assert sequence.drafted > 0
    assert not engine.chains


def test_a_head_that_is_always_wrong_is_asked_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """What chains say of their steps is learned, step by step."""
    monkeypatch.setattr(StepCosts, "may_pay", lambda self, rows, most: True)
    monkeypatch.setattr(StepCosts, "of", lambda self, rows: 0.001)
    engine, scheduler = scheduler_of(wrong_every(1), context=600)
    sequence = sequence_of(500)
    read(scheduler, sequence)
    assert 0 < sequence.drafted < 60
    assert {steps for _, _, steps in engine.chains} == {1}
