"""`akunu devices`: what can run a model here."""

from __future__ import annotations

import json

import click

from akunu.base.memory import bytes_text
from akunu.cli.app import CONTEXT_SETTINGS, Command
from akunu.cli.console import print_table

__all__ = ["command"]


@click.command("devices", cls=Command, context_settings=CONTEXT_SETTINGS)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(as_json: bool) -> None:
    """List the devices that can run a model; option --device of the other commands takes their ids.

    \b
    Examples:
      akunu devices
      akunu devices --json | jq -r ".[0].isa"
    """
    from akunu import _core

    found = _core.devices()
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    print_table(
        ["id", "name", "backend", "instruction set", "threads", "memory"],
        [
            [
                row["id"],
                row["name"],
                row["backend"],
                row["isa"],
                str(row["threads"]),
                bytes_text(row["memory"]),
            ]
            for row in found
        ],
        right="    rr",
    )
    for row in found:
        if len(row["nodes"]) > 1:
            nodes = ", ".join(f"{node} ({cores} cores)" for node, cores in row["nodes"].items())
            click.echo(f"{row['id']}: memory nodes {nodes}")
    for backend, why in _core.missing_devices().items():
        click.echo(f"{backend}: {why}")
