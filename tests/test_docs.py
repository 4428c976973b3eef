"""The documentation holds as printed: its Python examples run, its messages are those of the code."""

from __future__ import annotations

import re
import wave
from pathlib import Path

import pytest
from PIL import Image

from akunu.loading.finding import find_model
from api.encoders import wordpiece
from api.vision import seeing
from api.vision.talking import write_talking
from models import folders
from speech import model_files, tiny

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Fragments and clients, which tests/metal, tests/models and tests/server run where they belong.
FRAGMENTS = {"docs/metal-emulator.md", "docs/adding-an-architecture.md", "docs/server.md"}


def blocks(name: str) -> list[str]:
    return BLOCK.findall((ROOT / name).read_text(encoding="utf-8"))


DOCS = sorted(
    name
    for name in (path.relative_to(ROOT).as_posix() for path in (ROOT / "README.md", *ROOT.glob("docs/*.md")))
    if name not in FRAGMENTS and blocks(name)
)


def test_the_user_documentation_has_examples() -> None:
    assert {"README.md", "docs/quickstart.md", "docs/python-api.md", "docs/formats.md"} <= set(DOCS)


@pytest.mark.parametrize("name", DOCS)
def test_the_examples_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In order, in one namespace; model.gguf is the embedded model, and what is "my-" is tiny."""
    (tmp_path / "model.gguf").symlink_to(find_model("ember").resolve())
    folders.write("qwen3", tmp_path / "my-folder")
    wordpiece.write_model("bert", tmp_path / "my-embeddings")
    wordpiece.write_model("bert_rank", tmp_path / "my-reranker")
    model_files.ggml(tmp_path / "my-whisper.bin", tiny.config(), tiny.model().weights, "f16", tiny.TOKENS)
    write_talking(seeing.ALL["qwen3_vl"], tmp_path / "my-seeing-model")
    Image.new("RGB", (40, 60), "white").save(tmp_path / "receipt.png")
    with wave.open(str(tmp_path / "talk.wav"), "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        file.writeframes(bytes(2 * 16000 * 3))
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    for number, example in enumerate(blocks(name), 1):
        exec(compile(example, f"{name}, example {number}", "exec"), namespace)


def test_the_messages_in_the_table_of_troubles_are_those_of_the_code() -> None:
    table = (ROOT / "docs/install.md").read_text(encoding="utf-8").split("## If something goes wrong")[1]
    messages = re.findall(r"^\| `([^`]+)`", table, re.MULTILINE)
    assert len(messages) >= 4
    sources = [*ROOT.glob("python/akunu/**/*.py"), *ROOT.glob("cpp/*/*.cpp")]
    code = [path.read_text(encoding="utf-8") for path in sources]
    for message in messages:
        if "CMAKE" not in message:  # that one is CMake's
            parts = [part.strip() for part in message.split("…") if part.strip()]
            assert any(all(part in text for part in parts) for text in code), message


NAMED_FILE = re.compile(r"`((?:python|cpp|cuda|metal|tests|tools|bench|packaging|cmake)/[\w./{},*-]+)`")


@pytest.mark.parametrize("page", sorted(ROOT.glob("docs/*.md")), ids=lambda page: page.stem)
def test_files_that_a_page_names_are_there(page: Path) -> None:
    for name in NAMED_FILE.findall(page.read_text(encoding="utf-8")):
        before, brace, rest = name.partition("{")
        middle, _, after = rest.partition("}")
        for choice in middle.split(",") if brace else [""]:
            assert list(ROOT.glob(before + choice + after)), f"{page.name} names {before + choice + after}"
