"""Time a Whisper model with random weights: its encoder for a window and its decoder for a token."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import numpy as np

from akunu.base.errors import InvalidArgumentError
from akunu.base.whole_file import whole_file
from akunu.speech.config import WhisperConfig

if TYPE_CHECKING:
    pass

__all__ = ["SHAPES", "SPEECH_TYPES", "is_speech_shape", "write_random"]


def _shape(
    mels: int, width: int, heads: int, encoder: int, decoder: int, vocab: int = 51865
) -> WhisperConfig:
    return WhisperConfig(vocab, mels, 1500, width, heads, encoder, 448, heads, decoder)


SHAPES: Final[Mapping[str, WhisperConfig]] = MappingProxyType(
    {
        "whisper-tiny": _shape(80, 384, 6, 4, 4),
        "whisper-base": _shape(80, 512, 8, 6, 6),
        "whisper-small": _shape(80, 768, 12, 12, 12),
        "whisper-medium": _shape(80, 1024, 16, 24, 24),
        "whisper-large-v2": _shape(80, 1280, 20, 32, 32),
        "whisper-large-v3": _shape(128, 1280, 20, 32, 32, 51866),
        "whisper-large-v3-turbo": _shape(128, 1280, 20, 32, 4, 51866),
        "distil-whisper-large-v3": _shape(128, 1280, 20, 32, 2, 51866),
    }
)
"""Sizes of published models; source: each one's `config.json`."""

SPEECH_TYPES: Final[Mapping[str, tuple[int, int]]] = MappingProxyType(
    {"f32": (0, 0), "f16": (1, 1), "q4_0": (2, 2), "q5_0": (6, 8), "q8_0": (8, 7)}
)
"""A tensor's type in a file of whisper.cpp, and the file's."""

_SINGLE_BYTES: Final = 256


def is_speech_shape(name: str) -> bool:
    """Whether a name is SHAPE:TYPE of a speech model."""
    shape, separator, kind = name.lower().partition(":")
    return bool(separator) and shape in SHAPES and kind in SPEECH_TYPES


def write_random(name: str, path: Path, *, seed: int = 0) -> None:
    """Write a file of whisper.cpp with random weights.

    Parameters
    ----------
    name
        SHAPE:TYPE, such as whisper-tiny:q8_0.
    path
        The file.
    seed
        The seed of the weights.

    Raises
    ------
    InvalidArgumentError
        There is no such shape or type.
    """
    if not is_speech_shape(name):
        raise InvalidArgumentError(
            f"synthetic: found {name!r}, expected SHAPE:TYPE of {', '.join(SHAPES)} and "
            f"{', '.join(SPEECH_TYPES)}"
        )
    shape, _, kind = name.lower().partition(":")
    config = SHAPES[shape]
    random = np.random.default_rng(seed)
    with whole_file(path) as file:
        _write_head(file, config, SPEECH_TYPES[kind][1])
        for tensor, dims in _tensors(config):
            values = _random_values(random, tensor, dims)
            _write_tensor(file, tensor, values, _stored_type(tensor, dims, kind))


def _write_head(file: BinaryIO, config: WhisperConfig, ftype: int) -> None:
    numbers = (
        config.vocab_size, config.audio_context, config.width, config.audio_heads, config.audio_layers,
        config.text_context, config.width, config.text_heads, config.text_layers, config.mels, ftype,
    )  # fmt: skip
    file.write(b"lmgg" + struct.pack("<11i", *numbers))
    file.write(struct.pack("<2i", config.mels, 201) + bytes(4 * config.mels * 201))
    from akunu.tokenizer.bytelevel import CHAR_OF_BYTE

    texts = [bytes([byte]) for byte in sorted(range(_SINGLE_BYTES), key=CHAR_OF_BYTE.__getitem__)]
    texts += [f" w{i}".encode() for i in range(_SINGLE_BYTES, 50257)]
    file.write(struct.pack("<i", len(texts)))
    for text in texts:
        file.write(struct.pack("<i", len(text)) + text)


def _tensors(config: WhisperConfig) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Names and shapes, the outermost dimension first."""
    width = config.width
    yield "encoder.positional_embedding", (config.audio_context, width)
    yield "encoder.conv1.weight", (width, config.mels, 3)
    yield "encoder.conv1.bias", (width, 1)
    yield "encoder.conv2.weight", (width, width, 3)
    yield "encoder.conv2.bias", (width, 1)
    yield "decoder.positional_embedding", (config.text_context, width)
    yield "decoder.token_embedding.weight", (config.vocab_size, width)
    for stack, layers, last in (
        ("encoder", config.audio_layers, "ln_post"), ("decoder", config.text_layers, "ln")
    ):  # fmt: skip
        for part in ("weight", "bias"):
            yield f"{stack}.{last}.{part}", (width,)
        for i in range(layers):
            for mixer in ("attn", "cross_attn") if stack == "decoder" else ("attn",):
                layer = f"{stack}.blocks.{i}.{mixer}"
                for name in ("query", "key", "value", "out"):
                    yield f"{layer}.{name}.weight", (width, width)
                    if name != "key":
                        yield f"{layer}.{name}.bias", (width,)
                yield f"{layer}_ln.weight", (width,)
                yield f"{layer}_ln.bias", (width,)
            layer = f"{stack}.blocks.{i}.mlp"
            yield f"{layer}.0.weight", (4 * width, width)
            yield f"{layer}.0.bias", (4 * width,)
            yield f"{layer}.2.weight", (width, 4 * width)
            yield f"{layer}.2.bias", (width,)
            yield f"{layer}_ln.weight", (width,)
            yield f"{layer}_ln.bias", (width,)


def _random_values(random: np.random.Generator, name: str, dims: tuple[int, ...]) -> Any:
    values = random.standard_normal(dims, np.float32)
    if len(dims) == 1 or "bias" in name:
        return values * np.float32(0.02) + np.float32(1 if name.endswith("ln.weight") else 0)
    scale = 0.02 if "embedding" in name else 1 / np.sqrt(np.prod(dims[1:]))
    return values * np.float32(scale)


def _stored_type(name: str, dims: tuple[int, ...], kind: str) -> str:
    """Return the type that whisper.cpp's tools store: vectors and positions F32, convolutions F16."""
    if kind == "f32" or len(dims) == 1 or "bias" in name or "positional" in name:
        return "f32"
    return "f16" if len(dims) == 3 else kind


def _write_tensor(file: BinaryIO, name: str, values: Any, kind: str) -> None:
    from akunu import _core

    if kind in ("f32", "f16"):
        data = values.astype("<f4" if kind == "f32" else "<f2").tobytes()
    else:
        data = _core.quantize(kind, np.ascontiguousarray(values), values.shape[1]).tobytes()
    text = name.encode()
    file.write(struct.pack("<3i", values.ndim, len(text), SPEECH_TYPES[kind][0]))
    file.write(struct.pack(f"<{values.ndim}i", *reversed(values.shape)) + text + data)
