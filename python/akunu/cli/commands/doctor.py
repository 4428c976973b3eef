"""`akunu doctor`: what runs here, what is missing, and why."""

from __future__ import annotations

import json
import os
import platform
import shutil
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import click

from akunu.base.memory import bytes_text
from akunu.cli.app import CONTEXT_SETTINGS, Command
from akunu.cli.console import is_terminal

__all__ = ["command"]

State = Literal["ok", "note", "problem"]

_EXTRAS = {
    "cuda": ("cuda.bindings.nvrtc", "nvidia.cuda_nvrtc", "nvidia.cu13", "models on NVIDIA GPUs"),
    "vad": ("onnxruntime", "transcribe --vad-model"),
    "av": ("av", "MP4, M4A, WebM and other recordings without ffmpeg"),
    "ray": ("ray", "serve --ray"),
}
"""Each extra maps to the modules of which one must be importable, and last to what the extra is for."""


@dataclass(frozen=True)
class Finding:
    """One line of the report."""

    what: str
    state: State
    text: str


@click.command("doctor", cls=Command, context_settings=CONTEXT_SETTINGS)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(as_json: bool) -> None:
    """Say what runs here, what is missing, and what to do about it. Nothing is changed or fetched.

    The exit status is 1 if there is a problem.

    \b
    Examples:
      akunu doctor
      akunu doctor --json > report.json
    """
    found = [_python(), *_devices(), _memory(), _cache(), *_extras(), _ffmpeg(), *_surroundings()]
    if as_json:
        click.echo(json.dumps([asdict(each) for each in found], indent=2))
    else:
        width = max(len(each.what) for each in found)
        colours = {"ok": "green", "note": "yellow", "problem": "red"}
        for each in found:
            mark = (
                click.style(f"{each.state:7}", fg=colours[each.state]) if is_terminal() else f"{each.state:7}"
            )
            click.echo(f"{mark}  {each.what:{width}}  {each.text}")
    if any(each.state == "problem" for each in found):
        click.get_current_context().exit(1)


def _python() -> Finding:
    from akunu.base.version import __version__

    system = f"{platform.system()} {platform.release()} on {platform.machine()}"
    return Finding("akunu", "ok", f"{__version__}, Python {platform.python_version()}, {system}")


def _devices() -> list[Finding]:
    from akunu import _core

    found = []
    for row in _core.devices():
        kind = f"{row['isa']}, {row['threads']} threads" if row["backend"] == "CPU" else row["backend"]
        found.append(
            Finding(f"device {row['id']}", "ok", f"{row['name']}, {kind}, {bytes_text(row['memory'])}")
        )
    return found + [Finding(name, "note", why) for name, why in _core.missing_devices().items()]


def _memory() -> Finding:
    from akunu import _core

    memory = next(row["memory"] for row in _core.devices() if row["id"] == "cpu")
    text = f"{bytes_text(memory)}; akunu models available says what fits"
    return Finding("memory", "ok" if memory > 1 << 30 else "note", text)


def _cache() -> Finding:
    from huggingface_hub import constants, get_token

    folder = Path(constants.HF_HUB_CACHE)
    there = next(place for place in (folder, *folder.parents) if place.exists())
    free = shutil.disk_usage(there).free
    token = "a token is set" if get_token() else "no token (needed for gated models: hf auth login)"
    offline = ", HF_HUB_OFFLINE is set: nothing is fetched" if constants.HF_HUB_OFFLINE else ""
    text = f"{folder}, {bytes_text(free)} free; {token}{offline}"
    if not os.access(there, os.W_OK):
        return Finding("model cache", "problem", f"{folder} cannot be written; set HF_HOME to another folder")
    return Finding("model cache", "note" if free < 5 << 30 or offline else "ok", text)


def _extras() -> list[Finding]:
    found = []
    for extra, (*modules, purpose) in _EXTRAS.items():
        there = any(_is_there(name) for name in modules)
        remedy = "" if there else f": pip install 'akunu[{extra}]'"
        found.append(Finding(f"akunu[{extra}]", "ok" if there else "note", f"{purpose}{remedy}"))
    return found


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _ffmpeg() -> Finding:
    path = shutil.which("ffmpeg")
    return Finding(
        "ffmpeg", "ok" if path else "note", path or "is not installed; it reads video and M4A files"
    )


def _surroundings() -> list[Finding]:
    """Return what containers, Windows and limits of the shell change."""
    import resource

    found = []
    if "microsoft" in platform.release().lower():
        found.append(Finding("WSL", "note", "models load fastest from Linux's own disk, not from /mnt/c"))
    if Path("/.dockerenv").exists() or Path("/run/.containerenv").exists():
        text = "the memory limit is the container's; mount HF_HOME to keep models"
        found.append(Finding("container", "note", text))
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY:
        text = f"limits address space to {bytes_text(limit)}, in which mapped model files count"
        found.append(Finding("ulimit -v", "note", text))
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if files < 1024:
        found.append(
            Finding("ulimit -n", "note", f"allows {files} open files; akunu serve needs one a client")
        )
    return found
