# ruff: noqa: E501, SIM905 - lines of text and word lists read better whole
"""Reading: letters and notices, races, changes of plan, what was taken of many, days told one after the other, who said what."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from . import lexicon
from .events import _DO, _ROLES, Told, _clock, _one_thing, _things, _up, someone
from .grammar import write
from .tasks import DAYS, MONTHS, ORDINALS, in_words, listing, plural_of
from .words import ADJECTIVES

# what someone does, without an object: base and past
_ACTS = dict(p.split(":") for p in "play football:played football|go swimming:went swimming|sing:sang|dance:danced|stay at home:stayed at home|build a snowman:built a snowman|bake a cake:baked a cake|visit the zoo:visited the zoo|go fishing:went fishing|sleep late:slept late|work in the garden:worked in the garden|have a party:had a party|fly a kite:flew a kite|take the bus:took the bus|go to the beach:went to the beach|clean the house:cleaned the house|watch a film:watched a film|play chess:played chess|climb a hill:climbed a hill|ride a horse:rode a horse|have a picnic:had a picnic|wash the car:washed the car|play cards:played cards|learn for the test:learned for the test|win a prize:won a prize|see a doctor:saw a doctor|buy new shoes:bought new shoes|leave the town:left the town|fall asleep early:fell asleep early|read a long book:read a long book|run a race:ran a race|paint the fence:painted the fence|plant a tree:planted a tree|cook soup:cooked soup|write letters:wrote letters|go shopping:went shopping".split("|"))  # fmt: skip
_SKY = "It rained all day|The sun came out|It snowed|There was a storm|It was very hot|It was cold and gray|The wind was strong|It was foggy|The sky was blue|It rained all $D".split(
    "|"
)
_PAIRS = [*(pair for pair in ADJECTIVES.items() if {*pair} <= {*lexicon.QUALITIES}), *(p.split(":") for p in "kind:mean brave:afraid friendly:rude strong:weak clever:foolish calm:wild polite:rude funny:boring gentle:fierce loud:quiet greedy:generous lazy:busy early:late cheap:expensive broken:new empty:full awake:asleep open:closed".split())]  # fmt: skip


def _different(rng: Random, draw: Callable[[], str], count: int) -> list[str]:
    out: list[str] = []
    while len(out) < count:
        one = draw()
        if one not in out:
            out.append(one)
    return out


def _named(rng: Random) -> str:
    """Who takes part: a name, an animal, a relative."""
    draw = rng.random()
    if draw < 0.5:
        return lexicon.anyone(rng)
    if draw < 0.8:
        return f"the {rng.choice(lexicon.CREATURES)}"
    if draw < 0.9:
        return f"the {rng.choice(lexicon.PEOPLE)}"
    return f"my {rng.choice(_ROLES)}"


def _contrast(rng: Random) -> Told:
    """Two of whom one was this and the other that."""
    things = rng.random() < 0.3
    pool = (lambda: "the " + rng.choice(lexicon.THINGS)) if things else (lambda: _named(rng))
    a, b = _different(rng, pool, 2)
    x, y = rng.choice(_PAIRS) if rng.random() < 0.5 else rng.sample(lexicon.QUALITIES, 2)
    if rng.random() < 0.5:
        x, y = y, x
    was = rng.choice(["was", "was", "is", "looked", "seemed"])
    texts = []
    asked = ""
    if rng.random() < 0.6:
        first, second = (w.replace("the ", "a ", 1) if w.startswith("the ") else w for w in (a, b))
        who = someone(rng)
        texts.append(_up(write(rng, f"{{{who.first} told {{us|me|the children}} a story about {first} and {second}|{who.first} saw {first} and {second}|there were {first} and {second}|once {first} met {second}|this is about {first} and {second}|in the film there are {first} and {second}|{who.first} knows {first} and {second}}}.")))  # fmt: skip
        asked = rng.choice(["", "", " in the story", " of the two", " of them"])
    texts.append(f"{_up(a)} {was} {x}{rng.choice([', but ', ' and ', ', while ', ', and '])}{b} {was} {y}.")
    who = "What" if things else "Who"
    pairs = []
    for one, how in ((a, x), (b, y)):
        pairs.append((write(rng, f"{{{who} {was} {how}{asked}|Which one {was} {how}|{who} {was} the {how} one|Which of {{them|the two}} {was} {how}}}?"), f"{_up(one)} {was} {how}."))  # fmt: skip
        if was in ("was", "is"):
            pairs.append(
                (write(rng, f"{{How {was} {one}|What {was} {one} like}}?"), f"{_up(one)} {was} {how}.")
            )
    return texts, pairs


def _race(rng: Random) -> Told:
    """Who came first, second, last: told in any order."""
    count = rng.choice((2, 3, 3, 3, 4))
    names = _different(rng, lambda: _named(rng), count)
    places = [*ORDINALS[: count - 1], rng.choice(["last", "last", ORDINALS[count - 1]])]
    told = list(zip(names, places, strict=True))
    rng.shuffle(told)
    event = rng.choice("race|running race|swimming race|contest|competition|game|quiz|spelling contest|boat race|cooking contest|jump|ski race".split("|"))  # fmt: skip
    came = rng.choice(["came", "came in", "was", "finished"])
    again = rng.random() < 0.3
    parts = [f"{n} {came if i == 0 or again else ''} {p}".replace("  ", " ") for i, (n, p) in enumerate(told)]
    text = listing(parts)
    draw = rng.random()
    text = f"In the {event}{rng.choice([' ', ', '])}{text}." if draw < 0.5 else f"{text} in the {event}." if draw < 0.75 else f"There was a {event}. {_up(text)}."  # fmt: skip
    if rng.random() < 0.2:
        text = f"{_up(names[0])} won the {event}. " + " ".join(f"{_up(n)} {came} {p}." for n, p in told if n != names[0])  # fmt: skip
    pairs = []
    for name, place in told:
        if place == "first":
            pairs += [(write(rng, f"{{Who won|Who won|Who won the {event}|Who was the winner|Who was the best|Who was the fastest|Who came first|Who was first}}?"), f"{_up(name)} won.")] * 2  # fmt: skip
        else:
            pairs.append((write(rng, f"{{Who came {place}|Who was {place}|Who came in {place}|Who finished {place}}}?"), f"{_up(name)} came {place}."))  # fmt: skip
            pairs.append((write(rng, f"{{What place did {name} get|Which place did {name} make|How did {name} do}}?"), f"{_up(name)} came {place}."))  # fmt: skip
    return [_up(text)], pairs


def _changed(rng: Random) -> Told:
    """One thing was planned and another came of it: what holds in the end."""
    s = someone(rng)
    e = {"n": s.first, "l": s.later, "s": s.it, "L": _up(s.later)}
    jobs = rng.sample(lexicon.PEOPLE, 2)
    days, months, colors = rng.sample(DAYS, 2), rng.sample(MONTHS, 2), rng.sample(lexicon.COLORS, 2)
    cities = _different(rng, lambda: lexicon.anywhere(rng), 2)
    foods = rng.sample([*lexicon.FOODS, *lexicon.DRINKS], 2)
    things = rng.sample(lexicon.THINGS, 2)
    times = _different(rng, lambda: _clock(rng), 2)
    names = _different(rng, lambda: lexicon.anyone(rng), 2)
    creatures = rng.sample(lexicon.CREATURES, 2)
    event = rng.choice(
        "meeting party concert lesson match trip dinner exam wedding class call game interview picnic".split()
    )
    but = rng.choice(
        [". Later ", ". In the end ", ". But then ", ". Then ", ", but ", ", but in the end ", ". Now "]
    )
    instead = rng.choice(["", "", " instead"])
    kind = rng.randrange(10)
    he = s.it
    if kind == 0:
        a, b = jobs
        text = f"$n wanted to be a {a}{but}{he} became a {b}{instead}."
        pairs = [("{Which job did $l {end up with|get|choose}|What did $l become|What job did $l take in the end|What does $l do now|What is $l{ now|}}?", f"$L became a {b}."), ("{What did $l want to be{ first| at first|}|Which job did $l want first|What was $l's dream}?", f"$L wanted to be a {a}.")]  # fmt: skip
    elif kind == 1:
        a, b = days if rng.random() < 0.6 else times
        on = "on" if b in DAYS else "at"
        text = rng.choice([f"The {event} {on} {a} is cancelled. {rng.choice(['We meet', 'It will be', 'It takes place', 'The new date is' if on == 'on' else 'It starts'])} {on} {b}{instead}.", f"The {event} was moved from {a} to {b}.", f"The {event} is not {on} {a} but {on} {b}.", f"The {event} was {on} {a}{but}it is {on} {b}{instead}.", f"First the {event} was planned for {a}, but now it is {on} {b}."]).replace("The new date is on", "The new date is")  # fmt: skip
        pairs = [(f"{{When is the {event}{{ now|}}|{'On which day' if on == 'on' else 'At what time'} is the {event}{{ now|}}|When does the {event} {{take place|happen}}|When will the {event} be}}?", f"The {event} is {on} {b}."), (f"{{When was the {event} {{first|before|planned|at first}}|What was the old {'day' if on == 'on' else 'time'} of the {event}}}?", f"It was {on} {a}.")]  # fmt: skip
    elif kind == 2:
        a, b = cities
        text = f"$n {rng.choice(['wanted to move', 'planned to go', 'wanted to travel', 'was on the way'])} to {a}{but}{he} {rng.choice(['went', 'moved', 'drove'])} to {b}{instead}."
        pairs = [("{Where did $l go{ in the end|}|Where did $l end up|Which city did $l go to|Where is $l now}?", f"$L went to {b}."), ("{Where did $l want to go{ first|}|Which city was the plan|What was $l's first plan}?", f"$L wanted to go to {a}.")]  # fmt: skip
    elif kind == 3:
        a, b = foods
        text = f"$n {rng.choice(['ordered', 'wanted', 'asked for'])} {a}{but}{he} {rng.choice(['got', 'had', 'took', 'was given'])} {b}{instead}."
        pairs = [("{What did $l get{ in the end|}|What did $l have|What did the waiter bring|What did $l really get}?", f"$L got {b}."), ("{What did $l {order|want|ask for}}?", f"$L wanted {a}.")]  # fmt: skip
    elif kind == 4:
        a, b = colors
        thing = things[0]
        text = rng.choice(
            [
                f"The {thing} was {a}{but}$n painted it {b}.",
                f"$n painted the {a} {thing} {b}.",
                f"The {thing} used to be {a}. Now it is {b}.",
            ]
        )
        pairs = [(f"{{What color is the {thing} {{now|today|in the end}}|Which color does the {thing} have now}}?", f"The {thing} is {b}."), (f"{{What color was the {thing} {{first|before|at first|in the past}}|Which color did the {thing} have before}}?", f"The {thing} was {a}.")]  # fmt: skip
    elif kind == 5:
        a, b = things
        text = rng.choice([f"$n looked for the {a}{but}{he} found {'only ' * (rng.random() < 0.4)}the {b}.", f"$n wanted a {a} for the birthday. {_up(he)} got a {b}.", f"$n went out to buy a {a}{but}{he} came home with a {b}.", f"$n did not take the {a}. {_up(he)} took the {b}."])  # fmt: skip
        pairs = [("{What did $l {get|find|take|come home with}|What did $l have in the end|Which thing did $l get}?", f"It was the {b}.")]  # fmt: skip
    elif kind == 6:
        a, b = names
        creature = creatures[0]
        text = rng.choice([f"$n wanted to call the {creature} {a}{but}{he} called it {b}.", f"The {creature} was called {a}{but}$n named it {b}.", f"$n thought about the name {a} for the {creature}{but}{he} chose {b}."])  # fmt: skip
        pairs = [(f"{{What is the {creature} called{{ now|}}|What is the {creature}'s name|What is the name of the {creature}}}?", f"The {creature} is called {b}.")]  # fmt: skip
    elif kind == 7:
        a, b = sorted(rng.sample(range(2, 200), 2))
        if rng.random() < 0.6:
            a, b = b, a
        thing = things[0]
        text = rng.choice([f"The {thing} was {a} euros. Now it costs {b}.", f"The {thing} costs {b} euros {rng.choice(['today', 'now', 'this week'])}. {rng.choice(['Yesterday', 'Last week', 'Before'])} it was {a}.", f"The price of the {thing} went from {a} to {b} euros."])  # fmt: skip
        pairs = [(f"{{How much is the {thing} {{now|today}}|What does the {thing} cost {{now|today}}|What is the new price|How much do I pay now}}?", f"The {thing} costs {b} euros now."), (f"{{How much was the {thing} before|What was the old price|What did the {thing} cost before}}?", f"The {thing} was {a} euros before.")]  # fmt: skip
    elif kind == 8:
        a, b = creatures
        text = rng.choice([f"$n thought it was a {a}{but}it was a {b}.", f"$n wanted a {a}{but}{he} got a {b}.", f"It looked like a {a}, but it was really a {b}."])  # fmt: skip
        pairs = [("{Which animal {was it{ really|}|did $l get}|What was it{ in the end| really|}|What kind of animal was it}?", f"It was a {b}.")] if "$n wanted" not in text else [("{Which animal did $l get|What did $l get}?", f"$L got a {b}."), ("{Which animal did $l want|What did $l want}?", f"$L wanted a {a}.")]  # fmt: skip
    else:
        a, b = months
        text = rng.choice([f"$n was going to come in {a}{but}{he} came in {b}.", f"The trip was planned for {a}. It was moved to {b}.", f"$n has no time in {a}. {_up(he)} will come in {b}."])  # fmt: skip
        pairs = [("{When {does|will|did} $l come|In which month {does|did} $l come}?", f"$L comes in {b}.")] if "$n" in text else [("{When is the trip|In which month is the trip}?", f"The trip is in {b}.")]  # fmt: skip
    said = _up(write(rng, text, e))
    return [said], [(write(rng, ask, e), write(rng, answer, e)) for ask, answer in pairs]


def _letter(rng: Random) -> Told:
    """A mail or a note with a day, a time, a room, a thing to bring."""
    a, b = _different(rng, lambda: lexicon.anyone(rng), 2)
    event = rng.choice(
        "meeting party concert lesson match dinner exam class rehearsal picnic workshop training talk show".split()
    )
    day, time, thing = rng.choice(DAYS), _clock(rng), rng.choice([rng.choice(lexicon.FOODS), _things(rng), "your " + rng.choice(lexicon.THINGS)])  # fmt: skip
    mine = rng.choice(
        [rng.choice(lexicon.DRINKS), "the drinks", _things(rng), "my " + rng.choice(lexicon.THINGS)]
    )
    number = rng.randint(1, 400)
    place = rng.choice([f"room {number}", f"hall {number}", f"the {rng.choice(lexicon.PLACES)}", f"the {rng.choice(lexicon.PLACES)}"])  # fmt: skip
    at = "in" if place[0] in "rh" else "at"
    parts: list[tuple[str, list[tuple[str, str]]]] = [
        (f"{{The {event} is on {day}|We meet on {day} for the {event}|The {event} will be on {day}|The {event} takes place on {day}}}.", [(f"{{When is the {event}|On which day is the {event}|What day is the {event}}}?", f"The {event} is on {day}.")]),
        (f"{{We {{will meet|meet|start|begin}} at {time}|Please come at {time}|Be there at {time}|It starts at {time}}}.", [("{At what time {do we meet|does it start}|When does it start|What time is it}?", f"It is at {time}.")]),
        (f"{{We {{will |}}meet {at} {place}|It is {at} {place}|Come to {place}|It takes place {at} {place}|You will find us {at} {place}}}.", [(f"{{Where {{do we meet|is it|is the {event}}}|Where should I go|{'Which room is it|Which room do we meet in|In which room is it' if place[:4] == 'room' else 'Where will it be'}}}?", f"It is {at} {place}.")]),
        (f"{{Can you bring {thing}?|Please bring {thing}.|Could you bring {thing}, please?|Don't forget to bring {thing}.|Bring {thing}.}}", [(f"{{What should {b} bring|What does {b} have to bring|What is {b} asked to bring}}?", f"{b} should bring {thing}.")]),
        (f"{{I'll bring {mine}|I will bring {mine}|I am bringing {mine}|{mine.capitalize()}: I bring that}}.", [(f"{{What will {a} bring|What does {a} bring|Who brings {mine}}}?", f"{a} brings {mine}.")]),
        (f"{{I will be late|I cannot come before {time}|My train is late|I am ill|I have lost my key|The car is broken|I have a new phone}}.", [("Who wrote {this|the message|the mail|the letter}?", f"{a} wrote it."), (f"{{To whom did {a} write|Who is it for|Who gets the {{mail|message|letter}}}}?", f"It is for {b}.")]),
        (f"{{Call me at|My number is|You can reach me at}} {number}-{number + 7}.", [(f"{{What is {a}'s number|What is the phone number|Which number should {b} call}}?", f"The number is {number}-{number + 7}.")]),
    ]  # fmt: skip
    chosen = rng.sample(parts, rng.randint(1, 4))
    chosen.sort(key=parts.index)
    body = " ".join(write(rng, text) for text, _ in chosen)
    draw = rng.random()
    if draw < 0.3:
        head = f"From: {a}\nTo: {b}\n"
        if rng.random() < 0.4:
            head += f"Subject: {rng.choice([event, event.capitalize(), day, 'Hello', 'Question'])}\n"
        text = head + rng.choice(["", "\n"]) + body
    elif draw < 0.75:
        gap = rng.choice([" ", "\n", "\n\n"])
        text = f"{rng.choice(['Dear', 'Hi', 'Hello', 'Hey'])} {b},{gap}{body}{gap}{rng.choice(['Best', 'Yours', 'Love', 'Bye', 'See you', 'Best wishes', 'Thanks', 'Regards'])}, {a}"
        text += rng.choice(["", "."])
    elif draw < 0.9:
        text = f"{a} wrote to {b}: {rng.choice(['', chr(34)])}{body}"
        text += '"' if '"' in text else ""
    else:
        text = (
            f"{a}: {body}\n{b}: {rng.choice(['OK!', 'Thanks!', 'See you.', 'Good.', 'All right.', 'Great.'])}"
        )
    pairs = [pair for _, each in chosen for pair in each]
    return [text], [(write(rng, ask), answer) for ask, answer in pairs]


def _picked(rng: Random) -> Told:
    """Several things were there and someone took one."""
    s = someone(rng)
    where = rng.choice([f"in the {rng.choice('box bag drawer basket chest room shop cupboard car fridge suitcase garden kitchen pocket'.split())}", f"on the {rng.choice('table shelf desk bed floor plate bench list'.split())}"])  # fmt: skip
    things = _different(rng, lambda: f"a {_one_thing(rng)}", rng.choice((2, 3, 3, 4)))
    base, past = rng.choice([("take", "took"), ("choose", "chose"), ("buy", "bought"), ("pick", "picked"), ("keep", "kept"), ("want", "wanted"), ("eat", "ate"), ("steal", "stole"), ("open", "opened"), ("find", "found"), ("sell", "sold"), ("break", "broke")])  # fmt: skip
    one = rng.choice(things)
    the = "the " + one[2:]
    short = the.split()[-1]
    be = rng.choice(["were", "were", "was"])
    said = rng.choice(
        [the, the, f"only {the}", f"just {the}", f"the {short}", f"only the {short}", f"nothing but {the}"]
    )
    text = f"{_up(where)} there {be} {listing(things)}. {_up(s.first)} {past} {said}."
    if rng.random() < 0.25:
        text = f"There {be} {listing(things)} {where}. {_up(s.first)} {past} {said}."
    elif rng.random() < 0.15:
        text = f"{_up(s.first)} saw {listing(things)} {where}, but {past} {said}."
    pairs = [(write(rng, f"{{What did {s.later} {base}|What did {s.later} {base}|Which thing did {s.later} {base}|What was it that {s.later} {past}|What did {s.later} {base} {{there|in the end}}}}?"), f"{_up(s.later)} {past} {the}.")] * 3  # fmt: skip
    pairs.append((f"Who {past} {the}?", f"{_up(s.later)} {past} {the}."))
    if be == "were":
        pairs.append((write(rng, f"{{What was {where}|What was there|Which things were {where}}}?"), f"There were {listing(things)}."))  # fmt: skip
    if len(things) == 2 and base in ("take", "steal", "eat", "buy"):
        rest = "the " + next(t for t in things if t != one)[2:]
        pairs.append((write(rng, f"{{What was left|What stayed {where}|What did {s.later} leave|What did {s.later} not {base}}}?"), f"{_up(rest)} was left."))  # fmt: skip
    return [text], pairs


def _days(rng: Random) -> Told:
    """What happened on which day, one sentence after the other."""
    who = _up(someone(rng).later) if rng.random() < 0.5 else rng.choice(["The children", "We", "The twins", "The boys", "My friends", "They"])  # fmt: skip
    lower = {"We": "we", "They": "they", "The children": "the children", "The twins": "the twins", "The boys": "the boys", "My friends": "my friends"}.get(who, who if who.split()[0] not in ("The", "My", "Her", "His", "Our", "Their") else who[0].lower() + who[1:])  # fmt: skip
    count = rng.choice((2, 2, 3, 3, 4))
    start = rng.randrange(7)
    units = rng.random()
    if units < 0.6:
        names = (
            [DAYS[(start + i) % 7] for i in range(count)] if rng.random() < 0.6 else rng.sample(DAYS, count)
        )
        when, ask = [f"on {d}" for d in names], "On which day"
    elif units < 0.8:
        when, ask = [f"in {m}" for m in rng.sample(MONTHS, count)], "In which month"
    else:
        when = rng.choice([["in the morning", "at noon", "in the afternoon", "at night"], ["yesterday", "today", "this evening", "at midnight"], ["before breakfast", "after breakfast", "after lunch", "after dinner"], ["in spring", "in summer", "in autumn", "in winter"]])[:count]  # fmt: skip
        ask = "When"
    acts = rng.sample(list(_ACTS.items()), count)
    texts, pairs = [], []
    for day, (base, past) in zip(when, acts, strict=True):
        sky = rng.choice(_SKY).split(" $")[0] if rng.random() < 0.4 else ""
        sky = sky.removesuffix(" all") if sky.endswith(" all") else sky
        draw = rng.random()
        if sky:
            low = sky[0].lower() + sky[1:]
            if draw < 0.55:
                texts.append(f"{_up(day)} {low} and {lower} {past}.")
            else:
                texts.append(f"{_up(day)} {low}. {who if who != lower else _up(lower)} {past}.")
        else:
            texts.append(f"{_up(day)}{rng.choice([' ', ', '])}{lower} {past}." if draw < 0.6 else f"{who} {past} {day}.")  # fmt: skip
        pairs.append((write(rng, f"{{{ask} did {lower} {base}|{ask} did {lower} {base}|When did {lower} {base}}}?").replace("In which month did we", "In which month did you").replace("day did we", "day did you").replace("When did we", "When did you"), f"It was {day}."))  # fmt: skip
        pairs.append((write(rng, f"{{What did {lower} do {day}|What happened {day}}}?"), f"{who} {past} {day}."))  # fmt: skip
    return texts, pairs


def _talked(rng: Random) -> Told:
    """Two who speak: who said, has, wants, found what."""
    a, b = _different(rng, lambda: _named(rng), 2)
    o, q = rng.sample(lexicon.THINGS, 2)
    place = rng.choice([f"under the {q}", f"behind the {q}", f"in the {rng.choice(lexicon.PLACES)}", f"next to the {q}", "at home", f"on the {q}"])  # fmt: skip
    food, drink = rng.choice(lexicon.FOODS), rng.choice(lexicon.DRINKS)
    city, day, time = lexicon.anywhere(rng), rng.choice(DAYS), _clock(rng)
    said = rng.choice(["said", "said", "said", "cried"])
    talks: list[tuple[str, str, list[tuple[str, str]]]] = [
        (f"I have lost my {o}", f"It is {place}", [(f"{{Who lost the {o}|Who has lost something|Whose {o} is it}}?", f"{_up(a)} lost the {o}."), (f"Where is the {o}?", f"The {o} is {place}."), (f"{{What did {a} lose|What is {a} looking for}}?", f"{_up(a)} lost the {o}.")]),
        (f"I am hungry, I want {food}", f"I only have {drink}", [(f"What does {a} want?", f"{_up(a)} wants {food}."), (f"{{Who is hungry|Who wants {food}}}?", f"{_up(a)} is hungry."), (f"What does {b} have?", f"{_up(b)} has {drink}.")]),
        (f"Let us go to {city}", f"I have no time before {day}", [(f"Where does {a} want to go?", f"{_up(a)} wants to go to {city}."), (f"{{When does {b} have time|When can {b} go}}?", f"{_up(b)} has time on {day}."), (f"Who wants to go to {city}?", f"{_up(a)} wants to go to {city}.")]),
        ("When does the train leave", f"It leaves at {time}", [("When does the train leave?", f"The train leaves at {time}."), ("Who asked about the train?", f"{_up(a)} asked about the train.")]),
        (f"I broke the {o}", f"That does not matter, I have another {o}", [(f"Who broke the {o}?", f"{_up(a)} broke the {o}."), (f"What did {a} break?", f"{_up(a)} broke the {o}."), (f"Who has another {o}?", f"{_up(b)} has another {o}.")]),
        (f"My {o} is too old", "You can have mine", [(f"Whose {o} is too old?", f"{_up(a)}'s {o} is too old."), (f"Who gives a {o} away?", f"{_up(b)} gives a {o} away.")]),
    ]  # fmt: skip
    one, two, pairs = rng.choice(talks)
    stop, stop2 = ("?", ".") if one.startswith("When") else (".", ".")
    draw = rng.random()
    if draw < 0.5:
        mark = "?" if stop == "?" else ","
        text = f'"{one}{mark}" {"asked" if stop == "?" else said} {a}. "{two},"  said {b}.'.replace("  ", " ")
    elif draw < 0.75:
        text = f"{_up(a)}: {one}{stop}\n{_up(b)}: {two}{stop2}"
    else:
        text = f'{_up(a)} said: "{one}{stop}" {_up(b)} said: "{two}{stop2}"'
    return [text], [(write(rng, ask), answer) for ask, answer in pairs]


def _notice(rng: Random) -> Told:
    """A sign, an offer, a recipe: hours, prices, amounts, steps."""
    place = rng.choice(lexicon.PLACES)
    day, other = rng.sample(DAYS, 2)
    a, b = _different(rng, lambda: _clock(rng), 2)
    x, y = rng.sample(range(2, 90), 2)
    money = rng.choice("euros dollars pounds".split())
    f, g, h = rng.sample(lexicon.FOODS, 3)
    thing = rng.choice(lexicon.THINGS)
    parts = [
        (f"{{The {place} is open from {a} to {b}|{place.capitalize()}: open {a} to {b}|Opening hours of the {place}: {a} to {b}}}.", [(f"When does the {place} open?", f"The {place} opens at {a}."), (f"{{When does the {place} close|Until when is the {place} open}}?", f"The {place} closes at {b}.")]),
        (f"{{The {place} is closed on {day}|Closed on {day}|On {day} the {place} is closed}}.", [(f"{{On which day is the {place} closed|When is the {place} closed|Which day is it closed}}?", f"The {place} is closed on {day}.")]),
        (f"{{Tickets cost {x} {money}|A ticket is {x} {money}|Adults pay {x} {money}}}{{, children pay {y}| and {y} for children|. Children: {y}}}.", [("{How much does a ticket cost|What do adults pay|What is the price for an adult}?", f"A ticket costs {x} {money}."), ("{What do children pay|How much is it for a child|How much does a child pay}?", f"Children pay {y} {money}.")]),
        (f"{{You need|Take|For the cake you need|Ingredients:}} {x} grams of {f}, {y} grams of {g} and some {h}.", [(f"How much {f} do {{I|you}} need?", f"You need {x} grams of {f}."), (f"How much {g} do {{I|you}} need?", f"You need {y} grams of {g}."), ("What do I need?", f"You need {f}, {g} and {h}.")]),
        (f"{{First|First of all,}} {{cut|wash|cook|mix}} the {f}. Then add the {g}. {{At the end|Finally}} put the {h} on top.", [("{What do I add then|What do I add after that}?", f"Add the {g}."), ("{What goes on top|What comes at the end|What comes last}?", f"The {h} goes on top.")]),
        (f"Bake it for {x} minutes at {10 * y % 190 + 60} degrees.", [("{How long do I bake it|How long does it bake|How many minutes}?", f"Bake it for {x} minutes."), ("{At how many degrees|How hot must it be}?", f"Bake it at {10 * y % 190 + 60} degrees.")]),
        (f"{{Lost|Found|For sale}}: a {rng.choice(lexicon.COLORS)} {thing}. {{Call|Ask for|Please call}} {lexicon.anyone(rng)}.", [("{What is it about|What was it|Which thing is it}?", f"It is about a {thing}.")]),
        (f"{{The {thing} costs {x} {money}|Price of the {thing}: {x} {money}|{thing.capitalize()}: {x} {money}}}. {{On {other}|This week|Today}} you get {{two for one|it for {y}|10 percent off}}.", [(f"{{How much is the {thing}|What does the {thing} cost|What is the price of the {thing}}}?", f"The {thing} costs {x} {money}.")]),
    ]  # fmt: skip
    chosen = rng.sample(parts, rng.choice((1, 1, 2, 2, 3)))
    text = rng.choice([" ", " ", "\n"]).join(write(rng, t) for t, _ in chosen)
    return [text], [(write(rng, ask), answer) for _, each in chosen for ask, answer in each]


def _each(rng: Random) -> Told:
    """Of three or four each has something else, the verb said once; or all but one."""
    names = _different(rng, lambda: lexicon.anyone(rng), rng.choice((3, 3, 4)))
    if rng.random() < 0.3:
        out = names[0]
        base, past = rng.choice(list(_ACTS.items()))
        text = rng.choice([f"Everyone {past} except {out}.", f"All the {rng.choice('children guests players friends'.split())} {past}, only {out} did not.", f"{listing(names[1:])} {past}, but {out} did not.", f"Nobody but {out} {past}."])  # fmt: skip
        if text.startswith("Nobody"):
            return [text], [(f"Who {past}?", f"Only {out} {past}.")]
        return [text], [(write(rng, f"{{Who did not {base}|Who didn't {base}}}?"), f"{out} did not {base}.")]
    if rng.random() < 0.4:
        cities = _different(rng, lambda: lexicon.anywhere(rng), 3)
        who = someone(rng)
        text = rng.choice([f"First {who.first} went to {cities[0]}, then to {cities[1]}{rng.choice([', and at the end', ' and finally', ', last'])} to {cities[2]}.", f"{_up(who.first)} travelled from {cities[0]} over {cities[1]} to {cities[2]}."])  # fmt: skip
        over = "over" in text
        pairs = [(write(rng, f"{{Where did {who.later} {'start' if over else 'go first'}}}?"), f"It was {cities[0]}."), (write(rng, f"{{Where did {who.later} go after {cities[0]}|Where did {who.later} go next after {cities[0]}}}?"), f"After {cities[0]} it was {cities[1]}."), (write(rng, f"{{Where did {who.later} {{end|end up|arrive at the end}}|Which city came last}}?"), f"It was {cities[2]}.")]  # fmt: skip
        return [text], pairs
    has, base, draw = rng.choice([
        ("has", "have", lambda: f"a {rng.choice(lexicon.CREATURES)}"), ("likes", "like", lambda: rng.choice(lexicon.FOODS)), ("lives in", "live in", lambda: lexicon.anywhere(rng)), ("is", "be", lambda: f"a {rng.choice(lexicon.PEOPLE)}"),
        ("is", "be", lambda: str(rng.randint(3, 99))), ("brought", "bring", lambda: rng.choice([*lexicon.FOODS, *lexicon.DRINKS])), ("bought", "buy", lambda: f"a {_one_thing(rng)}"), ("drew", "draw", lambda: f"a {rng.choice(lexicon.CREATURES)}"), ("collects", "collect", lambda: plural_of(rng.choice(lexicon.THINGS))), ("has", "have", lambda: f"{rng.choice([in_words(rng.randint(2, 20)), str(rng.randint(2, 99))])} {plural_of(rng.choice(lexicon.THINGS))}"),
    ])  # fmt: skip
    values = _different(rng, draw, len(names))
    text = listing([f"{n}{f' {has}' if i == 0 else ''} {v}" for i, (n, v) in enumerate(zip(names, values, strict=True))]) + "."  # fmt: skip
    pairs = []
    for n, v in zip(names, values, strict=True):
        pairs.append((f"Who {has} {v}?", f"{n} {has} {v}."))
        if base != "be":
            do = "does" if has.endswith("s") or has == "lives in" else "did"
            ask = f"Where does {n} live?" if base == "live in" else f"What {do} {n} {base}?"
            pairs.append((ask, f"{n} {has} {v}."))
        else:
            pairs.append((f"How old is {n}?" if v.isdigit() else f"What is {n}?", f"{n} is {v}."))
    return [text], pairs


def _did_with(rng: Random) -> Told:
    """Some doing in two clauses: while, before, after, because of a thing."""
    a, b = _different(rng, lambda: _named(rng), 2)
    (b1, p1), (_, p2) = rng.sample(list(_ACTS.items()), 2)
    word = rng.choice(["while", "before", "after", "when", "because", "so"])
    if rng.random() < 0.3:
        base, past = (w.replace("_", " ") for w in rng.choice(list(_DO.items())))
        thing = _one_thing(rng)
        b1, p1 = f"{base} the {thing}", f"{past} the {thing}"
    text = f"{_up(a)} {p1}{', ' if word == 'so' else ' '}{word} {b} {p2}."
    pairs = [(f"What did {a} do?", f"{_up(a)} {p1}."), (f"What did {b} do?", f"{_up(b)} {p2}."), (f"Who {p1}?", f"{_up(a)} {p1}."), (f"Who {p2}?", f"{_up(b)} {p2}.")]  # fmt: skip
    if word == "because":
        pairs += [(f"Why did {a} {b1}?", f"Because {b} {p2}.")] * 2
    elif word in ("before", "after", "when", "while"):
        pairs.append((f"When did {a} {b1}?", f"{_up(word)} {b} {p2}."))
    return [text], pairs


_MAKERS: list[tuple[float, Callable[[Random], Told]]] = [
    (3, _contrast), (3, _race), (4, _changed), (4, _letter), (3, _picked), (3, _days), (2.5, _talked), (3, _notice), (3, _each), (2, _did_with),
]  # fmt: skip


def account(rng: Random) -> Told:
    """A text of one of these sorts with the questions that it answers."""
    texts, pairs = rng.choices([m for _, m in _MAKERS], [w for w, _ in _MAKERS])[0](rng)
    if rng.random() < 0.15 and "\n" not in texts[0]:
        more, _ = rng.choice((_days, _did_with, _each))(rng)
        texts = [*more, *texts] if rng.random() < 0.5 else [*texts, *more]
    return texts, pairs
