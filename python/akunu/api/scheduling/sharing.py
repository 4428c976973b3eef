"""Limits on what owners who share an engine cost each other: prompts, drafts, rows, readers that wake up.

Whoever decodes, comes, or was here lately waits for the end of another owner's step. What rows cost is
learned from the steps.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from collections.abc import Sequence as SequenceOf
from operator import attrgetter
from typing import Final

from akunu.api.scheduling.drafts import CHAIN_SECONDS, StepCosts
from akunu.api.scheduling.sequence import Sequence

__all__ = ["ReaderTurns", "Sharing", "fitting", "row_shares"]

MIXED_ROWS: Final = 64
"""The least number of rows of prompts in a step in which others decode: what a new prompt may cost. More
are taken where they fit in `CHAIN_SECONDS`."""
FOREIGN_ROWS: Final = 8
"""The least number of them where another owner's sequences decode."""
FOREIGN_TIMES: Final = 2.0
"""The time of a step over that without the owner with most sequences, from which on others run without it."""
OWED_SECONDS: Final = 0.015
"""The most time that is kept for others who are not there: a short request then runs without the heaviest."""
MASK_WEIGHT: Final = 0.1
"""The weight of a mask in the mean of what an owner's take."""
FOREIGN_DRAFTS: Final = 1.5
"""The most time of a step with drafts over that without, where another owner waits for its end, or may."""
RECENT_SECONDS: Final = 10.0
"""An owner whose last step was not longer ago may come back while a step runs, and would wait for its end."""
RECENT_SHARE: Final = 8
"""The share of `CHAIN_SECONDS` that a step may take which such an owner would wait for."""
RECENT_ROWS: Final = 16
"""The least number of rows of prompts in such a step, however long it takes."""

FEW: Final = 2
"""Sequences of an owner whose readers are a burden to nobody."""
TURN_SECONDS: Final = 0.01
"""Time between two wake-ups of an owner's readers, on average: some per cent of Python's time."""
MOST_SECONDS: Final = 0.1
"""The most time for which a reader is not woken that has something to take."""


def fitting(done: int, seconds: float, most: int) -> int:
    """Return how many fit in `CHAIN_SECONDS`, where so many were done in `seconds`."""
    return int(max(1, min(CHAIN_SECONDS * done / seconds, most))) if seconds > 0 else most


def row_shares(prompts: Iterable[Sequence], budget: int) -> dict[str | None, int]:
    """Return how many rows of a step each owner's prompts may have: a share, and what others leave."""
    wanted = Counter[str | None]()
    for sequence in prompts:
        wanted[sequence.salt] += sequence.left
    share = budget // len(wanted) if wanted else 0
    taken = {owner: min(share, rows) for owner, rows in wanted.items()}
    return {owner: budget - (sum(taken.values()) - own) for owner, own in taken.items()}


class Sharing:
    """Rules by which owners share the steps of one engine, and what they need to know.

    Parameters
    ----------
    chunk
        Most rows of a step.
    max_logits
        Rows of a step whose tokens may be sampled.

    Attributes
    ----------
    costs : StepCosts
        What rows cost.
    ended_at : float
        `time.perf_counter()` at the end of the last step.
    """

    def __init__(self, chunk: int, max_logits: int) -> None:
        self.costs = StepCosts()
        self.ended_at = -math.inf
        self._chunk = chunk
        self._max_logits = max_logits
        self._owed = 0.0  # seconds for which others may run without the owner with most sequences
        self._mixed = MIXED_ROWS
        self._telling = 0  # rows of prompts in a step that tell how many fit
        self._pace = 0.0  # rows of prompts that run in a second, once it is known
        self._seen: dict[str | None, float] = {}  # the end of each owner's last step
        self._mask: dict[str | None, float] = {}  # seconds that a mask of one of its sequences takes

    def leave_heaviest_out(self, writing: list[Sequence], prompts: list[Sequence]) -> bool:
        """Take the owner with most sequences, or rows, out of a step, if others may run without it now.

        That is where its rows, and masks, more than double the time of theirs: as much time as its last step
        took is then theirs alone. So it has half of all, and where rows cost little, a step is for everybody.
        """
        everybody = [*writing, *prompts]
        count = Counter(s.salt for s in everybody)
        if len(count) < 2 or not self.costs.known:
            return False
        left, read = Counter[str | None](), Counter[str | None]()
        for counted, some in ((left, everybody), (read, prompts)):
            for s in some:
                counted[s.salt] += s.left
        heaviest = max(count, key=lambda owner: (count[owner], left[owner]))
        rows = min(read.pop(heaviest, 0), FOREIGN_ROWS)
        others = [s for s in writing if s.salt != heaviest], [s for s in prompts if s.salt != heaviest]
        seconds = self._usual(*others, read.total())
        together = self._usual(writing, prompts, read.total() + rows)
        if not 0 < seconds <= min(self._owed, together / FOREIGN_TIMES):
            return False
        writing[:], prompts[:] = others
        return True

    def _usual(self, writing: SequenceOf[Sequence], prompts: SequenceOf[Sequence], read: int) -> float:
        """Return what a step of these sequences usually takes, masks included, with `read` rows of prompts.

        Rows of prompts are measured apart: beside an owner's long prompt there may be no steps of as many
        rows that decode, and what is known of these would be a guess.
        """
        rows = sum(s.left for s in writing)
        masks = sum(self._mask.get(s.salt, 0.0) for s in (*writing, *prompts) if s.constraint is not None)
        if not self._pace:
            return self.costs.usual(rows + read) + masks
        return (self.costs.usual(rows) if rows else 0.0) + read / self._pace + masks

    def owed_tokens(self, rows: int) -> int:
        """Return the tokens of a chain that takes as long as others may still run without the heaviest."""
        return max(1, int(self._owed / self.costs.usual(rows)))

    def with_prompts(self, writing: SequenceOf[Sequence], prompts: SequenceOf[Sequence], rows: int) -> int:
        """Rows of a step with prompts, of which those that write have `rows`.

        An owner's prompts make the steps of others half as long again at most, where steps of few rows allow
        that. Where others were here lately, a step ends soon, so that they need not wait for it.
        """
        begin = self._beginning(prompts)
        here = {sequence.salt for sequence in (*writing, *prompts)}
        self._telling = self._mixed // 2 + 1
        if not (writing or begin):
            if not self.others_lately(here):
                return self._chunk
            self._telling = max(self._mixed // RECENT_SHARE, RECENT_ROWS)
            return self._telling
        beside = self._mixed
        if len(here) > 1 and self._pace:
            own = self.costs.expected(max(rows + begin, 1), CHAIN_SECONDS)
            beside = max(FOREIGN_ROWS, min(beside, int(own * self._pace / 2)))
        return rows + begin + beside

    def _beginning(self, prompts: SequenceOf[Sequence]) -> int:
        """Rows of short prompts that another owner's long ones delay no more than those who write.

        Each owner that has some gets as many as the one with fewest wants: who has only a token of a prompt
        that is known to read does not wait for the end of another's long prompt, which looks like a short
        one.
        """
        if len({sequence.salt for sequence in prompts}) < 2:
            return 0
        short = Counter[str | None]()
        for sequence in prompts:
            if sequence.left <= self._mixed:
                short[sequence.salt] += sequence.left
        return len(short) * min(short.values(), default=0)

    def with_drafts(self, writing: SequenceOf[Sequence], rows: int) -> int:
        """The most rows of a step with drafts, where those that write have `rows` without."""
        here = {sequence.salt for sequence in writing}
        seconds = FOREIGN_DRAFTS * self.costs.usual(rows)
        if len(here) == 1:
            if not self.others_lately(here):
                return self._max_logits
            seconds = max(seconds, CHAIN_SECONDS / RECENT_SHARE)
        return min(self._max_logits, self.costs.rows_within(rows, seconds))

    def others_lately(self, here: set[str | None]) -> bool:
        """Whether owners other than these may come back while a step runs."""
        lately = self.ended_at - RECENT_SECONDS
        self._seen = {owner: at for owner, at in self._seen.items() if at > lately}
        self._mask = {owner: seconds for owner, seconds in self._mask.items() if owner in self._seen}
        return not self._seen.keys() <= here

    def ran(self, owners: Iterable[str | None], seconds: float, without_heaviest: bool) -> None:
        """Note who was in a step that has just ended, and how long it took."""
        owed = self._owed + (-seconds if without_heaviest else seconds)
        self._owed = min(max(owed, 0.0), max(OWED_SECONDS, seconds))
        self._seen.update(dict.fromkeys(owners, self.ended_at))

    def masked(self, owner: str | None, seconds: float) -> None:
        """Learn from what the masks of an owner's sequence took in a step."""
        known = self._mask.setdefault(owner, seconds)
        self._mask[owner] += MASK_WEIGHT * (seconds - known)

    def read(self, rows: int, seconds: float) -> None:
        """Learn from a step of so many rows with prompts."""
        fits = fitting(rows, seconds, self._chunk)
        if fits > self._mixed or rows >= self._telling:  # a few rows are slow for their number
            self._mixed, self._pace = max(MIXED_ROWS, fits), rows / max(seconds, 1e-6)


class ReaderTurns:
    """Turns in which readers are woken.

    To wake a reader is two changes of threads and, in a server, an event for its client. All of them take
    Python's lock from others. So where other owners are there, too, each reader of an owner with many
    sequences gets all that is ready when it is its turn, rather than each token at once. A slow model has
    more turns than tokens: each of these is sent at once.
    """

    def __init__(self) -> None:
        self._turns: dict[str | None, float] = {}  # owners with many sequences, and the turns that they have
        self._at = 0.0

    def ran(
        self, running: SequenceOf[Sequence], now: float, others: Callable[[set[str | None]], bool]
    ) -> None:
        """A step has ended.

        Parameters
        ----------
        running
            Sequences with slots.
        now
            `time.perf_counter()`.
        others
            Whether owners besides these may come while a step runs.
        """
        count = Counter(sequence.salt for sequence in running)
        many = {owner for owner, n in count.items() if n > FEW}
        if many and len(count) == 1 and not others(many):
            many = set()
        new = (now - self._at) / TURN_SECONDS
        self._turns = {owner: min(self._turns.get(owner, 1.0) + new, count[owner]) for owner in many}
        self._at = now
        for sequence in running:
            sequence.in_turn = sequence.salt in many
        for owner in many:
            self._call(owner, (s for s in running if s.salt == owner and s.ready and not s.called), now)

    def _call(self, owner: str | None, waiting: Iterable[Sequence], now: float) -> None:
        """Wake who has waited for longest."""
        for sequence in sorted(waiting, key=attrgetter("taken_at")):
            if self._turns[owner] < 1 and now - sequence.taken_at < MOST_SECONDS:
                break
            sequence.called = True
            self._turns[owner] -= 1
