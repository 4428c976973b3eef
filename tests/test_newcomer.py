"""A newcomer's questions: each is answered by a page that the home page links, in a section that it lists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"

QUESTIONS = [
    # the question, the page, its section ("" is the beginning), what has to stand there
    ("How do I install it?", "install.md", "Install", "pip install ."),
    ("The installation fails. What now?", "install.md", "If something goes wrong", "CMAKE_CXX_COMPILER"),
    ("How do I talk to a model?", "quickstart.md", "In the terminal", "akunu chat"),
    ("I use Ollama. What is that here?", "coming-from.md", "Ollama", "akunu run"),
    ("Does my model run?", "models.md", "", "| `qwen3` |"),
    ("My model is larger than memory.", "models.md", "Experts larger than memory", "--memory"),
    ("How do I use my NVIDIA GPU?", "cuda.md", "Use", "akunu[cuda]"),
    ("Does it run on my Mac's GPU?", "metal.md", "", "Mac"),
    ("How do I make a model smaller?", "convert.md", "Which type", "q4_k_m"),
    ("How do I point an OpenAI client at it?", "server.md", "", "/v1"),
    ("How do I start a coding agent?", "cli.md", "launch", "akunu launch"),
    ("Who may use my server?", "server.md", "Who may use it, and how much", "--api-key-file"),
    ("How do I get JSON of a schema?", "structured-output.md", "JSON", "schema"),
    ("How does a model call my functions?", "chat.md", "Tools", "tool_calls"),
    ("How do I show it an image?", "images.md", "In Python", '"type": "image"'),
    ("How do I search by meaning?", "embeddings.md", "", "model.embed("),
    ("How do I get subtitles of a recording?", "speech.md", "Transcripts", 'to("srt")'),
    ("Can a cache outlive the process?", "python-api.md", "A cache that outlives the process", "cache_dir"),
    ("How fast is it?", "performance.md", "In short", "llama.cpp"),
    ("How do I use it from C?", "c-api.md", "", "akunu_load"),
    ("What is a dispatch table?", "glossary.md", "Words of this project", "dispatch table"),
]  # fmt: skip


def _links(page: Path) -> set[str]:
    return set(re.findall(r"\]\(([\w-]+\.md)(?:#[\w-]+)?\)", page.read_text(encoding="utf-8")))


def _section(page: str, title: str) -> str:
    """The text below a heading, up to the next one of its level or above; that before all for no title."""
    text = re.sub(r"^# .*\n", "", (DOCS / page).read_text(encoding="utf-8"), count=1)
    if not title:
        return re.split(r"^## ", text, flags=re.MULTILINE)[0]
    found = re.search(rf"^(##+) {re.escape(title)}$\n", text, re.MULTILINE)
    assert found, f"docs/{page} has no section {title!r}"
    return re.split(rf"^#{{2,{len(found[1])}}} ", text[found.end() :], flags=re.MULTILINE)[0]


@pytest.mark.parametrize(
    ("page", "title", "answer"), [pytest.param(*row[1:], id=row[0]) for row in QUESTIONS]
)
def test_a_question_is_answered_two_clicks_from_home(page: str, title: str, answer: str) -> None:
    assert page in _links(DOCS / "index.md"), f"docs/index.md does not link {page}"
    assert answer in _section(page, title)


def test_every_page_for_users_is_in_the_navigation_and_those_of_start_and_guides_are_linked_from_home() -> (
    None
):
    nav = (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    groups = {
        name: set(re.findall(r"[\w-]+\.md", part))
        for name, part in re.findall(r"  - (\w+):\n((?:      .*\n)+)", nav)
    }
    assert set(groups) == {"Start", "Guides", "Reference", "Engine"}
    assert set.union(*groups.values()) == {path.name for path in DOCS.glob("*.md")}
    assert (groups["Start"] | groups["Guides"]) - {"index.md"} <= _links(DOCS / "index.md")
