"""Secrets as arguments: next to a user's flag, piped in, in lines of a router's configuration, in a query's values."""

# ruff: noqa: E501 (a pattern is easier to read in one piece)

from __future__ import annotations

import re
from collections.abc import Iterator

from reverie.redact.markers import Lazy
from reverie.redact.rules.literals import is_argument
from reverie.redact.rules.names import KEY_HINT, KEY_REST, KEY_WORD, key_strength, key_words
from reverie.redact.rules.plausible import is_password_like, is_random_value, is_technical, is_told_value
from reverie.redact.rules.rule import Rule, Span
from reverie.redact.rules.values import judge_named


def _chosen(text: str) -> bool:
    """Whether `text` is a literal that reads like a password, not a port, a path or a name."""
    return (
        is_argument(text) and len(text) >= 5 and is_password_like(text) and not is_technical(text) and "/" not in text
    )


def _told(text: str) -> bool:
    return is_argument(text) and is_told_value(text)


def _named(data: bytes, match_start: int, start: int, end: int) -> Span | None:
    """Find the value after an identifier (`app_api_token`), not after words of a sentence."""
    found = re.search(rb"[A-Za-z0-9_.\-]+(?=[\"'` \t]*\Z)", data[match_start:start])
    key = found.group().decode("ascii").lstrip("-") if found else ""
    kept = data[start:end].rstrip(b".,;:)]}>*`'\"")
    value = kept.decode("utf-8", "replace")
    strength = key_strength(key)
    if not strength or len(key_words(key)) < 2 or not _told(value):
        return None
    is_name = re.fullmatch(r"[a-z]+(?:_[a-z]+)+\d?", value)
    likely = is_random_value(value) or (strength == "password" and is_password_like(value) and not is_name)
    return (start, start + len(kept)) if likely else None


def _parameter(data: bytes, match_start: int, start: int, end: int) -> Span | None:
    """Find the value of `--name /prod/db_password --value ...`, judged by the name."""
    words = data[match_start:start].decode("utf-8", "replace")
    value = data[start:end].decode("utf-8", "replace")
    name = re.search(r"(?:--name|-n|set|put|add)[ =][\"']?(?:[^\s\"']*/)?([A-Za-z0-9_.\-]+)", words)
    strength = "secret" if "secret" in words else key_strength(name.group(1)) if name else ""
    if not strength or not is_argument(value):
        return None
    return (start, end) if judge_named(value, strength) or _chosen(value) else None


_INSERT = Lazy(rb"(?i)\binsert\s{1,4}into\s{1,4}[^\s(]{1,100}\s{0,4}\(([^()\n]{1,600})\)\s{0,4}values?\s{0,4}")
_TUPLE = Lazy(rb"\(((?:[^()'\n]|'[^'\n]*'|\([^()\n]*\))+)\)\s{0,4},?\s{0,4}")
_CELL = Lazy(rb"(?:[^,'\n]|'[^'\n]*')+")


def _inserted(data: bytes) -> Iterator[Span]:
    """Yield the literals that an INSERT puts into a column of passwords or tokens."""
    for insert in _INSERT.finditer(data):
        yield insert.start(), insert.start()
        columns = [c.strip().strip(b'`"[]').decode("utf-8", "replace") for c in insert.group(1).split(b",")]
        wanted = {i: strength for i, c in enumerate(columns) if (strength := key_strength(c))}
        position = insert.end()
        while wanted and (row := _TUPLE.match(data, position)) is not None:
            position = row.end()
            for i, cell in enumerate(_CELL.finditer(data, row.start(1), row.end(1))):
                literal = cell.group().strip()
                yield cell.start(), cell.start()
                if i in wanted and literal[:1] == b"'" and literal[-1:] == b"'" and len(literal) > 5:
                    start = cell.start() + cell.group().index(b"'") + 1
                    if judge_named(literal[1:-1].decode("utf-8", "replace"), wanted[i]):
                        yield start, start + len(literal) - 2


_LISTED = Lazy(
    rb"\bchpasswd:\s{0,20}(?:expire:[^\n]{0,20}\s{1,20})?(?:list|users):[ \t]{0,3}\|?-?[ \t]{0,3}\r?\n((?:[ \t]+(?:- )?[A-Za-z0-9_.\-]+:[^\s:]+[ \t]*(?:\r?\n|\z))+)"
)
_LISTED_ROW = Lazy(rb"[ \t]+(?:- )?[A-Za-z0-9_.\-]{1,32}:([^\s:]{4,128})[ \t]*(?:\r?\n|\z)")
_INLINE = Lazy(rb"<auth-user-pass>\s{0,8}[^\s<]{1,64}[ \t]{0,3}\r?\n[ \t]{0,8}([^\s<]{4,128})")


def _listed(data: bytes) -> Iterator[Span]:
    """Yield passwords of users in cloud-init, and the second line of an inline VPN login."""
    for block in _LISTED.finditer(data):
        for row in _LISTED_ROW.finditer(data, block.start(1), block.end(1)):
            likely = is_argument(row.group(1).decode("utf-8", "replace"))
            yield row.span(1) if likely else (row.start(), row.start())
    for login in _INLINE.finditer(data):
        if is_argument(login.group(1).decode("utf-8", "replace")):
            yield login.span(1)


_VALUE = r"[\"']?([^\s\"'\-$|<>][^\s\"'|<>]{3,256})"
_USER_FLAG = r"[ ](?:-(?:u|U|l|D)[ =]?|--?(?:user|username|login|account|email)[ =])[\"']?[^\s\-][^\s]{0,80}"

RULES = (
    Rule(
        "user-flag-password",
        rf"{_USER_FLAG}[ ](?:[^\n|]{{0,80}}?[ ])?(?:-(?:p|P|w|W)[ =]?|--?(?:pass|passwd|pwd)[ =]){_VALUE}"
        rf"|[ ]-[uU][ ]?[\"']?[A-Za-z0-9_.@\\\-]{{1,64}}%[\"']?([^\s\"',|]{{4,128}})"
        r"|\b(?:lftp|open|mirror)[ ](?:[^\n|]{0,80}?[ ])?-u[ ]?[\"']?[A-Za-z0-9_.@\\\-]{1,64},[\"']?([^\s\"'|]{4,128})"
        r"|[ ]/u(?:ser)?:[^\s]{1,80}[ ](?:[^\n]{0,60}?[ ])?/p(?:ass|assword)?:[\"']?([^\s\"']{4,128})",
        trigger=r"[ ]-(?:p|P|w|W|-?pass|-?passwd|-?pwd)[ =]?[\"']?[^\s\"'\-$|<>]|[ ]-[uU][ ]?[\"']?[A-Za-z0-9_.@\\\-]+[%,][\"']?[^\s\"',|]|[ ]/u(?:ser)?:",
        check=_chosen,
        examples=(
            "cqlsh -u app -p ⟨w11⟩7 db1",
            "rdesktop -u bob -p '⟨w11⟩7' host",
            "smbclient //nas/share -U bob%⟨w11⟩7",
            "lftp -u bob,⟨w11⟩7 sftp://host",
            "lftp -u bob,'Maple!Horse8x' sftp://host",
            "smbclient //nas/share -U 'bob%Maple%Horse^8x'",
            "xfreerdp /u:bob /p:⟨w11⟩7 /v:host",
        ),
        near_misses=(
            "docker run -u 1000 -p 8080:80 nginx",
            "ssh -l bob -p 2222 host",
            "mkdir -p build/out1",
            "tool -u bob -p $PASSWORD",
            "rsync -u a/b -p c/d1",
            "ps -u root,www-data1",
        ),
    ),
    Rule(
        "piped-secret",
        rf"\b(?:echo|printf)[ ](?:-n[ ]|-e[ ]|'%s'[ ]|%s[ ])?[\"']?([^\s\"'\-$|<>][^\s\"'|<>]{{3,512}})[\"']?[ ]{{0,3}}(?:\|[^\n]{{0,80}}?|>>?[ ]?[^\s]{{0,60}})(?i:secret|passw|token|login|api[_\-]?key|{KEY_WORD})",
        trigger=r"\b(?:echo|printf)[ ]",
        check=_told,
        price=30,
        examples=(
            'echo "⟨w32⟩" | vercel env add SERVICE_API_KEY',
            "echo -n ⟨w16⟩ | kubectl create secret generic x --from-file=pw=/dev/stdin",
            "echo ⟨h40⟩ > .token",
        ),
        near_misses=("echo hello | grep token", "echo $TOKEN | gh auth login", "echo done > secrets.log"),
    ),
    Rule(
        "parameter-secret",
        rf"(?:\bput-parameter\b|\bsecret(?:s|smanager)?[ ](?:set|put|create|add|create-secret|put-secret-value)\b|\bsecretsmanager\b|\bkeyvault secret\b|\bparam(?:eter)?s?[ ](?:set|put|add)\b|\benv[ ](?:set|add)\b)[^\n]{{0,160}}?[ ](?:--(?:value|body|secret-string|data|secret-value|payload)|-[bv])[ =]{_VALUE}"
        rf"|[ ]--name[ =][^\s]{{0,80}}(?i:{KEY_WORD}){KEY_REST}[\"']?[ ](?:[^\n]{{0,80}}?[ ])?--value[ =]{_VALUE}",
        trigger=r"[ ](?:--(?:value|body|secret-string|data|secret-value|payload)|-[bv])[ =]",
        refine=_parameter,
        examples=(
            "aws ssm put-parameter --name /prod/db_password --value ⟨w14⟩ --type SecureString",
            'gh secret set service.token --body "⟨h40⟩"',
            "az keyvault secret set --vault-name v --name x --value ⟨w20⟩",
            "aws secretsmanager create-secret --name x --secret-string ⟨w20⟩",
        ),
        near_misses=(
            "aws ssm put-parameter --name /prod/log_level --value debug --type String",
            "gh secret set NPM_TOKEN --body $NPM_TOKEN",
            "tool --name token_count --value 4096",
        ),
    ),
    Rule(
        "spoken-name-secret",
        rf"(?m:^|[\s\"'`(\-])[A-Za-z0-9_.\-]{{0,40}}[A-Za-z0-9][_.\-](?i:{KEY_WORD}){KEY_REST}[ \t]{{1,3}}[\"'`]?([A-Za-z0-9_\-+/=.~!@#%^*]{{10,256}})",
        trigger=rf"[_.\-][A-Za-z0-9_.\-]*{KEY_HINT}[ \t]+[\"'`]?[A-Za-z0-9_\-+/=.~!@#%^*]{{10}}",
        refine=_named,
        generic=True,
        examples=(
            "rclone config create x s3 secret_access_key ⟨b40⟩",
            "deploy --segment.secret ⟨h40⟩ --dry-run",
            "ENV weather-api-key ⟨w32⟩",
        ),
        near_misses=(
            "the access_token parameter-of-the-request",
            "rename user_password password_digest2",
            "token-service 7d9f8b6c5d-x2x9q",
            "update api_key_header X-Api-Key-V2",
        ),
    ),
    Rule(
        "command-argument",
        r"\b(?:useradd|usermod|adduser)\b[^\n|]{0,120}?[ ](?:-p|--password)[ =][\"']?([^\s\"'\-$][^\s\"']{3,128})"
        r"|\bwpa_passphrase[ ][^\s]{1,64}[ ][\"']?([^\s\"'<$]{8,63})"
        r"|\bssh-keygen\b[^\n]{0,160}?[ ]-[NP][ ]?[\"']?([^\s\"'\-$][^\s\"']{3,128})"
        r"|\b(?:auth|login)\b[^\n|]{0,80}?[ ](?:-t|-k|-T)[ =][\"']?([^\s\"'\-$][^\s\"']{15,256})"
        r"|\bmc[ ](?:alias|config host)[ ](?:set|add)[ ][^\s]{1,64}[ ][^\s]{1,200}[ ][^\s]{3,128}[ ][\"']?([^\s\"'\-$][^\s\"']{7,128})"
        r"|\bchpasswd\b[ ]{0,2}<<<[ ]{0,2}[\"']?[A-Za-z0-9_.\-]{1,32}:([^\s\"'$:][^\s\"']{3,128})"
        r"|[ ]--?[A-Za-z_]{0,16}pass(?:word|phrase)?[_-](?:command|cmd)[ =][\"']?(?:echo|printf)[ ](?:-n[ ])?[\"']?([^\s\"'$]{4,128})"
        r"|(?i:convertto-securestring)(?:[ ]-[A-Za-z]{2,20}){0,3}[ ]\\{0,2}[\"']?([^\s\"'$\-\\][^\s\"'\\]{4,128})"
        r"|\bsnmp[a-z]{2,10}\b[^\n]{0,160}?[ ]-[AX][ ]?[\"']?([^\s\"'\-$][^\s\"']{6,128})"
        r"|\bbundle config[ ](?:set[ ])?(?:--[a-z]{3,10}[ ])?[^\s]{1,100}[ ][\"']?[A-Za-z0-9_.@\-]{1,64}:([^\s\"'$]{6,128})"
        r"|\b[A-Za-z0-9_]{1,30}/([^\s/@\"'$]{4,100})@(?://)?[A-Za-z0-9.\-]{1,100}:[0-9]{4,5}/"
        r"|\"(?:github|gitlab|bitbucket)-(?:oauth|token|domains)\"[ ]{0,3}:[ ]{0,3}\{[^}\n]{0,100}?:[ ]{0,3}\"([^\"\n]{16,128})\""
        r"|\bACL[ ]SETUSER\b[^\n]{0,80}?[ ]>([^\s\"']{4,256})"
        r"|\b(?i:identified)\s{1,3}(?i:with|via)\s{1,3}[\"'`]?[A-Za-z0-9_]{3,40}[\"'`]?\s{1,3}(?i:by|as|using)\s{1,3}[\"']([^\"'\n]{4,128})[\"']"
        r"|\b(?i:identified\s{1,3}by)\s{1,3}(?:\"([^\"\n]{4,128})\"|([^\s\"'`();$]{4,128}))",
        trigger=r"\b(?:useradd|usermod|adduser|ssh-keygen|chpasswd|snmp[a-z]+)\b|\bwpa_passphrase[ ]|[ ]-[tkT][ =]|\bmc[ ](?:alias|config host)[ ]|pass(?:word|phrase)?[_-](?:command|cmd)[ =]|(?i:convertto-securestring)|\bbundle config[ ]|/[^\s/@]+@(?://)?[A-Za-z0-9.\-]+:[0-9]{4,5}/|\"(?:github|gitlab|bitbucket)-(?:oauth|token|domains)\"|\bACL[ ]SETUSER\b|\b(?i:identified)\s+(?i:with|via|by)\s",
        check=lambda text: is_argument(text) and (is_password_like(text) or is_random_value(text)),
        examples=(
            "useradd -p ⟨w12⟩7 bob",
            "wpa_passphrase home ⟨w12⟩",
            'ssh-keygen -t ed25519 -N "⟨w12⟩7" -f k',
            "doctl auth init -t ⟨h64⟩",
            "mc alias set m https://minio.example.org admin1 ⟨w24⟩7",
            'chpasswd <<< "bob:⟨w12⟩7"',
            "restic --password-command 'echo ⟨w12⟩7' backup",
            "ConvertTo-SecureString -String -Force ⟨w12⟩7",
            "ACL SETUSER bob on >⟨w12⟩7 ~*",
            "snmpwalk -v3 -u bob -l authPriv -a SHA -A ⟨w12⟩7 host",
            "bundle config gems.example.org bob:⟨w12⟩7",
            "app/⟨w12⟩7@//ora:1521/ORCL",
            '"github-oauth": { "github.com": "⟨h40⟩" }',
            "ALTER USER bob IDENTIFIED WITH mysql_native_password BY '⟨w12⟩7';",
            'CREATE USER app IDENTIFIED BY "⟨w12⟩7"',
        ),
        near_misses=(
            "ssh-keygen -t ed25519 -N '' -f k",
            "ssh-keygen -t rsa -b 4096 -C bob@example.org",
            "useradd -m -s /bin/bash bob",
            "ConvertTo-SecureString $secret",
            "the suspect was identified by witnesses",
            "a direction identified by `dir`.",
            "docker login -t registry",
        ),
    ),
    Rule(
        "network-config-secret",
        r"(?:(?m:^)|[\"'`|>:]|\\n)[ \t]{0,8}(?:snmp-server community|set snmp community|rootpw(?: --plaintext)?|pac key [0-7]|(?:tacacs|radius)-server (?:host [^\s]{1,60} )?key(?: [0-7])?|key-string(?: [0-7])?|crypto isakmp key|(?:ppp chap|neighbor [^\s]{1,60}) password(?: [0-7])?|enable (?:password|secret)(?: level [0-9]{1,2})?(?: [0-9])?|username [^\s]{1,60} (?:privilege [0-9]{1,2} )?(?:password|secret)(?: [0-9])?|wpa-psk (?:ascii|hex)(?: [0-9])?|option (?:key|password|psk)|(?:set security ike policy [^\s]{1,60} )?pre-shared-key(?: (?:local|remote|ascii-text|address [^\s]{1,60}))?(?: key)?)[ \t]{1,4}[\"']?([^\s\"'<>$]{4,128})",
        trigger=r"(?:\bcommunity|rootpw|--plaintext|\bpac key|-server [^\n]*key|key-string|isakmp key|chap password|neighbor [^\s]+ password|enable (?:password|secret)|username [^\s]+ [^\n]*(?:password|secret)|wpa-psk|option (?:key|password|psk)|pre-shared-key)[ \t]",
        check=lambda text: is_argument(text) and (any(c.isdigit() for c in text) or is_password_like(text)),
        examples=(
            "snmp-server community ⟨w10⟩7 RO",
            "pac key 7 ⟨H12⟩",
            "username admin password 0 ⟨w10⟩7",
            "enable password ⟨w10⟩7",
            "rootpw ⟨w10⟩7",
            " key-string 7 ⟨H14⟩",
            'set security ike policy p1 pre-shared-key ascii-text "Maple!Horse8x"',
            "\toption key 'Maple_Horse@76^Q'",
        ),
        near_misses=(
            "snmp-server community public RO",
            "enable password encryption",
            "username bob password policy",
            "rootpw --lock",
        ),
    ),
    Rule(
        "listed-password",
        r"chpasswd",
        trigger=r"\bchpasswd:|<auth-user-pass>",
        locate=_listed,
        examples=(
            "chpasswd:\n  list: |\n    root:⟨w14⟩\n  expire: false",
            "<auth-user-pass>\nbob\n⟨w14⟩\n</auth-user-pass>",
        ),
        near_misses=("chpasswd:\n  expire: false\n",),
    ),
    Rule(
        "inserted-secret",
        r"(?i)\binsert\s",
        trigger=r"(?i)\binsert\s+into\b",
        locate=_inserted,
        generic=True,
        examples=("INSERT INTO users (name, password, age) VALUES ('bob', '⟨w12⟩7', 4), ('eve', '⟨w12⟩8', 5);",),
        near_misses=(
            "INSERT INTO users (name, password) VALUES ('bob', ?)",
            "INSERT INTO logs (sha, note) VALUES ('⟨h40⟩', 'ok')",
            "INSERT INTO users (name, password) VALUES ('bob', crypt($1, gen_salt('bf')))",
        ),
    ),
)
