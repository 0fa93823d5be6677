"""A database of its own for every measurement, on the server that BENCH_POSTGRES names."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg


def make_database(folder: Path) -> str:
    """A new, empty database with pgvector, owned by the plain role `reverie`; its URL for that role."""
    admin = os.environ["BENCH_POSTGRES"]
    name = "bench_" + hashlib.sha256(str(folder).encode()).hexdigest()[:16]
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} OWNER reverie")
    parts = urlsplit(admin)
    with psycopg.connect(urlunsplit(parts._replace(path=f"/{name}")), autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"reverie@{host}", path=f"/{name}"))
