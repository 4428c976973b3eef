"""Recognise files and folders of speech models; it imports little, as every load asks."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from akunu.base.json_file import read_object

__all__ = ["is_speech"]

_MAGIC: Final = b"lmgg"


def is_speech(path: Path) -> bool:
    """Whether a file or a folder holds a Whisper model, by its beginning or its `config.json`."""
    if not path.is_dir():
        try:
            with open(path, "rb") as file:
                return file.read(len(_MAGIC)) == _MAGIC
        except OSError:
            return False
    return (path / "config.json").exists() and read_object(path / "config.json").get(
        "model_type"
    ) == "whisper"
