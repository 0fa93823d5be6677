"""Lines with and without secrets, made by code that knows token formats but not the redactor's rules.

Two generators: the main one, and a held-out one with other kinds, other templates and other near misses, which is only
for measuring. Both are the same on every machine for the same seed. No line holds anything real.
"""

from __future__ import annotations

import base64
import json
import random
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass

Random = random.Random
B62 = string.ascii_letters + string.digits
URL64 = B62 + "-_"
STD64 = B62 + "+/"
HEX = "0123456789abcdef"
LOW = string.ascii_lowercase + string.digits
UP = string.ascii_uppercase + string.digits


@dataclass(frozen=True, slots=True)
class Line:
    """A line, and the secret in it (None: nothing in it may be touched)."""

    text: str
    secret: str | None
    kind: str


def pick(r: Random, alphabet: str, n: int) -> str:
    return "".join(r.choices(alphabet, k=n))


def uuid(r: Random) -> str:
    h = pick(r, HEX, 32)
    return f"{h[:8]}-{h[8:12]}-4{h[13:16]}-a{h[17:20]}-{h[20:]}"


def password(r: Random) -> str:
    """What people choose and what managers generate."""
    word = r.choice(["Falcon", "winter", "Blue", "coffee", "Rocket", "summer", "tiger", "Kettle", "maple", "Orbit"])
    other = r.choice(["horse", "Lamp", "river", "Stone", "cloud", "Piano"])
    return r.choice(
        [
            f"{word}{r.randint(10, 9999)}!",
            f"{word}-{other}-{r.randint(10, 99)}",
            f"{word}{other}{r.randint(100, 999)}",
            f"{word}@{r.randint(1950, 2030)}#{other}",
            pick(r, B62 + "!#%*+?", 14),
            pick(r, B62, 16),
            f"{pick(r, B62, 5)}-{pick(r, B62, 5)}-{pick(r, B62, 5)}",
        ]
    )


Maker = Callable[[Random], str]


def fixed(prefix: str, alphabet: str, n: int, suffix: str = "") -> Maker:
    return lambda r: prefix + pick(r, alphabet, n) + suffix


def jwt(r: Random) -> str:
    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    return f"{part({'alg': 'HS256', 'typ': 'JWT'})}.{part({'sub': r.randint(1, 10**9), 'iat': r.randint(1, 2 * 10**9)})}.{pick(r, URL64, 43)}"


def pem(r: Random) -> str:
    kind = r.choice(["RSA ", "EC ", "OPENSSH ", "", "DSA ", "ENCRYPTED "])
    body = "\\n".join(pick(r, STD64, 64) for _ in range(r.randint(3, 8)))
    return f"-----BEGIN {kind}PRIVATE KEY-----\\n{body}\\n-----END {kind}PRIVATE KEY-----"


# Tokens that are recognisable wherever they stand.
SHAPED: dict[str, Maker] = {
    "aws access key": fixed("AKIA", string.ascii_uppercase + "234567", 16),
    "aws temporary key": fixed("ASIA", string.ascii_uppercase + "234567", 16),
    "google api key": fixed("AIza", URL64, 35),
    "google oauth secret": fixed("GOCSPX-", URL64, 28),
    "google access token": fixed("ya29.a0", URL64, 120),
    "openai": fixed("sk-", B62, 48),
    "openai project": fixed("sk-proj-", URL64, 124),
    "openai service": fixed("sk-svcacct-", URL64, 110),
    "anthropic": fixed("sk-ant-api03-", URL64, 93, "AA"),
    "openrouter": fixed("sk-or-v1-", HEX, 64),
    "deepseek": fixed("sk-", HEX, 32),
    "groq": fixed("gsk_", B62, 52),
    "huggingface": fixed("hf_", string.ascii_letters, 34),
    "replicate": fixed("r8_", B62, 37),
    "perplexity": fixed("pplx-", B62, 48),
    "xai": fixed("xai-", B62, 80),
    "pinecone": fixed("pcsk_", B62, 64),
    "langsmith": lambda r: f"lsv2_pt_{pick(r, HEX, 32)}_{pick(r, HEX, 10)}",
    "elevenlabs": fixed("sk_", HEX, 48),
    "fireworks": fixed("fw_", B62, 24),
    "github classic": fixed("ghp_", B62, 36),
    "github oauth": fixed("gho_", B62, 36),
    "github server": fixed("ghs_", B62, 36),
    "github fine grained": lambda r: f"github_pat_{pick(r, B62, 22)}_{pick(r, B62, 59)}",
    "gitlab": fixed("glpat-", URL64, 20),
    "npm": fixed("npm_", B62, 36),
    "pypi": fixed("pypi-AgEIcHlwaS5vcmc", URL64, 140),
    "rubygems": fixed("rubygems_", HEX, 48),
    "docker hub": fixed("dckr_pat_", URL64, 27),
    "vault": fixed("hvs.", URL64, 90),
    "terraform": lambda r: f"{pick(r, B62, 14)}.atlasv1.{pick(r, B62, 67)}",
    "pulumi": fixed("pul-", HEX, 40),
    "doppler": fixed("dp.pt.", B62, 43),
    "age": fixed("AGE-SECRET-KEY-1", UP, 58),
    "atlassian": fixed("ATATT3xFfGF0", URL64, 170),
    "linear": fixed("lin_api_", B62, 40),
    "notion": fixed("ntn_", B62, 46),
    "airtable": lambda r: f"pat{pick(r, B62, 14)}.{pick(r, HEX, 64)}",
    "figma": fixed("figd_", URL64, 40),
    "postman": lambda r: f"PMAK-{pick(r, HEX, 24)}-{pick(r, HEX, 34)}",
    "new relic": fixed("NRAK-", UP, 27),
    "grafana": lambda r: f"glsa_{pick(r, B62, 32)}_{pick(r, HEX, 8)}",
    "sentry": fixed("sntryu_", HEX, 64),
    "sonar": fixed("squ_", HEX, 40),
    "databricks": fixed("dapi", HEX, 32),
    "planetscale": fixed("pscale_tkn_", URL64, 43),
    "supabase": fixed("sbp_", HEX, 40),
    "stripe live": fixed("sk_live_", B62, 24),
    "stripe restricted": fixed("rk_live_", B62, 99),
    "square": fixed("sq0atp-", URL64, 22),
    "shopify": fixed("shpat_", HEX, 32),
    "razorpay": fixed("rzp_live_", B62, 14),
    "slack bot": lambda r: f"xoxb-{pick(r, string.digits, 12)}-{pick(r, string.digits, 13)}-{pick(r, B62, 24)}",
    "slack user": lambda r: f"xoxp-{pick(r, string.digits, 12)}-{pick(r, string.digits, 12)}-{pick(r, string.digits, 12)}-{pick(r, HEX, 32)}",
    "discord": lambda r: f"M{pick(r, B62, 23)}.{pick(r, URL64, 6)}.{pick(r, URL64, 38)}",
    "telegram": lambda r: f"{r.randint(10**9, 10**10 - 1)}:AA{pick(r, URL64, 33)}",
    "twilio key": fixed("SK", HEX, 32),
    "sendgrid": lambda r: f"SG.{pick(r, URL64, 22)}.{pick(r, URL64, 43)}",
    "mailgun": fixed("key-", HEX, 32),
    "mailchimp": lambda r: f"{pick(r, HEX, 32)}-us{r.randint(1, 21)}",
    "brevo": lambda r: f"xkeysib-{pick(r, HEX, 64)}-{pick(r, B62, 16)}",
    "hubspot": lambda r: f"pat-na1-{uuid(r)}",
    "facebook": fixed("EAA", B62, 170),
    "digitalocean": fixed("dop_v1_", HEX, 64),
    "netlify": fixed("nfp_", B62, 36),
    "alibaba": fixed("LTAI5t", B62, 18),
    "launchdarkly": lambda r: f"sdk-{uuid(r)}",
    "circleci": lambda r: f"CCIPAT_{pick(r, B62, 22)}_{pick(r, HEX, 40)}",
    "buildkite": fixed("bkua_", HEX, 40),
    "artifactory": fixed("AKCp8", B62, 64),
    "dropbox": fixed("sl.B", URL64, 135),
    "jwt": jwt,
    "private key": pem,
    "reverie": lambda r: f"rvk_{pick(r, LOW, 10)}_{pick(r, URL64, 43)}",
    "unknown vendor": lambda r: f"{pick(r, string.ascii_lowercase, 3)}_live_{pick(r, B62, 32)}",
}  # fmt: skip

# Tokens that only their surroundings give away.
NAMED: dict[str, Maker] = {
    "AWS_SECRET_ACCESS_KEY": lambda r: pick(r, STD64, 40),
    "DATADOG_API_KEY": lambda r: pick(r, HEX, 32),
    "MISTRAL_API_KEY": lambda r: pick(r, B62, 32),
    "COHERE_API_KEY": lambda r: pick(r, B62, 40),
    "HEROKU_API_KEY": uuid,
    "TWILIO_AUTH_TOKEN": lambda r: pick(r, HEX, 32),
    "CLOUDFLARE_API_TOKEN": lambda r: pick(r, URL64, 40).strip("-_"),
    "WANDB_API_KEY": lambda r: pick(r, HEX, 40),
    "VERCEL_TOKEN": lambda r: pick(r, B62, 24),
    "ALGOLIA_ADMIN_KEY": lambda r: pick(r, HEX, 32),
    "DB_PASSWORD": password,
    "REDIS_PASSWORD": password,
    "JWT_SECRET": lambda r: pick(r, B62, 32),
    "CLIENT_SECRET": lambda r: pick(r, B62, 40),
    "SESSION_SECRET": lambda r: pick(r, HEX, 64),
    "ENCRYPTION_KEY": lambda r: base64.b64encode(r.randbytes(32)).decode(),
    "SNYK_TOKEN": uuid,
    "POSTMARK_SERVER_TOKEN": uuid,
    "AZURE_CLIENT_SECRET": lambda r: f"{pick(r, B62, 3)}8Q~{pick(r, B62, 34)}",
    "OKTA_API_TOKEN": lambda r: f"00{pick(r, URL64, 39)}{pick(r, B62, 1)}",
}

ANYWHERE = (
    "{}",
    "export API_TOKEN={}",
    "API_KEY={}",
    'api_key: "{}"',
    '{{"model": "large", "api_key": "{}", "stream": true}}',
    "2024-11-03T08:12:44Z INFO auth: using key {} for tenant acme",
    "hey, can you try with {} and tell me if it works?",
    "curl -H 'Authorization: Bearer {}' https://api.example.org/v1/items",
    "client = Client(token='{}')",
    "    raise AuthError('rejected: {}')",
    "I pasted {} into the settings page by mistake.",
    "$ tool login --token {} --region eu",
    "old: {}",
    "- {}",
    "git clone https://oauth2:{}@git.example.org/team/repo.git",
    "const headers = {{ 'x-api-key': '{}' }};",
)
ASSIGNED = (
    "{k}={v}",
    'export {k}="{v}"',
    "{k}: {v}",
    '  "{k}": "{v}",',
    "{k} = '{v}'",
    "docker run -e {k}={v} app:latest",
    "os.environ['{k}'] = '{v}'",
    "ENV {k}={v}",
    "set {k}={v}",
    "- name: {k}={v}",
)
PASSWORDS = (
    "password={}",
    "password: {}",
    '{{"username": "ada", "password": "{}"}}',
    "the password is {}",
    "my password for the staging box is {}",
    "postgres://app:{}@db.internal:5432/app",
    "mongodb+srv://svc:{}@cluster0.example.net/prod",
    "redis://:{}@cache:6379/0",
    "https://deploy:{}@git.example.org/r.git",
    "mysql -u root -p'{}' shop",
    "curl -u ada:{} https://api.example.org/me",
    "machine api.example.org login ada password {}",
    "Server=db;Database=x;User Id=sa;Password={};",
    "CREATE USER app WITH PASSWORD '{}';",
    "sshpass -p '{}' ssh ada@host",
    "tool --user ada --password {}",
    "<password>{}</password>",
    "spring.datasource.password={}",
    "PGPASSWORD='{}' psql -h db",
    "we changed the wifi password to {} yesterday",
)

CLEAN: tuple[str | Maker, ...] = (
    lambda r: f"commit {pick(r, HEX, 40)}",
    lambda r: f"Merge {pick(r, HEX, 7)}..{pick(r, HEX, 7)} into main",
    lambda r: f"sha256:{pick(r, HEX, 64)}  dist/app-{r.randint(1, 9)}.{r.randint(0, 20)}.tar.gz",
    lambda r: f"{pick(r, HEX, 32)}  file.iso",
    lambda r: f"request id {uuid(r)} took {r.randint(1, 900)} ms",
    lambda r: f'{{"id": "{uuid(r)}", "total_tokens": {r.randint(1, 9999)}, "model": "gpt-4o"}}',
    lambda r: f"data:image/png;base64,iVBORw0KGgo{pick(r, STD64, 80)}",
    lambda r: f'<script src="/app.{pick(r, HEX, 8)}.js" integrity="sha384-{pick(r, STD64, 64)}"></script>',
    lambda r: f"npm resolved integrity sha512-{pick(r, STD64, 86)}==",
    lambda r: f"color: #{pick(r, HEX, 6)}; background: #{pick(r, HEX, 3)};",
    lambda r: f"version {r.randint(0, 9)}.{r.randint(0, 30)}.{r.randint(0, 9)}-rc{r.randint(1, 9)}",
    lambda r: f"call me at +{r.randint(1, 99)} {r.randint(100, 999)} {r.randint(1000000, 9999999)}",
    lambda r: f"0x{pick(r, HEX, 16)} in main() at src/main.c:{r.randint(1, 900)}",
    lambda r: f"2024-0{r.randint(1, 9)}-1{r.randint(0, 9)}T0{r.randint(0, 9)}:12:44.{r.randint(100, 999)}Z GET /v1/items/{r.randint(1, 10**6)} 200",
    lambda r: f"https://example.org/articles/{r.randint(1, 10**6)}?utm_source=mail&page={r.randint(1, 9)}#section-{r.randint(1, 9)}",
    lambda r: f"https://cdn.example.org/assets/{pick(r, HEX, 32)}/logo.svg",
    "password=<your-password>",
    "export API_KEY=${API_KEY}",
    "api_key: os.environ['API_KEY']",
    "const token = process.env.GITHUB_TOKEN;",
    'token = request.headers.get("Authorization")',
    "Never commit your password or API key to a repository.",
    "The password must contain at least 12 characters, one digit and one symbol.",
    "Tokens that start with ghp_ are personal access tokens; sk_live_ marks a Stripe key.",
    lambda r: f"used {r.randint(100, 9999)} tokens of {r.randint(10000, 99999)} (max_tokens={r.randint(100, 9999)})",
    "secret: true",
    "password: string (required)",
    "if (!password) throw new Error('missing password');",
    "def login(user: str, password: str) -> Token:",
    "!function(e,t){'object'==typeof exports?module.exports=t():e.x=t()}(this,function(){return 1});",
    lambda r: f"chatcmpl-{pick(r, B62, 29)}",
    lambda r: f"cus_{pick(r, B62, 14)} paid invoice in_{pick(r, B62, 24)}",
    lambda r: f"arn:aws:iam::{pick(r, string.digits, 12)}:role/deploy-role-{r.randint(1, 9)}",
    lambda r: f"i-0{pick(r, HEX, 16)} is running in eu-west-1a",
    lambda r: f"container {pick(r, HEX, 64)} exited with code {r.randint(0, 137)}",
    lambda r: f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA{pick(r, STD64, 43)} ada@laptop",
    lambda r: f"ETag: W/\"{pick(r, HEX, 32)}\"",
    lambda r: f"X-Request-Id: {uuid(r)}",
    lambda r: f"idempotency_key={uuid(r)}",
    lambda r: f"cache-key: build-{pick(r, HEX, 20)}",
    "Authorization: Bearer <token>",
    "[REDACTED:openai-key] was rotated",
    lambda r: f"trace_id={pick(r, HEX, 32)} span_id={pick(r, HEX, 16)}",
    "She said the secret to good bread is time, salt and patience.",
    "The key takeaway: small batches beat big ones.",
    lambda r: f"tracking number 1Z{pick(r, UP, 16)}",
    lambda r: f"ISBN 978-{r.randint(0, 9)}-{r.randint(10, 99)}-{r.randint(100000, 999999)}-{r.randint(0, 9)}",
    lambda r: f"order #{r.randint(10**9, 10**10)} shipped on {r.randint(1, 28)} March",
    lambda r: f"lat 52.{r.randint(10000, 99999)}, lon 13.{r.randint(10000, 99999)}",
    "DATABASE_URL=postgres://user:password@localhost:5432/app",
    lambda r: f"tokenizer = AutoTokenizer.from_pretrained('org/model-{r.randint(1, 70)}b-instruct')",
    "auth: enabled, session: sticky, cookie: secure",
    lambda r: f"node_modules/.pnpm/pkg@{r.randint(1, 9)}.0.{r.randint(0, 9)}_{pick(r, LOW, 26)}/node_modules",
    "password reset link sent to ada@example.org",
    lambda r: f"user {r.randint(1, 9999)} changed their password on 2024-05-{r.randint(10, 28)}",
    lambda r: "public_key: ed25519:" + pick(r, STD64, 43) + "=",
)  # fmt: skip


def clean(line: str | Maker, r: Random) -> str:
    return line if isinstance(line, str) else line(r)


def main_corpus(seed: int = 20241103, per_kind: int = 24) -> Iterator[Line]:
    """Every kind in every manner, and as many clean lines."""
    r = Random(seed)
    secrets: list[Line] = []
    for kind, make in SHAPED.items():
        for i in range(per_kind):
            template = ANYWHERE[i % len(ANYWHERE)]
            if kind == "private key" and "oauth2:" in template:
                template = "{}"
            secret = make(r)
            secrets.append(Line(template.format(secret), secret, kind))
    for kind, make in NAMED.items():
        for i in range(per_kind):
            secret = make(r)
            secrets.append(Line(ASSIGNED[i % len(ASSIGNED)].format(k=kind, v=secret), secret, kind))
    for i in range(per_kind * 10):
        secret = password(r)
        secrets.append(Line(PASSWORDS[i % len(PASSWORDS)].format(secret), secret, "password"))
    yield from secrets
    for i in range(len(secrets)):
        yield Line(clean(CLEAN[i % len(CLEAN)], r), None, f"clean {i % len(CLEAN)}")


# The held-out part: nothing below was looked at while rules were written.

HELD_SHAPED: dict[str, Maker] = {
    "vendor test key": lambda r: f"{pick(r, string.ascii_lowercase, 5)}_test_{pick(r, B62, 40)}",
    "vendor secret key": lambda r: f"{pick(r, string.ascii_lowercase, 4)}-secret-{pick(r, HEX, 40)}",
    "vendor api": lambda r: f"{pick(r, string.ascii_lowercase, 6)}_api_{pick(r, LOW, 32)}",
    "vendor long": lambda r: f"{pick(r, string.ascii_lowercase, 3)}_{pick(r, B62, 48)}",
    "gitlab runner": fixed("glrt-", URL64, 20),
    "slack app": lambda r: f"xapp-1-A{pick(r, UP, 10)}-{pick(r, string.digits, 13)}-{pick(r, HEX, 64)}",
    "slack webhook": lambda r: f"T{pick(r, UP, 9)}/B{pick(r, UP, 10)}/{pick(r, B62, 24)}",
    "aws session": fixed("IQoJb3JpZ2luX2VjE", STD64, 280),
    "github refresh": fixed("ghr_", B62, 36),
    "prefect": fixed("pnu_", LOW, 36),
    "clickup": lambda r: f"pk_{r.randint(10**6, 10**8)}_{pick(r, UP, 32)}",
    "tailscale": lambda r: f"tskey-auth-{pick(r, B62, 17)}-{pick(r, B62, 32)}",
    "braintree": lambda r: f"access_token$production${pick(r, LOW, 16)}${pick(r, HEX, 32)}",
    "mapbox": lambda r: f"sk.eyJ1Ijoi{pick(r, B62, 60)}.{pick(r, URL64, 22)}",
    "dynatrace": lambda r: f"dt0c01.{pick(r, UP, 24)}.{pick(r, UP, 64)}",
    "nvidia": fixed("nvapi-", URL64, 64),
    "resend": lambda r: f"re_{pick(r, B62, 8)}_{pick(r, B62, 24)}",
    "jwt": jwt,
    "bcrypt": lambda r: f"$2b$12${pick(r, B62 + './', 53)}",
    "google refresh": fixed("1//0", URL64, 98),
    "typeform": lambda r: f"tfp_{pick(r, URL64, 44)}_{pick(r, B62, 14)}",
    "fly": fixed("fo1_", URL64, 43),
}  # fmt: skip
HELD_ANYWHERE = (
    "remember this: {}",
    "[worker-3] DEBUG sending credentials {} to upstream",
    "user: here is the key you asked for -> {}",
    "auth:\n  token: {}",
    'var cfg = {{key:"{}",retries:3}}',
    "Traceback: ValueError: bad token '{}'",
    "echo {} | tool login --password-stdin",
    "| prod | {} | rotated |",
    "https://api.example.org/hook?token={}&retry=1",
    "(the value was {})",
)
HELD_NAMED = (
    "stripeWebhookSecret", "smtp_pass", "FASTLY_API_TOKEN", "apiToken", "X-Auth-Token", "secretKey", "access_token", "refresh_token",
    "MAILJET_API_SECRET", "consumer_secret", "app-secret", "LINODE_TOKEN", "SIGNING_KEY", "auth_key", "GITEA_TOKEN", "deploy_token",
)  # fmt: skip
HELD_ASSIGNED = (
    "{k}: '{v}'",
    '{k} => "{v}"',
    '{k}="{v}" # rotate in june',
    '{{\\"{k}\\": \\"{v}\\"}}',
    "let {k} = `{v}`;",
    "{k}:{v}",
    'props.setProperty("{k}", "{v}");',
    '<add key="{k}" value="{v}" />',
    '{k} := "{v}"',
    "--{k} {v}",
)
HELD_VALUES: tuple[Maker, ...] = (
    lambda r: pick(r, B62, 20),
    lambda r: pick(r, HEX, 40),
    lambda r: pick(r, LOW, 28),
    lambda r: base64.b64encode(r.randbytes(24)).decode(),
    uuid,
)
HELD_PASSWORDS = (
    "pwd: {}",
    "login ada / password {}",
    "Passwort: {}",
    "amqps://worker:{}@mq.example.net/vhost",
    "jdbc:postgresql://db/app?user=app&password={}",
    "ftp://ada:{}@files.example.org/",
    'db_pass = "{}"',
    'rootPassword: "{}"',
    "docker login -u ada -p {} registry.example.org",
    "ALTER USER app IDENTIFIED BY '{}';",
    "ok so the new admin password is {} please keep it safe",
    '{{"db": {{"user": "x", "passwd": "{}"}}}}',
)
HELD_CLEAN: tuple[str | Maker, ...] = (
    lambda r: f"resp_{pick(r, HEX, 48)}",
    lambda r: f"toolu_01{pick(r, B62, 22)}",
    lambda r: f"req_{pick(r, B62, 24)} finished",
    lambda r: f"Digest: SHA-256={base64.b64encode(r.randbytes(32)).decode()}",
    lambda r: f"from app@sha256:{pick(r, HEX, 64)}",
    lambda r: f"build {pick(r, HEX, 12)}-{r.randint(1, 99)} deployed to staging",
    lambda r: f"session {uuid(r)} started",
    lambda r: f"git+https://github.com/org/repo.git@{pick(r, HEX, 40)}",
    "see https://docs.example.org/authentication/api-keys for how to create a token",
    "password_min_length: 12",
    "token_expires_in=3600",
    "secret_name: prod/database/main-credentials",
    "The auth token is refreshed every 15 minutes.",
    "Forgot password? Click the link below to reset it.",
    "api key: see 1Password",
    "apiKey: '<insert key here>'",
    "password: changeme",
    "PASSWORD=your_password_here",
    "token: {{ secrets.DEPLOY_TOKEN }}",
    "password: !vault |",
    "this.token = await this.auth.getToken(scopes);",
    "self.api_key = api_key or settings.API_KEY",
    "    password = getpass.getpass('Password: ')",
    "func NewClient(apiKey string, opts ...Option) *Client {",
    lambda r: f"{r.randint(1, 255)}.{r.randint(0, 255)}.{r.randint(0, 255)}.{r.randint(0, 255)} - - \"GET / HTTP/1.1\" 200 {r.randint(100, 99999)}",
    lambda r: f"MAC {':'.join(pick(r, HEX, 2) for _ in range(6))}",
    lambda r: f"IPv6 2001:db8:{pick(r, HEX, 4)}:{pick(r, HEX, 4)}::{pick(r, HEX, 2)}",
    lambda r: f"ULID 01H{pick(r, '0123456789ABCDEFGHJKMNPQRSTVWXYZ', 23)}",
    lambda r: f"s3://bucket-name/path/to/{pick(r, LOW, 12)}.parquet",
    lambda r: f"svg path d=\"M{r.randint(1, 99)} {r.randint(1, 99)}L{r.randint(1, 99)} {r.randint(1, 99)}Z\"",
    "-----BEGIN CERTIFICATE----- marks the start of a certificate",
    lambda r: f"webpack:///./src/index.{pick(r, HEX, 8)}.js",
    lambda r: f"partition_key=tenant-{r.randint(1, 999)}-{pick(r, HEX, 8)}",
    lambda r: f"primary key (id, created_at) -- {r.randint(1, 99)} rows",
    "Keys: up, down, left, right. Press any key to continue.",
    "The committee's secret ballot produced 14 votes for and 3 against.",
    lambda r: f"invoice INV-2024-{r.randint(10000, 99999)} over EUR {r.randint(10, 9999)}.00",
    "bearer of good news",
    "credentials: include",
    "Set-Cookie: theme=light; Path=/; Max-Age=31536000",
    lambda r: f"eth tx 0x{pick(r, HEX, 64)}",
    "mysql -u root -p shop < dump.sql",
)  # fmt: skip


def held_out_corpus(seed: int = 77, per_kind: int = 30) -> Iterator[Line]:
    """Other kinds, templates and near misses than the main corpus."""
    r = Random(seed)
    secrets: list[Line] = []
    for kind, make in HELD_SHAPED.items():
        for i in range(per_kind):
            secret = make(r)
            template = (
                "post to https://hooks.slack.com/services/{}"
                if kind == "slack webhook"
                else HELD_ANYWHERE[i % len(HELD_ANYWHERE)]
            )
            secrets.append(Line(template.format(secret), secret, kind))
    for k, name in enumerate(HELD_NAMED):
        for i in range(per_kind):
            secret = HELD_VALUES[(i + k) % len(HELD_VALUES)](r)
            secrets.append(Line(HELD_ASSIGNED[i % len(HELD_ASSIGNED)].format(k=name, v=secret), secret, name))
    for i in range(per_kind * 8):
        secret = password(r)
        secrets.append(Line(HELD_PASSWORDS[i % len(HELD_PASSWORDS)].format(secret), secret, "password"))
    yield from secrets
    for i in range(len(secrets)):
        yield Line(clean(HELD_CLEAN[i % len(HELD_CLEAN)], r), None, f"clean {i % len(HELD_CLEAN)}")


WORDS = ["the", "of", "and", "to", "in", "is", "that", "it", "was", "for", "on", "are", "as", "with", "they", "be", "at", "one", "have", "this", "from", "by", "hot", "word", "but", "what", "some", "we", "can", "out", "other", "were", "all", "there", "when", "up", "use", "your", "how", "said", "an", "each", "she", "which", "do", "their", "time", "if", "will", "way", "about", "many", "then", "them", "write", "would", "like", "so", "these", "her", "long", "make", "thing", "see", "him", "two", "has", "look", "more", "day", "could", "go", "come", "did", "number", "sound", "no", "most", "people", "my", "over", "know", "water", "than", "call", "first", "who", "may", "down", "side", "been", "now", "find", "any", "new", "work", "part", "take", "get", "place", "made", "live", "where", "after", "back", "little", "only", "round", "man", "year", "came", "show", "every", "good", "me", "give", "our", "under", "name", "very", "through", "just", "form", "sentence", "great", "think", "say", "help", "low", "line", "differ", "turn", "cause", "much", "mean", "before", "move", "right", "boy", "old", "too", "same", "tell", "does", "set", "three", "want", "air", "well", "also", "play", "small", "end", "put", "home", "read", "hand", "port", "large", "spell", "add", "even", "land", "here", "must", "big", "high", "such", "follow", "act", "why", "ask", "men", "change", "went", "light", "kind", "off", "need", "house", "picture", "try", "us", "again", "animal", "point", "mother", "world", "near", "build", "self", "earth", "father", "head", "stand", "own", "page", "should", "country", "found", "answer", "school", "grow", "study", "still", "learn", "plant", "cover", "food", "sun", "four", "between", "state", "keep", "eye", "never", "last", "let", "thought", "city", "tree", "cross", "farm", "hard", "start", "might", "story", "saw", "far", "sea", "draw", "left", "late", "run", "while", "press", "close", "night", "real", "life", "few", "north", "open", "seem", "together", "next", "white", "children", "begin", "got", "walk", "example", "ease", "paper", "group", "always", "music", "those", "both", "mark", "often", "letter", "until", "mile", "river", "car", "feet", "care", "second", "book", "carry", "took", "science", "eat", "room", "friend", "began", "idea", "fish", "mountain", "stop", "once", "base", "hear", "horse", "cut", "sure", "watch", "color", "face", "wood", "main", "enough", "plain", "girl", "usual", "young", "ready", "above", "ever", "red", "list", "though", "feel", "talk", "bird", "soon", "body", "dog", "family", "direct", "pose", "leave", "song", "measure", "door", "product", "black", "short", "numeral", "class", "wind", "question", "happen", "complete", "ship", "area", "half", "rock", "order", "fire", "south", "problem", "piece", "told", "knew", "pass", "since", "top", "whole", "king", "space", "heard", "best", "hour", "better", "true", "during", "hundred", "five", "remember", "step", "early", "hold", "west", "ground", "interest", "reach", "fast", "verb", "sing", "listen", "six", "table", "travel", "less", "morning", "ten", "simple", "several", "vowel", "toward", "war", "lay", "against", "pattern", "slow", "center", "love", "person", "money", "serve", "appear", "road", "map", "rain", "rule", "govern", "pull", "cold", "notice", "voice", "unit", "power", "town", "fine", "certain", "fly", "fall", "lead", "cry"]  # fmt: skip


def prose(size: int, seed: int = 5) -> str:
    """About `size` characters of plain sentences, with names, numbers and dates in them."""
    r = Random(seed)
    made: list[str] = []
    length = 0
    while length < size:
        words = r.choices(WORDS, k=r.randint(6, 22))
        if r.random() < 0.3:
            words[r.randrange(len(words))] = r.choice(
                ["Ada", "Berlin", "2024-05-17", "18:30", "42", "3.5%", "Project Halley", "ISO-8601"]
            )
        sentence = " ".join(words).capitalize() + r.choice([".", ".", ".", "?", ";", ":", "!\n", ".\n\n"])
        made.append(sentence)
        length += len(sentence) + 1
    return " ".join(made)
