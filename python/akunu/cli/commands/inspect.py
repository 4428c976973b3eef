"""`akunu inspect`: what is in a model file, and what the engine makes of it."""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from akunu.base.errors import AkunuError, UnsupportedError
from akunu.base.memory import Memory, bytes_text
from akunu.cli.app import CONTEXT_SETTINGS, Command
from akunu.cli.console import count_text, print_table, visible
from akunu.cli.cost_model import Machine, Prediction, predict
from akunu.cli.options import loading_options, refuse_unused
from akunu.cli.phases import PHASE_OPTIONS, TableOptions, phase_options
from akunu.cli.tables import find_or_explain, is_random, open_table
from akunu.cli.values import MODEL

if TYPE_CHECKING:
    from akunu._core import CommandInfo, TensorEntry
    from akunu.files.describe.quantized import Weight
    from akunu.files.model_files import ModelFiles
    from akunu.speech.files import SpeechFiles

__all__ = ["command"]

_LAYER = re.compile(r"\b(blk|layers)\.\d+\.")
MAX_VALUE = 100
"""Characters of a metadata value that are shown."""


@click.command("inspect", cls=Command, context_settings=CONTEXT_SETTINGS)
@click.argument("model", type=MODEL, default="ember")
@click.option("--all", "show_all", is_flag=True, help="One line for each tensor, and long values in full.")
@click.option("--plan", is_flag=True, help="Load the model and show a dispatch table with its costs.")
@click.option(
    "--chip",
    metavar="NAME",
    help='With --plan: a chip that need not be here, Apple\'s as "M4 Max" or "M4 Max 32" with its GPU cores, '
    'NVIDIA\'s as H100 or "RTX 4090"; also predicts how fast it is.',
)
@phase_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON: metadata, tensors, configuration, plan.")
@loading_options
def command(
    model: str,
    show_all: bool,
    plan: bool,
    chip: str | None,
    phase: str | None,
    rows: int | None,
    texts: int | None,
    position: int,
    as_json: bool,
    **values: Any,
) -> None:
    """Show the metadata, tensors, sizes by type and configuration of MODEL, or what an adapter adds.

    With --plan also the dispatch table, the flat list of commands that the engine replays for each token,
    or for texts to encode, with the bytes that each must move and the operations it must do. MODEL may then
    be SHAPE:TYPE for random weights of a published shape ("akunu-bench --help" lists them).

    \b
    Examples:
      akunu inspect model.gguf
      akunu inspect model.gguf --plan --phase prefill --rows 512
      akunu inspect model.gguf --plan --chip "M4 Max" --position 4000
      akunu inspect user/repo:Q4_0 --json | jq .config
    """
    if not plan:
        refuse_unused(("chip", *PHASE_OPTIONS, "device", "context", "threads", "kv_dtype"), "--plan")
    if chip is not None:
        refuse_unused(("device", "threads"), "a device that is here: --chip plans for one that need not be")
        values["device"] = f"plan:{chip}"
    from akunu.files.adapters import is_adapter
    from akunu.files.model_files import open_model
    from akunu.loading.finding import find_model
    from akunu.speech.recognition import is_speech

    if is_adapter(Path(model).expanduser()):
        if plan:
            raise UnsupportedError("--plan: an adapter has no dispatch table of its own")
        _print_adapter(Path(model), as_json, show_all)
        return
    random = plan and is_random(model)
    name = model if random else str(find_or_explain(model) if plan else find_model(model))
    file: ModelFiles | SpeechFiles | None = None
    if is_speech(Path(name)):
        from akunu.speech.files import open_speech

        file = open_speech(Path(name))
    elif not random:
        file = open_model(Path(name))
    planned: _Plan | None = None
    if plan:
        planned = _plan(name, TableOptions(phase, rows, texts, position), chip, values)
    tower = {} if file is None else _tower(file, Path(name))
    config, problem = ({}, "") if file is None else _config(file, sees=bool(tower))
    context = _context(file) if config else {}
    if as_json:
        report = {} if file is None else _file_report(file, config, problem)
        report |= {"context": context} if context else {}
        report |= {"tower": tower} if tower else {}
        report |= {} if planned is None else _plan_report(planned)
        click.echo(json.dumps(_finite(report), allow_nan=False))
        return
    if file is not None:
        _print_file(file, show_all)
        if config:
            click.echo()
            lines = [[key, _short(value, show_all)] for key, value in config.items()]
            print_table(["configuration", "value"], lines)
            if context:
                click.echo(f"\nlayers   {context['layers']}\ncontext  {_context_text(context)}")
            if tower:
                click.echo()
                print_table(["tower, by which it reads images", "value"], [[*item] for item in tower.items()])
        else:
            click.echo(visible(f"\nnot a model that Akunu can run: {problem}"))
        click.echo()
    if planned is not None:
        _print_plan(planned)


def _print_adapter(path: Path, as_json: bool, show_all: bool) -> None:
    """Print what an adapter adds to which matrices."""
    from akunu.files.adapters import open_adapter

    adapter = open_adapter(path)
    parts = [
        {
            "tensor": name,
            "rows": len(part.b),
            "columns": part.a.shape[1],
            "rank": len(part.a),
            "scale": part.scale,
        }
        for name, part in adapter.parts.items()
    ]
    report = {"path": str(adapter.path), "format": adapter.kind, "arch": adapter.arch, "ranks": adapter.ranks}
    if as_json:
        click.echo(json.dumps(report | {"adapter": parts}))
        return
    n_params = sum(part["rank"] * (part["rows"] + part["columns"]) for part in parts)
    click.echo(f"file        {visible(str(adapter.path))}")
    click.echo(f"format      adapter (LoRA), {adapter.kind}")
    if adapter.arch:
        click.echo(f"for         {visible(adapter.arch)}")
    click.echo(f"parameters  {count_text(n_params)}, {bytes_text(2 * n_params)} beside the model\n")
    groups: dict[tuple[Any, ...], int] = defaultdict(int)
    for part in parts:
        name = part["tensor"] if show_all else _LAYER.sub(r"\1.*.", part["tensor"])
        groups[name, part["rows"], part["columns"], part["rank"], part["scale"]] += 1
    rows = [
        [name, f"{height} x {width}", str(rank), f"{scale:g}", str(count)]
        for (name, height, width, rank, scale), count in groups.items()
    ]
    print_table(["matrix", "shape", "rank", "scale", "count"], rows, right="  rrr")


def _config(file: ModelFiles | SpeechFiles, *, sees: bool = False) -> tuple[dict[str, Any], str]:
    """The configuration, or why there is none."""
    try:
        config = file.spec(sees=sees).config if hasattr(file, "spec") else file.config
    except AkunuError as error:
        return {}, str(error)
    numbers = config.numbers() if hasattr(config, "numbers") else vars(config)
    return {name: _plain(value) for name, value in numbers.items()}, ""


def _context(file: ModelFiles | SpeechFiles | None) -> dict[str, Any]:
    """Return what layers compute and what a sequence keeps, for a language model."""
    from akunu.files.describe.kept import kept_by, layers_text

    if not hasattr(file, "spec"):
        return {}
    config = cast("ModelFiles", file).spec(sees=True).config
    if config.encoder is not None:
        return {}
    return {"layers": layers_text(config), **asdict(kept_by(config))}


def _context_text(context: Mapping[str, Any]) -> str:
    fixed = [
        f"{name} {bytes_text(context[name])}"
        for name in ("windows", "states", "convolutions")
        if context[name]
    ]
    return "; ".join([f"{bytes_text(context['token'])} a token in F16", *fixed])


def _tower(file: ModelFiles | SpeechFiles, path: Path) -> dict[str, str]:
    """Return what a model reads images with; nothing where it reads none."""
    from akunu.api.vision.towers import find_tower
    from akunu.chat.pictures.preprocess import processor_of

    if not hasattr(file, "spec"):
        return {}
    try:
        tower = find_tower(cast("ModelFiles", file), path)
    except AkunuError as error:
        return {"problem": str(error)}
    if tower is None:
        return {}
    spec, sizes = tower.spec, tower.spec.sizes
    side = spec.patch_size * spec.merge_size
    budgets = processor_of(spec).budgets
    sources = {ref.source for ref in spec.tensors.values()}
    found = {
        "family": spec.family,
        "file": tower.name,
        "layers": str(sizes.layers),
        "elements": f"{sizes.dim} in {sizes.heads} heads, {sizes.ffn} in feed-forwards",
        "pixels of a token": f"{side} x {side}",
        "image_tokens": "any number" if budgets is None else ", ".join(map(str, budgets)) or "fixed",
        "memory": bytes_text(sum(t.nbytes for t in tower.files.tensors if t.name in sources)),
    }
    return found if sizes.layers else {k: v for k, v in found.items() if k != "elements"}


@dataclass(frozen=True)
class _Plan:
    """A dispatch table, and for a chip what it predicts: {"decode": ..., "prefill": ...}."""

    title: str
    commands: Sequence[CommandInfo]
    memory: Memory
    machine: Machine | None
    predictions: Mapping[str, Prediction]


def _plan(name: str, asked: TableOptions, chip: str | None, values: Mapping[str, Any]) -> _Plan:
    machine = None if chip is None else Machine.named(chip)
    with open_table(name, asked, values, predicts=machine is not None) as table:
        predictions = {}
        if machine is not None:
            predictions = {
                phase: predict(commands, rows, machine)
                for phase, (rows, commands) in table.predicted().items()
            }
        return _Plan(
            f"dispatch table: {table.asked.title()}, {table.runner.device}",
            table.plan(),
            Memory(**table.runner.memory),
            machine,
            predictions,
        )


def _print_file(file: ModelFiles | SpeechFiles, show_all: bool) -> None:
    tensors: Sequence[TensorEntry | Weight] = file.files.tensors
    paths, n_bytes = file.files.paths, sum(tensor.nbytes for tensor in tensors)
    if hasattr(file, "weights"):  # not of a speech model
        tensors = file.weights
    n_params = sum(math.prod(tensor.shape) for tensor in tensors)
    parts = f" (+ {len(paths) - 1} parts)" if len(paths) > 1 else ""
    click.echo(f"file        {visible(paths[0])}{parts}")
    click.echo(f"format      {file.format}")
    click.echo(f"parameters  {count_text(n_params)}")
    bits = f", {8 * n_bytes / n_params:.2f} bits a weight" if n_params else ""
    click.echo(f"weights     {bytes_text(n_bytes)}{bits}\n")
    rows = [[key, _short(value, show_all)] for key, value in file.metadata.items()]
    print_table(["metadata", "value"], rows)
    click.echo()
    print_table(["type", "tensors", "parameters", "size", "share"], _by_type(tensors, n_bytes), right=" rrrr")
    click.echo()
    print_table(["tensor", "type", "shape", "count", "size"], _tensor_rows(tensors, show_all), right="   rr")


def _by_type(tensors: Sequence[TensorEntry | Weight], n_bytes: int) -> list[list[str]]:
    groups: dict[str, list[TensorEntry | Weight]] = defaultdict(list)
    for tensor in tensors:
        groups[tensor.dtype].append(tensor)
    sizes = {dtype: sum(tensor.nbytes for tensor in members) for dtype, members in groups.items()}
    return [
        [
            dtype,
            str(len(members)),
            count_text(sum(math.prod(tensor.shape) for tensor in members)),
            bytes_text(sizes[dtype]),
            f"{sizes[dtype] / n_bytes:.1%}",
        ]
        for dtype, members in sorted(groups.items(), key=lambda item: -sizes[item[0]])
    ]


def _tensor_rows(tensors: Sequence[TensorEntry | Weight], show_all: bool) -> list[list[str]]:
    """One row a tensor, or one for all layers in which a tensor has the same type and shape."""
    groups: dict[tuple[str, str, tuple[int, ...]], list[TensorEntry | Weight]] = defaultdict(list)
    for tensor in tensors:
        name = tensor.name if show_all else _LAYER.sub(r"\1.*.", tensor.name)
        groups[name, tensor.dtype, tensor.shape].append(tensor)
    return [
        [
            name,
            dtype,
            " x ".join(map(str, shape)),
            str(len(members)),
            bytes_text(sum(t.nbytes for t in members)),
        ]
        for (name, dtype, shape), members in groups.items()
    ]


def _print_plan(plan: _Plan) -> None:
    commands, memory = plan.commands, plan.memory
    rows = [
        [
            str(index),
            row["label"],
            row["op"],
            row["kernel"] + (f" (+{row['dispatches'] - 1})" if row["dispatches"] > 1 else ""),
            row["dtype"],
            row["shape"],
            bytes_text(row["bytes"]),
            count_text(row["flops"]),
            "yes" if row["barrier"] else "",
        ]
        for index, row in enumerate(commands)
    ]
    headers = ["", "label", "op", "kernel", "type", "shape", "bytes", "flops", "barrier"]
    print_table(headers, rows, title=plan.title, right="r     rr ")
    total_bytes, total_flops = (sum(row[key] for row in commands) for key in ("bytes", "flops"))
    click.echo(
        f"{len(commands)} commands, {sum(row['dispatches'] for row in commands)} dispatches, "
        f"{bytes_text(total_bytes)} to move, {count_text(total_flops)} operations"
    )
    click.echo(f"memory: {memory}")

    if plan.machine is not None:
        _print_predictions(plan.machine, plan.predictions)


def _print_predictions(machine: Machine, predictions: Mapping[str, Prediction]) -> None:
    click.echo()
    rows = [
        [
            phase,
            str(p.rows),
            str(p.dispatches),
            str(p.layer_dispatches),
            bytes_text(p.bytes),
            f"{p.excess:.3f}",
            count_text(p.flops),
            f"{p.tokens_per_second:.1f}",
            f"{p.bound_tokens_per_second:.1f}",
        ]
        for phase, p in predictions.items()
    ]
    headers = [
        "phase",
        "tokens",
        "dispatches",
        "a layer",
        "bytes",
        "over least",
        "flops",
        "tokens/s",
        "at most",
    ]
    title = (
        f"prediction: {machine.name}, {machine.bytes_per_second / 1e9:.0f} GB/s, "
        f"{machine.flops / 1e12:.1f} TFLOP/s in half precision"
    )
    print_table(headers, rows, title=title, right=" rrrrrrrr")
    click.echo(
        "over least: bytes over those of weights and KV cache. at most: with only these at the chip's\n"
        "bandwidth, and all operations at its peak. tokens/s: not measured; assumes that kernels reach\n"
        f"{machine.bandwidth_share:.0%} of the bandwidth and {machine.arithmetic_share:.0%} of the "
        f"arithmetic, and that a dispatch that waits costs {machine.dispatch_seconds * 1e6:g} us."
    )


def _plan_report(plan: _Plan) -> dict[str, Any]:
    report: dict[str, Any] = {"plan": list(plan.commands), "memory": asdict(plan.memory)}
    if plan.machine is not None:
        report["machine"] = asdict(plan.machine)
        report["prediction"] = {
            phase: asdict(p)
            | {
                "excess": p.excess,
                "tokens_per_second": p.tokens_per_second,
                "bound_tokens_per_second": p.bound_tokens_per_second,
            }
            for phase, p in plan.predictions.items()
        }
    return report


def _file_report(file: ModelFiles | SpeechFiles, config: Mapping[str, Any], problem: str) -> dict[str, Any]:
    report: dict[str, Any] = {
        "paths": file.files.paths,
        "format": file.format,
        "metadata": {key: _plain(value) for key, value in file.metadata.items()},
        "tensors": [
            {"name": t.name, "dtype": t.dtype, "shape": list(t.shape), "nbytes": t.nbytes}
            for t in file.files.tensors
        ],
        "config": config or None,
    }
    if problem:
        report["unsupported"] = problem
    return report


def _plain(value: Any) -> Any:
    """A value as JSON can hold it."""
    if hasattr(value, "tolist"):  # an array of NumPy
        return value.tolist()
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _finite(value: Any) -> Any:
    """A report without NaN and infinities, which JSON does not have: they are null there."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _short(value: Any, show_all: bool) -> str:
    """A value for one line of a table; a file may hold anything, control characters included."""
    value = _plain(value)
    count = f"[{len(value)}] " if isinstance(value, list) else ""
    if not show_all and isinstance(value, list):
        value = value[:16]  # printing a vocabulary would take a minute
    if isinstance(value, str):
        text = value.encode("unicode_escape").decode("ascii") if not value.isprintable() else value
    elif isinstance(value, list):
        text = ", ".join(
            ascii(item) if isinstance(item, str) and not item.isprintable() else str(item) for item in value
        )
    else:
        text = f"{value:.7g}" if isinstance(value, float) else str(value)
    text = count + text
    return text if show_all or len(text) <= MAX_VALUE else text[: MAX_VALUE - 1] + "…"
