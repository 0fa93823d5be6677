"""Compile the redactor's rules: `python tools/compile_rules.py [--check]`.

Reads `formats.toml` and `languages.toml`, proves every rule on its examples and near misses, and writes
`compiled.json`, which is what a process reads. With `--check` nothing is written; it fails when the file is not what
would be written.
"""

from __future__ import annotations

import sys
import tomllib

import msgspec

from reverie.redact.rules.compiled import COMPILED, FOLDER, Compiled, Entry, Language


def main() -> int:
    formats, languages = (
        tomllib.loads((FOLDER / name).read_text("utf-8")) for name in ("formats.toml", "languages.toml")
    )
    rules = msgspec.convert(formats["rule"], list[Entry])
    compiled = Compiled(rules, msgspec.convert(languages, dict[str, Language]))
    made = msgspec.json.format(msgspec.json.encode(compiled), indent=1) + b"\n"
    if not COMPILED.exists() or COMPILED.read_bytes() != made:
        if "--check" in sys.argv[1:]:
            print(f"{COMPILED.name} is out of date: run make docs", file=sys.stderr)
            return 1
        COMPILED.write_bytes(made)
    return _prove(rules)


def _prove(rules: list[Entry]) -> int:
    from reverie.redact.rules.loader import flaw

    kinds = [rule.kind for rule in rules]
    flaws = {kind: "is there twice" for kind in kinds if kinds.count(kind) > 1}
    flaws |= {rule.kind: problem for rule in rules if not rule.code and (problem := flaw(rule))}
    for kind, problem in flaws.items():
        print(f"formats.toml: rule {kind!r}: {problem}", file=sys.stderr)
    return 1 if flaws else 0


if __name__ == "__main__":
    sys.exit(main())
