"""The models in the Hub's cache: listed with their sizes, and removed without touching what others need."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from akunu.base.errors import ModelFileError
from akunu.files.hub.download import CachedModel, cached_models, remove_cached

OLD, NEW = "a" * 40, "b" * 40


@pytest.fixture
def cache(tmp_path, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


def put(cache: Path, repo: str, file: str, size: int, revision: str = NEW, blob: str | None = None) -> Path:
    """A file as the Hub's client stores it: a blob, and a link to it for each revision."""
    folder = cache / f"models--{repo.replace('/', '--')}"
    content = folder / "blobs" / (blob or f"{revision[0]}-{file.replace('/', '_')}")
    content.parent.mkdir(parents=True, exist_ok=True)
    content.write_bytes(b"x" * size)
    link = folder / "snapshots" / revision / file
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(os.path.relpath(content, link.parent))
    (folder / "refs").mkdir(exist_ok=True)
    (folder / "refs" / "main").write_text(revision)
    return link


def blobs(cache: Path) -> int:
    return sum(path.stat().st_size for path in cache.glob("*/blobs/*"))


def test_without_a_cache_there_are_none(cache):
    assert cached_models() == []
    with pytest.raises(ModelFileError, match="the cache has no model of 'me/m'; it is empty"):
        remove_cached("me/m")


def test_each_model_is_listed_with_what_loads_it(cache):
    put(cache, "you/z", "z-Q8_0.gguf", 30)
    path = put(cache, "me/m", "Q4_0/m-00001-of-00002.gguf", 10)
    put(cache, "me/m", "Q4_0/m-00002-of-00002.gguf", 5)
    put(cache, "me/m", "mmproj-F16.gguf", 7)  # of no use alone
    put(cache, "else/bert", "model.safetensors", 9)
    os.utime(path, (2e9, 1e9))
    first, second = cached_models()
    assert (first.name, first.revision, first.path, first.bytes) == (
        "me/m:Q4_0/m-00001-of-00002.gguf", NEW, path, 15,
    )  # fmt: skip
    assert first.last_used.timestamp() == 2e9
    assert (second.name, second.bytes) == ("you/z:z-Q8_0.gguf", 30)
    assert isinstance(second, CachedModel)


def test_a_folder_of_safetensors_is_one_model(cache):
    for name, size in [("config.json", 1), ("tokenizer.json", 2), ("README.md", 50)]:
        put(cache, "me/m", name, size)
    for i in (1, 2):
        put(cache, "me/m", f"model-0000{i}-of-00002.safetensors", 10 * i)
    index = put(cache, "me/m", "model.safetensors.index.json", 4)
    (model,) = cached_models()
    assert (model.name, model.path, model.bytes) == ("me/m", index.parent, 37)
    assert remove_cached("me/m") == 37
    assert blobs(cache) == 50, "what is of no model stays"


def test_a_repository_is_removed_whole(cache):
    put(cache, "me/m", "a.gguf", 10)
    put(cache, "me/m", "b.gguf", 20)
    put(cache, "me/n", "n.gguf", 40)
    assert remove_cached("me/m") == 30
    assert [model.name for model in cached_models()] == ["me/n:n.gguf"]
    assert not (cache / "models--me--m").exists()
    assert blobs(cache) == 40


def test_one_model_is_removed_with_all_its_parts_and_revisions(cache):
    for revision in (OLD, NEW):
        put(cache, "me/m", "m-Q8_0-00001-of-00002.gguf", 10, revision)
        put(cache, "me/m", "m-Q8_0-00002-of-00002.gguf", 10, revision)
    put(cache, "me/m", "m-Q4_0.gguf", 5)
    assert remove_cached("me/m:Q8_0") == 40
    assert [model.name for model in cached_models()] == ["me/m:m-Q4_0.gguf"]
    assert blobs(cache) == 5


def test_what_other_programs_keep_of_the_repository_stays(cache):
    put(cache, "me/m", "m.gguf", 10)
    config = put(cache, "me/m", "config.json", 3)
    assert remove_cached("me/m:m.gguf") == 10
    assert config.read_bytes() == b"xxx"


def test_a_blob_that_another_file_shares_stays(cache):
    put(cache, "me/m", "a-Q4_0.gguf", 10, blob="shared")
    put(cache, "me/m", "b-Q8_0.gguf", 10, blob="shared")
    assert remove_cached("me/m:a-Q4_0.gguf") == 0
    assert blobs(cache) == 10
    assert remove_cached("me/m:b-Q8_0.gguf") == 10


def test_one_revision_is_removed(cache):
    put(cache, "me/m", "a.gguf", 10, OLD)
    put(cache, "me/m", "a.gguf", 20, NEW)
    assert remove_cached("me/m@main") == 30
    put(cache, "me/m", "a.gguf", 10, OLD)
    put(cache, "me/m", "a.gguf", 20, NEW)
    assert remove_cached(f"me/m@{OLD}") == 10
    assert [model.revision for model in cached_models()] == [NEW]


def test_an_unclear_or_unknown_name_says_what_there_is(cache):
    put(cache, "me/m", "a.gguf", 10)
    put(cache, "me/m", "b.gguf", 10)
    with pytest.raises(ModelFileError, match=r"no file 'Q4_0'; it has a\.gguf, b\.gguf"):
        remove_cached("me/m:Q4_0")
    with pytest.raises(ModelFileError, match=r"no model of 'me/x'; it has me/m:a\.gguf, me/m:b\.gguf"):
        remove_cached("me/x")
    assert len(cached_models()) == 2


def test_files_without_links_are_removed_as_well(cache):
    folder = cache / "models--me--m" / "snapshots" / NEW
    folder.mkdir(parents=True)
    (folder / "m.gguf").write_bytes(b"xxxx")
    assert remove_cached("me/m") == 4
    assert cached_models() == []
