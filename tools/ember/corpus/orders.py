# ruff: noqa: E501 - lines of text read better whole
"""Sorting as strangers ask for it: things of one kind, names, days, numbers, lengths; in a row, in lines, numbered, or only the first or last."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random

from .casing import phrase_of
from .grammar import write
from .sample import Sample, Turn, say
from .scene_words import Scene
from .settings import setting
from .tasks import DAYS, MONTHS, in_words, listing
from .typed import around

_KINDS = {
    "instrument": "instruments", "job": "jobs", "animals": "animals", "wild": "animals", "fruits": "fruits", "vegs": "vegetables", "flowers": "flowers", "tree": "trees", "clothes": "clothes", "thing": "things", "furniture": "pieces of furniture", "tool": "tools", "country": "countries", "city": "cities", "name": "names", "sur": "names", "color": "colors", "language": "languages", "subject": "subjects", "sport": "sports", "goods": "goods", "place": "places", "room": "rooms", "pet": "pets", "petname": "names", "drink": "drinks", "material": "materials", "vehicle": "vehicles",
}  # fmt: skip
_AZ = "{alphabetically|in alphabetical order|from A to Z|in the order of the alphabet|by the alphabet|by alphabet|a to z|A-Z|in ABC order|as in a dictionary|by first letter}"
_ZA = "{from Z to A|in reverse alphabetical order|backwards from Z to A|Z first|from z to a|in reverse order of the alphabet}"
_UP = "{from small to big|from smallest to largest|in ascending order|ascending|upwards|smallest first|from low to high|in rising order|from the smallest to the biggest|lowest first|starting with the smallest}"
_DOWN = "{from big to small|from largest to smallest|in descending order|descending|downwards|biggest first|from high to low|in falling order|from the biggest to the smallest|highest first|starting with the biggest}"
_TIME = "{in order|in the right order|in the order of the {week|year}|as they come in the {week|year}|from first to last|chronologically|from early to late}"
_SHORT = "{by length, shortest first|from short to long|by their length|from the shortest to the longest word|shortest first|by number of letters}"
_LONG = "{by length, longest first|from long to short|longest first|from the longest to the shortest word}"
_FORMS: dict[str, tuple[list[str], Callable[[list[str]], str]]] = {
    "commas": (["with commas between them", "with commas", "separated by commas", "with commas between the words", "in one line with commas", "comma separated", "in a row with commas"], ", ".join),
    "lines": (["one per line", "each on its own line", "one under the other"], "\n".join),
    "numbered": (["as a numbered list", "numbered", "with numbers in front"], lambda x: "\n".join(f"{i}. {t}" for i, t in enumerate(x, 1))),
    "bullets": (["as bullets", "with bullets", "as a bullet list", "with dashes"], lambda x: "\n".join(f"- {t}" for t in x)),
    "json": (["as a JSON array", "as a JSON list", "in JSON"], lambda x: json.dumps([int(t) if t.lstrip("-").isdigit() else t for t in x])),
}  # fmt: skip


def _drawn(rng: Random) -> tuple[list[str], list[str], str, str]:
    """Items in any order, the same in order, what the order is called, and what the items are."""
    count = rng.choice((2, 3, 3, 3, 4, 4, 5, 6))
    draw = rng.random()
    if draw < 0.5:
        scene = Scene(rng)
        sort = rng.choice(list(_KINDS))
        items = [scene[f"{sort}{n}"].replace(" ", "-") if rng.random() < 0.5 else scene[f"{sort}{n}"].split()[-1] for n in range(1, count + 1)]  # fmt: skip
        items = list(dict.fromkeys(items))
        while len({i.lower() for i in items}) < 2:
            return _drawn(rng)
        noun = _KINDS[sort]
    elif draw < 0.62:
        items = [w for w in (phrase_of(rng) for _ in range(12)) if w.isalpha() and w.isascii()][:count]
        items = list(dict.fromkeys(items))
        if len(items) < 2:
            return _drawn(rng)
        noun = "words"
    elif draw < 0.9:
        top = rng.choice((10, 20, 50, 100, 100, 100, 1000))
        count = min(count + rng.choice((0, 0, 1)), 7)
        numbers = rng.sample(range(-9 if rng.random() < 0.06 else 0, top), count)
        down = rng.random() < 0.42
        ordered = sorted(numbers, reverse=down)
        if rng.random() < 0.06 and min(numbers) >= 0 and max(numbers) < 21:
            return [in_words(n) for n in numbers], [in_words(n) for n in ordered], _DOWN if down else _UP, "numbers"  # fmt: skip
        return [str(n) for n in numbers], [str(n) for n in ordered], _DOWN if down else _UP, "numbers"
    else:
        names = DAYS if rng.random() < 0.5 else MONTHS
        indices = rng.sample(range(len(names)), min(count, 5))
        unit = "week" if names is DAYS else "year"
        how = _TIME.replace("{week|year}", unit)
        return [names[i] for i in indices], [names[i] for i in sorted(indices)], how, "days" if names is DAYS else "months"  # fmt: skip
    if rng.random() < 0.1 and len({len(i) for i in items}) == len(items):
        longest = rng.random() < 0.4
        return items, sorted(items, key=len, reverse=longest), _LONG if longest else _SHORT, noun
    back = rng.random() < 0.16
    return items, sorted(items, key=str.lower, reverse=back), _ZA if back else _AZ, noun


def _shown(rng: Random, items: list[str]) -> str:
    draw = rng.random()
    if draw < 0.42:
        return ", ".join(items)
    if draw < 0.58:
        return "\n".join(items)
    if draw < 0.7:
        return listing(items)
    return rng.choice([" ", ",", "; ", " - ", " / ", ", "]).join(items)


def order_chat(rng: Random) -> Sample:
    """A list put in order, in the form that is asked for."""
    items, ordered, how_template, noun = _drawn(rng)
    how = write(rng, how_template)
    text = _shown(rng, items)
    gap = "\n" if "\n" in text else " "
    number = in_words(len(items))
    form = rng.choices(list(_FORMS), (10, 2, 2, 1.5, 1.5))[0]
    wishes, show = _FORMS[form]
    wish = rng.choice(wishes) if form != "commas" or rng.random() < 0.3 else ""
    tail = f", {wish}" if wish else ""
    verb = write(rng, "{sort|order|arrange|put|bring|list|sort|sort}")
    these = rng.choice(["these", f"these {noun}", f"the {noun}", "this", "the list", "this list", "the following", f"the following {noun}", f"my {noun}"])  # fmt: skip
    if verb in ("bring", "put") and not how.startswith("in "):
        verb = "sort"
    order = f"{verb} {these} {how}"
    polite = rng.choice(["", "", "", "please ", "can you ", "could you ", "can u ", "would you "])
    ask_order = polite + order + tail
    up = ask_order[0].upper() + ask_order[1:]
    question = polite.startswith(("can", "could", "would"))
    mark = rng.choice(("?", "")) if question else rng.choice((".", "", ", please."))
    content = rng.choice([
        f"{up}:{gap}{text}", f"{up}:{gap}{text}", f"{up}:{gap}{text}", f"{up}.\n{text}", f"{text}\n{up}{mark}", f"{text}{'.' if gap == ' ' else ''}{gap}{up}{mark}", f"{text}{gap}-> {how}{tail}", f"{how[0].upper() + how[1:]}{tail}:{gap}{text}", f"{how[0].upper() + how[1:]}{tail}, please:{gap}{text}", f"Here are {number} {noun}:{gap}{text}{'.' if gap == ' ' else ''}{gap}{up}{mark}", f"I {rng.choice(('need', 'want', 'would like'))} {these.replace('this', 'this list') if these == 'this' else these} {how}{tail}:{gap}{text}", f"{text}{gap}{how}{tail}{rng.choice((' please', '', '?'))}", f"{noun.capitalize()} {how}{tail}:{gap}{text}", f"{rng.choice(('My list', 'List', noun.capitalize(), 'Items'))}:{gap}{text}{gap if gap != ' ' else '. '}{up}{mark}", f"Can you help me? {up}:{gap}{text}", f"The right order{tail}, {how}:{gap}{text}",
    ])  # fmt: skip
    if rng.random() < 0.2 and not content.startswith(items[0]):
        content = content[0].lower() + content[1:]
    if rng.random() < 0.05:
        content = around(rng, content)
    messages = []
    if rng.random() < 0.1:
        if rng.random() < 0.5 and not wish:
            messages.append(say("system", write(rng, f"{{You sort lists|You sort what the user sends|Sort what you get|Sort every list}} {how}{{.|. Reply with the sorted list only.|. Only the list, with commas.|, nothing else.}}")))  # fmt: skip
            content = text
            form, show = "commas", ", ".join
        else:
            messages.append(say("system", setting(rng)))
    messages += [say("user", content), say("assistant", show(ordered))]
    held = Turn("sorting", "", "", f"order {ordered} {how_template}").held_out
    return Sample("sorting", messages=messages, hint={"held_out": str(int(held))})


def extreme_turn(rng: Random) -> Turn:
    """The first, the last or the n-th of a list that is put in order, or the biggest and smallest of numbers."""
    items, ordered, how_template, noun = _drawn(rng)
    how = write(rng, how_template)
    text = rng.choice([", ".join(items), ", ".join(items), listing(items)])
    last = rng.random() < 0.4
    value = ordered[-1 if last else 0]
    which = "last" if last else "first"
    if noun == "numbers" and not items[0].isalpha():
        big = (value == ordered[-1]) == (how_template is _UP)
        word = rng.choice(["biggest", "largest", "highest", "greatest"] if big else ["smallest", "lowest", "least"])  # fmt: skip
        if rng.random() < 0.8 and len(items) > 2:
            ask = write(rng, f"{{Which|which|Which number|What|Which one|which of these numbers|Which of them}} is the {word}{{: \x01|, \x01|? \x01|: \x01?}}|{word} number {{of|in|among}} \x01?|{{I have|Here are|Given}} the numbers \x01. Which is the {word}?|\x01: which is the {word}?|the {word} of \x01{{?|}}")  # fmt: skip
            ask = write(rng, "{" + ask + "}") if "|" in ask else ask
            return Turn("sorting", ask.replace("\x01", text), f"The {word} is {value}.", f"extreme {word} {items}", value)  # fmt: skip
    ask = write(rng, f"{{If I sort \x01 {how}, which is {which}?|Sort \x01 {how}. Which comes {which}?|Which comes {which} when you sort {how}: \x01?|{how[0].upper() + how[1:]}, which one is {which}: \x01?|Tell me only the {which} one, {how}: \x01|Only the {which} one {how}: \x01|The {which} of these {how}: \x01}}")  # fmt: skip
    answer = f"{value[0].upper() + value[1:]} comes {which}." if rng.random() < 0.4 and "nly" not in ask else f"{value[0].upper() + value[1:]}."  # fmt: skip
    return Turn("sorting", ask.replace("\x01", text), answer, f"extreme {which} {items}", value)
