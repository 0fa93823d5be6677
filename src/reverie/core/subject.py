"""Subjects: whom an entry is about, and how two spellings of one subject are recognised."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from reverie.core.event import keyed_hash

SUBJECT_TAG = "subject:"
"""Prefix of a tag that names a subject. An entry has one field `subject` and any number of such tags."""
MARKS = ("~", "compacted-from:", "archive:", SUBJECT_TAG)
"""Prefixes of tags that programs and dreams put on entries: names and checksums without meaning in words."""
KEY_BYTES = 16
"""Length of an index key."""
_APART = re.compile(r"[\W_]+")


def fold(text: str) -> str:
    """Text without case, surrounding space and differences of Unicode composition: for comparing, never for storing."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", text).casefold()).strip()


def subject_hash(log_key: bytes, subject: str) -> str:
    """Keyed hash of a folded subject: the only form in which the log, the ledger and reports know it."""
    return keyed_hash(log_key, fold(subject))


def named_subjects(subject: str | None, tags: Sequence[str]) -> list[str]:
    """Subjects of an entry: its field, then its `subject:` tags."""
    tagged = [tag.removeprefix(SUBJECT_TAG) for tag in tags if tag.startswith(SUBJECT_TAG)]
    return [subject, *tagged] if subject else tagged


def index_key(hashed: str) -> bytes:
    """Index key of a subject hash."""
    return bytes.fromhex(hashed)[:KEY_BYTES]


def index_keys(log_key: bytes, subject: str | None, tags: Sequence[str]) -> list[bytes]:
    """Index keys of an entry, each once."""
    named = named_subjects(subject, tags)
    return sorted({index_key(subject_hash(log_key, name)) for name in named}) if named else []


def unnamed(subject: str | None, text: str) -> str | None:
    """The subject, unless the text names it: `club-otter` is named by "Club Otter's boats"."""
    if not subject:
        return None
    name, words = (_APART.sub(" ", fold(given)).strip() for given in (subject, text))
    named = f" {name} " in f" {words} " or (not name.isascii() and name in words)  # not every script parts words
    return None if named else subject


def labelled(speaker: str | None, subject: str | None, text: str) -> str | None:
    """Return the speaker, and the subject where the text does not name it."""
    about = unnamed(subject, text)
    return f"{speaker} on {about}" if speaker and about else speaker or about
