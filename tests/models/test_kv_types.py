"""Caches of Q4_0, and of keys and values with types of their own; what is refused, and where."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import akunu
from akunu import _core
from akunu.files.describe.filetypes import KV_DTYPES, kv_dtypes
from akunu.loading.engines import open_engine

from . import families, tiny
from .test_engine import nmse
from .test_families import open_gguf

NAME = "gemma4_heads"  # windows, shared caches, heads of two sizes
PAIRS = ("q4_0", "q8_0,q4_0", "q4_0,q8_0", "f16,q4_0", "f32,q8_0")
BYTES = {"f16": 2.0, "f32": 4.0, "q8_0": 1.125, "q4_0": 0.5625}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return families.write_gguf(families.ALL[NAME], tmp_path_factory.mktemp("kv") / "model.gguf")


def engine(path: Path, kv_dtype: str, **options: int) -> _core.Engine:
    return open_gguf(path, device="cpu", kv_dtype=kv_dtype, **options)


@pytest.mark.parametrize("kv_dtype", PAIRS)
def test_phases_agree_to_the_bit(path: Path, kv_dtype: str) -> None:
    golden = tiny.golden(NAME)
    ids = golden.prompt + golden.ids
    whole = engine(path, kv_dtype).logits(ids)
    for chunk in (1, 3, 16):
        assert np.array_equal(engine(path, kv_dtype, chunk=chunk).logits(ids), whole)
    assert np.array_equal(engine(path, kv_dtype, threads=1).logits(ids), whole)


def test_fewer_bits_lose_more(path: Path) -> None:
    ids = tiny.golden(NAME).prompt
    exact = engine(path, "f32").logits(ids)
    errors = [nmse(engine(path, kv).logits(ids), exact) for kv in ("f16", "q8_0", "q8_0,q4_0", "q4_0")]
    assert 0 < errors[0] < errors[1] < errors[2] < errors[3] < 0.2


@pytest.mark.parametrize("kv_dtype", [*KV_DTYPES, *PAIRS])
def test_a_page_has_the_bytes_of_both_types(path: Path, kv_dtype: str) -> None:
    opened = engine(path, kv_dtype)
    k, v = kv_dtypes(kv_dtype)
    assert opened.kv_dtype == kv_dtype
    whole = engine(path, "f32").pages["page_bytes"]
    assert opened.pages["page_bytes"] / whole == pytest.approx((BYTES[k] + BYTES[v]) / 8, rel=0.02)


@pytest.mark.parametrize("kv_dtype", PAIRS)
def test_a_device_keeps_what_the_cpu_keeps(path: Path, kv_dtype: str) -> None:
    """Prompts and single rows are both compared: devices have other kernels for each."""
    ids = tiny.golden(NAME).prompt
    expected = engine(path, kv_dtype).logits(ids)
    for chunk in (16, 1):
        opened = open_gguf(path, kv_dtype=kv_dtype, chunk=chunk)
        assert opened.kv_dtype == kv_dtype
        assert nmse(opened.logits(ids), expected) < 2e-3


@pytest.mark.parametrize("kv_dtype", ["q4_0", "q8_0,q4_0", "f16,f32"])
@pytest.mark.parametrize("device", ["plan:M4 Max", "plan:H100"])
def test_a_plan_for_a_gpu_has_pages_of_both_types(device: str, kv_dtype: str) -> None:
    bytes_of = BYTES | {"q8_0": 1.0625}  # a scale is an F16
    k, v = (bytes_of[name] for name in kv_dtypes(kv_dtype))
    pages = {}
    for kind in ("f32", kv_dtype):
        with open_engine("llama3.2-1b:q4_0", device=device, kv_dtype=kind) as opened:
            pages[kind] = opened.engine.pages["page_bytes"]
    assert pages[kv_dtype] / pages["f32"] == pytest.approx((k + v) / 8, rel=0.01)


def test_latent_attention_keeps_keys_alone(tmp_path: Path) -> None:
    path = families.write_gguf(families.ALL["deepseek_v3"], tmp_path / "model.gguf")
    with pytest.raises(akunu.UnsupportedError, match="kv_dtype q8_0,q4_0: latent attention keeps keys alone"):
        engine(path, "q8_0,q4_0")
    ids = tiny.golden("deepseek_v3").prompt
    whole = engine(path, "q4_0").logits(ids)
    assert np.array_equal(engine(path, "q4_0", chunk=7).logits(ids), whole)


@pytest.mark.parametrize("names", ["q4", "q8_0,", ",q8_0", "q8_0,q4_0,f16", "q8_0, q4_0", "", None, 8])
def test_other_names_are_none(names: object) -> None:
    with pytest.raises(akunu.InvalidArgumentError, match=r"kv_dtype: no .*; there is f16, f32, q8_0, q4_0"):
        kv_dtypes(names)
