"""`import akunu` is light, and gives every public name."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

import akunu

HEAVY = {
    "numpy",
    "jinja2",
    "tokenizers",
    "rich",
    "huggingface_hub",
    "click",
    "akunu._core",
    "akunu.api.model",
}


def modules_after(statement: str) -> set[str]:
    code = f"import sys; before = set(sys.modules); {statement}; print(sorted(set(sys.modules) - before))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(ast.literal_eval(result.stdout))


def test_import_is_light():
    loaded = modules_after("import akunu")
    assert "akunu.base.errors" in loaded
    assert not loaded & HEAVY


def test_loading_needs_no_terminal_or_network_libraries():
    assert not modules_after("from akunu import load") & {
        "rich",
        "huggingface_hub",
        "click",
        "tokenizers",
        "jinja2",
    }


def test_a_server_begins_to_load_before_it_imports_what_serves():
    loaded = modules_after("import akunu.cli.commands.serve, akunu.server.preloading, akunu.server.listening")
    assert "akunu.loading.load" in loaded
    assert not loaded & {"uvicorn", "starlette", "prometheus_client", "akunu.api.model", "akunu.server.app"}


def test_a_server_of_texts_needs_nothing_of_speech_before_it_answers():
    loaded = modules_after("import akunu.server.app, akunu.server.run")
    assert not loaded & {"akunu.speech.whisper_model", "akunu.audio", "llguidance", "tomllib"}


def test_the_model_class_needs_no_terminal_or_network_libraries():
    assert not modules_after("from akunu import Model") & {"rich", "huggingface_hub", "click"}


@pytest.mark.parametrize("name", [name for name in akunu.__all__ if name != "devices"])
def test_every_public_name_exists(name):
    assert getattr(akunu, name) is not None
    assert name in dir(akunu)


def test_dir_shows_the_public_names_alone():
    assert dir(akunu) == sorted(akunu.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        akunu.nope  # noqa: B018


def test_the_lazy_names_are_the_public_ones():
    eager = {name for name in akunu.__all__ if name.endswith("Error")} | {"__version__"}
    assert set(akunu._HOME) | eager == set(akunu.__all__)


def test_python_m_is_the_command():
    result = subprocess.run([sys.executable, "-m", "akunu", "--help"], capture_output=True, text=True)
    assert result.returncode == 0
    assert "complete" in result.stdout
    result = subprocess.run([sys.executable, "-m", "akunu", "no-such"], capture_output=True, text=True)
    assert result.returncode != 0
