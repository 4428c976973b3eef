"""Texts, token ids and prompts: `/tokenize`, `/detokenize`, `/apply-template`."""

from __future__ import annotations

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from akunu.server.conversations import prepared
from akunu.server.errors import ApiError
from akunu.server.fields import Fields, read_fields
from akunu.server.generations import RequestRecord, Server
from akunu.server.images import settled
from akunu.server.kinds import EMBEDDING, RERANKER, TEXT
from akunu.server.llama_server import entry_of
from akunu.server.openai_fields import ChatMessage, chat_tools, plain_messages
from akunu.server.replies import json_response
from akunu.tokenizer import Tokenizer, check_fits

__all__ = [
    "DetokenizeRequest",
    "TemplateRequest",
    "TokenizeRequest",
    "apply_template",
    "detokenize",
    "tokenize",
]


WITH_TOKENS: Final = (TEXT, EMBEDDING, RERANKER)


class TokenizeRequest(Fields, kw_only=True):
    """A text, which llama-server's clients call `content`.

    `add_special` adds what the model expects around it, such as BOS. Those clients expect none by default.
    """

    model: str | None = None
    text: str | None = None
    content: str | None = None
    add_special: bool | None = None
    parse_special: bool = False
    with_pieces: bool = False

    def given(self) -> tuple[str, bool]:
        """The text, and whether special tokens are added."""
        if (self.text is None) == (self.content is None):
            raise ApiError(400, "text: it is missing, or given twice", param="text", code="missing_field")
        if self.text is not None:
            return self.text, self.add_special is not False
        return self.content or "", self.add_special is True


class DetokenizeRequest(Fields, kw_only=True):
    """Token ids."""

    model: str | None = None
    tokens: list[int]


class TemplateRequest(Fields, kw_only=True):
    """A conversation."""

    model: str | None = None
    messages: list[ChatMessage]
    tools: list[dict[str, Any]] | None = None
    chat_template_kwargs: dict[str, Any] | None = None


async def tokenize(request: Request) -> Response:
    """The token ids of a text; what looks like a control token in it is text."""
    server: Server = request.app.state.server
    fields = await read_fields(request, TokenizeRequest)
    text, add_special = fields.given()
    size = RequestRecord.of(request).bytes
    async with server.models.use(entry_of(server, fields.model).spec.name, *WITH_TOKENS) as entry:
        model = entry.loaded

        def work() -> Response:
            check_fits(model.tokenizer, [text], model.context, "text")
            ids = model.tokenize(text, add_special=add_special, parse_special=fields.parse_special)
            tokens = _pieces(model.tokenizer, ids) if fields.with_pieces else ids
            return json_response({"tokens": tokens, "count": len(ids), "max_model_len": model.context})

        return await server.workers.prompt(size, work)


async def detokenize(request: Request) -> Response:
    """The text of token ids."""
    server: Server = request.app.state.server
    fields = await read_fields(request, DetokenizeRequest)
    async with server.models.use(entry_of(server, fields.model).spec.name, *WITH_TOKENS) as entry:
        model = entry.loaded
        size = RequestRecord.of(request).bytes

        def work() -> Response:
            text = model.detokenize(fields.tokens)
            return json_response({"text": text, "content": text})

        return await server.workers.prompt(size, work)


def _pieces(tokenizer: Tokenizer, ids: list[int]) -> list[dict[str, Any]]:
    """Each token with its text, or its bytes where they are no text of their own."""
    found = []
    for token in ids:
        data = tokenizer.id_to_piece(token)
        try:
            piece: str | list[int] = data.decode()
        except UnicodeDecodeError:
            piece = list(data)
        found.append({"id": token, "piece": piece})
    return found


async def apply_template(request: Request) -> Response:
    """The prompt of a conversation, as a text and as token ids."""
    server: Server = request.app.state.server
    fields = await read_fields(request, TemplateRequest)
    size = RequestRecord.of(request).bytes
    messages = await server.workers.sized(size, lambda: prepared(plain_messages(fields.messages)[0]))
    tools, _ = chat_tools(fields.tools)
    async with server.models.use(entry_of(server, fields.model).spec.name, TEXT) as entry:
        model = entry.loaded
        template = model.chat_template

        def work() -> Response:
            found = settled(messages, model, server.settings, [])
            template.check_fits(found, model.context)
            segments = template.render(found, tools=tools or None, variables=fields.chat_template_kwargs)
            prompt = "".join(segment.text for segment in segments)
            check_fits(template.tokenizer, [prompt], model.context)
            return json_response({"prompt": prompt, "tokens": template.encode_segments(segments)})

        return await server.workers.prompt(size, work)
