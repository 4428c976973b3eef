"""Segments as files: txt, srt, vtt, tsv, lrc, json. Each comes piece by piece, as the segments do."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from akunu.base.errors import InvalidArgumentError
from akunu.speech.segments import Segment
from akunu.speech.subtitles import Layout, one_line, subtitles

__all__ = ["FORMATS", "SUBTITLES", "written"]

_ARROW: Final = re.compile("--+>")


def _clock(seconds: float, decimal_mark: str, hours: bool = True) -> str:
    milliseconds = max(round(seconds * 1000), 0)
    whole, rest = divmod(milliseconds, 1000)
    minutes, second = divmod(whole, 60)
    hour, minute = divmod(minutes, 60)
    leading = f"{hour:02d}:" if hours or hour else ""
    return f"{leading}{minute:02d}:{second:02d}{decimal_mark}{rest:03d}"


def _cue(text: str) -> str:
    """The lines of a subtitle, where an arrow would be read as times."""
    return "\n".join(_ARROW.sub("->", line) for line in text.split("\n"))


def _whose(segment: Segment) -> str:
    """Return the mark of a segment's channel, where channels are apart."""
    return "" if segment.channel is None else f"[channel {segment.channel}] "


def _txt(segments: Iterable[Segment], language: Callable[[], str | None]) -> Iterator[str]:
    return (_whose(segment) + one_line(segment.text) + "\n" for segment in segments)


def _srt(segments: Iterable[Segment], language: Callable[[], str | None]) -> Iterator[str]:
    for number, segment in enumerate(segments, 1):
        times = f"{_clock(segment.start, ',')} --> {_clock(segment.end, ',')}"
        yield f"{number}\n{times}\n{_whose(segment)}{_cue(segment.text)}\n\n"


def _vtt(segments: Iterable[Segment], language: Callable[[], str | None]) -> Iterator[str]:
    yield "WEBVTT\n\n"
    for segment in segments:
        start, end = (_clock(time, ".", hours=False) for time in (segment.start, segment.end))
        text = _cue(segment.text).replace("&", "&amp;").replace("<", "&lt;")
        voice = "" if segment.channel is None else f"<v channel {segment.channel}>"
        yield f"{start} --> {end}\n{voice}{text}\n\n"


def _tsv(segments: Iterable[Segment], language: Callable[[], str | None]) -> Iterator[str]:
    yield "start\tend\ttext\n"
    for segment in segments:
        text = one_line(segment.text).replace("\t", " ")
        times = f"{round(segment.start * 1000)}\t{round(segment.end * 1000)}"
        yield f"{times}\t{_whose(segment)}{text}\n"


def _lrc(segments: Iterable[Segment], language: Callable[[], str | None]) -> Iterator[str]:
    """Lines as players of songs show them, until the next time: an empty one ends what was said.

    Words that have times have them in the line.
    """
    end: float | None = None
    for segment in segments:
        start = _lyric_time(segment.start)
        if end is not None and end < segment.start and _lyric_time(end) != start:
            yield f"[{_lyric_time(end)}]\n"
        end = segment.end
        words = [f"<{_lyric_time(word.start)}>{one_line(word.word)}" for word in segment.words]
        yield f"[{start}]{_whose(segment)}{' '.join(words) or one_line(segment.text)}\n"
    if end is not None:
        yield f"[{_lyric_time(end)}]\n"


def _lyric_time(seconds: float) -> str:
    """Minutes, however many, seconds and hundredths."""
    hundredths = max(round(seconds * 100), 0)
    return f"{hundredths // 6000:02d}:{hundredths // 100 % 60:02d}.{hundredths % 100:02d}"


def _json(segments: Iterable[Segment], language: Callable[[], str | None]) -> Iterator[str]:
    yield '{"segments": ['
    texts: list[str] = []
    for segment in segments:
        fields = dataclasses.asdict(segment)
        if segment.channel is None:
            del fields["channel"]
        yield ("," if texts else "") + "\n" + json.dumps(fields, ensure_ascii=False)
        texts.append(segment.text)
    tail = json.dumps({"text": "".join(texts).strip(), "language": language()}, ensure_ascii=False)
    yield "\n], " + tail[1:] + "\n"


_WRITERS: Final = {"txt": _txt, "srt": _srt, "vtt": _vtt, "tsv": _tsv, "lrc": _lrc, "json": _json}
FORMATS: Final = tuple(_WRITERS)
SUBTITLES: Final = ("srt", "vtt")
"""Formats whose texts are shown in lines."""


def written(
    segments: Iterable[Segment],
    form: str,
    language: Callable[[], str | None] = lambda: None,
    layout: Layout | None = None,
) -> Iterator[str]:
    """The pieces of a file, one as soon as its segment is there.

    Parameters
    ----------
    segments : iterable of Segment
        What to write.
    form : str
        One of `FORMATS`.
    language : callable
        Gives the language when all segments have come.
    layout : Layout, optional
        The layout of subtitles, in the formats that have them.
    """
    if form not in _WRITERS:
        raise InvalidArgumentError(f"format: found {form!r}, expected one of {', '.join(FORMATS)}")
    if form in SUBTITLES:
        segments = subtitles(segments, layout or Layout())
    return _WRITERS[form](segments, language)
