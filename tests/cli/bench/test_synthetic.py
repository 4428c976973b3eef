"""Random models: the published sizes, llama.cpp's mix of types, and files that are valid."""

from __future__ import annotations

import collections
import dataclasses
import math

import gguf
import gguf.quants
import numpy as np
import pytest

import akunu
from akunu.base.errors import InvalidArgumentError
from akunu.cli.bench.gguf_file import LAYOUTS, random_blocks, write_gguf
from akunu.files.describe.filetypes import FILE_TYPES, block_of
from akunu.files.describe.gguf_config import resolve
from akunu.loading.shapes import SHAPES
from akunu.loading.synthetic import SyntheticModel, llama3_divisors

# Parameters as their publishers state them, in millions; an embedding that is also the output counts once.
PUBLISHED = {
    "stories15m": 15.2,
    "smollm-135m": 134.5,
    "smollm-360m": 361.8,
    "smollm2-1.7b": 1711.4,
    "tinyllama-1.1b": 1100.0,
    "llama3.2-1b": 1235.8,
    "llama3.2-3b": 3212.7,
    "llama3.1-8b": 8030.3,
    "mistral-7b": 7248.0,
    "qwen2.5-0.5b": 494.0,
    "qwen2.5-1.5b": 1543.7,
    "qwen3-0.6b": 596.0,
    "qwen3-1.7b": 1720.6,
    "qwen3-4b": 4022.5,
    "qwen3-8b": 8190.7,
    "gemma2-2b": 2614.3,
    "gemma3-270m": 268.1,
    "gemma3-1b": 999.9,
    "phi3-mini": 3821.1,
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_shapes_have_the_published_number_of_parameters(name):
    n_params = sum(math.prod(t.shape) for t in SyntheticModel(f"{name}:f16").tensors)
    assert n_params / 1e6 == pytest.approx(PUBLISHED[name], rel=1e-3)


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_is_a_model_that_akunu_accepts(name):
    model = SyntheticModel(f"{name}:q4_k_m")
    spec = resolve(model)
    shape = SHAPES[name]
    assert (spec.config.n_layers, spec.config.dim, spec.config.vocab_size) == (
        shape.n_layers,
        shape.dim,
        shape.vocab_size,
    )
    assert set(spec.tensors) == set(model.dtypes)
    assert ("output" in spec.tensors) is not shape.tied


@pytest.mark.parametrize("name", ["smollm-135m", "qwen2.5-0.5b", "llama3.2-1b", "gemma3-1b"])
def test_every_row_is_whole_blocks(name):
    for file_type in FILE_TYPES.keys() - {"q2_0"}:  # gguf lacks it
        for tensor in SyntheticModel(f"{name}:{file_type}").tensors:
            assert tensor.shape[-1] % block_of(tensor.dtype)[0] == 0, file_type
            elems, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[tensor.dtype.upper()]]
            assert tensor.nbytes == math.prod(tensor.shape) // elems * size, file_type


def kinds(name: str) -> collections.Counter[str]:
    return collections.Counter(t.dtype for t in SyntheticModel(name).tensors if len(t.shape) == 2)


def dtype_of(name: str, tensor: str) -> str:
    return {t.name: t.dtype for t in SyntheticModel(name).tensors}[tensor]


def test_q4_k_m_has_more_bits_where_llama_cpp_puts_them():
    # 16 layers: the first and last eighth and every third between, of attn_v and ffn_down
    found = {
        layer for layer in range(16) if dtype_of("llama3.2-1b:q4_k_m", f"blk.{layer}.attn_v.weight") == "q6_k"
    }
    assert found == {0, 1, 4, 7, 10, 13, 14, 15}
    assert kinds("llama3.2-1b:q4_k_m") == {"q4_k": 16 * 5 + 16, "q6_k": 16 + 1}


@pytest.mark.parametrize(
    ("name", "tensor", "dtype"),
    [
        ("qwen3-0.6b:q4_0", "token_embd.weight", "q6_k"),  # tied: the output head's type
        ("qwen3-0.6b:q8_0", "token_embd.weight", "q8_0"),
        ("smollm-135m:q4_0", "token_embd.weight", "q8_0"),  # 576 columns are not whole blocks of 256
        ("llama3.1-8b:q4_0", "token_embd.weight", "q4_0"),
        ("llama3.1-8b:q4_0", "output.weight", "q6_k"),
        ("llama3.1-8b:q4_k_s", "blk.3.attn_v.weight", "q5_k"),
        ("llama3.1-8b:q4_k_s", "blk.4.attn_v.weight", "q4_k"),
        ("llama3.1-8b:q2_k", "blk.9.attn_v.weight", "q4_k"),  # four query heads share it
        ("llama3.2-3b:q2_k", "blk.9.attn_v.weight", "q3_k"),
        ("llama3.1-8b:q2_k", "blk.9.attn_output.weight", "q3_k"),
        ("llama3.1-8b:q3_k_m", "blk.1.ffn_down.weight", "q5_k"),
        ("llama3.1-8b:q3_k_m", "blk.2.ffn_down.weight", "q4_k"),
        ("llama3.1-8b:q3_k_m", "blk.2.ffn_up.weight", "q3_k"),
        ("llama3.1-8b:iq4_nl", "blk.3.ffn_down.weight", "q5_k"),
        ("llama3.1-8b:iq4_xs", "blk.9.attn_v.weight", "q5_k"),
        ("smollm-135m:iq4_xs", "blk.9.attn_q.weight", "iq4_nl"),
        ("smollm-135m:q4_k_m", "blk.0.attn_v.weight", "q8_0"),
        ("smollm-135m:q4_k_m", "blk.9.attn_q.weight", "q5_0"),
        ("qwen3-0.6b:mxfp4", "token_embd.weight", "q8_0"),
        ("qwen3-0.6b:mxfp4", "blk.0.ffn_up.weight", "mxfp4"),
        ("qwen3-0.6b:bf16", "token_embd.weight", "bf16"),
        ("qwen3-0.6b:q4_k_m", "blk.0.attn_norm.weight", "f32"),
    ],
)
def test_types_of_tensors(name, tensor, dtype):
    assert dtype_of(name, tensor) == dtype


@pytest.mark.parametrize("name", ["nonsense:q4_0", "qwen3-0.6b:q9", "qwen3-0.6b", "qwen3-0.6b:", ""])
def test_an_unknown_shape_or_type_is_refused_with_what_is_known(name):
    with pytest.raises(InvalidArgumentError, match=r"known are|expected SHAPE:TYPE"):
        SyntheticModel(name)


def test_llama3_divisors_keep_high_frequencies_and_stretch_low_ones():
    divisors = llama3_divisors(SHAPES["llama3.2-1b"])
    assert divisors.shape == (32,)
    assert divisors[0] == 1
    assert divisors[-1] == 32
    assert np.all(np.diff(divisors) >= 0)


@pytest.mark.parametrize("dtype", [*sorted(set(LAYOUTS) - {"q1_0", "q2_0", "tq2_0"}), "f32", "f16", "bf16"])
def test_random_blocks_are_finite_with_the_spread_of_a_fresh_network(dtype):
    rows, cols = 64, 1024
    blocks = random_blocks(dtype, rows * cols, cols, np.random.default_rng(0))
    elems, size = block_of(dtype)
    assert blocks.size == rows * cols // elems * size
    if dtype in ("f32", "f16"):
        weights = blocks.view(f"<f{size}").astype(np.float64)
    else:
        weights = gguf.quants.dequantize(blocks.reshape(rows, -1), gguf.GGMLQuantizationType[dtype.upper()])
    assert np.isfinite(weights).all()
    assert weights.mean() == pytest.approx(0, abs=0.15 / math.sqrt(cols))  # q4_0's values are -8 to 7
    assert 0.7 < weights.std() * math.sqrt(cols) < 1.3


@pytest.mark.parametrize("name", ["stories15m:q4_k_m", "stories15m:mxfp4"])
def test_a_written_file_is_the_model(name, tmp_path):
    model = SyntheticModel(name)
    path = tmp_path / "model.gguf"
    seen: list[tuple[int, int]] = []
    size = write_gguf(model, path, progress=lambda done, total: seen.append((done, total)))
    assert path.stat().st_size == size
    assert seen[-1][0] == seen[-1][1] == sum(t.nbytes for t in model.tensors)
    reader = gguf.GGUFReader(path)
    found = {
        t.name: (t.tensor_type.name.lower(), tuple(int(n) for n in reversed(t.shape))) for t in reader.tensors
    }
    assert found == {t.name: (t.dtype, t.shape) for t in model.tensors}
    fields = {key: field.contents() for key, field in reader.fields.items() if not key.startswith("GGUF.")}
    for key, value in model.metadata.items():
        assert fields[key] == (pytest.approx(value) if isinstance(value, float) else value)
    tokens = fields["tokenizer.ggml.tokens"]
    assert len(tokens) == len(set(tokens)) == model.shape.vocab_size
    norm = next(t for t in reader.tensors if t.name == "output_norm.weight")
    assert np.all(norm.data == 1)


def test_a_seed_decides_the_weights(tmp_path):
    model = SyntheticModel("stories15m:q4_0")
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        write_gguf(model, tmp_path / name, seed=seed)
    a, b, c = ((tmp_path / name).read_bytes() for name in "abc")
    assert a == b != c


@pytest.mark.parametrize("name", SHAPES)
def test_a_file_says_all_that_the_model_says(name, tmp_path):
    """Widths, heads and windows that are lists, flags and numbers come back from a file as they were."""
    model = SyntheticModel(f"{name}:q4_k_m")
    model.shape = dataclasses.replace(model.shape, vocab_size=300)
    wanted = model.metadata
    model.__dict__["tensors"] = [t for t in model.tensors if t.name == "output_norm.weight"]
    write_gguf(model, tmp_path / "model.gguf")
    fields = {key: field.contents() for key, field in gguf.GGUFReader(tmp_path / "model.gguf").fields.items()}
    for key, value in wanted.items():
        assert fields[key] == (pytest.approx(value) if isinstance(value, float | list) else value)
        if isinstance(value, list):
            assert [type(each) for each in fields[key]] == [type(each) for each in value]


def test_a_file_holds_all_experts(tmp_path):
    model = SyntheticModel("qwen3-30b-a3b:q8_0")
    sizes = {"expert_count": 4, "expert_used_count": 2, "expert_feed_forward_length": 96}
    model.shape = dataclasses.replace(
        model.shape, n_layers=1, dim=64, n_heads=4, n_kv_heads=2, head_dim=32, vocab_size=300, extra=sizes
    )
    path = tmp_path / "model.gguf"
    assert write_gguf(model, path) == path.stat().st_size
    found = {t.name: t for t in gguf.GGUFReader(path).tensors}
    assert {name: tuple(reversed(t.shape.tolist())) for name, t in found.items()} == {
        t.name: t.shape for t in model.tensors
    }
    experts = found["blk.0.ffn_down_exps.weight"].data
    assert experts.shape[:2] == (4, 64)
    assert len({expert.tobytes() for expert in experts}) == 4
    with akunu.load(path) as opened:
        assert np.isfinite(opened.logits([1, 299])).all()


@pytest.mark.parametrize(
    ("name", "tensor"),
    [
        ("gpt-oss-20b:mxfp4", "blk.0.attn_output.bias"),
        ("gpt-oss-20b:mxfp4", "blk.0.ffn_down_exps.bias"),
        ("granite-4-h-tiny-10-layers:q4_k_m", "blk.0.ssm_conv1d.bias"),
    ],
)
def test_models_have_the_biases_that_llama_cpp_wants(name, tensor):
    assert dtype_of(name, tensor) == "f32"
