"""A client that went away does not keep the others waiting: cancelled streams, and waiting with a limit."""

from __future__ import annotations

import pytest

from akunu import BusyError
from akunu.errors import AkunuError

from .conftest import as_bytes, make_model
from .fakes import scripted
from .test_model import PROMPT, in_thread, wait_until


def test_cancel_frees_a_model_that_an_unread_stream_holds(model):
    unread = model.stream(PROMPT)
    first = next(unread)
    waiting = in_thread(lambda: model.generate(PROMPT, max_tokens=3))
    wait_until(lambda: model._lock._waiters)
    in_thread(model.cancel)()
    assert len(waiting().ids) == 3
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


@pytest.mark.parametrize("timeout", [0, 0.05])
def test_waiting_has_a_limit(model, timeout):
    stream = model.stream(PROMPT)
    next(stream)
    waiting = in_thread(lambda: model.generate(PROMPT, wait_timeout=timeout))
    with pytest.raises(BusyError, match=rf"still busy after {timeout} s .wait_timeout.*Model\.cancel"):
        waiting()
    assert issubclass(BusyError, AkunuError) and issubclass(BusyError, TimeoutError)
    assert not model._lock._waiters
    assert next(stream)
    stream.close()
    assert model.generate(PROMPT, max_tokens=2, wait_timeout=0).ids


def test_a_waiting_stream_ends_at_once_when_it_is_cancelled_or_closed(model):
    holder = model.stream(PROMPT)
    next(holder)
    for end in ("cancel", "close"):
        waiting = model.stream(PROMPT)
        pieces = in_thread(lambda waiting=waiting: list(waiting))
        wait_until(lambda: model._lock._waiters)
        in_thread(getattr(waiting, end))()
        assert pieces() == []
        assert waiting.completion.finish_reason == "cancelled"
    assert next(holder)


def test_one_who_leaves_the_queue_does_not_hold_up_those_behind(model):
    holder = model.stream(PROMPT)
    next(holder)
    leaving = model.stream(PROMPT)
    first = in_thread(lambda: list(leaving))
    wait_until(lambda: len(model._lock._waiters) == 1)
    second = in_thread(lambda: model.generate(PROMPT, max_tokens=2).ids)
    wait_until(lambda: len(model._lock._waiters) == 2)
    leaving.cancel()
    assert first() == []
    holder.close()
    assert len(second()) == 2


def test_a_cancel_before_the_first_piece_means_no_piece(model):
    stream = model.stream(PROMPT)
    stream.cancel()
    assert list(stream) == []
    assert model._engine.calls == []
