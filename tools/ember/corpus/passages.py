# ruff: noqa: E501, SIM905 - lines of text and word lists read better whole
"""Reading with open ends: people, things and towns of all sorts in many shapes of statements, and several questions about one text."""

from __future__ import annotations

from random import Random

from . import lexicon
from .accounts import account
from .bare import BRIEFLY, bare_value
from .events import event
from .grammar import write
from .sample import Message, Sample, Turn
from .shapes import MORE, SHAPES, WIDER, Shape
from .tasks import DAYS, MONTHS, fix_articles, in_words, plural_of
from .typed import typed
from .words import invented_word

_LIES = """in the $s|at the $s|behind the $s|under the $q|on the $q|behind the $q|next to the $q|in the $q|on the bus|on the train|in the car|at home|at work|at school|in the taxi|under the bed|on the table|on the top shelf|by the window|near the door|in $p|at $n's house|on the floor|outside
|in a tree|on the roof|in the kitchen|between the $s and the $u|inside the $q|upstairs|in the attic""".replace("\n", "").split("|")  # fmt: skip
_WHY = """the bus was late|it rained|it was too cold|the $o was broken|the $o was lost|the road was closed|the $k ran away|there was no $f|the $s was closed|$m was ill|$m did not call|the train did not come|it was dark|the music was loud|the $o was gone|$m forgot the $o|the $k was asleep
|there was a storm|the shop had no $P|the game was lost|the test was hard|the $o was too heavy|it snowed|$m left|the $o was too expensive|the $f was burnt|it was $D|the alarm did not ring""".replace("\n", "").split("|")  # fmt: skip
_FELT = "late tired sad happy angry hungry proud nervous cold afraid bored sick glad upset surprised worried lonely wet thirsty busy quiet".split()
_FUN = "swimming|reading|painting|fishing|hiking|dancing|singing|cooking|gardening|skiing|chess|football|tennis|knitting|running|climbing|sailing|cycling|baking|drawing|photography|yoga|playing cards|watching birds|riding horses|collecting stamps|solving puzzles|telling stories|surfing|skating|juggling".split(
    "|"
)
_EVENTS = "meeting party concert lesson wedding match exam trip dinner lunch game show class fair festival race test play interview talk picnic dance market exhibition rehearsal workshop".split()
_STUFFS = "wood gold glass stone paper silver wool iron plastic leather cotton silk clay copper steel bronze bamboo rubber wax marble".split()
_SKIES = "sunny rainy cold warm windy snowy foggy cloudy hot dry stormy".split()
_MONEY = "euros dollars pounds coins cents francs yen".split()
_KIN = "sister brother mother father son daughter friend cousin uncle aunt teacher boss neighbor dog cat horse wife husband partner doctor roommate".split()
_PLURALS = sorted({plural_of(w) for w in lexicon.THINGS if w not in ("goggles", "headphones", "jeans")})
_NARROW = [(narrow, wide) for wide, group in WIDER.items() for narrow in group]


def _time(rng: Random) -> str:
    hour, minute = rng.randint(1, 23), rng.choice(("00", "15", "30", "45", f"{rng.randint(1, 59):02d}"))
    draw = rng.random()
    if draw < 0.45:
        return f"{hour}:{minute}"
    if draw < 0.75:
        return f"{rng.randint(1, 12)} {rng.choice(('am', 'pm'))}"
    return (
        rng.choice(["noon", "midnight", "half past " + in_words(rng.randint(1, 12))])
        if draw < 0.85
        else f"{in_words(rng.randint(1, 12))} o'clock"
    )


def scene(rng: Random) -> dict[str, str]:
    """One drawing of everything that a shape may name."""
    two = rng.sample
    v = rng.choice(list(lexicon.ACTS))
    e = rng.choice(list(lexicon.EATS))
    few = rng.choice((rng.randint(2, 12), rng.randint(2, 30)))
    narrow, wide = rng.choice(_NARROW)
    (c, d), (D, E) = two(lexicon.COLORS, 2), two(DAYS, 2)
    (o, q), (s, u) = two(lexicon.THINGS, 2), two(lexicon.PLACES, 2)
    (k, animal), (f, g) = two(lexicon.CREATURES, 2), two(lexicon.FOODS, 2)
    env = {
        "n": lexicon.anyone(rng), "m": lexicon.anyone(rng), "o": o, "q": q, "c": c, "d": d, "a": rng.choice(lexicon.QUALITIES), "p": lexicon.anywhere(rng), "r": lexicon.anywhere(rng), "s": s, "u": u, "j": rng.choice(lexicon.PEOPLE), "k": k, "l": animal,
        "f": f, "g": g, "h": rng.choice(lexicon.DRINKS), "D": D, "E": E, "M": rng.choice(MONTHS), "t": _time(rng), "t2": _time(rng), "i": str(rng.choice((rng.randint(1, 99), rng.randint(1, 99), rng.randint(100, 9999)))), "I": rng.choice([in_words(few), str(few)]), "y": str(rng.randint(1800, 2030)),
        "P": rng.choice(_PLURALS), "v": v, "V": lexicon.ACTS[v], "e": e, "F": lexicon.EATS[e], "L": rng.choice(lexicon.LANGUAGES), "b": rng.choice(WIDER["instrument"]), "K": narrow, "H": wide, "R": rng.choice(_KIN), "x": rng.choice(_STUFFS), "z": rng.choice(_MONEY), "B": rng.choice(_EVENTS), "A": rng.choice(_FELT),
        "Z": rng.choice(_FUN), "W": rng.choice(_SKIES), "w": rng.choice([invented_word(rng), invented_word(rng).capitalize(), f"{rng.choice(lexicon.COMMON)}{rng.randint(1, 99)}", str(rng.randint(1000, 99999)), "The " + rng.choice(lexicon.COMMON).capitalize()]),
    }  # fmt: skip
    env["T"] = write(rng, rng.choice(_LIES), env)
    env["Y"] = write(rng, rng.choice(_WHY), env)
    return env


Told = tuple[str, list[tuple[str, str]]]


def _say(rng: Random, shape: Shape, env: dict[str, str], statement: str) -> Told:
    text = write(rng, statement, env)
    return text[0].upper() + text[1:], [(write(rng, a, env), write(rng, b, env)) for a, b in shape[1]]


def _alike(rng: Random) -> tuple[list[str], list[tuple[str, str]]]:
    """Two or three statements of one shape: which belongs to which is the question."""
    shape = rng.choice(SHAPES)
    statement = rng.choice(shape[0])
    told: list[Told] = []
    taken: set[str] = set()
    for _ in range(rng.choice((2, 2, 2, 3, 3, 4))):
        env = scene(rng)
        while taken & {env[x] for x in "nmocpskfhDtiPTwyjZ"}:
            env = scene(rng)
        taken |= {env[x] for x in "nmocpskfhDtiPTwyjZ"}
        told.append(_say(rng, shape, env, statement if rng.random() < 0.6 else rng.choice(shape[0])))
    texts = [text for text, _ in told]
    if len(texts) == 2 and rng.random() < 0.5 and texts[0][-1] == ".":
        first, second = texts[0][:-1], texts[1]
        keep = second.split()[0].strip(",") not in ("The", "A", "There", "On", "In", "It", "You", "We", "They", "My", "Our", "At", "Yesterday")  # fmt: skip
        texts = [
            first
            + rng.choice([" and ", ", but ", ", and ", "; ", " while "])
            + (second if keep else second[0].lower() + second[1:])
        ]
    return texts, [pair for _, questions in told for pair in questions]


def _mixed(rng: Random) -> tuple[list[str], list[tuple[str, str]]]:
    """One to six statements of different shapes, often about one person; at times a question that none answers."""
    count = rng.choice((1, 1, 2, 2, 3, 3, 4, 5, 6))
    shapes = rng.sample(SHAPES, count)
    same = rng.random() < 0.4
    first = scene(rng)
    told = []
    for shape in shapes:
        env = scene(rng)
        if same:
            env |= {"n": first["n"]}
        told.append(_say(rng, shape, env, rng.choice(shape[0])))
    pairs = [pair for _, questions in told for pair in questions]
    if count > 1 and not same and rng.random() < 0.12:
        hidden = told.pop(rng.randrange(count))
        pairs = [(ask, rng.choice(NOT_SAID)) for ask, _ in hidden[1]]
    elif rng.random() < 0.06:
        shape = rng.choice([s for s in SHAPES if s not in shapes])
        env = scene(rng) | {"n": first["n"]}
        pairs = [(write(rng, ask, env), rng.choice(NOT_SAID)) for ask, _ in shape[1]]
    return [text for text, _ in told], pairs


NOT_SAID = ["The text does not say that.", "I do not know. The text does not say that."]


def _ranked(rng: Random) -> tuple[list[str], list[tuple[str, str]]]:
    """Two or three compared: who is more, who is less, who is most."""
    more, less = rng.choice(MORE).split(":")
    if rng.random() < 0.5:
        more, less = less, more
    people = rng.random() < 0.7
    names: list[str] = []
    while len(names) < 3:
        name = lexicon.anyone(rng) if people else "the " + rng.choice(lexicon.THINGS)
        if name not in names:
            names.append(name)
    a, b, c = names
    who = "Who" if people else rng.choice(["What", "Which one", "Which"])
    if rng.random() < 0.7:
        texts = [f"{a} is {rng.choice(['', 'much ', 'a little '])}{more} than {b}."]
        pairs = [(f"{who} is {more}?", f"{a} is {more}."), (f"{who} is {less}?", f"{b} is {less}."), (f"{who} is {less}, {a} or {b}?", f"{b} is {less}."),
                 (f"Is {b} {more} than {a}?", f"No, {a} is {more}."), (f"Is {a} {more} than {b}?", f"Yes, {a} is {more}.")]  # fmt: skip
    else:
        most, least = (w[:-2] + "est" if w[-2:] == "er" else w for w in (more, less))
        texts = [f"{a} is {more} than {b}.", f"{b} is {more} than {c}."]
        texts = [text[0].upper() + text[1:] for text in texts]
        if rng.random() < 0.3:
            texts.reverse()
        pairs = [(f"{who} is the {most}?", f"{a} is the {most}."), (f"{who} is the {least}?", f"{c} is the {least}.")]  # fmt: skip
    return texts, pairs


def _record(rng: Random) -> tuple[list[str], list[tuple[str, str]]]:
    """A list of names and values, as on a form."""
    env = scene(rng)
    rows = [
        ("Name", env["n"]), ("Age", env["i"]), ("City", env["p"]), ("Job", env["j"]), ("Color", env["c"]), ("Phone", str(rng.randint(1000, 999999))), ("Price", f"{env['i']} {env['z']}"), ("Day", env["D"]), ("Time", env["t"]), ("Place", env["s"]), ("Language", env["L"]), ("Pet", env["k"]),
        ("Food", env["f"]), ("Code", env["w"]), ("Country", rng.choice("France Spain Japan Kenya Chile Canada Norway India Peru Ghana".split())), ("Month", env["M"]), ("Hobby", env["Z"]), ("Room", env["i"]), (rng.choice(lexicon.IDEAS).capitalize(), rng.choice([env["o"], env["w"], env["i"]])),
    ]  # fmt: skip
    chosen = {k: v for k, v in rng.sample(rows, rng.randint(2, 6))}
    if rng.random() < 0.3:
        chosen = {rng.choice([x, x.lower()]): v for x, v in chosen.items()}
    mark = rng.choice([": ", ": ", " = ", " - "])
    text = rng.choice(["\n", "\n", ", ", "; "]).join(f"{k}{mark}{v}" for k, v in chosen.items())
    pairs = [
        (write(rng, f"{{What is the {k.lower()}|What's the {k.lower()}|Tell me the {k.lower()}|Which {k.lower()} is it|Give me the {k.lower()}|{k}}}?"), f"The {k.lower()} is {v}.")
        for k, v in chosen.items()
    ]  # fmt: skip
    return [text], [(a[:-1] + "." if a.startswith(("Tell", "Give")) else a, b) for a, b in pairs]


_BEFORE = "{According to the text|Answer from the text|Use the text|Look at this|Try this|Read the text|Read the following|Read carefully|Here is a text|Here is some information|Here is what I know|Consider this|Context|Text|Story|Passage|Information|Facts|Note|Notes|Given|Listen|I will tell you something|Imagine|Suppose|My notes say|The letter says|Let me tell you something|From my diary|News}{:|.|:}"
_SYSTEM = "{Use {these facts|this information|this text|the following text|these notes}{| to answer}|Answer {from|with|using} {this text|these facts|the text|the notes|this information}{| only}|Here is {what you know|the text|some context|all you need to know}|Context|Notes|Facts|Information|Background|{You are a helpful assistant. |}{You know this|The facts are|Remember this|These are my notes}}:"


_ASKING = frozenset(
    "What Who When Where Why How Which Whose Whom Is Are Did Does Do From To By In On At".split()
)
NOTED = ["Good to know.", "I will remember that.", "All right, I will keep that in mind.", "I see.", "Thank you for telling me.", "Good. What would you like to know?"]  # fmt: skip


def passage(rng: Random) -> Sample:
    """A text, then one to four questions about it, each with the answer that stands in the text."""
    texts, pairs = rng.choices((_alike, _mixed, _ranked, _record, event, account), (8, 6.5, 2, 2, 14, 17))[0](
        rng
    )
    text = fix_articles(" ".join(texts)) if "\n" not in texts[0] else texts[0]
    text = text[0].upper() + text[1:]
    rng.shuffle(pairs)
    messages: list[Message] = []
    lead = write(rng, _BEFORE) + rng.choice([" ", " ", "\n"]) if rng.random() < 0.3 else ""
    system = rng.random() < 0.27
    if system:
        extra = rng.choice(["", "", "", " If the text does not say it, say so.", " Answer briefly.", "\nAnswer the user's questions."])  # fmt: skip
        messages.append(
            {"role": "system", "content": write(rng, _SYSTEM) + rng.choice([" ", " ", "\n"]) + text + extra}
        )
    elif rng.random() < 0.08:
        messages.append({"role": "system", "content": rng.choice(["You are a helpful assistant.", "You are Ember.", "Answer the user's questions."])})  # fmt: skip
    held = False
    told = not system and rng.random() < 0.15  # first the text alone, the questions later
    if told:
        messages += [{"role": "user", "content": lead + text}, {"role": "assistant", "content": rng.choice(NOTED)}]  # fmt: skip
    for number, (ask, answer) in enumerate(pairs[: rng.choice((1, 1, 1, 2, 2, 3, 4))]):
        ask, answer = fix_articles(ask), fix_articles(answer)
        ask, answer = ask[0].upper() + ask[1:], answer[0].upper() + answer[1:]
        asked = typed(rng, ask) if rng.random() < 0.35 else ask
        if asked == ask and rng.random() < 0.12 and (bare := bare_value(text, ask, answer)):
            asked, answer = rng.choice((f"{ask} {rng.choice(BRIEFLY)}", f"{rng.choice(BRIEFLY)} {ask}")), bare[0].upper() + bare[1:]  # fmt: skip
        if rng.random() < 0.06 and asked == ask:
            words = asked.split(" ", 1)
            said = asked[0].lower() + asked[1:] if words[0] in _ASKING else asked
            asked = rng.choice(["According to the text, ", "From the text: ", "In the text, ", "Based on this, ", "Tell me, ", "So "]) + said  # fmt: skip
        asked = "And " + asked[0].lower() + asked[1:] if number and rng.random() < 0.1 else asked
        if not number and not system and not told:
            draw = rng.random()
            shown = f'"{text}"' if draw < 0.09 else text
            gap = rng.choice([" ", " ", " ", "\n", "\n\n", " Question: ", "\nQuestion: ", "\nQ: ", " So, ", "\n- ", " Now: "])  # fmt: skip
            between = rng.choice(["\n", "\n", "\n\n", " -- ", " - ", " "])
            asked = f"{asked}{between}{lead}{shown}" if draw > 0.88 else f"{lead}{shown}{gap}{asked}"
        held = held or Turn("reading", ask, answer, f"passage {text} {ask}").held_out
        messages += [{"role": "user", "content": asked}, {"role": "assistant", "content": answer}]
    return Sample("reading", messages=messages, hint={"held_out": str(int(held))})
