"""Loads SQL from .sql files, where each query has a name and a purpose above it.

-- name: head
-- The tip of a tenant's log.
SELECT ...;
"""

from __future__ import annotations

import hashlib
import re
from importlib.resources import files

_NAME = re.compile(r"^-- name: (\w+)\s*$", re.M)
_MIGRATION = re.compile(r"(\d{4})_(?:(pre|post)_)?\w+\.sql")


def load_queries(package: str) -> dict[str, str]:
    """Every named query of `package`'s queries.sql."""
    text = files(package).joinpath("queries.sql").read_text("utf-8")
    parts = _NAME.split(text)
    return {name: body.strip().rstrip(";") for name, body in zip(parts[1::2], parts[2::2], strict=True)}


def load_migrations(package: str) -> list[tuple[int, str, str]]:
    """(number, sql, checksum) of every migration of `package`, in order, without gaps."""
    found = []
    for item in files(package).joinpath("migrations").iterdir():
        named = _MIGRATION.fullmatch(item.name)
        if named:
            sql = item.read_text("utf-8")
            found.append((int(named[1]), sql, hashlib.sha256(sql.encode()).hexdigest()))
    found.sort()
    if [number for number, _, _ in found] != list(range(1, len(found) + 1)):
        raise RuntimeError(f"the migrations of {package} are not numbered 1, 2, 3 ...")
    return found


def migration_phases(package: str) -> dict[int, str]:
    """The phase of every migration by number: `pre`, `post`, or empty when the file name has none."""
    names = (_MIGRATION.fullmatch(item.name) for item in files(package).joinpath("migrations").iterdir())
    return {int(named[1]): named[2] or "" for named in names if named}


def session_name(package: str) -> str:
    """The name of this process's connections: it holds the schema version, by which others recognise the release."""
    return f"reverie/{len(migration_phases(package))}"
