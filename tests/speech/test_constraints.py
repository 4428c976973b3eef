"""Windows with a constraint: what is heard always follows it, however it is decoded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from akunu import InvalidArgumentError
from akunu.chat.structured import gbnf
from akunu.speech.options import TranscriptionOptions
from akunu.speech.rules import token_rules
from akunu.speech.whisper_model import WhisperModel

from . import tiny
from .babble import Babble
from .scripted import Script, ScriptedModel, said

COMMANDS = ["turn on the light", "turn off", "say so", "stop (now)!"]
FORMS: list[tuple[dict[str, Any], str]] = [
    ({"choice": COMMANDS}, "|".join(map(re.escape, COMMANDS))),
    ({"regex": "[a-c]{3} (on|off)"}, "[a-c]{3} (on|off)"),
    ({"grammar": 'root ::= "say " ("so" | "it")+'}, "say (so|it)+"),
    ({"grammar": 'start: "say " N\nN: /[0-9]{2}/'}, "say [0-9]{2}"),
]
DECODED: list[dict[str, Any]] = [
    {"beam_size": 1, "temperature": 0},
    {"beam_size": 5, "temperature": 0},
    {"beam_size": 1, "temperature": 0.8, "best_of": 3},
    {"beam_size": 1, "temperature": 0, "batch_size": 3, "clip_timestamps": "0,25,25,50"},
]
SOUND = np.random.default_rng(0).normal(0, 0.1, 50 * 16000)


@pytest.fixture(scope="module")
def model() -> Iterator[WhisperModel]:
    with WhisperModel(Babble(), tiny.tokenizer(), "babble", Path("babble.bin")) as found:
        yield found


@pytest.mark.parametrize("decoded", DECODED, ids=["greedy", "beams", "samples", "side by side"])
@pytest.mark.parametrize(("constraint", "expected"), FORMS, ids=["choice", "regex", "gbnf", "lark"])
def test_every_window_follows_the_constraint(
    model: WhisperModel, constraint: dict[str, Any], expected: str, decoded: dict[str, Any]
) -> None:
    found = model.transcribe(SOUND, language="en", no_speech_threshold=None, **constraint, **decoded)
    assert found.segments
    for segment in found.segments:
        assert re.fullmatch(" ?" + f"(?:{expected})", segment.text), segment.text


def test_the_likeliest_of_the_choices_is_heard() -> None:
    model = ScriptedModel(Script(said(" say so"), certainty=0.5))
    with WhisperModel(model, tiny.tokenizer(), "scripted", Path("scripted.bin")) as heard:
        found = heard.transcribe(SOUND[: 16000 * 5], language="en", choice=COMMANDS, temperature=0)
    assert found.text == "say so" and found.segments[0].end == 5


def test_where_nobody_speaks_there_is_no_command() -> None:
    model = ScriptedModel(Script(said(" say so"), silence=0.9))
    with WhisperModel(model, tiny.tokenizer(), "scripted", Path("scripted.bin")) as heard:
        assert not heard.transcribe(SOUND[: 16000 * 5], language="en", choice=COMMANDS).segments


def test_marks_that_are_suppressed_elsewhere_are_said_where_the_constraint_has_them() -> None:
    rules = token_rules(tiny.tokenizer(), TranscriptionOptions(choice=["(a)"]))
    row = np.zeros((1, tiny.VOCAB), np.float32)
    rules.apply(row, [[]])
    pieces = {tiny.tokenizer().decode([i]) for i in np.flatnonzero(np.isfinite(row[0])).tolist()}
    assert pieces == {"(", " "} and rules.table is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"regex": "a", "choice": ["b"]}, "exclude each other"),
        ({"choice": []}, "choice: expected a list of texts"),
        ({"choice": ["a"], "prefix": "b"}, "prefix: not with choice"),
        ({"choice": ["a"], "no_repeat_ngram_size": 2}, "no_repeat_ngram_size: not with choice"),
        ({"regex": "(?=a)"}, "regex: "),
        ({"grammar": "start: NOBODY"}, "grammar: "),
    ],
)
def test_a_constraint_that_cannot_be_honoured_is_refused_at_once(
    model: WhisperModel, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        model.transcribe_stream(SOUND, language="en", **options)


def test_a_constraint_has_no_meaning_live(model: WhisperModel) -> None:
    with pytest.raises(InvalidArgumentError, match="choice: has no meaning"):
        model.listen(iter(()), language="en", choice=["a"])


def test_a_constraint_is_made_ready_once(model: WhisperModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """A window after the first does not read the grammar again."""
    read: list[str] = []
    original = gbnf.lark_of_gbnf
    monkeypatch.setattr(gbnf, "lark_of_gbnf", lambda text: read.append(text) or original(text))
    constraint = 'root ::= "say " ("yes" | "no")+'
    assert len(model.transcribe(SOUND, language="en", grammar=constraint, temperature=0).segments) > 1
    assert read == [constraint]


def test_a_grammar_that_is_nested_too_deeply_is_refused(model: WhisperModel) -> None:
    with pytest.raises(InvalidArgumentError, match="parentheses within each other"):
        model.transcribe(SOUND, language="en", grammar="root ::= " + "(" * 400 + '"a"' + ")" * 400)
