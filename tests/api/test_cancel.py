"""A client that went away does not keep the others waiting: cancelled streams, and waiting with a limit."""

from __future__ import annotations

import pytest

from akunu import BusyError
from akunu.api.scheduling.scheduler import MAX_STALLED
from akunu.base.errors import AkunuError

from .conftest import as_bytes, make_model
from .fakes import scripted
from .test_model import PROMPT, Gate, in_thread, wait_until, waiting


def test_cancel_ends_streams_that_nobody_reads(model):
    unread = model.stream(PROMPT)
    first = next(unread)
    in_thread(model.cancel)()
    assert not model._engine.sequences
    assert list(unread) == []
    assert (unread.completion.finish_reason, unread.completion.text) == ("cancelled", first)


def test_cancelling_the_stream_itself_frees_the_model_too(model):
    unread = model.stream(PROMPT)
    next(unread)
    unread.cancel()
    assert model.generate(PROMPT, max_tokens=3).ids


def test_a_cancelled_stream_still_gives_what_a_stop_text_held_back():
    model = make_model(scripted(len(PROMPT), as_bytes("ab" + "STO" * 9)))
    stream = model.stream(PROMPT, stop="STOP")
    text = next(stream) + next(stream)
    next_piece = next(stream)
    model.cancel()
    assert model.generate([1, 5], max_tokens=1).ids
    rest = "".join(stream)
    assert rest and "abSTOSTO".startswith((text + next_piece + rest)[:8])
    assert stream.completion.text == text + next_piece + rest


def test_a_stream_cancelled_while_its_piece_is_made_frees_the_model_after_it(model):
    stream = model.stream(PROMPT)
    next(stream)
    model._engine.before_decode = lambda engine: model.cancel()
    for _ in stream:
        break
    model._engine.before_decode = lambda engine: None
    assert model.generate(PROMPT, max_tokens=3).ids


def test_many_sequences_cancelled_before_their_first_token_are_no_standstill(model):
    for _ in range(MAX_STALLED + 1):
        stream = model.stream(PROMPT)
        model._engine.before_prefill = lambda engine, stream=stream: stream.cancel()
        assert list(stream) == []
        assert stream.completion.finish_reason == "cancelled"


def test_the_cache_after_a_cancel_is_what_was_given(model):
    stream = model.stream(PROMPT)
    pieces = [next(stream) for _ in range(4)]
    model.cancel()
    ids = [i for piece in [*pieces, *stream] for i in piece.ids]
    assert ids == stream.completion.ids
    cache = model._engine.cache
    assert cache == [*PROMPT, *ids][: len(cache)] and len(cache) >= len(PROMPT) + len(ids) - 1
    again = model.generate([*PROMPT, *ids], max_tokens=5)
    assert again.ids == make_model().generate([*PROMPT, *ids], max_tokens=5).ids


@pytest.fixture
def busy():
    """A model whose only slot is taken, the gate that its generation waits at, and that generation."""
    model = make_model(parallel=1)
    gate = Gate(model)
    holder = in_thread(lambda: model.generate(PROMPT, max_tokens=9).ids)
    assert gate.reached.wait(20)
    return model, gate, holder


@pytest.mark.parametrize("timeout", [0, 0.05])
def test_waiting_has_a_limit(busy, timeout):
    model, gate, holder = busy
    waits = in_thread(lambda: model.generate(PROMPT, wait_timeout=timeout))
    with pytest.raises(BusyError, match=rf"still busy after {timeout} s .wait_timeout.*Model\.cancel"):
        waits()
    assert issubclass(BusyError, AkunuError) and issubclass(BusyError, TimeoutError)
    assert not waiting(model)
    gate.open()
    assert len(holder()) == 9
    assert model.generate(PROMPT, max_tokens=2, wait_timeout=0).ids


@pytest.mark.parametrize("end", ["cancel", "close"])
def test_a_waiting_stream_ends_at_once_when_it_is_cancelled_or_closed(busy, end):
    model, gate, holder = busy
    stream = model.stream(PROMPT)
    pieces = in_thread(lambda: list(stream))
    wait_until(lambda: waiting(model))
    in_thread(getattr(stream, end))()
    assert pieces() == []
    assert stream.completion.finish_reason == "cancelled"
    gate.open()
    assert len(holder()) == 9


def test_one_who_leaves_the_queue_does_not_hold_up_those_behind(busy):
    model, gate, holder = busy
    leaving = model.stream(PROMPT)
    first = in_thread(lambda: list(leaving))
    wait_until(lambda: waiting(model) == 1)
    second = in_thread(lambda: model.generate(PROMPT, max_tokens=2).ids)
    wait_until(lambda: waiting(model) == 2)
    leaving.cancel()
    assert first() == []
    gate.open()
    assert len(holder()) == 9 and len(second()) == 2


def test_a_cancel_before_the_first_piece_means_no_piece(model):
    stream = model.stream(PROMPT)
    stream.cancel()
    assert list(stream) == []
    assert model._engine.calls == []


@pytest.mark.parametrize("step", [1, 2, 3])
def test_a_cancel_while_the_prompt_is_read_ends_it_there(step):
    model = make_model(chunk=2)
    engine, calls = model._engine, []

    def cancel(engine):
        calls.append(1)
        if len(calls) == step:
            in_thread(stream.cancel)()

    engine.before_prefill = cancel
    stream = model.stream(PROMPT * 3)
    assert list(stream) == [] and stream.completion.finish_reason == "cancelled"
    assert len(calls) == step and len(engine.cache) == 2 * (step - 1) and not engine.sequences
    engine.before_prefill = lambda engine: None
    found = model.generate(PROMPT * 3, max_tokens=4)
    assert found.ids == make_model().generate(PROMPT * 3, max_tokens=4).ids
    assert found.stats.cached_tokens == 2 * (step - 1)
