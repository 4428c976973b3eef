"""Write a synthetic model as a GGUF file, so that another engine can run the very same weights.

Blocks are random bits with scales set to sane values: a block is valid, and its weights have mean 0 and
standard deviation 1/sqrt(row length), as in a freshly initialised network.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from akunu.base.errors import UnsupportedError
from akunu.files.describe.filetypes import block_of
from akunu.loading.synthetic import SyntheticModel, SyntheticTensor

__all__ = ["LAYOUTS", "BlockLayout", "random_blocks", "write_gguf"]

CHUNK_BYTES = 8 << 20
"""Weights are made and written in pieces of about this size, so memory stays bounded."""


@dataclass(frozen=True)
class BlockLayout:
    """The layout of a block, and the spread of its values when the scale is 1 and the rest is random.

    Attributes
    ----------
    fields
        NumPy structure of a block, from the GGUF format.
    sigma
        Standard deviation of a weight in units of field "d".
    centre
        Value of the offset field ("m" or "dmin") that makes the mean 0, in units of "d"; 0 = no such field.
    offset
        The offset field.
    """

    fields: tuple[tuple[str, str], ...]
    sigma: float
    centre: float = 0.0
    offset: str = ""


# sigma and centre follow from uniform random bits. For example q4_0's value is q - 8 with q in 0..15, of
# variance (16**2 - 1) / 12 + 0.25; the k-quants' value is the product of two such numbers.
LAYOUTS: Final[Mapping[str, BlockLayout]] = MappingProxyType(
    {
        "q4_0": BlockLayout((("d", "<f2"), ("qs", "16u1")), 4.64),
        "q4_1": BlockLayout((("d", "<f2"), ("m", "<f2"), ("qs", "16u1")), 4.61, -7.5, "m"),
        "q5_0": BlockLayout((("d", "<f2"), ("rest", "20u1")), 9.25),
        "q5_1": BlockLayout((("d", "<f2"), ("m", "<f2"), ("rest", "20u1")), 9.23, -15.5, "m"),
        "q8_0": BlockLayout((("d", "<f2"), ("qs", "32u1")), 73.9),
        "iq4_nl": BlockLayout((("d", "<f2"), ("qs", "16u1")), 72.0),
        "q2_k": BlockLayout((("bits", "80u1"), ("d", "<f2"), ("dmin", "<f2")), 13.1, 1.5, "dmin"),
        "q3_k": BlockLayout((("bits", "108u1"), ("d", "<f2")), 43.0),
        "q4_k": BlockLayout((("d", "<f2"), ("dmin", "<f2"), ("bits", "140u1")), 260.0, 7.5, "dmin"),
        "q5_k": BlockLayout((("d", "<f2"), ("dmin", "<f2"), ("bits", "172u1")), 525.0, 15.5, "dmin"),
        "q6_k": BlockLayout((("bits", "208u1"), ("d", "<f2")), 1370.0),
        "iq4_xs": BlockLayout((("d", "<f2"), ("bits", "134u1")), 1340.0),
        "mxfp4": BlockLayout((("e", "u1"), ("qs", "16u1")), 2.93),
        "iq1_s": BlockLayout((("d", "<f2"), ("bits", "48u1")), 7.21),
        "iq1_m": BlockLayout((("bits", "48u1"), ("scales", "4<u2")), 7.21),
        "iq2_xxs": BlockLayout((("d", "<f2"), ("bits", "64u1")), 53.2),
        "iq2_xs": BlockLayout((("d", "<f2"), ("bits", "72u1")), 56.0),
        "iq2_s": BlockLayout((("d", "<f2"), ("bits", "80u1")), 56.4),
        "iq3_xxs": BlockLayout((("d", "<f2"), ("bits", "96u1")), 142.0),
        "iq3_s": BlockLayout((("d", "<f2"), ("bits", "108u1")), 140.0),
        "tq1_0": BlockLayout((("bits", "52u1"), ("d", "<f2")), 0.817),
        "tq2_0": BlockLayout((("bits", "64u1"), ("d", "<f2")), 1.12),
        "q1_0": BlockLayout((("d", "<f2"), ("bits", "16u1")), 1.0),
        "q2_0": BlockLayout((("d", "<f2"), ("bits", "16u1")), 1.12),
    }
)
"""The layouts by type. `mxfp4` has a power of two instead of a scale: byte e stands for 2**(e - 127). `iq1_m`
has a quarter of it in front of each four small scales."""


def random_blocks(dtype: str, n_elems: int, cols: int, rng: np.random.Generator) -> npt.NDArray[np.uint8]:
    """Bytes of `n_elems` random weights of a matrix with rows of `cols` elements.

    `n_elems` must be whole blocks.
    """
    sigma = 1.0 / math.sqrt(cols)
    if dtype in ("f32", "f16", "bf16"):
        values = rng.standard_normal(n_elems, np.float32)
        values *= np.float32(sigma)
        if dtype == "bf16":
            return (values.view(np.uint32) >> 16).astype("<u2").view(np.uint8)
        return values.astype("<f4" if dtype == "f32" else "<f2").view(np.uint8)
    layout = LAYOUTS[dtype]
    structure = np.dtype(list(layout.fields))
    n_blocks = n_elems // block_of(dtype)[0]
    size = n_blocks * structure.itemsize
    words = rng.integers(0, 1 << 64, -(-size // 8), np.uint64)  # several times as fast as `rng.bytes`
    blocks = words.view(np.uint8)[:size].view(structure)
    if dtype == "mxfp4":
        blocks["e"] = 127 + round(math.log2(sigma / layout.sigma))
    elif dtype == "iq1_m":
        half = int(np.float16(sigma / layout.sigma).view(np.uint16))
        for i in range(4):
            blocks["scales"][:, i] = blocks["scales"][:, i] & 0xFFF | (half >> 4 * i & 15) << 12
    else:
        scale = np.float16(sigma / layout.sigma)
        blocks["d"] = scale
        if layout.offset:
            blocks[layout.offset] = np.float16(scale * layout.centre)
    return blocks.view(np.uint8)


def write_gguf(
    model: SyntheticModel, path: Path, *, seed: int = 0, progress: Callable[[int, int], None] | None = None
) -> int:
    """Write the model with random weights and a small valid vocabulary.

    Parameters
    ----------
    model
        What to write.
    path
        The file; it is replaced.
    seed
        The same seed gives the same file.
    progress
        Called with bytes of weights written, and all of them.

    Returns
    -------
    int
        Size of the file in bytes.

    """
    gguf: Any = importlib.import_module("gguf")  # it has no type hints that mypy --strict accepts
    known = {name.lower() for name in gguf.GGMLQuantizationType.__members__}
    unknown = {tensor.dtype for tensor in model.tensors} - known
    if unknown:
        raise UnsupportedError(
            f"the package gguf does not know the type {', '.join(sorted(unknown))} yet; install a newer one"
        )
    writer = gguf.GGUFWriter(None, model.shape.arch)
    _add_metadata(writer, gguf, model)
    for tensor in model.tensors:
        kind = gguf.GGMLQuantizationType[tensor.dtype.upper()]
        writer.add_tensor_info(tensor.name, tensor.shape, np.dtype(np.float32), tensor.nbytes, raw_dtype=kind)
    # The writer counts the weights that it is handed as whole tensors; here they go to its file in pieces.
    total = sum(tensor.nbytes for tensor in model.tensors)
    done = 0
    try:
        writer.write_header_to_file(path)
        writer.write_kv_data_to_file()
        writer.write_ti_data_to_file()
        file = writer.fout[0]
        writer.write_padding(file, file.tell())
        rng = np.random.Generator(np.random.SFC64(seed))
        for tensor in model.tensors:
            for piece in _pieces(model, tensor, rng):
                file.write(piece.data)
                done += piece.nbytes
                if progress is not None:
                    progress(done, total)
            writer.write_padding(file, tensor.nbytes)
        return int(file.tell())
    finally:
        writer.close()


def _pieces(
    model: SyntheticModel, tensor: SyntheticTensor, rng: np.random.Generator
) -> Iterator[npt.NDArray[np.uint8]]:
    if tensor.name == "rope_freqs.weight":
        yield model.tensor_bytes(tensor.name)
        return
    if len(tensor.shape) == 1:  # norms are 1, biases 0
        yield np.full(tensor.shape, float(tensor.name.endswith("norm.weight")), "<f4").view(np.uint8)
        return
    rows, cols = math.prod(tensor.shape[:-1]), tensor.shape[-1]  # of all experts, one after another
    rows_per_piece = max(1, CHUNK_BYTES // (4 * cols))
    for first in range(0, rows, rows_per_piece):
        yield random_blocks(tensor.dtype, min(rows_per_piece, rows - first) * cols, cols, rng)


def _add_metadata(writer: Any, gguf: Any, model: SyntheticModel) -> None:
    for key, value in model.metadata.items():
        if key == "general.architecture":  # the writer has added it
            continue
        if isinstance(value, str):
            writer.add_string(key, value)
        elif isinstance(value, bool):
            writer.add_bool(key, value)
        elif isinstance(value, int):
            writer.add_uint32(key, value)
        elif isinstance(value, float):
            writer.add_float32(key, value)
        elif isinstance(value, list):
            writer.add_array(key, value)
        else:
            raise TypeError(f"{key}: no metadata of type {type(value).__name__}")
    pieces, kinds = _vocabulary(model.shape.vocab_size, gguf)
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(pieces)
    writer.add_token_scores([-float(i) for i in range(len(pieces))])
    writer.add_token_types(kinds)
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)


def _vocabulary(size: int, gguf: Any) -> tuple[list[str], list[int]]:
    """A SentencePiece vocabulary that can encode any text byte by byte, and names the remaining ids."""
    kind = gguf.TokenType
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    kinds = [kind.UNKNOWN, kind.CONTROL, kind.CONTROL, *[kind.BYTE] * 256]
    pieces += [f"\u2581w{i}" for i in range(len(pieces), size)]
    return pieces, [int(k) for k in kinds + [kind.NORMAL] * (size - len(kinds))]
