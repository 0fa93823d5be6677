"""Secrets told in other languages than English: the words, how they join a value, and what passes for one."""

# ruff: noqa: E501 (a pattern is easier to read in one piece)

from __future__ import annotations

import re
from collections.abc import Iterator

from reverie.redact.entropy import remembered, word_share, words
from reverie.redact.markers import Lazy
from reverie.redact.patterns.literals import is_random, is_whole
from reverie.redact.patterns.plausible import (
    is_code,
    is_location,
    is_password_like,
    is_placeholder,
    is_scramble,
    is_term,
)
from reverie.redact.patterns.rule import Rule, Span

# Bytes are compared, so letters beyond ASCII are written in both cases where they may begin a word.
PASSWORDS = (
    r"(?i:passw(?:ort|ört|oord)|kennwort|mots? de passe|\bmdp\b|phrase de passe|contrase(?:ñ|n)a|\bclave\b|\bsenha|palavra[- ]passe|frase[- ]passe|parola|parolă|"
    r"wachtwoord|l(?:ö|o)senord|adgangskode|kodeord|passord|salasana|has(?:ł|l)(?:o|a|em)\b|\bhesl(?:o|a|em)\b|jelsz(?:ó|o|a)|(?:ş|\bs)ifre|mật khẩu|\bmat khau|kata sandi|\bsandi\b|contrasenya)|"
    r"Şifre|Mật khẩu|(?:п|П)арол|ПАРОЛЬ|(?:к|К)одов(?:ая|а) фраза|(?:κ|Κ)ωδικ(?:ό|ο)|(?:σ|Σ)υνθηματικ|كلمة (?:ال)?(?:مرور|سر)|كلمة السر|الرقم السري|סיסמ|ססמ|पासवर्ड|"
    r"密码|密碼|口令|パスワード|パスフレーズ|合言葉|비밀번호|비번|패스워드|암호"
)
KEYS = (
    r"(?i:schl(?:ü|ue)ssel|\bcl(?:é|ef)s?\b|\bcl(?:é)|\bjeton|\bclave\b|\bchave\b|\bchiave\b|sleutel|nyckel|n(?:ø|o)gle|n(?:ø|o)kkel|"
    r"avain\b|avaimeni|\bklucz|\bklíč|kulcs|\bchei(?:e|a)\b|anahtar|\bkhóa|\bkhoá|\bmã (?:truy|bí|api|thông)|\bkunci\b|"
    r"(?:zugriffs|zugangs|toegangs|adgangs|tilgangs|tkomst)-?token)|"
    r"(?:к|К)люч|(?:т|Т)окен|(?:с|С)екрет|(?:κ|Κ)λειδ|(?:δ|Δ)ιακριτικ|(?:μ|Μ)υστικ|مفتاح|رمز|توكن|מפתח|אסימון|טוקן|कुंजी|टोकन|सीक्रेट|"
    r"密钥|密鑰|秘钥|密匙|私钥|金鑰|令牌|權杖|权杖|凭证|キー|トークン|シークレット|秘密鍵|키|토큰|시크릿"
)
_PINS = r"(?i:\bPIN(?:[- ]?(?:code|kod|kode|koodi|nummer|nr\.?|numero|número))?\b)|(?:к|К)од доступа|(?:п|П)ин-?код|ПИН|暗証番号"
# Taken over into every language; in English, other rules look after them.
_BORROWED = r"(?i:\b(?:token|secret|api[ -]?key|password))"
# For the trigger: as few letters as tell a word, and no borders, which cost states.
_HINT = (
    r"(?i:passw(?:ort|ört|oord)|passe\b|passord|kennwort|\bmdp\b|contrase|clave|senha|parol|wachtwoord|l(?:ö|o)senord|gangskode|kodeord|salasana|hasł|haslo|heslo|jelsz|ifre|khẩu|khau|sandi|"
    r"schl(?:ü|ue)ssel|\bcl(?:é|ef)|jeton|chave|chiave|sleutel|nyckel|n(?:ø|o)gle|n(?:ø|o)kkel|avai[nm]|klucz|klíč|kulcs|chei[ea]\b|anahtar|khóa|khoá|mã |kunci|(?:s|st)-?token|(?:token|secret|api[ -]?key|password)[ \t'\x80-\xff]|pin\b)|"
    r"арол|АРОЛ|фраза|люч|окен|екрет|ПИН|код доступа|ин-код|ωδικ|νθηματικ|λειδ|ιακριτικ|υστικ|كلمة|الرقم السري|مفتاح|رمز|توكن|סיסמ|ססמ|מפתח|אסימון|טוקן|पासवर्ड|कुंजी|टोकन|सीक्रेट|"
    r"密|口令|秘钥|私钥|金鑰|令牌|權杖|权杖|凭证|パス|合言葉|暗証番号|キー|トークン|シークレット|秘密鍵|비밀번호|비번|패스워드|암호|키|토큰|시크릿"
)
_WORD = Lazy(f"({PASSWORDS})|({KEYS})|({_PINS})|({_BORROWED})".encode())

_IS = words(
    """
    ist lautet lauten heißt war jetzt nun neu est sera es será é è e' era är er on je byl bylo jest to este είναι
    c'est это є هو هي הוא היא זה है हैं là adalah ialah yaitu is now olarak değeri jetzt: devient lyder blir on:
    """
)
# English has these, too: behind an English word they join nothing.
_ENGLISH = frozenset({"is", "to", "on", "now"})
_TO = words(
    "на в у auf zu a en à para por in su di till til na do naar la în pe σε إلى الى ל ל- thành sang jadi menjadi ke muotoon"
)
_CHANGED = re.compile(
    r"(?i)cambi|changé|changer|modifi|mud(?:ei|ou|ar|amos)|alter(?:ei|ou|ar)|troqu|troc|änder|gesetzt|setze|stell|wechsel|bytt|byt(?:er|te|a)|ändra|endret|ændre|skift|satt|"
    r"zmien|zmień|ustaw|změn|zmen|nastav|schimb|setat|pus|değiş|vaihd|asetin|změ|verander|gewijzigd|wijzig|ingesteld|mis[eo]? |impost|puse|puesto|ponte|coloqu|defini|"
    r"смен|помен|измен|змін|поставил|задал|άλλαξα|όρισα|غير|שינ|החלפ|đổi|ganti|ubah"
)
# What makes the word before or behind it something that may be read by all.
_OPEN = re.compile(
    r"(?i)public|öffentlich|publique|públic|pubblic|openba|offentlig|offentlege|julki|veřejn|nyilvános|açık|ortak|открыт|публичн|відкрит|δημόσι|عام|公開|公开|公钥|公鑰|공개|công khai|publik|"
    r"fingerprint|abdruck|empreinte|primär|primar|primär|primaire|fremd|foreign|étrang|hash|commit|\bsha|checksum|prüfsumme|\bid\b|-id\b|cache|erreur|error|fehler"
)
_CANDIDATE = re.compile(rb"[!#-&(-;=?-_a-~]{4,256}")
_LEADING = b":=([*{,"
_SIGNS = (":", "=", "\uff1a", "\uff1d", "→", "—", "–", "->", "=>", " -", "»")
_PARTICLES = "はがを是为為는은이가를을로成"
_QUOTES = " \t\"'`«»„“”‚‘’「『(*[<"
_REACH = 140
_ESCAPE = re.compile(rb"\\[nrt\"]")
_STOP = re.compile(r"[.;!?。][ \n]|[.;!?。]$")


@remembered
def passes_for_password(text: str) -> bool:
    """Chosen by somebody: a digit among letters, a symbol within, or several words written as one."""
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
    """Made by a machine."""
    if len(text) < 12 or not is_whole(text) or is_location(text) or is_term(text) or is_code(text) or "://" in text:
        return False
    if re.fullmatch(r"[a-z]+(?:[_-][a-z]+)+\d{0,3}", text):
        return False  # A name.
    return is_random(text) or is_scramble(text) or (text.startswith("base64:") and is_random(text[7:]))


def _joins(between: str, *, english: bool, value: str, line: str) -> bool:
    """Whether what stands between the word and the value says that the one is the other."""
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
    # `Şifrem ...`, `das Passwort „...“`, `パスワードを...に`: only an ending, and at once the value.
    return not english and len(bare) <= 6 and between[:1] not in " \t,;.(" and not any(c in bare for c in " .;")


def _abroad(data: bytes) -> Iterator[Span]:
    done = 0
    for word in _WORD.finditer(data):
        begin, end = word.span()
        if begin < done:
            continue
        stop = data.find(b"\n", end, end + _REACH)
        stop = min(len(data), end + _REACH) if stop < 0 else stop
        span = _value(data, begin, end, stop, next(g for g in range(1, 5) if word.start(g) >= 0))
        if span is not None:
            yield span
            done = span[1]


def _value(data: bytes, begin: int, end: int, stop: int, group: int) -> Span | None:
    text = data[begin:end].decode("utf-8", "replace").lower()
    line_start = data.rfind(b"\n", max(0, begin - 80), begin) + 1 or max(0, begin - 80)
    line = data[line_start:stop].decode("utf-8", "replace")
    english = False
    if group == 4:
        following = data[end : end + 1]
        if (following not in b" \t'" and following < b"\x80") or data[begin - 1 : begin] in (
            b"-",
            b".",
            b"/",
            b'"',
            b"'",
        ):
            return None  # Part of a name.
        english = line.isascii() or not any(c.isalpha() and not c.isascii() for c in line)
        group = 1 if text == "password" else 2
    for found in _CANDIDATE.finditer(data, end, stop):
        start, finish = found.span()
        while start < finish and data[start] in _LEADING:
            start += 1
        if finish == stop:
            whole = _CANDIDATE.match(data, start)
            finish = whole.end() if whole else finish
        between = data[end:start].decode("utf-8", "replace")
        if _STOP.search(between[:-1]) or between.startswith((" chiave", " clé", "-clé")):
            return None
        kept = _ESCAPE.split(data[start:finish], maxsplit=1)[0].rstrip(b".,;:)]}>`'\"")
        value = kept.decode("ascii", "replace")
        if group == 3 or (group == 1 and value.isdigit()):
            likely = (
                re.fullmatch(r"\d{4,8}" if group == 3 else r"\d{6,12}", value) is not None and between.strip() != ""
            )
        elif group == 2 and (
            text != "clave" or re.match(r"(?i) (?:de |del? )?(?:api|acceso|secreta|privada)", between)
        ):
            likely = passes_for_key(value) and not _OPEN.search(line[: max(0, start - line_start)])
        else:
            likely = passes_for_password(value) or (passes_for_key(value) and word_share(value) < 0.3)
        if likely and _joins(between, english=english, value=value, line=line):
            return start, start + len(kept)
    return None


RULES = (
    Rule(
        "foreign-secret",
        PASSWORDS,
        trigger=_HINT,
        locate=_abroad,
        generic=True,
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
            "code PIN : ⟨d4⟩",
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
