"""Subjects: whom an entry is about, and how two spellings of one subject are recognised."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from itertools import chain

from reverie.core.event import keyed_hash

SUBJECT_TAG = "subject:"
"""Prefix of a tag that names a subject. An entry has one field `subject` and any number of such tags."""
MARKS = ("~", "compacted-from:", "archive:", SUBJECT_TAG)
"""Prefixes of tags that programs and dreams put on entries: names and checksums without meaning in words."""
KEY_BYTES = 16
"""Length of an index key."""
_APART = re.compile(r"[\W_]+")
INVISIBLE = frozenset(
    chain(
        (0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFEFF, 0xFFA0),
        range(0x180B, 0x1810),
        range(0x200B, 0x2010),
        range(0x202A, 0x202F),
        range(0x2060, 0x2070),
        range(0xFE00, 0xFE10),
        range(0xFFF0, 0xFFFC),
        range(0xE0000, 0xE0200),
    )
)
"""Characters a reader does not see: soft hyphen, joiners, direction marks, fillers, variation selectors, tags."""
_UNSEEN = dict.fromkeys(INVISIBLE)


def fold(text: str) -> str:
    """Text without case, surrounding space, invisible characters and differences of Unicode form: for comparing,
    never for storing. Text of invisible characters alone keeps them.
    """
    if text.isascii():
        return text.lower().strip()
    wide = unicodedata.normalize("NFKD", text).casefold()
    plain = unicodedata.normalize("NFKC", wide).translate(_UNSEEN).casefold()
    return unicodedata.normalize("NFKC", plain).strip() or _compose(text)


def forms(text: str) -> tuple[str, ...]:
    """The folded text, then the form that older releases compared, where it differs."""
    folded = fold(text)
    return (folded,) if text.isascii() else tuple(dict.fromkeys((folded, _compose(text))))


def _compose(text: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", text).casefold()).strip()


def subject_hash(log_key: bytes, subject: str) -> str:
    """Keyed hash of a folded subject: the only form in which the log, the ledger and reports know it."""
    return keyed_hash(log_key, fold(subject))


def subject_hashes(log_key: bytes, subject: str) -> tuple[str, ...]:
    """Every hash under which a subject is found: `subject_hash`, and that of older releases where it differs."""
    return tuple([keyed_hash(log_key, form) for form in forms(subject)])


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
    return sorted({index_key(hashed) for name in named for hashed in subject_hashes(log_key, name)})


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
