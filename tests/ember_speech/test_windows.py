"""Windows of 30 seconds: what the decoder is to say of them, and when."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from random import Random

import numpy as np
import pytest

from akunu.speech.files import open_speech
from akunu.speech.segments import cut
from tools.ember_speech.sentences import parse
from tools.ember_speech.synthesis import FRAME, Clip
from tools.ember_speech.tokens import TIMESTAMPS, Vocabulary
from tools.ember_speech.windows import CONTEXT, IGNORED, POSITIONS, SAMPLES, Composer, Window, batch

V = Vocabulary()
SECOND = 16000


def clip(text: str, begin: int, seconds: float) -> Clip:
    """A sentence whose words are equally long, with silence in the last tenth of a second."""
    ids = [V.word(written) for written, _ in parse(text).words]
    step = (seconds - 0.1) * SECOND / len(ids)
    spans = np.array([(i * step, (i + 1) * step) for i in range(len(ids))]).astype(np.int32)
    tokens = np.array([i for word in ids for i in word], np.int16)
    phonemes = np.ones(-(-int(seconds * SECOND) // FRAME), np.uint8)
    counts = np.array([len(word) for word in ids], np.int16)
    return Clip(begin, int(seconds * SECOND), 0, counts, tokens, spans, phonemes)


CLIPS = [
    clip(text, n * 10 * SECOND, seconds)
    for n, (text, seconds) in enumerate(
        [
            ("The red fox ran.", 1.6),
            ("Call me at 7:30~seven_thirty tomorrow.", 2.4),
            ("Nobody knows.", 0.9),
            ("We walked to the station, and then we waited for the train.", 4.2),
        ]
    )
]
SESSIONS = [CLIPS, [*CLIPS[::-1]] * 4]


def windows(count: int, kind: str | None = None, timestamps: bool | None = None) -> list[Window]:
    composer = Composer(V, SESSIONS, Random(7))
    return [composer.window(kind, timestamps) for _ in range(count)]


def learned(window: Window) -> list[int]:
    return [token for token in window.targets if token != IGNORED]


def test_whole_windows_say_all_of_their_clips_with_their_times() -> None:
    by_begin = {c.begin: c for c in CLIPS}
    for window in windows(40, "whole", True):
        tokens = learned(window)
        expected = []
        for placed in window.placed:
            said = by_begin[placed.begin]
            start, end = placed.at, placed.at + int(said.word_spans[-1][1])
            expected += [V.zero + round(start / FRAME), *said.tokens.tolist(), V.zero + round(end / FRAME)]
        assert tokens == [*expected, V.end]


def test_every_token_follows_the_one_before() -> None:
    for window in windows(200):
        assert len(window.inputs) == len(window.targets) == len(window.spans) <= CONTEXT
        moved = 0  # a first timestamp later than decoders choose one
        for target, following in zip(window.targets, window.inputs[1:], strict=False):
            if target > V.zero + 50 >= following >= V.zero:
                moved += 1
            else:
                assert target in (following, IGNORED, V.no_speech)
        assert moved <= 1


def test_times_rise_and_lie_within_the_window() -> None:
    for window in windows(200, timestamps=True):
        stamps = [token - V.zero for token in learned(window) if token >= V.zero]
        assert stamps == sorted(stamps) and all(0 <= stamp < TIMESTAMPS for stamp in stamps)
        for begin, end in window.spans:
            assert 0 <= begin <= end <= POSITIONS


def test_a_sentence_that_the_window_cuts_is_opened_and_no_more() -> None:
    opened = [
        window
        for window in windows(200, "full", True)
        if (tokens := learned(window))[-2] >= V.zero and tokens[-3] >= V.zero
    ]
    assert len(opened) > 20
    for window in opened:
        assert window.placed[-1].at + window.placed[-1].count == SAMPLES


def test_silence_has_no_text_even_where_one_was_begun() -> None:
    for stamped in (True, False):
        for window in windows(20, "silent", stamped):
            assert learned(window) == [V.no_speech, V.end]
            assert (window.inputs[-1] >= V.zero) == stamped
            assert bool(window.placed) == window.backwards
            assert window.backwards or not window.phonemes.any()


def test_a_text_before_is_what_the_decoder_makes_of_earlier_windows(speech_path: Path) -> None:
    """The tokens of its segments, which `cut` finds, timestamps included."""
    tokenizer = open_speech(speech_path).tokenizer()
    earlier = {
        tuple(window.inputs[1 : window.inputs.index(V.start)])
        for window in windows(300, timestamps=True)
        if window.inputs[0] == V.before
    }
    assert len(earlier) > 100 and all(len(given) < CONTEXT // 2 for given in earlier)
    same = 0
    for given in earlier:
        stamped = [i for i, token in enumerate(given) if token >= V.zero]
        begins = [i for n, i in enumerate(stamped) if not n or given[i] < given[stamped[n - 1]]]
        drafts = [
            draft
            for begin, end in pairwise([*begins, len(given)])
            for draft in cut(given[begin:end], tokenizer, 0.0, 30.0)[0]
        ]
        same += [token for draft in drafts for token in draft.tokens] == list(given)
    assert same > 50  # others are cut, damaged, or have no timestamps


def test_a_batch_pads_with_what_is_not_learned() -> None:
    plan = batch(windows(8))
    assert plan.inputs.shape == plan.targets.shape == (8, CONTEXT)
    assert (plan.targets[:, -1] == IGNORED).all()
    assert len(plan.placed) == len(plan.gains)


def test_a_window_with_too_many_tokens_is_refused() -> None:
    with pytest.raises(ValueError, match="a window has 9 tokens, more than the context of 8"):
        batch([Window(inputs=[0] * 9, targets=[0] * 9, spans=[(0, 0)] * 9)], 8)
