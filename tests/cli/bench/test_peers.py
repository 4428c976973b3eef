"""The comparison with another engine: what counts, how it is summed up, and how a program is observed."""

from __future__ import annotations

import dataclasses
import json
import sys
import time
import xml.etree.ElementTree as ET
from dataclasses import asdict
from pathlib import Path

import pytest

from akunu.base.errors import AkunuError, InvalidArgumentError
from akunu.cli.bench.gguf_file import write_gguf
from akunu.loading.synthetic import SyntheticModel
from bench import measure, peers
from bench.json_file import write_json

MODEL = Path("a.gguf")


def usage(steal: float = 0.0, foreign: float = 0.0) -> measure.Usage:
    return measure.Usage(b"", 2.0, 0.5, 4.0, 1 << 20, steal, foreign)


def peaks(read: float) -> measure.Peaks:
    return measure.Peaks(read, 1.0, 1.0)


@pytest.mark.parametrize(
    ("observed", "before", "after", "objection"),
    [
        (usage(), 30.0, 30.0, ""),
        (usage(0.01, 0.05), 30.0, 24.0, ""),
        (usage(steal=0.02), 30.0, 30.0, "steal 2.0% of the processor time"),
        (usage(foreign=0.5), 30.0, 30.0, "other processes 50.0% of the processor time"),
        (usage(), 30.0, 20.0, "memory bandwidth changed by 33%"),
        (usage(), 20.0, 30.0, "memory bandwidth changed by 33%"),
        (usage(float("nan"), float("nan")), 30.0, 30.0, ""),  # a system that does not tell
    ],
)
def test_a_run_counts_only_on_a_quiet_machine(observed, before, after, objection):
    assert measure.Rule().objection(observed, peaks(before), peaks(after)) == objection


def test_limits_are_parsed():
    assert measure.Rule.parse(measure.LIMITS) == measure.Rule()
    assert measure.Rule.parse("0.5, 1, 0.25") == measure.Rule(0.5, 1.0, 0.25)
    for text in ("", "1", "a,b,c", "1,2,3,4"):
        with pytest.raises(InvalidArgumentError, match="expected three shares"):
            measure.Rule.parse(text)


def test_a_program_is_timed_to_its_first_output_and_its_end():
    code = "import time; x = bytearray(50 << 20); time.sleep(0.2); print('a', flush=True); time.sleep(1)"
    found = measure.run([sys.executable, "-c", code])
    assert found.output == b"a\n"
    assert found.first_output >= 0.2
    assert found.seconds - found.first_output > 0.5  # of a second, if a busy machine sees the output late
    assert found.cpu_seconds > 0
    assert found.max_rss > 50 << 20


def test_the_peak_memory_of_a_program_is_its_own_whatever_its_parent_had():
    ballast = bytearray(300 << 20)
    for at in range(0, len(ballast), 4096):
        ballast[at] = 1
    assert measure.run(["true"]).max_rss < 64 << 20
    assert measure.run([sys.executable, "-c", "bytearray(b'1') * (200 << 20)"]).max_rss > 200 << 20


@pytest.mark.skipif(not measure.STAT.exists(), reason="only Linux tells what other processes used")
def test_the_programs_own_time_is_not_foreign():
    found = measure.run([sys.executable, "-c", "sum(range(20_000_000))"])
    assert 0 <= found.steal <= 1
    # Other processes may run at the same time; together they cannot have had more than all processors.
    assert 0 <= found.foreign <= 1.05


def test_a_program_that_fails_or_is_missing_is_an_error():
    with pytest.raises(AkunuError, match=r"exit status 3: what went wrong"):
        measure.run(
            [sys.executable, "-c", "import sys; print('what went wrong', file=sys.stderr); sys.exit(3)"]
        )
    with pytest.raises(AkunuError, match="no-such-program"):
        measure.run(["/no-such-program"])


@pytest.mark.parametrize(
    "program",
    [
        ["sleep", "30"],
        ["sh", "-c", "echo a; exec sleep 30"],
        ["sh", "-c", "exec >&-; exec sleep 30"],  # no output any more
        ["sh", "-c", "sleep 30 & sleep 30"],  # a child that keeps the output open
        ["sh", "-c", "while :; do echo a; done"],
    ],
)
def test_a_program_that_does_not_end_is_killed(program):
    start = time.monotonic()
    with pytest.raises(AkunuError, match=r"did not end within 0\.3 s"):
        measure.run(program, timeout=0.3)
    assert time.monotonic() - start < 10


def call(
    engine: str, round_: int, rate: float, *, objection: str = "", bandwidth: float = 40e9
) -> peers.Call:
    job = peers.Job(MODEL, 2)
    return peers.Call(engine, job, round_, {"tg8": rate}, bandwidth, objection, 1.0, 1.0, 0.0, 0.0)


CALLS = [
    call("akunu", 0, 20.0),
    call("akunu", 1, 30.0),
    call("akunu", 2, 22.0),
    call("llama.cpp", 0, 10.0),
    call("llama.cpp", 1, 25.0, objection="steal"),
    call("llama.cpp", 1, 12.0),
    call("llama.cpp", 2, 11.0),
]


def test_medians_of_the_runs_that_count():
    (row,) = peers.summarize(CALLS, {(MODEL, "tg8"): 1e9})
    assert row.tokens_per_second == {"akunu": 22.0, "llama.cpp": 11.0}
    assert row.ratio == {"llama.cpp": 2.0}
    assert row.ratio_range == {"llama.cpp": (2.0, 2.5)}
    assert row.gb_per_second == {"akunu": 22.0, "llama.cpp": 11.0}
    assert row.bandwidth_share == {"akunu": 22 / 40, "llama.cpp": 11 / 40}
    assert row.calls == {"akunu": 3, "llama.cpp": 3}


def test_a_row_without_runs_is_empty_not_zero():
    calls = [call("akunu", 0, 20.0), call("llama.cpp", 0, 10.0, objection="steal")]
    rows = peers.summarize(calls, {(MODEL, "tg8"): 0.0})
    headers, (line,) = peers.table(rows)
    assert dict(zip(headers, line, strict=True)) == {
        "model": "a",
        "threads": "2",
        "test": "tg8",
        "akunu t/s": "20.00",
        "llama.cpp t/s": "-",
        "/ llama.cpp": "-",
        "range": "-",
        "akunu GB/s": "-",
        "akunu of bandwidth": "-",
        "llama.cpp GB/s": "-",
        "llama.cpp of bandwidth": "-",
        "runs": "1 + 0",
    }


def test_what_was_not_measured_is_null(tmp_path):
    row = peers.Row("a", 1, "pp8", ratio={"x": float("nan")}, ratio_range={"x": (float("nan"), 1.0)})
    write_json(tmp_path / "r.json", {"rows": [asdict(row)], "path": MODEL, "steal": float("inf")})
    found = json.loads((tmp_path / "r.json").read_text(), parse_constant=pytest.fail)
    assert found["rows"][0]["ratio"] == {"x": None}
    assert found["rows"][0]["ratio_range"] == {"x": [None, 1.0]}
    assert (found["path"], found["steal"]) == ("a.gguf", None)


def test_the_chart_is_well_formed_and_has_a_bar_for_each_ratio():
    rows = peers.summarize(CALLS, {(MODEL, "tg8"): 1e9})
    rows.append(peers.Row("no <runs>", 1, "pp8"))
    root = ET.fromstring(peers.chart(rows, "A & B"))
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[0] == "A & B"
    assert "a  tg8  2 threads  / llama.cpp" in texts
    assert "2.00" in texts
    assert len(list(root.iter("{http://www.w3.org/2000/svg}rect"))) == 2  # background and one bar


@pytest.mark.parametrize(
    ("sizes", "name"),
    [((512, 0, 0), "pp512"), ((0, 128, 4096), "tg128 @ d4096"), ((8, 4, 0), "pp8+tg4")],
)
def test_names_of_tests(sizes, name):
    assert peers.test_name(dict(zip(("n_prompt", "n_gen", "n_depth"), sizes, strict=True))) == name


def test_bytes_of_a_decoded_token(tmp_path):
    path = tmp_path / "m.gguf"
    model = SyntheticModel("stories15m:q8_0")
    write_gguf(model, path)
    weights = sum(tensor.nbytes for tensor in model.tensors)
    kv_row = 6 * 2 * 2 * 6 * 48  # layers, K and V, bytes, heads, head size
    assert peers.bytes_per_token(path, "tg8") == weights + 4 * kv_row
    assert peers.bytes_per_token(path, "tg8 @ d64") == weights + 68 * kv_row
    assert peers.bytes_per_token(path, "pp8") == 0


def test_a_token_reads_the_experts_that_it_uses_and_no_table(tmp_path):
    path = tmp_path / "m.gguf"
    model = SyntheticModel("qwen3-30b-a3b:q8_0")
    sizes = {"expert_count": 8, "expert_used_count": 2, "expert_feed_forward_length": 96}
    model.shape = dataclasses.replace(
        model.shape, n_layers=1, dim=64, n_heads=4, n_kv_heads=2, head_dim=32, vocab_size=300, extra=sizes
    )
    write_gguf(model, path)
    nbytes = {tensor.name: tensor.nbytes for tensor in model.tensors}
    experts = 3 * 8 * 64 * 96 * 34 / 32  # gates, ups and downs of 8, in bytes
    weights = sum(nbytes.values()) - nbytes["token_embd.weight"] - 0.75 * experts
    assert peers.bytes_per_token(path, "tg8") == weights + 4 * 2 * 2 * 2 * 32


@pytest.fixture
def steady(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine's peaks are measured before and after each call, seconds each time."""
    monkeypatch.setattr(peers, "probe", lambda threads: peaks(30.0))


def test_the_peaks_of_this_machine_are_measured():
    found = measure.probe(1)
    assert found.read_bytes > 0 and found.f32_flops > 0 and found.int8_ops > 0


PEER = """
import json, sys
arguments = sys.argv[1:]
options = dict(zip(arguments[::2], arguments[1::2]))
assert options["-o"] == "json"
results = [{"n_prompt": int(options["-p"]), "n_gen": 0, "n_depth": 0, "samples_ts": [5.0, 7.0]},
           {"n_prompt": 0, "n_gen": int(options["-n"]), "n_depth": 0, "samples_ts": [1.0, 3.0]}]
print(json.dumps(results))
"""


def test_both_engines_run_on_the_same_file(steady, tmp_path, capsys):
    peer = tmp_path / "llama-bench"
    peer.write_text(f"#!{sys.executable}\n{PEER}")
    peer.chmod(0o755)
    report, chart = tmp_path / "r.json", tmp_path / "r.svg"
    args = [
        "--peer",
        f"llama.cpp={peer}",
        "--peer",
        f"other={peer} -rtr 1",
        "--synthetic",
        "stories15m:q8_0",
        "--folder",
        str(tmp_path),
        "-t",
        "1",
    ]
    args += ["-p", "8", "-n", "4", "--rounds", "2", "-r", "1", "--limits", "9,9,9"]
    assert (
        peers.run_command(peers.command, "peers.py", [*args, "--json", str(report), "--svg", str(chart)]) == 0
    )
    out = capsys.readouterr().out
    assert "pp8" in out
    assert "tg4" in out
    rows = {row["test"]: row for row in json.loads(report.read_text())["rows"]}
    assert rows["pp8"]["tokens_per_second"]["llama.cpp"] == 6.0
    assert rows["tg4"]["tokens_per_second"]["llama.cpp"] == 2.0
    assert rows["tg4"]["tokens_per_second"]["akunu"] > 0
    assert rows["tg4"]["calls"] == {"akunu": 2, "llama.cpp": 2, "other": 2}
    assert set(rows["tg4"]["ratio"]) == {"llama.cpp", "other"}
    assert len(json.loads(report.read_text())["calls"]) == 6
    assert ET.fromstring(chart.read_text()).tag.endswith("svg")


def test_a_busy_machine_gives_no_figures_and_status_1(steady, tmp_path, capsys):
    peer = tmp_path / "llama-bench"
    peer.write_text(f"#!{sys.executable}\n{PEER}")
    peer.chmod(0o755)
    args = [
        "--peer",
        f"llama.cpp={peer}",
        "--synthetic",
        "stories15m:q8_0",
        "--folder",
        str(tmp_path),
        "-t",
        "1",
    ]
    args += ["-p", "8", "-n", "4", "--rounds", "1", "-r", "1", "--limits", "-1,9,9", "--retries", "1"]
    args += ["--json", str(tmp_path / "r.json")]
    assert peers.run_command(peers.command, "peers.py", args) == 1
    captured = capsys.readouterr()
    assert "no run that counts" in captured.err
    assert "4 runs, 4 discarded" in captured.err
    rows = json.loads((tmp_path / "r.json").read_text(), parse_constant=pytest.fail)["rows"]
    assert [row["ratio"] for row in rows] == [{}, {}]


def test_peers_have_names_of_their_own():
    found = peers.parse_peers(["a=/x/bench", "b=bench -rtr 1"])
    assert found == {"a": ["/x/bench"], "b": ["bench", "-rtr", "1"]}
    for texts in (["bench"], ["=bench"], ["a="], ["akunu=bench"], ["a=x", "a=y"]):
        with pytest.raises(InvalidArgumentError, match="expected NAME=PATH"):
            peers.parse_peers(texts)


def test_wrong_usage(capsys):
    assert peers.run_command(peers.command, "peers.py", ["--peer", "l=x", "-t", "1"]) == 2
    assert peers.run_command(peers.command, "peers.py", ["--peer", "l=x", "-t", "0"]) == 2
    synthetic = ["--peer", "l=x", "-t", "1", "--synthetic", "stories15m:q8_0"]
    assert peers.run_command(peers.command, "peers.py", synthetic) == 2
    assert "--synthetic needs --folder" in capsys.readouterr().err
