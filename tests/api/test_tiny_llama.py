"""The API over the compiled core, with a real model: the tiny Llama of the shared test data."""

from __future__ import annotations

import math
import signal
import sys
import threading
import time

import numpy as np
import pytest

import akunu
from akunu.api.scheduling import planning
from akunu.base.errors import (
    AkunuError,
    ContextLengthError,
    InvalidArgumentError,
    ModelFileError,
    TemplateError,
    UnsupportedError,
)
from akunu.cli.bench.one_sequence import OneSequence
from models import llama2c


@pytest.fixture(scope="module")
def expected():
    return llama2c.expected()


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return llama2c.write("F32", tmp_path_factory.mktemp("llama2c") / "tiny.gguf")


@pytest.fixture(scope="module")
def model(path):
    with akunu.load(path) as model:
        yield model


@pytest.fixture
def fresh(path):
    with akunu.load(path) as model:
        yield model


@pytest.mark.parametrize("longest", [1, 2, 3, 7, 64, 256])
def test_both_greedy_runs_with_chains_of_any_length(model, expected, longest, monkeypatch):
    monkeypatch.setattr(planning, "MAX_CHAIN", longest)
    prompted = model.generate(expected.prompt, max_tokens=64, temperature=0)
    assert prompted.ids == expected.greedy_ids
    assert expected.prompt + prompted.text == expected.greedy_text
    story = model.generate([1], max_tokens=200, temperature=0)
    assert [1, *story.ids] == expected.story_ids
    assert story.text == " " + expected.story_text or story.text == expected.story_text
    assert "".join(model.stream([1], max_tokens=200, temperature=0)) == story.text


@pytest.mark.parametrize(("dtype", "whole"), [("F16", True), ("Q8_0", False)])
def test_greedy_runs_of_smaller_weights(dtype, whole, expected, tmp_path):
    with akunu.load(llama2c.write(dtype, tmp_path / "m.gguf")) as model:
        assert model.generate(expected.prompt, max_tokens=64, temperature=0).ids == expected.greedy_ids
        if whole:
            # Two tokens of the story differ by 0.005 only, which rows of drafts may turn round on a GPU.
            found = model.generate([1], max_tokens=200, temperature=0, speculative=False)
            assert found.ids == expected.story_ids[1:]


@pytest.mark.parametrize("limit", [2**32 - 1, 2**32, 2**63, 2**64 - 1])
def test_a_limit_beyond_the_context_is_none(limit, model):
    prompt = [1] * (model.context - 4)
    assert model.generate(prompt, max_tokens=limit, seed=1).ids == model.generate(prompt, seed=1).ids


@pytest.mark.parametrize(("kv_dtype", "tolerance"), [("f32", 1e-4), ("f16", 1e-2)])
def test_logits(path, expected, kv_dtype, tolerance):
    with akunu.load(path, kv_dtype=kv_dtype) as model:
        logits = model.logits(expected.prompt_ids)
    assert logits.shape == (5, 512) and logits.dtype == np.float32
    np.testing.assert_allclose(logits[-1], expected.prompt_logits, atol=tolerance)


def test_perplexity(model, expected):
    assert model.perplexity(expected.story_text) == pytest.approx(math.exp(expected.nll.mean()), rel=1e-3)
    windowed = model.perplexity(expected.story_text, context=64)
    assert math.exp(expected.nll.mean()) < windowed < 3


def test_logprobs_are_those_of_the_logits(model, expected):
    result = model.generate(expected.prompt, max_tokens=8, temperature=0, logprobs=3)
    logits = model.logits(expected.prompt_ids + result.ids)[len(expected.prompt_ids) - 1 : -1]
    log_p = logits - np.log(np.exp(logits.astype(np.float64)).sum(axis=1, keepdims=True))
    for row, entry in zip(log_p, result.logprobs, strict=True):
        assert entry.logprob == pytest.approx(row[entry.id], abs=1e-3)
        assert [i for i, _ in entry.top] == np.argsort(-row)[:3].tolist()
        assert entry.top[0] == (entry.id, entry.logprob)


def test_a_seed_gives_one_sequence_whatever_the_chains(model, expected, monkeypatch):
    outputs = []
    for longest in (1, 5, 256):
        monkeypatch.setattr(planning, "MAX_CHAIN", longest)
        outputs.append(model.generate(expected.prompt, max_tokens=80, seed=7, temperature=1.0).text)
    assert len(set(outputs)) == 1
    assert model.generate(expected.prompt, max_tokens=80, seed=8, temperature=1.0).text != outputs[0]
    drawn = model.generate(expected.prompt, max_tokens=80, temperature=1.0)
    assert model.generate(expected.prompt, max_tokens=80, temperature=1.0, seed=drawn.seed).ids == drawn.ids


@pytest.mark.parametrize("stop", ["Lily", "was", "ark. O", ".\nL", "not there"])
def test_after_a_stop_text_a_continuation_equals_a_fresh_run(model, fresh, expected, stop):
    whole = fresh.generate(expected.prompt, max_tokens=60, temperature=0).text
    result = model.generate(expected.prompt, max_tokens=60, temperature=0, stop=stop)
    assert result.text == whole.split(stop)[0]
    assert (result.stop or "not there") == stop
    seen = [*expected.prompt_ids, *result.ids]
    longer = [*seen, *model.tokenize(" The dog", add_special=False)]
    again = model.generate(longer, max_tokens=40, temperature=0)
    assert again.stats.cached_tokens >= len(seen) - 1
    assert again.ids == fresh.generate(longer, max_tokens=40, temperature=0).ids


def test_a_stream_closed_early_leaves_what_was_read(model, expected):
    with model.stream(expected.prompt, temperature=0) as stream:
        text = "".join(next(stream) for _ in range(4))
    seen = expected.prompt_ids + stream.completion.ids
    again = model.generate([*seen, 99], max_tokens=0)
    assert again.stats.cached_tokens >= len(seen) - 1
    assert expected.greedy_text.startswith(expected.prompt + text)
    assert model.generate(expected.prompt, max_tokens=64, temperature=0).ids == expected.greedy_ids


def test_the_context_is_filled_and_never_passed(path, expected):
    with akunu.load(path, context=32) as model:
        result = model.generate(expected.prompt, temperature=0)
        assert (len(result.ids), result.finish_reason) == (32 - 5 + 1, "length")
        assert result.ids == expected.greedy_ids[:28]
        with pytest.raises(ContextLengthError, match=r"33.*32"):
            model.generate([1] * 33)
        assert model.generate([1] * 32, max_tokens=5).finish_reason == "length"


@pytest.mark.usefixtures("no_collection")
def test_ctrl_c_stops_and_the_model_stays_true(model, expected):
    main = threading.main_thread().ident
    thread = threading.Timer(0.02, signal.pthread_kill, (main, signal.SIGINT))
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        while True:
            model.generate([1], temperature=0)
    thread.join()
    assert model.generate(expected.prompt, max_tokens=64, temperature=0).ids == expected.greedy_ids


def test_cancel_from_another_thread(model, expected):
    stream = model.stream([1], temperature=0)
    first = next(stream)
    thread = threading.Thread(target=model.cancel)
    thread.start()
    thread.join()
    rest = "".join(stream)
    assert expected.story_text.startswith((first + rest).strip())
    assert stream.completion.finish_reason == "cancelled"


def test_threads_are_served_one_after_the_other(model, expected):
    results = []

    def work(seed):
        results.append(
            (seed, model.generate(expected.prompt, max_tokens=60, seed=seed, temperature=1.0).text)
        )

    threads = [threading.Thread(target=work, args=(seed,)) for seed in (1, 2, 3) * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(results) == 9 and len(set(results)) == 3


def test_other_threads_run_while_the_engine_computes(model):
    ticks, stop = [], threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(None)
            time.sleep(0.0002)

    engine = OneSequence(model._engine)
    engine.begin([1])
    engine.prefill()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)  # so that only a released GIL lets the other thread run
    thread = threading.Thread(target=tick)
    try:
        thread.start()
        before = len(ticks)
        engine.decode(256)
        during = len(ticks) - before
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        thread.join()
    assert during > 0


def test_a_model_says_what_it_is(model, path):
    assert model.config.arch == "llama" and model.config.n_layers == 5
    assert (model.context, model.path) == (512, path)
    assert model.device in [device["name"] for device in akunu.devices()]
    assert model.memory.weights + model.memory.weights_mapped >= 1_000_000
    # Eight sequences of 512 tokens in pages of 32, and a page each to write to.
    assert model.memory.kv_cache == 5 * 2 * (8 * 512 + 8 * 32) * 32 * 2
    with pytest.raises(TemplateError, match="no chat template"):
        model.chat([{"role": "user", "content": "Hi"}])


def test_chat_with_a_common_format_continues_on_its_cache(path, fresh):
    messages = [{"role": "user", "content": "Tell me of Lily."}]
    fresh.chat_template = akunu.ChatTemplate.named("chatml", fresh.tokenizer)
    with akunu.load(path) as model:
        model.chat_template = fresh.chat_template
        first = model.chat(messages, max_tokens=20, temperature=0)
        messages += [{"role": "assistant", "content": first.text}, {"role": "user", "content": "And then?"}]
        second = model.chat(messages, max_tokens=20, temperature=0)
    assert second.stats.cached_tokens > 20
    assert second.ids == fresh.chat(messages, max_tokens=20, temperature=0).ids


def test_progress_counts_the_bytes_and_can_give_up(path):
    seen = []
    akunu.load(path, progress=lambda *done: seen.append(done)).close()
    assert seen == sorted(seen) and seen[-1][0] == seen[-1][1] > 1_000_000

    class GiveUp(Exception):
        pass

    def give_up(done, total):
        raise GiveUp

    with pytest.raises(GiveUp):
        akunu.load(path, progress=give_up)


def test_0_and_minus_1_leave_sizes_open_as_elsewhere(path):
    with akunu.load(path, progress=False) as model:
        own = model.context
    for options in ({"context": 0}, {"threads": 0}, {"threads": -1}):
        with akunu.load(path, progress=False, **options) as model:
            assert model.context == own
    for options in ({"context": -1}, {"threads": -2}, {"context": False}):
        with pytest.raises(InvalidArgumentError, match=next(iter(options))):
            akunu.load(path, **options)


def test_bad_files_and_arguments(path, tmp_path):
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(ModelFileError):
        akunu.load(broken)
    broken.write_bytes(b"not a model at all")
    with pytest.raises(ModelFileError):
        akunu.load(broken)
    too_long = r"context: 513 is more than the 512 tokens tiny\.gguf .* rope_scaling \(yarn:2\)"
    with pytest.raises(InvalidArgumentError, match=too_long):
        akunu.load(path, context=513)
    with pytest.raises((InvalidArgumentError, UnsupportedError), match="f99"):
        akunu.load(path, kv_dtype="f99")
    with pytest.raises(InvalidArgumentError, match="device"):
        akunu.load(path, device="abacus")


def test_use_after_close(path):
    model = akunu.load(path, threads=1)
    stream = model.stream([1])
    next(stream)
    model.close()
    assert list(stream) == []
    with pytest.raises(AkunuError, match="closed"):
        model.generate([1])
