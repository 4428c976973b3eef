"""The command line of akunu-bench, with an engine that computes nothing."""

from __future__ import annotations

import json
import re
import resource
from pathlib import Path
from types import SimpleNamespace

import click
import pytest

from akunu import _core
from akunu.base.errors import ModelFileError
from akunu.cli.bench import cases, main
from akunu.cli.bench.command import command
from akunu.cli.bench.runner import LoadedModel
from akunu.loading import finding
from akunu.loading.facts import ModelFacts

from .fakes import CPU, FakeEngine


@pytest.fixture
def bench(monkeypatch, capsys):
    """Run `akunu-bench ARGS…`; `bench.loads` lists (model, threads, ubatch, context)."""
    monkeypatch.setattr(_core, "devices", lambda: [CPU])
    loads: list[tuple[str, int, int, int]] = []

    def load(case, context):
        loads.append((case.model, case.n_threads, case.n_ubatch, context))
        return LoadedModel(
            FakeEngine(context), ModelFacts(case.model, "fake 1B Q4_0", 1 << 30, 10**9), 100, CPU
        )

    monkeypatch.setattr(cases, "load_case", load)
    monkeypatch.setattr(finding, "find_model", lambda name: Path(name))

    def run(*args: str) -> SimpleNamespace:
        loads.clear()
        capsys.readouterr()
        status = main(args)
        captured = capsys.readouterr()
        return SimpleNamespace(status=status, out=captured.out, err=captured.err, loads=list(loads))

    return run


def rows_of(markdown: str) -> list[str]:
    return [line.split("|")[-3].strip() for line in markdown.splitlines()[2:] if line.startswith("|")]


def test_rows_of_a_prefill_are_the_device_s_and_a_column_where_they_are_not_llama_benchs(bench, monkeypatch):
    monkeypatch.setitem(CPU, "prompt_rows", 1024)
    ran = bench("-n", "0")
    assert ran.loads == [("ember", 2, 1024, 513)]
    assert "n_ubatch" in ran.out and "1024" in ran.out
    assert bench("-n", "0", "-ub", "64").loads == [("ember", 2, 64, 513)]


def test_the_default_is_llama_benchs_on_the_embedded_model(bench):
    ran = bench()
    assert ran.status == 0
    assert rows_of(ran.out) == ["pp512", "tg128"]
    assert ran.loads == [("ember", 2, 512, 513)]
    assert re.search(r"^\| fake 1B Q4_0 +\| +1.00 GiB \| +1.00 B \| CPU +\| +2 \| +pp512 \|", ran.out, re.M)
    assert re.search(r"\n\nbuild: akunu-[\d.]+ \(\d+\)\n$", ran.out)


@pytest.mark.parametrize("output", ["md", "json", "csv", "sql"])
@pytest.mark.parametrize("where", ["load_case", "find_model"])
def test_an_error_comes_without_a_header_and_before_the_first_test(where, output, bench, monkeypatch):
    def fail(name, *_args):
        if getattr(name, "model", name) == "bad":
            raise ModelFileError("no model 'bad'")
        return LoadedModel(FakeEngine(1000), ModelFacts("a", "fake", 1, 1), 100, CPU)

    monkeypatch.setattr(cases if where == "load_case" else finding, where, fail)
    ran = bench("-m", "bad", "-o", output)
    assert (ran.status, ran.out, ran.err) == (1, "", "akunu-bench: error: no model 'bad'\n")
    if where == "find_model":  # also a bad model behind a good one
        ran = bench("-m", "good,bad", "-o", output)
        assert (ran.status, ran.out, ran.loads) == (1, "", [])


def test_lists_repeats_and_ranges(bench):
    ran = bench("-m", "a,b", "-p", "8,16", "-p", "32", "-n", "0", "-t", "1-2", "-r", "1")
    assert rows_of(ran.out) == ["pp8", "pp16", "pp32"] * 4
    assert [load[:2] for load in ran.loads] == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]


def test_short_forms_of_llama_bench(bench):
    ran = bench(
        "-p8",
        "-n",
        "0",
        "-pg",
        "4,2",
        "-ub",
        "4",
        "-ngl",
        "0",
        "-fa",
        "1",
        "-r",
        "1",
        "-ctk",
        "f16",
        "-ctv",
        "q8_0",
        "-b",
        "8",
    )
    assert ran.status == 0, ran.err
    assert rows_of(ran.out) == ["pp8", "pp4+tg2"]
    assert "ngl" not in ran.out  # on the CPU the table has no such column
    assert "|  fa |" in ran.out


def test_underscores_are_hyphens_in_long_options(bench):
    assert rows_of(bench("--n_prompt", "8", "--n_gen", "0", "--no_warmup").out) == ["pp8"]


def test_underscores_in_values_are_kept(bench, tmp_path):
    ran = bench(
        "--model=my_model.gguf", "--model", "__other", "--cache_type_k=f16", "--n_prompt=8", "-n", "0"
    )
    assert [load[0] for load in ran.loads] == ["my_model.gguf", "__other"]
    path = tmp_path / "a_b.gguf"
    assert bench("--synthetic=stories15m:q4_0", f"--write={path}").status == 0
    assert path.exists()


def test_depth(bench):
    assert rows_of(bench("-p", "8", "-n", "4", "-d", "0,16", "-r", "1").out) == [
        "pp8",
        "tg4",
        "pp8 @ d16",
        "tg4 @ d16",
    ]


def test_both_outputs(bench):
    ran = bench("-p", "8", "-n", "0", "-o", "json", "-oe", "md")
    assert json.loads(ran.out)[0]["n_prompt"] == 8
    assert rows_of(ran.err) == ["pp8"]
    assert bench("-p", "8", "-n", "0", "-o", "none").out == ""


def test_repetitions_and_fields_that_are_constant(bench):
    found = json.loads(bench("-p", "8", "-n", "0", "-r", "3", "-o", "json").out)[0]
    assert len(found["samples_ns"]) == 3
    assert found["cpu_info"] == "Test CPU"
    assert (found["split_mode"], found["poll"], found["main_gpu"]) == ("none", 0, 0)


def test_synthetic_models_come_after_files(bench):
    ran = bench("-m", "a", "--synthetic", "qwen3-0.6b:q4_0,stories15m:q8_0", "-p", "8", "-n", "0")
    assert [load[0] for load in ran.loads] == ["a", "qwen3-0.6b:q4_0", "stories15m:q8_0"]


def test_progress_goes_to_standard_error(bench):
    ran = bench("-p", "8", "-n", "0", "-r", "1", "--progress")
    assert ran.err.splitlines()[0] == "akunu-bench: benchmark 1/1: starting"


def test_list_devices(bench):
    assert bench("--list-devices").out == "Available devices:\n  cpu: Test CPU (1024 MiB)\n"


def test_values_that_describe_what_happens_are_accepted(bench):
    args = "-mmp 1 -sm none -mg 0 --repack 1 -nkvo 0 --poll 0 -embd 0 -fa auto -ngl -1 -dev auto"
    assert bench(*args.split(), "-p", "8", "-n", "0").status == 0


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("-ngl 99", "expected -1 or 0 on the CPU"),
        ("-fa off", "attention is always fused"),
        ("-fa 0", "attention is always fused"),
        ("-ctk q9 -ctv q9", "found 'q9', expected one of f16, f32, q8_0, q4_0"),
        ("-mmp 0", "only 1 is possible: files are memory-mapped"),
        ("-sm layer", "a model runs on one device"),
        ("-ot x=CPU", "it is not supported"),
        ("-hf user/repo", "it is not supported: name the repository with -m USER/REPO[:FILE]"),
        ("-hff x.gguf", "it is not supported: name the file with -m"),
        ("-hft secret", "it is not supported: the Hub's client takes it from the environment"),
        ("--poll 50", "only 0 is possible"),
        ("-C 0x3", "use taskset"),
        ("-p 8-4", "is empty"),
        ("-p x", "expected a number or a range"),
        ("-t 0", "expected at least 1"),
        ("-t 1,2000", "-t: found 2000, expected an integer in [1, 1024]"),
        ("-p 8 -d 0,9999999999", "context: found 10000000008, expected an integer in [1, 2147483647]"),
        (
            "-b 2048,9999999999 -ub 9999999999",
            "-ub: found 9999999999, expected an integer in [1, 2147483647]",
        ),
        ("-b 0", "expected at least 1"),
        ("-pg 512", "expected two numbers"),
        ("-r 0", "-r: found '0', expected an integer in the range x>=1"),
        ("-pg ²,1", "found '²,1', expected two numbers"),
        ("-p ٣", "found '٣', expected a number or a range"),
        ("-m ,", "-m: it is empty"),
        ("-dev ,", "-dev: it is empty"),
        ("-o yaml", "is not one of"),
        ("-p 0 -n 0", "nothing to run"),
        ("--synthetic nonsense:q4_0", "unknown shape 'nonsense'"),
        ("--synthetic qwen3-0.6b:q9", "unknown type 'q9'"),
        ("--write x.gguf", "give one --synthetic"),
        ("--write x.gguf --synthetic stories15m:q8_0 -p 5", "-p has no effect: --write"),
        ("--write x.gguf --synthetic stories15m:q8_0 -r 5", "-r has no effect: --write"),
        ("--write x.gguf --synthetic stories15m:q8_0 -o json", "-o has no effect: --write"),
        ("--write x.gguf --synthetic stories15m:q8_0 --delay 1", "--delay has no effect: --write"),
        ("--write x.gguf --synthetic stories15m:q8_0 --progress", "--progress has no effect: --write"),
        ("--list-devices -p 5", "-p has no effect: --list-devices"),
        ("--delay nan", "found 'nan', expected a number in the range 0<=x<=86400"),
        ("--delay inf", "found 'inf', expected a number in the range 0<=x<=86400"),
        ("--delay -1", "found '-1', expected a number in the range 0<=x<=86400"),
        ("--seed 3", "--seed has no effect without --write"),
        ("-dev metal", "no 'metal' here; there is cpu"),
        ("--verbose-prompt", "no option"),
    ],
)
def test_what_is_not_supported_is_refused_and_nothing_runs(args, message, bench):
    ran = bench(*args.split())
    assert ran.status in (1, 2)
    assert message in " ".join(ran.err.split())
    assert ran.out == ""
    assert ran.loads == []


# The options of llama-bench --help (commit 0c1e570), a name of each.
LLAMA_BENCH = """
--help --version --numa -r --prio --delay -o -oe --list-devices -v --progress --no-warmup -fitt -fitc -m -hf
-hff -hft --offline -p -n -pg -d -b -ub -ctk -ctv -t -C --cpu-strict --poll -ngl -ncmoe -sm -mg -nkvo -fa -dev
-lm -lzm -embd -ts -ot -nopo --no-host --repack
"""
DOCS = Path(__file__).parents[3] / "docs" / "benchmarks.md"


def test_every_option_of_llama_bench_is_here_or_in_the_table_of_what_differs():
    table = DOCS.read_text(encoding="utf-8").partition("What differs")[2].partition("\n\nThe fields")[0]
    documented = set(re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", table))
    options = [option for option in command.params if isinstance(option, click.Option)]
    shown = {flag for option in options if not option.hidden for flag in option.opts} | {"--help"}
    assert set(LLAMA_BENCH.split()) - shown - documented == set()


@pytest.mark.parametrize("name", ["stories15m:q8_0", "whisper-tiny:q8_0"])
def test_a_file_that_cannot_be_finished_leaves_what_was_there(name, bench, tmp_path):
    path = tmp_path / "random.bin"
    path.write_bytes(b"old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, before[1]))
    try:
        ran = bench("--synthetic", name, "--write", str(path))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert ran.status == 1 and "file too large" in ran.err.lower()
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]


def test_write_makes_a_file(bench, tmp_path):
    path = tmp_path / "x.gguf"
    ran = bench("--synthetic", "stories15m:q8_0", "--write", str(path))
    assert ran.status == 0
    assert path.read_bytes()[:4] == b"GGUF"
    assert "16.16 MiB" in ran.err
    assert ran.out == ""


def test_a_speech_model_has_a_table_of_its_own(capsys, monkeypatch):
    from akunu.loading import synthetic_speech as speech
    from akunu.speech.config import WhisperConfig

    small = WhisperConfig(51865, 80, 1500, 32, 2, 1, 448, 2, 1)
    monkeypatch.setattr(speech, "SHAPES", {"whisper-tiny": small})
    assert main(["--synthetic", "whisper-tiny:q8_0", "-r", "1", "-t", "1"]) == 0
    out = capsys.readouterr().out
    assert "8 windows" in out and "whisper-tiny:q8_0" in out
    for args, message in [
        (["--synthetic", "whisper-tiny:q8_0,qwen3-0.6b:q4_0"], "a table of their own"),
        (["-m", "ember,ember-speech"], "a table of their own"),
        (["-m", "ember-speech", "-o", "json"], "-o has no effect: a speech model has no such test"),
        (["-m", "ember-speech", "-dev", "nowhere"], "-dev: no 'nowhere' here"),
        (["--synthetic", "huge:q8_0"], "error: --synthetic: unknown shape 'huge'"),
        (["--synthetic", "whisper-tiny:q8_0", "-p", "5"], "a speech model has no such test"),
        (["--synthetic", "whisper-huge:q8_0"], "expected SHAPE:TYPE of whisper-tiny"),
    ]:
        assert main(args) == 2
        assert message in capsys.readouterr().err


def test_a_speech_model_is_known_by_what_its_name_stands_for(monkeypatch):
    measured = []
    monkeypatch.setattr("akunu.cli.bench.command._run_speech", lambda *given: measured.append(given))
    assert main(["-m", "ember-speech", "-r", "1", "-t", "1,2"]) == 0
    assert measured == [(["ember-speech"], (1, 2), 1)]
