"""Particular notations: values in braces, configuration blocks, labels of routers, codes in other languages."""

# ruff: noqa: E501 (a pattern is easier to read in one piece)

from __future__ import annotations

import re
from collections.abc import Iterator

from reverie.redact.entropy import is_wordy
from reverie.redact.lazy import lazy
from reverie.redact.markers import Lazy
from reverie.redact.rules.literals import is_literal, is_whole
from reverie.redact.rules.names import KEY_HINT, KEY_REST, KEY_WORD, key_strength, key_words
from reverie.redact.rules.plausible import is_password_like, is_placeholder, is_technical
from reverie.redact.rules.prose.languages import passes_for_key, passes_for_password
from reverie.redact.rules.rule import Rule, Span
from reverie.redact.rules.values import judge_named

_NAME = lazy(r"[A-Za-z0-9_.\-]+(?=[ \t]*(?:\(\))?[ \t]*\{)")
_KIND = lazy(
    r"(?i)(?:options?|settings?|config(?:uration)?|credentials?|request|provider|params?|args|dto|model|spec)$"
)


def _braced(data: bytes, match_start: int, start: int, end: int) -> Span | None:
    """Find the value of `std::string api_token{"..."}` or `new ApiTokenOptions { Value = "..." }`."""
    begin = match_start
    while begin > 0 and match_start - begin < 48 and (data[begin - 1 : begin].isalnum() or data[begin - 1] in b"_."):
        begin -= 1
    found = _NAME.search(data[begin:start].decode("utf-8", "replace"))
    name = _KIND.sub("", found.group()) if found else ""
    value = data[start:end].decode("utf-8", "replace")
    strength = key_strength(name)
    direct = data[match_start:start].rstrip(b" \t\"'").endswith(b"{")
    if not strength or not is_whole(value) or (direct and len(key_words(name)) < 2 and not passes_for_key(value)):
        return None
    return (start, end) if (judge_named(value, strength) if direct else passes_for_key(value)) else None


_BLOCKS = Lazy(
    # resource "aws_ssm_parameter" "db_token" { ... value = "..." }
    rb"(?i)\bresource[ \t]+\"[a-z0-9_]+\"[ \t]+\"([A-Za-z0-9_\-]+)\"[ \t]*\{([^{}]*)\}"
    # client 10.0.0.0/8 { secret = ... }
    rb"|\bclient[ \t]+[^\s{}]+[ \t]*\{([^{}]*)\}"
    # type: SecureString, value: ...
    rb"|(\btype[\"']?[ \t]*[:=][ \t]*[\"']?securestring\b[^{}]*)"
)
_VALUE = Lazy(
    rb"(?im)(?:^|[,;{])[ \t]*[\"']?(value|secret_string|secret|content|plaintext)[\"']?[ \t]*[:=][ \t]*[\"']?([^\s\"',;}]{4,})"
)


def _blocks(data: bytes) -> Iterator[Span]:
    """Yield the values in blocks whose name or type marks them as secret."""
    for block in _BLOCKS.finditer(data):
        yield block.start(), block.start()
        group = next(g for g in (2, 3, 4) if block.start(g) >= 0)
        name = block.group(1).decode("ascii") if group == 2 else "secret"
        inner = block.group(group)
        strength = "secret" if b"SecureString" in inner else key_strength(name)
        if strength not in ("password", "secret"):
            continue
        for value in _VALUE.finditer(data, block.start(group), min(block.end(group), block.start(group) + 2_000)):
            text = value.group(2).decode("utf-8", "replace")
            named = group != 3 or value.group(1).lower() == b"secret"
            likely = named and is_literal(text) and (passes_for_key(text) or passes_for_password(text))
            yield value.span(2) if likely else (value.start(), value.start())


def _chosen(text: str) -> bool:
    return is_literal(text) and len(text) >= 5 and is_password_like(text) and not is_technical(text)


def _seed(text: str) -> bool:
    """Whether `text` is base32 without words, in groups or one run."""
    pieces = re.split(r"[ -]", text)
    plain = "".join(pieces)
    wordy = sum(is_wordy(piece) for piece in pieces)
    return len(plain) >= 16 and not is_placeholder(plain) and wordy * 2 <= len(pieces)


def _groups(data: bytes, match_start: int, start: int, end: int) -> Span | None:
    """Find four groups of four letters, as mail services make them, on a line that mentions mail or passwords."""
    pieces = data[start:end].decode("ascii").split(" ")
    line_start = data.rfind(b"\n", 0, match_start) + 1
    line = data[max(line_start, match_start - 120) : start].lower()
    told = re.search(rb"pass|login|smtp|gmail|google|imap|mail|app-|auth", line) is not None
    return (start, end) if told and sum(map(is_wordy, pieces)) <= 1 else None


_CODES = Lazy(
    (
        r"(?i:(?:recovery|backup|scratch|rescue)_?codes?|wiederherstellungs-?codes|(?:ersatz|notfall|backup)-?codes|codes? de (?:secours|récupération|sauvegarde|backup)|códigos? de (?:recuperación|respaldo|seguridad|backup|recuperação|reserva)|"
        r"codici di (?:recupero|backup|riserva)|herstelcodes?|back-upcodes|återställningskoder|reservkoder|gendannelseskoder|gjenopprettingskoder|palautuskoodit|varakoodit|kody (?:zapasowe|odzyskiwania)|záložní kódy|"
        r"kurtarma kodlar\w*|yedek kodlar\w*|mã khôi phục|kode pemulihan)|(?:р|Р)езервн\S+ код\S*|(?:к|К)оды восстановления|(?:р|Р)езервні коди|恢复代码|恢复码|备用代码|备份码|リカバリーコード|バックアップコード|복구 코드|백업 코드"
    ).encode()
)
_CODE = Lazy(
    rb"(?:[\s,;|:=*()\[\]\"'`.-]|\xef\xbc\x9a|\b[0-9]{1,2}[.)])*([A-Za-z0-9]{3,8}(?:-[A-Za-z0-9]{3,8}){1,5}|[0-9]{4} [0-9]{4}|[0-9]{6,10}|[a-z0-9]{8,16}|[A-Z0-9]{8,16})\b"
)


def _codes(data: bytes) -> Iterator[Span]:
    """Yield each code of a list, up to the first text that is no code."""
    for words in _CODES.finditer(data):
        position = words.end()
        yield position, position
        for _ in range(40):
            code = _CODE.match(data, position, min(len(data), position + 80))
            if code is None or not any(0x30 <= c <= 0x39 for c in code.group(1)):
                break
            yield code.span(1)
            position = code.end()


RULES = (
    Rule(
        "braced-secret",
        rf"(?i:{KEY_WORD}){KEY_REST}[ \t]{{0,3}}(?:\(\))?[ \t]{{0,3}}\{{[ \t]{{0,3}}(?:[^{{}}\n\"']{{0,80}}?\b(?i:value|key|secret|token|data|content|raw)[ \t]{{0,3}}[:=][ \t]{{0,3}})?[\"']([^\"'\n]{{6,512}})[\"']",
        trigger=rf"{KEY_HINT}[ \t]*(?:\(\))?[ \t]*\{{",
        refine=_braced,
        generic=True,
        examples=(
            'std::string railway_api_token{"⟨h8⟩-⟨h4⟩-⟨h4⟩-⟨h4⟩-⟨h12⟩"};',
            'var options = new DeployTokenOptions { Value = "⟨w32⟩" };',
            'const QString dbPassword { "Copper-⟨d4⟩!" };',
        ),
        near_misses=(
            'std::string token_name{"session"};',
            'class Token { kind = "identifier"; }',
            'new ApiKeyOptions { Value = "YOUR_API_KEY" }',
            'std::string token{"identifier"};',
        ),
    ),
    Rule(
        "block-secret",
        r"(?i:securestring)",
        trigger=r"\bresource[ \t]+\"|\bclient[ \t]+[^\s{}]+[ \t]*\{|(?i:securestring)",
        locate=_blocks,
        generic=True,
        examples=(
            'resource "aws_ssm_parameter" "pager_api_key" {\n  name  = "/app/pager-api-key"\n  type  = "SecureString"\n  value = "u+⟨w18⟩"\n}',
            "client 10.52.41.92/32 {\n  secret = Walnut⟨d4⟩\n}",
            'resource "github_actions_secret" "deploy_token" {\n  repository = "app"\n  value = "⟨w40⟩"\n}',
        ),
        near_misses=(
            'resource "aws_ssm_parameter" "pager_api_key" {\n  type  = "SecureString"\n  value = var.pager_api_key\n}',
            'resource "aws_ssm_parameter" "region" {\n  type  = "String"\n  value = "eu-west-1"\n}',
            "client 10.0.0.1 {\n  shortname = switch-12\n}",
            'resource "x" "db_password" {\n  value = random_password.db2.result\n}',
        ),
    ),
    Rule(
        "wifi-label",
        r"\bWIFI:[^\n]{0,120}?\bP:((?:[^;\\\s]|\\.){4,80});"
        r"|(?i:\b(?:wpa[23]?(?:-psk)?(?:[ /]wpa[23])?[ ]key|key content|network(?: security)? key|wireless (?:security )?key|wlan-?schlüssel|netzwerkschlüssel|wlan key))[ \t]{0,24}[:=]?[ \t]{0,8}[\"']?([^\s\"']{8,63})"
        r"|(?m:^)[ \t]{1,8}option[ \t]{1,4}(?:key|password|psk|sae_password|secret)[ \t]{1,4}[\"']?([^\s\"']{5,63})",
        trigger=r"\bWIFI:|(?i:wpa[23]?[ /\-]|wpa[ ]|key content|k key|ty key|ss key|wlan-?key|wlan key|wlan-?schl|netzwerkschl)|option[ \t]+(?:key|pass|psk|sae|secret)",
        check=lambda text: _chosen(text) and not is_placeholder(text),
        examples=(
            "WIFI:T:WPA;S:Attic;P:Marble.⟨d4⟩*;;",
            "SSID Attic  WPA2 Key Saddle⟨d4⟩#  Admin 192.168.1.1",
            "    Key Content            : EclipseWalnut⟨d4⟩",
            "config wifi-iface\n    option key 'Quartz⟨d4⟩!'",
        ),
        near_misses=(
            "WIFI:T:nopass;S:Guest;;",
            "WPA2 key management is off",
            "    option key 'required'",
            "Network key: see the label",
        ),
    ),
    Rule(
        "device-line",
        r"\bcreateUser[ ][^\s]{1,64}[ ](?:SHA|MD5)[A-Za-z0-9\-]{0,6}[ ][\"']?([^\s\"']{6,64})"
        r"|\bsnmp-server user [^\n]{1,60}? auth (?:sha|md5)[0-9\-]{0,6} ([^\s]{6,64})"
        r"|\bpsk[ ][^\s]{1,64}[ ]secret[ ][\"']?([^\s\"']{5,64})"
        r"|\blftp\b[^\n]{0,80}?[ ]-u[ ]?[^\s,'\"]{1,64},[\"']([^\"'\n]{4,128})[\"']"
        r"|\brclone config (?:create|update|password)\b[^\n]{1,200}?[ ](?:pass|password|secret_access_key|token|key)[ =][\"']?([^\s\"']{5,256})"
        r"|(?m:^)[ \t]{0,8}Pass[ \t]{1,4}\"([^\"\n]{4,128})\"[ \t]{0,3}\r?(?m:$)"
        r"|\boathtool\b[^\n]{0,60}?[ ]-(?:b|-base32)[ ](?:-[a-z0-9\-]{1,10}[ ]){0,2}[\"']?([A-Za-z2-7]{16,64})\b",
        trigger=r"\bcreateUser[ ]|snmp-server user |\bpsk[ ][^\s]+[ ]secret[ ]|\blftp\b|\brclone config|\boathtool\b|\bPass[ \t]+\"",
        check=lambda text: _chosen(text) or (is_literal(text) and re.fullmatch(r"[A-Z2-7]{16,64}", text) is not None),
        examples=(
            'createUser ada SHA "zHy3⟨w4⟩+p" AES',
            "snmp-server user ada grp v3 auth sha Maple*⟨d4⟩x",
            'set vpn ipsec authentication psk peer1 secret "Maple@⟨d4⟩"',
            "lftp -u ada,'Maple,⟨d4⟩?x' ftp://example.org",
            "rclone config create nas webdav url https://example.org user ada pass 'Maple?⟨d4⟩*x'",
            "oathtool --totp -b ⟨k16⟩",
            'IMAPAccount work\nUser ada\nPass "Maple,⟨d4⟩|x"',
        ),
        near_misses=(
            "createUser ada SHA authpass AES",
            "rclone config create nas webdav url https://example.org user ada",
            "lftp -u ada ftp://example.org",
        ),
    ),
    Rule(
        "setup-key",
        r"(?i:\b(?:enter|type|copy|paste|use|add)\b[^\n:]{0,50}\b(?:key|code|secret)\b[^\n:]{0,30}:|\bsetup key\b[^\n:]{0,30}[: ]|\bsecret key(?: is)?[: ]{1,2})[ ]{0,3}[\"'`]?((?:[A-Z2-7]{4}[ \-]){3,15}[A-Z2-7]{2,4}|(?:[a-z2-7]{4}[ \-]){3,15}[a-z2-7]{2,4}|[A-Z2-7]{16,64})\b",
        trigger=r"(?i:\bsetup key\b|\bsecret key\b|\b(?:key|code|secret)\b[^\n:]*:)",
        check=_seed,
        generic=True,
        apart=True,
        examples=(
            "Can't scan it? Enter this key: xq5z uk4b hf7j num3 wp3x fwhd g5yv jev6",
            "Your new secret key is: ⟨k15⟩7",
        ),
        near_misses=(
            "Enter this code: from your mail",
            "Use the key: this will take some time when they come back",
        ),
    ),
    Rule(
        "grouped-password",
        r"[:=\"'`(][ ]{0,2}[\"'`]?((?:[a-z]{4}[ ]){3}[a-z]{4})(?:[\"'`\s.,;)]|$)",
        trigger=r"[:=\"'`(][ ]*[\"'`]?[a-z]{4}[ ][a-z]{4}[ ][a-z]{4}[ ][a-z]{4}\b",
        refine=_groups,
        examples=('server.login("ada@example.org", "xqzj kvwp zzqk hjxw")', "Gmail App-Passwort: xqzj kvwp zzqk hjxw"),
        near_misses=('print("login page must load fast")', 'mail: "this text says nothing"'),
    ),
    Rule(
        "code-list",
        r"(?i:codes?)",
        trigger=r"(?i:(?:recovery|backup)_?codes?|scratch_?codes|rescue_?codes|(?:lungs|ersatz|notfall|backup)-?codes|codes? de [srb]|digos? de |codici di |herstelcode|upcodes|koder\b|koodit\b|kody |kódy|kodlar|mã khôi|kode pem)|езервн|оды восст|恢复|备用代码|备份码|ーコード|구 코드|업 코드",
        locate=_codes,
        examples=(
            "recovery_codes:\n  - ⟨h4⟩1-⟨h5⟩\n  - ⟨h4⟩2-⟨h5⟩",
            '{"backup_codes":["⟨h4⟩1-⟨h5⟩","⟨h4⟩2-⟨h5⟩"]}',
            "Wiederherstellungscodes: ⟨h4⟩1-⟨h5⟩ ⟨h4⟩2-⟨h5⟩",
            "Códigos de recuperación: ⟨d8⟩, ⟨d8⟩",
        ),
        near_misses=("recovery_codes: []", "Wiederherstellungscodes liegen im Tresor", "backup_codes_count: 10"),
    ),
    Rule(
        "spelled-password",
        r"(?i:\b(?:password|passphrase|passcode|pin))(?:,[ ]is|[ ]is,[^\n,]{1,40},)[:,]?[ ][\"'`]?([^\s,\"'`]{6,128})",
        trigger=r"(?i:\b(?:password|passphrase|passcode|pin))(?:,[ ]is|[ ]is,)",
        check=passes_for_password,
        generic=True,
        examples=(
            "so the password is, all one word, copper-maple-⟨d2⟩, got it?",
            "the master password, is Copper-⟨d4⟩*",
        ),
        near_misses=("the password is, as you know, forgotten", "your password, is it secure2?"),
    ),
)
