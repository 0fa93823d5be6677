"""The streaming redactor gives what the redactor gives, whatever the pieces in which text arrives."""

from __future__ import annotations

import base64
import io
import random

import pytest

from reverie.api.cli import filter as stream
from reverie.core.errors import TooLarge
from reverie.redact import load_redactor

REDACTOR = load_redactor()


class Dripping(io.RawIOBase):
    """Gives out what it has a few bytes at a time."""

    def __init__(self, content: bytes, sizes: random.Random) -> None:
        self._rest, self._sizes = content, sizes

    def read1(self, _most: int) -> bytes:
        size = self._sizes.randint(1, 40)
        piece, self._rest = self._rest[:size], self._rest[size:]
        return piece


def key(seed: int, *, end: bool = True) -> str:
    body = base64.b64encode(random.Random(seed).randbytes(600)).decode()
    lines = "\n".join(body[at : at + 64] for at in range(0, len(body), 64))
    kind = random.Random(seed).choice(["", "RSA ", "OPENSSH ", "EC "])
    return f"-----BEGIN {kind}PRIVATE KEY-----\n{lines}\n" + (f"-----END {kind}PRIVATE KEY-----\n" if end else "")


def text(seed: int) -> str:
    rnd = random.Random(seed)
    token = "ghp_" + "".join(rnd.choices("abcdefghijkmnpqrstuvwxyz23456789ABCDEFGH", k=36))
    lines = ["plain words\n", f"a token {token} in a line\n", "Zürich, naïve, 日本語\n", "\r\n", "\n", key(seed)]
    lines += [
        "someone wrote BEGIN PRIVATE KEY in a sentence\n",
        "password: hunter2hunter2X9\n",
        key(seed + 1, end=False),
    ]
    return "".join(rnd.choices(lines, k=12)) + rnd.choice(["", "no line end", key(seed + 2).rstrip("\n")])


@pytest.mark.parametrize("seed", range(25))
def test_the_pieces_do_not_matter(seed: int) -> None:
    whole = text(seed)
    sink = io.BytesIO()
    findings = stream.copy_redacted(Dripping(whole.encode(), random.Random(seed)), sink, REDACTOR)  # type: ignore[arg-type]
    redacted = sink.getvalue().decode()
    assert REDACTOR.text(redacted).text == redacted
    for line in whole.splitlines():
        if len(line) == 64 and " " not in line:
            assert line not in redacted
    assert sum(findings.values()) >= sum(REDACTOR.text(whole).findings.values()) - 1


def test_lines_pass_at_once_and_keys_are_held_until_they_are_whole() -> None:
    lines = ["first\n", *key(3).splitlines(keepends=True), "last\n"]
    seen: list[str] = []
    pieces = iter([line.encode() for line in lines])

    class Lines(io.RawIOBase):
        def read1(self, _most: int) -> bytes:
            return next(pieces, b"")

    class Sink(io.BytesIO):
        def write(self, data: object) -> int:
            seen.append(bytes(data).decode())  # type: ignore[call-overload]
            return 0

    stream.copy_redacted(Lines(), Sink(), REDACTOR)  # type: ignore[arg-type]
    assert seen == ["first\n", "[REDACTED:private-key]\n", "last\n"]


def test_a_header_without_a_key_does_not_hold_back_for_ever() -> None:
    prose = "BEGIN PRIVATE KEY is how it starts\n" + "and then came many ordinary lines of text\n" * 8000
    sink = io.BytesIO()
    stream.copy_redacted(io.BufferedReader(io.BytesIO(prose.encode())), sink, REDACTOR)  # type: ignore[arg-type]
    assert sink.getvalue().decode() == prose


def test_a_line_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "MAX_LINE", 1 << 20)
    endless = io.BufferedReader(io.BytesIO(b"x" * (3 << 20)))  # type: ignore[arg-type]
    with pytest.raises(TooLarge):
        stream.copy_redacted(endless, io.BytesIO(), REDACTOR)
