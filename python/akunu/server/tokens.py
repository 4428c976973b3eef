"""Texts, token ids and prompts: `/tokenize`, `/detokenize`, `/apply-template`."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from akunu.server.conversations import prepared
from akunu.server.fields import Fields, read_fields
from akunu.server.kinds import EMBEDDING, RERANKER, TEXT
from akunu.server.openai_fields import ChatMessage, chat_tools, plain_messages
from akunu.server.replies import json_response
from akunu.server.texts import Server

__all__ = [
    "DetokenizeRequest",
    "TemplateRequest",
    "TokenizeRequest",
    "apply_template",
    "detokenize",
    "tokenize",
]


WITH_TOKENS: Final = (TEXT, EMBEDDING, RERANKER)


class TokenizeRequest(Fields):
    """A text; `add_special` adds what the model expects around it, such as BOS."""

    model: str
    text: str
    add_special: bool = True


class DetokenizeRequest(Fields):
    """Token ids."""

    model: str
    tokens: list[int]


class TemplateRequest(Fields):
    """A conversation."""

    model: str
    messages: list[ChatMessage]
    tools: list[dict[str, Any]] | None = None
    chat_template_kwargs: dict[str, Any] | None = None


async def tokenize(request: Request) -> Response:
    """The token ids of a text; what looks like a control token in it is text."""
    server: Server = request.app.state.server
    fields = await read_fields(request, TokenizeRequest)
    async with server.models.use(fields.model, *WITH_TOKENS) as entry:
        ids = await asyncio.to_thread(entry.loaded.tokenize, fields.text, add_special=fields.add_special)
        return json_response({"tokens": ids, "count": len(ids), "max_model_len": entry.loaded.context})


async def detokenize(request: Request) -> Response:
    """The text of token ids."""
    server: Server = request.app.state.server
    fields = await read_fields(request, DetokenizeRequest)
    async with server.models.use(fields.model, *WITH_TOKENS) as entry:
        return json_response({"text": await asyncio.to_thread(entry.loaded.detokenize, fields.tokens)})


async def apply_template(request: Request) -> Response:
    """The prompt of a conversation, as a text and as token ids."""
    server: Server = request.app.state.server
    fields = await read_fields(request, TemplateRequest)
    messages = prepared(plain_messages(fields.messages)[0])
    tools, _ = chat_tools(fields.tools)
    async with server.models.use(fields.model, TEXT) as entry:
        template = entry.loaded.chat_template

        def work() -> dict[str, Any]:
            segments = template.render(messages, tools=tools or None, variables=fields.chat_template_kwargs)
            prompt = "".join(segment.text for segment in segments)
            return {"prompt": prompt, "tokens": template.encode_segments(segments)}

        return json_response(await asyncio.to_thread(work))
