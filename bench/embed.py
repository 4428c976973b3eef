"""Texts a second of an embedding model, beside Sentence Transformers on the same processor.

Usage: python -m bench.embed FOLDER [--backend NAME]... [--exact NAME] [--type TYPE] [--threads N]
                             [--rounds N] [--tokens N] [--llama-embedding PATH]

FOLDER is a model that all can load. Sentence Transformers runs it with PyTorch, ONNX Runtime or OpenVINO:
with the backends that are named, or all that are installed (`sentence-transformers[onnx,openvino]` has them).
OpenVINO rounds what it multiplies to BF16 where the processor has such products; `openvino-f32` does not.

Each is a process of its own, so that none has another's threads or what another's packages change.
All take turns in random order, so that what else the machine does falls on all of them; a figure is the
median over the rounds, and a ratio is the median of the rounds' ratios: of seconds, and of seconds of
processors, which say more where other programs run. The cosine is the least of a text's two vectors, ours and
the other's. With a type, such as q8_0, our weights are quantised while they are loaded; the cosines say what
that costs. With `--exact`, a backend that is not timed, there are two cosines, of ours and of the other's
vectors to that one's. With a path to llama.cpp's program, it embeds the same texts with a GGUF file of that
type, or of F32, that is made of FOLDER; what it takes for one text, its start, is subtracted.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

import akunu
from bench.measure import run

LENGTHS: Final = (16, 128, 512)
BACKENDS: Final = {
    "torch": "torch",
    "onnx": "optimum.onnxruntime",
    "openvino": "optimum.intel",
    "openvino-f32": "optimum.intel",
}
"""Of Sentence Transformers, and the package that each needs."""

Vectors: TypeAlias = npt.NDArray[np.float32]
Times: TypeAlias = tuple[float, float]
"""Seconds that a call takes, and that processors worked for it."""
Encode: TypeAlias = Callable[[list[str]], Vectors]
Run: TypeAlias = Callable[[list[str]], tuple[Vectors, Times]]
"""Vectors of texts, each of length one, and what they took."""


def texts_of(tokens: list[int]) -> list[str]:
    """Texts of about so many tokens each: common words, which are one token each."""
    words = ["time", "house", "water", "small", "river", "light", "green", "people", "music", "winter"]
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(words, max(1, n - 2))) for n in tokens]


def installed(package: str) -> bool:
    """Whether a package can be imported, without importing it."""
    parent, _, _ = package.rpartition(".")
    return (not parent or installed(parent)) and find_spec(package) is not None


def open_akunu(model: str, type: str | None, threads: int | None) -> Encode:
    """Our own."""
    return akunu.load(model, quantize=type, threads=threads, context=512).embed


def open_sentence_transformer(name: str, model: str, threads: int | None) -> Encode:
    """Sentence Transformers with one of `BACKENDS`."""
    from sentence_transformers import SentenceTransformer

    backend, _, precision = name.partition("-")
    options: dict[str, Any] = {}
    if backend == "torch" and threads:
        import torch

        torch.set_num_threads(threads)
    elif backend == "onnx":
        import onnxruntime

        session = onnxruntime.SessionOptions()
        session.intra_op_num_threads = threads or 0
        options = {"provider": "CPUExecutionProvider", "session_options": session}
    elif backend == "openvino":
        config = {"INFERENCE_PRECISION_HINT": precision} if precision else {}
        config |= {"INFERENCE_NUM_THREADS": str(threads)} if threads else {}
        options = {"ov_config": config}
    encoder = SentenceTransformer(model, device="cpu", backend=backend, model_kwargs=options)
    encoder.max_seq_length = 512
    return lambda texts: np.asarray(encoder.encode(texts, normalize_embeddings=True), np.float32)


opened: list[Encode] = []
"""What a process of `process_of` has."""


def open_here(how: Callable[[], Encode]) -> None:
    """The beginning of such a process."""
    opened.append(how())


def run_here(texts: list[str]) -> tuple[Vectors, Times]:
    """A turn of such a process."""
    start, start_cpu = time.perf_counter(), time.process_time()
    vectors = opened[0](texts)
    return vectors, (time.perf_counter() - start, time.process_time() - start_cpu)


@contextmanager
def process_of(how: Callable[[], Encode]) -> Iterator[Run]:
    """A process that encodes, and times itself."""
    with ProcessPoolExecutor(1, get_context("spawn"), open_here, (how,)) as pool:
        yield lambda texts: pool.submit(run_here, texts).result()


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


def cosine(mine: Vectors, other: Vectors) -> str:
    """The least of a text's two vectors."""
    return f"{float((mine.astype(np.float64) * other).sum(axis=1).min()):.7f}"


def compare(
    texts: list[str],
    mine: Run,
    others: dict[str, Run],
    rounds: int,
    order: random.Random,
    exact: Run | None = None,
) -> list[str]:
    """A line for each of the others, after a call of each that does not count."""
    runs = {"akunu": mine, **others}
    vectors = {name: run(texts)[0] for name, run in runs.items()}
    times: dict[str, list[Times]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name in order.sample(list(runs), len(runs)):
            times[name].append(runs[name](texts)[1])
    if exact is not None:
        true = exact(texts)[0]
        cosines = {name: f"{cosine(vectors['akunu'], true)} {cosine(vectors[name], true)}" for name in others}
    else:
        cosines = {name: cosine(vectors["akunu"], vectors[name]) for name in others}
    rates = {name: len(texts) / median(wall for wall, _ in found) for name, found in times.items()}
    return [
        f"{rates['akunu']:9.1f} {name:15} {rates[name]:9.1f} {ratios(times['akunu'], times[name])}"
        f"  {cosines[name]}"
        for name in others
    ]


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder")
    parser.add_argument(
        "--backend", action="append", choices=BACKENDS, help="default: all that are installed"
    )
    parser.add_argument("--exact", choices=BACKENDS, help="cosines are to this one's vectors")
    parser.add_argument("--type", help="load our weights as this type")
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=16384, help="tokens of a round, in all")
    parser.add_argument("--llama-embedding", metavar="PATH", help="llama.cpp's program")
    args = parser.parse_args()

    names = args.backend or [name for name, package in BACKENDS.items() if installed(package)]
    rng = np.random.default_rng(1)
    mixed = [int(n) for n in np.clip(rng.lognormal(4.0, 1.0, 200), 4, 512)]
    rows = [(str(n), [n] * max(1, args.tokens // n)) for n in LENGTHS]
    rows.append(("mixed", mixed[: max(4, args.tokens * len(mixed) // sum(mixed))]))
    order = random.Random(0)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        mine = stack.enter_context(process_of(partial(open_akunu, args.folder, args.type, args.threads)))

        def backend(name: str) -> Run:
            return stack.enter_context(
                process_of(partial(open_sentence_transformer, name, args.folder, args.threads))
            )

        others = {name: backend(name) for name in names}
        exact = backend(args.exact) if args.exact else None
        if args.llama_embedding:
            peer = LlamaEmbedding(
                args.llama_embedding, args.folder, Path(folder), args.type or "f32", args.threads
            )
            others["llama-embedding"] = peer.run
        heading = f"{'tokens':>8} {'texts':>6} {'akunu/s':>9} {'beside':15} {'its/s':>9}"
        print(f"{heading} {'ratio':>6} {'cpu':>6}  {'akunu     its' if exact else 'cosine'}")
        for name, lengths in rows:
            for line in compare(texts_of(lengths), mine, others, args.rounds, order, exact):
                print(f"{name:>8} {len(lengths):6} {line}", flush=True)


if __name__ == "__main__":
    main()
