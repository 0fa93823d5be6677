"""Redaction: text in; text without secrets and the number of findings out. Pure; nothing is ever logged."""

from functools import cache
from typing import TYPE_CHECKING, Any

from reverie.redact.engine import Redaction, Redactor
from reverie.redact.known import KnownSecrets

if TYPE_CHECKING:
    from reverie.redact.rules import RULES

__all__ = ["RULES", "KnownSecrets", "Redaction", "Redactor", "load_redactor"]


@cache
def load_redactor() -> Redactor:
    """Return the process's redactor with the built-in rules. It never changes, and its automata grow to 150 MB."""
    return Redactor()


def __getattr__(name: str) -> Any:
    """Build `RULES` at first use: the table is long, and reading memory does not need it."""
    if name != "RULES":
        raise AttributeError(f"module 'reverie.redact' has no attribute {name!r}")
    from reverie.redact import rules

    return rules.RULES
