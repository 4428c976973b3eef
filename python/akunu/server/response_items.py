"""The items that a response answers, as they are stored and listed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from akunu.server.openai_responses_fields import Item
from akunu.server.replies import new_id

__all__ = ["stored_items"]

_PREFIXES: Final = {"message": "msg_", "function_call": "fc_", "function_call_output": "fco_"}
"""The beginnings of items' ids, by type; others begin with `rs_`, as reasoning does."""


def stored_items(taken: set[str], items: Iterable[Item]) -> list[dict[str, Any]]:
    """The items in the form that clients read, each with an id of its own, none of those that are `taken`."""
    found, taken = [], set(taken)
    for item in items:
        name = item.id if item.id and item.id not in taken else new_id(_PREFIXES.get(item.type, "rs_"))
        taken.add(name)
        found.append({**msgspec.to_builtins(item), **_as_read(item), "id": name, "type": item.type})
    return found


def _as_read(item: Item) -> dict[str, Any]:
    """Return what clients expect where a request may say it shorter."""
    if item.type == "reasoning":
        return {"summary": msgspec.to_builtins(item.summary or [])}
    fields: dict[str, Any] = {"status": item.status or "completed"}
    if item.type == "message" and isinstance(item.content, str):
        said = item.role == "assistant"
        part = {"type": "output_text", "annotations": []} if said else {"type": "input_text"}
        fields["content"] = [{**part, "text": item.content}]
    return fields
