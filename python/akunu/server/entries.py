"""The pace at which the requests of a client enter, where others have some, too."""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from collections.abc import Callable
from typing import Final

__all__ = ["Entries"]

FEW: Final = 4
"""Requests of a client that are no burden to others."""
ENTRY_SECONDS: Final = 0.012
"""Time between two entries of a client beside others, about twice that for which they have Python."""
RECENT_SECONDS: Final = 10.0
"""A client who was here so lately may come back at any time."""


class _Line:
    """The requests of a client that wait to enter."""

    def __init__(self) -> None:
        self.first = asyncio.Lock()
        self.at = -math.inf  # when the last one entered


class Entries:
    """Turns to enter: a client that sends many requests at once has half of the time of those who take them.

    Parameters
    ----------
    present
        The number of requests that each client has, those that have not entered among them.
    """

    def __init__(self, present: Counter[str], clock: Callable[[], float] = time.monotonic) -> None:
        self._present = present
        self._clock = clock
        self._lines: dict[str, _Line] = {}
        self._latest, self._before = ("", -math.inf), -math.inf  # who came, and when somebody else did

    async def turn(self, client: str) -> None:
        """Wait until a request of a client may enter: at once, unless it has many and others come, too."""
        now = self._clock()
        if client != self._latest[0]:
            self._before = self._latest[1]
        self._latest = client, now
        if self._present[client] <= FEW or not self._others_lately(client):
            return
        line = self._lines.setdefault(client, _Line())
        async with line.first:  # where the loop is behind, those who wait do not enter together
            await asyncio.sleep(max(line.at + ENTRY_SECONDS - self._clock(), 0))
            line.at = self._clock()

    def forget(self, client: str) -> None:
        """Forget a client that has no requests."""
        self._lines.pop(client, None)

    def _others_lately(self, client: str) -> bool:
        latest, at = self._latest
        return (at if client != latest else self._before) > self._clock() - RECENT_SECONDS
