"""The built-in page: files of the folder `page`, which nobody needs a key for."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

__all__ = ["PATHS", "site_routes"]

FOLDER: Final = Path(__file__).parent / "page"
PATHS: Final = ("/", "/page/")
"""The page itself, and what its files' paths begin with."""

HEADERS: Final = {
    # Scripts and styles are its own files, and it talks to this server only. Images of chats are in the page.
    "content-security-policy": (
        "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'"
    ),
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-cache",  # asked for again after an update of the package
}


class _Files(StaticFiles):
    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers.update(HEADERS)
        return response


async def _index(_: Request) -> Response:
    return FileResponse(FOLDER / "index.html", headers=HEADERS)


def site_routes() -> list[BaseRoute]:
    """The page at `/`, and its files."""
    return [Route(PATHS[0], _index, methods=["GET"]), Mount(PATHS[1].rstrip("/"), _Files(directory=FOLDER))]
