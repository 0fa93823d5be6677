"""Bundles: what is exported can be checked by anyone, and what is imported is redacted like everything."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from reverie.core.actor import Actor
from reverie.core.dream import DreamPlan
from reverie.core.entry import Draft, Source
from reverie.core.errors import Invalid
from reverie.host import Host
from reverie.providers.tokenizer import TokenCounter
from reverie.store.sqlite import SqliteStore

MakeHost = Callable[..., Host]


@pytest.fixture
def host(make_host: MakeHost) -> Host:
    return make_host(tokens=TokenCounter())


@pytest.fixture
def other(make_host: MakeHost) -> Host:
    return make_host(store=SqliteStore(":memory:"))


def bundle(*documents: dict[str, Any]) -> list[bytes]:
    lines = [orjson.dumps({"type": "manifest", "format": "reverie.bundle/1", "tenant": "x"}) + b"\n"]
    lines += [orjson.dumps(document) + b"\n" for document in documents]
    digest = hashlib.sha256(b"".join(lines)).hexdigest()
    return [*lines, orjson.dumps({"type": "end", "entries": 0, "links": 0, "events": 0, "sha256": digest}) + b"\n"]


def fill(host: Host, actor: Actor) -> None:
    drafts = [
        Draft(content=f"Note {n} about pump {n % 3} at {n * 7} bar.", tags=("pump",), source=Source(actor="tech"))
        for n in range(12)
    ]
    host.entries.put(actor, "plant", drafts)


def test_a_bundle_carries_entries_and_links_and_importing_twice_is_importing_once(
    host: Host, other: Host, ada: Actor
) -> None:
    fill(host, ada)
    report = host.dreams.run(ada, DreamPlan("plant"))
    assert report is not None
    lines = list(host.bundles.export(ada))
    assert host.bundles.check(lines)["entries"] == 1
    first = other.bundles.load(ada, lines)
    assert (first.entries, first.skipped, first.links) == (1, 0, 12)
    second = other.bundles.load(ada, lines)
    assert (second.entries, second.skipped) == (0, 1)
    assert len(other.reader.links(ada, "plant", str(report.output_id))) == 12
    assert other.audit.verify(ada).ok


@pytest.mark.parametrize("damage", ["cut", "changed", "longer", "not json", "not ours"])
def test_a_damaged_bundle_is_refused_before_anything_is_stored(host: Host, ada: Actor, damage: str) -> None:
    fill(host, ada)
    lines = list(host.bundles.export(ada))
    broken = {
        "cut": lines[:-1],
        "changed": [*lines[:3], lines[3].replace(b"pump", b"pomp"), *lines[4:]],
        "longer": [*lines, lines[-1]],
        "not json": [lines[0], b"{oops\n", *lines[1:]],
        "not ours": lines[1:],
    }[damage]
    with pytest.raises(Invalid):
        host.bundles.check(broken)


def test_what_is_imported_is_redacted_links_too(other: Host, ada: Actor) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
    lines = bundle(
        {"type": "entry", "ref": "r", "id": "one", "content": f"use {token}", "tags": [token]},
        {"type": "link", "ref": "r", "from_id": "one", "to_id": token, "link": "supports", "note": f"see {token}"},
    )
    done = other.bundles.load(ada, lines)
    assert done.findings
    (link,) = other.reader.links(ada, "r", "one")
    assert token not in f"{link}{other.reader.get(ada, 'r', 'one')}"
    assert link.note == "see [REDACTED:github-token]"


@pytest.mark.parametrize(
    "document",
    [
        {"type": "link", "ref": "r", "from_id": "a", "to_id": "b", "link": "likes", "note": None},
        {"type": "link", "ref": "../r", "from_id": "a", "to_id": "b", "link": "supports", "note": None},
        {"type": "link", "ref": "r", "from_id": "a", "to_id": "b" * 2000, "link": "supports", "note": None},
        {"type": "entry", "ref": "r", "content": 5},
        {"type": "entry", "ref": "../r", "content": "x"},
        {"type": "entry", "ref": "r", "content": "x", "created_at": "yesterday"},
    ],
)
def test_a_line_that_cannot_be_right_is_refused(other: Host, ada: Actor, document: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        other.bundles.load(ada, bundle(document))


@pytest.mark.parametrize("last", [{"type": "entry", "ref": "plant", "content": 5}, {"type": "link", "from_id": "a"}])
def test_a_bundle_with_a_wrong_line_far_down_stores_nothing(host: Host, ada: Actor, last: dict[str, Any]) -> None:
    good = [{"type": "entry", "ref": "plant", "id": f"n{n}", "content": f"Note {n}."} for n in range(250)]
    with pytest.raises(Invalid, match="Line 252"):
        host.bundles.take(ada, bundle(*good, last))
    assert host.reader.refs(ada) == []


def test_a_link_with_a_nul_is_refused_on_every_store(host: Host, ada: Actor) -> None:
    link = {"type": "link", "ref": "plant", "from_id": "a", "to_id": "b", "link": "informs", "note": None}
    for name in ("from_id", "to_id", "note"):
        with pytest.raises(Invalid, match="Line 2"):
            host.bundles.load(ada, bundle({**link, name: "a\0b"}))


def test_an_archived_entry_is_archived_where_it_is_imported(
    make_host: Callable[..., Host], make_store: Callable[..., Any], ada: Actor
) -> None:
    host, other = make_host(store=make_store("a.db")), make_host(store=make_store("b.db"))
    old, new = (host.entries.put(ada, "notes", [Draft(f"{word} words.")])[0].id for word in ("Old", "New"))
    host.lifecycle.archive(ada, "notes", old)
    lines = list(host.bundles.export(ada))
    assert other.bundles.take(ada, lines).entries == 2
    assert [entry.id for entry in other.reader.page(ada, "notes").items] == [new]
    assert not [hit for hit in other.search.search(ada, "notes", "old").hits if hit.entry.id == old]
    assert other.reader.get(ada, "notes", old, cold=True).archived
    assert other.bundles.take(ada, lines).skipped == 2
    assert other.audit.verify(ada).ok
    other.lifecycle.restore(ada, "notes", old)
    assert len(other.reader.page(ada, "notes").items) == 2
    assert other.search.search(ada, "notes", "old").hits[0].entry.id == old
