"""A scan leaves a secret in no field of an entry that a fresh write would redact."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from reverie.core.actor import Actor
from reverie.core.entry import Draft, Source
from reverie.host import Host
from reverie.store.cipher import FileCipher

VALUE = "tangerine zeppelin brackwater"


def test_a_scan_reaches_kind_and_source(make_host: Callable[..., Host], ada: Actor, tmp_path: Path) -> None:
    host = make_host(cipher=FileCipher(tmp_path / "key"))
    source = Source(actor=VALUE, role=f"porter {VALUE}", session=f"at {VALUE}", run=VALUE, node=VALUE)
    host.entries.put(ada, "notes", [Draft("The porter waved.", kind=f"kind {VALUE}", source=source)])
    host.entries.put(
        ada, "notes", [Draft("Nothing to see.", kind="plain", source=Source(session="s-1", role="porter"))]
    )
    plain = host.reader.page(ada, "notes").items[0]
    host.rules.register(ada, "gate", VALUE)
    assert host.rescan.scan(ada, dry_run=True).affected == 1
    assert host.rescan.scan(ada).affected == 1
    kept, changed = host.reader.page(ada, "notes").items
    assert kept == plain
    assert VALUE not in f"{changed.kind} {changed.source}"
    assert (changed.content, changed.source.session) == ("The porter waved.", "at [REDACTED:gate]")
    assert not host.search.search(ada, "notes", "zeppelin").hits
    assert host.rescan.scan(ada).affected == 0
    assert host.audit.verify(ada).ok
