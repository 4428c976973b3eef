"""Opens thousands of folders whose quantized matrices were spoiled and runs each; see fuzz_worker.py."""

from __future__ import annotations

import copy
import json
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from fuzz_worker import Counts, limit_memory, run

from formats.mlx_planes import quantize_floats
from formats.safetensors_bytes import write_tensors
from models import folders, packing, test_fp8_folder, test_packed_folder
from models.test_folder import open_folder

Arrays = dict[str, npt.NDArray[Any]]
LIES = (0, -1, 1, 7, 16, 31, 2**31, 2**32 + 4, 2**63, 2**64 - 32, 2**70, 0.5, 1e308, None, True, "x", [], {})
STATE = "weight.quant_state.bitsandbytes__nf4"
MATRIX = "model.layers.0.mlp.down_proj."
SIZE, WORDS = 64, 32
CONFIG = {
    "hidden_size": SIZE,
    "intermediate_size": SIZE,
    "head_dim": SIZE,
    "num_hidden_layers": 1,
    "num_attention_heads": 1,
    "num_key_value_heads": 1,
    "vocab_size": WORDS,
}
FORMS = (
    *("gptq", "gptq symmetric", "gptq v2", "gptq without index", "gptq act order", "gptq 3 bits act order"),
    *("awq", "packed", "packed with zeros", "packed act order", "bytes", "LLM.int8()", "nf4", "nf4 nested"),
)


def weights() -> Arrays:
    """A Llama of one layer, all of whose matrices are squares but the embedding and the head."""
    rng = np.random.default_rng(1)
    out: Arrays = {}
    for name in (
        "self_attn.q",
        "self_attn.k",
        "self_attn.v",
        "self_attn.o",
        "mlp.gate",
        "mlp.up",
        "mlp.down",
    ):
        out[f"model.layers.0.{name}_proj.weight"] = rng.normal(size=(SIZE, SIZE)).astype(np.float32)
    for name in ("model.embed_tokens", "lm_head"):
        out[f"{name}.weight"] = rng.normal(size=(WORDS, SIZE)).astype(np.float32)
    for name in ("model.layers.0.input_layernorm", "model.layers.0.post_attention_layernorm", "model.norm"):
        out[f"{name}.weight"] = np.ones(SIZE, np.float32)
    return out


def float_codes(form: str, arrays: Arrays) -> Arrays:
    """`nvfp4-pack-quantized` and `mxfp4-pack-quantized` of compressed-tensors."""
    out: Arrays = {}
    for name, array in arrays.items():
        if "_proj" not in name:
            out[name] = array
            continue
        planes = quantize_floats(array / 64, form)
        out[f"{name}_packed"] = planes.codes.view(np.uint8)
        out[f"{name}_scale"] = planes.scales.view(np.int8) if form == "nvfp4" else planes.scales
        if form == "nvfp4":
            out[f"{name}_global_scale"] = np.array([1 / 64], np.float32)
    return out


def kinds() -> Iterator[tuple[str, dict[str, Any], Arrays, dict[str, str]]]:
    """Names of layouts with the settings, the tensors, and the types of those that are bytes."""
    for form in FORMS:
        settings, write = test_packed_folder.FORMS[form]
        types: dict[str, str] = {}
        yield form, settings, packing.packed(write, types=types)(weights()), types
    for form in ("blocks", "channel", "block"):
        settings, scale, *tile = test_fp8_folder.FORMS[form]
        change = test_fp8_folder.coded(scale, (tile[0], tile[1]))
        yield f"fp8 {form}", settings, change(weights()), {}
    for form in ("nvfp4", "mxfp4"):
        settings = {"quant_method": "compressed-tensors", "format": f"{form}-pack-quantized"}
        yield form, settings, float_codes(form, weights()), {}


def spoiled_array(rng: random.Random, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The numbers in another shape, fewer or more of them, or of other values where they are integers."""
    shape, n = array.shape, array.size
    changes: list[Callable[[], npt.NDArray[Any]]] = [
        lambda: array.reshape(-1),
        lambda: array.reshape(1, n),
        lambda: array.reshape(n, 1),
        lambda: array.reshape(*shape, 1),
        lambda: array.reshape(1, *shape),
        lambda: array.reshape(-1)[: rng.randrange(n + 1)].copy(),
        lambda: np.zeros((), array.dtype),
        lambda: np.zeros((0, *shape[1:]), array.dtype),
        lambda: np.zeros((*shape[:-1], 0), array.dtype),
        lambda: np.concatenate([array.reshape(-1)] * 2),
        lambda: np.concatenate([array] * 2) if shape else array,
        lambda: array.T.copy(),
    ]
    if n > 1 and n % 2 == 0:
        changes += [lambda: array.reshape(2, -1), lambda: array.reshape(-1, 2)]
    if array.dtype.kind in "iu":
        changes += [partial(_with_lies, rng, array)] * 4
    if array.itemsize == 4:
        flat = array.reshape(-1)
        changes += [lambda: flat.view(np.int32), lambda: flat.view(np.uint32), lambda: flat.view(np.float16)]
    return rng.choice(changes)()


def _with_lies(rng: random.Random, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    out = array.copy()
    limits = np.iinfo(array.dtype)
    flat = out.reshape(-1)
    for _ in range(rng.randint(1, 3)):
        if flat.size:
            flat[rng.randrange(flat.size)] = rng.choice([0, 1, 2, 3, limits.min, limits.max, limits.max // 2])
    return out


def spoiled_tensors(
    count: int, seed: int, path: Path, arrays: Arrays, types: dict[str, str]
) -> Iterator[bytes]:
    """Files whose header is right, of tensors that do not belong together."""
    rng = random.Random(seed)
    for _ in range(count):
        own, kinds = dict(arrays), dict(types)
        for _ in range(rng.randint(1, 2)):
            name = rng.choice([name for name in own if name.startswith(MATRIX)] or list(own))
            edit = rng.randrange(8)
            if edit == 0:
                del own[name]
            elif edit == 1:
                other = rng.choice(list(own))
                own[name], own[other] = own[other], own[name]
            elif edit == 2:
                kinds[name] = {1: "U8", 2: "BF16", 4: "U32", 8: "F64"}[own[name].itemsize]
            else:
                own[name] = spoiled_array(rng, own[name])
        write_tensors(path, own, types={name: kind for name, kind in kinds.items() if name in own})
        yield path.read_bytes()


def spoiled_states(count: int, seed: int, path: Path, arrays: Arrays) -> Iterator[bytes]:
    """Files whose matrix has another state of bitsandbytes."""
    rng = random.Random(seed)
    for i in range(count):
        state = spoiled_object(rng, json.loads(arrays[MATRIX + STATE].tobytes()))
        text = json.dumps(state).encode() if i else b"[" * 60_000
        write_tensors(path, arrays | {MATRIX + STATE: np.frombuffer(text, np.uint8)})
        yield path.read_bytes()


def spoiled_object(rng: random.Random, said: dict[str, Any]) -> dict[str, Any]:
    """An object with some of its values, or of those inside it, replaced, left out or added."""
    said = copy.deepcopy(said)
    for _ in range(rng.randint(1, 3)):
        at: Any = said
        while True:
            key = rng.choice(list(at) if isinstance(at, dict) else range(len(at)))
            if not isinstance(at[key], dict | list) or not at[key] or rng.random() < 0.3:
                break
            at = at[key]
        lie = rng.choice(LIES)
        edit = rng.randrange(6)
        if edit == 0:
            del at[key]
        elif edit == 1:
            said[
                rng.choice(["bits", "group_size", "sym", "format", "checkpoint_format", "weight_block_size"])
            ] = lie
        else:
            at[key] = lie
        if not at or not said:
            break
    return said


def spoiled_settings(
    count: int, seed: int, config: dict[str, Any], settings: dict[str, Any]
) -> Iterator[bytes]:
    """Configurations that say other things of the tensors."""
    rng = random.Random(seed)
    for _ in range(count):
        yield json.dumps(config | {"quantization_config": spoiled_object(rng, settings)}).encode()


def use(folder: Path) -> None:
    """Load the model and run it."""
    found = open_folder(folder).logits([1, 2, 3])
    assert found.shape == (3, WORDS)


def main() -> None:
    counts: Counts = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config = folders.config("llama") | CONFIG
        for i, (form, settings, arrays, types) in enumerate(kinds()):
            said = folder / "config.json"
            file = folder / "model.safetensors"
            said.write_text(json.dumps(config | {"quantization_config": settings}))
            write_tensors(file, arrays, types=types)
            use(folder)
            if i == 0:
                limit_memory()
            whole = file.read_bytes()
            scratch = folder / "scratch"
            tensors = spoiled_tensors(100, i, scratch, arrays, types)
            run(counts, form, tensors, lambda _: use(folder), file)
            if MATRIX + STATE in arrays:
                states = spoiled_states(60, i, scratch, arrays)
                run(counts, form, states, lambda _: use(folder), file)
            file.write_bytes(whole)
            spoiled = spoiled_settings(60, i, config, settings)
            run(counts, form, spoiled, lambda _: use(folder), said)
    json.dump(counts, sys.stdout)


if __name__ == "__main__":
    main()
