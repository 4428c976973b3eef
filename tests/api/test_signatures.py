"""What `help`, `inspect` and type checkers see of the public API."""

from __future__ import annotations

import dataclasses
import inspect
import pydoc
import typing

import pytest

import akunu
from akunu.api.chat_options import ChatOptions
from akunu.api.chatting import Chatting
from akunu.api.options import GenerationOptions

GENERATING = ("generate", "stream", "chat", "stream_chat", "agenerate", "astream", "achat", "astream_chat")
CHATTING = tuple(name for name in GENERATING if "chat" in name)
CLASSES = [Chatting, *(value for name in akunu.__all__ if inspect.isclass(value := getattr(akunu, name)))]


def functions() -> list[typing.Any]:
    found = [akunu.load]
    for owner in CLASSES:
        for name, member in vars(owner).items():
            if isinstance(member, property):
                member = member.fget
            member = getattr(member, "__func__", member)
            if inspect.isfunction(member) and (name == "__init__" or not name.startswith("_")):
                found.append(member)
    return found


def test_every_public_function_has_type_hints_that_resolve():
    for function in functions():
        hints = typing.get_type_hints(function)
        parameters = inspect.signature(function).parameters
        assert set(hints) - {"return"} <= set(parameters), function.__qualname__
        assert "return" in hints, function.__qualname__


def test_no_public_function_hides_its_options():
    for function in functions():
        parameters = inspect.signature(function).parameters.values()
        hidden = [p.name for p in parameters if "Unpack" in str(p.annotation)]
        assert not hidden, function.__qualname__
        assert "**options" not in (function.__doc__ or ""), function.__qualname__


def test_every_public_class_has_type_hints_that_resolve():
    for owner in CLASSES:
        typing.get_type_hints(owner)


@pytest.mark.parametrize("name", GENERATING)
def test_the_arguments_of_a_generation_are_spelled_out(name):
    function = getattr(akunu.Model, name)
    parameters = inspect.signature(function).parameters
    hints = typing.get_type_hints(function)
    for option, kind in typing.get_type_hints(ChatOptions if name in CHATTING else GenerationOptions).items():
        assert parameters[option].kind is inspect.Parameter.KEYWORD_ONLY
        assert parameters[option].default is None
        assert parameters[option].annotation == hints[option] == kind
        assert f"{option} : " in function.__doc__
    assert not any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    assert "**options" not in function.__doc__


def test_type_checkers_know_what_a_task_loads():
    names = ("Model", "EmbeddingModel", "WhisperModel")  # which are not imported before one is loaded
    places = {name: getattr(akunu, name) for name in names}
    found = {}
    for one in typing.get_overloads(akunu.load):
        hints = typing.get_type_hints(one, localns=places)
        found |= dict.fromkeys(typing.get_args(hints["task"]) or (None,), hints["return"])
        assert set(inspect.signature(one).parameters) <= set(inspect.signature(akunu.load).parameters)
    vectors, speech = akunu.EmbeddingModel, akunu.WhisperModel
    assert found == {"embed": vectors, "rerank": vectors, "transcribe": speech, None: akunu.Model}


def test_help_explains_each_argument_and_field():
    text = pydoc.plain(pydoc.render_doc(akunu.Model))
    assert "max_tokens: int | None = None" in text
    assert "Keep the `top_k` most likely tokens; 0 or -1: off." in text
    for owner in (akunu.Completion, akunu.Stats, akunu.TokenLogprob, akunu.Memory):
        doc = inspect.getdoc(owner)
        for field in dataclasses.fields(owner):
            assert f"\n{field.name} : " in doc, (owner, field.name)
    for name in ChatOptions.__annotations__:
        owner = akunu.GenerationOptions if name in GenerationOptions.__annotations__ else ChatOptions
        assert f"\n{name} : " in inspect.getdoc(owner)
