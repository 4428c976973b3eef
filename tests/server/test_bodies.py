"""What clients send: how much of it there may be, how fast it comes, and how long it may be for a model."""

from __future__ import annotations

import asyncio
import cProfile
import re
import select
import socket
import sys
import tempfile
import threading

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from akunu.server import Settings, fields, many_values
from akunu.server import bodies as server_bodies
from akunu.server.bodies import TURN_SECONDS, WINDOW_BYTES, WINDOW_SECONDS, Bodies, Body
from akunu.server.errors import ApiError
from akunu.server.openai_chat import ChatRequest
from akunu.tokenizer import Tokenizer
from own_view import give_own_view

from .conftest import EMBER, serving, wait_until
from .test_audio import wav
from .test_cancel import port_of

HEAD = (
    b"POST /tokenize HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    b"Content-Length: %d\r\n\r\n"
)


def sent(*chunks: bytes, clock: list[float] | None = None, seconds: float = 0.0):
    """An application's `receive` for a body in these pieces, each after some seconds of a clock."""
    left = list(chunks)

    async def receive():
        if clock is not None:
            clock[0] += seconds
        data = left.pop(0)
        return {"type": "http.request", "body": data, "more_body": bool(left)}

    return receive


async def read(body: Body) -> int:
    while (await body.receive()).get("more_body"):
        pass
    return body.size


def test_in_a_round_of_the_loop_a_client_has_one_piece_read():
    bodies, rounds = Bodies(1 << 20), 0

    async def count() -> None:
        nonlocal rounds
        while True:
            rounds += 1
            await asyncio.sleep(0)

    async def all_of(clients: list[str]) -> int:
        nonlocal rounds
        made = [Body(bodies, client, sent(*[b"x"] * 20), 99, 9.0) for client in clients]
        counting = asyncio.create_task(count())
        rounds = 0
        await asyncio.gather(*(read(body) for body in made))
        counting.cancel()
        for body in made:
            body.close()
        return rounds

    assert asyncio.run(all_of(["tom"] * 10)) >= 190
    assert asyncio.run(all_of([f"tom {number}" for number in range(10)])) < 100
    assert not bodies._turns


def test_pieces_of_bodies_leave_rounds_to_others_who_are_there(monkeypatch):
    others, waited = set[str](), list[float]()
    bodies = Bodies(1 << 20, lambda client: bool(others - {client}))

    async def slept(seconds: float) -> None:
        waited.append(seconds)
        await asyncio.sleep(0)

    give_own_view(monkeypatch, server_bodies, "asyncio", sleep=slept)
    for who in ("tom", "eve"):
        others.add(who)
        body = Body(bodies, "tom", sent(b"x", b"x", b"x"), 99, 9.0)
        asyncio.run(read(body))
        body.close()
    assert waited == [0, 0, TURN_SECONDS, TURN_SECONDS]


def test_files_that_are_given_up_are_closed_beside_the_loop(monkeypatch):
    closed, spool = [], tempfile.SpooledTemporaryFile

    class Spooled(spool):
        def close(self) -> None:
            if self._rolled:
                closed.append(threading.current_thread().name)
            super().close()

    monkeypatch.setattr("starlette.formparsers.SpooledTemporaryFile", Spooled)
    head = (
        b"POST /v1/audio/transcriptions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9000000\r\n"
        b"Content-Type: multipart/form-data; boundary=xx\r\n\r\n"
        b'--xx\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'
    )
    with serving() as served:
        with socket.create_connection(("127.0.0.1", port_of(served)), timeout=20) as one:
            one.sendall(head + bytes(4 << 20))
        wait_until(lambda: closed)
        assert all(name.startswith("asyncio_") for name in closed)


def test_a_client_has_as_many_bytes_as_it_leaves_for_others():
    bodies = Bodies(900)
    bodies.take("tom", 450)
    with pytest.raises(ApiError) as refused:
        bodies.take("tom", 1)
    assert refused.value.status == 503
    bodies.take("eve", 225)
    for client in ("tom", "eve"):
        with pytest.raises(ApiError):
            bodies.take(client, 1)
    bodies.take("ann", 100)
    bodies.give("tom", 450)
    bodies.take("eve", 175)
    for client, size in (("eve", 400), ("ann", 100)):
        bodies.give(client, size)
    assert bodies.bytes == 0


def test_a_body_arrives_in_time_and_at_a_pace():
    def status(chunks: list[bytes], step: float, seconds: float = 600) -> int:
        clock = [0.0]
        receive = sent(*chunks, clock=clock, seconds=step)
        body = Body(Bodies(1 << 30), "tom", receive, 1 << 30, seconds, lambda: clock[0])
        try:
            asyncio.run(read(body))
        except ApiError as error:
            return error.status
        return 200

    assert status([b"x"] * 5, WINDOW_SECONDS / 10) == 200
    assert status([b"x"] * 50, WINDOW_SECONDS / 10) == 408
    assert status([b"x" * WINDOW_BYTES] * 50, WINDOW_SECONDS) == 200
    assert status([b"x" * WINDOW_BYTES] * 50, WINDOW_SECONDS, seconds=45) == 408
    assert status([b"x" * (10 * WINDOW_BYTES), b"x", b"x", b"x"], WINDOW_SECONDS) == 408
    assert status([b"x"], 100 * WINDOW_SECONDS) == 200  # all of it is there


def test_a_body_that_stops_is_a_408(monkeypatch):
    monkeypatch.setattr("akunu.server.bodies.WINDOW_SECONDS", 0.2)
    head = HEAD % 99
    with serving() as served, socket.create_connection(("127.0.0.1", port_of(served)), timeout=20) as one:
        one.sendall(head + b'{"model"')
        answer = b"".join(iter(lambda: one.recv(4096), b""))
        assert answer.startswith(b"HTTP/1.1 408")
        assert b"too slowly" in answer


def test_bodies_have_a_sum():
    begin = b'{"model": "ember", "text": "'
    head = HEAD % (1 << 20)
    with serving(settings=Settings(max_bodies=1 << 20)) as served:
        held = []
        for _ in range(3):
            held.append(socket.create_connection(("127.0.0.1", port_of(served)), timeout=20))
            held[-1].sendall(head + begin + b"x" * (200 << 10))
        answer = select.select(held, [], [], 20)[0][0].recv(4096)  # of the one that was one too many
        assert answer.startswith(b"HTTP/1.1 503")
        assert b"retry-after" in answer.lower()
        for one in held:
            one.close()
        wait_until(lambda: served.post("/tokenize", model="ember", text="x" * 20_000).status_code == 200)


def test_memory_of_large_bodies_goes_back_once_they_are_gone(monkeypatch):
    """Only calls of this server count: bodies of the one that all tests share may have gone just now."""
    asked, given, most, ask = [], [], 99 << 20, Bodies._give_back
    monkeypatch.setattr(Bodies, "_give_back", lambda bodies: (asked.append(bodies._most), ask(bodies)))
    monkeypatch.setattr("akunu.server.bodies.give_back", lambda: given.append(True))
    with serving(settings=Settings(max_bodies=most)) as served:
        served.post("/tokenize", model="ember", text="x" * 20_000)
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", port_of(served)), timeout=20) as one:
                one.sendall(HEAD % (8 << 20) + b" " * (7 << 20))
        wait_until(lambda: most in asked and given)
    assert asked.count(most) == 1


def test_recordings_are_on_disk_and_are_closed(monkeypatch):
    opened = []
    spool = tempfile.SpooledTemporaryFile

    def spooled(*args, **options):
        opened.append(spool(*args, **options))
        return opened[-1]

    monkeypatch.setattr("starlette.formparsers.SpooledTemporaryFile", spooled)
    with serving() as served:
        for model, size in (("ember", 100_000), ("ember", 3 << 20), ("nobody", 3 << 20)):
            files = {"file": ("a.wav", wav(1) + bytes(size))}
            served.http.post("/v1/audio/transcriptions", data={"model": model}, files=files)
        wait_until(lambda: all(file.closed for file in opened))
        assert [file._rolled for file in opened] == [False, True, True]


LONG = "ab cd " * 200_000
CHAT = {"model": "ember", "messages": [{"role": "user", "content": LONG}]}
MANY = {"model": "ember", "messages": [{"role": "user", "content": "x"}] * 100_000}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", CHAT),
        ("/v1/chat/completions", MANY),
        ("/v1/completions", {"model": "ember", "prompt": LONG}),
        ("/v1/responses", {"model": "ember", "input": LONG}),
        ("/v1/responses/input_tokens", {"model": "ember", "input": LONG}),
        ("/v1/messages", {**CHAT, "max_tokens": 1}),
        ("/v1/messages/count_tokens", CHAT),
        ("/v1/messages/count_tokens", MANY),
        ("/tokenize", {"model": "ember", "text": LONG}),
        ("/apply-template", CHAT),
        ("/apply-template", MANY),
        ("/api/chat", CHAT),
        ("/api/generate", {"model": "ember", "prompt": LONG}),
        ("/api/generate", {"model": "ember", "prompt": LONG, "raw": True}),
        ("/v1/embeddings", {"model": "vectors", "input": LONG}),
        ("/v1/rerank", {"model": "scores", "query": LONG, "documents": ["a"]}),
        ("/v1/rerank", {"model": "scores", "query": "a", "documents": [LONG]}),
    ],
)
def test_what_is_too_long_is_refused_before_it_is_rendered_or_put_into_tokens(
    served, monkeypatch, path, body
):
    lengths = []
    encode, render = Tokenizer.encode_segments, "akunu.chat.sandbox.render"

    def segments(self, given, **options):
        given = list(given)
        lengths.append(sum(len(segment.text) for segment in given))
        return encode(self, given, **options)

    monkeypatch.setattr(Tokenizer, "encode_segments", segments)
    monkeypatch.setattr(render, lambda *_: pytest.fail("it was rendered"))
    answer = served.http.post(path, json=body)
    assert answer.status_code == 400
    assert re.search(r"at least \d{4}|\d{5} tokens", answer.text)
    assert sum(lengths) < 1000


def test_requests_that_are_large_are_read_beside_the_loop(monkeypatch):
    threads = []
    with serving(EMBER) as served:
        decoded = fields._decoded
        monkeypatch.setattr(
            fields,
            "_decoded",
            lambda *args: (threads.append(threading.current_thread().name), decoded(*args))[1],
        )
        served.post("/tokenize", model="ember", text="x")
        served.post("/tokenize", model="ember", text="x" * 100_000)
    assert "akunu-large" not in threads[0]
    assert "akunu-large" in threads[1]


def test_objects_that_have_nothing_to_refuse_are_not_looked_at():
    """The work on a request's messages is a few calls, where each of 100,000 was looked at field by field."""

    def calls(n: int) -> int:
        messages = [{"role": "user", "content": [{"type": "text", "text": "x"}]}] * n
        found = msgspec.convert({"model": "ember", "messages": messages}, ChatRequest)
        profile = cProfile.Profile()
        profile.runcall(fields.refuse_others, found)
        return sum(entry.callcount for entry in profile.getstats())

    calls(1)  # what is to be looked at is found out once
    assert calls(1000) - calls(100) <= 900 * 9


def test_what_is_refused_is_found_wherever_it_is():
    for body, name in (
        ({"messages": [{"role": "user", "content": "x", "audio": {}}]}, "messages[0].audio"),
        (
            {"messages": [], "stream_options": {"include_obfuscation": True}},
            "stream_options.include_obfuscation",
        ),
        ({"messages": [], "store": 0}, "store"),
        ({"messages": [], "reasoning": {"exclude": True}}, "reasoning.exclude"),
    ):
        with pytest.raises(ApiError, match="this server supports only") as error:
            fields.refuse_others(msgspec.convert({"model": "ember", **body}, ChatRequest))
        assert error.value.param == name


def test_threads_take_turns_often_while_a_server_runs():
    before = sys.getswitchinterval()
    with serving():
        assert sys.getswitchinterval() <= 0.001
    assert sys.getswitchinterval() == before


def of_values(count: int) -> dict[str, tuple[str, dict[str, object]]]:
    """Requests of so many values, by path: what they have is more than fits."""
    parts = [{"type": "text", "text": "hi"}] * count
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    said = [{"role": "user", "content": "hi"}]
    return {
        "ids": ("/v1/completions", {"prompt": [300] * count}),
        "ids in lists": ("/completion", {"prompt": [[300] * count]}),
        "parts": ("/v1/chat/completions", {"messages": [{"role": "user", "content": parts}]}),
        "blocks": ("/v1/messages", {"max_tokens": 1, "messages": [{"role": "user", "content": parts}]}),
        "items": ("/v1/responses", {"input": [{"role": "user", "content": "hi"}] * count}),
        "tools": ("/v1/chat/completions", {"messages": said, "tools": [tool] * count}),
        "numbers in a schema": (
            "/v1/chat/completions",
            {"messages": said, "tools": [{**tool, "more": {"enum": [1] * count}}]},
        ),
        "lists in lists": ("/apply-template", {"messages": said, "tools": [{"a": [[[]]] * count}]}),
        "escapes": ("/api/chat", {"messages": [{"role": "user", "content": "a\n" * count}]}),
        "letters": ("/tokenize", {"text": "привет мир " * count}),
    }


@pytest.mark.parametrize("what", of_values(1))
def test_more_values_than_a_prompt_is_made_of_are_refused_before_they_are_read(served, monkeypatch, what):
    path, body = of_values(60_000)[what]
    monkeypatch.setattr(fields, "_decoded", lambda *_: pytest.fail("it was read"))
    answer = served.http.post(path, json={**body, "model": "ember"})
    assert answer.status_code == 400
    assert re.search(r"at least \d{4}|\d{4} tokens", answer.text)


def test_commas_in_texts_are_no_values_and_slashes_no_escapes(served):
    for text in (", [{" * 20_000, "\\/" * 60_000):
        data = b'{"model": "ember", "user": "%s", "prompt": "x", "max_tokens": 1}' % text.encode()
        answer = served.http.post("/v1/completions", content=data)
        assert answer.status_code == 200


def test_a_long_list_of_ids_is_the_text_that_its_parts_are(served):
    ids = list(range(300, 2000)) * 40
    whole = served.post("/detokenize", model="ember", tokens=ids).json()["content"]
    assert whole == served.post("/detokenize", model="ember", tokens=ids[:1700]).json()["content"] * 40
    wrong = served.post("/detokenize", model="ember", tokens=[*ids, "x", *ids])
    assert wrong.json()["error"]["param"] == f"tokens[{len(ids)}]"
    broken = b'{"model": "ember", "tokens": [%s,]}' % b",".join(b"%d" % each for each in ids)
    assert served.http.post("/detokenize", content=broken).status_code == 400


def test_long_lists_of_inputs_are_read_in_pieces(served):
    inputs = [[5, 6, 7 + n % 9] * 6 for n in range(1800)]
    answer = served.post("/v1/embeddings", model="vectors", input=inputs)
    assert answer.status_code == 200, answer.text
    data = answer.json()["data"]
    few = served.post("/v1/embeddings", model="vectors", input=inputs[:9]).json()["data"]
    assert [each["embedding"] for each in data[::200]] == [
        few[n % 9]["embedding"] for n in range(0, 1800, 200)
    ]
    one = served.post("/v1/embeddings", model="vectors", input=[5] * 40_000).json()["error"]
    assert "40000 tokens, the model takes 80" in one["message"]
    for path, name, model in (("/v1/rerank", "documents", "scores"), ("/api/embed", "input", "vectors")):
        wrong = served.post(path, model=model, query="x", **{name: [*["some words"] * 20_000, 3]})
        assert f"{name}[20000]" in wrong.text or "query" in wrong.text


@given(st.text("abx", max_size=50), st.integers(1, 9))
def test_a_word_is_counted_wherever_blocks_end(text: str, block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(many_values, "_BLOCK", block)
        assert many_values.times(b"abx", text.encode()) == text.count("abx")


JSON = st.recursive(
    st.none() | st.integers(-99, 99) | st.text('a"\\,[]{}:/é', max_size=6),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text('a"\\[,', max_size=3), inner),
    max_leaves=30,
)


def marks(value: object) -> int:
    """The commas of a value, and the lists and objects that it has and is."""
    if not isinstance(value, list | dict):
        return 0
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max(len(value) - 1, 0) + sum(map(marks, inner))


@given(JSON, st.lists(JSON, min_size=1, max_size=30), st.integers(1, 20))
def test_values_are_counted_and_lists_cut_wherever_blocks_end(before: object, items: list, block: int):
    body = {"before": before, "items": items, "after": "items"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(many_values, "_BLOCK", block)
        data = msgspec.json.encode(body)
        outline = many_values._outline(data)
        found = many_values._in_pieces(data, outline, ("items",))
    assert outline.values == marks(body)
    assert msgspec.json.decode(outline.body).keys() == body.keys()
    read = [body] if found is None else [msgspec.json.decode(piece) for piece in found]
    assert [item for each in read for item in each["items"]] == items
    assert all({**each, "items": items} == body for each in read)
    assert found is None or len(found.items) > 1 or len(items) == 1 or block > 5


ITEM = st.integers(-(2**70), 2**70) | st.text() | st.lists(st.integers(0, 9))


@given(st.lists(st.lists(ITEM, max_size=3), min_size=1))
def test_items_of_lists_are_joined(lists: list) -> None:
    found = many_values.joined_items(iter(lists))
    assert [each.tolist() if hasattr(each, "tolist") else each for each in found] == [
        item for items in lists for item in items
    ]
