"""The README as PyPI can show it: what the build puts into the package's metadata (`tool.dynamic-metadata`).

PyPI resolves a relative link against the project's page there, where it leads nowhere. With a source address
in `[project.urls]` such links become absolute; without one their text stays, and pictures go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["dynamic_metadata", "for_pypi"]

_IMAGE = re.compile(r"!\[(?P<text>[^\]]*)\]\((?![a-z]+:)(?P<path>[^)#]+)\)\n?")
_LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]*)\]\((?![a-z]+:|#)(?P<path>[^)]+)\)")

_SOURCE_LABELS = ("source", "sourcecode", "repository", "github")


def dynamic_metadata(_settings: Mapping[str, Any], project: Mapping[str, Any]) -> dict[str, Any]:
    """The field `readme` of the metadata."""
    text = Path("README.md").read_text(encoding="utf-8")
    source = _source(project.get("urls", {}))
    return {"readme": {"content-type": "text/markdown", "text": for_pypi(text, source)}}


def for_pypi(text: str, source: str | None) -> str:
    """The README with links that work anywhere.

    Parameters
    ----------
    text
        Markdown with links relative to the root of the sources.
    source
        Address of the sources on a forge that knows `/blob/HEAD/` and `/raw/HEAD/`, or None.
    """
    if source is None:
        return _LINK.sub(lambda match: match["text"], _IMAGE.sub("", text))
    root = source.rstrip("/")
    text = _IMAGE.sub(lambda match: f"![{match['text']}]({root}/raw/HEAD/{match['path']})\n", text)
    return _LINK.sub(lambda match: f"[{match['text']}]({root}/blob/HEAD/{match['path']})", text)


def _source(urls: Mapping[str, str]) -> str | None:
    """The project's sources: the label is any of those that PyPI knows for them."""
    labels = {re.sub(r"[\W_]", "", name).lower(): url for name, url in urls.items()}
    return next((labels[name] for name in _SOURCE_LABELS if name in labels), None)
