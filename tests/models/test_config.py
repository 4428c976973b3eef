"""`akunu.files.describe.gguf_config.resolve`: what it finds in every architecture, and what it refuses."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from akunu.base.errors import AkunuError, ModelFileError, UnsupportedError
from akunu.files.describe.architectures import ARCHITECTURES
from akunu.files.describe.config import ModelConfig, ModelSpec
from akunu.files.describe.config_keys import CONFIG_KEYS, NEUTRAL_VALUES
from akunu.files.describe.config_numbers import DecoderSizes, ExpertSizes, LatentSizes, decoder_sizes
from akunu.files.describe.gguf_config import resolve
from akunu.files.describe.hf_numbers import HfNumbers
from akunu.files.describe.recurrent import RecurrentSizes
from akunu.files.describe.tensor_map import TensorRef

from . import convert, tiny
from .source import Tensor


class FakeFile:
    """A file that is only its header and its rotary divisors."""

    def __init__(self, name: str) -> None:
        row = tiny.ALL[name]
        self.row = row
        self.metadata: dict[str, object] = {"general.architecture": row.arch, **convert.metadata(row)}
        self.arrays = _arrays(name)
        self._tensors = {
            key: Tensor(key, "f32", array.shape, array.nbytes) for key, array in self.arrays.items()
        }

    @property
    def tensors(self) -> list[Tensor]:
        return list(self._tensors.values())

    def tensor_bytes(self, name: str) -> npt.NDArray[np.uint8]:
        return np.frombuffer(self.arrays[name].tobytes(), np.uint8)

    def key(self, suffix: str) -> str:
        return f"{self.row.arch}.{suffix}"

    def set(self, suffix: str, value: object) -> FakeFile:
        self.metadata[self.key(suffix)] = value
        return self

    def change(self, name: str, **fields: object) -> FakeFile:
        self._tensors[name] = dataclasses.replace(self._tensors[name], **fields)  # type: ignore[arg-type]
        return self

    def add(self, name: str, shape: tuple[int, ...]) -> FakeFile:
        self._tensors[name] = Tensor(name, "f32", shape, 4 * math.prod(shape))
        return self

    def drop(self, name: str) -> FakeFile:
        del self._tensors[name]
        return self

    def layers(self, n: int) -> FakeFile:
        """The same model with `n` layers."""
        for name, tensor in list(self._tensors.items()):
            if name.startswith("blk."):
                del self._tensors[name]
                suffix = name.split(".", 2)[2]
                for layer in range(n):
                    self.add(f"blk.{layer}.{suffix}", tensor.shape)
        return self.set("block_count", n)


_CACHE: dict[str, dict[str, npt.NDArray[np.float32]]] = {}


def _arrays(name: str) -> dict[str, npt.NDArray[np.float32]]:
    if name not in _CACHE:
        _CACHE[name] = convert.tensors(tiny.ALL[name], tiny.weights(tiny.ALL[name]))
    return _CACHE[name]


def layer_tensors(spec: ModelSpec) -> set[str]:
    return {name.split(".", 2)[2] for name in spec.tensors if name.startswith("layers.")}


def rope_scales(config: ModelConfig) -> tuple[float, ...]:
    return tuple(rope.scale for rope in config.rope_sets)


# --- what it finds ---


@pytest.mark.parametrize("name", tiny.ALL)
def test_numbers_of_every_model(name: str) -> None:
    row = tiny.ALL[name]
    spec = resolve(FakeFile(name), context=tiny.CONTEXT)
    config = spec.config
    for field in (
        "n_layers",
        "dim",
        "n_heads",
        "n_kv_heads",
        "head_dim",
        "ffn_dim",
        "vocab_size",
        "rope_dim",
    ):
        assert getattr(config, field) == getattr(row, field), field
    assert config.arch == row.arch
    assert config.context_length == row.context_length
    assert config.norm_eps == pytest.approx(row.norm_eps)
    assert len(config.rope_sets) == (2 if row.local_theta else 1)
    for rope in config.rope_sets:
        assert rope.inv_freq.dtype == np.float32 and rope.inv_freq.shape == (row.rope_dim // 2,)
        assert not rope.inv_freq.flags.writeable
    assert config.attn_scale == pytest.approx(row.head_dim**-0.5)
    assert config.embedding_scale == (math.sqrt(row.dim) if row.is_gemma else 1.0)
    assert config.activation == ("gelu_tanh" if row.is_gemma else "silu")
    assert config.rope_style == ("interleaved" if row.arch == "llama" else "half")
    assert ("output" in spec.tensors) is not row.tied
    assert len(config.layer_window) == len(config.layer_rope) == row.n_layers


def test_canonical_names_of_a_plain_model() -> None:
    spec = resolve(FakeFile("llama"))
    assert layer_tensors(spec) == {
        "attn_norm", "attn_q", "attn_k", "attn_v", "attn_output",
        "ffn_norm", "ffn_gate", "ffn_up", "ffn_down",
    }  # fmt: skip
    assert spec.tensors["token_embedding"] == TensorRef("token_embd.weight", 0, 263, 96)
    assert spec.tensors["output_norm"] == TensorRef("output_norm.weight", 0, 96, 0)
    assert spec.tensors["layers.2.attn_k"] == TensorRef("blk.2.attn_k.weight", 0, 128, 96)


@pytest.mark.parametrize(
    ("name", "extra"),
    [
        ("qwen2", {"attn_q_bias", "attn_k_bias", "attn_v_bias"}),
        (
            "llama_bias",
            {"attn_q_bias", "attn_k_bias", "attn_v_bias", "attn_output_bias"}
            | {"ffn_gate_bias", "ffn_up_bias", "ffn_down_bias"},
        ),
        ("qwen3", {"attn_q_norm", "attn_k_norm"}),
        ("gemma2", {"post_attn_norm", "post_ffn_norm"}),
        ("gemma3", {"attn_q_norm", "attn_k_norm", "post_attn_norm", "post_ffn_norm"}),
    ],
)
def test_canonical_names_beyond_a_plain_model(name: str, extra: set[str]) -> None:
    assert layer_tensors(resolve(FakeFile(name))) - layer_tensors(resolve(FakeFile("llama"))) == extra


def test_fused_tensors_are_slices_of_rows() -> None:
    tensors = resolve(FakeFile("phi3")).tensors
    assert tensors["layers.1.attn_q"] == TensorRef("blk.1.attn_qkv.weight", 0, 192, 192)
    assert tensors["layers.1.attn_k"] == TensorRef("blk.1.attn_qkv.weight", 192, 96, 192)
    assert tensors["layers.1.attn_v"] == TensorRef("blk.1.attn_qkv.weight", 288, 96, 192)
    assert tensors["layers.1.ffn_gate"] == TensorRef("blk.1.ffn_up.weight", 0, 256, 192)
    assert tensors["layers.1.ffn_up"] == TensorRef("blk.1.ffn_up.weight", 256, 256, 192)


def test_windows_of_the_layers() -> None:
    def windows(file: FakeFile) -> tuple[int, ...]:
        return resolve(file).config.layer_window

    assert windows(FakeFile("llama")) == (0, 0, 0)
    assert windows(FakeFile("mistral")) == (12, 12, 12)
    assert windows(FakeFile("gemma2")) == (12, 0, 12, 0)
    assert windows(FakeFile("gemma3")) == (12, 12, 12, 12, 12, 0, 12)
    assert windows(FakeFile("gemma3").set("attention.sliding_window_pattern", 2)) == (12, 0, 12, 0, 12, 0, 12)
    flags = [False, True, False, True, False, True, False]
    assert windows(FakeFile("gemma3").set("attention.sliding_window_pattern", flags)) == (
        0,
        12,
        0,
        12,
        0,
        12,
        0,
    )
    assert windows(FakeFile("gemma2").set("attention.sliding_window", 0)) == (0, 0, 0, 0)


def test_defaults_of_gemma2() -> None:
    file = FakeFile("gemma2")
    for suffix in ("attn_logit_softcapping", "final_logit_softcapping", "attention.sliding_window"):
        del file.metadata[file.key(suffix)]
    config = resolve(file).config
    assert (config.attn_softcap, config.final_softcap, config.layer_window) == (
        50.0,
        30.0,
        (4096, 0, 4096, 0),
    )


def test_local_theta_of_gemma3() -> None:
    config = resolve(FakeFile("gemma3")).config
    assert config.layer_rope == (1, 1, 1, 1, 1, 0, 1)
    index = np.arange(0, 96, 2) / 96
    np.testing.assert_allclose(config.rope_sets[0].inv_freq, 1e6**-index / 8.0, rtol=1e-6)
    np.testing.assert_allclose(config.rope_sets[1].inv_freq, 1e4**-index, rtol=1e-6)
    # without windows there is no local layer, and the theta may be given in the file
    assert resolve(FakeFile("gemma3").set("attention.sliding_window", 0)).config.layer_rope == (0,) * 7
    config = resolve(FakeFile("gemma3").set("rope.freq_base_swa", 5000.0)).config
    np.testing.assert_allclose(config.rope_sets[1].inv_freq, 5000.0**-index, rtol=1e-6)


@pytest.mark.parametrize(("name", "n_layers"), [("gemma2", 46), ("gemma3", 62)])
def test_the_27b_gemmas_scale_queries_by_dim_over_heads(name: str, n_layers: int) -> None:
    row = tiny.ALL[name]
    assert resolve(FakeFile(name).layers(n_layers)).config.attn_scale == (row.dim / row.n_heads) ** -0.5
    assert resolve(FakeFile(name).layers(n_layers - 1)).config.attn_scale == row.head_dim**-0.5


def test_a_given_attention_scale_wins() -> None:
    assert resolve(FakeFile("llama").set("attention.scale", 0.25)).config.attn_scale == 0.25


def test_yarn_is_for_the_layers_without_a_local_theta() -> None:
    file = FakeFile("gemma3_yarn")
    config = resolve(file).config
    assert rope_scales(config) == (pytest.approx(1 + 0.1 * math.log(4.0)), 1.0)
    np.testing.assert_allclose(config.rope_sets[1].inv_freq, 1e4 ** -(np.arange(0, 96, 2) / 96), rtol=1e-6)
    # llama.cpp's factor for all kinds of scaling is for all layers, that of YaRN is not.
    file.set("rope.scaling.attn_factor", 2.0).set("rope.scaling.yarn_attn_factor", 1.5)
    assert rope_scales(resolve(file).config) == (3.0, 2.0)


def test_key_value_heads_default_to_the_query_heads() -> None:
    file = FakeFile("llama_linear")
    del file.metadata[file.key("attention.head_count_kv")]
    assert resolve(file).config.n_kv_heads == 2


def test_integers_do_for_floats_and_uniform_arrays_for_numbers() -> None:
    file = FakeFile("llama").set("rope.freq_base", 10000).set("attention.head_count_kv", [2, 2, 2])
    config = resolve(file.set("feed_forward_length", np.array([160, 160, 160]))).config
    assert (config.n_kv_heads, config.ffn_dim) == (2, 160)


# --- rotary scaling ---


def inv_freq(file: FakeFile, context: int | None = None) -> npt.NDArray[np.float32]:
    return resolve(file, context=context).config.rope_sets[0].inv_freq


def test_linear_scaling_by_any_of_its_keys() -> None:
    plain = inv_freq(FakeFile("llama"))
    np.testing.assert_allclose(plain, 1e4 ** -(np.arange(0, 64, 2) / 64), rtol=1e-6)
    scaled = FakeFile("llama").set("rope.scaling.type", "linear").set("rope.scaling.factor", 4.0)
    np.testing.assert_allclose(inv_freq(scaled), plain / 4)
    np.testing.assert_allclose(inv_freq(FakeFile("llama").set("rope.scale_linear", 4.0)), plain / 4)
    off = FakeFile("llama").set("rope.scaling.type", "none").set("rope.scaling.factor", 4.0)
    np.testing.assert_array_equal(inv_freq(off), plain)


def test_llama3_divisors_divide() -> None:
    divisors = _arrays("llama3")["rope_freqs.weight"]
    assert divisors.min() == 1.0 and divisors.max() == 8.0, "the test model spans the whole ramp"
    np.testing.assert_allclose(
        inv_freq(FakeFile("llama3")), 5e5 ** -(np.arange(0, 64, 2) / 64) / divisors, rtol=1e-6
    )


def test_yarn_keeps_high_frequencies_and_divides_low_ones() -> None:
    config = resolve(FakeFile("llama_yarn")).config
    plain = 1e4 ** -(np.arange(0, 80, 2) / 80)
    ratio = plain / config.rope_sets[0].inv_freq
    assert ratio[0] == pytest.approx(1.0) and ratio[-1] == pytest.approx(4.0, rel=1e-6)
    assert np.all(np.diff(ratio) >= -1e-6)
    assert config.rope_sets[0].scale == pytest.approx(1 + 0.1 * math.log(4.0))
    explicit = FakeFile("llama_yarn").set("rope.scaling.yarn_attn_factor", 1.25)
    assert rope_scales(resolve(explicit).config) == (1.25,)


def test_longrope_takes_the_long_divisors_beyond_the_original_context() -> None:
    arrays = _arrays("phi3_short")
    plain = 1e4 ** -(np.arange(0, 96, 2) / 96)
    for context, length in ((128, "short"), (256, "short"), (257, "long"), (None, "long")):
        expected = plain / arrays[f"rope_factors_{length}.weight"]
        np.testing.assert_allclose(inv_freq(FakeFile("phi3_short"), context), expected, rtol=1e-6)
    (scale,) = rope_scales(resolve(FakeFile("phi3_short")).config)
    assert scale == pytest.approx(math.sqrt(1 + math.log(4) / math.log(256)))


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, 1e9])
def test_bad_divisors_are_refused(bad: float) -> None:
    file = FakeFile("llama3")
    file.arrays = {**file.arrays, "rope_freqs.weight": np.full(32, bad, np.float32)}
    with pytest.raises(ModelFileError, match=r"rope_freqs\.weight"):
        resolve(file)


def test_misshapen_divisors_are_refused() -> None:
    with pytest.raises(ModelFileError, match=r"rope_freqs\.weight: found shape \(31,\), expected \(32,\)"):
        resolve(FakeFile("llama3").change("rope_freqs.weight", shape=(31,)))
    with pytest.raises(UnsupportedError, match=r"rope_freqs\.weight: found type f16"):
        resolve(FakeFile("llama3").change("rope_freqs.weight", dtype="f16"))


def test_longrope_without_divisors_is_refused() -> None:
    with pytest.raises(ModelFileError, match="rope_factors_short"):
        resolve(FakeFile("llama").set("rope.scaling.type", "longrope"))
    # The first files of Phi-3 do not say their type.
    for there, missing in (("long", "short"), ("short", "long")):
        file = FakeFile("llama").add(f"rope_factors_{there}.weight", (32,))
        file.set("rope.scaling.original_context_length", 64)
        with pytest.raises(ModelFileError, match=f"rope_factors_{missing}.weight is missing"):
            resolve(file, context=65 if missing == "long" else 64)


@pytest.mark.parametrize("kind", ["dynamic", "llama3", "", 3, ["linear"]])
def test_unknown_scaling_is_refused(kind: object) -> None:
    with pytest.raises(UnsupportedError, match=r"llama\.rope\.scaling\.type.*none, linear, yarn, longrope"):
        resolve(FakeFile("llama").set("rope.scaling.type", kind))


# --- what it refuses ---


def test_an_unknown_architecture_is_named_with_the_known_ones() -> None:
    file = FakeFile("llama")
    file.metadata["general.architecture"] = "mamba"
    with pytest.raises(UnsupportedError, match="'mamba'") as caught:
        resolve(file)
    assert all(name in str(caught.value) for name in ARCHITECTURES)
    file.metadata["general.architecture"] = ["llama"]
    with pytest.raises(UnsupportedError):
        resolve(file)
    del file.metadata["general.architecture"]
    with pytest.raises(ModelFileError, match=r"general\.architecture is missing"):
        resolve(file)


def test_adapters_and_vocabularies_are_not_models() -> None:
    file = FakeFile("llama")
    file.metadata["general.type"] = "adapter"
    with pytest.raises(UnsupportedError, match="adapter"):
        resolve(file)
    with pytest.raises(ModelFileError, match="vocabulary-only"):
        resolve(FakeFile("llama").drop("token_embd.weight"))


REQUIRED = (
    "block_count", "embedding_length", "feed_forward_length", "attention.head_count", "context_length",
    "attention.layer_norm_rms_epsilon",
)  # fmt: skip


@pytest.mark.parametrize("suffix", REQUIRED)
def test_a_missing_key_is_named(suffix: str) -> None:
    file = FakeFile("llama")
    del file.metadata[file.key(suffix)]
    with pytest.raises(ModelFileError, match=f"llama.{suffix} is missing"):
        resolve(file)


HOSTILE = (0, -1, 1 << 31, 1 << 63, 1 << 200, 3.5, math.nan, True, "64", None, b"\0", [1, 2], [])


@pytest.mark.parametrize("value", HOSTILE, ids=repr)
@pytest.mark.parametrize("suffix", REQUIRED[:-1])
def test_a_hostile_size_is_refused(suffix: str, value: object) -> None:
    with pytest.raises(AkunuError, match=f"llama.{suffix}"):
        resolve(FakeFile("llama").set(suffix, value))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -1.0, "1", True, [1.0, 2.0, 3.0]], ids=repr)
@pytest.mark.parametrize(
    "suffix",
    ["attention.layer_norm_rms_epsilon", "rope.freq_base", "rope.scaling.factor", "attention.scale",
     "rope.scaling.attn_factor", "attn_logit_softcapping", "final_logit_softcapping"],
)  # fmt: skip
def test_a_hostile_float_is_refused(suffix: str, value: object) -> None:
    with pytest.raises(AkunuError, match=f"gemma2.{suffix}"):
        resolve(FakeFile("gemma2").set(suffix, value))


@pytest.mark.parametrize(
    ("suffix", "value", "message"),
    [
        ("attention.head_count_kv", 3, "expected a divisor of the 4 heads"),
        (
            "attention.head_count_kv",
            [2, 4, 2],
            "blk.1.attn_k.weight: found shape (128, 96), expected (256",
        ),
        ("attention.head_count_kv", [2, 2], "found an array of 2"),
        ("feed_forward_length", [160, 160, 96], "tensor blk.2.ffn_gate.weight: found shape (160, 96)"),
        ("attention.value_length", 32, "only the key's 64 is supported"),
        ("rope.dimension_count", 63, "expected an even number"),
        ("rope.dimension_count", 66, "up to the head size 64"),
        ("attention.sliding_window", -1, "found -1"),
        ("attention.sliding_window_pattern", [True], "one flag for each of the 3 layers"),
        ("attention.sliding_window_pattern", -2, "found -2"),
        ("attention.sliding_window_pattern", "all", "found 'all'"),
        ("embedding_length", 98, "token_embd.weight: found shape (263, 96), expected (263, 98)"),
        ("block_count", 4, "tensor blk.3.attn_norm.weight is missing"),
        ("block_count", 2, "tensor blk.2.attn_norm.weight: the architecture llama with 2 layers"),
        ("expert_count", 8, "llama.expert_used_count is missing"),
        ("expert_group_count", 8, "found 8, but this feature is not supported"),
        ("ssm.state_size", 16, "not supported"),
        ("logit_scale", 0.5, "not supported"),
        ("attention.causal", False, "not supported"),
        ("rope.scaling.yarn_log_multiplier", 0.1, "not supported"),
    ],
)
def test_a_wrong_value_is_explained(suffix: str, value: object, message: str) -> None:
    with pytest.raises(AkunuError) as caught:
        resolve(FakeFile("llama").set(suffix, value))
    assert message in str(caught.value)


@pytest.mark.parametrize("suffix", NEUTRAL_VALUES)
def test_neutral_values_pass(suffix: str) -> None:
    for value in NEUTRAL_VALUES[suffix]:
        resolve(FakeFile("llama").set(suffix, value))


@pytest.mark.parametrize("name", ["llama", "llama_bias", "qwen2", "qwen3", "gemma2"])
def test_q_k_and_v_may_be_one_tensor(name: str) -> None:
    plain, file = resolve(FakeFile(name)).tensors, FakeFile(name)
    shapes = {tensor.name: tensor.shape for tensor in file.tensors}
    for source in [source for source in shapes if ".attn_q." in source]:
        parts = [source.replace("attn_q", f"attn_{part}") for part in "qkv"]
        for part in parts:
            file.drop(part)
        rows = sum(shapes[part][0] for part in parts)
        file.add(source.replace("attn_q", "attn_qkv"), (rows, *shapes[source][1:]))
    found = resolve(file).tensors
    assert found.keys() == plain.keys()
    for layer in range(file.row.n_layers):
        for kind, suffix in (("weight", ""), ("bias", "_bias")):
            first = 0
            for part in "qkv":
                key = f"layers.{layer}.attn_{part}{suffix}"
                if key in plain:
                    source = f"blk.{layer}.attn_qkv.{kind}"
                    assert found[key] == dataclasses.replace(plain[key], source=source, first_row=first)
                    first += plain[key].n_rows


@pytest.mark.parametrize("name", tiny.ALL)
def test_a_file_that_llama_cpp_has_saved_is_the_same_model(name: str) -> None:
    # It writes all that it knows, whatever the architecture has: what is not set is 0 or its default.
    plain, saved = resolve(FakeFile(name)).config, FakeFile(name)
    caps = {"attn_logit_softcapping": 50.0, "final_logit_softcapping": 0.0 if "gemma3" in name else 30.0}
    zeros = (
        "attention.layer_norm_epsilon", "attention.scale", "rope.scaling.factor", "ssm.conv_kernel",
        "wkv.head_size", "kda.head_dim", "shortconv.l_cache", "attention.indexer.head_count",
    )  # fmt: skip
    others = {
        "rope.scaling.yarn_ext_factor": -1.0, "rope.scaling.yarn_attn_factor": 1.0, "kda.safe_gate": True,
        "kda.gate_lower_bound": -math.inf, "attention.indexer.kpool_select_tail": True,
    }  # fmt: skip
    for suffix, value in {**caps, **dict.fromkeys(zeros, 0), **others}.items():
        if saved.key(suffix) not in saved.metadata:
            saved.set(suffix, value)
    found, expected = resolve(saved).config.numbers(), plain.numbers()
    assert found.keys() == expected.keys()
    for field, value in found.items():
        np.testing.assert_array_equal(value, expected[field], field)


def test_heads_need_not_divide_the_width_when_the_head_size_is_not_given() -> None:
    file = FakeFile("llama").set("attention.head_count", 9).set("attention.head_count_kv", 9)
    for suffix in ("attention.key_length", "attention.value_length"):
        del file.metadata[file.key(suffix)]
    width = file.row.dim
    size = width // 9
    assert width % 9
    file.set("rope.dimension_count", size)
    for n in range(file.row.n_layers):
        for part in ("q", "k", "v"):
            file.change(f"blk.{n}.attn_{part}.weight", shape=(9 * size, width))
        file.change(f"blk.{n}.attn_output.weight", shape=(width, 9 * size))
    assert resolve(file).config.head_dim == size
    file.change("blk.0.attn_output.weight", shape=(width, width))
    with pytest.raises(ModelFileError, match=r"blk.0.attn_output.weight"):
        resolve(file)


def test_a_size_of_heads_is_named_by_the_key_of_its_class() -> None:
    sizes = {"num_hidden_layers": 2, "hidden_size": 6, "num_attention_heads": 5, "intermediate_size": 8}
    with pytest.raises(ModelFileError, match=r"config.json: head_dim: found 1, expected an integer from 2"):
        decoder_sizes(HfNumbers(sizes, {}, "llama"))


def test_embedding_and_tokenizer_must_agree() -> None:
    file = FakeFile("llama")
    file.metadata["tokenizer.ggml.tokens"] = ["a"] * 262
    with pytest.raises(ModelFileError, match="263 rows, expected one for each of the 262 tokens"):
        resolve(file)


@pytest.mark.parametrize("name", tiny.ALL)
def test_every_missing_or_misshapen_tensor_is_named(name: str) -> None:
    file = FakeFile(name)
    for tensor in file.tensors:
        if tensor.name in ("output.weight", "token_embd.weight") or tensor.name.startswith("rope_"):
            continue
        with pytest.raises(AkunuError, match=tensor.name):
            resolve(FakeFile(name).drop(tensor.name))
        shape = (tensor.shape[0] + 1, *tensor.shape[1:])
        with pytest.raises(ModelFileError) as caught:
            resolve(FakeFile(name).change(tensor.name, shape=shape))
        assert f"{tensor.name}: found shape {shape}, expected {tensor.shape}" in str(caught.value)


@pytest.mark.parametrize(
    "extra",
    [
        "blk.0.ffn_gate_inp.weight",
        "blk.1.ffn_norm.bias",
        "blk.3.attn_q.weight",
        "output.bias",
        "position_embd.weight",
    ],
)
def test_a_tensor_that_no_rule_knows_is_refused(extra: str) -> None:
    with pytest.raises(UnsupportedError, match=extra):
        resolve(FakeFile("llama").add(extra, (96,)))


def test_a_tensor_that_changes_nothing_is_ignored() -> None:
    assert resolve(FakeFile("llama").add("blk.0.attn_rot_embd.weight", (32,))).tensors.keys() == (
        resolve(FakeFile("llama")).tensors.keys()
    )


def test_an_optional_tensor_is_in_all_layers_or_none() -> None:
    with pytest.raises(ModelFileError, match=r"tensor blk\.0\.attn_q\.bias is missing"):
        resolve(FakeFile("llama").add("blk.1.attn_q.bias", (256,)))


def test_a_repeated_tensor_is_refused() -> None:
    class Repeating(FakeFile):
        @property
        def tensors(self) -> list[Tensor]:
            return super().tensors * 2

    with pytest.raises(ModelFileError, match=r"token_embd\.weight appears twice"):
        resolve(Repeating("llama"))


def test_a_quantised_vector_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"blk\.0\.attn_norm\.weight: found type q8_0"):
        resolve(FakeFile("llama").change("blk.0.attn_norm.weight", dtype="q8_0"))


_SUFFIXES = sorted({suffix for key in CONFIG_KEYS.values() for suffix in key.suffixes})
_VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.binary(max_size=8),
    st.lists(st.one_of(st.integers(-1, 300), st.floats(), st.text(max_size=2)), max_size=8),
    st.sampled_from(["none", "linear", "yarn", "longrope", 0, 1, 2, 3, 4, 7, 64, 96, 128, 160, 1e-5, 1e4]),
)


@settings(max_examples=400, deadline=None)
@given(
    name=st.sampled_from(sorted(tiny.ALL)),
    changes=st.dictionaries(
        st.sampled_from(
            [*_SUFFIXES, *NEUTRAL_VALUES, "rope.scaling.type", "attention.sliding_window_pattern"]
        ),
        _VALUES,
        min_size=1,
        max_size=3,
    ),
    context=st.sampled_from([None, 1, 16, 128, 1 << 31]),
)
def test_any_metadata_gives_a_sound_model_or_an_error(
    name: str, changes: dict[str, object], context: int | None
) -> None:
    file = FakeFile(name)
    for suffix, value in changes.items():
        file.set(suffix, value)
    try:
        config = resolve(file, context=context).config
    except AkunuError:
        return
    for rope in config.rope_sets:
        assert np.isfinite(rope.inv_freq).all() and (rope.inv_freq > 0).all()
    assert np.isfinite(rope_scales(config)).all()
    for field in ("attn_scale", "norm_eps", "embedding_scale"):
        value = getattr(config, field)
        assert math.isfinite(value) and value > 0, field
    assert len(config.layer_window) == config.n_layers
    assert all(0 <= window < 1 << 31 for window in config.layer_window)


def test_rows_only_use_symbols_and_fields_that_exist() -> None:
    sizes = DecoderSizes(1, 1, 1, (1,), (1,), (1,), ExpertSizes(1, 1, 1, 1))
    symbols = sizes.symbols(1).keys() | sizes.layer_symbols(0).keys()
    symbols |= LatentSizes(1, 1, 1, 1, 1).symbols(1, 1).keys()
    symbols |= RecurrentSizes("delta_net", 1, 1, 1, 1, 4).symbols(1).keys()
    symbols |= RecurrentSizes("short_convolution", taps=3).symbols(1).keys()
    for row in ARCHITECTURES.values():
        assert row.defaults.keys() <= CONFIG_KEYS.keys()
        for kind in row.layers.values():
            for file in ("source", "hf"):  # some rules are for one kind of files alone
                rules = [rule for rule in (*row.tensors, *kind.tensors) if getattr(rule, file)]
                rules = [rule for rule in rules if rule.needs is None]
                # A matrix may have other columns where sizes are others, as queries of latent attention.
                canonical = [(name, rule.cols) for rule in rules for name, _ in rule.parts]
                assert len(canonical) == len(set(canonical)), row.name
        for rule in row.rules:
            assert {symbol for _, symbol in rule.parts} | ({rule.cols, rule.count} - {None}) <= symbols
