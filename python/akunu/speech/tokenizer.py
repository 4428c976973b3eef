"""Whisper's tokenizer: text, control tokens, words."""

from __future__ import annotations

import functools
import string
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from akunu.base.errors import InvalidArgumentError, TokenizerError
from akunu.speech.decoding_settings import DecodingSettings
from akunu.speech.languages import UNSPACED, language_code
from akunu.speech.special import TIMESTAMPS, SpecialTokens
from akunu.tokenizer import Tokenizer, TokenType
from akunu.tokenizer.bytelevel import CHAR_OF_BYTE
from akunu.tokenizer.hf import tokenizer_from_folder
from akunu.tokenizer.ranks import RankBpe
from akunu.tokenizer.vocabulary import Vocabulary

if TYPE_CHECKING:
    from akunu._core import WhisperFile
    from akunu.chat.structured.compiler import Compiler

__all__ = ["WhisperTokenizer", "Word"]

ENGLISH_SIZE: Final = 51864
"""Tokens of the published English-only models, which have the languages' tokens, but never saw them."""
TASKS: Final = ("transcribe", "translate")

# What is written for sounds that are no speech: brackets, notes, speaker marks. A hyphen or an apostrophe
# counts at the beginning of a word only.
_MARKS: Final = (
    *'"#()*+/:;<=>@[\\]^_`{|}~「」『』',
    *("<<", ">>", "<<<", ">>>", "--", "---", "-(", "-[", "('", '("', "((", "))", "(((", ")))", "[[", "]]"),
    *("{{", "}}", "♪♪", "♪♪♪"),
)
_NOTES: Final = "♩♪♫♬♭♮♯"

_CUT: Final = "\ufffd".encode()

Word = tuple[str, list[int]]
"""A word with the ids that spell it."""


class WhisperTokenizer:
    """Text to ids and back, and the tokens that steer a Whisper model. Safe to share between threads.

    Parameters
    ----------
    tokenizer : Tokenizer
        The tokenizer of the text.
    special : SpecialTokens
        The control tokens.
    vocab_size : int
        Rows of the model's embedding.
    settings : DecodingSettings, optional
        What the model's files say of decoding; None: nothing.

    Attributes
    ----------
    multilingual : bool
        Whether prompts name a language and a task.
    settings : DecodingSettings
        What the model's files say of decoding.

    Examples
    --------
    >>> tokenizer = WhisperTokenizer.from_file(file)  # doctest: +SKIP
    >>> tokenizer.decode(tokenizer.encode(" Hello"))  # doctest: +SKIP
    ' Hello'
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        special: SpecialTokens,
        vocab_size: int,
        settings: DecodingSettings | None = None,
    ) -> None:
        self.tokenizer = tokenizer
        self.special = special
        self.settings = DecodingSettings() if settings is None else settings
        self.multilingual = vocab_size != ENGLISH_SIZE and len(special.languages) > 1

    @classmethod
    def from_file(cls, file: WhisperFile, generation: Mapping[str, object] | None = None) -> WhisperTokenizer:
        """Make the tokenizer of a model file of whisper.cpp; `generation` is what it says of decoding."""
        vocab_size = file.sizes["n_vocab"]
        texts = _single_bytes_first(file.tokens, file.paths[0])
        if texts[-1] == b"<|endoftext|>":
            texts = texts[:-1]
        special = SpecialTokens.by_size(len(texts), vocab_size)
        control = special.texts() | {
            special.timestamp_begin + i: f"<|{i / 50:.2f}|>" for i in range(TIMESTAMPS)
        }
        tokens = ["".join(CHAR_OF_BYTE[byte] for byte in text) for text in texts]
        tokens += [control[i] for i in range(len(texts), vocab_size)]
        types = [int(TokenType.NORMAL)] * len(texts) + [int(TokenType.CONTROL)] * (vocab_size - len(texts))
        vocabulary = Vocabulary.from_metadata(
            {
                "tokenizer.ggml.model": "gpt2",
                "tokenizer.ggml.tokens": tokens,
                "tokenizer.ggml.token_type": types,
                "tokenizer.ggml.eos_token_id": special.end,
            }
        )
        encoded = [text if _CUT not in text else b"" for text in texts]
        where = f"{file.paths[0]}: generation_config.json"
        settings = DecodingSettings.of_object(generation or {}, where, special.languages, vocab_size)
        return cls(Tokenizer(vocabulary, RankBpe(encoded)), special, vocab_size, settings)

    @classmethod
    def from_folder(cls, folder: Path, vocab_size: int) -> WhisperTokenizer:
        """Make the tokenizer of a folder with `tokenizer.json`, or with the files that were before it.

        `vocab_size` are the rows of the embedding.
        """
        tokenizer = tokenizer_from_folder(folder, vocab_size)
        if tokenizer is None:
            raise TokenizerError(
                f"{folder} has no tokenizer.json; copy that of the model it was made of, such as "
                "openai/whisper-tiny's (openai/whisper-tiny.en's for English-only ones)"
            )
        ids = {tokenizer.token_text(i): i for i in tokenizer.added_ids}
        special = SpecialTokens.by_name(ids)
        if special.timestamp_begin + TIMESTAMPS > vocab_size:
            raise TokenizerError(
                f"{folder}: the timestamps begin at {special.timestamp_begin} and need {TIMESTAMPS} ids, "
                f"but the model has {vocab_size}"
            )
        settings = DecodingSettings.of_folder(folder, special.languages, vocab_size)
        return cls(tokenizer, special, vocab_size, settings)

    def encode(self, text: str) -> list[int]:
        """Ids of a text; nothing in it is a control token."""
        return self.tokenizer.encode(text, add_special=False)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of `ids`, without control tokens and timestamps."""
        return self.tokenizer.decode([i for i in ids if i < self.special.end])

    def seconds(self, token: int) -> float:
        """Return the seconds of a timestamp."""
        return (token - self.special.timestamp_begin) / 50

    def start_sequence(self, language: str | None, task: str = "transcribe") -> tuple[int, ...]:
        """The tokens that begin a transcript: its language and task, where the model knows several."""
        if task not in TASKS:
            raise InvalidArgumentError(f"task: found {task!r}, expected one of {', '.join(TASKS)}")
        if not self.multilingual:
            reason = "but this model knows only English; use a multilingual one"
            if task != "transcribe":
                raise InvalidArgumentError(f"task: found {task!r}, {reason}")
            if language is not None and language_code(language) != "en":
                raise InvalidArgumentError(f"language: found {language!r}, {reason}")
            return (self.special.start,)
        if language is None:
            raise InvalidArgumentError("a multilingual model needs a language; detect it first")
        code = language_code(language)
        if code not in self.special.languages:
            raise InvalidArgumentError(f"language: {language!r} is not one of this model's")
        task_token = self.special.translate if task == "translate" else self.special.transcribe
        return (self.special.start, self.special.languages[code], task_token)

    @functools.cached_property
    def non_speech_tokens(self) -> tuple[int, ...]:
        """Ids of marks and notes that stand for sounds, to be suppressed: OpenAI's list, by its rule."""
        spellings = [" -", " '", *_MARKS, *(" " + mark for mark in _MARKS)]
        encoded = [self.encode(spelling) for spelling in spellings]
        found = {ids[0] for ids in encoded if len(ids) == 1}
        for note in _NOTES:
            # In the published vocabularies notes share their first token, which has no other use. A single
            # byte has one.
            first = [self.encode(note)[0], self.encode(" " + note)[0]]
            found |= {token for token in first if len(self.tokenizer.pieces[token]) > 1}
        return tuple(sorted(found))

    @functools.cached_property
    def suppressed(self) -> tuple[int, ...]:
        """Ids that never come, if nobody chooses others: those that the model's files name."""
        named = self.settings.suppressed
        return self.non_speech_tokens if named is None else named

    @functools.cached_property
    def not_first(self) -> tuple[int, ...]:
        """Ids that do not begin a text, lest it be blank."""
        named = self.settings.not_first
        return (*self.encode(" "), self.special.end) if named is None else named

    @functools.cached_property
    def compiler(self) -> Compiler:
        """Makes constraints for transcriptions."""
        from akunu.chat.structured.compiler import Compiler

        return Compiler(self.tokenizer, self.tokenizer.vocab_size)

    def words(self, ids: Sequence[int], language: str | None = None) -> list[Word]:
        """Text ids as words: at spaces and punctuation, or at every character where no spaces are written."""
        characters = self._characters(ids)
        return characters if language in UNSPACED else self._at_spaces(characters)

    def _characters(self, ids: Sequence[int]) -> list[Word]:
        """The shortest runs of ids that are whole characters."""
        words: list[Word] = []
        run: list[int] = []
        for token in ids:
            run.append(token)
            text = self.tokenizer.decode(run, skip_special=False)
            # U+FFFD: a cut character, or one that the text really has.
            if "\ufffd" not in text or b"\xef\xbf\xbd" in b"".join(self.tokenizer.pieces[i] for i in run):
                words.append((text, run))
                run = []
        if run:
            words.append((self.tokenizer.decode(run, skip_special=False), run))
        return words

    def _at_spaces(self, parts: list[Word]) -> list[Word]:
        words: list[Word] = []
        for text, ids in parts:
            alone = ids[0] >= self.special.end or text.startswith(" ") or text.strip() in string.punctuation
            if alone or not words:
                words.append((text, list(ids)))
            else:
                before, before_ids = words[-1]
                words[-1] = (before + text, before_ids + ids)
        return words


def _single_bytes_first(tokens: Sequence[bytes], path: str) -> list[bytes]:
    """The tokens, the first 256 as the bytes that they are in GPT-2's order.

    Some converters decoded each token by itself, which leaves U+FFFD of those that end within a character.
    Those after the first 256 stay so: their text is lost.
    """
    single = [bytes([byte]) for byte in sorted(range(256), key=CHAR_OF_BYTE.__getitem__)]
    if len(tokens) < 256 or any(
        found not in (byte, _CUT) for found, byte in zip(tokens[:256], single, strict=True)
    ):
        raise TokenizerError(f"{path}: the vocabulary does not begin with the 256 single bytes")
    return [*single, *tokens[256:]]
