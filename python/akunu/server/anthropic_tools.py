"""Anthropic's tools that the client runs: their names and arguments, which requests leave out.

Models of Anthropic know them by their types; others are told what they are as of any function.
Source: Anthropic's documentation of the bash, text editor and memory tools.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from akunu.server.client_tools import checked_tool
from akunu.server.fields import Fields

__all__ = ["ClientTool", "client_tool"]


class ClientTool(Fields):
    """A tool by its type."""

    accepted: ClassVar = {"allowed_callers": (["direct"],)}

    type: str
    name: str
    cache_control: Any = None
    max_characters: int | None = None
    strict: bool | None = None
    defer_loading: bool | None = None
    allowed_callers: list[str] | None = None
    input_examples: list[dict[str, Any]] | None = None


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


def _editor(commands: tuple[str, ...], **more: Any) -> dict[str, Any]:
    properties = {
        "command": {"type": "string", "enum": list(commands), "description": "What to do"},
        "path": _text("The file or folder"),
        "file_text": _text("For create: the content of the new file"),
        "old_str": _text("For str_replace: the text to replace; it has to be there exactly once"),
        "new_str": _text("For str_replace: what replaces it"),
        "insert_line": {"type": "integer", "description": "For insert: the line after which; 0 is the start"},
        "insert_text": _text("For insert: the text"),
        "view_range": {
            "type": "array",
            "items": {"type": "integer"},
            "description": "For view: the first and the last line; -1 is the last of the file",
        },
    }
    return {"type": "object", "properties": properties | more, "required": ["command"]}


_BASH: Final = {
    "type": "object",
    "properties": {
        "command": _text("The command"),
        "restart": {"type": "boolean", "description": "True: start the shell anew, without a command"},
    },
}
_EDITS: Final = ("view", "create", "str_replace", "insert")
_KNOWN: Final[Mapping[str, tuple[str, dict[str, Any]]]] = {
    "bash_20241022": ("Run a command in a shell that keeps its state.", _BASH),
    "bash_20250124": ("Run a command in a shell that keeps its state.", _BASH),
    "text_editor_20241022": ("View, create and edit text files.", _editor((*_EDITS, "undo_edit"))),
    "text_editor_20250124": ("View, create and edit text files.", _editor((*_EDITS, "undo_edit"))),
    "text_editor_20250429": ("View, create and edit text files.", _editor(_EDITS)),
    "text_editor_20250728": ("View, create and edit text files.", _editor(_EDITS)),
    "memory_20250818": (
        "Keep notes in files under /memories that later conversations can read. Look there first.",
        _editor(
            (*_EDITS, "delete", "rename"),
            old_path=_text("For rename: the file or folder"),
            new_path=_text("For rename: its new path"),
        ),
    ),
}


def client_tool(tool: dict[str, Any], at: str) -> dict[str, Any] | None:
    """The function that a tool's type stands for; None for one that does not run at the client."""
    known = _KNOWN.get(str(tool.get("type")))
    if known is None:
        return None
    checked = checked_tool(tool, ClientTool, at)
    description, parameters = known
    return {
        "name": checked.name,
        "description": description,
        "parameters": parameters,
        "strict": checked.strict,
    }
