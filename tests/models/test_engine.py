"""The engine against independent references: every architecture, every weight type, every phase."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from akunu import _core
from akunu.cli.bench.one_sequence import OneSequence
from akunu.files.describe.gguf_config import resolve
from kernels.builders.common import FIXED
from one_engine import OneEngine
from order import Draw

from . import convert, llama2c, quant, tiny
from .reference import Reference

KV_TYPES = ("f32", "f16", "q8_0")
DEVICE = os.environ.get("AKUNU_TEST_DEVICE", "cpu")  # tests/metal sets another
QUANTISED = [d for d in quant.DTYPES if d not in ("F32", "F16", "BF16")]


def open_engine(
    path: Path,
    *,
    context: int = tiny.CONTEXT,
    chunk: int = 512,
    kv_dtype: str = "f32",
    threads: int = 0,
    device: str = "",
) -> OneEngine:
    file = _core.GgufFile(str(path))
    spec = resolve(file, context=context)
    options = {"context": context, "chunk": chunk, "kv_dtype": kv_dtype, "threads": threads}
    return OneEngine(_core.Engine(file, spec, device=device or DEVICE, **options))


def greedy(engine: _core.Engine | OneEngine, prompt: list[int], n: int, chain: int = 5) -> list[int]:
    sequence = engine if isinstance(engine, OneEngine) else OneSequence(engine)
    sequence.begin(prompt)
    ids: list[int] = []
    while not ids:
        ids = sequence.prefill()[1].ids
    while len(ids) < n:
        chunk = sequence.decode(min(chain, n - len(ids)))
        assert chunk, f"no more than {len(ids)} of {n} tokens fit"
        ids += chunk.ids
    if sequence is not engine:
        engine.close_slot(sequence.slot)
    return ids


def nmse(found: npt.ArrayLike, expected: npt.ArrayLike) -> float:
    """Mean squared error over the variance of the expected values; NaN counts as infinite."""
    f, e = np.asarray(found, np.float64), np.asarray(expected, np.float64)
    error = float(((f - e) ** 2).mean() / e.var())
    return error if np.isfinite(error) else float("inf")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tiny")


@pytest.fixture(params=tiny.ALL)
def model(request: pytest.FixtureRequest, folder: Path) -> tuple[Path, tiny.Golden]:
    """An F32 model of every architecture, and what Transformers computed for it."""
    name = request.param
    path = folder / f"{name}.gguf"
    if not path.exists():
        tiny.write(name, "F32", path)
    return path, tiny.golden(name)


def test_logits_equal_transformers(model: tuple[Path, tiny.Golden]) -> None:
    path, golden = model
    assert nmse(open_engine(path).logits(golden.prompt), golden.logits) < 1e-9


def test_greedy_ids_equal_transformers(model: tuple[Path, tiny.Golden]) -> None:
    path, golden = model
    assert greedy(open_engine(path), golden.prompt, len(golden.ids)) == golden.ids


#: On CUDA prompts and single rows add up in other orders, and a cached element may be rounded to its
#: neighbour: the square of a unit in the last place of the cache's type, were it so for all, in three layers.
#: With F16 and Q8_0 prompts also round queries and weights to F16; with Q8_0 keys and values count.
PHASES_NMSE = {"f32": 1e-11, "f16": 3 * 3 * 2.0**-22, "q8_0": 3 * 2 * 127.0**-2}
#: There a matmul's input is F16: the square of a unit in the last place, were it so for all, four times in
#: each of three layers and once for the output.
F16_INPUTS_NMSE = (4 * 3 + 1) * 2.0**-22


@pytest.mark.parametrize("kv_dtype", KV_TYPES)
def test_phases_agree_to_the_bit(model: tuple[Path, tiny.Golden], kv_dtype: str, draw: Draw) -> None:
    """Prefill = chunked prefill = batches = single steps: a row's result does not depend on its company."""
    path, golden = model
    ids = golden.prompt + golden.ids
    whole = open_engine(path, kv_dtype=kv_dtype).logits(ids)
    for chunk in draw((1, 3, 16, 23)):
        engine = open_engine(path, chunk=chunk, kv_dtype=kv_dtype)
        found = engine.logits(ids)
        if DEVICE.startswith("cuda"):
            assert nmse(found, whole) < PHASES_NMSE[kv_dtype], f"chunk {chunk}"
        else:
            assert np.array_equal(found, whole), f"chunk {chunk}"
        # The same through the tables that generation uses.
        engine.begin(ids)
        left, last = engine.prefill()
        while left:
            left, last = engine.prefill()
        assert last.ids == [int(whole[-1].argmax())], f"chunk {chunk}"


def test_threads_do_not_change_the_result(model: tuple[Path, tiny.Golden]) -> None:
    path, golden = model
    one = open_engine(path, threads=1).logits(golden.prompt)
    assert np.array_equal(open_engine(path, threads=3).logits(golden.prompt), one)


@pytest.mark.table
@pytest.mark.parametrize("dtype", quant.DTYPES)
def test_every_weight_type_matches_float64(dtype: str, folder: Path) -> None:
    """Weights as stored, activations rounded to int8 for the quantised types: hence the two bounds."""
    written = tiny.write("llama_256", dtype, folder / f"llama_256-{dtype}.gguf")
    ids = tiny.golden("llama_256").prompt
    found = open_engine(written.path).logits(ids)
    error = nmse(found, Reference(written.path).logits(ids))
    assert error < (_floats(dtype) if dtype in ("F32", "F16", "BF16") else 2e-3), error


def _floats(dtype: str) -> float:
    """The bound of a model's logits, of float weights."""
    if dtype != "F32" and DEVICE.startswith("cuda"):
        return F16_INPUTS_NMSE
    if dtype != "F32" and DEVICE == "cpu" and _core.devices()[0]["isa"] in FIXED:
        # 16-bit integers, with activations of one more bit at least (cpp/cpu/fixed.h).
        return F16_INPUTS_NMSE / 4
    return 1e-9


@pytest.mark.table
@pytest.mark.parametrize("mix", convert.MIXES)
def test_mixed_weight_types_match_float64(mix: str, folder: Path) -> None:
    written = tiny.write("llama_256", mix, folder / f"{mix}.gguf")
    ids = tiny.golden("llama_256").prompt
    assert nmse(open_engine(written.path).logits(ids), Reference(written.path).logits(ids)) < 2e-3


@pytest.mark.parametrize("dtype", [*QUANTISED, "F16", "BF16"])
def test_phases_agree_to_the_bit_whatever_the_weights(dtype: str, folder: Path, draw: Draw) -> None:
    written = tiny.write("qwen3_256", dtype, folder / f"qwen3_256-{dtype}.gguf")
    ids = tiny.golden("qwen3_256").prompt
    whole = open_engine(written.path).logits(ids)
    for chunk in draw((1, 7)):
        found = open_engine(written.path, chunk=chunk).logits(ids)
        if DEVICE.startswith("cuda"):
            assert nmse(found, whole) < 2 * F16_INPUTS_NMSE, f"chunk {chunk}"
        else:
            assert np.array_equal(found, whole), f"chunk {chunk}"


class TestRealTinyLlama:
    @pytest.fixture(scope="class")
    @classmethod
    def files(cls, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
        folder = tmp_path_factory.mktemp("tinyllama")
        return {d: llama2c.write(d, folder / f"{d}.gguf") for d in ("F32", "F16", "Q8_0")}

    @pytest.mark.table
    @pytest.mark.parametrize("kv_dtype", KV_TYPES)
    @pytest.mark.parametrize("dtype", ["F32", "F16", "Q8_0"])
    @pytest.mark.parametrize("chain", [1, 3, 64])
    def test_greedy_ids(self, files: dict[str, Path], dtype: str, chain: int, kv_dtype: str) -> None:
        e = llama2c.expected()
        assert greedy(open_engine(files[dtype], kv_dtype=kv_dtype), e.prompt_ids, 64, chain) == e.greedy_ids

    @pytest.mark.parametrize("dtype", ["F32", "F16"])
    def test_story_ids(self, files: dict[str, Path], dtype: str) -> None:
        e = llama2c.expected()
        assert greedy(open_engine(files[dtype], context=256), e.story_ids[:1], 200, 32) == e.story_ids[1:]

    def test_logits_and_nll(self, files: dict[str, Path]) -> None:
        e = llama2c.expected()
        engine = open_engine(files["F32"], context=256)
        assert nmse(engine.logits(e.prompt_ids)[-1], e.prompt_logits) < 1e-11
        np.testing.assert_allclose(engine.nll(e.story_ids), e.nll, atol=2e-5)
