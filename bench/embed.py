"""Sentences a second of an embedding model, beside Sentence Transformers on the same processor.

Usage: python bench/embed.py FOLDER [--threads N] [--rounds N] [--tokens N]

FOLDER is a model that both can load. The two take turns, so that what else the machine does falls on both;
a figure is the median over the rounds, and a ratio is the median of the rounds' ratios: of seconds, and of
seconds of processors, which say more where other programs run.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from statistics import median

import numpy as np

import akunu

LENGTHS = (16, 128, 512)


def texts_of(tokens: list[int]) -> list[str]:
    """Texts of about so many tokens each: common words, which are one token each."""
    words = ["time", "house", "water", "small", "river", "light", "green", "people", "music", "winter"]
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(words, max(1, n - 2))) for n in tokens]


def seconds(call: Callable[[], object]) -> tuple[float, float]:
    """How long one call takes, and how long processors worked for it."""
    start, start_cpu = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - start, time.process_time() - start_cpu


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=16384, help="tokens of a round, in all")
    args = parser.parse_args()

    import torch
    from sentence_transformers import SentenceTransformer

    if args.threads:
        torch.set_num_threads(args.threads)
    ours = akunu.load(args.folder, threads=args.threads, context=512)
    theirs = SentenceTransformer(args.folder, device="cpu")
    theirs.max_seq_length = 512
    rng = np.random.default_rng(1)
    mixed = [int(n) for n in np.clip(rng.lognormal(4.0, 1.0, 200), 4, 512)]
    rows = [(str(n), [n] * max(1, args.tokens // n)) for n in LENGTHS]
    rows.append(("mixed", mixed[: max(4, args.tokens * len(mixed) // sum(mixed))]))
    print(f"{'tokens':>8} {'texts':>6} {'akunu/s':>9} {'ST/s':>9} {'ratio':>6} {'cpu':>6}  cosine")
    for name, lengths in rows:
        texts = texts_of(lengths)
        found, expected = ours.embed(texts), theirs.encode(texts, normalize_embeddings=True)
        mine, other = [], []
        for _ in range(args.rounds):
            mine.append(seconds(partial(ours.embed, texts)))
            other.append(seconds(partial(theirs.encode, texts)))
        rates = [len(texts) / median(wall for wall, _ in times) for times in (mine, other)]
        ratios = [median(b[i] / a[i] for a, b in zip(mine, other, strict=True)) for i in range(2)]
        cosine = float((found * expected).sum(axis=1).min())
        print(
            f"{name:>8} {len(texts):6} {rates[0]:9.1f} {rates[1]:9.1f} {ratios[0]:6.2f} {ratios[1]:6.2f}"
            f"  {cosine:.7f}"
        )


if __name__ == "__main__":
    main()
