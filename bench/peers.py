"""Akunu beside llama.cpp and programs like it, on the same files, in the same minutes.

    python -m bench.peers --peer llama.cpp=/path/to/llama-bench model.gguf -t 1,2
    python -m bench.peers --peer llama.cpp=… --peer "ik_llama.cpp=/path/to/its/llama-bench -rtr 1" \
        --synthetic qwen3-0.6b:q4_0,llama3.2-1b:q4_k_m --folder /tmp/models -t 2

A peer takes llama-bench's options and prints its JSON. In each round the models come in random order, and
for each the engines run one right after the other, in random order, each a process of its own. A run counts
only if the machine was quiet (`measure.Rule`); one that does not is repeated. The table gives medians over
the rounds.
"""

from __future__ import annotations

import json
import random
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Final
from xml.sax.saxutils import escape

import click

from akunu.base.errors import AkunuError, InvalidArgumentError
from akunu.cli.app import CONTEXT_SETTINGS
from akunu.cli.app import run as run_command
from akunu.cli.bench.params import parse_ints
from akunu.cli.console import note, print_table
from bench.json_file import write_json
from bench.measure import LIMITS, Rule, probe, run
from bench.options import rounds_option

AKUNU: Final = "akunu"


def parse_peers(texts: Sequence[str]) -> dict[str, list[str]]:
    """Programs and their arguments by name, from "NAME=PATH ARGUMENT…"."""
    found: dict[str, list[str]] = {}
    for text in texts:
        name, separator, command = text.partition("=")
        if not separator or not name or not command.strip() or name in (AKUNU, *found):
            raise InvalidArgumentError(
                f"peer: found {text!r}, expected NAME=PATH, where NAME is new and not {AKUNU!r}"
            )
        found[name] = shlex.split(command)
    return found


@dataclass(frozen=True)
class Job:
    """One model at one number of threads; all engines run all of its tests."""

    model: Path
    threads: int


@dataclass(frozen=True)
class Call:
    """One process: one engine, one job, all tests."""

    engine: str
    job: Job
    round: int
    tokens_per_second: dict[str, float]
    """By test; the median of its repetitions."""
    bandwidth: float
    """Bytes a second, the mean of the probes before and after."""
    objection: str
    """Why it does not count; empty when it does."""
    seconds: float
    cpu_share: float
    """Processor time over wall time and threads."""
    steal: float
    foreign: float


@dataclass
class Row:
    """One line of the result."""

    model: str
    threads: int
    test: str
    tokens_per_second: dict[str, float] = field(default_factory=dict)
    gb_per_second: dict[str, float] = field(default_factory=dict)
    bandwidth_share: dict[str, float] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)
    ratio: dict[str, float] = field(default_factory=dict)
    """Akunu's over a peer's."""
    ratio_range: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Least and largest ratio of two runs of the same round: what straddles 1 is not resolved."""


def run_call(
    engine: str, program: Sequence[str], job: Job, options: Sequence[str], round_: int, rule: Rule
) -> Call:
    """Run one engine on one job, with a probe of the machine right before and right after."""
    before = probe(job.threads)
    usage = run([*program, "-m", str(job.model), "-t", str(job.threads), *options, "-o", "json"])
    after = probe(job.threads)
    results = json.loads(usage.output)
    return Call(
        engine=engine,
        job=job,
        round=round_,
        tokens_per_second={test_name(result): median(result["samples_ts"]) for result in results},
        bandwidth=(before.read_bytes + after.read_bytes) / 2,
        objection=rule.objection(usage, before, after),
        seconds=usage.seconds,
        cpu_share=usage.cpu_seconds / usage.seconds / job.threads,
        steal=usage.steal,
        foreign=usage.foreign,
    )


def test_name(result: dict[str, Any]) -> str:
    """ "tg128 @ d4096" and so on, from a result of any engine."""
    parts = [f"{kind}{result[key]}" for kind, key in (("pp", "n_prompt"), ("tg", "n_gen")) if result[key]]
    return "+".join(parts) + (f" @ d{result['n_depth']}" if result.get("n_depth") else "")


def bytes_per_token(model: Path, test: str) -> float:
    """Bytes that a decoded token must read: weights once, and keys and values up to the mean position.

    Of experts that choose, those that a token uses; of tables of embeddings, no more than a row. 0 for a
    test that is not pure generation, where the bytes of a token are not defined.
    """
    from akunu import _core
    from akunu.files.describe.blocks import Attention
    from akunu.files.describe.gguf_config import resolve

    name, _, depth = test.partition(" @ d")
    if not name.startswith("tg"):
        return 0.0
    file = _core.GgufFile(str(model))
    config = resolve(file).config
    tables = {"per_layer_token_embd.weight"}
    if any(tensor.name == "output.weight" for tensor in file.tensors):
        tables.add("token_embd.weight")
    prefix = file.metadata["general.architecture"]
    used = file.get(f"{prefix}.expert_used_count", 1) / (file.get(f"{prefix}.expert_count", 0) or 1)
    weights = sum(
        tensor.nbytes * (used if "_exps." in tensor.name else 1)
        for tensor in file.tensors
        if tensor.name not in tables
    )
    position = int(depth or 0) + int(name.removeprefix("tg")) / 2
    return weights + sum(
        2 * 2 * each.n_kv_heads * each.head_dim * min(position, each.window or position)  # K and V, two bytes
        for each in config.mixers(Attention)
    )


def summarize(calls: Sequence[Call], sizes: dict[tuple[Path, str], float]) -> list[Row]:
    """Medians of the calls that count.

    Parameters
    ----------
    calls
        All of them.
    sizes
        `bytes_per_token` by model and test.
    """
    rows: list[Row] = []
    engines = list(dict.fromkeys([AKUNU, *(call.engine for call in calls)]))
    for job in dict.fromkeys(call.job for call in calls):
        of_job = [call for call in calls if call.job == job]
        for test in of_job[0].tokens_per_second:
            row = Row(job.model.stem, job.threads, test)
            by_round: dict[str, dict[int, float]] = {}
            for engine in engines:
                valid = [call for call in of_job if call.engine == engine and not call.objection]
                row.calls[engine] = len(valid)
                if not valid:
                    continue
                by_round[engine] = {call.round: call.tokens_per_second[test] for call in valid}
                row.tokens_per_second[engine] = median(by_round[engine].values())
                size = sizes[job.model, test]
                row.gb_per_second[engine] = row.tokens_per_second[engine] * size / 1e9
                row.bandwidth_share[engine] = median(
                    call.tokens_per_second[test] * size / call.bandwidth for call in valid
                )
            ours = by_round.pop(AKUNU, {})
            for peer, theirs in by_round.items():
                if not ours:
                    break
                row.ratio[peer] = row.tokens_per_second[AKUNU] / row.tokens_per_second[peer]
                ratios = [ours[n] / theirs[n] for n in ours if n in theirs]
                if ratios:
                    row.ratio_range[peer] = (min(ratios), max(ratios))
            rows.append(row)
    return rows


def table(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """Headings and cells."""

    def cell(values: dict[str, float], engine: str, text: str) -> str:
        value = values.get(engine)
        return text.format(value) if value else "-"

    engines = list(dict.fromkeys(engine for row in rows for engine in row.calls))
    peers = [engine for engine in engines if engine != AKUNU]
    headers = ["model", "threads", "test", *(f"{engine} t/s" for engine in engines)]
    for peer in peers:
        headers += [f"/ {peer}", "range"]
    headers += [f"{engine} {unit}" for engine in engines for unit in ("GB/s", "of bandwidth")] + ["runs"]
    lines = []
    for row in rows:
        line = [row.model, str(row.threads), row.test]
        line += [cell(row.tokens_per_second, engine, "{:.2f}") for engine in engines]
        for peer in peers:
            low, high = row.ratio_range.get(peer, (0.0, 0.0))
            line += [cell(row.ratio, peer, "{:.2f}"), f"{low:.2f}-{high:.2f}" if high else "-"]
        for engine in engines:
            line += [cell(row.gb_per_second, engine, "{:.1f}"), cell(row.bandwidth_share, engine, "{:.0%}")]
        line.append(" + ".join(str(row.calls[engine]) for engine in engines))
        lines.append(line)
    return headers, lines


def chart(rows: Sequence[Row], title: str) -> str:
    """An SVG with a bar for each ratio, and a line where the engines are equal."""
    shown = [(row, peer) for row in rows for peer in row.ratio]
    left, width, height, top = 440, 460, 22, 60
    scale = width / max([1.5, *(high for row in rows for _, high in row.ratio_range.values())])
    bottom = top + height * len(shown)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 80}" height="{bottom + 40}" '
        'font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="16" y="24" font-size="15" font-weight="bold">{escape(title)}</text>',
        '<text x="16" y="42" fill="#555">tokens per second, akunu over the other; line: range</text>',
    ]
    for index, (row, peer) in enumerate(shown):
        y = top + index * height
        threads = f"{row.threads} thread{'s' if row.threads > 1 else ''}"
        label = escape(f"{row.model}  {row.test}  {threads}  / {peer}")
        ratio = row.ratio[peer]
        colour = "#2a9d5c" if ratio >= 1 else "#c8553d"
        low, high = (left + scale * value for value in row.ratio_range.get(peer, (ratio, ratio)))
        parts += [
            f'<text x="{left - 8}" y="{y + 15}" text-anchor="end">{label}</text>',
            f'<rect x="{left}" y="{y + 4}" width="{scale * ratio:.1f}" height="14" fill="{colour}"/>',
            f'<line x1="{low:.1f}" x2="{high:.1f}" y1="{y + 11}" y2="{y + 11}" stroke="black"/>',
            f'<text x="{left + width + 8}" y="{y + 15}">{ratio:.2f}</text>',
        ]
    x = left + scale
    parts.append(
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top - 6}" y2="{bottom}" stroke="#333" stroke-dasharray="4 3"/>'
    )
    parts.append(f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">1.0</text>')
    return "\n".join([*parts, "</svg>\n"])


def write_synthetic(names: Sequence[str], folder: Path | None) -> list[Path]:
    """Files of random weights, made where they are missing."""
    if names and folder is None:
        raise click.UsageError("--synthetic needs --folder, where the files go")
    from akunu.cli.bench.gguf_file import write_gguf
    from akunu.loading.synthetic import SyntheticModel

    paths = []
    for name in names:
        assert folder is not None
        path = folder / (name.replace(":", "-") + ".gguf")
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            partial = path.with_suffix(".part")
            write_gguf(SyntheticModel(name), partial)
            partial.rename(path)
        paths.append(path)
    return paths


def measure(
    jobs: Sequence[Job],
    programs: Mapping[str, Sequence[str]],
    options: Sequence[str],
    *,
    rounds: int,
    retries: int,
    seed: int,
    rule: Rule,
) -> list[Call]:
    """All calls, those that do not count included."""
    calls: list[Call] = []
    order = random.Random(seed)
    for round_ in range(rounds):
        for job in order.sample(list(jobs), len(jobs)):
            for engine in order.sample(list(programs), len(programs)):
                for _attempt in range(retries + 1):
                    call = run_call(engine, programs[engine], job, options, round_, rule)
                    calls.append(call)
                    rates = ", ".join(f"{test} {rate:.1f}" for test, rate in call.tokens_per_second.items())
                    verdict = f"discarded: {call.objection}" if call.objection else "counts"
                    note(
                        f"round {round_ + 1}: {job.model.stem}, {job.threads} threads, {engine}: "
                        f"{rates} ({verdict})"
                    )
                    if not call.objection:
                        break
    return calls


@click.command(context_settings=CONTEXT_SETTINGS)
@click.argument("models", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--peer", "peers", multiple=True, required=True, metavar="NAME=PATH",
              help="A program like llama-bench, with its own arguments if need be; repeatable.")  # fmt: skip
@click.option("--synthetic", default="", metavar="SHAPE:TYPE,…", help="Also files of random weights.")
@click.option("--folder", type=click.Path(path_type=Path), metavar="DIR", help="Where these files are or go.")
@click.option("-p", "n_prompt", default="512", show_default=True, metavar="LIST", help="Prompt lengths.")
@click.option("-n", "n_gen", default="128", show_default=True, metavar="LIST", help="Tokens to generate.")
@click.option("-d", "n_depth", default="0", show_default=True, metavar="LIST", help="Depths.")
@click.option("-t", "threads", required=True, metavar="LIST", help="Thread counts.")
@click.option(
    "-r", "repetitions", default=2, show_default=True, metavar="N", help="Repetitions in a process."
)
@rounds_option(5)
@click.option("--retries", type=click.IntRange(min=0), default=3, show_default=True, metavar="N",
              help="How often a run that does not count is repeated.")  # fmt: skip
@click.option("--limits", default=LIMITS, show_default=True, metavar="A,B,C",
              help="Discard a run beyond these shares: steal, other processes, drift.")  # fmt: skip
@click.option("--seed", default=0, show_default=True, metavar="N", help="Of the random order.")
@click.option(
    "--json", "json_path", type=click.Path(path_type=Path), metavar="FILE", help="Write every call here."
)
@click.option(
    "--svg", "svg_path", type=click.Path(path_type=Path), metavar="FILE", help="Draw the ratios here."
)
def command(
    models: tuple[Path, ...],
    peers: tuple[str, ...],
    synthetic: str,
    folder: Path | None,
    n_prompt: str,
    n_gen: str,
    n_depth: str,
    threads: str,
    repetitions: int,
    rounds: int,
    retries: int,
    limits: str,
    seed: int,
    json_path: Path | None,
    svg_path: Path | None,
) -> None:
    """Compare Akunu with llama.cpp, or what is like it, on the same GGUF files.

    \b
    Example:
      python -m bench.peers --peer llama.cpp=llama-bench model.gguf -t 1,2 --svg peers.svg
    """
    try:
        counts = parse_ints(threads, low=1)
    except InvalidArgumentError as error:
        raise click.BadParameter(str(error), param_hint="-t") from error
    rule = Rule.parse(limits)
    programs = {AKUNU: [sys.executable, "-m", "akunu.cli.bench"], **parse_peers(peers)}
    paths = [*models, *write_synthetic([name for name in synthetic.split(",") if name], folder)]
    if not paths:
        raise click.UsageError("give a model, or --synthetic")
    options = ["-p", n_prompt, "-n", n_gen, "-r", str(repetitions)]
    if n_depth != "0":  # which ik_llama.cpp does not have
        options += ["-d", n_depth]
    jobs = [Job(path, count) for path in paths for count in counts]
    calls = measure(jobs, programs, options, rounds=rounds, retries=retries, seed=seed, rule=rule)
    sizes = {(call.job.model, test): 0.0 for call in calls for test in call.tokens_per_second}
    rows = summarize(calls, {key: bytes_per_token(*key) for key in sizes})
    headers, lines = table(rows)
    print_table(headers, lines, right="  " + "r" * (len(headers) - 2))
    discarded = sum(bool(call.objection) for call in calls)
    note(f"[{len(calls)} runs, {discarded} discarded by {rule}]")
    if json_path is not None:
        report = {
            "rule": asdict(rule),
            "options": options,
            "rows": [asdict(row) for row in rows],
            "calls": [asdict(call) for call in calls],
        }
        write_json(json_path, report)
    if svg_path is not None:
        svg_path.write_text(chart(rows, f"Akunu and {', '.join(list(programs)[1:])}"))
    if any(not count for row in rows for count in row.calls.values()):
        raise AkunuError("some rows have no run that counts; the machine is too busy to measure")


if __name__ == "__main__":
    sys.exit(run_command(command, "python -m bench.peers"))
