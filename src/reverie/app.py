"""The composition root: settings become a store, a host, and an ASGI application. Only this file names SQLite."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reverie.host import Host, Parts
from reverie.models.cipher import FileCipher
from reverie.models.static import StaticEmbedder
from reverie.models.tokens import TokenCounter
from reverie.settings import Settings
from reverie.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from fastapi import FastAPI


def build_host(settings: Settings, *, create: bool = True) -> Host:
    """A host over the configured store. `create=False` refuses to make a new database."""
    return Host(
        Parts(
            store=SqliteStore(settings.database, create=create),
            embedder=StaticEmbedder() if settings.embedder == "static" else None,
            tokens=TokenCounter(settings.tokenizer) if settings.tokenizer != "none" else None,
            cipher=FileCipher(settings.key_path) if settings.database != ":memory:" or settings.key_file else None,
            read_only=settings.read_only,
        )
    )


def build_app(settings: Settings, host: Host) -> FastAPI:
    """The HTTP application: every door that speaks HTTP, on one host."""
    from reverie.serve.application import make_application

    return make_application(settings, host)
