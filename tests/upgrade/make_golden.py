"""Make the data file of this version, for later versions to open:  python tests/upgrade/make_golden.py 1

A released file is never made again: a new schema gets a new number, and every old file stays.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from reverie.core.actor import Actor
from reverie.core.entry import Draft, EntryState, Link, Scope, Source
from reverie.core.event import NewEvent
from reverie.core.query import Filter
from reverie.host import Host
from reverie.providers.static import StaticEmbedder
from reverie.services import Services
from reverie.store.conformance import HandClock
from reverie.store.contract import WriteTx
from reverie.store.sqlite import SqliteStore

FOLDER = Path(__file__).parent
ADA, EVE = Actor(tenant="acme", id="ada"), Actor(tenant="rival", id="eve")
START = 1_790_000_000_000


def fill(host: Host, clock: HandClock) -> None:
    """A little of everything that can be stored."""
    for n, text in enumerate(
        (
            "The customer prefers e-mail to telephone calls.",
            "We decided to ship the blue kettle on 2026-12-01.",
            "Zoë pays 12 € a month – “soon” 14 €.",
            "The staging server is called heron.",
            "Ask Grace before touching the billing job.",
        )
    ):
        draft = Draft(
            text,
            id=f"entry-{n}",
            kind="note" if n % 2 else "decision",
            tags=("golden", f"n{n}"),
            subject="zoë" if n == 2 else None,
            attributes={"n": n, "nested": {"list": [1, None, True]}},
            source=Source(actor="agent-7", session="s1", run="r1"),
            expires_at=START + 10**12 if n == 4 else None,
        )
        host.entries.put(ADA, "team/notes", [draft], idempotency_key=f"golden-{n}")
        clock.advance(1000)
    host.entries.put(ADA, "team/other", [Draft("archived one", id="archived"), Draft("deleted one", id="deleted")])
    host.entries.put(ADA, "team/other", [Draft("retracted one", id="retracted"), Draft("erased one", id="erased")])
    host.entries.put(ADA, "team/other", [Draft("went and came back", id="returned")])
    host.lifecycle.pin(ADA, "team/notes", "entry-1")
    host.lifecycle.hold(ADA, "team/notes", "entry-3")
    host.lifecycle.archive(ADA, "team/other", "archived")
    host.lifecycle.archive(ADA, "team/other", "returned")
    host.lifecycle.restore(ADA, "team/other", "returned")
    host.lifecycle.delete(ADA, "team/other", "deleted")
    host.lifecycle.retract(ADA, "team/other", "retracted")
    host.lifecycle.erase(ADA, "team/other", "erased")
    host.rules.set_policy(ADA, {"max_tags": 32})
    host.keys.create("acme", name="golden")
    host.entries.put(EVE, "team/notes", [Draft("A neighbour with the same names.", id="entry-0")])

    def more(tx: WriteTx) -> None:
        seq = tx.append(NewEvent("document.saved", "SAVE", "ada"))
        tx.save("files", "readme", b"plain bytes", seq=seq, meta={"type": "text"})
        tx.link(Link("entry-0", "entry-1", "supports", "they agree"))

    host.parts.store.write(Scope("acme", "team/notes"), more)


def describe(host: Host) -> dict[str, object]:
    """What any version must still read from the file."""
    answer: dict[str, object] = {}
    for actor in (ADA, EVE):
        head = host.parts.store.read(Scope(actor.tenant), lambda tx: tx.head())
        answer[actor.tenant] = {
            "refs": host.reader.refs(actor),
            "seq": head.seq,
            "hash": head.hash,
            "bytes": head.bytes,
            "notes": [
                [e.id, e.kind, e.content, list(e.tags), e.subject, dict(e.attributes), e.version, e.pinned, e.held]
                for e in host.reader.page(actor, "team/notes").items
            ],
            "as_of_4": [e.id for e in host.reader.page(actor, "team/notes", as_of=min(4, head.seq)).items],
            "kettle": [
                hit.entry.id
                for hit in host.search.search(actor, "team/notes", "blue kettle", limit=1, mode="words").hits
            ],
            "links": [[link.to_id, link.type, link.note] for link in host.reader.links(actor, "team/notes", "entry-0")],
            "cold": sorted(
                [e.id, e.state.value, e.content]
                for e in host.parts.store.read(
                    Scope(actor.tenant, "team/other"),
                    lambda tx: tx.scan(
                        Filter(states=frozenset(EntryState), archived=None, gone=True, expired=None), limit=100
                    ),
                ).items
            ),
        }
    return answer


def open_host(path: Path, clock: HandClock) -> Host:
    return Host(Services(store=SqliteStore(path, clock=clock), clock=clock, embedder=StaticEmbedder()))


def main(number: str) -> None:
    path = FOLDER / f"v{number}.db"
    if path.exists():
        raise SystemExit(f"{path.name} was released. It is never made again.")
    clock = HandClock(START)
    host = open_host(path, clock)
    fill(host, clock)
    described = describe(host)
    host.close()
    (FOLDER / f"v{number}.json").write_text(json.dumps(described, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
