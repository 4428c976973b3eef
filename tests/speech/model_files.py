"""Whisper models with random weights as files: of whisper.cpp, and folders of Hugging Face and MLX."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from akunu import _core
from akunu.speech.config import WhisperConfig
from akunu.speech.tensors import Layout
from formats import whisper_bytes
from formats.safetensors_bytes import write_tensors

Arrays = Mapping[str, npt.NDArray[Any]]

# Hugging Face's names and whisper.cpp's; MLX differs in the feed-forward.
_NAMES = (
    ("encoder.embed_positions.weight", "encoder.positional_embedding"),
    ("decoder.embed_positions.weight", "decoder.positional_embedding"),
    ("decoder.embed_tokens", "decoder.token_embedding"),
    (".self_attn_layer_norm", ".attn_ln"),
    (".encoder_attn_layer_norm", ".cross_attn_ln"),
    (".final_layer_norm", ".mlp_ln"),
    ("encoder.layer_norm", "encoder.ln_post"),
    ("decoder.layer_norm", "decoder.ln"),
    (".self_attn.", ".attn."),
    (".encoder_attn.", ".cross_attn."),
    (".q_proj", ".query"),
    (".k_proj", ".key"),
    (".v_proj", ".value"),
    (".out_proj", ".out"),
    (".fc1", ".mlp.0"),
    (".fc2", ".mlp.2"),
    (".layers.", ".blocks."),
)
_KINDS = {"f32": 0, "f16": 1, "q4_0": 2, "q4_1": 3, "q5_0": 6, "q5_1": 7, "q8_0": 8}
_FTYPES = {"f32": 0, "f16": 1, "q4_0": 2, "q4_1": 3, "q8_0": 7, "q5_0": 8, "q5_1": 9}


@dataclass
class Opened:
    """What `load_engine` takes."""

    files: _core.TensorFiles
    layout: Layout
    config: WhisperConfig
    metadata: Mapping[str, object] = field(default_factory=dict)


def sizes(config: WhisperConfig, kind: str) -> tuple[int, ...]:
    """The numbers at the beginning of a file of whisper.cpp."""
    return (
        config.vocab_size, config.audio_context, config.width, config.audio_heads, config.audio_layers,
        config.text_context, config.width, config.text_heads, config.text_layers, config.mels, _FTYPES[kind],
    )  # fmt: skip


def plain_name(name: str) -> str:
    """whisper.cpp's name of a tensor."""
    for hf, plain in _NAMES:
        name = name.replace(hf, plain)
    return name


def quantized(values: npt.NDArray[Any], kind: str) -> npt.NDArray[np.uint8]:
    """The bytes of a matrix; of types that are not floats, as whisper.cpp's tool makes them."""
    if kind in ("f32", "f16"):
        return np.frombuffer(values.astype("<f4" if kind == "f32" else "<f2").tobytes(), np.uint8)
    return _core.quantize(kind, np.ascontiguousarray(values, np.float32), values.shape[1]).reshape(-1)


def stored_kind(name: str, values: npt.NDArray[Any], kind: str) -> str:
    """A tensor's type in such a file: convolutions are F16 unless all is F32, vectors and positions F32."""
    if values.ndim == 1 or "embed_positions" in name:
        return "f32"
    return "f16" if values.ndim == 3 and kind != "f32" else kind


def as_stored(weights: Arrays, kind: str) -> dict[str, npt.NDArray[np.float64]]:
    """What a file of the kind holds of them."""
    return {
        name: _core.dequantize(own := stored_kind(name, values, kind), quantized(values, own), values.size)
        .reshape(values.shape)
        .astype(np.float64)
        for name, values in weights.items()
    }


def ggml(
    path: Path, config: WhisperConfig, weights: Arrays, kind: str = "f16", tokens: Any = (b"a",)
) -> Opened:
    """A file of whisper.cpp."""
    records = []
    for name, values in weights.items():
        own = stored_kind(name, values, kind)
        dims = (1, *values.shape) if "conv" in name and values.ndim == 1 else tuple(reversed(values.shape))
        data = quantized(values, own).tobytes()
        records.append(whisper_bytes.Tensor(plain_name(name).encode(), dims, _KINDS[own], data))
    path.write_bytes(whisper_bytes.file(records, tokens, sizes(config, kind)))
    return Opened(_core.WhisperFile(str(path)), "ggml", config)


def hf(folder: Path, config: WhisperConfig, weights: Arrays, dtype: str = "F32") -> Opened:
    """The tensors of a Hugging Face folder."""
    path = folder / "model.safetensors"
    write_tensors(
        path, {f"model.{name}": np.asarray(values, np.float32) for name, values in weights.items()}, dtype
    )
    return Opened(_core.SafetensorsFiles([str(path)]), "hf", config)


def mlx(folder: Path, config: WhisperConfig, weights: Arrays, bits: int = 0) -> Opened:
    """The tensors of an MLX folder: channels of convolutions are last, the encoder's positions left out."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    for name, values in weights.items():
        if name == "encoder.embed_positions.weight":
            continue
        plain = plain_name(name).replace(".mlp.0", ".mlp1").replace(".mlp.2", ".mlp2")
        values = values.astype(np.float32)
        if values.ndim == 3:
            arrays[plain] = np.ascontiguousarray(values.transpose(0, 2, 1))
        elif bits and values.ndim == 2 and "positional" not in plain:
            module = plain.removesuffix(".weight")
            codes, scales, biases = affine(values, bits)
            arrays |= {plain: codes, f"{module}.scales": scales, f"{module}.biases": biases}
        else:
            arrays[plain] = values
    path = folder / "weights.safetensors"
    write_tensors(path, arrays)
    settings = {"quantization": {"group_size": 32, "bits": bits}} if bits else {}
    return Opened(_core.SafetensorsFiles([str(path)]), "mlx", config, settings)


def affine(values: npt.NDArray[np.float32], bits: int) -> tuple[npt.NDArray[Any], ...]:
    """Codes, scales and biases in groups of 32; 4 or 8 bits."""
    rows, cols = values.shape
    groups = values.reshape(rows, cols // 32, 32)
    low, high = groups.min(axis=-1), groups.max(axis=-1)
    scales = np.maximum((high - low) / (2**bits - 1), 1e-8).astype(np.float32)
    codes = (
        np.rint((groups - low[..., None]) / scales[..., None]).astype(np.uint32).reshape(rows, -1, 32 // bits)
    )
    packed = (codes << (bits * np.arange(32 // bits, dtype=np.uint32))).sum(axis=-1).astype(np.uint32)
    return packed, scales, low.astype(np.float32)
