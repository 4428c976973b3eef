"""The gate that every request passes: who it is, whether it may, and what the log says of it."""

from __future__ import annotations

import logging
import re
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from ipaddress import ip_network
from typing import Final

from h11 import LocalProtocolError
from starlette.datastructures import Headers, MutableHeaders
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from akunu.server.auth import ANYONE, Holder, key_digest, presented_key
from akunu.server.bodies import Bodies, Body, too_large
from akunu.server.errors import ApiError, as_api_error, error_response
from akunu.server.generations import RequestRecord
from akunu.server.limits import Entries, Guesses, RateLimit
from akunu.server.metrics import Meters
from akunu.server.settings import Settings
from akunu.server.site import PATHS
from akunu.server.workers import CLIENT

__all__ = ["Gate"]

_log = logging.getLogger("akunu.server")

_OPEN: Final = ("/health", "/ready")
"""Paths that need no key and count for no limit, nor as another client: who asks is a machine, and often."""
_UPLOADS: Final = "/v1/audio/"
_ON_DISK: Final = 8
"""Times the bytes that bodies may have in memory, for those that are kept on disk."""
_ADMIN: Final = ("/admin/", "/api/pull", "/models/", "/v1/load_lora_adapter", "/v1/unload_lora_adapter")
_ADMIN_CHANGES: Final = ("/lora-adapters",)
"""Paths that anyone may read."""
_ID: Final = re.compile(r"[\w.:-]{1,64}")


class Gate:
    """ASGI middleware around the application.

    Parameters
    ----------
    app
        What is behind the gate.
    settings, meters, entries
        The server's own.
    routes
        What the server has; the log and the metrics put all other paths together.
    """

    def __init__(
        self, app: ASGIApp, settings: Settings, meters: Meters, entries: Entries, routes: Sequence[Route]
    ) -> None:
        self._app = app
        self._settings = settings
        self._meters = meters
        self._routes = routes
        self._rate = RateLimit(settings.requests_per_minute)
        self._guesses = Guesses()
        self._entries = entries
        self._bodies = Bodies(settings.max_bodies, self._entries.others_lately)
        self._uploads = Bodies(settings.max_bodies * _ON_DISK, self._entries.others_lately)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        given = headers.get("x-request-id", "")
        record = RequestRecord(given if _ID.fullmatch(given) else uuid.uuid4().hex, time.monotonic())
        scope["akunu.record"] = record
        status = 0
        client = ""
        body: Body | None = None

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                answered = MutableHeaders(scope=message)
                answered["x-request-id"] = record.id
                if _has_two_ends(headers):
                    answered["connection"] = "close"
            with suppress(LocalProtocolError):  # the body is no HTTP: the connection has been closed
                await send(message)

        try:
            try:
                self._check(scope, headers, record)
                client = record.holder.id or _address(scope)
                CLIENT.set(client)
                if scope["path"] not in _OPEN:
                    await self._entries.turn(client)
                body = self._body(scope, headers, client, receive)
            except ApiError as error:
                await error_response(error, scope)(scope, receive, answer)
                return

            async def receive_some() -> Message:
                message = await body.receive()
                record.bytes = body.size
                if message["type"] == "http.disconnect":
                    await self._entries.turn(client)  # to end takes as long as to begin
                return message

            try:
                await self._app(scope, receive_some, answer)
            except Exception as error:
                told = as_api_error(error)
                if not status:
                    await error_response(told, scope)(scope, receive, answer)
        finally:
            self._record(scope, record, status)
            for form in record.files:
                await form.close()
            if body is not None:
                body.close()

    def _body(self, scope: Scope, headers: Headers, client: str, receive: Receive) -> Body:
        """The body that is going to be read; refused before that, if its length is said and too much."""
        if _has_two_ends(headers):
            raise ApiError(400, "the body has a content-length and comes in chunks, expected one of them")
        settings, upload = self._settings, scope["path"].startswith(_UPLOADS)
        most = settings.max_upload if upload else settings.max_body
        if _length(headers) > most:
            raise too_large(most)
        return Body(self._uploads if upload else self._bodies, client, receive, most, settings.max_seconds)

    def _check(self, scope: Scope, headers: Headers, record: RequestRecord) -> None:
        """Find out who asks; raises what keeps them out."""
        settings, path = self._settings, scope["path"]
        _check_host(settings, headers)
        open_to_all = path in _OPEN or path == PATHS[0] or path.startswith(PATHS[1])
        _check_origin(settings, headers, visited=open_to_all)
        if open_to_all or scope["method"] == "OPTIONS":
            return
        address = _address(scope)
        key = presented_key(dict(headers))
        guards = bool(settings.keys or settings.admin_keys)
        if guards and key is not None:
            self._guesses.check(address, key_digest(key))
        holder = settings.keys.holder(key)
        admin = settings.admin_keys.holder(key)
        found = admin or holder
        record.holder = found or ANYONE
        if guards and key is not None:
            self._guesses.note(address, found)
        changes = path in _ADMIN_CHANGES and scope["method"] == "POST"
        if changes or path.startswith(_ADMIN):
            self._check_admin(admin)
        elif settings.keys and found is None:
            what = "needs an API key" if key is None else "does not know this API key"
            raise ApiError(401, f"authorization: this server {what}", code="invalid_api_key")
        self._rate.take(found.id if found else address)

    def _check_admin(self, admin: Holder | None) -> None:
        settings = self._settings
        if admin is None and (settings.admin_keys or settings.keys or not settings.local):
            status = 401 if settings.admin_keys else 403
            raise ApiError(
                status, "authorization: this needs an admin key (--admin-key-file)", code="invalid_api_key"
            )

    def _route(self, path: str) -> str:
        """The path of the route that a request goes to, without what it names there."""
        for route in self._routes:
            if route.path_regex.match(path):
                return route.path_format
        return "other"

    def _record(self, scope: Scope, record: RequestRecord, status: int) -> None:
        path = scope["path"]
        route = self._route(path)
        status = status or 499  # the client went away before there was an answer
        seconds = time.monotonic() - record.at
        self._meters.requests.labels(route, str(status)).inc()
        self._meters.seconds.labels(route).observe(seconds)
        if path in _OPEN and status == 200:
            return
        first = record.first_token_seconds
        _log.info(
            "%s %s %s %d key=%s model=%s stream=%d prompt=%d cached=%d generated=%d first=%s total=%.3f "
            "end=%s",
            record.id, scope["method"], route, status, record.holder.name, record.model, record.stream,
            record.prompt_tokens, record.cached_tokens, record.generated_tokens,
            "-" if first is None else f"{first:.3f}", seconds, ",".join(record.reasons) or "-",
        )  # fmt: skip


def _has_two_ends(headers: Headers) -> bool:
    """Whether a proxy may have taken a part of the body for another request (RFC 9112, 6.1)."""
    return "transfer-encoding" in headers and "content-length" in headers


def _length(headers: Headers) -> int:
    value = headers.get("content-length", "")
    return int(value) if value.isdecimal() else 0


def _address(scope: Scope) -> str:
    """Return where a request comes from: an address, or the network of one where clients have many (IPv6)."""
    client = scope.get("client")
    host: str = client[0] if client else "-"
    if ":" in host:
        with suppress(ValueError):
            return str(ip_network((host.partition("%")[0], 64), strict=False))
    return host


_LOCAL: Final = ("localhost", "127.0.0.1", "[::1]", "::1")


def _check_host(settings: Settings, headers: Headers) -> None:
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


def _check_origin(settings: Settings, headers: Headers, *, visited: bool) -> None:
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
