"""Chat messages to the text that a model was trained on, by the model's own Jinja template.

A template's text may contain control tokens; a message must not be able to (it could end its turn and open
another as somebody else). The two are told apart by marks: a private-use character, put into the messages
where a control token is spelt or could be completed, survives rendering, and where it comes out the text is
cut into two `Segment`, across which no control token is recognised. The text itself is that of the unmarked
messages, whenever the template gives the same for both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from akunu.chat_formats import FORMATS
from akunu.errors import InvalidArgumentError, TemplateError
from akunu.tokenizer import Segment
from akunu.tokenizer.special import TextIndex

if TYPE_CHECKING:
    from jinja2.environment import Template

    from akunu.template_limits import Limits
    from akunu.tokenizer import Tokenizer

__all__ = ["ChatTemplate"]

_DEFAULT = "default"
_RESERVED = frozenset({"messages", "tools", "add_generation_prompt", "bos_token", "eos_token", "unk_token"})
# Roles that a template may put into a control token, as in '<|' + role + '|>'. Any other role is marked.
_ROLES = frozenset(
    {"system", "user", "assistant", "tool", "developer", "function", "ipython", "model", "observation"}
    | {"environment", "tool_response"}
)


class ChatTemplate:
    """The chat format of one model.

    Parameters
    ----------
    source : str or mapping of str to str
        A Jinja template, or several by name; the one named ``default`` is used, or ``tool_use`` where there
        are tools and such a template.
    tokenizer : Tokenizer
        The model's tokenizer: knows the control tokens, BOS and EOS.
    limits : Limits, optional
        What rendering may take.

    Raises
    ------
    TemplateError
        A template does not compile.

    Examples
    --------
    >>> template = ChatTemplate.from_metadata(metadata, tokenizer)
    >>> ids = template.encode([{"role": "user", "content": "Hello!"}])
    """

    def __init__(
        self, source: str | Mapping[str, str], tokenizer: Tokenizer, *, limits: Limits | None = None
    ) -> None:
        from akunu.template_limits import Limits
        from akunu.template_sandbox import compile_template

        if not isinstance(source, str | Mapping):
            raise InvalidArgumentError(
                f"chat template: found {type(source).__name__}, expected a text, or texts by name"
            )
        self.sources: dict[str, str] = {_DEFAULT: source} if isinstance(source, str) else dict(source)
        """The templates by name."""
        if not self.sources:
            raise TemplateError("no chat template was given")
        for name, text in self.sources.items():
            if not isinstance(text, str):
                raise InvalidArgumentError(
                    f"chat template {name!r}: found {type(text).__name__}, expected a text"
                )
        self._tokenizer = tokenizer
        self._limits = limits or Limits()
        self._templates: dict[str, Template] = {
            name: compile_template(text, self._limits) for name, text in self.sources.items()
        }
        self._marks = _Marks(tokenizer.control_texts())
        self._variables = {
            name: "" if token is None else tokenizer.token_text(token)
            for name, token in (
                ("bos_token", tokenizer.bos_id),
                ("eos_token", tokenizer.eos_id),
                ("unk_token", tokenizer.unknown_id),
            )
        }

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, object], tokenizer: Tokenizer) -> ChatTemplate:
        """The templates of a GGUF file: ``tokenizer.chat_template`` and ``tokenizer.chat_template.NAME``.

        Raises
        ------
        TemplateError
            The file has none, or one does not compile.
        """
        sources = {}
        for key, value in metadata.items():
            if key == "tokenizer.chat_template":
                name = _DEFAULT
            elif key.startswith("tokenizer.chat_template."):
                name = key.removeprefix("tokenizer.chat_template.")
            else:
                continue
            if not isinstance(value, str):
                raise TemplateError(f"{key}: found {type(value).__name__}, expected a string")
            sources[name] = value
        if not sources:
            raise TemplateError(
                "the model file has no chat template (tokenizer.chat_template). Give one: a template, or "
                "the name of a common format: " + ", ".join(FORMATS)
            )
        return cls(sources, tokenizer)

    @classmethod
    def named(cls, name: str, tokenizer: Tokenizer) -> ChatTemplate:
        """One of the common formats, for a model whose file has no template: see `akunu.chat_formats`.

        Raises
        ------
        InvalidArgumentError
            There is no such format.
        """
        if not isinstance(name, str) or name not in FORMATS:
            raise InvalidArgumentError(f"chat format: found {name!r}, expected one of " + ", ".join(FORMATS))
        return cls(FORMATS[name], tokenizer)

    def encode(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        template: str | None = None,
        variables: Mapping[str, Any] | None = None,
    ) -> list[int]:
        """Token ids of a conversation. Parameters and errors are those of `render`."""
        segments = self.render(
            messages,
            tools=tools,
            add_generation_prompt=add_generation_prompt,
            template=template,
            variables=variables,
        )
        return self._tokenizer.encode_segments(segments)

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        template: str | None = None,
        variables: Mapping[str, Any] | None = None,
    ) -> list[Segment]:
        """The text of a conversation, cut where no control token may cross.

        Parameters
        ----------
        messages : sequence of mapping
            Each with a ``role`` and usually a ``content``: a string, None, or a list of parts such as
            ``{"type": "text", "text": "…"}``. Other keys (``tool_calls``, ``name``, …) go to the template.
        tools : sequence of mapping, optional
            Function definitions (JSON schema), for templates that take them.
        add_generation_prompt : bool
            End with what begins the assistant's answer.
        template : str, optional
            Which of `sources` to use.
        variables : mapping of str to value, optional
            More variables for the template, such as ``{"enable_thinking": False}``.

        Raises
        ------
        InvalidArgumentError
            A message is not of the form above, or the messages are too long.
        TemplateError
            The template refuses the messages, fails, or runs away.
        """
        from akunu.template_sandbox import render

        compiled = self._choose(template, bool(tools))
        reader = _Reader(self._limits)
        given = {"messages": reader.messages(messages), **reader.variables(variables)}
        given["tools"] = reader.tools(tools)
        fixed: dict[str, Any] = {**self._variables, "add_generation_prompt": bool(add_generation_prompt)}
        now = datetime.now()

        def rendered(values: Mapping[str, Any]) -> str:
            return render(compiled, {**fixed, **values}, self._limits, now)

        plain = rendered(given)
        mark = _unused_character(
            [plain, *self.sources.values(), *reader.strings, *self._tokenizer.control_texts()]
        )
        error: TemplateError | None = None
        text = plain
        # From the marking that covers most to the one that disturbs a template least; each includes the next.
        for places in (self._marks.wide, self._marks.narrow, self._marks.spelt):
            marked = self._marked(given, mark, places)
            if marked == given:  # nothing to mark
                text, error = plain, None
                break
            try:
                text, error = rendered(marked), None
            except TemplateError as failure:
                error = failure
                continue
            if text.replace(mark, "") == plain:
                break
        # Here without a break, even the least marking changes what the template does: it looks for something
        # that is spelt like a control token. Then what it does for the marked messages counts.
        if error is not None:
            raise error
        cut = mark in text
        return [
            Segment(part, parse_special=not (cut and len(part) == 1)) for part in text.split(mark) if part
        ]

    def _marked(self, given: Mapping[str, Any], mark: str, places: _Places) -> dict[str, Any]:
        def insert(string: str, places: _Places) -> str:
            parts = []
            start = 0
            for place in sorted(places(string)):
                parts.append(string[start:place])
                start = place
            return mark.join([*parts, string[start:]])

        def visit(value: Any, key: str = "") -> Any:
            if isinstance(value, str):
                structural = (key == "role" and value in _ROLES) or (key == "type" and value.isidentifier())
                return value if structural else insert(value, places)
            if isinstance(value, list):
                return [visit(item) for item in value]
            if isinstance(value, dict):
                return {insert(name, self._marks.spelt): visit(item, name) for name, item in value.items()}
            return value

        return {name: visit(value) for name, value in given.items()}

    def _choose(self, name: str | None, has_tools: bool) -> Template:
        if name is None:
            name = "tool_use" if has_tools and "tool_use" in self.sources else _DEFAULT
            if name not in self.sources and len(self.sources) == 1:
                name = next(iter(self.sources))
        if not isinstance(name, str) or name not in self._templates:
            raise InvalidArgumentError(
                f"chat template: found {name!r}, expected one of " + ", ".join(self.sources)
            )
        return self._templates[name]


_Places = Callable[[str], set[int]]


class _Marks:
    """Where to mark a string from outside, so that no control token comes out of it unmarked.

    Comparison ignores case, for templates that change it.
    """

    def __init__(self, control_texts: Iterable[str]) -> None:
        texts = {_lower(text) for text in control_texts}
        self._index = TextIndex(dict.fromkeys(texts, 0))
        self._beginnings = {text[:n] for text in texts for n in range(1, len(text))}
        self._endings = {text[n:] for text in texts for n in range(1, len(text))}
        self._longest = max(map(len, texts), default=0)
        self._joined = "\n".join(texts)
        leads = sorted({text[0] for text in texts if not text[0].isalnum() and not text[0].isspace()})
        self._lead = re.compile("[" + "".join(map(re.escape, leads)) + "]") if leads else None

    def spelt(self, string: str) -> set[int]:
        """Inside each control token, and where the string's beginning or end could be part of one."""
        places: set[int] = set()
        lower = _lower(string)
        position = 0
        while (start := self._index.candidate(lower, position)) >= 0:
            position = start + 1
            for end, _ in self._index.matches(lower, start):
                # Cut after the first character; a token of one character is cut out, see
                # `ChatTemplate.render`.
                places.update((start, end) if end == start + 1 else (start + 1,))
        # With and without the white space around it: templates trim.
        for begin, end in ((0, len(lower)), (len(lower) - len(lower.lstrip()), len(lower.rstrip()))):
            reach = min(self._longest, end - begin)
            if any(lower[begin : begin + n] in self._endings for n in range(1, reach + 1)):
                places.add(begin)
            if any(lower[end - n : end] in self._beginnings for n in range(1, reach + 1)):
                places.add(end)
        return places

    def narrow(self, string: str) -> set[int]:
        """Also around a string that is the middle of a control token."""
        places = self.spelt(string)
        inner = _lower(string).strip()
        if inner and len(inner) < self._longest and inner in self._joined:
            places |= {0, len(string)}
        return places

    def wide(self, string: str) -> set[int]:
        """Also after whatever may begin a control token, in case the template takes out what follows."""
        places = self.narrow(string)
        if self._lead:
            places.update(match.end() for match in self._lead.finditer(_lower(string)))
        return places


def _lower(text: str) -> str:
    """Lower case, character by character: the same length as `text`."""
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(char.lower() if len(char.lower()) == 1 else char for char in text)


def _unused_character(texts: Iterable[str]) -> str:
    used = set().union(*map(set, texts))
    for code in (*range(0xE000, 0xF900), *range(0xF0000, 0xFFFFE)):
        if chr(code) not in used:
            return chr(code)
    raise InvalidArgumentError("the messages use every private-use character of Unicode")


class _Reader:
    """Checks what the caller gives a template, and copies it into plain lists, dicts and strings."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._left = limits.input_chars
        self.strings: list[str] = []
        """Every string that was read."""

    def messages(self, messages: object) -> list[Any]:
        if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Sequence):
            raise InvalidArgumentError(
                f"messages: found {type(messages).__name__}, expected a list of messages"
            )
        if not messages:
            raise InvalidArgumentError("messages: found none, expected at least one")
        for n, message in enumerate(messages):
            if not isinstance(message, Mapping):
                raise InvalidArgumentError(
                    f"messages[{n}]: found {type(message).__name__}, expected a mapping"
                )
            role = message.get("role")
            if not isinstance(role, str) or not role:
                raise InvalidArgumentError(
                    f"messages[{n}].role: found {role!r}, expected a string such as 'user'"
                )
            content = message.get("content")
            if content is not None and not isinstance(content, str | list | tuple):
                raise InvalidArgumentError(
                    f"messages[{n}].content: found {type(content).__name__}, "
                    "expected a string or a list of parts"
                )
        copied = self._copy(messages, "messages", self._limits.depth)
        assert isinstance(copied, list)
        return copied

    def tools(self, tools: object) -> list[Any] | None:
        if tools is None:
            return None
        if not isinstance(tools, list | tuple) or not all(isinstance(tool, Mapping) for tool in tools):
            raise InvalidArgumentError("tools: expected a list of mappings")
        copied = self._copy(tools, "tools", self._limits.depth)
        assert isinstance(copied, list)
        return copied or None

    def variables(self, variables: object) -> dict[str, Any]:
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
        copied = self._copy(variables, "template variables", self._limits.depth)
        assert isinstance(copied, dict)
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
