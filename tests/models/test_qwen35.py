"""Qwen 3.5: gated delta nets and gated attention, from every kind of file, against Transformers.

What it computes does not depend on how it was divided into steps, on its neighbours, on drafts that were
refused, or on the checkpoint that it goes on from.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from akunu import _core
from akunu.base.errors import ModelFileError, UnsupportedError
from akunu.files.describe.gguf_config import resolve
from akunu.files.describe.hf_config import resolve_hf

from . import qwen35, tiny
from .phases import agree
from .test_engine import greedy, nmse
from .test_hybrid import decode, read

DEVICE = os.environ.get("AKUNU_TEST_DEVICE", "cpu")  # tests/metal sets another

CONTEXT = 700
ROW = qwen35.ALL["qwen35"]

Open = Callable[..., _core.Engine]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("qwen35")


def open_gguf(path: Path, **options: Any) -> _core.Engine:
    file = _core.GgufFile(str(path))
    settings = {"device": DEVICE, "context": CONTEXT, "kv_dtype": "f32", "threads": 2, **options}
    return _core.Engine(file, resolve(file, context=settings["context"], drafts=None), **settings)


@pytest.fixture(scope="module")
def opened(folder: Path) -> Open:
    """Opens engines of `ROW`'s GGUF file."""
    path = qwen35.write_gguf(ROW, folder / "opened.gguf")
    return lambda **options: open_gguf(path, **options)


def prompt_of(n: int, seed: int = 1) -> list[int]:
    return np.random.default_rng(seed).integers(3, ROW.vocab_size, n).tolist()


# -- what it computes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(qwen35.ALL))
def test_golden_data_belongs_to_the_weights(name: str) -> None:
    assert tiny.golden(name).fingerprint == tiny.fingerprint(qwen35.weights(qwen35.ALL[name]))


@pytest.mark.parametrize("name", list(qwen35.ALL))
def test_a_gguf_file_computes_what_transformers_does(name: str, folder: Path) -> None:
    engine = open_gguf(qwen35.write_gguf(qwen35.ALL[name], folder / f"{name}.gguf"))
    golden = tiny.golden(name)
    assert nmse(engine.logits(golden.prompt), golden.logits) < 1e-8
    assert greedy(engine, golden.prompt, len(golden.ids)) == golden.ids


@pytest.mark.parametrize("style", ["text", "whole", "mlx"])
def test_a_folder_computes_what_transformers_does(style: str, folder: Path) -> None:
    path = qwen35.write_folder(ROW, folder / style, style=style)
    files = _core.SafetensorsFiles([str(path / "model.safetensors")])
    written = qwen35.config_of(path)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        spec = resolve_hf(written, files.tensors, context=CONTEXT, drafts=None)
    left_out = "tensors of this qwen3_5 model are left out: 1 for images, 1 for multi-token prediction"
    assert [str(w.message) for w in warned] == ([left_out] if style == "whole" else [])
    engine = _core.Engine(files, spec, context=CONTEXT, kv_dtype="f32", threads=2)
    golden = tiny.golden(ROW.name)
    assert nmse(engine.logits(golden.prompt), golden.logits) < 1e-8


def test_value_heads_in_the_other_order_are_noticed(folder: Path) -> None:
    """A key head's values are apart in a GGUF file; taken as neighbours they would still make an output."""
    path, golden = qwen35.write_gguf(ROW, folder / "order.gguf"), tiny.golden(ROW.name)
    file = _core.GgufFile(str(path))
    spec = resolve(file, context=CONTEXT)
    for block in spec.config.blocks:
        if block.mixer.kind == "delta_net":
            object.__setattr__(block.mixer, "grouped", True)
    engine = _core.Engine(file, spec, context=CONTEXT, kv_dtype="f32", threads=2)
    assert nmse(engine.logits(golden.prompt), golden.logits) > 1e-2


def test_layers_that_predict_a_token_more_are_left_out(folder: Path) -> None:
    path = qwen35.write_gguf(ROW, folder / "nextn.gguf", nextn=1)
    with pytest.warns(RuntimeWarning, match="qwen35 model are left out: 2 for multi-token prediction"):
        engine = open_gguf(path)
    golden = tiny.golden(ROW.name)
    assert nmse(engine.logits(golden.prompt), golden.logits) < 1e-8


def test_quantised_weights_run(folder: Path) -> None:
    row = qwen35.ALL["qwen35_odd"]
    golden = tiny.golden(row.name)
    for dtype, bound in (("F16", 1e-4), ("Q8_0", 0.02)):
        engine = open_gguf(qwen35.write_gguf(row, folder / f"{dtype}.gguf", dtype))
        assert nmse(engine.logits(golden.prompt), golden.logits) < bound


@pytest.mark.parametrize(
    ("key", "value", "error", "message"),
    [
        (
            "ssm.time_step_rank",
            3,
            ModelFileError,
            "ssm.time_step_rank: found 3, expected a multiple of the 2",
        ),
        ("ssm.inner_size", 255, ModelFileError, "ssm.inner_size: found 255, expected a multiple of the 4"),
        ("nextn_predict_layers", 4, ModelFileError, "found 4, expected less than the 4 layers"),
        ("attention.recurrent_layers", [True], ModelFileError, "expected a flag for each of 4 layers"),
        ("expert_count", 8, UnsupportedError, "expert_count"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(
    key: str, value: object, error: type[Exception], message: str, folder: Path
) -> None:
    file = qwen35.write_gguf(ROW, folder / "sizes.gguf")

    source = _core.GgufFile(str(file))
    changed = SimpleNamespace(
        metadata={**source.metadata, f"qwen35.{key}": value},
        tensors=source.tensors,
        tensor_bytes=source.tensor_bytes,
    )
    with pytest.raises(error, match=message):
        resolve(changed, context=CONTEXT)


# -- the same bits -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, 7, 33, 64])
def test_chunks_change_no_bit(rows: int, opened: Open) -> None:
    ids = prompt_of(140)
    assert agree(opened(chunk=rows).logits(ids), opened().logits(ids))


def test_decoding_is_the_prompt(opened: Open) -> None:
    engine, ids = opened(), prompt_of(40)
    found = greedy(engine, ids, 70)
    again = engine.logits([*ids, *found])
    assert again[39:-1].argmax(1).tolist() == found


def test_neighbours_change_nothing(opened: Open) -> None:
    sequences = [prompt_of(n, seed) for seed, n in enumerate((33, 64, 20, 90))]
    alone = opened()
    expected = []
    for ids in sequences:
        slot = alone.open()
        read(alone, slot, ids)
        expected.append(decode(alone, slot, 40))
        alone.close_slot(slot)
        alone.forget()
    together = opened(parallel=4)
    slots = [together.open() for _ in sequences]
    for slot, ids in zip(slots, sequences, strict=True):
        read(together, slot, ids, 25)
    found: list[list[int]] = [[] for _ in sequences]
    while len(found[0]) < 40:
        for slot in slots:
            assert together.reserve(slot, 1, 1)
        chunks, _ = together.step([(slot, 1, True, 0, []) for slot in slots])
        for ids, chunk in zip(found, chunks, strict=True):
            ids += chunk.ids
    assert found == expected


@pytest.mark.parametrize("hold", [0, 3, 8])
def test_drafts_that_are_refused_leave_the_state_as_it_was(hold: int, opened: Open) -> None:
    engine = opened()
    slot, ids = engine.open(), prompt_of(45)
    read(engine, slot, ids)
    expected = decode(engine, slot, 80)
    read(engine, slot, ids)
    found: list[int] = []
    while len(found) < 70:
        right = expected[len(found) : len(found) + hold]
        wrong = [(expected[len(found) + hold] + 1) % ROW.vocab_size] * (8 - hold)
        assert engine.reserve(slot, 1, 1, 8)
        (chunk,), _ = engine.step([(slot, 1, True, 0, [*right, *wrong])])
        found += chunk.ids
    assert found == expected[: len(found)]


def test_a_sequence_from_a_checkpoint_is_the_one_from_nothing(opened: Open) -> None:
    engine, alone = opened(), opened()
    slot, only, ids = engine.open(), alone.open(), prompt_of(600)
    read(engine, slot, ids)
    for end, cached in ((600, 599), (580, 576), (513, 512)):
        sequence = [*ids[:end], 9, 8, 7]
        assert read(engine, slot, sequence) == cached
        assert read(alone, only, sequence) == 0
        assert decode(engine, slot, 40) == decode(alone, only, 40)
        alone.truncate(0, only)
        alone.forget()
