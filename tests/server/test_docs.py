"""The examples of the server's documentation run, against a server that is there."""

from __future__ import annotations

import re
from pathlib import Path

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "server.md").read_text(encoding="utf-8")
ADDRESS = "http://127.0.0.1:8080"


def test_the_examples_run(served):
    blocks = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    assert blocks
    for number, block in enumerate(blocks, 1):
        assert ADDRESS in block
        exec(compile(block.replace(ADDRESS, served.url), f"docs/server.md, example {number}", "exec"), {})


def test_every_route_is_in_the_table(served):
    named = set(re.findall(r"/[\w/.-]+", TEXT))
    page = {"/", "/page"}
    assert {route.path for route in served.app.routes if "{" not in route.path} - page <= named
