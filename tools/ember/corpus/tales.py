# ruff: noqa: E501 - lines of text read better whole
"""Stories asked for by what must be in them: two friends, a thing, a lesson, a beginning to go on with."""

from __future__ import annotations

import re
from random import Random

from .grammar import write
from .sample import Message, Sample, is_held_out, say
from .stories import Story, story
from .story_chats import story_key
from .tasks import fix_articles
from .typed import around, typed
from .words import invented_word

_STORY = "{|short |little |nice |new |funny |bedtime |good-night |small }{story|story|story|tale|fairy tale|children's story}"
_VERB = "{Tell me|Write|Tell us|Write me|Could you tell me|Can you tell us|Please tell me|Please write|Make up|Please make up|Think of|Invent|I want|I would like|I need|We want to hear|Can I have|Give me|Read me|My {daughter|son|class|granddaughter|little brother} wants|Will you tell the children|Do you know|Will you tell me|Let me hear|How about}"
_WITH_FRIEND = [
    "$V a $T {about|of|with} {the friends |two friends called |two friends named |the two friends }$h and $n", "$V a $T {about|of} $h and {his|her|the} friend $n", "$V a $T in which {the $k $h|$h, a $k,|$h the $k|a $k named $h} {meets|finds|plays with|talks to|makes friends with} $f", "$V a $T {in which|where} {a $k|the $k $h} {meets|finds} $f{ named $n| called $n|}",
    "$V a $T about {a $k|$h}, and $n {should be in it too|is in it too|must be there as well}", "$h and $n are friends. $V a $T about them", "$V a $T. The {heroes|friends} are called $h and $n",
]  # fmt: skip
_WITH_THING = ["$V a $T about {a $g|a lost $g|a little $g|an old $g|the $g|a $g and a $k|a $k and a $g|a $k and {his|her} $g}", "$V a $T {with|in which there is|that has} a $g{ in it|}", "{story|a story|short story|tale} {about|with} a {|little |lost |old |magic }$g", "$V a $T about $h and {the|a} $g", "A {story|tale} {about|with} a $g, please", "{We are on the train|It is raining|It's bedtime|My child is sad|My lamp is still on}. {Tell me|Tell us|Do you know} a $T about a {|little |small |big }$g", "$V a $T {about|in which} $h and a $g", "The word is \"$g\". {Make|Tell me|Write} a $T with it"]  # fmt: skip
_PLAIN = [
    "$V a $T about {a $k|a $k {named|called} $h|$h the $k|the $k $h|a $a $k|a $a $k {named|called} $h|$t|$t, with a $k {named|called} $h|a $k and $t}", "{A|One} $T {for my son|for children|for tonight|for us} about $t{ and a $k named $h|}", "$V a $T for {my class|my son|my daughter|little children|my grandchild}{ about $t| with a $k| about a $k called $h|}", "$V a $T. The hero is {a $k named $h|$h|the $k $h|called $h}", "$V a $T with the {title|name} \"$^h and the $G\"", "{Main character|Hero}: $h, a $k. {Write|Tell} the story", "Story: {$h|a $k|$h the $k|$t}", "$V a $T that {begins|starts} with a $k named $h", "One with a $k{ named $h|}, please", "{The one|Something} {about|with} a $k {called|named} $h", "$h is {a $k|my $k|the name of my {cat|dog|teddy}}. $V a $T about {him|her|$h}", "$V a $T about $h{, please make it short|, not too long| and a happy end|. It should end well}",
]  # fmt: skip
_SYSTEM = "{You tell stories to children.|You are a storyteller.|You tell bedtime stories.|You write short stories.|You are a kind grandfather who tells stories.|You are a teacher in a kindergarten.|You are Ember.|You are a helpful assistant.}"
_GO_ON = "{Please go on|Go on{ with it|}|Please write on|Continue{ this story| the story|, please|}|Please continue{ the story|}|How does the story go on?|What happened next?|What happens next?|Finish {the|this} story|Write the rest{ of the story|}|And then?|Tell me the rest|Can you go on?|Go on from here|Please tell it to the end|Complete the story|How does it end?|Carry on}"
_BEGIN = "{Continue this story|Go on with this story|Finish this story|Here is the beginning of a story|The story begins like this|Complete the story|Write on|My story starts like this|Please continue|Go on from here|I have the first sentence of a story}"


def _things_in(told: Story) -> list[str]:
    """The thing of the plot, where it plays a part."""
    return [told.thing] if told.plot.startswith("any_") and told.thing in told.text else []


def _ask(rng: Random, told: Story) -> str:
    """A request that names what the story has."""
    friend = told.friend in told.text
    things = _things_in(told)
    env = {"k": told.kind, "h": told.hero, "t": told.theme, "a": told.trait, "n": told.friend, "f": told.friend_kind, "g": told.thing, "G": told.thing.capitalize()}  # fmt: skip
    env |= {"V": write(rng, _VERB), "T": write(rng, _STORY)}
    if things and rng.random() < 0.75:
        template = rng.choice(_WITH_THING)
    elif friend and rng.random() < 0.45:
        template = rng.choice(_WITH_FRIEND)
    else:
        template = rng.choice([t for t in _PLAIN if things or "$G" not in t])
    ask = fix_articles(write(rng, template, env))
    lead = ask.split()[0]
    ask += rng.choice(["?", "?", ", please?"]) if lead in ("Could", "Can", "Do", "Will", "How") else rng.choice([".", ".", "!", "", " please", ", please.", " pls"])  # fmt: skip
    return ask if rng.random() < 0.75 else ask[0].lower() + ask[1:]


def asked_story(rng: Random) -> Sample:
    """A story, and a request that names what is in it."""
    name = (invented_word(rng).capitalize(), rng.choice(("he", "she"))) if rng.random() < 0.2 else None
    told = story(rng, name)
    ask = _ask(rng, told)
    ask = (
        around(rng, ask)
        if rng.random() < 0.08
        else typed(rng, ask, content=True)
        if rng.random() < 0.15
        else ask
    )
    messages: list[Message] = [say("system", write(rng, _SYSTEM))] if rng.random() < 0.25 else []
    messages += [say("user", ask), say("assistant", told.text)]
    return _sample(told, messages)


def continued_story(rng: Random) -> Sample:
    """The first sentence or two of a story in the request, and the rest of it as the answer."""
    told = story(rng)
    while (cut := _cut(rng, told)) == 0:
        told = story(rng)
    begin, rest = told.text[:cut].strip(), told.text[cut:].strip()
    if rng.random() < 0.35:  # other first words
        a = rng.choice(["small", "little", "young", "old", "poor", "brave", "clever"])
        begin = fix_articles(write(rng, f"{{Once upon a time there was|There was once|There once was|Once there lived|Long ago there lived|One day there was}} a {a} {told.kind} {{called|named|whose name was}} {told.hero}."))  # fmt: skip
    gap = rng.choice([" ", " ", "\n", "\n\n"])
    if rng.random() < 0.6:
        go_on = write(rng, _GO_ON)
        ask = f"{begin}{gap}{go_on}{'' if go_on[-1] == '?' else rng.choice(('.', '.', '', '!'))}"
    else:
        ask = f"{write(rng, _BEGIN)}:{gap}{begin}"
    if rng.random() < 0.1:
        ask = ask.replace(begin, f'"{begin}"')
    return _sample(told, [say("user", ask), say("assistant", rest)])


def _cut(rng: Random, told: Story) -> int:
    """Where the first sentence ends that names the hero, or 0 if the rest would be short or cut a talk."""
    ends = [m.end() for m in re.finditer(r"[.!?](?=\s)", told.text)]
    ends = [e for e in ends if told.hero in told.text[:e] and told.text[:e].count('"') % 2 == 0][: rng.choice((1, 1, 2))]  # fmt: skip
    if not ends or len(told.text[ends[-1] :].split()) < 110:
        return 0
    return ends[-1]


def _sample(told: Story, messages: list[Message]) -> Sample:
    held = str(int(is_held_out(story_key(told))))
    return Sample("story", messages=messages, hint={"held_out": held, "hero": told.hero, "kind": told.kind})
