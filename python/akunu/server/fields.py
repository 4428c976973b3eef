"""The body of a request, read into a struct. What is not understood is refused by name, never ignored."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, Final, TypeVar

import msgspec
from msgspec import Meta
from starlette.requests import ClientDisconnect, Request

from akunu.api.options import MAX_PRIORITY
from akunu.server.beside import Beside
from akunu.server.errors import ApiError

__all__ = [
    "Fields",
    "SamplingFields",
    "form_fields",
    "query_fields",
    "read_fields",
    "refusal",
    "refuse_others",
]

_UNKNOWN: Final = re.compile(r"unknown field `(?P<name>[^`]*)`(?: - at `\$\.?(?P<at>[^`]*)`)?")
_MISSING: Final = re.compile(r"missing required field `(?P<name>[^`]*)`(?: - at `\$\.?(?P<at>[^`]*)`)?")
_PLACE: Final = re.compile(r" - at (?:`key` in )?`\$\.?(?P<at>[^`]*)`")

F = TypeVar("F", bound="Fields")


class Fields(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Fields of a request, or of an object in one."""

    accepted: ClassVar[Mapping[str, tuple[Any, ...]]] = {}
    """Fields that can only have these values, or be null: what is refused is the rest."""


class SamplingFields(Fields, kw_only=True):
    """Arguments of a generation by the names of `GenerationOptions`, OpenAI's where that has them."""

    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    typical_p: float | None = None
    repeat_penalty: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    penalty_window: int | None = None
    logit_bias: dict[int, float] | None = None
    seed: int | None = None
    stop_token_ids: list[int] | None = None
    priority: Annotated[int, Meta(ge=-MAX_PRIORITY, le=MAX_PRIORITY)] | None = None

    def sampling(self) -> dict[str, Any]:
        """Those that were given, as arguments of a generation."""
        names = SamplingFields.__struct_fields__
        found = {name: value for name in names if (value := getattr(self, name)) is not None}
        if found.get("seed") == -1:  # a seed of its own, as without one
            del found["seed"]
        return found


async def read_fields(request: Request, kind: type[F]) -> F:
    """The body of a request.

    Raises
    ------
    ApiError
        400 that names the field: unknown, of the wrong type, or with a value that is not supported.
    """
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != "application/json":
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
        body = await request.body()
    except ClientDisconnect as error:
        raise ApiError(400, "the client went away before the end of the body") from error
    beside: Beside = request.app.state.server.beside
    return await beside.sized(len(body), _decoded, body, kind)


def _decoded(body: bytes, kind: type[F]) -> F:
    if not body.strip():
        raise ApiError(400, "the body is empty, expected a JSON object", code="invalid_json")
    try:
        fields = msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise refusal(str(error)) from error
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise ApiError(400, f"the body is not JSON: {error}", code="invalid_json") from error
    refuse_others(fields)
    return fields


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


def refuse_others(fields: Fields, at: str = "") -> None:
    """Refuse values that are not among those `accepted`, here and in the objects within."""
    for name in fields.__struct_fields__:
        value = getattr(fields, name)
        accepted = fields.accepted.get(name)
        if accepted is not None and not _is_one_of(value, (*accepted, None)):
            shown = " or ".join(msgspec.json.encode(each).decode() for each in (*accepted, None))
            raise ApiError(
                400,
                f"{at}{name}: this server supports only {shown}; leave it out",
                param=f"{at}{name}",
                code="unsupported_value",
            )
        if isinstance(value, Fields):
            refuse_others(value, f"{at}{name}.")
        elif isinstance(value, list):
            for n, each in enumerate(value):
                if isinstance(each, Fields):
                    refuse_others(each, f"{at}{name}[{n}].")


def _is_one_of(value: object, values: Iterable[object]) -> bool:
    """As JSON: 0 is not false there."""
    return any(type(each) is type(value) and each == value for each in values)


def refusal(message: str) -> ApiError:
    """What `msgspec` found wrong, in words that begin with the name of the field."""
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
