"""Passwords in addresses, connection files and commands."""

# ruff: noqa: E501 (a pattern is easier to read in one piece)

from __future__ import annotations

import re

from reverie.redact.entropy import is_wordy
from reverie.redact.rules.checks import is_real, is_real_literal
from reverie.redact.rules.rule import Rule, Span


def _pgpass(data: bytes, match_start: int, start: int, end: int) -> Span | None:
    """Find the password of `host:port:database:user:password`, not the message of `file:line:column`."""
    text = data[start:end].decode("utf-8", "replace")
    host, _, database = data[match_start:start].decode("utf-8", "replace").split(":")[:3]
    if database.isdigit() or re.search(r"\.(?:[jt]sx?|py|go|rs|rb|java|kt|c|h|cc|cpp|cs|php|sh)$", host):
        return None
    likely = (any(c.isdigit() for c in text) or not text.isalpha()) and not text.isdigit()
    return (start, end) if likely and is_real(text) else None


def _is_word(text: str) -> bool:
    return text.isalpha() and text.islower() and (len(text) < 9 or is_wordy(text))


RULES = (
    Rule(
        "pgpass",
        r"(?m:^|[\s\"'`])[^\s:#/\"'`]{1,100}:(?:[0-9]{2,5}|\*):[^\s:/\"'`,{}]{1,60}:[^\s:/\"'`,{}]{1,60}:([^\s:\"'`]{5,128})(?m:[\s\"'`]|$)",
        trigger=r":(?:[0-9]{2,5}|\*):[^\s:]+:[^\s:/]+:[^\s:]{5}",
        refine=_pgpass,
        examples=("db.internal:5432:app:svc:⟨w14⟩", "*:*:*:postgres:⟨w12⟩", 'echo "db1:5432:*:svc:⟨w14⟩" >> ~/.pgpass'),
        near_misses=("main.py:120:5:error:missing", "12:30:45:10:11", "a.py:12:34:error:unused1"),
    ),
    Rule(
        "netrc-password",
        r"\b(?:login|machine|account|user|username)[ \t]{1,4}[^\s]{1,100}[ \t]{1,4}(?:login[ \t]{1,4}[^\s]{1,100}[ \t]{1,4})?(?:password|passwd|pass)[ \t]{1,4}([^\s\"',;]{3,200})",
        trigger=r"\bpass(?:word|wd)[ \t]+[^\s\"',;]{3}|\b(?:login|machine|account|user|username)[ \t]+[^\s]+[ \t]+pass[ \t]+[^\s\"',;]",
        check=lambda text: is_real_literal(text) and not _is_word(text.strip(".,;:!?)")),
        examples=(
            "machine api.example.org login bob password ⟨w10⟩",
            "rclone config create box webdav user bob pass ⟨w14⟩7",
        ),
        near_misses=("login form password field", "every user must pass authentication", "the user did not pass them."),
    ),
)
