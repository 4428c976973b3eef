"""Converting, devices, templates and errors, as a type checker sees a client (`make check` checks it)."""

from __future__ import annotations

from pathlib import Path
from typing import assert_type

import akunu


def small(model: str, out: Path) -> None:
    akunu.convert(model, out, type="q4_k_m")
    for device in akunu.devices():
        assert_type(device["id"], str)


def templates(model: akunu.Model) -> list[int]:
    assert_type(model.tokenizer, akunu.Tokenizer)
    template = akunu.ChatTemplate("{{ messages[0].content }}", model.tokenizer)
    return template.encode([{"role": "user", "content": "Hello!"}])


def answered(model: akunu.Model, prompt: str) -> str:
    try:
        return model.generate(prompt).text
    except akunu.ContextLengthError:
        return "too long"
    except akunu.InvalidArgumentError as error:
        return error.argument or ""
    except akunu.AkunuError as error:
        return str(error)
