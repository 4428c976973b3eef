"""The bodies of requests: how much of them may be there at a time, and how fast one has to arrive."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Final

from starlette.types import Message, Receive

from akunu.base.memory import give_back
from akunu.server.errors import ApiError

__all__ = ["Bodies", "Body", "too_large"]

WINDOW_SECONDS: Final = 10.0
WINDOW_BYTES: Final = 10 << 10
"""Bytes of a body, or its end, that have to arrive in each such time."""
TURN_SECONDS: Final = 0.004
"""The time between two pieces of a client's bodies where others have had requests lately."""

_WORTH_GIVING: Final = 16 << 20
"""Bytes of bodies that are gone, from which on their memory goes back to the system."""
_GONE_SECONDS: Final = 4.0
"""Time without such bodies until it does: other allocations wait for it, and the next ones would need it."""


class Bodies:
    """The bodies that are there, from their first byte until their request is answered.

    Each client may have as many bytes as are left for others: one alone half of all, two a third each.

    Parameters
    ----------
    most
        Bytes of all.
    others
        Whether others than a client have had requests lately, of any kind.
    """

    def __init__(self, most: int, others: Callable[[str], bool] = lambda client: False) -> None:
        self._most = most
        self._others = others
        self._held: Counter[str] = Counter()
        self._turns = defaultdict[str, asyncio.Lock](asyncio.Lock)
        self._gone = 0
        self._giving: asyncio.TimerHandle | None = None

    @property
    def bytes(self) -> int:
        """The bytes that are there now."""
        return self._held.total()

    def take(self, client: str, size: int) -> None:
        """Keep more bytes of a client.

        Raises
        ------
        ApiError
            503: there is no room for them now.
        """
        if size and self._held[client] + size > self._most - self.bytes - size:
            raise ApiError(503, "too much is being sent to this server at a time", code="busy", retry_after=2)
        self._held[client] += size

    async def turn(self, client: str) -> None:
        """Let others go on: in a round of the event loop, a client has a piece of one of its bodies read.

        Who sends sixty at a time would have sixty read, and everybody else's requests would wait for them.
        Even one in each round would make all rounds of a short request longer, of which it needs some twenty.
        """
        async with self._turns[client]:
            await asyncio.sleep(TURN_SECONDS if self._others(client) else 0)

    def give(self, client: str, size: int) -> None:
        """Give back so many bytes of a client's."""
        self._held[client] -= size
        if self._held[client] <= 0:
            del self._held[client]
            self._turns.pop(client, None)
        self._gone += size
        if self._gone >= _WORTH_GIVING:
            if self._giving is not None:
                self._giving.cancel()
            self._giving = asyncio.get_running_loop().call_later(_GONE_SECONDS, self._give_back)

    def _give_back(self) -> None:
        self._gone, self._giving = 0, None
        asyncio.get_running_loop().run_in_executor(None, give_back)  # it takes some 10 ms


class Body:
    """One of them.

    Parameters
    ----------
    bodies
        Those that it is one of.
    client
        Who sends it.
    receive
        The application's function.
    most, seconds
        Bytes that it may have, and time until its end.
    """

    def __init__(
        self,
        bodies: Bodies,
        client: str,
        receive: Receive,
        most: int,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.size = 0
        """Bytes that have arrived."""
        self._bodies = bodies
        self._client = client
        self._receive = receive
        self._most = most
        self._seconds = seconds
        self._clock = clock
        self._deadline = clock() + seconds
        self._window_from, self._window_end = 0, clock() + WINDOW_SECONDS
        self._whole = False

    async def receive(self) -> Message:
        """The next message.

        Raises
        ------
        ApiError
            408: the body takes too long; 413: it has too many bytes; 503: with the others it has.
        """
        if self._whole:  # what comes now is that the client goes away
            return await self._receive()
        message: Message | None = None
        while message is None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(self._window_end, self._deadline) - self._clock()):
                    message = await self._receive()
            size = len(message.get("body", b"")) if message else 0
            self._whole = message is not None and not message.get("more_body")
            if self.size + size > self._most:
                raise too_large(self._most)
            self._bodies.take(self._client, size)
            self.size += size
            self._check_pace()
        if not self._whole:
            await self._bodies.turn(self._client)
        return message

    def _check_pace(self) -> None:
        now = self._clock()
        if self._whole or now < min(self._window_end, self._deadline):
            return
        if now >= self._deadline:
            raise ApiError(
                408, f"the body did not arrive within {self._seconds:g} s, the limit of this server",
                code="timeout",
            )  # fmt: skip
        if self.size - self._window_from < WINDOW_BYTES:
            raise ApiError(
                408, f"the body arrives too slowly: less than {WINDOW_BYTES} bytes in {WINDOW_SECONDS:g} s",
                code="timeout",
            )  # fmt: skip
        self._window_from, self._window_end = self.size, now + WINDOW_SECONDS

    def close(self) -> None:
        """Give back the room of the body, whose request is answered."""
        self._bodies.give(self._client, self.size)


def too_large(most: int) -> ApiError:
    """A body has more than `most` bytes."""
    return ApiError(413, f"the body has more than {most} bytes, the limit of this server")
