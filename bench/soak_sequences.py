"""Sequences that begin, stop, are given up and go on beside one another, up to a million tokens.

    python -m bench.soak_sequences --device cuda
    python -m bench.soak_sequences model.gguf --tokens 10000000

One reader alone and many take turns, so that steps have one row and up to all that the model runs at once.
Each sequence has a prompt, a length, a seed and settings of its own; a third are given up after fewer than 30
pieces, where they have as many. Before and afterwards the same sequences run one at a time. It ends with an
error where one of these has changed, a page is held that no sequence uses, or something failed.
"""

from __future__ import annotations

import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import click

import akunu
from akunu.api.options import GenerationOptions
from akunu.cli.app import CONTEXT_SETTINGS
from akunu.cli.app import run as run_command
from akunu.cli.console import note
from bench.serve import SENTENCE

WORDS: Final = SENTENCE.split()
COMPARED: Final = 12
"""How many sequences run alone, before and afterwards."""
EACH: Final = 40
"""Sequences of a turn for each reader."""


def request_of(rng: random.Random) -> tuple[str, GenerationOptions]:
    """A prompt and settings."""
    prompt = " ".join(rng.choices(WORDS, k=rng.choice([1, 5, 40, 150])))
    options = GenerationOptions(seed=rng.getrandbits(32), max_tokens=rng.choice([1, 7, 60, 250]))
    options["temperature"] = rng.choice([0.0, 0.8, 1.2])
    if rng.random() < 0.3:
        options["repeat_penalty"] = 1.1
    if rng.random() < 0.3:
        options["stop"] = [rng.choice("aeiou ") + rng.choice("nrst")]
    return prompt, options


def read(model: akunu.Model, seed: int) -> int:
    """A reader's sequences, one after the other: how many it left before their end."""
    rng = random.Random(seed)
    left = 0
    for _ in range(EACH):
        prompt, options = request_of(rng)
        most = rng.choice([1000, 1000, rng.randrange(30)])
        with model.stream(prompt, **options) as stream:
            for i, _ in enumerate(stream):
                if i == most:
                    left += 1
                    break
    return left


def alone(model: akunu.Model) -> list[list[int]]:
    """The tokens of the sequences that are compared."""
    rng = random.Random(1)
    requests = [request_of(rng) for _ in range(COMPARED)]
    return [model.generate(prompt, **options).ids for prompt, options in requests]


@click.command("soak_sequences", context_settings=CONTEXT_SETTINGS)
@click.argument("model", default="ember")
@click.option("--device", default="auto", show_default=True, help="Where it runs.")
@click.option("--tokens", default=1_000_000, show_default=True, help="How many to draw at least.")
@click.option(
    "--parallel", default=8, show_default=True, help="Sequences that run at once; half as many more read."
)
def command(model: str, device: str, tokens: int, parallel: int) -> None:
    """Draw tokens of MODEL for readers that come and go."""
    with akunu.load(model, device=device, parallel=parallel) as loaded:
        before = alone(loaded)
        begin = time.monotonic()
        left = turns = 0
        while loaded.stats.generated_tokens < tokens:
            readers = 1 if turns % 2 == 0 else parallel + parallel // 2
            with ThreadPoolExecutor(readers) as pool:
                left += sum(
                    pool.map(lambda seed: read(loaded, seed), range(turns * 1000, turns * 1000 + readers))
                )
            turns += 1
            if turns % 10 == 0:
                note(f"[{turns} turns, {loaded.stats.generated_tokens} tokens]")
        seconds = time.monotonic() - begin
        changed = sum(a != b for a, b in zip(before, alone(loaded), strict=True))
        stats = loaded.stats
    held = stats.pages_held - stats.pages_pinned
    print(
        f"{loaded.device}: {stats.generated_tokens} tokens of {stats.prompts} sequences in {seconds:.0f} s, "
        f"{left} left, {changed} of {COMPARED} outputs changed, {held} pages held"
    )
    if changed or held:
        raise click.ClickException("outputs have changed" if changed else "pages are held")


if __name__ == "__main__":
    sys.exit(run_command(command, "python -m bench.soak_sequences"))
