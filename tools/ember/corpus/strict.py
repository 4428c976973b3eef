# ruff: noqa: E501, SIM905 - lines of text and word lists read better whole
"""Spelling with a mark between the letters, before or after in a dictionary, numbers compared, kinds that are known in whole."""

from __future__ import annotations

from random import Random

from .casing import phrase_of
from .grammar import write
from .sample import Turn
from .scene_words import BOYS, GIRLS
from .senses import verdict_only
from .tasks import in_words, listing
from .text_tasks import WORDS
from .typed import typed

_BETWEEN = {
    " ": ["with {a space|spaces|blanks} between {the letters|its letters|each letter}", "with spaces", "separated by spaces", "with a space after each letter", "letters apart, with spaces", "spaced out", "with gaps between the letters"],
    "-": ["with {dashes|hyphens|a dash|a hyphen} between {the letters|its letters|each letter}", "with dashes", "separated by {dashes|hyphens}", "letter-by-letter with dashes"],
    ", ": ["with {commas|a comma} between {the letters|its letters|each letter}", "with commas", "separated by commas", "letter, comma, letter"],
    ".": ["with {dots|a dot|periods} between {the letters|its letters|each letter}", "with dots", "separated by dots"],
    "/": ["with slashes between the letters", "with slashes", "separated by slashes"],
    "\n": ["one letter {per|on each} line", "each letter on {its own|a new} line", "one letter under the other"],
}  # fmt: skip
_MARKS = [" ", " ", " ", "-", "-", ", ", ", ", ".", "/", "\n"]


def _word(rng: Random) -> str:
    draw = rng.random()
    if draw < 0.5:
        return rng.choice(WORDS)
    if draw < 0.7:
        return rng.choice(GIRLS + BOYS).lower()
    for _ in range(20):
        word = phrase_of(rng)
        if word.isalpha():
            return word
    return rng.choice(WORDS)


def _quote(rng: Random, word: str) -> str:
    return rng.choice([word, f'"{word}"', f'"{word}"', f"'{word}'"])


def spaced(rng: Random) -> Turn:
    """A word letter by letter with the mark that is asked for."""
    word = _word(rng)
    mark = rng.choice(_MARKS)
    how = write(rng, rng.choice(_BETWEEN[mark]))
    upper = rng.random() < 0.15
    letters = word.upper() if upper else word
    tail = (
        rng.choice([" and in capitals", ", in capital letters", ", capital letters please"]) if upper else ""
    )
    w = _quote(rng, word)
    ask = write(rng, f"{{{{Spell|Write|Spell out|Please spell|Can you spell|Say|Type|Print|Break up|Could you write|I need|Show me|Give me}} {{the word |the letters of |}}\x01 {how}{tail}|\x01 {how}{tail}|{how}{tail}: \x01|{{Letters of|Spelling of|Spell}} \x01, {how}{tail}|{{The word is|My word is|It is}} \x01. {{Spell|Write}} it {how}{tail}}}")  # fmt: skip
    ask = ask[0].upper() + ask[1:] if rng.random() < 0.7 else ask
    ask = ask.replace("\x01", w)
    ask += "?" if ask.startswith(("Can", "Could")) else rng.choice(["", ".", ".", ", please", " please", " pls", "!"])  # fmt: skip
    return Turn("spelling", ask, mark.join(letters), f"spaced {ask.lower()}")


def plain_spelling(rng: Random) -> Turn:
    """A word to spell, with what people say around it."""
    word = _word(rng)
    w = _quote(rng, word)
    ask = write(rng, "{{hey |hi, |hello, |sorry, |}{can|could} {u|you} spell \x01{ for me| pls| please| again|}? {i always get it wrong|I never know how|I keep forgetting|it's a hard word|my son asks|I need it for a letter|I am not sure|thanks|I forgot}|{how do you|how do i|how does one|how to} spell \x01{?|? {I always get it wrong|I never know|I forgot}}|{I|My {daughter|friend|pupil|mother}} can't spell \x01{. Help!|. Can you?|, can you?|. Please spell it.}|{The {lady|man|doctor|clerk|teacher} {at the desk|on the phone|} {needs|wants} {my name|the word|it} letter by letter. It is|My name has to be spelled on the phone. It is|Letter by letter, please:|Spelling test! The word is|Next word for spelling:|And now spell} \x01{.|}|\x01 {letter by letter|spelled out|in single letters|- spell it|: spelling}{, please|?|}}")  # fmt: skip
    ask = ask[0].upper() + ask[1:] if rng.random() < 0.6 else ask
    ask = ask.replace("\x01", w)
    return Turn("spelling", ask, f"{word[0].upper() + word[1:]} is spelled {'-'.join(word)}.", f"plain spelling {ask.lower()}")  # fmt: skip


def dictionary(rng: Random) -> Turn:
    """Whether a word stands before or after another, or which of them comes first."""
    a, b = rng.sample(WORDS, 2) if rng.random() < 0.8 else rng.sample(GIRLS + BOYS, 2)
    x, y = (f'"{a}"', f'"{b}"') if rng.random() < 0.4 else (a, b)
    before = a.lower() < b.lower()
    where = "{in a dictionary|in the dictionary|in the alphabet|in alphabetical order|alphabetically|in a lexicon|in a phone book|in the index}"
    draw = rng.random()
    if draw < 0.45:
        ask = write(rng, f"{{{{would|does|will|should}} {x} {{stand|come|be|go|appear}} before or after {y} {where}|is {x} before or after {y} {where}|{where}: {x} before or after {y}|before or after {y}: where {{does|would}} {x} {{stand|come}} {where}|{{I sort my books|sorting|I have to sort words}}: {{does|is}} {x} {{come |}}before or after {y}}}?")  # fmt: skip
        ask = ask.replace("is " + x + " come", "does " + x + " come").replace("does " + x + " before", "is " + x + " before")  # fmt: skip
        answer = f"{a[0].upper() + a[1:]} comes {'before' if before else 'after'} {b}."
    elif draw < 0.75:
        word = rng.choice(("before", "after"))
        yes = (word == "before") == before
        ask = write(
            rng, f"{{{{does|would}} {x} {{come|stand}} {word} {y} {where}|is {x} {word} {y} {where}}}?"
        )
        answer = f"{'Yes' if yes else 'No'}, {a} comes {'before' if before else 'after'} {b}."
        if rng.random() < 0.3:
            asked = verdict_only(rng, ask[0].upper() + ask[1:])
            return Turn("sorting", asked, "Yes" if yes else "No", f"dictionary {ask.lower()}")
    else:
        first = rng.random() < 0.6
        ask = write(rng, f"{{which|which word|which one|what}} {{comes|stands|is}} {'first' if first else 'last'} {where}{{, |: }}{x} or {y}?")  # fmt: skip
        winner = a if before == first else b
        answer = f"{winner[0].upper() + winner[1:]} comes {'first' if first else 'last'}."
    ask = ask[0].upper() + ask[1:] if rng.random() < 0.6 and ask[0] != '"' else ask
    return Turn("sorting", ask, answer, f"dictionary {ask.lower()}")


def compared(rng: Random) -> Turn:
    """Two numbers: whether the one is bigger, in a word or with the reason, or which of them is."""
    a, b = rng.sample(range(1, rng.choice((20, 100, 100, 1000))), 2)
    big = rng.random() < 0.6
    word = rng.choice("bigger larger greater higher more".split() if big else "smaller less lower".split())
    x, y = (str(a), str(b)) if rng.random() < 0.8 or max(a, b) > 99 else (in_words(a), in_words(b))
    true = (a > b) == big
    if rng.random() < 0.7:
        ask = write(rng, f"{{is|Is|Is the number|is}} {x} {word} than {y}?")
        if rng.random() < 0.65:
            asked = verdict_only(rng, ask)
            return Turn("yes or no", asked, "Yes" if true else "No", f"compared {a} {b} {big}")
        fact = f"{a} is {'bigger' if a > b else 'smaller'} than {b}"
        return Turn("yes or no", typed(rng, ask), f"{'Yes' if true else 'No'}, {fact}.", f"compared {a} {b} {big}")  # fmt: skip
    winner = max(a, b) if big else min(a, b)
    ask = write(rng, f"{{which|what|which number|which of the two}} is {word}{{, |: }}{x} or {y}?")
    ask = ask[0].upper() + ask[1:] if rng.random() < 0.6 else ask
    if rng.random() < 0.4:
        return Turn("one word", f"{ask} {rng.choice(('Only the number.', 'Just the number.', 'Number only.', 'Answer with the number.'))}", str(winner), f"compared {a} {b} {big}")  # fmt: skip
    return Turn("facts", typed(rng, ask), f"{winner} is {'bigger' if big else 'smaller'}.", f"compared {a} {b} {big}")  # fmt: skip


# kinds that are known in whole: questions, and the members
_WHOLES = """{which|what} months {belong to|are in|make up|does|do you count as} summer|in which months is it summer|when is summer|the months of summer|which are the summer months|in what months do we have summer: June,July,August
{which|what} months {belong to|are in|make up} winter|in which months is it winter|when is winter|the months of winter|which are the winter months: December,January,February
{which|what} months {belong to|are in|make up} spring|in which months is it spring|when is spring|the months of spring|which are the spring months: March,April,May
{which|what} months {belong to|are in|make up} {autumn|fall}|in which months is it autumn|when is autumn|the months of autumn|which are the autumn months: September,October,November
{which|what} {colors|colours} {are on|are in|has|are there on|can you see on|does one see on} a traffic light|what {colors|colours} does a traffic light have|the {colors|colours} of a traffic light|traffic light {colors|colours}|a traffic light can be which {colors|colours}|what are the lights of a traffic light: red,yellow,green
{which|what} {colors|colours} {are in|has|make up|belong to|can you see in} {the|a} rainbow|what {colors|colours} does a rainbow have|the {colors|colours} of the rainbow|rainbow {colors|colours}: red,orange,yellow,green,blue,indigo,violet
{which|what} are the primary {colors|colours}|the {three |}primary {colors|colours}|from which three {colors|colours} can you mix all the others: red,yellow,blue
{which|what} {days|two days} {belong to|are|make up|are in|form} the weekend|what are the days of the weekend|which days are free of school|the weekend has which days|when is the weekend|on which days is it weekend: Saturday,Sunday
{which|what} days are {working days|workdays|weekdays|school days}|the {working|school} days of the week|on which days do {most people work|children go to school}|what are the weekdays: Monday,Tuesday,Wednesday,Thursday,Friday
{which|what} are the {four |}seasons|what seasons {are there|does the year have|has a year}|the {four |}seasons of the year|into which seasons is the year divided|names of the seasons: spring,summer,autumn,winter
{which|what} are the {four |}{directions|points of the compass|cardinal directions}|what directions does a compass {show|have}|the {four |}directions: north,east,south,west
{which|what} are the {five |}senses|what senses {do we|do people|does a person} have|the {five |}senses{ of people|}|with which senses do we notice the world: sight,hearing,smell,taste,touch
{which|what} {meals are there|are the meals} {of|in|on} a day|what meals do {people|we} {eat|have} {in|on} a day|the {three |}meals of {the|a} day: breakfast,lunch,dinner
{which|what} are the {five |}vowels|what letters are vowels|the vowels{ of the alphabet|}|which letters are called vowels: a,e,i,o,u
{which|what} are the {five |}oceans|what oceans are there{ on earth|}|the {five |}oceans of the world: Pacific,Atlantic,Indian,Southern,Arctic
{which|what} planets are there|what are the planets of {our|the} solar system|which planets go around the sun|the {eight |}planets{ of our solar system|}: Mercury,Venus,Earth,Mars,Jupiter,Saturn,Uranus,Neptune
{which|what} are the {seven |}continents|what continents are there|the {seven |}continents{ of the earth|}|names of all continents: Africa,Antarctica,Asia,Australia,Europe,North America,South America
{which|what} are the days of {the|a} week|what days does a week have|the {seven |}days{ of the week|}|all weekdays from Monday on|names of the days: Monday,Tuesday,Wednesday,Thursday,Friday,Saturday,Sunday
{which|what} suits are {there |}in a deck of cards|the suits of playing cards|what are the four card suits: hearts,diamonds,clubs,spades
{which|what} are the {four |}fingers{ and the thumb|}|what is each finger of a hand called|names of the fingers: thumb,index finger,middle finger,ring finger,little finger
{which|what} months have 30 days|the months with {30|thirty} days|what are the months that have only 30 days: April,June,September,November
{which|what} {countries|states} are in {Great Britain|Britain}|the countries of Great Britain|what countries make up Great Britain: England,Scotland,Wales
{which|what} {states|forms} can water {have|be in|take}|what are the states of water|the three states of matter: solid,liquid,gas
{which|what} {cutlery|things} do you put beside a plate|what belongs to cutlery|what do we eat with|the pieces of cutlery: knife,fork,spoon
{which|what} {colors|colours} does the {French|flag of France} have|what {colors|colours} are {on|in} the flag of France|the {colors|colours} of the French flag: blue,white,red
{which|what} {colors|colours} are {on|in} the flag of Germany|what {colors|colours} does the German flag have|the {colors|colours} of the German flag: black,red,gold
{which|what} {colors|colours} are {on|in} the flag of Italy|what {colors|colours} does the Italian flag have|the {colors|colours} of the Italian flag: green,white,red
{which|what} {colors|colours} does a zebra have|what {colors|colours} is a zebra|the {colors|colours} of a zebra|in which {colors|colours} are zebras striped: black,white
{which|what} {colors|colours} does a chess board have|what {colors|colours} are the squares of a chess board|the {colors|colours} of chess pieces: black,white
{which|what} {coins|US coins} are there in the United States|American coins: penny,nickel,dime,quarter"""
WHOLES = [(asks, members.split(",")) for asks, members in (row.rsplit(": ", 1) for row in _WHOLES.replace("|does|do you count as} summer", "} summer").replace("does the {French|flag of France} have", "does the French flag have").split("\n"))]  # fmt: skip
_FORMS = {
    "bullets": ["as bullets", "as bullet points", "with bullets", "as a bullet list", "bulleted", "with dashes"],
    "numbered": ["numbered", "as a numbered list", "with numbers", "in a numbered list"],
    "commas": ["with commas", "separated by commas", "comma separated"],
    "lines": ["one per line", "each on its own line", "one under the other"],
}  # fmt: skip


def all_of(rng: Random) -> Turn:
    """All members of a kind, as a sentence or as a list."""
    asks, members = rng.choice(WHOLES)
    ask = write(rng, "{" + asks + "}")
    if ask.startswith(("which", "what", "in ", "on ", "when", "from", "with", "into", "a traffic", "the weekend has")):  # fmt: skip
        ask = write(rng, f"{{{{please tell me|can you tell me|do you know|tell me|I forgot|quiz:|and|so|hey,|my son asks:}} {ask}|{ask}|{ask}|{ask}|{ask}}}?")  # fmt: skip
    else:
        ask = write(rng, f"{{Name|List|Tell me|Give me|Write down|Say|Please name|What are|I need|Count up}} {ask}") + rng.choice((".", ""))  # fmt: skip
        ask = ask.rstrip(".") + "?" if ask.startswith("What") else ask
    key = f"all of {ask.lower()}"
    if rng.random() < 0.25:
        form = rng.choice(list(_FORMS))
        stop = rng.choice((", ", " ", ". ", " - "))
        ask = ask.rstrip(".?") + stop + rng.choice(_FORMS[form])
        ask = ask[0].upper() + ask[1:] if rng.random() < 0.6 else ask
        shown = {"bullets": "\n".join(f"- {m}" for m in members), "numbered": "\n".join(f"{i}. {m}" for i, m in enumerate(members, 1)), "commas": ", ".join(members), "lines": "\n".join(members)}[form]  # fmt: skip
        return Turn("lists", ask, shown, key)
    ask = ask[0].upper() + ask[1:] if rng.random() < 0.5 else ask
    answer = listing(members)
    return Turn("lists", ask, f"{answer[0].upper() + answer[1:]}.", key)


def strict_turn(rng: Random) -> Turn:
    """One of these."""
    return rng.choices((spaced, plain_spelling, dictionary, compared, all_of), (5, 3, 4, 3, 5))[0](rng)
