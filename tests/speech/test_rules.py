"""The rules say which token may come next."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from akunu.speech.options import TranscriptionOptions
from akunu.speech.rules import TokenRules, log_softmax

from . import tiny
from .scripted import said

SPECIAL = tiny.tokenizer().special
TEXT = 65


def allowed(tokens: list[int], text: float = 0.0, stamps: float = -20.0, **options: Any) -> set[int]:
    """The ids that may follow `tokens`, where a text has the logit `text`, and a timestamp `stamps`."""
    rows = np.full((1, tiny.VOCAB), text, np.float32)
    rows[0, SPECIAL.timestamp_begin :] = stamps
    TokenRules(tiny.tokenizer(), TranscriptionOptions(**options)).apply(rows, [tokens])
    return set(np.flatnonzero(np.isfinite(rows[0])).tolist())


def stamps_in(ids: set[int]) -> tuple[float, float] | None:
    found = sorted(i for i in ids if i >= SPECIAL.timestamp_begin)
    assert found == list(range(found[0], found[-1] + 1)) if found else True
    seconds = tiny.tokenizer().seconds
    return (seconds(found[0]), seconds(found[-1])) if found else None


def test_a_text_begins_with_a_timestamp_within_the_first_second() -> None:
    assert stamps_in(ids := allowed([])) == (0.0, 1.0)
    assert min(ids) == SPECIAL.timestamp_begin
    assert stamps_in(allowed([], max_initial_timestamp=0.5)) == (0.0, 0.5)


def test_text_follows_the_first_timestamp() -> None:
    ids = allowed(said(0.0))
    assert stamps_in(ids) is None and TEXT in ids


def test_after_text_time_only_moves_on() -> None:
    assert stamps_in(allowed(said(0.4, "so"))) == (0.42, 30.0)
    assert TEXT in allowed(said(0.4, "so"))


def test_the_end_of_a_segment_is_followed_by_its_twin_or_by_the_end() -> None:
    ids = allowed(said(0.4, "so", 2.0))
    assert stamps_in(ids) == (2.0, 30.0)
    assert {i for i in ids if i < SPECIAL.timestamp_begin} == {
        i for i in range(SPECIAL.end, SPECIAL.timestamp_begin) if i in ids
    }
    assert SPECIAL.end in ids and TEXT not in ids


def test_a_pair_is_followed_by_text() -> None:
    ids = allowed(said(0.4, "so", 2.0, 2.0))
    assert stamps_in(ids) is None and TEXT in ids


def test_when_all_timestamps_together_are_more_probable_than_the_best_text_one_comes() -> None:
    count = math.log(1500)
    assert TEXT in allowed(said(0.0, "so"), stamps=-count - 0.1)
    assert TEXT not in allowed(said(0.0, "so"), stamps=-count + 0.1)


def test_without_timestamps_there_are_no_rules_about_them() -> None:
    assert TEXT in allowed([], without_timestamps=True)


def test_a_text_does_not_begin_with_a_blank_or_its_end() -> None:
    space = tiny.tokenizer().encode(" ")[0]
    assert not {space, SPECIAL.end} & allowed([], without_timestamps=True)
    assert {space, SPECIAL.end} <= allowed([TEXT], without_timestamps=True)
    assert {space, SPECIAL.end} <= allowed([], without_timestamps=True, suppress_blank=False)


def test_control_tokens_and_marks_never_come() -> None:
    ids = allowed([TEXT])
    controls = {SPECIAL.start, SPECIAL.start_of_previous, SPECIAL.no_speech, SPECIAL.no_timestamps}
    assert not ids & {*controls, SPECIAL.transcribe, SPECIAL.translate, ord("(") - 33}
    assert ord("(") - 33 in allowed([TEXT], suppress_tokens=())
    assert TEXT not in allowed([TEXT], suppress_tokens=(TEXT,))


def test_a_repeated_token_is_less_probable() -> None:
    rows = np.zeros((1, tiny.VOCAB), np.float32)
    rows[0, [65, 66, 67]] = 2, -2, 2
    options = TranscriptionOptions(repetition_penalty=2, without_timestamps=True)
    TokenRules(tiny.tokenizer(), options).apply(rows, [[65, 66]])
    assert rows[0, [65, 66, 67]].tolist() == [1, -4, 2]


def test_no_ngram_occurs_twice() -> None:
    ids = allowed([65, 66, 67, 65, 66], no_repeat_ngram_size=3, without_timestamps=True)
    assert 67 not in ids and {65, 66, 68} <= ids


def test_log_softmax_keeps_what_is_forbidden() -> None:
    found = log_softmax(np.array([[0, math.log(3), -np.inf]], np.float32))
    assert np.allclose(np.exp(found), [[0.25, 0.75, 0]])


@pytest.mark.parametrize("name", ["beam_size", "best_of", "patience", "repetition_penalty", "max_new_tokens"])
def test_options_out_of_range_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        TranscriptionOptions(**{name: 0})  # type: ignore[arg-type]
