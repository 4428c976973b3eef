"""Random models of families with experts, as Transformers saves them, in every kind of file.

Names and shapes of the tensors, and `config.json`, are what `save_pretrained` wrote (tests/data/families).
The values come from a seed and each tensor's name. So `tools/make_golden.py` can load the very same folder in
Transformers once, and the tests need neither torch nor Transformers. Names in a GGUF file are gguf-py's.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import numpy.typing as npt

from formats.safetensors_bytes import write_tensors

from . import convert
from .family_rows import ALL, IN_FOLDERS, TOWER, Family

__all__ = [
    "ALL",
    "FAMILIES_DIR",
    "IN_FOLDERS",
    "TOWER",
    "Family",
    "gguf_tensors",
    "keys",
    "saved",
    "weights",
    "write_folder",
    "write_gguf",
]

FAMILIES_DIR = Path(__file__).resolve().parents[1] / "data" / "families"

Array = npt.NDArray[np.float32]
Arrays = dict[str, Array]

_UNSCALED = ("gemma3n", "gemma4")
"""Architectures whose attention scores nothing but norms scales."""


def saved(family: Family) -> tuple[dict[str, Any], dict[str, list[int]]]:
    """`config.json`, and the shape of each tensor, as Transformers saved them."""
    found = json.loads((FAMILIES_DIR / f"{family.name}.json").read_text())
    return found["config"], found["shapes"]


@functools.cache
def weights(family: Family) -> Arrays:
    """The random weights under the names of the folder. They are shared: don't change them."""
    return made(family, saved(family)[1])


def made(family: Family, shapes: Mapping[str, list[int]]) -> Arrays:
    """Weights of these shapes, such that every part matters (see `tiny.weights`)."""
    rng = np.random.RandomState(family.seed)

    def normal(*shape: int) -> npt.NDArray[np.float64]:
        n, reach = 4, 1 << 20
        sums = rng.randint(-reach, reach, (n, *shape), dtype=np.int64).sum(axis=0)
        return np.asarray(sums / (reach * np.sqrt(n / 3)))

    def values(name: str, shape: list[int]) -> npt.NDArray[np.float64]:
        x = normal(*shape)
        for part, gain in (
            ("conv1d", 0.6),
            ("e_score_correction_bias", 0.2),
            (".bias", 0.3),
            ("dt_bias", 0.3),
        ):
            if part in name:
                return gain * x
        if "A_log" in name:
            return np.linspace(-4, 1, shape[0])
        for part, middle, spread in (
            ("layer_scalar", 0.7, 0.1),
            ("correct_output_scale", 1.0, 0.3),
            ("router.scale", 8.0, 2.0),
            ("per_expert_scale", 1.0, 0.3),
        ):
            if name.endswith(part):
                return middle + spread * x
        if name.endswith("expert_bias"):
            return 0.2 * x
        if name.endswith(".D"):
            return 1 + 0.3 * x
        if "norm" in name:
            # Attention scores that are neither flat nor one-hot.
            if family.arch in ("gemma3n", "gemma4") and (
                "q_norm" in name or "k_norm" in name
            ):  # nothing scales them
                return shape[0] ** -0.25 * (1.4 + 0.2 * x)
            gain = (
                1.4
                if any(part in name for part in ("q_norm", "k_norm", "q_layernorm", "k_layernorm"))
                else 1.0
            )
            gain *= 2 if "norm_f" in name else 1  # fewer near ties
            plain = not family.zero_centred or "linear_attn" in name
            return (gain if plain else gain - 1) + 0.2 * x
        if "conv.conv" in name:
            return 0.6 * x
        gains = {
            "embed_tokens": 2.4,
            "embeddings": 2.4,
            "lm_head": 3.0,
            "gate.weight": 1.5,
            "o_proj": 1.5,
            "down_proj": 2.0,
            "w2": 2.0,
        }
        gain = next((gain for part, gain in gains.items() if part in name), 1.4)
        return x * (gain / np.sqrt(shape[-1]))

    return {name: values(name, shape).astype(np.float32) for name, shape in sorted(shapes.items())}


def write_folder(
    family: Family,
    folder: Path,
    change: Callable[[Arrays], Mapping[str, Array]] | None = None,
    **settings: object,
) -> Path:
    """Write the model as a folder, with other tensors and settings if there are such."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(saved(family)[0] | settings))
    arrays = change(dict(weights(family))) if change else weights(family)
    write_tensors(
        folder / "model.safetensors", {n: np.ascontiguousarray(a) for n, a in arrays.items()}, "F32"
    )
    return folder


def keys_and_values(family: Family, array: Array) -> tuple[Array, Array]:
    """Weights of keys, turned, and of values, for each head, of those of latent attention in one."""
    heads = array.reshape(family.settings["num_attention_heads"], -1, array.shape[-1])
    key, value = np.split(heads, [family.settings["qk_nope_head_dim"]], axis=1)
    return np.ascontiguousarray(key.swapaxes(1, 2)), np.ascontiguousarray(value)


def mlx(family: Family, arrays: Arrays) -> Arrays:
    """What mlx-lm makes of a folder's tensors."""
    out: Arrays = {}
    for name, array in stacked(_text(arrays)).items():
        if ".kv_b_proj." in name:
            key, value = keys_and_values(family, array)
            out[name.replace("kv_b_proj", "embed_q")] = key
            out[name.replace("kv_b_proj", "unembed_out")] = value
            continue
        if name.endswith("conv1d.weight"):
            array = array.swapaxes(1, 2)
        elif family.zero_centred and "norm" in name and "linear_attn" not in name:
            array = array + np.float32(1)
        if family.hf == "NemotronH":  # experts without a gate have names of their own
            name = name.replace("up_exps.", "fc1.").replace("down_exps.", "fc2.")
        name = name.replace("_exps.weight", "_proj.weight")
        beside = any(part in name for part in (".mlp.", ".block_sparse_moe.", ".feed_forward.", ".mixer."))
        own = ".switch_mlp." if beside else ".experts.switch_glu."
        out[name.replace(".experts.", own)] = array
    return out


def _text(arrays: Mapping[str, Array]) -> Arrays:
    """Those of the text model."""
    return {name: array for name, array in arrays.items() if "visual" not in name}


def stacked(arrays: Mapping[str, Array]) -> Arrays:
    """The same with all experts of a layer in one tensor `….experts.{gate,up,down}_exps.weight`."""
    out: Arrays = {}
    parts = {
        "w1": "gate",
        "w3": "up",
        "w2": "down",
        "gate_proj": "gate",
        "up_proj": "up",
        "down_proj": "down",
    }
    arrays = {
        name.replace("moe.input_linear.weight", "moe.experts.gate_up_proj").replace(
            "moe.output_linear.weight", "moe.experts.down_proj"
        ): array
        for name, array in arrays.items()
    }
    for name, array in arrays.items():
        place, found, rest = name.partition(".experts.")
        if not found:
            out[name] = array
        elif rest == "gate_up_proj":
            for part, half in zip(("gate", "up"), np.split(array, 2, 1), strict=True):
                out[f"{place}.experts.{part}_exps.weight"] = half
        elif rest == "down_proj":
            out[f"{place}.experts.down_exps.weight"] = array
        elif rest.startswith("0."):
            count = sum(n.startswith(f"{place}.experts.") and n.endswith(rest[1:]) for n in arrays)
            part = parts[rest.split(".")[1]]
            own = [arrays[f"{place}.experts.{e}{rest[1:]}"] for e in range(count)]
            out[f"{place}.experts.{part}_exps.weight"] = np.stack(own)
    return out


def gguf_tensors(family: Family) -> Arrays:
    """The tensors of llama.cpp's file."""
    known = {"mellum": "qwen3moe"}.get(family.arch, family.arch)  # gguf-py has no names of its own for it
    arch = next(key for key, name in gguf.MODEL_ARCH_NAMES.items() if name == known)
    names = gguf.get_tensor_name_map(arch, family.settings["num_hidden_layers"])
    dense = not family.keys.get("expert_count")  # whose only feed-forward is that of all rows
    out: Arrays = {}
    for name, whole in stacked(_text(weights(family))).items():
        for own, array in _converted(family, name.replace("language_model.", ""), whole):
            if "_exps.weight" in own:
                layer, part = own.split(".")[2], own.rpartition(".experts.")[2].partition("_")[0]
                out[f"blk.{layer}.ffn_{part}_exps.weight"] = array
                continue
            if own.endswith("router.scale"):
                out[f"blk.{own.split('.')[2]}.ffn_gate_inp.scale"] = array
                continue
            if own.endswith("per_expert_scale"):
                out[f"blk.{own.split('.')[2]}.ffn_down_exps.scale"] = array
                continue
            if own.startswith(("model.altup_projections.", "model.altup_unembed_projections.")):
                place = own.split(".")[1]
                which = range(family.settings.get("altup_num_inputs", 4) - 1)
                parts = [weights(family)[f"model.{place}.{i}.weight"] for i in which]
                out[f"{names.get_name(f'model.{place}')}.weight"] = np.stack(parts)
                continue
            if own == "model.embed_tokens_per_layer.weight":
                array = np.concatenate([array, array[:1].repeat(family.vocab_size - len(array), axis=0)])
            own = own.replace(".correct_output_scale", ".correct_output_scale.weight")
            own = own.replace(".layer_scalar", ".layer_scalar.weight")
            own = own.replace(".block_sparse_moe.e_score", ".block_sparse_moe.gate.e_score")
            own = own.replace(".expert_bias", ".expert_bias.bias")  # as the converter calls it
            own = own.replace(".gate.moe_statics.", ".moe_statics.")
            found = names.get_name(own, (".weight", ".bias"))
            if found is None and own.endswith("e_score_correction_bias"):
                found = f"blk.{own.split('.')[2]}.exp_probs_b.bias"
            assert found is not None, own
            out[found.replace("_shexp", "") if dense else found] = array
    full = family.settings.get("rope_parameters", {}).get("full_attention", {})
    if full.get("rope_type") == "proportional":
        half = family.settings["global_head_dim"] // 2
        rotated = np.arange(half) < int(2 * half * full["partial_rotary_factor"] / 2)
        out["rope_freqs.weight"] = np.where(rotated, 1, 1e30).astype(np.float32)
    return {name: np.ascontiguousarray(array) for name, array in out.items()}


def _converted(family: Family, name: str, array: Array) -> list[tuple[str, Array]]:
    """What llama.cpp's converter makes of a tensor: its names and values there."""
    if family.zero_centred and "norm" in name and "linear_attn" not in name:
        array = array + np.float32(1)
    if name.endswith(("shared_expert_gate.weight", "moe_statics.e_score_correction_bias")):
        array = array[0]
    if family.halves and (".q_proj" in name or ".k_proj" in name):
        heads = family.settings[f"num_{'attention' if '.q_proj' in name else 'key_value'}_heads"]
        array = convert.permute(array, heads)
    if ".kv_b_proj." in name:
        key, value = keys_and_values(family, array)
        return [(name.replace("kv_b_proj", "k_b_proj"), key), (name.replace("kv_b_proj", "v_b_proj"), value)]
    if "shared_mlp.input_linear" in name:
        gate, up = np.split(array, 2)
        place = name.replace("shared_mlp.input_linear", "mlp.shared_experts.{}_proj")
        return [(place.format("gate"), gate), (place.format("up"), up)]
    if "shared_mlp.output_linear" in name:
        return [(name.replace("shared_mlp.output_linear", "mlp.shared_experts.down_proj"), array)]
    if name.endswith("shared_experts.up_proj.weight") or name.endswith("shared_experts.down_proj.weight"):
        return [(name, array)]
    if ".mamba." in name or ".mixer." in name or ".conv.conv." in name:
        return _mamba(family, name, array)
    if "linear_attn" not in name:
        return [(name, array)]
    return _delta_net(family, name, array)


def _mamba(family: Family, name: str, array: Array) -> list[tuple[str, Array]]:
    """Mamba-2, and convolutions: vectors of heads are columns, the norm has a row for each group."""
    if name.endswith("A_log"):
        return [(name, -np.exp(array)[:, None])]
    if name.endswith(".D"):
        return [(name, array[:, None])]
    if name.endswith(("mamba.norm.weight", "mixer.norm.weight")):
        return [(name, array.reshape(int(family.keys["ssm.group_count"]), -1))]  # type: ignore[call-overload]
    if "conv1d.weight" in name or ".conv.conv." in name:
        return [(name, array.squeeze())]
    return [(name.replace("dt_bias", "dt_proj.bias" if ".mamba." in name else "dt.bias"), array)]


def _delta_net(family: Family, name: str, array: Array) -> list[tuple[str, Array]]:
    s = family.settings
    heads, values, dim = s["linear_num_key_heads"], s["linear_num_value_heads"], s["linear_value_head_dim"]
    keys = heads * s["linear_key_head_dim"]
    stem = name.rpartition("linear_attn.")[0] + "linear_attn."
    if "in_proj_qkvz" in name:
        per = values // heads * dim
        x = array.reshape(heads, 2 * s["linear_key_head_dim"] + 2 * per, -1)
        cuts = np.cumsum([s["linear_key_head_dim"], s["linear_key_head_dim"], per])
        q, k, v, z = (part.reshape(-1, x.shape[-1]) for part in np.split(x, cuts, axis=1))
        qkv = np.concatenate([q, k, v])
        return [(f"{stem}in_proj_qkv.weight", qkv), (f"{stem}in_proj_z.weight", z)]
    if family.arch == "qwen35moe":
        # Its value heads have another order: those of a key head are apart.
        order = np.arange(values).reshape(heads, -1).T.reshape(-1)
        rows = (order[:, None] * dim + np.arange(dim)).reshape(-1)
        if "in_proj_qkv" in name or "conv1d" in name:
            array = np.concatenate([array[: 2 * keys], array[2 * keys :][rows]])
        elif "in_proj_z" in name:
            array = array[rows]
        elif "out_proj" in name:
            array = array[:, rows]
        elif name.endswith(("in_proj_b.weight", "in_proj_a.weight", "A_log", "dt_bias")):
            array = array[order]
    if "A_log" in name:
        return [(name, -np.exp(array))]
    if "conv1d" in name:
        array = array.squeeze()
    return [(name.replace("dt_bias", "dt_proj.bias"), array)]


_EPSILONS = ("rms_norm_eps", "norm_eps", "layer_norm_epsilon")


def keys(family: Family) -> dict[str, object]:
    """The configuration keys of the GGUF file."""
    s = family.settings
    found: dict[str, object] = {
        "block_count": s["num_hidden_layers"],
        "context_length": s["max_position_embeddings"],
        "embedding_length": s["hidden_size"],
        "feed_forward_length": s["intermediate_size"],
        "attention.head_count": s["num_attention_heads"],
        "attention.head_count_kv": s["num_key_value_heads"],
        "attention.key_length": s.get("head_dim", s["hidden_size"] // s["num_attention_heads"]),
        "attention.value_length": s.get("head_dim", s["hidden_size"] // s["num_attention_heads"]),
        "attention.layer_norm_rms_epsilon": next(
            (saved(family)[0][key] for key in _EPSILONS if key in saved(family)[0]), 1e-6
        ),
        "rope.freq_base": s["rope_parameters"].get("full_attention", s["rope_parameters"])["rope_theta"],
    }
    return {f"{family.arch}.{key}": value for key, value in (found | dict(family.keys)).items()}


def write_gguf(
    family: Family,
    path: Path,
    dtype: str = "F32",
    change: Callable[[Arrays], Mapping[str, Array]] | None = None,
    **other: object,
) -> Path:
    """Write the model as llama.cpp's converter does, with other tensors and keys if there are such."""
    writer = gguf.GGUFWriter(str(path), family.arch)
    more = {f"{family.arch}.{key}": value for key, value in other.items()}
    for key, value in (keys(family) | more).items():
        if value is not None:
            convert.add_value(writer, key, value)
    convert.add_tokenizer(writer, family.vocab_size)
    arrays = gguf_tensors(family)
    arrays = dict(change(arrays)) if change else arrays
    plain = {
        name: array
        for name, array in arrays.items()
        if any(part in name for part in ("conv1d", "shortconv.conv", "ssm_a", "ssm_d", "ssm_norm"))
    }
    convert.add_tensors(writer, {name: a for name, a in arrays.items() if name not in plain}, dtype)
    convert.add_tensors(writer, plain, "F32")
    convert.finish(writer)
    return path
