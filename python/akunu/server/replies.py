"""Parts that the answers of several APIs share."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from starlette.responses import Response

from akunu.api.model import Model
from akunu.api.results import Completion, Piece
from akunu.base.version import __version__
from akunu.server.errors import ApiError

__all__ = ["FINGERPRINT", "json_response", "new_id", "openai_usage", "page", "token_entries"]

FINGERPRINT: Final = f"akunu-{__version__}"
"""The version that made an answer, in OpenAI's `system_fingerprint`."""


def json_response(data: Any, status: int = 200) -> Response:
    """`data` as JSON."""
    return Response(msgspec.json.encode(data), status, media_type="application/json")


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
        "prompt_tokens_details": {"cached_tokens": sum(s.cached_tokens for s in first)},
    }
    if reasoning_tokens is not None:
        usage["completion_tokens_details"] = {"reasoning_tokens": reasoning_tokens}
    return usage


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
