# ruff: noqa: E501, SIM905 - lines of text and word lists read better whole
"""Tool calling: tools with many names and signatures, a request, the call, its result and the answer."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from .casing import case_turn
from .facts import CAPITALS
from .grammar import write
from .knowledge import quiz, topic, word_lore
from .remarks import remark_turn
from .sample import Sample, Turn, is_held_out
from .senses import sense_turn
from .smalltalk import identity, small_talk, unknown
from .strict import all_of, dictionary, spaced
from .sums import asked_sum, story_sum
from .tasks import DAYS, arithmetic, calendar, fact, opposite, plural
from .text_tasks import change_case, letters, sorting
from .typed import typed
from .words import NOUNS, PLURALS, SLOTS, first_name, invented_word
from .yes_no import yes_no_question


@dataclass(frozen=True)
class Kind:
    """A sort of tool. ``params`` maps a slot to (names it may have, JSON type); ``asks`` use the slots.

    A slot in ``optional`` is part of the call only where the request names it (the asks that hold its ``$slot``).
    ``results`` pairs a JSON result with the answer it leads to.
    """

    names: list[str]
    descriptions: list[str]
    params: dict[str, tuple[list[str], str]]
    asks: list[str]
    results: list[tuple[str, str]]
    optional: tuple[str, ...] = ()


_CITY = (["city", "location", "place", "town", "where"], "string")
_WORD = (["text", "query", "words", "input", "content"], "string")

KINDS: dict[str, Kind] = {
    "weather": Kind(
        ["get_weather", "weather", "fetch_weather", "current_weather", "weather_report", "getWeather", "check_weather"],
        ["Get the weather in a city.", "The current weather of a place.", "Look up today's weather."],
        {"c": _CITY, "u": (["unit", "units", "scale"], "celsius|fahrenheit")},
        ["What is the weather {like |}in $c?", "How is the weather in $c{ today|}?", "Is it raining in $c?", "What is the temperature in $c in $u?", "Tell me the weather in $c{, please|}.", "Do I need a coat in $c?", "Weather in $c in $u, please."],
        [('{"temperature": $i, "sky": "$sky"}', "It is $i degrees and $sky in $c."), ('{"sky": "$sky"}', "It is $sky in $c.")],
        ("u",),
    ),
    "time": Kind(
        ["get_time", "current_time", "time_in", "world_clock", "getTime", "local_time"],
        ["Get the current time in a city.", "What time it is in a place."],
        {"c": _CITY},
        ["What time is it in $c?", "What's the time in $c{ now|}?", "Tell me the time in $c.", "How late is it in $c?"],
        [('{"time": "$t"}', "It is $t in $c.")],
    ),
    "calculator": Kind(
        ["calculator", "calculate", "compute", "math", "evaluate", "do_math"],
        ["Evaluate an arithmetic expression.", "Calculate the result of an expression.", "A calculator."],
        {"x": (["expression", "formula", "input", "sum"], "string")},
        ["What is $x?", "Calculate $x.", "How much is $x?", "$x", "Compute $x{, please|}."],
        [('{"result": $big}', "$x = $big."), ("$big", "$x = $big.")],
    ),
    "email": Kind(
        ["send_email", "send_mail", "email", "write_email", "sendEmail", "mail_to"],
        ["Send an email to someone.", "Send a mail."],
        {"n": (["to", "recipient", "name", "receiver"], "string"), "m": (["message", "body", "text", "content"], "string")},
        ["Send an email to $n: $m", "Write to $n: $m", "{Email|Mail} $n and say: $m", "Send $n this message: $m"],
        [('{"status": "sent"}', "I have sent the email to $n."), ('{"status": "failed"}', "I am sorry, the email to $n could not be sent.")],
    ),
    "timer": Kind(
        ["set_timer", "timer", "start_timer", "setTimer", "countdown", "new_timer"],
        ["Set a timer.", "Start a timer for some minutes."],
        {"i": (["minutes", "duration", "length", "time_in_minutes"], "integer")},
        ["Set a timer for $i minutes.", "Wake me in $i minutes.", "Start a $i minute timer.", "Timer, $i minutes{, please|}.", "Remind me in $i minutes."],
        [('{"status": "started"}', "The timer is set for $i minutes."), ('{"ok": true}', "The timer is set for $i minutes.")],
    ),
    "alarm": Kind(
        ["set_alarm", "alarm", "wake_me", "setAlarm", "add_alarm"],
        ["Set an alarm.", "Set an alarm at a time of the day."],
        {"t": (["time", "at", "clock_time", "when"], "string"), "d": (["day", "weekday", "date"], "string")},
        ["Set an alarm for $t.", "Wake me up at $t.", "Set an alarm for $d at $t.", "Alarm on $d at $t{, please|}."],
        [('{"status": "ok"}', "The alarm is set for $t.")],
        ("d",),
    ),
    "reminder": Kind(
        ["add_reminder", "remind", "create_reminder", "set_reminder", "addReminder"],
        ["Create a reminder.", "Remind the user of something on a day."],
        {"w": (["task", "what", "text", "title", "reminder"], "string"), "d": (["day", "when", "weekday", "date"], "string")},
        ["Remind me to $w on $d.", "On $d, remind me to $w.", "Add a reminder for $d: $w", "Do not let me forget to $w on $d."],
        [('{"status": "saved"}', "I will remind you to $w on $d.")],
    ),
    "light": Kind(
        ["set_light", "light", "switch_light", "control_light", "setLight", "lamp"],
        ["Turn a light on or off.", "Switch the light of a room."],
        {"r": (["room", "place", "area", "name"], "string"), "o": (["state", "value", "mode", "status"], "on|off")},
        ["Turn $o the light in the $r.", "Switch $o the $r light.", "Light $o in the $r{, please|}.", "Turn the $r light $o."],
        [('{"ok": true}', "The light in the $r is $o now.")],
    ),
    "music": Kind(
        ["play_music", "play", "play_song", "start_music", "playSong", "music_player"],
        ["Play a song.", "Play music by its title."],
        {"s": (["song", "title", "name", "track"], "string")},
        ["Play $s.", "I want to hear $s.", "Put on $s{, please|}.", "Play the song $s."],
        [('{"status": "playing"}', "Now playing $s."), ('{"error": "not found"}', "I am sorry, I could not find $s.")],
    ),
    "search": Kind(
        ["search", "web_search", "find", "lookup", "search_web", "look_up"],
        ["Search the web.", "Look something up on the internet."],
        {"q": (["query", "q", "term", "keywords", "search_term"], "string")},
        ["Search for $q.", "Look up $q.", "Find something about $q.", "Search the web for $q{, please|}.", "Google $q."],
        [('{"results": $n2}', "I found $n2 results for $q.")],
    ),
    "translate": Kind(
        ["translate", "translate_text", "translator", "get_translation", "translateText"],
        ["Translate text into a language.", "Translate words."],
        {"p": _WORD, "l": (["language", "target", "to", "target_language"], "string")},
        ["Translate \"$p\" into $l.", "How do you say \"$p\" in $l?", "What is \"$p\" in $l?", "Say \"$p\" in $l."],
        [('{"translation": "$inv"}', "In $l, \"$p\" is \"$inv\".")],
    ),
    "convert": Kind(
        ["convert_currency", "convert_money", "exchange", "currency_converter", "exchange_money"],
        ["Convert money from one currency to another.", "Exchange an amount of money."],
        {"i": (["amount", "value", "sum", "quantity"], "number"), "f": (["from", "source", "from_currency"], "string"), "g": (["to", "target", "to_currency"], "string")},
        ["Convert $i $f to $g.", "How much is $i $f in $g?", "Change $i $f into $g.", "What are $i $f in $g?"],
        [('{"result": $n2}', "$i $f are $n2 $g.")],
    ),
    "book": Kind(
        ["book_table", "reserve_table", "reservation", "bookTable", "make_reservation"],
        ["Book a table in a restaurant.", "Reserve a table."],
        {"k": (["people", "guests", "persons", "party_size"], "integer"), "d": (["day", "date", "weekday", "when"], "string"), "t": (["time", "hour", "at"], "string")},
        ["Book a table for $k on $d at $t.", "Reserve a table for $k people on $d at $t.", "A table for $k, $d, $t{, please|}.", "Book a table for $k on $d."],
        [('{"status": "booked"}', "Your table for $k on $d is booked."), ('{"status": "full"}', "I am sorry, there is no free table on $d.")],
        ("t",),
    ),
    "stock": Kind(
        ["get_stock", "check_stock", "inventory", "count_items", "in_stock"],
        ["Look up how many of an item are in stock.", "Check the inventory for an item."],
        {"h": (["item", "product", "article", "name"], "string")},
        ["How many of the item $h do we have?", "Is the $h in stock?", "Check the stock for $h.", "Do we have a $h?"],
        [('{"count": $n2}', "There are $n2 in stock."), ('{"count": 0}', "There are none in stock.")],
    ),
    "dice": Kind(
        ["roll_dice", "dice", "throw_dice", "rollDice", "random_roll"],
        ["Roll a die.", "Roll a die with some sides."],
        {"k": (["sides", "faces", "max", "n"], "integer")},
        ["Roll a die with $k sides.", "Roll a $k sided die.", "Throw a die with $k sides{, please|}."],
        [('{"roll": $one}', "You rolled a $one.")],
    ),
    "call": Kind(
        ["call", "make_call", "phone", "dial", "call_contact"],
        ["Call someone on the phone.", "Start a phone call."],
        {"n": (["name", "contact", "person", "who"], "string")},
        ["Call $n.", "Phone $n{, please|}.", "I want to talk to $n on the phone.", "Ring $n."],
        [('{"status": "calling"}', "Calling $n now."), ('{"status": "busy"}', "I am sorry, the line of $n is busy.")],
    ),
    "directions": Kind(
        ["get_directions", "directions", "route", "find_route", "navigate"],
        ["Find the way from one place to another.", "Get a route."],
        {"c": (["from", "start", "origin", "source"], "string"), "e": (["to", "destination", "end", "target"], "string")},
        ["How do I get from $c to $e?", "Show me the way from $c to $e.", "Route from $c to $e{, please|}.", "How far is it from $c to $e?"],
        [('{"distance_km": $n2}', "It is $n2 kilometers from $c to $e.")],
    ),
    "add": Kind(
        ["add", "add_numbers", "sum_of", "plus", "addNumbers"],
        ["Add two numbers.", "The sum of two numbers."],
        {"i": (["a", "x", "first", "left"], "integer"), "k": (["b", "y", "second", "right"], "integer")},
        ["Add $i and $k.", "What is $i plus $k?", "What is the sum of $i and $k?", "$i + $k", "How much is $i + $k?"],
        [("$big", "The result is $big."), ('{"result": $big}', "The result is $big.")],
    ),
    "note": Kind(
        ["save_note", "add_note", "take_note", "write_note", "note"],
        ["Save a note.", "Write down a note."],
        {"w": (["text", "note", "content", "body"], "string")},
        ["Note: $w", "Write down: $w", "Save a note: $w", "Take a note that says: $w"],
        [('{"status": "saved"}', "I have saved the note.")],
    ),
    "event": Kind(
        ["create_event", "add_event", "calendar", "new_event", "schedule", "addEvent", "add_to_calendar"],
        ["Put an event into the calendar.", "Create a calendar event.", "Add an appointment.", "Schedule something."],
        {"v": (["title", "event", "name", "what", "summary"], "string"), "d": (["day", "date", "when", "weekday"], "string")},
        ["Put $v on $d in my calendar.", "Add $v on $d{ to my calendar|}.", "Create an event called $v on $d.", "Schedule $v for $d{, please|}.", "$v on $d, put it in the calendar.", "Plan $v on $d.", "I have $v on $d, add it{ to the calendar|}.", "New event on $d: $v"],
        [('{"status": "created"}', "$^v is in your calendar on $d."), ('{"ok": true}', "I have added $v on $d."), ('{"error": "conflict"}', "I am sorry, that did not work: conflict.")],
    ),
    "device": Kind(
        ["turn_on", "switch_on", "power_on", "start_device", "enable", "turnOn"],
        ["Turn on a device.", "Switch on a device at home.", "Start a machine."],
        {"z": (["device", "name", "machine", "what", "appliance"], "string")},
        ["Turn on the $z{, please|}.", "Switch on the $z.", "Please turn the $z on.", "Start the $z.", "Can you switch the $z on?", "I want the $z on.", "Could you turn on the $z?"],
        [('{"status": "on"}', "The $z is on now."), ('{"ok": true}', "The $z is on now."), ('{"error": "not found"}', "I am sorry, I could not find the $z.")],
    ),
    "device_off": Kind(
        ["turn_off", "switch_off", "power_off", "stop_device", "disable", "turnOff"],
        ["Turn off a device.", "Switch off a device at home.", "Stop a machine."],
        {"z": (["device", "name", "machine", "what", "appliance"], "string")},
        ["Turn off the $z{, please|}.", "Switch off the $z.", "Please turn the $z off.", "Stop the $z.", "Can you switch the $z off?", "Could you turn off the $z?"],
        [('{"status": "off"}', "The $z is off now."), ('{"ok": true}', "The $z is off now.")],
    ),
    "cart": Kind(
        ["add_to_cart", "add_item", "cart_add", "order_item", "buy", "addToCart", "shopping_cart"],
        ["Add a product to the shopping cart.", "Put an item into the cart.", "Order a product."],
        {"P": (["product", "item", "name", "article"], "string"), "k": (["quantity", "amount", "count", "number"], "integer")},
        ["Add $k $P to {the|my} cart{, please|}.", "I {would like|want} $k $P in my cart.", "Put $k $P into the cart.", "Order $k $P.", "I'd like $k $P{, please|}.", "Buy $k $P for me.", "$k $P, please."],
        [('{"ok": true}', "I have put $k $P into the cart."), ('{"status": "added"}', "I have put $k $P into the cart."), ('{"error": "sold out"}', "I am sorry, the $P are sold out.")],
    ),
    "order": Kind(
        ["lookup_order", "order_status", "track_order", "get_order", "find_order", "trackPackage"],
        ["Look up the status of an order.", "Track a customer's order.", "Find an order by its number."],
        {"n2": (["order_id", "id", "number", "order", "order_number"], "integer")},
        ["Where is my order $n2?", "What is the status of order {number |}$n2?", "Track order $n2.", "Has order $n2 arrived?", "Check order {number |}$n2{, please|}.", "When will order $n2 come?", "My order is $n2. Where is it?", "Find order $n2."],
        [('{"status": "shipped"}', "Your order $n2 is shipped."), ('{"status": "delivered"}', "Your order $n2 is delivered."), ('{"status": "late"}', "Your order $n2 is late."), ('{"error": "not found"}', "I am sorry, order $n2 was not found.")],
    ),
    "population": Kind(
        ["get_population", "population", "count_people", "country_population", "populationOf"],
        ["How many people live in a country.", "Get the population of a country.", "Population of a place."],
        {"C": (["country", "place", "land", "name", "region"], "string")},
        ["How many people live in $C?", "What is the population of $C?", "Population of $C{, please|}.", "How big is the population of $C?", "Tell me how many people there are in $C."],
        [('{"population": $big}', "$big people live in $C."), ("$big", "$big people live in $C.")],
    ),
    "radio": Kind(
        ["play_radio", "radio", "tune_radio", "start_radio", "listen"],
        ["Play a radio station.", "Turn on a radio station."],
        {"R": (["station", "channel", "name", "radio"], "string")},
        ["Play the station $R.", "Put on $R.", "I want to listen to $R.", "Tune in to $R{, please|}.", "Play $R{ on the radio|}."],
        [('{"status": "playing"}', "Now playing $R.")],
    ),
    "flights": Kind(
        ["search_flights", "find_flights", "flights", "flight_search", "get_flights"],
        ["Find flights between two cities.", "Search for flights.", "Look for a flight on a day."],
        {"c": (["origin", "from", "start", "departure"], "string"), "e": (["destination", "to", "arrival", "target"], "string"), "A": (["date", "day", "when"], "string")},
        ["Find me a flight from $c to $e on $A.", "Flights from $c to $e on $A{, please|}.", "I want to fly from $c to $e on $A.", "Any flights from $c to $e on $A?", "Search flights $c to $e, $A.", "I need a flight to $e from $c on $A."],
        [('{"flights": $one}', "I found $one flights from $c to $e."), ('{"flights": 0}', "I found no flights from $c to $e.")],
    ),
    "mail": Kind(
        ["send_email", "send_mail", "compose", "new_email", "email"],
        ["Send an email.", "Write an email to an address."],
        {"a": (["to", "address", "recipient", "email"], "string"), "S": (["subject", "title", "topic", "about"], "string")},
        ["Send an email to $a with the subject $S.", "Email $a with the subject $S.", "Write an email to $a, subject $S.", "Mail to $a, the subject is $S.", "Send $a a mail with the subject $S."],
        [('{"status": "sent"}', "I have sent the email to $a."), ('{"error": "unknown address"}', "I am sorry, that did not work: unknown address.")],
    ),
    "temperature": Kind(
        ["get_weather", "weather", "get_temperature", "temperature", "forecast"],
        ["Get the weather in a city.", "Get the temperature in a place.", "The weather of a city."],
        {"c": _CITY, "u": (["unit", "units"], "celsius|fahrenheit")},
        ["{What's|What is} the weather {like |}in $c{ right now| today| now|}?", "Is it {cold|warm|hot|sunny|raining} in $c{ today|}?", "Do I need {an umbrella|a coat|a jacket|sunglasses} in $c{ today|}?", "Tell me the temperature in $c in $u.", "How {warm|cold|hot} is it in $c{ in $u|}?", "Weather $c", "Weather in $c", "What should I wear in $c today?", "Will I need an umbrella in $c?", "Temperature in $c{ in $u|}{, please|}.", "How is the weather in $c in $u?", "Check the weather in $c for me."],
        [('{"temperature": $neg}', "It is $neg degrees in $c."), ('{"temperature": $i, "sky": "$sky"}', "It is $i degrees and $sky in $c."), ('{"temperature": $i}', "It is $i degrees in $c."), ('{"error": "unknown place"}', "I am sorry, that did not work: unknown place.")],
        ("u",),
    ),
}  # fmt: skip

_CITIES = [*CAPITALS.values(), "Hamburg", "Boston", "Chicago", "Sydney", "Milan", "New York"]
_TASKS = [
    "buy milk",
    "call the doctor",
    "water the plants",
    "feed the cat",
    "pay the rent",
    "wash the car",
    "clean the kitchen",
    "bake a cake",
    "visit $n",
    "return the $h",
    "meet $n",
    "bring the $h",
    "buy a $h",
]
_MESSAGES = [
    "I will be late.",
    "See you on $d.",
    "Thank you for the $h.",
    "Where is the $h?",
    "Happy birthday!",
    "The $h is ready.",
    "Please call me.",
    "Dinner is at $t.",
    "I miss you.",
    "The meeting is on $d.",
]


def _values(rng: Random) -> dict[str, str]:
    v = {
        "c": rng.choice(_CITIES), "u": rng.choice(("celsius", "fahrenheit")), "n": first_name(rng), "d": rng.choice(DAYS),
        "t": f"{rng.randint(0, 23):02d}:{rng.choice(('00', '15', '30', '45'))}", "i": str(rng.randint(1, 99)), "k": str(rng.randint(2, 20)),
        "r": rng.choice([*"kitchen bedroom bathroom hall garden garage office attic cellar".split(), "living room"]), "o": rng.choice(("on", "off")),
        "s": write(rng, "{$n Song|Song of the $n|The $m $n|My $m $n}", {"n": rng.choice(NOUNS).capitalize(), "m": rng.choice(SLOTS["color"]).capitalize()}),
        "q": write(rng, "{$n|$m $n|$n in $c|how to find a $n|cheap $n|pictures of a $n}", {"n": rng.choice(NOUNS), "m": rng.choice(SLOTS["color"]), "c": rng.choice(_CITIES)}),
        "p": write(rng, "{$n|good morning|thank you|I like the $n|the $m $n|where is the $n}", {"n": rng.choice(NOUNS), "m": rng.choice(SLOTS["color"])}),
        "l": rng.choice("French German Spanish Italian Polish Greek Dutch Swedish Turkish Japanese".split()), "h": rng.choice(NOUNS),
        "f": rng.choice(("euros", "dollars", "pounds")), "g": rng.choice(("yen", "francs", "pesos", "rupees")), "one": str(rng.randint(1, 6)),
        "inv": invented_word(rng), "n2": str(rng.choice((rng.randint(2, 900), rng.randint(2, 99999)))), "big": str(rng.randint(100, 999999)), "sky": rng.choice("sunny rainy cloudy windy foggy snowy".split()),
    }  # fmt: skip
    things = [
        "toaster",
        "radio",
        "television",
        "heater",
        "lamp",
        "desk lamp",
        "coffee machine",
        "oven",
        "washing machine",
        "garden light",
        "pump",
        "air conditioner",
        "computer",
        "printer",
        "boiler",
        "dryer",
        "speaker",
        "hall light",
        "camera",
        "alarm",
        "stove",
        "vacuum",
        "sprinkler",
        "light in the hall",
        "floor heating",
    ]
    v |= {
        "v": write(rng, "{hairdresser|lunch with $n|Team meeting|yoga|football|dinner|piano lesson|a call with $n|Birthday party|haircut|$m $h|visit of $n|swimming|Exam|doctor}", {"n": v["n"], "m": rng.choice(SLOTS["color"]), "h": v["h"]}),
        "z": rng.choice([*things, rng.choice(NOUNS), rng.choice(NOUNS), invented_word(rng)]), "P": rng.choice([*PLURALS.values(), *SLOTS["fruit"], "pens", "chairs"]), "C": rng.choice([*CAPITALS, invented_word(rng).capitalize()]),
        "R": write(rng, "{Radio $n|$n FM|Pop$i|Rock $i|$n $i|BBC $k|$n}", {"n": rng.choice([invented_word(rng), rng.choice(NOUNS)]).capitalize(), "i": v["i"], "k": v["k"]}), "A": f"20{rng.randint(20, 35)}-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}" if rng.random() < 0.7 else v["d"],
        "a": f"{rng.choice([v['n'].lower(), invented_word(rng)])}@{rng.choice(('example.com', 'mail.com', 'post.org', 'home.net', 'example.org'))}", "S": rng.choice(["Dinner", "Hello", "Your $h", "Meeting on $d", "Invoice", "the $h", "Holiday", "Good news", "Question"]), "neg": str(rng.randint(-30, 5)),
    }  # fmt: skip
    v["S"] = write(rng, v["S"], v)
    if rng.random() < 0.1:
        v["c"] = invented_word(rng).capitalize()
    v["e"] = rng.choice([city for city in _CITIES if city != v["c"]])
    v["w"], v["m"] = write(rng, rng.choice(_TASKS), v), write(rng, rng.choice(_MESSAGES), v)
    a, b = rng.randint(1, 9999), rng.randint(1, 999)
    v["x"] = (
        f"{a} {rng.choice('+-*/')} {b}"
        if rng.random() < 0.7
        else f"({rng.randint(1, 99)} {rng.choice('+-')} {rng.randint(1, 99)}) * {rng.randint(2, 99)}"
    )
    return v


def _declare(rng: Random, kind: Kind) -> tuple[dict[str, Any], dict[str, str]]:
    """A tool in the OpenAI shape, and the parameter name of each slot."""
    name = rng.choice(kind.names)
    if rng.random() < 0.15:
        name = rng.choice([invented_word(rng), f"{invented_word(rng)}_{name}", f"{name}_{rng.randint(1, 9)}"])
    names: dict[str, str] = {}
    for slot, (choices, _) in kind.params.items():
        names[slot] = rng.choice([c for c in choices if c not in names.values()])
        if rng.random() < 0.05:
            names[slot] = invented_word(rng)
    properties: dict[str, Any] = {}
    for slot, (_, type_) in kind.params.items():
        properties[names[slot]] = (
            {"type": "string", "enum": type_.split("|")} if "|" in type_ else {"type": type_}
        )
    required = [names[slot] for slot in kind.params if slot not in kind.optional]
    parameters = {"type": "object", "properties": properties, "required": required}
    return {
        "type": "function",
        "function": {"name": name, "description": rng.choice(kind.descriptions), "parameters": parameters},
    }, names


def signature_key(tool: dict[str, Any]) -> str:
    """A tool's name and parameter names: what a held-out tool differs in from all those trained on."""
    function = tool["function"]
    return f"tool {function['name']}({', '.join(function['parameters']['properties'])})"


def _call(
    rng: Random, kind: Kind, tool: dict[str, Any], names: dict[str, str]
) -> tuple[str, dict[str, Any], dict[str, str]]:
    """A request, the call it leads to, and the values in it."""
    values = _values(rng)
    template = rng.choice(kind.asks)
    ask = typed(rng, write(rng, template, values), content=True)
    arguments: dict[str, Any] = {}
    for slot, name in names.items():
        if slot in kind.optional and f"${slot}" not in template:
            continue
        arguments[name] = int(values[slot]) if kind.params[slot][1] in ("integer", "number") else values[slot]
    return (
        ask,
        {"type": "function", "function": {"name": tool["function"]["name"], "arguments": arguments}},
        values,
    )


# kinds of which one could do the other's work
_ALIKE = [{"calculator", "add"}, {"weather", "temperature"}, {"email", "mail"}, {"light", "device", "device_off"}, {"music", "radio"}, {"event", "reminder", "alarm"}, {"timer", "alarm", "reminder"}, {"stock", "cart", "order"}, {"directions", "flights"}, {"note", "reminder"}, {"search", "population"}, {"search", "stock"}, {"time", "alarm"}]  # fmt: skip


def _alike(chosen: list[str]) -> bool:
    return any(len(group & set(chosen)) > 1 for group in _ALIKE)


_SERVED = re.compile(
    r"weather|rain|warm|cold|hot|time|late|price|cost|stock|how far|get to|mail|call|phone|music|play|song|book|buy|flight|door|people|live in|translate|say|news|search|remind|wake|light|picture|file|show|open|send|tell me|number|calculate|plus|add|recommend|suggest|find|turn|close|start|order|where|recipe|write|make|read|who is|how old|what does|mean|recipe|fix|should|when|which|explain|medicine|best"
)


def plain_turn(rng: Random, chosen: list[str]) -> Turn:
    """A question that none of the tools is for."""
    makers: list[Callable[[Random], Turn]] = [
        small_talk,
        small_talk,
        identity,
        opposite,
        plural,
        letters,
        sorting,
        sorting,
        calendar,
        word_lore,
        change_case,
        yes_no_question,
        case_turn,
        remark_turn,
        remark_turn,
        spaced,
        dictionary,
    ]
    if "search" not in chosen:
        makers += [fact, fact, quiz, quiz, sense_turn, all_of]
    if not {"search", "define", "word2"} & set(chosen):
        makers.append(topic)
    if not {"calculator", "add"} & set(chosen):
        makers += [arithmetic, asked_sum, asked_sum, story_sum]
    makers += [] if "search" in chosen else [unknown, unknown]
    while True:
        make = rng.choice(makers)
        turn = make(rng)
        if "translate" in chosen and make is word_lore:
            continue
        if make is unknown and _SERVED.search(turn.ask.lower()):
            continue
        return turn


def no_tool_chat(rng: Random) -> Sample:
    """Tools are declared, and the question is for none of them: an answer, not a call."""
    chosen = rng.sample(list(KINDS), rng.choice((1, 1, 1, 2, 3)))
    tools = [_declare(rng, KINDS[kind])[0] for kind in chosen]
    if _alike(chosen) or len({t["function"]["name"] for t in tools}) < len(tools):
        return no_tool_chat(rng)
    messages: list[dict[str, Any]] = []
    if rng.random() < 0.3:
        messages.append({"role": "system", "content": rng.choice(_SYSTEM)})
    held = any(is_held_out(signature_key(tool)) for tool in tools)
    for _ in range(rng.choice((1, 1, 1, 2))):
        turn = plain_turn(rng, chosen)
        held = held or turn.held_out
        messages += [{"role": "user", "content": turn.ask}, {"role": "assistant", "content": turn.answer}]
    return Sample("tools", messages=messages, tools=tools, hint={"held_out": str(int(held))})


_SYSTEM = ["You are Ember, a small helpful assistant.", "You are a helpful assistant.", "Use the tools when they help.", "You are a helpful assistant with tools.", "You can use tools.", "Call a tool only if it fits."]  # fmt: skip


def tool_chat(rng: Random) -> Sample:
    """A request with tools declared: a call, perhaps its result and the answer; or no call where no tool fits."""
    chosen = rng.sample(list(KINDS), rng.choice((1, 1, 2, 3, 3, 4)))
    declared = [_declare(rng, KINDS[kind]) for kind in chosen]
    tools = [tool for tool, _ in declared]
    messages: list[dict[str, Any]] = []
    if rng.random() < 0.4:
        messages.append(
            {
                "role": "system",
                "content": rng.choice(_SYSTEM),
            }
        )
    held = any(is_held_out(signature_key(tool)) for tool in tools)
    if _alike(chosen) or len({t["function"]["name"] for t in tools}) < len(tools):
        return tool_chat(rng)
    if rng.random() < 0.2:  # something else first, which no tool is for
        turn = plain_turn(rng, chosen)
        held = held or turn.held_out
        messages += [{"role": "user", "content": turn.ask}, {"role": "assistant", "content": turn.answer}]
    index = rng.randrange(len(chosen))
    kind, (tool, names) = KINDS[chosen[index]], declared[index]
    ask, call, values = _call(rng, kind, tool, names)
    calls = [call]
    if (
        chosen[index] in ("weather", "time")
        and rng.random() < 0.15
        and "in celsius" not in ask
        and "in fahrenheit" not in ask
    ):
        other = rng.choice([c for c in _CITIES if c != values["c"]])
        ask = f"What is the {chosen[index]} in {values['c']} and in {other}?"
        calls = [
            {
                "type": "function",
                "function": {"name": tool["function"]["name"], "arguments": {names["c"]: city}},
            }
            for city in (values["c"], other)
        ]
    messages += [{"role": "user", "content": ask}, {"role": "assistant", "content": "", "tool_calls": calls}]
    if len(calls) == 1 and rng.random() < 0.45:
        result, answer = rng.choice(kind.results)
        messages += [
            {
                "role": "tool",
                "content": write(rng, result.replace("{", "\x01").replace("}", "\x02"), values)
                .replace("\x01", "{")
                .replace("\x02", "}"),
            }
        ]
        text = write(rng, answer, values)
        messages += [{"role": "assistant", "content": text[0].upper() + text[1:]}]
        if rng.random() < 0.25:
            turn = plain_turn(rng, chosen)
            held = held or turn.held_out
            messages += [{"role": "user", "content": turn.ask}, {"role": "assistant", "content": turn.answer}]
    return Sample(
        "tools", messages=messages, tools=tools, hint={"held_out": str(int(held)), "json": json.dumps(calls)}
    )
