"""A GGUF file's vocabulary, as `tokenizer.json` says it: the same ids for every text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tokenizers

from akunu import _core
from akunu.base.errors import UnsupportedError
from akunu.loading.conversion.folder_tokenizer import folder_tokenizer
from akunu.tokenizer import Tokenizer
from akunu.tokenizer.hf import tokenizer_from_folder
from tokenizer.vocabularies import (
    BYTES,
    CONTROL,
    NORMAL,
    REAL,
    SPECIALS,
    UNUSED,
    USER_DEFINED,
    data_file,
    inputs_and_ids,
    metadata,
)

QUICK = ("phi-3", "llama-bpe", "gpt-2")
WRITTEN = [
    pytest.param(name, marks=() if name in QUICK else pytest.mark.long) for name in REAL if name != "bert-bge"
]


def written(keys: dict[str, object], folder: Path) -> tuple[Tokenizer, tokenizers.Tokenizer, Tokenizer]:
    """The tokenizer of these keys, and the folder's as the library and as we read it."""
    ours = Tokenizer.from_metadata(keys)
    for name, text in folder_tokenizer(keys, ours, 2048).items():
        (folder / name).write_text(text, encoding="utf-8")
    read = tokenizer_from_folder(folder, ours.vocab_size, ours.end_of_generation_ids)
    assert read is not None
    return ours, tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json")), read


@pytest.mark.table
@pytest.mark.parametrize("name", WRITTEN)
def test_published_vocabularies_give_the_published_ids(name: str, tmp_path: Path) -> None:
    keys = _core.GgufFile(str(data_file(f"vocab/ggml-vocab-{name}.gguf"))).metadata
    ours, library, read = written(keys, tmp_path)
    for text, ids in inputs_and_ids(name):
        assert library.encode(text, add_special_tokens=False).ids == ids, text
        assert read.encode(text, add_special=False) == ids, text
        assert read.decode(ids) == ours.decode(ids), text
    prose = data_file("text/tinyshakespeare.txt").read_text()[:20_000]
    assert library.encode(prose).ids == ours.encode(prose) == read.encode(prose)
    assert (read.bos_id, read.eos_id, read.template) == (ours.bos_id, ours.eos_id, ours.template)
    assert read.end_of_generation_ids == ours.end_of_generation_ids
    assert read.control_ids == ours.control_ids
    # Where a template may write them, control tokens are found.
    names = [ours.token_text(i) for i in sorted(ours.control_ids)[-3:]]
    turn = "So" + "".join(f"{control}Hi there,\n well" for control in names)
    ids = ours.encode(turn, parse_special=True)
    assert len(ours.control_ids.intersection(ids)) >= len(names)
    assert library.encode(turn).ids == ids == read.encode(turn, parse_special=True)


def small(**keys: object) -> dict[str, object]:
    """A vocabulary of SentencePiece with every kind of token."""
    letters = {char: -100.0 - n for n, char in enumerate("\u2581abcdehlorw")}
    words = {"\u2581h": -1.0, "el": -2.0, "lo": -3.0, "\u2581hel": -4.0, "\u2581hello": -5.0, "or": -6.0}
    pieces = [(text, NORMAL, score) for text, score in (letters | words).items()]
    more = [("<|end|>", CONTROL, 0.0), ("<tool>", USER_DEFINED, 0.0), ("  ", USER_DEFINED, 0.0)]
    return metadata("llama", [*SPECIALS, *BYTES, *pieces, *more], **keys)


@pytest.mark.parametrize("prefix", [False, True])
@pytest.mark.parametrize("ends", [(True, False), (False, False), (True, True)])
def test_prefixes_and_ends_are_kept(prefix: bool, ends: tuple[bool, bool], tmp_path: Path) -> None:
    keys = small(add_space_prefix=prefix, add_bos_token=ends[0], add_eos_token=ends[1])
    ours, library, read = written(keys, tmp_path)
    for text in ("hello world", " hello", "hel<tool>lo <|end|>or", "a  b", "é\n", ""):
        ids = ours.encode(text, parse_special=True)
        assert library.encode(text).ids == ids, text
        assert read.encode(text, parse_special=True) == ids, text


def test_chat_templates_and_names_are_kept(tmp_path: Path) -> None:
    keys = small(padding_token_id=2)
    template = {"tokenizer.chat_template": "{{ messages }}"}
    ours = Tokenizer.from_metadata(keys)

    def config(keys: dict[str, object]) -> dict[str, object]:
        found: dict[str, object] = json.loads(folder_tokenizer(keys, ours, 77)["tokenizer_config.json"])
        return found

    found = config(keys | template)
    assert found["chat_template"] == "{{ messages }}"
    assert found["model_max_length"] == 77
    special = [found[f"{name}_token"] for name in ("bos", "eos", "unk", "pad")]
    assert special == ["<s>", "</s>", "<unk>", "</s>"]
    assert config(keys | template | {"tokenizer.chat_template.tool_use": "x"})["chat_template"] == [
        {"name": "default", "template": "{{ messages }}"},
        {"name": "tool_use", "template": "x"},
    ]
    assert "chat_template" not in config(keys)


def test_a_user_defined_token_that_the_library_would_merge_otherwise_is_refused(tmp_path: Path) -> None:
    """SentencePiece merges characters that are no tokens of their own; a list of merges cannot."""
    keys = metadata("llama", [*SPECIALS, *BYTES, ("He", NORMAL, -1.0)])
    with pytest.raises(UnsupportedError, match="makes other tokens of a text of many scripts"):
        folder_tokenizer(keys, Tokenizer.from_metadata(keys), 1)


def test_an_unused_token_that_is_a_step_to_others_is_refused() -> None:
    pieces = [("a", NORMAL, -1.0), ("b", NORMAL, -2.0), ("ab", UNUSED, -3.0), ("abb", NORMAL, -4.0)]
    keys = metadata("llama", [*SPECIALS, *BYTES, *pieces])
    with pytest.raises(UnsupportedError, match="token 261 is unused, but a step on the way to others"):
        folder_tokenizer(keys, Tokenizer.from_metadata(keys), 1)
