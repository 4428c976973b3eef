"""`akunu stop`: ends servers that run here."""

from __future__ import annotations

import os
import signal
import time
from typing import Final

import click

from akunu.base.errors import AkunuError
from akunu.cli.app import CONTEXT_SETTINGS, Command
from akunu.cli.console import note
from akunu.cli.running import Running, running, still_runs

__all__ = ["command"]

_POLL_SECONDS: Final = 0.05
_REMARK_SECONDS: Final = 2
"""Seconds that a server may take to end before a remark."""


def _ports(_context: click.Context, _argument: click.Parameter, incomplete: str) -> list[str]:
    return [port for server in running() if (port := str(server.port)).startswith(incomplete)]


@click.command("stop", cls=Command, context_settings=CONTEXT_SETTINGS)
@click.argument("named", metavar="[SERVER]...", nargs=-1, shell_complete=_ports)
@click.option("--all", "every", is_flag=True, help="Stop every server of yours that runs here.")
@click.option("--now", is_flag=True, help="Do not wait for requests that run: cut their answers off.")
def command(named: tuple[str, ...], every: bool, now: bool) -> None:
    """Stop servers that run on this machine, and wait until they have ended.

    SERVER is a port, a process id, or the name of a model that only one server has; "akunu ps" lists them. It
    is not needed where only one runs. Requests that run get the time that "akunu serve --drain" gave them.

    \b
    Examples:
      akunu stop
      akunu stop 8080
      akunu stop --all --now
    """
    if named and every:
        raise click.UsageError("--all stops every server: name none beside it")
    servers = running()
    if not servers:
        raise AkunuError("no server of yours runs here")
    chosen = servers if every else _chosen(servers, named)
    for server in chosen:
        _signal(server)
        if now:
            time.sleep(_POLL_SECONDS)
            _signal(server)
    for server in chosen:
        began, told = time.monotonic(), False
        while still_runs(server):
            if not told and time.monotonic() - began > _REMARK_SECONDS:
                note(f"[{server.url} waits for its requests to end; --now does not]")
                told = True
            time.sleep(_POLL_SECONDS)
        note(f"[{server.url} has ended]")


def _chosen(servers: list[Running], named: tuple[str, ...]) -> list[Running]:
    listed = ", ".join(f"{server.port} ({', '.join(server.models)})" for server in servers)
    if not named:
        if len(servers) > 1:
            raise click.UsageError(f"several servers run: {listed}; name one, or --all")
        return servers
    chosen: dict[int, Running] = {}
    for name in named:
        meant = [s for s in servers if name in (str(s.port), str(s.pid), s.url) or name in s.models]
        if len(meant) != 1:
            found = "several servers are" if meant else "no server is"
            raise AkunuError(f"{found} called {name!r}; these run: {listed}")
        chosen[meant[0].pid] = meant[0]
    return list(chosen.values())


def _signal(server: Running) -> None:
    try:
        os.kill(server.pid, signal.SIGTERM)
    except ProcessLookupError:
        pass  # it has ended meanwhile
    except PermissionError as error:
        raise AkunuError(f"{server.url} is not yours to stop (process {server.pid})") from error
