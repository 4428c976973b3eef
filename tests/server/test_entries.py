"""The pace at which the requests of a client with many enter beside those of others."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from akunu.server import limits
from akunu.server.limits import ENTRY_SECONDS, FEW, RECENT_SECONDS, Entries


class Time:
    """Time that passes only while somebody sleeps."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(limits, "asyncio", self)
        self.Lock = asyncio.Lock

    async def sleep(self, seconds: float) -> None:
        until = self.now + seconds
        await asyncio.sleep(0)
        self.now = max(self.now, until)


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    return Time(monkeypatch)


def enter(time: Time, clients: str, present: dict[str, int], gap: float = 0.0) -> list[tuple[str, float]]:
    """When each of these, who come together, or `gap` after the first, has entered."""
    found, turns = list[tuple[str, float]](), Entries(Counter(present), lambda: time.now)

    async def one(client: str) -> None:
        await turns.turn(client)
        found.append((client, round(time.now - 100.0 - gap, 6)))

    async def all_of_them() -> None:
        await one(clients[0])
        found.clear()
        time.now += gap
        await asyncio.gather(*(one(client) for client in clients[1:]))

    asyncio.run(all_of_them())
    return found


def test_many_requests_of_a_client_enter_one_by_one_where_another_was_here(time: Time) -> None:
    found = enter(time, "abbbb", {"b": FEW + 1})
    assert [client for client, _ in found] == list("bbbb")
    assert [at for _, at in found] == [round(n * ENTRY_SECONDS, 6) for n in range(4)]


def test_another_client_enters_before_those_that_wait(time: Time) -> None:
    found = enter(time, "abbbba", {"a": 1, "b": FEW + 1})
    assert found.index(("a", 0.0)) <= 1


@pytest.mark.parametrize(
    ("clients", "present", "gap"),
    [
        ("bbbbbb", {"b": 50}, 0.0),
        ("abbbb", {"a": 1, "b": FEW}, 0.0),
        ("abbbb", {"b": 50}, RECENT_SECONDS + 1),
    ],
    ids=["nobody else comes", "few requests", "the other one came long ago"],
)
def test_requests_enter_at_once(time: Time, clients: str, present: dict[str, int], gap: float) -> None:
    assert {at for _, at in enter(time, clients, present, gap)} == {0.0}


def test_a_client_without_requests_is_forgotten(time: Time) -> None:
    turns = Entries(Counter({"b": FEW + 1}), lambda: time.now)

    async def come() -> None:
        await turns.turn("a")
        await turns.turn("b")

    asyncio.run(come())
    assert list(turns._lines) == ["b"]
    turns.forget("b")
    assert not turns._lines
