"""Second factors, wallets and keys written as codes, groups or numbers."""

# ruff: noqa: E501 (a pattern is easier to read in one piece)

from __future__ import annotations

from collections.abc import Iterator

from reverie.redact.markers import Lazy
from reverie.redact.rules.rule import Rule, Span

_CODES = r"\b(?:backup|recovery|scratch|emergency|2fa|mfa|one-time|single-use|rescue)[ -](?:2fa |mfa |login |access )?codes?\b"
_CODES_WORD = Lazy(rf"(?i){_CODES}".encode())
# What may stand between the words and the first code: a remark, an owner, a line of its own.
_ABOUT = Lazy(rb"[^\n:]{0,80}?(?::|->|=>|\xe2\x86\x92|\b(?:read|are)\b|\n)(?:[ \t]*[=~*_#-]{3,40}[ \t]*\r?\n)?")
_CODE = Lazy(
    rb"(?:[\s,;|:=*()\[\]\"'`.>-]|\b(?:is|are|was|and|und)\b|\b[0-9]{1,2}[.)]|\\n)*"
    rb"(?:\b|\\n)([A-Za-z0-9]{3,8}(?:-[A-Za-z0-9]{3,8}){1,5}|[0-9]{4} [0-9]{4}|[0-9]{6,10}|[a-z0-9]{8,16}|[A-Z0-9]{8,16})\b"
)
_DATE = Lazy(rb"(?:19|20)[0-9]{2}-[0-9]{2}-[0-9]{2}")
_MOST_CODES = 40


def _codes(data: bytes) -> Iterator[Span]:
    """Each code of a list behind the words `backup codes`, on the same line or below."""
    for words in _CODES_WORD.finditer(data):
        found = list(_row(data, words.end()))
        if not found and (about := _ABOUT.match(data, words.end())) is not None:
            found = list(_row(data, about.end()))
            # Behind a line that only talks of codes, one number may be anything.
            announced = (
                data[about.start() : about.end()].rstrip(b" \t\r\n=~*_#-").endswith((b":", b">", b"read", b"are"))
            )
            found = found if announced or len(found) > 1 else []
        yield from found


def _row(data: bytes, position: int) -> Iterator[Span]:
    """The codes from `position` on. One without a digit counts among others that look the same."""
    found: list[Span] = []
    shapes: set[tuple[int, ...]] = set()
    numbered = 0
    while len(found) < _MOST_CODES and (code := _CODE.match(data, position, min(len(data), position + 80))):
        shape = tuple(map(len, code.group(1).split(b"-")))
        has_digit = any(0x30 <= c <= 0x39 for c in code.group(1))
        if _DATE.fullmatch(code.group(1)) or not (has_digit or (len(shape) > 1 and shapes <= {shape})):
            break
        shapes.add(shape)
        numbered += has_digit
        found.append(code.span(1))
        position = code.end()
    if numbered * 3 >= len(found):
        yield from found


RULES = (
    Rule(
        "backup-codes",
        r"(?i:codes?\b)",
        trigger=rf"(?i){_CODES}",
        locate=_codes,
        examples=(
            "backup codes: ⟨d4⟩-⟨d4⟩ ⟨d4⟩-⟨d4⟩ ⟨d4⟩-⟨d4⟩",
            "Recovery codes:\n1. ⟨a4⟩1-⟨a5⟩\n2. ⟨a4⟩2-⟨a5⟩\n",
            "recovery code ⟨a4⟩1-⟨a5⟩",
            "Backup codes (each works once):\n1⟨h9⟩, 2⟨h9⟩",
            "2FA backup codes for bob@example.org: ⟨d4⟩ ⟨d4⟩, ⟨d4⟩ ⟨d4⟩",
            "recovery codes\n=====\n1⟨a4⟩-⟨a5⟩\n2⟨a4⟩-⟨a5⟩\n",
        ),
        near_misses=(
            "the backup codes are in the safe",
            "Recovery codes can be made again in settings",
            "recovery codes were made again on: 2031-03-03",
            "backup codes: see item 2231 of the vault",
        ),
    ),
)
