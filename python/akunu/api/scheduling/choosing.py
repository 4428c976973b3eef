"""Choose the drafts that a step verifies: those that make it faster than one without."""

from __future__ import annotations

from collections.abc import Sequence as SequenceOf
from typing import TYPE_CHECKING, Final, NamedTuple

from akunu.api.scheduling.drafts import Proposal, StepCosts
from akunu.api.scheduling.sequence import Sequence

if TYPE_CHECKING:
    from akunu._core import Lookup
    from akunu.api.scheduling.model_proposer import Proposer

__all__ = ["NO_DRAFTS", "Drafts", "choose_drafts"]

NEIGHBOURS: Final = 4
"""Sequences on either side, by turn, that a sequence looks for drafts in."""


class Drafts(NamedTuple):
    """The drafts that a sequence verifies in a step: these tokens, or so many by a smaller model."""

    tokens: list[int]
    written: int = 0
    chained: bool = False
    """The model's own head writes them in a chain, as many for all sequences in each of its steps."""


NO_DRAFTS: Final = Drafts([])


def choose_drafts(
    writing: SequenceOf[Sequence],
    rows: int,
    most: int,
    context: int,
    costs: StepCosts,
    proposer: Proposer | None,
) -> dict[Sequence, Drafts]:
    """Drafts that make the step of these sequences faster than one without.

    Parameters
    ----------
    writing
        The sequences, by turn.
    rows
        The rows of their step without drafts.
    most
        Rows of a step whose tokens may be sampled.
    context
        Most tokens of a sequence.
    costs
        The costs of the engine's steps.
    proposer
        Writes where nothing is found that is likelier.
    """
    guessing = [s for s in writing if s.left == 1 and s.speculative]
    drafts = dict[Sequence, Drafts]()
    if costs.may_pay(rows, most):
        lookups = [s.lookup() for s in guessing]
        found = [s.propose(_neighbours(i, guessing, lookups), context) for i, s in enumerate(guessing)]
        speed, lengths = costs.worth(rows, found, most)
        if proposer is not None and costs.known:
            proposer.choose(guessing, costs.of(1))
            seconds = proposer.seconds(len(guessing), costs.of(1))
            mixed = [_or_proposed(s, p, context, proposer) for s, p in zip(guessing, found, strict=True)]
            faster, others = costs.worth(rows, mixed, most, seconds)
            if faster > speed:
                speed, found, lengths = faster, mixed, others
            if proposer.common is not None and len(guessing) == rows and _are_free(guessing):
                room = _room_in_chain(guessing, context, proposer)
                trusts = [s.proposer_trust.value for s in guessing]
                faster, n = costs.worth_in_chain(trusts, room, most, seconds)
                if n and faster >= speed:
                    return {s: Drafts([], n, chained=True) for s in guessing}
        for s, p, n in zip(guessing, found, lengths, strict=True):
            if n:
                drafts[s] = Drafts([], n) if p.written else Drafts(s.drafter.proposal[:n])
    if proposer is not None:
        for s in guessing:
            if not drafts.get(s, NO_DRAFTS).written:
                s.proposer_trust.hope()
    return drafts


def _neighbours(i: int, writing: SequenceOf[Sequence], lookups: SequenceOf[Lookup]) -> list[Lookup]:
    """Sequences beside one that may repeat each other: its speed tells what they had in common."""
    near = range(max(i - NEIGHBOURS, 0), min(i + NEIGHBOURS, len(lookups)))
    own = writing[i]
    return [lookups[n] for n in near if (writing[n].salt, writing[n].adapter) == (own.salt, own.adapter)]


def _are_free(sequences: SequenceOf[Sequence]) -> bool:
    """Whether the host has nothing to say between steps of these sequences."""
    return all(s.constraint is None for s in sequences)


def _room_in_chain(sequences: SequenceOf[Sequence], context: int, proposer: Proposer) -> int:
    """Return the most drafts of a step that all of them verify: as many as some may have, and all can."""
    room = min(context - s.length - 1 for s in sequences)
    wanted = max(min(s.room_for_drafts(context), s.proposer_trust.most) for s in sequences)
    return min(room, wanted, *(proposer.room(s) for s in sequences))


def _or_proposed(sequence: Sequence, found: Proposal, context: int, proposer: Proposer) -> Proposal:
    """Return what was looked up, or what the smaller model would write if that is likelier."""
    trust = sequence.proposer_trust.value
    room = min(sequence.room_for_drafts(context), proposer.room(sequence), sequence.proposer_trust.most)
    return found if found.tokens and found.trust >= trust else Proposal(trust, room, True)
