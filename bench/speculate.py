"""Drafts: tokens a second with them and without, for outputs that repeat and outputs that do not.

    python -m bench.speculate qwen3-0.6b:q4_0 ember -t 2
    python -m bench.speculate large.gguf --draft small.gguf
    python -m bench.speculate qwen3-0.6b:q4_0 --head 0,0.5,0.7,0.9

A model is a file, a built-in model, or SHAPE:TYPE with random weights. Three outputs of each are written:

repeats   greedy; its words stand in the prompt already, as in a text that is copied
edits     the same, but one of twelve of the tokens that stand there is another one
new       drawn at temperature 1

What a model writes cannot be chosen, so the output is generated once, and then put where the drafts are
looked for. Each is timed with and without drafts in turn, in random order, round after round; figures are
medians, and the ratio is that of neighbours in time. Every output must be the same in all rounds.

With --head a model SHAPE:TYPE gets a head of its own that drafts (multi-token prediction), whose weights are
random too, and of whose drafts as many hold as is said (`bench.draft_head`). The output is sampled, and the
time is compared with that of the model without a head. The same with its drafts written for the host, as
beside masks, is "by the host".

With --draft a smaller model writes what is not looked up. A model drafts well only for one that it resembles,
so random weights show what it costs where it is always wrong.
"""

from __future__ import annotations

import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from statistics import median
from typing import Any, Final

import click
import numpy as np

from akunu._core import Engine
from akunu.api.scheduling import Scheduler, Sequence
from akunu.api.scheduling.head_proposer import HeadProposer
from akunu.api.scheduling.model_proposer import ModelProposer
from akunu.cli.app import CONTEXT_SETTINGS
from akunu.cli.app import run as run_command
from akunu.cli.console import print_table
from akunu.loading.engines import open_engine
from bench.draft_head import open_with_head, settings_for
from bench.json_file import json_option, write_json
from bench.options import device_option, rounds_option, threads_option

PROMPT: Final = 64
"""Tokens of the prompt."""
TEXTS: Final[dict[str, dict[str, Any]]] = {
    "repeats": {"temperature": 0.0},
    "edits": {"temperature": 0.0},
    "new": {"temperature": 1.0, "seed": 1},
}


def written(scheduler: Scheduler, sequence: Sequence) -> float:
    """Run a sequence to its end; returns seconds from its first token."""
    scheduler.submit(sequence)
    scheduler.next(sequence)
    start = time.perf_counter()
    while scheduler.next(sequence) is not None:
        pass
    seconds = time.perf_counter() - start
    scheduler.end(sequence, len(sequence.prompt))
    return seconds


def known_output(kind: str, tokens: list[int], vocab: int) -> list[int]:
    """What stands before the prompt."""
    if kind == "new":
        return []
    rng = random.Random(0)
    share = 1 / 12 if kind == "edits" else 0.0
    return [rng.randrange(vocab) if rng.random() < share else token for token in tokens]


def compare(scheduler: Scheduler, kind: str, vocab: int, tokens: int, rounds: int) -> dict[str, Any]:
    """Time one kind of output."""
    prompt = np.random.default_rng(3).integers(0, vocab, PROMPT).astype(np.uint32)
    order, output = random.Random(0), list[int]()
    seconds: dict[bool, list[float]] = {False: [], True: []}
    drafted = accepted = 0
    for turn in range(rounds + 1):
        for speculative in order.sample([False, True], 2) if turn else [False]:
            sequence = Sequence(prompt, TEXTS[kind], tokens, speculative=speculative)
            if speculative:
                sequence.drafter.learn([*known_output(kind, output, vocab), *prompt.tolist()])
            taken = written(scheduler, sequence)
            output = output or sequence.tokens
            assert sequence.tokens == output, "drafts changed an output"
            if turn:
                seconds[speculative].append(taken)
            drafted, accepted = drafted + sequence.drafted, accepted + sequence.accepted
    ratios = [plain / fast for plain, fast in zip(seconds[False], seconds[True], strict=True)]
    return {
        "output": kind,
        "plain": (tokens - 1) / median(seconds[False]),
        "speculative": (tokens - 1) / median(seconds[True]),
        "ratio": median(ratios),
        "drafted": drafted / rounds,
        "accepted": accepted / rounds,
    }


class HostHead(HeadProposer):
    """A head whose drafts the host asks for, step by step."""

    common = None


def compare_head(
    name: str, accepted: float, tokens: int, rounds: int, threads: int, device: str
) -> Iterator[dict[str, Any]]:
    """Time a model that drafts with a head of its own, so many of whose drafts hold, and without one."""
    order = random.Random(0)
    options: dict[str, Any] = {"context": PROMPT + tokens + 256, "threads": threads, "device": device}
    output = list[int]()
    with ExitStack() as stack:
        engine, config = stack.enter_context(open_with_head(name, **options))
        plain, _ = stack.enter_context(open_with_head(name, **options, head=False))
        settings = settings_for(engine, accepted)
        schedulers = {
            "plain": Scheduler(plain),
            "chains": Scheduler(engine, proposer=HeadProposer(engine, config)),
            "by the host": Scheduler(engine, proposer=HostHead(engine, config)),
        }
        seconds: dict[str, list[float]] = {way: [] for way in schedulers}
        drafted, held = Counter[str](), Counter[str]()
        prompt = np.random.default_rng(3).integers(0, config.vocab_size, PROMPT).astype(np.uint32)
        for turn in range(rounds + 1):
            for way in order.sample([*schedulers], len(schedulers)):
                sequence = Sequence(prompt, settings, tokens)
                taken = written(schedulers[way], sequence)
                output = output or sequence.tokens
                assert sequence.tokens == output, "drafts changed an output"
                if turn:
                    seconds[way].append(taken)
                    drafted[way] += sequence.drafted
                    held[way] += sequence.accepted
    for way in ("chains", "by the host"):
        ratios = [slow / fast for slow, fast in zip(seconds["plain"], seconds[way], strict=True)]
        yield {
            "output": f"head, {accepted:g}, {way}",
            "plain": (tokens - 1) / median(seconds["plain"]),
            "speculative": (tokens - 1) / median(seconds[way]),
            "ratio": median(ratios),
            "drafted": drafted[way] / rounds,
            "accepted": held[way] / rounds,
        }


def _weights(engine: Engine) -> int:
    return engine.memory["weights"] + engine.memory["weights_mapped"]


def _texts(
    name: str, draft: str | None, tokens: int, rounds: int, threads: int, device: str
) -> Iterator[dict[str, Any]]:
    """Time each kind of output of a model."""
    options: dict[str, Any] = {"context": PROMPT + tokens + 2, "threads": threads, "device": device}
    with ExitStack() as stack:
        opened = stack.enter_context(open_engine(name, **options))
        proposer = None
        if draft is not None:
            small = stack.enter_context(open_engine(draft, **options)).engine
            share = _weights(small) / _weights(opened.engine)
            proposer = ModelProposer(small, opened.config.vocab_size, share)
        scheduler = Scheduler(opened.engine, proposer=proposer)
        for kind in TEXTS:
            yield compare(scheduler, kind, opened.config.vocab_size, tokens, rounds)


@click.command(context_settings=CONTEXT_SETTINGS)
@click.argument("models", nargs=-1, required=True)
@threads_option
@device_option
@click.option("--draft", metavar="MODEL", help="A smaller model with the same vocabulary, that drafts.")
@click.option("--head", metavar="A,B,…", help="Shares of its drafts that hold, of a head of the model's own.")
@click.option(
    "--tokens",
    type=click.IntRange(min=2),
    default=256,
    show_default=True,
    metavar="N",
    help="Of each sequence.",
)
@rounds_option(5)
@json_option
def command(
    models: tuple[str, ...],
    threads: int,
    device: str,
    draft: str | None,
    head: str | None,
    tokens: int,
    rounds: int,
    json_path: Path | None,
) -> None:
    """Time drafts on each of MODELS."""
    figures = [
        {"model": name, **found}
        for name in models
        for found in (
            chain.from_iterable(
                compare_head(name, float(share), tokens, rounds, threads, device) for share in head.split(",")
            )
            if head
            else _texts(name, draft, tokens, rounds, threads, device)
        )
    ]
    rows = [
        [
            found["model"],
            found["output"],
            f"{found['plain']:.1f}",
            f"{found['speculative']:.1f}",
            f"{found['ratio']:.2f}",
            f"{found['accepted']:.0f} / {found['drafted']:.0f}",
        ]
        for found in figures
    ]
    print_table(["model", "output", "plain tokens/s", "with drafts", "ratio", "accepted / drafted"], rows)
    if json_path:
        write_json(json_path, figures)


if __name__ == "__main__":
    sys.exit(run_command(command, "python -m bench.speculate"))
