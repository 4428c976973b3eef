"""Names of models on the Hugging Face Hub: `user/repo[@revision][:file]`, or an address."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from akunu.base.errors import InvalidArgumentError

__all__ = ["DEFAULT_REVISION", "HubName", "model_name", "parse"]

DEFAULT_REVISION: Final = "main"
HOSTS: Final = ("huggingface.co", "www.huggingface.co", "hf.co")

_NAME = re.compile(
    r"(?P<repo>[A-Za-z0-9][\w.-]*/(?![^:@]*\.(gguf|safetensors)$)[A-Za-z0-9][\w.-]*)"
    r"(@(?P<revision>[\w][\w./-]*))?(:(?P<file>[^:]+))?"
)
"""`models/x.gguf` is rather a file that is not there."""
_ADDRESS = re.compile(
    r"/(?P<repo>[\w.-]+/[\w.-]+)"
    r"((/(tree|blob|resolve|raw)/(?P<revision>[^/]+)(/(?P<file>.+))?)?/?"
    r"|/(?P<own>.+\.gguf)|(@(?P<tag>[\w][\w./-]*))?(:(?P<quant>[^:]+))?)"
)
"""A file right behind the repository is llama-run's form."""
_SCHEME = re.compile(r"\A(hf|huggingface)://", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class HubName:
    """A model on the Hub.

    Attributes
    ----------
    repo : str
        `user/repo`.
    revision : str
        A branch, a tag or a commit.
    file : str
        A file of the repository or a quantization; "": the one that is meant (`hub.files.choose`).
    """

    repo: str
    revision: str = DEFAULT_REVISION
    file: str = ""

    def __str__(self) -> str:
        revision = "" if self.revision == DEFAULT_REVISION else f"@{self.revision}"
        return f"{self.repo}{revision}" + (f":{self.file}" if self.file else "")


def parse(name: str) -> HubName | None:
    """The model that a name means; None when it is no name of the Hub's form.

    Raises
    ------
    InvalidArgumentError
        It is an address, but not one of a model on the Hub.

    Examples
    --------
    >>> parse("https://huggingface.co/Qwen/Qwen3-0.6B-GGUF/blob/main/Qwen3-0.6B-Q8_0.gguf")
    HubName(repo='Qwen/Qwen3-0.6B-GGUF', revision='main', file='Qwen3-0.6B-Q8_0.gguf')
    """
    name = _SCHEME.sub(f"https://{HOSTS[0]}/", name, count=1)
    if re.match(r"https?://|(www\.)?(huggingface|hf)\.co/", name, re.IGNORECASE):
        return _address(name)
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    return HubName(found["repo"], found["revision"] or DEFAULT_REVISION, _without_latest(found["file"]))


def _address(name: str) -> HubName:
    try:
        url = urlsplit(name if "://" in name else f"https://{name}")
        found = _ADDRESS.fullmatch(url.path) if url.hostname in HOSTS else None
    except ValueError:  # brackets that hold no IPv6 address
        found = None
    if found is None or found["repo"].startswith(("datasets/", "spaces/", "docs/")):
        raise InvalidArgumentError(
            f"{name} is not the address of a model on the Hugging Face Hub, such as "
            f"https://{HOSTS[0]}/user/repo; download other files first, and give their path"
        )
    # A folder of a repository holds a quantization's parts: its name is found among the files'.
    file = unquote(found["file"] or found["own"] or found["quant"] or "").strip("/")
    revision = unquote(found["revision"] or found["tag"] or DEFAULT_REVISION)
    return HubName(found["repo"], revision, _without_latest(file) if found["quant"] else file)


def _without_latest(word: str | None) -> str:
    """The word behind a colon; "latest" is Ollama's for the one that is meant without any."""
    return "" if word is None or word == "latest" else word


def model_name(path: Path) -> str:
    """Return the name of a file or folder; one in the Hub's cache is named by its repository."""
    path = Path(os.path.abspath(path))  # the one that we are in is "."
    repository = path.parent.parent.name
    if path.parent.name == "snapshots" and repository.startswith("models--"):
        return repository.rpartition("--")[2]
    return path.name
