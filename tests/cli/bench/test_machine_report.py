"""`akunu report`: mistakes are named, speeds stand beside predictions, and what was measured is not lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from akunu import _core
from akunu.base.errors import DeviceError
from akunu.cli import main
from akunu.cli.bench import kernels, machine_report
from akunu.cli.bench.kernels import Timed
from akunu.cli.cost_model import known_chip
from akunu.loading.engines import find_device

CPU = find_device("cpu")
FEW = ("f32", "q4_0", "q4_k")


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some types, and one timing."""

    def timings(_lab: _core.Lab, _repeats: int) -> Iterator[Timed]:
        yield Timed("matmul q4_0, 1 row", 1e-3, 2e6, 4e6)

    monkeypatch.setattr(kernels, "TYPES", FEW)
    monkeypatch.setattr(kernels, "timings", timings)


def collect(models: tuple[str, ...] = (), **options: Any) -> machine_report.Report:
    log: list[str] = []
    settings = {"repeats": 1, "log": log.append, "rewrite": lambda _report: None}
    return machine_report.collect(CPU, models, **(settings | options))


@pytest.mark.usefixtures("short")
def test_the_cpu_makes_no_mistakes() -> None:
    report = collect()
    assert report["mistakes"] == []
    checked = {row["name"]: row["error"] for row in report["kernels"]}
    assert len(checked) == len(FEW) * (6 + 3 + 1) + 4 * 4 + 2
    assert all(error is not None for name, error in checked.items() if not name.startswith("norm_qkv"))
    assert checked["norm_qkv q4_0"] is None  # the CPU has it as commands of their own
    assert report["speed"][0]["bytes_per_second"] == pytest.approx(2e9)
    assert report["peak_bytes_per_second"] > 1e9


@pytest.mark.usefixtures("short")
def test_a_wrong_kernel_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(kernels, "_silu", lambda x: x / (1 + np.exp(-1.3 * x)))
    monkeypatch.setattr(machine_report, "MODELS", ())
    path = tmp_path / "report.md"
    assert main(["report", "--device", "cpu", "-o", str(path), "--repeats", "1"]) == 1
    shown = capsys.readouterr()
    assert "gate_up q4_0, 5 rows: error" in shown.out and "matmul q4_0" in shown.out
    assert "kernels: 48 checked, 9 wrong" in shown.err
    text = path.read_text()
    data = json.loads(text.split("```json\n")[1].split("\n```")[0])
    assert len(data["mistakes"]) == 9 and data["about"]["device"] == "cpu"


@pytest.mark.usefixtures("short")
def test_a_model_is_measured_and_one_that_fails_is_told_of(tmp_path: Path) -> None:
    report = collect(("ember", "smollm-135m:q9"))
    ember, unknown = report["models"]
    assert ember["pp256"] > 0 and ember["tg128"] > 0 and "same_tokens" not in ember
    assert "q9" in unknown["error"] and report["mistakes"] == [f"smollm-135m:q9: {unknown['error']}"]
    text = machine_report.as_markdown(report)
    assert "| ember | pp256 |" in text and "| smollm-135m:q9 | failed |" in text


@pytest.mark.usefixtures("short")
def test_what_was_measured_before_a_failure_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    def timings(_lab: _core.Lab, _repeats: int) -> Iterator[Timed]:
        raise DeviceError("the GPU failed")
        yield

    monkeypatch.setattr(kernels, "timings", timings)
    texts: list[str] = []
    with pytest.raises(DeviceError, match="the GPU failed"):
        collect(rewrite=lambda report: texts.append(machine_report.as_markdown(report)))
    assert "None in 48 kernels' results." in texts[-1]


@pytest.mark.parametrize(
    ("device", "name", "cores"),
    [
        ("Apple M4 Max (32 GPU cores)", "M4 Max", 32),
        ("Apple M1", "M1", 8),
        ("Apple M3 Ultra (60 GPU cores)", "M3 Ultra", 60),
    ],
)
def test_a_device_s_name_says_its_chip_and_cores(device: str, name: str, cores: int) -> None:
    chip = known_chip(device)
    assert chip is not None and (chip["name"], chip["gpu_cores"]) == (name, cores)  # type: ignore[typeddict-item]
    described = machine_report._machine({**CPU, "name": device})
    assert described is not None and described["chip"] == f"{name} {cores}"


@pytest.mark.parametrize("device", ["Apple M99", "AMD EPYC", "", "Apple Max", "Apple M4 Max (99 GPU cores)"])
def test_other_names_are_of_no_known_chip(device: str) -> None:
    assert known_chip(device) is None


def test_predictions_are_those_of_the_cost_model() -> None:
    found = dict(machine_report._predicted("qwen3-0.6b:q4_0", "M4 Max 40", 512))
    assert found.keys() == {"pp512", "tg128"} and 200 < found["tg128"] < found["pp512"]


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["--device", "metal7"], "metal7"),
        (["-o", "."], "is a directory"),
    ],
)
def test_what_cannot_be_done_is_said(args: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", *args]) != 0
    assert text in capsys.readouterr().err


def test_a_file_that_is_there_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "report.md"
    path.write_text("mine")
    assert main(["report", "--device", "cpu", "-o", str(path)]) == 2
    assert "replace it with -f" in capsys.readouterr().err
    assert path.read_text() == "mine"
