# ruff: noqa: E501 - lines of text read better whole
"""Lists asked for in many ways: the style in the system prompt, in half a sentence before or behind, or not at all; things to pack; steps."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random

from .grammar import write
from .kinds import PACKS, some_of, whole
from .list_chats import _own_items
from .sample import Message, Sample, Turn, say
from .settings import place as where
from .tasks import in_words, listing
from .typed import around, typed

SHOW: dict[str, Callable[[list[str]], str]] = {
    "bullets": lambda x: "\n".join(f"- {t}" for t in x), "numbered": lambda x: "\n".join(f"{i}. {t}" for i, t in enumerate(x, 1)),
    "lines": lambda x: "\n".join(x), "commas": lambda x: ", ".join(x), "json": lambda x: json.dumps([int(t) if t.isdigit() else t for t in x], ensure_ascii=False),
    "plain": lambda x: (listing(x)[0].upper() + listing(x)[1:] + "."),
}  # fmt: skip
# how the style is said: as a clause behind, as a sentence of its own, as a word before the thing, and in the system prompt
_CLAUSE = {
    "bullets": "{as|in} {bullet points|a bullet list|bullets|a bulleted list}|with {bullets|bullet points|a bullet {each|before each|in front of each}|a dash {each|before each|in front of each|in front}|dashes|hyphens}|bulleted|using {bullets|bullet points|dashes}|each with a {dash|bullet}{ in front|}|each one after a {dash|bullet}|each on a bullet",
    "numbered": "{as|in} a numbered list|with numbers{ in front| before them|}|numbered{ from 1 on|}|using numbers|each with {a|its} number{ in front|}|with a number {before|in front of} each|in a list with numbers|numbered one by one|as 1., 2. and so on|as an ordered list",
    "lines": "one {per|on each} line|each on {its own|a new|a separate} line|on separate lines|one {below|under} the other|line by line|with a line break after each",
    "commas": "separated by commas|comma separated|with commas{ between them|}|in one line, with commas|on one line with commas",
    "json": "as a JSON {array|list}|as JSON|in a JSON {array|list}",
}  # fmt: skip
_SENTENCE = {
    "bullets": "{Use|I want|I'd like|With|Give me|Please use} {bullets|bullet points|dashes}{, please|}|Bullet points{, please| please|}|Put a {dash|bullet} {before|in front of} {each|every} {one|item}|Format it as a bullet list|In bullets, please|Bulleted, please|Start each line with a dash|Make it a bullet list",
    "numbered": "{Use|I want|I'd like|With|Please use} numbers{, please|}|Number {them|the items|each one}{, please|}|Numbered{, please|}|Put a number {before|in front of} {each|every} {one|item}|Format it as a numbered list|As a numbered list{, please|, thanks|}|Number the lines|Make it a numbered list|I want it numbered",
    "lines": "One {per|on each} line{, please|}|A new line for {each|every one}|Put each on its own line|Use a line for each{ item|}",
    "commas": "{Use commas|With commas|Separate them with commas|Commas between them|In one line with commas}{, please|}",
    "json": "As a JSON {array|list}{, please|}|{Use|I want} a JSON {array|list}|JSON array{, please|}",
}  # fmt: skip
_BEFORE = {
    "bullets": "bullet list{ of| with|:}|bulleted list{ of| with|:}|bullet points:|bullets:|list with {bullets|dashes}:|as bullets:",
    "numbered": "numbered list{ of| with|:}|numbered:|ordered list{ of|:}|list with numbers:|1. 2. 3. list{ of|:}|as a numbered list:",
    "lines": "one per line:|line by line:|separate lines:",
    "commas": "comma separated list{ of|:}|comma list:|with commas:",
    "json": "JSON array{ of| with|:}|JSON list{ of|:}|json array{ of| with|:}",
}  # fmt: skip
_SYSTEM = {
    "bullets": "{Lists|All lists|Your lists|Every list|Items|List items} {are|must be|should be|have to be} {always |}{written|shown|formatted|given|made} {with a {dash|bullet} {in front of|before} {each|every} item|with {bullets|dashes|bullet points}|as {bullet points|bullet lists}}|Every item {of a list |}{starts|begins} with a {dash|bullet}|{Use|Always use|Write|Prefer} {bullet points|bullets|dashes} for {lists|every list|items|all lists}|When you {list|name} things, {use|write} {bullets|bullet points|dashes}|{Put|Write|Set} a {dash|bullet} {in front of|before} {each|every} {item|thing|line}|{Whenever|If} the user wants {a list|several things}, {use bullets|write bullet points|answer with bullets}|In lists, every line begins with a dash|Your answers are bullet lists|You answer with bullet points{, nothing else| only|}|Bullet style{ only|, please|}",
    "numbered": "{Lists|All lists|Your lists|Every list|Items|List items} {are|must be|should be|have to be} {always |}{numbered|written with numbers|given with numbers|shown as numbered lists|numbered from 1}|Every item {of a list |}{has|gets|starts with} a number|{Use|Always use|Write|Prefer} numbered lists{ for everything| for lists|}|When you {list|name} things, number them|{Put|Write} a number {in front of|before} {each|every} {item|thing|line}|{Whenever|If} the user wants {a list|several things}, number them|Your answers are numbered lists|You answer with a numbered list{, nothing else| only|}|In lists, every line begins with its number",
    "lines": "{Lists|All lists|Your lists} {are|must be|should be} written {with one item per line|line by line}|Every item {stands|goes} on {its own|a new} line|Write one item per line{, nothing else|}|When you list things, begin a new line for each",
    "commas": "{Lists|All lists|Your lists} {are|must be|should be} written with commas|Separate {items|list items|the items of a list} {with|by} commas|When you list things, put commas between them|Comma separated answers{ only|}",
    "json": "{Lists|All lists|Your lists} {are|must be|should be} JSON arrays|{Answer|Reply} {only |}with {a JSON array|JSON arrays}|Return every list as a JSON array|You output JSON arrays{ only|}",
}  # fmt: skip
_VERB = "{List|Name|Give me|Tell me|Write|Write down|I need|I want|I'd like|Can you name|Can you list|Could you give me|Please list|Please name|Please give me|Show me|Think of|Make a list of|Write me|Find|Say|Let me have|Help me name|My teacher wants|For my homework I need|I have to name|Suggest|Do you know|We need}"
_SYSTEM_LEAD = ["", "", "", "You are a helpful assistant. ", "You are Ember. ", "You help in a school. ", "You are an assistant. ", "Be brief. ", "You help a family. "]  # fmt: skip


def _style(rng: Random) -> str:
    return rng.choices(list(SHOW), (5, 5, 2, 1.5, 1.5, 3))[0]


def _asked(rng: Random, what: str, style: str) -> tuple[str, str]:
    """A request for the things in a style, and the system prompt that says the style, if it does."""
    ask = f"{write(rng, _VERB)} {what}"
    draw = rng.random()
    if draw < 0.14:
        ask = what
    if style == "plain":
        return ask, ""
    place = rng.random()
    if place < 0.3:
        return ask, write(rng, rng.choice([*_SYSTEM_LEAD, where(rng) + " ", where(rng) + " "]) + "{" + _SYSTEM[style] + "}") + rng.choice([".", ".", ".", "", "!"])  # fmt: skip
    if place < 0.6:
        comma = rng.choice([", ", " ", ", ", " - "])
        return f"{ask}{comma}{write(rng, '{' + _CLAUSE[style] + '}')}", ""
    if place < 0.78:
        stop = "?" if ask.startswith(("Can", "Could", "Do you")) else rng.choice([".", ".", ".", "!", ","])
        return f"{ask}{stop} {write(rng, '{' + _SENTENCE[style] + '}')}", ""
    if place < 0.88:
        clause = write(rng, "{" + _CLAUSE[style] + "}")
        return f"{clause[0].upper()}{clause[1:]}{rng.choice([': ', ', ', ', please: '])}{what}", ""
    before = write(rng, "{" + _BEFORE[style] + "}")
    lead = rng.choice(["", "", "Give me a ", "Write a ", "I need a ", "Make me a "]) if before.split()[0] in ("bullet", "bulleted", "numbered", "comma", "JSON", "json") and before.split()[1:2] in (["list"], ["array"], ["separated"]) else ""  # fmt: skip
    text = f"{lead}{before} {what}"
    return (text[0].upper() + text[1:] if rng.random() < 0.6 else text), ""


def _finish(rng: Random, ask: str) -> str:
    """The request with its last mark, at times as it is typed in a hurry."""
    if ask[-1] not in "?.!":
        ask += rng.choice(["", "", ".", ".", ", please", ", please.", " please", "!", ", thanks"])
        if ask.split()[0] in ("Can", "Could", "Do") and ask[-1] != "." and rng.random() < 0.7:
            ask += "?"
    draw = rng.random()
    if draw < 0.15:
        return ask[0].lower() + ask[1:]
    if draw < 0.3:
        return around(rng, ask)
    return ask


def _own(rng: Random) -> Sample:
    """The user's own things in a style."""
    style = rng.choice(["bullets", "bullets", "numbered", "numbered", "lines", "commas", "json"])
    items = _own_items(rng)
    text = rng.choice([", ".join(items), listing(items), listing(items), "; ".join(items), "\n".join(items)])
    if "\n" in text and style == "lines":
        text = listing(items)
    own = rng.choice(["my list", "my shopping", "my tasks", "our guests", "the items", "what I need", "my chores", "today's work", "the winners", "my books", "things to pack", "our plan", "the agenda", "my notes", "steps"])  # fmt: skip
    clause, sentence = (write(rng, "{" + table[style] + "}") for table in (_CLAUSE, _SENTENCE))
    noun = {"bullets": "bulleted list", "numbered": "numbered list", "lines": "list with one item per line", "commas": "comma separated list", "json": "JSON array"}[style]  # fmt: skip
    up = own[0].upper() + own[1:]
    system = ""
    draw = rng.random()
    if draw < 0.18:
        system = write(rng, rng.choice(_SYSTEM_LEAD) + "{" + _SYSTEM[style] + "}") + "."
        ask = write(
            rng,
            f"{{{up}: \x01|{up}\n\x01|Make a list of \x01|List \x01|\x01|Here is {own}: \x01|Write down \x01|{up}: \x01. Please make a list|A list of \x01, please}}",
        )
    else:
        ask = write(rng, f"{{{up}: \x01. {sentence}.|{up}: \x01\n{sentence}.|{up} {clause}: \x01|{{Turn|Make|Change|Convert|Put|Bring}} {own} into a {noun}: \x01|{{Write|Show|Print|Give me|Set}} {own} {clause}: \x01|I have \x01. {{Write|Show|Put|Give|Can you write}} {{it|them|that}} {clause}.|{{Turn|Make|Change|Convert}} \x01 into a {noun}.|{{These|The following}} {{words|things|items}} {clause}{{, please|}}: \x01|\x01 {clause}{{, please|, thanks|.|}}|\x01 - {clause}|{{I wrote down|I bought|We need|Here are}} \x01. {sentence}.|Make a {noun}: \x01|{{Please make|Can you make|I need}} a {noun} {{of|from|out of}} \x01.|{{Put|Write|List}} \x01 {clause}.|{clause}: \x01|A {noun}, please: \x01|{{Reformat|Rewrite|Format}} this {clause}: \x01|{sentence}: \x01}}")  # fmt: skip
    ask = ask.replace("\x01", text)
    return _sample(system, _finish(rng, ask), SHOW[style](items))


def _packing(rng: Random) -> Sample:
    """What to take or to need for something, so many of it."""
    pack = rng.choice(list(PACKS))
    items = PACKS[pack]
    count = rng.randint(2, min(4, len(items)))
    number = rng.choice([in_words(count), str(count)])
    style = _style(rng)
    lead = write(rng, f"{{I'm packing|I am packing|I'm getting ready|I have to prepare|We are preparing|My son needs|My daughter is packing|Tomorrow I need|I want to fill|I'm planning}} {{a|my|the}} {pack}{{.|.|,}}")  # fmt: skip
    ask = write(rng, f"{{{number.capitalize()} things to {{take|bring|take along}}|What should {{I|we}} {{take|bring}}? {number.capitalize()} things|Name {number} things {{for it|I need}}|Give me {number} things {{for it|to take along}}|Which {number} things {{do I need|belong in it|should I take}}}}")  # fmt: skip
    text = f"{lead} {ask}"
    if lead[-1] == ",":
        text = f"{lead} {ask[0].lower()}{ask[1:]}"
    if style != "plain":
        text += rng.choice([", ", ". ", " "]) + write(rng, "{" + _CLAUSE[style] + "}")
    return _sample("", _finish(rng, text), SHOW[style](items[:count]))


def _steps(rng: Random) -> Sample:
    """Steps in so many lines, or a plan of a day."""
    what, steps = rng.choice(_STEPS)
    count = rng.randint(3, len(steps))
    style = rng.choice(["numbered", "numbered", "numbered", "bullets"])
    clause = write(rng, "{" + _CLAUSE[style] + "}")
    number = rng.choice([in_words(count), str(count)])
    ask = write(rng, f"{{How do I {what} in {number} steps|{number.capitalize()} steps to {what}|Tell me how to {what} in {number} steps|Explain in {number} steps how to {what}|The {number} steps to {what}|How to {what}, in {number} steps}}, {clause}")  # fmt: skip
    return _sample("", _finish(rng, ask), SHOW[style](steps[:count]))


_STEPS: list[tuple[str, list[str]]] = [
    ("make tea", ["boil water", "put tea in a cup", "pour the water on it", "wait three minutes"]), ("wash my hands", ["wet the hands", "take soap", "rub them well", "rinse and dry them"]), ("plant a tree", ["dig a hole", "put the tree in", "fill the hole with earth", "water it"]), ("make a sandwich", ["take two slices of bread", "spread butter on them", "add cheese", "put them together"]),
    ("boil an egg", ["boil water", "put the egg in", "wait six minutes", "take it out"]), ("brush my teeth", ["wet the brush", "put toothpaste on it", "brush for two minutes", "rinse your mouth"]), ("bake a cake", ["mix flour, eggs and sugar", "put it in a tin", "bake it", "let it cool"]), ("write a letter", ["take paper and a pen", "write the date", "write your text", "sign it"]), ("clean a window", ["take a bucket of water", "wash the glass", "dry it with a cloth", "polish it"]), ("make a salad", ["wash the lettuce", "cut the tomatoes", "add oil and salt", "mix it"]), ("paint a wall", ["clean the wall", "cover the floor", "put paint on the roller", "paint from top to bottom"]), ("ride a bike", ["put on a helmet", "sit on the saddle", "push the pedal", "look ahead"]),
]  # fmt: skip


def _sample(system: str, ask: str, answer: str) -> Sample:
    messages: list[Message] = [say("system", system)] if system else []
    messages += [say("user", ask), say("assistant", answer)]
    held = Turn("lists", ask, answer, f"listing {system.lower()} {ask.lower()}").held_out
    return Sample("lists", messages=messages, hint={"held_out": str(int(held))})


def _counted(rng: Random) -> Sample:
    """So many things of a kind, or all of them, in a style."""
    what, items = some_of(rng) if rng.random() < 0.68 else whole(rng)
    style = _style(rng)
    ask, system = _asked(rng, what, style)
    if what.startswith(("the ", "all ")) and style == "plain" and rng.random() < 0.5:
        ask = write(rng, f"{{What are {what}?|Which are {what}?|Can you list {what}?|Count up {what}.|Write down {what}.|Say {what}.|{what[0].upper() + what[1:]}, please.}}")  # fmt: skip
    ask = _finish(rng, ask)
    if rng.random() < 0.1 and not any(i[:1].isupper() for i in items):
        ask = typed(rng, ask)
    if rng.random() < 0.05 and style != "json":
        items = [i[0].upper() + i[1:] for i in items]
    return _sample(system, ask, SHOW[style](items))


def listing_chat(rng: Random) -> Sample:
    """A list of one of these sorts."""
    return rng.choices((_counted, _own, _packing, _steps), (10, 6, 1.2, 0.8))[0](rng)
