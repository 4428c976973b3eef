"""Greedy answers of the shipped file, pinned: the same on every device and in Q8_0 and F16.

Where two tokens tie within rounding, another device or kernel may take the other one, and the answer goes on
differently: that is seen in the logits, and allowed.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import akunu
from tools.ember import evaluate
from tools.ember.export import export, read_gguf
from tools.ember.render import TEMPLATE_PATH

PINS = Path(__file__).parent / "answers.json"
DEVICES = [device["id"] for device in akunu.devices()]
TYPES = ["Q8_0", "F16"]
KINDS = [f"{d}-{t}" for d in DEVICES for t in TYPES if d == "cpu" or t == "Q8_0"]  # an emulated GPU is slow
TIE = 0.02  # of a logit; on the CPU, rounding activations to int8 moves them by up to 0.06
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get the weather in a city.",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
            },
            "required": ["city"],
        },
    },
}
CHATS: dict[str, list[tuple[str, str]]] = {
    "capital": [("user", "What is the capital of France?")],
    "follow-up": [
        ("user", "What is the capital of France?"),
        ("assistant", "The capital of France is Paris."),
        ("user", "And of Italy?"),
    ],
    "product": [("user", "What is 17 * 23?")],
    "identity": [("user", "Who are you?")],
    "memory": [
        ("user", "My name is Sandra."),
        ("assistant", "Hello, Sandra! How can I help you?"),
        ("user", "What is my name?"),
    ],
    "capitals": [("system", "Answer in capital letters."), ("user", "What is the opposite of hot?")],
    "json": [("user", "Extract name, age and city as JSON. Anna is 34 years old and lives in Oslo.")],
    "unknown": [("user", "Who won the World Cup in 1998?")],
    "sorting": [("user", "Sort these numbers: 42, 7, 19")],
    "calendar": [("user", "What day comes after Monday?")],
}


def prompt_of(model: akunu.Model, name: str) -> list[int]:
    if name == "plain":
        return model.tokenize("Q: What is the capital of Japan?\nA:")
    if name == "tool":
        return model.chat_template.encode(
            [{"role": "user", "content": "What is the weather in Paris?"}], tools=[TOOL]
        )
    messages: list[dict[str, Any]] = [{"role": role, "content": text} for role, text in CHATS[name]]
    return model.chat_template.encode(messages)


def ask(model: akunu.Model, name: str) -> str:
    longest = 7 if name == "plain" else 48
    return model.generate(prompt_of(model, name), max_tokens=longest, temperature=0).text


NAMES = [*CHATS, "plain", "tool"]
# The others are a second or more each on an emulated one.
ON_A_GPU = ["capital", "follow-up", "plain", "tool"]


def cases() -> list[Any]:
    """What each model is asked."""
    often = {kind: NAMES if kind.startswith("cpu") else ON_A_GPU for kind in KINDS}
    return [
        pytest.param(kind, name, marks=() if name in often[kind] else pytest.mark.long)
        for kind in KINDS
        for name in NAMES
    ]


@pytest.fixture(scope="module")
def open_kind(
    ember_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], akunu.Model]]:
    """Each kind is loaded once: a fixture with parameters would be made anew for each of their names."""
    with ExitStack() as opened:

        @functools.cache
        def open_it(kind: str) -> akunu.Model:
            device, weights = kind.rsplit("-", 1)
            path = ember_path
            if weights != "Q8_0":
                path = tmp_path_factory.mktemp("ember") / f"{kind}.gguf"
                export(read_gguf(ember_path), weights, path, TEMPLATE_PATH.parent / "tokenizer.json")
            return opened.enter_context(akunu.load(str(path), device=device))

        yield open_it


@pytest.mark.parametrize(("kind", "name"), cases())
def test_greedy_answers_are_pinned(kind: str, name: str, open_kind: Callable[[str], akunu.Model]) -> None:
    model = open_kind(kind)
    answer, pinned = ask(model, name), json.loads(PINS.read_text(encoding="utf-8"))[name]
    if answer == pinned:
        return
    prompt = prompt_of(model, name)
    ids = [model.tokenize(text, add_special=False) for text in (answer, pinned)]
    at = next(i for i, (a, b) in enumerate(zip(*ids, strict=False)) if a != b)
    logits = model.logits([*prompt, *ids[0][:at]])[-1]
    assert abs(logits[ids[0][at]] - logits[ids[1][at]]) < TIE, (answer, pinned)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.startswith("cpu")])
def test_a_story_is_told_to_its_end(kind: str, open_kind: Callable[[str], akunu.Model]) -> None:
    """Which story is not pinned: many words are equally likely, and the last bit of a weight decides.

    A claim about the model: that devices agree over long texts is shown where the engine is tested.
    """
    opening = "Once upon a time, there was a little fox named Ruby"
    told = open_kind(kind).generate(opening, max_tokens=700, temperature=0)
    assert evaluate.story_fault(opening + told.text, "Ruby", told.finish_reason == "stop") == ""


@pytest.mark.parametrize("kind", ["Q4_0", "Q4_K_M"])
def test_four_bits_still_know_the_plain_things(kind: str, ember_path: Path, tmp_path: Path) -> None:
    path = tmp_path / f"{kind}.gguf"
    export(read_gguf(ember_path), kind, path, TEMPLATE_PATH.parent / "tokenizer.json")
    pins = json.loads(PINS.read_text(encoding="utf-8"))
    with akunu.load(str(path)) as loaded:
        right = [name for name in CHATS if ask(loaded, name) == pins[name]]
    assert len(right) >= 7, f"only {right} are as with eight bits"


if __name__ == "__main__":  # after a new training: pin the answers of the shipped file anew
    with akunu.load("ember", device="cpu") as shipped:
        pinned = {each: ask(shipped, each) for each in NAMES}
    PINS.write_text(json.dumps(pinned, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
