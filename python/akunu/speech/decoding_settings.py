"""Settings in a Whisper model's files that say how it decodes and hears.

OpenAI's folders and those tuned from them write it into `generation_config.json`; folders of before it was
there, into `config.json`. A file of whisper.cpp has no place for it; ember-speech's has a record of bytes of
the name `generation_config.json` behind its weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from akunu.base.errors import InvalidArgumentError, ModelFileError, UnsupportedError
from akunu.base.json_file import read_optional
from akunu.files.describe.config_numbers import shown
from akunu.speech.languages import language_code

__all__ = ["DecodingSettings", "check_preprocessor"]

_HEARD: Final = {"sampling_rate": 16000, "n_fft": 400, "hop_length": 160}
"""The numbers in `preprocessor_config.json` by which sound becomes every Whisper model's input."""


_OPTIONS: Final[Mapping[str, tuple[str, tuple[type, ...], str]]] = {
    "condition_on_prev_tokens": ("condition_on_previous_text", (bool,), "true or false"),
    "logprob_threshold": ("log_prob_threshold", (int, float), "a number"),
    "no_speech_threshold": ("no_speech_threshold", (int, float), "a number"),
    "compression_ratio_threshold": ("compression_ratio_threshold", (int, float), "a number"),
}
"""Transformers' names of options of `akunu.speech.options.TranscriptionOptions`, and what they may be."""


@dataclass(frozen=True)
class DecodingSettings:
    """The settings of decoding in a model's own files, which hold where the caller does not say otherwise.

    Attributes
    ----------
    suppressed : tuple of int or None
        Ids that never come (`suppress_tokens`); None: the marks of sounds that are no speech, by OpenAI's
        rule.
    not_first : tuple of int or None
        Ids that do not begin a text (`begin_suppress_tokens`); None: a space, and the end.
    language : str or None
        The code of the language that is written (`language`, or a language among `forced_decoder_ids`);
        None: it is detected.
    options : mapping
        Defaults of `akunu.speech.options.TranscriptionOptions` that the model was trained for: whether the
        text of a window is a prompt of the next (`condition_on_prev_tokens`), and the thresholds.
    notice : str or None
        What every user should know of the model; the command line says it once (`notice`).
    """

    suppressed: tuple[int, ...] | None = None
    not_first: tuple[int, ...] | None = None
    language: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    notice: str | None = None

    @classmethod
    def of_folder(cls, folder: Path, languages: Mapping[str, int], vocab_size: int) -> DecodingSettings:
        """Return the settings of a folder.

        Parameters
        ----------
        folder
            Where the files lie.
        languages
            Ids of the languages' tokens, by code.
        vocab_size
            Rows of the embedding.

        Raises
        ------
        ModelFileError
            A value is not what it should be.
        """
        path = folder / "generation_config.json"
        said = read_optional(path)
        if not said:  # the forced ids of older folders are those of the model that they were tuned from
            path = folder / "config.json"
            said = {
                name: value for name, value in read_optional(path).items() if name != "forced_decoder_ids"
            }
        return cls.of_object(said, path, languages, vocab_size)

    @classmethod
    def of_object(
        cls, said: Mapping[str, object], where: object, languages: Mapping[str, int], vocab_size: int
    ) -> DecodingSettings:
        """Return the settings of a `generation_config.json`, given its content; errors begin with `where`.

        Raises
        ------
        ModelFileError
            A value is not what it should be.
        """
        try:
            return cls(
                _ids(said, "suppress_tokens", vocab_size),
                _ids(said, "begin_suppress_tokens", vocab_size),
                _language(said.get("language"), said.get("forced_decoder_ids"), languages),
                _options(said),
                _text(said, "notice"),
            )
        except (ModelFileError, InvalidArgumentError) as error:
            raise ModelFileError(f"{where}: {error}") from None


def check_preprocessor(folder: Path, mels: int, audio_context: int) -> None:
    """Raise unless `preprocessor_config.json`, if there is one, describes the sound that Akunu gives a model.

    Raises
    ------
    UnsupportedError
        It has another rate, another window, or other mel filters.
    """
    path = folder / "preprocessor_config.json"
    said = read_optional(path)
    expected = _HEARD | {"feature_size": mels, "chunk_length": audio_context // 50}
    for name, value in expected.items():
        if said.get(name, value) != value:
            raise UnsupportedError(f"{path}: {name} is {shown(said[name])}, expected {value}")


def _ids(said: Mapping[str, object], name: str, vocab_size: int) -> tuple[int, ...] | None:
    value = said.get(name)
    if value is None:
        return None
    if not isinstance(value, list) or not all(type(i) is int and 0 <= i < vocab_size for i in value):
        raise ModelFileError(f"{name}: found {shown(value)}, expected a list of ids below {vocab_size}")
    return tuple(value)


def _options(said: Mapping[str, object]) -> dict[str, Any]:
    """Return the options for which the model's files name a value."""
    found: dict[str, Any] = {}
    for key, (name, kinds, expected) in _OPTIONS.items():
        value = said.get(key)
        if value is None:
            continue
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise ModelFileError(f"{key}: found {shown(value)}, expected {expected}")
        found[name] = value
    return found


def _text(said: Mapping[str, object], name: str) -> str | None:
    value = said.get(name)
    if not (value is None or isinstance(value, str)):
        raise ModelFileError(f"{name}: found {shown(value)}, expected a text")
    return value


def _language(named: object, forced: object, languages: Mapping[str, int]) -> str | None:
    """The code of the language that a folder is for."""
    if named is not None:
        if not isinstance(named, str):
            raise ModelFileError(f"language: found {shown(named)}, expected a code or an English name")
        return language_code(named.removeprefix("<|").removesuffix("|>"))
    if forced is None:
        return None
    if not isinstance(forced, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in forced):
        raise ModelFileError(
            f"forced_decoder_ids: found {shown(forced)}, expected pairs of a position and an id"
        )
    codes = {i: code for code, i in languages.items()}
    return next((codes[i] for _, i in forced if isinstance(i, int) and i in codes), None)
