# ruff: noqa: E501 - lines of text and word lists read better whole
"""The form of an answer: one word, one sentence, yes or no, a number, a case, JSON; asked for in many ways."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from .extras import sizes
from .grammar import write
from .knowledge import quiz, topic, word_lore
from .lore import between, in_a_clause, ripe_color, what_is_right, what_like
from .problems import named_sum, told_sum
from .puzzles import one_of, word_form
from .sample import Message, Sample, Turn, say
from .sentences import why
from .settings import place
from .smalltalk import identity, small_talk, unknown
from .sums import asked_sum, story_sum
from .tasks import (
    NUMBERS,
    arithmetic,
    calendar,
    compare,
    counting,
    fact,
    opposite,
    plural,
    word_problem,
)
from .typed import lower_first
from .words import NOUNS
from .yes_no import yes_no_question

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
    in_a_clause,
    ripe_color,
    what_like,
    what_is_right,
    between,
    one_of,
    word_form,
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
    in_a_clause,
    why,
    what_like,
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
        "{Just the word|The word only|Only the word|A word is enough|One word is enough|No sentence, just the word|Nothing but the word|One word only|One word|In one word|In one word, please|Answer in one word|Answer with one word|One word answer|A single word, please|Just one word|Use one word|Only one word|Reply in a single word|Answer in a single word|Give me one word|Give me a one-word answer|With one word|Only the word}."
    ],
    [
        "{Just the word|Only the word|One word please|In one word|One word|Answer in one word|Answer with one word|With one word|In a single word|Give me one word|In just one word|Using one word|One word answer}",
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
    [yes_no_question, yes_no_question, what_like],
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
    [arithmetic, asked_sum, asked_sum, story_sum, told_sum, named_sum, fact, quiz, compare, calendar],
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
LEADS = [
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
    lead = place(rng) + " " if rng.random() < 0.25 else rng.choice(LEADS)
    return lead + text


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
        messages.append(say("system", _system(rng, form)))
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            turn, text = _draw(rng, form)
            turns.append(turn)
            messages += [say("user", turn.ask), say("assistant", text)]
    else:
        if rng.random() < 0.15:
            messages.append(say("system", rng.choice(LEADS[3:]).strip()))
        if rng.random() < 0.2:
            other = rng.choice((fact, quiz, opposite, arithmetic))(rng)
            turns.append(other)
            messages += [say("user", other.ask), say("assistant", other.answer)]
        turn, text = _draw(rng, form)
        turns.append(turn)
        messages += [say("user", _beside(rng, form, turn.ask)), say("assistant", text)]
    held = any(t.held_out for t in turns)
    return Sample("form", messages=messages, hint={"held_out": str(int(held))})
