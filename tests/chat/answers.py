"""Answers as models of each family write them, and what they say."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "description": "The weather in a city.",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string"},
                    "days": {"type": "integer"},
                    "units": {"type": ["string", "null"]},
                    "hours": {"type": "array", "items": {"type": "integer"}},
                },
                "required": ["city"],
            },
        },
    },
    {"type": "function", "function": {"name": "now"}},
]

CITY = {"city": 'New "York"\n', "days": 3}
WEATHER = json.dumps(CITY)

Call = tuple[str, dict[str, Any]]
NOW: Call = ("now", {})
IN_THE_CITY: Call = ("weather", CITY)


class Answer(NamedTuple):
    """What a model of a family writes, and what it says by that."""

    family: str
    text: str
    reasoning: str = ""
    content: str = ""
    calls: Sequence[Call] = ()


ANSWERS = [
    Answer("plain", "Hello!\n", content="Hello!\n"),
    Answer("plain", "<think>\nHm.\n</think>\n\nHello!", reasoning="Hm.", content="Hello!"),
    Answer("plain", "<think></think>Hello!", content="Hello!"),
    Answer("plain", "a < b <thin </think> {", content="a < b <thin </think> {"),
    Answer(
        "hermes",
        '<tool_call>\n{"name": "weather", "arguments": ' + WEATHER + "}\n</tool_call>",
        calls=[IN_THE_CITY],
    ),
    Answer(
        "hermes",
        '<think>\nWell.\n</think>\n\nI look.\n<tool_call>\n{"arguments": '
        + WEATHER
        + ', "name": "weather"}\n</tool_call>\n<tool_call>\n{"name": "now", "arguments": {}}\n'
        "</tool_call>",
        reasoning="Well.",
        content="I look.",
        calls=[IN_THE_CITY, NOW],
    ),
    Answer("hermes", '<tool_call>{"name": "now"}</tool_call> Done.', content="Done.", calls=[NOW]),
    Answer(
        "minimax",
        '<think>\nWell.\n</think>\n\nI look.\n<minimax:tool_call>\n<invoke name="weather">\n'
        '<parameter name="city">New "York"\n</parameter>\n<parameter name="days">3</parameter>\n</invoke>\n'
        '<invoke name="now">\n</invoke>\n</minimax:tool_call>',
        reasoning="Well.",
        content="I look.",
        calls=[IN_THE_CITY, NOW],
    ),
    Answer(
        "deepseek 3.2",
        "<think>Well.</think>I look.\n\n<｜DSML｜function_calls>\n"
        '<｜DSML｜invoke name="weather">\n<｜DSML｜parameter name="city" string="true">New "York"\n'
        '</｜DSML｜parameter>\n<｜DSML｜parameter name="days" string="false">3</｜DSML｜parameter>\n'
        '</｜DSML｜invoke>\n<｜DSML｜invoke name="now">\n\n</｜DSML｜invoke>\n</｜DSML｜function_calls>',
        reasoning="Well.",
        content="I look.",
        calls=[IN_THE_CITY, NOW],
    ),
    Answer(
        "deepseek 3.2",
        '<｜DSML｜function_calls><｜DSML｜invoke name="weather">' + WEATHER + "\n</｜DSML｜invoke>"
        "</｜DSML｜function_calls>",
        calls=[IN_THE_CITY],
    ),
    Answer(
        "deepseek 4",
        '</think>\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name="now"/>\n<｜DSML｜invoke name="weather">\n'
        '<｜DSML｜parameter name="city" string="true">12</｜DSML｜parameter>\n'
        '<｜DSML｜parameter name="units" string="false">null</｜DSML｜parameter>\n'
        '<｜DSML｜parameter name="hours" string="false">[1, 2]</｜DSML｜parameter>\n'
        '<｜DSML｜parameter name="other" string="true">7</｜DSML｜parameter>\n'
        "</｜DSML｜invoke>\n</｜DSML｜tool_calls>",
        content="</think>",
        calls=[NOW, ("weather", {"city": "12", "units": None, "hours": [1, 2], "other": "7"})],
    ),
    Answer(
        "deepseek 4.1",
        "<think>Well.</think>I look.\n\n<｜DSML｜ calls>\n"
        '<｜DSML｜ invoke name="weather">\n<｜DSML｜ parameter name="city" string="true">New "York"\n'
        '</｜DSML｜ parameter>\n<｜DSML｜ parameter name="days" string="false">3</｜DSML｜ parameter>\n'
        '</｜DSML｜ invoke>\n<｜DSML｜ invoke name="now">\n\n</｜DSML｜ invoke>\n</｜DSML｜ calls>',
        reasoning="Well.",
        content="I look.",
        calls=[IN_THE_CITY, NOW],
    ),
    Answer(
        "minimax 3",
        "<mm:think>Well.</mm:think>I look.]<]minimax[>[<tool_call>\n"
        ']<]minimax[>[<invoke name="weather">]<]minimax[>[<city>New "York"\n]<]minimax[>[</city>'
        "]<]minimax[>[<days>3]<]minimax[>[</days>]<]minimax[>[</invoke>\n"
        ']<]minimax[>[<invoke name="now">]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>',
        reasoning="Well.",
        content="I look.",
        calls=[IN_THE_CITY, NOW],
    ),
    Answer(
        "minimax 3",
        ']<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name="weather">'
        "]<]minimax[>[<city>]<]minimax[>[</city>"
        "]<]minimax[>[<hours>]<]minimax[>[<item>1]<]minimax[>[</item>]<]minimax[>[<item>2]<]minimax[>[</item>"
        "]<]minimax[>[</hours>]<]minimax[>[<where>]<]minimax[>[<x>1.5]<]minimax[>[</x>]<]minimax[>[<tags>"
        "]<]minimax[>[<item>a]<]minimax[>[</item>]<]minimax[>[</tags>]<]minimax[>[</where>]<]minimax[>[</invoke>"
        "\n]<]minimax[>[</tool_call>",
        calls=[("weather", {"city": "", "hours": [1, 2], "where": {"x": 1.5, "tags": ["a"]}})],
    ),
    Answer(
        "kimi 3",
        "<|open|>think<|sep|>Well.<|close|>think<|sep|><|open|>response<|sep|>I look.<|close|>response<|sep|>"
        '<|open|>tools<|sep|><|open|>call tool="weather" index="1"<|sep|><|open|>argument key="city" '
        'type="string"<|sep|>New "York"\n<|close|>argument<|sep|><|open|>argument key="days" '
        'type="number"<|sep|>3<|close|>argument<|sep|><|close|>call<|sep|><|open|>call tool="now" index="2"'
        "<|sep|><|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|>",
        reasoning="Well.",
        content="I look.",
        calls=[IN_THE_CITY, NOW],
    ),
    Answer(
        "kimi 3",
        '<|open|>response<|sep|><|close|>response<|sep|><|open|>tools<|sep|><|open|>call tool="weather" '
        'index="1"<|sep|><|open|>json type="object"<|sep|>'
        + WEATHER
        + "<|close|>json<|sep|><|close|>call<|sep|>"
        "<|close|>tools<|sep|><|close|>message<|sep|>",
        calls=[IN_THE_CITY],
    ),
    Answer(
        "hunyuan 3",
        "<think:opensource>Well.</think:opensource>I look.<tool_calls:opensource>\n"
        "<tool_call:opensource>weather<tool_sep:opensource>\n<arg_key:opensource>city</arg_key:opensource>\n"
        '<arg_value:opensource>New "York"\n</arg_value:opensource>\n<arg_key:opensource>days'
        "</arg_key:opensource>\n<arg_value:opensource>3</arg_value:opensource>\n</tool_call:opensource>\n"
        "<tool_call:opensource>now<tool_sep:opensource>\n</tool_call:opensource>\n</tool_calls:opensource>",
        reasoning="Well.",
        content="I look.",
        calls=[IN_THE_CITY, NOW],
    ),
    Answer(
        "olmo 3",
        'I look.<function_calls>weather(city="New \\"York\\"\\n", days=3)\nnow()</function_calls>',
        content="I look.",
        calls=[IN_THE_CITY, NOW],
    ),
    Answer(
        "hermes",
        '<tool_call>\n{"name": "weather", "arguments": '
        + WEATHER
        + '\n</tool_call>\n<tool_call>\n{"arguments": {}, "name": "now"\n</tool_call>',
        calls=[IN_THE_CITY, NOW],
    ),
    Answer("hermes", '<tool_call>{"name": "weather", "arguments": ' + WEATHER, calls=[IN_THE_CITY]),
    Answer(
        "hermes",
        '<tool_call>[{"name": "now", "arguments": null}, {"name": "now", "arguments": "{}"}]',
        calls=[NOW, NOW],
    ),
    Answer(
        "hermes", '<tool_call>{"type": "function", "function": {"name": "now", "arguments": {}}}', calls=[NOW]
    ),
    Answer(
        "hermes on one line",
        '<tool_call>{"name": "weather", "arguments": ' + WEATHER + "}</tool_call>",
        calls=[IN_THE_CITY],
    ),
    Answer(
        "qwen coder",
        'Let me see.\n\n<tool_call>\n<function=weather>\n<parameter=city>\nNew "York"\n\n'
        "</parameter>\n<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>\n"
        "<tool_call>\n<function=now>\n</function>\n</tool_call>",
        content="Let me see.",
        calls=[IN_THE_CITY, NOW],
    ),
    Answer(
        "qwen coder",
        "<function=weather><parameter=city>12</parameter><parameter=units>12</parameter>"
        "<parameter=hours>[1, 2]</parameter><parameter=other>\n{'a': True}\n</parameter>"
        "</function>",
        calls=[("weather", {"city": "12", "units": "12", "hours": [1, 2], "other": {"a": True}})],
    ),
    Answer(
        "seed oss",
        "<seed:think>Well.</seed:think>Let me see.<seed:tool_call>\n<function=weather>\n"
        '<parameter=city>New "York"\n</parameter>\n<parameter=days>3</parameter>\n</function>'
        "\n</seed:tool_call>",
        reasoning="Well.",
        content="Let me see.",
        calls=[("weather", {"city": 'New "York"', "days": 3})],
    ),
    Answer(
        "deepseek",
        "<think>\nWell.\n</think>\n\nI look.<｜tool▁calls▁begin｜>"
        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n```json\n"
        + WEATHER
        + "\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n"
        "```json\n{}\n```<｜tool▁call▁end｜>"
        "<｜tool▁calls▁end｜>",
        reasoning="Well.",
        content="I look.",
        calls=[IN_THE_CITY, NOW],
    ),
    Answer(  # V3.1
        "deepseek",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>weather<｜tool▁sep｜>"
        + WEATHER
        + "<｜tool▁call▁end｜><｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁call▁end｜>"
        "<｜tool▁calls▁end｜>",
        calls=[IN_THE_CITY, NOW],
    ),
    Answer(
        "glm",
        "<think>Well.</think>Let me see.<tool_call>weather<arg_key>city</arg_key>"
        '<arg_value>New "York"\n</arg_value><arg_key>days</arg_key><arg_value>3</arg_value></tool_call>'
        "<tool_call>now</tool_call>",
        reasoning="Well.",
        content="Let me see.",
        calls=[IN_THE_CITY, NOW],
    ),
    Answer(  # 4.5
        "glm",
        "\n<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>12</arg_value>\n<arg_key>hours</arg_key>\n"
        "<arg_value>[1, 2]</arg_value>\n<arg_key>other</arg_key>\n<arg_value>{'a': True}</arg_value>\n"
        "</tool_call>",
        calls=[("weather", {"city": "12", "hours": [1, 2], "other": {"a": True}})],
    ),
    Answer("llama 3", '{"name": "weather", "parameters": ' + WEATHER + "}", calls=[IN_THE_CITY]),
    Answer(
        "llama 3",
        '<|python_tag|>{"name": "now", "parameters": {}}; {"name": "now", "parameters": {}}',
        calls=[NOW, NOW],
    ),
    Answer("llama 3", '{"type": "function", "name": "now", "parameters": {}}', calls=[NOW]),
    Answer(
        "llama 3",
        '{"name": "now", "parameters": {}}\n{"name": "weather", "parameters": ' + WEATHER + '} {"a": 1}',
        content=' {"a": 1}',
        calls=[NOW, IN_THE_CITY],
    ),
    Answer("llama 3", '{"name": "Ada", "age": 36}', content='{"name": "Ada", "age": 36}'),
    Answer("llama 3", '\n{"city": "Paris"}\n', content='\n{"city": "Paris"}\n'),
    Answer(
        "mistral",
        "[TOOL_CALLS]weather[ARGS]" + WEATHER + "[TOOL_CALLS]now[CALL_ID]abcdefghi[ARGS]{}",
        calls=[IN_THE_CITY, NOW],
    ),
    Answer(
        "mistral",
        "[THINK]Hm.[/THINK]Yes.[TOOL_CALLS]weather" + WEATHER,
        reasoning="Hm.",
        content="Yes.",
        calls=[IN_THE_CITY],
    ),
    Answer(
        "mistral with lists",
        '[TOOL_CALLS] [{"name": "weather", "arguments": '
        + WEATHER
        + ', "id": "VvvODy9mT"}, {"name": "now", "arguments": {}}]',
        calls=[IN_THE_CITY, NOW],
    ),
    Answer(
        "phi 4",
        '<|tool_call|>[{"name": "weather", "arguments": ' + WEATHER + "}]<|/tool_call|>",
        calls=[IN_THE_CITY],
    ),
    Answer("phi 4", '<|tool_call|>{"name": "now", "arguments": {}}<|/tool_call|>', calls=[NOW]),
    Answer("phi 4", '<|tool_call|>[{"name": "now", "arguments": {}]<|/tool_call|>', calls=[NOW]),
    Answer(
        "granite", '<|tool_call|>[{"name": "weather", "arguments": ' + WEATHER + "}]", calls=[IN_THE_CITY]
    ),
    Answer(
        "gemma 4",
        '<|channel>thought\nHm.\n<channel|>Yes.<|tool_call>call:weather{city:<|"|>New "York"\n'
        '<|"|>,days:3}<tool_call|><|tool_call>call:now{}<tool_call|>',
        reasoning="Hm.",
        content="Yes.",
        calls=[IN_THE_CITY, NOW],
    ),
    Answer(
        "lfm 2",
        "<|tool_call_start|>[weather(city='New \"York\"\\n', days=3), now()]<|tool_call_end|>Checking.",
        content="Checking.",
        calls=[IN_THE_CITY, NOW],
    ),
    Answer(
        "lfm 2",
        '<|tool_call_start|>weather(city="x", hours=[1, 2,], units=None)',
        calls=[("weather", {"city": "x", "hours": [1, 2], "units": None})],
    ),
    Answer(
        "harmony",
        "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Hello!",
        reasoning="Hm.",
        content="Hello!",
    ),
    Answer(
        "harmony",
        "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary "
        "to=functions.weather <|constrain|>json<|message|>" + WEATHER + "<|call|>",
        reasoning="Hm.",
        calls=[IN_THE_CITY],
    ),
    Answer(
        "harmony",
        "<|channel|>commentary<|message|>I look.<|end|><|start|>assistant to=functions.now"
        "<|channel|>commentary<|message|>{}",
        content="I look.",
        calls=[NOW],
    ),
    Answer("harmony", " to=functions.now<|channel|>commentary json<|message|>{}", calls=[NOW]),
    Answer(
        "muse",
        " to=self<|message|>Well.<|eom|><|start|>assistant to=user<|message|>I look.<|eom|><|start|>assistant"
        ' to=weather<|message|><atem:function_calls>\n<atem:invoke name="weather">\n'
        '<atem:parameter name="city">New "York"\n</atem:parameter>\n'
        '<atem:parameter name="days">3</atem:parameter>\n</atem:invoke>\n'
        "</atem:function_calls><|eom|><|start|>assistant to=now<|message|><atem:function_calls>\n"
        '<atem:invoke name="now">\n</atem:invoke>\n</atem:function_calls>',
        reasoning="Well.",
        content="I look.",
        calls=[IN_THE_CITY, NOW],
    ),
    Answer("muse", " to=user<|message|>Hello!", content="Hello!"),
    Answer("muse", " to=self<|message|>Hm.<|eom|><|start|>assistant to=us", reasoning="Hm."),
    Answer("muse", "Hello!", content="Hello!"),
    Answer(
        "kimi",
        "<think>Well.</think>I look.<|tool_calls_section_begin|><|tool_call_begin|>functions.weather:0"
        f"<|tool_call_argument_begin|>{WEATHER}<|tool_call_end|><|tool_call_begin|>functions.now:1"
        "<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>",
        reasoning="Well.",
        content="I look.",
        calls=[IN_THE_CITY, NOW],
    ),
    Answer(
        "command r",
        "<|START_THINKING|>Well.<|END_THINKING|><|START_ACTION|>[\n"
        f'    {{"tool_call_id": "0", "tool_name": "weather", "parameters": {WEATHER}}},\n'
        '    {"tool_call_id": "1", "tool_name": "now", "parameters": {}}\n]<|END_ACTION|>',
        reasoning="Well.",
        calls=[IN_THE_CITY, NOW],
    ),
    Answer(
        "command r",
        "<|START_THINKING|>Hm.<|END_THINKING|><|START_RESPONSE|>Hello!<|END_RESPONSE|>",
        reasoning="Hm.",
        content="Hello!",
    ),
    Answer(
        "nemotron nano 2",
        f'<think>\nWell.\n</think>\n\nI look.\n<TOOLCALL>[{{"name": "weather", "arguments": {WEATHER}}}, '
        '{"name": "now", "arguments": {}}]</TOOLCALL>',
        reasoning="Well.",
        content="I look.",
        calls=[IN_THE_CITY, NOW],
    ),
    Answer(
        "hunyuan",
        f'<think>\nWell.\n</think>\n<tool_calls>[{{"name": "weather", "arguments": {WEATHER}}}, '
        '{"name": "now", "arguments": {}}]</tool_calls>',
        reasoning="Well.",
        calls=[IN_THE_CITY, NOW],
    ),
    Answer(
        "hunyuan",
        "<think>\nHm.\n</think>\n<answer>\nHello!\n</answer>",
        reasoning="Hm.",
        content="Hello!",
    ),
    Answer(
        "ernie",
        "<think>\nWell.\n</think>\n\n<response>\nI look.\n</response>\n\n<tool_call>\n"
        f'{{"name": "weather", "arguments": {WEATHER}}}\n</tool_call>\n'
        '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>\n',
        reasoning="Well.",
        content="I look.",
        calls=[IN_THE_CITY, NOW],
    ),
    Answer(
        "qwen coder",
        f"<function=weather>{WEATHER}</function><function=now>{{}}</function>",
        calls=[IN_THE_CITY, NOW],
    ),
    Answer("harmony", "Hello!", content="Hello!"),
    Answer("harmony", "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|chan", reasoning="Hm."),
]

MALFORMED: list[tuple[str, str]] = [
    ("hermes", "<tool_call>oops</tool_call>"),
    ("hermes", 'Well: <tool_call>{"name": 3, "arguments": {}}</tool_call>'),
    ("hermes", '<tool_call>{"name": "", "arguments": {}}</tool_call>'),
    ("hermes", '<tool_call>{"name": "now", "arguments": [1]}</tool_call>'),
    ("hermes", '<tool_call>{"arguments": {}}</tool_call>'),
    ("hermes", '<tool_call>{"name": "now"</tool_call>'),
    ("hermes", "<tool_call>" + "[" * 5000),
    ("hermes", 'x \n <tool_call>\n{"name'),
    ("qwen coder", "<tool_call>\n<function=>\n</function>\n</tool_call>"),
    ("seed oss", "<seed:tool_call>\n<function=>\n</function>\n</seed:tool_call>"),
    ("deepseek", "<｜tool▁calls▁begin｜>now<｜tool▁calls▁end｜>"),
    ("deepseek", "<｜tool▁call▁begin｜>function<｜tool▁sep｜>now<｜tool▁call▁end｜>"),
    ("glm", "<tool_call>weather"),
    ("glm", "<tool_call><arg_key>city</arg_key><arg_value>Paris</arg_value></tool_call>"),
    ("glm", "<tool_call>weather<arg_value>Paris</arg_value></tool_call>"),
    ("llama 3", "<|python_tag|>print('hello')"),
    ("llama 3", '{"name": "nobody", "parameters": {}}'),
    ("mistral", "[TOOL_CALLS]weather"),
    ("phi 4", "<|tool_call|>weather<|/tool_call|>"),
    ("granite", "<|tool_call|>[]"),
    ("gemma 4", "<|tool_call>weather{}<tool_call|>"),
    ("lfm 2", "<|tool_call_start|>[weather('x')]<|tool_call_end|>"),
    ("muse", "<atem:function_calls>weather</atem:function_calls>"),
    ("kimi", "<|tool_calls_section_begin|>weather<|tool_calls_section_end|>"),
    ("command r", "<|START_ACTION|>weather<|END_ACTION|>"),
    ("nemotron nano 2", "<TOOLCALL>weather</TOOLCALL>"),
    ("hunyuan", "<tool_calls>[]</tool_calls>"),
]
"""Texts that look like calls and are none."""
