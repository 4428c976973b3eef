"""llama-bench's tests and JSON by llama.cpp's library in a Python wheel, where no llama-bench is built.

    python -m bench.peers --peer "llama.cpp=VENV/bin/python bench/llama_library.py" model.gguf -t 1

VENV has `llama-cpp-py-sync`, and nothing of Akunu's. Such wheels are built for any processor: the JSON's
`cpu_info` says which instructions the library uses. `AKUNU_CPU_ISA=avx2` lets Akunu use no others.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from typing import Any

BATCH = 2048
MICRO_BATCH = 512


class Runner:
    """A model in the library, and one context of it."""

    def __init__(self, path: str, threads: int, context: int) -> None:
        from llama_cpp_py_sync import Llama

        self._model = Llama(
            path, n_ctx=context, n_batch=BATCH, n_ubatch=MICRO_BATCH, n_threads=threads, n_gpu_layers=0
        )
        self._lib = self._model._lib

    @property
    def cpu_info(self) -> str:
        """The instructions that the library was compiled for."""
        return str(self._model.print_system_info())

    def clear(self) -> None:
        """Forget what the context holds."""
        self._lib.llama_memory_clear(self._lib.llama_get_memory(self._model._ctx), True)

    def decode(self, n: int, start: int, at_a_time: int) -> float:
        """Run random tokens from a position on; returns seconds."""
        ids = [random.randrange(self._model.n_vocab) for _ in range(n)]
        batch = self._lib.llama_batch_init(at_a_time, 0, 1)
        begin = time.perf_counter()
        for first in range(0, n, at_a_time):
            part = ids[first : first + at_a_time]
            batch.n_tokens = len(part)
            for i, token in enumerate(part):
                batch.token[i], batch.pos[i], batch.n_seq_id[i] = token, start + first + i, 1
                batch.seq_id[i][0] = 0
                batch.logits[i] = int(i == len(part) - 1)
            if self._lib.llama_decode(self._model._ctx, batch) != 0:
                raise RuntimeError("llama_decode failed")
            self._lib.llama_synchronize(self._model._ctx)
        seconds = time.perf_counter() - begin
        self._lib.llama_batch_free(batch)
        return seconds


def numbers(text: str) -> list[int]:
    """Whole numbers of a list with commas."""
    return [int(part) for part in text.split(",")]


def main() -> None:
    """Print what llama-bench would, as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-m", required=True, metavar="MODEL")
    parser.add_argument("-t", type=int, required=True, metavar="THREADS")
    parser.add_argument("-p", type=numbers, default=[512], metavar="LIST")
    parser.add_argument("-n", type=numbers, default=[128], metavar="LIST")
    parser.add_argument("-d", type=numbers, default=[0], metavar="LIST")
    parser.add_argument("-r", type=int, default=5, metavar="REPETITIONS")
    parser.add_argument("-o", choices=["json"], default="json")
    asked = parser.parse_args()
    runner = Runner(asked.m, asked.t, max(asked.d) + max(*asked.p, *asked.n) + 1)
    results: list[dict[str, Any]] = []
    for depth in asked.d:
        tests = [(n, 0) for n in asked.p if n] + [(0, n) for n in asked.n if n]
        for n_prompt, n_gen in tests:
            samples = []
            for turn in range(asked.r + 1):  # the first is not counted
                runner.clear()
                if depth:
                    runner.decode(depth, 0, BATCH)
                n = n_prompt or n_gen
                seconds = runner.decode(n, depth, BATCH if n_prompt else 1)
                samples += [n / seconds] if turn else []
            results.append(
                {
                    "cpu_info": runner.cpu_info, "n_prompt": n_prompt, "n_gen": n_gen, "n_depth": depth,
                    "n_threads": asked.t, "samples_ts": samples,
                }
            )  # fmt: skip
    json.dump(results, sys.stdout, indent=2)


if __name__ == "__main__":
    main()
