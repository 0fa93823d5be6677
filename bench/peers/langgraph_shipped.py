"""LangGraph's SqliteStore as its documentation opens it: with SQLite's own journal, which is durable too."""

from __future__ import annotations

from bench.peers.langgraph import LangGraph, versions
from bench.peers.protocol import serve


class Shipped(LangGraph):
    settings = ()


if __name__ == "__main__":
    serve(Shipped, versions())
