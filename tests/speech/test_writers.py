"""Every format, to the letter."""

from __future__ import annotations

import json

import pytest

from akunu.base.errors import InvalidArgumentError
from akunu.speech.segments import Segment, Word
from akunu.speech.writers import FORMATS, written

SEGMENTS = (
    Segment(0, 0.0, 1.5, " And so --> <you>", [1], 0.0, -0.1, 1.0, 0.0, (Word(" And", 0.0, 0.4, 0.9),)),
    Segment(1, 3661.25, 3662.0, " say\tit\n", [2], 0.0, -0.1, 1.0, 0.0),
)
EXPECTED = {
    "txt": "And so --> <you>\nsay\tit\n",
    "srt": "1\n00:00:00,000 --> 00:00:01,500\nAnd so -> <you>\n\n"
    "2\n01:01:01,250 --> 01:01:02,000\nsay\tit\n\n",
    "vtt": "WEBVTT\n\n00:00.000 --> 00:01.500\nAnd so -> &lt;you>\n\n"
    "01:01:01.250 --> 01:01:02.000\nsay\tit\n\n",
    "tsv": "start\tend\ttext\n0\t1500\tAnd so --> <you>\n3661250\t3662000\tsay it\n",
    "lrc": "[00:00.00]<00:00.00>And\n[00:01.50]\n[61:01.25]say\tit\n[61:02.00]\n",
}


@pytest.mark.parametrize("form", EXPECTED)
def test_a_format_is_as_its_readers_expect(form: str) -> None:
    assert "".join(written(SEGMENTS, form)) == EXPECTED[form]


@pytest.mark.parametrize("text", [" a ---> b", "---->> b", "a\n\nb", "a\rb", "a\r\n\r\nb", "a\u2028b"])
@pytest.mark.parametrize("form", EXPECTED)
def test_no_text_is_read_as_the_lines_of_the_format(text: str, form: str) -> None:
    word = Word(text, 0.0, 0.4, 0.9)
    segments = [Segment(0, 0.0, 1.0, text, [1], 0.0, -0.1, 1.0, 0.0, words) for words in ((), (word,))]
    plain = [Segment(0, 0.0, 1.0, "b", [1], 0.0, -0.1, 1.0, 0.0)] * 2
    found, expected = ("".join(written(each, form)) for each in (segments, plain))
    assert len(found.splitlines()) == len(expected.splitlines())
    if form in ("srt", "vtt"):
        assert found.count("-->") == expected.count("-->") == 2


def test_json_holds_everything() -> None:
    found = json.loads("".join(written(SEGMENTS, "json", lambda: "en")))
    assert found["language"] == "en" and found["text"].startswith("And so")
    assert found["segments"][0]["words"] == [{"word": " And", "start": 0.0, "end": 0.4, "probability": 0.9}]
    assert found["segments"][1]["start"] == 3661.25
    assert json.loads("".join(written((), "json"))) == {"segments": [], "text": "", "language": None}


def test_pieces_come_as_the_segments_do() -> None:
    for form in FORMATS:
        pieces = written(iter(SEGMENTS), form)
        assert "And" in next(piece for piece in pieces if "And" in piece)


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="expected one of txt, srt, vtt, tsv, lrc, json"):
        written((), "doc")
