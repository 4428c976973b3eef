"""What a caller may choose of a transcription; names and defaults are faster-whisper's where it has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from akunu.errors import InvalidArgumentError

__all__ = ["TranscriptionOptions"]

_AT_LEAST: Final = {
    "beam_size": 1,
    "best_of": 1,
    "patience": 0.0,
    "repetition_penalty": 0.0,
    "no_repeat_ngram_size": 0,
    "prompt_reset_on_temperature": 0.0,
    "max_initial_timestamp": 0.0,
    "max_new_tokens": 1,
    "hallucination_silence_threshold": 0.0,
    "language_detection_segments": 1,
    "seed": 0,
}


@dataclass(frozen=True)
class TranscriptionOptions:
    """How a recording is transcribed.

    Attributes
    ----------
    language : str, optional
        A code or an English name; detected when not given.
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
        The text of a window is the prompt of the next one.
    prompt_reset_on_temperature : float
        Not after a window that needed a higher temperature.
    initial_prompt : str or sequence of int, optional
        The prompt of the first window.
    prefix : str, optional
        How the text of the first window begins.
    hotwords : str, optional
        Words that are in the prompt of every window.
    suppress_blank : bool
        The text of a window does not begin with a space alone, or with its end.
    suppress_tokens : sequence of int
        Ids that never come; -1 stands for the marks of sounds that are no speech.
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
    seed : int
        Of the samples.
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
    seed: int = 0
    temperatures: tuple[float, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for name, least in _AT_LEAST.items():
            value = getattr(self, name)
            if value is not None and not value >= least:
                raise InvalidArgumentError(f"{name} is {value!r}, expected at least {least}")
        given = (self.temperature,) if isinstance(self.temperature, int | float) else tuple(self.temperature)
        if not given or not all(t >= 0 for t in given):
            raise InvalidArgumentError(f"temperature is {self.temperature!r}, expected numbers of at least 0")
        object.__setattr__(self, "temperatures", given)
        if self.patience == 0 or self.repetition_penalty == 0:
            raise InvalidArgumentError("patience and repetition_penalty have to be above 0")
        if self.hallucination_silence_threshold is not None and not self.word_timestamps:
            raise InvalidArgumentError("hallucination_silence_threshold needs word_timestamps=True")
