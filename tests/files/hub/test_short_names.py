"""Short names of well-known models."""

from __future__ import annotations

from pathlib import Path

import pytest

import akunu
from akunu.base.errors import ModelFileError
from akunu.base.hub_name import parse
from akunu.files.hub import download
from akunu.files.hub.short_names import SHORT_NAMES, meaning
from akunu.loading.finding import FoundModel

GB = 10**9


@pytest.mark.parametrize("row", SHORT_NAMES.values(), ids=lambda row: row.name)
def test_a_row_is_consistent(row) -> None:
    found = parse(row.target)
    assert found is not None
    assert (found.repo, found.file) == (row.repo, row.file)
    assert parse(row.name) is None  # no name of the Hub's form: neither hides the other
    assert row.name == row.name.lower() and row.name.count(":") == 1
    assert 50 * 10**6 < row.bytes < row.memory(4096) <= row.memory(32768)
    assert bool(row.cache.token_bytes) == (row.kind in ("chat", "coder"))
    assert row.file == "" or row.repo.endswith("-GGUF")


def test_layers_with_a_window_keep_little_more_than_it() -> None:
    cache, layer = SHORT_NAMES["gemma3:4b"].cache, 2 * 4 * 256 * 2
    assert cache.bytes(1000) == 34 * layer * 1000
    assert cache.bytes(32768) == 5 * layer * 32768 + 29 * layer * 2048


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("qwen3:4b", "Qwen/Qwen3-4B-GGUF:Q4_K_M"),
        ("Qwen3:4B", "Qwen/Qwen3-4B-GGUF:Q4_K_M"),
        ("qwen3", "Qwen/Qwen3-8B-GGUF:Q4_K_M"),
        ("qwen3:latest", "Qwen/Qwen3-8B-GGUF:Q4_K_M"),
        ("qwen3:4b-q8_0", "Qwen/Qwen3-4B-GGUF:Q8_0"),
        ("qwen3:30b-a3b", "Qwen/Qwen3-30B-A3B-GGUF:Q4_K_M"),
        ("whisper", "openai/whisper-small"),
        ("whisper:turbo", "openai/whisper-large-v3-turbo"),
    ],
)
def test_names(name: str, target: str) -> None:
    row = meaning(name)
    assert row is not None
    assert row.target == target


@pytest.mark.parametrize("name", ["small", "qwen3:9b", "minilm:l6-q8_0", "", ":", "gpt2", "qwen3:4b-fast"])
def test_what_is_no_short_name(name: str) -> None:
    assert meaning(name) is None


@pytest.mark.parametrize(
    ("name", "repo"),
    [
        ("small", "openai/whisper-small"),
        ("tiny.en", "openai/whisper-tiny.en"),
        ("large-v3-turbo", "openai/whisper-large-v3-turbo"),
        ("large", "openai/whisper-large-v3"),
        ("whisper-base", "openai/whisper-base"),
        ("distil-large-v3", "distil-whisper/distil-large-v3"),
    ],
)
def test_sizes_alone_are_speech_models_where_one_is_wanted(name: str, repo: str) -> None:
    row = meaning(name, speech=True)
    assert row is not None
    assert row.repo == repo


def test_a_family_without_a_size_is_what_fits() -> None:
    sizes = {memory: meaning("qwen3", memory=memory * GB) for memory in (1, 2, 4, 7, 500)}
    assert [row.name for row in sizes.values() if row] == [
        "qwen3:0.6b", "qwen3:0.6b", "qwen3:4b", "qwen3:8b", "qwen3:8b",
    ]  # fmt: skip
    assert meaning("qwen3:8b", memory=1) == SHORT_NAMES["qwen3:8b"]  # who names a size gets it


def test_load_fetches_what_a_short_name_means(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[str] = []

    def fetch(name, **_):
        asked.append(str(name))
        raise ModelFileError("no network")

    monkeypatch.setattr(download, "fetch", fetch)
    monkeypatch.chdir(tmp_path)
    for name, options in {"qwen3:4b": {}, "small": {"task": "transcribe"}}.items():
        with pytest.raises(ModelFileError, match="no network"):
            akunu.load(name, progress=False, **options)
    assert asked == ["Qwen/Qwen3-4B-GGUF:Q4_K_M", "openai/whisper-small"]
    with pytest.raises(ModelFileError, match=r"did you mean .*qwen3:4b"):
        FoundModel("qwen3:4bb")
    (tmp_path / "qwen3:4b").write_bytes(b"GGUF")  # a file of that name is meant first
    assert FoundModel("qwen3:4b").path == Path("qwen3:4b")
