"""Secrets in text: set by name, next to a user's name, in languages other than English, after the name of a service."""

# ruff: noqa: E501 (a pattern is easier to read in one piece)

from __future__ import annotations

import re

from reverie.redact.entropy import looks_random
from reverie.redact.lazy import lazy
from reverie.redact.rules.literals import has_symbols, is_argument, is_foreign, is_random, is_told, trimmed
from reverie.redact.rules.names import KEY_HINT, KEY_REST, KEY_WORD, UNTOLD, key_strength, key_words, name_start
from reverie.redact.rules.plausible import is_password_like, is_random_value
from reverie.redact.rules.rule import Rule, Span
from reverie.redact.rules.values import judge_named


def _variable(data: bytes, match_start: int, start: int, end: int) -> Span | None:
    """Find the value of `set API_TOKEN to ...`, if the key is the name of a variable, not just a word."""
    begin = name_start(data, match_start)
    found = re.match(rb"[\w.\-]+", data[begin:start])
    key = found.group().decode("utf-8", "replace") if found else ""
    start, end, value = trimmed(data, start, end)
    if value == key:
        return None  # `import api_credentials2 as api_credentials2`
    is_name = len(key_words(key)) > 1 or key.lower() == "apikey" or data[begin - 1 : begin] == b"`"
    return (start, end) if is_name and key_strength(key) and (is_told(value) or has_symbols(value)) else None


def _declared(data: bytes, match_start: int, start: int, end: int) -> Span | None:
    """Find the value of `ENV API_TOKEN value` or `#define WIFI_PASSWORD "value"`: its key is the word before it."""
    key = data[match_start:start].decode("utf-8", "replace").strip(" \t\"'=").split()[-1].strip("\"'")
    start, end, value = (
        trimmed(data, start, end)
        if data[start - 1 : start] not in (b'"', b"'")
        else (start, end, data[start:end].decode("utf-8", "replace"))
    )
    strength = key_strength(key)
    return (start, end) if strength and is_argument(value) and judge_named(value, strength) else None


_PAIR_NAMES = r"(?i:(?:\b[a-z]{0,12}id|user(?:name)?|account|login|아이디|계정|\bu)[ ]?(?:[/:&,][ ]?(?:pw|pwd|pass(?:word|wd)?|p|비번|비밀번호)(?:/port)?\b\)?|\((?:pw|pwd|pass(?:word|wd)?)\)))"


def _in_words(data: bytes, match_start: int, start: int, end: int) -> Span | None:
    if b"arola chiave" in data[match_start:start]:
        return None  # A keyword.
    start, end, value = trimmed(data, start, end)
    told = is_foreign(value) and (any(c.isdigit() for c in value) or is_random_value(value))
    return (start, end) if told and not _is_sentence(value) and not _HOST.fullmatch(value) else None


_HOST = lazy(r"[a-z0-9-]+(?:\.[a-z0-9-]+)*\.(?:[a-z]{2,3}|internal|local|lan|cloud|info|tech|site|host|corp|home)")


def _is_sentence(text: str) -> bool:
    """Whether `text` is words separated by commas, which the pattern takes for one value."""
    return "," in text and not looks_random(text)


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
    """Find a random value after the name of a service."""
    found = re.search(rb"[\w.\-]+", data[match_start:start])
    key = found.group().decode("utf-8", "replace") if found else ""
    last = (key_words(key) or [""])[-1].lower()
    value = data[start:end].decode("utf-8", "replace")
    if (
        last in UNTOLD
        or re.search(r"\d{4}-\d{2}-\d{2}", value)
        or not is_random(value)
        or (value.islower() and value.isalpha())
    ):
        return None
    return start, end


RULES = (
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
        "login-pair",
        rf"(?:{_PAIR_NAMES}(?:[ \t]{{0,2}}(?:[:=(\-]|->)[ \t]{{0,3}}|[ \t](?:are|is)?[ \t]{{0,3}})|(?i:\b(?:creds?|credentials|logins?)(?:[ ](?:for|to|on|of)(?:[ ][^\s:=]{{1,30}}){{1,4}}?)?)(?:[ \t]{{0,2}}(?:[:=]|->|→)|[ \t](?:are|is))[ \t]{{1,3}}|(?i:\b(?:basic[_-]?auth|http[_-]?auth|proxy[_-]?auth|userpwd|user_pass|auth))[\"']?[ \t]{{0,2}}[:=][ \t]{{0,3}}|(?i:\b(?:log|sign)(?:ged|ing)?[ -]?in(?: as| with| using)?)[ ])[\"'`]?[A-Za-z0-9_.@+\-]{{2,64}}[ \t]{{0,2}}[/:|,(][ \t]{{0,2}}([^\s\"'`,<>]{{5,128}})",
        trigger=r"(?i:(?:id|user|name|account|login|아이디|계정|\bu)[ ]?(?:[/:&,][ ]?(?:pw|pass|p\b|비번|비밀번호)|\(p))|(?i:\b(?:creds?|credentials|logins?))[ \t:=]|(?i:auth|userpwd|user_pass)[\"']?[ \t]*[:=][ \t]*[\"'`]?[A-Za-z0-9_.@+\-]+[ \t]*[/:|,(]|(?i:\b(?:log|sign)(?:ged|ing)?[ -]?in(?: as| with| using)?)[ ][\"'`]?[A-Za-z0-9_.@+\-]+[ \t]*[/:|,(]",
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
            "creds for jenkins → admin:Maple!Horse8x",
        ),
        near_misses=(
            "credentials: see wiki/onboarding",
            "login: https://example.org/login",
            "logins: 12 / 30000",
            "auth: bearer/oauth2",
        ),
    ),
    Rule(
        "used-pair",
        r"(?i:\b(?:use|using|with|try))[ ][A-Za-z0-9_.@+\-]{2,64}[ ]/[ ]([^\s\"'`,<>/][^\s\"'`,<>]{7,128})(?:[ ,;.]|$)",
        trigger=r"[ ]/[ ][^\s\"'`,<>]",
        check=lambda text: is_told(text) and has_symbols(text),
        generic=True,
        examples=("use svc_orders / n=⟨w5⟩!⟨w3⟩++⟨w3⟩0 to get in",),
        near_misses=("use staging / production2-eu instead", "use https://example.org/a?b=c&d=1#e"),
    ),
    Rule(
        "password-in-text",
        r"(?:(?i:contraseña|contrasena|senha|mot de passe|passwort|kennwort|wachtwoord|parola|hasło|lösenord|salasana|adgangskode|passord|heslo|jelszó|şifre|clave|código|mật khẩu|kata sandi|password)(?:[ \t]{1,3}[^\s:=]{1,48}){0,4}?[ \t]{1,3}(?i:es|é|è|e'|est|ist|lautet|jetzt|är|er|on|je|to|jest|is|là|adalah)[ \t]{1,3}|(?:[пП]ароль)[ \t]{0,3}(?:[:=—–-]|это|для [^\s]{1,40}[:=—–-]?)[ \t]{0,3}|(?:密码|密碼|口令|パスワード|비밀번호|비번|패스워드|암호|토큰|トークン|令牌|密钥|シークレット)[A-Z]{0,5}[ \t]{0,3}(?:[:=(]|:|是|为|為|は|는|은)?[ \t]{0,3}|(?i:\bp/?w|password)(?:설정)?(?:는|은)[ \t]{0,3}|(?i:\bp/w)[ \t]{0,2}[:=][ \t]{0,3})[\"'`「]?([!-~]{6,128})",
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
        examples=("bittrex: ⟨w32⟩", '"artifactory", "⟨w73⟩"', "finnhub ⟨h24!⟩ ⟨h40⟩"),
        near_misses=(
            "stripe_request_id: ⟨w24⟩",
            "heroku: some-long-application-name-in-europe",
            "twilio_event_hash=⟨h40⟩",
        ),
    ),
)
