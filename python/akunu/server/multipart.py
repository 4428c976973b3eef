"""Forms with files, `multipart/form-data` (RFC 7578): a file of more than a MiB is kept on disk meanwhile."""

from __future__ import annotations

import asyncio
from typing import IO, Final

from starlette.datastructures import FormData
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request

from akunu.server.errors import ApiError
from akunu.server.generations import RequestRecord

__all__ = ["FORM", "read_form"]

FORM: Final = "multipart/form-data"
MAX_PARTS: Final = 64
MAX_TEXT: Final = 1 << 20
"""Bytes of a field that is no file."""


class _Parser(MultiPartParser):
    ended = False

    def on_end(self) -> None:
        self.ended = True

    def give_up(self) -> None:
        """Close the files, in a thread: one on disk takes milliseconds, and sixty clients may go at once."""
        asyncio.get_running_loop().run_in_executor(None, _close, self._files)

    def on_headers_finished(self) -> None:
        super().on_headers_finished()
        self._files += self._files_to_close_on_error
        self._files_to_close_on_error.clear()  # it would close them in the event loop

    def __init__(self, request: Request) -> None:
        super().__init__(
            request.headers, request.stream(), max_files=1, max_fields=MAX_PARTS, max_part_size=MAX_TEXT
        )
        self._files = list[IO[bytes]]()


def _close(files: list[IO[bytes]]) -> None:
    for file in files:
        file.close()


async def read_form(request: Request) -> FormData:
    """The fields of a form, in order; its files are closed with the request.

    Raises
    ------
    ApiError
        415: it is no form; 400: it is not whole, or against the rules.
    """
    kind = request.headers.get("content-type", "")
    if kind.partition(";")[0].strip().lower() != FORM or "boundary=" not in kind.lower():
        raise ApiError(
            415, f"content-type: found {kind or 'none'!r}, expected {FORM} with a boundary",
            param="content-type",
        )  # fmt: skip
    parser = _Parser(request)
    try:
        try:
            form = await parser.parse()
        except BaseException:
            parser.give_up()
            raise
    except ClientDisconnect as error:
        raise ApiError(400, "the client went away before the end of the body") from error
    except MultiPartException as error:
        raise _broken(error.message) from error
    RequestRecord.of(request).files.append(form)
    if not parser.ended:
        raise _broken("It has no end.")
    return form


def _broken(why: str) -> ApiError:
    return ApiError(400, f"the body is no whole form: {why}", code="invalid_form")
