"""Run the tests: load each model as seldom as possible, time each repetition.

What a test does is llama-bench's definition. Prompt processing (pp): a prompt of random tokens, in batches of
`-b` tokens, each ending with logits. Text generation (tg): that many single-token decodes. At a depth, so
many tokens are in the KV cache before; they are not timed, and computed once for all repetitions. One untimed
run of each kind warms up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from akunu.base.errors import AkunuError
from akunu.cli.bench.one_sequence import OneSequence
from akunu.cli.bench.params import Case
from akunu.loading.facts import ModelFacts

if TYPE_CHECKING:
    from akunu._core import DeviceInfo, Engine

__all__ = ["LoadedModel", "Result", "run_cases", "run_test"]

CHAIN = 64
"""Tokens decoded per submission, about what streaming asks for at full speed."""

Ids = npt.NDArray[np.uint32]
Log = Callable[[str], None]


@dataclass(frozen=True)
class Result:
    """One test that ran: nanoseconds of each repetition, and what it ran on."""

    case: Case
    model: ModelFacts
    device: DeviceInfo
    cpu_name: str
    test_time: str
    samples_ns: tuple[int, ...]

    @property
    def samples_ts(self) -> list[float]:
        """Tokens per second of each repetition."""
        tokens = self.case.n_prompt + self.case.n_gen
        return [1e9 * tokens / ns for ns in self.samples_ns]


class LoadedModel:
    """An engine, and what a run needs to know about its model.

    `filled` is how many leading tokens of the KV cache are certainly those of `ids`.
    """

    def __init__(
        self, engine: Engine, facts: ModelFacts, vocab_size: int, device: DeviceInfo, cpu_name: str = ""
    ) -> None:
        self.engine = engine
        self.sequence = OneSequence(engine)
        self.facts = facts
        self.device = device
        self.cpu_name = cpu_name or device["name"]
        self.filled = 0
        # One stream of random ids: a prefix of it is the context at a depth, so every test at the same
        # depth finds its tokens in the KV cache.
        self._ids = np.zeros(0, np.uint32)
        self._rng = np.random.default_rng(0)
        self._vocab_size = vocab_size
        self._texts = 0

    def ids(self, n: int) -> Ids:
        """The first `n` ids of the stream."""
        while self._ids.size < n:
            more = self._rng.integers(0, self._vocab_size, n, np.uint32)
            self._ids = np.concatenate([self._ids, more])
        return self._ids[:n]

    def text(self, depth: int, n: int) -> Ids:
        """The first `depth` ids of the stream, and `n` that no text had there before: no cache holds them."""
        self._texts += 1
        ids = self.ids(depth + n).copy()
        ids[depth:] = (ids[depth:] + self._texts % self._vocab_size) % self._vocab_size
        return ids


Loader = Callable[[Case, int], LoadedModel]
"""Loads the engine for a test with a context of at least so many tokens."""


def run_cases(
    cases: Sequence[Case], load: Loader, *, repetitions: int, warmup: bool, delay: float, log: Log
) -> Iterator[Result]:
    """Run the tests one after the other; neighbours that can share a loaded engine do."""
    loaded: LoadedModel | None = None
    key: tuple[object, ...] | None = None
    try:
        for index, case in enumerate(cases):
            name = f"benchmark {index + 1}/{len(cases)}"
            log(f"{name}: starting")
            if loaded is None or case.engine_key != key:
                if loaded is not None:
                    loaded.engine.close()
                    loaded = None
                key = case.engine_key
                context = 0
                for later in cases[index:]:
                    if later.engine_key != key:
                        break
                    context = max(context, later.n_context)
                loaded = load(case, context)
            if delay:
                time.sleep(delay)
            when = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            case_log = partial(_log_as, log, name)
            samples = run_test(loaded, case, repetitions=repetitions, warmup=warmup, log=case_log)
            yield Result(case, loaded.facts, loaded.device, loaded.cpu_name, when, tuple(samples))
    finally:
        if loaded is not None:
            loaded.engine.close()


def _log_as(log: Log, name: str, text: str) -> None:
    log(f"{name}: {text}")


def run_test(loaded: LoadedModel, case: Case, *, repetitions: int, warmup: bool, log: Log) -> list[int]:
    """Nanoseconds of each repetition of one test.

    Raises
    ------
    AkunuError
        The engine decoded fewer tokens than it was asked for.
    """
    if warmup:
        if case.n_prompt:
            log("warmup prompt run")
            _restore(loaded, case)
            _prompt(loaded, case.n_depth, case.n_prompt, case.n_batch)
        if case.n_gen:
            log("warmup generation run")
            _restore(loaded, case)
            _start(loaded, case.n_depth)
            _generate(loaded.sequence, 1)
    samples = []
    for repetition in range(repetitions):
        count = f"{repetition + 1}/{repetitions}"
        if case.n_depth:
            log(f"depth run {count}" + (" (cached)" if loaded.filled >= case.n_depth else ""))
        _restore(loaded, case)
        if not case.n_prompt:
            _start(loaded, case.n_depth)
        log(f"{'prompt' if case.n_prompt else 'generation'} run {count}")
        start = time.perf_counter_ns()
        if case.n_prompt:
            _prompt(loaded, case.n_depth, case.n_prompt, case.n_batch)
        if case.n_gen:
            _generate(loaded.sequence, case.n_gen)
        samples.append(time.perf_counter_ns() - start)
    return samples


def _restore(loaded: LoadedModel, case: Case) -> None:
    """Make the KV cache hold exactly the tokens of the test's depth, computing what is missing."""
    keep = min(loaded.filled, case.n_depth)
    loaded.sequence.truncate(keep)
    loaded.engine.forget()  # so that each run uses the same memory
    if keep < case.n_depth:
        _process(loaded, loaded.ids(case.n_depth), keep, case.n_batch)
    loaded.filled = case.n_depth


def _prompt(loaded: LoadedModel, depth: int, n: int, n_batch: int) -> None:
    """Process `n` tokens after the first `depth`, in batches that each end with logits."""
    _process(loaded, loaded.text(depth, n), depth, n_batch)


def _start(loaded: LoadedModel, depth: int) -> None:
    """Process the one token whose logits give the first token to decode."""
    _process(loaded, loaded.text(depth, 1), depth, 1)


def _process(loaded: LoadedModel, ids: Ids, done: int, n_batch: int) -> None:
    while done < ids.size:
        start, done = done, min(done + n_batch, ids.size)
        found = loaded.sequence.begin(ids[:done], temperature=0.0, end_ids=(), reuse=True)
        if found != start:
            raise AkunuError(
                f"the KV cache holds {found} of the {done} tokens, expected {start}; the test would be wrong"
            )
        remaining = done - start
        while remaining:
            remaining, _ = loaded.sequence.prefill()


def _generate(sequence: OneSequence, n: int) -> None:
    done = 0
    while done < n:
        chunk = sequence.decode(min(CHAIN, n - done))
        if chunk is None or not chunk.ids:
            raise AkunuError(f"the engine stopped after {done} of {n} tokens")
        done += len(chunk.ids)
