"""Secrets known by their place: the argument of a call or a command, an element, a header, a query."""

# ruff: noqa: E501 (a pattern is easier to read in one piece)

from __future__ import annotations

from collections.abc import Iterator

from reverie.redact.entropy import word_share, words
from reverie.redact.lazy import lazy
from reverie.redact.markers import Lazy
from reverie.redact.rules.literals import is_foreign, is_literal, is_random, is_told
from reverie.redact.rules.names import KEY_HINT, KEY_REST, KEY_WORD, UNTOLD, key_strength, key_words
from reverie.redact.rules.rule import Rule, Span

_STANDARD = words("HS256 HS384 HS512 RS256 RS384 RS512 ES256 PS256 EdDSA sha256 sha512 base64 utf-8 utf8 latin-1")


def _strongly_random(text: str) -> bool:
    """Whether `text` is random with both letter cases and digits throughout: no hash, no name."""
    kinds = sum(map(str.islower, text)) >= 3 and sum(map(str.isupper, text)) >= 3 and sum(map(str.isdigit, text)) >= 2
    return kinds and is_random(text) and "--" not in text and word_share(text) <= 0.3


_SPOKEN_FOR = lazy(
    rb"(?i)(?:public|cache|primary|foreign|sort|partition|object|group|host|gpg|pgp|map|row|[_.-])[ ]?\Z"
)


def _plain_key(data: bytes, match_start: int, start: int, end: int) -> Span | None:
    """Find the value of `key=...`, not of `public key: ...`."""
    if _SPOKEN_FOR.search(data[max(0, match_start - 12) : match_start]):
        return None
    return (start, end) if _strongly_random(data[start:end].decode("ascii")) else None


def _element(data: bytes, match_start: int, start: int, end: int) -> Span | None:
    """Find the random part of an XML element that is named like a secret."""
    name = data[match_start + 1 : data.index(b">", match_start)].decode("utf-8", "replace")
    return (start, end) if key_strength(name) and is_random(data[start:end].decode("ascii")) else None


_COMMENTED = Lazy(
    rb"(?m:^)[ \t]{0,20}(?:#{1,4}|//|--|;|\*)[^\n]{0,80}?(?i:token|secret|password|api key|access key|credentials?)[^\n]{0,20}\r?\n"
    rb"[ \t]{0,20}(?:[a-z]{2,8} )?([A-Za-z0-9_.]{1,40})[ \t]{0,3}:?=[ \t]{0,3}[\"']([A-Za-z0-9+/=_\-]{20,256})[\"']"
)
_REVISIONS = words("rev revision latest md5 sha1 sha256 sum etag build tag ref release public")


def _commented(data: bytes) -> Iterator[Span]:
    """Yield random literals whose names say nothing, below a comment that names a secret."""
    for match in _COMMENTED.finditer(data):
        yield match.start(), match.start()
        name = match.group(1).decode("ascii")
        last = (key_words(name) or [""])[-1].lower()
        if last not in UNTOLD and last not in _REVISIONS and is_random(match.group(2).decode("ascii")):
            yield match.span(2)


RULES = (
    Rule(
        "call-password",
        r"(?:\b(?:SetBasicAuth|setBasicAuth|HTTPBasicAuth|HTTPDigestAuth|HttpAuthBase|NetworkCredential|PSCredential|UsernamePasswordCredentials|BasicAWSCredentials|AwsBasicCredentials\.create|UsernamePasswordCredential|PasswordAuthentication|basicAuth|basic_auth|BasicAuth|httpBasic|proxyAuth|http_basic_authenticate_with|usernamePassword|MongoCredential|Credentials\.basic)"
        r"|\.(?:login|auth|basic|authenticate|credentials|withCredentials|setCredentials)|\bftp_login)\([ \t]{0,3}(?:\$[a-z_]{1,20},[ \t]{0,3})?[\"'][^\"'\n]{1,64}[\"'][ \t]{0,3},[ \t]{0,3}[\"']([^\"'\n]{4,128})[\"']"
        r"|\b(?:getConnection|PDO|mysqli|mysqli_connect|mysql_connect|pg_connect|createConnection|DataSource|Sequelize)\([^\n\"']{0,60}(?:[\"'][^\"'\n]{0,120}[\"'][ \t]{0,3},[ \t]{0,3}){1,2}[\"']([^\"'\n]{4,128})[\"']"
        r"|(?i:passw)[A-Za-z\"'\])]{0,12}[ \t]{0,2}\.(?:send_keys|sendKeys|type|fill|setValue|typeText|sendText|val)\([ \t]{0,3}[\"']([^\"'\n]{4,128})[\"']"
        r"|\bjwt\.(?:sign|verify|encode|decode)\([^\n]{1,80}?,[ \t]{0,3}[\"']([^\"'\n]{6,128})[\"']"
        r"|\bcreateHmac\([ \t]{0,3}[\"'][a-z0-9]{2,12}[\"'][ \t]{0,3},[ \t]{0,3}[\"']([^\"'\n]{6,128})[\"']"
        r"|\b(?:hmac\.new|hmac\.HMAC|Fernet|AESGCM|AES\.new|SecretKeySpec|ChaCha20Poly1305|SigningKey|HmacSHA256|HMACSHA256|itsdangerous\.[A-Za-z]{3,30}|URLSafeTimedSerializer)\([ \t]{0,3}b?[\"']([^\"'\n]{12,128})[\"']"
        r"|\bDBI(?:->|\.)connect\([ \t]{0,3}[\"'][^\"'\n]{1,120}[\"'][ \t]{0,3},[ \t]{0,3}[\"'][^\"'\n]{1,64}[\"'][ \t]{0,3},[ \t]{0,3}[\"']([^\"'\n]{4,128})[\"']",
        trigger=r"(?:BasicAuth|DigestAuth|Credentials?|create|PasswordAuthentication|basicAuth|basic_auth|httpBasic|proxyAuth|authenticate_with|usernamePassword|HttpAuthBase|\.(?:login|auth|basic|authenticate|credentials)|ftp_login)\([ \t]*(?:\$[a-z_]+,[ \t]*)?[\"']"
        r"|(?:getConnection|PDO|mysqli|mysqli_connect|mysql_connect|pg_connect|createConnection|DataSource|Sequelize)\(|(?i:passw)[A-Za-z\"'\])]*[ \t]*\.(?:send_?[kK]eys|type|fill|setValue|typeText|sendText|val)\(|\bjwt\.(?:sign|verify|encode|decode)\(|\bcreateHmac\(|\b(?:hmac\.new|hmac\.HMAC|Fernet|AESGCM|AES\.new|SecretKeySpec|ChaCha20Poly1305|SigningKey|HmacSHA256|HMACSHA256|itsdangerous\.[A-Za-z]+|URLSafeTimedSerializer)\([ \t]*b?[\"']|\bDBI(?:->|\.)connect\(",
        check=lambda text: is_literal(text) and " " not in text and text not in _STANDARD,
        examples=(
            'req.SetBasicAuth("bob", "⟨w12⟩")',
            "auth = HTTPBasicAuth('bob', '⟨w12⟩')",
            'DriverManager.getConnection(url, "app", "⟨w12⟩");',
            'mysqli_connect("localhost", "root", "⟨w12⟩", "shop");',
            "new PDO('mysql:host=db', 'app', '⟨w12⟩');",
            'server.login("a@example.org", "⟨w12⟩")',
            "cy.get('#password').type('⟨w12⟩')",
            "jwt.sign({ id: user.id }, '⟨w32⟩', { expiresIn: '1h' })",
            'hmac.new(b"⟨w24⟩", message, hashlib.sha256)',
            'DBI->connect("dbi:mysql:database=shop", "app", "⟨w12⟩")',
        ),
        near_misses=(
            "req.SetBasicAuth(user, password)",
            'jwt.decode(token, key, algorithms=["HS256"])',
            'jwt.decode(token, key, "HS256")',
            'server.login("a@example.org", "<password>")',
            "cy.get('#password').type('password')",
        ),
    ),
    Rule(
        "pass-is",
        r"(?i:\bpass|\bpasswd|\bpw)[ ](?i:is|was|=|-)[ ][\"'`]?([^\s\"'`,;<>]{6,128})",
        check=lambda text: is_told(text.rstrip(".")) and is_foreign(text.rstrip(".")),
        generic=True,
        examples=("the pass is ⟨w10⟩7", "PASS - ⟨w10⟩7"),
        near_misses=("the pass is closed until May", "the pass is 2500m high"),
    ),
    Rule(
        "plain-key",
        r"(?:\b[kK]ey|\bKEY|\bapi|\bAPI)[\"']?(?:=|:[ ]|[ ]=[ ]|:=[ ]?)[\"'`]?([A-Za-z0-9_\-]{20,128})(?:[\"'`\s;,)}]|$)",
        refine=_plain_key,
        generic=True,
        examples=("[DEBUG] using Key=⟨w32⟩", "var api = '⟨w32⟩';"),
        near_misses=("public key: ⟨w43⟩", "key=Some-Long-Name-Of-An-Object-2024", "key: ArrowDownRightCornerOfTable2"),
    ),
    Rule(
        "element-secret",
        rf"<[A-Za-z0-9_.\-]{{0,40}}(?i:{KEY_WORD}){KEY_REST}>[^<>\n]{{0,60}}?([A-Za-z0-9+/=_\-]{{20,512}})[^<>\n]{{0,20}}</",
        trigger=rf"{KEY_HINT}>[^<>\n]*[A-Za-z0-9+/=_\-]{{20}}",
        refine=_element,
        generic=True,
        price=40,
        examples=("<secret>{vault ⟨w40⟩}</secret>",),
        near_misses=(
            "<tokenEndpoint>https://example.org/a-long-path-of-words-only</tokenEndpoint>",
            "<UserSecretsId>⟨h8⟩-⟨h4⟩-⟨h4⟩-⟨h4⟩-⟨h12⟩</UserSecretsId>",
        ),
    ),
    Rule(
        "commented-secret",
        r"(?i:token)",
        trigger=r"(?m:^)[ \t]*(?:#|//|--|;|\*)[^\n]*(?i:token|secret|password|api key|access key|credential)[^\n]*(?m:$)",
        locate=_commented,
        generic=True,
        apart=True,
        examples=("# Signing Secret\nVAR_15 = '⟨h32⟩'",),
        near_misses=("# Token bucket\nRATE = 'five-per-second-and-user'", "# Commit of the token fix\nREV = '⟨h40⟩'"),
    ),
)
