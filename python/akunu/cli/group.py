"""The group of subcommands. Their names and summaries are data here, so that help loads none of them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Final

import click

from akunu.cli.app import CONTEXT_SETTINGS, LazyVersion

__all__ = ["COMMANDS", "akunu"]

COMMANDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "complete": "Continue a text.",
        "chat": "Talk with a model.",
        "inspect": "Show a model file: metadata, tensors, dispatch table.",
        "profile": "Time every command of a dispatch table.",
        "perplexity": "Measure how well a model predicts a text.",
        "devices": "List the devices that can run a model.",
    }
)
"""Summaries by name, in the order of the help. Command NAME is `akunu.cli.NAME.command`."""


class LazyGroup(click.Group):
    """A group whose subcommands are imported when one of them runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"akunu.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


akunu = LazyGroup(
    "akunu",
    context_settings=CONTEXT_SETTINGS,
    params=[LazyVersion()],
    help="""Run language models on this machine.

    A MODEL is a GGUF file, USER/REPO or USER/REPO:FILE on the Hugging Face Hub (fetched once, then cached),
    or "ember", the small model that comes with Akunu and that is used when you name none.

    \b
    Examples:
      akunu complete "Once upon a time"
      akunu chat -m Qwen/Qwen3-0.6B-GGUF
      akunu chat -m model.gguf --system "Answer in one sentence."
      akunu inspect model.gguf --plan
      echo "The capital of France is" | akunu complete - -m model.gguf --max-tokens 8
    """,
    epilog='"akunu COMMAND --help" explains a command, with examples. Benchmarks: "akunu-bench --help".',
)
