"""Which names and which web pages a server answers to: what a browser tells of a request that a page made."""

from __future__ import annotations

import re
from typing import Final

from starlette.datastructures import Headers

from akunu.server.errors import ApiError
from akunu.server.settings import Settings

__all__ = ["check_host", "check_origin"]

_LOCAL: Final = ("localhost", "127.0.0.1", "[::1]", "::1")


def check_host(settings: Settings, headers: Headers) -> None:
    """Refuse a name that is not this server's, so that a page cannot reach it under one of its own.

    Raises
    ------
    ApiError
        403.
    """
    if not settings.local and not settings.allow_hosts:
        return
    host = headers.get("host", "")
    name = re.sub(r":\d+$", "", host).lower()
    if name not in _LOCAL and name not in settings.allow_hosts:
        raise ApiError(
            403, f"host: found {host!r}; this server is for this machine only, by the name localhost or "
            "127.0.0.1; --allow-host names another" if settings.local else
            f"host: found {host!r}, expected one that --allow-host names", code="wrong_host",
        )  # fmt: skip


def check_origin(settings: Settings, headers: Headers, *, visited: bool) -> None:
    """Refuse what a page of another origin asks for: it may send some requests without asking first (CORS).

    Parameters
    ----------
    visited
        The path is for people too, who may follow a link of another site to it.

    Raises
    ------
    ApiError
        403.
    """
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    allowed = settings.cors_origins
    if site in ("same-origin", "none") or "*" in allowed or (origin is not None and origin in allowed):
        return
    if origin is None:
        foreign = site == "cross-site" and not (visited and headers.get("sec-fetch-mode") == "navigate")
    else:
        foreign = origin.partition("://")[2] != headers.get("host", "")
    if foreign:
        who = origin if origin not in (None, "null") else "a page of another site"
        raise ApiError(
            403, f"origin: {who} may not use this server; --cors-origin lets it", code="wrong_origin"
        )
