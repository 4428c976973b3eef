"""GGUF files from the Hugging Face Hub, kept in its cache (`HF_HOME`); a broken download is resumed."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from akunu.base.errors import AkunuError, ModelFileError
from akunu.base.hub_name import HubName
from akunu.base.progress import Progress, Report, reporter
from akunu.files.hub.cache import (
    CachedModel,
    cached_models,
    has_unfinished,
    remember,
    remove_cached,
    repository_files,
)
from akunu.files.hub.files import MODEL_MODULE, choose
from akunu.files.hub.projectors import is_gguf, projector_of

if TYPE_CHECKING:
    from typing import Self

__all__ = ["CachedModel", "cached_models", "fetch", "remove_cached", "search"]

_SEARCH_SECONDS: Final = 30.0
"""Seconds that the Hub has to answer a search."""


def fetch(
    name: HubName, *, token: str | None = None, progress: bool | Progress = True, tower: bool = False
) -> Path:
    """Download a model, or find it in the cache.

    Without a network, what the cache holds is used, and a warning names the file.

    Parameters
    ----------
    name
        As `hub_name.parse` reads it; its file may be a quantization.
    token
        As in `akunu.load`.
    progress
        As in `akunu.load`.
    tower
        Fetch the file with the tower of a model that reads images, too, if the repository has one.

    Returns
    -------
    Path
        The file in the cache; of a split model the first part, with the others beside it; of SafeTensors the
        folder.

    Raises
    ------
    ModelFileError
        There is no such repository, revision or file, or it cannot be had.
    UnsupportedError
        The repository holds neither GGUF files nor SafeTensors.
    """
    try:
        import huggingface_hub as hub
    except ImportError as error:
        raise AkunuError(
            f"{name}: fetching from the Hugging Face Hub needs huggingface_hub; pip install huggingface_hub"
        ) from error

    api = hub.HfApi(library_name="akunu", token=token)
    try:
        info = api.model_info(name.repo, revision=name.revision, files_metadata=True)
    except Exception as error:
        if _is_network(error):
            return _from_cache(name, error)
        raise _explained(name, error) from error
    sizes = {file.rfilename: file.size or 0 for file in info.siblings or []}
    files = choose(name.repo, sizes, name.file)
    if tower and is_gguf(files[0]) and (beside := projector_of(list(sizes), files[0])):
        files = [*files, beside]
    with reporter(progress, f"Downloading {name.repo}") as report:
        callback = _Callback(report)
        try:
            # All files are of the commit that was listed, also when somebody pushes another meanwhile.
            commit = info.sha or name.revision
            path = _download(name, commit, {file: sizes[file] for file in files}, token, callback)
            remember(name.repo, name.revision, commit)
            return path
        except Exception as error:
            if error is callback.error:
                raise
            if callback.error is not None:
                raise callback.error from None
            # Where the Hub cannot be reached, its client has looked for this very file in the cache.
            raise _explained(name, error) from error


def search(words: str, limit: int) -> list[dict[str, Any]]:
    """Search the Hub for repositories with GGUF files, the most downloaded first.

    Returns
    -------
    list of dict
        Each has a `name`, `downloads` of the last month, `likes` and the day of the last change, `updated`.

    Raises
    ------
    AkunuError
        The Hub cannot be reached, or refuses.
    """
    import huggingface_hub as hub
    from huggingface_hub import constants

    wanted: dict[str, Any] = {"search": words, "filter": "gguf", "sort": "downloads", "limit": limit}
    wanted["expand"] = ["downloads", "likes", "lastModified"]
    try:
        # `HfApi.list_models` would ask six times, for half a minute, where there is no network.
        token = hub.get_token()
        answer = hub.get_session().get(
            f"{constants.ENDPOINT}/api/models",
            params=wanted,
            headers={"authorization": f"Bearer {token}"} if token else {},
            timeout=_SEARCH_SECONDS,
        )
        answer.raise_for_status()
        found = answer.json()
    except Exception as error:
        if not _is_network(error) and not isinstance(error, hub.errors.HfHubHTTPError):
            raise
        raise AkunuError(f"the Hugging Face Hub cannot be asked: {error}") from error
    return [
        {
            "name": model["id"],
            "downloads": model.get("downloads") or 0,
            "likes": model.get("likes") or 0,
            "updated": (model.get("lastModified") or "")[:10],
        }
        for model in found
    ]


def _is_network(error: Exception) -> bool:
    """Whether the Hub could not be reached or could not answer; not that it refused, or an error here."""
    from huggingface_hub import errors

    if isinstance(error, errors.HfHubHTTPError):
        status = error.response.status_code
        return status in (408, 429) or status >= 500
    http_error = errors.HfHubHTTPError.__bases__[0]  # of an HTTP library that has changed before
    return isinstance(error, (http_error, ConnectionError, TimeoutError, errors.LocalEntryNotFoundError))


def _explained(name: HubName, error: Exception) -> ModelFileError:
    """Return what an error of the Hub's client means, and what to do."""
    from huggingface_hub import constants, errors

    repo = name.repo
    log_in = "run `hf auth login`, or set HF_TOKEN"
    if isinstance(error, errors.GatedRepoError):
        return ModelFileError(
            f"{repo}: its authors want their terms accepted; do so at https://huggingface.co/{repo} "
            f"and {log_in}"
        )
    if isinstance(error, errors.RevisionNotFoundError):
        return ModelFileError(f"{repo} has no revision {name.revision!r}, no such branch, tag or commit")
    if isinstance(error, errors.RepositoryNotFoundError):
        return ModelFileError(
            f"no model {str(name)!r}: there is no such file, and the Hugging Face Hub has no repository "
            f"{repo} (or it is private: {log_in})"
        )
    if isinstance(error, errors.HFValidationError):
        return ModelFileError(
            f"no model {str(name)!r}: there is no such file, and it names no repository: {error}"
        )
    if isinstance(error, OSError) and not isinstance(error, errors.HfHubHTTPError) and not _is_network(error):
        return ModelFileError(
            f"{repo}: cannot be stored in the cache, {constants.HF_HUB_CACHE} (HF_HOME sets it): {error}"
        )
    files = repository_files(repo, name.revision)
    cached = ", ".join(file for file in files if file.endswith((".gguf", ".safetensors")))
    there = f"of this repository the cache has {cached}" if cached else "is not in the cache"
    if isinstance(error, errors.OfflineModeIsEnabled):
        why = "HF_HUB_OFFLINE is set"
    elif _is_network(error) and not isinstance(error, errors.HfHubHTTPError):
        why = f"there is no connection to {constants.ENDPOINT} ({error})"
    else:
        why = str(error)
    later = " (the download that broke off goes on the next time)" if has_unfinished(repo) else ""
    return ModelFileError(f"{name}: cannot be fetched, and {there}: {why}{later}")


def _from_cache(name: HubName, error: Exception) -> Path:
    """Return what the cache has of a repository whose list of files cannot be had."""
    cached = repository_files(name.repo, name.revision)
    if not cached:
        raise _explained(name, error) from error
    try:
        file = choose(name.repo, list(cached), name.file)[0]
    except ModelFileError as missing:
        raise ModelFileError(
            f"{missing}; the Hub cannot be reached ({error}), so this is the cache"
        ) from error
    warnings.warn(
        f"{name.repo}: the Hub cannot be reached ({error}); taking {file} from the cache",
        RuntimeWarning,
        stacklevel=5,  # who called `load`
    )
    return _model_path(cached[file])


class _Callback:
    """Calls the progress function, and keeps what that raises.

    It is the caller's error and none of the download, whatever the Hub's client makes of it.
    """

    def __init__(self, report: Report | None) -> None:
        self._report = report
        self.error: BaseException | None = None

    def __call__(self, done: int, total: int) -> None:
        if self.error is None and self._report is not None:
            try:
                self._report(done, total)
            except BaseException as error:
                self.error = error
        if self.error is not None:
            raise self.error


def _download(
    name: HubName, commit: str, sizes: Mapping[str, int], token: str | None, report: Report
) -> Path:
    from huggingface_hub import hf_hub_download

    total = sum(sizes.values())
    done = 0
    paths = []
    for file, size in sizes.items():
        bar = _bar_class(report, done, total)
        paths.append(
            hf_hub_download(
                name.repo, file, revision=commit, token=token, library_name="akunu", tqdm_class=bar
            )
        )
        done += size
        report(done, total)
    return _model_path(Path(paths[0]))


def _model_path(first: Path) -> Path:
    """The file to load, or the folder, given the first of the files that `choose` gave."""
    if first.name not in ("config.json", "modules.json"):
        return first
    return first.parent.parent if MODEL_MODULE.fullmatch(first.parent.name) else first.parent


def _bar_class(report: Report, before: int, total: int) -> type:
    """A class that the Hub's client takes for a `tqdm` bar: it passes what it is told on to `report`."""

    class Bar:
        def __init__(self, *_: object, initial: int = 0, **__: object) -> None:
            self.n = initial
            self.total = total
            self.format_dict: dict[str, Any] = {}

        def update(self, n: float | None = 1) -> None:
            self.n += int(n or 0)
            report(before + self.n, total)

        def update_transfer(self, n: float) -> None:
            """Compressed bytes, as opposed to those of the file: not shown."""

        def set_postfix_str(self, *_: object, **__: object) -> None: ...
        def set_transfer_postfix_str(self, *_: object, **__: object) -> None: ...
        def refresh(self, *_: object, **__: object) -> None: ...
        def close(self) -> None: ...

        def __enter__(self) -> Self:
            return self

        def __exit__(
            self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
        ) -> None:
            self.close()

    return Bar
