"""A server of a model that reads images: by the official clients, and on the page."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from akunu.server import ModelSpec, Settings
from api.vision import hostile, seeing
from api.vision.talking import write_talking
from quietly import quietly

from .conftest import Served, serving
from .test_page import DONE, browser

__all__ = ["browser"]


def png(colour: tuple[int, int, int], size: tuple[int, int] = (40, 24)) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", size, colour).save(file, "PNG")
    return file.getvalue()


RED, BLUE = png((220, 20, 20)), png((20, 30, 230))
PACKED = base64.b64encode(RED).decode()
URL = f"data:image/png;base64,{PACKED}"
ROWS = 15
"""Rows that such an image takes: 3 by 5."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pictures")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> Iterator[Served]:
    path = write_talking(seeing.ALL["qwen3_vl"], tmp_path_factory.mktemp("models") / "seer")
    spec = ModelSpec(name="seer", path=str(path), preload=True, threads=1, context=512, device="cpu")
    with serving(spec, settings=Settings(image_folders=(folder,))) as found:
        yield found


def user(*parts: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"role": "user", "content": list(parts)}]


def shown(url: str = URL) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


TEXT = {"type": "text", "text": "What is this?"}
PLAIN = {"model": "seer", "max_tokens": 8, "temperature": 0}


def test_openais_client_shows_images(served: Served, folder: Path) -> None:
    openai = pytest.importorskip("openai")
    (folder / "red.png").write_bytes(RED)
    with openai.OpenAI(base_url=f"{served.url}/v1", api_key="none") as client:

        def asked(*parts: dict[str, Any]) -> Any:
            return client.chat.completions.create(messages=user(*parts), **PLAIN)

        first, second = asked(shown(), TEXT), asked(shown((folder / "red.png").as_uri()), TEXT)
        assert first.choices[0].message.content == second.choices[0].message.content
        without = asked(TEXT)
        assert first.usage.prompt_tokens == without.usage.prompt_tokens + ROWS + 2
        assert second.usage.prompt_tokens_details.cached_tokens >= 32
        assert first.usage.prompt_tokens_details.to_dict()["image_tokens"] == ROWS
        assert "image_tokens" not in without.usage.prompt_tokens_details.to_dict()
        other = asked(shown("data:image/png;base64," + base64.b64encode(BLUE).decode()), TEXT)
        assert other.choices[0].message.content != first.choices[0].message.content
        assert other.usage.prompt_tokens_details.cached_tokens < 32
        with client.chat.completions.create(messages=user(shown(), TEXT), stream=True, **PLAIN) as stream:
            text = "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)
        assert text == first.choices[0].message.content
        part = {"type": "input_image", "image_url": URL}
        said = [{"role": "user", "content": [part, {"type": "input_text", "text": "What is this?"}]}]
        answer = client.responses.create(model="seer", input=said, max_output_tokens=8, temperature=0)
        assert answer.output_text == first.choices[0].message.content
        assert answer.usage.input_tokens == first.usage.prompt_tokens
        assert answer.usage.input_tokens_details.to_dict()["image_tokens"] == ROWS
        after = client.responses.create(
            model="seer", input="And?", previous_response_id=answer.id, max_output_tokens=4, temperature=0
        )
        assert after.usage.input_tokens > answer.usage.input_tokens


def test_anthropics_client_shows_images(served: Served) -> None:
    anthropic = pytest.importorskip("anthropic")
    source = {"type": "base64", "media_type": "image/png", "data": PACKED}
    with anthropic.Anthropic(base_url=served.url, api_key="none") as client:
        messages = user({"type": "image", "source": source}, TEXT)
        answer = client.messages.create(model="seer", max_tokens=8, messages=messages)
        counted = client.messages.count_tokens(model="seer", messages=messages)
        without = client.messages.count_tokens(model="seer", messages=user(TEXT))
    usage = answer.usage
    assert usage.input_tokens + usage.cache_read_input_tokens == counted.input_tokens
    assert counted.input_tokens == without.input_tokens + ROWS + 2


def test_ollamas_client_shows_images(served: Served) -> None:
    ollama = pytest.importorskip("ollama")
    client = ollama.Client(host=served.url)
    message = {"role": "user", "content": "What is this?", "images": [RED]}
    options = {"temperature": 0, "num_predict": 8}
    chatted = client.chat(model="seer", messages=[message], options=options)
    generated = client.generate(model="seer", prompt="What is this?", images=[RED], options=options)
    assert chatted.message.content == generated.response
    assert chatted.prompt_eval_count > ROWS
    assert "vision" in client.show("seer").capabilities
    with pytest.raises(ollama.ResponseError, match=r"images: a prompt without the chat template"):
        client.generate(model="seer", prompt="a", images=[RED], raw=True)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("data:image/png;base64,AAAA", "it is no image that is read here"),
        ("data:image/png;base64," + PACKED[:40], "messages[0].content[0]: "),
        ("https://example.org/a.png", "this server fetches nothing"),
        ("file:///etc/passwd", "no file in a folder"),
    ],
)
def test_what_is_no_image_is_a_400_that_names_its_place(served: Served, url: str, message: str) -> None:
    answer = served.post("/v1/chat/completions", messages=user(shown(url), TEXT), **PLAIN)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error["message"].startswith("messages[0].content[0]: ")
    assert message in error["message"]
    assert (error["code"], error["param"]) == ("invalid_image", "messages[0].content[0]")


@quietly("Image size")
@pytest.mark.parametrize("name", hostile.wrong())
def test_a_picture_that_is_refused_is_a_400_and_the_server_goes_on(served: Served, name: str) -> None:
    data, message = hostile.wrong()[name]
    url = "data:image/png;base64," + base64.b64encode(data).decode()
    answer = served.post("/v1/chat/completions", messages=user(shown(url), TEXT), **PLAIN)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert (error["code"], error["param"]) == ("invalid_image", "messages[0].content[0]")
    assert re.search(message, error["message"])


@quietly("Corrupt EXIF data")
def test_pictures_of_rare_kinds_are_shown(served: Served) -> None:
    for data in hostile.right().values():
        url = "data:image/jpeg;base64," + base64.b64encode(data).decode()  # whatever they say they are
        answer = served.post("/v1/chat/completions", messages=user(shown(url), TEXT), **PLAIN)
        assert answer.status_code == 200, answer.text


def test_images_that_fill_the_context_are_told_as_such(served: Served) -> None:
    large = base64.b64encode(png((1, 2, 3), (64, 64))).decode()
    answer = served.post(
        "/v1/chat/completions", messages=user(*[shown(f"data:;base64,{large}")] * 20), **PLAIN
    )
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "context_length_exceeded"


def test_a_tools_image_is_shown(served: Served) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": [shown()]},
    ]
    with pytest.warns(UserWarning, match="leaves out calls"):
        answer = served.post("/v1/chat/completions", messages=messages, **PLAIN).json()
    assert "warnings" not in answer
    messages[-1]["content"] = [TEXT]
    without = served.post("/v1/chat/completions", messages=messages, **PLAIN).json()
    assert answer["usage"]["prompt_tokens"] > without["usage"]["prompt_tokens"]


def test_a_card_says_whether_a_model_reads_images(served: Served) -> None:
    assert served.http.get("/v1/models/seer").json()["images"] is True
    assert served.http.get("/props").json()["modalities"] == {"vision": True, "audio": False}


def test_the_page_shows_images_and_keeps_them(browser: Any, served: Served, tmp_path: Path) -> None:
    noise = np.random.RandomState(0).randint(0, 256, (1200, 2000, 3)).astype(np.uint8)
    photo = tmp_path / "photo.jpg"
    Image.fromarray(noise).save(photo)
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda line: complaints.append(line.text) if "Policy" in line.text else None)
    sent: list[Any] = []
    page.on(
        "request",
        lambda request: sent.append(request.post_data_json) if "completions" in request.url else None,
    )
    page.goto(served.url)
    page.wait_for_selector(".welcome")
    page.wait_for_selector("#model option", state="attached")
    page.set_input_files("#attach-file", str(photo))
    page.wait_for_selector("#files img")
    page.keyboard.press("Alt+s")
    page.fill("[name=max_tokens]", "4")
    page.keyboard.press("Escape")
    page.fill("#composer", "What is this?")
    page.press("#composer", "Enter")
    page.wait_for_selector(DONE, state="attached", timeout=60_000)
    [picture, text] = sent[0]["messages"][-1]["content"]
    assert text == {"type": "text", "text": "What is this?"}
    shrunk = Image.open(io.BytesIO(base64.b64decode(picture["image_url"]["url"].partition(",")[2])))
    assert 1.1e6 < shrunk.width * shrunk.height <= 1.21e6
    assert abs(shrunk.width / shrunk.height - 2000 / 1200) < 0.01
    assert page.locator(".message.assistant .failed").count() == 0
    page.reload()
    page.wait_for_selector(".message.user img.picture")
    assert page.get_attribute("img.picture", "alt") == "photo.jpg"
    page.fill("#composer", "And now?")
    page.press("#composer", "Enter")
    page.wait_for_selector(f"{DONE}", state="attached", timeout=60_000)
    page.wait_for_function("document.querySelectorAll('.message.assistant .facts').length === 2")
    assert sent[-1]["messages"][0]["content"][0] == picture
    context.close()
    assert complaints == []
