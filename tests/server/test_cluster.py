"""Several replicas: which one gets a request, and what happens when one is lost."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import threading

import httpx
import pytest

from akunu.server import Settings
from akunu.server.cluster.affinity import BLOCK, SLACK, Affinity, beginnings, stored_at
from akunu.server.cluster.front import ATTEMPTS, Front, Lost
from akunu.server.cluster.replica import Call, Replica

from .conftest import EMBER, wait_until

CHAT = "/v1/chat/completions"
PATIENCE = 300
"""Seconds for what takes some of them on a machine with nothing else to do."""
HELLO = [{"role": "user", "content": "What is 2+2?"}]


def body(*contents: str, **fields) -> bytes:
    messages = [{"role": "user", "content": text} for text in contents]
    return json.dumps({"model": "m", "messages": messages, **fields}).encode()


# -- Which replica -------------------------------------------------------------------------------------------


def test_a_conversation_returns_to_the_replica_that_knows_it():
    affinity = Affinity()
    first, other = "cat " * 300, "dog " * 300
    affinity.learn(beginnings(body(first)), "a")
    affinity.learn(beginnings(body(other)), "b")
    idle = {"a": 0, "b": 0}
    assert affinity.order(beginnings(body(first, "and now?", max_tokens=5)), idle) == ["a", "b"]
    assert affinity.order(beginnings(body(other, "and now?")), idle) == ["b", "a"]


def test_a_replica_with_much_more_to_do_does_not_get_it():
    affinity = Affinity()
    keys = beginnings(body("cat " * 300))
    affinity.learn(keys, "a")
    assert affinity.order(keys, {"a": SLACK, "b": 0})[0] == "a"
    assert affinity.order(keys, {"a": SLACK + 1, "b": 0})[0] == "b"
    assert affinity.order([], {"a": 2, "b": 1}) == ["b", "a"]


def test_the_longest_beginning_counts_and_lines_that_always_change_do_not():
    affinity = Affinity()
    system = "You are an agent. " * 40

    def asked(line: str, text: str) -> list[int]:
        return beginnings(body(text, system=f"x-anthropic-billing-header: {line}\n{system}"))

    affinity.learn(asked("1", "cat " * 200), "a")
    affinity.learn(asked("22", "dog " * 200), "b")
    idle = {"a": 0, "b": 0, "c": 0}
    assert affinity.order(asked("333", "cat " * 300), idle)[0] == "a"
    assert affinity.order(asked("4444", "dog " * 300), idle)[0] == "b"


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b'"x"', b"\xff", body("short")])
def test_what_has_no_beginning_goes_anywhere(data):
    assert len(data) < BLOCK and beginnings(data) == []


def test_what_is_nested_too_deep_to_be_read_goes_anywhere():
    assert beginnings(b'{"messages": ' + b"[" * 100_000 + b"]" * 100_000 + b"}") == []


def test_a_stored_response_names_its_replica():
    for path in ("/v1/responses/resp_r1_abc", "/v1/responses/resp_r1_abc/input_items"):
        assert stored_at(path, b"") == "r1"
    for path in ("/v1/responses", "/v1/responses/input_tokens"):
        assert stored_at(path, b'{"previous_response_id": "resp_r2_abc"}') == "r2"
    assert stored_at("/v1/responses", b'{"previous_response_id": null}') is None
    assert stored_at("/v1/responses/resp_abc", b"") is None


# -- The front -----------------------------------------------------------------------------------------------


class Asking:
    """Replicas by what they do, one after another."""

    def __init__(self, *answers) -> None:
        self.answers = list(answers)
        self.calls: list[Call] = []
        self.closed = 0

    async def __call__(self, call: Call):
        self.calls.append(call)
        try:
            for each in self.answers.pop(0):
                if isinstance(each, Exception):
                    raise each
                if each is None:
                    await asyncio.sleep(60)
                yield each
        finally:
            self.closed += 1


START = {"type": "http.response.start", "status": 200, "headers": []}
END = {"type": "http.response.body", "body": b"yes", "more_body": False}


def client_of(asking: Asking) -> httpx.AsyncClient:
    app = Front(asking, max_body=1000, max_seconds=60)
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost")


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr("akunu.server.cluster.front.PAUSE_SECONDS", 0.0)


async def answered(asking: Asking, path: str = CHAT, content: bytes = b"{}") -> httpx.Response:
    async with client_of(asking) as client:
        return await client.post(path, content=content)


def test_a_request_whose_replica_dies_before_it_answers_is_given_to_another():
    asking = Asking([Lost("gone")], [Lost("gone")], [START, END])
    found = asyncio.run(answered(asking, content=b"[1]"))
    assert (found.status_code, found.content) == (200, b"yes")
    assert [call.body for call in asking.calls] == [b"[1]"] * 3


def test_an_answer_that_has_begun_is_not_begun_again():
    asking = Asking([START, Lost("gone")], [START, END])
    with pytest.raises(Lost):
        asyncio.run(answered(asking))
    assert len(asking.calls) == 1


def test_when_all_replicas_die_the_client_is_told_to_come_again():
    found = asyncio.run(answered(Asking(*[[Lost("gone")]] * ATTEMPTS), "/v1/messages"))
    assert (found.status_code, found.json()["error"]["type"]) == (503, "overloaded_error")
    assert found.headers["retry-after"] == "5"


def test_what_is_not_for_a_cluster_or_too_large_is_refused_by_the_front():
    asking = Asking()
    assert asyncio.run(answered(asking, "/admin/load")).status_code == 403
    assert asyncio.run(answered(asking, content=b"x" * 1001)).status_code == 413
    assert not asking.calls


def test_a_client_that_goes_away_ends_its_request():
    asking = Asking([None])
    received = [{"type": "http.request", "body": b"{}"}, {"type": "http.disconnect"}]

    async def receive():
        return received.pop(0)

    async def send(message):
        raise AssertionError(message)

    scope = Call("POST", CHAT, b"", [], None, b"").scope()
    asyncio.run(Front(asking, 1000, 60)(scope, receive, send))
    assert asking.closed == 1


# -- A replica -----------------------------------------------------------------------------------------------


def call_of(path: str, **fields) -> Call:
    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    return Call("POST", path, b"", headers, ("127.0.0.1", 1), json.dumps(fields).encode())


def test_a_replica_answers_as_the_server_does_and_ends_what_nobody_reads():
    async def run() -> tuple[int, bytes, str]:
        replica = Replica([EMBER], Settings(), "r1")
        await replica.start()
        try:
            call = call_of(CHAT, model="ember", messages=HELLO, temperature=0)
            messages = [message async for message in replica.answer(call)]
            data = b"".join(message.get("body", b"") for message in messages)
            stored = [m async for m in replica.answer(call_of("/v1/responses", model="ember", input="Hi"))]
            endless = call_of("/v1/completions", model="ember", prompt="Hi", max_tokens=500, stream=True)
            entry = replica.app.state.server.models.find("ember")
            async with contextlib.aclosing(replica.answer(endless)) as stream:
                await anext(stream)
                assert entry.users == 1
            while entry.users:
                await asyncio.sleep(0.01)
            return messages[0]["status"], data, json.loads(stored[1]["body"])["id"]
        finally:
            await replica.stop()

    status, data, response = asyncio.run(run())
    assert status == 200 and "4" in json.loads(data)["choices"][0]["message"]["content"]
    assert response.startswith("resp_r1_")


# -- Ray -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster():
    """Two nodes on this machine, and a replica on each."""
    ray = pytest.importorskip("ray")
    pytest.importorskip("ray.serve")
    from ray.cluster_utils import Cluster

    from akunu.server.cluster.deploy import Scale, deploy

    node = {"num_cpus": 1, "object_store_memory": 80 << 20}
    made = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    made.add_node(**node)
    paths = {"env_vars": {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}}
    ray.init(address=made.address, runtime_env=paths, log_to_driver=False)
    try:
        deploy([EMBER], Settings(), Scale(2, 2), port=8123)
        with httpx.Client(base_url="http://127.0.0.1:8123", timeout=PATIENCE, trust_env=False) as client:
            yield client
    finally:
        from ray import serve

        serve.shutdown()
        ray.shutdown()
        made.shutdown()


def ask(client: httpx.Client, messages, **fields) -> dict:
    fields = {"model": "ember", "messages": messages, "temperature": 0, "max_tokens": 20, **fields}
    answer = client.post(CHAT, json=fields)
    assert answer.status_code == 200, answer.text
    return answer.json()


def busy_replica():
    """A replica that has a request; None while there is none."""
    import ray

    for each in ray.util.list_named_actors(all_namespaces=True):
        if "#replica#" not in each["name"]:
            continue
        with contextlib.suppress(ValueError, ray.exceptions.RayError):  # it has just ended
            actor = ray.get_actor(each["name"], namespace=each["namespace"])
            if ray.get(actor.get_num_ongoing_requests.remote(), timeout=10):
                return actor
    return None


def many(client: httpx.Client, n: int, meanwhile) -> list[dict]:
    """`n` requests at once, and something with a replica that has one of them."""
    found: list[dict] = []
    story = [{"role": "user", "content": "Tell a story. " * 20}]
    endless = {"max_tokens": 400, "temperature": 1, "logit_bias": {"0": -100, "1": -100, "2": -100}}

    def one(seed: int) -> None:
        found.append(ask(client, story, seed=seed, **endless))

    threads = [threading.Thread(target=one, args=(i,)) for i in range(n)]
    for thread in threads:
        thread.start()
    busy = []
    wait_until(lambda: busy.append(busy_replica()) or busy[-1] is not None, PATIENCE)
    meanwhile(busy[-1])
    for thread in threads:
        thread.join(PATIENCE)
    return found


@pytest.mark.long
def test_a_conversation_on_two_nodes_has_its_cache(cluster):
    conversations = [[{"role": "user", "content": f"{word} " * 200}] for word in ("cat", "dog", "cow", "hen")]
    for messages in conversations:
        answer = ask(cluster, messages)
        messages += [answer["choices"][0]["message"], {"role": "user", "content": "Go on."}]
    for messages in conversations:
        usage = ask(cluster, messages)["usage"]
        assert usage["prompt_tokens_details"]["cached_tokens"] > 0.8 * usage["prompt_tokens"] - 40


@pytest.mark.long
def test_a_stored_response_is_found_whoever_has_it(cluster):
    for i in range(4):
        first = cluster.post("/v1/responses", json={"model": "ember", "input": f"Hello {i}"}).json()
        second = cluster.post(
            "/v1/responses",
            json={"model": "ember", "input": "Go on.", "previous_response_id": first["id"]},
        )
        assert second.status_code == 200, second.text
        assert cluster.get(f"/v1/responses/{first['id']}").status_code == 200


@pytest.mark.long
def test_a_replica_that_is_killed_loses_no_request_that_has_not_begun(cluster):
    import ray

    assert len(many(cluster, 8, lambda replica: ray.kill(replica, no_restart=True))) == 8


@pytest.mark.long
def test_what_is_served_changes_without_a_request_that_fails(cluster):
    import msgspec

    from akunu.server.cluster.deploy import Scale, deploy

    changed = msgspec.structs.replace(EMBER, aliases=("new-*",))
    assert len(many(cluster, 8, lambda _: deploy([changed], Settings(), Scale(2, 2), port=8123))) == 8

    def is_new() -> bool:  # an old front gives the requests that it has to old replicas
        return cluster.post(CHAT, json={"model": "new-name", "messages": HELLO}).status_code == 200

    wait_until(is_new, PATIENCE)
