# ruff: noqa: E501, SIM905 - lines of text and word lists read better whole
"""Tool calls with open ends: known actions and made-up ones, any parameter names and values, tools that do not fit, several turns."""

from __future__ import annotations

import json
import re
from random import Random
from typing import Any, NamedTuple

from . import lexicon
from .actions import ACTIONS, Action
from .grammar import write
from .passages import _EVENTS, _FUN, _MONEY, _time
from .sample import Message, Sample, is_held_out
from .shapes import WIDER
from .tasks import DAYS, plural_of
from .tools import plain_turn, signature_key
from .words import invented_word

WHOLE = frozenset("int small percent big id count servings hours".split())  # slots that are whole numbers
_ROOMS = (
    "kitchen bedroom bathroom hall garden garage office attic cellar nursery library basement lobby".split()
)
_TODO = ["buy $food", "call $person", "water the plants", "feed the $creature", "pay the rent", "wash the $thing", "clean the $room", "visit $person", "bring the $thing", "book the hotel in $city", "send the $thing to $person", "take the pills", "fix the $thing", "go to the $place", "read the $thing", "meet $person at the $place", "pick up the $thing", "cancel the trip", "buy a $thing for $person"]  # fmt: skip
_MESSAGE = ["I will be late.", "see you on $day", "thank you for the $thing", "where is the $thing?", "happy birthday!", "dinner is at $time", "I miss you", "the meeting is on $day", "please call me", "I am at the $place", "we need $food", "the $creature is fine", "come to $city", "good luck", "all is well", "the $thing is broken", "bring $food, please", "can we meet at $time?", "yes, that is fine", "no, thank you", "I love you", "what a nice day"]  # fmt: skip
_PHRASES = ["good morning", "good night", "thank you", "where is the $place", "I like $food", "the $thing is $color", "how are you", "I am hungry", "see you soon", "my name is $person", "one $food, please", "the $creature sleeps", "$word", "$word", "$thing", "happy birthday", "I love you", "two $things", "it is cold", "excuse me", "where do you live", "I come from $city"]  # fmt: skip
_QUERIES = ["$thing", "$color $things", "cheap $things", "$things in $city", "how to fix a $thing", "$creature pictures", "a $color $creature", "best $food recipes", "$person", "history of $city", "$word", "a $creature in the $place", "hotels in $city", "$topic", "a $thing on a $thing2", "jobs in $city"]  # fmt: skip
_TOPICS = "sports politics football science music art space health money cars films history travel books nature games cooking chess weather robots".split()
_MEASURES = "meters feet miles kilometers inches kilos pounds grams ounces liters gallons cups hours minutes seconds".split()


def values(rng: Random) -> dict[str, str]:
    """A drawing of every slot."""
    two = rng.sample
    (city, city2), (money, money2), (measure, measure2) = [lexicon.anywhere(rng) for _ in "ab"], two(_MONEY, 2), two(_MEASURES, 2)  # fmt: skip
    while city2 == city:
        city2 = lexicon.anywhere(rng)
    thing, thing2 = two(lexicon.THINGS, 2)
    person = lexicon.anyone(rng)
    v = {
        "city": city, "city2": city2, "money": money, "money2": money2, "measure": measure, "measure2": measure2, "thing": thing, "thing2": thing2, "things": plural_of(thing), "person": person, "time": _time(rng) if rng.random() < 0.4 else f"{rng.randint(0, 23):02d}:{rng.randint(0, 59):02d}",
        "day": rng.choice([*DAYS, *DAYS, "today", "tomorrow"]), "date": f"20{rng.randint(20, 35)}-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}" if rng.random() < 0.5 else rng.choice(DAYS), "int": str(rng.randint(1, 99)), "small": str(rng.randint(2, 20)), "servings": str(rng.randint(2, 12)), "percent": str(rng.choice((rng.randint(0, 100), 10 * rng.randint(1, 10)))),
        "big": str(rng.choice((rng.randint(100, 999), rng.randint(1000, 99999)))), "id": str(rng.choice((rng.randint(1, 99), rng.randint(100, 99999)))), "room": rng.choice([*_ROOMS, *_ROOMS, "living room", "dining room", "guest room", rng.choice(lexicon.PLACES)]), "place": rng.choice(lexicon.PLACES), "food": rng.choice(lexicon.FOODS), "creature": rng.choice(lexicon.CREATURES), "color": rng.choice(lexicon.COLORS),
        "word": rng.choice([rng.choice(lexicon.COMMON), rng.choice(lexicon.COMMON), invented_word(rng)]), "language": rng.choice(lexicon.LANGUAGES), "topic": rng.choice(_TOPICS), "sport": rng.choice(_FUN), "unit": rng.choice(("celsius", "fahrenheit")), "count": str(rng.randint(2, 12)), "hours": str(rng.randint(2, 24)), "station": rng.choice([rng.choice(lexicon.COMMON).capitalize(), lexicon.anywhere(rng), rng.choice(lexicon.SURNAMES)]), "quality": rng.choice([*lexicon.QUALITIES, *_ROOMS, "front", "back", "left", "upper"]),
        "mail": f"{rng.choice([rng.choice(lexicon.FIRST_NAMES).lower(), invented_word(rng)])}@{rng.choice(('example.com', 'mail.com', 'post.org', 'home.net', 'example.org', invented_word(rng) + '.com'))}", "url": f"{rng.choice(('', '', 'www.', 'https://'))}{rng.choice([invented_word(rng), rng.choice(lexicon.COMMON)])}.{rng.choice(('com', 'org', 'net', 'de', 'io'))}",
        "file": f"{rng.choice([rng.choice(lexicon.COMMON), invented_word(rng), 'report', 'notes', 'photo' + str(rng.randint(1, 99))])}.{rng.choice('txt pdf md py csv json doc png jpg log'.split())}", "code": rng.choice([str(rng.randint(1000, 9999999)), f"{rng.choice('ABCDEFGHKLMNPRSTWXZ')}{rng.choice('ABCDEFGHKLMNPRSTWXZ')}{rng.randint(10, 99999)}", f"{rng.choice('ABCDEFGHK')}-{rng.randint(10, 9999)}"]),
        "ticker": rng.choice([*"AAPL MSFT IBM TSLA NVDA AMZN Apple Google Intel Nokia Siemens Toyota Shell".split(), invented_word(rng).capitalize(), invented_word(rng).upper()[:4]]), "door": rng.choice(["front door", "back door", "garage door", "garden gate", "cellar door", "kitchen door", "main gate", "side door", "door", "gate"]), "plant": rng.choice("roses tulips tomatoes lawns beans trees flowers herbs plants lilies".split()),
        "event": write(rng, rng.choice(["$e", "a $e", "$e with $n", "dinner with $n", "a visit of $n", "yoga", "the dentist", "lunch", "football"]), {"e": rng.choice(_EVENTS), "n": person}), "song": " ".join(w.capitalize() for w in rng.choice([[thing], [rng.choice(lexicon.QUALITIES), thing], ["the", rng.choice(lexicon.CREATURES)], [rng.choice(lexicon.IDEAS), "and", rng.choice(lexicon.IDEAS)], ["my", rng.choice(lexicon.IDEAS)], [invented_word(rng)]])),
        "code_line": f"print({rng.randint(1, 99)} {rng.choice('+-*')} {rng.randint(1, 99)})", "expr": f"{rng.randint(1, 9999)} {rng.choice('+-*/')} {rng.randint(1, 999)}",
    }  # fmt: skip
    for slot, choices in (("todo", _TODO), ("message", _MESSAGE), ("phrase", _PHRASES), ("query", _QUERIES)):
        v[slot] = write(rng, rng.choice(choices), v)
    return v


class Tool(NamedTuple):
    """A declared tool: its action, the declaration, and the parameter that each slot became."""

    kind: str
    action: Action
    declared: dict[str, Any]
    names: dict[str, str]
    optional: frozenset[str]


_ORDERS = "start stop close open lock check book cancel find show play list add update charge connect enable disable load mix park plant pause reserve scan search shut sort stir tune turn zip heat feed cook guard hire join visit read write count call".split()
_THINGS = "account address appointment channel class course device document door game garage gate house lesson letter meal order pump report room seat server shop song station story task team ticket train trip video window".split()
# made-up actions: how a parameter is named, and how a request says it
_FREE: dict[str, tuple[str, list[str]]] = {
    "place": ("place/where/location/spot", ["in the $place", "at the $place", "near the $place"]), "person": ("person/for/name/owner/customer", ["for $person", "with $person"]), "time": ("time/at/when", ["at $time"]), "day": ("day/date/weekday", ["on $day"]), "count": ("times/count/repeat/n", ["$count times"]), "color": ("color/colour/shade", ["in $color"]),
    "station": ("station/stop/at", ["at the $station station", "at $station station"]), "hours": ("hours/duration/hours_long", ["for $hours hours"]), "city": ("city/town/location", ["in $city"]), "int": ("minutes/duration/length", ["for $int minutes"]), "word": ("name/title/label", ["called $word", "with the name $word"]), "food": ("with/ingredient/extra", ["with $food"]), "code": ("code/id/number/key", ["with the code $code", "number $code"]), "language": ("language/lang", ["in $language"]), "percent": ("percent/level", ["to $percent percent"]),
}  # fmt: skip


def _made_up(rng: Random) -> tuple[str, Action]:
    """An action that no table has: a verb, a thing and up to three parameters."""
    verb = rng.choice(list(lexicon.ACTS) if rng.random() < 0.7 else _ORDERS)
    thing = rng.choice([*lexicon.THINGS, *lexicon.CREATURES, *_THINGS, *(w for w in WIDER if " " not in w)])
    if rng.random() < 0.15:
        thing = invented_word(rng)
    slots = rng.sample(list(_FREE), rng.choice((1, 1, 2, 2, 3)))
    slots = [s for s in slots if not (s == "city" and "place" in slots)]
    parameters, said = [], []
    which = ""
    if rng.random() < 0.4:  # the thing itself is a parameter: which one
        narrow = WIDER.get(thing)
        which = rng.choice(narrow) if narrow else f"$quality {thing}"
        parameters.append(f"which:{thing}/which/name/{thing}_name/what")
        slots = slots[: rng.choice((0, 0, 1, 2))]
    for slot in slots:
        maybe = "?" if rng.random() < 0.2 else ""
        phrase = rng.choice(_FREE[slot][1])
        parameters.append(f"{slot}{maybe}:{_FREE[slot][0]}")
        said.append(f"[ {phrase}]" if maybe else f" {phrase}")
    name = f"{verb}_{thing}"
    names = [
        name,
        f"{verb}_{thing}",
        f"{thing}_{verb}",
        f"{verb}{thing.capitalize()}",
        verb,
        invented_word(rng),
    ]
    about = rng.choice([f"{verb} a {thing}", f"{verb} the {thing}", f"tool to {verb} {plural_of(thing)}", f"{verb} a {thing} of the house"])  # fmt: skip
    shown = "$which" if which else thing
    asks = [f"!{verb} {{the|a|my|our|this}} {shown}{''.join(rng.sample(said, len(said)))}" for _ in range(3)]
    asks += [
        f"I {{want|need|would like}} to {verb} {{the|a|my}} {shown}{''.join(said)}",
        f"I {{want|need}} {{the|a}} {shown}{''.join(said)}",
        f"{{let's|we should|I must|time to}} {verb} the {shown}{''.join(said)}",
    ]
    return f"{verb} {thing}", Action(" ".join(names), about[0].upper() + about[1:], " ".join(parameters), asks, "Done.", which=which)  # fmt: skip


def declare(rng: Random, kind: str, action: Action) -> Tool:
    """The action as a tool in the OpenAI shape, with one of its names and any of its parameter names."""
    name = rng.choice(action.names.split())
    draw = rng.random()
    if draw < 0.1:
        name = f"{name}_{rng.choice([invented_word(rng), 'v2', 'tool', 'api'])}"
    elif draw < 0.25 and "_" in name:
        first, *rest = name.split("_")
        name = first + "".join(part.capitalize() for part in rest)
    elif draw < 0.3:
        name = name.replace("_", rng.choice(("-", "."))) if "_" in name else name
    properties: dict[str, Any] = {}
    names: dict[str, str] = {}
    optional = set()
    for parameter in action.parameters.split():
        slot, choices = parameter.split(":")
        if slot.endswith("?"):
            slot = slot[:-1]
            if rng.random() < 0.4:  # this tool does not have it
                continue
            optional.add(slot)
        free = [c for c in choices.split("/") if c not in properties]
        called = rng.choice(free) if rng.random() < 0.9 else f"{rng.choice(free)}_{rng.choice(('name', 'value', 'text', 'x', '1'))}"  # fmt: skip
        names[slot] = called
        if slot == "unit":
            properties[called] = {"type": "string", "enum": ["celsius", "fahrenheit"]}
        else:
            properties[called] = {
                "type": rng.choice(("integer", "integer", "number")) if slot in WHOLE else "string"
            }
        if rng.random() < 0.12:
            properties[called]["description"] = rng.choice(["The " + called.replace("_", " ") + ".", called.capitalize() + "."])  # fmt: skip
    parameters = {"type": "object", "properties": properties, "required": [n for s, n in names.items() if s not in optional]}  # fmt: skip
    about = write(rng, rng.choice(action.about.split("|")) if "{" not in action.about else action.about)
    function = {"name": name, "description": about + rng.choice([".", ".", ""]), "parameters": parameters}
    return Tool(kind, action, {"type": "function", "function": function}, names, frozenset(optional))


_POLITE = ["", "", "", "", "", "please ", "please ", "can you ", "could you ", "would you ", "I want you to ", "I need you to ", "hey, ", "hi, ", "Ember, ", "go ahead and ", "I would like you to ", "now ", "can you please ", "could you please ", "ok, ", "will you ", "quickly ", "you should "]  # fmt: skip


def request(rng: Random, tool: Tool, drawn: dict[str, str]) -> tuple[str, dict[str, Any]]:
    """A request for the tool as someone may type it, and the call that it leads to."""
    ask = rng.choice(tool.action.asks)
    said = set(tool.names) - tool.optional

    def optional(match: re.Match[str]) -> str:
        slots = re.findall(r"\$([a-z_]+2?)", match[1])
        if not set(slots) <= set(tool.names) or rng.random() < 0.5:
            return ""
        said.update(slots)
        return match[1]

    ask = re.sub(r"\[([^]]*)\]", optional, ask)
    if tool.action.which:
        drawn["which"] = write(rng, tool.action.which, drawn)
    order = ask.startswith("!")
    text = write(rng, ask.lstrip("!"), drawn)
    if order:
        polite = rng.choice(_POLITE)
        text = polite + text
        if polite.startswith(("can", "could", "would", "will")) and text[-1] not in ".!?":
            text += rng.choice(["?", "?", ""])
    if not text.endswith(("?", ".", "!")):
        text += rng.choice(["", ".", ".", "!" if order else ".", ", please", " please", ", thanks" if order else "."])  # fmt: skip
    if rng.random() < 0.7 and text[0].islower():
        text = text[0].upper() + text[1:]
    if rng.random() < 0.05:
        text = rng.choice(["Hello! ", "Hi. ", "Good morning! ", "I have a request. ", "Thanks! "]) + text
    arguments = {
        name: int(drawn[slot]) if slot in WHOLE else drawn[slot]
        for slot, name in tool.names.items()
        if slot in said
    }
    return text, {"type": "function", "function": {"name": tool.declared["function"]["name"], "arguments": arguments}}  # fmt: skip


# actions of which one could do the other's work
_ALIKE = [{"calculator", "units", "currency"}, {"email", "message", "call"}, {"light_on", "dim", "device_off", "robot"}, {"music", "lyrics", "rate"}, {"event", "reminder", "alarm", "agenda", "note"}, {"timer", "alarm", "run"}, {"search", "news", "define", "population", "movie", "places", "recipe", "stock"}, {"directions", "distance", "train", "flight", "taxi"}, {"shopping", "order_food", "recipe", "loan"}, {"time", "alarm", "weather"}, {"file", "delete", "screenshot", "code"}, {"user", "add_user"}, {"places", "park", "hotel"}, {"sql", "search"}, {"translate", "define"}, {"heating", "dim", "weather"}, {"water", "timer"}, {"feed", "shopping"}]  # fmt: skip
_SYSTEMS = "{You are Ember, a small helpful assistant.|You are a helpful assistant.|You are a helpful assistant with tools.|Use the tools when they help.|You can use tools.|Call a tool only if it fits.|You are an assistant that can call functions.|Use a tool if you need one.|Help the user.|You are a {home|travel|office|kitchen|personal|smart} assistant.|Be brief.|Use the functions below.|You have access to tools.}"
_FAILED = ["not found", "unknown", "no connection", "not allowed", "too busy", "timeout", "closed", "no such name"]  # fmt: skip
_CANNOT = ["I am sorry, I cannot do that.", "I cannot do that: none of my tools is for it."]


def _pick(rng: Random) -> list[Tool]:
    """One to five tools that are not in each other's way."""
    while True:
        kinds: dict[str, Action] = {}
        for _ in range(rng.choice((1, 1, 2, 2, 3, 3, 4, 5))):
            if rng.random() < 0.62:
                kind = rng.choice(list(ACTIONS))
                kinds[kind] = ACTIONS[kind]
            else:
                kind, action = _made_up(rng)
                kinds[kind] = action
        if any(len(group & set(kinds)) > 1 for group in _ALIKE):
            continue
        tools = [declare(rng, kind, action) for kind, action in kinds.items()]
        names = {t.declared["function"]["name"] for t in tools}
        words = [word for kind in kinds for word in kind.split()]
        if len(names) == len(tools) and len(set(words)) == len(words):
            return tools


def _after(rng: Random, tool: Tool, drawn: dict[str, str], call: dict[str, Any]) -> list[Message]:
    """The tool's result and what ember makes of it."""
    draw = rng.random()
    if draw < 0.12:
        why = rng.choice(_FAILED)
        return [{"role": "tool", "content": json.dumps({"error": why})}, {"role": "assistant", "content": f"I am sorry, that did not work: {why}."}]  # fmt: skip
    if tool.action.result:
        result = tool.action.result.replace("{", "\x01").replace("}", "\x02")
        result = write(rng, result, drawn).replace("\x01", "{").replace("\x02", "}")
    else:
        result = rng.choice(['{"status": "ok"}', '{"ok": true}', '{"status": "done"}', '{"success": true}', "ok", '{"result": "ok"}'])  # fmt: skip
    text = write(rng, tool.action.done, drawn)
    if not tool.action.result and tool.action.done == "Done.":
        field = rng.choice(lexicon.IDEAS)
        if rng.random() < 0.6:
            value = rng.choice([rng.choice(lexicon.COMMON), drawn["big"], drawn["person"], drawn["time"]])
            result, text = json.dumps({field: int(value) if value.isdigit() else value}), f"Done. The {field} is {value}."  # fmt: skip
    return [{"role": "tool", "content": result}, {"role": "assistant", "content": text[0].upper() + text[1:]}]


_AND = {"city": ["in $city", "$city", "for $city"], "room": ["the $room", "in the $room"], "food": ["$food", "with $food"], "person": ["$person"], "thing": ["the $thing"], "word": ["$word"], "file": ["$file"], "creature": ["the $creature"], "topic": ["$topic"], "song": ["$song"], "day": ["on $day", "$day"], "id": ["$id"], "code": ["$code"]}  # fmt: skip


def request_chat(rng: Random) -> Sample:
    """One to three requests for declared tools, their results, and questions that no tool is for."""
    tools = _pick(rng)
    kinds = [t.kind for t in tools]
    held = any(is_held_out(signature_key(t.declared)) for t in tools)
    messages: list[Message] = []
    if rng.random() < 0.35:
        messages.append({"role": "system", "content": write(rng, _SYSTEMS)})

    def ask_plain() -> None:
        nonlocal held
        turn = plain_turn(rng, kinds)
        held = held or turn.held_out
        messages.extend([{"role": "user", "content": turn.ask}, {"role": "assistant", "content": turn.answer}])  # fmt: skip

    if rng.random() < 0.15:
        ask_plain()
    if rng.random() < 0.06:  # a request for a tool that is not there
        absent = rng.choice([k for k in ACTIONS if k not in ("calculator", "define", "search", "population") and not any(k in g and g & set(kinds) for g in _ALIKE)])  # fmt: skip
        if absent not in kinds:
            text, _ = request(rng, declare(rng, absent, ACTIONS[absent]), values(rng))
            messages += [{"role": "user", "content": text}, {"role": "assistant", "content": rng.choice(_CANNOT)}]  # fmt: skip
    before: Tool | None = None
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3))):
        tool = before if before and rng.random() < 0.3 else rng.choice(tools)
        drawn = values(rng)
        text, call = request(rng, tool, drawn)
        if tool is before and len(call["function"]["arguments"]) == 1 and rng.random() < 0.4:
            slot = next(s for s, n in tool.names.items() if n in call["function"]["arguments"])
            if slot in _AND:
                text = write(rng, "{And|What about|How about|And what about|Now|The same for|And now|Also} ", drawn) + " " + write(rng, rng.choice(_AND[slot]), drawn) + rng.choice("?.?")  # fmt: skip
        before = tool
        messages += [{"role": "user", "content": text}, {"role": "assistant", "content": "", "tool_calls": [call]}]  # fmt: skip
        if rng.random() < 0.3:
            break
        messages += _after(rng, tool, drawn, call)
        if rng.random() < 0.15:
            ask_plain()
    return Sample("tools", messages=messages, tools=[t.declared for t in tools], hint={"held_out": str(int(held))})  # fmt: skip
