"""Model files of whisper.cpp: what they hold is found, what lies in them is refused."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from akunu import _core
from akunu.base.errors import ModelFileError, UnsupportedError
from tokenizer.vocabularies import data_file

from . import whisper_bytes as raw


def opened(content: bytes, folder: Path) -> _core.WhisperFile:
    path = folder / "ggml-model.bin"
    path.write_bytes(content)
    return _core.WhisperFile(str(path))


def test_sizes_tokens_and_tensors_are_found(tmp_path: Path) -> None:
    model = opened(raw.file(raw.SAMPLE), tmp_path)
    assert tuple(model.sizes.values()) == raw.TINY and model.sizes["n_mels"] == 80
    assert model.tokens == [b"a", b"", b"\xe5\x9c"]
    found = {tensor.name: (tensor.dtype, tensor.shape) for tensor in model.tensors}
    assert found == {
        "encoder.conv1.bias": ("f32", (4, 1)),
        "decoder.blocks.0.mlp.0.weight": ("q4_0", (2, 32)),
        "encoder.conv1.weight": ("f16", (2, 2, 3)),
    }
    for tensor in raw.SAMPLE:
        assert model.tensor_bytes(tensor.name.decode()).tobytes() == tensor.data


@pytest.mark.parametrize(
    ("name", "vocab", "state", "last"),
    [
        ("tiny", 51865, 384, b""),
        ("tiny.en", 51864, 384, b"<|endoftext|>"),
        ("base", 51865, 512, b""),
        ("large", 51865, 1280, b""),
    ],
)
def test_the_published_headers_are_read(name: str, vocab: int, state: int, last: bytes) -> None:
    model = _core.WhisperFile(str(data_file(f"whisper/for-tests-ggml-{name}.bin")))
    assert model.sizes["n_vocab"] == vocab and model.sizes["n_audio_state"] == state
    assert len(model.tokens) == 50257 and model.tokens[:3] == [b"!", b'"', b"#"] and model.tokens[-1] == last
    assert not model.tensors


BIAS = raw.SAMPLE[0]


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (b"GGUF" + bytes(60), ModelFileError, "not a file of whisper.cpp: this is a GGUF file"),
        (raw.file()[:20], ModelFileError, "the header needs 4 bytes"),
        (raw.file(filters=(0, 3)), ModelFileError, "mel filters has 0 filters"),
        (raw.file()[:48] + struct.pack("<2I", 65536, 65536), ModelFileError, "mel filters needs 17179869184"),
        (raw.file(tokens=()), ModelFileError, "vocabulary has 0 tokens"),
        (raw.file()[:-1], ModelFileError, "vocabulary needs 2 bytes where 1 are left"),
        (raw.file(raw.SAMPLE)[:-1], ModelFileError, "conv1.weight.* needs 24 bytes where 23 are left"),
        (raw.file([BIAS, BIAS]), ModelFileError, "twice|same name"),
        (raw.file([raw.Tensor(b"t", (), 0, b"")]), ModelFileError, "0 dimensions; 1 to 4"),
        (raw.file([raw.Tensor(b"t", (4, 0), 0, b"")]), ModelFileError, '"?t"?.* a dimension of 0'),
        (raw.file([raw.Tensor(b"t", (33,), 2, bytes(36))]), ModelFileError, "33 elements, not whole q4_0"),
        (raw.file([raw.Tensor(b"t", (2**32 - 1,) * 4, 0, b"")]), ModelFileError, "than 64 bits can count"),
        (raw.file([raw.Tensor(b"t", (256,), 15, bytes(292))]), UnsupportedError, "Q8_K.* not supported"),
        (raw.file([raw.Tensor(b"t", (4,), 99, bytes(66))]), UnsupportedError, "number 99, which is unknown"),
    ],
)
def test_what_lies_is_refused(content: bytes, error: type[Exception], message: str, tmp_path: Path) -> None:
    with pytest.raises(error, match=message):
        opened(content, tmp_path)


def test_bytes_of_a_tensor_are_its_values(tmp_path: Path) -> None:
    values = np.arange(12, dtype="<f4")
    model = opened(raw.file([raw.Tensor(b"w", (4, 3), 0, values.tobytes())]), tmp_path)
    assert np.array_equal(model.tensor_bytes("w").view("<f4").reshape(3, 4), values.reshape(3, 4))
