"""The commands on the real engine, with random weights of a small published shape."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import akunu
from akunu import _core
from akunu.cli import main
from akunu.cli.bench import main as bench_main
from akunu.cli.bench.gguf_file import write_gguf
from akunu.loading.synthetic import SyntheticModel


@pytest.fixture(scope="module")
def gguf(tmp_path_factory) -> str:
    path: Path = tmp_path_factory.mktemp("models") / "stories15m-q8_0.gguf"
    write_gguf(SyntheticModel("stories15m:q8_0"), path)
    return str(path)


PEAKS = cache(_core.measure_peaks)


@pytest.fixture(autouse=True)
def peaks_are_measured_once(monkeypatch):
    """Measure the machine once, by the first test that asks: it takes half a second or more."""
    monkeypatch.setattr(_core, "measure_peaks", PEAKS)


def run(capsys, *args: str) -> str:
    capsys.readouterr()
    assert main(args) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def test_complete_writes_what_the_python_api_generates(gguf, capsys):
    with akunu.load(gguf, context=64) as model:
        expected = model.generate("hello", temperature=0, max_tokens=12)
    arguments = ["complete", "hello", "-m", gguf, "--temperature", "0", "-n", "12", "-c", "64"]
    found = json.loads(run(capsys, *arguments, "--json"))
    assert found["ids"] == expected.ids
    assert found["text"] == expected.text
    assert run(capsys, *arguments) == expected.text + "\n"


def test_the_same_seed_gives_the_same_text(gguf, capsys):
    texts = [
        run(capsys, "complete", "x", "-m", gguf, "--seed", s, "-n", "16", "-c", "64") for s in ("1", "1", "2")
    ]
    assert texts[0] == texts[1] != texts[2]


def test_a_prompt_that_does_not_fit_is_an_error_with_both_numbers(gguf, capsys):
    assert main(["complete", "hello " * 50, "-m", gguf, "-c", "16"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("akunu: error: ")
    assert "16" in error


@pytest.mark.parametrize("args", [["--device", "nonsense"], ["--kv-dtype", "nonsense"], ["-c", "1000000"]])
def test_wrong_loading_options_are_wrong_usage(args, gguf, capsys):
    assert main(["complete", "x", "-m", gguf, *args]) == 2
    assert re.search(r"--device: no |--kv-dtype|-c: 1000000 is more", capsys.readouterr().err)


@pytest.mark.parametrize("args", [["--top-p", "-1"], ["--seed", "-2"], ["--stop", ""], ["--logit-bias", "x"]])
def test_wrong_values_of_generation_options_are_wrong_usage(args, gguf, capsys):
    assert main(["complete", "x", "-m", gguf, *args]) == 2
    assert capsys.readouterr().err.startswith(f"akunu: error: {args[0]}")


def test_inspect_shows_metadata_tensors_and_configuration(gguf, capsys):
    out = run(capsys, "inspect", gguf)
    for part in (
        "general.architecture",
        "15.2 M",
        "blk.*.attn_q.weight",
        "288 x 288",
        "attention.window",
        "GGUF v3",
    ):
        assert part in out
    assert len(max(out.splitlines(), key=len)) < 200  # the vocabulary is not printed


def test_a_quantized_matrix_is_one_tensor_of_its_own_size(tmp_path, capsys):
    """Not codes, scales and biases, of which there are fewer than weights."""
    folder = str(akunu.convert("ember", tmp_path / "codes", "mlx-4bit", progress=False))
    out = run(capsys, "inspect", folder)
    assert "parameters  8.9 M" in out and "4.51 bits a weight" in out
    assert re.search(r"^model\.layers\.\*\.mlp\.down_proj\.weight +mlx_q4_g64_\w+ +256 x 1024 +8 ", out, re.M)
    assert "scales" not in out and "u32" not in out
    assert bench_main(["-m", folder, "-p", "4", "-n", "0", "-r", "1", "-o", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["model_n_params"], row["model_type"][:18]) == (8917248, "llama 8.92M MLX_Q4")
    (tmp_path / "codes" / "config.json").write_text('{"model_type": "llama"}')  # the tensors as they are
    assert "u32" in run(capsys, "inspect", folder)


def test_inspect_all_has_one_line_for_each_tensor(gguf, capsys):
    lines = run(capsys, "inspect", gguf, "--all").splitlines()
    assert sum(line.startswith("blk.") for line in lines) == 6 * 9


def test_inspect_json(gguf, capsys):
    found = json.loads(run(capsys, "inspect", gguf, "--json"))
    assert found["metadata"]["general.architecture"] == "llama"
    assert len(found["metadata"]["tokenizer.ggml.tokens"]) == 32000
    assert len(found["tensors"]) == 2 + 6 * 9
    assert found["config"]["dim"] == 288
    assert "plan" not in found


@pytest.mark.parametrize(("phase", "rows"), [("decode", 1), ("batch", 3), ("prefill", 40)])
def test_inspect_plan(phase, rows, gguf, capsys):
    arguments = ["inspect", gguf, "--plan", "--phase", phase, "--rows", str(rows), "--position", "20"]
    out = run(capsys, *arguments)
    assert f"dispatch table: {phase}, {rows} rows at position 20" in out
    assert "layers.5.ffn_down" in out
    found = json.loads(run(capsys, *arguments, "--json"))
    assert all(command["bytes"] >= 0 for command in found["plan"])
    assert set(found["memory"]) == {
        "weights",
        "weights_mapped",
        "kv_cache",
        "scratch",
        "activations",
        "activations_apart",
    }


def test_inspect_of_a_model_that_cannot_run_still_shows_the_file(tmp_path, capsys):
    from gguf import GGUFWriter

    path = tmp_path / "other.gguf"
    writer = GGUFWriter(path, "nonsense")
    writer.add_string("general.name", "a\x1b[31mred\nname")
    writer.add_string("key\x1b[31m", "value")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    out = run(capsys, "inspect", str(path))
    assert "not a model that Akunu can run" in out
    assert "nonsense" in out
    assert "\x1b" not in out  # a file cannot write to the terminal
    assert json.loads(run(capsys, "inspect", str(path), "--json"))["config"] is None


def test_profile(gguf, capsys):
    out = run(capsys, "profile", gguf, "--repeats", "2")
    assert "matmul" in out
    assert "tokens/s" in out
    found = json.loads(run(capsys, "profile", "stories15m:q4_0", "--repeats", "2", "--group", "op", "--json"))
    assert found["seconds"] > 0
    assert {"read_bytes_per_second", "f32_flops", "int8_ops"} == set(found["peaks"])
    assert sum(group["count"] for group in found["groups"]) == len(found["commands"])
    assert any(group["share_of_peak"] > 0 for group in found["groups"])


def test_a_batch_is_profiled_as_a_step_of_so_many_texts(capsys):
    """Each draws, and has keys and values of its own."""
    arguments = ["profile", "stories15m:q4_0", "--repeats", "1", "--position", "100", "--json"]
    found = {
        rows: {
            command["label"]: command
            for command in json.loads(run(capsys, *arguments, "--phase", phase, "--rows", str(rows)))[
                "commands"
            ]
        }
        for phase, rows in (("decode", 1), ("batch", 12), ("batch", 20))
    }
    for rows in (12, 20):
        for label in ("output", "argmax", "layers.0.attn_q", "layers.0.attention"):
            assert found[rows][label]["flops"] == rows * found[1][label]["flops"]
            assert found[rows][label]["seconds"] > 0
        kv = [found[n]["layers.0.attention"]["minimum"] for n in (1, rows)]
        assert kv[1] == rows * kv[0] > 0
    assert main([*arguments, "--phase", "batch", "--rows", "300"]) == 2
    assert "300" in capsys.readouterr().err


def test_a_window_of_speech_and_its_decoder_are_profiled(capsys):
    arguments = ["profile", "ember-speech", "--repeats", "1"]
    out = run(capsys, *arguments, "--group", "op")
    assert "encode, 1500 rows" in out and "windows/s" in out
    found = json.loads(run(capsys, *arguments, "--json"))
    assert (found["phase"], found["rows"], "texts" in found) == ("encode", 1500, False)
    commands = {command["label"]: command for command in found["commands"]}
    assert all(command["seconds"] > 0 for command in commands.values())
    # A convolution's rows are its own, whatever those of the window; and a row sees all of it.
    assert commands["conv1"]["flops"] == 2 * commands["conv2"]["flops"] * 240 / 768
    assert commands["layers.0.attention"]["flops"] == 1500 * 1500 * 4 * 256
    for phase, rows in (("decode", 1), ("batch", 5)):
        found = json.loads(
            run(capsys, *arguments, "--phase", phase, "--rows", str(rows), "--position", "100", "--json")
        )
        commands = {command["label"]: command for command in found["commands"]}
        assert commands["layers.0.cross_attention"]["flops"] == rows * 1500 * 4 * 256
        assert commands["layers.0.attention"]["flops"] == rows * 101 * 4 * 256


def test_random_weights_of_a_speech_shape_are_planned(capsys):
    found = json.loads(run(capsys, "inspect", "whisper-tiny:q8_0", "--plan", "--json", "--chip", "H100"))
    assert {command["dtype"] for command in found["plan"]} >= {"q8_0", "f16"}
    assert set(found["prediction"]) == {"encode"}


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["ember", "--phase", "encode"], "ember.gguf writes texts, and has decode, batch, prefill"),
        (["ember", "--texts", "2"], "--texts has no effect without --phase encode"),
        (["ember-speech", "--rows", "2"], "a window has always as many rows"),
        (["ember-speech", "--position", "2"], "--position has no effect"),
        (["ember-speech", "-c", "20"], "a transcript's is the model's own"),
    ],
)
def test_an_option_that_the_model_has_not_is_wrong_usage(args, message, capsys):
    assert main(["profile", *args]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("rows", [1, 9, 16])
def test_a_batch_of_any_size_can_be_planned(rows, capsys):
    out = run(capsys, "inspect", "stories15m:q4_0", "--plan", "--phase", "batch", "--rows", str(rows))
    assert f"batch, {rows} rows" in out


@pytest.mark.parametrize("backend", ["CPU", "CUDA", "Metal"])
def test_a_device_says_what_its_peaks_are(backend, capsys, monkeypatch):
    """Those of a GPU are not measured on the processor."""
    [cpu] = [one for one in _core.devices() if one["id"] == "cpu"]
    monkeypatch.setattr("akunu._core.devices", lambda: [{**cpu, "backend": backend}])
    out = run(capsys, "profile", "stories15m:q4_0", "--repeats", "1", "--json", "--device", "cpu")
    assert (json.loads(out)["peaks"] is not None) == (backend == "CPU")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            ["profile", "stories15m:q4_0", "--position", "100000000000"],
            "context: found 100000000002, expected an integer in [1, ",
        ),
        (
            ["profile", "stories15m:q4_0", "--rows", "100000000000"],
            "context: found 100000000001, expected an integer in [1, ",
        ),
        (
            ["profile", "stories15m:q4_0", "-t", "100000000000"],
            "-t: found 100000000000, expected an integer in [1, ",
        ),
        (["profile", "stories15m:q4_0", "--repeats", "100000000000"], "--repeats: found '100000000000'"),
        (
            ["profile", "stories15m:q4_0", "-c", "8", "--position", "99999999999"],
            "need --context 100000000000",
        ),
        (
            ["inspect", "stories15m:q4_0", "--plan", "--position", "99999999999"],
            "context: found 100000000001, expected",
        ),
    ],
)
def test_a_number_that_is_too_large_is_wrong_usage(args, message, capsys):
    assert main(args) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "internal error" not in error


@pytest.mark.parametrize(
    ("args", "name"),
    [("-p 5000000000", "context"), ("-p 1 -d 99999999999", "context"), ("-pg 5,5000000000 -p 0", "context"),
     ("-p 1 -t 99999999999", "-t"), ("-p 1 -b 99999999999 -ub 99999999999", "-ub")],
)  # fmt: skip
def test_akunu_bench_refuses_numbers_that_are_too_large(args, name, capsys):
    assert bench_main(["--synthetic", "stories15m:q4_0", "-n", "0", "-r", "1", *args.split()]) == 2
    assert re.fullmatch(
        rf"akunu-bench: error: {name}: found \d+, expected an integer in \[1, (2147483647|1024)\]\n",
        capsys.readouterr().err,
    )


def test_perplexity_of_random_weights_is_near_or_above_that_of_guessing(gguf, tmp_path, capsys):
    text = tmp_path / "text.txt"
    text.write_text("Some words that no random model can know. " * 4)
    value = float(run(capsys, "perplexity", gguf, str(text), "--window", "32"))
    assert 3_000 < value < 10**9
    found = json.loads(run(capsys, "perplexity", gguf, str(text), "--window", "32", "--json"))
    assert found["perplexity"] == pytest.approx(value, rel=1e-4)
    shorter = json.loads(
        run(capsys, "perplexity", gguf, str(text), "--window", "32", "--limit", "40", "--json")
    )
    assert shorter["tokens"] < found["tokens"]


def test_perplexity_of_bytes_that_are_no_text_is_an_error(gguf, tmp_path, capsys):
    text = tmp_path / "text.bin"
    text.write_bytes(b"\xff\xfe")
    assert main(["perplexity", gguf, str(text)]) == 1
    assert "not UTF-8" in capsys.readouterr().err


def test_devices(capsys):
    found = json.loads(run(capsys, "devices", "--json"))
    assert "cpu" in [device["id"] for device in found]
    out = run(capsys, "devices")
    assert all(device["name"] in out for device in found)
    assert ("memory nodes" in out) == any(len(device["nodes"]) > 1 for device in found)


def test_devices_shows_the_nodes_of_memory(capsys, monkeypatch):
    cpu = {"id": "cpu", "name": "C", "backend": "CPU", "isa": "i", "threads": 12, "memory": 1 << 30}
    monkeypatch.setattr("akunu._core.devices", lambda: [{**cpu, "nodes": {0: 8, 1: 4}}])
    assert "cpu: memory nodes 0 (8 cores), 1 (4 cores)\n" in run(capsys, "devices")


def test_bench_of_a_file_and_of_its_synthetic_twin(gguf, capsys):
    args = [
        "-m",
        gguf,
        "--synthetic",
        "stories15m:q8_0",
        "-p",
        "8",
        "-n",
        "4",
        "-pg",
        "4,2",
        "-d",
        "0,32",
        "-r",
        "2",
    ]
    assert bench_main([*args, "-o", "json", "-oe", "md"]) == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    assert len(found) == 12
    of_file, of_twin = found[:6], found[6:]
    for a, b in zip(of_file, of_twin, strict=True):
        for key in ("model_type", "model_size", "model_n_params", "n_prompt", "n_gen", "n_depth"):
            assert a[key] == b[key]
        assert min(*a["samples_ns"], *b["samples_ns"]) > 0
    assert (of_file[0]["load_mode"], of_twin[0]["load_mode"]) == ("mmap", "none")
    assert "15.40 MiB |    15.19 M" in captured.err


def test_bench_goes_beyond_the_context_of_training(gguf, capsys):
    assert bench_main(["-m", gguf, "-p", "300", "-n", "0", "-r", "1", "--no-warmup"]) == 0
    assert "pp300" in capsys.readouterr().out


def test_bench_refuses_a_cache_type_that_the_engine_lacks(gguf, capsys):
    assert bench_main(["-m", gguf, "-p", "4", "-n", "0", "-ctk", "q3_k", "-ctv", "q3_k"]) == 2
    assert "q3_k" in capsys.readouterr().err


def test_the_embedded_model_runs_when_none_is_named(capsys):
    text = run(capsys, "complete", "Once upon a time", "-n", "8", "--seed", "1")
    assert len(text.split()) >= 4


def test_a_conversation_continues_on_its_cache(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("Hello, who are you?\nTell me a story.\n"))
    capsys.readouterr()
    assert main(["chat", "--temperature", "0", "-n", "8", "--stats"]) == 0
    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) >= 2
    first, second = (line for line in captured.err.splitlines() if line.startswith("[prompt"))
    assert "cached" not in first
    assert "cached" in second


@pytest.mark.parametrize("module", ["akunu", "akunu.cli.bench"])
def test_commands_run_as_modules(module):
    done = subprocess.run(
        [sys.executable, "-m", module, "--version"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0
    assert akunu.__version__ in done.stdout
