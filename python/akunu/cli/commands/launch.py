"""`akunu launch`: a coding agent that works with a model of this machine."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click

from akunu.base.errors import AkunuError
from akunu.cli.app import CONTEXT_SETTINGS, Command
from akunu.cli.console import note
from akunu.cli.programs import PROGRAMS, Target
from akunu.cli.values import MODEL, Integer

__all__ = ["command"]

NO_KEY: Final = "local"
"""What a program gives as a key to a server that wants none."""

STOP_SECONDS: Final = 10


@click.command("launch", cls=Command, context_settings={**CONTEXT_SETTINGS, "ignore_unknown_options": True})
@click.argument("agent", type=click.Choice(list(PROGRAMS)))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "-m",
    "--model",
    type=MODEL,
    metavar="MODEL",
    help="The model. With --url: one of the names that the server offers.",
)
@click.option(
    "--url", metavar="URL", help="Use this server, which runs already, such as http://127.0.0.1:8080."
)
@click.option(
    "--api-key",
    envvar="AKUNU_API_KEY",
    metavar="KEY",
    help="Key for the server at --url. [env: AKUNU_API_KEY]",
)
@click.option(
    "-c", "--context", type=Integer(1), metavar="N", help="How many tokens a conversation may have."
)
def command(
    agent: str,
    arguments: tuple[str, ...],
    model: str | None,
    url: str | None,
    api_key: str | None,
    context: int | None,
) -> None:
    """Start a coding agent (claude, codex or opencode) with a model of this machine.

    A server is started for it, and ended with it; --url takes one that runs already. What the program keeps
    of its own settings is not changed. What follows "--" goes to the program.

    Agents begin with long prompts: give the model a context of 16,000 tokens or more.

    \b
    Examples:
      akunu launch claude -m Qwen/Qwen3-4B-GGUF --context 32768
      akunu launch codex --url http://127.0.0.1:8080
      akunu launch opencode -m model.gguf -- run "What does this project do?"
    """
    wanted = PROGRAMS[agent]
    executable = shutil.which(wanted.executable)
    if executable is None:
        raise AkunuError(
            f"{wanted.title} is not installed: no {wanted.executable!r} is on the PATH; {wanted.install}"
        )
    if url is None and model is None:
        raise click.UsageError("which model? -m MODEL names it; or --url a server that runs")
    if url is not None and context is not None:
        raise click.UsageError("--context is for a server that is started; the one at --url has its own")
    key = api_key or NO_KEY
    with _running(url) if url else _started(str(model), context, key) as base:
        target = Target(base, _model_name(base, key, model if url else None), key)
        changes = wanted.environment(target)
        environment = {k: v for k, v in {**os.environ, **changes}.items() if v is not None}
        note(f"[{wanted.title} with {target.model} at {target.url}]")
        child = subprocess.Popen([executable, *wanted.arguments(target), *arguments], env=environment)
        status = _end_of(child)
    click.get_current_context().exit(status if status >= 0 else 128 - status)


def _end_of(child: subprocess.Popen[bytes]) -> int:
    """The status of a program that has ended; Ctrl-C is the program's, which decides what it means."""
    while True:
        try:
            return child.wait()
        except KeyboardInterrupt:
            continue


@contextmanager
def _running(url: str) -> Iterator[str]:
    yield url.rstrip("/").removesuffix("/v1")


@contextmanager
def _started(model: str, context: int | None, key: str) -> Iterator[str]:
    """A server of ours, on a free port of this machine, until the block ends.

    What it says goes to a file: the terminal is the program's.
    """
    from akunu.loading.finding import find_model

    find_model(model)  # fetched here, where its progress is seen
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--context", str(context)] if context else []
    handle, log = tempfile.mkstemp(prefix="akunu-serve-", suffix=".log")
    with open(handle, "wb") as out:
        server = subprocess.Popen(
            [sys.executable, "-m", "akunu", "serve", "-m", model, "--port", str(port), *options],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,  # the terminal's Ctrl-C is the program's
        )
    note(f"[the server's log: {log}]")
    url = f"http://127.0.0.1:{port}"
    try:
        while not _ready(url):
            if server.poll() is not None:
                *_, said = ["its log is empty", *Path(log).read_text(errors="replace").splitlines()]
                raise AkunuError(f"the server did not start: {said.removeprefix('akunu: error: ')}")
            time.sleep(0.1)
        yield url
    finally:
        server.terminate()
        try:
            server.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            server.kill()


def _ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/ready", timeout=5):
            return True
    except OSError:
        return False


def _model_name(url: str, key: str, wanted: str | None) -> str:
    """The server's name of the model: the one that is wanted, else its first."""
    if not url.startswith(("http://", "https://")):
        raise click.BadParameter(
            f"found {url!r}, expected an address such as http://127.0.0.1:8080", param_hint="--url"
        )
    request = urllib.request.Request(f"{url}/v1/models", headers={"Authorization": f"Bearer {key}"})
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            names = [model["id"] for model in json.load(response)["data"]]
    except urllib.error.HTTPError as error:
        raise AkunuError(f"{url}: {error.code} {error.reason}; is --api-key right?") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        why = getattr(error, "reason", error)
        raise AkunuError(
            f"{url}: no server of models answers there ({why}); akunu serve starts one"
        ) from error
    if wanted is not None and wanted not in names:
        raise AkunuError(f"{url} has no model {wanted!r}; it has {', '.join(names)}")
    if not names:
        raise AkunuError(f"{url} has no model")
    return str(wanted or names[0])
