"""Connections: how many there may be, and how long one may say nothing or take nothing.

uvicorn ends a connection that is idle after a request. What it has no limit for is here: a head that never
ends, a client that takes nothing, and how many connections there are. Where there are too many, one that has
no request gives way to the new one, so those who only hold connections keep nobody out.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections import Counter, OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from typing import Any, Final

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

__all__ = ["Connection", "ConnectionConfig", "ConnectionLimits", "Sparingly"]

_log = logging.getLogger("akunu.server")

_FULL: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 2\r\n"
    b"connection: close\r\ncontent-length: 97\r\n\r\n"
    b'{"error":{"message":"too many connections","type":"server_error","param":null,"code":"too_many"}}'
)

_PIECE: Final = 64 << 10
"""Bytes that are read at a time: the parser copies them several times, while others' requests wait."""


class Idle:
    """Connections without a request: of all addresses and of each, the longest idle first.

    There may be thousands, and a client can make a new one for each that gives way: none are looked through.
    """

    def __init__(self) -> None:
        self._found: dict[str | None, OrderedDict[Connection, None]] = {}

    def add(self, connection: Connection) -> None:
        """Count a connection that has no request any more, or not yet."""
        for host in (None, connection.host):
            of_host = self._found.setdefault(host, OrderedDict())
            of_host[connection] = None
            of_host.move_to_end(connection)

    def discard(self, connection: Connection) -> None:
        """Stop counting a connection, which has a request or ends."""
        for host in (None, connection.host):
            of_host = self._found.get(host)
            if of_host is not None:
                of_host.pop(connection, None)
                if not of_host:
                    del self._found[host]

    def take(self, host: str | None, but: Connection) -> Connection | None:
        """Take out the first one of an address, or of any, that is open."""
        while (of_host := self._found.get(host)) and (
            found := next((each for each in of_host if each is not but), None)
        ):
            self.discard(found)
            if not found.transport.is_closing():
                return found
        return None


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """The limits of connections.

    Attributes
    ----------
    most, most_of_one : int
        Connections, and those of one address that is no trusted proxy.
    head_seconds : float
        For the head of a request, once it has begun or the connection is there.
    write_seconds : float
        A client that takes nothing for so long has gone away.
    trusted : tuple of str
        Addresses and networks of proxies.
    """

    most: int
    most_of_one: int
    head_seconds: float
    write_seconds: float
    trusted: tuple[str, ...] = ()
    counts: Counter[str] = field(default_factory=Counter)
    """Connections by address."""
    idle: Idle = field(default_factory=Idle)

    def trusts(self, host: str) -> bool:
        """Whether an address is a proxy's, which has the connections of many."""
        if not self.trusted:
            return False
        with suppress(ValueError):
            address = ip_address(host)
            return any(address in ip_network(each, strict=False) for each in self.trusted)
        return False


class ConnectionConfig(uvicorn.Config):
    """uvicorn's settings, with those of its connections."""

    def __init__(self, app: Any, limits: ConnectionLimits, **settings: Any) -> None:
        super().__init__(app, http=Connection, **settings)
        self.limits = limits


class Connection(H11Protocol):
    """A connection to a client."""

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        assert isinstance(config, ConnectionConfig)
        super().__init__(config, server_state, app_state, _loop)
        self._limits = config.limits
        self.host = ""
        """The address that it is from."""
        self._head_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        self._unsent = 0

    @property
    def busy(self) -> bool:
        """Whether the connection has a request."""
        return self.cycle is not None and not self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        _send_at_once(transport)
        transport.max_size = _PIECE  # type: ignore[attr-defined]  # of asyncio's transports, by which they read
        self.host = self.client[0] if self.client else ""
        self._limits.counts[self.host] += 1
        if self._has_room():
            self._limits.idle.add(self)
            self._watch_head()
        else:
            _log.warning("connections are refused: there are %d", len(self.connections))
            transport.write(_FULL)
            self._end()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._limits.idle.discard(self)
        _stop(self._head_timer)
        self._head_timer = None
        _stop(self._write_timer)
        self._write_timer = None
        self._limits.counts[self.host] -= 1
        if not self._limits.counts[self.host]:
            del self._limits.counts[self.host]

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.busy:
            self._limits.idle.discard(self)
        self._watch_head()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.busy:
            self._limits.idle.add(self)
        self._watch_head()
        self._watch_unsent()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._watch_unsent()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_unsent()

    def resume_writing(self) -> None:
        super().resume_writing()
        _stop(self._write_timer)
        self._write_timer = None

    def _has_room(self) -> bool:
        """Whether it may stay; if there are too many, one without a request goes for it."""
        limits, host = self._limits, self.host
        if limits.counts[host] > limits.most_of_one and not limits.trusts(host) and not self._replaces(host):
            return False
        return limits.counts.total() <= limits.most or self._replaces(None)

    def _replaces(self, host: str | None) -> bool:
        """Take the place of one that has had no request for longest, of an address or of any."""
        idle = self._limits.idle.take(host, self)
        if idle is None:
            return False
        idle.transport.abort()
        return True

    def _watch_head(self) -> None:
        """Watch that a first request comes in time; uvicorn sees to connections that had one."""
        if self.busy or self.timeout_keep_alive_task is not None or self.transport.is_closing():
            _stop(self._head_timer)
            self._head_timer = None
        elif self._head_timer is None:
            self._head_timer = self.loop.call_later(self._limits.head_seconds, self._end)

    def _end(self) -> None:
        self.transport.close()
        self._watch_unsent()

    def _watch_unsent(self) -> None:
        """Look again later whether the client takes what is there for it, where no more is written."""
        waits = self.flow.write_paused or self.transport.is_closing()
        if waits and self._write_timer is None and (unsent := self.transport.get_write_buffer_size()):
            self._unsent = unsent
            self._write_timer = self.loop.call_later(self._limits.write_seconds, self._check_unsent)

    def _check_unsent(self) -> None:
        self._write_timer = None
        if self.transport.get_write_buffer_size() >= self._unsent:
            self.transport.abort()
        else:
            self._watch_unsent()


def _stop(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()


class Sparingly(logging.Filter):
    """Lets a message pass once in a while: clients can cause it as often as they like.

    Parameters
    ----------
    seconds
        Between two of the same message.
    """

    def __init__(self, seconds: float = 10.0) -> None:
        super().__init__()
        self._seconds = seconds
        self._last: dict[str, float] = {}
        self._left_out: Counter[str] = Counter()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether it is told; then it says how many like it were not."""
        if record.levelno < logging.WARNING or record.exc_info or not isinstance(record.msg, str):
            return True
        said, now = record.msg, time.monotonic()
        if now - self._last.get(said, -self._seconds) < self._seconds:
            self._left_out[said] += 1
            return False
        self._last[said] = now
        if more := self._left_out.pop(said, 0):
            record.msg = f"{said} ({more} more like this)"
        return True


def _send_at_once(transport: asyncio.BaseTransport) -> None:
    """Have the body of an answer not wait until the client has acknowledged its head, for 40 ms.

    asyncio does so only with sockets that were made with `IPPROTO_TCP` as their protocol.
    """
    sock = transport.get_extra_info("socket")
    if sock is not None and sock.family in (socket.AF_INET, socket.AF_INET6):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
