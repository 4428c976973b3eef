"""The text of one window: greedy, sampled or by beams, and again at higher temperatures when it is poor."""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from akunu.base.errors import ContextLengthError
from akunu.speech.batching import Begin, Work, applies
from akunu.speech.beams import beam_search
from akunu.speech.languages import LANGUAGES
from akunu.speech.model import Logits, SpeechModel
from akunu.speech.options import TranscriptionOptions
from akunu.speech.rules import TokenRules, log_softmax, token_rules
from akunu.speech.sampling import Candidate, sample
from akunu.speech.tokenizer import WhisperTokenizer

__all__ = ["WindowText", "best", "compression_ratio", "decode_window", "is_silent", "language_probabilities"]


@dataclass(frozen=True)
class WindowText:
    """The text of a window.

    Attributes
    ----------
    tokens : list of int
        Text and timestamps, without the end.
    avg_logprob : float
        Mean log p of a token, the end included; not of those that were given.
    no_speech_prob : float
        The probability that there is no speech.
    temperature : float
        At which it was found.
    compression_ratio : float
        Bytes of the text over those of its zlib compression.
    """

    tokens: list[int]
    avg_logprob: float
    no_speech_prob: float
    temperature: float
    compression_ratio: float


def compression_ratio(text: str) -> float:
    """Return how often a text repeats itself: about 1 for short sentences, 2.4 and more for loops."""
    data = text.encode()
    return len(data) / len(zlib.compress(data))


def language_probabilities(
    model: SpeechModel, states: Any, tokenizer: WhisperTokenizer
) -> Work[list[tuple[str, float]]]:
    """The languages by the first token that follows the start, most probable first."""
    sequence, logits = yield Begin(states, [tokenizer.special.start], [0])
    model.free(sequence)
    codes = [code for code in LANGUAGES if code in tokenizer.special.languages]
    found = log_softmax(logits[-1, [tokenizer.special.languages[code] for code in codes]])
    pairs = zip(codes, np.exp(found).tolist(), strict=True)
    return sorted(pairs, key=lambda pair: -pair[1])


def decode_window(
    model: SpeechModel,
    states: Any,
    tokenizer: WhisperTokenizer,
    prompt: Sequence[int],
    options: TranscriptionOptions,
    *,
    seed: Sequence[int] = (),
    begun: Sequence[int] = (),
) -> Work[WindowText]:
    """The text of a window, at the first temperature that gives a good one.

    When none does, the most probable of those that do not repeat themselves; where all do, the one that does
    so least: what goes round in circles is most probable.

    Parameters
    ----------
    model
        The model.
    states
        The window's, from `model.encode`.
    tokenizer
        The model's.
    prompt : sequence of int
        Tokens before the text, among them the start.
    options
        Temperatures, beams, rules and thresholds.
    seed : sequence of int
        What makes the samples of this window its own, besides `options.seed`.
    begun : sequence of int
        How the text begins, which follows the prompt.
    """
    prompt = [*prompt, *begun]
    room = model.config.text_context - len(prompt)
    if room < 1:
        raise ContextLengthError(
            f"the prompt has {len(prompt)} tokens, and the model a context of {model.config.text_context}"
        )
    most = min(room, options.max_new_tokens or model.config.text_context // 2)
    rules = token_rules(tokenizer, options)
    start = prompt.index(tokenizer.special.start)
    # Beams begin with the host's choice; other candidates the model decodes itself, if it can.
    decodes = applies(model, rules) and not any(_searches(options, t) for t in options.temperatures)
    sequence, logits = yield Begin(states, prompt, sorted({start} if decodes else {start, len(prompt) - 1}))
    no_speech = float(np.exp(log_softmax(logits[0])[tokenizer.special.no_speech]))
    last = None if decodes else logits[-1]
    results: list[WindowText] = []
    try:
        for temperature in options.temperatures:
            random = np.random.default_rng([options.seed, round(temperature * 1000), *seed])
            candidates = yield from _candidates(
                model, sequence, last, tokenizer, rules, options, temperature, most, random, begun
            )
            found = best(candidates, options.length_penalty)
            tokens = [*begun, *found.tokens]
            text = tokenizer.decode(tokens)
            results.append(
                WindowText(
                    tokens,
                    found.log_prob / (len(found.tokens) + 1),
                    no_speech,
                    temperature,
                    compression_ratio(text),
                )
            )
            if _good(results[-1], options):
                return results[-1]
    finally:
        model.free(sequence)
    calm = [result for result in results if not _repetitive(result, options)]
    if not calm:
        return min(results, key=lambda result: result.compression_ratio)
    return max(calm, key=lambda result: result.avg_logprob)


def _candidates(
    model: SpeechModel,
    sequence: Any,
    logits: Logits | None,
    tokenizer: WhisperTokenizer,
    rules: TokenRules,
    options: TranscriptionOptions,
    temperature: float,
    most: int,
    random: np.random.Generator,
    begun: Sequence[int],
) -> Work[list[Candidate]]:
    end = tokenizer.special.end
    if _searches(options, temperature):
        assert logits is not None
        size, patience = options.beam_size, options.patience
        return beam_search(model, sequence, logits, rules, end, size, patience, most, begun)
    count = options.best_of if temperature > 0 else 1
    return sample(model, sequence, logits, rules, end, count, temperature, most, random, begun)


def _searches(options: TranscriptionOptions, temperature: float) -> bool:
    """Whether a text at this temperature is found by beams."""
    return temperature == 0 and options.beam_size > 1


def best(candidates: Sequence[Candidate], length_penalty: float) -> Candidate:
    """The one of the greatest log p / length ** length_penalty, by logarithms: powers may overflow."""

    def rank(candidate: Candidate) -> float:
        unlikely = -candidate.log_prob
        length = math.log(max(len(candidate.tokens), 1))
        return length_penalty * length - (math.log(unlikely) if unlikely > 0 else -math.inf)

    return max(candidates, key=rank)


def _repetitive(result: WindowText, options: TranscriptionOptions) -> bool:
    threshold = options.compression_ratio_threshold
    return threshold is not None and result.compression_ratio > threshold


def _good(result: WindowText, options: TranscriptionOptions) -> bool:
    unlikely = options.log_prob_threshold is not None and result.avg_logprob < options.log_prob_threshold
    silent = options.no_speech_threshold is not None and result.no_speech_prob > options.no_speech_threshold
    if silent and unlikely:
        return True  # no speech: another text would be no better
    return not unlikely and not _repetitive(result, options)


def is_silent(text: WindowText, options: TranscriptionOptions) -> bool:
    """Whether a window has no speech: probably none by its first token, and no text that is likely."""
    if options.no_speech_threshold is None or text.no_speech_prob <= options.no_speech_threshold:
        return False
    if options.structure is not None:
        return True  # of the texts that a constraint allows, one is always likely
    return options.log_prob_threshold is None or text.avg_logprob <= options.log_prob_threshold
