"""`akunu ps`: the servers that run here, and the models that they have in memory."""

from __future__ import annotations

import json
import os
import time
import urllib.request
from dataclasses import asdict
from datetime import UTC, datetime
from http.client import HTTPException
from typing import Any, Final

import click

from akunu.base.memory import bytes_text
from akunu.cli.app import CONTEXT_SETTINGS, Command
from akunu.cli.console import note, print_table
from akunu.cli.running import Running, running

__all__ = ["command"]

_SECONDS: Final = 2
"""Most time that a server gets to say what it has loaded."""

_LONG: Final = 365 * 86400
"""Seconds after which a model counts as one that stays."""


@click.command("ps", cls=Command, context_settings=CONTEXT_SETTINGS)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, sizes in bytes.")
def command(as_json: bool) -> None:
    """List the servers of yours that run on this machine, and the models that each has in memory.

    A server that asks for keys is asked with the one in AKUNU_API_KEY; without it, its models are listed, but
    not what they take.

    \b
    Examples:
      akunu ps
      akunu ps --json | jq -r ".[].url"
    """
    servers = [(server, _loaded(server)) for server in running()]
    if as_json:
        click.echo(json.dumps([{**asdict(server), "loaded": models} for server, models in servers], indent=2))
        return
    if not servers:
        note('[no server of yours runs here; "akunu serve --background" starts one]')
        return
    rows = [row for server, models in servers for row in _rows(server, models)]
    print_table(["server", "pid", "up", "model", "size", "context", "stays"], rows, right=" r  rr")


def _loaded(server: Running) -> list[dict[str, Any]] | None:
    """Return what the server has in memory, as Ollama's API tells it; None where it does not say."""
    key = os.environ.get("AKUNU_API_KEY")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    asked = urllib.request.Request(f"{server.url}/api/ps", headers=headers)
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(asked, timeout=_SECONDS) as answer:
            models = json.load(answer).get("models")
    except (OSError, HTTPException, ValueError, AttributeError):
        return None
    return models if isinstance(models, list) else None


def _rows(server: Running, models: list[dict[str, Any]] | None) -> list[list[str]]:
    up = _time_text(time.time() - server.started)
    first = [server.url, str(server.pid), up]
    if models:
        shown = [
            [
                model["name"],
                bytes_text(model["size"]),
                str(model["context_length"]),
                _until(model["expires_at"]),
            ]
            for model in models
        ]
    else:
        names = ", ".join(server.models)
        shown = [[names, "-" if models is None else "not loaded", "", ""]]
    return [(first if i == 0 else [""] * len(first)) + row for i, row in enumerate(shown)]


def _until(moment: str) -> str:
    left = (datetime.fromisoformat(moment) - datetime.now(UTC)).total_seconds()
    return "always" if left > _LONG else f"{_time_text(max(left, 0))} more"


def _time_text(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
