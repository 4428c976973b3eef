"""Calls that a model takes one at a time: vectors, scores."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from akunu.base.errors import AkunuError
from akunu.server.generations import RequestRecord, Server
from akunu.server.limits import queue_place, too_long
from akunu.server.models import Entry, shutting_down

__all__ = ["Check", "call"]

T = TypeVar("T")

Check = Callable[..., None]
"""Raises when nobody wants the result any more; takes anything, to be a function that reports progress."""


class _Unwanted(Exception):
    """Raised in a call that nobody waits for."""


async def call(server: Server, record: RequestRecord, entry: Entry, work: Callable[[Check], T]) -> T:
    """The result of `work`, made in a thread when it is its turn.

    Parameters
    ----------
    work
        Has to call its argument now and then. When its request is cancelled or out of time, that raises.

    Raises
    ------
    ApiError
        503: the queue is full, or the server ends; 504: the request takes too long.
    """
    over = threading.Event()

    def check(*_: object) -> None:
        if over.is_set():
            raise _Unwanted

    limit = server.settings.max_seconds
    with queue_place(entry, 1, server.settings, record.holder), entry.wanted():
        try:
            async with asyncio.timeout(record.at + limit - time.monotonic()), entry.calls:
                task = asyncio.ensure_future(asyncio.to_thread(work, check))
                try:
                    return await asyncio.shield(task)
                except asyncio.CancelledError:
                    over.set()
                    with contextlib.suppress(Exception):
                        await task  # the model is free when the next call gets its turn
                    raise
        except TimeoutError as error:
            raise too_long(limit) from error
        except AkunuError as error:
            if not server.models.ending:
                raise
            raise shutting_down() from error
