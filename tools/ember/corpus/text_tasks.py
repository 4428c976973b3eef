# ruff: noqa: E501, SIM905 - lines of text and word lists read better whole
"""Work on a text that the question gives: sorting, upper and lower case, spelling, letters, words, repeating."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from . import lexicon
from .facts import CAPITALS
from .grammar import write
from .sample import Turn
from .tasks import ORDINALS, in_words, plural_of
from .typed import typed
from .words import ADJECTIVES, BOYS, GIRLS, NOUNS, PLURALS, SLOTS, first_name, invented_word

_MORE = """above actor afternoon airport angry answer arrow artist autumn bag bakery balloon basket battle beach bean bed beer belt blanket blood board body bone bottle bowl box brain branch
brother butter button cabin cake camera camp candy carrot cave cellar cereal cheese chicken circle circus climb clock cloth coach coast coin color comb computer cookie cotton couch cousin cream crown
dance danger daughter dentist diamond dinner doctor dolphin dream dress duck eagle earth elephant engine evening farmer father fence field finger fire flame flute fog food fork fridge friend frog fruit
game gate ghost giraffe girl glove gold grape grass ground hair harbor heart hill hippo hole home hotel hour husband ice insect jam jelly juice jungle kangaroo kingdom kitchen kitten kiwi knee knight
lake language laugh law lesson library light lime lip lizard lobster lunch machine magic mango market melon metal meter minute money monkey morning mother motor mouth mud museum mushroom music nail name
needle nest night noise nose novel nurse oak oil olive oven owl page palace panda parent park party path peace peach pear pepper petal phone photo picture pie pig pilot pink pizza planet plant player pocket
poem pond pool prince princess puzzle queen question rabbit radio raven rice ring robot rock rocket room root salad school season seed shadow shark sheep shirt shop shower sister skirt sky snail snake soap
sock sofa soldier song soup spider spring square squirrel stairs station storm story straw street summer sun sweater swim sword tail tea teacher temple theater thunder ticket toast tomato tooth towel
toy travel trumpet tunnel turtle umbrella uncle valley vase village voice volcano wallet weather week whale wheel whisper winter woman wonder word worker world writer yellow yogurt zoo""".split()
WORDS = sorted(
    {
        *NOUNS,
        *PLURALS,
        *ADJECTIVES,
        *_MORE,
        *lexicon.COMMON,
        *"seven three eleven twelve hundred purple orange silver brown black white green blue fig date hello goodbye thanks please happy people because".split(),
    }
)
_PHRASES = [
    "$w and $v", "the $w is $a", "the $w is on the table", "i like the $w", "i love $p", "good morning", "good night", "hello world", "thank you", "please come in", "close the $w", "open the $w", "where is the $w", "my $w is $a",
    "$n has a $w", "the $a $w", "no $p today", "see you soon", "happy birthday", "quiet please", "this is a test", "we are here", "come with me $n", "the $w sat on the $v", "do not touch the $w", "a $w and two $p", "be quiet", "stop", "help", "$w", "$w $v",
    "look at the $w", "one $w and one $v", "what a day", "it is late", "go home", "the $c $w", "dear $n", "yes we can", "$n and $m like $p", "turn left at the $w", "never give up", "read the $w", "$x", "$x $w", "the $x is $a",
]  # fmt: skip


_ORDERED = [
    "{the|my|your|our|this|that|a} $a $w", "{the|my|your|our|this|no} $w", "$a $w", "$a $b $w", "{the|a|my} $w {and|or|with|without|of|in|on|under|near|for|from|to|by} {the|a|my} $v", "{where|how|who|what} {is|was} {the|my|your|our|this} $w", "{I|you|we|they} {like|want|need|see|have|love|found|lost|bought} {the|a|my|your|some} $w",
    "{the|my|our|this} $w {is|was|looks|became} {very |so |not |too |}$a", "{bring|give|show|send|tell|pass} me {the|a|your} $w", "{do not|never|always|please} {open|touch|eat|take|forget|close|use|read} {the|my|your} $w", "{is|was} {the|this|your} $w $a", "{have|did} you {seen|see|find|found|like|want} {my|the|a} $w", "{it|he|she|this} is {a|the|my} $a $w",
    "{one|two|three|four|ten|no|many|some|more} $p", "{hello|hi|dear|goodbye|thank you|welcome|good morning|sorry} $n", "$w, $v and $u", "{we|they} {went|go|walked|ran|drove} to the $s", "{when|why} {is|was} {the|your} $w $a", "{there is|here is|this is|that is|it is not} {a|the|my|your} $w", "$n {has|likes|wants|lost|sees} {a|the|my} $a $w", "{can|could|will} {you|we|I} {have|see|get|take|use} {the|a|some} $w",
]  # fmt: skip


_SAYINGS = [
    "please {call|write|help|tell|wake|pay} me {back|now|again|tomorrow|soon}", "{keep|stay|get|go} {off|out of|away from|near|behind} the {$p|$w|$s}", "{do not|don't|never|always} {feed|touch|forget|leave|lock|open|enter} the {$p|$w|$s}", "{the|our|my} {$s|$w} is {closed|open|full|empty|late|ready|$a}", "{we|they|you} {will|must|should|can} {come|go|be|stay|meet} {back|here|home|soon|together|outside}", "{happy|merry|good} {birthday|christmas|new year|luck|holidays|morning|night}{ to you| dear $n| everybody|}", "{no|free|last|first} {entry|exit|parking|smoking|coffee|tickets|seats}{ today|}",
    "{what|how|where|when} {is|was|are} {the|your|our|my} {$w|$p}", "i {think|know|hope|believe} {that |}{it is|you are|he is|we are} {right|wrong|late|ready|$a}", "{somebody|nobody|everyone} {knows|likes|wants|needs} {a|the|my} $w", "{hello|goodbye|thank you|sorry|welcome} {everyone|again|my friend|and come back|for everything}", "{it|this|that} {works|hurts|helps|looks good|is enough|is not true}", "$f for {sale|free|everyone|breakfast|two}", "{fresh|hot|cold|best} $f {here|today|in town|every day}",
]  # fmt: skip


def _sentence(rng: Random) -> str:
    """A sign, a wish, a remark in small letters."""
    noun = rng.choice(lexicon.NOUN_LIKE)
    env = {"w": noun, "p": plural_of(noun), "s": rng.choice(lexicon.PLACES), "a": rng.choice(lexicon.QUALITIES), "n": first_name(rng), "f": rng.choice(lexicon.FOODS)}  # fmt: skip
    return write(rng, rng.choice(_SAYINGS), env).lower()


def phrase(rng: Random) -> str:
    """A few words in lower case: a known phrase, one of common words, or any words at all."""
    draw = rng.random()
    if draw < 0.1:  # a sentence, as people write it
        return _sentence(rng)
    if draw < 0.3:
        return " ".join(lexicon.any_word(rng) for _ in range(rng.choice((1, 1, 2, 2, 3, 3, 4, 5, 6))))
    if draw < 0.75:
        nouns = rng.sample(lexicon.NOUN_LIKE, 3)
        env = {
            "w": nouns[0], "v": nouns[1], "u": nouns[2], "a": rng.choice(lexicon.QUALITIES), "b": rng.choice(lexicon.QUALITIES), "p": plural_of(nouns[0]), "n": first_name(rng).lower(), "s": rng.choice(lexicon.PLACES),
        }  # fmt: skip
        return write(rng, rng.choice(_ORDERED), env).lower()
    env = {
        "w": rng.choice(WORDS), "v": rng.choice(WORDS), "a": rng.choice([*ADJECTIVES, *SLOTS["color"]]), "p": rng.choice(list(PLURALS.values())),
        "n": first_name(rng).lower(), "m": first_name(rng).lower(), "c": rng.choice(SLOTS["color"]), "x": invented_word(rng),
    }  # fmt: skip
    return write(rng, rng.choice(_PHRASES), env)


def _quoted(rng: Random, text: str) -> str:
    return rng.choice([text, text, f'"{text}"', f"'{text}'"])


_KINDLY = "{||||please |can you |could you |would you |I want you to |I need you to |now |you should |can you please |will you |hey, |ok, }"


def change_case(rng: Random) -> Turn:
    """A text in upper or lower case, or with capitals."""
    text = phrase(rng)
    kind = rng.choices(("upper", "lower", "title"), (5, 4, 1))[0]
    if kind == "upper":
        given, answer = rng.choice([text, text, text, text.title(), text[0].upper() + text[1:]]), text.upper()
        how = "{in|with|using} {capital letters|capitals|upper case|uppercase|all caps|caps|big letters}"
        into = "{into|to} {upper case|uppercase|capital letters|capitals|all caps}"
        ask = rng.choice([
            f"{{Write|Say|Type|Print|Repeat|Show me|Give me}} $t {how}.", f"{{Write|Say|Type|Print|Repeat|Put}} {{this|this text|the following|the following text}} {how}: $t", f"{{Convert|Turn|Change|Make|Transform}} {{this|this text|the text|it|the following}} {into}: $t", f"{{Convert|Turn|Change|Transform}} $t {into}.",
            f"{{Convert|Change}} {into}: $t", "{Make this uppercase|Uppercase this|Capitalize all letters|Make it upper case|Capitalize every letter|All caps|Uppercase|Capitalize everything|To upper case|Make all letters capital}: $t", "{Shout|SHOUT} {this|the word|the words|}: $t", "SHOUT $t!", "{What is|What's} $t in {capital letters|capitals|upper case|uppercase|all caps}?", "{What is the uppercase version of|What is the upper case of|Give me the uppercase of} $t?", "Shout the word $t!", "{Write|Say} the word $t {in capitals|in capital letters|in caps}.", "Can you write $t in {capitals|capital letters|upper case}?",
            "{How does|How would} $t look in {capitals|upper case}?", f"{_KINDLY}{{put|write|type|turn|make|change|say|print|set|convert}} $t {{in|into|in|to}} {{all caps|all capitals|capitals|capital letters|upper case|uppercase|big letters|block letters|full caps}}{{, please| please| for me|}}{{.|?|}}",
            "{Uppercase|UPPERCASE|upper case|Caps|CAPS|All caps|ALL CAPS|Capitals|Capital letters|In caps|In capitals|In capital letters|Big letters|Loud|To caps|To uppercase}{| please|, please| this| it}{:|: | -} $t", "$t {in|->|to|=} {all caps|caps|capitals|capital letters|upper case|uppercase|CAPITALS}{, please| please|?|.|}", "$t. {Now in capitals|In caps, please|Make that uppercase|Write it in capitals|All caps please}{.|}",
            "{Give|Show|Write} me {the capitals of|the upper case of|the capital letters version of|in capitals} $t", "I {want|need|would like} $t in {capitals|capital letters|all caps|upper case}{.|, please.|}", f"{_KINDLY}{{capitalize|uppercase|shout}} {{all of|all letters of|the whole of|}} $t{{.|?|}}",
        ])  # fmt: skip
    elif kind == "lower":
        given, answer = rng.choice([text.upper(), text.upper(), text.upper(), text.title()]), text
        how = "{in|with|using} {small letters|lower case|lowercase|lowercase letters|little letters}"
        into = "{into|to} {lower case|lowercase|small letters|lowercase letters}"
        ask = rng.choice([
            f"{{Write|Say|Type|Print|Repeat|Show me|Give me|Put}} $t {how}.", f"{{Write|Say|Type|Print|Repeat|Put}} {{this|this text|the following|the following text}} {how}: $t", f"{{Convert|Turn|Change|Make|Transform}} {{this|this text|the text|it|the following}} {into}: $t", f"{{Convert|Turn|Change|Transform}} $t {into}.", f"{{Convert|Change}} {into}: $t",
            "{Make this lowercase|Lowercase this|Make it lower case|No capitals|Lowercase|To lower case|Make all letters small|Do not shout, write small|Remove the capital letters}: $t", "{What is|What's} $t in {small letters|lower case|lowercase}?", "{What is the lowercase version of|What is the lower case of|Give me the lowercase of} $t?", "Can you write $t in {small letters|lower case|lowercase}?", f"{_KINDLY}{{put|write|type|turn|make|change|say|print|set|convert}} $t {{in|into|to}} {{lower case|lowercase|small letters|all lowercase|no capitals|little letters|all small}}{{, please| please| for me|}}{{.|?|}}",
            "{Lowercase|lowercase|lower case|Lower case|Small letters|In small letters|No caps|All lowercase|To lowercase|To lower case|Without capitals|small}{| please|, please| this| it}{:|: | -} $t", "$t {in|->|to|=} {lower case|lowercase|small letters|lower|small}{, please| please|?|.|}", "$t. {Now in small letters|In lower case, please|Make that lowercase|Stop shouting, write it small|All lowercase please}{.|}",
            "I {want|need|would like} $t in {small letters|lower case|lowercase}{.|, please.|}", f"{_KINDLY}lowercase {{all of|all letters of|the whole of|}} $t{{.|?|}}",
        ])  # fmt: skip
    else:
        given, answer = text, " ".join(w[0].upper() + w[1:] for w in text.split())
        ask = "{Capitalize each word|Make the first letter of each word a capital|Write this in title case|Capitalize the first letter of every word}: $t"
    ask = write(rng, ask.replace("$t", "\x01"))
    asked = typed(rng, ask, content=True).replace("\x01", _quoted(rng, given))
    if rng.random() < 0.06 and kind == "upper":
        name = first_name(rng)
        asked, answer = (
            write(
                rng,
                f"{{Write my name in {{capitals|upper case|capital letters|uppercase}}. My name is {name}|My name is {name}. Write {{it|my name}} in {{capitals|upper case|capital letters|all caps}}|Can you write my name in {{capitals|uppercase|caps}}? {{I am|It is|My name is}} {name}}}.",
            ),
            name.upper(),
        )
    return Turn("case", asked, answer, f"case {asked}", None)


_SORT_WORDS = ["{Sort|Order|Arrange|Put|Alphabetize|List} {these words|these|the words|them|this list|the following words|the following|this} {alphabetically|in alphabetical order|from A to Z|by alphabet|a to z|in the order of the alphabet}: $t", "{Sort|Sort these|Sort these words|Sort the words|Sort this list|Alphabetize|Alphabetize these|Alphabetize this for me|Put in alphabetical order|Order alphabetically|Sort a-z|Sort from A to Z|Alphabetical order|Sort alphabetically|Arrange alphabetically|Sort words}: $t", "Sort $t.", "Sort $t {alphabetically|in alphabetical order|from A to Z}.", "{Put|Bring} $t {in|into} alphabetical order.", "$t\n{Sort these|Sort them|Sort this list|Sort these alphabetically|Put them in alphabetical order}.", "{Here are some words|I have the words|I have these words|My list is|I have}{:|} $t. {Sort them|Put them in alphabetical order|Give them to me alphabetically|Order them from A to Z|Sort them for me}.", "Can you {sort|alphabetize|order} {this|these|these words|this list}{ for me|}? $t", "Could you sort {this|these}: $t", "What is the alphabetical order of $t?"]  # fmt: skip
_SORT_UP = ["{order|sort|arrange|put|list} {from {lowest|smallest|least|low|small} to {highest|largest|most|high|big}|ascending|in rising order|low to high}{:|} $t", "{Sort|Order|Arrange|Put|List} {these numbers|these|the numbers|them|this list|the following numbers|this} {from small to large|from smallest to largest|in ascending order|in order|from low to high|from lowest to highest|by size|upwards|from least to greatest|numerically|by size, small first}: $t", "{Sort|Sort these numbers|Sort the numbers|Sort this list|Sort numbers|Put these in order|Put these numbers in order|Sort ascending|Sort in ascending order|Sort upwards|From smallest to largest|From small to big|Smallest first|Ascending order|Order from smallest to largest|Order by size}: $t", "Sort $t.", "{Sort|Arrange|Put|Order} $t {in ascending order|from smallest to largest|from small to large|in order}.", "$t\n{Sort these|Sort them|Sort these numbers|Put them in order}.", "{I have the numbers|My numbers are|I have|Here are numbers:} $t. {Sort them|Put them in order|Give them to me in order|Smallest first, please}.", "Can you {sort|order} {this|these|these numbers|this list}{ for me|}? $t"]  # fmt: skip
_SORT_DOWN = ["{order|sort|arrange|put|list} {from {highest|largest|most|high|big} to {lowest|smallest|least|low|small}|descending|in falling order|high to low}{:|} $t", "{Sort|Order|Arrange|Put|List} {these numbers|these|the numbers|them|this list|the following numbers|this} {from large to small|from largest to smallest|in descending order|from high to low|from highest to lowest|from biggest to smallest|downwards|from greatest to least|by size, biggest first}: $t", "{Sort descending|Sort in descending order|Sort downwards|From largest to smallest|From big to small|From biggest to smallest please|Biggest first|Largest first|Descending order|Order from largest to smallest|Sort from high to low|Sort from the biggest to the smallest}: $t", "{Sort|Arrange|Put|Order} $t {in descending order|from largest to smallest|from big to small|from high to low}.", "$t\n{Sort these, biggest first|Sort them in descending order|Largest first, please}."]  # fmt: skip
_REVERSE = ["{Reverse|Turn around|Flip} {this list|the list|these words|this|the order|these|the order of these words|it}: $t", "{Put|Write|Say|Give me|Read} {this list|these words|these|this|the list|the words} {backwards|in reverse|in reverse order|in the opposite order|from last to first|the other way round}: $t", "{Reverse order|Backwards|In reverse|Reverse|Reverse list}: $t", "Reverse $t.", "Write $t {in reverse order|backwards|in reverse}.", "$t\n{Reverse this|Now backwards|Reverse the list|In reverse order, please}."]  # fmt: skip


def _shown(rng: Random, items: Sequence[str], loose: bool = True) -> tuple[str, str]:
    """A list as the user types it, and the separator that the answer keeps."""
    draw = rng.random()
    if draw < 0.60 or not loose:
        return ", ".join(items), ", "
    if draw < 0.72:
        return " ".join(items), ", "
    if draw < 0.86:
        return ", ".join(items[:-1]) + " and " + items[-1], ", "
    if draw < 0.95:
        return ",".join(items), ", "
    return "; ".join(items), ", "


def _word_items(rng: Random, low: int = 2, high: int = 6) -> list[str]:
    draw, count = rng.random(), rng.randint(low, high)
    if draw < 0.15:
        pool = [w for w in WORDS if len(w) < 5]
        return rng.sample(pool, count)
    if draw < 0.6:
        return rng.sample(WORDS, count)
    if draw < 0.7:
        first = rng.choice("abcdefghlmprst")
        pool = [w for w in WORDS if w[0] == first]
        return rng.sample(pool, min(count, len(pool)))
    if draw < 0.85:
        return rng.sample(sorted({*GIRLS, *BOYS}), count)
    if draw < 0.9:
        return rng.sample(sorted(set(CAPITALS.values()) - {"Washington"}), count)
    return rng.sample("abcdefghijklmnopqrstuvwxyz", count)


def _numbers(rng: Random, low: int = 3, high: int = 6) -> list[str]:
    top = rng.choice((10, 20, 100, 100, 100, 1000))
    return [str(n) for n in rng.sample(range(top), rng.randint(low, min(high, 8)))]


def sorting(rng: Random) -> Turn:
    """A list in order, in reverse, or its first, last, largest, smallest or n-th."""
    kind = rng.choices(
        ("words", "up", "down", "reverse", "extreme", "first", "nth"), (6, 5, 3, 2.5, 2, 1, 2)
    )[0]
    if kind == "words":
        items = _word_items(rng, 3)
        answer, template = sorted(items, key=str.lower), rng.choice(_SORT_WORDS)
    elif kind in ("up", "down"):
        items = _numbers(rng)
        answer = sorted(items, key=int, reverse=kind == "down")
        template = rng.choice(_SORT_UP if kind == "up" else _SORT_DOWN)
    elif kind == "reverse":
        items = _word_items(rng, 3, 5) if rng.random() < 0.6 else _numbers(rng, 3, 5)
        if rng.random() < 0.2:
            start = rng.randint(1, 6)
            items = [in_words(n) for n in range(start, start + rng.randint(3, 5))]
        answer, template = items[::-1], rng.choice(_REVERSE)
    elif kind == "extreme":
        items = _numbers(rng, 2, 5)
        big = rng.random() < 0.5
        word = rng.choice(
            ["largest", "biggest", "highest", "greatest"] if big else ["smallest", "lowest", "least"]
        )
        value = (max if big else min)(items, key=int)
        ask = (
            write(
                rng,
                f"{{What is the {word} number|Which number is the {word}|Find the {word} number|What is the {word}|Which is the {word}|Give me the {word} number|The {word} number}}{{ here| in this list| of these|}}: \x01",
            )
            if rng.random() < 0.6
            else write(
                rng,
                f"{{What is the {word} of|Which is the {word} of|What's the {word} of|Which one is the {word} of}} \x01?",
            )
        )
        text, _ = _shown(rng, items)
        return Turn(
            "sorting",
            typed(rng, ask, True).replace("\x01", text),
            f"The {word} is {value}.",
            f"sorting {word} {items}",
            value,
        )
    elif kind == "first":
        items = _word_items(rng, 2, 4)
        last = rng.random() < 0.25
        value = (max if last else min)(items, key=str.lower)
        which = "last" if last else "first"
        ask = write(
            rng,
            f"{{Which|Which word|Which of these|What}} comes {which} in {{the alphabet|alphabetical order|the dictionary}}{{:|,}} \x01?",
        )
        text = (
            ", ".join(items)
            if len(items) > 2 and rng.random() < 0.5
            else ", ".join(items[:-1]) + " or " + items[-1]
        )
        return Turn(
            "sorting",
            typed(rng, ask, True).replace("\x01", text),
            f"{value[0].upper() + value[1:]} comes {which}.",
            f"sorting {which} {items}",
            value,
        )
    else:
        items = _word_items(rng, 3, 6)
        i = rng.randrange(len(items))
        which = "last" if i == len(items) - 1 and rng.random() < 0.7 else ORDINALS[i]
        thing = rng.choice(["word", "item", "one", "element"])
        ask = write(
            rng,
            f"{{What is the {which} {thing}|Which {thing} is {which}|Give me the {which} {thing}|Tell me the {which} {thing}|The {which} {thing}|Name the {which} {thing}}}{{ in this list| of this list| here| in the list|}}: \x01",
        )
        text, _ = _shown(rng, items, False)
        return Turn(
            "sorting",
            typed(rng, ask, True).replace("\x01", text),
            items[i],
            f"sorting {which} {items}",
            items[i],
        )
    text, _ = _shown(rng, items)
    ask = write(rng, template.replace("$t", "\x01"))
    if "\x01." in ask and text.endswith("."):
        ask = ask.replace("\x01.", "\x01")
    asked = typed(rng, ask, True)
    draw = rng.random()
    asked = (
        asked.rstrip(".")
        if draw < 0.2
        else asked + "."
        if draw < 0.35 and asked[-1] not in ".?\x01"
        else asked
    )
    asked = asked.replace("\x01", text)
    if draw > 0.85 and asked.endswith(text):
        asked += "."
    return Turn("sorting", asked, ", ".join(answer), f"sorting {kind} {items}", None)


def sorting_chat(rng: Random) -> list[Turn]:
    """A list to sort, and then the same list in reverse."""
    items = _numbers(rng, 3, 6) if rng.random() < 0.6 else _word_items(rng, 3, 5)
    numbers = items[0].isdigit()
    answer = sorted(items, key=int if numbers else str.lower)  # type: ignore[arg-type]
    ask = write(rng, rng.choice(_SORT_UP if numbers else _SORT_WORDS).replace("$t", "\x01")).replace(
        "\x01", ", ".join(items)
    )
    turns = [Turn("sorting", ask, ", ".join(answer), f"sorting chat {items}")]
    kind = rng.randrange(3)
    if kind == 0:
        turns.append(
            Turn(
                "sorting",
                write(
                    rng,
                    rng.choice(
                        [
                            "{Now|And now|Now do it|And|Please|now|ok now|and|then} {in reverse|backwards|in reverse order|the other way round|the other way around|from the end|turned around}{.|| please|?}",
                            "{Reverse|Turn around|Flip|reverse} {it|that|this|the list|them}{.|| now| please}",
                            "{Can you|Could you|Please} {reverse|turn around|flip} {it|that|the list|them}{?|}",
                        ]
                    ),
                ),
                ", ".join(answer[::-1]),
                "",
            )
        )
    elif kind == 1:
        turns.append(
            Turn(
                "sorting",
                write(rng, "{Which one is first|What is the first one|And the first one}?"),
                answer[0],
                "",
            )
        )
    else:
        turns.append(
            Turn(
                "sorting",
                write(rng, "{Which one is last|What is the last one|And the last one}?"),
                answer[-1],
                "",
            )
        )
    return turns


def letters(rng: Random) -> Turn:
    """Spelling, counting, first and last letters, words backwards."""
    kind = rng.choices(
        ("spell", "count", "first", "last", "back", "vowel", "often", "words", "nth"),
        (8, 3, 1.5, 1.5, 2.5, 0.8, 1.5, 1.5, 1),
    )[0]
    word = (
        rng.choice(WORDS)
        if rng.random() < 0.8
        else (invented_word(rng) if rng.random() < 0.6 else first_name(rng).lower())
    )
    dashes = "-".join(word)
    value: str | None = None
    if kind == "spell":
        ask = "{Spell|Spell the word|Please spell|Can you spell|Could you spell|How do you spell|How do I spell|How is|Spelling of|Spell for me|Spell out|Now spell|Spelling, please:|Give me the letters of|Break into letters:|One letter at a time:|Letter by letter:|With dashes, spell|Help me spell|I can't spell|I want to spell|What's the spelling of|Spell this word:|S-p-e-l-l|Please spell out|Say letter by letter:|How to spell|How should I spell|Write out the letters of|What is the spelling of|Tell me the letters of|What letters are in|Which letters are in the word|What are the letters in|Say the letters of} $w?"
        tail = rng.choice(
            [
                "",
                "",
                "",
                "",
                " letter by letter",
                " with dashes between the letters",
                " for me",
                " with dashes",
                " one letter at a time",
            ]
        )
        ask = write(rng, ask, {"w": "$w"})
        if ask.startswith("How is "):
            ask, tail = ask.replace("?", rng.choice([" spelled?", " spelt?", " written?"])), ""
        ask = ask.replace(
            "?", tail + ("." if ask.startswith(("Spell", "Please", "Write", "Tell", "Say")) else "?")
        )
        answer = f"{word} is spelled {dashes}."
    elif kind == "count":
        ask = "{How many letters are in|How many letters does|Count the letters of|Count the letters in|How many letters are there in|How long is|Number of letters in|How many letters make up|How many characters has|Letter count of|Letters in|How many letters do you need for|Tell me how many letters are in|What is the length of} {$w|the word $w}?"
        ask = write(rng, ask, {"w": "$w"})
        if ask.startswith("How many letters does"):
            ask = ask.replace("?", " have?")
        answer = " ".join(f"{letter}{i}" for i, letter in enumerate(word, 1)) + f": {len(word)} letters."
    elif kind == "first":
        ask = "{What is the first letter of|Which letter does|Tell me the first letter of|Give me the first letter of|First letter of|With which letter does|What's the first letter of|Initial of|Say the first letter of|What does|Name the first letter of} {$w|the word $w}?"
        ask = write(rng, ask, {"w": "$w"})
        if "does" in ask:
            ask = (
                ask.replace("?", rng.choice([" begin with?", " start with?"]))
                if not ask.startswith("With")
                else ask.replace("?", rng.choice([" begin?", " start?"]))
            )
        answer = f"{word} begins with {word[0]}."
    elif kind == "last":
        ask = "{What is the last letter of|Which letter does|Tell me the last letter of|Give me the last letter of|Last letter of|What letter does|Name the last letter of|What is the final letter of} {$w|the word $w}?"
        ask = write(rng, ask, {"w": "$w"})
        if "does" in ask:
            ask = ask.replace("?", rng.choice([" end with?", " end in?"]))
        answer = f"{dashes} ends with {word[-1]}."
    elif kind == "back":
        word = word[:7]
        ask = "{Write {the word |}$w backwards|Reverse {the word |}$w|Spell {the word |}$w backwards|What is $w backwards|Say $w backwards|Read $w backwards|Backwards: $w|What does $w look like backwards|Mirror $w|Write the letters of $w in reverse|From back to front: $w|Turn {the word |}$w around|Reverse the letters of $w|Flip the word $w|Read $w from right to left|What is $w spelled backwards|$w in reverse|$w backwards}?"
        answer = f"{'-'.join(word)} backwards is {'-'.join(word[::-1])}: {word[::-1]}."
    elif kind == "vowel":
        yes = word[0] in "aeiou"
        ask = "{Does {the word |}$w {start|begin} with a vowel|Is the first letter of $w a vowel}?"
        answer = f"{'Yes' if yes else 'No'}, {word} begins with {word[0]}."
    elif kind == "often":
        letter = rng.choice(word if rng.random() < 0.85 else "aeiorst")
        n = word.count(letter)
        ask = f"{{How often does {{|the letter }}{letter} {{appear|occur|come}} in|How many times is {{|the letter }}{letter} in|How many {letter}'s are in|How many {letter}s are there in|Count the letter {letter} in|How many times does {letter} appear in|How many letters {letter} are in}} {{$w|the word $w}}?"
        marks, found = [], 0
        for each in word:
            found += each == letter
            marks.append(f"{each}{found}" if each == letter else each)
        answer = f"{' '.join(marks)}: {n} {'time' if n == 1 else 'times'}."
    elif kind == "words":
        text = phrase(rng)
        while len(text.split()) < 2:
            text = phrase(rng)
        text = text[0].upper() + text[1:]
        count = len(text.split())
        ask = write(
            rng,
            "{How many words are in this sentence|Count the words|Count the words in this sentence|How many words are there|How many words does this have|Number of words|How many words|How many words are in this text}: \x01",
        )
        asked = typed(rng, ask, True).replace("\x01", _quoted(rng, text + rng.choice(["", "."])))
        answer = " ".join(f"{w}{i}" for i, w in enumerate(text.split(), 1)) + f": {count} words."
        return Turn("spelling", asked, answer, f"letters words {text}", None)
    else:
        i = rng.randrange(min(len(word), 6))
        ask = f"{{What is the {ORDINALS[i]} letter of|Tell me the {ORDINALS[i]} letter of|Which is the {ORDINALS[i]} letter in}} {{$w|the word $w}}?"
        answer = " ".join(f"{letter}{n}" for n, letter in enumerate(word[: i + 1], 1)) + f": {word[i]}."
    ask = write(rng, ask, {"w": "\x01"})
    if ask.startswith(
        (
            "Tell",
            "Give",
            "Name",
            "Count",
            "Write",
            "Reverse",
            "Say",
            "Turn",
            "Spell",
            "Flip",
            "Read",
            "Please",
        )
    ):
        ask = ask.rstrip("?.") + "."
    draw = rng.random()
    shown = (
        f'"{word}"'
        if draw < 0.3
        else f"'{word}'"
        if draw < 0.35
        else word.capitalize()
        if draw < 0.4 and kind == "spell"
        else word
    )
    asked = typed(rng, ask).replace("\x01", shown)
    answer = answer[0].upper() + answer[1:] if kind in ("spell", "first", "vowel") else answer
    return Turn("spelling", asked, answer, f"letters {kind} {ask.lower()} {word}", value)


def echo(rng: Random) -> Turn:
    """Say this, say it n times, quote it, join it."""
    text = phrase(rng)
    kind = rng.randrange(4)
    if kind == 0:
        count = rng.randint(2, 5)
        times = rng.choice(
            ["twice", "two times", "2 times", "2x"]
            if count == 2
            else [f"{in_words(count)} times", f"{count} times", f"{count}x"]
        )
        word = rng.choice([rng.choice(WORDS), rng.choice(WORDS), text])
        ask = write(
            rng,
            f"{{Say|Write|Repeat|Print|Type|Please say|Please repeat|Can you say|I want you to write|Give me|Output|Tell me|Echo|Could you write|Just say|Please type}} {{the word |}}\x01 {times}.",
        ).replace("the word the", "the")
        asked = typed(rng, ask, True).replace("\x01", _quoted(rng, word))
        return Turn("repeat", asked, " ".join([word] * count), f"echo {word} {count}")
    ask = (
        write(
            rng,
            "{Repeat after me|Say this|Repeat this|Please repeat|Write this again|Echo this|Repeat|Echo|Copy this|Say exactly this|Repeat exactly|Repeat the following|Say after me|Type this|Write exactly this|Copy}: \x01",
        )
        if kind < 3
        else write(rng, "{Say|Write|Repeat|Print|Just say|Please say|Reply with|Answer with|Type} \x01.")
    )
    if kind == 3 and rng.random() < 0.8:
        ask = ask.replace("\x01", '"\x01"')
    shown = text if rng.random() < 0.6 else text[0].upper() + text[1:] + rng.choice(["", ".", "!"])
    if ask.endswith("\x01."):
        shown = text
    return Turn("repeat", ask.replace("\x01", shown), shown, f"echo {shown}")
