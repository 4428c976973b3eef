"""Steps of a few rows: milliseconds by sequences, and by drafts of one sequence, greedy and sampled.

    python -m bench.few_rows qwen3-4b:q4_k_m --device cuda
    python -m bench.few_rows ember -t 2 --rows 1,2,4
    python -m bench.few_rows qwen3-4b:q4_k_m --head --device cuda

A model is a file, a built-in model, or SHAPE:TYPE with random weights. Each figure is a median of the rounds:

chain    of `--tokens` steps without the host, of 1, 2, … sequences together: a step's time
drafts   a step that verifies 1, 3, … drafts, which are wrong: with what the host does between two steps
head     with --head: a step of a chain that writes 1, 3, … drafts, by a synthetic head, and verifies them

Settings of the sampler are "greedy", "plain" (temperature 1), "cut" (temperature 0.6, top-k 20, top-p 0.95)
and "min_p" (temperature 0.8, min-p 0.05).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any, Final

import click
import numpy as np

from akunu._core import Engine
from akunu.cli.app import CONTEXT_SETTINGS
from akunu.cli.app import run as run_command
from akunu.cli.bench.params import parse_ints
from akunu.cli.console import print_table
from akunu.loading.engines import open_engine
from bench.draft_head import open_with_head
from bench.json_file import json_option, write_json
from bench.options import device_option, rounds_option, threads_option

PROMPT: Final = 64
"""Tokens of each sequence's prompt."""
SETTINGS: Final[dict[str, dict[str, Any]]] = {
    "greedy": {"temperature": 0.0},
    "plain": {"temperature": 1.0},
    "cut": {"temperature": 0.6, "top_k": 20, "top_p": 0.95},
    "min_p": {"temperature": 0.8, "min_p": 0.05},
}


def opened(engine: Engine, vocab: int, sequences: int, setting: str) -> list[int]:
    """Slots of so many sequences whose prompts have run."""
    slots = []
    for seed in range(sequences):
        slot = engine.open()
        assert slot is not None, "the engine has too few slots"
        prompt = np.random.default_rng(seed).integers(0, vocab, PROMPT).astype(np.uint32)
        engine.begin(prompt, slot=slot, reuse=False, end_ids=(), seed=seed, **SETTINGS[setting])
        assert engine.reserve(slot, PROMPT)
        engine.step([(slot, PROMPT, True, 1, [])])
        slots.append(slot)
    return slots


def chain_seconds(engine: Engine, slots: list[int], tokens: int) -> float:
    """Seconds of a step of all these sequences, in a chain of so many."""
    for slot in slots:
        assert engine.reserve(slot, 1, tokens)
    start = time.perf_counter()
    engine.step([(slot, 1, True, tokens, []) for slot in slots], tokens)
    return (time.perf_counter() - start) / tokens


def drafts_seconds(engine: Engine, slot: int, vocab: int, drafts: int) -> float:
    """Seconds of a step that verifies so many drafts."""
    assert engine.reserve(slot, 1, 1, drafts)
    guess = [int(token) for token in np.random.default_rng(0).integers(0, vocab, drafts)]
    start = time.perf_counter()
    engine.step([(slot, 1, True, 0, guess)])
    return time.perf_counter() - start


def head_seconds(engine: Engine, slot: int, drafts: int, steps: int) -> float:
    """Seconds of a step that writes and verifies so many drafts, in a chain of so many."""
    assert engine.reserve(slot, 1, steps, drafts)
    start = time.perf_counter()
    (chunk,), _ = engine.draft_and_verify([(slot, 0)], drafts, steps, engine.common_tokens > 0)
    return (time.perf_counter() - start) / len(chunk.of_steps)


def measure_head(
    name: str, rows: list[int], settings: list[str], tokens: int, rounds: int, threads: int, device: str
) -> Iterator[dict[str, Any]]:
    """Time chains of one model whose drafts a head writes."""
    context = PROMPT + 2 + max(rows) * tokens * (rounds + 1)
    with open_with_head(name, context=context, threads=threads, device=device) as (engine, config):
        for setting in settings:
            for n in rows:
                if n == 1:
                    continue
                (slot,) = opened(engine, config.vocab_size, 1, setting)
                times = [head_seconds(engine, slot, n - 1, tokens) for _ in range(rounds + 1)][1:]
                yield {"setting": setting, "what": "head", "rows": n, "ms": 1e3 * median(times)}
                engine.close_slot(slot)


def measure(
    name: str, rows: list[int], settings: list[str], tokens: int, rounds: int, threads: int, device: str
) -> Iterator[dict[str, Any]]:
    """Time one model."""
    context = PROMPT + 2 + (tokens + max(rows)) * (rounds + 1) * 2
    with open_engine(name, context=context, device=device, threads=threads, parallel=max(rows)) as found:
        vocab = found.config.vocab_size
        for setting in settings:
            for n in rows:
                slots = opened(found.engine, vocab, n, setting)
                times = [chain_seconds(found.engine, slots, tokens) for _ in range(rounds + 1)][1:]
                yield {"setting": setting, "what": "chain", "rows": n, "ms": 1e3 * median(times)}
                if n > 1:
                    drafted = [
                        drafts_seconds(found.engine, slots[0], vocab, n - 1) for _ in range(2 * rounds + 1)
                    ]
                    yield {"setting": setting, "what": "drafts", "rows": n, "ms": 1e3 * median(drafted[1:])}
                for slot in slots:
                    found.engine.close_slot(slot)


@click.command(context_settings=CONTEXT_SETTINGS)
@click.argument("models", nargs=-1, required=True)
@threads_option
@device_option
@click.option("--rows", default="1,2,4,8", show_default=True, metavar="N,…", help="Rows of a step.")
@click.option(
    "--settings",
    default="greedy,plain,cut,min_p",
    show_default=True,
    metavar="NAME,…",
    help="Settings of the sampler.",
)
@click.option(
    "--tokens", type=click.IntRange(min=1), default=32, show_default=True, metavar="N", help="Of a chain."
)
@click.option("--head", is_flag=True, help="Of chains whose drafts a synthetic head writes.")
@rounds_option(5)
@json_option
def command(
    models: tuple[str, ...],
    threads: int,
    device: str,
    rows: str,
    settings: str,
    tokens: int,
    head: bool,
    rounds: int,
    json_path: Path | None,
) -> None:
    """Time steps of each of MODELS."""
    names = settings.split(",")
    if unknown := sorted({*names} - {*SETTINGS}):
        raise click.BadParameter(
            f"{', '.join(unknown)}: known are {', '.join(SETTINGS)}", param_hint="--settings"
        )
    figures = [
        {"model": name, **found}
        for name in models
        for found in (measure_head if head else measure)(
            name, parse_ints(rows), names, tokens, rounds, threads, device
        )
    ]
    if json_path:
        write_json(json_path, figures)
    print_table(
        ["model", "setting", "what", "rows", "ms a step"],
        [[f["model"], f["setting"], f["what"], str(f["rows"]), f"{f['ms']:.3f}"] for f in figures],
    )


if __name__ == "__main__":
    sys.exit(run_command(command, "python -m bench.few_rows"))
