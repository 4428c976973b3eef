"""What ember-vision learns from: pictures whose questions have the right answers, as batches."""

from __future__ import annotations

import re
from random import Random

import numpy as np
import pytest

from akunu.chat.pictures.preprocess import Patches, Scale
from tools.ember_vision import tokens
from tools.ember_vision.batches import BUCKETS, IGNORED, Batch, conversation, fill, in_patches
from tools.ember_vision.drawing import KINDS, draw
from tools.ember_vision.pages import closest
from tools.ember_vision.scene import COLOUR_NAMES, SHAPES, SLOTS, Scene
from tools.ember_vision.skills import GRIDS, edits, skill_of

from .drawn import PillowsFont

FONTS = PillowsFont()
SIZES = {"lines": (4, 24), "shapes": (12, 20), "signs": (8, 15), "receipt": (20, 18), "chart": (15, 16)}


def scenes(kind: str, count: int = 60) -> list[Scene]:
    return [draw(Random(f"{kind} {n}"), FONTS, *SIZES[kind], kind) for n in range(count)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_gives_the_same_picture_of_the_size_that_is_asked_for(kind: str) -> None:
    rows, columns = SIZES[kind]
    first, again = (draw(Random(5), FONTS, rows, columns, kind) for _ in range(2))
    picture = first.finished()
    assert picture.shape == (16 * rows, 16 * columns, 3)
    assert (picture == again.finished()).all()
    assert first.asked == again.asked
    assert first.cells.shape == (rows, columns, SLOTS + 2)


@pytest.mark.parametrize("kind", KINDS)
def test_answers_are_in_printable_ascii_and_questions_have_one_answer(kind: str) -> None:
    for scene in scenes(kind):
        for question, answer in scene.asked:
            assert question and answer
            assert re.fullmatch(r"[ -~]+", question)
            assert re.fullmatch(r"[ -~\n]+", answer)
        # What is asked twice has the same answer, but for a few words for several things in one place.
        found: dict[str, str] = {}
        for question, answer in scene.asked:
            assert found.setdefault(question, answer) == answer


def test_counts_and_places_are_those_of_the_cells() -> None:
    for scene in scenes("shapes"):
        things = scene.cells[scene.cells[..., SLOTS] > 0]
        for question, answer in scene.asked:
            if re.fullmatch(r"(How many shapes .*|Count the shapes\.)", question):
                assert int(answer) == len(things)
            elif name := re.fullmatch(r"What shape is (\w+)\?", question):
                (only,) = things[things[:, SLOTS + 1] == 1 + COLOUR_NAMES.index(name[1])]
                assert SHAPES[only[SLOTS] - 1] == answer


def test_a_line_is_written_where_its_cells_say() -> None:
    for scene in scenes("lines"):
        text = next(
            answer for question, answer in scene.asked if skill_of("lines", question, answer)[:5] == "chara"
        )
        letters = sorted(chr(code + 31) for code in scene.cells[..., :SLOTS].ravel() if code)
        printed = sorted(letter for letter in text if letter not in " \n")
        # A cell names at most three.
        assert not {*letters} - {*printed}
        assert len(letters) > 0.7 * len(printed)


def test_a_total_is_the_sum() -> None:
    for scene in scenes("receipt"):
        asked = dict(scene.asked)
        total = next(answer for question, answer in asked.items() if "total" in question or "sum" in question)
        prices = [
            answer
            for question, answer in asked.items()
            if question.startswith(("How much is the ", "What is the price"))
        ]
        assert all(float(price.strip("$")) <= float(total.strip("$")) for price in prices if price != total)


def test_patches_are_those_of_the_processor() -> None:
    picture = Random(1).randbytes(48 * 80 * 3)
    image = np.frombuffer(picture, np.uint8).reshape(48, 80, 3)
    scale = Scale(1 / 255, (0.5,) * 3, (0.5,) * 3)
    expected = Patches(image, 8, 2, 1, scale).pixels
    assert np.allclose((in_patches(image) / 255 - 0.5) / 0.5, expected, atol=1e-6)


ASKED = [("What is this?", "a red circle"), ("How many shapes are there?", "1")]


@pytest.mark.parametrize("chained", [0, 1])
def test_a_conversation_teaches_answers_alone(chained: float) -> None:
    rng = Random(3)
    made = conversation(rng, ASKED, (2, 3), 200, chained)
    ids = made.ids
    learned = [i for i, weight in zip(ids, made.weights, strict=True) if weight]
    assert sorted(tokens.text_of(learned)) == sorted("a red circle1")
    assert learned.count(tokens.END) == 2
    assert ids.count(tokens.IMAGE) == 6
    assert ids.index(tokens.ROW_END) == ids.index(tokens.IMAGE) + 3
    with pytest.raises(ValueError, match="needs more than 10 tokens"):
        conversation(rng, ASKED, (2, 3), 10, chained)


def test_each_question_is_asked_as_if_it_were_the_only_one() -> None:
    """What a part sees, in its places, is the prompt that has this question alone."""
    made = conversation(Random(3), ASKED, (2, 3), 200, chained=0, plain=True)
    assert set(made.parts) == {0, 1, 2}
    found = set()
    for part in (1, 2):
        seen = [n for n, other in enumerate(made.parts) if other in (0, part)]
        assert [made.places[n] for n in seen] == [*range(len(seen))]
        found.add(bytes(made.ids[n] % 256 for n in seen))
    for question, answer in ASKED:
        said = [*tokens.spelt(question), tokens.ANSWER, *tokens.spelt(answer), tokens.END]
        assert bytes(i % 256 for i in [tokens.BEGIN, tokens.ASK, *tokens.picture(2, 3), *said]) in found


def test_bars_without_values_differ_enough_to_be_compared() -> None:
    assert (closest([3, 9, 4]), closest([50, 10])) == (1, 40)


@pytest.mark.parametrize("bucket", BUCKETS, ids=lambda bucket: bucket.cells)
def test_a_batch_says_what_follows(bucket: object) -> None:
    assert isinstance(bucket, type(BUCKETS[0]))
    batch = Batch.over(bytearray(Batch.bytes(bucket)), bucket, 4)
    asked = fill(batch, Random(2), FONTS, bucket)
    assert len(asked) == 4
    assert (batch.grids.prod(1) == bucket.cells).all()
    known = batch.targets != IGNORED
    assert (batch.targets[:, :-1][known[:, :-1]] == batch.ids[:, 1:][known[:, :-1]]).all()
    assert (known == (batch.weights > 0)).all()
    assert ((batch.ids == tokens.IMAGE).sum(1) == bucket.cells).all()


def test_the_evaluation_has_sizes_and_answers_of_its_own() -> None:
    trained = {grid for bucket in BUCKETS for grid in bucket.grids}
    assert not trained & {grid for grids in GRIDS.values() for grid in grids}
    assert (edits("kitten", "sitting"), edits("", "ab"), edits("a", "a")) == (3, 2, 0)
