"""Added tokens that a folder's files name beside `tokenizer.json`, as Transformers adds them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from akunu.base.errors import TokenizerError

__all__ = ["with_added_tokens"]

_NAMES: Final = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
"""Special tokens, in the order in which Transformers adds those that are not there."""
_FLAGS: Final = ("single_word", "lstrip", "rstrip", "normalized", "special")


def with_added_tokens(
    data: Mapping[str, Any], special: Mapping[str, Any], added: Mapping[str, Any]
) -> dict[str, Any]:
    """`tokenizer.json` with the tokens of the other files among its own.

    Parameters
    ----------
    data
        The object in `tokenizer.json`.
    special
        That in `tokenizer_config.json`, with what `special_tokens_map.json` has besides.
    added
        That in `added_tokens.json`: texts and ids.

    Raises
    ------
    TokenizerError
        An entry is not of that form.
    """
    known = data.get("added_tokens") or []
    model = data.get("model")
    if not isinstance(known, list) or not isinstance(model, Mapping):
        return dict(data)  # refused where it is read
    tokens = {each.get("content"): each for each in known if isinstance(each, Mapping)}
    more = {each["content"]: each for each in _listed(special, added) if each["content"] not in tokens}
    # A name of a special token that no list has gets the next id.
    ids = _ids(model) | {text: each.get("id") for text, each in {**tokens, **more}.items()}
    following = max((i for i in ids.values() if isinstance(i, int)), default=-1) + 1
    for text in _named(special):
        if text not in ids:
            more[text] = {"id": following, "content": text, **dict.fromkeys(_FLAGS, False), "special": True}
            ids[text] = following
            following += 1
    return {**data, "added_tokens": [*known, *more.values()]}


def _ids(model: Mapping[str, Any]) -> dict[Any, Any]:
    """The vocabulary: text to id; Unigram's is a list of texts and scores."""
    vocabulary = model.get("vocab")
    if isinstance(vocabulary, Mapping):
        return dict(vocabulary)
    entries = vocabulary if isinstance(vocabulary, list) else []
    return {each[0]: i for i, each in enumerate(entries) if isinstance(each, list) and each}


def _listed(special: Mapping[str, Any], added: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    decoder = special.get("added_tokens_decoder") or {}
    if not isinstance(decoder, Mapping):
        raise TokenizerError(f"added_tokens_decoder: found {type(decoder).__name__}, expected an object")
    for key, token in decoder.items():
        if not (key.isdecimal() and isinstance(token, Mapping) and isinstance(token.get("content"), str)):
            raise TokenizerError(f"added_tokens_decoder: {key}: expected an id, and an object with a content")
        yield {
            "id": int(key),
            "content": token["content"],
            **{name: token.get(name) is True for name in _FLAGS},
        }
    if decoder:
        return  # which has all of them
    names = set(_named(special))
    for text, i in added.items():
        if not isinstance(i, int) or isinstance(i, bool) or i < 0:
            raise TokenizerError(f"added_tokens.json: {text!r}: found {i!r}, expected an id")
        flags = dict.fromkeys(_FLAGS, False)
        yield {"id": i, "content": text, **flags, "special": text in names, "normalized": text not in names}


def _named(special: Mapping[str, Any]) -> Iterator[str]:
    more = special.get("additional_special_tokens")
    for value in (*(special.get(name) for name in _NAMES), *(more if isinstance(more, list) else ())):
        text = value.get("content") if isinstance(value, Mapping) else value
        if isinstance(text, str) and text:
            yield text
