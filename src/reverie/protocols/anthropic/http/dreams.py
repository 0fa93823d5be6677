"""Handlers of dreams."""

from __future__ import annotations

import fnmatch
from typing import Any

import msgspec

from reverie.core.errors import Invalid
from reverie.protocols.anthropic.dream_records import FINAL, STATUSES, DreamRecord, Options
from reverie.protocols.anthropic.dream_undo import DreamUndo
from reverie.protocols.anthropic.dreams import MemoryDreams
from reverie.protocols.anthropic.http.call import AnthropicCall
from reverie.protocols.anthropic.http.documents import time
from reverie.protocols.anthropic.http.wire import Closed
from reverie.protocols.anthropic.names import DREAM, SESSION, STORE
from reverie.protocols.anthropic.transcripts import Transcript, messages_text
from reverie.settings import Settings

EXTRACTIVE = "reverie-extractive"
MOST_SESSIONS = 100
MOST_WAIT_SECONDS = 55
_USAGE = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


class Model(Closed, frozen=True):
    id: str
    speed: str | None = None


class StoreInput(Closed, frozen=True, tag_field="type", tag="memory_store"):
    memory_store_id: str


class SessionsInput(Closed, frozen=True, tag_field="type", tag="sessions"):
    session_ids: list[str]


class CreateNew(Closed, frozen=True, tag_field="type", tag="create_new"):
    pass


class UpdateExisting(Closed, frozen=True, tag_field="type", tag="update_existing"):
    memory_store_id: str


class TranscriptIn(Closed, frozen=True):
    id: str
    text: str | None = None
    messages: list[dict[str, Any]] | None = None


class DreamOptions(Closed, frozen=True):
    dry_run: bool = False
    budget: int | None = None
    fit: bool = True
    condense: bool = False
    exclude: tuple[str, ...] = ()
    transcripts: tuple[TranscriptIn, ...] = ()
    wait_seconds: int = 0


class DreamIn(Closed, frozen=True):
    inputs: list[StoreInput | SessionsInput]
    model: str | Model
    instructions: str | None = None
    output_behavior: CreateNew | UpdateExisting | None = None
    reverie: DreamOptions | None = None


def create_dream(call: AnthropicCall) -> Any:
    """Start a dream over a memory store and sessions."""
    given = call.read(DreamIn)
    options = given.reverie or DreamOptions()
    store, sessions = _inputs(given, strict=call.settings.anthropic_strict)
    model = given.model if isinstance(given.model, Model) else Model(given.model)
    if not 1 <= len(model.id) <= 256:
        raise Invalid("model.id: it has 1 to 256 characters.", pointer="/model")
    if model.speed not in (None, "standard"):
        raise Invalid("model.speed: dreams run at standard speed.", pointer="/model/speed")
    if given.instructions is not None and not 1 <= len(given.instructions) <= 4096:
        raise Invalid("instructions: it has 1 to 4,096 characters.", pointer="/instructions")
    existing = isinstance(given.output_behavior, UpdateExisting)
    if isinstance(given.output_behavior, UpdateExisting) and given.output_behavior.memory_store_id != store:
        raise Invalid("output_behavior.memory_store_id: it must be the input store.", pointer="/output_behavior")
    if not 0 <= options.wait_seconds <= MOST_WAIT_SECONDS:
        raise Invalid(f"reverie.wait_seconds: it is 0 to {MOST_WAIT_SECONDS}.", pointer="/reverie/wait_seconds")
    record = call.host.use(MemoryDreams).create(
        call.actor,
        store,
        model=model.id,
        distiller=distiller_of(model.id, call.settings),
        sessions=sessions,
        transcripts=[_transcript(one) for one in options.transcripts],
        instructions=given.instructions,
        existing=existing,
        options=Options(budget=options.budget, fit=options.fit, condense=options.condense, exclude=options.exclude),
        dry_run=options.dry_run,
        idempotency_key=call.idempotency_key,
    )
    if options.dry_run:
        return dream_document(record) | {"id": f"{DREAM}dry_{record.id}"}
    if options.wait_seconds:
        call.wait_seconds = options.wait_seconds
        call.again = lambda: _final_document(call, DREAM + record.id)
    return dream_document(record)


def list_dreams(call: AnthropicCall) -> Any:
    """Dreams, newest first."""
    query = call.query
    statuses = query.texts("statuses")
    for status in statuses:
        if status not in STATUSES:
            raise Invalid(f"statuses: it is one of {', '.join(STATUSES)}.", pointer="/statuses")
    page = call.host.use(MemoryDreams).list(
        call.actor,
        statuses=statuses,
        after_instant=query.instant("created_at[gt]"),
        before_instant=query.instant("created_at[lt]"),
        archived=query.flag("include_archived"),
        limit=query.limit(),
        after=call.cursor("dreams"),
    )
    return call.page([dream_document(record) for record in page.items], page.after, "dreams")


def get_dream(call: AnthropicCall) -> Any:
    """One dream."""
    return dream_document(call.host.use(MemoryDreams).get(call.actor, call.path["dream"]))


def cancel_dream(call: AnthropicCall) -> Any:
    """Cancel a dream that has not ended."""
    call.no_body()
    return dream_document(call.host.use(MemoryDreams).cancel(call.actor, call.path["dream"]))


def archive_dream(call: AnthropicCall) -> Any:
    """Archive a dream."""
    call.no_body()
    return dream_document(call.host.use(MemoryDreams).archive(call.actor, call.path["dream"]))


def diff_dream(call: AnthropicCall) -> Any:
    """Before and after of every memory a dream changed."""
    return call.host.use(DreamUndo).diff(call.actor, call.path["dream"])


def undo_dream(call: AnthropicCall) -> Any:
    """Undo a dream."""
    call.no_body()
    return dream_document(call.host.use(DreamUndo).undo(call.actor, call.path["dream"]))


def distiller_of(model: str, settings: Settings) -> str:
    """Return the distiller that a model's name selects on this host."""
    if model == EXTRACTIVE:
        return "extractive"
    named = dict(one.split("=", 1) for one in settings.anthropic_models.replace(" ", "").split(",") if "=" in one)
    if settings.model_provider != "none":
        named = {settings.model: "llm", **named}
    found = next((kind for pattern, kind in named.items() if fnmatch.fnmatchcase(model, pattern)), None)
    if found is not None:
        return found
    if settings.anthropic_unknown_model == "extractive":
        return "extractive"
    known = ", ".join([EXTRACTIVE, *named])
    raise Invalid(f"model: {model[:64]} is not configured on this host. It has: {known}.", pointer="/model")


def dream_document(record: DreamRecord) -> dict[str, Any]:
    """A dream. Every field is always there."""
    inputs: list[dict[str, Any]] = [{"type": "memory_store", "memory_store_id": STORE + record.store}]
    if record.sessions is not None:
        inputs.append({"type": "sessions", "session_ids": list(record.sessions)})
    behavior: dict[str, Any] = {"type": "create_new"}
    if record.existing:
        behavior = {"type": "update_existing", "memory_store_id": STORE + record.store}
    shown = record.output is not None and record.status != "pending"
    outputs = [{"type": "memory_store", "memory_store_id": STORE + str(record.output)}] if shown else []
    added = dict(record.report)
    if record.status == "completed" and "estimate" not in added:
        added |= {"run": record.run, "undo_until": None, "state": record.state}
    if record.transcripts:
        added["transcripts"] = [{"id": name, "sha256": digest} for name, digest in record.transcripts]
    document = {
        "id": DREAM + record.id,
        "type": "dream",
        "status": record.status,
        "inputs": inputs,
        "outputs": outputs,
        "model": {"id": record.model, "speed": "standard"},
        "instructions": record.instructions,
        "output_behavior": behavior,
        "session_id": SESSION + record.run if record.run else None,
        "created_at": time(record.created_at),
        "ended_at": time(record.ended_at),
        "archived_at": time(record.archived_at),
        "usage": {name: record.usage.get(name, 0) for name in _USAGE},
        "error": msgspec.to_builtins(record.error),
    }
    return document | ({"reverie": added} if added else {})


def _inputs(given: DreamIn, *, strict: bool) -> tuple[str, list[str] | None]:
    stores = [one for one in given.inputs if isinstance(one, StoreInput)]
    sessions = [one for one in given.inputs if isinstance(one, SessionsInput)]
    if len(stores) != 1:
        raise Invalid("inputs: exactly one memory_store is needed.", pointer="/inputs")
    if len(sessions) > 1 or (strict and not sessions):
        raise Invalid("inputs: exactly one sessions input is needed.", pointer="/inputs")
    if not sessions:
        return stores[0].memory_store_id, None
    ids = sessions[0].session_ids
    if not 1 <= len(ids) <= MOST_SESSIONS or len(set(ids)) != len(ids):
        raise Invalid(f"inputs.session_ids: 1 to {MOST_SESSIONS} ids, each once.", pointer="/inputs")
    return stores[0].memory_store_id, ids


def _transcript(given: TranscriptIn) -> Transcript:
    if not 1 <= len(given.id) <= 256 or (given.text is None) == (given.messages is None):
        raise Invalid(
            "reverie.transcripts: each has an id, and either text or messages.", pointer="/reverie/transcripts"
        )
    return Transcript(given.id, given.text if given.text is not None else messages_text(given.messages or []))


def _final_document(call: AnthropicCall, dream_id: str) -> dict[str, Any] | None:
    record = call.host.use(MemoryDreams).get(call.actor, dream_id)
    return dream_document(record) if record.status in FINAL else None
