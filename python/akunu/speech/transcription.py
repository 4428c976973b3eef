"""A recording into segments: the window moves as OpenAI's reference moves it, or many windows run at once."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from akunu.audio import FRAMES_PER_SECOND, SAMPLE_RATE, VadOptions
from akunu.audio.pcm import Samples
from akunu.base.errors import AudioError, InvalidArgumentError
from akunu.speech.batching import Batcher, Encode, Work
from akunu.speech.decoding import WindowText, decode_window, is_silent, language_probabilities
from akunu.speech.gate import SpeechGate, cut_at_silence
from akunu.speech.hearing import FRAMES_PER_POSITION, Hearing
from akunu.speech.model import Mel
from akunu.speech.options import TranscriptionOptions
from akunu.speech.prompts import window_prompt
from akunu.speech.rules import token_rules
from akunu.speech.segments import Draft, Segment, cut
from akunu.speech.tokenizer import WhisperTokenizer
from akunu.speech.windows import MelWindows
from akunu.speech.words import add_words, drop_made_up, last_word_end

__all__ = ["Transcriber"]

SAMPLES_PER_FRAME: Final = SAMPLE_RATE // FRAMES_PER_SECOND
LEFT_OUT: Final = 1.5
"""Seconds of speech that a text leaves out at the end of its window, from which on they are heard again."""
WAITING: Final = 4
"""Windows that are kept for their turn, for each that runs: a long text does not hold up the others."""


@dataclass(frozen=True)
class _Window:
    """One pass over a stretch of the recording; times in seconds."""

    mel: Mel
    frame: int
    frames: int  # of the recording
    first: bool = False
    alone: bool = False
    """Whether no other window follows that hears the rest again."""
    spoken: bool = False
    """Whether the window ends where speech does: what the model leaves out there is said all the same."""
    ahead: Sequence[Mel] = ()
    """Later windows in which the language may be detected."""

    @property
    def offset(self) -> float:
        return self.frame / FRAMES_PER_SECOND

    @property
    def duration(self) -> float:
        return self.frames / FRAMES_PER_SECOND

    @property
    def end(self) -> float:
        return self.offset + self.duration

    def rest(self, seconds: float) -> _Window:
        """Return the part that is later than `seconds` of the recording."""
        skipped = round(seconds * FRAMES_PER_SECOND) - self.frame
        mel = np.full_like(self.mel, self.mel.min())  # silence
        mel[:, : self.mel.shape[1] - skipped] = self.mel[:, skipped:]
        return replace(self, mel=mel, frame=self.frame + skipped, frames=self.frames - skipped, first=False)


@dataclass(frozen=True)
class _Heard:
    """The text of a window, and where the next one begins, in seconds."""

    text: WindowText
    drafts: list[Draft]
    forward: float
    rest: _Heard | None = None
    """The part after what the model took for the end of the window."""


def _lost(draft: Draft) -> bool:
    """Whether the text broke off: at the end of a window it says next to nothing for its time."""
    return draft.end - draft.start > max(LEFT_OUT, len(draft.tokens))


class Transcriber(Hearing[Segment, _Heard]):
    """One recording with one model: iterating gives the segments as they are found.

    Parameters
    ----------
    batcher : Batcher
        Runs the model.
    tokenizer : WhisperTokenizer
        The model's.
    blocks : iterable of ndarray
        Mono samples at 16 kHz.
    options : TranscriptionOptions
        What the caller chose.
    progress : callable, optional
        Called with the seconds that are done, after each window.

    Attributes
    ----------
    language : str or None
        The code of the language, once it is known.
    language_probability : float
        1 when it was given.
    """

    def __init__(
        self,
        batcher: Batcher,
        tokenizer: WhisperTokenizer,
        blocks: Iterable[Samples],
        options: TranscriptionOptions,
        progress: Callable[[float], None] | None = None,
    ) -> None:
        samples = options.best_of if max(options.temperatures) > 0 else 1
        for name, texts in (("beam_size", options.beam_size), ("best_of", samples)):
            if texts >= batcher.model.parallel:
                raise InvalidArgumentError(
                    f"{name}: {texts} texts side by side, expected at most {batcher.model.parallel - 1}"
                )
        sequences = 1 + max(options.beam_size, samples)
        super().__init__(batcher, tokenizer, options, sequences)
        token_rules(tokenizer, options)  # refused now, not after the first window
        self._blocks = self._counted(blocks)
        self._failed: AudioError | None = None
        self._last_speech = 0.0
        self._count = 0
        self._begun = False
        self._progress = progress
        self._gate: SpeechGate | None = None
        self.language_probability = 1.0

    @property
    def duration(self) -> float:
        """Seconds of the recording that have been read."""
        return self._samples / SAMPLE_RATE

    def _found(self) -> Iterator[Segment]:
        yield from self._heard()
        if self._failed is not None:
            raise self._failed

    def _heard(self) -> Iterator[Segment]:
        options = self._options
        if options.batch_size is not None:
            yield from self._side_by_side(options.batch_size)
            return
        blocks = self._blocks
        if (options.vad_filter or options.vad is not None) and not options.clips:
            self._gate = SpeechGate(blocks, options.activity or VadOptions(), self._detector)
            blocks = iter(self._gate)
        yield from self._one_by_one(MelWindows(blocks, self._model.config.mels))

    def _counted(self, blocks: Iterable[Samples]) -> Iterator[Samples]:
        """The blocks up to what is damaged: that is told when all that came before is text."""
        try:
            for block in blocks:
                self._samples += len(block)
                yield block
        except AudioError as error:
            self._failed = error

    # -- windows after each other ----------------------------------------------------------------------------

    def _one_by_one(self, windows: MelWindows) -> Iterator[Segment]:
        for start, end in self._options.clips or ((0.0, math.inf),):
            frame = round(start * FRAMES_PER_SECOND)
            last = None if end == math.inf else round(end * FRAMES_PER_SECOND)
            while last is None or frame < last:
                windows.forget(frame)
                mel, frames = windows.window(frame, self._frames, last)
                if not frames:
                    break
                ahead = list(self._ahead(windows, frame)) if self.language is None else ()
                window = _Window(mel, frame, frames, self._is_first(), ahead=ahead)
                length = windows.read / FRAMES_PER_SECOND if windows.ended else math.inf
                self._start(self._hear(window, length), 2 if window.ahead else 1)
                heard = self._next_heard()
                yield from self._segments(heard)
                self._remember(heard)
                frame = max(round(heard.forward * FRAMES_PER_SECOND), frame + 1)
                self._report(frame / FRAMES_PER_SECOND)

    def _is_first(self) -> bool:
        begun, self._begun = self._begun, True
        return not begun

    def _ahead(self, windows: MelWindows, frame: int) -> Iterator[Mel]:
        """The windows after this one in which the language is looked for, if need be."""
        for i in range(1, self._options.language_detection_segments):
            mel, frames = windows.window(frame + i * self._frames, self._frames)
            if not frames:
                return
            yield mel

    def _remember(self, heard: _Heard) -> None:
        """Make the text of a window a prompt, or begin anew after one that was hard to find."""
        options = self._options
        last = last_word_end(heard.drafts)
        self._last_speech = self._last_speech if last is None else last
        self._context += [token for draft in heard.drafts for token in draft.tokens]
        self._context = self._context[-self._model.config.text_context :]
        hard = heard.text.temperature > options.prompt_reset_on_temperature
        if heard.text.tokens and (hard or not options.condition_on_previous_text):
            self._context = []

    # -- windows side by side --------------------------------------------------------------------------------

    def _side_by_side(self, most: int) -> Iterator[Segment]:
        """Windows that end in silence and know nothing of each other; their segments in order."""
        windows = self._cut_windows()
        tasks = self._tasks
        more = True

        def wanted() -> bool:
            """Whether there is room for another window; the first one finds the language."""
            alone = self.language is None and bool(tasks)
            running = sum(not task.done for task in tasks)
            return more and not alone and running < most and len(tasks) < WAITING * most

        while more or tasks:
            while wanted():
                window = next(windows, None)
                if window is None:
                    more = False
                    break
                self._start(self._hear(window, math.inf))
            if tasks:
                self._batcher.wait(lambda: tasks[0].done or wanted())
                if tasks[0].done:
                    heard = self._next_heard()
                    yield from self._segments(heard)
                    self._report(heard.forward)

    def _cut_windows(self) -> Iterator[_Window]:
        """Windows between silences, or those of the clips that the caller named."""
        judged, heard = itertools.tee(self._blocks)
        windows = MelWindows(heard, self._model.config.mels)
        seconds = self._frames / FRAMES_PER_SECOND
        cuts = cut_at_silence(judged, self._options.activity, seconds, self._detector)
        for first, end in self._given_clips() if self._options.clips else cuts:
            frame = first // SAMPLES_PER_FRAME
            windows.forget(frame)
            if windows.ended and windows.read <= frame:
                return
            if first < end:
                mel, frames = windows.window(frame, self._frames, -(-end // SAMPLES_PER_FRAME))
                if frames:
                    spoken = not self._options.clips
                    yield _Window(mel, frame, frames, self._is_first(), alone=True, spoken=spoken)

    def _given_clips(self) -> Iterator[tuple[int, int]]:
        """The caller's, in samples, cut to windows; they may go on after the end of the recording."""
        longest = self._frames * SAMPLES_PER_FRAME
        for start, end in self._options.clips:
            first, last = round(start * SAMPLE_RATE), round(end * SAMPLE_RATE)
            for at in range(first, last, longest):
                yield at, min(at + longest, last)

    # -- one window ------------------------------------------------------------------------------------------

    def _hear(self, window: _Window, length: float) -> Work[_Heard]:
        """Decode a window; `length` is that of the recording in seconds, where it is known."""
        heard = yield from self._hear_once(window, length)
        if not (window.spoken and heard.drafts):
            return heard
        drafts = heard.drafts
        if len(drafts) > 1 and _lost(drafts[-1]):
            heard = replace(heard, drafts=drafts[:-1])
            last = drafts[-1].start
        else:
            last = max(draft.end for draft in drafts)
        if window.end - last < LEFT_OUT:
            return heard
        rest = yield from self._hear(window.rest(last), length)
        return replace(heard, rest=rest)

    def _hear_once(self, window: _Window, length: float) -> Work[_Heard]:
        states = yield Encode(window.mel)
        try:
            if self.language is None or (self._options.multilingual and self._tokenizer.multilingual):
                yield from self._detect(states, window.ahead)
            language = self.language
            start = self._tokenizer.start_sequence(language, self._options.task)
            prompt, begun = self._prompt(start, first=window.first)
            text = yield from decode_window(
                self._model, states, self._tokenizer, prompt, self._options,
                seed=(window.frame,), begun=begun,
            )  # fmt: skip
            if is_silent(text, self._options):
                return _Heard(text, [], window.end)
            drafts, forward = yield from self._drafts(window, states, language, text, length)
        finally:
            self._model.release(states)
        drafts = [draft for draft in drafts if draft.start < draft.end and self._says(draft)]
        return _Heard(text, drafts, forward)

    def _detect(self, states: Any, ahead: Sequence[Mel]) -> Work[None]:
        """The language of the first windows, by the first that is sure, or by their vote."""
        votes: Counter[str] = Counter()
        best: dict[str, float] = {}
        for i in range(1 + len(ahead)):
            if i:
                other = yield Encode(ahead[i - 1])
                try:
                    found = yield from language_probabilities(self._model, other, self._tokenizer)
                finally:
                    self._model.release(other)
            else:
                found = yield from language_probabilities(self._model, states, self._tokenizer)
            code, probability = found[0]
            votes[code] += 1
            best[code] = max(probability, best.get(code, 0.0))
            if probability > self._options.language_detection_threshold:
                votes = Counter([code])
                break
        self.language = votes.most_common(1)[0][0]
        self.language_probability = best[self.language]

    def _prompt(self, start: Sequence[int], *, first: bool) -> tuple[list[int], list[int]]:
        """Return what comes before a window's text, and how it begins."""
        options, tokenizer = self._options, self._tokenizer
        room = self._model.config.text_context // 2 - 1
        prefix = (options.prefix or "").strip()
        begun = tokenizer.encode(" " + prefix)[:room] if prefix and first else []
        prompt = window_prompt(tokenizer, options, start, self._context, room - len(begun))
        if begun and not options.without_timestamps:
            begun = [tokenizer.special.timestamp_begin, *begun]
        return prompt, begun

    def _says(self, draft: Draft) -> bool:
        return bool(self._tokenizer.decode(draft.tokens).strip())

    def _drafts(
        self, window: _Window, states: Any, language: str | None, text: WindowText, length: float
    ) -> Work[tuple[list[Draft], float]]:
        """The segments of a window, and where the next one begins, in seconds."""
        options = self._options
        drafts, advance = cut(
            text.tokens, self._tokenizer, window.offset, window.duration, whole=window.alone
        )
        forward = window.offset + advance
        if not options.word_timestamps:
            return drafts, forward
        last_speech = window.offset if window.alone else self._last_speech
        yield from add_words(
            states,
            self._tokenizer,
            self._tokenizer.start_sequence(language, options.task),
            drafts,
            options,
            offset=window.offset,
            positions=max(window.frames // FRAMES_PER_POSITION, 1),
            language=language,
            last_speech=last_speech,
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
                duration=length,
                last_speech=last_speech,
            )
            forward = forward if again is None else again
        return drafts, forward

    # -- the results -----------------------------------------------------------------------------------------

    def _segments(self, heard: _Heard | None) -> Iterator[Segment]:
        while heard is not None:
            for draft in heard.drafts:
                segment = draft.segment(self._count, heard.text, self._tokenizer)
                self._count += 1
                yield segment if self._gate is None else self._gate.restored(segment)
            heard = heard.rest

    def _report(self, seconds: float) -> None:
        if self._progress is not None:
            self._progress(seconds if self._gate is None else self._gate.original(seconds, end=True))
