"""`akunu serve`: models over HTTP."""

from __future__ import annotations

import logging
import math
import os
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from akunu.cli.app import CONTEXT_SETTINGS, Command, typed_words
from akunu.cli.console import note
from akunu.cli.options import (
    adapter_option,
    given,
    loading_options,
    refuse_unused,
    writing_arguments,
    writing_options,
)
from akunu.cli.running import LOG_VARIABLE, Running, announced, log_file, start_in_background
from akunu.cli.values import DEFAULT_MODEL, FULL, MODEL, Integer, Number, PathName, as_integer

if TYPE_CHECKING:
    from akunu.server import ModelSpec, Settings

__all__ = ["command"]

_OLLAMA_PORT = 11434
_COMMON = ("named", "place", "host", "port", "background", "context", "parallel", "api_key_file", "idle")
_LOCAL = ("127.0.0.1", "localhost", "::1")
_FILE = PathName(exists=True)


@click.command("serve", cls=Command, context_settings=CONTEXT_SETTINGS, common=_COMMON)
@click.argument("named", metavar="[[NAME=]MODEL]...", nargs=-1, type=MODEL)
@click.option(
    "-m",
    "--model",
    "names",
    type=MODEL,
    multiple=True,
    metavar="[NAME=]MODEL",
    help="A model to load at the start, as the arguments are; clients ask for it by NAME. Repeatable. "
    "[default: ember, or none with --models]",
)
@click.option(
    "--models",
    "place",
    type=_FILE,
    metavar="PLACE",
    help="A folder whose models are loaded when they are asked for, or a TOML file that lists models.",
)
@click.option(
    "--host",
    type=FULL,
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="Address to listen on.",
)
@click.option(
    "--port",
    default=8080,
    show_default=True,
    type=Integer(0, 65535),
    metavar="N",
    help="Port to listen on; 0 takes one that is free.",
)
@click.option(
    "--background",
    is_flag=True,
    help="Serve in a process of its own, and return when it is ready; akunu ps lists it, akunu stop ends it.",
)
@click.option(
    "--ollama",
    is_flag=True,
    help="Listen on port 11434 too, where programs look for Ollama, whose API the server speaks.",
)
@click.option(
    "--lenient",
    is_flag=True,
    help="Leave out what a request has that is not known or not supported, with warnings in the answer; "
    "otherwise it is refused.",
)
@loading_options
@writing_options
@adapter_option
@click.option(
    "--parallel",
    default=8,
    show_default=True,
    type=Integer(1, 256),
    metavar="N",
    help="How many sequences of a model run at a time; more wait.",
)
@click.option(
    "--api-key-file",
    type=_FILE,
    metavar="FILE",
    help="Require an API key from this file. One key a line, or sha256:HEX, its hash; "
    "after it, if you like, a name, priority=N, and shared: one prefix cache for all keys that say so.",
)
@click.option(
    "--admin-key-file",
    type=_FILE,
    metavar="FILE",
    help="Keys, in the same form, of those who may also load and unload models.",
)
@click.option(
    "--cors-origin",
    multiple=True,
    metavar="ORIGIN",
    help='Let web pages of this origin use the server, such as https://example.org; "*": of any. Repeatable.',
)
@click.option(
    "--allow-host",
    multiple=True,
    metavar="NAME",
    help="Answer to this name too, such as that of a proxy before the server; with --host 0.0.0.0, to no "
    "others. Repeatable.",
)
@click.option(
    "--image-host",
    multiple=True,
    metavar="NAME",
    help="Fetch images that requests name by addresses of this host: example.org, *.example.org, or * for "
    "all public ones. Repeatable. [default: none; images come in the requests]",
)
@click.option(
    "--image-folder",
    multiple=True,
    type=PathName(exists=True, file_okay=False),
    metavar="FOLDER",
    help="Read images that requests name by file: URLs, of files in this folder. Repeatable. [default: none]",
)
@click.option(
    "--trusted-proxy",
    multiple=True,
    metavar="ADDRESS",
    help="Take clients' addresses from this proxy's (or network's, 10.0.0.0/8) X-Forwarded-For. Repeatable.",
)
@click.option(
    "--max-connections",
    default=1024,
    show_default=True,
    type=Integer(1),
    metavar="N",
    help="How many connections there may be; one address has half of them at most.",
)
@click.option(
    "--queue",
    default=64,
    show_default=True,
    type=Integer(0),
    metavar="N",
    help="How many sequences may wait for a model; more are refused with 503.",
)
@click.option(
    "--rate",
    default=0,
    type=Integer(0),
    metavar="N",
    help="How many requests a minute each key may send (or each address, without keys). [default: no limit]",
)
@click.option(
    "--max-seconds",
    default=600.0,
    show_default=True,
    type=Number(1),
    metavar="S",
    help="How many seconds a request may take.",
)
@click.option(
    "--max-body",
    default=32,
    show_default=True,
    type=Integer(1),
    metavar="MIB",
    help="How many MiB a request may have.",
)
@click.option(
    "--max-bodies",
    default=256,
    show_default=True,
    type=Integer(1),
    metavar="MIB",
    help="How many MiB all requests that are there may have together; one client half of them at most.",
)
@click.option(
    "--max-upload",
    default=25,
    show_default=True,
    type=Integer(min=1),
    metavar="MIB",
    help="How many MiB a request with a recording may have.",
)
@click.option(
    "--max-models",
    type=Integer(1),
    metavar="N",
    help="How many models may be in memory; the one that was not used for longest gives way. [default: 4, or "
    "as many as are loaded at the start]",
)
@click.option(
    "--max-memory",
    type=Number(0, min_open=True),
    metavar="GIB",
    help="How many GiB the files of the loaded models may have together. [default: no limit]",
)
@click.option(
    "--idle",
    "--keep-alive",
    "idle",
    default="-1",
    metavar="TIME",
    callback=lambda context, option, value: _idle(value),
    help="Unload a model that was not used for so long: seconds, or such as 10m; -1: never. [default: never]",
)
@click.option(
    "--drain",
    default=30.0,
    show_default=True,
    type=Number(0),
    metavar="S",
    help="After SIGTERM, requests have S seconds to end.",
)
@click.option(
    "--ray",
    is_flag=True,
    help="Serve on the Ray cluster that this machine is part of (or RAY_ADDRESS names), and return; given "
    "again: change what is served. Needs akunu[ray].",
)
@click.option(
    "--replicas",
    default="1",
    show_default=True,
    metavar="N[-MOST]",
    callback=lambda context, option, value: _replicas(value),
    help="With --ray: how many replicas; N-MOST follows the number of requests.",
)
def command(**values: Any) -> None:
    """Serve models over HTTP, as OpenAI's, Anthropic's and Ollama's APIs.

    Give clients the address http://127.0.0.1:8080/v1 (Anthropic's: without /v1), any API key, and a model's
    name. A request that asks for what is not supported gets an error that says so. Options such as -c are for
    all models that they fit; the log names those that go without.

    \b
    Examples:
      akunu serve
      akunu serve Qwen/Qwen3-0.6B-GGUF:Q8_0 -c 16384
      akunu serve small=ember big=model.gguf --parallel 16
      akunu serve qwen=model.gguf whisper-1=ember-speech -c 16384
      akunu serve --models ~/models --max-models 2 --idle 10m
      akunu serve --background -m qwen3:4b
      akunu serve --host 0.0.0.0 --api-key-file keys.txt --rate 120
      akunu serve --ray --replicas 2-8 --models models.toml --host 0.0.0.0

    \b
    Then, for example:
      curl http://127.0.0.1:8080/v1/chat/completions -H "content-type: application/json" \\
        -d '{"model": "ember", "messages": [{"role": "user", "content": "Hello!"}]}'

    \b
    A TOML file for --models:
      [[model]]
      name = "qwen"
      path = "Qwen/Qwen3-0.6B-GGUF:Q8_0"
      aliases = ["gpt-4o", "claude-*"]
      context = 16384
      preload = true
    """
    if not values["ray"]:
        refuse_unused(("replicas",), "--ray")
    if values["background"]:
        _in_background(values)
        return
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    from akunu._core import OpenAhead

    # While what serves is imported, which takes about as long.
    opened = OpenAhead() if values["device"] != "cpu" and not values["ray"] else None
    models = _models(values)
    settings = _settings(values)
    if not (settings.local or settings.keys):
        note("[open to everybody who can reach this machine: --api-key-file asks for keys]")
    if values["ray"]:
        _deploy(models, settings, values)
        return

    from akunu.api.scheduling.interrupts import held
    from akunu.server.listening import listen
    from akunu.server.preloading import Preload

    with ExitStack() as sockets:
        sock = sockets.enter_context(listen(values["host"], values["port"]))
        more = [sockets.enter_context(listen(values["host"], _OLLAMA_PORT))] if values["ollama"] else []
        host, port = sock.getsockname()[:2]
        names = ", ".join(model.name for model in models)
        shown = f"[{host}]" if ":" in host else host
        preload = next((Preload(model) for model in models if model.preload), None)
        with held:  # an import that Ctrl-C ends may keep a lock that the imports of other threads wait for
            if preload is not None:
                preload.begin()
            # Now only: the weights of a small model take about as long.
            from akunu.server.app import create_app
            from akunu.server.run import serve
        app = create_app(models, settings, preload)
        del preload  # once the model is unloaded, nothing is to hold it
        url = f"http://{shown}:{port}"

        def ready() -> None:
            ollama = f" and port {_OLLAMA_PORT}" if more else ""
            note(f"[{names} at {url}{ollama}]")
            here = f"http://localhost:{port}" if host in ("0.0.0.0", "::") else url
            note(f"[open {here} in a browser to talk to them]")
            if opened is not None:
                opened.close()
            sockets.enter_context(announced(_record(url, port, models)))

        serve(app, sock, ready, *more)


def _record(url: str, port: int, models: list[ModelSpec]) -> Running:
    log = os.environ.get(LOG_VARIABLE)
    return Running(os.getpid(), url, port, tuple(model.name for model in models), time.time(), log)


def _in_background(values: dict[str, Any]) -> None:
    """Start a server that outlives this process."""
    if values["ray"]:
        raise click.UsageError("--ray returns by itself: leave --background out")
    from akunu.loading.finding import find_model

    _settings(values)  # what is wrong is said here
    for model in _models(values):
        if model.preload:
            find_model(model.path, tower=model.mmproj is None)  # fetched here, where its progress can be seen
    log = log_file(values["port"])
    server = start_in_background([word for word in typed_words() if word != "--background"], log)
    note(f"[{', '.join(server.models)} at {server.url}; its log is {log}; akunu stop {server.port} ends it]")


def _models(values: dict[str, Any]) -> list[ModelSpec]:
    from akunu.loading.options import LoadOptions
    from akunu.server.catalog import from_name, from_place

    shared = writing_arguments(
        values
    )  # what is not given takes the default of `LoadOptions`, which is the same
    shared |= {name: values[name] for name in given(LoadOptions.__struct_fields__) if name in values}
    place = values["place"]
    models = [] if place is None else from_place(place, **shared)
    chosen = [*values["named"], *values["names"]] or ([] if models else [DEFAULT_MODEL])
    return [from_name(name, **shared) for name in chosen] + models


def _idle(value: str) -> float:
    """Return the seconds after which an unused model is unloaded; 0: never."""
    from akunu.server.ollama_fields import DURATION_WORDS, duration

    seconds = duration(value)
    if seconds is None:
        raise click.BadParameter(f"found {value!r}, expected {DURATION_WORDS}")
    return 0.0 if math.isinf(seconds) else seconds


def _replicas(value: str) -> tuple[int, int]:
    least, dash, most = value.partition("-")
    first, last = as_integer(least), as_integer(most if dash else least)
    if first is None or last is None or not 1 <= first <= last:
        raise click.BadParameter(f"found {value!r}, expected a number such as 2, or two such as 2-8")
    return first, last


def _deploy(models: list[ModelSpec], settings: Settings, values: dict[str, Any]) -> None:
    from akunu.base.errors import AkunuError

    try:
        import ray
    except ImportError as error:
        raise AkunuError("--ray: Ray is not installed; pip install 'akunu[ray]'") from error
    from akunu.server.cluster.deploy import Scale, deploy

    try:
        ray.init(address="auto")
    except ConnectionError as error:
        raise AkunuError(
            "--ray: this machine is part of no Ray cluster; ray start --head begins one"
        ) from error
    least, most = values["replicas"]
    scale = Scale(least, most, requests=values["parallel"], processors=values["threads"] or 1)
    deploy(models, settings, scale, host=values["host"], port=values["port"])
    names = ", ".join(model.name for model in models)
    note(f"[{names} at http://{values['host']}:{values['port']} of each node; serve shutdown ends it]")


def _settings(values: dict[str, Any]) -> Settings:
    from akunu.server.auth import Keys
    from akunu.server.settings import Settings

    def keys(name: str) -> Keys:
        return Keys() if values[name] is None else Keys.from_file(values[name])

    memory = values["max_memory"]
    return Settings(
        keys=keys("api_key_file"),
        admin_keys=keys("admin_key_file"),
        local=values["host"] in _LOCAL,
        lenient=values["lenient"],
        cors_origins=values["cors_origin"],
        allow_hosts=tuple(name.lower() for name in values["allow_host"]),
        image_hosts=values["image_host"],
        image_folders=values["image_folder"],
        trusted_proxies=values["trusted_proxy"],
        max_connections=values["max_connections"],
        max_body=values["max_body"] << 20,
        max_bodies=values["max_bodies"] << 20,
        max_upload=values["max_upload"] << 20,
        max_queue=values["queue"],
        max_seconds=values["max_seconds"],
        requests_per_minute=values["rate"],
        drain_seconds=values["drain"],
        max_models=values["max_models"],
        max_memory=None if memory is None else math.ceil(memory * (1 << 30)),
        idle_seconds=values["idle"],
    )
