# ruff: noqa: E501 - lines of text read better whole
"""More ways to ask for what ember knows, by relation: turned round, in a hurry, as half a sentence."""

from __future__ import annotations

from random import Random

from .grammar import write

_RULES: dict[str, list[str]] = {
    "capital": ["{tell me |give me |name |I need |}$s's capital{ city|}{?|}", "{the |}capital{ city|} of $s{?| is|, please| is?| is ...|: }", "{which|what} city is {the capital of $s|$s's capital|$s's main city}?", "$s has which {capital|city as its capital}?", "{do you know|can you tell me|I forgot|remind me of} the capital of $s?", "the capital of $s is {called what|which city|what}?", "$s - capital?", "{what|which} is $s's capital{ city|}?", "in $s, what is the capital{ city|}?", "what city do they {rule|govern} $s from?"],
    "capital_of": ["{which|what} country's capital is $s?", "$s is {which|what} country's capital?", "{which|what} country has the capital $s?", "{which|what} land is $s the capital of?", "what is $s the capital of?", "{where|in which country} is $s{ the capital|}?", "which country does the capital $s belong to?", "the country with the capital $s is{ called|} what?", "{tell me|name} the country that has $s as {its |}capital"],
    "continent": ["{where is|where does} $s{| lie}?", "$s is {on which|in which|part of which} continent?", "{which|what} continent {does $s belong to|is $s on|has $s|contains $s}?", "{tell me|name} the continent of $s", "$s's continent?", "on {which|what} continent {do I find|would you find|can you find} $s?", "$s lies on {which|what} continent?"],
    "language": ["{which|what} language do {they|the people} {speak|use} in $s?", "{in $s|over in $s}, {which|what} language {is spoken|do they speak}?", "$s's language?", "{which|what} language {would I hear|do I need|should I learn for} {in $s|$s}?", "people in $s speak {what|which language}?", "the language of $s{?| is}"],
    "sound": ["{what|which} {sound|noise} {comes from|is made by} a $s?", "a $s {says|goes} {what|...}?", "{how do $p|what do $p} {sound|say}?", "{what does|how does} the $s {say|go}?", "$p {say|go} what?", "the $s says{?| what?}"],
    "baby": ["{the |a |}{young|baby|little one|child} of a $s is {called what|called?|a ...?|named what}", "what {is|do you call} the {baby|young|little one|child} of a $s?", "a {young|baby|little} $s is {called |}{a |}{what|...}?", "{which|what} {word|name} {is there|do we use|do people use} for a {baby|young} $s?", "how is a {baby|young} $s called?", "what are {baby|young} $p called?", "what's {the name of |}a {baby|young|little} $s?", "baby $s{?| name?| is called?}"],
    "home": ["$p live {where|in what}?", "where {is|can I find} the home of a $s?", "{what|which place} is home {to|for} a $s?", "in {what|which} {place|kind of home} do $p live?", "a $s lives {where|in what|in a ...}?", "where would I {find|look for} a $s?", "where do $p {sleep|stay|have their home}?", "what do $p live in?"],
    "legs": ["{a $s has|$p have} how many legs?", "{number|count} of legs {of|on} a $s?", "how many legs {are there on|belong to} a $s?", "how many {feet|legs} does {a|the} $s {walk on|stand on|have}?", "legs of a $s{?|: how many?}"],
    "group": ["{is a|what is a} $s {what kind of animal|among the animals}?", "{which|what} {kind|group|class|sort} of animals {is the|is a|does the} $s{ in| part of|}?", "a $s is {a |}{what kind of|which sort of} animal?", "{which|what} group do $p belong to?", "$p are {what|which kind of animals}?"],
    "color": ["$s has {which|what} color?", "$s is {which|what} color?", "{which|what} colour {is|has} $s?", "{which|what} colour does $s have?", "{color|colour} of $s?", "{tell me|say} {what|which} color $s {is|has}", "how would you {paint|color} $s?", "what's the {color|colour} of $s?"],
    "mix": ["$s{ together|}: {which|what} color?", "{mixing|what color does mixing} $s {gives what|give|make}?", "$s together make {what|which color}?", "{which|what} color {is|are} $s {mixed|together}?", "I mix $s. {What do I get?|What comes out?|And now?}", "what happens when {I|you} mix $s?"],
    "units": ["{can you tell me|could you tell me|what is|remind me} how many $s?", "so how many $s?", "I forgot how many $s", "{hey|ok}, how many $s?"],
    "sides": ["{a $s has|$p have} how many {sides|corners|edges}?", "how many {sides|corners|edges} {has|are there in|are there on|belong to} a $s{ got|}?", "{number|count} of {sides|corners} {of|in} a $s?", "{what number|how much} of sides has a $s?", "a $s: how many {sides|corners}?"],
    "diet": ["$p {eat|live on|feed on} what?", "{which|what} food do $p {like|eat|need}?", "what should I {feed|give} {to |}a $s{ to eat|}?", "what is {eaten by|food for} a $s?", "a $s {eats|lives on} what?", "what do I feed {my|a|the} $s?"],
    "maker": ["$s {is|are} made by {whom|who}?", "{which|what} {person|one|animal|job} makes $s?", "{from whom|where} do we get $s?", "by whom {is|are} $s made?", "$s comes from {whom|who}?", "whose work is $s?"],
    "job": ["a $s works {where|in what place}?", "{in which|at which|at what} {place|building} {do I find|works|would you meet} a $s?", "where {can|do|would} I {meet|find|see} a $s{ at work|}?", "where do $p work?", "the workplace of a $s is {where|what|...}?"],
    "tool_for": ["{how do|with what do|what helps} {I|you} {to |}$s{ with|}?", "{which|what} {tool|thing} {do I need|is used|should I use|is for} to $s?", "I {have|need} to $s. {What do I {need|use}|What should I take|With what}?", "to $s, what do I {need|use|take}?"],
}  # fmt: skip


def more_asks(name: str) -> list[str]:
    """The further questions of a relation, each with one of its choices made; the same ones each time."""
    rng = Random(f"wordings {name}")
    asks: set[str] = set()
    for template in _RULES.get(name, []):
        for _ in range(8):
            asks.add(write(rng, template.replace("$s", "\x01").replace("$p", "\x02")))
    return sorted(ask.replace("\x01", "$s").replace("\x02", "$p") for ask in asks)
