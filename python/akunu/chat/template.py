"""Chat messages to the text that a model was trained on, by the model's own Jinja template.

A template's text may contain control tokens; a message must not be able to (it could end its turn and open
another as somebody else). The two are told apart by marks (`akunu.chat.marks`), put into the messages where a
control token is spelt or could be completed. The text itself is that of the unmarked messages, whenever the
template gives the same for both.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import cached_property, partial
from typing import Any, Final

from akunu.base.arguments import flag
from akunu.base.errors import ContextLengthError, InvalidArgumentError, TemplateError
from akunu.chat.families import GENERIC, family_of
from akunu.chat.family import Family
from akunu.chat.formats import FORMATS
from akunu.chat.images import RowsSegment, ShownImages
from akunu.chat.limits import RenderLimits
from akunu.chat.marks import Marks, unused_character
from akunu.chat.messages import Reader, message_list, texts_of
from akunu.chat.pictures.preprocess import Run
from akunu.chat.probe import Probe
from akunu.chat.switches import switches
from akunu.tokenizer import Segment, Tokenizer, check_fits

__all__ = ["ChatTemplate"]

_DEFAULT: Final = "default"
_END: Final = "here7ends"


class ChatTemplate:
    """The chat format of one model.

    Parameters
    ----------
    source : str or mapping of str to str
        A Jinja template, or several by name; the one named ``default`` is used, or ``tool_use`` where there
        are tools and such a template.
    tokenizer : Tokenizer
        The model's tokenizer: knows the control tokens, BOS and EOS.
    limits : RenderLimits, optional
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
        self, source: str | Mapping[str, str], tokenizer: Tokenizer, *, limits: RenderLimits | None = None
    ) -> None:
        from akunu.chat.sandbox import compile_template

        if not isinstance(source, str | Mapping):
            raise InvalidArgumentError(
                f"chat template: found {type(source).__name__}, expected a text, or texts by name"
            )
        if not isinstance(tokenizer, Tokenizer):
            raise InvalidArgumentError(
                f"chat template: found {type(tokenizer).__name__}, expected the model's tokenizer"
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
        self.family: Family = family_of("\n".join(self.sources.values()), tokenizer.control_texts())
        """The family, by which models with this template mark reasoning and calls of tools."""
        self._tokenizer = tokenizer
        self._limits = limits or RenderLimits()
        self._templates = {name: compile_template(text, self._limits) for name, text in self.sources.items()}
        self._marks = Marks(tokenizer.control_texts())
        self._variables = tokenizer.names
        self._adds_bos = tokenizer.chats_begin
        self._warned = False
        self._probes = {name: Probe(partial(self._probed, name), text) for name, text in self.sources.items()}

    @cached_property
    def visible_ids(self) -> frozenset[int]:
        """Control tokens that an answer has to show, because they are marks of the family."""
        tokenizer = self._tokenizer
        return frozenset(i for i in tokenizer.control_ids if tokenizer.token_text(i) in self.family.marks)

    @cached_property
    def reasons(self) -> bool:
        """Whether models with this template think before they answer, always or if they are told to."""
        sources, mark = self.sources.values(), self.family.reasoning[0]
        return bool(switches(sources)) or any(mark in source for source in sources)

    def __repr__(self) -> str:
        return f"<akunu.ChatTemplate with {', '.join(self.sources)}, read as {self.family.name}>"

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
        """One of the common formats, for a model whose file has no template: see `akunu.chat.FORMATS`.

        Raises
        ------
        InvalidArgumentError
            There is no such format.
        """
        if not isinstance(name, str) or name not in FORMATS:
            raise InvalidArgumentError(f"chat format: found {name!r}, expected one of " + ", ".join(FORMATS))
        found = cls(FORMATS[name], tokenizer)
        found._adds_bos = True  # some of them leave it to the tokenizer
        return found

    @property
    def tokenizer(self) -> Tokenizer:
        """The model's tokenizer."""
        return self._tokenizer

    def check_fits(self, messages: Sequence[Mapping[str, Any]], context: int) -> None:
        """Refuse a conversation that has more tokens than a context, if that is plain before it is rendered.

        Each message has one at least.

        Raises
        ------
        ContextLengthError
            It does not fit.
        """
        found = message_list(messages)
        if len(found) > context:
            raise ContextLengthError(
                f"the prompt has at least {len(found)} tokens, the context holds {context}"
            )
        check_fits(self._tokenizer, list(texts_of(found)), context)

    def encode(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        continue_final_message: bool | None = None,
        generic_tools: bool = True,
        template: str | None = None,
        variables: Mapping[str, Any] | None = None,
    ) -> list[int]:
        """Token ids of a conversation. Parameters and errors are those of `render`."""
        segments = self.render(
            messages,
            tools=tools,
            generic_tools=generic_tools,
            add_generation_prompt=add_generation_prompt,
            continue_final_message=continue_final_message,
            template=template,
            variables=variables,
        )
        return self.encode_segments(segments)

    def encode_segments(self, segments: Sequence[Segment]) -> list[int]:
        """Token ids of what `render` gave."""
        return self.encode_placed(segments)[0]

    def encode_placed(self, segments: Sequence[Segment]) -> tuple[list[int], list[tuple[int, Run]]]:
        """Token ids of what `render` gave, and where in them the rows of images begin."""
        ids, places = self._tokenizer.encode_placed(segments, add_bos=self._adds_bos)
        runs = [segment.run for segment in segments if isinstance(segment, RowsSegment) and segment.run]
        return ids, list(zip(places, runs, strict=True))

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        continue_final_message: bool | None = None,
        generic_tools: bool = True,
        template: str | None = None,
        variables: Mapping[str, Any] | None = None,
        images: ShownImages | None = None,
    ) -> list[Segment]:
        """The text of a conversation, cut where no control token may cross.

        Parameters
        ----------
        messages : sequence of mapping
            Each with a ``role`` and a ``content``: a text, or a list of parts such as
            ``{"type": "text", "text": "…"}``, which are joined; beside ``tool_calls`` it may be missing.
            Other keys (``tool_calls``, ``name``, …) go to the template.
        tools : sequence of mapping, optional
            Function definitions (JSON schema), for templates that take them.
        add_generation_prompt : bool
            End with what begins the assistant's answer.
        continue_final_message : bool, optional
            End within the last message, so that the model goes on with it. None: if it is the assistant's,
            has no calls, and a generation prompt is asked for; False: that message is closed first.
        generic_tools : bool
            Write tools, calls and results that the template leaves out in a format that any model can read
            (`akunu.chat.generic_tools`), and warn once; False: refuse them.
        template : str, optional
            Which of `sources` to use.
        variables : mapping of str to value, optional
            More variables for the template, such as ``{"enable_thinking": False}``.
        images : ShownImages, optional
            What stands for the images of the messages; None: they have none.

        Raises
        ------
        InvalidArgumentError
            A message is not of the form above, has a part that is no text, or a role that is misspelt or that
            the template leaves out; or the messages are too long. Or there is no message to go on with, or
            the template does not end with it.
        TemplateError
            The template refuses the messages, fails, or runs away.
        """
        name = self._choose(template, bool(tools))
        reader, image = self._reader(messages, images)
        given = {"messages": reader.messages(messages), "documents": None, **reader.variables(variables)}
        end = self._opened(given["messages"], add_generation_prompt, continue_final_message, reader.strings)
        probe = self._probes[name]
        given["tools"] = reader.tools(tools)
        if generic_tools:
            given["messages"], given["tools"], left_out = probe.with_generic_tools(
                given["messages"], given["tools"]
            )
            self._warn(left_out)
        given["messages"] = probe.prepared(given["messages"])
        if given["tools"]:
            probe.check_tools()
        now = datetime.now()

        def rendered(values: Mapping[str, Any]) -> str:
            values = {**values, "add_generation_prompt": bool(add_generation_prompt) and not end}
            text = self._rendered(name, values, self._limits, now)
            if end and end not in text:
                raise InvalidArgumentError(
                    "continue_final_message: the chat template leaves out the end of the last message, so it "
                    "cannot be continued; False begins a new one"
                )
            return text[: text.rindex(end)] if end else text

        if images is None:
            return self._cut(given, rendered, reader.strings, self._marks)
        return self._with_images(given, rendered, reader.strings, images, image)

    def _reader(
        self, messages: Sequence[Mapping[str, Any]], images: ShownImages | None
    ) -> tuple[Reader, str]:
        """Return the reader of messages, and the character that stands for an image until rendering."""
        if images is None:
            return Reader(self._limits), ""
        reader = Reader(self._limits, "")
        reader.messages(messages)
        controls = [*self._tokenizer.control_texts(), images.marker]
        image = unused_character([*self.sources.values(), *reader.strings, *controls])
        return Reader(self._limits, image), image

    def _with_images(
        self,
        given: dict[str, Any],
        rendered: Callable[[Mapping[str, Any]], str],
        strings: Sequence[str],
        images: ShownImages,
        image: str,
    ) -> list[Segment]:
        """Render with the images as the template has them, or else in their places in the text."""
        marks = Marks({*self._tokenizer.control_texts(), images.marker})
        in_parts = {**given, "messages": [_in_parts(message, image) for message in given["messages"]]}
        with suppress(TemplateError):
            segments = self._cut(in_parts, rendered, strings, marks)
            placed = images.placed(segments, images.marker, bare=False)
            if placed is not None:
                return placed
        segments = self._cut(given, rendered, strings, marks)
        placed = images.placed(segments, image, bare=True)
        if placed is None:
            raise TemplateError("the chat template of this model leaves out messages with images")
        return placed

    def _cut(
        self,
        given: Mapping[str, Any],
        rendered: Callable[[Mapping[str, Any]], str],
        strings: Sequence[str],
        marks: Marks,
    ) -> list[Segment]:
        """Cut what is rendered where no control token may cross."""
        plain = rendered(given)
        mark = unused_character([plain, *self.sources.values(), *strings, *self._tokenizer.control_texts()])
        error: TemplateError | None = None
        text = plain
        # From the marking that covers most to the one that disturbs a template least; each includes the next.
        for places in (marks.wide, marks.narrow, marks.spelt):
            marked = marks.marked(given, mark, places)
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

    def family_for(self, tools: Sequence[Mapping[str, Any]] | None, *, generic: bool = True) -> Family:
        """Return the family that reads an answer: calls are generic where tools are left out."""
        if tools and generic and self._probes[self._choose(None, True)].leaves_tools_out:
            return replace(self.family, call_format=GENERIC)
        return self.family

    def _warn(self, left_out: str) -> None:
        if left_out and not self._warned:
            self._warned = True
            warnings.warn(
                f"the chat template of this model leaves out {left_out}: they are written in a generic "
                "format, which the model may not have been trained on (generic_tools=False refuses them)",
                UserWarning,
                stacklevel=2,
            )

    def _opened(
        self, messages: list[dict[str, Any]], prompts: bool, wanted: bool | None, strings: Sequence[str]
    ) -> str:
        """Put a word behind the last message, where what is made of the messages is to end; "": it is not."""
        last = messages[-1]
        flag("continue_final_message", wanted, default=False)
        can = (
            last["role"] == "assistant"
            and isinstance(last.get("content"), str)
            and not last.get("tool_calls")
        )
        if wanted and not can:
            raise InvalidArgumentError(
                "continue_final_message: the last message is not a text of the assistant's to go on with"
            )
        if not (can and prompts) if wanted is None else not wanted:
            return ""
        word = _END
        while any(word in text for text in (*strings, *self.sources.values())):
            word += _END
        last["content"] += word
        return word

    def _rendered(self, name: str, values: Mapping[str, Any], limits: RenderLimits, now: datetime) -> str:
        from akunu.chat.sandbox import render

        return render(self._templates[name], {**self._variables, **values}, limits, now)

    def _probed(
        self, name: str, messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None = None
    ) -> str:
        values = {"messages": messages, "tools": tools, "documents": None, "add_generation_prompt": False}
        return self._rendered(name, values, self._limits.for_a_word(), datetime.now())

    def _choose(self, name: str | None, has_tools: bool) -> str:
        if name is None:
            name = "tool_use" if has_tools and "tool_use" in self.sources else _DEFAULT
            if name not in self.sources and len(self.sources) == 1:
                name = next(iter(self.sources))
        if not isinstance(name, str) or name not in self._templates:
            raise InvalidArgumentError(
                f"chat template: found {name!r}, expected one of " + ", ".join(self.sources)
            )
        return name


def _in_parts(message: dict[str, Any], image: str) -> dict[str, Any]:
    """The message with its content in parts, where it has images."""
    content = message.get("content")
    # It may be a list of one text, as the template wants it.
    text = content[0].get("text") if isinstance(content, list) and content else content
    if not isinstance(text, str) or image not in text:
        return message
    parts: list[dict[str, Any]] = []
    for n, piece in enumerate(text.split(image)):
        parts += [{"type": "image"}] if n else []
        parts += [{"type": "text", "text": piece}] if piece else []
    return {**message, "content": parts}
