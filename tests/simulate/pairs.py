"""Which use cases meet in which runs."""

from __future__ import annotations

from collections.abc import Iterator

from tests.simulate.actors import NAMES

AIMED = (
    ("forget@0", "forget@0"),
    ("forget@0", "delete@1"),
    ("delete@0", "delete@0"),
    ("delete@1", "undo"),
    ("delete@1", "restore@1"),
    ("delete@1", "restore@2"),
    ("undo", "restore@2"),
    ("put@0", "forget@0"),
    ("import", "forget@0"),
    ("turn", "forget@0"),
    ("RECORD", "forget@0"),
    ("MERGE", "forget@0"),
    ("MERGE@1", "forget@0"),
    ("COMPACT", "forget@0"),
    ("file", "forget@0"),
    ("move", "forget@0"),
    ("mem0", "forget@0"),
    ("mark", "forget@0"),
    ("ask", "forget@0"),
    ("filedream", "forget@0"),
    ("filedream@1", "forget@0"),
    ("filedream@2", "forget@0"),
    ("replace", "forget@0"),
    ("unimport", "forget@0"),
)
"""Pairs that aim at the same thing where the first and second slot of a pair do not."""


DOORS = frozenset({"file", "move", "mem0", "mark", "ask", "filedream", "replace", "unimport"})
"""Uses of protocols and importers that are built on puts and changes, which meet everything already."""
_MEET = frozenset({"forget", "secret", "scan", "sweep", "dream"})


def all_pairs(*, soak: bool = False) -> Iterator[tuple[str, str]]:
    """Every use case with every use case, itself among them; those of `DOORS` with themselves and `_MEET`, and with all
    of them in a soak."""
    for at, one in enumerate(NAMES):
        for other in NAMES[at:]:
            if soak or one == other or DOORS.isdisjoint((one, other)) or not _MEET.isdisjoint((one, other)):
                yield one, other
    yield from AIMED
