"""Texts, token ids and prompts: `/tokenize`, `/detokenize`, `/apply-template`."""

from __future__ import annotations

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from akunu.server.conversations import prepared
from akunu.server.fields import Fields, read_fields
from akunu.server.images import settled
from akunu.server.kinds import EMBEDDING, RERANKER, TEXT
from akunu.server.openai_fields import ChatMessage, chat_tools, plain_messages
from akunu.server.replies import json_response
from akunu.server.texts import Asked, Server
from akunu.tokenizer import check_fits

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
    size = Asked.of(request).bytes
    async with server.models.use(fields.model, *WITH_TOKENS) as entry:
        model = entry.loaded

        def work() -> Response:
            check_fits(model.tokenizer, [fields.text], model.context, "text")
            ids = model.tokenize(fields.text, add_special=fields.add_special)
            return json_response({"tokens": ids, "count": len(ids), "max_model_len": model.context})

        return await server.beside.prompt(size, work)


async def detokenize(request: Request) -> Response:
    """The text of token ids."""
    server: Server = request.app.state.server
    fields = await read_fields(request, DetokenizeRequest)
    async with server.models.use(fields.model, *WITH_TOKENS) as entry:
        model = entry.loaded
        size = Asked.of(request).bytes
        return await server.beside.prompt(
            size, lambda: json_response({"text": model.detokenize(fields.tokens)})
        )


async def apply_template(request: Request) -> Response:
    """The prompt of a conversation, as a text and as token ids."""
    server: Server = request.app.state.server
    fields = await read_fields(request, TemplateRequest)
    size = Asked.of(request).bytes
    messages = await server.beside.sized(size, lambda: prepared(plain_messages(fields.messages)[0]))
    tools, _ = chat_tools(fields.tools)
    async with server.models.use(fields.model, TEXT) as entry:
        model = entry.loaded
        template = model.chat_template

        def work() -> Response:
            found = settled(messages, model, server.settings, [])
            template.check_fits(found, model.context)
            segments = template.render(found, tools=tools or None, variables=fields.chat_template_kwargs)
            prompt = "".join(segment.text for segment in segments)
            check_fits(template.tokenizer, [prompt], model.context)
            return json_response({"prompt": prompt, "tokens": template.encode_segments(segments)})

        return await server.beside.prompt(size, work)
