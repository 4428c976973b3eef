"""`akunu launch`: a coding agent that works with a model of this machine."""

from __future__ import annotations

import json
import os
import shutil
import signal
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
from types import FrameType
from typing import Final

import click

from akunu.base.errors import AkunuError
from akunu.cli.app import CONTEXT_SETTINGS, Command
from akunu.cli.console import note
from akunu.cli.programs import PATIENCE, PROGRAMS, Target
from akunu.cli.values import MODEL, Integer

__all__ = ["command"]

NO_KEY: Final = "local"
"""The key that a program gives to a server that wants none."""

STOP_SECONDS: Final = 10

FEW_TOOLS_BELOW: Final = 8_000_000_000
"""A model of fewer parameters is offered few tools, unless the user says otherwise."""


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
@click.option(
    "--few-tools/--all-tools",
    default=None,
    help="Offer the model few, plain tools with a short explanation, or all that the agent has; for Codex. "
    "[default: few for a model of fewer than 8 billion parameters]",
)
def command(
    agent: str,
    arguments: tuple[str, ...],
    model: str | None,
    url: str | None,
    api_key: str | None,
    context: int | None,
    few_tools: bool | None,
) -> None:
    """Start a coding agent with a model of this machine.

    It knows claude, codex, opencode, pi, qwen, cline, aider and continue. A server is started for it, and
    ended with it; --url takes one that runs already. What the program keeps of its own settings is not
    changed. What follows "--" goes to the program.

    Agents begin with long prompts: without --context, the model gets its own context up to 32,768 tokens, as
    far as memory goes.

    \b
    Examples:
      akunu launch claude -m Qwen/Qwen3-4B-GGUF
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
    if few_tools is not None and not wanted.takes_few_tools:
        option = "--few-tools" if few_tools else "--all-tools"
        raise click.UsageError(f"{option} is for codex; {wanted.title} is left the tools that it has")
    key = api_key or NO_KEY
    server = _running(url) if url else _started(str(model), context, key)
    with _ended_with_us(), tempfile.TemporaryDirectory(prefix="akunu-launch-") as folder, server as base:
        target = _target(base, key, model if url else None, Path(folder), few_tools)
        for name, text in wanted.files(target).items():
            (target.folder / name).write_text(text, encoding="utf-8")
        changes = wanted.environment(target)
        environment = {k: v for k, v in {**os.environ, **changes}.items() if v is not None}
        size = "" if target.context is None else f", {target.context} tokens"
        tools = ", few tools: --all-tools offers all" if target.few_tools and wanted.takes_few_tools else ""
        note(f"[{wanted.title} with {target.model} at {target.url}{size}{tools}]")
        if dropped := wanted.dropped(target):
            note(f"[{target.model} cannot think first: {dropped} is left out]")
        if setup := wanted.setup(target):
            subprocess.run([executable, *setup], env=environment, check=True, stdout=subprocess.DEVNULL)
        child = subprocess.Popen([executable, *wanted.arguments(target), *arguments], env=environment)
        status = _end_of(child)
    click.get_current_context().exit(status if status >= 0 else 128 - status)


@contextmanager
def _ended_with_us() -> Iterator[None]:
    """Let signals of a closed terminal and of a supervisor end the block, and so what it started."""

    def end(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = {each: signal.signal(each, end) for each in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _end_of(child: subprocess.Popen[bytes]) -> int:
    """The status of a program that has ended; Ctrl-C is the program's, which decides what it means."""
    try:
        while True:
            try:
                return child.wait()
            except KeyboardInterrupt:
                continue
    finally:
        child.terminate()  # where another signal has ended the wait


@contextmanager
def _running(url: str) -> Iterator[str]:
    yield url.rstrip("/").removesuffix("/v1")


@contextmanager
def _started(model: str, context: int | None, key: str) -> Iterator[str]:
    """A server of ours, on a free port of this machine, until the block ends.

    What it says goes to a file: the terminal is the program's.
    """
    from akunu.loading.finding import find_model

    find_model(model, tower=True)  # fetched here, where its progress is seen
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--max-seconds", str(PATIENCE), *(["--context", str(context)] if context else [])]
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


def _target(url: str, key: str, wanted: str | None, folder: Path, few_tools: bool | None) -> Target:
    """The server's model, the one that is wanted or else its first, and what is known of it."""
    if not url.startswith(("http://", "https://")):
        raise click.BadParameter(
            f"found {url!r}, expected an address such as http://127.0.0.1:8080", param_hint="--url"
        )
    request = urllib.request.Request(f"{url}/v1/models", headers={"Authorization": f"Bearer {key}"})
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            models = {model["id"]: model for model in json.load(response)["data"]}
    except urllib.error.HTTPError as error:
        raise AkunuError(f"{url}: {error.code} {error.reason}; is --api-key right?") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        why = getattr(error, "reason", error)
        raise AkunuError(
            f"{url}: no server of models answers there ({why}); akunu serve starts one"
        ) from error
    if wanted is not None and wanted not in models:
        raise AkunuError(f"{url} has no model {wanted!r}; it has {', '.join(models)}")
    if not models:
        raise AkunuError(f"{url} has no model")
    name = wanted or next(iter(models))
    card = models[name]
    context, parameters = card.get("context"), card.get("parameters")
    if few_tools is None:
        few_tools = isinstance(parameters, int) and parameters < FEW_TOOLS_BELOW
    return Target(
        url,
        name,
        key,
        context if isinstance(context, int) else None,
        thinks=card.get("thinking") is not False,
        folder=folder,
        sees=card.get("images") is True,
        few_tools=few_tools,
    )
