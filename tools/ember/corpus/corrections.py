# ruff: noqa: E501, SIM905 - lines of text and word lists read better whole
"""Sentences with mistakes of grammar or spelling, and the same sentences without."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

from . import lexicon
from .grammar import write
from .sample import Turn
from .tasks import DAYS, plural_of
from .words import first_name

Pair = tuple[str, str]  # wrong, right

# base, third person, past, participle, -ing, what follows
_VERBS = [
    tuple(line.split(":"))
    for line in """go:goes:went:gone:going:to school|to the $p|home|to work|to bed early
eat:eats:ate:eaten:eating:an apple|$f|lunch|breakfast at eight|too much $f
see:sees:saw:seen:seeing:a $c|the $n|him|a big $n|my friend
have:has:had:had:having:a $c|a red $n|two $ns|a cold|a lot of work
like:likes:liked:liked:liking:$f|music|the $n|her new $n|to swim
want:wants:wanted:wanted:wanting:a $n|some $f|to sleep|to go home
run:runs:ran:run:running:fast|to the $p|every morning|in the park
write:writes:wrote:written:writing:a letter|a book|to me|many stories
take:takes:took:taken:taking:the bus|a walk|my $n|a photo|the train to $t
make:makes:made:made:making:a cake|dinner|a mistake|coffee
come:comes:came:come:coming:home late|from $t|to my house|back soon
give:gives:gave:given:giving:me a $n|her a book|him the $n
know:knows:knew:known:knowing:the answer|my name|her well|the way
play:plays:played:played:playing:football|the piano|in the garden|with the $c
live:lives:lived:lived:living:in $t|in a small house|near the $p
work:works:worked:worked:working:in an office|very hard|on Monday|as a $j
drink:drinks:drank:drunk:drinking:tea|a glass of milk|water|too much coffee
buy:buys:bought:bought:buying:a new $n|some $f|two $ns|bread
read:reads:read:read:reading:the newspaper|a book|every night
speak:speaks:spoke:spoken:speaking:English|to the $j|very quietly|three languages
drive:drives:drove:driven:driving:a red car|to $t|too fast
sing:sings:sang:sung:singing:a song|very well|in the shower
break:breaks:broke:broken:breaking:the $n|a window|my cup
find:finds:found:found:finding:the $n|a coin|my keys
lose:loses:lost:lost:losing:the $n|my keys|a game
teach:teaches:taught:taught:teaching:math|us English|at a school
watch:watches:watched:watched:watching:a film|TV|the birds
wash:washes:washed:washed:washing:the car|the dishes|my hands
study:studies:studied:studied:studying:history|every day|for the test
carry:carries:carried:carried:carrying:the $n|a heavy bag
swim:swims:swam:swum:swimming:in the lake|every day
sleep:sleeps:slept:slept:sleeping:on the sofa|well|too long
think:thinks:thought:thought:thinking:about you|too much|of home
tell:tells:told:told:telling:me a story|the truth|us a joke
bring:brings:brought:brought:bringing:the $n|her dog|some $f
wear:wears:wore:worn:wearing:a hat|a blue coat|new shoes
need:needs:needed:needed:needing:a $n|help|more time
love:loves:loved:loved:loving:her $c|$f|the sea
help:helps:helped:helped:helping:me|his mother|the $j
open:opens:opened:opened:opening:the door|the window|a shop
walk:walks:walked:walked:walking:to the $p|the dog|home
cook:cooks:cooked:cooked:cooking:dinner|some $f|for us
begin:begins:began:begun:beginning:at nine|a new job
fall:falls:fell:fallen:falling:asleep|down the stairs
forget:forgets:forgot:forgotten:forgetting:my name|the $n
fly:flies:flew:flown:flying:to $t|over the $p
catch:catches:caught:caught:catching:the ball|a fish|the bus
feel:feels:felt:felt:feeling:tired|very happy
grow:grows:grew:grown:growing:tomatoes|very fast
throw:throws:threw:thrown:throwing:the ball|a stone
meet:meets:met:met:meeting:a friend|my $j|him at the $p
sell:sells:sold:sold:selling:the $n|old books|$f
sit:sits:sat:sat:sitting:on the chair|in the $p
start:starts:started:started:starting:at seven|a new book
call:calls:called:called:calling:me every day|the $j
try:tries:tried:tried:trying:the soup|again""".split("\n")
]
_SPELLING = dict(
    pair.split(":")
    for pair in """teh:the recieve:receive freind:friend becuase:because wich:which thier:their beleive:believe definately:definitely tommorow:tomorrow tomorow:tomorrow yesturday:yesterday seperate:separate untill:until occured:occurred wierd:weird adress:address
beautifull:beautiful begining:beginning buisness:business calender:calendar collegue:colleague diffrent:different embarass:embarrass enviroment:environment existance:existence familar:familiar favourit:favourite finaly:finally foriegn:foreign goverment:government
gramar:grammar happend:happened hopeing:hoping imediately:immediately intresting:interesting knowlege:knowledge libary:library neccessary:necessary realy:really recomend:recommend restaraunt:restaurant shcool:school sincerly:sincerely speach:speech succesful:successful
suprise:surprise togther:together truely:truly wether:whether writting:writing peice:piece hte:the adn:and taht:that frist:first poeple:people littel:little pleas:please thsi:this wnat:want alot:a_lot waht:what whith:with somthing:something allways:always
usualy:usually probaly:probably anwser:answer quik:quick quiete:quiet hapy:happy sory:sorry morining:morning evning:evening brekfast:breakfast diner:dinner langauge:language mesage:message minuts:minutes nieghbor:neighbor oppinion:opinion pepole:people
proffesor:professor questoin:question rember:remember scool:school speling:spelling stoped:stopped studing:studying tabel:table todya:today trafic:traffic vegtable:vegetable wensday:Wednesday febuary:February wendesday:Wednesday saterday:Saturday""".split()
)
_SPELLED = """I {will|can|did|could} not {beleive|recieve|anwser|rember} {it|that|the mesage|the questoin}|{He|She|Tom|My sister} is my best freind|I am late becuase {the trafic was bad|I missed the bus|it is raining}|We will {meet|go|leave|start} {tommorow|todya|togther}|This is {definately|realy|truely|probaly} {good|bad|intresting|wierd|diffrent}|{Thier|The} house is very {beautifull|littel|quiete|familar}|See you {tommorow|on wensday|on saterday|in febuary}|Please send me your adress
What a nice suprise|I do not know wich one is right|I {allways|usualy} eat {brekfast|diner|a vegtable} {at home|in the restaraunt|with my nieghbor}|He goes to {shcool|scool|the libary} {by bus|every day|alone}|{Teh|Hte} {cat|dog|book|train|weather} is {hapy|here|new|late|realy nice}|I saw somthing {wierd|diffrent} {in the garden|at scool|yesturday}|It happend {yesturday|in the evning|in the morining}|The poeple {adn|whith} {dogs|bags|children} are here|I {wnat|want} {teh|a} new calender|I am {sory|hapy|realy tired}
This is the begining of {the film|teh book|a new day}|My {oppinion|knowlege|langauge|speling|gramar|writting} is not good|Wait untill {I come|ten|the begining}|I {recomend|like} this {restaraunt|libary|peice of cake}|He {stoped|finaly stoped} studing|{Waht|What} is your {oppinion|anwser|frist questoin}|The {goverment|enviroment|proffesor|collegue} is {foriegn|familar|succesful|intresting}|It is {neccessary|realy neccessary} to {be quik|rember it|seperate them}|I like it alot|You need thsi tabel""".replace("\n", "|")  # fmt: skip


def _split_spelled(text: str) -> list[str]:
    """Templates apart: bars between braces are not between templates."""
    found, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter == "{") - (letter == "}")
        if letter == "|" and not depth:
            found.append(text[start:at])
            start = at + 1
    return [*found, text[start:]]


_TEMPLATES = _split_spelled(_SPELLED)


def _things(rng: Random) -> dict[str, str]:
    noun = rng.choice(lexicon.THINGS)
    return {
        "n": noun, "ns": plural_of(noun), "c": rng.choice(lexicon.CREATURES), "f": rng.choice(["bread", "cheese", "rice", "soup", "fish", "cake", "pizza", "salad", "milk"]),
        "p": rng.choice(["park", "market", "station", "beach", "shop", "library", "river", "museum"]), "t": rng.choice(lexicon.CITIES), "j": rng.choice(["teacher", "doctor", "nurse", "driver", "cook", "baker"]),
    }  # fmt: skip


def _who(rng: Random) -> tuple[str, str]:
    """A subject and its person: 3 (he), 0 (they, you, we) or 1 (I)."""
    draw = rng.random()
    if draw < 0.34:
        return rng.choice(["He", "She", "It", "He", "She"]), "3"
    if draw < 0.5:
        return rng.choice([first_name(rng), rng.choice(lexicon.NAMES)]), "3"
    if draw < 0.66:
        word = rng.choice([*lexicon.CREATURES, *lexicon.PEOPLE])
        return f"{rng.choice(('The', 'My', 'Our', 'Her'))} {word}", "3"
    if draw < 0.76:
        return "I", "1"
    if draw < 0.9:
        return rng.choice(["They", "We", "You", "They", "We"]), "0"
    return (
        f"{rng.choice(('The', 'My', 'Two', 'All'))} {plural_of(rng.choice([*lexicon.CREATURES, *lexicon.PEOPLE]))}",
        "0",
    )


def _rest(rng: Random, verb: tuple[str, ...]) -> str:
    text = rng.choice(verb[5].split("|"))
    for slot, value in sorted(_things(rng).items(), key=lambda item: -len(item[0])):
        text = text.replace("$" + slot, value)
    return write(rng, text)


_WHEN_NOW = [
    "",
    "",
    "",
    " every day",
    " on Sundays",
    " often",
    " at night",
    " in the morning",
    " now and then",
]
_WHEN_PAST = [" yesterday", " last week", " last night", " two days ago", " in 2019", " last year", ""]


def agreement(rng: Random) -> Pair:
    who, person = _who(rng)
    verb = rng.choice(_VERBS)
    rest = _rest(rng, verb)
    when = rng.choice(_WHEN_NOW) if "every" not in rest else ""
    good, bad = (verb[1], verb[0]) if person == "3" else (verb[0], verb[1])
    return f"{who} {bad} {rest}{when}.", f"{who} {good} {rest}{when}."


def past(rng: Random) -> Pair:
    who, _ = _who(rng)
    verb = rng.choice(_VERBS)
    rest, when = _rest(rng, verb), rng.choice(_WHEN_PAST[:-1])
    regular = verb[0] + ("d" if verb[0].endswith("e") else "ed")
    wrong = [w for w in (regular, verb[0], verb[3], verb[1]) if w != verb[2]]
    if rng.random() < 0.3:
        day = when.strip().capitalize()
        he = who[0].lower() + who[1:] if who.split()[0] in ("He", "She", "It", "They", "We", "You", "The", "My", "Our", "Her", "Two", "All") else who  # fmt: skip
        return f"{day} {he} {rng.choice(wrong)} {rest}.", f"{day} {he} {verb[2]} {rest}."
    return f"{who} {rng.choice(wrong)} {rest}{when}.", f"{who} {verb[2]} {rest}{when}."


def perfect(rng: Random) -> Pair:
    who, person = _who(rng)
    verb = rng.choice([v for v in _VERBS if v[2] != v[3]])
    rest = _rest(rng, verb)
    have, wrong = ("has", "have") if person == "3" else ("have", "has")
    if rng.random() < 0.6:
        return f"{who} {have} {rng.choice((verb[2], verb[0]))} {rest}.", f"{who} {have} {verb[3]} {rest}."
    return f"{who} {wrong} {verb[3]} {rest}.", f"{who} {have} {verb[3]} {rest}."


_BE = {"3": "is", "1": "am", "0": "are"}
_STATES = "happy|tired|late|here|at home|in the garden|very tall|hungry|sick|ready|my friend|not here|cold|in $t|busy|from $t|angry|old|too loud|afraid of $cs".split(
    "|"
)


def be(rng: Random) -> Pair:
    who, person = _who(rng)
    state = rng.choice(_STATES)
    things = _things(rng)
    state = state.replace("$cs", plural_of(things["c"])).replace("$t", things["t"])
    if state == "my friend" and person != "3":
        state = "happy"
    if rng.random() < 0.5:
        good = _BE[person]
        bad = rng.choice([b for b in ("is", "am", "are", "be", "") if b != good])
        return re.sub(" +", " ", f"{who} {bad} {state}."), f"{who} {good} {state}."
    good = "were" if person == "0" else "was"
    when = rng.choice(_WHEN_PAST)
    return f"{who} {'was' if good == 'were' else 'were'} {state}{when}.", f"{who} {good} {state}{when}."


def progressive(rng: Random) -> Pair:
    who, person = _who(rng)
    verb = rng.choice([v for v in _VERBS if v[0] not in ("like", "want", "have", "know", "need", "love")])
    rest = _rest(rng, verb)
    is_ = _BE[person]
    wrong = rng.choice(
        [f"{is_} {verb[0]}", f"{'is' if is_ != 'is' else 'are'} {verb[4]}", verb[4], f"{is_} {verb[1]}"]
    )
    return f"{who} {wrong} {rest}.", f"{who} {is_} {verb[4]} {rest}."


def negated(rng: Random) -> Pair:
    who, person = _who(rng)
    verb = rng.choice(_VERBS)
    rest = _rest(rng, verb)
    short = rng.random() < 0.5
    yes = ("doesn't" if short else "does not") if person == "3" else ("don't" if short else "do not")
    no = ("don't" if short else "do not") if person == "3" else ("doesn't" if short else "does not")
    if rng.random() < 0.6:
        wrong = f"{no} {verb[0]}"
    elif person == "3":
        wrong = rng.choice([f"{yes} {verb[1]}", f"not {verb[1]}", f"not {verb[0]}"])
    else:
        wrong = f"{yes} {verb[1]}"
    return f"{who} {wrong} {rest}.", f"{who} {yes} {verb[0]} {rest}."


def modal(rng: Random) -> Pair:
    who, _ = _who(rng)
    verb = rng.choice(_VERBS)
    rest = _rest(rng, verb)
    can = rng.choice(["can", "must", "will", "should", "could", "may"])
    wrong = rng.choice([w for w in (verb[1], verb[4], "to " + verb[0], verb[2]) if w != verb[0]])
    return f"{who} {can} {wrong} {rest}.", f"{who} {can} {verb[0]} {rest}."


def question(rng: Random) -> Pair:
    who, person = _who(rng)
    he = who[0].lower() + who[1:] if who.split()[0] in ("He", "She", "It", "They", "We", "You", "The", "My", "Our", "Her", "Two", "All") else who  # fmt: skip
    verb = rng.choice(_VERBS)
    rest = _rest(rng, verb)
    where = rng.choice(["", "", "Why ", "When ", "Where "])
    if rng.random() < 0.5:
        do, bad = ("does", "do") if person == "3" else ("do", "does")
        first = f"{where}{do}" if where else do.capitalize()
        wrong = f"{where}{bad}" if where else bad.capitalize()
        if rng.random() < 0.5:
            return f"{wrong} {he} {verb[0]} {rest}?", f"{first} {he} {verb[0]} {rest}?"
        other = verb[1]
        return f"{first} {he} {other} {rest}?", f"{first} {he} {verb[0]} {rest}?"
    did = f"{where}did" if where else "Did"
    wrong = rng.choice([w for w in (verb[2], verb[1], verb[3]) if w != verb[0]])
    return f"{did} {he} {wrong} {rest}?", f"{did} {he} {verb[0]} {rest}?"


def article(rng: Random) -> Pair:
    word = rng.choice(
        [
            *lexicon.THINGS,
            *lexicon.CREATURES,
            *lexicon.PEOPLE,
            "apple",
            "orange",
            "egg",
            "umbrella",
            "elephant",
            "owl",
            "hour",
            "old man",
            "ice cream",
            "animal",
            "office",
            "idea",
            "engineer",
        ]
    )
    if word.startswith(("uni", "use", "eu", "hon", "ukulele", "one")):
        word = "apple"
    good = "an" if word[0] in "aeiou" or word == "hour" else "a"
    frame = rng.choice(["I have {} $.", "She is {} $.", "I saw {} $ today.", "There is {} $ here.", "He wants {} $.", "This is {} $.", "Do you have {} $?", "It is {} $.", "We bought {} $ yesterday."])  # fmt: skip
    text = frame.replace("$", word)
    return text.format("a" if good == "an" else "an"), text.format(good)


def number(rng: Random) -> Pair:
    word = rng.choice(
        [
            *lexicon.THINGS,
            *lexicon.CREATURES,
            *lexicon.PEOPLE,
            "child",
            "man",
            "woman",
            "mouse",
            "foot",
            "tooth",
            "goose",
            "child",
        ]
    )
    more = plural_of(word)
    if more == word:
        word, more = "dog", "dogs"
    how = rng.choice(["two", "three", "many", "five", "ten", "some", "a few", "several", "all my", "these"])
    frame = rng.choice(["I have @ $.", "She saw @ $ in the park.", "There are @ $ here.", "He bought @ $.", "We need @ $.", "Look at @ $.", "They sell @ $."])  # fmt: skip
    wrong = word
    if word in ("child", "man", "woman", "mouse", "foot", "tooth", "goose") and rng.random() < 0.6:
        wrong = rng.choice([word + "s", more + "s"])
    text = frame.replace("@", how)
    if rng.random() < 0.25:
        count = rng.choice(["two", "three", "four", "many", "some"])
        where = rng.choice(["here", "in the box", "on the table", "in my house"])
        was = rng.random() < 0.3
        good, bad = ("were", "was") if was else ("are", "is")
        return f"There {bad} {count} {more} {where}.", f"There {good} {count} {more} {where}."
    return text.replace("$", wrong), text.replace("$", more)


_GRADES = "big:bigger:biggest tall:taller:tallest small:smaller:smallest fast:faster:fastest old:older:oldest happy:happier:happiest cold:colder:coldest good:better:best bad:worse:worst easy:easier:easiest cheap:cheaper:cheapest long:longer:longest hot:hotter:hottest strong:stronger:strongest young:younger:youngest".split()


def grade(rng: Random) -> Pair:
    plain, more, most = rng.choice(_GRADES).split(":")
    a, b = (
        f"{rng.choice(('my', 'the', 'your', 'her'))} {rng.choice([*lexicon.CREATURES, *lexicon.THINGS])}"
        for _ in range(2)
    )
    a = a[0].upper() + a[1:]
    draw = rng.random()
    odd = "gooder" if plain == "good" else "badder" if plain == "bad" else ""
    if draw < 0.4:
        wrong = rng.choice([f"more {more}", f"more {plain}", odd or f"more {more}"])
        return f"{a} is {wrong} than {b}.", f"{a} is {more} than {b}."
    if draw < 0.65:
        return f"{a} is {more} {rng.choice(('then', 'that', 'as'))} {b}.", f"{a} is {more} than {b}."
    where = rng.choice(["in the world", "of all", "in the house", "in our class"])
    wrong = rng.choice([f"the most {most}", f"the {more}", f"most {most}", f"the most {plain}"])
    return f"{a} is {wrong} {where}.", f"{a} is the {most} {where}."


def pronoun(rng: Random) -> Pair:
    m, things = first_name(rng), _things(rng)
    did = rng.choice([f"went to the {things['p']}", "played football", f"live in {things['t']}", "are friends", f"saw a {things['c']}", "ate lunch", "like music", "watched a film"])  # fmt: skip
    did = did.replace("a a", "an a").replace("a e", "an e").replace("a o", "an o").replace("a i", "an i")
    draw = rng.random()
    if draw < 0.4:
        return f"{rng.choice((f'Me and {m}', f'{m} and me'))} {did}.", f"{m} and I {did}."
    if draw < 0.7:
        good, bad = rng.choice([("He", "Him"), ("She", "Her"), ("They", "Them"), ("We", "Us")])
        act = rng.choice([f"went to {things['t']}", "ate the cake", f"found a {rng.choice(('coin', 'key', 'book'))}", "came home late", "can swim", "will help"])  # fmt: skip
        return f"{bad} {act}.", f"{good} {act}."
    good, bad = rng.choice([("him", "he"), ("her", "she"), ("them", "they"), ("me", "I"), ("us", "we")])
    act = rng.choice(
        [
            "I called",
            "She likes",
            "Give it to",
            "The dog sees",
            "He told",
            "We met",
            "They know",
            "Tom helped",
            "Come with",
        ]
    )
    if (act[0] == "I" and good == "me") or (act.startswith("We") and good == "us"):
        good, bad = "him", "he"
    return f"{act} {bad}.", f"{act} {good}."


_SWAPS: list[tuple[str, str]] = [
    ("Your {very nice|my best friend|late|right|so kind|welcome|not alone|too loud}.", "You're"), ("{Is this|Where is|I like|This is|I found|Give me} you're {dog|$n|book|name|house|bag|new $n}?", "your"),
    ("There {dog|house|$n|car|mother|new $n} is {big|old|red|nice|here|very small}.", "Their"), ("{I see|We know|Look at|I like} there {house|$n|new car|dog|garden}.", "their"), ("Their is a {$n|cat|dog|man|problem} {here|in the garden|on the roof|outside}.", "There"), ("They're {house|car|garden|dog|$n} is {big|old|nice}.", "Their"), ("Their {coming|late|very happy|my friends|going home|not here}.", "They're"), ("{Put it|Sit|We live|I was|Wait} over their.", "there"),
    ("It is to {hot|cold|late|big|loud|heavy|expensive}{ today| for me|}.", "too"), ("{I|We|They} {want|like|need|have} too {go|sleep|eat|swim|work|play}{ now| today|}.", "to"), ("Me to.", "too"),
    ("Its {cold|late|raining|a $n|my birthday|very nice|too big}{ today| now|}.", "It's"), ("The {dog|cat|bird|fox} {lost|ate|wants|hurt} it's {food|ball|home|leg}.", "its"),
    ("{I|You|They|We} should of {gone|called|known|waited|come}.", "have"), ("{He|She|Tom} could of {helped|won|died|come}.", "have"), ("Who's {book|bag|car|$n} is this?", "Whose"), ("Whose {coming|there|at the door|your friend}?", "Who's"),
    ("How much {apples|books|friends|$ns|people|days|chairs} {do you have|are there|can you see|did he buy}?", "many"), ("{I have|There is|She drinks|We need} many {water|milk|time|money|work|snow|sugar}.", "much"), ("There are less {people|cars|$ns|apples} {here|today|than before}.", "fewer"),
]  # fmt: skip
_WRONG_WORD = {"You're": "Your", "your": "you're", "Their": "There", "their": "there", "There": "Their", "They're": "Their", "there": "their", "too": "to", "to": "too", "It's": "Its", "its": "it's", "have": "of", "Whose": "Who's", "Who's": "Whose", "many": "much", "much": "many", "fewer": "less"}  # fmt: skip


def mixed_up(rng: Random) -> Pair:
    template, good = rng.choice(_SWAPS)
    bad = "They're" if template.startswith("They're") else _WRONG_WORD[good]
    wrong = write(rng, template, _things(rng))
    if wrong.endswith("?") and wrong.split()[0] in ("I", "This", "Give"):
        wrong = wrong[:-1] + "."
    return wrong, re.sub(rf"\b{re.escape(bad)}\b", good, wrong, count=1)


_SHORT = {"don't": "dont", "doesn't": "doesnt", "can't": "cant", "isn't": "isnt", "didn't": "didnt", "won't": "wont", "I'm": "Im", "you're": "youre", "it's": "its", "they're": "theyre", "aren't": "arent", "wasn't": "wasnt", "I've": "Ive", "couldn't": "couldnt", "let's": "lets", "that's": "thats", "what's": "whats", "he's": "hes", "she's": "shes"}  # fmt: skip
_WITH_SHORT = ["I don't {know|like it|care|want to go|understand}", "He doesn't {know|like me|work|eat fish}", "{We|I|You} can't {go|swim|see it|sleep|wait}", "This isn't {right|my $n|good|fair}", "{She|They|I} didn't {call|come|know|see the $n}", "It won't {work|rain|start|open}", "I'm {tired|late|hungry|from $t|at home|so happy}", "I think you're {right|nice|late}", "I know it's {late|cold|a $n}", "{They|We} aren't {here|ready|friends}", "It wasn't {me|my $n|easy|cold}", "I've {seen it|been to $t|no time|two $ns}", "I couldn't {sleep|find the $n|come}", "I think that's {nice|true|a good idea}", "I think he's {asleep|here|a $j}", "I hope she's {well|here|happy}"]  # fmt: skip


def apostrophe(rng: Random) -> Pair:
    right = write(rng, rng.choice(_WITH_SHORT), _things(rng)) + "."
    wrong = right
    for good, bad in _SHORT.items():
        wrong = re.sub(rf"\b{re.escape(good)}\b", bad, wrong)
    return wrong, right


def sound(rng: Random) -> str:
    """A sentence without mistakes."""
    return rng.choice(_GRAMMAR[:10])(rng)[1]


def doubled(rng: Random) -> Pair:
    right = sound(rng)
    words = right.split(" ")
    at = rng.randrange(max(1, len(words) - 1))
    return " ".join(
        [
            *words[: at + 1],
            words[at] if at else words[at].lower() if words[at] != "I" else "I",
            *words[at + 1 :],
        ]
    ), right


_PROPER = ["{I|We} live in $t.", "My name is $m.", "{He|She} comes from $t.", "{I|We} will meet on $d.", "$m is my friend.", "{I|We} speak English.", "$m and I like $f.", "Is $m here?", "The train goes to $t.", "On $d I work.", "I think I am late.", "What do you want?", "Where is the $n?", "I know what I want.", "$m lives in $t."]  # fmt: skip


def capitals(rng: Random) -> Pair:
    right = (
        write(rng, rng.choice(_PROPER), _things(rng) | {"m": first_name(rng), "d": rng.choice(DAYS)})
        if rng.random() < 0.75
        else sound(rng)
    )
    wrong = right.lower()
    return (wrong[:-1] if rng.random() < 0.4 else wrong), right


def spelling(rng: Random) -> Pair:
    wrong = write(rng, rng.choice(_TEMPLATES)).strip()
    wrong = wrong[0].upper() + wrong[1:] + ("?" if re.match(r"(Waht|What) is", wrong) else ".")

    def good(match: re.Match[str]) -> str:
        word = match[0]
        found = _SPELLING.get(word.lower(), word).replace("_", " ")
        return found[0].upper() + found[1:] if word[0].isupper() else found

    return wrong, re.sub(r"[A-Za-z]+", good, wrong)


_GRAMMAR: list[Callable[[Random], Pair]] = [agreement, past, perfect, be, progressive, negated, modal, question, number, grade, article, pronoun, mixed_up, apostrophe, doubled, capitals]  # fmt: skip
_SHARES = (16, 12, 6, 12, 8, 8, 5, 7, 7, 6, 6, 6, 10, 6, 3, 7)
_ASK = [
    "{Fix|Correct|Check|Improve|Repair} {the grammar|my grammar|the grammar here|the grammar of this sentence|the grammar in this sentence|the mistakes|the errors|the mistake|the mistakes in this sentence|this sentence|this|it|the sentence|the following sentence|my sentence|my English}{ please|, please|}: $t",
    "{Fix|Correct|Proofread|Grammar|Grammar check|Correct this|Fix this|Correction|Edit}: $t", "{Please|Can you|Could you} {fix|correct|proofread} {this|this sentence|the grammar|my sentence|the mistakes|it}{ for me|}: $t", "{Rewrite|Write|Say} {this|it|this sentence|the sentence} {correctly|in correct English|without mistakes|in good English|with correct grammar}: $t",
    "{Fix|Correct} $q", "$t\n{Fix|Correct} {the grammar|this|the sentence|it|the mistakes}{.|, please.|}", "$q {Fix the grammar.|Correct it.|Please correct this sentence.|What is the correct form?|How do I say that correctly?}", "{What is the correct form of|How should it be|What is the right way to say}{ this|}: $t", "{What is wrong with this sentence|What is the mistake here|Find the mistake}? $q", "{I wrote|My text is|I said}: $q {Is it right?|Please fix it.|Correct it.|Fix the grammar.}",
]  # fmt: skip
_ASK_SPELLING = ["{Fix|Correct|Check} {the spelling|my spelling|the typos|the spelling mistakes|the spelling in this sentence|the typo}{ please|}: $t", "{Spell check|Spelling|Fix typos|Correct spelling}: $t", "$t\n{Fix|Correct} the {spelling|typos}.", "{Please|Can you} {fix|correct} the {spelling|typos}: $t"]  # fmt: skip


def correction(rng: Random) -> Turn:
    """A sentence with a mistake, or with none, that is to be put right."""
    spelled = rng.random() < 0.18
    while True:
        wrong, right = spelling(rng) if spelled else rng.choices(_GRAMMAR, _SHARES)[0](rng)
        if wrong != right or rng.random() < 0.02:
            break
    if rng.random() < 0.06:
        wrong = right
    elif rng.random() < 0.2 and not spelled:  # typed carelessly besides
        wrong = wrong[0].lower() + wrong[1:] if rng.random() < 0.7 else wrong
        wrong = wrong[:-1] if wrong[-1] == "." and rng.random() < 0.7 else wrong
    template = rng.choice(_ASK_SPELLING if spelled and rng.random() < 0.7 else _ASK)
    ask = write(rng, template.replace("$t", "\x01").replace("$q", "\x02"))
    quote = rng.choice(['"', '"', "'"]) if "'" not in wrong else '"'
    ask = ask.replace("\x02", f"{quote}{wrong}{quote}").replace(
        "\x01", wrong if rng.random() < 0.8 else f"{quote}{wrong}{quote}"
    )
    if rng.random() < 0.15:
        ask = ask[0].lower() + ask[1:]
    return Turn("grammar", ask, right, f"grammar {right.lower()}")
