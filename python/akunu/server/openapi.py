"""The OpenAPI description of the server, from its table of endpoints."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.responses import Response

from akunu.base.version import __version__
from akunu.server.replies import json_response

if TYPE_CHECKING:
    from akunu.server.endpoint import Endpoint

__all__ = ["document"]

_PARAMETER = re.compile(r"\{(\w+)(?::\w+)?\}")


def document(endpoints: Sequence[Endpoint]) -> Response:
    """The description, as JSON."""
    bodies = [each.body for each in endpoints if each.body is not None]
    references, schemas = msgspec.json.schema_components(bodies, ref_template="#/components/schemas/{name}")
    by_body = dict(zip(bodies, references, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for each in endpoints:
        operation: dict[str, Any] = {"summary": each.what, "responses": {"200": {"description": each.what}}}
        parameters = [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            for name in _PARAMETER.findall(each.path)
        ]
        if each.query is not None:
            known = msgspec.json.schema_components([each.query])[1][each.query.__name__]["properties"]
            parameters += [{"name": name, "in": "query", "schema": known[name]} for name in known]
        if parameters:
            operation["parameters"] = parameters
        if each.body is not None:
            content = {each.media: {"schema": by_body[each.body]}}
            operation["requestBody"] = {"required": True, "content": content}
            operation["responses"]["400"] = {"description": "A field that is wrong or not supported"}
        paths.setdefault(_PARAMETER.sub(r"{\1}", each.path), {})[each.method.lower()] = operation
    return json_response(
        {
            "openapi": "3.1.0",
            "info": {"title": "Akunu", "version": __version__},
            "paths": paths,
            "components": {"schemas": schemas},
        }
    )
