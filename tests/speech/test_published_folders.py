"""Folders with the files that OpenAI's have: what they say of decoding is done, and nothing is warned of."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import akunu
from akunu.base.errors import ModelFileError, UnsupportedError
from akunu.speech.config import _HF as HF_SIZES
from akunu.speech.files import open_speech
from akunu.speech.options import TranscriptionOptions
from akunu.speech.rules import TokenRules
from akunu.speech.special import TIMESTAMPS, SpecialTokens
from akunu.tokenizer.bytelevel import CHAR_OF_BYTE

from . import model_files, tiny

SPECIAL = SpecialTokens.by_size(len(tiny.TOKENS), tiny.VOCAB)
NOISE = np.random.default_rng(0).normal(0, 0.1, 16000).astype(np.float32)


def tokenizer_json() -> dict[str, Any]:
    """As openai/whisper-base's: a template of two tokens before a text and one after."""
    texts = ["".join(CHAR_OF_BYTE[byte] for byte in token) for token in tiny.TOKENS]
    control = SPECIAL.texts() | {SPECIAL.timestamp_begin + i: f"<|{i / 50:.2f}|>" for i in range(TIMESTAMPS)}
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    around = ("<|startoftranscript|>", "<|notimestamps|>", "<|endoftext|>")
    start, plain, end = ({"SpecialToken": {"id": text, "type_id": 0}} for text in around)
    first, second = ({"Sequence": {"id": name, "type_id": kind}} for kind, name in enumerate("AB"))
    ids = {text: i for i, text in control.items()}
    return {
        "added_tokens": [
            {"id": i, "content": text, "special": i < SPECIAL.timestamp_begin} | flags
            for i, text in sorted(control.items())
        ],
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [start, plain, first, end],
            "pair": [start, plain, first, second, end],
            "special_tokens": {t: {"id": t, "ids": [ids[t]], "tokens": [t]} for t in around},
        },
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True},
        "model": {"type": "BPE", "vocab": {text: i for i, text in enumerate(texts)}, "merges": []},
    }


def generation(**more: Any) -> dict[str, Any]:
    """As openai/whisper-base's."""
    return {
        "_from_model_config": False,
        "alignment_heads": [[1, 0], [1, 3]],
        "begin_suppress_tokens": [32, SPECIAL.end],
        "bos_token_id": SPECIAL.end,
        "decoder_start_token_id": SPECIAL.start,
        "eos_token_id": SPECIAL.end,
        "forced_decoder_ids": [[1, None], [2, SPECIAL.transcribe]],
        "is_multilingual": True,
        "lang_to_id": {f"<|{code}|>": i for code, i in SPECIAL.languages.items()},
        "max_initial_timestamp_index": 50,
        "max_length": 64,
        "no_timestamps_token_id": SPECIAL.no_timestamps,
        "pad_token_id": SPECIAL.end,
        "prev_sot_token_id": SPECIAL.start_of_previous,
        "return_timestamps": False,
        "suppress_tokens": [1, 2, 7, SPECIAL.transcribe],
        "task_to_id": {"transcribe": SPECIAL.transcribe, "translate": SPECIAL.translate},
    } | more


def written(folder: Path, more: dict[str, Any] | None = None, heard: dict[str, Any] | None = None) -> Path:
    """The whole folder; `more`: of `generation_config.json`, `heard`: of `preprocessor_config.json`."""
    folder.mkdir(exist_ok=True)
    config = tiny.config()
    model_files.hf(folder, config, tiny.model().weights)
    sizes = {name: getattr(config, field) for name, field in HF_SIZES.items()}
    sizes |= {
        "model_type": "whisper",
        "architectures": ["WhisperForConditionalGeneration"],
        "begin_suppress_tokens": [32, SPECIAL.end],
        "forced_decoder_ids": [[1, SPECIAL.languages["en"]], [2, SPECIAL.transcribe]],
        "suppress_tokens": [1, 2],
        "use_cache": True,
    }
    preprocessor = {
        "chunk_length": 2,
        "feature_size": 80,
        "hop_length": 160,
        "n_fft": 400,
        "n_samples": 32000,
    }
    preprocessor |= {"sampling_rate": 16000, "feature_extractor_type": "WhisperFeatureExtractor"}
    for name, value in {
        "config.json": sizes,
        "generation_config.json": generation(**(more or {})),
        "preprocessor_config.json": preprocessor | (heard or {}),
        "tokenizer.json": tokenizer_json(),
        "tokenizer_config.json": {
            "add_bos_token": False,
            "bos_token": "<|endoftext|>",
            "return_attention_mask": False,
        },
    }.items():
        (folder / name).write_text(json.dumps(value))
    return folder


def test_a_folder_as_published_is_loaded_without_a_word_and_transcribes(tmp_path: Path) -> None:
    """The template of the tokenizer is no part of a decoder's prompt, which Akunu makes itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = akunu.load(written(tmp_path), task="transcribe", threads=1, progress=False)
    with model, akunu.load(whisper_cpp(tmp_path), task="transcribe", threads=1) as other:
        options: dict[str, Any] = {"language": "en", "beam_size": 1, "temperature": 0, "suppress_tokens": []}
        assert model.tokenizer.encode(" a day") == list(b" a day".translate(ORDER))
        found, wanted = (each.transcribe(NOISE, max_new_tokens=20, **options) for each in (model, other))
        assert [s.tokens for s in found.segments] == [s.tokens for s in wanted.segments] != []
        assert model.config.alignment_heads == ((1, 0), (1, 3))


ORDER = bytes(tiny.TOKENS.index(bytes([byte])) for byte in range(256))


def whisper_cpp(folder: Path) -> Path:
    path = folder / "ggml-tiny.bin"
    model_files.ggml(path, tiny.config(), tiny.model().weights, "f32", tiny.TOKENS)
    return path


@pytest.mark.parametrize("timestamps", [True, False])
def test_a_folder_may_have_the_files_of_before_tokenizer_json(timestamps: bool, tmp_path: Path) -> None:
    """Tuned models have such files; most list no timestamps among the added tokens."""
    folder = written(tmp_path)
    said = tokenizer_json()
    (folder / "tokenizer.json").unlink()
    added = {token["content"]: token["id"] for token in said["added_tokens"]}
    if not timestamps:
        added = {text: i for text, i in added.items() if i < SPECIAL.timestamp_begin}
    end = "<|endoftext|>"
    vocabulary = said["model"]["vocab"] | {end: added.pop(end)}
    for name, content in {
        "vocab.json": json.dumps(vocabulary),
        "merges.txt": "#version: 0.2\n",
        "added_tokens.json": json.dumps(added),
        "normalizer.json": "{}",
        "tokenizer_config.json": json.dumps({"tokenizer_class": "WhisperTokenizer", "eos_token": end}),
    }.items():
        (folder / name).write_text(content)
    options: dict[str, Any] = {"language": "en", "beam_size": 1, "temperature": 0, "max_new_tokens": 20}
    with akunu.load(folder, task="transcribe", threads=1, progress=False) as model:
        assert model.tokenizer.encode(" a day") == list(b" a day".translate(ORDER))
        found = model.transcribe(NOISE, **options)
    with akunu.load(written(tmp_path / "whole"), task="transcribe", threads=1) as model:
        wanted = model.transcribe(NOISE, **options)
    assert found.text == wanted.text
    assert [s.tokens for s in found.segments] == [s.tokens for s in wanted.segments] != []


def test_the_folder_says_which_tokens_are_suppressed(tmp_path: Path) -> None:
    tokenizer = open_speech(written(tmp_path)).tokenizer()
    table = TokenRules(tokenizer, TranscriptionOptions()).table
    assert table is not None
    assert {1, 2, 7} <= set(table.never) and 3 not in table.never
    assert table.not_first == (32, SPECIAL.end)
    table = TokenRules(tokenizer, TranscriptionOptions(suppress_tokens=[3], suppress_blank=False)).table
    assert table is not None
    assert 3 in table.never and 1 not in table.never and not table.not_first


@pytest.mark.parametrize(
    ("more", "language"),
    [
        ({}, None),
        ({"forced_decoder_ids": [[1, SPECIAL.languages["de"]], [2, SPECIAL.transcribe]]}, "de"),
        ({"forced_decoder_ids": [[1, SPECIAL.no_timestamps]]}, None),
        ({"language": "<|hi|>"}, "hi"),
        ({"language": "spanish", "task": "transcribe"}, "es"),
    ],
)
def test_the_folder_may_name_the_language(more: dict[str, Any], language: str | None, tmp_path: Path) -> None:
    with akunu.load(written(tmp_path, more), task="transcribe", threads=1) as model:
        assert model.tokenizer.settings.language == language
        found = model.transcribe(NOISE, max_new_tokens=4, temperature=0)
        assert language in (None, found.language)
        assert (found.language_probability == 1) == (language is not None)
        assert model.transcribe(NOISE, language="fr", max_new_tokens=4, temperature=0).language == "fr"


def test_the_folder_may_say_what_the_model_was_trained_for(tmp_path: Path) -> None:
    """By Transformers' names; what the caller says counts."""
    said = {"condition_on_prev_tokens": False, "logprob_threshold": -0.5, "no_speech_threshold": 0.25}
    with akunu.load(written(tmp_path, said), task="transcribe", threads=1) as model:
        chosen = model._options({"log_prob_threshold": None})
    assert not chosen.condition_on_previous_text
    assert (chosen.log_prob_threshold, chosen.no_speech_threshold) == (None, 0.25)
    assert TranscriptionOptions().condition_on_previous_text


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"condition_on_prev_tokens": 3}, "condition_on_prev_tokens: found 3, expected true or false"),
        ({"notice": 3}, "notice: found 3, expected a text"),
        ({"suppress_tokens": [-1]}, r"suppress_tokens: found \[-1\], expected a list of ids below"),
        ({"begin_suppress_tokens": "x"}, "begin_suppress_tokens: found 'x', expected a list of ids"),
        ({"forced_decoder_ids": [1]}, r"forced_decoder_ids: found \[1\], expected pairs"),
        ({"language": "klingon"}, "language: found 'klingon', expected a code or an English name"),
    ],
)
def test_what_makes_no_sense_is_refused(more: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=rf"generation_config.json: {message}"):
        akunu.load(written(tmp_path, more), task="transcribe")


def test_a_model_that_hears_otherwise_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match=r"preprocessor_config.json: hop_length is 320, expected 160"):
        akunu.load(written(tmp_path, heard={"hop_length": 320}), task="transcribe")


def test_ctranslate2_and_pickles_are_told_apart(tmp_path: Path) -> None:
    folder = tmp_path / "faster-whisper-small"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"alignment_heads": [[5, 3]], "suppress_ids": [1]}))
    for name in ("vocabulary.json", "tokenizer.json"):
        (folder / name).write_text("{}")
    (folder / "model.bin").write_bytes(b"\x06\x00\x00\x00\x0c\x00WhisperSpec\x00")
    for path in (folder, folder / "model.bin"):
        with pytest.raises(UnsupportedError, match=r"CTranslate2's format .* \(such as openai"):
            akunu.load(path, task="transcribe")
    (tmp_path / "large-v3-turbo.pt").write_bytes(b"PK\x03\x04")
    with pytest.raises(UnsupportedError, match=r"pickle.*\(openai/whisper-large-v3-turbo\)"):
        akunu.load(tmp_path / "large-v3-turbo.pt", task="transcribe")
    tuned = tmp_path / "tuned"
    tuned.mkdir()
    (tuned / "config.json").write_text('{"model_type": "whisper"}')
    (tuned / "pytorch_model.bin").write_bytes(b"PK\x03\x04")
    with pytest.raises(UnsupportedError, match=r"AutoModelForSpeechSeq2Seq\.from_pretrained"):
        akunu.load(tuned, task="transcribe")
