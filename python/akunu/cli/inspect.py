"""`akunu inspect`: what is in a model file, and what the engine makes of it."""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

from akunu.cli.app import CONTEXT_SETTINGS
from akunu.cli.console import bytes_text, count_text, print_table
from akunu.cli.options import loading_options, refuse_unused
from akunu.cli.profile import ROWS, phase_options
from akunu.errors import AkunuError

if TYPE_CHECKING:
    from akunu._core import CommandInfo, GgufFile, Memory, TensorEntry

__all__ = ["command"]

_LAYER = re.compile(r"^blk\.(\d+)\.")
MAX_VALUE = 100
"""Characters of a metadata value that are shown."""


@click.command("inspect", context_settings=CONTEXT_SETTINGS)
@click.argument("model", default="ember")
@click.option("--all", "show_all", is_flag=True, help="One line for each tensor, and long values in full.")
@click.option("--plan", is_flag=True, help="Load the model and show a dispatch table with its costs.")
@phase_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON: metadata, tensors, configuration, plan.")
@loading_options
def command(
    model: str,
    show_all: bool,
    plan: bool,
    phase: str,
    rows: int | None,
    position: int,
    as_json: bool,
    **values: Any,
) -> None:
    """Show what is in MODEL: metadata, tensors, their sizes by type, and the configuration it stands for.

    With --plan also the dispatch table, the flat list of commands that the engine replays for each token,
    with the bytes that each must move and the operations it must do.

    \b
    Examples:
      akunu inspect model.gguf
      akunu inspect model.gguf --plan --phase prefill --rows 512
      akunu inspect user/repo:Q4_0 --json | jq .config
    """
    if not plan:
        refuse_unused(("phase", "rows", "position", "device", "context", "threads", "kv_dtype"), "--plan")
    from akunu import _core
    from akunu.loading import find_model

    path = find_model(model)
    file = _core.GgufFile(str(path))
    config, problem = _config(file)
    commands: list[CommandInfo] = []
    memory: Memory | None = None
    if plan:
        rows = rows or ROWS[phase]
        commands, memory = _plan(str(path), phase, rows, position, values)
    if as_json:
        click.echo(json.dumps(_report(file, config, problem, commands, memory)))
        return
    _print_file(file, show_all)
    if config:
        click.echo()
        print_table(
            ["configuration", "value"], [[key, _short(value, show_all)] for key, value in config.items()]
        )
    else:
        click.echo(f"\nnot a model that Akunu can run: {problem}")
    if plan and memory is not None:
        _print_plan(f"\ndispatch table: {phase}, {rows} rows at position {position}", commands, memory)


def _config(file: GgufFile) -> tuple[dict[str, Any], str]:
    """The configuration, or why there is none."""
    from akunu.config import resolve

    try:
        config = resolve(file).config
    except AkunuError as error:
        return {}, str(error)
    return {field.name: _plain(getattr(config, field.name)) for field in fields(config)}, ""


def _plan(
    path: str, phase: str, rows: int, position: int, values: Mapping[str, Any]
) -> tuple[list[CommandInfo], Memory]:
    from akunu.bench.loader import open_engine

    context = values["context"] or position + rows + 1
    with open_engine(path, **{**values, "context": context}) as opened:
        return opened.engine.plan(phase, rows, position), opened.engine.memory


def _print_file(file: GgufFile, show_all: bool) -> None:
    tensors = file.tensors
    n_params = sum(math.prod(tensor.shape) for tensor in tensors)
    n_bytes = sum(tensor.nbytes for tensor in tensors)
    click.echo(
        f"file        {file.paths[0]}" + (f" (+ {len(file.paths) - 1} parts)" if len(file.paths) > 1 else "")
    )
    click.echo(f"format      GGUF v{file.version}")
    click.echo(f"parameters  {count_text(n_params)}")
    bits = f", {8 * n_bytes / n_params:.2f} bits a weight" if n_params else ""
    click.echo(f"weights     {bytes_text(n_bytes)}{bits}\n")
    rows = [[key, _short(value, show_all)] for key, value in file.metadata.items()]
    print_table(["metadata", "value"], rows)
    click.echo()
    print_table(["type", "tensors", "parameters", "size", "share"], _by_type(tensors, n_bytes), right=" rrrr")
    click.echo()
    print_table(["tensor", "type", "shape", "count", "size"], _tensor_rows(tensors, show_all), right="   rr")


def _by_type(tensors: Sequence[TensorEntry], n_bytes: int) -> list[list[str]]:
    groups: dict[str, list[TensorEntry]] = defaultdict(list)
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


def _tensor_rows(tensors: Sequence[TensorEntry], show_all: bool) -> list[list[str]]:
    """One row a tensor, or one for all layers in which a tensor has the same type and shape."""
    groups: dict[tuple[str, str, tuple[int, ...]], list[TensorEntry]] = defaultdict(list)
    for tensor in tensors:
        name = tensor.name if show_all else _LAYER.sub("blk.*.", tensor.name)
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


def _print_plan(title: str, commands: Sequence[CommandInfo], memory: Memory) -> None:
    rows = [
        [
            str(index),
            row["label"],
            row["op"],
            row["kernel"],
            row["dtype"],
            row["shape"],
            bytes_text(row["bytes"]),
            count_text(row["flops"]),
            "yes" if row["barrier"] else "",
        ]
        for index, row in enumerate(commands)
    ]
    headers = ["", "label", "op", "kernel", "type", "shape", "bytes", "flops", "barrier"]
    print_table(headers, rows, title=title, right="r     rr ")
    total_bytes, total_flops = (sum(row[key] for row in commands) for key in ("bytes", "flops"))
    click.echo(
        f"{len(commands)} commands, {bytes_text(total_bytes)} to move, {count_text(total_flops)} operations"
    )
    click.echo(
        f"memory: weights {bytes_text(memory['weights'])}, mapped {bytes_text(memory['weights_mapped'])}, "
        f"KV cache {bytes_text(memory['kv_cache'])}, scratch {bytes_text(memory['scratch'])}"
    )


def _report(
    file: GgufFile,
    config: Mapping[str, Any],
    problem: str,
    commands: Sequence[CommandInfo],
    memory: Memory | None,
) -> dict[str, Any]:
    report: dict[str, Any] = {
        "paths": file.paths,
        "version": file.version,
        "metadata": {key: _plain(value) for key, value in file.metadata.items()},
        "tensors": [
            {"name": t.name, "dtype": t.dtype, "shape": list(t.shape), "nbytes": t.nbytes}
            for t in file.tensors
        ],
        "config": config or None,
    }
    if problem:
        report["unsupported"] = problem
    if memory is not None:
        report |= {"plan": list(commands), "memory": memory}
    return report


def _plain(value: Any) -> Any:
    """A value as JSON can hold it."""
    if hasattr(value, "tolist"):  # an array of NumPy
        return value.tolist()
    return list(value) if isinstance(value, tuple) else value


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
