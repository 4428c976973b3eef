"""Sound to numbers: any recording as mono samples at 16 kHz, and Whisper's log-mel spectrum of them.

``source`` reads what a caller has (``files`` a file, ``pcm`` an array), ``resample`` brings it to 16 kHz,
``mel`` makes the spectrum, ``activity`` finds speech. Nothing here knows of a model. ``soundfile`` and
``soxr`` are imported when they are needed.
"""

from __future__ import annotations

from akunu.audio.activity import SpeechSpan, VadOptions, speech_probability, speech_spans
from akunu.audio.mel import FRAMES_PER_SECOND, LogMelStream, log_mel, normalize_log_mel
from akunu.audio.pcm import SAMPLE_RATE
from akunu.audio.source import AudioSource, audio_blocks, load_audio

__all__ = [
    "FRAMES_PER_SECOND",
    "SAMPLE_RATE",
    "AudioSource",
    "LogMelStream",
    "SpeechSpan",
    "VadOptions",
    "audio_blocks",
    "load_audio",
    "log_mel",
    "normalize_log_mel",
    "speech_probability",
    "speech_spans",
]
