"""The memory every run begins with, made once and copied, and the host on top of it.

Two tenants. `acme` has a memory `notes` with a dream over three entries about different subjects, fresh entries, two of
which say the same, one that was deleted lately, one long ago and one that has expired; a Field with a conflict; and a
window. `other` has a few entries that nothing may ever touch.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.simulate.baton import Baton
from tests.simulate.faults import Disk
from tests.simulate.stepped import SteppedStore, SteppedTime
from tests.simulate.talk import talk

from reverie.akashik import Field
from reverie.core.actor import Actor
from reverie.core.dream import DreamPlan
from reverie.core.entry import Draft, Source
from reverie.host import Host
from reverie.privacy.ledger import FileLedger
from reverie.protocols.akashik.operations import compact
from reverie.protocols.anthropic.names import MEMORY, STORE
from reverie.protocols.anthropic.stores import SUBJECT
from reverie.protocols.mem0.memories import Memories as Remembered
from reverie.protocols.openwop import passes
from reverie.redact import load_redactor
from reverie.services import Services
from reverie.store.cipher import FileCipher
from reverie.store.conformance import HandClock
from reverie.store.contract import Store
from reverie.store.sqlite import SqliteStore

TENANT, OTHER = "acme", "other"
NOTES, FIELD, DESK = "notes", "akashik", "desk"
SECRET_ID, SECRET = "gate", "kestrel orchard lantern"
"""Three words that no rule finds by themselves; a use case registers them."""
OLD_SECRET_ID, OLD_SECRET = "yard", "cobalt meadow anchor"
"""Registered after entries with it were stored, so that a scan has something to do."""
MOST_ACTORS = 6
IMPORT = "simulated"
DAY = 86_400_000
REDACTOR = load_redactor()
_time: dict[str, Any] = {"baton": None, "clock": None}


class CountedIds:
    """Ids that sort as made and are the same in every run."""

    def __init__(self, first: int = 0) -> None:
        self.last = first

    def new(self) -> str:
        self.last += 1
        return f"1D{self.last:024d}"


class WordCounter:
    """One token a word: exact, and there at once."""

    name = "words"

    def count(self, text: str) -> int:
        return len(text.split())


@dataclass(frozen=True)
class Fact:
    """A value that a write stored, by a word that occurs nowhere else."""

    needle: str
    ref: str
    subject: str | None = None
    id: str | None = None
    """Of the entry, where it is known before the answer."""


@dataclass
class Template:
    """A prepared memory: what is in it, and how to open a copy."""

    facts: dict[str, Fact] = field(default_factory=dict)
    """By the names that actors use: `o1`, `h1` ..."""
    gone: frozenset[str] = frozenset()
    """Names of facts that are not readable at the start."""
    dream: str = ""
    output: str = ""
    conflict: str = ""
    store: str = ""
    """A memory store of Anthropic's door, about ann, and a file in it."""
    file: str = ""
    plain: str = ""
    """A memory store about nobody, and nothing in it."""
    memory: str = ""
    """A memory of mem0's door, of the user ann."""
    key: str = "~key:rota"
    """The tag that replaces an imported entry about ann."""
    bundle: Sequence[bytes] = ()
    now: int = 0
    last_id: int = 0
    source: str = ""
    """A folder, or the name of a database."""


class World:
    """One run's host and store."""

    def __init__(self, template: Template, store: Store, folder: Path, *, bodies: bool = False, url: str = "") -> None:
        self.template = template
        self.url = url
        """Of its PostgreSQL database."""
        self.folder = folder
        self.clock = store._clock  # type: ignore[attr-defined]
        self.ids = CountedIds(template.last_id)
        self.bodies = bodies
        self._serve(store)

    def _serve(self, store: Store) -> None:
        self.store = store
        self.baton = Baton()
        self.stepped = SteppedStore(store, self.baton, bodies=self.bodies)
        self.hosts: dict[int, Host] = {}
        self.host = self.host_of(0)
        _time["baton"], _time["clock"] = self.baton, self.clock

    def host_of(self, slot: int) -> Host:
        """The process an actor runs in: hosts share the store, and nothing they hold in memory."""
        if slot not in self.hosts:
            host = self.hosts[slot] = make_host(self.stepped, self.clock, self.ids, self.folder)
            host.rules.current(TENANT)
            _ = (host.lineage, host.passes, host.forget, host.windows, host.field, host.memories, host.search)
        return self.hosts[slot]

    def reopen(self, store: Store) -> None:
        """A new process on what the old one left."""
        self._serve(store)

    def close(self) -> None:
        """Close the store, once."""
        self.store.close()

    def actor(self, slot: int) -> Actor:
        """Who acts in a slot. Everybody is somebody else, so that no two puts share one call of the store."""
        return Actor(tenant=TENANT, id=f"sim-{slot}")


def make_host(store: Any, clock: HandClock, ids: CountedIds, folder: Path) -> Host:
    """A host with everything but models: no embedder, a counter of words, a key and a ledger in `folder`."""
    return Host(
        Services(
            store=store,
            redactor=REDACTOR,
            tokens=WordCounter(),
            cipher=FileCipher(folder / "key"),
            ledger=FileLedger(folder / "forgotten.jsonl"),
            clock=clock,
            ids=ids,
        )
    )


def needle(number: int) -> str:
    """A word that no text has by itself."""
    letters = "bdfglmnprstv"
    out = ""
    for _ in range(4):
        number, at = divmod(number, len(letters))
        out += letters[at] + "aeiou"[at % 5]
    return f"Qu{out}x"


def text(word: str, subject: str | None, *, about: str) -> str:
    """A few sentences, of which a dream keeps the first."""
    whom = (subject or "the team").capitalize()
    return (
        f"{whom} decided that the {about} of {word} opens on 4 May. "
        f"Well, the weather was nice and there was some more talk about this and that. "
        f"There was coffee as well, as there usually is on such days."
    )


def prepare(host: Host, clock: HandClock, folder: Path, template: Template) -> None:
    """Fill a new store."""
    ada = Actor(tenant=TENANT, id="sim-0")

    def put(name: str, number: int, subject: str | None = None, **fields: Any) -> str:
        word = needle(number)
        content = fields.pop("content", None) or text(word, subject, about=f"depot {number}")
        draft = Draft(content, subject=subject, id=f"entry-{name}", **fields)
        receipt = host.entries.put(ada, NOTES, [draft])[0]
        template.facts[name] = Fact(word, NOTES, subject, receipt.id)
        clock.advance(1000)
        return receipt.id

    for number in range(3):
        host.entries.put(Actor(tenant=OTHER, id="eve"), NOTES, [Draft(f"Neighbour {number} keeps bees.")])
    host.lifecycle.delete(ada, NOTES, put("x2", 1))
    host.schedules.save(ada, {"cron": "0 3 * * *", "ref": NOTES, "kind": "dream"})
    put("e1", 2, expires_at=clock.now() + DAY)
    clock.advance(9 * DAY)
    for at, (name, subject) in enumerate((("o1", "ann"), ("o2", "bob"), ("o3", None))):
        extra = f" The word at the gate is {SECRET}, in the yard {OLD_SECRET}." if name == "o3" else ""
        put(name, 10 + at, subject, content=text(needle(10 + at), subject, about=f"depot {at}") + extra)
    report = host.dreams.run(ada, DreamPlan(NOTES))
    assert report is not None
    assert report.output_id is not None
    template.dream, template.output = report.id, report.output_id
    put("h1", 20, "ann")
    put("h2", 21, "bob", content=text(needle(21), "bob", about="yard") + f" The words are {SECRET} and {OLD_SECRET}.")
    put("h3", 22, content=f"The lift of {needle(22)} is repaired on Mondays.")
    put("h4", 23, content=f"The lift of {needle(22)} is repaired on Mondays.")
    template.facts["h4"] = Fact(needle(22), NOTES, None, "entry-h4")
    put("h5", 26, content=f"The porter of {needle(26)} says {SECRET}.")
    put("i0", 25, "ann", source=Source(run=f"import-{IMPORT}"), tags=(template.key,))
    host.lifecycle.delete(ada, NOTES, put("x1", 24))
    _prepare_field(host, clock, template)
    _prepare_doors(host, ada, template)
    talk(host, ada, DESK, needle(40), needle(41), subject="ann")
    template.facts |= {f"t{n}": Fact(needle(40 + n), DESK, "ann") for n in range(2)}
    host.rules.register(ada, OLD_SECRET_ID, OLD_SECRET)
    template.gone = frozenset({"x1", "x2", "e1"})
    template.now = clock.now()


def _prepare_field(host: Host, clock: HandClock, template: Template) -> None:
    agents = []
    for slot in range(MOST_ACTORS):
        shared = Field(tenant=TENANT, host=host)
        shared.actor = Actor(tenant=TENANT, id=f"sim-{slot}")
        agents.append(shared.register(f"agent-{slot}", "researcher", authority_level=10))
    for number in range(3):
        made = agents[0].record(text(needle(30 + number), None, about=f"belt {number}"), **unit())
        template.facts[f"u{number}"] = Fact(needle(30 + number), FIELD, None, made["memory_unit_id"])
    against = [{"type": "contradicts", "target_id": template.facts["u0"].id}]
    said = f"No: the belt of {needle(33)} is closed."
    made = agents[1].record(said, relations=against, subject="ann", **unit())
    template.facts["u3"] = Fact(needle(33), FIELD, "ann", made["memory_unit_id"])
    template.conflict = made["conflicts_detected"][0]
    clock.advance(1000)


def _prepare_doors(host: Host, ada: Actor, template: Template) -> None:
    template.store = STORE + host.memory_stores.create(ada, "Ann", metadata={SUBJECT: "ann"}).id
    template.plain = STORE + host.memory_stores.create(ada, "Plain").id
    about = text(needle(60), "ann", about="shed")
    template.file = MEMORY + host.memories.create(ada, template.store, "/shed.md", about).file.id
    template.facts["f0"] = Fact(needle(60), "file", "ann")
    template.memory = remember(host, ada, text(needle(61), "ann", about="tower"))
    template.facts["m0"] = Fact(needle(61), "mem0", "ann")


def remember(host: Host, actor: Actor, content: str) -> str:
    """Store a memory of the user ann as a client of mem0 does."""
    added = Remembered(host, actor).add(
        [("user", content)], {"user_id": "ann"}, metadata={}, created_at=None, expires_at=None
    )
    return str(added[0]["id"]) if added else ""


def unit() -> dict[str, Any]:
    """What a RECORD must have."""
    return {"intent": "keep it", "confidence": {"score": 0.8, "reasoning": "seen"}}


def bundle_of(folder: Path) -> tuple[list[bytes], Fact]:
    """A bundle of another machine: one entry that is new, and one whose id is taken."""
    clock, word = HandClock(), needle(50)
    store = SqliteStore(folder / "elsewhere.db", clock=clock)
    host = make_host(store, clock, CountedIds(), folder)
    ada = Actor(tenant=TENANT, id="ada")
    host.entries.put(ada, NOTES, [Draft(text(word, "ann", about="quay"), subject="ann", id="entry-b1")])
    host.entries.put(ada, NOTES, [Draft("Another text under a taken id.", id="entry-h1")])
    lines = list(host.bundles.export(ada))
    store.close()
    return lines, Fact(word, NOTES, "ann", "entry-b1")


class Scene:
    """Prepared memories of one engine, and copies of them."""

    def __init__(self, folder: Path, server: Any = None) -> None:
        self.folder = folder
        self.server = server
        self.engine = "postgres" if server else "sqlite"
        self.template = Template()
        self._runs = 0
        ids, clock = CountedIds(), HandClock()
        home = folder / "template"
        home.mkdir(parents=True)
        if server:
            url = server.make_database()
            self.template.source = url.split("@/")[1].split("?")[0]
            store: Store = self._open_url(url, clock)
        else:
            self.template.source = str(home / "memory.db")
            store = SqliteStore(self.template.source, clock=clock)
        host = make_host(store, clock, ids, home)
        prepare(host, clock, home, self.template)
        self.template.bundle, self.template.facts["b1"] = bundle_of(folder)
        self.template.gone |= {"b1"}
        self.template.last_id = ids.last
        host.close()

    @staticmethod
    def _open_url(url: str, clock: HandClock) -> Store:
        from reverie.store.postgres import PostgresStore

        return PostgresStore(url, clock=clock, pool_size=MOST_ACTORS + 2)

    @contextmanager
    def world(self, *, bodies: bool = False, disk: Disk | None = None) -> Iterator[World]:
        """A fresh copy, opened. Closed and removed afterwards."""
        self._runs += 1
        home = self.folder / f"run-{self._runs}"
        home.mkdir()
        for name in ("key", "forgotten.jsonl"):
            if (self.folder / "template" / name).exists():
                shutil.copyfile(self.folder / "template" / name, home / name)
        clock = HandClock(self.template.now)
        url = ""
        if self.server:
            url = self.server.make_database(template=self.template.source)
            store = self._open_url(url, clock)
        else:
            shutil.copyfile(self.template.source, home / "memory.db")
            store = open_file(home / "memory.db", clock, disk)
        world = World(self.template, store, home, bodies=bodies, url=url)
        try:
            yield world
        finally:
            world.close()
            shutil.rmtree(home, ignore_errors=True)
            if self.server:
                self.server.drop_database(url)


def open_file(path: Path, clock: HandClock, disk: Disk | None = None) -> SqliteStore:
    """The store in a file, on a simulated disk when one is given."""
    return SqliteStore(path, clock=clock) if disk is None else FaultyStore(path, clock=clock, disk=disk)


class FaultyStore(SqliteStore):
    """A store whose connections go through a simulated disk."""

    def __init__(self, path: Path, *, clock: HandClock, disk: Disk) -> None:
        self.disk = disk
        super().__init__(path, clock=clock)
        raw = self._file
        assert raw is not None
        wipe = raw.wipe

        def wiped(first: int, pages: int, page_size: int) -> int | None:
            following = wipe(first, pages, page_size)  # it goes past SQLite, and synchronises itself
            disk.settled(self.path)
            return following

        raw.wipe = wiped  # type: ignore[method-assign]

    def _connect(self) -> Any:
        self._target = f"file:{self.path}?vfs={self.disk.name}"
        return super()._connect()


def scratch() -> Path:
    """A folder in memory where the machine has one: runs are about order, not about the disk."""
    memory = Path("/dev/shm")
    return Path(tempfile.mkdtemp(prefix="reverie-simulate-", dir=memory if memory.is_dir() else None))


def simulated_time() -> Callable[[], None]:
    """Replace the clock where the product polls; returns what puts it back."""
    shim = SteppedTime(lambda: _time["baton"], lambda: _time["clock"].now(), lambda ms: _time["clock"].advance(ms))
    before = [(module, module.time) for module in (passes, compact)]
    for module, _ in before:
        module.time = shim  # type: ignore[assignment]

    def back() -> None:
        for module, real in before:
            module.time = real

    return back
