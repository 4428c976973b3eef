"""Random assistants of the random Gemma 4 models, as folders and GGUF files, and what Transformers drafts.

Names and shapes are those of Transformers' `Gemma4AssistantForCausalLM` and llama.cpp's `gemma4-assistant`.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import numpy.typing as npt

from formats.safetensors_bytes import write_tensors

from . import convert, families, tiny

__all__ = ["ALL", "DRAFTS", "GOLDEN", "Assistant", "config", "weights", "write_folder", "write_gguf"]

GOLDEN = Path(__file__).resolve().parents[1] / "data" / "golden"
DRAFTS = 4
"""Drafts of each position of what the model says."""
DIM, FFN = 64, 128

Array = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Assistant:
    """An assistant of the family of that name; `clusters`: of its tokens, and those that a draft looks at."""

    name: str
    target: str
    seed: int
    heads: int
    windowed: tuple[bool, ...]
    clusters: tuple[int, int] = (0, 0)

    @property
    def family(self) -> families.Family:
        """The model that it drafts for."""
        return families.ALL[self.target]

    def head_dim(self, layer: int) -> int:
        """Elements of a head."""
        return int(self.family.settings["head_dim" if self.windowed[layer] else "global_head_dim"])


ALL = {
    row.name: row
    for row in (
        Assistant("gemma4_e_assistant", "gemma4_e", 71, 4, (True, True, True, False)),
        Assistant("gemma4_assistant", "gemma4", 72, 8, (True, True, False)),
        Assistant("gemma4_e_ordered", "gemma4_e", 73, 4, (True, True, False), clusters=(23, 6)),
    )
}


def config(row: Assistant) -> dict[str, Any]:
    """`config.json`."""
    target = row.family.settings
    shared = ("vocab_size", "max_position_embeddings", "head_dim", "global_head_dim", "sliding_window")
    text = {name: target[name] for name in (*shared, "rope_parameters")} | {
        "model_type": "gemma4_text",
        "hidden_size": DIM,
        "intermediate_size": FFN,
        "num_hidden_layers": len(row.windowed),
        "num_kv_shared_layers": len(row.windowed),
        "num_attention_heads": row.heads,
        "num_key_value_heads": target["num_key_value_heads"],
        "layer_types": [f"{'sliding' if local else 'full'}_attention" for local in row.windowed],
        "hidden_size_per_layer_input": 0,
        "vocab_size_per_layer_input": 0,
        "rms_norm_eps": 1e-6,
    }
    if target.get("attention_k_eq_v"):
        keys = ("attention_k_eq_v", "num_global_key_value_heads")
        text |= {key: target[key] for key in keys}
    return {
        "model_type": "gemma4_assistant",
        "architectures": ["Gemma4AssistantForCausalLM"],
        "backbone_hidden_size": target["hidden_size"],
        "use_ordered_embeddings": row.clusters[0] > 0,
        "num_centroids": row.clusters[0],
        "centroid_intermediate_top_k": row.clusters[1],
        "text_config": text,
    }


@functools.cache
def weights(row: Assistant) -> dict[str, Array]:
    """Its tensors by Transformers' names, shared: don't change them."""
    target = row.family.settings
    shapes: dict[str, list[int]] = {
        "model.embed_tokens.weight": [row.family.vocab_size, DIM],
        "model.norm.weight": [DIM],
        "pre_projection.weight": [DIM, 2 * target["hidden_size"]],
        "post_projection.weight": [target["hidden_size"], DIM],
    }
    for n in range(len(row.windowed)):
        head, queries = row.head_dim(n), row.heads * row.head_dim(n)
        shapes |= {
            f"model.layers.{n}.{name}": shape
            for name, shape in {
                "input_layernorm.weight": [DIM],
                "post_attention_layernorm.weight": [DIM],
                "pre_feedforward_layernorm.weight": [DIM],
                "post_feedforward_layernorm.weight": [DIM],
                "layer_scalar": [1],
                "self_attn.q_proj.weight": [queries, DIM],
                "self_attn.q_norm.weight": [head],
                "self_attn.o_proj.weight": [DIM, queries],
                "mlp.gate_proj.weight": [FFN, DIM],
                "mlp.up_proj.weight": [FFN, DIM],
                "mlp.down_proj.weight": [DIM, FFN],
            }.items()
        }
    if row.clusters[0]:
        shapes["masked_embedding.centroids.weight"] = [row.clusters[0], DIM]
    return families.made(families.Family(row.name, row.seed, "gemma4", "Gemma4", target), shapes)


def order(row: Assistant) -> npt.NDArray[np.int64]:
    """The tokens of the first cluster, the second one, …."""
    return np.random.default_rng(row.seed).permutation(row.family.vocab_size)


def write_folder(row: Assistant, folder: Path, **settings: object) -> Path:
    """Write it as Transformers does, with other settings if there are such."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config(row) | settings))
    arrays: dict[str, Any] = dict(weights(row))
    if row.clusters[0]:
        arrays["masked_embedding.token_ordering"] = order(row)
    write_tensors(folder / "model.safetensors", arrays, "F32")
    return folder


_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "pre_projection": "nextn.pre_projection",
    "post_projection": "nextn.post_projection",
    "masked_embedding.centroids": "masked_embd_centroids",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
    "layer_scalar": "layer_output_scale.weight",
    "self_attn.q_proj": "attn_q",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def write_gguf(row: Assistant, path: Path, dtype: str = "F32", **other: object) -> Path:
    """Write it as llama.cpp's converter does, with other keys if there are such."""
    writer = gguf.GGUFWriter(str(path), "gemma4-assistant")
    target, n = row.family.settings, len(row.windowed)
    keys: dict[str, object] = {
        **row.family.keys,
        "block_count": n,
        "context_length": target["max_position_embeddings"],
        "embedding_length": DIM,
        "embedding_length_out": target["hidden_size"],
        "nextn_predict_layers": n,
        "feed_forward_length": FFN,
        "attention.head_count": row.heads,
        "attention.layer_norm_rms_epsilon": 1e-6,
        "attention.sliding_window_pattern": list(row.windowed),
        "attention.shared_kv_layers": n,
        "rope.freq_base": 1e6,
    }
    for key, value in (keys | other).items():
        if value is not None:
            convert.add_value(writer, f"gemma4-assistant.{key}", value)
    convert.add_tokenizer(writer, row.family.vocab_size)
    tensors = {}
    for name, array in weights(row).items():
        layer = ""
        if name.startswith("model.layers."):
            number, name = name.removeprefix("model.layers.").split(".", 1)
            layer = f"blk.{number}."
        stem, dot, end = name.rpartition(".")
        tensors[layer + (_NAMES[stem] + dot + end if stem in _NAMES else _NAMES[name])] = array
    tensors["rope_freqs.weight"] = np.ones(int(target["global_head_dim"]) // 2, np.float32)
    convert.add_tensors(writer, tensors, dtype)
    convert.finish(writer)
    return path


def drafted(row: Assistant, folder: Path) -> tuple[npt.NDArray[np.int32], Array]:
    """What Transformers drafts behind each token of what the model says, and by how much each was likeliest.

    An assistant there sees all keys of its window that a cache has, whose number depends on how it was
    run. Here it sees those that a row at its position sees.
    """
    import torch
    import transformers

    from . import hf

    target = hf.family_model(row.family, folder / "target")
    own = transformers.Gemma4AssistantForCausalLM.from_pretrained(
        write_folder(row, folder / "assistant"), dtype=torch.float32, attn_implementation="eager"
    ).eval()
    golden = tiny.golden(row.target)
    ids, first = [*golden.prompt, *golden.ids], len(golden.prompt)
    embedding, window = target.get_input_embeddings(), row.family.settings["sliding_window"]
    drafts, gaps = (np.zeros((len(golden.ids), DRAFTS)) for _ in range(2))
    with torch.no_grad():
        ran = target(
            torch.tensor([ids]), output_hidden_states=True, return_shared_kv_states=True, use_cache=False
        )
        for n in range(len(golden.ids)):
            end = first + n + 1  # of that many tokens the last is not in the cache
            most = {"full_attention": end - 1, "sliding_attention": window - 1}
            kv = {
                kind: tuple(x[:, :, max(end - 1 - most[kind], 0) : end - 1] for x in both)
                for kind, both in ran.shared_kv_states.items()
            }
            state, token = ran.hidden_states[-1][:, end - 2 : end - 1], torch.tensor([[ids[end - 1]]])
            for i in range(DRAFTS):
                out = own(
                    inputs_embeds=torch.cat([embedding(token), state], -1),
                    position_ids=torch.tensor([[end - 1]]),
                    shared_kv_states=kv,
                    use_cache=False,
                )
                best = out.logits[0, -1].topk(2)
                drafts[n, i], gaps[n, i] = best.indices[0], best.values[0] - best.values[1]
                state, token = out.last_hidden_state, best.indices[:1][None]
    return drafts.astype(np.int32), gaps.astype(np.float32)
