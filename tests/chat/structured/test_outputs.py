"""Outputs follow their constraint, whatever the model would rather write."""

from __future__ import annotations

import json
import random
import re
import threading

import numpy as np
import pytest

from akunu import AkunuError, InvalidArgumentError, StructuralTag, Tag, UnsupportedError
from akunu.api.model import Model
from akunu.api.scheduling import Sequence, planning
from akunu.api.scheduling.drafts import Proposal
from akunu.chat.structured.vocabulary import VocabularyView
from api.fakes import decide_drafts

from .models import ember, hostile

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 3},
    },
    "required": ["name", "age", "tags"],
    "additionalProperties": False,
}
MODELS = [ember, hostile]
SEEDS = range(8)


def ids(make) -> str:
    return make.__name__


@pytest.mark.parametrize("make", MODELS, ids=ids)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_text_is_json_of_its_schema(make, seed: int) -> None:
    result = make().generate("A person:", schema=PERSON, seed=seed, temperature=1.5, top_k=0, max_tokens=200)
    assert result.finish_reason == "stop"
    person = json.loads(result.text)
    assert list(person) == ["name", "age", "tags"] and 0 <= person["age"] <= 150


@pytest.mark.parametrize("make", MODELS, ids=ids)
@pytest.mark.parametrize("seed", SEEDS)
def test_json_mode_gives_an_object_or_is_cut_off(make, seed: int) -> None:
    result = make().generate("JSON:", json=True, seed=seed, max_tokens=60)
    if result.finish_reason == "stop":
        assert isinstance(json.loads(result.text), dict)
    else:
        assert result.finish_reason == "length" and len(result.ids) == 60


@pytest.mark.parametrize("make", MODELS, ids=ids)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_text_matches_its_regular_expression(make, seed: int) -> None:
    result = make().generate("Number:", regex=r"\+[0-9]{2,3} [0-9]{4,8}( ext\.)?", seed=seed, max_tokens=60)
    assert result.finish_reason == "stop"
    assert re.fullmatch(r"\+[0-9]{2,3} [0-9]{4,8}( ext\.)?", result.text)


@pytest.mark.parametrize("make", MODELS, ids=ids)
def test_a_text_is_one_of_its_choices_whatever_characters_they_have(make) -> None:
    choices = [
        "yes",
        "no",
        " maybe",
        'a "quote"\\',
        "line\nline\ttab",
        "é日本\U0001f600",
        "\x00\x7f",
        "a" * 50,
    ]
    found = {
        make().generate("Q:", choice=choices, seed=seed, top_k=0, temperature=9).text for seed in range(40)
    }
    assert found <= set(choices) and len(found) > 3
    for choice in choices:
        assert make().generate("Q:", choice=[choice]).text == choice


def test_there_may_be_thousands_of_choices() -> None:
    choices = [f"word {n}" for n in range(5000)]
    texts = {
        ember().generate("One of them:", choice=choices, seed=seed, temperature=2.0).text for seed in range(4)
    }
    assert texts <= set(choices) and len(texts) > 1


def test_an_object_may_have_thousands_of_properties_none_of_them_required() -> None:
    names = [f"p{n}" for n in range(2000)]
    digit = {"type": "integer", "minimum": 0, "maximum": 9}
    schema = {"type": "object", "properties": dict.fromkeys(names, digit), "additionalProperties": False}
    result = ember().generate("Digits:", schema=schema, max_tokens=200, seed=1)
    assert result.finish_reason == "stop"
    assert json.loads(result.text).keys() <= set(names)


@pytest.mark.parametrize("vocabulary", ["llama-spm", "phi-3", "gpt-2", "qwen2"])
def test_every_kind_of_vocabulary_spells_a_constraint_byte_by_byte(vocabulary: str) -> None:
    model = hostile(vocabulary)
    for text in ("plain", " two  spaces", "é日\U0001f600", '{"a": 1}\n\n', "\u2581", "<s></s><|im_end|>"):
        assert model.generate([5], choice=[text]).text == text
        assert model.generate([model.tokenizer.bos_id or 5], choice=[text], logprobs=0).text == text
    for seed in range(4):
        result = model.generate([5], schema=PERSON, seed=seed, max_tokens=150)
        assert result.finish_reason == "stop"
        assert json.loads(result.text).keys() == {"name", "age", "tags"}


@pytest.mark.parametrize("make", MODELS, ids=ids)
def test_lark_grammars_are_understood(make) -> None:
    grammar = 'start: "(" (start | NUMBER)? ")"\nNUMBER: /[0-9]{1,3}/'
    for seed in SEEDS:
        result = make().generate("List:", grammar=grammar, seed=seed, max_tokens=100)
        if result.finish_reason == "stop":
            assert re.fullmatch(r"(\(+)([0-9]{1,3})?(\)+)", result.text)
            assert result.text.count("(") == result.text.count(")")


@pytest.mark.parametrize("make", MODELS, ids=ids)
def test_tokens_without_a_choice_do_not_change_the_text(make) -> None:
    """Forced tokens are rows of the next step; where log-probabilities are wanted each is drawn."""
    for seed in SEEDS:
        options = {"schema": PERSON, "seed": seed, "max_tokens": 200}
        rows = make().generate("A person:", **options)
        drawn = make().generate("A person:", logprobs=1, **options)
        assert rows.ids == drawn.ids and rows.text == drawn.text
        assert len(drawn.logprobs) == len(drawn.ids)


CONSTRAINTS = {
    "schema": {"schema": PERSON},
    "regex": {"regex": r"[0-9]{1,3}(, [0-9]{1,3}){9,12}"},
    "tags": {"structural_tag": StructuralTag((Tag("<a>", PERSON, "</a>"),), ("<a>",), required=True)},
}


@pytest.mark.parametrize("logprobs", [None, 1])
@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("make", MODELS, ids=ids)
def test_drafts_do_not_change_an_output_that_has_a_constraint(
    make, constraint: str, logprobs: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make()
    before = model.stats.accepted_tokens
    for seed in range(4):
        options = {
            **CONSTRAINTS[constraint],
            "seed": seed,
            "max_tokens": 80,
            "logprobs": logprobs,
            "top_k": 0,
        }
        plain = model.generate("A person:", **options, speculative=False)
        rng = random.Random(seed)

        def propose(self: Sequence, others: object, context: int, ids=plain.ids, rng=rng) -> Proposal:
            # What comes, a wrong token now and then, and something behind the end.
            guess = [*ids[len(self.tokens) :], 1, 2, 3][: rng.randint(0, 6)]
            self.drafter.proposal = [rng.choice((t, t, t, t + 1)) for t in guess]
            return Proposal(1.0, min(len(guess), self.room_for_drafts(context)))

        with monkeypatch.context() as patch:
            patch.setattr(Sequence, "propose", propose)
            decide_drafts(patch, lambda self, rows, found, *_: (1.0, [p.tokens for p in found]))
            drafted = model.generate("A person:", **options)
        assert drafted.ids == plain.ids and drafted.text == plain.text
        assert drafted.finish_reason == plain.finish_reason
        assert drafted.logprobs == plain.logprobs
    assert model.stats.accepted_tokens > before


def test_tokens_that_a_constraint_begins_with_are_not_counted_as_cached_prompt() -> None:
    model, before = ember(), ember().stats().cached_tokens
    options = {"schema": PERSON, "temperature": 0, "max_tokens": 60}
    stats = [model.generate("Describe a person here:", **options).stats for _ in range(2)]
    assert stats[1].cached_tokens == stats[1].prompt_tokens
    assert model.stats.cached_tokens - before == sum(each.cached_tokens for each in stats)


def test_log_probabilities_are_those_of_the_model() -> None:
    model = ember()
    result = model.generate("A person:", schema=PERSON, seed=1, logprobs=0)
    prompt = model.tokenize("A person:")
    logits = model.logits(prompt + result.ids)[len(prompt) - 1 : -1].astype(float)
    logits -= logits.max(axis=1, keepdims=True)
    for token, row in zip(result.logprobs, logits, strict=True):
        expected = row[token.id] - np.log(np.exp(row).sum())
        assert token.logprob == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 20])
def test_a_limit_ends_a_text_early_and_says_so(limit: int) -> None:
    whole = ember().generate("A person:", schema=PERSON, seed=4)
    cut = ember().generate("A person:", schema=PERSON, seed=4, max_tokens=limit)
    assert len(whole.ids) > 20
    assert cut.finish_reason == "length" and cut.ids == whole.ids[:limit]
    assert ember().generate("A person:", schema=PERSON, seed=4, max_tokens=0).ids == []
    exact = ember().generate("A person:", schema=PERSON, seed=4, max_tokens=len(whole.ids))
    assert exact.text == whole.text and exact.finish_reason == "stop"


def test_a_full_context_ends_a_text_early_and_says_so() -> None:
    model = ember()
    prompt = [5] * (model.context - 10)
    result = model.generate(prompt, choice=["x" * 300])
    assert result.finish_reason == "length"
    assert result.text + "x" * (300 - len(result.text)) == "x" * 300


def test_stop_texts_and_streams_work_as_ever() -> None:
    result = ember().generate("A person:", schema=PERSON, seed=4, stop='"age"')
    assert result.finish_reason == "stop" and result.stop == '"age"'
    assert result.text.startswith('{"name": "') and result.text.endswith(", ")
    with ember().stream("A person:", schema=PERSON, seed=4) as pieces:
        text = "".join(pieces)
    assert text == ember().generate("A person:", schema=PERSON, seed=4).text
    with ember().stream("A person:", schema=PERSON, seed=4) as pieces:
        next(pieces)
        pieces.cancel()
    assert pieces.completion.finish_reason == "cancelled"


def test_free_texts_beside_constrained_ones_are_those_they_are_alone() -> None:
    model = ember()
    free = {seed: model.generate("Once upon a time", seed=seed, max_tokens=60).text for seed in range(3)}
    bound = {seed: model.generate("A person:", schema=PERSON, seed=seed).text for seed in range(3)}
    wrong: list[object] = []

    def write(seed: int) -> None:
        for _ in range(3):
            if model.generate("Once upon a time", seed=seed, max_tokens=60).text != free[seed]:
                wrong.append(seed)
            if model.generate("A person:", schema=PERSON, seed=seed).text != bound[seed]:
                wrong.append(PERSON)

    threads = [threading.Thread(target=write, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_sequence_that_was_suspended_goes_on_in_its_constraint(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two slots and six texts that are read in turns: whoever is not read makes way."""
    monkeypatch.setattr(planning, "ABSENT_SECONDS", 0.0)
    suspended: list[int] = []
    suspend = planning.Planner.suspend

    def noted(planner: planning.Planner, sequence: Sequence) -> None:
        suspended.append(len(sequence.tokens))
        suspend(planner, sequence)

    monkeypatch.setattr(planning.Planner, "suspend", noted)
    model = hostile(parallel=2)
    whole = [model.generate("A person:", schema=PERSON, seed=seed).text for seed in range(6)]
    streams = [model.stream("A person:", schema=PERSON, seed=seed) for seed in range(6)]
    texts = [""] * len(streams)
    for _ in range(1000):
        for i, stream in enumerate(streams):
            texts[i] += next(stream, "")
        if texts == whole:
            break
    assert texts == whole
    assert sum(tokens > 0 for tokens in suspended) > len(streams)


def test_a_constraint_that_nothing_fits_is_the_error_of_its_sequence_alone() -> None:
    model = ember()
    pieces = model.tokenizer.pieces
    digits = [i for i in range(model.tokenizer.vocab_size) if {*b"78"} & {*pieces[i]}]
    other = model.stream("Once", seed=1, max_tokens=20)
    first = next(other)
    with pytest.raises(
        AkunuError, match=r"^regex: the output cannot go on as it asks: none of the tokens .* logit_bias"
    ):
        model.generate("Number:", regex="[78]+", logit_bias=dict.fromkeys(digits, -np.inf))
    assert first + "".join(other) == model.generate("Once", seed=1, max_tokens=20).text


@pytest.mark.parametrize(
    "options",
    [
        {"regex": "a{1000000}"},
        {"regex": "[ab]a{1000000}"},
        {"regex": "((ab){1000}c){1000}"},
        {"grammar": 'start: "a"~1000000'},
        {"grammar": "start: /[ab]/ /a{1000000}/"},
        {"schema": {"type": "string", "pattern": "^a{1000000}$"}},
        {
            "schema": {
                "type": "array",
                "prefixItems": [{"type": "string", "pattern": "^[ab]c{1000000}$"}],
                "minItems": 1,
            }
        },
        {"choice": ["a" * 200_000, "b"]},
    ],
    ids=lambda options: str(options)[:50],
)
def test_what_is_too_long_to_be_followed_is_an_error_of_its_argument(options) -> None:
    with pytest.raises(InvalidArgumentError, match="repeat less") as error:
        ember().generate("x", max_tokens=16, temperature=0, **options)
    assert error.value.argument == next(iter(options))


@pytest.mark.parametrize(
    "options, words",
    [
        ({"schema": {"type": "array", "uniqueItems": True}}, "schema: .*uniqueItems"),
        ({"schema": {"properties": {"a": {"not": {}}}}}, "schema: .*not"),
        ({"schema": {"type": "string", "pattern": "(?=a)b"}}, "schema: .*look-around"),
        ({"schema": {"$ref": "https://example.com/x"}}, "schema: .*example.com"),
        ({"schema": {"type": "integer", "minimum": 5, "maximum": 3}}, "schema: .*minimum"),
        ({"schema": {"enum": []}}, "schema: "),
        ({"schema": {"$ref": "#"}}, "schema: .*no token may come next"),
        ({"grammar": "start: start"}, "grammar: .*no token may come next"),
        ({"grammar": "root ::= other\nother ::= root"}, "grammar: no text of the rule root ends"),
        ({"regex": r"[^\s\S]"}, "regex: .*no token may come next"),
        ({"regex": "(a"}, "regex: "),
        ({"regex": r"(a)\1"}, "regex: "),
        ({"grammar": "start: missing"}, "grammar: .*missing"),
        ({"grammar": "root ::= missing"}, "grammar: .*missing"),
        ({"grammar": 'item ::= "a"'}, "grammar: .*root"),
    ],
    ids=str,
)
def test_what_cannot_be_honoured_is_refused_up_front_by_name(options: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidArgumentError, match="(?s)" + words):
        ember().stream("x", **options)


def test_without_a_vocabulary_there_are_no_constraints() -> None:
    engine = hostile()._engine
    bare = Model(engine, None, hostile().config, {}, hostile().path)
    with pytest.raises(AkunuError, match="no vocabulary"):
        bare.stream([1], json=True)


def test_a_vocabulary_without_an_end_is_refused() -> None:
    class Endless:
        end_of_generation_ids = frozenset()

    with pytest.raises(UnsupportedError, match="no token that ends an output"):
        VocabularyView(Endless(), 5)  # type: ignore[arg-type]
