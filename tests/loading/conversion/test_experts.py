"""Models with experts and delta nets become other files, which compute what Transformers does."""

from __future__ import annotations

import json
import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import akunu
from akunu import ImportanceMatrix, _core
from akunu.base.errors import UnsupportedError
from akunu.files.describe.filetypes import tensor_dtype
from akunu.files.describe.gguf_config import resolve
from akunu.files.importance import from_squares
from akunu.loading.conversion.planned import head_order
from models import families, folders, qwen35, reference, test_nvfp4, tiny
from models.test_engine import nmse, open_engine
from models.test_experts import blocks_of, ollama_files, turned
from models.test_experts import written as written_experts
from models.test_families import open_folder as open_family_folder
from models.test_families import open_gguf as open_family_gguf

NAMES = [*tiny.EXPERTS, *qwen35.ALL, *families.ALL]
TO_FOLDER = [name for name in NAMES if name not in ("qwen3vlmoe",)]
"""Transformers has no class of the text model of a Qwen 3 VL alone."""
WITHOUT_EXPERTS = [
    *qwen35.ALL,
    *(name for name, row in families.ALL.items() if not row.keys.get("expert_count")),
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("experts")


@pytest.fixture(autouse=True)
def _of_parts_left_out() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "tensors of this .* model are left out", RuntimeWarning)
        yield


def folder_of(name: str, place: Path) -> Path:
    """The model as Transformers has written it."""
    path = place / name
    if path.exists():
        return path
    if name in qwen35.ALL:
        return qwen35.write_folder(qwen35.ALL[name], path)
    if name in families.ALL:
        return families.write_folder(families.ALL[name], path)
    return folders.write(name, path, arrays=turned if name == "gpt_oss" else None)


def file_of(name: str, place: Path) -> Path:
    """The model as llama.cpp's converter has written it."""
    if name in tiny.EXPERTS:
        return written_experts(place, name)
    path = place / f"{name}.gguf"
    if path.exists():
        return path
    if name in qwen35.ALL:
        return qwen35.write_gguf(qwen35.ALL[name], path)
    return families.write_gguf(families.ALL[name], path, "F32")


def logits(path: Path, name: str) -> np.ndarray:
    is_file = path.suffix == ".gguf"
    if name in families.ALL:
        engine = open_family_gguf(path) if is_file else open_family_folder(path)
    else:
        from models.test_folder import open_folder

        engine = open_engine(path) if is_file else open_folder(path)
    return engine.logits(tiny.golden(name).prompt)


def both_values(one: Path, other: Path) -> Iterator[tuple[str, tuple[int, ...], np.ndarray, np.ndarray]]:
    """The values of each tensor in two files of the same tensors."""
    files = [_core.GgufFile(str(path)) for path in (one, other)]
    named = [{tensor.name: tensor for tensor in file.tensors} for file in files]
    assert named[0].keys() == named[1].keys()
    for name in named[0]:
        first, second = (
            _core.dequantize(each[name].dtype, file.tensor_bytes(name), int(np.prod(each[name].shape)))
            for file, each in zip(files, named, strict=True)
        )
        yield name, tuple(named[0][name].shape), first, second


def same_tensors(ours: Path, theirs: Path) -> None:
    for name, _, found, expected in both_values(ours, theirs):
        np.testing.assert_allclose(found, expected, rtol=1e-6, err_msg=name)


@pytest.mark.table
@pytest.mark.parametrize("name", NAMES)
def test_a_folder_becomes_the_file_of_the_published_converter(name: str, place: Path, tmp_path: Path) -> None:
    path = akunu.convert(folder_of(name, place), tmp_path / "x.gguf", "f32", progress=False)
    assert nmse(logits(path, name), tiny.golden(name).logits) < 1e-8
    same_tensors(path, file_of(name, place))


@pytest.mark.table
@pytest.mark.parametrize("name", TO_FOLDER)
def test_a_file_becomes_the_folder_of_transformers(name: str, place: Path, tmp_path: Path) -> None:
    path = akunu.convert(file_of(name, place), tmp_path / "out", "mlx-f32", progress=False)
    assert nmse(logits(path, name), tiny.golden(name).logits) < 1e-8
    again = akunu.convert(path, tmp_path / "again.gguf", "f32", progress=False)
    same_tensors(again, file_of(name, place))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.long, pytest.mark.table]) if name in families.ALL else name
        for name in TO_FOLDER
    ],
)
def test_mlx_has_the_experts_of_a_part_in_one_tensor(name: str, place: Path, tmp_path: Path) -> None:
    of_file = akunu.convert(file_of(name, place), tmp_path / "file", "mlx-8bit", progress=False)
    of_folder = akunu.convert(folder_of(name, place), tmp_path / "folder", "mlx-8bit", progress=False)
    (one, other) = (_core.SafetensorsFiles([str(p / "model.safetensors")]) for p in (of_file, of_folder))
    shapes = {tensor.name: (tensor.dtype, tuple(tensor.shape)) for tensor in one.tensors}
    assert {name.rpartition("layers.")[2] for name in shapes} == {
        tensor.name.rpartition("layers.")[2] for tensor in other.tensors
    }
    gates = [
        name
        for name in shapes
        if name.endswith(
            (
                ".switch_mlp.up_proj.weight",
                ".switch_mlp.fc1.weight",
                ".switch_glu.up_proj.weight",
                ".experts.up_proj.weight",
            )
        )
    ]
    assert bool(gates) is (name not in WITHOUT_EXPERTS)
    assert all(len(shapes[gate][1]) == 3 for gate in gates)
    found, expected = logits(of_file, name), tiny.golden(name).logits
    errors = [nmse(row, other) for row, other in zip(found, expected, strict=True)]
    assert np.median(errors) < 0.02, np.sort(errors)  # near ties of routers go to other experts
    np.testing.assert_allclose(logits(of_folder, name), found, atol=0.5)


@pytest.mark.parametrize("kind", ["q8_0", "q4_k_m", "iq4_xs"])
@pytest.mark.parametrize("name", ["qwen3moe_256", "gpt_oss", "qwen35moe", "qwen35_odd"])
def test_a_file_gets_other_types(name: str, kind: str, place: Path, tmp_path: Path) -> None:
    path = akunu.convert(file_of(name, place), tmp_path / "x.gguf", kind, progress=False)
    types = {tensor.name: tensor.dtype for tensor in _core.GgufFile(str(path)).tensors}
    for tensor in types:
        if tensor.endswith(("ffn_gate_inp.weight", "_norm.weight", ".bias", "ssm_conv1d.weight", "ssm_a")):
            assert types[tensor] == "f32", tensor
        elif "_exps" in tensor:
            assert types[tensor] not in ("f32", "f16"), tensor
    for tensor, shape, found, expected in both_values(path, file_of(name, place)):
        assert nmse(found, expected) < {"q8_0": 1e-4}.get(kind, 0.02), (tensor, shape)
    assert np.isfinite(logits(path, name)).all()


def test_types_of_the_mix_are_those_of_llama_quantize() -> None:
    def kind(file_type: str, tensor: str, n_experts: int) -> str:
        return tensor_dtype(
            file_type, tensor, layer=1, n_layers=8, cols=2048, gqa=4, tied=False, n_experts=n_experts
        )

    assert kind("mxfp4", "ffn_up_exps", 32) == "mxfp4"
    assert kind("mxfp4", "attn_q", 32) == "q8_0"
    assert kind("q4_k_m", "attn_v", 8) == kind("q4_k_m", "attn_k", 8) == "q8_0"
    assert kind("q4_k_m", "attn_output", 8) == "q5_k"
    assert kind("q4_k_m", "attn_output", 128) == "q4_k"
    assert kind("q4_k_m", "ffn_down_exps", 128) == kind("q4_k_m", "ffn_down", 0)


def test_experts_may_have_a_type_of_their_own(place: Path, tmp_path: Path) -> None:
    path = akunu.convert(
        file_of("qwen3moe_256", place),
        tmp_path / "x.gguf",
        "q8_0",
        tensor_types={"_exps": "q4_0"},
        progress=False,
    )
    types = {tensor.name: tensor.dtype for tensor in _core.GgufFile(str(path)).tensors}
    assert {types[name] for name in types if "_exps" in name} == {"q4_0"}
    assert types["blk.0.attn_q.weight"] == "q8_0"


def test_each_expert_is_weighed_by_its_own_inputs(place: Path, tmp_path: Path) -> None:
    """`llama-imatrix` writes the means of one expert behind those of the other."""
    source, name = file_of("qwen3moe_256", place), "blk.1.ffn_down_exps.weight"
    rng = np.random.RandomState(3)
    means = rng.gamma(0.3, 1, (6, 256)).astype(np.float32)

    def made(values: np.ndarray, out: str) -> np.ndarray:
        matrix = ImportanceMatrix({name: values.reshape(-1)}, {name: 99})
        path = akunu.convert(source, tmp_path / out, "q3_k_m", imatrix=matrix, progress=False)
        return np.asarray(_core.GgufFile(str(path)).tensor_bytes(name)).reshape(6, -1)

    all_experts = made(means, "all.gguf")
    for expert in (0, 4):
        alone = made(means[expert], f"{expert}.gguf")
        assert np.array_equal(alone[expert], all_experts[expert])
        assert not np.array_equal(alone[expert - 1], all_experts[expert - 1])


@pytest.mark.parametrize("name", ["qwen2moe", "mixtral", "gpt_oss"])
def test_inputs_of_each_expert_are_measured(
    name: str, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`llama-imatrix` sums over the tokens that chose the expert, and counts them; so does Akunu."""
    path = file_of(name, place)
    ids = np.asarray(tiny.golden(name).prompt, np.uint32)
    texts = [ids[:9], ids[9:]]
    squares = open_engine(path).input_squares(texts, lambda _: None)
    config = resolve(_core.GgufFile(str(path))).config
    measured = from_squares(squares, config, len(ids), window=512, texts=("ids",))

    sums: dict[tuple[str, int], Any] = defaultdict(float)
    counts: dict[tuple[str, int], int] = defaultdict(int)
    project = reference.project_expert

    def recorded(layer: Any, part: str, count: int, e: int, x: Any) -> Any:
        key = f"{layer._prefix}{part}".replace("layers", "blk"), e
        sums[key] += x**2
        counts[key] += 1
        return project(layer, part, count, e, x)

    monkeypatch.setattr(reference, "project_expert", recorded)
    oracle = reference.Reference(path, context=tiny.CONTEXT)
    for text in texts:
        oracle.logits(text.tolist())
    measured.write(tmp_path / "m.gguf")
    for found in (measured, ImportanceMatrix.read(tmp_path / "m.gguf")):
        for part in ("gate", "up", "down"):
            tensor = f"blk.1.ffn_{part}_exps.weight"
            counted = found.expert_tokens[tensor]
            for e, means in enumerate(found.means[tensor].reshape(len(counted), -1)):
                key = (f"blk.1.experts_{part}", e)
                assert counted[e] == counts[key]
                expected = sums[key] / counts[key] if counts[key] else np.ones_like(means)
                np.testing.assert_allclose(means, expected, rtol=1e-3)
    assert min(min(n) for n in measured.expert_tokens.values()) < max(measured.tokens.values())


def test_codes_of_mxfp4_stay_what_they_are(tmp_path: Path) -> None:
    """gpt-oss as it is published and as llama.cpp has it hold the same codes in other orders."""
    name = "gpt_oss"
    theirs = tiny.write(name, "MXFP4", tmp_path / "theirs.gguf").path
    plain = {"quantization_config": {"quant_method": "mxfp4"}}
    folder = folders.write(
        name, tmp_path / "hf", change=lambda c: c | plain, arrays=lambda weights: blocks_of(theirs, weights)
    )
    ours = akunu.convert(folder, tmp_path / "ours.gguf", "mxfp4", progress=False)
    files = [_core.GgufFile(str(path)) for path in (ours, theirs)]
    for tensor in files[1].tensors:
        if tensor.name.endswith("_exps.weight"):
            found, expected = (
                _core.dequantize("mxfp4", file.tensor_bytes(tensor.name), int(np.prod(tensor.shape)))
                for file in files
            )
            assert np.array_equal(found, expected), tensor.name
    floats = akunu.convert(folder, tmp_path / "floats", "mlx-bf16", progress=False)
    config = json.loads((floats / "config.json").read_text())
    assert "quantization_config" not in config
    assert nmse(logits(floats, name), logits(folder, name)) < 0.01  # activations are rounded, or not


@pytest.mark.parametrize(
    ("name", "lead"),
    [
        ("lfm2_moe", "num_dense_layers"),
        ("ernie4_5_moe", "moe_layer_start_index"),
        ("deepseek_v3", "first_k_dense_replace"),
    ],
)
def test_leading_layers_without_experts_may_be_all(name: str, lead: str, tmp_path: Path) -> None:
    family = families.ALL[name]
    config, shapes = families.saved(family)
    n_layers = config["num_hidden_layers"]
    part = ".feed_forward." if name == "lfm2_moe" else ".mlp."
    kept = {tensor: shape for tensor, shape in shapes.items() if part not in tensor}
    for tensor, shape in shapes.items():
        if part in tensor and ".layers.0." in tensor:
            kept |= {tensor.replace(".0.", f".{n}."): shape for n in range(n_layers)}
    source = families.write_folder(
        family, tmp_path / "source", lambda _: families.made(family, kept), **{lead: n_layers}
    )
    expected = logits(source, name)
    file = akunu.convert(source, tmp_path / "x.gguf", "f32", progress=False)
    back = akunu.convert(file, tmp_path / "back", "mlx-f32", progress=False)
    for path in (file, back):
        assert nmse(logits(path, name), expected) < 1e-9


@pytest.mark.parametrize(("paired", "kind"), [(False, "f32"), (True, "f32"), (True, "mxfp4")])
def test_a_file_of_ollama_gets_other_types(paired: bool, kind: str, tmp_path: Path) -> None:
    _, ollama = ollama_files(tmp_path, paired)
    made = akunu.convert(ollama, tmp_path / "x.gguf", kind, progress=False)
    assert nmse(logits(made, "gpt_oss"), logits(ollama, "gpt_oss")) < 0.01  # activations are rounded, or not


def test_a_ramp_without_whole_bounds_stays_what_it_is(place: Path, tmp_path: Path) -> None:
    """Published gpt-oss has it; other readers do not know its key, and round the bounds."""

    def exact(config: dict[str, object]) -> dict[str, object]:
        rope = config["rope_parameters"]
        assert isinstance(rope, dict)
        return config | {"rope_parameters": rope | {"truncate": False}}

    folder = folders.write("gpt_oss", tmp_path / "hf", change=exact, arrays=turned)
    path = akunu.convert(folder, tmp_path / "x.gguf", "f32", progress=False)
    same_tensors(path, file_of("gpt_oss", place))
    assert _core.GgufFile(str(path)).metadata["gpt-oss.rope.scaling.yarn_truncate"] is False
    back = akunu.convert(path, tmp_path / "back", "mlx-f32", progress=False)
    assert json.loads((back / "config.json").read_text())["rope_scaling"]["truncate"] is False
    exact_logits = logits(folder, "gpt_oss")
    assert nmse(logits(path, "gpt_oss"), exact_logits) < 1e-9
    assert nmse(logits(back, "gpt_oss"), exact_logits) < 1e-9
    assert nmse(logits(file_of("gpt_oss", place), "gpt_oss"), exact_logits) > 1e-8


@pytest.mark.parametrize("scaled", [False, True])
def test_scales_of_nvfp4_are_multiplied_in(scaled: bool, tmp_path: Path) -> None:
    path = test_nvfp4.write_gguf(tmp_path / "q.gguf", False, scaled)
    prompt = tiny.golden("llama_256").prompt
    expected = open_engine(test_nvfp4.write_gguf(tmp_path / "f.gguf", True, scaled)).logits(prompt)
    made = akunu.convert(path, tmp_path / "x.gguf", "f32", progress=False)
    assert nmse(open_engine(made).logits(prompt), expected) < 1e-9
    assert not any(t.name.endswith(".scale") for t in _core.GgufFile(str(made)).tensors)


@pytest.mark.parametrize("style", ["whole", "mlx"])
def test_other_parts_of_a_checkpoint_stay_in_its_folder_and_not_in_a_file(style: str, tmp_path: Path) -> None:
    name, row = "qwen35", qwen35.ALL["qwen35"]
    source = qwen35.write_folder(row, tmp_path / style, style=style)
    file = akunu.convert(source, tmp_path / "x.gguf", "f32", progress=False)
    assert not any("mtp" in tensor.name for tensor in _core.GgufFile(str(file)).tensors)
    assert nmse(logits(file, name), tiny.golden(name).logits) < 1e-8
    made = akunu.convert(source, tmp_path / "out", "mlx-8bit", progress=False)
    assert np.median(nmse(logits(made, name), tiny.golden(name).logits)) < 0.01
    names = {t.name for t in _core.SafetensorsFiles([str(made / "model.safetensors")]).tensors}
    assert ("mtp.fc.weight" in names) is (style == "whole")


def test_orders_of_value_heads_undo_each_other() -> None:
    there, back = (head_order(6, 2, grouped=grouped) for grouped in (True, False))
    assert there.tolist() == [0, 2, 4, 1, 3, 5]
    assert np.array_equal(np.arange(6)[there][back], np.arange(6))


def test_layers_of_both_kinds_keep_their_places(tmp_path: Path) -> None:
    """The first layers have a plain feed-forward (GLM 4.5), or one between does."""
    file = families.write_gguf(families.ALL["glm4moe"], tmp_path / "x.gguf", "F32")
    folder = akunu.convert(file, tmp_path / "out", "mlx-f32", progress=False)
    assert json.loads((folder / "config.json").read_text())["first_k_dense_replace"] == 1


def test_every_second_layer_of_ernie_has_experts_again(tmp_path: Path) -> None:
    family = families.ALL["ernie4_5_moe"]
    dense = {part: (160, 96) if part != "down" else (96, 160) for part in ("gate", "up", "down")}

    def change(arrays: families.Arrays) -> families.Arrays:
        rng = np.random.RandomState(2)
        kept = {n: a for n, a in arrays.items() if "layers.2.mlp" not in n}
        return kept | {
            f"model.layers.2.mlp.{part}_proj.weight": rng.randn(*shape).astype(np.float32) / 10
            for part, shape in dense.items()
        }

    source = families.write_folder(family, tmp_path / "in", change, moe_layer_interval=2)
    file = akunu.convert(source, tmp_path / "x.gguf", "f32", progress=False)
    again = akunu.convert(file, tmp_path / "out", "mlx-f32", progress=False)
    config = json.loads((again / "config.json").read_text())
    assert (config["moe_layer_start_index"], config["moe_layer_interval"]) == (1, 2)
    prompt = tiny.golden("ernie4_5_moe").prompt
    expected = open_family_folder(source).logits(prompt)
    assert nmse(open_family_gguf(file).logits(prompt), expected) < 1e-9
    assert nmse(open_family_folder(again).logits(prompt), expected) < 1e-9


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        (
            "deepseek_v3",
            {"rope_interleave": False},
            "rope_interleave: found false, which GGUF has no key for",
        ),
        ("qwen3moe", {}, r"experts of layers \[0, 2\]: GGUF has keys for experts of all layers"),
    ],
)
def test_what_a_gguf_file_cannot_say_is_refused(
    name: str, settings: dict[str, object], message: str, tmp_path: Path
) -> None:
    if name in families.ALL:
        source = families.write_folder(families.ALL[name], tmp_path / "in", **settings)
    else:
        source = folders.write(name, tmp_path / "in", change=dense_in_the_middle, arrays=plain_in_the_middle)
    with pytest.raises(UnsupportedError, match=message):
        akunu.convert(source, tmp_path / "x.gguf", "f32", progress=False)


def dense_in_the_middle(config: dict[str, object]) -> dict[str, object]:
    return config | {"mlp_only_layers": [1]}


def plain_in_the_middle(weights: tiny.Weights) -> tiny.Weights:
    config = folders.config("qwen3moe")
    dim, inner = config["hidden_size"], config["intermediate_size"]
    kept = {name: array for name, array in weights.items() if "layers.1.mlp" not in name}
    shapes = {"gate": (inner, dim), "up": (inner, dim), "down": (dim, inner)}
    return kept | {
        f"model.layers.1.mlp.{part}_proj.weight": np.ones(shape, np.float32) for part, shape in shapes.items()
    }


def test_weights_of_the_chosen_experts_stay_unnormalised(tmp_path: Path) -> None:
    """Which is not what a bias that chooses stands for where a file says nothing."""
    source = families.write_folder(families.ALL["glm4_moe_lite"], tmp_path / "in", norm_topk_prob=False)
    file = akunu.convert(source, tmp_path / "x.gguf", "f32", progress=False)
    prompt = tiny.golden("glm4_moe_lite").prompt
    assert nmse(open_family_gguf(file).logits(prompt), open_family_folder(source).logits(prompt)) < 1e-9
