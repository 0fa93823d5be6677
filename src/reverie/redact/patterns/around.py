"""Secrets known by where they stand: the argument of a call, the next line, a manifest, a command, a query."""

# ruff: noqa: E501 (a pattern is easier to read in one piece)

from __future__ import annotations

import re
from collections.abc import Iterator

from reverie.redact.entropy import looks_random, word_share, words
from reverie.redact.markers import Lazy
from reverie.redact.patterns.generic import KEY_HINT, KEY_REST, KEY_WORD, judge_named, key_strength, key_words
from reverie.redact.patterns.plausible import (
    is_code,
    is_location,
    is_password_like,
    is_placeholder,
    is_random_value,
    is_term,
    is_told_value,
    without_markers,
)
from reverie.redact.patterns.rule import Rule, Span

_ENDS = " \t.,;:!?)]}>\"'`"


def is_whole(text: str) -> bool:
    """Nothing in it is redacted already."""
    return without_markers(text) == text.strip(_ENDS)


def is_literal(text: str) -> bool:
    """A literal in a place where only a password can stand."""
    return is_whole(text) and not is_placeholder(text) and not is_location(text) and len(text) >= 4


def is_argument(text: str) -> bool:
    """A bare word on a command line."""
    return is_literal(text) and not is_code(text) and not text.startswith("-")


def is_told(text: str) -> bool:
    return is_whole(text) and is_told_value(text)


def is_random(text: str) -> bool:
    return is_whole(text) and is_random_value(text) and not is_placeholder(text)


def has_symbols(text: str) -> bool:
    """Two different symbols or more within eight characters or more, as no word has."""
    marks = {c for c in text if not c.isalnum() and c not in "-_./:'’,;?()[]"}
    return is_literal(text) and len(text) >= 8 and len(marks) >= 2


def is_foreign(text: str) -> bool:
    return is_whole(text) and not is_placeholder(text) and not is_term(text) and is_password_like(text)


def trimmed(data: bytes, start: int, end: int) -> tuple[int, int, str]:
    kept = data[start:end].rstrip(b".,;:)]}>*`'\"")
    return start, start + len(kept), kept.decode("utf-8", "replace")


# -- on the next line ---------------------------------------------------------------------------------------------

_NAME = rf"[A-Za-z0-9_.\-]*{KEY_WORD}[A-Za-z0-9_.\-]*"
_PAIRS = Lazy(
    (
        # - name: DB_PASSWORD \n value: ...
        rf"(?i)\b(?:name|key)[\"']?[ \t]{{0,3}}[:=][ \t]{{0,3}}[\"']?({_NAME})[\"']?,?[ \t]{{0,3}}\r?\n[ \t]{{0,40}}[\"']?(?:value|default)[\"']?[ \t]{{0,3}}[:=][ \t]{{0,3}}[\"']?([^\s\"'`]{{4,}})"
        # variable "db_password" { \n default = "..."
        rf"|\bvariable[ \t]{{1,3}}\"({_NAME})\"[ \t]{{0,3}}\{{[ \t]{{0,3}}\r?\n(?:[ \t]{{0,20}}(?:type|description|sensitive)[^\n]*\r?\n){{0,3}}[ \t]{{0,20}}default[ \t]{{0,12}}=[ \t]{{0,3}}\"([^\"\n]{{4,}})\""
        # <key>apiSecret</key> \n <string>...</string>
        rf"|<key>({_NAME})</key>\s{{0,40}}<string>([^<\n]{{4,}})</string>"
        # <apiToken> \n ... \n </apiToken>, also as CDATA
        rf"|<({_NAME})>(?:\s{{0,40}}<(?:!\[CDATA\[|value>)|[ \t]{{0,40}}\r?\n\s{{0,40}})([^<>\s\]]{{4,}})"
        # token: > \n ...
        rf"|({_NAME})[\"']?[ \t]{{0,3}}:[ \t]{{0,3}}(?:[|>][+-]?)?[ \t]{{0,3}}\r?\n[ \t]{{2,40}}[\"']?([^\s\"'`:=]{{6,}}={{0,2}})[\"']?[ \t]{{0,3}}(?:\r?\n|\z)"
        # key = "..." \n "..."
        rf"|((?:{_NAME}|\bkey))[ \t]{{0,3}}=[ \t]{{0,3}}\(?[\"']([^\s\"'`]{{8,}})[\"'][ \t]{{0,3}}[+\\]?[ \t]{{0,3}}\r?\n[ \t]{{1,40}}\+?[ \t]{{0,3}}[\"']([^\s\"'`]{{8,}})[\"']"
    ).encode()
)
_NEXT = (
    rf"(?i:\b(?:name|key))[\"']?[ \t]*[:=][ \t]*[\"']?[A-Za-z0-9_.\- ]*{KEY_HINT}[\"']?,?[ \t]*\r?(?m:$)"
    rf"|(?i:\bvariable)[ \t]+\"|<[A-Za-z0-9_.\-]*{KEY_HINT}>[ \t]*(?:<[!vV]|\r?(?m:$))|{KEY_HINT}(?:(?i:</key>)|[\"']?[ \t]*:[ \t]*[|>]?[+-]?[ \t]*\r?(?m:$)"
    rf"|[ \t]*=[ \t]*\(?[\"'][^\s\"'`]{{8}}[^\s\"'`]*[\"'][ \t]*[+\\]?[ \t]*\r?(?m:$))"
)


def _next_lines(data: bytes) -> Iterator[Span]:
    """A key on one line, its value on the next."""
    for match in _PAIRS.finditer(data):
        group = next((g for g in range(1, 13, 2) if match.start(g) >= 0), 0)
        if not group:
            continue
        if group == 11:
            first, second = (match.group(g).decode("utf-8", "replace") for g in (12, 13))
            if is_random(first) and is_random(second):
                yield match.span(12)
                yield match.span(13)
            continue
        key = match.group(group).decode("utf-8", "replace")
        start, end, value = trimmed(data, *match.span(group + 1))
        strength = key_strength(key)
        if not strength or not is_whole(value):
            continue
        # Below a bare `token:` may stand anything; behind a name there stands its value.
        named = group <= 7
        if judge_named(value, strength) if named else (len(value) >= 10 and is_told_value(value)):
            yield start, end


_FOLLOWS = Lazy(
    rb"(?i)\b(?:password|passphrase|passcode|token|api key|secret(?: key)?|master\.key)\b[^\n]{0,100}(?::[ \t]{0,3}|\.key)?\r?\n\s{0,20}[`\"']?([A-Za-z0-9+/=_*~!@#%^.-]{8,256})[`\"']?[ \t]{0,3}(?:\r?\n|\z)"
)


def _following(data: bytes) -> Iterator[Span]:
    """`Please use the following password:` and the password on a line of its own."""
    for match in _FOLLOWS.finditer(data):
        value = match.group(1).decode("utf-8", "replace")
        introduced = data[match.start() : match.start(1)].rstrip(b" \t\r\n`\"'").endswith((b":", b"master.key"))
        if introduced and is_random(value):
            yield match.span(1)


_SECRET_KIND = Lazy(
    rb"(?:\"kind\"[ \t]{0,3}:[ \t]{0,3}\"[sS]ecret\"|(?m:^)[ \t-]{0,20}kind:[ \t]{0,3}[\"']?[sS]ecret[\"']?[ \t]{0,3}(?:#[^\n]{0,80})?\r?(?m:$))"
)
_DOCUMENT_END = Lazy(rb"(?m:^---)|(?m:^)[ \t-]{0,20}kind:|\"kind\"")
_DATA = Lazy(rb"(?:\"data\"[ \t]{0,3}:|(?m:^)[ \t]{0,20}data:[ \t]{0,3}\r?(?m:$))")
_ENTRY = Lazy(
    rb"(?:(?m:^)[ \t]{1,40}[A-Za-z0-9_.\-]{1,100}:[ \t]{1,3}(?:[|>][+-]?[ \t]{0,3}\r?\n[ \t]{1,40})?[\"']?|[{,]\s{0,20}\"[A-Za-z0-9_.\-]{1,100}\"[ \t]{0,3}:[ \t]{0,3}\")([A-Za-z0-9+/]{8,}={0,2})(?:[\"'\s]|\z)"
)
_ENTRY_END = Lazy(rb"(?m:^)[A-Za-z]|\}")


def _manifests(data: bytes) -> Iterator[Span]:
    """The values of a Kubernetes Secret, which are base64 under names of any kind."""
    done = 0
    for kind in _SECRET_KIND.finditer(data):
        stop = _DOCUMENT_END.search(data, kind.end())
        end = stop.start() if stop else len(data)
        # Keys may come in any order: `data` may also stand just before the kind.
        before = max(data.rfind(b"\n---", done, kind.start()), done, kind.start() - 20_000)
        done = end
        sections = [section.end() for section in _DATA.finditer(data, before, end)]
        for begin, limit in zip(sections, [*sections[1:], end], strict=False):
            close = _ENTRY_END.search(data, begin, limit)
            for entry in _ENTRY.finditer(data, begin, close.end() if close else limit):
                value = entry.group(1).decode("ascii")
                if len(value) % 4 == 0 and not is_placeholder(value):
                    yield entry.span(1)


# -- told and shown -----------------------------------------------------------------------------------------------


def _variable(data: bytes, match_start: int, start: int, end: int) -> Span | None:
    """`set API_TOKEN to ...`: the name of a variable, not just a word."""
    begin = match_start
    while begin > 0 and match_start - begin < 48 and (data[begin - 1 : begin].isalnum() or data[begin - 1] in b"_-."):
        begin -= 1
    found = re.match(rb"[\w.\-]+", data[begin:start])
    key = found.group().decode("utf-8", "replace") if found else ""
    start, end, value = trimmed(data, start, end)
    is_name = len(key_words(key)) > 1 or key.lower() == "apikey" or data[begin - 1 : begin] == b"`"
    return (start, end) if is_name and key_strength(key) and (is_told(value) or has_symbols(value)) else None


def _declared(data: bytes, match_start: int, start: int, end: int) -> Span | None:
    """`ENV API_TOKEN value`, `#define WIFI_PASSWORD "value"`: the key is the word before."""
    key = data[match_start:start].decode("utf-8", "replace").strip(" \t\"'=").split()[-1].strip("\"'")
    start, end, value = (
        trimmed(data, start, end)
        if data[start - 1 : start] not in (b'"', b"'")
        else (start, end, data[start:end].decode("utf-8", "replace"))
    )
    strength = key_strength(key)
    return (start, end) if strength and is_argument(value) and judge_named(value, strength) else None


_SERVICES = (
    r"adafruit|adobe|airtable|algolia|alibaba|asana|artifactory|atlassian|auth0|beamer|bitbucket|bittrex|clojars|cloudflare|codecov|cohere|coinbase|"
    r"confluent|contentful|datadog|deepgram|discord|droneci|dropbox|elastic|etsy|facebook|fastly|finicity|finnhub|flickr|freshbooks|"
    r"gitter|heroku|hubspot|intercom|jfrog|kraken|kucoin|launchdarkly|linkedin|lob|looker|mailchimp|mailgun|mandrill|mapbox|mattermost|"
    r"messagebird|mistral|netlify|nytimes|okta|openai|openweather|pagerduty|plaid|postmark|privateai|rapidapi|rollbar|salesforce|sendbird|"
    r"sendgrid|shodan|snyk|sonarqube|splunk|spotify|squarespace|stripe|sumologic|travisci|trello|twilio|twitch|twitter|typeform|"
    r"vercel|virustotal|wakatime|weatherstack|zendesk|zoho|"
    # Names that mean nothing else.
    r"abuseipdb|agora|aiven|alchemy|alienvault|amplitude|anthropic|apify|appcues|apptentive|assemblyai|axonaut|bitfinex|bitly|bitmex|blogger|bombbomb|braintree|"
    r"brightdata|browserstack|bugsnag|buildkite|bybit|calendly|censys|checkout\.com|circleci|clarifai|clearbit|clickhelp|clickup|cloudconvert|cloudinary|"
    r"cloudsmith|coinapi|coinmarketcap|convertkit|currencylayer|customerio|databricks|deepai|deepl|deepseek|digitalocean|docusign|dnsimple|doppler|dynatrace|"
    r"easypost|elevenlabs|eventbrite|exa_?ai|fastspring|figma|firebase|fixer\.io|flutterwave|foursquare|freshdesk|fullstory|getresponse|ghost_?admin|gitea|"
    r"gocardless|grafana|graphhopper|groq|gumroad|harness|helpscout|heygen|honeycomb|hunterio|infura|instabot|ipapi|ipgeolocation|ipinfo|ipstack|jotform|"
    r"jumpcloud|keen\.?io|klaviyo|klarna|knock|linode|logdna|loggly|logz\.?io|mailboxlayer|mailerlite|mailjet|mailmodo|mapquest|maxmind|meraki|microsoftteams|"
    r"midjourney|mixpanel|mailsac|moonshot|nethunt|newrelic|newsapi|nexmo|ngrok|numverify|oanda|onesignal|opencage|opsgenie|optimizely|paddle|pastebin|paypal|"
    r"paystack|pinecone|pipedrive|planetscale|plivo|polygonscan|postmates|pubnub|pulumi|pusher|rabbitmq|razorpay|recaptcha|replicate|riskiq|rubygems|runway(?:ml)?|"
    r"saucelabs|scraperapi|scrapingbee|securitytrails|sendinblue|sentry|serpapi|shippo|shopify|signalwire|sinch|sonarcloud|sparkpost|statuspage|storyblok|"
    r"stytch|supabase|surveymonkey|tavily|telegram|telnyx|tiingo|tinypng|todoist|tomtom|travis_?ci|tumblr|twelvedata|unsplash|uptimerobot|urlscan|vagrantcloud|"
    r"vonage|vultr|webflow|woocommerce|wrike|zapier|zenhub|zerobounce|alphavantage|auth0|binance|bitquery|etherscan|gemini|opensea|quicknode|rapid7|snowflake"
)


def _service(data: bytes, match_start: int, start: int, end: int) -> Span | None:
    """A service's name and something random after it."""
    found = re.search(rb"[\w.\-]+", data[match_start:start])
    key = found.group().decode("utf-8", "replace") if found else ""
    last = (key_words(key) or [""])[-1].lower()
    value = data[start:end].decode("utf-8", "replace")
    if (
        last in _NAMES
        or re.search(r"\d{4}-\d{2}-\d{2}", value)
        or not is_random(value)
        or (value.islower() and value.isalpha())
    ):
        return None
    return start, end


_NAMES = words("id ids hash sha commit version event trace session span url dsn request checksum digest name public")


_PAIR_NAMES = r"(?i:(?:\b[a-z]{0,12}id|user(?:name)?|account|login|아이디|계정|\bu)[ ]?(?:[/:&,][ ]?(?:pw|pwd|pass(?:word|wd)?|p|비번|비밀번호)(?:/port)?\b\)?|\((?:pw|pwd|pass(?:word|wd)?)\)))"
_STANDARD = words("HS256 HS384 HS512 RS256 RS384 RS512 ES256 PS256 EdDSA sha256 sha512 base64 utf-8 utf8 latin-1")


def _in_words(data: bytes, _match_start: int, start: int, end: int) -> Span | None:
    start, end, value = trimmed(data, start, end)
    told = is_foreign(value) and (any(c.isdigit() for c in value) or is_random_value(value))
    return (start, end) if told and not _is_sentence(value) else None


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


def _commented(data: bytes) -> Iterator[Span]:
    """A comment that names a secret, and below it a random literal under a name that says nothing."""
    for match in _COMMENTED.finditer(data):
        name = match.group(1).decode("ascii")
        last = (key_words(name) or [""])[-1].lower()
        if last not in _NAMES and last not in _REVISIONS and is_random(match.group(2).decode("ascii")):
            yield match.span(2)


_REVISIONS = words("rev revision latest md5 sha1 sha256 sum etag build tag ref release public")


def _is_sentence(text: str) -> bool:
    """Words with commas between them, which ASCII alone takes for one value."""
    return "," in text and not looks_random(text)


RULES = (
    Rule(
        "next-line-secret",
        KEY_WORD,
        trigger=_NEXT,
        locate=_next_lines,
        generic=True,
        examples=(
            "- name: DB_PASSWORD\n  value: ⟨w14⟩",
            '- name: API_TOKEN\n  value: "⟨h40⟩"',
            'variable "api_key" {\n  type = string\n  default = "⟨w32⟩"\n}',
            "<key>apiSecret</key>\n<string>⟨w32⟩</string>",
            "<apiToken>\n    ⟨w32⟩\n</apiToken>",
            "<apiToken><![CDATA[⟨w32⟩]]></apiToken>",
            "private_token: >\n  ⟨w40⟩",
            "<AdminPassword>\n  <Value>⟨w14⟩</Value>",
        ),
        near_misses=(
            "- name: DB_PASSWORD\n  valueFrom:\n    secretKeyRef:\n      name: db",
            '- name: DB_PASSWORD\n  value: "$(PASSWORD)"',
            "token:\n  description: the token to use",
            "password:\n  required: true",
            "secret:\n  - one\n  - two-things",
        ),
    ),
    Rule(
        "following-password",
        r"(?i:password)",
        trigger=r"(?i:\b(?:password|passphrase|passcode|token|api key|secret)\b)[^\n]*:[ \t]*\r?(?m:$)|\bmaster\.key\b",
        locate=_following,
        generic=True,
        apart=True,
        examples=(
            "use the following password to proceed:\n\n⟨h32⟩\n",
            "the new token is:\n⟨w40⟩\n",
            "master.key\n⟨h32⟩",
        ),
        near_misses=("the password must be:\n\nlonger\n",),
    ),
    Rule(
        "kubernetes-secret",
        r"kind",
        trigger=r"kind\"?:[ \t]*[\"']?[sS]ecret[\"']?",
        locate=_manifests,
        examples=(
            "apiVersion: v1\ndata:\n  extra: ⟨b48⟩\nkind: secret\n",
            "kind: Secret\ndata:\n  .dockercfg: |\n    ⟨b48⟩\n",
            "apiVersion: v1\nkind: Secret\nmetadata:\n  name: x\ndata:\n  config.ini: ⟨b48⟩\n",
            '{"kind": "Secret", "data": {"blob": "⟨b32⟩"}}',
        ),
        near_misses=(
            "kind: Secret\nmetadata:\n  name: x\n",
            "kind: ConfigMap\ndata:\n  config.ini: ⟨b48⟩\n",
            "kind: SecretStore\ndata:\n  a: ⟨b48⟩\n",
        ),
    ),
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
        r"|(?:^|\s)[\"'`]?([^\s\"'`]{6,128})[\"'`]? (?:is|as) (?:the|my|our|your|his|her|their) (?:[a-z]{2,12} )?(?i:password|passphrase|api key|token|secret)\b",
        trigger=r"\([A-Za-z0-9_.\-]+/|[0-9]\.[0-9]{1,3}\.[0-9]{1,3}(?::[0-9]+)?[ \t>,\-]+(?:[a-z]+[ ])?[A-Za-z0-9_.\-]+/[^\s/]|@[A-Za-z0-9.\-]+[ ]?[/|:][ ]?[^\s/|:@()<>]{8}|[a-z] (?i:password|passphrase|api key|token|secret)\b",
        check=is_told,
        examples=("10.1.2.3 (master/⟨w7⟩4)", "bob is the user, ⟨w10⟩7 is the password", "bob@example.org / ⟨w10⟩7"),
        near_misses=(
            "10.1.2.3 (linux/amd64)",
            "10.1.2.3 - Mozilla/5.0 Mobile/15E148",
            "10.1.2.3 release/stable",
            "this is the password",
            "authentication is the secret",
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
        r"(?m:^|[>\"'] ?)(?:AUTH|auth)[ ]{1,2}(?:default )?([A-Za-z0-9_\-+/=!@#%^*]{12,256})[\"']?(?m:$)",
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
        r"(?i:\"(?:jwt|jwtsettings|jwtconfig|jwtoptions|auth|authentication|token|tokens|encryption|crypto|signing|security|secrets?|api)\"[ \t]{0,3}:[ \t]{0,3}\{[^\n{}]{0,120}?\"(?:key|issuersigningkey|secret|value)\")[ \t]{0,3}:[ \t]{0,3}\"([^\"\n]{16,512})\"",
        trigger=r"(?i:\"(?:jwt[a-z]*|auth|authentication|tokens?|encryption|crypto|signing|security|secrets?|api)\"[ \t]*:[ \t]*\{)",
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
    Rule(
        "declared-secret",
        rf"(?:\b(?:ENV|ARG|setx|SETX|set|setenv|export|config set)(?:[ \t]{{1,2}}-[A-Za-z\-]{{1,12}}){{0,2}}|#define|\(setq|\(def)[ \t]{{1,4}}[A-Za-z0-9_.\-]{{0,40}}(?i:{KEY_WORD}){KEY_REST}[ \t]{{1,12}}[\"']?([^\s\"'=][^\s\"']{{3,256}})",
        trigger=rf"(?:\b(?:ENV|ARG|setx|SETX|set|setenv|export)(?:[ \t]+-[A-Za-z\-]+)*|#define|\(setq|\(def)[ \t]+[A-Za-z0-9_.\-]*{KEY_HINT}[ \t]+[\"']?[^\s\"'=]",
        refine=_declared,
        generic=True,
        examples=(
            '#define WIFI_PASSWORD "⟨w12⟩"',
            "ENV RAILS_MASTER_KEY ⟨h32⟩",
            "set -x mailWebhookSecret ⟨w20⟩",
            'setx API_TOKEN "⟨w32⟩"',
        ),
        near_misses=("ENV TOKEN_TTL 3600", "set password policy", "#define KEY_SIZE 4096"),
    ),
    Rule(
        "told-variable",
        rf"(?i:{KEY_WORD}){KEY_REST}[`\"']{{0,2}}[ \t]{{1,3}}(?:(?:is|to|was|as|becomes|should be|must be|is now|is set to|equals)[ \t]{{1,3}}[`\"']{{0,2}}|[`\"'])([^\s\"'`,;<>]{{6,256}})",
        trigger=rf"{KEY_HINT}[`\"']*[ \t]+(?:(?:is|to|was|as|becomes|should be|must be|is now|is set to|equals)[ \t]+[`\"']*|[`\"'])[^\s\"'`,;<>]{{6}}",
        refine=_variable,
        generic=True,
        examples=(
            "set API_TOKEN to ⟨h40⟩ please",
            "`DB_PASSWORD` should be `⟨w12⟩`",
            "the value of AWS_SECRET_ACCESS_KEY is ⟨b40⟩",
            'private_key "⟨w20⟩";',
        ),
        near_misses=(
            "set API_TOKEN to something else",
            "the access_token is expired",
            "rename API_KEY to SERVICE_API_KEY",
        ),
    ),
    Rule(
        "told-at-line-end",
        r"(?i:\bpass(?:word|phrase|code))\b[^\n:=]{3,80}[:=][ \t]{1,4}[\"'`]?([^\s\"'`<>]{6,128})[\"'`]?[ \t]{0,3}\.?\r?(?m:$)",
        trigger=r"(?i:\bpass(?:word|phrase|code))\b[^\n:=]",
        check=lambda text: (is_told(text) and is_password_like(text)) or has_symbols(text),
        generic=True,
        examples=("A temporary password is generated for root@localhost: Ny3+⟨w8⟩",),
        near_misses=("the password was rejected, see: https://docs.example.org/errors", "password changed by: admin"),
    ),
    Rule(
        "told-pair",
        rf"(?:{_PAIR_NAMES}(?:[ \t]{{0,2}}(?:[:=(\-]|->)[ \t]{{0,3}}|[ \t](?:are|is)?[ \t]{{0,3}})|(?i:\b(?:creds?|credentials|logins?))(?:[ \t]{{0,2}}[:=]|[ \t](?:are|is))[ \t]{{1,3}}|(?i:\b(?:basic[_-]?auth|http[_-]?auth|proxy[_-]?auth|userpwd|user_pass|auth))[\"']?[ \t]{{0,2}}[:=][ \t]{{0,3}}|(?i:\b(?:log|sign)(?:ged|ing)?[ -]?in(?: as| with| using)?)[ ])[\"'`]?[A-Za-z0-9_.@+\-]{{2,64}}[ \t]{{0,2}}[/:|,(][ \t]{{0,2}}([^\s\"'`,<>]{{5,128}})",
        trigger=r"(?i:(?:id|user|name|account|login|아이디|계정|\bu)[ ]?(?:[/:&,][ ]?(?:pw|pass|p\b|비번|비밀번호)|\(p))|(?i:\b(?:creds?|credentials|logins?))(?:[ \t]*[:=]|[ \t](?:are|is))[ \t]|(?i:auth|userpwd|user_pass)[\"']?[ \t]*[:=][ \t]*[\"'`]?[A-Za-z0-9_.@+\-]+[ \t]*[/:|,(]|(?i:\b(?:log|sign)(?:ged|ing)?[ -]?in(?: as| with| using)?)[ ][\"'`]?[A-Za-z0-9_.@+\-]+[ \t]*[/:|,(]",
        check=lambda text: is_foreign(text) and (any(c.isdigit() for c in text) or is_random_value(text)),
        generic=True,
        examples=(
            "creds are bob / winter⟨d4⟩",
            "id/pw : master / dip⟨w6⟩7gg!",
            "user/pass: bob/⟨w16⟩",
            "ID/PW:master/⟨w6⟩4g",
            "ID(PW):master(⟨w6⟩4g)",
            "basicAuth: bob:winter⟨d4⟩",
            "login admin / ⟨w9⟩7",
        ),
        near_misses=(
            "credentials: see wiki/onboarding",
            "login: https://example.org/login",
            "logins: 12 / 30000",
            "auth: bearer/oauth2",
        ),
    ),
    Rule(
        "told-in-words",
        r"(?:(?i:contraseña|contrasena|senha|mot de passe|passwort|kennwort|wachtwoord|parola|hasło|lösenord|salasana|adgangskode|passord|heslo|jelszó|şifre|clave|código|mật khẩu|kata sandi|password)(?:[ \t]{1,3}[^\s:=]{1,20}){0,4}?[ \t]{1,3}(?i:es|é|è|e'|est|ist|lautet|jetzt|är|er|on|je|to|jest|is|là|adalah)[ \t]{1,3}|(?:[пП]ароль)[ \t]{0,3}(?:[:=—–-]|это|для [^\s]{1,40}[:=—–-]?)[ \t]{0,3}|(?:密码|密碼|口令|パスワード|비밀번호|비번|패스워드|암호|토큰|トークン|令牌|密钥|シークレット)[A-Z]{0,5}[ \t]{0,3}(?:[:=(]|:|是|为|為|は|는|은)?[ \t]{0,3}|(?i:\bp/?w|password)(?:설정)?(?:는|은)[ \t]{0,3}|(?i:\bp/w)[ \t]{0,2}[:=][ \t]{0,3})[\"'`「]?([!-~]{6,128})",
        trigger=r"(?i:contraseña|contrasena|senha|mot de passe|passwort|kennwort|wachtwoord|parola|hasło|lösenord|salasana|adgangskode|passord|heslo|jelszó|şifre|clave|código|mật khẩu|kata sandi|password)[ \t]|[пП]ароль|密码|密碼|口令|パスワード|비밀번호|비번|패스워드|암호|토큰|トークン|令牌|密钥|シークレット|(?i:\bp/?w|password)(?:설정)?(?:는|은)|(?i:\bp/w)[ \t]*[:=]",
        refine=_in_words,
        generic=True,
        examples=(
            "la contraseña es winter⟨d4⟩",
            "le mot de passe est Isl@nd⟨d3⟩",
            "das Passwort ist ⟨w12⟩7",
            "la clave del wifi es ⟨w12⟩7",
            "het wachtwoord van de server is ⟨w12⟩7",
            "密码是 Winter⟨d4⟩!",
            "パスワードは⟨w12⟩7です",
            "비밀번호: ⟨w12⟩7",
        ),
        near_misses=("la contraseña es obligatoria", "das Passwort ist abgelaufen", "le mot de passe est requis"),
    ),
    Rule(
        "service-key",
        rf"(?i:\b(?:{_SERVICES})[A-Za-z0-9_.\-]{{0,24}})[\"'\]]{{0,2}}(?:[ \t]{{0,3}}(?::|=|:=|=>|,)[ \t]{{0,3}}|[ \t]{{1,2}}[A-Za-z0-9]{{16,40}}[ \t]{{1,2}})[\"'`]?([A-Za-z0-9_\-]{{20,128}})(?:[\"'`\s,;]|$)",
        trigger=rf"(?i:\b(?:{_SERVICES})[A-Za-z0-9_.\-]*)[\"'\]]*(?:[ \t]*[:=,]>?[=]?|[ \t]+[A-Za-z0-9]{{16,40}}[ \t])[ \t]*[\"'`]?[A-Za-z0-9_\-]{{20}}",
        refine=_service,
        generic=True,
        apart=True,
        examples=("bittrex: ⟨w32⟩", '"artifactory", "⟨w73⟩"', "finnhub ⟨h24⟩ ⟨h40⟩"),
        near_misses=(
            "stripe_request_id: ⟨w24⟩",
            "heroku: some-long-application-name-in-europe",
            "twilio_event_hash=⟨h40⟩",
        ),
    ),
)
