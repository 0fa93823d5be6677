"""Callers that come at the same time are served together, and nobody suffers for another."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from reverie.core.errors import Invalid, StoreError
from reverie.store.contract import WouldWait
from reverie.store.group_commit import MOST_HERE, MOST_TOGETHER, GroupCommit


class Counter:
    """Serves by doubling; keeps the groups it saw; the first group can be held back."""

    def __init__(self, refuse: int | None = None, fault: BaseException | None = None) -> None:
        self.groups: list[list[int]] = []
        self.entered, self.leave = threading.Event(), threading.Event()
        self.refuse = refuse
        self.fault = fault
        self.gathering: GroupCommit[str, int, int] = GroupCommit(self.serve)

    def serve(self, key: str, items: list[int]) -> list[int]:
        self.groups.append(items)
        if not self.entered.is_set():
            self.entered.set()
            assert self.leave.wait(120)
        if self.refuse in items:
            raise Invalid("not this one")
        if self.fault is not None and len(items) > 1:
            raise self.fault
        return [item * 2 for item in items]

    def crowd(self, items: list[int]) -> list[Future[int]]:
        """Ask with the first item, and with the others while it is being served."""
        pool = ThreadPoolExecutor(len(items))
        futures = [pool.submit(self.gathering.ask, "k", items[0])]
        assert self.entered.wait(120)
        for number, item in enumerate(items[1:], 1):
            futures.append(pool.submit(self.gathering.ask, "k", item))
            while len(self.gathering._lines["k"]) < number:
                pass
        self.leave.set()
        pool.shutdown(wait=True)
        return futures


def test_a_caller_who_finds_nobody_is_served_at_once() -> None:
    counter = Counter()
    counter.leave.set()
    assert [counter.gathering.ask("k", n) for n in (1, 2, 3)] == [2, 4, 6]
    assert counter.groups == [[1], [2], [3]]


def test_who_comes_meanwhile_is_served_together_in_order() -> None:
    counter = Counter()
    futures = counter.crowd([1, 2, 3, 4, 5])
    assert [future.result() for future in futures] == [2, 4, 6, 8, 10]
    assert counter.groups == [[1], [2, 3, 4, 5]]


def test_one_refusal_is_its_callers_alone() -> None:
    counter = Counter(refuse=3)
    first, *others = counter.crowd([1, 2, 3, 4])
    assert first.result() == 2
    assert [future.exception() is None for future in others] == [True, False, True]
    with pytest.raises(Invalid):
        others[1].result()
    assert counter.groups == [[1], [2, 3, 4], [2], [3], [4]]


def test_a_group_has_a_largest_size() -> None:
    counter = Counter()
    futures = counter.crowd(list(range(MOST_TOGETHER + 20)))
    assert [future.result() for future in futures] == [n * 2 for n in range(MOST_TOGETHER + 20)]
    assert [len(group) for group in counter.groups] == [1, MOST_TOGETHER, 19]


def test_an_interrupted_leader_leaves_nobody_waiting() -> None:
    counter = Counter(fault=KeyboardInterrupt())
    first, leader, *others = counter.crowd([1, 2, 3, 4])
    assert first.result() == 2
    assert isinstance(leader.exception(), KeyboardInterrupt)
    assert all(isinstance(future.exception(), StoreError) for future in others)
    assert counter.gathering.ask("k", 7) == 14


def test_keys_do_not_wait_for_each_other() -> None:
    counter = Counter()
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(counter.gathering.ask, "a", 1)
        assert counter.entered.wait(120)
        assert counter.gathering.ask("b", 2) == 4
        counter.leave.set()
        assert held.result() == 2


def test_nothing_is_kept_of_those_who_left() -> None:
    counter = Counter()
    counter.crowd([1, 2, 3])
    assert counter.gathering._lines == {}


def test_many_threads_get_each_their_own_answer() -> None:
    counter = Counter()
    counter.leave.set()
    ask: Callable[[int], int] = lambda n: counter.gathering.ask("k", n)  # noqa: E731
    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(ask, range(2000))) == [n * 2 for n in range(2000)]
    assert sorted(n for group in counter.groups for n in group) == list(range(2000))


def test_callers_in_a_loop_are_served_together_by_one_thread() -> None:
    counter = Counter()
    threads: set[int] = set()
    serve = counter.serve

    def watched(key: str, items: list[int]) -> list[int]:
        threads.add(threading.get_ident())
        return serve(key, items)

    gathering: GroupCommit[str, int, int] = GroupCommit(watched)

    async def story() -> list[int]:
        asked = [asyncio.ensure_future(gathering.ask_soon("k", n, pool)) for n in range(64)]
        while not counter.entered.is_set() or len(gathering._lines["k"]) < 63:
            await asyncio.sleep(0.001)
        counter.leave.set()
        return await asyncio.gather(*asked)

    with ThreadPoolExecutor(8) as pool:
        assert asyncio.run(story()) == [n * 2 for n in range(64)]
    assert counter.groups == [[0], list(range(1, 64))]
    assert len(threads) == 1
    assert threads != {threading.get_ident()}
    assert gathering._lines == {}


def test_a_refusal_in_a_loop_is_its_callers_alone() -> None:
    counter = Counter(refuse=3)
    counter.leave.set()

    async def story() -> list[int | BaseException]:
        asked = (counter.gathering.ask_soon("k", n, pool) for n in range(6))
        return await asyncio.gather(*asked, return_exceptions=True)

    with ThreadPoolExecutor(2) as pool:
        answers = asyncio.run(story())
    assert isinstance(answers.pop(3), Invalid)
    assert answers == [0, 2, 4, 8, 10]


def test_who_stops_waiting_in_a_loop_is_served_all_the_same() -> None:
    counter = Counter()

    async def story() -> None:
        asked = [asyncio.ensure_future(counter.gathering.ask_soon("k", n, pool)) for n in range(4)]
        while not counter.entered.is_set() or len(counter.gathering._lines["k"]) < 3:
            await asyncio.sleep(0.001)
        asked[0].cancel()
        asked[2].cancel()
        counter.leave.set()
        assert [await asked[n] for n in (1, 3)] == [2, 6]

    with ThreadPoolExecutor(2) as pool:
        asyncio.run(story())
    assert sorted(n for group in counter.groups for n in group) == [0, 1, 2, 3]
    assert counter.gathering._lines == {}


def test_threads_and_loops_stand_in_one_line() -> None:
    counter = Counter()
    counter.leave.set()

    async def story() -> list[int]:
        async def client(number: int) -> list[int]:
            return [await counter.gathering.ask_soon("k", n, pool) for n in range(number, 1000, 8)]

        return [answer for part in await asyncio.gather(*map(client, range(8))) for answer in part]

    with ThreadPoolExecutor(16) as pool, ThreadPoolExecutor(8) as others:
        plain = [others.submit(counter.gathering.ask, "k", n) for n in range(1000, 2000)]
        assert sorted(asyncio.run(story())) == [n * 2 for n in range(1000)]
        assert [future.result(120) for future in plain] == [n * 2 for n in range(1000, 2000)]
    assert sorted(n for group in counter.groups for n in group) == list(range(2000))
    assert counter.gathering._lines == {}


def test_a_closed_pool_leaves_nobody_waiting() -> None:
    counter = Counter()
    counter.leave.set()
    pool = ThreadPoolExecutor(1)
    pool.shutdown()

    async def story() -> int:
        return await asyncio.wait_for(counter.gathering.ask_soon("k", 5, pool), 30)

    assert asyncio.run(story()) == 10


def test_an_interrupted_thread_leaves_no_loop_waiting() -> None:
    counter = Counter(fault=SystemExit())

    async def story() -> list[int | BaseException]:
        asked = [asyncio.ensure_future(counter.gathering.ask_soon("k", n, pool)) for n in range(4)]
        while not counter.entered.is_set() or len(counter.gathering._lines["k"]) < 3:
            await asyncio.sleep(0.001)
        counter.leave.set()
        return await asyncio.wait_for(asyncio.gather(*asked, return_exceptions=True), 30)

    with ThreadPoolExecutor(2) as pool:
        first, *others = asyncio.run(story())
    assert first == 0
    assert all(isinstance(answer, StoreError) for answer in others)
    assert counter.gathering.ask("k", 7) == 14


class Here:
    """Serves by doubling; `groups` has the thread of each group: the loop's own, or one of the pool."""

    def __init__(self, fault: BaseException | None = None, most: int = MOST_HERE) -> None:
        self.groups: list[tuple[bool, list[int]]] = []
        self.fault = fault
        self.most = most
        self.gathering: GroupCommit[str, int, int] = GroupCommit(self.serve, self.at_once)

    def serve(self, key: str, items: list[int]) -> list[int]:
        self.groups.append((False, items))
        if self.fault is not None and 3 in items:
            raise self.fault
        return [item * 2 for item in items]

    def at_once(self, key: str, items: list[int]) -> list[int]:
        if isinstance(self.fault, WouldWait):
            raise self.fault
        items = items[: self.most]
        self.groups.append((True, items))
        if self.fault is not None and 3 in items:
            raise self.fault
        return [item * 2 for item in items]

    def ask(self, *asked: tuple[str, int], here: bool = True) -> list[int | BaseException]:
        async def story() -> list[int | BaseException]:
            waiting = [self.gathering.ask_soon(key, n, pool, here=lambda _: here) for key, n in asked]
            return await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 60)

        with ThreadPoolExecutor(2) as pool:
            answers = asyncio.run(story())
        assert self.gathering._lines == {}
        return answers


def test_one_turn_of_a_loop_is_served_together_in_the_loop() -> None:
    counter = Here()
    assert counter.ask(*(("k", n) for n in range(8))) == [n * 2 for n in range(8)]
    assert counter.groups == [(True, list(range(8)))]


def test_a_loop_that_may_not_serve_leaves_it_to_a_thread() -> None:
    counter = Here()
    assert counter.ask(("k", 1), here=False) == [2]
    assert [here for here, _ in counter.groups] == [False]


def test_what_would_wait_is_served_once_by_a_thread() -> None:
    counter = Here(WouldWait())
    counter.serve = counter.gathering._serve = lambda key, items: [item * 2 for item in items]  # type: ignore[method-assign]
    assert counter.ask(*(("k", n) for n in range(4))) == [0, 2, 4, 6]
    assert counter.groups == []


def test_a_crowd_is_served_in_several_turns_of_the_loop() -> None:
    crowd = Here()
    assert crowd.ask(*(("k", n) for n in range(MOST_HERE + 1))) == [n * 2 for n in range(MOST_HERE + 1)]
    assert crowd.groups == [(True, list(range(MOST_HERE))), (True, [MOST_HERE])]


def test_the_loop_serves_the_first_of_a_turn_as_many_as_are_quick() -> None:
    counter = Here(most=3)
    assert counter.ask(*(("k", n) for n in range(8))) == [n * 2 for n in range(8)]
    assert counter.groups == [(True, [0, 1, 2]), (True, [3, 4, 5]), (True, [6, 7])]


def test_several_keys_are_served_by_threads() -> None:
    several = Here()
    assert several.ask(("a", 1), ("b", 2)) == [2, 4]
    assert sorted(items for _, items in several.groups) == [[1], [2]]
    assert not several.groups[0][0]


def test_a_refusal_in_a_turn_is_its_callers_alone() -> None:
    counter = Here(Invalid("not this one"))
    answers = counter.ask(*(("k", n) for n in range(5)))
    assert isinstance(answers.pop(3), Invalid)
    assert answers == [0, 2, 4, 8]
    alone = Here(Invalid("not this one"))
    assert isinstance(alone.ask(("k", 3))[0], Invalid)
    assert alone.groups == [(True, [3])]


def test_callers_that_come_back_one_by_one_are_served_together() -> None:
    counter = Here()

    async def story() -> None:
        async def client(number: int) -> None:
            for again in range(5):
                for _ in range(number if again else 0):  # a turn of the loop each
                    await asyncio.sleep(0)
                await counter.gathering.ask_soon("k", number, pool, here=lambda _: True)

        await asyncio.wait_for(asyncio.gather(*map(client, range(8))), 60)

    with ThreadPoolExecutor(2) as pool:
        asyncio.run(story())
    assert [sorted(items) for _, items in counter.groups] == [list(range(8))] * 5
    assert all(here for here, _ in counter.groups)


def test_a_caller_alone_is_served_in_the_turn_it_came() -> None:
    counter = Here()

    async def story() -> None:
        for n in range(3):
            asked = asyncio.ensure_future(counter.gathering.ask_soon("k", n, pool, here=lambda _: True))
            await asyncio.sleep(0)  # asks
            await asyncio.sleep(0)  # is served
            assert counter.groups[-1] == (True, [n])
            assert await asked == n * 2

    with ThreadPoolExecutor(2) as pool:
        asyncio.run(story())


def test_a_thread_that_had_to_serve_hands_back_to_the_loop() -> None:
    counter = Here()
    waits, served = True, threading.Event()

    def at_once(key: str, items: list[int]) -> list[int]:
        if waits:
            raise WouldWait
        return Here.at_once(counter, key, items)

    def serve(key: str, items: list[int]) -> list[int]:
        nonlocal waits
        assert served.wait(60)
        waits = False
        return Here.serve(counter, key, items)

    gathering: GroupCommit[str, int, int] = GroupCommit(serve, at_once)

    async def story() -> None:
        first = asyncio.ensure_future(gathering.ask_soon("k", 0, pool, here=lambda _: True))
        while gathering._lines.get("k") != []:  # until a thread has taken it
            await asyncio.sleep(0.001)
        others = [asyncio.ensure_future(gathering.ask_soon("k", n, pool, here=lambda _: True)) for n in (1, 2)]
        await asyncio.sleep(0)
        served.set()
        assert await asyncio.wait_for(asyncio.gather(first, *others), 60) == [0, 2, 4]

    with ThreadPoolExecutor(2) as pool:
        asyncio.run(story())
    assert counter.groups == [(False, [0]), (True, [1, 2])]
    assert gathering._lines == {}


def test_only_a_key_that_had_a_crowd_waits_for_one() -> None:
    counter = Counter()
    counter.crowd([1, 2, 3, 4, 5, 6])
    assert counter.gathering._crowds == {"k": 5}
    assert counter.gathering.ask("other", 7) == 14
    assert counter.gathering._crowds == {"k": 5}
    assert counter.gathering.ask("k", 8) == 16
    assert counter.gathering._crowds == {}
