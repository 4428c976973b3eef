# ruff: noqa: E501 - lines of text read better whole
"""The sentences: seeded, of several kinds, and each on one side of the held-back split.

A sentence is a list of words, each as it is written and as it is said. The stories and the small talk are those
of ember's corpus.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from random import Random

from tools.ember import corpus
from tools.ember.corpus.grammar import Writer
from tools.ember_speech import lexicon as lex
from tools.ember_speech import numbers

HELD_BACK_PARTS = 40  # one sentence in this many is never trained on
LONGEST = 26  # words


@dataclass(frozen=True)
class Sentence:
    """Words as (written, said); `held_back` ones are for the evaluation."""

    words: tuple[tuple[str, str], ...]

    @property
    def text(self) -> str:
        """As it is written."""
        return " ".join(written for written, _ in self.words)

    @property
    def held_back(self) -> bool:
        """Which side of the split it is on, by a fixed hash of its letters and digits."""
        key = re.sub(r"[^a-z0-9 ]", "", self.text.lower())
        return int.from_bytes(blake2b(key.encode(), digest_size=8).digest()) % HELD_BACK_PARTS == 0


def parse(text: str) -> Sentence:
    """``Wait 15~fifteen minutes.`` as a sentence; the marks after what is said are written too."""
    words = []
    for part in text.split():
        written, tilde, said = part.partition("~")
        if tilde:
            marks = said[len(said.rstrip(".,!?")) :]
            written += marks[1:] if marks[:1] == written[-1] == "." else marks
        words.append((written, (said if tilde else part).replace("_", " ")))
    return Sentence(tuple(words))


class _Slots(Mapping[str, str]):
    """Each look-up of a name draws anew."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng

    def __getitem__(self, name: str) -> str:
        return SLOTS[name](self._rng)

    def __iter__(self) -> Iterator[str]:
        return iter(SLOTS)

    def __len__(self) -> int:
        return len(SLOTS)


def _of(words: list[str]) -> Callable[[Random], str]:
    return lambda rng: rng.choice(words)


_WORDS = sorted(
    {*lex.ADJECTIVES, *lex.NOUNS, *lex.MASS_NOUNS, *lex.VERBS, *lex.ADVERBS, *lex.OTHERS, *lex.PAST.values()}
    | {*lex.GERUND.values(), *lex.THIRD.values(), *map(lex.plural, lex.NOUNS), *lex.MORE}
)
_NAMES = [*lex.FIRST_NAMES, *lex.SURNAMES, *lex.PLACES]

SLOTS: dict[str, Callable[[Random], str]] = {
    "adj": _of(lex.ADJECTIVES),
    "noun": _of(lex.NOUNS),
    "nouns": lambda rng: lex.plural(rng.choice(lex.NOUNS)),
    "mass": _of(lex.MASS_NOUNS),
    "verb": _of(lex.VERBS),
    "past": lambda rng: lex.PAST[rng.choice(lex.VERBS)],
    "ing": lambda rng: lex.GERUND[rng.choice(lex.VERBS)],
    "third": lambda rng: lex.THIRD[rng.choice(lex.VERBS)],
    "adv": _of(lex.ADVERBS),
    "word": lambda rng: rng.choice(_NAMES) if rng.random() < 0.08 else rng.choice(_WORDS),
    "other": _of(lex.OTHERS),
    "more": _of(lex.MORE),
    "name": _of(lex.FIRST_NAMES),
    "full": lambda rng: f"{rng.choice(lex.FIRST_NAMES)} {rng.choice(lex.SURNAMES)}",
    "title": lambda rng: f"{rng.choice(('Mr', 'Mrs', 'Miss', 'Doctor'))} {rng.choice(lex.SURNAMES)}".replace(
        "Mr ", "Mr.~mister "
    ).replace("Mrs ", "Mrs.~missis "),
    "place": _of(lex.PLACES),
    "month": _of(lex.MONTHS),
    "day": _of(lex.DAYS),
    "room": _of(lex.ROOMS),
    "device": _of(lex.DEVICES),
    "food": _of(lex.FOODS),
    "unit": _of(lex.UNITS),
    "weather": _of(lex.WEATHER),
    "game": _of(lex.GAMES),
    "n": numbers.quantity,
    "small": lambda rng: numbers.count(rng.randrange(2, 61)),
    "clock": numbers.clock,
    "money": numbers.money,
    "decimal": numbers.decimal,
    "percent": numbers.percent,
    "digits": numbers.digits,
    "date": numbers.date,
    "year": numbers.some_year,
    "pron": _of(["I", "you", "we", "they", "he", "she"]),
    "obj": _of(["me", "you", "us", "them", "him", "her", "it"]),
    "poss": _of(["my", "your", "our", "their", "his", "her"]),
    "prep": _of(
        [
            "in",
            "on",
            "under",
            "behind",
            "near",
            "beside",
            "above",
            "inside",
            "over",
            "around",
            "across",
            "from",
        ]
    ),
}

RULES: dict[str, list[str]] = {
    "thing": [
        "the {|$adj }$noun",
        "{a|the} {|$adj }$noun",
        "$poss {|$adj }$noun",
        "{|some |the }$adj $nouns",
        "$mass",
        "$name",
        "the $noun of the $noun",
        "$n $nouns",
    ],
    "who": [
        "$pron",
        "$name",
        "the {|$adj }$noun",
        "$poss $noun",
        "{everybody|nobody|somebody|everyone}",
        "$name and $name",
        "the $adj $nouns",
    ],
    "where": [
        "{in|at|near|behind|in front of|next to} the {|$adj }{$noun|$room}",
        "in $place",
        "at home",
        "at school",
        "on the $noun",
        "outside",
        "upstairs",
        "everywhere",
    ],
    "when": [
        "{today|tomorrow|yesterday|tonight|now|soon|later|again}",
        "on $day",
        "in $month",
        "in $year",
        "at $clock",
        "{last|next} {week|month|year|$day}",
        "every {day|morning|evening|$day}",
        "on $date",
        "{before|after} {lunch|dinner|school|work}",
        "for $small {minutes|hours|days|years}",
    ],
}

KINDS: dict[str, tuple[float, list[str]]] = {
    "numbers": (2.0, [
        "{There are|We have|I need|I saw|She counted|They bought|You can see} $n {$unit|$nouns|$adj $nouns}{| <where>}.",
        "{The $noun costs|It costs|I paid|You owe $name|The total is|The ticket was|Lunch was} $money{| <when>}.",
        "{About|Almost|More than|Less than|Exactly|Only} $percent of the {$nouns|$unit|people} {are|were} $adj.",
        "{It|The $noun} {is|was} $decimal {kilometers|meters|degrees|seconds|miles|kilograms|liters|percent~percent} {long|high|away|wide|now|more|less}.",
        "{Call|Dial|My number is|The code is|Her number is|The password is} $digits.",
        "$n {plus|minus|times|divided by} $n {is|equals} $n.",
        "{The temperature is|It will be|It was} $small degrees {|in $place }{today|tomorrow|outside|<when>}.",
        "{Page|Room|Platform|Chapter|Gate|Bus|Flight|Question|Number} $n{ is <where>| is $adj|, please}.",
        "$name {is|was} $small years old{| <when>}.",
        "The {$noun|population|score|price|answer} is $n.",
        "{Count|Add|Take away|Write down|Remember} $n{|, $n} and $n.",
    ]),
    "dates": (1.6, [
        "{The meeting|The party|The concert|My birthday|The exam|The trip|Our flight|The lesson|School|The film} {is|was|starts|begins|ends} {on $date|on $day|at $clock|on $day at $clock|in $month}.",
        "{Today|Tomorrow|Yesterday} {is|was} {$day|$date|$day, $date}.",
        "{He|She|$name|My $noun|The $noun} was {born|built|found|made|opened|sold} {in $year|on $date|in $place in $year}.",
        "{It is|It's|It was} {$clock|almost $clock|exactly $clock}.",
        "{See you|Let's meet|We leave|I will call you|Come back|Wake me up|The bus leaves|The train arrives} {at $clock|on $day|on $day at $clock|on $date}.",
        "{From|Between} $year {to|and} $year {we|they|he|she} {lived|worked|stayed|played} in $place.",
        "{What|Which} {day|month} {is|was} {$date|it <when>}?",
        "The {shop|museum|library|bank|office|zoo} {opens|closes} at $clock{| on $day}.",
    ]),
    "commands": (2.2, [
        "{|Please |Could you |Can you |Would you please }{turn|switch} {on|off} the {$room |}$device{.|, please.| now.}",
        "{|Please |Could you }set {a timer|an alarm|a reminder} for {$small minutes|$clock|$day|tomorrow at $clock|$small hours}.",
        "{|Please }{call|text|email|message|remind|ask|tell|wait for|find|thank} {$name|$full|my $noun|$title|the $noun}{| <when>|, please}.",
        "{|Please }{play|stop|pause|skip|repeat} {the music|this song|the next song|some jazz|the film|my list}{| in the $room}.",
        "{|Please }{open|close|lock|unlock|clean|check|paint} the {door|window|curtain|gate|$noun|$room}{| <when>}.",
        "{|Hey, |Okay, }{turn|go} {left|right|back|up|down|around|straight on}{| <where>| after $small {meters|minutes|steps}}.",
        "{Set|Change|Raise|Lower} the {volume|temperature|heating|brightness} {to|by} {$small|$percent|$small degrees}.",
        "{Add|Put} {$food|$mass|$n $nouns|the $noun} {to the|on my} {list|shopping list|basket|cart|calendar}.",
        "{What|How} is the {weather|time|traffic|temperature|news} {in $place|today|tomorrow|<when>}?",
        "{Show|Send|Give|Bring|Read|Buy} {me|us|him|her|them} {the $noun|$poss $noun|some $mass|a $adj $noun|$n $nouns}{|, please| <when>}.",
        "{Start|Stop|Save|Delete|Copy|Print|Send|Open} {the|this|that|my} {file|page|document|message|program|recording|folder|letter|photo|email}{| now| again}.",
        "{Go|Come|Run|Walk|Drive|Move|Hurry} to {the $noun|$place|the $room|school|<where>}{| and $verb <thing>| <when>}.",
        "{Don't|Do not|Never} $verb {<thing>|the $noun} {<where>|<when>|again}.",
        "$verb {<thing>|the $adj $noun} {and|then|or} $verb {<thing>|it|them}.",
    ]),
    "simple": (6.0, [
        "<who> {|$adv }$past <thing>{| <where>}{| <when>}.",
        "<who> {|$adv }$past <thing> {and|but|so|because|before|after|while|until} <who> $past <thing>.",
        "{The|This|That|My|Your|Our} {|$adj }$noun {is|was|looks|seemed|became} {|very |too |so |quite |really |not }$adj{| and $adj| but $adj| <when>}.",
        "{The|These|Those|Some|Many|All|Most} {|$adj }$nouns {are|were|look} {|very |too |never |always }$adj{| <where>}.",
        "{He|She|It|$name|The $noun} {|$adv }$third <thing>{| <where>}{| <when>}.",
        "{I|You|We|They} {can|will|must|should|could|would|may|might|do not|don't|can't|won't} {|$adv }$verb <thing>{| <where>| <when>| with $name}.",
        "{He|She|$name} {is|was} $ing <thing>{| <where>| and $ing| <when>}.",
        "{We|They|You} {are|were} {|$adv |not }$ing <thing>{| <where>| <when>}.",
        "{Did|Do|Can|Will|Should|Could} {you|we|they|I} {|$adv }$verb <thing>{| <where>| <when>}?",
        "{Why|When|Where|How} {did|do|should|can|will} {you|we|they|I} $verb <thing>{| <when>}?",
        "{Who|What} {$past|is $ing|wants to $verb} <thing>{| <where>}?",
        "{If|When|Because|Although} <who> $past <thing>, <who> $past <thing>.",
        "There {is|was} {a|one} {|$adj }$noun {<where>|<when>|$prep the $noun}.",
        "{I think|I hope|I know|We know|She said|He said|They say|Do you think} {that |}<who> $past <thing>{| <when>}.",
        "{I like|I love|I hate|She likes|They like|We all like} {$ing|$mass|$nouns|$adj $nouns|$ing <thing>}{| and $nouns| more than $nouns}.",
        "It {is|was} {$weather|$weather and $weather|too $weather to $verb} {in $place|today|<when>|<where>}.",
        "<who> {went|came|ran|drove|walked|flew} {from $place to $place|to the $noun|into the $noun|$prep the $adj $noun}{| with $name| <when>}.",
        "$name is {taller|older|younger|faster|bigger|smaller|stronger} than {$name|the $noun|$poss $noun}.",
        "$name's $noun {is|was} $adj, but $name's is $adj.",
        "{A|The} $noun {has|had} {a $adj $noun|$n $nouns|$mass} and {a $adj $noun|$n $nouns}.",
        "We {ate|cooked|had|ordered|made} {$food|$food and $food|$food with $food} {for lunch|for dinner|for breakfast|<when>}.",
        "{I|We|They|You} {play|played|like to play|used to play} $game{| <when>| with $name}.",
        "$title {is|was} {|a |the }{$adj teacher|doctor|best friend of $name|new manager|$adj neighbor} {in $place|<where>}.",
    ]),
    "talk": (1.8, [
        "{Hello|Hi|Good morning|Good evening|Good afternoon|Hey}{|, $name|, everybody|, my friend}{.|!|, how are you?|, nice to meet you.|, welcome to $place.}",
        "{My name is|I am|This is|You are speaking with} {$name|$full}{| from $place}.",
        "{How are you|How was your {day|weekend|trip|$noun}|How is your $noun|What is your name|Where are you from|What do you do|What time is it|Who is there|Are you ready|Can you hear me}{|, $name}?",
        "{I am|I'm|We are|We're} {fine|$adj|very $adj|from $place|sorry|ready|glad|late|here|hungry|tired}{|, thank you|, thanks| today}.",
        "{Thank you|Thanks|Many thanks}{| very much| so much}{| for the $noun| for your help| for $ing <thing>}{.|!}",
        "{Yes|No|Well|Okay|Of course|Sure|Maybe|Right|Sorry}, {I|we|you} {can|will|do|did|think so|don't know|can't $verb it|like it|hope so}.",
        "{Goodbye|Bye|See you later|See you soon|Good night|Take care|Have a nice day}{|, $name}{.|!}",
        "{That|This|It} {is|was|sounds} {a|} {great|good|bad|$adj|wonderful} {idea|$noun|question|day}{.|!|, $name.}",
        "{What|Where|Who} {is|was} {that|your $noun|the $adj $noun|$name|$title}?",
        "{Excuse me|Pardon|Sorry}, {where is the {$noun|station|bathroom|exit}|can I $verb <thing>|do you have {a $noun|any $mass}|how much is {the $noun|this $noun}}?",
        "{I don't|I do not} {understand|know|remember|believe} {|what you mean|why|<thing>|$obj}.",
        "Would you like {a|another} {$noun|cup of tea|cup of coffee|glass of water|piece of cake}?",
    ]),
    "words": (4.6, [
        "$word $word $word $word{| $word}{| $word}{| $word}.",
        "$word $word, $word $word{| $word $word}{|, $word}.",
        "{the|a|this|every} $word {of|and|or|to|in} {the|a|} $word $other $word $word{| $word}.",
        "$word{| $word}{| $word}.",
        "$more $more{| $more}{| $more}{| $more}{| $more}.",
        "{The|A|My|Your|This|Our} {$more $more|$more} {is|was|of|and|for|in|with} {the|a|my|this|his} {$more $more|$more}{| $more}.",
        "<who> {$past|will $verb|can $verb} the $more {$more|and the $more|of $more}.",
        "$other $word $other $word $other $word $word{| $word $word $word}.",
    ]),
}  # fmt: skip
FROM_EMBER = 4.0

_CLEAN = re.compile(r"[A-Za-z][A-Za-z',. ]*[.!?]")


def _ember(rng: Random) -> Iterator[Sentence]:
    """Sentences of ember's stories and talks that hold nothing but words."""
    for sample in corpus.samples(rng.randrange(1 << 40)):
        texts = [sample.text, *(message["content"] or "" for message in sample.messages)]
        for text in re.split(r"(?<=[.!?])\s+|\n", " \n".join(texts).replace("\u2019", "'")):
            sentence = text.strip().strip('"').strip()
            if (
                _CLEAN.fullmatch(sentence)
                and 2 <= len(sentence.split()) <= LONGEST
                and not sentence.isupper()
            ):
                yield parse(sentence[0].upper() + sentence[1:])


def sentences(seed: object, held_back: bool = False, kind: str | None = None) -> Iterator[Sentence]:
    """An endless stream of one side of the split, the same for the same seed; of one kind, or of all."""
    rng = Random(f"ember-speech {seed}")
    stories = _ember(rng)
    kinds = [kind] if kind else [*KINDS, "ember"]
    shares = [KINDS[name][0] if name in KINDS else FROM_EMBER for name in kinds]
    while True:
        name = rng.choices(kinds, shares)[0]
        if name == "ember":
            sentence = next(stories)
        else:
            text = Writer(rng, RULES).write(rng.choice(KINDS[name][1]), _Slots(rng))
            sentence = parse(text)
        if sentence.held_back == held_back and len(sentence.words) <= LONGEST:
            yield sentence


if __name__ == "__main__":
    for shown in islice(sentences("shown"), int(sys.argv[1])):
        print(shown.text)
