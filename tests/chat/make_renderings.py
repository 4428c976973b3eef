"""Writes renderings.json by Transformers, from the messages that Akunu gives to the template:

PYTHONPATH=tests python -m chat.make_renderings
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from unittest import mock

from akunu.base.errors import AkunuError
from akunu.chat import ChatTemplate

from .shapes import CONVERSATIONS, NOW, RENDERINGS, TEMPLATES, template

__all__ = ["renderings"]


def renderings() -> dict[str, dict[str, str | None]]:
    """What Transformers makes of every conversation."""
    from transformers.utils import chat_template_utils

    class Frozen:
        now = staticmethod(lambda: NOW)

    def render(source: str, values: dict[str, Any]) -> str:
        values = dict(values)
        (text,), _ = chat_template_utils.render_jinja_template(
            [values.pop("messages")], chat_template=source, tools=values.pop("tools"), **values
        )
        return str(text)

    with mock.patch.object(chat_template_utils, "datetime", Frozen):
        return {
            name: {title: _rendered(template(name), source, title, render) for title in CONVERSATIONS}
            for name, source in TEMPLATES.items()
        }


def _rendered(
    found: ChatTemplate, source: str, title: str, render: Callable[[str, dict[str, Any]], str]
) -> str | None:
    messages, arguments = CONVERSATIONS[title]
    try:
        found.render(messages, **arguments, generic_tools=False)
    except AkunuError:
        return None
    with mock.patch.object(found, "_rendered", wraps=found._rendered) as rendered:
        found.render(messages, **arguments, generic_tools=False)
    values = rendered.call_args_list[0].args[1]  # the first is that without marks
    return render(source, {**found._variables, **values})


if __name__ == "__main__":
    text = json.dumps(renderings(), ensure_ascii=False, indent=1)
    RENDERINGS.write_text(text + "\n", encoding="utf-8")
