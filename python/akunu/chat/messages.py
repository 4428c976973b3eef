"""Check what the caller gives a template, and copy it into plain lists, dicts and strings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from akunu.base.errors import InvalidArgumentError
from akunu.chat.images import image_of
from akunu.chat.limits import RenderLimits

__all__ = ["MessageContent", "Reader", "message_list", "texts_of"]

MessageContent = str | list[dict[str, Any]]
"""The content of a message: a text, or parts, of which some may be images."""

_RESERVED: Final = frozenset(
    {"messages", "tools", "add_generation_prompt", "bos_token", "eos_token", "unk_token"}
)


def message_list(messages: object) -> Sequence[Mapping[str, Any]]:
    """Messages, maybe none. What is in them is checked when they are read for a template."""
    if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Sequence):
        raise InvalidArgumentError(
            f"messages: found {type(messages).__name__}, expected a list of messages such as "
            '{"role": "user", "content": "Hello!"}'
        )
    for n, message in enumerate(messages):
        if not isinstance(message, Mapping):
            raise InvalidArgumentError(f"messages[{n}]: found {type(message).__name__}, expected a mapping")
    return messages


def texts_of(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the texts of the messages; `Reader` refuses what is of another format."""
    for message in messages:
        content = message.get("content")
        for part in content if isinstance(content, list | tuple) else (content,):
            text = part.get("text") if isinstance(part, Mapping) else part
            if isinstance(text, str):
                yield text


class Reader:
    """Reads the input of one rendering, all of it together within the limits.

    Parameters
    ----------
    limits
        What it may have.
    image : str, optional
        What stands in the text where a content has an image; None: images are refused.
    """

    def __init__(self, limits: RenderLimits, image: str | None = None) -> None:
        self._limits = limits
        self._image = image
        self._left = limits.input_chars
        self.strings: list[str] = []
        """Every string that was read."""

    def messages(self, messages: object) -> list[dict[str, Any]]:
        """Messages with a role, whose content is one text, or None beside tool calls."""
        found = message_list(messages)
        if not found:
            raise InvalidArgumentError("messages: found none, expected at least one")
        return [self._message(message, f"messages[{n}]") for n, message in enumerate(found)]

    def _message(self, message: Mapping[str, Any], path: str) -> dict[str, Any]:
        role = message.get("role")
        if not isinstance(role, str) or not role:
            raise InvalidArgumentError(f"{path}.role: found {role!r}, expected a string such as 'user'")
        content = message.get("content")
        if content is None and not (message.get("tool_calls") or message.get("function_call")):
            raise InvalidArgumentError(f"{path}.content: missing; only a message with tool_calls needs none")
        calls = message.get("tool_calls")
        if calls and not (isinstance(calls, list | tuple) and all(isinstance(one, Mapping) for one in calls)):
            raise InvalidArgumentError(f"{path}.tool_calls: expected a list of mappings, found {calls!r:.80}")
        if isinstance(content, list | tuple):
            message = {**message, "content": self._joined(content, f"{path}.content")}
        elif content is not None and not isinstance(content, str):
            raise InvalidArgumentError(
                f"{path}.content: found {type(content).__name__}, expected a text or a list of text parts"
            )
        copied: dict[str, Any] = self._copy(message, path, self._limits.depth)
        return copied

    def tools(self, tools: object) -> list[Any] | None:
        """Definitions of functions; None for none, as templates expect."""
        if tools is None:
            return None
        if not isinstance(tools, list | tuple) or not all(isinstance(tool, Mapping) for tool in tools):
            raise InvalidArgumentError("tools: expected a list of mappings")
        copied: list[Any] = self._copy(tools, "tools", self._limits.depth)
        for tool in copied:  # `strict` is for the one who reads the answer
            function = tool.get("function", tool)
            if isinstance(function, dict):
                function.pop("strict", None)
        return copied or None

    def variables(self, variables: object) -> dict[str, Any]:
        """Variables of the caller, none of which has the name of one of ours."""
        if variables is None:
            return {}
        if not isinstance(variables, Mapping):
            raise InvalidArgumentError(
                f"template variables: found {type(variables).__name__}, expected a mapping of name to value"
            )
        if clash := _RESERVED & variables.keys():
            raise InvalidArgumentError(
                f"template variable {min(clash)!r} is set by Akunu; choose another name"
            )
        copied: dict[str, Any] = self._copy(variables, "template variables", self._limits.depth)
        return copied

    def _copy(self, value: Any, path: str, depth: int) -> Any:
        if isinstance(value, str):
            self._take(len(value) + 1)
            self.strings.append(value)
            return str(value)
        self._take(1)
        if value is None or isinstance(value, bool | int | float):
            return value
        if depth == 0:
            raise InvalidArgumentError(f"{path}: nested deeper than {self._limits.depth} levels")
        if isinstance(value, Mapping):
            copied = {}
            for key, item in value.items():
                if not isinstance(key, str):
                    raise InvalidArgumentError(f"{path}: found the key {key!r}, expected strings as keys")
                copied[self._copy(key, path, depth)] = self._copy(item, f"{path}.{key}", depth - 1)
            return copied
        if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
            return [self._copy(item, f"{path}[{n}]", depth - 1) for n, item in enumerate(value)]
        raise InvalidArgumentError(
            f"{path}: found {type(value).__name__}, expected text, numbers, lists or mappings"
        )

    def _take(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise InvalidArgumentError(
                f"the messages have more than {self._limits.input_chars} characters, the limit of a chat"
            )

    def _joined(self, parts: Sequence[object], path: str) -> str:
        """The text of a content in parts, which follow each other without a separator."""
        texts = []
        for n, part in enumerate(parts):
            if not isinstance(part, Mapping):
                raise InvalidArgumentError(
                    f'{path}[{n}]: found {type(part).__name__}, expected {{"type": "text", "text": …}}'
                )
            kind, text = part.get("type"), part.get("text")
            if image_of(part, f"{path}[{n}]") is not None:
                if self._image is None:
                    raise InvalidArgumentError(f"{path}[{n}]: found an image; this model reads text only")
                texts.append(self._image)
                continue
            if kind != "text":
                raise InvalidArgumentError(
                    f"{path}[{n}]: a part of the type {kind!r} is not supported; parts of text and images are"
                )
            if not isinstance(text, str):
                raise InvalidArgumentError(f"{path}[{n}].text: found {type(text).__name__}, expected a text")
            texts.append(text)
        return "".join(texts)
