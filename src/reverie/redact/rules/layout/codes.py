"""Second factors, wallets and keys written as codes, groups or numbers."""

# ruff: noqa: E501 (a pattern is easier to read in one piece)

from __future__ import annotations

from collections.abc import Iterator

from reverie.redact.lazy import lazy
from reverie.redact.markers import spans
from reverie.redact.rules.rule import Rule, Span

_CODES = r"\b(?:backup|recovery|scratch|emergency|2fa|mfa|one-time|single-use|rescue)[ -](?:2fa |mfa |login |access )?codes?\b"
_CODES_WORD = rf"(?i){_CODES}".encode()
# Text allowed between the words and the first code: a remark, an owner, a line of its own.
_ABOUT = rb"[^\n:]{0,80}?(?::|->|=>|\xe2\x86\x92|\b(?:read|are)\b|\n)(?:[ \t]*[=~*_#-]{3,40}[ \t]*\r?\n)?"
_CODE = (
    rb"(?:[\s,;|:=*()\[\]\"'`.>-]|\b(?:is|are|was|and|und)\b|\b[0-9]{1,2}[.)]|\\n)*"
    rb"(?:\b|\\n)([A-Za-z0-9]{3,8}(?:-[A-Za-z0-9]{3,8}){1,5}|[0-9]{4} [0-9]{4}|[0-9]{6,10}|[a-z0-9]{8,16}|[A-Z0-9]{8,16})\b"
)
_DATE = lazy(rb"(?:19|20)[0-9]{2}-[0-9]{2}-[0-9]{2}")
_DIGIT = lazy(rb"[0-9]")
_MOST_CODES = 40


def _codes(data: bytes) -> Iterator[Span]:
    """Yield each code of a list after the words `backup codes`, on the same line or below."""
    done = 0
    for ((start, end),) in spans(_CODES_WORD).each(data):
        yield start, start
        if start < done:
            continue
        found = list(_row(data, end))
        if not found and (about := spans(_ABOUT).at(data, end, len(data))) is not None:
            found = list(_row(data, about[0][1]))
            # After a line that only mentions codes, a single number may be anything.
            announced = data[slice(*about[0])].rstrip(b" \t\r\n=~*_#-").endswith((b":", b">", b"read", b"are"))
            found = found if announced or len(found) > 1 else []
        done = found[-1][1] if found else done
        yield from found


def _row(data: bytes, position: int) -> Iterator[Span]:
    """Yield the codes from `position` on. One without a digit is accepted among others of the same shape."""
    found: list[Span] = []
    shapes: set[tuple[int, ...]] = set()
    numbered = 0
    begins = spans(_CODE)
    while len(found) < _MOST_CODES and (match := begins.at(data, position, min(len(data), position + 80))):
        position = match[0][1]
        code = data[slice(*match[1])]
        shape = tuple(map(len, code.split(b"-")))
        has_digit = _DIGIT.search(code) is not None
        if _DATE.fullmatch(code) or not (has_digit or (len(shape) > 1 and shapes <= {shape})):
            break
        shapes.add(shape)
        numbered += has_digit
        found.append(match[1])
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
