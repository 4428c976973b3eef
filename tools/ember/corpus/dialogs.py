# ruff: noqa: E501 - lines of text read better whole
"""Conversations: what the user told and asks for again, the last answer in another form, short questions about the same thing."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random

from .dialogs_more import going_on
from .facts import RELATIONS
from .grammar import write
from .knowledge import TOPICS
from .multi import any_turn
from .sample import Message, Sample, Turn, chat_sample, key_turn, say
from .scene_words import Scene
from .scenes import read
from .settings import setting
from .tasks import fact_key, fix_articles, relation_answer
from .typed import typed
from .words import ADJECTIVES, PLURALS

_TOLD = """
My {train|bus|flight|ferry} {leaves|goes} at $time{ tomorrow| on $day|}. >> When does my {train|bus|flight} leave / At what time do I have to leave / What time do I leave / When do I have to be there [the time] => At $time.
I {parked|left} the car {in|on} $street. >> Where did I park / Where is my car / On which street is the car [the car] => On $street. 
The {key|spare key} is $spot. >> Where is the key / Where do I find the key / Where did I put the key [the key] => It is $spot.
My {dentist|doctor|lawyer|hairdresser} is called {Dr. |}$sur{ and has an office on $street|}. >> What is the name of that person / Who was that / What was the name [the name] => $sur.
I have an appointment {with the $trade |}on $day at $time. >> When is my appointment / On which day is the appointment / What day was it / Which day do I have to go [the appointment] => On $day at $time.
I need {to buy |}$goods, $goods2 and $goods3. >> What do I need / What do I have to buy / What was on my list / Which things did I want [my list] => You need $goods, $goods2 and $goods3.
My {shoe size|locker number|seat number|room number|house number|badge number} is $num. >> What is my number / Which number was it / What was the number [the number] => It is $num.
The {wifi password|password|door code|code word|secret word} is "$petname$num". >> What is the {password|code} / What was the {password|code} / Which word was it [the password] => It is $petname$num.
My {son|brother|grandson} is called $boy and my {daughter|sister|granddaughter} $girl. >> What is the girl called / What is the name of the girl / Who is the girl => $girl. ## What is the boy called / What is the boy's name / Who is the boy => $boy. ## What are the two called / What are both names => $boy and $girl.
I {work|am working} as a $job in $city. >> What is my job / What do I do for work / What do I work as [my job] => You work as a $job. ## Where do I work / In which city do I work / Which city do I work in => In $city.
{Yesterday|Last night|Today} I {ate|had|cooked} $dish. >> What did I eat / What did I have / Which dish was it [the food] => You had $dish.
I am allergic to $goods{, you know|, so be careful|}. >> What am I allergic to / What can't I eat / What must I not eat [my allergy] => You are allergic to $goods.
My {dog|cat|parrot|hamster} $petname is $few years old{ and loves $goods|}. >> How old is $petname / What is the age of my pet / How old is my pet [the age] => $petname is $few years old. ## What is my pet called / What is the name of my pet / Who did I tell you about => $petname.
We are {moving|going|travelling|flying} to $city in $month. >> Where are we going / To which city / Where do we go [the city] => To $city. ## When are we going / In which month / When is it => In $month.
My favorite {book|film} is "$book". >> What is my favorite / Which one do I like best / What do I like best [my favorite] => It is "$book".
$name {is visiting|visits|comes to see} me on $day. >> Who is coming / Who visits me / Who comes on $day [my visitor] => $name. ## When does $name come / On which day is the visit / When do I have a visitor => On $day.
I {lent|gave} my $thing to $name. >> Who has my $thing / To whom did I give it / Where is my $thing [the $thing] => $name has it. ## What did I {lend|give} away / What does $name have / Which thing was it => Your $thing.
I {play|practice} the $instrument and {do|like} $sport. >> Which instrument do I play / What instrument was it / What do I play => You play the $instrument. ## Which sport do I like / What sport was it / What do I do for sport => $^sport.
I am {looking for|reading about|studying|learning} $language because I {move|travel} to $country. >> Which language was it / What language do I want / Which language am I busy with [the language] => $language. ## Where do I want to go / Which country was it / Why do I need it => You go to $country.
The meeting is in room $roomno at $time. >> In which room is it / Where is the meeting / Which room was it / Where do I have to go [the room] => In room $roomno. ## When is the meeting / At what time is the meeting / What time was it => At $time.
My {neighbor|boss|teacher} $name {drives|has} a $color {car|van|bike}. >> What color is it / Which color was it / What color did I say [the color] => It is $color. ## Who has it / Whose is it / Who did I talk about => $name's.
{I grew up|I was born} in $city, but now I live in $city2. >> Where do I live / Which city do I live in now / Where is my home now [my home] => You live in $city2. ## Where {did I grow up|was I born} / Which city was it before / Where do I come from => In $city.
{Remember this for me|Please remember|Keep this in mind|Don't forget|Note this}: {the $trade comes|$name calls|the party is} on $day. >> When was it / On which day was it / Which day was it / What day should you remember [the day] => On $day.
My {grandmother|grandfather|uncle|aunt} lives in $country and keeps $animals. >> Where does my relative live / Which country was it / In which country is that [the country] => In $country. ## Which animals was it / What animals are there / Which animals did I mention => $^animals.
I {bought|got} a $color $clothes for $price $cur. >> How much did I pay / What did it cost / How much was it [the price] => You paid $price $cur. ## What did I buy / What was it / Which thing did I buy => A $color $clothes. ## What color is it / Which color was it => It is $color.
I take {my pills|my medicine|two tablets} at $time and at $time2. >> When do I take it / When do I have to take it / At what times was it [the times] => At $time and at $time2.
The recipe needs $big grams of flour and $few eggs. >> How many eggs does it need / How many eggs was it / How many eggs do I take [the eggs] => $^few eggs. ## How much flour does it need / How much flour was it / How much flour do I take => $^big grams.
Our team is called {the |}{Red|Blue|Flying|Wild|Golden} $animals. >> What is our team called / What is the name of our team / What was the name [the team] => ANIMALS
My {wedding|exam|flight|operation|holiday} is on $date. >> When is it / What was the date / On which date is it / Which day did I say [the date] => On $date.
My {flight|train|bus} is at $time from {gate|platform} $num. >> Which {gate|platform} was it / Where does it leave / From where do I leave [where it leaves] => From number $num. ## When is it / At what time is it / What time was it / When do I have to be there => At $time.
I live on {the third|the second|the fourth} floor {of|in} a house {on|in} $street with $few {families|neighbors}. >> On which street do I live / Which street is my home on / What street do I live on [my street] => On $street. ## How many {families|neighbors} are there / How many live there => $^few.
I am $num and my $kin is $num2. >> How old is my $kin / What is the age of my $kin / What age is my $kin [the age of my $kin] => Your $kin is $num2. ## How old am I / What is my age / What age am I => You are $num.
{My|Our} $pet is called $petname and {my|our} $pet2 $petname2. >> Who is $petname2 / What is $petname2 / Which animal is $petname2 => $petname2 is your $pet2. ## What is the $pet called / What is the name of the $pet / Which name does the $pet have => Your $pet is called $petname. ## Who is $petname / What is $petname => $petname is your $pet.
I want to bake {a cake|bread|cookies} but I have no $stuff{ and no $goods|}. >> What do I not have / What is missing / What do I need for it / What did I forget to buy [what is missing] => You have no $stuff.
{Tomorrow|On $day} I meet $name at the $place. >> Whom do I meet / Who am I meeting / Who is it that I meet [whom I meet] => You meet $name. ## Where do I meet $name / At which place do we meet / Where do we meet => At the $place.
My {class|team|choir} has $num members and our {leader|teacher|coach} is $name. >> How many members are there / How many members do we have / How many are we [the members] => There are $num. ## Who is our leader / Who leads us / What is the name of the leader => It is $name.
I put $carried into the $color bag and $carried2 into the $color2 one. >> What is in the $color2 bag / What did I put into the $color2 one / What does the $color2 bag hold => $^carried2. ## What is in the $color bag / What did I put into the $color one => $^carried. ## In which bag is $carried / Where is $carried => In the $color one.
I {broke|hurt|sprained} my $ache {at|while playing} $sport. >> What did I hurt / Which part was it / What hurts me / What is wrong with me [my injury] => You hurt your $ache. ## At which sport did it happen / What was I doing / How did it happen => It happened at $sport.
""".replace("Our team is called {the |}{Red|Blue|Flying|Wild|Golden} $animals.", "Our team is called the $color $animals.").replace("=> ANIMALS", "=> The $color $animals.")  # fmt: skip
TOLD = [(text, asked) for text, asked in read(_TOLD.replace(". \n", ".\n"))]
_ACK = ["I see.", "Good to know.", "All right, I will remember that.", "I will keep that in mind.", "Thank you for telling me.", "OK, noted.", "Got it.", "That is good to know.", "I have noted it.", "All right.", "Thanks for telling me!", "That sounds good.", "I will remember."]  # fmt: skip
_ASKED = ["$q?", "$q?", "$q?", "$q?", "$q, did I say?", "$q again?", "$q, do you remember?", "Do you remember: $q?", "Remind me: $q?", "Now tell me: $q?", "I forgot: $q?", "What did I say: $q?", "Can you tell me again: $q?", "So, $q?", "Quick, $q?", "Wait, $q?", "And $q?", "OK. $q?", "$q, please?", "Do you still know: $q?", "I have to ask: $q?", "$q, tell me?"]  # fmt: skip


def told_again(rng: Random) -> Sample:
    """Something the user told, and later a question about it."""
    messages: list[Message] = [say("system", setting(rng))] if rng.random() < 0.12 else []
    scenes = []
    turns: list[Turn] = []
    scene = Scene(rng)
    for text, asked in rng.sample(TOLD, rng.choice((1, 1, 1, 2))):
        said = write(rng, text, scene)
        said = said[0].upper() + said[1:]
        lead = rng.choice(
            ["", "", "", "", "Hi! ", "By the way: ", "You should know: ", "Hello. ", "Listen: "]
        )
        scenes.append(asked)
        shown = lead + said
        if rng.random() < 0.15:
            shown = shown[0].lower() + shown[1:].rstrip(".")
        messages += [say("user", shown), say("assistant", rng.choice(_ACK))]
    for _ in range(rng.choice((0, 0, 0, 0, 1, 1, 2))):
        turn = any_turn(rng)
        turns.append(turn)
        messages += [say("user", turn.ask), say("assistant", turn.answer)]
    asked = rng.choice(scenes)
    for part in rng.sample(asked, min(len(asked), rng.choice((1, 1, 2)))):
        question = write(rng, rng.choice(part.asks), scene)
        if part.clause and rng.random() < 0.12:
            question = f"what did I say about {write(rng, part.clause, scene)}"
        frame = rng.choice(_ASKED)
        if not frame.startswith("$q"):
            question = question[0].lower() + question[1:]
        ask = frame.replace("$q", question)
        ask = typed(rng, ask) if rng.random() < 0.25 else ask
        answer = write(rng, part.answer, scene)
        messages += [say("user", ask[0].upper() + ask[1:] if rng.random() < 0.8 else ask), say("assistant", answer[0].upper() + answer[1:])]  # fmt: skip
    return chat_sample("multi-turn", messages, [*turns, key_turn("multi-turn", messages[:-1])])


def _up(text: str) -> str:
    return text[0].upper() + text[1:]


_OPPOSITES = ADJECTIVES | {b: a for a, b in ADJECTIVES.items()}


def _first(rng: Random) -> tuple[str, str, str, str]:
    """A question, its answer, the word that matters in it, and a key."""
    draw = rng.random()
    if draw < 0.35:
        word = rng.choice([w for w in _OPPOSITES if _OPPOSITES[w].isalpha()])
        value = _OPPOSITES[word]
        ask = write(rng, f'{{What is the opposite of|Opposite of|The opposite of|Tell me the opposite of}} {{{word}|"{word}"}}?')  # fmt: skip
        return ask, rng.choice([f"The opposite of {word} is {value}.", f"{_up(value)}.", _up(value)]), value, fact_key(ask)  # fmt: skip
    if draw < 0.55:
        word = rng.choice([w for w in PLURALS if PLURALS[w].isalpha()])
        value = PLURALS[word]
        ask = write(rng, f'{{What is the plural of|Plural of|Tell me the plural of}} {{{word}|"{word}"}}?')
        return ask, rng.choice([f"The plural of {word} is {value}.", f"{_up(value)}."]), value, fact_key(ask)
    relation = rng.choice([r for r in RELATIONS if r.short])
    subject = rng.choice([s for s, v in relation.pairs.items() if v.replace(" ", "").isalpha()] or list(relation.pairs))  # fmt: skip
    ask = rng.choice([a for a in relation.asks if "$p" not in a] or relation.asks).replace("$s", subject)
    ask = fix_articles(ask.replace("$p", subject))
    return _up(ask), relation_answer(relation, subject), relation.pairs[subject], fact_key(ask)


_THEN: list[tuple[str, Callable[[str], str]]] = [
    ("{And now in capital letters|Now in capitals|In capitals, please|The same in upper case|Write that in capitals|In big letters, please|And in all caps|Can you write it in capital letters|Uppercase, please|Now uppercase|Make it upper case|And in capitals}", str.upper),
    ("{Now spell it|And how is it spelled|Spell that|How do you spell that|Spell it, please|Letter by letter, please|Can you spell it}", lambda v: f"{_up(v)} is spelled {'-'.join(v.lower())}."),
    ("{Only the word|Just the word, please|One word, please|In one word|Shorter, please|Just the answer|Without the sentence}", _up),
    ("{What is its first letter|Which letter does it begin with|And its first letter|With which letter does it start}", lambda v: f"{_up(v)} begins with {v[0].upper() if v[0].isupper() else v[0]}."),
    ("{Now as JSON, key word|As JSON with the key word|JSON, please, with the key word}", lambda v: json.dumps({"word": v})),
    ("{Say it twice|Twice, please|Write it two times|Repeat it twice}", lambda v: f"{v} {v}"),
    ("{In small letters|Now in lower case|Lowercase, please|And in small letters}", str.lower),
    ("{In quotes, please|Put it in quotes|With quotation marks}", lambda v: f'"{v}"'),
]  # fmt: skip


def other_form(rng: Random) -> Sample:
    """A question, and its answer's word in another form."""
    ask, answer, value, key = _first(rng)
    shares = (9, 4, 4, 2, 1.5, 1, 2, 1)
    if " " in value or not value.isalpha():
        shares = (9, 0, 4, 0, 1.5, 1, 2, 1)
    then, apply = rng.choices(_THEN, shares)[0]
    follow = write(rng, then)
    question = follow.split()[0] in ("What", "Which", "With", "How", "Can") and "letters" not in follow
    question = question or follow.startswith(("Can", "And how", "And its"))
    follow += "?" if question else rng.choice([".", ".", "", "!"])
    follow = rng.choice(["", "", "", "", "Thanks. ", "OK. ", "Good. "]) + follow
    follow = follow[0].lower() + follow[1:] if rng.random() < 0.15 else follow
    messages = [say("user", typed(rng, ask).strip()), say("assistant", answer), say("user", follow)]
    turns = [Turn("facts", "", "", key), key_turn("multi-turn", messages)]
    return chat_sample("multi-turn", [*messages, say("assistant", apply(value))], turns)


def of_another(rng: Random) -> Sample:
    """A question, then the same for others in two or three words ("Of wide?")."""
    kind = rng.choice(["opposite", "opposite", "plural", "relation", "relation", "relation"])
    if kind == "relation":
        relation = rng.choice([r for r in RELATIONS if r.name != "units"])
        subjects = rng.sample(list(relation.pairs), rng.choice((2, 2, 3)))
        ask = _up(fix_articles(rng.choice([a for a in relation.asks if "$p" not in a] or relation.asks).replace("$s", subjects[0]).replace("$p", subjects[0])))  # fmt: skip
        answers = [relation_answer(relation, s) for s in subjects]
        shorts = [fix_articles(s) for s in subjects]
        frames = ["And $w?", "and $w", "What about $w?", "How about $w?", "The same for $w?", "And for $w?", "Then $w.", "$W?", "OK, $w?", "Same question, $w.", "Now $w, please.", "also $w"]  # fmt: skip
        if relation.name in ("capital", "color", "colour"):
            frames += ["Of $w?", "And of $w?", "And that of $w?"]
    else:
        table = _OPPOSITES if kind == "opposite" else PLURALS
        subjects = rng.sample(list(table), rng.choice((2, 2, 3)))
        ask = write(rng, f"{{What is|What's|Tell me|Give me|I need|Do you know}} the {kind} of {{{subjects[0]}|the word {subjects[0]}}}?")  # fmt: skip
        ask = ask[:-1] + "." if ask.startswith(("Tell", "Give", "I need")) else ask
        answers = [f"The {kind} of {s} is {table[s]}." for s in subjects]
        shorts = subjects
        frames = ["Of $w?", "Of $w?", "of $w", "And of $w?", "And $w?", "and $w?", "And for $w?", "What about $w?", "$W?", "Then of $w?", "And that of $w?", "now $w", "Of the word $w?", 'And of "$w"?', "How about $w?", "Same for $w."]  # fmt: skip
    messages = [say("user", typed(rng, ask).strip()), say("assistant", answers[0])]
    turns = [Turn("facts", "", "", fact_key(ask))]
    for short, answer in zip(shorts[1:], answers[1:], strict=True):
        follow = rng.choice(frames).replace("$w", short).replace("$W", _up(short))
        messages.append(say("user", fix_articles(follow)))
        turns.append(key_turn("multi-turn", messages[-3:]))
        messages.append(say("assistant", answer))
    return chat_sample("multi-turn", messages, turns)


_ABOUT = {
    "color": "{What color is it|Which color is it|What color can it have|What colour does it have|And its color|And what color is it|Which color does it have|What color are they}",
    "legs": "{How many legs does it have|And how many legs|How many legs has it got|Does it have legs, and how many}",
    "sound": "{What sound does it make|What noise does it make|And which sound does it make|What does it say}",
    "baby": "{What is its baby called|What are its young called|How do you call its baby|And its baby}",
    "home": "{Where does it live|What is its home|And where does it live|In what does it live}",
    "diet": "{What does it eat|And what does it eat|What is its food|What do they eat}",
    "group": "{What kind of animal is it|Which group of animals is it|What is it}",
    "sides": "{How many sides does it have|And how many sides|How many sides has it got}",
}  # fmt: skip
_BY_SUBJECT: dict[str, list[str]] = {}
for _relation in RELATIONS:
    if _relation.name in _ABOUT:
        for _subject in _relation.pairs:
            _BY_SUBJECT.setdefault(_subject.removeprefix("a ").removeprefix("an "), []).append(_relation.name)
_NAMED = {relation.name: relation for relation in RELATIONS}
_TALKED = [t for t in TOPICS if t.removeprefix("a ").removeprefix("an ") in _BY_SUBJECT]
_MANY = [s for s, names in _BY_SUBJECT.items() if len(names) > 1]


def about_it(rng: Random) -> Sample:
    """A thing that is talked about, then short questions in which it is only "it"."""
    if rng.random() < 0.5 and _TALKED:
        topic = rng.choice(_TALKED)
        bare = topic.removeprefix("a ").removeprefix("an ")
        ask = write(rng, f"{{What is {topic}|Tell me what {topic} is|What's {topic}|Explain what {topic} is|Describe {topic}|Do you know what {topic} is}}?")  # fmt: skip
        ask = ask[:-1] + "." if ask.startswith(("Tell", "Explain", "Describe")) else ask
        messages = [say("user", typed(rng, ask).strip()), say("assistant", TOPICS[topic])]
        names = _BY_SUBJECT[bare]
    else:
        bare = rng.choice(_MANY or list(_BY_SUBJECT))
        names = rng.sample(_BY_SUBJECT[bare], len(_BY_SUBJECT[bare]))
        relation = _NAMED[names[0]]
        subject = _subject_of(names[0], bare)
        ask = _up(fix_articles(rng.choice([a for a in relation.asks if "$p" not in a] or relation.asks).replace("$s", subject).replace("$p", subject)))  # fmt: skip
        messages = [
            say("user", typed(rng, ask).strip()),
            say("assistant", relation_answer(relation, subject)),
        ]
        names = names[1:] or names
    turns = [Turn("facts", "", "", fact_key(ask))]
    for name in rng.sample(names, min(len(names), rng.choice((1, 1, 2)))):
        follow = write(rng, _ABOUT[name]) + "?"
        messages.append(say("user", follow.lower() if rng.random() < 0.15 else follow))
        turns.append(key_turn("multi-turn", messages[-3:]))
        messages.append(say("assistant", relation_answer(_NAMED[name], _subject_of(name, bare))))
    return chat_sample("multi-turn", messages, turns)


def _subject_of(name: str, bare: str) -> str:
    pairs = _NAMED[name].pairs
    return next(s for s in (bare, f"a {bare}", f"an {bare}") if s in pairs)


def dialog_chat(rng: Random) -> Sample:
    """One of these."""
    return rng.choices((told_again, other_form, of_another, about_it, going_on), (8, 4, 4, 2.5, 7))[0](rng)
