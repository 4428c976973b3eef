"""The body of a request, read into a struct. What is not understood is refused by name, never ignored."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, ClassVar, Final, TypeVar, get_args

import msgspec
import numpy as np
from starlette.requests import ClientDisconnect, Request

from akunu.server.errors import ApiError
from akunu.server.many_values import Pieces, joined_items, looked_through
from akunu.server.workers import LARGE, Workers

__all__ = [
    "Fields",
    "form_fields",
    "joined",
    "query_fields",
    "read_fields",
    "read_list",
    "refusal",
    "refuse_others",
    "without_nulls",
]

_UNKNOWN: Final = re.compile(r"unknown field `(?P<name>[^`]*)`(?: - at `\$\.?(?P<at>[^`]*)`)?")
_MISSING: Final = re.compile(r"missing required field `(?P<name>[^`]*)`(?: - at `\$\.?(?P<at>[^`]*)`)?")
_STEP: Final = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
_CONVERSATIONS: Final = ("messages[", "input[")
"""Fields with what was said before."""
_MOST_NULLS: Final = 64
"""Names of unknown fields, by their places, that may be null in one request."""
_PLACE: Final = re.compile(r" - at (?:`key` in )?`\$\.?(?P<at>[^`]*)`")

_CARELESS: Final = ("", "application/x-www-form-urlencoded", "text/plain")
"""Types of programs that name none: curl says `-d` is a form, and Ollama takes everything."""
_BY_PAGES: Final = ("origin", "sec-fetch-site")
"""The headers in which a browser names the page that sends something, which the page cannot leave out."""

F = TypeVar("F", bound="Fields")
T = TypeVar("T")


class Fields(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """Fields of a request, or of an object in one: without cycles, which the collector would look for."""

    accepted: ClassVar[Mapping[str, tuple[Any, ...] | None]] = {}
    """Fields that can only have these values, or be null: what is refused is the rest. None: those that a
    base accepts are not all."""
    open_objects: ClassVar[tuple[str, ...]] = ()
    """Objects in which unknown fields are left out with a warning, as the API's own server does."""
    long_lists: ClassVar[tuple[str, ...]] = ()
    """Lists that may have any number of items, whatever the context is; large ones are read in pieces."""


async def read_fields(request: Request, kind: type[F]) -> F:
    """The body of a request.

    Raises
    ------
    ApiError
        400 that names the field: unknown, of the wrong type, or with a value that is not supported.
    """
    server = request.app.state.server
    ignored: list[str] = request.scope["akunu.record"].ignored

    def decoded(pieces: list[bytes]) -> F:
        if not any(piece.strip() for piece in pieces):
            raise ApiError(400, "the body is empty, expected a JSON object", code="invalid_json")
        body = joined(pieces)
        if len(body) >= LARGE:
            found = looked_through(server, body, kind.long_lists)
            if found is not None:
                return _decoded_in_pieces(found, kind, ignored, server.settings.lenient)
        return _decoded(body, kind, ignored, server.settings.lenient)

    return await _read(request, decoded)


async def read_list(request: Request, kind: type[F]) -> list[F]:
    """The body of a request that is a list.

    Raises
    ------
    ApiError
        As of `read_fields`.
    """

    server = request.app.state.server

    def decoded(pieces: list[bytes]) -> list[F]:
        body = joined(pieces)
        if len(body) >= LARGE:
            looked_through(server, body, ())
        try:
            return msgspec.json.decode(body, type=list[kind])  # type: ignore[valid-type]
        except msgspec.ValidationError as error:
            raise refusal(str(error)) from error
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise ApiError(400, f"the body is not JSON: {error}", code="invalid_json") from error

    return await _read(request, decoded)


async def _read(request: Request, decode: Callable[[list[bytes]], T]) -> T:
    """Return what `decode` makes of the pieces of a request's body: in a thread, where it is large."""
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    by_page = any(name in request.headers for name in _BY_PAGES)
    if media != "application/json" and (by_page or media not in _CARELESS):
        # A page of another origin can send other types without asking the server first (CORS).
        raise ApiError(
            415, f"content-type: found {media or 'none'!r}, expected application/json", param="content-type"
        )
    encoding = request.headers.get("content-encoding", "identity")
    if encoding.strip().lower() != "identity":
        raise ApiError(
            415, f"content-encoding: found {encoding!r}, expected a body as it is", param="content-encoding"
        )
    try:
        pieces = [piece async for piece in request.stream() if piece]
    except ClientDisconnect as error:
        raise ApiError(400, "the client went away before the end of the body") from error
    workers: Workers = request.app.state.server.workers
    return await workers.sized(sum(map(len, pieces)), decode, pieces)


def joined(pieces: list[bytes]) -> bytes | memoryview:
    """Pieces as one; many are copied without Python's lock, which `bytes.join` keeps for 5 ms of 5 MB."""
    if len(pieces) < 2:
        return b"".join(pieces)
    whole, at = np.empty(sum(map(len, pieces)), np.uint8), 0
    for piece in pieces:
        whole[at : at + len(piece)] = np.frombuffer(piece, np.uint8)
        at += len(piece)
    return whole.data


def _decoded_in_pieces(pieces: Pieces, kind: type[F], ignored: list[str], lenient: bool) -> F:
    """The fields of a body that has a long list; between its pieces others have Python's lock."""
    whole: F | None = None

    def lists() -> Iterator[list[Any]]:
        nonlocal whole
        count = 0
        for body in pieces:
            notes: list[str] = []
            try:
                fields = _decoded(body, kind, notes, lenient)
            except ApiError as error:
                raise _further_on(error, pieces.name, count) from error
            ignored.extend(note for note in notes if note not in ignored)
            items = getattr(fields, pieces.name)
            if not isinstance(items, list):
                raise ApiError(400, f"{pieces.name}: it is there twice", param=pieces.name)
            count += len(items)
            whole = whole or fields
            yield items

    found = joined_items(lists())
    assert whole is not None
    setattr(whole, pieces.name, found)
    return whole


def _further_on(error: ApiError, name: str, count: int) -> ApiError:
    """The error with the number of an item as it is in the whole list."""

    def moved(text: str) -> str:
        return re.sub(rf"^{name}\[(\d+)\]", lambda place: f"{name}[{int(place[1]) + count}]", text)

    return ApiError(
        error.status, moved(str(error)), param=error.param and moved(error.param), code=error.code
    )


def _decoded(body: bytes | memoryview, kind: type[F], ignored: list[str], lenient: bool) -> F:
    try:
        try:
            fields = msgspec.json.decode(body, type=kind)
        except msgspec.ValidationError as error:
            fields = without_nulls(msgspec.json.decode(body), kind, error, ignored, lenient=lenient)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise ApiError(400, f"the body is not JSON: {error}", code="invalid_json") from error
    refuse_others(fields, ignored=ignored if lenient else None)
    return fields


def without_nulls(
    data: Any,
    kind: type[F],
    error: msgspec.ValidationError,
    ignored: list[str] | None = None,
    *,
    lenient: bool = False,
) -> F:
    """The fields of data that cannot be read as it is, but without unknown ones that are null.

    A null asks for nothing. Clients repeat what a model said with the fields of their own classes, so there
    unknown ones are left out whatever they are, and everywhere if that is `lenient`; `ignored` gets a note
    of each.

    Raises
    ------
    ApiError
        400, as of `read_fields`: something else is wrong too.
    """
    for _ in range(_MOST_NULLS):
        unknown = _UNKNOWN.search(str(error))
        if unknown is None:
            break
        at, name = unknown["at"] or "", unknown["name"]
        dropped = _drop(data, at, name, any_value=lenient or at in kind.open_objects)
        if not dropped:
            break
        if ignored is not None and any(value is not None for value in dropped):
            ignored.append(f"{at}.{name}".lstrip(".") + ": no such field is known here; it was left out")
        try:
            return msgspec.convert(data, kind)
        except msgspec.ValidationError as next_error:
            error = next_error
    raise refusal(str(error)) from error


def _drop(data: Any, at: str, name: str, *, any_value: bool) -> list[Any]:
    """Leave out a field where an error was found, and in other items of the lists above; its values.

    It has to be null there, or in what the model said, but for `any_value`.
    """
    places, found = [data], data
    for n, (key, index) in enumerate(_STEP.findall(at)):
        if index:
            found = found[int(index)] if isinstance(found, list) and int(index) < len(found) else None
            places = [item for place in places if isinstance(place, list) for item in place]
            if n == 1 and at.startswith(_CONVERSATIONS) and _by_model(found) and not any_value:
                places, any_value = [place for place in places if _by_model(place)], True
        else:
            found = found.get(key) if isinstance(found, dict) else None
            places = [place[key] for place in places if isinstance(place, dict) and key in place]
    if not isinstance(found, dict) or name not in found or not (any_value or found[name] is None):
        return []
    return [
        place.pop(name)
        for place in places
        if isinstance(place, dict) and name in place and (any_value or place[name] is None)
    ]


def _by_model(item: Any) -> bool:
    """Whether an item of a conversation is what the model said, thought or called."""
    return isinstance(item, dict) and (
        item.get("role") == "assistant" or item.get("type") in ("function_call", "reasoning")
    )


def form_fields(values: Mapping[str, object], kind: type[F]) -> F:
    """The fields of a form, whose values are texts.

    Raises
    ------
    ApiError
        As of `read_fields`.
    """
    try:
        fields = msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        raise refusal(str(error)) from error
    refuse_others(fields)
    return fields


def query_fields(request: Request, kind: type[F]) -> F:
    """The parameters in the address of a request.

    Raises
    ------
    ApiError
        As of `read_fields`.
    """
    pairs = request.query_params.multi_items()
    values = dict(pairs)
    for name in values:
        if [given for given, _ in pairs].count(name) > 1:
            raise ApiError(400, f"{name}: it is there twice", param=name, code="invalid_value")
    return form_fields(values, kind)


@cache
def _accepted(kind: type[Fields]) -> Mapping[str, tuple[Any, ...]]:
    """Return what a kind of fields accepts, and those that it is made of."""
    found: dict[str, tuple[Any, ...] | None] = {}
    for each in reversed(kind.__mro__):
        found |= each.__dict__.get("accepted", {})
    return {name: values for name, values in found.items() if values is not None}


@cache
def _looked_at(kind: type[Fields]) -> tuple[tuple[str, tuple[Any, ...] | None], ...]:
    """The fields of a kind that `refuse_others` looks at, with what each accepts; None: all, but not within.

    The messages of a chat may be 100,000, and most kinds of objects in them have nothing to look at.
    """
    known = _accepted(kind)
    types = {field.name: field.type for field in msgspec.structs.fields(kind)}
    return tuple(
        (name, known.get(name))
        for name in kind.__struct_fields__
        if name in known or any(_refuses(each, {kind}) for each in _fields_in(types[name]))
    )


def _fields_in(kind: Any) -> list[type[Fields]]:
    """The kinds of fields that a type is, or has within."""
    if isinstance(kind, type) and issubclass(kind, Fields):
        return [kind]
    return [found for part in get_args(kind) for found in _fields_in(part)]


def _refuses(kind: type[Fields], seen: set[type[Fields]]) -> bool:
    """Whether a kind, or one within it, has fields that accept only some values."""
    if _accepted(kind):
        return True
    within = [each for field in msgspec.structs.fields(kind) for each in _fields_in(field.type)]
    return any(_refuses(each, seen | {kind}) for each in within if each not in seen)


def refuse_others(fields: Fields, at: str = "", ignored: list[str] | None = None) -> None:
    """Refuse values that are not among those `accepted`, here and in the objects within.

    With `ignored`, they are left out, and noted there.
    """
    for name, accepted in _looked_at(type(fields)):
        value = getattr(fields, name)
        if value is None:
            continue
        if accepted is not None and not _is_one_of(value, accepted):
            shown = " or ".join(msgspec.json.encode(each).decode() for each in (*accepted, None))
            if ignored is not None:
                setattr(fields, name, None)
                ignored.append(f"{at}{name}: this server supports only {shown}; it was left out")
                continue
            raise ApiError(
                400,
                f"{at}{name}: this server supports only {shown}; leave it out",
                param=f"{at}{name}",
                code="unsupported_value",
            )
        if isinstance(value, Fields):
            refuse_others(value, f"{at}{name}.", ignored)
        elif isinstance(value, list):
            for n, each in enumerate(value):
                if isinstance(each, Fields) and _looked_at(type(each)):
                    refuse_others(each, f"{at}{name}[{n}].", ignored)


def _is_one_of(value: object, values: Iterable[object]) -> bool:
    """Compare two values as JSON does: 0 is not false there."""
    return any(type(each) is type(value) and each == value for each in values)


def refusal(message: str) -> ApiError:
    """Return what `msgspec` found wrong, in words that begin with the name of the field."""
    unknown = _UNKNOWN.search(message)
    if unknown:
        at = unknown["at"]
        name = f"{at}.{unknown['name']}" if at else unknown["name"]
        return ApiError(400, f"{name}: no such field is known here", param=name, code="unknown_field")
    missing = _MISSING.search(message)
    if missing:
        at = missing["at"]
        name = f"{at}.{missing['name']}" if at else missing["name"]
        return ApiError(400, f"{name}: it is missing", param=name, code="missing_field")
    place = _PLACE.search(message)
    name = place["at"] if place else ""
    text = _PLACE.sub("", message)
    text = text[:1].lower() + text[1:]
    return ApiError(
        400, f"{name or 'the body'}: {text}".replace("`", ""), param=name or None, code="invalid_type"
    )
