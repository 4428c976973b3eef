"""A conversation that is kept: its messages, what is cached of it, forks and files."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import akunu

SYSTEM = {"role": "system", "content": "Answer briefly, and only what you were asked."}
OPTIONS = {"max_tokens": 12, "temperature": 0}


@pytest.fixture(scope="module")
def model() -> akunu.Model:
    with akunu.load("ember", context=512) as model:
        yield model


@pytest.fixture
def session(model: akunu.Model) -> akunu.Session:
    return model.session([SYSTEM], **OPTIONS)


def said(session: akunu.Session) -> list[str]:
    return [message["role"] for message in session.messages]


def test_answers_are_those_of_the_whole_conversation(model: akunu.Model, session: akunu.Session) -> None:
    messages = [SYSTEM]
    for text in ("Who are you?", "What is 2 + 2?"):
        messages.append({"role": "user", "content": text})
        expected = model.chat(messages, **OPTIONS)
        answer = session.chat(text)
        assert answer.text == expected.text
        messages.append(answer.message)
    assert session.messages == messages
    assert answer.stats.cached_tokens > 0.5 * answer.stats.prompt_tokens


def test_what_was_given_is_not_changed_by_either_side(model: akunu.Model) -> None:
    given = [dict(SYSTEM)]
    session = model.session(given, **OPTIONS)
    given[0]["content"] = "no"
    session.messages.append(SYSTEM)
    session.messages[0]["content"] = "no"
    assert session.messages == [SYSTEM]


def test_a_stream_counts_as_far_as_it_was_read(session: akunu.Session) -> None:
    pieces = session.stream_chat("Tell me a story.", max_tokens=100)
    first = next(pieces)
    assert session.messages[-1]["content"] == str(first)
    session.stream_chat("This one is not read.")
    assert said(session) == ["system", "user", "assistant"]
    assert list(session.stream_chat("Go on.")) and said(session)[3:] == ["user", "assistant"]


def test_a_message_that_is_refused_leaves_the_conversation_as_it_was(session: akunu.Session) -> None:
    session.chat("Who are you?")
    before = session.messages
    with pytest.raises(akunu.ContextLengthError):
        session.chat("and " * 600)
    with pytest.raises(akunu.InvalidArgumentError):
        session.chat("Why?", temperature=-1)
    with pytest.raises(akunu.InvalidArgumentError, match="found generator, expected a mapping"):
        session.chat(part for part in ("Why?",))  # type: ignore[arg-type]
    assert session.messages == before
    assert session.chat({"role": "user", "content": "Why?"}).text


def test_a_fork_goes_its_own_way_and_shares_what_is_cached(session: akunu.Session) -> None:
    session.chat("Who are you?")
    fork = session.fork()
    session.chat("What is 2 + 2?")
    other = fork.chat("What is the capital of France?")
    assert fork.messages[:3] == session.messages[:3] and fork.messages[3:] != session.messages[3:]
    assert other.stats.cached_tokens > 0.5 * other.stats.prompt_tokens


def test_a_saved_conversation_goes_on_where_it_was(
    model: akunu.Model, session: akunu.Session, tmp_path: Path
) -> None:
    session.chat("Who are you? – Wer?")
    file = tmp_path / "talk.json"
    session.save(file)
    session.save(file)  # over the first
    loaded = akunu.Session.load(model, file, **OPTIONS)
    assert loaded.messages == session.messages
    assert loaded.chat("Why?").text == session.chat("Why?").text
    assert [path.name for path in tmp_path.iterdir()] == ["talk.json"]


def test_threads_save_to_one_file_at_a_time(
    model: akunu.Model, session: akunu.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has written its file when the first one moves it to its place."""
    both, fsync = threading.Barrier(2, timeout=20), os.fsync
    monkeypatch.setattr(os, "fsync", lambda number: (both.wait(), fsync(number)))
    file = tmp_path / "talk.json"
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda one: one.save(file), [session, session.fork()]))
    assert akunu.Session.load(model, file).messages == session.messages
    assert [path.name for path in tmp_path.iterdir()] == ["talk.json"]


def test_what_has_no_form_in_json_is_not_saved_and_leaves_the_file(
    model: akunu.Model, session: akunu.Session, tmp_path: Path
) -> None:
    file = tmp_path / "talk.json"
    session.save(file)
    odd = model.session([{**SYSTEM, "image": object()}])
    with pytest.raises(akunu.InvalidArgumentError, match="no form in JSON: Object of type object"):
        odd.save(file)
    assert akunu.Session.load(model, file).messages == [SYSTEM]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "found list, expected a JSON object"),
        ('{"format": "x"}', "found the format 'x', expected 'akunu-session-1'"),
        ('{"format": "akunu-session-1"}', "messages: found None, expected a list"),
        ('{"format": "akunu-session-1", "messages": [], "tools": 4}', "tools: found 4, expected a list"),
        ('{"format": "akunu-session-1", "messages": [1]}', r"messages\[0\]: found int, expected a mapping"),
    ],
    ids=["list", "format", "messages", "tools", "message"],
)
def test_a_file_that_is_no_session_is_refused(
    model: akunu.Model, tmp_path: Path, content: str, message: str
) -> None:
    file = tmp_path / "talk.json"
    file.write_text(content)
    with pytest.raises(akunu.ModelFileError, match=message):
        akunu.Session.load(model, file)


@pytest.mark.parametrize("path", ["talk\0.json", "\ud800"])
def test_a_name_that_no_file_can_have_is_refused(session: akunu.Session, path: str) -> None:
    for use in (session.save, lambda path: akunu.Session.load(session._model, path)):
        with pytest.raises(akunu.InvalidArgumentError, match=r"^path: no file can have the name"):
            use(path)


@pytest.mark.parametrize("path", ["", 3, b"talk.json", None])
def test_a_file_has_a_name(session: akunu.Session, path: Any) -> None:
    with pytest.raises(
        akunu.InvalidArgumentError, match=rf"^path: expected a path, got .*\({type(path).__name__}\)"
    ):
        session.save(path)
    with pytest.raises(akunu.InvalidArgumentError, match=r"^path: expected a path, got"):
        akunu.Session.load(session._model, path)


def test_a_file_that_was_cut_off_is_refused(
    model: akunu.Model, session: akunu.Session, tmp_path: Path
) -> None:
    file = tmp_path / "talk.json"
    session.save(file)
    whole = file.read_bytes()
    for size in range(len(whole)):
        file.write_bytes(whole[:size])
        with pytest.raises(akunu.ModelFileError, match=r"talk\.json: "):
            akunu.Session.load(model, file)
    file.write_bytes(whole)
    assert akunu.Session.load(model, file).messages == [SYSTEM]


def test_a_conversation_in_which_nothing_was_said_is_saved_too(model: akunu.Model, tmp_path: Path) -> None:
    file = tmp_path / "talk.json"
    model.session().save(file)
    loaded = akunu.Session.load(model, file, **OPTIONS)
    assert loaded.messages == loaded.fork().messages == []
    assert loaded.chat("Who are you?").text == model.session(**OPTIONS).chat("Who are you?").text


@pytest.mark.parametrize("messages", ["Be brief.", SYSTEM, 5], ids=["text", "message", "number"])
def test_what_is_no_list_of_messages_begins_no_conversation(model: akunu.Model, messages: object) -> None:
    found = type(messages).__name__
    with pytest.raises(akunu.InvalidArgumentError, match=f"messages: found {found}, expected a list"):
        model.session(messages)


def test_an_argument_that_there_is_not_begins_no_conversation(model: akunu.Model, tmp_path: Path) -> None:
    path = tmp_path / "session.json"
    model.session().save(path)
    for begin in (model.session, lambda **given: akunu.Session.load(model, path, **given)):
        with pytest.raises(
            akunu.InvalidArgumentError, match=r"^unknown argument tool_choise; did you mean tool_choice\?"
        ):
            begin(tool_choise="none")


def test_a_fork_of_a_conversation_whose_answer_is_being_read_ends_it_there(
    model: akunu.Model, session: akunu.Session
) -> None:
    stream = session.stream_chat("Tell me a story.", max_tokens=100)
    begun = str(next(stream))
    fork = session.fork()
    assert list(stream) == [] and stream.completion.finish_reason == "cancelled"
    assert fork.messages == session.messages and fork.messages[-1]["content"] == begun
    assert fork.chat("Go on.").text == session.chat("Go on.").text


def test_a_conversation_whose_pages_were_given_away_goes_on(model: akunu.Model) -> None:
    page = model.stats.page_bytes
    with akunu.load("ember", context=512, parallel=2, kv_memory=17 * page) as small:
        expected, session = model.session([SYSTEM], **OPTIONS), small.session([SYSTEM], **OPTIONS)
        for text in ("Who are you?", "What is 2 + 2?"):
            answer = session.chat(text)
            assert answer.text == expected.chat(text).text
            for i in range(3):
                small.generate([300 + i] * 500, max_tokens=2)
        assert session.fork().chat("Why?").stats.cached_tokens == 0
        assert session.chat("Why?").text == expected.chat("Why?").text
