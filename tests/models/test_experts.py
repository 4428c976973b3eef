"""Models with experts: against Transformers, in every phase, and each way that files store the experts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
import numpy.typing as npt
import pytest

from akunu import _core
from akunu.base.errors import ModelFileError, UnsupportedError
from akunu.files.describe.blocks import Experts
from akunu.files.describe.gguf_config import resolve
from order import Draw

from . import convert, folders, quant, tiny
from .reference import Reference
from .test_engine import QUANTISED, greedy, nmse, open_engine
from .test_folder import logits as folder_logits
from .test_folder import open_folder

Arrays = dict[str, npt.NDArray[np.float32]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("experts")


def written(folder: Path, name: str, dtype: str = "F32") -> Path:
    path = folder / f"{name}-{dtype}.gguf"
    return path if path.exists() else tiny.write(name, dtype, path).path


def rewritten(path: Path, name: str, change: Callable[[Arrays], Arrays], **keys: object) -> Path:
    """The model as a file of other tensors and keys."""
    row = tiny.EXPERTS[name]
    writer = gguf.GGUFWriter(str(path), row.arch)
    for key, value in (convert.metadata(row) | {f"{row.arch}.{k}": v for k, v in keys.items()}).items():
        if value is not None:
            convert.add_value(writer, key, value)
    convert.add_tokenizer(writer, row.vocab_size)
    for tensor, array in change(convert.tensors(row, tiny.weights(row))).items():
        writer.add_tensor(tensor, np.ascontiguousarray(array))
    convert.finish(writer)
    return path


@pytest.mark.parametrize("name", tiny.EXPERTS)
def test_golden_data_belongs_to_the_weights(name: str) -> None:
    assert tiny.golden(name).fingerprint == tiny.fingerprint(tiny.weights(tiny.EXPERTS[name])), (
        "tests/models/tiny.py has changed; run tools/make_golden.py"
    )


@pytest.mark.parametrize("name", tiny.EXPERTS)
def test_the_reference_agrees_with_transformers(name: str, folder: Path) -> None:
    golden = tiny.golden(name)
    found = Reference(written(folder, name), context=tiny.CONTEXT).logits(golden.prompt)
    np.testing.assert_allclose(found, golden.logits, atol=2e-4)


@pytest.mark.parametrize("name", tiny.EXPERTS)
def test_the_engine_equals_transformers(name: str, folder: Path) -> None:
    golden = tiny.golden(name)
    engine = open_engine(written(folder, name))
    assert nmse(engine.logits(golden.prompt), golden.logits) < 1e-9
    assert greedy(engine, golden.prompt, len(golden.ids)) == golden.ids


@pytest.mark.parametrize("dtype", ["F32", "Q8_0"])
@pytest.mark.parametrize("name", tiny.EXPERTS)
def test_phases_and_threads_agree_to_the_bit(name: str, dtype: str, folder: Path, draw: Draw) -> None:
    """Prompts, chunks of them, and single steps: which rows share a step decides nothing."""
    golden, path = tiny.golden(name), written(folder, name, dtype)
    ids = golden.prompt + golden.ids
    whole = open_engine(path).logits(ids)
    for chunk in draw((1, 3, 16, 23)):
        assert np.array_equal(open_engine(path, chunk=chunk).logits(ids), whole), f"chunk {chunk}"
    assert np.array_equal(open_engine(path, threads=1).logits(ids), whole)
    assert greedy(open_engine(path), ids[:5], 1) == [int(whole[4].argmax())]


@pytest.mark.table
@pytest.mark.parametrize("dtype", QUANTISED)
def test_every_weight_type_matches_float64(dtype: str, folder: Path) -> None:
    """Where activations are rounded to int8 near ties go to other experts: the median row tells."""
    path = written(folder, "qwen3moe_256", dtype)
    ids = tiny.golden("qwen3moe_256").prompt
    found, expected = open_engine(path).logits(ids), Reference(path).logits(ids)
    errors = [nmse(row, other) for row, other in zip(found, expected, strict=True)]
    assert np.median(errors) < 5e-3, np.sort(errors)
    equal = np.mean(found.argmax(axis=1) == expected.argmax(axis=1))
    assert equal > 0.8, equal


def fused(arrays: Arrays) -> Arrays:
    out: Arrays = {}
    for name, array in arrays.items():
        if "ffn_gate_exps" in name:
            up = arrays[name.replace("gate", "up")]
            out[name.replace("gate", "gate_up")] = np.concatenate([array, up], axis=1)
        elif "ffn_up_exps" not in name:
            out[name] = array
    return out


def one_by_one(arrays: Arrays) -> Arrays:
    out: Arrays = {}
    for name, array in arrays.items():
        if "_exps" in name:
            for e, own in enumerate(array):
                out[name.replace("_exps", f".{e}")] = own
        else:
            out[name] = array
    return out


@pytest.mark.parametrize("change", [fused, one_by_one])
@pytest.mark.parametrize("name", ["qwen2moe", "mixtral"])
def test_other_forms_of_gguf_files_give_the_same_logits(
    name: str, change: Callable[[Arrays], Arrays], folder: Path
) -> None:
    path = rewritten(folder / f"{name}-{change.__name__}.gguf", name, change)
    expected = open_engine(written(folder, name)).logits(tiny.golden(name).prompt)
    assert np.array_equal(open_engine(path).logits(tiny.golden(name).prompt), expected)


@pytest.mark.parametrize("name", [name for name in tiny.EXPERTS if name != "gpt_oss"])
def test_a_folder_equals_transformers(name: str, tmp_path: Path) -> None:
    golden = tiny.golden(name)
    engine = open_folder(folders.write(name, tmp_path))
    assert nmse(engine.logits(golden.prompt), golden.logits) < 1e-9
    assert greedy(engine, golden.prompt, len(golden.ids)) == golden.ids


def stacked(weights: tiny.Weights, form: str) -> Arrays:
    """The experts of each layer in one tensor, as Transformers 5 or MLX have them."""
    out: Arrays = {}
    for name, array in convert.stacked_experts(weights).items():
        place, found, _ = name.partition("_exps.weight")
        if not found:
            out[name] = array
        elif form == "mlx":
            stem, _, part = place.rpartition(".")
            out[f"{stem}.switch_mlp.{part}_proj.weight"] = array
        elif place.endswith("gate"):
            up = convert.stacked_experts(weights)[name.replace("gate_exps", "up_exps")]
            out[place.removesuffix("gate") + "experts.gate_up_proj"] = np.concatenate([array, up], axis=1)
        elif place.endswith("down"):
            out[place.removesuffix("down") + "experts.down_proj"] = array
    return out


@pytest.mark.parametrize("form", ["transformers", "mlx"])
@pytest.mark.parametrize("name", ["qwen2moe", "mixtral"])
def test_other_forms_of_folders_give_the_same_logits(name: str, form: str, tmp_path: Path) -> None:
    plain = folder_logits(folders.write(name, tmp_path / "plain"), name)
    path = folders.write(name, tmp_path / form, arrays=lambda weights: stacked(weights, form))
    assert np.array_equal(folder_logits(path, name), plain)


def blocks_of(path: Path, weights: tiny.Weights) -> dict[str, npt.NDArray[np.generic]]:
    """The tensors of a gpt-oss checkpoint, with the very codes of a GGUF file."""
    file = gguf.GGUFReader(str(path))
    found = {t.name: np.asarray(t.data) for t in file.tensors}
    out: dict[str, npt.NDArray[np.generic]] = {n: w for n, w in weights.items() if ".experts." not in n}
    for layer in range(3):
        place = f"model.layers.{layer}.mlp.experts."

        def exps(part: str, kind: str = "weight", layer: int = layer) -> npt.NDArray[np.generic]:
            return found[f"blk.{layer}.ffn_{part}_exps.{kind}"]

        both = np.stack([exps("gate"), exps("up")], axis=2)
        for name, raw in (("gate_up_proj", both), ("down_proj", exps("down"))):
            experts = raw.shape[0]
            blocks = raw.reshape(experts, -1, raw.shape[-1] // 17, 17)
            low, high = blocks[..., 1:] & 15, blocks[..., 1:] >> 4
            codes = np.concatenate([low, high], axis=-1)  # values 0 to 31
            out[f"{place}{name}_blocks"] = codes[..., ::2] | codes[..., 1::2] << 4
            out[f"{place}{name}_scales"] = np.ascontiguousarray(blocks[..., 0])
        biases = np.stack([exps("gate", "bias"), exps("up", "bias")], axis=2)
        out[f"{place}gate_up_proj_bias"] = biases.reshape(len(biases), -1)
        out[f"{place}down_proj_bias"] = exps("down", "bias")
    return out


def test_a_folder_of_mxfp4_equals_the_same_gguf_file(tmp_path: Path) -> None:
    """gpt-oss as it is published: gate and up by turns, pairs of codes in a byte."""
    row = tiny.EXPERTS["gpt_oss"]
    # All but the experts stay floats, as published.
    writer = gguf.GGUFWriter(str(tmp_path / "model.gguf"), row.arch)
    for key, value in convert.metadata(row).items():
        convert.add_value(writer, key, value)
    convert.add_tokenizer(writer, row.vocab_size)
    for name, array in convert.tensors(row, tiny.weights(row)).items():
        if name.endswith("_exps.weight"):
            raw = quant.encode(array.reshape(-1, array.shape[-1]), "MXFP4", seed=0)
            raw_type = gguf.GGMLQuantizationType.MXFP4
            writer.add_tensor(name, raw.reshape(*array.shape[:-1], -1), raw_dtype=raw_type)
        else:
            writer.add_tensor(name, array)
    convert.finish(writer)
    path = folders.write(
        "gpt_oss",
        tmp_path / "hf",
        change=lambda c: c | {"quantization_config": {"quant_method": "mxfp4"}},
        arrays=lambda weights: blocks_of(tmp_path / "model.gguf", weights),
    )
    expected = open_engine(tmp_path / "model.gguf").logits(tiny.golden("gpt_oss").prompt)
    assert np.array_equal(folder_logits(path, "gpt_oss"), expected)


def turned(weights: tiny.Weights) -> dict[str, npt.NDArray[np.generic]]:
    """The tensors of a gpt-oss checkpoint in floats: gate and up by turns, matrices on their sides."""
    out: dict[str, npt.NDArray[np.generic]] = {n: w for n, w in weights.items() if ".experts." not in n}
    for layer in range(3):
        place = f"model.layers.{layer}.mlp.experts."
        for kind, suffix in (("weight", ""), ("bias", "_bias")):
            gate, up, down = (
                np.stack([weights[f"{place}{e}.{part}_proj.{kind}"] for e in range(8)])
                for part in ("gate", "up", "down")
            )
            both = np.stack([gate, up], axis=2).reshape(8, -1, *gate.shape[2:])
            out[f"{place}gate_up_proj{suffix}"] = both if suffix else both.swapaxes(1, 2)
            out[f"{place}down_proj{suffix}"] = down if suffix else down.swapaxes(1, 2)
    return {name: np.ascontiguousarray(array) for name, array in out.items()}


def test_a_folder_of_gpt_oss_in_floats_equals_transformers(tmp_path: Path) -> None:
    golden = tiny.golden("gpt_oss")
    engine = open_folder(folders.write("gpt_oss", tmp_path, arrays=turned))
    assert nmse(engine.logits(golden.prompt), golden.logits) < 1e-9


def as_ollama(arrays: Arrays) -> Arrays:
    """gpt-oss by the names of Ollama's converter, gate and up by turns in one tensor."""
    out: Arrays = {}
    for name, array in arrays.items():
        if "ffn_up_exps" in name:
            continue
        if "ffn_gate_exps" in name:
            both = np.stack([array, arrays[name.replace("gate", "up")]], axis=2)
            array = both.reshape(len(array), -1, *array.shape[2:])
            name = name.replace("gate", "gate_up")
        for usual, own in (
            ("attn_output", "attn_out"),
            ("attn_sinks.weight", "attn_sinks"),
            ("post_attention_norm", "ffn_norm"),
        ):
            name = name.replace(usual, own)
        out[name] = array
    return out


def ollama_files(folder: Path, paired: bool) -> tuple[Path, Path]:
    """gpt-oss as llama.cpp has it and as Ollama has; `paired`: with Ollama's type of its own for MXFP4."""
    row = tiny.EXPERTS["gpt_oss"]
    paths = {"gpt-oss": folder / "usual.gguf", "gptoss": folder / "ollama.gguf"}
    usual = convert.tensors(row, tiny.weights(row))
    for arch, path in paths.items():
        writer = gguf.GGUFWriter(str(path), arch)
        for key, value in convert.metadata(row).items():
            if arch == "gpt-oss" or "scaling.type" not in key:
                convert.add_value(writer, key.replace("gpt-oss", arch), value)
        convert.add_tokenizer(writer, row.vocab_size)
        arrays = usual if arch == "gpt-oss" else as_ollama(usual)
        for name, array in arrays.items():
            if not paired or not name.endswith("_exps.weight"):
                writer.add_tensor(name, np.ascontiguousarray(array))
                continue
            rows = array.reshape(-1, array.shape[-1])
            raw = gguf.quants.quantize(rows, gguf.GGMLQuantizationType.MXFP4)
            blocks = raw.reshape(*array.shape[:-1], -1)
            if arch == "gptoss":
                blocks = pairs(blocks)
            writer.add_tensor(name, blocks, raw_dtype=gguf.GGMLQuantizationType.MXFP4)
        convert.finish(writer)
    if paired:
        with_type_four(paths["gptoss"])
    return paths["gpt-oss"], paths["gptoss"]


@pytest.mark.parametrize("paired", [False, True])
def test_a_file_of_ollama_is_the_same_gpt_oss(paired: bool, tmp_path: Path) -> None:
    """Ollama has another name of the architecture, no kind of scaling, and a type of its own for MXFP4."""
    usual, ollama = ollama_files(tmp_path, paired)
    ids = tiny.golden("gpt_oss").prompt
    assert np.array_equal(open_engine(ollama).logits(ids), open_engine(usual).logits(ids))


def pairs(raw: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Blocks of MXFP4 with two neighbours in each byte."""
    blocks = raw.reshape(-1, 17)
    codes = np.concatenate([blocks[:, 1:] & 15, blocks[:, 1:] >> 4], axis=1)  # values 0 to 31
    both = codes[:, ::2] | codes[:, 1::2] << 4
    return np.concatenate([blocks[:, :1], both], axis=1).reshape(raw.shape)


def with_type_four(path: Path) -> None:
    """Give the tensors of MXFP4 the number that Ollama has for the type."""
    data = path.read_bytes()
    for tensor in gguf.GGUFReader(str(path)).tensors:
        if tensor.tensor_type == gguf.GGMLQuantizationType.MXFP4:
            field = tensor.field
            at = int(field.offset) + sum(part.nbytes for part in field.parts[:4])
            assert int.from_bytes(data[at : at + 4], "little") == 39
            data = data[:at] + (4).to_bytes(4, "little") + data[at + 4 :]
    path.write_bytes(data)


def test_layers_without_experts_are_those_that_the_configuration_names(tmp_path: Path) -> None:
    def dense(weights: tiny.Weights) -> tiny.Weights:
        rng = np.random.RandomState(0)
        kept = {name: w for name, w in weights.items() if not name.startswith("model.layers.1.mlp.")}
        for part, shape in (("gate", (160, 96)), ("up", (160, 96)), ("down", (96, 160))):
            kept[f"model.layers.1.mlp.{part}_proj.weight"] = rng.randn(*shape).astype(np.float32)
        return kept

    path = folders.write("qwen3moe", tmp_path, change=lambda c: c | {"mlp_only_layers": [1]}, arrays=dense)
    config = open_folder_config(path)
    assert [type(block.mixer).__name__ for block in config.blocks][1::2] == [
        "Experts",
        "FeedForward",
        "Experts",
    ]
    assert np.isfinite(folder_logits(path, "qwen3moe")).all()


def open_folder_config(path: Path):  # type: ignore[no-untyped-def]
    from akunu.files.folder import ModelFolder

    return ModelFolder(path).spec(tiny.CONTEXT).config


def same(arrays: Arrays) -> Arrays:
    return arrays


@pytest.mark.parametrize(
    ("keys", "gating", "renormalise", "scale"),
    [
        ({}, "softmax", True, 1.0),
        ({"expert_gating_func": 2, "expert_weights_norm": False}, "sigmoid", False, 1.0),
        ({"expert_gating_func": 3, "expert_weights_scale": 2.5}, "softmax_chosen", True, 2.5),
        ({"expert_gating_func": 4, "expert_weights_scale": 0.0}, "sqrt_softplus", True, 1.0),
    ],
)
def test_the_rule_of_the_router_may_be_in_the_file(
    keys: dict[str, object], gating: str, renormalise: bool, scale: float, tmp_path: Path
) -> None:
    path = rewritten(tmp_path / "model.gguf", "qwen3moe", same, **keys)
    (experts, *_) = resolve(_core.GgufFile(str(path))).config.mixers(Experts)
    assert (experts.router.gating, experts.router.renormalise) == (gating, renormalise)
    assert experts.router.scale == scale
    ids = tiny.golden("qwen3moe").prompt
    assert nmse(open_engine(path).logits(ids), Reference(path).logits(ids)) < 1e-9


@pytest.mark.parametrize(
    ("keys", "error", "message"),
    [
        ({"expert_gating_func": 9}, UnsupportedError, "expert_gating_func: found 9; supported are 1 to 4"),
        ({"expert_used_count": 9}, ModelFileError, "expert_used_count: found 9, expected 1 to the 8 experts"),
        ({"expert_used_count": None}, ModelFileError, "expert_used_count is missing"),
        (
            {"expert_count": 7},
            ModelFileError,
            r"ffn_gate_inp.weight: found shape \(8, 96\), expected \(7, 96\)",
        ),
        ({"expert_group_count": 4}, ModelFileError, "expert_group_used_count: found 0, expected 1 to the 4"),
        ({"expert_shared_count": 1}, UnsupportedError, "expert_shared_count: found 1"),
        ({"leading_dense_block_count": 1}, ModelFileError, r"blk\.0\.ffn_gate\.weight is missing; 1 layers"),
        ({"expert_count": 0}, ModelFileError, r"blk\.0\.ffn_gate\.weight is missing"),
    ],
)
def test_what_is_half_known_is_refused_by_its_name(
    keys: dict[str, object], error: type[Exception], message: str, tmp_path: Path
) -> None:
    path = rewritten(tmp_path / "model.gguf", "qwen3moe", same, **keys)
    with pytest.raises(error, match=message):
        resolve(_core.GgufFile(str(path)))


def test_a_model_of_another_architecture_may_have_no_experts(tmp_path: Path) -> None:
    writer = tiny.write("qwen3", "F32", tmp_path / "plain.gguf")
    assert not resolve(_core.GgufFile(str(writer.path))).config.mixers(Experts)
