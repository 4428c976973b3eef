"""The real tiny Llama of the shared test data: llama2.c's files, converted to GGUF.

Layout of the checkpoint ("legacy v0"): seven little-endian int32 (dim, ffn_dim, layers, heads, kv_heads,
vocab, context; a positive vocab means a tied head), then float32 arrays, each stacked over the layers. Q and
K rotate adjacent pairs, as GGUF's `llama` does, so nothing is permuted. Layout of the tokenizer: int32
longest token, then for each token float32 score, int32 length, bytes, with plain spaces where GGUF has
U+2581.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np
import numpy.typing as npt

from missing import data as shared_data

from . import convert

__all__ = ["Expected", "expected", "shared_data", "tokens", "write"]

_NORM_EPS = 1e-5


@dataclass(frozen=True)
class Expected:
    """`reference.json`: computed from the checkpoint in float64.

    Attributes
    ----------
    prompt, prompt_ids, prompt_logits
        A prompt, its ids with BOS, and the logits [vocab] after it.
    greedy_ids, greedy_text
        64 greedy ids after the prompt, and the whole text.
    story_ids, story_text
        BOS and 200 greedy ids after it, and their text.
    nll
        -log p of each id of the story after the first.
    """

    prompt: str
    prompt_ids: list[int]
    prompt_logits: npt.NDArray[np.float64]
    greedy_ids: list[int]
    greedy_text: str
    story_ids: list[int]
    story_text: str
    nll: npt.NDArray[np.float64]


def expected() -> Expected:
    """The reference values."""
    data = json.loads((shared_data("tinyllama") / "reference.json").read_text())
    return Expected(
        prompt=data["prompt"],
        prompt_ids=data["prompt_ids_with_bos"],
        prompt_logits=np.asarray(data["logits_after_prompt"]),
        greedy_ids=data["greedy_64_ids"],
        greedy_text=data["greedy_64_text_with_prompt"],
        story_ids=data["empty_prompt_200_steps_ids_with_bos"],
        story_text=data["empty_prompt_200_steps_text"],
        nll=np.asarray(data["nll_per_token"]),
    )


def tokens() -> tuple[list[str], list[float], list[int]]:
    """Pieces, scores and token types as GGUF wants them."""
    data = (shared_data("tinyllama") / "tok512.bin").read_bytes()
    kinds = gguf.TokenType
    special = {0: ("<unk>", kinds.UNKNOWN), 1: ("<s>", kinds.CONTROL), 2: ("</s>", kinds.CONTROL)}
    pieces, scores, types = [], [], []
    offset = 4
    while offset < len(data):
        score, length = struct.unpack_from("<fi", data, offset)
        offset += 8
        piece = data[offset : offset + length].decode().replace(" ", "▁")
        offset += length
        kind = kinds.BYTE if 3 <= len(pieces) < 259 else kinds.NORMAL
        piece, kind = special.get(len(pieces), (piece, kind))
        pieces.append(piece)
        scores.append(score)
        types.append(kind)
    return pieces, scores, types


def write(dtype: str, path: str | Path, v: str = "") -> Path:
    """Write the model as GGUF with matrices of the given type, those of v of another where it is given.

    A matrix whose rows do not hold whole blocks (the FFN's down projection, 172 wide) stays F16.
    """
    data = (shared_data("tinyllama") / "stories260K.bin").read_bytes()
    dim, ffn_dim, n_layers, n_heads, n_kv_heads, vocab_size, context = struct.unpack_from("<7i", data)
    values = np.frombuffer(data, "<f4", offset=28)
    kv_dim = dim // n_heads * n_kv_heads
    position = 0

    def take(*shape: int) -> npt.NDArray[np.float32]:
        nonlocal position
        size = int(np.prod(shape))
        position += size
        return values[position - size : position].reshape(shape)

    arrays = {"token_embd.weight": take(vocab_size, dim)}
    stacked = {
        "attn_norm": take(n_layers, dim),
        "attn_q": take(n_layers, dim, dim),
        "attn_k": take(n_layers, kv_dim, dim),
        "attn_v": take(n_layers, kv_dim, dim),
        "attn_output": take(n_layers, dim, dim),
        "ffn_norm": take(n_layers, dim),
        "ffn_gate": take(n_layers, ffn_dim, dim),
        "ffn_down": take(n_layers, dim, ffn_dim),
        "ffn_up": take(n_layers, ffn_dim, dim),
    }
    for n in range(n_layers):
        arrays |= {f"blk.{n}.{name}.weight": array[n] for name, array in stacked.items()}
    arrays["output_norm.weight"] = take(dim)

    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_block_count(n_layers)
    writer.add_context_length(context)
    writer.add_embedding_length(dim)
    writer.add_feed_forward_length(ffn_dim)
    writer.add_head_count(n_heads)
    writer.add_head_count_kv(n_kv_heads)
    writer.add_layer_norm_rms_eps(_NORM_EPS)
    writer.add_rope_dimension_count(dim // n_heads)
    pieces, scores, types = tokens()
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(pieces)
    writer.add_token_scores(scores)
    writer.add_token_types(types)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    convert.add_tensors(writer, arrays, dtype, v)
    convert.finish(writer)
    return Path(path)
