"""Use cases as actors carry them out, and what each may do to the values of the model.

`NAMES` has every use case; `make` gives one for a slot. Different slots aim at different entries where that makes the
better race, at the same entries elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from tests.simulate.baton import Killed
from tests.simulate.talk import talk
from tests.simulate.world import (
    DAY,
    DESK,
    FIELD,
    IMPORT,
    MOST_ACTORS,
    NOTES,
    SECRET,
    SECRET_ID,
    TENANT,
    Fact,
    World,
    needle,
    remember,
    text,
    unit,
)

from reverie.akashik import AkashikError
from reverie.akashik import Field as Shared
from reverie.core.dream import DreamPlan
from reverie.core.entry import Draft
from reverie.core.errors import NotFound, ReverieError, StoreBusy, StoreError
from reverie.importers.run import undo as undo_import
from reverie.jobs.sweep import Sweeper
from reverie.protocols.mem0.memories import Memories as Remembered

EVERYTHING = frozenset({"*"})


@dataclass
class Op:
    """One use case of one actor: what it may do, and how it went."""

    name: str
    slot: int
    work: Callable[[], Any]
    adds: dict[str, Fact] = field(default_factory=dict)
    """Values that are stored when it succeeds, by their names in the model."""
    may_remove: frozenset[str] = frozenset()
    """Names of values that it may make unreadable; `*`: any of its ref."""
    may_restore: frozenset[str] = frozenset()
    removes: Callable[[Any], frozenset[str]] = lambda _: frozenset()
    """What it removed for certain, by its result."""
    sure: bool = True
    """Whether `removes` names all that it removed."""
    subject: str | None = None
    """Whom it forgets."""
    begun: int | None = None
    ended: int | None = None
    """Numbers of the steps at which it began and was answered."""
    result: Any = None
    error: BaseException | None = None

    @property
    def answered(self) -> bool:
        """Whether its caller knows that it succeeded."""
        return self.ended is not None and self.error is None

    @property
    def refused(self) -> bool:
        """Whether its caller knows that nothing was done."""
        return self.ended is not None and isinstance(self.error, (ReverieError, AkashikError)) and not self.doubtful

    @property
    def doubtful(self) -> bool:
        """Whether the store failed under it: then it happened whole, or not at all."""
        if isinstance(self.error, AkashikError):
            return self.error.code in ("UNAVAILABLE", "STORAGE_FULL", "INTERNAL_ERROR")
        return isinstance(self.error, Killed) or (
            isinstance(self.error, StoreError) and not isinstance(self.error, StoreBusy)
        )

    def label(self) -> str:
        return f"{self.name}#{self.slot}"


Maker = Callable[[World, int, int], Op]


def _put(world: World, slot: int, aim: int) -> Op:
    subject = ("bob", "ann", None)[aim % 3]
    word = needle(100 + slot)
    draft = Draft(text(word, subject, about="pier") + f" The word at the gate is {SECRET}.", subject=subject)
    fact = Fact(word, NOTES, subject)
    return Op(
        "put",
        slot,
        lambda: world.host_of(slot).entries.put(world.actor(slot), NOTES, [draft]),
        adds={f"put{slot}": fact},
    )


def _delete(world: World, slot: int, aim: int) -> Op:
    name = ("h2", "dream", "h1")[aim % 3]
    gone = frozenset({"o1", "o2", "o3"} if name == "dream" else {name})
    target = world.template.output if name == "dream" else f"entry-{name}"
    return Op(
        "delete",
        slot,
        lambda: world.host_of(slot).lifecycle.delete(world.actor(slot), NOTES, target),
        may_remove=gone,
        removes=lambda _: gone,
    )


def _pin(world: World, slot: int, aim: int) -> Op:
    target = (world.template.output, "entry-h1")[aim % 2]
    return Op("pin", slot, lambda: world.host_of(slot).lifecycle.pin(world.actor(slot), NOTES, target))


def _dream(world: World, slot: int, aim: int) -> Op:
    return Op("dream", slot, lambda: world.host_of(slot).dreams.run(world.actor(slot), DreamPlan(NOTES)))


def _undo(world: World, slot: int, aim: int) -> Op:
    return Op(
        "undo",
        slot,
        lambda: world.host_of(slot).lineage.undo(world.actor(slot), world.template.dream),
        may_restore=frozenset({"o1", "o2", "o3"}),
    )


def _consolidate(world: World, slot: int, aim: int) -> Op:
    ids = {fact.id: name for name, fact in world.template.facts.items()}
    return Op(
        "consolidate",
        slot,
        lambda: world.host_of(slot).consolidator.run(world.actor(slot), NOTES),
        may_remove=EVERYTHING,
        removes=lambda done: frozenset(ids[key] for key in done.merged if key in ids),
    )


def _compact(world: World, slot: int, aim: int) -> Op:
    return Op("compact", slot, lambda: world.host_of(slot).passes.compact(world.actor(slot), NOTES))


def _forget(world: World, slot: int, aim: int) -> Op:
    subject = ("ann", "bob")[aim % 2]
    gone = frozenset(name for name, fact in world.template.facts.items() if fact.subject == subject)
    return Op(
        "forget",
        slot,
        lambda: world.host_of(slot).forget.forget(world.actor(slot), subject),
        may_remove=gone,
        removes=lambda done: gone,
        subject=subject,
    )


def _scan(world: World, slot: int, aim: int) -> Op:
    return Op("scan", slot, lambda: world.host_of(slot).rescan.scan(world.actor(slot)))


def _policy(world: World, slot: int, aim: int) -> Op:
    changes = {"max_tags": 40 + slot}
    return Op("policy", slot, lambda: world.host_of(slot).rules.set_policy(world.actor(slot), changes))


def _secret(world: World, slot: int, aim: int) -> Op:
    return Op("secret", slot, lambda: world.host_of(slot).rules.register(world.actor(slot), SECRET_ID, SECRET))


def _import(world: World, slot: int, aim: int) -> Op:
    fact = world.template.facts["b1"]
    return Op(
        "import",
        slot,
        lambda: world.host_of(slot).bundles.take(world.actor(slot), world.template.bundle),
        adds={"b1": fact},
        may_restore=frozenset({"b1"}),
    )


def _sweep(world: World, slot: int, aim: int) -> Op:
    return Op("sweep", slot, lambda: Sweeper(world.host_of(slot), f"holder-{slot}").sweep(TENANT))


def _expire(world: World, slot: int, aim: int) -> Op:
    return Op("expire", slot, lambda: world.host_of(slot).lifecycle.expire(world.actor(slot)))


def _turn(world: World, slot: int, aim: int) -> Op:
    words = needle(200 + 2 * slot), needle(201 + 2 * slot)
    facts = {f"turn{slot}.{at}": Fact(word, DESK, "ann") for at, word in enumerate(words)}
    return Op(
        "turn", slot, lambda: talk(world.host_of(slot), world.actor(slot), DESK, *words, subject="ann"), adds=facts
    )


def _agent(world: World, slot: int) -> Any:
    from reverie.akashik import Agent

    shared = Shared(tenant=TENANT, host=world.host_of(slot))
    shared.actor = world.actor(slot)
    return Agent(shared, f"agent-{slot}", "researcher")


def _record(world: World, slot: int, aim: int) -> Op:
    word = needle(300 + slot)
    agent = _agent(world, slot)
    content = text(word, None, about="mill") + f" The word at the gate is {SECRET}."
    return Op("RECORD", slot, lambda: agent.record(content, **unit()), adds={f"record{slot}": Fact(word, FIELD)})


def _merge(world: World, slot: int, aim: int) -> Op:
    agent = _agent(world, slot)
    winner = world.template.facts["u0" if aim % 2 else "u3"].id
    return Op(
        "MERGE",
        slot,
        lambda: agent.merge(
            world.template.conflict, "authority", rationale=f"looked again at {needle(33)}", winner_id=winner
        ),
        may_remove=frozenset({"u0", "u3"}),
        sure=False,
    )


def _summarize(world: World, slot: int, aim: int) -> Op:
    agent = _agent(world, slot)
    return Op("COMPACT", slot, lambda: agent.compact("summarize"))


def _file(world: World, slot: int, aim: int) -> Op:
    word = needle(400 + slot)
    content = text(word, "ann", about="dock")
    return Op(
        "file",
        slot,
        lambda: world.host_of(slot).memories.create(
            world.actor(slot), world.template.store, f"/dock-{slot}.md", content
        ),
        adds={f"file{slot}": Fact(word, "file", "ann")},
    )


def _move(world: World, slot: int, aim: int) -> Op:
    """A change that writes the text it has read: a forget between the two must not bring it back."""
    return Op(
        "move",
        slot,
        lambda: world.host_of(slot).memories.update(
            world.actor(slot), world.template.store, world.template.file, path=f"/shed-{slot}.md"
        ),
    )


def _add(world: World, slot: int, aim: int) -> Op:
    word = needle(500 + slot)
    content = text(word, "ann", about="crane")
    return Op(
        "mem0",
        slot,
        lambda: remember(world.host_of(slot), world.actor(slot), content),
        adds={f"mem0{slot}": Fact(word, "mem0", "ann")},
    )


def _mark(world: World, slot: int, aim: int) -> Op:
    """As `move`, through mem0's door."""
    memories = Remembered(world.host_of(slot), world.actor(slot))
    return Op("mark", slot, lambda: memories.update([(world.template.memory, None, {f"slot-{slot}": "seen"})]))


def _restore(world: World, slot: int, aim: int) -> Op:
    name = ("x1", "o1", "dream")[aim % 3]
    target = world.template.output if name == "dream" else f"entry-{name}"
    return Op(
        "restore",
        slot,
        lambda: world.host_of(slot).lifecycle.restore(world.actor(slot), NOTES, target),
        may_restore=frozenset({"o1", "o2", "o3"} if name == "dream" else {name}),
    )


def _ask(world: World, slot: int, aim: int) -> Op:
    """A search by ann's name and by a word about her, and the batch that stores the questions."""
    words = world.template.facts["h1"].needle

    def work() -> None:
        host, actor = world.host_of(slot), world.actor(slot)
        for question in (f"What did Ann say {slot}?", f"When does the depot of {words} open {slot}?"):
            host.search.search(actor, NOTES, question)
        host.searches.flush(TENANT)

    return Op("ask", slot, work)


def _dream_files(world: World, slot: int, aim: int) -> Op:
    """A dream of a memory store, asked for and dreamt: of its files, of what was said elsewhere, or into a copy."""
    said = ["ref:" + NOTES] if aim % 3 == 1 else None
    store = world.template.plain if said else world.template.store

    def work() -> None:
        dreams, actor = world.host_of(slot).memory_dreams, world.actor(slot)
        how = {"model": "simulated", "distiller": "extractive", "existing": aim % 3 != 2}
        dreams.run(actor, dreams.create(actor, store, sessions=said, **how).id)

    return Op("filedream", slot, work)


def _replace(world: World, slot: int, aim: int) -> Op:
    """A new value under a key, as LangGraph's store and the importers write it."""
    word, key = needle(600 + slot), world.template.key
    draft = Draft(text(word, "ann", about="rota"), subject="ann", tags=(key,), replaces=key)
    return Op(
        "replace",
        slot,
        lambda: world.host_of(slot).entries.put(world.actor(slot), NOTES, [draft]),
        adds={f"replace{slot}": Fact(word, NOTES, "ann")},
        may_remove=frozenset({"i0", *(f"replace{other}" for other in range(MOST_ACTORS))}),
        sure=False,
    )


def _unimport(world: World, slot: int, aim: int) -> Op:
    return Op(
        "unimport",
        slot,
        lambda: undo_import(world.host_of(slot), world.actor(slot), IMPORT),
        may_remove=frozenset({"i0"}),
        removes=lambda _: frozenset({"i0"}),
    )


def _mention(world: World, slot: int, aim: int) -> Op:
    """A forget by subject and by words."""
    op = _forget(world, slot, aim)
    host, actor, subject = world.host_of(slot), world.actor(slot), str(op.subject)
    return replace(op, name="mention", work=lambda: host.forget.forget(actor, subject, mentions=True))


def _erase(world: World, slot: int, aim: int) -> Op:
    name = ("h2", "o1", "dream")[aim % 3]
    gone = frozenset({"o1", "o2", "o3"} if name == "dream" else {name})
    target = world.template.output if name == "dream" else f"entry-{name}"
    return Op(
        "erase",
        slot,
        lambda: world.host_of(slot).lifecycle.erase(world.actor(slot), NOTES, target),
        may_remove=gone,
        sure=False,
    )


def _hold(world: World, slot: int, aim: int) -> Op:
    """A hold and its release, between which nothing destroys the text."""
    target = f"entry-{('h1', 'h2', 'x2')[aim % 3]}"
    lifecycle, actor = world.host_of(slot).lifecycle, world.actor(slot)

    def work() -> None:
        lifecycle.hold(actor, NOTES, target)
        try:
            lifecycle.release(actor, NOTES, target)
        except NotFound as fault:
            raise AssertionError(f"{target} was destroyed while it was on hold") from fault

    return Op("hold", slot, work)


def _leave(world: World, slot: int, aim: int) -> Op:
    """An entry that is archived or retracted leaves every list."""
    lifecycle = world.host_of(slot).lifecycle
    act = (lifecycle.archive, lifecycle.retract)[aim % 2]
    gone = frozenset({"h1"})
    return Op(
        "leave",
        slot,
        lambda: act(world.actor(slot), NOTES, "entry-h1"),
        may_remove=gone,
        removes=lambda _: gone,
    )


def _renew(world: World, slot: int, aim: int) -> Op:
    until = world.clock.now() + DAY * (365 + slot)  # beyond every jump of the clock
    return Op("renew", slot, lambda: world.host_of(slot).lifecycle.renew(world.actor(slot), NOTES, "entry-h1", until))


def _retry(world: World, slot: int, aim: int) -> Op:
    """The same request of every slot, under one key: it is stored once."""
    word = needle(700)
    draft = Draft(text(word, "ann", about="ferry"), subject="ann")
    return Op(
        "retry",
        slot,
        lambda: world.host_of(slot).entries.put(world.actor(slot), NOTES, [draft], idempotency_key="ferry"),
        adds={"retry": Fact(word, NOTES, "ann")},
    )


def _tick(world: World, slot: int, aim: int) -> Op:
    """The ticks that are due, as a worker runs them."""
    schedules, actor = world.host_of(slot).schedules, world.actor(slot)

    def work() -> None:
        for schedule, tick in schedules.due_ticks(actor):
            schedules.run_tick(actor, schedule.id, tick, f"holder-{slot}")

    return Op("tick", slot, work)


MAKERS: dict[str, Maker] = {
    "put": _put,
    "delete": _delete,
    "pin": _pin,
    "dream": _dream,
    "undo": _undo,
    "consolidate": _consolidate,
    "compact": _compact,
    "forget": _forget,
    "scan": _scan,
    "policy": _policy,
    "secret": _secret,
    "import": _import,
    "sweep": _sweep,
    "expire": _expire,
    "turn": _turn,
    "RECORD": _record,
    "MERGE": _merge,
    "COMPACT": _summarize,
    "restore": _restore,
    "file": _file,
    "move": _move,
    "mem0": _add,
    "mark": _mark,
    "ask": _ask,
    "filedream": _dream_files,
    "replace": _replace,
    "unimport": _unimport,
    "mention": _mention,
    "erase": _erase,
    "hold": _hold,
    "leave": _leave,
    "renew": _renew,
    "retry": _retry,
    "tick": _tick,
}
NAMES = tuple(MAKERS)


def make(world: World, name: str, slot: int) -> Op:
    """A use case for a slot: `forget`, or `forget@1` to aim at what slot 1 would."""
    world.host_of(slot)  # made now: an actor makes nothing but steps
    case, _, aim = name.partition("@")
    return MAKERS[case](world, slot, int(aim) if aim else slot)
