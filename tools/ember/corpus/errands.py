# ruff: noqa: E501, SIM905 - lines of text and word lists read better whole
"""More errands for tools (see ``actions``), many of them said in passing, and what ember makes of any result."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

from . import lexicon
from .actions import Action
from .grammar import write
from .sample import Message
from .tasks import DAYS, listing, plural_of
from .words import invented_word

ERRANDS: dict[str, Action] = {
    "list_files": Action("list_folder list_files ls show_folder dir folder_content list_directory", "List the files in a folder|Show what is in a folder|The files of a directory", "folder:path/folder/directory/dir/name", ["{what|which} files are {there |}in {the folder |}$folder?", "what is in {the folder|the directory} $folder?", "!list {the files in |everything in |}{the folder |}$folder", "!show me {the files in|what is in|all files in} {the folder |}$folder", "files in $folder", "what do I have in $folder?", "is there anything in the folder $folder?"], "Done."),
    "remove_folder": Action("delete_folder remove_folder rmdir erase_folder", "Delete a folder|Remove a folder and its files", "folder:path/folder/directory/name", ["!delete {the folder |}$folder", "!remove the folder $folder", "I don't need the folder $folder any more", "!get rid of the folder $folder", "the folder $folder can go"], "Done."),
    "new_directory": Action("create_folder make_folder mkdir new_folder", "Create a folder|Make a new folder", "folder:path/folder/name", ["!{make|create} {a|a new} folder {called |named |}$folder", "new folder: $folder", "I need a folder {called|named} $folder"], "Done."),
    "turn_robot": Action("robot_turn turn rotate turn_robot spin", "Turn the robot|Rotate on the spot|Turn by some degrees", "degrees:degrees/angle/by/deg side:side/direction/to/way", ["!turn $degrees degrees to the $side", "!turn {to the |}$side by $degrees degrees", "Robot, turn $degrees degrees to the $side", "$degrees degrees {to the |}$side{, please|}", "!rotate {the robot |yourself |}$degrees degrees to the $side", "!go $side, $degrees degrees"], "Done."),
    "drive_robot": Action("robot_drive drive go_robot roll", "Drive the robot|Let the robot go some way", "steps:distance/centimeters/steps/cm way:direction/way/to", ["!drive $steps centimeters $way", "!go $way {for |}$steps centimeters", "Robot, {drive|go|roll} $steps centimeters $way", "$way, $steps centimeters{, please|}", "!move {the robot |}$way by $steps centimeters"], "Done."),
    "arm": Action("move_arm arm lift_arm robot_arm", "Move an arm|Lift or lower an arm of the robot", "side:arm/side/which updown:direction/to/way", ["!{move|put|take} {the|your} $side arm $updown", "$side arm $updown{, please|}", "!put $updown {the|your} $side arm", "Robot, {the|your} $side arm $updown"], "Done."),
    "brew": Action("brew_coffee make_drink brew barista hot_drink", "Make coffee|Brew a hot drink|Make some cups", "brewed:kind/type/drink/what count:cups/number/count/how_many", ["$count cups of $brewed{, please|}", "!{make|brew} {me |us |}$count cups of $brewed", "I {need|want|would like} $count cups of $brewed", "$brewed, $count cups{, please|}", "$count $brewed{, please|}", "we are $count and want $brewed", "!get us $count $brewed"], "Done."),
    "find_food": Action("find_restaurant restaurants restaurant_search eat_out", "Find restaurants of a cuisine in a city|Where to eat|Search restaurants", "cuisine:cuisine/kind/food/type city:city/place/town/in", ["where can {I|we} {eat|get|have} $cuisine{ food|} in $city?", "{I'm|I am|we are} hungry! {Where can I eat|Where is} $cuisine{ food|} in $city?", "!find {me |us |}a $cuisine {restaurant|place} in $city", "a {good |}$cuisine restaurant in $city{, please|}", "is there {any |}$cuisine food in $city?", "we {want|would like} {to eat |}$cuisine food in $city", "$cuisine {food |restaurant |}in $city", "{know|do you know} a $cuisine place in $city?"], "Done."),
    "dish_recipe": Action("get_recipe cook_book recipe_of how_to_cook", "Get the recipe of a dish|How to cook a dish", "dish:dish/name/meal/what", ["how do {I|you} {make|cook} $dish?", "!{give|show} me {the|a} recipe {for|of} $dish", "recipe {for|of} $dish", "I {want|would like} to {cook|make} $dish", "how is $dish made?", "what {do I need for|goes into} $dish?"], "Done."),
    "song2": Action("play_song play_music sing play_title music_play", "Play a song|Play music|Play a title", "anysong:title/song/track/name band?:artist/by/singer/band", ["!play $anysong[ by $band]", "!play the song $anysong[ by $band]", "I want to {hear|listen to} $anysong[ by $band]", "!put on $anysong[ by $band]", "$anysong[ by $band]{, please|}", "can {I|we} hear $anysong[ by $band]?", "let's listen to $anysong[ by $band]"], "Done."),
    "film2": Action("watch_film play_movie start_film show_film stream", "Watch a film|Play a movie|Start a film or a series", "anysong:title/film/movie/name", ["!play {the film |the movie |}$anysong", "I want to {see|watch} $anysong", "!start {the film|the movie} $anysong", "let's watch $anysong", "!show {me |us |}the {film|movie} $anysong", "tonight we watch $anysong"], "Done."),
    "book2": Action("find_book order_book borrow_book library_search", "Find a book|Borrow a book by its title", "anysong:title/book/name person?:author/by/writer", ["!{find|get|order} {me |}{the book |}$anysong[ by $person]", "do you have $anysong[ by $person]?", "I {want|would like} to {read|borrow} $anysong[ by $person]", "is the book $anysong[ by $person] there?", "I am looking for $anysong[ by $person]"], "Done."),
    "word2": Action("define_word dictionary_lookup look_up_word word_meaning explain_word", "Look a word up in the dictionary|Explain a word|The meaning of a word", "word:word/term/entry", ["!look up {the word |}$word in the dictionary", "!look {the word |}$word up", "what does \"$word\" mean? {Use|Look into} the dictionary.", "what does the dictionary say about $word?", "!explain the word $word", "!check $word in the dictionary", "the meaning of the word $word{, please|}", "I don't know what $word means", "what {is|does} {the word |}$word{ mean|}?"], "Done."),
    "forecast2": Action("get_forecast forecast weather_forecast weather_in sky", "Weather forecast for a city|What the weather will be", "city:city/place/location/town count?:days/how_many_days/n", ["{what's|whats|what is} the weather {going to be like|like|going to be|doing} in $city[ for the next $count days]?", "how will the weather be in $city[ in the next $count days]?", "will it {rain|snow|be warm|be cold|be sunny} in $city[ in the next $count days]?", "{do I need|should I take|shall I bring} {an umbrella|a coat|a jacket|sunglasses} in $city?", "weather {for|in} $city[, $count days]", "!give me {the|a} [$count day ]forecast for $city", "I'm {going|flying|traveling} to $city. {How is the weather|What's the weather like} there?"], "Done."),
    "mail2": Action("send_mail mail write_to mail_person", "Send a mail to a person|Write a mail", "person:to/recipient/name/who message:text/body/message/content", ["!{send|write} {a mail|an email} to $person{: | saying: | that says: }$message", "!mail $person{: | that }$message", "!let $person know: $message", "!write to $person that $message", "mail for $person: $message"], "Done."),
    "remind2": Action("set_reminder remind_at remind_me_at reminder_at", "Remind the user at a time|Set a reminder with a time", "todo:what/text/about/task time:time/at/when/hour", ["!remind me at $time to $todo", "!remind me to $todo at $time", "at $time I {must|have to|need to} $todo", "I {must|have to} $todo at $time, {remind me|don't let me forget}", "reminder for $time: $todo"], "Done."),
    "convert2": Action("convert_money change_money money_exchange fx", "Convert an amount from one currency to another|Exchange rates by code", "int:amount/value/sum code3:from/source/have code32:to/target/want", ["what do I get in $code32 for $int $code3?", "!convert $int $code3 {to|into} $code32", "how much is $int $code3 in $code32?", "$int $code3 in $code32", "!change $int $code3 {to|into} $code32", "I have $int $code3. How {much|many} $code32 is that?", "$int $code3 {are|is} how {many|much} $code32?"], "Done."),
    "train2": Action("book_train train_ticket buy_train_ticket rail", "Book a train ticket|Buy a ticket for the train", "city:from/start/origin city2:to/goal/destination day:day/when/date", ["!book {me |}a train from $city to $city2 on $day", "I {need|want} a train {ticket |}from $city to $city2 on $day", "train {ticket |}from $city to $city2, $day{, please|}", "on $day I {must go|travel|have to go} from $city to $city2 by train", "I am in $city and must be in $city2 on $day, by train"], "Done."),
    "water2": Action("water_plant irrigate water_garden sprinkler", "Water plants|Water the garden for some minutes", "plant:plant/what/plants minutes:minutes/duration/time", ["!water the $plant for $minutes minutes", "the $plant need water, $minutes minutes", "$minutes minutes {of |}water for the $plant", "the $plant are dry. {Water them|Give them water} for $minutes minutes"], "Done."),
    "lamp2": Action("lamp_color set_light_color light_color color_lamp", "Set the color of the lamp in a room|Make the light some color", "room:room/where/place shadecolor:color/colour/shade/to", ["!make the {light|lamp} in the $room $shadecolor", "!turn the $room {light|lamp} $shadecolor", "$shadecolor light in the $room{, please|}", "I want $shadecolor light in the $room", "!set the lamp in the $room to $shadecolor", "the $room should be $shadecolor"], "Done."),
    "count2": Action("count_words word_count count_letters text_length", "Count the words of a text|How long a text is", "phrase:text/input/content", ["how many words {are|has|are there} in: $phrase", "!count the words of \"$phrase\"", "!count the words: $phrase", "how long is \"$phrase\"?"], "Done."),
    "dice": Action("roll_dice dice throw_dice roll", "Roll dice|Throw some dice with a number of sides", "count:number/count/dice/how_many small?:sides/faces", ["!{roll|throw} $count dice[ with $small sides]", "$count dice[ with $small sides]{, please|}", "let's {roll|throw} $count dice[ with $small sides]", "I want to roll $count dice[ with $small sides]"], "Done."),
    "size_shop": Action("order_shirt buy_clothes order_clothes shop_clothes", "Order clothes in a size and color|Buy something to wear", "wear:item/what/article size:size/how_big color:color/colour", ["a $color $wear in {size |}$size{, please|}", "!{order|buy|get} {me |}a $color $wear in {size |}$size", "I {need|want|would like} a $size $color $wear", "$size $wear in $color{, please|}", "$wear, $color, $size"], "Done."),
    "score": Action("get_score match_result game_score who_won", "The result of a team's last game|Get the score", "team:team/club/name", ["how did $team play?", "did $team win?", "{what's|what is} the score of $team?", "who won, $team or the others?", "how was the game of $team?", "score of $team"], "Done."),
    "park_car": Action("park_car parking find_parking parking_spot", "Find a parking spot|Park the car near a place", "place:near/place/where hours:hours/for/duration", ["where can I park near the $place for $hours hours?", "!find {me |}parking at the $place for $hours hours", "I need a parking spot near the $place, $hours hours", "parking near the $place for $hours hours"], "Done."),
    "lend": Action("tell_joke joke get_joke funny", "Tell a joke about a topic|Find a joke", "thing:about/topic/subject", ["!tell {me |us |}a joke about a $thing", "do you know a joke about a $thing?", "a joke about a $thing{, please|}", "make me laugh about a $thing"], "Done."),
}  # fmt: skip
ERRAND_CHOICES: dict[str, list[str]] = {
    "side": ["left right", "left right", "right left"],
    "way": ["forward=forwards backward=backwards", "forward back", "ahead back"],
    "brewed": ["espresso latte americano", "coffee tea cocoa", "espresso cappuccino", "black green herbal", "latte mocha espresso americano", "mocha latte"],
    "shadecolor": ["red green blue", "red blue white", "white yellow orange", "warm cold", "purple green pink"],
}  # fmt: skip
_CUISINES = "Thai Greek Turkish Italian French Chinese Indian Japanese Mexican Spanish Korean Vietnamese Persian Lebanese German Polish Russian Moroccan Ethiopian Swedish Peruvian Cuban vegan vegetarian African Asian Arabic Hungarian Georgian Portuguese Dutch Irish Syrian Nepalese Indonesian".split()
_CODES = "USD EUR GBP CHF JPY SEK NOK DKK PLN CZK CAD AUD INR CNY TRY MXN BRL KRW dollars euros pounds yen francs".split()  # fmt: skip
_WEAR = "shirt T-shirt sweater jacket dress skirt coat pullover hoodie blouse vest suit".split()


def any_title(rng: Random) -> str:
    """A title: one to four of any words, with capitals as titles have them."""
    words = [rng.choice([rng.choice(lexicon.COMMON), rng.choice(lexicon.COMMON), rng.choice(lexicon.SMALL), rng.choice(lexicon.FIRST_NAMES), invented_word(rng)]) for _ in range(rng.choice((1, 1, 2, 2, 3, 4)))]  # fmt: skip
    if rng.random() < 0.2:
        words[0] = rng.choice("yesterday tomorrow tonight always nobody everything somebody hello goodbye thunder imagine jolene".split())  # fmt: skip
    return " ".join(w[0].upper() + w[1:] for w in words)


def band(rng: Random) -> str:
    """Who plays: a name, or a group's."""
    return rng.choice([f"The {plural_of(rng.choice([*lexicon.THINGS, *lexicon.CREATURES])).capitalize()}", lexicon.anyone(rng), lexicon.anyone(rng), any_title(rng)])  # fmt: skip


ERRAND_SLOTS: dict[str, Callable[[Random, dict[str, str]], str]] = {
    "cuisine": lambda r, d: r.choice(_CUISINES),
    "anysong": lambda r, d: any_title(r),
    "band": lambda r, d: band(r),
    "code3": lambda r, d: r.choice(_CODES),
    "code32": lambda r, d: r.choice([c for c in _CODES if c != d["code3"]]),
    "wear": lambda r, d: r.choice(_WEAR),
}

# --- results ---

# fields of a result: names, a value, how it is said ("$v" the value), how it may be asked for
_FIELDS: list[tuple[str, str, str, str]] = [
    ("departs departure leaves departure_time", "clock", "It leaves at $v.", "When does it leave?"), ("arrives arrival arrival_time", "clock", "It arrives at $v.", "When does it arrive?"), ("opens open_from opening", "clock", "It opens at $v.", "When does it open?"), ("closes open_until closing", "clock", "It closes at $v.", "When does it close?"),
    ("starts start begins start_time", "clock", "It starts at $v.", "When does it start?"), ("price cost total amount_due fare", "money", "It costs $v.", "What does it cost?"), ("platform track gate", "int", "The $k is $v.", "Which $k is it?"), ("seat room table floor", "int", "The $k is $v.", "Which $k is it?"),
    ("amount result value converted sum", "int", "The result is $v.", "How much is it?"), ("count number total_count found", "int", "There are $v.", "How many are there?"), ("temperature temp degrees", "int", "It is $v degrees.", "How warm is it?"), ("duration minutes time_needed travel_time", "int", "It takes $v minutes.", "How long does it take?"),
    ("distance km distance_km", "int", "It is $v kilometers.", "How far is it?"), ("meaning definition explanation", "meaning", "It means: $v.", "What does it mean?"), ("translation translated", "word", "The translation is: $v.", "What is it in the other language?"), ("status state", "status", "The status is: $v.", "What is the status?"),
    ("address place location where", "place", "It is at $v.", "Where is it?"), ("name title", "title", "It is called $v.", "What is it called?"), ("author artist singer by", "person", "It is by $v.", "Who is it by?"), ("owner contact teacher driver", "person", "The $k is $v.", "Who is the $k?"), ("phone phone_number", "phone", "The number is $v.", "What is the number?"),
    ("day date", "day", "It is on $v.", "When is it?"), ("city town", "city", "It is in $v.", "In which city is it?"), ("color colour", "color", "It is $v.", "What color is it?"), ("code booking_code ticket id", "code", "The code is $v.", "What is the code?"), ("winner", "person", "$v won.", "Who won?"), ("rating stars", "int", "It has $v stars.", "How good is it?"),
    ("population inhabitants", "big", "$v people live there.", "How many people live there?"), ("weather sky condition forecast", "sky", "It is $v.", "How is the weather?"), ("password key word", "word", "The $k is $v.", "What is the $k?"), ("score", "score", "The score is $v.", "What is the score?"), ("capital", "city", "The capital is $v.", "What is the capital?"),
    ("ingredients items files songs names results list", "list", "I found $v.", "What is there?"), ("age years", "int", "The age is $v.", "How old?"), ("weight kg", "int", "It weighs $v kilograms.", "How heavy is it?"), ("battery level charge humidity", "int", "The $k is $v percent.", "How much $k is there?"),
]  # fmt: skip
_MEANINGS = ["a {small|large|kind of|very old|sort of} $thing", "a {small|young|wild} $creature", "a person who {makes|sells|repairs} $things", "a place for $things", "very $quality", "a $quality $thing", "to {move|speak|look|walk} $manner", "a piece of $thing", "a {tool|machine|box|house} for $things", "the {end|side|top|part} of a $thing", "a tree with $quality leaves", "a $quality road"]  # fmt: skip
_DONE_FLAGS = (
    "booked sent saved ok success done created ordered added paid reserved started confirmed".split()
)


def _value(rng: Random, kind: str) -> Any:
    word = lambda: rng.choice([rng.choice(lexicon.COMMON), invented_word(rng)])  # noqa: E731
    match kind:
        case "clock":
            return f"{rng.randint(0, 23):02d}:{rng.randint(0, 59):02d}"
        case "money":
            return rng.choice([rng.randint(1, 999), f"{rng.randint(1, 99)}.{rng.randint(10, 99)} {rng.choice('euros dollars pounds'.split())}", f"{rng.randint(1, 999)} euros"])  # fmt: skip
        case "int":
            return rng.randint(1, rng.choice((12, 99, 99, 400)))
        case "big":
            return rng.randint(1000, 9999999)
        case "meaning":
            env = {"thing": rng.choice(lexicon.THINGS), "creature": rng.choice(lexicon.CREATURES), "things": plural_of(rng.choice(lexicon.THINGS)), "quality": rng.choice(lexicon.QUALITIES), "manner": rng.choice(lexicon.MANNERS)}  # fmt: skip
            text = write(rng, rng.choice(_MEANINGS), env)
            return text[0].lower() + text[1:]
        case "status":
            return rng.choice("open closed late on_time ready delivered lost on_the_way waiting paid free busy full running broken cancelled".split()).replace("_", " ")  # fmt: skip
        case "place":
            return f"{rng.randint(1, 99)} {rng.choice([rng.choice(lexicon.SURNAMES), rng.choice(lexicon.NOUN_LIKE).capitalize()])} {rng.choice(('Street', 'Road', 'Lane', 'Square'))}"
        case "title":
            return any_title(rng)
        case "person":
            return lexicon.anyone(rng)
        case "phone":
            return f"{rng.randint(100, 999)}-{rng.randint(1000, 9999)}"
        case "day":
            return rng.choice(DAYS)
        case "city":
            return lexicon.anywhere(rng)
        case "color":
            return rng.choice(lexicon.COLORS)
        case "code":
            return f"{rng.choice('ABCDEFGHK')}{rng.choice('ABCDEFGHK')}{rng.randint(10, 9999)}"
        case "sky":
            return rng.choice("sunny rainy cloudy windy foggy snowy stormy clear hot cold dry wet".split())
        case "score":
            return f"{rng.randint(0, 9)}{rng.choice(':-')}{rng.randint(0, 9)}"
        case "list":
            return [word() for _ in range(rng.randint(2, 4))]
        case _:
            return word()


def told_result(rng: Random) -> tuple[str, str, list[tuple[str, str]]]:
    """A result of one to four fields, what ember says of it, and what could be asked later of each field."""
    fields = rng.sample(_FIELDS, rng.choice((1, 1, 1, 2, 2, 3)))
    result: dict[str, Any] = {}
    flag = ""
    if rng.random() < 0.25:
        flag = rng.choice(_DONE_FLAGS)
        result[flag] = True
    said, later = [], []
    for names, kind, says, asks in fields:
        name = rng.choice(names.split())
        if name in result:
            continue
        value = _value(rng, kind)
        result[name] = value
        shown = listing(value) if isinstance(value, list) else str(value)
        text = says.replace("$v", shown).replace("$k", name.replace("_", " "))
        said.append(text[0].upper() + text[1:])
        later.append((asks.replace("$k", name.replace("_", " ")), said[-1]))
    if flag:
        head = {"ok": "Done.", "success": "Done.", "done": "Done."}.get(flag, f"It is {flag}.")
        said.insert(0, head)
    if len(result) == 1 and rng.random() < 0.35:
        value = next(iter(result.values()))
        shown = listing(value) if isinstance(value, list) else str(value)
        content = value if isinstance(value, str) else json.dumps(value)
        return content, f"The result is: {shown}.", []  # nothing says what it is
    return json.dumps(result, ensure_ascii=False), " ".join(said), later


def result_turns(rng: Random) -> tuple[Message, list[Message]]:
    """A tool's message and ember's answer to it; at times one more question about the result."""
    content, answer, later = told_result(rng)
    more: list[Message] = [{"role": "assistant", "content": answer}]
    if len(later) > 1 and rng.random() < 0.3:
        ask, text = rng.choice(later)
        ask = "And " + ask[0].lower() + ask[1:] if rng.random() < 0.3 else ask
        more += [{"role": "user", "content": ask}, {"role": "assistant", "content": text}]
    return {"role": "tool", "content": content}, more
