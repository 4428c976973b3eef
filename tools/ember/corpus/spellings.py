# ruff: noqa: E501 - lines of text read better whole
"""Spelling: which of two is right, whether a word is written correctly, the word put right, names letter by letter."""

from __future__ import annotations

from random import Random

from . import lexicon
from .grammar import write
from .sample import Turn
from .text_tasks import WORDS
from .typed import around, typed

# right word: how people get it wrong
_WRONG = """receive: receeve receve|believe: beleive belive|friend: frend frined|their: thier|weird: wierd|piece: peice|achieve: acheive|field: feild|tomorrow: tommorow tommorrow tomorro|Wednesday: wednsday wendsday wednesdey|February: febuary feburary|Tuesday: teusday tuseday|Saturday: saterday saturdey|Thursday: thirsday thursdey|January: janury januery|August: augest|beautiful: beutiful beatiful beautifull|definitely: definately definitly|separate: seperate|necessary: neccessary necesary|until: untill|because: becuase becouse|which: wich|really: realy|always: allways|almost: allmost|finally: finaly|usually: usualy|different: diffrent differant|interesting: intresting|favorite: favourit favorit|business: buisness bussiness|calendar: calender|library: libary|restaurant: restarant resturant|chocolate: choclate chocolat|vegetable: vegtable|banana: bananna|potato: potatoe|tomato: tomatoe|orange: ornage|knife: nife|knee: nee|write: rite|wrong: rong|school: shool scool|teacher: teecher|people: peple poeple|children: childern|brother: brohter|daughter: dauhter daugther|neighbor: neighbur nieghbor|language: langauge|science: sience|scissors: sissors|exercise: excercise exersise|address: adress|across: accross|apartment: appartment|beginning: begining|bicycle: bycicle bicyle|camera: camara|careful: carefull|cemetery: cemetary|color: coler|committee: comittee|daily: dayly|dinner: diner|doctor: docter|eight: eigth|eighth: eigth|environment: enviroment|experience: experiance|family: familly|foreign: foriegn|forty: fourty|fourteen: forteen|garden: gardin|government: goverment|grammar: grammer|guard: gaurd|happened: happend|happy: hapy|height: heigth hight|hospital: hospitel|hungry: hungary|immediately: immediatly|island: iland|jewelry: jewlery|kitchen: kichen|knowledge: knowlege|leisure: liesure|letter: leter|lightning: lightening|machine: mashine|mountain: mountian|minute: minit|mirror: miror|money: mony|morning: mornig|museum: musem|mystery: mistery|nephew: nefew|niece: neice|ninety: ninty|noise: noice|occasion: ocasion occassion|occurred: occured|once: wonce|parallel: paralel|pharmacy: farmacy|picture: pictur|please: pleese|pleasant: plesant|possible: posible|possession: posession|pronunciation: pronounciation|purple: purpel|quiet: qiuet|question: queston|recommend: recomend reccomend|remember: rember|rhythm: rythm|sandwich: sandwhich|schedule: shedule|secret: seceret|secretary: secratary|sentence: sentance|similar: similiar|sincerely: sincerly|soldier: soilder|strength: strenght|successful: succesful|sugar: shugar|surprise: suprise|swimming: swiming|temperature: temprature|thought: thougt|through: throgh|together: togehter|tongue: tounge|truly: truely|twelfth: twelth|umbrella: umbrela|vacuum: vacum vaccum|village: vilage|visitor: visiter|weather: wether|window: windwo|winter: wintre|woman: womman|yesterday: yesturday|yellow: yelow|zebra: zeebra|elephant: elefant|giraffe: girafe|butterfly: buterfly|squirrel: squirel|whale: wale|animal: aminal|holiday: holliday|birthday: birthdey|breakfast: brekfast|cinema: sinema|cousin: cosin|enough: enogh|laugh: laff|autumn: autum|answer: anser|clothes: cloths|dictionary: dictonary|difficult: dificult|disappear: dissapear|eagle: eagel|engine: engin|favour: favuor|garage: garrage|guitar: gitar|journey: journy|juice: jiuce|medicine: medecine|pencil: pensil|pigeon: pidgeon|police: polise|present: presant|promise: promiss|rabbit: rabit|sausage: sausige|several: sevral|shoulder: sholder|special: speshal|station: stashun|stomach: stomack|straight: strait|theater: theatre|ticket: tiket|traffic: trafic|travel: travle|treasure: tresure|tunnel: tunel|valley: vally|violin: violen|voice: voise|welcome: wellcome|wonderful: wonderfull"""
_PAIRS = [(right, wrong.split()) for right, wrong in (row.split(": ") for row in _WRONG.split("|"))]
_PAIRS = [(right, wrong) for right, wrong in _PAIRS if right not in ("theater", "hungry", "clothes")]


def _broken(rng: Random, word: str) -> str:
    """The word with two letters swapped, one lost or one doubled."""
    for _ in range(20):
        i = rng.randrange(1, len(word) - 1)
        kind = rng.randrange(3)
        if kind == 0:
            made = word[:i] + word[i + 1] + word[i] + word[i + 2 :]
        elif kind == 1:
            made = word[:i] + word[i + 1 :]
        else:
            made = word[:i] + word[i] + word[i:]
        if made != word and made not in _KNOWN:
            return made
    return word + word[-1]


_KNOWN = frozenset(lexicon.COMMON)
_LONG = [w for w in lexicon.COMMON if len(w) > 4]


def _pair(rng: Random) -> tuple[str, str]:
    """A word, and the same word written wrongly."""
    if rng.random() < 0.6:
        right, wrong = rng.choice(_PAIRS)
        return right, rng.choice(wrong)
    right = rng.choice(_LONG)
    return right, _broken(rng, right)


def _quote(rng: Random, word: str) -> str:
    return rng.choice([word, f'"{word}"', f'"{word}"', f"'{word}'"])


def _up(text: str) -> str:
    return text[0].upper() + text[1:]


_WHO = "{my pupil|my son|my daughter|a student|my friend|my brother|somebody|the boss|my mother|the teacher|a child|she|he|the waiter|my colleague}"


def put_right(rng: Random) -> Turn:
    """A word that is written wrongly, and how it is written."""
    right, wrong = _pair(rng)
    w = _quote(rng, wrong)
    ask = write(rng, f"{{{{please |can you |could you |}}{{correct|fix|repair|check|improve}} {{the spelling|the spelling of|this word|the word|this|the mistake in|the typo in}}{{:|}} {w}{{, please| please|}}|{_WHO} {{wrote|writes|typed|spelled}} {w}. {{How is it {{written|spelled|spelt}} {{correctly|right|properly}}|What is {{right|correct|the right spelling}}|Please {{correct|fix}} it|What should it be|How should it be written}}?|{{how is|how do you spell|what is the right spelling of}} {w} {{correctly|properly|the right way|really}}?|{w} - {{is wrong|that is wrong|can't be right|looks wrong}}. {{What is right|How is it spelled|Correct it}}?|{{correct|right}} spelling of {w}?|{{there is a mistake|something is wrong|there is a typo}} in {w}. {{what is right|correct it, please|fix it}}{{?|.|}}|I {{always write|wrote|typed|keep writing}} {w}. {{What is it really|How is it right|Please correct me|What's the mistake}}?|{{spell check|spelling check|typo}}: {w}|{w} -> {{correct spelling|corrected|spelled right}}}}")  # fmt: skip
    if ask.endswith(("it?", "me?")) and "correct" in ask[-14:].lower():
        ask = ask[:-1] + "."
    return Turn("spelling", typed(rng, _up(ask), True), f"It is spelled {right}.", f"put right {right} {wrong}", right)  # fmt: skip


def which_right(rng: Random) -> Turn:
    """Which of two ways to write a word is right."""
    right, wrong = _pair(rng)
    a, b = (right, wrong) if rng.random() < 0.5 else (wrong, right)
    quote = rng.choice(['"{}"', "{}", "{}", "'{}'"])
    a, b = quote.format(a), quote.format(b)
    either = write(rng, f"{{{a} or {b}|{a} or {b}|{a}, {b}|{a} / {b}|{a} and {b}}}")
    ask = write(rng, f"{{{{Which|What|Which one|Which word|Which spelling}} is {{right|correct|spelled correctly|spelt correctly|written correctly|the right spelling|the correct spelling|the right one}}{{, |: |, is it |: is it }}{either}?|{{Is it|Do I write|Do you write|Do you spell it|Is the spelling|Should I write}} {a} or {b}?|{a} or {b}?|{{Which one do I write|How is it spelled|What do I write|How do you write it}}{{:|,}} {either}?|{{Choose|Pick|Tell me}} the {{right|correct}} {{spelling|word}}: {either}|I'm not sure: {a} or {b}?}}")  # fmt: skip
    return Turn("spelling", typed(rng, ask, True), f"{_up(right)} is right.", f"which right {right} {wrong}", right)  # fmt: skip


def is_right(rng: Random) -> Turn:
    """Whether a word is written correctly."""
    right, wrong = _pair(rng)
    good = rng.random() < 0.4
    w = _quote(rng, right if good else wrong)
    ask = write(rng, f"{{{{Is|Is the word}} {w} {{spelled|spelt|written}} {{correctly|right|the right way|properly}}?|Did I {{spell|write}} {w} {{correctly|right}}?|{{Is}} {w} {{right|correct|the right spelling|a mistake|wrong}}?|{{Is this word right|Is that right|Correct|Is this spelled correctly|Is there a mistake}}: {w}?|{w}: {{right or wrong|correct or not|is that right}}?|Can {{I|you}} write {w}{{ like this| like that|}}?|Have I spelled {w} correctly?}}")  # fmt: skip
    mistake = "mistake" in ask or ("wrong?" in ask and "right or wrong" not in ask)
    if good:
        answer = f"{'No' if mistake else 'Yes'}, {right} is right."
    else:
        answer = f"{'Yes' if mistake else 'No'}, it is spelled {right}."
    return Turn("spelling", typed(rng, ask, True), answer, f"is right {right} {wrong} {good}", right)


def by_letters(rng: Random) -> Turn:
    """A name or a word letter by letter, asked for in passing."""
    name = rng.random() < 0.6
    word = rng.choice(lexicon.FIRST_NAMES) if name else rng.choice([rng.choice(WORDS), rng.choice(lexicon.COMMON)])  # fmt: skip
    if name and rng.random() < 0.25:
        word = rng.choice([rng.choice(lexicon.SURNAMES), rng.choice(lexicon.CITIES)])
    if name:
        ask = write(rng, f"{{{{The man on the phone|The doctor|The bank|The clerk|My teacher|The hotel|She|He|The police officer|The nurse}} {{needs|wants|asked for|wants to have}} {{my|her|his|the}} name {{letter by letter|spelled|spelled out}}. {{It is|It's|The name is|I am called|My name is}} {word}.|{{How do you|How do I|Please|Can you|Could you}} spell {{the name|my name,|her name,|his name,|my son's name,}} {word}?|My name is {word}. {{Spell it|Please spell it|How is it spelled|Letter by letter, please|Can you spell it|Spell my name}}.|{{Spell|Write}} {word} {{letter by letter|with dashes between the letters|slowly|for the form}}{{.|, please.}}|{{My friend|My sister|My cat|The new girl|My teacher}} is called {word}. {{How do I spell that|Can you spell it for me|Spell that, please|How is that spelled}}?|I need the letters of {{my name|the name}}: {word}|{word}, letter by letter{{, please|}}{{.|}}}}")  # fmt: skip
    else:
        w = _quote(rng, word)
        ask = write(rng, f"{{Spell {w} {{with dashes|with hyphens|with dashes between the letters|letter by letter|one letter at a time|aloud}}{{.|, please.}}|{{Write|Say|Give me|Tell me}} {w} letter by letter.|{{Which|What}} letters {{make up|are in|does}} {w}{{ have|}}?|{{Break|Split|Cut|Take}} {w} into {{letters|its letters}}.|{w}, letter by letter{{, please|}}|{{Put|Write}} a dash between the letters of {w}.|I'm {{writing|looking for|using}} the word {w}. {{How is it spelled|Can you spell it|Spell it for me}}?|{{My son|My daughter|My class}} must learn {w}. {{Spell it|How is it spelled|Please spell it}}.|{{letters of|spelling of}} {w}{{, please|?|}}}}")  # fmt: skip
    ask = around(rng, ask) if rng.random() < 0.1 else ask
    return Turn("spelling", typed(rng, ask, True), f"{_up(word)} is spelled {'-'.join(word.lower())}.", f"by letters {ask.lower()}", "-".join(word.lower()))  # fmt: skip


def spelling_turn(rng: Random) -> Turn:
    """One of these questions."""
    return rng.choices((put_right, which_right, is_right, by_letters), (3, 2, 2, 3))[0](rng)
