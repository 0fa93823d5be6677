"""One thread runs at a time: the one that has the baton. Where it pauses, somebody else decides who goes on.

An actor is a thread with one use case to carry out. It pauses before everything that other actors could notice, says
what it is about to do, and goes on when it is given the baton. So a run is a function of the choices made between
steps, and of nothing else.
"""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

STUCK_SECONDS = 120.0
START, READ, WRITE, BODY, SLEEP = "start", "read", "write", "body", "sleep"


class Killed(BaseException):
    """The process is dead: the actor unwinds, and nothing it still does reaches the store."""


class Stuck(Exception):
    """An actor neither paused nor ended: it waits for something that no step of another actor gives it."""


@dataclass(frozen=True, slots=True)
class Step:
    """What one actor did between two pauses."""

    actor: int
    kind: str
    moved: bool = False
    """Whether a commit of this step moved the log."""
    failed: bool = False
    """Whether the body of its transaction raised, so that nothing was committed."""

    ref: str | None = None
    """The memory its transaction is bound to; None: the whole tenant."""

    def depends_on(self, other: Step) -> bool:
        """Whether the order of the two can matter.

        Two reads never do, nor do steps in different memories; leases are invisible to reads. What a process holds of
        the rules is read at its start, and rules are changed by writes that are bound to no memory.
        """
        if self.actor == other.actor:
            return True
        if self.kind != WRITE and other.kind != WRITE:
            return False
        if self.ref is not None and other.ref is not None and self.ref != other.ref:
            return False
        if self.kind == WRITE and other.kind == WRITE:
            return True
        write, read = (self, other) if self.kind == WRITE else (other, self)
        return write.moved and (read.kind != START or write.ref is None)


class Actor:
    """A use case in a thread of its own."""

    def __init__(self, number: int, baton: Baton, work: Callable[[], Any]) -> None:
        self.number = number
        self.baton = baton
        self.wants = START
        """The kind of its next step."""
        self.done = False
        self.result: Any = None
        self.error: BaseException | None = None
        self.inside = False
        """Whether it holds the store's only writer."""
        self.moved = self.failed = False
        self.ref: str | None = None
        self.slept = False
        """Whether it has slept since another actor last moved."""
        self._work = work
        self._go = threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, name=f"actor-{number}", daemon=True)

    def step(self) -> Step:
        """Go on to the next pause, or to the end. The first step is what it does before it asks for the store."""
        kind, ref = self.wants, self.ref
        self.moved = self.failed = False
        if kind == START:
            self._thread.start()
        else:
            self._go.release()
        self.baton.await_pause(self)
        return Step(self.number, kind, self.moved, self.failed, ref)

    def kill(self) -> None:
        """Unwind; called when the store is dead already."""
        if not self.done and self.wants != START:
            self._go.release()
            self.baton.await_pause(self)

    def pause(self, kind: str) -> None:
        """Called by whoever works for this actor, in any thread: wait for the baton."""
        if self.baton.dead:
            raise Killed
        self.wants = kind
        self.baton.paused.release()
        self._go.acquire()
        if self.baton.dead:
            raise Killed

    def _run(self) -> None:
        self.baton.local.actor = self
        try:
            self.result = self._work()
        except BaseException as fault:
            self.error = fault
        self.done = True
        self.inside = False
        self.baton.paused.release()

    def stack(self) -> str:
        """Where its thread is."""
        frame = sys._current_frames().get(self._thread.ident or 0)
        return "".join(traceback.format_stack(frame)) if frame else "(no stack)"


class Baton:
    """Who runs now."""

    def __init__(self) -> None:
        self.paused = threading.Semaphore(0)
        self.local = threading.local()
        self.actors: list[Actor] = []
        self.dead = False

    def add(self, work: Callable[[], Any]) -> Actor:
        """A new actor, not started."""
        actor = Actor(len(self.actors), self, work)
        self.actors.append(actor)
        return actor

    def current(self) -> Actor | None:
        """The actor whose thread this is."""
        return getattr(self.local, "actor", None)

    def await_pause(self, actor: Actor) -> None:
        """Until the running actor pauses or ends."""
        if not self.paused.acquire(timeout=STUCK_SECONDS):
            raise Stuck(f"actor {actor.number} neither pauses nor ends:\n{actor.stack()}")

    def enabled(self) -> list[int]:
        """Actors whose next step can be taken now, by number.

        A writer inside its body keeps other writers out, and a sleeper looks again only after somebody has moved.
        """
        alive = [actor for actor in self.actors if not actor.done]
        held = any(actor.inside for actor in alive)
        able = [actor for actor in alive if not (held and actor.wants == WRITE)]
        awake = [actor for actor in able if actor.wants != SLEEP or not actor.slept]
        return [actor.number for actor in awake or able]

    def kill(self) -> None:
        """The process dies: every actor unwinds and none touches the store again."""
        self.dead = True
        for actor in self.actors:
            actor.kill()
