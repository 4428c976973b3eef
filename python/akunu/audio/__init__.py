"""Sound to numbers: any recording as mono samples at 16 kHz, and Whisper's log-mel spectrum of them.

``source`` reads what a caller has (``files`` a file, ``pcm`` an array), ``resample`` brings it to 16 kHz,
``mel`` makes the spectrum, ``activity`` finds speech, ``silero`` by a model of the user's. In files whose
head does not tell the truth, ``containers`` finds what there is; ``foreign`` asks
FFmpeg for what libsndfile does not read. ``soundfile``, ``soxr``, ``av`` and ``onnxruntime`` are imported
when they are needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from akunu.base.lazy_names import lazy_names

if TYPE_CHECKING:
    from akunu.audio.activity import Detector, SpeechSpan, VadOptions, speech_probability, speech_spans
    from akunu.audio.mel import FRAMES_PER_SECOND, LogMelStream, log_mel, normalize_log_mel
    from akunu.audio.pcm import SAMPLE_RATE
    from akunu.audio.silero import silero_detector
    from akunu.audio.source import AudioSource, audio_blocks, audio_channels, load_audio

__all__ = [
    "FRAMES_PER_SECOND",
    "SAMPLE_RATE",
    "AudioSource",
    "Detector",
    "LogMelStream",
    "SpeechSpan",
    "VadOptions",
    "audio_blocks",
    "audio_channels",
    "load_audio",
    "log_mel",
    "normalize_log_mel",
    "silero_detector",
    "speech_probability",
    "speech_spans",
]

_HOME: Final = {
    "AudioSource": "akunu.audio.source",
    "Detector": "akunu.audio.activity",
    "FRAMES_PER_SECOND": "akunu.audio.mel",
    "LogMelStream": "akunu.audio.mel",
    "SAMPLE_RATE": "akunu.audio.pcm",
    "SpeechSpan": "akunu.audio.activity",
    "VadOptions": "akunu.audio.activity",
    "audio_blocks": "akunu.audio.source",
    "audio_channels": "akunu.audio.source",
    "load_audio": "akunu.audio.source",
    "log_mel": "akunu.audio.mel",
    "normalize_log_mel": "akunu.audio.mel",
    "silero_detector": "akunu.audio.silero",
    "speech_probability": "akunu.audio.activity",
    "speech_spans": "akunu.audio.activity",
}

__getattr__ = lazy_names(__name__, _HOME, globals())
