"""A stand-in for a loaded model: it repeats what it is asked, so the commands can be tested without weights.

It has the methods of `akunu.Model` that the commands call, with the same meaning.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace, TracebackType
from typing import Any

from akunu.api.results import Completion, Stats
from akunu.base.errors import ContextLengthError, TemplateError
from akunu.chat import Content, Delta, Reasoning
from akunu.cli.images import text_of


class FakeStream:
    """Gives `pieces` one by one; what was read so far is its completion."""

    def __init__(self, pieces: Sequence[str], delay: float) -> None:
        self._left = list(pieces)
        self._read: list[str] = []
        self._delay = delay
        self.closed = False

    def __iter__(self) -> Iterator[str]:
        return self

    def deltas(self) -> Iterator[Delta]:
        for piece in self:
            thought, mark, said = piece.rpartition("</think>")
            yield from [Reasoning(thought.removeprefix("<think>"))] if mark else []
            yield from [Content(said)] if said else []

    def __next__(self) -> str:
        if self.closed or not self._left:
            raise StopIteration
        time.sleep(self._delay)
        self._read.append(self._left.pop(0))
        return self._read[-1]

    @property
    def completion(self) -> Completion:
        stats = Stats(5, 2, len(self._read), 0.25, 0.5, 2.0, 6.0, 1.5)
        reason = "cancelled" if self._left else "stop"
        return Completion(
            "".join(self._read), list(range(len(self._read))), None, reason, stats, seed=11, message={}
        )

    def __enter__(self) -> FakeStream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.closed = True


class FakeTemplate:
    """A token for each word of the messages, and one for each message."""

    def __init__(self, source: str = "{{ messages }}") -> None:
        self.sources = {"default": source}
        self.variables: list[Mapping[str, Any] | None] = []

    def encode(
        self, messages: Sequence[Mapping[str, str]], *, variables: Mapping[str, Any] | None = None
    ) -> list[int]:
        self.variables.append(variables)
        return [0] * self.length(messages)

    def length(self, messages: Sequence[Mapping[str, str]]) -> int:
        return sum(1 + len(text_of(message["content"]).split()) for message in messages)


class FakeModel:
    """`answers` maps a prompt (or the last message) to pieces of text; others are echoed word by word."""

    name, device, memory_left, context, path = "fake", "cpu", None, 64, Path("fake.gguf")
    config = SimpleNamespace(context_length=256)
    reads_images = False

    def __init__(self, answer: Callable[[str], Sequence[str]] | None = None, delay: float = 0.0) -> None:
        self._answer = answer or (lambda text: [f"<{word}>" for word in text.split()])
        self._delay = delay
        self.counts = False
        """Whether conversations fill the context."""
        self.counts = False
        """Whether conversations fill the context."""
        self.template: FakeTemplate | None = FakeTemplate()
        self.tokenizer = SimpleNamespace(control_texts=lambda: {"<s>"})
        self.closed = False
        self.prompts: list[object] = []
        self.options: list[Mapping[str, Any]] = []

    def stream(self, prompt: str, **options: Any) -> FakeStream:
        return self._stream(prompt, prompt, options)

    def generate(self, prompt: str, **options: Any) -> Completion:
        stream = self.stream(prompt, **options)
        for _ in stream:
            pass
        return stream.completion

    def stream_chat(self, messages: Sequence[Mapping[str, str]], **options: Any) -> FakeStream:
        text = text_of(messages[-1]["content"])
        return self._stream([dict(message) for message in messages], text, options)

    def _stream(self, prompt: object, text: str, options: Mapping[str, Any]) -> FakeStream:
        self.prompts.append(prompt)
        self.options.append(options)
        length = FakeTemplate().length(prompt) if self.counts and isinstance(prompt, list) else 0
        if "too long" in text or length > self.context:
            raise ContextLengthError(f"the prompt has {length or 99} tokens, the context holds 64")
        return FakeStream(self._answer(text), self._delay)

    @property
    def chat_template(self) -> FakeTemplate:
        if not self.template:
            raise TemplateError("the model file has no chat template")
        return self.template

    @chat_template.setter
    def chat_template(self, template: FakeTemplate) -> None:
        self.template = template

    def count_tokens(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        template_variables: Mapping[str, Any] | None = None,
        image_tokens: int | None = None,
    ) -> int:
        return len(self.chat_template.encode(messages, variables=template_variables))

    def tokenize(self, text: str, *, add_special: bool = True) -> list[int]:
        return list(range(len(text.split()) + add_special))

    def perplexity(
        self,
        text: str,
        *,
        context: int | None = None,
        stride: int | None = None,
        adapter: str | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> float:
        self.options.append({"context": context, "stride": stride})
        return float(len(text))

    def __enter__(self) -> FakeModel:
        return self

    def __exit__(self, *_: object) -> None:
        self.closed = True
