"""OpenAI's completions of a prompt: `/v1/completions`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from akunu.api.model import Model
from akunu.api.results import Completion, Piece, Stats
from akunu.api.streams import AsyncStream
from akunu.server.conversations import finish_reason
from akunu.server.errors import ApiError, error_body
from akunu.server.fields import read_fields
from akunu.server.generations import MAX_GENERATIONS, RequestRecord, Server, generations, together
from akunu.server.openai_chat import StreamOptions
from akunu.server.openai_fields import ResponseFormat
from akunu.server.prompt_progress import Progress, progress_of
from akunu.server.prompts import infill_ids, prompt_ids, prompt_logprobs
from akunu.server.replies import (
    FINGERPRINT,
    json_response,
    new_id,
    openai_usage,
    timings,
    token_entries,
)
from akunu.server.sampling_fields import SamplingFields, stop_texts
from akunu.server.sse import DONE, EventStream, event, unless_gone

__all__ = ["CompletionRequest", "completions"]

PATH = "/v1/completions"
DEFAULT_TOKENS = 16
"""OpenAI's default of max_tokens here."""


class CompletionRequest(SamplingFields, kw_only=True):
    """The request of `/v1/completions`: OpenAI's fields, and extensions."""

    model: str = ""
    """Without a name it is the first that there is, as with llama-server and vLLM."""
    prompt: str | list[str | int | list[int]]
    suffix: str | None = None
    max_tokens: int | None = None
    n: Annotated[int, Meta(ge=1, le=MAX_GENERATIONS)] | None = None
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

    def options(self) -> dict[str, Any]:
        """Arguments of the generation."""
        options = self.sampling() | {
            "max_tokens": self.max_tokens,  # -1: no limit
            "stop": stop_texts(self.stop),
            "logprobs": self.logprobs,
            "grammar": self.grammar or None,
            "regex": self.regex or None,
            "choice": self.choice,
        }
        if self.response_format is not None:
            options |= self.response_format.options()
        options = {name: value for name, value in options.items() if value is not None}
        return {"max_tokens": DEFAULT_TOKENS} | options | self.foreign(options)

    def prompts(self) -> list[str | list[int]]:
        """Each prompt, as a text or as ids."""
        given = self.prompt
        if isinstance(given, str):
            return [given]
        ids = [each for each in given if isinstance(each, int)]
        if ids and len(ids) == len(given):
            return [ids]
        prompts = [each for each in given if not isinstance(each, int)]
        if len(prompts) != len(given) or not 0 < len(given) * (self.n or 1) <= MAX_GENERATIONS:
            raise ApiError(
                400, f"prompt: expected a text, token ids, or 1 to {MAX_GENERATIONS} of either (n times)",
                param="prompt", code="invalid_value",
            )  # fmt: skip
        return prompts


@dataclass(frozen=True, slots=True)
class _Step:
    model: Model
    text: str
    piece: Piece | None = None
    completion: Completion | None = None
    echoed: Piece | None = None
    """The prompt: the first of its tokens, which has no log-probability, and those of the others."""
    stats: Stats | None = None
    """The times so far, where they are wanted; of several texts only at the end of each."""


async def completions(request: Request) -> Response:
    """Texts that go on from prompts."""
    server: Server = request.app.state.server
    record = RequestRecord.of(request)
    fields = await read_fields(request, CompletionRequest)
    fields.model = fields.model or server.models.first().spec.name
    record.stream = bool(fields.stream)
    head: dict[str, Any] = {
        "id": new_id("cmpl-"),
        "object": "text_completion",
        "created": int(time.time()),
        "model": fields.model,
        "system_fingerprint": FINGERPRINT,
    }
    if record.ignored:
        head["warnings"] = record.ignored
    steps = _steps(server, record, fields)
    if fields.stream:
        return EventStream(
            _events(steps, fields, head), server.settings, on_error=lambda e: event(error_body(e, PATH))
        )
    return json_response(await unless_gone(request, _whole(steps, fields, head)))


async def _steps(
    server: Server, record: RequestRecord, fields: CompletionRequest
) -> AsyncGenerator[tuple[int, _Step], None]:
    n = fields.n or 1
    prompts = await server.workers.sized(record.bytes, fields.prompts)
    starts = [partial(_start, prompt, fields) for prompt in prompts for _ in range(n)]
    async with generations(server, record, fields.model, starts, fields.options()) as found:
        for i, start in enumerate(starts if fields.echo else ()):
            yield i, await asyncio.to_thread(_echo, found[i].model, start.args[0], fields)
        async with aclosing(together(found)) as pieces:
            async for i, piece in pieces:
                generation = found[i]
                alone = len(found) == 1 and not isinstance(piece, Progress)
                timed = fields.timings_per_token and (piece is None or alone)
                stats = generation.stats if timed else None
                if piece is None:
                    yield i, _Step(generation.model, "", None, generation.completion, stats=stats)
                else:
                    yield i, _Step(generation.model, str(piece), piece, stats=stats)


def _ids(model: Model, prompt: str | list[int], fields: CompletionRequest) -> list[int]:
    """The tokens of a prompt that is continued."""
    if not isinstance(prompt, str):
        return prompt
    if fields.suffix:
        return infill_ids(model, prompt, fields.suffix)
    return prompt_ids(
        model,
        prompt,
        parse_special=fields.parse_special is not False,
        add_special=fields.add_special_tokens is not False,
    )


def _start(
    prompt: str | list[int], fields: CompletionRequest, model: Model, options: dict[str, Any]
) -> AsyncStream:
    return model.astream(_ids(model, prompt, fields), **options)


def _echo(model: Model, prompt: str | list[int], fields: CompletionRequest) -> _Step:
    """The prompt as if it had been written, with its log-probabilities if those are wanted."""
    text = prompt if isinstance(prompt, str) else model.detokenize(prompt)
    if fields.logprobs is None:
        return _Step(model, text)
    ids = _ids(model, prompt, fields)
    piece = Piece(text)
    piece.ids = ids[:1]
    piece.logprobs = prompt_logprobs(model, ids, fields.logprobs)
    return _Step(model, text, echoed=piece)


async def _whole(
    steps: AsyncGenerator[tuple[int, _Step], None], fields: CompletionRequest, head: dict[str, Any]
) -> dict[str, Any]:
    written: dict[int, str] = {}
    logprobs: dict[int, _Logprobs] = {}
    ends: dict[int, Completion] = {}
    async with aclosing(steps):
        async for i, step in steps:
            written[i] = written.get(i, "") + step.text
            if fields.logprobs is not None:
                logprobs.setdefault(i, _Logprobs()).add(step)
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
    told = {"timings": timings(ends[0].stats)} if fields.timings_per_token and ends else {}
    return {**head, "choices": choices, "usage": usage, **told}


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
            more: dict[str, Any] = dict(progress_of(step.piece))
            if fields.timings_per_token and step.stats is not None:
                more = {**more, "timings": timings(step.stats)}
            if fields.logprobs is not None and (step.piece is not None or step.echoed is not None):
                counted = logprobs.setdefault(i, _Logprobs())
                counted.add(step)
                found = counted.fields()
                counted.clear()
            reason = None
            if step.completion is not None:
                ends[i] = step.completion
                reason = finish_reason(step.completion, False)
            choice = {"index": i, "text": step.text, "logprobs": found, "finish_reason": reason}
            yield event({**head, "choices": [choice], **more})
    if with_usage:
        usage = openai_usage([ends[i] for i in sorted(ends)], fields.n or 1)
        yield event({**head, "choices": [], "usage": usage})
    yield DONE


class _Logprobs:
    """Log-probabilities of an output, as columns."""

    def __init__(self) -> None:
        self._offset = 0
        self.clear()

    def clear(self) -> None:
        """Forget the tokens, but not how long the output is."""
        self._tokens: list[str] = []
        self._values: list[float | None] = []
        self._top: list[dict[str, float] | None] = []
        self._offsets: list[int] = []

    def add(self, step: _Step) -> None:
        """The tokens of a step."""
        if step.echoed is not None:
            first = step.model.tokenizer.id_to_piece(step.echoed.ids[0]).decode("utf-8", "replace")
            self._add(first, None, None)
        for piece in (step.echoed, step.piece):
            for entry in token_entries(step.model, piece) if piece is not None else ():
                top = {each["token"]: each["logprob"] for each in entry["top_logprobs"]}
                self._add(entry["token"], entry["logprob"], top)

    def _add(self, token: str, value: float | None, top: dict[str, float] | None) -> None:
        self._tokens.append(token)
        self._values.append(value)
        self._top.append(top)
        self._offsets.append(self._offset)
        self._offset += len(token)

    def fields(self) -> dict[str, Any]:
        """Return the columns as OpenAI writes them."""
        return {
            "tokens": self._tokens,
            "token_logprobs": self._values,
            "top_logprobs": self._top,
            "text_offset": self._offsets,
        }
