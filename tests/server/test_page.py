"""The built-in page, in a headless Chromium, against a server of ember."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from akunu.server import Settings
from akunu.server.auth import Holder, Keys, key_digest
from missing import missing

from .conftest import serving

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
KEY = "secret-key-of-the-test"
KEYS = Keys([Holder("me", key_digest(KEY))])
DONE = ".message.assistant:last-of-type .facts"
TOOLS = """[{"type": "function", "function": {"name": "get_weather", "description": "The weather of a city",
"parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}]"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        missing("Chromium is not installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def page(browser, served) -> Iterator[Any]:
    """A page of a browser that knows nothing yet; what it complains of fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda line: complaints.append(line.text) if "Policy" in line.text else None)
    page.goto(served.url)
    page.wait_for_selector(".welcome")
    yield page
    context.close()
    assert complaints == []


def finish(page: Any) -> None:
    """Wait for the end of the last answer: one that failed, or is empty, has no facts, but an end."""
    page.wait_for_selector(DONE, state="attached", timeout=60_000)
    assert page.locator(".message.assistant:last-of-type .failed").all_inner_texts() == []
    assert page.inner_text(DONE), page.inner_text("#messages")


def ask(page: Any, text: str) -> str:
    """Send a message; returns the answer's text when it is whole."""
    page.fill("#composer", text)
    page.press("#composer", "Enter")
    finish(page)
    return str(page.inner_text(".message.assistant:last-of-type .body"))


def settle(page: Any, **values: str) -> None:
    """Settings of the conversation; the answers become those of every run."""
    page.keyboard.press("Alt+s")
    for name, value in {"temperature": "0", **values}.items():
        page.fill(f"[name={name}]", value)
    page.keyboard.press("Escape")


def test_a_question_is_answered_and_kept(page):
    settle(page)
    assert "Paris" in ask(page, "What is the capital of France?")
    assert re.search(
        r"^\d+ tokens · first after ", page.inner_text(DONE)
    )  # which come at once, without a speed
    page.reload()
    page.wait_for_selector(".message.assistant")
    assert "Paris" in page.inner_text("#messages")
    assert page.inner_text("#chats .current").startswith("What is the capital of France?")


#: Answers come in small pieces, one after the other: what is written in a moment is read for seconds.
SLOWLY = """
const fetched = window.fetch;
window.fetch = async (...request) => {
  const answer = await fetched(...request);
  const pieces = new TransformStream({
    async transform(chunk, out) {
      for (let i = 0; i < chunk.length; i += 100) {
        await new Promise((done) => setTimeout(done, 50));
        request[1]?.signal?.throwIfAborted();
        out.enqueue(chunk.slice(i, i + 100));
      }
    },
  });
  return new Response(answer.body.pipeThrough(pieces), answer);
};
"""


def test_stop_edit_and_again(page):
    settle(page, max_tokens="2000")
    page.evaluate(SLOWLY)
    page.fill("#composer", "Tell me a story about a lighthouse.")
    page.press("#composer", "Enter")
    page.wait_for_selector(".message.assistant .body p")
    page.keyboard.press("Escape")
    page.wait_for_selector("#send:not([hidden])")
    assert "stopped" in page.inner_text(".message.assistant .facts")
    page.press("#composer", "ArrowUp")
    page.fill("textarea.edit", "What is the capital of Italy?")
    page.press("textarea.edit", "Enter")
    finish(page)
    assert page.locator(".message").count() == 2 and "Rome" in page.inner_text("#messages")
    page.keyboard.press("Alt+r")
    page.wait_for_selector("#stop:not([hidden])", state="attached")
    finish(page)
    assert page.locator(".message").count() == 2 and "Rome" in page.inner_text("#messages")


def test_conversations_are_apart(page):
    settle(page, system="Answer in upper case.")
    ask(page, "What is the capital of Spain?")
    page.keyboard.press("Alt+n")
    page.wait_for_selector(".welcome")
    assert (
        page.input_value("[name=system]") == "Answer in upper case."
    )  # a new one begins with the last settings
    ask(page, "Hello!")
    assert page.locator("#chats li").count() == 2
    page.keyboard.press("Alt+ArrowDown")
    assert "Spain" in page.inner_text("#messages")
    page.on("dialog", lambda dialog: dialog.accept())
    page.click("#chats .current .remove", force=True)
    assert "Spain" not in page.inner_text("#messages") and page.locator("#chats li").count() == 1


def test_a_tools_call_is_shown_and_answered(page):
    settle(page, tools=TOOLS)
    ask(page, "What is the weather in Oslo?")
    assert "get_weather" in page.inner_text(".tool-call")
    page.fill(".tool-call input", '{"temperature": 7, "sky": "rain"}')
    page.press(".tool-call input", "Enter")
    page.wait_for_selector(".message.tool")
    finish(page)
    assert page.locator(".message.assistant").count() == 2


def test_what_is_written_never_becomes_markup(page):
    text = '<img src=x onerror="document.title=1"> [x](javascript:alert(1)) `<b>` **bold**'
    found = page.evaluate(
        """async (text) => {
            const { markdown } = await import("/page/markdown.js");
            const box = document.createElement("div");
            box.append(...markdown(text));
            const strong = box.querySelector("strong").textContent;
            return [box.querySelectorAll("img, a, b").length, strong, box.textContent];
        }""",
        text,
    )
    assert found == [0, "bold", '<img src=x onerror="document.title=1"> [x](javascript:alert(1)) <b> bold']


def test_an_error_is_shown_and_leaves_the_conversation_usable(page):
    settle(page)
    page.route(
        "**/v1/chat/completions",
        lambda route: route.fulfill(status=503, json={"error": {"message": "too busy"}}),
    )
    page.fill("#composer", "Hello!")
    page.press("#composer", "Enter")
    page.wait_for_selector(".failed")
    assert page.inner_text(".failed") == "too busy"
    page.unroute("**/v1/chat/completions")
    page.keyboard.press("Alt+r")
    finish(page)
    assert page.locator(".failed").count() == 0


def test_the_engine_is_shown_while_it_works(page):
    settle(page)
    ask(page, "Hello!")
    page.keyboard.press("Alt+e")
    page.wait_for_selector(".card")
    assert "tokens per second" in page.inner_text("#engine") and "pages of the cache" in page.inner_text(
        "#engine"
    )
    page.click("text=Time each command of a token")
    page.wait_for_selector("#engine meter[aria-label='share of the time']", timeout=60_000)
    assert "attn_q" in page.inner_text("#engine") or "qkv" in page.inner_text("#engine")


def test_a_question_may_come_before_the_models(browser, served):
    """The message waits for their list, instead of asking a model without a name."""
    context = browser.new_context()
    context.add_init_script("""
        const fetched = window.fetch;
        window.held = new Promise((done) => { window.release = done; });
        window.fetch = async (path, ...rest) => {
          if (path === "v1/models") await held;
          return fetched(path, ...rest);
        };
    """)
    page = context.new_page()
    page.goto(served.url)
    page.wait_for_selector(".welcome")
    page.fill("#composer", "Hello!")
    page.press("#composer", "Enter")
    page.wait_for_selector(".message.assistant")
    assert page.locator("#model option").count() == 0
    page.evaluate("release()")
    finish(page)
    context.close()


def test_a_phone_shows_one_thing_at_a_time(browser, served):
    context = browser.new_context(viewport={"width": 390, "height": 780}, has_touch=True)
    page = context.new_page()
    page.goto(served.url)
    page.wait_for_selector(".welcome")
    assert not page.is_visible("#sidebar")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    ask(page, "What is the capital of France?")
    page.wait_for_selector("#room")
    for one in page.query_selector_all("header > :is(button, label, #room)"):
        box = one.bounding_box()
        assert box is not None and box["x"] >= 0 and box["x"] + box["width"] <= 390
        assert box["height"] < 45  # in one line
    page.click("#open-sidebar")
    page.wait_for_selector("#sidebar.open")
    page.mouse.click(380, 400)
    page.wait_for_selector("#sidebar", state="hidden")
    context.close()


def test_dark_and_light(page):
    def background() -> str:
        return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))

    seen = {background()}
    for _ in range(2):
        page.click("#theme")
        seen.add(background())
    assert len(seen) == 2


def test_a_key_is_asked_for_once(browser):
    with serving(settings=Settings(keys=KEYS)) as served:
        context = browser.new_context()
        page = context.new_page()
        page.goto(served.url)
        page.wait_for_selector("#key-dialog[open]")
        page.fill("#key", KEY)
        page.press("#key", "Enter")
        page.wait_for_selector("#model option", state="attached")
        ask(page, "Hello!")
        context.close()


def test_an_administrators_key_is_asked_for_once(browser):
    """The engine is looked at each second: the key was asked for each time."""
    admin = Keys([Holder("admin", key_digest("key-of-the-admin"))])
    with serving(settings=Settings(keys=KEYS, admin_keys=admin)) as served:
        context = browser.new_context()
        page = context.new_page()
        page.add_init_script(f"sessionStorage.setItem('akunu.key', '{KEY}')")
        page.goto(served.url)
        page.wait_for_selector("#model option", state="attached")
        requests: list[str] = []
        page.on("request", lambda request: requests.append(request.url))
        page.keyboard.press("Alt+e")
        page.wait_for_selector("#key-dialog[open]:has-text('administrator')")
        page.keyboard.press("Escape")
        page.wait_for_selector("#engine button:has-text('Give a key')")
        page.wait_for_timeout(2500)  # two of the looks that there were
        assert not page.is_visible("#key-dialog")
        assert sum(url.endswith("admin/engine") for url in requests) == 1
        page.click("text=Give a key")
        page.wait_for_selector("#key-dialog[open]")
        page.fill("#key", "key-of-the-admin")
        page.press("#key", "Enter")
        page.wait_for_selector(".card")
        page.keyboard.press("Alt+e")
        ask(page, "Hello!")  # with the user's own key
        assert page.evaluate("sessionStorage.getItem('akunu.key')") == KEY
        context.close()


def asked(page: Any, text: str) -> None:
    settle(page)
    ask(page, text)


def stored(page: Any) -> list[str]:
    script = "JSON.parse(localStorage.getItem('akunu.chats')).map((chat) => chat.messages[0].content)"
    return sorted(page.evaluate(script))


def test_two_tabs_keep_all_conversations(page):
    """Each merges what it has changed, and shows what the other one has."""
    other = page.context.new_page()
    other.goto(page.url)
    other.wait_for_selector(".welcome")
    asked(page, "What is the capital of France?")
    other.wait_for_selector("#chats li:has-text('France')")
    asked(other, "What is the capital of Italy?")
    page.wait_for_selector("#chats li:has-text('Italy')")
    assert stored(page) == ["What is the capital of France?", "What is the capital of Italy?"]
    page.once("dialog", lambda dialog: dialog.accept())
    page.hover("#chats li:has-text('Italy')")
    page.click("#chats li:has-text('Italy') .remove")
    other.wait_for_selector("#chats li:has-text('Italy')", state="detached")
    assert stored(other) == ["What is the capital of France?"]


def test_another_answer_keeps_the_first(page):
    settle(page, temperature="1.5", max_tokens="24")
    first = ask(page, "Tell me a story about a lighthouse.")
    page.keyboard.press("Alt+r")
    page.wait_for_selector(".version")
    finish(page)
    assert page.inner_text(".version") == "2 of 2"
    second = page.inner_text(".message.assistant .body")
    page.hover(".message.assistant")
    page.click(".acts button:has-text('‹')")
    page.wait_for_selector(".version:has-text('1 of 2')")
    assert page.inner_text(".message.assistant .body") == first != second
    page.reload()
    page.wait_for_selector(".version")
    assert page.inner_text(".version") == "1 of 2"


def test_a_full_context_can_forget_its_oldest_turns(page):
    """The server's words are shown, and what can be done; the turns stay on the page."""
    turn = [
        {"role": "user", "content": "a story " * 200},
        {"role": "assistant", "content": "It was long. " * 120},
    ]
    chat = {
        "id": "long",
        "title": "long",
        "messages": turn * 4,
        "settings": {"temperature": 0, "max_tokens": 20},
    }
    page.evaluate("(chat) => localStorage.setItem('akunu.chats', JSON.stringify([chat]))", chat)
    page.reload()
    page.wait_for_selector(".message.assistant")
    page.fill("#composer", "What is the capital of France?")
    page.press("#composer", "Enter")
    page.wait_for_selector(".failed button")
    assert "maximum context length" in page.inner_text(".failed")
    while page.locator(".failed button").count():
        page.click(".failed button")
        page.wait_for_selector("#send:not([hidden])")
    finish(page)
    assert "no longer sees what is above" in page.inner_text(".forgotten")
    assert page.locator(".message").count() == 10
    assert re.fullmatch(r"[\d,]+ of 2,048 tokens", page.inner_text("#room-text"))


def test_files_are_attached_and_given_to_the_model(page):
    """Texts stand before the message, each in a fence; what is no text is refused."""
    asked_for: list[Any] = []
    page.on("request", lambda request: request.method == "POST" and asked_for.append(request.post_data_json))
    files = [
        {"name": "letter.txt", "mimeType": "text/plain", "buffer": b"Dear Ada,\n```\ncode\n```\nyours, Bob"},
        {"name": "photo.jpg", "mimeType": "image/jpeg", "buffer": b"\xff\xd8\xff\xe0"},
    ]
    page.set_input_files("#attach-file", files)
    page.wait_for_selector("#files button")
    assert page.inner_text("#files") == "letter.txt ×"
    assert "photo.jpg is an image, and this model reads text only" in page.inner_text("#status")
    settle(page, max_tokens="5")
    ask(page, "Who wrote this?")
    content = asked_for[-1]["messages"][-1]["content"]
    assert content == "letter.txt:\n````\nDear Ada,\n```\ncode\n```\nyours, Bob\n````\n\nWho wrote this?"
    assert "letter.txt, 33 characters" in page.inner_text(".message.user")
    assert page.locator("#files button").count() == 0


def test_conversations_are_found_saved_and_opened(page, browser, served, tmp_path):
    asked(page, "What is the capital of France?")
    page.keyboard.press("Alt+n")
    asked(page, "What is the capital of Italy?")
    page.fill("#search", "paris")
    assert page.locator("#chats li").count() == 1
    page.fill("#search", "")
    page.keyboard.press("Alt+s")
    with page.expect_download() as saved:
        page.click("#export-all")
    saved.value.save_as(tmp_path / "all.json")
    other = browser.new_context().new_page()
    other.goto(served.url)
    other.wait_for_selector(".welcome")
    for expected in ("all.json: 2 new", "all.json: 0 new"):
        other.set_input_files("#import-file", tmp_path / "all.json")
        other.wait_for_function(
            "(text) => document.getElementById('status').textContent === text", arg=expected
        )
    assert other.locator("#chats li:has-text('capital')").count() == 2
    other.context.close()


def test_the_page_says_what_ember_is_and_which_values_sampling_has(page):
    page.wait_for_selector(".welcome .about:has-text('akunu serve qwen3:4b')")
    asked(page, "What is the capital of France?")
    page.wait_for_function("document.querySelector('[name=top_k]').placeholder !== ''")
    assert float(page.get_attribute("[name=top_p]", "placeholder")) <= 1


def test_code_has_colours_and_stays_what_it_is(page):
    code = """def f(x):  # a 'comment'
    return "<b>" + str(12) if x else 'it\\'s'
"""
    script = """async ([language, code]) => {
      const { markdown } = await import("/page/markdown.js");
      const [made] = markdown("```" + language + "\\n" + code + "\\n```");
      const parts = [...made.querySelectorAll("code span")].map((span) => [span.className, span.textContent]);
      return [made.querySelector("code").textContent, parts];
    }"""
    text, parts = page.evaluate(script, ["python", code])
    assert text == code
    assert parts == [
        ["code-keyword", "def"],
        ["code-comment", "# a 'comment'"],
        ["code-keyword", "return"],
        ["code-string", '"<b>"'],
        ["code-number", "12"],
        ["code-keyword", "if"],
        ["code-keyword", "else"],
        ["code-string", "'it\\'s'"],
    ]
    assert page.evaluate(script, ["", code]) == [code, []]
    for language, odd in (("c", "/*" * 20000), ("python", '"' * 40001), ("sql", "--'" * 10000)):
        assert page.evaluate(script, [language, odd])[0] == odd


def test_no_markdown_takes_long(page):
    """Work grows with the text, whatever its signs: it was its square."""
    texts = [
        "**a" * 20000,
        "[" * 60000,
        "_a " * 20000,
        "`" * 60001,
        "~~a" * 20000,
        "*a " * 20000 + "[x](http://a.b)",
    ]
    script = """async (text) => {
      const { markdown } = await import("/page/markdown.js");
      markdown(text.repeat(8));
    }"""
    for text in texts:
        page.evaluate(script, text)  # a square would take longer than the browser's patience
