"""The options of a transcription; names and defaults are faster-whisper's where it has them."""

from __future__ import annotations

import difflib
import itertools
import math
import numbers
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypedDict

from akunu.audio.activity import VadOptions
from akunu.base.arguments import FLOAT32_MAX, Limit, as_path
from akunu.base.errors import InvalidArgumentError
from akunu.chat.structured.structure import Structure, structure_of
from akunu.speech.constraints import CONSTRAINTS

__all__ = ["TranscriptionArguments", "TranscriptionOptions", "transcription_options"]

_LONGEST: Final = 1e9
"""Seconds; no recording lasts as long."""
_ANY: Final = Limit(float, -math.inf, math.inf)
_COUNT: Final = Limit(int, 1, math.inf)

_NUMBERS: Final[Mapping[str, Limit]] = {
    "beam_size": _COUNT,
    "best_of": _COUNT,
    "patience": Limit(float, 0.0, FLOAT32_MAX, open_low=True),
    "length_penalty": Limit(float, -FLOAT32_MAX, FLOAT32_MAX),
    "repetition_penalty": Limit(float, 0.0, FLOAT32_MAX, open_low=True),
    "no_repeat_ngram_size": Limit(int, 0, math.inf),
    "prompt_reset_on_temperature": Limit(float, 0.0, math.inf),
    "max_initial_timestamp": Limit(float, 0.0, FLOAT32_MAX),
    "language_detection_threshold": _ANY,
    "language_detection_segments": _COUNT,
    "seed": Limit(int, 0, math.inf),
}
_NUMBERS_OR_NONE: Final[Mapping[str, Limit]] = {
    "compression_ratio_threshold": _ANY,
    "log_prob_threshold": _ANY,
    "no_speech_threshold": _ANY,
    "max_new_tokens": _COUNT,
    "hallucination_silence_threshold": Limit(float, 0.0, math.inf),
    "batch_size": _COUNT,
}
_TEMPERATURE: Final = Limit(float, 0.0, FLOAT32_MAX)
_ID: Final = Limit(int, -math.inf, math.inf)
_KINDS: Final[Mapping[str, tuple[Any, str]]] = {
    **dict.fromkeys(
        (
            "condition_on_previous_text", "suppress_blank", "without_timestamps", "word_timestamps",
            "multilingual", "vad_filter", "channels",
        ),
        (bool, "True or False"),
    ),
    **dict.fromkeys(("task", "prepend_punctuations", "append_punctuations"), (str, "text")),
    **dict.fromkeys(("language", "prefix", "hotwords", "grammar", "regex"), (str | None, "text or None")),
}  # fmt: skip


@dataclass(frozen=True)
class TranscriptionOptions:
    """The options of transcribing a recording.

    Attributes
    ----------
    language : str, optional
        A code or an English name; when not given, the one that the model's files name, else it is detected.
    task : str
        ``transcribe``, or ``translate`` to English.
    beam_size : int
        Beams at temperature 0; 1 is greedy.
    best_of : int
        Samples at a temperature above 0.
    patience : float
        Beam search ends with `beam_size * patience` finished beams.
    length_penalty : float
        Candidates are ranked by log p / length ** length_penalty.
    repetition_penalty : float
        Divides the logits of tokens that have occurred (multiplies where they are negative).
    no_repeat_ngram_size : int
        No run of so many tokens occurs twice in a window; 0: any may.
    temperature : sequence of float
        Tried in turn, while a result is repetitive or unlikely.
    compression_ratio_threshold : float, optional
        A text that compresses better is repetitive.
    log_prob_threshold : float, optional
        A text of a lower mean log p is unlikely.
    no_speech_threshold : float, optional
        A window whose first token is silence with more probability, and whose text is unlikely, has none.
    condition_on_previous_text : bool
        The text of a window is the prompt of the next one. When not given, what the model's files name (of
        ember-speech, that it is not), else True.
    prompt_reset_on_temperature : float
        Not after a window that needed a higher temperature.
    initial_prompt : str or sequence of int, optional
        The prompt of the first window.
    prefix : str, optional
        How the text of the first window begins.
    hotwords : str, optional
        Words that are in the prompt of every window.
    suppress_blank : bool
        The text of a window does not begin with a space alone, or with its end (or with what else the
        model's files name).
    suppress_tokens : sequence of int
        Ids that never come; -1 stands for those that the model's files name, and where they name none, for
        the marks of sounds that are no speech.
    without_timestamps : bool
        No timestamps: a window is one segment.
    max_initial_timestamp : float
        The first timestamp of a window is no later, in seconds.
    max_new_tokens : int, optional
        Most tokens of a window; half the decoder's context when not given.
    word_timestamps : bool
        Words with times.
    prepend_punctuations, append_punctuations : str
        Marks that belong to the word after, or before.
    hallucination_silence_threshold : float, optional
        A segment that seems to be made up is left out beside so many seconds of silence; needs word times.
    language_detection_threshold : float
        Detection looks at more windows while no language is as probable.
    language_detection_segments : int
        Most windows that it looks at.
    multilingual : bool
        Detect the language of each window, not of the recording.
    vad_filter : bool
        Leave out what is no speech before the model hears it.
    vad_parameters : VadOptions or mapping, optional
        What counts as speech: `akunu.audio.VadOptions`, or some of its fields.
    vad : path, optional
        The ONNX file of a Silero VAD model (5 or 6), which then finds the speech; as with `vad_filter`, what
        is none is left out. Needs `onnxruntime`.
    clip_timestamps : str or sequence of float
        Hear only these parts: start, end, start, end, … in seconds, also with commas in a text; the last end
        may be missing. `vad_filter` and `vad` have no effect then.
    batch_size : int, optional
        Windows that run side by side. They are cut where nobody speaks (or at `clip_timestamps`) and know
        nothing of each other, so that the text does not depend on their number; `initial_prompt` is that of
        each. When not given, each window begins where the text of the one before ends.
    channels : bool
        Transcribe each channel by itself; `Segment.channel` says whose a segment is, and segments come in the
        order of time. When not given, the channels are averaged.
    grammar : str, optional
        The text of each window is one of this grammar, in Lark's form or in GBNF: for commands. The text of a
        window is then one segment, as `without_timestamps` has it, and only `max_new_tokens` cuts it off; a
        window in which nobody speaks still has none.
    regex : str, optional
        The text of each window matches this expression as a whole, as of `grammar`.
    choice : sequence of str, optional
        The text of each window is one of these, as of `grammar`.
    seed : int
        The seed of the samples.
    """

    language: str | None = None
    task: str = "transcribe"
    beam_size: int = 5
    best_of: int = 5
    patience: float = 1.0
    length_penalty: float = 1.0
    repetition_penalty: float = 1.0
    no_repeat_ngram_size: int = 0
    temperature: float | Sequence[float] = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    compression_ratio_threshold: float | None = 2.4
    log_prob_threshold: float | None = -1.0
    no_speech_threshold: float | None = 0.6
    condition_on_previous_text: bool = True
    prompt_reset_on_temperature: float = 0.5
    initial_prompt: str | Sequence[int] | None = None
    prefix: str | None = None
    hotwords: str | None = None
    suppress_blank: bool = True
    suppress_tokens: Sequence[int] = (-1,)
    without_timestamps: bool = False
    max_initial_timestamp: float = 1.0
    max_new_tokens: int | None = None
    word_timestamps: bool = False
    prepend_punctuations: str = "\"'“¿([{-"
    append_punctuations: str = "\"'.。,，!！?？:：”)]}、"
    hallucination_silence_threshold: float | None = None
    language_detection_threshold: float = 0.5
    language_detection_segments: int = 1
    multilingual: bool = False
    vad_filter: bool = False
    vad_parameters: VadOptions | Mapping[str, Any] | None = None
    vad: str | os.PathLike[str] | None = None
    clip_timestamps: str | Sequence[float] = "0"
    batch_size: int | None = None
    channels: bool = False
    grammar: str | None = None
    regex: str | None = None
    choice: Sequence[str] | None = None
    seed: int = 0
    temperatures: tuple[float, ...] = field(init=False, repr=False)
    activity: VadOptions | None = field(init=False, repr=False)
    clips: tuple[tuple[float, float], ...] = field(init=False, repr=False)
    structure: Structure | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for name, limit in {**_NUMBERS, **_NUMBERS_OR_NONE}.items():
            value = getattr(self, name)
            if value is not None or name in _NUMBERS:
                self._set(name, limit.check(name, value))
        for name, (kind, expected) in _KINDS.items():
            if not isinstance(getattr(self, name), kind):
                found = f"found {getattr(self, name)!r:.80}, expected {expected}"
                raise InvalidArgumentError(f"{name}: {found}")
        one = isinstance(self.temperature, numbers.Real)
        given = _sequence("temperature", [self.temperature] if one else self.temperature, _TEMPERATURE)
        if not given:
            raise InvalidArgumentError(
                f"temperature: found {self.temperature!r:.80}, expected numbers of at least 0"
            )
        self._set("temperatures", given)
        suppressed = _sequence("suppress_tokens", self.suppress_tokens, _ID)
        if suppressed is None:
            raise InvalidArgumentError(
                f"suppress_tokens: found {self.suppress_tokens!r:.80}, expected a list of token ids, or []"
            )
        self._set("suppress_tokens", suppressed)
        if self.vad is not None:
            as_path("vad", self.vad)
        prompt = self.initial_prompt
        if not (prompt is None or isinstance(prompt, str)):
            ids = _sequence("initial_prompt", prompt, _ID)
            if ids is None:
                raise InvalidArgumentError(
                    f"initial_prompt: found {prompt!r:.80}, expected text or a list of token ids"
                )
            self._set("initial_prompt", ids)
        if self.hallucination_silence_threshold is not None and not self.word_timestamps:
            raise InvalidArgumentError("hallucination_silence_threshold: needs word_timestamps=True")
        self._set("activity", _activity(self.vad_parameters))
        self._set("clips", _clips(self.clip_timestamps))
        self._set("structure", structure_of({name: getattr(self, name) for name in CONSTRAINTS}))
        if self.structure is not None:
            self._set("without_timestamps", True)
            for name in ("prefix", "no_repeat_ngram_size"):
                if getattr(self, name):
                    raise InvalidArgumentError(
                        f"{name}: not with {self.structure.kind}, which says what is written"
                    )
        if self.batch_size is not None and self.clips and self.clips[-1][1] == math.inf:
            raise InvalidArgumentError(
                f"clip_timestamps: found {self.clip_timestamps!r}, but for windows side by side the last end "
                "is needed; it may be later than that of the recording"
            )

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)


def _sequence(name: str, given: object, limit: Limit) -> tuple[Any, ...] | None:
    """Check the numbers of a sequence; None where it is something else."""
    if not isinstance(given, Iterable) or isinstance(given, str | bytes | bytearray | memoryview):
        return None
    try:
        values = tuple(given)
    except TypeError:  # an array of no dimension
        return None
    return tuple(limit.check(name, value) for value in values)


def transcription_options(
    given: TranscriptionArguments, defaults: Mapping[str, Any] | None = None
) -> TranscriptionOptions:
    """The options of a call; `defaults` are those of the model, where it has others than Whisper's.

    Raises
    ------
    InvalidArgumentError
        One is unknown or out of range.
    """
    for name in given:
        if name not in TranscriptionArguments.__annotations__:
            close = difflib.get_close_matches(name, TranscriptionArguments.__annotations__, n=1)
            meant = f"; did you mean {close[0]}?" if close else ""
            raise InvalidArgumentError(f"{name}: no such option{meant}")
    return TranscriptionOptions(**{**(defaults or {}), **given})


def _activity(given: VadOptions | Mapping[str, Any] | None) -> VadOptions | None:
    if given is None or isinstance(given, VadOptions):
        return given
    if not isinstance(given, Mapping):
        raise InvalidArgumentError(f"vad_parameters: found {given!r}, expected VadOptions or a mapping")
    known = VadOptions.__dataclass_fields__
    for name in given:
        if name not in known:
            raise InvalidArgumentError(f"vad_parameters: no {name!r}; there is {', '.join(known)}")
    return VadOptions(**given)


def _clips(given: str | Sequence[float]) -> tuple[tuple[float, float], ...]:
    """Pairs of start and end; none when they are the whole recording."""
    parts: Sequence[Any] = [part for part in given.split(",") if part] if isinstance(given, str) else given
    try:
        times = [float(part) for part in parts]
    except (TypeError, ValueError, OverflowError):
        times = [math.nan]
    finite = all(map(math.isfinite, times))
    if len(times) % 2:
        times.append(math.inf)
    if times and not (finite and times[0] >= 0 and all(a <= b for a, b in itertools.pairwise(times))):
        raise InvalidArgumentError(
            f"clip_timestamps: found {given!r}, expected seconds in rising order: start, end, start, end, …"
        )
    times = [time if time == math.inf else min(time, _LONGEST) for time in times]
    pairs = tuple(zip(times[::2], times[1::2], strict=True))
    return () if pairs == ((0.0, math.inf),) else pairs


class TranscriptionArguments(TypedDict, total=False):
    """The fields of `TranscriptionOptions`, as keyword arguments."""

    language: str | None
    task: str
    beam_size: int
    best_of: int
    patience: float
    length_penalty: float
    repetition_penalty: float
    no_repeat_ngram_size: int
    temperature: float | Sequence[float]
    compression_ratio_threshold: float | None
    log_prob_threshold: float | None
    no_speech_threshold: float | None
    condition_on_previous_text: bool
    prompt_reset_on_temperature: float
    initial_prompt: str | Sequence[int] | None
    prefix: str | None
    hotwords: str | None
    suppress_blank: bool
    suppress_tokens: Sequence[int]
    without_timestamps: bool
    max_initial_timestamp: float
    max_new_tokens: int | None
    word_timestamps: bool
    prepend_punctuations: str
    append_punctuations: str
    hallucination_silence_threshold: float | None
    language_detection_threshold: float
    language_detection_segments: int
    multilingual: bool
    vad_filter: bool
    vad_parameters: VadOptions | Mapping[str, Any] | None
    vad: str | os.PathLike[str] | None
    clip_timestamps: str | Sequence[float]
    batch_size: int | None
    channels: bool
    grammar: str | None
    regex: str | None
    choice: Sequence[str] | None
    seed: int
