"""Rules for secret-shaped text: data in two TOML files, code in four packages.

`assignment`: a name, a separator, a value. `prose`: sentences in thirty languages. `layout`: tables, manifests, armour,
values on a following line. `commands`: command lines and configuration files.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reverie.redact.rules.rule import Rule

    RULES: tuple[Rule, ...]


@functools.cache
def _rules() -> tuple[Rule, ...]:
    from reverie.redact.rules.loader import built_in

    return built_in()


def __getattr__(name: str) -> Any:
    """Build `RULES`, the built-in rules, at first use."""
    if name != "RULES":
        raise AttributeError(f"module 'reverie.redact.rules' has no attribute {name!r}")
    return _rules()
