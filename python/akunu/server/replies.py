"""Parts that the answers of several APIs share."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from akunu.api.model import Model
from akunu.api.results import Completion, Piece, Stats
from akunu.base.version import __version__
from akunu.server.errors import ApiError
from akunu.server.fields import joined
from akunu.server.workers import LARGE

__all__ = [
    "FINGERPRINT",
    "json_response",
    "new_id",
    "openai_usage",
    "page",
    "prompt_details",
    "text_response",
    "timings",
    "token_entries",
]

FINGERPRINT: Final = f"akunu-{__version__}"
"""The version that made an answer, in OpenAI's `system_fingerprint`."""


def text_response(text: str, names: Sequence[str]) -> Response:
    """An object that has a text, which may be long, under several names; it is made in pieces."""
    parts = [msgspec.json.encode(text[at : at + LARGE])[1:-1] for at in range(0, len(text), LARGE)]
    begins = [b'%s"%s":"' % (b"," if n else b"{", name.encode()) for n, name in enumerate(names)]
    body = joined([piece for begin in begins for piece in (begin, *parts, b'"')] + [b"}"])
    return _Answer(body, media_type="application/json")


class _Answer(Response):
    """An answer that is sent in pieces where it is large: the event loop would copy all of it in one go."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if len(self.body) < LARGE:
            await super().__call__(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        body = memoryview(self.body)
        for at in range(0, len(body), LARGE):
            piece = bytes(body[at : at + LARGE])
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


def json_response(data: Any, status: int = 200) -> Response:
    """`data` as JSON."""
    return _Answer(msgspec.json.encode(data), status, media_type="application/json")


def new_id(prefix: str) -> str:
    """An id that no other answer has."""
    return f"{prefix}{uuid.uuid4().hex}"


def page(items: Sequence[dict[str, Any]], limit: int | None, after: str | None, field: str) -> dict[str, Any]:
    """A part of a list, as OpenAI and Anthropic have it: at most `limit` items, after the one of an id.

    Raises
    ------
    ApiError
        400, which names the `field`: no item has that id.
    """
    ids = [item["id"] for item in items]
    if after is not None and after not in ids:
        raise ApiError(400, f"{field}: no item {after!r} in this list", param=field, code="invalid_value")
    rest = items if after is None else items[ids.index(after) + 1 :]
    found = rest[:limit]
    first, last = (found[0]["id"], found[-1]["id"]) if found else (None, None)
    return {"data": found, "first_id": first, "last_id": last, "has_more": len(found) < len(rest)}


def openai_usage(
    completions: Sequence[Completion], texts_per_prompt: int = 1, reasoning_tokens: int | None = None
) -> dict[str, Any]:
    """The tokens of outputs in the order of their prompts; a prompt that several share counts once."""
    stats = [completion.stats for completion in completions]
    first = stats[::texts_per_prompt]
    prompt, generated = sum(s.prompt_tokens for s in first), sum(s.generated_tokens for s in stats)
    usage: dict[str, Any] = {
        "prompt_tokens": prompt,
        "completion_tokens": generated,
        "total_tokens": prompt + generated,
        "prompt_tokens_details": prompt_details(first),
    }
    if reasoning_tokens is not None:
        usage["completion_tokens_details"] = {"reasoning_tokens": reasoning_tokens}
    return usage


def prompt_details(stats: Sequence[Stats]) -> dict[str, int]:
    """Count the tokens of prompts that were cached and those that are images, where there are some."""
    images = sum(each.image_tokens for each in stats)
    cached = sum(each.cached_tokens for each in stats)
    return {"cached_tokens": cached} | ({"image_tokens": images} if images else {})


def timings(stats: Stats) -> dict[str, float]:
    """Counts and times of an output, as llama-server has them."""
    read = stats.prompt_tokens - stats.cached_tokens
    prompt_ms, predicted_ms = stats.prefill_seconds * 1000, stats.decode_seconds * 1000
    return {
        "cache_n": stats.cached_tokens,
        "prompt_n": read,
        "prompt_ms": prompt_ms,
        "prompt_per_token_ms": prompt_ms / max(read, 1),
        "prompt_per_second": stats.prefill_tokens_per_second,
        "predicted_n": stats.generated_tokens,
        "predicted_ms": predicted_ms,
        "predicted_per_token_ms": predicted_ms / max(stats.generated_tokens, 1),
        "predicted_per_second": stats.decode_tokens_per_second,
    }


def token_entries(model: Model, piece: Piece) -> list[dict[str, Any]]:
    """The log-probabilities of a piece's tokens, as in OpenAI's chat."""

    def entry(token: int, logprob: float) -> dict[str, Any]:
        data = model.tokenizer.id_to_piece(token)
        # JSON has no infinity; OpenAI's own floor
        value = max(logprob, -9999.0)
        return {"token": data.decode("utf-8", "replace"), "logprob": value, "bytes": list(data)}

    return [
        {**entry(each.id, each.logprob), "top_logprobs": [entry(*pair) for pair in each.top]}
        for each in piece.logprobs or ()
    ]
