"""Documents in the order in which they matter for a query: `/v1/rerank`, as Jina and Cohere have it."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from akunu.encoders.model import EmbeddingModel
from akunu.server.calls import Check, call
from akunu.server.fields import Fields, read_fields
from akunu.server.kinds import RERANKER
from akunu.server.replies import json_response, new_id
from akunu.server.sse import unless_gone
from akunu.server.texts import Asked, Server

__all__ = ["RerankRequest", "rerank"]


class Document(Fields):
    """A document as an object."""

    text: str


class RerankRequest(Fields):
    """What `/v1/rerank` understands."""

    model: str
    query: str
    documents: Annotated[list[str | Document], Meta(min_length=1)]
    top_n: Annotated[int, Meta(ge=1)] | None = None
    return_documents: bool | None = None
    # Extensions.
    instruction: str | None = None
    truncate: bool | None = None


async def rerank(request: Request) -> Response:
    """A score for each document, the best first."""
    fields = await read_fields(request, RerankRequest)
    return json_response(await unless_gone(request, _answer(request, fields)))


async def _answer(request: Request, fields: RerankRequest) -> dict[str, Any]:
    server: Server = request.app.state.server
    asked = Asked.of(request)
    texts = [each if isinstance(each, str) else each.text for each in fields.documents]
    async with server.models.use(fields.model, RERANKER) as entry:
        asked.model = entry.spec.name
        model: EmbeddingModel = entry.loaded

        def work(check: Check) -> tuple[list[float], int]:
            before = model.stats().prompt_tokens  # calls come one at a time
            scores = model.rerank(
                fields.query,
                texts,
                instruction=fields.instruction,
                truncate=bool(fields.truncate),
                progress=check,
            )
            return scores, model.stats().prompt_tokens - before

        scores, tokens = await call(server, asked, entry, work)
    server.meters.prompt_tokens.labels(asked.model).inc(tokens)
    asked.prompt_tokens = tokens
    best = sorted(range(len(texts)), key=lambda i: -scores[i])[: fields.top_n]
    results: list[dict[str, Any]] = [{"index": i, "relevance_score": scores[i]} for i in best]
    if fields.return_documents:
        results = [{**result, "document": {"text": texts[result["index"]]}} for result in results]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"id": new_id("rerank-"), "model": fields.model, "results": results, "usage": usage}
