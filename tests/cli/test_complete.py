"""`akunu complete`, on a fake model."""

from __future__ import annotations

import json
import math
import sys

import pytest

from akunu.api.results import Stats
from akunu.cli.console import stats_text


def test_prints_only_the_continuation_in_a_pipe(akunu_cli):
    ran = akunu_cli("complete", "once upon")
    assert (ran.status, ran.out, ran.err) == (0, "<once><upon>\n", "")


def test_echo_prints_the_prompt_before_it(akunu_cli):
    assert akunu_cli("complete", "once upon", "--echo").out == "once upon<once><upon>\n"


def test_default_model_is_the_embedded_one(akunu_cli, model):
    akunu_cli("complete", "x")
    name, options = model.loaded[0]
    assert name == "ember"
    assert options == {
        "device": "auto",
        "context": None,
        "threads": None,
        "kv_dtype": "f16",
        "rope_scaling": None,
        "override_kv": (),
    }


def test_loading_options_reach_load(akunu_cli, model):
    given = "--device cpu -c 99 -t 3 --kv-dtype q8_0 --rope-scaling yarn:4 --override-kv a=int:1"
    akunu_cli("complete", "x", "-m", "u/r:Q4_0", *given.split())
    ((name, options),) = model.loaded
    assert name == "u/r:Q4_0"
    assert options == {
        "device": "cpu",
        "context": 99,
        "threads": 3,
        "kv_dtype": "q8_0",
        "rope_scaling": "yarn:4",
        "override_kv": ("a=int:1",),
    }


def test_options_that_are_not_given_are_left_to_the_model(akunu_cli, model):
    akunu_cli("complete", "x")
    assert model.options == [{}]


def test_every_sampling_option_reaches_the_model(akunu_cli, model):
    text = (
        "-n 9 --temperature 0.5 --top-k 7 --top-p 0.8 --min-p 0.1 --typical-p 0.7 --repeat-penalty 1.1 "
        "--presence-penalty 0.2 --frequency-penalty 0.3 --penalty-window 8 --seed 4 --top-n-sigma 1.5 "
        "--xtc-probability 0.4 --xtc-threshold 0.2 --min-keep 2 --dry-multiplier 0.8 --dry-base 1.5 "
        "--dry-allowed-length 3 --dry-penalty-last-n 99 --dry-sequence-breaker \\n --dry-sequence-breaker END"
    )
    biases = ["--logit-bias", "5=-inf", "--logit-bias", "6=1.5"]
    akunu_cli("complete", "x", *text.split(), *biases, "--stop", r"\n", "--stop", "END")
    assert model.options == [
        {
            "max_tokens": 9,
            "temperature": 0.5,
            "top_k": 7,
            "top_p": 0.8,
            "min_p": 0.1,
            "typical_p": 0.7,
            "repeat_penalty": 1.1,
            "presence_penalty": 0.2,
            "frequency_penalty": 0.3,
            "penalty_window": 8,
            "top_n_sigma": 1.5,
            "xtc_probability": 0.4,
            "xtc_threshold": 0.2,
            "min_keep": 2,
            "dry_multiplier": 0.8,
            "dry_base": 1.5,
            "dry_allowed_length": 3,
            "dry_penalty_last_n": 99,
            "dry_sequence_breakers": ["\n", "END"],
            "seed": 4,
            "logit_bias": {5: -math.inf, 6: 1.5},
            "stop": ["\n", "END"],
        }
    ]


def test_zero_is_a_value_and_not_an_absent_option(akunu_cli, model):
    akunu_cli("complete", "x", "--temperature", "0", "--seed", "0", "-n", "0")
    assert model.options == [{"max_tokens": 0, "temperature": 0.0, "seed": 0}]


@pytest.mark.parametrize(("stdin", "prompt"), [("a\nb\n", "a\nb"), ("a\nb", "a\nb"), ("a\n\n", "a\n")])
def test_dash_reads_standard_input_without_the_last_line_end(stdin, prompt, akunu_cli, model):
    assert akunu_cli("complete", "-", stdin=stdin).status == 0
    assert model.prompts == [prompt]


def test_empty_standard_input_is_wrong_usage(akunu_cli):
    ran = akunu_cli("complete", "-")
    assert ran.status == 2
    assert "standard input is empty" in ran.err


def test_stats_go_to_standard_error(akunu_cli):
    ran = akunu_cli("complete", "a b", "--stats")
    assert ran.out == "<a><b>\n"
    assert ran.err == (
        "[prompt 5 tokens (2 cached), 6.0 tok/s | first token 250.00 ms | generated 2 tokens, 1.5 tok/s]\n"
    )


def test_what_did_not_happen_has_no_speed():
    nothing = Stats(9, 9, 0, 0.0, 0.0, 0.0, 0.0, 0.0)
    assert stats_text(nothing) == "[prompt 9 tokens (9 cached), - | first token - | generated 0 tokens, -]"


def test_json_is_one_object(akunu_cli):
    ran = akunu_cli("complete", "é b", "--json")
    found = json.loads(ran.out)
    assert found["text"] == "<é><b>"
    assert found["ids"] == [0, 1]
    assert found["finish_reason"] == "stop"
    assert found["seed"] == 11
    assert found["stats"]["generated_tokens"] == 2
    assert "é" in ran.out


def test_the_model_is_closed(akunu_cli, model):
    akunu_cli("complete", "x")
    assert model.closed


class Stream:
    """A standard output that records what was flushed."""

    encoding = "utf-8"

    def __init__(self) -> None:
        self.pending = ""
        self.flushed: list[str] = []

    def write(self, text: str) -> int:
        self.pending += text
        return len(text)

    def flush(self) -> None:
        if self.pending:
            self.flushed.append(self.pending)
        self.pending = ""

    def isatty(self) -> bool:
        return False


def test_each_piece_is_flushed_as_it_comes(model, monkeypatch):
    from akunu.cli import main

    stream = Stream()
    monkeypatch.setattr(sys, "stdout", stream)
    assert main(["complete", "a b c"]) == 0
    assert stream.flushed == ["<a>", "<b>", "<c>", "\n"]


@pytest.mark.parametrize(("terminal", "shown"), [(True, "\u241b[31mred\ta\n"), (False, "\x1b[31mred\ta\n")])
def test_a_model_cannot_control_the_terminal(terminal, shown, model, monkeypatch):
    from akunu.cli import main

    stream = Stream()
    monkeypatch.setattr(stream, "isatty", lambda: terminal)
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setenv("TERM", "xterm")
    model._answer = lambda _text: ["\x1b[31mred\ta"]
    assert main(["complete", "x", "--no-echo"]) == 0
    assert "".join(stream.flushed) == shown


def test_a_character_that_the_output_cannot_hold_does_not_end_the_run():
    import os
    import subprocess
    from pathlib import Path

    fake = Path(__file__).with_name("fake_main.py")
    command = [sys.executable, str(fake), "0", "complete", "é x"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, env=environment, timeout=60)
    assert (done.returncode, done.stdout) == (0, b"<?><x>\n")
