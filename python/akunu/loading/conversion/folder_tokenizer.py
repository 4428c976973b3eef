"""Write a folder's `tokenizer.json` and `tokenizer_config.json` for a vocabulary that comes as GGUF.

The inverse of `akunu.loading.conversion.tokenizer_metadata`, and as strict: a text with everything in it must
come out the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from akunu.base.errors import UnsupportedError
from akunu.loading.conversion.tokenizer_metadata import NAMED, SAMPLES
from akunu.tokenizer import Tokenizer
from akunu.tokenizer.bytelevel import splits
from akunu.tokenizer.pieces import SPACE
from akunu.tokenizer.pretokenizers import pre_tokenizer
from akunu.tokenizer.unigram import as_bytes
from akunu.tokenizer.vocabulary import ADDED_TYPES, CONTROL_TYPES, TokenType, Vocabulary, strings

if TYPE_CHECKING:
    import tokenizers

__all__ = ["folder_tokenizer"]

_TEMPLATE: Final = "tokenizer.chat_template"

Json = dict[str, Any]


def folder_tokenizer(
    metadata: Mapping[str, object], tokenizer: Tokenizer, context_length: int
) -> dict[str, str]:
    """The texts of the tokenizer's files, by name.

    Parameters
    ----------
    metadata
        The keys of GGUF.
    tokenizer
        Made from them.
    context_length
        The context length of the model.

    Raises
    ------
    UnsupportedError
        The `tokenizers` library has no way to do what this tokenizer does.
    """
    import tokenizers

    text = json.dumps(_tokenizer_json(metadata, tokenizer), ensure_ascii=False)
    library = tokenizers.Tokenizer.from_str(text)
    for sample in SAMPLES:
        if library.encode(sample).ids != tokenizer.encode(sample):
            raise UnsupportedError(
                "tokenizer.ggml.tokens: the tokenizers library, which reads tokenizer.json, makes other "
                "tokens of a text of many scripts"
            )
    named = {
        "bos_token": tokenizer.bos_id,
        "eos_token": tokenizer.eos_id,
        "unk_token": tokenizer.unknown_id,
        **{key: metadata.get(f"tokenizer.ggml.{name}_token_id") for key, name in NAMED.items()},
    }
    config: Json = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": context_length,
        "clean_up_tokenization_spaces": False,
        "add_bos_token": bool(tokenizer.template.before),
        "add_eos_token": bool(tokenizer.template.after),
        **{
            key: tokenizer.token_text(i)
            for key, i in named.items()
            if isinstance(i, int) and 0 <= i < tokenizer.vocab_size
        },
        **_templates(metadata),
    }
    return {"tokenizer.json": text, "tokenizer_config.json": json.dumps(config, indent=2)}


def _tokenizer_json(metadata: Mapping[str, object], tokenizer: Tokenizer) -> Json:
    vocabulary = Vocabulary.from_metadata(metadata)
    texts: dict[str, int] = {}
    for i, text in enumerate(vocabulary.tokens):
        if text and _is_utf8(text):  # no text is encoded to any other
            texts.setdefault(text, i)
    entries: object = texts
    match tokenizer.model:
        case "gpt2":
            library = _byte_level(vocabulary, metadata)
        case "llama":
            library = _sentencepiece(vocabulary, texts, _merges(vocabulary, texts))
        case "gemma4":
            pairs = [merge.split(" ") for merge in strings(metadata, "merges") or ()]
            library = _sentencepiece(vocabulary, texts, [(pair[0], pair[1]) for pair in pairs])
            library.pre_tokenizer = _lines()
        case "bert":
            library, entries = _wordpiece(vocabulary, texts)
        case _:
            library, entries = _unigram(vocabulary, metadata)
    data: Json = json.loads(library.to_str())
    data["model"]["vocab"] = entries
    added = [texts[text] for text in texts if vocabulary.types[texts[text]] in ADDED_TYPES]
    data["added_tokens"] = [
        {
            "id": i,
            "content": vocabulary.tokens[i],
            "single_word": False,
            "lstrip": i in vocabulary.lstrip,
            "rstrip": i in vocabulary.rstrip,
            "normalized": False,
            "special": vocabulary.types[i] in CONTROL_TYPES,
        }
        for i in added
    ]
    data["post_processor"] = _ends(tokenizer)
    return data


def _byte_level(vocabulary: Vocabulary, metadata: Mapping[str, object]) -> tokenizers.Tokenizer:
    """The library's merges, and the same patterns as ours."""
    import tokenizers
    from tokenizers import decoders, models, pre_tokenizers

    entries = {
        text: i
        for i, (text, kind) in enumerate(zip(vocabulary.tokens, vocabulary.types, strict=True))
        if kind not in CONTROL_TYPES and _is_utf8(text)
    }
    merges = []
    for line in strings(metadata, "merges") or ():
        left, _, right = line.partition(" ")
        if left in entries and right in entries and left + right in entries:
            merges.append((left, right))
    pre = pre_tokenizer(vocabulary.pre)
    library = tokenizers.Tokenizer(models.BPE(entries, merges, ignore_merges=pre.ignore_merges))
    library.pre_tokenizer = pre_tokenizers.Sequence(
        [*splits(pre), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    library.decoder = decoders.ByteLevel()
    return library


def _lines() -> tokenizers.pre_tokenizers.PreTokenizer:
    """Return what cuts runs of newlines from the rest."""
    import tokenizers

    return tokenizers.pre_tokenizers.Split(tokenizers.Regex("\n+|[^\n]+"), "isolated")


def _sentencepiece(
    vocabulary: Vocabulary, texts: Mapping[str, int], merges: list[tuple[str, str]]
) -> tokenizers.Tokenizer:
    """The library's merges and normalizers for a vocabulary of pieces."""
    import tokenizers
    from tokenizers import decoders, models, normalizers

    unknown = None if vocabulary.unknown is None else vocabulary.tokens[vocabulary.unknown]
    n_bytes = sum(kind == TokenType.BYTE for kind in vocabulary.types)
    library = tokenizers.Tokenizer(
        models.BPE(
            dict(texts),
            merges,
            unk_token=unknown,
            fuse_unk=True,
            byte_fallback=n_bytes == 256,
        )
    )
    spaces: list[normalizers.Normalizer] = [normalizers.Replace(" ", SPACE)]
    steps: list[decoders.Decoder] = [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    if vocabulary.add_space_prefix:
        spaces.insert(0, normalizers.Prepend(SPACE))
        steps.append(decoders.Strip(" ", 1, 0))
    library.normalizer = normalizers.Sequence(spaces)
    library.decoder = decoders.Sequence(steps)
    return library


def _wordpiece(
    vocabulary: Vocabulary, texts: Mapping[str, int]
) -> tuple[tokenizers.Tokenizer, dict[str, int]]:
    """BERT's model and normalizer, and its own way to write words and their continuations."""
    import tokenizers
    from tokenizers import decoders, models, normalizers, pre_tokenizers

    entries: dict[str, int] = {}
    for text, i in texts.items():
        if vocabulary.types[i] == TokenType.NORMAL and not (text[0] == "[" and text[-1] == "]"):
            text = text[1:] if text.startswith(SPACE) else "##" + text
        entries.setdefault(text, i)
    unknown = vocabulary.tokens[vocabulary.unknown or 0]
    library = tokenizers.Tokenizer(models.WordPiece({unknown: 0}, unk_token=unknown))
    library.normalizer = normalizers.BertNormalizer(
        strip_accents=vocabulary.strip_accents, lowercase=vocabulary.lowercase
    )
    library.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    library.decoder = decoders.WordPiece()
    return library, entries


def _unigram(
    vocabulary: Vocabulary, metadata: Mapping[str, object]
) -> tuple[tokenizers.Tokenizer, list[tuple[str, float]]]:
    """Unigram with the file's map of characters, and its tokens with their scores."""
    import tokenizers
    from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers

    assert vocabulary.scores is not None
    library = tokenizers.Tokenizer(models.Unigram([("", 0.0)], 0, False))
    steps: list[normalizers.Normalizer] = []
    charsmap = metadata.get("tokenizer.ggml.precompiled_charsmap")
    if charsmap is not None:
        steps.append(normalizers.Precompiled(as_bytes(charsmap)))
    if vocabulary.remove_extra_whitespaces:
        steps += [normalizers.Strip(), normalizers.Replace(Regex(" {2,}"), " ")]
    scheme = "always" if vocabulary.add_space_prefix else "never"
    library.normalizer = normalizers.Sequence(steps)
    library.pre_tokenizer = pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme=scheme)
    library.decoder = decoders.Metaspace(replacement=SPACE, prepend_scheme=scheme)
    seen: set[str] = set()
    entries = []
    for i, (text, score) in enumerate(zip(vocabulary.tokens, vocabulary.scores, strict=True)):
        known = _is_utf8(text) and text not in seen
        seen.add(text)
        entries.append((text if known else f" {i}", float(score)))  # which no text has
    data = json.loads(library.to_str())
    data["model"]["unk_id"] = vocabulary.unknown
    data["model"]["vocab"] = entries
    return tokenizers.Tokenizer.from_str(json.dumps(data)), entries


def _merges(vocabulary: Vocabulary, texts: Mapping[str, int]) -> list[tuple[str, str]]:
    """Every pair of tokens that makes one, the best one first, as SentencePiece takes them."""
    assert vocabulary.scores is not None
    scores = vocabulary.scores
    normal = {text: i for text, i in texts.items() if vocabulary.types[i] == TokenType.NORMAL}

    def pairs(text: str) -> Iterable[tuple[str, str]]:
        cuts = ((text[:cut], text[cut:]) for cut in range(1, len(text)))
        return [(left, right) for left, right in cuts if left in normal and right in normal]

    for i, kind in enumerate(vocabulary.types):
        if kind == TokenType.UNUSED and pairs(vocabulary.tokens[i]):
            raise UnsupportedError(
                f"tokenizer.ggml.token_type: token {i} is unused, but a step on the way to others, which "
                "tokenizer.json cannot say"
            )
    order = sorted(normal, key=lambda text: (-scores[normal[text]], normal[text]))
    return [pair for text in order for pair in pairs(text)]


def _ends(tokenizer: Tokenizer) -> Json | None:
    """The step that puts special tokens around a text, and around and between two."""
    template = tokenizer.template
    names = {i: tokenizer.token_text(i) for i in template.ids}
    if not names:
        return None

    def special(ids: Iterable[int], type_id: int) -> list[Json]:
        return [{"SpecialToken": {"id": names[i], "type_id": type_id}} for i in ids]

    def text(name: str, type_id: int) -> list[Json]:
        return [{"Sequence": {"id": name, "type_id": type_id}}]

    pair = template.pair
    kind, of_first = (0, 0) if pair.first_kind is None else (1, pair.first_kind)
    return {
        "type": "TemplateProcessing",
        "single": special(template.before, 0) + text("A", 0) + special(template.after, 0),
        "pair": [
            *special(pair.before, 0),
            *text("A", 0),
            *special(pair.between[:of_first], 0),
            *special(pair.between[of_first:], kind),
            *text("B", kind),
            *special(pair.after, kind),
        ],
        "special_tokens": {name: {"id": name, "ids": [i], "tokens": [name]} for i, name in names.items()},
    }


def _templates(metadata: Mapping[str, object]) -> Json:
    """The chat templates: one text, or several with names."""
    found = {
        key.removeprefix(_TEMPLATE).removeprefix(".") or "default": text
        for key, text in metadata.items()
        if key.startswith(_TEMPLATE) and isinstance(text, str)
    }
    if not found:
        return {}
    if found.keys() == {"default"}:
        return {"chat_template": found["default"]}
    return {"chat_template": [{"name": name, "template": text} for name, text in found.items()]}


def _is_utf8(text: str) -> bool:
    """Whether a text that was read with `surrogateescape` was UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
