"""A chat with images, from a message to the answer."""

from __future__ import annotations

import asyncio
import io
import time
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import akunu
from akunu.api import seeing as api_seeing
from akunu.api.model import Model
from akunu.base.errors import ContextLengthError, ImageError, InvalidArgumentError
from api.fakes import decide_drafts
from api.test_drafts import everything

from . import seeing
from .talking import CONTROL, TALKING, Talking, write_talking

ENDS = dict.fromkeys(
    (1, 2, *(256 + CONTROL.index(text) for text in ("<|endoftext|>", "<|im_end|>"))), -np.inf
)
OPTIONS: dict[str, Any] = {"max_tokens": 12, "temperature": 0.0, "logit_bias": ENDS}
RED, BLUE = (np.full((24, 40, 3), colour, np.uint8) for colour in ((220, 20, 20), (20, 30, 230)))
STRIPES = np.tile(np.array([[[0, 0, 0]], [[255, 255, 255]]], np.uint8), (20, 32, 1))


@pytest.fixture(scope="module", params=[name for name in TALKING if not name.startswith("gemma4")])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_talking(seeing.ALL[request.param], tmp_path_factory.mktemp("models") / request.param)


@pytest.fixture
def model(folder: Path) -> Iterator[Model]:
    with akunu.load(folder, device="cpu", context=256, progress=False) as loaded:
        yield loaded


@pytest.fixture
def talking(model: Model) -> Talking:
    return TALKING[model.path.name]


def image(source: object) -> dict[str, Any]:
    return {"type": "image", "image": source}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def user(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(parts)}


def ids(model: Model, *parts: dict[str, Any], **options: Any) -> list[int]:
    return list(model.chat([user(*parts)], **{**OPTIONS, **options}).ids)


def test_an_answer_follows_from_the_image(model: Model) -> None:
    assert model.reads_images
    answers = {tuple(ids(model, image(each), text("What?"))) for each in (RED, BLUE, STRIPES)}
    assert len(answers) == 3
    assert ids(model, image(RED), text("What?")) == ids(model, image(RED.copy()), text("What?"))
    assert ids(model, image(RED), text("What?")) != ids(model, text("What?"), image(RED))


def test_every_source_of_an_image_gives_the_same_answer(model: Model, tmp_path: Path) -> None:
    file = tmp_path / "stripes.png"
    Image.fromarray(STRIPES).save(file)
    expected = ids(model, image(STRIPES), text("?"))
    for source in (file, str(file), file.read_bytes(), Image.open(file)):
        assert ids(model, image(source), text("?")) == expected
    url = {"type": "image_url", "image_url": {"url": file.as_uri()}}
    assert ids(model, url, text("?")) == expected


def test_tokens_of_images_are_counted(model: Model, talking: Talking) -> None:
    tokens = talking.rows + talking.around
    without = model.count_tokens([user(text("What?"))])
    assert model.count_tokens([user(image(RED), text("What?"))]) == without + tokens
    stats = model.chat([user(image(RED), text("What?"))], **OPTIONS).stats
    assert stats.prompt_tokens == without + tokens
    assert model.count_tokens([user(image(RED), image(BLUE), text("What?"))]) == without + 2 * tokens


def test_a_budget_makes_images_smaller_or_is_refused(model: Model, talking: Talking) -> None:
    messages = [user(image(RED), text("What?"))]
    if model.path.name in ("gemma3", "idefics3"):
        with pytest.raises(InvalidArgumentError, match="image_tokens: this model has a fixed number"):
            model.count_tokens(messages, image_tokens=6)
        return
    without = model.count_tokens([user(text("What?"))])
    assert without < model.count_tokens(messages, image_tokens=6) <= without + talking.around + 6


def test_an_image_of_low_detail_has_fewer_tokens(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_seeing, "LOW_TOKENS", 6)
    file = io.BytesIO()
    Image.fromarray(RED).save(file, "PNG")
    url = f"data:image/png;base64,{b64encode(file.getvalue()).decode()}"

    def tokens(detail: str, **options: Any) -> int:
        part = {"type": "image_url", "image_url": {"url": url, "detail": detail}}
        return model.count_tokens([user(part, text("What?"))], **options)

    fixed = model.path.name in ("gemma3", "idefics3")
    assert tokens("auto") == tokens("high")
    assert tokens("low") == (tokens("auto") if fixed else tokens("auto", image_tokens=6))
    assert fixed or tokens("low") < tokens("auto")
    with pytest.raises(InvalidArgumentError, match=r"messages\[0\]\.content\[0\]: detail: found 'fine'"):
        tokens("fine")


def test_the_next_turn_encodes_nothing_again(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    assert model._sight is not None
    made: list[object] = []
    encode = model._sight.tower._encode
    monkeypatch.setattr(model._sight.tower, "_encode", lambda *given: made.append(1) or encode(*given))
    messages: list[Any] = [user(image(RED), image(BLUE), text("What?" * 5))]
    answer = model.chat(messages, **OPTIONS)
    encoded = len(made)
    assert encoded >= 2
    messages += [answer.message, user(text("And?"))]
    after = model.chat(messages, **OPTIONS)
    assert len(made) == encoded
    if "delta" not in str(model.config.blocks).lower():
        assert after.stats.cached_tokens >= 32
    fresh = akunu.load(model.path, device="cpu", context=256, progress=False)
    with fresh:
        assert fresh.chat(messages, **OPTIONS).ids == after.ids


def test_texts_and_images_run_together(model: Model) -> None:
    asked = [[user(image(each), text("What?"))] for each in (RED, BLUE, STRIPES)] + [[user(text("What?"))]]
    alone = [model.chat(each, **OPTIONS).ids for each in asked]
    model.clear_cache()

    async def together() -> list[Any]:
        return await asyncio.gather(*(model.achat(each, **OPTIONS) for each in asked))

    assert [answer.ids for answer in asyncio.run(together())] == alone
    several = model.chat(asked[0], n=2, seed=3, max_tokens=5, temperature=1.0)
    assert several[1].ids == model.chat(asked[0], seed=4, max_tokens=5, temperature=1.0).ids


def test_images_of_many_sizes_run_in_one_batch(model: Model) -> None:
    sizes = [(24, 40), (40, 24), (8, 64), (31, 17), (64, 64)]
    pictures = [
        np.random.RandomState(n).randint(0, 255, (*size, 3), np.uint8) for n, size in enumerate(sizes)
    ]
    asked = [[user(image(each), text("What?"))] for each in pictures]
    asked.append([user(image(pictures[0]), text("or"), image(pictures[1]), text("What?"))])
    alone = []
    for each in asked:
        model.clear_cache()
        alone.append(model.chat(each, **OPTIONS).ids)

    async def together() -> list[Any]:
        return await asyncio.gather(*(model.achat(each, **OPTIONS) for each in asked))

    model.clear_cache()
    assert [answer.ids for answer in asyncio.run(together())] == alone


def test_a_suspended_answer_still_sees_its_image(model: Model) -> None:
    asked = [user(image(RED), text("What is this?"))]
    expected = model.chat(asked, **OPTIONS).ids
    model.clear_cache()
    stream = model.stream_chat(asked, **OPTIONS)
    next(stream)
    with model._scheduler._lock:
        model._scheduler._planner.suspend(stream._generation._sequence)
    # Its pages are gone before it goes on: another image's are there.
    model.chat([user(image(BLUE), text("What is this?"))], **OPTIONS)
    model.clear_cache()
    for _ in stream:
        pass
    assert stream.completion.ids == expected


def test_drafts_change_no_answer_about_an_image(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = [user(image(STRIPES), text("What?"))]
    # Of two tokens alone, so that what comes has come before.
    options = {**OPTIONS, "max_tokens": 60, "logit_bias": {97: 100.0, 98: 100.0}}
    expected = model.chat(asked, **options).ids
    decide_drafts(monkeypatch, everything)
    model.clear_cache()
    before = model.stats().drafted_tokens
    assert model.chat(asked, **options).ids == expected
    if "delta" not in str(model.config.blocks).lower():
        assert model.stats().drafted_tokens > before


def test_a_session_keeps_its_images(model: Model) -> None:
    session = model.session(**OPTIONS)
    first = session.chat(user(image(RED), text("What?")))
    second = session.chat("And now?")
    whole = [user(image(RED), text("What?")), first.message, {"role": "user", "content": "And now?"}]
    assert second.ids == model.chat(whole, **OPTIONS).ids


def test_a_saved_session_has_its_images(model: Model, tmp_path: Path) -> None:
    file = tmp_path / "stripes.png"
    Image.fromarray(STRIPES).save(file)
    for source in (RED, Image.fromarray(RED), file.read_bytes(), file, str(file)):
        session = model.session(**OPTIONS)
        session.chat(user(image(source), text("What?")))
        session.save(tmp_path / "session.json")
        again = akunu.Session.load(model, tmp_path / "session.json", **OPTIONS)
        assert again.chat("And?").ids == session.chat("And?").ids


def test_pages_on_disk_are_those_of_the_same_image(folder: Path, tmp_path: Path) -> None:
    def asked(picture: object) -> Any:
        with akunu.load(folder, device="cpu", context=256, cache_dir=tmp_path, progress=False) as model:
            return model.chat([user(image(picture), text("What is that? " * 5))], **OPTIONS)

    first, other, again = asked(RED), asked(BLUE), asked(RED)
    assert other.ids != first.ids
    assert again.ids == first.ids
    assert other.stats.cached_tokens < 32 <= again.stats.cached_tokens


def test_the_first_token_waits_for_the_tower(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    assert model._sight is not None
    encode = model._sight.tower._encode

    def slowly(*given: Any) -> Any:
        time.sleep(0.2)
        return encode(*given)

    monkeypatch.setattr(model._sight.tower, "_encode", slowly)
    assert model.chat([user(image(BLUE))], **OPTIONS).stats.time_to_first_token >= 0.2


def test_what_is_wrong_with_an_image_is_said_of_its_place(model: Model) -> None:
    with pytest.raises(ImageError, match=r"^messages\[0\]\.content\[1\]: there is no file"):
        ids(model, text("a"), image("missing.png"))
    with pytest.raises(InvalidArgumentError, match=r"^messages\[0\]\.content\[0\]: found int"):
        ids(model, image(5))
    with pytest.raises(InvalidArgumentError, match="image_tokens"):
        ids(model, image(RED), image_tokens=0)
    with pytest.raises(ContextLengthError, match="the context holds 256"):
        ids(model, *[image(STRIPES)] * 20)


def test_a_model_without_its_tower_reads_text_only(folder: Path) -> None:
    with akunu.load(folder, device="cpu", context=64, mmproj=False, progress=False) as model:
        assert not model.reads_images
        with pytest.raises(
            InvalidArgumentError, match=r"^messages\[0\]\.content\[0\]: found an image; this model"
        ):
            ids(model, image(RED))
        assert ids(model, text("What?"))


@pytest.mark.parametrize("name", ["gemma4", "gemma4_whole"])
def test_gemma_4_has_images_of_a_few_budgets(tmp_path: Path, name: str) -> None:
    talking = TALKING[name]
    folder = write_talking(seeing.ALL[name], tmp_path / name)
    with akunu.load(folder, device="cpu", context=256, progress=False) as model:
        messages = [user(image(RED), text("What?"))]
        without = model.count_tokens([user(text("What?"))])
        assert model.count_tokens(messages) == without + talking.rows + talking.around
        with pytest.raises(InvalidArgumentError, match="found 6, expected one of 70, 140, 280, 560, 1120"):
            model.count_tokens(messages, image_tokens=6)
        found = [
            model.chat([user(image(source), text("What?"))], **OPTIONS, logprobs=5).logprobs
            for source in (RED, STRIPES, RED)
        ]
        assert found[0] == found[2]
        assert found[0] != found[1]
