"""Hear a recording with one model: windows are handed to its batcher, up to the recording's end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Generator, Iterator
from typing import Final, Generic, TypeVar

from akunu.audio import silero_detector
from akunu.audio.activity import OURS
from akunu.base.errors import InvalidArgumentError
from akunu.speech.batching import Batcher, CancelledWork, Task, Work
from akunu.speech.languages import language_code
from akunu.speech.options import TranscriptionOptions
from akunu.speech.prompts import first_context
from akunu.speech.tokenizer import WhisperTokenizer

__all__ = ["FRAMES_PER_POSITION", "Hearing"]

FRAMES_PER_POSITION: Final = 2

Item = TypeVar("Item")
Heard = TypeVar("Heard")


class Hearing(ABC, Generic[Item, Heard]):
    """Iterating gives what is found in a recording, until its end or `cancel`.

    Parameters
    ----------
    batcher : Batcher
        Runs the model.
    tokenizer : WhisperTokenizer
        The model's.
    options : TranscriptionOptions
        What the caller chose.
    sequences : int
        That a window holds at most.

    Attributes
    ----------
    language : str or None
        The code of the language, once it is known.
    """

    def __init__(
        self, batcher: Batcher, tokenizer: WhisperTokenizer, options: TranscriptionOptions, sequences: int
    ) -> None:
        self._batcher = batcher
        self._model = batcher.model
        self._tokenizer = tokenizer
        self._options = options
        self._sequences = sequences
        self._detector = OURS if options.vad is None else silero_detector(options.vad)
        self._frames = self._model.config.audio_context * FRAMES_PER_POSITION
        self._samples = 0  # that were read
        self._context = first_context(tokenizer, options)  # the text so far that may be a prompt
        self._cancelled = False
        self._tasks: deque[Task[Heard]] = deque()  # in the order of their windows
        vocab = self._model.config.vocab_size
        for token in self._context:
            if not 0 <= token < vocab:
                raise InvalidArgumentError(
                    f"initial_prompt: found the id {token}, expected one below {vocab}"
                )
        for token in options.suppress_tokens:
            if not -1 <= token < vocab:
                raise InvalidArgumentError(
                    f"suppress_tokens: found {token}, expected -1 or an id below {vocab}"
                )
        named = options.language
        if named is None and not options.multilingual:
            named = tokenizer.settings.language
        self.language = None if named is None else language_code(named)
        if not tokenizer.multilingual:
            self.language = self.language or "en"
        if self.language is not None:  # refused now, not after the first window
            tokenizer.start_sequence(options.language or self.language, options.task)

    def cancel(self) -> None:
        """End the work; callable from any thread. What the model does for it ends within a step."""
        self._cancelled = True
        for task in list(self._tasks):
            task.cancelled = True

    def __iter__(self) -> Generator[Item, None, None]:
        try:
            yield from self._found()
        except CancelledWork:
            if not self._cancelled:
                raise
        finally:
            self._batcher.cancel(self._tasks)

    @abstractmethod
    def _found(self) -> Iterator[Item]: ...

    def _start(self, work: Work[Heard], windows: int = 1) -> None:
        self._tasks.append(self._batcher.start(work, self._sequences, windows))
        if self._cancelled:  # since the last look
            self._tasks[-1].cancelled = True

    def _next_heard(self) -> Heard:
        task = self._tasks[0]
        self._batcher.wait(lambda: task.done)
        self._tasks.popleft()
        return task.result()
