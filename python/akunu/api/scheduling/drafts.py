"""Drafts: by lookup, since what followed the same tokens before may follow them again, or by a smaller model.

A draft is checked by the step that runs it, so it can cost time but not change a sequence. This module
decides whether it is worth its rows, and the time to write it. How likely it holds is learned from what
sequences turn out to be, also where a proposal of a lookup was not run, so nothing is tried that does not
pay; what rows cost is learned from the steps.

It knows nothing of engines and slots.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from heapq import heapify, heappop, heapreplace
from itertools import pairwise
from typing import Final, NamedTuple

from akunu._core import MAX_CHAIN, Lookup

__all__ = ["CHAIN_SECONDS", "Drafter", "Proposal", "ProposerTrust", "StepCosts", "UsualTrust"]

CHAIN_SECONDS: Final = 0.040
"""Seconds that a chain may take: text still flows, and a submission costs far below one per cent."""
TRUST: Final = ((3, 0.2), (6, 0.4), (12, 0.8))
"""Tokens that agree, and how likely a token holds after so many until it is known."""
KINDS: Final = [least for least, _ in TRUST[1:]]
"""The lengths at which a proposal of the next kind begins."""
FORGET: Final = 0.8
"""Weight of what was known, after one more token was compared."""
PROPOSER_TRUST: Final = 0.7
"""The probability that a smaller model's token holds, until it is known."""
PROPOSER_FORGET: Final = 0.95
"""`FORGET` for the drafts of a smaller model, which say more at a time."""
PROPOSER_PRIOR: Final = 4
"""The number of verified drafts that `PROPOSER_TRUST` counts for: where none holds, a few show it."""
PROPOSER_HOPE: Final = 0.002
"""The share of trust that comes back with each step in which it was not asked, if its last draft held."""
PROPOSER_LEAST_HOPE: Final = PROPOSER_HOPE / 16
"""The share that comes back where nothing has held for long: trying again costs below a per cent then."""
PROPOSER_NEW: Final = 0.3
"""Weight of the sequence that ended last in what is assumed of the next one."""
PROPOSER_MOST: Final = 8
"""Tokens that it drafts."""
GAIN: Final = 1.1
"""The least gain of a step with drafts over one without."""
LONGEST_PAUSE: Final = 0.02
"""The longest pause between two steps that counts as work; in a longer one nobody wanted a step."""
KNOTS: Final = (1, 2, 4, 8, 16, 32)
"""Rows whose costs are learned; those between are interpolated."""
ROW: Final = 0.05
"""Cost of a further row, as a share of the first, until it is known."""


class Drafter:
    """The drafts that one sequence proposes, and how often they hold."""

    def __init__(self) -> None:
        self.lookup = Lookup()
        self.proposal: list[int] = []
        self._trust = [p for _, p in TRUST]
        self._kind = 0

    @property
    def trust(self) -> float:
        """The probability that a token of the proposal holds, when those before it do."""
        return self._trust[self._kind]

    def propose(self, others: Sequence[Lookup]) -> None:
        """Look for the end of the sequence, in itself and, where that is no long match, in others."""
        agree, self.proposal = self.lookup.propose(others, TRUST[-1][0])
        self._kind = bisect(KINDS, agree)

    def learn(self, tokens: Sequence[int]) -> None:
        """Compare the proposal with the tokens that came, drafted or not, and append these."""
        trust = self._trust[self._kind]
        for proposed, token in zip(self.proposal, tokens, strict=False):
            trust = FORGET * trust + (1 - FORGET) * (proposed == token)
            if proposed != token:
                break
        self._trust[self._kind] = trust
        self.proposal = []
        self.lookup.extend(tokens)


class ProposerTrust:
    """The probability that a smaller model's token for one sequence holds, when those before it do.

    Parameters
    ----------
    value
        What is assumed until it is known.
    """

    def __init__(self, value: float = PROPOSER_TRUST) -> None:
        self.value = value
        self.most = PROPOSER_MOST
        """The most that it drafts: half as many after each time that none of them held."""
        self.steps = 1
        """The most steps of a chain with its drafts: twice as many after one in which some held, else one."""
        self._known = float(PROPOSER_PRIOR)
        self._hope = PROPOSER_HOPE

    @property
    def tried(self) -> bool:
        """Whether a draft was verified."""
        return self._known > PROPOSER_PRIOR

    def learn(self, drafted: int, accepted: int) -> None:
        """Learn from a draft of `drafted` tokens, of which the first `accepted` held."""
        for held in [True] * accepted + [False] * (accepted < drafted):
            self._known = min(self._known + 1, 1 / (1 - PROPOSER_FORGET))
            self.value += (held - self.value) / self._known
        if accepted:
            self._hope, self.most = PROPOSER_HOPE, PROPOSER_MOST
        elif drafted:
            self.most = max(self.most // 2, 1)
            self._hope = max(self._hope / 2, PROPOSER_LEAST_HOPE)

    def chained(self, accepted: int) -> None:
        """Learn from a chain in which so many drafts held: only what holds is drafted far ahead."""
        self.steps = min(2 * self.steps, MAX_CHAIN) if accepted else 1

    def hope(self) -> None:
        """Count a step in which the smaller model was not asked."""
        self.value += self._hope * max(PROPOSER_TRUST - self.value, 0.0)


class UsualTrust:
    """The trust in drafts for a new sequence: half of it is how the smaller model did in the ones before."""

    def __init__(self) -> None:
        self._usual = PROPOSER_TRUST

    def begin(self) -> ProposerTrust:
        """Return the trust of a new sequence."""
        return ProposerTrust((PROPOSER_TRUST + self._usual) / 2)

    def learn(self, ended: ProposerTrust) -> None:
        """A sequence has ended with this."""
        if ended.tried:
            self._usual += PROPOSER_NEW * (ended.value - self._usual)


class Proposal(NamedTuple):
    """Drafts that a sequence could have."""

    trust: float
    """The probability that a token holds, when those before it do."""
    tokens: int
    written: bool = False
    """A smaller model has to write them first."""


class StepCosts:
    """Seconds of a step by its rows, and the drafts that pay at these."""

    def __init__(self) -> None:
        self._knots: list[float] = []
        self._usual: list[float] = []
        self._pause = 0.0

    def paused(self, seconds: float) -> None:
        """Learn from the time between two steps: the host's work, which a chain of tokens has once.

        Shorter ones count more, as faster steps do.
        """
        if seconds <= LONGEST_PAUSE:
            self._pause += (0.04 if seconds > self._pause else 0.3) * (seconds - self._pause)

    def measured(self, rows: int, seconds: float) -> None:
        """Learn from a step, or the average of a chain. Faster ones count more: others' work only slows."""
        if rows > KNOTS[-1] or seconds <= 0:
            return
        if not self._knots:
            self._knots = [seconds * _guess(knot) / _guess(rows) for knot in KNOTS]
            self._usual = self._knots.copy()
            return
        # What was slow once is tried again after some hundred steps, or some thousand while others wait.
        _learn(self._knots, rows, seconds, faster=0.5, forget=0.002)
        _learn(self._usual, rows, seconds, faster=0.2, forget=0.0002)

    @property
    def known(self) -> bool:
        """Whether a step was measured."""
        return bool(self._knots)

    def expected(self, rows: int, unmeasured: float) -> float:
        """Return the seconds of a step with so many rows, or `unmeasured` until one was measured."""
        return self.of(min(rows, KNOTS[-1])) if self._knots else unmeasured

    def of(self, rows: int) -> float:
        """Expected seconds of a step with so many rows, at most those of the last knot."""
        return _between(self._knots, rows)

    def usual(self, rows: int) -> float:
        """Return what such a step usually takes, others' work included; 0 until one was measured."""
        return _between(self._usual, min(rows, KNOTS[-1])) if self._usual else 0.0

    def rows_within(self, rows: int, seconds: float) -> int:
        """Return the most rows of a step that usually takes so long; no fewer than `rows`."""
        if not self._usual or rows >= KNOTS[-1]:
            return rows
        return next((n - 1 for n in range(rows + 1, KNOTS[-1] + 1) if self.usual(n) > seconds), KNOTS[-1])

    def may_pay(self, rows: int, most: int) -> bool:
        """Whether any drafts would, in a step of so many rows, if all of them held."""
        most = min(most, KNOTS[-1])
        if not self._knots or rows >= most:
            return False
        least = GAIN * rows / self._plain(rows)
        # Between two knots the rate only rises or falls.
        return any(
            n > least * (self.of(n) + self._pause) for n in (*(k for k in KNOTS if rows < k < most), most)
        )

    def _plain(self, rows: int) -> float:
        """Seconds of a step without drafts, with its share of what a chain has once."""
        return self._chained(self.of(rows))

    def _chained(self, step: float) -> float:
        return step + self._pause / max(CHAIN_SECONDS / step, 1.0)

    def worth(
        self, rows: int, proposals: Sequence[Proposal], most: int, writing: float = 0.0
    ) -> tuple[float, list[int]]:
        """Drafts that pay.

        Parameters
        ----------
        rows
            The rows of the step without drafts.
        proposals
            One for each sequence, maybe of no tokens.
        most
            Rows of the step, at most.
        writing
            Seconds that a smaller model takes to write a token for every sequence.

        Returns
        -------
        speed : float
            Expected tokens a second; 0 where no drafts pay.
        lengths : list of int
            Drafts of each proposal: those with which most tokens are expected a second.
        """
        lengths = [0] * len(proposals)
        most = min(most, KNOTS[-1])
        if not self._knots or rows >= most:
            return 0.0, lengths
        # The j-th draft of a sequence counts when all before it hold, so its chance only falls with j.
        chances = [(-p.trust, i, 1) for i, p in enumerate(proposals) if p.tokens > 0]
        heapify(chances)
        tokens, best, kept, written = float(rows), GAIN * rows / self._plain(rows), 0, 0
        taken = list[int]()
        while chances and rows + len(taken) < most:
            chance, i, j = chances[0]
            proposal = proposals[i]
            if j < proposal.tokens:
                heapreplace(chances, (-(proposal.trust ** (j + 1)), i, j + 1))
            else:
                heappop(chances)
            taken.append(i)
            tokens -= chance
            if proposal.written:
                written = max(written, j)
            seconds = self.of(rows + len(taken)) + self._pause + writing * written
            if tokens > best * seconds:
                best, kept = tokens / seconds, len(taken)
        for i in taken[:kept]:
            lengths[i] += 1
        return best if kept else 0.0, lengths

    def worth_in_chain(
        self, trusts: Sequence[float], room: int, most: int, writing: float
    ) -> tuple[float, int]:
        """Drafts that pay in a chain, each of whose steps has as many for every sequence.

        Parameters
        ----------
        trusts
            For each sequence, the probability that a token holds, when those before it do.
        room
            Drafts of a sequence, at most.
        most
            Rows of a step, at most.
        writing
            Seconds that it takes to write a token for every sequence.

        Returns
        -------
        speed : float
            Expected tokens a second; 0 where no drafts pay.
        drafts : int
            The drafts of each sequence with which most tokens are expected a second.
        """
        rows, most = len(trusts), min(most, KNOTS[-1])
        if not self._knots or rows > most:
            return 0.0, 0
        tokens, best, kept = float(rows), GAIN * rows / self._plain(rows), 0
        for drafts in range(1, min(room, most // rows - 1) + 1):
            tokens += sum(trust**drafts for trust in trusts)
            seconds = self._chained(self.of(rows * (1 + drafts)) + writing * drafts)
            if tokens > best * seconds:
                best, kept = tokens / seconds, drafts
        return best if kept else 0.0, kept


def _guess(rows: int) -> float:
    return 1 + ROW * (rows - 1)


def _between(knots: Sequence[float], rows: int) -> float:
    i, near = _PLACES[rows]
    return knots[i] + near * (knots[i + 1] - knots[i])


def _learn(knots: list[float], rows: int, seconds: float, faster: float, forget: float) -> None:
    """Learn from a step; one that was faster than expected has this weight, and a slower one 0.2."""
    expected = _between(knots, rows)
    error = min(seconds, 2 * expected) - expected
    error *= 0.2 if error > 0 else faster
    i, near = _PLACES[rows]
    knots[i] += (1 - near) * error
    knots[i + 1] += near * error
    for n, knot in enumerate(KNOTS):
        guess = knots[0] * _guess(knot)
        knots[n] -= forget * max(knots[n] - guess, 0)
    # Fewer rows take no longer, and more no less: steps that are not measured now, such as those without
    # drafts while each has some, would seem to be as slow, or as fast, as they once were.
    top = i + (near > 0)
    for lower in reversed(range(top)):
        knots[lower] = min(knots[lower], knots[lower + 1])
    for higher in range(top + 1, len(KNOTS)):
        knots[higher] = max(knots[higher], knots[higher - 1])


_PLACES: Final = [(0, 0.0)] + [
    (i, (rows - low) / (high - low))
    for i, (low, high) in enumerate(pairwise(KNOTS))
    for rows in range(low, high + (high == KNOTS[-1]))
]
"""The knot at or below each number of rows, and how far it is on the way to the next."""
