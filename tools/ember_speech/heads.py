"""Which heads of the cross-attention follow the sound: each by itself, by the error of the words' times.

    python -m tools.ember_speech.heads --weights build/ember-speech

The best ones belong into generation_config.json beside it.
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from akunu.speech.alignment import dtw, median_filter
from tools.ember_speech.decode import attention
from tools.ember_speech.evaluate import Heard, recordings
from tools.ember_speech.model import Whisper
from tools.ember_speech.sound import LogMel
from tools.ember_speech.tokens import Vocabulary
from tools.ember_speech.train import load_weights


def errors(weights: NDArray[np.float32], wanted: Heard, v: Vocabulary) -> list[float]:
    """How far the words' beginnings are from the truth, in seconds; weights [heads, rows, positions]."""
    spread = (weights - weights.mean(-2, keepdims=True)) / np.maximum(weights.std(-2, keepdims=True), 1e-10)
    rows, columns = dtw(-median_filter(spread).mean(0)[1:-1])
    begins = columns[np.flatnonzero(np.diff(rows, prepend=-1))] / 50
    counts = [len(v.word(text.strip())) for _, _, text in wanted.words]
    first = np.cumsum([0, *counts[:-1]])
    return [abs(float(begins[at]) - start) for at, (start, _, _) in zip(first, wanted.words, strict=True)]


def measure(model: Whisper, count: int) -> dict[tuple[tuple[int, int], ...], float]:
    """The mean error of each head, and of the trained ones together."""
    v, mel = Vocabulary(), LogMel(torch.device("cpu"))
    every = [*product(range(model.config.text_layers), range(model.config.heads))]
    chosen = [(head,) for head in every] + [model.config.aligned]
    found: dict[tuple[tuple[int, int], ...], list[float]] = {heads: [] for heads in chosen}
    for sound, wanted in recordings("clean", count):
        text = [i for _, _, word in wanted.words for i in v.word(word.strip())]
        spectrum = mel(torch.from_numpy(sound)[None])[0]
        weights = attention(model, spectrum, text, v, tuple(every)).numpy()
        for heads in chosen:
            found[heads] += errors(weights[[every.index(head) for head in heads]], wanted, v)
    return {heads: float(np.mean(values)) for heads, values in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--weights", type=Path, required=True, help="the folder of a training")
    parser.add_argument("--count", type=int, default=12, help="windows")
    args = parser.parse_args()
    for heads, error in sorted(measure(load_weights(args.weights), args.count).items(), key=lambda x: x[1]):
        print(f"{error:6.3f} s  {' '.join(f'{layer}.{head}' for layer, head in heads)}")


if __name__ == "__main__":
    main()
