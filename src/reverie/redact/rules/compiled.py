"""The rules and words as data, read from `compiled.json`, which `tools/compile_rules.py` makes of the two TOML files.

TOML is for people; reading it takes twenty milliseconds, JSON less than one.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Final

import msgspec

FOLDER: Final = Path(__file__).parent
COMPILED: Final = FOLDER / "compiled.json"


class WrittenRule(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One rule, as written in a rules file."""

    kind: str
    token: str = ""
    pattern: str = ""
    trigger: str = ""
    check: str | list[str] = ""
    generic: bool = False
    apart: bool = False
    split: bool = False
    code: str = ""
    examples: list[str] = []
    near_misses: list[str] = []


class Language(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The words of one language."""

    name: list[str] = []
    password: list[str] = []
    key: list[str] = []
    pin: list[str] = []
    joins: list[str] = msgspec.field(name="is", default_factory=list)
    to: list[str] = []


class Compiled(msgspec.Struct, frozen=True):
    """Both files as one."""

    rules: list[WrittenRule]
    languages: dict[str, Language]

    def words(self, kind: str) -> list[str]:
        """Return the words of one kind in every language, each once."""
        return list(dict.fromkeys(word for language in self.languages.values() for word in getattr(language, kind)))


@functools.cache
def compiled() -> Compiled:
    """Return the built-in rules and words."""
    return msgspec.json.decode(COMPILED.read_bytes(), type=Compiled)


def any_of(kind: str) -> str:
    """Return a pattern for any word of one kind."""
    return f"(?i:{'|'.join(compiled().words(kind))})"
