"""The shipped model that sees: its files, and real answers in a font that it was not trained with."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np
import pytest

import akunu
from akunu.loading.finding import find_model
from tools.ember_vision import tokens
from tools.ember_vision.evaluate import evaluate
from tools.ember_vision.scene import Scene
from tools.ember_vision.shapes import Thing, paint
from tools.ember_vision.skills import LINES

from .drawn import PillowsFont


@pytest.fixture(scope="module")
def model() -> Iterator[akunu.Model]:
    with akunu.load("ember-vision", device="cpu", progress=False) as loaded:
        yield loaded


def asked(model: akunu.Model, image: object, question: str) -> str:
    content = [{"type": "image", "image": image}, {"type": "text", "text": question}]
    return str(model.chat([{"role": "user", "content": content}], max_tokens=120, temperature=0).text)


def picture(*things: Thing, size: tuple[int, int] = (192, 256)) -> Any:
    scene = Scene(Random(1), PillowsFont(), *size, scale=2.0)
    for thing in things:
        paint(scene, thing)
    return scene.finished()


def line(text: str, size: int = 24, width: int = 320) -> Any:
    scene = Scene(Random(1), PillowsFont(), 48, width)
    scene.write(8, 8, text, scene.font(size), (0, 0, 0))
    return scene.finished()


def test_both_files_fit_in_the_package() -> None:
    path = find_model("ember-vision")
    tower = path.with_name(f"mmproj-{path.name}")
    assert path.stat().st_size + tower.stat().st_size <= 10_000_000


def test_it_sees_and_ember_does_not(model: akunu.Model) -> None:
    assert model.reads_images
    with akunu.load("ember", device="cpu", progress=False) as other:
        assert not other.reads_images


def test_a_prompt_is_in_the_form_of_the_training(model: akunu.Model) -> None:
    question = "What is this?"
    content = [
        {"type": "image", "image": np.zeros((48, 80, 3), np.uint8)},
        {"type": "text", "text": question},
    ]
    messages = [{"role": "user", "content": content}]
    form = [tokens.BEGIN, tokens.ASK, *tokens.picture(3, 5), *tokens.spelt(question), tokens.ANSWER]
    assert model.count_tokens(messages) == len(form)
    assert model.tokenize("".join(tokens.CONTROL), add_special=False, parse_special=True) == [
        *range(256, 263)
    ]
    assert model.tokenize("é 1", add_special=False) == tokens.spelt("é 1")


def test_it_names_what_there_is(model: akunu.Model) -> None:
    circle, square = Thing("circle", "red", 64, 96, 40), Thing("square", "blue", 190, 96, 40)
    assert asked(model, picture(circle), "What is this?") == "a red circle"
    both = picture(circle, square)
    assert asked(model, both, "What is this?") == "a red circle and a blue square"
    assert asked(model, both, "What colour is the square?") == "blue"
    assert asked(model, both, "Is the blue square to the right of the red circle?") == "yes"
    corner = picture(Thing("star", "green", 40, 36, 26))
    assert asked(model, corner, "Where is the star?") == "top left"


def test_it_counts_to_ten(model: akunu.Model) -> None:
    found = []
    for count in range(1, 11):
        things = [Thing("circle", "black", 32 + 48 * (n % 5), 48 + 96 * (n // 5), 16) for n in range(count)]
        found.append(asked(model, picture(*things), "How many circles are there?"))
    assert sum(said == str(n) for n, said in enumerate(found, 1)) >= 9, found


@pytest.mark.parametrize("text", ["Hello world", "Open at 9:30", "The small bird sings."])
def test_it_reads_a_line(model: akunu.Model, text: str) -> None:
    assert asked(model, line(text), "Read the text.") == text


def test_it_reads_most_of_a_font_that_it_never_saw(model: akunu.Model) -> None:
    scores = evaluate(model, PillowsFont(), 8, 1)
    assert scores[LINES].right >= 0.9 * scores[LINES].of
