"""A recording into segments: the window moves as OpenAI's reference moves it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from akunu.audio import FRAMES_PER_SECOND
from akunu.audio.pcm import Samples
from akunu.speech.decoding import WindowText, decode_window, language_probabilities
from akunu.speech.languages import language_code
from akunu.speech.model import SpeechModel
from akunu.speech.options import TranscriptionOptions
from akunu.speech.segments import Draft, Segment, cut
from akunu.speech.tokenizer import WhisperTokenizer
from akunu.speech.windows import MelWindows
from akunu.speech.words import add_words, drop_made_up, last_word_end

__all__ = ["Transcriber"]

FRAMES_PER_POSITION: Final = 2


@dataclass
class _Window:
    """One pass over a stretch of the recording; times in seconds."""

    states: Any
    frame: int
    frames: int  # of the recording

    @property
    def offset(self) -> float:
        return self.frame / FRAMES_PER_SECOND

    @property
    def duration(self) -> float:
        return self.frames / FRAMES_PER_SECOND

    @property
    def end(self) -> float:
        return self.offset + self.duration


class Transcriber:
    """One recording with one model: iterating gives the segments as they are found.

    Parameters
    ----------
    model : SpeechModel
        The model.
    tokenizer : WhisperTokenizer
        The model's.
    blocks : iterable of ndarray
        Mono samples at 16 kHz.
    options : TranscriptionOptions
        What the caller chose.

    Attributes
    ----------
    language : str or None
        The code of the language, once it is known.
    language_probability : float
        1 when it was given.
    """

    def __init__(
        self,
        model: SpeechModel,
        tokenizer: WhisperTokenizer,
        blocks: Iterable[Samples],
        options: TranscriptionOptions,
    ) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._options = options
        self._windows = MelWindows(blocks, model.config.mels)
        self._frames = model.config.audio_context * FRAMES_PER_POSITION
        self._context: list[int] = []  # the text so far that may be a prompt
        self._last_speech = 0.0
        self._count = 0
        self._begun = False
        self.language = None if options.language is None else language_code(options.language)
        self.language_probability = 1.0
        if not tokenizer.multilingual:
            self.language = self.language or "en"
        if self.language is not None:  # refused now, not after the first window
            tokenizer.start_sequence(self.language, options.task)
        if isinstance(options.initial_prompt, str):
            self._context = tokenizer.encode(" " + options.initial_prompt.strip())
        elif options.initial_prompt is not None:
            self._context = list(options.initial_prompt)

    def __iter__(self) -> Iterator[Segment]:
        frame = 0
        while True:
            self._windows.forget(frame)
            mel, frames = self._windows.window(frame, self._frames)
            if not frames:
                return
            window = _Window(self._model.encode(mel), frame, frames)
            if self.language is None:
                self._detect(window)
            text = self._decode(window)
            forward = window.end
            if not self._silent(text):
                drafts, forward = self._drafts(window, text)
                drafts = [draft for draft in drafts if draft.start < draft.end and self._says(draft)]
                for draft in drafts:
                    yield draft.segment(self._count, text, self._tokenizer)
                    self._count += 1
                self._remember(drafts, text)
            frame = max(round(forward * FRAMES_PER_SECOND), frame + 1)

    def _detect(self, window: _Window) -> None:
        """The language of the first windows, by the first that is sure, or by their vote."""
        votes: Counter[str] = Counter()
        best: dict[str, float] = {}
        for i in range(self._options.language_detection_segments):
            states = window.states
            if i:
                mel, frames = self._windows.window(window.frame + i * self._frames, self._frames)
                if not frames:
                    break
                states = self._model.encode(mel)
            code, probability = language_probabilities(self._model, states, self._tokenizer)[0]
            votes[code] += 1
            best[code] = max(probability, best.get(code, 0.0))
            if probability > self._options.language_detection_threshold:
                votes = Counter([code])
                break
        self.language = votes.most_common(1)[0][0]
        self.language_probability = best[self.language]

    def _start(self) -> tuple[int, ...]:
        return self._tokenizer.start_sequence(self.language, self._options.task)

    def _prompt(self) -> list[int]:
        """What comes before a window's text: hot words, earlier text, the start, the given beginning."""
        options, special, encode = self._options, self._tokenizer.special, self._tokenizer.encode
        room = self._model.config.text_context // 2 - 1
        prefix = encode(" " + options.prefix.strip())[:room] if options.prefix and not self._begun else []
        room -= len(prefix)
        before = encode(" " + options.hotwords.strip())[:room] if options.hotwords else []
        room -= len(before)
        before += self._context[max(len(self._context) - room, 0) :]
        prompt = [special.start_of_previous, *before] if before else []
        prompt += self._start()
        if options.without_timestamps:
            prompt.append(special.no_timestamps)
        elif prefix:
            prompt.append(special.timestamp_begin)
        return prompt + prefix

    def _decode(self, window: _Window) -> WindowText:
        prompt = self._prompt()
        self._begun = True
        return decode_window(
            self._model, window.states, self._tokenizer, prompt, self._options, seed=(window.frame,)
        )

    def _silent(self, text: WindowText) -> bool:
        options = self._options
        if options.no_speech_threshold is None or text.no_speech_prob <= options.no_speech_threshold:
            return False
        return options.log_prob_threshold is None or text.avg_logprob <= options.log_prob_threshold

    def _says(self, draft: Draft) -> bool:
        return bool(self._tokenizer.decode(draft.tokens).strip())

    def _drafts(self, window: _Window, text: WindowText) -> tuple[list[Draft], float]:
        """The segments of a window, and where the next one begins, in seconds."""
        options = self._options
        drafts, advance = cut(text.tokens, self._tokenizer, window.offset, window.duration)
        forward = window.offset + advance
        if not options.word_timestamps:
            return drafts, forward
        add_words(
            self._model,
            window.states,
            self._tokenizer,
            self._start(),
            drafts,
            options,
            offset=window.offset,
            positions=max(window.frames // FRAMES_PER_POSITION, 1),
            language=self.language,
            last_speech=self._last_speech,
        )
        last = last_word_end(drafts)
        threshold = options.hallucination_silence_threshold
        if advance < window.duration and last is not None and last > window.offset:
            # What was cut off is heard again from the last word on, unless too little is left to hold speech.
            silent_rest = threshold is not None and window.end - last <= threshold
            forward = window.end if silent_rest else last
        if threshold is not None:
            again = drop_made_up(
                drafts,
                threshold,
                offset=window.offset,
                window_end=window.end,
                duration=self._windows.read / FRAMES_PER_SECOND if self._windows.ended else float("inf"),
                last_speech=self._last_speech,
            )
            forward = forward if again is None else again
        last = last_word_end(drafts)
        self._last_speech = self._last_speech if last is None else last
        return drafts, forward

    def _remember(self, drafts: list[Draft], text: WindowText) -> None:
        """Make the text of a window a prompt, or begin anew after one that was hard to find."""
        options = self._options
        self._context += [token for draft in drafts for token in draft.tokens]
        self._context = self._context[-self._model.config.text_context :]
        if not options.condition_on_previous_text or text.temperature > options.prompt_reset_on_temperature:
            self._context = []
