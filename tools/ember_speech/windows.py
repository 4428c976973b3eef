"""Windows of 30 seconds from clips: what is heard where, and what the decoder is to say.

A window is a plan: which samples go where, the tokens with what follows each of them, when that is heard, and
the phonemes. The samples themselves stay where the training keeps them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import numpy as np
from numpy.typing import NDArray

from tools.ember_speech.synthesis import FRAME, UNKNOWN, Clip
from tools.ember_speech.tokens import Vocabulary
from tools.ember_speech.voices import SAMPLE_RATE

SECONDS = 30
SAMPLES = SECONDS * SAMPLE_RATE
POSITIONS = SAMPLES // FRAME
CONTEXT = 448  # of the decoder
MOST_TOKENS = CONTEXT // 2 - 4  # of a window's text
IGNORED = -1


@dataclass
class Placed:
    """`count` samples of the pool from `begin` on, at `at` of the window, `gain` times as loud."""

    begin: int
    at: int
    count: int
    gain: float


@dataclass
class Window:
    """`inputs` and what follows each (`targets`, IGNORED where nothing is learned), when that is heard
    (`spans`, in positions; empty where that is not known), the phonemes by position, and the recording's
    samples. What is heard `backwards` is no speech."""

    placed: list[Placed] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    targets: list[int] = field(default_factory=list)
    spans: list[tuple[int, int]] = field(default_factory=list)
    phonemes: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(POSITIONS, np.uint8))
    recorded: int = SAMPLES
    backwards: bool = False

    def say(self, token: int, span: tuple[int, int] = (0, 0), learned: bool = True) -> None:
        """The next token, which follows the one before."""
        if self.inputs:
            self.targets.append(token if learned else IGNORED)
            self.spans.append(span if learned else (0, 0))
        self.inputs.append(token)

    def finish(self) -> None:
        """The last token is followed by nothing."""
        self.inputs.pop()


@dataclass
class _Heard:
    """A clip in a window: words `first` to before `last`, `at` samples later; whether its end is heard."""

    clip: Clip
    at: int
    first: int
    last: int
    complete: bool


class Composer:
    """Draws windows from sessions of clips.

    Parameters
    ----------
    vocabulary : Vocabulary
        Of the tokens.
    sessions : list of lists of Clip
        Each voice's clips; may grow.
    rng : Random
        What is drawn.
    """

    def __init__(self, vocabulary: Vocabulary, sessions: list[list[Clip]], rng: Random) -> None:
        self._vocabulary = vocabulary
        self._sessions = sessions
        self._rng = rng
        self._session: list[Clip] = []

    def window(self, kind: str | None = None, timestamps: bool | None = None) -> Window:
        """A window: ``silent``, ``short`` (a recording that ends within it), ``full``, ``sparse`` (with long
        pauses), or ``whole``: full, with no sentence cut and nothing before the text, for the evaluation."""
        rng = self._rng
        kind = kind or rng.choices(("silent", "short", "sparse", "full"), (0.16, 0.26, 0.1, 0.48))[0]
        stamped = rng.random() < 0.75 if timestamps is None else timestamps
        window = Window()
        if kind == "silent":
            return self._silent(window, stamped)
        heard = self._place(window, kind)
        if not heard:
            return self._silent(window, stamped)
        if kind != "whole":
            self._prompt(window, heard, stamped)
        else:
            window.say(self._vocabulary.start)
        self._text(window, heard, stamped)
        return window

    def _silent(self, window: Window, stamped: bool) -> Window:
        """Nothing is said: at the start that is known, and so it is where a text was begun all the same.

        Speech that is heard backwards is one in eight.
        """
        v, rng = self._vocabulary, self._rng
        if self._sessions and rng.random() < 0.12:
            self._place(window, "full")
            window.phonemes[:] = UNKNOWN
            window.backwards = True
        window.recorded = SAMPLES if rng.random() < 0.7 else rng.randrange(FRAME, SAMPLES)
        if self._sessions:
            self._prompt(window, [], stamped)
        else:
            window.say(v.start)
        window.say(v.no_speech)
        window.inputs[-1] = v.zero + rng.choice((0, 0, rng.randrange(50))) if stamped else v.no_timestamps
        window.say(v.end)
        window.finish()
        return window

    def _place(self, window: Window, kind: str) -> list[_Heard]:
        rng = self._rng
        self._session = rng.choice(self._sessions)
        clips = list(self._session)
        if rng.random() < 0.15:
            clips += rng.choice(self._sessions)
        rng.shuffle(clips)
        loudness = 10 ** rng.uniform(-1.3, 0.3)
        most = rng.choice((1, 1, 1, 2, 2, 3, 4, 6)) if kind == "short" else len(clips)
        leads = (rng.uniform(0, 1), rng.uniform(0, 0.1), rng.uniform(1, 8), rng.uniform(1, 16))
        shares = {"whole": (6, 3, 0, 0), "sparse": (2, 1, 1, 3)}.get(kind, (6, 3, 1, 0))
        at = self._snap(rng.choices(leads, shares)[0])
        heard: list[_Heard] = []
        tokens = 0
        for number, clip in enumerate(clips[:most]):
            tokens += len(clip.tokens) + 2
            if (
                at > SAMPLES - FRAME * 5
                or tokens > MOST_TOKENS
                or (kind == "whole" and at + clip.count > SAMPLES)
            ):
                break
            first, last, skipped = 0, len(clip.words), 0
            end = clip.count
            if number == 0 and kind == "full" and rng.random() < 0.1 and last > 3:
                first = rng.randrange(1, last - 1)
                skipped = int(clip.word_spans[first][0]) // FRAME * FRAME
                at = 0
            if kind == "short" and number == most - 1 and rng.random() < 0.25 and last - first > 2:
                last = rng.randrange(first + 1, last)
                end = min(int(clip.word_spans[last - 1][1]) + rng.randrange(FRAME // 2), clip.count)
            count = min(end - skipped, SAMPLES - at)
            window.placed.append(
                Placed(clip.begin + skipped, at, count, loudness * 10 ** rng.uniform(-0.12, 0.12))
            )
            frames = clip.phonemes[skipped // FRAME : (skipped + count) // FRAME]
            window.phonemes[at // FRAME : at // FRAME + len(frames)] = frames
            heard.append(_Heard(clip, at - skipped, first, last, at + end - skipped <= SAMPLES))
            pause = rng.uniform(2, 12) if kind == "sparse" and rng.random() < 0.6 else self._pause()
            at = self._snap((at + count) / SAMPLE_RATE + pause)
        if heard and kind == "short" and rng.random() < 0.7:
            last_end = window.placed[-1].at + window.placed[-1].count
            window.recorded = min(SAMPLES, last_end + round(rng.choice((0, 0.1, 0.5, 2, 4)) * SAMPLE_RATE))
        return heard

    def _pause(self) -> float:
        """Seconds between two sentences."""
        rng = self._rng
        return rng.choices((rng.uniform(0.08, 0.4), rng.uniform(0.3, 1.5), rng.uniform(1.5, 7)), (4, 5, 1))[0]

    def _snap(self, seconds: float) -> int:
        """A border of a position, in samples."""
        return round(seconds * SAMPLE_RATE / FRAME) * FRAME

    def _prompt(self, window: Window, heard: list[_Heard], stamped: bool) -> None:
        """In half of the windows a text that came before.

        That is one of earlier windows as the decoder gives it, with their timestamps, or as people give one;
        words that are going to be heard; and all that, damaged.
        """
        v, rng = self._vocabulary, self._rng
        if rng.random() < 0.52:
            given: list[int] = []
            if rng.random() < 0.85:
                session = self._session if heard and rng.random() < 0.85 else rng.choice(self._sessions)
                clips = rng.sample(session, rng.randrange(1, min(len(session), 14)))
                given = self._earlier(clips, rng.random() < (0.85 if stamped else 0.15))
            if heard and rng.random() < 0.15:
                given = [*self._expected(heard), *given]
            if heard and heard[0].first and rng.random() < 0.8:
                given += self._broken_off(heard[0], stamped)
            elif heard and rng.random() < 0.04:  # said again
                given += self._earlier([heard[0].clip], stamped)
            if rng.random() < 0.12:
                given = self._damaged(given)
            room = CONTEXT // 2 - 1 if rng.random() < 0.9 else rng.randrange(1, CONTEXT // 2)
            if given:
                window.inputs = [v.before, *given[-room:]]
                window.targets = [IGNORED] * (len(window.inputs) - 1)
                window.spans = [(0, 0)] * len(window.targets)
        window.say(v.start, learned=False)

    def _earlier(self, clips: list[Clip], stamped: bool) -> list[int]:
        """The text of these sentences, each between its timestamps in windows one after the other."""
        if not stamped:
            return [i for clip in clips for i in clip.tokens.tolist()]
        v, rng = self._vocabulary, self._rng
        given, at = list[int](), rng.uniform(0, 1)
        for clip in clips:
            first, last = (float(clip.word_spans[i][j]) / SAMPLE_RATE for i, j in ((0, 0), (-1, 1)))
            if at + last > SECONDS:
                at = 0.0  # it is heard again from its beginning
            begin, end = (v.zero + min(round((at + t) * 50), SECONDS * 50) for t in (first, last))
            given += [begin, *clip.tokens.tolist(), end]
            at += clip.count / SAMPLE_RATE + self._pause()
            if at > SECONDS:
                at = rng.uniform(0, 1)
        return given

    def _expected(self, heard: list[_Heard]) -> list[int]:
        """Some words that are heard, the rare ones first, among a few that are not."""
        rng, found = self._rng, []
        for clip in (*(part.clip for part in heard), rng.choice(rng.choice(self._sessions))):
            borders = np.cumsum(clip.words)
            words = [clip.tokens[b - n : b].tolist() for b, n in zip(borders, clip.words, strict=True)]
            found += sorted(words, key=len, reverse=True)[: rng.randrange(1, 4)]
        rng.shuffle(found)
        return [i for word in found[:10] for i in word]

    def _broken_off(self, part: _Heard, stamped: bool) -> list[int]:
        """The words of a sentence that were heard in the window before."""
        v, rng = self._vocabulary, self._rng
        said = part.clip.tokens[: int(part.clip.words[: part.first].sum())].tolist()
        return [v.zero + rng.randrange(SECONDS * 40, SECONDS * 50), *said] if stamped else said

    def _damaged(self, given: list[int]) -> list[int]:
        """With words left out, a part said again and again, or other timestamps."""
        v, rng = self._vocabulary, self._rng
        kind = rng.randrange(3)
        if kind == 0:
            return [i for i in given if rng.random() < 0.8]
        if kind == 1 and given:
            begin = rng.randrange(len(given))
            part = given[begin : begin + rng.randrange(1, 12)]
            return given[: begin + len(part)] + part * rng.randrange(1, 12)
        return [v.zero + rng.randrange(SECONDS * 50 + 1) if i >= v.zero else i for i in given]

    def _text(self, window: Window, heard: list[_Heard], stamped: bool) -> None:
        v, after = self._vocabulary, SAMPLES
        if not stamped:
            window.say(v.no_timestamps, learned=False)
        said = self._said(heard, stamped)
        for number, (part, last) in enumerate(said):
            spans = part.clip.word_spans + part.at
            if stamped:
                self._stamp(window, max(0, int(spans[part.first][0])))
                if number == 0 and window.inputs[-1] > v.zero + 50 and self._rng.random() < 0.7:
                    window.inputs[-1] = v.zero + self._rng.randrange(51)  # decoders choose none later
            if last == part.first:
                break  # heard again in the next window
            following, _ = said[number + 1] if number + 1 < len(said) else (part, 0)
            after = following.at + int(following.clip.word_spans[following.first][0])
            end = int(spans[last - 1][1])
            after = after if after > end else end + FRAME * 20
            borders = np.cumsum(part.clip.words) - part.clip.words
            for word in range(part.first, last):
                ids = part.clip.tokens[borders[word] : borders[word] + part.clip.words[word]].tolist()
                self._word(window, ids, spans[word], int(spans[word + 1][0]) if word + 1 < last else after)
            if stamped:
                self._stamp(window, min(end, SAMPLES))
        rest = min(round(after / FRAME), POSITIONS)
        window.say(v.end, (rest, min(rest + 50, POSITIONS)))
        window.finish()

    def _said(self, heard: list[_Heard], stamped: bool) -> list[tuple[_Heard, int]]:
        """The clips with the word before which each ends; no word of one that is only to be opened."""
        said = []
        for part in heard:
            last = part.last
            if not part.complete:
                last = sum(part.at + int(end) <= SAMPLES for _, end in part.clip.word_spans[:last])
                if stamped and len(heard) > 1:
                    last = part.first
                elif last <= part.first:
                    break
            said.append((part, last))
        return said

    def _stamp(self, window: Window, sample: int) -> None:
        position = round(sample / FRAME)
        window.say(self._vocabulary.zero + position, (max(position - 1, 0), min(position + 1, POSITIONS)))

    def _word(self, window: Window, ids: list[int], span: NDArray[np.int64], after: int) -> None:
        """A word's time is shared among its tokens by their letters; marks have the pause until `after`."""
        sizes = [len(self._vocabulary.tokens[i].strip(b" .,!?'-:")) for i in ids]
        total, before = sum(sizes), 0
        for token, size in zip(ids, sizes, strict=True):
            if before == total:
                begin, end = float(span[1]), float(after)
            else:
                begin, end = (span[0] + (span[1] - span[0]) * n / total for n in (before, before + size))
            before += size
            first, last = round(float(begin) / FRAME), round(float(end) / FRAME)
            window.say(
                token, (max(first, 0), min(max(last, first + 1), POSITIONS)) if first < POSITIONS else (0, 0)
            )


@dataclass
class Batch:
    """Windows as arrays: `placed` [n, 4] (window, begin in the pool, at, count) with `gains` [n]; by window
    `inputs`, `targets` [CONTEXT], `spans` [CONTEXT, 2], `phonemes` [POSITIONS], `recorded`, `backwards`."""

    placed: NDArray[np.int64]
    gains: NDArray[np.float32]
    inputs: NDArray[np.int16]
    targets: NDArray[np.int16]
    spans: NDArray[np.int16]
    phonemes: NDArray[np.uint8]
    recorded: NDArray[np.int64]
    backwards: NDArray[np.bool_]


def batch(windows: list[Window], context: int = CONTEXT) -> Batch:
    """Rows are filled with tokens from which nothing is learned."""
    count = len(windows)
    inputs = np.zeros((count, context), np.int16)
    targets = np.full((count, context), IGNORED, np.int16)
    spans = np.zeros((count, context, 2), np.int16)
    for row, window in enumerate(windows):
        length = len(window.inputs)
        if length > context:
            raise ValueError(f"a window has {length} tokens, more than the context of {context}")
        inputs[row, :length], targets[row, :length] = window.inputs, window.targets
        spans[row, :length] = window.spans
    placed = [(row, p.begin, p.at, p.count) for row, window in enumerate(windows) for p in window.placed]
    gains = [p.gain for window in windows for p in window.placed]
    return Batch(
        np.array(placed, np.int64).reshape(-1, 4),
        np.array(gains, np.float32),
        inputs,
        targets,
        spans,
        np.stack([window.phonemes for window in windows]),
        np.array([window.recorded for window in windows], np.int64),
        np.array([window.backwards for window in windows], np.bool_),
    )


__all__ = ["CONTEXT", "IGNORED", "POSITIONS", "SAMPLES", "UNKNOWN", "Batch", "Composer", "Window", "batch"]
