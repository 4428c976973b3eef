"""Sentences a second of an embedding model, beside Sentence Transformers on the same processor.

Usage: python bench/embed.py FOLDER [--type TYPE] [--threads N] [--rounds N] [--tokens N]
                             [--llama-embedding PATH]

FOLDER is a model that both can load. All take turns, so that what else the machine does falls on all of them;
a figure is the median over the rounds, and a ratio is the median of the rounds' ratios: of seconds, and of
seconds of processors, which say more where other programs run. With a type, such as q8_0, our weights are
quantised while they are loaded; the cosines say what that costs. With a path to llama.cpp's program, it
embeds the same texts with a GGUF file of that type, or of F32, that is made of FOLDER; what it takes for one
text, its start, is subtracted.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
import numpy.typing as npt

import akunu
from measure import run

LENGTHS = (16, 128, 512)

Vectors = npt.NDArray[np.float32]
Times = tuple[float, float]
"""Seconds that a call takes, and that processors worked for it."""


def texts_of(tokens: list[int]) -> list[str]:
    """Texts of about so many tokens each: common words, which are one token each."""
    words = ["time", "house", "water", "small", "river", "light", "green", "people", "music", "winter"]
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(words, max(1, n - 2))) for n in tokens]


def seconds(call: Callable[[], object]) -> Times:
    """How long one call takes, and how long processors worked for it."""
    start, start_cpu = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - start, time.process_time() - start_cpu


class LlamaEmbedding:
    """llama.cpp's program, with a file of the model in `folder`."""

    def __init__(self, program: str, model: str, folder: Path, type: str, threads: int | None) -> None:
        path = akunu.convert(model, folder / "model.gguf", type, progress=False)
        self._texts = folder / "texts.txt"
        self._command = [program, "-m", str(path), "-f", str(self._texts), "--embd-output-format", "array"]
        self._command += ["-t", str(threads)] if threads else []

    def run(self, texts: list[str]) -> tuple[Vectors, Times]:
        """Vectors of texts that have no line breaks, and what they took beyond the first one alone."""
        start, _ = self._once(texts[:1])
        used, output = self._once(texts)
        vectors = np.asarray(json.loads(output), np.float32)
        return vectors, (used[0] - start[0], used[1] - start[1])

    def _once(self, texts: list[str]) -> tuple[Times, bytes]:
        self._texts.write_text("\n".join(texts), encoding="utf-8")
        used = run(self._command)
        return (used.seconds, used.cpu_seconds), used.output


def ratios(mine: list[Times], other: list[Times]) -> str:
    """Two columns: how much longer the other takes, by the clock and on processors."""
    found = [median(b[i] / a[i] for a, b in zip(mine, other, strict=True)) for i in range(2)]
    return f"{found[0]:6.2f} {found[1]:6.2f}"


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--type", help="load our weights as this type")
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=16384, help="tokens of a round, in all")
    parser.add_argument("--llama-embedding", metavar="PATH", help="llama.cpp's program")
    args = parser.parse_args()

    import torch
    from sentence_transformers import SentenceTransformer

    if args.threads:
        torch.set_num_threads(args.threads)
    ours = akunu.load(args.folder, quantize=args.type, threads=args.threads, context=512)
    theirs = SentenceTransformer(args.folder, device="cpu")
    theirs.max_seq_length = 512
    rng = np.random.default_rng(1)
    mixed = [int(n) for n in np.clip(rng.lognormal(4.0, 1.0, 200), 4, 512)]
    rows = [(str(n), [n] * max(1, args.tokens // n)) for n in LENGTHS]
    rows.append(("mixed", mixed[: max(4, args.tokens * len(mixed) // sum(mixed))]))
    title = f"{'tokens':>8} {'texts':>6} {'akunu/s':>9} {'ST/s':>9} {'ratio':>6} {'cpu':>6}  {'cosine':9}"
    with tempfile.TemporaryDirectory() as folder:
        peer = None
        if args.llama_embedding:
            peer = LlamaEmbedding(
                args.llama_embedding, args.folder, Path(folder), args.type or "f32", args.threads
            )
            title += f" {'llama/s':>9} {'ratio':>6} {'cpu':>6}  cosine"
        print(title)
        for name, lengths in rows:
            texts = texts_of(lengths)
            found, expected = ours.embed(texts), theirs.encode(texts, normalize_embeddings=True)
            mine, other, peers = [], [], []
            for _ in range(args.rounds):
                mine.append(seconds(partial(ours.embed, texts)))
                other.append(seconds(partial(theirs.encode, texts)))
                if peer:
                    vectors, times = peer.run(texts)
                    peers.append(times)
            columns = [mine, other, *([peers] if peer else [])]
            rates = [len(texts) / median(wall for wall, _ in times) for times in columns]
            cosine = float((found * expected).sum(axis=1).min())
            line = f"{name:>8} {len(texts):6} {rates[0]:9.1f} {rates[1]:9.1f} {ratios(mine, other)}"
            line += f"  {cosine:.7f}"
            if peer:
                line += f" {rates[2]:9.1f} {ratios(mine, peers)}"
                line += f"  {float((found * vectors).sum(axis=1).min()):.7f}"
            print(line)


if __name__ == "__main__":
    main()
