"""Speech in shards that many processes write while the training reads.

Shard ``i`` depends on the seed and ``i`` alone. It holds sessions: sentences that one voice says. Beside the
samples lie what is said, when each word is said, and which phoneme is heard in every fiftieth of a second.

    python -m tools.ember_speech.synthesis --out build/speech --shards 1     # measures the speed
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from multiprocessing import Process
from pathlib import Path
from random import Random
from types import SimpleNamespace

import numpy as np
from numpy.typing import NDArray

from tools.ember_speech.sentences import Sentence, sentences
from tools.ember_speech.tokens import Vocabulary
from tools.ember_speech.voices import SAMPLE_RATE, Speech, draw_voice, espeak

SESSIONS = 32  # in a shard
SENTENCES = 24  # in a session
FRAME = SAMPLE_RATE // 50  # samples of a position of the encoder
LOUDNESS = 0.1  # root of the mean square of every sentence

# as espeak-ng names them in the voices used, with silence first
PHONEMES = """_ ; ? @ @- @2 @5 @L 0 3 3: A: A@ D E I I# I2 IR N O2 O: O@ OI S T U U@ V VR Z a a# aI aI2 aI3
    aI@ aU aa b d dZ e@ eI f g h i i: i@ i@3 j k l m n n- o@ oU p r r- s t t# t2 tS t[ u: v w w# z""".split()  # noqa: SIM905
_PHONEME = {name: number for number, name in enumerate(PHONEMES)}
UNKNOWN = 255


@dataclass(frozen=True)
class Clip:
    """A sentence that was said: where its samples lie in the shard, its words and tokens, its phonemes.

    `word_spans` are in samples from its beginning; `words` counts the tokens of each word.
    """

    begin: int
    count: int
    session: int
    words: NDArray[np.int16]
    tokens: NDArray[np.int16]
    word_spans: NDArray[np.int32]
    phonemes: NDArray[np.uint8]


class ShardWriter:
    """Collects clips and writes them as ``NAME.npy`` (samples) and ``NAME.npz`` (the rest)."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._samples: list[NDArray[np.int16]] = []
        self._columns: dict[str, list[NDArray[np.generic]]] = {
            name: [] for name in ("words", "tokens", "word_spans", "phonemes")
        }
        self._sessions: list[int] = []
        self.seconds = 0.0

    def add(self, session: int, sentence: Sentence, speech: Speech) -> None:
        """One more clip."""
        ids = [self._vocabulary.word(written) for written, _ in sentence.words]
        sound = speech.samples.astype(np.float32) / 32768
        loudness = float(np.sqrt(np.mean(sound**2))) or 1.0
        sound = np.clip(sound * (LOUDNESS / loudness), -1, 1)
        self._samples.append(np.rint(sound * 32767).astype(np.int16))
        self._sessions.append(session)
        self._columns["words"].append(np.array([len(word) for word in ids], np.int16))
        self._columns["tokens"].append(np.array([i for word in ids for i in word], np.int16))
        self._columns["word_spans"].append(np.rint(np.array(speech.words) * SAMPLE_RATE).astype(np.int32))
        self._columns["phonemes"].append(_phoneme_frames(speech))
        self.seconds += len(sound) / SAMPLE_RATE

    def write(self, path: Path) -> None:
        """The samples last, which says that the shard is whole."""
        arrays: dict[str, NDArray[np.generic]] = {
            "lengths": np.array([len(s) for s in self._samples], np.int64),
            "sessions": np.array(self._sessions, np.int16),
        }
        for name, column in self._columns.items():
            arrays[name] = np.concatenate(column)
            arrays[name + "_counts"] = np.array([len(part) for part in column], np.int32)
        np.savez(path.with_suffix(".npz"), **arrays)
        part = path.with_suffix(".part.npy")
        np.save(part, np.concatenate(self._samples))
        part.rename(path.with_suffix(".npy"))


def read_clips(path: Path) -> list[Clip]:
    """The clips of a shard that is whole."""
    with np.load(path.with_suffix(".npz")) as file:
        arrays = SimpleNamespace(**{name: file[name] for name in file.files})
    begins = np.cumsum(arrays.lengths) - arrays.lengths

    def parts(name: str) -> list[NDArray[np.generic]]:
        return np.split(getattr(arrays, name), np.cumsum(getattr(arrays, name + "_counts"))[:-1])

    columns = zip(parts("words"), parts("tokens"), parts("word_spans"), parts("phonemes"), strict=True)
    return [
        Clip(int(begin), int(count), int(session), *rest)  # type: ignore[arg-type]
        for begin, count, session, rest in zip(begins, arrays.lengths, arrays.sessions, columns, strict=True)
    ]


def _phoneme_frames(speech: Speech) -> NDArray[np.uint8]:
    """The phoneme at the middle of each position of the encoder."""
    count = -(-len(speech.samples) // FRAME)
    starts = np.array([start for start, _ in speech.phonemes])
    names = np.array([_PHONEME.get(name, UNKNOWN) for _, name in speech.phonemes], np.uint8)
    middles = (np.arange(count) + 0.5) * FRAME / SAMPLE_RATE
    at = np.searchsorted(starts, middles, side="right") - 1
    return np.where(at < 0, np.uint8(0), names[np.maximum(at, 0)])


def make_shard(
    path: Path,
    seed: object,
    held_back_voices: bool,
    held_back_sentences: bool,
    sessions: int = SESSIONS,
    per_session: int = SENTENCES,
) -> float:
    """Write a shard; its seconds of speech."""
    rng = Random(f"ember-speech {seed}")
    source = sentences(seed, held_back_sentences)
    writer = ShardWriter(Vocabulary())
    for session in range(sessions):
        voice = draw_voice(rng, held_back_voices)
        said = 0
        while said < per_session:
            sentence = next(source)
            speech = espeak().say(sentence, voice)
            if speech is not None and len(speech.samples) < 14 * SAMPLE_RATE:
                writer.add(session, sentence, speech)
                said += 1
    writer.write(path)
    return writer.seconds


def shard_path(folder: Path, index: int) -> Path:
    """Where a shard lies, without a suffix."""
    return folder / f"shard{index:05d}"


def _write(folder: Path, seed: int, indices: range) -> None:
    for index in indices:
        if not shard_path(folder, index).with_suffix(".npy").exists():
            make_shard(shard_path(folder, index), f"{seed}/{index}", False, False)


def start_writers(folder: Path, seed: int, count: int, workers: int) -> list[Process]:
    """Start processes that write shards 0 to ``count`` - 1 of the training's side."""
    folder.mkdir(parents=True, exist_ok=True)
    writers = [
        Process(target=_write, args=(folder, seed, range(worker, count, workers)), daemon=True)
        for worker in range(workers)
    ]
    for writer in writers:
        writer.start()
    return writers


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--shards", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    for index in range(args.shards):
        began = time.monotonic()
        seconds = make_shard(shard_path(args.out, index), f"{args.seed}/{index}", False, False)
        spent = time.monotonic() - began
        print(
            f"shard {index}: {seconds:.0f} s of speech in {spent:.1f} s, {seconds / spent:.0f} to one",
            flush=True,
        )


if __name__ == "__main__":
    main()
