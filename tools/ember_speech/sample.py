"""The recording that comes with the model: one voice in a small room, with its transcript beside it.

python -m tools.ember_speech.sample --out python/akunu/models/ember-speech.ogg
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import soundfile

from tools.ember_speech.sentences import Sentence, parse
from tools.ember_speech.voices import SAMPLE_RATE, Voice, espeak

SENTENCES = [
    parse(text)
    for text in (
        "Good morning, and welcome to the museum.",
        "Today is Monday, March 3rd~third.",
        "The old clock in the hall was built in 1784~seventeen_eighty_four.",
        "The next film starts at 10:45~ten_forty_five in the morning.",
        "There are 26~twenty_six people in the hall.",
        "Please come back tomorrow.",
    )
]
VOICE = Voice("en-us+f3", rate=150, pitch=48, range=60, factor=1.0)
PAUSE = 0.45  # seconds
NOISE = 0.002  # about 35 dB below the speech


def recording(sentences: list[Sentence], voice: Voice) -> tuple[np.ndarray, list[tuple[float, float]]]:
    """Samples at 16 kHz, and when each sentence is said."""
    rng = np.random.default_rng(1)
    parts, times, at = [np.zeros(round(PAUSE * SAMPLE_RATE))], [], PAUSE
    for sentence in sentences:
        speech = espeak().say(sentence, voice)
        if speech is None:
            raise SystemExit(f"espeak-ng left out a word of {sentence.text!r}")
        times.append((at + speech.words[0][0], at + speech.words[-1][1]))
        parts += [speech.samples / 32768, np.zeros(round(PAUSE * SAMPLE_RATE))]
        at += len(speech.samples) / SAMPLE_RATE + PAUSE
    sound = np.concatenate(parts)
    room = (
        rng.normal(0, 1, SAMPLE_RATE // 5)
        * np.exp(-np.arange(SAMPLE_RATE // 5) / (0.03 * SAMPLE_RATE))
        * 0.02
    )
    room[0] = 1
    sound = np.convolve(sound, room)[: len(sound)]
    sound = sound * (0.1 / np.sqrt(np.mean(sound**2))) + rng.normal(0, NOISE, len(sound))
    return sound.astype(np.float32), times


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    sound, times = recording(SENTENCES, VOICE)
    soundfile.write(args.out, sound, SAMPLE_RATE, format="OGG", subtype="VORBIS")
    for sentence, (start, end) in zip(SENTENCES, times, strict=True):
        print(f"{start:6.2f} {end:6.2f}  {sentence.text}")
    print(f"{args.out}: {args.out.stat().st_size / 1000:.0f} kB, {len(sound) / SAMPLE_RATE:.1f} s")


if __name__ == "__main__":
    main()
