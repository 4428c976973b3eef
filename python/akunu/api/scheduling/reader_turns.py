"""Turns in which the readers of an owner with many sequences are woken, where other owners are there, too.

To wake a reader is two changes of threads and, in a server, an event for its client. All of them take
Python's lock from others. So each gets all that is ready when it is its turn, rather than each token at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from collections.abc import Sequence as SequenceOf
from operator import attrgetter
from typing import Final

from akunu.api.scheduling.sequence import Sequence

__all__ = ["ReaderTurns"]

FEW: Final = 2
"""Sequences of an owner whose readers are a burden to nobody."""
TURN_SECONDS: Final = 0.004
"""Time between two wake-ups of an owner's readers, on average: a tenth of Python's time."""
MOST_SECONDS: Final = 0.1
"""The most time for which a reader is not woken that has something to take."""

_taken_at = attrgetter("taken_at")


class ReaderTurns:
    """Who is woken after a step. Slow models make fewer tokens than there are turns: then each is sent at once."""

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
        for sequence in sorted(waiting, key=_taken_at):
            if self._turns[owner] < 1 and now - sequence.taken_at < MOST_SECONDS:
                break
            sequence.called = True
            self._turns[owner] -= 1
