# ruff: noqa: E501, SIM905 - lines of text read better whole
"""JSON with numbers, true and false: values said one by one, values read from texts, rows of a table, parts of an object."""

from __future__ import annotations

import json
from random import Random
from typing import Any, NamedTuple

from .casing import phrase_of
from .grammar import write
from .sample import Sample, Turn, say
from .scene_words import Scene
from .tasks import listing

Value = str | int | float | bool

_KEYS = "status name title color size count level mode type state answer result code message city country price age weight total score rank label user role email active done open paid ready visible language currency unit speed width height depth year month day hour minute id number address street room floor seat brand model category priority comment note sender subject owner author genre pages rating stars winner loser team goals points temperature humidity wind from to start end date time product quantity discount available".split()
_WORDS = "ok,error,done,open,closed,active,low,high,medium,new,old,red,blue,green,large,small,ready,waiting,failed,running,stopped,full,empty,yes,no,left,right,north,south,admin,guest,draft,final,fast,slow,warm,cold,public,private,on hold,sold out,in progress".split(
    ","
)


def _value(rng: Random) -> Value:
    draw = rng.random()
    if draw < 0.3:
        return rng.choice(_WORDS)
    if draw < 0.45:
        return phrase_of(rng)
    if draw < 0.72:
        return rng.choice((rng.randint(0, 20), rng.randint(0, 999), -rng.randint(1, 30)))
    if draw < 0.82:
        return round(rng.choice((rng.uniform(0, 10), rng.uniform(0, 200))), rng.choice((1, 1, 2)))
    return rng.random() < 0.5


def _said(value: Value) -> str:
    return json.dumps(value) if isinstance(value, bool) else str(value)


def set_values(rng: Random) -> Sample:
    """An object of one to four keys whose values are said."""
    keys = rng.sample(_KEYS, rng.choice((1, 1, 1, 2, 2, 3, 4)))
    fields = {key: _value(rng) for key in keys}
    quote = rng.choice(['"{}"', '"{}"', "{}", "'{}'"])

    def shown(value: Value) -> str:
        return quote.format(value) if isinstance(value, str) else _said(value)

    one = [
        f"key {quote.format(k)} and value {shown(v)}" if rng.random() < 0.7 else f"the key {quote.format(k)} and the value {shown(v)}" for k, v in fields.items()
    ]  # fmt: skip
    verb = "{Create|Make|Write|Please create|Please make|Give me|Build|Return|Output|I need|Can you make|Please write|Produce}"
    if len(fields) == 1 and rng.random() < 0.75:
        (key, value), said = next(iter(fields.items())), one[0]
        ask = write(rng, f"{{{verb} a{{ small|}} JSON object with \x01|JSON object, \x01|{verb} JSON with \x01|a JSON object with \x01{{, please|}}|{verb} JSON: \x02|JSON with one key: \x02|{verb} an object in JSON that has \x01}}").replace("\x01", said)  # fmt: skip
        ask = ask.replace("\x02", rng.choice([f"{quote.format(key)} is {shown(value)}", f"{quote.format(key)} = {shown(value)}", f"{quote.format(key)}: {shown(value)}", said]))  # fmt: skip
    else:
        link = rng.choice([" is ", " = ", ": ", " set to ", " equal to ", " with the value "])
        pairs = [f"{quote.format(k)}{link}{shown(v)}" for k, v in fields.items()]
        ask = write(rng, f"{{{verb} a JSON object {{with|where|in which|that says}} \x01|JSON object: \x01|{verb} JSON: \x01|\x01 {{as JSON|as a JSON object|in JSON}}{{, please|}}|{{Put|Write|Turn}} \x01 {{into JSON|into a JSON object}}}}").replace("\x01", listing(pairs) if rng.random() < 0.6 else ", ".join(pairs))  # fmt: skip
    ask += "" if ask[-1] in ".?!" else rng.choice(["", ".", "."])
    if rng.random() < 0.2:
        ask += rng.choice([" Only JSON.", " Nothing else.", " JSON only.", " No explanation."])
    return _sample(ask if rng.random() < 0.8 else ask[0].lower() + ask[1:], fields)


class Row(NamedTuple):
    """A text, and its values: key (other names for it after a slash), slot or constant, and the sort of the value."""

    text: str
    fields: list[tuple[str, str, str]]


def _row(line: str) -> Row:
    text, fields = line.split(" >> ")
    parts = [part.split("=") for part in fields.split(", ")]
    return Row(text, [(key, *value.split(":")) for key, value in parts])  # type: ignore[misc]


# sorts: s text, n number, t true, f false
_ROWS = """
The {choir|club|class|team} meets on $day at $hour. >> day/weekday=$day:s, hour/time/at=$hour:n
{The|Our} {shop|museum|library} opens at $hour and closes at $hour2. >> opens/open/from=$hour:n, closes/until/to=$hour2:n
The $thing costs $price $cur and is in stock. >> product/item=$thing:s, price/cost=$price:n, in_stock/available=true:t
The $thing costs $price $cur but is {sold out|not in stock}. >> product/item=$thing:s, price/cost=$price:n, in_stock/available=false:f
Invoice $big was paid by $name. >> invoice/number=$big:n, paid=true:t, customer/name=$name:s
Invoice $big has not been paid yet. The customer is $name. >> invoice/number=$big:n, paid=false:f, customer/name=$name:s
$name is $num years old and {is|} married. >> name=$name:s, age=$num:n, married=true:t
$name is $num and not married. >> name=$name:s, age=$num:n, married=false:f
$name is $num years old, lives in $city and has $hour children. >> name=$name:s, age=$num:n, city/town=$city:s, children/kids=$hour:n
Room $roomno has $hour beds and a balcony. >> room/number=$roomno:n, beds=$hour:n, balcony=true:t
Room $roomno has $hour beds but no balcony. >> room/number=$roomno:n, beds=$hour:n, balcony=false:f
It is $num degrees in $city and raining. >> city/place=$city:s, temperature/degrees=$num:n, rain/raining=true:t
It is $num degrees in $city and dry. >> city/place=$city:s, temperature/degrees=$num:n, rain/raining=false:f
$name has $hour $animals and $hour2 $animals2. >> name/owner=$name:s, $animals=$hour:n, $animals2=$hour2:n
$num $fruits and $big $vegs >> $fruits=$num:n, $vegs=$big:n
The score was $hour to $hour2 for $city. >> winner/team=$city:s, goals/goals_for=$hour:n, goals_against/against=$hour2:n
The $book has $big pages and was written by $name. >> title/book=$book:s, pages=$big:n, author/writer=$name:s
The $job {$name|called $name} earns $big $cur a month. >> job/work=$job:s, name=$name:s, salary/pay/amount=$big:n
The $public to $city leaves from platform $num at $hour. >> destination/to/city=$city:s, platform/track=$num:n, hour/time=$hour:n
The light in the $room is on. >> room/place=$room:s, light/on=true:t
The light in the $room is off. >> room/place=$room:s, light/on=false:f
The $room door is locked. >> door/room=$room:s, locked=true:t
The $room door is not locked. >> door/room=$room:s, locked=false:f
The $color $thing weighs $num kilos. >> color=$color:s, thing/item=$thing:s, weight/kilos=$num:n
Table for $num on $day, name: $name. >> people/guests=$num:n, day=$day:s, name=$name:s
We ordered $num portions of $dish for $price $cur. >> dish/food=$dish:s, portions/quantity/count=$num:n, price/total=$price:n
$name came in place $hour with $big points. >> name/player=$name:s, place/rank=$hour:n, points/score=$big:n
The $pet $petname is $hour years old and {vaccinated|healthy}. >> name=$petname:s, animal/pet=$pet:s, age/years=$hour:n
$name $sur, born in $year in $city >> first_name/name=$name:s, last_name/surname=$sur:s, year/born=$year:n, city/place=$city:s
The {car|house|boat} of $name is $color and cost $big $cur. >> owner/name=$name:s, color=$color:s, price/cost=$big:n
Milk: $hour liters, $goods: $num packs. >> milk=$hour:n, $goods=$num:n
My {alarm|timer|meeting} is at $hour on $days. >> hour/time=$hour:n, days/day/when=$days:s
The {flight|train} to $city takes $hour hours and costs $price $cur. >> city/to/destination=$city:s, hours/duration=$hour:n, price/cost=$price:n
{Sensor|Device} $num reports $big units, battery low. >> id/device/sensor=$num:n, value/units=$big:n, battery_low/low=true:t
"""
ROWS = [_row(line) for line in _ROWS.strip().split("\n")]
_TYPES = {
    "n": "{as a number|as number|(number)|as an integer|(a number)|without quotes}",
    "t": "{as true or false|as a boolean|(true or false)|(boolean)|as true/false|(true/false)}",
    "s": "{as text|as a string|(text)|(string)}",
}  # fmt: skip


def from_text(rng: Random) -> Sample:
    """A text, and its values under keys, some with their sort."""
    row = rng.choice(ROWS)
    scene = Scene(rng)
    scene["hour"], scene["hour2"] = (str(n) for n in rng.sample(range(1, 13), 2))
    scene["m"] = "milk"  # which the row of milk names itself
    text = write(rng, row.text, scene)
    text = text[0].upper() + text[1:]
    if rng.random() < 0.3:
        text = text.rstrip(".")
    chosen = row.fields if rng.random() < 0.65 else rng.sample(row.fields, rng.randint(1, len(row.fields)))
    fields: dict[str, Value] = {}
    sorts: dict[str, str] = {}
    for names, value, sort in chosen:
        name = rng.choice(names.split("/"))
        key = write(rng, name, scene).replace(" ", "_")
        said = write(rng, value, scene)
        fields[key] = int(said) if sort == "n" else said if sort == "s" else sort == "t"
        sorts[key] = "t" if sort == "f" else sort
    keys = list(fields)
    noun = "key" if len(keys) == 1 else "keys"
    shown = rng.choice([keys, keys, [f'"{k}"' for k in keys]])
    typed = [k for k in keys if sorts[k] != "s"]
    note = ""
    if typed and rng.random() < 0.5:
        key = rng.choice(typed)
        note = f", {key} {write(rng, _TYPES[sorts[key]])}"
    if rng.random() < 0.15:
        shown = [f"{k} {write(rng, _TYPES[sorts[k]])}" for k in keys]
        note = ""
    listed = listing(shown) if rng.random() < 0.6 else ", ".join(shown)
    loose = ["the " + k.replace("_", " ") for k in keys]
    draw = rng.random()
    quoted = rng.choice([f'"{text}"', f'"{text}"', f"'{text}'"])
    if draw < 0.25:
        ask = write(
            rng, f"{{Extract|Take|Get|Put|Read}} \x01 from \x02 {{into|as|in}} a JSON object, {noun} \x03"
        )
    elif draw < 0.45:
        ask = write(rng, f"{{Make|Write|Return|Give me}} JSON {{from|for|of}} {{this|this text|this sentence}}, {noun} \x03:{{ |\n}}\x04")  # fmt: skip
    elif draw < 0.6:
        ask = write(rng, f"\x04{{\n| }}{{JSON please|As JSON|Give me JSON|JSON object|Turn this into JSON}}, {{with the |}}{noun} \x03")  # fmt: skip
    elif draw < 0.7:
        ask = write(rng, f"{{JSON|json|JSON object|To JSON}} ({noun}: \x03): \x04")
    elif draw < 0.85:
        pattern = "{" + ", ".join(f'"{k}": ...' for k in keys) + "}"
        ask = rng.choice([f"Fill in {pattern} from: \x04", f"\x04\nFill in: {pattern}", f"Complete {pattern} for this text: \x04", f"{pattern} for: \x04"])  # fmt: skip
        return _sample(ask.replace("\x04", text), fields)
    else:
        system = write(rng, f"{{Reply with JSON, {noun} \x03.|Turn every message into JSON with the {noun} \x03.|You output JSON with the {noun} \x03.|Answer in JSON. {noun.capitalize()}: \x03.}}").replace("\x03", listed + note)  # fmt: skip
        return _sample(text, fields, system)
    ask = ask.replace("\x01", listing(loose)).replace("\x02", quoted).replace("\x03", listed + note).replace("\x04", text)  # fmt: skip
    ask += "" if ask[-1] in ".?!" or ask.endswith(text) else rng.choice(("", "."))
    return _sample(ask, fields)


def rows_of(rng: Random) -> Sample:
    """Several short records as an array of objects, or as one object of names and numbers."""
    scene = Scene(rng)
    sort = rng.choice(["name", "fruits", "city", "vegs", "animals", "goods", "thing", "petname"])
    names = [scene[f"{sort}{n}"] for n in range(1, rng.choice((2, 2, 3, 3, 4)) + 1)]
    values = [rng.randint(1, 99) for _ in names]
    mark = rng.choice([": ", ": ", " = ", " - ", " "])
    text = rng.choice([", ", "; ", "\n", ", "]).join(
        f"{n}{mark}{v}" for n, v in zip(names, values, strict=True)
    )
    if rng.random() < 0.5:
        ask = write(rng, "{{As|Make|Turn this into|Write as|Return|To} {one |a |}JSON object{, names as keys|, the names are the keys|}|JSON object{ with the names as keys|}|{Key and number|Keys and numbers} as JSON}: ")  # fmt: skip
        return _sample(f"{ask} {text}", dict(zip(names, values, strict=True)))
    a, b = rng.choice([("name", "count"), ("name", "value"), ("item", "number"), ("name", "points"), ("name", "age"), ("key", "value")])  # fmt: skip
    ask = write(rng, f"{{{{As|Make|Turn this into|Return|Write}} {{a JSON array|a list}} of {{JSON |}}objects with {a} and {b}|JSON array of objects, keys {a} and {b}}}: ")  # fmt: skip
    return _sample(f"{ask} {text}", [{a: n, b: v} for n, v in zip(names, values, strict=True)])


def phrases_array(rng: Random) -> Sample:
    """Words and phrases, or all numbers of a text, as an array."""
    if rng.random() < 0.6:
        items: list[Any] = [phrase_of(rng) for _ in range(rng.choice((2, 3, 3, 4)))]
        items = [i.replace(",", "").replace('"', "") for i in items]
        text = ", ".join(items)
        ask = write(rng, "{{Make|Write|Return|Give me} a JSON {array|list}{ of strings|}: \x01|\x01 as a JSON {array|list}{, please|}|JSON {array|list} {of|with|from}{:|} \x01|{Put|Turn|Convert} this {in|}to a JSON {array|list}: \x01|{Split|Cut} this at the commas, as a JSON {array|list}: \x01|json {array|list}: \x01}").replace("\x01", text)  # fmt: skip
        return _sample(ask, items)
    row = rng.choice([r for r in ROWS if sum(sort == "n" for *_, sort in r.fields) > 1])
    scene = Scene(rng)
    scene["hour"], scene["hour2"] = (str(n) for n in rng.sample(range(1, 13), 2))
    text = write(rng, row.text, scene)
    numbers = [int("".join(c for c in w if c.isdigit())) for w in text.split() if any(c.isdigit() for c in w)]
    ask = write(rng, "{{All|The|Find all|Give me all|Extract the|Extract all|List the} numbers {in|from|of} {this|the} {text|sentence} as a JSON {array|list}|JSON {array|list} of the numbers|Which numbers are in this text? JSON array}")  # fmt: skip
    return _sample(f"{ask}: {text[0].upper() + text[1:]}", numbers)


def _sample(ask: str, value: Any, system: str = "") -> Sample:
    answer = json.dumps(value, ensure_ascii=False)
    messages = [say("system", system)] if system else []
    messages += [say("user", ask), say("assistant", answer)]
    held = Turn("json", "", "", f"keyed {system} {ask}").held_out
    return Sample("json", messages=messages, hint={"held_out": str(int(held))})


def keyed_chat(rng: Random) -> Sample:
    """One of these."""
    return rng.choices((set_values, from_text, rows_of, phrases_array), (5, 9, 2, 2.5))[0](rng)
