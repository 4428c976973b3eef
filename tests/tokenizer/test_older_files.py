"""Tokenizers without `tokenizer.json`: ids are those of the libraries that the files are of."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
import tokenizers

from akunu.base.errors import AkunuError, ModelFileError, TokenizerError, UnsupportedError
from akunu.files.hub.files import folder_files
from akunu.tokenizer import Tokenizer
from akunu.tokenizer.hf import tokenizer_from_folder
from api.encoders import wordpiece

from .test_hf import CORPUS, TEXTS, trained

sentencepiece = pytest.importorskip("sentencepiece")

PLAIN = [text for text in TEXTS if "<" not in text and "\u2581" not in text]


def opened(folder: Path, n: int = 4000) -> Tokenizer:
    tokenizer = tokenizer_from_folder(folder, n)
    assert tokenizer is not None
    return tokenizer


def write(folder: Path, name: str, value: object) -> None:
    (folder / name).write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")


@pytest.mark.parametrize("ends", ["\n", "\r\n", ""])
def test_wordpiece(ends: str, tmp_path: Path) -> None:
    library = wordpiece.library()
    words = sorted(library.get_vocab().items(), key=lambda item: item[1])
    newline = ends or "\n"
    (tmp_path / "vocab.txt").write_bytes((newline.join(word for word, _ in words) + ends).encode())
    write(tmp_path, "tokenizer_config.json", {"do_lower_case": True, "tokenizer_class": "BertTokenizer"})
    tokenizer = opened(tmp_path)
    for text in [*PLAIN, "The CAT sat", "naïve Ünïcode 日本", "un##known"]:
        assert tokenizer.encode(text) == library.encode(text).ids, text
    pair = library.encode("the cat", "a mat")
    template = tokenizer.template.pair
    encode = lambda text: tokenizer.encode(text, add_special=False)  # noqa: E731
    joined = [*template.before, *encode("the cat"), *template.between, *encode("a mat"), *template.after]
    assert joined == pair.ids
    assert tokenizer.encode("a [SEP] b", parse_special=True).count(3) == 2


def test_a_cased_vocabulary_stays_cased(tmp_path: Path) -> None:
    write(tmp_path, "vocab.txt", "\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "A", "a", "##b"]))
    assert opened(tmp_path).encode("Ab ab") == [2, 6, 7, 6, 7, 3]
    write(tmp_path, "tokenizer_config.json", {"do_lower_case": False})
    assert opened(tmp_path).encode("Ab ab") == [2, 5, 7, 6, 7, 3]


def test_mpnets_pairs(tmp_path: Path) -> None:
    write(tmp_path, "vocab.txt", "\n".join(["<s>", "<pad>", "</s>", "[UNK]", "a", "b", "<mask>"]))
    write(tmp_path, "tokenizer_config.json", {"tokenizer_class": "MPNetTokenizer"})
    tokenizer = opened(tmp_path)
    assert tokenizer.encode("a b") == [0, 4, 5, 2]
    pair = tokenizer.template.pair
    assert (pair.before, pair.between, pair.after, pair.first_kind) == ((0,), (2, 2), (2,), None)


def test_mpnets_class_may_be_known_by_its_model(tmp_path: Path) -> None:
    write(tmp_path, "vocab.txt", "\n".join(["<s>", "<pad>", "</s>", "[UNK]", "a", "b", "<mask>"]))
    write(tmp_path, "config.json", {"model_type": "mpnet"})
    assert opened(tmp_path).encode("a b") == [0, 4, 5, 2]


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("config.json", {"model_type": "bert", "tokenizer_class": "BertJapaneseTokenizer"}),
        ("tokenizer_config.json", {"tokenizer_class": "BertJapaneseTokenizer"}),
        ("config.json", {"model_type": "roberta", "tokenizer_class": "PhobertTokenizer"}),
        ("tokenizer_config.json", {"tokenizer_class": "BertTokenizer", "do_basic_tokenize": False}),
    ],
)
def test_words_that_are_cut_in_another_way_are_refused(file: str, said: Any, tmp_path: Path) -> None:
    write(tmp_path, "vocab.txt", "\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"]))
    write(tmp_path, file, said)
    with pytest.raises(UnsupportedError, match=rf"how a {said['tokenizer_class']} splits text is not known"):
        opened(tmp_path)


@pytest.mark.parametrize(
    ("kind", "config"),
    [
        ("bytes-gpt2", {"tokenizer_class": "GPT2Tokenizer"}),
        ("bytes-qwen2", {"tokenizer_class": "Qwen2TokenizerFast"}),
        ("bytes-qwen2", None),
    ],
)
def test_bpe_on_bytes(kind: str, config: dict[str, Any] | None, tmp_path: Path) -> None:
    library = trained(kind)
    model = json.loads(library.to_str())["model"]
    write(tmp_path, "vocab.json", model["vocab"])
    merges = [" ".join(merge) if isinstance(merge, list) else merge for merge in model["merges"]]
    write(tmp_path, "merges.txt", "\n".join(["#version: 0.2", *merges, ""]))
    write(tmp_path, "added_tokens.json", {"<|more|>": len(model["vocab"])})
    if config is None:
        write(tmp_path, "config.json", {"model_type": "qwen3"})
    else:
        write(tmp_path, "tokenizer_config.json", config)
    tokenizer = opened(tmp_path)
    for text in PLAIN:
        assert tokenizer.encode(text) == library.encode(text, add_special_tokens=False).ids, text
    assert tokenizer.encode("<|more|>") == [len(model["vocab"])]


def test_bpe_whose_way_to_split_is_not_known_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "vocab.json", {"a": 0})
    write(tmp_path, "merges.txt", "")
    write(tmp_path, "config.json", {"model_type": "phi"})
    with pytest.raises(UnsupportedError, match="how a phi splits text is not known; make it"):
        opened(tmp_path)


def sentences(folder: Path, name: str, kind: str, **more: Any) -> Any:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS), model_writer=model, vocab_size=400, model_type=kind,
        character_coverage=0.995, hard_vocab_limit=False, minloglevel=2, **more,
    )  # fmt: skip
    (folder / name).write_bytes(model.getvalue())
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


@pytest.mark.parametrize("prefix", [True, False])
def test_sentencepieces_bpe(prefix: bool, tmp_path: Path) -> None:
    """As Llama's, Mistral's and Gemma's: no normalisation, bytes for what is unknown."""
    theirs = sentences(
        tmp_path, "tokenizer.model", "bpe", byte_fallback=True, normalization_rule_name="identity",
        remove_extra_whitespaces=False, add_dummy_prefix=prefix, user_defined_symbols=["<tool>"],
    )  # fmt: skip
    write(
        tmp_path, "tokenizer_config.json", {"bos_token": "<s>", "eos_token": "</s>", "add_eos_token": False}
    )
    tokenizer = opened(tmp_path)
    for text in PLAIN:
        assert tokenizer.encode(text, add_special=False) == theirs.encode(text), text
        if text:
            assert tokenizer.encode(text) == [1, *theirs.encode(text)]
    assert tokenizer.decode(theirs.encode(CORPUS[2])) == CORPUS[2]
    assert "<tool>" in [tokenizer.decode([i]) for i in tokenizer.encode("a<tool>b", add_special=False)]


@pytest.mark.parametrize("name", ["sentencepiece.bpe.model", "spiece.model"])
def test_unigram(name: str, tmp_path: Path) -> None:
    """As XLM-RoBERTa's, whose first ids are fairseq's own, and T5's."""
    theirs = sentences(tmp_path, name, "unigram")
    fairseq = name.startswith("sentencepiece")
    n = theirs.get_piece_size()
    tokenizer = opened(tmp_path, n + 2)

    def ids(text: str) -> list[int]:
        found = theirs.encode(text)
        return [3 if i == theirs.unk_id() else i + 1 for i in found] if fairseq else found

    for text in PLAIN:
        around = ([0], [2]) if fairseq else ([], [theirs.eos_id()])
        assert tokenizer.encode(text) == [*around[0], *ids(text), *around[1]], text
    pair = tokenizer.template.pair
    if fairseq:
        assert (pair.before, pair.between, pair.after) == ((0,), (2, 2), (2,))
        assert tokenizer.encode("a <mask>", add_special=False, parse_special=True)[-1] == n + 1


def test_camemberts_ids(tmp_path: Path) -> None:
    """Four pieces of fairseq's and one that is not used come before the model's own, less the unknown one."""
    theirs = sentences(tmp_path, "sentencepiece.bpe.model", "unigram")
    write(tmp_path, "config.json", {"model_type": "camembert"})
    n = theirs.get_piece_size()
    tokenizer = opened(tmp_path, n + 5)
    for text in PLAIN:
        ids = [3 if i == theirs.unk_id() else i + 4 for i in theirs.encode(text)]
        assert tokenizer.encode(text) == [5, *ids, 6], text
    assert tokenizer.encode("a <mask>", add_special=False, parse_special=True)[-1] == n + 4


@pytest.mark.parametrize("rule", ["identity", "nmt_nfkc"])
@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_llamas_class_with_other_pieces(kind: str, rule: str, tmp_path: Path) -> None:
    theirs = sentences(
        tmp_path, "tokenizer.model", kind, byte_fallback=True, normalization_rule_name=rule,
        remove_extra_whitespaces=rule != "identity",
    )  # fmt: skip
    write(tmp_path, "tokenizer_config.json", {"tokenizer_class": "LlamaTokenizer"})
    tokenizer = opened(tmp_path)
    for text in [*PLAIN, "  ﬁne  ½ "]:
        if text.strip() or rule == "identity":
            assert tokenizer.encode(text) == [1, *theirs.encode(text)], text


def test_a_space_before_the_first_text_alone(tmp_path: Path) -> None:
    """What `legacy: false` says of Llama's class, and `add_prefix_space: false`: no space at all."""
    theirs = sentences(
        tmp_path, "tokenizer.model", "bpe", byte_fallback=True, normalization_rule_name="identity",
        remove_extra_whitespaces=False,
    )  # fmt: skip
    space, letter = theirs.encode("H")
    for config, expected in (
        ({}, [space, letter, 1, space, letter]),
        ({"legacy": False}, [space, letter, 1, letter]),
        ({"add_prefix_space": False}, [letter, 1, letter]),
    ):
        write(tmp_path, "tokenizer_config.json", {"tokenizer_class": "LlamaTokenizer", **config})
        assert opened(tmp_path).encode("H<s>H", add_special=False, parse_special=True) == expected, config


@pytest.mark.parametrize("lower", [True, False])
def test_debertas_unigram(lower: bool, tmp_path: Path) -> None:
    """The folder has what microsoft/deberta-v3-base has: `spm.model`, and a mask in `added_tokens.json`."""
    pieces = {"pad": "[PAD]", "bos": "[CLS]", "eos": "[SEP]", "unk": "[UNK]"}
    more = {f"{name}_id": i for i, name in enumerate(pieces)}
    more |= {f"{name}_piece": text for name, text in pieces.items()}
    theirs = sentences(tmp_path, "spm.model", "unigram", **more)
    mask = theirs.get_piece_size()
    write(tmp_path, "tokenizer_config.json", {"do_lower_case": lower, "vocab_type": "spm"})
    write(tmp_path, "added_tokens.json", {"[MASK]": mask})
    write(tmp_path, "config.json", {"model_type": "deberta-v2"})
    tokenizer = opened(tmp_path, mask + 1)
    for text in ["  The  QUICK fox ", *PLAIN]:
        known = text.lower() if lower else text
        assert tokenizer.encode(text) == [1, *theirs.encode(known), 2], text
    pair = tokenizer.template.pair
    assert (pair.before, pair.between, pair.after, pair.first_kind) == ((1,), (2,), (2,), 1)
    assert tokenizer.encode("a [MASK]", add_special=False, parse_special=True)[-1] == mask
    assert "spm.model" in folder_files(["config.json", "model.safetensors", "spm.model"])


@pytest.mark.parametrize("cut", [0, 1, 7, 100, 1000])
def test_a_damaged_model_of_sentencepiece_is_an_error(cut: int, tmp_path: Path) -> None:
    sentences(tmp_path, "tokenizer.model", "unigram")
    path = tmp_path / "tokenizer.model"
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(AkunuError, match=r"tokenizer\.model: "):
        opened(tmp_path)


@pytest.mark.parametrize("data", [b"\xff" * 50, b"\x0a\xff\xff\xff\xff\x0f", b"\x0b" * 9, bytes(40)])
def test_nonsense_is_no_model_of_sentencepiece(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.model").write_bytes(data)
    with pytest.raises((ModelFileError, TokenizerError, UnsupportedError), match=r"tokenizer\.model: "):
        opened(tmp_path)


def test_older_files_are_fetched_where_they_are_needed() -> None:
    files = ["config.json", "model.safetensors", "vocab.txt", "tokenizer_config.json"]
    assert set(folder_files(files)) == set(files)
    assert "vocab.txt" not in folder_files([*files, "tokenizer.json"])
    assert tokenizers  # the library that reads what these files become
