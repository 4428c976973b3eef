"""The settings of a server: what it may do and how much of it, in one object, made once."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from ipaddress import ip_network
from pathlib import Path
from typing import Final

from akunu.base.errors import InvalidArgumentError
from akunu.server.auth import Keys

__all__ = ["VOLATILE_LINES", "Settings"]

VOLATILE_LINES: Final = ("x-anthropic-billing-header:",)
"""Beginnings of first lines that agents put before a system prompt and change at every request.

They are for the provider's accounts, say nothing to a model, and would cost the cached prefix each time."""

_ORIGIN: Final = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#\s]+")


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a server.

    Attributes
    ----------
    keys, admin_keys : Keys
        Who may use the models, and who may load and unload them; none: everybody who can connect.
    local : bool
        It listens on this machine only. Then the Host of a request has to be this machine too, so that a page
        of the web cannot reach it under a name of its own.
    cors_origins : tuple of str
        Web pages' origins that may use it; "*": all.
    allow_hosts : tuple of str
        Other names of it, in lower case and without a port, as of a proxy before it. Where there are some, no
        others are answered to.
    trusted_proxies : tuple of str
        Addresses and networks of proxies, whose word is taken for who asks (`X-Forwarded-For`).
    max_connections : int
        Connections at a time; one address has half of them at most, if it is no trusted proxy.
    head_seconds : float
        Most time for the head of a request.
    max_body : int
        Bytes of a request.
    max_bodies : int
        Bytes of all requests that are there, of which a client may have as many as it leaves for others; of
        recordings, which are on disk, eight times as many.
    max_upload : int
        Bytes of a request with a recording.
    max_queue : int
        Sequences of one model that may wait, beside those that run.
    max_seconds : float
        Most time for a request, waiting included.
    requests_per_minute : int
        The most of one key, or of one address where there are no keys; 0: as many as come.
    heartbeat_seconds : float
        A stream that has nothing to say for so long says that it is alive.
    write_seconds : float
        A client that takes nothing for so long has gone away.
    stall_seconds : float
        An engine that has work and makes no progress for so long is ill.
    drain_seconds : float
        Most time that requests get to end when the server is told to.
    max_models : int or None
        Models in memory at a time; None: four, or as many as are loaded at the start.
    max_memory : int or None
        Bytes of their files together.
    idle_seconds : float
        A model that is not used for so long is unloaded; 0: never.
    max_responses : int
        Responses that are stored for `previous_response_id`; the oldest give way.
    image_hosts : tuple of str
        Hosts that images are fetched from: "example.org", "*.example.org", or "*" for all public ones.
    image_folders : tuple of Path
        Folders whose files may be named as images, by `file:` URLs.
    lenient : bool
        Unknown fields of requests, and values that are not supported, are left out with a warning in the
        answer; otherwise they are refused.
    replica : str
        The name of this server among several: part of the ids of the responses that it stores.
    """

    keys: Keys = field(default_factory=Keys)
    admin_keys: Keys = field(default_factory=Keys)
    local: bool = True
    cors_origins: tuple[str, ...] = ()
    allow_hosts: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()
    max_connections: int = 1024
    head_seconds: float = 10.0
    max_body: int = 32 << 20
    max_bodies: int = 256 << 20
    max_upload: int = 25 << 20
    max_queue: int = 64
    max_seconds: float = 600.0
    requests_per_minute: int = 0
    heartbeat_seconds: float = 10.0
    write_seconds: float = 60.0
    stall_seconds: float = 120.0
    drain_seconds: float = 30.0
    max_models: int | None = None
    max_memory: int | None = None
    idle_seconds: float = 0.0
    max_responses: int = 256
    image_hosts: tuple[str, ...] = ()
    image_folders: tuple[Path, ...] = ()
    lenient: bool = False
    replica: str = ""

    def __post_init__(self) -> None:
        for origin in self.cors_origins:
            if origin != "*" and not _ORIGIN.fullmatch(origin):
                raise InvalidArgumentError(
                    f"cors_origin: found {origin!r}, expected * or an origin such as "
                    "https://example.org, without a path or / at its end"
                )
        for proxy in self.trusted_proxies:
            try:
                ip_network(proxy, strict=False)
            except ValueError as error:
                raise InvalidArgumentError(
                    f"trusted_proxy: found {proxy!r}, expected an address or a network such as 10.0.0.0/8"
                ) from error
