"""Secrets in sentences of languages other than English: the words, how they join a value, and which values are
accepted.
"""

# ruff: noqa: E501 (a pattern is easier to read in one piece)

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from reverie.redact.entropy import remembered, word_share
from reverie.redact.lazy import lazy
from reverie.redact.markers import presence, spans
from reverie.redact.rules.compiled import any_of, compiled
from reverie.redact.rules.literals import is_random, is_whole
from reverie.redact.rules.plausible import (
    is_code,
    is_location,
    is_password_like,
    is_placeholder,
    is_scramble,
    is_term,
)
from reverie.redact.rules.rule import Rule, Span

PASSWORDS = any_of("password")
KEYS = any_of("key")
_PINS = any_of("pin")
# English words used in every language; other rules cover them in English.
_BORROWED = r"(?i:\b(?:token|secret|api[ -]?key|password))"
_HINT = rf"{PASSWORDS}|{KEYS}|{_BORROWED}[ \t'\x80-\xff]"
_GROUP_PASSWORD, _GROUP_KEY, _GROUP_PIN, _GROUP_BORROWED = range(1, 5)
_WORD = f"({PASSWORDS})|({KEYS})|({_BORROWED})".encode()

_IS = frozenset(compiled().words("joins"))
# Also English words: after an English credential word they join nothing.
_ENGLISH = frozenset({"is", "to", "on", "now"})
_TO = frozenset(compiled().words("to"))
_PARTICLES = "はがを是为為는은이가를을로成"
# Joins between an English word for a secret and a value, in a sentence that is not English.
_JOINED = (
    rf"(?is)[\s:](?:{'|'.join(map(re.escape, sorted((_IS - _ENGLISH) | _TO)))})".encode()
    + rb"[\s\"'`(*\[<\x80-\xff]|[A-Za-z]'.*[:=\-]|"
    + "|".join(_PARTICLES + "→—–»：＝").encode()
)
_CHANGED = lazy(
    r"(?i)cambi|changé|changer|modifi|mud(?:ei|ou|ar|amos)|alter(?:ei|ou|ar)|troqu|troc|änder|gesetzt|setze|stell|wechsel|bytt|byt(?:er|te|a)|ändra|endret|ændre|skift|satt|"
    r"zmien|zmień|ustaw|změn|zmen|nastav|schimb|setat|pus|değiş|vaihd|asetin|změ|verander|gewijzigd|wijzig|ingesteld|mis[eo]? |impost|puse|puesto|ponte|coloqu|defini|"
    r"смен|помен|измен|змін|поставил|задал|άλλαξα|όρισα|غير|שינ|החלפ|đổi|ganti|ubah"
)
# Words that mark their neighbour as public.
_OPEN = lazy(
    r"(?i)public|öffentlich|publique|públic|pubblic|openba|offentlig|offentlege|julki|veřejn|nyilvános|açık|ortak|открыт|публичн|відкрит|δημόσι|عام|公開|公开|公钥|公鑰|공개|công khai|publik|"
    r"fingerprint|abdruck|empreinte|primär|primar|primär|primaire|fremd|foreign|étrang|hash|commit|\bsha|checksum|prüfsumme|\bid\b|-id\b|cache|erreur|error|fehler"
)
_CANDIDATE = lazy(rb"[!#-&(-;=?-_a-~]{4,256}")
_LEADING = b":=([*{,"
_SIGNS = (":", "=", "\uff1a", "\uff1d", "→", "—", "–", "->", "=>", " -", "»")
_QUOTES = " \t\"'`«»„“”‚‘’「『(*[<"
_REACH = 140
_ESCAPE = lazy(rb"\\[nrt\"]")
_IN_A_NAME = (b"-", b".", b"/", b'"', b"'")
_KEY_IN_SPANISH = lazy(r"(?i) (?:de |del? )?(?:api|acceso|secreta|privada)")
_LETTER_ABROAD = lazy(r"[^\W\d_\x00-\x7f]")
_STOP = lazy(r"[.;!?。][ \n]|[.;!?。]$")


@remembered
def passes_for_password(text: str) -> bool:
    """Whether `text` reads like a chosen password: a digit among letters, an inner symbol, or words written as one."""
    if len(text) < 6 or not is_whole(text) or is_placeholder(text) or is_location(text) or is_term(text):
        return False
    if (is_code(text) and not text.endswith(("!", "?", "*"))) or re.fullmatch(r"[\w-]+(?:\.[\w-]+){2,}", text):
        return False
    if any(c.isdigit() for c in text):
        return is_password_like(text)
    if "|" in text:
        return False  # Words to choose from.
    inner = text[:-1].strip("-_./'’,:;?()&")
    symbols = any(not c.isalnum() and c not in "-_./'’,:;?()&" for c in inner)
    cases = sum(c.isupper() for c in text[1:]) >= 2 and any(c.islower() for c in text)
    return symbols or (cases and (len(text) >= 10 or text[-1] in "!*#$%@"))


@remembered
def passes_for_key(text: str) -> bool:
    """Whether `text` reads like a key made by a machine."""
    if len(text) < 12 or not is_whole(text) or is_location(text) or is_term(text) or is_code(text) or "://" in text:
        return False
    if re.fullmatch(r"[a-z]+(?:[_-][a-z]+)+\d{0,3}", text):
        return False  # A name.
    return is_random(text) or is_scramble(text) or (text.startswith("base64:") and is_random(text[7:]))


def _joins(between: str, *, english: bool, value: str, line: str) -> bool:
    """Whether the text between the word and the value equates the two."""
    bare = between.rstrip(_QUOTES)
    if not bare:
        return not english
    if bare.endswith(_SIGNS):
        return not english or between[:1] == "'"
    if bare[-1] in _PARTICLES:
        return True
    last = bare.split()[-1].casefold() if bare.split() else ""
    if last in _IS and not (english and last in _ENGLISH):
        return True
    if last in _TO:
        kinds = sum((any(c.isdigit() for c in value), any(c.isupper() for c in value), not value.isalnum()))
        return bool(_CHANGED.search(line)) or (kinds == 3 and not english)
    # `Şifrem ...`, `das Passwort „...“`, `パスワードを...に`: only an ending before the value.
    return not english and len(bare) <= 6 and between[:1] not in " \t,;.(" and not any(c in bare for c in " .;")


def _pins(data: bytes) -> Iterator[Span]:
    """Yield the numbers after a word for a PIN."""
    return _values(data, f"({_PINS})".encode(), (_GROUP_PIN,))


def _secrets(data: bytes) -> Iterator[Span]:
    """Yield the passwords and keys after a word for one."""
    return _values(data, _WORD, (_GROUP_PASSWORD, _GROUP_KEY, _GROUP_BORROWED))


def _values(data: bytes, words: bytes, groups: tuple[int, ...]) -> Iterator[Span]:
    """Yield the value after each match of `words`, whose groups are `groups` in order."""
    done = 0
    for found in spans(words).each(data):
        begin, end = found[0]
        if begin < done:
            continue
        stop = data.find(b"\n", end, end + _REACH)
        stop = min(len(data), end + _REACH) if stop < 0 else stop
        group = next(g for g, span in zip(groups, found[1:], strict=True) if span[0] >= 0)
        word = _word(data, begin, end, stop, group)
        yield begin, begin
        for span in _value(data, word) if word else ():
            done = span[1]
            yield span


class _Word(NamedTuple):
    """A credential word and its line."""

    text: str
    group: int
    end: int
    stop: int
    line_start: int
    line: str
    english: bool


def _word(data: bytes, begin: int, end: int, stop: int, group: int) -> _Word | None:
    """Return the word from `begin` to `end`; None if it is part of a name, or English in an English sentence."""
    text = data[begin:end].decode("utf-8", "replace").lower()
    line_start = data.rfind(b"\n", max(0, begin - 80), begin) + 1 or max(0, begin - 80)
    line = data[line_start:stop].decode("utf-8", "replace")
    if group != _GROUP_BORROWED:
        return _Word(text, group, end, stop, line_start, line, english=False)
    following = data[end : end + 1]
    if (following not in b" \t'" and following < b"\x80") or data[begin - 1 : begin] in _IN_A_NAME:
        return None
    english = line.isascii() or _LETTER_ABROAD.search(line) is None
    if english and not presence(_JOINED).within(data, end - 1, stop):
        return None
    group = _GROUP_PASSWORD if text == "password" else _GROUP_KEY
    return _Word(text, group, end, stop, line_start, line, english)


def _value(data: bytes, word: _Word) -> Iterator[Span]:
    """Yield the value that follows a word, if the text between them equates the two."""
    for found in _CANDIDATE.finditer(data, word.end, word.stop):
        start, finish = found.span()
        while start < finish and data[start] in _LEADING:
            start += 1
        if finish == word.stop:
            whole = _CANDIDATE.match(data, start)
            finish = whole.end() if whole else finish
        between = data[word.end : start].decode("utf-8", "replace")
        if _STOP.search(between[:-1]) or between.startswith((" chiave", " clé", "-clé")):
            return
        kept = _ESCAPE.split(data[start:finish], maxsplit=1)[0].rstrip(b".,;:)]}>`'\"")
        value = kept.decode("ascii", "replace")
        before = word.line[: max(0, start - word.line_start)]
        if _is_likely(value, word, between, before) and _joins(
            between, english=word.english, value=value, line=word.line
        ):
            yield start, start + len(kept)
            return
        yield word.end, word.end


def _is_likely(value: str, word: _Word, between: str, before: str) -> bool:
    """Whether the value is of the kind that the word names."""
    if word.group == _GROUP_PIN or (word.group == _GROUP_PASSWORD and value.isdigit()):
        length = r"\d{4,8}" if word.group == _GROUP_PIN else r"\d{6,12}"
        return re.fullmatch(length, value) is not None and between.strip() != ""
    if word.group == _GROUP_KEY and (word.text != "clave" or _KEY_IN_SPANISH.match(between)):
        return passes_for_key(value) and not _OPEN.search(before)
    return passes_for_password(value) or (passes_for_key(value) and word_share(value) < 0.3)


RULES = (
    Rule(
        "pin",
        _PINS,
        locate=_pins,
        generic=True,
        price=5,
        examples=("code PIN : ⟨d4⟩", "ПИН: ⟨d6⟩", "PIN-Code lautet ⟨d6⟩"),
        near_misses=("PIN erforderlich", "the pin 13 of the header", "PIN: gesperrt seit 2031"),
    ),
    Rule(
        "foreign-secret",
        _WORD.decode(),
        trigger=_HINT,
        locate=_secrets,
        label="password-in-text",
        generic=True,
        price=5,
        examples=(
            "Adgangskode: Lisbon!⟨d4⟩",
            "Mein Datadog API-Schlüssel lautet ⟨h40⟩",
            "Pour Scaleway, clé secrète : ⟨w32⟩ (merci)",
            "Mi token de acceso de Codecov es ⟨h8⟩-⟨h4⟩-⟨h4⟩-⟨h4⟩-⟨h12⟩",
            "chave secreta do Rails: ⟨h32⟩",
            "chiave API di PagerDuty: ⟨w20⟩",
            "Mijn Cloudflare API-sleutel is ⟨h37⟩",
            "Min API-nyckel till Deepgram är ⟨h40⟩",
            "Mój klucz API do Cohere to ⟨w40⟩",
            "Cohere için API anahtarı: ⟨w40⟩",
            "Вот API-ключ для погоды: ⟨h32⟩",
            "Datadog API 키: ⟨h40⟩",
            "MistralのAPIキーは ⟨w32⟩ です",
            "Я сменил пароль на Copper⟨d2⟩*x",
            "Mudei a senha para copper-maple-⟨d2⟩",
            "Ich habe das Passwort auf Gecko!⟨d3⟩ geändert",
            "Salasana on Kettu⟨d4⟩!",
            "सर्वर का पासवर्ड pepper_⟨d3⟩! है",
            "كلمة المرور: Copper⟨d4⟩!",
        ),
        near_misses=(
            "Passwort: erforderlich",
            "Das Passwort wurde am 12.03.2024 geändert.",
            "Der öffentliche Schlüssel lautet ⟨b43⟩",
            "la clé primaire est user_id2",
            "la contraseña es obligatoria desde v2.4.1",
            "Пароль должен содержать не менее 12 символов",
            "password authentication is off on build3.example.io",
            "клавиша: F12, ключ: primary",
            "Das Passwort liegt in 1Password",
            "token es inválido",
            "APIキーは環境変数 API_KEY から読みます",
        ),
    ),
)
