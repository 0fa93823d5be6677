"""Secrets given as an answer: a question asks for one, and the next line holds it."""

# ruff: noqa: E501 (a pattern is easier to read in one piece)

from __future__ import annotations

import re
from collections.abc import Iterator

from reverie.redact.lazy import lazy
from reverie.redact.markers import spans
from reverie.redact.rules.names import TOLD_HINT
from reverie.redact.rules.prose.languages import passes_for_key, passes_for_password
from reverie.redact.rules.rule import Rule, Span

_SECRET = r"(?i:\b(?:passw(?:or)?ds?|passphrase|passcode|pwd?|pw|logins?|credentials?|wi-?fi)\b|passwort|kennwort|mot de passe|contraseña|\bclave\b|senha|wachtwoord|lösenord|hasło|parola)|(?:п|П)арол|密码|パスワード|비밀번호|비번"
_KEY = r"(?i:\b(?:tokens?|api[ -]?keys?|(?:secret|access|signing|license|private|deploy|master|encryption)[ -]?keys?|client[ -]?secret|secret|key)\b|schlüssel|sleutel|nyckel)|ключ|токен|密钥|キー"
_CODE = r"(?i:\b(?:pin|pin code|door code|alarm code|gate code|entry code|2fa code|verification code|passcode)\b)"
_ASKED = (
    rf"(?i:\b(?:{TOLD_HINT})(?:[^A-Za-z0-9_\-\]]|$)|wi-?fi|\bpin\b|\bcode\b|passwort|kennwort|mot de passe|contraseña|\bclave\b|senha|wachtwoord|lösenord|hasło|parola|schlüssel|sleutel|nyckel)|"
    r"арол|ключ|токен|密码|密钥|パスワード|비밀번호|비번|キー"
)
_WORD = f"({_SECRET})|({_KEY})|({_CODE})".encode()
_LONGEST = 400
_ASKING = lazy(
    r"(?i)\?(?:[\s\"')*_?!]|$)|？|؟|\b(?:what(?:'?s| is| was)|which|send me|remind me|give me|tell me|share|can (?:you|u|i)|could (?:you|i)|anyone (?:have|know|got)|need (?:the|ur|your)|do (?:you|we) (?:have|know|remember)|"
    r"pls|please|plz|wie (?:war|lautet|ist)|schick|gib|quel(?:le)?|envoie|cuál|cual|pásame|qual|manda|welk|stuur|vad är|jaki|podaj|какой|скинь|напомни|який)\b|教えて|多少|是什么|뭐|알려"
)
# On the same line: `Q: which key? A: ...`.
_INLINE = lazy(
    r"(?:\?|？)[ \t]{1,4}(?:\*{0,2}(?:A|a|Ans|Answer|Antwort|R|Re|Resp|О)\*{0,2}[:.)]|-{1,2}>?|—|–|it'?s)\*{0,2}[ \t]{0,3}".encode()
)
_SPEAKER = (
    r"[ \t>|*-]{0,8}(?:[\[(]?[0-9]{1,4}[0-9:./\- T]{2,18}(?:[ ]?[AaPp][Mm])?[\])]?[ \t,-]{0,3})?"
    r"(?:[<@*_\[]{0,3}[^\s:<>\[\]*?=/][^\n:<>\[\]*?=/]{0,30}[>*_\]]{0,3}(?:[ ]\([^()\n]{1,20}\))?[ ]?[:>][*_]{0,2}[ \t]{1,3}|[<\[][^\s<>\[\]]{1,30}[>\]][ \t]{1,3})?"
)
_FILLER = (
    r"(?:(?i:sure(?: thing)?|ok(?:ay)?|yes|yep|yup|ya|yeah|of course|no (?:problem|worries)|np|here(?: you (?:go|are)|'?s| it is| is it)?|it ?(?:'?s| is| was| should be)|its|think it'?s|i think|that'?s|that would be|should be|try|use|got it|found it|"
    r"hi|hey|hm+|uh|oh|one sec|the (?:pw|password|token|key|pin|code)(?: is|:)?|pw|password|pass|token|key|again|sorry|lol|btw|still|now|"
    r"klar|ja|hier|das (?:ist|war)|ist|war|moment|gern(?:e)?|bitte|sicher|voilà|voici|c'est|bien sûr|oui|tiens|claro|sí|aquí(?: (?:está|tienes|va))?|es|toma|sim|aqui(?: está)?|é|certo|ecco|è|zeker|natuurlijk|het is|visst|här|jasne|proszę|tabii|işte|"
    r"a|answer|antwort|re)|конечно|да|вот|пароль|держи|так|ось)"
    r"(?:[ \t]*(?:[,:!.;>-]|—|–)+[ \t]*|[ \t]+)"
)
_ANSWER = lazy(rf"{_SPEAKER}(?:{_FILLER}){{0,5}}[\"'`*(<]{{0,3}}([^\s\"'`,;<>]{{4,256}})".encode())
_WAIT = lazy(
    rf"{_SPEAKER}(?:(?i:sure|ok|okay|yes|yep|one (?:sec|moment|minute)|hang on|hold on|wait|let me (?:check|look)|moment|checking|sec|np|klar|ja|un momento|attends)|секунду)[ \t]*(?:[.!]|…)*[ \t]*\r?\Z".encode()
)
_LOOK = 3


def _answers(data: bytes) -> Iterator[Span]:
    end = 0
    while (word := spans(_WORD).after(data, end)) is not None:
        first, end = word[0]
        yield first, first
        if data[end : end + 1] in (b"-", b"]"):
            continue
        begin = data.rfind(b"\n", 0, first) + 1
        end = data.find(b"\n", end)
        end = len(data) if end < 0 else end
        if end - begin > _LONGEST or not _ASKING.search(data[begin:end].decode("utf-8", "replace")):
            continue
        kind = next(g for g in (1, 2, 3) if word[g][0] >= 0)
        inline = _INLINE.search(data, first, end)
        if inline is not None:
            span = _judged(data, inline.end(), end, kind)
            if span:
                yield span
                continue
        position = end + 1
        looked = 0
        while looked < _LOOK and position < len(data):
            stop = data.find(b"\n", position)
            stop = len(data) if stop < 0 else stop
            line = data[position:stop]
            if line.strip(b" \t\r>|"):
                looked += 1
                span = _judged(data, position, stop, kind)
                if span:
                    yield span
                if span or not _WAIT.match(line):
                    break
            position = stop + 1


def _is_password(value: str, rest: bytes) -> bool:
    if value.isdigit():
        return 6 <= len(value) <= 12 and not rest
    strong = sum((any(c.isdigit() for c in value), any(c.isupper() for c in value), not value.isalnum()))
    return (passes_for_password(value) and (not rest or strong >= 2)) or passes_for_key(value)


def _is_key(value: str, rest: bytes) -> bool:
    if value.isdigit():
        return False
    mixed = sum(c.isdigit() for c in value) >= 2 or not value.isalnum()
    return passes_for_key(value) or (passes_for_password(value) and mixed and not rest and len(value) >= 8)


def _is_code(value: str, rest: bytes) -> bool:
    if rest:
        return False
    if value.isdigit():
        return 4 <= len(value) <= 8
    return re.fullmatch(r"[\dA-Z#*-]{4,10}", value) is not None and any(c.isdigit() for c in value)


# Test of a value, by the group of the word in the question.
_LIKELY = {1: _is_password, 2: _is_key, 3: _is_code}


def _judged(data: bytes, start: int, stop: int, kind: int) -> Span | None:
    """Return the value with which a line answers: alone, after a name and a few small words, or before a remark."""
    match = _ANSWER.match(data, start, stop)
    if match is None:
        return None
    kept = match.group(1).rstrip(b".,;:)]}>*`'\"")
    begin = match.start(1)
    value = kept.decode("utf-8", "replace")
    rest = data[match.end() : stop].strip(b" \t\r.\"'`*)>,;")
    if not value.isascii() or len(rest) > 80 or re.match(r"[A-Za-z_]\w*=[A-Za-z_]", value):
        return None
    likely = _LIKELY[kind](value, rest)
    return (begin, begin + len(kept)) if likely else None


RULES = (
    Rule(
        "answered-secret",
        r"\?",
        trigger=_ASKED,
        locate=_answers,
        generic=True,
        price=5,
        examples=(
            "Ada: whats the pw for the NAS?\nBob: Walnut⟨d4⟩!!\nAda: thx",
            "Q: which API key does the notifier use? A: ⟨h32⟩",
            "Ada: can you send me the Vercel access token again?\nBob: sure, ⟨w24⟩",
            "Wie war nochmal das Passwort?\nGecko!⟨d3⟩",
            "какой пароль?\n> держи: Copper⟨d4⟩!",
            "[10:02] ada: remind me of the wifi password pls\n[10:03] bob: one sec\n[10:03] bob: it's copper-maple-⟨d2⟩",
            "what's the door code?\n⟨d4⟩",
        ),
        near_misses=(
            "Did you change the password?\nBob: yes, yesterday at 10:30",
            "which token does CI use?\nSee docs/ci-tokens.md",
            "What is the API key for?\nIt identifies the project in Vertex2.",
            "Ada: can you rotate the token?\nBob: done, see PR-1234",
            "Forgot password?\nSign in with OAuth2",
        ),
    ),
)
