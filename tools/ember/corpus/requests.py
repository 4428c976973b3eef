# ruff: noqa: E501, SIM905 - lines of text and word lists read better whole
"""Tool calls with open ends: known actions and made-up ones, any parameter names and values, tools that do not fit, several turns."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from . import lexicon
from .actions import ACTIONS, Action
from .actions_more import MORE_ACTIONS
from .errands import ERRAND_CHOICES, ERRAND_SLOTS, ERRANDS
from .grammar import write
from .outcomes import any_result
from .passages import _EVENTS, _FUN, _MONEY, _time
from .phrasing import SPANS, in_quotes, with_it
from .sample import Message, Sample, is_held_out
from .services import SERVICE_CHOICES, SERVICE_DECIMAL, SERVICE_LISTS, SERVICE_SWITCHES, SERVICE_WHOLE
from .services import SERVICE_SLOTS as FIRST_SLOTS
from .services import SERVICES as FIRST_SERVICES
from .services_home import HOME_ALIKE, HOME_CHOICES, HOME_SAID, HOME_SERVICES, HOME_SLOTS
from .services_more import (
    MORE_SERVICE_CHOICES,
    MORE_SERVICE_SLOTS,
    MORE_SERVICE_SWITCHES,
    MORE_SERVICE_WHOLE,
    MORE_SERVICES,
)
from .settings import setting
from .shapes import WIDER
from .tasks import DAYS, MONTHS, in_words, listing, plural_of
from .toolkit import CHOICES, LIKE, SWITCHES, composed, query
from .tools import plain_turn, signature_key
from .typed import around, typed
from .words import invented_word

WHOLE = (
    frozenset(
        "int small percent big id count servings hours people nights minutes degrees budget floor age steps".split()
    )
    | SERVICE_WHOLE
    | MORE_SERVICE_WHOLE
)  # slots that are whole numbers
DECIMAL = frozenset(("kilos", *SERVICE_DECIMAL))  # and those that may have a point
_ROOMS = (
    "kitchen bedroom bathroom hall garden garage office attic cellar nursery library basement lobby".split()
)
_TODO = ["buy $food", "call $person", "water the plants", "feed the $creature", "pay the rent", "wash the $thing", "clean the $room", "visit $person", "bring the $thing", "book the hotel in $city", "send the $thing to $person", "take the pills", "fix the $thing", "go to the $place", "read the $thing", "meet $person at the $place", "pick up the $thing", "cancel the trip", "buy a $thing for $person"]  # fmt: skip
_MESSAGE = ["I will be late.", "see you on $day", "thank you for the $thing", "where is the $thing?", "happy birthday!", "dinner is at $time", "I miss you", "the meeting is on $day", "please call me", "I am at the $place", "we need $food", "the $creature is fine", "come to $city", "good luck", "all is well", "the $thing is broken", "bring $food, please", "can we meet at $time?", "yes, that is fine", "no, thank you", "I love you", "what a nice day"]  # fmt: skip
_PHRASES = ["good morning", "good night", "thank you", "where is the $place", "I like $food", "the $thing is $color", "how are you", "I am hungry", "see you soon", "my name is $person", "one $food, please", "the $creature sleeps", "$word", "$word", "$thing", "happy birthday", "I love you", "two $things", "it is cold", "excuse me", "where do you live", "I come from $city"]  # fmt: skip
_QUERIES = ["$thing", "$color $things", "cheap $things", "$things in $city", "how to fix a $thing", "$creature pictures", "a $color $creature", "best $food recipes", "$person", "history of $city", "$word", "a $creature in the $place", "hotels in $city", "$topic", "a $thing on a $thing2", "jobs in $city"]  # fmt: skip
_TOPICS = "sports politics football science music art space health money cars films history travel books nature games cooking chess weather robots".split()
_MEASURES = "meters feet miles kilometers inches kilos pounds grams ounces liters gallons cups hours minutes seconds".split()


_PROBLEMS = "{{the |my |our |}{printer|screen|$thing|door|heating|elevator|server|login|app|phone|light|website|toilet|coffee machine|$thing in the $place} {is broken|does not work|is on fire|is too slow|makes noise|is stuck|leaks|is dirty|crashes|won't start|is gone|smells|is offline|needs repair}|no {internet|water|light|paper|power|coffee} {in the $place|on floor $small|}|{cannot|can't} {log in|print|open $file|find $file|save|start the $thing}|wrong {price|address|color|name} {on|of} the {$thing|invoice|website}|{new|another|one more} $thing for $person|{order|buy|send|clean|check|update|replace|paint} the $thing|$event|$color $things|$topic|trip to $city|$thing and $thing2|$word|{weekly|daily|big|first|last} {$event|report|meeting}}"
_PROGRAMS = "cotton wool delicate quick eco synthetic silk jeans sport intensive normal hot cold rinse spin steam baking grill defrost soup bread pasta popcorn cappuccino espresso rice clean daily night morning summer winter full light deep express yoga cardio interval hill power relax party reading movie".split()
_SHOPS = "the $place|$person's $place|the $color $creature|the $place in $city|Cafe $word|the $quality $place|$word Market|$station $place|the $place on $surname Street|Hotel $station|the $food bar|$surname and Sons"
_DISHES = "$food soup|$food pie|$food with $food2|$food curry|fried $food|$food salad|$food cake|a $food cake|$food|roast $food|stuffed $food|$food stew|$food bread"
_SIGNS = "Aries Taurus Gemini Cancer Leo Virgo Libra Scorpio Sagittarius Capricorn Aquarius Pisces".split()


def _any_code(rng: Random) -> str:
    letters = "".join(rng.choice("ABCDEFGHKLMNPRSTWXZ") for _ in range(rng.choice((1, 1, 2, 3))))
    number = str(rng.choice((rng.randint(10, 999), rng.randint(1000, 99999))))
    return rng.choice([f"{letters}-{number}", f"{letters}{number}", number, f"#{number}", f"{number}-{letters}", f"{letters.lower()}{number}", f"{number}-{rng.randint(1, 99)}"])  # fmt: skip


def _items(rng: Random, drawn: Drawn) -> str:
    things = plural_of(rng.choice([*lexicon.THINGS, *lexicon.FOODS]))
    return rng.choice([things, f"{drawn['color']} {things}", f"{rng.choice(lexicon.QUALITIES)} {things}", f"{rng.choice(lexicon.COMMON)} {things}"])  # fmt: skip


def _other(draw: Callable[[], str], first: str) -> str:
    """Another one than the first."""
    while (drawn := draw()) == first:
        pass
    return drawn


_DATES = ["next {Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday|week|month}", "this {weekend|evening|Friday|Sunday}", "$month {$count|$small}", "the {2nd|3rd|4th|5th|11th|20th|21st} of $month", "$small $month", "{Monday|Friday|Sunday} {morning|evening|night}", "tonight", "$date", "Christmas", "my birthday"]  # fmt: skip


def _message(rng: Random, drawn: dict[str, str]) -> str:
    """Something that one may write to someone."""
    draw = rng.random()
    if draw < 0.5:
        return write(rng, rng.choice(_MESSAGE), drawn)
    if draw < 0.7:
        return write(rng, _PROBLEMS, drawn)
    if draw < 0.85:
        return write(rng, "{I am|I'm|we are|we're|the team is|$person is} {at the $place|in $city|on the way|ready|done|running late|home|{ten|five|20} minutes late|coming at $time|free on $day|out of $food}", drawn)  # fmt: skip
    return write(rng, "{don't forget|remember|please bring|buy|I found|I need|we have} {the $thing|my $thing|$food|two $things|the $color $thing}{ for $person| on $day| tomorrow|}", drawn)  # fmt: skip


# every slot, drawn when a request asks for it
_SLOTS: dict[str, Callable[[Random, dict[str, str]], str]] = {
    "city": lambda r, d: lexicon.anywhere(r), "city2": lambda r, d: _other(lambda: lexicon.anywhere(r), d["city"]), "money": lambda r, d: r.choice(_MONEY), "money2": lambda r, d: _other(lambda: r.choice(_MONEY), d["money"]), "measure": lambda r, d: r.choice(_MEASURES), "measure2": lambda r, d: _other(lambda: r.choice(_MEASURES), d["measure"]), "thing": lambda r, d: r.choice(lexicon.THINGS),
    "thing2": lambda r, d: _other(lambda: r.choice(lexicon.THINGS), d["thing"]), "things": lambda r, d: plural_of(d["thing"]), "person": lambda r, d: lexicon.anyone(r) if r.random() < 0.92 else r.choice("mom dad grandma grandpa Mom Dad Grandma everyone".split()), "time": lambda r, d: _time(r) if r.random() < 0.4 else f"{r.randint(0, 23):02d}:{r.randint(0, 59):02d}", "day": lambda r, d: r.choice([*DAYS, *DAYS, "today", "tomorrow"]) if r.random() < 0.7 else write(r, r.choice(_DATES), d), "date": lambda r, d: f"20{r.randint(20, 35)}-{r.randint(1, 12):02d}-{r.randint(1, 28):02d}" if r.random() < 0.5 else r.choice(DAYS),
    "int": lambda r, d: str(r.randint(1, 99)), "small": lambda r, d: str(r.randint(2, 20)), "servings": lambda r, d: str(r.randint(2, 12)), "percent": lambda r, d: str(r.choice((r.randint(0, 100), 10 * r.randint(1, 10)))), "big": lambda r, d: str(r.choice((r.randint(100, 999), r.randint(1000, 99999)))), "id": lambda r, d: str(r.choice((r.randint(1, 99), r.randint(100, 99999)))),
    "room": lambda r, d: r.choice([*_ROOMS, *_ROOMS, "living room", "dining room", "guest room", r.choice(lexicon.PLACES)]), "place": lambda r, d: r.choice(lexicon.PLACES), "food": lambda r, d: r.choice(lexicon.FOODS), "creature": lambda r, d: r.choice(lexicon.CREATURES), "color": lambda r, d: r.choice(lexicon.COLORS), "word": lambda r, d: r.choice([r.choice(lexicon.COMMON), r.choice(lexicon.COMMON), invented_word(r)]),
    "language": lambda r, d: r.choice(lexicon.LANGUAGES), "topic": lambda r, d: r.choice(_TOPICS), "sport": lambda r, d: r.choice(_FUN), "unit": lambda r, d: r.choice(("celsius", "fahrenheit")), "count": lambda r, d: str(r.randint(2, 12)), "hours": lambda r, d: str(r.randint(2, 24)), "station": lambda r, d: r.choice([r.choice(lexicon.COMMON).capitalize(), lexicon.anywhere(r), r.choice(lexicon.SURNAMES)]),
    "quality": lambda r, d: r.choice([*lexicon.QUALITIES, *_ROOMS, "front", "back", "left", "upper"]), "mail": lambda r, d: f"{r.choice([r.choice(lexicon.FIRST_NAMES).lower(), invented_word(r)])}@{r.choice(('example.com', 'mail.com', 'post.org', 'home.net', 'example.org', invented_word(r) + '.com'))}", "url": lambda r, d: f"{r.choice(('', '', 'www.', 'https://'))}{r.choice([invented_word(r), r.choice(lexicon.COMMON)])}.{r.choice(('com', 'org', 'net', 'de', 'io'))}",
    "file": lambda r, d: f"{r.choice([r.choice(lexicon.COMMON), invented_word(r), 'report', 'notes', 'photo' + str(r.randint(1, 99))])}.{r.choice('txt pdf md py csv json doc png jpg log'.split())}", "code": lambda r, d: r.choice([str(r.randint(1000, 9999999)), f"{r.choice('ABCDEFGHKLMNPRSTWXZ')}{r.choice('ABCDEFGHKLMNPRSTWXZ')}{r.randint(10, 99999)}", f"{r.choice('ABCDEFGHK')}-{r.randint(10, 9999)}"]),
    "ticker": lambda r, d: r.choice([*"AAPL MSFT IBM TSLA NVDA AMZN Apple Google Intel Nokia Siemens Toyota Shell".split(), invented_word(r).capitalize(), invented_word(r).upper()[:4]]), "door": lambda r, d: r.choice(["front door", "back door", "garage door", "garden gate", "cellar door", "kitchen door", "main gate", "side door", "door", "gate"]), "plant": lambda r, d: r.choice("roses tulips tomatoes lawns beans trees flowers herbs plants lilies".split()),
    "event": lambda r, d: write(r, r.choice(["$e", "a $e", "$e with $n", "dinner with $n", "a visit of $n", "yoga", "the dentist", "lunch", "football"]), {"e": r.choice(_EVENTS), "n": d["person"]}), "song": lambda r, d: " ".join(w.capitalize() for w in r.choice([[d["thing"]], [r.choice(lexicon.QUALITIES), d["thing"]], ["the", r.choice(lexicon.CREATURES)], [r.choice(lexicon.IDEAS), "and", r.choice(lexicon.IDEAS)], ["my", r.choice(lexicon.IDEAS)], [invented_word(r)]])),
    "code_line": lambda r, d: f"print({r.randint(1, 99)} {r.choice('+-*')} {r.randint(1, 99)})", "expr": lambda r, d: f"{r.randint(1, 9999)} {r.choice('+-*/')} {r.randint(1, 999)}", "todo": lambda r, d: write(r, r.choice(_TODO), d) if r.random() < 0.6 else f"{r.choice(list(lexicon.ACTS))} the {d['thing']}", "message": _message, "phrase": lambda r, d: write(r, r.choice(_PHRASES), d) if r.random() < 0.7 else _message(r, d), "query": lambda r, d: write(r, r.choice(_QUERIES), d),
   
    "items": _items, "item": lambda r, d: _items(r, d) if r.random() < 0.5 else write(r, "{{the |a |my |}$thing|$food|$color $thing|{new |}$things}", d), "title": lambda r, d: write(r, _PROBLEMS, d), "reason": lambda r, d: write(r, "{the $thing is broken|I am {ill|late|busy|away|tired}|it is {too |}{late|cold|expensive|small|big|early}|we moved to $city|$person is ill|I found a better one|my plans changed|I have $event|it rains|the $creature ran away|the $place is closed|there is no $food}", d),
    "program": lambda r, d: r.choice(_PROGRAMS), "drink": lambda r, d: r.choice(lexicon.DRINKS), "people": lambda r, d: str(r.randint(2, 12)), "nights": lambda r, d: str(r.randint(2, 14)), "minutes": lambda r, d: str(r.choice((r.randint(2, 90), 5 * r.randint(1, 12)))), "degrees": lambda r, d: str(r.choice((r.randint(5, 30), 10 * r.randint(3, 9), r.randint(30, 250)))), "budget": lambda r, d: str(r.choice((r.randint(2, 99), 10 * r.randint(2, 90)))), "floor": lambda r, d: str(r.randint(2, 40)), "age": lambda r, d: str(r.randint(2, 90)), "steps": lambda r, d: str(r.choice((r.randint(2, 20), r.randint(2, 99), 100 * r.randint(1, 120)))), "kilos": lambda r, d: f"{r.randint(0, 40)}.{r.randint(1, 9)}",
    "shop": lambda r, d: write(r, r.choice(_SHOPS.split("|")), d), "team": lambda r, d: write(r, r.choice(["$city", "$city United", "FC $city", "the $creatures", "the $color $creatures", "$station", "the $city $creatures"]), d), "work": lambda r, d: write(r, "{$word {report|project|plan|essay|review}|$topic {report|homework|essay|project}|$thing {project|order|design}|{tax|annual|sales} report|project $station}", d), "hall": lambda r, d: write(r, "{room $int|hall $station|the $color room|$station room|lab $small|$place $small}".replace("the ", ""), d), "line": lambda r, d: write(r, "{bus $int|line $small|tram $small|S$small|train $int|$city express|$color line|ferry to $city}", d), "road": lambda r, d: write(r, "{A$int|B$int|M$small|highway $int|$surname Street|Main Street|$station Road|$city bridge|$place road}", d), "stop": lambda r, d: write(r, "{$surname Street|$place|$station|$city Central|$station station|$color square|Main Street}", d),
    "sign": lambda r, d: r.choice(_SIGNS), "dish": lambda r, d: write(r, r.choice(_DISHES.split("|")), d), "flight": lambda r, d: f"{r.choice('ABDEIKLQRSTUX')}{r.choice('ABEFKLNRSTXY')} ?{r.randint(10, 9999)}".replace(" ?", r.choice(("", "", " "))), "package": lambda r, d: r.choice([r.choice(lexicon.COMMON), invented_word(r), f"{r.choice(lexicon.COMMON)}-{invented_word(r)}", f"lib{invented_word(r)}", "numpy", "django", "react"]), "phone": lambda r, d: r.choice([str(r.randint(100000, 99999999)), f"0{r.randint(10, 999)} {r.randint(1000, 999999)}", f"+{r.randint(1, 99)} {r.randint(100, 999)} {r.randint(1000, 99999)}", f"555-{r.randint(1000, 9999)}"]), "doctor": lambda r, d: r.choice([f"Dr. {d['surname']}", f"Dr. {d['surname']}", f"Doctor {d['surname']}", "the dentist", d["person"]]), "radio": lambda r, d: write(r, "{$^word FM|Radio $^word|$station FM|Radio $station|$^topic radio|{Jazz|Rock|Pop|Soul|Folk|Star|Sun|City} {FM|Radio|$int|$city}|Radio $small|$^word $int|BBC $small|Antenna $station|Kiss $int}", d),
    "month": lambda r, d: r.choice(MONTHS), "surname": lambda r, d: r.choice([r.choice(lexicon.SURNAMES), r.choice(lexicon.SURNAMES), invented_word(r).capitalize()]), "food2": lambda r, d: r.choice(lexicon.FOODS), "creatures": lambda r, d: plural_of(r.choice(lexicon.CREATURES)), "file2": lambda r, d: f"{r.choice(lexicon.COMMON)}{r.choice(['', '2', '-old', '_new'])}.{d['file'].rsplit('.')[-1]}", "folder": lambda r, d: r.choice(["backup", "/tmp", "archive", "the archive", r.choice(lexicon.COMMON), f"{r.choice(lexicon.COMMON)}/{r.choice(lexicon.COMMON)}", "Documents", "/home/" + invented_word(r)]), "column": lambda r, d: r.choice(["price", "name", "date", "size", "age", "city", "weight", r.choice(lexicon.IDEAS)]),
}  # fmt: skip
CHOICES |= {"power": ["on off"], "updown": ["up down"], "upward": ["ascending descending", "asc desc"], "locked": ["lock unlock"], **ERRAND_CHOICES, **SERVICE_CHOICES, **MORE_SERVICE_CHOICES, **HOME_CHOICES}  # fmt: skip
SWITCHES |= SERVICE_SWITCHES | MORE_SERVICE_SWITCHES

_SLOTS |= ERRAND_SLOTS | FIRST_SLOTS | MORE_SERVICE_SLOTS | HOME_SLOTS
SERVICES = FIRST_SERVICES | MORE_SERVICES | HOME_SERVICES


_ON = re.compile(r"\bon (?=(?:today|tomorrow|tonight|next|this) ?\b)")  # "see you on tomorrow"


class Drawn(dict[str, str]):
    """The slots of one request; each is drawn when it is first asked for."""

    def __init__(self, rng: Random) -> None:
        super().__init__()
        self.rng = rng

    def __missing__(self, slot: str) -> str:
        self[slot] = _ON.sub("", _SLOTS[slot](self.rng, self))
        return self[slot]


class Tool(NamedTuple):
    """A declared tool: its action, the declaration, and the parameter that each slot became."""

    kind: str
    action: Action
    declared: dict[str, Any]
    names: dict[str, str]
    optional: frozenset[str]
    choices: dict[str, list[str]]  # of a slot: what it may be, as "value=other words"


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
    chosen: dict[str, list[str]] = {}
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
        if slot in CHOICES and (slot == "unit" or rng.random() < 0.85):
            chosen[slot] = rng.choice(CHOICES[slot]).split()
            properties[called] = {"type": "string", "enum": [c.split("=")[0] for c in chosen[slot]]}
        elif slot in SWITCHES:
            properties[called] = {"type": "boolean"}
        elif slot in WHOLE:
            properties[called] = {"type": rng.choice(("integer", "integer", "number"))}
        else:
            kind_of = "number" if slot in DECIMAL else "array" if slot in SERVICE_LISTS else "string"
            properties[called] = {"type": kind_of}
            if kind_of == "array":
                properties[called]["items"] = {"type": "string"}
        if rng.random() < 0.12:
            properties[called]["description"] = rng.choice(["The " + called.replace("_", " ") + ".", called.capitalize() + "."])  # fmt: skip
    parameters = {"type": "object", "properties": properties, "required": [n for s, n in names.items() if s not in optional]}  # fmt: skip
    about = write(rng, rng.choice(action.about.split("|")) if "{" not in action.about else action.about)
    function = {"name": name, "description": about + rng.choice([".", ".", ""]), "parameters": parameters}
    return Tool(kind, action, {"type": "function", "function": function}, names, frozenset(optional), chosen)


_POLITE = ["", "", "", "", "", "please ", "please ", "can you ", "could you ", "would you ", "I want you to ", "I need you to ", "hey, ", "hi, ", "Ember, ", "go ahead and ", "I would like you to ", "now ", "can you please ", "could you please ", "ok, ", "will you ", "quickly ", "you should "]  # fmt: skip


Given = str | bool | int | list[str]
_FEW = frozenset("small count people nights servings few".split())
_SPELLED = frozenset("int minutes percent hours degrees".split())  # at times in words, to 99


def _choose(rng: Random, tool: Tool, drawn: Drawn) -> dict[str, Given]:
    """The values of the choices, the switches and the numbers said in words; ``drawn`` gets the words for them."""
    given: dict[str, Given] = {}
    for slot in tool.names:
        if slot in SWITCHES:
            given[slot] = rng.random() < 0.6
            drawn[slot] = write(rng, SWITCHES[slot][1 if given[slot] else 2])
        elif slot in CHOICES:
            value, _, other = rng.choice(
                tool.choices.get(slot) or rng.choice(CHOICES[slot]).split()
            ).partition("=")
            # without a list of values, what is said is what is given
            if slot in HOME_SAID and slot not in tool.choices:
                value = other.replace("_", " ") or value
            said_so = other and slot in tool.choices and (slot in HOME_SAID or rng.random() < 0.35)
            drawn[slot] = other.replace("_", " ") if said_so else value
            given[slot] = value
        elif slot in SERVICE_LISTS:
            several = drawn[slot].split("\x1f")
            given[slot], drawn[slot] = several, listing(several) if rng.random() < 0.8 else ", ".join(several)
        elif (slot in _SPELLED and rng.random() < 0.1 and int(drawn[slot]) < 100) or (
            slot in _FEW and rng.random() < 0.25 and int(drawn[slot]) < 21
        ):
            given[slot] = int(drawn[slot])
            drawn[slot] = in_words(int(drawn[slot]))
    return given


_QUOTED = frozenset("title message anysong song phrase work query word file item todo shop dish".split())


def _retold(rng: Random, tool: Tool, drawn: Drawn, text: str) -> str:
    """The request with a value in quotes, or with "half an hour" for 30 minutes."""
    for slot in tool.names:
        if slot in _QUOTED and rng.random() < 0.12:
            text = in_quotes(text, drawn.get(slot, ""))
        if slot in ("int", "minutes") and rng.random() < 0.6:
            for said, words in SPANS.items():
                at = text.find(said)
                if at >= 0 and (at == 0 or text[at - 1] not in "0123456789."):
                    text = text.replace(said, words, 1)
    return text


def labelled(rng: Random, tool: Tool, said: set[str]) -> str:
    """An order by the tool's name, each value behind the name of its parameter."""
    more = [slot for slot in tool.optional if rng.random() < 0.4]
    said.update(more)
    if not said:
        return rng.choice(tool.action.asks)
    verb = tool.declared["function"]["name"]
    verb = re.sub(r"([a-z])([A-Z])", r"\1 \2", verb).lower()
    verb = verb if rng.random() < 0.2 else re.sub(r"[_.-]", " ", verb)
    slots = [slot for slot in tool.names if slot in said]
    if rng.random() < 0.3:
        rng.shuffle(slots)
    link = rng.choice((" ", " ", ": ", " = ", " is ", " of "))
    names = [re.sub("_", " ", tool.names[slot]) for slot in slots]
    parts = [f"{name}{link if slot not in SWITCHES else ' '}${slot}" for slot, name in zip(slots, names, strict=True)]  # fmt: skip
    if link in (" is ", " of ") and rng.random() < 0.6:
        parts = [f"the {part}" for part in parts]
    text = listing(parts) if link in (" ", " of ", " is ") and rng.random() < 0.6 else ", ".join(parts)
    return f"{verb}{rng.choice((' with ', ', ', ': ', ' - ', ' with '))}{text}"


def request(rng: Random, tool: Tool, drawn: Drawn) -> tuple[str, dict[str, Any]]:
    """A request for the tool as someone may type it, and the call that it leads to."""
    said = set(tool.names) - tool.optional
    ask = labelled(rng, tool, said) if rng.random() < 0.07 else rng.choice(tool.action.asks)

    def optional(match: re.Match[str]) -> str:
        slots = re.findall(r"\$([a-z_]+2?)", match[1])
        if not set(slots) <= set(tool.names) or rng.random() < (0.5 if said else 0.15):
            return ""
        said.update(slots)
        return match[1]

    ask = re.sub(r"\[([^]]*)\]", optional, ask)
    given = _choose(rng, tool, drawn)
    if tool.action.which:
        drawn["which"] = write(rng, tool.action.which, drawn)
    order = ask.startswith("!")
    ask = with_it(rng, ask) if order and rng.random() < 0.15 else ask
    text = _ON.sub("", write(rng, ask.lstrip("!"), drawn))
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
    if rng.random() < 0.15:
        text = typed(rng, text, content=True)
    elif rng.random() < 0.25:
        text = around(rng, text)
    text = _retold(rng, tool, drawn, text)
    arguments: dict[str, Any] = {}
    for slot, name in tool.names.items():
        if slot in said:
            number = slot in WHOLE or slot in DECIMAL
            arguments[name] = (
                given[slot] if slot in given else json.loads(drawn[slot]) if number else drawn[slot]
            )
    return text, {"type": "function", "function": {"name": tool.declared["function"]["name"], "arguments": arguments}}  # fmt: skip


# actions of which one could do the other's work
_ALIKE = [{"lightbool", "light_on", "dim", "switch", "lamp2", "devicebool", "featurebool", "device_off"}, {"books3", "book2", "loan2", "return_book", "search"}, {"music3", "song2", "music", "playlist", "radio", "film2"}, {"flats", "hotel_search", "apartment", "hotel", "hotel3"}, {"hoursbool", "shelf", "stock_level", "stock", "size_shop", "search", "shopping"}, {"review", "rate", "song2", "film2"}, {"report_city", "ticket", "lostfound", "fire_alarm", "repair"}, {"moodlog", "note", "note3"}, {"taxi3", "taxi", "ride", "directions", "distance"}, {"watering3", "water", "water2"}, {"note3", "note", "reminder", "remind2", "sms3", "message"}, {"sms3", "message", "email", "mail2", "group_mail", "call"}, {"event3", "event", "meeting", "agenda", "reminder", "remind2", "alarm", "schedule", "note3", "doctor", "gym_class"}, {"alarm3", "alarm", "timer", "reminder", "remind2", "wake_call"}, {"dice3", "dice", "quote"}, {"flight3", "flight", "train", "train2", "trainseat", "ride"}, {"share_file", "file", "copy", "posts", "sms3"}, {"plan_meal", "recipe", "dish_recipe", "order_food", "event3", "shopping", "loan", "calories"}, {"oven", "heating", "thermostat", "timer", "aquarium"}, {"donate", "pay", "transfer"}, {"quizlevel", "quiz"}, {"transfer", "pay", "account_balance", "balance"}, {"fire_alarm", "lostfound", "ticket", "call"}, {"loan2", "return_book", "book2"}, {"meeting", "event", "leave", "invite", "doctor", "gym_class", "apartment", "reminder", "agenda", "schedule", "absence"}, {"calories", "loan", "shopping", "recipe"}, {"weigh", "sleep", "run", "pill", "bmi"}, {"paint_pixel", "paint", "joke2", "posts"}, {"resize", "printer", "album", "photo", "copy", "rename", "tagger", "file"}, {"playlist", "song2", "music", "radio", "film2", "channel", "skip", "subtitle"}, {"order_drink", "coffee", "brew", "order_food", "room_service"}, {"parcel", "delivery", "track", "refund", "order"}, {"trainseat", "train2", "train", "flight", "ride", "museum"}, {"hotel3", "hotel", "hotel_search"}, {"basket", "shopping", "count_stock", "shelf", "stock_level", "stock"}, {"group_mail", "mail2", "message", "email", "greeting", "subscribe"}, {"cruise", "car_window", "charge", "fuel", "drive_robot", "move"}, {"sunrise", "tide", "pollen", "weather", "forecast2", "weather_unit", "time"}, {"interest", "tip", "calculator", "currency", "convert2", "age_calc"}, {"barcode", "plate", "code", "user", "track", "coupon"}, {"branch", "deploy", "restart", "logs", "scale", "device_off"}, {"attack", "spell", "equip", "trade_item"}, {"newspaper", "auction", "price", "gift"}, {"candidate", "membership", "add_user", "contact", "address_change"}, {"elevator", "move"}, {"aquarium", "thermostat", "heating", "measure2", "room_temperature"}, {"timesheet", "expense", "harvest", "milk", "count_stock"}, {"grade", "homework", "absence", "birthday"}, {"wake_call", "alarm"}, {"calculator", "units", "currency"}, {"email", "message", "call"}, {"light_on", "dim", "device_off", "robot"}, {"music", "lyrics", "rate"}, {"event", "reminder", "alarm", "agenda", "note"}, {"timer", "alarm", "run"}, {"search", "news", "define", "population", "movie", "places", "recipe", "stock"}, {"directions", "distance", "train", "flight", "taxi"}, {"shopping", "order_food", "recipe", "loan"}, {"time", "alarm", "weather"}, {"file", "delete", "screenshot", "code"}, {"user", "add_user"}, {"places", "park", "hotel"}, {"sql", "search"}, {"translate", "define"}, {"heating", "dim", "weather"}, {"water", "timer"}, {"feed", "shopping"}, {"thermostat", "heating", "weather", "weather_unit", "room_temperature", "wash"}, {"contact", "phone_number", "call", "address", "message"}, {"translation", "translate", "define"}, {"schedule", "agenda", "event", "alarm", "reminder", "invite"}, {"departure", "bus_stop", "ride", "directions", "distance", "train", "flight", "taxi"}, {"pizza", "order_food", "shopping", "nutrition", "recipe", "loan"}, {"coffee", "order_food", "shopping"}, {"switch", "light_on", "device_off", "dim", "blinds", "lock", "door", "robot"}, {"expense", "pay", "shopping", "tip", "balance", "price"}, {"posts", "message", "note", "email", "ticket", "code"}, {"rename", "copy", "file", "delete", "file_size", "code"}, {"paintroom", "paint", "dim", "light_on"}, {"radio", "music", "lyrics", "volume"}, {"doctor", "event", "reminder", "alarm", "table"}, {"move", "run", "bet", "directions", "robot"}, {"rent", "taxi", "ride"}, {"hotel_search", "hotel", "places", "park"}, {"member_info", "user", "search", "birthday", "add_user"}, {"order", "track", "location", "flight_status"}, {"population", "get_population", "search", "news"}, {"stock_level", "stock", "shopping", "price", "sql"}, {"rating", "rate", "places", "news", "movie"}, {"pets", "feed", "add_user"}, {"discount", "price", "sorted"}, {"quiz", "news", "search"}, {"exchange_rate", "currency", "stock"}, {"vote", "invite", "call"}, {"traffic", "directions", "ride"}, {"music", "song2", "film2", "lyrics", "rate"}, {"film2", "book2", "movie"}, {"define", "word2", "translate", "translation"}, {"weather", "weather_unit", "forecast2"}, {"mail2", "email", "message", "call"}, {"remind2", "reminder", "alarm", "event"}, {"convert2", "currency", "exchange_rate"}, {"train2", "train", "departure"}, {"water2", "water"}, {"lamp2", "light_on", "dim", "switch"}, {"brew", "coffee", "order_food"}, {"find_food", "places", "order_food", "table"}, {"dish_recipe", "recipe", "nutrition"}, {"turn_robot", "drive_robot", "robot", "move"}, {"size_shop", "shopping", "order"}, {"score", "news"}, {"file", "list_files"}]  # fmt: skip
_ALIKE += HOME_ALIKE


def _conflict(kinds: list[str]) -> bool:
    """Whether one of the tools could do another's work."""
    names = {kind.removeprefix("query ") for kind in kinds}
    if any(len(group & names) > 1 for group in _ALIKE):
        return True
    if any(LIKE.get(kind.split()[0], set()) & names for kind in kinds if " " in kind):
        return True
    words = [w for kind in kinds for w in re.split("[ _]", kind.split(" ", 1)[-1] if " " in kind else kind)]
    words = [w.rstrip("0123456789") for w in words]
    return len(set(words)) != len(words)


_SYSTEMS = "{You are Ember, a small helpful assistant.|You are a helpful assistant.|You are a helpful assistant with tools.|Use the tools when they help.|You can use tools.|Call a tool only if it fits.|You are an assistant that can call functions.|Use a tool if you need one.|Help the user.|You are a {home|travel|office|kitchen|personal|smart} assistant.|Be brief.|Use the functions below.|You have access to tools.}"
_FAILED = ["not found", "unknown", "no connection", "not allowed", "too busy", "timeout", "closed", "no such name"]  # fmt: skip
_CANNOT = ["I am sorry, I cannot do that.", "I cannot do that: none of my tools is for it."]


_SIBLINGS: dict[str, list[tuple[str, Action]]] = {}  # by their first slot
for _kind, _action in (ACTIONS | MORE_ACTIONS | ERRANDS | SERVICES).items():
    _SIBLINGS.setdefault(_action.parameters.split(":")[0], []).append((_kind, _action))


def _pick(rng: Random) -> list[Tool]:
    """One to eight tools that are not in each other's way."""
    while True:
        kinds: dict[str, Action] = {}
        for _ in range(rng.choice((1, 1, 2, 2, 3, 3, 4, 5, 6, 8))):
            draw = rng.random()
            if kinds and rng.random() < 0.2:  # one that takes the same and does something else
                slot = next(reversed(kinds.values())).parameters.split(":")[0]
                kind, action = rng.choice(_SIBLINGS.get(slot) or _SIBLINGS["city"])
                kinds[kind] = action
            elif rng.random() < 0.2:
                kind = rng.choice(list(ERRANDS))
                kinds[kind] = ERRANDS[kind]
            elif rng.random() < 0.3:
                kind = rng.choice(list(SERVICES))
                kinds[kind] = SERVICES[kind]
            elif draw < 0.25:
                kind = rng.choice(list(ACTIONS))
                kinds[kind] = ACTIONS[kind]
            elif draw < 0.4:
                kind = rng.choice(list(MORE_ACTIONS))
                kinds[kind] = MORE_ACTIONS[kind]
            else:
                kind, action = (composed if draw < 0.7 else query if draw < 0.86 else _made_up)(rng)
                kinds[kind] = action
        if _conflict(list(kinds)):
            continue
        tools = [declare(rng, kind, action) for kind, action in kinds.items()]
        if len({t.declared["function"]["name"] for t in tools}) == len(tools):
            return tools


def _after(rng: Random, tool: Tool, drawn: Drawn, call: dict[str, Any]) -> list[Message]:
    """The tool's result and what ember makes of it."""
    draw = rng.random()
    if draw < 0.12:
        why = rng.choice(_FAILED)
        return [{"role": "tool", "content": json.dumps({"error": why})}, {"role": "assistant", "content": f"I am sorry, that did not work: {why}."}]  # fmt: skip
    if tool.action.done == "Done." and not tool.action.result and rng.random() < 0.75:
        return any_result(rng, call)
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
        messages.append(
            {"role": "system", "content": setting(rng) if rng.random() < 0.3 else write(rng, _SYSTEMS)}
        )

    def ask_plain() -> None:
        nonlocal held
        turn = plain_turn(rng, kinds)
        held = held or turn.held_out
        messages.extend([{"role": "user", "content": turn.ask}, {"role": "assistant", "content": turn.answer}])  # fmt: skip

    if rng.random() < 0.15:
        ask_plain()
    if rng.random() < 0.1:  # a request for a tool that is not there
        table = rng.choice((ACTIONS, MORE_ACTIONS, ERRANDS, SERVICES))
        absent = rng.choice(list(table))
        if absent not in ("calculator", "define", "search", "population") and not _conflict([*kinds, absent]):
            text, _ = request(rng, declare(rng, absent, table[absent]), Drawn(rng))
            messages += [{"role": "user", "content": text}, {"role": "assistant", "content": rng.choice(_CANNOT)}]  # fmt: skip
    before: Tool | None = None
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3))):
        tool = before if before and rng.random() < 0.3 else rng.choice(tools)
        drawn = Drawn(rng)
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
