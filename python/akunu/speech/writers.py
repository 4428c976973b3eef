"""Segments as files: txt, srt, vtt, tsv, lrc, json. Each comes piece by piece, as the segments do."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from akunu.base.errors import InvalidArgumentError
from akunu.speech.segments import Segment

__all__ = ["FORMATS", "written"]

_ARROW: Final = re.compile("--+>")


def _clock(seconds: float, decimal_mark: str, hours: bool = True) -> str:
    milliseconds = max(round(seconds * 1000), 0)
    whole, rest = divmod(milliseconds, 1000)
    minutes, second = divmod(whole, 60)
    hour, minute = divmod(minutes, 60)
    leading = f"{hour:02d}:" if hours or hour else ""
    return f"{leading}{minute:02d}:{second:02d}{decimal_mark}{rest:03d}"


def _line(text: str) -> str:
    """A text as one line, whatever ends a line for who reads the file."""
    return " ".join(text.strip().splitlines())


def _cue(text: str) -> str:
    """The text of a subtitle, where an arrow would be read as times."""
    return _ARROW.sub("->", _line(text))


def _txt(segments: Iterable[Segment], language: Callable[[], str | None]) -> Iterator[str]:
    return (_line(segment.text) + "\n" for segment in segments)


def _srt(segments: Iterable[Segment], language: Callable[[], str | None]) -> Iterator[str]:
    for number, segment in enumerate(segments, 1):
        times = f"{_clock(segment.start, ',')} --> {_clock(segment.end, ',')}"
        yield f"{number}\n{times}\n{_cue(segment.text)}\n\n"


def _vtt(segments: Iterable[Segment], language: Callable[[], str | None]) -> Iterator[str]:
    yield "WEBVTT\n\n"
    for segment in segments:
        start, end = (_clock(time, ".", hours=False) for time in (segment.start, segment.end))
        text = _cue(segment.text).replace("&", "&amp;").replace("<", "&lt;")
        yield f"{start} --> {end}\n{text}\n\n"


def _tsv(segments: Iterable[Segment], language: Callable[[], str | None]) -> Iterator[str]:
    yield "start\tend\ttext\n"
    for segment in segments:
        text = _line(segment.text).replace("\t", " ")
        yield f"{round(segment.start * 1000)}\t{round(segment.end * 1000)}\t{text}\n"


def _lrc(segments: Iterable[Segment], language: Callable[[], str | None]) -> Iterator[str]:
    """Lines as players of songs show them, until the next time: an empty one ends what was said.

    Words that have times have them in the line.
    """
    end = None
    for segment in segments:
        start = _lyric_time(segment.start)
        if end is not None and end != start:
            yield f"[{end}]\n"
        end = _lyric_time(segment.end)
        words = [f"<{_lyric_time(word.start)}>{_line(word.word)}" for word in segment.words]
        yield f"[{start}]{' '.join(words) or _line(segment.text)}\n"
    if end is not None:
        yield f"[{end}]\n"


def _lyric_time(seconds: float) -> str:
    """Minutes, however many, seconds and hundredths."""
    hundredths = max(round(seconds * 100), 0)
    return f"{hundredths // 6000:02d}:{hundredths // 100 % 60:02d}.{hundredths % 100:02d}"


def _json(segments: Iterable[Segment], language: Callable[[], str | None]) -> Iterator[str]:
    yield '{"segments": ['
    texts: list[str] = []
    for segment in segments:
        yield ("," if texts else "") + "\n" + json.dumps(dataclasses.asdict(segment), ensure_ascii=False)
        texts.append(segment.text)
    tail = json.dumps({"text": "".join(texts).strip(), "language": language()}, ensure_ascii=False)
    yield "\n], " + tail[1:] + "\n"


_WRITERS: Final = {"txt": _txt, "srt": _srt, "vtt": _vtt, "tsv": _tsv, "lrc": _lrc, "json": _json}
FORMATS: Final = tuple(_WRITERS)


def written(
    segments: Iterable[Segment], form: str, language: Callable[[], str | None] = lambda: None
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
    """
    if form not in _WRITERS:
        raise InvalidArgumentError(f"format: found {form!r}, expected one of {', '.join(FORMATS)}")
    return _WRITERS[form](segments, language)
