"""An HTTP server for models: OpenAI's and Anthropic's APIs, several models, many clients.

`app` puts it together. A request passes `gate`, is read by `fields` into a struct of its API
(`openai_chat`, …), becomes a `conversations.Turn`, and runs as `generations`; `sse` sends what comes of it.

What a name needs is imported when the name is first used: a model begins to load before what serves it is
imported (`ahead`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from akunu.base.lazy_names import lazy_names

if TYPE_CHECKING:
    from akunu.server.app import create_app
    from akunu.server.auth import Keys
    from akunu.server.catalog import ModelSpec
    from akunu.server.settings import Settings

__all__ = ["Keys", "ModelSpec", "Settings", "create_app"]

_HOME: Final = {
    "Keys": "akunu.server.auth",
    "ModelSpec": "akunu.server.catalog",
    "Settings": "akunu.server.settings",
    "create_app": "akunu.server.app",
}

__getattr__ = lazy_names(__name__, _HOME, globals())
