"""Windows of one or several callers run side by side: what they ask of the model in one go is one call.

A window is a generator (`Work`) that yields what it asks of the model, and returns what it found. One thread
runs all of them, so they need no locks; it lives while there is work.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Collection, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import numpy as np

from akunu.base.errors import AkunuError
from akunu.speech.model import Mel, SpeechModel
from akunu.speech.rules import TokenRules

__all__ = [
    "Attend",
    "Batcher",
    "Begin",
    "CancelledWork",
    "Encode",
    "Rank",
    "Request",
    "Sample",
    "Step",
    "Task",
    "Work",
    "applies",
]

T = TypeVar("T")

MOST_RANKED: Final = 20
"""Tokens, of a model that ranks them."""
ENCODED_AT_ONCE: Final = 4
"""Windows; with more, those that are being decoded would wait for long."""


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
class Rank:
    """The ids and log p [sequences, count] of the best tokens after one more token for each, best first.

    For models that apply rules themselves (`applies`).
    """

    sequences: Sequence[Any]
    tokens: Sequence[int]
    rules: TokenRules
    count: int
    begun: int


@dataclass(frozen=True, slots=True)
class Sample:
    """At most `most` more tokens of each sequence, without the end, and their log p; as `Rank`."""

    sequences: Sequence[Any]
    rules: TokenRules
    temperature: float
    most: int
    seeds: Sequence[int]
    begun: int


@dataclass(frozen=True, slots=True)
class Attend:
    """Cross-attention and logits, as of `SpeechModel.attend`."""

    states: Any
    tokens: Sequence[int]


Request = Encode | Begin | Step | Rank | Sample | Attend
Work = Generator[Request, Any, T]


class CancelledWork(AkunuError):
    """Somebody ended a task before its end."""


class Task(Generic[T]):
    """Work that was handed to a `Batcher`."""

    def __init__(self, work: Work[T], sequences: int, windows: int) -> None:
        self.sequences = sequences
        self.windows = windows
        self.request: Request | None = None
        self.done = False
        self.cancelled = False
        self._work = work
        self._found: T | None = None
        self._error: BaseException | None = None

    def advance(self, answer: Any) -> None:
        """Go on to the next request, or to the end."""
        self._go(lambda: self._work.send(answer))

    def fail(self, error: BaseException) -> None:
        """End the task with the error of what it asked for."""
        self._go(lambda: self._work.throw(error))

    def end(self, error: BaseException) -> None:
        """End it now; its sequences are freed."""
        try:
            self._work.close()
        except BaseException as failed:  # in a cleanup, whose work is over all the same
            error.__cause__ = failed
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
        """Return what the task found, or raise what ended it."""
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
    windows : int
        That it has room for.
    """

    def __init__(self, model: SpeechModel, windows: int = 8) -> None:
        self.model = model
        self._windows = windows
        self._changed = threading.Condition()
        self._tasks: list[Task[Any]] = []
        self.rounds = 0
        """The number of times that the model was asked."""
        self._worker: threading.Thread | None = None
        self._closed = False
        self._process = os.getpid()

    def start(self, work: Work[T], sequences: int, windows: int = 1) -> Task[T]:
        """Hand over work that holds at most so many sequences and windows; it begins when there is room."""
        if os.getpid() != self._process:
            raise AkunuError(
                f"the model was loaded in the process {self._process}, from which this one was forked; load "
                "it in this process, or start the process by the method 'spawn'"
            )
        task = Task(work, sequences, windows)
        with self._changed:
            if self._closed:
                raise AkunuError("the model is closed; load it again")
            self._tasks.append(task)
            if self._worker is None:
                self._worker = threading.Thread(target=self._serve, name="akunu-speech")
                self._worker.start()
        return task

    def wait(self, condition: Callable[[], bool]) -> None:
        """Wait until `condition` holds; it is asked after each task that ends."""
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
            try:
                self._round(tasks)
            except BaseException as error:  # whatever it is, nobody waits for ever
                for task in tasks:
                    if not task.done:
                        task.end(error)
            with self._changed:
                self._tasks = [task for task in self._tasks if not task.done]
                self._changed.notify_all()

    def _admitted(self) -> list[Task[Any]]:
        """Tasks in their order, as many as there is room for: always the same first ones."""
        room, windows = self.model.parallel, self._windows
        found: list[Task[Any]] = []
        for task in self._tasks:
            room, windows = room - task.sequences, windows - task.windows
            if min(room, windows) < 0 and found:
                break
            found.append(task)
        # Cancelled tasks behind them have nothing to wait for.
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
        for kind, (answer, most, alike) in _ANSWERS.items():
            groups: dict[object, list[Task[Any]]] = {}
            for task in [task for task in asking if type(task.request) is kind][:most]:
                groups.setdefault(alike(task.request), []).append(task)
            for asked in groups.values():
                self._answer(asked, answer)

    def _answer(self, asked: Sequence[Task[Any]], answer: _Answer) -> None:
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


def _rank(model: Any, asked: Sequence[Rank]) -> list[Any]:
    first = asked[0]
    found = model.rank(
        [sequence for each in asked for sequence in each.sequences],
        [token for each in asked for token in each.tokens],
        first.rules,
        first.count,
        begun=first.begun,
    )
    lengths = [len(each.sequences) for each in asked]
    return list(zip(*(_parts(rows, lengths) for rows in found), strict=True))


def _sample(model: Any, asked: Sequence[Sample]) -> list[Any]:
    first = asked[0]
    found = iter(
        model.decode(
            [sequence for each in asked for sequence in each.sequences],
            first.rules,
            temperature=first.temperature,
            most=first.most,
            seeds=[seed for each in asked for seed in each.seeds],
            begun=first.begun,
        )
    )
    return [list(itertools.islice(found, len(each.sequences))) for each in asked]


def _attend(model: SpeechModel, asked: Sequence[Attend]) -> list[Any]:
    return [model.attend(each.states, each.tokens) for each in asked]


def _parts(rows: Any, lengths: Sequence[int]) -> list[Any]:
    return np.split(rows, np.cumsum(lengths)[:-1])


_Answer = Callable[[SpeechModel, Any], list[Any]]


def _all(_: Any) -> object:
    return None


def _same_rules(request: Rank | Sample) -> object:
    """Return what has to be the same for requests to be one call."""
    if isinstance(request, Rank):
        return id(request.rules), request.count, request.begun
    return id(request.rules), request.temperature, request.most, request.begun


_ANSWERS: Final[dict[type, tuple[_Answer, int | None, Callable[[Any], object]]]] = {
    Encode: (_encode, ENCODED_AT_ONCE, _all),
    Begin: (_begin, None, _all),
    Step: (_step, None, _all),
    Rank: (_rank, None, _same_rules),
    Sample: (_sample, None, _same_rules),
    Attend: (_attend, None, _all),
}
"""The answer to each kind of request, how many at once, and which of them together."""


def applies(model: SpeechModel, rules: TokenRules, count: int = 1) -> bool:
    """Whether a model applies these rules itself (`Rank` and `Sample`), and ranks so many tokens."""
    return hasattr(model, "rank") and rules.table is not None and count <= MOST_RANKED
