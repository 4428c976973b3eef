# ruff: noqa: E501, SIM905 - lines of text and word lists read better whole
"""Word problems of one and two steps put together from parts, and more ways to name a sum: half, twice, the difference, what is left."""

from __future__ import annotations

from random import Random

from . import lexicon
from .events import someone
from .grammar import write
from .sample import Turn
from .tasks import in_words, plural_of, solve, sum_key
from .typed import typed

_MONEY = "euros dollars pounds coins cents".split()
# those who come and go, where they are, how they leave and how they come
_CROWDS = [
    ("birds|pigeons|crows|sparrows|owls|ducks|geese|gulls", "on the roof|in the tree|on the wire|on the lake|in the garden|on the fence", "flew away|fly away|left|flew off|were scared away", "came|landed|joined them|arrived|flew in"), ("people|passengers|tourists|children|students|men|women", "on the bus|on the train|in the room|in the hall|on the boat|at the party|in the line|in the museum|in the lift", "got off|went home|left|walked out|go home|leave|get off", "got on|came in|arrived|joined|come in|get on|came later"), ("cars|bikes|trucks|vans|taxis", "in the lot|in the garage|on the street|in the yard|on the ferry", "drove away|left|drive off|were sold|were towed", "came|arrived|drove in|parked there"), ("apples|pears|plums|cherries|nuts|oranges|figs|lemons", "on the tree|in the basket|in the bowl|on the table|in the box", "fell down|were eaten|rolled away|went bad|were sold", "were added|were put in|were picked"), ("cookies|cakes|muffins|pancakes|rolls|sandwiches|candies|sweets", "on the plate|in the jar|on the tray|in the box", "were eaten|fell on the floor|are eaten|were given away", "were baked|were added|came from the oven"), ("books|files|letters|boxes|bottles|cups|plates|toys|lamps|chairs", "on the shelf|in the drawer|in the cellar|in the box|on the desk|in the shop|in the store", "were sold|were taken|broke|were lost|are lent out|were thrown away", "were bought|were added|were delivered|came"), ("fish|frogs|sheep|cows|goats|hens|horses|rabbits|pigs", "in the pond|in the field|on the farm|in the barn|in the stable", "ran away|were sold|escaped|hid", "were born|were bought|came back|arrived"), ("flowers|roses|tulips|balloons|candles|eggs|shells|stamps|stones", "in the vase|in the box|in the bag|on the table|in the nest", "broke|were lost|burst|were given away|disappeared", "were found|were added|were bought"), ("players|runners|swimmers|guests|workers", "in the game|in the race|in the team|in the hotel|in the office", "gave up|left|went out|were ill|stopped", "joined|came|were hired|arrived"),
]  # fmt: skip
_HOW_LEFT = "{How many {$t |}{stayed|are left|were left|remain|remained|are still there|were still there|are there now|stay|are left over|did not}?|How many are still $w?|What number is left?|And how many now?}"
_HOW_NOW = "{How many {$t |}{are there|were there}{ now| then| in the end| altogether| in all|}?|How many are $w now?|What is the number now?|And how many now?}"
_GIVES = "gave away|lost|sold|ate|spent|used|broke|threw away|gave $m|lent $m|gave her sister|forgot"
_GETS = "got|found|bought|won|received|was given|picked up|collected|made"


def _two(rng: Random, op: str) -> tuple[int, int]:
    if op == "+":
        return rng.randint(1, 70), rng.randint(1, 29)
    if op == "-":
        a = rng.randint(2, 99)
        return a, rng.randint(1, a)
    if op == "*":
        return rng.randint(2, 12), rng.randint(2, 12)
    b = rng.randint(2, 10)
    return b * rng.randint(1, 99 // b if rng.random() < 0.2 else min(12, 99 // b)), b


def _told(rng: Random, op: str) -> tuple[str, str, str]:
    """A problem with ``$a`` and ``$b``, its question, and the answer with ``$v``."""
    crowd, where, leave, come = (rng.choice(part.split("|")) for part in rng.choice(_CROWDS))
    s, other = someone(rng), someone(rng)
    while s.it == "they":
        s = someone(rng)
    who, later = s.first, s.later
    things = rng.choice([crowd, plural_of(rng.choice(lexicon.THINGS)), rng.choice("euros dollars points stickers marbles pencils cards coins".split())])  # fmt: skip
    thing = rng.choice([rng.choice(lexicon.THINGS), rng.choice(lexicon.FOODS)])
    have = "have" if s.it == "they" else "has"
    had = rng.choice(["had", have])
    do = "do" if s.it == "they" else "does"
    money = rng.choice(_MONEY[:3])
    draw = rng.random()
    if op == "-":
        if draw < 0.4:
            text = f"{{There were|There are|We saw|I counted}} $a {crowd} {where}{{. | and |, and |, but }}$b {{of them |}}{leave}."
            return (
                text,
                _HOW_LEFT.replace("$t", crowd).replace("$w", where),
                "$l. {That leaves $v|$v are left}.",
            )
        if draw < 0.65:
            verb = rng.choice(_GIVES.split("|")).replace("$m", other.later)
            text = f"{who} {had} $a {things}{{ and | but |. {s.it} |, then }}{verb} $b{{ of them|}}."
            return (
                text,
                f"{{How many {things} {do} {later} have {{left|now}}|How many {{are|were}} left|How many {things} are left|What is left|How many {do} {later} still have}}?",
                "$l. That leaves $v.",
            )
        if draw < 0.85:
            return (
                rng.choice(
                    [
                        f"{{I pay|{who} pays|You pay|I paid}} with a $a {money[:-1]} note. {{The|My}} {thing} {{costs|cost|is}} $b {money}.",
                        f"{{A|The}} {thing} costs $b {money}. {{I pay|I paid|{who} pays}} with $a {money}.",
                        f"{{I|We|You}} have $a {money} and buy a {thing} for $b {money}.",
                    ]
                ),
                "{How much {change|money} {do I get|is it|comes back|is left|do I get back}|What is the change|How much do I get back|What is left|How much is left}?",
                "$l. That leaves $v.",
            )
        if draw < 0.93:
            return (
                f"{{A|The}} {thing} costs $a {money} and {{a|the}} {rng.choice(lexicon.THINGS)} costs $b{{ {money}|}}.",
                f"{{How much {{more|cheaper|more expensive}} is {{it|one}}|What is the difference|By how much do they differ|How much more is the {thing}}}?",
                "$l. The difference is $v.",
            )
        return (
            f"{who} {{{have}|found|sold}} $a {things} and {other.first} $b.",
            "{How many more is that|What is the difference|How many more does the first one have|How many fewer is that}?",
            "$l. The difference is $v.",
        )
    if op == "+":
        if draw < 0.3:
            text = f"{{There were|There are|We saw|I counted}} $a {crowd} {where}{{. | and |, and |, then }}$b more {come}."
            return text, _HOW_NOW.replace("$t", crowd).replace("$w", where), "$l. There are $v now."
        if draw < 0.55:
            verb = rng.choice(_GETS.split("|"))
            text = (
                f"{who} {had} $a {things}{{ and | and then |. Then {s.it} |. {s.it} |, then }}{verb} $b more."
            )
            return (
                text,
                f"{{How many {things} {do} {later} have{{ now| in all| altogether|}}|How many {{is|are}} that{{ now| in all|}}|How many {things} are there}}?",
                "$l. That is $v.",
            )
        if draw < 0.75:
            return (
                f"{{A|One|The}} {thing} {{costs|is}} $a {money}{{, | and |. }}{{a|the}} {rng.choice(lexicon.THINGS)} {{costs |}}$b{{ {money}|}}.",
                "{What do {I|we|you} pay{ for both| together| in total|}|How much are both|How much is it together|What is the total|What do both cost|How much do I need}?",
                "$l. Together it is $v.",
            )
        if draw < 0.9:
            return (
                f"{who} {{{have}|found|sold|made|ate}} $a {things}{{, | and |. }}{other.first} {{has|found|sold|made|ate|}} $b.",
                "{How many {together|in all|altogether|is that|in total|are there}|What is the total|How many did they have together|And together}?",
                "$l. Together they have $v.",
            )
        return (
            "{It is|The temperature is} $a degrees. {It gets|Tomorrow it will be|It becomes} $b degrees warmer.",
            "{How warm is it {then|now}|What is the temperature then|How many degrees is that}?",
            "$l. The answer is $v.",
        )
    if op == "*":
        if draw < 0.4:
            return (
                rng.choice(
                    [
                        f"{{If I buy|I buy|{who} buys|We buy|I want|We need|You buy}} $a {things} {{for|at}} $b {money} {{each|apiece|a piece|per piece}}{{,|.}}",
                        f"$a {things} {{cost|are}} $b {money} each.",
                        f"{{One|A single|Each}} {thing} costs $b {money}. {{I buy|I take|We need|{who} buys}} $a{{ of them|}}.",
                    ]
                ),
                "{what do {I|we|you} pay|how much {is it|do I pay|is that|do I need|does it cost}|what is the {price|total|sum|bill}|how much is it{ in all| together| in total|}|what does that cost}?",
                "$l. That is $v.",
            )
        if draw < 0.75:
            box = rng.choice(
                "boxes|bags|rows|tables|packs|shelves|trays|buses|rooms|baskets|pages|plates|jars|cars|trees|teams".split(
                    "|"
                )
            )
            return (
                rng.choice(
                    [
                        f"{{There are|I have|{who} {have}|We have|You see}} $a {box} {{with|of}} $b {things} {{each|in each}}.",
                        f"Each of $a {box} {{holds|has|contains}} $b {things}.",
                        f"$a {box}, $b {things} in each.",
                        f"In {{each|every}} of the $a {box} there are $b {things}.",
                    ]
                ),
                f"{{How many {things} {{are there|is that|are that}}{{ in all| in total| altogether|}}|How many {things} in all|What is the total}}?",
                "$l. There are $v.",
            )
        unit, every = rng.choice([("pages", "day"), ("miles", "week"), ("hours", "day"), ("euros", "week"), ("kilometers", "hour"), ("liters", "minute"), ("eggs", "week"), ("cups of tea", "day"), ("dollars", "hour")])  # fmt: skip
        verb = rng.choice({"pages": ["reads", "writes"], "miles": ["runs", "walks"], "hours": ["works", "sleeps"], "euros": ["saves", "spends"], "kilometers": ["drives", "goes"], "liters": ["pumps"], "eggs": ["eats", "needs"], "cups of tea": ["drinks"], "dollars": ["earns", "makes"]}[unit])  # fmt: skip
        return (
            f"{who} {verb} $b {unit} {{a|every|per|each}} {every}.",
            f"{{How many {unit} is that|How many {unit} are that|What does that make|How many {unit}}} {{in|after|for}} $a {every}s?",
            "$l. That is $v.",
        )
    group = rng.choice(
        "children friends people boys girls players boxes bags plates tables teams dogs".split()
    )
    if draw < 0.6:
        return (
            rng.choice(
                [
                    f"$b {group} share $a {things}.",
                    f"{who} {{divides|splits|shares}} $a {things} {{equally among|between|among}} $b {group}.",
                    f"{{There are|I have|We have}} $a {things} for $b {group}.",
                    f"$a {things} are {{split|divided|shared|put}} {{equally |}}{{into|among|between}} $b {group}.",
                ]
            ),
            "{How many {does each {one |}get|for each|each|are that for each}|What does each get|How many per head}?",
            "$l. Each gets $v.",
        )
    return (
        f"$b {things} cost $a {money}{{ together| in all|}}.",
        "{How much is one|What does one cost|What is the price of one|How much for one}?",
        "$l. One costs $v.",
    )


def told_sum(rng: Random) -> Turn:
    """A problem of one step: someone or something, and what comes, goes, costs or is shared."""
    op = rng.choices("+-*/", (4, 5, 4, 2))[0]
    text, ask, answer = _told(rng, op)
    a, b = _two(rng, op)
    line, value = solve(a, op, b)
    words = rng.random() < 0.2 and max(a, b) <= 20
    env = {
        "a": in_words(a) if words else str(a),
        "b": in_words(b) if words else str(b),
        "l": line,
        "v": value,
    }
    story, ask = write(rng, text, env), write(rng, ask, env)
    story = ". ".join(part[:1].upper() + part[1:] for part in story.split(". "))
    end = story[-1]
    ask = ask if end == "," else ask[0].upper() + ask[1:]
    if end == "." and rng.random() < 0.12:
        story = story[:-1] + rng.choice([",", " -", "..."])
    story = f"{ask} {story}" if rng.random() < 0.07 and end == "." else f"{story} {ask}"
    return Turn(
        "arithmetic", typed(rng, story, content=True), write(rng, answer, env), sum_key(a, op, b), value
    )


_NAMED = {
    "half": ["half of $n", "half $n", "the half of $n", "$n cut in half", "50 percent of $n", "$n divided in two halves", "one half of $n"], "double": ["double $n", "twice $n", "the double of $n", "two times $n", "$n doubled", "$n times two"], "triple": ["triple $n", "three times $n", "$n tripled"], "third": ["a third of $n", "one third of $n"], "quarter": ["a quarter of $n", "one quarter of $n", "a fourth of $n"], "more": ["$b more than $n", "$n and $b more", "$n increased by $b", "$n with $b added", "$b on top of $n"], "less": ["$b less than $n", "$n decreased by $b", "$n reduced by $b", "$n without $b", "$b fewer than $n"], "between": ["the difference between $n and $b", "the difference of $n and $b", "how much more $n is than $b", "the distance from $b to $n"],
}  # fmt: skip
_ASK = "{what is|what's|whats|how much is|calculate|tell me|give me|work out|I need|what number is|find|compute|can you tell me|do you know} $s{?||.}"


def named_sum(rng: Random) -> Turn:
    """Half of, twice, a third of, five more than, the difference between."""
    kind = rng.choice(["half", "half", "double", "double", "triple", "third", "quarter", "more", "less", "between", "between"])  # fmt: skip
    n, b = rng.randint(1, 50), 2
    if kind in ("half", "third", "quarter"):
        b = {"half": 2, "third": 3, "quarter": 4}[kind]
        n = b * rng.randint(1, 100 // b if b < 4 else 25)
        n = min(n, 99 // b * b)
        line, value, key = f"{n} / {b} = {n // b}", str(n // b), sum_key(n, "/", b)
        if kind == "half":
            line, key = f"Half of {n} = {n // 2}", f"half {n // 2}"
    elif kind in ("double", "triple"):
        b = 2 if kind == "double" else 3
        n = min(n, 33) if b == 3 else n
        line, value = solve(b, "*", n) if rng.random() < 0.5 else solve(n, "*", b)
        key = sum_key(n, "*", b)
    else:
        n = rng.randint(2, 99)
        b = rng.randint(1, n if kind != "more" else 40)
        op = "+" if kind == "more" else "-"
        line, value = solve(n, op, b)
        key = sum_key(n, op, b)
    said = rng.choice(_NAMED[kind]).replace("$n", str(n)).replace("$b", str(b))
    if (
        kind == "between"
        and said.startswith(("the difference between", "the difference of"))
        and rng.random() < 0.4
    ):
        said = said.replace(f"{n} and {b}", f"{b} and {n}")
    ask = write(rng, _ASK, {"s": said})
    return Turn(
        "arithmetic",
        typed(rng, ask[0].upper() + ask[1:] if rng.random() < 0.6 else ask),
        line + ".",
        key,
        value,
    )


def two_steps(rng: Random) -> Turn:
    """A problem of two steps: some come and some go."""
    crowd, where, leave, come = (rng.choice(part.split("|")) for part in rng.choice(_CROWDS))
    s = someone(rng)
    a = rng.randint(5, 60)
    first = rng.choice("+-")
    b = rng.randint(1, a - 1 if first == "-" else 30)
    middle = a + b if first == "+" else a - b
    second = "-" if first == "+" else rng.choice("+-")
    c = rng.randint(1, middle if second == "-" else 25)
    one, two = solve(a, first, b)[0], solve(middle, second, c)
    if rng.random() < 0.55:
        said = {"+": [f"$x more {come}", f"then $x more {come}"], "-": [f"$x {leave}", f"then $x {leave}"]}
        text = f"There {{are|were}} {a} {crowd} {where}. {rng.choice(said[first]).replace('$x', str(b))}. {rng.choice(said[second]).replace('$x', str(c))}."
        ask = write(rng, _HOW_NOW.replace("$t", crowd).replace("$w", where))
    else:
        things = rng.choice(
            [plural_of(rng.choice(lexicon.THINGS)), *_MONEY[:3], "cards", "sweets", "stickers"]
        )
        said = {"+": [f"{{{_GETS}}} $x more"], "-": [f"{{{_GIVES.replace('$m', 'a friend')}}} $x"]}
        text = f"{s.first} had {a} {things}, {said[first][0].replace('$x', str(b))} and then {said[second][0].replace('$x', str(c))}."
        ask = write(rng, f"How many {things} {{are left|are there now|are there in the end|does that make}}?")
    text = write(rng, text)
    text = ". ".join(part[:1].upper() + part[1:] for part in text.split(". "))
    answer = f"{one}, {two[0]}. The answer is {two[1]}."
    key = sum_key(a, first, b)
    return Turn(
        "arithmetic",
        typed(rng, f"{text} {ask}", content=True),
        answer,
        key,
        two[1],
        keys=(sum_key(middle, second, c),),
    )


def number_word(rng: Random) -> Turn:
    """A number in words, or in digits."""
    number = rng.randint(0, 100)
    if rng.random() < 0.6:
        ask = write(rng, f"{{Write|Spell|Say|Put|Give me}} {{the number |}}{number} {{as a word|in words|in letters|as words|in English}}{{.|| please|, please.}}")  # fmt: skip
        answer = in_words(number)
    else:
        ask = write(rng, f"{{Write|Put|Give me|Show}} {in_words(number)} {{as a number|in digits|as digits|in numbers|with digits}}{{.|| please|, please.}}")  # fmt: skip
        answer = str(number)
    return Turn("counting", typed(rng, ask, content=True), answer, f"number word {ask.lower()}", answer)
