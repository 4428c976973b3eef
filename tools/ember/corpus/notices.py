# ruff: noqa: E501 - lines of text read better whole
"""Chats about the texts of ``tidings`` and ``tidings_more``: a text and a question in many arrangements, answered in a sentence or in a word."""

from __future__ import annotations

from random import Random

from . import lexicon
from .bare import BRIEFLY, bare_value
from .grammar import write
from .passages import NOT_SAID, scene
from .sample import Message, Sample, Turn, say
from .settings import setting
from .tasks import fix_articles, in_words, plural_of
from .tidings import TIDINGS
from .tidings_more import TIDINGS_MORE, TIDINGS_YES
from .typed import around, typed

_VERDICT = [
    "Yes or no?",
    "Answer yes or no.",
    "Just yes or no.",
    "Only yes or no, please.",
    "Answer with yes or no.",
]
_ALL = [*TIDINGS, *TIDINGS_MORE, *TIDINGS_YES]
_COUNTED = sorted({plural_of(w) for w in ["apple", "egg", "onion", "carrot", "tomato", "banana", "lemon", "potato", "pear", "plum", "cake", "book", "chair", "lamp", "cup", "pen", "box", "flower", "tree", "bird", "ticket", "card", "bottle", "key", "stamp", "coat", "pillow", "window", "shell"]})  # fmt: skip


def _other(rng: Random, pool: list[str] | str, *taken: str) -> str:
    words = pool.split() if isinstance(pool, str) else pool
    while (drawn := rng.choice(words)) in taken:
        pass
    return drawn


def _number(rng: Random, *taken: str) -> str:
    while (
        drawn := str(rng.choice((rng.randint(2, 20), rng.randint(2, 99), 10 * rng.randint(1, 40))))
    ) in taken:
        pass
    return drawn


def env_of(rng: Random) -> dict[str, str]:
    """Everything that a tiding may name, each thing but once."""
    env = scene(rng)
    while len({env["n"], env["m"]}) < 2 or env["t"] == env["t2"] or env["p"] == env["r"]:
        env = scene(rng)
    num = _number(rng)
    num2 = _number(rng, num)
    few = rng.sample(range(2, 13), 2)
    as_words = rng.random() < 0.6
    he = rng.choice(("he", "she"))
    third = lexicon.anyone(rng)
    while third in (env["n"], env["m"]):
        third = lexicon.anyone(rng)
    pos, pos2 = rng.choice([("big", "small"), ("first", "second"), ("left", "right"), ("old", "new"), ("upper", "lower"), ("front", "back"), ("small", "big")])  # fmt: skip
    north, south = rng.choice([("the north", "the south"), ("the east", "the west"), (env["p"], env["r"]), ("the mountains", "the valley")])  # fmt: skip
    take, took = rng.choice([("take", "took"), ("bring", "brought"), ("buy", "bought"), ("pack", "packed"), ("choose", "chose")])  # fmt: skip
    more_, most, least = rng.choice([("bigger", "biggest", "smallest"), ("older", "oldest", "newest"), ("nearer", "nearest", "farthest"), ("higher", "highest", "lowest"), ("cheaper", "cheapest", "most expensive"), ("smaller", "smallest", "biggest"), ("wider", "widest", "narrowest")])  # fmt: skip
    reason = env["Y"].replace("the road was icy", "")
    more = {
        "num": num, "num2": num2, "num3": _number(rng, num, num2), "fewa": in_words(few[0]) if as_words else str(few[0]), "fewb": in_words(few[1]) if as_words else str(few[1]),
        "he": he, "his": {"he": "his", "she": "her"}[he], "him": {"he": "him", "she": "her"}[he], "third": third, "sur": (sur := rng.choice(lexicon.SURNAMES)), "surs": f"{sur}s", "kin1": rng.choice(["Uncle", "Aunt", "Captain", "Doctor", "Mr.", "Mrs.", "Grandpa", "Grandma", "Professor"]), "color3": _other(rng, lexicon.COLORS, env["c"], env["d"]),
        "food3": _other(rng, lexicon.FOODS, env["f"], env["g"]), "place3": _other(rng, lexicon.PLACES, env["s"], env["u"]), "thing3": _other(rng, lexicon.THINGS, env["o"], env["q"]), "city3": _other(rng, lexicon.CITIES, env["p"], env["r"]), "mat2": _other(rng, "wood gold glass stone paper silver wool iron plastic leather", env["x"]), "sky2": _other(rng, "sunny rainy cold warm windy snowy foggy cloudy hot dry", env["W"]),
        "near": rng.choice(("in", "near")), "at": rng.choice(("in", "at")), "by": rng.choice(("next to", "behind", "opposite", "beside")), "pos": pos, "pos2": pos2, "north": north, "south": south, "grp": rng.choice(["children", "women", "men", f"from {env['p']}", "over 60", "students", "guests"]), "take": take, "took": took, "more": more_, "most": most, "least": least,
        "P2": _other(rng, _COUNTED, env["P"]), "Y2": reason,
    }  # fmt: skip
    return env | more


_LEAD = "{Read {this|the following|it} {carefully|}|Read {this|the} {note|text|letter|message} {and answer|}|Here is {a|my} {note|text|letter|message|mail}|Text|A note|Message|I got this {mail|message|letter}|From the newspaper|This is what {he|she|$n} wrote|{Answer|Help me} with this text|Note|In the book it says|It says}"
_TELL = "{Read this{ note| text| message|} and tell me $x:|Please tell me $x.|I want to know $x.|Can you tell me $x?|Do you know $x?|Could you find out $x?|I forgot $x.|Tell me $x:|I need to know $x.|Say $x.|Find out $x from this:|My mother asks $x.|Please read this and say $x:|I can't read it well. It should say $x:|Look in the text $x.|Look up $x:}"
_SYSTEM = "{Answer {the question|questions} {from|about|with} the text{ below|}.|You {read|answer questions about} texts{ for people|}.|{Answer|Reply} briefly.|You are a helpful assistant.|Use the text {to answer|only}.|You help {an old lady with her letters|students with texts|people who cannot see well}.|Read the text and answer.}"
_FILLER = ["It was a sunny day.", "Nobody knew why.", "We all laughed.", "That was last year.", "The birds were singing.", "Then it began to rain.", "It was getting late.", "Everyone was happy.", "I like that.", "The street was quiet.", "We had a good time.", "It was very quiet.", "Then we went home.", "You know how it is.", "Have a nice day!", "Thank you for everything.", "It is a long story.", "The coffee was good.", "Life goes on.", "What a day!"]  # fmt: skip


_NOUNS = frozenset(lexicon.NOUN_LIKE)


def _named(ask: str) -> list[str]:
    """The things and people that a question names."""
    words = [w.strip("?.,!").removesuffix("'s") for w in ask.split()]
    return [w for w in words[1:] if w in _NOUNS or w.istitle()]


def _told(rng: Random) -> tuple[str, list[tuple[str, str, str]], dict[str, str]]:
    """A text with what may be asked of it, at times between others."""
    env = env_of(rng)
    template, asked = rng.choice(_ALL)
    text = fix_articles(write(rng, template, env))
    text = text[0].upper() + text[1:]
    if "$Y2" in asked[0][1] and env["Y"] not in text:  # the reason that the template has itself
        return _told(rng)
    pairs = [(fix_articles(write(rng, a, env)), fix_articles(write(rng, b, env)), write(rng, c, env)) for a, b, c in asked]  # fmt: skip
    draw = rng.random()
    if draw < 0.2:
        filler = rng.choice(_FILLER)
        text = f"{filler} {text}" if rng.random() < 0.5 else f"{text} {filler}"
    elif draw < 0.32:
        other, _ = rng.choice(_ALL)
        second = fix_articles(write(rng, other, env_of(rng)))
        second = second[0].upper() + second[1:]
        clear = [pair for pair in pairs if _named(pair[0])]  # "how much is it" could be of either text
        if other != template and clear:
            pairs = clear
            gap = rng.choice((" ", "\n"))
            text = f"{second}{gap}{text}" if rng.random() < 0.5 else f"{text}{gap}{second}"
    pairs = [(a[0].upper() + a[1:], b[0].upper() + b[1:], c) for a, b, c in pairs]
    return text, pairs, env


def _is_foreign(ask: str, text: str) -> bool:
    """Whether a question names things or people, none of which is in the text."""
    named = _named(ask)
    return bool(named) and not any(w.lower() in text.lower() for w in named)


def notice_chat(rng: Random) -> Sample:
    """A text, and one to three questions about it."""
    text, pairs, env = _told(rng)
    rng.shuffle(pairs)
    messages: list[Message] = []
    ask, answer, clause = pairs[0]
    gap = rng.choice(["\n", "\n", " ", "\n\n", "\nQuestion: ", " Question: ", "\nQ: "])
    shown = f'"{text}"' if rng.random() < 0.12 and '"' not in text else text
    draw = rng.random()
    if rng.random() < 0.05:  # something that the text does not say
        _, others, _ = _told(rng)
        if _is_foreign(others[0][0], text):
            ask, answer, clause = others[0][0], rng.choice(NOT_SAID), ""
    asked = typed(rng, ask) if rng.random() < 0.3 else ask
    bare = bare_value(text, ask, answer) if rng.random() < 0.3 else ""
    verdict = answer.split(",")[0]
    if verdict in ("Yes", "No") and rng.random() < 0.3:
        asked, answer, clause = f"{ask} {rng.choice(_VERDICT)}", verdict, ""
    if bare:
        asked, answer = f"{ask} {rng.choice(BRIEFLY)}", bare[0].upper() + bare[1:]
    elif rng.random() < 0.2:
        messages.append(say("system", setting(rng) if rng.random() < 0.3 else write(rng, _SYSTEM)))
    if clause and not bare and rng.random() < 0.3:
        tell = write(rng, _TELL, {"x": clause})
        tail = tell.rstrip(":") + ("." if tell.endswith(":") else "")
        first = rng.random() < 0.65
        content = f"{tell}{rng.choice((' ', chr(10)))}{shown}" if first else f"{shown}{rng.choice((' ', chr(10)))}{tail}"  # fmt: skip
    elif draw < 0.25:
        content = f"{asked}{rng.choice((chr(10), ' ', chr(10) * 2))}{shown}"
    elif draw < 0.42:
        content = f"{write(rng, _LEAD, env)}{rng.choice((': ', ':' + chr(10), '. '))}{shown}{gap}{asked}"
    elif draw < 0.5:
        messages[:] = [say("system", f"{rng.choice(('Text: ', 'Context: ', 'Use this text: ', 'Answer from this note: ', ''))}{text}")]  # fmt: skip
        content = asked
    elif draw < 0.56:
        messages.append(say("user", shown))
        messages.append(say("assistant", rng.choice(["I see.", "Good to know.", "Thank you for telling me.", "I have read it. What would you like to know?"])))  # fmt: skip
        content = asked
    else:
        content = f"{shown}{gap}{asked}"
    if draw > 0.93:
        content = around(rng, content)
    messages += [say("user", content), say("assistant", answer)]
    keys = [f"notice {text} {ask}"]
    for more, reply, _ in pairs[1 : rng.choice((1, 1, 1, 2, 3))]:
        lead = rng.choice(["", "", "And ", "OK. ", "Thanks. "])
        more = lead + (more[0].lower() + more[1:] if lead == "And " else more)
        messages += [say("user", more), say("assistant", reply)]
        keys.append(f"notice {text} {more}")
    held = any(Turn("reading", "", "", key).held_out for key in keys)
    return Sample("reading", messages=messages, hint={"held_out": str(int(held))})
