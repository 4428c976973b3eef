"""`akunu.load` knows a speech model by its files, and says what has no meaning for one."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest

import akunu
from akunu.base.errors import InvalidArgumentError, ModelFileError, TokenizerError, UnsupportedError
from akunu.files.hub.files import choose
from akunu.speech.decoding import decode_window, language_probabilities
from akunu.speech.files import open_speech
from akunu.speech.options import TranscriptionOptions
from akunu.speech.recognition import is_speech
from tokenizer.vocabularies import data_file

from . import golden, model_files, tiny
from .test_engine import on_gpu

GOLDEN = json.loads(golden.PATH.read_text())
GREEDY = TranscriptionOptions(beam_size=1, temperature=0)


def written(folder: Path, seed: int = 0, kind: str = "f32") -> Path:
    """A file of whisper.cpp with the weights of `tiny.model(seed)`."""
    path = folder / f"ggml-tiny{seed}.bin"
    model_files.ggml(path, tiny.config(), tiny.model(seed).weights, kind, tiny.TOKENS)
    return path


@pytest.mark.parametrize("seed", golden.SEEDS)
def test_a_loaded_model_says_what_transformers_says(seed: int, tmp_path: Path) -> None:
    with akunu.load(written(tmp_path, seed), task="transcribe", threads=1) as model:
        run = model._batcher.run
        states = model._engine.encode(tiny.mel(seed)[None])[0]
        work = decode_window(
            model._engine, states, model.tokenizer, model.tokenizer.start_sequence("en"), GREEDY
        )
        found, expected = run(work, 2).tokens, GOLDEN[str(seed)]["greedy"]
        assert found[: len(expected)] == expected
        language = run(language_probabilities(model._engine, states, model.tokenizer), 1)[0][0]
        assert model.tokenizer.special.languages[language] == GOLDEN[str(seed)]["language"]


def test_windows_side_by_side_have_the_texts_that_they_have_alone(tmp_path: Path) -> None:
    audio = np.random.default_rng(0).normal(0, 0.1, 16000 * 9).astype(np.float32)
    clips = [0, 2, 2, 3, 4, 6, 6, 7.5, 8, 9]  # a window of this model holds two seconds
    options = {"language": "en", "max_new_tokens": 20, "clip_timestamps": clips}
    with akunu.load(written(tmp_path), task="transcribe", parallel=4, threads=2) as model:
        assert (model.name, model.context) == ("tiny0", 64)
        for more in ({}, {"beam_size": 1}, {"temperature": 0.9}, {"no_repeat_ngram_size": 3}):
            found = [model.transcribe(audio, batch_size=n, **options, **more) for n in (1, 2, 9)]
            said = [[(segment.text, segment.start, segment.end) for segment in one.segments] for one in found]
            assert said[0] == said[1] == said[2] and said[0]
            assert on_gpu(model._engine) or found[0] == found[1] == found[2]
        words = model.transcribe(audio, word_timestamps=True, **options).words
        assert words and all(0 <= word.start <= word.end <= 9 for word in words)


def test_a_speech_model_has_no_settings_of_text(tmp_path: Path) -> None:
    path = written(tmp_path)
    for name, value in {"context": 100, "kv_memory": 1 << 20, "quantize": "q8_0", "draft": "ember"}.items():
        with pytest.raises(UnsupportedError, match=rf"{name}: ggml-tiny0.bin transcribes speech"):
            akunu.load(path, **{name: value})
    with pytest.raises(UnsupportedError, match=r"task: ggml-tiny0.bin transcribes speech"):
        akunu.load(path, task="rerank")
    with pytest.raises(UnsupportedError, match=r"^ember.gguf is no speech model"):
        akunu.load("ember", task="transcribe")
    with pytest.raises(InvalidArgumentError, match="task: found 'sing'"):
        akunu.load(path, task="sing")


def test_a_text_model_does_not_transcribe() -> None:
    with (
        akunu.load("ember", threads=1) as model,
        pytest.raises(UnsupportedError, match="reads text; load a Whisper model"),
    ):
        model.transcribe("talk.flac")


def test_what_only_a_text_model_can_do_is_refused_by_name(tmp_path: Path) -> None:
    with akunu.load(written(tmp_path), task="transcribe", threads=1) as model:
        for name in ("chat_template", "sampling"):
            with pytest.raises(UnsupportedError, match="tiny0 transcribes speech"):
                getattr(model, name)
        for name in ("chat", "tokenize", "detokenize", "importance_matrix", "perplexity"):
            with pytest.raises(UnsupportedError, match="tiny0 transcribes speech"):
                getattr(model, name)("text")


@pytest.mark.parametrize(
    "words",
    [
        "run -m MODEL hi --chat-template chatml",
        "run -m MODEL hi",
        "chat -m MODEL",
        "complete -m MODEL hi",
        "perplexity MODEL TEXT",
        "imatrix MODEL TEXT OUT",
    ],
)
def test_commands_for_text_say_that_a_model_is_one_of_speech(
    words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from akunu.cli import main

    monkeypatch.setattr("sys.stdin", io.StringIO())
    (tmp_path / "text").write_text("some words\n")
    places = {"MODEL": str(written(tmp_path)), "TEXT": str(tmp_path / "text"), "OUT": str(tmp_path / "out")}
    assert main([places.get(word, word) for word in words.split()]) == 1
    assert capsys.readouterr().err.startswith("akunu: error: tiny0 transcribes speech")


def test_files_are_known_by_what_they_begin_with(tmp_path: Path) -> None:
    pickle = tmp_path / "pytorch_model.bin"
    pickle.write_bytes(b"PK\x03\x04")
    assert not is_speech(pickle) and not is_speech(tmp_path / "none.bin") and not is_speech(tmp_path)
    with pytest.raises(UnsupportedError, match="pickles"):
        akunu.load(pickle)
    file = data_file("whisper/for-tests-ggml-tiny.bin")
    assert is_speech(file)
    with pytest.raises(ModelFileError):  # it has no tensors
        akunu.load(file)


def test_a_folder_needs_its_tokenizer_and_weights_that_can_be_read(tmp_path: Path) -> None:
    config = tiny.config()
    names = ("vocab", "mels", "audio_ctx", "audio_state", "audio_head", "audio_layer")
    names += ("text_ctx", "text_state", "text_head", "text_layer")
    values = (config.vocab_size, config.mels, config.audio_context, config.width, config.audio_heads)
    values += (config.audio_layers, config.text_context, config.width, config.text_heads, config.text_layers)
    sizes = {f"n_{name}": value for name, value in zip(names, values, strict=True)}
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "whisper", **sizes}))
    (tmp_path / "weights.npz").write_bytes(b"")
    assert is_speech(tmp_path)
    with pytest.raises(UnsupportedError, match=r"weights in weights.npz; take a version in SafeTensors"):
        open_speech(tmp_path)
    model_files.mlx(tmp_path, config, tiny.model().weights)
    opened = open_speech(tmp_path)
    assert (opened.layout, opened.config) == ("mlx", config)
    with pytest.raises(TokenizerError, match=r"has no tokenizer.json; copy that of the model"):
        opened.tokenizer()


def test_a_whisper_file_of_a_repository_is_named() -> None:
    files = ["README.md", "ggml-base.bin", "ggml-tiny.bin"]
    assert choose("a/whisper", files, "ggml-tiny.bin") == ["ggml-tiny.bin"]
    with pytest.raises(ModelFileError, match=r"name one, as in a/whisper:ggml-base.bin"):
        choose("a/whisper", files)
