"""Show which files of the package one streamed chat request crosses, and through how many generators.

    python -m tools.request_path           the files, those of every piece of the answer first
    python -m tools.request_path --json    the figures, as the test reads them

A server of the model that comes with Akunu answers twice; what the second answer runs is recorded, in all
threads. `pieces` are files that run from one piece of the answer to the next, `request` all that run.
`generators` are those that stand between the model and the client, each inside the next: where the client is
sent an event, and where the scheduler is asked for tokens. `renderings` are those of the chat template.
"""

from __future__ import annotations

import argparse
import asyncio
import inspect
import json
import sys
import threading
from collections import Counter, defaultdict
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import httpx

import akunu
from akunu.server import ModelSpec, Settings, create_app

PACKAGE = str(Path(akunu.__file__).parent)
GENERATOR = inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR
REQUEST = {
    "model": "ember",
    "messages": [{"role": "user", "content": "Tell me about the sea."}],
    "tools": [
        {
            "type": "function",
            "function": {
                "name": "weather",
                "description": "The weather of a city.",
                "parameters": {
                    "type": "object",
                    "properties": {"city": {"type": "string"}},
                    "required": ["city"],
                },
            },
        }
    ],
    "temperature": 0,
    "max_tokens": 32,
    "stream": True,
}


class Recorder:
    """Counts the calls of the package's functions, in threads that begin after it."""

    def __init__(self) -> None:
        self.active = False
        self.calls = [Counter[CodeType]()]
        """How often each function ran before the first piece of the answer, and after each piece."""
        self.outer: dict[str, list[CodeType]] = {}
        """Generators on the stack: of the thread that reads tokens, and of the task that sends events."""
        threading.setprofile(self)
        sys.setprofile(self)

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if not self.active or event != "call" or not code.co_filename.startswith(PACKAGE):
            return
        if _in_sweep(frame):
            return
        if code.co_qualname == "Piece.__new__":
            self.calls.append(Counter())
        self.calls[-1][code] += 1
        if code.co_qualname == "Scheduler.next":
            self.outer["tokens"] = _generators(frame)
        elif code.co_qualname == "AsyncItems.several":
            self.outer["events"] = _generators(frame)


def _in_sweep(frame: FrameType | None) -> bool:
    """Say whether a frame belongs to what the server does once in a while, which is no part of a request."""
    while frame is not None:
        if frame.f_code.co_qualname == "_sweep":
            return True
        frame = frame.f_back
    return False


def _generators(frame: FrameType | None) -> list[CodeType]:
    """Return the generators of the package that run at a frame, from the innermost on."""
    found = []
    while frame is not None:
        if frame.f_code.co_flags & GENERATOR and frame.f_code.co_filename.startswith(PACKAGE):
            found.append(frame.f_code)
        frame = frame.f_back
    return found


async def record(recorder: Recorder) -> None:
    """Have the request answered twice, and record the second answer."""
    app = create_app((ModelSpec(name="ember", path="ember", preload=True, threads=1),), Settings())
    transport = httpx.ASGITransport(app=app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=60) as client,
    ):
        for recorder.active in (False, True):
            answer = await client.post("/v1/chat/completions", json=REQUEST)
            answer.raise_for_status()
        recorder.active = False


def measure() -> dict[str, Any]:
    """The figures, and the files with the functions that ran."""
    recorder = Recorder()
    try:
        asyncio.run(record(recorder))
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    functions = _by_file(sum(recorder.calls, Counter()))
    chain = [code.co_qualname for part in ("tokens", "events") for code in recorder.outer[part]]
    return {
        "pieces": _of_most(recorder.calls[2:-2]),
        "request": sorted(functions),
        "generators": chain,
        "renderings": functions["chat/sandbox.py"]["render"],
        "functions": functions,
    }


def _of_most(pieces: list[Counter[CodeType]]) -> list[str]:
    """Return the files that run for more than half of the pieces, not what happens once in a while."""
    found = Counter(file for calls in pieces for file in _by_file(calls))
    return sorted(file for file, count in found.items() if 2 * count > len(pieces))


def _by_file(calls: Counter[CodeType]) -> dict[str, dict[str, int]]:
    files: dict[str, dict[str, int]] = defaultdict(dict)
    for code, count in calls.items():
        if code.co_name != "<module>":
            files[str(Path(code.co_filename).relative_to(PACKAGE))][code.co_qualname] = count
    return files


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    found = measure()
    if parser.parse_args().json:
        print(json.dumps(found))
        return
    for title, names in (
        ("every piece", found["pieces"]),
        ("once", sorted({*found["request"]} - {*found["pieces"]})),
    ):
        print(f"{title}: {len(names)} files")
        for name in names:
            print(f"  {name}: {', '.join(sorted(found['functions'][name]))}"[:150])
    print("generators, from the model outwards:", " < ".join(found["generators"]))
    print("renderings:", found["renderings"])


if __name__ == "__main__":
    main()
