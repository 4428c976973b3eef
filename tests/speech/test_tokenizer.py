"""Whisper's tokens: text, control tokens, what is suppressed, words."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from akunu._core import WhisperFile
from akunu.base.errors import InvalidArgumentError, TokenizerError
from akunu.speech.languages import LANGUAGES, language_code
from akunu.speech.special import SpecialTokens
from akunu.speech.tokenizer import WhisperTokenizer
from formats import whisper_bytes
from tokenizer.vocabularies import data_file

from . import tiny

SUPPRESSED = json.loads(Path(__file__).with_name("non_speech.json").read_text())
"""What OpenAI's models suppress, by Transformers' configuration of Whisper."""


def published(name: str, tmp_path: Path) -> WhisperTokenizer:
    """A file with the whole vocabulary; those of the test data are cut at U+FFFD."""
    lines = data_file(f"whisper/{name}.tiktoken").read_bytes().splitlines()
    tokens = [base64.b64decode(line.split()[0]) for line in lines]
    vocab = 51865 if name == "multilingual" else 51864
    tokens += [b"<|endoftext|>"] if vocab == 51864 else []
    path = tmp_path / "ggml.bin"
    path.write_bytes(whisper_bytes.file((), tokens, (vocab, *whisper_bytes.TINY[1:])))
    return WhisperTokenizer.from_file(WhisperFile(str(path)))


@pytest.mark.parametrize("name", ["multilingual", "gpt2"])
def test_the_published_vocabularies(name: str, tmp_path: Path) -> None:
    tokenizer = published(name, tmp_path)
    special = tokenizer.special
    ids = SUPPRESSED[name]
    controls = {
        special.start,
        special.translate,
        special.transcribe,
        special.start_of_lm,
        special.start_of_previous,
        special.no_speech,
    }
    assert set(ids) - controls == set(tokenizer.non_speech_tokens)
    text = " And so, my fellow Americans, don't — 日本語 ♪ naïve 🙂 <|en|>\n"
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokenizer.multilingual == (name == "multilingual")


def test_the_control_tokens_of_the_published_models() -> None:
    many = SpecialTokens.by_size(50257, 51865)
    assert (many.end, many.start, many.languages["en"], many.languages["su"]) == (50257, 50258, 50259, 50357)
    assert (many.translate, many.transcribe, many.start_of_previous) == (50358, 50359, 50361)
    assert (many.no_speech, many.no_timestamps, many.timestamp_begin) == (50362, 50363, 50364)
    third = SpecialTokens.by_size(50257, 51866)
    assert (third.languages["yue"], third.timestamp_begin) == (50358, 50365)
    english = SpecialTokens.by_size(50256, 51864)
    assert (english.start, english.no_timestamps, english.timestamp_begin) == (50257, 50362, 50363)


def test_control_tokens_by_name_are_those_by_size() -> None:
    special = SpecialTokens.by_size(50257, 51866)
    names = {text: i for i, text in special.texts().items()}
    assert SpecialTokens.by_name(names) == special
    old = {text.replace("nospeech", "nocaptions"): i for text, i in names.items()}
    assert SpecialTokens.by_name(old) == special
    with pytest.raises(TokenizerError, match=r"no token <\|translate\|>"):
        SpecialTokens.by_name({text: i for text, i in names.items() if "translate" not in text})
    with pytest.raises(TokenizerError, match="leaves -9 languages"):
        SpecialTokens.by_size(1000, 2500)


@pytest.mark.parametrize("name", ["tiny", "tiny.en", "base", "large"])
def test_files_whose_tokens_were_cut_still_encode(name: str) -> None:
    tokenizer = WhisperTokenizer.from_file(WhisperFile(str(data_file(f"whisper/for-tests-ggml-{name}.bin"))))
    text = " And so, my fellow Americans, 日本語 ♪"
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_a_folder_s_tokenizer_is_the_file_s(tmp_path: Path) -> None:
    tokenizer = tiny.tokenizer()
    vocabulary = {tokenizer.tokenizer.token_text(i): i for i in range(tokenizer.special.end)}
    added = [
        {"id": i, "content": text, "special": True, "normalized": False, "lstrip": False, "rstrip": False}
        | {"single_word": False}
        for i, text in sorted(tokenizer.special.texts().items())
    ]
    pre = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    model = {"type": "BPE", "vocab": vocabulary, "merges": [["h", "e"], ["i", "n"]]}
    content = {"version": "1.0", "added_tokens": added, "pre_tokenizer": pre, "decoder": pre, "model": model}
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    found = WhisperTokenizer.from_folder(tmp_path, tiny.VOCAB)
    assert found.special == tokenizer.special
    assert found.decode(found.encode(" he said")) == " he said"
    with pytest.raises(TokenizerError, match="the timestamps begin at 384 and need 1501 ids"):
        WhisperTokenizer.from_folder(tmp_path, tiny.VOCAB - 1)
    with pytest.raises(TokenizerError, match=r"has no tokenizer\.json"):
        WhisperTokenizer.from_folder(tmp_path / "none", tiny.VOCAB)


def test_what_is_said_is_never_a_control_token() -> None:
    tokenizer = tiny.tokenizer()
    text = "<|endoftext|><|0.00|><|en|>"
    assert max(ids := tokenizer.encode(text)) < tokenizer.special.end
    assert tokenizer.decode([tokenizer.special.start, *ids, tokenizer.special.timestamp_begin]) == text


def test_a_start_names_language_and_task(tmp_path: Path) -> None:
    tokenizer = tiny.tokenizer()
    special = tokenizer.special
    assert tokenizer.start_sequence("German") == (special.start, special.languages["de"], special.transcribe)
    assert tokenizer.start_sequence("en", "translate")[-1] == special.translate
    for language, task, message in (
        ("klingon", "transcribe", "expected a code or an English name: en, zh"),
        ("yue", "transcribe", "not one of this model's"),
        (None, "transcribe", "needs a language"),
        ("en", "sing", "expected one of transcribe, translate"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            tokenizer.start_sequence(language, task)
    english = published("gpt2", tmp_path)
    assert english.start_sequence("en") == english.start_sequence(None) == (english.special.start,)
    with pytest.raises(InvalidArgumentError, match="language: found 'de', but this model knows only English"):
        english.start_sequence("de")
    with pytest.raises(InvalidArgumentError, match="task: found 'translate', but this model knows only"):
        english.start_sequence("en", "translate")


def test_languages_are_found_by_code_and_name() -> None:
    assert len(LANGUAGES) == 100
    assert [language_code(name) for name in ("EN", "Castilian", "Cantonese")] == ["en", "es", "yue"]


def test_words_begin_at_spaces_and_punctuation_stands_alone() -> None:
    tokenizer = tiny.tokenizer()
    ids = tokenizer.encode(" and so, naïve 日本")
    words = tokenizer.words(ids)
    assert [word for word, _ in words] == [" and", " so", ",", " naïve", " 日本"]
    assert [i for _, word in words for i in word] == ids
    assert [word for word, _ in tokenizer.words(tokenizer.encode("日本語"), "ja")] == ["日", "本", "語"]
    assert tokenizer.words(tokenizer.encode("日")[:2])[0][0] == "\ufffd"
    assert tokenizer.words([]) == []


def test_a_vocabulary_without_the_bytes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ggml.bin"
    path.write_bytes(whisper_bytes.file((), [b"a"] * 300, tiny.SIZES))
    with pytest.raises(TokenizerError, match="does not begin with the 256 single bytes"):
        WhisperTokenizer.from_file(WhisperFile(str(path)))
