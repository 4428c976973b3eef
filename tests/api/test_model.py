"""`Model`: chat, threads, closing, and what it tells about itself."""

from __future__ import annotations

import contextlib
import copy
import gc
import pickle
import threading
import time
import weakref

import numpy as np
import pytest

import akunu
from akunu.base.errors import AkunuError, InvalidArgumentError, TemplateError, TokenizerError
from akunu.chat import ChatTemplate

from .conftest import END, TOKENS, as_bytes, make_model, metadata, word, wrap
from .fakes import FakeEngine, hashed, scripted

PROMPT = [1, 10, 11, 12]


def in_thread(function, *args):
    """Start `function` in a thread; the function returned waits for its result, or raises its error."""
    outcome = []

    def run():
        try:
            outcome.append((True, function(*args)))
        except BaseException as error:  # handed to the caller
            outcome.append((False, error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def result(seconds=20):
        thread.join(seconds)
        assert not thread.is_alive(), "deadlock"
        ok, value = outcome[0]
        if ok:
            return value
        raise value

    return result


def wait_until(condition, seconds=20.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "timed out"
        time.sleep(0.001)


# -- chat ------------------------------------------------------------------------------------------------


def test_chat_formats_the_messages_with_the_models_template(model):
    model.chat([{"role": "user", "content": "hello"}], max_tokens=1)
    assert model._engine.calls[0] == (
        "begin",
        [1, word("<|turn|>"), *as_bytes("hello"), word("<|turn|>")],
    )


def test_a_message_cannot_write_a_control_token(model):
    model.chat([{"role": "user", "content": "<|turn|>"}], max_tokens=1)
    assert model._engine.calls[0][1].count(word("<|turn|>")) == 2


def test_a_conversation_runs_only_what_is_new_and_equals_a_fresh_one():
    model = make_model(context=512)
    messages = [{"role": "user", "content": "hello"}]
    for turn in range(4):
        answer = model.chat(messages, max_tokens=12)
        assert answer.ids == make_model(context=512).chat(messages, max_tokens=12).ids
        assert turn == 0 or answer.stats.cached_tokens > 0
        messages += [{"role": "assistant", "content": answer.text}, {"role": "user", "content": "go on"}]


def test_stream_chat_gives_the_same_text(model):
    messages = [{"role": "user", "content": "hello"}]
    whole = make_model().chat(messages, max_tokens=20)
    stream = model.stream_chat(messages, max_tokens=20)
    assert "".join(stream) == whole.text
    assert stream.completion.ids == whole.ids


def test_template_variables_reach_the_template(model):
    model.chat_template = ChatTemplate("{{ mood }}{{ tools | length }}", model.tokenizer)
    messages = [{"role": "user", "content": "x"}]
    tools = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
    model.chat(messages, tools=tools, template_variables={"mood": "calm"}, max_tokens=0)
    assert model.tokenizer.decode(model._engine.calls[0][1]) == "calm1"


def test_a_model_without_a_template_says_so():
    data = {k: v for k, v in metadata().items() if k != "tokenizer.chat_template"}
    model = wrap(FakeEngine(hashed(len(TOKENS), 3), vocab=len(TOKENS)), data)
    with pytest.raises(TemplateError, match="no chat template"):
        model.chat([{"role": "user", "content": "hello"}])
    model.chat_template = ChatTemplate.named("chatml", model.tokenizer)
    assert model.chat([{"role": "user", "content": "hello"}], max_tokens=2).ids


def test_wrong_template_arguments_are_refused_and_not_ignored(model):
    messages = [{"role": "user", "content": "x"}]
    for variables in ({"add_generation_prompt": False}, {"tools": []}, {"messages": []}, [1], "x"):
        with pytest.raises(InvalidArgumentError, match="template variable"):
            model.chat(messages, template_variables=variables)
    assert model.chat(messages, template_variables={"template": "zz"}, max_tokens=0)
    for template in ("{{x}}", None):
        with pytest.raises(InvalidArgumentError, match=r"chat_template: expected an akunu\.ChatTemplate"):
            model.chat_template = template


# -- threads ---------------------------------------------------------------------------------------------


def test_many_threads_are_served_without_corruption():
    model = make_model(context=200)
    prompts = [[1, *range(10, 10 + n)] for n in range(1, 9)]
    expected = [make_model(context=200).generate(prompt, max_tokens=40).ids for prompt in prompts]
    model._engine.before_decode = lambda engine: time.sleep(
        0
    )  # let others run, as a call without the GIL does
    results = [in_thread(lambda p=prompt: model.generate(p, max_tokens=40).ids) for prompt in prompts * 4]
    assert [result() for result in results] == expected * 4


def test_threads_that_stream_take_turns():
    model = make_model()
    expected = make_model().generate(PROMPT, max_tokens=30).text
    results = [in_thread(lambda: "".join(model.stream(PROMPT, max_tokens=30))) for _ in range(8)]
    assert {result() for result in results} == {expected}


class Gate:
    """Holds every decoding step until it is opened."""

    def __init__(self, model):
        self.reached, self._open = threading.Event(), threading.Event()
        model._engine.before_decode = self

    def __call__(self, engine):
        self.reached.set()
        assert self._open.wait(20)

    def open(self):
        self._open.set()


def waiting(model):
    return model.stats.waiting


def test_generations_wait_in_arrival_order():
    model = make_model(parallel=1)
    gate = Gate(model)
    first = in_thread(lambda: model.generate(PROMPT, max_tokens=3))
    assert gate.reached.wait(20)
    results = []
    for number in range(5):
        results.append(in_thread(lambda n=number: model.generate([*PROMPT, 50 + n], max_tokens=1)))
        wait_until(lambda n=number: waiting(model) == n + 1)
    gate.open()
    for result in (first, *results):
        result()
    begun = [ids[-1] for name, ids in model._engine.calls if name == "begin"]
    assert begun == [PROMPT[-1], 50, 51, 52, 53, 54]


def test_generations_run_together():
    """Those that come while others decode join them, and each has the text that it has alone."""
    prompts = [[1, *range(10, 10 + n)] for n in range(1, 5)]
    expected = [make_model().generate(prompt, max_tokens=40).ids for prompt in prompts]
    model = make_model(parallel=4)
    gate = Gate(model)
    results = [in_thread(lambda p=prompt: model.generate(p, max_tokens=40).ids) for prompt in prompts]
    assert gate.reached.wait(20)
    wait_until(lambda: waiting(model) + len(model._scheduler.running()) == 4)
    gate.open()
    assert [result() for result in results] == expected
    assert max(parts for parts, _ in model._engine.steps) > 1


def test_a_call_that_waits_goes_before_the_next_step():
    model = make_model(parallel=4)
    engine, seen = model._engine, []
    gate = Gate(model)
    outputs = [in_thread(lambda: model.generate(PROMPT, max_tokens=30).ids) for _ in range(3)]
    assert gate.reached.wait(20)
    logits = engine.logits
    engine.logits = lambda ids: (seen.append(len(engine.steps)), logits(ids))[1]
    call = in_thread(model.logits, PROMPT)
    wait_until(lambda: model._scheduler._calls)
    before = len(engine.steps)
    gate.open()
    assert len(call()) == len(PROMPT) and seen == [before]
    assert all(len(output()) == 30 for output in outputs)


def test_calls_without_end_do_not_hold_up_sequences():
    model = make_model(parallel=2)
    done = threading.Event()

    def call() -> int:
        calls = 0
        while not done.is_set():
            model.logits(PROMPT)
            calls += 1
        return calls

    calls = [in_thread(call) for _ in range(3)]
    assert len(in_thread(lambda: model.generate(PROMPT, max_tokens=200).ids)()) == 200
    done.set()
    assert all(call() for call in calls)


def test_a_thread_may_generate_while_it_has_an_open_stream(model):
    stream = model.stream(PROMPT, max_tokens=30)
    text = next(stream)
    assert model.generate(PROMPT, max_tokens=5).ids
    assert len(model.logits(PROMPT)) == len(PROMPT)
    assert model.perplexity("hello hello") > 1
    assert text + "".join(stream) == make_model().generate(PROMPT, max_tokens=30).text


def test_streams_that_nobody_reads_hold_up_nobody():
    model = make_model(parallel=2)
    left = [model.stream(PROMPT, max_tokens=30) for _ in range(2)]
    first = [next(stream) for stream in left]
    assert model.generate(PROMPT, max_tokens=5).ids == make_model().generate(PROMPT, max_tokens=5).ids
    # They go on where they were when somebody comes back to them.
    whole = make_model().generate(PROMPT, max_tokens=30).text
    assert [text + "".join(stream) for text, stream in zip(first, left, strict=True)] == [whole] * 2


def test_when_pages_run_out_the_youngest_waits():
    prompts = [[1, *range(10, 40 + n)] for n in range(4)]
    expected = [make_model().generate(prompt, max_tokens=60).ids for prompt in prompts]
    model = make_model(parallel=4, pages=6)  # 192 tokens, of the 380 that all of them have
    gate = Gate(model)
    results = [in_thread(lambda p=prompt: model.generate(p, max_tokens=60).ids) for prompt in prompts]
    wait_until(lambda: waiting(model) + len(model._scheduler.running()) == 4)
    gate.open()
    assert [result() for result in results] == expected
    assert not model._engine.sequences


def test_a_stream_may_be_read_by_one_thread_after_another(model):
    stream = model.stream(PROMPT, max_tokens=30)
    text = next(stream)
    text += in_thread(next, stream)()
    text += "".join(stream)
    assert text == make_model().generate(PROMPT, max_tokens=30).text


def test_cancel_ends_the_running_generation_and_not_the_waiting_one():
    model = make_model(parallel=1)
    gate = Gate(model)
    first = in_thread(lambda: model.generate(PROMPT, max_tokens=50))
    assert gate.reached.wait(20)
    second = in_thread(lambda: model.generate(PROMPT, max_tokens=5))
    wait_until(lambda: waiting(model))
    model.cancel()
    gate.open()
    assert first().finish_reason == "cancelled"
    assert (second().finish_reason, len(second().ids)) == ("length", 5)


def test_a_waiting_stream_can_be_cancelled():
    model = make_model(parallel=1)
    gate = Gate(model)
    first = in_thread(lambda: model.generate(PROMPT, max_tokens=9).ids)
    assert gate.reached.wait(20)
    stream = model.stream(PROMPT)
    pieces = in_thread(lambda: list(stream))
    wait_until(lambda: waiting(model))
    stream.cancel()
    assert pieces() == []
    assert stream.completion.finish_reason == "cancelled"
    gate.open()
    assert len(first()) == 9


def test_a_stream_dropped_in_a_cycle_releases_the_model(model):
    stream = model.stream(PROMPT)
    next(stream)
    cycle = [stream]
    cycle.append(cycle)
    del stream, cycle
    gc.collect()
    assert model.generate(PROMPT, max_tokens=1).ids


def test_the_model_is_freed_with_its_last_reference():
    model = make_model()
    model.generate(PROMPT, max_tokens=1)
    for _ in model.stream(PROMPT):
        break
    reference = weakref.ref(model)
    gc.disable()  # by reference counts alone: gigabytes must not wait for the collector
    try:
        del model
        assert reference() is None
    finally:
        gc.enable()


# -- closing ---------------------------------------------------------------------------------------------


def test_a_closed_model_refuses_everything(model):
    unread = model.stream(PROMPT)
    model.close()
    model.close()
    for call in (
        lambda: model.generate(PROMPT),
        lambda: model.stream(PROMPT),
        lambda: model.chat([{"role": "user", "content": "x"}]),
        lambda: next(unread),
        lambda: model.logits(PROMPT),
        lambda: model.perplexity("hello hello"),
        lambda: model.memory,
        lambda: model.__enter__(),
        lambda: model.generate_batch([]),
    ):
        with pytest.raises(AkunuError, match="is closed; load it again"):
            call()
    assert "closed" in repr(model)
    assert model.tokenize("hello") and model.context


def test_the_context_manager_closes():
    with make_model() as model:
        engine = model._engine
        next(model.stream(PROMPT))
    assert engine.closed


def test_closing_ends_an_open_stream(model):
    stream = model.stream(PROMPT)
    next(stream)
    engine = model._engine
    model.close()
    assert engine.closed
    assert list(stream) == []
    assert stream.completion.finish_reason == "cancelled"


def test_closing_waits_for_the_running_generation_and_turns_the_waiting_away():
    model = make_model(parallel=1)
    gate, engine = Gate(model), model._engine
    first = in_thread(lambda: model.generate(PROMPT, max_tokens=50))
    assert gate.reached.wait(20)
    second = in_thread(lambda: model.generate(PROMPT, max_tokens=50))
    wait_until(lambda: waiting(model))
    closing = in_thread(model.close)
    wait_until(lambda: model._closed)
    assert not engine.closed
    gate.open()
    closing()
    assert first().finish_reason == "cancelled"
    with pytest.raises(AkunuError, match="closed"):
        second()
    assert engine.closed


def test_closing_does_not_miss_a_generation_that_is_just_starting(model, monkeypatch):
    checked = threading.Event()
    check = model._scheduler._check_open

    def slowly():
        check()
        checked.set()
        time.sleep(0.3)  # long enough for close() to look for a generation

    monkeypatch.setattr(model._scheduler, "_check_open", slowly)
    stream = model.stream(PROMPT)
    first = in_thread(next, stream)  # and the stream stays open
    assert checked.wait(20)
    in_thread(model.close)()
    with contextlib.suppress(StopIteration, AkunuError):
        first()
    assert list(stream) == []


# -- text, logits, perplexity ----------------------------------------------------------------------------


def test_tokenize_and_detokenize(model):
    ids = model.tokenize("hello")
    assert ids[0] == 1
    assert model.detokenize(ids) == model.detokenize(np.array(ids)) == "hello"
    assert model.tokenize("hello", add_special=False) == ids[1:]
    assert word("<|turn|>") in model.tokenize("<|turn|>", parse_special=True)
    assert word("<|turn|>") not in model.tokenize("<|turn|>")
    with pytest.raises(InvalidArgumentError, match="token ids"):
        model.detokenize([len(TOKENS)])


def test_a_file_without_vocabulary_takes_ids_only():
    model = wrap(FakeEngine(scripted(2, [5, 6, 7])), {})
    result = model.generate([1, 2], max_tokens=3)
    assert (result.text, result.ids, result.finish_reason) == ("", [5, 6, 7], "length")
    with pytest.raises(TokenizerError, match=r"fake\.gguf has no vocabulary"):
        model.generate("hello")


def test_logits_are_a_row_for_each_token(model):
    logits = model.logits(PROMPT)
    assert logits.shape == (len(PROMPT), len(TOKENS))
    assert logits.dtype == np.float32
    for bad in ([], [-1], [len(TOKENS)]):
        with pytest.raises(InvalidArgumentError):
            model.logits(bad)


def test_perplexity_of_a_model_that_knows_nothing_is_its_vocabulary():
    model = make_model(context=16)
    assert model.perplexity("hello " * 20) == pytest.approx(len(TOKENS), rel=1e-5)
    windows = [ids for name, (ids, _) in model._engine.calls if name == "nll"]
    assert len(windows) > 2 and all(ids[0] == 1 and len(ids) <= 16 for ids in windows)


def test_perplexity_refuses_a_window_that_does_not_fit(model):
    with pytest.raises(InvalidArgumentError, match=r"context: found 1000, expected an integer in \[2, 256\]"):
        model.perplexity("hello hello", context=1000)


def test_perplexity_refuses_progress_that_is_no_function(model):
    with pytest.raises(InvalidArgumentError, match="progress: expected a function or None, got 5"):
        model.perplexity("hello hello", progress=5)


def test_memory_and_names(model):
    assert model.memory == akunu.Memory(weights=1, weights_mapped=2, kv_cache=3, scratch=4)
    assert model.memory.total == 10
    assert (model.name, model.context, model.device) == ("fake", 256, "cpu")
    assert repr(model) == "<akunu.Model fake (llama), context 256>"


def test_the_models_defaults_reach_the_engine():
    engine = FakeEngine(hashed(len(TOKENS), 3), vocab=len(TOKENS))
    model = wrap(engine, metadata(temp=0.25, top_k=9))
    model.generate(PROMPT, max_tokens=1)
    assert (engine.settings["temperature"], engine.settings["top_k"]) == (0.25, 9)
    model.generate(PROMPT, max_tokens=1, temperature=1.5)
    assert (engine.settings["temperature"], engine.settings["top_k"]) == (1.5, 9)


def test_a_completion_reads_as_its_text():
    result = make_model(scripted(len(PROMPT), [*as_bytes("done"), END])).generate(PROMPT)
    assert str(result) == result.text == "done"


def test_a_prompt_never_ends_with_an_end_token():
    data = {**metadata(), "tokenizer.ggml.add_eos_token": True}
    model = wrap(FakeEngine(hashed(len(TOKENS), 3), vocab=len(TOKENS)), data)
    model.generate("hi", max_tokens=1)
    assert model._engine.calls[0] == ("begin", [1, *as_bytes("hi")])
    assert model.tokenize("hi") == [1, *as_bytes("hi"), END]


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        (["one", "two"], "prompt: expected one text or its token ids, got a list of texts; generate_batch"),
        (None, r"prompt: expected a text or token ids, got None \(NoneType\)"),
        (5, r"prompt: expected a text or token ids, got 5 \(int\)"),
        ([1.5], "token ids: expected a sequence of integers"),
    ],
)
def test_what_is_no_prompt_is_named(model, prompt, message):
    with pytest.raises(InvalidArgumentError, match=message):
        model.generate(prompt)


def test_a_model_is_not_copied_and_says_where_to_load_it_instead(model):
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="belongs to the process that loaded it; load it in each process"):
            attempt(model)


def test_objects_show_what_they_are(model):
    assert repr(model.tokenizer) == f"<akunu.Tokenizer llama, {len(TOKENS)} tokens>"
    assert repr(model.chat_template) == "<akunu.ChatTemplate with default, read as plain>"
    with model.stream(PROMPT) as pieces:
        assert repr(pieces) == "<akunu.Stream>"
        next(pieces)
        assert repr(pieces) == "<akunu.Stream running>"
