"""Tiny random models that see, as folders and GGUF files, and what Transformers computed of them.

Names and shapes of the tensors, and `config.json`, are what `save_pretrained` wrote (tests/data/vision). The
values come from a seed and each tensor's name, so that `tools/make_tower_golden.py` can load the very same
folder in Transformers once; the tests need neither torch nor Transformers.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import numpy.typing as npt

from formats.safetensors_bytes import write_tensors

__all__ = [
    "ALL",
    "DATA",
    "ODD",
    "Golden",
    "Seeing",
    "golden",
    "saved",
    "weights",
    "write_folder",
    "write_mmproj",
]

DATA = Path(__file__).resolve().parents[2] / "data" / "vision"

Array = npt.NDArray[np.float32]

_TEXT: Mapping[str, Any] = {
    "hidden_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "intermediate_size": 160,
    "vocab_size": 299,
    "max_position_embeddings": 512,
    "tie_word_embeddings": False,
}
_DELTA: Mapping[str, Any] = {
    "num_hidden_layers": 4,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 32,
    "linear_value_head_dim": 32,
    "linear_conv_kernel_dim": 4,
}
_QWEN: Mapping[str, Any] = {
    "depth": 3,
    "hidden_size": 64,
    "num_heads": 2,
    "intermediate_size": 80,
    "patch_size": 4,
    "spatial_merge_size": 2,
    "temporal_patch_size": 2,
    "num_position_embeddings": 16,
    "out_hidden_size": 96,
}


@dataclass(frozen=True, eq=False)
class Seeing:
    """One model.

    Attributes
    ----------
    name, seed
        Its name here, and the seed of its weights.
    hf
        Transformers' prefix of the classes of the configuration and of the model.
    text, vision
        What the two configurations are made from.
    zero_centred
        Norms of the text model multiply by 1 + w.
    grids
        Patches of its images, from top to bottom and from left to right.
    image_token
        What stands in the place of an image's row.
    arch, projector
        In GGUF files of the model of text and of the tower.
    merge
        Patches on the side of what becomes one row.
    model
        What the configuration of the whole model has besides.
    """

    name: str
    seed: int
    hf: str
    text: Mapping[str, Any]
    vision: Mapping[str, Any]
    zero_centred: bool = False
    grids: tuple[tuple[int, int], ...] = ((4, 6), (10, 4))
    image_token: int = 290
    arch: str = ""
    projector: str = ""
    merge: int = 2
    model: Mapping[str, Any] = field(default_factory=dict)


_SIGLIP: Mapping[str, Any] = {
    "num_hidden_layers": 2,
    "hidden_size": 48,
    "num_attention_heads": 2,
    "intermediate_size": 80,
    "patch_size": 4,
    "image_size": 24,
}
_GEMMA4: Mapping[str, Any] = {
    **{key: value for key, value in _TEXT.items() if key != "tie_word_embeddings"},
    "num_hidden_layers": 6,
    "global_head_dim": 64,
    "layer_types": [
        f"{kind}_attention" for kind in ("sliding", "full", "sliding", "sliding", "sliding", "full")
    ],
    "sliding_window": 12,
    "vocab_size_per_layer_input": 299,
}
_GEMMA4_VISION: Mapping[str, Any] = {
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "intermediate_size": 80,
    "patch_size": 4,
    "pooling_kernel_size": 3,
    "position_embedding_size": 12,
}
_ROWS = (
    Seeing(
        "qwen3_vl", 71, "Qwen3VL",
        {
            **_TEXT,
            "rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [6, 5, 5]},
        },
        {**_QWEN, "deepstack_visual_indexes": [0, 2]},
        arch="qwen3vl",
        projector="qwen3vl_merger",
    ),
    Seeing(
        "qwen3_5", 72, "Qwen3_5",
        {
            **_TEXT, **_DELTA,
            "rope_parameters": {
                "rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5,
                "mrope_section": [3, 3, 2],
            },
        },
        _QWEN,
        zero_centred=True,
        arch="qwen35",
        projector="qwen3vl_merger",
    ),
    Seeing(
        "gemma3", 73, "Gemma3",
        {**_TEXT, "sliding_window": 12, "query_pre_attn_scalar": 32, "num_hidden_layers": 6},
        _SIGLIP,
        zero_centred=True,
        grids=((6, 6), (6, 6)),
        arch="gemma3",
        projector="gemma3",
        merge=2,
        model={"mm_tokens_per_image": 9},
    ),
    Seeing(
        "idefics3", 74, "Idefics3",
        {**_TEXT, "model_type": "llama", "rope_parameters": {"rope_type": "default", "rope_theta": 1e4}},
        _SIGLIP,
        grids=((6, 6), (6, 6)),
        arch="llama",
        projector="idefics3",
        merge=3,
        model={"scale_factor": 3},
    ),
    Seeing(
        "mistral3", 75, "Mistral3",
        {
            **_TEXT, "model_type": "mistral", "rms_norm_eps": 1e-5, "sliding_window": None,
            "rope_parameters": {"rope_type": "default", "rope_theta": 1e4},
        },
        {
            **_SIGLIP, "model_type": "pixtral", "hidden_size": 64, "hidden_act": "silu",
            "rope_parameters": {"rope_type": "axial", "rope_theta": 1e4},
        },
        arch="llama",
        projector="pixtral",
        model={"spatial_merge_size": 2, "projector_hidden_act": "gelu"},
    ),
    Seeing(
        "qwen2_5_vl", 76, "Qwen2_5_VL",
        {
            **_TEXT, "num_attention_heads": 3, "num_key_value_heads": 1,
            "rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [6, 5, 5]},
        },
        {
            "depth": 3, "hidden_size": 64, "num_heads": 2, "intermediate_size": 80, "patch_size": 4,
            "spatial_merge_size": 2, "temporal_patch_size": 2, "out_hidden_size": 96,
            "window_size": 16, "fullatt_block_indexes": [1],
        },
        grids=((10, 6), (4, 12)),
        arch="qwen2vl",
        projector="qwen2.5vl_merger",
    ),
    Seeing(
        "lfm2_vl", 80, "Lfm2Vl",
        {
            **{key: value for key, value in _TEXT.items() if key not in ("head_dim", "tie_word_embeddings")},
            "num_attention_heads": 3, "num_key_value_heads": 1, "block_auto_adjust_ff_dim": False,
            "layer_types": ["conv", "full_attention", "conv"],
            "rope_parameters": {"rope_type": "default", "rope_theta": 1e4},
        },
        {
            **{key: value for key, value in _SIGLIP.items() if key != "image_size"},
            "model_type": "siglip2_vision_model", "num_patches": 36, "vision_use_head": False,
        },
        grids=((8, 6), (4, 10)),
        arch="lfm2",
        projector="lfm2",
        model={"projector_hidden_size": 72, "tie_word_embeddings": True},
    ),
    Seeing(
        "gemma4", 77, "Gemma4",
        {**_GEMMA4, "hidden_size_per_layer_input": 16, "num_kv_shared_layers": 2},
        {**_GEMMA4_VISION, "use_clipped_linears": True},
        grids=((6, 9), (3, 6)),
        image_token=0,
        arch="gemma4",
        projector="gemma4v",
        merge=3,
        model={"tie_word_embeddings": True, "audio_config": None},
    ),
    Seeing(
        "gemma4_whole", 78, "Gemma4",
        {**_GEMMA4, "hidden_size_per_layer_input": 0, "use_bidirectional_attention": "vision"},
        {**_GEMMA4_VISION, "standardize": True},
        grids=((6, 9), (3, 6)),
        image_token=0,
        arch="gemma4",
        projector="gemma4v",
        merge=3,
        model={"tie_word_embeddings": True, "audio_config": None},
    ),
    Seeing(
        "gemma4_unified", 79, "Gemma4Unified",
        {**_GEMMA4, "use_bidirectional_attention": "vision"},
        {
            "patch_size": 4, "pooling_kernel_size": 3, "mm_embed_dim": 80, "output_proj_dims": 80,
            "mm_posemb_size": 12,
        },
        grids=((2, 3), (3, 2)),
        image_token=0,
        arch="gemma4",
        projector="gemma4uv",
        merge=1,
        model={"tie_word_embeddings": True, "audio_config": None},
    ),
)  # fmt: skip
ALL = {row.name: row for row in _ROWS}
"""The models, by name."""


def _odd(name: str, text: Mapping[str, Any], vision: Mapping[str, Any], **model: Any) -> Seeing:
    """A model like one of them, but for these numbers."""
    row = ALL[name]
    return replace(
        row,
        name=f"{name}_odd",
        text={**row.text, **text},
        vision={**row.vision, **vision},
        model={**row.model, **model},
    )


_FAST = {"rope_type": "axial", "rope_theta": 500.0}
ODD = {
    row.name: row
    for row in (
        # As many layers that are added to as the text has, and frequencies of its own.
        _odd("qwen3_vl", {}, {"deepstack_visual_indexes": [0, 1, 2], "rope_parameters": _FAST}),
        # No layer has windows.
        _odd("qwen2_5_vl", {}, {"fullatt_block_indexes": [0, 1, 2], "rope_parameters": _FAST}),
        _odd(
            "mistral3", {"rms_norm_eps": 0.05}, {"num_hidden_layers": 3, "rope_parameters": _FAST},
            multimodal_projector_bias=True, projector_hidden_act="silu", vision_feature_layer=-2,
        ),
        _odd("lfm2_vl", {}, {}, projector_bias=False, projector_hidden_act="silu"),
        # Layers that see everything have heads as the others do.
        _odd("gemma4", {"global_head_dim": 32}, {"rope_parameters": _FAST}),
    )
}  # fmt: skip
"""Models of the same families with numbers that published ones do not have."""


@dataclass(frozen=True, eq=False)
class Golden:
    """What Transformers computed.

    Attributes
    ----------
    pixels
        Of each image, float32 [patches, values], in merge order.
    rows
        What the tower made of each, float32 [rows, width].
    ids
        A prompt with all images.
    logits
        After each of its positions, float32 [n, vocab].
    """

    pixels: list[Array]
    rows: list[Array]
    ids: npt.NDArray[np.uint32]
    logits: Array


def golden(model: Seeing) -> Golden:
    """What `tools/make_tower_golden.py` wrote."""
    with np.load(DATA / f"{model.name}.npz") as found:
        n = len(model.grids)
        return Golden(
            [found[f"pixels{i}"].astype(np.float32) for i in range(n)],
            [found[f"rows{i}"] for i in range(n)],
            found["ids"],
            found["logits"],
        )


def saved(model: Seeing) -> tuple[dict[str, Any], dict[str, list[int]]]:
    """`config.json`, and the shape of each tensor, as Transformers saved them."""
    found = json.loads((DATA / f"{model.name}.json").read_text())
    return found["config"], found["shapes"]


@functools.cache
def weights(model: Seeing) -> dict[str, Array]:
    """The random weights under the names of the folder. They are shared: don't change them."""
    return made(model, saved(model)[1])


def made(model: Seeing, shapes: Mapping[str, list[int]]) -> dict[str, Array]:
    """Weights of these shapes, such that every part matters."""
    rng = np.random.RandomState(model.seed)

    def values(name: str, shape: list[int]) -> npt.NDArray[np.float64]:
        reach = 1 << 20
        x = rng.randint(-reach, reach, (4, *shape), dtype=np.int64).sum(axis=0) / (reach * np.sqrt(4 / 3))
        if name.endswith(("put_min", "put_max")):
            return (-1 if name.endswith("min") else 1) * (0.7 + 0.4 * abs(x))
        seen = "visual" in name or "vision" in name or "projector" in name
        if "A_log" in name:
            return np.linspace(-4, 1, shape[0])
        if "pos_embed" in name or "position_embedding" in name:
            return 0.7 * x
        if ".bias" in name or "dt_bias" in name:
            return 0.3 * x
        if "conv1d" in name:
            return 0.6 * x
        if len(shape) == 1:
            zero = (model.zero_centred and not seen and "linear_attn" not in name) or "mm_soft" in name
            return (0.0 if zero else 1.0) + 0.2 * x
        gains = {"embed_tokens": 2.4, "lm_head": 3.0, "o_proj": 1.5, "down_proj": 2.0}
        gain = next((gain for part, gain in gains.items() if part in name), 1.4)
        return x * (gain / np.sqrt(np.prod(shape[1:])))

    return {name: np.asarray(values(name, shape), np.float32) for name, shape in sorted(shapes.items())}


def write_folder(
    model: Seeing,
    folder: Path,
    change: Callable[[dict[str, Array]], Mapping[str, Array]] | None = None,
) -> Path:
    """Write the model as a folder, with other tensors if there are such."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(saved(model)[0]))
    arrays = change(dict(weights(model))) if change else weights(model)
    write_tensors(
        folder / "model.safetensors", {n: np.asarray(a, order="C") for n, a in arrays.items()}, "F32"
    )
    return folder


def text_metadata(model: Seeing) -> dict[str, object]:
    """What the GGUF file of the model of text says, as far as a tower beside it needs that."""
    sections = model.text.get("rope_parameters", {}).get("mrope_section")
    return {
        "general.architecture": model.arch,
        "general.name": model.name,
        f"{model.arch}.embedding_length": model.text["hidden_size"],
        f"{model.arch}.rope.dimension_sections": None if sections is None else [*sections, 0],
        f"{model.arch}.embedding_length_per_layer_input": model.text.get("hidden_size_per_layer_input", 0),
    }


def write_mmproj(
    model: Seeing,
    path: Path,
    name_of: Callable[[str], str] = str,
    *,
    inside: bool = False,
    others: Mapping[str, int] | None = None,
) -> Path:
    """Write the tower alone, as llama.cpp's converter does, its tensors maybe by other names.

    `inside`: by the keys of a file that has the model as well. `others`: keys behind the architecture, in the
    place of those that only llama.cpp's projectors have.
    """
    writer = gguf.GGUFWriter(str(path), model.arch if inside else "clip")
    if not inside:
        writer.add_string("clip.projector_type", model.projector)
    writer.add_string("general.name", model.name)
    for name, value in _clip_keys(model).items():
        if others is not None and name.endswith(("scale_factor", "merge_size", "use_silu", "projection_dim")):
            continue
        key = name.replace("clip.vision.", f"{model.arch}.vision.") if inside else name
        if isinstance(value, list) and isinstance(value[0], bool | float):
            writer.add_array(key, value)
        elif isinstance(value, float):
            writer.add_float32(key, value)
        else:
            writer.add_uint32(key, value)
    for name, value in (others or {}).items():
        writer.add_uint32(f"{model.arch}.{name}", value)
    for name, array in _clip_tensors(model, turned=not inside).items():
        writer.add_tensor(name_of(name), np.ascontiguousarray(array))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _numbers(model: Seeing) -> Mapping[str, Any]:
    """Return the values of `vision_config`, or what llama.cpp's converter writes where it has none."""
    none = {"depth": 0, "hidden_size": 0, "intermediate_size": 0, "num_heads": 0}
    own = {"hidden_size": model.vision["mm_embed_dim"]} if model.projector == "gemma4uv" else {}
    return {**(none if own else {}), **model.vision, **own}


def _clip_keys(model: Seeing) -> dict[str, Any]:
    vision = _numbers(model)
    deep = vision.get("deepstack_visual_indexes")

    def either(one: str, other: str) -> Any:
        return vision[one] if one in vision else vision[other]

    found: dict[str, Any] = {
        "block_count": either("depth", "num_hidden_layers"),
        "embedding_length": vision["hidden_size"],
        "feed_forward_length": vision["intermediate_size"],
        "attention.head_count": either("num_heads", "num_attention_heads"),
        "attention.layer_norm_epsilon": 1e-5 if model.projector == "pixtral" else 1e-6,
        "patch_size": vision["patch_size"],
        "image_size": vision.get("image_size", 256 if model.projector == "lfm2" else 768),
        "projection_dim": model.text["hidden_size"],
        "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.25, 0.5, 0.5],
    }
    scaled = model.projector in ("lfm2", "gemma3", "idefics3", "gemma4v")
    found["projector.scale_factor" if scaled else "spatial_merge_size"] = model.merge
    if model.projector == "qwen2.5vl_merger":
        found |= {"n_wa_pattern": 2, "window_size": vision["window_size"]}
    if deep is not None:
        found["is_deepstack_layers"] = [n in deep for n in range(vision["depth"])]
    keys = {f"clip.vision.{key}": value for key, value in found.items()}
    silu = vision.get("hidden_act") == "silu" or model.projector == "qwen2.5vl_merger"
    return keys | ({"clip.use_silu": True} if silu else {})


_CLIP_NAMES: Mapping[str, str] = {
    "patch_embed.proj.bias": "v.patch_embd.bias",
    "pos_embed.weight": "v.position_embd.weight",
    "merger.norm": "v.post_ln",
    "merger.linear_fc1": "mm.0",
    "merger.linear_fc2": "mm.2",
    "norm1": "ln1",
    "norm2": "ln2",
    "attn.qkv": "attn_qkv",
    "attn.proj": "attn_out",
    "mlp.linear_fc1": "ffn_up",
    "mlp.linear_fc2": "ffn_down",
    # Of LFM2.
    "multi_modal_projector.layer_norm": "mm.input_norm",
    # Of Qwen 2.5.
    "merger.ln_q": "v.post_ln",
    "merger.mlp.0": "mm.0",
    "merger.mlp.2": "mm.2",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    # Of Gemma 4.
    "patch_embedder.input_proj": "v.patch_embd",
    "patch_embedder.position_embedding_table": "v.position_embd.weight",
    "std_bias": "v.std_bias",
    "std_scale": "v.std_scale",
    "embed_vision.embedding_projection": "mm.input_projection",
    "input_layernorm": "ln1",
    "post_attention_layernorm": "attn_post_norm",
    "pre_feedforward_layernorm": "ln2",
    "post_feedforward_layernorm": "ffn_post_norm",
    "self_attn.o_proj": "attn_out",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "patch_ln1": "v.patch_norm.1",
    "patch_dense": "v.patch_embd",
    "patch_ln2": "v.patch_norm.2",
    "pos_norm": "v.patch_norm.3",
    "pos_embedding": "v.position_embd.weight",
    # Of SigLIP.
    "embeddings.patch_embedding": "v.patch_embd",
    "embeddings.position_embedding": "v.position_embd",
    "post_layernorm": "v.post_ln",
    "layer_norm1": "ln1",
    "layer_norm2": "ln2",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.out_proj": "attn_out",
    "mlp.fc1": "ffn_up",
    "mlp.fc2": "ffn_down",
    "connector.modality_projection.proj": "mm.model.fc",
    "multi_modal_projector.mm_soft_emb_norm": "mm.soft_emb_norm",
    # Of Pixtral.
    "patch_conv": "v.patch_embd",
    "ln_pre": "v.pre_ln",
    "attention_norm": "ln1",
    "ffn_norm": "ln2",
    "attention.q_proj": "attn_q",
    "attention.k_proj": "attn_k",
    "attention.v_proj": "attn_v",
    "attention.o_proj": "attn_out",
    "feed_forward.gate_proj": "ffn_gate",
    "feed_forward.up_proj": "ffn_up",
    "feed_forward.down_proj": "ffn_down",
    "multi_modal_projector.norm": "mm.input_norm",
    "multi_modal_projector.patch_merger.merging_layer": "mm.patch_merger",
    "multi_modal_projector.linear_1": "mm.1",
    "multi_modal_projector.linear_2": "mm.2",
}
_PROJECTORS = ("multi_modal", "connector", "embed_vision.")
_TOWERS = ("visual.", "vision_embedder.", "vision_tower.vision_model.", "vision_model.", "vision_tower.")


def _clip_tensors(model: Seeing, *, turned: bool = True) -> dict[str, Array]:
    """Return the tower's tensors; `turned`: elements that turn together are neighbours, where they may be."""
    found: dict[str, Array] = {}
    for name, array in weights(model).items():
        own = name.removeprefix("model.")
        if own.startswith("language_model.") or not own.startswith((*_TOWERS, *_PROJECTORS)):
            if (
                not own.startswith(("text_model.", "language_model.", "layers.", "embed_tokens.", "norm."))
                and "lm_head" not in own
            ):
                raise AssertionError(name)
            continue
        own = next((own.removeprefix(tower) for tower in _TOWERS if own.startswith(tower)), own)
        own = own.removeprefix("encoder.").removeprefix("transformer.")
        if own.startswith("head."):  # of SigLIP's own task
            continue
        if own == "multi_modal_projector.mm_input_projection_weight":
            found["mm.input_projection.weight"] = array
        elif own == "patch_embed.proj.weight":
            found["v.patch_embd.weight"] = array[:, :, 0]
            found["v.patch_embd.weight.1"] = array[:, :, 1]
        elif own.startswith(("blocks.", "layers.")):
            _, layer, part = own.split(".", 2)
            stem, _, kind = part.replace(".linear.", ".").rpartition(".")
            if stem == "attn.qkv" and model.projector == "qwen2.5vl_merger":
                for name, rows in zip("qkv", np.split(array, 3), strict=True):
                    found[f"v.blk.{layer}.attn_{name}.{kind}"] = rows
                continue
            if turned and model.projector == "pixtral" and stem in ("attention.q_proj", "attention.k_proj"):
                heads = model.vision["num_attention_heads"]
                halves = array.reshape(heads, 2, -1, array.shape[1])
                array = halves.swapaxes(1, 2).reshape(array.shape)
            found[f"v.blk.{layer}.{_CLIP_NAMES[stem]}.{kind}"] = array
        elif own.startswith("deepstack_merger_list."):
            _, k, part, kind = own.split(".")
            layer = model.vision["deepstack_visual_indexes"][int(k)]
            found[f"v.deepstack.{layer}.{part.removeprefix('linear_')}.{kind}"] = array
        else:
            stem, _, kind = own.rpartition(".")
            array = _by_channel(own, array)
            if stem == "multi_modal_projector.mm_soft_emb_norm":
                array = array + np.float32(1)
            found[_CLIP_NAMES.get(own) or f"{_CLIP_NAMES[stem]}.{kind}"] = array
    return found


def _by_channel(name: str, array: Array) -> Array:
    """A tensor of Gemma 4 in llama.cpp's order: values of a patch by channel, columns' positions first."""
    if name == "pos_embedding":
        return array.transpose(1, 0, 2)
    if len(array.shape) == 2 and name.startswith("embeddings.patch_embedding"):
        side = round((array.shape[1] // 3) ** 0.5)
        return array.reshape(-1, side, side, 3).transpose(0, 3, 1, 2)
    if name.startswith(("patch_embedder.input_proj", "patch_ln1.", "patch_dense.weight")):
        values = array.shape[-1]
        side = round((values // 3) ** 0.5)
        by_channel = np.moveaxis(array.reshape(*array.shape[:-1], side, side, 3), -1, -3)
        whole = name.startswith("patch_embedder")
        return by_channel if whole else by_channel.reshape(array.shape)
    return array
