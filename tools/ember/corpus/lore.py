# ruff: noqa: E501, SIM905 - lines of text and word lists read better whole
"""Facts among other words: who wants to know, in a clause ("how many legs a spider has"), of a ripe banana; what things are like."""

from __future__ import annotations

from random import Random

from .facts import COLORS, RELATIONS
from .grammar import write
from .sample import Turn
from .tasks import DAYS, MONTHS, fact, fact_key, fix_articles, opposite, plural, plural_of, relation_answer
from .typed import around, typed
from .words import ADJECTIVES, PLURALS

_BY_NAME = {r.name: r for r in RELATIONS}
# relation: the question as a clause
_CLAUSES: dict[str, str] = {
    "capital": "{what the capital of $s is|which city is the capital of $s|what $s's capital is|the capital of $s}", "capital_of": "{which country has $s as its capital|of which country $s is the capital}", "continent": "{on which continent $s is|which continent $s is on|where $s is}", "language": "{what language people speak in $s|which language is spoken in $s|what they speak in $s}", "sound": "{what sound a $s makes|what a $s says|how a $s sounds}",
    "baby": "{what a baby $s is called|what you call a baby $s|what a young $s is called|the name of a baby $s}", "home": "{where a $s lives|where $p live|what the home of a $s is called}", "legs": "{how many legs a $s has|how many legs $p have}", "group": "{what kind of animal a $s is|to which group of animals a $s belongs}", "color": "{what color $s is|which colour $s has|the color of $s}", "mix": "{what color you get from $s|what $s make}", "units": "how many $s", "sides": "{how many sides a $s has|how many corners a $s has}",
    "diet": "{what a $s eats|what $p eat|what to feed a $s}", "maker": "{who makes $s|where $s come from}", "job": "{where a $s works|where $p work}", "tool_for": "{what I need to $s|with what you $s}",
}  # fmt: skip
_WHO = "{My {daughter|son|wife|husband|teacher|friend|class|grandson|little sister|boss|neighbor|mother}|A pupil|The children|Somebody|A friend of mine|The boy next door|A guest}"
_ASKS = "{$w {asks|wants to know|asked me|would like to know} $c.|{Could|Can|Would} you {remind me|tell me|say|explain to me} $c{, please|}?|{Please tell me|Tell me|Remind me|Say|I forgot|I wonder|I'd like to know|I would like to know|I want to know|I need to know|I must know|I have to know|I never know|I can't remember|I was asked|I don't know|In the quiz they ask|For school I need to know|The question is|We are arguing about} $c.|Do you {know|remember|happen to know} $c?|Any idea $c?|{It's for a quiz|It is for school|Homework|Quiz question|For a crossword|My test is tomorrow}: $c?|I {wonder|ask myself} $c.}"
_RIPE = {"a tomato": "ripe", "a strawberry": "ripe", "a lemon": "ripe", "a plum": "ripe", "a carrot": "fresh", "a cucumber": "fresh", "grass": "fresh", "snow": "fresh", "milk": "fresh", "the sky": "clear", "a pumpkin": "ripe", "an eggplant": "ripe", "an elephant": "big", "a crow": "big", "a flamingo": "grown", "a fire truck": "new"}  # fmt: skip
_TAILS = {"the sky": [" in fine weather", " when there are no clouds", " at noon"], "grass": [" in spring", " in summer"], "snow": [" in winter"], "the night sky": [" at midnight"], "the sea": [" in good weather"], "blood": [" in our body"]}  # fmt: skip


def in_a_clause(rng: Random) -> Turn:
    """A known fact, asked for in a clause: "my daughter asks how many legs a spider has"."""
    names = list(_CLAUSES)
    name = rng.choices(names, [len(_BY_NAME[n].pairs) ** 0.6 for n in names])[0]
    relation = _BY_NAME[name]
    subject = rng.choice(list(relation.pairs))
    clause = fix_articles(write(rng, _CLAUSES[name], {"s": subject, "p": plural_of(subject)}))
    ask = write(rng, _ASKS.replace("$c", "\x01"), {"w": write(rng, _WHO)}).replace("\x01", clause)
    ask = rng.choice(["", "", "", "", "Hello. ", "Hi! ", "Good morning. "]) + ask
    ask += rng.choice(["", "", "", " Thank you!", " Thanks.", " Please help."])
    value = relation.pairs[subject] if relation.short else None
    return Turn("facts", typed(rng, ask) if rng.random() < 0.3 else ask, relation_answer(relation, subject), fact_key(clause), value, relation=name, subject=subject)  # fmt: skip


def ripe_color(rng: Random) -> Turn:
    """The color of a thing that is ripe, fresh, or seen on a sunny day."""
    subject = rng.choice([*_RIPE, *_TAILS])
    color = COLORS[subject]
    said, tail = subject, ""
    if subject in _TAILS and rng.random() < 0.6:
        tail = rng.choice(_TAILS[subject])
    elif subject in _RIPE:
        adjective = rng.choice([_RIPE[subject], _RIPE[subject], "normal", "typical", "real"])
        article, _, noun = subject.rpartition(" ")
        said = f"{article} {adjective} {noun}".strip()
    ask = write(rng, f"{{{{What|Which}} {{color|colour}} is {said}{tail}|What is the {{color|colour}} of {said}{tail}|{{Tell me|Name}} the color of {said}{tail}|{{Which|What}} color does {said} have{tail}|{said.capitalize()}: {{which|what}} color}}?")  # fmt: skip
    ask = ask[:-1] + "." if ask.startswith(("Tell", "Name")) else ask
    return Turn("facts", typed(rng, fix_articles(ask)), f"{subject[0].upper()}{subject[1:]} is {color}.", fact_key(ask), color, relation="color", subject=subject)  # fmt: skip


# thing: what it is like, what it is not
_LIKE: dict[str, str] = dict(
    row.split(":") for row in
    """fire:hot/cold|snow:cold white/hot black|the sun:hot bright/cold dark|the night:dark/bright|sugar:sweet/sour|honey:sweet/salty|a lemon:sour yellow/sweet blue|salt:salty white/sweet black|a stone:hard heavy/soft|a pillow:soft/hard|a feather:light soft/heavy hard|iron:hard heavy/soft light|an elephant:big heavy gray/small light green|an ant:small light/big heavy|a mouse:small/big|a whale:big heavy/small light|a giraffe:tall/short|a snail:slow/fast|a turtle:slow/fast|a cheetah:fast/slow|a lion:strong wild/weak tame|a desert:dry hot/wet|the sea:wet salty/dry|water:wet/dry|rain:wet/dry|summer:warm/cold|winter:cold/warm|steam:hot/cold|glass:hard/soft|a rose:beautiful/ugly|a ball:round/square|the Earth:round/flat|a wheel:round/square|a knife:sharp/blunt|a needle:sharp thin/thick|coal:black/white|grass:green/red|blood:red/blue|the sky:blue/green|a banana:yellow/purple|milk:white/black|chocolate:sweet brown/sour blue|a tree:tall/tiny|a mountain:high/low|a skyscraper:tall/short|gold:yellow expensive/cheap|a feather bed:soft/hard|cotton:soft white/hard|silk:soft/rough|a hedgehog:prickly/smooth|a cactus:prickly/smooth|a baby:young/old|a grandfather:old/young|vinegar:sour/sweet|a rock:hard/soft|butter:soft/hard|a tomato:red/blue|a swan:white/green|a crow:black/white|a fridge:cold/hot|an oven:hot/cold|the North Pole:cold/hot|a candle flame:hot/cold|a diamond:hard expensive/soft cheap""".split("|")
)  # fmt: skip


def what_like(rng: Random) -> Turn:
    """Whether a thing is so, or what it is of two: "is ice hot", "is ice hot or cold"."""
    thing, like = rng.choice(list(_LIKE.items()))
    good, bad = (part.split() for part in like.split("/"))
    yes, no = rng.choice(good), rng.choice(bad)
    if rng.random() < 0.25:
        pairs = [(g, b) for g, b in zip(good, bad, strict=False) if ADJECTIVES.get(g) == b or ADJECTIVES.get(b) == g]  # fmt: skip
        pair = list(rng.choice(pairs)) if pairs else [good[0], bad[0]]
        told = pair[0]
        rng.shuffle(pair)
        ask = write(rng, f"{{Is {thing} {pair[0]} or {pair[1]}?|Would you say {thing} is {pair[0]} or {pair[1]}?|{pair[0].capitalize()} or {pair[1]}: what is {thing}?|What is {thing}, {pair[0]} or {pair[1]}?}}")  # fmt: skip
        return Turn(
            "facts", typed(rng, ask), f"{thing[0].upper()}{thing[1:]} is {told}.", fact_key(ask), told
        )
    true = rng.random() < 0.5
    said = yes if true else no
    ask = write(rng, f"{{Is {thing} {said}?|Is {thing} {said}?|Is it true that {thing} is {said}?|{thing} is {said}, right?|True or false: {thing} is {said}?|Would you say that {thing} is {said}?|Is {thing} really {said}?}}")  # fmt: skip
    answer = f"{'Yes' if true else 'No'}, {thing} is {yes if true else 'not ' + no}."
    return Turn(
        "yes or no", typed(rng, ask[0].upper() + ask[1:]), answer, fact_key(ask), "yes" if true else "no"
    )


def what_is_right(rng: Random) -> Turn:
    """A plural or an opposite asked for by an example: "one mouse, two ...?"."""
    if rng.random() < 0.6:
        word = rng.choice(list(PLURALS))
        other = PLURALS[word]
        number = rng.choice(["two", "three", "many", "five", "ten", "some", "a lot of"])
        ask = write(rng, f"{{One {word}, {number} {{what|...}}?|{{Here is|There is|I see}} one {word}{{. |, and }}{{over there|in the other room|in the book}} {{are|I see}} {number} {{...|what}}?|{{A|One}} {word}, {number} {{...|....}}{{?|}}|If there is more than one {word}, {{what do you say|we say ...|how do you call them}}?|{{What do you say for|What is the word for}} {{more than one|two or more}} of \"{word}\"?|{{It's one {word}, but {number}|Not one {word} but {number}}} ...?|{word} in the plural{{?|, please|}}|{{How do you say|What is}} \"{word}\" in the plural?}}")  # fmt: skip
        return Turn("plurals", typed(rng, fix_articles(ask), True), f"The plural of {word} is {other}.", f"plural example {ask.lower()}", other)  # fmt: skip
    table = ADJECTIVES | {b: a for a, b in ADJECTIVES.items()}
    word = rng.choice(list(table))
    other = table[word]
    ask = write(rng, f"{{Not {word}, but {{...|the opposite}}?|If {{something|it}} is not {word}, {{what is it|it is ...}}?|{{What is|What's|Which word is}} {{the contrary of|the reverse of|the opposite word of|the opposite of}} \"{word}\"{{ please|}}?|The opposite word {{for|to}} {word}{{?|, please|}}|{{I study English|My English is not good}}. {{Opposite of {word}, please|What is the opposite of {word}}}?|\"{word}\" - {{opposite|what is the opposite}}?|{{My homework|For school}}: {{opposite of|find the opposite of}} {word}.}}")  # fmt: skip
    return Turn("opposites", typed(rng, ask, True), f"The opposite of {word} is {other}.", f"opposite example {ask.lower()}", other)  # fmt: skip


def between(rng: Random) -> Turn:
    """A day or a month told by its neighbors, or by what yesterday or tomorrow is."""
    names, unit = (DAYS, "day") if rng.random() < 0.6 else (MONTHS, "month")
    i = rng.randrange(len(names))
    n = len(names)
    if rng.random() < 0.3:
        a, b, c = names[i - 1], names[i], names[(i + 1) % n]
        ask = write(rng, f"{{{{Which|What}} {unit} {{lies|is|comes|stands|falls}} between {a} and {c}?|Between {a} and {c} {{comes|is|lies}} {{which|what}} {unit}?|After {a} and before {c}: {{which|what}} {unit}?|Name the {unit} between {a} and {c}.}}")  # fmt: skip
        return Turn(
            "calendar", typed(rng, ask), f"{b} comes after {a}.", f"calendar between {a} {ask.lower()}", b
        )
    step = rng.choice((-1, 1))
    known, wanted = names[i], names[(i + step) % n]
    if unit == "month":
        ask = write(rng, f"{{If it is {known} now, {{what|which}} month {'comes next' if step > 0 else 'was last'}?|It is {known}. {{What|Which}} month {'comes next|is next|follows' if step > 0 else 'was before|was it last month'}?|{{This month is|It's}} {known}. {{And {'next' if step > 0 else 'last'} month|What is {'next' if step > 0 else 'last'} month}}?}}")  # fmt: skip
    else:
        today, asked = rng.choice([("Today is", "tomorrow" if step > 0 else "yesterday"), ("Yesterday was", "today") if step > 0 else ("Tomorrow is", "today")])  # fmt: skip
        was = "was it" if asked == "yesterday" else "is it"
        ask = write(rng, f"{{{today} {known}. {{What|Which}} day {was} {asked}?|If {today.lower()} {known}, {{what|which}} day {was} {asked}?|{today} {known}. And {asked}?|{today} {known}, so {{what|which}} day {was} {asked}?|{today} {known}. What day is {asked}?}}")  # fmt: skip
    way = "after" if step > 0 else "before"
    return Turn("calendar", typed(rng, ask), f"{wanted} comes {way} {known}.", f"calendar told {known} {ask.lower()}", wanted)  # fmt: skip


def around_fact(rng: Random) -> Turn:
    """A plain question with a sentence around it that has nothing to do with it."""
    turn = rng.choice((fact, fact, opposite, plural))(rng)
    ask = turn.ask if turn.ask[-1] in "?." else turn.ask + "?"
    return Turn(turn.skill, around(rng, ask), turn.answer, turn.key, turn.value, turn.keys, turn.relation, turn.subject)  # fmt: skip


def lore_turn(rng: Random) -> Turn:
    """One of these questions."""
    return rng.choices((in_a_clause, ripe_color, what_like, what_is_right, between, around_fact), (6, 0.8, 2, 2, 1.5, 2))[0](rng)  # fmt: skip
