"""Literals passed to a call that takes a login, and literals that a comment names."""

# ruff: noqa: E501 (a pattern is easier to read in one piece)

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

from reverie.redact.entropy import remembered
from reverie.redact.lazy import lazy
from reverie.redact.markers import Lazy
from reverie.redact.rules.literals import is_literal, is_told
from reverie.redact.rules.plausible import is_password_like, is_random_value, is_technical
from reverie.redact.rules.rule import Rule, Span

# Calls by the position of the password. After ambiguous names the value must look like a password.
_SECOND = r"\w*Credentials?|\w*BasicAuth|\w*DigestAuth|PasswordAuthentication|simple_bind(?:_s)?|auth_?[pP]assword|WiFi\.(?:begin|softAP)|wifi_connect|(?:smtp|imap|pop|mail|ftp|sftp|ldap|client|server|session|conn|s|m)\.(?:[lL]ogin|[aA]uth|[bB]ind|[aA]uthenticate|logon)"
_THIRD = r"DirectoryEntry|PlainAuth|LoginAuth|imap_open|ssh2_auth_password|ldap3\.Connection|ldap_bind|ftp_login|odbc_connect|oci_connect|OracleConnection"
_LAST = r"PrincipalContext|DirectoryContext|\w*[cC]lient\.connect"
_CALL = Lazy(rf"\b(?:({_SECOND})|({_THIRD})|({_LAST}))\(\s{{0,20}}".encode())
# One argument and the comma after it: a literal, or an expression without brackets of its own.
_ARGUMENT = Lazy(
    rb"(?:[a-z_]{1,20}[ ]?[=:][ ]?)?(?:[@rbuf]?\\{0,3}\"([^\"\n]{0,200})\"|[@rbuf]?'([^'\n]{0,200})'|[^\"'(),\n]{1,80}(?:\([^()\n]{0,60}\))?)\s{0,20}(?:(,)\s{0,80}|[);]|\r?\n|\z)"
)
_MOST = 6


def _arguments(data: bytes, position: int) -> list[Span | None]:
    """Return the arguments that begin at `position`: the span of a literal, None for an expression."""
    found: list[Span | None] = []
    while len(found) < _MOST and (argument := _ARGUMENT.match(data, position, min(len(data), position + 400))):
        group = 1 if argument.start(1) >= 0 else 2
        found.append(argument.span(group) if argument.start(group) >= 0 else None)
        if argument.start(3) < 0:
            break
        position = argument.end()
    return found


def _handed(data: bytes) -> Iterator[Span]:
    """Yield the password among the arguments of a call."""
    for call in _CALL.finditer(data):
        yield call.start(), call.start()
        arguments = _arguments(data, call.end())
        last = call.start(3) >= 0
        if last:
            index = max((i for i, argument in enumerate(arguments) if argument), default=0)
        else:
            index = 1 if call.start(1) >= 0 else 2
        if index >= len(arguments) or (last and index < 2):
            continue
        span = arguments[index]
        if span is None:
            continue
        value = data[span[0] : span[1]].rstrip(b"\\").decode("utf-8", "replace")
        if " " in value or is_technical(value) or len(value) < 5 or not is_literal(value):
            continue
        if is_password_like(value) or is_random_value(value):
            yield span[0], span[0] + len(value.encode())


_NAMES_IT = r"(?i:api[ _-]?key|access[ _-]?key|secret[ _-]?key|admin[ _-]?key|global[ _-]?key|private[ _-]?key|token|secret|password|passphrase|passwd|credentials?|\bpat)"
_TALKS = lazy(
    r"(?i)\b(?:no|not|never|without|commit|hash|sha\d*|digest|checksum|public|fingerprint|ids?|fix|hashed|expired|for tests?|from|via|see|encrypted)\b"
)


_PASS = lazy(r"(?i)pass")


class _Words(NamedTuple):
    """Places in a text, ascending: line ends, words that rule a secret out, and the word `pass`."""

    line_ends: list[int]
    talks: list[int]
    passes: list[int]


def _words(data: bytes) -> _Words:
    text = data.decode("utf-8", "surrogateescape")
    line_ends = [match.start() for match in re.finditer(rb"\n", data)]
    return _Words(line_ends, list(_places(_TALKS, text)), list(_places(_PASS, text)))


_words_once = remembered(_words, most=1)
"""Computed once per text: a long line may have a literal in every few words."""


def _places(pattern: re.Pattern[str], text: str) -> Iterator[int]:
    """The byte offsets of the matches in a text that was decoded with `surrogateescape`."""
    done = length = 0
    for match in pattern.finditer(text):
        length += len(text[done : match.start()].encode("utf-8", "surrogateescape"))
        done = match.start()
        yield length


def _remarked(data: bytes, match_start: int, start: int, end: int) -> Span | None:
    """Find a literal that the comment at the end of its line, or before it, names."""
    value = data[start:end].rstrip(b"\\").decode("utf-8", "replace")
    if not is_told(value) or is_technical(value):
        return None
    if data[match_start : match_start + 2] == b"/*":
        remark = data[match_start:start].decode("utf-8", "replace")
        talks, names_password = _TALKS.search(remark) is not None, _PASS.search(remark) is not None
    else:
        words = _words_once(data)
        line = bisect_left(words.line_ends, end)
        line_end = words.line_ends[line] if line < len(words.line_ends) else len(data)
        talks, names_password = (
            bisect_left(places, end) < bisect_left(places, line_end) for places in (words.talks, words.passes)
        )
    chosen = names_password and is_password_like(value)
    likely = not talks and (chosen or (is_random_value(value) and len(value) >= 16))
    return (start, start + len(value.encode())) if likely else None


RULES = (
    Rule(
        "handed-password",
        r"\(",
        trigger=rf"(?:{_SECOND}|{_THIRD}|{_LAST})\(".replace(r"\w*", ""),
        locate=_handed,
        generic=True,
        examples=(
            'new DirectoryEntry("LDAP://dc1", "CORP\\\\svc", "⟨w12⟩7");',
            'new DirectoryEntry("LDAP://DC1",\n    "svc@CORP",\n    "⟨w12⟩7");',
            'new NetworkCredential(user, "⟨w12⟩7")',
            'PrincipalContext(ContextType.Domain, "corp.local", "svc", "⟨w12⟩7")',
            'WiFi.begin("attic", "⟨w12⟩7");',
            'ldap.simple_bind_s("cn=admin,dc=x", "Zebra.Maple77")',
            'smtp.PlainAuth("", "bob@example.org", "⟨w12⟩7", "smtp.example.org")',
            'imap_open("{mail.example.org:993}", "bob", "⟨w12⟩7");',
            'mqttClient.connect("sensor1", "bob", "⟨w12⟩7")',
        ),
        near_misses=(
            'new DirectoryEntry("LDAP://dc1", user, password)',
            "WiFi.begin(ssid, password);",
            'WiFi.begin("YOUR_SSID", "YOUR_PASSWORD");',
            'client.connect("db1.example.org", "5432")',
            'ldap.simple_bind_s("cn=admin,dc=x", os.environ["PW1"])',
        ),
    ),
    Rule(
        "remarked-secret",
        rf"\\{{0,2}}[\"'`]([^\s\"'`]{{8,256}})[\"'`](?:,[ ]?[A-Za-z_.]{{1,30}}){{0,2}}[);,}}\]. \t]{{0,8}}(?://|#|--|/\*)[ \t]{{0,3}}[^\n\"'`]{{0,60}}?{_NAMES_IT}[ \t]{{0,3}}(?:\([^()\n]{{0,40}}\))?[ \t.*/]{{0,4}}(?m:$|[\"'`\\])"
        rf"|/\*[ ]{{0,2}}{_NAMES_IT}[ ]{{0,2}}\*/[ ]{{0,2}}\\{{0,2}}[\"'`]([^\s\"'`]{{8,256}})\\{{0,2}}[\"'`]",
        trigger=r"[\"'`](?:,[ ]?[A-Za-z_.]+){0,2}[);,}\]. \t]{0,8}(?://|#|--|/\*)|\*/[ ]?[ ]?\\{0,2}[\"'`]",
        refine=_remarked,
        generic=True,
        examples=(
            'client := weather.NewClient("⟨h32⟩") // weather api key',
            'api = Client("⟨h32⟩")  # api key',
            'connect("db.example.org", "Zebra.Maple77")  # host, password',
            "$c = new Client('⟨a32⟩'); // API token",
            'connect(url, "bob", /* password */ "Zebra.Maple77");',
            'fmt.Sprintf("%s:%s@tcp(%s)/app", "bob", "Maple!Horse8x", host) // user, password',
        ),
        near_misses=(
            'x = load("⟨h40⟩")  # commit of the token fix',
            'assert digest("⟨h64⟩")  # not a secret',
            'client = Client("eu-west-1")  # token',
            'id = "⟨h32⟩"  # id of the token',
        ),
    ),
)
