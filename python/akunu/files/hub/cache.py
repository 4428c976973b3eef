"""The models that the Hub's cache holds: which they are, what room they take, and taking them out again."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from akunu.base.errors import ModelFileError
from akunu.base.hub_name import DEFAULT_REVISION, HubName, parse
from akunu.base.whole_file import whole_file
from akunu.files.hub.files import choose, folder_files, is_whisper_file, model_files
from akunu.files.hub.projectors import is_gguf

__all__ = [
    "CachedModel",
    "cached_files",
    "cached_models",
    "has_unfinished",
    "remember",
    "remove_cached",
    "repository_files",
]


@dataclass(frozen=True, slots=True)
class CachedModel:
    """A model in the cache of the Hugging Face Hub.

    Attributes
    ----------
    name : str
        What `akunu.load` takes: `user/repo:file.gguf`, of a split model the first part; `user/repo` for a
        folder of SafeTensors.
    revision : str
        The commit, 40 hexadecimal digits.
    path : Path
        The file or folder.
    bytes : int
        Its size, that of all parts together.
    last_used : datetime
        When it was last read or written, as far as the file system tells.
    """

    name: str
    revision: str
    path: Path
    bytes: int
    last_used: datetime


def cached_models() -> list[CachedModel]:
    """The models in the cache (`HF_HOME`), by name; those of other programs too, since the cache is shared.

    Returns
    -------
    list of CachedModel
        Empty where there is no cache.

    Examples
    --------
    >>> from akunu.files.hub.download import cached_models
    >>> for model in cached_models():
    ...     print(model.name, model.bytes)  # doctest: +SKIP
    """
    found = [model for snapshot in _snapshots() for model, _ in _models_in(snapshot)]
    return sorted(found, key=lambda model: (model.name, model.revision))


def remove_cached(name: str) -> int:
    """Take a model out of the cache, in all its revisions or in the one that is named.

    Parameters
    ----------
    name
        `user/repo` for all models of a repository; `user/repo:file.gguf` or `user/repo:QUANTIZATION` for one;
        `user/repo@revision` for a branch, tag or commit.

    Returns
    -------
    int
        Bytes that were freed: a file that another revision or model shares stays.

    Raises
    ------
    ModelFileError
        The cache has no such model, several that the name fits, or a file cannot be removed.
    """
    files = cached_files(name)
    try:
        return _removed(files, _root_of(next(iter(files))).parent.parent)
    except OSError as error:
        raise ModelFileError(f"{name}: cannot be removed from the cache: {error}") from error


def cached_files(name: str) -> set[Path]:
    """The files that `remove_cached` would remove; raises what it does if there are none."""
    named = parse(name) or HubName(name)
    repo, wanted = named.repo, named.file
    snapshots = [snapshot for snapshot in _snapshots() if _repo_of(snapshot) == repo]
    if named.revision != DEFAULT_REVISION:
        snapshots = [snapshot for snapshot in snapshots if snapshot.name == _commit(repo, named.revision)]
    models = [entry for snapshot in snapshots for entry in _models_in(snapshot)]
    if not models:
        there = ", ".join(model.name for model in cached_models())
        raise ModelFileError(
            f"the cache has no model of {repo!r}; " + (f"it has {there}" if there else "it is empty")
        )
    files = {file for model, parts in models for file in parts}
    if wanted:
        names = sorted({path.relative_to(_root_of(path)).as_posix() for path in files})
        chosen = set(choose(repo, names, wanted))
        files = {path for path in files if path.relative_to(_root_of(path)).as_posix() in chosen}
    return files


def has_unfinished(repo: str) -> bool:
    """Whether a download of one of a repository's files broke off."""
    return any((_folder(repo) / "blobs").glob("*.incomplete"))


def repository_files(repo: str, revision: str = DEFAULT_REVISION) -> dict[str, Path]:
    """The models' files that the cache holds of a repository's revision, by their name in the repository."""
    snapshot = _folder(repo) / "snapshots" / _commit(repo, revision)
    return {path.relative_to(snapshot).as_posix(): path for path in _files(snapshot)}


def remember(repo: str, revision: str, commit: str) -> None:
    """Note which commit a branch or a tag is, where the Hub's client and `repository_files` look."""
    if revision != commit:
        reference = _folder(repo) / "refs" / revision
        reference.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(reference) as file:
            file.write(commit.encode())


def _folder(repo: str) -> Path:
    return _cache() / f"models--{repo.replace('/', '--')}"


def _commit(repo: str, revision: str) -> str:
    """The commit of a branch or tag, as it was when the Hub was last asked; a commit is its own."""
    try:
        return (_folder(repo) / "refs" / revision).read_text().strip()
    except OSError:
        return revision


def _cache() -> Path:
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE)


def _snapshots() -> Iterator[Path]:
    """The folder of each revision: `models--USER--REPO/snapshots/COMMIT`."""
    yield from sorted(path for path in _cache().glob("models--*/snapshots/*") if path.is_dir())


def _files(snapshot: Path) -> list[Path]:
    """Return the files of a model, by their names: weights, and the texts beside them."""
    kinds = (".gguf", ".safetensors", ".json", ".jinja")
    return sorted(
        path
        for path in snapshot.rglob("*")
        if (path.suffix in kinds or is_whisper_file(path.name)) and path.exists()
    )


def _repo_of(snapshot: Path) -> str:
    return snapshot.parent.parent.name.removeprefix("models--").replace("--", "/", 1)


def _root_of(file: Path) -> Path:
    """The snapshot that a file lies in."""
    return next(folder for folder in file.parents if folder.parent.name == "snapshots")


def _models_in(snapshot: Path) -> Iterator[tuple[CachedModel, list[Path]]]:
    names = [path.relative_to(snapshot).as_posix() for path in _files(snapshot)]
    gguf = model_files(list(filter(is_gguf, names)))
    gguf += [[name] for name in names if is_whisper_file(name)]
    folder = folder_files(names)
    for parts in gguf or ([folder] if folder else []):
        paths = [snapshot / part for part in parts]
        stats = [path.stat() for path in paths]
        yield (
            CachedModel(
                name=f"{_repo_of(snapshot)}:{parts[0]}" if gguf else _repo_of(snapshot),
                revision=snapshot.name,
                path=paths[0] if gguf else snapshot,
                bytes=sum(stat.st_size for stat in stats),
                last_used=datetime.fromtimestamp(max(max(s.st_atime, s.st_mtime) for s in stats), UTC),
            ),
            paths,
        )


def _removed(files: set[Path], folder: Path) -> int:
    """Remove files of a repository, then blobs that nothing refers to any more; returns the bytes freed."""
    sizes = {Path(os.path.realpath(file)): file.stat().st_size for file in files}
    for file in files:
        file.unlink()  # a link into blobs/, or the file itself where there are no links
    left = [path for path in folder.glob("snapshots/**/*") if path.is_file()]
    kept = {Path(os.path.realpath(path)) for path in left}
    for blob in sizes.keys() - kept:
        blob.unlink(missing_ok=True)
    if not left:
        shutil.rmtree(folder)
    return sum(size for blob, size in sizes.items() if blob not in kept)
