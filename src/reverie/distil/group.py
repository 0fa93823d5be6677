"""Grouping: the entries that become one text together. Pure and deterministic: the same entries, the same groups.

A group never crosses a border. Within one, entries are grouped by task, then by kind, then by meaning: in order of age,
each joins the first cluster whose centroid is near enough (cosine of at least 0.6), or starts one.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MOST = 25
"""Most entries of one group."""
MOST_TOKENS = 8000
"""Most tokens of the entries of one group; a single entry may have more."""


@dataclass(frozen=True, slots=True)
class Member:
    """An entry as grouping sees it."""

    id: str
    epoch: int
    border: Hashable
    """Only entries with the same border may share a group."""
    task: str | None
    kind: str
    tokens: int
    vector: bytes | None = None
    """int8; None if the meaning is unknown, then the kind alone decides."""


class _Cluster:
    def __init__(self) -> None:
        self.members: list[Member] = []
        self.middle: NDArray[np.int64] | None = None

    def near(self, vector: NDArray[np.int64] | None) -> bool:
        """Whether the cosine with the centroid is at least 0.6, in integers: no machine rounds them differently."""
        if vector is None or self.middle is None:
            return vector is None and self.middle is None
        if len(vector) != len(self.middle):
            return False
        dot = int(vector @ self.middle)
        return dot > 0 and 25 * dot * dot >= 9 * int(vector @ vector) * int(self.middle @ self.middle)

    def add(self, member: Member, vector: NDArray[np.int64] | None) -> None:
        self.members.append(member)
        if vector is not None:
            self.middle = vector.copy() if self.middle is None else self.middle + vector


def group(members: Sequence[Member], *, most: int = MOST, tokens: int = MOST_TOKENS) -> list[list[str]]:
    """Return the ids of each group, oldest first. Every member is in exactly one group."""
    ordered = sorted(members, key=lambda member: (member.epoch, member.id))
    shelves: dict[tuple[Hashable, ...], list[_Cluster]] = {}
    for member in ordered:
        clusters = shelves.setdefault((member.border, member.task, member.kind), [])
        vector = None if member.vector is None else np.frombuffer(member.vector, dtype=np.int8).astype(np.int64)
        home = next((cluster for cluster in clusters if cluster.near(vector)), None)
        if home is None:
            home = _Cluster()
            clusters.append(home)
        home.add(member, vector)
    return [
        part
        for clusters in shelves.values()
        for cluster in clusters
        for part in _parts(cluster.members, most=most, tokens=tokens)
    ]


def _parts(members: Sequence[Member], *, most: int, tokens: int) -> list[list[str]]:
    """Divide members into slices of about equal length, none above the limits."""
    wanted = -(-len(members) // most)
    length = -(-len(members) // wanted)
    parts: list[list[str]] = []
    part: list[str] = []
    used = 0
    for member in members:
        if part and (len(part) >= length or used + member.tokens > tokens):
            parts.append(part)
            part, used = [], 0
        part.append(member.id)
        used += member.tokens
    parts.append(part)
    return parts
