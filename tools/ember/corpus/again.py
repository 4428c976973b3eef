# ruff: noqa: E501, SIM905 - lines of text and word lists read better whole
"""Turns that need the one before: the same with another word, something else with the same word, what the user told and what changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random

from . import lexicon
from .grammar import write
from .multi import any_turn
from .sample import Message, Sample, Turn, say
from .settings import setting
from .tasks import DAYS, MONTHS, fix_articles, in_words, plural_of
from .text_tasks import WORDS, _numbers, _word_items, phrase
from .typed import typed
from .words import ADJECTIVES, PLURALS, invented_word

_OPPOSITES = ADJECTIVES | {b: a for a, b in ADJECTIVES.items()}


def _up(text: str) -> str:
    return text[0].upper() + text[1:]


def counted(word: str) -> str:
    """The letters of a word with their numbers, and how many there are."""
    return _up(" ".join(f"{letter}{i}" for i, letter in enumerate(word, 1)) + f": {len(word)} letters.")


# what is done to a word or a list: how it is asked for, and the answer
Doing = tuple[list[str], Callable[[Random], str], Callable[[str], str]]
_DOINGS: dict[str, Doing] = {
    "upper": (["Write $w in capitals.", "$w in capital letters{, please|}", "{Uppercase|Upper case}: $w", "Write $w in upper case.", "Say $w in big letters"], phrase, str.upper),
    "lower": (["Write $w in small letters.", "{Lowercase|Lower case}: $w", "$w in lower case{, please|}"], lambda r: phrase(r).upper(), str.lower),
    "spell": (["Spell {the word |}$w.", "How do you spell $w?", "Spell $w{ for me|}{, please|}", "$w, letter by letter"], lambda r: rng_word(r), lambda w: f"{_up(w)} is spelled {'-'.join(w.lower())}."),
    "opposite": (["What is the opposite of $w?", "The opposite of $w?", "Tell me the opposite of $w."], lambda r: r.choice(list(_OPPOSITES)), lambda w: f"The opposite of {w} is {_OPPOSITES[w]}."),
    "plural": (["What is the plural of $w?", "Plural of $w?", "Tell me the plural of $w."], lambda r: r.choice(list(PLURALS)), lambda w: f"The plural of {w} is {PLURALS[w]}."),
    "count": (["How many letters does $w have?", "How many letters are in $w?", "Count the letters of $w."], lambda r: rng_word(r), lambda w: counted(w)),
    "sort": (["Sort $w.", "Sort these{ words|}: $w", "Put in alphabetical order: $w"], lambda r: ", ".join(_word_items(r, 3, 5)), lambda w: ", ".join(sorted(w.split(", "), key=str.lower))),
    "numbers": (["Sort $w.", "Sort these numbers: $w", "From small to large: $w"], lambda r: ", ".join(_numbers(r, 3, 5)), lambda w: ", ".join(sorted(w.split(", "), key=int))),
    "reverse": (["Reverse this list: $w", "$w, backwards{, please|}", "Turn the list around: $w"], lambda r: ", ".join(_word_items(r, 3, 4)), lambda w: ", ".join(w.split(", ")[::-1])),
    "bullets": (["Make a bullet list: $w", "$w as bullet points", "Bullets, please: $w"], lambda r: ", ".join(_word_items(r, 2, 4)), lambda w: "\n".join(f"- {i}" for i in w.split(", "))),
    "numbered": (["Make a numbered list: $w", "Number these: $w", "$w with numbers"], lambda r: ", ".join(_word_items(r, 2, 4)), lambda w: "\n".join(f"{n}. {i}" for n, i in enumerate(w.split(", "), 1))),
    "array": (["Make a JSON array: $w", "$w as a JSON array", "JSON list of $w"], lambda r: ", ".join(_word_items(r, 2, 4)), lambda w: json.dumps(w.split(", "))),
    "echo": (["Repeat: $w", "Say $w.", "Repeat after me: $w"], phrase, str),
}  # fmt: skip
_ANOTHER = "{The same {with|for} $w{, please|}|And $w?|Now $w{, please|}|And the same for $w|Do {the same|that} {with|for} $w{ too| as well|}|Now the same with $w|And {now |}$w, please|What about $w?|How about $w?|Again with $w|Once more: $w|Next: $w|And with $w?|One more: $w|Also $w{, please|}|Please do $w as well|OK, now $w|Now do it with $w|The same thing for $w}"
_PRAISE = ["", "", "", "", "Thanks! ", "Good. ", "OK. ", "Great, thank you. ", "Perfect. ", "Nice. "]


def rng_word(rng: Random) -> str:
    """A word to spell or to count."""
    return rng.choice(
        [rng.choice(WORDS), rng.choice(lexicon.COMMON), rng.choice(lexicon.FIRST_NAMES).lower()]
    )


def same_again(rng: Random) -> list[tuple[str, str]]:
    """Something done to a word, then the same to one or two others."""
    asks, draw, answer = _DOINGS[rng.choice(list(_DOINGS))]
    pairs = []
    for number in range(rng.choice((2, 2, 2, 3))):
        word = draw(rng)
        shown = rng.choice([word, word, f'"{word}"']) if ", " not in word else word
        if number:
            ask = rng.choice(_PRAISE) + write(rng, _ANOTHER.replace("$w", "\x01"))
        else:
            ask = write(rng, rng.choice(asks).replace("$w", "\x01"))
        ask = ask if rng.random() < 0.75 else _low(ask)
        ask += "" if ask[-1] in "?.!\x01:" or rng.random() < 0.4 else "."
        pairs.append((ask.replace("\x01", shown), answer(word)))
    return pairs


def _low(text: str) -> str:
    return text[0].lower() + text[1:]


_LIST_THEN: dict[str, str] = {
    "upper": "{Now in capitals|And in capital letters|In upper case, please|Now write that in capitals|All caps, please}", "bullets": "{Now {as|with} bullet{s| points}|As a bullet list, please|And as bullet points|Now put a dash before each|Make that a bullet list|I'd like bullets}", "numbered": "{Now numbered|As a numbered list, please|Now with numbers|And now number them|Number them, please}", "reverse": "{Now backwards|And backwards|Now in reverse{ order|}|Turn it around|From last to first, please|And the other way round}", "array": "{Now as a JSON array|As JSON, please|And as a JSON list|Make that a JSON array}",
}  # fmt: skip


def something_else(rng: Random) -> list[tuple[str, str]]:
    """A list sorted or a word found, then something else made of the same."""
    if rng.random() < 0.6:
        numbers = rng.random() < 0.4
        items = _numbers(rng, 3, 5) if numbers else _word_items(rng, 3, 5)
        result = sorted(items, key=int if numbers else str.lower)
        text = ", ".join(items)
        pairs = [(write(rng, f"{{Sort|Sort these|Put in order|Order}}: {text}"), ", ".join(result))]
        then = rng.choice([k for k in _LIST_THEN if k != "upper" or not numbers])
        show: dict[str, Callable[[], str]] = {
            "upper": lambda: ", ".join(result).upper(), "bullets": lambda: "\n".join(f"- {i}" for i in result), "numbered": lambda: "\n".join(f"{n}. {i}" for n, i in enumerate(result, 1)), "reverse": lambda: ", ".join(result[::-1]), "array": lambda: json.dumps([int(i) if numbers else i for i in result]),
        }  # fmt: skip
        ask = write(rng, _LIST_THEN[then])
        pairs.append((rng.choice(_PRAISE) + ask + rng.choice([".", "", "!", "."]), show[then]()))
        if rng.random() < 0.3:
            which = rng.choice(["first", "last"])
            pairs.append((f"{rng.choice(('What is', 'Which one is', 'Tell me'))} the {which} one{'.' if rng.random() < 0.2 else '?'}", (result[::-1] if then == "reverse" else result)[0 if which == "first" else -1]))  # fmt: skip
        return pairs
    kind = rng.choice(["opposite", "plural"])
    table = _OPPOSITES if kind == "opposite" else PLURALS
    word = rng.choice([w for w in table if table[w].isalpha()])
    value = table[word]
    pairs = [(write(rng, f"{{What is the {kind} of {word}|The {kind} of {word}|Tell me the {kind} of {word}}}?"), f"The {kind} of {word} is {value}.")]  # fmt: skip
    then, answer = rng.choice([
        ("{Spell it|How is it spelled|How do you spell that|Spell that word|And spell it, please}", f"{_up(value)} is spelled {'-'.join(value)}."), ("{How many letters does it have|How many letters are in it|Count its letters|How long is that word}", counted(value)),
        ("{In capitals, please|Now in capital letters|Write it in upper case|And in capitals}", value.upper()), ("{Just the word|Only the word, please|One word, please|Shorter, please|In one word}", _up(value)), ("{Which letter does it begin with|What is its first letter|And the first letter}", f"{_up(value)} begins with {value[0]}."),
    ])  # fmt: skip
    ask = write(rng, then)
    return [*pairs, (ask + ("?" if ask.split()[0] in ("How", "Which", "What") else "."), answer)]


# first persons: what the user tells, and (question, answer) of it
_SAID: list[tuple[str, list[tuple[str, str]]]] = [
    ("My $r $n is a $j and my $R $m is a $J.", [("What is $n's job?", "$n is a $j."), ("What does $m do?", "$m is a $J."), ("Who is the $J?", "$m is the $J."), ("What is my $R called?", "Your $R is called $m.")]), ("I have {two|2} $ks, $n and $m.", [("{How many $ks do I have|How many $ks have I got}?", "You have two $ks."), ("What are my $ks called?", "Your $ks are called $n and $m.")]), ("We are {going|travelling|flying} to $p in $M.", [("Where are we going?", "You are going to $p."), ("{When|In which month} {are we going|do we go}?", "You are going in $M.")]),
    ("I {moved|have moved} from $p to $q last $S.", [("Where do I live now?", "You live in $q."), ("Where did I live before?", "You lived in $p before.")]), ("My {wife|husband|daughter|son|boss|teacher} is called $n and {comes from|lives in} $p.", [("{What is the name of that person|Who did I talk about}?", "It is $n."), ("Where {does $n live|is $n from}?", "$n is in $p.")]), ("I {need|must buy|have to get} $f, $g and $h.", [("What do I {need|have to get|need to buy}?", "You need $f, $g and $h.")]), ("{The meeting|My exam|The party|My appointment|The match} is on $D at $t.", [("When is it?", "It is on $D at $t."), ("On which day is it?", "It is on $D."), ("At what time is it?", "It is at $t.")]),
    ("My favorite {color|colour} is $c{ and I hate $d|}.", [("{What is my favorite color|Which color do I like best|Which colour do I like|What color do I like most}?", "Your favorite color is $c.")]), ("My {phone|room|house|seat|locker|shoe} number is $i.", [("What is my number?", "Your number is $i."), ("Which number did I tell you?", "The number is $i.")]), ("I {was born|grew up} in $p{ in $y|}.", [("Where {was I born|did I grow up|am I from}?", "It was in $p.")]), ("{This morning|Yesterday|Today} I {saw|met|found|caught} a $k {in the garden|at the lake|in the park}.", [("{What did I see|Which animal was it|What did I meet|What was it}?", "It was a $k."), ("Where was {it|that}?", "You told me where you saw the $k.")]),
    ("I {play|am learning|practice} the $b and my $r plays the $B.", [("{Which instrument do I play|What do I play}?", "You play the $b."), ("What does my $r play?", "Your $r plays the $B.")]), ("I am {allergic to|afraid of} $Ps.", [("What am I {allergic to|afraid of}?", "It is $Ps.")]), ("My {car|bike|door|house|coat|boat} is $c, my {neighbor|$r}'s is $d.", [("{What color is mine|Which color is mine}?", "Yours is $c.")]), ("Tomorrow I {visit|will visit|see} $n, {and on $D|on $D} $m.", [("Whom do I visit tomorrow?", "Tomorrow you visit $n."), ("Whom do I visit on $D?", "On $D you visit $m.")]), ("I {paid|spent} $i {euros|dollars} for a $o.", [("How much did I {pay|spend}?", "It was $i."), ("What did I buy?", "You bought a $o.")]),
    ("I {work|worked} as a $j in $p.", [("What is my job?", "You are a $j."), ("Where do I work?", "You work in $p.")]), ("My $r {likes|loves} $f, but I {like|love|prefer} $g.", [("What do I {like|love|prefer}?", "You like $g."), ("What does my $r {like|love}?", "Your $r likes $f.")]), ("{Please remember|Remember|Keep in mind|Don't forget}: {the code is $w|the word is $w|the number is $i}.", [("{What should you remember|What did I ask you to remember|What was it}?", "It was $X.")]), ("I have {a|one} $k called $n, {a|one} $K called $m.", [("What is {the|my} $k called?", "Your $k is called $n."), ("What is {the|my} $K called?", "Your $K is called $m."), ("Who is $m?", "$m is your $K.")]), ("My {birthday|name day|wedding day} is on $D, the {$i2|$i3}th of $M.", [("When is it?", "It is on $D."), ("In which month is it?", "It is in $M.")]), ("I am reading a book {by|of} $n{. It is called|, it is called} $W.", [("What is the book called?", "It is called $W."), ("Who wrote {it|the book}?", "It is by $n.")]),
]  # fmt: skip
_REPLY = ["Good to know.", "How nice!", "That sounds good.", "Thank you for telling me.", "I see.", "What a nice thing!", "I will remember that.", "That is interesting.", "All right.", "Lovely!", "Oh, I see.", "That sounds wonderful.", "You have an interesting life.", "How lovely.", "Nice!", "I hope all goes well.", "OK, I have noted it.", "I am glad to hear that.", "That sounds like a good plan.", "Great!"]  # fmt: skip
_REMIND = [
    "",
    "",
    "",
    "",
    "Do you remember: ",
    "Tell me again: ",
    "Now, ",
    "I forgot. ",
    "One question: ",
    "Quick check: ",
    "Help me: ",
]


def _env(rng: Random) -> dict[str, str]:
    n, m = rng.sample(lexicon.FIRST_NAMES, 2)
    r, R = rng.sample("brother sister uncle aunt cousin friend neighbor mother father".split(), 2)
    j, J = rng.sample(lexicon.PEOPLE, 2)
    k, K = rng.sample(lexicon.CREATURES, 2)
    f, g, h = rng.sample(lexicon.FOODS, 3)
    c, d = rng.sample(lexicon.COLORS, 2)
    b, B = rng.sample("violin flute guitar drums trumpet harp piano cello organ clarinet".split(), 2)
    p, q = rng.sample(lexicon.CITIES, 2)
    return {"n": n, "m": m, "r": r, "R": R, "j": j, "J": J, "k": k, "ks": plural_of(k), "K": K, "f": f, "g": g, "h": h, "c": c, "d": d, "b": b, "B": B, "p": p, "q": q, "D": rng.choice(DAYS), "M": rng.choice(MONTHS), "S": rng.choice("spring summer autumn winter year month".split()), "t": f"{rng.randint(1, 23)}:{rng.choice(('00', '15', '30', '45'))}", "i": str(rng.randint(2, 999)), "i2": str(rng.randint(4, 20)), "i3": str(rng.randint(24, 28)), "y": str(rng.randint(1930, 2015)), "Ps": plural_of(rng.choice([*lexicon.CREATURES, *lexicon.FOODS])), "o": rng.choice(lexicon.THINGS), "w": rng.choice([invented_word(rng), rng.choice(lexicon.COMMON)]), "W": f"The {rng.choice(lexicon.COMMON).capitalize()} {rng.choice(lexicon.NOUN_LIKE).capitalize()}"}  # fmt: skip


def told_again(rng: Random) -> list[tuple[str, str]]:
    """What the user told, other turns between, and a question about it; at times what was told changes."""
    env = _env(rng)
    said, asked = rng.choice(_SAID)
    text = fix_articles(write(rng, said, env))
    env["X"] = text.split(" is ")[-1].rstrip(".")
    reply = rng.choice(_REPLY)
    pairs = [(typed(rng, text, content=True) if rng.random() < 0.3 else text, reply)]
    if rng.random() < 0.3:
        other = _env(rng)
        more, _ = rng.choice([s for s in _SAID if s[0] != said])
        pairs.append((fix_articles(write(rng, more, other)), rng.choice(_REPLY)))
        if more[:6] == said[:6] or "Remember" in more or "Remember" in said:
            pairs.pop()
    for _ in range(rng.choice((0, 0, 0, 1, 1, 2))):
        turn = any_turn(rng)
        if not turn.held_out and len(turn.answer) < 200:
            pairs.append((turn.ask, turn.answer))
    ask, answer = rng.choice([a for a in asked if "told me where" not in a[1]])
    ask = fix_articles(write(rng, ask, env))
    lead = rng.choice(_REMIND)
    ask = lead + (_low(ask) if lead.endswith((", ", ": ")) and ask.split()[0].rstrip("'s") in _LOW else ask)
    pairs.append((typed(rng, ask) if rng.random() < 0.3 else ask, fix_articles(write(rng, answer, env))))
    return pairs


_LOW = frozenset("What Where When Who Which How In On At Whom".split())
_CHANGES: list[tuple[str, str, Callable[[Random], str], str, str]] = [
    ("My name is $v.", "Call me $v", lambda r: r.choice(lexicon.FIRST_NAMES), "What is my name?", "Your name is $v."), ("I live in $v.", "I live in $v now", lambda r: lexicon.anywhere(r), "Where do I live?", "You live in $v."), ("My favorite color is $v.", "It is $v", lambda r: r.choice(lexicon.COLORS), "What is my favorite color?", "Your favorite color is $v."), ("The meeting is on $v.", "It is on $v", lambda r: r.choice(DAYS), "When is the meeting?", "The meeting is on $v."), ("I want to buy a $v.", "I want a $v", lambda r: r.choice(lexicon.THINGS), "What do I want to buy?", "You want to buy a $v."), ("I would like $v for dinner.", "I want $v", lambda r: r.choice(lexicon.FOODS), "What do I want for dinner?", "You want $v."), ("I am $v years old.", "I am $v", lambda r: in_words(r.randint(3, 99)) if r.random() < 0.2 else str(r.randint(3, 99)), "How old am I?", "You are $v years old."), ("The password is $v.", "It is $v", lambda r: invented_word(r), "What is the password?", "The password is $v."), ("My dog is called $v.", "He is called $v", lambda r: r.choice(lexicon.FIRST_NAMES), "What is my dog called?", "Your dog is called $v."), ("Remember the number $v.", "Remember $v", lambda r: str(r.randint(1, 999)), "Which number should you remember?", "The number is $v."),
]  # fmt: skip


def changed(rng: Random) -> list[tuple[str, str]]:
    """Something told, then put right, then asked for."""
    first, later, draw, ask, answer = rng.choice(_CHANGES)
    a, b = draw(rng), draw(rng)
    while a == b:
        b = draw(rng)
    change = write(rng, f"{{No, wait|Sorry, I was wrong|I made a mistake|Actually|Correction|I changed my mind|Oh, no|Wait|Sorry}}{{: |, |. }}{later}{{ instead|}}.", {"v": b}).replace(" now instead", " now")  # fmt: skip
    return [(fix_articles(first.replace("$v", a)), rng.choice(_REPLY)), (fix_articles(change), rng.choice(["All right.", "No problem.", "Good, I have noted that.", "OK, I see.", "I will remember that."])), (typed(rng, ask) if rng.random() < 0.4 else ask, fix_articles(answer.replace("$v", b)))]  # fmt: skip


def again_chat(rng: Random) -> Sample:
    """A chat of one of these sorts."""
    pairs = rng.choices((same_again, something_else, told_again, changed), (5, 4, 7, 1.5))[0](rng)
    messages: list[Message] = []
    if rng.random() < 0.1:
        messages.append(say("system", setting(rng)))  # fmt: skip
    for ask, answer in pairs:
        messages += [say("user", ask), say("assistant", answer)]
    key = "again " + " | ".join(ask for ask, _ in pairs)
    held = Turn("multi-turn", "", "", key).held_out
    return Sample("multi-turn", messages=messages, hint={"held_out": str(int(held))})
