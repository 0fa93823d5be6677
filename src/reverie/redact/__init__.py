"""Redaction: text in, text without secrets and counts of what was found out. Pure; nothing is ever logged."""

from typing import TYPE_CHECKING, Any

from reverie.redact.engine import Redaction, Redactor
from reverie.redact.known import KnownSecrets

if TYPE_CHECKING:
    from reverie.redact.patterns import RULES, Rule

__all__ = ["RULES", "KnownSecrets", "Redaction", "Redactor", "Rule"]


def __getattr__(name: str) -> Any:
    """The rule table, imported when first used: it is long, and reading memory needs none of it."""
    if name not in ("RULES", "Rule"):
        raise AttributeError(f"module 'reverie.redact' has no attribute {name!r}")
    from reverie.redact import patterns

    return getattr(patterns, name)
