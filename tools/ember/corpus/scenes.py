# ruff: noqa: E501 - lines of text read better whole
"""Reading as strangers write it: notes, mails, short stories and lists of things done, with short answers from the text."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from .bare import BRIEFLY, bare_value
from .deeds import deeds
from .grammar import write
from .outings import composed_text
from .passages import NOT_SAID, NOTED
from .sample import Message, Sample, Turn, say
from .scene_words import Scene
from .scenes_acts import ACTS
from .scenes_more import MORE
from .scenes_notes import NOTES
from .scenes_tales import TALES
from .settings import setting
from .typed import around, typed


class Asked(NamedTuple):
    """Questions that have one answer, and a clause that says what is asked ("when the plumber comes"), if any."""

    asks: list[str]
    answer: str
    clause: str


def _pair(text: str) -> Asked:
    asks, answer = text.split(" => ")
    clause = ""
    if asks.endswith("]"):
        asks, _, clause = asks.rstrip("]").partition(" [")
    return Asked(asks.split(" / "), answer, clause)


def read(text: str) -> list[tuple[str, list[Asked]]]:
    """Read the texts and their questions from the lines of a block."""
    rows = (line.split(" >> ") for line in text.strip().split("\n"))
    return [(told, [_pair(pair) for pair in pairs.split(" ## ")]) for told, pairs in rows]


SCENES = [*read(NOTES), *read(TALES), *read(ACTS), *read(MORE)]
_SHARES = [1.0 if text in NOTES else 1.6 if text in ACTS else 1.3 for text, _ in SCENES]

_FILLERS = ["It was a long day.", "Nobody knew why.", "The sun was shining.", "That is all.", "Everyone laughed.", "It was a quiet street.", "Life is like that.", "I will tell you more next time.", "The birds sang.", "We hope you are well.", "It happened a long time ago.", "The rest is another story.", "There was music in the street.", "Nothing else happened that day.", "The grass was wet.", "Somewhere a dog barked.", "It smelled of rain.", "The clock struck twelve.", "Have a nice day.", "It was the first time.", "That made everybody happy.", "The moon was already up."]  # fmt: skip
_LEADS = "{Read {this|the following|the text|the note}{ carefully|}|Here is {a|the|my} {text|note|message|story}|Text|Passage|Note|Message|Story|Mail|Notice|Letter|Excerpt|Context|{Look at|Take} this {text|note}|From {a|the} {newspaper|book|letter|diary}|Somebody wrote this|I found this {note|letter|text}|{This|The following} is from {a book|a letter|the paper}|Paragraph|Article|Information|From my mail|On the door it says|On a sign it says}"
_TELL = "{Read this{ note| text| message|} and tell me $x:|Please tell me $x.|I want to know $x.|Can you tell me $x?|Do you know $x?|Could you find out $x?|Tell me $x:|I need to know $x.|Say $x.|My {mother|boss|brother|neighbor} asks $x.|Please read this and say $x:|Find out $x, please.|I'd like to know $x.|From this text, tell me $x.|I wonder $x.|Look up $x:|Just tell me $x.|Explain $x.|Can you see $x?|Help me: $x?}"
_SYSTEM = "{Answer {the question|questions} {from|about|with} the text{ below|}.|You {read|answer questions about} texts.|{Answer|Reply} briefly.|You are a helpful assistant.|Use {only |}the text to answer.|You help {an old man with his mail|students with texts|people who cannot see well|a busy office}.|Read the text and answer.|Short answers{ only|, please|}.|You are a reading assistant.|Answer in a few words.|Be exact.}"
_GAPS = ["\n", "\n", "\n", " ", " ", "\n\n", "\nQuestion: ", "\nQ: ", " Question: ", "\n- ", "\n\nQuestion: ", "\nNow tell me: "]  # fmt: skip
_FIRST_GAPS = ["\n", "\n", "\n", " ", "\n\n", "\n\n", " - ", "\nText: ", "\n\nText: ", ": "]


def _up(text: str) -> str:
    return text[0].upper() + text[1:]


class Told(NamedTuple):
    """A text, and what may be asked of it: (question, answer, clause)."""

    text: str
    pairs: list[tuple[str, str, str]]
    clear: bool  # whether every question names something of the text


def tell(rng: Random) -> Told:
    """Write one text, with one wording of each question."""
    draw = rng.random()
    if draw < 0.34:
        told, found = deeds(rng) if draw < 0.15 else composed_text(rng)
        return Told(told, [(ask, answer, "") for ask, answer in found], draw < 0.15 and draw % 0.05 < 0.01)
    template, asked = rng.choices(SCENES, _SHARES)[0]
    scene = Scene(rng)
    text = _up(write(rng, template, scene))
    pairs: list[tuple[str, str, str]] = []
    clear: list[tuple[str, str, str]] = []
    for asks, answer, clause in rng.sample(asked, min(len(asked), 3)):  # no chat asks more
        ask = rng.choice(asks)
        pair = (_up(write(rng, ask, scene)), _up(write(rng, answer, scene)), write(rng, clause, scene))
        pairs.append(pair)
        if "$" in ask:
            clear.append(pair)
    if len(clear) > 1 and rng.random() < 0.3:
        return Told(text, clear, True)
    return Told(text, pairs, False)


def _with_others(rng: Random, told: Told) -> str:
    """The text, at times with a sentence or another text beside it."""
    draw = rng.random()
    if draw < 0.16:
        filler = rng.choice(_FILLERS)
        return f"{filler} {told.text}" if rng.random() < 0.4 else f"{told.text} {filler}"
    if told.clear:
        other = tell(rng).text
        gap = rng.choice((" ", "\n", "\n\n"))
        return f"{other}{gap}{told.text}" if rng.random() < 0.5 else f"{told.text}{gap}{other}"
    return told.text


def _foreign(rng: Random, text: str) -> str:
    """A question that this text does not answer, or nothing."""
    ask = rng.choice(tell(rng).pairs)[0]
    named = [w.strip("?.,!").removesuffix("'s") for w in ask.split()[1:]]
    named = [w for w in named if w.istitle() and w not in ("I", "Mr", "Mrs")]
    return ask if named and not any(w in text for w in named) else ""


def scene_chat(rng: Random) -> Sample:
    """A text, and one to three questions about it."""
    told = tell(rng)
    text = _with_others(rng, told)
    pairs = rng.sample(told.pairs, len(told.pairs))
    ask, answer, clause = pairs[0]
    messages: list[Message] = []
    shown = f'"{text}"' if rng.random() < 0.15 and '"' not in text else text
    asked = typed(rng, ask) if rng.random() < 0.3 else ask
    if rng.random() < 0.04 and (foreign := _foreign(rng, text)):
        ask = asked = foreign
        answer, clause = rng.choice(NOT_SAID), ""
    bare = bare_value(text, ask, answer) if rng.random() < 0.3 else ""
    if bare:
        brief = rng.choice(BRIEFLY)
        asked = f"{ask} {brief}" if rng.random() < 0.75 else f"{brief} {ask}"
        answer = _up(bare)
    elif rng.random() < 0.15:
        messages.append(say("system", setting(rng) if rng.random() < 0.25 else write(rng, _SYSTEM)))
    draw = rng.random()
    if clause and not bare and rng.random() < 0.22:
        wish = write(rng, _TELL, {"x": clause})
        gap = rng.choice((" ", "\n", "\n", "\n\n"))
        behind = wish.rstrip(":") + ("." if wish.endswith(":") else "")
        content = f"{wish}{gap}{shown}" if rng.random() < 0.6 else f"{shown}{gap}{behind}"
    elif draw < 0.27:
        content = f"{asked}{rng.choice(_FIRST_GAPS) if asked[-1] in '?.!' else chr(10)}{shown}"
    elif draw < 0.42:
        lead = write(rng, _LEADS) + rng.choice((": ", ":\n", ":\n\n", ". "))
        content = f"{lead}{shown}{rng.choice(_GAPS)}{asked}"
    elif draw < 0.48:
        said = rng.choice(("Text: ", "Context: ", "Use this text: ", "Answer from this note: ", "", "Here is the text:\n"))  # fmt: skip
        messages[:] = [say("system", f"{said}{text}")]
        content = asked
    elif draw < 0.54:
        messages += [say("user", shown), say("assistant", rng.choice(NOTED))]
        content = asked
    else:
        content = f"{shown}{rng.choice(_GAPS)}{asked}"
    if draw > 0.95:
        content = around(rng, content)
    messages += [say("user", content), say("assistant", answer)]
    keys = [f"scene {text} {ask}"]
    for more, reply, _ in pairs[1 : rng.choice((1, 1, 1, 2, 2, 3))]:
        lead = rng.choice(["", "", "", "And ", "OK. ", "Thanks. "])
        messages += [say("user", lead + (more[0].lower() + more[1:] if lead == "And " else more)), say("assistant", reply)]  # fmt: skip
        keys.append(f"scene {text} {more}")
    held = any(Turn("reading", "", "", key).held_out for key in keys)
    return Sample("reading", messages=messages, hint={"held_out": str(int(held))})
