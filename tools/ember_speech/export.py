"""Write ember-speech as one file in the form of whisper.cpp: sizes, filters, vocabulary, weights.

    python -m tools.ember_speech.export --weights build/ember-speech \\
        --out python/akunu/models/ember-speech.bin

whisper.cpp itself knows only OpenAI's vocabularies, so that it does not read this one.
"""

from __future__ import annotations

import argparse
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from gguf import GGML_QUANT_SIZES, quants
from gguf import GGMLQuantizationType as Type
from numpy.typing import NDArray

from tools.ember_speech.model import Config, sinusoids
from tools.ember_speech.settings import settings
from tools.ember_speech.sound import mel_filters
from tools.ember_speech.tokens import Vocabulary
from tools.ember_speech.train import load_weights

MAGIC = 0x67676D6C
FILE_TYPE = 2007  # most matrices are Q8_0, in the second version of the block formats
SMALLER = "encoder.blocks."  # whose mlp has five bits, so that the file stays below 10 MB


def type_of(name: str, dimensions: int) -> Type:
    """Of one tensor."""
    if name.endswith("positional_embedding") or (dimensions == 3):
        return Type.F16
    if dimensions == 1:
        return Type.F32
    return Type.Q5_0 if name.startswith(SMALLER) and ".mlp." in name else Type.Q8_0


def header(config: Config, vocabulary: Vocabulary) -> bytes:
    """All but the tensors."""
    sizes = (
        *(vocabulary.size, config.positions, config.width, config.heads, config.audio_layers),
        *(config.context, config.width, config.heads, config.text_layers, config.mels, FILE_TYPE),
    )
    filters = mel_filters(config.mels).numpy()
    tokens = b"".join(struct.pack("<I", len(token)) + token for token in vocabulary.tokens)
    return (
        struct.pack("<12I", MAGIC, *sizes)
        + struct.pack("<2I", *filters.shape)
        + filters.tobytes()
        + struct.pack("<I", len(vocabulary.tokens))
        + tokens
    )


def records(tensors: dict[str, NDArray[np.float32]]) -> Iterator[bytes]:
    """The tensors one after another, in their types."""
    for name, tensor in tensors.items():
        kind = type_of(name, tensor.ndim)
        # a bias of a convolution is a column there
        shape = (*tensor.shape, 1) if ".conv" in name and tensor.ndim == 1 else tensor.shape
        data = quants.quantize(tensor, kind)
        text = name.encode()
        yield struct.pack("<3I", len(shape), len(text), kind)
        yield struct.pack(f"<{len(shape)}I", *reversed(shape)) + text + data.tobytes()


def export(weights: Path, out: Path) -> int:
    """Write the file; its bytes."""
    model = load_weights(weights)
    tensors = {
        name: p.detach().numpy() for name, p in model.named_parameters() if not name.startswith("phonemes")
    }
    tensors["encoder.positional_embedding"] = sinusoids(model.config.positions, model.config.width).numpy()
    data = header(model.config, Vocabulary()) + b"".join(records(tensors)) + settings()
    out.write_bytes(data)
    return len(data)


def read(path: Path) -> dict[str, NDArray[np.float32]]:
    """The tensors of a file that ``export`` wrote, dequantized."""
    data = path.read_bytes()
    at = 48
    mels, bins = struct.unpack_from("<2I", data, at)
    at += 8 + 4 * mels * bins
    (count,) = struct.unpack_from("<I", data, at)
    at += 4
    for _ in range(count):
        at += 4 + struct.unpack_from("<I", data, at)[0]
    found = {}
    while at < len(data):
        dimensions, length, kind = struct.unpack_from("<3I", data, at)
        shape = struct.unpack_from(f"<{dimensions}I", data, at + 12)[::-1]
        at += 12 + 4 * dimensions
        name = data[at : at + length].decode()
        at += length
        block, size = GGML_QUANT_SIZES[Type(kind)]
        size = int(np.prod(shape)) // block * size
        if kind != Type.I8:  # what is said of decoding
            blocks = np.frombuffer(data, np.uint8, size, at).reshape(*shape[:-1], -1)
            tensor = quants.dequantize(blocks, Type(kind)).reshape(shape)
            found[name] = tensor[:, 0] if ".conv" in name and name.endswith("bias") else tensor
        at += size
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--weights", type=Path, required=True, help="the folder of a training")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    print(f"{args.out}: {export(args.weights, args.out) / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
