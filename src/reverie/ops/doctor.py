"""The checks of `reverie doctor`, each with its finding and the next step. They change nothing."""

from __future__ import annotations

import platform
import secrets
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import reverie
from reverie.core.clock import SystemClock, to_iso
from reverie.core.entry import Entry, Scope
from reverie.core.errors import ReverieError
from reverie.core.event import Event
from reverie.core.files import others_may
from reverie.core.query import Brief, Filter, Head
from reverie.host import Host
from reverie.memory.indexing import model_of
from reverie.memory.read import ANYTHING
from reverie.ops.backup import free_bytes
from reverie.ops.checks import Check
from reverie.search.analysis import terms
from reverie.settings import Settings
from reverie.store.contract import ReadTx

Progress = Callable[[int, int], None]

_TIGHT = 2**30
_FULL = 100 * 2**20
_EARLIEST = 1_735_689_600_000  # 2025-01-01: a clock before this was never set
_SKEW_MS = 300_000


def versions() -> dict[str, str]:
    """The versions of the software in use."""
    import apsw

    return {
        "reverie": reverie.__version__,
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
        "platform": platform.platform(terse=True),
    }


def examine(host: Host, settings: Settings, *, quick: bool = False, progress: Progress | None = None) -> list[Check]:
    """Make every check, in a fixed order. A check that cannot be made has failed. `quick` skips those that read all
    data.
    """
    looks: list[tuple[str, Callable[[Host, Settings], Iterator[Check]]]] = [
        ("versions", _versions),
        ("integrity", _integrity),
        ("log", _logs),
        ("isolation", _isolation),
        ("disk", _disk),
        ("clock", _clock),
        ("key file", _key_file),
        ("permissions", _permissions),
        ("vectors", _vectors),
        ("postgres", _postgres),
        ("jobs", _jobs),
    ]
    checks: list[Check] = []
    for done, (name, look) in enumerate(looks, 1):
        if quick and name in ("integrity", "log"):
            continue
        try:
            checks += look(host, settings)
        except (ReverieError, OSError) as fault:
            checks.append(Check(name, "fail", getattr(fault, "message", type(fault).__name__)))
        if progress:
            progress(done, len(looks))
    return checks


def _versions(host: Host, _settings: Settings) -> Iterator[Check]:
    found = versions()
    yield Check("versions", "ok", ", ".join(f"{name} {value}" for name, value in found.items()))
    # An embedder's name holds the checksum of its table, which was compared when it was loaded.
    embedder, rules = host.parts.embedder, host.parts.redactor.version
    yield Check("parts", "ok", f"embedder {embedder.name if embedder else 'none'}, redaction rules {rules}")


def _integrity(host: Host, settings: Settings) -> Iterator[Check]:
    found = host.parts.store.check()
    size = f"{found['bytes'] / 2**20:.1f} MiB, schema {found['schema']}, journal {found['journal']}"
    yield Check("integrity", "ok", f"{found['engine']}, {size}")
    if found["checksums"]:
        yield Check("checksums", "ok", "every page of the database has one")
        return
    step = (
        "Stop the server and enable them: pg_checksums --enable."
        if settings.postgres
        else "Stop every process of this memory, then: reverie upgrade --finish"
    )
    unnoticed = "indexes" if settings.postgres else "vectors and documents"
    yield Check("checksums", "warn", f"pages have none: damage to {unnoticed} goes unnoticed", step)


def _logs(host: Host, _settings: Settings) -> Iterator[Check]:
    events = entries = backwards = broken = 0
    tenants = host.tenants()
    for name in tenants:
        verdict = host.audit.verify(host.system_actor(name))
        if not verdict.ok:
            broken += 1
            step = "Stop writing, keep the file as evidence, restore the newest backup that verifies."
            yield Check("log", "fail", f"tenant {name} is broken at {verdict.broken_at}: {verdict.reason}", step)
        events, entries = events + verdict.events, entries + verdict.entries
        backwards += verdict.backwards
    if not broken:
        yield Check("log", "ok", f"tenants: {len(tenants)}, events: {events}, entries compared with the log: {entries}")
    if backwards:
        step = "Synchronise the clock with NTP. The order of the log is right; times written meanwhile are wrong."
        yield Check("log times", "warn", f"the clock jumped ahead and back: {backwards} events seem too early", step)


def _isolation(host: Host, _settings: Settings) -> Iterator[Check]:
    """Look for the entries of each tenant as two others: one that does not exist, and the next in the list."""
    tenants = host.tenants()
    stranger = f"probe-{secrets.token_hex(8)}"
    probes = leaks = 0
    for at, owner in enumerate(tenants):
        sample = host.parts.store.read(Scope(owner), lambda tx: tx.scan(ANYTHING, limit=5).items)
        for other in {stranger, tenants[(at + 1) % len(tenants)]} - {owner}:
            for entry in sample:
                probes += 1
                leaks += any(entry.position in seen for seen in _views(host, other, entry))
    empty = host.parts.store.read(Scope(stranger), lambda tx: (tx.head(), tx.refs(), tx.read_log(limit=1)))
    if leaks or not _blank(*empty):
        step = "Stop the server. This should be impossible: report it with the output of `reverie version --json`."
        yield Check("isolation", "fail", f"{leaks} of {probes} probes saw another tenant's entry", step)
        return
    yield Check("isolation", "ok", f"other tenants and a stranger saw nothing; probes: {probes}")


def _views(host: Host, other: str, entry: Entry) -> Iterator[set[int]]:
    """The positions that `other` sees in every way in which it might reach an entry that is not its own."""
    words = terms(entry.content)[:8]
    looks: list[Callable[[ReadTx], Iterable[Entry | Brief | None]]] = [
        lambda tx: tx.scan(ANYTHING, limit=50).items,
        lambda tx: [tx.get(entry.id, where=ANYTHING)],
        lambda tx: [match.entry for match in tx.match(words, Filter(), limit=50)] if words else [],
        lambda tx: tx.at([entry.position], ANYTHING).values(),
    ]
    for scope in (Scope(other, entry.ref), Scope(other)):
        for look in looks if scope.ref else looks[:1]:
            found = host.parts.store.read(scope, look)
            yield {one.position for one in found if one is not None}


def _blank(head: Head, refs: list[tuple[str, int]], log: list[Event]) -> bool:
    return head.seq == 0 and head.entries == 0 and not refs and not log


def _disk(_host: Host, settings: Settings) -> Iterator[Check]:
    folder = _folder(settings)
    if folder is None:
        yield Check("disk", "warn", "the database is in memory", "Nothing survives the process; set REVERIE_DATA.")
        return
    free = free_bytes(folder)
    found = f"{free / 2**30:.1f} GiB free under {folder}"
    if free < _FULL:
        yield Check("disk", "fail", found, "Free some space now: writes will soon be refused.")
    elif free < _TIGHT:
        yield Check("disk", "warn", found, "Free some space, or move the data folder.")
    else:
        yield Check("disk", "ok", found)


def _clock(host: Host, _settings: Settings) -> Iterator[Check]:
    now = SystemClock().now()
    step = "Set the clock (for example with NTP) and restart the server."
    if now < _EARLIEST:
        yield Check("clock", "fail", f"it says {to_iso(now)}", step)
        return
    latest = 0
    for name in host.tenants():
        head = host.reader.snapshot(host.system_actor(name))
        last = host.reader.events(host.system_actor(name), after=max(head - 1, 0), limit=1)
        latest = max([latest, *(event.at for event in last)])
    if latest > now + _SKEW_MS:
        yield Check("clock", "warn", f"it says {to_iso(now)}, the newest event {to_iso(latest)}", step)
    else:
        yield Check("clock", "ok", to_iso(now))


def _key_file(host: Host, settings: Settings) -> Iterator[Check]:
    path = settings.key_path
    sealed = 0
    for name in host.tenants():
        sealed += len(host.rules.secret_ids(host.system_actor(name)))
    if not path.exists():
        if sealed:
            step = "Put the key file back from your backup of it; until then writes of those tenants are refused."
            yield Check("key file", "fail", f"{sealed} secrets are sealed, and there is no {path}", step)
        else:
            yield Check("key file", "ok", "not needed yet: no secrets are registered")
        return
    for name in host.tenants():
        host.rules.policy(host.system_actor(name))  # opens every sealed secret; raises when the key does not fit
    if mode := others_may(path):
        yield Check("key file", "fail", f"other users have rights on {path} ({mode:04o})", f"chmod 600 {path}")
    else:
        yield Check("key file", "ok", f"{path} fits {sealed} sealed secrets; keep a copy of it apart from backups")


def _permissions(_host: Host, settings: Settings) -> Iterator[Check]:
    if settings.database == ":memory:":
        return
    files = [settings.ledger_path]
    folders = {settings.ledger_path.parent.resolve()}
    if not settings.postgres:
        path = Path(settings.database)
        files += [path, *(path.with_name(path.name + end) for end in ("-wal", "-shm"))]
        folders.add(path.resolve().parent)
    wide = 0
    for path in (*files, *sorted(folders)):
        if path.exists() and (mode := others_may(path)):
            wide += 1
            chmod = f"chmod {'700' if path.is_dir() else '600'} {path}"
            step = f"{chmod}, or give the memory a folder of its own." if path.is_dir() else chmod
            yield Check("permissions", "fail", f"other users have rights on {path} ({mode:04o})", step)
    if not wide:
        yield Check("permissions", "ok", "only their owner has rights on the files of this memory and their folder")


def _vectors(host: Host, _settings: Settings) -> Iterator[Check]:
    embedder = host.parts.embedder
    if embedder is None:
        yield Check("vectors", "warn", "no embedder: search by words only", "Set REVERIE_EMBEDDER=static.")
        return
    readable = made = 0
    for name in host.tenants():
        have = host.parts.store.read(Scope(name), lambda tx: tx.index_state(model_of(embedder)))
        readable, made = readable + have[0], made + have[1]
    if made < readable:
        step = "A running server makes them in the background; until then those entries are found by words."
        yield Check("vectors", "warn", f"{readable - made} of {readable} entries wait for a vector", step)
    else:
        yield Check("vectors", "ok", f"every entry has one: {readable} of {readable}")


def _postgres(_host: Host, settings: Settings) -> Iterator[Check]:
    if settings.postgres:
        from reverie.ops.postgres import examine_postgres

        yield from examine_postgres(settings)


def _jobs(host: Host, _settings: Settings) -> Iterator[Check]:
    dead = sum(len(host.jobs.all(host.system_actor(name), status="dead")) for name in host.tenants())
    if dead:
        step = "`reverie jobs list --status dead --all-tenants` says why; then retry or discard them."
        yield Check("jobs", "warn", f"{dead} failed for good", step)
    else:
        yield Check("jobs", "ok", "none failed for good")


def _folder(settings: Settings) -> Path | None:
    if settings.postgres:
        return settings.data_folder if settings.data_folder.is_dir() else Path.home()
    return None if settings.database == ":memory:" else Path(settings.database).resolve().parent
