# ruff: noqa: E501 - lines of text and word lists read better whole
"""The form of an answer: one word, one sentence, yes or no, a number, a case, a list, JSON; asked for in many ways."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from .chat import identity, small_talk, unknown
from .extras import LISTS, sizes, yes_no
from .grammar import write
from .knowledge import QUIZ, quiz, topic, word_lore
from .sample import Message, Sample, Turn
from .sums import asked_sum, story_sum
from .tasks import (
    NUMBERS,
    arithmetic,
    calendar,
    compare,
    counting,
    fact,
    in_words,
    opposite,
    plural,
    word_problem,
)
from .typed import lower_first, typed
from .words import NOUNS, PLURALS, SLOTS, first_name, invented_word

Maker = Callable[[Random], Turn]


@dataclass(frozen=True)
class Form:
    """Instructions for the system prompt, ones that stand beside a question, ones that go before it with a colon,

    what the form makes of a turn (None where it does not apply), and the turns to draw from.
    """

    system: list[str]
    beside: list[str]
    before: list[str]
    apply: Callable[[Turn], str | None]
    turns: list[Maker]


def _m(role: str, content: str) -> Message:
    return {"role": role, "content": content}


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def first_sentence(text: str) -> str:
    """The first sentence, without what comes after it."""
    return re.split(r"(?<=[.!?])\s", text, maxsplit=1)[0]


def _word(turn: Turn) -> str | None:
    value = (turn.value or "").rstrip(".")
    return (
        _capital(value)
        if value and " " not in value and "," not in value and turn.answer.count("=") < 2
        else None
    )


def _bare(turn: Turn) -> str | None:
    value = (turn.value or "").rstrip(".")
    return _capital(value) if value and turn.answer.count("=") < 2 else None


def _number(turn: Turn) -> str | None:
    value = turn.value or ""
    if value in NUMBERS:
        value = str(NUMBERS.index(value))
    return value if value.isdigit() and turn.answer.count("=") < 2 else None


def _sentence(turn: Turn) -> str | None:
    text = first_sentence(turn.answer)
    if "\n" in text or text[-1:] not in ".!" or len(text.split()) < 2:
        return None
    return text


def _yes_or_no(turn: Turn) -> str | None:
    words = re.findall(r"\b(yes|no)\b", turn.answer.lower())
    return _capital(words[0]) if words and turn.skill == "yes or no" else None


def parity_question(rng: Random) -> Turn:
    a, b = rng.randint(0, 99), rng.randint(0, 99)
    kind = rng.randrange(3)
    if kind == 0:
        word = rng.choice(("even", "odd"))
        true = (a % 2 == 0) == (word == "even")
        ask, fact_ = f"Is {a} {{|an }}{word}{{| number}}?", f"{a} is {'odd' if a % 2 else 'even'}."
        ask = rng.choice([f"Is {a} {word}?", f"Is {a} an {word} number?"])
    elif kind == 1:
        a, b = (a, b) if a != b else (a, a + 1)
        word = rng.choice(("bigger", "larger", "greater", "more"))
        true = a > b
        ask, fact_ = f"Is {a} {word} than {b}?", f"{a} is {'bigger' if true else 'smaller'} than {b}."
    else:
        a, b = rng.randint(0, 12), rng.randint(0, 12)
        said = a + b if rng.random() < 0.5 else a + b + rng.choice((-2, -1, 1, 2))
        true = said == a + b
        ask, fact_ = f"Is {a} + {b} {{|equal to }}{said}?", f"{a} + {b} = {a + b}."
        ask = rng.choice(
            [f"Is {a} + {b} = {said}?", f"Is {a} plus {b} equal to {said}?", f"Does {a} + {b} make {said}?"]
        )
    return Turn(
        "yes or no", ask, f"{'Yes' if true else 'No'}, {fact_}", f"yes or no {ask}", "yes" if true else "no"
    )


def yes_no_question(rng: Random) -> Turn:
    """A question to be answered with yes or no, of which the answer begins with the verdict."""
    draw = rng.random()
    if draw < 0.35:
        return parity_question(rng)
    if draw < 0.65:
        asks, answer, value = rng.choice([q for q in QUIZ if q[2] in ("yes", "no")])
        ask = _capital(write(rng, "{" + asks + "}")) + "?"
        return Turn("yes or no", ask, answer, f"quiz {ask.lower()}", value)
    turn = yes_no(rng)
    verdict = "yes" if turn.answer.endswith("yes.") else "no"
    statement = turn.answer.rsplit(", so ", 1)[0]
    statement = statement if statement.split()[0] in PROPER else lower_first_article(statement)
    return Turn("yes or no", turn.ask, f"{_capital(verdict)}, {statement}.", turn.key, verdict)


PROPER = frozenset(w for w in ("People",))


def lower_first_article(text: str) -> str:
    first = text.split()[0]
    return text[0].lower() + text[1:] if first in ("A", "An", "The", "People") else text


def _json(key: str) -> Callable[[Turn], str | None]:
    def apply(turn: Turn) -> str | None:
        value = (turn.value or "").rstrip(".")
        if not value or turn.answer.count("=") > 1:
            return None
        return json.dumps({key: int(value) if value.isdigit() else value}, ensure_ascii=False)

    return apply


_VALUES: list[Maker] = [
    asked_sum,
    fact,
    fact,
    quiz,
    quiz,
    quiz,
    opposite,
    plural,
    calendar,
    compare,
    counting,
    word_lore,
    arithmetic,
]
_SENTENCES: list[Maker] = [
    fact,
    fact,
    quiz,
    topic,
    topic,
    topic,
    opposite,
    plural,
    calendar,
    sizes,
    arithmetic,
    word_lore,
    yes_no_question,
    word_problem,
    story_sum,
    identity,
    small_talk,
    unknown,
]

WORD = Form(
    [
        "{Answer|Reply|Respond}{| always| only} {in|with|using} {one word|a single word|one single word|just one word|exactly one word|only one word}.",
        "{Use|Give|Say} {one word|a single word|only one word|just one word}{| only| as your answer|, nothing more| for every answer}.",
        "{One word|One-word|Single word|Single-word} {answers only|answers|replies only|answers, please}.",
        "You {must answer|answer|always answer|may only answer|reply} {with|in} {one word|exactly one word|a single word}{|, no explanations|, nothing else}.",
        "{Be brief|Be very short|Be extremely short|Keep it short}{.|:} {One word|Only one word|Just one word}{|, please}.",
        "{Answer|Reply} {in|with} one word{|, without explanation|, no sentence|, nothing else|, no punctuation}.",
        "Your answer {must be|is|should be|has to be} {one word|a single word|exactly one word}{| long}.",
        "All your answers {are|must be} one word{| long}.",
        "Do not write more than one word.",
        "Limit your {answer|answers|reply} to one word.",
    ],
    [
        "{One word only|One word|In one word|In one word, please|Answer in one word|Answer with one word|One word answer|A single word, please|Just one word|Use one word|Only one word|Reply in a single word|Answer in a single word|Give me one word|Give me a one-word answer|With one word|Only the word}."
    ],
    [
        "{In one word|One word|Answer in one word|Answer with one word|With one word|In a single word|Give me one word|In just one word|Using one word|One word answer}",
        "Give me a one-word answer",
    ],
    _word,
    _VALUES,
)
SENTENCE = Form(
    [
        "{Answer|Reply|Respond}{| always| only} {in|with|using} {one sentence|a single sentence|one short sentence|one full sentence|exactly one sentence|a full sentence|a complete sentence|just one sentence|only one sentence}{|, please}.",
        "{Use|Write|Give} {one sentence|a single sentence|exactly one sentence|one short sentence}{| only| for every answer| per answer}.",
        "{One sentence|A single sentence|One-sentence answers}{| only| please|, please}{.|!}",
        "You {answer|always answer|must answer|reply to} {every question |}{in|with} {one sentence|exactly one sentence|a single sentence}.",
        "{Answer|Reply|Speak|Respond|Write} in {full|complete|whole} sentences.",
        "{Keep it|Keep your answers|Limit yourself|Stick} to {one sentence|a single sentence}.",
        "{Answer|Reply} {briefly|shortly} in {a|one} sentence.",
        "Your answer {must be|is|should be} one sentence{| long}.",
        "Never write more than one sentence.",
        "{Please use|Please answer in|Please reply with} one sentence.",
    ],
    [
        "{One sentence only|In one sentence|In one sentence, please|Answer in one sentence|One sentence, please|Use one sentence|A single sentence, please|Answer in a full sentence|Use a complete sentence|Just one sentence|Answer with one sentence|Keep it to one sentence|Reply in one sentence}."
    ],
    [
        "{In one sentence|One sentence|In a sentence|In a single sentence|In one short sentence|Answer in one sentence|One sentence please|Using one sentence|In a few words but one sentence}"
    ],
    _sentence,
    _SENTENCES,
)
YES_NO = Form(
    [
        '{Answer|Reply|Respond}{| only| always} {with|using|} {yes or no|yes or no only|a yes or a no|only yes or no|"yes" or "no"}{|, nothing else|, no explanation}.',
        "Say {only |just |}yes or no.",
        "You {only|may only|can only} {say|answer} yes or no.",
        "Yes or no {answers only|answers|only}.",
        "One word: yes or no.",
    ],
    [
        "{Yes or no|Answer yes or no|Only yes or no|Just yes or no|Yes or no only|Answer with yes or no|Just say yes or no}{.|?|, please.}"
    ],
    ["{Yes or no|Answer yes or no|True or not|Just yes or no|Only yes or no|Tell me yes or no}"],
    _yes_or_no,
    [yes_no_question],
)
NUMBER = Form(
    [
        "{Answer|Reply|Respond} {with|using} {a number|only a number|just a number|numbers only|digits only|only the number|a single number}{|, nothing else}.",
        "{Give|Write|Say|Output} {only|just} {the|a} number.",
        "Only {the number|numbers|digits}{|, please}.",
        "Your answer is a number and nothing else.",
        "Output only the number{|, no words}.",
    ],
    [
        "{Just the number|Only the number|The number only|Just a number|Number only|Answer with a number|Give me only the number|Only digits}{.|, please.}"
    ],
    ["{Just the number|Only the number|As a number|Just the number please|Give me the number|In digits}"],
    _number,
    [arithmetic, asked_sum, asked_sum, story_sum, fact, quiz, compare, calendar],
)
BARE = Form(
    [
        "{Give|Write|Output|Say|Print} {only|just} the {answer|final answer|result|solution}{|, nothing else|, no sentence|, no explanation|, no other words}.",
        "{Only|Just} {output |give |}the {final |}{answer|result}{, nothing else|, please|}.",
        "{Be as brief as possible|Be very brief|Be as short as possible|Shortest answer possible|As short as possible}.",
        "No {explanations|full sentences|sentences|extra words}{|, just the answer|, only the answer}.",
        "{Answer|Reply} {as briefly|as shortly} as {possible|you can}.",
        "Answer in {at most|no more than} {two|three} words.",
    ],
    [
        "{Just the answer|Only the answer|Answer only|Nothing but the answer|Only the answer, please|As short as possible|Keep it short|No explanation|Be brief}."
    ],
    ["{Just the answer|Short answer|In short|Briefly|Answer only}"],
    _bare,
    _VALUES,
)
UPPER = Form(
    [
        "{ANSWER IN CAPITAL LETTERS|ALWAYS WRITE IN CAPITALS|USE CAPITAL LETTERS|WRITE IN CAPS|ONLY CAPITAL LETTERS}.",
        "{Answer|Reply|Respond|Write|Speak|Talk}{| always| only} in {capital letters|capitals|all caps|caps|upper case|uppercase|uppercase letters|block capitals|capital letters only|all capital letters|big letters}.",
        "You {only|always} {speak|write|answer|talk} in {uppercase|upper case|capital letters|capitals|caps}.",
        "{Use|Write} {capital letters only|only capital letters|only upper case|all caps|nothing but capitals}{|, please}.",
        "Caps lock is on: write everything in capitals.",
        "{Shout|Shout everything|Shout, please|SHOUT}.",
    ],
    [
        "{Answer in caps|In capital letters, please|In capitals|All caps|In upper case|Use capital letters|Answer in capitals|Write it in capitals|In uppercase|Answer in capital letters|ALL CAPS|Shout it}."
    ],
    ["{In capital letters|In capitals|In all caps|In upper case|Answer in capitals|In caps|Shouting}"],
    lambda t: t.answer.upper(),
    _SENTENCES,
)
LOWER = Form(
    [
        "{Answer|Reply|Respond|Write|Speak|Talk}{| always| only} in {lower case|lowercase|small letters|all lowercase|lowercase letters|lower case only|only small letters}.",
        "You {only|always} {speak|write|answer} in {lowercase|lower case|small letters}.",
        "{no capital letters|never use capital letters|no capitals|do not use capitals|no capitals please|don't use any capital letters|no upper case letters|avoid capital letters}{| ever|, please|}.",
        "{Use|Write} {small letters only|only small letters|only lower case|lowercase only}.",
    ],
    [
        "{Answer in lower case|In small letters|All lowercase|In lower case|Use small letters|No capitals|Answer in lowercase, please}."
    ],
    ["{In small letters|In lower case|In lowercase|without capitals}"],
    lambda t: t.answer.lower(),
    _SENTENCES,
)


def _json_form(rng: Random) -> Form:
    key = rng.choice(
        [
            "answer",
            "answer",
            "result",
            "result",
            "value",
            "reply",
            "output",
            "city",
            "color",
            "word",
            "number",
            "text",
            "solution",
            "response",
            rng.choice(NOUNS),
        ]
    )
    k = rng.choice([key, f'"{key}"', f"'{key}'"])
    o = rng.choice([f'\x01"{key}": ...\x02', f'\x01"{key}": "..."\x02', f'\x01"{key}": answer\x02'])
    return Form(
        [
            f"{{Answer|Reply|Respond}}{{| always| only}} {{in|with|as}} {{JSON|json|a JSON object|valid JSON}} with {{the|a|one}} key {k}.",
            f"{{Answer|Reply|Respond}} {{as|in|with}} {{JSON|json}}: {o}",
            f"{{Answer|Reply}} {{in|as}} {{JSON|json}}{{.|,}} {{Use|use}} the key {k}.",
            f"You {{output|write|answer in|speak}} JSON only. {{Use the key|The key is|Key:}} {k}.",
            f"{{Return|Output|Print}} {{a JSON object|JSON|only JSON}} with {{the|one}} {{key|field}} {k}.",
            f"Put {{your|the|every}} answer into {{a JSON object|JSON}} under the key {k}.",
        ],
        [
            f"{{Answer as JSON|Answer in JSON|Reply in JSON|JSON, please|As JSON|Give me JSON|Return JSON}} with {{the|a}} key {k}.",
            f"{{Answer with|Reply with|Use the format|Answer as|Format:}} {o}",
            f"{{Give the answer|Answer}} as {{a JSON object|JSON}}, key {k}.",
        ],
        [
            f"{{Answer as JSON|As JSON|In JSON|JSON please|Please answer as JSON}} with {{the|a}} key {k}",
            f"{{Reply|Answer}} with {o}",
        ],
        _json(key),
        _VALUES,
    )


FORMS: list[tuple[float, Form | Callable[[Random], Form]]] = [
    (5, WORD), (5, SENTENCE), (2.5, YES_NO), (1.5, NUMBER), (2.5, BARE), (2.5, UPPER), (2.2, LOWER), (2.5, _json_form),
]  # fmt: skip
_LEADS = [
    "",
    "",
    "",
    "You are a helpful assistant. ",
    "You are Ember. ",
    "You are an assistant. ",
    "You are Ember, a small helpful assistant. ",
]


def _draw(rng: Random, form: Form) -> tuple[Turn, str]:
    while True:
        turn = rng.choice(form.turns)(rng)
        text = form.apply(turn)
        if text is not None and not turn.held_out:
            return turn, text


def _system(rng: Random, form: Form) -> str:
    text = write(rng, rng.choice(form.system)).replace("\x01", "{").replace("\x02", "}")
    draw = rng.random()
    if draw < 0.12:
        text = text.rstrip(".")
    if draw < 0.10 and "{" not in text and '"' not in text:
        text = text.lower()
    if 0.2 < draw < 0.28 and "please" not in text.lower():
        text = "Please " + text[0].lower() + text[1:] if text[1:2].islower() else text
    if 0.3 < draw < 0.35:
        text = (
            "Always " + text[0].lower() + text[1:]
            if text.startswith(("Answer", "Reply", "Respond")) and "always" not in text
            else text
        )
    return rng.choice(_LEADS) + text


def _beside(rng: Random, form: Form, ask: str) -> str:
    """The question with the instruction in the same message."""
    if rng.random() < 0.35:
        lead = write(rng, rng.choice(form.before)).replace("\x01", "{").replace("\x02", "}")
        lead = lead.lower() if rng.random() < 0.15 and "{" not in lead and '"' not in lead else lead
        return lead + rng.choice([": ", ": ", ", ", ". "]) + (lower_first(ask) if rng.random() < 0.6 else ask)
    instruction = write(rng, rng.choice(form.beside)).replace("\x01", "{").replace("\x02", "}")
    instruction = instruction.rstrip(".") if rng.random() < 0.15 else instruction
    instruction = (
        instruction.lower()
        if rng.random() < 0.1 and "{" not in instruction and '"' not in instruction
        else instruction
    )
    ask = ask if ask[-1] in "?.!=:" else ask + rng.choice(["?", "."])
    return rng.choice(
        [
            f"{ask} {instruction}",
            f"{ask} {instruction}",
            f"{instruction.rstrip('.')}. {ask}",
            f"{ask}\n{instruction}",
        ]
    )


def form_chat(rng: Random) -> Sample:
    """One to three questions, answered in the form that the system prompt, or each question itself, asks for."""
    drawn = rng.choices([f for _, f in FORMS], [w for w, _ in FORMS])[0]
    form = drawn if isinstance(drawn, Form) else drawn(rng)
    messages: list[Message] = []
    turns: list[Turn] = []
    if rng.random() < 0.6:
        messages.append(_m("system", _system(rng, form)))
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            turn, text = _draw(rng, form)
            turns.append(turn)
            messages += [_m("user", turn.ask), _m("assistant", text)]
    else:
        if rng.random() < 0.15:
            messages.append(_m("system", rng.choice(_LEADS[3:]).strip()))
        if rng.random() < 0.2:
            other = rng.choice((fact, quiz, opposite, arithmetic))(rng)
            turns.append(other)
            messages += [_m("user", other.ask), _m("assistant", other.answer)]
        turn, text = _draw(rng, form)
        turns.append(turn)
        messages += [_m("user", _beside(rng, form, turn.ask)), _m("assistant", text)]
    held = any(t.held_out for t in turns)
    return Sample("form", messages=messages, hint={"held_out": str(int(held))})


# --- lists ---

_STYLES: dict[str, tuple[list[str], list[str], Callable[[list[str]], str]]] = {
    "bullets": (["{as|in} {a bullet list|a bulleted list|bullet points|bullets|a list with bullets}", "with bullet points", "using bullet points"], ["{Bullets, please|Use bullet points|Bullet points, please|As a bullet list|Bulleted list|Bullets please}", "{Answer|Reply|Format your answer|Always answer} {with|in|as} {bullet points|a bullet list|bullets}"], lambda items: "\n".join(f"- {i}" for i in items)),
    "numbered": (["{as|in} a numbered list", "with numbers", "numbered", "in a list with numbers"], ["{Number them|As a numbered list|Numbered list, please|Use a numbered list|Number the items}", "{Answer|Reply|Format your answer|Always answer} {with|in|as} {a numbered list}"], lambda items: "\n".join(f"{n}. {i}" for n, i in enumerate(items, 1))),
    "lines": (["one {on each|per} line", "each on its own line", "on separate lines", "line by line", "one below the other", "{each|every one} on a new line"], ["{One on each line|One per line|Each on its own line|Separate lines, please|A new line for each}", "{Write|Put} {one item|each item} {on each line|per line}"], lambda items: "\n".join(items)),
    "commas": (["separated by commas", "comma separated", "{with|using} commas between them", "in one line with commas"], ["{Separated by commas|Comma separated|With commas|Commas only|Comma separated, nothing else}", "Separate items with commas"], lambda items: ", ".join(items)),
    "json": (["as a JSON {list|array}", "as JSON", "in a JSON {list|array}"], ["{As a JSON array|JSON array, please|As a JSON list|As JSON}", "{Answer|Reply} {with|as} a JSON {array|list}"], lambda items: json.dumps([int(i) if i.isdigit() else i for i in items], ensure_ascii=False)),
}  # fmt: skip
_ITEM_TEXTS = [
    *NOUNS,
    *PLURALS.values(),
    *SLOTS["fruit"],
    "milk",
    "bread",
    "eggs",
    "tea",
    "coffee",
    "juice",
    "water",
    "rice",
    "soap",
    "red",
    "blue",
    "green",
    "sun",
    "moon",
    "star",
    "one",
    "two",
    "three",
]


def _own_items(rng: Random) -> list[str]:
    count, draw = rng.randint(2, 6), rng.random()
    if draw < 0.75:
        return rng.sample(sorted(set(_ITEM_TEXTS)), count)
    if draw < 0.85:
        return [first_name(rng) for _ in range(count)]
    if draw < 0.93:
        return [str(rng.randint(0, 99)) for _ in range(count)]
    return [invented_word(rng) for _ in range(count)]


def list_chat(rng: Random) -> Sample:
    """Things of a kind, or the user's own items, as a list of some style."""
    style = rng.choices(list(_STYLES), (5, 4, 3, 2, 2.5))[0]
    inline, beside, show = _STYLES[style]
    how = write(rng, rng.choice(inline))
    also = write(rng, rng.choice(beside)) + "."
    also = also.rstrip(".") if rng.random() < 0.2 else also
    system = ""
    if rng.random() < 0.42:  # the user's own
        items = _own_items(rng)
        text = rng.choice(
            [", ".join(items), ", ".join(items[:-1]) + " and " + items[-1], ", ".join(items) + "."]
        )
        noun = {
            "bullets": "a bullet list",
            "numbered": "a numbered list",
            "lines": "separate lines",
            "commas": "a comma separated list",
            "json": "a JSON array",
        }[style]
        asks = [
            f"{{Make|Write|Create|Give me}} {noun}{{| of| from| with}}: {text}",
            f"{{Turn|Convert|Change|Make}} {{this|these|these words|the following}} {{into|to}} {noun}: {text}",
            f"{{Write|Put|Show|Print|Format|List}} {{these|this|these things|these words|these items|the following}} {how}: {text}",
            f"{text}\n{{Make|Please make}} this {noun}.",
            f"{{Put|Write|Return|Show}} {text.rstrip('.')} {how}.",
            f"Make {{this |}}a list: {text} {also}",
        ]
        if style == "numbered":
            asks.append(
                f"{{Number|Please number}} {{these|these items|these words|this list|the following}}: {text}"
            )
        ask = write(rng, rng.choice(asks))
    else:
        kind = rng.choice(list(LISTS))
        full = LISTS[kind]
        if kind in ("days", "months", "seasons", "planets", "continents") and rng.random() < 0.6:
            items = full
            of = {
                "days": "of the week",
                "months": "of the year",
                "seasons": "of the year",
                "planets": "of the solar system",
                "continents": "of the world",
            }[kind]
            ask = f"{{What are|List|Name|Write down|Give me|Write a list with|Tell me|I need}} {{the|all the|all}} {kind}{{| {of}}}"
        elif rng.random() < 0.2:
            count = 3
            items = full[:count]
            ask = f"{{Name|List|Give me|Tell me}} {{some|a few}} {kind}"
        else:
            count = rng.randint(2, min(7, len(full)))
            items = full[:count]
            number = rng.choice([in_words(count), in_words(count), str(count)])
            ask = f"{{Name|List|Tell me|Give me|Write down|I need|Can you list|Show me|I want|What are|Write}} {number} {kind}"
            if rng.random() < 0.15:
                ask = f"{number.capitalize()} {kind}"
            elif rng.random() < 0.15:
                ask = f"{{Give me|Write|Make|I need|Create}} {{a list of {number} {kind}|a list with {number} {kind}}}"
        ask = write(rng, ask)
        draw = rng.random()
        if rng.random() < 0.12 and style != "json":
            items = [i[0].upper() + i[1:] for i in items]
            also, draw = also, draw
        if draw < 0.35:
            noun = {"bullets": "bulleted list", "numbered": "numbered list"}.get(style)
            if noun and " list " not in ask and rng.random() < 0.4:
                ask = (
                    write(rng, f"{{Give me|Write|Make|Create}} a {noun} {{of|with}} ")
                    + re.sub(
                        r"^(What are|List|Name|Write down|Give me|Write a list with|Tell me|I need|Can you list|Show me|I want|Write) ",
                        "",
                        ask,
                    )
                    + "."
                )
            else:
                ask = f"{ask}{rng.choice([' ', ', ', ' '])}{how}."
        elif draw < 0.65:
            ask = f"{ask}. {also}"
        else:
            system = rng.choice(_LEADS) + also
            ask = ask + "."
        ask = ask.replace("..", ".")
        if ask.startswith(("What", "Can")) and ask.count(".") == 1:
            ask = ask.rstrip(".") + "?"
        if not any(i[0].isupper() for i in items):
            ask = typed(rng, ask)
    if not system and rng.random() < 0.08:
        system = (
            rng.choice(["Answer as a list.", "Format your answer as a list.", "Use lists."])
            if style == "bullets"
            else ""
        )
    items = [i[0].upper() + i[1:] if i[:1].isupper() else i for i in items]
    messages = [_m("system", system)] if system else []
    messages += [_m("user", ask), _m("assistant", show(items))]
    turn = Turn("lists", ask, "", f"list form {style} {ask.lower()}")
    return Sample("lists", messages=messages, hint={"held_out": str(int(turn.held_out))})


def plain_list_system(rng: Random) -> Sample:
    """ "Answer as a list", with no style named: bullets."""
    kind = rng.choice(list(LISTS))
    count = rng.randint(2, min(5, len(LISTS[kind])))
    items = LISTS[kind][:count]
    ask = write(rng, f"{{Name|Tell me|Give me|What are}} {rng.choice([in_words(count), str(count)])} {kind}")
    if kind in ("days", "seasons", "months", "planets", "continents") and rng.random() < 0.7:
        items, ask = (
            LISTS[kind],
            write(
                rng,
                f"{{What are|Name|Tell me}} the {{|{len(LISTS[kind])} |{in_words(len(LISTS[kind]))} }}{kind}",
            ),
        )
    ask += "?" if ask.startswith("What") else "."
    system = write(rng, "{Answer|Reply|Respond|Always answer} {as|with|in|in the form of} a list{|, please}.")
    if rng.random() < 0.5:
        messages = [_m("system", rng.choice(_LEADS) + system), _m("user", typed(rng, ask))]
    else:
        messages = [_m("user", f"{ask} {write(rng, '{Reply|Answer|Write} {with|as|in} a list.')}")]
    return Sample(
        "lists",
        messages=[*messages, _m("assistant", "\n".join(f"- {i}" for i in items))],
        hint={"held_out": "0"},
    )


__all__ = ["FORMS", "first_sentence", "form_chat", "list_chat", "plain_list_system", "yes_no_question"]
