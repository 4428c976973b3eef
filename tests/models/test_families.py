"""Families with experts from every kind of file, against Transformers, in every phase."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import akunu
from akunu import _core
from akunu.base.errors import ModelFileError, UnsupportedError
from akunu.files.describe.blocks import DeltaNet, Experts, FeedForward
from akunu.files.describe.gguf_config import resolve
from akunu.files.describe.hf_config import resolve_hf
from order import Draw

from . import families, folders, tiny
from .phases import agree
from .test_engine import greedy, nmse
from .test_experts import turned

DEVICE = os.environ.get("AKUNU_TEST_DEVICE", "cpu")  # tests/metal sets another

CONTEXT = 128
NAMES = list(families.ALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("families")


def open_gguf(path: Path, **options: object) -> _core.Engine:
    file = _core.GgufFile(str(path))
    settings = {"device": DEVICE, "context": CONTEXT, "kv_dtype": "f32", "threads": 2, **options}
    return _core.Engine(file, resolve(file, context=CONTEXT, drafts=None), **settings)


def open_folder(path: Path) -> _core.Engine:
    files = _core.SafetensorsFiles([str(path / "model.safetensors")])
    config = json.loads((path / "config.json").read_text())
    spec = resolve_hf(config, files.tensors, context=CONTEXT, drafts=None)
    return _core.Engine(files, spec, context=CONTEXT, kv_dtype="f32", threads=2)


def written(folder: Path, name: str, dtype: str = "F32") -> Path:
    path = folder / f"{name}-{dtype}.gguf"
    return path if path.exists() else families.write_gguf(families.ALL[name], path, dtype)


@pytest.mark.parametrize("name", NAMES)
def test_golden_data_belongs_to_the_weights(name: str) -> None:
    assert tiny.golden(name).fingerprint == tiny.fingerprint(families.weights(families.ALL[name])), (
        "tests/models/families.py has changed; run tools/make_golden.py"
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_gguf_file_computes_what_transformers_does(name: str, folder: Path) -> None:
    golden, engine = tiny.golden(name), open_gguf(written(folder, name))
    assert nmse(engine.logits(golden.prompt), golden.logits) < 2e-8  # of the Metal device, too
    assert greedy(engine, golden.prompt, len(golden.ids)) == golden.ids


@pytest.mark.parametrize("style", ["transformers", "mlx"])
@pytest.mark.parametrize("name", NAMES)
def test_a_folder_computes_what_transformers_does(name: str, style: str, tmp_path: Path) -> None:
    family, golden = families.ALL[name], tiny.golden(name)
    change = (lambda arrays: families.mlx(family, arrays)) if style == "mlx" else None
    engine = open_folder(families.write_folder(family, tmp_path, change))
    assert nmse(engine.logits(golden.prompt), golden.logits) < 1e-8


@pytest.mark.parametrize("name", list(families.IN_FOLDERS))
def test_biases_of_the_head_and_of_shared_experts_are_added(name: str, tmp_path: Path) -> None:
    """Ernie's `use_bias` and DeepSeek V2's `mlp_bias`; a folder that is made of one has them, too."""
    family, golden = families.IN_FOLDERS[name], tiny.golden(name)
    assert golden.fingerprint == tiny.fingerprint(families.weights(family))
    path = families.write_folder(family, tmp_path / "folder")
    assert nmse(open_folder(path).logits(golden.prompt), golden.logits) < 1e-10
    made = akunu.convert(path, tmp_path / "made", "mlx-f32", progress=False)
    engine = open_folder(made)
    assert nmse(engine.logits(golden.prompt), golden.logits) < 1e-10
    assert greedy(engine, golden.prompt, len(golden.ids)) == golden.ids
    with pytest.raises(UnsupportedError, match=r"llama\.cpp knows no such tensor"):
        akunu.convert(path, tmp_path / "model.gguf", "f32", progress=False)


@pytest.mark.parametrize(
    ("name", "key", "bias"),
    [
        ("ernie4_5_moe_biases", "use_bias", "lm_head"),
        ("deepseek_v2_biases", "mlp_bias", "model.layers.1.mlp.shared_experts.up_proj"),
    ],
)
def test_biases_that_the_configuration_does_not_ask_for_are_refused(
    name: str, key: str, bias: str, tmp_path: Path
) -> None:
    """Transformers leaves them out."""

    def one(arrays: families.Arrays) -> families.Arrays:
        return {n: a for n, a in arrays.items() if n == f"{bias}.bias" or not n.endswith(".bias")}

    settings = {"attention_bias": False, key: False}
    path = families.write_folder(families.IN_FOLDERS[name], tmp_path, one, **settings)
    with pytest.raises(ModelFileError, match=rf"{bias}\.bias: by config\.json .* set {key} to true"):
        open_folder(path)


@pytest.mark.parametrize("dtype", ["F32", "Q8_0"])
@pytest.mark.parametrize("name", NAMES)
def test_phases_agree_to_the_bit(name: str, dtype: str, folder: Path, draw: Draw) -> None:
    """Prompts, chunks of them, and single steps: which rows share a step decides nothing."""
    golden, path = tiny.golden(name), written(folder, name, dtype)
    ids = golden.prompt + golden.ids
    whole = open_gguf(path).logits(ids)
    for chunk in draw((1, 3, 16)):
        assert agree(open_gguf(path, chunk=chunk).logits(ids), whole, dtype), f"chunk {chunk}"
    found = greedy(open_gguf(path), ids[:20], 20)
    again = open_gguf(path).logits([*ids[:20], *found])
    assert again[19:-1].argmax(1).tolist() == found


@pytest.mark.parametrize("name", NAMES)
def test_rounded_weights_agree_but_for_near_ties_of_the_router(name: str, folder: Path) -> None:
    golden = tiny.golden(name)
    found = open_gguf(written(folder, name, "Q8_0")).logits(golden.prompt)
    errors = [nmse(row, other) for row, other in zip(found, golden.logits, strict=True)]
    assert np.median(errors) < 0.02
    assert np.mean(found.argmax(axis=1) == golden.logits.argmax(axis=1)) > 0.75


def test_experts_may_lie_on_their_sides(tmp_path: Path) -> None:
    """As published checkpoints of Qwen 3 VL have them, where Transformers 5 writes them upright."""
    family, golden = families.ALL["qwen3vlmoe"], tiny.golden("qwen3vlmoe")

    def on_sides(arrays: families.Arrays) -> families.Arrays:
        return {n: a.swapaxes(1, 2) if ".experts." in n else a for n, a in arrays.items()}

    engine = open_folder(families.write_folder(family, tmp_path, on_sides))
    assert nmse(engine.logits(golden.prompt), golden.logits) < 1e-8


def test_the_layers_are_what_the_files_say() -> None:
    def mixers(name: str, **settings: object) -> list[str]:
        family = families.ALL[name]
        found = families.saved(family)

        class Tensor:
            dtype = "f32"

            def __init__(self, name: str, shape: list[int]) -> None:
                self.name, self.shape = name, tuple(shape)

        dense = [] if name != "qwen3next" else [("gate", [160, 96]), ("up", [160, 96]), ("down", [96, 160])]
        tensors = {n: s for n, s in found[1].items() if not dense or "layers.1.mlp" not in n}
        tensors |= {f"model.layers.1.mlp.{part}_proj.weight": shape for part, shape in dense}
        config = resolve_hf(
            found[0] | settings, [Tensor(n, s) for n, s in tensors.items()], context=CONTEXT
        ).config
        return [type(block.mixer).__name__ for block in config.blocks]

    assert mixers("glm4moe") == ["Attention", "FeedForward", *["Attention", "Experts"] * 2]
    net = [DeltaNet.__name__, Experts.__name__]
    dense = [DeltaNet.__name__, FeedForward.__name__]
    assert mixers("qwen3next", mlp_only_layers=[1]) == [*net, *dense, *net, "Attention", "Experts"]


def test_value_heads_are_paired_with_key_heads_as_each_kind_of_file_has_them(folder: Path) -> None:
    """A wrong pair still makes an output."""
    for name, grouped in (("qwen35moe", False), ("qwen3next", True)):
        file = _core.GgufFile(str(written(folder, name)))
        spec = resolve(file, context=CONTEXT)
        assert {net.grouped for net in spec.config.mixers(DeltaNet)} == {grouped}
        for net in spec.config.mixers(DeltaNet):
            object.__setattr__(net, "grouped", not grouped)
        engine = _core.Engine(file, spec, context=CONTEXT, kv_dtype="f32", threads=2)
        golden = tiny.golden(name)
        assert nmse(engine.logits(golden.prompt), golden.logits) > 1e-2


def older(arrays: families.Arrays) -> families.Arrays:
    """The projections of Qwen 3 Next's delta nets in one tensor, a key head behind the other."""
    out: families.Arrays = {}
    for name, array in arrays.items():
        layer, _, part = name.partition(".attn_qkv.")
        if part and f"{layer}.attn_gate.weight" in arrays:
            q, k, v = np.split(array, [64, 128])
            z = arrays[f"{layer}.attn_gate.weight"]
            heads = [x.reshape(2, -1, x.shape[-1]) for x in (q, k, v, z)]
            out[f"{layer}.ssm_in.weight"] = np.concatenate(heads, axis=1).reshape(-1, array.shape[-1])
        elif not name.endswith("attn_gate.weight"):
            out[name] = array
    return out


def test_older_files_of_qwen_3_next_have_its_projections_in_one(folder: Path) -> None:
    path = families.write_gguf(families.ALL["qwen3next"], folder / "older.gguf", change=older)
    golden = tiny.golden("qwen3next")
    assert nmse(open_gguf(path).logits(golden.prompt), golden.logits) < 1e-8


def bare(arrays: families.Arrays) -> families.Arrays:
    """By Ollama's names, with its parts for pictures and for a token more."""
    out = {name.replace("ssm_dt.bias", "ssm_dt"): array for name, array in arrays.items()}
    return out | {
        "v.blk.0.attn_q.weight": np.ones((4, 4), np.float32),
        "mtp.fc.weight": np.ones((4, 8), np.float32),
    }


def test_ollamas_files_say_where_value_heads_lie_and_which_layers_have_attention(folder: Path) -> None:
    for name, reordered in (("qwen35moe", True), ("qwen3next", False)):
        family, golden = families.ALL[name], tiny.golden(name)
        path = families.write_gguf(
            family,
            folder / f"ollama-{name}.gguf",
            change=bare,
            full_attention_interval=None,
            **{"attention.head_count_kv": [0, 0, 0, 2], "ssm.v_head_reordered": reordered},
        )
        with pytest.warns(RuntimeWarning, match="left out: 1 for images, 1 for multi-token prediction"):
            engine = open_gguf(path)
        assert nmse(engine.logits(golden.prompt), golden.logits) < 1e-8
    with pytest.raises(ModelFileError, match="head_count_kv: found 0 for layer 0, which has attention"):
        resolve(
            _core.GgufFile(
                str(
                    families.write_gguf(
                        families.ALL["glm4moe"],
                        folder / "none.gguf",
                        **{"attention.head_count_kv": [0, 2, 2]},
                    )
                )
            )
        )


def test_what_predicts_a_token_more_is_left_out(folder: Path, tmp_path: Path) -> None:
    family, golden = families.ALL["glm4moe"], tiny.golden("glm4moe")
    ones = np.ones((4, 4), np.float32)
    more = {"blk.3.nextn.eh_proj.weight": ones, "blk.3.attn_norm.weight": ones[0]}
    path = families.write_gguf(
        family,
        folder / "nextn.gguf",
        change=lambda arrays: arrays | more,
        block_count=4,
        nextn_predict_layers=1,
    )
    with pytest.warns(RuntimeWarning, match="glm4moe model are left out: 2 for multi-token prediction"):
        engine = open_gguf(path)
    assert nmse(engine.logits(golden.prompt), golden.logits) < 1e-8
    more = {"model.layers.3.eh_proj.weight": ones}
    path = families.write_folder(family, tmp_path, lambda arrays: arrays | more, num_nextn_predict_layers=1)
    with pytest.warns(RuntimeWarning, match="glm4_moe model are left out: 1 for multi-token prediction"):
        engine = open_folder(path)
    assert nmse(engine.logits(golden.prompt), golden.logits) < 1e-8


def test_published_settings_of_hunyuan_and_ernie(tmp_path: Path) -> None:
    """Numbers layer by layer, as Hunyuan's configuration has them; Ernie's layers for a token more."""
    ones = [1] * 3
    settings = {"moe_topk": [3] * 3, "num_shared_expert": ones, "moe_intermediate_size": [64] * 3}
    path = families.write_folder(families.ALL["hunyuan_moe"], tmp_path / "hunyuan", **settings)
    golden = tiny.golden("hunyuan_moe")
    assert nmse(open_folder(path).logits(golden.prompt), golden.logits) < 1e-8

    more = {"model.mtp_block.0.mlp.gate_proj.weight": np.ones((4, 4), np.float32)}
    path = families.write_folder(
        families.ALL["ernie4_5_moe"], tmp_path / "ernie", lambda arrays: arrays | more
    )
    golden = tiny.golden("ernie4_5_moe")
    with pytest.warns(RuntimeWarning, match="ernie4_5_moe model are left out: 1 for multi-token prediction"):
        engine = open_folder(path)
    assert nmse(engine.logits(golden.prompt), golden.logits) < 1e-8


@pytest.mark.parametrize(
    ("keys", "error", "message"),
    [
        (
            {"expert_group_count": 3},
            ModelFileError,
            "expert_group_count: found 3, expected a divisor of the 8",
        ),
        (
            {"expert_group_used_count": 5},
            ModelFileError,
            "expert_group_used_count: found 5, expected 1 to the 4",
        ),
        ({"expert_gating_func": 7}, UnsupportedError, "expert_gating_func: found 7; supported are 1 to 4"),
        ({"expert_shared_count": 3}, ModelFileError, r"found shape \(128, 96\), expected \(192, 96\)"),
        ({"leading_dense_block_count": 2}, ModelFileError, r"blk\.1\.ffn_gate\.weight is missing"),
        ({"moe_latent_size": 32}, UnsupportedError, "moe_latent_size: found 32"),
    ],
)
def test_keys_that_do_not_fit_are_refused(
    keys: dict[str, object], error: type[Exception], message: str, tmp_path: Path
) -> None:
    path = families.write_gguf(families.ALL["glm4moe"], tmp_path / "model.gguf", **keys)
    with pytest.raises(error, match=message):
        resolve(_core.GgufFile(str(path)))


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("minimax_m2", {"scoring_func": "softmax"}, "scoring_func: found 'softmax', but the router of a"),
        ("minimax_m2", {"routed_scaling_factor": 2.0}, "routed_scaling_factor: found 2.0, but a minimax_m2"),
        ("qwen35moe", {"n_group": 4}, "n_group: found 4, but a qwen3_5_moe_text model has none"),
    ],
)
def test_settings_that_the_class_does_not_have_are_refused(
    name: str, settings: dict[str, object], message: str, tmp_path: Path
) -> None:
    path = families.write_folder(families.ALL[name], tmp_path, **settings)
    with warnings.catch_warnings(), pytest.raises(UnsupportedError, match=message):
        open_folder(path)


def test_the_head_of_nemotron_is_its_own_whatever_the_configuration_says(tmp_path: Path) -> None:
    """Transformers' class ties nothing."""
    golden = tiny.golden("nemotron_h")
    path = families.write_folder(families.ALL["nemotron_h"], tmp_path, tie_word_embeddings=True)
    assert nmse(open_folder(path).logits(golden.prompt), golden.logits) < 1e-8


def test_groups_of_experts_that_a_model_does_not_have_are_no_error(tmp_path: Path) -> None:
    golden = tiny.golden("nemotron_h")
    path = families.write_folder(families.ALL["nemotron_h"], tmp_path, n_group=4, topk_group=2)
    assert nmse(open_folder(path).logits(golden.prompt), golden.logits) < 1e-8


def test_feed_forwards_of_nemotron_may_have_biases(tmp_path: Path) -> None:
    family, golden = families.ALL["nemotron_h"], tiny.golden("nemotron_h")

    def biased(value: float) -> Callable[[families.Arrays], families.Arrays]:
        sizes = {"up_proj": 160, "down_proj": 96}
        more = {
            f"backbone.layers.{n}.mixer.{part}.bias": np.full(size, value, np.float32)
            for n in (1, 3)
            for part, size in sizes.items()
        }
        return lambda arrays: arrays | more

    found = {
        value: open_folder(
            families.write_folder(family, tmp_path / str(value), biased(value), mlp_bias=True)
        ).logits(golden.prompt)
        for value in (0.0, 0.5)
    }
    assert nmse(found[0.0], golden.logits) < 1e-8
    assert nmse(found[0.5], golden.logits) > 1e-3


@pytest.mark.parametrize(
    ("name", "flag", "places"),
    [
        ("lfm2", "conv_bias", {"conv.in_proj": 384, "conv.conv": 128, "conv.out_proj": 128}),
        ("granitehybrid", "mamba_proj_bias", {"mamba.in_proj": 454, "mamba.out_proj": 96}),
        ("nemotron_h", "use_bias", {"mixer.in_proj": 538, "mixer.out_proj": 96}),
    ],
)
def test_mixers_in_attentions_place_may_have_biases(
    name: str, flag: str, places: Mapping[str, int], tmp_path: Path
) -> None:
    """Each of them counts, and is refused where the configuration does not speak of it."""
    family, golden = families.ALL[name], tiny.golden(name)
    kinds = family.settings.get("layers_block_type") or family.settings["layer_types"]
    layers = [n for n, kind in enumerate(kinds) if kind in ("conv", "linear_attention")]
    prefix = "backbone" if name == "nemotron_h" else "model"

    def biased(raised: str) -> Callable[[families.Arrays], families.Arrays]:
        more = {
            f"{prefix}.layers.{n}.{place}.bias": np.full(size, 0.5 * (place == raised), np.float32)
            for n in layers
            for place, size in places.items()
        }
        return lambda arrays: arrays | more

    def logits(raised: str, **settings: object) -> npt.NDArray[np.float32]:
        folder = families.write_folder(family, tmp_path / (raised or "none"), biased(raised), **settings)
        return open_folder(folder).logits(golden.prompt)

    assert nmse(logits("", **{flag: True}), golden.logits) < 1e-8
    for place in places:
        assert nmse(logits(place, **{flag: True}), golden.logits) > 1e-3, place
    with pytest.raises(ModelFileError, match=f"no such bias; set {flag} to true"):
        logits("")


@pytest.mark.parametrize("name", ["gemma4", "gemma4_e", "gemma3n", "qwen3next"])
def test_attention_may_have_biases(name: str, tmp_path: Path) -> None:
    """Each of them counts, and is refused where the configuration does not speak of it."""
    family, golden = families.ALL[name], tiny.golden(name)
    parts = ("q_proj", "k_proj", "v_proj", "o_proj")

    def biased(raised: str) -> Callable[[families.Arrays], families.Arrays]:
        def change(arrays: families.Arrays) -> families.Arrays:
            more = {
                n.replace(".weight", ".bias"): np.full(
                    len(a), 0.5 * (raised == part) * (-1) ** np.arange(len(a)), np.float32
                )
                for n, a in arrays.items()
                for part in parts
                if n.endswith(f"self_attn.{part}.weight")
            }
            return arrays | more

        return change

    def logits(raised: str, **settings: object) -> npt.NDArray[np.float32]:
        folder = families.write_folder(family, tmp_path / (raised or "none"), biased(raised), **settings)
        return open_folder(folder).logits(golden.prompt)

    assert nmse(logits("", attention_bias=True), golden.logits) < 1e-8
    for part in parts:
        assert nmse(logits(part, attention_bias=True), golden.logits) > 1e-6, part
    with pytest.raises(ModelFileError, match="no such bias; set attention_bias to true"):
        logits("")


@pytest.mark.parametrize(("name", "flag"), [("gpt_oss", "attention_bias"), ("qwen2moe", "qkv_bias")])
def test_a_model_without_the_usual_biases_is_one_whose_biases_are_zero(
    name: str, flag: str, tmp_path: Path
) -> None:
    def zeros(weights: tiny.Weights) -> tiny.Weights:
        return {
            n: np.zeros_like(a) if "_proj.bias" in n and "self_attn" in n else a
            for n, a in own(weights).items()
        }

    def without(weights: tiny.Weights) -> tiny.Weights:
        return {n: a for n, a in own(weights).items() if not ("_proj.bias" in n and "self_attn" in n)}

    own = turned if name == "gpt_oss" else dict
    prompt = tiny.golden(name).prompt
    zero = open_folder(folders.write(name, tmp_path / "zero", arrays=zeros)).logits(prompt)
    none = folders.write(name, tmp_path / "none", arrays=without, change=lambda c: c | {flag: False})
    assert np.array_equal(open_folder(none).logits(prompt), zero)
