"""The op that applies the rules in the tail forbids what the host's rules forbid."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from akunu.speech.options import TranscriptionOptions
from akunu.speech.rules import TokenRules
from kernels.devices import Target, lab, targets
from kernels.problem import pack, struct
from order import Draw

from . import tiny

SPECIAL = tiny.tokenizer().special
BEGIN, END, VOCAB = SPECIAL.timestamp_begin, SPECIAL.end, tiny.VOCAB
ODD: list[list[int]] = [
    [],
    [BEGIN],
    [65],
    [END],
    [BEGIN, BEGIN],
    [BEGIN + 7, 65, BEGIN + 9],
    [BEGIN + 7, 65, BEGIN + 9, BEGIN + 9],
    [BEGIN + 9, 65, BEGIN + 3, BEGIN + 2],
    [65, 66, VOCAB - 1],
    [65, VOCAB - 1, VOCAB - 1],
    [VOCAB - 1, 65],
    [BEGIN, *[65] * 40],
]


def histories(random: np.random.Generator) -> list[list[int]]:
    found = [
        [
            int(random.integers(BEGIN, VOCAB) if random.random() < 0.4 else random.integers(0, END))
            for _ in range(random.integers(0, 12))
        ]
        for _ in range(60)
    ]
    return ODD + found


OPTIONS = {
    "default": TranscriptionOptions(),
    "no times": TranscriptionOptions(without_timestamps=True),
    "few": TranscriptionOptions(max_initial_timestamp=0.0, suppress_blank=False, suppress_tokens=[]),
    "late": TranscriptionOptions(max_initial_timestamp=1e12, suppress_tokens=[0, 31, 32, VOCAB - 1]),
}
LIFTS = (-9.0, -5.5, 0.0)
"""Of the timestamps: they win seldom, about every second time, or nearly always."""


def check(device: Any, options: TranscriptionOptions, lift: float, before: int = 0) -> None:
    """A lab of the device leaves the tokens that the host leaves; `before` them are impossible ones, 32 n."""
    random = np.random.default_rng(7)
    rules = TokenRules(tiny.tokenizer(), options)
    table = rules.table
    assert table is not None
    said = histories(random)
    n, prompt = len(said), 3
    logits = random.normal(0, 2, (n, VOCAB)).astype(np.float32)
    logits[:, BEGIN:] += lift
    logits[5] = -np.inf
    expected = logits.copy()
    rules.apply(expected, said)
    expected, logits = (
        np.pad(rows, [(0, 0), (before, 0)], constant_values=-np.inf) for rows in (expected, logits)
    )
    vocab = before + VOCAB

    stride = prompt + max(map(len, said)) + 1
    slots = random.permutation(n)
    history = random.integers(0, vocab, (n, stride)).astype(np.uint32)
    where = np.zeros(n, struct("Row"))
    settings = np.zeros(n, struct("SpeechRules"))
    masks = np.zeros((n, 2, (vocab + 31) // 32), np.uint32)
    for row, (slot, tokens) in enumerate(zip(slots, said, strict=True)):
        history[slot, prompt : prompt + len(tokens)] = np.array(tokens, np.uint32) + before
        where[row] = slot, prompt + len(tokens) - 1 - 2
        begin = table.timestamp_begin + before if table.timestamp_begin else 0
        settings[slot] = prompt, table.end + before, begin, table.max_initial
        masks[slot, :, before // 32 :] = table.masks(VOCAB)
    buffers = [logits, history, settings, masks, where, np.arange(n, dtype=np.uint32)]
    params = pack("speech_rules", rows=n, step=2, vocab=vocab, history_stride=stride)
    device.run("speech_rules", buffers, params)
    assert np.array_equal(logits, expected)
    forbidden = ~np.isfinite(expected[6:, before:])
    assert forbidden.any() and not forbidden.all()


@pytest.mark.parametrize("target", targets(), ids=lambda t: t.id)
@pytest.mark.parametrize("options", OPTIONS)
def test_the_same_tokens_are_left(options: str, target: Target, draw: Draw) -> None:
    for lift in draw(LIFTS):
        for before in (0, 5408):
            check(lab(target), OPTIONS[options], lift, before)
