# ruff: noqa: E501 - lines of text read better whole
"""Reading: who did what where, when, with whom and why; what is done by day and by night; what is allowed; what somebody says."""

from __future__ import annotations

from random import Random

from .deeds import DEEDS
from .grammar import write
from .scene_words import BOYS, GIRLS, Scene
from .tasks import plural_of

Pairs = list[tuple[str, str]]

_WHERE = "in the $room|in the $room|at the $place|behind the $place|near the $place|in $city|in front of the $place|by the $tree|on $street|under the $tree|next to the $furniture|in the garden|on the roof|upstairs|at home|in the yard|on the beach|at school"
_WHEN = "on $day|on $day|in $month|at $time|yesterday|last night|after lunch|before breakfast|in the morning|in the evening|at noon|on $day evening|last week|two days ago|this morning|during the break|after school|in summer|at midnight|on $day morning"
_WITH = "with $p|with $his $kin|together with $p|with $his $kin $p|with two friends|with the $job"
_WHY = "because it was $weather|because $reason|because $he was $feeling|because $he had time|because $his $kin had asked $him to|because nobody else was there|because it was late|for $his $kin|for the party|to help $his $kin|because the $job was ill|out of boredom|for a bet|because $he wanted a surprise"

_ASKS = {
    "where": "{Where did $hero $do|Where did $hero do that|Where was that|Where was $hero|In which place did $hero $do}?",
    "when": "{When did $hero $do|When was that|When did $hero do it|When did it happen}?",
    "with": "{With whom did $hero $do|Who was with $hero|Who helped $hero|Who did $hero $do with|Who else was there}?",
    "why": "{Why did $hero $do|Why did $hero do that|What was the reason|For what reason did $hero $do}?",
    "what": "{What did $hero $base|What was it that $hero $past|$hero $past what}?",
}  # fmt: skip


def _up(text: str) -> str:
    return text[0].upper() + text[1:]


def _outing(rng: Random, scene: Scene, name: str, woman: bool, deed: tuple[str, str, list[str]]) -> tuple[str, Pairs]:  # fmt: skip
    he, his, him = ("she", "her", "her") if woman else ("he", "his", "him")
    scene |= {"he": he, "his": his, "him": him, "p": scene["name"]}
    base, past, things = deed
    thing = rng.choice(things).replace("$h", his)
    parts = {k: write(rng, rng.choice(t.split("|")), scene) for k, t in (("where", _WHERE), ("when", _WHEN), ("with", _WITH), ("why", _WHY)) if rng.random() < 0.55}  # fmt: skip
    order = [k for k in ("with", "where", "when", "why") if k in parts]
    front = parts.get("when") if "when" in parts and rng.random() < 0.4 else ""
    tail = " ".join(parts[k] for k in order if not (k == "when" and front))
    text = f"{name} {past} {thing} {tail}".strip()
    if front:
        text = f"{_up(front)} {text}" if rng.random() < 0.7 else f"{_up(front)}, {text}"
    text += "."
    pairs: Pairs = []
    scene |= {"hero": name, "do": f"{base} {thing}", "base": base, "past": past}
    for key, value in parts.items():
        answer = value.removeprefix("together ")
        if key == "with" and rng.random() < 0.4:
            answer = answer.removeprefix("with ")
        pairs.append((write(rng, _ASKS[key], scene), f"{_up(answer)}."))
    pairs.append((write(rng, _ASKS["what"], scene), f"{_up(thing)}."))
    pairs.append((f"Who {past} {thing}?", f"{name}."))
    return text, pairs


def outing(rng: Random) -> tuple[str, Pairs]:
    """One or two sentences of someone's deed with its place, time, company and reason."""
    scene = Scene(rng)
    woman = rng.random() < 0.5
    name = rng.choice(GIRLS if woman else BOYS)
    scene["hero"] = name
    one, two = rng.sample(DEEDS, 2)
    text, pairs = _outing(rng, scene, name, woman, one)
    if rng.random() < 0.45:
        other = rng.choice([n for n in (BOYS if woman else GIRLS) if n not in scene.values()])
        more, others = _outing(rng, Scene(rng), other, not woman, two)
        generic = ("Where was that", "When was that", "What was the reason", "When did it", "Who else", "Where did it")  # fmt: skip
        pairs = [p for p in [*pairs, *others] if not p[0].startswith(generic)]
        text = f"{text} {more}" if rng.random() < 0.8 else f"{text}\n{more}"
    return text, pairs


_HABITS = [
    ("sleeps all day", "catches mice"), ("works in the garden", "plays cards"), ("sells newspapers", "studies law"), ("barks at the postman", "lies under the table"), ("eats hay", "stands in the stable"), ("goes to school", "helps in the shop"), ("drinks coffee", "drinks only water"), ("rests in the nest", "hunts for worms"), ("reads the newspaper", "writes letters"), ("bakes bread", "sleeps in the back room"), ("drives a taxi", "sings in a choir"), ("feeds the hens", "counts the eggs"), ("teaches children", "paints pictures"), ("swims in the lake", "sits by the fire"), ("repairs shoes", "plays the violin"), ("sits on the roof", "sleeps in the kitchen"), ("chases birds", "purrs on the sofa"), ("carries letters", "looks after the dogs"), ("makes cheese", "milks the goats"),
]  # fmt: skip
_TIMES = [("By day", "at night"), ("In the morning", "in the evening"), ("During the week", "on Sundays"), ("In summer", "in winter"), ("Before noon", "after noon"), ("On weekdays", "at the weekend"), ("In spring", "in autumn"), ("When it is sunny", "when it rains"), ("At home", "at school"), ("In the village", "in the city"), ("Until noon", "after lunch"), ("On Mondays", "on Fridays")]  # fmt: skip


def habits(rng: Random) -> tuple[str, Pairs]:
    """What someone does at one time, and what at another."""
    scene = Scene(rng)
    who = write(rng, rng.choice(["Our $pet", "My $kin", "The $job", "The old $job", "$name", "The $wild", "Uncle $boy", "Aunt $girl", "The $pet $petname", "My $kin $name"]), scene)  # fmt: skip
    (first, second), (one, two) = rng.choice(_TIMES), rng.choice(_HABITS)
    if rng.random() < 0.5:
        one = rng.choice(_HABITS)[0]
    link = rng.choice([". ", ", but ", ", and ", "; "])
    second_said = _up(second) if link == ". " else second
    named = who.split()[0] in ("Uncle", "Aunt") or who == scene.get("name")
    low = who if named else who[0].lower() + who[1:]
    text = f"{first} {low} {one}{link}{second_said} {low} {two}."
    asks = [f"What does {low} do {second}?", f"What happens {second}?", f"{_up(second)}, what does {low} do?", f"What is it that {low} does {second}?"]  # fmt: skip
    lower_first = first[0].lower() + first[1:]
    asks_first = [f"What does {low} do {lower_first}?", f"What happens {lower_first}?", f"{first}, what does {low} do?"]  # fmt: skip
    pairs = [(rng.choice(asks), f"{_up(low)} {two}."), (rng.choice(asks_first), f"{_up(low)} {one}.")]
    pairs.append((f"When is it that {low} {two}?", f"{_up(second)}."))
    pairs.append((rng.choice([f"Who {two} {second}?", f"Who is it that {two}?"]), f"{_up(low)}."))
    return text, pairs


_DOINGS = "swimming|fishing|parking|smoking|skating|cycling|camping|singing|dancing|playing ball|bathing|climbing|diving|running|feeding the birds|taking photos|making a fire|picking flowers|eating|shouting|walking on the grass|flying kites|riding horses|bringing dogs|using phones"


def rule(rng: Random) -> tuple[str, Pairs]:
    """What is forbidden or allowed somewhere, and why or when."""
    scene = Scene(rng)
    one, two = rng.sample(_DOINGS.split("|"), 2)
    place = write(rng, rng.choice(["in the $place", "at the $place", "on the ice", "in the pond", "behind the $place", "in the $room", "on the bridge", "in the park", "near the $tree", "on $street"]), scene)  # fmt: skip
    cause = write(rng, rng.choice(["of the $animals", "of the $flowers", "of the noise", "of the storm", "of the fire last year", "of the thin ice", "of the wet paint", "of the sick $pet", "of the exam next door", "of an accident in $month", "of the strong wind", "of the repairs"]), scene)  # fmt: skip
    until = write(rng, rng.choice(["until $day", "until $time", "until the end of $month", "from $time on", "on $days"]), scene)  # fmt: skip
    bad = rng.choice(["is forbidden", "is not allowed", "is strictly forbidden", "is prohibited"])
    form = rng.randrange(3)
    pairs: Pairs
    ask_bad = rng.choice([f"What is not allowed {place}?", f"What is forbidden {place}?", f"What must one not do {place}?", "What is forbidden?", "What is not allowed?"])  # fmt: skip
    if form == 0:
        text = f"{_up(one)} {place} {bad} because {cause}."
        if rng.random() < 0.5:
            text = f"Because {cause}, {one} {place} {bad}."
        why = rng.choice([f"Why is {one} not allowed?", "Why is that?", "What is the reason?", f"Why is {one} forbidden?", "Why is it forbidden?"])  # fmt: skip
        pairs = [(why, f"Because {cause}."), (ask_bad, f"{_up(one)}."), (rng.choice([f"Where is {one} forbidden?", f"Where is {one} not allowed?"]), f"{_up(place)}."), (f"Is {one} allowed {place}?", "No, it is not allowed.")]  # fmt: skip
    elif form == 1:
        text = f"{_up(one)} {place} {bad}, but {two} is allowed."
        pairs = [(rng.choice([f"What is allowed {place}?", "What is allowed?", "What may one do?", "What can we do there?"]), f"{_up(two)}."), (ask_bad, f"{_up(one)}."), (f"Is {two} allowed?", f"Yes, {two} is allowed."), (f"Is {one} allowed?", f"No, {one} is not allowed.")]  # fmt: skip
    else:
        text = f"{_up(one)} {place} {bad} {until}."
        pairs = [(rng.choice([f"When is {one} forbidden?", f"When is {one} not allowed?", f"For how long is {one} forbidden?", "When does the rule hold?"]), f"{_up(until)}."), (ask_bad, f"{_up(one)}."), (f"Where is {one} forbidden?", f"{_up(place)}.")]  # fmt: skip
    return text, pairs


_LEADS = ["wrote", "said", "called", "answered", "promised", "shouted", "whispered", "explained"]


def quotation(rng: Random) -> tuple[str, Pairs]:
    """What somebody says of his or her plans, with the name in the middle or at the end."""
    scene = Scene(rng)
    who = write(rng, rng.choice(["the $trade", "the $job", "my $kin", "$name", "$name", "Aunt $girl", "Uncle $boy", "little $girl", "old $boy"]), scene)  # fmt: skip
    verb = rng.choice(_LEADS)
    thing = write(rng, rng.choice(["the new $thing", "$carried", "a $color $clothes", "$dish", "the $tool", "some $goods", "the $flowers", "your $thing"]), scene)  # fmt: skip
    when = write(rng, rng.choice(["at $time", "on $day", "tomorrow", "in $month", "after lunch", "on $day at $time", "next week"]), scene)  # fmt: skip
    where = write(rng, rng.choice(["to the $place", "to $city", "to your house", "to the $place", "to $street"]), scene)  # fmt: skip
    low = who
    draw = rng.random()
    if draw < 0.4:
        text = f'"I\'ll come {when}," {verb} {who}, "and bring {thing}."'
        asks = {"when": f"{{When will {low} come|When is {low} coming|When does {low} come}}?", "thing": f"{{What will {low} bring|What does {low} bring|What is {low} going to bring}}?"}  # fmt: skip
    elif draw < 0.7:
        text = f'"I need {thing}," {verb} {who}. "I am going {where} {when}."'
        asks = {"thing": f"{{What does {low} need|What did {low} need|Which thing does {low} need}}?", "where": f"{{Where is {low} going|Where does {low} go|Where will {low} go}}?", "when": f"{{When is {low} going|When does {low} go there|When will {low} go}}?"}  # fmt: skip
    else:
        text = f'{_up(who)} {verb}: "We go {where} {when}. Please take {thing} with you."'
        asks = {"where": "{Where do they go|Where are they going|What is the goal}?", "when": "{When do they go|When are they going}?", "thing": f"{{What should be taken along|What must not be forgotten|What does {low} want to be taken along}}?"}  # fmt: skip
    values = {"when": when, "thing": thing.replace("your ", "the "), "where": where.replace("your house", "the house")}  # fmt: skip
    pairs = [(write(rng, ask), f"{_up(values[key])}.") for key, ask in asks.items()]
    pairs.append((rng.choice([f"Who {verb} that?", "Who said it?", "Who is speaking?", "Whose words are these?"]), f"{_up(who)}."))  # fmt: skip
    return text, pairs


def relatives(rng: Random) -> tuple[str, Pairs]:
    """Brothers, sisters or animals, some of whom are here and the youngest or oldest somewhere else."""
    scene = Scene(rng)
    name = scene["girl"]
    many, sort = rng.choice([("three", "brother"), ("four", "sister"), ("three", "son"), ("four", "cousin"), ("three", "daughter"), ("five", "friend")])  # fmt: skip
    some = rng.choice(["Two", "Two", "Three"]) if many != "three" else "Two"
    which = rng.choice(["youngest", "oldest", "tallest", "smallest"])
    special = scene["boy"] if sort in ("brother", "son") else scene["girl2"]
    city = scene["city"]
    place = write(rng, rng.choice(["with her", "on a farm", "in $country", "above the $place", "in $city2", "next door"]), scene)  # fmt: skip
    sorts = plural_of(sort)
    text = rng.choice([f"{name} has {many} {sorts}. {some} of them live in {city}, the {which}, {special}, lives {place}.", f"{name}'s {sorts} live in {city}; only {special}, the {which}, lives {place}. There are {many} of them."])  # fmt: skip
    pairs = [
        (rng.choice([f"Who lives {place.replace('her', name)}?", f"Which {sort} lives {place.replace('her', name)}?"]), f"{special}."),
        (rng.choice([f"How many {sorts} does {name} have?", f"How many {sorts} has {name} got?"]), f"{_up(many)}."),
        (rng.choice([f"Who is the {which}?", f"What is the {which} {sort} called?", f"What is the name of the {which} {sort}?"]), f"{special}."),
        (rng.choice([f"Where does {special} live?", f"Where is {special}?"]), f"{_up(place.replace('her', name))}."),
        (rng.choice(["Where do the others live?", f"Where do {name}'s other {sorts} live?", f"Which city do most of the {sorts} live in?"]), f"In {city}."),
    ]  # fmt: skip
    return text, pairs


def ages(rng: Random) -> tuple[str, Pairs]:
    """Two or three with a number each: who is older, taller, faster, who has more."""
    scene = Scene(rng)
    names = [scene[f"name{n}"] for n in range(1, rng.choice((2, 2, 3)) + 1)]
    numbers = rng.sample(range(2, 99), len(names))
    says, more, most, less, least = rng.choice([
        ("is $v{ years old|}", "older", "oldest", "younger", "youngest"), ("is $v kilos heavy", "heavier", "heaviest", "lighter", "lightest"), ("has $v points", "better", "best", "worse", "worst"), ("has $v euros", "richer", "richest", "poorer", "poorest"), ("lives $v kilometers away", "farther away", "farthest away", "nearer", "nearest"), ("has read $v books", "ahead", "first", "behind", "last"),
    ])  # fmt: skip
    said = [f"{n} {write(rng, says, {'v': str(v)})}" for n, v in zip(names, numbers, strict=True)]
    text = (", ".join(said[:-1]) + rng.choice((" and ", ", ")) + said[-1] + ".") if rng.random() < 0.7 else ". ".join(said) + "."  # fmt: skip
    top, low = names[numbers.index(max(numbers))], names[numbers.index(min(numbers))]
    two = len(names) == 2
    either = ", ".join(names[:-1]) + f" or {names[-1]}"
    big, small = (more, less) if two else (f"the {most}", f"the {least}")
    pairs = [
        (rng.choice([f"Who is {big}?", f"Who is {big}, {either}?", f"Which of them is {big}?"]), f"{top}."),
        (rng.choice([f"Who is {small}?", f"Who is {small}, {either}?", f"Which of them is {small}?"]), f"{low}."),
    ]  # fmt: skip
    index = rng.randrange(len(names))
    value = write(rng, says, {"v": str(numbers[index])})
    pairs.append((f"Who {value}?", f"{names[index]}."))
    if two:
        pairs.append((f"Is {top} {more} than {low}?", f"Yes, {top} is {more}."))
        pairs.append((f"Is {low} {more} than {top}?", f"No, {top} is {more}."))
    return text, pairs


def composed_text(rng: Random) -> tuple[str, Pairs]:
    """One of these texts."""
    return rng.choices((outing, habits, rule, quotation, relatives, ages), (9, 2, 2, 3, 1.5, 2))[0](rng)
