"""A model's own head that drafts: how many of its drafts hold, and tokens a second with it and without.

    python -m bench.own_head ember
    python -m bench.own_head model.gguf --prompt "The sun" --temperature 0

Shares are those of the first, second, … draft of a step that hold where the ones before it do, with three
drafts in each step. Speeds are those of generations as users have them, where the time of a step decides
whether anything is drafted; both are run in turn, in random order, and the ratio is the median of pairs.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path
from statistics import median
from typing import Any, Final

import click
import numpy as np

import akunu
from akunu import _core
from akunu.cli.app import CONTEXT_SETTINGS
from akunu.cli.app import run as run_command
from akunu.cli.console import print_table
from akunu.files.model_files import open_model
from akunu.loading.draft_model import head_beside, joins_head
from akunu.loading.finding import find_model

DEPTH: Final = 3
STORIES: Final = (
    "Once upon a time",
    "Once upon a time there was a fox named Pip",
    "One day, a little girl named Mia",
    "There was once a rabbit who",
    "Long ago, in a village by the sea,",
    "Tom was a small brown bear",
)


def open_head(path: Path, context: int, threads: int) -> _core.Engine:
    """Open the engine of a model with its head."""
    files = open_model(path)
    if beside := head_beside(path):
        joins_head(files, open_model(beside))
    spec = files.spec(context, drafts=True)
    return _core.Engine(files.files, spec, device="cpu", context=context, threads=threads, parallel=1)


def shares_held(engine: _core.Engine, ids: list[int], tokens: int, **settings: Any) -> tuple[Any, Any]:
    """How many drafts of each place in a step were tried, those before having held, and how many held."""
    tried, held = np.zeros(DEPTH, int), np.zeros(DEPTH, int)
    slot = engine.open()
    assert slot is not None
    at = engine.begin(np.array(ids, np.uint32), slot=slot, seed=1, **settings)
    while at < len(ids) - 1:
        assert engine.reserve(slot, len(ids) - 1 - at)
        (chunk,), _ = engine.step([(slot, len(ids) - 1 - at, False, 0, [])])
        at = chunk.length
    drafts, written, ended = list[int](), 0, False
    while written < tokens and not ended:
        assert engine.reserve(slot, 1, 1, DEPTH)
        (chunk,), _ = engine.step([(slot, 1, True, 0, drafts)])
        good = len(chunk.ids) - 1
        tried[: min(good + 1, len(drafts))] += 1
        held[:good] += 1
        written, ended = written + len(chunk.ids), chunk.ended
        assert engine.reserve(slot, 1, 1, DEPTH)
        (drafts,), _ = engine.draft([(slot, DEPTH)])
    return tried, held


@click.command(context_settings=CONTEXT_SETTINGS)
@click.argument("model")
@click.option("--prompt", "prompts", multiple=True, metavar="TEXT", help="Instead of openings of stories.")
@click.option("--temperature", type=float, multiple=True, default=(0.0, 0.6), show_default=True)
@click.option("--tokens", type=int, default=200, show_default=True, help="Most tokens of each sequence.")
@click.option("--rounds", type=int, default=5, show_default=True)
@click.option("-t", "--threads", type=int, default=2, show_default=True)
def command(
    model: str,
    prompts: tuple[str, ...],
    temperature: tuple[float, ...],
    tokens: int,
    rounds: int,
    threads: int,
) -> None:
    """Measure MODEL's own head."""
    path, texts, rows, order = find_model(model), prompts or STORIES, [], random.Random(1)
    options: dict[str, Any] = {"threads": threads, "progress": False, "context": 512, "parallel": 1}
    with akunu.load(model, **options) as drafting, akunu.load(model, draft=False, **options) as plain:
        for heat in temperature:
            tried = held = np.zeros(DEPTH, int)
            for text in texts:
                engine = open_head(path, 512, threads)
                found = shares_held(engine, plain.tokenize(text), tokens, temperature=heat)
                engine.close()
                tried, held = tried + found[0], held + found[1]
            speeds: dict[bool, list[float]] = {True: [], False: []}
            drafted = accepted = 0
            for turn in range(rounds + 1):
                for drafts in order.sample([True, False], 2):
                    taken = count = 0.0
                    for seed, text in enumerate(texts):
                        one = (drafting if drafts else plain).generate(
                            text, max_tokens=tokens, temperature=heat, seed=seed
                        )
                        taken, count = taken + one.stats.decode_seconds, count + one.stats.generated_tokens
                        drafted += one.stats.drafted_tokens * drafts * (turn > 0)
                        accepted += one.stats.accepted_tokens * drafts * (turn > 0)
                    if turn:
                        speeds[drafts].append(count / taken)
            ratios = [a / b for a, b in zip(speeds[True], speeds[False], strict=True)]
            rows.append(
                [
                    f"{heat:g}",
                    " ".join(f"{share:.2f}" for share in held / np.maximum(tried, 1)),
                    f"{held.sum() / max(tried.sum(), 1):.2f}",
                    f"{median(speeds[False]):.0f}",
                    f"{median(speeds[True]):.0f}",
                    f"{median(ratios):.2f}",
                    f"{accepted / max(rounds, 1):.0f} / {drafted / max(rounds, 1):.0f}",
                ]
            )
    titles = ["temperature", "held, by place", "held", "plain tokens/s", "with the head", "ratio"]
    print_table([*titles, "accepted / drafted"], rows)


if __name__ == "__main__":
    sys.exit(run_command(command, "python -m bench.own_head"))
