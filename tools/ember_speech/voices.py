"""espeak-ng through its library: speech with the times of words and phonemes, and the voices' split."""

from __future__ import annotations

import ctypes
from bisect import bisect_right
from ctypes import POINTER, Structure, Union, byref, c_char, c_char_p, c_int, c_short, c_uint, c_void_p
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tools.ember_speech.sentences import Sentence

LANGUAGES = """en-us en-us en-us en en en-gb-x-rp en-gb-scotland en-gb-x-gbclan en-gb-x-gbcwmd en-029
    en-us-nyc""".split()  # noqa: SIM905
HELD_BACK_VARIANTS = tuple(
    """Andrea belinda f4 Hugo john klatt3 Lee m5 Michael norbert steph steph2 steph3 travis""".split()  # noqa: SIM905
)
VARIANTS = tuple(
    """adam Alex Alicia Andy anika anikaRobot Annie announcer antonio AnxiousAndy aunty benjamin boris
    caleb croak david Denis Diogo ed edward edward2 f1 f2 f3 f5 fast Gene Gene2 grandma grandpa gustave
    Henrique iven iven2 iven3 iven4 Jacky kaukovalta klatt klatt2 klatt4 klatt5 klatt6 linda m1 m2 m3 m4
    m6 m7 m8 marcelo Marco Mario max michael michel miguel mike Nguyen pablo paul pedro quincy
    RicishayMax RicishayMax2 RicishayMax3 rob robert robosoft robosoft2 robosoft3 robosoft4 robosoft5
    robosoft6 robosoft7 robosoft8 sandro shelby Storm Tweaky UniRobot victor whisper whisperf zac""".split()  # noqa: SIM905
)
"""Of the training; the plain voice of a language is one more."""

SAMPLE_RATE = 16000
_RATE, _PITCH, _RANGE = 1, 3, 4  # of espeak_SetParameter
_RETRIEVAL, _PHONEME_EVENTS, _ASCII = 2, 1, 1
_WORD, _PHONEME = 1, 7
_TAIL = 0.04  # seconds kept after the last phoneme


@dataclass(frozen=True)
class Voice:
    """How somebody speaks: espeak-ng's voice, words a minute, pitch and its range (0 to 99), and by how much
    everything is faster and higher at the end, the resonances too."""

    name: str
    rate: int
    pitch: int
    range: int
    factor: float


@dataclass(frozen=True)
class Speech:
    """A sentence as it sounds: samples at 16 kHz, words (start, end), phonemes (start, name); in seconds."""

    samples: NDArray[np.int16]
    words: list[tuple[float, float]]
    phonemes: list[tuple[float, str]]


def draw_voice(rng: Random, held_back: bool) -> Voice:
    """A voice of one side of the split; the range of the others is that of the training."""
    language = rng.choice(LANGUAGES)
    variant = rng.choice(HELD_BACK_VARIANTS if held_back else (*VARIANTS, "", "", "", ""))
    return Voice(
        f"{language}+{variant}" if variant else language,
        rate=round(rng.triangular(105, 260, 165)),
        pitch=round(rng.triangular(15, 85, 50)),
        range=round(rng.triangular(20, 90, 50)),
        factor=1.0 if held_back or rng.random() < 0.4 else rng.uniform(0.88, 1.14),
    )


class _Id(Union):
    _fields_ = [("number", c_int), ("name", c_char_p), ("string", c_char * 8)]


class _Event(Structure):
    _fields_ = [
        ("type", c_int),
        ("identifier", c_uint),
        ("text_position", c_int),
        ("length", c_int),
        ("milliseconds", c_int),
        ("sample", c_int),
        ("user", c_void_p),
        ("id", _Id),
    ]


_Callback = ctypes.CFUNCTYPE(c_int, POINTER(c_short), c_int, POINTER(_Event))


class Espeak:
    """The library, which exists once in a process."""

    def __init__(self, library: str = "libespeak-ng.so.1", data: str | None = None) -> None:
        self._lib = ctypes.CDLL(library)
        self._rate = self._lib.espeak_Initialize(
            _RETRIEVAL, 0, data.encode() if data else None, _PHONEME_EVENTS
        )
        if self._rate <= 0:
            raise RuntimeError(f"espeak-ng does not start with the data of {data or 'the system'}")
        self._pieces: list[bytes] = []
        self._events: list[tuple[int, int, int, bytes]] = []
        self._callback = _Callback(self._collect)
        self._lib.espeak_SetSynthCallback(self._callback)
        self._voice = ""

    def _collect(self, samples: Any, count: int, events: Any) -> int:
        if samples and count > 0:
            self._pieces.append(ctypes.string_at(samples, 2 * count))
        i = 0
        while events[i].type:
            event = events[i]
            if event.type == _PHONEME:
                self._events.append((event.type, event.text_position, event.sample, event.id.string))
            i += 1
        return 0

    def say(self, sentence: Sentence, voice: Voice) -> Speech | None:
        """The sentence in that voice; None when nothing is heard of one of its words."""
        if voice.name != self._voice and self._lib.espeak_SetVoiceByName(voice.name.encode()):
            raise RuntimeError(f"espeak-ng has no voice {voice.name!r}")
        self._voice = voice.name
        for parameter, value in ((_RATE, voice.rate), (_PITCH, voice.pitch), (_RANGE, voice.range)):
            self._lib.espeak_SetParameter(parameter, value, 0)
        starts, text = [], ""
        for _, said in sentence.words:
            starts.append(len(text))
            text += said + " "
        self._pieces.clear()
        self._events.clear()
        data = text.rstrip().encode()
        self._lib.espeak_Synth(data, len(data) + 1, 0, 1, 0, _ASCII, byref(c_uint(0)), None)
        sound = np.frombuffer(b"".join(self._pieces), np.int16)
        return self._timed(sound, starts, voice.factor)

    def _timed(self, sound: NDArray[np.int16], starts: list[int], factor: float) -> Speech | None:
        second = self._rate * factor  # samples that become one
        words: list[tuple[float, float] | None] = [None] * len(starts)
        phonemes = []
        for (_, position, sample, name), (_, _, following, _) in zip(
            self._events, [*self._events[1:], (0, 0, len(sound), b"")], strict=True
        ):
            pause = name.startswith(b"_") or not name
            phonemes.append((sample / second, "_" if pause else name.decode("latin-1")))
            if not pause:
                word = bisect_right(starts, position - 1) - 1
                begin = sample / second if words[word] is None else words[word][0]  # type: ignore[index]
                words[word] = (begin, following / second)
        spans = _filled(words)
        if spans is None:
            return None
        end = min(len(sound), round((spans[-1][1] + _TAIL) * second))
        return Speech(_resampled(sound[:end], second), spans, phonemes)


def _filled(words: list[tuple[float, float] | None]) -> list[tuple[float, float]] | None:
    """Words that espeak-ng says together with the one before share its time."""
    if words[0] is None:
        return None
    spans: list[tuple[float, float]] = []
    i = 0
    while i < len(words):
        together = 1
        while i + together < len(words) and words[i + together] is None:
            together += 1
        begin, end = words[i]  # type: ignore[misc]
        step = (end - begin) / together
        spans += [(begin + k * step, begin + (k + 1) * step) for k in range(together)]
        i += together
    if any(later[0] < earlier[0] for earlier, later in pairwise(spans)):
        return None
    return spans


def _resampled(sound: NDArray[np.int16], rate: float) -> NDArray[np.int16]:
    """At 16 kHz, through the frequency domain."""
    count = round(len(sound) * SAMPLE_RATE / rate)
    # lengths with small factors, of which the transform is fast; the ratio is met within 1e-4
    padded = -(-(len(sound) + 256) // 2048) * 2048
    out = round(padded * SAMPLE_RATE / rate / 32) * 32
    spectrum = np.fft.rfft(np.pad(sound, (0, padded - len(sound))).astype(np.float32))
    bins = out // 2 + 1
    spectrum = spectrum[:bins] if bins <= len(spectrum) else np.pad(spectrum, (0, bins - len(spectrum)))
    result = np.fft.irfft(spectrum, out)[:count] * (out / padded)
    return np.clip(np.rint(result), -32768, 32767).astype(np.int16)


@cache
def espeak(library: str = "libespeak-ng.so.1", data: str | None = None) -> Espeak:
    """The process's own."""
    return Espeak(library, data)
