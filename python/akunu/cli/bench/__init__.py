"""`akunu-bench`: llama-bench's tests, options and output formats on Akunu's engine.

The parts: `params` (options into a list of tests), `cases` (loads a test's model), `runner` (runs one),
`report` (prints them), `speech` (times of a speech model), `gguf_file` (a model of random weights as a file),
`command` (the command line).
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["main"]


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line of `akunu-bench`; returns the exit status."""
    from akunu.cli import Run, start

    def load() -> Run:
        from akunu.cli.bench.command import run

        return run

    return start("akunu-bench", load, args)
