# ruff: noqa: E501, SIM905 - lines of text and word lists read better whole
"""JSON extraction: a sentence and the keys to find in it."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from .facts import CAPITALS
from .grammar import write
from .sample import Sample, Turn
from .tasks import DAYS, MONTHS, listing
from .words import NOUNS, PLURALS, SLOTS, first_name, invented_word

_CITIES = [
    *CAPITALS.values(),
    "Hamburg",
    "Lyon",
    "Porto",
    "Boston",
    "Chicago",
    "Sydney",
    "Milan",
    "Osaka",
    "Leeds",
    "Seville",
]
_ANIMALS = "cat dog rabbit parrot hamster pony turtle goldfish".split()
_JOBS = "teacher nurse baker pilot farmer doctor painter chef driver writer lawyer dentist".split()
_SKIES = "sunny rainy cloudy windy foggy snowy stormy".split()
_EVENTS = "meeting lunch concert party lesson dinner interview call workshop game".split()
_MONEY = "euros dollars pounds francs".split()


def _city(rng: Random) -> str:
    return rng.choice(_CITIES) if rng.random() < 0.9 else invented_word(rng).capitalize()


def _title(rng: Random) -> str:
    return write(
        rng, "The {Last|Silent|Golden|Little|Lost|Blue|Old|Hidden} $n", {"n": rng.choice(NOUNS).capitalize()}
    )


def _time(rng: Random) -> str:
    return f"{rng.randint(0, 23):02d}:{rng.choice(('00', '15', '30', '45', '10', '50'))}"


# what the sentence is about -> (sentence templates, its fields in their default order)
def _fields(rng: Random, kind: str) -> dict[str, Any]:
    name, other = first_name(rng), first_name(rng)
    match kind:
        case "person":
            return {"name": name, "age": rng.randint(1, 99), "city": _city(rng), "job": rng.choice(_JOBS)}
        case "order":
            return {
                "item": rng.choice(list(PLURALS.values())),
                "quantity": rng.randint(2, 60),
                "color": rng.choice(SLOTS["color"]),
            }
        case "event":
            return {
                "event": rng.choice(_EVENTS),
                "person": name,
                "day": rng.choice(DAYS),
                "time": _time(rng),
                "city": _city(rng),
            }
        case "weather":
            return {"city": _city(rng), "temperature": rng.randint(-20, 40), "sky": rng.choice(_SKIES)}
        case "pet":
            return {
                "owner": name,
                "animal": rng.choice(_ANIMALS),
                "pet_name": other,
                "color": rng.choice(SLOTS["color"]),
                "age": rng.randint(1, 15),
            }
        case "travel":
            return {"name": name, "from": _city(rng), "to": _city(rng), "day": rng.choice(DAYS)}
        case "book":
            return {
                "title": _title(rng),
                "author": f"{name} {invented_word(rng).capitalize()}",
                "year": rng.randint(1850, 2025),
            }
        case "price":
            return {"item": rng.choice(NOUNS), "price": rng.randint(1, 500), "currency": rng.choice(_MONEY)}
        case "contact":
            host = rng.choice(("mail.com", "post.org", "example.com", "home.net"))
            return {
                "name": name,
                "phone": f"{rng.randint(100, 999)}-{rng.randint(1000, 9999)}",
                "email": f"{name.lower()}@{host}",
            }
        case "score":
            return {
                "winner": invented_word(rng).capitalize() + "s",
                "loser": rng.choice(NOUNS).capitalize() + "s",
                "winner_points": rng.randint(3, 60),
                "loser_points": rng.randint(0, 2),
            }
        case "birthday":
            return {
                "name": name,
                "day": rng.randint(1, 28),
                "month": rng.choice(MONTHS),
                "year": rng.randint(1930, 2020),
            }
        case "guests":
            return {"guests": [first_name(rng) for _ in range(rng.randint(2, 4))], "day": rng.choice(DAYS)}
        case _:
            return {
                "ingredients": rng.sample(
                    "flour sugar eggs butter milk salt honey rice beans cheese onions carrots".split(),
                    rng.randint(2, 4),
                ),
                "dish": rng.choice(SLOTS["food"]),
            }


SENTENCES: dict[str, list[str]] = {
    "person": ["$name is $age years old{ and lives in $city|, lives in $city} and works as a $job.", "My name is $name, I am $age, I live in $city and I am a $job.",
               "$name, a $job from $city, is $age.", "Meet $name: $age years old, a $job, living in $city.", "In $city lives a $age year old $job named $name."],
    "order": ["I would like to order $quantity $color $item.", "Please send me $quantity $item in $color.", "We need $quantity $color $item.", "Can I have $quantity $item? The color should be $color."],
    "event": ["The $event with $person is on $day at $time in $city.", "On $day at $time there is a $event with $person in $city.", "$person has a $event in $city on $day at $time.", "Do not forget the $event in $city: $day, $time, with $person."],
    "weather": ["It is $temperature degrees and $sky in $city.", "In $city it is $sky with $temperature degrees.", "The weather in $city is $sky, $temperature degrees.", "$city: $sky, $temperature degrees."],
    "pet": ["$owner has a $color $animal named $pet_name who is $age years old.", "$pet_name is a $color $animal. It is $age years old and belongs to $owner.", "The $color $animal of $owner is called $pet_name and is $age."],
    "travel": ["$name {flies|travels|drives|goes} from $from to $to on $day.", "On $day, $name {flies|travels|goes} from $from to $to.", "$name wants to go to $to on $day, starting from $from."],
    "book": ["The book \"$title\" was written by $author in $year.", "$author wrote \"$title\" in $year.", "In $year, $author published \"$title\"."],
    "price": ["The $item costs $price $currency.", "You can buy the $item for $price $currency.", "I paid $price $currency for a $item."],
    "contact": ["You can call $name at $phone or write to $email.", "$name's number is $phone and the email is $email.", "Contact: $name, $email, $phone."],
    "score": ["The $winner beat the $loser $winner_points to $loser_points.", "The $loser lost against the $winner with $loser_points to $winner_points."],
    "birthday": ["$name was born on $month $day, $year.", "$name's birthday is $month $day, $year.", "On $day $month $year, $name was born."],
    "guests": ["$guests are coming on $day.", "On $day we expect $guests.", "The guests on $day are $guests."],
    "recipe": ["To make $dish, you need $ingredients.", "For $dish we need $ingredients.", "$dish: take $ingredients."],
}  # fmt: skip

_MISSING = ["email", "phone", "country", "address", "note", "price", "date"]


def extraction(rng: Random) -> Sample:
    """A sentence turned into the JSON object that the instruction asks for; a key that is not there is null."""
    kind = rng.choice(list(SENTENCES))
    fields = _fields(rng, kind)
    text = {k: listing(v) if isinstance(v, list) else str(v) for k, v in fields.items()}
    sentence = write(rng, rng.choice(SENTENCES[kind]), text)
    sentence = sentence[0].upper() + sentence[1:]
    keys = list(fields)
    if rng.random() < 0.75:
        keys = rng.sample(keys, rng.randint(1, len(keys)))
        if rng.random() < 0.12:
            keys.insert(rng.randint(0, len(keys)), rng.choice([k for k in _MISSING if k not in fields]))
        named = listing([f'"{k}"' for k in keys] if rng.random() < 0.3 else keys)
        noun = "key" if len(keys) == 1 else "keys"
        instruction = write(
            rng,
            "{Extract $k as JSON|Extract $k from the text as JSON|Return a JSON object with the $n $k|Give me JSON with $k|"
            "Write a JSON object with the $n $k|Answer in JSON with the $n $k|JSON with $k, please|Find $k and answer in JSON}.",
            {"k": named, "n": noun},
        )
    else:
        listed = ", ".join(keys)
        instruction = write(
            rng,
            f"{{Turn this {kind} into JSON: {listed}|Convert to JSON ({listed})|Make a JSON object with these keys: {listed}}}.",
        )
    answer = json.dumps({key: fields.get(key) for key in keys}, ensure_ascii=False)
    if rng.random() < 0.45:
        messages = [{"role": "system", "content": instruction}, {"role": "user", "content": sentence}]
    else:
        ask = rng.choice(
            [
                f"{instruction} {sentence}",
                f"{instruction}\n{sentence}",
                f"{sentence} {instruction}",
                f"{sentence}\n{instruction}",
            ]
        )
        messages = [{"role": "user", "content": ask}]
    messages.append({"role": "assistant", "content": answer})
    turn = Turn("json", sentence, answer, f"json {sentence} {keys}")
    return Sample("json", messages=messages, hint={"held_out": str(int(turn.held_out))})
