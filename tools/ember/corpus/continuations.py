# ruff: noqa: E501 - lines of text and word lists read better whole
"""Plain text to go on with: statements, sequences, letters, weather, rhymes, questions with answers, short prose."""

from __future__ import annotations

import string
from random import Random

from .extras import _POEMS, lists, longer_sum, sizes
from .facts import CAPITALS
from .grammar import write
from .knowledge import BLANKS, QUIZ, TOPICS, word_lore
from .sample import Sample, Turn, is_held_out
from .stories import story
from .tasks import (
    DAYS,
    MONTHS,
    arithmetic,
    calendar,
    draw_sum,
    fact,
    fix_articles,
    in_words,
    listing,
    opposite,
    plural,
    solve,
    sum_key,
)
from .words import ANIMALS, GENDER, NOUNS, SLOTS

_WEATHER = [
    "The weather {today |}{is|was} {sunny|rainy|cloudy|cold|warm|windy|fine} in $p. {The sun is shining|It may rain later|The wind is strong|There are a few clouds} {and|but} it is {warm|cold|cool}. Tomorrow {it will be|we expect it to be} {sunny|rainy|cold|warm}.",
    "{Today|Tomorrow|Yesterday} the weather {is|will be|was} {nice|bad|good|fine}. {Take an umbrella with you|You can leave your coat at home|It is a good day for a walk|We can stay inside and read}.",
    "The weather today is {sunny|cloudy|rainy} and {warm|cool|mild}. {The sky is blue|The sky is gray|The streets are wet}, and {the birds are singing|people walk in the park|the children play outside}. {In the evening|At night} it will be {cool|clear|windy}.",
    "It is {cold|warm|sunny|rainy} today. {I will wear my coat|I will stay at home|We will go for a walk|The children play outside}. {I like this weather|I hope that tomorrow will be better}.",
]  # fmt: skip
_LETTERS = [
    "Dear $n,\n\n{Thank you for your letter|Thank you for the $c $o|How are you|I hope that you are well}. {I am fine|We are all well|All is well here}. {The weather is nice|It is $season here|It rains a lot}, and {I often walk to $x|I think of you often|the garden is full of flowers}. {Please write soon|Come and visit us soon|I hope to see you soon}.\n\n{Love|Best wishes|Yours|With love},\n$m",
    "Dear $n,\n\n{I am writing to you from|Greetings from} $p. {I have seen|Yesterday I saw} the {old bridge|castle|market|river}, and I {ate|liked} $f. {I will be home on $D|I will tell you more soon}.\n\n{Yours|Best wishes},\n$m",
    "{Hi|Hello} $n,\n\n{can you bring the $o on $D|do you have time on $D|shall we meet on $D}? {I will bring $f|I have the $c $o|There will be $f}.\n\n{See you|Bye},\n$m",
]  # fmt: skip
_SELF = [
    "{My name is|Hello, my name is|Hi, my name is|Hello! My name is} $n. I {am $i years old and |}live in $p. I {like|love} $h{ and $f|}. {My best friend is called $m|I have a $k called $m|I work as a $j}.",
    "I am $n, {a $j|a teacher} from $p. {Every day|In the morning} I {drink tea and|eat $f and} {go to work|read a book|walk to $x}. {I am happy|I like my life}.",
    "My {favorite|favourite} {food is $f|color is $c|animal is the $k|season is $season|hobby is $h}. {I like it because it is nice|It makes me happy|My friend $n likes it too}.",
    "My favorite food is $f. {I eat it every $D|My grandmother makes the best|It tastes very good}. {I also like|But I do not like} $f2.",
    "{I have|We have} a $k. {Its name is|It is called} $n. {It|The $k} is {small and $c|very clever|old and slow|young and lively}, and it {likes|loves} to {sleep|play|run|eat}.",
    "Today I {went to|was at} {the market|the park|the beach|the library|school}. I {saw|met} $n, who {had|bought} a $c $o. {We talked for a while|We ate $f together|It was fun}. {It was a good day|Then I went home}.",
    "The {cat|dog|bird|child|$k} sat {on|under|beside} the {mat|$o|table|chair|tree}. {The {dog|cat|bird|$k} sat {on|under|beside} the {rug|mat|$o|wall}.|It was {warm|tired|happy|quiet}.|It looked at the $o.} {Then it fell asleep.|Nobody said a word.|It was a quiet day.}",
    "I {want|would like|plan|hope} to {go to $p|read a book about $k|buy a $o|learn to play the {piano|guitar}|visit $n}. {It will be fun|I have wanted it for a long time|$m will come with me}.",
    "There {is|was} a {big|small|$c|old} $o {in the garden|in the house|on the table|by the river}. {Nobody knew|Everyone knew} {whose it was|where it came from}. {One day|Then} $n {took it home|found it|painted it $c}.",
    "In the {morning|beginning|evening}, {the sun was rising|the house was quiet|everyone was asleep}. $n {opened the window|made tea|went outside} and {looked at the sky|listened to the birds}. {It was going to be a good day|The day had begun}.",
    "How to make {tea|bread|soup|$f}: {First|1.} {take|get} {water|flour|milk|some fruit}. {Then|2.} {heat it|mix it|stir it} {slowly|well}. {At last|3.} {wait a little|serve it warm|put it on a plate}. Enjoy!",
    "{Life|Love|Friendship|Music|A good book|Home} is {a gift|like a song|full of surprises|what we make of it|beautiful}. {We should enjoy it|It makes us happy|It gives us strength|Nobody can live without it}.",
    "The quick brown fox jumps over the lazy dog.{ The dog does not mind.| It is a sentence with every letter of the alphabet.|}",
    "Hello, world!{ This is a small text.| I am a small model.| How are you today?}",
    "{Shopping list|To do|Things to buy}:\n- {milk|bread|eggs}\n- {apples|rice|tea}\n- {soap|cheese|butter}",
    "{Once|One day}, {a man|a woman|a child|a traveller} {asked|met} a wise {owl|man|woman}. \"{How can I be happy|What is the best thing in the world|What should I do}?\" \"{Be kind|Share what you have|Look around you|Learn something every day},\" said the wise one{, and smiled|}.",
    "To be or not to be, that is the question.", "It was a dark and stormy night. {The wind blew around the house|The rain beat on the windows}, and $n {sat by the fire|could not sleep|lit a candle}. {Suddenly there was a knock at the door|Then the wind fell silent}. {It was only the cat|It was $m, wet and cold}.",
]  # fmt: skip
_RHYMES = [
    "Roses are red,\nviolets are blue,\n{sugar is sweet,\nand so are you.|the stars are bright,\nand I think of you.|the sky is wide,\nand I like you too.|a fire is warm,\nand a friend is true.}",
    "Twinkle, twinkle, little star,\nhow I wonder what you are.\nUp above the world so high,\nlike a diamond in the sky.", "Mary had a little lamb,\nits fleece was white as snow,\nand everywhere that Mary went\nthe lamb was sure to go.", "Row, row, row your boat,\ngently down the stream.\nMerrily, merrily, merrily, merrily,\nlife is but a dream.", "Humpty Dumpty sat on a wall,\nHumpty Dumpty had a great fall.", "One, two, buckle my shoe,\nthree, four, open the door,\nfive, six, pick up sticks,\nseven, eight, lay them straight.",
]  # fmt: skip


def _env(rng: Random) -> dict[str, str]:
    n, m = rng.sample(sorted(GENDER), 2)
    f, f2 = rng.sample(
        SLOTS["food"] + SLOTS["fruit"] + ["pizza", "soup", "rice", "pasta", "ice cream", "chocolate"], 2
    )
    return {
        "n": n, "m": m, "f": f, "f2": f2, "p": rng.choice(list(CAPITALS.values())), "c": rng.choice(SLOTS["color"]), "o": rng.choice(NOUNS), "season": rng.choice(SLOTS["season"]), "x": rng.choice(SLOTS["outside"]), "D": rng.choice(DAYS),
        "i": str(rng.randint(5, 90)), "h": rng.choice(SLOTS["hobby"]), "k": rng.choice(list(ANIMALS)), "j": rng.choice(SLOTS["job"]),
    }  # fmt: skip


def _sequence(rng: Random) -> str:
    kind = rng.randrange(8)
    if kind == 0:
        start, step = rng.choice((0, 1, 1, 1, rng.randint(0, 40))), rng.choice((1, 1, 1, 2, 3, 5, 10))
        return rng.choice([", ", ", ", " ", "\n"]).join(
            str(start + step * i) for i in range(rng.randint(8, 20))
        )
    if kind == 1:
        start = rng.randint(10, 30)
        return ", ".join(str(i) for i in range(start, -1, -1))
    if kind == 2:
        letters = string.ascii_lowercase if rng.random() < 0.5 else string.ascii_uppercase
        return rng.choice([", ", " ", ""]).join(letters[rng.choice((0, 0, 0, 5)) :])
    if kind == 3:
        start = rng.randrange(7)
        return ", ".join(DAYS[(start + i) % 7] for i in range(7)) + rng.choice([".", ""])
    if kind == 4:
        return ", ".join(MONTHS[rng.choice((0, 0, 0, 2, 5)) :]) + rng.choice([".", ""])
    if kind == 5:
        start = rng.choice((0, 1, 1))
        words = [in_words(i) for i in range(start, start + rng.randint(8, 16))]
        words = [w.capitalize() for w in words] if rng.random() < 0.3 else words
        return ", ".join(words)
    if kind == 6:
        a = rng.randint(2, 12)
        return "\n".join(f"{a} * {b} = {a * b}" for b in range(1, 11) if not is_held_out(sum_key(a, "*", b)))
    return ", ".join(
        ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"]
    )


def _statement(rng: Random) -> str:
    """A statement that is true, also in the words that people begin with."""
    draw = rng.randrange(9)
    if draw == 0:
        return TOPICS[rng.choice(list(TOPICS))]
    if draw == 1:
        text, word = rng.choice(BLANKS)
        return text.replace("___", word)
    if draw == 2:
        answer = rng.choice(
            [answer for _, answer, value in QUIZ if value not in ("yes", "no", "hot", "cold")]
        )
        return answer
    if draw == 3:
        a, op, b = rng.randint(0, 12), rng.choice("+-*"), rng.randint(0, 12)
        a, b = (max(a, b), min(a, b)) if op == "-" else (a, b)
        if is_held_out(sum_key(a, op, b)):
            return "Two and two is four."
        value = {"+": a + b, "-": a - b, "*": a * b}[op]
        x, y, v = (
            (
                in_words(n).capitalize() if i == 0 else in_words(n)
                for i, n in enumerate((a, b, min(value, 100)))
            )
            if value <= 100 and rng.random() < 0.7
            else (str(a), str(b), str(value))
        )
        word = {"+": rng.choice(["plus", "and"]), "-": "minus", "*": "times"}[op]
        return f"{x} {word} {y} {rng.choice(['is', 'equals', 'makes'])} {v}."
    if draw == 4:
        return rng.choice(
            [
                "The sky is blue.",
                "Grass is green and the sky is blue.",
                "A dog has four legs.",
                "A spider has eight legs.",
                "A cat has four legs and a tail.",
                "The sun is a star.",
                "The three primary colors are red, yellow and blue.",
                "The four seasons are spring, summer, autumn and winter.",
                "The days of the week are " + listing(DAYS) + ".",
                "The months of the year are " + listing(MONTHS) + ".",
                "The alphabet has 26 letters.",
                "The largest planet in our solar system is Jupiter.",
                "The largest animal in the world is the blue whale.",
                "The tallest mountain in the world is Mount Everest.",
                "Water boils at 100 degrees Celsius and freezes at 0 degrees.",
                "The Earth goes around the sun, and the moon goes around the Earth.",
                "There are seven days in a week and twelve months in a year.",
            ]
        )
    turn = rng.choice((fact, fact, opposite, plural, calendar, word_lore, arithmetic))(rng)
    return turn.answer if not turn.held_out else "The capital of France is Paris."


def _turn(rng: Random) -> Turn:
    while (
        turn := rng.choice((fact, fact, opposite, plural, arithmetic, calendar, longer_sum, word_lore))(rng)
    ).held_out:
        pass
    return turn


def continuation(rng: Random) -> Sample:
    """A plain text of some kind."""
    env = _env(rng)
    kind = rng.choices(
        ("statements", "sequence", "weather", "letter", "prose", "rhyme", "qa", "sums", "about"),
        (6, 2.5, 1.3, 1.5, 4.5, 2, 4, 1.5, 1.5),
    )[0]
    match kind:
        case "statements":
            parts = [_statement(rng) for _ in range(rng.randint(1, 5))]
            text = rng.choice([" ", " ", "\n"]).join(parts)
        case "sequence":
            text = _sequence(rng)
        case "weather":
            text = write(rng, rng.choice(_WEATHER), env)
        case "letter":
            text = write(rng, rng.choice(_LETTERS), env)
        case "prose":
            text = (
                " ".join(write(rng, t, env) for t in rng.sample(_SELF[:9], rng.randint(1, 2)))
                if rng.random() < 0.6
                else write(rng, rng.choice(_SELF), env)
            )
        case "rhyme":
            text = rng.choice([_RHYMES[0], *_RHYMES]) if rng.random() < 0.6 else rng.choice(_POEMS)
            text = write(
                rng,
                text,
                env
                | {
                    "n": rng.choice(NOUNS),
                    "s": env["season"],
                    "f": rng.choice(["apple", "cherry", "plum", "rose"]),
                },
            )
        case "qa":
            q, a, mid, sep = rng.choice(
                [
                    ("Q: ", "A: ", "\n", "\n"),
                    ("Q: ", "A: ", "\n", "\n\n"),
                    ("Q: ", "A: ", " ", "\n"),
                    ("Question: ", "Answer: ", "\n", "\n"),
                    ("Question: ", "Answer: ", "\n", "\n\n"),
                    ("User: ", "Assistant: ", "\n", "\n"),
                    ("", "", " ", "\n"),
                    ("- ", "", " ", "\n"),
                ]
            )
            short = rng.random() < 0.15
            turns = [_turn(rng) for _ in range(rng.randint(1, 5))]
            text = sep.join(
                f"{q}{t.ask}{mid}{a}{t.value[0].upper() + t.value[1:] if short and t.value else t.answer}"
                for t in turns
            )
        case "sums":
            sums = [
                s
                for s in (
                    draw_sum(rng)
                    if rng.random() < 0.6
                    else (rng.randint(0, 12), rng.choice("+-*"), rng.randint(0, 12))
                    for _ in range(rng.randint(1, 6))
                )
                if not is_held_out(sum_key(*s))
            ]
            text = "\n".join(solve(*s)[0] for s in sums) or "1 + 1 = 2"
        case _:
            told = story(rng)
            about = rng.choice([f"a {told.kind}", told.hero, told.theme, f"a {told.kind} named {told.hero}"])
            text = (
                fix_articles(
                    rng.choice(
                        [
                            f"A story about {about}:",
                            f"Story about {about}:",
                            f"The story of {told.hero}",
                            f"A short story about {about}:",
                            f"A tale of {about}:",
                        ]
                    )
                )
                + rng.choice([" ", "\n", "\n\n"])
                + told.text
            )
            if is_held_out(f"story {told.hero} {told.kind}"):
                text = _sequence(rng)
    text = text if kind in ("about", "rhyme", "letter", "qa", "sums") else fix_articles(text)
    return Sample("plain", text=text, hint={"held_out": "0"})


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
