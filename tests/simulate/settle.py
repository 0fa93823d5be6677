"""What must hold when everybody is through: the log proves itself, an undo is an identity, a preview says what happens,
and what was forgotten is in no byte of the files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import psycopg
from tests.simulate.model import Broken, Model
from tests.simulate.world import NOTES, TENANT, World

from reverie.core.dream import DreamPlan
from reverie.core.entry import Entry, Scope
from reverie.core.errors import Busy, Conflict, Unprocessable
from reverie.core.query import Filter
from reverie.memory.read import ANYTHING
from reverie.store.contract import ReadTx

_LEASES_MS = 30 * 60_000


def settle(world: World, model: Model) -> None:
    """Check a quiet memory. It is not the same afterwards: everything about two subjects is forgotten."""
    world.clock.advance(_LEASES_MS)  # whoever died in the middle held leases
    verify(world)
    release(world)
    undo_is_identity(world)
    model.check()
    for subject in ("ann", "bob"):
        preview_is_effect(world, model, subject)
    model.check()
    verify(world)


def verify(world: World) -> None:
    """`audit verify`, as a user runs it."""
    verdict = world.host.audit.verify(world.actor(0))
    if not verdict.ok:
        raise Broken(f"audit verify: {verdict.reason} at {verdict.broken_at}")


def release(world: World) -> None:
    """End the holds of those who died in the middle."""

    def held(tx: ReadTx) -> list[Entry]:
        return [entry for entry in tx.scan(ANYTHING, limit=1000).items if entry.held]

    for entry in world.store.read(Scope(TENANT), held):
        world.host.lifecycle.release(world.actor(0), entry.ref, entry.id)


def undo_is_identity(world: World) -> None:
    """Dream and undo: every entry is as it was."""
    before = _shown(world)
    try:
        report = world.host.dreams.run(world.actor(0), DreamPlan(NOTES))
    except (Unprocessable, Busy, Conflict):  # it cannot be made smaller
        report = None
    if report is not None:
        world.host.lineage.undo(world.actor(0), report.id)
    after = _shown(world)
    if before != after:
        changed = sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
        raise Broken(f"a dream and its undo changed {changed}")


def preview_is_effect(world: World, model: Model, subject: str) -> None:
    """A forget does what its preview says, and leaves nothing."""
    actor = world.actor(0)
    said = world.host.forget.forget(actor, subject, preview=True)
    done = world.host.forget.forget(actor, subject)
    names = set(done.__struct_fields__) - {"preview", "certificate", "outside"}  # of a certificate only
    both = {name: (getattr(said, name), getattr(done, name)) for name in sorted(names)}
    if other := {name: counts for name, counts in both.items() if counts[0] != counts[1]}:
        raise Broken(f"forget {subject}: preview and effect differ in {other}")
    seq = done.certificate or world.store.read(Scope(TENANT), lambda tx: tx.head().seq)
    model.certificates.append((subject, seq))
    model.forgotten(subject)


def _shown(world: World) -> dict[tuple[str, str], Any]:
    def look(tx: Any) -> list[Entry]:
        return list(tx.scan(Filter(), limit=1000).items)

    found = {}
    for entry in world.store.read(Scope(TENANT), look):
        document = msgspec.to_builtins(entry)
        for name in ("version", "born_seq", "gone_seq", "epoch", "position"):
            document.pop(name)
        found[(entry.ref, entry.id)] = document
    return found


def search_bytes(world: World, model: Model) -> None:
    """After the store is closed: no word of a forgotten subject in a file, or in a row of the database."""
    words = {
        word: f"{name}, about {subject}, certified at {at}"
        for subject, at in model.certificates
        for name, word in model.words_of(subject, at)
    }
    if not words:
        return
    for where, held in _held(world):
        for word, said in words.items():
            if word.encode() in held:
                raise Broken(f"{said}, is in the bytes of {where}")


def _held(world: World) -> list[tuple[str, bytes]]:
    url = getattr(world, "url", "")
    if not url:
        path = Path(world.store.path)  # type: ignore[attr-defined]
        return [(file.name, file.read_bytes()) for file in path.parent.glob(f"{path.name}*")]
    rows = []
    with psycopg.connect(url.replace("reverie@", "postgres@")) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'reverie'").fetchall()
        for (table,) in tables:
            query = psycopg.sql.SQL("SELECT * FROM reverie.{}").format(psycopg.sql.Identifier(table))
            rows.append((table, repr(connection.execute(query).fetchall()).encode()))
    return rows
