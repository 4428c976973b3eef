"""Windows of one or several callers run side by side: what they ask of the model in one go is one call.

A window is a generator (`Work`) that yields what it asks of the model, and returns what it found. One thread
runs all of them, so they need no locks; it lives while there is work.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import numpy as np

from akunu.errors import AkunuError
from akunu.speech.model import Mel, SpeechModel

__all__ = ["Attend", "Batcher", "Begin", "CancelledWork", "Encode", "Request", "Step", "Task", "Work"]

T = TypeVar("T")

ENCODED_AT_ONCE: Final = 4
"""Windows: more would let the texts that are being written wait for long."""


@dataclass(frozen=True, slots=True)
class Encode:
    """The states of a window."""

    mel: Mel


@dataclass(frozen=True, slots=True)
class Begin:
    """A sequence, and the logits [rows, vocab] after some of its tokens."""

    states: Any
    tokens: Sequence[int]
    rows: Sequence[int]


@dataclass(frozen=True, slots=True)
class Step:
    """The logits [sequences, vocab] after one more token for each."""

    sequences: Sequence[Any]
    tokens: Sequence[int]


@dataclass(frozen=True, slots=True)
class Attend:
    """Cross-attention and logits, as of `SpeechModel.attend`."""

    states: Any
    tokens: Sequence[int]


Request = Encode | Begin | Step | Attend
Work = Generator[Request, Any, T]


class CancelledWork(AkunuError):
    """Somebody ended a task before its end."""


class Task(Generic[T]):
    """Work that was handed to a `Batcher`."""

    def __init__(self, work: Work[T], sequences: int) -> None:
        self.sequences = sequences
        self.request: Request | None = None
        self.done = False
        self.cancelled = False
        self._work = work
        self._found: T | None = None
        self._error: BaseException | None = None

    def advance(self, answer: Any) -> None:
        """On to the next request, or to the end."""
        self._go(lambda: self._work.send(answer))

    def fail(self, error: BaseException) -> None:
        """What it asked for could not be done."""
        self._go(lambda: self._work.throw(error))

    def end(self, error: BaseException) -> None:
        """End it now; its sequences are freed."""
        try:
            self._work.close()
        finally:
            self.request, self._error, self.done = None, error, True

    def _go(self, function: Callable[[], Request]) -> None:
        self.request = None
        try:
            self.request = function()
        except StopIteration as end:
            self._found, self.done = end.value, True
        except BaseException as error:
            self._error, self.done = error, True

    def result(self) -> T:
        """What it found, or raise what ended it."""
        assert self.done
        if self._error is not None:
            raise self._error
        return self._found  # type: ignore[return-value]


class Batcher:
    """Runs the windows of all callers on one model.

    Parameters
    ----------
    model : SpeechModel
        The model; nobody else calls it.
    """

    def __init__(self, model: SpeechModel) -> None:
        self.model = model
        self._changed = threading.Condition()
        self._tasks: list[Task[Any]] = []
        self.rounds = 0
        """How often the model was asked."""
        self._worker: threading.Thread | None = None
        self._closed = False
        self._process = os.getpid()

    def start(self, work: Work[T], sequences: int) -> Task[T]:
        """Hand over work that holds at most so many sequences; it begins when there is room."""
        if os.getpid() != self._process:
            raise AkunuError(
                f"the model was loaded in the process {self._process}, from which this one was forked; load "
                "it in this process, or start the process by the method 'spawn'"
            )
        task = Task(work, sequences)
        with self._changed:
            if self._closed:
                raise AkunuError("the model is closed; load it again")
            self._tasks.append(task)
            if self._worker is None:
                self._worker = threading.Thread(target=self._serve, name="akunu-speech")
                self._worker.start()
        return task

    def wait(self, condition: Callable[[], bool]) -> None:
        """Until `condition` holds; it is asked after each task that ends."""
        with self._changed:
            self._changed.wait_for(condition)

    def cancel(self, tasks: Collection[Task[Any]]) -> None:
        """End these tasks, and wait until they have ended."""
        for task in tasks:
            task.cancelled = True
        if threading.current_thread() is not self._worker:  # which collects garbage too: a dropped stream
            self.wait(lambda: all(task.done for task in tasks))

    def run(self, work: Work[T], sequences: int) -> T:
        """Start work and wait for what it finds."""
        task = self.start(work, sequences)
        try:
            self.wait(lambda: task.done)
        finally:
            self.cancel([task])
        return task.result()

    @property
    def running(self) -> int:
        """Tasks that have not ended."""
        return len(self._tasks)

    def close(self) -> None:
        """Cancel everything, and wait for its end; nothing can be started any more."""
        with self._changed:
            self._closed = True
            tasks = list(self._tasks)
        if os.getpid() == self._process:
            self.cancel(tasks)

    def _serve(self) -> None:
        while True:
            with self._changed:
                if not self._tasks:
                    self._worker = None
                    return
                tasks = self._admitted()
            self._round(tasks)
            with self._changed:
                self._tasks = [task for task in self._tasks if not task.done]
                self._changed.notify_all()

    def _admitted(self) -> list[Task[Any]]:
        """Tasks in their order, as many as there are sequences for: always the same first ones."""
        room = self.model.parallel
        found: list[Task[Any]] = []
        for task in self._tasks:
            room -= task.sequences
            if room < 0 and found:
                break
            found.append(task)
        # Those behind them that were cancelled have nothing to wait for.
        return found + [task for task in self._tasks[len(found) :] if task.cancelled]

    def _round(self, tasks: Sequence[Task[Any]]) -> None:
        """Answer what each of them asks for."""
        self.rounds += 1
        for task in tasks:
            if task.cancelled:
                task.end(CancelledWork("the model was closed"))
            elif task.request is None:
                task.advance(None)
        asking = [task for task in tasks if task.request is not None]
        for kind, (answer, most) in _ANSWERS.items():
            asked = [task for task in asking if type(task.request) is kind][:most]
            if not asked:
                continue
            try:
                answers = answer(self.model, [task.request for task in asked])
            except BaseException as error:
                for task in asked:
                    task.fail(error)
            else:
                for task, found in zip(asked, answers, strict=True):
                    task.advance(found)


def _encode(model: SpeechModel, asked: Sequence[Encode]) -> list[Any]:
    return model.encode(np.stack([each.mel for each in asked]))


def _begin(model: SpeechModel, asked: Sequence[Begin]) -> list[Any]:
    sequences, logits = model.begin(
        [each.states for each in asked], [each.tokens for each in asked], [each.rows for each in asked]
    )
    return list(zip(sequences, _parts(logits, [len(each.rows) for each in asked]), strict=True))


def _step(model: SpeechModel, asked: Sequence[Step]) -> list[Any]:
    logits = model.step(
        [sequence for each in asked for sequence in each.sequences],
        [token for each in asked for token in each.tokens],
    )
    return _parts(logits, [len(each.sequences) for each in asked])


def _attend(model: SpeechModel, asked: Sequence[Attend]) -> list[Any]:
    return [model.attend(each.states, each.tokens) for each in asked]


def _parts(rows: Any, lengths: Sequence[int]) -> list[Any]:
    return np.split(rows, np.cumsum(lengths)[:-1])


_ANSWERS: Final[dict[type, tuple[Callable[[SpeechModel, Any], list[Any]], int | None]]] = {
    Encode: (_encode, ENCODED_AT_ONCE),
    Begin: (_begin, None),
    Step: (_step, None),
    Attend: (_attend, None),
}
"""How each kind of request is answered, and how many at once."""
