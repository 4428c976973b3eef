"""`akunu launch`: what each program is told, and the server that lives as long as it does."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import tomllib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path

import pytest

from akunu.cli.programs import PROGRAMS, Target

SPY = """#!{python}
import json, os, sys, time
if sys.argv[1:2] == ["auth"]:
    json.dump(sys.argv[1:], open({told!r} + ".auth", "w"))
    sys.exit(0)
named = [each for each in (*sys.argv[1:], *os.environ.values()) if "akunu-launch-" in each]
named = [each.partition('="')[2].rstrip('"') or each for each in named]
files = filter(os.path.isfile, named)
texts = {{os.path.basename(each): open(each).read() for each in files}}
said = {{"arguments": sys.argv[1:], "environment": dict(os.environ), "files": texts}}
json.dump(said, open({told!r}, "w"))
if "stay" in sys.argv:
    time.sleep(600)
sys.exit(3)
"""


class Server:
    """A server that runs already, and that has one model."""

    def __init__(self) -> None:
        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None: ...

            def do_GET(self) -> None:
                allowed = self.headers.get("Authorization") == "Bearer local"
                known = {"context": 20000, "thinking": False, "parameters": 1_500_000_000}
                seeing = {"parameters": 9_000_000_000, "images": True}
                cards = [{"id": "small", **known}, {"id": "large"}, {"id": "seer", **seeing}]
                body = json.dumps({"data": cards}).encode()
                self.send_response(200 if allowed else 401)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.http.server_port}"


@pytest.fixture
def server():
    server = Server()
    yield server
    server.http.shutdown()
    server.http.server_close()


@pytest.fixture
def spy(tmp_path, monkeypatch) -> Path:
    """Programs that write down what they were told, in the place of the real ones."""
    told = tmp_path / "told.json"
    for program in PROGRAMS.values():
        file = tmp_path / "bin" / program.executable
        file.parent.mkdir(exist_ok=True)
        file.write_text(SPY.format(python=sys.executable, told=str(told)))
        file.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-the-users-own")
    return told


def test_claude_is_told_by_its_environment(akunu_cli, server, spy):
    ran = akunu_cli("launch", "claude", "--url", server.url + "/v1/", "--", "-p", "hello")
    assert ran.status == 3, ran.err  # the program's own
    told = json.loads(spy.read_text())
    environment = told["environment"]
    assert told["arguments"] == ["-p", "hello"]
    assert environment["ANTHROPIC_BASE_URL"] == server.url
    assert environment["ANTHROPIC_MODEL"] == environment["ANTHROPIC_DEFAULT_HAIKU_MODEL"] == "small"
    assert environment["ANTHROPIC_AUTH_TOKEN"] == "local" and "ANTHROPIC_API_KEY" not in environment
    assert environment["CLAUDE_CODE_MAX_CONTEXT_TOKENS"] == "33000"  # less the margin and an answer: 15000
    assert environment["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] == "5000"
    for limit in ("API_TIMEOUT_MS", "CLAUDE_STREAM_IDLE_TIMEOUT_MS"):
        assert int(environment[limit]) > 600_000  # in which a processor may read no long prompt


def test_claude_is_told_no_window_of_its_compacting_that_it_would_not_take():
    def windows(context):
        told = PROGRAMS["claude"].environment(Target("http://127.0.0.1:1", "m", "k", context))
        return told.get("CLAUDE_CODE_AUTO_COMPACT_WINDOW"), told.get("CLAUDE_CODE_MAX_CONTEXT_TOKENS")

    assert windows(None) == (None, None)
    assert windows(32768) == (None, "45768")
    assert windows(131072) == ("131072", "144072")


def test_codex_is_told_by_arguments_that_are_toml(akunu_cli, server, spy):
    assert akunu_cli("launch", "codex", "--url", server.url, "-m", "large").status == 3
    told = json.loads(spy.read_text())
    settings = [
        value for flag, value in zip(told["arguments"], told["arguments"][1:], strict=False) if flag == "-c"
    ]
    config = tomllib.loads("\n".join(settings))
    provider = config["model_providers"][config["model_provider"]]
    assert provider["base_url"] == f"{server.url}/v1" and provider["wire_api"] == "responses"
    assert told["environment"][provider["env_key"]] == "local"
    assert provider["stream_idle_timeout_ms"] > 300_000
    assert told["arguments"][-2:] == ["-m", "large"]
    assert not {"model_context_window", "model_reasoning_effort"} & config.keys()  # nothing is known of it


def codex_config(told: Path) -> dict:
    """The settings that Codex was given; `instructions` is the text of the file that they name."""
    said = json.loads(told.read_text())
    arguments = said["arguments"]
    settings = [value for flag, value in pairwise(arguments) if flag == "-c"]
    config = tomllib.loads("\n".join(settings))
    return {**config, "instructions": said["files"].get("instructions.md")}


def test_codex_offers_a_small_model_its_shell_alone(akunu_cli, server, spy):
    ran = akunu_cli("launch", "codex", "--url", server.url)
    config = codex_config(spy)
    assert config["features"] == {"goals": False, "multi_agent": False, "view_image": False}
    assert config["web_search"] == "disabled" and config["skills"] == {"include_instructions": False}
    assert config["tools"] == {"experimental_request_user_input": {"enabled": False}}
    assert config["model_instructions_file"].endswith("/instructions.md")
    examples = [json.loads(line) for line in config["instructions"].splitlines() if line.startswith("{")]
    assert {each["name"] for each in examples} == {"exec_command"} and len(examples) == 4
    assert "small at" in ran.err and "few tools: --all-tools offers all]" in ran.err


@pytest.mark.parametrize(
    ("options", "few"),
    [
        (["-m", "small", "--all-tools"], False),
        (["-m", "large"], False),  # a server that does not tell how large it is
        (["-m", "seer"], False),
        (["-m", "seer", "--few-tools"], True),
    ],
)
def test_the_tools_of_codex_are_the_users_choice(options, few, akunu_cli, server, spy):
    ran = akunu_cli("launch", "codex", "--url", server.url, *options)
    config = codex_config(spy)
    assert ("model_instructions_file" in config) == ("features" in config) == few
    assert ("few tools" in ran.err) == few
    assert not few or "view_image" not in config["features"]  # it reads images


def test_a_user_s_own_settings_of_codex_come_last(akunu_cli, server, spy):
    akunu_cli("launch", "codex", "--url", server.url, "--", "-c", "features.goals=true")
    assert json.loads(spy.read_text())["arguments"][-2:] == ["-c", "features.goals=true"]


def test_codex_is_told_the_context_and_that_the_model_does_not_think(
    akunu_cli, server, spy, monkeypatch, tmp_path
):
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    (tmp_path / "config.toml").write_text('model_reasoning_effort = "high"\n')
    ran = akunu_cli("launch", "codex", "--url", server.url)
    arguments = json.loads(spy.read_text())["arguments"]
    assert "model_context_window=20000" in arguments and 'model_reasoning_effort="none"' in arguments
    assert "small cannot think first: model_reasoning_effort = 'high' is left out" in ran.err
    (tmp_path / "config.toml").write_text("model = 'x'\n")
    assert "is left out" not in akunu_cli("launch", "codex", "--url", server.url).err


def test_opencode_is_told_by_a_config(akunu_cli, server, spy):
    assert akunu_cli("launch", "opencode", "--url", server.url, "--", "run", "hi").status == 3
    told = json.loads(spy.read_text())
    config = json.loads(told["environment"]["OPENCODE_CONFIG_CONTENT"])
    provider, model = config["model"].split("/")
    assert config["provider"][provider]["options"]["baseURL"] == f"{server.url}/v1"
    assert config["provider"][provider]["options"]["timeout"] > 300_000
    assert config["provider"][provider]["models"][model]["limit"] == {"context": 20000, "output": 5000}
    assert told["arguments"] == ["run", "hi"]


def test_pi_is_told_by_an_extension(akunu_cli, server, spy):
    assert akunu_cli("launch", "pi", "--url", server.url, "--", "-p", "hi").status == 3
    told = json.loads(spy.read_text())
    assert told["arguments"][2:] == ["--provider", "akunu", "--model", "small", "-p", "hi"]
    provider = json.loads(told["files"]["akunu.ts"].partition("'akunu', ")[2].rstrip(")\n"))
    assert provider["baseUrl"] == f"{server.url}/v1"
    assert told["environment"][provider["apiKey"]] == "local"
    assert [(each["id"], each["contextWindow"]) for each in provider["models"]] == [("small", 20000)]


def test_qwen_code_is_told_by_its_environment(akunu_cli, server, spy):
    assert akunu_cli("launch", "qwen", "--url", server.url).status == 3
    told = json.loads(spy.read_text())
    assert told["environment"]["OPENAI_BASE_URL"] == f"{server.url}/v1"
    assert told["arguments"] == ["--auth-type", "openai", "-m", "small"]
    settings = json.loads(told["files"]["settings.json"])
    assert settings["model"]["generationConfig"] == {"contextWindowSize": 20000}


def test_cline_is_set_up_in_a_folder_of_its_own(akunu_cli, server, spy):
    assert akunu_cli("launch", "cline", "--url", server.url, "--", "hi").status == 3
    setup = json.loads(Path(f"{spy}.auth").read_text())
    arguments = json.loads(spy.read_text())["arguments"]
    assert setup[setup.index("-b") + 1] == f"{server.url}/v1" and setup[setup.index("-m") + 1] == "small"
    folder = arguments[arguments.index("--data-dir") + 1]
    assert setup[setup.index("--data-dir") + 1] == folder and not Path(folder).parent.exists()


def test_aider_is_told_the_sizes_of_the_model(akunu_cli, server, spy):
    assert akunu_cli("launch", "aider", "--url", server.url).status == 3
    told = json.loads(spy.read_text())
    assert told["environment"]["OPENAI_API_BASE"] == f"{server.url}/v1"
    assert told["arguments"][:2] == ["--model", "openai/small"]
    (known,) = json.loads(told["files"]["models.json"]).items()
    assert known[0] == "openai/small" and known[1]["max_input_tokens"] == 20000


def test_continue_is_told_by_a_configuration(akunu_cli, server, spy):
    assert akunu_cli("launch", "continue", "--url", server.url).status == 3
    told = json.loads(spy.read_text())
    assert told["arguments"][0] == "--config"
    (model,) = json.loads(told["files"]["config.yaml"])["models"]
    assert (model["model"], model["apiBase"]) == ("small", f"{server.url}/v1")
    assert model["defaultCompletionOptions"] == {"contextLength": 20000, "maxTokens": 5000}


def test_a_name_with_quotes_stays_one_name():
    target = Target("http://127.0.0.1:1", 'a "b" / c', "k")
    for program in PROGRAMS.values():
        said = [*program.arguments(target), *program.setup(target), *program.files(target).values()]
        said += [value or "" for value in program.environment(target).values()]
        assert any(target.model in text or json.dumps(target.model)[1:-1] in text for text in said)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["launch", "claude"], "which model? -m MODEL names it"),
        (
            ["launch", "emacs"],
            "'emacs' is not one of 'claude', 'codex', 'opencode', 'pi', 'qwen', 'cline', 'aider', 'continue'",
        ),
        (
            ["launch", "claude", "--url", "http://127.0.0.1:1"],
            "no server of models answers there (Connection",
        ),
        (
            ["launch", "claude", "--url", "localhost"],
            "--url: found 'localhost', expected an address such as http",
        ),
        (
            ["launch", "claude", "--url", "http://127.0.0.1:1", "-c", "99"],
            "--context is for a server that is started",
        ),
        (["launch", "claude", "-m", "ember", "--few-tools"], "--few-tools is for codex; Claude Code is left"),
    ],
)
def test_a_launch_that_cannot_be_says_why(args, message, akunu_cli, spy):
    ran = akunu_cli(*args)
    assert ran.status != 0 and message in ran.err
    assert not spy.exists()


def test_a_model_or_a_key_that_the_server_does_not_know(akunu_cli, server, spy):
    assert (
        "has no model 'huge'; it has small, large, seer"
        in akunu_cli("launch", "claude", "--url", server.url, "-m", "huge").err
    )
    assert (
        "is --api-key right?" in akunu_cli("launch", "claude", "--url", server.url, "--api-key", "wrong").err
    )


def test_a_program_that_is_not_there_says_how_to_get_it(akunu_cli, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    ran = akunu_cli("launch", "codex", "-m", "ember")
    assert ran.status == 1
    assert "Codex is not installed: no 'codex' is on the PATH; npm install -g @openai/codex" in ran.err


def test_a_server_is_started_for_the_program_and_ends_with_it(spy):
    command = [sys.executable, "-m", "akunu", "launch", "claude", "-m", "ember", "--", "go"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 3, ran.stderr
    url = json.loads(spy.read_text())["environment"]["ANTHROPIC_BASE_URL"]
    port = int(url.rsplit(":", 1)[1])
    listening = (
        {
            int(line.split()[1].split(":")[1], 16)
            for line in Path("/proc/net/tcp").read_text().splitlines()[1:]
            if line.split()[3] == "0A"
        }
        if Path("/proc/net/tcp").exists()
        else set()
    )
    assert port not in listening


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_a_closed_terminal_and_a_supervisor_end_the_server_too(spy, number):
    command = [sys.executable, "-m", "akunu", "launch", "claude", "-m", "ember", "--", "stay"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as launch:
        deadline = time.monotonic() + 120
        while not spy.exists() or not spy.read_text().endswith("}"):
            assert launch.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        url = json.loads(spy.read_text())["environment"]["ANTHROPIC_BASE_URL"]
        launch.send_signal(number)
        assert launch.wait(60) == 128 + number
    host, port = url.removeprefix("http://").split(":")
    with socket.socket() as probe, pytest.raises(ConnectionRefusedError):
        probe.connect((host, int(port)))


def test_a_server_that_cannot_load_a_model_says_why_once(akunu_cli, caplog):
    ran = akunu_cli("serve", "-m", "nosuch", "--port", "0")
    assert ran.status == 1
    (line,) = ran.err.splitlines()
    assert line.startswith("akunu: error: model: nosuch cannot be loaded: no model 'nosuch'; expected")
    assert caplog.messages == []  # which the server's log would print


def test_models_of_a_server_may_be_arguments(akunu_cli):
    ran = akunu_cli("serve", "one=ember", "-m", "one=ember", "--port", "0")
    assert (ran.status, ran.err) == (2, "akunu: error: models: two have the name 'one'\n")


def test_why_a_server_does_not_start_is_the_last_line_of_its_log(akunu_cli, spy):
    ran = akunu_cli("launch", "claude", "-m", "ember", "-c", "99999")
    assert ran.status == 1
    *_, last = ran.err.splitlines()
    assert last.startswith(
        "akunu: error: the server did not start: --context: it fits no model here: ember: 99999"
    )
