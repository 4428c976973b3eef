"""The tiny models in Hugging Face Transformers (only where torch and Transformers are installed)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import transformers
from safetensors import safe_open

from . import families, qwen35, rows
from .tiny import Tiny, Weights, weights

__all__ = ["family_model", "greedy", "logits", "model", "qwen35_model", "row_model", "row_shapes"]


def model(tiny: Tiny) -> Any:
    """The model in float32 with eager attention, holding exactly `weights(tiny)`."""
    rope: dict[str, Any] = {"rope_type": "default", "rope_theta": tiny.theta, **tiny.rope}
    if tiny.hf == "Gemma3":
        local = {"rope_type": "default", "rope_theta": tiny.local_theta}
        rope = {"full_attention": rope, "sliding_attention": local}
    if tiny.hf == "Phi3":
        rope["partial_rotary_factor"] = tiny.partial_rotary
    settings: dict[str, Any] = {
        "hidden_size": tiny.dim,
        "num_attention_heads": tiny.n_heads,
        "num_key_value_heads": tiny.n_kv_heads,
        "head_dim": tiny.head_dim,
        "intermediate_size": tiny.ffn_dim,
        "vocab_size": tiny.vocab_size,
        "num_hidden_layers": tiny.n_layers,
        "tie_word_embeddings": tiny.tied,
        "max_position_embeddings": tiny.context_length,
        "rms_norm_eps": tiny.norm_eps,
        "rope_parameters": rope,
        "attn_implementation": "eager",
        "pad_token_id": 0,
    }
    if tiny.window:
        settings["sliding_window"] = tiny.window
    elif tiny.hf in ("Mistral", "Phi3"):
        settings["sliding_window"] = None
    if tiny.local:
        settings["layer_types"] = [f"{'sliding' if local else 'full'}_attention" for local in tiny.local]
    if tiny.hf == "GptOss":
        settings["layer_types"] = [
            f"{'full' if n % 2 else 'sliding'}_attention" for n in range(tiny.n_layers)
        ]
    if tiny.hf == "Llama":
        settings["attention_bias"] = settings["mlp_bias"] = tiny.bias == "all"
    if tiny.hf in ("Gemma2", "Gemma3"):
        settings["query_pre_attn_scalar"] = tiny.head_dim
    if tiny.hf == "Gemma2":
        settings["attn_logit_softcapping"] = tiny.attn_softcap
        settings["final_logit_softcapping"] = tiny.final_softcap
    if tiny.rope.get("rope_type") == "longrope":
        settings["original_max_position_embeddings"] = tiny.rope["original_max_position_embeddings"]
    if tiny.n_experts:
        settings |= {"num_experts_per_tok": tiny.experts_used, "norm_topk_prob": tiny.arch == "qwen3moe"}
        settings["num_local_experts" if tiny.hf in ("Mixtral", "GptOss") else "num_experts"] = tiny.n_experts
        settings["moe_intermediate_size"] = tiny.expert_dim
    if tiny.shared_dim:
        settings["shared_expert_intermediate_size"] = tiny.shared_dim
    prefix = "Gemma3Text" if tiny.hf == "Gemma3" else tiny.hf
    config = getattr(transformers, f"{prefix}Config")(**settings)
    made = getattr(transformers, f"{tiny.hf}ForCausalLM")(config).eval()
    state = {name: torch.from_numpy(array) for name, array in _own_names(weights(tiny)).items()}
    if tiny.tied:
        state["lm_head.weight"] = state["model.embed_tokens.weight"]
    made.load_state_dict(state, strict=True)
    return made


def qwen35_model(row: qwen35.Qwen35) -> Any:
    """The model in float32 with eager attention, holding exactly `qwen35.weights(row)`."""
    settings = {"attn_implementation": "eager", "pad_token_id": 0, **qwen35.settings(row)}
    made = transformers.Qwen3_5ForCausalLM(transformers.Qwen3_5TextConfig(**settings)).eval()
    made.load_state_dict({n: torch.from_numpy(a) for n, a in qwen35.weights(row).items()}, strict=True)
    return made


def row_model(row: rows.Row) -> Any:
    """The model in float32 with eager attention, holding exactly `rows.weights(row)`."""
    made = empty_row_model(row)
    state = {name: torch.from_numpy(array) for name, array in rows.weights(row).items()}
    if made.config.tie_word_embeddings:
        embedding = next(name for name in state if name.endswith(("embed_tokens.weight", "wte.weight")))
        state["lm_head.weight"] = state[embedding]
    if isinstance(made, transformers.MuseGlimmerForConditionalGeneration):  # whose tower no text goes through
        state = {**made.state_dict(), **state}
    made.load_state_dict(state, strict=True)
    return made


def empty_row_model(row: rows.Row) -> Any:
    """The model with weights of its class's own."""
    own = rows.configuration(row)
    if row.hf == "MuseGlimmer":
        text = transformers.MuseGlimmerTextConfig(**own)
        config = transformers.MuseGlimmerConfig(
            text_config=text,
            vision_config=MUSE_TOWER,
            out_hidden_size=64,
            projector_hidden_size=16,
            tie_word_embeddings=False,
        )
        config.text_config._attn_implementation = "eager"
        return transformers.MuseGlimmerForConditionalGeneration(config).eval()
    if row.hf == "GPT2":
        return transformers.GPT2LMHeadModel(transformers.GPT2Config(**own)).eval()
    config = getattr(transformers, f"{row.hf}Config")(**own)
    return getattr(transformers, f"{row.hf}ForCausalLM")(config).eval()


MUSE_TOWER = {
    "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 16,
    "patch_size": 2, "pos_emb_height": 2, "pos_emb_width": 2,
}  # fmt: skip


def row_shapes(row: rows.Row) -> dict[str, list[int]]:
    """The names and shapes of its weights."""
    made = empty_row_model(row)
    found = {name: list(value.shape) for name, value in made.state_dict().items()}
    if made.config.tie_word_embeddings:
        del found["lm_head.weight"]
    text = ("model.language_model.", "lm_head.") if row.hf == "MuseGlimmer" else ("",)
    return {name: shape for name, shape in found.items() if name.startswith(text)}


def family_model(family: families.Family, folder: Path) -> Any:
    """The model in float32 with eager attention, of the folder that it is written to.

    What Transformers saves of it goes to `families.FAMILIES_DIR` first.
    """
    settings = {"pad_token_id": 0, **family.settings}
    made = getattr(transformers, f"{family.hf}ForCausalLM", None)
    if made is None:  # it has a class only with a tower for pictures, which is as small as can be
        made = getattr(transformers, f"{family.hf}ForConditionalGeneration")
        config = getattr(transformers, f"{family.hf}Config")(
            text_config=settings, vision_config=families.TOWER, tie_word_embeddings=False
        )
    else:
        text = "Text" if hasattr(transformers, f"{family.hf}TextConfig") else ""
        config = getattr(transformers, f"{family.hf}{text}Config")(**settings)
    made(config).save_pretrained(folder)
    with safe_open(str(folder / "model.safetensors"), "np") as file:
        shapes = {name: file.get_slice(name).get_shape() for name in file.keys()}  # noqa: SIM118
    families.FAMILIES_DIR.mkdir(exist_ok=True)
    found = {"config": json.loads((folder / "config.json").read_text()), "shapes": shapes}
    (families.FAMILIES_DIR / f"{family.name}.json").write_text(json.dumps(found, indent=1) + "\n")
    families.write_folder(family, folder)
    loaded = made.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    return loaded.eval()


def _own_names(arrays: Weights) -> Weights:
    """The weights as the class has them: those of experts side by side, rows of gate before those of up."""
    out: Weights = {}
    for name, array in arrays.items():
        place, found, rest = name.replace("block_sparse_moe", "mlp").partition(".experts.")
        if not found:
            out[place] = array
        elif rest.startswith("0.") and rest.endswith("weight"):
            prefix = name.partition(".experts.")[0] + ".experts."
            n = 1 + max(
                int(key.removeprefix(prefix).split(".")[0]) for key in arrays if key.startswith(prefix)
            )
            gate, up, down = ("w1", "w3", "w2") if "w1" in rest or "w2" in rest or "w3" in rest else _PARTS
            own = [[arrays[f"{prefix}{e}.{part}.weight"] for part in (gate, up, down)] for e in range(n)]
            if f"{prefix}0.{gate}.bias" in arrays:
                out |= _biased(arrays, prefix, n)
                continue
            out[f"{place}.experts.gate_up_proj"] = np.stack([np.concatenate(e[:2]) for e in own])
            out[f"{place}.experts.down_proj"] = np.stack([e[2] for e in own])
    return out


def _biased(arrays: Weights, prefix: str, n: int) -> Weights:
    """gpt-oss: gate and up alternate, and matrices stand on their sides."""
    out: Weights = {}
    for kind, name in (("weight", ""), ("bias", "_bias")):
        gate, up, down = (np.stack([arrays[f"{prefix}{e}.{p}.{kind}"] for e in range(n)]) for p in _PARTS)
        both = np.stack([gate, up], axis=2).reshape(n, -1, *gate.shape[2:])
        out[f"{prefix}gate_up_proj{name}"] = both if name else np.ascontiguousarray(both.swapaxes(1, 2))
        out[f"{prefix}down_proj{name}"] = down if name else np.ascontiguousarray(down.swapaxes(1, 2))
    return out


_PARTS = ("gate_proj", "up_proj", "down_proj")


@torch.no_grad()
def logits(made: Any, ids: list[int]) -> npt.NDArray[np.float32]:
    """float32 [len(ids), vocab], in one pass without a cache."""
    out: npt.NDArray[np.float32] = made(input_ids=torch.tensor([ids]), use_cache=False).logits[0].numpy()
    return out


def greedy(
    made: Any, ids: list[int], n: int, least: float = 0.0
) -> tuple[list[int], npt.NDArray[np.float32]]:
    """Greedy continuation of `n` ids and the gap between the two best logits at each.

    It ends with the first gap below `least`.
    """
    tokens, gaps = list(ids), []
    for _ in range(n):
        last = logits(made, tokens)[-1]
        second, first = np.sort(last)[-2:]
        tokens.append(int(np.argmax(last)))
        gaps.append(first - second)
        if gaps[-1] < least:
            break
    return tokens[len(ids) :], np.asarray(gaps, np.float32)
