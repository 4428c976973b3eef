"""Transcribe speech while it is said: text that stays, and a guess at the rest.

Whenever there is more sound, the model hears again what is not settled yet. What two hearings in a row agree
on, word for word, is committed (LocalAgreement-2; Liu et al., 2020; Macháček et al., 2023): the next one has
to begin with it. A second of silence commits all that was said before it. Sound whose words are committed is
forgotten, and its text becomes the prompt.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from akunu.audio import FRAMES_PER_SECOND, SAMPLE_RATE, SpeechSpan, VadOptions, log_mel, speech_spans
from akunu.audio.pcm import Samples
from akunu.speech.alignment import POSITIONS_PER_SECOND, TimedWord, align_words
from akunu.speech.batching import Batcher, Encode, Work
from akunu.speech.decoding import decode_window, is_silent, language_probabilities
from akunu.speech.hearing import Hearing
from akunu.speech.options import TranscriptionOptions
from akunu.speech.prompts import window_prompt
from akunu.speech.tokenizer import WhisperTokenizer

__all__ = ["Listener", "LiveText"]

SILENCE: Final = 1.0
"""Seconds of it that end what was said."""
FORGET_AFTER: Final = 15.0
"""Seconds of sound from which on its beginning is forgotten, once its words are committed."""
KEPT: Final = 0.5
"""Seconds of silence before what may begin."""
AT_ONCE: Final = 5.0
"""Seconds of sound that are heard at once where much has come."""
VAD: Final = VadOptions(min_silence_duration_ms=500, speech_pad_ms=200)


@dataclass(frozen=True)
class LiveText:
    """The text after the last piece of sound.

    Attributes
    ----------
    committed : str
        New text that no later sound changes; all of it in a row is the transcript.
    tentative : str
        What may follow it, as of now; the next one replaces it.
    seconds : float
        The seconds of sound that have been heard.
    """

    committed: str
    tentative: str
    seconds: float


@dataclass(frozen=True)
class _Heard:
    tokens: list[int]  # of the window, from the committed ones on
    words: list[TimedWord]
    language: str


class Listener(Hearing[LiveText, _Heard]):
    """One live recording with one model: iterating gives texts while the sound comes.

    Parameters
    ----------
    batcher : Batcher
        Runs the model.
    tokenizer : WhisperTokenizer
        The model's.
    blocks : iterable of ndarray
        Mono samples at 16 kHz, as they are recorded.
    options : TranscriptionOptions
        What the caller chose.
    step : float
        Least seconds of new sound between two hearings.
    """

    def __init__(
        self,
        batcher: Batcher,
        tokenizer: WhisperTokenizer,
        blocks: Iterable[Samples],
        options: TranscriptionOptions,
        step: float,
    ) -> None:
        super().__init__(
            batcher,
            tokenizer,
            dataclasses.replace(options, without_timestamps=False),
            1 + max(options.beam_size, options.best_of),
        )
        self._blocks = blocks
        self._step = round(step * SAMPLE_RATE)
        self._longest = self._frames * SAMPLE_RATE // FRAMES_PER_SECOND
        self._sound = np.zeros(0, np.float32)  # that is not settled
        self._held: list[int] = []  # committed tokens of `sound`, timestamps included
        self._guess: list[int] = []  # what the last hearing had after them, text alone

    def _found(self) -> Iterator[LiveText]:
        new = 0
        for block in self._blocks:
            for start in range(0, len(block), round(AT_ONCE * SAMPLE_RATE)):
                piece = block[start : start + round(AT_ONCE * SAMPLE_RATE)]
                self._sound = np.concatenate([self._sound, piece])
                self._samples += len(piece)
                new += len(piece)
                if new >= self._step:
                    new = 0
                    yield self._heard_so_far()
        yield self._settled()

    def _heard_so_far(self) -> LiveText:
        spans = list(self._spans())
        spoken = bool(self._held or self._guess)
        if not spans and not spoken:
            self._forget(max(len(self._sound) - round(KEPT * SAMPLE_RATE), 0), [])
            return self._text([])
        last = spans[-1].end if spans else 0
        quiet = len(self._sound) - last >= SILENCE * SAMPLE_RATE
        full = len(self._sound) + round(AT_ONCE * SAMPLE_RATE) > self._longest
        if quiet or full:
            return self._settled()
        heard = self._hear(aligned=len(self._sound) > FORGET_AFTER * SAMPLE_RATE)
        new = self._commit(heard, self._agreed(heard))
        if heard.words:
            self._forget_settled(heard.words)
        return self._text(new)

    def _settled(self) -> LiveText:
        """All that was said is committed, and its sound forgotten."""
        new: list[int] = []
        if len(self._sound) >= SAMPLE_RATE // FRAMES_PER_SECOND and (
            self._held or self._guess or any(self._spans())
        ):
            heard = self._hear(aligned=False)
            new = self._commit(heard, len(self._texts_of(heard.tokens)))
        self._guess = []
        self._forget(len(self._sound), [])
        return self._text(new)

    def _spans(self) -> Iterator[SpeechSpan]:
        return speech_spans([self._sound], self._options.activity or VAD, self._detector)

    def _text(self, new: Sequence[int]) -> LiveText:
        decode = self._tokenizer.decode
        return LiveText(decode(new), decode(self._guess), self._samples / SAMPLE_RATE)

    def _texts_of(self, tokens: Sequence[int]) -> list[int]:
        return [token for token in tokens if token < self._tokenizer.special.end]

    def _agreed(self, heard: _Heard) -> int:
        """Text tokens of whole words that this hearing and the last one have in common."""
        new = self._texts_of(heard.tokens)
        same = len(
            list(itertools.takewhile(lambda pair: pair[0] == pair[1], zip(self._guess, new, strict=False)))
        )
        count = 0
        for _, ids in self._tokenizer.words(new, heard.language):
            # The last word of all may go on.
            if count + len(ids) > same or count + len(ids) == len(new):
                break
            count += len(ids)
        return count

    def _commit(self, heard: _Heard, count: int) -> list[int]:
        """Settle the first `count` text tokens of a hearing; these tokens."""
        text = self._texts_of(heard.tokens)
        self._guess = text[count:]
        if count:
            places = [i for i, token in enumerate(heard.tokens) if token < self._tokenizer.special.end]
            self._held += heard.tokens[: places[count - 1] + 1]
            self.language = heard.language
        return text[:count]

    def _forget_settled(self, words: Sequence[TimedWord]) -> None:
        """Forget the sound of committed words, but for the last ones."""
        held = self._texts_of(self._held)
        count, cut, at = 0, 0, 0.0
        limit = len(self._sound) / SAMPLE_RATE - AT_ONCE
        for word in words:
            count += len(word.tokens)
            if count > len(held) or word.end > limit:
                break
            cut, at = count, word.end
        if cut:
            self._forget(round(at * SAMPLE_RATE), held[cut:])

    def _forget(self, samples: int, kept: list[int]) -> None:
        """Forget the first samples; `kept` of the committed text is in the rest."""
        held = self._texts_of(self._held)
        self._context += held[: len(held) - len(kept)]
        self._context = self._context[-self._model.config.text_context :]
        self._held = [self._tokenizer.special.timestamp_begin, *kept] if kept else []
        self._sound = self._sound[samples:]

    def _hear(self, *, aligned: bool) -> _Heard:
        mel = log_mel(self._sound, self._model.config.mels, padding=max(self._longest - len(self._sound), 0))
        self._start(self._window(mel[:, : self._frames], aligned))
        return self._next_heard()

    def _window(self, mel: Any, aligned: bool) -> Work[_Heard]:
        states = yield Encode(mel)
        try:
            language = self.language  # not settled before the first words are
            if language is None:
                found = yield from language_probabilities(self._model, states, self._tokenizer)
                language = found[0][0]
            start = self._tokenizer.start_sequence(language, self._options.task)
            room = self._model.config.text_context // 2 - 1 - len(self._held)
            prompt = window_prompt(self._tokenizer, self._options, start, self._context, max(room, 0))
            text = yield from decode_window(
                self._model, states, self._tokenizer, prompt, self._options,
                seed=(self._samples,), begun=self._held,
            )  # fmt: skip
            if is_silent(text, self._options):
                return _Heard([], [], language)
            words: list[TimedWord] = []
            if aligned:
                positions = max(len(self._sound) * POSITIONS_PER_SECOND // SAMPLE_RATE, 1)
                said = self._tokenizer.words(self._texts_of(text.tokens), language)
                words = yield from align_words(states, self._tokenizer, start, said, positions)
            return _Heard(text.tokens[len(self._held) :], words, language)
        finally:
            self._model.release(states)
