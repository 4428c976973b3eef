"""A conversation that is kept: what was said, to be gone on with, forked, saved and loaded."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from copy import deepcopy
from functools import partial
from typing import Any, Final, Protocol, Self, Unpack, cast

from akunu.api.chat_options import ChatOptions
from akunu.api.options import GenerationOptions, own_names
from akunu.api.results import Completion
from akunu.api.signatures import spelled_out
from akunu.api.streams import Stream
from akunu.base.arguments import as_path
from akunu.base.errors import InvalidArgumentError, ModelFileError
from akunu.base.json_file import read_object
from akunu.base.whole_file import whole_file
from akunu.chat.messages import message_list
from akunu.chat.pictures.opening import data_url, open_picture, png_bytes

__all__ = ["Session"]

FORMAT: Final = "akunu-session-1"
MAX_BYTES: Final = 1 << 28

SAVED_OPTIONS: Final = {"tools": list, "template_variables": dict}
"""Options that are part of what was said, and their types."""

Message = Mapping[str, Any]

_spelled_out = partial(spelled_out, options=(ChatOptions, GenerationOptions))


class Answering(Protocol):
    """The part of a model that a session needs."""

    @property
    def name(self) -> str: ...

    def stream_chat(self, messages: Sequence[Message], **options: Unpack[ChatOptions]) -> Stream: ...

    def flush(self) -> None: ...


class Session:
    """A conversation with a model, as `Model.session` returns it.

    Each message and its answer become part of it, so only what is new is given, and only what is new is run:
    the rest is in the model's KV cache as long as there is room. One thread or task at a time may use it;
    many sessions of one model run together.

    Examples
    --------
    >>> session = model.session([{"role": "system", "content": "Answer briefly."}])  # doctest: +SKIP
    >>> print(session.chat("Who are you?"))  # doctest: +SKIP
    >>> other = session.fork()  # doctest: +SKIP
    >>> print(session.chat("Why?"), other.chat("Since when?"))  # doctest: +SKIP
    """

    def __init__(self, model: Answering, messages: Sequence[Message], options: ChatOptions) -> None:
        self._model = model
        self._messages: list[Message] = deepcopy(list(message_list(messages)))
        self._options = cast(ChatOptions, own_names(options, ChatOptions))
        self._open: tuple[Message, Stream] | None = None

    @property
    def messages(self) -> list[Message]:
        """A copy of the messages so far. A stream that is open is ended, and counts as far as it was read."""
        self._settle()
        return deepcopy(self._messages)

    @_spelled_out
    def chat(self, message: str | Message, **options: Unpack[ChatOptions]) -> Completion:
        """Say something and return the answer; both become part of the conversation.

        Raises what `Model.chat` does; the conversation is then as it was.

        Parameters
        ----------
        message
            What the user says, or a message with `role` and `content`, such as the result of a tool.
        **options
            See `akunu.ChatOptions`; what is not given is that of the session.
        """
        stream = self.stream_chat(message, **options)
        try:
            for _ in stream:
                pass
        except BaseException:
            self._open = None
            stream.close()
            raise
        self._settle()
        return stream.completion

    @_spelled_out
    def stream_chat(self, message: str | Message, **options: Unpack[ChatOptions]) -> Stream:
        """Say something and give the answer piece by piece.

        Both become part of the conversation when it is used next, the answer as far as it was read; a stream
        of which nothing was read leaves the conversation as it was.

        Parameters
        ----------
        message
            As in `chat`.
        **options
            As in `chat`.
        """
        self._settle()
        said = {"role": "user", "content": message} if isinstance(message, str) else message
        stream = self._model.stream_chat(
            [*self._messages, said], **cast(ChatOptions, {**self._options, **own_names(options, ChatOptions)})
        )
        self._open = (deepcopy(said), stream)  # which was a message, or there is no stream
        return stream

    def fork(self) -> Session:
        """Another conversation that begins like this one. What is cached is shared.

        A stream that is open is ended, as by `messages`.
        """
        self._settle()
        return Session(self._model, self._messages, self._options)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the conversation to a file, replacing one that is there; `load` reads it.

        Messages, tools and template variables are written, as JSON; other options are not. Images that are no
        paths are in the file, those with a path are named by it. What the model's
        cache holds of it is in the model's `cache_dir`, if it has one: another process that loads the
        conversation with that folder runs only what is new.

        Parameters
        ----------
        path
            The file. It is whole or not there, whatever happens meanwhile.

        Raises
        ------
        InvalidArgumentError
            Something in the conversation has no form in JSON.
        OSError
            The file cannot be written.
        """
        self._settle()
        saved = {
            "format": FORMAT,
            "model": self._model.name,
            "messages": self._messages,
            **{name: self._options.get(name) for name in SAVED_OPTIONS},
        }
        try:
            data = json.dumps(saved, ensure_ascii=False, indent=1, allow_nan=False, default=_as_text).encode()
        except (TypeError, ValueError) as error:
            raise InvalidArgumentError(f"session: a message has no form in JSON: {error}") from error
        with whole_file(as_path("path", path)) as file:
            file.write(data)
        self._model.flush()

    @classmethod
    @_spelled_out
    def load(cls, model: Answering, path: str | os.PathLike[str], **options: Unpack[ChatOptions]) -> Self:
        """Go on with a saved conversation, with any model that has a chat template.

        Parameters
        ----------
        model
            Answers from now on.
        path
            A file that `save` wrote.
        **options
            The session's options, as in `Model.session`.

        Raises
        ------
        ModelFileError
            The file cannot be read, or is no session.
        """
        given = own_names(options, ChatOptions)
        saved = read_object(as_path("path", path), limit=MAX_BYTES)
        if saved.get("format") != FORMAT:
            raise ModelFileError(
                f"{path}: found the format {saved.get('format')!r:.80}, expected {FORMAT!r}, Session.save's"
            )
        for name, kind in {"messages": list, **SAVED_OPTIONS}.items():
            value = saved.get(name)
            if not isinstance(value, kind) and not (value is None and name != "messages"):
                raise ModelFileError(f"{path}: {name}: found {value!r:.80}, expected a {kind.__name__}")
        kept = {name: saved.get(name) for name in SAVED_OPTIONS}
        try:
            return cls(model, saved["messages"], cast(ChatOptions, {**kept, **given}))
        except InvalidArgumentError as error:
            raise ModelFileError(f"{path}: {error}") from error

    def _settle(self) -> None:
        """Take a stream's answer into the conversation."""
        if self._open is None:
            return
        (said, stream), self._open = self._open, None
        stream.close()
        answer = stream.completion
        if answer.ids or answer.finish_reason != "cancelled":
            self._messages += [said, answer.message]

    def __repr__(self) -> str:
        return f"<akunu.Session with {self._model.name}, {len(self._messages)} messages>"


def _as_text(value: object) -> str:
    """Return an image as JSON: its path, or a `data:` URL.

    Raises
    ------
    TypeError
        It is something else.
    """
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return data_url(bytes(value))
    if hasattr(value, "__array__") or hasattr(value, "__array_interface__"):
        return data_url(png_bytes(open_picture(value)))
    raise TypeError(f"Object of type {type(value).__name__} is no JSON")
