# ruff: noqa: E501, SIM905 - lines of text and word lists read better whole
"""Reading: a few sentences, and a question about one of them, about two compared, or about none."""

from __future__ import annotations

from random import Random
from typing import Any

from .extras import SIZES
from .facts import CAPITALS
from .grammar import write
from .sample import Sample, Turn
from .tasks import DAYS, MONTHS, fix_articles, in_words
from .typed import typed
from .words import BOYS, GENDER, GIRLS, NOUNS, PLURALS, PRONOUNS, SLOTS, invented_word

# One fact each: statements (any of them), then (questions, answer). Variables: $n $m two names ($he $his of the first),
# $o $q things, $p $r cities, $c $d colors, $i a number and $I it in words, $f food, $j a job, $k an animal, $l another, $s a place, $t a time, $D a day,
# $M a month, $P things in the plural, $h hobby, $b room
SCHEMAS: list[tuple[list[str], list[tuple[str, str]]]] = [
    (["The $k is called $n.", "The $k's name is $n.", "$n is the name of the $k.", "There is a $k called $n.", "Our $k is called $n.", "We have a $k named $n.", "My $k is named $n."], [("{What is the $k called|What is the name of the $k|What's the $k's name|How is the $k called|What is the $k's name}?", "The $k is called $n."), ("{Who is $n|What is $n|What kind of animal is $n}?", "$n is the $k.")]),
    (["$n has a $c $o.", "$n owns a $c $o.", "$n bought a $c $o.", "The $o of $n is $c.", "$n's $o is $c.", "$n got a $c $o{ for $his birthday| yesterday|}."], [("{What color is $n's $o|Which color is $n's $o|What is the color of $n's $o|What color does $n's $o have}?", "$n's $o is $c."), ("{Who has a $o|Who owns a $o|Whose $o is $c|Who has the $o|Who has the $c $o}?", "$n has a $c $o."), ("{What does $n have|What does $n own|What has $n got}?", "$n has a $c $o.")]),
    (["$n lives in $p.", "$n comes from $p.", "$n's home is in $p.", "$n moved to $p and lives there now.", "My {friend|sister|cousin|uncle|neighbor|brother|aunt|teacher} $n lives in $p."], [("{Where does $n live|In which city does $n live|Which city does $n live in|Where is $n's home|In what city is $n living}?", "$n lives in $p."), ("Who lives in $p?", "$n lives in $p.")]),
    (["$n is $i years old.", "$n turned $i {last week|today|in $M|yesterday}.", "$n is $i.", "$n's age is $i."], [("{How old is $n|What is $n's age|What age is $n}?", "$n is $i years old.")]),
    (["$n likes $f.", "$n loves $f.", "$n's favorite food is $f.", "$n likes to eat $f.", "$n eats $f every day."], [("{What does $n like|What does $n like to eat|What does $n eat|What is $n's favorite food|Which food does $n like}?", "$n likes $f."), ("Who {likes|eats|loves} $f?", "$n likes $f.")]),
    (["$n is a $j.", "$n works as a $j.", "$n {became|is} a $j{ last year| in $p|}.", "$n has worked as a $j for $I years."], [("{What is $n's job|What does $n do for work|What is $n|What does $n do|What is the job of $n|What does $n work as|What is $n's profession}?", "$n is a $j."), ("{Who is a $j|Who works as a $j|Who is the $j}?", "$n is a $j.")]),
    (["The $o is {in|lying in} the $b.", "You can find the $o in the $b.", "$n {left|put|forgot|keeps} the $o in the $b.", "I put the $o in the $b."], [("{Where is the $o|In which room is the $o|Where can I find the $o|Where should I look for the $o|Where did the $o go}?", "The $o is in the $b."), ("What is in the $b?", "The $o is in the $b.")]),
    (["The $c box holds $P.", "The $c box {contains|is full of} $P.", "There are $P in the $c box.", "In the $c box there are $P.", "The $P are in the $c box."], [("{What is in the $c box|What does the $c box hold|What does the $c box contain|What can I find in the $c box}?", "The $c box holds $P."), ("{Which box holds the $P|Where are the $P|Which box has $P|In which box are the $P}?", "The $P are in the $c box.")]),
    (["The $o costs $i {euros|dollars}.", "The price of the $o is $i {euros|dollars}.", "You can buy the $o for $i {euros|dollars}.", "$n paid $i {euros|dollars} for the $o."], [("{How much is the $o|What does the $o cost|How much does the $o cost|What is the price of the $o|How much did the $o cost}?", "The $o costs $i.")]),
    (["The $s opens at $t.", "The $s is open from $t{ on| every day|}.", "At $t the $s opens."], [("{When does the $s open|What time does the $s open|At what time does the $s open|From when is the $s open}?", "The $s opens at $t.")]),
    (["The $s closes at $t{ on $D|}.", "At $t the $s closes.", "The $s is open until $t.", "The $s is closed after $t."], [("{When does the $s close|What time does the $s close|At what time does the $s close|Until when is the $s open}?", "The $s closes at $t.")]),
    (["The {train|bus|plane} to $p leaves at $t.", "At $t the {train|bus|plane} leaves for $p."], [("{When does it leave for $p|At what time can I go to $p|When is the departure to $p|When does the trip to $p start}?", "It leaves for $p at $t.")]),
    (["The meeting is on $D.", "We {meet|will meet} on $D.", "The meeting takes place on $D at $t.", "The meeting was moved {to $D|from $E to $D}.", "They {changed|moved} the meeting from $E to $D."], [("{When is the meeting|On which day is the meeting|What day is the meeting|Which day is the meeting on|On what day do we meet|When is the meeting now}?", "The meeting is on $D.")]),
    (["The {party|concert|lesson|wedding|match} is on $D.", "On $D there is a {party|concert|lesson|match}.", "$n's {party|concert|lesson} is on $D at $t."], [("{Which day is it on|On which day is it|What day is it on}?", "It is on $D.")]),
    (["$n {gave|handed|sent|lent} the $o to $m.", "$n {gave|handed|lent} $m the $o.", "$m got the $o from $n.", "$m borrowed the $o from $n."], [("{Who has the $o now|Who got the $o|Who has the $o}?", "$m has the $o."), ("{Who gave the $o away|Who had the $o first|Who gave the $o to $m}?", "$n gave the $o to $m.")]),
    (["$n went to the $s.", "$n {walked|drove|ran} to the $s{ in the morning| yesterday| on $D|}.", "Yesterday $n was at the $s.", "$n {spent the day|was} at the $s."], [("{Where did $n go|Where was $n|To which place did $n go|Where has $n been}?", "$n went to the $s.")]),
    (["$n was born in $p.", "$n was born in $y in $p.", "$p is where $n was born.", "$n was born in $p and moved to $r.", "$n grew up in $r but was born in $p."], [("{Where was $n born|In which city was $n born|What is $n's place of birth|What is $n's birthplace}?", "$n was born in $p.")]),
    (["$n was born in $y.", "In $y $n was born.", "$n, born in $y, lives in $p."], [("{When was $n born|In which year was $n born|What year was $n born|What is $n's year of birth}?", "$n was born in $y.")]),
    (["$n bought $I $c $P{ at the market| in the shop| on $D|}.", "$n has $I $c $P.", "$n found $I $c $P{ in the garden|}.", "$n counted $I $c $P."], [("{How many $P did $n buy|How many $P does $n have|How many $P are there|How many $P did $n get|How many $P has $n got}?", "$n has $I $P."), ("{What color were the $P|What color are the $P|Which color do the $P have}?", "The $P are $c."), ("{What did $n buy|What did $n get|What does $n have}?", "$n has $I $c $P.")]),
    (["{A|The} farmer has $I $L and a $o.", "{A|The} farmer has $I $L.", "On the farm there are $I $L.", "There are $I $L on the farm.", "$n's farm has $I $L."], [("{How many $L are there|How many $L does the farmer have|How many $L live on the farm|What is the number of $L}?", "There are $I $L.")]),
    (["We played $g.", "{Yesterday|On $D} we {stayed home and|stayed inside and|met and} played $g.", "The children played $g{ all day| in the garden|}.", "$n and $m played $g."], [("{What did {we|they|the children|$n} play|Which game was it|What game was played|What was played}?", "They played $g.")]),
    (["It rained{ all day| on $D|}, so {we|they|the children} $w.", "{We|They|The children} $w because it rained.", "Because it was raining, {we|they} $w."], [("{Why did they do that|What was the reason|Why}?", "Because it rained."), ("{What was the weather like|How was the weather}?", "It rained."), ("{What did they do|What did we do|What happened then}?", "They $w.")]),
    (["The $z was too $a, so $n $x.", "$n $x because the $z was too $a.", "Because the $z was too $a, $n $x."], [("{Why did $n do that|Why was it|What was the reason|Why did $n $X}?", "Because the $z was too $a."), ("{What was too $a}?", "The $z was too $a."), ("{How was the $z|What was wrong with the $z}?", "The $z was too $a."), ("{What did $n do|What happened}?", "$n $x.")]),
    (["$n was {tired|sick|sad|happy|angry|hungry} because $he {lost|broke|found|missed} the $o."], [("{Why was $n like that|Why did $n feel that way|What happened to $n}?", "It was because of the $o.")]),
    (["$n {grows|sells|collects|paints} $P.", "$n {grows|sells|collects} $P{ in the garden| in $p|}."], [("{What are $n's things|What does $n have a lot of}?", "$P.")]),
    (["$n grows $P.", "$n grows $P in the garden.", "In $his garden $n grows $P."], [("{What does $n grow|What grows in $n's garden|What does $n grow in the garden}?", "$n grows $P.")]),
    (["$n sells $P.", "At the market $n sells $P.", "$n sells $P in a small shop."], [("{What does $n sell|What can you buy from $n}?", "$n sells $P."), ("Who sells $P?", "$n sells $P.")]),
    (["$n's {hobby|favorite hobby} is $h.", "$n enjoys $h.", "In the evening $n likes $h.", "$n spends the weekend $h."], [("{What is $n's hobby|What does $n enjoy|What does $n like to do|What does $n do for fun}?", "$n enjoys $h.")]),
    (["The hotel has $i rooms{ and a pool| and a garden|}.", "There are $i rooms in the hotel.", "The $s has $i rooms."], [("{How many rooms are there|How many rooms does it have|How many rooms does the hotel have|What is the number of rooms}?", "There are $i rooms.")]),
    (["{Breakfast|Lunch|Dinner} is {at|served at|ready at} $t.", "{Breakfast|Lunch|Dinner} starts at $t."], [("{When can we eat|When is the meal|At what time is the food}?", "It is at $t.")]),
    (["Breakfast is {at|served at|from} $t.", "They serve breakfast at $t."], [("{When is breakfast|At what time is breakfast|What time is breakfast|When do they serve breakfast}?", "Breakfast is at $t.")]),
    (["Dinner is {at|served at} $t.", "We eat dinner at $t."], [("{When is dinner|At what time is dinner|What time is dinner}?", "Dinner is at $t.")]),
    (["The password is $x1.", "The secret word is $x1.", "The code is $x1."], [("{What is the password|What is the code|What is the secret word|Tell me the password|Tell me the code}?", "It is $x1.")]),
    (["The bird {laid|has} $I eggs.", "A $k built a nest{ in the old oak|}. Then it laid $I eggs.", "There are $I eggs in the nest."], [("{How many eggs did the bird lay|How many eggs are there|How many eggs are in the nest|How many eggs did it lay}?", "There are $I eggs.")]),
    (["{A bird|A squirrel|An owl|The bird} {built a nest|lives} in the old oak."], [("{Where is the nest|Where does it live|Where did it build its nest|Where did the bird build its nest}?", "In the old oak.")]),
    (["$n is the {boss|captain|manager|leader|winner|teacher} of the {team|school|club}.", "The {captain|manager|leader|boss} is $n."], [("{Who is it|Who is that|Who is the captain|Who is the leader|Who is the boss|Who leads}?", "It is $n.")]),
    (["$n {arrived|came|left|called} on $D.", "On $D $n {arrived|came|left|called}."], [("{On which day was that|When was that|When did $n come|When did it happen}?", "It was on $D.")]),
    (["$n's {mother|father} is called $m.", "$n has a {brother|sister|son|daughter|friend} called $m.", "$m is the {mother|father|brother|sister|friend} of $n."], [("{What is the name of that person|Who is $n close to|Which name goes with $n}?", "It is $m.")]),
    (["$n's sister is called $m.", "$n has a sister named $m.", "$m is $n's sister."], [("{What is $n's sister called|What is the name of $n's sister|Who is $n's sister}?", "$n's sister is called $m."), ("Who is $m?", "$m is $n's sister.")]),
    (["$n's brother is called $m.", "$n has a brother named $m.", "$m is $n's brother."], [("{What is $n's brother called|What is the name of $n's brother|Who is $n's brother}?", "$n's brother is called $m."), ("Who is $m?", "$m is $n's brother.")]),
    (["$n's {dog|cat} is called $m.", "$n has a {dog|cat} named $m."], [("{What is the name of $n's pet|What is $n's pet called|Who is $m|What is the pet called}?", "$n's pet is called $m.")]),
    (["$n {reads|is reading} a book about $P.", "$n {wrote|has written} a book about $P."], [("{What is the book about|What is $n's book about|About what is the book}?", "The book is about $P.")]),
    (["$n {travels|flies|drives|goes} from $p to $r{ on $D|}.", "$n took the train from $p to $r."], [("{Where does $n start|From where does $n travel|Where does the trip begin|Where did $n start}?", "$n starts in $p."), ("{Where does $n go|Where is $n going|What is the goal of the trip|Where did $n go|To which city does $n travel}?", "$n goes to $r.")]),
    (["In $p it is {sunny|rainy|cold|warm|windy|snowy} and $i degrees.", "It is $i degrees in $p."], [("{How warm is it in $p|How many degrees is it in $p|What is the temperature in $p|How cold is it in $p}?", "It is $i degrees in $p.")]),
    (["$n drinks {tea|coffee|milk|juice|water} and $m eats $f."], [("{What does $m eat|What is $m eating}?", "$m eats $f."), ("Who eats $f?", "$m eats $f.")]),
    (["$n {lost|found|broke|forgot|sold|washed|painted|hid} {the|a} $o.", "{Yesterday|On $D} $n {lost|found|broke|sold|washed|painted} {the|a} $o."], [("{What did $n lose|What did $n find|What did $n break|What was it|What did $n sell|Which thing was it}?", "It was the $o."), ("Who {did it|was it|did that}?", "It was $n.")]),
    (["The {new|old|little|big} $o is {made of|made from} {wood|gold|glass|stone|paper|silver}."], [("{Which thing is meant|What thing is it}?", "It is the $o.")]),
]  # fmt: skip
_MATERIALS = "wood gold glass stone paper silver wool iron plastic leather".split()
_GAMES = "chess|football|cards|tennis|hockey|basketball|checkers|hide and seek|music|the piano".split("|")
_DID = [
    "stayed home",
    "stayed inside",
    "read books",
    "watched a film",
    "played a game",
    "slept all day",
    "baked a cake",
    "went home early",
]
_TOO = [("coat", "small", "bought a new one", "buy a new one"), ("box", "heavy", "asked for help", "ask for help"), ("water", "cold", "did not swim", "stay out"), ("music", "loud", "closed the window", "close the window"), ("road", "icy", "stayed home", "stay home"), ("film", "long", "fell asleep", "fall asleep"), ("shirt", "wet", "hung it in the sun", "hang it up"), ("room", "dark", "turned on the light", "turn on the light"), ("tea", "sweet", "did not drink it", "leave it"), ("bag", "full", "took two", "take two"), ("hill", "steep", "walked slowly", "walk slowly"), ("night", "cold", "made a fire", "make a fire"), ("test", "hard", "asked the teacher", "ask the teacher")]  # fmt: skip
_FOODS = [
    *SLOTS["food"],
    *SLOTS["fruit"],
    "pizza",
    "pasta",
    "rice",
    "fish",
    "soup",
    "cheese",
    "ice cream",
    "noodles",
    "salad",
    "chocolate",
    "potatoes",
]
_JOBS = [
    *SLOTS["job"],
    "doctor",
    "nurse",
    "pilot",
    "cook",
    "driver",
    "singer",
    "writer",
    "lawyer",
    "dentist",
    "sailor",
    "chef",
    "judge",
    "librarian",
    "engineer",
    "actor",
    "waiter",
]
_PLACES = "library museum bakery school shop market station pool park zoo bank post office theater hospital church castle".replace(
    "post office", "post_office"
).split()
_THINGS = sorted({*NOUNS, *[p for p in PLURALS if p not in ("child", "man", "woman", "person", "foot", "tooth", "half", "life", "tax", "inch", "day", "wife", "baby", "lady", "boy")], "bike", "phone", "umbrella", "bag", "camera", "ticket", "jacket", "bicycle", "book", "ring", "wallet", "laptop"} - {"fox", "wolf", "horse", "sheep", "fish", "deer", "rain", "snow"})  # fmt: skip
_PLURAL_THINGS = sorted({PLURALS[p] for p in PLURALS if p in _THINGS} | {"forks", "paint brushes", "onions", "apples", "roses", "carrots", "stamps", "coins", "shells", "buttons", "pencils", "cookies", "stones"})  # fmt: skip


def _env(rng: Random, names: list[str]) -> dict[str, str]:
    n, m = names.pop(), names.pop()
    p, r = rng.sample([*CAPITALS.values(), "Leeds", "Boston", "Milan", "Sydney", "Porto"], 2)
    if rng.random() < 0.06:
        p = invented_word(rng).capitalize()
    c, d = rng.sample([*SLOTS["color"], "black", "pink", "gray"], 2)
    day, other = rng.sample(DAYS, 2)
    k, animal = (
        rng.choice([*SIZES, "duck", "goat", "parrot", "hen", "fish", "bird", "turtle", "pony", "hamster"]),
        rng.choice(SIZES),
    )
    i = rng.randint(2, 99)
    few = rng.randint(2, 12)
    z, a, x, big_x = rng.choice(_TOO)
    return {
        "n": n, "m": m, "he": PRONOUNS[GENDER[n]]["he"], "his": PRONOUNS[GENDER[n]]["his"], "p": p, "r": r, "c": c, "d": d, "o": rng.choice(_THINGS), "q": rng.choice(_THINGS),
        "i": str(i), "I": rng.choice([in_words(few), in_words(few), str(few)]), "f": rng.choice(_FOODS), "j": rng.choice(_JOBS), "k": k, "l": animal, "L": rng.choice(["cows", "hens", "sheep", "horses", "pigs", "goats", "ducks", "dogs", "cats", "rabbits"]),
        "s": rng.choice(_PLACES).replace("_", " "), "t": rng.choice([f"{rng.randint(1, 23)}:{rng.choice(('00', '15', '30', '45'))}", f"{rng.randint(1, 12)} {rng.choice(('am', 'pm'))}", f"{rng.randint(1, 12)}", f"{in_words(rng.randint(1, 12))} o'clock", "noon"]),
        "D": day, "E": other, "M": rng.choice(MONTHS), "P": rng.choice(_PLURAL_THINGS), "h": rng.choice(SLOTS["hobby"]), "b": rng.choice("kitchen bedroom garden garage attic cellar hall car bathroom office drawer basket bag shed".split()),
        "y": str(rng.randint(1900, 2020)), "g": rng.choice(_GAMES), "w": rng.choice(_DID), "z": z, "a": a, "x": x, "X": big_x, "x1": rng.choice([invented_word(rng), f"{rng.choice(NOUNS)}{rng.randint(1, 99)}", str(rng.randint(100, 9999))]),
    }  # fmt: skip


_NOT_THERE = ["The text does not say that.", "I do not know. The text does not say that."]
_COMPARE = [
    ("older", "younger"), ("taller", "shorter"), ("faster", "slower"), ("stronger", "weaker"), ("richer", "poorer"), ("bigger", "smaller"), ("louder", "quieter"), ("happier", "sadder"),
]  # fmt: skip


def _compared(rng: Random, names: list[str]) -> tuple[str, str, str]:
    """Two compared, and who is which."""
    a, b = names.pop(), names.pop()
    draw = rng.random()
    more, less = rng.choice(_COMPARE)
    if draw < 0.45:
        text = f"{a} is {more} than {b}."
        first = rng.random() < 0.55
        word, who = (more, a) if first else (less, b)
        return (
            text,
            f"Who is {word}{rng.choice(['', '', f', {a} or {b}', f', {b} or {a}'])}?",
            f"{who} is {word}.",
        )
    x, y = rng.sample(range(2, 90), 2)
    if draw < 0.75:
        text = rng.choice(
            [
                f"{a} is {x} and {b} is {y}.",
                f"{a} is {x} years old. {b} is {y} years old.",
                f"{a} is {x} years old and {b} is {y}.",
                f"{a} is {x}, but {b} is {y}.",
            ]
        )
        old = rng.random() < 0.5
        who = (a if x > y else b) if old else (b if x > y else a)
        word = "older" if old else "younger"
        return text, f"Who is {word}{rng.choice(['', '', f', {a} or {b}'])}?", f"{who} is {word}."
    thing = rng.choice(_PLURAL_THINGS)
    text = rng.choice([f"{a} has {x} {thing} and {b} has {y}.", f"{a} has {x} {thing}. {b} has {y} {thing}."])
    more_ = rng.random() < 0.6
    who = (a if x > y else b) if more_ else (b if x > y else a)
    word = "more" if more_ else "fewer"
    return text, f"Who has {word} {thing}?", f"{who} has {word} {thing}."


_PAIRS = [
    ("The $k is called $n.", "What is the $k called?", "The $k is called $n."), ("$n has a $c $o.", "Who has a $o?", "$n has a $c $o."), ("$n lives in $p.", "Where does $n live?", "$n lives in $p."), ("$n likes $f.", "What does $n like?", "$n likes $f."), ("$n is a $j.", "What is $n's job?", "$n is a $j."),
    ("The $o is in the $b.", "Where is the $o?", "The $o is in the $b."), ("the $c box holds $P.", "What is in the $c box?", "The $c box holds $P."), ("$n is $i years old.", "How old is $n?", "$n is $i years old."), ("$n plays $g.", "What does $n play?", "$n plays $g."), ("the $c $o belongs to $n.", "Who owns the $c $o?", "The $c $o belongs to $n."), ("$n comes from $p.", "Where does $n come from?", "$n comes from $p."), ("the $s opens at $t.", "When does the $s open?", "The $s opens at $t."), ("$n ate $f.", "What did $n eat?", "$n ate $f."), ("$n bought a $o.", "What did $n buy?", "$n bought a $o."), ("$n speaks $La.", "Which language does $n speak?", "$n speaks $La."), ("$n wears a $c $o.", "What color is $n's $o?", "$n's $o is $c."),
    ("the $o is $c.", "What color is the $o?", "The $o is $c."), ("the $o costs $i euros.", "How much is the $o?", "The $o costs $i euros."), ("the $o is made of $ma.", "What is the $o made of?", "The $o is made of $ma."), ("$n has $I $P.", "How many $P does $n have?", "$n has $I $P."), ("$n is tired.", "Who is tired?", "$n is tired."), ("$n came on $D.", "When did $n come?", "$n came on $D."), ("$n lost the $o.", "What did $n lose?", "$n lost the $o."), ("$n found a $o.", "What did $n find?", "$n found a $o."), ("$n went to the $s.", "Where did $n go?", "$n went to the $s."), ("$n drinks $dr.", "What does $n drink?", "$n drinks $dr."),
]  # fmt: skip


def _pair(rng: Random, names: list[str]) -> tuple[str, str, str]:
    """Two sentences of one shape with other names and things: which is which."""
    template, ask, answer = rng.choice(_PAIRS)
    envs = []
    while len(envs) < rng.choice((2, 2, 3)):
        env = _env(rng, names) | {
            "La": rng.choice("French German Spanish Italian Polish Greek".split()),
            "ma": rng.choice(_MATERIALS),
            "dr": rng.choice("tea coffee milk juice water lemonade cocoa".split()),
        }
        if not any(
            env[x] == other[x] for other in envs for x in ("n", "k", "c", "o", "b", "P", "s", "p", "f")
        ):
            envs.append(env)
        if len(names) < 4:
            break
    parts = [write(rng, template, env) for env in envs]
    parts = [p[0].upper() + p[1:] for p in parts]
    if len(parts) == 2 and rng.random() < 0.45:
        second = parts[1] if parts[1].split()[0] in GENDER else parts[1][0].lower() + parts[1][1:]
        text = parts[0].rstrip(".") + rng.choice([" and ", ", but ", ", and "]) + second
    else:
        text = " ".join(parts)
    env = rng.choice([*envs, envs[-1]])
    if "Who" in ask and rng.random() < 0.4:  # without the color
        ask = ask.replace("$c ", "")
    return text, write(rng, ask, env), write(rng, answer, env)


def _sentences(rng: Random, names: list[str]) -> tuple[str, str, str]:
    """A few statements of different shapes, and a question about one."""
    chosen = rng.sample(range(len(SCHEMAS)), rng.choice((1, 1, 2, 2, 3, 4, 5)))
    told: list[tuple[str, dict[str, str], Any]] = []
    for index in chosen:
        if len(names) < 2:
            break
        env = _env(rng, names)
        statements, questions = SCHEMAS[index]
        told.append((write(rng, rng.choice(statements), env), env, questions))
    if rng.random() < 0.35 and len(names) >= 1 and len(told) > 1:  # the same person goes on, as he or she
        text, env, questions = told[0]
        if text.startswith(env["n"] + " "):
            again = [s for s, _ in SCHEMAS]
            follow = rng.choice(
                [
                    s
                    for group in again
                    for s in group
                    if s.startswith("$n ") and "$m" not in s and s.count("$n") == 1
                ]
            )
            extra = write(rng, follow.replace("$n ", "$^he ", 1), env)
            told[0] = (text + " " + extra, env, questions)
    missing = rng.random() < 0.1 and len(told) > 1
    asked = rng.randrange(len(told))
    text = " ".join(t for i, (t, _, _) in enumerate(told) if not (missing and i == asked))
    _, env, questions = told[asked]
    ask, answer = rng.choice(questions)
    return text, write(rng, ask, env), rng.choice(_NOT_THERE) if missing else write(rng, answer, env)


def _pronoun(rng: Random, names: list[str]) -> tuple[str, str, str]:
    """Two sentences about one person: the second says he or she."""
    env = _env(rng, names)
    first, second = rng.sample([("$n went to the $s.", "$^he went to the $s.", "Where did $n go?", "$n went to the $s."), ("$n bought a $o.", "$^he bought a $o.", "What did $n buy?", "$n bought a $o."), ("$n is a $j.", "$^he is a $j.", "What is $n's job?", "$n is a $j."), ("$n lives in $p.", "$^he lives in $p.", "Where does $n live?", "$n lives in $p."), ("$n grows $P.", "$^he grows $P.", "What does $n grow?", "$n grows $P."), ("$n likes $f.", "$^he likes $f.", "What does $n like?", "$n likes $f."), ("$n has a $k.", "$^he has a $k.", "Which animal does $n have?", "$n has a $k."), ("$n plays $g.", "$^he plays $g.", "What does $n play?", "$n plays $g."), ("$n is $i years old.", "$^he is $i years old.", "How old is $n?", "$n is $i years old."), ("$n lost the $o.", "$^he lost the $o.", "What did $n lose?", "$n lost the $o."), ("$n met $m on $D.", "$^he met $m on $D.", "Who did $n meet?", "$n met $m."), ("$n sells $P.", "$^he sells $P.", "What does $n sell?", "$n sells $P.")], 2)  # fmt: skip
    text = write(rng, f"{first[0]} {second[1]}", env)
    asked = rng.choice((first, second))
    return text, write(rng, asked[2], env), write(rng, asked[3], env)


_LEADS = ["", "", "", "", "Read this: ", "Text: ", "Here is a text. ", "Context: ", "Read this and answer: ", "Read the text: ", "Here is a story: ", "Story: ", "Given: ", "Read: ", "Passage: ", "Facts: ", "Listen: ", "I will tell you something. "]  # fmt: skip
_SYSTEMS = ["Use these facts: ", "Answer from this text: ", "You are a helpful assistant. ", "Use this text to answer: ", "Here is what you know: ", "Answer with this text: ", "Context: ", "Answer the question from the text: ", "Only use this information: ", "Notes: ", ""]  # fmt: skip


def comprehension(rng: Random) -> Sample:
    """A text, a question about it, and the answer that stands in it."""
    names = rng.sample(sorted({*GIRLS, *BOYS}), 24)
    text, ask, answer = rng.choices((_sentences, _pair, _compared, _pronoun), (9, 9, 3, 3))[0](rng, names)
    text, ask, answer = (fix_articles(part) for part in (text, ask, answer))
    text, ask, answer = (part[0].upper() + part[1:] for part in (text, ask, answer))
    if rng.random() < 0.04:  # a question about something else
        ask, answer = (
            write(
                rng,
                rng.choice(
                    [
                        "How old is the {museum|house|tree|ship}?",
                        "Who {built|painted|wrote} it?",
                        "What is the weather like?",
                        "How tall is {the tower|the house}?",
                        "What is the name of the {king|street|ship}?",
                        "How many {people|children} were there?",
                        "When was it {built|made}?",
                        "What is the {capital|phone number}?",
                    ]
                ),
            ),
            rng.choice(_NOT_THERE),
        )
    asked = typed(rng, ask) if rng.random() < 0.5 else ask
    draw = rng.random()
    if draw < 0.3:
        messages = [
            {"role": "system", "content": rng.choice(_SYSTEMS) + text},
            {"role": "user", "content": asked},
        ]
    else:
        lead = rng.choice(_LEADS)
        shown = f'"{text}"' if rng.random() < 0.1 else text
        question = rng.choice(
            [
                f" {asked}",
                f" {asked}",
                f" {asked}",
                f"\n{asked}",
                f"\n\n{asked}",
                f" Question: {ask}",
                f"\nQuestion: {ask}",
                f"\nQ: {ask}",
                f" Now tell me: {ask}",
            ]
        )
        if rng.random() < 0.08:
            messages = [{"role": "user", "content": f"{asked}\n{lead}{shown}"}]
        else:
            messages = [{"role": "user", "content": f"{lead}{shown}{question}"}]
    if messages[0]["role"] == "user" and rng.random() < 0.1:
        messages.insert(0, {"role": "system", "content": "You are a helpful assistant."})
    turn = Turn("reading", ask, answer, f"reading {text} {ask}")
    messages.append({"role": "assistant", "content": answer})
    return Sample("reading", messages=messages, hint={"held_out": str(int(turn.held_out))})
