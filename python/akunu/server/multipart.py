"""Forms with files, `multipart/form-data` (RFC 7578), read from memory: the gate has bounded their size."""

from __future__ import annotations

from dataclasses import dataclass
from email.message import Message
from email.parser import HeaderParser
from typing import Final

from starlette.requests import ClientDisconnect, Request

from akunu.server.errors import ApiError

__all__ = ["FORM", "Part", "read_form"]

FORM: Final = "multipart/form-data"
MAX_PARTS: Final = 64
_HEADERS: Final = 8192
"""Bytes."""


@dataclass(frozen=True, slots=True)
class Part:
    """A field of a form.

    Attributes
    ----------
    name : str
        Of the field.
    filename : str or None
        None for a field that is no file.
    data : bytes
        What it holds.
    """

    name: str
    filename: str | None
    data: bytes


async def read_form(request: Request) -> list[Part]:
    """The parts of a form, in order.

    Raises
    ------
    ApiError
        415: it is no form; 400: it is not whole, or against the rules.
    """
    head = _headers("content-type: " + request.headers.get("content-type", ""))
    boundary = head.get_param("boundary")
    if head.get_content_type() != FORM or not isinstance(boundary, str) or not boundary:
        raise ApiError(
            415, f"content-type: found {request.headers.get('content-type', 'none')!r}, expected {FORM} with "
            "a boundary", param="content-type",
        )  # fmt: skip
    try:
        body = await request.body()
    except ClientDisconnect as error:
        raise ApiError(400, "the client went away before the end of the body") from error
    pieces = (b"\r\n" + body).split(b"\r\n--" + boundary.encode("latin-1", "replace"))
    if len(pieces) < 2 or not pieces[-1].startswith(b"--"):
        raise _broken("has no end")
    if len(pieces) - 2 > MAX_PARTS:
        raise _broken(f"has {len(pieces) - 2} parts, at most {MAX_PARTS} are expected")
    return [_part(piece) for piece in pieces[1:-1]]


def _part(piece: bytes) -> Part:
    head, separator, data = piece.removeprefix(b"\r\n").partition(b"\r\n\r\n")
    if not separator or len(head) > _HEADERS:
        raise _broken("has a part without a head")
    headers = _headers(head.decode("utf-8", "replace"))
    name = headers.get_param("name", header="content-disposition")
    if headers.get_content_disposition() != "form-data" or not isinstance(name, str):
        raise _broken("has a part without a name")
    return Part(name, headers.get_filename(), data)


def _headers(text: str) -> Message:
    return HeaderParser().parsestr(text, headersonly=True)


def _broken(why: str) -> ApiError:
    return ApiError(400, f"the body is no whole form: it {why}", code="invalid_form")
