"""Ollama's API, by its own client for Python, and for JavaScript where Node.js has it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import ollama
import pytest

from akunu.server.ollama_fields import seconds
from missing import missing

from .conftest import EMBER, serving, wait_until

HELLO = [{"role": "user", "content": "What is 2+2?"}]
QUESTION = [{"role": "user", "content": "What is the weather in Paris?"}]
GREEDY = {"temperature": 0}
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get the weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


@pytest.fixture
def client(served):
    return ollama.Client(host=served.url, verify=False)


def test_a_chat_is_the_models_own(client, served):
    alone = served.ember.model.chat(HELLO, temperature=0)
    answer = client.chat("ember", HELLO, options=GREEDY)
    assert (answer.message.role, answer.message.content) == ("assistant", alone.text)
    assert (answer.done, answer.done_reason, answer.model) == (True, "stop", "ember")
    assert (answer.prompt_eval_count, answer.eval_count) == (alone.stats.prompt_tokens, len(alone.ids))
    parts = (answer.load_duration, answer.prompt_eval_duration, answer.eval_duration)
    assert 0 < sum(parts) <= answer.total_duration
    assert client.chat("ember:latest", HELLO, options=GREEDY).message.content == alone.text


def test_a_stream_is_the_same_chat(client):
    whole = client.chat("ember", HELLO, options=GREEDY)
    pieces = list(client.chat("ember", HELLO, options=GREEDY, stream=True))
    assert "".join(piece.message.content for piece in pieces) == whole.message.content
    assert [piece.done for piece in pieces] == [False] * (len(pieces) - 1) + [True]
    assert pieces[-1].eval_count == whole.eval_count
    assert len(pieces) > 3


def test_a_stream_is_lines_of_json_and_the_default(served):
    answer = served.post("/api/chat", model="ember", messages=HELLO, options=GREEDY)
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert lines[-1]["done"] and "total_duration" in lines[-1]


@pytest.mark.parametrize("stream", [False, True])
def test_an_agent_runs_to_its_end(client, stream):
    def ask(messages):
        found = client.chat("ember", messages, tools=[WEATHER], options=GREEDY, stream=stream)
        parts = list(found) if stream else [found]
        calls = [call for part in parts for call in part.message.tool_calls or ()]
        return "".join(part.message.content or "" for part in parts), calls

    _, (call,) = ask(QUESTION)
    assert (call.function.name, call.function.arguments) == ("get_weather", {"city": "Paris"})
    result = {"city": "Paris", "sky": "rain", "temperature": 12}
    messages = [
        *QUESTION,
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_name": "get_weather", "content": json.dumps(result)},
    ]
    said, calls = ask(messages)
    assert "rain" in said and not calls


def test_options_are_followed(client, served):
    def ask(**options):
        return client.chat("ember", HELLO, options={**GREEDY, **options})

    assert ask(num_predict=2).done_reason == "length"
    assert ask(num_predict=-1).done_reason == "stop"
    assert ask(stop=["="]).message.content == "2 + 2 "
    assert ask(num_ctx=8192, num_gpu=99, mirostat=0, seed=-1, repeat_last_n=-1).done_reason == "stop"
    some = [client.chat("ember", HELLO, options={"seed": 7, "temperature": 2}).message.content for _ in "ab"]
    assert some[0] == some[1]


@pytest.mark.parametrize("stream", [False, True])
def test_options_that_are_not_known_are_left_out_and_named(served, stream):
    options = {**GREEDY, "num_predict": 2, "top_q": 1, "reasoning_effort": "low"}
    answer = served.post("/api/chat", model="ember", messages=HELLO, options=options, stream=stream)
    end = json.loads(answer.text.splitlines()[-1])
    assert (answer.status_code, end["done_reason"]) == (200, "length")
    assert [warning.partition(":")[0] for warning in end["warnings"]] == [
        "options.top_q",
        "options.reasoning_effort",
    ]
    plain = served.post("/api/chat", model="ember", messages=HELLO, options=GREEDY, stream=stream)
    assert "warnings" not in plain.text


def test_a_format_holds(client):
    schema = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
    schema["additionalProperties"] = False
    answer = client.chat("ember", HELLO, format=schema, options={**GREEDY, "num_predict": 60})
    assert set(json.loads(answer.message.content)) >= {"sum"}
    said = client.generate("ember", "A person as JSON", format="json", options={**GREEDY, "num_predict": 100})
    assert said.response.startswith("{")


def test_a_prompt_is_a_message_and_a_raw_one_is_not(client, served):
    model = served.ember.model
    answer = client.generate("ember", "What is 2+2?", options=GREEDY)
    assert answer.response == model.chat(HELLO, temperature=0).text
    raw = client.generate("ember", "Once upon a time", raw=True, options={**GREEDY, "num_predict": 8})
    assert raw.response == model.generate("Once upon a time", temperature=0, max_tokens=8).text
    prompt = "<|im_start|>user\nWhat is 2+2?<|im_end|>\n<|im_start|>assistant\n"
    assert client.generate("ember", prompt, raw=True, options=GREEDY).response == answer.response
    pieces = list(client.generate("ember", "What is 2+2?", options=GREEDY, stream=True))
    assert "".join(piece.response for piece in pieces) == answer.response
    with_system = client.generate("ember", "What is 2+2?", system="Be brief.", options=GREEDY)
    assert with_system.prompt_eval_count > answer.prompt_eval_count


def test_the_models_are_listed_and_described(client, served):
    names = [model.model for model in client.list().models]
    assert names == ["ember", "vectors", "scores"]
    assert all(len(model.digest) == 64 and model.size > 0 for model in client.list().models if model.size)
    shown = client.show("ember")
    assert shown.modelinfo["general.architecture"] == "llama"
    assert shown.modelinfo["llama.context_length"] == served.ember.model.config.context_length
    assert {"completion", "tools"} <= set(shown.capabilities)
    assert "im_start" in shown.template
    assert client.show("vectors").capabilities == ["embedding"]
    (running, *_) = client.ps().models
    assert (running.model, running.context_length) == ("ember", served.ember.model.context)
    assert served.ember.model.memory_left is None, "the model is on a processor"
    assert (running.size > 0, running.size_vram) == (True, 0)
    assert served.http.get("/api/version").json()["version"].count(".") == 2


def test_texts_become_vectors(client, served):
    found = client.embed("vectors", ["one", "two"])
    assert len(found.embeddings) == 2
    one = client.embeddings("vectors", "one").embedding
    assert one == pytest.approx(found.embeddings[0], abs=1e-6)
    assert found.prompt_eval_count > 0
    assert client.embed("vectors", []).embeddings == []


@pytest.mark.parametrize(
    ("path", "fields", "status", "words"),
    [
        ("/api/chat", {"model": "nobody", "messages": HELLO}, 404, "nobody"),
        ("/api/chat", {"messages": HELLO}, 400, "model"),
        ("/api/chat", {"messages": [{**HELLO[0], "images": ["aGk="]}], "model": "ember"}, 400, "images"),
        ("/api/chat", {"messages": HELLO, "model": "ember", "think": True}, 400, "thinking"),
        ("/api/chat", {"messages": HELLO, "model": "ember", "options": {"top_k": "x"}}, 400, "top_k"),
        ("/api/chat", {"messages": HELLO, "model": "ember", "top_q": 1}, 400, "top_q"),
        ("/api/chat", {"messages": HELLO, "model": "ember", "options": {"mirostat": 2}}, 400, "mirostat"),
        ("/api/chat", {"messages": HELLO, "model": "ember", "format": "xml"}, 400, "format"),
        ("/api/chat", {"messages": HELLO, "model": "ember", "keep_alive": "soon"}, 400, "keep_alive"),
        ("/api/chat", {"messages": HELLO, "model": "vectors"}, 400, "embedding model"),
        ("/api/embed", {"input": "x", "model": "ember"}, 400, "text model"),
        ("/api/generate", {"model": "ember", "prompt": "a", "suffix": "b"}, 400, "fill-in-the-middle"),
        ("/api/generate", {"model": "ember", "prompt": "word " * 4000}, 400, "maximum context length"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_errors_are_in_ollamas_form(quiet, path, fields, status, words, stream):
    if path != "/api/embed":
        fields = {**fields, "stream": stream}
    answer = quiet.post(path, **fields)
    assert answer.status_code == status
    assert words in answer.json()["error"]


def test_no_thinking_can_be_asked_of_any_model(client):
    assert client.chat("ember", HELLO, think=False, options=GREEDY).done


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, None),
        (0, 0),
        ("0", 0),
        (300, 300),
        ("5m", 300),
        ("1h30m", 5400),
        ("500ms", 0.5),
        ("24h", 86400),
    ],
)
def test_durations_are_read(given, expected):
    assert seconds(given) == expected


def test_a_model_is_loaded_and_unloaded_as_asked():
    with serving(EMBER) as served:
        client, entry = ollama.Client(host=served.url, verify=False), served.ember
        assert client.generate("ember", "").done_reason == "load"
        assert client.chat("ember", [], keep_alive=0).done_reason == "unload"
        assert entry.model is None and client.ps().models == []
        assert client.chat("ember", HELLO, options=GREEDY, keep_alive=-1).done
        assert entry.model is not None
        client.generate("ember", "Hi", options={"num_predict": 1}, keep_alive=0.1)
        wait_until(lambda: entry.model is None)
        assert seconds(-1) == float("inf") == seconds("-1m")


def test_a_model_is_fetched_and_offered(monkeypatch, tmp_path: Path):
    from akunu.loading.finding import find_model
    from akunu.server import ollama_models

    def fetched(path, *, progress=True):
        assert path == "someone/small-GGUF"
        progress(1, 2)
        return find_model("ember")

    monkeypatch.setattr(ollama_models, "FoundModel", fetched)
    with serving(EMBER) as served:
        client = ollama.Client(host=served.url, verify=False)
        statuses = [part.status for part in client.pull("someone/small-GGUF", stream=True)]
        assert (statuses[0], statuses[-1]) == ("pulling manifest", "success")
        assert "someone/small-GGUF" in [model.model for model in client.list().models]
        assert client.pull("ember").status == "success"


def test_where_there_are_keys_only_an_admin_fetches(tmp_path: Path):
    from akunu.server import Settings
    from akunu.server.auth import Keys

    file = tmp_path / "keys"
    file.write_text("sesame-sesame alice\n")
    with serving(EMBER, settings=Settings(keys=Keys.from_file(file))) as served:
        headers = {"authorization": "Bearer sesame-sesame"}
        assert served.http.get("/api/tags").status_code == 401
        assert served.http.get("/api/tags", headers=headers).status_code == 200
        denied = served.http.post("/api/pull", json={"model": "x/y"}, headers=headers)
        assert denied.status_code == 403
        kept = {"model": "ember", "messages": [], "keep_alive": 0}
        assert served.http.post("/api/chat", json=kept, headers=headers).status_code == 200
        assert served.ember.model is not None


def test_the_client_for_javascript_works(served):
    """In a folder with the npm package `ollama`, which NODE_PATH names."""
    node, modules = shutil.which("node"), os.environ.get("NODE_PATH", "")
    if node is None or not Path(modules, "ollama").exists():
        missing("NODE_PATH names no folder with the npm package ollama")
    script = Path(__file__).with_name("ollama_client.js")
    ran = subprocess.run([node, script, served.url], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found["chat"] == found["streamed"] == served.ember.model.chat(HELLO, temperature=0).text
    assert found["names"][0] == "ember" and found["call"] == {"city": "Paris"}
    assert found["vectors"] == 2 and "nobody" in found["error"]


def test_ollamas_own_port_is_listened_to_as_well(monkeypatch, capsys):
    from akunu.cli import main
    from akunu.cli.commands import serve as command
    from akunu.server import run

    ports = []
    monkeypatch.setattr(command, "_OLLAMA_PORT", 0)
    monkeypatch.setattr(
        run, "serve", lambda app, *given: ports.extend(s.getsockname()[1] for s in (given[0], *given[2:]))
    )
    assert main(["serve", "-m", "ember", "--port", "0", "--ollama"]) == 0
    assert len(set(ports)) == 2


# -- What others send to it. ---------------------------------------------------------------------------------


def test_sampling_beside_the_options_holds_where_they_say_nothing_else(served):
    """`ollama-ai-provider-v2` 3.6.0 sends the settings of the AI SDK in this way."""
    asked = {"model": "ember", "messages": HELLO, "stream": False, "think": False}
    alone = served.post("/api/chat", **asked, options=GREEDY).json()["message"]["content"]
    for _ in range(3):
        answer = served.post("/api/chat", **asked, temperature=0, top_p=0.9, max_output_tokens=500).json()
        assert answer["message"]["content"] == alone
    short = served.post("/api/chat", **asked, max_output_tokens=3).json()
    assert (short["eval_count"], short["done_reason"]) == (3, "length")
    short = served.post("/api/chat", **asked, max_tokens=3, options={"num_predict": 2}).json()
    assert short["eval_count"] == 2
    short = served.post("/api/generate", model="ember", prompt="Hi", stream=False, max_tokens=2).json()
    assert short["eval_count"] == 2


@pytest.mark.parametrize(
    ("choice", "calls"),
    [
        ("none", 0),
        ("required", 1),
        ({"type": "function", "function": {"name": "get_weather"}}, 1),
        ({"type": "tool", "name": "get_weather"}, 1),
    ],
)
def test_a_choice_of_tools_holds(served, choice, calls):
    asked = {"model": "ember", "messages": HELLO, "stream": False, "tools": [WEATHER], "options": GREEDY}
    answer = served.post("/api/chat", **asked, tool_choice=choice, format="json").json()
    assert len(answer["message"].get("tool_calls", [])) == calls
