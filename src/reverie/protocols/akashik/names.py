"""Names that hold a secret: replaced like any other text, but kept distinct.

Two sessions whose ids both look like tokens would otherwise become one, and see each other. So a name that had to be
redacted gets the first digits of its hash under the tenant's own key: the same name always gives the same result, and
the name cannot be guessed from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reverie.core.event import keyed_hash
from reverie.redact import KnownSecrets, Redactor
from reverie.store.contract import ReadTx

NAMES = frozenset(
    {
        "id",
        "agent_id",
        "session_id",
        "task_id",
        "active_task_id",
        "assignee",
        "to_agent",
        "handoff_id",
        "target_id",
        "conflict_id",
        "winner_id",
        "result_unit_id",
        "members",
        "depends_on",
        "unit_ids",
        "retracts",
        "involving_agents",
    }
)
"""Members of payloads that name something, or list names."""


def named(tx: ReadTx, sent: str, clean: str) -> str:
    """The name to use for `sent`, of which `clean` is the redacted text."""
    return clean if clean == sent else f"{clean}-{keyed_hash(tx.log_key(), sent)[:12]}"


def name_of(tx: ReadTx, redactor: Redactor, known: KnownSecrets, sent: str) -> str:
    """The name that `sent` has in the Field."""
    return named(tx, sent, redactor.text(sent, known).text)


def with_names(tx: ReadTx, sent: Any, clean: Any, member: str | None = None) -> Any:
    """Keep the names in `clean` distinct, by the names that were sent."""
    if isinstance(sent, str) and isinstance(clean, str):
        return named(tx, sent, clean) if member in NAMES else clean
    if isinstance(sent, list) and isinstance(clean, list):
        return [with_names(tx, before, after, member) for before, after in zip(sent, clean, strict=True)]
    if isinstance(sent, Mapping) and isinstance(clean, Mapping):
        return {
            name: with_names(tx, sent[name], value, name) if name in sent else value for name, value in clean.items()
        }
    return clean
