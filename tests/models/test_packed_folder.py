"""Folders of GPTQ, AWQ, compressed-tensors and bitsandbytes: the models of their dequantised weights."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import akunu
from akunu.base.errors import ModelFileError, UnsupportedError
from akunu.files.folder import ModelFolder

from . import folders, packing, tiny
from .packing import Arrays, Writer
from .test_engine import nmse, open_engine
from .test_folder import open_folder


def gptq(bits: int = 4, **more: Any) -> dict[str, Any]:
    return {"quant_method": "gptq", "bits": bits, "group_size": 32, "desc_act": False, "sym": False} | more


def compressed(form: str = "pack-quantized", **more: Any) -> dict[str, Any]:
    return {"quant_method": "compressed-tensors", "format": form, "ignore": ["lm_head"]} | more


AWQ = {"quant_method": "awq", "version": "gemm", "bits": 4, "group_size": 32, "zero_point": True}
BNB = {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}

FORMS: dict[str, tuple[dict[str, Any], Writer]] = {
    "gptq": (gptq(), packing.gptq),
    "gptq symmetric": (gptq(sym=True), partial(packing.gptq, symmetric=True)),
    "gptq v2": (gptq(checkpoint_format="gptq_v2"), partial(packing.gptq, second=True)),
    "gptq without index": (gptq(), partial(packing.gptq, index=False)),
    "gptq rows": (gptq(group_size=-1), partial(packing.gptq, size=-1)),
    "gptq small groups": (gptq(group_size=16), partial(packing.gptq, size=16)),
    "gptq act order": (gptq(desc_act=True), partial(packing.gptq, ordered=True)),
    **{f"gptq {bits} bits": (gptq(bits), partial(packing.gptq, bits=bits)) for bits in (2, 3, 8)},
    "gptq 3 bits act order": (gptq(3, desc_act=True), partial(packing.gptq, bits=3, ordered=True)),
    "awq": (AWQ, packing.awq),
    "packed": (compressed(), packing.pack_quantized),
    "packed with zeros": (compressed(), partial(packing.pack_quantized, symmetric=False)),
    "packed rows": (compressed(), partial(packing.pack_quantized, size=-1)),
    "packed bytes": (compressed(), partial(packing.pack_quantized, bits=8, symmetric=False)),
    "packed act order": (compressed(), partial(packing.pack_quantized, ordered=True)),
    "bytes": (compressed("int-quantized"), packing.int_quantized),
    "LLM.int8()": (BNB | {"load_in_4bit": False, "load_in_8bit": True}, packing.llm_int8),
    "nf4": (BNB, packing.nf4),
    "nf4 nested": (BNB, partial(packing.nf4, nested=True)),
}

OF_EACH_KIND = ("gptq act order", "awq", "packed with zeros", "bytes", "nf4 nested")


def written(
    name: str,
    form: str,
    path: Path,
    change: Callable[[Arrays], None] = lambda arrays: None,
    **more: Any,
) -> tuple[Path, Path]:
    """The folder, and that of its values in F32."""
    config, write = FORMS[form]
    types: dict[str, str] = {}

    def arrays(weights: Arrays) -> Arrays:
        out = packing.packed(write, types=types)(weights)
        change(out)
        return out

    found = folders.write(
        name,
        path / "packed",
        change=lambda c: c | {"quantization_config": config | more},
        arrays=arrays,
        types=types,
    )
    return found, folders.write(name, path / "f32", arrays=packing.packed(write, values=True))


def types_of(path: Path) -> set[str]:
    return {ref.dtype for name, ref in ModelFolder(path).spec().tensors.items() if "attn_output" in name}


@pytest.mark.table
@pytest.mark.parametrize(
    ("name", "form"),
    [
        *(("llama_256", form) for form in FORMS),
        *(
            pytest.param(name, form, marks=[] if form in OF_EACH_KIND else pytest.mark.long)
            for name in ("phi3", "qwen3moe")
            for form in FORMS
        ),
    ],
)
def test_a_packed_folder_is_the_model_of_its_values(name: str, form: str, tmp_path: Path) -> None:
    """Phi-3 has Q, K and V in one matrix, and gate and up in one; experts are matrices of their own."""
    codes, values = written(name, form, tmp_path)
    prompt = tiny.golden(name).prompt
    expected = open_folder(values).logits(prompt)
    file = akunu.convert(codes, tmp_path / "f32.gguf", "f32", progress=False)
    assert nmse(open_engine(file).logits(prompt), expected) < 1e-9
    # Inputs of codes have eight bits, by which other experts may be chosen for some of the tokens.
    found = open_folder(codes).logits(prompt)
    rows = [nmse(row, wanted) for row, wanted in zip(found, expected, strict=True)]
    assert np.median(rows) < (5e-2 if name == "qwen3moe" else 5e-3)


@pytest.mark.parametrize("form", ["gptq", "gptq act order", "packed"])
def test_a_packed_folder_becomes_another_folder(form: str, tmp_path: Path) -> None:
    codes, values = written("llama_256", form, tmp_path)
    prompt = tiny.golden("llama_256").prompt
    folder = akunu.convert(codes, tmp_path / "plain", "mlx-f32", progress=False)
    assert nmse(open_folder(folder).logits(prompt), open_folder(values).logits(prompt)) < 1e-9


def test_scales_keep_their_type_where_biases_are_exact_in_it(tmp_path: Path) -> None:
    """Biases are scales times zeros; those of symmetric codes are powers of two."""
    for form, dtype in {
        "gptq symmetric": "mlx_q4_g32_f16",
        "packed": "mlx_q4_g32_f16",
        "gptq": "mlx_q4_g32_f32",
        "packed rows": "mlx_q4_g128_f16",
        "gptq act order": "",
    }.items():
        codes, _ = written("llama_256", form, tmp_path / form)
        assert types_of(codes) == {dtype}, form


def test_zeros_of_the_first_form_were_taken_from_whole_words(tmp_path: Path) -> None:
    """A zero of 0 borrows from the next one, as GPTQModel writes them."""
    name = "model.layers.0.mlp.down_proj"

    def spoil(arrays: Arrays, values: bool = False) -> None:
        if not values:
            zeros = arrays[f"{name}.qzeros"].view(np.uint32)
            zeros += np.uint32(0x11111111)
            zeros[:] &= np.uint32(0xFFFFFF0F)  # row 1 of each eight has the zero 0
            zeros -= np.uint32(0x11111111)

    codes, values = written("llama_256", "gptq", tmp_path, spoil)
    prompt = tiny.golden("llama_256").prompt
    second = spoiled_second(tmp_path / "second", name)
    found = open_folder(codes).logits(prompt)
    np.testing.assert_array_equal(found, open_folder(second).logits(prompt))
    assert nmse(found, open_folder(values).logits(prompt)) > 5e-3


def spoiled_second(path: Path, name: str) -> Path:
    def spoil(arrays: Arrays) -> None:
        zeros = arrays[f"{name}.qzeros"].view(np.uint32)
        zeros[:] &= np.uint32(0xFFFFFF0F)

    return written("llama_256", "gptq v2", path, spoil)[0]


def test_biases_of_nothing_are_left_out(tmp_path: Path) -> None:
    """AutoGPTQ gave every matrix a bias; those of a Llama are zeros, and the model has none."""

    def biased(arrays: Arrays) -> None:
        for name in [n for n in arrays if n.endswith("qweight")]:
            arrays[name.removesuffix("qweight") + "bias"] = np.zeros(arrays[name].shape[1], np.float16)

    def one(arrays: Arrays) -> None:
        biased(arrays)
        arrays["model.layers.0.mlp.up_proj.bias"][3] = 1

    codes, values = written("llama_256", "gptq", tmp_path, biased)
    prompt = tiny.golden("llama_256").prompt
    assert nmse(open_folder(codes).logits(prompt), open_folder(values).logits(prompt)) < 5e-3
    codes, _ = written("llama_256", "gptq", tmp_path, one)
    with pytest.raises(ModelFileError, match=r"up_proj\.bias: by config\.json this llama model has no such"):
        open_folder(codes)


def test_modules_may_have_bits_of_their_own(tmp_path: Path) -> None:
    """`dynamic` of GPTQModel."""
    path, values = tmp_path / "codes", tmp_path / "values"

    def mixed(arrays: Arrays, *, floats: bool) -> Arrays:
        out: Arrays = {}
        for name, array in arrays.items():
            bits, size = (8, 64) if "down_proj" in name else (4, 32)
            out |= packing.packed(partial(packing.gptq, bits=bits, size=size), values=floats)({name: array})
        return out

    settings = {"quantization_config": gptq(dynamic={"+:.*down_proj": {"bits": 8, "group_size": 64}})}
    folders.write("llama_256", path, change=lambda c: c | settings, arrays=partial(mixed, floats=False))
    folders.write("llama_256", values, arrays=partial(mixed, floats=True))
    prompt = tiny.golden("llama_256").prompt
    file = akunu.convert(path, tmp_path / "f32.gguf", "f32", progress=False)
    assert nmse(open_engine(file).logits(prompt), open_folder(values).logits(prompt)) < 1e-9


DOWN = "model.layers.1.mlp.down_proj"


def without(end: str) -> Callable[[Arrays], None]:
    def spoil(arrays: Arrays) -> None:
        del arrays[f"{DOWN}.{end}"]

    return spoil


def put(end: str, change: Callable[[Any], Any]) -> Callable[[Arrays], None]:
    def spoil(arrays: Arrays) -> None:
        arrays[f"{DOWN}.{end}"] = change(arrays[f"{DOWN}.{end}"])

    return spoil


def state(**more: Any) -> Callable[[Arrays], None]:
    """The state of bitsandbytes with other values."""

    def change(text: Any) -> Any:
        return np.frombuffer(json.dumps(json.loads(text.tobytes()) | more).encode(), np.uint8)

    return put("weight.quant_state.bitsandbytes__nf4", change)


def state_of(text: bytes) -> Callable[[Arrays], None]:
    return put("weight.quant_state.bitsandbytes__nf4", lambda _: np.frombuffer(text, np.uint8))


def one_scale(arrays: Arrays) -> None:
    """One for each row."""
    for name in [n for n in arrays if n.endswith(".scales")]:
        arrays[name] = arrays[name][:1].copy()


def nothing(arrays: Arrays) -> None:
    pass


REFUSED: dict[str, tuple[str, dict[str, Any], Callable[[Arrays], None], type[Exception], str]] = {
    "no zeros": ("gptq", {}, without("qzeros"), ModelFileError, r"down_proj\.qzeros is missing"),
    "no scales": ("awq", {}, without("scales"), ModelFileError, r"down_proj\.scales is missing"),
    "no shape": ("packed", {}, without("weight_shape"), ModelFileError, "weight_shape is missing"),
    "a group that is not there": (
        "gptq act order",
        {},
        put("g_idx", lambda a: np.where(a == 1, 99, a).astype(np.int32)),
        ModelFileError,
        r"g_idx' does not fit .* expected groups below \d",
    ),
    "a negative group": (
        "gptq act order",
        {},
        put("g_idx", lambda a: np.where(a == 1, -1, a).astype(np.int32)),
        ModelFileError,
        r"g_idx' does not fit",
    ),
    "few codes": ("awq", {}, put("qweight", lambda a: a[:, :-1].copy()), ModelFileError, "does not fit"),
    "few zeros": ("gptq", {}, put("qzeros", lambda a: a[:-1].copy()), ModelFileError, "does not fit"),
    "few scales": ("packed", {}, put("weight_scale", lambda a: a[:-1].copy()), ModelFileError, "not fit"),
    "few groups": ("gptq", {}, put("scales", lambda a: a[:-1].copy()), ModelFileError, r"found \d+ scales"),
    "no number": (
        "gptq",
        {},
        put("scales", lambda a: np.where(a == a.max(), np.nan, a).astype(np.float16)),
        ModelFileError,
        "holds NaN",
    ),
    "few codes of a table": ("nf4", {}, put("weight", lambda a: a[:-1].copy()), ModelFileError, "not fit"),
    "no state": (
        "nf4",
        {},
        put("weight.quant_state.bitsandbytes__nf4", lambda a: a[:-9].copy()),
        ModelFileError,
        "bitsandbytes__nf4: is not valid JSON",
    ),
    "a deep state": ("nf4", {}, state_of(b"[" * 60_000), ModelFileError, "is not valid JSON"),
    "a long state": ("nf4", {}, state_of(b" " * 70_000), ModelFileError, "longer than 65536 bytes"),
    "a block of too many": ("nf4", {}, state(blocksize=2**70), ModelFileError, "no state of bitsandbytes"),
    "rows of too many": ("nf4", {}, state(shape=[2**31, 2]), ModelFileError, "no state of bitsandbytes"),
    "an offset that is no float": (
        "nf4",
        {},
        state(nested_blocksize=256, nested_offset=10**400),
        ModelFileError,
        "no state of bitsandbytes",
    ),
    "codes of many bits": (
        "packed",
        {},
        put("weight_shape", lambda a: np.array([a[0], 1])),
        UnsupportedError,
        r"down_proj\.weight_packed: found codes of 2048 bits; supported are 1 to 8",
    ),
    "codes of 16 bits": (
        "gptq without index",
        {"bits": 16, "group_size": -1},
        one_scale,
        UnsupportedError,
        r"qweight: found codes of 16 bits; supported are 1 to 8",
    ),
    "a shape of three": (
        "packed",
        {},
        put("weight_shape", lambda a: np.array([*a, 1])),
        ModelFileError,
        "weight_shape: found 3 numbers, expected 2",
    ),
    "marlin": ("gptq", {"checkpoint_format": "marlin"}, nothing, UnsupportedError, "found 'marlin'; supp"),
    "gemv": ("awq", {"version": "gemv"}, nothing, UnsupportedError, r"version: found 'gemv'; supported"),
    "rotated": (
        "packed",
        {"transform_config": {"config_groups": {"u": {"type": "hadamard"}}}},
        nothing,
        UnsupportedError,
        "transform_config: the weights are rotated",
    ),
    "another library": (
        "gptq",
        {"quant_method": "hqq"},
        nothing,
        UnsupportedError,
        "quantized by 'hqq', which is not supported; use a checkpoint of",
    ),
    "sparse": ("packed", {"format": "marlin-24"}, nothing, UnsupportedError, "found 'marlin-24'; supported"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_refused(case: str, tmp_path: Path) -> None:
    form, more, change, error, message = REFUSED[case]
    codes, _ = written("llama_256", form, tmp_path, change, **more)
    with pytest.raises(error, match=message):
        open_folder(codes)


def test_settings_without_codes_are_refused(tmp_path: Path) -> None:
    settings: Mapping[str, Any] = {"quantization_config": AWQ}
    path = folders.write("llama", tmp_path, change=lambda c: c | settings)
    with pytest.raises(ModelFileError, match="quantized by 'awq', but there is no tensor of its codes"):
        open_folder(path)
