"""Reverie: a memory host for AI agents."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

_HOMES = {
    "Actor": "core.actor",
    "Right": "core.actor",
    "Entry": "core.entry",
    "EntryState": "core.entry",
    "Link": "core.entry",
    "Receipt": "core.entry",
    "Source": "core.entry",
    "ReverieError": "core.errors",
    "Filter": "core.query",
    "Page": "core.query",
    "Memory": "library",
    "Ref": "library",
    "open": "library",
}


def __getattr__(name: str) -> Any:
    """The public names, imported when first used: `reverie --help` need not load a database."""
    if name not in _HOMES:
        raise AttributeError(f"module 'reverie' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"reverie.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
