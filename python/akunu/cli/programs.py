"""Programs that talk to a server of ours, and what each wants to be told: a row for each."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

__all__ = ["PATIENCE", "PROGRAMS", "Program", "Target"]

PATIENCE: Final = 3600
"""Seconds that an agent waits for an answer, or for more of it: a processor may read a long prompt for more
than the five or ten minutes after which they give up, and begin again."""
_ANSWER: Final = 8192
"""Most tokens of one answer, for programs that want to know: at most a quarter of the context."""


_CLAUDES_MARGIN: Final = 13_000
"""Claude Code compacts a conversation so many tokens before what an answer needs. Of 32,768 its own
prompt alone would be at that mark, and it would compact after each call. Told that there are so many more, it
compacts where an answer may no longer fit."""
_CLAUDES_LEAST_WINDOW: Final = 100_000
"""Claude Code takes a smaller window of its compacting for this one, and says so at each start."""


@dataclass(frozen=True, slots=True)
class Target:
    """The address and the name under which a program finds a model.

    Attributes
    ----------
    url : str
        The server, `http://host:port`.
    model : str
        The model's name there.
    key : str
        API key; programs want one even where the server does not.
    context : int or None
        Tokens of a conversation; None: it is not known.
    thinks : bool
        The model can think before it answers.
    sees : bool
        The model reads images.
    few_tools : bool
        The model is to be offered few, plain tools, and told about them in few words.
    folder : Path
        Where `Program.files` are.
    """

    url: str
    model: str
    key: str
    context: int | None = None
    thinks: bool = True
    folder: Path = Path()
    sees: bool = False
    few_tools: bool = False

    @property
    def answer(self) -> int | None:
        """Most tokens of one answer."""
        return None if self.context is None else min(_ANSWER, self.context // 4)


def _nothing(target: Target) -> Mapping[str, str | None]:
    return {}


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
    files : callable
        Texts of files that the arguments or the environment name, by their names in `Target.folder`.
    setup : callable
        Arguments with which the program is run once before.
    dropped : callable
        What of the user's own settings the model cannot follow, and is left out.
    takes_few_tools : bool
        It has settings for `Target.few_tools`.
    """

    title: str
    executable: str
    install: str
    environment: Callable[[Target], Mapping[str, str | None]] = _nothing
    arguments: Callable[[Target], list[str]] = lambda target: []
    files: Callable[[Target], Mapping[str, str]] = lambda target: {}
    setup: Callable[[Target], list[str]] = lambda target: []
    dropped: Callable[[Target], str] = lambda target: ""
    takes_few_tools: bool = False


def _claude(target: Target) -> Mapping[str, str | None]:
    models = ("ANTHROPIC_MODEL", *(f"ANTHROPIC_DEFAULT_{tier}_MODEL" for tier in ("OPUS", "SONNET", "HAIKU")))
    sizes = {}
    if target.context is not None:
        sizes = {
            "CLAUDE_CODE_MAX_CONTEXT_TOKENS": str(target.context + _CLAUDES_MARGIN),
            "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(target.answer),
        }
        if target.context >= _CLAUDES_LEAST_WINDOW:
            sizes["CLAUDE_CODE_AUTO_COMPACT_WINDOW"] = str(target.context)
    return {
        "ANTHROPIC_BASE_URL": target.url,
        "ANTHROPIC_AUTH_TOKEN": target.key,
        "ANTHROPIC_API_KEY": None,  # it would be asked about, and go before the token
        "API_TIMEOUT_MS": str(PATIENCE * 1000),
        "CLAUDE_STREAM_IDLE_TIMEOUT_MS": str(PATIENCE * 1000),  # until the first event; pings do not count
        **dict.fromkeys(models, target.model),
        **sizes,
        "CLAUDE_CODE_ATTRIBUTION_HEADER": "0",  # changes at each request, before all that could be cached
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }


_CODEX_INSTRUCTIONS: Final = """\
You are a coding agent. You do the user's work by calling the tool exec_command, which runs a shell command. \
Examples:

{"name": "exec_command", "arguments": {"cmd": "ls"}}
{"name": "exec_command", "arguments": {"cmd": "cat notes.txt"}}
{"name": "exec_command", "arguments": {"cmd": "cat > notes.txt <<'EOF'\\nfirst line\\nsecond line\\nEOF"}}
{"name": "exec_command", "arguments": {"cmd": "python3 notes.py"}}

Never call write_stdin: it is for a program that runs and waits for input.
Call a tool until the work is done. Then say in a sentence what you did.
"""
"""Instead of Codex's own instructions, of some 4,000 tokens, where the model is offered few tools."""
_CODEX_FILE: Final = "instructions.md"
_CODEX_FEW_TOOLS: Final = (
    "features.goals=false",
    "features.multi_agent=false",
    "tools.experimental_request_user_input.enabled=false",
    "skills.include_instructions=false",
    'web_search="disabled"',
)
"""Settings of Codex 0.171 that leave `exec_command` and `write_stdin`, of which none is for one alone."""


def _codex(target: Target) -> list[str]:
    provider = {
        "name": "Akunu",
        "base_url": f"{target.url}/v1",
        "wire_api": "responses",
        "env_key": "AKUNU_API_KEY",
        "stream_idle_timeout_ms": PATIENCE * 1000,
    }
    table = ", ".join(f"{key} = {json.dumps(value)}" for key, value in provider.items())  # as TOML has it too
    size = [] if target.context is None else ["-c", f"model_context_window={target.context}"]
    effort = [] if target.thinks else ["-c", 'model_reasoning_effort="none"']
    tools = list[str]()
    if target.few_tools:
        tools += [
            *_CODEX_FEW_TOOLS,
            f"model_instructions_file={json.dumps(str(target.folder / _CODEX_FILE))}",
        ]
        tools += [] if target.sees else ["features.view_image=false"]
    return [
        *("-c", f"model_providers.akunu={{{table}}}"),
        *("-c", 'model_provider="akunu"'),
        *size,
        *effort,
        *(word for setting in tools for word in ("-c", setting)),
        *("-m", target.model),
    ]


def _codex_files(target: Target) -> Mapping[str, str]:
    return {_CODEX_FILE: _CODEX_INSTRUCTIONS} if target.few_tools else {}


def _codex_dropped(target: Target) -> str:
    """An effort in the settings of Codex, which a model that cannot think would refuse."""
    file = Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex") / "config.toml"
    try:
        effort = tomllib.loads(file.read_text(encoding="utf-8")).get("model_reasoning_effort")
    except (OSError, ValueError):
        return ""
    return "" if target.thinks or effort in (None, "none") else f"model_reasoning_effort = {effort!r}"


def _opencode(target: Target) -> Mapping[str, str | None]:
    size = {} if target.context is None else {"limit": {"context": target.context, "output": target.answer}}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Akunu",
        "options": {"baseURL": f"{target.url}/v1", "apiKey": target.key, "timeout": PATIENCE * 1000},
        "models": {target.model: {"name": target.model, **size}},
    }
    config = {"provider": {"akunu": provider}, "model": f"akunu/{target.model}"}
    return {"OPENCODE_CONFIG_CONTENT": json.dumps(config)}


def _pi_extension(target: Target) -> Mapping[str, str]:
    """An extension that registers the server: pi has no other way that leaves its settings alone."""
    model = {
        "id": target.model,
        "name": target.model,
        "reasoning": False,
        "input": ["text"],
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
        "contextWindow": target.context or 32768,
        "maxTokens": target.answer or _ANSWER,
    }
    provider = {
        "baseUrl": f"{target.url}/v1",
        "apiKey": "AKUNU_API_KEY",
        "api": "openai-completions",
        "models": [model],
    }
    return {"akunu.ts": f"export default (pi: any) => pi.registerProvider('akunu', {json.dumps(provider)})\n"}


def _qwen_settings(target: Target) -> Mapping[str, str]:
    size = {"contextWindowSize": target.context} if target.context is not None else {}
    return {"settings.json": json.dumps({"model": {"generationConfig": size}})}


def _aider_sizes(target: Target) -> Mapping[str, str]:
    sizes = {"max_input_tokens": target.context, "max_output_tokens": target.answer}
    known = {name: size for name, size in sizes.items() if size is not None}
    free = {
        "input_cost_per_token": 0,
        "output_cost_per_token": 0,
        "litellm_provider": "openai",
        "mode": "chat",
    }
    return {"models.json": json.dumps({f"openai/{target.model}": {**known, **free}})}


def _continue_config(target: Target) -> Mapping[str, str]:
    """A configuration, in JSON, which YAML includes."""
    sizes = {"contextLength": target.context, "maxTokens": target.answer}
    model = {
        "name": target.model,
        "provider": "openai",
        "model": target.model,
        "apiBase": f"{target.url}/v1",
        "apiKey": target.key,
        "roles": ["chat"],
        "capabilities": ["tool_use"],
        "defaultCompletionOptions": {name: size for name, size in sizes.items() if size is not None},
    }
    return {
        "config.yaml": json.dumps({"name": "Akunu", "version": "1.0.0", "schema": "v1", "models": [model]})
    }


def _key(target: Target) -> Mapping[str, str | None]:
    return {"AKUNU_API_KEY": target.key}


PROGRAMS: Final[Mapping[str, Program]] = MappingProxyType(
    {
        "claude": Program("Claude Code", "claude", "npm install -g @anthropic-ai/claude-code", _claude),
        "codex": Program(
            "Codex",
            "codex",
            "npm install -g @openai/codex",
            _key,
            _codex,
            _codex_files,
            dropped=_codex_dropped,
            takes_few_tools=True,
        ),
        "opencode": Program("opencode", "opencode", "npm install -g opencode-ai", _opencode),
        "pi": Program(
            "pi",
            "pi",
            "npm install -g @earendil-works/pi-coding-agent",
            _key,
            lambda t: ["-e", str(t.folder / "akunu.ts"), "--provider", "akunu", "--model", t.model],
            _pi_extension,
        ),
        "qwen": Program(
            "Qwen Code",
            "qwen",
            "npm install -g @qwen-code/qwen-code",
            lambda t: {
                "OPENAI_BASE_URL": f"{t.url}/v1",
                "OPENAI_API_KEY": t.key,
                "OPENAI_MODEL": t.model,
                "QWEN_CODE_SYSTEM_DEFAULTS_PATH": str(t.folder / "settings.json"),
            },
            lambda t: ["--auth-type", "openai", "-m", t.model],
            _qwen_settings,
        ),
        "cline": Program(
            "Cline",
            "cline",
            "npm install -g cline",
            arguments=lambda t: ["--data-dir", str(t.folder / "data"), "-P", "openai-compatible"],
            setup=lambda t: [
                "auth", "--data-dir", str(t.folder / "data"), "-p", "openai-compatible",
                "-k", t.key, "-b", f"{t.url}/v1", "-m", t.model,
            ],
        ),
        "aider": Program(
            "aider",
            "aider",
            "uv tool install aider-chat",
            lambda t: {"OPENAI_API_BASE": f"{t.url}/v1", "OPENAI_API_KEY": t.key},
            lambda t: [
                "--model", f"openai/{t.model}", "--model-metadata-file", str(t.folder / "models.json"),
                "--no-show-model-warnings",
            ],
            _aider_sizes,
        ),
        "continue": Program(
            "Continue",
            "cn",
            "npm install -g @continuedev/cli",
            arguments=lambda t: ["--config", str(t.folder / "config.yaml")],
            files=_continue_config,
        ),
    }
)  # fmt: skip
"""The programs, by the name that `akunu launch` takes."""
