# ruff: noqa: E501 - lines of text read better whole
"""Items of several words taken out of free text: steps, errands, goods with amounts, things carried, as a list or as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random

from .deeds import DEEDS
from .grammar import write
from .sample import Message, Sample, Turn, say
from .scene_words import Scene
from .tasks import in_words, listing
from .typed import around

SHOW: dict[str, Callable[[list[str]], str]] = {
    "numbered": lambda x: "\n".join(f"{i}. {t}" for i, t in enumerate(x, 1)),
    "bullets": lambda x: "\n".join(f"- {t}" for t in x),
    "lines": lambda x: "\n".join(x),
    "commas": lambda x: ", ".join(x),
    "json": lambda x: json.dumps(x, ensure_ascii=False),
}  # fmt: skip
_HOW = {
    "numbered": "{numbered|as a numbered list|with numbers|in a numbered list|as an ordered list|with a number each}",
    "bullets": "{as bullet points|as bullets|as a bullet list|bulleted|with bullets|with dashes|as a bulleted list|with a dash each}",
    "lines": "{one per line|each on its own line|one under the other|line by line|on separate lines}",
    "commas": "{with commas|separated by commas|comma separated}",
    "json": "{as a JSON array|as a JSON list|as JSON|in a JSON array}",
}  # fmt: skip
_SYSTEM = {
    "numbered": "{Lists are numbered.|Number the items of every list.|You turn texts into numbered lists.|Write numbered lists.}",
    "bullets": "{Lists have bullets.|Put a dash before each item.|You turn texts into bullet lists.|Write bullet lists.|Use dashes for lists.}",
    "lines": "{One item per line.|Write each item on its own line.}",
    "commas": "{Lists are written with commas.|Separate items with commas.}",
    "json": "{Lists are JSON arrays.|Return JSON arrays.|Answer with a JSON array only.}",
}  # fmt: skip
_AMOUNTS = "a bag of $stuff|a bottle of $stuff|a bottle of $drink|$few $fruits|$few $vegs|a kilo of $fruits|a kilo of $vegs|a pack of $goods|some $goods|$goods|two bags of $goods|a box of $fruits|half a kilo of $vegs|a jar of $stuff|a new $tool|a $color $clothes|a $thing|$num $fruits|a bunch of $flowers|fresh $vegs|a ticket to $city|a book about $animals"
_JOBS = "call {the $trade|$name|my $kin|the bank|the doctor}|pay the {rent|bill|fine}|water the $flowers|feed the $pet|clean the $room|repair the $thing|buy {$goods|$fruits|a $thing}|write to $name|book a {table|room|flight}|meet $name at $time|bring back the $thing|visit my $kin|go to the $place|pick up $name|wash the $clothes|mow the lawn|learn $language|finish the report|take out the trash|bake a cake|send the parcel|empty the fridge|walk the $pet|order $dish|paint the $furniture|cut the $tree|study $subject|practice the $instrument"


def _steps(rng: Random) -> list[str]:
    chosen = rng.sample(DEEDS, rng.choice((2, 3, 3, 3, 4, 5)))
    return [f"{base} {rng.choice(things).replace('$h', 'your')}" for base, _, things in chosen]


def _some(rng: Random, templates: str, count: int) -> list[str]:
    scene = Scene(rng)
    items: list[str] = []
    while len(items) < count:
        item = write(rng, "{" + templates + "}", scene)
        if item not in items:
            items.append(item)
    return items


def items_of(rng: Random) -> tuple[str, list[str]]:
    """The sort of the items, and two to five of them, each of one or several words."""
    draw = rng.random()
    count = rng.choice((2, 3, 3, 3, 4, 5))
    if draw < 0.34:
        return "steps", _steps(rng)
    if draw < 0.58:
        return "tasks", _some(rng, _JOBS, count)
    if draw < 0.86:
        return "goods", _some(rng, _AMOUNTS, count)
    scene = Scene(rng)
    slot = rng.choice(["carried", "dish", "clothes", "animals", "flowers", "job", "name", "city", "instrument", "book", "place", "street", "sur"])  # fmt: skip
    return "things", [scene[f"{slot}{n}"] for n in range(1, count + 1)]


def _prose(rng: Random, kind: str, items: list[str]) -> str:
    """A sentence that says the items one after the other."""
    if kind == "steps":
        firsts = ["First", "first", "To begin with,", "First of all,"]
        if rng.random() < 0.5:
            middle = [f"then {i}" for i in items[1:-1]]
            last = rng.choice(("and finally", "and at last", "then", "and then")) + f" {items[-1]}"
            return ", ".join([f"{rng.choice(firsts)} {items[0]}", *middle, last]) + "."
        return listing(items) + rng.choice(("", "."))
    if kind == "tasks":
        lead = write(rng, "{Today I have to|I must|I need to|Please|Tomorrow we|On the weekend I will|We have to|Don't forget to|My plan for today:|This week I want to|Before we leave we have to|You should}")  # fmt: skip
        return f"{lead} {listing(items)}."
    if kind == "goods":
        lead = write(rng, "{We need|Please buy|I need|Please bring|I bought|She wants|For the party we need|At the shop I got|My shopping:|The basket holds|In the car there are|Put in the bag:|Order}")  # fmt: skip
        return f"{lead} {listing(items)}."
    return listing(items) + rng.choice(("", "", "."))


_ASK = {
    "steps": "{Steps|The steps|Make steps|Instructions|Write the steps|Turn this into steps|A list of the steps|Make a list of steps|These steps|What to do}",
    "tasks": "{My tasks|To-do list|Make a to-do list|The tasks|List the tasks|A list of what I have to do|My plan|What do I have to do|Turn this into a to-do list|Todos}",
    "goods": "{Shopping list|The things|List what we need|Make a shopping list|List the things|A list of the things|What is needed|The items|All items|Turn this into a list}",
    "things": "{A list|List these|Make a list|Turn this into a list|These|Write these|Show these|Put these in a list|Format this|List}",
}  # fmt: skip


def portion_chat(rng: Random) -> Sample:
    """A text with items, and the wish to have them as a list in some form."""
    kind, items = items_of(rng)
    plain = rng.random() < 0.45
    text = rng.choice([", ".join(items), ", ".join(items), listing(items), "; ".join(items)]) if plain else _prose(rng, kind, items)  # fmt: skip
    style = rng.choices(list(SHOW), (6, 6, 2, 1, 2.5))[0]
    how = write(rng, _HOW[style])
    ask = write(rng, _ASK[kind])
    messages: list[Message] = []
    draw = rng.random()
    if draw < 0.12:
        messages.append(say("system", write(rng, _SYSTEM[style])))
        content = f"{ask}: {text}" if rng.random() < 0.7 else text
    elif draw < 0.5:
        source = rng.choice(
            ["", "", " from this", " of this", " from this text", " from the text", ", please"]
        )
        comma = rng.choice([", ", " ", ", "])
        content = f"{ask}{comma}{how}{source}: {text}"
    elif draw < 0.65:
        content = f"{how[0].upper() + how[1:]}{rng.choice((', please', '', ''))}: {text}"
    elif draw < 0.85:
        stop = "" if text[-1] == "." else "."
        content = f"{text}{stop}{rng.choice((' ', chr(10)))}{ask} {how}{rng.choice(('.', '', ', please.', ', please'))}"  # fmt: skip
    else:
        content = f"{write(rng, '{Write|Put|Give me|Show|Can you put|Please write|I want|Bring|Split up}')} {how}: {text}"  # fmt: skip
    if rng.random() < 0.15 and ": " in content:
        content = content.replace(": ", ":\n", 1)
    if rng.random() < 0.25 and not content.startswith(items[0]):
        content = content[0].lower() + content[1:]
    if rng.random() < 0.06:
        content = around(rng, content)
    messages += [say("user", content), say("assistant", SHOW[style](items))]
    held = Turn("lists", "", "", f"portion {content}").held_out
    return Sample("lists", messages=messages, hint={"held_out": str(int(held))})


def picked_turn(rng: Random) -> Turn:
    """One of the items of a text: how many there are, which stands first, second or last."""
    kind, items = items_of(rng)
    text = _prose(rng, kind, items)
    noun = {"steps": "step", "tasks": "task", "goods": "item", "things": "item"}[kind]
    draw = rng.random()
    if draw < 0.3:
        ask = write(rng, f"{{How many {noun}s are there|How many {noun}s|Count the {noun}s|How many {noun}s are in this text|Number of {noun}s}}?")  # fmt: skip
        number = in_words(len(items))
        answer = f"There are {number} {noun}s."
    else:
        index = rng.randrange(len(items))
        which = "last" if index == len(items) - 1 and rng.random() < 0.6 else ["first", "second", "third", "fourth", "fifth"][index]  # fmt: skip
        ask = write(rng, f"{{What is the {which} {noun}|Which {noun} is the {which}|The {which} {noun}|Give me the {which} {noun}|Tell me the {which} {noun}|What comes {which}|Which {noun} comes {which}}}?")  # fmt: skip
        answer = f"{items[index][0].upper() + items[index][1:]}."
    if ask.startswith(("Count", "Give", "Tell")):
        ask = ask[:-1] + "."
    gap = rng.choice((" ", "\n", "\n"))
    whole = f"{text}{'' if text[-1] == '.' else '.'}{gap}{ask}" if rng.random() < 0.6 else f"{ask}{gap}{text}"
    return Turn("reading", whole, answer, f"picked {whole}")
