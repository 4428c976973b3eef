"""Runs an application with uvicorn, and ends it gracefully."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Callable
from types import FrameType
from typing import Final

import uvicorn
from starlette.applications import Starlette

from akunu.base.errors import AkunuError
from akunu.server.errors import ApiError
from akunu.server.texts import Server

__all__ = ["serve"]

_log = logging.getLogger("akunu.server")

_LAST_SECONDS: Final = 5
"""For the answers of texts that were ended, to be sent."""

_CANCEL_SECONDS: Final = 0.02
"""Between one round of texts that are ended and the next."""

_FORCED_SECONDS: Final = 1
"""The same, after a second signal."""


class _Uvicorn(uvicorn.Server):
    """Told to end, it takes no more connections, lets requests end, and after a while ends their texts."""

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

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._state.draining = True
        server: Server = self._state.server
        seconds = server.settings.drain_seconds
        _log.info("draining: requests have %g s to end", seconds)
        timer = self._loop.call_later(seconds, self._end_texts)
        await super().shutdown(sockets)
        timer.cancel()


def serve(app: Starlette, sock: socket.socket, on_ready: Callable[[], None]) -> None:
    """Serve until SIGTERM or SIGINT; a second one ends at once.

    Raises
    ------
    AkunuError
        A model that was to be loaded at the start cannot be.
    """
    server: Server = app.state.server
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        timeout_graceful_shutdown=int(server.settings.drain_seconds) + _LAST_SECONDS,
    )

    async def run() -> None:
        try:
            await server.models.preload()
        except ApiError as error:
            raise AkunuError(error.message) from error
        on_ready()
        await _Uvicorn(config, app).serve(sockets=[sock])

    # uvicorn raises the signal again when it is done; after SIGTERM that is no failure.
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        asyncio.run(run())
    finally:
        signal.signal(signal.SIGTERM, before)
