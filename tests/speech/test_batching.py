"""The thread that runs windows: whatever fails in one, nobody waits for ever."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
import pytest

from akunu.speech.batching import Batcher, CancelledWork, Encode

from .scripted import ScriptedModel


def fails_as_it_is_closed() -> Generator[Any, Any, None]:
    try:
        while True:
            yield object()  # that nobody answers
    finally:
        raise ZeroDivisionError("in a cleanup")


def does_not_end() -> Generator[Any, Any, None]:
    try:
        yield object()
    finally:
        yield object()


@pytest.mark.parametrize("work", [fails_as_it_is_closed, does_not_end])
def test_work_that_fails_as_it_is_ended_ends(work: Any) -> None:
    batcher = Batcher(ScriptedModel())
    task = batcher.start(work(), 1)
    batcher.wait(lambda: batcher.rounds > 1)
    batcher.cancel([task])
    with pytest.raises(CancelledWork) as caught:
        task.result()
    assert isinstance(caught.value.__cause__, ZeroDivisionError | RuntimeError)
    assert batcher.run(answers(), 1) == 3


def answers() -> Generator[Any, Any, int]:
    return 3
    yield


def test_an_answer_that_is_none_ends_its_work_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    model = ScriptedModel()
    batcher = Batcher(model)
    monkeypatch.setattr(model, "encode", lambda mels: [])  # fewer than were asked for
    with pytest.raises(ValueError, match="shorter"):
        batcher.run(asks(), 1)
    assert batcher.run(answers(), 1) == 3


def asks() -> Generator[Any, Any, Any]:
    return (yield Encode(np.zeros((80, 3000), np.float32)))
