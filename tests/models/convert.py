"""From Transformers' names and conventions to GGUF's, for the tiny models.

The conventions are those of llama.cpp's converter: rows of Q and K permuted for `llama`, 1 added to Gemma's
norms, Llama 3's rotary scaling as a tensor of divisors, tied heads left out.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from string import ascii_lowercase
from typing import TYPE_CHECKING

import gguf
import numpy as np
import numpy.typing as npt

from . import quant

if TYPE_CHECKING:
    from .tiny import Tiny

Array = npt.NDArray[np.float32]

_NAMES = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.qkv_proj": "attn_qkv",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.gate_up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "mlp.gate": "ffn_gate_inp",
    "mlp.router": "ffn_gate_inp",
    "block_sparse_moe.gate": "ffn_gate_inp",
    "mlp.shared_expert_gate": "ffn_gate_inp_shexp",
    "mlp.shared_expert.gate_proj": "ffn_gate_shexp",
    "mlp.shared_expert.up_proj": "ffn_up_shexp",
    "mlp.shared_expert.down_proj": "ffn_down_shexp",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}


def _gguf_name(tiny: Tiny, name: str) -> str:
    top = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
    stem, _, suffix = name.rpartition(".")
    if suffix == "sinks":
        return f"blk.{stem.split('.')[2]}.attn_sinks.weight"
    if stem in top:
        return f"{top[stem]}.{suffix}"
    _, _, layer, stem = stem.split(".", 3)
    if stem.endswith("_exps"):
        return f"blk.{layer}.ffn_{stem.rpartition('.')[2]}.{suffix}"
    # The same name means the norm before the FFN, or a true norm after attention.
    post = "post_attention_norm" if tiny.has_post_norms or tiny.arch == "gpt-oss" else "ffn_norm"
    return f"blk.{layer}.{_NAMES.get(stem, post)}.{suffix}"


def permute(rows: Array, n_heads: int) -> Array:
    """Reorder each head's rows from halves to adjacent pairs: row j to 2j, row j + d/2 to 2j + 1."""
    half = rows.shape[0] // n_heads // 2
    return rows.reshape(n_heads, 2, half, -1).swapaxes(1, 2).reshape(rows.shape)


def llama3_divisors(rope: Mapping[str, float], theta: float, dim: int) -> Array:
    """Divisors of the rotary frequencies in Llama 3.1's scaling."""
    inv_freq = theta ** -(np.arange(0, dim, 2) / dim)
    original, factor = rope["original_max_position_embeddings"], rope["factor"]
    low, high = rope["low_freq_factor"], rope["high_freq_factor"]
    rotations = original * inv_freq / (2 * np.pi)
    smooth = np.clip((rotations - low) / (high - low), 0.0, 1.0)
    return (1.0 / ((1.0 - smooth) / factor + smooth)).astype(np.float32)


def stacked_experts(weights: Mapping[str, Array]) -> dict[str, Array]:
    """The weights with those of all experts of a layer in one tensor, in the place of the first one's."""
    out: dict[str, Array] = {}
    for name, array in weights.items():
        place, found, rest = name.partition(".experts.")
        if not found:
            out[name] = array.squeeze() if "shared_expert_gate" in name else array
            continue
        expert, part = rest.split(".", 1)
        if expert == "0":
            of = [n for n in weights if n.startswith(f"{place}.experts.") and n.endswith(f".{part}")]
            kind = {"w1": "gate", "w3": "up", "w2": "down"}.get(part.split(".")[0], part.partition("_")[0])
            out[f"{place}.{kind}_exps.{part.rpartition('.')[2]}"] = np.stack([weights[n] for n in of])
    return out


def tensors(tiny: Tiny, weights: Mapping[str, Array]) -> dict[str, Array]:
    """Every tensor of the file, float32, under its GGUF name."""
    out: dict[str, Array] = {}
    for name, array in stacked_experts(weights).items():
        if tiny.arch == "llama" and ".q_proj." in name:
            array = permute(array, tiny.n_heads)
        if tiny.arch == "llama" and ".k_proj." in name:
            array = permute(array, tiny.n_kv_heads)
        if tiny.is_gemma and name.endswith("norm.weight"):
            array = array + np.float32(1.0)
        out[_gguf_name(tiny, name)] = array
    if tiny.rope.get("rope_type") == "llama3":
        out["rope_freqs.weight"] = llama3_divisors(tiny.rope, tiny.theta, tiny.head_dim)  # type: ignore[arg-type]
    if tiny.rope.get("rope_type") == "longrope":
        for length in ("long", "short"):
            out[f"rope_factors_{length}.weight"] = np.asarray(tiny.rope[f"{length}_factor"], np.float32)
    return out


def metadata(tiny: Tiny) -> dict[str, object]:
    """The configuration keys, as the converter writes them."""
    keys: dict[str, object] = {
        "block_count": tiny.n_layers,
        "context_length": tiny.context_length,
        "embedding_length": tiny.dim,
        "feed_forward_length": tiny.ffn_dim,
        "attention.head_count": tiny.n_heads,
        "attention.head_count_kv": tiny.n_kv_heads,
        "attention.layer_norm_rms_epsilon": tiny.norm_eps,
    }
    if tiny.n_experts:
        keys |= {"expert_count": tiny.n_experts, "expert_used_count": tiny.experts_used}
        if tiny.arch != "llama":
            keys["expert_feed_forward_length"] = tiny.expert_dim
    if tiny.shared_dim:
        keys["expert_shared_feed_forward_length"] = tiny.shared_dim
    if tiny.arch not in ("gemma", "gemma2"):
        keys["rope.freq_base"] = tiny.theta
    if tiny.n_heads * tiny.head_dim != tiny.dim or tiny.is_gemma:
        keys["attention.key_length"] = keys["attention.value_length"] = tiny.head_dim
    if tiny.arch in ("llama", "phi3"):
        keys["rope.dimension_count"] = tiny.rope_dim
    if tiny.window or tiny.arch == "phi3":
        keys["attention.sliding_window"] = tiny.window
    if tiny.local:
        keys["attention.sliding_window_pattern"] = list(tiny.local)
    if tiny.attn_softcap:
        keys["attn_logit_softcapping"] = tiny.attn_softcap
        keys["final_logit_softcapping"] = tiny.final_softcap
    kind = tiny.rope.get("rope_type")
    original = tiny.rope.get("original_max_position_embeddings", tiny.context_length)
    if kind in ("linear", "yarn"):
        keys["rope.scaling.type"] = kind
        keys["rope.scaling.factor"] = tiny.rope["factor"]
    if kind == "yarn" or tiny.arch == "phi3":
        keys["rope.scaling.original_context_length"] = original
    if kind == "longrope":
        assert isinstance(original, int)
        scale = tiny.context_length / original
        keys["rope.scaling.attn_factor"] = math.sqrt(1 + math.log(scale) / math.log(original))
    return {f"{tiny.arch}.{key}": value for key, value in keys.items()}


def add_value(writer: gguf.GGUFWriter, key: str, value: object) -> None:
    """Add one key with the type that fits the value."""
    if isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    elif isinstance(value, str):
        writer.add_string(key, value)
    elif isinstance(value, list):
        writer.add_array(key, value)
    else:
        raise TypeError(f"{key}: {type(value).__name__}")


def add_tokenizer(writer: gguf.GGUFWriter, vocab_size: int) -> None:
    """A SentencePiece vocabulary: 0..2 special, all bytes, a space, and words of letters, shortest first."""
    kinds = gguf.TokenType
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    types = [kinds.UNKNOWN, kinds.CONTROL, kinds.CONTROL, *[kinds.BYTE] * 256]
    extra = vocab_size - len(tokens)
    if extra < 0:
        raise ValueError(f"a vocabulary of {vocab_size} has no room for the bytes")
    words = itertools.chain.from_iterable(itertools.product(ascii_lowercase, repeat=n) for n in range(1, 9))
    tokens += ["▁", *("".join(word) for word in itertools.islice(words, extra))][:extra]
    types += [kinds.NORMAL] * extra
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * 259 + [-float(n) for n in range(extra)])
    writer.add_token_types(types)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)


MIXES = {
    "MIXED": quant.DTYPES,
    "MIXED_WITHOUT_CODEBOOKS": tuple(dtype for dtype in quant.DTYPES if dtype not in quant.CODEBOOKS),
}
"""The types that the matrices of a file take in turn."""


def add_tensors(
    writer: gguf.GGUFWriter, arrays: Mapping[str, Array], dtype: str, v: str = ""
) -> dict[str, str]:
    """Add tensors, matrices as `dtype` (or as `MIXES` says), those of v as `v`; returns the type of each."""
    chosen: dict[str, str] = {}
    n_matrices = 0
    for name, array in arrays.items():
        if array.ndim == 1 or "ffn_gate_inp" in name or name.endswith("_exps.bias"):
            chosen[name] = "F32"
            writer.add_tensor(name, array)
            continue
        fitting = [kind for kind in MIXES.get(dtype, quant.DTYPES) if quant.fits(kind, array.shape[-1])]
        if dtype in MIXES:
            chosen[name] = fitting[n_matrices % len(fitting)]
        else:
            wanted = v if v and name.endswith("attn_v.weight") else dtype
            chosen[name] = wanted if wanted in fitting else "F16"
        data = quant.encode(array.reshape(-1, array.shape[-1]), chosen[name], seed=n_matrices)
        data = data.reshape(*array.shape[:-1], -1)
        writer.add_tensor(name, data, raw_dtype=gguf.GGMLQuantizationType[chosen[name]])
        n_matrices += 1
    return chosen


def finish(writer: gguf.GGUFWriter) -> None:
    """Write the file and close it."""
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
