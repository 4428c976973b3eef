"""Published vocabularies with published ids."""

from __future__ import annotations

import pytest

from akunu.tokenizer import Tokenizer

from .vocabularies import REAL, data_file, inputs_and_ids, real


@pytest.mark.parametrize("name", REAL)
def test_all_inputs_give_exactly_the_published_ids(name: str) -> None:
    cases = inputs_and_ids(name)
    tokenizer = real(name)
    wrong = [
        (text, ids, got) for text, ids in cases if (got := tokenizer.encode(text, add_special=False)) != ids
    ]
    assert not wrong


@pytest.mark.parametrize("name", [name for name in REAL if name != "bert-bge"])
def test_the_published_ids_decode_to_the_inputs(name: str) -> None:
    for text, ids in inputs_and_ids(name):
        assert real(name).decode(ids) == text


def test_word_pieces_decode_to_a_text_that_encodes_to_the_same_ids() -> None:
    # BERT's normaliser lowers and strips, so the text itself is lost. Unknown words are, too.
    tokenizer = real("bert-bge")
    unknown = tokenizer.unknown_id
    checked = 0
    for _, ids in inputs_and_ids("bert-bge"):
        if unknown not in ids:
            assert tokenizer.encode(tokenizer.decode(ids), add_special=False) == ids
            checked += 1
    assert checked > 30


@pytest.mark.parametrize("name", [name for name in REAL if name != "bert-bge"])
def test_a_long_real_text_survives_the_round_trip(name: str) -> None:
    text = data_file("text/tinyshakespeare.txt").read_text()[:100_000]
    assert real(name).decode(real(name).encode(text)) == text


def test_a_vocabulary_only_file_is_enough() -> None:
    tokenizer = Tokenizer.from_gguf(str(data_file("vocab/ggml-vocab-gpt-2.gguf")))
    assert tokenizer.vocab_size == 50257
    assert tokenizer.decode(tokenizer.encode("Hello world")) == "Hello world"


@pytest.mark.parametrize(
    ("name", "ends"),
    [
        ("llama-spm", {"</s>"}),
        ("llama-bpe", {"<|end_of_text|>", "<|eot_id|>"}),
        ("qwen2", {"<|endoftext|>", "<|im_end|>"}),
        ("phi-3", {"</s>", "<|endoftext|>", "<|end|>"}),
        ("starcoder", {"<|endoftext|>", "<fim_pad>"}),
        ("gemma-4", {"<eos>", "<turn|>", "<|tool_response>"}),
    ],
)
def test_the_end_of_generation_set_of_known_models(name: str, ends: set[str]) -> None:
    tokenizer = real(name)
    assert {tokenizer.token_text(i) for i in tokenizer.end_of_generation_ids} == ends


@pytest.mark.parametrize(
    ("name", "first", "last"),
    [
        ("llama-spm", "<s>", None),
        ("gemma-4", "<bos>", None),
        ("llama-bpe", "<|begin_of_text|>", None),
        ("deepseek-llm", "<\uff5cbegin\u2581of\u2581sentence\uff5c>", None),
        ("bert-bge", "[CLS]", "[SEP]"),
        ("qwen2", None, None),
        ("gpt-2", None, None),
    ],
)
def test_bos_and_eos_are_added_where_the_model_wants_them(
    name: str, first: str | None, last: str | None
) -> None:
    tokenizer = real(name)
    plain = tokenizer.encode("hello", add_special=False)
    begin = [] if first is None else [first]
    end = [] if last is None else [last]
    got = [tokenizer.token_text(i) for i in tokenizer.encode("hello")]
    assert got == [*begin, *(tokenizer.token_text(i) for i in plain), *end]
