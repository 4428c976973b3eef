# ruff: noqa: E501, SIM905 - lines of text and word lists read better whole
"""JSON asked for in many ways: keys before or behind a text, values said one by one, all names of a sentence, letters, several objects."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from . import lexicon
from .errands import any_title
from .grammar import write
from .sample import Message, Sample, Turn, say
from .settings import place
from .structured import _KINDS, _any_pairs, _from_shape, _more
from .tasks import DAYS, MONTHS, fix_articles, in_words, listing, plural_of
from .typed import around

# a key and other names for it
_ALSO = {
    "name": "name person who full_name", "color": "color colour shade", "job": "job profession work role occupation position", "city": "city town place location where", "product": "product item thing article object goods", "price": "price cost amount euros value", "email": "email mail address contact", "age": "age years", "item": "item product thing what article", "quantity": "quantity count number amount how_many", "animal": "animal pet kind species", "thing": "thing object item", "day": "day weekday date when", "title": "title film name movie",
    "time": "time at hour when", "country": "country land nation state", "from": "from start origin departure", "to": "to destination goal target", "food": "food dish meal", "drink": "drink beverage", "year": "year", "sender": "sender from author", "recipient": "recipient to receiver", "place": "place location where", "language": "language", "hobby": "hobby activity", "subject": "subject topic about", "guests": "guests people persons number_of_guests", "room": "room room_number", "weight": "weight kilos kg", "size": "size", "month": "month", "brand": "brand maker", "phone": "phone number phone_number", "team": "team winner club", "score": "score result",
}  # fmt: skip


def _story(rng: Random) -> tuple[dict[str, Any], str]:
    """Fields, and a text of one or two sentences that holds them among other words."""
    name, other = lexicon.anyone(rng), lexicon.anyone(rng)
    city, thing, color = lexicon.anywhere(rng), rng.choice(lexicon.THINGS), rng.choice(lexicon.COLORS)
    day, month, job = rng.choice(DAYS), rng.choice(MONTHS), rng.choice(lexicon.PEOPLE)
    n, m = rng.randint(2, 99), rng.randint(2, 900)
    hour = f"{rng.randint(0, 23):02d}:{rng.choice(('00', '15', '30', '45'))}"
    food, drink, animal = rng.choice(lexicon.FOODS), rng.choice(lexicon.DRINKS), rng.choice(lexicon.CREATURES)
    place, language, title = rng.choice(lexicon.PLACES), rng.choice(lexicon.LANGUAGES), any_title(rng)
    money = rng.choice("euros dollars pounds".split())
    rel = rng.choice("neighbor sister brother uncle aunt teacher boss friend cousin colleague doctor".split())
    email = f"{rng.choice(lexicon.FIRST_NAMES).lower()}@{rng.choice(('mail.com', 'example.com', 'post.org'))}"
    goods = plural_of(thing)
    few = rng.choice([in_words(rng.randint(2, 12)), str(n)])
    rows: list[tuple[dict[str, Any], str]] = [
        ({"name": name, "job": job}, f"{{My {rel} {name} is a {job}.|{name} works as a {job} in the {place}.|Our {job}, {name}, is on holiday.|Have you met {name}? {name} is a {job}.|The new {job} is called {name}.|{name} has been a {job} for years.}}"),
        ({"name": name, "city": city}, f"{{{name} lives in {city}.|My {rel} {name} moved to {city} last year.|{name} works in {city}.|{name} comes from {city} and likes it there.|Greetings from {city}! Your {name}|{name} opened a shop in {city}.}}"),
        ({"name": name, "age": n}, f"{{{name} is {n} years old.|{name} turned {n} yesterday.|My {rel} {name} will be {n} in {month}.|{name} ({n}) plays chess.|At {n}, {name} still works every day.|{name}, {n}, won the race.}}"),
        ({"name": name, "color": color, "animal": animal}, f"{{The {animal} {name} is {color}.|{name} is a {color} {animal}.|Our {animal} is called {name} and is {color}.|The {color} {animal} over there is {name}.}}"),
        ({"item": thing, "price": m}, f"{{The {thing} costs {m} {money}.|The {thing} is {m} {money}.|I paid {m} {money} for the {thing}.|For sale: {thing}, {m} {money}.|A {thing}? That will be {m} {money}.|{m} {money} for a {thing} is too much.|Our {thing} is only {m} {money} this week!}}"),
        ({"product": goods, "quantity": n}, f"{{{n} {goods}|We need {n} {goods}.|Please send us {n} {goods}.|There are {n} {goods} in the {place}.|I'd like to order {n} {goods}, please.|{n} {goods} were sold {{today|on {day}}}.}}"),
        ({"sender": name, "day": day}, f"{{See you on {day}! Yours, {name}|I will come on {day}. {name}|Can we meet on {day}? Best wishes, {name}|The party is on {day}, bring a cake. Love, {name}|On {day} I am free. Greetings from {name}|Hello, {day} is fine for me. Bye, {name}}}"),
        ({"sender": name, "recipient": other}, f"{{Dear {other}, thank you for the {thing}. Yours, {name}|Hi {other}, I am at the {place}. {name}|Hello {other}! The {food} was very good. Love, {name}|From: {name}, to: {other}. The {thing} is ready.|{other}, please call me. {name}}}"),
        ({"from": city, "to": (to := lexicon.anywhere(rng))}, f"{{The train goes from {city} to {to}.|{name} flew from {city} to {to}.|I need a ticket from {city} to {to}.|We drove from {city} to {to} on {day}.|On the way from {city} to {to} it rained.}}"),
        ({"day": day, "time": hour}, f"{{We meet on {day} at {hour}.|The lesson is on {day} at {hour}.|{day}, {hour}, as always.|Your appointment: {day} at {hour}.|Come at {hour} on {day}, please.|At {hour} on {day} the doors open.}}"),
        ({"name": name, "food": food}, f"{{{name} likes {food}.|{name} ordered {food}.|For {name} the {food}, please.|{name} is bringing {food}.|{name} had {food} for lunch.}}"),
        ({"name": name, "drink": drink, "food": food}, f"{{{name} had {food} and {drink}.|{name} ate {food} and drank {drink}.|{name} wants {food} with {drink}.}}"),
        ({"name": name, "language": language}, f"{{{name} speaks {language}.|{name} is learning {language} at school.|{name} teaches {language} in {city}.|In {name}'s family they speak {language}.}}"),
        ({"title": title, "name": name}, f'{{"{title}" was written by {name}.|{title} is a book by {name}.|{name} wrote {title}.|The film {title} was made by {name}.}}'),
        ({"title": title, "year": (year := rng.randint(1900, 2026))}, f"{{{title} came out in {year}.|{title} ({year})|The song {title} is from {year}.|In {year} everyone was reading {title}.}}"),
        ({"room": m, "guests": n}, f"{{Room {m} is for {n} people.|There are {n} guests in room {m}.|{n} people sleep in room {m}.}}"),
        ({"name": name, "email": email}, f"{{You can reach {name} at {email}.|{name}'s address is {email}.|Write to {name}, {email}.|Contact: {name}, {email}}}"),
        ({"name": name, "month": month}, f"{{{name} was born in {month}.|{name} gets married in {month}.|{name}'s birthday is in {month}.|In {month}, {name} starts the new job.}}"),
        ({"animal": animal, "place": place}, f"{{There is a {animal} in the {place}.|I saw a {animal} at the {place}.|A {animal} lives behind the {place}.|The {animal} sleeps in the {place}.}}"),
        ({"name": name, "thing": thing, "place": place}, f"{{{name} left the {thing} in the {place}.|{name} found a {thing} at the {place}.|{name} lost the {thing} near the {place}.|{name} is looking for a {thing} in the {place}.}}"),
        ({"product": thing, "color": color, "price": m}, f"{{A {color} {thing} for {m} {money}.|The {color} {thing} costs {m} {money}.|I bought a {color} {thing}. It was {m} {money}.|{thing.capitalize()}, {color}, {m} {money}.}}"),
        ({"name": name, "job": job, "city": city}, f"{{{name} is a {job} in {city}.|{name} works as a {job} and lives in {city}.|In {city} there is a {job} called {name}.|{name}, a {job} from {city}, was there too.|I am {name}, I live in {city} and I am a {job}.}}"),
        ({"name": name, "age": n, "city": city}, f"{{{name} is {n} and lives in {city}.|{name} ({n}) from {city} won.|My {rel} {name}, {n} years old, lives in {city}.|I'm {name}, {n}, from {city}.}}"),
        ({"name": name, "weight": n}, f"{{{name} weighs {n} kilos.|The baby {name} already weighs {n} kilos.}}"),
    ]  # fmt: skip
    fields, text = rng.choice(rows)
    text = fix_articles(write(rng, text))
    if few == str(n) and rng.random() < 0.2:
        text += " " + rng.choice(["It was a nice day.", "I like that.", "Nobody knew why.", "That is all.", "We were all there."])  # fmt: skip
    return fields, text


def _pattern(keys: list[str]) -> str:
    return "\x02" + ", ".join(f'"{k}": ...' for k in keys) + "\x03"


_ONLY = ["", "", "", "", "", " Only JSON.", " No other text.", " JSON only.", " Nothing else.", " Valid JSON, please.", " Just the JSON.", " Thanks!", " No explanation."]  # fmt: skip
_KEYS_SAID = "{keys: \x05|with the $k \x04|$k: \x05|with $k \x04|using the $k \x04|with the fields \x04|fields: \x05|the $k should be \x04|use the $k \x04|that has the $k \x04|whose $k are \x04|it needs the $k \x04|The $k are \x04|($k: \x05)|Keys \x04}"
_ASK = [
    "{Extract|Get|Take|Find|Read out|Pull out|Collect|Note|I need|I want|Give me} \x04 {as|in} {JSON|a JSON object|json}: \x01", "{Extract|Get|Give me|Take} \x04 from {this|the|my} {text|sentence|message|note|line} {as|in} {JSON|a JSON object}: \x01", "{From|In} {the text|the message|the sentence|the note|the line} below, {get|find|take} \x04 {as|in} {a JSON object|JSON} \x06:\x01", "{Return|Give me|Write|Make|Output|Build|Create|Produce|Send back} {a JSON object|JSON|one JSON object} \x06 for {this text|this|the following|this sentence|the text}: \x01", "{Turn|Convert|Change|Transform|Translate} {this|the text|this sentence|the following} {into|to} {JSON|a JSON object|json} \x06: \x01", "{JSON|json|a JSON object}{, please| please|}, \x06: \x01",
    "\x01\n{Give me|Return|Make|I need|Write} {that|this|it} as JSON \x06.", "\x01 {JSON|A JSON object|JSON, please|I want JSON|Make it JSON|Return JSON}, \x06.", '{Text|Sentence|Message|Note}: "\x01" {Write|Fill in|Complete|Return|Give me} \x07 {with the values filled in|with the right values|for it|}.', "\x07 {for|from} {this|the text|this sentence}: \x01", "{Fill in|Complete|Fill} \x07: \x01", "{Read|Look at} {this|the text}: \x01 {Now give me|Then write|Return} JSON \x06.", "{Parse|Analyze|Read} {this|the following|the text} \x06 {and answer in JSON|into JSON|as JSON}: \x01", "\x01\nJSON, \x06", "\x01\n\n{As JSON|JSON|In JSON}, {please|only}: \x04", "{What are|Tell me} \x04 in {this|the text}? {Answer|Reply} {in|with|as} JSON. \x01", "{Put|Write} \x04 {of|from} {this|the} {sentence|text} into a JSON object: \x01",
]  # fmt: skip
_SYSTEM = [
    "{Output|Write|Return|Answer with|Reply with} {valid |}JSON only{|, without any other text|, no other text|, no explanations}.", "You {output|write|return|speak} only {valid |}JSON.", "You are {an extraction service|a parser|an API|a machine that reads texts|a JSON service}. {Reply|Answer} {with|in} {JSON|a JSON object}.", "Everything you {say|write} is JSON.", "JSON {only|answers only|mode}.",
]  # fmt: skip
_SYSTEM_KEYS = [
    "You are {an extraction service|a parser|an API|a clerk who fills in forms|a data entry service}. {Reply|Answer} with a JSON object {that has|with} the $k \x04.", "{Extract|Find|Read} \x04 {from what the user writes|from the message|from the text} and {reply|answer} {with|in} {a JSON object|JSON}{| only}.", "{Reply|Answer} only {with|in} {a JSON object|JSON} \x06.", "The user sends {a text|a sentence|a message}. {Return|Write|Answer with} a JSON object \x06.", "{Answer|Reply} {in|with} the form \x07, {nothing else|and no other text|always}.", "For every {text|message|sentence}: JSON \x06.", "{Turn|Convert} what the user {says|writes} into JSON \x06.",
]  # fmt: skip


def _renamed(rng: Random, fields: dict[str, Any]) -> dict[str, Any]:
    """Return the values under new keys; some calls drop values or change their order."""
    keys = list(fields)
    if rng.random() < 0.35:
        keys = rng.sample(keys, rng.randint(1, len(keys)))
    out: dict[str, Any] = {}
    for key in keys:
        names = _ALSO.get(key, key).split()
        name = key if rng.random() < 0.55 else rng.choice(names)
        if name in out:
            return {k: fields[k] for k in keys}
        out[name] = fields[key]
    return out


def _fill(rng: Random, template: str, keys: list[str], text: str) -> str:
    """The request with its keys and its text."""
    loose = [k.replace("_", " ") for k in keys]
    shown = rng.choice([keys, keys, [f'"{k}"' for k in keys], loose, [f"'{k}'" for k in keys]])
    ask = write(rng, template)
    if "\x06" in ask:
        ask = ask.replace("\x06", write(rng, _KEYS_SAID, {"k": "key" if len(keys) == 1 else "keys"}))
    ask = ask.replace("$k", "key" if len(keys) == 1 else "keys").replace(":\x01", ": \x01" if rng.random() < 0.3 else ":\n\x01")  # fmt: skip
    the = [f"the {k}" for k in shown]
    ask = ask.replace("\x04", listing(rng.choice([shown, shown, shown, the]))).replace(
        "\x05", ", ".join(shown)
    )
    ask = ask.replace("\x07", _pattern(keys)).replace("\x02", "{").replace("\x03", "}")
    ask = ask[0].upper() + ask[1:] if rng.random() < 0.8 else ask
    if rng.random() < 0.12 and ": \x01" in ask:
        text = f'"{text}"'
    return ask.replace("\x01", text)


def _read(rng: Random) -> Sample:
    """A text, and the keys that its values get."""
    draw = rng.random()
    if draw < 0.6:
        fields, text = _story(rng)
    elif draw < 0.85:
        fields, sentences = _from_shape(rng)
        text = fix_articles(sentences[0])
    else:
        fields, sentences = _more(rng, rng.choice(_KINDS))
        text = fix_articles(write(rng, rng.choice(sentences), {k: str(v) for k, v in fields.items()}))
    if rng.random() < 0.15:
        more, second = _story(rng)
        if not set(more) & set(fields) and text[-1] in ".!?":
            fields, text = fields | more, f"{text} {second}"
    named = _renamed(rng, fields)
    keys = list(named)
    answer = json.dumps(named, ensure_ascii=False)
    draw = rng.random()
    noun = {"k": "key" if len(keys) == 1 else "keys"}
    if draw < 0.18:
        system = _fill(rng, rng.choice(_SYSTEM_KEYS).replace("$k", noun["k"]), keys, "")
        return _sample(rng, system, text, answer)
    if draw < 0.32:
        tail = write(rng, "{ | |\n}{Keys: \x05|The keys: \x05|Use the keys \x04|Keys \x04|With \x04|\x04, please|Fields: \x05|I need \x04}{.||}")  # fmt: skip
        tail = _fill(rng, tail.replace("$k", noun["k"]), keys, "") if len(keys) > 1 else f" Key: {keys[0]}"
        return _sample(rng, write(rng, rng.choice(_SYSTEM)), text + " " + tail.strip(), answer)
    ask = _fill(rng, rng.choice(_ASK).replace("$k", noun["k"]), keys, text)
    if ask[-1] in ".!" and rng.random() < 0.3:
        ask += rng.choice(_ONLY)
    return _sample(rng, "", ask, answer)


def _set(rng: Random) -> Sample:
    """An object whose keys and values are said one by one."""
    if rng.random() < 0.6:
        fields = _any_pairs(rng)
    else:
        names = rng.sample("abcdefghklmnpqrstuxyz", rng.randint(1, 4))
        fields = {
            n: rng.choice([rng.randint(0, 99), rng.randint(0, 9), lexicon.any_word(rng)]) for n in names
        }
    if rng.random() < 0.2:
        fields[rng.choice(["active", "done", "open", "ok", "ready", "new", "free"])] = rng.random() < 0.5
    quote = rng.choice(['"{}"', '"{}"', "{}"])
    link = rng.choice([" is ", " is ", " = ", " with the value ", " set to ", ": ", " equals "])
    flag = {True: "true", False: "false"}
    shown = [f"{quote.format(k)}{link}{flag[v] if isinstance(v, bool) else v}" for k, v in fields.items()]
    said = listing(shown) if link != ": " or rng.random() < 0.5 else ", ".join(shown)
    whose = [f"whose key {s}" for s in shown]
    ask = write(rng, rng.choice(["{Write|Make|Create|Give me|Return|Build|I need|Print} {a JSON object|JSON|an object in JSON|a small JSON object} \x01{.|}", "{A JSON object|JSON object|json}{, please|}, \x02{.|}", "\x02. {As JSON|Make it JSON|Write that as JSON|JSON, please}.", "{Put|Write} this into {a JSON object|JSON}: \x02", "{In JSON|As JSON}: \x02"]))  # fmt: skip
    joined = rng.choice([listing(whose), f"where {said}", f"in which {said}", f"with {said}" if link in (" = ", ": ", " set to ", " with the value ") else f"where {said}"])  # fmt: skip
    ask = ask.replace("\x01", joined).replace("\x02", said)
    return _sample(rng, "", ask[0].upper() + ask[1:], json.dumps(fields, ensure_ascii=False))


def _all_of(rng: Random) -> Sample:
    """Every name, number, town or animal of a sentence, as an array."""
    what, draw = rng.choice([("names", lambda: lexicon.anyone(rng)), ("names", lambda: rng.choice(lexicon.FIRST_NAMES)), ("people", lambda: rng.choice(lexicon.FIRST_NAMES)), ("cities", lambda: lexicon.anywhere(rng)), ("towns", lambda: lexicon.anywhere(rng)), ("colors", lambda: rng.choice(lexicon.COLORS)), ("animals", lambda: rng.choice(lexicon.CREATURES)), ("days", lambda: rng.choice(DAYS)), ("months", lambda: rng.choice(MONTHS)), ("numbers", lambda: str(rng.randint(1, 99))), ("foods", lambda: rng.choice(lexicon.FOODS)), ("fruits", lambda: rng.choice("apple pear plum cherry peach lemon mango fig banana grape".split()))])  # fmt: skip
    items: list[str] = []
    count = rng.choice((2, 2, 3, 3, 4))
    while len(items) < count:
        one = draw()
        if one not in items:
            items.append(one)
    env = {"t": rng.choice(lexicon.PLACES), "o": rng.choice(lexicon.THINGS), "f": rng.choice(lexicon.FOODS)}
    shapes = {
        "names": ["\x01 and \x02 went to the $t.", "\x03 bought a $o.", "\x01 visited \x02.", "I met \x03 in the $t.", "\x01 gave \x02 a $o.", "The winners are \x03.", "\x03 like $f.", "\x01 saw \x02 at the $t."],
        "people": ["\x03 were at the $t.", "\x01 helped \x02 with the $o.", "Please tell \x03 about the $o.", "\x01 wrote to \x02."],
        "cities": ["We drove from \x01 to \x02.", "The train stops in \x03.", "I lived in \x01 before I came to \x02.", "\x03 are nice.", "We saw \x03 last year."],
        "colors": ["The flag is \x03.", "I painted the $o \x01 and the $t \x02.", "The $o is \x01, the other one is \x02.", "She likes \x03."],
        "animals": ["I saw a \x01 and a \x02 at the $t.", "The \x01 ran after the \x02.", "On the farm there is a \x01 and a \x02.", "A \x01 slept beside a \x02."],
        "days": ["The $t is open on \x03.", "I work on \x01 and rest on \x02.", "We meet on \x03."],
        "months": ["We were there in \x03.", "It rains from \x01 to \x02.", "The best months are \x03."],
        "numbers": ["I have \x01 pens and \x02 books.", "The numbers are \x03.", "From \x01 to \x02.", "Room \x01 is next to room \x02."],
        "foods": ["I ate \x01 and then \x02.", "We need \x03.", "There is \x03 on the table."],
    }  # fmt: skip
    key = {"towns": "cities", "fruits": "foods"}.get(what, what)
    shape = rng.choice(shapes[key])
    if "\x03" not in shape and key in ("animals", "numbers"):
        items = items[:2]
    first, last, both = listing(items[:-1]), items[-1], listing(items)
    text = fix_articles(write(rng, shape, env).replace("\x01", first).replace("\x02", last).replace("\x03", both))  # fmt: skip
    text = text[0].upper() + text[1:]
    all_ = rng.choice(["all the ", "all ", "the ", "every one of the "])
    ask = write(rng, f"{{{{Give me|Return|Write|List|Put|I need|Extract|Find}} {all_}{what} {{in|of|from}} {{this|the}} {{sentence|text}} {{as|in}} {{a JSON array|JSON|a JSON list}}: \x01|{all_}{what} {{in|of|from}} {{this|the}} sentence as a JSON {{array|list}}, please: \x01|JSON {{array|list}} of {all_}{what}: \x01|\x01 {{Give me|Return|Write}} {all_}{what} as a JSON {{array|list}}.|{{Which|What}} {what} are in this {{text|sentence}}? {{Answer with|Reply with}} a JSON {{array|list}}. \x01|\x01\n{all_.capitalize()}{what} as a JSON {{array|list}}}}")  # fmt: skip
    ask = ask[0].upper() + ask[1:]
    values = [int(i) if i.isdigit() else i for i in items]
    return _sample(rng, "", ask.replace("\x01", text), json.dumps(values, ensure_ascii=False))


def _array(rng: Random) -> Sample:
    """Words, names or numbers as an array."""
    numbers = rng.random() < 0.35
    count = rng.randint(2, 6)
    items = [str(rng.randint(0, rng.choice((9, 99, 999)))) for _ in range(count)] if numbers else [rng.choice([lexicon.any_word(rng), rng.choice(lexicon.NOUN_LIKE), rng.choice(lexicon.COLORS)]) for _ in range(count)]  # fmt: skip
    noun = rng.choice(["numbers"] if numbers else ["words", "things", "items"])
    text = rng.choice([", ".join(items), listing(items), listing(items)])
    ask = write(rng, f"{{{{Put|Write|Turn|Make|Pack|Change}} \x01 {{into|to}} {{a JSON list|a JSON array|JSON}}{{.|}}|{{Make|Turn}} {{the list|the {noun}|these {noun}:}} \x01 {{into |}}a JSON array{{ of {noun}|}}{{.|, please.|}}|\x01 {{as|in}} {{JSON|a JSON array|a JSON list}}{{, please|.|}}|{{json|JSON}} {{array|list}} {{with|of|from|containing}} \x01|{{A|One}} JSON {{array|list}} {{with|of}} the {noun} \x01{{, please|.|}}|{{Here are|I have}} some {noun}: \x01. {{Write|Return|I want}} {{them|these}} as a JSON {{array|list}}.|{{Return|Output|Print}} \x01 as {{an array in JSON|a JSON array}}{{.|}}|{{Give me|I'd like}} a JSON {{array|list}} of {{these {noun}|the following}}: \x01}}")  # fmt: skip
    ask = ask.replace("\x01", text)
    values = [int(i) if i.isdigit() else i for i in items]
    return _sample(rng, "", around(rng, ask) if rng.random() < 0.15 else ask[0].upper() + ask[1:], json.dumps(values, ensure_ascii=False))  # fmt: skip


def _several(rng: Random) -> Sample:
    """Two or three of a sort as an array of objects."""
    key, draw, said = rng.choice([("age", lambda: rng.randint(2, 99), "$n is $v"), ("city", lambda: lexicon.anywhere(rng), "$n lives in $v"), ("job", lambda: rng.choice(lexicon.PEOPLE), "$n is a $v"), ("color", lambda: rng.choice(lexicon.COLORS), "$n likes $v"), ("points", lambda: rng.randint(2, 99), "$n has $v points")])  # fmt: skip
    rows = [{"name": rng.choice(lexicon.FIRST_NAMES), key: draw()} for _ in range(rng.choice((2, 2, 3)))]
    text = fix_articles(listing([write(rng, said, {"n": str(r["name"]), "v": str(r[key])}) for r in rows]) + ".")  # fmt: skip
    ask = write(rng, f"{{{{Make|Write|Return|Give me}} {{a JSON array of objects|a list of JSON objects}} with name and {key}: \x01|JSON array, each with name and {key}: \x01|\x01 {{As|Make}} a JSON array of objects with the keys name and {key}.}}")  # fmt: skip
    return _sample(rng, "", ask.replace("\x01", text), json.dumps(rows, ensure_ascii=False))


def _sample(rng: Random, system: str, ask: str, answer: str) -> Sample:
    if system and rng.random() < 0.2:
        system = f"{place(rng)} {system}"
    messages: list[Message] = [say("system", system)] if system else []
    messages += [say("user", ask), say("assistant", answer)]
    held = Turn("json", ask, answer, f"object {system} {ask}").held_out
    return Sample("json", messages=messages, hint={"held_out": str(int(held))})


def object_chat(rng: Random) -> Sample:
    """A request for JSON of one of these sorts."""
    return rng.choices((_read, _set, _all_of, _array, _several), (12, 2.5, 3, 2.5, 0.7))[0](rng)
