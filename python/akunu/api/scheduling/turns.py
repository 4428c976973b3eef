"""Order sequences by arrival, while their owners take turns."""

from __future__ import annotations

from itertools import count
from typing import Final

from akunu.api.scheduling.sequence import Sequence

__all__ = ["Turns"]

_FORGET: Final = 1000
"""Owners known at a time before those without sequences that wait are forgotten."""


class Turns:
    """Start-time fair queueing: the n-th sequence of an owner that waits is in the n-th round from now.

    Sequences of one owner alone are in the order of their arrival. Who sends many has them behind the first
    ones of others that come later, and nobody waits for more than a sequence of each owner between two of its
    own.
    """

    def __init__(self) -> None:
        self._arrivals = count()
        self._round = 0  # the latest of which a sequence has begun
        self._latest: dict[str | None, int] = {}

    def arrive(self, sequence: Sequence) -> None:
        """A sequence lines up; it gets its turn."""
        owner = sequence.salt
        number = self._latest[owner] = max(self._round, self._latest.get(owner, 0)) + 1
        sequence.arrive(number, next(self._arrivals))
        if len(self._latest) > _FORGET:
            self._latest = {name: last for name, last in self._latest.items() if last > self._round}

    def begin(self, sequence: Sequence) -> None:
        """A sequence begins, or goes on."""
        self._round = max(self._round, sequence.round)
