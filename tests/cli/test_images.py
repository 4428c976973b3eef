"""Images on the command line: files of a question, and paths in a chat."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from akunu.cli import main
from akunu.cli.images import is_image, named_in
from api.vision import hostile, seeing
from api.vision.talking import write_talking
from quietly import quietly

from .fake_model import FakeModel


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    path = tmp_path / "my photo.png"
    Image.fromarray(np.full((24, 40, 3), (220, 20, 20), np.uint8)).save(path)
    return path


@pytest.fixture
def seer(model: FakeModel) -> FakeModel:
    model.reads_images = True
    return model


def shown(path: Path, text: str) -> list[dict[str, Any]]:
    return [{"type": "image", "image": str(path)}, {"type": "text", "text": text}]


def test_files_of_a_question_may_be_images(
    akunu_cli: Callable[..., Any], seer: FakeModel, photo: Path
) -> None:
    letter = photo.with_name("letter.txt")
    letter.write_text("Dear Ada")
    ran = akunu_cli("run", "Who?", str(photo), str(letter), "--image-tokens", "70")
    assert (ran.status, ran.err) == (0, "")
    [[message]] = seer.prompts
    assert message["content"] == shown(photo, f"{letter}:\n```\nDear Ada\n```\n\nWho?")
    assert seer.options[0]["image_tokens"] == 70


def test_a_model_of_text_refuses_them(akunu_cli: Callable[..., Any], model: FakeModel, photo: Path) -> None:
    ran = akunu_cli("run", "Who?", str(photo))
    assert ran.status == 2
    assert "fake reads text only, and one of the files is an image" in ran.err
    assert model.prompts == []
    akunu_cli("chat", stdin=f"/image {photo}\nlook at '{photo}'\n")
    [[message]] = model.prompts
    assert message["content"] == f"look at '{photo}'"


def test_images_of_a_chat(
    akunu_cli: Callable[..., Any], seer: FakeModel, photo: Path, tmp_path: Path
) -> None:
    plain = tmp_path / "b.png"
    plain.write_bytes(photo.read_bytes())
    saved = tmp_path / "chat.json"
    ran = akunu_cli(
        "chat",
        stdin=f"/image {photo}\nWhat is it?\ncompare {plain} with '{photo}'\n{plain}\nAnd?\n/save {saved}\n",
    )
    assert ran.status == 0
    asked = [prompt[-1]["content"] for prompt in seer.prompts]
    assert asked[0] == shown(photo, "What is it?")
    assert asked[1] == [
        *[{"type": "image", "image": str(each)} for each in (plain, photo)],
        {"type": "text", "text": "compare with"},
    ]
    assert asked[2] == shown(plain, "And?")
    assert seer.prompts[1][0]["content"] == asked[0]
    assert f"attached to the next message: {photo}" in ran.err
    seer.prompts.clear()
    akunu_cli("chat", stdin=f"/load {saved}\n/undo\n/retry\n/image {tmp_path}/none.png\n/image\n")
    assert seer.prompts[0][-1]["content"] == asked[1]
    assert json.loads(saved.read_text())[0]["content"] == asked[0]


@pytest.mark.parametrize(
    ("line", "text", "found"),
    [
        ("look at {plain} please", "look at please", ["{plain}"]),
        ("{quoted} what is it?", "what is it?", ["{photo}"]),
        ("{escaped}", "", ["{photo}"]),
        ("{url}", "", ["{photo}"]),
        ("it\'s in {plain}", "it\'s in", ["{plain}"]),
        ("what is none.png?", "what is none.png?", []),
        ("what is {text}?", "what is {text}?", []),
        ("one\n{plain}", "one\n{plain}", []),
        ("version 1.2.3, e.g. this", "version 1.2.3, e.g. this", []),
    ],
)  # fmt: skip
def test_paths_are_found_as_they_are_typed_or_dragged(
    photo: Path, line: str, text: str, found: list[str]
) -> None:
    plain, note = photo.with_name("b.png"), photo.with_name("note.png")
    plain.write_bytes(photo.read_bytes())
    note.write_text("no image")
    names = {
        "plain": plain, "photo": photo, "text": note, "quoted": f"'{photo}'", "url": photo.as_uri(),
        "escaped": str(photo).replace(" ", "\\ "),
    }  # fmt: skip
    assert named_in(line.format(**names)) == (text.format(**names), [each.format(**names) for each in found])


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF", "AVIF", "JPEG2000"])
def test_an_image_is_known_by_its_beginning(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "picture"
    Image.new("RGB", (9, 9), "red").save(path, kind)
    assert is_image(path)
    path.write_text("BM is a word, and II another")
    assert not is_image(path)
    assert not is_image(tmp_path)


def test_a_real_model_is_shown_a_photo(
    tmp_path: Path, photo: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    folder = write_talking(seeing.ALL["qwen3_vl"], tmp_path / "seer")
    options = ["-m", str(folder), "--device", "cpu", "--temp", "0", "--max-tokens", "6", "-c", "256"]
    assert main(["run", *options, "What is this?", str(photo)]) == 0
    answer = capsys.readouterr().out
    assert main(["run", *options, "What is this?"]) == 0
    assert capsys.readouterr().out != answer
    assert main(["run", *options, "--mmproj", "none", "What is this?", str(photo)]) == 2
    assert "reads text only" in capsys.readouterr().err


@quietly("Image size")
def test_a_file_with_the_name_of_an_image_is_refused_by_what_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    for name in ("nothing", "half a PNG", "a huge JPEG", "a text", "a phone's photo", "a drawing"):
        data, message = hostile.wrong()[name]
        path = tmp_path / "a picture.png"
        path.write_bytes(data)
        assert main(["run", "What is this?", str(path)]) != 0
        err = capsys.readouterr().err
        assert re.search(message, err)
        assert "a picture.png" in err


def test_the_suffix_of_an_image_does_not_matter(
    akunu_cli: Callable[..., Any], seer: FakeModel, photo: Path
) -> None:
    renamed = photo.rename(photo.with_name("notes.txt"))
    assert akunu_cli("run", "Who?", str(renamed)).status == 0
    drawing = photo.with_name("drawing.svg")
    drawing.write_text("<svg/>")
    assert akunu_cli("run", "Who?", str(drawing)).status == 0
    [[first], [second]] = seer.prompts
    assert first["content"] == shown(renamed, "Who?")
    assert "<svg/>" in second["content"]


def test_inspect_shows_the_tower(akunu_cli: Callable[..., Any], tmp_path: Path) -> None:
    folder = seeing.write_folder(seeing.ALL["gemma4"], tmp_path / "seer")
    ran = akunu_cli("inspect", str(folder), "--json")
    assert (ran.status, ran.err) == (0, "")
    assert json.loads(ran.out)["tower"] == {
        "family": "gemma4",
        "file": "seer",
        "layers": "2",
        "elements": "64 in 2 heads, 80 in feed-forwards",
        "pixels of a token": "12 x 12",
        "image_tokens": "70, 140, 280, 560, 1120",
        "memory": "292.7 KiB",
    }
    assert "tower, by which it reads images" in akunu_cli("inspect", str(folder)).out


def test_the_model_of_the_package_reads_a_sign(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    image = Image.new("RGB", (320, 48), "white")
    ImageDraw.Draw(image).text((8, 8), "Hello world", fill="black", font=ImageFont.load_default(24))
    image.save(tmp_path / "sign.png")
    assert main(["run", "Read the text.", str(tmp_path / "sign.png")]) == 0  # without -m
    assert capsys.readouterr().out.strip() == "Hello world"
