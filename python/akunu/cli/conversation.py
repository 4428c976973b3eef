"""A conversation: its messages, what is done with a line, and what happens when the context is full."""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from akunu.base.errors import AkunuError, ContextLengthError
from akunu.cli.answers import why_cut_off, write_answer
from akunu.cli.console import note, os_error_text, stats_text
from akunu.cli.files import read_text
from akunu.cli.images import content_of, is_image, named_in, text_of

if TYPE_CHECKING:
    from akunu.api.model import Model
    from akunu.api.results import Completion
    from akunu.chat.messages import MessageContent

__all__ = ["OVERFLOWS", "Conversation", "command_names"]

OVERFLOWS: Final = ("stop", "drop")
"""Choices when the context is full: say so, or forget the oldest turns."""

_ROLES: Final = ("user", "assistant")


class Conversation:
    """Messages, and the model that answers them.

    Parameters
    ----------
    model
        Answers.
    arguments
        The arguments of `Model.stream_chat`.
    system
        System message, if any.
    stats
        Whether to show counts and speed after each answer.
    overflow
        One of `OVERFLOWS`.
    interactive
        Whether Ctrl-C only stops the answer, because somebody can go on.
    messages
        Those of an earlier conversation, which this one continues.
    on_turn
        Called with all messages after each answer.
    """

    def __init__(
        self,
        model: Model,
        arguments: Mapping[str, Any],
        *,
        system: str | None = None,
        stats: bool = False,
        overflow: str = "stop",
        interactive: bool = False,
        messages: Sequence[dict[str, Any]] = (),
        on_turn: Callable[[list[dict[str, Any]]], None] | None = None,
    ) -> None:
        self.model = model
        self.arguments = dict(arguments)
        earlier = list(messages)
        if earlier and earlier[0]["role"] == "system":
            first = earlier.pop(0)
            system = system or str(first["content"])
        self.system = system
        self.stats = stats
        self.overflow = overflow
        self.stopped_by = (KeyboardInterrupt,) if interactive else ()
        self.messages: list[dict[str, Any]] = earlier
        self._on_turn = on_turn
        self._images: list[str] = []
        """Paths of the images that the next message shows."""

    def take(self, line: str) -> bool:
        """Run a command or answer a message; False when the conversation is over.

        Raises
        ------
        AkunuError
            The answer could not be made; the message is then not part of the conversation.
        """
        text = line.strip()
        images: list[str] = []
        if self.model.reads_images:
            text, images = named_in(text)
            for path in images:
                note(f"[image: {path}]")
        self._images += images
        one_line = "\n" not in text  # several: a text that was pasted
        if one_line and text.startswith("/") and not text.startswith("//"):
            return self._command(text)
        if one_line and text.startswith("//"):
            text = text.removeprefix("/")
        if text:  # a path alone is for the next message
            self.answer(content_of(text, self._images))
        return True

    def answer(self, content: MessageContent) -> None:
        """Answer a message; both become part of the conversation."""
        before = list(self.messages)
        self.messages.append({"role": "user", "content": content})
        try:
            completion = self._answered()
        except BaseException:
            self.messages = before
            raise
        self.messages.append(completion.message or {"role": "assistant", "content": completion.text})
        self._images.clear()
        if self._on_turn is not None:
            self._on_turn(self._all())
        reason = why_cut_off(completion, self.arguments.get("max_tokens"))
        if reason:
            more = f"; {_WAYS_OUT}" if "context" in reason and self.overflow == "stop" else ""
            note(f"[the answer was cut off: {reason}{more}]")
        if self.stats:
            note(stats_text(completion.stats))

    def _answered(self) -> Completion:
        if self.overflow == "drop":
            self._make_room()
        try:
            pieces = self.model.stream_chat(self._all(), **self.arguments)
            # An answer that is stopped stays in the conversation as far as it was seen.
            write_answer(pieces, self.stopped_by)
        except ContextLengthError as error:
            if len(self.messages) == 1 or self._length(self.messages[-1:]) >= self.model.context:
                raise  # the last message alone does not fit
            raise ContextLengthError(f"the conversation is full: {error}; {_WAYS_OUT}") from error
        return pieces.completion

    def _all(self, messages: Sequence[dict[str, Any]] | None = None) -> list[dict[str, Any]]:
        """The messages, the conversation's by default, after the system message."""
        system = [{"role": "system", "content": self.system}] if self.system else []
        return [*system, *(self.messages if messages is None else messages)]

    def _make_room(self) -> None:
        """Forget the oldest turns if what is left of the context is too little for an answer.

        Then half of the context is made free: each time the beginning changes, the rest is computed anew.
        """
        context = self.model.context
        room = min(self.arguments.get("max_tokens", context), context // 4)
        if self._length() + room <= context or self._length(self.messages[-1:]) >= context:
            return  # there is room, or no room would do
        dropped = 0
        while len(self.messages) > 1 and self._length() > context // 2:
            del self.messages[:2]
            dropped += 1
        if dropped:
            note(f"[the context is full: the oldest {_turns(dropped)} forgotten]")

    def _length(self, messages: Sequence[dict[str, Any]] | None = None) -> int:
        """Return the number of tokens of messages."""
        names = ("template_variables", "image_tokens")
        given = {name: self.arguments[name] for name in names if name in self.arguments}
        return self.model.count_tokens(self._all(messages), **given)

    # -- commands --------------------------------------------------------------------------------------------

    def _command(self, text: str) -> bool:
        name, _, rest = text[1:].partition(" ")
        name, rest = name.lower(), rest.strip()
        if name in _LEAVING:
            return False
        action = _ACTIONS.get(name)
        if action is None:
            close = difflib.get_close_matches(name, (*_ACTIONS, *_LEAVING), n=1)
            meant = f"did you mean /{close[0]}?" if close else "/help lists them"
            note(f"no command /{name}; {meant} (a message that begins with / is written //)")
        else:
            action.run(self, rest)
        return True

    def help(self, _rest: str) -> None:
        for name, action in _ACTIONS.items():
            note(f"  {f'/{name} {action.argument}':<21}{action.summary}")
        note(f"  {'/exit':<21}leave; Ctrl-D does too")
        note("  Ctrl-C stops an answer; end a line with \\ to go on with the next one; Tab completes")

    def reset(self, _rest: str) -> None:
        self.messages.clear()
        note("[the conversation is empty]")

    def retry(self, _rest: str) -> None:
        if not self.messages:
            note("[there is no message yet]")
            return
        before = list(self.messages)
        if "seed" in self.arguments:
            self.arguments["seed"] += 1  # the same one would give the same answer
        question = self._take_back()
        try:
            self.answer(question)
        except BaseException:
            self.messages = before
            raise

    def undo(self, _rest: str) -> None:
        if not self.messages:
            note("[there is no message yet]")
            return
        note(f"[forgotten: {_shortened(text_of(self._take_back()))}]")

    def last_question(self) -> str:
        """Return the beginning of the last question."""
        questions = [message["content"] for message in self.messages if message["role"] == "user"]
        return _shortened(text_of(questions[-1])) if questions else ""

    def _take_back(self) -> MessageContent:
        """Remove the last turn; returns its question."""
        while self.messages:
            message = self.messages.pop()
            if message["role"] == "user":
                content: MessageContent = message["content"]
                return content
        return ""

    def attach(self, rest: str) -> None:
        if not self.model.reads_images:
            note(f"[{self.model.name} reads text only; /image is for models that read images]")
        elif not rest:
            note(f"[for the next message: {', '.join(self._images) or 'no image'}]")
        else:
            path = os.path.expanduser(rest.strip("'\""))
            if not is_image(path):
                note(f"[not attached: {path} is no file with an image that is read here]")
                return
            self._images.append(path)
            note(f"[attached to the next message: {path}]")

    def set_system(self, rest: str) -> None:
        if rest:
            self.system = rest
            note("[system message set; it holds for the whole conversation]")
        else:
            note(f"[system message: {self.system or 'none'}]")

    def toggle_stats(self, _rest: str) -> None:
        self.stats = not self.stats
        note(f"[statistics {'on' if self.stats else 'off'}]")

    def set_overflow(self, rest: str) -> None:
        if rest.lower() in OVERFLOWS:
            self.overflow = rest.lower()
        elif rest:
            note(f"[/overflow: found {rest!r}, expected {' or '.join(OVERFLOWS)}]")
        note(f"[when the context is full: {self.overflow}]")

    def save(self, rest: str) -> None:
        if not rest:
            note("[/save needs the name of a file]")
            return
        path = os.path.expanduser(rest)
        try:
            data = (json.dumps(self._all(), ensure_ascii=False, indent=2) + "\n").encode()
            with open(path, "xb") as file:
                try:
                    file.write(data)
                    file.flush()
                except OSError:  # no half a conversation, which the next try would not replace
                    os.unlink(path)
                    raise
        except (OSError, ValueError) as error:  # ValueError: a name or a text that cannot be encoded
            note(f"[not saved: {os_error_text(error) if isinstance(error, OSError) else error}]")
        else:
            note(f"[{len(self.messages)} messages saved to {path}]")

    def load(self, rest: str) -> None:
        if not rest:
            note("[/load needs the name of a file]")
            return
        path = os.path.expanduser(rest)
        try:
            system, messages = _read_messages(json.loads(read_text(Path(path))))
        except AkunuError as error:
            note(f"[not loaded: {error}]")
        except (json.JSONDecodeError, RecursionError) as error:
            note(f"[not loaded: {path}: no conversation that /save wrote, for it is not JSON: {error}]")
        except ValueError as error:  # no name of a file, no conversation
            note(f"[not loaded: {path}: {error}]")
        else:
            self.system, self.messages = system, messages
            note(f"[{len(messages)} messages loaded from {path}]")


_WAYS_OUT: Final = (
    "/reset starts afresh, /undo takes the last turn back, "
    "/overflow drop forgets the oldest turns from now on"
)


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else line[:59] + "…"


def _turns(n: int) -> str:
    return "turn is" if n == 1 else f"{n} turns are"


def _read_messages(data: object) -> tuple[str | None, list[dict[str, Any]]]:
    """The system message, if any, and the turns of a saved conversation.

    Raises
    ------
    ValueError
        It is none.
    """
    if not isinstance(data, list) or not data:
        raise ValueError("expected a list of messages, as /save writes it")
    found = []
    for n, message in enumerate(data):
        role, content = (
            (message.get("role"), message.get("content")) if isinstance(message, dict) else (None, None)
        )
        if not isinstance(role, str) or not _is_content(content):
            raise ValueError(f"message {n + 1}: expected a role and a content that is a text, or has images")
        reasoning = message.get("reasoning_content")
        thought = {"reasoning_content": reasoning} if isinstance(reasoning, str) else {}
        found.append({"role": role, "content": content, **thought})
    system = found.pop(0)["content"] if found[0]["role"] == "system" else None
    for n, message in enumerate(found):
        if message["role"] != _ROLES[n % 2]:
            raise ValueError(f"found the role {message['role']!r}, expected {_ROLES[n % 2]!r} in turn")
    if len(found) % 2:
        raise ValueError("the last message has no answer")
    return system, found


def _is_content(content: object) -> bool:
    """Whether it is a text, or the parts that `content_of` makes."""
    if isinstance(content, str):
        return True
    return isinstance(content, list) and all(
        isinstance(part, dict)
        and part.get("type") in ("text", "image")
        and isinstance(part.get(part["type"]), str)
        for part in content
    )


class _Action(NamedTuple):
    run: Callable[[Conversation, str], None]
    argument: str
    summary: str


_ACTIONS: Final[Mapping[str, _Action]] = MappingProxyType(
    {
        "help": _Action(Conversation.help, "", "list the commands"),
        "reset": _Action(Conversation.reset, "", "forget the conversation; the system message stays"),
        "retry": _Action(Conversation.retry, "", "answer the last message again"),
        "undo": _Action(Conversation.undo, "", "forget the last message and its answer"),
        "image": _Action(Conversation.attach, "FILE", "show an image with the next message"),
        "system": _Action(Conversation.set_system, "TEXT", "set the system message; without TEXT show it"),
        "save": _Action(Conversation.save, "FILE", "write the conversation as JSON messages"),
        "load": _Action(Conversation.load, "FILE", "go on with a conversation that was saved"),
        "overflow": _Action(
            Conversation.set_overflow,
            "stop|drop",
            "when the context is full: say so, or drop the oldest turns",
        ),
        "stats": _Action(Conversation.toggle_stats, "", "switch counts and speed after each answer"),
    }
)
_LEAVING: Final = ("exit", "quit", "bye")


def command_names() -> list[str]:
    """The commands, each with its slash."""
    return [f"/{name}" for name in (*_ACTIONS, "exit")]
