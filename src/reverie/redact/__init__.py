"""Redaction: text in, text without secrets and counts of what was found out. Pure; nothing is ever logged."""

from functools import cache
from typing import TYPE_CHECKING, Any

from reverie.redact.engine import Redaction, Redactor
from reverie.redact.known import KnownSecrets

if TYPE_CHECKING:
    from reverie.redact.rules import RULES

__all__ = ["RULES", "KnownSecrets", "Redaction", "Redactor", "load_redactor"]


@cache
def load_redactor() -> Redactor:
    """One with the built-in rules for all of a process: it never changes, and its automata grow to 150 MB."""
    return Redactor()


def __getattr__(name: str) -> Any:
    """The rule table, made when first used: it is long, and reading memory needs none of it."""
    if name != "RULES":
        raise AttributeError(f"module 'reverie.redact' has no attribute {name!r}")
    from reverie.redact import rules

    return rules.RULES
