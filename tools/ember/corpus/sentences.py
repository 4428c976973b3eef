# ruff: noqa: E501, SIM905 - lines of text and word lists read better whole
"""Sentences on demand: with a given word, with two or three of them, about a thing; and why things are as they are."""

from __future__ import annotations

from random import Random

from . import lexicon
from .grammar import write
from .knowledge import TOPICS
from .sample import Turn
from .tasks import fix_articles, listing
from .typed import around, typed

_ONE = {
    "thing": ["I {bought|found|lost|need|have|like} {a|the} {|new |old |small |big }$w{ yesterday| in the $s| at the market|}.", "The $w is {on the table|in the $s|$a|$c|very old|behind the door}.", "{My mother|My father|$n|The $j|My friend} has {a|the} $a $w.", "There is a $w {in the $s|on the table|under the bed}.", "$n put the $w {on the table|into the bag|in the $s}."],
    "food": ["I {like|eat|cook|want} $w {for dinner|for lunch|every day|with bread}.", "{My mother|$n|The cook} {bought|made|ate} some $w{ today|}.", "The $w {tastes good|is fresh|is in the kitchen|smells nice}.", "We had $w for {dinner|lunch|breakfast}."],
    "creature": ["The $w {sleeps|lives|runs|plays|eats} in the $s.", "I {saw|heard|found|fed} a $w {in the $s|today|yesterday}.", "{A|The} $a $w {ran|walked|came} into the $s.", "$n has a $w{ and a dog|}."],
    "place": ["We {went|walked|drove} to the $w {yesterday|on Sunday|together}.", "The $w is {far away|near the river|very old|closed today|open}.", "I {met|saw} $n {at|in} the $w.", "There is a {new|big|small} $w in our town."],
    "person": ["The $w {works|lives} in the $s.", "{My|Our} {sister|brother|uncle|neighbor} is a $w.", "I {met|saw|asked|know} a {kind|good|young|old} $w.", "The $w has a $a $o."],
    "quality": ["The $o is $w.", "I have a $w $o.", "{My|The} $k is very $w.", "$n was $w {yesterday|today}.", "It is a $w day."],
    "verb": ["I $w the $o {every day|in the evening|on Sunday}.", "We $w the $o {together|in the $s}.", "You can $w the $o{ now|}.", "I want to $w the $o."],
    "past": ["$n $w the $o {yesterday|in the $s|on Monday}.", "We $w the $o{ yesterday|}.", "The $j $w the $o."],
    "color": ["The $o is $w.", "$n has a $w $o.", "I like the $w $o.", "The $k is $w."],
}  # fmt: skip
_POOLS: list[tuple[float, str, list[str]]] = [(4, "thing", lexicon.THINGS), (2, "food", lexicon.FOODS), (3, "creature", lexicon.CREATURES), (2, "place", lexicon.PLACES), (2, "person", lexicon.PEOPLE), (2, "quality", lexicon.QUALITIES), (1.5, "verb", list(lexicon.ACTS)), (1, "past", list(lexicon.ACTS.values())), (1, "color", lexicon.COLORS)]  # fmt: skip
_FOR = "{ for my {English |language |}class| for my homework| for {my son|my daughter|school|a test|a letter}| please| for me|, please||||}"


def _env(rng: Random) -> dict[str, str]:
    return {"o": rng.choice(lexicon.THINGS), "k": rng.choice(lexicon.CREATURES), "s": rng.choice(lexicon.PLACES), "n": rng.choice(lexicon.FIRST_NAMES), "j": rng.choice(lexicon.PEOPLE), "a": rng.choice(lexicon.QUALITIES), "c": rng.choice(lexicon.COLORS)}  # fmt: skip


def _up(text: str) -> str:
    return text[0].upper() + text[1:]


def with_word(rng: Random) -> Turn:
    """A sentence in which a word stands."""
    _, kind, pool = rng.choices(_POOLS, [w for w, _, _ in _POOLS])[0]
    word = rng.choice(pool)
    env = _env(rng) | {"w": word}
    w = rng.choice([f'"{word}"', f'"{word}"', word, f"'{word}'"])
    ask = write(rng, f"{{{{Use|Put|Say}} {{the word |}}{w} in {{a|one|a short|a full}} sentence|{{Write|Make|Give me|Form|Tell me|I need|Say|Build|Make up|Invent}} {{a|one|a short|a simple|one short}} sentence {{with|using|that has|containing|that contains|with the use of}} {{the word |}}{w}|{{A|One|A short}} sentence with {{the word |}}{w}|{{What is a|Do you know a|Can you make a|Can you write a}} sentence with {{the word |}}{w}|{w} in a sentence|{{Show me how to use|How do I use}} {{the word |}}{w} in a sentence|{{Example|An example}} sentence {{for|with}} {w}|{{The word is|My word is}} {w}. {{Make a sentence|Write a sentence with it|One sentence with it}}}}")  # fmt: skip
    question = ask.startswith(("What", "Do you", "Can", "How"))
    tail = write(rng, _FOR) if not ask.startswith(w) else ""
    ask += f"{' ' if tail[:1].isalpha() else ''}{tail}"
    ask += "?" if question else rng.choice([".", ".", "", "!"])
    answer = fix_articles(write(rng, rng.choice(_ONE[kind]), env))
    ask = around(rng, _up(ask)) if rng.random() < 0.08 else _up(ask)
    return Turn("one sentence", typed(rng, ask, True), _up(answer), f"with word {ask.lower()}")


_TWO = {
    ("creature", "place"): ["The $w {runs|plays|sleeps|walks} in the $v.", "I saw a $w in the $v.", "There is a $w near the $v."], ("person", "place"): ["The $w {works|waits|stands} in the $v.", "I met a $w at the $v."], ("thing", "place"): ["The $w is in the $v.", "I left the $w at the $v.", "You can buy a $w in the $v."],
    ("person", "thing"): ["The $w has a $v.", "The $w bought a new $v.", "I gave the $v to the $w."], ("creature", "food"): ["The $w eats $v.", "I gave the $w some $v."], ("quality", "thing"): ["I have a $w $v.", "The $v is very $w."], ("quality", "creature"): ["The $w $v sleeps in the sun.", "My $v is $w."], ("thing", "thing"): ["The $w is next to the $v.", "I bought a $w and a $v.", "The $v is under the $w."], ("creature", "creature"): ["The $w and the $v are friends.", "A $w ran after the $v."], ("food", "food"): ["We had $w and $v for dinner.", "I like $w with $v."], ("place", "place"): ["The $w is near the $v.", "We walked from the $w to the $v."], ("person", "person"): ["The $w helps the $v.", "The $w and the $v are friends."], ("color", "thing"): ["I have a $w $v.", "The $v is $w."], ("person", "creature"): ["The $w has a $v.", "The $w feeds the $v."], ("person", "food"): ["The $w eats $v.", "The $w bought some $v."], ("verb", "thing"): ["I want to $w the $v.", "We $w the $v every day."],
}  # fmt: skip


def with_words(rng: Random) -> Turn:
    """A sentence in which two or three words stand."""
    kinds = rng.choice(list(_TWO))
    pools = {kind: pool for _, kind, pool in _POOLS}
    w, v = rng.choice(pools[kinds[0]]), rng.choice(pools[kinds[1]])
    words = [w, v]
    template = rng.choice(_TWO[kinds])
    if w == v:
        return with_words(rng)
    if rng.random() < 0.2 and template.endswith("."):
        place = rng.choice(lexicon.PLACES)
        if place not in words and "place" not in kinds:
            words, template = [*words, place], template[:-1] + f" in the {place}."
    answer = _up(fix_articles(write(rng, template, {"w": w, "v": v})))
    shown = words if rng.random() < 0.7 else rng.sample(words, len(words))
    said = [f'"{x}"' for x in shown] if rng.random() < 0.3 else shown
    both = rng.choice([listing(said), listing(said), ", ".join(said)])
    ask = write(rng, f"{{{{Make|Write|Form|Build|Give me|I need|Say|Can you make}} {{a|one|a short|one short}} sentence {{with|using|from|out of|that has}} {{the words |these words: |}}{both}|{{Use|Put}} {{the words |}}{both} in {{a|one|the same}} sentence|{{A|One}} sentence with {both}|{{Words|My words}}: {both}. {{Make|Write}} a sentence|{both} in one sentence}}{{, please||}}")  # fmt: skip
    ask += "?" if ask.startswith("Can") else rng.choice([".", "", "!"])
    return Turn("one sentence", typed(rng, _up(ask), True), answer, f"with words {both} {ask.lower()}")


def about_thing(rng: Random) -> Turn:
    """A sentence about a thing that ember knows, or about any thing."""
    if rng.random() < 0.65:
        name = rng.choice(list(TOPICS))
        answer, known = TOPICS[name], True
        bare = name.removeprefix("a ").removeprefix("an ")
        shown = rng.choice([name, bare if bare != name else name, name])
    else:
        kind, pool, said = rng.choice([("creature", lexicon.CREATURES, "The $w {lives|sleeps|plays} in the $s."), ("food", lexicon.FOODS, "I like to eat $w{ for lunch| for dinner|}."), ("thing", lexicon.THINGS, "The $w is {in the $s|on the table|$c}."), ("place", lexicon.PLACES, "The $w is a place {in our town|near the river|that I like}.")])  # fmt: skip
        word = rng.choice(pool)
        if any(k.split()[-1] == word for k in TOPICS):
            return about_thing(rng)
        name = shown = word if kind == "food" else f"{'an' if word[0] in 'aeiou' else 'a'} {word}"
        answer, known = _up(fix_articles(write(rng, said, _env(rng) | {"w": word}))), False
    ask = write(rng, f"{{{{Write|Make|Say|Give me|Tell me|I need|Form|Please write|Can you write}} {{one|a|a short|a single|one short|just one|a simple}} sentence {{about|on|describing}} {shown}|{{Describe|Explain}} {shown} {{in|with|using}} {{one|a single|one short|exactly one}} sentence|{{In|With}} {{one|a single|one short}} sentence{{, |: }}{{what is {name}|describe {shown}|explain {shown}|tell me about {shown}}}|{{What is|Explain what}} {name}{{ is|}}{{? One sentence| in one sentence|, in one sentence|, but only one sentence}}|{shown} in one sentence|{{One|A}} sentence {{about|on}} {shown}|One sentence only: {{what is {name}|about {shown}}}}}{{, please||||}}")  # fmt: skip
    if not known:  # a sentence with it, not what it is
        ask = write(rng, f"{{{{Write|Make|Say|Give me|Tell me|I need|Form|Please write|Can you write}} {{one|a|a short|a single|one short|just one|a simple}} sentence {{about|on|with}} {shown}|{{One|A}} sentence {{about|on|with}} {shown}}}{{, please||||}}")  # fmt: skip
    ask = ask.replace(f"What is {name} is", f"What is {name}").replace(f"Explain what {name}?", f"Explain what {name} is.").replace(f"Explain what {name},", f"Explain what {name} is,").replace(f"Explain what {name} in", f"Explain what {name} is in")  # fmt: skip
    ask += "?" if ask.startswith(("What", "Can")) or "what is" in ask else rng.choice([".", "", "!", "."])
    return Turn("one sentence", typed(rng, _up(fix_articles(ask))), answer, f"about thing {ask.lower()}")


# why something is so: the question without "why", and the answer
WHY: dict[str, str] = dict(
    row.split(": ") for row in
    """do we eat: We eat because the body needs energy.|do we drink water: We drink water because the body needs it to live.|do people wear coats: People wear coats because it is cold in winter.|do birds fly south: Birds fly south because it is warmer there in winter.|do birds build nests: Birds build nests because they lay their eggs there.|do bees fly to flowers: Bees fly to flowers because they collect nectar for honey.|do leaves fall in autumn: Leaves fall in autumn because the trees rest in winter.|is the sky blue: The sky is blue because the air scatters blue light the most.|is the grass green: Grass is green because it contains chlorophyll.|do we brush our teeth: We brush our teeth because it keeps them clean and healthy.|do we wash our hands: We wash our hands because it removes dirt and germs.|do we use umbrellas: We use umbrellas because they keep us dry in the rain.|do we need air: We need air because it contains the oxygen that we breathe.|do plants need light: Plants need light because they make their food from it.|do plants need water: Plants need water because they cannot grow without it.|do cats purr: Cats purr because they feel good.|do dogs bark: Dogs bark because they want to warn or to greet someone.|do dogs wag their tails: Dogs wag their tails because they are happy.|do people go to school: People go to school because they want to learn.|do we go to school: We go to school because we want to learn.|do we need friends: We need friends because they help us and make us happy.|do people work: People work because they need money to live.|do people read books: People read books because they want to learn or to enjoy a story.|do we cry: We cry because we are sad, hurt or very happy.|do we laugh: We laugh because something is funny or because we are happy.|does ice melt: Ice melts because it gets warm.|does wood float: Wood floats because it is lighter than water.|does iron sink: Iron sinks because it is heavier than water.|does it rain: It rains when the drops in a cloud become too heavy.|does the sun rise: The sun rises because the Earth turns.|is it dark at night: It is dark at night because our side of the Earth is turned away from the sun.|do we have seasons: We have seasons because the Earth is tilted on its way around the sun.|is the sea salty: The sea is salty because rivers carry salt from the rocks into it.|do cars need fuel: Cars need fuel because the engine burns it to move.|do we put food in the fridge: We put food in the fridge because it stays fresh in the cold.|do people have pets: People have pets because animals are good company.|do bears sleep in winter: Bears sleep in winter because there is little food.|do cows eat grass: Cows eat grass because it is their food.|do fish have gills: Fish have gills because they breathe under water with them.|do we wear helmets: We wear helmets because they protect the head.|do we wear shoes: We wear shoes because they protect our feet.|do we need maps: We need maps because they show us the way.|do we celebrate birthdays: We celebrate birthdays because we are glad that someone was born.|do people sing: People sing because it makes them happy.|do houses have roofs: Houses have roofs because they keep out the rain.|do houses have windows: Houses have windows because they let in light and air.|do we stop at a red light: We stop at a red light because others may go then.|do we have clocks: We have clocks because we want to know the time.|do camels have humps: Camels have humps because they store fat in them.|do giraffes have long necks: Giraffes have long necks because they eat leaves from tall trees.|do spiders spin webs: Spiders spin webs because they catch insects with them.|do snakes have no legs: Snakes have no legs because they move by sliding on their belly.|do zebras have stripes: Zebras have stripes because they help to confuse lions and flies.|is sugar bad for teeth: Sugar is bad for teeth because it feeds the germs that make holes in them.|is exercise good: Exercise is good because it keeps the body strong.|are vegetables healthy: Vegetables are healthy because they are full of vitamins.|do we recycle: We recycle because it saves material and keeps nature clean.|do people travel: People travel because they want to see other places.""".split("|")
)  # fmt: skip


def why(rng: Random) -> Turn:
    """Why something is so, in one sentence."""
    what, answer = rng.choice(list(WHY.items()))
    verb, rest = what.split(" ", 1)
    plain = rest if verb in ("do", "does") else f"{' '.join(rest.split()[:-1])} {verb} {rest.split()[-1]}"
    if verb == "does":
        first, second = rest.split(" ", 1)
        plain = f"{first} {second}s" if first in ("ice", "wood", "iron", "it") else f"the sun {second.split()[-1]}s"  # fmt: skip
    ask = write(rng, f"{{Why {what}?|Why {what}?|why {what}|{{Tell me|Explain|Can you tell me|Do you know|Please explain|Could you explain|I wonder}} why {plain}{{.|, please.|}}|Why {what}, please?|My {{son|daughter|little brother|class}} asks why {plain}.|What is the reason that {plain}?}}")  # fmt: skip
    draw = rng.random()
    if draw < 0.15:
        ask = write(rng, f"{{In one sentence|In a single sentence|One sentence}}: why {what}?")
    elif draw < 0.3:
        ask = write(rng, f"{{Tell me|Explain|Say}} in {{one|a single}} sentence why {plain}.")
    elif draw < 0.36:
        ask += rng.choice([" One sentence, please.", " In one sentence.", " Only one sentence."])
    return Turn("facts", typed(rng, ask), answer, f"why {ask.lower()}")


def sentence_turn(rng: Random) -> Turn:
    """One of these requests."""
    return rng.choices((with_word, with_words, about_thing, why), (3, 2, 3, 2))[0](rng)
