"""The asynchronous twins: equal results, a free event loop, and tasks whose cancellation ends what runs."""

from __future__ import annotations

import asyncio
import threading

import pytest

from akunu.base.errors import AkunuError, InvalidArgumentError

from .conftest import make_model
from .test_model import Gate, wait_until, waiting

PROMPT = [1, 10, 11, 12]
MESSAGES = [{"role": "user", "content": "hello"}]


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, 60))


async def until(condition):
    while not condition():
        await asyncio.sleep(0.001)


def free(model):
    """Whether the model serves at once."""
    return len(model.generate(PROMPT, max_tokens=2, wait_timeout=0).ids) == 2


def test_the_results_are_those_of_the_twins():
    async def all_four():
        model = make_model()
        text = [piece async for piece in model.astream(PROMPT, max_tokens=9)]
        chat = [piece async for piece in model.astream_chat(MESSAGES, max_tokens=9)]
        whole = await model.agenerate(PROMPT, max_tokens=9, logprobs=1)
        answer = await model.achat(MESSAGES, max_tokens=9)
        return text, chat, whole, answer

    text, chat, whole, answer = run(all_four())
    model = make_model()
    assert "".join(text) == model.generate(PROMPT, max_tokens=9).text == whole.text
    assert "".join(chat) == model.chat(MESSAGES, max_tokens=9).text == answer.text
    assert [i for piece in text for i in piece.ids] == whole.ids
    assert len(whole.logprobs) == 9


def test_the_event_loop_goes_on_while_the_model_runs():
    async def both():
        model = make_model()
        go = threading.Event()
        model._engine.before_decode = lambda engine: go.wait(30)
        task = asyncio.create_task(model.agenerate(PROMPT, max_tokens=3))
        await until(lambda: model._engine.calls)
        go.set()  # had the loop been blocked, nobody could
        return await task

    assert len(run(both()).ids) == 3


def test_many_tasks_are_served_and_none_starves_another():
    async def many():
        model = make_model(context=200)
        tasks = [model.agenerate([1, *range(10, 10 + n % 8)], max_tokens=12) for n in range(60)]
        return await asyncio.gather(*tasks)

    results = run(many())
    for n, result in enumerate(results):
        assert result.ids == make_model(context=200).generate([1, *range(10, 10 + n % 8)], max_tokens=12).ids


@pytest.mark.parametrize("kind", ["agenerate", "achat", "astream", "astream_chat"])
def test_a_cancelled_task_ends_its_generation_and_the_model_is_free(kind):
    async def cancelled():
        model = make_model(context=100_000)
        decoding = threading.Event()
        model._engine.before_decode = lambda engine: decoding.set()
        prompt = PROMPT if kind in ("agenerate", "astream") else MESSAGES

        async def work():
            if kind.startswith("astream"):
                async for _ in getattr(model, kind)(prompt):
                    pass
            else:
                await getattr(model, kind)(prompt)

        task = asyncio.create_task(work())
        await until(decoding.is_set)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert free(model)

    run(cancelled())


def test_a_task_that_is_cancelled_while_it_waits_leaves_the_queue():
    async def waits():
        model = make_model(parallel=1)
        gate = Gate(model)
        holder = asyncio.create_task(model.agenerate(PROMPT, max_tokens=9))
        await until(gate.reached.is_set)
        task = asyncio.create_task(model.agenerate(PROMPT))
        await until(lambda: waiting(model))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not waiting(model)
        gate.open()
        assert len((await holder).ids) == 9
        assert free(model)

    run(waits())


def test_a_stream_that_is_left_early_ends():
    async def left():
        model = make_model()
        async with model.astream(PROMPT) as pieces:
            async for _ in pieces:
                break
        assert pieces.completion.finish_reason == "cancelled"
        assert free(model)
        with pytest.raises(StopAsyncIteration):
            await anext(pieces)
        await pieces.aclose()
        unread = model.astream(PROMPT)
        await unread.aclose()
        assert free(model)

    run(left())


def test_a_stream_can_be_cancelled_from_outside():
    async def outside():
        model = make_model()
        pieces = model.astream(PROMPT)
        await anext(pieces)
        model.cancel()
        assert free(model)
        assert [piece async for piece in pieces] == []
        assert pieces.completion.finish_reason == "cancelled"

    run(outside())


def test_errors_come_where_they_belong():
    async def errors():
        model = make_model(context=4)
        with pytest.raises(InvalidArgumentError, match="top_p"):
            model.astream(PROMPT, top_p=7)
        with pytest.raises(AkunuError, match="7 tokens"):
            await model.agenerate([1] * 7)
        assert free(make_model())
        assert (await model.agenerate([1], max_tokens=1)).ids

    run(errors())


def test_tasks_generate_beside_an_open_stream():
    async def both():
        model = make_model()
        pieces = model.astream(PROMPT, max_tokens=20)
        text = await anext(pieces)
        answers = await asyncio.gather(*(model.agenerate(PROMPT, max_tokens=5) for _ in range(6)))
        alone = make_model().generate(PROMPT, max_tokens=20)
        assert {tuple(answer.ids) for answer in answers} == {tuple(alone.ids[:5])}
        assert text + "".join([piece async for piece in pieces]) == alone.text

    run(both())


def test_no_thread_is_left_behind():
    before = threading.active_count()

    async def some():
        model = make_model()
        for _ in range(5):
            await model.agenerate(PROMPT, max_tokens=2)
            async for _ in model.astream(PROMPT, max_tokens=2):
                pass

    run(some())
    wait_until(lambda: threading.active_count() <= before)
