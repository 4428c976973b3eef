"""`akunu models`: what the cache holds, and how it goes."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from akunu.cli.bench.command import command as bench
from akunu.cli.group import akunu as group
from akunu.files.hub import download as hub


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    """A cache with two models of one repository and one of another."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    for repo, file, size in (
        ("me--a", "a-Q4_0.gguf", 1536),
        ("me--a", "a-Q8_0.gguf", 10),
        ("you--b", "b.gguf", 20),
    ):
        snapshot = tmp_path / f"models--{repo}" / "snapshots" / ("0" * 40)
        snapshot.mkdir(parents=True, exist_ok=True)
        (snapshot / file).write_bytes(bytes(size))
    return tmp_path


@pytest.mark.parametrize("args", [["models"], ["models", "list"]])
def test_models_are_listed_with_their_sizes(args, akunu_cli, cache):
    ran = akunu_cli(*args)
    assert ran.status == 0
    lines = [line.split() for line in ran.out.splitlines()]
    assert [line[0] for line in lines[1:]] == ["me/a:a-Q4_0.gguf", "me/a:a-Q8_0.gguf", "you/b:b.gguf"]
    assert lines[1][1:3] == ["1.5", "KiB"]
    assert ran.err == "[1.5 KiB in all; akunu models available lists well-known models]\n"


def test_the_list_for_programs_has_bytes(akunu_cli, cache):
    found = json.loads(akunu_cli("models", "list", "--json").out)
    assert [(model["name"], model["bytes"]) for model in found][2] == ("you/b:b.gguf", 20)
    assert Path(found[2]["path"]).exists()


def test_an_empty_cache_says_how_to_fill_it(akunu_cli, cache, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(cache / "none"))
    ran = akunu_cli("models")
    assert (ran.status, ran.out) == (0, "")
    assert "akunu chat " in ran.err
    assert json.loads(akunu_cli("models", "list", "--json").out) == []


def test_a_model_is_removed_and_the_others_stay(akunu_cli, cache):
    ran = akunu_cli("models", "remove", "me/a:Q4_0", "you/b", "--yes")
    assert (ran.status, ran.err) == (0, "")
    assert ran.out == "me/a:Q4_0: 1.5 KiB freed\nyou/b: 20 B freed\n"
    assert [path.name for path in cache.rglob("*.gguf")] == ["a-Q8_0.gguf"]


@pytest.mark.parametrize(
    ("typed", "meant"), [("rm", "remove"), ("ls", "list"), ("remov", "remove"), ("pull", "fetch")]
)
def test_a_subcommand_is_guessed(typed, meant, akunu_cli):
    ran = akunu_cli("models", typed, "me/a")
    assert (ran.status, ran.out) == (2, "")
    assert f"no command {typed!r}; did you mean {meant}?" in ran.err


def test_nothing_is_removed_without_a_yes(akunu_cli, cache):
    ran = akunu_cli("models", "remove", "me/a")
    assert ran.status == 2
    assert "--yes" in ran.err
    assert len(list(cache.rglob("*.gguf"))) == 3


@pytest.mark.parametrize(("answer", "status", "left"), [(b"n\n", 130, 3), (b"y\n", 0, 1)])
def test_on_a_terminal_the_user_is_asked(answer, status, left, cache):
    main_fd, child_fd = pty.openpty()
    os.write(main_fd, answer)
    done = subprocess.run(
        [sys.executable, "-m", "akunu", "models", "remove", "me/a"], stdin=child_fd, capture_output=True,
        text=True, timeout=60, env={**os.environ, "HF_HUB_CACHE": str(cache)},
    )  # fmt: skip
    os.close(child_fd)
    os.close(main_fd)
    assert done.returncode == status
    assert "Remove me/a from the cache" in done.stderr
    assert len(list(cache.rglob("*.gguf"))) == left


def test_a_name_that_is_wrong_is_known_before_anything_is_asked_or_removed(akunu_cli, cache):
    ran = akunu_cli("models", "remove", "me/nosuch")
    assert (ran.status, "no model of 'me/nosuch'" in ran.err) == (1, True)
    ran = akunu_cli("models", "remove", "me/a", "me/nosuch", "--yes")
    assert (ran.status, ran.out) == (1, "")
    assert len(list(cache.rglob("*.gguf"))) == 3


def test_a_model_that_is_not_there_is_an_error_that_lists_those_that_are(akunu_cli, cache):
    ran = akunu_cli("models", "remove", "me/nosuch", "--yes")
    assert ran.status == 1
    assert "you/b:b.gguf" in ran.err


@pytest.mark.parametrize(
    ("args", "incomplete", "found"),
    [
        (["run", "-m"], "me", ["me", "me/a"]),
        (["run", "-m"], "qwen3", ["qwen3", "qwen3", "qwen3-embedding"]),
        (["run", "-m"], "", ["", "ember", "ember-speech", "ember-vision", "me/a", "you/b"]),
        (["run", "--draft"], "you", ["you", "you/b"]),
        (["serve", "-m"], "ember", ["ember", "ember", "ember-speech", "ember-vision"]),
        (["serve", "ember"], "ember", ["ember", "ember", "ember-speech", "ember-vision"]),
        (["chat"], "me", ["me", "me/a"]),
        (["embed"], "me", ["me", "me/a"]),
        (["embed", "me/a"], "no", ["no"]),
        (["run", "a question"], "no", ["no"]),
        ([], "tr", ["transcribe"]),
    ],
)
def test_tab_completes_models_that_are_here_files_and_commands(args, incomplete, found, cache):
    shell = ShellComplete(group, {}, "akunu", "_AKUNU_COMPLETE")
    items = shell.get_completions(args, incomplete)
    assert [item.value for item in items] == found
    files = [item.value for item in items if item.type == "file"]
    assert files == ([incomplete] if args else [])  # the shell looks for them


@pytest.mark.parametrize(
    ("incomplete", "found"),
    [
        ("ember", ["ember", "ember", "ember-speech", "ember-vision"]),
        ("x.gguf,you", ["x.gguf,you/b"]),
        ("x.gguf,zz", []),
    ],
)
def test_tab_completes_the_models_of_the_benchmark(incomplete, found, cache):
    shell = ShellComplete(bench, {}, "akunu-bench", "_AKUNU_BENCH_COMPLETE")
    assert [item.value for item in shell.get_completions(["-m"], incomplete)] == found


@pytest.mark.parametrize(
    ("command", "incomplete", "found"),
    [("pull", "llama", ["llama3.2", "llama3.1"]), ("rm", "", ["me/a", "you/b"]), ("rm", "qwen", [])],
)
def test_tab_completes_what_can_be_fetched_and_removed(command, incomplete, found, cache):
    shell = ShellComplete(group, {}, "akunu", "_AKUNU_COMPLETE")
    assert [item.value for item in shell.get_completions([command], incomplete)] == found


def test_a_name_that_resembles_a_short_one_is_guessed(akunu_cli):
    ran = akunu_cli("pull", "qwen3:4")
    assert ran.status == 2 and "no model 'qwen3:4'; did you mean qwen3:4b" in ran.err


def test_models_are_fetched_and_their_places_printed(akunu_cli, monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(hub, "fetch", lambda name, tower: asked.append(str(name)) or tmp_path / name.file)
    ran = akunu_cli("models", "fetch", "me/a:a.gguf", "https://huggingface.co/you/b/blob/main/b.gguf")
    assert (ran.status, ran.out, ran.err) == (0, f"{tmp_path}/a.gguf\n{tmp_path}/b.gguf\n", "")
    assert asked == ["me/a:a.gguf", "you/b:b.gguf"]
    ran = akunu_cli("models", "fetch", "me/a", "ember")
    assert ran.status == 2 and "'ember' is neither a short name, such as qwen3:4b, nor a model on" in ran.err
    assert asked == ["me/a:a.gguf", "you/b:b.gguf"]
    assert akunu_cli("pull", "qwen3:4b", "me/c").status == 0
    assert asked[2:] == ["Qwen/Qwen3-4B-GGUF:Q4_K_M", "me/c"]


def test_well_known_models_are_listed_with_what_fits(akunu_cli, monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    ran = akunu_cli("models", "available", "coder")
    lines = ran.out.splitlines()
    assert ran.status == 0
    assert lines[0].split()[:3] == ["name", "for", "on"]
    assert len(lines) == 6 and all("qwen2.5-coder:" in line for line in lines[1:])
    assert "fits here" in lines[1]
    rows = json.loads(akunu_cli("models", "available", "--json").out)
    assert {"name", "model", "bytes", "memory_4k", "memory_32k", "fits", "licence"} <= rows[0].keys()
    assert akunu_cli("models", "available", "nonsense").err.startswith("[no short name has nonsense")


def test_what_is_larger_than_the_memory_is_said_to_be(akunu_cli, monkeypatch):
    from akunu import _core

    monkeypatch.setattr(_core, "devices", lambda: [{"id": "cpu", "memory": 4 << 30}])
    rows = {row["name"]: row["fits"] for row in json.loads(akunu_cli("models", "available", "--json").out)}
    assert rows["qwen3:4b"] and not rows["qwen3:8b"]


def test_a_search_asks_the_hub(akunu_cli, monkeypatch):
    found = [{"name": "me/a-GGUF", "downloads": 12345, "likes": 7, "updated": "2026-11-01"}]
    asked = []
    monkeypatch.setattr(hub, "search", lambda words, limit: asked.append((words, limit)) or found)
    assert "me/a-GGUF" in (out := akunu_cli("models", "search", "qwen3", "coder", "-n", "3").out)
    assert "12,345" in out
    assert asked == [("qwen3 coder", 3)]
    assert json.loads(akunu_cli("models", "search", "x", "--json").out) == found
    monkeypatch.setattr(hub, "search", lambda words, limit: [])
    assert "no GGUF models for x y" in akunu_cli("models", "search", "x", "y").err


def test_other_programs_names_of_commands(akunu_cli, cache):
    assert akunu_cli("rm", "you/b", "--yes").out.startswith("you/b: ")
    assert "general.architecture" in akunu_cli("show", "ember").out
    assert akunu_cli("list").out == akunu_cli("models").out != ""
    assert "list is short for models list, pull is short for models" in " ".join(
        akunu_cli("--help").out.split()
    )
