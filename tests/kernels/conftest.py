from __future__ import annotations

import pytest

from .devices import targets, unsupported


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A green run must say what it ran on: sets that this processor lacks were not tested."""
    ran = ", ".join(t.id for t in targets())
    missing = ", ".join(unsupported()) or "none"
    terminalreporter.write_sep("-", "kernel table")
    terminalreporter.write_line(f"ran on: {ran}")
    terminalreporter.write_line(f"NOT RUN, this processor lacks: {missing}")
