"""Backups: copies made while writers continue, verified before they get their names, restored without overwriting.

`FILE.json`, next to `FILE`, describes the backup: checksum, schema, and the head of every tenant's log. The key file is
not part of a backup: backup and key together open registered secrets, so they are kept apart by default. A backup of
PostgreSQL is SQL for `psql`; it is verified, and can be restored, through a SQLite file made from it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from reverie.core.actor import Actor
from reverie.core.clock import SystemClock, to_iso
from reverie.core.errors import Invalid, ReverieError, StoreCorrupt, StoreError, StoreUnavailable
from reverie.core.files import make_file, make_folder, narrow, open_new
from reverie.host import Host
from reverie.privacy.ledger import FileLedger
from reverie.services import Services
from reverie.store.contract import Store
from reverie.store.dump import is_dump, load

FORMAT = "reverie.backup/1"
DATABASE = "reverie.db"
KEY = "reverie.key"
LEDGER = "forgotten.jsonl"
_SQLITE = b"SQLite format 3\x00"
_BLOCK = 1 << 20
_LAST = "backup/last"

Progress = Callable[[int, int], None]
OpenStore = Callable[[str], Store]
ForgetAgain = Callable[[Path, Path], int]
"""Function that repeats the forgets of a ledger in a database; returns the number of subjects."""


def create(
    host: Host, file: Path, *, open_store: OpenStore, key: Path | None = None, progress: Progress | None = None
) -> dict[str, Any]:
    """Back the host's store up to `file`. Returns the manifest, which is also written to `FILE.json`.

    The copy gets its name only after its integrity and every tenant's log were verified in the copy itself. With
    `key`, the key file is copied to `FILE.key`, readable by its owner only. Nothing is overwritten, and a backup that
    fails leaves no file behind.
    """
    manifest_file, key_copy = _sibling(file, ".json"), _sibling(file, ".key")
    for path in (file, manifest_file, *([key_copy] if key else [])):
        if path.exists():
            raise Invalid(f"{path} exists already. Choose a new name; a backup never overwrites.")
    if not file.parent.is_dir():
        raise Invalid(f"There is no folder {file.parent}. Make it first.")
    if key is not None and not key.is_file():
        raise StoreUnavailable(f"There is no key file at {key}: leave out --with-key.")
    partial = file.with_name(f".{file.name}.{secrets.token_hex(4)}.partial")
    try:
        partial.touch()
        partial.unlink()
    except OSError as fault:
        raise StoreUnavailable(f"Cannot write to {file.parent} ({fault.strerror}). Choose another place.") from None
    made: list[Path] = []
    try:
        host.parts.store.backup(str(partial), progress=progress)
        facts = _prove_copy(partial, open_store)
        _sync(partial)
        manifest: dict[str, Any] = {
            "format": FORMAT,
            "file": file.name,
            "created_at": to_iso(host.parts.clock.now()),
            "bytes": partial.stat().st_size,
            "sha256": _checksum(partial),
            **facts,
            "key_file": key_copy.name if key else None,
        }
        if key is not None:
            _write(key_copy, key.read_bytes())
            made.append(key_copy)
        _write(manifest_file, orjson.dumps(manifest, option=orjson.OPT_INDENT_2) + b"\n")
        made.append(manifest_file)
        partial.rename(file)
        made.clear()
        _sync(file.parent)
    except FileExistsError as taken:  # by another backup, meanwhile
        raise Invalid(f"{taken.filename} exists already. Choose a new name; a backup never overwrites.") from None
    finally:
        for path in made:  # of a backup that was not finished
            path.unlink(missing_ok=True)
        for leftover in (partial, _sibling(partial, "-wal"), _sibling(partial, "-shm")):
            leftover.unlink(missing_ok=True)
    _note(host)
    return manifest


def last_backup(store: Store) -> int | None:
    """The time of the last backup of a store, in milliseconds; None when there was none."""
    noted = store.control(lambda tx: tx.setting(_LAST))
    return None if noted is None else int(noted)


def _note(host: Host) -> None:
    """Store the time of the backup, if possible: the backup exists either way."""
    if not host.parts.read_only:
        with contextlib.suppress(ReverieError):
            at = str(host.parts.clock.now()).encode()
            host.parts.store.control(lambda tx: tx.set_setting(_LAST, at), write=True)


def verify(file: Path, *, open_store: OpenStore, progress: Progress | None = None) -> dict[str, Any]:
    """Verify checksum, integrity and every log of a backup, in a copy of it: the backup itself is only read.

    Raises StoreCorrupt when anything does not fit. Without a manifest, the checksum is not verified.
    """
    with tempfile.TemporaryDirectory(prefix="reverie-verify-") as folder:
        return _copy_and_prove(file, Path(folder) / DATABASE, open_store, progress)


def restore(
    file: Path,
    into: Path,
    *,
    open_store: OpenStore,
    ledger: Path | None = None,
    forget_again: ForgetAgain | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Restore a backup as the database of the data folder `into`, which must be new or empty.

    The database gets its name only after it was verified and after everything in `ledger` that was forgotten since the
    backup is forgotten again, including what a live host forgets meanwhile. An older schema is brought up to date.
    """
    if ledger is not None and not ledger.is_file():
        raise Invalid(f"There is no forget ledger at {ledger}.")
    if into.exists() and (not into.is_dir() or any(into.iterdir())):
        raise Invalid(f"{into} is not an empty folder. Restore into a new one, look at it, then swap the folders.")
    made = not into.exists()
    make_folder(into)
    narrow(into)  # it is empty, so nothing but this memory will be in it
    partial = into / f".{DATABASE}.partial"
    try:
        facts = _copy_and_prove(file, partial, open_store, progress)
        key_copy = _sibling(file, ".key")
        if key_copy.is_file():
            _write(into / KEY, key_copy.read_bytes())
        facts["key_file"] = KEY if key_copy.is_file() else None
        facts["forgotten_again"] = None
        if ledger is not None:
            facts["forgotten_again"] = 0
            while FileLedger(into / LEDGER).take(FileLedger(ledger)):  # the live host goes on forgetting meanwhile
                facts["forgotten_again"] += forget_again(partial, into / LEDGER) if forget_again else 0
        _sync(partial)
        partial.rename(into / DATABASE)
        _sync(into)
    except BaseException:
        for leftover in (partial, _sibling(partial, "-wal"), _sibling(partial, "-shm"), into / KEY, into / LEDGER):
            leftover.unlink(missing_ok=True)
        if made:
            with contextlib.suppress(OSError):
                into.rmdir()
        raise
    return facts


def _copy_and_prove(file: Path, copy: Path, open_store: OpenStore, progress: Progress | None) -> dict[str, Any]:
    manifest = _manifest(file)
    if not file.is_file():
        raise StoreUnavailable(f"There is no backup at {file}.")
    size, digest, dumped = file.stat().st_size, hashlib.sha256(), is_dump(file)
    if not dumped and manifest is None and not _is_database(file):
        raise Invalid(f"{file} is not a backup: neither a SQLite database nor a dump of PostgreSQL.")
    with os.fdopen(open_new(copy), "wb") as sink:
        done = 0
        for block in _blocks(file):
            digest.update(block)
            if not dumped:
                sink.write(block)
            done += len(block)
            if progress:
                progress(done, size)
    if manifest and manifest.get("sha256") != digest.hexdigest():
        raise StoreCorrupt(f"{file} is not the file its manifest describes: its SHA-256 differs. Use another backup.")
    facts = _prove_dump(file, copy, open_store) if dumped else _prove(copy, open_store)
    if manifest and manifest.get("tenants") != facts["tenants"]:
        raise StoreCorrupt(f"{file} does not hold the logs its manifest names. Use another backup.")
    return {
        "file": str(file),
        "bytes": size,
        "sha256": digest.hexdigest(),
        "manifest": manifest is not None,
        **facts,
        "key_file": (manifest or {}).get("key_file"),
    }


def _is_database(file: Path) -> bool:
    with file.open("rb") as opened:
        return opened.read(len(_SQLITE)) == _SQLITE


def _prove_copy(file: Path, open_store: OpenStore) -> dict[str, Any]:
    if not is_dump(file):
        return _prove(file, open_store)
    with tempfile.TemporaryDirectory(prefix="reverie-verify-") as folder:
        copy = Path(folder) / DATABASE
        make_file(copy)
        return _prove_dump(file, copy, open_store)


def _prove_dump(file: Path, copy: Path, open_store: OpenStore) -> dict[str, Any]:
    """Load a backup in SQL into the empty file `copy`, which becomes a SQLite database, and verify that."""
    store = open_store(str(copy))
    try:
        into = store.transfer()
        try:
            schema = load(file, into)
        finally:
            into.close()
    finally:
        store.close()
    return _prove(copy, open_store) | {"schema": schema, "engine": "PostgreSQL, as SQL"}


def _prove(path: Path, open_store: OpenStore) -> dict[str, Any]:
    """Verify the integrity of the file and the log of every tenant in it."""
    store = open_store(str(path))
    try:
        found = store.check()
        host = Host(Services(store=store, clock=SystemClock()))
        tenants = []
        for name in host.tenants():
            verdict = host.audit.verify(Actor(tenant=name, id="host:reverie", door="host"))
            if not verdict.ok:
                raise StoreCorrupt(f"The log of tenant {name} is broken at {verdict.broken_at}: {verdict.reason}.")
            tenants.append({"tenant": name, "events": verdict.events, "entries": verdict.entries, "head": verdict.head})
    finally:
        store.close()
    return {"schema": found["schema"], "engine": found["engine"], "tenants": tenants}


def _manifest(file: Path) -> Mapping[str, Any] | None:
    path = _sibling(file, ".json")
    if not path.is_file():
        return None
    try:
        manifest = orjson.loads(path.read_bytes())
    except ValueError:
        manifest = None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise StoreError(f"{path} is not the manifest of a backup. Move it away to verify without it.")
    return manifest


def _sibling(file: Path, suffix: str) -> Path:
    return file.with_name(file.name + suffix)


def _blocks(file: Path) -> Iterator[bytes]:
    with file.open("rb") as source:
        while block := source.read(_BLOCK):
            yield block


def _checksum(file: Path) -> str:
    digest = hashlib.sha256()
    for block in _blocks(file):
        digest.update(block)
    return digest.hexdigest()


def _write(path: Path, content: bytes) -> None:
    """Write a new file that only its owner may read. It is on the disk when this returns, or does not exist."""
    descriptor = open_new(path)
    try:
        with os.fdopen(descriptor, "wb") as sink:
            sink.write(content)
            sink.flush()
            os.fsync(sink.fileno())
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def free_bytes(folder: Path) -> int:
    """The free space of the disk that holds `folder`, in bytes."""
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free
