"""The provider window: one Responses conversation kept small, as pure functions on raw items.

It is transport state and never memory: nothing here is indexed, searched or returned by a memory read.
"""

from reverie.window.checkpoint import Checkpoint, build_checkpoint
from reverie.window.continuation import diff_continuation, match_form
from reverie.window.errors import WindowRefusal, classify_error
from reverie.window.estimate import default_trigger, estimate
from reverie.window.items import Item
from reverie.window.pairing import safe_boundary
from reverie.window.policy import Base, NegativeCache, WindowPolicy
from reverie.window.record import CorruptWindow, dump, load
from reverie.window.replacement import validate_replacement
from reverie.window.shape import shape_hash
from reverie.window.state import WindowState
from reverie.window.strip import strip_for_compact

__all__ = [
    "Base",
    "Checkpoint",
    "CorruptWindow",
    "Item",
    "NegativeCache",
    "WindowPolicy",
    "WindowRefusal",
    "WindowState",
    "build_checkpoint",
    "classify_error",
    "default_trigger",
    "diff_continuation",
    "dump",
    "estimate",
    "load",
    "match_form",
    "safe_boundary",
    "shape_hash",
    "strip_for_compact",
    "validate_replacement",
]
