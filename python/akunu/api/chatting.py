"""The chat methods of a model: messages in, a message out."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, Literal, Unpack, overload

from akunu.api.chat_options import ChatOptions, ChatPrompt, prepare
from akunu.api.options import GenerationOptions
from akunu.api.reading import Reading
from akunu.api.results import Completion
from akunu.api.seeing import PlacedRows, Sight
from akunu.api.session import Session
from akunu.api.signatures import spelled_out
from akunu.api.streams import AsyncStream, Stream, acompleted, acompleted_all, completed
from akunu.api.tokenizing import Tokenizing
from akunu.base.errors import InvalidArgumentError
from akunu.chat import ChatTemplate

__all__ = ["Chatting", "Messages"]

_ENDLESS: Final = (1 << 31) - 1

Messages = Sequence[Mapping[str, Any]]
"""Messages of a conversation."""

_spelled_out = partial(spelled_out, options=(ChatOptions, GenerationOptions))


class Chatting(Tokenizing):
    """The methods of a `Model` for conversations."""

    _template_metadata: Mapping[str, object]
    _template: ChatTemplate | None
    _sight: Sight | None

    @abstractmethod
    def _start(
        self,
        prompt: Sequence[int],
        options: GenerationOptions,
        reading: Reading | None = None,
        rows: PlacedRows = (),
    ) -> Stream: ...

    @abstractmethod
    def flush(self) -> None:
        """Wait until the KV cache's files hold the pages of sequences that have ended."""

    @abstractmethod
    def _completed_all(self, streams: Sequence[Stream]) -> list[Completion]: ...

    @abstractmethod
    def _seeded(self, n: int, options: GenerationOptions) -> list[GenerationOptions]: ...

    @overload
    def chat(self, messages: Messages, **options: Unpack[ChatOptions]) -> Completion: ...
    @overload
    def chat(  # type: ignore[overload-overlap]  # 1 is an int, too
        self, messages: Messages, *, n: Literal[1], **options: Unpack[ChatOptions]
    ) -> Completion: ...
    @overload
    def chat(self, messages: Messages, *, n: int, **options: Unpack[ChatOptions]) -> list[Completion]: ...
    @_spelled_out
    def chat(
        self, messages: Messages, *, n: int | None = None, **options: Unpack[ChatOptions]
    ) -> Completion | list[Completion]:
        """Answer the last message of a conversation.

        Parameters
        ----------
        messages
            The whole conversation, each with `role` ("system", "user", "assistant", …) and `content`; the
            chat template of the model file formats it. A content is a text, or a list of parts such as
            `{"type": "text", "text": "…"}` and, for models that read images (`reads_images`),
            `{"type": "image", "image": …}` with a path, the bytes of a file, a Pillow image or an array. What
            looks like a control token in it is not one.
        n
            As in `generate`.
        **options
            See `akunu.ChatOptions`.

        Returns
        -------
        Completion
            Its `message` is the next one of the conversation, with content, reasoning and calls of tools
            apart; its `text` is all that the model wrote. With `n` > 1, a list of `n` of them.

        Raises
        ------
        TemplateError
            If the model file has no chat template (see `chat_template`), or it refuses the messages.
        InvalidArgumentError
            For messages that are not of this form, and for an argument that is unknown, out of range, or
            that the template has no way to honour; for an image where the model reads text only.
        ImageError
            If an image cannot be opened, or the model cannot be shown it.
        ContextLengthError, BusyError, KeyboardInterrupt
            As in `generate`.

        Examples
        --------
        >>> messages = [{"role": "user", "content": "Hello!"}]
        >>> messages.append(model.chat(messages, max_tokens=64).message)  # doctest: +SKIP
        >>> messages.append({"role": "user", "content": "Go on."})
        >>> model.chat(messages, max_tokens=64).stats.cached_tokens  # doctest: +SKIP
        """
        if n is None:
            return completed(self.stream_chat(messages, **options))
        results = self._completed_all(self._answers(messages, n, options))
        return results[0] if n == 1 else results

    @_spelled_out
    def stream_chat(self, messages: Messages, **options: Unpack[ChatOptions]) -> Stream:
        """Answer the last message of a conversation, piece by piece.

        Raises what `chat` does.

        Parameters
        ----------
        messages
            As in `chat`.
        **options
            See `akunu.ChatOptions`.

        Returns
        -------
        Stream
            As from `stream`; `Stream.deltas` tells content from reasoning and calls of tools.
        """
        return self._start(*self.prepare_chat(messages, options))

    def _answers(self, messages: Messages, n: int, options: ChatOptions) -> list[Stream]:
        """`n` answers to the same messages."""
        ids, generation, reading, rows = self.prepare_chat(messages, options)
        return [self._start(ids, one, reading.fresh(), rows) for one in self._seeded(n, generation)]

    def prepare_chat(self, messages: Messages, options: ChatOptions) -> ChatPrompt:
        """Make the prompt of a chat, with the arguments of its generation; for what builds on a model."""
        return prepare(self.chat_template, messages, options, self.context, self._sight)

    @_spelled_out
    def count_tokens(self, messages: Messages, **options: Unpack[ChatOptions]) -> int:
        """Count the tokens of a conversation's prompt, with those of its images.

        Nothing is run, and the prompt may be longer than the context.

        Parameters
        ----------
        messages
            As in `chat`, whose errors it raises.
        **options
            See `akunu.ChatOptions`; tools, images and template variables count.

        Examples
        --------
        >>> model.count_tokens([{"role": "user", "content": "Hello!"}])  # doctest: +SKIP
        """
        return len(prepare(self.chat_template, messages, options, _ENDLESS, self._sight).ids)

    @property
    def reads_images(self) -> bool:
        """Whether messages may have images: the model has a tower that encodes them."""
        return self._sight is not None

    @overload
    async def achat(self, messages: Messages, **options: Unpack[ChatOptions]) -> Completion: ...
    @overload
    async def achat(  # type: ignore[overload-overlap]  # 1 is an int, too
        self, messages: Messages, *, n: Literal[1], **options: Unpack[ChatOptions]
    ) -> Completion: ...
    @overload
    async def achat(
        self, messages: Messages, *, n: int, **options: Unpack[ChatOptions]
    ) -> list[Completion]: ...
    @_spelled_out
    async def achat(
        self, messages: Messages, *, n: int | None = None, **options: Unpack[ChatOptions]
    ) -> Completion | list[Completion]:
        """Answer the last message of a conversation, for asyncio: `chat` that leaves the event loop free.

        When its task is cancelled, the generation ends and the model is free for others.

        Parameters
        ----------
        messages, n
            As in `chat`.
        **options
            See `akunu.ChatOptions`.
        """
        if n is None:
            return await acompleted(self.astream_chat(messages, **options))
        results = await acompleted_all([AsyncStream(one) for one in self._answers(messages, n, options)])
        return results[0] if n == 1 else results

    @_spelled_out
    def astream_chat(self, messages: Messages, **options: Unpack[ChatOptions]) -> AsyncStream:
        """Answer the last message of a conversation, piece by piece, for asyncio.

        Parameters
        ----------
        messages
            As in `chat`.
        **options
            See `akunu.ChatOptions`.

        Returns
        -------
        AsyncStream
            As from `astream`.
        """
        return AsyncStream(self.stream_chat(messages, **options))

    @_spelled_out
    def session(self, messages: Messages = (), **options: Unpack[ChatOptions]) -> Session:
        """Begin a conversation that is kept, and can be forked and saved.

        Parameters
        ----------
        messages
            What was said before, such as a system message.
        **options
            See `akunu.ChatOptions`: for every answer, unless it is given there.

        Returns
        -------
        Session
            Its `chat` takes only what is new. `akunu.Session.load` goes on with a saved one.
        """
        return Session(self, messages, options)

    @property
    def chat_template(self) -> ChatTemplate:
        """The chat template, by default the one of the model file; may be set.

        Raises
        ------
        TemplateError
            If the file has none, or it does not compile.

        Examples
        --------
        >>> model.chat_template = akunu.ChatTemplate.named("chatml", model.tokenizer)  # doctest: +SKIP
        """
        if self._template is None:
            self._template = ChatTemplate.from_metadata(self._template_metadata, self.tokenizer)
        return self._template

    @chat_template.setter
    def chat_template(self, template: ChatTemplate) -> None:
        if not isinstance(template, ChatTemplate):
            raise InvalidArgumentError(
                f"chat_template: expected an akunu.ChatTemplate, got {type(template).__name__}; "
                "make one of a text by ChatTemplate(text, model.tokenizer)"
            )
        self._template = template
