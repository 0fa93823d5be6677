"""Reverie on PostgreSQL: redaction, log, words and vectors, through the library."""

from __future__ import annotations

import platform
from importlib.metadata import version
from pathlib import Path

import reverie
from bench.peers.postgres_database import make_database
from bench.peers.protocol import serve
from bench.peers.reverie import Reverie


class ReveriePostgres(Reverie):
    def __init__(self, folder: Path) -> None:
        self._memory = reverie.open(make_database(folder))
        self._notes = self._memory.ref("notes")


if __name__ == "__main__":
    serve(ReveriePostgres, {"python": platform.python_version(), "psycopg": version("psycopg")})
