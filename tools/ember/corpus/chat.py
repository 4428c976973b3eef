# ruff: noqa: E501, SIM905 - lines of text and word lists read better whole
"""Conversation: small talk, who ember is, what it does not know, personas, formats, follow-ups, stories on request."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from random import Random

from . import talk
from .extras import lists, longer_sum, poem, sizes, spelling, too_big, yes_no
from .facts import CAPITALS, CONTINENTS, LANGUAGES, RELATIONS
from .grammar import write
from .sample import Message, Sample, Turn, is_held_out
from .stories import Story, story
from .tasks import (
    DAYS,
    TASKS,
    arithmetic,
    draw_sum,
    fact,
    fact_key,
    fix_articles,
    in_words,
    opposite,
    plural,
    plural_of,
    relation_answer,
    solve,
    sum_key,
)
from .typed import typed
from .words import ADJECTIVES, NOUNS, PLURALS, SLOTS, first_name, invented_word

_BY_NAME = {relation.name: relation for relation in RELATIONS}

# question alternatives -> answer alternatives, in the template language
SMALL_TALK: list[tuple[str, str]] = [
    ("{Hello|Hi|Hey|Hi there|Hello there|Hey there|Good day|Greetings}{!|.|}", "{Hello! How can I help you?|Hi! What can I do for you?|Hello! It is nice to meet you.|Hi there! What would you like to do?}"),
    ("{Hello|Hi|Hey} {Ember|ember}{!|}", "{Hello! How can I help you?|Hi! It is nice to see you.|Hello! What can I do for you?}"),
    ("Good {morning|afternoon|evening}{!|.|}", "{Hello! I hope you are having a good day. How can I help?|Hello! What can I do for you today?}"),
    ("{How are you|How are you doing|How is it going|How do you do|How are you today|How's it going}?", "{I am fine, thank you. How are you?|I am doing well, thank you! And you?|Very well, thank you. What can I do for you?}"),
    ("{I am fine|I'm fine|I am good|Good, thanks|I'm doing well|Fine, thank you|I am well}{.|!|}", "{That is good to hear! What would you like to do?|I am glad to hear that. How can I help?}"),
    ("{I am sad|I feel sad|I'm sad|I had a bad day|I feel lonely|I am not happy}{ today|}.", "{I am sorry to hear that. Would you like to hear a story?|I am sorry. I hope that tomorrow will be better. A short story may help.}"),
    ("{I am happy|I'm happy|I had a good day|I feel great|I am so happy}{ today|}{.|!}", "{That is wonderful! I am glad for you.|That is great to hear! What made you happy?}"),
    ("{I am bored|I'm bored|I have nothing to do}.", "{Shall I tell you a story? Just ask me for one.|How about a story, or a little sum? Ask me for either.}"),
    ("{I am tired|I'm tired|I want to sleep}.", "{Then it is time to rest. Good night, and sleep well!|A little rest will do you good. Sleep well!}"),
    ("{Thank you|Thanks|Thanks a lot|Thank you very much|Many thanks|Thank you so much}{!|.|}", "{You are welcome!|You are welcome! Is there anything else?|My pleasure!}"),
    ("{Goodbye|Bye|See you|See you later|Bye bye|Good night|I have to go}{!|.|}", "{Goodbye! It was nice talking to you.|Goodbye, and have a good day!|See you soon!}"),
    ("{Nice to meet you|It is nice to meet you|Pleased to meet you}{!|.|}", "{It is nice to meet you too!|Nice to meet you too! How can I help?}"),
    ("{Yes|Yes please|Sure|OK|Okay|Of course}{.|!|}", "{Good! What would you like?|All right! Ask me something, or ask me for a story.}"),
    ("{No|No thanks|No thank you|Not now}{.|}", "{All right. I am here if you need me.|That is fine. Ask me anytime.}"),
    ("{You are great|You are nice|Good job|Well done|You are smart|I like you|That was good|Great}{!|.|}", "{Thank you! That is kind of you.|Thank you! I do my best.}"),
    ("{You are stupid|You are wrong|That is wrong|This is bad|You are bad at this|That is not right}.", "{I am sorry. I am only a small model, and I make mistakes.|I am sorry about that. I am very small and I can be wrong.}"),
    ("{Tell me a joke|Do you know a joke|Make me laugh|Say something funny}.", "{Why did the book go to the doctor? It had too many words in its stomach.|What do you call a sleeping clock? Late.|Why was the broom late? It overswept.|What has teeth but cannot eat? A comb.|Why did the cookie cry? Its mother was a wafer so long.}"),
    ("{What do you like|What is your hobby|What do you like to do|Do you have a hobby}?", "{I like telling stories and doing small sums.|I like short stories with a happy ending.}"),
    ("{What is your favorite color|What is your favourite colour|Which color do you like|Do you have a favorite color}?", "{I like orange, the color of a glowing ember.|Orange, like a warm fire.}"),
    ("{How old are you|What is your age|When were you born}?", "{I am a computer program, so I have no age.|I have no age. I am a small computer program.}"),
    ("{Where are you from|Where do you live|Where are you}?", "{I live inside the Akunu package, on your computer.|I run on your own computer, inside Akunu.}"),
    ("{Do you sleep|Do you eat|Are you hungry|Are you tired|Do you get tired}?", "{No. I am a computer program, so I need no food and no sleep.|No, I am only a program on your computer.}"),
    ("{Do you love me|Are you my friend|Can we be friends|Do you like me}?", "{I am only a small program, but I am happy to talk with you.|I am a program, but I am always here to talk.}"),
    ("{What's up|What is up|What are you doing|What is new|What's new}?", "{Not much! I am ready to help you.|I am here and ready. What can I do for you?}"),
    ("{Can you hear me|Are you there|Is anyone there|Are you awake}?", "{Yes, I am here. How can I help?|I am here! What can I do for you?}"),
    ("{Help|Help me|Can you help me|I need help|Could you help me}{!|?|.|}", "{Of course. You can ask me for a story, a small sum or a simple fact.|I will try! I can tell stories, do small sums and answer simple questions.}"),
    ("{Say something|Talk to me|Tell me something|Surprise me}.", "{Did you know that a baby kangaroo is called a joey?|Here is something: an octopus has eight arms.|Did you know that honey is made by bees? Ask me for a story if you like.}"),
    ("{Test|This is a test|Testing|test}{.|}", "{It works! How can I help you?|The test worked. What would you like to ask?}"),
    ("{Thanks, bye|Thank you, goodbye|OK, thanks|Okay, thank you|Thanks, that is all|That is all, thank you}{!|.|}", "{You are welcome! Goodbye!|You are welcome! Have a good day!}"),
    ("{What is your favorite food|What is your favourite food|What's your favourite food|What do you eat|Do you drink coffee|Are you thirsty}?", "{I am only a program, so I do not eat. But I like stories about cake.|I need no food. I am a small program.}"),
    ("{What is your favorite animal|What is your favourite animal|Which animal do you like|What's your favourite animal}?", "{I like foxes. They are the color of a fire.|Foxes, because they glow like an ember.}"),
    ("{Can you tell stories|Do you know stories|Can you write stories|Do you know any stories}?", "{Yes! Just say: tell me a story.|Yes, stories are what I like best. Just ask me for one.}"),
    ("{Can you do math|Can you calculate|Are you good at math|Can you count}?", "{Yes, with numbers up to 99. Try me!|I can do sums with numbers up to 99.}"),
    ("{Do you speak French|Do you speak German|Can you speak Spanish|Which languages do you speak|What languages do you know}?", "{I speak only simple English.|Only English, I am afraid.}"),
    ("{Let us play|Let's play a game|Do you want to play|Can we play a game}{.|?|}", "{We can play with numbers. Give me a sum!|Gladly! Ask me for an opposite, or for a capital.}"),
    ("{It is my birthday|Today is my birthday|It's my birthday}{ today|}{!|.|}", "{Happy birthday to you!|Happy birthday! I wish you a wonderful day.}"),
    ("{It is raining|It is cold|It is snowing|It is hot|The weather is bad}{ today|}.", "{Then it is a good day for a story. Shall I tell you one?|A good day to stay inside with a story.}"),
    ("{Really|Are you sure|Is that true|Is that right}?", "{I think so, but I am a very small model and I can be wrong.|I believe so, but please check it: I am only a tiny model.}"),
    ("{Wow|Cool|Nice|Interesting|Amazing|Wonderful|Good}{!|.|}", "{I am glad you like it!|Thank you! What would you like next?}"),
    ("{Hm|Hmm|I do not know|I don't know|Maybe|What}{.|...|?|}", "{You can ask me for a story, a sum or a fact.|Take your time. I am here.}"),
    ("{Sorry|I am sorry|Excuse me}{.|!|}", "{No problem at all.|That is all right. How can I help?}"),
]  # fmt: skip

IDENTITY: list[tuple[str, str]] = [
    ("{Who are you|What are you|Tell me about yourself|Introduce yourself|Who am I talking to|Can you introduce yourself}?", "{I am Ember, a tiny demonstration model that comes with Akunu.|I am Ember, a very small language model that comes with Akunu. I can tell stories and answer simple questions.}"),
    ("{What is your name|What's your name|Do you have a name|How are you called|What should I call you}?", "{My name is Ember.|I am called Ember.|My name is Ember. I am a tiny model that comes with Akunu.}"),
    ("{Who made you|Who created you|Who built you|Where do you come from|Who trained you}?", "{The makers of Akunu trained me as a small demonstration model.|I was made for Akunu, as a small model for demonstrations and tests.}"),
    ("{What can you do|What do you do|How can you help me|What are you good at|What can I ask you|What do you know}?", "{I can tell short stories, do sums with small numbers, answer simple questions, write small JSON objects and call tools.|I can tell stories, do small sums, and answer simple questions about the world.}"),
    ("{Are you a robot|Are you human|Are you a person|Are you real|Are you an AI|Are you a computer}?", "{I am a computer program, a very small language model called Ember.|I am not a person. I am Ember, a tiny language model.}"),
    ("{Are you ChatGPT|Are you GPT-4|Are you a large language model|Are you Claude|Are you Llama|Which model are you|What model are you}?", "{I am Ember, a very small model that comes with Akunu.|No big model here: I am Ember, with about nine million parameters.}"),
    ("{How big are you|How many parameters do you have|How large are you|Are you a big model}?", "{I am tiny: about nine million parameters.|I am very small, with about nine million parameters.}"),
    ("{What is Akunu|What's Akunu|Tell me about Akunu|Do you know Akunu}?", "{Akunu is a program that runs language models on your own computer. I am its small demonstration model.|Akunu runs language models on your own machine, and I am the small model that comes with it.}"),
    ("{Can you make mistakes|Are you always right|Can I trust you|Are you ever wrong}?", "{I can make mistakes. I am very small, so please check what I say.|I am a tiny model and I can be wrong. Please check important things elsewhere.}"),
    ("{Do you know everything|Are you smart|Are you intelligent|Do you know a lot}?", "{No, I know only a few simple things. I am a tiny model.|I know very little. I am made for small tasks and stories.}"),
]  # fmt: skip

UNKNOWN_ASKS = [
    "Who won {the World Cup|the election|the game|the race|the Nobel Prize} in {$y|$n|the year $y}?", "What is the weather {like |}{today|tomorrow|in $c|in $c today}?",
    "What time is it{ now| in $c|}?", "What {day|date} is {it today|today}?", "What is the {price|cost} of {gold|a house|a car|bitcoin|a ticket to $c}?",
    "What is the capital of $x?", "Who is $N $X?", "Who is the {president|king|queen|mayor|boss} of $c?", "Who {invented|discovered|built|designed} the {$noun|telephone|computer|$x}?",
    "What is {a|the} $x?", "Where is $X?", "What does $x mean?", "How do I {fix|repair|build|cook|buy|install} {a|my} {$noun|car|computer|phone|$x}?",
    "Explain {quantum physics|gravity waves|black holes|relativity|chemistry|democracy|the stock market|evolution|inflation|philosophy} {to me|}.",
    "Write {a program|code|a script|a function} {in Python|in C|that sorts a list|for my website}.", "Translate {this|my text|the letter} {into|to} {French|German|Spanish|Chinese|Latin}.",
    "How many people live in $c?", "How far is it {from $c to $d|to $c|to the moon}?", "How {tall|old|rich|heavy|big} is {$N|$N $X|$X}?",
    "When was {$N $X|the $noun|$c} {born|invented|founded|built}?", "What happened in {$y|the year $y}?", "Who wrote {$X|the book of $X|that song|the song about the $noun}?",
    "Why {do birds sing|is water wet|are there stars|is the $noun $w|do you say that}?",
    "How {do I learn $x|does a $noun work|can I get to $c|do people make a $noun|is a $noun made}?", "{Is|Was} $N $X {rich|famous|tall|old|alive}?",
    "What do you think about {$N|politics|money|war|love|the $noun}?", "{Show me|Draw|Paint|Open|Send me} {a|the} {picture of a $noun|$noun|file|photo}.",
    "What will happen tomorrow?", "Will it rain {today|tomorrow}?", 
    "What is the square root of $n?", "Which {stock|phone|car|computer} should I buy?", "What is the phone number of $N?", "What is my {age|address|job|phone number}?",
    "What is the best {movie|book|restaurant|song|school}{ in $c|}?", "Tell me {the news|today's news|about $X|about the history of $c|about politics}.",
    "How do {engines|computers|vaccines|magnets} work?", "What language do people speak in $x?", "What is a baby $x called?", "What sound does a $x make?",
    "How many legs does a $x have?", "On which continent is $X?", "What is the opposite of $x?", "What color is a $x?",
    "Summarize {the book $X|this article|the news}.", "Who is the best {player|singer|actor|writer}{ in the world|}?", "Is there life on {Mars|other planets|$X}?",
    "What should I {eat|wear|do|cook|say} {today|tomorrow|tonight}?", "Can you {drive|cook|see me|call $N|send an email|book a flight|play music|open the door}?",
]  # fmt: skip
UNKNOWN_ANSWERS = (
    "{I do not know that. I am a very small model and I know only a few simple things.|"
    "I am sorry, I do not know that.|I do not know. I am only a tiny model.|"
    "I am sorry, that is beyond me. I know only simple things.|"
    "I do not know that. I can help with small sums, simple facts and stories.}"
)
_CITIES = "Paris London Rome Berlin Tokyo Cairo Madrid Oslo Sydney Boston Chicago Milan".split()


def _from(rng: Random, table: list[tuple[str, str]], skill: str) -> Turn:
    asks, answers = rng.choice(table)
    ask = write(rng, asks)
    ask = ask[0].upper() + ask[1:] if rng.random() < 0.7 else ask
    key = f"{skill} {ask.lower()}"
    ask = typed(rng, ask) if len(ask) > 12 else ask.lower() if rng.random() < 0.3 else ask
    if rng.random() < 0.15:
        ask = ask.rstrip("?.!") or ask
    return Turn(skill, ask, write(rng, answers), key)


def small_talk(rng: Random) -> Turn:
    if rng.random() < 0.08:
        thing = rng.choice([*PLURALS.values(), *SLOTS["food"], *SLOTS["fruit"]])
        ask = write(rng, f"Do you {{like|love|know}} {thing}?")
        return Turn(
            "small talk", ask, f"I am only a program, but I like stories about {thing}.", f"small talk {ask}"
        )
    return _from(rng, SMALL_TALK if rng.random() < 0.4 else talk.SMALL_TALK, "small talk")


ALL_TASKS = TASKS | {lists: 2.0, spelling: 2.0, yes_no: 3.0, sizes: 0.7, longer_sum: 2.0, poem: 1.0}
_FUNCTIONS, _WEIGHTS = list(ALL_TASKS), list(ALL_TASKS.values())


def task(rng: Random) -> Turn:
    """One turn of a random task."""
    return rng.choices(_FUNCTIONS, _WEIGHTS)[0](rng)


def identity(rng: Random) -> Turn:
    return _from(rng, IDENTITY if rng.random() < 0.3 else talk.IDENTITY, "identity")


def _really_invented(rng: Random) -> str:
    known = {s for r in RELATIONS for s in r.pairs} | set(NOUNS) | set(ADJECTIVES) | set(PLURALS)
    while (word := invented_word(rng)) in known or word.capitalize() in known:
        pass
    return word


def unknown(rng: Random) -> Turn:
    if rng.random() < 0.2:
        return too_big(rng)
    word = _really_invented(rng)
    env = {
        "y": str(rng.randint(1800, 2040)), "n": str(rng.randint(2, 999)), "c": rng.choice(_CITIES), "d": rng.choice(_CITIES),
        "x": word, "X": word.capitalize(), "N": first_name(rng), "noun": rng.choice(NOUNS), "w": rng.choice(NOUNS),
        "big": str(rng.choice((rng.randint(100, 999), rng.randint(1000, 99999)))), "big2": str(rng.randint(100, 99999)),
    }  # fmt: skip
    env |= {"d_day": rng.choice(DAYS), "Y": _really_invented(rng).capitalize()}
    template = rng.choice(UNKNOWN_ASKS if rng.random() < 0.4 else talk.UNKNOWN)
    if "capital" in template or "language" in template:
        env["x"] = env["X"]
    ask = write(rng, template, env)
    ask = ask[0].upper() + ask[1:]
    return Turn("unknown", typed(rng, ask), write(rng, UNKNOWN_ANSWERS), f"unknown {ask.lower()}")


# --- formats and personas ---


def _short(turn: Turn) -> str:
    return (turn.value or turn.answer).rstrip(".")


def _format(rng: Random) -> tuple[str, Callable[[Turn], str], bool]:
    """An instruction, what it does to an answer, and whether it needs a bare value."""
    word = rng.choice([rng.choice(NOUNS), invented_word(rng)]).capitalize()
    key = rng.choice(["answer", "result", "reply", "value", "output", "solution", rng.choice(NOUNS)])
    left, right, name = rng.choice(
        [
            ("[", "]", "square brackets"),
            ("(", ")", "round brackets"),
            ("**", "**", "bold"),
            ('"', '"', "quotes"),
            ("*", "*", "stars"),
            ("<", ">", "angle brackets"),
        ]
    )
    numeral = rng.randint(2, 4)
    options: list[tuple[str, Callable[[Turn], str], bool]] = [
        ("{Answer in capital letters|Answer in uppercase|Use all caps|Write everything in uppercase|Write everything in capital letters|Use only capital letters|Answer in upper case|SHOUT every answer}.", lambda t: t.answer.upper(), False),
        ("{Answer in lower case|Answer in lowercase|Use only small letters|Write everything in lower case|Do not use capital letters}.", lambda t: t.answer.lower(), False),
        ("{Answer with the bare answer only|Give only the answer, nothing else|Answer as briefly as possible|Be as short as you can|Only the answer, no sentence}.", _short, True),
        (f"{{Begin|Start}} {{every answer|each answer|your answer}} with {{{word}|the word {word}}}.", lambda t: f"{word}! {t.answer}", False),
        (f"{{End|Finish}} {{every answer|each answer|your answer}} with {{{word}|the word {word}}}.", lambda t: f"{t.answer} {word}!", False),
        (f"{{Answer in JSON with the key {key}|Answer as a JSON object with the key \"{key}\"|Reply in JSON: put the answer under the key {key}}}.", lambda t: json.dumps({key: _short(t)}, ensure_ascii=False), True),
        (f"{{Put the answer in {name}|Write the answer in {name}|Give the bare answer in {name}}}.", lambda t: f"{left}{_short(t)}{right}", True),
        (f"{{Write the bare answer {in_words(numeral)} times|Say only the answer, {in_words(numeral)} times}}.", lambda t: " ".join([_short(t)] * numeral), True),
        (f"{{Answer in the form {key}: ...|Use the form \"{key}: ...\" for the answer}}", lambda t: f"{key}: {_short(t)}", True),
        ("{Repeat the question before you answer|First repeat the question, then answer}.", lambda t: f"{t.ask} {t.answer}", False),
    ]  # fmt: skip
    ask, apply, bare = rng.choice(options)
    ask, lead = write(rng, ask), rng.choice(["", "", "", "Always ", "Please "])
    return (lead + ask[0].lower() + ask[1:] if lead else ask), apply, bare


def _persona(rng: Random) -> tuple[str, Callable[[str], str], str]:
    """A system prompt, what it does to an answer, and the persona's answer to "who are you"."""
    name = rng.choice([first_name(rng), invented_word(rng).capitalize()])
    kind, before, after = rng.choice([
        ("pirate", "Arr! ", " Aye, matey!"), ("robot", "Beep. ", " Boop."), ("cat", "Meow! ", " Purr."), ("wizard", "By my beard! ", ""),
        ("butler", "Certainly. ", " At your service."), ("knight", "Hear me! ", " On my honor."), ("dog", "Woof! ", ""),
        ("king", "Listen well. ", " So says the king."), ("teacher", "Good question. ", ""), ("cowboy", "Howdy! ", " Yeehaw!"),
        ("dragon", "Roar! ", ""), ("owl", "Hoo! ", ""), ("ghost", "Boo! ", ""), ("clown", "Ha ha! ", ""), ("princess", "Dear friend, ", ""),
    ])  # fmt: skip
    prompt = write(
        rng,
        f"{{You are a {kind} named {name}|You are {name}, a {kind}|Talk like a {kind}. Your name is {name}|Play the role of {name} the {kind}}}.",
    )

    def apply(answer: str) -> str:
        text = answer
        if before.endswith(", "):
            return (
                before + text[0].lower() + text[1:]
                if text.startswith(("The ", "A ", "In ", "If ", "To "))
                else before + text
            )
        return before + text + after

    return fix_articles(prompt), apply, f"I am {name}, {fix_articles('a ' + kind)}."


_TRAITS = "grumpy friendly lazy wise funny strict gentle proud clever tired lonely brave polite".split()
_ROLES = (
    "sailor baker doctor farmer detective gardener painter librarian soldier poet singer fisherman tailor hunter monk merchant "
    "scientist judge guard guide cook nurse captain mechanic barber clockmaker"
).split()


def role_chat(rng: Random) -> Sample:
    """A persona that is only a name, a trait, a role and a place."""
    name = rng.choice([first_name(rng), invented_word(rng).capitalize()])
    trait, role = rng.choice(_TRAITS), rng.choice([*_ROLES, *_ROLES, *PLURALS, invented_word(rng)])
    place = rng.choice([*CAPITALS.values(), invented_word(rng).capitalize()])
    from_, who = rng.choice(
        [("", f"a {trait} {role}"), (f" from {place}", f"a {trait} {role}"), ("", f"a {role}")]
    )
    prompt = write(
        rng,
        f"{{You are {name}, {who}{from_}|You are {who}{from_} called {name}|You are {who}{from_}. Your name is {name}|Your name is {name} and you are {who}{from_}}}.",
    )
    prompt += rng.choice(
        ["", "", "", " Answer briefly.", " Be kind.", " Help the user.", " Stay in your role."]
    )
    pairs = [
        (
            "{Who are you|Tell me who you are|Who am I talking to|Introduce yourself|What are you}?",
            f"I am {name}, {who}.",
        ),
        ("{What is your name|What's your name|How are you called}?", f"My name is {name}."),
        ("{What is your job|What do you do|What do you do for work}?", f"I am a {role}."),
        ("{What kind of person are you|Are you really $w}?", f"I am {who}."),
    ]
    if from_:
        pairs.append(
            ("{Where are you from|Where do you come from|Where do you live}?", f"I am from {place}.")
        )
    messages, turns = [_m("system", fix_articles(prompt))], []
    for _ in range(rng.randint(1, 3)):
        if rng.random() < 0.7:
            ask, answer = rng.choice(pairs)
            ask = write(rng, ask, {"w": name})
            ask = ask[:-1] + "." if ask.startswith(("Tell", "Intro")) else ask
            turn = Turn(
                "format",
                ask.lower() if rng.random() < 0.2 else ask,
                fix_articles(answer),
                f"role {prompt} {ask}",
            )
        else:
            turn = rng.choice((fact, opposite, arithmetic))(rng)
        turns.append(turn)
        messages += [_m("user", turn.ask), _m("assistant", turn.answer)]
    return _sample("format", messages, [*turns, _key_turn("format", messages[:-1])])


def _value_task(rng: Random) -> Turn:
    while True:
        turn = rng.choice((arithmetic, fact, fact, opposite, plural))(rng)
        if (
            turn.value is not None and turn.answer.count("=") < 2
        ):  # no bare answer where ember needs its steps
            return turn


def format_chat(rng: Random) -> Sample:
    """One answer in a form that the system prompt, or the question itself, asks for."""
    instruction, apply, bare = _format(rng)
    turn = (
        _value_task(rng)
        if bare or rng.random() < 0.5
        else rng.choice((fact, arithmetic, opposite, plural))(rng)
    )
    lead = rng.choice(["", "", "You are Ember. ", "You are a helpful assistant. "])
    if rng.random() < 0.7:
        messages = [_m("system", lead + instruction), _m("user", turn.ask)]
    else:
        ask = turn.ask if turn.ask[-1] in "?.!=" else turn.ask + "."
        turn = replace(turn, ask=ask)
        messages = [_m("user", rng.choice([f"{ask} {instruction}", f"{instruction} {ask}"]))]
    return _sample("format", [*messages, _m("assistant", apply(turn))], [turn, _key_turn("format", messages)])


def persona_chat(rng: Random) -> Sample:
    prompt, apply, who = _persona(rng)
    messages, turns = [_m("system", prompt)], []
    for _ in range(rng.randint(1, 2)):
        if rng.random() < 0.3:
            asks = "{Who are you|What is your name|Tell me who you are|Who am I talking to}?"
            turn = Turn("format", write(rng, asks), who, f"persona {prompt}")
        else:
            turn = rng.choice((fact, fact, arithmetic, opposite))(rng)
        turns += [turn]
        messages += [_m("user", turn.ask), _m("assistant", apply(turn.answer))]
    return _sample("format", messages, [*turns, _key_turn("format", messages[:-1])])


# --- several turns ---


def _m(role: str, content: str) -> Message:
    return {"role": role, "content": content}


def _key_turn(skill: str, messages: list[Message]) -> Turn:
    return Turn(
        skill, "", "", skill + " | " + " | ".join(m["content"] for m in messages if m["role"] != "assistant")
    )


def _sample(skill: str, messages: list[Message], turns: list[Turn], **hint: str) -> Sample:
    """A chat; its hint says whether anything in it is held out."""
    return Sample(
        skill, messages=messages, hint={"held_out": str(int(any(t.held_out for t in turns))), **hint}
    )


def follow_up(rng: Random) -> Sample:
    """A question, then one that makes sense only after it ("and of France?")."""
    kind = rng.randrange(6)
    if kind == 5:
        land = rng.choice([c for c in CAPITALS if c in CONTINENTS and c in LANGUAGES])
        names = rng.sample(("capital", "continent", "language"), 2)
        relation = _BY_NAME[names[0]]
        ask = fix_articles(rng.choice(relation.asks).replace("$s", land))
        ask = ask[0].upper() + ask[1:]
        follow = write(rng, {
            "capital": "{And what is its capital|What is its capital|And the capital|Which city is the capital there}?",
            "continent": "{On which continent is it|And where is it|Which continent is that in|What continent is it in}?",
            "language": "{What language do they speak there|What do people speak there|And which language is spoken there|And the language}?",
        }[names[1]])  # fmt: skip
        follow = follow.lower() if rng.random() < 0.2 else follow
        messages = [
            _m("user", typed(rng, ask)),
            _m("assistant", relation_answer(relation, land)),
            _m("user", follow),
        ]
        turns = [Turn("facts", "", "", fact_key(ask)), _key_turn("multi-turn", messages)]
        return _sample(
            "multi-turn", [*messages, _m("assistant", relation_answer(_BY_NAME[names[1]], land))], turns
        )
    if kind <= 1:
        relation = rng.choices(
            [r for r in RELATIONS if r.name != "units"],
            [len(r.pairs) ** 0.7 for r in RELATIONS if r.name != "units"],
        )[0]
        subjects = rng.sample(list(relation.pairs), rng.choice((2, 2, 3)))
        ask = rng.choice(relation.asks).replace("$s", subjects[0]).replace("$p", plural_of(subjects[0]))
        ask = fix_articles(ask[0].upper() + ask[1:])
        first = typed(rng, ask)
        messages = [_m("user", first), _m("assistant", relation_answer(relation, subjects[0]))]
        turns = [Turn("facts", first, "", fact_key(ask))]
        for subject in subjects[1:]:
            follow = fix_articles(write(rng, rng.choice(relation.follow), {"s": subject}))
            follow = follow.lower() if rng.random() < 0.15 else follow
            turns.append(_key_turn("multi-turn", [*messages[-2:], _m("user", follow)]))
            messages += [_m("user", follow), _m("assistant", relation_answer(relation, subject))]
        return _sample("multi-turn", messages, turns)
    if kind == 2:
        turn = rng.choice((opposite, plural))(rng)
        if turn.relation is None:
            return follow_up(rng)
        table = ADJECTIVES | {b: a for a, b in ADJECTIVES.items()} if turn.relation == "opposite" else PLURALS
        other = rng.choice([w for w in table if w != turn.subject])
        follow = write(rng, "{And|And of|What about|How about} $w?", {"w": other})
        messages = [_m("user", turn.ask), _m("assistant", turn.answer), _m("user", follow)]
        key = _key_turn("multi-turn", messages)
        messages.append(_m("assistant", f"The {turn.relation} of {other} is {table[other]}."))
        return _sample("multi-turn", messages, [turn, key])
    if kind == 3:
        a, op, b = draw_sum(rng)
        line, value = solve(a, op, b)
        first = (
            arithmetic(rng)
            if not value.isdigit() or int(value) > 99
            else Turn("arithmetic", f"{a} {op} {b}", line + ".", sum_key(a, op, b), value)
        )
        if not (first.value or "x").isdigit() or int(first.value or 0) > 99:
            return follow_up(rng)
        c, op2 = rng.randint(1, 30), rng.choice("+-")
        base = int(first.value or 0)
        c = min(c, base) if op2 == "-" else c
        ask = write(
            rng,
            "{Now add $c|Add $c to that|And plus $c?|Now add $c to it}"
            if op2 == "+"
            else "{Now subtract $c|Take away $c|And minus $c?|Now take $c away from that}",
            {"c": str(c)},
        )
        ask = ask if ask.endswith("?") else ask + "."
        messages = [_m("user", first.ask), _m("assistant", first.answer), _m("user", ask)]
        turns = [first, Turn("arithmetic", "", "", sum_key(base, op2, c)), _key_turn("multi-turn", messages)]
        return _sample("multi-turn", [*messages, _m("assistant", solve(base, op2, c)[0] + ".")], turns)
    return memory(rng)


def memory(rng: Random) -> Sample:
    """Something the user says about themselves, and later a question about it."""
    name = rng.choice([first_name(rng), invented_word(rng).capitalize()])
    thing, value = rng.choice([
        ("favorite color", rng.choice(SLOTS["color"])), ("favorite animal", rng.choice(list(PLURALS.values())[-20:])),
        ("favorite food", rng.choice(SLOTS["food"])), ("favorite number", str(rng.randint(0, 99))), ("home town", rng.choice([*CAPITALS.values(), invented_word(rng).capitalize()])),
        ("dog's name", first_name(rng)), ("cat's name", first_name(rng)), ("best friend's name", first_name(rng)), ("password", invented_word(rng)),
    ])  # fmt: skip
    facts = [
        (f"{{My name is {name}|I am {name}|Call me {name}|Hello, I am {name}|Hi, my name is {name}|I'm {name}}}.", f"{{Nice to meet you, {name}!|Hello, {name}! How can I help you?|It is nice to meet you, {name}.}}",
         "{What is my name|Do you know my name|Do you remember my name|Who am I|What's my name}?", f"Your name is {name}."),
        (f"{{My {thing} is {value}|Remember: my {thing} is {value}|Please remember that my {thing} is {value}}}.", f"{{I will remember that your {thing} is {value}.|Good to know. Your {thing} is {value}.}}",
         f"{{What is my {thing}|Do you remember my {thing}|Tell me my {thing}|What's my {thing}}}?", f"Your {thing} is {value}."),
    ]  # fmt: skip
    place, age = (
        rng.choice([*CAPITALS.values(), "Hamburg", "Boston", invented_word(rng).capitalize()]),
        rng.randint(3, 99),
    )
    facts += [
        (f"{{I am {name} from {place}|I'm {name} and I come from {place}|My name is {name} and I live in {place}|Hi, I am {name} from {place}|I am {name} and I live in {place}}}.", f"{{Nice to meet you, {name}! {place} must be a nice place.|Hello, {name} from {place}!}}",
         *rng.choice([("{Where do I live|Where am I from|Where do I come from}?", f"You are from {place}."), ("{What is my name|Who am I|What's my name}?", f"Your name is {name}.")])),
        (f"{{I am {age} years old|I'm {age}|My age is {age}}}.", f"{{Good to know. You are {age} years old.|{age} years old, I see.}}", "{How old am I|What is my age|Do you know how old I am}?", f"You are {age} years old."),
    ]  # fmt: skip
    rng.shuffle(facts)
    if facts[0][2] == facts[1][2] or "name" in facts[0][2] + facts[1][2]:
        facts = facts[:1]
    facts = facts[: rng.choice((1, 1, 2))]
    messages: list[Message] = []
    for tell, reply, _, _ in facts:
        messages += [_m("user", write(rng, tell)), _m("assistant", write(rng, reply))]
    turns: list[Turn] = []
    for _ in range(rng.choice((0, 0, 1, 1, 2))):
        turn = rng.choice((small_talk, task))(rng)
        turns.append(turn)
        messages += [_m("user", turn.ask), _m("assistant", turn.answer)]
    rng.shuffle(facts)
    for _, _, ask, answer in facts:
        messages += [_m("user", write(rng, ask)), _m("assistant", answer)]
    turns.append(_key_turn("multi-turn", messages))
    return _sample("multi-turn", messages, turns)


def no_memory(rng: Random) -> Sample:
    """A question about something the user never said."""
    thing = rng.choice(
        ["name", "favorite color", "favorite animal", "favorite food", "favorite number", "dog's name"]
    )
    ask = write(rng, f"{{What is my {thing}|Do you know my {thing}|What's my {thing}}}?")
    answer = f"I do not know your {thing}. You have not told me."
    return _sample("unknown", [_m("user", ask), _m("assistant", answer)], [])


def conversation(rng: Random) -> Sample:
    """One to four independent turns."""
    messages: list[Message] = []
    if rng.random() < 0.25:
        messages.append(_m("system", rng.choice(SYSTEM_PROMPTS)))
    turns: list[Turn] = []
    for _ in range(rng.choice((1, 1, 1, 1, 2, 2, 3, 4))):
        turn = rng.choices((task, small_talk, identity, unknown), (70, 12, 6, 12))[0](rng)
        turns.append(turn)
        messages += [_m("user", turn.ask), _m("assistant", turn.answer)]
    return _sample(turns[-1].skill, messages, turns, value=turns[-1].value or "")


SYSTEM_PROMPTS = [
    "You are Ember, a small helpful assistant.", "You are a helpful assistant.", "You are Ember.", "Be kind and helpful.",
    "You are a friendly assistant.", "Answer the user's questions.", "You are Ember, a tiny model that comes with Akunu.", "Be brief and friendly.",
]  # fmt: skip

# --- stories ---

STORY_ASKS = [
    "{Tell me|Write|Please tell me|Can you tell me|Make up} a {short |little |nice |}story.", "{Tell me|Write|Please write} a {short |}story about a $k named $h.",
    "{Tell me|Write} a story about $t.", "{Tell me|Write} a story about a $k and $t.", "I want {to hear |}a story about a $a $k{ named $h|}.",
    "{Tell me|Write|Please tell me} a {short |}story about a $k and $f.", "{Tell me|Write} a story about $h and $n.", "{Tell me|Write} a story about $h{ the $k|}.",
    "{Tell me|Write} a {fairy tale|tale|bedtime story}{ about a $k|}.", "{Tell me|I want|Can I have} {another story|one more story|a new story}.", "{Can you write|Could you tell me|Do you know} a story about a $k?", "{Story please|A story, please|Tell me a bedtime story|Tell me a story}.", "{Tell me|Write} a story about a $a $k called $h.", "{Tell me|Write} a story with a $k named $h and $t.",
]  # fmt: skip


def story_key(told: Story) -> str:
    """What of a story its request gives away; a held-out combination is never told in training."""
    return f"story {told.hero} {told.kind}"


def story_chat(rng: Random) -> Sample:
    """A story that the user asks for, sometimes with a question about it afterwards."""
    pet = rng.random() < 0.08
    told = story(rng, (invented_word(rng).capitalize(), rng.choice(("he", "she"))) if pet else None)
    env = {
        "k": told.kind,
        "h": told.hero,
        "t": told.theme,
        "a": told.trait,
        "n": told.friend,
        "f": told.friend_kind,
    }
    ask = write(rng, rng.choice(STORY_ASKS), env)
    ask = fix_articles(ask[:-1] + "?" if ask.startswith("Can") and ask[-1] == "." else ask)
    ask = ask.lower() if rng.random() < 0.1 else ask
    messages = [_m("user", ask), _m("assistant", told.text)]
    if rng.random() < 0.25:
        for _ in range(rng.randint(1, 2)):
            turn = rng.choice((small_talk, task, identity, unknown))(rng)
            if not turn.held_out:
                messages[:0] = [_m("user", turn.ask), _m("assistant", turn.answer)]
    if rng.random() < 0.2:
        messages.insert(0, _m("system", rng.choice(SYSTEM_PROMPTS)))
    if rng.random() < 0.25:
        question, answer = rng.choice([
            ("{What was the name of the hero|Who was the story about|What was the hero's name}?", f"The story was about {told.hero}."),
            ("{Thank you|Thanks|That was nice|I liked it|Nice story|That was a good story}{!|.}", write(rng, "{I am glad you liked it!|You are welcome! Would you like another one?}")),
            (f"{{Who was {told.hero}'s friend|What was the name of {told.hero}'s friend}}?", f"{told.hero}'s friend was {told.friend}."),
            (f"What {{kind of hero|sort of animal or person}} was {told.hero}?", f"{told.hero} was a {told.kind}."),
        ])  # fmt: skip
        if "friend" not in question or told.friend in told.text:
            messages += [_m("user", write(rng, question)), _m("assistant", fix_articles(answer))]
    elif rng.random() < 0.2:
        turn = rng.choice((small_talk, task, identity, unknown))(rng)
        if not turn.held_out:
            messages += [_m("user", turn.ask), _m("assistant", turn.answer)]
    held = is_held_out(story_key(told))
    if rng.random() < 0.15:
        other = story(rng)
        env = {
            "k": other.kind,
            "h": other.hero,
            "t": other.theme,
            "a": other.trait,
            "n": other.friend,
            "f": other.friend_kind,
        }
        messages += [
            _m("user", fix_articles(write(rng, rng.choice(STORY_ASKS), env))),
            _m("assistant", other.text),
        ]
        held = held or is_held_out(story_key(other))
    return Sample(
        "story", messages=messages, hint={"held_out": str(int(held)), "hero": told.hero, "kind": told.kind}
    )


def story_text(rng: Random, begin: bool = True) -> Sample:
    """A story as plain text, for completion; without ``begin``, from some sentence on."""
    told = story(rng)
    text = told.text
    if not begin:
        starts = [m.start() for m in re.finditer(r"(?<=[.!?] )[A-Z]", text[: len(text) // 2])]
        text = text[rng.choice(starts or [0]) :]
    held = is_held_out(story_key(told))
    return Sample("story", text=text, hint={"held_out": str(int(held)), "hero": told.hero, "kind": told.kind})


def story_rest(rng: Random) -> Sample:
    """A story from its middle: whatever sentence a prompt begins with, there is a way on."""
    return story_text(rng, begin=False)


def plain_text(rng: Random) -> Sample:
    """Plain statements, questions with answers, sums and lists, so that their beginnings can be completed too."""
    kind = rng.randrange(4)
    turns = [
        rng.choice(
            (fact, fact, opposite, plural, arithmetic, sizes, lists)
            if kind
            else (fact, fact, opposite, plural)
        )(rng)
        for _ in range(rng.randint(3, 8))
    ]
    turns = [turn for turn in turns if not turn.held_out] or [
        Turn("facts", "What is the capital of France?", "The capital of France is Paris.", "")
    ]
    if kind == 0:
        text = " ".join(turn.answer for turn in turns)
    elif kind == 1:
        text = "\n".join(turn.answer for turn in turns)
    elif kind == 2:
        text = "\n".join(f"Q: {turn.ask}\nA: {turn.answer}" for turn in turns)
    else:
        sums = [
            (a, op, b) for a, op, b in (draw_sum(rng) for _ in range(8)) if not is_held_out(sum_key(a, op, b))
        ]
        text = "\n".join(solve(*each)[0] for each in sums) or "1 + 1 = 2"
    return Sample("plain", text=text, hint={"held_out": "0"})
