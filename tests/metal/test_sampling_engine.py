"""The sampler inside chains on the Metal device: any chain gives the same output, and it is the reference's.

The reference has logits from another phase, whose sums are in another order: they differ by some 1e-3, so now
and then another token wins. (Equal logits are compared in test_sampling.py, exactly.)
"""

from __future__ import annotations

from pathlib import Path

import pytest

from metal.on_metal import metal_engines, some
from sampling import test_engine
from sampling.engines import open_file, run
from sampling.reference import Settings, allowed
from sampling.test_engine import GRID, PROMPT, tiny_file

__all__ = ["metal_engines", "tiny_file"]

pytestmark = pytest.mark.usefixtures("metal_engines")

CLOSE = 2  # of 40
SETTINGS = test_engine.TestDamagedModels.SETTINGS
DAMAGED = [[5], list(range(100, 263)), [0, 262]]


class TestDamagedModels(test_engine.TestDamagedModels):
    """Each place of damage and each setting, an output of thirty tokens; their other pairs are long."""

    SEEDS = 1

    @pytest.mark.parametrize(
        ("tokens", "settings"),
        some(
            [(tokens, settings) for tokens in DAMAGED for settings in SETTINGS],
            *((DAMAGED[i % 3], settings) for i, settings in enumerate(SETTINGS)),
        ),
    )
    def test_nan_is_never_drawn(self, tmp_path: Path, tokens: list[int], settings: Settings) -> None:
        super().test_nan_is_never_drawn(tmp_path, tokens, settings)

    @pytest.mark.parametrize("settings", some(SETTINGS, SETTINGS[1], SETTINGS[4]))
    def test_infinity_is_a_large_number(self, tmp_path: Path, settings: Settings) -> None:
        super().test_infinity_is_a_large_number(tmp_path, settings)


@pytest.mark.parametrize(
    "name",
    some(
        [
            "greedy",
            "temperature",
            "top_k",
            "top_p",
            "everything",
            "greedy penalties",
            "bias",
            "whole context",
        ],
        *("top_p", "everything", "greedy penalties", "whole context"),
    ),
)
def test_every_chain_length_draws_what_the_reference_draws(tiny_file: Path, name: str) -> None:
    settings, seed = GRID[name], 0xFFFF_FFFF_0000_0001
    engine = open_file(tiny_file)
    ids = run(engine, PROMPT, 40, settings, seed, chain=1)
    assert run(engine, PROMPT, 40, settings, seed, chain=64) == ids
    sequence = [*PROMPT, *ids]
    logits = open_file(tiny_file).logits(sequence)
    wrong = [
        p
        for p in range(len(PROMPT), len(sequence))
        if sequence[p] not in allowed(logits[p - 1], sequence[:p], settings, seed)
    ]
    assert len(wrong) <= CLOSE, wrong
