"""What the page can do beside talking: formulas, PDFs, the microphone, fetching models, and being left."""

# ruff: noqa: F811  (fixtures have the names of arguments)
from __future__ import annotations

import json
import re
import wave
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from akunu.server import ModelSpec

from .conftest import EMBER, serving
from .test_page import CHROMIUM, FLAGS, SLOWLY, ask, browser, finish, page, settle  # noqa: F401

DRAWN = """async (text) => {
  const { markdown } = await import("/page/markdown.js");
  const box = document.createElement("div");
  document.body.append(box);
  box.append(...markdown(text));
  const there = () => [...box.querySelectorAll(".formula")].every((one) => one.querySelector("math"));
  for (let i = 0; i < 100 && !there(); i += 1) await new Promise((done) => setTimeout(done, 20));
  const maths = [...box.querySelectorAll(".formula")].map((one) => [
    one.classList.contains("display"), one.title, Boolean(one.querySelector("math"))]);
  const left = box.cloneNode(true);
  for (const one of left.querySelectorAll(".formula")) one.remove();
  box.remove();
  return [maths, left.textContent];
}"""


@pytest.mark.parametrize(
    ("text", "formulas", "left"),
    [
        ("so $x^2 + 1$ and \\(a_b\\).", [(False, "x^2 + 1"), (False, "a_b")], "so  and ."),
        ("it costs $5, or $6 with $x.", [], "it costs $5, or $6 with $x."),
        ("US$5 and 3$ and \\$x\\$ and `$a$`", [], "US$5 and 3$ and \\$x\\$ and $a$"),
        ("$$\\int_0^1 x\\,dx = \\frac12$$", [(True, "\\int_0^1 x\\,dx = \\frac12")], ""),
        ("Then\n\\[\n\\begin{aligned}a &= b \\\\\n&= c\\end{aligned}\n\\]\nso.", None, "Thenso."),
        ("1. One:\n   $$\n   x\n   $$\n2. Two", [(True, "x")], "One:Two"),
        ("an **bold $a_b c_d$** text", [(False, "a_b c_d")], "an bold  text"),
        ("$$ is not closed\n\nhere", [], "$$ is not closedhere"),
    ],
)
def test_formulas_are_drawn(page, text, formulas, left):
    found, rest = page.evaluate(DRAWN, text)
    assert all(drawn for *_, drawn in found) and rest == left
    if formulas is None:
        assert len(found) == 1 and found[0][0]
    else:
        assert [(display, tex) for display, tex, _ in found] == formulas


def test_headings_of_an_answer_are_no_smaller_than_its_text(page):
    sizes = page.evaluate(
        """async () => {
          const { markdown } = await import("/page/markdown.js");
          const body = document.createElement("div"), message = document.createElement("div");
          body.className = "body";
          message.className = "message assistant";
          body.append(...markdown("# a\\n\\n## b\\n\\n### c\\n\\n#### d\\n\\ntext"));
          message.append(body);
          document.querySelector("main").append(message);
          const found = [...body.children].map((each) => parseFloat(getComputedStyle(each).fontSize));
          message.remove();
          return found;
        }"""
    )
    assert len(sizes) == 5
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[-1]


READS_LONG = """() => {
  const fetched = window.fetch, said = (text) => new TextEncoder().encode(`data: ${text}\\n\\n`);
  window.fetch = async (path, options) => {
    if (!String(path).includes("chat/completions")) return fetched(path, options);
    window.asked = JSON.parse(options.body);
    return new Response(new ReadableStream({
      start(out) {
        const tell = (delta, more) =>
          out.enqueue(said(JSON.stringify({ choices: [{ index: 0, delta }], ...more })));
        window.reads = (processed, time_ms) =>
          tell({}, { prompt_progress: { total: 3400, cache: 1000, processed, time_ms } });
        window.says = (content) => { tell({ content }); };
        window.ends = () => { out.enqueue(said("[DONE]")); out.close(); };
      },
    }));
  };
}"""


def test_a_long_prompt_says_how_far_it_is_read(page):
    page.evaluate(READS_LONG)
    page.fill("#composer", "A long text")
    page.press("#composer", "Enter")
    page.wait_for_function("() => window.reads")
    assert page.evaluate("() => window.asked.return_progress") is True
    page.evaluate("() => window.reads(1600, 100)")  # one that is soon read would only flicker
    page.evaluate("() => window.reads(2200, 900)")
    page.wait_for_function("() => document.querySelector('.waiting').textContent.trim()")
    assert page.inner_text(".waiting").strip() == "Reading: 50 % of 2,400 tokens"
    page.evaluate("() => window.says('Here.')")
    page.wait_for_function("() => document.querySelector('.message.assistant').textContent.includes('Here.')")
    assert page.inner_text(".waiting").strip() == ""
    page.evaluate("() => window.ends()")
    page.wait_for_selector(".waiting", state="detached")


def test_what_is_no_latex_stays_text_and_nothing_is_fetched_by_it(page):
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    wrong = (
        r"\(\frac{\) \(\href{javascript:alert(1)}{x}\) \(\includegraphics{http://a.b/c.png}\) "
        r"$\def\a{\a\a}\a$"
    )
    script = """async (text) => {
      const { markdown } = await import("/page/markdown.js");
      const box = document.createElement("div");
      box.append(...markdown("$x$"));
      document.body.append(box);
      while (!box.querySelector("math")) await new Promise((done) => setTimeout(done, 20));
      box.replaceChildren(...markdown(text));
      return [box.querySelectorAll("a, img, mglyph, [href]").length, box.textContent];
    }"""
    links, text = page.evaluate(script, wrong)
    assert links == 0 and "\\(\\frac{\\)" in text
    assert not [url for url in asked if "a.b" in url or not url.startswith(page.url.rstrip("/"))]
    for odd in ("$a" * 20000, "\\(" * 30000, "\\[\n" * 20000, "$$\n" * 20001, "$$" * 30001):
        page.evaluate(
            """async (text) => { const { markdown } = await import("/page/markdown.js"); markdown(text); }""",
            odd,
        )


def pdf(*pages: str) -> bytes:
    """A PDF with a line of text on each page; "" for a page without."""
    kids = " ".join(f"{4 + 2 * i} 0 R" for i in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for i, text in enumerate(pages):
        stream = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET" if text else ""
        objects += [
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * i} 0 R"
            " /Resources << /Font << /F1 3 0 R >> >> >>",
            f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream",
        ]
    made, places = b"%PDF-1.4\n", []
    for number, text in enumerate(objects, 1):
        places.append(len(made))
        made += f"{number} 0 obj\n{text}\nendobj\n".encode()
    at = len(made)
    made += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    made += b"".join(f"{place:010} 00000 n \n".encode() for place in places)
    return made + f"trailer << /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{at}\n%%EOF".encode()


def test_the_text_of_a_pdf_is_attached(page):
    asked: list[Any] = []
    page.on("request", lambda request: request.method == "POST" and asked.append(request.post_data_json))
    kind = "application/pdf"
    page.set_input_files(
        "#attach-file",
        [
            {
                "name": "a.pdf",
                "mimeType": kind,
                "buffer": pdf("The harbour opens at nine.", "It closes at ten."),
            }
        ],
    )
    page.wait_for_selector("#files button")
    settle(page, max_tokens="5")
    ask(page, "When does it open?")
    content = asked[-1]["messages"][-1]["content"]
    assert (
        content == "a.pdf:\n```\nThe harbour opens at nine.\n\nIt closes at ten.\n```\n\nWhen does it open?"
    )
    for name, data, why in (
        ("scan.pdf", pdf(""), "has no text; it may be a scan"),
        ("odd.pdf", b"%PDF-1.4 nothing", "is no PDF that can be read"),
    ):
        page.set_input_files("#attach-file", [{"name": name, "mimeType": kind, "buffer": data}])
        page.wait_for_selector(f"#status:has-text('{name} {why}')")
    assert page.locator("#files button").count() == 0


def test_a_reload_goes_on_with_the_answer(browser, served):
    context = browser.new_context()
    context.add_init_script(SLOWLY)
    page = context.new_page()
    asked: list[Any] = []
    page.on(
        "request",
        lambda request: request.url.endswith("/chat/completions") and asked.append(request.post_data_json),
    )
    page.goto(served.url)
    page.wait_for_selector(".welcome")
    settle(page, max_tokens="60")
    page.fill("#composer", "Tell me a story about a lighthouse.")
    page.press("#composer", "Enter")
    page.wait_for_function(
        "() => document.querySelector('.message.assistant .body')?.textContent.length > 30"
    )
    page.reload()
    page.wait_for_selector(".message.assistant")
    finish(page)
    assert [message["role"] for message in asked[1]["messages"]] == ["user", "assistant"]
    begun = asked[1]["messages"][1]["content"]
    whole = page.evaluate("JSON.parse(localStorage.getItem('akunu.chats'))[0].messages")
    assert len(whole) == 2 and len(whole[1]["content"]) > len(begun) > 20
    assert whole[1]["content"].startswith(begun) and "writing" not in whole[1]
    assert page.locator(".message").count() == 2
    page.reload()  # once it is whole, nothing goes on
    page.wait_for_selector(".message.assistant .facts")
    assert len(asked) == 2
    context.close()


@pytest.fixture
def talking(browser, tmp_path: Path) -> Iterator[Any]:
    """A browser whose microphone hears ember-speech's sample."""
    import numpy as np
    import soundfile

    import akunu

    sound, rate = soundfile.read(Path(akunu.__file__).parent / "models" / "ember-speech.ogg")
    file = tmp_path / "said.wav"
    with wave.open(str(file), "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(rate)
        out.writeframes((32767 * np.asarray(sound)).astype("<i2").tobytes())
    microphone = [
        *("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"),
        f"--use-file-for-fake-audio-capture={file}",
    ]
    found = browser.browser_type.launch(executable_path=CHROMIUM, args=[*FLAGS, *microphone])
    yield found
    found.close()


def test_what_is_said_becomes_the_message(talking):
    from akunu.server.catalog import from_name

    with serving(EMBER, from_name("ember-speech")) as served:
        context = talking.new_context(permissions=["microphone"])
        page = context.new_page()
        page.goto(served.url)
        page.wait_for_selector("#speak:not([hidden])")
        page.click("#speak")
        page.wait_for_selector("#speak[aria-pressed=true]")
        page.wait_for_timeout(4000)  # so much of the recording
        with page.expect_response("**/v1/audio/transcriptions") as answered:
            page.click("#speak")
        text = answered.value.json()["text"].strip()
        page.wait_for_function("() => document.getElementById('composer').value")
        assert page.input_value("#composer") == text
        assert re.search(r"[a-z]{3}", text)
        context.close()


def test_without_a_speech_model_there_is_no_microphone(page):
    assert not page.is_visible("#speak")


def test_a_model_is_fetched_and_loaded(browser, monkeypatch):
    from akunu.loading.finding import find_model
    from akunu.server import ollama_models

    def fetched(path, *, progress):
        assert path == "smollm2:135m"
        progress(50_000_000, 105_000_000)
        return find_model("ember")

    monkeypatch.setattr(ollama_models, "FoundModel", fetched)
    monkeypatch.setattr(
        ollama_models, "from_name", lambda text: ModelSpec(name=text.partition("=")[0], path="ember")
    )
    with serving() as served:
        context = browser.new_context()
        page = context.new_page()
        page.goto(served.url)
        page.click(".tries button:has-text('Get a real model')")
        page.wait_for_selector("#models-table tr:has-text('qwen3:4b')")
        row = page.inner_text("#models-table tr:has-text('smollm2:135m')")
        assert "105 MB" in row and "apache-2.0" in row
        assert "of memory for a model" in page.inner_text("#models-about")
        page.click("[aria-label='Get it: smollm2:135m']")
        page.wait_for_selector("#models-dialog", state="hidden")
        page.wait_for_function("() => document.getElementById('model').value === 'smollm2:135m'")
        assert "Paris" in ask(page, "What is the capital of France?")
        context.close()


def test_a_model_that_cannot_be_fetched_says_why(browser, monkeypatch):
    from akunu.base.errors import ModelFileError
    from akunu.server import ollama_models

    def fetched(path, *, progress):
        raise ModelFileError(f"{path}: there is no connection")

    monkeypatch.setattr(ollama_models, "FoundModel", fetched)
    with serving() as served:
        context = browser.new_context()
        page = context.new_page()
        page.goto(served.url)
        page.click("#get-model")
        page.fill("#models-name", "someone/small-GGUF")
        page.press("#models-name", "Enter")
        page.wait_for_selector("#models-state:has-text('someone/small-GGUF: there is no connection')")
        context.close()


def test_well_known_models_are_listed_for_administrators(served):
    answer = served.http.get("/admin/available").json()
    assert {"name", "fits", "memory_4k", "here"} <= answer["models"][0].keys() and answer["memory"] > 0
    json.dumps(answer)
