"""Tiny random models of every architecture, as GGUF files, and the golden data that belongs to them.

The weights come from a seed and from numpy alone, under the names of Hugging Face Transformers, and go
through the same conversion as a real checkpoint (see `convert.py`). So `tools/make_golden.py` can run the
very same weights in Transformers once, and the tests need neither torch nor Transformers.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import gguf
import numpy as np
import numpy.typing as npt

from . import convert

__all__ = [
    "ALL",
    "CONTEXT",
    "EVERY",
    "EXPERTS",
    "GOLDEN_DIR",
    "Golden",
    "Tiny",
    "TinyModel",
    "golden",
    "write",
]

CONTEXT = 128
"""Context to run the tiny models with. It matters for LongRoPE, which has another set of divisors beyond the
original context: `phi3_short` has 256, `phi3_long` has 16."""

GOLDEN_DIR = Path(__file__).resolve().parents[1] / "data" / "golden"

Weights = dict[str, npt.NDArray[np.float32]]


@dataclass(frozen=True, eq=False)
class Tiny:
    """One tiny model. Field names are those of `ModelConfig` where the meaning is the same.

    Attributes
    ----------
    hf
        Transformers' prefix of the class ("Llama" for LlamaForCausalLM).
    rope
        Transformers' `rope_parameters` beyond the theta; empty for none.
    partial_rotary
        Share of a head that is rotated.
    local
        Whether each layer has the window, where the class does not say it.
    bias
        Q, K, V have a bias ("qkv"), and all other projections too ("all").
    n_experts, experts_used, expert_dim, shared_dim
        Of a model with experts: how many, how many for each row, inner elements of each, and of one that all
        rows share.
    """

    name: str
    arch: str
    hf: str
    seed: int
    dim: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    ffn_dim: int
    vocab_size: int
    n_layers: int = 3
    tied: bool = False
    context_length: int = 512
    norm_eps: float = 1e-5
    theta: float = 10000.0
    local_theta: float = 0.0
    window: int = 0
    attn_softcap: float = 0.0
    final_softcap: float = 0.0
    rope: Mapping[str, object] = field(default_factory=dict)
    partial_rotary: float = 1.0
    local: tuple[bool, ...] = ()
    bias: str = ""
    n_experts: int = 0
    experts_used: int = 0
    expert_dim: int = 0
    shared_dim: int = 0

    @property
    def rope_dim(self) -> int:
        """Rotated elements of a head."""
        return int(self.head_dim * self.partial_rotary)

    @property
    def is_gemma(self) -> bool:
        """Norms multiply by 1 + w, and the embedding is scaled."""
        return self.arch.startswith("gemma")

    @property
    def has_qk_norm(self) -> bool:
        """Q and K are normalised per head."""
        return self.arch in ("qwen3", "qwen3moe", "gemma3")

    @property
    def has_post_norms(self) -> bool:
        """Attention and FFN are normalised before they are added."""
        return self.arch in ("gemma2", "gemma3")


def _factors(n: int, low: float, high: float) -> list[float]:
    return [round(float(f), 4) for f in np.linspace(low, high, n)]


_YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}
_LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}


def _linear(factor: float) -> dict[str, object]:
    return {"rope_type": "linear", "factor": factor}


def _longrope(rope_dim: int, original: int) -> dict[str, object]:
    half = rope_dim // 2
    return {
        "rope_type": "longrope",
        "short_factor": _factors(half, 1.0, 2.0),
        "long_factor": _factors(half, 1.5, 12.0),
        "original_max_position_embeddings": original,
    }


# Sizes: head sizes 64, 80, 96, 128, 256; groups of 1, 2, 4, 5 and 7 query heads; odd vocabularies. The `_256`
# models have row lengths that are multiples of 256, for the K-quants; `llama_odd` fits no quantised type.
# Columns: name, arch, hf, seed, dim, n_heads, n_kv_heads, head_dim, ffn_dim, vocab_size.
_ROWS = (
    Tiny("llama", "llama", "Llama", 1, 96, 4, 2, 64, 160, 263),
    Tiny("llama_256", "llama", "Llama", 2, 256, 4, 2, 64, 512, 331),
    Tiny("llama_odd", "llama", "Llama", 3, 100, 5, 1, 80, 172, 269),
    Tiny("llama3", "llama", "Llama", 4, 64, 4, 1, 64, 128, 271, tied=True, theta=5e5, rope=_LLAMA3),
    Tiny("llama_linear", "llama", "Llama", 5, 192, 2, 2, 96, 256, 263, rope=_linear(4.0)),
    Tiny("llama_yarn", "llama", "Llama", 6, 160, 2, 1, 80, 224, 277, context_length=128, rope=_YARN),
    Tiny("llama_bias", "llama", "Llama", 7, 64, 2, 1, 64, 96, 261, tied=True, bias="all"),
    Tiny("mistral", "llama", "Mistral", 8, 128, 4, 1, 128, 224, 281, window=12),
    Tiny("ministral", "llama", "Ministral", 21, 96, 3, 1, 64, 160, 295, window=12, local=(True, False, True)),
    Tiny(
        "qwen2", "qwen2", "Qwen2", 9, 128, 7, 1, 64, 224, 283, tied=True, theta=1e6, norm_eps=1e-6,
        bias="qkv",
    ),
    Tiny(
        "qwen2_yarn", "qwen2", "Qwen2", 10, 128, 2, 2, 64, 192, 265, context_length=128, theta=1e6,
        bias="qkv", rope=_YARN,
    ),
    Tiny("qwen3", "qwen3", "Qwen3", 11, 96, 2, 1, 128, 160, 267, tied=True, theta=1e6, norm_eps=1e-6),
    Tiny("qwen3_256", "qwen3", "Qwen3", 12, 256, 4, 2, 128, 768, 307, theta=1e6, norm_eps=1e-6),
    Tiny("gemma", "gemma", "Gemma", 13, 128, 2, 1, 256, 192, 273, tied=True, norm_eps=1e-6),
    Tiny(
        "gemma2", "gemma2", "Gemma2", 14, 128, 2, 1, 256, 192, 275, n_layers=4, tied=True, norm_eps=1e-6,
        window=12, attn_softcap=4.0, final_softcap=8.0,
    ),
    Tiny(
        "gemma3", "gemma3", "Gemma3", 15, 128, 4, 2, 96, 192, 279, n_layers=7, tied=True, norm_eps=1e-6,
        window=12, theta=1e6, local_theta=1e4, rope=_linear(8.0),
    ),
    Tiny(
        "gemma3_256", "gemma3", "Gemma3", 16, 256, 2, 1, 256, 512, 285, n_layers=6, tied=True, norm_eps=1e-6,
        window=12, theta=1e6, local_theta=1e4,
    ),
    Tiny(
        "gemma3_yarn", "gemma3", "Gemma3", 20, 128, 2, 1, 96, 160, 293, n_layers=6, tied=True, norm_eps=1e-6,
        context_length=128, window=12, theta=1e6, local_theta=1e4, rope=_YARN,
    ),
    Tiny("phi3", "phi3", "Phi3", 17, 192, 2, 1, 96, 256, 287, window=12),
    Tiny(
        "phi3_short", "phi3", "Phi3", 18, 256, 2, 1, 128, 512, 289, context_length=1024, partial_rotary=0.75,
        rope=_longrope(96, 256),
    ),
    Tiny(
        "phi3_long", "phi3", "Phi3", 19, 128, 2, 2, 64, 192, 291, context_length=128, tied=True,
        rope=_longrope(64, 16),
    ),
)  # fmt: skip

# Columns: as above, and experts, of which a row uses some, with so many elements.
_EXPERT_ROWS = (
    Tiny(
        "qwen3moe", "qwen3moe", "Qwen3Moe", 31, 96, 4, 2, 32, 160, 297, theta=1e6, norm_eps=1e-6,
        n_experts=8, experts_used=3, expert_dim=64,
    ),
    Tiny(
        "qwen3moe_256", "qwen3moe", "Qwen3Moe", 32, 256, 4, 1, 64, 512, 299, n_layers=2, tied=True, theta=1e6,
        norm_eps=1e-6, n_experts=6, experts_used=2, expert_dim=256,
    ),
    Tiny(
        "qwen2moe", "qwen2moe", "Qwen2Moe", 33, 96, 3, 1, 32, 160, 301, theta=1e6, norm_eps=1e-6, bias="qkv",
        n_experts=12, experts_used=4, expert_dim=44, shared_dim=76,
    ),
    Tiny(
        "mixtral", "llama", "Mixtral", 34, 96, 3, 1, 32, 128, 303, theta=1e6,
        n_experts=8, experts_used=2, expert_dim=128,
    ),
    Tiny(
        "gpt_oss", "gpt-oss", "GptOss", 35, 96, 4, 2, 32, 64, 305, theta=150000.0, context_length=128,
        window=12, rope=_YARN, bias="all", n_experts=8, experts_used=3, expert_dim=64,
    ),
)  # fmt: skip

ALL: dict[str, Tiny] = {row.name: row for row in _ROWS}
"""The models without experts, by name."""

EXPERTS: dict[str, Tiny] = {row.name: row for row in _EXPERT_ROWS}
"""Those with experts."""

EVERY: dict[str, Tiny] = ALL | EXPERTS


@functools.cache
def weights(tiny: Tiny) -> Weights:
    """The random weights, float32, under Transformers' names.

    The scales make every part matter: attention scores spread by about 2, so that attention is neither flat
    nor one-hot; each layer adds as much as the embedding or more; logits spread by about 3, so that greedy
    decoding does not hang on rounding. The result is shared: don't change it.
    """
    # RandomState's stream is frozen for all versions of numpy; Generator's is not.
    rng = np.random.RandomState(tiny.seed)
    out: Weights = {}

    def normal(*shape: int) -> npt.NDArray[np.float64]:
        """Nearly normal, deviation 1, from integer sums: the same bits on every machine, as no log is."""
        n, reach = 4, 1 << 20
        sums = rng.randint(-reach, reach, (n, *shape), dtype=np.int64).sum(axis=0)
        return np.asarray(sums / (reach * np.sqrt(n / 3)))

    def matrix(name: str, rows: int, cols: int, gain: float) -> None:
        out[name] = (normal(rows, cols) * (gain / np.sqrt(cols))).astype(np.float32)

    def norm(name: str, size: int, gain: float = 1.0) -> None:
        centre = gain - 1.0 if tiny.is_gemma else gain
        out[name] = (centre + 0.2 * normal(size)).astype(np.float32)

    def bias(name: str, size: int, gain: float = 0.5) -> None:
        out[name] = (gain * normal(size)).astype(np.float32)

    def experts(layer: str) -> None:
        """As published checkpoints have them: each a tensor of its own."""
        place = f"{layer}{'block_sparse_moe' if tiny.hf == 'Mixtral' else 'mlp'}."
        parts = ("w1", "w3", "w2") if tiny.hf == "Mixtral" else ("gate_proj", "up_proj", "down_proj")
        if tiny.hf == "GptOss":
            bias(f"{layer}self_attn.sinks", tiny.n_heads, 2.0)
            bias(f"{place}router.bias", tiny.n_experts, 0.5)
        router = "router" if tiny.hf == "GptOss" else "gate"
        matrix(f"{place}{router}.weight", tiny.n_experts, dim, 1.5)
        groups = [(f"experts.{e}.", tiny.expert_dim) for e in range(tiny.n_experts)]
        if tiny.shared_dim:
            matrix(f"{place}shared_expert_gate.weight", 1, dim, 1.0)
            groups.append(("shared_expert.", tiny.shared_dim))
        for prefix, inner in groups:
            for part, rows, cols, gain in zip(
                parts, (inner, inner, dim), (dim, dim, inner), (1.4, 1.4, 2 * out_gain), strict=True
            ):
                matrix(f"{place}{prefix}{part}.weight", rows, cols, gain)
                if tiny.hf == "GptOss":
                    bias(f"{place}{prefix}{part}.bias", rows)

    dim, q_dim, kv_dim = tiny.dim, tiny.n_heads * tiny.head_dim, tiny.n_kv_heads * tiny.head_dim
    out_gain = 1.0 if tiny.has_post_norms or not tiny.is_gemma else 5.0
    matrix("model.embed_tokens.weight", tiny.vocab_size, dim, 1.0 if tiny.is_gemma else 2.4)
    for n in range(tiny.n_layers):
        layer = f"model.layers.{n}."
        norm(f"{layer}input_layernorm.weight", dim)
        if tiny.arch == "phi3":
            matrix(f"{layer}self_attn.qkv_proj.weight", q_dim + 2 * kv_dim, dim, 1.4)
        else:
            for part, rows in (("q", q_dim), ("k", kv_dim), ("v", kv_dim)):
                matrix(f"{layer}self_attn.{part}_proj.weight", rows, dim, 1.4)
                if tiny.bias:
                    bias(f"{layer}self_attn.{part}_proj.bias", rows)
        if tiny.has_qk_norm:
            norm(f"{layer}self_attn.q_norm.weight", tiny.head_dim, 1.4)
            norm(f"{layer}self_attn.k_norm.weight", tiny.head_dim, 1.4)
        matrix(f"{layer}self_attn.o_proj.weight", dim, q_dim, out_gain)
        if tiny.bias == "all":
            bias(f"{layer}self_attn.o_proj.bias", dim, 0.1)
        norm(f"{layer}post_attention_layernorm.weight", dim, 4.0 if tiny.has_post_norms else 1.0)
        if tiny.has_post_norms:
            norm(f"{layer}pre_feedforward_layernorm.weight", dim)
            norm(f"{layer}post_feedforward_layernorm.weight", dim, 4.0)
        if tiny.n_experts:
            experts(layer)
            continue
        if tiny.arch == "phi3":
            matrix(f"{layer}mlp.gate_up_proj.weight", 2 * tiny.ffn_dim, dim, 1.4)
        else:
            matrix(f"{layer}mlp.gate_proj.weight", tiny.ffn_dim, dim, 1.4)
            matrix(f"{layer}mlp.up_proj.weight", tiny.ffn_dim, dim, 1.4)
        matrix(f"{layer}mlp.down_proj.weight", dim, tiny.ffn_dim, out_gain)
        if tiny.bias == "all":
            for part, rows in (("gate", tiny.ffn_dim), ("up", tiny.ffn_dim), ("down", dim)):
                bias(f"{layer}mlp.{part}_proj.bias", rows, 0.3)
    norm("model.norm.weight", dim, 3.0 if tiny.is_gemma else 1.0)
    if not tiny.tied:
        matrix("lm_head.weight", tiny.vocab_size, dim, 3.0)
    return out


def fingerprint(arrays: Weights) -> str:
    """SHA-256 over names and values, to tell stale golden data from a wrong engine."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(arrays[name], "<f4").tobytes())
    return digest.hexdigest()


@dataclass(frozen=True)
class TinyModel:
    """A written file: its path, what it is, and the type that each tensor really got."""

    path: Path
    tiny: Tiny
    dtypes: Mapping[str, str]


def write(name: str, dtype: str, path: str | Path, v: str = "") -> TinyModel:
    """Write one of `EVERY` as GGUF.

    Parameters
    ----------
    name
        Key of `EVERY`.
    dtype
        A type of `quant.DTYPES` for all matrices, or a name of `convert.MIXES`: each matrix another type, in
        turn. A matrix whose rows do not hold whole blocks stays F16. Norms, biases and rotary
        divisors are F32 always.
    path
        File to write.
    v
        Type of the value projections, where it is another.
    """
    tiny = EVERY[name]
    writer = gguf.GGUFWriter(str(path), tiny.arch)
    for key, value in convert.metadata(tiny).items():
        convert.add_value(writer, key, value)
    convert.add_tokenizer(writer, tiny.vocab_size)
    dtypes = convert.add_tensors(writer, convert.tensors(tiny, weights(tiny)), dtype, v)
    convert.finish(writer)
    return TinyModel(Path(path), tiny, dtypes)


@dataclass(frozen=True)
class Golden:
    """What Transformers computed, in float32 on a CPU with eager attention.

    Attributes
    ----------
    prompt
        Prompt ids, longer than any window.
    logits
        float32 [len(prompt), vocab], at every position of the prompt.
    ids
        Greedy continuation.
    gaps
        Difference of the two best logits at each of `ids`: it is no near tie.
    fingerprint
        `fingerprint` of the weights.
    """

    prompt: list[int]
    logits: npt.NDArray[np.float32]
    ids: list[int]
    gaps: npt.NDArray[np.float32]
    fingerprint: str


def golden(name: str) -> Golden:
    """The golden data of one of `EVERY`."""
    with np.load(GOLDEN_DIR / f"{name}.npz") as data:
        return Golden(
            prompt=data["prompt"].tolist(),
            logits=data["logits"],
            ids=data["ids"].tolist(),
            gaps=data["gaps"],
            fingerprint=str(data["fingerprint"]),
        )
