# ruff: noqa: E501, SIM905 - lines of text and word lists read better whole
"""Tool calling: tools with many names and signatures, a request, the call, its result and the answer."""

from __future__ import annotations

import json
from dataclasses import dataclass
from random import Random
from typing import Any

from .facts import CAPITALS
from .grammar import write
from .sample import Sample, is_held_out
from .tasks import DAYS, fact
from .words import NOUNS, SLOTS, first_name, invented_word


@dataclass(frozen=True)
class Kind:
    """A sort of tool. ``params`` maps a slot to (names it may have, JSON type); ``asks`` use the slots.

    A slot in ``optional`` is part of the call only where the request names it (the asks that hold its ``$slot``).
    ``results`` pairs a JSON result with the answer it leads to.
    """

    names: list[str]
    descriptions: list[str]
    params: dict[str, tuple[list[str], str]]
    asks: list[str]
    results: list[tuple[str, str]]
    optional: tuple[str, ...] = ()


_CITY = (["city", "location", "place", "town", "where"], "string")
_WORD = (["text", "query", "words", "input", "content"], "string")

KINDS: dict[str, Kind] = {
    "weather": Kind(
        ["get_weather", "weather", "fetch_weather", "current_weather", "weather_report", "getWeather", "check_weather"],
        ["Get the weather in a city.", "The current weather of a place.", "Look up today's weather."],
        {"c": _CITY, "u": (["unit", "units", "scale"], "celsius|fahrenheit")},
        ["What is the weather {like |}in $c?", "How is the weather in $c{ today|}?", "Is it raining in $c?", "What is the temperature in $c in $u?", "Tell me the weather in $c{, please|}.", "Do I need a coat in $c?", "Weather in $c in $u, please."],
        [('{"temperature": $i, "sky": "$sky"}', "It is $i degrees and $sky in $c."), ('{"sky": "$sky"}', "It is $sky in $c.")],
        ("u",),
    ),
    "time": Kind(
        ["get_time", "current_time", "time_in", "world_clock", "getTime", "local_time"],
        ["Get the current time in a city.", "What time it is in a place."],
        {"c": _CITY},
        ["What time is it in $c?", "What's the time in $c{ now|}?", "Tell me the time in $c.", "How late is it in $c?"],
        [('{"time": "$t"}', "It is $t in $c.")],
    ),
    "calculator": Kind(
        ["calculator", "calculate", "compute", "math", "evaluate", "do_math"],
        ["Evaluate an arithmetic expression.", "Calculate the result of an expression.", "A calculator."],
        {"x": (["expression", "formula", "input", "sum"], "string")},
        ["What is $x?", "Calculate $x.", "How much is $x?", "$x", "Compute $x{, please|}."],
        [('{"result": $big}', "$x = $big."), ("$big", "$x = $big.")],
    ),
    "email": Kind(
        ["send_email", "send_mail", "email", "write_email", "sendEmail", "mail_to"],
        ["Send an email to someone.", "Send a mail."],
        {"n": (["to", "recipient", "name", "receiver"], "string"), "m": (["message", "body", "text", "content"], "string")},
        ["Send an email to $n: $m", "Write to $n: $m", "{Email|Mail} $n and say: $m", "Send $n this message: $m"],
        [('{"status": "sent"}', "I have sent the email to $n."), ('{"status": "failed"}', "I am sorry, the email to $n could not be sent.")],
    ),
    "timer": Kind(
        ["set_timer", "timer", "start_timer", "setTimer", "countdown", "new_timer"],
        ["Set a timer.", "Start a timer for some minutes."],
        {"i": (["minutes", "duration", "length", "time_in_minutes"], "integer")},
        ["Set a timer for $i minutes.", "Wake me in $i minutes.", "Start a $i minute timer.", "Timer, $i minutes{, please|}.", "Remind me in $i minutes."],
        [('{"status": "started"}', "The timer is set for $i minutes."), ('{"ok": true}', "The timer is set for $i minutes.")],
    ),
    "alarm": Kind(
        ["set_alarm", "alarm", "wake_me", "setAlarm", "add_alarm"],
        ["Set an alarm.", "Set an alarm at a time of the day."],
        {"t": (["time", "at", "clock_time", "when"], "string"), "d": (["day", "weekday", "date"], "string")},
        ["Set an alarm for $t.", "Wake me up at $t.", "Set an alarm for $d at $t.", "Alarm on $d at $t{, please|}."],
        [('{"status": "ok"}', "The alarm is set for $t.")],
        ("d",),
    ),
    "reminder": Kind(
        ["add_reminder", "remind", "create_reminder", "set_reminder", "addReminder"],
        ["Create a reminder.", "Remind the user of something on a day."],
        {"w": (["task", "what", "text", "title", "reminder"], "string"), "d": (["day", "when", "weekday", "date"], "string")},
        ["Remind me to $w on $d.", "On $d, remind me to $w.", "Add a reminder for $d: $w", "Do not let me forget to $w on $d."],
        [('{"status": "saved"}', "I will remind you to $w on $d.")],
    ),
    "light": Kind(
        ["set_light", "light", "switch_light", "control_light", "setLight", "lamp"],
        ["Turn a light on or off.", "Switch the light of a room."],
        {"r": (["room", "place", "area", "name"], "string"), "o": (["state", "value", "mode", "status"], "on|off")},
        ["Turn $o the light in the $r.", "Switch $o the $r light.", "Light $o in the $r{, please|}.", "Turn the $r light $o."],
        [('{"ok": true}', "The light in the $r is $o now.")],
    ),
    "music": Kind(
        ["play_music", "play", "play_song", "start_music", "playSong", "music_player"],
        ["Play a song.", "Play music by its title."],
        {"s": (["song", "title", "name", "track"], "string")},
        ["Play $s.", "I want to hear $s.", "Put on $s{, please|}.", "Play the song $s."],
        [('{"status": "playing"}', "Now playing $s."), ('{"error": "not found"}', "I am sorry, I could not find $s.")],
    ),
    "search": Kind(
        ["search", "web_search", "find", "lookup", "search_web", "look_up"],
        ["Search the web.", "Look something up on the internet."],
        {"q": (["query", "q", "term", "keywords", "search_term"], "string")},
        ["Search for $q.", "Look up $q.", "Find something about $q.", "Search the web for $q{, please|}.", "Google $q."],
        [('{"results": $n2}', "I found $n2 results for $q.")],
    ),
    "translate": Kind(
        ["translate", "translate_text", "translator", "get_translation", "translateText"],
        ["Translate text into a language.", "Translate words."],
        {"p": _WORD, "l": (["language", "target", "to", "target_language"], "string")},
        ["Translate \"$p\" into $l.", "How do you say \"$p\" in $l?", "What is \"$p\" in $l?", "Say \"$p\" in $l."],
        [('{"translation": "$inv"}', "In $l, \"$p\" is \"$inv\".")],
    ),
    "convert": Kind(
        ["convert_currency", "convert_money", "exchange", "currency_converter", "exchange_money"],
        ["Convert money from one currency to another.", "Exchange an amount of money."],
        {"i": (["amount", "value", "sum", "quantity"], "number"), "f": (["from", "source", "from_currency"], "string"), "g": (["to", "target", "to_currency"], "string")},
        ["Convert $i $f to $g.", "How much is $i $f in $g?", "Change $i $f into $g.", "What are $i $f in $g?"],
        [('{"result": $n2}', "$i $f are $n2 $g.")],
    ),
    "book": Kind(
        ["book_table", "reserve_table", "reservation", "bookTable", "make_reservation"],
        ["Book a table in a restaurant.", "Reserve a table."],
        {"k": (["people", "guests", "persons", "party_size"], "integer"), "d": (["day", "date", "weekday", "when"], "string"), "t": (["time", "hour", "at"], "string")},
        ["Book a table for $k on $d at $t.", "Reserve a table for $k people on $d at $t.", "A table for $k, $d, $t{, please|}.", "Book a table for $k on $d."],
        [('{"status": "booked"}', "Your table for $k on $d is booked."), ('{"status": "full"}', "I am sorry, there is no free table on $d.")],
        ("t",),
    ),
    "stock": Kind(
        ["get_stock", "check_stock", "inventory", "count_items", "in_stock"],
        ["Look up how many of an item are in stock.", "Check the inventory for an item."],
        {"h": (["item", "product", "article", "name"], "string")},
        ["How many of the item $h do we have?", "Is the $h in stock?", "Check the stock for $h.", "Do we have a $h?"],
        [('{"count": $n2}', "There are $n2 in stock."), ('{"count": 0}', "There are none in stock.")],
    ),
    "dice": Kind(
        ["roll_dice", "dice", "throw_dice", "rollDice", "random_roll"],
        ["Roll a die.", "Roll a die with some sides."],
        {"k": (["sides", "faces", "max", "n"], "integer")},
        ["Roll a die with $k sides.", "Roll a $k sided die.", "Throw a die with $k sides{, please|}."],
        [('{"roll": $one}', "You rolled a $one.")],
    ),
    "call": Kind(
        ["call", "make_call", "phone", "dial", "call_contact"],
        ["Call someone on the phone.", "Start a phone call."],
        {"n": (["name", "contact", "person", "who"], "string")},
        ["Call $n.", "Phone $n{, please|}.", "I want to talk to $n on the phone.", "Ring $n."],
        [('{"status": "calling"}', "Calling $n now."), ('{"status": "busy"}', "I am sorry, the line of $n is busy.")],
    ),
    "directions": Kind(
        ["get_directions", "directions", "route", "find_route", "navigate"],
        ["Find the way from one place to another.", "Get a route."],
        {"c": (["from", "start", "origin", "source"], "string"), "e": (["to", "destination", "end", "target"], "string")},
        ["How do I get from $c to $e?", "Show me the way from $c to $e.", "Route from $c to $e{, please|}.", "How far is it from $c to $e?"],
        [('{"distance_km": $n2}', "It is $n2 kilometers from $c to $e.")],
    ),
    "add": Kind(
        ["add", "add_numbers", "sum_of", "plus", "addNumbers"],
        ["Add two numbers.", "The sum of two numbers."],
        {"i": (["a", "x", "first", "left"], "integer"), "k": (["b", "y", "second", "right"], "integer")},
        ["Add $i and $k.", "What is $i plus $k?", "What is the sum of $i and $k?", "$i + $k", "How much is $i + $k?"],
        [("$big", "The result is $big."), ('{"result": $big}', "The result is $big.")],
    ),
    "note": Kind(
        ["save_note", "add_note", "take_note", "write_note", "note"],
        ["Save a note.", "Write down a note."],
        {"w": (["text", "note", "content", "body"], "string")},
        ["Note: $w", "Write down: $w", "Save a note: $w", "Take a note that says: $w"],
        [('{"status": "saved"}', "I have saved the note.")],
    ),
}  # fmt: skip

_CITIES = [*CAPITALS.values(), "Hamburg", "Boston", "Chicago", "Sydney", "Milan", "New York"]
_TASKS = [
    "buy milk",
    "call the doctor",
    "water the plants",
    "feed the cat",
    "pay the rent",
    "wash the car",
    "clean the kitchen",
    "bake a cake",
    "visit $n",
    "return the $h",
    "meet $n",
    "bring the $h",
    "buy a $h",
]
_MESSAGES = [
    "I will be late.",
    "See you on $d.",
    "Thank you for the $h.",
    "Where is the $h?",
    "Happy birthday!",
    "The $h is ready.",
    "Please call me.",
    "Dinner is at $t.",
    "I miss you.",
    "The meeting is on $d.",
]


def _values(rng: Random) -> dict[str, str]:
    v = {
        "c": rng.choice(_CITIES), "u": rng.choice(("celsius", "fahrenheit")), "n": first_name(rng), "d": rng.choice(DAYS),
        "t": f"{rng.randint(0, 23):02d}:{rng.choice(('00', '15', '30', '45'))}", "i": str(rng.randint(1, 99)), "k": str(rng.randint(2, 20)),
        "r": rng.choice([*"kitchen bedroom bathroom hall garden garage office attic cellar".split(), "living room"]), "o": rng.choice(("on", "off")),
        "s": write(rng, "{$n Song|Song of the $n|The $m $n|My $m $n}", {"n": rng.choice(NOUNS).capitalize(), "m": rng.choice(SLOTS["color"]).capitalize()}),
        "q": write(rng, "{$n|$m $n|$n in $c|how to find a $n|cheap $n|pictures of a $n}", {"n": rng.choice(NOUNS), "m": rng.choice(SLOTS["color"]), "c": rng.choice(_CITIES)}),
        "p": write(rng, "{$n|good morning|thank you|I like the $n|the $m $n|where is the $n}", {"n": rng.choice(NOUNS), "m": rng.choice(SLOTS["color"])}),
        "l": rng.choice("French German Spanish Italian Polish Greek Dutch Swedish Turkish Japanese".split()), "h": rng.choice(NOUNS),
        "f": rng.choice(("euros", "dollars", "pounds")), "g": rng.choice(("yen", "francs", "pesos", "rupees")), "one": str(rng.randint(1, 6)),
        "inv": invented_word(rng), "n2": str(rng.randint(2, 900)), "big": str(rng.randint(100, 999999)), "sky": rng.choice("sunny rainy cloudy windy foggy snowy".split()),
    }  # fmt: skip
    if rng.random() < 0.1:
        v["c"] = invented_word(rng).capitalize()
    v["e"] = rng.choice([city for city in _CITIES if city != v["c"]])
    v["w"], v["m"] = write(rng, rng.choice(_TASKS), v), write(rng, rng.choice(_MESSAGES), v)
    a, b = rng.randint(1, 9999), rng.randint(1, 999)
    v["x"] = (
        f"{a} {rng.choice('+-*/')} {b}"
        if rng.random() < 0.7
        else f"({rng.randint(1, 99)} {rng.choice('+-')} {rng.randint(1, 99)}) * {rng.randint(2, 99)}"
    )
    return v


def _declare(rng: Random, kind: Kind) -> tuple[dict[str, Any], dict[str, str]]:
    """A tool in the OpenAI shape, and the parameter name of each slot."""
    name = rng.choice(kind.names)
    if rng.random() < 0.15:
        name = rng.choice([invented_word(rng), f"{invented_word(rng)}_{name}", f"{name}_{rng.randint(1, 9)}"])
    names: dict[str, str] = {}
    for slot, (choices, _) in kind.params.items():
        names[slot] = rng.choice([c for c in choices if c not in names.values()])
        if rng.random() < 0.05:
            names[slot] = invented_word(rng)
    properties: dict[str, Any] = {}
    for slot, (_, type_) in kind.params.items():
        properties[names[slot]] = (
            {"type": "string", "enum": type_.split("|")} if "|" in type_ else {"type": type_}
        )
    required = [names[slot] for slot in kind.params if slot not in kind.optional]
    parameters = {"type": "object", "properties": properties, "required": required}
    return {
        "type": "function",
        "function": {"name": name, "description": rng.choice(kind.descriptions), "parameters": parameters},
    }, names


def signature_key(tool: dict[str, Any]) -> str:
    """A tool's name and parameter names: what a held-out tool differs in from all those trained on."""
    function = tool["function"]
    return f"tool {function['name']}({', '.join(function['parameters']['properties'])})"


def _call(
    rng: Random, kind: Kind, tool: dict[str, Any], names: dict[str, str]
) -> tuple[str, dict[str, Any], dict[str, str]]:
    """A request, the call it leads to, and the values in it."""
    values = _values(rng)
    template = rng.choice(kind.asks)
    ask = write(rng, template, values)
    arguments: dict[str, Any] = {}
    for slot, name in names.items():
        if slot in kind.optional and f"${slot}" not in template:
            continue
        arguments[name] = int(values[slot]) if kind.params[slot][1] in ("integer", "number") else values[slot]
    return (
        ask,
        {"type": "function", "function": {"name": tool["function"]["name"], "arguments": arguments}},
        values,
    )


def tool_chat(rng: Random) -> Sample:
    """A request with tools declared: a call, perhaps its result and the answer; or no call where no tool fits."""
    chosen = rng.sample(list(KINDS), rng.choice((1, 1, 2, 3, 3, 4)))
    declared = [_declare(rng, KINDS[kind]) for kind in chosen]
    tools = [tool for tool, _ in declared]
    messages: list[dict[str, Any]] = []
    if rng.random() < 0.4:
        messages.append(
            {
                "role": "system",
                "content": rng.choice(
                    [
                        "You are Ember, a small helpful assistant.",
                        "You are a helpful assistant.",
                        "Use the tools when they help.",
                    ]
                ),
            }
        )
    held = any(is_held_out(signature_key(tool)) for tool in tools)
    if {"calculator", "add"} <= set(chosen) or len({t["function"]["name"] for t in tools}) < len(tools):
        return tool_chat(rng)
    if rng.random() < 0.15 and not {"calculator", "add"} & set(chosen):
        turn = fact(rng)
        messages += [{"role": "user", "content": turn.ask}, {"role": "assistant", "content": turn.answer}]
        return Sample(
            "tools", messages=messages, tools=tools, hint={"held_out": str(int(held or turn.held_out))}
        )
    index = rng.randrange(len(chosen))
    kind, (tool, names) = KINDS[chosen[index]], declared[index]
    ask, call, values = _call(rng, kind, tool, names)
    calls = [call]
    if chosen[index] in ("weather", "time") and rng.random() < 0.15 and "$u" not in ask:
        other = rng.choice([c for c in _CITIES if c != values["c"]])
        ask = f"What is the {chosen[index]} in {values['c']} and in {other}?"
        calls = [
            {
                "type": "function",
                "function": {"name": tool["function"]["name"], "arguments": {names["c"]: city}},
            }
            for city in (values["c"], other)
        ]
    messages += [{"role": "user", "content": ask}, {"role": "assistant", "content": "", "tool_calls": calls}]
    if len(calls) == 1 and rng.random() < 0.45:
        result, answer = rng.choice(kind.results)
        messages += [
            {
                "role": "tool",
                "content": write(rng, result.replace("{", "\x01").replace("}", "\x02"), values)
                .replace("\x01", "{")
                .replace("\x02", "}"),
            }
        ]
        text = write(rng, answer, values)
        messages += [{"role": "assistant", "content": text[0].upper() + text[1:]}]
    return Sample(
        "tools", messages=messages, tools=tools, hint={"held_out": str(int(held)), "json": json.dumps(calls)}
    )
