"""Sizes from every kind of file, and the heads that follow the sound."""

from __future__ import annotations

from typing import Any

import pytest

from akunu._core import WhisperFile
from akunu.base.errors import ModelFileError, UnsupportedError
from akunu.speech.config import ALIGNMENT_HEADS, WhisperConfig
from tokenizer.vocabularies import data_file

HF: dict[str, Any] = {
    "model_type": "whisper",
    "vocab_size": 51865,
    "num_mel_bins": 80,
    "max_source_positions": 1500,
    "d_model": 384,
    "encoder_attention_heads": 6,
    "encoder_layers": 4,
    "encoder_ffn_dim": 1536,
    "max_target_positions": 448,
    "decoder_attention_heads": 6,
    "decoder_layers": 4,
    "decoder_ffn_dim": 1536,
    "activation_function": "gelu",
    "scale_embedding": False,
}


def test_a_file_and_a_folder_of_one_model_agree() -> None:
    sizes = WhisperFile(str(data_file("whisper/for-tests-ggml-tiny.bin"))).sizes
    config = WhisperConfig.from_sizes(sizes)
    assert config == WhisperConfig.from_hf(HF)
    assert config == WhisperConfig(51865, 80, 1500, 384, 6, 4, 448, 6, 4, ALIGNMENT_HEADS[51865, 384, 4, 4])


def test_the_heads_of_the_folder_come_first_and_unknown_models_take_the_later_half() -> None:
    given = WhisperConfig.from_hf(HF, {"alignment_heads": [[1, 2], [3, 0]]})
    assert given.alignment_heads == ((1, 2), (3, 0))
    distilled = WhisperConfig.from_hf(HF | {"decoder_layers": 2})
    assert distilled.alignment_heads == tuple((1, head) for head in range(6))


def test_the_heads_of_known_models_are_among_their_heads() -> None:
    heads = {256: 4, 384: 6, 512: 8, 768: 12, 1024: 16, 1280: 20}
    for (vocab, width, encoder, decoder), pairs in ALIGNMENT_HEADS.items():
        WhisperConfig(vocab, 80, 1500, width, heads[width], encoder, 448, heads[width], decoder, pairs)
        assert len(set(pairs)) == len(pairs)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"model_type": "wav2vec2"}, UnsupportedError, "model_type is 'wav2vec2'"),
        ({"activation_function": "relu"}, UnsupportedError, "activation_function is 'relu'"),
        ({"encoder_ffn_dim": 100}, UnsupportedError, "expected 4 d_model = 1536"),
        ({"d_model": 2**20}, UnsupportedError, "expected 4 d_model"),
        ({"d_model": "wide"}, ModelFileError, "width is 'wide'"),
        ({"decoder_layers": 0}, ModelFileError, "text_layers is 0"),
        ({"vocab_size": True}, ModelFileError, "vocab_size is True"),
        ({"encoder_attention_heads": 7}, ModelFileError, "384 is not a multiple of audio_heads 7"),
    ],
)
def test_what_cannot_be_is_refused(change: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        WhisperConfig.from_hf(HF | change)


@pytest.mark.parametrize("heads", [[[9, 0]], [[0, 6]], "01", [[0]], [[0, "1"]], []])
def test_heads_that_the_model_does_not_have_are_refused(heads: object) -> None:
    with pytest.raises(ModelFileError, match="alignment"):
        WhisperConfig.from_hf(HF, {"alignment_heads": heads})


def test_a_missing_size_is_named() -> None:
    with pytest.raises(ModelFileError, match="lack n_text_state"):
        WhisperConfig.from_sizes({k: 8 for k in _NAMES})
    with pytest.raises(ModelFileError, match="has no d_model"):
        WhisperConfig.from_hf({k: v for k, v in HF.items() if k != "d_model"})


_NAMES = ("n_vocab", "n_mels", "n_audio_ctx", "n_audio_state", "n_audio_head", "n_audio_layer", "n_text_ctx")
_NAMES += ("n_text_head", "n_text_layer")
