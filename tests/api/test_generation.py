"""The generation loop: what the caller gets, and what the KV cache then holds."""

from __future__ import annotations

import random
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import akunu
from akunu.api import generation
from akunu.api.scheduling import planning, scheduler, sequence
from akunu.base.errors import AkunuError, ContextLengthError, InvalidArgumentError
from own_view import give_own_view

from .conftest import END, TOKENS, as_bytes, make_model, word
from .fakes import FakeEngine, scripted

PROMPT = [1, 10, 11, 12, 13, 14]


def says(ids, **engine):
    """A model that answers PROMPT with `ids`."""
    return make_model(scripted(len(PROMPT), ids), **engine)


def clock(monkeypatch):
    """The time that generation sees: it passes as the test says."""
    now = [0.0]
    for module in (generation, scheduler, sequence):
        give_own_view(monkeypatch, module, "time", perf_counter=lambda: now[0])
    return now


def cache_is_a_prefix_of(model, prompt, completion):
    """The rule after every generation: prompt and seen tokens, perhaps without the last, not yet run."""
    cache, seen = model._engine.cache, [*prompt, *completion.ids]
    return cache == seen[: len(cache)] and len(cache) >= len(seen) - 1


# -- the ends --------------------------------------------------------------------------------------------


def test_max_tokens_is_kept_exactly():
    for limit in range(1, 40):
        model = make_model()
        result = model.generate(PROMPT, max_tokens=limit)
        assert len(result.ids) == limit == result.stats.generated_tokens
        assert result.finish_reason == "length"
        assert cache_is_a_prefix_of(model, PROMPT, result)


def test_max_tokens_zero_only_evaluates_the_prompt(model):
    result = model.generate(PROMPT, max_tokens=0)
    assert (result.text, result.ids, result.finish_reason) == ("", [], "length")
    assert model._engine.cache == PROMPT
    assert model.generate(PROMPT, max_tokens=1).stats.cached_tokens == len(PROMPT) - 1


def test_without_a_limit_the_context_is_filled():
    model = make_model(context=32)
    result = model.generate(PROMPT)
    assert result.finish_reason == "length"
    assert len(PROMPT) + len(result.ids) == 32 + 1  # the last token needs no place of its own
    assert len(model._engine.cache) == 32


def test_a_prompt_as_long_as_the_context_gives_one_token():
    result = make_model(context=len(PROMPT)).generate(PROMPT)
    assert len(result.ids) == 1 and result.finish_reason == "length"


def test_a_prompt_that_does_not_fit_is_an_error_and_the_model_stays_usable():
    model = make_model(context=4)
    with pytest.raises(ContextLengthError, match="6"):
        model.generate(PROMPT)
    assert model.generate(PROMPT[:2], max_tokens=1).ids


@pytest.mark.parametrize("length", [0, 1, 2, 3, 6, 7, 8, 30])
def test_an_end_token_ends_and_is_not_part_of_the_result(length):
    model = says([*as_bytes("x" * length), END, *as_bytes("never seen")])
    result = model.generate(PROMPT, logprobs=2)
    assert (result.text, result.finish_reason, result.stop) == ("x" * length, "stop", None)
    assert result.ids == as_bytes("x" * length)
    assert len(result.logprobs) == length
    assert model._engine.cache == PROMPT + result.ids


def test_an_unfinished_character_at_the_end_is_replaced():
    result = says(as_bytes("aé")).generate(PROMPT, max_tokens=2)
    assert result.text == "a\ufffd"
    assert len(result.ids) == 2


# -- stop texts --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ids", "stop", "text", "seen"),
    [
        (as_bytes("abcENDdef"), "END", "abc", 3),  # across tokens
        ([*as_bytes("abc"), word("END"), *as_bytes("d")], "END", "abc", 3),  # one token
        ([*as_bytes("a"), word("bc"), word("END")], "cEN", "ab", 1),  # begins within a token
        (as_bytes("END"), "END", "", 0),  # at once
        (as_bytes("xéy"), "é", "x", 1),  # a character of two tokens
        ([*as_bytes("x"), word("é!")], "!", "xé", 1),
        ([*as_bytes("x"), word("<|turn|>"), *as_bytes("END")], "END", "x", 2),  # a control token has no text
        ([*as_bytes("aaab"), END], "aab", "a", 1),  # the match that overlaps a false start
        ([*as_bytes("EN"), END], "END", "EN", 2),  # held back, but never completed
        (as_bytes(b"a\xffb"), "\ufffd", "a", 1),  # an invalid byte
    ],
)
def test_a_stop_text_is_cut_with_the_tokens_that_touch_it(ids, stop, text, seen):
    model = says([*ids, END])
    result = model.generate(PROMPT, stop=stop, logprobs=0)
    assert result.text == text
    assert result.ids == ids[:seen]
    assert len(result.logprobs) == seen
    assert result.finish_reason == "stop"
    assert result.stop == (stop if stop != "END" or text != "EN" else None)
    assert model._engine.cache == PROMPT + ids[:seen]


def test_a_stop_text_completed_by_the_flush_counts():
    result = says(as_bytes(b"ab\xc3")).generate(PROMPT, max_tokens=3, stop="\ufffd")
    assert (result.text, result.finish_reason, result.ids) == ("ab", "stop", as_bytes("ab"))


def test_the_first_of_several_stop_texts_wins():
    result = says(as_bytes("one two three")).generate(PROMPT, stop=["three", "two"])
    assert (result.text, result.stop) == ("one ", "two")


@settings(max_examples=150, deadline=None)
@given(
    text=st.text("abé€", max_size=40),
    stop=st.text("abé€", min_size=1, max_size=4),
    limit=st.integers(1, 60),
    close_after=st.integers(0, 6),
)
def test_stop_cache_and_text_agree_whatever_the_text(text, stop, limit, close_after):
    ids = [*as_bytes(text), END]
    model = says(ids)
    result = model.generate(PROMPT, stop=stop, max_tokens=limit)
    whole = bytes(i - 3 for i in ids[:-1][:limit]).decode(errors="replace")
    assert result.text == whole.split(stop)[0]
    assert cache_is_a_prefix_of(model, PROMPT, result)
    assert result.text.startswith(model.tokenizer.decode(result.ids).rstrip("\ufffd"))

    model = says(ids)
    stream = model.stream(PROMPT, stop=stop, max_tokens=limit)
    read = "".join(piece for piece, _ in zip(stream, range(close_after), strict=False))
    stream.close()
    done = stream.completion
    assert done.text.startswith(read)
    if stream_read_all := done.finish_reason != "cancelled":
        assert done.text == result.text
    assert stream_read_all or cache_is_a_prefix_of(model, PROMPT, done) or close_after == 0


# -- streams ---------------------------------------------------------------------------------------------


def test_the_pieces_are_the_text():
    rng = random.Random(1)
    ids = [*as_bytes("".join(rng.choice("aé€😀 ") for _ in range(60))), END]
    pieces = list(says(ids).stream(PROMPT))
    assert "".join(pieces) == says(ids).generate(PROMPT).text == bytes(i - 3 for i in ids[:-1]).decode()
    assert all(pieces) and "\ufffd" not in "".join(pieces)
    assert len(pieces) > 3


@pytest.mark.parametrize("read", range(1, 6))
def test_a_stream_closed_early_leaves_what_was_read(read):
    model = says(as_bytes("abcdefghijklmnopqrstuvwxyz" * 3))
    stream = model.stream(PROMPT)
    text = "".join(next(stream) for _ in range(read))
    stream.close()
    assert model._engine.cache == (PROMPT + as_bytes(text))[: len(model._engine.cache)]
    assert len(model._engine.cache) >= len(PROMPT) + len(text) - 1
    assert stream.completion.text == text
    assert stream.completion.finish_reason == "cancelled"
    assert list(stream) == []


def test_a_closed_stream_does_not_keep_what_a_stop_text_held_back():
    model = says(as_bytes("abSTOxyz"), context=64)
    stream = model.stream(PROMPT, stop="STOP!")
    pieces = [next(stream), next(stream)]
    stream.close()
    assert model._engine.cache[len(PROMPT) :] in (as_bytes("".join(pieces)), as_bytes("".join(pieces))[:-1])


def test_a_dropped_stream_releases_the_model():
    model = says(as_bytes("abcdef" * 9))
    for piece in model.stream(PROMPT):
        assert piece == "a"
        break
    assert model._engine.cache == PROMPT
    assert model.generate(PROMPT, max_tokens=3).text == "abc"


def test_a_stream_that_is_not_read_holds_nothing(model):
    unread = model.stream(PROMPT)
    assert model._engine.calls == []
    assert model.generate(PROMPT, max_tokens=2).ids
    assert next(unread)
    unread.close()


def test_arguments_are_checked_before_the_first_piece(model):
    with pytest.raises(InvalidArgumentError, match="top_p"):
        model.stream(PROMPT, top_p=7)
    with pytest.raises(InvalidArgumentError, match="unknown argument"):
        model.stream(PROMPT, tempo=7)


# -- the cache -------------------------------------------------------------------------------------------


def test_a_continuation_equals_a_fresh_run_and_runs_only_what_is_new(model):
    first = model.generate(PROMPT, max_tokens=20)
    longer = [*PROMPT, *first.ids, 50, 51]
    second = model.generate(longer, max_tokens=20)
    assert second.ids == make_model().generate(longer, max_tokens=20).ids
    assert second.stats.cached_tokens == len(PROMPT) + 19
    assert second.stats.prompt_tokens == len(longer)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_no_history_of_generations_changes_an_output(data):
    """Prompts that share beginnings, stopped in every way: each text equals that of a fresh model."""
    model = make_model(context=64)
    history = [1]
    for _ in range(data.draw(st.integers(1, 5))):
        history = [*history[: data.draw(st.integers(1, len(history)))], data.draw(st.integers(3, 258))][:40]
        stop = data.draw(st.sampled_from([None, "a", "the", "\ufffd"]))
        limit = data.draw(st.integers(0, 12))
        result = model.generate(history, max_tokens=limit, stop=stop)
        fresh = make_model(context=64).generate(history, max_tokens=limit, stop=stop)
        assert (result.text, result.ids, result.finish_reason) == (fresh.text, fresh.ids, fresh.finish_reason)
        assert cache_is_a_prefix_of(model, history, result)
        history = [*history, *result.ids]


def test_the_text_does_not_depend_on_the_chunks(monkeypatch):
    outputs = set()
    for longest in (1, 2, 3, 7, 256):
        monkeypatch.setattr(planning, "MAX_CHAIN", longest)
        outputs.add(make_model(chunk=longest).generate(PROMPT, max_tokens=50, stop="ab").text)
    assert len(outputs) == 1


# -- chains ----------------------------------------------------------------------------------------------


def test_chains_ramp_up_to_what_fits_in_the_time(monkeypatch):
    now = clock(monkeypatch)
    model = make_model(context=1000)
    engine = model._engine

    def work(engine: FakeEngine) -> None:
        now[0] += 0.0021 * engine.calls[-1][1]  # 2.1 ms a token: 19 fit in 40 ms

    engine.before_decode = work
    result = model.generate(PROMPT, max_tokens=100)
    lengths = [n for name, n in engine.calls if name == "decode"]
    assert lengths == [1, 2, 4, 8, 16, 19, 19, 19, 11]
    assert result.stats.decode_seconds == pytest.approx(0.0021 * 99)
    assert result.stats.decode_tokens_per_second == pytest.approx(1 / 0.0021)


def test_a_slow_model_gives_single_tokens(monkeypatch):
    now = clock(monkeypatch)
    model = make_model()

    def work(engine: FakeEngine) -> None:
        now[0] += 0.1 * engine.calls[-1][1]

    model._engine.before_decode = work
    model.generate(PROMPT, max_tokens=6)
    assert [n for name, n in model._engine.calls if name == "decode"] == [1] * 5


def test_times_are_the_engines_not_the_callers(monkeypatch):
    now = clock(monkeypatch)
    model = make_model(chunk=4)

    def work(engine: FakeEngine) -> None:
        now[0] += 0.5

    model._engine.before_prefill = model._engine.before_decode = work
    stream = model.stream(PROMPT, max_tokens=3)
    for _ in stream:
        now[0] += 100
    stats = stream.completion.stats
    assert (stats.prefill_seconds, stats.decode_seconds, stats.time_to_first_token) == (1.0, 1.0, 1.0)
    assert stats.prefill_tokens_per_second == len(PROMPT)
    assert stats.decode_tokens_per_second == 2


# -- cancel and Ctrl-C -----------------------------------------------------------------------------------


@pytest.mark.parametrize("call", [1, 2, 4])
def test_cancel_returns_the_text_so_far(call):
    model = says(as_bytes("abcdefghijklmnopqrstuvwxyz"))
    left = [call]

    def cancel(engine: FakeEngine) -> None:
        left[0] -= 1
        if left[0] == 0:
            model.cancel()

    model._engine.before_decode = cancel
    result = model.generate(PROMPT, max_tokens=26)
    assert result.finish_reason == "cancelled"
    assert result.text == "abcdefghijklmnopqrstuvwxyz"[: 2 ** (call - 1)]
    assert cache_is_a_prefix_of(model, PROMPT, result)


def test_cancel_while_the_prompt_runs():
    model = make_model(chunk=2)
    model._engine.before_prefill = lambda engine: engine.position >= 2 and model.cancel()
    result = model.generate(PROMPT)
    assert (result.text, result.ids, result.finish_reason) == ("", [], "cancelled")
    assert model._engine.cache == PROMPT[:2]


def test_cancel_gives_what_a_stop_text_held_back():
    model = says(as_bytes("abcdefgh"))
    model._engine.before_decode = lambda engine: engine.position >= len(PROMPT) + 3 and model.cancel()
    result = model.generate(PROMPT, stop="bcdefghi")
    assert (result.text, result.finish_reason) == ("abcd", "cancelled")
    assert len(result.ids) == 4


def test_cancel_when_nothing_runs_does_nothing(model):
    model.cancel()
    assert len(model.generate(PROMPT, max_tokens=9).ids) == 9


def test_a_cancel_that_comes_too_late_does_not_hurt_the_next_generation():
    model = says(as_bytes("ab"))
    stream = model.stream(PROMPT, max_tokens=2)
    assert [next(stream), next(stream)] == ["a", "b"]
    model.cancel()  # everything was given, but the stream has not been asked for its end
    assert list(stream) == []
    assert stream.completion.finish_reason == "length"
    assert model.generate(PROMPT, max_tokens=9).finish_reason == "length"


def test_an_engine_that_stands_still_is_an_error_not_a_hang(model):
    model._engine.before_decode = lambda engine: engine.cancel()
    with pytest.raises(AkunuError, match="no progress"):
        model.generate(PROMPT)


def test_a_suspended_stream_can_be_cancelled():
    model = says(as_bytes("abcdef" * 5))
    stream = model.stream(PROMPT)
    assert next(stream) == "a"
    threading.Thread(target=model.cancel).start()
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    assert len("".join(stream)) <= 1
    assert stream.completion.finish_reason == "cancelled"


@pytest.mark.parametrize("where", ["before_prefill", "before_decode"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_exception_passes_through_and_the_cache_stays_true(where, error):
    model = make_model(chunk=2)
    calls = [0]

    def fail(engine: FakeEngine) -> None:
        calls[0] += 1
        if calls[0] == 3:
            raise error

    setattr(model._engine, where, fail)
    with pytest.raises(error):
        model.generate(PROMPT, max_tokens=30)
    setattr(model._engine, where, lambda engine: None)
    expected = make_model().generate(PROMPT, max_tokens=30)
    again = model.generate(PROMPT, max_tokens=30)
    assert again.ids == expected.ids
    assert again.stats.cached_tokens >= 4


# -- what is passed on -----------------------------------------------------------------------------------


def test_the_engine_gets_every_setting(model):
    model.generate(
        PROMPT,
        max_tokens=1,
        temperature=0.5,
        top_k=7,
        top_p=0.8,
        min_p=0.1,
        typical_p=0.9,
        repeat_penalty=1.1,
        presence_penalty=0.2,
        frequency_penalty=0.3,
        penalty_window=32,
        top_n_sigma=1.5,
        xtc_probability=0.4,
        xtc_threshold=0.2,
        min_keep=2,
        dry_multiplier=0.8,
        dry_base=1.5,
        dry_allowed_length=3,
        dry_penalty_last_n=99,
        dry_sequence_breakers=[],
        logit_bias={5: -1.0},
        seed=42,
        logprobs=3,
    )
    assert model._engine.settings == {
        "temperature": 0.5,
        "top_k": 7,
        "top_p": 0.8,
        "min_p": 0.1,
        "typical_p": 0.9,
        "repeat_penalty": 1.1,
        "presence_penalty": 0.2,
        "frequency_penalty": 0.3,
        "penalty_window": 32,
        "top_n_sigma": 1.5,
        "xtc_probability": 0.4,
        "xtc_threshold": 0.2,
        "min_keep": 2,
        "dry_multiplier": 0.8,
        "dry_base": 1.5,
        "dry_allowed_length": 3,
        "dry_penalty_last_n": 99,
        "logit_bias": {5: -1.0},
        "seed": 42,
        "logprobs": 3,
        "end_ids": (END,),
    }


def test_the_seed_drawn_is_reported(model):
    result = model.generate(PROMPT, max_tokens=1)
    assert result.seed == model._engine.settings["seed"]
    assert model.generate(PROMPT, max_tokens=1, seed=7).seed == 7


def test_logprobs_belong_to_the_ids(model):
    result = model.generate(PROMPT, max_tokens=12, logprobs=2)
    assert [entry.id for entry in result.logprobs] == result.ids
    assert [entry.logprob for entry in result.logprobs] == [-i / 1000 for i in result.ids]
    assert all(
        entry.top == ((i, -i / 1000), (i + 1, -(i + 1) / 1000))
        for entry, i in zip(result.logprobs, result.ids, strict=True)
    )
    assert all(entry.top == () for entry in model.generate(PROMPT, max_tokens=3, logprobs=0).logprobs)
    assert model.generate(PROMPT, max_tokens=3).logprobs is None


def test_prompts_may_be_text_lists_or_arrays(model):
    ids = model.tokenize("hello")
    results = {
        model.generate(p, max_tokens=5).text for p in ("hello", ids, tuple(ids), np.array(ids, np.int64))
    }
    assert len(results) == 1


@pytest.mark.parametrize(
    "prompt",
    [[], [-1], [len(TOKENS)], [1.5], ["a"], [[1, 2]], [True, False], np.zeros(0), [[1], [2, 3]], None],
)
def test_a_bad_prompt_is_refused(model, prompt):
    with pytest.raises(InvalidArgumentError, match=r"prompt|token ids"):
        model.generate(prompt)


def test_text_in_a_prompt_is_never_a_control_token(model):
    model.generate("<|turn|>", max_tokens=1)
    assert word("<|turn|>") not in model._engine.calls[0][1]


def test_a_stop_text_that_is_a_control_token_ends_the_text() -> None:
    """Control tokens are not in the text, so they are watched for as tokens."""
    with akunu.load("ember", progress=False) as model:
        (token,) = model.tokenize("<|im_start|>", parse_special=True)
        forced = {"logit_bias": {token: 100.0}, "temperature": 0, "max_tokens": 4}
        result = model.generate("Once", stop=["<|im_start|>", "never"], **forced)
        assert (result.ids, result.finish_reason, result.stop) == ([], "stop", "<|im_start|>")
        by_id = model.generate("Once", stop_token_ids=[token], **forced)
        assert (by_id.ids, by_id.finish_reason, by_id.stop) == ([], "stop", "<|im_start|>")
        twice = model.generate("Once", stop="<|im_start|><|im_start|>", **forced)
        assert (twice.text, twice.finish_reason, twice.stop) == ("", "stop", "<|im_start|><|im_start|>")
        assert model.generate("Once", **forced).finish_reason == "length"


def test_stop_token_ids_end_a_sequence_before_them() -> None:
    with akunu.load("ember", progress=False) as model:
        whole = model.generate("Once upon a time", temperature=0, max_tokens=12)
        greedy = {"temperature": 0, "max_tokens": 12}
        stopped = model.generate("Once upon a time", stop_token_ids=[whole.ids[5]], **greedy)
        first = whole.ids.index(whole.ids[5])
        assert stopped.ids == whole.ids[:first] and stopped.finish_reason == "stop"
        with pytest.raises(InvalidArgumentError, match=r"stop_token_ids: .* at most 64"):
            model.generate("x", stop_token_ids=range(5, 80))
