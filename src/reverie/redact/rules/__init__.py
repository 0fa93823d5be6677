"""The rules: what secret-shaped text looks like. Data in two TOML files, code under four nouns.

`assignment`: a name, a separator, a value. `prose`: given in a sentence, in thirty languages. `layout`: tables,
manifests, armour, the following line. `commands`: command lines and their files.
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
    """`RULES`: the rules that come with Reverie, made when first used."""
    if name != "RULES":
        raise AttributeError(f"module 'reverie.redact.rules' has no attribute {name!r}")
    return _rules()
