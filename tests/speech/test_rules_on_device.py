"""The op that applies the rules in the tail forbids what the host's rules forbid."""

from __future__ import annotations

import numpy as np
import pytest

from akunu import _core
from akunu.speech.options import TranscriptionOptions
from akunu.speech.rules import TokenRules
from kernels.problem import pack, struct

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


@pytest.mark.parametrize(
    "options",
    [
        TranscriptionOptions(),
        TranscriptionOptions(without_timestamps=True),
        TranscriptionOptions(max_initial_timestamp=0.0, suppress_blank=False, suppress_tokens=[]),
        TranscriptionOptions(max_initial_timestamp=1e6, suppress_tokens=[0, 31, 32, VOCAB - 1]),
    ],
    ids=["default", "no times", "few", "late"],
)
@pytest.mark.parametrize("lift", [-9.0, -5.5, 0.0])
def test_the_same_tokens_are_left(options: TranscriptionOptions, lift: float) -> None:
    """`lift` of the timestamps: they win seldom, about every second time, or nearly always."""
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

    stride = prompt + max(map(len, said)) + 1
    slots = random.permutation(n)
    history = random.integers(0, VOCAB, (n, stride)).astype(np.uint32)
    where = np.zeros(n, struct("Row"))
    settings = np.zeros(n, struct("SpeechRules"))
    masks = np.zeros((n, 2, (VOCAB + 31) // 32), np.uint32)
    for row, (slot, tokens) in enumerate(zip(slots, said, strict=True)):
        history[slot, prompt : prompt + len(tokens)] = tokens
        where[row] = slot, prompt + len(tokens) - 1 - 2
        settings[slot] = prompt, table.end, table.timestamp_begin, table.max_initial
        masks[slot] = table.masks(VOCAB)
    buffers = [logits, history, settings, masks, where, np.arange(n, dtype=np.uint32)]
    lab = _core.Lab("cpu", threads=2)
    lab.run("speech_rules", buffers, pack("speech_rules", rows=n, step=2, vocab=VOCAB, history_stride=stride))
    assert np.array_equal(logits, expected)
    forbidden = ~np.isfinite(expected[6:])
    assert forbidden.any() and not forbidden.all()
