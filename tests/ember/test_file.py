"""The shipped file, its tokenizer, and the other weight types made from it."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import pytest
from gguf import GGMLQuantizationType as Type
from gguf import quants

import akunu
from tools.ember.export import export, read_gguf
from tools.ember.model_config import Config
from tools.ember.quantize import quantize
from tools.ember.render import CONTROL_TOKENS, TAG_TOKENS, TEMPLATE_PATH

TOKENIZER = TEMPLATE_PATH.parent / "tokenizer.json"


@pytest.fixture(scope="module")
def reader(ember_path: Path) -> gguf.GGUFReader:
    return gguf.GGUFReader(ember_path)


def value(reader: gguf.GGUFReader, key: str) -> object:
    field = reader.get_field(key)
    assert field is not None, key
    return field.contents()


def test_it_fits_in_the_package(ember_path: Path) -> None:
    assert ember_path.stat().st_size <= 10_000_000


def test_metadata_is_complete(reader: gguf.GGUFReader) -> None:
    config = Config()
    expected = {
        "general.architecture": "llama",
        "general.name": "Ember",
        "general.license": "Apache-2.0",
        "general.file_type": 7,
        "llama.context_length": config.context,
        "llama.embedding_length": config.dim,
        "llama.block_count": config.layers,
        "llama.attention.head_count_kv": config.kv_heads,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "qwen2",
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.chat_template": TEMPLATE_PATH.read_text(encoding="utf-8"),
    }
    assert {key: value(reader, key) for key in expected} == expected
    assert "stories" in str(value(reader, "general.description"))
    assert value(reader, "general.sampling.temp") == pytest.approx(0.6)
    tokens = value(reader, "tokenizer.ggml.tokens")
    types = value(reader, "tokenizer.ggml.token_type")
    assert isinstance(tokens, list) and isinstance(types, list)
    assert len(tokens) == len(types) == config.vocab == len(set(tokens))
    assert [types[tokens.index(t)] for t in CONTROL_TOKENS + TAG_TOKENS] == [3, 3, 3, 4, 4]
    assert tokens[value(reader, "tokenizer.ggml.eot_token_id")] == "<|im_end|>"  # type: ignore[index]
    assert tokens[value(reader, "tokenizer.ggml.eos_token_id")] == "<|endoftext|>"  # type: ignore[index]


def test_the_tokenizer_of_the_file_is_the_one_it_was_trained_with(ember_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    trained = tokenizers.Tokenizer.from_file(str(TOKENIZER))
    with akunu.load(str(ember_path)) as model:
        for text in (
            "Once upon a time, there was a fox.",
            "34*27=918",
            "naïve café ☕ 你好",
            "\n\n  two  spaces\t",
            '{"a": 1}',
        ):
            ids = model.tokenize(text, add_special=False)
            assert list(ids) == trained.encode(text, add_special_tokens=False).ids
            assert model.detokenize(ids) == text


WITHIN = {Type.F16: 1e-3, Type.Q8_0: 0.01, Type.Q6_K: 0.03, Type.Q4_K: 0.1, Type.Q4_0: 0.14}


@pytest.mark.parametrize("kind", WITHIN, ids=lambda k: k.name)
@pytest.mark.parametrize("case", ["normal", "long tails", "offset", "zeros", "one value", "tiny"])
def test_quantized_blocks_come_back(kind: Type, case: str) -> None:
    rng = np.random.default_rng(7)
    x = {
        "normal": rng.standard_normal((6, 512)),
        "long tails": rng.standard_t(3, (6, 512)),
        "offset": rng.standard_normal((6, 512)) + 3,
        "zeros": np.zeros((2, 256)),
        "one value": np.full((2, 256), -0.3),
        "tiny": rng.standard_normal((4, 256)) * 1e-3,
    }[case].astype(np.float32)
    back = quants.dequantize(np.asarray(quantize(x, kind)), kind).reshape(x.shape)
    assert np.linalg.norm(back - x) <= WITHIN[kind] * np.linalg.norm(x)


def test_q4_k_is_better_than_q4_0_on_offset_blocks() -> None:
    x = (np.random.default_rng(3).standard_normal((8, 512)) + 2).astype(np.float32)
    errors = [
        np.linalg.norm(quants.dequantize(np.asarray(quantize(x, k)), k) - x) for k in (Type.Q4_K, Type.Q4_0)
    ]
    assert errors[0] < 0.8 * errors[1]


@pytest.mark.table
@pytest.mark.parametrize("kind", ["F16", "Q4_0", "Q4_K_M"])
def test_other_weight_types_keep_the_weights(kind: str, ember_path: Path, tmp_path: Path) -> None:
    weights = read_gguf(ember_path)
    path = tmp_path / f"ember-{kind}.gguf"
    export(weights, kind, path, TOKENIZER)
    again = read_gguf(path)
    assert again.keys() == weights.keys()
    for name, tensor in weights.items():
        assert np.linalg.norm(again[name] - tensor) <= 0.14 * np.linalg.norm(tensor), name
