# ruff: noqa: E501, SIM905 - lines of text and word lists read better whole
"""More conversations: what the user told about anything, follow-ups of every task, long chats, requests for stories."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from . import lexicon
from .comprehension import _FOODS, _THINGS
from .facts import CAPITALS, CONTINENTS, LANGUAGES, RELATIONS
from .follow_ups import memory
from .grammar import write
from .knowledge import quiz, topic, word_lore
from .problems import named_sum, number_word, told_sum, two_steps
from .sample import Message, Sample, Turn, chat_sample, is_held_out, say
from .settings import setting
from .smalltalk import identity, small_talk, task, unknown
from .stories import story
from .story_chats import story_key
from .sums import asked_sum, few_numbers, story_sum
from .tasks import (
    DAYS,
    MONTHS,
    calendar,
    counting,
    fact,
    fix_articles,
    in_words,
    opposite,
    plural,
    relation_answer,
    solve,
    sum_key,
)
from .text_tasks import WORDS, change_case, echo, letters, sorting, sorting_chat
from .typed import typed
from .wider import wide_turn
from .words import ADJECTIVES, PLURALS, SLOTS, invented_word
from .yes_no import yes_no_question

_BY_NAME = {r.name: r for r in RELATIONS}
_TURNS: list[tuple[float, Callable[[Random], Turn]]] = [
(26, task), (16, small_talk), (9, identity), (12, unknown), (12, quiz), (6, topic), (7, word_lore), (9, sorting), (12, letters), (13, change_case), (5, echo), (4, yes_no_question), (9, asked_sum), (6, story_sum), (14, told_sum), (6, named_sum), (5, two_steps), (2, number_word), (4, few_numbers), (5, calendar), (3, plural), (3, counting), (3, opposite), (4, fact), (24, wide_turn),
]  # fmt: skip


def any_turn(rng: Random) -> Turn:
    """One independent question of any sort."""
    return rng.choices([t for _, t in _TURNS], [w for w, _ in _TURNS])[0](rng)


def talk_chat(rng: Random) -> Sample:
    """One to four independent turns, often after a system prompt."""
    messages: list[Message] = []
    if rng.random() < 0.22:
        messages.append(say("system", setting(rng) if rng.random() < 0.4 else rng.choice(SYSTEMS)))
    turns: list[Turn] = []
    for _ in range(rng.choice((1, 1, 1, 1, 1, 2, 3, 4))):
        turn = any_turn(rng)
        turns.append(turn)
        messages += [say("user", turn.ask), say("assistant", turn.answer)]
    return chat_sample(turns[-1].skill, messages, turns, value=turns[-1].value or "")


SYSTEMS = [
    "You are Ember, a small helpful assistant.", "You are a helpful assistant.", "You are Ember.", "Be kind and helpful.", "You are a friendly assistant.", "Answer the user's questions.", "You are Ember, a tiny model that comes with Akunu.", "Be brief and friendly.",
    "You are a helpful AI assistant.", "You are an AI assistant. Be helpful and honest.", "You are a chatbot.", "Help the user.", "You are an assistant that answers questions.", "Be polite.", "Answer honestly.", "You are a helpful, respectful and honest assistant.", "You are a smart assistant.",
]  # fmt: skip

# statement, what ember says, question, answer
_TOLD: list[tuple[str, list[str], str, str]] = [
    ("{I have|I own|I got|I just bought|Yesterday I bought} a $c $o.", ["{That sounds nice|Good to know|How nice}{.|!}", "A $c $o, that sounds nice."], "{What color is my $o|Which color is my $o|Do you remember the color of my $o}?", "Your $o is $c."),
    ("{Remember|Please remember|Keep in mind|Remember this|Note}{| the number|:} $i.", ["I will remember it: $i.", "I will remember the number $i."], "{Which number did I tell you|What was the number|Which number was it|What number should you remember|Do you remember the number|Tell me the number}?", "The number was $i."),
    ("{Remember|Please remember|Keep in mind}{| the word|:} $x.", ["I will remember it: $x.", "I will remember the word $x."], "{Which word did I tell you|What was the word|Which word was it|Do you remember the word|Tell me the word}?", "The word was $x."),
    ("My {$k} is {called|named} $n.", ["{What a nice name|That is a nice name|How sweet}!", "$n is a nice name."], "{What's my $k called|What is my $k called|What is the name of my $k|Do you remember my $k's name|What's my $k's name}?", "Your $k is called $n."),
    ("My {favorite|favourite} $F is $v.", ["{Good to know|Nice}. Your favorite $F is $v.", "$^v is a nice choice."], "{What's my favorite $F|What is my favourite $F|Which $F do I like best|Do you remember my favorite $F}?", "Your favorite $F is $v."),
    ("I am $a years old{ and my name is $n|}.", ["{Nice to meet you|Good to know|Thank you for telling me}!"], "{How old am I|What's my age|Do you know how old I am|What is my age}?", "You are $a years old."),
    ("{I'm|I am} $n and {I'm|I am} $a.", ["Nice to meet you, $n!", "Hello, $n!"], "{How old am I|What is my age}?", "You are $a years old."),
    ("{Hi! I'm|I'm|Hello, I am|Hey, I'm} $n{ and I live in| from|, I live in} $p.", ["Hello, $n!", "Nice to meet you, $n!"], "{Where do I live|In which city do I live|Where am I from|Which city do I live in}?", "You live in $p."),
    ("{Hi! I'm|I'm|Hello, I am|My name is|Call me|I'm called|You can call me|Hey, it's|This is} $n.", ["Hello, $n! How can I help you?", "Nice to meet you, $n!", "Hi, $n!"], "{What's my name|Do you know who I am|Who am I|What did I say my name was|Do you remember my name|Can you tell me my name|What am I called|say my name}?", "Your name is $n."),
    ("I live in $p.", ["$p must be a nice place.", "Good to know."], "{Where do I live|In which city do I live|Which city do I live in}?", "You live in $p."),
    ("{I work as|I am} a $j.", ["That sounds like good work.", "Good to know."], "{What is my job|What do I do for work|What's my job|What do I work as}?", "You work as a $j."),
    ("{I like|I love|I really like} $f.", ["{Good to know|That sounds good}.", "I like stories about $f."], "{What do I like|What did I say I like|Do you remember what I like}?", "You like $f."),
    ("{Yesterday|Today|On $D} I {went to|was in|visited} $p.", ["That sounds nice!", "{How nice|I hope you had a good time}!"], "{Where did I go|Where was I|Which city did I visit}?", "You went to $p."),
    ("My {sister|brother|mother|father|friend|teacher|boss|neighbor}'s name is $n.", ["{Good to know|What a nice name}!"], "{What is that person's name|What was the name|Who did I tell you about}?", "The name is $n."),
    ("{We have|I have|There is at home} a $K {named|called} $n.", ["{What a nice name|That is a nice name|How sweet}!", "Good to know!"], "{Who is $n|What is $n|Do you know who $n is|What kind of animal is $n}?", "$n is your $K."),
    ("My $k is {called|named} $n.", ["{What a nice name|That is a nice name|How sweet}!", "Good to know!"], "{Who is $n|Do you know who $n is|Do you remember who $n is}?", "$n is your $k."),
    ("{I am|I'm} {travelling|going|flying|driving} to $p {on $D|in $M|soon}.", ["{Have a good trip|That sounds nice|How nice}!"], "{Where am I going|Where will I go|To which city do I travel|What is the goal of my trip}?", "You are going to $p."),
    ("{I need|I want|I have|I am going} to buy a $c $o {and some $f|}.", ["{Good idea|Good to know|All right}."], "{What do I {need|want} to buy|What did I want to buy|What was on my list}?", "You want to buy a $c $o."),
    ("{I study|I am learning|I speak} $L.", ["{How nice|That is a nice language|Good to know}!"], "{Which language do I {study|speak|learn}|What language was it|What do I learn}?", "It is $L."),
    ("My birthday is in $M.", ["I will remember: $M."], "{When is my birthday|In which month is my birthday|What month is my birthday in}?", "Your birthday is in $M."),
    ("{I have|We have} $I {$P}.", ["{That sounds nice|Good to know}!"], "How many $P do {I|we} have?", "You have $I $P."),
]  # fmt: skip


def told(rng: Random) -> Sample:
    """Something that the user said about anything, and later a question about it."""
    kind = rng.choice(["color", "food", "animal", "number", "fruit", "season", "city", "day"])
    values = {
        "color": [*SLOTS["color"], "teal", "pink", "black", "gray", "navy", "violet"],
        "food": _FOODS,
        "animal": [*list(PLURALS.values())[-6:], "cats", "dogs", "owls", "foxes"],
        "number": [str(n) for n in range(100)],
        "fruit": SLOTS["fruit"],
        "season": SLOTS["season"],
        "city": list(CAPITALS.values()),
        "day": DAYS,
    }
    word = rng.choice(values[kind]) if rng.random() < 0.85 else invented_word(rng)
    env = {
        "c": rng.choice(lexicon.COLORS), "o": rng.choice([*_THINGS, *lexicon.THINGS]), "i": str(rng.randint(0, 9999)), "x": rng.choice([rng.choice(WORDS), invented_word(rng)]), "k": rng.choice("dog cat horse sister brother friend hamster parrot son daughter boat car wife husband baby rabbit".split()), "n": lexicon.anyone(rng), "F": kind, "v": word, "K": rng.choice(lexicon.CREATURES), "L": rng.choice(lexicon.LANGUAGES), "a": str(rng.randint(3, 99)), "p": lexicon.anywhere(rng),
        "j": rng.choice(lexicon.PEOPLE), "f": rng.choice(_FOODS), "D": rng.choice(DAYS), "M": rng.choice(MONTHS), "I": in_words(rng.randint(2, 12)), "P": rng.choice(list(PLURALS.values())),
    }  # fmt: skip
    messages: list[Message] = []
    if rng.random() < 0.12:
        messages.append(say("system", rng.choice(SYSTEMS)))
    facts = rng.sample(_TOLD, rng.choice((1, 1, 1, 2)))
    turns: list[Turn] = []
    for tell, replies, _, _ in facts:
        said = fix_articles(write(rng, tell, env))
        said = typed(rng, said, content=True) if rng.random() < 0.5 else said
        reply = fix_articles(write(rng, rng.choice(replies), env))
        messages += [say("user", said), say("assistant", reply[0].upper() + reply[1:])]
    for _ in range(rng.choice((0, 0, 0, 0, 1, 1, 2))):
        turn = any_turn(rng)
        turns.append(turn)
        messages += [say("user", turn.ask), say("assistant", turn.answer)]
    _, _, ask, answer = rng.choice(facts)
    asked = typed(rng, write(rng, ask, env))
    asked = (
        rng.choice(["Thanks! ", "OK. ", "Now tell me: ", "And "]) + asked if rng.random() < 0.12 else asked
    )
    messages += [say("user", asked), say("assistant", fix_articles(write(rng, answer, env)))]
    return chat_sample("multi-turn", messages, turns)


def after(rng: Random) -> Sample:
    """Follow-ups of tasks: "and after that?", "now add 3", "and dog?", "in which continent is that country?"."""
    kind = rng.randrange(9)
    turns: list[Turn] = []
    if kind == 0:
        names = DAYS if rng.random() < 0.5 else MONTHS
        i = rng.randrange(len(names))
        unit = "day" if names is DAYS else "month"
        steps = [
            (f"What {unit} comes after {names[i]}?", f"{names[(i + 1) % len(names)]} comes after {names[i]}.")
        ]
        for k in range(1, rng.choice((2, 2, 3))):
            a, b = names[(i + k) % len(names)], names[(i + k + 1) % len(names)]
            steps.append(
                (
                    write(
                        rng,
                        f"{{And after that|And then|What comes after that|And the next one|And what comes next|And after {a}}}?",
                    ),
                    f"{b} comes after {a}.",
                )
            )
        pairs = steps
    elif kind == 1:
        a, op, b = rng.randint(1, 40), rng.choice("+-*"), rng.randint(1, 12)
        a, b = (max(a, b), min(a, b)) if op == "-" else (min(a, 12), b) if op == "*" else (a, b)
        line, value = solve(a, op, b)
        pairs = [(rng.choice([f"What is {a} {op} {b}?", f"{a} {op} {b}", f"{a}{op}{b}"]), line + ".")]
        turns.append(Turn("arithmetic", "", "", sum_key(a, op, b)))
        base = int(value)
        for _ in range(rng.choice((1, 1, 2))):
            op2, c = rng.choice("++-"), rng.randint(1, 20)
            op2 = "+" if base < c else op2
            if base > 99:
                break
            ask = write(
                rng,
                f"{{now add {c}|add {c}|and plus {c}|plus {c}|Add {c} to that|Now add {c} more|add {c} to the result}}"
                if op2 == "+"
                else f"{{now subtract {c}|minus {c}|take away {c}|and minus {c}|subtract {c} from that|now take {c} away}}",
            )
            line, value = solve(base, op2, c)
            turns.append(Turn("arithmetic", "", "", sum_key(base, op2, c)))
            pairs.append(
                (rng.choice([ask, ask[0].upper() + ask[1:], ask[0].upper() + ask[1:] + "."]), line + ".")
            )
            base = int(value)
    elif kind == 2:
        words = rng.sample(WORDS, 2)
        pairs = [
            (
                write(rng, f"{{Spell|How do you spell|Please spell|Spell the word}} {words[0]}{{?|.|}}"),
                f"{words[0].capitalize()} is spelled {'-'.join(words[0])}.",
            ),
            (
                write(rng, f"{{And|What about|And how about|Now}} {words[1]}?"),
                f"{words[1].capitalize()} is spelled {'-'.join(words[1])}.",
            ),
        ]
    elif kind == 3:
        land = rng.choice([c for c in CAPITALS if c in CONTINENTS and c in LANGUAGES])
        pairs = [
            (
                rng.choice(_BY_NAME["capital"].asks).replace("$s", land),
                relation_answer(_BY_NAME["capital"], land),
            )
        ]
        pairs[0] = (pairs[0][0][0].upper() + pairs[0][0][1:], pairs[0][1])
        name = rng.choice(("continent", "language"))
        ask = {
            "continent": "{In which continent is that country|On which continent is it|Which continent is that|Where is that country|And on which continent is that|What continent is that country in}?",
            "language": "{What do they speak there|Which language is spoken in that country|What language do people speak there|And the language}?",
        }[name]
        pairs.append((write(rng, ask), relation_answer(_BY_NAME[name], land)))
        if rng.random() < 0.4:
            other = rng.choice([c for c in CAPITALS if c in CONTINENTS and c in LANGUAGES])
            pairs.append(
                (
                    f"{rng.choice(['And', 'What about', 'How about'])} {other}?",
                    relation_answer(_BY_NAME[name], other),
                )
            )
    elif kind == 4:
        chat = sorting_chat(rng)
        pairs = [(t.ask, t.answer) for t in chat]
    elif kind == 5:
        opposites = ADJECTIVES | {b: a for a, b in ADJECTIVES.items()}
        table, word = rng.choice(((opposites, "opposite"), (PLURALS, "plural")))
        chosen = rng.sample(list(table), rng.choice((2, 2, 3)))
        pairs = [
            (
                write(
                    rng,
                    f"{{What is the {word} of|Tell me the {word} of|What's the {word} of|{word.capitalize()} of}} {chosen[0]}?",
                ),
                f"The {word} of {chosen[0]} is {table[chosen[0]]}.",
            )
        ]
        pairs += [
            (
                typed(rng, write(rng, f"{{And of|And|and of|What about|How about|And what about}} {w}?")),
                f"The {word} of {w} is {table[w]}.",
            )
            for w in chosen[1:]
        ]
    elif kind == 6:
        turn = rng.choice((quiz, topic, letters, word_lore))(rng)
        again = write(
            rng,
            "{Say that again|Can you repeat that|Again, please|Repeat that|Once more|Please say it again|What did you say}{.|?}",
        )
        pairs = [(turn.ask, turn.answer), (again, turn.answer)]
    elif kind == 7:
        turn = rng.choice((topic, quiz, task))(rng)
        turns.append(turn)
        how = rng.choice(("upper", "lower"))
        ask = write(
            rng,
            "{Now in capital letters|Say that in capitals|Write that in upper case|In caps, please|Now shout it}{.|}"
            if how == "upper"
            else "{Now in small letters|Write that in lower case|Say that in lowercase|Now without capitals}{.|}",
        )
        pairs = [
            (turn.ask, turn.answer),
            (ask, turn.answer.upper() if how == "upper" else turn.answer.lower()),
        ]
    else:
        turn = any_turn(rng)
        ask, answer = rng.choice(
            [
                (
                    "{What did I {just ask|ask you|ask}|What was my question|Repeat my question}?",
                    f'You asked: "{turn.ask}"',
                )
            ]
        )
        turns.append(turn)
        pairs = [(turn.ask, turn.answer), (write(rng, ask), answer)]
    messages: list[Message] = [say("system", rng.choice(SYSTEMS))] if rng.random() < 0.1 else []
    for ask, answer in pairs:
        messages += [say("user", ask), say("assistant", answer)]
    return chat_sample("multi-turn", messages, turns)


def long_chat(rng: Random) -> Sample:
    """Many turns, so that the whole context is used: what was said at the start is asked for at the end."""
    first = (told if rng.random() < 0.6 else memory)(rng)
    messages = list(first.messages)
    if len(messages) < 4 or first.hint["held_out"] == "1":
        return long_chat(rng)
    ask = messages[-2:]
    messages = messages[:-2]
    turns: list[Turn] = []
    if rng.random() < 0.5:
        tale = story(rng)
        if not is_held_out(story_key(tale)):
            messages += [say("user", f"Tell me a story about {tale.theme}."), say("assistant", tale.text)]
    for _ in range(rng.randint(4, 26)):
        turn = any_turn(rng)
        turns.append(turn)
        if not turn.held_out:
            messages += [say("user", turn.ask), say("assistant", turn.answer)]
    return chat_sample("multi-turn", [*messages, *ask], [])


_STORY_ASKS = [
    "{Tell me|Write|Write me|Please write|Please tell me|Can you tell me|Could you write|Make up|Invent|Give me|I want|I would like|I'd like to hear} a {short |little |nice |bedtime |funny |new |}{story|story|story|tale|fairy tale} {about|about|with|of} {a $k|a $k named $h|a $k called $h|a $a $k|$h|$h the $k|$h and $n|$t|a $k and $f|a little $k|a $k with a friend|my {son|daughter|friend|cat|dog} $h}{| please|, please}.",
    "{story|a story|short story|bedtime story|tale|one story} {about|with|of} {a $k|$h|$t|a $k named $h|a $a $k}{ please|, please|}", "{Tell me|Write|Write me} something {about|with} {a $k|a $a $k|$h the $k|$t}.", "{Can you tell|Can you write|Could you tell|Will you tell|Would you tell} me a {story|bedtime story|fairy tale|short story}{ about a $k| about $h| for my {son|daughter|child|friend} $h|}{?|, please?}", "{Tell me a story|Write a story|A story please|Another story|One more story|Another one|One more|I want a story|Story time|Story|Tell me a bedtime story|Tell a story|Please tell me a story|another story please|I want to hear a story|read me a story|Write me a story|tell me another one}{.|!||, please|}", "{Tell|Write} a story {in which|where} {a $k|$h} {meets a friend|has an adventure|learns something|is brave}.", "{I want|I would like|I need} a story with {a $k and $f|a $k|$h and $n} in it{| please}.", "The hero is {a $k|$h|a $k named $h}. {Tell me a story|Write the story|Make up a story}.", "{Make up|Invent} a {little |}story for {my son|my daughter|my friend|a child} {called |named |}$h.",
]  # fmt: skip


def story_request(rng: Random) -> Sample:
    """A story, asked for in many ways."""
    name = (invented_word(rng).capitalize(), rng.choice(("he", "she"))) if rng.random() < 0.12 else None
    tale = story(rng, name)
    env = {
        "k": tale.kind,
        "h": tale.hero,
        "t": tale.theme,
        "a": tale.trait,
        "n": tale.friend,
        "f": tale.friend_kind,
    }
    ask = fix_articles(write(rng, rng.choice(_STORY_ASKS), env))
    ask = ask[:-1] + "?" if ask.startswith(("Can you", "Could you")) and ask.endswith(".") else ask
    ask = typed(rng, ask, content=True)
    messages = [say("user", ask), say("assistant", tale.text)]
    if rng.random() < 0.12:
        messages.insert(0, say("system", rng.choice(SYSTEMS)))
    elif rng.random() < 0.15:
        turn = any_turn(rng)
        if not turn.held_out:
            messages[:0] = [say("user", turn.ask), say("assistant", turn.answer)]
    return Sample(
        "story",
        messages=messages,
        hint={"held_out": str(int(is_held_out(story_key(tale)))), "hero": tale.hero, "kind": tale.kind},
    )


__all__ = ["after", "long_chat", "story_request", "talk_chat", "told"]
