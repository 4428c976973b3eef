"""A folder's tokenizer, as GGUF's keys say it: the same ids for every text."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import gguf
import pytest
import tokenizers

from akunu import _core
from akunu.base.errors import UnsupportedError
from akunu.files.gguf_bytes import header, stored_metadata
from akunu.loading.conversion.tokenizer_metadata import tokenizer_metadata
from akunu.tokenizer import Tokenizer
from tokenizer.test_hf import CORPUS, KINDS, opened, trained, write

TEXTS = [
    *(unicodedata.normalize("NFC", text) for text in CORPUS[:3]),
    "",
    " ",
    "   two  spaces and\ttabs\n\n\nlines \r\n",
    "unseen: \u0f00\U0001f9ff",
    "1234567",
]


def of_sentencepiece(library: tokenizers.Tokenizer) -> tokenizers.Tokenizer:
    """The same tokens, with merges as they are derived from a model of SentencePiece: all that make one."""
    data = json.loads(library.to_str())
    tokens = {text for text in data["model"]["vocab"] if not text.startswith("<")}
    order = dict.fromkeys("".join(merge) for merge in data["model"]["merges"])
    splits = ((text[:cut], text[cut:]) for text in order for cut in range(1, len(text)))
    data["model"]["merges"] = [pair for pair in splits if tokens.issuperset(pair)]
    return tokenizers.Tokenizer.from_str(json.dumps(data))


def folder_of(kind: str, folder: Path) -> Path:
    library = trained(kind)
    return write(folder, library if kind.startswith(("bytes", "unigram")) else of_sentencepiece(library))


@pytest.mark.parametrize("kind", KINDS)
def test_ids_and_texts_stay_the_same(kind: str, tmp_path: Path) -> None:
    ours = opened(folder_of(kind, tmp_path))
    theirs = Tokenizer.from_metadata(tokenizer_metadata(tmp_path, ours))
    for text in TEXTS:
        # Spaces at the beginning of a text, and tokens that are spaces: readers of GGUF have their own ways.
        leading = kind.startswith(("metaspace", "unigram")) and text.startswith(" ")
        if leading or (kind == "gemma" and "  " in text):
            continue
        ids = ours.encode(text)
        assert theirs.encode(text) == ids, text
        assert theirs.decode(ids) == ours.decode(ids), text
    if kind != "metaspace-first":  # which GGUF cannot say
        turn = "<|user|>Hi<|end|>"
        assert theirs.encode(turn, parse_special=True) == ours.encode(turn, parse_special=True)
    assert theirs.control_ids == ours.control_ids
    assert theirs.end_of_generation_ids == ours.end_of_generation_ids
    assert (theirs.bos_id, theirs.eos_id) == (ours.bos_id, ours.eos_id)


def test_a_vocabulary_of_bytes_needs_no_merges(tmp_path: Path) -> None:
    data = json.loads(trained("bytes-gpt2").to_str())
    bytes_of = {text: i for text, i in data["model"]["vocab"].items() if len(text) == 1}
    data["model"] |= {"vocab": {text: i for i, text in enumerate(bytes_of)}, "merges": []}
    data |= {"added_tokens": [], "post_processor": None}
    ours = opened(write(tmp_path, tokenizers.Tokenizer.from_str(json.dumps(data))))
    path = tmp_path / "x.gguf"
    path.write_bytes(header({"general.architecture": "llama"} | tokenizer_metadata(tmp_path, ours), []))
    assert gguf.GGUFReader(path).fields["tokenizer.ggml.merges"].data == []
    theirs = Tokenizer.from_gguf(path)
    for text in TEXTS:
        assert theirs.encode(text) == ours.encode(text), text


@pytest.mark.parametrize(("kind", "name"), [("bytes-gpt2", "gpt-2"), ("bytes-llama3", "llama3")])
def test_the_way_to_cut_has_its_name(kind: str, name: str, tmp_path: Path) -> None:
    ours = opened(write(tmp_path, trained(kind)))
    assert tokenizer_metadata(tmp_path, ours)["tokenizer.ggml.pre"] == name


def test_ends_beyond_the_first_are_kept(tmp_path: Path) -> None:
    folder = write(tmp_path, trained("bytes-gpt2"))
    ours = opened(folder, end_ids=(7, 9))
    theirs = Tokenizer.from_metadata(tokenizer_metadata(folder, ours))
    assert {7, 9} <= theirs.end_of_generation_ids == ours.end_of_generation_ids


def test_an_unknown_way_to_cut_is_refused(tmp_path: Path) -> None:
    folder = write(tmp_path, trained("bytes-gpt2"))
    data = json.loads((folder / "tokenizer.json").read_text())
    data["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "[aeiou]+|[^aeiou]+"
    (folder / "tokenizer.json").write_text(json.dumps(data))
    with pytest.raises(UnsupportedError, match="no tokenizer of GGUF gives the same tokens"):
        tokenizer_metadata(folder, opened(folder))


def test_merges_that_sentencepiece_would_not_make_are_refused(tmp_path: Path) -> None:
    folder = folder_of("llama2", tmp_path)
    data = json.loads((folder / "tokenizer.json").read_text())
    vocabulary = data["model"]["vocab"]
    word = next("".join(merge) for merge in data["model"]["merges"] if len(merge[0]) == 2)
    vocabulary.setdefault(word[1:], max(vocabulary.values()) + 10)
    (folder / "tokenizer.json").write_text(json.dumps(data))
    with pytest.raises(UnsupportedError, match="are not merged, though"):
        tokenizer_metadata(folder, opened(folder))


@pytest.mark.parametrize("kind", ["bytes-llama3", "llama2", ""])
def test_a_file_keeps_the_keys(kind: str, tmp_path: Path) -> None:
    tokenizer = opened(folder_of(kind, tmp_path)) if kind else None
    metadata = tokenizer_metadata(tmp_path, tokenizer)
    path = tmp_path / "vocabulary.gguf"
    path.write_bytes(header({"general.architecture": "llama"} | metadata, []))
    assert _core.GgufFile(str(path)).metadata == {"general.architecture": "llama"} | metadata
    stored = stored_metadata(path)
    assert path.read_bytes() == header(stored, [])
