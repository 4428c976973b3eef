# ruff: noqa: E501, SIM905 - lines of text and word lists read better whole
"""Small puzzles with words, numbers and time: what comes next, the odd one out, forms of a word, parts of a word, one thing of a kind."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from . import lexicon
from .grammar import write
from .kinds import KINDS
from .sample import Turn
from .sayings import saying
from .tasks import DAYS, MONTHS, fix_articles, in_words, listing, sum_key
from .text_tasks import WORDS
from .typed import typed


def _up(text: str) -> str:
    return text[0].upper() + text[1:]


def _word(rng: Random, low: int = 3, high: int = 9) -> str:
    pool = WORDS if rng.random() < 0.5 else lexicon.COMMON
    while not low <= len(word := rng.choice(pool)) <= high or not word.isalpha():
        pass
    return word


def _quote(rng: Random, word: str) -> str:
    return rng.choice([word, f'"{word}"', f"'{word}'", f"the word {word}"])


def next_number(rng: Random) -> Turn:
    """A row of numbers with a step, and the one that follows."""
    step = rng.choice((1, 2, 2, 3, 4, 5, 5, 10, 10, -1, -2, -5, -10))
    first = rng.randint(0, 20) if step > 0 else rng.randint(40, 90)
    if abs(step) in (5, 10) and rng.random() < 0.7:
        first = abs(step) * rng.randint(0, 4) if step > 0 else abs(step) * rng.randint(6, 9)
    row = [first + i * step for i in range(rng.choice((3, 4, 4, 5)))]
    shown = ", ".join(map(str, row))
    ask = write(rng, f"{{What comes next|Which number comes next|What is the next number|What number follows|Continue|Go on|Which number follows|Next number|How does it go on}}: {shown}{{| ...|, ...|, ?|?}}") if rng.random() < 0.7 else write(rng, f"{shown}{{ ...| - |. | }}{{what comes next|which number is next|what is the next number|and then|next}}?")  # fmt: skip
    sign = f"+ {step}" if step > 0 else f"- {-step}"
    value = row[-1] + step
    return Turn("counting", typed(rng, ask, True), f"{row[-1]} {sign} = {value}, so {value} comes next.", sum_key(row[-1], "+" if step > 0 else "-", abs(step)), str(value))  # fmt: skip


def next_letter(rng: Random) -> Turn:
    """A row of letters, days or months, and what follows."""
    names = rng.choice([list("ABCDEFGHIJKLMNOPQRSTUVWXYZ"), list("abcdefghijklmnopqrstuvwxyz"), DAYS, MONTHS])
    count = rng.choice((2, 3, 3, 4))
    at = rng.randrange(len(names) - count)
    row, value = names[at : at + count], names[at + count]
    shown = ", ".join(row)
    ask = write(rng, f"{{What comes next|What is next|Which one comes next|Continue|What follows|Go on}}: {shown}{{| ...|, ...|?}}")  # fmt: skip
    return Turn("calendar", typed(rng, ask, True), f"{value} comes after {row[-1]}.", f"next {shown}", value)


def odd_one(rng: Random) -> Turn:
    """Three of a kind and one of another: which does not belong."""
    a, b = rng.sample(_GROUPS, 2)
    kind, members = a
    items = rng.sample(members, 3)
    other = rng.choice([w for w in b[1] if w not in members])
    row = [*items, other]
    rng.shuffle(row)
    shown = rng.choice([", ".join(row), ", ".join(row), listing(row), " ".join(row)])
    ask = write(rng, f"{{Which {{one |word |of these |}}does not {{belong|fit}}|Odd one out|Find the odd one out|What does not {{belong|fit}}{{ here|}}|Which one is different|Which word {{is wrong here|is the odd one out|does not belong to the others}}|One of these does not {{fit|belong}}, which{{ one|}}}}{{:|?}} {shown}{{|?}}")  # fmt: skip
    return Turn("words", typed(rng, ask, True), f"{_up(other)} does not belong: the others are {kind}.", f"odd {sorted(row)}", other)  # fmt: skip


_GROUPS: list[tuple[str, list[str]]] = [
    (k, v) for k, v in (("animals", "dog cat horse cow lion bear rabbit fox elephant sheep".split()), ("colors", "red blue green yellow purple white brown pink".split()), ("fruits", "apple banana pear cherry plum grape melon".split()), ("vegetables", "carrot potato onion cabbage leek spinach".split()), ("pieces of furniture", "table chair sofa bed desk shelf".split()), ("pieces of clothing", "shirt coat sock hat glove scarf".split()), ("vehicles", "car bus train bike truck plane".split()), ("tools", "hammer saw drill axe rake".split()), ("numbers", "one two three four seven nine".split()), ("days", DAYS), ("months", MONTHS), ("instruments", "piano violin flute drum guitar trumpet".split()), ("drinks", "tea coffee milk juice water".split()), ("parts of the body", "hand foot nose arm leg ear".split()), ("jobs", "teacher doctor baker pilot nurse farmer".split()), ("flowers", "rose tulip daisy lily".split()), ("buildings", "house church school hospital castle".split()), ("cities", "Paris London Rome Berlin Madrid".split()), ("countries", "France Spain Italy Japan Egypt".split()), ("shapes", "circle square triangle rectangle".split()))
]  # fmt: skip
# base: comparative, superlative
_DEGREES = {w: (f"{w}er", f"{w}est") for w in "small tall short long old young new cold warm fast slow high low strong weak hard soft dark bright cheap rich poor clean quick quiet loud deep clever light sweet kind near great sharp thick".split()} | {w: (f"{w[:-1]}ier", f"{w[:-1]}iest") for w in "happy easy heavy funny dirty early pretty busy lazy hungry angry dry noisy lucky sunny windy tiny healthy".split()} | {w: (f"{w}{w[-1]}er", f"{w}{w[-1]}est") for w in "big hot fat thin wet sad red".split()} | {w: (f"{w}r", f"{w}st") for w in "large nice late wide brave safe close wise white fine cute simple".split()} | {"good": ("better", "best"), "bad": ("worse", "worst"), "far": ("farther", "farthest"), "many": ("more", "most"), "little": ("less", "least")} | {w: (f"more {w}", f"most {w}") for w in "beautiful expensive careful difficult important interesting dangerous famous comfortable useful".split()}  # fmt: skip


def degree(rng: Random) -> Turn:
    """The comparative or the superlative of an adjective."""
    word, (more, most) = rng.choice(list(_DEGREES.items()))
    name, value = ("comparative", more) if rng.random() < 0.55 else ("superlative", most)
    ask = write(rng, f"{{What is the {name} of {word}|What's the {name} {{form |}}of {word}|Give {{me |}}the {name} of {word}|{name.capitalize()} of {word}|The {name} of {word}|Tell me the {name} {{form |}}of {word}|{word}, {name}{{ form|}}}}{{?|.|}}" if rng.random() < 0.6 else f"{{{_up(word)}, {more}, {{...|and then|what comes next|?}}|Complete: {word}, {more}, ...|{word} - {more} - {{?|...}}}}{{?|}}")  # fmt: skip
    if f"{more}," in ask or f"{more} -" in ask:
        name, value = "superlative", most
    return Turn(
        "words", typed(rng, ask, True), f"The {name} of {word} is {value}.", f"degree {ask.lower()}", value
    )


_SHORT = {"I am": "I'm", "you are": "you're", "he is": "he's", "she is": "she's", "it is": "it's", "we are": "we're", "they are": "they're", "do not": "don't", "does not": "doesn't", "did not": "didn't", "is not": "isn't", "are not": "aren't", "was not": "wasn't", "were not": "weren't", "cannot": "can't", "could not": "couldn't", "will not": "won't", "would not": "wouldn't", "should not": "shouldn't", "have not": "haven't", "has not": "hasn't", "had not": "hadn't", "I have": "I've", "you have": "you've", "we have": "we've", "they have": "they've", "I will": "I'll", "you will": "you'll", "he will": "he'll", "she will": "she'll", "we will": "we'll", "they will": "they'll", "let us": "let's", "that is": "that's", "what is": "what's", "who is": "who's", "where is": "where's", "there is": "there's", "must not": "mustn't"}  # fmt: skip
_FEMALE = {"king": "queen", "prince": "princess", "actor": "actress", "waiter": "waitress", "man": "woman", "boy": "girl", "father": "mother", "brother": "sister", "son": "daughter", "uncle": "aunt", "nephew": "niece", "grandfather": "grandmother", "husband": "wife", "lion": "lioness", "rooster": "hen", "bull": "cow", "ram": "ewe", "wizard": "witch", "host": "hostess", "hero": "heroine", "emperor": "empress", "duke": "duchess", "god": "goddess", "tiger": "tigress", "gentleman": "lady", "stallion": "mare", "policeman": "policewoman", "landlord": "landlady", "bridegroom": "bride"}  # fmt: skip
_PAST = dict(pair.split(":") for pair in "run:ran go:went eat:ate see:saw write:wrote read:read sing:sang swim:swam drink:drank drive:drove fly:flew give:gave take:took come:came make:made buy:bought bring:brought think:thought catch:caught teach:taught find:found sleep:slept keep:kept feel:felt leave:left meet:met lose:lost sit:sat stand:stood speak:spoke break:broke wake:woke know:knew grow:grew throw:threw draw:drew wear:wore begin:began ring:rang win:won hold:held tell:told sell:sold say:said pay:paid send:sent build:built spend:spent hear:heard forget:forgot get:got cut:cut put:put hit:hit walk:walked play:played work:worked talk:talked jump:jumped cook:cooked open:opened close:closed call:called help:helped wash:washed dance:danced live:lived love:loved like:liked stop:stopped plan:planned cry:cried try:tried study:studied carry:carried have:had be:was do:did".split())  # fmt: skip


def word_form(rng: Random) -> Turn:
    """A short form, a full form, the female of a word, a past tense."""
    draw = rng.random()
    if draw < 0.3:
        long, short = rng.choice(list(_SHORT.items()))
        if rng.random() < 0.5:
            ask = write(rng, f"{{What is the {{short form|contraction}} of {_quote(rng, long)}|Write {_quote(rng, long)} {{in a shorter way|as a contraction|in short|with an apostrophe}}|Short form of {_quote(rng, long)}|Contract {_quote(rng, long)}|The {{contraction|short form}} of {_quote(rng, long)}}}{{?|.|}}")  # fmt: skip
            return Turn("words", typed(rng, ask, True), f"The short form of {long} is {short}.", f"short form {ask.lower()}", short)  # fmt: skip
        ask = write(rng, f"{{What is the {{full form|long form}} of {_quote(rng, short)}|Write {_quote(rng, short)} {{in full|out|without an apostrophe|as two words}}|Full form of {_quote(rng, short)}|What does {_quote(rng, short)} {{stand for|mean}}|The {{full|long}} form of {_quote(rng, short)}}}{{?|.|}}")  # fmt: skip
        return Turn("words", typed(rng, ask, True), f"The full form of {short} is {long}.", f"full form {ask.lower()}", long)  # fmt: skip
    if draw < 0.55:
        male, female = rng.choice(list(_FEMALE.items()))
        if rng.random() < 0.6:
            ask = write(rng, f"{{What is the {{female|feminine|female form|feminine form}} of {male}|What is a female {male} called|What do you call a female {male}|The {{female|feminine}} of {male}|{male} - {{female|feminine form}}|Not a {male}, but a {{female one|woman}}: what is {{she|it}} called}}{{?|}}")  # fmt: skip
            return Turn("words", typed(rng, ask, True), f"The female of {male} is {female}.", f"female {ask.lower()}", female)  # fmt: skip
        ask = write(rng, f"{{What is the {{male|masculine|male form|masculine form}} of {female}|What is a male {female} called|What do you call a male {female}|The {{male|masculine}} of {female}}}{{?|}}")  # fmt: skip
        return Turn("words", typed(rng, ask, True), f"The male of {female} is {male}.", f"male {ask.lower()}", male)  # fmt: skip
    base, past = rng.choice(list(_PAST.items()))
    ask = write(rng, f"{{What is the {{past tense|past|past form|simple past}} of {{to |}}{base}|Past tense of {base}|{base} in the past{{ tense|}}|Put {base} {{into|in}} the past|Today I {base}, yesterday I ...|I {base} today. Yesterday I ...|What's the past of {base}|Tell me the past {{tense |}}of {base}|Yesterday: I {{...|___}} ({base})|How do you say {base} in the past}}{{?|.|}}" if base != "be" else "{What is the past tense of be|Past of be}{?|}")  # fmt: skip
    return Turn(
        "words", typed(rng, ask, True), f"The past tense of {base} is {past}.", f"past {ask.lower()}", past
    )


def part_of_word(rng: Random) -> Turn:
    """The middle letter, the vowels, which of two is longer, how often a letter occurs."""
    word = _word(rng)
    w = _quote(rng, word)
    numbered = " ".join(f"{letter}{i}" for i, letter in enumerate(word, 1))
    draw = rng.random()
    if draw < 0.25:
        while len(word) % 2 == 0:
            word = _word(rng)
        w = _quote(rng, word)
        numbered = " ".join(f"{letter}{i}" for i, letter in enumerate(word, 1))
        value = word[len(word) // 2]
        ask = write(rng, f"{{What is the middle letter of|Which letter is in the middle of|Middle letter of|The letter in the middle of|Tell me the middle letter of}} {w}{{?|}}")  # fmt: skip
        return Turn("spelling", typed(rng, ask, True), f"{numbered}: the middle letter is {value}.", f"middle {word}", value)  # fmt: skip
    if draw < 0.5:
        vowels = [c for c in word if c in "aeiou"]
        ask = write(rng, f"{{How many vowels {{are in|does}} {w}|Count the vowels {{in|of}} {w}|Vowels in {w}|Which vowels are in {w}|Name the vowels {{in|of}} {w}}}{{?|}}")  # fmt: skip
        ask = ask.replace("?", " have?") if "does" in ask else ask
        told = f"{'-'.join(word)}: the vowels are {listing(vowels)}, that is {len(vowels)}." if len(vowels) > 1 else f"{'-'.join(word)}: the vowel is {vowels[0]}, that is 1." if vowels else f"{'-'.join(word)} has no vowels, that is 0."  # fmt: skip
        return Turn("spelling", typed(rng, ask, True), told, f"vowels {ask.lower()}", str(len(vowels)))
    if draw < 0.75:
        other = _word(rng)
        while len(other) == len(word):
            other = _word(rng)
        longer = rng.random() < 0.6
        value = max(word, other, key=len) if longer else min(word, other, key=len)
        how = "longer" if longer else "shorter"
        more = "more" if longer else "fewer"
        ask = write(rng, f"{{Which word is {how}|Which is the {how} word|What is {how}|Which word has {more} letters|Which one has {more} letters}}{{:|,}} {word} or {other}?")  # fmt: skip
        return Turn("spelling", typed(rng, ask, True), f"{_up(word)} has {len(word)} letters, {other} has {len(other)}: {value} is {how}.", f"{how} {word} {other}", value)  # fmt: skip
    letter = rng.choice(word)
    count = word.count(letter)
    ask = write(rng, f"{{How often {{is|does}} the letter {letter} {{in|occur in|come in}} {w}|How many times is {letter} in {w}|How many {letter}'s are in {w}|Count the letter {letter} in {w}|How many times does {letter} {{occur|appear}} in {w}}}{{?|}}").replace("is the letter " + letter + " occur", "does the letter " + letter + " occur").replace("is the letter " + letter + " come", "does the letter " + letter + " come").replace("does the letter " + letter + " in ", "is the letter " + letter + " in ")  # fmt: skip
    return Turn("spelling", typed(rng, ask, True), f"{'-'.join(word)}: the letter {letter} is there {in_words(count)} time{'s' if count != 1 else ''}.", f"letter {letter} {word}", str(count))  # fmt: skip


def clock(rng: Random) -> Turn:
    """The time some hours later or earlier, and hours in minutes."""
    draw = rng.random()
    if draw < 0.6:
        hour, more = rng.randint(1, 12), rng.randint(1, 6)
        later = rng.random() < 0.7
        value = (hour + more if later else hour - more - 1) % 12 if not later else (hour + more - 1) % 12 + 1
        value = value + 1 if not later else value
        h, m = rng.choice([str(hour), in_words(hour)]), rng.choice([str(more), in_words(more)])
        hours = "hour" if more == 1 else "hours"
        if later:
            ask = write(rng, f"{{What time is it {m} {hours} after {h} o'clock|It is {h} o'clock. What time is it in {m} {hours}|It's {h} o'clock now. What time will it be in {m} {hours}|The film {{starts|begins}} at {h} o'clock and {{takes|lasts}} {m} {hours}. When does it end|{m} {hours} after {h} o'clock, what time is it}}?")  # fmt: skip
            return Turn("calendar", typed(rng, _up(ask)), f"{_up(in_words(more))} {hours} after {hour} o'clock it is {value} o'clock.", f"clock {hour} + {more}", str(value))  # fmt: skip
        ask = write(rng, f"{{What time is it {m} {hours} before {h} o'clock|It is {h} o'clock. What time was it {m} {hours} ago|{m} {hours} before {h} o'clock, what time is it}}?")  # fmt: skip
        return Turn("calendar", typed(rng, _up(ask)), f"{_up(in_words(more))} {hours} before {hour} o'clock it is {value} o'clock.", f"clock {hour} - {more}", str(value))  # fmt: skip
    _one, many, unit, each = rng.choice([("hour", "hours", "minutes", 60), ("minute", "minutes", "seconds", 60), ("day", "days", "hours", 24), ("week", "weeks", "days", 7), ("year", "years", "months", 12), ("meter", "meters", "centimeters", 100), ("kilometer", "kilometers", "meters", 1000), ("dozen", "dozens", "eggs", 12), ("kilo", "kilos", "grams", 1000)])  # fmt: skip
    count = rng.randint(2, 9)
    c = rng.choice([str(count), in_words(count)])
    ask = write(rng, f"{{How many {unit} {{are there in|are in|make up|make}} {c} {many}|How many {unit} {{have|do}} {c} {many}{{ have|}}|{c} {many} are how many {unit}|{c} {many} in {unit}}}?")  # fmt: skip
    ask = ask.replace("have " + c + " " + many + " have", "have " + c + " " + many)
    return Turn("calendar", typed(rng, _up(ask)), f"{count} * {each} = {count * each}. {_up(in_words(count))} {many} are {count * each} {unit}.", sum_key(count, "*", each), str(count * each))  # fmt: skip


def times(rng: Random) -> Turn:
    """The double, the half, a third, a number rounded, then something more."""
    draw = rng.random()
    if draw < 0.35:
        n = rng.randint(1, 49)
        ask = write(rng, f"{{What is {{the double of|twice|two times|double}} {n}|Double {n}|Twice {n} is {{what|how much}}|What is {n} doubled|The double of {n}}}{{?|}}")  # fmt: skip
        return Turn("arithmetic", typed(rng, ask), f"2 * {n} = {2 * n}.", sum_key(2, "*", n), str(2 * n))
    if draw < 0.7:
        b, name = rng.choice([(2, "half"), (2, "half"), (3, "a third"), (4, "a quarter"), (5, "a fifth"), (10, "a tenth")])  # fmt: skip
        q = rng.randint(1, 99 // b)
        a = b * q
        ask = write(rng, f"{{What is {name} of {a}|{_up(name)} of {a}|How much is {name} of {a}|{_up(name)} of {a} is {{what|how much}}|Tell me {name} of {a}}}{{?|}}")  # fmt: skip
        return Turn("arithmetic", typed(rng, ask), f"{a} / {b} = {q}.", sum_key(a, "/", b), str(q))
    if draw < 0.85:
        n = rng.randint(1, 99)
        while n % 10 == 5:
            n = rng.randint(1, 99)
        value = round(n, -1)
        ask = write(rng, f"{{Round {n} to the nearest ten|Round {n}|What is {n} rounded to {{the nearest |}}ten|{n} rounded to the nearest ten|Round {n} to tens}}{{.|?|}}")  # fmt: skip
        return Turn("arithmetic", typed(rng, ask), f"{n} is nearest to {value}.", f"round {n}", str(value))
    a, b = rng.randint(1, 20), rng.randint(1, 20)
    s = a + b
    ask = write(rng, f"{{Add {a} {{to|and}} {b}{{ and|, then|. Then}} double {{it|the result}}|{a} plus {b}, and that times two|Take {a}, add {b} and double it|What is {a} plus {b}, times two}}{{.|?|}}")  # fmt: skip
    return Turn("arithmetic", typed(rng, ask), f"{a} + {b} = {s}, 2 * {s} = {2 * s}. The answer is {2 * s}.", sum_key(a, "+", b), str(2 * s), keys=(sum_key(2, "*", s),))  # fmt: skip


def first_few(rng: Random) -> Turn:
    """The first or the last few days, months, letters, numbers."""
    names, what = rng.choice([(DAYS, "days of the week"), (MONTHS, "months of the year"), (MONTHS, "months"), (DAYS, "days"), (list("ABCDEFGHIJKLMNOPQRSTUVWXYZ"), "letters of the alphabet"), (KINDS["planets"], "planets from the sun")])  # fmt: skip
    count = rng.randint(2, 5)
    last = rng.random() < 0.35 and what != "planets from the sun"
    chosen = names[-count:] if last else names[:count]
    which = "last" if last else "first"
    ask = write(rng, f"{{What are|Tell me|Name|List|Which are|Give me|Say}} the {which} {in_words(count) if rng.random() < 0.7 else count} {what}{{?|.|}}")  # fmt: skip
    return Turn("lists", typed(rng, ask), f"{listing(chosen)}.", f"few {ask.lower()}")


_ONE: dict[str, list[str]] = dict(
    (row.split(": ")[0], row.split(": ")[1].split(", ")) for row in
    """a yellow fruit: banana, lemon|a red fruit: cherry, strawberry|a green vegetable: cucumber, spinach|an orange vegetable: carrot|a fruit: apple, pear|a vegetable: carrot, potato|a farm animal: cow, pig|a wild animal: lion, wolf|a pet: dog, cat|an animal that lives in water: fish, whale|an animal that lives in the sea: whale, crab|an animal that can fly: bird, bee|an animal with wings: bird, bat|an animal with a trunk: elephant|an animal with a long neck: giraffe|an animal with stripes: zebra, tiger|an animal with four legs: horse, dog|an animal with eight legs: spider|a big animal: elephant, whale|a small animal: mouse, ant|a bird: eagle, owl|a bird that cannot fly: penguin, ostrich|a fish: salmon, trout|an insect: bee, ant|a reptile: snake, turtle|a flower: rose, tulip|a tree: oak, birch|a color: red, blue|a warm color: red, orange|a dark color: black, brown|a tool: hammer, saw|a musical instrument: piano, violin|an instrument with strings: violin, guitar|a piece of furniture: table, chair|a piece of clothing: shirt, coat|a vehicle: car, bus|a vehicle with two wheels: bike|a drink: water, tea|a hot drink: tea, coffee|a cold drink: lemonade, juice|a sport: football, tennis|a winter sport: skiing, skating|a ball game: football, tennis|a game: chess, football|a toy: doll, ball|a job: teacher, doctor|a planet: Mars, Jupiter|a season: summer, winter|a cold season: winter|a month: May, June|a day of the weekend: Saturday, Sunday|a meal: breakfast, dinner|a dessert: cake, pudding|a spice: pepper, salt|a metal: gold, iron|a gas: oxygen, helium|a country in Europe: France, Italy|a country in Asia: Japan, China|a country in Africa: Egypt, Kenya|a capital: Paris, Rome|a river: the Nile, the Rhine|an ocean: the Pacific, the Atlantic|a mountain: Mount Everest|a language: French, Spanish|a shape: circle, square|a shape with three sides: triangle|a round thing: ball, wheel|a sharp thing: knife, needle|a sweet thing: honey, sugar|a sour thing: lemon|a soft thing: pillow, cotton|a thing in the kitchen: pan, stove|a thing in the bathroom: towel, soap|a thing in the garden: flower, tree|a part of the body: hand, foot|a part of the face: nose, mouth|a part of a tree: leaf, branch|a part of a car: wheel, engine|a room of a house: kitchen, bedroom|a member of the family: mother, uncle|a fairy tale figure: witch, king|an even number: 2, 8|an odd number: 3, 7|a vowel: A, E|a number between one and five: 3, 4""".split("|")
)  # fmt: skip


def one_of(rng: Random) -> Turn:
    """One thing of a kind."""
    kind, items = rng.choice(list(_ONE.items()))
    item = items[0]
    bare = kind.split(" ", 1)[1]
    ask = write(rng, f"{{Name {{{kind}|one {bare}|me {kind}|any {bare}}}|Tell me {kind}|Give me {{{kind}|an example of {kind}|the name of {kind}}}|{{Can|Could}} you name {kind}|Do you know {kind}|What is {kind}? One example|An example of {kind}|I need {kind}|Think of {kind}|Say {kind}|Which is {kind}? Just one|{_up(kind)}{{, please|?}}|For example {kind}}}{{.|?|}}").replace("??", "?")  # fmt: skip
    told = item if item[0].isupper() or item.isdigit() or item.startswith("the ") or (bare.split()[0] in ("color", "warm", "dark", "season", "cold", "sport", "winter", "ball", "game", "drink", "hot", "job", "spice", "metal", "gas", "meal", "dessert") and bare.split()[-1] not in ("job",)) else f"a {item}"  # fmt: skip
    return Turn("facts", typed(rng, fix_articles(ask)), _up(fix_articles(f"{told} is {kind}.")), f"one of {ask.lower()}", item)  # fmt: skip


def spotted(rng: Random) -> Turn:
    """The one word of several that is in capitals, or the one that is not."""
    words = [_word(rng) for _ in range(rng.choice((3, 3, 4)))]
    i = rng.randrange(len(words))
    big = rng.random() < 0.6
    shown = [w.upper() if (n == i) == big else w for n, w in enumerate(words)]
    how = rng.choice(["in capital letters", "in upper case", "in big letters"] if big else ["in small letters", "in lower case"])  # fmt: skip
    ask = write(rng, f"{{Which word is {how}|Find the word {how}|Which one is {how}|Only one word is {how}, which}}{{:|?}} \x01{{|?}}").replace("\x01", rng.choice([", ", " "]).join(shown))  # fmt: skip
    return Turn("case", ask, f"{shown[i]} is {how}.", f"spotted {shown}", shown[i])


_MAKERS: list[tuple[float, Callable[[Random], Turn]]] = [
    (2, next_number), (1, next_letter), (2, odd_one), (1.5, degree), (3, word_form), (3, part_of_word), (2, clock), (2, times), (1, first_few), (3, one_of), (0.9, saying), (0.6, spotted),
]  # fmt: skip


def puzzle(rng: Random) -> Turn:
    """One of these questions."""
    return rng.choices([m for _, m in _MAKERS], [w for w, _ in _MAKERS])[0](rng)
