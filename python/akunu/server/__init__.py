"""An HTTP server for models: OpenAI's and Anthropic's APIs, several models, many clients.

`app` puts it together. A request passes `gate`, is read by `fields` into a struct of its API
(`openai_chat`, …), becomes a `conversations.Turn`, and runs as `texts`; `sse` sends what comes of it.
"""

from akunu.server.app import create_app
from akunu.server.auth import Keys
from akunu.server.catalog import ModelSpec
from akunu.server.settings import Settings

__all__ = ["Keys", "ModelSpec", "Settings", "create_app"]
