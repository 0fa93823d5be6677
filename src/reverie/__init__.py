"""Reverie: a memory host for AI agents.

>>> with reverie.open("./memory") as memory:  # a folder, a database or http://HOST:8484 with key=...
...     notes = memory.ref("support-bot")
...     receipt = notes.put("Ana prefers e-mail to phone calls.", subject="ana")
...     print(notes.search("how do we reach Ana?")[0].text)
Ana prefers e-mail to phone calls.

`reverie.aio.open` is the same with coroutines. `Memory`, `Ref` and `Dreams` have an example for each method.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reverie.core.actor import Actor, Right
    from reverie.core.dream import (
        DreamReport,
        Estimate,
        GateFailed,
        ModelFailed,
        NotUndoable,
        SpendExceeded,
        TokenBudgetExceeded,
    )
    from reverie.core.entry import Entry, EntryState, Link, Receipt, Source
    from reverie.core.errors import (
        Busy,
        Conflict,
        Forbidden,
        Held,
        HostUnreachable,
        IdempotencyReused,
        Invalid,
        MissingExtra,
        NotFound,
        QuotaExceeded,
        RateLimited,
        ReadOnly,
        ReverieError,
        StoreBusy,
        StoreCorrupt,
        StoreError,
        StoreFull,
        StoreUnavailable,
        TooLarge,
        Unauthenticated,
        Unprocessable,
        UnsupportedRef,
    )
    from reverie.core.event import Event
    from reverie.core.policy import TenantPolicy
    from reverie.core.query import Filter, Page
    from reverie.dreams.consolidate import Consolidated
    from reverie.dreams.lineage import Diff, Verified, Why
    from reverie.jobs.timetable import Due, Outcome, Schedule
    from reverie.library import Dreams, Memory, Ref, open  # noqa: A004
    from reverie.memory.audit import Verdict
    from reverie.memory.hits import Context, Hit, SearchResult
    from reverie.privacy.forget import Forgotten

__version__ = "0.2.0"

_HOMES = {
    name: home
    for home, names in {
        "core.actor": "Actor Right",
        "core.dream": "DreamReport Estimate GateFailed ModelFailed NotUndoable SpendExceeded TokenBudgetExceeded",
        "core.entry": "Entry EntryState Link Receipt Source",
        "core.errors": "Busy Conflict Forbidden Held HostUnreachable IdempotencyReused Invalid MissingExtra NotFound "
        "QuotaExceeded RateLimited ReadOnly ReverieError StoreBusy StoreCorrupt StoreError StoreFull StoreUnavailable "
        "TooLarge Unauthenticated Unprocessable UnsupportedRef",
        "core.event": "Event",
        "core.policy": "TenantPolicy",
        "core.query": "Filter Page",
        "dreams.consolidate": "Consolidated",
        "dreams.lineage": "Diff Verified Why",
        "jobs.timetable": "Due Outcome Schedule",
        "library": "Dreams Memory Ref open",
        "memory.audit": "Verdict",
        "memory.hits": "Context Hit SearchResult",
        "privacy.forget": "Forgotten",
    }.items()
    for name in names.split()
}
"""Every public name and the module that has it."""

_MODULES = frozenset({"aio", "akashik", "anthropic", "responses"})
"""Public modules, so that `import reverie` is enough for `reverie.aio.open(...)`."""

__all__ = [
    "Actor",
    "Busy",
    "Conflict",
    "Consolidated",
    "Context",
    "Diff",
    "DreamReport",
    "Dreams",
    "Due",
    "Entry",
    "EntryState",
    "Estimate",
    "Event",
    "Filter",
    "Forbidden",
    "Forgotten",
    "GateFailed",
    "Held",
    "Hit",
    "HostUnreachable",
    "IdempotencyReused",
    "Invalid",
    "Link",
    "Memory",
    "MissingExtra",
    "ModelFailed",
    "NotFound",
    "NotUndoable",
    "Outcome",
    "Page",
    "QuotaExceeded",
    "RateLimited",
    "ReadOnly",
    "Receipt",
    "Ref",
    "ReverieError",
    "Right",
    "Schedule",
    "SearchResult",
    "Source",
    "SpendExceeded",
    "StoreBusy",
    "StoreCorrupt",
    "StoreError",
    "StoreFull",
    "StoreUnavailable",
    "TenantPolicy",
    "TokenBudgetExceeded",
    "TooLarge",
    "Unauthenticated",
    "Unprocessable",
    "UnsupportedRef",
    "Verdict",
    "Verified",
    "Why",
    "__version__",
    "open",
]


def __getattr__(name: str) -> Any:
    """The public names, imported when first used: `reverie --help` need not load a database."""
    if name in _MODULES:
        return import_module(f"reverie.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'reverie' has no attribute {name!r}")
    value = getattr(import_module(f"reverie.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
