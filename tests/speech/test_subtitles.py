"""Subtitles have lines of a width, so many of them, or so many words; formats say whose channel a text is."""

from __future__ import annotations

import dataclasses
import json

import pytest

from akunu.base.errors import InvalidArgumentError
from akunu.speech.segments import Segment, Word
from akunu.speech.subtitles import Layout, subtitles
from akunu.speech.transcript import Transcription


def segment(text: str, start: float, channel: int | None = None) -> Segment:
    """Each word takes half a second."""
    words = tuple(
        Word(f" {word}", start + i / 2, start + i / 2 + 0.5, 0.9) for i, word in enumerate(text.split())
    )
    return Segment(0, start, words[-1].end, f" {text}", [1], 0.0, -0.1, 1.0, 0.0, words, channel)


TALK = (
    segment("Ask not what your country can do for you,", 0),
    segment("ask what you can do for your country.", 5),
    segment("Thank you.", 20),
)


def shown(layout: Layout, talk: tuple[Segment, ...] = TALK) -> list[tuple[float, float, str]]:
    return [(one.start, one.end, one.text) for one in subtitles(talk, layout)]


def test_without_a_layout_subtitles_are_segments() -> None:
    assert shown(Layout()) == [(one.start, one.end, one.text.strip()) for one in TALK]


def test_a_width_breaks_lines_within_segments() -> None:
    """A word that is longer has a line of its own."""
    assert shown(Layout(max_line_width=16)) == [
        (0, 4.5, "Ask not what\nyour country can\ndo for you,"),
        (5, 9, "ask what you can\ndo for your\ncountry."),
        (20, 21, "Thank you."),
    ]
    assert shown(Layout(max_line_width=3))[2] == (20, 21, "Thank\nyou.")


def test_a_number_of_lines_makes_subtitles_that_go_on_over_segments_but_not_over_pauses() -> None:
    assert shown(Layout(max_line_width=16, max_line_count=2)) == [
        (0, 3, "Ask not what\nyour country can"),
        (3, 7.5, "do for you, ask\nwhat you can do"),
        (7.5, 9, "for your\ncountry."),
        (20, 21, "Thank you."),
    ]


def test_a_number_of_words_makes_shorter_subtitles() -> None:
    found = shown(Layout(max_words_per_line=4))
    assert [text for _, _, text in found] == [
        *("Ask not what your", "country can do for", "you,"),
        *("ask what you can", "do for your country.", "Thank you."),
    ]
    assert found[1][:2] == (2, 4)


def test_no_subtitle_holds_two_channels() -> None:
    talk = (segment("one two", 0, 0), segment("three", 1, 1), segment("four", 1.5, 1))
    assert [text for *_, text in shown(Layout(80, 2), talk)] == ["one two", "three four"]


def test_files_have_the_lines() -> None:
    found = Transcription("en", 1.0, 21.0, TALK)
    srt = found.to("srt", max_line_width=16, max_line_count=2)
    assert srt.startswith("1\n00:00:00,000 --> 00:00:03,000\nAsk not what\nyour country can\n\n2\n")
    assert "\nyour country can\n\n" in found.to("vtt", max_line_width=16, max_line_count=2)
    assert found.to("txt", max_line_width=16) == found.to("txt")


def test_each_format_says_whose_channel_it_is() -> None:
    talk = (segment("Hello.", 0, 0), segment("Yes?", 0.25, 1))
    found = Transcription("en", 1.0, 2.0, talk)
    assert found.to("txt") == "[channel 0] Hello.\n[channel 1] Yes?\n"
    assert "\n[channel 1] Yes?\n" in found.to("srt") and "\n<v channel 1>Yes?\n" in found.to("vtt")
    assert found.to("tsv").splitlines()[2] == "250\t750\t[channel 1] Yes?"
    bare = Transcription("en", 1.0, 2.0, tuple(dataclasses.replace(one, words=()) for one in talk))
    assert bare.to("lrc") == "[00:00.00][channel 0] Hello.\n[00:00.25][channel 1] Yes?\n[00:00.75]\n"
    assert [one["channel"] for one in json.loads(found.to("json"))["segments"]] == [0, 1]
    assert "channel" not in Transcription("en", 1.0, 21.0, TALK).to("json")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_line_width": 0}, "max_line_width: found 0, expected a whole number above 0"),
        ({"max_line_width": "5"}, "max_line_width: found '5'"),
        ({"max_line_count": 2}, "max_line_count: needs max_line_width"),
        ({"max_line_width": 9, "max_words_per_line": 2}, "max_words_per_line and max_line_width exclude"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, int], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        Transcription("en", 1.0, 21.0, TALK).to("srt", **options)


def test_words_without_times_are_refused() -> None:
    bare = (dataclasses.replace(TALK[0], words=()),)
    with pytest.raises(InvalidArgumentError, match="needs word_timestamps=True"):
        Transcription("en", 1.0, 21.0, bare).to("srt", max_line_width=16)


def test_a_transcription_unpacks_as_that_of_faster_whisper() -> None:
    found = Transcription("en", 0.5, 21.0, TALK)
    segments, info = found
    assert segments == TALK
    assert (info.language, info.language_probability, info.duration) == ("en", 0.5, 21.0)
