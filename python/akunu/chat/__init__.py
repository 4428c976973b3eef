"""Chat messages to a prompt, by the model's own Jinja template or a common format.

``template`` puts it together: ``messages`` checks and copies what the caller gives, ``sandbox`` renders
within ``limits``, ``marks`` keeps messages from writing control tokens, ``probe`` finds out what
a template does with roles and parts. ``jinja2`` is imported when the first template is compiled.
"""

from __future__ import annotations

from akunu.chat.formats import FORMATS
from akunu.chat.template import ChatTemplate

__all__ = ["FORMATS", "ChatTemplate"]
