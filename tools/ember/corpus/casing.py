# ruff: noqa: E501, SIM905 - lines of text and word lists read better whole
"""Upper, lower and title case of what people put on signs, forms, labels and in mails, and which of some words is in capitals."""

from __future__ import annotations

from random import Random

from . import lexicon
from .foreign import name as foreign_name
from .grammar import write
from .sample import Turn
from .scene_words import BOYS, GIRLS, Scene
from .typed import around
from .words import invented_word

_WORDS = """warning danger caution exit entrance closed open sold reserved urgent important confidential private notice attention welcome sale discount bargain free stop slow wait push pull fragile handle hot cold wet paint keep out off dry poison ladies gentlemen staff only emergency fire alarm hospital pharmacy police taxi parking tickets information reception waiting room office manager director checkout cashier refund delivery return receipt invoice payment paid total balance account password username login logout register subscribe confirm cancel submit download upload delete save print search settings help contact about privacy terms version draft final copy original sample
chapter introduction summary appendix contents index glossary title author editor publisher edition breakfast lunch dinner supper dessert starter special menu vegetarian organic fresh frozen homemade imported local seasonal limited offer today tomorrow tonight yesterday monday tuesday wednesday thursday friday saturday sunday january february march april june july august september october november december
beginning building camping cleaning climbing cooking dancing drawing driving evening feeling fishing flying greeting growing hearing housing hunting jumping keeping knitting landing laughing learning lightning living loading looking making meaning meeting moving opening painting planning playing pudding raining reading riding rolling running sailing saying selling setting shaking sharing shining shopping singing sitting skating sleeping smiling smoking speaking spelling standing starting swimming talking teaching thinking training travelling turning walking washing watching wedding winning wishing working writing
achievement adventure advertisement agreement ambulance announcement apartment application appointment arrangement arrival assistant atmosphere audience bandage bargain basement battlefield beginner behaviour blackboard blueprint boundary broadcast brochure calculator campaign candidate cardboard carpenter cathedral celebration certificate challenge champion character chemistry childhood chimney citizen collection comfortable committee communication community comparison competition complaint composition concert condition conference congratulations connection conversation corridor crossroads cucumber currency customer darkness daylight deadline decision decoration delicious department departure description destination development dictionary direction disappointment discovery discussion distance documentary dragonfly earthquake education electricity elevator embassy employee encyclopedia engagement entertainment environment equipment examination exhibition expedition experience experiment explanation explosion expression extension
fashion festival firefighter fireplace firework flashlight football forecast fountain friendship furniture generation geography government graduation grandparents grasshopper greenhouse guarantee handkerchief handwriting happiness headache headline headquarters heartbeat helicopter highway homework horizon household hurricane identity illustration imagination immigration impression independence industry influence inspection instruction insurance intelligence interview invention investigation invitation jewellery journalist judgement junction kindergarten knowledge laboratory landscape laundry leadership lemonade lighthouse literature location loneliness luggage lullaby machinery maintenance management manufacturer marathon marketplace marriage masterpiece measurement medication membership microscope midnight migration miracle misunderstanding moonlight motorway mountain movement mushroom musician mystery
narrator necessity negotiation neighbourhood newspaper nightmare northern notebook notification observation obstacle occupation operation opportunity orchestra organization orphanage outside overcoat packaging parliament participant partnership passenger passport password pavement peninsula performance permission personality philosophy photograph playground pollution population porridge possibility postcard prediction preparation presentation president prescription procedure production profession programme pronunciation property protection publication punctuation punishment purchase qualification quarrel quarter question quotation railway rainbow raincoat reaction reception recipe recommendation recovery recycling reflection refrigerator registration rehearsal relationship replacement reputation requirement reservation resident restaurant revolution rooftop sandwich satisfaction scholarship scientist sculpture seaside selection sentence shadow shepherd shipwreck signature silence skeleton skyscraper snowflake solution southern souvenir spaceship spectacles staircase statement stationery steamboat stranger strawberry structure submarine suggestion suitcase sunflower supermarket surgery surprise suspicion sympathy
tablecloth technology telephone television temperature temptation territory thermometer thunderstorm timetable toothbrush tournament tradition translation transport treasure treatment trousers tunnel twilight underground understanding unemployment universe vacation vaccination variation vegetable vehicle village violence vocabulary volunteer wallpaper warehouse waterfall watermelon wheelchair wilderness wildlife windmill wonderland workshop yesterday absolutely accidentally actually apparently carefully certainly completely correctly dangerously definitely differently directly easily eventually exactly extremely finally fortunately frequently generally gradually happily honestly immediately increasingly initially mainly naturally nervously normally obviously occasionally officially originally particularly patiently perfectly personally politely possibly probably properly quickly quietly rapidly recently regularly seriously silently simply sincerely slightly slowly specially strangely strongly successfully suddenly surprisingly terribly typically unfortunately usually""".split()
_ALL = sorted({*_WORDS, *lexicon.COMMON, *lexicon.FREQUENT})
_SIGNS = """no smoking|no entry|keep out|beware of the dog|mind the gap|wet floor|do not disturb|out of order|lost property|fire exit|staff only|ladies first|first come, first served|for sale|sold out|back in 20 minutes|back in five minutes|please ring the bell|please wait here|no dogs allowed|keep the door closed|do not feed the $animals|handle with care|this way up|happy new year|merry christmas|happy birthday, $name|welcome home, $name|get well soon|good luck in $city|greetings from $city|fresh $fruits|free $drink on ${day}s|open every day|closed on ${day}s|
no ball games|danger: thin ice|slow down, children playing|turn left at the $place|train to $city|please do not touch the $thing|return to $name $sur|property of $name|room $roomno|chapter two|chapter seven|the end|to be continued|summer sale|half price|two for one|made in $country|best before $month|this side up|save the $animals|votes for $name|meet me at the $place|where is my $thing|call $name now|i love $city|stop the bus|we are moving|dear $sur family|see you on $day|lunch is ready|the $place is closed|the $thing is broken|the $pet is called $petname|bring your $clothes|buy $goods and $goods2|$name has won|$color paint|a $color $thing|$girl and $boy|$street 12|$street 7b|the $job of $city|learn $language fast|$game on $day|come to the $place at $time|
i'm late|don't worry|it's raining|that's great|where's $name|we're open|you're welcome|i can't find my $thing|let's go to the $place|what's the time|$petname the $pet|the cat sat on the mat|my $kin's $thing|who ate my $dish|bread, butter and jam|$goods, $goods2, $goods3|$fruits and $vegs|$name, please come home|yes or no|once upon a time|to whom it may concern|best wishes|kind regards|yours sincerely|thank you for your help|how are you|what a lovely day|the train is late again|nobody knows the answer|my heart will go on|we will win|never give up|time is money|better late than never|home sweet home""".replace("\n", "").replace("${day}s", "$days").split("|")  # fmt: skip


def phrase_of(rng: Random) -> str:
    """A word, a name or a few words, in small letters for the most part."""
    draw = rng.random()
    if draw < 0.34:
        return rng.choice(_WORDS if rng.random() < 0.7 else _ALL)
    if draw < 0.66:
        return write(rng, rng.choice(_SIGNS), Scene(rng)).lower()
    if draw < 0.78:
        return " ".join(rng.choice(_ALL) for _ in range(rng.choice((2, 2, 3, 4))))
    if draw < 0.88:
        return rng.choice([rng.choice(GIRLS), rng.choice(BOYS), rng.choice(lexicon.SURNAMES), rng.choice(lexicon.CITIES), f"{rng.choice(GIRLS)} {rng.choice(lexicon.SURNAMES)}"]).lower()  # fmt: skip
    if draw < 0.95:
        return foreign_name(rng).lower()
    return invented_word(rng)


_BIG = "{capital letters|capitals|upper case|uppercase|all caps|caps|block letters|big letters|block capitals|all capitals|all-caps|upper-case letters}"
_SMALL = "{small letters|lower case|lowercase|lower-case letters|all lowercase|little letters|lowercase letters|all small letters}"
_FOR = "{a poster|a sign|a form|a label|my door|the headline|a banner|a card|a T-shirt|the title page|a website|the box|a stamp|a name tag|the envelope|a list|my homework|a menu|a logo|a mail|the display}"
_UPPER = [
    f"{{In|in}} {_BIG}: \x01", f"{{I|i|we}} {{need|want|would like}} \x01 {{upper-cased|uppercased|capitalized|in {_BIG}}} for {_FOR}{{, please|}}", f"\x01 {{upper-cased|uppercased|in {_BIG}}}{{, please| please|}}", f"{{For {_FOR}: |}}\x01 in {_BIG}{{, please|}}", f"{{How does|How would}} \x01 look in {_BIG}", f"{{Write|Put|Type|Print|Spell|Set}} \x01 {{all |}}in {_BIG}{{ for {_FOR}|}}", f"{{Please |}}{{change|turn|convert|put|set|make}} \x01 {{in|}}to {_BIG}", "{Uppercase|uppercase|UPPERCASE|Upper case|CAPS|Caps|All caps|ALL CAPS|Capitals|caps lock|Caps lock on|Block letters|toUpperCase|upper}{:| -|,} \x01", "{Uppercase|uppercase|upper|toUpperCase}(\x01)", f"\x01 {{->|=>|to|as|into}} {_BIG}", f"{{The word|The text|The line|The name|The phrase}} \x01{{, but|, only|, please,|}} in {_BIG}", f"{{My boss|My teacher|The form|The printer|The office}} {{wants|needs}} \x01 in {_BIG}", "{Make|make} \x01 {LOUD|loud, in capitals|all caps|big, all letters|uppercase}", f"{{Say|Repeat|Give me|Show me|Return|Answer}} \x01 in {_BIG}{{, nothing else|, and nothing else|}}", f"{{Text|Sentence|Line|Word}}: \x01\n{{Now|Please|Write it|The same|Put it}} in {_BIG}", f"{{Rewrite|Retype|Copy}} {{this |}}in {_BIG}:{{ |\n}}\x01", f"{{Make|Change}} {{the following|this}} {{sentence|line|word|text}} {{upper case|to {_BIG}}}{{:|.}}{{ |\n}}\x01", f"\x01\n{{In {_BIG}|Uppercase|All caps|Upper case}}{{, please|}}", "{All letters|Every letter|Each letter} {of|in} \x01 {should be|as} {a capital|big|capital}",
]  # fmt: skip
_LOWER = [
    f"{{In|in}} {_SMALL}: \x01", f"{{I|i|we}} {{need|want|would like}} \x01 {{lower-cased|lowercased|in {_SMALL}}} for {_FOR}{{, please|}}", f"\x01 {{lower-cased|lowercased|in {_SMALL}}}{{, please| please|}}", f"{{Say|Write|Type|Print|Give me|Repeat}} {{the name |the word |the text |the line |}}\x01 in {_SMALL}", f"{{Please |}}{{change|turn|convert|put|set|make}} \x01 {{in|}}to {_SMALL}", "{Lowercase|lowercase|lower case|Lower case|no caps|No capitals|Small letters|toLowerCase|lower|caps off}{:| -|,} \x01", "{Lowercase|lower|lowercase|toLowerCase}(\x01)", f"\x01 {{->|=>|to|as|into}} {_SMALL}", f"{{Somebody|My father|The customer|My boss|He|She}} {{shouted|wrote|typed}} \x01. {{Write|Put|Say}} {{it|that}} in {_SMALL}", "{Stop shouting|No need to shout|Don't shout}: \x01{. Small letters please|, in small letters|, in lower case}", f"{{My caps lock is stuck|MY CAPS LOCK IS STUCK|Caps lock was on|My keyboard is broken}}. {{Write|Make|Put}} {{this|that}} in {_SMALL}: \x01", f"{{Text|Sentence|Line|Word}}: \x01\n{{Now|Please|Write it|The same|Put it}} in {_SMALL}", f"{{Rewrite|Retype|Copy}} {{this |}}in {_SMALL}:{{ |\n}}\x01", "{Remove|Take away} {all |}{the |}{capitals|capital letters} {from|in} \x01", f"{{How does|How would}} \x01 look in {_SMALL}", f"{{The word|The text|The name}} \x01{{, but|, please,|}} in {_SMALL}", "{Without|With no} {capitals|capital letters|big letters}: \x01", f"\x01\n{{In {_SMALL}|Lowercase|Lower case}}{{, please|}}",
]  # fmt: skip
_TITLE = [
    "{Title case|title case|Title Case|In title case|As a title|As a headline}: \x01", "{Write|Put|Give me|Type} \x01 {in title case|as a title|with a capital at the start of each word|with capital first letters}", "{Capitalize|Capitalise} {each|every} word{:| of} \x01", "{Capitalize|Make a capital of|Write a capital for} the first letter of {each|every} word: \x01", "\x01 {in title case|-> title case|to title case|, each word with a capital letter}", "{Every|Each} word {should begin|begins|starts} with a {capital|big} letter: \x01", "{Change|Convert|Turn} \x01 {in|}to title case", "{Make|Use} {big|capital} first letters: \x01",
]  # fmt: skip
_FIRST = ["{Capitalize|Capitalise} {only |just |}the first letter{ of the sentence|}: \x01", "{Begin|Start} {this|the sentence|the line} with a capital letter: \x01", "{Sentence case|In sentence case|sentence case}: \x01", "{Make|Write} the first letter {big|a capital|a capital letter}: \x01", "{Only the|Just the} first letter {big|in upper case|a capital}: \x01"]  # fmt: skip


def _asked(rng: Random, template: str, given: str) -> str:
    ask = write(rng, template)
    shown = rng.choice([given, given, f'"{given}"', f'"{given}"', f"'{given}'"]) if "(\x01" not in ask else rng.choice([given, f'"{given}"'])  # fmt: skip
    ask = ask[0].upper() + ask[1:] if rng.random() < 0.6 else ask
    ask = ask.replace("\x01", shown, 1)
    if ask[-1] not in ".?!\"')" and not ask.endswith(given):
        ask += "?" if ask.split()[0].lower() == "how" and rng.random() < 0.8 else rng.choice(["", "", ".", ".", "!", ", please.", " pls", " please"])  # fmt: skip
    if rng.random() < 0.06:
        return around(rng, ask)
    return ask


def case_turn(rng: Random) -> Turn:
    """A text in another case, or which of some words is in capitals."""
    if rng.random() < 0.08:
        return _which(rng)
    text = phrase_of(rng)
    kind = rng.choices(("upper", "lower", "title", "first"), (10, 8, 2.4, 1))[0]
    titled = " ".join(w[0].upper() + w[1:] for w in text.split())
    if kind == "upper":
        given = rng.choice([text, text, text, titled, text[0].upper() + text[1:]])
        answer, templates = text.upper(), _UPPER
    elif kind == "lower":
        given = rng.choice([text.upper(), text.upper(), titled, text[0].upper() + text[1:]])
        answer, templates = given.lower(), _LOWER
    elif kind == "title":
        given, answer, templates = rng.choice([text, text, text.upper()]), titled, _TITLE
    else:
        given, answer, templates = text, text[0].upper() + text[1:], _FIRST
    ask = _asked(rng, rng.choice(templates), given)
    return Turn("case", ask, answer, f"casing {ask}")


def _which(rng: Random) -> Turn:
    """Which of some words is written in capitals or in small letters, or whether a word is."""
    words = rng.sample(_ALL, rng.choice((3, 3, 4, 5)))
    i = rng.randrange(len(words))
    draw = rng.random()
    if draw < 0.3:
        word = words[0]
        big = rng.random() < 0.5
        shown = word.upper() if big else word
        ask = write(rng, f"{{Is|Is the word|Do you see: is}} {shown} {{written |}}in {{capitals|capital letters|upper case|all caps}}?")  # fmt: skip
        return Turn("case", ask, "Yes." if big else "No, it is in small letters.", f"casing {ask}")
    small = rng.random() < 0.3
    shown_words = [(w if n == i else w.upper()) if small else (w.upper() if n == i else w) for n, w in enumerate(words)]  # fmt: skip
    text = rng.choice([", ", ", ", " ", " - "]).join(shown_words)
    how = "{small letters|lower case|lowercase}" if small else "{capitals|capital letters|upper case|all caps|uppercase}"  # fmt: skip
    ask = write(rng, f"{{Which|Which one|Which word|Which of these|Which of these words|What word}} is {{written |}}in {how}{{: \x01|? \x01|, \x01?}}").replace("\x01", text)  # fmt: skip
    return Turn("case", ask, shown_words[i], f"casing {ask}")
