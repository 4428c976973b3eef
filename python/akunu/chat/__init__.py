"""Chat messages to a prompt, by the model's own Jinja template or a common format.

``template`` puts it together: ``messages`` checks and copies what the caller gives, ``sandbox`` renders
within ``limits``, ``marks`` keeps messages from writing control tokens, ``probe`` finds out what
a template does with roles and parts. ``jinja2`` is imported when the first template is compiled.

The other way, from a model's text to a message: ``families`` says how each family of models marks reasoning
and calls, ``parser`` reads an answer as it comes, by a layout and the forms in ``calls``, into ``deltas``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from akunu.base.lazy_names import lazy_names

if TYPE_CHECKING:
    from akunu.chat.deltas import Content, Delta, Reasoning, ToolArguments, ToolCall
    from akunu.chat.family import Family
    from akunu.chat.formats import FORMATS
    from akunu.chat.parser import OutputParser
    from akunu.chat.template import ChatTemplate

__all__ = [
    "FORMATS",
    "ChatTemplate",
    "Content",
    "Delta",
    "Family",
    "OutputParser",
    "Reasoning",
    "ToolArguments",
    "ToolCall",
]

_HOME: Final = {
    "ChatTemplate": "akunu.chat.template",
    "Content": "akunu.chat.deltas",
    "Delta": "akunu.chat.deltas",
    "FORMATS": "akunu.chat.formats",
    "Family": "akunu.chat.family",
    "OutputParser": "akunu.chat.parser",
    "Reasoning": "akunu.chat.deltas",
    "ToolArguments": "akunu.chat.deltas",
    "ToolCall": "akunu.chat.deltas",
}

__getattr__ = lazy_names(__name__, _HOME, globals())
