"""Transcription, as a type checker sees a client's code (`make check` checks it)."""

from __future__ import annotations

from typing import assert_type

import akunu


def subtitles(path: str, recording: str) -> list[tuple[float, float, str]]:
    model = akunu.load(path, task="transcribe")
    assert_type(model, akunu.WhisperModel)
    found = model.transcribe(recording, language="en", beam_size=5, word_timestamps=True)
    assert_type(found, akunu.Transcription)
    segments, _ = found
    assert_type(akunu.WhisperModel(path, device="cpu"), akunu.WhisperModel)
    for segment in model.transcribe_stream(recording, vad_filter=True):
        assert_type(segment, akunu.Segment)
    return [(segment.start, segment.end, segment.text) for segment in segments]


def wrong(model: akunu.WhisperModel) -> None:
    model.transcribe("talk.wav", beams=5)  # type: ignore[call-arg]
