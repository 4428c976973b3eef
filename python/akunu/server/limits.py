"""Limits of what one client may ask for, and of what may wait."""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from akunu.server.auth import Holder
from akunu.server.errors import ApiError
from akunu.server.models import Entry
from akunu.server.settings import Settings

__all__ = ["Entries", "Guesses", "RateLimit", "queue_place", "too_long"]

_WRONG_KEYS: Final = 30
"""Wrong keys that one address may send: at once, and a minute."""
_FORGET: Final = 1000
"""Clients known at a time before those whose allowance is full again are forgotten."""

FEW: Final = 4
"""Requests of a client that may enter at once beside others."""
ENTRY_SECONDS: Final = 0.012
"""Time for one more of them, about twice that for which a request has Python."""
RECENT_SECONDS: Final = 10.0
"""A client who was here so lately may come back at any time."""


class RateLimit:
    """A token bucket for each client: a minute's requests at once, refilled evenly.

    Parameters
    ----------
    per_minute
        Requests a minute; 0: no limit.
    clock
        Seconds.
    """

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._capacity = float(per_minute)
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}  # tokens, and when that was

    def take(self, client: str) -> None:
        """Count a request.

        Raises
        ------
        ApiError
            429: it was one too many; says when the next one may come.
        """
        if not self._capacity:
            return
        now, rate = self._clock(), self._capacity / 60
        tokens = self._tokens(client, now)
        if tokens < 1:
            raise ApiError(
                429, f"more than {self._capacity:g} requests a minute", code="rate_limit_exceeded",
                retry_after=(1 - tokens) / rate,
            )  # fmt: skip
        self._buckets[client] = tokens - 1, now
        if len(self._buckets) > _FORGET:
            self._buckets = {
                name: (left, at)
                for name, (left, at) in self._buckets.items()
                if left + (now - at) * rate < self._capacity
            }

    def room(self, client: str) -> bool:
        """Whether a request may come now."""
        return not self._capacity or self._tokens(client, self._clock()) >= 1

    def _tokens(self, client: str, now: float) -> float:
        tokens, then = self._buckets.get(client, (self._capacity, now))
        return min(self._capacity, tokens + (now - then) * self._capacity / 60)


class Guesses:
    """Slows those who try keys: from an address that sent many wrong ones, only keys known there are tried.

    So whoever shares an address with one who guesses, behind a proxy, goes on.

    Parameters
    ----------
    clock
        Seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._wrong = RateLimit(_WRONG_KEYS, clock)
        self._known: OrderedDict[tuple[str, str], None] = OrderedDict()

    def check(self, address: str, digest: str) -> None:
        """A key is about to be looked at.

        Raises
        ------
        ApiError
            429: too many wrong ones came from this address.
        """
        if (address, digest) not in self._known and not self._wrong.room(address):
            raise ApiError(
                429, "authorization: too many wrong keys from this address", code="rate_limit_exceeded",
                retry_after=60 / _WRONG_KEYS,
            )  # fmt: skip

    def note(self, address: str, holder: Holder | None) -> None:
        """A key was looked at; whose it is, if anybody's."""
        if holder is None:
            self._wrong.take(address)
            return
        self._known[address, holder.id] = None
        self._known.move_to_end((address, holder.id))
        if len(self._known) > _FORGET:
            self._known.popitem(last=False)


def too_long(seconds: float) -> ApiError:
    """A request takes more than `seconds`."""
    return ApiError(
        504, f"the request takes longer than {seconds:g} s, the limit of this server", code="timeout"
    )


@contextmanager
def queue_place(entry: Entry, count: int, settings: Settings, holder: Holder) -> Iterator[None]:
    """A place for the sequences of one request among those that run or wait for a model.

    Where there are several keys, each may have as many places as it leaves for others: one alone half of all.

    Raises
    ------
    ApiError
        503: the queue is full.
    """
    room, mine = entry.spec.parallel + settings.max_queue, entry.queue[holder.id]
    shared = len(settings.keys) + len(settings.admin_keys) > 1
    left = room - entry.queued
    if count > left or (shared and mine + count > max(1, left - count)):
        whose = f", {mine} of them for this key," if shared else ""
        message = (
            f"the queue of {entry.spec.name} is full: {entry.queued} generations{whose} run or wait, "
            f"at most {room} may"
        )
        raise ApiError(503, message, code="queue_full", retry_after=2)
    entry.queue[holder.id] += count
    try:
        yield
    finally:
        entry.queue[holder.id] -= count
        if not entry.queue[holder.id]:
            del entry.queue[holder.id]


class _Line:
    """The requests of a client that wait to enter."""

    def __init__(self) -> None:
        self.first = asyncio.Lock()
        self.paid_until = -math.inf  # each entry costs `ENTRY_SECONDS`, and `FEW` of them are lent


class Entries:
    """Turns to enter: a client that sends many requests has half of the time of those who take them."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lines: dict[str, _Line] = {}
        self._latest, self._before = ("", -math.inf), -math.inf  # who came, and when somebody else did

    async def turn(self, client: str) -> None:
        """Wait until a request of a client may enter: at once, unless it sends many and others come, too."""
        now = self._clock()
        if client != self._latest[0]:
            self._before = self._latest[1]
        self._latest = client, now
        if not self.others_lately(client):
            return
        self._forget()
        line = self._lines.setdefault(client, _Line())
        if not line.first.locked() and self._wait(line) <= 0:
            line.paid_until = max(line.paid_until, now) + ENTRY_SECONDS
            return
        async with line.first:
            await asyncio.sleep(max(self._wait(line), 0))
            # Where the loop is behind, those who wait do not enter together.
            line.paid_until = self._clock() + FEW * ENTRY_SECONDS

    def _wait(self, line: _Line) -> float:
        return line.paid_until - (FEW - 1) * ENTRY_SECONDS - self._clock()

    def _forget(self) -> None:
        if len(self._lines) > _FORGET:
            now = self._clock()
            self._lines = {
                client: line
                for client, line in self._lines.items()
                if line.first.locked() or line.paid_until > now
            }

    def others_lately(self, client: str) -> bool:
        """Whether somebody else has had a request in the last seconds, who may be away between two."""
        latest, at = self._latest
        return (at if client != latest else self._before) > self._clock() - RECENT_SECONDS
