"""The arguments that constrain an output are checked before a model is asked."""

from __future__ import annotations

import pytest

from akunu import InvalidArgumentError, StructuralTag, Tag
from akunu.api.options import resolve
from akunu.chat.structured.structure import Structure, structure_of
from akunu.files.describe.sampling import Sampling

TAG = Tag("<call>", {"type": "object"}, "</call>")


def structure(**options: object) -> Structure | None:
    return resolve(options, Sampling(), 100).structure


def test_without_them_an_output_has_no_constraint() -> None:
    assert structure() is None
    assert structure(json=False, schema=None) is None


def test_a_schema_is_a_mapping_or_json_text_and_its_order_counts() -> None:
    schema = {"type": "object", "properties": {"b": {}, "a": {}}}
    assert structure(schema=schema) == structure(schema='{"type":"object","properties":{"b":{},"a":{}}}')
    assert structure(schema=schema) != structure(schema={"properties": {"a": {}, "b": {}}, "type": "object"})


def test_equal_constraints_are_equal_and_others_are_not() -> None:
    assert structure(choice=["a", "b"]) == structure(choice=("a", "b")) != structure(choice=["b", "a"])
    assert structure(structural_tag=StructuralTag((TAG,))) == structure(structural_tag=StructuralTag((TAG,)))
    assert structure(structural_tag=StructuralTag((TAG,))) != structure(
        structural_tag=StructuralTag((TAG,), required=True)
    )


@pytest.mark.parametrize(
    "options, message",
    [
        ({"json": True, "regex": "a"}, "json and regex exclude each other"),
        ({"schema": "{"}, "schema: the text is not JSON"),
        pytest.param({"schema": "[" * 100_000}, "schema: the text is not JSON: maximum", id="deep"),
        ({"schema": ["object"]}, "schema: expected a JSON schema"),
        ({"schema": {"const": {1, 2}}}, "schema: it is not JSON"),
        ({"json": {"type": "object"}}, "json: expected True or False"),
        ({"regex": 3}, "regex: expected a text"),
        ({"grammar": " "}, "grammar: expected a text"),
        ({"choice": "yes"}, "choice: expected a list of texts"),
        ({"choice": []}, "choice: expected a list of texts"),
        ({"choice": ["a", ""]}, "choice: expected a list of texts"),
        ({"choice": ["a", "\ud83d"]}, "choice: half of a surrogate pair is no character"),
        ({"regex": "\ud83d"}, "regex: half of a surrogate pair"),
        ({"schema": '{"const": "\\ud83d"}'}, "schema: half of a surrogate pair"),
        (
            {"structural_tag": StructuralTag((Tag("\ud83d", None, "x"),))},
            "structural_tag: half of a surrogate",
        ),
        ({"structural_tag": {"tags": []}}, "structural_tag: expected an akunu.StructuralTag"),
    ],
    ids=str,
)
def test_a_wrong_argument_is_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        structure(**options)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: StructuralTag(()), "it has no tags"),
        (lambda: StructuralTag((Tag("", None, "x"),)), "begin is empty, and tags"),
        (lambda: StructuralTag((TAG,), ("<tool",)), "'<call>' begins with none of the triggers '<tool'"),
        (lambda: StructuralTag((TAG,), ("<call", "<x")), "no tag begins with the trigger '<x'"),
        (lambda: StructuralTag((TAG,), after=""), "after is empty"),
        (lambda: StructuralTag(5), "tags: expected a tuple of Tag, got 5"),
        (lambda: StructuralTag(iter([])), "tags: expected a tuple of Tag"),
        (lambda: StructuralTag(("<call>",)), "tags: expected a tuple of Tag"),
        (lambda: StructuralTag((TAG,), "<call"), "triggers: expected a tuple of str, got '<call'"),
        (lambda: StructuralTag((Tag(None, None, "x"),), required=True), "expected texts as begin and end"),
    ],
)
def test_a_wrong_structural_tag_is_refused(make, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        make()


def test_lists_of_tags_and_triggers_are_tuples() -> None:
    assert StructuralTag([TAG], ["<call"]) == StructuralTag((TAG,), ("<call",))


def test_the_schemas_true_and_false_are_all_and_nothing() -> None:
    for value in (False, "false"):
        with pytest.raises(InvalidArgumentError, match="schema: false accepts nothing"):
            structure_of({"schema": value})
    assert structure_of({"schema": True}) == structure_of({"schema": "true"})
