"""The reference reproduces the real tiny Llama, through its GGUF file."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from . import llama2c
from .reference import Reference
from .source import ReaderSource


@pytest.fixture(scope="module")
def expected() -> llama2c.Expected:
    return llama2c.expected()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Reference:
    return Reference(llama2c.write("F32", tmp_path_factory.mktemp("llama2c") / "f32.gguf"))


def test_logits_after_the_prompt(model: Reference, expected: llama2c.Expected) -> None:
    logits = model.logits(expected.prompt_ids)[-1]
    # 1e-6 is the rounding of reference.json; the frequencies are rounded to float32
    np.testing.assert_allclose(logits, expected.prompt_logits, atol=5e-6)


def test_nll_of_the_story(model: Reference, expected: llama2c.Expected) -> None:
    np.testing.assert_allclose(model.nll(expected.story_ids), expected.nll, atol=5e-6)


@pytest.mark.parametrize("dtype", ["F32", "F16"])
def test_both_greedy_runs(dtype: str, expected: llama2c.Expected, tmp_path: Path) -> None:
    model = Reference(llama2c.write(dtype, tmp_path / "model.gguf"))
    for prompt, ids in (
        (expected.prompt_ids, expected.greedy_ids),
        (expected.story_ids[:1], expected.story_ids[1:]),
    ):
        # The logits after each prefix of the right ids choose the next one: that is greedy decoding.
        chosen = model.logits([*prompt, *ids])[len(prompt) - 1 : -1].argmax(axis=-1)
        assert chosen.tolist() == ids


def test_greedy_run_in_q8_0(expected: llama2c.Expected, tmp_path: Path) -> None:
    path = llama2c.write("Q8_0", tmp_path / "model.gguf")
    dtypes = {tensor.name: tensor.dtype for tensor in ReaderSource(path).tensors}
    assert dtypes["blk.0.attn_q.weight"] == "q8_0"
    assert dtypes["blk.0.ffn_down.weight"] == "f16", "172 is not a multiple of 32"
    assert Reference(path).greedy(expected.prompt_ids, 64)[0] == expected.greedy_ids


def test_tokens_spell_the_reference_texts(expected: llama2c.Expected) -> None:
    pieces, scores, types = llama2c.tokens()
    assert len(pieces) == len(scores) == len(types) == 512

    def spell(ids: list[int]) -> str:
        chars = [pieces[i] if types[i] != 6 else chr(int(pieces[i][3:5], 16)) for i in ids]
        return "".join(chars).replace("▁", " ").removeprefix(" ")

    assert spell(expected.prompt_ids[1:]) == expected.prompt
    assert spell([*expected.prompt_ids[1:], *expected.greedy_ids]) == expected.greedy_text
    assert spell(expected.story_ids[1:]) == expected.story_text


def test_scores_merge_the_prompt_to_its_ids(expected: llama2c.Expected) -> None:
    pieces, scores, _ = llama2c.tokens()
    score = dict(zip(pieces, scores, strict=True))
    symbols = list("▁" + expected.prompt.replace(" ", "▁"))
    while True:
        pairs = [(score[a + b], -i) for i, (a, b) in enumerate(pairwise(symbols)) if a + b in score]
        if not pairs:
            break
        i = -max(pairs)[1]
        symbols[i : i + 2] = [symbols[i] + symbols[i + 1]]
    assert [pieces.index(symbol) for symbol in symbols] == expected.prompt_ids[1:]
