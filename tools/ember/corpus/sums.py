# ruff: noqa: E501 - lines of text and word lists read better whole
"""Sums as people ask for them, and small problems told in a sentence or two."""

from __future__ import annotations

from random import Random

from .grammar import write
from .sample import Turn
from .tasks import draw_sum, in_words, solve, sum_key
from .typed import typed
from .words import GENDER, PLURALS, first_name

_SYMBOLS = {"+": "+", "-": "-", "*": "*x×", "/": "/÷:"}
_WORDS = {
    "+": ["$a plus $b", "$a and $b together", "the sum of $a and $b", "$a added to $b", "$a and $b added up"],
    "-": ["$a minus $b", "$a take away $b", "$a less $b", "the difference of $a and $b", "$b taken from $a"],
    "*": ["$a times $b", "$a multiplied by $b", "the product of $a and $b", "$a multiplied with $b"],
    "/": ["$a divided by $b", "$a over $b", "$a split by $b", "$a shared by $b"],
}  # fmt: skip
_DO = {
    "+": ["add $a and $b", "add $b to $a", "add up $a and $b", "sum $a and $b", "put $a and $b together"],
    "-": ["subtract $b from $a", "take $b away from $a", "take $b from $a", "reduce $a by $b"],
    "*": ["multiply $a by $b", "multiply $a and $b", "multiply $a with $b"],
    "/": ["divide $a by $b", "split $a into $b parts"],
}  # fmt: skip
_ASK = [
    "{What is|What's|Whats|How much is|Calculate|Compute|Work out|Tell me|Solve|Find|Give me|What does $s make:|Evaluate|Figure out} $s{?|.||}", "$s{?|=|= ?| =||.}", "{Can|Could|Would} you {compute|calculate|work out|solve|do|tell me} $s{ for me| please||?}?", "{I need|I want|I'd like} {to know |}$s{| quickly| now| please}{.||!}", "{Explain|Show me|Solve|Calculate} {step by step|in steps|with steps|with all steps}: $s", "{Step by step|Steps please|With steps|Work it out|Show the steps|Math question|Quick sum|Homework}: $s", "{What is|Calculate|Compute|How much is} $s{?|.} {Show your work|Show the steps|Show how|Step by step, please|Explain|Explain your steps|Show your steps}.", "$s {please|pls|now|step by step}", "{My calculator is gone|My phone died|I am bad at math|I can't do this|I forgot my calculator|Help me|Homework help|Math time}{. |! |: }{What is|What's|How much is} $s?", "{What is the result of|What is the value of|What is the answer to|Tell me the result of|What do I get for} $s{?|.}", "{Do you know|Tell me} {what|how much} $s {is|makes}{?|.}", "how much do {I|you|we} get for $s", "$s is {how much|what}?", "{Is it hard to know|Who knows} what $s is?",
]  # fmt: skip
_ASK_DO = ["{Please |Can you |Could you |Now |}$s{.|?||, please.}", "What {do you get|do I get|is the result|happens|comes out} {if|when} {you|I} $s?", "{What|How much} do {we|you|I} have {if|when} {we|you|I} $s?", "If {you|I} $s, what {do you get|is it|is left|comes out}?", "$s and {tell me|give me|show me} the result."]  # fmt: skip


def asked_sum(rng: Random) -> Turn:
    """A sum, asked for in many ways."""
    a, op, b = draw_sum(rng)
    if op == "/" and rng.random() < 0.5:
        b, quotient = rng.randint(2, 12), rng.randint(1, 12)
        a = min(b * quotient, 99)
    env = {"a": str(a), "b": str(b)}
    if rng.random() < 0.2 and max(a, b) <= 20:
        env = {"a": in_words(a), "b": in_words(b)}
    draw = rng.random()
    symbol = rng.choice(_SYMBOLS[op])
    if symbol == ":" or draw < 0.45:
        symbol = "/" if symbol == ":" else symbol
        expression = rng.choice([f"$a {symbol} $b", f"$a {symbol} $b", f"{a}{symbol}{b}"])
        ask = write(rng, rng.choice(_ASK), {"s": write(rng, expression, env)})
    elif draw < 0.75:
        ask = write(rng, rng.choice(_ASK), {"s": write(rng, rng.choice(_WORDS[op]), env)})
    else:
        ask = write(rng, rng.choice(_ASK_DO), {"s": write(rng, rng.choice(_DO[op]), env)})
    line, value = solve(a, op, b)
    ask = ask[0].upper() + ask[1:] if rng.random() < 0.6 else ask
    return Turn("arithmetic", typed(rng, ask), line + ".", sum_key(a, op, b), value)


_THINGS = [
    *[p for p in PLURALS.values() if p not in ("people", "men", "women")],
    "euros",
    "dollars",
    "points",
    "sweets",
    "cookies",
    "pencils",
    "stamps",
    "oranges",
    "pages",
    "flowers",
    "coins",
    "nuts",
    "pears",
]
# (text, answer); $a and $b are the operands, $v the result, $n a name, $N another, $he, $t things
_MORE = [
    ("{I|You|We} {have|had} $a $t and {get|got|find|found|buy|bought} $b more. How many $t {do I have|are there|is that}{ now|}?", "$l. That is $v $t."), ("$n has $a $t{.| and} $N has $b{ $t|}. How many $t {do they have together|are there|is that|do they have in all|are there together|are there in total}?", "$l. Together they have $v $t."), ("There are $a $t {on the table|in the box|in the garden|in the room} and $b {under it|outside|in the hall|next to it}. How many {$t |}{are there|are there in total|are there together}?", "$l. There are $v $t."),
    ("$n is $a{ years old|}{.| and} {$N|$his {brother|sister|friend|cousin|mother}} is $b years older. How old is {$N|$his {brother|sister|friend|cousin|mother}}?", "$l. The answer is $v years."), ("$a {children|people|birds|dogs} are {in the park|at home|in the room|on the bus|there} and $b more {come|arrive|join}. How many are there{ now|}?", "$l. There are $v now."), ("A $o costs $a {euros|dollars} and a $q costs $b. {What do both cost|How much are both|How much is it together|What is the total}?", "$l. Together it is $v."), ("{In the morning|On Monday} $n {reads|reads|writes} $a pages and {in the evening|on Tuesday} $b. How many pages {is that|does $he read|are that}?", "$l. That is $v pages."),
]  # fmt: skip
_LESS = [
    ("{I|We|You} {had|have} $a $t and {spent|spend|lose|lost|gave away|give away|ate|sold|used} $b{ of them|}. How {many|much} {do I have|is left|are left|do we have|remains|is there still}{ now| left|}?", "$l. That leaves $v."), ("{There are|A bus has|A train has|A room has|A class has} $a {people|children|passengers|guests}{.| and} $b {get off|leave|go home|walk out|go away}. How many {are left|are still there|stay|remain|are still on it|are there now}?", "$l. That leaves $v."), ("A {box|bag|basket} holds $a $t. {I|$n} {take|takes} out $b. How many {$t |}{are left|are still in it|remain|are in it now}?", "$l. That leaves $v."), ("$n is $a{ years old|} and {$N|$his {brother|sister|friend}} is $b years younger. How old is {$N|$his {brother|sister|friend}}?", "$l. The answer is $v years."), ("$n wants to {read|walk|run} $a {pages|miles|kilometers} and has done $b. How many {are left|remain|are still to do}?", "$l. That leaves $v."), ("{The|A} book has $a pages{.| and} {I|$n} {have|has} read $b. How many pages are left?", "$l. That leaves $v pages."), ("$a {birds|cats|frogs|ducks} {sit on a tree|are in the garden|are in the pond}. $b {fly away|run away|leave|jump out}. How many are {left|still there}?", "$l. That leaves $v."), ("How much {change|money} do I get {back |}from $a {euros|dollars} if {I pay|it costs} $b?", "$l. That leaves $v."), ("$n has $a $t. $^he {gives|gave} $b to $N. How many {$t |}does $n have{ now| left}?", "$l. That leaves $v."),
]  # fmt: skip
_TIMES = [
    ("There are $a {boxes|bags|baskets|tables|rooms|shelves|cars|rows|packs} with $b $t {each|in each|on each}. How many $t {are there|is that}{ in total| together| in all|}?", "$l. There are $v $t."), ("{Each|Every|One} {box|bag|child|table|row|basket} has $b $t. How many $t {are in|do|have} $a {boxes|bags|children|tables|rows|baskets}{ have|}?", "$l. There are $v $t."), ("$a {children|friends|people|boys|girls} {have|get|buy|bring} $b $t each. How many {$t |}{is that|are there}{ in total| together|}?", "$l. That is $v $t."), ("One $o costs $b {euros|dollars}. {How much|What} do $a {cost|of them cost}?", "$l. That is $v."), ("$n {runs|reads|walks|writes} $b {miles|pages|hours|lines} {a|every|each} day. How {many|much} is that in $a days?", "$l. That is $v."), ("A {week|house|team|bus} has $b {days|rooms|players|seats}. How many {days|rooms|players|seats} {have|do} $a {weeks|houses|teams|buses}{ have|}?", "$l. That is $v."), ("$a rows of $b {chairs|trees|seats|tiles}: how many {is that|are there|in total}?", "$l. That is $v."), ("A {dog|cat|horse} has 4 legs. How many legs do $a {dogs|cats|horses} have?", "$l. That is $v legs."),
]  # fmt: skip
_SHARE = [
    ("{$n has|I have|There are} $a $t for $b {children|friends|people|boys}. How many {$t |}does each {one |}get?", "$l. Each gets $v."), ("{Share|Divide|Split} $a $t {among|between} $b {children|friends|people}{.| equally.} How many does each get?", "$l. Each gets $v."), ("$a $t are {put|packed} into $b {boxes|bags} equally. How many are in each{ box| bag|}?", "$l. There are $v in each."), ("$b {friends|children|people} share $a $t. How many does each {one |}get?", "$l. Each gets $v."),
]  # fmt: skip


def story_sum(rng: Random) -> Turn:
    """A problem of one step, told in a sentence or two."""
    op = rng.choices("+-*/", (4, 4, 4, 2))[0]
    text, answer = rng.choice({"+": _MORE, "-": _LESS, "*": _TIMES, "/": _SHARE}[op])
    a, b = rng.randint(1, 70), rng.randint(1, 29)
    if op == "-":
        b = rng.randint(1, a)
    elif op == "*":
        a, b = rng.randint(2, 12), 4 if "4 legs" in text else rng.randint(2, 12)
    elif op == "/":
        b = rng.randint(2, 10)
        a = min(99 // b, rng.randint(1, 12)) * b
    line, value = solve(a, op, b)
    name, other = first_name(rng), first_name(rng)
    he = GENDER.get(name, "he")
    words = rng.random() < 0.2 and max(a, b) <= 20
    env = {
        "a": in_words(a) if words else str(a), "b": in_words(b) if words else str(b), "l": line, "v": value, "n": name, "N": other, "he": he, "his": "his" if he == "he" else "her", "t": rng.choice(_THINGS), "o": rng.choice(["book", "ball", "cake", "ticket", "pen", "lamp", "hat"]), "q": rng.choice(["bag", "toy", "cup", "shirt", "chair"]),
    }  # fmt: skip
    ask = write(rng, text, env)
    ask = ask[0].upper() + ask[1:]
    return Turn(
        "arithmetic", typed(rng, ask, content=True), write(rng, answer, env), sum_key(a, op, b), value
    )


def few_numbers(rng: Random) -> Turn:
    """Three or four small numbers to add up."""
    numbers = [rng.randint(0, 30) for _ in range(rng.choice((3, 3, 3, 4)))]
    shown = [str(n) for n in numbers]
    text = rng.choice(
        [
            " + ".join(shown),
            ", ".join(shown[:-1]) + " and " + shown[-1],
            ", ".join(shown),
            " plus ".join(shown),
        ]
    )
    ask = write(
        rng,
        "{Add up|Add|Sum|What is the sum of|What is|The sum of|Total of|What's the total of|Calculate the sum of|Add these numbers:} \x01{.|?|}",
    ).replace("\x01", text)
    steps, left = " + ".join(shown), list(numbers)
    line = steps
    while len(left) > 1:
        left = [left[0] + left[1], *left[2:]]
        line += " = " + " + ".join(map(str, left))
    return Turn("arithmetic", typed(rng, ask, content=True), line + ".", f"sum {sorted(numbers)}", None)
