"""Contents in parts, missing contents and roles: nothing that a message says is left out in silence."""

from __future__ import annotations

from typing import Any

import pytest

from akunu.base.errors import InvalidArgumentError, TemplateError
from akunu.chat import FORMATS, ChatTemplate

from .models import text, tokenizer

PARTS = [{"type": "text", "text": "What is "}, {"type": "text", "text": "2+2?"}]
CALL = {"type": "function", "function": {"name": "f", "arguments": {}}}
LOOP = "{% for m in messages %}"

TEMPLATES = {
    "the content as it is": LOOP + "{{ m.role }}: {{ m.content }};{% endfor %}",
    "trimmed": LOOP + "{{ m.role }}: {{ m.content | trim }};{% endfor %}",
    "concatenated": LOOP + "{{ m['role'] + ': ' + m['content'] + ';' }}{% endfor %}",
    "texts or parts": (
        LOOP + "{{ m.role }}: {% if m.content is string %}{{ m.content }}{% else %}"
        "{% for part in m.content %}{{ part.text }}{% endfor %}{% endif %};{% endfor %}"
    ),
    "parts alone": (
        LOOP
        + "{{ m.role }}: {% for part in m.content %}{% if part.type == 'text' %}{{ part.text }}{% endif %}"
        "{% endfor %};{% endfor %}"
    ),
    "the first part alone": LOOP + "{{ m.role }}: {{ m.content[0]['text'] }};{% endfor %}",
    "parts with a strict test": (
        LOOP
        + "{{ m.role }}: {% if m.content[0].type != 'text' %}{{ raise_exception('text only') }}{% endif %}"
        "{{ m.content[0].text }};{% endfor %}"
    ),
}
KNOWS_THREE = (
    LOOP + "{% if m.role == 'system' %}S {{ m.content }}{% elif m.role == 'user' %}U {{ m.content }}"
    "{% elif m.role == 'assistant' %}A {{ m.content }}{% endif %}{% endfor %}"
)
KNOWS_ALL = LOOP + "[{{ m.role }}]{{ m.content }}{% endfor %}"


def rendered(source: str, messages: list[dict[str, Any]], **options: Any) -> str:
    return text(ChatTemplate(source, tokenizer()).render(messages, **options))


@pytest.mark.parametrize("name", TEMPLATES)
@pytest.mark.parametrize("content", [PARTS, tuple(PARTS), "What is 2+2?"], ids=["list", "tuple", "text"])
def test_text_parts_are_one_text_for_every_kind_of_template(name: str, content: Any) -> None:
    assert rendered(TEMPLATES[name], [{"role": "user", "content": content}]) == "user: What is 2+2?;"


@pytest.mark.parametrize("name", FORMATS)
def test_text_parts_are_one_text_for_every_format(name: str) -> None:
    template = ChatTemplate.named(name, tokenizer())
    assert template.encode([{"role": "user", "content": PARTS}]) == template.encode(
        [{"role": "user", "content": "What is 2+2?"}]
    )


@pytest.mark.parametrize("name", TEMPLATES)
@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([*PARTS, {"type": "image_url", "image_url": "x"}], r"content\[2\]: found an image; this model"),
        ([{"type": "input_audio"}], r"content\[0\]: a part of the type 'input_audio' is not supported"),
        ([{"text": "x"}], r"content\[0\]: a part of the type None"),
        (["x"], r"content\[0\]: found str, expected \{\"type\": \"text\""),
        ([{"type": "text"}], r"content\[0\]\.text: found NoneType, expected a text"),
        ([{"type": "text", "text": 5}], r"content\[0\]\.text: found int"),
        (None, r"messages\[0\]\.content: missing; only a message with tool_calls"),
    ],
)  # fmt: skip
def test_what_is_not_text_is_refused_by_name(name: str, content: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        rendered(TEMPLATES[name], [{"role": "user", "content": content}])


def test_a_missing_content_is_refused_unless_there_are_tool_calls() -> None:
    with pytest.raises(InvalidArgumentError, match=r"messages\[1\]\.content: missing"):
        rendered(KNOWS_ALL, [{"role": "user", "content": "x"}, {"role": "user"}])
    source = (
        LOOP + "{% if m.tool_calls %}{{ m.tool_calls[0].function.name }}{% else %}{{ m.content }}{% endif %}"
        "{% endfor %}"
    )
    for message in (
        {"role": "assistant", "tool_calls": [CALL]},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
    ):
        assert rendered(source, [{"role": "user", "content": "x"}, message]) == "xf"
    for calls in (True, "f", ["f"], CALL):
        with pytest.raises(
            InvalidArgumentError, match=r"messages\[0\]\.tool_calls: expected a list of mappings"
        ):
            rendered(source, [{"role": "assistant", "content": "x", "tool_calls": calls}])


def test_a_role_that_the_template_leaves_out_is_refused() -> None:
    for role in ("tool", "usre", "narrator"):
        message = f"leaves out messages of the role {role!r}; it knows system, user, assistant$"
        with pytest.raises(InvalidArgumentError, match=message):
            rendered(KNOWS_THREE, [{"role": role, "content": "x"}], generic_tools=False)


def test_a_misspelt_role_is_refused_where_the_template_takes_any() -> None:
    for role, meant in (("usre", "user"), ("User", "user"), ("USER", "user"), ("assitant", "assistant")):
        with pytest.raises(InvalidArgumentError, match=f"role: found '{role}'; did you mean '{meant}'"):
            rendered(KNOWS_ALL, [{"role": role, "content": "x"}])
    assert rendered(KNOWS_ALL, [{"role": "narrator", "content": "x"}]) == "[narrator]x"
    assert rendered("{# 'users' #}" + KNOWS_ALL, [{"role": "users", "content": "x"}]) == "[users]x"


def test_a_role_that_the_template_refuses_itself_keeps_its_own_message() -> None:
    source = (
        LOOP + "{% if m.role not in ['user', 'assistant'] %}{{ raise_exception('no ' + m.role) }}{% endif %}"
        "{{ m.content }}{% endfor %}"
    )
    with pytest.raises(TemplateError, match="refuses the messages: no tool"):
        rendered(source, [{"role": "tool", "content": "x"}], generic_tools=False)


NO_SYSTEM = (
    "{% if messages[0].role == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
    + LOOP
    + "{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('take turns') }}{% endif %}"
    "<{{ m.role }}>{{ m.content }}{% endfor %}"
)
LEAVES_OUT = LOOP + "{% if m.role != 'system' %}<{{ m.role }}>{{ m.content }}{% endif %}{% endfor %}"
SYSTEM = {"role": "system", "content": "S"}


@pytest.mark.parametrize("source", [NO_SYSTEM, LEAVES_OUT])
def test_what_the_system_says_is_put_before_the_user_where_it_has_no_place(source: str) -> None:
    user, answer = {"role": "user", "content": "U"}, {"role": "assistant", "content": "A"}
    assert rendered(source, [SYSTEM, user]) == "<user>S\n\nU"
    assert rendered(source, [SYSTEM, user, answer, user]) == "<user>S\n\nU<assistant>A<user>U"
    assert rendered(source, [SYSTEM, {**SYSTEM, "content": "T"}, user]) == "<user>S\n\nT\n\nU"
    assert rendered(source, [SYSTEM]) == "<user>S"
    assert rendered(source, [user]) == "<user>U"
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert rendered(source, [{**SYSTEM, "content": parts}, user]) == "<user>ab\n\nU"


ONLY_AT_THE_LAST = (
    LOOP
    + "{% if m.role == 'user' and loop.last %}{% for s in messages if s.role == 'system' %}{{ s.content }} "
    "{% endfor %}{% endif %}{% if m.role != 'system' %}<{{ m.role }}>{{ m.content }}{% endif %}{% endfor %}"
)
GEMMA = (
    "{% set ns = namespace(s='') %}{% if messages[0].role == 'system' %}"
    "{% set ns.s = messages[0].content ~ ' ' %}{% set messages = messages[1:] %}{% endif %}"
    + LOOP
    + "{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('take turns') }}{% endif %}"
    "<{{ m.role }}>{{ ns.s if loop.first }}{{ m.content }}{% endfor %}"
)


def test_nothing_that_the_system_says_is_lost_wherever_it_stands() -> None:
    said = {"s": SYSTEM, "t": {**SYSTEM, "content": "T"}, "u": {"role": "user", "content": "U"}}
    said |= {"a": {"role": "assistant", "content": "A"}}
    for source, talk, expected in (
        (GEMMA, "su", "<user>S U"),
        (GEMMA, "s", "<user>S"),
        (GEMMA, "stu", "<user>S\n\nT U"),
        (GEMMA, "suatu", "<user>S U<assistant>A<user>T\n\nU"),
        (GEMMA, "uatu", "<user>U<assistant>A<user>T\n\nU"),
        (GEMMA, "uat", "<user>U<assistant>A<user>T"),
        (GEMMA, "sau", "<user>S<assistant>A<user>U"),
        (ONLY_AT_THE_LAST, "su", "S <user>U"),
        (ONLY_AT_THE_LAST, "s", "<user>S"),
        (LEAVES_OUT, "usu", "<user>U<user>S<user>U"),
    ):
        assert rendered(source, [said[letter] for letter in talk]) == expected, (source, talk)


def test_developers_are_the_system_where_the_template_knows_no_developers() -> None:
    messages = [{"role": "developer", "content": "D"}, {"role": "user", "content": "U"}]
    assert rendered(KNOWS_THREE, messages) == "S DU U"


ENDS = (
    LOOP + "<{{ m.role }}>{{ m.content }}</>{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
)
TRIMS = ENDS.replace("m.content", "m.content | trim")
BEGUN = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "The answer is "}]


@pytest.mark.parametrize("source", [ENDS, TRIMS])
def test_a_begun_answer_is_continued(source: str) -> None:
    template = ChatTemplate(source, tokenizer())
    for options in ({}, {"continue_final_message": True}, {"add_generation_prompt": True}):
        assert text(template.render(BEGUN, **options)) == "<user>x</><assistant>The answer is "
    closed = text(template.render(BEGUN, continue_final_message=False))
    assert closed.endswith("</><assistant>") and "The answer is" in closed
    assert text(template.render(BEGUN, add_generation_prompt=False)).endswith("</>")
    assert text(template.render([USER])) == "<user>x</><assistant>"


def test_what_cannot_be_continued_is_refused() -> None:
    template = ChatTemplate(ENDS, tokenizer())
    for messages in ([USER], [USER, {"role": "assistant", "content": None, "tool_calls": [CALL]}]):
        with pytest.raises(InvalidArgumentError, match="continue_final_message: the last message is not"):
            template.render(messages, continue_final_message=True)
    cut = LOOP + "<{{ m.role }}>{% endfor %}"
    with pytest.raises(InvalidArgumentError, match="leaves out the end of the last message"):
        ChatTemplate(cut, tokenizer()).render(BEGUN)
    with pytest.raises(
        InvalidArgumentError, match="continue_final_message: found 'yes', expected True or False"
    ):
        template.render(BEGUN, continue_final_message="yes")


def test_a_begun_answer_that_has_the_word_for_its_end_is_continued_too() -> None:
    begun = [USER, {"role": "assistant", "content": "here7ends here7ends<|im_"}]
    assert rendered(ENDS, begun) == "<user>x</><assistant>here7ends here7ends<|im_"


def test_a_role_that_is_written_only_beside_others_counts_as_known() -> None:
    before_the_user = (
        "{% if messages[0].role == 'system' %}{% set s = messages[0].content %}{% endif %}"
        "{% for m in messages if m.role == 'user' %}{{ s }}{{ m.content }}{% endfor %}"
    )
    messages = [{"role": "system", "content": "S"}, {"role": "user", "content": "U"}]
    assert rendered(before_the_user, messages) == "SU"
    after_a_call = (
        LOOP + "{% if m.role == 'tool' %}{% if messages[loop.index0 - 1].tool_calls %}{{ m.content }}"
        "{% endif %}{% elif m.content %}{{ m.content }}{% endif %}"
        "{% for call in m.tool_calls %}{{ call.function.name }}{% endfor %}{% endfor %}"
    )
    messages = [
        {"role": "user", "content": "U"},
        {"role": "assistant", "tool_calls": [CALL]},
        {"role": "tool", "content": "T"},
    ]
    assert rendered(after_a_call, messages) == "UfT"


ONLY_THE_FIRST = (
    "{% if messages[0].role == 'system' %}{{ messages[0].content }}{% endif %}"
    "{% for m in messages if m.role in ['user', 'assistant'] %}{{ m.content }}{% endfor %}"
)


@pytest.mark.parametrize(
    "before", [[], [{"role": "user", "content": "U"}, {"role": "assistant", "content": "A"}]]
)
def test_what_the_system_says_later_is_the_users_where_the_template_has_no_room_for_it(before) -> None:
    messages = [
        {"role": "system", "content": "S"}, *before, {"role": "system", "content": "T"}, *before,
        {"role": "user", "content": "U"},
    ]  # fmt: skip
    said = "".join(message["content"] for message in messages)
    if not before:  # side by side, it is one message
        said = "S\n\nTU"
    others = "{% if messages[1:] | selectattr('role', 'equalto', 'system') | list %}"
    refuses = others + "{{ raise_exception('the system is first') }}{% endif %}" + ONLY_THE_FIRST
    the_last = (
        "{% set ns = namespace(system='') %}{% for m in messages if m.role == 'system' %}"
        "{% set ns.system = m.content %}{% endfor %}{{ ns.system }}"
        "{% for m in messages if m.role != 'system' %}{{ m.content }}{% endfor %}"
    )
    for template in (ONLY_THE_FIRST, refuses, the_last):
        assert rendered(template, messages) == said
    assert rendered(KNOWS_THREE, messages).count("T") == 1


def test_a_template_that_writes_no_message_at_all_cannot_be_asked() -> None:
    assert rendered("{{ messages | length }}", [{"role": "tool", "content": "x"}]) == "1"


def test_asking_about_many_roles_keeps_no_more_than_a_few() -> None:
    template = ChatTemplate(KNOWS_ALL, tokenizer())
    for n in range(200):
        template.render([{"role": f"r{n}", "content": "x"}])
    assert len(template._probes["default"]._written) <= 64


def test_embers_own_template_takes_parts_and_refuses_a_role_that_it_does_not_know() -> None:
    from pathlib import Path

    source = (Path(__file__).parents[2] / "tools/ember/chat_template.jinja").read_text(encoding="utf-8")
    assert "What is 2+2?" in rendered(source, [{"role": "user", "content": PARTS}])
    with pytest.raises(InvalidArgumentError, match="usre"):
        rendered(source, [{"role": "usre", "content": "x"}])


CALLS = (
    LOOP + "{{ m.content }}{% for call in m.tool_calls or [] %}"
    "({{ call.function.name }}:{{ ARGUMENTS }}){% endfor %}{% endfor %}"
)
USER = {"role": "user", "content": "x"}


def calling(arguments: Any, content: Any = "y") -> dict[str, Any]:
    call = {"type": "function", "function": {"name": "f", "arguments": arguments}}
    return {"role": "assistant", "content": content, "tool_calls": [call]}


@pytest.mark.parametrize("arguments", ['{"a":1}', {"a": 1}])
@pytest.mark.parametrize(
    ("written", "from_text", "from_object"),
    [
        ("call.function.arguments | tojson", '{"a": 1}', '{"a": 1}'),
        ("call.function.arguments", '{"a":1}', '{"a": 1}'),
        ("'' ~ call.function.arguments", '{"a":1}', '{"a": 1}'),
        ("call.function.arguments.items() | list", "[('a', 1)]", "[('a', 1)]"),
        (
            "(call.function.arguments if call.function.arguments is string "
            "else call.function.arguments | tojson)",
            '{"a":1}',
            '{"a": 1}',
        ),
    ],
)
def test_arguments_of_calls_come_in_the_form_that_the_template_wants(
    arguments: Any, written: str, from_text: str, from_object: str
) -> None:
    source = CALLS.replace("ARGUMENTS", written)
    wanted = from_text if isinstance(arguments, str) else from_object
    assert rendered(source, [USER, calling(arguments)]) == f"xy(f:{wanted})"


def test_arguments_that_are_no_object_stay_what_the_model_wrote() -> None:
    source = CALLS.replace("ARGUMENTS", "call.function.arguments | tojson")
    assert rendered(source, [USER, calling('{"a": 1')]) == 'xy(f:"{\\"a\\": 1")'
    assert rendered(source, [USER, calling("")]) == "xy(f:{})"


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ('{"a": 1}', "a=1;"),
        ("", ""),
        ("null", ""),
        ('{"a": 1', 'arguments={"a": 1;'),
        ("[1]", "arguments=[1];"),
        ({"a": 1}, "a=1;"),
    ],
)
def test_arguments_that_are_no_object_are_one_where_the_template_fails_without(given, written: str) -> None:
    """An agent repeats a call that broke off, and the conversation has to go on."""
    source = CALLS.replace(
        "{{ ARGUMENTS }}", "{% for k, v in call.function.arguments | items %}{{ k }}={{ v }};{% endfor %}"
    )
    assert rendered(source, [USER, calling(given)]) == f"xy(f:{written})"


ONE_CALL = (
    LOOP + "{% if m.tool_calls %}{{ REFUSE }}{{ m.content or '' }}({{ m.tool_calls[0].function.name }})"
    "{% elif m.role == 'tool' %}={{ m.content }};{% else %}{{ m.content }}{% endif %}{% endfor %}"
)


@pytest.mark.parametrize("refuses", [False, True])
@pytest.mark.parametrize("ids", [("1", "2"), ("2", "1"), (None, None), ("1", "?")])
def test_calls_side_by_side_follow_each_other_where_the_template_writes_one(refuses: bool, ids: Any) -> None:
    """As those of Llama 3.1, which refuses several, and of gpt-oss, which leaves out all but the first."""
    refuse = "{% if m.tool_calls | length > 1 %}{{ raise_exception('one') }}{% endif %}" if refuses else ""
    source = ONE_CALL.replace("{{ REFUSE }}", refuse)
    calls = [{**CALL, "id": n, "function": {"name": f"f{n}", "arguments": "{}"}} for n in ("1", "2")]
    if ids[0] is None:
        calls = [{name: value for name, value in call.items() if name != "id"} for call in calls]
    results = [{"role": "tool", "content": n or "r", "tool_call_id": n} for n in ids]
    messages = [USER, {"role": "assistant", "content": "C", "tool_calls": calls}, *results, USER]
    expected = {
        ("1", "2"): "xC(f1)=1;(f2)=2;x",
        ("2", "1"): "xC(f1)=1;(f2)=2;x",
        (None, None): "xC(f1)=r;(f2)=r;x",
        ("1", "?"): "xC(f1)=1;(f2)=?;x",
    }
    assert rendered(source, messages) == expected[ids]
    several = (
        LOOP
        + "{{ m.content }}{% for call in m.tool_calls %}({{ call.function.name }}){% endfor %}{% endfor %}"
    )
    assert "C(f1)(f2)" in rendered(several, messages)


def test_a_call_without_content_does_not_say_none() -> None:
    source = CALLS.replace("ARGUMENTS", "call.function.arguments | tojson")
    assert rendered(source, [USER, calling({}, None)]) == "x(f:{})"
    by_none = LOOP + "{% if m.content is none %}{{ m.tool_calls[0].function.name }}{% else %}{{ m.content }}"
    assert rendered(by_none + "{% endif %}{% endfor %}", [USER, calling({}, None)]) == "xf"


def test_calls_and_tools_that_the_template_leaves_out_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"messages\[1\]\.tool_calls: .* leaves calls out"):
        rendered(KNOWS_ALL, [USER, calling({})], generic_tools=False)
    tools = [{"type": "function", "function": {"name": "f"}}]
    with pytest.raises(InvalidArgumentError, match="tools: the chat template of this model leaves them out"):
        ChatTemplate(KNOWS_ALL, tokenizer()).render([USER], tools=tools, generic_tools=False)


@pytest.mark.parametrize("given", ["reasoning_content", "reasoning", "thinking"])
@pytest.mark.parametrize("wanted", ["reasoning_content", "reasoning", "thinking"])
def test_reasoning_is_given_by_the_name_that_the_template_has_for_it(given: str, wanted: str) -> None:
    source = (
        LOOP
        + "{% if m."
        + wanted
        + " is defined %}({{ m."
        + wanted
        + " }}){% endif %}{{ m.content }}{% endfor %}"
    )
    assert rendered(source, [USER, {"role": "assistant", "content": "y", given: "Hm."}]) == "x(Hm.)y"
