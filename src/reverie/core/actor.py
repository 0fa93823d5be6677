"""Actor and Right: the caller of an operation, and its rights."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from reverie.core.errors import Forbidden


class Right(StrEnum):
    """A right of a key. No right implies another; keys with `admin` are created with all of them."""

    READ = "read"
    WRITE = "write"
    DREAM = "dream"
    ADMIN = "admin"


ALL_RIGHTS = frozenset(Right)


@dataclass(frozen=True, slots=True)
class Actor:
    """An authenticated caller. The tenant comes from the credential and from nowhere else."""

    tenant: str
    id: str
    rights: frozenset[Right] = ALL_RIGHTS
    authority: int = 10
    scopes: frozenset[str] = frozenset()
    door: str = "library"
    key_id: str | None = None
    run: str | None = None
    """The run that acts; its events name it. Only the host sets this, never a caller."""

    def __hash__(self) -> int:
        return hash((self.tenant, self.id, self.door))  # those that differ in other fields are few

    def require(self, right: Right) -> None:
        """Raise Forbidden unless the caller has `right`."""
        if right not in self.rights:
            raise Forbidden(
                f"This needs the right '{right}'. Make a key that has it: reverie keys create --rights ...",
                details={"right": right.value},
            )
