"""Operate: health, jobs, keys, secrets, policy, export and import, and how this host is set up."""

from __future__ import annotations

import ast
import inspect
import os
from contextlib import suppress
from dataclasses import fields as fields_of
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from starlette.responses import Response

from reverie.api.console import access
from reverie.api.console.page import Document, Look, Page, See
from reverie.core.actor import Right
from reverie.core.clock import LATEST, parse_duration, short_duration, to_iso
from reverie.core.errors import Forbidden, Invalid, NotFound
from reverie.core.policy import CHOICES, TenantPolicy
from reverie.core.query import Lease
from reverie.http.limits import key_of
from reverie.http.origin import is_loopback
from reverie.http.sse import line_stream
from reverie.memory.keys import describe
from reverie.ops.backup import last_backup
from reverie.settings import read_file

POLICY: dict[str, tuple[str, str]] = {
    "max_entry_bytes": ("bytes", "The largest entry that is accepted."),
    "max_tags": ("tags", "The most tags of one entry."),
    "max_attribute_bytes": ("bytes", "The most that the attributes of one entry may hold."),
    "max_entries": ("entries", "The tenant's quota of entries, readable and cold."),
    "max_bytes": ("bytes", "The tenant's quota of text."),
    "max_memories_per_store": ("files", "The most files of one memory store."),
    "max_memory_stores": ("stores", "The most memory stores of the tenant."),
    "undo_window_ms": ("duration", "Time in which a deleted entry can be restored."),
    "cold_retention_ms": (
        "duration",
        "Time that sources of dreams stay in cold storage; empty: without limit.",
    ),
    "idempotency_ms": ("duration", "Time in which a retry with the same key is recognised."),
    "default_ttl_ms": ("duration", "Entries without an expiry get this one; empty: they do not expire."),
    "zone": ("zone", "The time zone of schedules."),
    "dream_budget": ("tokens", "The most that one dream may use, input and output together."),
    "hot_target": (
        "share or tokens",
        "The part of its input that a dream may leave hot: a share (50%) or tokens (4000).",
    ),
    "nightly": ("on or off", "Whether memories above 4,000 tokens are dreamt at 03:00."),
    "dream_distiller": ("name", "extractive, or llm where the host has a model."),
    "dream_trust": ("0 to 10", "Entries of less trust stay out of dreams."),
    "archive_retention_ms": ("duration", "Time that the archive of a dream is kept; the dream itself stays."),
    "recorded_searches": ("searches", "Number of recent searches of a memory that dreams may replay; 0 to 200."),
    "model_tokens_per_day": ("tokens", "The most that models may use in a day."),
    "model_calls_per_day": ("calls", "The most calls to models in a day."),
    "model_cents_per_day": ("cents", "The most that models may cost in a day."),
    "model_seconds_per_dream": ("seconds", "Longest time that one dream may wait for a model."),
    "model_fallback": ("name", "Fallback when a model fails: extractive, or refuse."),
}
"""Unit and meaning of policies. A policy that is missing here is explained by its docstring."""
GROUPS = {
    "Entries": ("max_entry_bytes", "max_tags", "max_attribute_bytes", "default_ttl_ms", "idempotency_ms"),
    "Quotas": ("max_entries", "max_bytes"),
    "Retention": ("undo_window_ms", "cold_retention_ms", "archive_retention_ms"),
    "Dreams": ("nightly", "hot_target", "dream_budget", "dream_distiller", "dream_trust", "recorded_searches", "zone"),
    "Models": (),
    "Memory stores": (),
    "Other": (),
}
"""Policies by topic; `_NAMED` assigns the others by name."""
_NAMED = (
    ("model_", "Models"),
    ("memory_", "Memory stores"),
    ("max_memor", "Memory stores"),
    ("store_", "Memory stores"),
)
TITLES = {
    "max_entry_bytes": "Longest entry",
    "max_tags": "Tags per entry",
    "max_attribute_bytes": "Attributes per entry",
    "default_ttl_ms": "Default expiry",
    "idempotency_ms": "Retry window",
    "max_entries": "Entries",
    "max_bytes": "Stored text",
    "cold_retention_ms": "Cold storage",
    "archive_retention_ms": "Dream archives",
    "hot_target": "Size after a dream",
    "nightly": "Nightly dreams",
    "dream_trust": "Least trust",
    "zone": "Time zone",
    "model_seconds_per_dream": "Wait for a model",
    "model_fallback": "If a model fails",
    "max_memory_bytes": "Largest file",
    "max_memories_per_store": "Files per store",
    "max_memory_stores": "Stores",
    "memory_version_retention_ms": "Old versions of files",
    "store_secrets": "Secrets in files",
    "workspace_id": "Workspace id",
}
"""Policies whose title is not their name."""
EMPTY = {"default_ttl_ms": "never", "cold_retention_ms": "always", "workspace_id": "from the tenant's name"}
"""Meaning of an empty field."""
MEASURES = ("bytes", "tags", "entries", "files", "stores", "tokens", "searches", "calls", "cents", "seconds")
"""Units shown after the field; the others are part of the value or of the meaning."""
_IMPORTS = 10
UNITS = (("_ms", "duration"), ("_bytes", "bytes"), ("_tokens", "tokens"), ("_seconds", "seconds"))


def show(look: Look) -> Document:
    """Everything that an operator of the tenant decides. Without the right admin, what needs it is left out."""
    host, actor, admin = look.host, look.actor, look.may("admin")
    ready = look.state.health.ready()
    defaults = TenantPolicy().document()
    policy = host.rules.policy(actor).document()
    spent = host.spend.day(actor)
    return {
        "admin": admin,
        "health": ready.document(),
        "jobs": [_job(job) for job in host.jobs.all(actor)] if admin else [],
        "keys": [_key(key) for key in host.keys.all(actor.tenant)] if admin else [],
        "secrets": host.rules.secret_ids(actor) if admin else [],
        "policy": [_policy(name, value, defaults.get(name)) for name, value in policy.items()],
        "groups": list(GROUPS),
        "spent": {"calls": spent.calls, "tokens": spent.tokens},
        "rights": [right.value for right in Right],
        "new_key": None,
        "parts": _parts(look),
        "settings": _settings(look) if admin and is_loopback(look.settings.host) else [],
        "leases": [_lease(lease) for lease in host.leases.current(actor)] if admin else [],
        "backup": _backup(look) if admin else None,
        "imports": _imports(look) if admin else [],
        "database": "PostgreSQL" if look.settings.postgres else "SQLite",
    }


def _job(job: Any) -> dict[str, Any]:
    return {
        "id": job.id,
        "name": job.name,
        "status": job.status,
        "attempts": job.attempts,
        "error": job.error,
        "created_at": to_iso(job.created_at),
        "due_at": to_iso(job.due_at),
    }


def _lease(lease: Lease) -> dict[str, Any]:
    """A lease with its holder in words: machine and process."""
    machine, _, rest = lease.holder.partition("/")
    process = rest.partition("/")[0]
    shown = f"{machine}, process {process}" if process.isdigit() else lease.holder
    return {"name": lease.name, "holder": shown, "until": to_iso(lease.until)}


def _backup(look: Look) -> str | None:
    """Return the time of the last backup."""
    made = last_backup(look.host.parts.store)
    return to_iso(made) if made is not None else None


def _imports(look: Look) -> list[dict[str, Any]]:
    """The last imports, from the log."""
    head = look.host.reader.snapshot(look.actor)
    found = look.host.reader.events(look.actor, before=head + 1, limit=_IMPORTS, types=("memory.imported",))
    return [dict(event.document()) for event in found if "entries" in event.data]


def _key(key: Any) -> dict[str, Any]:
    shown = describe(key)
    for name in ("created_at", "expires_at", "revoked_at"):
        shown[name] = to_iso(value) if isinstance(value := shown[name], int) else None
    return shown


def _policy(name: str, value: Any, default: Any) -> dict[str, Any]:
    unit, meaning = explained(name)
    found = next((group for group, names in GROUPS.items() if name in names), None)
    group = found or next((group for start, group in _NAMED if name.startswith(start)), "Other")
    return {
        "name": name,
        "group": group,
        "value": value,
        "written": written(name, value),
        "title": TITLES.get(name) or name.removesuffix("_ms").replace("_", " ").capitalize(),
        "unit": unit,
        "measure": unit if unit in MEASURES else "",
        "meaning": meaning,
        "choices": list(CHOICES.get(name, ())),
        "empty": EMPTY.get(name, ""),
        "default": default,
        "changed": value != default,
    }


def written(name: str, value: Any) -> str:
    """A policy as its field shows it: durations as `7d`, nothing for none."""
    if value is None:
        return ""
    return short_duration(value) if name.endswith("_ms") else str(value)


def explained(name: str) -> tuple[str, str]:
    """The unit and the meaning of a policy."""
    unit = next((unit for ending, unit in UNITS if name.endswith(ending)), "")
    return POLICY.get(name) or (unit, _docstrings().get(name, ""))


@cache
def _docstrings() -> dict[str, str]:
    """Return the docstring of each field of the policy, from its source."""
    body = ast.parse(inspect.getsource(TenantPolicy)).body[0]
    results: dict[str, str] = {}
    for field, after in pairwise(getattr(body, "body", ())):
        if isinstance(field, ast.AnnAssign) and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            results[ast.unparse(field.target)] = " ".join(str(after.value.value).replace("`", "").split())
    return results


def _parts(look: Look) -> dict[str, Any]:
    """Return the parts of this host that every tenant may know of."""
    parts = look.host.parts
    return {
        "store": parts.store.name,
        "tokenizer": parts.tokens.name if parts.tokens else None,
        "embedder": "built in" if parts.embedder else None,
        "distillers": ["extractive", *parts.distillers],
        "sealed_secrets": parts.cipher is not None,
        "read_only": parts.read_only,
        "worker": look.settings.worker,
    }


def _settings(look: Look) -> list[dict[str, Any]]:
    """Settings of the process with their origin; on loopback only, where the operator of the host looks."""
    path, filed = None, dict[str, Any]()
    with suppress(Invalid):  # it may have been changed since the process read it
        path, filed = read_file(os.environ)
    rows = []
    for item in fields_of(look.settings):
        variable = item.metadata["variable"]
        value, default = getattr(look.settings, item.name), item.default
        given = "environment" if os.environ.get(variable) else ("default" if value == default else "option")
        if given != "environment" and variable in filed and str(filed[variable]) == str(value):
            given = Path(str(path)).name
        rows.append({"variable": variable, "value": str(value), "origin": given, "help": item.metadata["help"]})
    return rows


def make_key(look: Look) -> Document:
    """Make a key of the same tenant, with rights and an authority that the maker has."""
    look.actor.require(Right.ADMIN)
    wanted = look.form_fields("rights")
    if not set(wanted) <= {right.value for right in look.actor.rights}:
        raise Forbidden("A key cannot give rights that it does not have.")
    life = look.form_field("expires")
    expires = look.host.parts.clock.now() + parse_duration(life, pointer="/expires") if life else None
    if expires is not None and expires > LATEST:
        raise Invalid("The time is out of range.", pointer="/expires")
    authority = None if Right.ADMIN.value in wanted and look.actor.authority == 10 else min(4, look.actor.authority)
    made = look.host.keys.create(
        look.actor.tenant, name=look.form_field("name"), rights=wanted, authority=authority, expires_at=expires
    )
    return show(look) | {"new_key": {"id": made.id, "key": made.key}}


def change_key(look: Look) -> See | Document:
    """Rotate or revoke a key of this tenant. Rotating shows a key, so it must not give more than the caller has."""
    look.actor.require(Right.ADMIN)
    key_id, what = look.form_field("key"), look.form_field("change")
    key = next((key for key in look.host.keys.all(look.actor.tenant) if key.id == key_id), None)
    if key is None:
        raise NotFound("This tenant has no key with that id.")
    if what == "rotate":
        if not set(key.rights) <= look.actor.rights or key.authority > look.actor.authority:
            raise Forbidden("A key cannot give rights that it does not have.")
        made = look.host.keys.rotate(key_id, overlap_ms=3_600_000)
        return show(look) | {"new_key": {"id": made.id, "key": made.key}}
    if what != "revoke":
        raise Invalid("This page cannot do that.", pointer="/change")
    look.host.keys.revoke(key_id)
    return See("/operate#keys", f"Key {key_id} revoked.")


def add_secret(look: Look) -> See:
    """Register a secret: it is replaced in everything stored from now on."""
    look.host.rules.register(look.actor, look.form_field("id"), look.form_field("value"))
    return See("/operate#secrets", "Registered. Its value is sealed and never shown.")


def remove_secret(look: Look) -> See:
    """Take a secret out of the registry."""
    look.host.rules.remove(look.actor, look.form_field("id"))
    return See("/operate#secrets", "Removed. What was redacted stays redacted.")


def set_policy(look: Look) -> See:
    """Change the policies whose fields differ from the present values, and from those that the page had shown: what
    another tab changed meanwhile stays.
    """
    now = look.host.rules.policy(look.actor).document()
    changes: dict[str, Any] = {}
    for name, value in now.items():
        sent = look.form_field(name, "\0")
        if sent in ("\0", written(name, value), look.form_field(f"was:{name}", "\0")):
            continue
        changes[name] = _value(name, sent, value)
    if not changes:
        return See("/operate#policy", "Nothing was changed.")
    look.host.rules.set_policy(look.actor, changes)
    return See("/operate#policy", f"Changed: {', '.join(sorted(changes))}.")


def _value(name: str, sent: str, now: Any) -> Any:
    """A field of the policy as typed: durations as `7d` or in milliseconds."""
    if name in ("zone",) or isinstance(now, str):
        return sent
    if sent == "" and (now is None or name in ("default_ttl_ms", "cold_retention_ms")):
        return None
    if sent.isdecimal() and len(sent) < 19:
        return int(sent)
    if name.endswith("_ms"):
        return parse_duration(sent, pointer=f"/{name}")
    raise Invalid(f"{name} is a whole number.", pointer=f"/{name}")


def change_job(look: Look) -> See:
    """Retry or discard a job."""
    job_id, what = look.form_field("job"), look.form_field("change")
    if what == "retry":
        look.host.jobs.retry(look.actor, job_id)
    elif what == "discard":
        look.host.jobs.discard(look.actor, job_id)
    else:
        raise Invalid("This page cannot do that.", pointer="/change")
    return See("/operate#jobs", f"Job: {what} done.")


def take(look: Look) -> See:
    """Import the lines of a bundle."""
    lines = [line.rstrip("\r").encode() + b"\n" for line in look.form_field("bundle").split("\n") if line.strip()]
    if not lines:
        raise Invalid("Paste the lines of a bundle.", pointer="/bundle")
    look.state.limits.entries.take(key_of(look.actor), len(lines))
    done = look.host.bundles.take(look.actor, lines, ref=look.form_field("ref") or None)
    return See("/operate#transfer", f"Imported {done.entries} entries; {done.skipped} were present already.")


def export(look: Look) -> Response:
    """Everything of the tenant as a bundle."""
    named = {"Content-Disposition": f'attachment; filename="{look.actor.tenant}.jsonl"'}
    return line_stream(look.state, look.actor, look.host.bundles.export(look.actor), headers=access.HEADERS | named)


PAGE = Page(
    "operate",
    "/operate",
    "operate.html",
    show,
    {
        "make_key": make_key,
        "change_key": change_key,
        "add_secret": add_secret,
        "remove_secret": remove_secret,
        "set_policy": set_policy,
        "change_job": change_job,
        "take": take,
    },
    heavy=frozenset({"take"}),
)
EXPORT = Page("operate", "/operate/export", "", export)
