"""Runs an application with uvicorn, and ends it gracefully."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import resource
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any, Final

import uvicorn
from starlette.applications import Starlette

from akunu.base.errors import AkunuError
from akunu.base.memory import keep_freed
from akunu.server.connections import ConnectionConfig, ConnectionLimits, Sparingly
from akunu.server.errors import ApiError
from akunu.server.generations import Server
from akunu.server.settings import Settings

__all__ = ["most_connections", "raise_descriptors", "serve", "uvicorn_config"]

_log = logging.getLogger("akunu.server")

_LAST_SECONDS: Final = 5
"""Seconds for sending the answers of generations that were ended."""

_CANCEL_SECONDS: Final = 0.02
"""Seconds between two rounds of generations that are ended."""

_FORCED_SECONDS: Final = 1
"""Seconds that requests have to end after a second signal."""

_DESCRIPTORS: Final = 8192
"""File descriptors that are asked for at the start."""

_OTHER_FILES: Final = 64
"""Descriptors that are not of connections: of models, of what they read, of the system."""

_BACKLOG: Final = 512
"""Connections that wait to be taken."""

_TAKEN: Final = 1
"""Connections that are taken in a round of the event loop: requests of others need several rounds each."""


class _Uvicorn(uvicorn.Server):
    """Takes no more connections when told to end, lets requests end, and after a while cancels them."""

    def __init__(self, config: uvicorn.Config, app: Starlette) -> None:
        super().__init__(config)
        self._state = app.state
        self._loop = asyncio.get_running_loop()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first signal lets requests end; the next one ends them where they are.

        uvicorn would give up its tasks in the middle, each with a traceback.
        """
        if self.should_exit:
            self._loop.call_soon_threadsafe(self._end_now)
        else:
            super().handle_exit(sig, frame)

    def _end_texts(self) -> None:
        """End those that run, again and again: others get their places."""
        self._state.server.models.cancel()
        self._loop.call_later(_CANCEL_SECONDS, self._end_texts)

    def _end_now(self) -> None:
        self._end_texts()
        self._loop.call_later(_FORCED_SECONDS, self._force_exit)

    def _force_exit(self) -> None:
        logging.disable()  # what is given up now would be a traceback each
        self.force_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self.config.backlog = _TAKEN  # asyncio's word for both
        await super().startup(sockets)
        for sock in sockets or ():
            sock.listen(_BACKLOG)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._state.draining = True
        server: Server = self._state.server
        seconds = server.settings.drain_seconds
        _log.info("draining: requests have %g s to end", seconds)
        timer = self._loop.call_later(seconds, self._end_texts)
        await super().shutdown(sockets)
        timer.cancel()


class _SpareDescriptor:
    """Takes a connection where no descriptor is left, to refuse it, and says it once in a while.

    Python's loop would log each attempt with its traceback, hundreds at a time.

    Parameters
    ----------
    sock
        The socket that listens.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._file = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def close(self) -> None:
        """Give it up."""
        os.close(self._file)

    def handle(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """The loop's handler of exceptions."""
        error = context.get("exception")
        # A second after each refusal asyncio listens again, also where the server has ended in that second.
        if self._sock.fileno() < 0 and isinstance(error, ValueError) and "file descriptor" in str(error):
            return
        if not isinstance(error, OSError) or "socket" not in context:
            loop.default_exception_handler(context)
            return
        _log.warning("a connection is refused: this process has no file descriptor left")
        os.close(self._file)
        try:
            with suppress(OSError):
                self._sock.accept()[0].close()
        finally:
            self._file = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)


def raise_descriptors() -> None:
    """Allow this process as many file descriptors as it may have, within reason."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def most_connections(settings: Settings) -> int:
    """Return the connections of the settings, or as many as descriptors and files of uploads allow."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return settings.max_connections
    return max(1, min(settings.max_connections, (soft - _OTHER_FILES) // 2))


def uvicorn_config(app: Starlette) -> ConnectionConfig:
    """Return how uvicorn serves an application."""
    settings: Settings = app.state.server.settings
    most = most_connections(settings)
    limits = ConnectionLimits(
        most=most,
        most_of_one=max(1, most // 2),
        head_seconds=settings.head_seconds,
        write_seconds=settings.write_seconds,
        trusted=settings.trusted_proxies,
    )
    return ConnectionConfig(
        app,
        limits,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        ws="none",
        backlog=_BACKLOG,
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=list(settings.trusted_proxies),
        timeout_graceful_shutdown=int(settings.drain_seconds) + _LAST_SECONDS,
    )


def serve(app: Starlette, sock: socket.socket, on_ready: Callable[[], None], *more: socket.socket) -> None:
    """Serve on one socket, or on several, until SIGTERM or SIGINT; a second signal ends at once.

    Raises
    ------
    AkunuError
        A model that was to be loaded at the start cannot be.
    """
    server: Server = app.state.server
    raise_descriptors()
    keep_freed()  # a body's text and what is read from it are large, and others wait while it is read
    config = uvicorn_config(app)

    async def run() -> None:
        try:
            await server.models.preload()
        except ApiError as error:
            raise AkunuError(error.message) from error
        on_ready()
        gc.collect()
        gc.freeze()  # what is there stays, and need not be looked through again while everybody waits
        asyncio.get_running_loop().set_exception_handler(spare.handle)
        await _Uvicorn(config, app).serve(sockets=[sock, *more])

    # uvicorn raises the signal again when it is done; after SIGTERM that is no failure.
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    loggers = (_log, logging.getLogger("uvicorn.error"))
    sparingly, spare = Sparingly(), _SpareDescriptor(sock)
    for each in loggers:
        each.addFilter(sparingly)
    try:
        asyncio.run(run())
    finally:
        for each in loggers:
            each.removeFilter(sparingly)
        gc.unfreeze()
        spare.close()
        signal.signal(signal.SIGTERM, before)
