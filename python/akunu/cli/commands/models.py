"""`akunu models`: the models in the cache of the Hugging Face Hub, and those that can be fetched."""

from __future__ import annotations

import json
import sys
from types import MappingProxyType
from typing import TYPE_CHECKING

import click

from akunu.base.memory import bytes_text
from akunu.cli.app import CONTEXT_SETTINGS, Command, Group
from akunu.cli.console import note, print_table
from akunu.cli.values import FETCHED, TO_FETCH, Integer

if TYPE_CHECKING:
    from akunu.files.hub.download import CachedModel

__all__ = ["command"]


class _Models(Group):
    elsewhere = MappingProxyType(
        {"rm": "remove", "delete": "remove", "ls": "list", "pull": "fetch", "download": "fetch"}
    )


@click.group("models", cls=_Models, context_settings=CONTEXT_SETTINGS, invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> None:
    """List the models that were fetched from the Hugging Face Hub, find and fetch others, and remove them.

    Models lie in the Hub's own cache (HF_HOME says where), which other programs share. Without a subcommand,
    list them. "akunu pull", "akunu rm" and "akunu show" are short for "models fetch", "models remove" and
    "inspect".

    \b
    Examples:
      akunu models
      akunu models available
      akunu models search qwen3 coder
      akunu pull qwen3:4b
      akunu models list --json | jq -r ".[].name"
      akunu models fetch Qwen/Qwen3-0.6B-GGUF:Q8_0
      akunu models remove Qwen/Qwen3-0.6B-GGUF:Q8_0
      akunu models remove Qwen/Qwen3-0.6B-GGUF --yes
    """
    if context.invoked_subcommand is None:
        _list(as_json=False)


@command.command("list", cls=Command, short_help="List the models in the cache, with their sizes.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, sizes in bytes.")
def list_command(as_json: bool) -> None:
    """List the models, their sizes, and when each was last used.

    \b
    Examples:
      akunu models list
      akunu models list --json
    """
    _list(as_json)


@command.command("available", cls=Command, short_help="List short names of well-known models, and which fit.")
@click.argument("words", metavar="[WORD]...", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, sizes in bytes.")
def available_command(words: tuple[str, ...], as_json: bool) -> None:
    """List short names of well-known models, their sizes, and whether they fit this machine's memory.

    Every command takes them as a MODEL. WORDs choose rows that contain them. Sizes and needs are estimates,
    with a context of 4,096 and of 32,768 tokens.

    \b
    Examples:
      akunu models available
      akunu models available coder
      akunu run -m qwen3:4b "What is the capital of France?"
    """
    from akunu._core import devices
    from akunu.files.hub.short_names import SHORT_NAMES

    most = max(device["memory"] for device in devices())
    chosen = [
        row
        for row in SHORT_NAMES.values()
        if all(word.lower() in f"{row.name} {row.kind} {row.repo.split('/')[1]}".lower() for word in words)
    ]
    if as_json:
        click.echo(json.dumps([row.facts(most) for row in chosen], indent=2))
        return
    if not chosen:
        note(f"[no short name has {' '.join(words)}; akunu models search {' '.join(words)} asks the Hub]")
        return
    rows = [
        [
            row.name,
            row.kind,
            bytes_text(row.bytes),
            bytes_text(row.memory(4096)),
            bytes_text(row.memory(32768)),
            "fits here" if row.memory(4096) <= most else "too large",
            row.licence,
        ]
        for row in chosen
    ]
    print_table(
        ["name", "for", "on disk", "with 4k", "with 32k", f"{bytes_text(most)} here", "licence"],
        rows,
        right="  rrr  ",
    )
    note("[akunu run -m NAME fetches a model once; akunu models search WORDS asks the Hugging Face Hub]")


@command.command("search", cls=Command, short_help="Search the Hugging Face Hub for models in GGUF.")
@click.argument("words", metavar="WORD...", nargs=-1, required=True)
@click.option(
    "-n",
    "--limit",
    type=Integer(1, 100),
    default=20,
    show_default=True,
    help="Show at most this many models.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def search_command(words: tuple[str, ...], limit: int, as_json: bool) -> None:
    """Search the Hugging Face Hub for models in GGUF whose names contain WORDs, the most downloaded first.

    \b
    Examples:
      akunu models search qwen3 coder
      akunu models search granite -n 5 --json | jq -r ".[].name"
    """
    from akunu.files.hub.download import search

    found = search(" ".join(words), limit)
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    if not found:
        note(f"[the Hub has no GGUF models for {' '.join(words)}]")
        return
    print_table(
        ["model", "downloads", "likes", "updated"],
        [[each["name"], f"{each['downloads']:,}", str(each["likes"]), each["updated"]] for each in found],
        right=" rr ",
    )


@command.command("fetch", cls=Command, short_help="Fetch models, so that they are here when you need them.")
@click.argument("names", metavar="NAME...", nargs=-1, required=True, type=TO_FETCH)
def fetch_command(names: tuple[str, ...]) -> None:
    """Fetch models from the Hugging Face Hub: a short name, USER/REPO, USER/REPO:FILE (or a quantization), or
    an address.

    Every command fetches the model that it needs; this one only fetches, as for a machine that will have no
    network. It prints where each model lies. A download that was interrupted goes on where it was.

    \b
    Examples:
      akunu pull qwen3:4b
      akunu models fetch Qwen/Qwen3-0.6B-GGUF:Q8_0
      akunu models fetch openai/whisper-small Qwen/Qwen3-0.6B
    """
    from akunu.base import hub_name
    from akunu.files.hub.download import fetch
    from akunu.files.hub.short_names import close_names, meaning

    wanted = [hub_name.parse(short.target if (short := meaning(name)) else name) for name in names]
    for name, found in zip(names, wanted, strict=True):
        if found is None:  # before anything is fetched
            if near := close_names(name):
                raise click.UsageError(f"no model {name!r}; did you mean {' or '.join(near)}?")
            raise click.UsageError(
                f"{name!r} is neither a short name, such as qwen3:4b, nor a model on the Hugging Face Hub, "
                "such as Qwen/Qwen3-0.6B-GGUF"
            )
    for found in wanted:
        assert found is not None
        click.echo(str(fetch(found, tower=True)))


@command.command("remove", cls=Command, short_help="Remove models from the cache.")
@click.argument("names", metavar="NAME...", nargs=-1, required=True, type=FETCHED)
@click.option("-y", "--yes", is_flag=True, help="Remove without asking.")
def remove_command(names: tuple[str, ...], yes: bool) -> None:
    """Remove models: USER/REPO for all of a repository, USER/REPO:FILE for one. FILE may be a quantization.

    USER/REPO@REVISION means one branch, tag or commit of it.

    \b
    Examples:
      akunu models remove Qwen/Qwen3-0.6B-GGUF:Q8_0
      akunu models remove Qwen/Qwen3-0.6B-GGUF --yes
    """
    from akunu.files.hub.cache import cached_files
    from akunu.files.hub.download import remove_cached
    from akunu.files.hub.short_names import meaning

    names = tuple(short.target if (short := meaning(name)) else name for name in names)
    for name in names:
        cached_files(name)  # known before anything is asked or removed
    for name in names:
        if not yes:
            if not sys.stdin.isatty():
                raise click.UsageError(f"nobody can be asked whether to remove {name}; --yes says so")
            click.confirm(f"Remove {name} from the cache?", abort=True, err=True)
        freed = remove_cached(name)
        click.echo(f"{name}: {bytes_text(freed)} freed")


def _list(as_json: bool) -> None:
    from akunu.files.hub.download import cached_models

    found = cached_models()
    if as_json:
        click.echo(json.dumps([_plain(model) for model in found], indent=2))
        return
    if not found:
        note(
            "[no model was fetched yet; akunu chat qwen3:0.6b fetches one of 0.6 GB, and akunu models "
            "available lists others]"
        )
        return
    rows = [[model.name, bytes_text(model.bytes), f"{model.last_used:%Y-%m-%d}"] for model in found]
    print_table(["model", "size", "last used"], rows, right=" r ")
    whole = bytes_text(sum(model.bytes for model in found))
    note(f"[{whole} in all; akunu models available lists well-known models]")


def _plain(model: CachedModel) -> dict[str, object]:
    return {
        "name": model.name,
        "revision": model.revision,
        "path": str(model.path),
        "bytes": model.bytes,
        "last_used": model.last_used.isoformat(),
    }
