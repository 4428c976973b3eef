"""Programs that talk to a server of ours, and what each wants to be told: a row for each."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

__all__ = ["PROGRAMS", "Program", "Target"]


@dataclass(frozen=True, slots=True)
class Target:
    """Where a program is to find a model.

    Attributes
    ----------
    url : str
        The server, `http://host:port`.
    model : str
        The model's name there.
    key : str
        API key; programs want one even where the server does not.
    """

    url: str
    model: str
    key: str


@dataclass(frozen=True, slots=True)
class Program:
    """A program to launch.

    Attributes
    ----------
    title : str
        Its name as people know it.
    executable : str
        What is looked for on the PATH.
    install : str
        How to get it.
    environment : callable
        Variables to set for a `Target`; None: to unset.
    arguments : callable
        Arguments that go before the user's own.
    """

    title: str
    executable: str
    install: str
    environment: Callable[[Target], Mapping[str, str | None]]
    arguments: Callable[[Target], list[str]]


def _claude(target: Target) -> Mapping[str, str | None]:
    models = ("ANTHROPIC_MODEL", *(f"ANTHROPIC_DEFAULT_{tier}_MODEL" for tier in ("OPUS", "SONNET", "HAIKU")))
    return {
        "ANTHROPIC_BASE_URL": target.url,
        "ANTHROPIC_AUTH_TOKEN": target.key,
        "ANTHROPIC_API_KEY": None,  # it would be asked about, and go before the token
        **dict.fromkeys(models, target.model),
        "CLAUDE_CODE_ATTRIBUTION_HEADER": "0",  # changes at each request, before all that could be cached
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }


def _codex(target: Target) -> list[str]:
    provider = {
        "name": "Akunu",
        "base_url": f"{target.url}/v1",
        "wire_api": "responses",
        "env_key": "AKUNU_API_KEY",
    }
    table = ", ".join(f"{key} = {json.dumps(value)}" for key, value in provider.items())  # as TOML has it too
    return [
        *("-c", f"model_providers.akunu={{{table}}}"),
        *("-c", 'model_provider="akunu"'),
        *("-m", target.model),
    ]


def _opencode(target: Target) -> Mapping[str, str | None]:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Akunu",
        "options": {"baseURL": f"{target.url}/v1", "apiKey": target.key},
        "models": {target.model: {"name": target.model}},
    }
    config = {"provider": {"akunu": provider}, "model": f"akunu/{target.model}"}
    return {"OPENCODE_CONFIG_CONTENT": json.dumps(config)}


PROGRAMS: Final[Mapping[str, Program]] = MappingProxyType(
    {
        "claude": Program(
            "Claude Code", "claude", "npm install -g @anthropic-ai/claude-code", _claude, lambda target: []
        ),
        "codex": Program(
            "Codex", "codex", "npm install -g @openai/codex", lambda t: {"AKUNU_API_KEY": t.key}, _codex
        ),
        "opencode": Program(
            "opencode", "opencode", "npm install -g opencode-ai", _opencode, lambda target: []
        ),
    }
)
"""By the name that `akunu launch` takes."""
