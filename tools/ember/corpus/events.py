# ruff: noqa: E501, SIM905 - lines of text and word lists read better whole
"""Reading: what happened, to whom, from whom, when, why and with what, told of anyone ("her neighbor", "a fox", "farmer Brown")."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import NamedTuple

from . import lexicon
from .grammar import write
from .tasks import DAYS, MONTHS, in_words, plural_of
from .words import invented_word

Told = tuple[list[str], list[tuple[str, str]]]
_NOT_SAID = ["The text does not say that.", "I do not know. The text does not say that."]


class One(NamedTuple):
    """Someone: as first told ("a fox"), as spoken of later ("the fox"), and the pronouns."""

    first: str
    later: str
    it: str
    its: str


_ROLES = "neighbor brother sister mother father uncle aunt boss teacher friend cousin daughter son grandma grandfather wife husband roommate colleague coach dentist doctor landlord nephew niece classmate partner".split()
_GROUPS = "kids children students workers guests neighbors players tourists soldiers sailors girls boys twins farmers visitors nurses".split()
_KIN_NAMES = "Grandma Grandpa Mom Dad Mother Father".split()


def someone(rng: Random) -> One:
    """Anyone who can do something."""
    draw = rng.random()
    if draw < 0.38:
        name = lexicon.anyone(rng)
        return One(name, name, rng.choice(("he", "she")), rng.choice(("his", "her")))
    if draw < 0.56:
        who = f"{rng.choice(('my', 'her', 'his', 'our', 'their', 'the'))} {rng.choice(_ROLES)}"
        return One(who, who, rng.choice(("he", "she")), rng.choice(("his", "her")))
    if draw < 0.68:
        job = rng.choice(lexicon.PEOPLE)
        a = f"{rng.choice(lexicon.QUALITIES)} " if rng.random() < 0.35 else ""
        return One(f"{rng.choice(('a', 'the', 'an old', 'a young'))} {a}{job}", f"the {job}", "he", "his")
    if draw < 0.82:
        creature = rng.choice(lexicon.CREATURES)
        a = f"{rng.choice(lexicon.QUALITIES)} " if rng.random() < 0.3 else ""
        return One(
            f"{rng.choice(('a', 'a', 'the', 'our', 'my'))} {a}{creature}", f"the {creature}", "it", "its"
        )
    if draw < 0.88:
        who = f"{rng.choice(lexicon.PEOPLE)} {rng.choice(lexicon.SURNAMES)}"
        return One(who, who, "he", "his")
    if draw < 0.94:
        who = f"the {rng.choice(_GROUPS)}"
        return One(who, who, "they", "their")
    who = rng.choice(_KIN_NAMES)
    return One(who, who, "she" if who in ("Grandma", "Mom", "Mother") else "he", "his")


def _compound(rng: Random) -> str:
    return f"{rng.choice(lexicon.NOUN_LIKE)} {rng.choice(lexicon.THINGS)}"


def _one_thing(rng: Random) -> str:
    draw = rng.random()
    thing = rng.choice(lexicon.THINGS)
    if draw < 0.5:
        return thing
    if draw < 0.7:
        return f"{rng.choice([rng.choice(lexicon.QUALITIES), rng.choice(lexicon.COLORS)])} {thing}"
    if draw < 0.85:
        return _compound(rng)
    return rng.choice(lexicon.CREATURES) if draw < 0.95 else invented_word(rng)


def _things(rng: Random) -> str:
    draw = rng.random()
    if draw < 0.55:
        return plural_of(rng.choice([*lexicon.THINGS, *lexicon.CREATURES]))
    if draw < 0.7:
        return plural_of(rng.choice(lexicon.FOODS))
    if draw < 0.85:
        return f"{rng.choice(lexicon.COMMON)} {plural_of(rng.choice(lexicon.THINGS))}"
    return rng.choice(
        "roses tulips beans potatoes trees letters songs photos stories pictures coins shells".split()
    )


def _time(rng: Random) -> str:
    return write(
        rng,
        rng.choice(
            [
                "{last night|yesterday|this morning|last week|today|on Sunday|last summer|at noon|before breakfast|after lunch|in the evening|two days ago|last year}",
                f"on {rng.choice(DAYS)}",
                f"in {rng.choice(MONTHS)}",
                f"in {rng.randint(1900, 2030)}",
                f"at {rng.randint(1, 12)} {rng.choice(('am', 'pm'))}",
            ]
        ),
    )


def _clock(rng: Random) -> str:
    hour = rng.randint(1, 12)
    return rng.choice(
        [
            str(hour),
            str(hour),
            f"{hour} {rng.choice(('am', 'pm'))}",
            f"{hour}:{rng.choice(('15', '30', '45', '00'))}",
            f"{rng.randint(6, 23)}:{rng.choice(('15', '30', '00'))}",
            f"{in_words(hour)} o'clock",
            f"{in_words(hour)}",
        ]
    )


def _place(rng: Random) -> str:
    return rng.choice(
        [
            f"in the {rng.choice(lexicon.PLACES)}",
            f"at the {rng.choice(lexicon.PLACES)}",
            f"near the {rng.choice(lexicon.PLACES)}",
            f"in {lexicon.anywhere(rng)}",
            f"behind the {rng.choice(lexicon.PLACES)}",
        ]
    )


def _up(text: str) -> str:
    return text[0].upper() + text[1:]


def _not_there(rng: Random) -> str:
    return rng.choice(_NOT_SAID)


# base: past, of what one does to a thing
_DO = {**lexicon.ACTS} | dict(p.split(":") for p in "plant:planted chase:chased bake:baked bite:bit eat:ate cook:cooked peel:peeled cut:cut sew:sewed knit:knitted carve:carved film:filmed follow:followed feed:fed paint:painted guard:guarded pay_for:paid_for look_for:looked_for eat_up:ate_up swallow:swallowed deliver:delivered rescue:rescued catch:caught water:watered count:counted photograph:photographed ask_for:asked_for".split())  # fmt: skip
_FROM = "steal:stole borrow:borrowed buy:bought get:got receive:received take:took rent:rented inherit:inherited copy:copied fetch:fetched hide:hid collect:collected".split()
_TO = "give:gave send:sent sell:sold bring:brought show:showed lend:lent throw:threw offer:offered return:returned read:read mail:mailed hand:handed".split()
_TOOLS = "knife stick hammer rope spoon broom key stone net brush towel shovel needle ladder torch hook sponge pair_of_scissors bucket ruler lamp saw pen long_pole credit_card screwdriver".split()


def _verb(pair: str) -> tuple[str, str]:
    base, past = pair.split(":")
    return base.replace("_", " "), past.replace("_", " ")


def _did(rng: Random) -> Told:
    """Someone did something to a thing: who, what, from or to whom, with what, where, when."""
    s, other = someone(rng), someone(rng)
    base, past = (w.replace("_", " ") for w in rng.choice(list(_DO.items())))
    whom = ""
    draw = rng.random()
    if draw < 0.3:
        base, past = _verb(rng.choice(_FROM))
        whom = "from"
    elif draw < 0.55:
        base, past = _verb(rng.choice(_TO))
        whom = "to"
    many = rng.random() < 0.35
    thing = _things(rng) if many else _one_thing(rng)
    o = thing if many else f"a {thing}"
    the = f"the {thing}"
    tail, pairs = "", [(write(rng, f"{{What did {s.later} {base}|What did {s.later} {base}|What was it that {s.later} {past}|Which thing did {s.later} {base}|What thing was it}}?"), f"{_up(s.later)} {past} {o}.")]  # fmt: skip
    if many and rng.random() < 0.5:
        number = rng.choice([in_words(rng.randint(2, 20)), str(rng.randint(2, 99))])
        o = f"{number} {thing}"
        pairs = [(f"What did {s.later} {base}?", f"{_up(s.later)} {past} {o}.")]
        pairs.append((write(rng, f"{{How many {thing} did {s.later} {base}|How many {thing} were there}}?"), f"{_up(s.later)} {past} {number} {thing}."))  # fmt: skip
    pairs.append((write(rng, f"{{Who {past} {the}|Who {past} {o}|Who was it that {past} {the}|Who did that}}?"), f"{_up(s.later)} {past} {the}."))  # fmt: skip
    if whom:
        tail += f" {whom} {other.first}"
        ask = {"from": f"{{From whom did {s.later} {base} {the}|Who did {s.later} {base} {the} from|Who had {the} before}}?", "to": f"{{To whom did {s.later} {base} {the}|Who did {s.later} {base} {the} to|Who has {the} now|Who got {the}}}?"}[whom]  # fmt: skip
        pairs.append((write(rng, ask), f"{_up(s.later)} {past} {the} {whom} {other.later}."))  # fmt: skip
    elif rng.random() < 0.2:
        tool = rng.choice(_TOOLS).replace("_", " ")
        tail += f" with a {tool}"
        pairs.append((write(rng, f"{{What did {s.later} {base} {the} with|With what did {s.later} {base} {the}|What did {s.later} use}}?"), f"{_up(s.later)} used a {tool}."))  # fmt: skip
    if rng.random() < 0.35:
        place = _place(rng)
        tail += f" {place}"
        pairs.append((write(rng, f"{{Where did {s.later} {base} {the}|Where was {s.later}|Where was it|Where did this happen}}?"), f"It was {place}."))  # fmt: skip
    text = f"{s.first} {past} {o}{tail}"
    if rng.random() < 0.4:
        when = _time(rng)
        text = f"{when}{rng.choice([', ', ' '])}{text}" if rng.random() < 0.3 else f"{text} {when}"
        pairs.append((write(rng, f"{{When did {s.later} {base} {the}|When was it|When did that happen|When was that}}?"), f"It was {when}."))  # fmt: skip
    if rng.random() < 0.12 and not many:
        text, pairs = f"{the} was {_participle(past)} by {other.first}", [(write(rng, f"{{Who {past} {the}|By whom was {the} {_participle(past)}}}?"), f"{_up(other.later)} {past} {the}."), (write(rng, f"{{What did {other.later} {base}|What was {_participle(past)} by {other.later}}}?"), f"{_up(other.later)} {past} {the}.")]  # fmt: skip
    return [_up(text) + "."], pairs


_PARTS = dict(p.split(":") for p in "broke:broken chose:chosen drew:drawn forgot:forgotten hid:hidden shook:shaken stole:stolen took:taken threw:thrown wore:worn ate:eaten bit:bitten gave:given showed:shown got:got sewed:sewn".split())  # fmt: skip


def _participle(past: str) -> str:
    word, *rest = past.split(" ")
    return " ".join([_PARTS.get(word, word), *rest])


def _both(rng: Random) -> Told:
    """One verb, two who did it, each to something else: which is whose."""
    a, b = someone(rng), someone(rng)
    base, past = (w.replace("_", " ") for w in rng.choice(list(_DO.items())))
    x, y = (_things(rng) if rng.random() < 0.6 else "a " + _one_thing(rng) for _ in "ab")
    if a.later == b.later or x == y:
        return _both(rng)
    if rng.random() < 0.35 and a.it in ("he", "she"):
        role = f"{rng.choice(('his', 'her'))} {rng.choice(_ROLES)}"
        b = One(role, role, "he", "his")
    link = rng.choice([", but ", " and ", ", while ", ", and ", "; ", ". ", ". ", ", whereas "])
    second = b.first if link != ". " else _up(b.first)
    again = "" if rng.random() < 0.15 and link in (", but ", " and ", ", and ", "; ") else f" {past}"
    text = f"{_up(a.first)} {past} {x}{link}{second}{again} {y}."
    pairs = []
    for who, what in ((a, x), (b, y)):
        the = "the " + what[2:] if what.startswith("a ") else what
        pairs += [(write(rng, f"{{What did {who.later} {base}|What did {who.later} {base}|What was it that {who.later} {past}}}?"), f"{_up(who.later)} {past} {what}."), (write(rng, f"{{Who {past} {the}|Who {past} {what}|Which of them {past} {the}}}?"), f"{_up(who.later)} {past} {the}.")]  # fmt: skip
    return [text], pairs


# of one thing or person: two verbs with what belongs to each; "$t" a time, "$D" a day, "$p" a town, "$o" things, "$f" food, "$n" a person
_TWO: list[tuple[str, str, str, str, str, str]] = [
    # kind of subject, link words, (base, third person) twice, what is asked
    ("place", "open:opens", "close:closes", "at $t", "When", ""), ("place", "open:opens", "close:closes", "at $t", "At what time", ""), ("travel", "leave:leaves", "arrive:arrives", "at $t", "When", ""), ("travel", "depart:departs", "arrive:arrives", "at $t", "What time", ""), ("event", "start:starts", "end:ends", "at $t", "When", ""), ("event", "begin:begins", "finish:finishes", "at $t", "When", ""), ("event", "start:starts", "end:ends", "on $D", "On which day", ""), ("who", "get up:gets up", "go to bed:goes to bed", "at $t", "When", ""), ("who", "wake up:wakes up", "fall asleep:falls asleep", "at $t", "When", ""), ("who", "work:works", "rest:rests", "on $D", "When", ""), ("who", "eat lunch:eats lunch", "eat dinner:eats dinner", "at $t", "When", ""), ("who", "come home:comes home", "go out:goes out", "at $t", "When", ""),
    ("past", "buy:bought", "sell:sold", "$o", "What", ""), ("past", "find:found", "lose:lost", "$o", "What", ""), ("past", "leave:left", "reach:reached", "$p on $D", "When", "place"), ("past", "leave:left", "arrive in:arrived in", "$p at $t", "When", "place"), ("past", "start:started", "stop:stopped", "at $t", "When", ""), ("who", "like:likes", "hate:hates", "$f", "What", ""), ("who", "love:loves", "dislike:dislikes", "$o", "What", ""), ("past", "eat:ate", "drink:drank", "$e", "What", ""), ("past", "take:took", "leave behind:left behind", "$o", "What", ""), ("past", "win:won", "lose:lost", "on $D", "When", ""), ("who", "teach:teaches", "learn:learns", "$L", "What", ""), ("who", "live:lives", "work:works", "in $p", "Where", ""), ("past", "wash:washed", "dry:dried", "$o", "What", ""), ("past", "paint:painted", "repair:repaired", "the $1", "What", ""), ("past", "meet:met", "call:called", "$n", "Who", ""), ("past", "ask:asked", "help:helped", "$n", "Who", ""), ("past", "sit down:sat down", "stand up:stood up", "at $t", "When", ""), ("who", "play:plays", "sing:sings", "on $D", "When", ""), ("place", "open:opens", "close:closes", "in $M", "When", ""), ("past", "arrive:arrived", "leave:left", "on $D", "On which day", ""), ("past", "be born:was born", "die:died", "in $y", "When", ""), ("past", "be born:was born", "grow up:grew up", "in $p", "Where", ""),
]  # fmt: skip
_EVENTS = "meeting party concert lesson wedding match exam dinner lunch game show class fair festival race test play film market exhibition workshop ceremony parade sale course".split()


def _fill(rng: Random, template: str, verb: str) -> str:
    env = {"t": _clock(rng), "D": rng.choice(DAYS), "p": lexicon.anywhere(rng), "o": _things(rng) if rng.random() < 0.6 else "a " + _one_thing(rng), "1": _one_thing(rng), "f": rng.choice(lexicon.FOODS), "n": someone(rng).later, "L": rng.choice(lexicon.LANGUAGES), "M": rng.choice(MONTHS), "y": str(rng.randint(1500, 2020)), "e": rng.choice(lexicon.DRINKS) if verb.startswith("dr") else rng.choice(lexicon.FOODS)}  # fmt: skip
    for slot, value in env.items():
        template = template.replace("$" + slot, value)
    return template


def _opposed(rng: Random) -> Told:
    """Two things about one: "The museum opens at 10 and closes at 6." """
    kind, first, second, rest, ask, way = rng.choice(_TWO)
    (base, said), (base2, said2) = (v.split(":") for v in (first, second))
    x, y = _fill(rng, rest, base), _fill(rng, rest, base2)
    if x == y:
        return _opposed(rng)
    if kind == "place":
        name = f"the {rng.choice(lexicon.PLACES)}"
        s = One(name, name, "it", "its")
    elif kind == "event":
        name = f"the {rng.choice(_EVENTS)}"
        s = One(name, name, "it", "its")
    elif kind == "travel":
        name = rng.choice(
            [
                f"the {rng.choice('bus train plane ferry boat tram'.split())}{rng.choice(['', ' to ' + lexicon.anywhere(rng), ' ' + str(rng.randint(1, 99))])}"
            ]
        )
        s = One(name, name.split(" to ")[0], "it", "its")
    else:
        s = someone(rng)
        while s.it == "they" or (" be" in " " + base and s.it == "they"):
            s = someone(rng)
    pairs_of = [(base, said, x), (base2, said2, y)]
    if rng.random() < 0.3:
        pairs_of.reverse()
    (_, v1, r1), (_, v2, r2) = pairs_of
    link = rng.choice(
        [" and ", " and ", ", but ", ", and ", f". {_up(s.it)} ", f", and {s.it} ", f" and {s.it} "]
    )
    extra = rng.choice(["", "", "", " every day", " on Sundays", " this year", " as always"]) if kind in ("place", "who") and "$D" not in rest and "$M" not in rest else ""  # fmt: skip
    text = f"{_up(s.first)} {v1} {r1}{link}{v2} {r2}{extra}."
    pairs = []
    for b, v, r in pairs_of:
        name = s.it if rng.random() < 0.45 else s.later
        if b == "be born":
            pairs.append((f"{ask} was {name} born?", f"{_up(name)} was born {r}."))
            continue
        do = "did" if kind == "past" else "does"
        if way == "place":  # "left Boston on Monday": when, and what was left
            where, on, when = r.partition(" on " if " on " in r else " at ")
            pairs.append((f"{rng.choice(['When', 'On which day' if on == ' on ' else 'At what time'])} {do} {name} {b} {where}?", f"{_up(name)} {v} {where}{on}{when}."))  # fmt: skip
            pairs.append((f"{rng.choice(['Which city', 'What town', 'Which place'])} {do} {name} {b}{on}{when}?", f"{_up(name)} {v} {where}{on}{when}."))  # fmt: skip
        else:
            pairs.append((f"{ask} {do} {name} {b}?", f"{_up(name)} {v} {r}."))
    return [text], pairs


_EFFECTS = "waited:wait|stayed at home:stay at home|took the bus:take the bus|took the long way:take the long way|closed the window:close the window|opened the window:open the window|went to bed early:go to bed early|called the doctor:call the doctor|bought a new one:buy a new one|missed the train:miss the train|turned back:turn back|put on a coat:put on a coat|laughed:laugh|cried:cry|ran away:run away|sold the $o:sell the $o|came late:come late|walked home:walk home|cancelled the trip:cancel the trip|took off the coat:take off the coat|asked for help:ask for help|drank a lot of water:drink a lot of water|hid under the bed:hide under the bed|could not sleep:not sleep|left early:leave early|climbed a tree:climb a tree|slept all day:sleep all day|sat in the shade:sit in the shade|lit a candle:light a candle|lost the game:lose the game|won the prize:win the prize|moved to $p:move to $p|did not eat it:not eat it|went to the $s:go to the $s|stopped:stop|drove slowly:drive slowly|called the police:call the police|was angry:get angry|took a taxi:take a taxi|ate nothing:eat nothing|bought a $o:buy a $o|learned $L:learn $L|wore gloves:wear gloves|shouted:shout|smiled:smile|slipped:slip|got wet:get wet|got lost:get lost|changed the plan:change the plan|opened an umbrella:open an umbrella|returned the $o:return the $o".split(
    "|"
)
_CAUSES = "{the bridge was closed|the $o was broken|the $o was too {heavy|small|big|hot|cold|expensive|old|dirty}|the {soup|tea|water|coffee|sand|sun} was too {hot|cold|strong}|it {rained|snowed|was raining|was dark|was too late|was very hot|was freezing|was a holiday}|there was {a storm|no bus|ice on the road|a fire|too much noise|fog|a lot of traffic|no light|no $f left}|the {train|bus|plane|$k} was late|the {music|dog|street} was too loud|the road was {icy|blocked|wet|closed}|the $k {ran away|barked|was sick|was asleep|had escaped}|the shop was closed|the {battery|bottle|fridge|tank} was empty|the door was locked|the {key|ticket|map|$o} was lost|nobody was at home|the {film|book|lesson|speech} was boring|the alarm did not ring|the {milk|fish|$f} was bad|the test was {easy|hard}|$n had {a cold|a birthday|an accident|a headache}|the neighbors were loud|the price was too high|the $s was {full|crowded|closed|on fire}|the lights went out|a $k {was in the garden|sat on the road|came in}}"


def _because(rng: Random) -> Told:
    """Why: a cause and what came of it, in either order."""
    s = someone(rng)
    if rng.random() < 0.2:
        name = f"the {rng.choice('bus train taxi team driver class family group'.split())}"
        s = One(name, name, "it", "its")
    env = {"o": rng.choice(lexicon.THINGS), "p": lexicon.anywhere(rng), "s": rng.choice(lexicon.PLACES), "L": rng.choice(lexicon.LANGUAGES), "k": rng.choice(lexicon.CREATURES), "f": rng.choice(lexicon.FOODS), "n": lexicon.anyone(rng)}  # fmt: skip
    done, base = (write(rng, part, env) for part in rng.choice(_EFFECTS).split(":"))
    if s.it == "they":
        done = done.replace("was ", "were ")
    cause = write(rng, _CAUSES, env)
    text = rng.choice([f"Because {cause}, {s.first} {done}.", f"{_up(s.first)} {done} because {cause}.", f"{_up(cause)}, so {s.first} {done}.", f"{_up(cause)}. {rng.choice(['That is why', 'So', 'Therefore'])} {s.first} {done}.", f"Since {cause}, {s.first} {done}.", f"{_up(s.first)} {done}, since {cause}.", f"{_up(s.first)} {done}. The reason: {cause}."])  # fmt: skip
    negative = base.startswith("not ")
    ask = f"Why {'could' if 'could' in done else 'did'} {s.later} {base}?"
    pairs = [(ask, f"Because {cause}."), (rng.choice([ask, "Why?", "What was the reason?", f"What was the reason that {s.later} {done}?"]), f"Because {cause}.")]  # fmt: skip
    pairs.append((write(rng, f"{{Who {done}|Who was it that {done}}}?"), f"{_up(s.later)} {done}."))
    if not negative:
        pairs.append((f"What did {s.later} do{rng.choice(['', ' because ' + cause, ' then'])}?", f"{_up(s.later)} {done}."))  # fmt: skip
    return [text], pairs


def _count(rng: Random) -> Told:
    """How many of each: "A farmer has two cows and seven hens." """
    s = someone(rng)
    kinds = rng.sample(
        lexicon.CREATURES if rng.random() < 0.3 else lexicon.THINGS if rng.random() < 0.7 else lexicon.FOODS,
        rng.choice((2, 2, 2, 3, 3, 4)),
    )
    kinds = [plural_of(k) for k in kinds]
    numbers = [
        rng.choice([in_words(n), in_words(n), str(n)]) if n < 21 else str(n)
        for n in (rng.choice((rng.randint(2, 12), rng.randint(2, 99))) for _ in kinds)
    ]
    listed = [f"{n} {k}" for n, k in zip(numbers, kinds, strict=True)]
    both = ", ".join(listed[:-1]) + " and " + listed[-1]
    draw = rng.random()
    have, has = ("have", "have") if s.it == "they" else ("have", "has")
    if draw < 0.45:
        text = f"{_up(s.first)} {has} {both}."
        pairs = [(write(rng, f"{{How many {k} {'do' if s.it == 'they' else 'does'} {s.later} have|How many {k} are there|What number of {k} {'do' if s.it == 'they' else 'does'} {s.later} {have}}}?"), f"{_up(s.later)} {has} {n} {k}.") for n, k in zip(numbers, kinds, strict=True)]  # fmt: skip
    elif draw < 0.7:
        base, past = rng.choice([("buy", "bought"), ("see", "saw"), ("sell", "sold"), ("count", "counted"), ("find", "found"), ("catch", "caught"), ("bring", "brought"), ("pack", "packed"), ("eat", "ate"), ("order", "ordered"), ("make", "made"), ("win", "won")])  # fmt: skip
        other = someone(rng)
        text = f"{_up(s.first)} {past} {both}."
        pairs = [(f"How many {k} did {s.later} {base}?", f"{_up(s.later)} {past} {n} {k}.") for n, k in zip(numbers, kinds, strict=True)]  # fmt: skip
        if rng.random() < 0.5 and other.later != s.later:  # a second one did something else to some of them
            base2, past2 = rng.choice([("eat", "ate"), ("take", "took"), ("lose", "lost"), ("break", "broke"), ("paint", "painted"), ("steal", "stole"), ("hide", "hid")])  # fmt: skip
            few = in_words(rng.randint(2, 9))
            k, n = kinds[0], numbers[0]
            if few == n:
                return _count(rng)
            text = f"{_up(s.first)} {past} {n} {k}{rng.choice([' and ', ', and ', ', but ', '. '])}\x01 {past2} {few}{rng.choice(['', ' of them'])}."
            text = text.replace(". \x01", ". " + _up(other.first)).replace("\x01", other.first)
            pairs = [(f"How many {k} did {s.later} {base}?", f"{_up(s.later)} {past} {n} {k}."), (f"How many {k} did {other.later} {base2}?", f"{_up(other.later)} {past2} {few} {k}.")]  # fmt: skip
    else:
        place = _place(rng)
        text = (
            f"{rng.choice(['There are', 'You can see', 'We counted', 'They keep', 'I saw'])} {both} {place}."
        )
        pairs = [(write(rng, f"{{How many {k} are there|How many {k} are {place}|What is the number of {k}|How many {k}}}?"), f"There are {n} {k}.") for n, k in zip(numbers, kinds, strict=True)]  # fmt: skip
    return [text], pairs


def _each(rng: Random) -> Told:
    """Of two or three things of one sort: where each is, what is in it, what it costs, whose it is."""
    sort = rng.choice(
        [
            *"box bag door room key bottle drawer folder cup car house shelf bike ticket jar tent basket card boat table hall book".split(),
            rng.choice(lexicon.THINGS),
        ]
    )
    marks = rng.choice(
        [
            lexicon.COLORS,
            "big small old new".split(),
            "first second third fourth".split(),
            "left right middle".split(),
            lexicon.QUALITIES,
        ]
    )
    chosen = rng.sample(marks, rng.choice((2, 2, 3)) if len(marks) > 2 else 2)
    kind = rng.randrange(6)
    texts, pairs = [], []
    short = rng.random() < 0.3 and len(chosen) == 2
    for i, mark in enumerate(chosen):
        it = f"the {mark} {sort if not (short and i) else 'one'}"
        full, value, asks, back = {
            0: lambda: ("belongs to ", someone(rng).later, ["Whose is $i", "Who owns $i", "Who does $i belong to"], "Which " + sort + " belongs to $v"),
            1: lambda: (rng.choice(["holds ", "contains ", "has "]), _things(rng), ["What is in $i", "What does $i {hold|contain}"], "Where are the $v"),
            2: lambda: ("costs ", f"{rng.randint(2, 99)} {rng.choice(('euros', 'dollars'))}", ["How much is $i", "What does $i cost", "How much does $i cost"], "Which " + sort + " costs $v"),
            3: lambda: ("is ", _place(rng), ["Where is $i", "Where can I find $i"], "Which " + sort + " is $v"),
            4: lambda: (rng.choice(["came from ", "comes from "]), lexicon.anywhere(rng), ["Where does $i come from", "Where is $i from"], "Which " + sort + " comes from $v"),
            5: lambda: ("is for ", someone(rng).later, ["Who is $i for", "Who gets $i", "For whom is $i"], "Which " + sort + " is for $v"),
        }[kind]()  # fmt: skip
        if any(value in t for t in texts):
            return _each(rng)
        if kind == 1 and short and i:
            it = f"the {mark} one"
        texts.append(f"{it} {full}{value}")
        name = f"the {mark} {rng.choice([sort, sort, 'one'])}"
        answer = f"{_up(name)} {full}{value}."
        pairs.append((write(rng, rng.choice(asks).replace("$i", name)) + "?", answer))
        pairs.append((back.replace("$v", value) + "?", f"The {mark} {sort} {full}{value}."))
    if rng.random() < 0.5:
        text = [_up(", ".join(texts[:-1])) + rng.choice([" and ", ", and ", ", but "]) + texts[-1] + "."]
    else:
        text = [_up(t) + "." for t in texts]
    return text, pairs


_PURPOSE = "buy:bought find:found see:saw get:got sell:sold return:returned fix:fixed paint:painted draw:drew study:studied".split()


def _went(rng: Random) -> Told:
    """Someone went somewhere to do something; first one thing and then another; who said what."""
    s, other = someone(rng), someone(rng)
    draw = rng.random()
    if draw < 0.35:
        goal = rng.choice([f"to the {rng.choice(lexicon.PLACES)}", f"to {lexicon.anywhere(rng)}"])
        base, _ = _verb(rng.choice(_PURPOSE))
        o = rng.choice([_things(rng), "a " + _one_thing(rng)])
        went, go = rng.choice(
            [
                ("went", "go"),
                ("drove", "drive"),
                ("walked", "walk"),
                ("ran", "run"),
                ("came", "come"),
                ("travelled", "travel"),
            ]
        )
        return [f"{_up(s.first)} {went} {goal} to {base} {o}."], [(f"Where did {s.later} {go}?", f"{_up(s.later)} {went} {goal}."), (f"Why did {s.later} {go} {goal}?", f"To {base} {o}."), (f"Who {went} {goal}?", f"{_up(s.later)} {went} {goal}."), (f"What did {s.later} want to {base}?", f"{_up(s.later)} wanted to {base} {o}.")]  # fmt: skip
    if draw < 0.6:
        (b1, p1), (b2, p2) = (
            (w.replace("_", " ") for w in pair) for pair in rng.sample(list(_DO.items()), 2)
        )
        x, y = "the " + _one_thing(rng), "the " + _one_thing(rng)
        text = rng.choice([f"First {s.first} {p1} {x}, then {s.it} {p2} {y}.", f"{_up(s.first)} {p1} {x} and then {p2} {y}.", f"After {s.first} {p1} {x}, {s.it} {p2} {y}.", f"Before {s.first} {p2} {y}, {s.it} {p1} {x}."])  # fmt: skip
        return [text], [(rng.choice([f"What did {s.later} do first?", f"What happened before {s.later} {p2} {y}?"]), f"{_up(s.later)} {p1} {x}."), (rng.choice([f"What did {s.later} do {rng.choice(['then', 'next', 'last', 'in the end'])}?", f"What did {s.later} do after that?"]), f"{_up(s.later)} {p2} {y}."), (f"What did {s.later} {b1}?", f"{_up(s.later)} {p1} {x}."), (f"What did {s.later} {b2}?", f"{_up(s.later)} {p2} {y}.")]  # fmt: skip
    if draw < 0.8:
        if s.later == other.later:
            return _went(rng)
        past, _base = rng.choice([("told", "tell"), ("asked", "ask"), ("called", "call"), ("visited", "visit"), ("met", "meet"), ("helped", "help"), ("thanked", "thank"), ("saw", "see"), ("followed", "follow"), ("taught", "teach"), ("married", "marry"), ("beat", "beat"), ("woke", "wake"), ("invited", "invite"), ("bit", "bite"), ("chased", "chase"), ("kissed", "kiss"), ("pushed", "push"), ("saved", "save")])  # fmt: skip
        tail = f" {_place(rng) if rng.random() < 0.5 else _time(rng)}" if rng.random() < 0.5 else ""
        return [f"{_up(s.first)} {past} {other.first}{tail}."], [(f"Who {past} {other.later}?", f"{_up(s.later)} {past} {other.later}."), (f"{rng.choice(['Who', 'Whom'])} did {s.later} {_base}?", f"{_up(s.later)} {past} {other.later}.")]  # fmt: skip
    cause = write(rng, _CAUSES, {"o": rng.choice(lexicon.THINGS), "k": rng.choice(lexicon.CREATURES), "s": rng.choice(lexicon.PLACES), "f": rng.choice(lexicon.FOODS), "n": lexicon.anyone(rng)})  # fmt: skip
    said, say = rng.choice(
        [
            ("said", "say"),
            ("wrote", "write"),
            ("thought", "think"),
            ("heard", "hear"),
            ("knew", "know"),
            ("noticed", "notice"),
        ]
    )
    return [f"{_up(s.first)} {said} that {cause}."], [(f"What did {s.later} {say}?", f"{_up(s.later)} {said} that {cause}."), (f"Who {said} that {cause}?", f"{_up(s.later)} {said} that.")]  # fmt: skip


_HOUSE: list[tuple[str, str, str]] = [
    ("{The |}{wifi|door|garage|safe|computer|guest} {password|code} is $w.", "{What is the password|What is the code|What's the password|Which code do I need|Password}?", "It is $w."), ("The {pool|gym|sauna|bar|library|garden|shop} is on floor $i.", "{Which floor is it on|On which floor is it|Where is it}?", "It is on floor $i."), ("Check-out is {at|before|until} $t.", "{When is check-out|When do I have to leave|Until when can I stay|What time is check-out}?", "Check-out is at $t."), ("Check-in {starts|is|begins} at $t.", "{When is check-in|When can I come|From when can I check in|What time is check-in}?", "Check-in is at $t."), ("Parking costs $i euros {a day|per day|a night}.", "{What does parking cost|How much is parking|What do I pay for parking|Is parking free}?", "Parking costs $i euros."), ("{Breakfast|Food} is served from $t to $u.", "{When is {breakfast|food} served|When can I eat|From when is there food}?", "It is from $t to $u."), ("{For help|In an emergency|With questions}, call $n{ at $w|}.", "{Who do I call for help|Whom can I call|Who helps me|Who can I call}?", "You can call $n."), ("{Pets|Dogs|Cats} are {not allowed|forbidden}.", "{Are pets allowed|Can I bring my dog|May I bring my cat}?", "No, that is not allowed."), ("{Smoking|Swimming|Parking|Cooking|Camping|Fishing} is {not allowed|forbidden} {in the $s|here|on Sundays}.", "{What is {not allowed|forbidden}|What must I not do}?", ""),
    ("The {nearest|next} {pharmacy|bank|bakery|supermarket|station|hospital} is {next to|behind|near} the $s.", "{Where is it|Where is the nearest one|Where do I find it}?", "It is near the $s."), ("The {manager|owner|cook|teacher|guide|driver|boss}'s name is $n.", "{What is the name|Who is it|What is that person called}?", "It is $n."), ("{Lunch|The tour|The bus|Entry|The meal|The room|The course|A ticket} costs $i {euros|dollars}.", "{How much is it|What does it cost|What is the price}?", "It costs $i."), ("The {tour|course|trip|film|flight|lesson|drive} takes $i {minutes|hours|days}.", "{How long does it take|How long is it}?", "It takes $i."), ("{The bin|The trash|Paper|Glass} is collected on $D.", "{When is it collected|On which day is it collected}?", "It is collected on $D."), ("The key is {under the $o|in the $o|behind the $o|at the $s}.", "{Where is the key|Where do I find the key|where's the key}?", "THE_KEY"),
]  # fmt: skip


def _house(rng: Random) -> Told:
    """A notice: what a guest may want to know."""
    texts, pairs = [], []
    for statement, ask, answer in rng.sample(_HOUSE, rng.choice((2, 3, 3, 4))):
        env = {"w": rng.choice([invented_word(rng), f"{rng.choice(lexicon.COMMON)}{rng.randint(1, 99)}", str(rng.randint(100, 99999)), rng.choice(lexicon.COMMON) + rng.choice(lexicon.COMMON)]), "i": str(rng.randint(2, 40)), "t": _clock(rng), "u": _clock(rng), "n": lexicon.anyone(rng), "s": rng.choice(lexicon.PLACES), "D": rng.choice(DAYS), "o": rng.choice(lexicon.THINGS)}  # fmt: skip
        text = write(rng, statement, env)
        texts.append(_up(text))
        if not answer:
            answer = text.split(" is ")[0] + " is not allowed."
        elif answer == "THE_KEY":
            answer = text
        else:
            answer = write(rng, answer, env)
        if answer.startswith("It ") and any(a.startswith("It ") for _, a in pairs):
            texts.pop()
            continue
        pairs.append((write(rng, ask, env), answer))
    return texts, pairs


_MAKERS: list[Callable[[Random], Told]] = [_did, _both, _opposed, _because, _count, _each, _went]
_SHARES = (9, 7, 8, 6, 6, 6, 5)


def event(rng: Random) -> Told:
    """One to four sentences, and the questions that they answer; now and then one that they do not."""
    if rng.random() < 0.08:
        return _house(rng)
    texts, pairs = rng.choices(_MAKERS, _SHARES)[0](rng)
    if rng.random() < 0.05:
        _, pairs = rng.choices(_MAKERS, _SHARES)[0](rng)
        return texts, [(ask, _not_there(rng)) for ask, _ in pairs if ask not in _VAGUE] or [("How old is the ship?", _not_there(rng))]  # fmt: skip
    for _ in range(rng.choice((0, 0, 0, 1, 1, 2, 3))):
        more, others = rng.choices(_MAKERS, _SHARES)[0](rng)
        texts = [*texts, *more] if rng.random() < 0.5 else [*more, *texts]
        if rng.random() < 0.5:
            pairs = [*pairs, *(p for p in others if p[0] not in _VAGUE)]
        pairs = [p for p in pairs if p[0] not in _VAGUE]
    return (texts, pairs) if pairs else event(rng)


_VAGUE = {
    "Why?",
    "What was the reason?",
    "When was it?",
    "When was that?",
    "When did that happen?",
    "Where was it?",
    "Where did this happen?",
    "Who did that?",
    "What thing was it?",
}
