"""Messages to text: where templates come from, what they see, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from akunu.base.errors import InvalidArgumentError, TemplateError
from akunu.chat import FORMATS, ChatTemplate
from akunu.chat.limits import RenderLimits

from .models import controls, text, tokenizer

USER = {"role": "user", "content": "Hi"}
TALK = [
    {"role": "system", "content": "Be kind."},
    USER,
    {"role": "assistant", "content": "Hello!"},
    {"role": "user", "content": "Bye"},
]


def template(source: str, **limits: Any) -> ChatTemplate:
    return ChatTemplate(source, tokenizer(), limits=RenderLimits(**limits))


def rendered(source: str, messages: list[dict[str, Any]] | None = None, **options: Any) -> str:
    return text(template(source).render(messages or [USER], **options))


class TestWhereTemplatesComeFrom:
    def test_the_model_files_own_template_is_used(self) -> None:
        metadata = {"tokenizer.chat_template": "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}"}
        assert text(ChatTemplate.from_metadata(metadata, tokenizer()).render([USER])) == "<s>Hi</s>"

    def test_a_named_template_is_chosen_by_name_and_for_tools(self) -> None:
        metadata = {
            "tokenizer.chat_template": "plain",
            "tokenizer.chat_template.tool_use": "with tools",
            "tokenizer.chat_template.rag": "with documents",
            "tokenizer.chat_templates": ["tool_use", "rag"],
        }
        found = ChatTemplate.from_metadata(metadata, tokenizer())
        assert text(found.render([USER])) == "plain"
        assert text(found.render([USER], template="rag")) == "with documents"
        assert text(found.render([USER], tools=[{"type": "function"}])) == "with tools"
        with pytest.raises(InvalidArgumentError, match="'nope', expected one of default, tool_use, rag"):
            found.render([USER], template="nope")

    def test_a_file_without_one_says_what_to_do(self) -> None:
        with pytest.raises(TemplateError, match=r"no chat template .* chatml, llama2, llama3"):
            ChatTemplate.from_metadata({}, tokenizer())

    def test_a_template_that_does_not_compile_is_refused_at_once(self) -> None:
        with pytest.raises(TemplateError, match="line 2"):
            template("fine\n{% if %}")

    def test_an_unknown_format_is_refused(self) -> None:
        with pytest.raises(InvalidArgumentError, match="'klingon'"):
            ChatTemplate.named("klingon", tokenizer())


class TestFormats:
    @pytest.mark.parametrize(
        ("name", "expected"),
        [
            (
                "chatml",
                "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
                "<|im_start|>assistant\nHello!<|im_end|>\n<|im_start|>user\nBye<|im_end|>\n<|im_start|>assistant\n",
            ),
            (
                "llama2",
                "<s>[INST] <<SYS>>\nBe kind.\n<</SYS>>\n\nHi [/INST] Hello! </s><s>[INST] Bye [/INST]",
            ),
            (
                "llama3",
                "<s><|start_header_id|>system<|end_header_id|>\n\nBe kind.<|eot_id|><|start_header_id|>user"
                "<|end_header_id|>\n\nHi<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nHello!<|eot_id|>"
                "<|start_header_id|>user<|end_header_id|>\n\nBye<|eot_id|><|start_header_id|>assistant"
                "<|end_header_id|>\n\n",
            ),
            ("mistral", "<s>[INST] Be kind.\n\nHi [/INST] Hello!</s>[INST] Bye [/INST]"),
            (
                "gemma",
                "<s><start_of_turn>user\nBe kind.\n\nHi<end_of_turn>\n<start_of_turn>model\nHello!"
                "<end_of_turn>\n<start_of_turn>user\nBye<end_of_turn>\n<start_of_turn>model\n",
            ),
            (
                "phi3",
                "<|system|>\nBe kind.<|end|>\n<|user|>\nHi<|end|>\n<|assistant|>\nHello!<|end|>\n<|user|>\n"
                "Bye<|end|>\n<|assistant|>\n",
            ),
            (
                "zephyr",
                "<|system|>\nBe kind.</s>\n<|user|>\nHi</s>\n<|assistant|>\nHello!</s>\n<|user|>\nBye</s>\n"
                "<|assistant|>\n",
            ),
        ],
    )
    def test_each_is_written_as_published(self, name: str, expected: str) -> None:
        assert text(ChatTemplate.named(name, tokenizer()).render(TALK)) == expected

    @pytest.mark.parametrize("name", FORMATS)
    def test_each_takes_content_in_parts_and_refuses_pictures(self, name: str) -> None:
        found = ChatTemplate.named(name, tokenizer())
        parts = [{"type": "text", "text": "H"}, {"type": "text", "text": "i"}]
        assert text(found.render([{"role": "user", "content": parts}])) == text(found.render([USER]))
        with pytest.raises(InvalidArgumentError, match="found an image; this model reads text only"):
            found.render([{"role": "user", "content": [{"type": "image_url", "image_url": "x"}]}])

    def test_a_turn_out_of_order_is_refused_where_the_format_has_no_place_for_it(self) -> None:
        with pytest.raises(TemplateError, match="refuses the messages: messages must alternate"):
            ChatTemplate.named("gemma", tokenizer()).render([USER, USER])


class TestWhatATemplateSees:
    def test_variables_tools_and_the_generation_prompt(self) -> None:
        source = (
            "{{ enable_thinking }} {{ tools[0].name }} {{ add_generation_prompt }} {{ nothing is defined }}"
        )
        variables = {"enable_thinking": False}
        got = text(template(source).render([USER], tools=[{"name": "f"}], variables=variables))
        assert got == "False f True False"

    def test_no_tools_is_none_as_templates_expect(self) -> None:
        assert rendered("{% if tools is none %}none{% endif %}") == "none"
        assert rendered("{% if tools is none %}none{% endif %}", tools=[]) == "none"

    def test_json_is_not_escaped_for_html_or_ascii(self) -> None:
        messages = [{"role": "user", "content": "x", "extra": {"é": "<a> & 'b'", "n": [1, 2.5, None, True]}}]
        expected = """{"é": "<a> & 'b'", "n": [1, 2.5, null, true]}"""
        assert rendered("{{ messages[0].extra | tojson }}", messages) == expected
        assert rendered("{{ {'a': 1} | tojson(indent=2) }}") == '{\n  "a": 1\n}'

    def test_blocks_are_trimmed_as_transformers_does(self) -> None:
        assert rendered("  {% if true %}\nx\n  {% endif %}\ny") == "x\ny"

    def test_loop_controls_the_date_and_generation_blocks(self) -> None:
        assert (
            rendered("{% for i in range(9) %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}")
            == "01"
        )
        assert len(rendered("{{ strftime_now('%Y-%m-%d') }}")) == 10
        assert rendered("{% generation %}x{{ 1 }}{% endgeneration %}") == "x1"

    def test_raise_exception_names_its_reason(self) -> None:
        with pytest.raises(TemplateError, match="refuses the messages: only one system message"):
            rendered("{{ raise_exception('only one system message') }}")

    def test_an_undefined_value_is_an_error_that_names_it(self) -> None:
        with pytest.raises(TemplateError, match="'bogus' is undefined"):
            rendered("{{ bogus.field }}")

    def test_common_idioms(self) -> None:
        source = (
            "{%- set ns = namespace(n=0) -%}{%- for m in messages if m['role'] == 'user' -%}"
            "{%- set ns.n = ns.n + 1 -%}{{- (m.content | trim)[:2] ~ ',' -}}{%- endfor -%}{{- ns.n -}}"
            "{{- messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | join('+') -}}"
            "{{- messages[-1].content.split('y')[0].lstrip('B') | upper -}}{{- 'a-b'.replace('-', '_') -}}"
            "{{- '%s!' % messages[0].role -}}{{- ', '.join(['p', 'q']) -}}{{- {'k': 1}.items() | list -}}"
        )
        assert rendered(source, TALK[1:]) == "Hi,By,2Hi+Bye" + "" + "a_buser!p, q[('k', 1)]"


class TestIds:
    def test_the_frame_becomes_control_tokens(self) -> None:
        ids = ChatTemplate.named("chatml", tokenizer()).encode([USER])
        assert controls(ids) == ["<|im_start|>", "<|im_end|>", "<|im_start|>"]
        assert tokenizer().decode(ids, skip_special=False) == (
            "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
        )

    def test_the_generation_prompt_can_be_left_out(self) -> None:
        ids = ChatTemplate.named("chatml", tokenizer()).encode([USER], add_generation_prompt=False)
        assert controls(ids) == ["<|im_start|>", "<|im_end|>"]


class TestMessagesThatAreRefused:
    @pytest.mark.parametrize(
        ("messages", "message"),
        [
            ([], "found none"),
            ("hello", "found str, expected a list"),
            (USER, "found dict, expected a list"),
            (["hello"], r"messages\[0\]: found str"),
            ([USER, {"content": "x"}], r"messages\[1\].role: found None"),
            ([{"role": 5, "content": "x"}], "role: found 5"),
            ([{"role": "user", "content": 5}], "content: found int"),
            ([{"role": "user", "content": b"x"}], "content: found bytes"),
            ([{"role": "user", "content": "x", "more": object()}], r"messages\[0\].more: found object"),
            ([{"role": "user", "content": "x", "more": {5: 6}}], "found the key 5"),
        ],
    )
    def test_the_message_says_where(self, messages: Any, message: str) -> None:
        with pytest.raises(InvalidArgumentError, match=message):
            template("x").render(messages)

    def test_too_much_text(self) -> None:
        with pytest.raises(InvalidArgumentError, match="more than 100 characters"):
            template("x", input_chars=100).render([{"role": "user", "content": "x" * 200}])

    def test_too_deep_a_nesting(self) -> None:
        deep: Any = "x"
        for _ in range(100):
            deep = [deep]
        with pytest.raises(InvalidArgumentError, match="nested deeper than 48 levels"):
            template("x").render([{"role": "user", "content": "x", "more": deep}])

    @pytest.mark.parametrize("name", ["bos_token", "add_generation_prompt", "tools", "messages"])
    def test_a_variable_that_akunu_sets(self, name: str) -> None:
        with pytest.raises(InvalidArgumentError, match=f"'{name}' is set by Akunu"):
            template("x").render([USER], variables={name: []})

    def test_no_name_of_a_variable_is_an_argument(self) -> None:
        given = {"template": "t", "variables": "v"}
        assert text(template("{{ template }}{{ variables }}").render([USER], variables=given)) == "tv"

    @pytest.mark.parametrize(
        ("variables", "message"),
        [
            ([1], "template variables: found list, expected a mapping"),
            ("x", "template variables: found str, expected a mapping"),
            ({1: 2}, "template variables: found the key 1, expected strings"),
            ({"x": object()}, r"template variables\.x: found object"),
        ],
    )
    def test_variables_that_are_no_mapping_of_names(self, variables: Any, message: str) -> None:
        with pytest.raises(InvalidArgumentError, match=message):
            template("x").render([USER], variables=variables)

    def test_what_is_no_tokenizer(self) -> None:
        with pytest.raises(InvalidArgumentError, match="found NoneType, expected the model's tokenizer"):
            ChatTemplate("x", None)  # type: ignore[arg-type]

    def test_a_source_or_name_that_is_no_text(self) -> None:
        with pytest.raises(InvalidArgumentError, match="chat template: found int, expected a text"):
            ChatTemplate(5, tokenizer())  # type: ignore[arg-type]
        with pytest.raises(InvalidArgumentError, match="chat template 'default': found int, expected a text"):
            ChatTemplate({"default": 5}, tokenizer())  # type: ignore[dict-item]
        with pytest.raises(InvalidArgumentError, match=r"found \[\], expected one of chatml"):
            ChatTemplate.named([], tokenizer())  # type: ignore[arg-type]
        with pytest.raises(InvalidArgumentError, match=r"found \[\], expected one of default"):
            template("x").render([USER], template=[])  # type: ignore[arg-type]

    @pytest.mark.parametrize("tools", ["x", {"a": 1}, ["x"]])
    def test_tools_that_are_not_a_list_of_mappings(self, tools: Any) -> None:
        with pytest.raises(InvalidArgumentError, match="tools: expected a list of mappings"):
            template("x").render([USER], tools=tools)


def test_the_callers_messages_are_not_changed() -> None:
    messages = [{"role": "user", "content": "<|im_end|>"}]
    ChatTemplate.named("chatml", tokenizer()).render(messages)
    assert messages == [{"role": "user", "content": "<|im_end|>"}]
