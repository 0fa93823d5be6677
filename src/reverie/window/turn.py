"""One turn of a window: the planned request, the effect of its answer, and the drop of a window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from reverie.window.continuation import ExpectedItem
from reverie.window.items import Item, Json

InputIs = Literal["history", "items"]


@dataclass(slots=True)
class Pending:
    """A request that was planned and is not answered yet."""

    increment: list[Item]
    """Items by which the window grows when the answer comes."""
    repeats: list[ExpectedItem]
    """Items of it that the caller is expected to repeat."""
    body: Json
    shape: Json
    shape_hash: str
    store: bool
    chained: bool
    history: bool
    diagnostics: dict[str, Any]
    changed_keys: list[str] = field(default_factory=list)
    known: list[int] = field(default_factory=list)
    """Positions, in the scope's sequence, of items that a dropped window had already."""
    begins: bool = False
    """Whether this is the whole conversation, not a continuation."""
    shortened: int = 0
    """Number of the caller's items that are not sent, and replaced by a note."""
    noted: int = 0
    """Number of items at the start of `increment` that are not new: that note, and items kept before."""
    background: bool = False
    """Whether the answer is fetched later."""

    def document(self) -> Json:
        """The request as plain JSON, to be stored until the answer is fetched."""
        plain = {name: getattr(self, name) for name in _KEPT}
        plain["increment"] = [item.text for item in self.increment]
        plain["repeats"] = [[match.hash, match.type, match.id, match.need] for match in self.repeats]
        return plain

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Pending:
        """Restore a request, without its body, which was sent already."""
        return cls(
            increment=[Item(text) for text in document["increment"]],
            repeats=[ExpectedItem(*row) for row in document["repeats"]],
            body={},
            diagnostics={},
            **{name: document[name] for name in _KEPT if name in document},
        )


_KEPT = (
    "shape",
    "shape_hash",
    "store",
    "chained",
    "history",
    "changed_keys",
    "known",
    "begins",
    "shortened",
    "noted",
    "background",
)


@dataclass(frozen=True, slots=True)
class Reset:
    """The window was dropped, with the reason."""

    reason: str
    generation_before: int
    generation_after: int
    compaction_items_dropped: int
    covered_first: int
    covered_last: int


@dataclass(slots=True)
class Turn:
    """The effect of an answer on the window."""

    completed: bool
    stored: bool
    """Whether items were appended."""
    appended: list[Item] = field(default_factory=list)
    first_position: int = 0
    known: int = 0
    """Number of appended items that were kept before, in a window that was dropped."""
    follows: int | None = None
    """The position after which this continues; -1: it starts over. None: right after what was there."""
    server_items: int = 0
    answers: str | None = None
    """The id of the response, when its question was in the background."""
    checkpoint_ref: str | None = None
    """The checkpoint of the window that was dropped for this turn, once it is kept."""
    usage: Mapping[str, Any] | None = None
    cache: dict[str, Any] | None = None
