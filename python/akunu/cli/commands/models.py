"""`akunu models`: the models in the cache of the Hugging Face Hub."""

from __future__ import annotations

import json
import sys
from types import MappingProxyType
from typing import TYPE_CHECKING

import click

from akunu.base.memory import bytes_text
from akunu.cli.app import CONTEXT_SETTINGS, Command, Group
from akunu.cli.console import note, print_table

if TYPE_CHECKING:
    from akunu.hub.download import CachedModel

__all__ = ["command"]


class _Models(Group):
    elsewhere = MappingProxyType(
        {"rm": "remove", "delete": "remove", "ls": "list", "pull": "fetch", "download": "fetch"}
    )


@click.group("models", cls=_Models, context_settings=CONTEXT_SETTINGS, invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> None:
    """List the models that were fetched from the Hugging Face Hub, fetch others, and remove them.

    They lie in the Hub's own cache (HF_HOME says where), which other programs share. Without a subcommand,
    list them.

    \b
    Examples:
      akunu models
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


@command.command("fetch", cls=Command, short_help="Fetch models, so that they are here when you need them.")
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
def fetch_command(names: tuple[str, ...]) -> None:
    """Fetch models from the Hugging Face Hub: USER/REPO, USER/REPO:FILE (or a quantization), or an address.

    Every command fetches the model that it needs; this one only fetches, as for a machine that will have no
    network. It prints where each model lies. A download that was interrupted goes on where it was.

    \b
    Examples:
      akunu models fetch Qwen/Qwen3-0.6B-GGUF:Q8_0
      akunu models fetch openai/whisper-small Qwen/Qwen3-0.6B
    """
    from akunu.base import hub_name
    from akunu.hub.download import fetch

    wanted = [hub_name.parse(name) for name in names]
    for name, found in zip(names, wanted, strict=True):
        if found is None:  # before anything is fetched
            raise click.UsageError(
                f"{name!r} is no model on the Hugging Face Hub, such as Qwen/Qwen3-0.6B-GGUF"
            )
    for found in wanted:
        assert found is not None
        click.echo(str(fetch(found)))


@command.command("remove", cls=Command, short_help="Remove models from the cache.")
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def remove_command(names: tuple[str, ...], yes: bool) -> None:
    """Remove models: USER/REPO for all of a repository, USER/REPO:FILE for one. FILE may be a quantization.

    USER/REPO@REVISION means one branch, tag or commit of it.

    \b
    Examples:
      akunu models remove Qwen/Qwen3-0.6B-GGUF:Q8_0
      akunu models remove Qwen/Qwen3-0.6B-GGUF --yes
    """
    from akunu.hub.cache import cached_files
    from akunu.hub.download import remove_cached

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
    from akunu.hub.download import cached_models

    found = cached_models()
    if as_json:
        click.echo(json.dumps([_plain(model) for model in found], indent=2))
        return
    if not found:
        note("[no model was fetched yet; akunu chat Qwen/Qwen3-0.6B-GGUF fetches one of 0.6 GB]")
        return
    rows = [[model.name, bytes_text(model.bytes), f"{model.last_used:%Y-%m-%d}"] for model in found]
    print_table(["model", "size", "last used"], rows, right=" r ")
    note(f"[{bytes_text(sum(model.bytes for model in found))} in all]")


def _plain(model: CachedModel) -> dict[str, object]:
    return {
        "name": model.name,
        "revision": model.revision,
        "path": str(model.path),
        "bytes": model.bytes,
        "last_used": model.last_used.isoformat(),
    }
