"""The storage of CrewAI, with its own records and its own memory."""

from __future__ import annotations

import asyncio
import tempfile
from datetime import datetime, timedelta

from crewai.memory.storage.backend import StorageBackend
from crewai.memory.types import MemoryRecord
from crewai.memory.unified_memory import Memory

import reverie
from reverie.integrations.crewai import ReverieStorage


def test_records_are_stored_replaced_listed_and_deleted() -> None:
    storage = ReverieStorage(reverie.open(tempfile.mkdtemp()))
    assert isinstance(storage, StorageBackend)
    day = datetime(2026, 3, 1, 12)
    records = [
        MemoryRecord(
            id=str(number),
            content=f"Record {number}.",
            scope="/team/ann" if number % 2 else "/team",
            categories=["odd" if number % 2 else "even"],
            metadata={"number": number},
            created_at=day + timedelta(days=number),
        )
        for number in range(6)
    ]
    storage.save(records)
    assert storage.get_record("3") == records[3]
    assert [record.id for record in storage.list_records(limit=2, offset=1)] == ["4", "3"]
    assert [record.id for record in storage.list_records("/team/ann")] == ["5", "3", "1"]
    assert storage.list_records("/tea") == []
    assert storage.list_scopes("/") == ["/team"]
    assert storage.list_scopes("/team") == ["/team/ann"]
    info = storage.get_scope_info("/team/")
    assert (info.path, info.record_count, info.child_scopes) == ("/team", 6, ["/team/ann"])
    assert (info.oldest_record, info.newest_record) == (day, day + timedelta(days=5))
    assert storage.list_categories() == {"odd": 3, "even": 3}

    storage.update(records[3].model_copy(update={"content": "Changed."}))
    held = storage.get_record("3")
    assert held is not None
    assert (held.content, held.created_at, storage.count()) == ("Changed.", records[3].created_at, 6)

    assert storage.delete(categories=["odd"], older_than=day + timedelta(days=2)) == 1
    assert storage.delete(record_ids=["2", "nothing"]) == 1
    assert asyncio.run(storage.adelete(metadata_filter={"number": 4})) == 1
    storage.reset("/team/ann")
    assert [record.id for record in storage.list_records()] == ["0"]


def test_texts_are_found_by_our_search_and_foreign_vectors_by_their_angle() -> None:
    storage = ReverieStorage(reverie.open(tempfile.mkdtemp()))
    texts = ["Ann drinks Darjeeling tea.", "The office is in Nantes.", "Bruno is a beagle."]
    vectors = storage.embed(texts)
    storage.save(
        [MemoryRecord(id=text[:3], content=text, embedding=vector) for text, vector in zip(texts, vectors, strict=True)]
    )
    (query,) = storage.embed(["Which tea does Ann drink?"])
    (best, *_) = storage.search(query)
    assert best[0].content == texts[0]
    assert 0 < best[1] <= 1
    assert storage.search(query, min_score=1.1) == []
    assert storage.search(query, scope_prefix="/elsewhere") == []

    own = [("x", [0.9, 0.1, 0.0]), ("y", [0.0, 1.0, 0.0]), ("z", [0.5, 0.5, 0.5])]
    storage.save([MemoryRecord(id=name, content=name, scope="/own", embedding=vector) for name, vector in own])
    found = asyncio.run(storage.asearch([1.0, 0.0, 0.0], limit=2))
    assert [record.id for record, _ in found] == ["x", "z"]
    assert found[0][1] > 0.99 > found[1][1] > 0.55


def test_the_memory_of_a_crew_remembers_and_recalls_what_other_doors_wrote() -> None:
    memory = reverie.open(tempfile.mkdtemp())
    memory.ref("crewai").put("The boathouse is locked at nine.")
    storage = ReverieStorage(memory)
    crew = Memory(storage=storage, embedder=storage.embed)
    kept = crew.remember("Ann drinks Darjeeling tea.", scope="/ann", categories=["facts"], importance=0.5)
    assert kept is not None
    asked = {"Which tea does Ann drink?": "Darjeeling", "When is the boathouse locked?": "nine"}
    for question, answer in asked.items():
        assert answer in crew.recall(question, depth="shallow")[0].record.content
    crew.update(kept.id, content="Ann drinks Assam tea.")
    assert "Assam" in crew.recall("Which tea does Ann drink?", depth="shallow")[0].record.content
    assert crew.forget(scope="/ann") == 1
    assert crew.list_records(scope="/ann") == []
    crew.close()
