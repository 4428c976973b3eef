# ruff: noqa: E501 - lines of text and word lists read better whole
"""Things of a kind, or the user's own, as a list: bullets, numbers, lines, commas, JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from random import Random

from . import lexicon
from .extras import LISTS
from .forms import LEADS
from .grammar import write
from .sample import Sample, Turn, say
from .tasks import in_words
from .typed import typed
from .words import NOUNS, PLURALS, SLOTS, invented_word

_STYLES: dict[str, tuple[list[str], list[str], Callable[[list[str]], str]]] = {
    "bullets": (["{as|in} {a bullet list|a bulleted list|bullet points|bullets|a list with bullets}", "with bullet points", "using bullet points"], ["{Bullets, please|Use bullet points|Bullet points, please|As a bullet list|Bulleted list|Bullets please}", "{Answer|Reply|Format your answer|Always answer} {with|in|as} {bullet points|a bullet list|bullets}"], lambda items: "\n".join(f"- {i}" for i in items)),
    "numbered": (["{as|in} a numbered list", "with numbers", "numbered", "in a list with numbers"], ["{Number them|As a numbered list|Numbered list, please|Use a numbered list|Number the items}", "{Answer|Reply|Format your answer|Always answer} {with|in|as} {a numbered list}"], lambda items: "\n".join(f"{n}. {i}" for n, i in enumerate(items, 1))),
    "lines": (["one {on each|per} line", "each on its own line", "on separate lines", "line by line", "one below the other", "{each|every one} on a new line"], ["{One on each line|One per line|Each on its own line|Separate lines, please|A new line for each}", "{Write|Put} {one item|each item} {on each line|per line}"], lambda items: "\n".join(items)),
    "commas": (["separated by commas", "comma separated", "{with|using} commas between them", "in one line with commas"], ["{Separated by commas|Comma separated|With commas|Commas only|Comma separated, nothing else}", "Separate items with commas"], lambda items: ", ".join(items)),
    "json": (["as a JSON {list|array}", "as JSON", "in a JSON {list|array}"], ["{As a JSON array|JSON array, please|As a JSON list|As JSON}", "{Answer|Reply} {with|as} a JSON {array|list}"], lambda items: json.dumps([int(i) if i.isdigit() else i for i in items], ensure_ascii=False)),
}  # fmt: skip
_ITEM_TEXTS = [
    *lexicon.NOUN_LIKE,
    *NOUNS,
    *PLURALS.values(),
    *SLOTS["fruit"],
    "milk",
    "bread",
    "eggs",
    "tea",
    "coffee",
    "juice",
    "water",
    "rice",
    "soap",
    "red",
    "blue",
    "green",
    "sun",
    "moon",
    "star",
    "one",
    "two",
    "three",
]


_STEPS = [
    "$v the $o",
    "$v the $o",
    "{wake up|get up|get dressed|eat|run|sleep|wash|read|cook|walk|rest|go home|go out|sit down|stand up|work|relax|play|brush teeth|make tea}",
    "eat $f",
    "cut the $f",
    "go to the $p",
    "call $n",
    "$a $o",
    "$o",
]


def _own_items(rng: Random) -> list[str]:
    count, draw = rng.randint(2, 6), rng.random()
    if draw < 0.2:  # steps, which are of several words
        return [write(rng, rng.choice(_STEPS), {"o": rng.choice(lexicon.THINGS), "v": rng.choice(list(lexicon.ACTS)), "f": rng.choice(lexicon.FOODS), "p": rng.choice(lexicon.PLACES), "n": lexicon.anyone(rng), "a": rng.choice(lexicon.QUALITIES)}) for _ in range(count)]  # fmt: skip
    if draw < 0.75:
        return rng.sample(sorted(set(_ITEM_TEXTS)), count)
    if draw < 0.85:
        return [lexicon.anyone(rng) for _ in range(count)]
    if draw < 0.93:
        return [str(rng.randint(0, 99)) for _ in range(count)]
    return [invented_word(rng) for _ in range(count)]


def list_chat(rng: Random) -> Sample:
    """Things of a kind, or the user's own items, as a list of some style."""
    style = rng.choices(list(_STYLES), (5, 4, 3, 2, 2.5))[0]
    inline, beside, show = _STYLES[style]
    how = write(rng, rng.choice(inline))
    also = write(rng, rng.choice(beside)) + "."
    also = also.rstrip(".") if rng.random() < 0.2 else also
    system = ""
    if rng.random() < 0.42:  # the user's own
        items = _own_items(rng)
        text = rng.choice(
            [", ".join(items), ", ".join(items[:-1]) + " and " + items[-1], ", ".join(items) + "."]
        )
        noun = {
            "bullets": "a bullet list",
            "numbered": "a numbered list",
            "lines": "separate lines",
            "commas": "a comma separated list",
            "json": "a JSON array",
        }[style]
        asks = [
            f"{{Make|Write|Create|Give me}} {noun}{{| of| from| with}}: {text}",
            f"{{Turn|Convert|Change|Make}} {{this|these|these words|the following}} {{into|to}} {noun}: {text}",
            f"{{Write|Put|Show|Print|Format|List}} {{these|this|these things|these words|these items|the following}} {how}: {text}",
            f"{text}\n{{Make|Please make}} this {noun}.",
            f"{{Put|Write|Return|Show}} {text.rstrip('.')} {how}.",
            f"{noun}: {text}",
            f"{noun.removeprefix('a ')}{{ please|, please|}}: {text}",
            f"{{I want|I need|I'd like|Can I have|Could you give me|Please give me|Let me see}} {text.rstrip('.')} {how}{{.|, please.}}",
            f"{{I have|My list is|Here is my list:|Items:|These are my things:}} {text.rstrip('.')}. {{Write it|Show it|Put it|Give it back|I want it}} {how}.",
            f"Make {{this |}}a list: {text} {also}",
        ]
        if style in ("numbered", "bullets"):
            word = {"numbered": "numbers", "bullets": "bullets"}[style]
            asks.append(f"{{With|Using|with}} {word}{{ please|}}: {text}")
            asks.append(f"{text.rstrip('.')} {{with|as}} {word}{{.|, please|}}")
        if style == "bullets":
            asks.append(f"{{Bullet|bullet|Put bullets before|Make bullets of|Add bullets to}} {{these|this list|the following|these items}}: {text}")  # fmt: skip
        if style == "numbered":
            asks.append(
                f"{{Number|Please number|number|Can you number|Put numbers before|Add numbers to|Number me}} {{these|these items|these words|this list|the following|these steps|them|my list}}: {text}"
            )
        ask = write(rng, rng.choice(asks))
    else:
        kind = rng.choice(list(LISTS))
        full = LISTS[kind]
        if kind in ("days", "months", "seasons", "planets", "continents") and rng.random() < 0.6:
            items = full
            of = {
                "days": "of the week",
                "months": "of the year",
                "seasons": "of the year",
                "planets": "of the solar system",
                "continents": "of the world",
            }[kind]
            ask = f"{{What are|List|Name|Write down|Give me|Write a list with|Tell me|I need}} {{the|all the|all}} {kind}{{| {of}}}"
        elif rng.random() < 0.2:
            count = 3
            items = full[:count]
            ask = f"{{Name|List|Give me|Tell me}} {{some|a few}} {kind}"
        else:
            count = rng.randint(2, min(7, len(full)))
            items = full[:count]
            number = rng.choice([in_words(count), in_words(count), str(count)])
            ask = f"{{Name|List|Tell me|Give me|Write down|I need|Can you list|Show me|I want|What are|Write}} {number} {kind}"
            if rng.random() < 0.15:
                ask = f"{number.capitalize()} {kind}"
            elif rng.random() < 0.15:
                ask = f"{{Give me|Write|Make|I need|Create}} {{a list of {number} {kind}|a list with {number} {kind}}}"
        ask = write(rng, ask)
        draw = rng.random()
        if rng.random() < 0.12 and style != "json":
            items = [i[0].upper() + i[1:] for i in items]
            also, draw = also, draw
        if draw < 0.35:
            noun = {"bullets": "bulleted list", "numbered": "numbered list"}.get(style)
            if noun and " list " not in ask and rng.random() < 0.4:
                ask = (
                    write(rng, f"{{Give me|Write|Make|Create}} a {noun} {{of|with}} ")
                    + " "
                    + re.sub(
                        r"^(What are|List|Name|Write down|Give me|Write a list with|Tell me|I need|Can you list|Show me|I want|Write) ",
                        "",
                        ask,
                    )
                    + "."
                )
            else:
                ask = f"{ask}{rng.choice([' ', ', ', ' '])}{how}."
        elif draw < 0.65:
            ask = f"{ask}. {also}"
        else:
            system = rng.choice(LEADS) + also
            ask = ask + "."
        ask = ask.replace("..", ".")
        if ask.startswith(("What", "Can")) and ask.count(".") == 1:
            ask = ask.rstrip(".") + "?"
        if not any(i[0].isupper() for i in items):
            ask = typed(rng, ask)
    if not system and rng.random() < 0.08:
        system = (
            rng.choice(["Answer as a list.", "Format your answer as a list.", "Use lists."])
            if style == "bullets"
            else ""
        )
    items = [i[0].upper() + i[1:] if i[:1].isupper() else i for i in items]
    messages = [say("system", system)] if system else []
    messages += [say("user", ask), say("assistant", show(items))]
    turn = Turn("lists", ask, "", f"list form {style} {ask.lower()}")
    return Sample("lists", messages=messages, hint={"held_out": str(int(turn.held_out))})


def plain_list_system(rng: Random) -> Sample:
    """ "Answer as a list", with no style named: bullets."""
    kind = rng.choice(list(LISTS))
    count = rng.randint(2, min(5, len(LISTS[kind])))
    items = LISTS[kind][:count]
    ask = write(rng, f"{{Name|Tell me|Give me|What are}} {rng.choice([in_words(count), str(count)])} {kind}")
    if kind in ("days", "seasons", "months", "planets", "continents") and rng.random() < 0.7:
        items, ask = (
            LISTS[kind],
            write(
                rng,
                f"{{What are|Name|Tell me}} the {{|{len(LISTS[kind])} |{in_words(len(LISTS[kind]))} }}{kind}",
            ),
        )
    ask += "?" if ask.startswith("What") else "."
    system = write(rng, "{Answer|Reply|Respond|Always answer} {as|with|in|in the form of} a list{|, please}.")
    if rng.random() < 0.5:
        messages = [say("system", rng.choice(LEADS) + system), say("user", typed(rng, ask))]
    else:
        messages = [say("user", f"{ask} {write(rng, '{Reply|Answer|Write} {with|as|in} a list.')}")]
    return Sample(
        "lists",
        messages=[*messages, say("assistant", "\n".join(f"- {i}" for i in items))],
        hint={"held_out": "0"},
    )
