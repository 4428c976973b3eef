# ruff: noqa: E501, SIM905 - lines of text and word lists read better whole
"""JSON from a text: more shapes of texts, of instructions and of answers than ``extraction`` has."""

from __future__ import annotations

import json
import re
from random import Random
from typing import Any

from . import lexicon
from .extraction import SENTENCES, _fields
from .facts import CAPITALS, COLORS, LEGS
from .grammar import write
from .passages import scene
from .sample import Sample, Turn
from .shapes import SHAPES
from .tasks import DAYS, NUMBERS, fix_articles, listing
from .words import NOUNS, PLURALS, SLOTS, first_name, invented_word

_COLORS = [*SLOTS["color"], "black", "pink", "gray"]
_PETS = "cat dog rabbit parrot hamster pony turtle goldfish horse mouse".split()
_HOSTS = ("mail.com", "post.org", "example.com", "example.org", "home.net")


def _time(rng: Random) -> str:
    return f"{rng.randint(0, 23):02d}:{rng.choice(('00', '15', '30', '45'))}"


def _more(rng: Random, kind: str) -> tuple[dict[str, Any], list[str]]:
    """Fields and the sentences that hold them."""
    name = first_name(rng)
    match kind:
        case "cat":
            return {"name": name, "color": rng.choice(_COLORS), "animal": rng.choice(_PETS)}, [
                "My $animal $name is $color.",
                "$name is a $color $animal.",
                "I have a $color $animal called $name.",
                "Our $animal is $color and is called $name.",
                "The $color $animal is named $name.",
            ]
        case "simple person":
            return {"name": name, "age": rng.randint(1, 99)}, [
                "$name is $age years old.",
                "$name is $age.",
                "$name, $age.",
                "I am $name and I am $age years old.",
                "My name is $name, age $age.",
                "This is $name, $age years old.",
            ]
        case "job":
            return {
                "name": name,
                "job": rng.choice(
                    [*SLOTS["job"], "doctor", "nurse", "pilot", "cook", "driver", "singer", "lawyer", "chef"]
                ),
            }, [
                "$name works as a $job.",
                "$name is a $job.",
                "$name, a $job.",
                "The $job is called $name.",
                "Meet our $job $name.",
            ]
        case "place":
            country, city = rng.choice(list(CAPITALS.items()))
            return {"city": city, "country": country}, [
                "We {flew|went|drove|travelled} to $city in $country.",
                "$city is a city in $country.",
                "I live in $city, $country.",
                "She was born in $city in $country.",
                "$city, $country.",
                "Our hotel is in $city, $country.",
            ]
        case "product":
            return {"product": rng.choice(NOUNS), "price": rng.randint(1, 900)}, [
                "The $product {costs|is|is on sale for} $price {dollars|euros}.",
                "$product: $price {dollars|euros}.",
                "You can buy the $product for $price {dollars|euros}.",
                "A $product for only $price {euros|dollars}!",
                "I sold my $product for $price {euros|dollars}.",
            ]
        case "mail":
            return {"name": name, "email": f"{name.lower()}@{rng.choice(_HOSTS)}"}, [
                "Write to $name at $email{ if you have questions|}.",
                "$name's email is $email.",
                "You can reach $name at $email.",
                "Contact $name ($email).",
                "Send it to $name, $email.",
                "$name <$email>",
            ]
        case "when":
            return {"day": rng.choice(DAYS), "time": _time(rng)}, [
                "The {concert|meeting|film|party|lesson|match} {starts|begins|is} on $day at $time.",
                "Come on $day at $time.",
                "See you $day, $time.",
                "It is at $time on $day.",
                "Our table is booked for $day at $time.",
            ]
        case "legs":
            animal, legs = rng.choice([p for p in LEGS.items() if p[1] in NUMBERS])
            count = NUMBERS.index(legs)
            return {"animal": animal, "legs": count}, [
                "A $animal has $legs legs.",
                "The $animal has $legs legs.",
                "$legs legs: that is a $animal.",
            ]
        case "thing":
            thing = rng.choice([t for t in COLORS if t.startswith(("a ", "an "))]).split(" ", 1)[1]
            return {"thing": thing, "color": rng.choice(_COLORS)}, [
                "The $thing is $color.",
                "I saw a $color $thing.",
                "A $color $thing.",
                "My $thing is $color.",
            ]
        case "full name":
            last = rng.choice(
                [
                    invented_word(rng).capitalize(),
                    "Miller",
                    "Smith",
                    "Brown",
                    "Garcia",
                    "Rossi",
                    "Weber",
                    "Jones",
                    "Silva",
                    "Novak",
                ]
            )
            return {"first_name": name, "last_name": last}, [
                "$first_name $last_name",
                "My name is $first_name $last_name.",
                "The author is $first_name $last_name.",
                "Mr. $first_name $last_name",
                "I am $first_name $last_name.",
            ]
        case "ticket":
            return {"from": rng.choice(list(CAPITALS.values())), "to": rng.choice(list(CAPITALS.values()))}, [
                "A ticket from $from to $to.",
                "I travel from $from to $to.",
                "From $from to $to, please.",
            ]
        case "film":
            title = rng.choice(["Dune", "The $w", "Red $w", "$w", "Night of the $w", "My $w", "The Last $w"])
            return {
                "title": write(rng, title, {"w": rng.choice(NOUNS).capitalize()}),
                "year": rng.randint(1900, 2025),
            }, [
                "$title came out in $year.",
                "The film $title is from $year.",
                "$title ($year)",
                "In $year they made $title.",
            ]
        case _:
            return {"item": rng.choice(list(PLURALS.values())), "quantity": rng.randint(2, 90)}, [
                "I need $quantity $item.",
                "$quantity $item, please.",
                "Send me $quantity $item.",
                "We ordered $quantity $item.",
                "There are $quantity $item in the box.",
            ]


_KINDS = "cat,simple person,job,place,product,mail,when,legs,thing,full name,ticket,film,items".split(",")
_OTHER_NAMES = {
    "name": ["name", "name", "name", "person", "who", "first_name"], "color": ["color", "color", "colour"], "job": ["job", "job", "profession", "work"], "city": ["city", "city", "town", "place"], "product": ["product", "item", "thing", "article"], "price": ["price", "price", "cost", "amount"],
    "email": ["email", "email", "mail", "address"], "age": ["age", "age", "years"], "item": ["item", "item", "product", "what"], "quantity": ["quantity", "quantity", "count", "number", "amount"], "animal": ["animal", "animal", "pet", "kind"], "thing": ["thing", "object", "item"], "day": ["day", "day", "weekday"], "title": ["title", "title", "film", "name"],
}  # fmt: skip


def _pairs(rng: Random) -> Sample:
    """``key: value`` pairs, as they are typed, to an object."""
    fields: dict[str, Any] = {}
    for _ in range(rng.choice((1, 2, 3))):
        more, _ = _more(rng, rng.choice(_KINDS))
        fields |= more
    keys = rng.sample(list(fields), min(len(fields), rng.randint(2, 4)))
    if rng.random() < 0.15:
        keys[0:0] = [invented_word(rng)]
        fields[keys[0]] = rng.choice([rng.randint(0, 99), rng.choice(NOUNS)])
    fields = _any_pairs(rng) if rng.random() < 0.5 else {k: fields[k] for k in keys}
    colon, comma = rng.choice(
        [(": ", ", "), (": ", "; "), (" = ", ", "), (": ", "\n"), ("=", ", "), (" is ", ", ")]
    )
    text = comma.join(f"{k}{colon}{v}" for k, v in fields.items())
    ask = write(
        rng,
        "{{Convert|Turn|Change|Make|Transform} {this|it|these|the following} {into|to} {JSON|json|a JSON object|valid JSON}: |{As JSON please|JSON please|as json, please|in JSON|json of this|JSON from this|as a JSON object|Please make JSON|Make JSON of|to json|Put this into JSON|Now as JSON|I need JSON for}:|{Parse as|To|As|Write as|Format as|Output as} {json|JSON}{:| ->|:} |{Give me|Write|Return|Print} {this|these fields|the following} as {JSON|a JSON object|json}: |{JSON|json}{, please|}: }",
    )
    messages = (
        [{"role": "user", "content": f"{ask} {text}".replace("  ", " ")}]
        if rng.random() < 0.8
        else [
            {
                "role": "system",
                "content": write(
                    rng,
                    "{Convert the user's text to JSON|Turn what the user says into JSON|You output JSON only|Answer in JSON}.",
                ),
            },
            {"role": "user", "content": text},
        ]
    )
    return _sample(messages, json.dumps(fields, ensure_ascii=False), text)


# what a slot of ``shapes`` is called as a key
_KEYS = {
    "n": "name person who first_name", "m": "other friend second_name partner", "o": "thing object item product", "c": "color colour", "p": "city town place location", "r": "to destination other_city", "s": "place location where", "j": "job profession work role", "k": "animal pet kind", "f": "food dish meal", "h": "drink beverage",
    "D": "day weekday date", "t": "time at hour", "i": "number value amount", "y": "year", "L": "language", "x": "material", "z": "currency unit", "B": "event occasion", "P": "things items objects", "W": "weather sky", "b": "instrument", "Z": "hobby activity", "w": "code word", "M": "month",
}  # fmt: skip


def _from_shape(rng: Random) -> tuple[dict[str, Any], list[str]]:
    """A statement of the reading texts, and what its slots hold."""
    while True:
        statement = rng.choice(rng.choice(SHAPES)[0])
        slots = [
            slot for slot in dict.fromkeys(re.findall(r"\$\^?([A-Za-z]\d?)\b", statement)) if slot in _KEYS
        ]
        if slots:
            break
    env = scene(rng)
    text = write(rng, statement, env)
    fields: dict[str, Any] = {}
    for slot in slots:
        key = rng.choice([k for k in _KEYS[slot].split() if k not in fields])
        if env[slot] in text:
            fields[key] = int(env[slot]) if slot in "iy" else env[slot]
    return (fields, [text]) if fields else _from_shape(rng)


def _any_pairs(rng: Random) -> dict[str, Any]:
    """Keys and values of any sort."""
    values = [lexicon.any_word(rng), rng.randint(0, 999), lexicon.anyone(rng), lexicon.anywhere(rng), rng.choice(lexicon.COLORS), rng.randint(1, 20), rng.choice(lexicon.THINGS)]  # fmt: skip
    keys = [rng.choice([*lexicon.IDEAS, *lexicon.THINGS, "size", "color", "colour", "name", "age", "price", "id", "brand", "model", "title"]) for _ in range(rng.randint(2, 5))]  # fmt: skip
    return {key: rng.choice(values) for key in keys}


def _arrays(rng: Random) -> Sample:
    """Words or numbers to an array."""
    numbers = rng.random() < 0.4
    items: list[Any] = (
        [rng.randint(0, 99) for _ in range(rng.randint(2, 6))]
        if numbers
        else rng.sample([*NOUNS, *_COLORS, *PLURALS.values(), *lexicon.NOUN_LIKE], rng.randint(2, 6))
    )
    if not numbers and rng.random() < 0.2:
        items = [first_name(rng) for _ in items]
    shown = [str(i) for i in items]
    text = rng.choice([", ".join(shown), listing(shown), listing(shown), " ".join(shown)])
    noun = "numbers" if numbers else "words"
    ask = write(
        rng,
        f"{{Make a JSON {{array|list}} {{of|from|with}} {{these {noun}|the {noun}|these}}: \x01|{{Write|Return|Give me|Show|Put|Print}} {{the {noun} |these {noun}: |}}\x01 {{as|in}} a JSON {{array|list}}.|{{Turn|Convert|Change}} {{these {noun}|this|this list}} {{into|to}} a JSON {{array|list}}: \x01|JSON {{array|list}}{{, please|}}: \x01|\x01\nMake this a JSON {{array|list}}.|Return the {noun} \x01 as a JSON {{list|array}}.}}",
    )
    return _sample(
        [{"role": "user", "content": ask.replace("\x01", text)}], json.dumps(items, ensure_ascii=False), text
    )


def _sample(messages: list[dict[str, Any]], answer: str, text: str) -> Sample:
    turn = Turn("json", text, answer, f"json {' '.join(m['content'] for m in messages)}")
    return Sample(
        "json",
        messages=[*messages, {"role": "assistant", "content": answer}],
        hint={"held_out": str(int(turn.held_out))},
    )


def structured(rng: Random) -> Sample:
    """A text and an instruction that asks for JSON: an object with given keys, an array, or all pairs."""
    draw = rng.random()
    if draw < 0.17:
        return _pairs(rng)
    if draw < 0.30:
        return _arrays(rng)
    if draw < 0.62:
        fields, sentences = _from_shape(rng)
    elif draw < 0.88:
        fields, sentences = _more(rng, rng.choice(_KINDS))
    else:
        kind = rng.choice(list(SENTENCES))
        fields, sentences = _fields(rng, kind), SENTENCES[kind]
    text = {k: listing(v) if isinstance(v, list) else str(v) for k, v in fields.items()}
    sentence = fix_articles(write(rng, rng.choice(sentences), text))
    sentence = sentence[0].upper() + sentence[1:] if "@" not in sentence.split()[0] else sentence
    keys = list(fields)
    if rng.random() < 0.4:
        keys = rng.sample(keys, rng.randint(1, len(keys)))
    named = {
        k: (rng.choice(_OTHER_NAMES[k]) if k in _OTHER_NAMES and rng.random() < 0.35 else k) for k in keys
    }
    if len(set(named.values())) < len(named):
        named = {k: k for k in keys}
    shown = list(named.values())
    loose = [n.replace("_", " ") for n in shown]
    listed = rng.choice(
        [
            listing(shown),
            listing([f'"{n}"' for n in shown]),
            listing(shown),
            listing([f"the {n}" for n in loose]) if len(shown) > 1 and shown == loose else listing(shown),
            ", ".join(shown),
            listing(loose),
            "the " + listing(loose),
        ]
    )
    noun = "key" if len(keys) == 1 else "keys"
    field = "field" if len(keys) == 1 else "fields"
    pattern = "\x02" + ", ".join(f'"{n}": ...' for n in shown) + "\x03"
    user = [
        f"{{Give me|Write|Return|Make|I want|Create}} {{JSON|a JSON object|json}} with {listed}: \x01", f"{{Extract|Find|Get|Take}} {listed} as {{JSON|json}}: \x01", f"{{Extract|Get|Find}} {{the {field} |}}{listed} from {{this|the text|the sentence}} as JSON: \x01", f"\x01 {{Extract|Give me|Return}} {listed} as JSON.", f"{{Write|Fill in|Complete|Return|Give me}} {pattern} for: \x01", f"{{JSON|json}}{{ please|, please|}}{{,| with}} {{the |}}{noun} {listed}: \x01", f"From this text get {listed} as JSON: \x01", f"{{Put|Write|Turn}} {listed} into JSON: \x01",
        f"{{Turn|Convert}} this {{sentence|text}} into JSON with the {noun} {listed}: \x01", f"\x01\nAnswer {{as|in}} JSON with the {noun} {listed}.", f"\x01\n{{As JSON|JSON}}: {pattern}", f"Use the {noun} {listed} and answer in JSON: \x01", f"{{What is|What are}} {listed} here? {{Answer in|As}} JSON. \x01", f"Read this and answer with {pattern}: \x01",
    ]  # fmt: skip
    system = [
        f"Extract {listed} as JSON{{| from the text| from what the user says}}.", f"Extract the {field} {listed} {{from the text |}}as JSON.", f"You output JSON only. {{Use the {noun}|The {noun}:|Keys:}} {listed}.", f"{{Answer|Reply}} {{only |}}{{with|in}} {{JSON|a JSON object}} with the {noun} {listed}.", f"{{Answer|Reply}} {{as|in the form}} {pattern}", f"You turn sentences into JSON with {listed}.", f"Read the text and return JSON: {pattern}", f"Find {listed} and {{answer in|return}} JSON.",
    ]  # fmt: skip
    answer = json.dumps({named[k]: fields[k] for k in keys}, ensure_ascii=False)
    if rng.random() < 0.4:
        prompt = write(rng, rng.choice(system)).replace("\x02", "{").replace("\x03", "}")
        return _sample(
            [{"role": "system", "content": prompt}, {"role": "user", "content": sentence}], answer, sentence
        )
    ask = write(rng, rng.choice(user)).replace("\x02", "{").replace("\x03", "}").replace("\x01", sentence)
    return _sample([{"role": "user", "content": ask}], answer, sentence)
