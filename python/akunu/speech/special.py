"""The control tokens of a Whisper vocabulary: which id says what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from akunu.base.errors import TokenizerError
from akunu.speech.languages import LANGUAGES

__all__ = ["TIMESTAMPS", "SpecialTokens"]

TIMESTAMPS: Final = 1501
"""0.00, 0.02, ... 30.00 s."""

_AFTER_LANGUAGES: Final = (
    "translate",
    "transcribe",
    "startoflm",
    "startofprev",
    "nospeech",
    "notimestamps",
)
_OLD_NAMES: Final = {"nospeech": "nocaptions"}


@dataclass(frozen=True)
class SpecialTokens:
    """Ids of the control tokens.

    Attributes
    ----------
    end : int
        End of the text; ids below are text.
    start : int
        Start of a transcript.
    languages : mapping of str to int
        By code. An English-only model has the tokens too, and never uses them.
    translate, transcribe : int
        The task.
    start_of_lm, start_of_previous : int
        Before text without sound (unused), before the text of the window before.
    no_speech : int
        Its probability at the start is that of silence.
    no_timestamps : int
        Says that no timestamps follow.
    """

    end: int
    start: int
    languages: Mapping[str, int]
    translate: int
    transcribe: int
    start_of_lm: int
    start_of_previous: int
    no_speech: int
    no_timestamps: int

    @property
    def timestamp_begin(self) -> int:
        """0.00 s; the ids from here on count in fiftieths of a second."""
        return self.no_timestamps + 1

    @classmethod
    def by_size(cls, end: int, vocab_size: int) -> SpecialTokens:
        """Number the tokens by the published layout: end, start, languages, six more, then timestamps."""
        count = vocab_size - end - 2 - len(_AFTER_LANGUAGES) - TIMESTAMPS
        if not 1 <= count <= len(LANGUAGES):
            raise TokenizerError(
                f"a vocabulary of {vocab_size} tokens whose texts end at {end} leaves {count} languages, "
                f"expected 1 to {len(LANGUAGES)}: this is not a Whisper vocabulary"
            )
        languages = {code: end + 2 + i for i, code in enumerate(list(LANGUAGES)[:count])}
        return cls(end, end + 1, languages, *range(end + 2 + count, end + 2 + count + len(_AFTER_LANGUAGES)))

    @classmethod
    def by_name(cls, ids: Mapping[str, int]) -> SpecialTokens:
        """From the ids of the tokens as they are written, ``<|startoftranscript|>`` and its like."""

        def named(name: str) -> int:
            for spelling in (name, _OLD_NAMES.get(name)):
                if f"<|{spelling}|>" in ids:
                    return ids[f"<|{spelling}|>"]
            raise TokenizerError(f"the vocabulary has no token <|{name}|>; this is not a Whisper vocabulary")

        return cls(
            named("endoftext"),
            named("startoftranscript"),
            {code: ids[f"<|{code}|>"] for code in LANGUAGES if f"<|{code}|>" in ids},
            *map(named, _AFTER_LANGUAGES),
        )

    def texts(self) -> dict[int, str]:
        """The text of each of them, without the timestamps."""
        named = {f"<|{code}|>": i for code, i in self.languages.items()}
        named |= {"<|endoftext|>": self.end, "<|startoftranscript|>": self.start}
        after = (
            self.translate,
            self.transcribe,
            self.start_of_lm,
            self.start_of_previous,
            self.no_speech,
            self.no_timestamps,
        )
        named |= {f"<|{name}|>": i for name, i in zip(_AFTER_LANGUAGES, after, strict=True)}
        return {i: name for name, i in named.items()}
