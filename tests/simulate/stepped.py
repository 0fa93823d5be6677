"""A store that pauses before each read, each write and (when asked) each body."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from tests.simulate.baton import BODY, READ, SLEEP, WRITE, Baton, Killed

from reverie.core.entry import Scope
from reverie.store.contract import ReadTx, Store, WriteTx

T = TypeVar("T")


class SteppedStore:
    """Wraps the port that every use case reaches its data through. Threads that are no actors pass straight on.

    `bodies`: also pause inside a transaction, when its snapshot is taken and nothing has been done. A writer that is
    paused there keeps other writers out, as in life; `Baton.enabled` knows.
    """

    def __init__(self, inner: Store, baton: Baton, *, bodies: bool) -> None:
        self.inner = inner
        self.name = inner.name
        self.durable = inner.durable
        self._baton = baton
        self._bodies = bodies

    def read(self, scope: Scope, body: Callable[[ReadTx], T]) -> T:
        actor = self._baton.current()
        if actor is None:
            return self.inner.read(scope, body)
        actor.ref = scope.ref
        actor.pause(READ)

        def stepped(tx: ReadTx) -> T:
            if self._bodies:
                tx.head()  # from here on the snapshot stands
                actor.pause(BODY)
            return body(tx)

        return self.inner.read(scope, stepped)

    def write(self, scope: Scope, body: Callable[[WriteTx], T]) -> T:
        actor = self._baton.current()
        if actor is None:
            return self.inner.write(scope, body)
        actor.ref = scope.ref
        actor.pause(WRITE)

        def stepped(tx: WriteTx) -> T:
            before = tx.head().seq
            if self._bodies:
                actor.inside = True
                actor.pause(BODY)
            actor.failed = True
            result = body(tx)
            actor.failed, actor.moved = False, tx.head().seq != before
            return result

        try:
            return self.inner.write(scope, stepped)
        finally:
            actor.inside = False

    def control(self, body: Callable[[Any], T], *, write: bool = False) -> T:
        if self._baton.dead and self._baton.current() is not None:
            raise Killed
        return self.inner.control(body, write=write)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class SteppedTime:
    """Stands for the module `time` where the product polls: sleeping is a step, and takes simulated time."""

    def __init__(
        self, baton: Callable[[], Baton | None], now: Callable[[], int], advance: Callable[[int], None]
    ) -> None:
        self._baton = baton
        self._now = now
        self._advance = advance

    def sleep(self, seconds: float) -> None:
        baton = self._baton()
        actor = baton.current() if baton else None
        if actor is None:
            return
        actor.slept = True
        actor.pause(SLEEP)
        self._advance(max(1, int(seconds * 1000)))

    def monotonic(self) -> float:
        return self._now() / 1000
