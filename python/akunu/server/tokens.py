"""Texts, token ids and prompts: `/tokenize`, `/detokenize`, `/tokenizer_info`, `/apply-template`."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, ClassVar, Final

from starlette.requests import Request
from starlette.responses import Response

from akunu.base.errors import AkunuError
from akunu.server.conversations import prepared
from akunu.server.errors import ApiError
from akunu.server.fields import Fields, query_fields, read_fields
from akunu.server.generations import RequestRecord, Server
from akunu.server.images import settled
from akunu.server.kinds import EMBEDDING, RERANKER, TEXT, kind_of
from akunu.server.llama_server import ModelQuery
from akunu.server.openai_fields import ChatMessage, chat_tools, plain_messages
from akunu.server.replies import json_response, text_response
from akunu.tokenizer import Tokenizer, check_fits

__all__ = [
    "DetokenizeRequest",
    "TemplateRequest",
    "TokenizeRequest",
    "apply_template",
    "detokenize",
    "tokenize",
    "tokenizer_info",
]


WITH_TOKENS: Final = (TEXT, EMBEDDING, RERANKER)


class TokenizeRequest(Fields, kw_only=True):
    """A text, which llama-server's clients call `content` and vLLM's `prompt`.

    `add_special` (`add_special_tokens`) adds what the model expects around it, such as BOS. llama-server's
    clients expect none by default. vLLM's expect that what spells a control token is that token.
    """

    model: str | None = None
    text: str | None = None
    content: str | None = None
    prompt: str | None = None
    add_special: bool | None = None
    add_special_tokens: bool | None = None
    parse_special: bool | None = None
    with_pieces: bool = False

    def given(self) -> tuple[str, bool, bool]:
        """The text, whether special tokens are added, and whether they are read in it."""
        found = [text for text in (self.text, self.content, self.prompt) if text is not None]
        if len(found) != 1:
            raise ApiError(400, "text: it is missing, or given twice", param="text", code="missing_field")
        add = self.add_special if self.add_special_tokens is None else self.add_special_tokens
        add = self.content is None if add is None else add
        return found[0], add, self.prompt is not None if self.parse_special is None else self.parse_special


class DetokenizeRequest(Fields, kw_only=True):
    """Token ids."""

    long_lists: ClassVar = ("tokens",)

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
    text, add_special, parse_special = fields.given()
    size = RequestRecord.of(request).bytes
    async with server.models.use(server.models.meant(fields.model).spec.name, *WITH_TOKENS) as entry:
        model = entry.loaded

        def work() -> Response:
            check_fits(model.tokenizer, [text], model.context, "text")
            ids = model.tokenize(text, add_special=add_special, parse_special=parse_special)
            tokens = _pieces(model.tokenizer, ids) if fields.with_pieces else ids
            return json_response({"tokens": tokens, "count": len(ids), "max_model_len": model.context})

        return await server.workers.prompt(size, work)


async def detokenize(request: Request) -> Response:
    """The text of token ids."""
    server: Server = request.app.state.server
    fields = await read_fields(request, DetokenizeRequest)
    async with server.models.use(server.models.meant(fields.model).spec.name, *WITH_TOKENS) as entry:
        model = entry.loaded
        size = RequestRecord.of(request).bytes

        def work() -> Response:
            text = model.detokenize(fields.tokens)
            return text_response(text, ("text", "content", "prompt"))

        return await server.workers.prompt(size, work)


async def tokenizer_info(request: Request) -> Response:
    """Answer what clients of vLLM (lm-eval) ask of a tokenizer: its control tokens, and the template."""
    server: Server = request.app.state.server
    entry = server.models.meant(query_fields(request, ModelQuery).model)
    model = entry.model
    if model is None:
        raise ApiError(
            409, f"model: {entry.spec.name} is not in memory, and what only tells does not load it",
            param="model", code="model_not_loaded",
        )  # fmt: skip
    kind = kind_of(model)
    if kind not in WITH_TOKENS:
        raise ApiError(400, f"model: {entry.spec.name} has no tokens", param="model", code="wrong_model")
    tokenizer: Tokenizer = entry.loaded.tokenizer
    ids = {"bos_token": tokenizer.bos_id, "eos_token": tokenizer.eos_id}
    found: dict[str, Any] = {
        name: None if token is None else tokenizer.token_text(token) for name, token in ids.items()
    }
    found["pad_token"] = found["eos_token"]
    if kind is TEXT:
        with suppress(AkunuError):  # it has none
            found["chat_template"] = entry.loaded.chat_template.sources.get("default", "")
    return json_response({**found, "model_max_length": entry.loaded.context})


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
    async with server.models.use(server.models.meant(fields.model).spec.name, TEXT) as entry:
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
