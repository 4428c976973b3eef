"""The CPU's engine tests on the Metal device, and what Metal promises instead of equal bits.

Its kernels sum in another order for one row, for a few and for many. So phases agree within rounding, and
greedy ids are equal.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from akunu import _core
from akunu.base.errors import UnsupportedError
from kernels import runner
from kernels.case import case
from kernels.devices import Target, lab
from metal.on_metal import metal_engines, some
from models import llama2c, quant, test_engine, tiny
from models.reference import Reference
from models.test_engine import (
    KV_TYPES,
    folder,
    greedy,
    model,
    nmse,
    open_engine,
    test_logits_equal_transformers,
)
from order import Draw
from sampling import test_chains
from sampling import test_engine as sampling_engine
from sampling.engines import run, start
from sampling.reference import Settings
from sampling.test_chains import (
    test_a_chunk_says_that_it_ended,
    test_another_seed_another_output,
    test_the_context_is_filled_to_the_last_token,
    tiny_file,
)
from sampling.test_distribution import (
    test_no_more_logprobs_than_tokens,
)
from sampling.test_engine import GRID

__all__ = [
    "folder",
    "metal_engines",
    "model",
    "test_a_chunk_says_that_it_ended",
    "test_another_seed_another_output",
    "test_logits_equal_transformers",
    "test_no_more_logprobs_than_tokens",
    "test_the_context_is_filled_to_the_last_token",
    "tiny_file",
]
pytestmark = pytest.mark.usefixtures("metal_engines")


def test_these_tests_run_on_metal(folder: Path) -> None:
    tiny.write("llama", "F32", folder / "llama.gguf")
    assert open_engine(folder / "llama.gguf").isa.startswith("apple")


@pytest.mark.parametrize(
    "vocab", some([1, 2, 3, 4, 5, 7, 8, 15, 31, 33, 63, 64, 65, 127, 255, 1025], 1, 3, 33, 1025)
)
def test_a_small_vocabulary(vocab: int, draw: Draw) -> None:
    sampling_engine.test_a_small_vocabulary(vocab, draw)


@pytest.mark.parametrize(
    "settings",
    some([test_chains.SAMPLED, Settings(temperature=0)], test_chains.SAMPLED),
    ids=["sampled", "greedy"],
)
class TestChains:
    """Compare log-probabilities of sampled tokens; the best ones are long."""

    def test_one_ends_at_an_end_token(self, tiny_file: Path, settings: Settings) -> None:
        test_chains.test_a_chain_ends_at_an_end_token(tiny_file, settings)

    def test_pieces_equal_one_prompt(self, tiny_file: Path, settings: Settings) -> None:
        test_chains.test_decoding_in_pieces_equals_one_prompt(tiny_file, settings)

    def test_truncated_and_continued_equals_a_fresh_run(self, tiny_file: Path, settings: Settings) -> None:
        test_chains.test_truncate_and_continue_equals_a_fresh_run(tiny_file, settings)


# How closely phases agree: a cached value that lies between two of its type may be rounded to either.
PHASES_NMSE = {"f32": 1e-10, "f16": 1e-6, "q8_0": 1e-4}


def check_phases(path: Path, golden: tiny.Golden, kv_dtype: str) -> None:
    """Prefill = chunked prefill = single steps, within rounding; the first token always."""
    ids = golden.prompt + golden.ids
    whole = open_engine(path, kv_dtype=kv_dtype).logits(ids)
    for chunk in (1, 23):
        engine = open_engine(path, chunk=chunk, kv_dtype=kv_dtype)
        error = nmse(engine.logits(ids), whole)
        assert error < PHASES_NMSE[kv_dtype], f"chunk {chunk}: {error:.3g}"
        # The same through the tables that generation uses.
        engine.begin(ids)
        left, last = engine.prefill()
        while left:
            left, last = engine.prefill()
        assert last.ids == [int(whole[-1].argmax())], f"chunk {chunk}"


FEW = ("llama", "gemma3", "phi3_long", "qwen2_yarn", "qwen3")


@pytest.mark.parametrize("model", some(tiny.ALL, *FEW), indirect=True)
def test_greedy_ids_equal_transformers(model: tuple[Path, tiny.Golden]) -> None:
    test_engine.test_greedy_ids_equal_transformers(model)


@pytest.mark.parametrize("name", some(tiny.ALL, *FEW))
def test_phases_agree(name: str, folder: Path) -> None:
    path = folder / f"{name}.gguf"
    tiny.write(name, "F32", path)
    check_phases(path, tiny.golden(name), "f16")


@pytest.mark.parametrize(
    ("name", "kv_dtype"),
    [("llama_odd", "f32"), ("llama_odd", "q8_0"), ("gemma2", "q8_0"), ("phi3_long", "q8_0")],
)
def test_phases_agree_with_other_caches(name: str, kv_dtype: str, folder: Path) -> None:
    path = folder / f"{name}.gguf"
    tiny.write(name, "F32", path)
    check_phases(path, tiny.golden(name), kv_dtype)


ONCE = (("F32", 1), ("F16", 3), ("Q8_0", 64))  # each with another cache


class TestRealTinyLlama(test_engine.TestRealTinyLlama):
    """Each type, chain and cache once; the pairs of them are long, since an emulated GPU takes its time."""

    @pytest.mark.parametrize(
        ("dtype", "chain", "kv_dtype"),
        some(
            [
                (dtype, chain, KV_TYPES[(i + j) % 3])
                for i, dtype in enumerate(("F32", "F16", "Q8_0"))
                for j, chain in enumerate((1, 3, 64))
            ],
            *((dtype, chain, KV_TYPES[2 * i % 3]) for i, (dtype, chain) in enumerate(ONCE)),
        ),
    )
    def test_greedy_ids(self, files: dict[str, Path], dtype: str, chain: int, kv_dtype: str) -> None:
        super().test_greedy_ids(files, dtype, chain, kv_dtype)

    @pytest.mark.parametrize("dtype", ["F32"])  # F16: test_command_buffers.py
    def test_story_ids(self, files: dict[str, Path], dtype: str) -> None:
        super().test_story_ids(files, dtype)


@pytest.mark.parametrize("dtype", quant.CODEBOOKS)
def test_types_without_kernels_are_refused_by_name(dtype: str, folder: Path) -> None:
    written = tiny.write("llama_256", dtype, folder / f"llama_256-{dtype}.gguf")
    with pytest.raises(UnsupportedError, match=f"weights of type '{dtype.lower()}'"):
        open_engine(written.path)


@pytest.mark.parametrize(
    "dtype",
    some([d for d in quant.DTYPES if d not in quant.CODEBOOKS], "F32", "F16", "Q4_0", "Q4_K", "MXFP4"),
)
def test_every_weight_type_matches_float64(dtype: str, folder: Path) -> None:
    """Activations are F16 but for F32 weights, and the weights as stored: so the bound is one for all."""
    written = tiny.write("llama_256", dtype, folder / f"llama_256-{dtype}.gguf")
    ids = tiny.golden("llama_256").prompt
    error = nmse(open_engine(written.path).logits(ids), Reference(written.path).logits(ids))
    assert error < (1e-9 if dtype == "F32" else 1e-5), error


def test_mixed_weight_types_match_float64(folder: Path) -> None:
    """Of the types that Metal has kernels of."""
    test_engine.test_mixed_weight_types_match_float64("MIXED_WITHOUT_CODEBOOKS", folder)


@pytest.mark.parametrize(
    ("name", "dtype"),
    some(
        [(n, d) for n in ("llama_256", "qwen3_256", "gemma3_256") for d in ("Q4_0", "Q6_K", "Q8_0")],
        ("llama_256", "Q4_0"), ("qwen3_256", "Q6_K"), ("gemma3_256", "Q8_0"),
    ),
)  # fmt: skip
def test_greedy_ids_are_float64s(name: str, dtype: str, folder: Path) -> None:
    """No other id beats a chosen one by more than rounding.

    Of these random models many logits nearly tie, and the CPU's int8 activations decide otherwise than F16
    ones: so the judge is the float64 reference.
    """
    written = tiny.write(name, dtype, folder / f"{name}-{dtype}.gguf")
    prompt = tiny.golden(name).prompt
    check_greedy(written.path, greedy(open_engine(written.path), prompt, 24), prompt)


def check_greedy(path: Path, ids: list[int], prompt: list[int]) -> None:
    logits = Reference(path).logits(prompt + ids[:-1])[len(prompt) - 1 :]
    lead = logits.max(axis=1) - logits[np.arange(len(ids)), ids]
    assert (lead <= 5e-3 * logits.std()).all(), lead
    assert (lead == 0).mean() > 0.8


def decode_kernels(engine: _core.Engine) -> list[str]:
    return [c["kernel"] for c in engine.plan("decode", 1, 0) if c["label"] == "layers.0.attn_qkv"]


@pytest.mark.parametrize(("dtype", "v"), [("Q4_0", "Q5_0"), ("Q5_0", "Q8_0")])
def test_greedy_ids_of_mixed_types_are_the_cpus(dtype: str, v: str, tmp_path: Path) -> None:
    """Of a trained model, in which v has a wider type than q and k, as a whole prompt and token by token."""
    path = llama2c.write(dtype, tmp_path / "mixed.gguf", v)
    prompt = llama2c.expected().prompt_ids
    engine = open_engine(path, device="metal")
    assert decode_kernels(engine) == [f"norm_qkv_{dtype}_{v}".lower()]
    ids = greedy(engine, prompt, 64, 16)
    assert ids == greedy(open_engine(path, device="cpu"), prompt, 64)


@pytest.mark.parametrize(
    ("name", "dtype"),
    some(
        [(n, d) for n in ("llama_256", "qwen3_256") for d in ("Q4_K", "IQ4_XS")],
        ("llama_256", "IQ4_XS"), ("qwen3_256", "Q4_K"),
    ),
)  # fmt: skip
def test_greedy_ids_of_mixed_types_are_float64s(name: str, dtype: str, folder: Path) -> None:
    v = {"Q4_K": "Q6_K", "IQ4_XS": "Q5_K"}[dtype]
    path = tiny.write(name, dtype, folder / f"{name}-{dtype}-{v}.gguf", v).path
    engine = open_engine(path)
    assert decode_kernels(engine) == [f"norm_qkv_{dtype}_{v}".lower()]
    check_greedy(path, greedy(engine, tiny.golden(name).prompt, 24), tiny.golden(name).prompt)


def test_types_that_no_kernel_takes_together_take_two_commands(folder: Path) -> None:
    path = tiny.write("llama_256", "Q8_0", folder / "odd.gguf", "Q4_0").path
    engine, prompt = open_engine(path), tiny.golden("llama_256").prompt
    labels = [c["label"] for c in engine.plan("decode", 1, 0) if c["layer"] == 0]
    assert labels[:2] == ["layers.0.attn_qk", "layers.0.attn_v"]
    check_greedy(path, greedy(engine, prompt, 8), prompt)


def test_a_long_context_at_small_width(tmp_path: Path) -> None:
    """Many splits of the keys, and prefill over several chunks: the ids are the CPU's."""
    path = tmp_path / "llama.gguf"
    tiny.write("llama", "F32", path)
    prompt = [(7 * i * i + 3) % 250 + 1 for i in range(480)]
    ids = {
        name: greedy(open_engine(path, context=512, chunk=200, kv_dtype="f16", device=name), prompt, 30)
        for name in ("metal", "cpu")
    }
    assert ids["metal"] == ids["cpu"]


@pytest.mark.parametrize("name", ["temperature", "top_k", "typical_p", "everything", "whole context", "bias"])
def test_drawn_ids_equal_the_cpus(name: str, folder: Path) -> None:
    """With the same random numbers."""
    path = folder / "llama-drawn.gguf"
    tiny.write("llama", "F32", path)
    for seed in (1, (1 << 64) - 1):
        ids = {
            device: run(open_engine(path, device=device), [1, 17, 42, 200], 40, GRID[name], seed, chain=16)
            for device in ("metal", "cpu")
        }
        assert ids["metal"] == ids["cpu"]


@pytest.mark.parametrize("chain", [1, 7])
def test_logprobs_are_those_of_the_logits(chain: int, folder: Path) -> None:
    path = folder / "llama-logprobs.gguf"
    tiny.write("llama", "F32", path)
    engine, prompt = open_engine(path), [1, 17, 42, 200]
    chunks = [start(engine, prompt, Settings(temperature=0.7, top_k=3), 9, logprobs=5)]
    chunks += [engine.decode(chain) for _ in range(0, 20, chain)]
    ids = [token for chunk in chunks for token in chunk.ids]
    found = [value for chunk in chunks for value in chunk.logprobs]
    tops = [row for chunk in chunks for row in chunk.top_logprobs]
    logits = engine.logits(prompt + ids)[len(prompt) - 1 : -1].astype(np.float64)
    expected = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(found, expected[np.arange(len(ids)), ids], atol=2e-5)
    for row, exact in zip(tops, expected, strict=True):
        np.testing.assert_allclose([value for _, value in row], -np.sort(-exact)[:5], atol=2e-5)
        np.testing.assert_allclose([exact[token] for token, _ in row], [v for _, v in row], atol=2e-5)


@pytest.mark.parametrize(
    ("shape", "why"),
    [((1, 1, 520), r"heads have 520 elements \(512 at most\)")],
)
def test_heads_that_no_kernel_takes_are_named(shape: tuple[int, int, int], why: str) -> None:
    device = lab(Target("metal"))
    problem = case("attention", rows=2, position=0, shape=shape, kv="f16").build(device, checking=False)
    with pytest.raises(UnsupportedError, match=f"no Metal kernel for .*: {why}; the CPU runs such models"):
        runner.run(problem, device)
