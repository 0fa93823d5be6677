"""Compile the redactor's rules: `python tools/compile_rules.py [--check]`.

Reads `formats.toml` and `languages.toml`, proves every rule on its examples and near misses, and writes
`compiled.json`, which is what a process reads, and `required.json`, the strings that each rule's trigger needs. With
`--check` nothing is written; it fails when a file is not what would be written.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import msgspec

from reverie.redact.rules.compiled import COMPILED, FOLDER, Compiled, Language, WrittenRule
from reverie.redact.rules.required import STORED, key, required


def main() -> int:
    formats, languages = (
        tomllib.loads((FOLDER / name).read_text("utf-8")) for name in ("formats.toml", "languages.toml")
    )
    rules = msgspec.convert(formats["rule"], list[WrittenRule])
    compiled = Compiled(rules, msgspec.convert(languages, dict[str, Language]))
    made = msgspec.json.format(msgspec.json.encode(compiled), indent=1) + b"\n"
    return _write(COMPILED, made) or _prove(rules) or _write(STORED, _required())


def _write(file: Path, made: bytes) -> int:
    if file.exists() and file.read_bytes() == made:
        return 0
    if "--check" in sys.argv[1:]:
        print(f"{file.name} is out of date: run make docs", file=sys.stderr)
        return 1
    file.write_bytes(made)
    return 0


def _required() -> bytes:
    from reverie.redact import Redactor

    strings = {key(trigger): sorted(s.decode("latin-1") for s in required(trigger)) for trigger in Redactor().triggers}
    return msgspec.json.format(msgspec.json.encode(dict(sorted(strings.items()))), indent=1) + b"\n"


def _prove(rules: list[WrittenRule]) -> int:
    from reverie.redact.rules.loader import flaw

    kinds = [rule.kind for rule in rules]
    flaws = {kind: "is there twice" for kind in kinds if kinds.count(kind) > 1}
    flaws |= {rule.kind: problem for rule in rules if not rule.code and (problem := flaw(rule))}
    for kind, problem in flaws.items():
        print(f"formats.toml: rule {kind!r}: {problem}", file=sys.stderr)
    return 1 if flaws else 0


if __name__ == "__main__":
    sys.exit(main())
