# ruff: noqa: E501, SIM905 - lines of text and word lists read better whole
"""Tools without end: what is done to what, with parameters of every type, put together by chance.

A slot is a parameter: ``CHOICES`` are choices among given values, ``SWITCHES`` are true or false, the others are drawn by
``requests.values``. ``PARTS`` says how a slot is named in a declaration and how a request says it: before the thing ("a large pizza"),
after it ("with mushrooms"), or with its label ("topping: mushrooms").
"""

from __future__ import annotations

from functools import cache
from random import Random
from typing import NamedTuple

from . import lexicon
from .actions import Action
from .tasks import plural_of
from .words import invented_word

# slot: sets of values, of which a tool has one; a value may be said in other words after a "="
CHOICES: dict[str, list[str]] = {
    "size": ["small medium=middle-sized large=big", "small=little big=large", "small medium large=big huge=giant", "S M L XL", "small=little large=big", "single double triple", "mini normal=regular maxi", "short tall", "tiny=very_small small medium large=big"],
    "priority": ["low high", "low medium high", "low normal high urgent", "normal urgent", "minor major critical", "high medium low", "P1 P2 P3"],
    "mode": ["eco normal turbo", "auto manual", "quiet normal strong", "day night", "heat cool fan", "easy hard", "slow fast", "home away", "eco intensive quick", "summer winter", "silent loud", "draft final", "gentle normal heavy", "private public"],
    "speed": ["slow=slowly fast=quickly", "slow medium fast", "low medium high", "slow normal fast turbo"],
    "direction": ["left right", "up down", "forward=forwards backward=backwards left right", "north south east west", "in out", "forward back left right", "clockwise counterclockwise", "up down left right"],
    "state": ["on off", "open closed", "locked unlocked", "on off auto", "active inactive", "online offline"],
    "format": ["pdf docx txt", "json csv", "mp3 wav", "png jpg", "html markdown", "pdf html", "csv xlsx json", "mp4 avi"],
    "seat": ["window aisle", "window middle aisle", "front back", "balcony floor"],
    "travel_class": ["economy business first", "first second", "economy business", "standard premium"],
    "payment": ["cash card", "card invoice", "cash card voucher", "credit debit"],
    "vehicle": ["car bike train", "car bike foot bus", "bus train", "car boat plane", "taxi bus tram"],
    "spice": ["mild medium hot", "mild hot", "mild spicy"],
    "crust": ["thin thick", "thin thick stuffed", "soft crispy"],
    "doneness": ["rare medium well-done", "soft hard", "light dark"],
    "meal": ["breakfast lunch dinner", "lunch dinner", "breakfast lunch dinner snack"],
    "period": ["day week month", "day week month year", "week month", "hour day"],
    "level": ["beginner intermediate advanced", "beginner advanced", "junior senior", "easy medium hard"],
    "kind": ["bug feature question", "question complaint order", "work private", "income expense", "news sports music", "cat dog bird", "indoor outdoor", "red white", "house flat", "hot cold", "sparkling still", "vegan meat fish", "sweet salty", "single double"],
    "shade": ["red green blue", "black white", "red yellow green blue", "warm cold", "black white gray silver", "gold silver"],
    "unit": ["celsius fahrenheit"],
    "measure_unit": ["km miles", "kg pounds", "cm inches", "meters feet", "liters gallons", "minutes hours", "euros dollars"],
    "style": ["modern classic", "formal casual", "short long", "bold plain", "funny serious", "simple detailed", "matte glossy"],
}  # fmt: skip
# slot: (names, how it is said if it is so, how if it is not)
SWITCHES: dict[str, tuple[str, str, str]] = {
    "express": ("express/fast/rush/urgent_delivery", "{by express|express|with express delivery}", "{without express|no express|not by express}"),
    "wrap": ("gift_wrap/wrapped/gift/as_gift", "{gift wrapped|with gift wrap|wrapped as a gift}", "{without gift wrap|no gift wrap|not wrapped}"),
    "insurance": ("insurance/insured/with_insurance", "{with insurance|insured|insurance included}", "{without insurance|no insurance}"),
    "morning_meal": ("breakfast/with_breakfast/breakfast_included", "{with breakfast|breakfast included}", "{without breakfast|no breakfast}"),
    "sugar": ("sugar/with_sugar/sweet/sweetened", "{with sugar|and sugar}", "{without sugar|no sugar}"),
    "ice": ("ice/with_ice/iced", "{with ice|on ice}", "{without ice|no ice}"),
    "cheese": ("extra_cheese/cheese/double_cheese", "{with extra cheese|and extra cheese}", "{without extra cheese|no extra cheese}"),
    "back": ("return/round_trip/return_ticket/both_ways", "{and back|round trip|with the way back|return}", "{one way|only one way|without return}"),
    "notify": ("notify/notification/send_notification/alert", "{and notify me|with a notification|and let me know}", "{without notification|don't notify anyone|without an alert}"),
    "loop": ("repeat/loop/again/recurring", "{on repeat|in a loop|again and again}", "{only once|without repeat|once}"),
    "secret": ("private/hidden/secret/confidential", "{as private|privately|in private}", "{as public|publicly|not private}"),
    "colored": ("color/in_color/colour", "{in color|with color}", "{in black and white|without color}"),
    "both_sides": ("double_sided/both_sides/duplex", "{on both sides|double-sided}", "{on one side|single-sided}"),
    "helmet": ("helmet/with_helmet/include_helmet", "{with a helmet|helmet included}", "{without a helmet|no helmet}"),
}  # fmt: skip


class Part(NamedTuple):
    names: str
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


def _part(names: str, before: str = "", after: str = "") -> Part:
    return Part(names, tuple(filter(None, before.split("|"))), tuple(filter(None, after.split("|"))))


PARTS: dict[str, Part] = {
    "size": _part("size/size_name/portion/cup_size/how_big", "$size|$size|$size-size", "in size $size|in $size|size $size"), "priority": _part("priority/urgency/level/prio/importance/severity", "$priority priority|$priority-priority|$priority", "with $priority priority|priority $priority|with priority $priority|as $priority priority"), "mode": _part("mode/setting/program/cycle/profile", "", "in $mode mode|in the $mode mode|on $mode|mode $mode|with mode $mode"),
    "speed": _part("speed/pace/tempo/velocity", "", "at $speed speed|with $speed speed|speed $speed"), "format": _part("format/file_type/type/output_format/extension", "$format", "as $format|in $format format|as a $format file|to $format"), "seat": _part("seat/seat_type/place/preference", "$seat-seat|$seat", "in the $seat|$seat seat|with a $seat seat"), "travel_class": _part("class/travel_class/ticket_class/category/fare", "$travel_class class", "in $travel_class class|$travel_class class"),
    "payment": _part("payment/pay_by/payment_method/method", "", "paid by $payment|by $payment|I pay by $payment|with payment by $payment"), "vehicle": _part("by/vehicle/transport/means/mode_of_transport", "", "by $vehicle|with the $vehicle"), "spice": _part("spice/heat/spiciness/spice_level", "$spice", "$spice"), "crust": _part("crust/crust_type/base/dough", "$crust crust", "with a $crust crust|with $crust crust|on a $crust crust"), "doneness": _part("doneness/cooked/roast/how", "$doneness", "$doneness|cooked $doneness"), "meal": _part("meal/meal_type/course/when", "", "for $meal"),
    "level": _part("level/difficulty/experience/course_level", "$level", "at $level level|for $level level|level $level"), "kind": _part("type/kind/category/sort/variety", "$kind", "of the type $kind|type $kind|of type $kind"), "shade": _part("color/colour/shade/finish", "$shade", "in $shade|color $shade"), "style": _part("style/design/tone/look", "$style", "in $style style|in a $style style|style $style"), "state": _part("state/status/position/value", "", "to $state"), "period": _part("period/per/interval/range/timeframe", "", "for the $period|for one $period|of this $period"), "direction": _part("direction/way/heading/where_to", "", "$direction|to the $direction"),
    "count": _part("quantity/count/amount/number/how_many/copies/pieces", "$count"), "food": _part("topping/with/filling/flavor/extra/sauce/ingredient/side", "$food", "with $food|with extra $food|and $food|with some $food on it"), "drink": _part("drink/beverage/with_drink", "", "with $drink|and $drink"), "person": _part("name/person/customer/assignee/for/owner/guest/client/recipient/contact", "", "for $person|for $person"), "city": _part("city/destination/town/location/to/place", "", "in $city|in $city"), "goal": _part("destination/to/target_city/city/goal", "", "to $city"),
    "place": _part("place/location/address/room/where/site", "", "at the $place|in the $place|near the $place"), "room": _part("room/area/zone/where/location", "$room", "in the $room|for the $room"), "day": _part("day/date/when/on/weekday", "", "on $day|for $day"), "time": _part("time/at/start_time/when/hour/starts_at", "", "at $time|for $time"), "people": _part("people/guests/persons/party_size/seats/passengers", "", "for $people|for $people people|for $people persons"), "nights": _part("nights/days/stay/length_of_stay", "", "for $nights nights"), "minutes": _part("minutes/duration/length/time_in_minutes/for", "$minutes minute", "for $minutes minutes|$minutes minutes long|$minutes min"),
    "hours": _part("hours/duration/length_hours/for_hours", "$hours hour", "for $hours hours|of $hours hours"), "degrees": _part("degrees/temperature/temp/heat/celsius", "", "at $degrees degrees|to $degrees degrees|with $degrees degrees"), "percent": _part("percent/level/percentage/amount/value", "$percent percent", "at $percent percent|to $percent%|to $percent percent"), "budget": _part("max_price/budget/limit/price/price_limit", "", "for up to $budget euros|under $budget euros|for at most $budget dollars|not over $budget euros"), "big": _part("amount/value/sum/points/total/number", "", "of $big|with $big|to $big"), "kilos": _part("weight/kilos/kg/weight_kg/load", "$kilos kilo", "of $kilos kilos|with $kilos kg|weighing $kilos kilos"), "floor": _part("floor/level/story/floor_number", "", "on floor $floor|to floor $floor"), "age": _part("age/years/years_old/max_age", "", "for a $age year old|for age $age"), "steps": _part("steps/distance/count/meters/units", "", "by $steps|$steps steps|by $steps steps"),
    "title": _part("title/subject/summary/name/headline/description/text", "", "called $title|with the title $title|named $title|titled \"$title\"|about $title"), "code": _part("code/id/number/reference/key/ticket_id/serial", "", "number $code|with the number $code|$code|with the code $code|with id $code"), "language": _part("language/lang/in_language/locale", "$language", "in $language"), "topic": _part("topic/subject/theme/about/genre", "$topic", "about $topic|on $topic"), "mail": _part("email/to/address/recipient/mail", "", "to $mail"), "to_person": _part("to/recipient/receiver/name/contact", "", "to $person"), "file": _part("file/path/filename/document/attachment", "", "from $file|with the file $file|of $file"), "colour": _part("color/colour/shade/paint", "$color", "in $color"), "program": _part("program/cycle/course/setting/recipe", "$program", "with the $program program|on the $program program|with program $program|program $program"), "item": _part("item/product/article/thing/object/what", "", "of $item|with $item"), "reason": _part("reason/note/comment/remark/message/why", "", "because $reason|with the note \"$reason\"|because $reason"),
    **{slot: Part(names, (), (f"${slot}",)) for slot, (names, _, _) in SWITCHES.items()},
}  # fmt: skip
# slots of PARTS that are drawn as another slot of the values
DRAWN_AS = {"goal": "city", "to_person": "person", "colour": "color"}


class Field(NamedTuple):
    """What one may do: verbs (the first one of each group names the tool), things, the slots that fit, whether the verb may be left out."""

    verbs: str
    things: str
    slots: str
    bare: bool = False
    like: str = ""  # kinds of other tables that could do the same


_FIELDS: list[Field] = [
    Field("order/get/bring/buy order/have/take request/order/get buy/order/get deliver/order/bring", "pizza coffee burger salad sandwich tea cake pasta taco soup wrap bagel smoothie steak curry lemonade omelet pie burrito latte juice kebab pancake waffle cocktail sushi_box noodle_bowl hot_dog ice_cream milkshake fruit_bowl sundae", "size food food count spice crust doneness sugar ice cheese drink express payment person time kind", True, like="order_food shopping recipe loan pizza coffee feed cart"),
    Field("order/buy/get buy/order/get request/order/get purchase/buy/get add_to_cart/order/add", "shirt jacket lamp sofa chair phone_case poster mug hat bike carpet curtain desk pillow blanket dress coat backpack watch frame vase candle bouquet toy puzzle notebook suitcase tent helmet mirror shelf", "size colour shade count style wrap express payment city person budget kind", True, like="order_food shopping pizza coffee cart paint"),
    Field("book/reserve/get reserve/book/get book/reserve/arrange rent/book/get", "flight seat hotel_room table tennis_court ticket lesson tour rental_car boat massage appointment yoga_class desk meeting_room cabin haircut cruise train bus spa_day photo_shoot driving_lesson parking_spot camp_site campsite bike scooter concert_ticket", "seat travel_class goal city day day time people nights payment person level insurance morning_meal back budget hours vehicle helmet place minutes", True, like="flight train taxi table hotel event doctor seat rent ride hotel_search places movie"),
    Field("create/open/make/file open/create/file submit/file/send add/create/make file/open/create report/file/open log/record/add raise/open/create new/create/add", "ticket issue task bug incident event project invoice card complaint meeting order entry case reminder request job milestone survey poll claim memo record sprint job_ad page channel", "title title priority priority day person kind place secret notify level time reason minutes code", like="event reminder note ticket agenda alarm code posts user add_user expense pay shopping"),
    Field("start/run/begin run/start/begin launch/start/run begin/start/run", "washing_machine dishwasher oven dryer backup scan coffee_machine mower vacuum engine export sauna printer bread_maker rice_cooker heater fan build test_run workout car_wash microwave air_fryer ice_machine update simulation projector", "program program degrees minutes mode speed time notify percent room loop", like="timer device_off robot wash coffee light_on switch run code alarm"),
    Field("set/change/put/adjust change/set/put adjust/set/put update/change/set configure/set/adjust", "thermostat volume brightness fan blinds alarm_sound speed_limit air_conditioner humidity freezer aquarium_heater screen price_limit timer radiator curtains oven light_color wallpaper ringtone font_size fridge", "degrees percent room mode state speed colour big minutes time", like="heating dim volume thermostat light_on blinds alarm timer switch device_off paintroom paint bet"),
    Field("move/drive/go turn/rotate/spin drive/move/steer push/slide/move steer/turn/drive shift/move/slide", "robot camera arm cursor crane drone forklift rover telescope table_saw train_model platform submarine lift tractor antenna wheelchair player turtle piece", "direction direction steps steps speed floor degrees notify", like="move robot blinds directions door"),
    Field("send/mail/forward post/send/mail ship/send/mail share/send/forward forward/send/share", "letter parcel report invoice file card package postcard flowers gift contract photo document summary newsletter reminder quote sample key", "to_person mail goal express insurance format title kilos file wrap day reason priority", like="email message pay track file call"),
    Field("print/make/get export/save/convert scan/copy/digitize render/make/draw convert/turn/export generate/create/make", "document photo poster ticket report table map contract label chart slide_deck logo certificate flyer banner song recording drawing video list", "format count colored both_sides size file style kind language title shade", like="paint file code copy posts translate note lyrics"),
    Field("cancel/delete/stop close/finish/end pause/stop/interrupt delete/remove/erase approve/accept/confirm reject/refuse/decline archive/store/save", "order subscription reservation account ticket flight appointment payment membership download invoice request session post comment contract delivery booking", "code code person reason notify day", like="delete device_off alarm track pay file"),
    Field("hire/get/find invite/ask/call assign/give/put call/get/send find/look_for/get", "plumber electrician nurse babysitter guide painter driver tutor cleaner gardener cook photographer translator vet technician dog_walker", "day time city hours person language budget place reason level", True, like="call message taxi invite doctor pay search"),
    Field("play/start/put_on stream/play/start show/play/put_on record/tape/capture", "radio film playlist podcast audiobook game video concert show lullaby cartoon documentary series quiz", "topic room percent loop minutes language title kind time", True, like="music radio movie lyrics volume quiz screenshot"),
    Field("water/sprinkle clean/wash/tidy paint/color polish/clean repair/fix measure/check feed/nourish lock/secure charge/load heat/warm cool/chill check/inspect/test", "garden lawn greenhouse pool car gate window fence boat battery scooter terrace stable roof aquarium cellar bike chimney bathtub tank hutch bench porch", "minutes day time mode colour degrees percent place priority loop notify", like="water feed robot paintroom heating door lock switch light_on paint wash"),
    Field("save/add/store add/save/enter register/enroll/sign_up store/save/keep update/change/edit", "contact customer student patient member recipe address expense employee pet player supplier guest vehicle workout song lead medication", "person person age city kind big code mail level day language kilos", like="contact note user add_user expense run loan pets file recipe email call"),
    Field("find/search/look_for search/find/look_for list/show/give_me show/list/find get/show/find recommend/suggest/find", "flat house job hotel restaurant recipe course car gym used_car doctor school concert hike book film museum campsite apartment vacation_home", "city city budget kind level topic day people size language colour meal hours vehicle", like="search places movie hotel recipe hotel_search user flight train rent file sql park quote quiz news doctor ride"),
]  # fmt: skip


# the first word of a composed tool's kind: what of the other tables is in its way
LIKE: dict[str, set[str]] = {}
for _field in _FIELDS:
    for _verbs in _field.verbs.split():
        LIKE.setdefault(_verbs.split("/")[0], set()).update(_field.like.split())


def _names(verb: str, thing: str, rng: Random) -> list[str]:
    whole = f"{verb}_{thing}"
    return [
        whole,
        whole,
        whole,
        f"{thing}_{verb}",
        rng.choice(
            [
                verb,
                thing,
                f"{verb}_a_{thing}",
                f"{verb}_{thing}_now",
                f"new_{thing}",
                f"{thing}_service",
                invented_word(rng),
                f"smart_{thing}",
                f"{verb}_my_{thing}",
            ]
        ),
    ]


def composed(rng: Random) -> tuple[str, Action]:
    """A tool that does something to a thing, and requests for it in any order and with any part left to the label."""
    field = rng.choice(_FIELDS)
    verb, *others = rng.choice(field.verbs.split()).split("/")
    others = [v.replace("_", " ") for v in (verb, verb, *others)]
    thing = rng.choice(field.things.split()) if rng.random() < 0.86 else rng.choice(_ANY)
    if rng.random() < 0.03:
        thing = invented_word(rng)
    slots: list[str] = []
    for slot in rng.sample(field.slots.split(), rng.choice((1, 2, 2, 2, 3, 3, 4))):
        if slot not in slots and not _clash(slot, slots):
            slots.append(slot)
    shown = thing.replace("_", " ")
    befores, afters, labels = [], [], []
    parameters = []
    many = ""
    for slot in slots:
        part = PARTS[slot]
        maybe = "?" if rng.random() < (0.75 if slot in SWITCHES else 0.25) else ""
        drawn = DRAWN_AS.get(slot, slot)
        parameters.append(f"{drawn}{maybe}:{part.names}")
        mark = ("[", "]") if maybe else ("", "")
        if slot == "count":
            many = f"{mark[0]}$count {'x ' if maybe else ''}{mark[1]}"
            if not maybe:
                shown = plural_of(shown.rsplit(" ")[-1]) if " " not in shown else shown + "s"
        elif part.before and (not part.after or rng.random() < (0.75 if slot in CHOICES else 0.3)):
            befores.append(f"{mark[0]}{rng.choice(part.before)} {mark[1]}")
        else:
            afters.append(f"{mark[0]} {rng.choice(part.after)}{mark[1]}")
        labels.append(f"{mark[0]}, {part.names.split('/')[0].replace('_', ' ')} ${drawn}{mark[1]}")
    rng.shuffle(afters)
    rng.shuffle(befores)
    the = "" if many else rng.choice(("a ", "a ", "the ", "my ", "our ", "one ", "another ", ""))
    if "?" in "".join(parameters) and many and "[" in many:
        the = ""
    colon = next((a for a in afters if "$title" in a or "$reason" in a), "") if rng.random() < 0.6 else ""
    if colon:  # what is written comes last, after a colon
        afters.remove(colon)
        slot = "$title" if "$title" in colon else "$reason"
        afters.append(("[: " if "[" in colon else ": ") + slot + ("]" if "[" in colon else ""))
    thing_said = f"{the}{many}{''.join(befores)}{shown}{''.join(afters)}"
    asks = [f"!{rng.choice(others)} {thing_said}", f"!{rng.choice(others)} {thing_said}"]
    asks.append(rng.choice([f"I {{want|need|would like|'d like}} {thing_said}", f"I {{want|need|would like|have}} to {rng.choice(others)} {thing_said}", f"{{is it possible|would it be possible}} to {rng.choice(others)} {thing_said}", f"{{let's|we should|we need to|I'd love to|time to}} {rng.choice(others)} {thing_said}"]))  # fmt: skip
    if field.bare:
        asks += [f"{thing_said}", f"{{can I {{have|get}}|I'll have|I'll take|we need|give me|how about|I {{want|would like|need}}|for me}} {thing_said}"]  # fmt: skip
    if afters and not colon and rng.random() < 0.5 and afters[0][0] != "[":
        asks.append(f"{afters[0].strip()}, {{please |I want to |I'd like to |}}{rng.choice(others)} {the}{many}{''.join(befores)}{shown}{''.join(afters[1:])}")  # fmt: skip
    if rng.random() < 0.25:
        asks = [f"!{rng.choice(others)} {the}{shown}{''.join(labels)}", f"{the}{shown}{''.join(labels)}" if field.bare else f"!{rng.choice(others)} {the}{shown}{''.join(labels)}"]  # fmt: skip
    words = thing.replace("_", " ")
    act = others[0]
    about = rng.choice([f"{act} a {words}", f"{act} a {words}", f"{act} the {words}", f"{act} {plural_of(words) if ' ' not in words else words + 's'}", f"use this to {act} a {words}", f"tool to {act} a {words}", f"lets the user {act} a {words}", f"{act} a {words} for the user", f"{words} service", f"{act} a new {words}"])  # fmt: skip
    return f"{verb} {thing}", Action(" ".join(_names(verb, thing, rng)), about[0].upper() + about[1:], " ".join(parameters), asks, "Done.")  # fmt: skip


_ANY = [w for w in {*lexicon.THINGS} if w not in ("goggles", "headphones", "jeans")]
_ANY.sort()
_GROUPS = [{"city", "goal", "place"}, {"person", "to_person"}, {"colour", "shade"}, {"minutes", "hours"}, {"count", "people"}, {"mode", "program", "speed"}, {"degrees", "percent", "big"}, {"title", "reason"}, {"to_person", "mail", "goal"}, {"kind", "style", "level"}, {"food", "cheese"}, {"state", "mode"}, {"spice", "doneness"}, {"size", "crust"}]  # fmt: skip


def _clash(slot: str, slots: list[str]) -> bool:
    """Whether a request could not tell the slot from one that is there."""
    return any(slot in group and group & set(slots) for group in _GROUPS)


# --- what a tool can look up ---


class Query(NamedTuple):
    """Stems of the tool's name, what it says it is for, ``slot:names``, and questions; ``$e`` is the slot."""

    stems: str
    about: str
    slot: str
    asks: str


QUERIES: list[Query] = [
    Query("stock_level stock inventory availability item_count in_stock", "How many of an item are left|The stock of a product|Number of items in the store", "items:item/product/article/sku/name", "how many $e {do we have|are there|are left|have we got}{ left| in stock| in the warehouse| in the shop|}?|{do we have|have we got|are there} {any |enough |still |some |}$e{ left| in stock|}?|$e in stock?|!check {the stock of|how many} $e{| we have}|are we out of $e?|is there {a|any} supply of $e?|!count the $e{ in the store| in stock|}|how is our supply of $e?"),
    Query("price cost product_price item_price price_check", "The price of a product|What something costs", "items:item/product/article/name", "how much {are|do we ask for|do I pay for} $e?|what do $e cost?|{what is |what's |tell me |}the price of $e?|price {of|for} $e|!check the price of $e|are $e expensive?|I want to know what $e cost"),
    Query("order order_status delivery_status shipment tracking", "The status of an order|Look up an order|Where a delivery is", "code:order_id/order_number/id/number/order", "where is {my |the |}{order|delivery|shipment} $e?|what {happened to|is with|about} {order|my order} $e?|has {order |my order |}$e {been shipped|arrived|left}?|when {will|does} {order |my order |}$e {come|arrive}?|!{check|track|look up|find} {order|my order|delivery} $e|status of {order |}$e|I {am waiting|wait} for {order |}$e|{order|delivery} $e{, any news|, please|}?|is {order|parcel} $e on its way?"),
    Query("weather forecast weather_now temperature_in climate", "The weather in a city|The weather of a place|Weather forecast", "city:city/location/place/town", "{do|will|should} I {need|take|wear|bring} {a scarf|an umbrella|gloves|sunscreen|boots|a jacket|a coat|a hat|a sweater|sunglasses} in $e{ today| tomorrow|}?|is it {raining|snowing|freezing|sunny|windy|foggy|hot|mild|stormy} in $e{ now| today|}?|{how cold|how hot|how warm|what's it like} {is it |}in $e{ today| right now|}?|can I {swim|ski|go for a walk|hang out the laundry} in $e{ today|}?|weather $e|{what's|how's} the weather in $e?|I'm going to $e, what should I wear?|will it {rain|snow|be sunny} in $e{ tomorrow| today|}?|!tell me if it rains in $e|beach weather in $e?"),
    Query("opening_hours hours open_times opening_times", "When a shop is open|The opening hours of a place", "shop:place/shop/name/store/business", "{when|what time|until when|how long} {does $e {open|close}|is $e open}?|is $e {open|closed}{ now| today| on Sunday| on Monday|}?|{opening hours|hours} {of|for} $e|can I {still |}go to $e{ now| tonight|}?|!check {when|if} $e is open|I want to go to $e, is it open?"),
    Query("phone_number phone contact number contact_info", "The phone number of a person|Look up a contact", "person:name/person/contact/who", "{what is|what's|do you have|give me|I need|find} {$e's {number|phone number}|the {phone |}number of $e}?|how can I {reach|call|contact} $e?|I {want|have|need} to call $e, what's the number?|number of $e{, please|}|under which number do I reach $e?"),
    Query("address home_address location_of where_lives", "Where a person lives|The address of someone", "person:name/person/contact/customer", "where does $e live?|what is $e's address?|{what is|what's|give me|I need} the address of $e?|!look up $e's address|I want to visit $e, where is that?|to which address do I write to $e?"),
    Query("balance account_balance account money_left", "The balance of an account|How much money is in an account", "code:account/account_id/account_number/id", "how much {money |}is {left |}{in|on} {account |my account |}$e?|{what is |}the balance of {account |}$e?|!check {account|the balance of} $e|am I broke on $e?|balance $e|how is account $e doing?"),
    Query("score result match_result game_result", "The result of a team's last match|Score of a team", "team:team/club/name/side", "{how did|did} $e {play|do|win}{ yesterday| last night| today|}?|what was the {score|result} of $e?|who won, $e or the others?|did $e {lose|win}{ again|}?|score of $e|!{tell|show} me the {result|score} of $e|how is the game of $e going?"),
    Query("deadline due_date deadline_of task_due", "When a project is due|The deadline of a task", "work:project/task/name/assignment", "{when|until when} is {the |}$e due?|what is the deadline {for|of} {the |}$e?|how {much time|long} do we have for {the |}$e?|deadline $e|!check when $e must be done|by when do I have to finish $e?|when must $e be ready?"),
    Query("salary pay wage income_of", "The salary of an employee|What an employee earns", "person:employee/name/person", "{how much|what} does $e {earn|make|get}?|what is $e's {salary|pay|wage}?|{salary|pay} of $e|!look up what $e earns|is $e paid well?"),
    Query("owner owner_of who_owns holder", "Who owns a thing|The owner of an object", "code:plate/object/id/number/code", "who owns $e?|whose is $e?|who is the owner of $e?|!find the owner of $e|to whom does $e belong?"),
    Query("capacity seats_in room_size max_people", "How many people fit into a room|The capacity of a room", "hall:room/hall/name/location", "how many {people|guests} fit {in|into} {the |}$e?|how big is {the |}$e?|{what is |}the capacity of {the |}$e?|how many seats does {the |}$e have?|is {the |}$e big enough?|would 30 people fit into {the |}$e?"),
    Query("departure next_departure departures leaves_at", "When a train or bus leaves|Departure of a line", "line:line/route/train/number/connection", "when does {the |}$e {leave|go|depart|start}?|when is the next $e?|is {the |}$e late{ today|}?|departure of {the |}$e|!check when {the |}$e leaves|did I miss {the |}$e?"),
    Query("nutrition calories food_info energy", "The calories of a food|What a food contains", "food:food/dish/item/meal", "how many calories {are in|does|has} $e{ have|}?|is $e {healthy|fattening|good for me}?|what is in $e?|calories of $e|!look up $e|how much {fat|sugar|protein} is in $e?"),
    Query("traffic road_status road_info jam", "The traffic on a road|Jams on a street", "road:road/street/route/highway", "is there {a jam|much traffic|an accident} on {the |}$e?|how is the traffic on {the |}$e?|is {the |}$e {free|blocked|closed|busy}?|traffic $e|!check {the |}$e for jams|can I take {the |}$e?"),
    Query("rating reviews score_of review", "What people think of a product|The rating of a place", "shop:name/product/place/title", "is $e {any good|good|worth it}?|how {good|is} $e{ rated|}?|what do people {say about|think of} $e?|reviews {of|for} $e|!find reviews of $e|should I try $e?"),
    Query("battery battery_level charge power_left", "The battery of a device|How full a battery is", "thing:device/name/gadget/what", "how {full|charged} is {the |my |}$e?|{does|is} {the |my |}$e {need charging|empty|charged}?|battery of {the |my |}$e|how much battery does {the |my |}$e have?|!check the battery of {the |my |}$e"),
    Query("location find_item where_is locate", "Where a thing is|Find a lost thing", "thing:object/item/name/thing/device", "where {is|did I leave|did I put} {my|the} $e?|I {can't find|lost|am looking for} {my|the} $e|{my|the} $e is {gone|missing|lost}|!{find|locate} {my|the} $e|has anyone seen {my|the} $e?"),
    Query("member_info user profile customer_data", "Data of a member|Look up a customer by name", "person:name/member/customer/user/client", "who is $e?|!show {me |}{the data of |the profile of |}$e|what do we know about $e?|!look up $e|is $e a member?|I need {the file on|the data of|everything about} $e|!pull up $e"),
    Query("grade exam_result marks test_result", "The grade of a student|An exam's result", "person:student/name/pupil", "{what grade did|how did} $e {get|do}{ in the test| in the exam|}?|did $e pass{ the test| the exam|}?|{grade|result} of $e|!check how $e did|how many points does $e have?"),
    Query("schedule timetable plan shifts", "The plan of a day|What is on on a day", "day:day/date/when/weekday", "what is {on|planned} {on|for} $e?|who works on $e?|{schedule|plan|shifts} for $e|am I free on $e?|!show me {the plan for |}$e|anything on $e?|what do we do on $e?"),
    Query("translation meaning_of define word_info", "The meaning of a word|Look up a word", "word:word/term/entry/expression", "what does $e mean?|what is {a |the meaning of |}$e?|!{define|look up|explain} $e|I don't understand the word $e|meaning of $e"),
    Query("file_size size_of_file file_info", "The size of a file|Details of a file", "file:file/path/name/filename", "how {big|large} is $e?|how much space does $e take?|when was $e changed?|size of $e|!check {the file |}$e|who wrote $e?"),
    Query("version latest_version release package_info", "The newest version of a package|Look up a package", "package:package/name/library/module", "which version of $e {is the newest|is out|do we use}?|is there a new $e?|{latest|newest} version of $e|!check the version of $e|is $e up to date?"),
    Query("exchange_rate rate currency_rate", "The rate of a currency|What a currency is worth", "money:currency/code/from/name", "how much {is one|are} $e worth?|{what is |}the rate of $e?|{rate|exchange rate} $e|!look up the $e|are $e up or down?"),
    Query("room_temperature temperature sensor climate_of", "The temperature of a room|Read a sensor", "room:room/sensor/zone/where", "how {warm|cold|hot} is {it in |}the $e?|{is it|isn't it} {too |}{cold|warm|hot} in the $e?|temperature in the $e|!{check|read|measure} the temperature in the $e|how many degrees {are there|is it} in the $e?"),
    Query("bus_stop next_bus stops_near station", "The next bus at a stop|Buses from a stop", "stop:stop/station/from/name", "when {is|comes|goes} the next bus {at|from} $e?|next bus from $e|how do I get away from $e?|!check the buses at $e|which buses {stop at|leave from} $e?"),
    Query("horoscope sign_info stars", "The horoscope of a sign", "sign:sign/zodiac/name", "what do the stars say for $e?|how will {a |}$e's day be?|horoscope {for |}$e|I am a $e, what will happen?|!read me the horoscope for $e"),
    Query("invoice invoice_status bill payment_status", "The state of an invoice|Whether a bill is paid", "code:invoice/invoice_id/number/bill", "is {invoice |bill |}$e paid?|who {sent|paid} {invoice|bill} $e?|has {invoice|bill} $e been paid{ yet|}?|!{check|find|show} {invoice|bill} $e|how much is {invoice|bill} $e?|{invoice|bill} $e"),
    Query("recipe dish how_to_cook cooking", "How a dish is made|Look up a recipe", "dish:dish/name/recipe/meal", "how do I {make|cook|prepare} $e?|what do I need for $e?|recipe for $e|I want to cook $e|!show me how to make $e|we're having $e tonight, how is it made?"),
    Query("flight flight_status flight_info plane", "The status of a flight|Look up a flight", "flight:flight/flight_number/number/id", "is {flight |}$e {late|on time|delayed|cancelled}?|when does {flight |}$e {land|arrive|leave|take off}?|which gate {is|has} {flight |}$e?|!{check|track} {flight |}$e|{flight|status of} $e|has {flight |}$e landed?"),
]  # fmt: skip
_LOOK = "get check fetch find lookup show read query get get".split()
# what any record may have, asked for by its name
_ATTRIBUTES = "warranty discount tax_rate due_amount water_level pressure humidity mileage license serial_number barcode shelf department supplier delivery_day points rank membership subscription postal_code area_code time_zone speed_limit fuel_level oil_level page_count word_count air_quality noise_level dosage blood_type shoe_size dress_code entry_fee parking_fee gate terminal platform seat_number table_number room_number floor_plan menu playlist program lineup roster curriculum syllabus manual firmware ip_address password_hint login_time uptime error_code ticket_price rent deposit contract_end birthday_gift hobby_list nickname allergy diet pulse step_count sleep_time bonus overtime vacation_days visa_status passport_number".split()
_ENTITIES = ["person:person/name/customer/employee/member/patient", "thing:item/device/machine/product/object", "code:id/code/number/reference/record_id", "city:city/location/site/branch", "hall:room/hall/venue/place", "shop:shop/store/company/restaurant", "team:team/club/group", "line:line/train/bus/route"]  # fmt: skip


def query(rng: Random) -> tuple[str, Action]:
    """A tool that looks one thing up, and questions that mean it, most of which do not name it."""
    look = rng.choice(_LOOK)
    if rng.random() < 0.25:
        attribute, entity = rng.choice(_ATTRIBUTES), rng.choice(_ENTITIES)
        slot = "$" + entity.split(":")[0]
        a = attribute.replace("_", " ")
        the = "the " if slot in ("$thing", "$hall") else ""
        asks = [f"{{what is|what's|tell me|I need|do you know|can you find|give me}} the {a} of {the}{slot}", f"!{{check|find|look up|show me}} the {a} of {the}{slot}", f"{a} of {the}{slot}", f"{the}{slot}, {{what is the |the |}}{a}?", f"{{what {a} does|which {a} does}} {the}{slot} have?"]  # fmt: skip
        about = rng.choice([f"the {a} of a {entity.split(':')[1].split('/')[0]}", f"look up the {a}", f"get the {a}", f"{a} lookup"])  # fmt: skip
        return attribute, Action(f"{look}_{attribute} {attribute} {look}_{attribute}", about[0].upper() + about[1:], entity, asks, "Done.")  # fmt: skip
    found = rng.choice(QUERIES)
    slot = found.slot.split(":")[0]
    stem = rng.choice(found.stems.split())
    asks = [ask.replace("$e", "$" + slot) for ask in split_asks(found.asks)]
    return f"query {found.stems.split()[0]}", Action(f"{look}_{stem} {look}_{stem} {stem} {invented_word(rng)}", found.about, found.slot, asks, "Done.")  # fmt: skip


@cache
def split_asks(text: str) -> list[str]:
    """The parts between the bars that stand outside of braces."""
    out, depth, part = [], 0, ""
    for char in text:
        depth += (char == "{") - (char == "}")
        if char == "|" and not depth:
            out.append(part)
            part = ""
        else:
            part += char
    return [*out, part]
