"""Language models: what llama.cpp says with the same files, chats, tools, forms, drafts, conversion."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import akunu
from akunu.cli import main
from missing import data

from .models import real_model, recorded

NAMES = ("smollm2-135m", "gemma3-270m", "qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b")
CODER = "qwen2.5-coder-1.5b"

TIE = 0.5
"""Of logits; two that are as near may change places with the rounding of activations, which each program and
each instruction set does in its own way."""


@pytest.fixture(scope="module")
def loaded() -> Iterator[Callable[[str], akunu.Model]]:
    """Models, loaded once for the whole file."""
    models: dict[str, akunu.Model] = {}

    def load(name: str) -> akunu.Model:
        if name not in models:
            models[name] = akunu.load(real_model(name), parallel=2, progress=False)
        return models[name]

    yield load
    for model in models.values():
        model.close()


@pytest.mark.parametrize("name", NAMES)
def test_the_best_tokens_are_those_of_llama_cpp(name: str, loaded: Callable[[str], akunu.Model]) -> None:
    """Each of them, given those before; a token may be another where the two best are near a tie."""
    model = loaded(name)
    for case in recorded(name)["greedy"]:
        ids = model.tokenize(case["prompt"], parse_special=True)
        assert ids == case["prompt_ids"]
        logits = model.logits(ids + case["ids"])[len(ids) - 1 : -1]
        for row, token, margin in zip(logits, case["ids"], case["margins"], strict=True):
            assert row.max() - row[token] < TIE
            assert row.argmax() == token or margin < TIE
        agreed = next((i for i, margin in enumerate(case["margins"]) if margin < TIE), len(case["ids"]))
        found = model.generate(ids, max_tokens=len(case["ids"]), temperature=0, repeat_penalty=1)
        assert found.ids[:agreed] == [i for i in case["ids"][:agreed] if i not in model.tokenizer.control_ids]


@pytest.mark.parametrize("name", NAMES)
def test_the_perplexity_is_that_of_llama_cpp(name: str, loaded: Callable[[str], akunu.Model]) -> None:
    model, wanted = loaded(name), recorded(name)["perplexity"]
    text = data("text/tinyshakespeare.txt").read_text(encoding="utf-8")[:50_000]
    ids = [*model.tokenizer.template.before, *model.tokenize(text, add_special=False)]
    cut = model.detokenize(ids[: wanted["windows"] * wanted["window"] + 4])
    found = model.perplexity(cut, context=wanted["window"])
    assert found == pytest.approx(wanted["value"], rel=0.005)


def test_a_chat_through_the_server_knows_the_answer() -> None:
    from server.conftest import ModelSpec, serving

    spec = ModelSpec(name="coder", path=str(real_model(CODER)), preload=True)
    with serving(spec) as served:
        asked = {"model": "coder", "temperature": 0, "max_tokens": 40}
        answer = served.chat("What is the capital of France? Answer in one word.", **asked).json()
        assert "Paris" in answer["choices"][0]["message"]["content"]
        assert answer["choices"][0]["finish_reason"] == "stop"
        streamed = served.chat("What is 2 + 3? Only the number.", stream=True, **asked).text
        pieces = [json.loads(line[6:]) for line in streamed.splitlines() if line.startswith("data: {")]
        said = "".join(p["choices"][0]["delta"].get("content") or "" for p in pieces if p["choices"])
        assert "5" in said
        tools = [{"type": "function", "function": WEATHER}]
        asked |= {"tools": tools, "tool_choice": "required"}  # left alone, it writes the call as Markdown
        called = served.chat("What is the weather in Paris?", **asked).json()
        (call,) = called["choices"][0]["message"]["tool_calls"]
        assert call["function"]["name"] == "get_weather"
        assert json.loads(call["function"]["arguments"]) == {"city": "Paris"}


WEATHER = {
    "name": "get_weather",
    "description": "Get the current weather in a city.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
}
PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 40},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "languages": {"type": "array", "items": {"enum": ["Python", "C++", "Rust"]}, "maxItems": 3},
    },
    "required": ["name", "age", "languages"],
    "additionalProperties": False,
}


def test_a_schema_is_filled_with_what_the_text_says(loaded: Callable[[str], akunu.Model]) -> None:
    question = "Ada is 36 years old and writes Python and Rust. Describe her as JSON."
    answer = loaded(CODER).chat(
        [{"role": "user", "content": question}], schema=PERSON, temperature=0, max_tokens=120
    )
    found = json.loads(answer.text)
    jsonschema.validate(found, PERSON)
    assert (found["name"], found["age"]) == ("Ada", 36)
    assert {"Python", "Rust"} <= set(found["languages"])


def test_drafts_by_lookup_do_not_change_the_text(loaded: Callable[[str], akunu.Model]) -> None:
    """The text repeats its prompt, so that drafts are found."""
    model = loaded("qwen2.5-coder-0.5b")
    code = "def area(width, height):\n    return width * height\n\n\nprint(area(3, 4))\n"
    messages = [{"role": "user", "content": f"Repeat this code, with width renamed to w:\n{code}"}]
    options: dict[str, Any] = {"temperature": 0, "max_tokens": 80}
    plain = model.chat(messages, speculative=False, **options)
    drafted = model.chat(messages, speculative=True, **options)
    assert drafted.text == plain.text


@pytest.mark.parametrize("file_type", ["q8_0", "q4_k_m"])
def test_a_converted_file_predicts_as_well(
    file_type: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "text.txt"
    text.write_text(data("text/tinyshakespeare.txt").read_text(encoding="utf-8")[:5000])
    source, out = real_model("smollm2-135m"), tmp_path / "out.gguf"
    words = ["convert", str(source), str(out), "--type", file_type, "--check", str(text)]
    assert main(words) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    before, after = (float(row[-1]) for row in rows[-2:])
    assert after == pytest.approx(before, rel={"q8_0": 0.01, "q4_k_m": 0.1}[file_type])


def test_minilm_gives_the_vectors_of_transformers(tmp_path: Path) -> None:
    """Also from the GGUF file in F32 that is made of it."""
    wanted = recorded("minilm")
    made = akunu.convert(real_model("minilm"), tmp_path / "minilm.gguf", "f32", progress=False)
    for path in (real_model("minilm"), made):
        with akunu.load(path, task="embed", progress=False) as model:
            found = model.embed(wanted["texts"])
        cosines = np.sum(found * np.array(wanted["vectors"]), axis=1)
        assert np.all(cosines > 0.99999)
