"""Redaction: text in, text without secrets and counts of what was found out. Pure; nothing is ever logged."""

from reverie.redact.engine import Redaction, Redactor
from reverie.redact.known import KnownSecrets
from reverie.redact.patterns import RULES, Rule

__all__ = ["RULES", "KnownSecrets", "Redaction", "Redactor", "Rule"]
