# ruff: noqa: E501 - lines of text read better whole
"""Stories whose hero is of a sort that the plots do not have: a snowman, a teapot, a lighthouse keeper; and two heroes with a thing."""

from __future__ import annotations

import re
from dataclasses import replace
from random import Random

from .grammar import write
from .sample import Message, Sample, say
from .stories import Story, story
from .tales import _SYSTEM, _sample
from .tasks import fix_articles
from .typed import around
from .words import ANIMALS, TALE_FOLK, invented_word

KINDS = "snowman giant clown pirate ghost scarecrow lighthouse_keeper shoemaker tailor baker gardener postman fisherman sailor captain shepherd miller chimney_sweep firefighter doctor nurse cook painter dancer singer magician detective inventor astronaut diver pilot train_driver mechanic carpenter blacksmith clockmaker beekeeper farmer king queen prince princess knight witch fairy elf dwarf mermaid unicorn monster vampire alien robot teapot tractor truck train boat kite balloon umbrella lamp clock candle book pencil spoon chair drum violin snowflake raindrop cloud star leaf tree flower mushroom pumpkin apple potato toaster bicycle bus airplane rocket lantern scarf shoe button doll teddy_bear puppet toy_soldier hippo crocodile giraffe kangaroo koala panda polar_bear walrus seal dolphin whale octopus crab starfish snail worm spider ant grasshopper firefly bat mole badger otter beaver weasel raccoon skunk goat donkey pony camel llama parrot peacock stork swan sparrow robin seagull flamingo ostrich lizard chameleon toad salamander".replace("_", "-").split()  # fmt: skip
_KINDS = [kind.replace("-", " ") for kind in KINDS]
_CLAUSES = [
    "", "", "", "", "who {wants|wanted} to {see the {sea|summer|world|moon}|fly|learn to swim|find a friend|become {famous|brave|a hero}|go home|win a race|travel|help others|make music}", "who is {lost|lonely|afraid of the dark|very small|too shy to talk|always late|always hungry|never tired}", "who {lost|found} {a shoe|the way|a treasure|a key|a letter|something|a friend}", "that could {sing|fly|talk|dance|think|dream}", "who lives {in the forest|by the sea|on the moon|in a tower|under a bridge|in a big city|at the North Pole|in our garden}", "in the {rain|snow|forest|city|desert|garden|night}", "at {school|sea|night|Christmas|the zoo}", "on {the moon|a farm|an island|a mountain|a rainy day}", "and {a|the} {storm|secret|surprise|long trip}",
]  # fmt: skip
_ASKS = [
    "$V a $S about {a|a little|a small|an old|a brave|a funny|the} $k{ {named|called} $h|}{ $c|}", "$V a $S about $h the $k{ $c|}", "$V a $S {with|of} {a|a little} $k {named|called} $h{ $c|}", "$S about {a|a little} $k{ {named|called} $h|}{ $c|}{, please| please| pls|}", "$S: {a|the little} $k{ $c|}", "{A|One} $S {with|about} {a|a little} $k, please", "{Once|Once upon a time} there {lived|was} a $k {named|called} $h. {Go on, please|Please go on|Continue|Continue, please|And then|What happened next|Tell the rest}", "{My {daughter|son|little sister|class} loves|We love|Our children like} {$k|$k} stories. Can you tell one{ about $h|}", "{It's bedtime|I can't sleep|We are on the train|It is raining}. {A $S|Tell me a $S|How about a $S} about a $k{ named $h|}, {please|will you}", "The hero is a $k {named|called} $h. {Tell the story|Write the story|$V a $S}", "One with a $k{ named $h|}{, please|}", "$V {us|me|} a $S where a $k is the hero",
]  # fmt: skip
_PAIRS = [
    "$V a $S about two {sisters|brothers|friends|children|cousins|neighbors|twins|boys|girls}, $h and $n{, who {find|have|share|lose} a $g|, and a $g|}", "$V a $S about $h and $n{ and {a|their} $g| who find a $g|}", "$V a $S {with|of} $h, $n and a $g", "{Two friends|Two children|Two cousins}, $h and $n, {find|have|lose} a $g. {Tell the story|Write a $S about it|What happens}", "$S about $h, $n and {a|the|a lost} $g{, please|}", "$S: $h, $n, $g", "$V a $S in which $h and $n {find|share|lose|look for} a $g", "{My children|My twins|The kids|My nieces} are called $h and $n. $V a $S about them{ and a $g|}",
]  # fmt: skip
_VERBS = "{Tell me|Tell us|Write|Write me|Please tell me|Please write|Could you tell me|Can you tell us|Can you make up|Make up|Please make up|I want|I'd love|I would like|Invent|Give me|Let's hear|I need|We want|My twins want|Do you know|Think of|Read us}"
_STORY = "{|short |little |nice |new |funny |bedtime |sweet |good-night }{story|story|story|tale|fairy tale}"


def recast(rng: Random) -> Story:
    """A story of the plots, with a hero of another sort."""
    while True:
        name = (invented_word(rng).capitalize(), rng.choice(("he", "she"))) if rng.random() < 0.12 else None
        told = story(rng, name)
        if (told.kind in ANIMALS or told.kind in TALE_FOLK) and f" {told.kind}" not in told.friend_kind:
            break
    kind = rng.choice(_KINDS)
    text = re.sub(rf"\b{re.escape(told.kind)}\b", kind, told.text)
    return replace(told, text=fix_articles(text), kind=kind)


def _finished(rng: Random, ask: str) -> str:
    ask = fix_articles(ask)
    if ask[-1] not in ".?!":
        question = ask.split()[0] in ("Could", "Can", "Do") or ask.endswith(("will you", "And then", "next", "happens", "tell one"))  # fmt: skip
        ask += rng.choice(("?", "?", ", please?")) if question else rng.choice((".", ".", "", "!"))
    if rng.random() < 0.06:
        return around(rng, ask)
    return ask if rng.random() < 0.7 else ask[0].lower() + ask[1:]


def cast_story(rng: Random) -> Sample:
    """A story about a hero of any sort, or about two friends and a thing, as it is asked for."""
    pair = rng.random() < 0.4
    while True:
        told = story(rng) if pair else recast(rng)
        if not pair or (told.friend in told.text and told.thing in told.text and told.plot.startswith("any_")):  # fmt: skip
            break
    env = {"h": told.hero, "k": told.kind, "n": told.friend, "g": told.thing}
    env |= {"V": write(rng, _VERBS), "S": write(rng, _STORY), "c": write(rng, rng.choice(_CLAUSES))}
    asks = _PAIRS if pair else _ASKS
    ask = _finished(rng, write(rng, rng.choice(asks), env).strip())
    ask = ask[0].upper() + ask[1:] if ask[0] == " " else ask
    messages: list[Message] = [say("system", write(rng, _SYSTEM))] if rng.random() < 0.15 else []
    return _sample(told, [*messages, say("user", ask), say("assistant", told.text)])


_OPENINGS = [
    "Once upon a time there was a {little |small |young |}$k {named|called} $h.", "There {was once|once was} a $k whose name was $h.", "In {the forest|a village by the sea|a small town|an old house|a far land|the mountains} {lived|there was} a $k {called|named} $h.", "Deep in the {forest|mountains|sea|city} lived a $k called $h.", "One {rainy|cold|sunny|quiet} {morning|evening|night}, $h the $k {woke up early|looked out of the window|could not sleep|heard a noise}.", "Long ago, when {the world was young|the forests were deep}, there lived a $k named $h.", "$h was a $k{ who was never bored| with a big heart| who had many friends| and lived alone|}.", "The {little|old|small} $k {named|called} $h {was not happy|had a plan|was tired|liked to sing}.",
]  # fmt: skip


def cast_text(rng: Random) -> Sample:
    """Write such a story as plain text: an opening as people write it, and what goes on from it."""
    told = recast(rng)
    first = re.search(r"[.!?](?=\s)", told.text)
    names_hero = first is not None and told.hero in told.text[: first.end()]
    if first is None or not names_hero or '"' in told.text[: first.end()]:
        return _sample(told, [say("user", f"A story about a {told.kind} named {told.hero}, please."), say("assistant", told.text)])  # fmt: skip
    opening = fix_articles(write(rng, rng.choice(_OPENINGS), {"k": told.kind, "h": told.hero}))
    text = f"{opening}{told.text[first.end() :]}"
    sample = _sample(told, [])
    return Sample("story", text=text, hint=sample.hint)
