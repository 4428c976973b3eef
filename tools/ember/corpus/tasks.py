# ruff: noqa: E501, SIM905 - lines of text and word lists read better whole
"""Single-turn tasks: sums, counting, the calendar, opposites, plurals, facts, repeating and reordering."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from . import lexicon
from .facts import RELATIONS, SINGLE, Relation
from .grammar import write
from .sample import Turn
from .typed import lower_first as _lower_first
from .typed import typed
from .words import ADJECTIVES, GENDER, NOUNS, PLURALS, first_name, invented_word

DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = "January February March April May June July August September October November December".split()
MONTH_DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split()
NUMBERS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
).split()
TENS = "- - twenty thirty forty fifty sixty seventy eighty ninety".split()
OPPOSITES = ADJECTIVES | {b: a for a, b in ADJECTIVES.items()}


def listing(items: Sequence[str]) -> str:
    """``a, b and c``"""
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " and " + items[-1]


def in_words(number: int) -> str:
    """A number from 0 to 100 in English words."""
    if number < 20:
        return NUMBERS[number]
    if number == 100:
        return "one hundred"
    return TENS[number // 10] + ("-" + NUMBERS[number % 10] if number % 10 else "")


def sum_key(a: int, op: str, b: int) -> str:
    """One key for both orders of a commutative pair."""
    if op in "+*":
        a, b = sorted((a, b))
    return f"sum {a} {op} {b}"


_SUM_ASKS = {
    "+": ["What is $a plus $b?", "Add $a and $b.", "What is the sum of $a and $b?", "$a plus $b", "How much is $a plus $b?"],
    "-": ["What is $a minus $b?", "Subtract $b from $a.", "Take $b away from $a.", "$a minus $b", "How much is $a minus $b?"],
    "*": ["What is $a times $b?", "Multiply $a by $b.", "What is the product of $a and $b?", "$a times $b", "How much is $a times $b?"],
    "/": ["What is $a divided by $b?", "Divide $a by $b.", "$a divided by $b", "How much is $a divided by $b?"],
}  # fmt: skip
_SYMBOL_ASKS = [
    "$a $o $b", "$a $o $b =", "$a $o $b = ?", "What is $a $o $b?", "What's $a $o $b?", "Calculate $a $o $b.",
    "Compute $a $o $b.", "How much is $a $o $b?", "$a$o$b", "$a$o$b=?", "What is $a$o$b?", "Solve $a $o $b.",
    "Can you work out $a $o $b?", "Tell me what $a $o $b is.",
]  # fmt: skip


def solve(a: int, op: str, b: int) -> tuple[str, str]:
    """The worked line that ends in the result, and the bare result."""
    if op == "+":
        return f"{a} + {b} = {a + b}", str(a + b)
    if op == "-":
        return f"{a} - {b} = {a - b}", str(a - b)
    if op == "*":
        tens, ones = b - b % 10, b % 10
        if a > 9 and tens and ones:
            return f"{a} * {b} = {a} * {tens} + {a} * {ones} = {a * tens} + {a * ones} = {a * b}", str(a * b)
        return f"{a} * {b} = {a * b}", str(a * b)
    quotient, rest = divmod(a, b)
    value = f"{quotient} remainder {rest}" if rest else str(quotient)
    tens, ones = divmod(a, 10)
    if b < 10 and tens >= b:  # digit by digit
        left = tens % b * 10 + ones
        steps = f"{tens} = {b} * {tens // b} + {tens % b}, {left} = {b} * {left // b} + {rest}"
    else:
        steps = f"{a} = {b} * {quotient} + {rest}"
    return f"{a} / {b}: {steps}, so {a} / {b} = {value}", value


def draw_sum(rng: Random) -> tuple[int, str, int]:
    """Operands of up to two digits; multiplications of two two-digit numbers are drawn more often."""
    op = rng.choices("+-*/", (3, 3, 5, 4))[0]
    if op == "/":
        return rng.randint(1, 99), "/", rng.choice((rng.randint(2, 12), rng.randint(2, 25)))
    small = rng.random() < 0.25
    a, b = (rng.randint(0, 12), rng.randint(0, 12)) if small else (rng.randint(0, 99), rng.randint(0, 99))
    if op == "-" and a < b and rng.random() < 0.6:
        a, b = b, a
    return a, op, b


def arithmetic(rng: Random) -> Turn:
    a, op, b = draw_sum(rng)
    symbol = op if op in "+-" else rng.choice("**x×" if op == "*" else "//÷")
    template = rng.choice(_SUM_ASKS[op] if rng.random() < 0.45 else _SYMBOL_ASKS)
    ask = write(rng, template, {"a": str(a), "b": str(b), "o": symbol})
    line, value = solve(a, op, b)
    return Turn("arithmetic", ask, line + ".", sum_key(a, op, b), value)


def word_problem(rng: Random) -> Turn:
    name = first_name(rng)
    he = GENDER.get(name, "he")
    thing = rng.choice(
        "apples balls books cards coins eggs flowers marbles pencils stones cookies stamps".split()
    )
    env = {"n": name, "he": he, "t": thing}
    if rng.random() < 0.5:
        op, a, b = "+", rng.randint(1, 60), rng.randint(1, 39)
        text = "$n has $a $t and {gets|finds|buys|is given} $b more. How many $t does $n have now?"
        answer = "$line. $n has $v $t{ now|}."
    else:
        op, a = "-", rng.randint(4, 99)
        b = rng.randint(1, a - 2)
        text = "$n has $a $t and {gives away|loses|sells} $b. How many $t {does $n have left|are left}?"
        answer = "$line. $n has $v $t left."
    line, value = solve(a, op, b)
    env |= {"a": str(a), "b": str(b), "line": line, "v": value}
    return Turn("arithmetic", write(rng, text, env), write(rng, answer, env), sum_key(a, op, b), value)


def compare(rng: Random) -> Turn:
    a, b = rng.sample(range(100), 2)
    env = {"a": str(a), "b": str(b)}
    if rng.random() < 0.5:
        ask, value = (
            "{Which is bigger|Which number is larger|What is more|Which is greater}, $a or $b?",
            str(max(a, b)),
        )
        answer = f"{value} is bigger than {min(a, b)}."
    else:
        ask, value = "{Which is smaller|Which number is less|What is less}, $a or $b?", str(min(a, b))
        answer = f"{value} is smaller than {max(a, b)}."
    return Turn("arithmetic", write(rng, ask, env), answer, f"compare {min(a, b)} {max(a, b)}", value)


def parity(rng: Random) -> Turn:
    a = rng.randint(0, 99)
    ask = write(rng, "Is $a {even or odd|odd or even|an even number or an odd number}?", {"a": str(a)})
    value = "odd" if a % 2 else "even"
    return Turn("arithmetic", ask, f"{a} is {value}.", f"parity {a}", value)


def counting(rng: Random) -> Turn:
    kind = rng.randrange(6)
    if kind == 0:
        a = rng.randint(0, 90) if rng.random() < 0.6 else rng.randint(0, 20)
        b = a + rng.randint(2, 14)
        how = "{Count|Please count|Count up|Can you count|Count for me|Say the numbers|Write the numbers|List the numbers|Give me the numbers|Tell me the numbers|Print the numbers|All numbers|Numbers|Go|Write all numbers}"
        ask, numbers = f"{how} from {a} {{to|to|up to|until|through}} {b}{{.|?|, please.|}}", range(a, b + 1)
        if rng.random() < 0.15:
            a, b = 1, rng.randint(3, 20)
            ask, numbers = f"Count to {{{b}|{in_words(b)}}}.", range(1, b + 1)
    elif kind == 1:
        b = rng.randint(0, 60)
        a = b + rng.randint(2, 14)
        ask, numbers = (
            f"{{Count|Please count|Can you count|Go|Count the numbers}} {{down|backwards|downwards|back}} from {a} {{to|to|down to|until}} {b}{{.|?|, please.|}}",
            range(a, b - 1, -1),
        )
    elif kind == 2:
        step, a = rng.choice((2, 3, 5, 10)), rng.choice((0, 0, 1, 2, 5, 10, 20))
        count = rng.randint(3, 9)
        ask = f"Count by {in_words(step)}s from {a} to {a + step * count}."
        numbers = range(a, a + step * count + 1, step)
    elif kind == 3:
        a = rng.randint(0, 98)
        ask = f"{{What number comes after {a}|Which number follows {a}|What comes after {a}|What is the next number after {a}|Which number is next after {a}|{a}, and then|What is one more than {a}|The number after {a} is}}?"
        return Turn(
            "counting", write(rng, ask), f"{a + 1} comes after {a}.", f"after {a} {ask[:9]}", str(a + 1)
        )
    elif kind == 4:
        a = rng.randint(0, 100)
        if rng.random() < 0.5:
            ask, value = (
                f"{{Write {a} in words|Spell the number {a}|How do you write {a} in words}}.",
                in_words(a),
            )
        else:
            ask, value = f"{{Write {in_words(a)} as a number|Write {in_words(a)} in digits}}.", str(a)
        ask = write(rng, ask)
        if ask.startswith("How"):
            ask = ask[:-1] + "?"
        return Turn("counting", ask, f"{value[:1].upper()}{value[1:]}.", f"words {ask}", value)
    else:
        items = rng.sample(NOUNS, rng.randint(2, 8))
        ask = (
            write(rng, "{How many words are in this list|Count the words|How many things are there}: ")
            + " "
            + ", ".join(items)
        )
        value = str(len(items))
        return Turn("counting", ask, f"There are {value}.", f"count {' '.join(items)}", value)
    answer = ", ".join(map(str, numbers))
    return Turn("counting", write(rng, ask), answer + ".", f"count {answer}", answer)


def calendar(rng: Random) -> Turn:
    names, unit = (DAYS, "day") if rng.random() < 0.5 else (MONTHS, "month")
    n, i = len(names), rng.randrange(len(names))
    kind = rng.randrange(6)
    env = {"x": names[i], "u": unit, "o": ORDINALS[i]}
    if kind == 0:
        ask = "{What $u comes after $x|Which $u comes after $x|What $u follows $x|What is the $u after $x|What comes after $x|Name the $u after $x|Tell me the $u after $x|The $u after $x is {what|which}|After $x comes {which $u|what}|$x is followed by {what|which $u}|Which $u is next after $x|What $u is after $x|Give me the $u that follows $x|$x, and then|Next after $x|Which $u do we have after $x|What is the next $u after $x}?"
        value, answer = names[(i + 1) % n], "$v comes after $x."
    elif kind == 1:
        ask = "{What $u comes before $x|Which $u comes before $x|What is the $u before $x|What comes before $x|Name the $u before $x|Tell me the $u before $x|The $u before $x is {what|which}|Before $x comes {which $u|what}|Which $u is just before $x|What $u is before $x|Give me the $u that comes before $x|What was the $u before $x|Which $u do we have before $x|$x comes after {which $u|what}|What is the previous $u before $x}?"
        value, answer = names[(i - 1) % n], "$v comes before $x."
    elif kind == 2:
        where = "week" if unit == "day" else "year"
        ask, value = (
            f"{{What is the $o $u of the {where}|Which $u is the $o of the {where}|Name the $o $u of the {where}}}?",
            names[i],
        )
        answer = f"The $o $u of the {where} is $v."
    elif kind == 3 and unit == "month":
        ask = "{How many days does $x have|How many days are in $x|How many days has $x got|How long is $x}?"
        value = str(MONTH_DAYS[i])
        answer = "$x has 28 days, or 29 in a leap year." if i == 1 else "$x has $v days."
    elif kind == 3:
        k = rng.randint(2, 6)
        ask, value = f"If today is $x, what day is it in {{{in_words(k)}|{k}}} days?", DAYS[(i + k) % 7]
        answer = f"In {k} days it is $v."
    elif kind == 4 and unit == "day":
        ask, value = (
            "{If today is $x, what day is tomorrow|If today is $x, which day is tomorrow|Today is $x. What day is tomorrow|It is $x today. What is tomorrow|If it is $x today, what day will it be tomorrow|Today is $x, so tomorrow is|If yesterday was $x, what day is today|Yesterday was $x. What day is it today}?",
            DAYS[(i + 1) % 7],
        )
        answer = "It is $v."
    elif kind == 4:
        ask, value = (
            "{Is $x in the first or the second half of the year|In which half of the year is $x}?",
            ("first" if i < 6 else "second"),
        )
        answer = "$x is in the $v half of the year."
    elif unit == "day":
        ask, value = (
            "{Is $x a weekday or part of the weekend|Is $x on the weekend or a weekday}?",
            ("weekday" if i < 5 else "weekend"),
        )
        answer = "$x is a weekday." if i < 5 else "$x is part of the weekend."
    else:
        season = [
            "winter",
            "winter",
            "spring",
            "spring",
            "spring",
            "summer",
            "summer",
            "summer",
            "autumn",
            "autumn",
            "autumn",
            "winter",
        ][i]
        ask, value, answer = (
            "{In which season is $x|What season is $x in|Which season does $x belong to}?",
            season,
            "$x is in $v.",
        )
    env["v"] = value
    ask = write(rng, ask, env)
    return Turn("calendar", typed(rng, ask), write(rng, answer, env), f"calendar {_bare(ask)}", value)


def opposite(rng: Random) -> Turn:
    word = rng.choice(list(OPPOSITES))
    ask = write(
        rng,
        "{What is the opposite of $w|What's the opposite of $w|Tell me the opposite of $w|Give me the opposite of $w|"
        "Which word means the opposite of $w|Opposite of $w|Antonym of $w|antonym {of|for} $w|Give me an antonym of $w|The contrary of $w|What is the contrary of $w|What is the reverse of $w|"
        "The opposite of $w is {what|which word}|$w: what is the opposite|Opposite word for $w|What word is the opposite of $w|Not $w but what|$w is the opposite of {what|which word}|Say the opposite of $w|I need the opposite of $w|The antonym of $w|What would be the opposite of $w|If it is not $w, what is it|$w and its opposite|Which word is the contrary of $w|"
        "Find the opposite of $w|Name the opposite of $w|What is the antonym of $w|Which word is the opposite of $w}?",
        {"w": rng.choice([word, f'"{word}"'])},
    )
    ask = ask.replace("?", "." if ask.startswith(("Tell", "Give", "Find", "Name")) else "?")
    key, answer = f"opposite {_bare(ask)}", f"The opposite of {word} is {OPPOSITES[word]}."
    return Turn("opposites", typed(rng, ask), answer, key, OPPOSITES[word], relation="opposite", subject=word)


_REGULAR = sorted(
    {*lexicon.THINGS, *lexicon.CREATURES}
    - set(
        "goggles headphones jeans moose trout salmon squid bison elk cod reindeer grouse crab louse eel dice skis".split()
    )
)


def plural(rng: Random) -> Turn:
    word = rng.choice(list(PLURALS)) if rng.random() < 0.75 else rng.choice(_REGULAR)
    back = rng.random() < 0.2
    many = plural_of(word)
    ask = write(
        rng,
        "{What is the singular of $p|Give me the singular of $p|Tell me the singular of $p|Singular of $p|Many $p, one {what|...}|The singular form of $p|$p: what is one of them called|One of many $p is a {what|...}|$p in the singular}?"
        if back
        else "{What is the plural of $w|What's the plural of $w|Give me the plural of $w|Plural of $w|One $w, {two|many|three|several|a lot of} {what|...|which word}|1 $w, 2 {what|...}|$w in the plural|Plural: $w|Make $w plural|Put $w in the plural|More than one $w is called {what|...}|I have one $w, you have two {what|...}|What do you call {two|many|several} of a $w|The plural of $w is {what|}|Many of a $w are called|What are many of a $w called|If you have more than one $w, you have {what|...}|$w becomes what in the plural|"
        "How do you say more than one $w|Tell me the plural of $w|What is the plural form of $w}?",
        {"w": word, "p": many},
    )
    ask = ask.replace("?", "." if ask.startswith(("Tell", "Give")) else "?")
    answer = f"The singular of {many} is {word}." if back else f"The plural of {word} is {many}."
    value = word if back else many
    key = f"plural {_bare(ask)}"
    return Turn(
        "plurals", typed(rng, ask), answer, key, value, relation=None if back else "plural", subject=word
    )


def plural_of(noun: str) -> str:
    """The plural, from the table or by the rule."""
    if noun in PLURALS:
        return PLURALS[noun]
    if noun[-1:] == "y" and noun[-2:-1] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith(("s", "x", "ch", "sh")) else "s")


def relation_answer(relation: Relation, subject: str) -> str:
    value = relation.pairs[subject]
    text = relation.answers[0]
    upper = text.startswith("^")
    text = text.lstrip("^").replace("$s", subject).replace("$v", value)
    return fix_articles(text[0].upper() + text[1:] if upper else text)


def fix_articles(text: str) -> str:
    """``a owl`` to ``an owl``."""
    return write(Random(0), text.replace("|", " "))


def fact(rng: Random) -> Turn:
    if rng.random() < 0.18:
        asks, answer = rng.choice(list(SINGLE.items()))
        ask = rng.choice(asks.split("|"))
        frame = rng.choice(
            [
                "{}",
                "{}",
                "{}",
                "Do you know: {}",
                "Quick question: {}",
                "{} I forgot.",
                "I wonder: {}",
                "Can you tell me: {}",
            ]
        )
        ask = frame.format(ask if frame.startswith("{") else _lower_first(ask))
        return Turn("facts", typed(rng, ask), answer, fact_key(ask))
    relation = rng.choices(RELATIONS, [len(r.pairs) ** 0.7 for r in RELATIONS])[0]
    subject = rng.choice(list(relation.pairs))
    ask = rng.choice(relation.asks).replace("$s", subject).replace("$p", plural_of(subject))
    ask = fix_articles(ask[0].upper() + ask[1:])
    value = relation.pairs[subject] if relation.short else None
    answer = relation_answer(relation, subject)
    return Turn("facts", typed(rng, ask), answer, fact_key(ask), value, (), relation.name, subject)


def _bare(ask: str) -> str:
    return ask.lower().rstrip("?.").replace('"', "")


def fact_key(ask: str) -> str:
    """One key for a phrasing of a fact, however politely or carelessly it is typed."""
    return f"fact {_bare(ask)}"


def _items(rng: Random, low: int = 3, high: int = 6) -> list[str]:
    draw = rng.random()
    count = rng.randint(low, high)
    if draw < 0.65:
        return rng.sample(NOUNS, count)
    if draw < 0.85:
        return [invented_word(rng) for _ in range(count)]
    return [first_name(rng) for _ in range(count)]


def repeat(rng: Random) -> Turn:
    words = rng.choices(NOUNS + list(OPPOSITES) + list(PLURALS.values()), k=rng.randint(1, 7))
    if rng.random() < 0.4:
        words[rng.randrange(len(words))] = invented_word(rng)
    phrase = " ".join(words)
    if rng.random() < 0.4:
        count = rng.randint(2, 5)
        word = rng.choice([words[0], invented_word(rng)])
        times = {2: "twice"}.get(count, f"{in_words(count)} times")
        ask = f"{{Say|Write|Repeat}} {{the word |}}{word} {rng.choice([times, f'{count} times'])}."
        return Turn("repeat", write(rng, ask), " ".join([word] * count), f"repeat {word} {count}", None)
    ask = (
        write(rng, "{Repeat after me|Say this|Repeat this|Please repeat|Write this again|Echo this}:")
        + " "
        + phrase
    )
    return Turn("repeat", ask, phrase, f"repeat {phrase}", None)


def reorder(rng: Random) -> Turn:
    kind = rng.randrange(6)
    if kind == 0:
        items = _items(rng, 3, 5)
        ask, answer = (
            "{Reverse this list|Put this list in reverse order|Write this list backwards}:",
            items[::-1],
        )
    elif kind == 1:
        items = rng.sample(NOUNS, rng.randint(3, 5))
        ask, answer = (
            "{Sort these words alphabetically|Put these words in alphabetical order|Sort from A to Z}:",
            sorted(items),
        )
    elif kind == 2:
        items = [str(n) for n in rng.sample(range(100), rng.randint(3, 6))]
        ask, answer = (
            "{Sort these numbers|Put these numbers in order|Sort from small to large}:",
            sorted(items, key=int),
        )
    elif kind == 3:
        items = [str(n) for n in rng.sample(range(100), rng.randint(3, 5))]
        ask, answer = (
            "{Sort these numbers from large to small|Sort in descending order}:",
            sorted(items, key=int, reverse=True),
        )
    else:
        items = _items(rng, 3, 6)
        i = rng.choice((0, 1, 2, len(items) - 1))
        which = "last" if i == len(items) - 1 else ORDINALS[i]
        ask = (
            f"{{What is the {which} word|Which word is {which}|Give me the {which} item}}{{ in this list|}}:"
        )
        return Turn(
            "reorder", f"{write(rng, ask)} {', '.join(items)}", items[i], f"reorder {which} {items}", items[i]
        )
    return Turn(
        "reorder", f"{write(rng, ask)} {', '.join(items)}", ", ".join(answer), f"reorder {kind} {items}", None
    )


TASKS: dict[Callable[[Random], Turn], float] = {
    arithmetic: 10, word_problem: 2, compare: 0.7, parity: 0.3, counting: 2.5, calendar: 2.5, opposite: 2, plural: 2,
    fact: 9, repeat: 1.5, reorder: 3.5,
}  # fmt: skip
