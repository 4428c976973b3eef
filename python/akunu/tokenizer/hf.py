"""The tokenizer of a Hugging Face folder: `tokenizer.json`, and special tokens by `tokenizer_config.json`.

Text is encoded by the `tokenizers` library with the file's own normalizer, pre-tokenizer and model, so the
ids are the same by construction. What stands around that is Akunu's, as for a GGUF file: control tokens are
found only where the author of a text may write them, and the library never sees one.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from akunu.base.errors import TokenizerError, UnsupportedError, errors_of
from akunu.base.json_file import read_object, read_optional
from akunu.tokenizer.added_files import with_added_tokens
from akunu.tokenizer.core import Tokenizer
from akunu.tokenizer.older_files import FILES as OLDER_FILES
from akunu.tokenizer.older_files import older_tokenizer
from akunu.tokenizer.pieces import SPACE
from akunu.tokenizer.templates import Template, template_of
from akunu.tokenizer.vocabulary import TokenType, Vocabulary
from akunu.tokenizer.words import KnownWords

if TYPE_CHECKING:
    import tokenizers

__all__ = ["other_tokenizer", "tokenizer_from_folder"]

LIMIT: Final = 256 << 20
"""Bytes of a `tokenizer.json`; the largest published ones have a tenth."""

# Decoders whose work is done by the pieces of the vocabulary: bytes, and U+2581 for a space.
_KINDS: Final = {"BPE": "llama", "Unigram": "t5", "WordPiece": "bert"}
"""Our names of the models of tokenizers, but for BPE on bytes."""
_DECODERS: Final = frozenset(
    {"ByteLevel", "Metaspace", "Replace", "ByteFallback", "Fuse", "Strip", "WordPiece"}
)

_OTHER_FILES: Final = ("tekken.json", "tiktoken.model")
"""The files of tokenizers elsewhere."""

_WHITE_SPACE: Final = (
    " \t\n\v\f\r\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    + ("\u2028\u2029\u202f\u205f\u3000")
)
"""Unicode's, which the library's added tokens swallow."""


def tokenizer_from_folder(folder: Path, n_tokens: int, end_ids: Iterable[int] = ()) -> Tokenizer | None:
    """The tokenizer of a folder; None when it has no tokenizer files at all.

    Parameters
    ----------
    folder
        Where `tokenizer.json` lies.
    n_tokens
        Rows of the model's embedding: more ids than the tokenizer has are padding.
    end_ids
        Ids that end a generation by the model's own files, besides EOS and its like.

    Raises
    ------
    ModelFileError
        A file is damaged.
    TokenizerError
        A file is inconsistent.
    UnsupportedError
        It is of a kind that Akunu does not have.
    """
    path = folder / "tokenizer.json"
    data: Mapping[str, Any] | None
    if os.path.lexists(path):
        data = read_object(path, limit=LIMIT)
    else:
        path, data = folder, older_tokenizer(folder)
    if data is None:
        if error := other_tokenizer(folder, [file.name for file in folder.glob("*")]):
            raise error
        return None
    special = read_optional(folder / "special_tokens_map.json")
    special |= read_optional(folder / "tokenizer_config.json")
    with errors_of(path):
        data = with_added_tokens(data, special, read_optional(folder / "added_tokens.json"))
        vocabulary = _vocabulary(data, special, n_tokens)
        vocabulary.mark_ends_of_generation(i for i in end_ids if 0 <= i < n_tokens)
        return Tokenizer(vocabulary, _LibraryEncoder(data, vocabulary))


def other_tokenizer(where: object, names: Collection[str]) -> UnsupportedError | None:
    """Return what to say where these files have another kind of tokenizer only."""
    other = next((name for name in _OTHER_FILES if name in names), None)
    if other is None or {"tokenizer.json", *OLDER_FILES} & set(names):
        return None
    return UnsupportedError(
        f"{where} has {other}, but no tokenizer.json; make it with Transformers: "
        "AutoTokenizer.from_pretrained(IN).save_pretrained(OUT)"
    )


class _LibraryEncoder:
    """The `tokenizers` library on text without added tokens, but for those of normalised text."""

    keeps_bytes = False

    def __init__(self, data: Mapping[str, Any], vocabulary: Vocabulary) -> None:
        user_defined = frozenset(vocabulary.ids_of_types(frozenset({int(TokenType.USER_DEFINED)})))
        left = {
            token["id"]: token
            for token in _added_tokens(data)
            if token["id"] in vocabulary.normalized & user_defined
        }
        stripped = dict(data)
        stripped |= {
            "added_tokens": list(left.values()),
            "post_processor": None,
            "truncation": None,
            "padding": None,
        }
        stripped["model"] = _without_control_tokens(data["model"], vocabulary)
        self._at_start = _library(stripped)
        self._later = self._at_start
        before = json.dumps(stripped.get("pre_tokenizer"))
        after = before.replace('"prepend_scheme": "first"', '"prepend_scheme": "never"')
        if after != before:  # the library looks at the position in the whole text, which it does not see
            self._later = _library(stripped | {"pre_tokenizer": json.loads(after)})
        # Their ids follow those of the model, as if there were no other added tokens.
        ids = {self._at_start.token_to_id(token["content"]): i for i, token in left.items()}
        self._moved = {i: known for i, known in ids.items() if i != known}
        by_words = _is_by_words(stripped) and not left
        self._words = KnownWords(partial(_ids, self._at_start)) if by_words else None

    def encode(self, text: str, *, at_start: bool) -> list[int]:
        """Ids of `text`."""
        if self._words is not None:
            return self._words.encode(text)
        ids = _ids(self._at_start if at_start else self._later, text)
        return [self._moved.get(i, i) for i in ids] if self._moved else ids

    def encode_inside(self, text: str) -> list[int]:
        """Ids of `text` in the middle of another one, as far as the file lets the library know."""
        return self.encode(text, at_start=False)


def _ids(library: tokenizers.Tokenizer, text: str) -> list[int]:
    with _refusals("a text"):
        ids: list[int] = library.encode(text, add_special_tokens=False).ids
    return ids


def _is_by_words(data: Mapping[str, Any]) -> bool:
    """Whether a text's ids are those of its parts between spaces, one after the other, as for BERT's."""

    def kind(step: str) -> object:
        value = data.get(step)
        return value.get("type") if isinstance(value, dict) else None

    return (kind("model"), kind("normalizer"), kind("pre_tokenizer")) == (
        "WordPiece",
        "BertNormalizer",
        "BertPreTokenizer",
    )


def _library(data: Mapping[str, Any]) -> tokenizers.Tokenizer:
    import tokenizers

    with _refusals("it"):
        return tokenizers.Tokenizer.from_str(json.dumps(data))


@contextmanager
def _refusals(what: str) -> Iterator[None]:
    """Makes what the library raises a `TokenizerError`."""
    try:
        yield
    except BaseException as error:
        # The library raises plain Exception, and its panics are not even that.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise TokenizerError(f"the tokenizers library refuses {what}: {str(error)[:200]}") from None


def _without_control_tokens(model: Mapping[str, Any], vocabulary: Vocabulary) -> dict[str, Any]:
    """The model with names for its control tokens that no text contains: a text must not encode to one.

    Their ids and scores stay. The unknown token keeps its name, by which the model refers to it.
    """
    hidden = {
        vocabulary.tokens[i]
        for i in vocabulary.ids_of_types(frozenset({int(TokenType.CONTROL)}))
        if i != vocabulary.unknown
    }
    unreachable = secrets.token_hex(16)
    entries = model["vocab"]
    if isinstance(entries, list):
        return dict(model) | {
            "vocab": [
                [f"{unreachable}{n}", score] if text in hidden else [text, score]
                for n, (text, score) in enumerate(entries)
            ]
        }
    hidden &= entries.keys()
    if hidden:
        for merge in model.get("merges", ()):
            parts = merge.split(" ", 1) if isinstance(merge, str) else merge
            hidden -= {*parts, "".join(parts)}  # a step on the way to a word
    return dict(model) | {
        "vocab": {f"{unreachable}{i}" if text in hidden else text: i for text, i in entries.items()}
    }


def _vocabulary(data: Mapping[str, Any], special: Mapping[str, Any], n_tokens: int) -> Vocabulary:
    model = _object(data, "model")
    entries = _entries(model)
    added = _added_tokens(data)
    byte_level = _is_byte_level(data)
    _check_decoder(data, byte_level)

    tokens: list[str | None] = [None] * n_tokens
    types = [int(TokenType.NORMAL)] * n_tokens
    for text, i in entries:
        if not 0 <= i < n_tokens:
            raise TokenizerError(f"token {text!r} has id {i}, but the model's embedding has {n_tokens} rows")
        if tokens[i] is not None:
            raise TokenizerError(f"tokens {tokens[i]!r} and {text!r} have the same id, {i}")
        tokens[i] = text
        if model.get("byte_fallback") is True and len(text) == 6 and text.startswith("<0x"):
            types[i] = TokenType.BYTE
    ids = {text: i for text, i in entries if text}
    flags: dict[str, set[int]] = {flag: set() for flag in ("rstrip", "lstrip", "single_word", "normalized")}
    for token in added:
        i, content = int(token["id"]), str(token["content"])
        # The text model of a larger one may have no row for the tokens of pictures.
        if i >= n_tokens:
            continue
        if tokens[i] not in (None, content):
            raise TokenizerError(f"tokens {tokens[i]!r} and {content!r} have the same id, {i}")
        tokens[i] = content
        ids[content] = i
        types[i] = TokenType.CONTROL if token.get("special") is True else TokenType.USER_DEFINED
        for flag, found in flags.items():
            if token.get(flag) is True:
                found.add(i)
    for i in range(n_tokens):
        if tokens[i] is None:
            tokens[i] = f"[PAD{i}]"
            types[i] = TokenType.UNUSED

    if model.get("type") == "WordPiece":
        inside = str(model.get("continuing_subword_prefix", "##"))
        for text, i in entries:
            if types[i] == TokenType.NORMAL:
                tokens[i] = text.removeprefix(inside) if text.startswith(inside) else SPACE + text
    unknown = _unknown(model, ids)
    if unknown is not None:
        types[unknown] = TokenType.UNKNOWN
    template = template_of(data.get("post_processor"))
    if max(template.ids, default=0) >= n_tokens:
        raise TokenizerError(
            f"post_processor: puts token {max(template.ids)} around a text, but the model's embedding has "
            f"{n_tokens} rows"
        )
    bos, eos = ids.get(_token_text(special, "bos_token")), ids.get(_token_text(special, "eos_token"))
    if template.before and bos not in template.before:
        bos = template.before[0]
    if template.after and eos not in template.after:
        eos = template.after[-1]
    for special_id in (bos, eos, *template.ids):
        if special_id is not None and types[special_id] != TokenType.UNKNOWN:
            types[special_id] = TokenType.CONTROL
    around = _template(template, special, bos, eos)
    prefix, after_added = _space_prefix(data)
    return Vocabulary(
        model="gpt2" if byte_level else _KINDS[str(model.get("type", "BPE"))],
        pre=None,
        tokens=[text for text in tokens if text is not None],
        types=types,
        scores=None,
        bos=bos,
        eos=eos,
        unknown=unknown,
        add_bos=bool(around.before),
        add_eos=bool(around.after),
        template=around,
        add_space_prefix=prefix,
        remove_extra_whitespaces=False,
        lowercase=False,
        strip_accents=False,
        rstrip=frozenset(flags["rstrip"]),
        lstrip=frozenset(flags["lstrip"]),
        white_space=_WHITE_SPACE,
        single_word=frozenset(flags["single_word"]),
        normalized=frozenset(flags["normalized"]),
        prefix_after_added=after_added,
        spaces_in_added=not byte_level,
        names={key: name for key in special if key.endswith("_token") and (name := _text_of(special[key]))},
        chats_begin=False,
    )


def _entries(model: Mapping[str, Any]) -> list[tuple[str, int]]:
    """The tokens of the model and their ids."""
    kind, vocab = model.get("type"), model.get("vocab")
    if kind is None:  # files of the first years do not say
        kind = "BPE" if "merges" in model else None
    if kind == "BPE":
        for key in ("continuing_subword_prefix", "end_of_word_suffix"):
            if model.get(key):
                raise UnsupportedError(f"model.{key}: found {model[key]!r}, which is not supported")
        if not isinstance(vocab, dict):
            raise TokenizerError("model.vocab: expected an object of token to id")
        if not all(isinstance(i, int) and not isinstance(i, bool) for i in vocab.values()):
            raise TokenizerError("model.vocab: found an id that is not an integer")
        merges = model.get("merges", [])
        if not isinstance(merges, list) or not all(map(_is_merge, merges)):
            raise TokenizerError("model.merges: expected a list of pairs of tokens")
        return list(vocab.items())
    if kind == "Unigram":
        if not isinstance(vocab, list) or not all(map(_is_scored, vocab)):
            raise TokenizerError("model.vocab: expected a list of tokens with their scores")
        return [(text, i) for i, (text, _) in enumerate(vocab)]
    if kind == "WordPiece":
        if not isinstance(vocab, dict) or not all(
            isinstance(i, int) and not isinstance(i, bool) for i in vocab.values()
        ):
            raise TokenizerError("model.vocab: expected an object of token to id")
        return list(vocab.items())
    raise UnsupportedError(f"model.type: found {kind!r}; supported are BPE, Unigram and WordPiece")


def _is_merge(merge: object) -> bool:
    if isinstance(merge, str):
        return " " in merge
    return isinstance(merge, list) and len(merge) == 2 and all(isinstance(part, str) for part in merge)


def _is_scored(entry: object) -> bool:
    return (
        isinstance(entry, list)
        and len(entry) == 2
        and isinstance(entry[0], str)
        and isinstance(entry[1], int | float)
    )


def _added_tokens(data: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    added = data.get("added_tokens") or []
    if not isinstance(added, list) or not all(
        isinstance(token, dict)
        and isinstance(token.get("content"), str)
        and isinstance(token.get("id"), int)
        and token["id"] >= 0
        for token in added
    ):
        raise TokenizerError("added_tokens: expected a list of objects, each with an id and a content")
    return added


def _unknown(model: Mapping[str, Any], ids: Mapping[str, int]) -> int | None:
    if model.get("type") == "Unigram":
        i = model.get("unk_id")
        return i if isinstance(i, int) and 0 <= i < len(ids) else None
    text = model.get("unk_token")
    return ids.get(text) if isinstance(text, str) else None


def _object(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = data.get(key)
    if not isinstance(value, dict):
        raise TokenizerError(f"{key}: found {type(value).__name__}, expected an object")
    return value


def _steps(value: object, inner: str) -> list[Mapping[str, Any]]:
    """The steps of a normalizer, pre-tokenizer or decoder, sequences unrolled."""
    if not isinstance(value, dict):
        return []
    if value.get("type") == "Sequence":
        items = value.get(inner)
        return [step for item in items for step in _steps(item, inner)] if isinstance(items, list) else []
    return [value]


def _is_byte_level(data: Mapping[str, Any]) -> bool:
    steps = [*_steps(data.get("pre_tokenizer"), "pretokenizers"), *_steps(data.get("decoder"), "decoders")]
    return any(step.get("type") == "ByteLevel" for step in steps)


def _check_decoder(data: Mapping[str, Any], byte_level: bool) -> None:
    steps = _steps(data.get("decoder"), "decoders")
    if not steps and not byte_level:
        raise UnsupportedError("decoder is missing; how tokens become text is not known")
    for step in steps:
        kind = step.get("type")
        replaces = kind == "Replace" and (step.get("pattern"), step.get("content")) != (
            {"String": SPACE},
            " ",
        )
        if str(kind) not in _DECODERS or replaces:
            raise UnsupportedError(f"decoder: found {json.dumps(step)[:80]}, which is not supported")


def _space_prefix(data: Mapping[str, Any]) -> tuple[bool, bool]:
    """Whether encoding puts a space before a text, and whether also after an added token."""
    for step in _steps(data.get("normalizer"), "normalizers"):
        if step.get("type") == "Prepend":
            return True, True
    for step in _steps(data.get("pre_tokenizer"), "pretokenizers"):
        if step.get("type") == "Metaspace":
            scheme = step.get("prepend_scheme") or (
                "always" if step.get("add_prefix_space", True) else "never"
            )
            return scheme != "never", scheme == "always"
    return False, False


def _template(template: Template, special: Mapping[str, Any], bos: int | None, eos: int | None) -> Template:
    """Return what stands around texts: `tokenizer_config.json` may overrule the post-processor."""
    adds_bos = _adds(special, "bos", bool(template.before), bos)
    adds_eos = _adds(special, "eos", bool(template.after), eos)
    before = (template.before or _ids_of(bos)) if adds_bos else ()
    after = (template.after or _ids_of(eos)) if adds_eos else ()
    if not template.ids:
        return Template.of_ends(before, after, after, kinds=_pair_kinds(special))
    pair = replace(
        template.pair,
        before=(template.pair.before or before) if adds_bos else (),
        after=(template.pair.after or after) if adds_eos else (),
        first_kind=template.pair.first_kind if _pair_kinds(special) else None,
    )
    return Template(before, after, pair)


def _ids_of(token: int | None) -> tuple[int, ...]:
    return () if token is None else (token,)


def _pair_kinds(special: Mapping[str, Any]) -> bool:
    """Whether Transformers gives a model the kinds of a pair."""
    names = special.get("model_input_names")
    if names is None and special.get("tokenizer_class") == "TokenizersBackend":
        names = ()  # Transformers 5's class for all that have none of their own
    return not isinstance(names, Sequence) or "token_type_ids" in names


def _token_text(special: Mapping[str, Any], key: str) -> str:
    text = _text_of(special.get(key))
    if text is None:
        raise TokenizerError(f"tokenizer_config.json: {key}: found {special[key]!r}, expected a token")
    return text


def _text_of(value: object) -> str | None:
    """The text of a token as a file writes it, "" for none; None where it is no token."""
    if isinstance(value, dict):
        value = value.get("content")
    return value or "" if value is None or isinstance(value, str) else None


def _adds(special: Mapping[str, Any], name: str, by_file: bool, token: int | None) -> bool:
    """Whether a text gets the token: `tokenizer_config.json` may overrule `tokenizer.json`."""
    wanted = special.get(f"add_{name}_token")
    if wanted is None:
        wanted = by_file
    if wanted and token is None:
        raise TokenizerError(f"add_{name}_token is true, but {name}_token names no token of the vocabulary")
    return bool(wanted)
