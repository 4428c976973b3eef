"""A piece of a stream is a text that knows its tokens."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from akunu import Piece

from .conftest import END, as_bytes, make_model, word, wrap
from .fakes import FakeEngine, scripted

PROMPT = [1, 10, 11, 12]


@settings(max_examples=60, deadline=None)
@given(
    text=st.text("abé€", max_size=30),
    stop=st.sampled_from([None, "a", "bé", "€€"]),
    limit=st.integers(1, 40),
    logprobs=st.sampled_from([None, 0, 2]),
)
def test_the_ids_and_logprobs_of_all_pieces_are_those_of_the_completion(text, stop, limit, logprobs):
    model = make_model(scripted(len(PROMPT), [*as_bytes(text), END]))
    stream = model.stream(PROMPT, stop=stop, max_tokens=limit, logprobs=logprobs)
    pieces = list(stream)
    done = stream.completion
    assert "".join(pieces) == done.text
    assert [i for piece in pieces for i in piece.ids] == done.ids
    if logprobs is None:
        assert all(piece.logprobs is None for piece in pieces)
    else:
        assert [entry for piece in pieces for entry in piece.logprobs] == done.logprobs


def test_a_piece_is_a_text():
    model = make_model(scripted(len(PROMPT), [*as_bytes("hello"), END]))
    piece = next(model.stream(PROMPT, logprobs=0))
    assert isinstance(piece, str) and piece == "h" and piece + "i" == "hi"
    assert (piece.ids, [entry.id for entry in piece.logprobs]) == (as_bytes("h"), as_bytes("h"))
    for same in (copy.deepcopy(piece), pickle.loads(pickle.dumps(piece))):
        assert (same, same.ids, same.logprobs) == (piece, piece.ids, piece.logprobs)
    assert (Piece("x").ids, Piece("x").logprobs) == ([], None)


def test_a_model_without_a_vocabulary_streams_ids():
    stream = wrap(FakeEngine(scripted(2, [5, 6, 7])), {}).stream([1, 2], max_tokens=3)
    pieces = list(stream)
    assert [i for piece in pieces for i in piece.ids] == [5, 6, 7]
    assert len(pieces) > 1 and not any(pieces)


def test_tokens_without_text_at_the_end_come_in_an_empty_piece():
    model = make_model(scripted(len(PROMPT), [*as_bytes("a"), word("<|turn|>"), END]))
    pieces = list(model.stream(PROMPT))
    assert [(str(piece), piece.ids) for piece in pieces] == [("a", as_bytes("a")), ("", [word("<|turn|>")])]


@pytest.mark.parametrize("read", [1, 2, 3])
def test_a_stream_closed_early_gave_the_tokens_of_its_completion(read):
    model = make_model()
    stream = model.stream(PROMPT)
    pieces = [next(stream) for _ in range(read)]
    stream.close()
    assert [i for piece in pieces for i in piece.ids] == stream.completion.ids
