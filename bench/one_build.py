"""The process of one build in `bench.builds`: it opens a model and times what it is told to.

It runs with the package of its build, so it uses only what builds have had for long. A request and an answer
are a line of JSON each: {"open": {…}} gives the names of the model's tests, {"run": NAME} the seconds of one
and a hash of what it computed.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import numpy as np

START = 32
"""Tokens of the prompts that are continued."""
CHAIN = 64
"""Tokens of a call where one sequence runs."""
CHAIN_OF_MANY = 8
"""Tokens of a call where several sequences run."""
WORDS = ["time", "house", "water", "small", "river", "light", "green", "people", "music", "winter"]

Test = Callable[[], tuple[float, Any]]
"""Runs once; returns seconds and what was computed."""


def step_through(engine: Any, slots: list[int], rows: int, steps: int) -> list[Any]:
    """One step of some slots, and the tokens that came of it."""
    for slot in slots:
        assert engine.reserve(slot, rows, steps)
    chunks, raised = engine.step([(slot, rows, True, 0, []) for slot in slots], steps)
    if raised is not None:
        raise raised
    return [list(chunk.ids) for chunk in chunks]


def ids(vocab: int, n: int, seed: int) -> Any:
    """A prompt of its own for each seed."""
    return np.random.default_rng(seed).integers(0, vocab, n).astype(np.uint32)


def prompt(engine: Any, vocab: int, chunk: int, n: int) -> tuple[float, Any]:
    """A new prompt of n tokens, in steps of up to `chunk` rows."""
    slot = engine.open()
    engine.begin(ids(vocab, n, n), slot=slot, temperature=0.0, end_ids=(), reuse=False)
    began = time.perf_counter()
    for done in range(0, n, chunk):
        made = step_through(engine, [slot], min(chunk, n - done), 1)
    seconds = time.perf_counter() - began
    engine.close_slot(slot)
    engine.forget()
    return seconds, made


def tokens(engine: Any, vocab: int, n: int, streams: int) -> tuple[float, Any]:
    """The next n tokens of each of some sequences, which run side by side."""
    slots = [engine.open() for _ in range(streams)]
    for slot in slots:
        engine.begin(ids(vocab, START, slot), slot=slot, temperature=0.0, end_ids=(), reuse=False)
        step_through(engine, [slot], START, 1)
    chain = CHAIN if streams == 1 else CHAIN_OF_MANY
    began = time.perf_counter()
    made = [step_through(engine, slots, 1, min(chain, n - done)) for done in range(0, n, chain)]
    seconds = time.perf_counter() - began
    for slot in slots:
        engine.close_slot(slot)
    engine.forget()
    return seconds, made


def text_tests(stack: ExitStack, asked: dict[str, Any]) -> dict[str, Test]:
    """Prompts and tokens of a language model."""
    from akunu.loading.engines import open_engine

    prompts, n, streams, chunk = asked["prompts"], asked["tokens"], asked["streams"], 512
    opened = stack.enter_context(
        open_engine(
            asked["model"], device=asked["device"], threads=asked["threads"], chunk=chunk,
            context=max([START + n + CHAIN, *(length + 2 for length in prompts)]), parallel=max(streams),
        )
    )  # fmt: skip
    engine, vocab = opened.engine, opened.config.vocab_size
    found: dict[str, Test] = {f"prompt of {p}": partial(prompt, engine, vocab, chunk, p) for p in prompts}
    found |= {
        f"{n} tokens" + (f" of {count}" if count > 1 else ""): partial(tokens, engine, vocab, n, count)
        for count in streams
    }
    return found


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    """What a call takes, and what it returns."""
    began = time.perf_counter()
    made = function()
    return time.perf_counter() - began, made


def vector_tests(stack: ExitStack, asked: dict[str, Any]) -> dict[str, Test]:
    """Vectors of texts of three lengths."""
    import akunu

    model: Any = stack.enter_context(
        akunu.load(asked["model"], device=asked["device"], threads=asked["threads"], context=512)
    )
    random = np.random.default_rng(0)
    texts = {
        n: [" ".join(random.choice(WORDS, n - 2)) for _ in range(max(1, asked["vector_tokens"] // n))]
        for n in (16, 128, 512)
    }

    def embed(lines: list[str]) -> Any:
        return np.asarray(model.embed(lines)).tolist()

    return {f"{len(lines)} texts of {n}": partial(timed, partial(embed, lines)) for n, lines in texts.items()}


def speech_tests(stack: ExitStack, asked: dict[str, Any]) -> dict[str, Test]:
    """A window of sound, and texts of one with one beam and with five."""
    import akunu

    model: Any = stack.enter_context(
        akunu.load(asked["model"], task="transcribe", device=asked["device"], threads=asked["threads"])
    )
    mel = np.random.default_rng(0).random((1, model.config.mels, 3000), np.float32)
    sound = np.random.default_rng(1).normal(0, 0.1, 480_000).astype(np.float32)

    def encode() -> None:
        model._engine.release(model._engine.encode(mel)[0])

    def text(beams: int) -> Any:
        return model.transcribe(
            sound, language="en", beam_size=beams, temperature=0, max_new_tokens=asked["tokens"],
            log_prob_threshold=None, compression_ratio_threshold=None, no_speech_threshold=None,
            suppress_tokens=(-1, model.tokenizer.special.end),
        ).text  # fmt: skip

    return {
        "encoder": partial(timed, encode),
        "greedy": partial(timed, partial(text, 1)),
        "five beams": partial(timed, partial(text, 5)),
    }


KINDS = {"text": text_tests, "vectors": vector_tests, "speech": speech_tests}


def answers(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    """Answer requests until there are no more; a model is closed when the next one is opened."""
    stack, tests = ExitStack(), dict[str, Test]()
    with stack:
        for line in lines:
            request = json.loads(line)
            if asked := request.get("open"):
                tests.clear()
                stack.close()
                tests.update(KINDS[asked["kind"]](stack, asked))
                yield {"tests": list(tests)}
            else:
                seconds, made = tests[request["run"]]()
                yield {"seconds": seconds, "hash": hashlib.sha256(json.dumps(made).encode()).hexdigest()}


def main() -> None:
    """Write answers where standard output was; what the package prints goes to standard error."""
    with open(sys.stdout.fileno(), "w", closefd=False) as out:
        sys.stdout = sys.stderr
        for answer in answers(iter(sys.stdin)):
            print(json.dumps(answer), file=out, flush=True)


if __name__ == "__main__":
    main()
