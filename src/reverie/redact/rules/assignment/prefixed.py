"""Tokens of unknown services: a prefix that sounds like a key, and a long random tail."""

from __future__ import annotations

import re

from reverie.redact.entropy import is_wordy, looks_random, word_share, words
from reverie.redact.lazy import lazy
from reverie.redact.markers import presence
from reverie.redact.rules.checks import is_mixed
from reverie.redact.rules.literals import is_for_everyone
from reverie.redact.rules.plausible import is_joined, is_named_id, is_placeholder
from reverie.redact.rules.rule import LEFT, Rule, Span, token

_TRACKING = (
    rb"(?i)(?:clid|verification|srsltid|_hsenc|_hsmi|mc_eid|igshid|braid"
    rb"|[?&](?:id|si|ref|v|ved|ei|usg|gs_lcp|cursor|state))=[\w-]*\z"
)
_COORDINATE = lazy(rb"[{,\s][\"']?(?:x|y|n|e|x5c|x5t|kid)[\"']?[ \t]*:[ \t]*[\"'][\w-]*\Z")
_DIGESTS = frozenset({"sha1", "sha256", "sha384", "sha512", "md5", "integrity", "etag", "checksum", "digest"})
# Words that begin both keys and identifiers.
_SHARED = frozenset({"user", "app", "session", "service", "client"})
_KEYISH = words(
    """
    live test prod production sandbox secret sk pk rk key keys token tok pat api apikey auth access priv private
    oauth bot app admin svc srv service client user personal refresh session sess dev staging stg root master
    deploy ci cli bearer credential cred pwd password webhook wh whsec signing sign
    """
)
_IDENTIFIERS = words(
    """
    chatcmpl resp msg req request run thread file asst call toolu evt event session trace span job task batch
    img image vs step cus pi ch price prod sub inv in txn ba card acct seti cs si pm src order ord usr team org
    proj repo commit build deploy sha sha1 sha256 sha384 sha512 md5 etag hash digest checksum integrity id uid
    uuid ulid ref node pod container docker layer instance i vpc subnet sg ami eni vol snap rtb igw acl lb
    cluster bundle chunk main vendor polyfills runtime app index
    """
)


def _prefixed_token(data: bytes, _match_start: int, start: int, end: int) -> Span | None:
    """Find a token by its prefix, unless it is a tracking or paging parameter, or a public key."""
    text = data[start:end].decode("utf-8", "replace")
    before = data[max(0, start - 80) : start]
    if presence(_TRACKING).within(before, 0, len(before)) or text.startswith(("pk_", "pk-", "pub_")):
        return None
    if _COORDINATE.search(data, max(0, start - 16), start) and b"kty" in data[max(0, start - 600) : end + 600]:
        return None  # A part of a public key.
    if text.startswith("Z") and data[start - 1 : start] == b"_":
        return None  # A mangled name.
    if data[max(0, start - 3) : start] in (b"pk_", b"pk-", b"ub_"):
        return None
    return (start, end) if _prefixed(text) and not is_for_everyone(data, start) else None


def _prefixed(text: str) -> bool:
    """Whether `text` is `xyz_live_` and a long random tail. Identifiers look much the same, so without a word such as
    `live` or `key` in front, the tail must be longer and use both letter cases and digits. Words before a UUID or a
    digest make a name.
    """
    if is_named_id(text):
        return False
    parts = re.split(r"[_-]", text)
    front = 1
    while front < len(parts) - 1 and (parts[front].lower() in _KEYISH or is_wordy(parts[front])):
        front += 1
    words = {word.lower() for word in parts[:front]}
    tail = "".join(parts[front:])
    keyish = bool(words & _KEYISH) and not words <= _IDENTIFIERS | _SHARED
    if not looks_random(tail) or word_share(tail) > (0.45 if keyish else 0.3):
        return False
    if is_placeholder(text) or words & _DIGESTS:
        return False
    if max(map(len, parts[front:])) < 8:
        return False  # Many short pieces: a dashed name or a UUID behind a word.
    if keyish:
        return len(tail) >= 20
    return len(tail) >= 30 and is_mixed(tail) and not words & _IDENTIFIERS


def _mailgun(data: bytes, _match_start: int, start: int, end: int) -> Span | None:
    """Find `key-` and a digest by itself; `order-key-` and a digest is an identifier."""
    return None if data[start : start + 4] == b"key-" and is_joined(data, start) else (start, end)


def _bare_mode(data: bytes, _match_start: int, start: int, end: int) -> Span | None:
    """Find `live_` by itself, not in the middle of a publishable key or of a name that ends in a digest."""
    text = data[start:end].decode("ascii", "replace")
    if data[max(0, start - 3) : start] == b"pk_" or not looks_random(text):
        return None
    return None if is_joined(data, start) and is_named_id(text) else (start, end)


RULES = (
    Rule(
        "mailgun-key",
        token(r"(?:key|pubkey)-[a-f0-9]{32}\b|[a-f0-9]{32}-[a-f0-9]{8}-[a-f0-9]{8}\b"),
        trigger=r"key-[a-f0-9]{8}|[a-f0-9]{8}-[a-f0-9]{8}-[a-f0-9]{8}\b",
        refine=_mailgun,
        examples=("key-⟨h32⟩", "⟨h32⟩-⟨h8⟩-⟨h8⟩"),
        near_misses=("key-value", "⟨h8⟩-⟨h4⟩-⟨h4⟩-⟨h4⟩-⟨h12⟩", "order-key-⟨h32⟩"),
    ),
    Rule(
        "mollie-key",
        token(r"(?:live|test)_[A-Za-z0-9]{30,}\b"),
        refine=_bare_mode,
        examples=("live_⟨w30⟩", "test_⟨w40⟩"),
        near_misses=("test_that_redaction_keeps_everything_else", "test_parametrizedexamplesofeverykind1"),
    ),
    Rule(
        "prefixed-token",
        rf"{LEFT}([A-Za-z][A-Za-z0-9]{{0,19}}(?:[_-][A-Za-z0-9]{{1,12}}){{0,3}}?[_-][A-Za-z0-9_\-]{{20,256}})(?:[^A-Za-z0-9_/-]|$)",
        trigger=r"[A-Za-z0-9][_-][A-Za-z0-9_\-]{20}",
        refine=_prefixed_token,
        generic=True,
        apart=True,
        examples=("xyz_live_⟨w32⟩", "acme-key-⟨w32⟩", "acmecorp_⟨w40⟩", "zz_test_⟨w24⟩"),
        near_misses=(
            "chatcmpl-⟨w29⟩",
            "resp_⟨h48⟩",
            "sha256-⟨h64⟩",
            "my-service-accountnameforproduction1",
            "req_⟨w24⟩",
            "main-⟨h20⟩.js",
            "order-key-⟨h8⟩-⟨h4⟩-⟨h4⟩-⟨h4⟩-⟨h12⟩",
            "secret-santa-⟨h8⟩-⟨h4⟩-⟨h4⟩-⟨h4⟩-⟨h12⟩",
            "ACME-SKU-BLUE-⟨h32⟩",
            "session-token-⟨h40⟩",
            '{"kty":"EC","crv":"P-256","x":"a⟨w9⟩-⟨w30⟩","y":"W⟨w9⟩_⟨w30⟩","use":"sig"}',
        ),
    ),
)
