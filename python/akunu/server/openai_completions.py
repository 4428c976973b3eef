"""OpenAI's completions of a text: `/v1/completions`."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar

from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from akunu.api.model import Model
from akunu.api.results import Completion, Piece
from akunu.api.streams import AsyncStream
from akunu.server.conversations import finish_reason
from akunu.server.errors import ApiError, error_body
from akunu.server.fields import SamplingFields, read_fields
from akunu.server.openai_chat import StreamOptions
from akunu.server.openai_fields import ResponseFormat
from akunu.server.prompts import infill_ids, prompt_ids
from akunu.server.replies import FINGERPRINT, json_response, new_id, openai_usage, token_entries
from akunu.server.sse import DONE, EventStream, event, unless_gone
from akunu.server.texts import MAX_TEXTS, Asked, Server, Text, texts, together

__all__ = ["CompletionRequest", "completions"]

PATH = "/v1/completions"
DEFAULT_TOKENS = 16
"""OpenAI's default of max_tokens here."""


class CompletionRequest(SamplingFields):
    """What `/v1/completions` understands: OpenAI's fields, and extensions."""

    accepted: ClassVar = {"best_of": (1,)}

    model: str
    prompt: str | list[str | int | list[int]]
    suffix: str | None = None
    max_tokens: int | None = None
    n: Annotated[int, Meta(ge=1, le=MAX_TEXTS)] | None = None
    stop: str | list[str] | None = None
    logprobs: Annotated[int, Meta(ge=0, le=20)] | None = None
    echo: bool | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    user: str | None = None
    # Extensions.
    grammar: str | None = None
    regex: str | None = None
    choice: list[str] | None = None
    response_format: ResponseFormat | None = None
    parse_special: bool | None = None
    add_special_tokens: bool | None = None
    # Known, and refused.
    best_of: Any = None

    def options(self) -> dict[str, Any]:
        """Arguments of the generation."""
        options = self.sampling() | {
            "max_tokens": DEFAULT_TOKENS if self.max_tokens is None else self.max_tokens,  # -1: no limit
            "stop": self.stop,
            "logprobs": self.logprobs,
            "grammar": self.grammar,
            "regex": self.regex,
            "choice": self.choice,
        }
        if self.response_format is not None:
            options |= self.response_format.options()
        return {name: value for name, value in options.items() if value is not None}

    def prompts(self) -> list[str | list[int]]:
        """Each prompt, as a text or as ids."""
        given = self.prompt
        if isinstance(given, str):
            return [given]
        ids = [each for each in given if isinstance(each, int)]
        if ids and len(ids) == len(given):
            return [ids]
        prompts = [each for each in given if not isinstance(each, int)]
        if len(prompts) != len(given) or not 0 < len(given) * (self.n or 1) <= MAX_TEXTS:
            raise ApiError(
                400, f"prompt: expected a text, token ids, or 1 to {MAX_TEXTS} of either (together with n)",
                param="prompt", code="invalid_value",
            )  # fmt: skip
        return prompts


@dataclass(frozen=True, slots=True)
class _Step:
    model: Model
    text: str
    piece: Piece | None = None
    completion: Completion | None = None


async def completions(request: Request) -> Response:
    """Texts that go on from prompts."""
    server: Server = request.app.state.server
    asked = Asked.of(request)
    fields = await read_fields(request, CompletionRequest)
    if fields.echo and fields.logprobs is not None:
        raise ApiError(
            400, "echo: not together with logprobs, which are known for what is written only", param="echo",
            code="unsupported_value",
        )  # fmt: skip
    asked.stream = bool(fields.stream)
    head: dict[str, Any] = {
        "id": new_id("cmpl-"),
        "object": "text_completion",
        "created": int(time.time()),
        "model": fields.model,
        "system_fingerprint": FINGERPRINT,
    }
    steps = _steps(server, asked, fields)
    if fields.stream:
        return EventStream(
            _events(steps, fields, head), server.settings, on_error=lambda e: event(error_body(e, PATH))
        )
    return json_response(await unless_gone(request, _whole(steps, fields, head)))


async def _steps(
    server: Server, asked: Asked, fields: CompletionRequest
) -> AsyncGenerator[tuple[int, _Step], None]:
    n = fields.n or 1
    starts = [partial(_start, prompt, fields) for prompt in fields.prompts() for _ in range(n)]
    async with texts(server, asked, fields.model, starts, fields.options()) as found:
        parts = [_text_steps(text, start.args[0], fields) for text, start in zip(found, starts, strict=True)]
        async with aclosing(together(parts)) as steps:
            async for step in steps:
                yield step


def _start(
    prompt: str | list[int], fields: CompletionRequest, model: Model, options: dict[str, Any]
) -> AsyncStream:
    if not isinstance(prompt, str):
        return model.astream(prompt, **options)
    if fields.suffix:
        return model.astream(infill_ids(model, prompt, fields.suffix), **options)
    ids = prompt_ids(
        model,
        prompt,
        parse_special=fields.parse_special is not False,
        add_special=fields.add_special_tokens is not False,
    )
    return model.astream(ids, **options)


async def _text_steps(
    text: Text, prompt: str | list[int], fields: CompletionRequest
) -> AsyncGenerator[_Step, None]:
    model = text.model
    if fields.echo:
        yield _Step(model, prompt if isinstance(prompt, str) else model.detokenize(prompt))
    async with aclosing(text.pieces()) as pieces:
        async for piece in pieces:
            yield _Step(model, str(piece), piece)
    yield _Step(model, "", None, text.completion)


async def _whole(
    steps: AsyncGenerator[tuple[int, _Step], None], fields: CompletionRequest, head: dict[str, Any]
) -> dict[str, Any]:
    written: dict[int, str] = {}
    logprobs: dict[int, _Logprobs] = {}
    ends: dict[int, Completion] = {}
    async with aclosing(steps):
        async for i, step in steps:
            written[i] = written.get(i, "") + step.text
            if step.piece is not None and fields.logprobs is not None:
                logprobs.setdefault(i, _Logprobs()).add(step.model, step.piece)
            if step.completion is not None:
                ends[i] = step.completion
    choices = [
        {
            "index": i,
            "text": written[i],
            "logprobs": logprobs[i].fields() if i in logprobs else None,
            "finish_reason": finish_reason(ends[i], False),
        }
        for i in sorted(ends)
    ]
    usage = openai_usage([ends[i] for i in sorted(ends)], fields.n or 1)
    return {**head, "choices": choices, "usage": usage}


async def _events(
    steps: AsyncGenerator[tuple[int, _Step], None], fields: CompletionRequest, head: dict[str, Any]
) -> AsyncGenerator[bytes, None]:
    with_usage = bool(fields.stream_options and fields.stream_options.include_usage)
    if with_usage:
        head = {**head, "usage": None}
    logprobs: dict[int, _Logprobs] = {}
    ends: dict[int, Completion] = {}
    async with aclosing(steps):
        async for i, step in steps:
            found = None
            if step.piece is not None and fields.logprobs is not None:
                counted = logprobs.setdefault(i, _Logprobs())
                counted.add(step.model, step.piece)
                found = counted.fields()
                counted.clear()
            reason = None
            if step.completion is not None:
                ends[i] = step.completion
                reason = finish_reason(step.completion, False)
            choice = {"index": i, "text": step.text, "logprobs": found, "finish_reason": reason}
            yield event({**head, "choices": [choice]})
    if with_usage:
        usage = openai_usage([ends[i] for i in sorted(ends)], fields.n or 1)
        yield event({**head, "choices": [], "usage": usage})
    yield DONE


class _Logprobs:
    """Log-probabilities of a text, as columns."""

    def __init__(self) -> None:
        self._offset = 0
        self.clear()

    def clear(self) -> None:
        """Forget the tokens, but not how long the text is."""
        self._tokens: list[str] = []
        self._values: list[float] = []
        self._top: list[dict[str, float]] = []
        self._offsets: list[int] = []

    def add(self, model: Model, piece: Piece) -> None:
        """The tokens of a piece."""
        for entry in token_entries(model, piece):
            self._tokens.append(entry["token"])
            self._values.append(entry["logprob"])
            self._top.append({each["token"]: each["logprob"] for each in entry["top_logprobs"]})
            self._offsets.append(self._offset)
            self._offset += len(entry["token"])

    def fields(self) -> dict[str, Any]:
        """As OpenAI writes them."""
        return {
            "tokens": self._tokens,
            "token_logprobs": self._values,
            "top_logprobs": self._top,
            "text_offset": self._offsets,
        }
