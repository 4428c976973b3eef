"""Write ember-vision as GGUF: the model of text, and its tower as an `mmproj` file beside it.

python -m tools.ember_vision.export --run build/ember-vision --out python/akunu/models
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf import LlamaFileType, quants
from numpy.typing import NDArray

from tools.ember.model_config import Config as Stack
from tools.ember_vision import tokens
from tools.ember_vision.config import DEVIATION, LONGEST, MEAN, MERGE, PATCH, Config

Arrays = dict[str, NDArray[np.float32]]
NAME = "ember-vision"
TYPES = {
    "F32": (Type.F32, LlamaFileType.ALL_F32),
    "F16": (Type.F16, LlamaFileType.MOSTLY_F16),
    "Q8_0": (Type.Q8_0, LlamaFileType.MOSTLY_Q8_0),
}


def read_run(run: Path) -> tuple[Arrays, Arrays]:
    """The tensors of a training's text and tower."""
    found = []
    for part in ("text", "tower"):
        path = run / f"weights-{part}.npz"
        if not path.exists():
            raise SystemExit(f"{path} is missing: {run} is not the folder of a training run")
        with np.load(path) as file:
            found.append({name: file[name].astype(np.float32) for name in file.files})
    return found[0], found[1]


def config_of(text: Arrays, tower: Arrays) -> Config:
    """The sizes of these tensors; heads have 64 elements, or 32 in a model for tests."""

    def stack(tensors: Arrays, prefix: str, usual: Stack) -> Stack:
        layers = 1 + max(int(name.split("blk.")[1].split(".")[0]) for name in tensors if "blk." in name)
        ffn, dim = tensors[f"{prefix}blk.0.ffn_gate.weight"].shape
        kv, _ = tensors[f"{prefix}blk.0.attn_k.weight"].shape
        head = usual.head_dim if dim == usual.dim else 32
        return Stack(usual.vocab, usual.context, dim, layers, dim // head, kv // head, ffn)

    usual = Config()
    return Config(stack(tower, "v.", usual.tower), stack(text, "", usual.text))


def _general(writer: gguf.GGUFWriter, kind: str, parameters: int) -> None:
    writer.add_name("Ember Vision")
    writer.add_basename(NAME)
    writer.add_organization("Akunu")
    writer.add_author("The Akunu authors")
    writer.add_description(
        "Ember Vision, the tiny model that sees and comes with Akunu: reads print, counts shapes and says "
        "where they are. A demonstration and test model, trained from scratch on drawn pictures."
    )
    writer.add_license("Apache-2.0")
    writer.add_languages(["en"])
    writer.add_tags(["image-text-to-text", "demonstration", "synthetic-data"])
    writer.add_size_label(f"{parameters / 1e6:.1f}M")
    writer.add_file_type(TYPES[kind][1])
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)


def _write(writer: Any, tensors: Arrays, kind: str) -> None:
    for name in sorted(tensors):
        tensor = tensors[name]
        type_ = TYPES[kind][0] if tensor.ndim == 2 else Type.F32
        if name == "v.patch_embd.weight":  # a convolution, of which llama.cpp takes no blocks
            tensor, type_ = tensor.reshape(len(tensor), 3, PATCH, PATCH), Type.F32
        writer.add_tensor(name, quants.quantize(np.ascontiguousarray(tensor), type_), raw_dtype=type_)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_text(tensors: Arrays, c: Stack, kind: str, path: Path) -> None:
    """The Llama, with the vocabulary."""
    writer: Any = gguf.GGUFWriter(path, "llama")
    _general(writer, kind, sum(t.size for t in tensors.values()))
    writer.add_float32("general.sampling.temp", 0.0)
    writer.add_context_length(c.context)
    writer.add_embedding_length(c.dim)
    writer.add_block_count(c.layers)
    writer.add_feed_forward_length(c.ffn)
    writer.add_head_count(c.heads)
    writer.add_head_count_kv(c.kv_heads)
    writer.add_key_length(c.head_dim)
    writer.add_value_length(c.head_dim)
    writer.add_rope_dimension_count(c.head_dim)
    writer.add_rope_freq_base(c.rope_base)
    writer.add_layer_norm_rms_eps(c.norm_eps)
    writer.add_vocab_size(c.vocab)
    names = tokens.gguf_tokens()
    types = [gguf.TokenType.NORMAL] * tokens.BEGIN
    types += [gguf.TokenType.CONTROL] * len(tokens.CONTROL)
    types.append(gguf.TokenType.NORMAL)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(names)
    writer.add_token_types(types)
    writer.add_token_merges([f"{names[0]} {names[0]}"])
    writer.add_bos_token_id(tokens.BEGIN)
    writer.add_eos_token_id(tokens.END)
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(False)
    writer.add_chat_template(tokens.CHAT_TEMPLATE)
    _write(writer, tensors, kind)


def write_tower(tensors: Arrays, c: Config, kind: str, path: Path) -> None:
    """Pixtral's tower, as llama.cpp has it."""
    writer: Any = gguf.GGUFWriter(path, "clip")
    _general(writer, kind, sum(t.size for t in tensors.values()))
    writer.add_string("general.type", "mmproj")
    writer.add_bool("clip.has_vision_encoder", True)
    writer.add_string("clip.projector_type", "pixtral")
    writer.add_bool("clip.use_silu", True)
    keys: dict[str, int] = {
        "image_size": LONGEST, "patch_size": PATCH, "embedding_length": c.tower.dim,
        "feed_forward_length": c.tower.ffn, "block_count": c.tower.layers,
        "attention.head_count": c.tower.heads, "projection_dim": c.text.dim, "spatial_merge_size": MERGE,
    }  # fmt: skip
    for key, value in keys.items():
        writer.add_uint32(f"clip.vision.{key}", value)
    writer.add_float32("clip.vision.attention.layer_norm_epsilon", c.tower.norm_eps)
    writer.add_array("clip.vision.image_mean", [MEAN] * 3)
    writer.add_array("clip.vision.image_std", [DEVIATION] * 3)
    _write(writer, tensors, kind)


def export(run: Path, out: Path, kind: str) -> tuple[Path, Path]:
    """Write both files, whose matrices have the type `kind`."""
    text, tower = read_run(run)
    config = config_of(text, tower)
    out.mkdir(parents=True, exist_ok=True)
    paths = out / f"{NAME}.gguf", out / f"mmproj-{NAME}.gguf"
    write_text(text, config.text, kind, paths[0])
    # llama.cpp puts this behind each line of a picture.
    row_end = text["token_embd.weight"][tokens.ROW_END]
    write_tower({**tower, "v.token_embd.img_break": row_end}, config, kind, paths[1])
    return paths


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--run", type=Path, required=True, help="folder of a training run")
    parser.add_argument("--out", type=Path, required=True, help="folder of the files")
    parser.add_argument("--type", choices=TYPES, default="Q8_0")
    args = parser.parse_args()
    for path in export(args.run, args.out, args.type):
        print(f"{path}: {path.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
