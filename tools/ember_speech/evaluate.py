"""Measure ember-speech: words, times of sentences and words, and what is heard in noise.

    python -m tools.ember_speech.evaluate --weights build/ember-speech       # through PyTorch
    python -m tools.ember_speech.evaluate --model ember-speech               # through Akunu

Every set is made anew from its seed: sentences that were never trained on, in voices of the training and in
voices that were held back. Sounds that are no speech are to give no text. Through Akunu there are long
recordings too, of some hundred seconds, with the text of a window as the prompt of the next and without.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tools.ember_speech.decode import transcripts
from tools.ember_speech.sentences import parse
from tools.ember_speech.sound import LogMel, Worsen, gather
from tools.ember_speech.sounds import Bank
from tools.ember_speech.synthesis import Clip, ShardWriter, make_shard, read_clips
from tools.ember_speech.tokens import Vocabulary
from tools.ember_speech.train import load_weights, sessions_of
from tools.ember_speech.voices import SAMPLE_RATE, draw_voice, espeak
from tools.ember_speech.windows import SAMPLES, Composer, batch

Samples = NDArray[np.float32]
STRANGE = Path(__file__).parent / "strange.txt"


@dataclass
class Heard:
    """A text with its segments (start, end, text) and words (start, end, text), in seconds."""

    segments: list[tuple[float, float, str]] = field(default_factory=list)
    words: list[tuple[float, float, str]] = field(default_factory=list)

    @property
    def text(self) -> str:
        return " ".join(text.strip() for _, _, text in self.segments)


Recording = tuple[Samples, Heard]


@dataclass(frozen=True)
class Test:
    """`voices` and `sentences`: whether those that were held back are used; `hard`: with noise and echoes."""

    voices: bool
    sentences: bool | None
    hard: bool
    about: str


TESTS = {
    "clean": Test(False, True, False, "known voices, held-back sentences"),
    "new voices": Test(True, True, False, "held-back voices, held-back sentences"),
    "noise": Test(
        False, True, True, "known voices, held-back sentences, noise about 10 dB below the speech, echoes"
    ),
    "new voices, noise": Test(True, True, True, "the same in held-back voices"),
    "strange": Test(
        False, None, False, "known voices, sentences that were written by hand, not by the generator"
    ),
}


def normal(text: str) -> list[str]:
    """The words as they are compared: lower case, without marks around them."""
    words = (word.strip(".,!?\"'") for word in text.lower().split())
    return [word for word in words if word]


def matched(wanted: Sequence[str], found: Sequence[str]) -> tuple[int, list[tuple[int, int]]]:
    """The fewest words to change, add or leave out, and the pairs that are equal."""
    cost = np.zeros((len(wanted) + 1, len(found) + 1), np.int32)
    cost[:, 0], cost[0, :] = np.arange(len(wanted) + 1), np.arange(len(found) + 1)
    for i, j in itertools.product(range(1, len(wanted) + 1), range(1, len(found) + 1)):
        same = wanted[i - 1] == found[j - 1]
        cost[i, j] = min(cost[i - 1, j] + 1, cost[i, j - 1] + 1, cost[i - 1, j - 1] + (not same))
    pairs, i, j = [], len(wanted), len(found)
    while i and j:
        same = wanted[i - 1] == found[j - 1]
        if cost[i, j] == cost[i - 1, j - 1] + (not same):
            i, j = i - 1, j - 1
            if same:
                pairs.append((i, j))
        elif cost[i, j] == cost[i - 1, j] + 1:
            i -= 1
        else:
            j -= 1
    return int(cost[-1, -1]), pairs[::-1]


def recordings(name: str, count: int) -> list[Recording]:
    """`count` windows of the test of that name."""
    test = TESTS[name]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "clips"
        if test.sentences is None:
            _say_file(path, STRANGE, test.voices)
        else:
            make_shard(path, f"test {name}", test.voices, test.sentences, sessions=max(count // 2, 4))
        clips, samples = read_clips(path), np.load(path.with_suffix(".npy"))
    composer = Composer(Vocabulary(), sessions_of(clips, 0), Random(f"test {name}"))
    worsen = Worsen(torch.device("cpu"), 1000, noises=12 if test.hard else 1)
    windows = [composer.window("whole", True) for _ in range(count)]
    by_begin = {clip.begin: clip for clip in clips}
    found = []
    for window in windows:
        plan = batch([window])
        sound = gather(torch.from_numpy(samples), plan)
        sound = worsen(sound, torch.from_numpy(plan.recorded), hard=test.hard)[0]
        heard = Heard()
        for placed in window.placed:
            _add(heard, by_begin[placed.begin], placed.at)
        found.append((sound.numpy(), heard))
    return found


def _say_file(path: Path, file: Path, held_back: bool) -> None:
    """Every line in several voices, as sessions of a shard."""
    lines = [parse(line) for line in file.read_text().splitlines() if line.strip()]
    writer, rng = ShardWriter(Vocabulary()), Random("strange")
    for session in range(12):
        voice = draw_voice(rng, held_back)
        for sentence in lines:
            speech = espeak().say(sentence, voice)
            if speech is not None:
                writer.add(session, sentence, speech)
    writer.write(path)


def _add(heard: Heard, clip: Clip, at: int) -> None:
    v = Vocabulary()
    borders = np.cumsum(clip.words)
    words = [
        v.text(clip.tokens[end - count : end].tolist())
        for end, count in zip(borders, clip.words, strict=True)
    ]
    times = (clip.word_spans + at) / SAMPLE_RATE
    heard.segments.append((float(times[0][0]), float(times[-1][1]), "".join(words)))
    heard.words += [(float(start), float(end), word) for (start, end), word in zip(times, words, strict=True)]


@dataclass
class Figures:
    """Of one test. Times are errors in seconds, of what was heard right."""

    words: int = 0
    errors: int = 0
    segments: list[float] = field(default_factory=list)
    word_times: list[float] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def add(self, wanted: Heard, found: Heard) -> None:
        """One more recording."""
        errors, _ = matched(normal(wanted.text), normal(found.text))
        self.words += len(normal(wanted.text))
        self.errors += errors
        if errors:
            self.faults.append(f"{wanted.text}\n    {found.text.strip()}")
        for times, kind in ((self.segments, "segments"), (self.word_times, "words")):
            ours, theirs = getattr(wanted, kind), getattr(found, kind)
            keys = [[" ".join(normal(text)) for _, _, text in parts] for parts in (ours, theirs)]
            for i, j in matched(*keys)[1]:
                times += [abs(ours[i][0] - theirs[j][0]), abs(ours[i][1] - theirs[j][1])]

    def report(self) -> dict[str, float]:
        """Shares and medians, for the card."""

        def within(times: list[float], limit: float) -> float:
            return float(np.mean(np.array(times) <= limit)) if times else 0.0

        return {
            "words": self.words,
            "wer": self.errors / max(self.words, 1),
            "segments": len(self.segments) // 2,
            "segments_within": within(self.segments, 0.2),
            "segments_median": float(np.median(self.segments or [9])),
            "words_within": within(self.word_times, 0.1),
            "words_median": float(np.median(self.word_times or [9])),
        }


class Akunu:
    """Transcripts as `akunu transcribe` makes them."""

    def __init__(self, name: str) -> None:
        import akunu

        self._model = akunu.load(name)

    def hear(self, sounds: Sequence[Samples], *, words: bool = True, **options: Any) -> list[Heard]:
        """What is said in each recording: segments by their timestamps, `words` by their alignment."""
        heard = []
        for sound in sounds:
            segments = self._model.transcribe(sound, **options).segments
            aligned = self._model.transcribe(sound, word_timestamps=True).segments if words else []
            heard.append(
                Heard(
                    [(segment.start, segment.end, segment.text) for segment in segments],
                    [(word.start, word.end, word.word) for segment in aligned for word in segment.words],
                )
            )
        return heard


class Torch:
    """Transcripts through PyTorch; without the times of words."""

    def __init__(self, folder: Path) -> None:
        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self._model = load_weights(folder, self._device)
        self._vocabulary = Vocabulary()
        self._mel = LogMel(self._device)

    def hear(self, sounds: Sequence[Samples], rows: int = 64) -> list[Heard]:
        """What is said in each recording, `rows` at a time."""
        heard = []
        for begin in range(0, len(sounds), rows):
            part = torch.from_numpy(np.stack(sounds[begin : begin + rows])).to(self._device)
            heard += [
                self._segments(ids) for ids in transcripts(self._model, self._mel(part), self._vocabulary)
            ]
        return heard

    def _segments(self, tokens: list[int]) -> Heard:
        v, heard = self._vocabulary, Heard()
        start, text = 0.0, []
        for token in [*tokens, v.zero + 1500]:
            if token < v.end:
                text.append(token)
                continue
            if text:
                heard.segments.append((start, (token - v.zero) / 50, v.text(text)))
            start, text = (token - v.zero) / 50, []
        return heard


def noise_recordings(count: int) -> list[Samples]:
    """Windows without speech: noise of all colours, hum, tones, clicks, silence."""
    worsen = Worsen(torch.device("cpu"), 2000, noises=min(count, 24))
    plan = batch([Composer(Vocabulary(), [], Random(n)).window("silent", True) for n in range(count)])
    recorded = torch.full((1,), 30 * SAMPLE_RATE)
    return [worsen(torch.zeros(1, 30 * SAMPLE_RATE), recorded)[0].numpy() for _ in plan.recorded]


def sounds_without_speech(count: int) -> list[Samples]:
    """Tones and music of simple kinds, and as many of those of the training, drawn anew: a window of each."""
    time = np.arange(SAMPLES) / SAMPLE_RATE

    def notes(pitches: Sequence[float], seconds: float, decay: float) -> NDArray[np.float64]:
        each = round(seconds * SAMPLE_RATE)
        pitch = np.repeat(np.resize(pitches, -(-SAMPLES // each)), each)[:SAMPLES]
        phase = 2 * np.pi * np.cumsum(pitch) / SAMPLE_RATE
        return np.exp(-decay * (time % seconds)) * sum(np.sin(n * phase) / n for n in (1, 2, 3))

    def sine(hz: float) -> NDArray[np.float64]:
        return np.sin(2 * np.pi * hz * time)

    simple = [
        *(sine(hz) for hz in (60, 440, 1000, 3000)),
        *(np.sign(sine(hz)) * (1 + sine(beat)) for hz, beat in ((150, 4), (320, 11))),
        sine(262) + sine(330) + sine(392),
        sine(350) + sine(440),
        (sine(440) + sine(480)) * (time % 6 < 2),
        *(
            sine(hz) * (time % period < on)
            for hz, period, on in ((880, 0.5, 0.2), (2000, 1, 0.1), (620, 1, 0.5))
        ),
        np.sin(2 * np.pi * np.cumsum(600 + 300 * np.sin(2 * np.pi * time / 4)) / SAMPLE_RATE),
        np.sin(2 * np.pi * np.cumsum(100 * 2 ** (time / 5)) / SAMPLE_RATE),
        notes([220, 262, 330, 196, 247, 294], 0.25, 3),
        notes([131, 196, 262, 294, 330, 349], 0.125, 9),
        notes([392, 330, 262, 294, 392, 440, 392], 0.5, 1.5) + notes([98, 131, 98, 110], 1, 1),
        notes([262, 294, 330, 262], 0.4, 0) * 0.5 + 0.3 * notes([523, 494], 0.8, 4),
    ]
    bank = Bank(torch.device("cpu"), 3000, count).sounds.float().numpy()
    every = [*(np.asarray(sound) * 0.2 for sound in simple), *(0.1 * bank)]
    return [np.clip(sound, -1, 1).astype(np.float32) for sound in every]


def long_recordings(count: int) -> list[Recording]:
    """`count` recordings of about 100 seconds, each in another voice of the training, with some noise."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "clips"
        make_shard(path, "test long", False, True, sessions=count, per_session=36)
        sessions, samples = sessions_of(read_clips(path), 0), np.load(path.with_suffix(".npy"))
    rng, noise, found = Random("test long"), np.random.default_rng(5), []
    for session in sessions:
        pieces, at, heard = list[NDArray[np.float64]](), 0, Heard()
        for clip in session:
            gap = round(rng.choice((0.2, 0.4, 0.8, 1.2, 3.0)) * SAMPLE_RATE)
            pieces += [np.zeros(gap), samples[clip.begin : clip.begin + clip.count] / 32768]
            _add(heard, clip, at + gap)
            at += gap + clip.count
            if at > 95 * SAMPLE_RATE:
                break
        sound = np.concatenate(pieces)
        found.append(((sound + noise.normal(0, 0.003, len(sound))).astype(np.float32), heard))
    return found


def evaluate(
    system: Akunu | Torch, tests: Sequence[str], count: int, recorded: int
) -> dict[str, dict[str, float]]:
    """The figures of each test, of `recorded` long recordings, and of what is no speech; prints mistakes."""
    report: dict[str, dict[str, float]] = {}

    def measure(name: str, known: Sequence[Recording], **options: Any) -> None:
        figures = Figures()
        for (_, wanted), found in zip(
            known, system.hear([sound for sound, _ in known], **options), strict=True
        ):
            figures.add(wanted, found)
        report[name] = figures.report()
        print(name, json.dumps(report[name]), *figures.faults[:8], sep="\n", flush=True)

    for name in tests:
        measure(name, recordings(name, count))
    if isinstance(system, Akunu) and recorded:
        known = long_recordings(recorded)
        for given in (True, False):
            name = f"long recordings, {'with' if given else 'without'} the text before"
            measure(name, known, words=False, condition_on_previous_text=given)
    for name, sounds in (
        ("noise only", noise_recordings(count)),
        ("tones and music", sounds_without_speech(count)),
    ):
        options = {"words": False} if isinstance(system, Akunu) else {}
        texts = [heard.text for heard in system.hear(sounds, **options)]
        report[name] = {"windows": len(texts), "with_text": sum(map(bool, texts))}
        print(name, report[name], *filter(None, texts), sep="\n", flush=True)
    return report


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    system = parser.add_mutually_exclusive_group(required=True)
    system.add_argument("--weights", type=Path, help="the folder of a training, run by PyTorch")
    system.add_argument("--model", help="a model as `akunu.load` takes it")
    parser.add_argument("--count", type=int, default=64, help="windows of a test")
    parser.add_argument("--recordings", type=int, default=8, help="long recordings, through Akunu")
    parser.add_argument("--tests", nargs="*", choices=TESTS, default=list(TESTS))
    parser.add_argument("--out", type=Path, help="where to write the figures")
    args = parser.parse_args()
    system = Torch(args.weights) if args.weights else Akunu(args.model)
    report = evaluate(system, args.tests, args.count, args.recordings)
    if args.out:
        args.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
