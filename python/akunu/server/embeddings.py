"""Vectors of texts: `/v1/embeddings`, OpenAI's."""

from __future__ import annotations

import base64
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from akunu.api.encoders.model import EmbeddingModel
from akunu.api.tokenizing import Prompt
from akunu.base.errors import InvalidArgumentError
from akunu.server.calls import Check, call
from akunu.server.errors import ApiError
from akunu.server.fields import Fields, read_fields
from akunu.server.generations import RequestRecord, Server
from akunu.server.kinds import EMBEDDING
from akunu.server.replies import json_response
from akunu.server.sse import unless_gone

__all__ = ["EmbeddingRequest", "embeddings"]


class EmbeddingRequest(Fields, kw_only=True):
    """The request of `/v1/embeddings`: OpenAI's fields, and extensions."""

    long_lists: ClassVar = ("input",)

    model: str = ""
    """Without a name it is the first that there is, as with llama-server and vLLM."""
    input: str | list[str | int | list[int]]
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: Annotated[int, Meta(ge=1)] | None = None
    user: str | None = None
    # Extensions.
    prompt: str | None = None
    prompt_name: str | None = None
    normalize: bool | None = None
    truncate: bool | None = None

    def texts(self) -> list[Prompt]:
        """Each input, as a text or as token ids."""
        if isinstance(self.input, np.ndarray):  # one of very many ids
            return [self.input]
        given = [self.input] if isinstance(self.input, str) else self.input
        ids = [each for each in given if isinstance(each, int)]
        texts: list[Prompt] = [ids] if ids else [each for each in given if not isinstance(each, int)]
        empty = any(len(each) == 0 for each in texts if not isinstance(each, str))
        if not given or empty or (ids and len(ids) < len(given)):
            raise ApiError(
                400, "input: expected a text, token ids, or one or more of either", param="input",
                code="invalid_value",
            )  # fmt: skip
        return texts


async def embeddings(request: Request) -> Response:
    """A vector for each input."""
    fields = await read_fields(request, EmbeddingRequest)
    return json_response(await unless_gone(request, _answer(request, fields)))


async def _answer(request: Request, fields: EmbeddingRequest) -> dict[str, Any]:
    server: Server = request.app.state.server
    record = RequestRecord.of(request)
    texts = await server.workers.sized(record.bytes, fields.texts)
    fields.model = fields.model or server.models.first(EMBEDDING).spec.name
    async with server.models.use(fields.model, EMBEDDING) as entry:
        record.model = entry.spec.name
        model: EmbeddingModel = entry.loaded

        def work(check: Check) -> tuple[list[Any], int]:
            before = model.stats.prompt_tokens  # calls come one at a time
            try:
                vectors = model.embed(
                    texts,
                    prompt=model.prompts.get(fields.prompt or "", fields.prompt),
                    prompt_name=fields.prompt_name,
                    normalize=fields.normalize,
                    dimensions=fields.dimensions,
                    truncate=bool(fields.truncate),
                    progress=check,
                )
            except InvalidArgumentError as error:  # which calls the texts otherwise
                raise error.renamed(lambda name: "input" if name == "texts" else name) from error
            base64_ = fields.encoding_format == "base64"
            data = [_item(i, vector, base64_) for i, vector in enumerate(vectors)]
            return data, model.stats.prompt_tokens - before

        vectors, tokens = await call(server, record, entry, work)
    server.meters.prompt_tokens.labels(record.model).inc(tokens)
    record.prompt_tokens = tokens
    return {
        "object": "list",
        "model": fields.model,
        "data": vectors,
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }


def _item(i: int, vector: npt.NDArray[Any], as_base64: bool) -> msgspec.Raw:
    """A vector of the answer, as JSON: it is made in the thread that made the vector, one by one."""
    shown = base64.b64encode(vector.astype("<f4").tobytes()).decode() if as_base64 else vector.tolist()
    return msgspec.Raw(msgspec.json.encode({"object": "embedding", "index": i, "embedding": shown}))
