"""forget against work of the protocols that has read a text and not written it yet: the certificate stays true."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.conftest import EMBEDDER

from reverie.core.actor import Actor
from reverie.core.entry import Draft, EntryState, Scope, Source
from reverie.core.errors import ReverieError
from reverie.host import Host
from reverie.memory.read import ANYTHING
from reverie.protocols.anthropic.names import DREAM, STORE
from reverie.providers.tokenizer import TokenCounter

NEEDLE = "Zubenelgenubi"


@pytest.fixture
def host(make_host: Callable[..., Host]) -> Host:
    return make_host(tokens=TokenCounter(), embedder=EMBEDDER)


def after(monkeypatch: pytest.MonkeyPatch, part: Any, name: str, step: Callable[[], object]) -> list[object]:
    """Do a step once, right after a method of a part has returned for the first time."""
    method, done = getattr(part, name), []

    def then(*arguments: Any, **named: Any) -> Any:
        result = method(*arguments, **named)
        if not done:
            done.append(step())
        return result

    monkeypatch.setattr(part, name, then)
    return done


def left(host: Host, actor: Actor) -> list[str]:
    """Stored entries with the needle."""
    found = host.parts.store.read(Scope(actor.tenant), lambda tx: tx.scan(ANYTHING, limit=1000)).items
    return [entry.id for entry in found if entry.state is not EntryState.ERASED and NEEDLE in repr(entry)]


def store_of(host: Host, ada: Actor, *contents: str, **metadata: str) -> str:
    """A memory store with these files."""
    made = STORE + host.memory_stores.create(ada, "notes", metadata=metadata).id
    for number, content in enumerate(contents):
        host.memories.create(ada, made, f"/note-{number}.md", content)
    return made


def test_words_of_a_session_that_were_forgotten_meanwhile_are_in_no_file(
    host: Host, ada: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = store_of(host, ada, "The depot opens on Monday.")
    said = f"{NEEDLE} decided that the pier opens on 4 May and that hall 7 is closed."
    host.entries.put(ada, "talks", [Draft(said, subject="ana", source=Source(session="walk"))])
    asked = host.memory_dreams.create(
        ada, store, model="m", distiller="extractive", existing=True, sessions=["sesn_walk"]
    )
    done = after(monkeypatch, host.memory_dreams._planner, "plan", lambda: host.forget.forget(ada, "ana"))
    host.memory_dreams.run(ada, asked.id)
    assert [one.certificate is not None for one in done] == [True]  # type: ignore[attr-defined]
    assert left(host, ada) == []
    assert host.memory_dreams.get(ada, DREAM + asked.id).status == "failed"


def test_a_file_that_was_forgotten_while_it_was_copied_is_in_no_copy(
    host: Host, ada: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = store_of(host, ada, f"{NEEDLE} keeps bees.", **{"reverie.subject": "ana"})
    asked = host.memory_dreams.create(ada, store, model="m", distiller="extractive")
    done = after(monkeypatch, host.memory_dreams._planner, "files", lambda: host.forget.forget(ada, "ana"))
    host.memory_dreams.run(ada, asked.id)
    assert [one.certificate is not None for one in done] == [True]  # type: ignore[attr-defined]
    assert left(host, ada) == []


def test_a_former_text_that_was_forgotten_meanwhile_does_not_come_back_by_an_undo(
    host: Host, ada: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = store_of(host, ada, f"The launch is in {NEEDLE}.")
    host.entries.put(ada, "talks", [Draft("The launch is in Porto now.", source=Source(session="walk"))])
    asked = host.memory_dreams.create(
        ada, store, model="m", distiller="extractive", existing=True, sessions=["sesn_walk"]
    )
    assert host.memory_dreams.run(ada, asked.id)
    undo = host.memory_dream_undo
    done = after(monkeypatch, undo, "_former", lambda: host.forget.forget(ada, NEEDLE, mentions=True))
    with pytest.raises(ReverieError):
        undo.undo(ada, DREAM + asked.id)
    assert [one.certificate is not None for one in done] == [True]  # type: ignore[attr-defined]
    assert left(host, ada) == []


def test_a_former_version_of_a_file_is_forgotten_and_the_version_a_dream_made_of_it_stays(
    host: Host, ada: Actor
) -> None:
    """It said "Something of the subject would have been left" for ever, and nothing was forgotten."""
    store = store_of(host, ada, f"The launch is in {NEEDLE}.")
    host.entries.put(ada, "talks", [Draft("The launch is in Porto now.", source=Source(session="walk"))])
    asked = host.memory_dreams.create(
        ada, store, model="m", distiller="extractive", existing=True, sessions=["sesn_walk"]
    )
    assert host.memory_dreams.run(ada, asked.id)
    preview = host.forget.forget(ada, NEEDLE, mentions=True, preview=True)
    done = host.forget.forget(ada, NEEDLE, mentions=True)
    assert (preview.forgotten, preview.derived, done.forgotten, done.derived) == (1, 0, 1, 0)
    assert left(host, ada) == []
    assert host.memories.at(ada, store, "/note-0.md").content == "The launch is in Porto now."  # type: ignore[union-attr]
