"""Structural tags: free text up to a trigger, constrained up to the tag's end, and so on."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from akunu import InvalidArgumentError, StructuralTag, Tag
from akunu.chat.structured.constraint import TaggedText
from akunu.chat.structured.structure import structure_of

from .models import ember, hostile

ARGUMENTS = {
    "type": "object",
    "properties": {"x": {"type": "boolean"}, "s": {"type": "string", "maxLength": 4}},
    "required": ["x", "s"],
    "additionalProperties": False,
}
CALL = Tag('<tool>{"name": "f", "arguments": ', ARGUMENTS, "}</tool>")
OTHER = Tag("<tool>other", None, "</tool>")


def write(tag: StructuralTag, script: str, rng: np.random.Generator, model=None) -> tuple[str, TaggedText]:
    """A text that says `script` as long as it may, and then anything that is allowed, 200 tokens at most."""
    model = model or ember()
    view = model._compiler._view
    state = model._compiler.constraint(structure_of({"structural_tag": tag}))
    text, script_ids = b"", view.encode(script)
    for _ in range(200):
        if state.finished:
            break
        forced = state.forced()
        if not forced:
            mask = state.mask()
            every = view.mask_without((), ends=True) if mask is None else mask
            allowed = np.flatnonzero(np.unpackbits(every.view(np.uint8), bitorder="little"))
            assert allowed.size
            wanted = script_ids.pop(0) if script_ids else int(rng.choice(allowed))
            forced = [wanted if wanted in allowed else int(rng.choice(allowed))]
        if forced[0] in model.tokenizer.end_of_generation_ids:
            break
        state.advance(forced)
        text += b"".join(view.pieces[i] for i in forced)
    return text.decode("utf-8", "replace"), state


@pytest.mark.parametrize("seed", range(6))
def test_a_trigger_in_free_text_begins_a_tag_and_its_end_ends_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    text, _ = write(StructuralTag((CALL,), ("<tool>",)), "Let me see. <tool>", rng)
    call = re.fullmatch(
        r'Let me see\. <tool>\{"name": "f", "arguments": (\{.*?\})\}</tool>.*', text, re.DOTALL
    )
    assert call
    assert json.loads(call[1]).keys() == {"x", "s"}


@pytest.mark.parametrize("seed", range(6))
def test_without_parallel_the_text_ends_with_its_first_tag(seed: int) -> None:
    tag = StructuralTag((CALL,), ("<tool>",), parallel=False)
    text, state = write(tag, "So: <tool>", np.random.default_rng(seed))
    assert state.finished and text.startswith("So: <tool>") and text.endswith("}</tool>")


@pytest.mark.parametrize("parallel", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_required_tags_are_all_of_the_text(parallel: bool, seed: int) -> None:
    options = {"structural_tag": StructuralTag((CALL,), required=True, parallel=parallel), "seed": seed}
    for model in (ember(), hostile()):
        result = model.generate("Call:", max_tokens=150, **options)
        calls = re.findall(r'<tool>\{"name": "f", "arguments": (\{.*?\})\}</tool>', result.text)
        assert calls and all(json.loads(call).keys() == {"x", "s"} for call in calls)
        if not parallel:
            assert result.finish_reason == "stop" and len(calls) == 1
            assert result.text.startswith("<tool>") and result.text.endswith("</tool>")


@pytest.mark.parametrize("seed", range(4))
def test_a_trigger_that_several_tags_begin_with_leaves_the_choice_between_them(seed: int) -> None:
    rng = np.random.default_rng(seed)
    text, state = write(StructuralTag((CALL, OTHER), ("<tool>",), parallel=False), "<tool>other", rng)
    assert re.match(r"<tool>other", text)
    if state.finished:
        assert text.count("</tool>") == 1 and text.endswith("</tool>")


@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_constrained_before_a_reasoning_block_has_ended_but_the_end(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tag = StructuralTag((Tag("", {"type": "boolean"}, ""),), required=True, parallel=False, after="</think>")
    text, state = write(tag, "I <think> so.</think>", rng)
    assert state.finished and re.fullmatch(r"I <think> so\.</think>(true|false)", text)
    state = ember()._compiler.constraint(structure_of({"structural_tag": tag}))
    mask = np.unpackbits(state.mask().view(np.uint8), bitorder="little").astype(bool)
    size = ember().config.vocab_size
    assert set(np.flatnonzero(~mask[:size])) == set(ember().tokenizer.end_of_generation_ids)


def test_no_token_reaches_beyond_a_mark() -> None:
    """`after` ends in the middle of no token, so what follows it is constrained from its first character."""
    model = ember()
    view = model._compiler._view
    longer = [i for i, piece in enumerate(view.pieces) if piece.startswith(b"e") and len(piece) > 1]
    assert longer
    tag = StructuralTag((Tag("", {"const": 1}, ""),), required=True, after="the")
    state = model._compiler.constraint(structure_of({"structural_tag": tag}))
    state.advance(view.encode("in th"))
    mask = np.unpackbits(state.mask().view(np.uint8), bitorder="little").astype(bool)
    assert not mask[longer].any() and mask[view.encode("e")].all()
    for i, piece in enumerate(view.pieces):
        assert not (b"the" in piece[:-1] and mask[i])


def test_marks_that_are_control_tokens_are_tokens() -> None:
    model = ember()
    control = sorted(model.tokenizer.control_ids - model.tokenizer.end_of_generation_ids)[0]
    name = model.tokenizer.token_text(control)
    view = model._compiler._view
    tag = StructuralTag((Tag(name + "call:", {"const": 7}, name),), (name,), parallel=False)
    state = model._compiler.constraint(structure_of({"structural_tag": tag}))
    state.advance(view.encode(name))  # the same characters, spelt as text
    assert state.forced() == [] and not state.finished
    state.advance([control])
    forced = state.forced()
    assert b"".join(view.pieces[i] for i in forced).endswith(b"call:7\xff" + name.encode())
    assert forced[-1] == control
    state.advance(forced)
    assert state.finished


def test_a_schema_of_a_tag_that_cannot_be_honoured_is_named() -> None:
    with pytest.raises(InvalidArgumentError, match=r"structural_tag: .*uniqueItems"):
        tag = Tag("<a>", {"type": "array", "uniqueItems": True}, "</a>")
        ember().stream("x", structural_tag=StructuralTag((tag,)))


def test_free_text_around_tags_is_the_text_without_them_until_one_begins() -> None:
    plain = ember().generate("Once upon a time", seed=3, max_tokens=40)
    tagged = ember().generate(
        "Once upon a time", seed=3, max_tokens=40, structural_tag=StructuralTag((CALL,), ("<tool>",))
    )
    assert tagged.text == plain.text
