"""Texts made to be expensive for the redactor: `python -m bench.redact --hostile`."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator

from bench.redact_corpus import Random
from reverie.redact import RULES, Redactor
from reverie.redact.rules.sample import fill

_REPEATED = (
    "api_key: ", "the password is ", "password=", "token ", "secret: 'x' ", "https://u:p@h/ ", '"password": ', '\\"api_key\\": ',
    "[BYOK:", "<REDACTED:x>", "\u200bpassword ", "export X_TOKEN=", "a_b-", "'\"`", "((((", "%5b", "&lt;", "\\x41", "\\u0041",
    "token\n", "word1\n  word2", "\u0440a", "00:11:", "x" * 30 + " ",
)  # fmt: skip
_TRIGGERS = (
    "api_key: ",
    "password is ",
    "token ",
    "secret=",
    "login ",
    "Bearer ",
    "the key ",
    "export A_KEY=",
    '"token":',
)


def hostile(size: int, *, every_rule: bool = False) -> Iterator[tuple[str, str]]:
    """(name, text of about `size` characters): repetitions, mixtures of triggers, encoded words."""
    r = Random(17)

    def many(unit: str) -> str:
        return (unit * (size // len(unit) + 1))[:size]

    def word(alphabet: str, length: int) -> str:
        return "".join(r.choices(alphabet, k=length))

    for unit in _REPEATED:
        yield f"repeated {unit[:20]!r}", many(unit)
    if every_rule:
        for rule in RULES:
            for template in (*rule.examples, *rule.near_misses):
                for end in (" ", "\n"):
                    yield f"{rule.kind} {template[:24]!r}", many(fill(template) + end)
    lower, mixed = "abcdefghijklmnopqrstuvwxyz", "abcdefghijABCDEFXYZ0123456789"
    for end in (" ", "\n"):
        for alphabet, length in ((lower, 7), (mixed, 6), (mixed, 24)):
            pairs = (r.choice(_TRIGGERS) + word(alphabet, length) + end for _ in range(size // (8 + length)))
            yield f"triggers and words of {length} by {end!r}", "".join(pairs)[:size]
        encoded = (base64.b64encode(r.randbytes(30)).decode() + end for _ in range(size // 41))
        yield f"base64 by {end!r}", "".join(encoded)
        yield f"hex by {end!r}", "".join(r.randbytes(16).hex() + end for _ in range(size // 33))
    yield "one run of base64", base64.b64encode(r.randbytes(size * 3 // 4)).decode()
    yield "noise", word("".join(map(chr, range(32, 127))), size)


def prices(redactor: Redactor, size: int = 100_000, *, every_rule: bool = False) -> dict[str, float]:
    """Seconds of processor time per megabyte for each hostile text, dearest first. Patterns are compiled at their first
    use, once in a process; a look at the beginning of each text sees to that."""
    found: dict[str, float] = {}
    for name, text in hostile(size, every_rule=every_rule):
        redactor.text(text[:20_000])
        started = time.process_time()
        redactor.text(text)
        found[name] = round((time.process_time() - started) / (len(text.encode()) / 1e6), 2)
    return dict(sorted(found.items(), key=lambda item: -item[1]))
