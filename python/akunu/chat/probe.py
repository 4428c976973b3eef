"""What a template does with a role, or with contents: found out by rendering a word and looking for it."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from typing import Any, Final

from akunu.chat.marks import ROLES
from akunu.errors import InvalidArgumentError, TemplateError

__all__ = ["Probe"]

_WORD: Final = "needle7needle"
_CALL: Final = {"type": "function", "function": {"name": "f", "arguments": {}}, "id": "call00001"}
_USER: Final = {"role": "user", "content": "u"}
_ANSWER: Final = {"role": "assistant", "content": "a"}
_CALLING: Final = {"role": "assistant", "content": "", "tool_calls": [_CALL]}
_SETTINGS: Final = (
    ((), ()),
    ((_USER,), ()),
    ((), (_USER,)),
    ((_USER, _ANSWER), ()),
    ((_USER, _CALLING), ()),
)
"""What stands before and after a message, in conversations that one template or another accepts."""
_MOST_KEPT: Final = 64


class Probe:
    """Asks one template.

    Parameters
    ----------
    render
        Renders messages; raises `TemplateError` where the template refuses them.
    source
        The template's text.
    """

    def __init__(self, render: Callable[[list[dict[str, Any]]], str], source: str) -> None:
        self._render = render
        self._source = source
        self._written: dict[str, bool | None] = {}
        self._wants_parts: bool | None = None

    def prepare(self, messages: Sequence[dict[str, Any]]) -> None:
        """Check the roles, and give contents the form that the template reads.

        Raises
        ------
        InvalidArgumentError
            The template would leave a message out, or a role is misspelt.
        """
        if self._wants_parts is None:
            self._wants_parts = self._writes("user") is not True and bool(self._tried("user", parts=True))
            self._written.clear()
        for n, message in enumerate(messages):
            self._check_role(message["role"], f"messages[{n}].role")
            if self._wants_parts and isinstance(message.get("content"), str):
                message["content"] = [{"type": "text", "text": message["content"]}]

    def _check_role(self, role: str, path: str) -> None:
        if self._writes("user") is not True:  # it writes no message anyhow, or cannot be asked
            return
        if self._writes(role) is False:
            known = ", ".join(name for name in ROLES if self._writes(name))
            raise InvalidArgumentError(
                f"{path}: the chat template leaves out messages of the role {role!r}; it knows {known}"
            )
        if role not in ROLES and f"'{role}'" not in self._source and f'"{role}"' not in self._source:
            close = difflib.get_close_matches(role, ROLES, n=1, cutoff=0.75)
            if close:
                raise InvalidArgumentError(f"{path}: found {role!r}; did you mean {close[0]!r}?")

    def _writes(self, role: str) -> bool | None:
        """Whether the template writes the content of a role's message; None where it refuses the role."""
        if role not in self._written:
            if len(self._written) >= _MOST_KEPT:
                self._written.clear()
            self._written[role] = self._tried(role, parts=bool(self._wants_parts))
        return self._written[role]

    def _tried(self, role: str, *, parts: bool) -> bool | None:
        def content(text: str) -> Any:
            return [{"type": "text", "text": text}] if parts else text

        accepted = None
        for before, after in _SETTINGS:
            messages: list[dict[str, Any]] = [*before, {"role": role, "content": _WORD}, *after]
            try:
                text = self._render(
                    [{**message, "content": content(message["content"])} for message in messages]
                )
            except TemplateError:
                continue
            if _WORD in text.lower():
                return True
            accepted = False
        return accepted
