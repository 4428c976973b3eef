# ruff: noqa: E501 - lines of text and word lists read better whole
"""What everybody knows of things: hot or cold, heavy or light, alive or not; asked with yes or no, as a choice, as an example."""

from __future__ import annotations

from random import Random

from .grammar import write
from .sample import Turn
from .tasks import fix_articles, listing
from .typed import typed

# adjective / its opposite: things that are the one, things that are the other
_ROWS = """hot/cold: fire,lava,boiling water,an oven,the sun,a flame,steam,a hot stove,the desert at noon/ice,snow,an iceberg,ice cream,a freezer,a snowman,the North Pole,frost,a winter night
big/small: an elephant,a whale,a mountain,a ship,a house,an ocean,a castle,a dinosaur/an ant,a mouse,a pea,a button,a coin,a ladybug,a grain of sand,a needle
heavy/light: a stone,an elephant,a piano,a car,an anvil,a truck,a rock,a ship/a feather,a leaf,a sheet of paper,a balloon,a snowflake,a butterfly,a straw,a soap bubble
hard/soft: a stone,a diamond,iron,a brick,a nut,a rock,a hammer,steel/a pillow,butter,cotton,a blanket,a teddy bear,wool,a marshmallow,a cushion
sweet/sour: sugar,honey,chocolate,candy,a cake,jam,syrup/a lemon,vinegar,a lime,a pickle,lemon juice
wet/dry: water,rain,a lake,the sea,a puddle,a river/a desert,sand in the desert,toast,dust,straw
fast/slow: a rocket,a cheetah,a racing car,a jet,an arrow,lightning,a falcon/a snail,a turtle,a sloth,a tortoise,a worm
sharp/blunt: a knife,a needle,a razor,a thorn,a saw,broken glass,scissors/a spoon,a ball,a pillow,a potato
loud/quiet: thunder,a drum,a siren,an explosion,a fire alarm,a rock concert/a whisper,a library,a falling leaf,a sleeping cat,a snowflake
round/square: a ball,a wheel,an orange,a coin,a pea,the moon,a marble/a chessboard,a cube of sugar,a tile
bright/dark: the sun,a lamp,lightning,a summer day,a flame/a cellar,the night,a cave,a coal mine
tall/short: a giraffe,a tower,a skyscraper,an oak,a lighthouse/a mouse,a mushroom,a hedgehog,a dwarf
long/short: a river,a train,a snake,a motorway/a minute,a pencil stub,an eyelash
dangerous/safe: a lion,a volcano,poison,a cobra,a shark,a tornado/a pillow,a kitten,a flower,a teddy bear
old/new: a mummy,a ruin,a dinosaur bone,a pyramid/a newborn baby,fresh snow,today's newspaper"""
PROPERTIES: list[tuple[str, str, list[str], list[str]]] = []
for _row in _ROWS.split("\n"):
    _name, _things = _row.split(": ")
    _one, _other = _things.split("/")
    PROPERTIES.append((*_name.split("/"), _one.split(","), _other.split(",")))  # type: ignore[arg-type]


def _rows(text: str) -> list[tuple[str, list[str], list[str]]]:
    """What each line says, the things of which it is true, and those of which it is not."""
    found = []
    for row in text.split("\n"):
        what, things = row.split(": ")
        yes, no = things.split("/")
        found.append((what, yes.split(","), no.split(",")))
    return found


# what something can do or is: who can, who cannot
_ABLE = """fly: a bird,an eagle,a bee,a butterfly,a bat,a plane,a helicopter,an owl,a mosquito,a pigeon/a dog,a cow,a stone,a fish,a penguin,an elephant,a car,an ostrich,a snake,a pig
swim: a fish,a duck,a whale,a dolphin,a frog,a seal,a swan,a shark,a penguin/a stone,a chair,a hammer,a tree,a car
bark: a dog,a puppy/a cat,a fish,a cow,a hen
lay eggs: a hen,a duck,a turtle,a snake,an ostrich,a frog,a crocodile/a dog,a cow,a cat,a horse,a lion,a sheep
climb trees: a squirrel,a monkey,a cat,a koala/a cow,a fish,a whale,a horse
give milk: a cow,a goat,a sheep/a hen,a fish,a frog,a bee
hop: a rabbit,a kangaroo,a frog,a grasshopper/a snake,a whale,a snail
talk: a person,a child,a teacher,a baker/a stone,a table,a tree,a shoe,a spoon
read: a person,a teacher,a pupil/a cat,a tree,a stone,a fish
float on water: a boat,a cork,a leaf,a duck,a ship/a stone,a coin,an anvil,a nail
grow: a tree,a child,a flower,a puppy,grass/a stone,a spoon,a car,a brick
burn: paper,wood,straw,coal,a candle/water,sand,a stone,ice
melt: ice,snow,butter,chocolate,wax/a stone,a tree,a book,a brick
breathe: a person,a dog,a bird,a whale/a stone,a car,a spoon,a cloud"""
ABLE = _rows(_ABLE)
_IS = """an animal: a dog,a cow,an ant,a whale,a bird,a snake,a frog,a spider/a rose,a stone,a car,an oak,a carrot,a cloud
a plant: a rose,an oak,grass,a cactus,a tulip,moss/a dog,a stone,a spoon,a fish
a fruit: an apple,a banana,a pear,a cherry,a plum,a mango,an orange/a carrot,a potato,an onion,a hammer,cheese
a vegetable: a carrot,a cabbage,an onion,a leek,spinach/an apple,a plum,a lamp,bread
a bird: an owl,a hen,a penguin,a swan,a crow,an ostrich/a bat,a dog,a fish,a bee,a butterfly
a fish: a salmon,a shark,a trout,a tuna/a whale,a dolphin,a seal,a duck,a crab
a mammal: a dog,a whale,a bat,a mouse,a cow,a dolphin/a hen,a snake,a salmon,a bee,a frog
an insect: an ant,a bee,a butterfly,a beetle,a fly/a spider,a mouse,a snail,a bird
a tool: a hammer,a saw,a drill,a screwdriver/a banana,a sock,a cloud,a cat
a piece of clothing: a shirt,a coat,a sock,a hat,a skirt/a spoon,a lamp,an apple,a chair
a piece of furniture: a table,a sofa,a bed,a chair,a wardrobe/a pear,a dog,a shoe,a car
a vehicle: a car,a bus,a truck,a bicycle,a train/a chair,a tree,a book,a pond
a musical instrument: a violin,a flute,a drum,a piano,a trumpet/a spoon,a saw,a shoe,a bench
a color: red,blue,green,yellow,purple/seven,Monday,bread,loud
a day of the week: Monday,Thursday,Sunday,Friday/June,Easter,noon,autumn
a month: June,March,October,May/Monday,winter,noon,Easter
a season: spring,winter,autumn,summer/June,Monday,morning,rain
a number: seven,twelve,three,forty/blue,Monday,bread,a cat
a drink: tea,milk,lemonade,juice,coffee/bread,a stone,cheese,a carrot
a country: France,Italy,Japan,Egypt,Brazil,Norway/Paris,Africa,London,Europe,the Moon
a city: Paris,Rome,Tokyo,London,Berlin/Africa,Norway,Asia,Egypt
a continent: Africa,Asia,Europe/France,London,Japan
a planet: Mars,Jupiter,Saturn,Venus/the sun,the moon,Africa"""
IS = _rows(_IS)


_TAILS = ["yes/no", "yes or no", "(yes/no)", "(yes or no)", "y/n", "Yes or no?", "Answer yes or no.", "Answer yes or no only.", "Only yes or no.", "Just yes or no.", "Just yes or no, please.", "Yes or no, nothing else.", "Answer only with yes or no.", "One word: yes or no.", "True or false? Say yes or no.", "Reply with yes or no.", "A simple yes or no.", "Please answer with yes or no."]  # fmt: skip
_HEADS = ["Yes or no: ", "yes or no: ", "Yes/no: ", "Answer yes or no: ", "Only yes or no: ", "Just yes or no: ", "Yes or no, ", "Reply with yes or no. ", "Answer with yes or no only. "]  # fmt: skip


def _up(text: str) -> str:
    return text[0].upper() + text[1:]


def verdict_only(rng: Random, ask: str) -> str:
    """A question with the wish for yes or no and no more."""
    if rng.random() < 0.3:
        head = rng.choice(_HEADS)
        first = ask.split()[0]
        return head + (ask if head.endswith(". ") or first in ("I",) else ask[0].lower() + ask[1:])
    tail = rng.choice(_TAILS)
    return f"{ask if rng.random() < 0.85 else ask.rstrip('?') + ','} {tail}"


def _claim(rng: Random) -> tuple[str, bool, str]:
    """A question for yes or no, the verdict, and the reason."""
    draw = rng.random()
    if draw < 0.4:
        one, other, ones, others = rng.choice(PROPERTIES)
        if rng.random() < 0.5:
            one, other, ones, others = other, one, others, ones
        thing = rng.choice(ones)
        true = rng.random() < 0.5
        asked = one if true else other
        return (
            f"Is {thing} {rng.choice(('', '', '', 'really ', 'usually '))}{asked}?",
            true,
            f"{thing} is {one}",
        )
    table = ABLE if draw < 0.65 else IS
    what, ones, others = rng.choice(table)
    true = rng.random() < 0.5
    thing = rng.choice(ones if true else others)
    if table is ABLE:
        return f"Can {thing} {what}?", true, f"{thing} {'can' if true else 'cannot'} {what}"
    return f"Is {thing} {what}?", true, f"{thing} is {'' if true else 'not '}{what}"


def claim_turn(rng: Random) -> Turn:
    """Yes or no, bare where that is asked for, else with the reason."""
    ask, true, reason = _claim(rng)
    key = f"claim {ask.lower()}"
    verdict = "Yes" if true else "No"
    if rng.random() < 0.55:
        asked = verdict_only(rng, ask)
        asked = asked.lower() if rng.random() < 0.3 else asked
        return Turn("yes or no", asked, verdict, key, verdict.lower())
    return Turn("yes or no", typed(rng, ask), f"{verdict}, {reason}.", key, verdict.lower())


def choice_turn(rng: Random) -> Turn:
    """Which of two or three things has the property, in one word or in a sentence."""
    if rng.random() < 0.5:
        one, other, ones, others = rng.choice(PROPERTIES)
        if rng.random() < 0.5:
            one, other, ones, others = other, one, others, ones
        what = f"is {one}"
    else:
        verb, ones, others = rng.choice(ABLE if rng.random() < 0.5 else IS)
        what = f"can {verb}" if (verb, ones, others) in ABLE else f"is {verb}"
    right = rng.choice(ones)
    wrong = rng.sample(others, min(len(others), rng.choice((1, 1, 2))))
    shown = rng.sample([right, *wrong], 1 + len(wrong))
    either = ", ".join(shown[:-1]) + " or " + shown[-1]
    ask = write(rng, f"{{Which|What|Which of these|Which one}} {what}{{, |: }}{either}?")
    short = right.split(" ", 1)[1] if right.startswith(("a ", "an ")) else right
    key = f"choice {ask.lower()}"
    if rng.random() < 0.35 and " " not in short:
        tail = rng.choice(("One word.", "One word, please.", "Only the word.", "Answer with one word.", "Just the word."))  # fmt: skip
        return Turn("one word", f"{ask} {tail}", _up(short), key, short)
    return Turn("facts", typed(rng, ask), fix_articles(f"{_up(right)} {what}."), key)


def example_turn(rng: Random) -> Turn:
    """Something hot, something that can fly: one example or two."""
    draw = rng.random()
    if draw < 0.4:
        one, other, ones, others = rng.choice(PROPERTIES)
        what, things = rng.choice([(one, ones), (other, others)])
        what = f"something {what}"
    elif draw < 0.7:
        verb, things, _ = rng.choice(ABLE)
        what = f"something that can {verb}"
    else:
        what, things, _ = rng.choice(IS)
    if rng.random() < 0.35 and what.startswith("something"):
        what = f"two things that {'can ' + what.split(' can ')[1] if ' can ' in what else 'are ' + what.split()[1]}"  # fmt: skip
        answer = _up(listing(things[:2])) + "."
    else:
        answer = _up(things[0]) + "."
    ask = write(rng, f"{{Name|Tell me|Give me|Say|Can you name|Give me an example of|I need}} {what}{{.||, please.}}")  # fmt: skip
    ask = ask.rstrip(".") + "?" if ask.startswith("Can") else ask
    return Turn("facts", typed(rng, ask), answer, f"example {ask.lower()}")


def _short_ones(things: list[str]) -> list[str]:
    """The things that are one word, without their article."""
    bare = [t.split(" ", 1)[1] if t.startswith(("a ", "an ", "the ")) else t for t in things]
    return [t for t in bare if " " not in t]


_SYSTEMS = "{Answer|Reply|Respond} {only |}with yes or no{| only|, nothing else}.|Only yes or no.|You answer {yes or no|with yes or no}{, never more|, nothing else|}.|Every answer is yes or no.|Yes or no answers{ only|}.|{You are an oracle|You are a judge|You are a quiz machine}. {Say|Answer} only yes or no.|Be brief: yes or no."
_ONE_WORD = "{Answer|Reply|Respond} {in|with} {one|a single|exactly one} word{| only|, nothing else}.|One-word answers{ only|, please|}.|{Every|Each} {answer|reply} is {one|exactly one} word.|Be brief. {Every|Each} reply is exactly one word.|You speak in single words.|Give one-word answers."


def sense_system(rng: Random) -> tuple[str, list[Turn]]:
    """A system prompt that wants yes or no, or one word, and questions that are answered so."""
    count = rng.choice((1, 1, 2, 3))
    turns: list[Turn] = []
    if rng.random() < 0.6:
        for _ in range(count):
            ask, true, _ = _claim(rng)
            verdict = "Yes" if true else "No"
            turns.append(Turn("yes or no", typed(rng, ask), verdict, f"claim {ask.lower()}", verdict.lower()))
        return write(rng, "{" + _SYSTEMS + "}"), turns
    for _ in range(count):
        one, other, ones, others = rng.choice(PROPERTIES)  # the first of a pair has short ones
        if rng.random() < 0.5 and _short_ones(others):
            one, other, ones, others = other, one, others, ones
        short = _short_ones(ones)
        right = rng.choice(short)
        shown = rng.sample([right, rng.choice(others).removeprefix("a ").removeprefix("an ")], 2)
        ask = rng.choice([f"Which is {one}, {shown[0]} or {shown[1]}?", f"What is {one}: {shown[0]} or {shown[1]}?", f"{_up(shown[0])} or {shown[1]}: which is {one}?"])  # fmt: skip
        turns.append(Turn("one word", typed(rng, ask), _up(right), f"choice {ask.lower()}", right))
    return write(rng, "{" + _ONE_WORD + "}"), turns


def sense_turn(rng: Random) -> Turn:
    """One of these."""
    return rng.choices((claim_turn, choice_turn, example_turn), (6, 3, 1.4))[0](rng)
