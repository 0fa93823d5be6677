"""Secrets known by where they stand: the argument of a call or a command, an element, a header, a query."""

# ruff: noqa: E501 (a pattern is easier to read in one piece)

from __future__ import annotations

import re
from collections.abc import Iterator

from reverie.redact.entropy import word_share, words
from reverie.redact.markers import Lazy
from reverie.redact.patterns.literals import is_argument, is_foreign, is_literal, is_random, is_told
from reverie.redact.patterns.names import KEY_HINT, KEY_REST, KEY_WORD, UNTOLD, key_strength, key_words
from reverie.redact.patterns.rule import Rule, Span

_STANDARD = words("HS256 HS384 HS512 RS256 RS384 RS512 ES256 PS256 EdDSA sha256 sha512 base64 utf-8 utf8 latin-1")


def _strongly_random(text: str) -> bool:
    """Random with both letter cases and digits throughout: no hash, no name."""
    kinds = sum(map(str.islower, text)) >= 3 and sum(map(str.isupper, text)) >= 3 and sum(map(str.isdigit, text)) >= 2
    return kinds and is_random(text) and "--" not in text and word_share(text) <= 0.3


_SPOKEN_FOR = re.compile(
    rb"(?i)(?:public|cache|primary|foreign|sort|partition|object|group|host|gpg|pgp|map|row|[_.-])[ ]?\Z"
)


def _plain_key(data: bytes, match_start: int, start: int, end: int) -> Span | None:
    """`key=...`, not `public key: ...`."""
    if _SPOKEN_FOR.search(data[max(0, match_start - 12) : match_start]):
        return None
    return (start, end) if _strongly_random(data[start:end].decode("ascii")) else None


def _element(data: bytes, match_start: int, start: int, end: int) -> Span | None:
    """The random part of an XML element named like a secret."""
    name = data[match_start + 1 : data.index(b">", match_start)].decode("utf-8", "replace")
    return (start, end) if key_strength(name) and is_random(data[start:end].decode("ascii")) else None


_COMMENTED = Lazy(
    rb"(?m:^)[ \t]{0,20}(?:#{1,4}|//|--|;|\*)[^\n]{0,80}?(?i:token|secret|password|api key|access key|credentials?)[^\n]{0,20}\r?\n"
    rb"[ \t]{0,20}(?:[a-z]{2,8} )?([A-Za-z0-9_.]{1,40})[ \t]{0,3}:?=[ \t]{0,3}[\"']([A-Za-z0-9+/=_\-]{20,256})[\"']"
)
_REVISIONS = words("rev revision latest md5 sha1 sha256 sum etag build tag ref release public")


def _commented(data: bytes) -> Iterator[Span]:
    """A comment that names a secret, and below it a random literal under a name that says nothing."""
    for match in _COMMENTED.finditer(data):
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
        "command-secret",
        r"\bsqlplus\b[^\n]{0,40}?[ ][A-Za-z0-9_$#]{1,40}/([^\s@\"'/]{3,100})@"
        r"|\b[A-Za-z0-9_.\-]{1,40}:([^\s:@\"'/(]{3,100})@(?:tcp|unix|udp)\("
        r"|\bjdbc:[a-z0-9]{2,20}:[A-Za-z0-9.\-]{1,80}:[0-9]{2,5}:[A-Za-z0-9_]{1,40}:[A-Za-z0-9_]{1,40}:([^\s\"':]{3,100})"
        r"|\b(?:requirepass|masterauth|primaryauth)[ \t]{1,4}\"?([^\s\"']{4,256})"
        r"|-(?:storepass|keypass|srcstorepass|deststorepass)[ \t]{1,3}[\"']?([^\s\"'\-][^\s\"']{3,128})"
        r"|\baz login\b[^\n]{0,120}? -p[ =][\"']?([^\s\"']{8,128})"
        r"|\becho[ ](?:-n[ ])?[\"']?([^\s\"'|$][^\s\"'|]{3,255})[\"']?[ ]{0,3}\|[ ]{0,3}(?:docker login|podman login|helm registry login|gh auth login|sudo -S|sudo --stdin|cryptsetup|oc login|npm login|gpg --passphrase-fd)"
        r"|\b[A-Za-z0-9_.\-]{1,32}:([^\s\"':|$][^\s\"':|]{3,127})[\"']?[ ]{0,3}\|[ ]{0,3}(?:sudo )?chpasswd"
        r"|\bnet use [^\n]{0,80}?\\\\[^\s]{1,100} ([^\s/*][^\s]{3,100}) /user:"
        r"|sonar\.login=([^\s\"']{8,128})"
        r"|\bcurl\b[^\n|]{0,300}?[ ](?:-[a-zA-Z]{0,6}u|--user)[ =]?[\"']?([^\s:\"'/]{16,256}):(?:[\"'\s]|$)"
        r"|\bgh secret set [A-Za-z0-9_\-]{1,80} [^\n]{0,60}?(?:--body|-b)[ =][\"']?([^\s\"'\-$][^\s\"']{3,512})"
        r"|(?i:convertto-securestring)[ ](?:(?i:-string)[ ])?[\"']([^\"'\n]{4,128})"
        r"|(?m:^|[\s\"'])-pw[ =][\"']?([^\s\"'\-][^\s\"']{3,128})"
        r"|(?m:^)[ \t#]{1,20}(?:-u|--user)[ =]{1,3}[\"']?[A-Za-z0-9_.@+\-]{1,64}:([^\s\"'$:]{8,128})"
        r"|://([^\s/:@\"'<>?#]{16,256}):@[A-Za-z0-9]",
        trigger=r"\bsqlplus\b|@(?:tcp|unix|udp)\(|\bjdbc:[a-z0-9]+:[A-Za-z0-9.\-]+:[0-9]|\b(?:requirepass|masterauth|primaryauth)[ \t]|-(?:storepass|keypass|srcstorepass|deststorepass)[ \t]|\baz login\b|\becho[ ]|\|[ ]*(?:sudo )?chpasswd|\bnet use |sonar\.login=|\bcurl\b|\bgh secret set |(?i:convertto-securestring)|:@[A-Za-z0-9]|-pw[ =]|(?m:^)[ \t#]+(?:-u|--user)[ =]",
        check=is_argument,
        examples=(
            "sqlplus system/⟨w12⟩@//db:1521/XE",
            'sql.Open("mysql", "root:⟨w12⟩@tcp(127.0.0.1:3306)/db")',
            "jdbc:mysql:localhost:3306:shop:bob:⟨w12⟩",
            "requirepass ⟨w24⟩",
            "keytool -list -keystore k.jks -storepass ⟨w12⟩",
            "echo ⟨w12⟩ | docker login -u bob --password-stdin",
            "echo 'root:⟨w12⟩' | chpasswd",
            "sonar-scanner -Dsonar.login=⟨h40⟩",
            'curl -u "⟨h32⟩:" https://api.example.org',
            'gh secret set NPM_TOKEN --body "⟨w36⟩"',
            '$p = ConvertTo-SecureString "⟨w12⟩" -AsPlainText -Force',
            "https://⟨h32⟩:@api.example.org",
        ),
        near_misses=(
            "requirepass $REDIS_PASSWORD",
            "echo $TOKEN | docker login -u bob --password-stdin",
            'ConvertTo-SecureString "$env:PASSWORD"',
            "keytool -storepass ${PASS}",
        ),
    ),
    Rule(
        "compared-password",
        r"\"([^\"\n]{6,128})\"[ \t]{0,3}={2,3}[ \t]{0,3}[A-Za-z0-9_.]{0,40}(?i:passw|passphrase|pwd|secret|token|api_?key)",
        trigger=r"\"[ \t]*={2,3}[ \t]*[A-Za-z0-9_.]*(?i:passw|passphrase|pwd|secret|token|api_?key)",
        check=is_told,
        examples=('if ("⟨w14⟩" == my_password) {',),
        near_misses=('if ("expired" == token.state) {',),
    ),
    Rule(
        "host-credentials",
        r"\b(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?::[0-9a-z]{2,5})?[ \t:>,\-]{0,4}(?:[a-z]{2,16}[ ])?\([A-Za-z0-9_.\-]{2,32}/([^\s/()]{6,64})\)"
        r"|\b(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?::[0-9]{2,5})?[ \t>,\-]{1,4}(?:[a-z]{2,16}[ ])?[A-Za-z0-9_.\-]{2,32}/([^\s/()]*[a-z][^\s/()]*[A-Z][^\s/()]*|[^\s/()]*[A-Z][^\s/()]*[a-z][^\s/()]*)(?:[\s,;]|$)"
        r"|\b[A-Za-z0-9_.+\-]{1,64}@[A-Za-z0-9\-]{1,64}(?:\.[A-Za-z0-9\-]{1,24}){1,4}[ ]?[/|:][ ]?([^\s/|:@()<>]{8,64})(?:[\s,;.)]|$)"
        r"|(?:^|\s)[\"'`]?([^\s\"'`]{6,128})[\"'`]? (?:is|as) (?:the|my|our|your|his|her|their) (?:[A-Za-z]{2,12} ){0,3}(?i:password|passphrase|(?:api|encryption|signing|access|private|master) key|secret)\b"
        r"|(?:^|\s)[\"'`]?([^\s\"'`]{6,128})[\"'`]? (?:is|as) (?:the|my|our|your|his|her|their) (?:[A-Za-z]{2,12} ){0,3}(?i:token)(?m:$|[^\w \-]| (?:when|for|to|in|on|if|and|with|at|from|until|while|of|that|which|I|we|you|they|it)\b)",
        trigger=r"\([A-Za-z0-9_.\-]+/|[0-9]\.[0-9]{1,3}\.[0-9]{1,3}(?::[0-9]+)?[ \t>,\-]+(?:[a-z]+[ ])?[A-Za-z0-9_.\-]+/[^\s/]|@[A-Za-z0-9.\-]+[ ]?[/|:][ ]?[^\s/|:@()<>]{8}| (?:is|as) (?:the|my|our|your|his|her|their) (?:[A-Za-z]+ ){0,3}(?i:password|passphrase|[a-z]+ key|token|secret)\b",
        check=is_told,
        examples=(
            "10.1.2.3 (master/⟨w7⟩4)",
            "bob is the user, ⟨w10⟩7 is the password",
            "bob@example.org / ⟨w10⟩7",
            "Use ⟨h40⟩ as the license server API key when calling",
        ),
        near_misses=(
            "10.1.2.3 (linux/amd64)",
            "10.1.2.3 - Mozilla/5.0 Mobile/15E148",
            "10.1.2.3 release/stable",
            "this is the password",
            "authentication is the secret",
            "use cl100k_base as the token encoder",
            "take ⟨h40⟩ as the token fix",
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
    Rule(
        "redis-auth",
        r"(?m:^|[>\"'] ?)(?:AUTH|auth)[ ]{1,2}(?:default )?([A-Za-z0-9_\-+/=!@#%^*]{12,256})[\"']?(?m:$|\\[nr\"])",
        trigger=r"\b(?:AUTH|auth)[ ]+(?:default )?[A-Za-z0-9_\-+/=!@#%^*]{12}",
        check=is_random,
        examples=("AUTH ⟨w24⟩", "127.0.0.1:6379> AUTH default ⟨w24⟩"),
        near_misses=("AUTH required-for-all-requests",),
    ),
    Rule(
        "query-secret",
        r"[?&](?:key|appid|app_key|code|apikey|auth|k|sk|hash_key|session_?id|sid|ticket|oauth_token|jwt|sig|signature|hmac|credential)=([A-Za-z0-9_\-.~%/+]{20,256}={0,2})",
        check=is_random,
        examples=("https://maps.example.org/api?q=x&key=⟨w36⟩", "https://a.example.net/hook?code=⟨w54⟩=="),
        near_misses=("https://example.org/?key=some-long-name-of-an-article", "https://example.org/?code=short"),
    ),
    Rule(
        "named-key-object",
        r"(?i:\\?\"(?:jwt|jwtsettings|jwtconfig|jwtoptions|auth|authentication|token|tokens|encryption|crypto|signing|security|secrets?|api)\\?\"[ \t]{0,3}:[ \t]{0,3}\{[^\n{}]{0,120}?\"(?:key|issuersigningkey|secret|value)\\?\")[ \t]{0,3}:[ \t]{0,3}\\?\"([^\"\n\\]{16,512})\\?\"",
        trigger=r"(?i:\"(?:jwt[a-z]*|auth|authentication|tokens?|encryption|crypto|signing|security|secrets?|api)\\?\"[ \t]*:[ \t]*\{)",
        check=is_random,
        examples=('"Jwt": { "Key": "⟨w40⟩", "Issuer": "acme" }',),
        near_misses=('"token": { "key": "user-visible-name-of-it" }',),
    ),
    Rule(
        "header-secret",
        r"(?i:\b(?:x-jfrog-art-api|x-functions-key|x-n8n-api-key|x-goog-api-key|x-shopify-access-token|x-auth-key|dd-application-key|circle-token|x-consul-token|x-nomad-token|x-gitlab-token|x-tracker-?token|x-figma-token|x-honeycomb-team|api-?key|x-rapidapi-key))[\"']?[ \t]{0,3}[:=,][ \t]{0,3}[\"']?([A-Za-z0-9_\-.+/=]{12,512})",
        trigger=r"(?i:\b(?:x-jfrog-art-api|x-[a-z0-9]+-(?:api-|access-)?(?:key|token|team)|x-tracker-?token|circle-token|dd-application-key|api-?key))[\"']?[ \t]*[:=,]",
        check=is_random,
        examples=("X-JFrog-Art-Api: ⟨w73⟩", "x-functions-key: ⟨w54⟩=="),
        near_misses=("x-functions-key: required-for-every-function",),
    ),
    Rule(
        "authorization-scheme",
        r"(?i:authorization)[\"']?[ \t]{0,3}(?:[:=,]|=>)[ \t]{0,3}\\?[\"'`]?[A-Z][A-Za-z\-]{2,20}[ ]([A-Za-z0-9_\-.~+/=%]{16,512})",
        check=is_random,
        examples=("Authorization: Splunk ⟨h8⟩-⟨h4⟩-⟨h4⟩-⟨h4⟩-⟨h12⟩",),
        near_misses=("Authorization: Handled by-the-gateway-in-front",),
    ),
)
