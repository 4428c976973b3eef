# ruff: noqa: E501 - lines of text read better whole
"""Summaries: the first sentence of a text, or that there is none to summarise; and what ember cannot do at all."""

from __future__ import annotations

import re
from random import Random

from . import lexicon
from .accounts import account
from .actions import ACTIONS
from .actions_more import MORE_ACTIONS
from .corrections import sound
from .errands import ERRANDS
from .events import event
from .forms import first_sentence
from .grammar import write
from .requests import Drawn, declare, request
from .sample import Turn
from .services import SERVICES
from .smalltalk import CANNOT
from .tasks import fix_articles
from .text_tasks import phrase
from .typed import typed
from .words import invented_word

_VERB = "{Summarise|Summarize|summarise|summarize|Summarize|Sum up|Please summarize|Can you summarize|Could you summarise|Shorten|Condense}"
_TEXT = "{this|the text|this text|the following text|the following|this passage|this story|it|this message|this note|this paragraph}"
_HOW = "{| in one sentence| in a sentence| in a single sentence| briefly| shortly| for me| in a few words| in one line| quickly}"
_NOUN = "{a summary|a short summary|a one-sentence summary|the summary|the main point|the gist|the short version|a TL;DR}"


_NO_END = re.compile(r"\n|\b(Mr|Mrs|Ms|Dr)\.")  # a point that ends no sentence


def _several(rng: Random) -> list[str]:
    """The sentences of a short text."""
    while True:
        texts: list[str] = []
        for _ in range(rng.choice((1, 1, 2))):
            told, _pairs = rng.choice((event, event, account))(rng)
            texts += told
        for _ in range(rng.choice((0, 0, 1, 2, 3))):  # others, of which any may be the first
            more = sound(rng) if rng.random() < 0.6 else f"{phrase(rng)}."
            texts.insert(rng.randrange(len(texts) + 1), more[0].upper() + more[1:])
        if rng.random() < 0.2:
            texts = texts[:2]
        text = fix_articles(" ".join(texts))
        sentences = [s[0].upper() + s[1:] for s in re.split(r"(?<=[.!?]) +", text) if s]
        if (
            len(sentences) > 1
            and all(s[-1] in ".!?" and len(s) > 8 for s in sentences)
            and not _NO_END.search(text)
        ):
            return sentences[:6]


def summary(rng: Random) -> Turn:
    sentences = _several(rng)
    if rng.random() < 0.08:
        sentences = sentences[:1]
    text = " ".join(sentences)
    shown = f'"{text}"' if rng.random() < 0.12 else text
    draw = rng.random()
    gap = rng.choice([": ", ": ", ":\n", ":\n\n", ". ", ".\n"])
    if draw < 0.55:
        ask = write(rng, rng.choice([_VERB + " " + _TEXT + _HOW, _VERB + _HOW, f"{{Give me|Write|Make|I need|Tell me|What is}} {_NOUN}{{ of {_TEXT}|}}", "{TL;DR|tl;dr|Summary|In short|Main point|In one sentence}"])) + gap + shown  # fmt: skip
    elif draw < 0.85:
        ask = shown + rng.choice([" ", "\n", "\n\n"]) + write(rng, rng.choice([_VERB + " {that|this|it|the text|this text}" + _HOW + "{.|, please.|}", f"{{Give me|Write|What is}} {_NOUN}{{.|?|}}", "{TL;DR?|tl;dr|In one sentence?|In short?|Summary?|What is it about?|What is this text about?}"]))  # fmt: skip
    else:
        ask = (
            write(
                rng,
                "{What is this text about|What does this say, in one sentence|What happened, in short|Can you make this shorter}{?|:} ",
            )
            + shown
        )
    return Turn("summary", ask, first_sentence(text), f"summary {text}")


_NO_TEXT = ["{Summarise|Summarize|Sum up|Shorten} {this|the text|it|this article|the article|this page|the email|my notes|the meeting|the report|this document|that book|the film|the news|the attached file}{ for me|, please|}{.|}", "{Summarise|Summarize} the {book|film|plot of|story of|history of|novel|movie|song} $X{ in one sentence|}.", "{Give me|Write} a summary of {the book|the article|the report|the film|the meeting|my text|$X|the war|the history of $c}.", "Can you summarize {a text|texts|an article|the web page|$X|a book}{ for me|}?", "TL;DR {of $X|this article|please|}"]  # fmt: skip
_EDIT = ["{Rewrite|Rephrase|Paraphrase|Reword|Simplify|Improve|Polish|Expand|Lengthen} {this|the text|this sentence|the following}{ politely| in a formal tone| as a poem| in simple words| in other words| like a pirate|}: $t", "{Translate|Put} {this|the following|this sentence} into {French|German|Spanish|Chinese|Latin|Japanese|Italian}: $t", "Make {this|it} {longer|more polite|more formal|funnier|rhyme|nicer|sound better|more exciting}: $t", "{Find|Mark|Underline|List} the {verbs|nouns|adjectives|subjects} in {this|this sentence|the text}: $t", "{Classify|Rate|Analyze|Analyse|Judge|Review|Encode|Encrypt|Decode|Explain} {this|the following|this text|this review}: $t", "{Is this positive or negative|What is the sentiment|What is the mood of this|Who is the author|Which tense is this}: $t", "{Continue|Complete|Finish} the essay: $t", "{Turn|Change|Put} this {into|to} the {past tense|future tense|passive voice|plural}: $t", "{Reply to|Answer} this {email|letter|message}: $t", "{Format|Convert} this as {HTML|a table|Markdown|XML|CSV|YAML}: $t"]  # fmt: skip
_DO = ["{Write|Make|Create|Generate} {me |}{an essay|a program|a script|a novel|a letter|a speech|code|a contract|a CV|a report|an app|a website|a game|a business plan|an email|a review|a shell script|a regex|a function in $L}{ about $n| for me| for my boss| in $L|}.", "{Draw|Paint|Sketch|Show me|Generate} {a $n|the $n|a picture of a $n|a $q $n|me a $n}{.|}", "{Book|Reserve|Find} {me |}{a flight|a hotel|a table|a train|a taxi|a room|two seats|tickets}{ to $c| in $c| for tomorrow|}.", "{Open|Close|Start|Stop|Restart|Turn on|Turn off|Switch on|Switch off|Install|Update|Uninstall} {the $n|my $n|my computer|the lights|the door|the browser|the camera|the heating|Spotify|the printer}.", "{Play|Sing|Hum} {me |}{a song|some music|some jazz|a $n song|the piano|my playlist|something}.", "{Send|Forward|Read|Delete} {an email|a message|my mail|the file|all my files|the letter|a text}{ to $N| from $N|}.", "{Call|Text|Phone|Email|Invite|Ask} {$N|my $r|the $r|a $r|the police}{ for me| now|}.", "{Buy|Order|Sell|Pay|Get} {me |}{a $n|a pizza|shoes|some $f|the bill|a $q $n|tickets}{ online| for me|}.", "{Set|Cancel|Change} {an alarm|a timer|the alarm|a reminder|my meeting}{ for $t| at $t|}.", "{Search|Browse|Check|Google} {the web|the internet|my calendar|my mail|online|the news}{ for $n|}.", "{Take|Edit|Print|Upload|Download|Scan} {a photo|a picture|the document|a file|the page|my letter|this image}.", "{Cook|Bake|Fry|Clean|Wash|Fix|Repair|Build|Carry|Feed} {me |}{the $n|my $n|dinner|the house|a $n|my car}.", "{Drive|Take|Bring|Fly} me {home|to $c|to the airport|to $N|there}.", "{Run|Execute|Compile|Debug|Test} {this code|the program|my script|the command ls|the tests|this}.", "{Look at|Describe|Watch|Listen to} {this picture|the photo|this video|the song|my screen|me}.", "{Remind|Wake|Notify} me {at $t|tomorrow|about the $n|to call $N}.", "{Predict|Guess|Tell me} {the lottery numbers|my future|the stock price|tomorrow's weather}.", "{Solve|Do} {my homework|this equation|the puzzle|the crossword|my taxes}.", "{Teach me|Speak|Talk to me in} {$L|to swim|to code|chess}.", "{Hack|Break into|Unlock} {the $n|my phone|a website|the safe}."]  # fmt: skip
_ACTIONS = {k: a for k, a in (ACTIONS | MORE_ACTIONS | ERRANDS | SERVICES).items() if k not in ("calculator", "define", "search", "population", "time", "sorted", "translate", "translation")}  # fmt: skip


def cannot(rng: Random) -> Turn:
    """A request for what ember cannot do: it says so."""
    draw = rng.random()
    if draw < 0.3:  # what a tool would do, if there were one
        while True:
            kind = rng.choice(list(_ACTIONS))
            orders = [ask for ask in _ACTIONS[kind].asks if ask.startswith("!")]
            if not orders:
                continue
            tool = declare(rng, kind, _ACTIONS[kind]._replace(asks=orders))
            ask, _ = request(rng, tool, Drawn(rng))
            break
    else:
        env = {
            "n": rng.choice(lexicon.NOUN_LIKE), "q": rng.choice(lexicon.QUALITIES), "c": lexicon.anywhere(rng), "N": lexicon.anyone(rng), "r": rng.choice(lexicon.PEOPLE),
            "f": rng.choice(lexicon.FOODS), "L": rng.choice(["Python", "C", "Java", "Rust", *lexicon.LANGUAGES[:12]]), "t": rng.choice((f"{rng.randint(1, 12)}", f"{rng.randint(1, 23)}:30", "noon", "8 am")), "X": invented_word(rng).capitalize(),
        }  # fmt: skip
        if draw < 0.6:
            ask = write(rng, rng.choice(_DO), env)
            lead = "{||||Please |Can you |Could you |I want you to |Would you |please |Hey, |Ember, }"
            lead = write(rng, lead + "\x01").replace("\x01", "")
            if lead:
                ask = lead + (" " if not lead.endswith(" ") else "") + ask[0].lower() + ask[1:]
                ask = ask.rstrip(".") + "?" if lead.startswith(("Can", "Could", "Would")) else ask
            ask = fix_articles(typed(rng, ask))
        elif draw < 0.72:
            ask = typed(rng, write(rng, rng.choice(_NO_TEXT), env))
            answer = write(
                rng, "I cannot do that{.|: there is no text{ here| in your message|}.|: I see no text.}"
            )
            return Turn("unknown", ask, answer, f"cannot {ask.lower()}")
        else:
            text = _several(rng)[: rng.choice((1, 1, 2, 3))]
            env["t"] = rng.choice(["\x01", '"\x01"'])
            ask = write(rng, rng.choice(_EDIT), env).replace("\x01", " ".join(text))
            if rng.random() < 0.25 and ": " in ask:
                head, tail = ask.split(": ", 1)
                ask = f"{tail}\n{head}."
    return Turn("unknown", ask, write(rng, CANNOT), f"cannot {ask.lower()}")
