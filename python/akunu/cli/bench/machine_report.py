"""Measure what one machine does with Akunu: kernels' mistakes and speed, and models' speed.

A report is a dictionary, so that programs can read its parts; `as_markdown` is the same for people, with the
dictionary behind it. Parts are measured in the report's order.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from statistics import mean
from typing import TYPE_CHECKING, Any, Final

from akunu.base.errors import AkunuError
from akunu.cli.cost_model import Machine, known_chip, predict

if TYPE_CHECKING:
    from akunu._core import DeviceInfo

__all__ = ["MODELS", "as_markdown", "collect"]

MODELS: Final = ("ember", "qwen3-0.6b:q4_0", "llama3.2-1b:q4_k_m")
"""A built-in model, and random weights of two published shapes."""

_PROMPT, _TOKENS = 512, 128
"""The tests of a model: a prompt of so many tokens, and so many generated (llama-bench's pp512 and tg128)."""
_SAME: Final = 32
"""Tokens that the device and the CPU must both choose."""

Log = Callable[[str], None]
Report = dict[str, Any]


def collect(
    device: DeviceInfo, models: Sequence[str], *, repeats: int, log: Log, rewrite: Callable[[Report], None]
) -> Report:
    """Measure.

    Parameters
    ----------
    device
        Where.
    models
        Built-in ones, files, or SHAPE:TYPE.
    repeats
        Runs of each timing; the median, or the mean of a model's, counts.
    log
        Is told what runs.
    rewrite
        Is given the report after each part, so that nothing is lost where a later part fails.
    """
    report: Report = {"about": _about(device), "machine": _machine(device)}
    report["mistakes"], report["kernels"], report["speed"], report["models"] = [], [], [], []
    rewrite(report)
    _check_kernels(device, report, log)
    rewrite(report)
    _time_kernels(device, report, repeats, log)
    rewrite(report)
    for model in models:
        log(f"{model}: a prompt of {_PROMPT} tokens, and {_TOKENS} generated")
        try:
            report["models"].append(_measure(device, model, report["machine"], repeats))
        except AkunuError as error:
            report["models"].append({"model": model, "error": str(error)})
            report["mistakes"].append(f"{model}: {error}")
        rewrite(report)
    return report


def _about(device: DeviceInfo) -> dict[str, Any]:
    from akunu.base.version import __version__

    system = platform.mac_ver()[0] or platform.release()
    return {
        "akunu": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {system} on {platform.machine()}",
        "device": device["id"],
        "name": device["name"],
        "isa": device["isa"],
        "memory": device["memory"],
    }


def _machine(device: DeviceInfo) -> dict[str, Any] | None:
    """Figures of the chip's data sheet, and of what kernels are predicted to reach; None: it is not known."""
    chip = known_chip(device["name"])
    if chip is None:
        return None
    cores = dict(chip).get("gpu_cores")
    name = f"{chip['name']} {cores}" if cores else chip["name"]
    return {"chip": name} | asdict(Machine.named(name))


def _check_kernels(device: DeviceInfo, report: Report, log: Log) -> None:
    from akunu import _core
    from akunu.cli.bench.kernels import checks

    lab = _core.Lab(device["id"])
    for number, found in enumerate(checks(lab), 1):
        if number % 20 == 0:
            log(f"kernels: {number} checked, the last one {found.name}")
        report["kernels"].append(asdict(found) | {"wrong": found.wrong})
        if found.wrong:
            report["mistakes"].append(
                f"{found.name}: error {found.error:.3g}, at most {found.bound:.3g} is rounding"
            )
    log(f"kernels: {len(report['kernels'])} checked, {len(report['mistakes'])} wrong")


def _time_kernels(device: DeviceInfo, report: Report, repeats: int, log: Log) -> None:
    from akunu import _core
    from akunu.cli.bench.kernels import timings

    machine = report["machine"]
    peaks = _core.measure_peaks() if device["backend"] == "CPU" else None
    peak = peaks["read_bytes_per_second"] if peaks else machine["bytes_per_second"] if machine else None
    report["peak_bytes_per_second"] = peak
    lab = _core.Lab(device["id"])
    for found in timings(lab, repeats):
        log(f"{found.name}: {found.seconds * 1e6:.1f} us")
        row = asdict(found) | {"bytes_per_second": found.bytes / found.seconds if found.seconds else 0.0}
        row["flops_per_second"] = found.flops / found.seconds if found.seconds else 0.0
        row["share"] = row["bytes_per_second"] / peak if peak else None
        report["speed"].append(row)


def _measure(device: DeviceInfo, model: str, machine: dict[str, Any] | None, repeats: int) -> Report:
    from akunu.cli.bench.cases import load_case
    from akunu.cli.bench.params import DEFAULTS, list_cases
    from akunu.cli.bench.runner import run_cases

    given = replace(
        DEFAULTS,
        models=(model,),
        devices=(device["id"],),
        n_prompt=(_prompt_of(model),),
        n_gen=(_TOKENS,),
        n_ubatch=(device["prompt_rows"],),
        n_threads=(device["threads"],),
    )
    cases = list(list_cases(given))
    results = run_cases(cases, load_case, repetitions=repeats, warmup=True, delay=0, log=lambda _text: None)
    found: Report = {"model": model}
    for result in results:
        found[result.case.name] = mean(result.samples_ts)
    if machine is not None:
        found["predicted"] = dict(_predicted(model, machine["chip"], cases[0].n_prompt))
    if device["backend"] != "CPU":
        found["same_tokens"] = _same_tokens(device, model)
    return found


def _prompt_of(model: str) -> int:
    """Return how many tokens the measured prompt has: no more than the built-in model has room for."""
    return 256 if model == "ember" else _PROMPT


def _predicted(model: str, chip: str, n_prompt: int) -> Iterator[tuple[str, float]]:
    """Tokens per second that the cost model expects, of the middle of each test."""
    from akunu.loading.engines import open_engine

    machine = Machine.named(chip)
    with open_engine(model, device=f"plan:{chip}", context=n_prompt + _TOKENS) as opened:
        prompt = predict(opened.engine.plan("prefill", n_prompt, 0), n_prompt, machine)
        yield f"pp{n_prompt}", prompt.tokens_per_second
        token = predict(opened.engine.plan("decode", 1, _TOKENS // 2), 1, machine)
        yield f"tg{_TOKENS}", token.tokens_per_second


def _same_tokens(device: DeviceInfo, model: str) -> int:
    """Count the first tokens after a short prompt that the CPU chooses as well."""
    texts = [_greedy(name, model) for name in (device["id"], "cpu")]
    same = [a == b for a, b in zip(*texts, strict=True)]
    return same.index(False) if False in same else len(same)


def _greedy(device: str, model: str) -> list[int]:
    from akunu.cli.bench.one_sequence import OneSequence
    from akunu.loading.engines import open_engine

    with open_engine(model, device=device, context=128) as opened:
        sequence = OneSequence(opened.engine)
        sequence.begin([1, 2, 3, 4, 5], temperature=0.0, end_ids=())
        remaining, chunk = sequence.prefill()
        while remaining:
            remaining, chunk = sequence.prefill()
        ids = list(chunk.ids)
        while len(ids) < _SAME:
            more = sequence.decode(_SAME - len(ids))
            if more is None or not more.ids:
                break
            ids += more.ids
        return (ids + [-1] * _SAME)[:_SAME]


# ---- the text --------------------------------------------------------------------------------------


def as_markdown(report: Report) -> str:
    """The report for people, and at its end as JSON for programs."""
    about = report["about"]
    lines = [f"# Akunu on {about['name']}", ""]
    lines += [f"- {name}: {value}" for name, value in about.items()]
    machine, peak = report["machine"], report.get("peak_bytes_per_second")
    if machine is not None:
        lines.append(
            f"- data sheet: {machine['bytes_per_second'] / 1e9:.0f} GB/s, "
            f"{machine['flops'] / 1e12:.1f} TFLOP/s in half precision"
        )
    elif peak:
        lines.append(f"- reads {peak / 1e9:.1f} GB/s, measured")
    kernels = report["kernels"]
    missing = [row["name"] for row in kernels if row["error"] is None]
    lines += ["", "## Mistakes", ""]
    lines += [f"- {text}" for text in report["mistakes"]] or [f"None in {len(kernels)} kernels' results."]
    if missing:
        lines += ["", f"Kernels that the device does not have: {', '.join(missing)}."]
    lines += ["", "## Kernels' speed", ""]
    rows = [
        [
            row["name"],
            f"{row['seconds'] * 1e6:.1f}",
            f"{row['bytes_per_second'] / 1e9:.1f}",
            "" if row["share"] is None else f"{row['share']:.0%}",
            f"{row['flops_per_second'] / 1e9:.0f}",
        ]
        for row in report["speed"]
    ]
    lines += _table(["kernel", "us", "GB/s", "of bandwidth", "GFLOP/s"], rows)
    lines += ["", "## Models", ""]
    lines += _table(["model", "test", "tokens/s", "predicted", "measured over predicted"], _models(report))
    for row in report["models"]:
        if "same_tokens" in row:
            lines.append(f"\n{row['model']}: {row['same_tokens']} of {_SAME} tokens are the CPU's.")
    lines += ["", "## As data", "", "```json", json.dumps(_finite(report)), "```", ""]
    return "\n".join(lines)


def _models(report: Report) -> list[list[str]]:
    rows = []
    for row in report["models"]:
        predicted = row.get("predicted", {})
        for name, speed in row.items():
            if not name.startswith(("pp", "tg")):
                continue
            expected = predicted.get(name)
            beside = ["", ""] if not expected else [f"{expected:.1f}", f"{speed / expected:.2f}"]
            rows.append([row["model"], name, f"{speed:.1f}", *beside])
        if "error" in row:
            rows.append([row["model"], "failed", "", "", ""])
    return rows


def _table(headers: list[str], rows: list[list[str]]) -> list[str]:
    return [f"| {' | '.join(line)} |" for line in (headers, ["---"] * len(headers), *rows)]


def _finite(value: Any) -> Any:
    """JSON has no infinity: an infinite error is null, and its kernel is among the mistakes."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and value in (float("inf"), float("-inf")) else value
