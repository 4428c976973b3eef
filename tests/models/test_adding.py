"""docs/adding-an-architecture.md as printed: its row is all that a new architecture needs."""

from __future__ import annotations

import re
from pathlib import Path
from types import MappingProxyType

import pytest

from akunu.base.errors import UnsupportedError
from akunu.files.describe import architectures, gguf_config

from . import tiny
from .reference import Reference
from .test_engine import nmse, open_engine

PAGE = Path(__file__).resolve().parents[2] / "docs" / "adding-an-architecture.md"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of that architecture: its tensors are those of Qwen 3, and its name has as many letters."""
    tiny.write("qwen3", "F32", tmp_path / "qwen3.gguf")
    file = tmp_path / "cedar.gguf"
    file.write_bytes((tmp_path / "qwen3.gguf").read_bytes().replace(b"qwen3", b"cedar"))
    return file


def test_a_row_adds_an_architecture(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnsupportedError, match="found 'cedar'"):
        open_engine(path)
    (code,) = re.findall(
        r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    row = eval(code, dict(vars(architectures)))
    rows = MappingProxyType({**architectures.ARCHITECTURES, row.name: row})
    monkeypatch.setattr(gguf_config, "ARCHITECTURES", rows)
    prompt = tiny.golden("qwen3").prompt
    found = open_engine(path).logits(prompt)
    assert nmse(found, Reference(path, context=tiny.CONTEXT).logits(prompt)) < 1e-9
    assert nmse(found, tiny.golden("qwen3").logits) > 1e-4  # SiLU there
