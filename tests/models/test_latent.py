"""Multi-head latent attention: what it keeps, each way that files store it, and batches of sequences."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import gguf
import numpy as np
import pytest

from akunu import _core
from akunu._core import PAGE
from akunu.base.errors import ModelFileError, UnsupportedError
from akunu.files.describe.blocks import Experts, LatentAttention
from akunu.files.describe.gguf_config import resolve
from akunu.files.describe.hf_config import resolve_hf
from akunu.loading.synthetic import SyntheticModel
from formats import mlx_planes

from . import convert, families, tiny
from .test_engine import nmse
from .test_families import CONTEXT, open_folder, open_gguf
from .test_fp8_folder import FORMS, coded
from .test_same_output import Mixes

Arrays = families.Arrays
NAMES = [name for name, row in families.ALL.items() if "kv_lora_rank" in row.settings]


def in_one(arrays: Arrays) -> Arrays:
    """The weights of keys and of values of heads in one tensor, as files before 2025 have them."""
    out: Arrays = {}
    for name, array in arrays.items():
        if ".attn_k_b." in name:
            value = arrays[name.replace("attn_k_b", "attn_v_b")]
            both = np.concatenate([array.swapaxes(1, 2), value], axis=1)
            out[name.replace("attn_k_b", "attn_kv_b")] = both.reshape(-1, both.shape[-1])
        elif ".attn_v_b." not in name:
            out[name] = array
    return out


@pytest.mark.parametrize("dtype", ["F32", "F16", "Q8_0"])
@pytest.mark.parametrize("name", ["deepseek_v2", "glm4_moe_lite"])
def test_older_files_have_keys_and_values_in_one(name: str, dtype: str, tmp_path: Path) -> None:
    row, golden = families.ALL[name], tiny.golden(name)
    keys = {
        "attention.key_length_mla": None,
        "attention.value_length_mla": None,
        "attention.key_length": row.keys["attention.key_length_mla"],
        "attention.value_length": 40,
        "attention.head_count_kv": row.settings["num_attention_heads"],
    }
    path = families.write_gguf(row, tmp_path / "old.gguf", dtype, in_one, **keys)
    found = open_gguf(path).logits(golden.prompt)
    if dtype == "F32":
        assert nmse(found, golden.logits) < 1e-8
    errors = [nmse(a, b) for a, b in zip(found, golden.logits, strict=True)]
    assert np.median(errors) < 0.02


def test_ollamas_files_have_the_lengths_of_keys_the_other_way_around(tmp_path: Path) -> None:
    row, golden = families.ALL["glm4_moe_lite"], tiny.golden("glm4_moe_lite")
    own = {key.replace("deepseek2.", "glm4moelite."): value for key, value in families.keys(row).items()}
    prefix = "glm4moelite.attention."
    for part in ("key", "value"):
        pair = [f"{prefix}{part}_length", f"{prefix}{part}_length_mla"]
        own[pair[0]], own[pair[1]] = own[pair[1]], own[pair[0]]
    writer = gguf.GGUFWriter(str(tmp_path / "ollama.gguf"), "glm4moelite")
    for key, value in own.items():
        convert.add_value(writer, key, value)
    convert.add_tokenizer(writer, row.vocab_size)
    convert.add_tensors(writer, families.gguf_tensors(row), "F32")
    convert.finish(writer)
    assert nmse(open_gguf(tmp_path / "ollama.gguf").logits(golden.prompt), golden.logits) < 1e-8


def test_a_position_keeps_one_row_for_all_heads(tmp_path: Path) -> None:
    path = families.write_gguf(families.ALL["glm4_moe_lite"], tmp_path / "model.gguf")
    sizes = {kv: open_gguf(path, kv_dtype=kv).pages["page_bytes"] / PAGE for kv in ("f32", "f16")}
    values = 3 * (64 + 16)  # layers, and of each a latent and a rotated key
    assert sizes == {"f32": 4 * values, "f16": 2 * values}


@pytest.mark.parametrize("kv", ["f16", "q8_0"])
@pytest.mark.parametrize("name", ["deepseek_v3", "glm4_moe_lite"])
def test_other_types_of_the_cache_give_the_same_bits_in_every_phase(
    name: str, kv: str, tmp_path: Path
) -> None:
    golden, path = tiny.golden(name), families.write_gguf(families.ALL[name], tmp_path / "model.gguf")
    ids = golden.prompt + golden.ids
    whole = open_gguf(path, kv_dtype=kv).logits(ids)
    for chunk in (1, 7):
        assert np.array_equal(open_gguf(path, kv_dtype=kv, chunk=chunk).logits(ids), whole)
    assert np.array_equal(open_gguf(path, kv_dtype=kv, threads=1).logits(ids), whole)
    errors = [nmse(a, b) for a, b in zip(whole, golden.logits, strict=False)]
    assert np.median(errors) < (1e-3 if kv == "f16" else 2e-2)


@pytest.mark.parametrize("name", ["deepseek_v3", "glm4_moe_lite", "mistral4"])
def test_a_sequence_is_what_it_is_alone(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In batches, in chunks, with drafts that are verified, after a prefix that was found again."""
    path = families.write_gguf(families.ALL[name], tmp_path / "model.gguf")
    Mixes(path, tmp_path / "pages").run(3, monkeypatch)


def test_the_gating_is_told_by_the_bias_that_chooses(tmp_path: Path) -> None:
    """First files of GLM 4.7 Flash, and others of DeepSeek V3's kind, do not name it."""
    for name, gating in (("glm4_moe_lite", "sigmoid"), ("deepseek_v2", "softmax"), ("mistral4", "softmax")):
        path = families.write_gguf(families.ALL[name], tmp_path / f"{name}.gguf")
        config = resolve(_core.GgufFile(str(path)), context=CONTEXT).config
        assert {experts.router.gating for experts in config.mixers(Experts)} == {gating}


@pytest.mark.parametrize(
    ("keys", "error", "message"),
    [
        ({"attention.kv_lora_rank": None}, ModelFileError, "attention.kv_lora_rank is missing"),
        ({"attention.kv_lora_rank": 48}, ModelFileError, r"attn_kv_a_mqa.weight: found shape \(80, 96\)"),
        (
            {"attention.key_length_mla": 12},
            ModelFileError,
            "key_length_mla: found 12, expected more than the 16",
        ),
        ({"attention.q_lora_rank": None}, ModelFileError, r"attn_q\.weight is missing"),
        ({"attention.indexer.top_k": 8}, UnsupportedError, "indexer.top_k: found 8"),
    ],
)
def test_keys_that_do_not_fit_are_refused(
    keys: dict[str, object], error: type[Exception], message: str, tmp_path: Path
) -> None:
    path = families.write_gguf(families.ALL["deepseek_v3"], tmp_path / "model.gguf", **keys)
    with pytest.raises(error, match=message):
        resolve(_core.GgufFile(str(path)))


def test_settings_of_a_folder(tmp_path: Path) -> None:
    """Halves of a key rotate where it says so, and a null is no rank of queries."""

    def of(name: str, **settings: object) -> tuple[str, int]:
        path = families.write_folder(families.ALL[name], tmp_path / name, **settings)
        files = _core.SafetensorsFiles([str(path / "model.safetensors")])
        config = resolve_hf(
            json.loads((path / "config.json").read_text()), files.tensors, context=CONTEXT
        ).config
        return config.rope_style, config.mixers(LatentAttention)[0].q_rank

    assert of("deepseek_v2") == ("interleaved", 0)
    assert of("deepseek_v3", rope_interleave=False) == ("half", 64)


def biased(change: Callable[[str], bool]) -> Callable[[Arrays], Arrays]:
    def add(arrays: Arrays) -> Arrays:
        rng = np.random.RandomState(5)
        sizes = {"q_a_proj": 64, "kv_a_proj_with_mqa": 80, "o_proj": 96}
        more = {
            f"model.layers.{n}.self_attn.{part}.bias": rng.randn(size).astype(np.float32)
            for n in range(3)
            for part, size in sizes.items()
            if change(part)
        }
        return arrays | more

    return add


def test_biases_are_there_where_the_configuration_says_so(tmp_path: Path) -> None:
    row, golden = families.ALL["deepseek_v3"], tiny.golden("deepseek_v3")
    path = families.write_folder(row, tmp_path / "biased", biased(lambda part: True), attention_bias=True)
    assert nmse(open_folder(path).logits(golden.prompt), golden.logits) > 1e-3
    path = families.write_folder(row, tmp_path / "unasked", biased(lambda part: part == "q_a_proj"))
    with pytest.raises(ModelFileError, match="set attention_bias to true"):
        open_folder(path)


@pytest.mark.parametrize("shape", ["deepseek-v2-lite", "glm-4.7-flash-6-layers"])
def test_published_shapes_are_models(shape: str) -> None:
    model = SyntheticModel(f"{shape}:q4_k_m")
    config = resolve(model, context=4096).config
    kept = {(each.latent, each.rope_dim) for each in config.mixers(LatentAttention)}
    assert kept == {(512, 64)} and len(config.mixers(Experts)) == config.n_layers - 1
    names = {tensor.name for tensor in model.tensors}
    assert ("blk.0.attn_q.weight" in names) == (shape == "deepseek-v2-lite")


@pytest.mark.parametrize("kind", ["fp8", "mlx"])
def test_quantised_weights_of_keys_and_values_are_turned(kind: str, tmp_path: Path) -> None:
    """In FP8 with scales of tiles, as DeepSeek V3 is published, and and in MLX's planes."""

    def quantised(arrays: families.Arrays, *, values: bool) -> dict[str, np.ndarray]:
        out: dict[str, np.ndarray] = {}
        for name, array in arrays.items():
            if not name.endswith("kv_b_proj.weight"):
                out[name] = array
            elif kind == "fp8":
                out |= coded("weight_scale_inv", (64, 32), values)({name: array})
            else:
                planes = mlx_planes.quantize(array, 8, 64, "F32")
                stem = name.removesuffix("weight")
                parts = {"weight": planes.codes, "scales": planes.scales, "biases": planes.biases}
                out |= {name: planes.values(8)} if values else {stem + key: x for key, x in parts.items()}
        return out

    settings = {
        "fp8": {"quantization_config": FORMS["small blocks"][0]},
        "mlx": {"quantization": {"group_size": 64, "bits": 8}},
    }[kind]
    row, prompt = families.ALL["deepseek_v3"], tiny.golden("deepseek_v3").prompt
    path = families.write_folder(row, tmp_path / "codes", partial(quantised, values=False), **settings)
    plain = families.write_folder(row, tmp_path / "values", partial(quantised, values=True))
    assert nmse(open_folder(path).logits(prompt), open_folder(plain).logits(prompt)) < 1e-6
