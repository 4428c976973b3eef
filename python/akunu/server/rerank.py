"""Documents in the order in which they matter for a query: `/v1/rerank`, as Jina and Cohere have it."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from akunu.api.encoders.model import EmbeddingModel
from akunu.server.calls import Check, call
from akunu.server.errors import ApiError
from akunu.server.fields import Fields, read_fields
from akunu.server.generations import RequestRecord, Server
from akunu.server.kinds import RERANKER, kind_of
from akunu.server.replies import json_response, new_id
from akunu.server.sse import unless_gone

__all__ = ["RerankRequest", "rerank"]


class Document(Fields):
    """A document as an object."""

    text: str


class RerankRequest(Fields, kw_only=True):
    """The request of `/v1/rerank`."""

    long_lists: ClassVar = ("documents", "texts")
    accepted: ClassVar = {
        "max_tokens_per_doc": (),
        "raw_scores": (False,),
        "truncation_direction": ("right", "Right"),
    }

    model: str | None = None
    query: str
    documents: Annotated[list[str | Document], Meta(min_length=1)] | None = None
    top_n: Annotated[int, Meta(ge=1)] | None = None
    return_documents: bool | None = None
    # Text Embeddings Inference's.
    texts: Annotated[list[str], Meta(min_length=1)] | None = None
    return_text: bool | None = None
    raw_scores: Any = None
    max_tokens_per_doc: Any = None
    truncation_direction: Any = None
    # Extensions.
    instruction: str | None = None
    truncate: bool | None = None

    def given(self) -> list[str]:
        """The texts that are scored."""
        if (self.documents is None) == (self.texts is None):
            found = "neither" if self.texts is None else "both"
            raise ApiError(
                400, f"documents: found {found} documents and texts, expected documents (or texts, as Text "
                "Embeddings Inference has it)", param="documents", code="missing_field",
            )  # fmt: skip
        return [each if isinstance(each, str) else each.text for each in self.documents or self.texts or ()]


async def rerank(request: Request) -> Response:
    """A score for each document, the best first."""
    fields = await read_fields(request, RerankRequest)
    return json_response(await unless_gone(request, _answer(request, fields)))


def _only(server: Server) -> str:
    """The model of a request that names none: the one that ranks, where there is one."""
    found = [
        entry.spec.name
        for entry in server.models.entries()
        if entry.spec.task == "rerank" or (entry.model is not None and kind_of(entry.model) is RERANKER)
    ]
    if len(found) != 1:
        raise ApiError(400, "model: it is missing", param="model", code="missing_field")
    return found[0]


async def _answer(request: Request, fields: RerankRequest) -> Any:
    server: Server = request.app.state.server
    record = RequestRecord.of(request)
    texts = fields.given()
    name = fields.model or _only(server)
    async with server.models.use(name, RERANKER) as entry:
        record.model = entry.spec.name
        model: EmbeddingModel = entry.loaded

        def work(check: Check) -> tuple[list[float], int]:
            before = model.stats.prompt_tokens  # calls come one at a time
            scores = model.rerank(
                fields.query,
                texts,
                instruction=fields.instruction,
                truncate=bool(fields.truncate),
                progress=check,
            )
            return scores, model.stats.prompt_tokens - before

        scores, tokens = await call(server, record, entry, work)
    server.meters.prompt_tokens.labels(record.model).inc(tokens)
    record.prompt_tokens = tokens
    best = sorted(range(len(texts)), key=lambda i: -scores[i])[: fields.top_n]
    if fields.texts is not None:
        return [
            {"index": i, "score": scores[i], **({"text": texts[i]} if fields.return_text else {})}
            for i in best
        ]
    results: list[dict[str, Any]] = [{"index": i, "relevance_score": scores[i]} for i in best]
    if fields.return_documents:
        results = [{**result, "document": {"text": texts[result["index"]]}} for result in results]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"id": new_id("rerank-"), "model": name, "results": results, "usage": usage}
