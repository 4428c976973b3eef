"""Plans for Apple chips that are not here, their budgets, and what they predict."""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Iterable
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from akunu import _core
from akunu.base.errors import AkunuError, InvalidArgumentError, UnsupportedError
from akunu.cli import main
from akunu.cli.bench.gguf_file import write_gguf
from akunu.cli.bench.one_sequence import OneSequence
from akunu.cli.cost_model import Machine, predict
from akunu.files.describe.filetypes import FILE_TYPES
from akunu.loading.engines import open_engine
from akunu.loading.shapes import SHAPES
from akunu.loading.synthetic import SyntheticModel
from formats import gguf_bytes
from order import Draw

CHIP = "M4 Max"
LINUX = sys.platform == "linux"
M4 = Machine.of_chip(_core.find_apple_chip("M4"))


@cache
def plan(
    model: str, phase: str = "decode", rows: int = 1, position: int = 0, chip: str = CHIP
) -> list[_core.CommandInfo]:
    with open_engine(model, device=f"plan:{chip}", context=position + rows + 1) as opened:
        return opened.engine.plan(phase, rows, position)


def one_of_each(names: Iterable[str]) -> list[Any]:
    """Shapes as parameters: those of an architecture that came before are long."""
    known: set[str] = set()
    found = []
    for name in names:
        arch = SHAPES[name].arch
        marks = [pytest.mark.long, pytest.mark.table]
        found.append(pytest.param(name, marks=marks) if arch in known else name)
        known.add(arch)
    return found


def layers(commands: list[_core.CommandInfo]) -> dict[int, int]:
    found: dict[int, int] = {}
    for c in commands:
        found[c["layer"]] = found.get(c["layer"], 0) + c["dispatches"]
    return {layer: n for layer, n in found.items() if layer >= 0}


# ---- budgets ---------------------------------------------------------------------------------------

# Dispatches of a layer, also where v has a wider type than q and k. Gemma has two more norms. Experts have a
# norm and a router in front, delta nets four matmuls, a convolution and their rule.
BUDGET = {"llama": 7, "qwen2": 7, "qwen3": 7, "gemma2": 9, "gemma3": 9, "phi3": 7}
RECODED = {"tq1_0", "tq2_0", "q1_0", "q2_0"}
"""Types that become planar ones, whose norms are commands of their own."""
BUDGET |= {
    "qwen3moe": 10,
    "gpt-oss": 10,
    "qwen35": 12,
    "qwen35moe": 19,
    "deepseek2": 19,
    "gemma4": 19,
    "gemma3n": 35,
}
BUDGET |= {"lfm2": 7, "granitehybrid": 15, "nemotron_h_moe": 8}


@pytest.mark.parametrize("shape", one_of_each(SHAPES))
def test_dispatches_of_a_layer_in_decode(shape: str, draw: Draw) -> None:
    """Every mix of types, and what becomes of it where rows are not whole blocks of 256."""
    for file_type in draw(sorted(FILE_TYPES.keys() - RECODED)):
        found = layers(plan(f"{shape}:{file_type}", position=200))
        assert max(found.values()) <= BUDGET[SHAPES[shape].arch], (file_type, found)


def test_attention_on_few_keys_is_not_merged() -> None:
    """Up to 128 keys there is one split: no partial results, and no dispatch that joins them."""
    few, many = (plan("llama3.2-1b:q4_0", position=position) for position in (127, 128))
    assert set(layers(few).values()) == {6} and set(layers(many).values()) == {7}
    moved = [sum(c["bytes"] for c in found if c["op"] == "attention_split") for found in (few, many)]
    shape = SHAPES["llama3.2-1b"]
    partials = shape.n_heads * (shape.head_dim + 2) * 4 * 5  # of five splits of 32 keys
    a_key = 2 * shape.n_kv_heads * shape.head_dim * 2
    assert moved[1] - moved[0] == pytest.approx(shape.n_layers * (a_key + partials), rel=0.2)


def test_a_layer_that_mixes_types_counts_each_by_its_size() -> None:
    shape, sizes = SHAPES["qwen3-4b"], {"q4_k": 144 / 256, "q6_k": 210 / 256}
    first = next(c for c in plan("qwen3-4b:q4_k_m") if c["label"] == "layers.0.attn_qkv")
    assert first["kernel"] == "norm_qkv_q4_k_q6_k"
    q, kv = (n * shape.head_dim * shape.dim for n in (shape.n_heads, shape.n_kv_heads))
    assert first["minimum"] == (q + kv) * sizes["q4_k"] + kv * sizes["q6_k"]


#: Of small models, of those whose states count beside the weights, and of latent attention, more is moved.
_MORE = ("qwen35", "qwen35moe", "granitehybrid", "nemotron_h_moe", "deepseek2")
KEYS_ALONE = [name for name, s in SHAPES.items() if not name.startswith("stories") and s.arch not in _MORE]


@pytest.mark.parametrize("shape", one_of_each(KEYS_ALONE))
def test_bytes_of_a_token(shape: str, draw: Draw) -> None:
    """At most 4 % more than the weights and the KV cache, at any position that the model has.

    Splits of 32 keys are most of it: of SmolLM-135M, whose weights are few, their results are half.
    """
    last = SHAPES[shape].context_length - 1
    for file_type, chip in draw([*product(("q4_0", "q4_k_m", "q8_0", "f16"), ("M1", "M4", "M3 Ultra"))]):
        with open_engine(f"{shape}:{file_type}", device=f"plan:{chip}", context=last + 1) as opened:
            for position in sorted({min(p, last) for p in (0, 300, 511, 1024, 4096, 8191, 32767)}):
                commands = opened.engine.plan("decode", 1, position)
                moved, least = (sum(c[key] for c in commands) for key in ("bytes", "minimum"))
                assert 1 <= moved / least <= 1.04, (file_type, chip, position)


@pytest.mark.parametrize(
    ("position", "rows"), [(0, 1), (0, 40), (500, 30), (511, 3), (512, 7), (490, 300), (3000, 9)]
)
def test_flops_of_attention_are_those_of_the_keys_that_rows_see(position: int, rows: int) -> None:
    """Some layers of Gemma 3 have a window of 512 keys."""
    with open_engine("gemma3-1b:q4_0", device=f"plan:{CHIP}", context=4096) as opened:
        commands, config = opened.engine.plan("prefill", rows, position), opened.config
    for layer, window in enumerate(config.layer_window):
        keys = sum(min(at + 1, window or at + 1) for at in range(position, position + rows))
        found = next(c for c in commands if c["label"] == f"layers.{layer}.attention")
        assert found["flops"] == 4 * config.n_heads * config.head_dim * keys, (layer, window)
    assert len(set(config.layer_window)) == 2


@pytest.mark.parametrize("shape", ["llama3.1-8b", "qwen3-0.6b", "gemma3-1b"])
def test_the_least_bytes_are_those_of_the_weights_and_the_cache(shape: str) -> None:
    model, position = SyntheticModel(f"{shape}:q8_0"), 3000
    with open_engine(f"{shape}:q8_0", device=f"plan:{CHIP}", context=4096) as opened:
        commands, config = opened.engine.plan("decode", 1, position), opened.config
    types = {row["name"]: row for row in _core.dtypes()}
    weights = sum(
        t.shape[0] * t.shape[1] * types[t.dtype]["block_bytes"] // types[t.dtype]["block_elems"]
        for t in model.tensors
        if len(t.shape) == 2
    )
    tied = not any(t.name == "output.weight" for t in model.tensors)
    if not tied:  # then of the embedding only a row is read
        embedding = next(t for t in model.tensors if t.name == "token_embd.weight")
        row = types[embedding.dtype]
        weights -= embedding.shape[0] * embedding.shape[1] * row["block_bytes"] // row["block_elems"]
    keys = [min(w or position + 1, position + 1) for w in config.layer_window]
    cache_bytes = sum(keys) * 2 * config.n_kv_heads * config.head_dim * 2
    assert sum(c["minimum"] for c in commands) == pytest.approx(weights + cache_bytes, rel=1e-9)


# ---- chips -----------------------------------------------------------------------------------------


def test_every_generation_and_tier_is_known() -> None:
    names = {chip["name"] for chip in _core.apple_chips()}
    generations = {f"M{n}{tier}" for n in range(1, 6) for tier in ("", " Pro", " Max")}
    assert generations | {f"M{n} Ultra" for n in (1, 2, 3, 5)} == names


def test_chips_grow_with_the_tier_and_are_what_their_cores_can_do() -> None:
    for chip in _core.apple_chips():
        per_core = chip["flops"] / chip["gpu_cores"]
        assert 128 * 2 * 1.2e9 <= per_core <= 128 * 2 * 2.3e9, chip  # ALUs, a fused product and sum, clock
        assert 60e9 <= chip["bytes_per_second"] <= 1300e9
    for n in range(1, 6):
        tiers = [_core.find_apple_chip(f"M{n}{tier}")["bytes_per_second"] for tier in ("", " Pro", " Max")]
        assert tiers == sorted(set(tiers))


@pytest.mark.parametrize(
    ("name", "cores", "bandwidth"),
    [
        ("M4 Max", 40, 546e9),
        ("m4 max 32", 32, 409.6e9),
        ("Apple M1 7", 7, 68.25e9),
        ("M2 Ultra 60", 60, 819.2e9),
        ("M3 Max 24", 24, 307.2e9),
        ("M3 Ultra 60", 60, 819.2e9),
        ("M5 Ultra", 80, 1228e9),
    ],
)
def test_a_chip_by_name_and_cores(name: str, cores: int, bandwidth: float) -> None:
    chip = _core.find_apple_chip(name)
    assert (chip["gpu_cores"], chip["bytes_per_second"]) == (cores, bandwidth)


@pytest.mark.parametrize("name", ["", "M9", "M4 Max 41", "M4 Max -3", "M4 Mini", "40"])
def test_an_unknown_chip_is_an_error_that_lists_the_known(name: str) -> None:
    with pytest.raises(InvalidArgumentError, match=r"not known; there is M1 8, .*M4 Max 40"):
        _core.find_apple_chip(name)


# ---- plans -----------------------------------------------------------------------------------------


def test_a_plan_holds_no_weights() -> None:
    """A model of 16 GB is planned at once and in little memory."""
    unit = 1 if sys.platform == "darwin" else 1024
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    assert len(plan("llama3.1-8b:f16", position=100_000)) > 200
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit - before < 200e6


def test_a_planned_engine_runs_nothing() -> None:
    with open_engine("stories15m:q4_0", device="plan:M1", context=64) as opened:
        sequence = OneSequence(opened.engine)
        sequence.begin([1, 2, 3])
        with pytest.raises(UnsupportedError, match="only plans"):
            sequence.prefill()


def test_kernels_have_their_metal_names() -> None:
    names = {c["label"]: c["kernel"] for c in plan("llama3.2-1b:q4_0")}
    assert names["layers.0.attn_qkv"] == "norm_qkv_q4_0"
    assert names["argmax"] == "argmax_f32"


@pytest.mark.parametrize("shape", one_of_each(SHAPES))
def test_every_shape_has_kernels_in_every_phase(shape: str, draw: Draw) -> None:
    for file_type in draw(("q4_0", "q4_k_m", "q8_0", "f16")):
        with open_engine(f"{shape}:{file_type}", device=f"plan:{CHIP}", context=32) as opened:
            for phase, rows in {"decode": 1, "batch": 4, "prefill": 17}.items():
                commands = opened.engine.plan(phase, rows, 0)
                assert all(c["dispatches"] >= 1 for c in commands if c["op"] != "attention_merge"), phase


# ---- NVIDIA's GPUs ---------------------------------------------------------------------------------

nvidia = pytest.mark.skipif(not LINUX, reason="CUDA is built on Linux")


def test_nvidia_s_chips_are_found_by_name_and_named_where_another_is_asked_for() -> None:
    assert Machine.named("h100").name == "NVIDIA H100 (132 multiprocessors)"
    assert Machine.named("M4 Max 32").name.startswith("Apple M4 Max")
    speeds = [chip["bytes_per_second"] for chip in _core.nvidia_chips()]
    assert speeds == sorted(speeds)
    with pytest.raises(InvalidArgumentError, match=r"M1 8, .* of NVIDIA's L4, .*RTX 5090, A100, H100, H200"):
        Machine.named("B9")


@nvidia
@pytest.mark.parametrize("shape", one_of_each(SHAPES))
def test_every_shape_s_programs_pass_the_check_of_schedules(shape: str, draw: Draw) -> None:
    """The device refuses a program whose commands would not run in the table's order."""
    for file_type, chip in draw([*product(("q4_0", "q4_k_m", "q8_0", "f16"), ("H100", "A100", "RTX 4090"))]):
        with open_engine(f"{shape}:{file_type}", device=f"plan:{chip}", context=32) as opened:
            for phase, rows in {"decode": 1, "batch": 4, "prefill": 17}.items():
                assert len(opened.engine.plan(phase, rows, 0)) > 4, phase


@nvidia
def test_what_another_command_does_has_no_dispatch() -> None:
    """Of a row's attention there is one command where the table has three."""
    commands = plan("llama3.2-1b:q4_0", chip="H100")
    assert set(layers(commands).values()) == {5}
    merged = {c["op"] for c in commands if c["dispatches"] == 0}
    assert merged == {"prepare_heads", "attention_merge"}
    assert not any(c["barrier"] for c in commands if c["dispatches"] == 0)
    assert all(c["dispatches"] == 1 for c in plan("llama3.2-1b:q4_0", "prefill", 17, chip="H100"))
    merged = {c["op"] for c in plan("llama3.2-1b:q4_0", "batch", 32, chip="H100") if c["dispatches"] == 0}
    assert merged == {"prepare_heads", "quantize"}


@nvidia
@pytest.mark.parametrize(
    ("model", "counts"),
    [
        ("qwen3-30b-a3b-6-layers:q4_k_m", {5}),
        ("gpt-oss-20b-6-layers:mxfp4", {5}),
        ("qwen3.6-35b-a3b-8-layers:q4_k_m", {7, 8}),  # attention; a delta net
        ("gemma4-26b-a4b-6-layers:q4_k_m", {10, 12}),  # with a window; heads of 512 elements
        ("glm-4.7-flash-6-layers:q4_k_m", {8}),
    ],
)
def test_commands_of_a_layer_of_experts(model: str, counts: set[int]) -> None:
    assert set(layers(plan(model, chip="H200")).values()) == counts


@nvidia
@pytest.mark.parametrize(
    ("model", "measured"),
    [
        ("llama3.2-1b:q4_0", 2700),
        ("llama3.2-1b:q8_0", 2231),
        ("llama3.2-1b:f16", 1460),
        ("qwen3-0.6b:q8_0", 2068),
        ("qwen3-0.6b:f16", 1635),
        ("llama3.1-8b:q4_0", 729),
        ("llama3.1-8b:q8_0", 472),
        ("llama3.1-8b:f16", 276),
    ],
)
def test_what_was_measured_on_an_h200_is_met(model: str, measured: float) -> None:
    """tg128 of docs/cuda.md: the keys are those of its middle."""
    found = predict(plan(model, position=64, chip="H200"), 1, Machine.named("H200"))
    assert found.tokens_per_second == pytest.approx(measured, rel=0.1)


# ---- predictions -----------------------------------------------------------------------------------


def test_a_published_run_is_met() -> None:
    """llama.cpp, Llama 3.1 8B Q4_K_M on an M4: 20.9 and 225 tokens/s (brand-o/normiebench, issue 3).

    We have fewer dispatches, and half the activations' traffic; more than that would be a wrong model.
    """
    decode = predict(plan("llama3.1-8b:q4_k_m"), 1, M4)
    prefill = predict(plan("llama3.1-8b:q4_k_m", "prefill", 512), 512, M4)
    assert 0.95 < decode.tokens_per_second / 20.9 < 1.25
    assert 0.85 < prefill.tokens_per_second / 225 < 1.2


def test_an_ultra_is_two_of_the_max() -> None:
    """The M4 has none; the M5's is assumed."""
    for generation in (1, 2, 3, 5):
        ultra, two = (_core.find_apple_chip(f"M{generation} {tier}") for tier in ("Ultra", "Max"))
        for figure in ("gpu_cores", "bytes_per_second", "flops"):
            assert ultra[figure] == pytest.approx(2 * two[figure], rel=0.01), (generation, figure)  # type: ignore[literal-required]


@pytest.mark.parametrize(
    ("chip", "share"), [("M1", 0.85), ("M3 Pro", 0.85), ("M4 Max", 0.85), ("M5 Pro", 0.88)]
)
def test_a_chip_s_family_says_what_kernels_reach(chip: str, share: float) -> None:
    machine = Machine.of_chip(_core.find_apple_chip(chip))
    assert machine.bandwidth_share == share
    assert 1.3e-6 <= machine.dispatch_seconds <= 2.7e-6


def test_a_prediction_adds_up() -> None:
    commands = plan("qwen3-0.6b:q4_0", position=300)
    found = predict(commands, 1, M4)
    assert found.bytes == sum(c["bytes"] for c in commands)
    assert found.dispatches == len(commands) + 1  # argmax has two
    assert found.bound < found.seconds
    assert found.seconds == pytest.approx(
        found.bytes / (M4.bandwidth_share * 120e9) + found.dispatches * M4.dispatch_seconds, rel=0.02
    )  # decode waits for memory
    assert predict([], 1, M4).tokens_per_second == 0


def test_more_bandwidth_is_faster_and_more_keys_are_slower() -> None:
    chips = [Machine.of_chip(_core.find_apple_chip(name)) for name in ("M1", "M2 Pro", "M4 Max")]
    speeds = [predict(plan("llama3.2-3b:q4_0"), 1, chip).tokens_per_second for chip in chips]
    assert speeds == sorted(speeds)
    late = predict(plan("llama3.2-3b:q4_0", position=4000), 1, chips[0]).tokens_per_second
    assert late < speeds[0]


# ---- the command -----------------------------------------------------------------------------------


def run(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    capsys.readouterr()
    assert main(args) == 0, capsys.readouterr().err
    return capsys.readouterr().out


@pytest.fixture(scope="module")
def gguf(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("models") / "stories15m-q4_0.gguf"
    write_gguf(SyntheticModel("stories15m:q4_0"), path)
    return str(path)


def test_inspect_predicts(gguf: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "inspect", gguf, "--plan", "--chip", "M4 Max", "--position", "10")
    assert "Apple M4 Max (40 GPU cores), 546 GB/s, 18.4 TFLOP/s" in out
    assert "norm_qkv_q4_0" in out and "argmax_f32 (+1)" in out and "not measured" in out
    rows = {
        line.split()[0]: line.split() for line in out.splitlines() if line.startswith(("decode", "prefill"))
    }
    assert rows["decode"][1:4] == ["1", "43", "6"] and rows["prefill"][1] == "512"


@nvidia
def test_inspect_predicts_for_an_nvidia_gpu(gguf: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "inspect", gguf, "--plan", "--chip", "h200")
    assert "NVIDIA H200, planned" in out
    assert "NVIDIA H200 (132 multiprocessors), 4800 GB/s, 989.0 TFLOP/s" in out
    assert "a dispatch that waits costs 2.1 us" in out


def test_inspect_predicts_for_random_weights_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    text = run(capsys, "inspect", "qwen3-8b:q4_0", "--plan", "--chip", "m2 ultra", "--json")
    found = json.loads(text)
    assert found["machine"]["bytes_per_second"] == 819.2e9
    decode = found["prediction"]["decode"]
    assert decode["layer_dispatches"] == 6 and decode["excess"] <= 1.04
    assert 100 < decode["tokens_per_second"] < decode["bound_tokens_per_second"]
    assert sum(c["dispatches"] for c in found["plan"]) == decode["dispatches"]


def test_a_plan_for_a_device_that_is_here_has_no_prediction(
    gguf: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "prediction" not in json.loads(run(capsys, "inspect", gguf, "--plan", "--json"))


def test_what_is_no_number_is_null_in_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keys = [
        gguf_bytes.pair("general.architecture", gguf_bytes.STRING, "llama"),
        gguf_bytes.pair("x.nan", gguf_bytes.F32, float("nan")),
        gguf_bytes.pair("x.list", gguf_bytes.ARRAY, (gguf_bytes.F32, [float("inf"), 1.0])),
    ]
    (tmp_path / "x.gguf").write_bytes(gguf_bytes.gguf(keys))
    text = run(capsys, "inspect", str(tmp_path / "x.gguf"), "--json")
    found = json.loads(text, parse_constant=pytest.fail)["metadata"]
    assert found["x.nan"] is None and found["x.list"] == [None, 1.0]


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["--chip", "M4"], "--chip has no effect without --plan"),
        (["--plan", "--chip", "M4", "--device", "cpu"], "--device has no effect"),
        (["--plan", "--chip", "M4", "--threads", "2"], "--threads has no effect"),
        (["--plan", "--chip", "M17"], "chip 'M17' is not known"),
        (["--plan", "--chip", "M4 Max 0"], "chip 'M4 Max 0' is not known"),
    ],
)
def test_options_that_contradict_are_refused(
    gguf: str, capsys: pytest.CaptureFixture[str], args: list[str], text: str
) -> None:
    assert main(["inspect", gguf, *args]) != 0
    assert text in capsys.readouterr().err


def test_a_planned_device_needs_a_chip() -> None:
    with pytest.raises(AkunuError, match="not known"), open_engine("stories15m:q4_0", device="plan:"):
        pass
