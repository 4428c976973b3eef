# ruff: noqa: E501, SIM905 - lines of text and word lists read better whole
"""Proverbs, comparisons and nursery lines: their ends, asked for or as plain text."""

from __future__ import annotations

from random import Random

from .grammar import write
from .sample import Sample, Turn
from .typed import typed

# a saying, its end behind the bar
PROVERBS = """An apple a day keeps| the doctor away.#The early bird catches| the worm.#Better late| than never.#Practice makes| perfect.#Actions speak louder| than words.#Where there is a will| there is a way.#Two heads are better| than one.#Don't count your chickens| before they hatch.#Don't judge a book| by its cover.#All that glitters| is not gold.#When the cat is away| the mice will play.#Every cloud has| a silver lining.#Honesty is| the best policy.#Rome was not built| in a day.#Many hands make| light work.#Too many cooks spoil| the broth.#A friend in need| is a friend indeed.#Birds of a feather| flock together.#Don't put all your eggs| in one basket.#Look before| you leap.#No news is| good news.#Out of sight| out of mind.#Practice what| you preach.#Slow and steady| wins the race.#Time flies| when you are having fun.#The pen is mightier| than the sword.#There is no place| like home.#Time is| money.#Curiosity killed| the cat.#A picture is worth| a thousand words.#Better safe| than sorry.#Easy come| easy go.#First come| first served.#Haste makes| waste.#Knowledge is| power.#Laughter is| the best medicine.#Like father| like son.#Love is| blind.#Once bitten| twice shy.#Still waters| run deep.#The grass is always greener| on the other side.#You can't teach an old dog| new tricks.#All's well| that ends well.#Beauty is in the eye| of the beholder.#Strike while| the iron is hot.#When in Rome| do as the Romans do.#What goes up| must come down.#A watched pot| never boils.#It takes two| to tango.#Good things come| to those who wait.""".split("#")  # fmt: skip
SIMILES = "busy:bee brave:lion sly:fox blind:bat free:bird quiet:mouse strong:ox slow:snail stubborn:mule proud:peacock hungry:wolf gentle:lamb wise:owl fresh:daisy light:feather flat:pancake cold:ice white:snow black:coal hard:rock sweet:honey dry:bone clear:crystal good:gold sharp:razor quick:flash fit:fiddle red:rose green:grass deep:ocean old:hills easy:pie cool:cucumber bright:day thin:rake tall:tree happy:lark sick:dog sober:judge straight:arrow".split()
_WHOLE = frozenset("ice snow coal honey crystal gold grass pie".split())
_LINES = ["Roses are red, violets are blue, {sugar is sweet, and so are you|the sun is bright, and I like you|honey is sweet, and you are too}.", "Twinkle, twinkle, little star, how I wonder what you are. Up above the world so high, like a diamond in the sky.", "Mary had a little lamb, its fleece was white as snow, and everywhere that Mary went the lamb was sure to go.", "Row, row, row your boat gently down the stream. Merrily, merrily, merrily, merrily, life is but a dream.", "Humpty Dumpty sat on a wall, Humpty Dumpty had a great fall. All the king's horses and all the king's men couldn't put Humpty together again.", "Jack and Jill went up the hill to fetch a pail of water. Jack fell down and broke his crown, and Jill came tumbling after.", "One, two, buckle my shoe. Three, four, knock at the door. Five, six, pick up sticks. Seven, eight, lay them straight.", "Rain, rain, go away, come again another day.", "Happy birthday to you, happy birthday to you, happy birthday, dear {Anna|Tom|friend|Ben|Lily}, happy birthday to you.", "Old MacDonald had a farm, and on that farm he had a {cow|pig|duck|horse}.", "Hickory dickory dock, the mouse ran up the clock. The clock struck one, the mouse ran down, hickory dickory dock."]  # fmt: skip


def _simile(rng: Random) -> tuple[str, str]:
    """A comparison without its end, and the end."""
    quality, thing = rng.choice(SIMILES).split(":")
    article = "" if thing in _WHOLE else "the " if thing in ("hills", "ocean", "day") else "an " if thing[0] in "aeiou" else "a "  # fmt: skip
    return f"as {quality} as", f" {article}{thing}"


def saying(rng: Random) -> Turn:
    """A saying or a comparison to be finished."""
    if rng.random() < 0.55:
        begin, end = rng.choice(PROVERBS).split("|")
        ask = write(rng, "{{Finish|Complete|End} {the|this} {proverb|saying|sentence}: $b{| ...|...}|How does {the proverb|the saying|it} {go on|end}: $b{ ...|...|?}|$b ... {what comes next|how does it go on|and then}?|{What is the end of|What comes after} \"$b\"?|Fill in: $b ___}", {"b": begin})  # fmt: skip
        return Turn(
            "words", typed(rng, ask, True), f"{begin}{end}", f"saying {begin}", end.strip().rstrip(".")
        )
    begin, end = _simile(rng)
    ask = write(rng, "{{Complete|Finish}: $b{| ...|...}|$B ...?|{Fill in|Fill in the blank}: $b ___|{What comes next|How does it go on}: $b ...|{How do you say it|The saying goes}: $b {what|...}?|$B {what|who}?}", {"b": begin, "B": begin[0].upper() + begin[1:]})  # fmt: skip
    whole = f"{begin}{end}."
    return Turn("words", typed(rng, ask, True), whole[0].upper() + whole[1:], f"saying {begin}", end.strip())


def saying_text(rng: Random) -> Sample:
    """A proverb, a comparison or nursery lines as plain text."""
    draw = rng.random()
    if draw < 0.5:
        text = rng.choice(PROVERBS).replace("|", "")
    elif draw < 0.75:
        begin, end = _simile(rng)
        text = write(
            rng, f"{{He is|She is|It is|The child is|My friend is|You are|I am|This is}} {begin}{end}."
        )
    else:
        text = write(rng, rng.choice(_LINES))
    held = Turn("continuation", "", "", f"saying {text}").held_out
    return Sample("continuation", text=text, hint={"held_out": str(int(held))})
