"""Loads rules from files: the built-in ones, and an operator's own, which are checked before use."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import msgspec
import re2

from reverie.core.errors import Invalid
from reverie.redact.lazy import lazy
from reverie.redact.markers import CANONICAL
from reverie.redact.markers import compiled as automaton
from reverie.redact.rules import names
from reverie.redact.rules.checks import CHECKS
from reverie.redact.rules.compiled import WrittenRule, compiled
from reverie.redact.rules.rule import LEFT, UUID, Rule, token
from reverie.redact.rules.sample import HOLE, fill

_SHARED: Final = {
    "uuid": UUID,
    "left": LEFT,
    "key": names.KEY_WORD,
    "key-rest": names.KEY_REST,
    "key-hint": names.KEY_HINT,
    "password": names.PASSWORD,
    "password-hint": names.PASSWORD_HINT,
}
_NAME: Final = lazy("⟨([a-z-]+)⟩")
_MOST_BYTES: Final = 1 << 20
_MOST_RULES: Final = 1_000


def built_in() -> tuple[Rule, ...]:
    """Return the built-in rules, in order of precedence."""
    coded: dict[str, Rule] = {}
    modules = dict.fromkeys(entry.code for entry in compiled().rules if entry.code)
    for module in modules:
        coded |= {rule.kind: rule for rule in import_module(f"reverie.redact.rules.{module}").RULES}
    return tuple(coded[entry.kind] if entry.code else made(entry) for entry in compiled().rules)


def own(path: Path) -> tuple[Rule, ...]:
    """Return the rules of an operator's file. Raises `Invalid`, which names the rule and its fault."""
    entries = _entries(path)
    taken = {entry.kind for entry in compiled().rules}
    rules: list[Rule] = []
    for entry in entries:
        if entry.kind in taken:
            raise _wrong(path, entry.kind, "this kind exists already; choose another name")
        if entry.code:
            raise _wrong(path, entry.kind, "only rules that come with Reverie have code; use pattern or token")
        taken.add(entry.kind)
        problem = flaw(entry) if entry.examples else "give at least one example that must be redacted"
        if problem:
            raise _wrong(path, entry.kind, problem)
        rules.append(made(entry))
    return tuple(rules)


def _entries(path: Path) -> list[WrittenRule]:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise Invalid(f"{path}: a file of rules has at most 1 MB")
        document = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise Invalid(
            f"{path}: cannot be read ({error.strerror}); REVERIE_REDACT_RULES names a file of rules"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Invalid(f"{path}: not TOML ({error})") from error
    tables = document.get("rule")
    if set(document) != {"rule"} or not isinstance(tables, list) or len(tables) > _MOST_RULES:
        raise Invalid(f"{path}: expected [[rule]] tables, {_MOST_RULES} at most, and nothing else")
    return [_entry(path, number, table) for number, table in enumerate(tables, 1)]


def _entry(path: Path, number: int, table: Any) -> WrittenRule:
    try:
        return msgspec.convert(table, WrittenRule)
    except msgspec.ValidationError as error:
        kind = table.get("kind") if isinstance(table, dict) else None
        raise _wrong(path, kind if isinstance(kind, str) else f"number {number}", str(error)) from error


def _wrong(path: Path, kind: str, problem: str) -> Invalid:
    return Invalid(f"{path}: rule {kind[:80]!r}: {problem}")


def made(entry: WrittenRule) -> Rule:
    """Build the rule that an entry describes."""
    pattern = token(_expanded(entry.token)) if entry.token else _expanded(entry.pattern)
    return Rule(
        entry.kind,
        pattern,
        trigger=_expanded(entry.trigger),
        check=_check(entry.check),
        asked=" ".join(_names(entry.check)),
        generic=entry.generic,
        apart=entry.apart,
        split=entry.split,
        examples=tuple(entry.examples),
        near_misses=tuple(entry.near_misses),
    )


def _expanded(pattern: str) -> str:
    return _NAME.sub(lambda match: _SHARED[match.group(1)], pattern) if "⟨" in pattern else pattern


def _names(check: str | list[str]) -> list[str]:
    return [check] if isinstance(check, str) and check else list(check)


def _check(check: str | list[str]) -> Callable[[str], bool] | None:
    functions = [CHECKS[name] for name in _names(check)]
    if len(functions) < 2:
        return functions[0] if functions else None
    return lambda text: all(function(text) for function in functions)


def flaw(entry: WrittenRule) -> str:
    """Return the first fault of an entry; empty if it has none."""
    if not CANONICAL.fullmatch(f"[REDACTED:{entry.kind}]".encode()):
        return "a kind has 1 to 64 letters, digits, '.', '_' or '-'"
    if bool(entry.token) == bool(entry.pattern):
        return "give either token or pattern"
    unknown = [name for name in _names(entry.check) if name not in CHECKS]
    if unknown:
        return f"there is no check {unknown[0]!r}; known: {', '.join(CHECKS)}"
    for name in ("token", "pattern", "trigger"):
        problem = _pattern_flaw(getattr(entry, name))
        if problem:
            return f"{name}: {problem}"
    return _example_flaw(entry)


def _pattern_flaw(pattern: str) -> str:
    unknown = [name for name in _NAME.findall(pattern) if name not in _SHARED]
    if unknown:
        return f"⟨{unknown[0]}⟩ is not known; known: {', '.join(_SHARED)}"
    try:
        expression = automaton(_expanded(pattern).encode())
    except re2.error as error:
        return f"not an RE2 pattern ({error})"
    if pattern and expression.search(b""):
        return "matches the empty text"
    return ""


def _example_flaw(entry: WrittenRule) -> str:
    from reverie.redact.engine import Redactor

    alone = Redactor([made(entry)])
    for example in entry.examples:
        found = alone.text(fill(example))
        if entry.kind not in found.findings:
            return f"example {example!r} is not found"
        parts = list(random_parts(example))
        if parts and all(part[:8] in found.text or part[-8:] in found.text for part in parts):
            return f"example {example!r} is not redacted whole"
    for near in entry.near_misses:
        if alone.text(fill(near)).findings:
            return f"near miss {near!r} is redacted"
    return ""


def random_parts(example: str, seed: int = 0) -> Iterable[str]:
    """Yield the secret random parts of an example, eight characters or more each, as `fill` makes them."""
    filled, template = fill(example, seed), example
    while (hole := HOLE.search(template)) is not None:
        start, length = hole.start(), int(hole.group(2))
        if length >= 8 and not hole.group(3):
            yield filled[start : start + length]
        template = template[:start] + filled[start : start + length] + template[hole.end() :]
