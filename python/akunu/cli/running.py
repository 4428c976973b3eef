"""The servers of this user that run on this machine: a record of each, which lives as long as its process."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from akunu.base.errors import AkunuError
from akunu.cli.files import own_file

__all__ = ["LOG_VARIABLE", "Running", "announced", "log_file", "running", "start_in_background", "still_runs"]

LOG_VARIABLE: Final = "AKUNU_SERVE_LOG"
"""Tells a server in the background where its log goes, for its record."""

_POLL_SECONDS: Final = 0.05
_LOG_SECONDS: Final = 7 * 86400
"""Seconds that the log of a server that is gone stays."""

_LAST_LINES: Final = 5
"""Lines of the log that an error shows."""


@dataclass(frozen=True, slots=True)
class Running:
    """A server that runs.

    Attributes
    ----------
    pid : int
        Its process.
    url : str
        Its address, `http://host:port`.
    port : int
        Its port.
    models : tuple of str
        The names of the models that it offers.
    started : float
        When it was ready, in seconds since 1970.
    log : str or None
        The file that its log goes to; None: where it was started.
    """

    pid: int
    url: str
    port: int
    models: tuple[str, ...]
    started: float
    log: str | None = None


def _folder() -> Path:
    """Return the folder of the records, which nobody else may read."""
    folder = own_file("servers")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def _record_of(pid: int) -> Path:
    return _folder() / f"{pid}.json"


def log_file(port: int) -> Path:
    """Return the file for the log of a server in the background; remove old ones that none writes."""
    folder, written = _folder(), {server.log for server in running()}
    for path in folder.glob("*.log"):
        if str(path) not in written and time.time() - path.stat().st_mtime > _LOG_SECONDS:
            path.unlink(missing_ok=True)
    return folder / f"{port or f'of-{os.getpid()}'}.log"


@contextmanager
def announced(server: Running) -> Iterator[None]:
    """Let `running` find this server, until the block or the process ends, however that ends.

    The record is locked: a process that is gone holds no lock, whoever has its number then.
    """
    try:
        path = _record_of(server.pid)
        unfinished = path.with_suffix(".new")
        file = unfinished.open("w", encoding="utf-8")
    except OSError:  # a service without a home serves all the same
        yield
        return
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        json.dump(asdict(server), file)
        file.flush()
        unfinished.rename(path)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def running() -> list[Running]:
    """Return the servers that run, by the time of their start. Records of others are removed."""
    found = [server for path in _folder().glob("*.json") if (server := _read(path)) is not None]
    return sorted(found, key=lambda server: server.started)


def still_runs(server: Running) -> bool:
    """Return whether it does."""
    return _read(_record_of(server.pid)) is not None


def _read(path: Path) -> Running | None:
    try:
        with path.open(encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                values = json.load(file)
                return Running(**{**values, "models": tuple(values["models"])})
            path.unlink(missing_ok=True)
    except (OSError, ValueError, TypeError, KeyError):  # gone meanwhile, or written by another version
        pass
    return None


def start_in_background(arguments: Sequence[str], log: Path) -> Running:
    """Start "akunu serve" with these arguments in a process of its own, and wait until it is ready.

    Ctrl-C while it starts ends it.

    Parameters
    ----------
    arguments
        What "akunu serve" is given.
    log
        The file that its log goes to; an earlier log is replaced.

    Raises
    ------
    AkunuError
        It ended before it was ready; the message has the end of its log.
    """
    with open(log, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "akunu", "serve", *arguments],
            stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
            env={**os.environ, "NO_COLOR": "1", LOG_VARIABLE: str(log)},
        )  # fmt: skip
    path = _record_of(process.pid)
    try:
        while process.poll() is None:
            if (server := _read(path)) is not None:
                return server
            time.sleep(_POLL_SECONDS)
    except BaseException:
        with suppress(OSError):
            process.terminate()
        raise
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    said = "; ".join(line.removeprefix("akunu: error: ") for line in lines[-_LAST_LINES:])
    raise AkunuError(f"the server ended with status {process.returncode}: {said or 'it said nothing'}")
