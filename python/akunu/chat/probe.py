"""Find what a template does with roles, contents, tools and calls: a word is rendered and looked for."""

from __future__ import annotations

import difflib
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple

from akunu.base.errors import InvalidArgumentError, TemplateError
from akunu.chat.generic_tools import described, with_responses, written
from akunu.chat.marks import ROLES

__all__ = ["Probe"]

_WORD: Final = "needle7needle"
_CALL: Final = {"type": "function", "function": {"name": "f", "arguments": {}}, "id": "call00001"}
_USER: Final = {"role": "user", "content": "u"}
_ANSWER: Final = {"role": "assistant", "content": "a"}
_CALLING: Final = {"role": "assistant", "content": "", "tool_calls": [_CALL]}
_SYSTEM: Final = {"role": "system", "content": "first7first"}
_AFTER_AN_ANSWER: Final = (((_USER, _ANSWER), (_USER,)), ((_USER, _ANSWER), ()))
_AFTER_A_USER: Final = (((_USER,), ()), ((_USER,), (_ANSWER,)), ((_USER,), (_USER,)))
_Place = Literal[
    "before the user", "before others", "alone", "anywhere", "after the system", "after a user",
    "after an answer", "after the system and a user", "after the system and an answer",
]  # fmt: skip
_SETTINGS: Final[Mapping[_Place, Any]] = {
    "before the user": (((), (_USER,)), ((), (_USER, _ANSWER))),
    "before others": (((), (_ANSWER, _USER)), ((), (_ANSWER,))),
    "alone": (((), ()),),
    "anywhere": (
        ((), ()),
        ((_USER,), ()),
        ((), (_USER,)),
        ((_USER, _ANSWER), ()),
        ((_USER, _CALLING), ()),
    ),
    "after the system": (((_SYSTEM,), (_USER,)),),
    "after a user": _AFTER_A_USER,
    "after an answer": _AFTER_AN_ANSWER,
    "after the system and a user": tuple(((_SYSTEM, *before), after) for before, after in _AFTER_A_USER),
    "after the system and an answer": tuple(
        ((_SYSTEM, *before), after) for before, after in _AFTER_AN_ANSWER
    ),
}
"""The messages before and after one, in conversations that one template or another accepts."""
_SYSTEMS: Final = ("system", "developer")
_RESULT: Final = {"role": "tool", "content": "r", "name": "f", "tool_call_id": "call00001"}
_ARGUMENTS: Final = {_WORD: 7}
_TOOL: Final = {
    "type": "function",
    "function": {
        "name": _WORD,
        "description": _WORD,
        "parameters": {"type": "object", "properties": {"a": {"type": "string", "description": "b"}}},
    },
}
_REASONING: Final = ("reasoning_content", "reasoning", "thinking")
"""The names that templates have for an assistant's reasoning (Qwen, GLM; Gemma; gpt-oss, LFM)."""
_MOST_KEPT: Final = 64
_End = Literal["results", "an answer", "nothing"]
_AFTER_CALLS: Final[tuple[_End, ...]] = ("results", "an answer", "nothing")
"""The messages that may follow calls, the usual ones first."""


class _CallForm(NamedTuple):
    """The form in which a template wants a message with calls."""

    as_text: bool
    """The arguments as JSON text, not as an object."""
    content: str | None
    """The content where there is none."""
    takes_any: bool = True
    """Arguments that are no object are written too; otherwise they fail."""


class Probe:
    """Asks one template.

    Parameters
    ----------
    render
        Renders messages, and perhaps tools; raises `TemplateError` where the template refuses them.
    source
        The template's text.
    """

    def __init__(self, render: Callable[..., str], source: str) -> None:
        self._render = render
        self._source = source
        self._written: dict[tuple[str, _Place], bool | None] = {}
        self._wants_parts: bool | None = None

    def prepared(self, messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """The messages, checked, with contents, reasoning and calls in the form that the template reads.

        Raises
        ------
        InvalidArgumentError
            The template would leave a message or its calls out, or a role is misspelt.
        """
        if self._wants_parts is None:
            self._wants_parts = self._writes("user") is not True and bool(self._tried("user", parts=True))
            self._written.clear()
        messages = self._with_later_words(self._without_a_place(messages))
        for n, message in enumerate(messages):
            self._check_role(message["role"], f"messages[{n}].role")
            self._prepare_reasoning(message)
            if message.get("tool_calls"):
                self._prepare_calls(message, f"messages[{n}].tool_calls")
            if self._wants_parts and isinstance(message.get("content"), str):
                message["content"] = [{"type": "text", "text": message["content"]}]
        several = any(len(message.get("tool_calls") or ()) > 1 for message in messages)
        if several and self._call_form is not None and not self._writes_several_calls:
            content: Any = self._call_form.content
            if self._wants_parts and content is not None:
                content = [{"type": "text", "text": content}]
            return list(_one_call_each(messages, content))
        return list(messages)

    def _without_a_place(self, messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """The messages, where the template has no place for what the system says first, without that.

        The next message of the user begins with it, as in other programs, or else is made of it.
        """
        first = next((n for n, each in enumerate(messages) if each["role"] not in _SYSTEMS), len(messages))
        said, rest = list(messages[:first]), list(messages[first:])
        if not said or self._writes("user") is not True:
            return list(messages)
        place: _Place = "before others" if rest else "alone"
        if rest and rest[0]["role"] == "user":
            place = "before the user"
        if not self._writes(said[0]["role"], place):
            if not self._writes("system", place):
                beside = rest.pop(0) if place == "before the user" else {"role": "user"}
                return [{**beside, "content": _words([*said, beside])}, *rest]
            said = [{**each, "role": "system"} for each in said]  # which developers are
        if len(said) > 1 and not self._writes(said[1]["role"], "after the system"):
            said = [{**said[0], "content": _words(said)}]
        return [*said, *rest]

    def _with_later_words(self, messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """The messages, where the template has no place for what the system says later, as the user's.

        If the template wants user and assistant to take turns, such words are part of the user's next
        message, or else of the one before.
        """
        found: list[dict[str, Any]] = []
        held: list[dict[str, Any]] = []
        for n, message in enumerate(messages):
            if n and message["role"] in _SYSTEMS and self._is_the_users(messages[:n], message["role"]):
                if self._writes("user", "after a user"):
                    found.append({**message, "role": "user"})
                else:
                    held.append(message)
                continue
            if held and message["role"] == "user":
                message = {**message, "content": _words([*held, message])}
            elif held:
                found = _with_words(found, held)
            held = []
            found.append(message)
        return _with_words(found, held) if held else found

    def check_tools(self) -> None:
        """Raises `InvalidArgumentError` if the template leaves tools out."""
        if self.leaves_tools_out:
            raise InvalidArgumentError(
                "tools: the chat template of this model leaves them out; describe them in the system message"
            )

    def with_generic_tools(
        self, messages: list[dict[str, Any]], tools: list[Any] | None
    ) -> tuple[list[dict[str, Any]], list[Any] | None, str]:
        """Messages and tools, with what the template leaves out in the generic format, and what that is."""
        if self._writes("user") is not True:  # it cannot be asked
            return messages, tools, ""
        left_out = []
        if tools and self.leaves_tools_out:
            messages, tools = described(messages, tools), None
            left_out.append("tools")
        past = any(message.get("tool_calls") for message in messages)
        calls = past and (bool(left_out) or self._call_form is None)
        results = any(message["role"] == "tool" for message in messages)
        if results and not calls and self._takes_responses:
            messages, results = with_responses(messages), False
        results = results and (calls or not self._takes_results)
        left_out += ["calls"] * calls + ["results of calls"] * results
        if calls or results:
            messages = written(messages, calls=calls, results=results)
        return messages, tools, " and ".join(left_out)

    @cached_property
    def leaves_tools_out(self) -> bool:
        """Whether the template leaves tools out, or refuses them."""
        if self._writes("user") is not True:
            return False
        try:
            without = self._render([_USER])
        except TemplateError:  # it cannot be asked
            return False
        try:
            with_tools = self._render([_USER], [_TOOL])
        except TemplateError:
            return True
        return _WORD not in with_tools and with_tools == without

    @cached_property
    def _takes_results(self) -> bool:
        """Whether results of calls are messages that the template writes."""
        if self._writes("tool"):
            return True
        form = self._call_form
        if form is None:
            return False
        call = {**_CALL, "function": {"name": "f", "arguments": _arguments({}, form)}}
        calling = {"role": "assistant", "content": form.content, "tool_calls": [call]}
        for after in ((), (_ANSWER,)):
            try:
                return _WORD in self._render([_USER, calling, {**_RESULT, "content": _WORD}, *after])
            except TemplateError:
                continue
        return False

    @cached_property
    def _takes_responses(self) -> bool:
        """Whether results are part of the message with the calls, and no messages of their own."""
        if "tool_responses" not in self._source or self._takes_results:
            return False
        responses = [{"name": "f", "response": _WORD}]
        try:
            return _WORD in self._render([_USER, {**_CALLING, "tool_responses": responses}])
        except TemplateError:
            return False

    def _prepare_reasoning(self, message: dict[str, Any]) -> None:
        """Give the reasoning by the name that the template has for it, whichever it came by."""
        given = next((text for name in _REASONING if isinstance(text := message.get(name), str)), "")
        if given:
            message.update({name: given for name in self._reasoning_names})

    @cached_property
    def _reasoning_names(self) -> list[str]:
        return [name for name in _REASONING if re.search(rf"\b{name}\b", self._source)]

    def _prepare_calls(self, message: dict[str, Any], path: str) -> None:
        form = self._call_form
        if form is None:
            if self._writes("user") is True:
                raise InvalidArgumentError(f"{path}: the chat template of this model leaves calls out")
            return
        if message.get("content") is None:
            message["content"] = form.content
        for call in message["tool_calls"]:
            function = call.get("function", call) if isinstance(call, Mapping) else None
            if isinstance(function, dict) and "arguments" in function:
                function["arguments"] = _arguments(function["arguments"], form)

    @cached_property
    def _call_form(self) -> _CallForm | None:
        """The form of a message with calls; None where the template writes none."""
        for end in _AFTER_CALLS:
            for content in (None, ""):
                as_object = self._with_call(_ARGUMENTS, content, end)
                as_text = self._with_call(json.dumps(_ARGUMENTS), content, end)
                if content is None and "None" in as_object + as_text:
                    continue
                # A mapping that comes out as Python writes it shows that a text is wanted.
                if _WORD in as_object and f"'{_WORD}': 7" not in as_object:
                    return _CallForm(as_object == as_text, content, takes_any=bool(as_text))
                if _WORD in as_text:
                    return _CallForm(True, content)
        return None

    @cached_property
    def _writes_several_calls(self) -> bool:
        """Whether it writes all the calls of a message, where it writes one."""
        assert self._call_form is not None
        arguments = _arguments(_ARGUMENTS, self._call_form)
        texts = (
            self._with_call(arguments, self._call_form.content, end, f"{_WORD}2") for end in _AFTER_CALLS
        )
        return f"{_WORD}2" in next(filter(None, texts), "")

    def _with_call(self, arguments: object, content: str | None, end: _End, *more: str) -> str:
        """Render a call, and `more` of these names beside it; "" where that fails."""
        called = [
            {**_CALL, "id": f"call{n:05}", "function": {"name": name, "arguments": arguments}}
            for n, name in enumerate((_WORD, *more), 1)
        ]
        calling = {"role": "assistant", "content": content, "tool_calls": called}
        results = [{**_RESULT, "tool_call_id": call["id"]} for call in called if end != "nothing"]
        answer = [_ANSWER] if end == "an answer" else []
        try:
            return self._render([_USER, calling, *results, *answer])
        except TemplateError:
            return ""

    def _check_role(self, role: str, path: str) -> None:
        if self._writes("user") is not True:  # it writes no message anyhow, or cannot be asked
            return
        if self._writes(role) is False and not (role == "tool" and self._takes_results):
            known = ", ".join(name for name in ROLES if self._writes(name))
            raise InvalidArgumentError(
                f"{path}: the chat template leaves out messages of the role {role!r}; it knows {known}"
            )
        if role not in ROLES and f"'{role}'" not in self._source and f'"{role}"' not in self._source:
            close = difflib.get_close_matches(role.lower(), ROLES, n=1, cutoff=0.75)
            if close:
                raise InvalidArgumentError(f"{path}: found {role!r}; did you mean {close[0]!r}?")

    def _is_the_users(self, before: Sequence[Mapping[str, Any]], role: str) -> bool:
        """Whether the user says what the system says later, as the template takes only its first words."""
        others = [message["role"] for message in before if message["role"] not in _SYSTEMS]
        place: _Place = "after the system"
        if others and len(others) < len(before):
            place = (
                "after the system and a user" if others[-1] == "user" else "after the system and an answer"
            )
        elif others:
            place = "after a user" if others[-1] == "user" else "after an answer"
        return self._writes("user") is True and not self._writes(role, place)

    def _writes(self, role: str, place: _Place = "anywhere") -> bool | None:
        """Whether the template writes the content of a role's message; None where it refuses the role."""
        key = role, place
        if key not in self._written:
            if len(self._written) >= _MOST_KEPT:
                self._written.clear()
            self._written[key] = self._tried(role, place, parts=bool(self._wants_parts))
        return self._written[key]

    def _tried(self, role: str, place: _Place = "anywhere", *, parts: bool) -> bool | None:
        def content(text: str) -> Any:
            return [{"type": "text", "text": text}] if parts else text

        accepted = None
        for before, after in _SETTINGS[place]:
            messages: list[dict[str, Any]] = [*before, {"role": role, "content": _WORD}, *after]
            try:
                text = self._render(
                    [{**message, "content": content(message["content"])} for message in messages]
                )
            except TemplateError:
                continue
            # Later words of the system may also take the place of its first.
            lost = _SYSTEM in before and _SYSTEM["content"] not in text.lower()
            if _WORD in text.lower() and not lost:
                return True
            accepted = False
        return accepted


def _words(messages: Iterable[Mapping[str, Any]]) -> str:
    """Return what messages say, as one text."""
    return "\n\n".join(each["content"] for each in messages if each.get("content"))


def _with_words(messages: list[dict[str, Any]], held: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages with these words at their end, as the user's."""
    if messages and messages[-1]["role"] == "user":
        return [*messages[:-1], {**messages[-1], "content": _words([messages[-1], *held])}]
    return [*messages, {"role": "user", "content": _words(held)}]


def _one_call_each(messages: Sequence[dict[str, Any]], content: Any) -> Iterator[dict[str, Any]]:
    """Return the conversation with one call in a message at most, each followed by its result.

    What is said and thought beside several calls stays with the first; the others have this `content`.
    """
    rest = list(messages)
    while rest:
        message = rest.pop(0)
        calls = message.get("tool_calls") or ()
        if len(calls) < 2:
            yield message
            continue
        results = list(itertools.takewhile(lambda each: each["role"] == "tool", rest))
        del rest[: len(results)]
        for n, call in enumerate(calls):
            first = message if n == 0 else {"role": message["role"], "content": content}
            yield {**first, "tool_calls": [call]}
            name = call.get("id")
            found = [i for i, result in enumerate(results) if name in (None, result.get("tool_call_id"))]
            if found:
                yield results.pop(found[0])
        yield from results


def _arguments(given: Any, form: _CallForm) -> Any:
    """Arguments of a call, as a text or an object.

    A text that is no object (the model broke off) stays what it was, if the template takes it; or else it is
    the one argument of an object.
    """
    if form.as_text:
        return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    if isinstance(given, Mapping):
        return given
    value = given
    if isinstance(given, str):
        try:
            value = json.loads(given or "{}")
        except (ValueError, RecursionError):
            value = given
    if isinstance(value, dict) or form.takes_any:
        return value if isinstance(value, dict) else given
    return {} if value is None else {"arguments": given}
