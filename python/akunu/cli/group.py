"""The group of subcommands. Their names and summaries are data here, so that help loads none of them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Final

import click

from akunu.cli.app import CONTEXT_SETTINGS, Group, LazyVersion

__all__ = ["COMMANDS", "akunu"]

COMMANDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "run": "Answer a question, about files or standard input if you like.",
        "chat": "Talk with a model.",
        "complete": "Continue a prompt, without a chat template.",
        "transcribe": "Transcribe recordings.",
        "embed": "Compute embedding vectors.",
        "rerank": "Sort documents by relevance to a query.",
        "serve": "Serve models over HTTP, as OpenAI's and Anthropic's APIs.",
        "ps": "List the servers that run here, and their models in memory.",
        "stop": "Stop servers that run here.",
        "models": "List, fetch and remove models of the Hugging Face Hub.",
        "convert": "Write a model with weights of another type.",
        "imatrix": "Measure an importance matrix, for convert.",
        "inspect": "Show a model file: metadata, tensors, dispatch table.",
        "profile": "Time every command of a step.",
        "report": "Check and measure this machine, for a report to send.",
        "perplexity": "Measure how well a model predicts a text.",
        "service": "Run the server as a service of systemd or launchd.",
        "tokenize": "Show the tokens of a text.",
        "launch": "Start a coding agent with a local model.",
        "devices": "List the devices that can run a model.",
        "config": "Print how to build a program with the C interface.",
        "doctor": "Say what runs here, what is missing, and why.",
    }
)
"""Summaries by name, in the order of the help. Command NAME is `akunu.cli.commands.NAME.command`."""

SHORT: Final[Mapping[str, tuple[str, str, str]]] = MappingProxyType(
    {
        "list": ("models", "list_command", "models list"),
        "pull": ("models", "fetch_command", "models fetch"),
        "rm": ("models", "remove_command", "models remove"),
        "show": ("inspect", "command", "inspect"),
    }
)
"""Other programs' names of commands: the module, the command there, and what it is called here."""


_ELSEWHERE: Final[Mapping[str, str]] = MappingProxyType(
    {"generate": "complete", "ls": "list",
     "quantize": "convert", "bench": "the program akunu-bench, or report",
     "download": "models fetch", "version": "--version",
     "whisper": "transcribe"}
)  # fmt: skip
"""The names that other programs have for a command."""


class LazyGroup(Group):
    """A group whose subcommands are imported when one of them runs."""

    elsewhere = _ELSEWHERE

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args[:1] == ["help"]:
            args = [*args[1:], "--help"]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        module, name = SHORT[cmd_name][:2] if cmd_name in SHORT else (cmd_name, "command")
        if module not in COMMANDS:
            return None
        command = getattr(import_module(f"akunu.cli.commands.{module}"), name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))
            formatter.write_text(
                ", ".join(f"{name} is short for {full}" for name, (*_, full) in SHORT.items())
            )


akunu = LazyGroup(
    "akunu",
    context_settings=CONTEXT_SETTINGS,
    params=[LazyVersion()],
    help="""Run language models on this machine.

    A MODEL is a short name such as qwen3:4b ("akunu models available"), a GGUF file, a folder with
    SafeTensors, USER/REPO or USER/REPO:FILE on the Hugging Face Hub (fetched once, then cached), or "ember",
    the small model that comes with Akunu and that is used when you name none.

    \b
    Examples:
      akunu run "What is the capital of France?"
      akunu run -m qwen3:4b "Summarise this." notes.txt
      akunu chat Qwen/Qwen3-0.6B-GGUF
      akunu complete "Once upon a time"
      akunu inspect model.gguf --plan
      echo "The capital of France is" | akunu complete - -m model.gguf --max-tokens 8
    """,
    epilog='"akunu COMMAND --help" explains a command, with examples. Benchmarks: "akunu-bench --help".',
)
