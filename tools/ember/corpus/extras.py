# ruff: noqa: E501, SIM905 - lines of text and word lists read better whole
"""More single turns: lists, spelling, yes-or-no questions, sizes, longer sums, sums too big, poems, reading a text."""

from __future__ import annotations

from random import Random

from .facts import CAPITALS, RELATIONS
from .grammar import write
from .sample import Sample, Turn
from .tasks import DAYS, MONTHS, fact_key, fix_articles, in_words, listing, sum_key, typed
from .words import ADJECTIVES, GENDER, NOUNS, PLURALS, SLOTS

_BY_NAME = {relation.name: relation for relation in RELATIONS}

LISTS: dict[str, list[str]] = {
    "animals": "dog cat horse cow lion bear mouse rabbit fox elephant".split(),
    "colors": "red blue green yellow orange purple black white brown pink".split(),
    "fruits": "apple banana orange pear cherry plum peach lemon grape melon".split(),
    "vegetables": "carrot potato onion tomato cabbage pea bean spinach leek pumpkin".split(),
    "birds": "eagle owl duck sparrow crow swan goose hen penguin robin".split(),
    "countries": "France Germany Italy Spain Japan China India Brazil Egypt Canada".split(),
    "cities": "Paris London Rome Berlin Madrid Tokyo Cairo Vienna Oslo Lisbon".split(),
    "flowers": "rose tulip daisy lily sunflower poppy violet".split(),
    "insects": "bee ant butterfly beetle fly mosquito".split(),
    "fish": "salmon shark tuna trout".split(),
    "jobs": "teacher doctor baker farmer pilot nurse painter judge".split(),
    "shapes": "circle square triangle rectangle pentagon hexagon".split(),
    "planets": "Mercury Venus Earth Mars Jupiter Saturn Uranus Neptune".split(),
    "seasons": "spring summer autumn winter".split(), "days": DAYS, "months": MONTHS,
    "continents": ["Africa", "Antarctica", "Asia", "Australia", "Europe", "North America", "South America"],
    "tools": "hammer saw screwdriver drill shovel".split(), "instruments": "piano violin guitar flute drum trumpet harp".split(),
    "even numbers": "2 4 6 8 10 12 14 16 18 20".split(), "odd numbers": "1 3 5 7 9 11 13 15 17 19".split(),
}  # fmt: skip
_WHOLE = {
    "planets": "of the solar system",
    "seasons": "of the year",
    "days": "of the week",
    "months": "of the year",
    "continents": "of the world",
}


def lists(rng: Random) -> Turn:
    """The first few of a fixed list, so that there is one right answer."""
    kind = rng.choice(list(LISTS))
    items = LISTS[kind]
    if kind in _WHOLE and rng.random() < 0.5:
        ask = write(
            rng,
            f"{{What are the {kind} {_WHOLE[kind]}|Name all the {kind} {_WHOLE[kind]}|List the {kind} {_WHOLE[kind]}|Name the {kind}|Which {kind} are there}}?",
        )
        chosen = items
    else:
        count = rng.randint(2, min(len(items), 7))
        number = rng.choice([in_words(count), str(count)])
        ask = write(rng, f"{{Name|List|Tell me|Give me|Can you name|Write down}} {number} {kind}?")
        chosen = items[:count]
    ask = ask if ask.startswith(("What", "Which", "Can")) else ask[:-1] + "."
    return Turn(
        "lists",
        typed(rng, ask),
        f"{listing(chosen)}."[:1].upper() + f"{listing(chosen)}."[1:],
        f"list {ask.lower()}",
    )


def spelling(rng: Random) -> Turn:
    word = rng.choice([*NOUNS, *PLURALS, *ADJECTIVES])
    letters = "-".join(word)
    kind = rng.randrange(4)
    if kind == 0:
        ask, answer = (
            "{Spell $w|How do you spell $w|Spell the word $w|Can you spell $w}?",
            f"{word} is spelled {letters}.",
        )
    elif kind == 1:
        ask = "{How many letters are in $w|How many letters does $w have|Count the letters of $w|How long is the word $w}?"
        answer = " ".join(f"{letter}{i}" for i, letter in enumerate(word, 1)) + f": {len(word)} letters."
    elif kind == 2:
        ask, answer = (
            "{What is the first letter of $w|Which letter does $w begin with|With which letter does $w start}?",
            f"{word} begins with {word[0]}.",
        )
    else:
        ask, answer = (
            "{What is the last letter of $w|Which letter does $w end with}?",
            f"{letters} ends with {word[-1]}.",
        )
    ask = write(rng, ask, {"w": rng.choice([word, f'"{word}"'])})
    ask = ask[:-1] + "." if ask.startswith(("Spell", "Count")) else ask
    return Turn("spelling", typed(rng, ask), answer[0].upper() + answer[1:], f"spelling {ask.lower()}")


# relation -> (question, the fact as the answer states it)
_YES_NO = {
    "capital": ("Is $v the capital of $s?", "the capital of $s is $t"),
    "color": ("Is $s $v?", "$s is $t"),
    "group": ("Is a $s a $v?", "a $s is a $t"),
    "continent": ("Is $s in $v?", "$s is in $t"),
    "legs": ("Does a $s have $v legs?", "a $s has $t legs"),
    "language": ("Do people in $s speak $v?", "people in $s speak $t"),
    "baby": ("Is a baby $s called a $v?", "a baby $s is called a $t"),
    "sides": ("Does a $s have $v sides?", "a $s has $t sides"),
    "home": ("Does a $s live in a $v?", "a $s lives in a $t"),
}  # fmt: skip


def yes_no(rng: Random) -> Turn:
    name = rng.choice(list(_YES_NO))
    relation = _BY_NAME[name]
    subject = rng.choice(list(relation.pairs))
    true = relation.pairs[subject]
    said = (
        true if rng.random() < 0.5 else rng.choice(sorted({v for v in relation.pairs.values() if v != true}))
    )
    question, statement = (
        fix_articles(t.replace("$s", subject).replace("$v", said).replace("$t", true)) for t in _YES_NO[name]
    )
    # the fact first, so that the verdict can be read off it
    answer = f"{statement[0].upper()}{statement[1:]}, so {'yes' if said == true else 'no'}."
    key = fact_key(question)
    if rng.random() < 0.4:
        question = write(
            rng,
            "{Is it true that $q|Is this right: $q|True or false: $q}?",
            {"q": fix_articles(claim(name, subject, said))},
        )
        key = fact_key(question)
    return Turn("facts", typed(rng, question), answer, key)


def claim(name: str, subject: str, value: str) -> str:
    """The statement that a relation holds, true or not."""
    return _YES_NO[name][1].replace("$s", subject).replace("$t", value)


SIZES = "ant bee mouse frog squirrel rabbit cat dog sheep pig lion cow horse elephant whale".split()


def sizes(rng: Random) -> Turn:
    a, b = rng.sample(range(len(SIZES)), 2)
    env = {"a": SIZES[a], "b": SIZES[b]}
    big, small = SIZES[max(a, b)], SIZES[min(a, b)]
    kind = rng.randrange(3)
    if kind == 0:
        ask, answer = (
            "{What is bigger|Which is bigger|Which animal is larger|Who is bigger}, a $a or a $b?",
            f"a {big} is bigger than a {small}.",
        )
    elif kind == 1:
        ask, answer = (
            "{What is smaller|Which is smaller|Which animal is smaller}, a $a or a $b?",
            f"a {small} is smaller than a {big}.",
        )
    else:
        ask, answer = (
            "Is a $a bigger than a $b?",
            f"{'yes' if a > b else 'no'}, a {SIZES[a]} is {'bigger' if a > b else 'smaller'} than a {SIZES[b]}.",
        )
    answer = fix_articles(answer)
    ask = fix_articles(write(rng, ask, env))
    return Turn("facts", typed(rng, ask), answer[0].upper() + answer[1:], fact_key(ask))


def longer_sum(rng: Random) -> Turn:
    """Halves, doubles, three numbers, and whether a sum is right."""
    kind = rng.randrange(5)
    if kind == 0:
        a = rng.randint(1, 49)
        ask = write(rng, f"{{What is half of {2 * a}|Half of {2 * a}|What is the half of {2 * a}}}?")
        return Turn("arithmetic", typed(rng, ask), f"Half of {2 * a} = {a}.", f"half {a}", str(a))
    if kind == 1:
        a = rng.randint(1, 99)
        ask = write(rng, f"{{What is double {a}|Double {a}|What is twice {a}|How much is two times {a}}}?")
        return Turn("arithmetic", typed(rng, ask), f"2 * {a} = {2 * a}.", sum_key(2, "*", a), str(2 * a))
    if kind == 2:
        a, b, c = (rng.randint(0, 40) for _ in range(3))
        ask = write(rng, f"{{What is |}}{{{a} + {b} + {c}|{a}+{b}+{c}}}{{?| =|}}")
        answer = f"{a} + {b} + {c} = {a + b} + {c} = {a + b + c}."
        return Turn("arithmetic", ask, answer, f"sum {sorted((a, b, c))}", None)
    a, b = rng.randint(0, 60), rng.randint(0, 60)
    said = a + b if rng.random() < 0.5 else a + b + rng.choice((-10, -2, -1, 1, 2, 10))
    ask = f"Is {a} + {b} = {said}?" if kind == 3 else f"Is {a} plus {b} {said}?"
    return Turn(
        "arithmetic", ask, f"{a} + {b} = {a + b}, so {'yes' if said == a + b else 'no'}.", sum_key(a, "+", b)
    )


def too_big(rng: Random) -> Turn:
    """A sum outside its range: it says so and does not guess."""
    big = rng.choice((rng.randint(100, 999), rng.randint(1000, 99999)))
    other = rng.choice((rng.randint(0, 99), rng.randint(100, 999), rng.randint(1000, 9999)))
    a, b = rng.sample((big, other), 2)
    op = rng.choice("+-*/")
    word = {"+": "plus", "-": "minus", "*": "times", "/": "divided by"}[op]
    ask = write(
        rng,
        f"{{{a} {op} {b}|{a}{op}{b}|What is {a} {op} {b}?|What is {a} {word} {b}?|How much is {a} {op} {b}?|Calculate {a} {op} {b}.|{a} {word} {b}|{a} {op} {b} =}}",
    )
    answer = "I do not know that. I can calculate only with numbers up to 99."
    return Turn("unknown", ask, answer, f"big {a} {op} {b}")


_POEMS = [
    "The $n is {old|small}, the $n is {bright|white},\nit {sings|shines} to me in the middle of the night.\nI {listen|wonder} and I {wait|stay} for a while,\nand then I go home with a {song|dream} and a smile.",
    "A $c $n {came down|went out} to the sea\nand said, \"{Little wave|Good morning}, come {play|sing} with me.\"\nThe wave {rolled in|jumped up}, the wave rolled away,\nand they {danced|laughed} together all through the day.",
    "In $s the {wind|world} is {soft|quiet} and slow,\nand over the hills the $f blossoms {blow|grow}.\nI {walk|sit} by the river, I look at the sky,\nand I think of the $n, and I do not know why.",
    "One {little|lonely} $n, two {little|golden} bees,\nthree {silver|sleepy} birds in the {apple|old oak} trees.\nThey {hum|sing} and they {play|rest} till the sun goes down,\nand the moon comes up over {field and town|all the town}.",
    "{Hush|Listen}, little $n, the day is done,\ngone is the {light|gold} of the evening sun.\nThe stars are {awake|out}, they are watching you,\nand tomorrow the {sky|sea} will be bright and blue.",
    "{Rain|Snow} on the {roof|window}, {rain|snow} on the tree,\na {cup|pot} of warm tea for you and for me.\nThe $n is {asleep|dreaming}, the fire is low,\nand outside in the dark the {cold|night} winds blow.",
]  # fmt: skip


def poem(rng: Random) -> Turn:
    noun = rng.choice(NOUNS)
    env = {
        "n": noun,
        "c": rng.choice(SLOTS["color"]),
        "s": rng.choice(SLOTS["season"]),
        "f": rng.choice(["apple", "cherry", "plum", "rose"]),
    }
    ask = write(
        rng,
        "{Write|Tell me|Make|Can you write|Please write} a {short |little |}{poem|poem|verse|rhyme|song}{ about a $n| about the $n| about $n|}.",
        env,
    )
    ask = ask[:-1] + "?" if ask.startswith("Can") else ask
    text = write(rng, rng.choice(_POEMS), env)
    return Turn("poem", ask, text[0].upper() + text[1:], f"poem {ask}")


# statements with a question each: (statement, question, answer)
_STATEMENTS = [
    ("$n has a $c $o.", "{What does $n have|What has $n got}?", "$n has a $c $o."),
    ("$n has a $c $o.", "{What color is $n's $o|Which color is the $o of $n}?", "$n's $o is $c."),
    ("$n lives in $p.", "{Where does $n live|In which city does $n live}?", "$n lives in $p."),
    ("$n is $i years old.", "{How old is $n|What is the age of $n}?", "$n is $i years old."),
    ("$n likes $f.", "{What does $n like|What does $n like to eat}?", "$n likes $f."),
    ("$n works as a $j.", "{What is $n's job|What does $n do for work}?", "$n works as a $j."),
    ("The $o is in the $r.", "{Where is the $o|In which room is the $o}?", "The $o is in the $r."),
    ("The $o costs $i euros.", "{How much is the $o|What does the $o cost|How much does the $o cost}?", "The $o costs $i euros."),
    ("The shop opens at $t.", "{When does the shop open|At what time does the shop open}?", "The shop opens at $t."),
    ("The train to $p leaves at $t.", "{When does the train to $p leave|At what time does the train to $p leave}?", "The train to $p leaves at $t."),
    ("The meeting is on $d.", "{When is the meeting|On which day is the meeting}?", "The meeting is on $d."),
    ("$n is the manager.", "{Who is the manager|What is the name of the manager}?", "The manager is $n."),
    ("$n's dog is called $m.", "{What is the name of $n's dog|What is $n's dog called}?", "$n's dog is called $m."),
    ("The password is $o$i.", "{What is the password|Tell me the password}?", "The password is $o$i."),
]  # fmt: skip


def reading(rng: Random) -> Sample:
    """A few statements, and a question about one of them, or about none."""
    chosen = rng.sample(range(len(_STATEMENTS)), rng.randint(2, 5))
    names = iter(rng.sample(sorted(GENDER), 2 * len(chosen)))
    objects = iter(rng.sample(NOUNS, len(chosen)))
    texts: list[tuple[str, str, str]] = []
    for index in chosen:
        env = {
            "n": next(names), "m": next(names), "o": next(objects), "c": rng.choice(SLOTS["color"]), "p": rng.choice(list(CAPITALS.values())), "i": str(rng.randint(2, 99)),
            "f": rng.choice(SLOTS["food"]), "j": rng.choice(SLOTS["job"]), "r": rng.choice("kitchen bedroom garden garage attic cellar hall".split()),
            "t": f"{rng.randint(5, 23)}:{rng.choice(('00', '15', '30', '45'))}", "d": rng.choice(DAYS),
        }  # fmt: skip
        texts.append(tuple(fix_articles(write(rng, part, env)) for part in _STATEMENTS[index]))  # type: ignore[arg-type]
    asked = rng.randrange(len(texts))
    told = texts if rng.random() < 0.88 else [t for i, t in enumerate(texts) if i != asked]
    text, (_, ask, answer) = " ".join(t[0] for t in told), texts[asked]
    if told is not texts:
        answer = "I do not know. The text does not say that."
    lead = rng.choice(["", "", "Read this: ", "Text: ", "Here is a text. "])
    if rng.random() < 0.4:
        messages = [
            {
                "role": "system",
                "content": rng.choice(["", "You are a helpful assistant. ", "Use these facts: "]) + text,
            },
            {"role": "user", "content": ask},
        ]
    else:
        messages = [
            {
                "role": "user",
                "content": rng.choice(
                    [f"{lead}{text} {ask}", f"{lead}{text}\n{ask}", f"{lead}{text}\n\n{ask}"]
                ),
            }
        ]
    turn = Turn("reading", ask, answer, f"reading {text} {ask}")
    messages.append({"role": "assistant", "content": answer})
    return Sample("reading", messages=messages, hint={"held_out": str(int(turn.held_out))})
