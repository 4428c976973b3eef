"""Tokenizers in the files that were there before `tokenizer.json`, as what that file would say.

A folder may have `vocab.txt` (BERT's WordPiece), `vocab.json` and `merges.txt` (BPE on bytes), or the
protocol buffer of a SentencePiece model. Each is turned into the object that Transformers' converters write
(`convert_slow_tokenizer.py`), so there is one way to read tokenizers.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from akunu.base.errors import ModelFileError, TokenizerError, UnsupportedError
from akunu.base.json_file import read_object, read_optional, read_text
from akunu.tokenizer.pieces import SPACE
from akunu.tokenizer.pretokenizers import PRE_TOKENIZERS

__all__ = ["FILES", "older_tokenizer"]

LIMIT: Final = 64 << 20
"""Bytes of a file; the largest published ones have a tenth."""

SENTENCEPIECE: Final = ("tokenizer.model", "sentencepiece.bpe.model", "spiece.model", "spm.model")
FILES: Final = (*SENTENCEPIECE, "vocab.json", "vocab.txt")
"""Files that make a tokenizer, `vocab.json` beside `merges.txt`."""

_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _BYTE = 1, 2, 3, 4, 6
_UNIGRAM, _BPE = 1, 2
_QWEN: Final = ("qwen2", "qwen3", "qwen2_moe", "qwen3_moe")
_BYTES_BPE: Final[Mapping[str, tuple[str, ...]]] = {
    "gpt-2": ("GPT2Tokenizer", "RobertaTokenizer", "WhisperTokenizer", "gpt2", "roberta", "whisper"),
    "qwen2": ("Qwen2Tokenizer", *_QWEN),
}
"""Pre-tokenizers by Transformers' classes and, where no class is named, by `model_type`."""
_WORDPIECE: Final = (
    "BertTokenizer", "ConvBertTokenizer", "DPRContextEncoderTokenizer", "DPRQuestionEncoderTokenizer",
    "DistilBertTokenizer", "ElectraTokenizer", "LayoutLMTokenizer", "MPNetTokenizer", "MobileBertTokenizer",
    "SqueezeBertTokenizer", "None",
)  # fmt: skip
"""Classes whose `vocab.txt` is WordPiece's. Others go with a cutter of words, or have other pieces."""
_FAIRSEQ: Final = ("XLMRobertaTokenizer", "xlm-roberta")
_CAMEMBERT: Final = ("CamembertTokenizer", "camembert")
_DEBERTA: Final = ("DebertaV2Tokenizer", "deberta-v2")


def older_tokenizer(folder: Path) -> dict[str, Any] | None:
    """Return what `tokenizer.json` would say of a folder that has none; None if nothing there is a tokenizer.

    Raises
    ------
    ModelFileError, TokenizerError
        A file is damaged.
    UnsupportedError
        The files do not say how text is split, or say something that Akunu does not have.
    """
    names = {file.name for file in folder.glob("*")}
    special = read_optional(folder / "special_tokens_map.json") | read_optional(
        folder / "tokenizer_config.json"
    )
    config = read_optional(folder / "config.json")
    kind = special.get("tokenizer_class") or config.get("tokenizer_class") or config.get("model_type")
    kind = str(kind).removesuffix("Fast")
    for name in SENTENCEPIECE:
        if name in names:
            return _sentencepiece(folder / name, kind, special)
    if {"vocab.json", "merges.txt"} <= names:
        return _bytes_bpe(folder, kind, special)
    if "vocab.txt" in names:
        return _wordpiece(folder / "vocab.txt", kind, special)
    return None


def _unknown_split(folder: Path, files: str, kind: str) -> UnsupportedError:
    return UnsupportedError(
        f"{folder} has {files}, but no tokenizer.json, and how a {kind} splits text is not known; make it "
        "with Transformers: AutoTokenizer.from_pretrained(IN).save_pretrained(OUT)"
    )


def _name(special: Mapping[str, Any], key: str, usual: str) -> str:
    """The text of a special token, by its key."""
    found = special.get(key)
    found = found.get("content") if isinstance(found, Mapping) else found
    return found if isinstance(found, str) and found else usual


def _added(i: int, text: str, *, special: bool = True, lstrip: bool = False) -> dict[str, Any]:
    flags = {"single_word": False, "lstrip": lstrip, "rstrip": False, "normalized": False, "special": special}
    return {"id": i, "content": text, **flags}


def _around(
    first: str, last: str, between: Sequence[str], ids: Mapping[str, int], kinds: bool
) -> dict[str, Any]:
    """A post-processor: `first` before a text and `last` after it; `between` two texts of a pair."""

    def token(text: str, kind: int = 0) -> dict[str, Any]:
        return {"SpecialToken": {"id": text, "type_id": kind}}

    def text(name: str, kind: int = 0) -> dict[str, Any]:
        return {"Sequence": {"id": name, "type_id": kind}}

    begin, end = [token(first)] if first else [], [token(last)] if last else []
    second = int(kinds)
    pair = [
        *begin,
        text("A"),
        *map(token, between),
        text("B", second),
        *([token(last, second)] if last else []),
    ]
    used = {name for name in (first, last, *between) if name}
    missing = sorted(used - ids.keys())
    if missing:
        raise TokenizerError(f"the special token {missing[0]!r} is not in the vocabulary")
    return {
        "type": "TemplateProcessing",
        "single": [*begin, text("A"), *end],
        "pair": pair,
        "special_tokens": {name: {"id": name, "ids": [ids[name]], "tokens": [name]} for name in used},
    }


def _wordpiece(path: Path, kind: str, special: Mapping[str, Any]) -> dict[str, Any]:
    is_class = kind.endswith("Tokenizer")
    if (
        (is_class and kind not in _WORDPIECE)
        or kind == "roberta"
        or special.get("do_basic_tokenize") is False
    ):
        raise _unknown_split(path.parent, path.name, kind)
    words = read_text(path, limit=LIMIT).split("\n")
    if words and not words[-1]:
        del words[-1]
    ids = {word.rstrip("\r"): i for i, word in enumerate(words)}
    mpnet = kind in ("MPNetTokenizer", "mpnet")
    usual = dict(
        zip(("cls", "sep", "unk", "pad", "mask"), ("[CLS]", "[SEP]", "[UNK]", "[PAD]", "[MASK]"), strict=True)
    )
    if mpnet:
        usual |= {"cls": "<s>", "sep": "</s>", "pad": "<pad>", "mask": "<mask>"}
    texts = {key: _name(special, f"{key}_token", text) for key, text in usual.items()}
    if texts["unk"] not in ids:
        raise TokenizerError(f"{path}: the special token {texts['unk']!r} is not in the vocabulary")
    strip = special.get("strip_accents")
    return {
        "added_tokens": [_added(ids[text], text) for text in texts.values() if text in ids],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": special.get("tokenize_chinese_chars", True) is not False,
            "strip_accents": strip if isinstance(strip, bool) else None,
            "lowercase": special.get("do_lower_case", True) is not False,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": _around(
            texts["cls"], texts["sep"], [texts["sep"]] * (2 if mpnet else 1), ids, kinds=not mpnet
        ),
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": texts["unk"],
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": ids,
        },
    }


def _bytes_bpe(folder: Path, kind: str, special: Mapping[str, Any]) -> dict[str, Any]:
    name = next((name for name, kinds in _BYTES_BPE.items() if kind in kinds), None)
    if name is None:
        raise _unknown_split(folder, "vocab.json and merges.txt", kind)
    ids = read_object(folder / "vocab.json", limit=LIMIT)
    lines = read_text(folder / "merges.txt", limit=LIMIT).split("\n")
    merges = [line for line in lines if line.strip() and not line.startswith("#version")]
    roberta = kind in ("RobertaTokenizer", "roberta")
    end = _name(special, "eos_token", "</s>" if roberta else "<|endoftext|>")
    usual = {"bos": "<s>", "cls": "<s>", "sep": "</s>", "unk": "<unk>", "pad": "<pad>", "mask": "<mask>"}
    texts = [_name(special, f"{key}_token", text) for key, text in usual.items()] if roberta else []
    added = [
        _added(ids[text], text, lstrip=roberta and text == "<mask>")
        for text in dict.fromkeys([*texts, end])
        if text in ids
    ]
    steps: list[dict[str, Any]] = [
        {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
        for pattern in PRE_TOKENIZERS[name].patterns
    ]
    prefix = special.get("add_prefix_space") is True
    steps.append({"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": False})
    first = _name(special, "cls_token", "<s>")
    return {
        "added_tokens": added,
        "normalizer": {"type": "NFC"} if name == "qwen2" else None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": steps},
        "post_processor": _around(first, end, [end, end], ids, kinds=False) if roberta else None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "vocab": ids, "merges": merges},
    }


@dataclass
class _Pieces:
    """The content of a SentencePiece model, by the names of `sentencepiece_model.proto`."""

    pieces: list[tuple[str, float, int]] = field(default_factory=list)
    model_type: int = _UNIGRAM
    byte_fallback: bool = False
    unk_id: int = 0
    bos_id: int = 1
    eos_id: int = 2
    charsmap: bytes = b""
    dummy_prefix: bool = True
    extra_whitespaces: bool = True


def _fields(data: memoryview, where: Path) -> Iterator[tuple[int, int | memoryview]]:
    """The fields of a message of a protocol buffer: numbers as integers, all others as bytes."""
    i, n = 0, len(data)

    def varint() -> int:
        nonlocal i
        value = shift = 0
        while i < n and shift < 64:
            byte = data[i]
            i += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
        raise ModelFileError(f"{where}: is no model of SentencePiece, or cut off")

    while i < n:
        key = varint()
        kind = key & 7
        if kind == 0:
            yield key >> 3, varint()
            continue
        size = {1: 8, 2: -1, 5: 4}.get(kind)
        if size is None:
            raise ModelFileError(f"{where}: is no model of SentencePiece")
        size = varint() if size < 0 else size
        if size > n - i:
            raise ModelFileError(f"{where}: is cut off")
        yield key >> 3, data[i : i + size]
        i += size


def _signed(value: int | memoryview) -> int:
    number = value if isinstance(value, int) else -1
    return number - (1 << 64) if number >> 63 else number


def _read_pieces(path: Path) -> _Pieces:
    import struct

    if path.stat().st_size > LIMIT:
        raise ModelFileError(f"{path}: has {path.stat().st_size} bytes, at most {LIMIT} are accepted")
    found = _Pieces()
    for number, message in _fields(memoryview(path.read_bytes()), path):
        if isinstance(message, int):
            continue
        if number == 1:
            text, score, kind = "", 0.0, _NORMAL
            for part, value in _fields(message, path):
                if part == 1 and isinstance(value, memoryview):
                    text = bytes(value).decode("utf-8", "replace")
                elif part == 2 and isinstance(value, memoryview) and len(value) == 4:
                    score = struct.unpack("<f", value)[0]
                elif part == 3:
                    kind = _signed(value)
            found.pieces.append((text, score, kind))
        elif number == 2:
            names = {3: "model_type", 35: "byte_fallback", 40: "unk_id", 41: "bos_id", 42: "eos_id"}
            for part, value in _fields(message, path):
                if part in names:
                    setattr(found, names[part], _signed(value))
            found.byte_fallback = bool(found.byte_fallback)
        elif number == 3:
            for part, value in _fields(message, path):
                if part == 2 and isinstance(value, memoryview):
                    found.charsmap = bytes(value)
                elif part == 3:
                    found.dummy_prefix = bool(value)
                elif part == 4:
                    found.extra_whitespaces = bool(value)
    if not found.pieces or found.model_type not in (_UNIGRAM, _BPE):
        raise UnsupportedError(
            f"{path}: found a SentencePiece model of type {found.model_type}; supported are 1 and 2"
        )
    return found


def _sentencepiece(path: Path, kind: str, special: Mapping[str, Any]) -> dict[str, Any]:
    said = _read_pieces(path)
    pieces = said.pieces
    camembert = kind in _CAMEMBERT
    fairseq = camembert or kind in _FAIRSEQ or path.name == "sentencepiece.bpe.model"
    if camembert:  # the model's own first ones follow, less the unknown one
        names = ("<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>")
        first = [(name, 0.0, _UNKNOWN if name == "<unk>" else _CONTROL) for name in names]
        unused = ("<unk>NOTUSED", -100.0, _CONTROL)
        pieces = [*first, unused, *pieces[1:], ("<mask>", 0.0, _CONTROL)]
    elif fairseq:  # fairseq's own ids for the first ones
        first = [
            ("<s>", 0.0, _CONTROL),
            ("<pad>", 0.0, _CONTROL),
            ("</s>", 0.0, _CONTROL),
            ("<unk>", 0.0, _UNKNOWN),
        ]
        pieces = [*first, *pieces[3:], ("<mask>", 0.0, _CONTROL)]
    ids = {text: i for i, (text, _, _) in enumerate(pieces)}
    if len(ids) != len(pieces):
        raise TokenizerError(f"{path}: has a piece twice")
    unknown = 3 if fairseq else said.unk_id
    if not 0 <= unknown < len(pieces):
        raise TokenizerError(f"{path}: the unknown token {unknown} is none of the {len(pieces)} pieces")
    added = [
        _added(i, text, special=what != _USER_DEFINED, lstrip=fairseq and text == "<mask>")
        for i, (text, _, what) in enumerate(pieces)
        if what in (_CONTROL, _UNKNOWN, _USER_DEFINED)
    ]
    result: dict[str, Any] = {"added_tokens": added}
    begin = pieces[said.bos_id][0] if 0 <= said.bos_id < len(pieces) else ""
    deberta = kind in _DEBERTA or path.name == "spm.model"
    model: dict[str, Any] = {
        "type": "Unigram",
        "unk_id": unknown,
        "vocab": [[text, score] for text, score, _ in pieces],
        "byte_fallback": said.byte_fallback,
    }
    if said.model_type == _BPE:
        model = {
            "type": "BPE",
            "unk_token": pieces[unknown][0],
            "fuse_unk": True,
            "byte_fallback": said.byte_fallback,
            "vocab": ids,
            "merges": _merges(pieces),
        }
    if said.model_type == _BPE or (path.name == "tokenizer.model" and not (fairseq or deberta)):
        around = _around(begin, "", [begin] if begin else [], ids, kinds=False)
        return {**result, **_llamas(said, special), "model": model, "post_processor": around}
    normalizers: list[dict[str, Any]] = []
    if deberta and special.get("do_lower_case") is True:
        normalizers.append({"type": "Lowercase"})
    if deberta:
        normalizers.append({"type": "Strip", "strip_left": True, "strip_right": True})
    if said.charsmap:
        normalizers.append(_charsmap(said.charsmap))
    if deberta:
        normalizers.append({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "})
    elif said.extra_whitespaces:
        normalizers.append({"type": "Strip", "strip_left": False, "strip_right": True})
        normalizers.append({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": SPACE})
    metaspace = {
        "type": "Metaspace",
        "replacement": SPACE,
        "prepend_scheme": "always" if said.dummy_prefix else "never",
        "split": True,
    }
    end = "</s>" if fairseq else pieces[said.eos_id][0] if 0 <= said.eos_id < len(pieces) else ""
    punctuation = {"type": "Punctuation", "behavior": "Isolated"}
    splits = [punctuation] if deberta and special.get("split_by_punct") is True else []
    return result | {
        "normalizer": {"type": "Sequence", "normalizers": normalizers} if normalizers else None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [*splits, metaspace]},
        "decoder": metaspace,
        "post_processor": _around("[CLS]", "[SEP]", ["[SEP]"], ids, kinds=True)
        if deberta
        else _around("<s>" if fairseq else "", end, [end, end] if fairseq else [end], ids, kinds=False),
        "model": model,
    }


def _charsmap(data: bytes) -> dict[str, Any]:
    return {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(data).decode()}


def _llamas(said: _Pieces, special: Mapping[str, Any]) -> dict[str, Any]:
    """Make what stands around the pieces in the class of Llama's tokenizers."""
    prefix = said.dummy_prefix and special.get("add_prefix_space") is not False
    first: list[dict[str, Any]] = [_charsmap(said.charsmap)] if said.charsmap else []
    if said.extra_whitespaces:
        first.append({"type": "Strip", "strip_left": True, "strip_right": True})
        first.append({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "})
    steps = [{"type": "Prepend", "prepend": SPACE}] if prefix else []
    strip = [{"type": "Strip", "content": " ", "start": 1, "stop": 0}] if prefix else []
    replace = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
    # The space is added before each text between special tokens, or before the first alone.
    once = {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "first", "split": False}
    first_alone = prefix and special.get("legacy") is False
    normalizers = first if first_alone else [*first, *steps, replace]
    return {
        "normalizer": {"type": "Sequence", "normalizers": normalizers} if normalizers else None,
        "pre_tokenizer": once if first_alone else None,
        "decoder": {
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": SPACE}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
                *strip,
            ],
        },
    }


def _merges(pieces: Sequence[tuple[str, float, int]]) -> list[list[str]]:
    """List the merges of SentencePiece's BPE: each way to make a piece of two others, the best first."""
    ranks = {text: i for i, (text, _, kind) in enumerate(pieces) if kind in (_NORMAL, _BYTE)}
    scores = {text: score for text, score, _ in pieces}
    found: list[tuple[float, int, int, list[str]]] = []
    for text in ranks:
        for cut in range(1, len(text)):
            left, right = text[:cut], text[cut:]
            if left in ranks and right in ranks:
                found.append((-scores[text], ranks[left], ranks[right], [left, right]))
    found.sort(key=lambda merge: merge[:3])
    return [merge[3] for merge in found]
