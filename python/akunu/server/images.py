"""Images in requests: what a client sent in the place of each, once it is known which model is asked.

A `data:` URL has the image in it. Files and addresses are read where the operator of the server has allowed
their folder or host, and nowhere else: a client must not read by this server what it could not read itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from akunu.base.errors import ImageError
from akunu.chat.images import DETAILS
from akunu.chat.messages import MessageContent
from akunu.server.errors import ApiError
from akunu.server.fetching import fetch

if TYPE_CHECKING:
    from akunu.api.model import Model
    from akunu.server.settings import Settings

__all__ = ["content_of", "image_part", "instead_of", "settled"]

_READERS: Final = ("user", "tool")
"""Roles whose messages may have images."""


def image_part(source: object, at: str, detail: object = None) -> dict[str, Any]:
    """An image of a message.

    Parameters
    ----------
    source
        A URL, `data:` or another, as the client gave it.
    at
        Where it is in the request, by the names of the API.
    detail
        How closely OpenAI's clients want it to be looked at.
    """
    if not isinstance(source, str) or not source:
        raise ApiError(400, f"{at}: expected the URL of an image, such as data:image/png;base64,…", param=at)
    if detail not in (None, *DETAILS):
        raise ApiError(
            400,
            f"{at}: detail: found {detail!r:.40}, expected one of {', '.join(DETAILS)}",
            param=f"{at}.detail",
            code="unsupported_value",
        )
    part = {"type": "image", "image": source, "at": at}
    return part if detail is None else {**part, "detail": detail}


def content_of(parts: Sequence[str | dict[str, Any]], role: str) -> MessageContent:
    """The content of a message: one text where no part is an image.

    Raises
    ------
    ApiError
        400: there is an image where models are shown none.
    """
    found: list[dict[str, Any]] = []
    for part in parts:
        if not isinstance(part, str):
            if role not in _READERS:
                at = part["at"]
                raise ApiError(
                    400, f"{at}: an image is not supported here; users' messages and tools' results may",
                    param=at, code="unsupported_value",
                )  # fmt: skip
            found.append(part)
        elif found and found[-1]["type"] == "text":
            found[-1]["text"] += part
        else:
            found.append({"type": "text", "text": part})
    if all(part["type"] == "text" for part in found):
        return "".join(part["text"] for part in found)
    return found


def instead_of(kind: str, at: str, warnings: list[str]) -> str:
    """The text in the place of what a model cannot read in a tool's result, with a warning.

    The client could not go on otherwise: each of its next requests has the same result in it.
    """
    warnings.append(f"{at}: this model reads text only; the {kind} was left out")
    return f"[{kind}: this model reads text only]"


def settled(
    messages: Sequence[Mapping[str, Any]], model: Model, settings: Settings, warnings: list[str]
) -> list[dict[str, Any]]:
    """The messages for a model, with its images as bytes; takes as long as it takes to fetch them.

    For a model that reads text only, an image in a tool's result becomes a text, and a warning is added.

    Raises
    ------
    ApiError
        400: the model reads text only, an image is not to be had, or not allowed.
    """
    return [_settled(message, model, settings, warnings) for message in messages]


def _settled(
    message: Mapping[str, Any], model: Model, settings: Settings, warnings: list[str]
) -> dict[str, Any]:
    content = message.get("content")
    if not isinstance(content, list):
        return {**message}
    parts: list[str | dict[str, Any]] = []
    for part in content:
        if part["type"] == "text":
            parts.append(part["text"])
            continue
        at = part["at"]
        if model.reads_images:
            parts.append({**part, "image": _read(part["image"], at, settings)})
        elif message["role"] == "tool":
            parts.append(instead_of("image", at, warnings))
        else:
            raise ApiError(
                400, f"{at}: found an image; this model reads text only", param=at, code="unsupported_value"
            )
    return {**message, "content": content_of(parts, message["role"])}


def _read(source: str, at: str, settings: Settings) -> str | bytes:
    """An image's bytes; a `data:` URL stays one."""
    scheme = source[:8].partition(":")[0].lower()
    try:
        if scheme == "data":
            return source
        if scheme in ("http", "https"):
            return fetch(source, settings.image_hosts)
        if scheme == "file":
            return _from_folder(source, settings.image_folders)
    except ImageError as error:
        message = str(error).removeprefix("image: ")
        raise ApiError(400, f"{at}: {message}", param=at, code="invalid_image") from None
    raise ApiError(
        400, f"{at}: found {source[:40]!r}, expected a URL: data:image/png;base64,… has the image in it",
        param=at, code="invalid_image",
    )  # fmt: skip


def _from_folder(url: str, folders: Sequence[Path]) -> bytes:
    """The bytes of a file in one of the folders, whatever links lead there."""
    from akunu.chat.pictures.opening import picture_bytes

    if not folders:
        raise ImageError(
            "image: this server reads no files; send a data: URL (its operator allows folders by "
            "--image-folder)"
        )
    parts = urlsplit(url)
    refused = ImageError("image: no file in a folder that this server's operator has allowed")
    if parts.netloc not in ("", "localhost"):
        raise refused
    try:
        path = Path(unquote(parts.path)).resolve(strict=True)
        allowed = any(path.is_relative_to(folder.resolve()) for folder in folders)
    except (OSError, ValueError, RuntimeError):
        raise refused from None
    if not allowed:
        raise refused
    return picture_bytes(path)
