# ruff: noqa: E501, SIM905 - lines of text and word lists read better whole
"""Tasks said in other ways: with a remark after them, with the order behind the list, with what the form is in half a sentence."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from random import Random

from . import lexicon
from .extras import LISTS, poem
from .grammar import write
from .knowledge import TOPICS
from .sample import Message, Sample, Turn, say
from .stories import story
from .story_chats import story_key
from .tasks import (
    DAYS,
    MONTHS,
    ORDINALS,
    fact,
    fix_articles,
    in_words,
    opposite,
    plural,
    plural_of,
    solve,
    sum_key,
)
from .text_tasks import WORDS, _numbers, _word_items
from .typed import typed
from .words import invented_word

_FACTS: list[Callable[[Random], Turn]] = [fact, fact, opposite, plural]
_SAID = frozenset(("capital", "language", "continent", "color"))  # relations whose name can be said
_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _up(text: str) -> str:
    return text[0].upper() + text[1:]


def spelled(rng: Random) -> Turn:
    """A spelling with a remark, or a neighbor in the alphabet."""
    if rng.random() < 0.4:
        i = rng.randrange(1, 25)
        letter, before = _ALPHABET[i], rng.random() < 0.45
        other = _ALPHABET[i - 1 if before else i + 1]
        word = "before" if before else "after"
        near = rng.choice(["", "", "just ", "right ", "directly "])
        ask = write(rng, f"{{Which letter comes {near}{word} {letter}|What letter is {near}{word} {letter}|What comes {near}{word} {letter}|The letter {near}{word} {letter}|{letter}: what comes {word} it|Which letter is {near}{word} {letter}|Tell me the letter {near}{word} {letter}|What is the {'previous' if before else 'next'} letter {'before' if before else 'after'} {letter}}}{{ in the alphabet| in the ABC||}}?")  # fmt: skip
        return Turn("spelling", typed(rng, ask, True), f"{other} comes {word} {letter}.", f"alphabet {word} {letter}", other)  # fmt: skip
    word = rng.choice([rng.choice(WORDS), rng.choice(lexicon.COMMON), rng.choice(lexicon.NOUN_LIKE)])
    a, b = rng.choice(word), rng.choice(word)
    ask = "{could you|can you|would you|please|will you|I need you to|} spell {the word |}$w{ for me|}"
    why = f"{{I'm never sure about the {a} and the {b}|I am never sure about the {a}|I always forget how|I'm not sure how it is written|I can't spell|My teacher wants to know|I'm writing a letter|I keep getting it wrong|Is it with {a} or {b}|It has a {a} somewhere|I need it for school|It's for my homework|Letter by letter|Slowly, please|I forgot it}}"
    first = write(rng, ask, {"w": word}).strip()
    remark = write(rng, why)
    text = (
        _up(first)
        + ("?" if first.startswith(("could", "can", "would", "will")) else ".")
        + " "
        + remark
        + "."
    )
    draw = rng.random()
    if draw < 0.25:
        text = f"{remark}. {_up(first)}."
    elif draw < 0.5:
        text = write(rng, f"{{How do I write|How do you write|How is|What are the letters of|What's the spelling of|What is the right spelling of|Tell me the letters in|Which letters are in}} {{the word |}}{word}").replace("How is the word", "How is the word").strip()  # fmt: skip
        text += " spelled?" if text.startswith("How is") else "?"
    return Turn("spelling", typed(rng, text, True), f"{_up(word)} is spelled {'-'.join(word)}.", f"spelled {text.lower()}", "-".join(word))  # fmt: skip


def ordered(rng: Random) -> Turn:
    """A list to sort, with the order said behind it, in passing, from z to a, with any separator."""
    numbers = rng.random() < 0.4
    items = _numbers(rng, 3, 6) if numbers else _word_items(rng, 3, 5)
    down = rng.random() < 0.4
    result = sorted(items, key=int if numbers else str.lower, reverse=down)
    text = rng.choice([", ", ", ", " ", " ", ",", "; ", " / ", " and ", "\n"]).join(items)
    polite = rng.choice(["", "", "can you ", "could you ", "please ", "would you "])
    verb = rng.choice("sort order arrange put".split())
    these = rng.choice(["these", "them", "these " + ("numbers" if numbers else "words"), "this list", "this"])
    if numbers:
        how = rng.choice(["from big to small", "biggest first", "starting with the biggest", "downwards", "from the highest down", "largest to smallest", "backwards, starting at the biggest", "in falling order"] if down else ["from small to big", "smallest first", "starting with the smallest", "upwards", "from the lowest up", "smallest to largest", "in rising order", "by size"])  # fmt: skip
    else:
        how = rng.choice(["from z to a", "backwards, starting at z", "in reverse alphabetical order", "z first", "backwards from z to a", "from Z to A", "in alphabetical order but backwards", "starting at z", "starting with z"] if down else ["from a to z", "alphabetically", "in alphabetical order", "starting at a", "a first", "by the alphabet", "by their first letters", "like in a dictionary", "starting with a"])  # fmt: skip
    order = f"{polite}{verb} {these}{' in a row' if verb == 'put' and rng.random() < 0.2 else ''} {how}"
    ask = rng.choice([f"{text} - {order}", f"{order}: {text}", f"{order}: {text}", f"{order}, {text}", f"{text}: {order}", f"{text}. {_up(order)}.", f"I have {text}. {_up(order)}.", f"{text}\n{_up(order)}", f"{text} ({how})", f"{_up(how)}: {text}", f"{_up(how)}, please: {text}", f"Here: {text}. {_up(how)}, please.", f"{text} -> {how}"])  # fmt: skip
    ask = ask + "?" if polite.startswith(("can", "could", "would")) and rng.random() < 0.6 and ask.endswith(how) else ask  # fmt: skip
    ask = _up(ask) if rng.random() < 0.5 else ask
    return Turn("sorting", ask, ", ".join(result), f"ordered {down} {items}")


def about_sentence(rng: Random) -> Turn:
    """One sentence about a thing, or a short text in one sentence."""
    if rng.random() < 0.4:
        who = lexicon.anyone(rng)
        he = rng.choice(("He", "She"))
        place, thing = rng.choice(lexicon.PLACES), rng.choice([*lexicon.THINGS, *lexicon.CREATURES])
        past = rng.choice("saw bought found met got drew".split())  # fmt: skip
        where = rng.choice([f"went to the {place}", f"was at the {place}", f"visited the {place}", f"went to {lexicon.anywhere(rng)}", f"walked to the {place}"])  # fmt: skip
        felt = rng.choice(["liked it a lot", "was very happy", "was tired", "came home late", "had a good day", "was hungry", "told everyone", "laughed"])  # fmt: skip
        when = rng.choice(["", "", f"On {rng.choice(DAYS)} ", f"In {rng.choice(MONTHS)} ", "Yesterday "])
        text = f"{when}{who} {where}. {he} {past} a {thing}. {he} {felt}."
        lead = rng.choice(["Summarise in one sentence", "Summarize in one sentence", "Sum up in one sentence", "One sentence summary, please", "In one sentence, what happened", "Shorten to one sentence", "Give me a summary in one sentence", "Put this into one sentence", "Make one sentence of this", "Tell me this in a single sentence", "Sum this up in one short sentence", "Say it in one sentence", "Write this as one sentence", "Summarize this text in a single sentence"])  # fmt: skip
        ask = f"{lead}: {text}" if rng.random() < 0.75 else f"{text} {lead}."
        answer = f"{when}{who} {where}, {past} a {thing} and {felt}."
        return Turn("one sentence", fix_articles(ask), fix_articles(answer), f"summary {text}")
    name = rng.choice(list(TOPICS))
    bare = name.removeprefix("a ").removeprefix("an ")
    shown = rng.choice([name, name, bare, "the " + bare if bare != name else name])
    if rng.random() < 0.65:
        ask = write(rng, f"{{Write|Say|Tell me|Give me|Make|Form|Please write|Can you write|I need|Write me}} {{one|a|a single|just one|one short|a short|a full}} sentence {{about|about|on}} {shown}{{.||, please.| for me.}}")  # fmt: skip
    else:
        ask = write(rng, f"{{{{Describe|Explain|Define}} {shown} in {{one|a single}} sentence.|{{One sentence|A sentence|A short sentence|Just a sentence}} about {shown}{{, please.||.}}|{{What is {name}? One sentence.|Tell me about {shown}, but only one sentence.}}|{{In one sentence|One sentence}}: {shown}}}")  # fmt: skip
    return Turn("one sentence", typed(rng, fix_articles(ask)), TOPICS[name], f"sentence about {ask.lower()}")


_FOUND: dict[str, str] = {
    "in a kitchen": "stove fridge table pot pan knife spoon", "in a school": "teacher desk book pencil blackboard chair", "in a garden": "flower tree grass bush bench", "in a bathroom": "sink towel mirror soap bathtub", "in a bedroom": "bed pillow lamp wardrobe blanket", "on a farm": "cow pig hen horse tractor barn", "in a zoo": "lion elephant monkey zebra giraffe bear", "in an office": "desk computer phone chair printer", "in a forest": "tree moss fox deer mushroom", "in the sea": "fish shark whale crab seaweed", "at the beach": "sand shells water towel umbrella", "in a toolbox": "hammer saw screwdriver pliers wrench", "in a fridge": "milk butter cheese eggs yogurt", "in the sky": "sun moon stars clouds birds", "in a hospital": "doctor nurse bed medicine patient", "in a library": "books shelves desk chair lamp", "in a city": "streets houses cars shops people", "in a pencil case": "pencil pen eraser ruler sharpener", "in a suitcase": "shirt socks trousers shoes toothbrush", "on a table": "plate cup fork knife glass", "in a car": "seat wheel engine door mirror", "in a bakery": "bread cake rolls cookies pie", "in a salad": "lettuce tomato cucumber onion carrot", "in winter": "snow ice cold gloves scarf", "in a band": "guitar drums piano singer bass", "in a park": "bench trees grass pond path", "in a living room": "sofa lamp carpet table television", "in a supermarket": "bread milk apples rice soap", "at a party": "cake music guests balloons drinks", "at the airport": "planes gates suitcases pilots passengers", "in a church": "altar candles bells organ", "on the street": "cars bikes people lights", "in the desert": "sand camel cactus sun", "in a museum": "paintings statues visitors guards", "in a handbag": "keys phone wallet tissues", "on a pizza": "cheese tomato ham mushrooms olives", "in a sandwich": "bread cheese ham butter", "in a classroom": "desk chair blackboard books teacher",
}  # fmt: skip
_SYSTEM_STYLES = {
    "numbered": "{You {write|make|answer in|use|speak in} numbered lists{| only}|{Answer|Reply|Write} {with|in|as} {a numbered list|numbered lists}|Numbered lists{| only|, please}|Always number your items|Number every item}.",
    "bullets": "{You {write|make|answer in|use} bullet {lists|points}{| only}|{Answer|Reply|Write} {with|in|as} {a bullet list|bullet points|bullets}|Bullet points{| only|, please}|Put a bullet before every item|Every item gets a bullet}.",
    "lines": "{{Write|Put} every item on {its own|a new} line|One item {per|on each} line{|, please}|You write one thing per line}.",
}  # fmt: skip
_STYLE = {
    "numbered": "{, each with a number in front|, numbered| with numbers in front|, number them|, with a number before each| as a numbered list|, numbered 1 to $c|, each with a number|. Number them| in a numbered list}",
    "bullets": "{, each with a dash in front|, bulleted| with bullets in front|, use bullets|, with a bullet before each| as bullet points|, each with a bullet|. Use dashes|, dashes in front}",
    "lines": "{, each on a line of its own|, one under the other|, one per line|, a line for each|, below each other}",
}  # fmt: skip


def listed(rng: Random) -> Sample:
    """So many things of a kind or a place, in a style that the system or half a sentence asks for."""
    count = rng.choice((2, 3, 3, 4, 5))
    if rng.random() < 0.55:
        where = rng.choice([w for w in _FOUND if len(_FOUND[w].split()) >= count])
        items = _FOUND[where].split()[:count]
        number = rng.choice([in_words(count), str(count)])
        ask = write(rng, f"{{|Name |Tell me |List |Give me |Write down |I need |Can you name |Say }}{number} things {{you find|you can find|you see|you can see|one finds|that are|that you find|that belong|}} {where}").replace("  ", " ")  # fmt: skip
    else:
        kind = rng.choice([k for k, v in LISTS.items() if len(v) >= count])
        items = LISTS[kind][:count]
        number = rng.choice([in_words(count), str(count)])
        ask = write(
            rng,
            f"{{|Name |name |Tell me |List |list |Give me |give me |Write down |I want |Can you name |please name |just |any }}{number} {kind}",
        )
    style = rng.choice(("numbered", "numbered", "bullets", "bullets", "lines"))
    messages: list[Message] = []
    if rng.random() < 0.4:
        messages.append(say("system", write(rng, _SYSTEM_STYLES[style])))
    else:
        ask = write(rng, ask + _STYLE[style], {"c": str(count)})
    ask = ask.strip()
    ask = _up(ask) if rng.random() < 0.6 else ask
    ask += rng.choice(["", ".", "", ", please", "!"])
    show: Callable[[list[str]], str] = {"numbered": lambda x: "\n".join(f"{i}. {t}" for i, t in enumerate(x, 1)), "bullets": lambda x: "\n".join(f"- {t}" for t in x), "lines": lambda x: "\n".join(x)}[style]  # fmt: skip
    turn = Turn("lists", ask, "", f"listed {style} {ask.lower()}")
    return Sample("lists", messages=[*messages, say("user", ask), say("assistant", show(items))], hint={"held_out": str(int(turn.held_out))})  # fmt: skip


def json_said(rng: Random) -> Sample:
    """JSON of what is said in passing: a range, a fact under a key, an object of "the shirt is blue and the size is large"."""
    kind = rng.randrange(4)
    if kind == 0:
        low = rng.choice((0, 1, 1, 1, 2, rng.randint(2, 40)))
        high = low + rng.randint(2, 9)
        step = rng.choice((1, 1, 1, 2)) if low < 3 else 1
        values = list(range(low, high + 1, step))
        of = {1: "the numbers", 2: "every second number"}[step]
        if step == 2 and rng.random() < 0.7:
            of = "the even numbers" if low % 2 == 0 else "the odd numbers"
        ask = write(rng, f"{{{{json|JSON|a JSON}} {{array|list}} {{with|of}} {of} from {low} to {high}|{{Give me|Write|Make|Print|I need}} {of} from {low} to {high} as {{a JSON array|JSON|a JSON list}}|{_up(of)} {low} to {high} {{as|in}} {{a JSON array|JSON}}|Count from {low} to {high} in a JSON array}}") if step == 1 else write(rng, f"{{JSON array|json list|A JSON array}} {{with|of}} {of} from {low} to {high}")  # fmt: skip
        answer = json.dumps(values)
    elif kind == 1:
        turn = rng.choice(_FACTS)(rng)
        while not turn.value or turn.held_out or turn.answer.count("=") > 1:
            turn = rng.choice(_FACTS)(rng)
        key = rng.choice([turn.relation or "answer", "answer", "result", "value", "word", rng.choice(lexicon.IDEAS), rng.choice(lexicon.NOUN_LIKE)])  # fmt: skip
        value = turn.value.rstrip(".")
        ask = turn.ask.rstrip("?.")
        tail = write(rng, f"{{{{Put|Write}} {{it|the answer}} {{into|in|as}} JSON {{under|with}} the key {key}|As JSON with the key {key}|JSON, key {key}|Answer as JSON under the key {key}|Use JSON and the key {key}}}")  # fmt: skip
        ask = f"{ask}? {tail}."
        if turn.relation in _SAID and turn.subject and rng.random() < 0.6:
            ask = write(rng, f"{{Put|Write|Give me|Return|Show}} the {turn.relation} of {turn.subject} {{into|in|as}} JSON {{under|with}} the key {key}{{.|}}")  # fmt: skip
        answer = json.dumps({key: int(value) if value.isdigit() else value})
    else:
        thing = rng.choice([*lexicon.THINGS, *lexicon.CREATURES])
        color, size, city, name = rng.choice(lexicon.COLORS), rng.choice("small large medium big tiny huge".split()), lexicon.anywhere(rng), lexicon.anyone(rng)  # fmt: skip
        number, day = rng.randint(1, 99), rng.choice(DAYS)
        all_fields: dict[str, tuple[object, str]] = {"color": (color, f"the {thing} is {color}"), "size": (size, f"the size is {size}"), "price": (number, f"{{the price is|it costs}} {number}{{ euros| dollars|}}"), "name": (name, f"{{the name is|it belongs to}} {name}"), "city": (city, f"{{it is in|the city is|it comes from}} {city}"), "day": (day, f"{{it comes on|the day is}} {day}"), "age": (number, f"it is {number} years old"), "thing": (thing, f"it is a {thing}"), "amount": (number, f"there are {number} of them"), "weight": (number, f"it weighs {number} kilos")}  # fmt: skip
        idea, word = rng.choice(lexicon.IDEAS), invented_word(rng)
        all_fields.setdefault(idea, (word, f"the {idea} is {word}"))
        keys = rng.sample(list(all_fields), rng.choice((1, 2, 2, 3)))
        if {"price", "age", "amount", "weight"} & set(keys) and len({"price", "age", "amount", "weight"} & set(keys)) > 1:  # fmt: skip
            keys = keys[:1]
        fields = {k: all_fields[k] for k in keys}
        said = [write(rng, text) for _, text in fields.values()]
        text = _up(" and ".join(said)) if len(said) < 3 or rng.random() < 0.4 else _up(f"{said[0]}, {said[1]} and {said[2]}")  # fmt: skip
        text += "."
        if rng.random() < 0.3:
            text = " ".join(_up(s) + "." for s in said)
        order = rng.sample(keys, len(keys)) if rng.random() < 0.4 else keys
        shown = " and ".join(order) if len(order) < 3 else f"{order[0]}, {order[1]} and {order[2]}"
        noun = "key" if len(order) == 1 else "keys"
        lead = write(rng, f"{{JSON object please|JSON, please|A JSON object|json please|I want JSON|JSON object|Make JSON|Object}}, {{{noun} {shown}|with the {noun} {shown}|{noun}: {shown}}}")  # fmt: skip
        ask = f"{lead}. {text}" if rng.random() < 0.6 else f"{text} {lead}."
        answer = json.dumps({k: fields[k][0] for k in order}, ensure_ascii=False)
    ask = fix_articles(ask)
    turn = Turn("json", ask, answer, f"json said {ask}")
    return Sample("json", messages=[say("user", ask), say("assistant", answer)], hint={"held_out": str(int(turn.held_out))})  # fmt: skip


def one_word(rng: Random) -> Sample:
    """A fact, and in half a sentence that a word is enough."""
    while True:
        turn = rng.choice(_FACTS)(rng)
        value = (turn.value or "").rstrip(".")
        if value and " " not in value and "," not in value and not turn.held_out:
            break
    ask = turn.ask.rstrip("?.!")
    if turn.relation in _SAID and turn.subject and rng.random() < 0.2:
        ask = f"The {turn.relation} of {turn.subject}"
    named = re.search(r"(?:plural|opposite) of (\w+)$", ask)
    if named and rng.random() < 0.6:
        ask = _up(rng.choice(["the ", ""]) + named[0])
    tail = rng.choice(["nothing else", "1 word", "1 word!", "one word", "one word!", "just the word", "only the word", "a single word", "no sentence", "nothing more", "in 1 word", "the word alone", "word only", "no other words", "don't write a sentence", "just 1 word please", "one word is enough"])  # fmt: skip
    ask = rng.choice([f"{ask}, {tail}", f"{ask}? {_up(tail)}", f"{ask}? {_up(tail)}", f"{ask} - {tail}", f"{ask} ({tail})", f"{_up(tail.rstrip('!'))}: {ask}?"])  # fmt: skip
    ask += "" if ask[-1] in "!?)" else rng.choice([".", ".", "", "!"])
    return Sample("format", messages=[say("user", ask), say("assistant", _up(value))], hint={"held_out": "0"})


def left_over(rng: Random) -> Sample:
    """An amount told first, what happened to it later, and how many there are then."""
    b = rng.randint(2, 12)
    a = rng.randint(b + 1, 40)
    op = rng.choice("--+")
    things = rng.choice([*lexicon.FOODS, *lexicon.THINGS])
    things = plural_of(things)
    tell = write(rng, f"{{I {{have|bought|got|found|picked|collected|made|baked}} {a} {things}{{| at the market| yesterday| today| this morning| for the party}}|There are {a} {things} {{in the box|on the table|at home|in my bag}}|My basket holds {a} {things}|We had {a} {things}}}.")  # fmt: skip
    reply = write(
        rng,
        f"{{Great|Nice|Good to know|That is a lot|{a} {things}, that sounds nice|How nice|All right|{_up(things)} are nice}}{{.|!}}",
    )
    then = f"{{I {{ate|gave away|lost|sold|used|dropped|broke|threw away}} {b}|{b} {{of them |}}{{are gone|are bad|were stolen|broke}}|My {{friend|brother|dog}} took {b}}}" if op == "-" else f"{{I {{bought|got|found|made}} {b} more|My {{friend|sister}} gave me {b} more|{b} more came}}"  # fmt: skip
    ask = write(rng, f"{then}. {{How many {{do I still have|do I have now|are left|are there now|have I got now|{things} do I have now|remain}}|How many now|What is left}}?" if op == "-" else f"{then}. {{How many {{do I have now|are there now|{things} are there now|have I got now|is that}}|How many now}}?")  # fmt: skip
    line, value = solve(a, op, b)
    answer = f"{line}. That leaves {value}." if op == "-" else f"{line}. That makes {value}."
    turn = Turn("multi-turn", ask, answer, sum_key(a, op, b))
    messages = [say("user", tell), say("assistant", reply), say("user", _up(ask)), say("assistant", answer)]
    return Sample("multi-turn", messages=messages, hint={"held_out": str(int(turn.held_out))})


def verse(rng: Random) -> Turn:
    """A poem, asked for by its lines or in passing."""
    turn = poem(rng)
    about = turn.ask.split(" about ")[-1].rstrip(".?") if " about " in turn.ask else ""
    lines = len(turn.answer.split("\n"))
    if lines != 4:
        return turn
    ask = write(rng, "{Write|Make|Compose|Can you write|I would like|I need|Give me|Please write|Try} a {four-line poem|poem with four lines|poem of four lines|4-line poem|short poem in four lines|rhyme of four lines|poem, four lines long,|little verse of four lines|poem (four lines)}") + (f" about {about}" if about else "") + rng.choice([".", "", ", please.", "!"])  # fmt: skip
    return Turn("poem", fix_articles(ask), turn.answer, f"verse {ask.lower()}")


_TELLER = "{You tell stories to {little |small |}children|You are a storyteller|You are a story teller for {kids|children}|Tell stories to the user|You tell bedtime stories|You write {short |}stories{| for children}|You love to tell stories|You are a grandmother who tells stories|Story time}."
_TELLING = "{Please tell us one about a $k|One about a $k, please|Tell us one about a $k|Now one about a $k named $h|{Could|Can} we hear one about a $k|Do you know one about a $k|We want one {about|with} a $k|A $k this time|About a $k, please|Something about a $k named $h|How about one with a $k called $h|One with $h the $k|{Go on|Begin|Start}, about a $k|Tell us a story{| about a $k}|A story about $t|One about $t|I am in the mood for one about $t|{My son|My daughter|My class} wants one about a $k}{!|.|?|}"
_WISHES = "{I can't sleep. {Tell me something about a $k|A story about a $k, please|Do you have a story with a $k}|It is bedtime. {A story|Something} about a $k{ named $h|}, please|We are bored. Tell us a {tale|story} about a $k|Invent a {tale|story} in which a $k {has an adventure|finds a friend|learns something}|What happened to the $k {called|named} $h? Tell me the story|Entertain me with a story about $t|Let me hear {a tale|a story} of a $k {called|named} $h|There should be a $k in the story. {Tell it|Begin}|Make a story {with|from} these: $k, $h|A little tale about a $a $k, please|Story: a $k{ named $h|}|Write something for children about a $k|Begin a story with a $k}{.|!|}"


def wished_story(rng: Random) -> Sample:
    """A story that is wished for in passing, of a storyteller or not."""
    told = story(rng)
    env = {"k": told.kind, "h": told.hero, "t": told.theme, "a": told.trait}
    messages: list[Message] = []
    if rng.random() < 0.55:
        messages.append(say("system", write(rng, _TELLER)))
        ask = write(rng, _TELLING, env)
    else:
        ask = write(rng, _WISHES, env)
    ask = fix_articles(_up(ask) if rng.random() < 0.85 else ask)
    messages += [say("user", ask), say("assistant", told.text)]
    held = Turn("story", ask, "", story_key(told)).held_out
    return Sample("story", messages=messages, hint={"held_out": str(int(held)), "hero": told.hero, "kind": told.kind})  # fmt: skip


def there_was(rng: Random) -> Sample:
    """A story as plain text whose first words are other ones than the plots'."""
    for _ in range(12):
        told = story(rng)
        first, _, rest = told.text.partition(". ")
        if told.hero in first and rest.startswith(("He ", "She ", "His ", "Her ", told.hero)):
            break
    else:  # nothing that can follow another beginning
        rest = told.text
    a = rng.choice("small little young big old brave shy".split())
    home = rng.choice([f"near the {rng.choice(lexicon.PLACES)}", f"not far from the {rng.choice(lexicon.PLACES)}", "in a big tree", "in a small house", "in the forest"])  # fmt: skip
    lived = f" who lived {home}" if rng.random() < 0.55 else ""
    begin = write(rng, f"{{There was once|There once was|Long ago there was|Once there was|Many years ago there lived|In a land far away there lived|One day there was|Far away there was|In the woods there was}} a {a} {told.kind}")  # fmt: skip
    start = f"{begin} {rng.choice(('named', 'called'))} {told.hero}{lived}. "
    if rng.random() < 0.5:
        start = f"{begin}{lived}. The {told.kind} was called {told.hero}. "
    held = Turn("story", "", "", story_key(told)).held_out
    return Sample("story", text=f"{fix_articles(start.strip())} {rest}", hint={"held_out": str(int(held)), "hero": told.hero, "kind": told.kind})  # fmt: skip


def months_and_days(rng: Random) -> Turn:
    """The last, the first, the n-th of days and months, said at more length."""
    names, unit, of = (DAYS, "day", "week") if rng.random() < 0.4 else (MONTHS, "month", "year")
    i = rng.choice((0, len(names) - 1, len(names) - 1, rng.randrange(len(names))))
    nth = "last" if i == len(names) - 1 and rng.random() < 0.8 else ORDINALS[i]
    very = rng.choice(["", "very "]) if nth in ("first", "last") else ""
    ask = write(rng, f"{{What's|What is|Which is|Tell me|Name|Do you know|Give me}} the {very}{nth} {unit} {{of the {of}|in a {of}|in the {of}}}{{?|}}")  # fmt: skip
    if rng.random() < 0.3:
        ask = write(rng, f"{{With which {unit} does the {of} {'end' if nth == 'last' else 'begin'}|Which {unit} comes {nth} in the {of}|The {of} {'ends' if nth == 'last' else 'begins'} with which {unit}}}?") if nth in ("first", "last") else ask  # fmt: skip
    return Turn("calendar", typed(rng, ask), f"The {nth} {unit} of the {of} is {names[i]}.", f"calendar wide {nth} {unit}", names[i])  # fmt: skip


_SIGHTS = "Eiffel Tower:Paris:France|Big Ben:London:England|Colosseum:Rome:Italy|Statue of Liberty:New York:the United States|Taj Mahal:Agra:India|Great Wall:Beijing:China|Brandenburg Gate:Berlin:Germany|Acropolis:Athens:Greece|Kremlin:Moscow:Russia|Louvre:Paris:France|Alhambra:Granada:Spain|Opera House of Sydney:Sydney:Australia|Golden Gate Bridge:San Francisco:the United States|Tower Bridge:London:England|Prado:Madrid:Spain|Hagia Sophia:Istanbul:Turkey|Leaning Tower:Pisa:Italy|White House:Washington:the United States|Little Mermaid:Copenhagen:Denmark|Hermitage:Saint Petersburg:Russia".split(
    "|"
)
_WATERS = "a fish:in the water|a shark:in the sea|a whale:in the sea|a dolphin:in the sea|a crab:in the sea|an octopus:in the sea|a frog:near the water|a duck:near the water|a trout:in a river|a salmon:in the sea and in rivers|a goldfish:in a pond or an aquarium|a seal:in the sea and on the beach|a jellyfish:in the sea|a lobster:in the sea|a squid:in the sea|a polar bear:in the Arctic|a penguin:in the Antarctic|a camel:in the desert|a monkey:in the jungle|a squirrel:in the trees|a mole:under the ground|a worm:in the ground".split(
    "|"
)


def where_is(rng: Random) -> Turn:
    """The country and the city of a sight, or where an animal lives that has no house."""
    if rng.random() < 0.5:
        who, place = rng.choice(_WATERS).split(":")
        bare = who.split(" ", 1)[1]
        ask = write(rng, f"{{Where does {who} live|Where do you find {who}|Where does the {bare} live|Where would I see {who}|In what kind of place does {who} live|Where can I find {who}}}?")  # fmt: skip
        return Turn(
            "facts", typed(rng, ask), f"{_up(who)} lives {place}.", f"where lives {ask.lower()}", place
        )
    sight, city, land = rng.choice(_SIGHTS).split(":")
    if rng.random() < 0.6:
        ask = write(rng, f"{{In {{what|which}} country {{is|do I find|would you find|can I see|stands}} the {sight}|{{What|Which}} country {{is the {sight} in|has the {sight}}}|The {sight} is in {{which|what}} country}}?")  # fmt: skip
        return Turn("facts", typed(rng, ask), f"The {sight} is in {land}.", f"sight land {ask.lower()}", _up(land.removeprefix("the ")))  # fmt: skip
    ask = write(rng, f"{{In {{what|which}} city {{is|do I find|can I see|stands}} the {sight}|{{What|Which}} city {{is the {sight} in|has the {sight}}}}}?")  # fmt: skip
    return Turn("facts", typed(rng, ask), f"The {sight} is in {city}.", f"sight city {ask.lower()}", city)


_TURNS: list[tuple[float, Callable[[Random], Turn]]] = [(5, spelled), (7, ordered), (5, about_sentence), (1.5, verse), (2, months_and_days), (2, where_is)]  # fmt: skip


def wide_turn(rng: Random) -> Turn:
    """One of these questions."""
    return rng.choices([t for _, t in _TURNS], [w for w, _ in _TURNS])[0](rng)


_SAMPLES: list[tuple[float, Callable[[Random], Sample]]] = [(5, listed), (5, json_said), (4, one_word), (3, left_over)]  # fmt: skip


def wide_chat(rng: Random) -> Sample:
    """A chat of one of these sorts."""
    return rng.choices([s for _, s in _SAMPLES], [w for w, _ in _SAMPLES])[0](rng)
