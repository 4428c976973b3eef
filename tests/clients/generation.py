"""Text and chats, as a type checker sees a client's code (`make check` checks it; nothing runs it)."""

from __future__ import annotations

from typing import assert_type

import akunu


def text(path: str) -> str:
    with akunu.load(path, context=2048, device="cpu", kv_dtype="q8_0", progress=False) as model:
        assert_type(model, akunu.Model)
        one = model.generate("Once", max_tokens=5, temperature=0.5, seed=1, stop=["."], logprobs=2)
        assert_type(one, akunu.Completion)
        assert_type(model.generate("Once", n=1), akunu.Completion)
        assert_type(model.generate("Once", n=3), list[akunu.Completion])
        for piece in model.stream([1, 2, 3], schema={"type": "object"}):
            assert_type(piece, akunu.Piece)
        assert_type(one.stats, akunu.Stats)
        assert_type(model.stats, akunu.ModelStats)
        assert_type(model.memory, akunu.Memory)
        return one.text


def chat(model: akunu.Model) -> dict[str, object]:
    messages = [{"role": "user", "content": "Hello!"}]
    options: akunu.ChatOptions = {"max_tokens": 20, "thinking": False}
    assert_type(model.chat(messages, **options), akunu.Completion)
    with model.stream_chat(messages) as stream:
        assert_type(stream, akunu.Stream)
        for _ in stream.deltas():
            pass
        assert_type(stream.stats, akunu.Stats)
    session = model.session(max_tokens=20)
    assert_type(session, akunu.Session)
    return session.chat("And now?").message


async def asynchronous(model: akunu.Model) -> str:
    assert_type(await model.agenerate("Once", max_tokens=5), akunu.Completion)
    said = ""
    async with model.astream("Once") as stream:
        assert_type(stream, akunu.AsyncStream)
        async for piece in stream:
            said += piece
    return said


def wrong(model: akunu.Model) -> None:
    model.generate("Once", max_token=5)  # type: ignore[call-overload]
    model.stream("Once", temperature="hot")  # type: ignore[arg-type]
    akunu.load("ember", devise="cpu")  # type: ignore[call-overload]
