"""The pace at which the requests of a client that sends many enter beside those of others."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from akunu.server import limits
from akunu.server.limits import _FORGET, ENTRY_SECONDS, FEW, RECENT_SECONDS, Entries
from own_view import give_own_view

from .conftest import serving


class Time:
    """Time that passes only while somebody sleeps."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        give_own_view(monkeypatch, limits, "asyncio", sleep=self.sleep)

    async def sleep(self, seconds: float) -> None:
        until = self.now + seconds
        await asyncio.sleep(0)
        self.now = max(self.now, until)


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    return Time(monkeypatch)


def enter(time: Time, clients: str, gap: float = 0.0) -> list[tuple[str, float]]:
    """When each of these, who come together, or `gap` after the first, has entered."""
    found, turns = list[tuple[str, float]](), Entries(lambda: time.now)

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
    found = enter(time, "a" + "b" * (FEW + 3))
    assert {client for client, _ in found} == {"b"}
    assert [at for _, at in found] == [0.0] * FEW + [round(n * ENTRY_SECONDS, 6) for n in range(1, 4)]


def test_it_is_the_same_for_one_after_another(time: Time) -> None:
    turns = Entries(lambda: time.now)

    async def come() -> float:
        await turns.turn("a")
        for _ in range(100):
            await turns.turn("b")
        return time.now - 100.0

    assert asyncio.run(come()) == pytest.approx((100 - FEW) * ENTRY_SECONDS)


def test_those_that_waited_for_the_loop_do_not_enter_together(time: Time) -> None:
    turns, entered = Entries(lambda: time.now), list[float]()

    async def one() -> None:
        await turns.turn("b")
        entered.append(time.now - 100.0)

    async def come() -> None:
        await turns.turn("a")
        waiting = [asyncio.create_task(one()) for _ in range(FEW + 3)]
        await asyncio.sleep(0)
        time.now += 5 * ENTRY_SECONDS  # the loop is behind
        await asyncio.gather(*waiting)

    asyncio.run(come())
    later = entered[FEW:]
    assert later == pytest.approx([(5 + n) * ENTRY_SECONDS for n in range(3)])


def test_another_client_enters_before_those_that_wait(time: Time) -> None:
    found = enter(time, "a" + "b" * (FEW + 3) + "a")
    assert found.index(("a", 0.0)) <= FEW


@pytest.mark.parametrize(
    ("clients", "gap"),
    [("b" * 50, 0.0), ("a" + "b" * FEW, 0.0), ("a" + "b" * 50, RECENT_SECONDS + 1)],
    ids=["nobody else comes", "few requests", "the other one came long ago"],
)
def test_requests_enter_at_once(time: Time, clients: str, gap: float) -> None:
    assert {at for _, at in enter(time, clients, gap)} == {0.0}


def test_clients_are_forgotten_that_come_no_more(time: Time) -> None:
    turns = Entries(lambda: time.now)

    async def come(names: range) -> None:
        for name in names:
            await turns.turn(str(name))

    asyncio.run(come(range(_FORGET + 2)))
    assert len(turns._lines) == _FORGET + 1
    time.now += 1.0
    asyncio.run(come(range(2)))
    assert len(turns._lines) == 2


def test_who_asks_whether_the_server_is_there_is_no_other_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """A supervisor does every few seconds, and everybody would be alone no more."""
    turn, came = Entries.turn, list[str]()

    async def noted(self: Entries, client: str) -> None:
        came.append(client)
        await turn(self, client)

    monkeypatch.setattr(Entries, "turn", noted)
    with serving() as served:
        for path in ("health", "ready"):
            assert httpx.get(f"{served.url}/{path}", trust_env=False).status_code == 200
        assert not came
        assert httpx.get(f"{served.url}/v1/models", trust_env=False).status_code == 200
        assert came
