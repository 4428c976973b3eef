# ruff: noqa: E501, SIM905 - lines of text and word lists read better whole
"""What a tool found: a question about an invoice, a bus or a team, the call, a result of any fields, and an answer to what was asked."""

from __future__ import annotations

import json
from random import Random
from typing import Any, NamedTuple

from . import lexicon
from .errands import _value, any_title
from .grammar import write
from .requests import _conflict, _pick, signature_key
from .sample import Message, Sample, is_held_out
from .settings import setting
from .tasks import listing
from .typed import typed
from .words import invented_word


class Part(NamedTuple):
    """A field: its possible keys, its kind of value, how it is asked for, how it is said; "$e" is the thing, "$v" the value."""

    keys: str
    kind: str
    asks: str
    says: str


def _part(keys: str, kind: str, asks: str, says: str = "The $k is $v.") -> Part:
    return Part(keys, kind, asks, says)


_BUSY = [
    _part("leaves departs departure departure_time", "clock", "{when|at what time|what time} does $e {leave|depart|go}|when is the departure of $e", "It leaves at $v."),
    _part("arrives arrival arrival_time eta", "clock", "{when|at what time} does $e arrive|when {is $e here|will $e be here}", "It arrives at $v."),
    _part("platform track gate", "few", "{which|what} $k does $e {leave from|go from}|from {which|what} $k does $e leave|what is the $k of $e"), _part("destination to goal", "city", "where does $e go|where is $e going|what is the destination of $e", "It goes to $v."),
    _part("delay delay_minutes minutes_late", "few", "{how late is $e|how much delay has $e|is $e late}", "It is $v minutes late."), _part("stops number_of_stops", "few", "how many stops does $e {have|make}", "It makes $v stops."),
    _part("cancelled canceled", "bool", "{is|was} $e cancelled", "cancelled"), _part("on_time", "bool", "is $e on time", "on time"), _part("seats free_seats seats_left", "few", "how many {free |}seats {are there in|are left in|has} $e", "There are $v seats."),
]  # fmt: skip
_GOODS = [
    _part("price cost", "price", "{how much is|what does|how much does} $e{ cost|}|{what is the price of|price of} $e", "It costs $v."), _part("count stock in_stock quantity available left", "few", "how many {of |}$e {are there|do you have|are left|are in stock}|how many are left of $e", "There are $v."),
    _part("in_stock available", "bool", "{is|are} $e {in stock|available|there}|do {you|we} have $e", "in stock"), _part("color colour", "color", "{what|which} color {is|has} $e|what is the color of $e", "It is $v."), _part("size", "size", "{what|which} size is $e|how big is $e", "The size is $v."),
    _part("weight weight_kg", "few", "how heavy is $e|what does $e weigh", "It weighs $v kilograms."), _part("brand maker made_by", "word", "{which|what} brand is $e|who makes $e", "It is made by $v."), _part("shelf aisle", "shelf", "{on|in} which $k is $e|where is $e", "It is in $k $v."),
    _part("rating stars", "few", "how {good|well rated} is $e|how many stars has $e", "It has $v stars."), _part("discount discount_percent", "few", "{is there a|how big is the} discount on $e", "The discount is $v percent."), _part("sold_out", "bool", "is $e sold out", "sold out"),
]  # fmt: skip
_PAPERS = [
    _part("customer client buyer", "person", "who is the $k of $e|{which|what} $k is $e for|whose is $e"), _part("total amount sum", "price", "{how much is|what is the $k of|how high is} $e"), _part("due due_date pay_by", "date", "when {is $e due|must I pay $e|do I have to pay $e}", "It is due on $v."),
    _part("paid", "bool", "{is $e paid|did they pay $e|has anybody paid $e}", "paid"), _part("status state", "status", "what is the $k of $e|how is it with $e", "The $k is $v."), _part("items positions articles", "list", "what {is on|is in|belongs to} $e", "The $k are $v."),
    _part("sent delivered shipped", "bool", "{has $e been $k|is $e $k|was $e $k}", "$k"), _part("town city", "city", "in {which|what} {town|city} is $e|where is $e", "It is in $v."), _part("author written_by", "person", "who wrote $e", "It is by $v."), _part("pages", "few", "how many pages has $e", "It has $v pages."), _part("signed", "bool", "{is|was} $e signed", "signed"), _part("address", "place", "to {which|what} address does $e go|where does $e go", "The address is $v."),
]  # fmt: skip
_FOLK = [
    _part("day appointment visit", "day", "{on what day|on which day|when} {is the appointment of $e|does $e come|is $e here}", "It is on $v."), _part("time at", "clock", "{at what time|when} {does $e come|is $e there|is the appointment of $e}", "It is at $v."), _part("doctor teacher coach boss manager", "person", "who is the $k of $e|{which|what} $k does $e have", "The $k is $v."),
    _part("age years", "few", "how old is $e|what is the age of $e", "The age is $v."), _part("room office seat table", "few", "in {which|what} $k is $e|what is the $k of $e|which $k has $e", "The $k is $v."), _part("phone phone_number extension", "phone", "what is the {number|phone number} of $e|how can I call $e", "The number is $v."),
    _part("email mail", "mail", "what is the {email|mail address} of $e|where can I write to $e", "The address is $v."), _part("city town home", "city", "where does $e live|in which city is $e", "It is $v."), _part("job position role", "job", "what {does $e do|is the $k of $e}|what does $e work as", "The $k is $v."), _part("birthday born", "date", "when is the birthday of $e|when was $e born", "It is on $v."),
    _part("active member registered present", "bool", "is $e $k", "$k"), _part("grade points score", "few", "how many points has $e|what is the $k of $e", "The $k is $v."), _part("allergies languages hobbies", "list", "what $k has $e|which $k are there for $e", "The $k are $v."), _part("salary bonus", "big", "what is the $k of $e", "The $k is $v."),
]  # fmt: skip
_SPOTS = [
    _part("opens open_from opening", "clock", "when does $e open|{at what time|from when} is $e open", "It opens at $v."), _part("closes open_until closing", "clock", "when does $e close|until when is $e open", "It closes at $v."), _part("open open_now", "bool", "is $e open{ now|}", "open"),
    _part("address street", "place", "where is $e|what is the address of $e", "It is at $v."), _part("phone telephone", "phone", "what is the phone number of $e|how can I call $e", "The number is $v."), _part("rooms beds tables", "few", "how many $k {has $e|are there in $e}", "There are $v $k."), _part("price_per_night entry fee", "price", "what does {it cost at $e|$e cost}|how much is $e", "It costs $v."),
    _part("temperature temp", "few", "how {warm|cold} is it {at|in} $e|what is the temperature {at|in} $e", "It is $v degrees."), _part("weather sky", "sky", "how is the weather {at|in} $e|what is the weather like {at|in} $e", "It is $v."), _part("sunrise", "clock", "when does the sun rise {at|in} $e|when is sunrise {at|in} $e", "The sun rises at $v."), _part("sunset", "clock", "when does the sun set {at|in} $e|until when is it light {at|in} $e", "The sun sets at $v."),
    _part("distance distance_km km", "few", "how far is {it to |}$e", "It is $v kilometers."), _part("rating stars", "few", "how good is $e|how many stars has $e", "It has $v stars."), _part("people visitors inhabitants population", "big", "how many $k has $e|how many people are there in $e", "There are $v."), _part("free vacant", "bool", "is $e free|is there room {at|in} $e", "free"), _part("parking wifi pool garden", "bool", "{is there|do they have} $k {at|in} $e", "there is $k"),
]  # fmt: skip
_GEAR = [
    _part("battery charge level percent", "few", "how full is {the battery of |}$e|what is the battery of $e|how much battery has $e|is $e charged|is $e full|does $e need charging|must I charge $e|will $e last until the evening|how much is left in $e|how much charge has $e", "It is at $v percent."), _part("charging connected online running locked on", "bool", "is $e $k", "$k"), _part("temperature temp degrees", "few", "how {hot|warm|cold} is $e|what is the temperature of $e", "It is $v degrees."),
    _part("status state", "status", "what is the $k of $e|what {is the matter with|does} $e{ do|}", "The $k is $v."), _part("version firmware", "version", "{which|what} $k has $e|what is the $k of $e"), _part("minutes_left remaining remaining_minutes", "few", "how long does $e {still |}{take|need}|when is $e {done|finished}", "It takes $v more minutes."), _part("room location", "room", "where is $e|in which room is $e", "It is in the $v."), _part("owner user", "person", "whose is $e|who is the $k of $e", "The $k is $v."), _part("errors warnings", "few", "how many $k {has $e|are there}", "There are $v $k."), _part("speed rpm", "few", "how fast is $e", "The $k is $v."), _part("last_service built", "date", "when was $e {last checked|built}", "It was on $v."),
]  # fmt: skip
_SHOWS = [
    _part("starts start begins start_time", "clock", "when does $e {start|begin}|{at what time|when} is $e", "It starts at $v."), _part("hall room stage", "few", "in {which|what} $k is $e|which $k is $e in", "It is in $k $v."), _part("minutes duration length runtime", "few", "how long {is|does} $e{ last|}|how many minutes has $e", "It takes $v minutes."), _part("day date", "day", "{on which day|when|on what day} is $e", "It is on $v."),
    _part("director singer actor by artist", "person", "who is the $k of $e|who {made|plays in} $e", "It is by $v."), _part("tickets seats_left free_seats", "few", "how many {tickets|seats} are {left|there} for $e", "There are $v."), _part("ticket_price price", "price", "what does {a ticket for |}$e cost|how much is $e", "It costs $v."), _part("language", "language", "in {which|what} language is $e", "It is in $v."), _part("age age_limit from_age", "few", "from what age is $e|how old must I be for $e", "It is for ages $v and up."), _part("sold_out", "bool", "is $e sold out", "sold out"), _part("year released", "year", "{from when|how old|of what year} is $e|when did $e come out", "It is from $v."),
    _part("winner first_place", "person", "who won $e", "$v won."), _part("score result", "score", "how did $e {play|end}|what is the score of $e", "The $k is $v."), _part("opponent against", "word", "who did $e play against|against whom did $e play", "It was against $v."),
]  # fmt: skip


_LOANS = [
    _part("due due_date return_by bring_back back_by", "date", "when {must|does} $e {have to |}bring {it|the book|his book|her book|the film} back|until when may $e keep {it|the book}|when is the {book|loan|film} of $e due|{when|by when} {must|should} $e return {it|the book}|what is the last day for $e", "It is due on $v."), _part("book title item film", "title", "which $k does $e have|what has $e borrowed|what did $e {borrow|take home}", "It is $v."), _part("fee fine open_fees", "price", "what does $e have to pay|does $e owe {us |}anything|how high is the $k of $e", "The $k is $v."), _part("renewed extended", "bool", "{has $e|did $e} {extend|renew} it|is it $k for $e", "$k"), _part("books items loans", "few", "how many $k does $e have|how many $k has $e got", "There are $v $k."), _part("member_since joined since", "date", "since when is $e a member|when did $e join", "It was $v."), _part("branch library_branch", "city", "at which branch is $e|where does $e borrow", "It is $v."), _part("overdue late", "bool", "is $e {late|too late}|is the book of $e {late|overdue}", "$k"),
]  # fmt: skip
_TRIPS = [
    _part("pickup pickup_time picked_up_at", "clock", "when {is $e picked up|will they fetch $e|do they come for $e}", "The pickup is at $v."), _part("driver guide pilot", "person", "who {drives|takes|brings} $e|who is the $k of $e", "The $k is $v."), _part("passengers people guests", "few", "how many $k {are on|has|are there on} $e", "There are $v $k."), _part("meeting_point starts_at start_place", "place", "where does $e start|where do we meet for $e|what is the meeting point of $e", "It is at $v."), _part("lasts hours duration_hours", "few", "how long {is|does} $e{ take|}|how many hours is $e", "It takes $v hours."), _part("full fully_booked sold_out", "bool", "is $e {full|sold out|booked out}", "$k"), _part("price fare per_person", "price", "what does $e cost|how much is $e|what do I pay for $e", "It costs $v."), _part("language languages", "list", "in {which|what} language is $e|which languages are there on $e", "The $k are $v."),
]  # fmt: skip


class Thing(NamedTuple):
    """A sort of thing that one can look up: tools, parameter names, how it is named, its number or name, and its fields."""

    tools: str
    about: str
    names: str
    said: str
    value: str
    parts: list[Part]


_DISH = [
    _part("minutes cooking_time time_needed", "few", "how long does $e take|how many minutes does $e need", "It takes $v minutes."), _part("servings portions", "few", "for how many {people|persons} is $e", "It is for $v people."), _part("ingredients", "list", "what {is in|do I need for} $e", "You need $v."), _part("calories kcal", "few", "how many calories has $e", "It has $v calories."), _part("vegan vegetarian", "bool", "is $e $k", "$k"), _part("difficulty level", "status2", "how {hard|difficult} is $e", "It is $v."), _part("degrees oven", "few", "how hot must the oven be for $e", "It needs $v degrees."),
]  # fmt: skip
_RATE = [_part("rate result value amount", "decimal", "what is $e|how much is $e|how much do I get for $e", "It is $v."), _part("change trend", "word", "how did $e change", "The $k is $v."), _part("updated date as_of", "date", "how new is $e", "It is from $v.")]  # fmt: skip
THINGS: list[Thing] = [
    Thing("get_loan loan_info member_loans library_account borrowed", "What a member has borrowed", "member/name/person/reader", "{$v|Mr $v|Mrs $v}", "person", _LOANS), Thing("get_tour tour_info trip_info excursion", "Look up a tour", "tour/title/name", "{the tour |}$v", "title", _TRIPS),
    Thing("get_bus bus_times bus_info next_bus", "When a bus leaves", "line/bus/number/bus_line", "{bus|the bus|line} $v", "few", _BUSY), Thing("get_train train_status train_info lookup_train", "Look up a train", "train/number/train_number", "{train|the train} $v", "code", _BUSY), Thing("get_flight flight_status flight_info", "The status of a flight", "flight/flight_number/number", "{flight|the flight} $v", "code", _BUSY), Thing("ferry_times get_ferry ship_status", "When a ship leaves", "ship/name/ferry", "{the ferry|the ship} $v", "title", _BUSY),
    Thing("get_product lookup_item check_stock product_info find_article", "Look up a product", "item/product/article/name", "the $v", "goods", _GOODS), Thing("check_price get_price price_of", "The price of an article", "article/item/product", "the $v", "goods", _GOODS[:4]), Thing("get_invoice show_invoice invoice_status find_invoice", "Show an invoice", "invoice_id/number/id/invoice", "invoice $v", "id", _PAPERS), Thing("get_order order_info lookup_order order_status", "Look up an order", "order_id/number/order", "{order|my order} $v", "code", _PAPERS), Thing("track_parcel parcel_status find_package", "Say where a parcel is", "parcel_number/code/number/tracking_id", "{parcel|my parcel|package} $v", "code", _PAPERS), Thing("get_contract find_document document_info", "Look up a document", "document/number/id", "{contract|document} $v", "code", _PAPERS),
    Thing("get_patient patient_info find_patient", "Read a patient's appointment", "name/patient/patient_name", "$v", "person", _FOLK), Thing("get_student student_info find_pupil", "Look up a student", "student/name/pupil", "$v", "person", _FOLK), Thing("get_employee staff_lookup find_colleague employee_info", "Look up an employee", "employee/name/who", "$v", "person", _FOLK), Thing("get_member member_info find_guest", "Look up a member of the club", "member/name/guest", "$v", "person", _FOLK),
    Thing("get_shop shop_info place_info opening_hours", "Information about a place", "shop/place/name", "{the $v|$v}", "shop", _SPOTS), Thing("get_hotel hotel_info find_hotel", "Look up a hotel", "hotel/name", "{the hotel $v|Hotel $v}", "title", _SPOTS), Thing("get_park park_info visit_info", "Information about a park", "park/place/name", "{$v Park|the park $v}", "title", _SPOTS), Thing("city_info get_city weather_at", "Look up a city", "city/place/town", "$v", "city", _SPOTS), Thing("room_info get_room check_room", "Look up a room", "room/room_number/number", "room $v", "few", _SPOTS[:1] + _SPOTS[5:8] + _SPOTS[14:]),
    Thing("get_device device_status get_battery device_info", "The state of a device", "device/name/what", "{my|the} $v", "gear", _GEAR), Thing("get_machine machine_status check_machine", "The state of a machine", "machine/id/number", "machine $v", "code", _GEAR), Thing("get_server server_status check_server", "The state of a server", "server/host/name", "{the server |server }$v", "word", _GEAR), Thing("car_info get_car vehicle_status", "The state of a car", "car/vehicle/plate", "{car|the car} $v", "code", _GEAR),
    Thing("find_movie movie_info get_film cinema", "Look up a film", "title/film/movie", "{$v|\"$v\"|the film $v|the film \"$v\"}", "title", _SHOWS[:11]), Thing("get_concert concert_info show_event event_info", "Look up a concert", "event/title/name", "{the concert |the show |}$v", "title", _SHOWS[:10]), Thing("get_match match_info get_score team_result", "The last result of a team", "team/club/name", "{the $v|$v}", "team", _SHOWS[11:]), Thing("get_book book_info lookup_book find_book", "Look up a book", "title/book/name", "{$v|\"$v\"|the book $v}", "title", [*_PAPERS[8:10], _SHOWS[7], _SHOWS[10], *_GOODS[:3]]),
    Thing("find_recipe get_recipe recipe_info", "Look up a recipe", "dish/name/recipe", "{the |}$v", "dish", _DISH), Thing("get_rate exchange_rate currency_rate stock_price", "The rate of a currency", "currency/symbol/code", "{the |}$v", "money", _RATE),
]  # fmt: skip


def _named(rng: Random, kind: str) -> str:
    """What identifies a thing."""
    match kind:
        case "id":
            return str(rng.randint(10, 99999))
        case "few":
            return str(rng.randint(1, 400))
        case "goods":
            first = rng.choice([*lexicon.COLORS, *lexicon.QUALITIES])
            return (
                f"{first} {rng.choice(lexicon.THINGS)}" if rng.random() < 0.6 else rng.choice(lexicon.THINGS)
            )
        case "shop":
            return rng.choice(
                [
                    rng.choice(lexicon.PLACES),
                    f"{rng.choice(lexicon.SURNAMES)} {rng.choice(lexicon.PLACES)}",
                    any_title(rng),
                ]
            )
        case "gear":
            return rng.choice(
                "phone laptop tablet robot watch camera drone oven fridge car bike headphones vacuum thermostat lamp scooter printer speaker heater pump washing_machine dishwasher boiler".split()
            ).replace("_", " ")
        case "team":
            return rng.choice(
                [
                    lexicon.anywhere(rng),
                    f"{lexicon.anywhere(rng)} United",
                    *(f"{rng.choice(lexicon.CREATURES).capitalize()}s" for _ in range(2)),
                ]
            )
        case "dish":
            return rng.choice(
                [
                    f"{rng.choice(lexicon.FOODS)} {rng.choice(('soup', 'pie', 'cake', 'salad', 'stew', 'curry'))}",
                    rng.choice(lexicon.FOODS),
                ]
            )
        case "money":
            return rng.choice("euro dollar pound yen franc USD EUR GBP JPY CHF SEK".split())
        case _:
            return str(_found(rng, kind))


def _found(rng: Random, kind: str) -> Any:
    """A value of a result."""
    match kind:
        case "few":
            return rng.choice((rng.randint(1, 12), rng.randint(1, 99), rng.randint(1, 400)))
        case "price":
            return rng.choice(
                [
                    rng.randint(1, 999),
                    f"{rng.randint(1, 200)} {rng.choice(('euros', 'dollars', 'pounds'))}",
                    round(rng.randint(100, 20000) / 100, 2),
                ]
            )
        case "decimal":
            return round(rng.randint(10, 20000) / 100, rng.choice((1, 2)))
        case "bool":
            return rng.random() < 0.5
        case "date":
            return rng.choice(
                [
                    f"{rng.randint(1, 28)} {rng.choice(('May', 'June', 'March', 'April', 'October', 'July'))}",
                    f"20{rng.randint(20, 35)}-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}",
                    _value(rng, "day"),
                ]
            )
        case "size":
            return rng.choice(["small", "large", "M", "XL", rng.randint(30, 48)])
        case "shelf":
            return rng.choice([f"{rng.choice('ABCDEF')}{rng.randint(1, 20)}", rng.randint(1, 60)])
        case "mail":
            return f"{invented_word(rng)}@{rng.choice(('example.com', 'mail.com', 'post.org'))}"
        case "job":
            return rng.choice(lexicon.PEOPLE)
        case "room":
            return rng.choice("kitchen bathroom bedroom hall garage office attic cellar garden".split())
        case "version":
            return f"{rng.randint(0, 20)}.{rng.randint(0, 9)}"
        case "language":
            return rng.choice(lexicon.LANGUAGES)
        case "year":
            return rng.randint(1950, 2026)
        case "status2":
            return rng.choice(("easy", "medium", "hard", "simple"))
        case _:
            return _value(rng, kind)


def said(part: Part, key: str, value: Any) -> str:
    """The sentence that tells a field: yes or no for a flag, else what it is."""
    name = key.replace("_", " ")
    if part.kind == "bool":
        state = part.says.replace("$k", name)
        if state.startswith("there is"):
            return f"Yes, {state}." if value else f"No, there is no {name}."
        return f"Yes, it is {state}." if value else f"No, it is not {state}."
    shown = listing([str(v) for v in value]) if isinstance(value, list) else str(value)
    text = part.says.replace("$v", shown).replace("$k", name)
    return text[0].upper() + text[1:]


def _any_part(rng: Random) -> Part:
    """A field of any name, with any value."""
    key = rng.choice(
        [
            rng.choice(lexicon.IDEAS),
            rng.choice(lexicon.NOUN_LIKE),
            f"{rng.choice(lexicon.COMMON)}_{rng.choice(lexicon.IDEAS)}",
            invented_word(rng),
        ]
    )
    return Part(
        key,
        rng.choice(("word", "few", "person", "city", "day", "clock", "title", "color", "big", "code")),
        "what is the $k of $e|{tell me|give me} the $k of $e|which $k has $e|$k of $e",
        "The $k is $v.",
    )


_SHOW = "{show me|look up|what about|tell me about|what do you know about|check|find|information about|I need to know about|what can you tell me about} $e"
_ASKED = [
    "",
    "",
    "",
    "",
    "please tell me: ",
    "can you tell me: ",
    "I'd like to know: ",
    "quick question: ",
    "sorry to bother you, but ",
    "hello, ",
    "my boss asks: ",
    "I forgot, ",
]
_AFTER = [
    "",
    "",
    "",
    "",
    "",
    " I need to know.",
    " Thanks!",
    " Please.",
    " It is urgent.",
    " I hope it is not too late.",
    " My wife wants to know.",
    " I have to plan.",
]


def _nested(rng: Random, result: dict[str, Any], echo: str) -> dict[str, Any]:
    """Return the result's fields; some results have them in an object of their own."""
    if rng.random() < 0.12 and len(result) > 1:
        rest = {k: v for k, v in result.items() if k != echo}
        return ({echo: result[echo]} if echo in result else {}) | {
            rng.choice(("data", "result", "info", "details")): rest
        }
    return result


def lookup_chat(rng: Random) -> Sample:
    """A question about one or two fields of a thing, the call, what was found, and the answer to that question alone."""
    thing = rng.choice(THINGS)
    name = rng.choice(thing.tools.split())
    parameter = rng.choice(thing.names.split("/"))
    value = _named(rng, thing.value)
    number = value.isdigit() and rng.random() < 0.7
    function = {
        "name": name,
        "description": thing.about + rng.choice((".", "")),
        "parameters": {
            "type": "object",
            "properties": {parameter: {"type": "integer" if number else "string"}},
            "required": [parameter],
        },
    }
    tools = [{"type": "function", "function": function}]
    if rng.random() < 0.4:
        others = [
            t
            for t in _pick(rng)[:3]
            if not _conflict([t.kind, "search"]) and t.declared["function"]["name"] != name
        ]
        tools = [*tools, *(t.declared for t in others if not set(t.kind.split()) & set(name.split("_")))]
        rng.shuffle(tools)
    parts = rng.sample(thing.parts, min(len(thing.parts), rng.choice((1, 2, 3, 3, 4))))
    parts += [_any_part(rng) for _ in range(rng.choice((0, 0, 1, 1, 2)))]
    rng.shuffle(parts)
    fields: dict[str, tuple[Part, Any]] = {}
    for part in parts:
        key = rng.choice(part.keys.split())
        if key != parameter and key not in fields:
            fields[key] = (part, _found(rng, part.kind))
    if not fields:  # all that was drawn has the parameter's name
        return lookup_chat(rng)
    result: dict[str, Any] = {parameter: int(value) if number else value} if rng.random() < 0.65 else {}
    result |= {key: v for key, (_, v) in fields.items()}
    entity = write(rng, thing.said, {"v": value})
    keys = list(fields)
    draw = rng.random()
    if draw < 0.72 or len(keys) == 1:
        asked = [rng.choice(keys)]
        ask = write(rng, f"{{{fields[asked[0]][0].asks}}}", {"e": entity, "k": asked[0].replace("_", " ")})
    elif draw < 0.86:
        asked = rng.sample(keys, 2)
        names = [k.replace("_", " ") for k in asked]
        ask = write(
            rng,
            "{What are the $a and the $b of $e|tell me the $a and the $b of $e|I need the $a and the $b of $e|$e: $a and $b}",
            {"a": names[0], "b": names[1], "e": entity},
        )
        if rng.random() < 0.5:
            one, two = (
                write(rng, f"{{{fields[k][0].asks}}}", {"e": e, "k": n})
                for k, n, e in zip(asked, names, (entity, "it"), strict=True)
            )
            ask = f"{one} and {two}"
    else:
        asked = keys[:3]
        ask = write(rng, _SHOW, {"e": entity})
        fields = {k: fields[k] for k in asked}
        result = {k: v for k, v in result.items() if k in fields or k == parameter}
    question = ask.split()[0].lower() not in (
        "show",
        "look",
        "tell",
        "check",
        "find",
        "information",
        "i",
        "give",
        entity.split()[0].lower(),
    )
    ask = rng.choice(_ASKED) + ask + ("?" if question else rng.choice((".", "", "?")))
    ask = ask[0].upper() + ask[1:] if rng.random() < 0.75 else ask
    ask = (
        typed(rng, ask, content=True)
        if rng.random() < 0.15
        else ask + (rng.choice(_AFTER) if ask[-1] in "?." else "")
    )
    messages: list[Message] = []
    if rng.random() < 0.2:
        messages.append(
            {
                "role": "system",
                "content": rng.choice(
                    ["Use the tools when they help.", "You answer the phone.", setting(rng)]
                ),
            }
        )
    call = {
        "type": "function",
        "function": {"name": name, "arguments": {parameter: int(value) if number else value}},
    }
    messages += [{"role": "user", "content": ask}, {"role": "assistant", "content": "", "tool_calls": [call]}]
    if rng.random() < 0.07:
        why = rng.choice(["not found", "unknown", "no connection", "no such entry", "timeout"])
        messages += [
            {"role": "tool", "content": json.dumps({"error": why})},
            {"role": "assistant", "content": f"I am sorry, that did not work: {why}."},
        ]
    else:
        content = json.dumps(_nested(rng, result, parameter), ensure_ascii=False)
        messages += [
            {"role": "tool", "content": content},
            {"role": "assistant", "content": " ".join(said(fields[k][0], k, fields[k][1]) for k in asked)},
        ]
        rest = [k for k in keys if k not in asked and k in result]
        if rest and rng.random() < 0.25:
            k = rng.choice(rest)
            more = write(rng, f"{{{fields[k][0].asks}}}", {"e": "it", "k": k.replace("_", " ")})
            more = rng.choice(["And ", "Thanks. And ", "", "OK, and "]) + more + "?"
            messages += [
                {"role": "user", "content": more[0].upper() + more[1:]},
                {"role": "assistant", "content": said(fields[k][0], k, fields[k][1])},
            ]
    held = any(is_held_out(signature_key(t)) for t in tools)
    return Sample("tools", messages=messages, tools=tools, hint={"held_out": str(int(held))})
