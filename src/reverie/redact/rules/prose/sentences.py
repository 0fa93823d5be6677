"""Secrets in a sentence: `the password for x is ...`, `use the token ...`."""

# ruff: noqa: E501 (a pattern is easier to read in one piece)

from __future__ import annotations

import re
from itertools import pairwise

from reverie.redact.entropy import is_plain_word, word_share
from reverie.redact.lazy import lazy
from reverie.redact.rules.names import NOT_SECRET_KEYS, PASSWORD, TOLD, TOLD_HINT
from reverie.redact.rules.plausible import (
    is_code,
    is_location,
    is_named_id,
    is_password_like,
    is_placeholder,
    is_random_value,
    is_term,
    is_told_value,
    without_markers,
)
from reverie.redact.rules.rule import Rule, Span
from reverie.redact.rules.values import cut, is_beginning, is_masked

_VALUE = lazy(rb"[^\s\"'`,;<>]{6,256}")


def _extent(data: bytes, start: int) -> int:
    """Return the end of the value that begins at `start`."""
    value = _VALUE.match(data, start)
    return value.end() if value else start


def _is_scrambled(text: str) -> bool:
    """Whether letter cases alternate and hardly a word is in the text."""
    changes = sum(a.islower() != b.islower() for a, b in pairwise(c for c in text if c.isalpha()))
    return len(text) >= 10 and changes >= 4 and word_share(text) <= 0.3


def _told(data: bytes, match_start: int, start: int, end: int) -> Span | None:
    """Find the secret in a sentence: `the password for x is ...`, `token: ...`."""
    return _telling(data, match_start, start, end, copula=True)


def _shown(data: bytes, match_start: int, start: int, end: int) -> Span | None:
    """Find a secret directly after its name: `password ...`, `the token ...`."""
    return _telling(data, match_start, start, end, copula=False)


def _telling(data: bytes, match_start: int, start: int, end: int, *, copula: bool) -> Span | None:
    if is_plain_word(data[start:end]) or _is_no_name(data, match_start, data[start:end]):
        return None
    words = data[match_start:start].decode("utf-8", "replace")
    whole = end
    start, end = cut(data, start, end, quoted=False)
    if is_masked(data, start, end, whole):
        return None
    value = data[start:end].decode("utf-8", "replace")
    if without_markers(value) != value.strip(" \t.,;:!?)]}>\"'`") or is_beginning(value or "("):
        return None
    if _REST_OF_CALL.search(value) or _is_fingerprint(data, match_start, words, value):
        return None  # The rest of a call: `(token, max_size=3).map(`.
    if not copula and (_FIELD.match(value) or is_named_id(value)):
        # The next pair of a log, or a line of a file. `the key order-key-<uuid>` is an identifier, `the key is ...` is not.
        return None
    if not _is_joined_well(words, value, copula=copula):
        return None
    if len(value) < 6 or is_placeholder(value) or is_term(value) or is_location(value) or is_code(value):
        return None
    likely = _is_a_persons if _OF_A_PERSON.match(words) else _is_a_machines
    return (start, end) if likely(value, copula=copula, quoted=words[-1:] in ("'", '"', "`")) else (start, start)


def _is_no_name(data: bytes, match_start: int, value: bytes) -> bool:
    """Whether the word names no secret: part of a longer name, a public key, a branch with its commit."""
    if match_start and (data[match_start - 1] in b"-_." or b"arn:aws" in data[max(0, match_start - 80) : match_start]):
        return True  # The rule for assignments judges the name whole.
    word = data[max(0, match_start - 12) : match_start + 3]
    if word[-3:].lower() == b"key" and NOT_SECRET_KEYS.search(word.decode("utf-8", "replace")):
        return True
    return data[match_start - 1 : match_start] == b"/" and _COMMIT.fullmatch(value.rstrip(b").,")) is not None


def _is_joined_well(words: str, value: str, *, copula: bool) -> bool:
    """Whether the words before a value suffice: after a mere sign or comma the value must be clear by itself."""
    if "," in words and not (is_random_value(value) and len(value) >= 16):
        return False
    sign = words.rstrip("\"'`*(")[-1:]
    if not copula or sign in (" ", "\t", ""):
        return True
    return is_told_value(value) if sign == ":" else sign == "=" and is_random_value(value)


def _is_a_persons(value: str, *, copula: bool, quoted: bool) -> bool:
    """Whether a value is a password or the like."""
    scrambled = _is_scrambled(value)
    if not (any(c.isdigit() for c in value) or scrambled or ((copula or quoted) and "/" not in value)):
        return False
    return (scrambled or is_password_like(value)) and not value.isdigit()


def _is_a_machines(value: str, *, copula: bool, quoted: bool) -> bool:  # noqa: ARG001
    """Whether a value is a key or a token."""
    if is_random_value(value):
        return True
    mixed = any(c.isdigit() for c in value) and any(c.isalpha() for c in value) and word_share(value) <= 0.5
    return copula and mixed and len(value) >= 10


_COMMIT = lazy(rb"[0-9a-f]{7,40}")
_REST_OF_CALL = lazy(r"[a-z_]=[\w.]+\)")
_OF_A_PERSON = lazy(rf"(?i)(?:{PASSWORD}|pw|psk|login|credentials?|(?:access|auth|pin|recovery|backup) code)")
_OTHER = lazy(
    r"(?i)\b(?:ids?|hash|sha\d*|commit|request|trace|version|fingerprint|public|build|digest|checksum|error|status|count|file)\b"
)


def _later(data: bytes, match_start: int, start: int, end: int) -> Span | None:
    """Find a secret some words after its name: `the key was rotated on Monday, now ...`."""
    words = data[match_start:start].decode("utf-8", "replace")
    start, end = cut(data, start, end, quoted=False)
    value = data[start:end].decode("utf-8", "replace")
    if not re.match(r"[_/+-]?(?:[A-Za-z][^0-9]*[0-9]|[0-9]+[A-Za-z-])", value) or _OTHER.search(words):
        return None
    if without_markers(value) != value.strip(" \t.,;:!?)]}>\"'`") or not is_told_value(value) or is_named_id(value):
        return None
    chosen = re.match(rf"(?i)(?:{PASSWORD}|pw)\b", words) and is_password_like(value)
    return (start, end) if chosen or (is_random_value(value) and len(value) >= 16) else None


def _is_fingerprint(data: bytes, match_start: int, words: str, value: str) -> bool:
    """Whether the value is the fingerprint of a public key, not a key."""
    if "fingerprint" in words.lower() or re.fullmatch(r"[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){5,}", value):
        return True
    if re.fullmatch(r"0x[0-9a-fA-F]{40}", value) and re.search(r"(?i)address|contract|\btoken\b", words):
        return True  # The address of a token on a blockchain; keys have more digits.
    before = data[max(0, match_start - 16) : match_start + len(words.encode())]
    return bool(re.fullmatch(r"(?:0x)?[0-9A-F]{8,40}", value)) and _OF_A_KEY.search(before) is not None


_OF_A_KEY = lazy(
    rb"(?i)gpg|pgp|\b(?:rsa|dsa|ecdsa|eddsa|ed25519|elgamal|using|from|imported|trusted|primary|unknown|signing) key|sub-?key|\bkey[ -]?ids?\b"
)
# `ip=10.0.0.1`, `method=get`, `main.py:445`.
_FIELD = lazy(
    r"(?:ip|user|host|port|method|status|code|path|src|dst|from|to|id|uid|pid|rhost|tty)=|--[a-z][a-z-]*=|[\w./-]+\.[a-z]{1,5}:\d+(?::\d+)?$"
)

_NEWLY = r"now|new (?:one|value|key|token|secret|password)|the value|value|it is|it's|type|enter|replaced (?:by|with)|rotated to|changed to|reset to"

RULES = (
    Rule(
        "told-secret",
        rf"(?i)\b(?:{TOLD})\b(?:[ \t]+[A-Za-z0-9_.@'/\x80-\xff\-]{{1,48}}){{0,6}}?(?:[ \t]*\([^()\n]{{1,60}}\))?(?:[ \t]*(?:[:=]|→|–|—|⇒|➜|-{{1,8}}>|=>)|[ \t]+(?:is|was|are|be|to|as|now|becomes|-{{1,12}}|\.{{3,40}}))"
        r"(?:[ \t]+(?:now|still|just|currently|set to|changed to|simply))?[ \t]{0,4}(?:\\{0,2}[\"'`*(]){0,3}([^\s\"'`,;<>]{6})",
        trigger=rf"(?i:{TOLD_HINT})\b(?:[ \t:=\-(]|\xe2)",
        extent=_extent,
        refine=_told,
        generic=True,
        price=5,
        examples=(
            "the password is hunter2-Xy9!",
            "my API key: ⟨w32⟩",
            "the password for staging is ⟨w12⟩.",
            "I changed the wifi password to Blue!Kettle77",
            "the admin password of the old database server is now maple-horse-69",
            "our token is now ⟨h40⟩",
            "password for master:⟨w9⟩4",
            "API token (expires 2031-01-01): ⟨h40⟩",
            "Ldap password     ----   Barley69%Ember0",
            "the Wi-Fi password for the Kraków office: SaturnSilver30!",
            "sudo password on web-3 → Maple!Horse8x",
        ),
        near_misses=(
            "the password is incorrect",
            "the token is invalid",
            "the key is to keep well-known things simple",
            "the secret to good coffee is fresh-ground beans",
            "the API key is stored in AWS-Secrets-Manager",
            "the password is 12-characters long",
            "cache-key: build-⟨h20⟩",
            "public key: ⟨b43⟩",
            "Host key fingerprint is ⟨h2⟩:⟨h2⟩:⟨h2⟩:⟨h2⟩:⟨h2⟩:⟨h2⟩:⟨h2⟩:⟨h2⟩",
            "gpg key ⟨H40⟩ imported",
            "USDC token address: 0x⟨h40⟩",
        ),
    ),
    Rule(
        "shown-secret",
        rf"(?i)\b(?:{TOLD})\b(?:[ \t:*(]{{1,4}}|,[ ])(?:\\{{0,2}}[\"'`*]){{0,3}}([^\s\"'`,;<>]{{6}})",
        trigger=rf"(?i:{TOLD_HINT})\b[ \t:*(,]+[\\\"'`*]*[^\s\"'`,;<>]{{6}}",
        extent=_extent,
        refine=_shown,
        generic=True,
        price=5,
        examples=(
            "password hunter2x9",
            "their API token, ⟨h40⟩, expires soon",
            "use the token ⟨w40⟩ to log in",
            "login with password `⟨w10⟩7`",
            "use Rails secret key base ⟨h64⟩",
        ),
        near_misses=(
            "password authentication failed for user",
            "a password manager",
            "token v2.0 was released",
            "password OAuth2",
            "Merge pull request #12 from acme/feature/login (⟨h40⟩)",
            "gpg: Signature made 2031-05-22 using RSA key ⟨H16⟩",
            "gpg:                using EDDSA key ⟨H40⟩",
            "signed with key ID ⟨H16⟩",
            "gpg: Good signature from key ⟨H16⟩",
            "Unable to locate credentials (api.php:634)",
            "login ok user=ann58 method=password ip=10.152.132.153",
            "tool login --tool-token=arn:aws:secretsmanager:eu-west-1:⟨d12⟩:secret:catalog",
            "password authentication is off on build3.catalog.io",
        ),
    ),
    Rule(
        "told-later",
        rf"(?i)\b(?:{TOLD})\b[^\n]{{1,90}}?[ \t,;(](?:{_NEWLY})(?:[ \t]+(?:is|are|was))?[ \t]{{0,2}}[:=]?[ \t]{{0,3}}(?:\\{{0,2}}[\"'`*(]){{0,3}}([^\s\"'`,;<>]{{8}})",
        trigger=rf"(?i:\b(?:{_NEWLY})(?:[ \t]+(?:is|are|was))?)[ \t]*[:=]?[ \t]*[\\\"'`*(]*[_/+\-]?(?:[A-Za-z][^\s\"'`,;<>0-9]*[0-9]|[0-9]+[A-Za-z-])",
        extent=_extent,
        refine=_later,
        generic=True,
        examples=(
            "- Weather API key rotated 2031-01-02, now `⟨h32⟩`",
            "The API key for billing was rotated on Monday; the new value is ⟨h32⟩",
            "root password changed after the audit, new one: Walnut47.Tundra2",
            'For OPS-12 I generated an encryption key, it is "⟨h40⟩"',
            "found the webhook secret hard-coded in client.go, value ⟨h40⟩",
            "When it prompts for the database password, type Maple!Horse8x and press enter.",
        ),
        near_misses=(
            "the token fix is out, commit now ⟨h40⟩",
            "the password page is now v2.14.3-rc1",
            "key rotated, request id now ⟨h32⟩",
            "the password page is old, it is python3-flask",
            "enter the key, value type int64 or float32",
        ),
    ),
)
