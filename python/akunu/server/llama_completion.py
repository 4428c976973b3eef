"""llama-server's completions: `/completion` of one prompt or several, and `/infill`, what stands in a gap."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import Annotated, Any, ClassVar, Final

from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from akunu.api.model import Model
from akunu.api.results import Completion, Piece
from akunu.api.streams import AsyncStream
from akunu.server.errors import ApiError, error_body
from akunu.server.fields import Fields, read_fields
from akunu.server.generations import (
    MAX_GENERATIONS,
    Generation,
    RequestRecord,
    Server,
    generations,
    together,
)
from akunu.server.llama_server import sampling_of
from akunu.server.prompt_progress import Progress, progress_of
from akunu.server.prompts import infill_ids, prompt_ids
from akunu.server.replies import json_response, timings, token_entries
from akunu.server.sampling_fields import SamplingFields, stop_texts
from akunu.server.sse import EventStream, event, unless_gone

__all__ = ["InfillRequest", "NativeRequest", "completion", "infill"]

_MOST_PROBS: Final = 20

Prompt = str | list[int | str]


class NativeRequest(SamplingFields, kw_only=True):
    """The request of `/completion`."""

    accepted: ClassVar[Mapping[str, tuple[Any, ...] | None]] = {"n_probs": None, "return_tokens": None}

    model: str | None = None
    prompt: str | list[int | str | list[int | str]]
    """A text, ids and texts that are one prompt, or a list of several prompts."""
    stream: bool | None = None
    stop: str | list[str] | None = None
    grammar: str | None = None
    max_tokens: int | None = None
    n_probs: Annotated[int, Meta(ge=0, le=_MOST_PROBS)] | None = None
    return_tokens: bool | None = None
    logit_bias: dict[str, float | bool] | list[tuple[int | str, float | bool]] | None = None  # type: ignore[assignment]
    """Biases by id or by text, all of whose tokens are meant; false forbids them."""
    response_fields: list[str] | None = None

    def options(self) -> dict[str, Any]:
        """Arguments of the generation; a bias may be of texts (`_with_ids`)."""
        options = self.sampling() | {
            "stop": stop_texts(self.stop),
            "grammar": self.grammar or None,
            "max_tokens": self.max_tokens,
            "logprobs": self.n_probs or None,
        }
        options = {name: value for name, value in options.items() if value is not None}
        return options | self.foreign(options)

    def prompts(self) -> Sequence[Prompt]:
        """Each prompt."""
        given = self.prompt
        if isinstance(given, str):
            return [given]
        flat = [each for each in given if not isinstance(each, list)]
        if any(isinstance(each, int) for each in flat):
            if len(flat) == len(given):
                return [flat]
        elif 0 < len(given) <= MAX_GENERATIONS:
            return [each for each in given if not isinstance(each, int)]
        raise ApiError(
            400, f"prompt: expected a text, a list of token ids and texts, or 1 to {MAX_GENERATIONS} of them",
            param="prompt", code="invalid_value",
        )  # fmt: skip

    def ids(self, model: Model, prompt: Prompt) -> list[int]:
        """The tokens of a prompt."""
        if isinstance(prompt, str):
            return prompt_ids(model, prompt)
        return [
            token
            for n, part in enumerate(prompt)
            for token in ([part] if isinstance(part, int) else prompt_ids(model, part, add_special=n == 0))
        ]

    def end(self, text: str, seconds: float) -> int | None:
        """Return where an output of so much text ends early, after so many seconds; None: it goes on."""
        return None


class OtherFile(Fields):
    """A file that the model may look at."""

    text: str
    filename: str = "file"


class InfillRequest(NativeRequest, kw_only=True):
    """The request of `/infill`: what stands before a gap and after it."""

    accepted: ClassVar[Mapping[str, tuple[Any, ...] | None]] = {"t_max_predict_ms": None}

    prompt: str = ""
    input_prefix: str
    input_suffix: str
    input_extra: list[OtherFile] | None = None
    n_indent: Annotated[int, Meta(ge=0)] | None = None
    """Spaces that each further line begins with, or the text ends before it."""
    t_max_predict_ms: float | None = None
    """Time after which the text ends, once it has a line."""
    t_max_prompt_ms: float | None = None  # llama-server does nothing with it, either

    def prompts(self) -> Sequence[Prompt]:
        return [self.prompt]

    def ids(self, model: Model, prompt: Prompt) -> list[int]:
        files = [(each.filename, each.text) for each in self.input_extra or ()]
        return infill_ids(model, self.input_prefix + self.prompt, self.input_suffix, files)

    def end(self, text: str, seconds: float) -> int | None:
        most = self.t_max_predict_ms or 0.0
        if 0 < most < seconds * 1000 and "\n" in text:
            return len(text)
        at = text.find("\n") if self.n_indent else -1
        while at >= 0:
            line = text[at + 1 :].partition("\n")[0]
            begun = line.lstrip(" \t")
            if begun and len(line) - len(begun) < (self.n_indent or 0):
                return at
            at = text.find("\n", at + 1)
        return None


async def completion(request: Request) -> Response:
    """Outputs that continue prompts."""
    fields = await read_fields(request, NativeRequest)
    return await _written(request, fields, "/completion")


async def infill(request: Request) -> Response:
    """Generate what stands between two texts."""
    fields = await read_fields(request, InfillRequest)
    return await _written(request, fields, "/infill")


async def _written(request: Request, fields: NativeRequest, path: str) -> Response:
    server: Server = request.app.state.server
    record = RequestRecord.of(request)
    record.stream = bool(fields.stream)
    entry = server.models.meant(fields.model)
    prompts = fields.prompts()
    events = _events(server, record, fields.model or entry.spec.name, fields, prompts)
    if fields.stream:
        return EventStream(
            (event(each) async for each in events),
            server.settings,
            on_error=lambda error: event(error_body(error, path)),
        )
    found = await unless_gone(request, _whole(events, fields, len(prompts)))
    return json_response(found[0] if len(prompts) == 1 else found)


async def _whole(
    events: AsyncGenerator[dict[str, Any], None], fields: NativeRequest, n: int
) -> list[dict[str, Any]]:
    last: list[dict[str, Any]] = [{} for _ in range(n)]
    contents: list[list[str]] = [[] for _ in range(n)]
    tokens: list[list[int]] = [[] for _ in range(n)]
    probabilities: list[list[Any]] = [[] for _ in range(n)]
    async with aclosing(events):
        async for each in events:
            index = each["index"]
            last[index] = each
            contents[index].append(each["content"])
            tokens[index] += each["tokens"]
            probabilities[index] += each.get("completion_probabilities", ())
    found = [
        {**each, "content": "".join(pieces), "tokens": ids if fields.return_tokens else []}
        for each, pieces, ids in zip(last, contents, tokens, strict=True)
    ]
    if fields.n_probs:
        found = [
            {**each, "completion_probabilities": seen}
            for each, seen in zip(found, probabilities, strict=True)
        ]
    if not fields.response_fields:
        return found
    return [_chosen(each, fields.response_fields) for each in found]


def _chosen(answer: dict[str, Any], paths: Sequence[str]) -> dict[str, Any]:
    """The fields of an answer that are asked for, each by its path, such as `timings/prompt_n`."""
    found: dict[str, Any] = {}
    for path in paths:
        value: Any = answer
        for key in path.split("/"):
            value = value.get(key, ...) if isinstance(value, dict) else ...
        if value is not ...:
            found[path] = value
    return found


def _with_ids(model: Model, options: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a generation, with a bias of texts as that of all their tokens."""
    bias = options.get("logit_bias")
    if not bias:
        return options
    found = dict[int, float]()
    for key, given in bias.items():
        value = (0.0 if given else float("-inf")) if isinstance(given, bool) else given
        is_id = isinstance(key, int) or key.strip().lstrip("-").isdecimal()
        ids = [int(key)] if is_id else model.tokenize(key, add_special=False)
        found |= dict.fromkeys(ids, value)
    return {**options, "logit_bias": found}


async def _events(
    server: Server, record: RequestRecord, name: str, fields: NativeRequest, prompts: Sequence[Prompt]
) -> AsyncGenerator[dict[str, Any], None]:
    ids = dict[int, list[int]]()

    def start(i: int, model: Model, options: dict[str, Any]) -> AsyncStream:
        ids[i] = fields.ids(model, prompts[i])
        return model.astream(ids[i], **_with_ids(model, options))

    starts = [partial(start, i) for i in range(len(prompts))]
    options = fields.options()
    texts = [""] * len(prompts)
    early = isinstance(fields, InfillRequest)
    async with generations(server, record, name, starts, options, ends_early=early) as found:
        model = found[0].model
        settings = _settings(model, _with_ids(model, options), fields)
        more = {"warnings": record.ignored} if record.ignored else {}
        if len(prompts) == 1:
            async with aclosing(_until_end(found[0], fields)) as pieces:
                async for piece, content in pieces:
                    texts[0] += content
                    timed = fields.timings_per_token and not isinstance(piece, Progress)
                    told = {"timings": timings(found[0].stats)} if timed else {}
                    yield _piece(0, model, piece, content, fields) | told
            ended = [(0, found[0])]
        else:
            async with aclosing(together(found)) as several:
                async for i, each in several:
                    if each is not None:
                        texts[i] += str(each)
                        yield _piece(i, model, each, str(each), fields)
            ended = list(enumerate(found))
        for i, generation in ended:
            end = _end(i, generation.completion, texts[i])
            prompt = model.detokenize(ids[i])
            used = settings | {"seed": generation.completion.seed}
            yield {**end, "prompt": prompt, "generation_settings": used, "model": name, **more}


async def _until_end(
    generation: Generation, fields: NativeRequest
) -> AsyncGenerator[tuple[Piece, str], None]:
    """The pieces of an output, with their texts, until it ends or is ended early."""
    text, began = "", 0.0
    async with generation:
        async for piece in generation:
            if isinstance(piece, Progress):
                yield piece, ""
                continue
            began = began or time.monotonic()
            sent = len(text)
            text += str(piece)
            end = fields.end(text, time.monotonic() - began)
            yield piece, text[sent : max(sent, end)] if end is not None else str(piece)
            if end is not None:
                return


def _piece(index: int, model: Model, piece: Piece, content: str, fields: NativeRequest) -> dict[str, Any]:
    found: dict[str, Any] = {"index": index, "content": content, "tokens": piece.ids, "stop": False}
    found |= progress_of(piece)
    if fields.n_probs and piece.logprobs:
        entries = token_entries(model, piece)
        found["completion_probabilities"] = [
            {
                "id": each.id,
                **entry,
                "top_logprobs": [
                    {"id": token, **top}
                    for (token, _), top in zip(each.top, entry["top_logprobs"], strict=True)
                ],
            }
            for each, entry in zip(piece.logprobs, entries, strict=True)
        ]
    return found


def _settings(model: Model, options: Mapping[str, Any], fields: NativeRequest) -> dict[str, Any]:
    """Return how an output is sampled, by llama-server's names where it has others."""
    found = sampling_of(model) | {
        name: value for name, value in options.items() if name in model.sampling.__dataclass_fields__
    }
    found["repeat_last_n"] = found.pop("penalty_window")
    bias = options.get("logit_bias") or {}
    found["logit_bias"] = [
        [token, max(value, -9999.0)] for token, value in bias.items()
    ]  # no infinity in JSON
    most = options.get("max_tokens")
    stop = stop_texts(fields.stop)
    return found | {
        "n_predict": -1 if most is None else most,
        "max_tokens": -1 if most is None else most,
        "stop": [stop] if isinstance(stop, str) else stop or [],
        "n_probs": fields.n_probs or 0,
        "stream": bool(fields.stream),
        "grammar": options.get("grammar") or "",
    }


def _end(index: int, completion: Completion, text: str) -> dict[str, Any]:
    stats = completion.stats
    kinds = {"stop": "word" if completion.stop is not None else "eos"}
    return {
        "index": index,
        "content": "",
        "tokens": [],
        "stop": True,
        "stop_type": kinds.get(completion.finish_reason, "limit"),
        "stopping_word": completion.stop or "",
        "has_new_line": "\n" in text,
        "truncated": False,
        "tokens_predicted": stats.generated_tokens,
        "tokens_evaluated": stats.prompt_tokens,
        "tokens_cached": stats.cached_tokens,
        "timings": timings(stats),
    }
