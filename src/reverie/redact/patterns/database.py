"""Passwords in addresses, connection files and commands."""

# ruff: noqa: E501 (a pattern is easier to read in one piece)

from __future__ import annotations

import re

from reverie.redact.entropy import is_wordy, looks_random, words
from reverie.redact.patterns.plausible import is_code, is_placeholder, without_markers
from reverie.redact.patterns.rule import Rule, Span

_STAND_INS = words(
    """
    password pass passwd pwd pw secret token xxx xxxx xxxxx redacted hidden user username pswd mypassword
    yourpassword
    """
)


def _real(text: str) -> bool:
    """Not a stand-in such as `user:password@host` in a manual."""
    rest = without_markers(text)
    if not rest or (rest != text.strip(" \t.,;:!?)]}>\"'`") and len(rest) < 4):
        return False
    if re.match(r"[ \t]*[,:;)\]=]", text):
        return False  # The quote closed something: `'--password', help='...'`.
    return text.lower() not in _STAND_INS and not is_placeholder(text) and not re.match(r"[.…*x]+$", text, re.I)


def _real_literal(text: str) -> bool:
    return _real(text) and not is_code(text) and not text.startswith("-")


def _pgpass(data: bytes, match_start: int, start: int, end: int) -> Span | None:
    """Host, port, database, user and password; not a file, a line, a column and a message."""
    text = data[start:end].decode("utf-8", "replace")
    host, _, database = data[match_start:start].decode("utf-8", "replace").split(":")[:3]
    if database.isdigit() or re.search(r"\.(?:[jt]sx?|py|go|rs|rb|java|kt|c|h|cc|cpp|cs|php|sh)$", host):
        return None
    likely = (any(c.isdigit() for c in text) or not text.isalpha()) and not text.isdigit()
    return (start, end) if likely and _real(text) else None


def _is_word(text: str) -> bool:
    return text.isalpha() and text.islower() and (len(text) < 9 or is_wordy(text))


_DATABASE = (
    r"postgres(?:ql)?|pgsql|mysql[a-z0-9]{0,3}|mariadb|mongodb|redis[s]?|rediss|valkey|amqps?|mssql|sqlserver|oracle|db2|cockroachdb|"
    r"clickhouse|cassandra|neo4j|bolt|couchdb|ldaps?|smtps?|imaps?|ftps?|sftp|mqtts?|nats|kafka|influxdb|snowflake|presto|trino|"
    r"redshift|vertica|sybase|hive|elasticsearch|es|sqlalchemy|ssh|smb|rtsp|memcached|postgresql\+[a-z0-9]{2,12}|mysql\+[a-z0-9]{2,12}|"
    r"mongodb\+srv|redis\+[a-z]{2,10}|mssql\+[a-z0-9]{2,12}|oracle\+[a-z_]{2,12}"
)

RULES = (
    Rule(
        "database-url-password",
        rf"(?i:\b(?:{_DATABASE}))://(?:[^\s/:@\"'<>]{{1,64}}@)?[^\s/:@\"'<>]{{0,100}}:([^\s\"'<>]{{1,200}})@[A-Za-z0-9\[$%{{(]",
        trigger=r"://[^\s/:\"'<>]*:[^\s\"'<>]",
        check=_real,
        examples=(
            "postgres://app:⟨w12⟩@db.internal:5432/app",
            "mongodb+srv://admin:⟨w16⟩@cluster0.mongodb.net/test",
            "redis://:⟨w20⟩@cache:6379/0",
            "postgresql+psycopg://svc:p%40ss⟨w6⟩@h/db",
            "mysql://root:hunter2@127.0.0.1/shop",
            "amqp://guest:s3cr/et@mq:5672/vhost",
        ),
        near_misses=(
            "postgres://user:password@localhost/db",
            "postgres://user:${PGPASSWORD}@localhost/db",
            "redis://localhost:6379/0",
            "postgres://localhost:5432/app",
        ),
    ),
    Rule(
        "url-password",
        r"\b[a-zA-Z][a-zA-Z0-9+.\-]{1,20}://[^\s/:@\"'<>?#]{0,100}:([^\s\"'<>/]{1,200})@[A-Za-z0-9\[$%{(]",
        trigger=r"://[^\s/:@\"'<>?#]*:[^\s\"'<>/]*@",
        check=_real,
        examples=("https://bob:⟨w12⟩@git.example.org/r.git", "http://proxy-user:⟨w10⟩@proxy:3128"),
        near_misses=("https://example.org:8443/path@home", "https://user:password@example.org/"),
    ),
    Rule(
        "url-token",
        r"\b(?:https?|git|git\+https|ssh)://([^\s/:@\"'<>?#]{16,256})@[A-Za-z0-9]",
        trigger=r"://[^\s/:@\"'<>?#]{16}[^\s/:@\"'<>?#]*@",
        check=lambda text: looks_random(text) and _real(text),
        examples=("git clone https://⟨w40⟩@git.example.org/o/r.git",),
        near_misses=("https://some-long-user-name@example.org/",),
    ),
    Rule(
        "jdbc-password",
        r"jdbc:oracle:[a-z]{2,5}:[A-Za-z0-9_$]{1,40}/([^\s@\"']{3,100})@",
        check=_real,
        examples=("jdbc:oracle:thin:scott/⟨w10⟩@//db:1521/svc",),
    ),
    Rule(
        "pgpass",
        r"(?m:^|[\s\"'`])[^\s:#/\"'`]{1,100}:(?:[0-9]{2,5}|\*):[^\s:/\"'`,{}]{1,60}:[^\s:/\"'`,{}]{1,60}:([^\s:\"'`]{5,128})(?m:[\s\"'`]|$)",
        trigger=r":(?:[0-9]{2,5}|\*):[^\s:]+:[^\s:/]+:[^\s:]{5}",
        refine=_pgpass,
        examples=("db.internal:5432:app:svc:⟨w14⟩", "*:*:*:postgres:⟨w12⟩", 'echo "db1:5432:*:svc:⟨w14⟩" >> ~/.pgpass'),
        near_misses=("main.py:120:5:error:missing", "12:30:45:10:11", "a.py:12:34:error:unused1"),
    ),
    Rule(
        "netrc-password",
        r"\b(?:login|machine|account|user|username)[ \t]{1,4}[^\s]{1,100}[ \t]{1,4}(?:login[ \t]{1,4}[^\s]{1,100}[ \t]{1,4})?(?:password|passwd|pass)[ \t]{1,4}([^\s\"',;]{3,200})",
        trigger=r"\bpass(?:word|wd)[ \t]+[^\s\"',;]{3}|\b(?:login|machine|account|user|username)[ \t]+[^\s]+[ \t]+pass[ \t]+[^\s\"',;]",
        check=lambda text: _real_literal(text) and not _is_word(text.strip(".,;:!?)")),
        examples=(
            "machine api.example.org login bob password ⟨w10⟩",
            "rclone config create box webdav user bob pass ⟨w14⟩7",
        ),
        near_misses=("login form password field", "every user must pass authentication", "the user did not pass them."),
    ),
    Rule(
        "sql-password",
        r"(?i)\b(?:identified[ \t]{1,3}by|(?:with[ \t]{1,3})?(?:encrypted[ \t]{1,3})?password|set[ \t]{1,3}password[^\n=]{0,60}=|password[ \t]{0,2}\()[ \t]{0,3}\(?[ \t]{0,3}'([^'\n]{4,128})'",
        check=_real,
        examples=("CREATE USER app IDENTIFIED BY '⟨w12⟩';", "ALTER ROLE svc WITH PASSWORD '⟨w12⟩';"),
        near_misses=("ALTER ROLE svc WITH PASSWORD '${PW}';",),
    ),
    Rule(
        "auth-pair",
        r"\bauth[ \t]{0,3}[=:][ \t]{0,3}[\[(][ \t]{0,3}[\"'][^\"'\n]{1,64}[\"'][ \t]{0,3},[ \t]{0,3}[\"']([^\"'\n]{4,128})[\"']",
        trigger=r"\bauth[ \t]*[=:][ \t]*[\[(]",
        check=_real,
        examples=("requests.get(url, auth=('bob', '⟨w12⟩'))",),
        near_misses=("requests.get(url, auth=(user, password))",),
    ),
    Rule(
        "command-password",
        r"\b(?:mysql[a-z]{0,8}|mariadb(?:-dump)?)\b[^\n|]{0,200}?[ ](?:-p|--password=)[\"']?([^\s\"'\-=][^\s\"']{3,128})"
        r"|\b(?:sshpass|mongo(?:sh|dump|restore|export|import)?|docker login|podman login|helm registry login|7z|unzip|zip|ldapsearch|smbclient|sqlcmd|kinit|rabbitmqctl)\b[^\n|]{0,200}?[ ](?:-[pPw]|--password)[ =]?[\"']?([^\s\"'\-=][^\s\"']{3,128})"
        r"|\bredis-cli\b[^\n|]{0,120}?[ ]-a[ ]?[\"']?([^\s\"'\-][^\s\"']{3,128})"
        r"|\b(?:curl|http|https|wget|xh)\b[^\n|]{0,300}?[ ](?:-[a-zA-Z]{0,6}u|--user|-a|--auth)[ =]{0,3}[\"']?[^\s:\"'/]{0,64}[\"']?:[\"']?([^\s\"'/][^\s\"']{2,128})"
        r"|\bpass(?:in|out)?[ =]pass:([^\s\"']{3,128})"
        r"|\bhtpasswd\b[^\n|]{0,20}[ ]-[a-zA-Z]{0,6}b[a-zA-Z]{0,6}[ ][^\s]{1,100}[ ][^\s]{1,60}[ ][\"']?([^\s\"']{3,128})"
        r"|\baws configure set [a-z_.]{0,40}(?:secret|token)[a-z_]{0,20}[ ]([^\s\"']{8,})"
        r"|\bnet user [^\s]{1,40} ([^\s/*][^\s]{4,100}) /add",
        trigger=r"[ ]-[A-Za-z\-]|\bpass(?:in|out)?[ =]pass:|aws configure set|net user",
        check=_real_literal,
        examples=(
            "mysql -u root -p⟨w12⟩ shop",
            "sshpass -p '⟨w12⟩' ssh bob@host",
            "curl -u bob:⟨w12⟩ https://api.example.org",
            "docker login -u bob -p ⟨w16⟩ registry.example.org",
            "redis-cli -h cache -a ⟨w16⟩ ping",
            "openssl rsa -passin pass:⟨w12⟩ -in k.pem",
        ),
        near_misses=(
            "mysql -u root -p shop",
            "docker run -p 8080:80 nginx",
            "curl -u $USER:$TOKEN https://x",
            "docker login -u bob --password-stdin",
        ),
    ),
)
