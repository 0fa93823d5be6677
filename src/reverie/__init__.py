"""Reverie: a memory host for AI agents."""

from reverie.core.actor import Actor, Right
from reverie.core.entry import Entry, EntryState, Link, Receipt, Source
from reverie.core.errors import ReverieError
from reverie.core.query import Filter, Page
from reverie.library import Memory, Ref, open  # noqa: A004

__version__ = "0.1.0"

__all__ = [
    "Actor",
    "Entry",
    "EntryState",
    "Filter",
    "Link",
    "Memory",
    "Page",
    "Receipt",
    "Ref",
    "ReverieError",
    "Right",
    "Source",
    "__version__",
    "open",
]
