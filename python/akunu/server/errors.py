"""Errors of the HTTP interface: one class, written in the shape of the API that the client speaks."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Scope

from akunu.base.errors import (
    AkunuError,
    AudioError,
    BusyError,
    ContextLengthError,
    ImageError,
    InvalidArgumentError,
    TemplateError,
    TokenizerError,
)

__all__ = ["ApiError", "as_api_error", "error_body", "error_response", "told"]

_log = logging.getLogger("akunu.server")

_KINDS: Final[Mapping[int, tuple[str, str]]] = {
    400: ("invalid_request_error", "invalid_request_error"),
    401: ("authentication_error", "authentication_error"),
    403: ("permission_error", "permission_error"),
    404: ("invalid_request_error", "not_found_error"),
    413: ("invalid_request_error", "request_too_large"),
    429: ("rate_limit_error", "rate_limit_error"),
    500: ("server_error", "api_error"),
    503: ("server_error", "overloaded_error"),
    504: ("server_error", "timeout_error"),
}
"""The names that OpenAI and Anthropic have for an error, by status."""


class ApiError(Exception):
    """An error that a client gets instead of an answer.

    Parameters
    ----------
    status
        HTTP status.
    message
        What was found, what was expected, and the remedy.
    param
        The field of the request that it is about.
    code
        A word for programs.
    retry_after
        Seconds after which it may go better.
    overflow
        Of a prompt that is too long: its tokens, those of the context, and the remedy. Each API has words of
        its own for that, by which clients know that they have to shorten the conversation.
    details
        More for programs, in Anthropic's form.
    lasting
        Another attempt would go the same way. OpenAI's and Anthropic's libraries, which repeat what a server
        has failed at (5xx), are told not to.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        retry_after: float | None = None,
        overflow: tuple[int, int, str] | None = None,
        details: Mapping[str, Any] | None = None,
        lasting: bool = False,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.param = param
        self.code = code
        self.retry_after = retry_after
        self.overflow = overflow
        self.details = details
        self.lasting = lasting


def as_api_error(error: Exception) -> ApiError:
    """Return what a client is told of an exception; the details of an unexpected one stay in the log."""
    if isinstance(error, ApiError):
        return error
    message = str(error)
    if isinstance(error, ContextLengthError):
        return ApiError(400, message, code="context_length_exceeded", overflow=error.sizes)
    if isinstance(error, InvalidArgumentError):
        return ApiError(400, message, param=error.argument, code="invalid_value")
    if isinstance(error, TemplateError):
        return ApiError(400, message, param="messages", code="chat_template")
    if isinstance(error, AudioError):
        return ApiError(400, message, param="file", code="invalid_audio")
    if isinstance(error, ImageError):
        return ApiError(400, message, param=error.argument, code="invalid_image")
    if isinstance(error, TokenizerError):
        return ApiError(400, message)
    if isinstance(error, BusyError):
        return ApiError(503, message, code="busy", retry_after=1)
    if isinstance(error, AkunuError):
        return ApiError(500, message, code="engine_error")
    _log.error("unexpected", exc_info=error)
    return ApiError(500, f"internal error: {type(error).__name__}; the server's log says where")


def error_body(error: ApiError, path: str) -> dict[str, Any]:
    """The error in the shape of the API that `path` belongs to."""
    openai, anthropic = _KINDS.get(error.status, _KINDS[400 if error.status < 500 else 500])
    if path.startswith("/v1/messages"):
        more = {} if error.details is None else {"details": error.details}
        return {"type": "error", "error": {"type": anthropic, "message": told(error, path), **more}}
    if path.startswith("/api/"):  # Ollama's
        return {"error": told(error, path)}
    fields = {"message": told(error, path), "type": openai, "param": error.param, "code": error.code}
    return {"error": fields}


def told(error: ApiError, path: str) -> str:
    """The message of an error in the words of the API that `path` belongs to."""
    if error.overflow is None:
        return error.message
    tokens, context, remedy = error.overflow
    if path.startswith("/v1/messages"):
        words = f"prompt is too long: {tokens} tokens > {context} maximum"
    else:
        given = "prompt" if path == "/v1/completions" else "messages"
        words = (
            f"This model's maximum context length is {context} tokens. However, your {given} resulted in "
            f"{tokens} tokens. Please reduce the length of the {given}."
        )
    return f"{words} ({remedy})" if remedy else words


def error_response(error: ApiError, scope: Scope) -> Response:
    """A response that tells a client of an error, in the shape of the API that it speaks."""
    path = scope["path"]
    if path.startswith("/v1/models") and "anthropic-version" in Headers(scope=scope):  # both APIs have it
        path = "/v1/messages"
    headers = {}
    if error.retry_after is not None:
        headers["retry-after"] = str(max(1, math.ceil(error.retry_after)))
    if error.lasting:
        headers["x-should-retry"] = "false"
    if error.status == 401:
        headers["www-authenticate"] = "Bearer"
    body = msgspec.json.encode(error_body(error, path))
    return Response(body, error.status, headers, "application/json")
