"""Memory in PostgreSQL: many processes on many machines, one set of promises."""

from reverie.store.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
