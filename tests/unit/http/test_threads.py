"""Turns between tenants. Work here waits for events, so that the order is decided by the lanes alone."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import wait
from contextvars import ContextVar, copy_context
from functools import partial
from typing import Any

import pytest

from reverie.core.actor import Actor
from reverie.core.entry import Draft, Scope
from reverie.core.pause import PAUSE, Pauses, paced, pause
from reverie.host import Host
from reverie.http.pace import Pace
from reverie.http.threads import Lane, Precedence, Threads
from reverie.jobs.worker import Worker
from reverie.providers.tokenizer import TokenCounter


class Gate:
    """Work that begins, says so, and ends when it may."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self._go = threading.Semaphore(0)
        self._lock = threading.Lock()

    def work(self, name: str) -> Callable[[], str]:
        def run() -> str:
            with self._lock:
                self.begun.append(name)
            assert self._go.acquire(timeout=60)
            return name

        return run

    def let(self, count: int = 1) -> None:
        self._go.release(count)

    async def wait(self, count: int) -> None:
        while len(self.begun) < count:
            await asyncio.sleep(0.001)


def run(script: Any) -> Any:
    return asyncio.run(asyncio.wait_for(script, 60))


def lanes(slots: int, each: int, *, patience: float = 0.02) -> Threads:
    return Threads(dict.fromkeys(Lane, (slots, each)), patience=patience)


def test_a_result_an_error_and_the_context_come_through() -> None:
    spoken: ContextVar[str] = ContextVar("spoken")

    def fail() -> None:
        raise ValueError("no")

    async def go() -> None:
        threads = Threads()
        spoken.set("here")
        assert await threads.run(Lane.READ, "a", spoken.get) == "here"
        name = await threads.run(Lane.READ, "a", lambda: threading.current_thread().name)
        assert name.startswith("reverie-request")
        with pytest.raises(ValueError, match="no"):
            await threads.run(Lane.READ, "a", fail)

    run(go())


def test_a_thousand_waiting_of_one_tenant_delay_another_by_one_turn() -> None:
    async def go() -> None:
        threads, gate = lanes(2, 2), Gate()
        many = [asyncio.ensure_future(threads.run(Lane.WRITE, "a", gate.work("a"))) for _ in range(1000)]
        await gate.wait(2)
        one = asyncio.ensure_future(threads.run(Lane.WRITE, "b", gate.work("b")))
        await asyncio.sleep(0)
        gate.let()
        await gate.wait(3)
        gate.let()
        await gate.wait(4)
        assert "b" in gate.begun[:4]
        gate.let(2000)
        assert await one == "b"
        assert await asyncio.gather(*many) == ["a"] * 1000

    run(go())


def test_tenants_are_served_in_turn() -> None:
    async def go() -> None:
        threads, gate = lanes(1, 1), Gate()
        first = asyncio.ensure_future(threads.run(Lane.READ, "x", gate.work("x")))
        await gate.wait(1)
        waiting = [asyncio.ensure_future(threads.run(Lane.READ, tenant, gate.work(tenant))) for tenant in "aaaabbbcc"]
        await asyncio.sleep(0)
        gate.let(100)
        await asyncio.gather(first, *waiting)
        assert "".join(gate.begun) == "xabcabcaba"[: len(gate.begun)]

    run(go())


def test_a_tenant_has_no_more_slots_than_it_may_and_others_have_the_rest() -> None:
    async def go() -> None:
        threads, gate = lanes(4, 3), Gate()
        many = [asyncio.ensure_future(threads.run(Lane.READ, "a", gate.work("a"))) for _ in range(10)]
        await gate.wait(3)
        other = asyncio.ensure_future(threads.run(Lane.READ, "b", gate.work("b")))
        await gate.wait(4)  # at once: a slot was left
        assert gate.begun == ["a", "a", "a", "b"]
        gate.let(100)
        await asyncio.gather(other, *many)

    run(go())


def test_a_tenant_reads_with_one_thread_while_another_asks_and_with_all_of_its_own_afterwards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def go() -> None:
        threads, gate, others = lanes(8, 3), Gate(), Gate()
        alone = [asyncio.ensure_future(threads.run(Lane.READ, "a", gate.work(f"a{n}"))) for n in range(9)]
        await gate.wait(3)
        other = asyncio.ensure_future(threads.run(Lane.READ, "b", others.work("b")))
        await others.wait(1)
        gate.let(3)
        await asyncio.wait(alone[:3])
        await gate.wait(4)
        assert gate.begun == ["a0", "a1", "a2", "a3"]  # of the three that ended, one is followed
        others.let()
        await other
        monkeypatch.setattr("reverie.http.threads.SHARED_SECONDS", 0.0)
        gate.let()
        await gate.wait(7)
        assert sorted(gate.begun[4:]) == ["a4", "a5", "a6"]
        gate.let(5)
        assert await asyncio.gather(*alone) == [f"a{n}" for n in range(9)]

    run(go())


def test_lanes_do_not_wait_for_each_other() -> None:
    async def go() -> None:
        threads, gate = lanes(1, 1), Gate()
        heavy = asyncio.ensure_future(threads.run(Lane.HEAVY, "a", gate.work("a")))
        await gate.wait(1)
        assert await threads.run(Lane.READ, "a", lambda: 1) == 1
        gate.let()
        await heavy

    run(go())


def test_work_whose_caller_left_before_it_began_is_dropped() -> None:
    async def go() -> None:
        threads, gate = lanes(1, 1), Gate()
        first = asyncio.ensure_future(threads.run(Lane.READ, "a", gate.work("first")))
        await gate.wait(1)
        left = [asyncio.ensure_future(threads.run(Lane.READ, "a", gate.work("left"))) for _ in range(3)]
        last = asyncio.ensure_future(threads.run(Lane.READ, "b", gate.work("last")))
        await asyncio.sleep(0)
        for task in left:
            task.cancel()
        await asyncio.sleep(0)
        gate.let(10)
        await asyncio.gather(first, last)
        assert gate.begun == ["first", "last"]
        assert await threads.run(Lane.READ, "a", lambda: 1) == 1  # nothing is left occupied

    run(go())


def test_every_item_of_an_iterator_is_a_turn_of_its_own() -> None:
    async def go() -> None:
        threads, order = lanes(1, 1), []

        async def items(tenant: str) -> list[int]:
            found = []
            async for item in threads.each(tenant, iter(range(5))):
                order.append(tenant)
                found.append(item)
            return found

        assert await asyncio.gather(items("a"), items("b")) == [list(range(5))] * 2
        assert order[:4] != ["a"] * 4

    run(go())


def test_a_piece_of_long_work_waits_while_another_tenant_asks() -> None:
    async def go() -> None:
        threads, gate = lanes(4, 4, patience=60), Gate()
        asking = asyncio.ensure_future(threads.run(Lane.READ, "b", gate.work("b")))
        await gate.wait(1)
        pieces = threads.each("a", iter([1, 2]))
        piece = asyncio.ensure_future(anext(pieces))
        done, _ = await asyncio.wait([piece], timeout=0.1)
        assert not done
        gate.let()
        await asking
        assert await piece == 1  # nothing is asked any more

    run(go())


def test_long_work_pauses_between_its_steps_while_another_tenant_asks() -> None:
    async def go() -> None:
        threads, gate, steps = lanes(4, 4, patience=60), Gate(), []

        def long_work() -> int:
            for number in range(3):
                pause()
                steps.append(number)
            return len(steps)

        asking = asyncio.ensure_future(threads.run(Lane.READ, "b", gate.work("b")))
        await gate.wait(1)
        long = asyncio.ensure_future(threads.run(Lane.HEAVY, "a", long_work))
        done, _ = await asyncio.wait([long], timeout=0.1)
        assert not done
        assert steps == []
        gate.let()
        await asking
        assert await long == 3
        assert await threads.run(Lane.READ, "a", PAUSE.get) is None  # quick work has no pauses

    run(go())


def test_a_write_transaction_of_long_work_does_not_pause(make_host: Callable[..., Host], ada: Actor) -> None:
    host, paused = make_host(), []

    def work() -> None:
        PAUSE.set(Pauses(lambda: paused.append(1)))
        host.parts.store.write(Scope("acme", "notes"), lambda tx: pause())
        assert not paused
        pause()
        assert len(paused) == 1

    copy_context().run(work)


def test_jobs_of_the_worker_pause_in_the_name_of_their_tenant(make_host: Callable[..., Host], ada: Actor) -> None:
    host, asked, paused = make_host(tokens=TokenCounter()), [], []
    host.entries.put(ada, "notes", [Draft(f"Hall {n} keeps pump {n}; line {n} leaks.") for n in range(20)])

    def pausing(tenant: str, work: Callable[[], Any], /) -> Callable[[], Any]:
        asked.append(tenant)

        def run() -> Any:
            PAUSE.set(Pauses(lambda: paused.append(tenant)))
            return work()

        return partial(copy_context().run, run)

    host.jobs.add(ada, "dream", {"ref": "notes"})
    worker = Worker(host, every_seconds=60, pausing=pausing)
    assert worker.tick() == 1
    assert host.jobs.all(ada) == []
    assert asked == ["acme"]
    assert len(paused) > 40  # at every statement of every entry
    assert PAUSE.get() is None


def test_long_work_waits_neither_for_its_own_tenant_nor_for_ever() -> None:
    async def go() -> None:
        gate = Gate()
        patient, hasty = lanes(4, 4, patience=60), lanes(4, 4, patience=0.01)
        own = asyncio.ensure_future(patient.run(Lane.WRITE, "a", gate.work("own")))
        other = asyncio.ensure_future(hasty.run(Lane.WRITE, "b", gate.work("other")))
        await gate.wait(2)
        assert [item async for item in patient.each("a", iter([1, 2]))] == [1, 2]
        assert [item async for item in hasty.each("a", iter([1, 2]))] == [1, 2]
        assert not own.done()
        assert not other.done()
        gate.let(2)
        await asyncio.gather(own, other)

    run(go())


def test_the_slices_of_long_work_follow_each_other_while_another_tenant_asks() -> None:
    """Eight threads that compute, each after a pause of its own, left the interpreter to nothing else."""
    precedence, began = Precedence(0.0, 0.001, 0.02), time.monotonic()
    precedence.begin("b")
    waiting = [threading.Thread(target=precedence.give_way, args=("a",)) for _ in range(8)]
    for thread in waiting:
        thread.start()
    for thread in waiting:
        thread.join(60)
    assert time.monotonic() - began >= 7 * 0.02


def test_a_caller_that_left_is_not_waited_for() -> None:
    async def go() -> None:
        threads, gate = lanes(1, 1, patience=60), Gate()
        first = asyncio.ensure_future(threads.run(Lane.READ, "b", gate.work("b")))
        await gate.wait(1)
        left = asyncio.ensure_future(threads.run(Lane.READ, "b", gate.work("left")))
        await asyncio.sleep(0)
        left.cancel()
        gate.let()
        await first
        assert [item async for item in threads.each("a", iter([1]))] == [1]

    run(go())


def test_work_of_several_event_loops_shares_the_lanes() -> None:
    threads, answers = lanes(1, 1), []

    def loop(number: int) -> None:
        async def go() -> None:
            answers.append(await threads.run(Lane.READ, "a", lambda: number))

        asyncio.run(go())

    started = [threading.Thread(target=loop, args=(number,)) for number in range(8)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join(60)
    assert sorted(answers) == list(range(8))


def test_a_lane_as_an_executor_takes_turns_like_everything_else() -> None:
    threads = Threads(dict.fromkeys(Lane, (1, 1)))
    pool = threads.executor(Lane.WRITE, "a")
    held, began = threading.Event(), threading.Event()

    def hold() -> str:
        began.set()
        held.wait(30)
        return "first"

    first = pool.submit(hold)
    assert began.wait(30)
    second, third = pool.submit(lambda: "second"), pool.submit(lambda: 1 / 0)
    assert not second.done()
    held.set()
    assert (first.result(30), second.result(30)) == ("first", "second")
    with pytest.raises(ZeroDivisionError):
        third.result(30)


def test_few_requests_of_one_tenant_begin_in_one_turn_of_a_loop_while_others_ask() -> None:
    async def go() -> None:
        crowd, begun = {"a", "b"}, []
        pace = Pace(crowd.__contains__, each=2)

        async def request(tenant: str, number: int) -> None:
            if (turn := pace.begin(tenant)) is not None:
                await turn
            begun.append(f"{tenant}{number}")

        many = [asyncio.ensure_future(request("a", n)) for n in range(6)]
        many[2].cancel()
        one = [asyncio.ensure_future(request("b", 0)), *(asyncio.ensure_future(request("c", n)) for n in range(3))]
        await asyncio.sleep(0)
        assert begun == ["a0", "a1", "b0", "c0", "c1", "c2"]  # c has the host to itself, as far as it can tell
        await asyncio.gather(*many, *one, return_exceptions=True)
        assert begun[6:] == ["a3", "a4", "a5"]
        await asyncio.sleep(0)
        await request("a", 6)
        assert begun[-1] == "a6"

    run(go())


def test_what_runs_in_an_executor_pauses_between_its_steps_while_another_tenant_asks() -> None:
    threads, steps, begun = lanes(4, 4, patience=60), [], threading.Event()

    def work() -> None:
        for number in paced(range(3)):
            steps.append(number)
            begun.set()

    with threads.asking("b"):
        done = threads.executor(Lane.WRITE, "a").submit(work)
        assert begun.wait(30)
        assert not wait([done], timeout=0.1).done
        assert steps == [0]
    assert done.result(30) is None
    assert steps == [0, 1, 2]
