"""A recording becomes segments: windows, prompts, silence, words, and what seems made up."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import akunu
from akunu.audio import audio_blocks, load_audio, log_mel
from akunu.base.errors import InvalidArgumentError
from akunu.speech.batching import Batcher
from akunu.speech.options import TranscriptionOptions
from akunu.speech.segments import Segment
from akunu.speech.transcription import Transcriber
from akunu.speech.windows import MelWindows

from . import tiny
from .scripted import Script, ScriptedModel, said

TOKENIZER = tiny.tokenizer()
SPECIAL = TOKENIZER.special


def sound(seconds: float) -> np.ndarray:
    """The same in any order of the tests."""
    return np.random.default_rng(0).normal(0, 0.1, round(seconds * 16000)).astype(np.float32)


def transcribed(
    model: ScriptedModel, heard: float | np.ndarray = 30.0, **options: Any
) -> tuple[list[Segment], Transcriber]:
    defaults = {"beam_size": 1, "language": "en", "temperature": 0}
    samples = heard if isinstance(heard, np.ndarray) else sound(heard)
    transcriber = Transcriber(
        Batcher(model), TOKENIZER, audio_blocks(samples), TranscriptionOptions(**(defaults | options))
    )
    segments = list(transcriber)
    assert not model.alive and not model.windows
    return segments, transcriber


def spans(segments: list[Segment]) -> list[tuple[float, float, str]]:
    return [(segment.start, segment.end, segment.text) for segment in segments]


def test_a_window_becomes_segments_with_their_times() -> None:
    model = ScriptedModel(Script(said(0.0, " and so", 2.0, 2.0, " you say", 4.5)))
    segments, transcriber = transcribed(model, 11)
    assert spans(segments) == [(0.0, 2.0, " and so"), (2.0, 4.5, " you say")]
    assert [segment.id for segment in segments] == [0, 1]
    assert segments[0].avg_logprob > -0.2 and segments[0].no_speech_prob == pytest.approx(0.01, rel=0.01)
    assert (transcriber.language, transcriber.language_probability) == ("en", 1.0)


@pytest.mark.parametrize("blank", ["", " ", "\n\t"])
@pytest.mark.parametrize("option", ["prefix", "initial_prompt", "hotwords"])
def test_a_blank_text_is_none(option: str, blank: str) -> None:
    expected = transcribed(ScriptedModel(Script(said(0.0, " and so", 2.0))), 11)[0]
    assert expected
    assert transcribed(ScriptedModel(Script(said(0.0, " and so", 2.0))), 11, **{option: blank})[0] == expected


def test_the_next_window_begins_at_the_last_pair_of_timestamps() -> None:
    first = Script(said(0.0, " and", 20.0, 20.0, " so"))
    model = ScriptedModel(first, Script(said(0.0, " so you", 3.0)))
    segments, _ = transcribed(model, 40)
    assert spans(segments) == [(0.0, 20.0, " and"), (20.0, 23.0, " so you")]
    assert len(model.mels) == 2


def test_the_text_before_is_the_prompt_of_the_next_window() -> None:
    scripts = (Script(said(0.0, " and", 30.0)), Script(said(0.0, " so", 5.0)))
    model = ScriptedModel(*scripts)
    transcribed(model, 40, initial_prompt="you", hotwords="he")
    start = list(TOKENIZER.start_sequence("en"))
    hot, given = TOKENIZER.encode(" he"), TOKENIZER.encode(" you")
    assert model.prompts == [
        [SPECIAL.start_of_previous, *hot, *given, *start],
        [SPECIAL.start_of_previous, *hot, *given, *said(0.0, " and", 30.0), *start],
    ]
    model = ScriptedModel(*scripts)
    transcribed(model, 40, condition_on_previous_text=False, initial_prompt="you")
    assert model.prompts == [[SPECIAL.start_of_previous, *given, *start], start]


def test_a_window_that_needed_a_high_temperature_is_no_prompt() -> None:
    poor = Script(said(0.0, " and", 30.0), certainty=0.999)
    for limit, expected in ((0.5, 1), (1.0, 2)):
        model = ScriptedModel(poor, Script(said(0.0, " so", 5.0)))
        transcribed(
            model, 40, temperature=0.8, best_of=1, prompt_reset_on_temperature=limit, suppress_tokens=()
        )
        assert len({prompt[0] for prompt in model.prompts}) == expected


def test_prompts_leave_half_the_context() -> None:
    model = ScriptedModel(Script(said(0.0, " so", 5.0)))
    transcribed(model, 5, initial_prompt=[65] * 1000, hotwords="he " * 500, prefix="and " * 500)
    assert len(model.prompts[0]) == 3 + 1 + 223
    model = ScriptedModel(Script(said(0.0, " so", 5.0)))
    transcribed(model, 5, initial_prompt=[65] * 1000, hotwords="he")
    assert len(model.prompts[0]) == 1 + 223 + 3


def test_the_beginning_may_be_given() -> None:
    model = ScriptedModel(Script(said(" so", 5.0)), Script(said(0.0, " so", 5.0)))
    transcribed(model, 40, prefix="and", condition_on_previous_text=False)
    start = list(TOKENIZER.start_sequence("en"))
    assert model.prompts == [[*start, SPECIAL.timestamp_begin, *TOKENIZER.encode(" and")], start]


def test_without_timestamps_a_window_is_a_segment() -> None:
    model = ScriptedModel(Script(said(" and so")))
    segments, _ = transcribed(model, 45, without_timestamps=True)
    assert spans(segments) == [(0.0, 30.0, " and so"), (30.0, 45.0, " and so")]
    assert model.prompts[0][-1] == SPECIAL.no_timestamps


def test_a_window_without_speech_has_no_text_unless_the_text_is_sure() -> None:
    text = said(0.0, " and so", 2.0)
    quiet = Script(text, certainty=0.1, silence=0.9)
    segments, _ = transcribed(ScriptedModel(quiet, Script(text)), 40, log_prob_threshold=-0.5)
    assert spans(segments) == [(30.0, 32.0, " and so")]
    sure = Script(text, certainty=0.95, silence=0.9)
    assert len(transcribed(ScriptedModel(sure), 10)[0]) == 1
    assert len(transcribed(ScriptedModel(quiet), 10, no_speech_threshold=None)[0]) == 1


def test_the_language_is_detected_once() -> None:
    model = ScriptedModel(Script(said(0.0, " so", 30.0)), language="de", language_probability=0.8)
    _, transcriber = transcribed(model, 70, language=None, task="translate")
    assert transcriber.language == "de"
    assert transcriber.language_probability == pytest.approx(0.8, abs=0.01)
    assert len(model.mels) == 3
    assert all(p[-3:] == list(TOKENIZER.start_sequence("de", "translate")) for p in model.prompts)


def test_detection_looks_on_while_it_is_not_sure() -> None:
    for probability, windows in ((0.4, 3), (0.8, 1)):
        model = ScriptedModel(Script(said(0.0, " so", 30.0)), language_probability=probability)
        _, transcriber = transcribed(model, 100, language=None, language_detection_segments=3)
        assert transcriber.language == "en"
        assert len(model.mels) == 4 + windows - 1


def test_a_language_that_the_model_does_not_know_is_refused_at_once() -> None:
    with pytest.raises(InvalidArgumentError, match="yue"):
        Transcriber(Batcher(ScriptedModel()), TOKENIZER, iter(()), TranscriptionOptions(language="yue"))


@pytest.mark.parametrize("samples", [1, 159])
def test_less_than_a_frame_has_no_text(samples: int) -> None:
    model = ScriptedModel(Script(said(0.0, " so", 1.0)))
    assert transcribed(model, samples / 16000)[0] == []


def test_segments_come_while_the_recording_is_read() -> None:
    read: list[int] = []

    def live() -> Iterator[np.ndarray]:
        for i in range(100):
            read.append(i)
            yield sound(1)

    model = ScriptedModel(Script(said(0.0, " so", 30.0)))
    options = TranscriptionOptions(beam_size=1, language="en", temperature=0)
    segments = iter(Transcriber(Batcher(model), TOKENIZER, audio_blocks(live()), options))
    assert next(segments).end == 30 and len(read) == 31
    assert next(segments).end == 60 and len(read) == 61


def test_the_windows_are_those_of_the_whole_spectrum() -> None:
    samples = sound(45)
    samples[:1600] *= 50  # the loudest part comes first
    whole = log_mel(samples, 80)
    windows = MelWindows(audio_blocks(samples), 80)
    mel, frames = windows.window(0, 3000)
    assert frames == 3000 and np.array_equal(mel, whole[:, :3000])
    windows.forget(2000)
    mel, frames = windows.window(2000, 3000)
    assert frames == 2500 and np.array_equal(mel[:, :2500], whole[:, 2000:])
    assert (mel[:, 2500:] == whole.min()).all()
    assert windows.ended and windows.read == 4500


def timed(script: Script, times: list[float], seconds: float = 11, **options: Any) -> list[Segment]:
    model = ScriptedModel(script, Script([], silence=0.99, certainty=0.1))
    model.times[0] = times
    return transcribed(model, seconds, word_timestamps=True, **options)[0]


def test_words_are_in_their_segments() -> None:
    text = said(0.0, " and so", 2.0, 2.0, " you,", 4.5)
    segments = timed(Script(text), [0.4, 1.0, 2.4, 3.0, 3.6])
    assert [[word.word for word in segment.words] for segment in segments] == [[" and", " so"], [" you,"]]
    words = [word for segment in segments for word in segment.words]
    assert all(before.end <= after.start for before, after in itertools.pairwise(words))
    assert all(segment.start == segment.words[0].start for segment in segments)
    assert words[1].start == pytest.approx(1.0, abs=0.15)


def spelt(segments: list[Segment]) -> list[list[str]]:
    return [[word.word for word in segment.words] for segment in segments]


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ((" and,", "so", " you say", " he"), [[" and,"], ["so"], [" you", " say"], [" he"]]),
        ((' and "', " so", " you say"), [[" and", ' "'], [" so"], [" you", " say"]]),
        ((" and", ", so", " you say"), [[" and"], [",", " so"], [" you", " say"]]),
    ],
)
def test_words_are_those_of_their_segment_alone(texts: tuple[str, ...], words: list[list[str]]) -> None:
    """A segment that begins in a word, or ends or begins with a mark of its neighbour, moves no other's."""
    parts = [part for i, text in enumerate(texts) for part in (2.0 * i, text, 2.0 * i + 1.9)]
    count = len([token for token in said(*texts)])
    segments = timed(Script(said(*parts)), [0.5 * i for i in range(count + 1)], suppress_tokens=[])
    assert [segment.text for segment in segments] == list(texts)
    assert spelt(segments) == words


def test_a_segment_holds_its_words_and_no_two_words_overlap() -> None:
    """Those of the second one are longer than its timestamps say, and shorter than a word usually is."""
    text = said(0.0, " and so", 1.4, 2.2, " you say", 2.3, 2.9, " he", 3.6)
    segments = timed(Script(text), [0.2, 0.9, 1.6, 2.24, 2.84, 3.2, 3.54])
    assert spelt(segments) == [[" and", " so"], [" you", " say"], [" he"]]
    for segment in segments:
        assert segment.start == segment.words[0].start and segment.words[-1].end == segment.end
    words = [word for segment in segments for word in segment.words]
    assert all(before.end <= after.start for before, after in itertools.pairwise(words))


def test_a_made_up_segment_in_silence_is_left_out() -> None:
    """Its one word is said in no time at all, eight seconds after the others."""
    text = said(0.0, " and so", 2.0, 2.0, " you", 10.5)
    times = [0.4, 1.0, 10.9, 10.91]
    options = {"hallucination_silence_threshold": 2.0}
    assert len(timed(Script(text), times)) == 2
    assert [segment.text for segment in timed(Script(text), times, **options)] == [" and so"]


def test_word_guards_need_words() -> None:
    with pytest.raises(InvalidArgumentError, match="word_timestamps=True"):
        TranscriptionOptions(hallucination_silence_threshold=2.0)


def test_speech_that_a_batched_window_leaves_out_at_its_end_is_heard_again() -> None:
    """A lone timestamp says that nothing follows; where the window ends in speech, something does."""
    speech = load_audio(Path(akunu.__file__).parent / "models" / "ember-speech.ogg")  # of 19.3 s
    scripts = [Script(said(0.0, text, end)) for text, end in ((" a", 5.0), (" b", 9.0), (" c", 5.0))]
    model = ScriptedModel(*scripts)
    found = transcribed(model, speech, batch_size=2)[0]
    assert [text for _, _, text in spans(found)] == [" a", " b", " c"]
    assert [segment.start for segment in found] == [found[0].start + at for at in (0, 5, 14)]
    first, second = model.mels[:2]
    assert np.array_equal(second[:, : 3000 - 500], first[:, 500:]) and (second[:, 2500:] == first.min()).all()
    broken = [Script(said(0.0, " a", 5.0, 5.0, " lo")), *scripts[1:]]  # one word for 14 s
    found = transcribed(ScriptedModel(*broken), speech, batch_size=2)[0]
    assert [text for _, _, text in spans(found)] == [" a", " b", " c"]
    clips = transcribed(ScriptedModel(*scripts), speech, batch_size=2, clip_timestamps=[0, 19])[0]
    assert len(clips) == 1  # where the caller says so, nobody knows that somebody speaks
