"""The vocabulary of a GGUF file: its keys, checked, with the defaults of each tokenizer model.

Key names and defaults follow the GGUF specification and llama.cpp (``src/llama-vocab.cpp``), which most
model files are converted for and tested with.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from akunu.base.errors import TokenizerError, UnsupportedError
from akunu.tokenizer.templates import Template

__all__ = ["ADDED_TYPES", "CONTROL_TYPES", "TokenType", "Vocabulary", "strings"]

_KEY = "tokenizer.ggml."


class TokenType(enum.IntEnum):
    """Values of ``tokenizer.ggml.token_type``."""

    UNDEFINED = 0
    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


@dataclass(frozen=True)
class _ModelDefaults:
    """The defaults of a tokenizer model whose keys are absent."""

    add_bos: bool = False
    add_eos: bool = False
    add_space_prefix: bool = False
    bos: int | None = None
    eos: int | None = None
    unknown: int | None = None


_MODELS: dict[str, _ModelDefaults] = {
    "llama": _ModelDefaults(add_bos=True, add_space_prefix=True, bos=1, eos=2, unknown=0),
    "gemma4": _ModelDefaults(add_bos=True, bos=2, eos=1, unknown=3),
    "gpt2": _ModelDefaults(),
    "bert": _ModelDefaults(add_bos=True, add_eos=True, bos=101, eos=102, unknown=100),
    "t5": _ModelDefaults(add_eos=True, eos=1, unknown=2),
}

# Plain integers: an enumeration's member is slow to compare with, and 256k tokens are.
CONTROL_TYPES = frozenset({int(TokenType.CONTROL), int(TokenType.UNKNOWN)})
"""Types of the tokens that only a template may write."""
ADDED_TYPES = CONTROL_TYPES | {int(TokenType.USER_DEFINED)}
"""Types of the tokens that are matched as a whole in a text."""

# Tokens that end a turn whatever type the file gives them: no text contains them by accident. A file
# that calls them NORMAL or USER_DEFINED is mistaken (llama.cpp overrides the type too): left as they are,
# a user's text could end the turn.
_END_TEXTS = frozenset(
    {
        "<|eot_id|>",
        "<|eom_id|>",
        "<|im_end|>",
        "<|end|>",
        "<|return|>",
        "<|call|>",
        "<|calls|>",
        "<|flush|>",
        "<end_of_turn>",
        "<turn|>",
        "<|tool_response>",
        "<|endoftext|>",
        "<|end_of_text|>",
        "<end_of_utterance>",
        "<\uff5cend\u2581of\u2581sentence\uff5c>",
        # Fill-in-the-middle: padding, next file, next repository.
        "<|fim_pad|>",
        "<|fim_repo|>",
        "<|repo_name|>",
        "<|file_sep|>",
    }
)
# These also occur as ordinary words of a vocabulary (Gemma has the HTML tag </s>), so here the type decides.
_END_TEXTS_IF_CONTROL = frozenset(
    {
        "</s>",
        "<eos>",
        "<EOT>",
        "_<EOT>",
        "[EOT]",
        "[EOS]",
        "[e~[",
        # StarCoder's, Granite's and others' fill-in-the-middle.
        "<fim-pad>",
        "<fim_pad>",
        "<PAD>",
        "[PAD]",
        "<fim-repo>",
        "<REPO>",
        "<reponame>",
    }
)


def _sequence(
    metadata: Mapping[str, object], name: str, length: int | None = None
) -> Sequence[object] | None:
    value = metadata.get(_KEY + name)
    if value is None:
        return None
    if hasattr(value, "tolist"):
        value = value.tolist()
    if not isinstance(value, (list, tuple)):
        raise TokenizerError(f"{_KEY}{name}: found {type(value).__name__}, expected an array")
    if length is not None and len(value) < length:
        raise TokenizerError(f"{_KEY}{name}: found {len(value)} entries, expected {length} (one per token)")
    return value


def strings(metadata: Mapping[str, object], name: str) -> list[str] | None:
    """The array of strings ``tokenizer.ggml.NAME``, or None where it is absent."""
    value = _sequence(metadata, name)
    if value is None:
        return None
    if set(map(type, value)) - {str}:
        raise TokenizerError(f"{_KEY}{name}: found an entry that is not a string")
    return list(value)  # type: ignore[arg-type]


def _flag(metadata: Mapping[str, object], name: str, default: bool) -> bool:
    value = metadata.get(_KEY + name)
    if value is None:
        return default
    if not isinstance(value, (bool, int)):
        raise TokenizerError(f"{_KEY}{name}: found {value!r}, expected a boolean")
    return bool(value)


@dataclass
class Vocabulary:
    """Tokens, scores, types and special ids of one GGUF file.

    Attributes
    ----------
    model : str
        ``llama``, ``gemma4``, ``gpt2``, ``bert`` or ``t5``.
    tokens : list of str
        Token texts by id, as stored (byte-level tokens in their byte alphabet, spaces as U+2581).
    types : list of int
        A `TokenType` per id.
    scores : list of float or None
        A score per id; None where the file has none.
    end_of_generation : frozenset of int
        The ids after which a model has finished its turn.
    rstrip, lstrip : frozenset of int
        Added tokens that swallow white space on their right or left.
    white_space : str
        The characters that they swallow.
    single_word : frozenset of int
        Added tokens that are none where a letter, a digit or an underscore stands beside them.
    normalized : frozenset of int
        Added tokens that are found in the normalised text, which the encoder does.
    prefix_after_added : bool
        With `add_space_prefix`: the text after an added token gets a space too, not only the first text.
    spaces_in_added : bool
        U+2581 in a user-defined token is a space too. (Converters to GGUF have already written one.)
    pair_separators : int
        How many EOS stand between two texts that are encoded as one; where there are two, both texts are of
        one kind.
    template : Template, optional
        The special tokens around texts; None where `add_bos`, `add_eos` and `pair_separators` say it all.
    names : mapping of str to str
        Texts of special tokens by the names that chat templates have for them (``eos_token``); empty where
        the file has only ids. A text may end with another token than that.
    chats_begin : bool
        A chat whose template has not written BOS gets it, as in llama.cpp. (Transformers adds nothing.)
    """

    model: str
    pre: str | None
    tokens: list[str]
    types: list[int]
    scores: list[float] | None
    bos: int | None
    eos: int | None
    unknown: int | None
    add_bos: bool
    add_eos: bool
    add_space_prefix: bool
    remove_extra_whitespaces: bool
    lowercase: bool
    strip_accents: bool
    end_of_generation: frozenset[int] = frozenset()
    rstrip: frozenset[int] = frozenset()
    lstrip: frozenset[int] = frozenset()
    white_space: str = " \t\n\v\f\r"  # what C's isspace() accepts
    single_word: frozenset[int] = frozenset()
    normalized: frozenset[int] = frozenset()
    prefix_after_added: bool = True
    spaces_in_added: bool = False
    pair_separators: int = 1
    template: Template | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    chats_begin: bool = True

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, object]) -> Vocabulary:
        """Read and check the ``tokenizer.ggml.*`` keys.

        Raises
        ------
        TokenizerError
            A key is missing or inconsistent.
        UnsupportedError
            The tokenizer model is one that Akunu does not have.
        """
        model = metadata.get(_KEY + "model")
        if model is None:
            raise TokenizerError(
                f"{_KEY}model is missing: the file has no vocabulary. "
                "Convert the model again with its tokenizer"
            )
        if not isinstance(model, str) or model not in _MODELS:
            raise UnsupportedError(
                f"{_KEY}model is {model!r}; Akunu has " + ", ".join(repr(name) for name in _MODELS)
            )
        tokens = strings(metadata, "tokens")
        if not tokens:
            raise TokenizerError(f"{_KEY}tokens is missing or empty")
        pre = metadata.get(_KEY + "pre")
        if pre is not None and not isinstance(pre, str):
            raise TokenizerError(f"{_KEY}pre: found {pre!r}, expected a string")
        if model == "llama" and pre == "gemma4":  # as Ollama's converter says it
            model = "gemma4"
        defaults = _MODELS[model]
        vocabulary = cls(
            model=model,
            pre=pre or None,
            tokens=tokens,
            types=_types(metadata, model, tokens),
            scores=_scores(metadata, len(tokens)),
            bos=_special_id(metadata, ("bos_token_id", "cls_token_id"), defaults.bos, len(tokens)),
            eos=_special_id(
                metadata,
                # GGUF's key is spelt "seperator"; both spellings are met.
                ("seperator_token_id", "separator_token_id", "eos_token_id")
                if model == "bert"
                else ("eos_token_id",),
                defaults.eos,
                len(tokens),
            ),
            unknown=_special_id(metadata, ("unknown_token_id",), defaults.unknown, len(tokens)),
            add_bos=_flag(metadata, "add_bos_token", defaults.add_bos),
            add_eos=_flag(metadata, "add_eos_token", defaults.add_eos) or model == "bert",
            add_space_prefix=_flag(metadata, "add_space_prefix", defaults.add_space_prefix),
            remove_extra_whitespaces=_flag(metadata, "remove_extra_whitespaces", False),
            lowercase=_flag(metadata, "normalizer.lowercase", True),
            strip_accents=False,
        )
        vocabulary.strip_accents = _flag(metadata, "normalizer.strip_accents", vocabulary.lowercase)
        length = len(tokens)
        ends = [
            _special_id(metadata, (key,), None, length)
            for key in ("eos_token_id", "eot_token_id", "eom_token_id")
        ]
        more = metadata.get("tokenizer.ggml.eos_token_ids")  # Ollama's files have a list besides
        if isinstance(more, Iterable):
            ends += [int(end) for end in more if 0 <= int(end) < length]
        vocabulary.mark_ends_of_generation(end for end in ends if end is not None)
        vocabulary._mark_strips(metadata)
        # RoBERTa and XLM-R put two between the texts of a pair, of one kind, and GGUF does not say so.
        if metadata.get("general.architecture") == "bert" and model in ("gpt2", "t5"):
            vocabulary.pair_separators = 2
        return vocabulary

    def text_template(self) -> Template:
        """The special tokens around a text, and of a pair."""
        if self.template is not None:
            return self.template
        before = (self.bos,) if self.add_bos and self.bos is not None else ()
        after = (self.eos,) if self.add_eos and self.eos is not None else ()
        n = self.pair_separators
        return Template.of_ends(before, after, after * n, kinds=n == 1)

    def mark_ends_of_generation(self, known: Iterable[int]) -> None:
        """Find the tokens that end a turn, besides those that the file names."""
        ends = {}
        found = (_END_TEXTS | _END_TEXTS_IF_CONTROL).intersection(self.tokens)
        for i in [i for i, text in enumerate(self.tokens) if text in found] if found else ():
            text = self.tokens[i]
            if text in _END_TEXTS:
                ends[text] = i
                self.types[i] = TokenType.CONTROL
            elif text in _END_TEXTS_IF_CONTROL and self.types[i] == TokenType.CONTROL:
                ends[text] = i
        # Harmony-style formats end a message, not the turn, with <|end|>.
        if "<|end|>" in ends and (
            {"<|return|>", "<|call|>"} <= ends.keys() or {"<|flush|>", "<|calls|>"} <= ends.keys()
        ):
            del ends["<|end|>"]
        ids = {*ends.values(), *known}
        if self.eos is not None:
            ids.add(self.eos)
        self.end_of_generation = frozenset(ids)

    def _mark_strips(self, metadata: Mapping[str, object]) -> None:
        # GGUF does not carry these flags of tokenizer.json; the models that need them are known.
        name = str(metadata.get("general.name", "")).lower()
        architecture = str(metadata.get("general.architecture", ""))
        pre = self.pre or ""
        if self.model == "llama" and (architecture == "phi3" or "phi-3" in name or "phi3" in name):
            keep = {"<unk>", "<s>", "<|endoftext|>"}
            self.rstrip = frozenset(i for i in self.ids_of_types(ADDED_TYPES) if self.tokens[i] not in keep)
        masks: set[str] = set()
        if pre in {"jina-v2-de", "jina-v2-es", "jina-v2-code"} or architecture in {
            "nomic-bert-moe",
            "jina-bert-v3",
        }:
            masks.add("<mask>")
        if "modern-bert" in name:
            masks.add("[MASK]")
        if masks:
            self.lstrip = frozenset(i for i in self.ids_of_types(ADDED_TYPES) if self.tokens[i] in masks)

    def ids_of_types(self, types: frozenset[int]) -> list[int]:
        """Ids of all tokens that have one of these types."""
        return [i for i, kind in enumerate(self.types) if kind in types]


def _types(metadata: Mapping[str, object], model: str, tokens: list[str]) -> list[int]:
    found = _sequence(metadata, "token_type", len(tokens))
    if found is None:
        types = [int(TokenType.NORMAL)] * len(tokens)
        if model in ("llama", "gemma4"):
            for i, text in enumerate(tokens):
                if len(text) == 6 and text.startswith("<0x") and text.endswith(">"):
                    types[i] = TokenType.BYTE
    else:
        if set(map(type, found)) - {int}:
            raise TokenizerError(f"{_KEY}token_type: found an entry that is not an integer")
        types = list(found[: len(tokens)])  # type: ignore[arg-type]
    # SentencePiece reserves ids 1 and 2 for these; Phi-3's file calls the second one user-defined.
    if model == "llama" and tokens[1:3] == ["<s>", "</s>"]:
        types[1] = types[2] = TokenType.CONTROL
    return types


def _scores(metadata: Mapping[str, object], length: int) -> list[float] | None:
    found = _sequence(metadata, "scores", length)
    if found is None:
        return None
    if set(map(type, found)) - {float, int} or not all(map(math.isfinite, found)):  # type: ignore[arg-type]
        raise TokenizerError(f"{_KEY}scores: found an entry that is not a finite number")
    return list(found[:length])  # type: ignore[arg-type]


def _special_id(
    metadata: Mapping[str, object], names: tuple[str, ...], default: int | None, length: int
) -> int | None:
    for name in names:
        value = metadata.get(_KEY + name)
        if value is None:
            continue
        if not isinstance(value, int) or isinstance(value, bool):
            raise TokenizerError(f"{_KEY}{name}: found {value!r}, expected a token id")
        # Converters write -1 or 2**32-1 for "none".
        if 0 <= value < length:
            return value
    return default if default is not None and default < length else None
