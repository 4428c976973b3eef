"""Write the metadata of a GGUF file for a folder's tokenizer.

Nothing in `tokenizer.json` names the way in which GGUF's readers cut and merge a text: it is found by trying,
and the ids of a text with everything in it must come out the same.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from akunu.base.errors import UnsupportedError
from akunu.base.json_file import read_object, read_optional
from akunu.tokenizer import Tokenizer
from akunu.tokenizer.hf import LIMIT
from akunu.tokenizer.pieces import SPACE
from akunu.tokenizer.pretokenizers import PRE_TOKENIZERS, PreTokenizer
from akunu.tokenizer.vocabulary import ADDED_TYPES, TokenType

__all__ = ["NAMED", "SAMPLES", "tokenizer_metadata"]

Metadata = dict[str, object]

_KEY: Final = "tokenizer.ggml."

_SAMPLE: Final = (
    "Hello, World! it's I'M we'Re THEY'LL  two   three    four\n\nnext\r\n\ttab \n x\n"
    '1 12 123 1234 12345.678 9,876 ½ ٣٤٥ x2y3 camelCaseWords SHOUTing _snake_case_ $5.00+=-*/^~|`<tag a="b">'
    "// code(); {[#!?;:]} don't\u2019ve naïve café Straße ǅ ΑΒΓ αβγ Привет МИР שלום مرحبا "
    "नमस्ते สวัสดี 你好，世界。日本語のカタカナ 한국어 🙂👩‍👩‍👧 \u00a0\u3000 end \u200b…—\u201cq\u201d   "
)
"""A text in which the known ways to cut differ: contractions, digits, blanks, cases, scripts.

It is in normal form C, to which some tokenizers bring a text, and no reader of GGUF does.
"""

NAMED: Final = {"cls_token": "cls", "sep_token": "seperator", "pad_token": "padding", "mask_token": "mask"}
"""Keys of `tokenizer_config.json`, and GGUF's names, of which one is spelt so."""

_NO_SCORE: Final = -10000.0
"""Score of an id that no text has."""

SAMPLES: Final = (_SAMPLE, _SAMPLE.upper(), "")
"""Texts of which two tokenizers that are the same make the same tokens."""


def tokenizer_metadata(folder: Path, tokenizer: Tokenizer | None) -> Metadata:
    """The keys of GGUF for the tokenizer that was read from a folder.

    Raises
    ------
    UnsupportedError
        GGUF has no way to say what this tokenizer does.
    """
    if tokenizer is None:
        return {_KEY + "model": "none"}
    data = read_object(folder / "tokenizer.json", limit=LIMIT)
    path = folder / "tokenizer_config.json"
    config = read_optional(path)
    for metadata in _candidates(data, config, tokenizer):
        found = Tokenizer.from_metadata(metadata)
        if _same(found, tokenizer):
            ends = sorted(tokenizer.end_of_generation_ids - found.end_of_generation_ids)
            return metadata | dict(zip((_KEY + "eot_token_id", _KEY + "eom_token_id"), ends, strict=False))
    raise UnsupportedError(
        f"{folder / 'tokenizer.json'}: no tokenizer of GGUF gives the same tokens for a text of many scripts"
    )


def _same(found: Tokenizer, wanted: Tokenizer) -> bool:
    return all(found.encode(text) == wanted.encode(text) for text in SAMPLES)


def _candidates(
    data: Mapping[str, Any], config: Mapping[str, Any], tokenizer: Tokenizer
) -> Iterator[Metadata]:
    spm = tokenizer.model == "llama"
    ids = range(tokenizer.vocab_size)
    types = [int(tokenizer.token_type(i)) for i in ids]
    tokens = [tokenizer.token_text(i) for i in ids]
    if spm:  # readers compare such a token with the text itself
        tokens = [
            text.replace(SPACE, " ") if kind in ADDED_TYPES else text
            for text, kind in zip(tokens, types, strict=True)
        ]
    metadata: Metadata = {
        _KEY + "model": tokenizer.model,
        _KEY + "tokens": tokens,
        _KEY + "token_type": types,
    }
    for name, i in (("bos", tokenizer.bos_id), ("eos", tokenizer.eos_id), ("unknown", tokenizer.unknown_id)):
        if i is not None:
            metadata[f"{_KEY}{name}_token_id"] = i
    metadata |= _named_ids(config, tokens)
    metadata[_KEY + "add_bos_token"] = bool(tokenizer.template.before)
    metadata[_KEY + "add_eos_token"] = bool(tokenizer.template.after)
    merges = [m if isinstance(m, str) else " ".join(m) for m in data["model"].get("merges", ())]
    if spm:
        metadata[_KEY + "pre"] = "default"
        metadata[_KEY + "add_space_prefix"] = tokenizer.trims_space
        try:
            yield metadata | {_KEY + "scores": _scores(tokens, types, merges)}
        except UnsupportedError:
            if metadata[_KEY + "add_space_prefix"]:
                raise
        del metadata[_KEY + "pre"]
        scores = [_NO_SCORE] * len(tokens)
        yield metadata | {_KEY + "model": "gemma4", _KEY + "scores": scores, _KEY + "merges": merges}
        return
    if tokenizer.model == "bert":
        yield from (metadata | rest for rest in _wordpiece(tokenizer))
        return
    if tokenizer.model == "t5":
        yield from (metadata | rest for rest in _unigram(data, tokenizer))
        return
    metadata[_KEY + "merges"] = merges
    for name in _likely(data):
        yield metadata | {_KEY + "pre": name}


def _named_ids(config: Mapping[str, Any], tokens: list[str]) -> Metadata:
    """The ids of tokens that `tokenizer_config.json` names and nothing here uses, but other readers do."""
    found: Metadata = {}
    for key, name in NAMED.items():
        token = config.get(key)
        text = token.get("content") if isinstance(token, dict) else token
        if text in tokens:
            found[f"{_KEY}{name}_token_id"] = tokens.index(text)
    return found


def _wordpiece(tokenizer: Tokenizer) -> Iterator[Metadata]:
    """The keys of WordPiece: which token ends a text, and whether capitals and accents count."""
    ends = {_KEY + "cls_token_id": tokenizer.bos_id, _KEY + "seperator_token_id": tokenizer.eos_id}
    found: Metadata = {key: value for key, value in ends.items() if value is not None}
    for lowercase in (True, False):
        for strip in (lowercase, not lowercase):
            yield found | {
                _KEY + "normalizer.lowercase": lowercase,
                _KEY + "normalizer.strip_accents": strip,
            }


def _unigram(data: Mapping[str, Any], tokenizer: Tokenizer) -> Iterator[Metadata]:
    """The keys of Unigram: scores, and how a text is brought to a normal form."""
    scores = [float(score) for _, score in data["model"]["vocab"]]
    scores += [_NO_SCORE] * (tokenizer.vocab_size - len(scores))
    found: Metadata = {
        _KEY + "pre": "default",
        _KEY + "scores": scores,
        _KEY + "add_space_prefix": tokenizer.trims_space,
    }
    for step in _normalizers(data.get("normalizer")):
        if step.get("type") == "Precompiled" and isinstance(step.get("precompiled_charsmap"), str):
            found[_KEY + "precompiled_charsmap"] = base64.b64decode(step["precompiled_charsmap"])
    for remove in (True, False):
        yield found | {_KEY + "remove_extra_whitespaces": remove}


def _normalizers(step: object) -> Iterator[Mapping[str, Any]]:
    """The steps of a normalizer, sequences unrolled."""
    if isinstance(step, dict):
        yield step
        for inner in step.get("normalizers") or ():
            yield from _normalizers(inner)


def _scores(tokens: list[str], types: list[int], merges: list[str]) -> list[float]:
    """Scores that lead to the same merges: minus the place of a token's first one.

    SentencePiece merges any two neighbours that make a token, the best token first. So this holds for the
    lists of merges that were derived from one of its models, which have every such pair.
    """
    known = set(merges)
    places: dict[str, int] = {}
    for place, merge in enumerate(merges):
        places.setdefault(merge.replace(" ", ""), place)
    normal = {text for text, kind in zip(tokens, types, strict=True) if kind == TokenType.NORMAL}
    for text in normal:
        for cut in range(1, len(text)):
            left, right = text[:cut], text[cut:]
            if left in normal and right in normal and f"{left} {right}" not in known:
                raise UnsupportedError(
                    f"tokenizer.json: {left!r} and {right!r} are not merged, though {text!r} is a token: "
                    "no tokenizer of GGUF keeps bytes as this one does and merges by a list"
                )
    return [-float(places.get(text, len(merges))) for text in tokens]


def _likely(data: Mapping[str, Any]) -> list[str]:
    """One name for each way to cut that Akunu knows, those first that state the file's own patterns."""
    stated = set(_patterns(data.get("pre_tokenizer")))
    names: dict[PreTokenizer, str] = {}
    for name, row in PRE_TOKENIZERS.items():
        names.setdefault(row, name)
    whole = data["model"].get("ignore_merges") is True

    def strangeness(row: PreTokenizer) -> tuple[bool, int]:
        return row.ignore_merges != whole, len(stated.symmetric_difference(row.patterns))

    return [names[row] for row in sorted(names, key=strangeness)]


def _patterns(step: object) -> Iterator[str]:
    """The regular expressions in a pre-tokenizer."""
    if isinstance(step, dict):
        pattern = step.get("pattern")
        if isinstance(pattern, dict) and isinstance(pattern.get("Regex"), str):
            yield pattern["Regex"]
        for inner in step.get("pretokenizers") or ():
            yield from _patterns(inner)
