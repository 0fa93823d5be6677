"""A second corpus for the redactor, made apart from its rules: formats recalled from public documentation.

Every value is drawn at run time. In a template, guillemets ask for drawn characters and hollow brackets mark
what must not survive: `token=⟦glsa_«A32»_«h8»⟧`.
"""

from __future__ import annotations

import base64
import json
import re
import string
from collections.abc import Callable, Iterator
from random import Random

from bench.redact_corpus import Line

ALPHABETS = {
    "A": string.ascii_letters + string.digits,
    "L": string.ascii_letters,
    "l": string.ascii_lowercase + string.digits,
    "a": string.ascii_lowercase,
    "u": string.ascii_uppercase + string.digits,
    "U": string.ascii_uppercase,
    "d": string.digits,
    "h": "0123456789abcdef",
    "H": "0123456789ABCDEF",
    "b": string.ascii_letters + string.digits + "-_",
    "w": string.ascii_letters + string.digits + "_",
    "B": string.ascii_letters + string.digits + "+/",
    "s": "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
    "o": "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz",
    "k": "qpzry9x8gf2tvdw0s3jn54khce6mua7l",
    "y": string.ascii_letters + string.digits + "!@#%^*-_=+.~",
}
WORDS = [
    "winter",
    "summer",
    "dragon",
    "copper",
    "falcon",
    "harbor",
    "maple",
    "orbit",
    "pixel",
    "quartz",
    "river",
    "saturn",
    "timber",
    "velvet",
    "walnut",
    "yellow",
    "anchor",
    "breeze",
    "cactus",
    "delta",
    "ember",
    "forest",
    "garnet",
    "hollow",
    "island",
    "jungle",
    "kettle",
    "lemon",
    "marble",
    "nectar",
]
NAMES = ["alice", "bob", "carol", "dmitri", "eve", "farid", "greta", "hiro", "ines", "jonas"]
PLACES = ["billing", "orders", "search", "gateway", "mailer", "ledger", "catalog", "shop", "inventory", "media"]


def password(r: Random) -> str:
    """What a person or a password manager would choose."""
    word, other = r.choice(WORDS), r.choice(WORDS)
    return r.choice(
        [
            lambda: f"{word.capitalize()}{r.randint(10, 9999)}!",
            lambda: f"{word}{r.choice('@#$%*')}{other.capitalize()}{r.randint(1, 99)}",
            lambda: f"{word}-{other}-{r.choice(WORDS)}-{r.randint(1, 99)}",
            lambda: f"{word[0].upper()}{word[1:].replace('e', '3').replace('a', '@')}{r.randint(100, 999)}",
            lambda: draw(r, "A", 16),
            lambda: draw(r, "y", 20).replace("@", "x"),
            lambda: f"{word}{r.randint(1980, 2029)}",
        ]
    )()


def draw(r: Random, alphabet: str, count: int) -> str:
    return "".join(r.choices(ALPHABETS[alphabet], k=count))


def encoded(r: Random, count: int) -> str:
    return base64.b64encode(r.randbytes(count)).decode()


def segment(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def jwt(r: Random) -> str:
    head = {"alg": r.choice(["HS256", "RS256", "ES256"]), "typ": "JWT"}
    body = {"sub": draw(r, "d", 8), "name": r.choice(NAMES), "iat": 1700000000 + r.randrange(10**7)}
    return f"{segment(head)}.{segment(body)}.{draw(r, 'b', 43)}"


def jwe(r: Random) -> str:
    head = segment({"alg": "RSA-OAEP", "enc": "A256GCM"})
    return ".".join([head, draw(r, "b", 342), draw(r, "b", 16), draw(r, "b", 120), draw(r, "b", 22)])


def wrapped(r: Random, lines: int, newline: str = "\n", width: int = 64) -> str:
    return newline.join([*(draw(r, "B", width) for _ in range(lines)), draw(r, "B", 36) + "=="])


SPECIAL: dict[str, Callable[[Random], str]] = {
    "pw": password,
    "jwt": jwt,
    "jwe": jwe,
    "uuid": lambda r: "-".join(draw(r, "h", n) for n in (8, 4, 4, 4, 12)),
    "name": lambda r: r.choice(NAMES),
    "place": lambda r: r.choice(PLACES),
    "word": lambda r: r.choice(WORDS),
    "body": lambda r: wrapped(r, 8),
    "flat": lambda r: wrapped(r, 8, "\\n"),
    "basic": lambda r: base64.b64encode(f"{r.choice(NAMES)}:{password(r)}".encode()).decode(),
    "b64pw": lambda r: base64.b64encode(password(r).encode()).decode(),
    "mapbox": lambda r: segment({"u": r.choice(NAMES), "a": draw(r, "l", 25)}) + "." + draw(r, "b", 22),
    "date": lambda r: f"20{r.randint(19, 26)}-{r.randint(1, 12):02}-{r.randint(1, 28):02}",
    "time": lambda r: f"{r.randint(0, 23):02}:{r.randint(0, 59):02}:{r.randint(0, 59):02}",
    "ip": lambda r: f"10.{r.randint(0, 255)}.{r.randint(0, 255)}.{r.randint(1, 254)}",
    "n": lambda r: str(r.randint(1, 9999)),
}
ASK = re.compile(r"«(?:([A-Za-z])(\d+)(?:-(\d+))?|(\w+))»")


def fill(r: Random, template: str) -> str:
    def one(match: re.Match[str]) -> str:
        letter, low, high, special = match.groups()
        if special in SPECIAL:
            return SPECIAL[special](r)
        if letter == "E":
            return encoded(r, int(low))
        return draw(r, letter, r.randint(int(low), int(high or low)))

    return ASK.sub(one, template)


# Formats that say themselves what they are: they must be found in any surroundings.
TOKENS = """
aws-access-key-id AKIA«s16»
aws-temporary-key-id ASIA«s16»
aws-bedrock ABSK«B120»
gcp-api-key AIza«b35»
gcp-oauth ya29.«b120»
gcp-oauth-client-secret GOCSPX-«b28»
gcp-refresh 1//0«b60»
azure-ad-client-secret «A3»8Q~«b34»
azure-devops «A76»AZDO«A4»
azure-storage «B76»+ASt«B6»==
alibaba LTAI5t«A18»
tencent AKID«A32»
yandex-iam t1.«b60».«b86»
yandex-api-key AQVN«b36»
digitalocean dop_v1_«h64»
digitalocean-oauth doo_v1_«h64»
digitalocean-refresh dor_v1_«h64»
heroku HRKU-AA«b58»
heroku-uuid HRKU-«uuid»
netlify nfp_«A36»
render rnd_«A28»
fly FlyV1 fm2_lJPE«B200»
fly-old fo1_«b43»
pulumi pul-«h40»
prefect pnu_«A36»
doppler dp.pt.«A43»
doppler-service dp.st.prd.«A43»
vault-service hvs.«b95»
vault-batch hvb.«b140»
terraform-cloud «A14».atlasv1.«b67»
onepassword-service ops_eyJ«B300»
onepassword-secret-key A3-«u6»-«u6»-«u5»-«u5»-«u5»-«u5»
infracost ico-«A32»
scalingo tk-us-«b48»
github-pat ghp_«A36»
github-oauth gho_«A36»
github-user ghu_«A36»
github-server ghs_«A36»
github-refresh ghr_«A36»
github-fine github_pat_«A22»_«A59»
gitlab-pat glpat-«b20»
gitlab-pat-long glpat-«b27».01.«l9»
gitlab-runner glrt-«b20»
gitlab-deploy gldt-«b20»
gitlab-ci glcbt-1f_«b20»
gitlab-trigger glptt-«h40»
gitlab-feed glft-«b20»
gitlab-agent glagent-«b50»
gitlab-oauth gloas-«h64»
gitlab-incoming glimt-«b25»
gitlab-scim glsoat-«b20»
gitlab-registration GR1348941«b20»
bitbucket-app ATBB«A32»
bitbucket-access ATCTT3xFfGN0«b160»=«H8»
atlassian ATATT3xFfGF0«b170»=«H8»
circleci CCIPAT_«A22»_«h40»
buildkite bkua_«h40»
sonar-user squ_«h40»
sonar-project sqp_«h40»
sonar-global sqa_«h40»
jfrog-key AKCp8«A68»
jfrog-reference cmVmdGtuOjAxO«A51»
npm npm_«A36»
pypi pypi-AgEIcHlwaS5vcmc«b150»
testpypi pypi-AgENdGVzdC5weXBpLm9yZw«b150»
crates cio«A32»
nuget oy2«l43»
rubygems rubygems_«h48»
clojars CLOJARS_«l60»
docker dckr_pat_«b27»
docker-org dckr_oat_«b32»
huggingface hf_«L34»
huggingface-org api_org_«L34»
openai-old sk-«A20»T3BlbkFJ«A20»
openai-project sk-proj-«b74»T3BlbkFJ«b74»
openai-service sk-svcacct-«b74»T3BlbkFJ«b74»
openai-admin sk-admin-«b74»T3BlbkFJ«b74»
anthropic sk-ant-api03-«b93»AA
anthropic-admin sk-ant-admin01-«b93»AA
anthropic-oauth sk-ant-oat01-«b93»AA
openrouter sk-or-v1-«h64»
deepseek sk-«h32»
groq gsk_«A52»
xai xai-«A80»
perplexity pplx-«A48»
replicate r8_«A37»
fireworks fw_«A22»
cerebras csk-«l48»
together tgp_v1_«b43»
nvidia nvapi-«b64»
langsmith lsv2_pt_«h32»_«h10»
langsmith-service lsv2_sk_«h32»_«h10»
langfuse sk-lf-«uuid»
pinecone pcsk_«A6»_«A63»
elevenlabs sk_«h48»
voyage pa-«b43»
jina jina_«A32»«b28»
tavily tvly-«A32»
tavily-dev tvly-dev-«A32»
firecrawl fc-«h32»
exa-e2b e2b_«h40»
wandb-new wandb_v1_«A40»
braintrust sk-bt-«A48»
helicone sk-helicone-«l7»-«l7»-«l7»-«l7»
assembly-unstructured sk-lit-«A40»
modal ak-«A22»
runpod rpa_«u40»
deepl «uuid»:fx
stripe-live sk_live_«A24»
stripe-live-long sk_live_51«A97»
stripe-test sk_test_«A24»
stripe-restricted rk_live_51«A97»
stripe-webhook whsec_«A32»
square-token sq0atp-«b22»
square-secret sq0csp-«b43»
square-new EAAA«b60»
paypal-braintree access_token$production$«l16»$«h32»
plaid access-production-«uuid»
plaid-sandbox access-sandbox-«uuid»
adyen AQE«l5»mfxLfNCxhi3E«B40»-«B40»-«A16»
razorpay rzp_live_«A14»
flutterwave FLWSECK-«h32»-X
flutterwave-test FLWSECK_TEST-«h32»-X
paystack sk_live_«h40»
gocardless live_«b40»
lob live_«h35»
shippo shippo_live_«h40»
easypost EZAK«A54»
easypost-test EZTK«A54»
duffel duffel_live_«b43»
coinbase-cloud organizations/«uuid»/apiKeys/«uuid»
mollie live_«A30»
shopify-access shpat_«h32»
shopify-custom shpca_«h32»
shopify-private shppa_«h32»
shopify-shared shpss_«h32»
slack-bot xoxb-«d12»-«d13»-«A24»
slack-user xoxp-«d12»-«d12»-«d13»-«h32»
slack-app xapp-1-A«u10»-«d13»-«h64»
slack-config xoxe.xoxp-1-«A146»
slack-refresh xoxe-1-«A146»
slack-session xoxc-«d12»-«d12»-«d13»-«h64»
slack-cookie xoxd-«A120»%2B«A20»
slack-legacy xoxs-«d12»-«d12»-«d12»-«h10»
slack-hook https://hooks.slack.com/services/T«u8»/B«u10»/⟦«A24»⟧
slack-workflow https://hooks.slack.com/workflows/T«u8»/A«u10»/«d18»/⟦«A24»⟧
discord-bot M«A23».G«A5».«b38»
discord-hook https://discord.com/api/webhooks/«d18»/⟦«b68»⟧
telegram «d10»:AA«b33»
teams-hook https://acme.webhook.office.com/webhookb2/«uuid»@«uuid»/IncomingWebhook/⟦«h32»/«uuid»⟧
facebook EAAC«A150»ZDZD
twitter-bearer AAAAAAAAAAAAAAAAAAAAA«A30»%3D«A50»
dropbox-short sl.B«b134»
linkedin AQX«b120»
twilio-key SK«h32»
sendgrid SG.«b22».«b43»
mailgun key-«h32»
mailgun-new «h32»-«h8»-«h8»
mailchimp «h32»-us«d1»
sendinblue xkeysib-«h64»-«A16»
brevo-smtp xsmtpsib-«h64»-«A16»
resend re_«A8»_«A24»
postman PMAK-«h24»-«h34»
newrelic-user NRAK-«u27»
newrelic-license «h36»FFFFNRAL
newrelic-browser NRJS-«h19»
newrelic-insert NRII-«b32»
dynatrace dt0c01.«s24».«s64»
dynatrace-oauth dt0s02.«s8».«s64»
grafana-service glsa_«A32»_«h8»
grafana-cloud glc_eyJ«A110»
grafana-old eyJrIjoi«A70»
sentry-org sntrys_eyJpYXQiOjE2«B120»_«B43»
sentry-user sntryu_«h64»
honeycomb hcaik_«l58»
datadog-app ddapp_«A34»
datadog-pat ddpat_«A40»
posthog phx_«A43»
logfire pylf_v1_us_«A43»
axiom xaat-«uuid»
betterstack-launchdarkly sdk-«uuid»
launchdarkly-api api-«uuid»
statsig secret-«A43»
split-io sk_prod_«A43»
okta 00«b40»
clerk sk_live_«A42»
workos sk_live_«A64»
stytch secret-live-«b36»
supabase sbp_«h40»
supabase-secret sb_secret_«b31»_«b8»
planetscale pscale_tkn_«b43»
planetscale-password pscale_pw_«b43»
databricks dapi«h32»
databricks-sub dapi«h32»-2
neon napi_«l64»
turso-jwt «jwt»
jwt «jwt»
jwe «jwe»
confluent-new cflt«B60»
contentful CFPAT-«b43»
hubspot pat-na1-«uuid»
intercom dG9rOj«A54»=
typeform tfp_«b59»
notion secret_«A43»
notion-new ntn_«d11»«A35»
linear lin_api_«A40»
linear-oauth lin_oauth_«h64»
figma figd_«b40»
airtable pat«A14».«h64»
asana 1/«d16»:«h32»
asana-v2 2/«d16»/«d16»:«h32»
readme rdme_«l70»
frameio fio-u-«b64»
mapbox sk.«mapbox»
databento db-«A29»
sourcegraph sgp_«h16»_«h40»
sourcegraph-old sgp_«h40»
tailscale tskey-auth-k«A10»CNTRL-«A32»
tailscale-api tskey-api-k«A10»CNTRL-«A32»
ngrok-cloudflare-origin v1.0-«h24»-«h146»
zerotier-zapier https://hooks.zapier.com/hooks/catch/⟦«d7»/«l7»⟧/
age AGE-SECRET-KEY-1«u58»
bitcoin-xprv xprv«o107»
shodan-duffel duffel_test_«b43»
openshift sha256~«b43»
dynatrace-platform dt0s16.«s8».«s64»
telnyx KEY0«H32»_«A22»
checkly cu_«h32»
aiven AVNS_«b19»
redis-cloud-nightfall NF-«A32»
rootly rootly_«h64»
authress sc_«A5».acc-«l12».«A30-60»
beamer b_«b44»
cloudflare-ca v1.0-«h24»-«h146»
snyk-uat snyk_uat.«h8».«b100».«b43».«b22»
vercel vcp_«A56»
vercel-blob vercel_blob_rw_«A16»_«A30»
convex-dev prod:happy-animal-123|«E72»
trigger-dev tr_prod_«A20»
inngest signkey-prod-«h64»
upstash-pat-expo expo_«b40»
artifactory-identity eyJ2ZXIiOiIyIiwidHlwIjoiSldU«b60».eyJ«b120».«b342»
maxmind «A6»_«A29»_mmk
openai-session sess-«A40»
gitea-registry-harness pat.«b22».«h24».«A20»
polymarket-polar polar_oat_«A43»
lemonsqueezy-nightly lsk_«A40»
sanity-cloudinary cloudinary://«d15»:⟦«b27»⟧@acme
"""

# Formats without a mark of their own, told by the name they are under.
NAMED = """
aws-secret AWS_SECRET_ACCESS_KEY «B40»
aws-secret-lower aws_secret_access_key «B40»
aws-session AWS_SESSION_TOKEN IQoJb3JpZ2luX2Vj«B300»
azure-account-key AZURE_STORAGE_KEY «E64»
azure-client-secret ARM_CLIENT_SECRET «b40»
azure-cognitive AZURE_OPENAI_API_KEY «h32»
cloudflare-global CLOUDFLARE_API_KEY «h37»
cloudflare-token CLOUDFLARE_API_TOKEN «b40»
cf-token CF_API_TOKEN «b40»
vercel-old VERCEL_TOKEN «A24»
linode LINODE_TOKEN «h64»
hcloud HCLOUD_TOKEN «A64»
ovh OVH_APPLICATION_SECRET «A32»
scaleway SCW_SECRET_KEY «uuid»
vultr VULTR_API_KEY «U36»
datadog DD_API_KEY «h32»
datadog-app DD_APP_KEY «h40»
datadog-name DATADOG_API_KEY «h32»
pagerduty PAGERDUTY_API_KEY y_«b18»
opsgenie OPSGENIE_API_KEY «uuid»
splunk-hec SPLUNK_HEC_TOKEN «uuid»
loggly LOGGLY_TOKEN «uuid»
rollbar ROLLBAR_ACCESS_TOKEN «h32»
bugsnag BUGSNAG_API_KEY «h32»
honeybadger HONEYBADGER_API_KEY hbp_«A36»
codecov CODECOV_TOKEN «uuid»
snyk SNYK_TOKEN «uuid»
circle-old CIRCLECI_TOKEN «h40»
travis TRAVIS_TOKEN «A22»
drone DRONE_TOKEN «A32»
algolia ALGOLIA_ADMIN_KEY «h32»
elastic ELASTIC_API_KEY «E40»
cohere COHERE_API_KEY «A40»
mistral MISTRAL_API_KEY «A32»
together-old TOGETHER_API_KEY «h64»
gemini-stability STABILITY_API_KEY sk-«A48»
wandb WANDB_API_KEY «h40»
assemblyai ASSEMBLYAI_API_KEY «h32»
deepgram DEEPGRAM_API_KEY «h40»
eleven-old ELEVENLABS_API_KEY «h32»
pinecone-old PINECONE_API_KEY «uuid»
qdrant QDRANT_API_KEY «b54»
weaviate WEAVIATE_API_KEY «A36»
serpapi SERPAPI_API_KEY «h64»
twilio-auth TWILIO_AUTH_TOKEN «h32»
vonage VONAGE_API_SECRET «A16»
messagebird MESSAGEBIRD_ACCESS_KEY «A25»
mailjet MJ_APIKEY_PRIVATE «h32»
postmark POSTMARK_SERVER_TOKEN «uuid»
sparkpost SPARKPOST_API_KEY «h40»
mandrill MANDRILL_API_KEY «A22»
pusher PUSHER_APP_SECRET «h20»
okta-secret OKTA_CLIENT_SECRET «b40»
auth0-secret AUTH0_CLIENT_SECRET «b64»
google-secret GOOGLE_CLIENT_SECRET «b24»
fb-secret FACEBOOK_APP_SECRET «h32»
twitter-secret TWITTER_API_SECRET_KEY «A50»
twitter-access TWITTER_ACCESS_TOKEN_SECRET «A45»
linkedin-secret LINKEDIN_CLIENT_SECRET «A16»
spotify SPOTIFY_CLIENT_SECRET «h32»
discord-secret DISCORD_CLIENT_SECRET «b32»
slack-signing SLACK_SIGNING_SECRET «h32»
github-webhook GITHUB_WEBHOOK_SECRET «h40»
paypal-secret PAYPAL_CLIENT_SECRET E«b79»
plaid-secret PLAID_SECRET «h30»
razorpay-secret RAZORPAY_KEY_SECRET «A24»
coinbase COINBASE_API_SECRET «B86»==
binance BINANCE_SECRET_KEY «A64»
kraken KRAKEN_PRIVATE_KEY «B86»==
alibaba-secret ALICLOUD_SECRET_KEY «A30»
tencent-secret TENCENTCLOUD_SECRET_KEY «A32»
mapbox-maps HERE_API_KEY «b43»
weather OPENWEATHER_API_KEY «h32»
trello TRELLO_TOKEN «h64»
zendesk ZENDESK_API_TOKEN «A40»
freshdesk FRESHDESK_API_KEY «A20»
jira-old JIRA_API_TOKEN «A24»
confluent CONFLUENT_API_SECRET «B64»
mongo-atlas MONGODB_ATLAS_PRIVATE_KEY «uuid»
supabase-jwt SUPABASE_JWT_SECRET «B86»==
rails RAILS_MASTER_KEY «h32»
rails-base SECRET_KEY_BASE «h128»
laravel APP_KEY base64:«E32»
django DJANGO_SECRET_KEY «y50»
flask FLASK_SECRET_KEY «h48»
nextauth NEXTAUTH_SECRET «E32»
jwt-secret JWT_SECRET «A32»
session-secret SESSION_SECRET «A40»
encryption ENCRYPTION_KEY «E32»
fernet FERNET_KEY «b43»=
cookie-secret COOKIE_SECRET «E32»
wireguard PrivateKey «E32»
consul CONSUL_HTTP_TOKEN «uuid»
nomad NOMAD_TOKEN «uuid»
vault-old VAULT_TOKEN s.«A24»
restic RESTIC_PASSWORD «pw»
borg BORG_PASSPHRASE «pw»
pg PGPASSWORD «pw»
mysql MYSQL_ROOT_PASSWORD «pw»
postgres POSTGRES_PASSWORD «pw»
mongo MONGO_INITDB_ROOT_PASSWORD «pw»
redis REDIS_PASSWORD «pw»
rabbit RABBITMQ_DEFAULT_PASS «pw»
smtp SMTP_PASSWORD «pw»
mail EMAIL_HOST_PASSWORD «pw»
db DB_PASS «pw»
db-pwd DB_PWD «pw»
admin ADMIN_PASSWORD «pw»
keystore KEYSTORE_PASSWORD «pw»
ldap LDAP_BIND_PASSWORD «pw»
grafana-admin GF_SECURITY_ADMIN_PASSWORD «pw»
minio MINIO_SECRET_KEY «A40»
sa MSSQL_SA_PASSWORD «pw»
twine TWINE_PASSWORD «pw»
camel dbPassword «pw»
camel-api apiKey «A32»
camel-secret clientSecret «b40»
camel-token accessToken «b40»
camel-refresh refreshToken «b64»
dashed api-key «A32»
plain-password password «pw»
plain-passwd passwd «pw»
plain-pwd pwd «pw»
plain-secret secret «A24»
plain-token token «A32»
plain-auth authToken «h40»
passphrase passphrase «pw»
private-key private_key «h64»
eth-key ETH_PRIVATE_KEY 0x«h64»
access-key accessKey «A20»
signing SIGNING_KEY «E32»
hmac HMAC_KEY «h64»
webhook WEBHOOK_SECRET «A32»
bearer BEARER_TOKEN «b60»
shared SharedSecret «A24»
service-pass svc_password «pw»
salt AUTH_SALT «y64»
credential credentials «b40»
ssh-pass sshpass «pw»
pin-like OTP_SECRET «s32»
"""

BARE = [
    "{}",
    "here is the key: {}",
    "use this token: {}",
    "I pasted {} into the config and it works now.",
    "curl -s -H 'Authorization: Bearer {}' https://api.example.com/v1/me",
    'export TOKEN="{}"',
    "«date»T«time»Z INFO «place» request rejected, credential={} status=401",
    '{{"ok": true, "value": "{}", "n": «n»}}',
    "  - name: CREDENTIAL\n    value: {}",
    "client = Client('{}')",
    "https://api.example.com/v2/items?limit=10&access_token={}&page=2",
    "+    key: '{}',",
    "<string>{}</string>",
    "ok, sent. (`{}`)",
    "Le jeton est {} ; ne le partage pas.",
    "| prod | {} | «date» |",
    "error: invalid credentials for {}.",
    "docker run -e KEY={} acme/«place»:latest",
    "const client = new Client({{ auth: '{}' }});",
    "my key is {}, please rotate it",
]
# The last one only for values that need no escape in a URL.
ASSIGNED = [
    "{n}={v}",
    'export {n}="{v}"',
    "{n}: {v}",
    '{n} = "{v}"',
    "{n} = '{v}'",
    '  "{n}": "{v}",',
    '{n}: "{v}"',
    "ENV {n}={v}",
    "ENV {n} {v}",
    "ARG {n}={v}",
    "set {n}={v}",
    'setx {n} "{v}"',
    '$env:{n} = "{v}"',
    'os.environ["{n}"] = "{v}"',
    "process.env.{n} = '{v}';",
    'const {n} = "{v}";',
    'private static final String {n} = "{v}";',
    'string {n} = "{v}";',
    '{n} := "{v}"',
    'os.Setenv("{n}", "{v}")',
    "  - {n}={v}",
    "    - name: {n}\n      value: {v}",
    '    - name: {n}\n      value: "{v}"',
    "docker run --rm -e {n}={v} -p 80:80 acme/«place»",
    "{n}={v} ./deploy.sh prod",
    "<{n}>{v}</{n}>",
    '<add key="{n}" value="{v}" />',
    '<property name="{n}" value="{v}"/>',
    "define('{n}', '{v}');",
    "'{n}' => '{v}',",
    '"{n}": "{v}"',
    '{{"{n}":"{v}","region":"eu-west-1"}}',
    '{{\\"{n}\\":\\"{v}\\"}}',
    "heroku config:set {n}={v} -a acme-«place»",
    "fly secrets set {n}={v}",
    'gh secret set {n} --body "{v}"',
    "kubectl create secret generic app --from-literal={n}={v}",
    'variable "{n}" {{\n  default = "{v}"\n}}',
    "-D{n}={v}",
    "--{n} {v}",
    "--{n}={v}",
    "«date» «time» DEBUG loaded env {n}={v} from .env",
    "the value of {n} is {v}",
    "set {n} to {v} please",
    "`{n}` should be `{v}`",
    "{n} -> {v}",
    'String {n} = "{v}"; // TODO remove',
    'let {n}: String = "{v}".to_string();',
    '{n}="{v}" # prod',
    "https://example.com/cb?id=«n»&{n}={v}",
]

WHOLE = r"""
url-postgres postgres://app:⟦«A16»⟧@db.internal:5432/app
url-postgresql postgresql+asyncpg://«name»:⟦«y14»⟧@«ip»/«place»?sslmode=require
url-mysql mysql://root:⟦«pw»⟧@localhost:3306/shop
url-mysql-pymysql SQLALCHEMY_DATABASE_URI = "mysql+pymysql://shop:⟦«A12»⟧@«ip»/shop?charset=utf8mb4"
url-mongo mongodb://«name»:⟦«A14»⟧@m1.internal:27017,m2.internal:27017/admin?replicaSet=rs0
url-mongo-srv mongodb+srv://app:⟦«A18»⟧@cluster0.ab1cd.mongodb.net/test?retryWrites=true
url-redis redis://:⟦«A24»⟧@cache.internal:6379/0
url-rediss rediss://default:⟦«A32»⟧@eu1-calm-fox-31234.upstash.io:31234
url-amqp amqp://«place»:⟦«A12»⟧@rabbit.internal:5672/%2f
url-amqps amqps://u«a7»:⟦«b32»⟧@kangaroo.rmq.cloudamqp.com/u«a7»
url-mssql mssql+pyodbc://sa:⟦«A14»⟧@«ip»:1433/master?driver=ODBC+Driver+18
url-oracle oracle://system:⟦«A12»⟧@«ip»:1521/XE
url-clickhouse clickhouse://default:⟦«A14»⟧@ch.internal:9000/events
url-cockroach cockroachdb://«name»:⟦«b22»⟧@free-tier.gcp-us-central1.cockroachlabs.cloud:26257/defaultdb
url-neo4j neo4j+s://neo4j:⟦«b43»⟧@3f2a1b9c.databases.neo4j.io
url-snowflake snowflake://«name»:⟦«A14»⟧@ab12345.eu-central-1/db/public
url-couchdb http://admin:⟦«pw»⟧@couch.internal:5984/_all_dbs
url-elastic https://elastic:⟦«A24»⟧@es.internal:9200
url-ftp ftp://deploy:⟦«A12»⟧@ftp.example.com/pub
url-smtp smtp://mailer%40example.com:⟦«A16»⟧@smtp.example.com:587
url-imap imaps://«name»:⟦«A12»⟧@imap.example.com:993/INBOX
url-ldap ldap://cn=admin,dc=acme:⟦«A12»⟧@ldap.internal
url-git git clone https://«name»:⟦«A20»⟧@git.example.com/acme/«place».git
url-token-only git remote add origin https://⟦ghp_«A36»⟧@github.com/acme/«place».git
url-x-access https://x-access-token:⟦ghs_«A36»⟧@github.com/acme/«place»
url-oauth2 https://oauth2:⟦glpat-«b20»⟧@gitlab.com/acme/«place».git
url-pip pip install --extra-index-url https://«name»:⟦«A24»⟧@pypi.acme.dev/simple «place»
url-proxy export HTTPS_PROXY=http://«name»:⟦«A12»⟧@proxy.corp:3128
url-sentry-dsn SENTRY_DSN=https://«h32»:⟦«h32»⟧@sentry.example.com/42
url-sftp sftp://backup:⟦«pw»⟧@«ip»:22/data
url-rtsp rtsp://admin:⟦«A10»⟧@«ip»:554/stream1
url-nats nats://svc:⟦«A16»⟧@nats.internal:4222
url-mqtt mqtt://sensor:⟦«A12»⟧@broker.local:1883
url-db2 db2://db2inst1:⟦«A12»⟧@«ip»:50000/sample
url-cassandra cassandra://cassandra:⟦«A12»⟧@«ip»:9042/ks
jdbc-mysql jdbc:mysql://db.internal:3306/shop?user=shop&password=⟦«A14»⟧&useSSL=false
jdbc-pg spring.datasource.url=jdbc:postgresql://«ip»/app?user=app&password=⟦«A14»⟧
jdbc-sqlserver jdbc:sqlserver://«ip»:1433;databaseName=crm;user=sa;password=⟦«A14»⟧;encrypt=true
jdbc-oracle jdbc:oracle:thin:scott/⟦«A10»⟧@//«ip»:1521/ORCL
odbc Driver={ODBC Driver 17 for SQL Server};Server=«ip»;Database=crm;Uid=crm;Pwd=⟦«A14»⟧;
ado Server=tcp:acme.database.windows.net,1433;Initial Catalog=crm;User ID=crm;Password=⟦«y14»⟧;Encrypt=True;
ado-json "DefaultConnection": "Data Source=«ip»;Initial Catalog=crm;User Id=sa;Password=⟦«A14»⟧;TrustServerCertificate=true"
webconfig <add name="Main" connectionString="Server=«ip»;Database=crm;User Id=crm;Password=⟦«A14»⟧;" providerName="System.Data.SqlClient" />
libpq psql "host=«ip» port=5432 dbname=app user=app password=⟦«A14»⟧ sslmode=require"
azure-conn DefaultEndpointsProtocol=https;AccountName=acmestore;AccountKey=⟦«E64»⟧;EndpointSuffix=core.windows.net
azure-servicebus Endpoint=sb://acme.servicebus.windows.net/;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=⟦«E32»⟧
azure-iothub HostName=acme.azure-devices.net;DeviceId=d1;SharedAccessKey=⟦«E32»⟧
azure-cosmos AccountEndpoint=https://acme.documents.azure.com:443/;AccountKey=⟦«E64»⟧;
azure-sas https://acme.blob.core.windows.net/c/f.csv?sv=2022-11-02&st=«date»&se=«date»&sr=b&sp=r&sig=⟦«A42»%3D⟧
azure-appconfig Endpoint=https://acme.azconfig.io;Id=«A4»-l0-s0:«A20»;Secret=⟦«E32»⟧
azure-function https://acme.azurewebsites.net/api/hook?code=⟦«b54»==⟧
aws-presigned https://acme.s3.amazonaws.com/f?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Date=20240101T000000Z&X-Amz-Expires=900&X-Amz-Signature=⟦«h64»⟧
aws-presigned-token https://s3.eu-west-1.amazonaws.com/a/b?X-Amz-Security-Token=⟦«A200»⟧&X-Amz-SignedHeaders=host
gcs-signed https://storage.googleapis.com/b/o?X-Goog-Algorithm=GOOG4-RSA-SHA256&X-Goog-Signature=⟦«h512»⟧
cloudfront https://d111.cloudfront.net/v.mp4?Expires=1700000000&Signature=⟦«b342»⟧&Key-Pair-Id=K2JCJMDEHXQW5F
aws-creds-file [default]\naws_access_key_id = AKIA«s16»\naws_secret_access_key = ⟦«B40»⟧
aws-json {"AccessKeyId": "ASIA«s16»", "SecretAccessKey": "⟦«B40»⟧", "Expiration": "«date»T00:00:00Z"}
aws-json-token "SessionToken": "⟦IQoJb3JpZ2luX2Vj«B400»⟧"
aws-configure AWS Secret Access Key [None]: ⟦«B40»⟧
aws-cli aws configure set aws_secret_access_key ⟦«B40»⟧
aws-csv alice,,AKIA«s16»,⟦«B40»⟧,https://acme.signin.aws.amazon.com/console
aws-pair AKIA«s16» / ⟦«B40»⟧
gcp-service-account "private_key": "-----BEGIN PRIVATE KEY-----\\n⟦«flat»⟧\\n-----END PRIVATE KEY-----\\n",
pem-rsa -----BEGIN RSA PRIVATE KEY-----\n⟦«body»⟧\n-----END RSA PRIVATE KEY-----
pem-pkcs8 -----BEGIN PRIVATE KEY-----\n⟦«body»⟧\n-----END PRIVATE KEY-----
pem-enc -----BEGIN ENCRYPTED PRIVATE KEY-----\n⟦«body»⟧\n-----END ENCRYPTED PRIVATE KEY-----
pem-ec -----BEGIN EC PRIVATE KEY-----\n⟦«body»⟧\n-----END EC PRIVATE KEY-----
pem-dsa -----BEGIN DSA PRIVATE KEY-----\n⟦«body»⟧\n-----END DSA PRIVATE KEY-----
pem-openssh -----BEGIN OPENSSH PRIVATE KEY-----\n⟦«body»⟧\n-----END OPENSSH PRIVATE KEY-----
pem-pgp -----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: GnuPG v2\n\n⟦«body»⟧\n=«A4»\n-----END PGP PRIVATE KEY BLOCK-----
pem-ssh2 ---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\nComment: "x"\n⟦«body»⟧\n---- END SSH2 ENCRYPTED PRIVATE KEY ----
pem-proc -----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,«H32»\n\n⟦«body»⟧\n-----END RSA PRIVATE KEY-----
pem-oneline export KEY="-----BEGIN RSA PRIVATE KEY-----\\n⟦«flat»⟧\\n-----END RSA PRIVATE KEY-----"
pem-indented key: |\n    -----BEGIN PRIVATE KEY-----\n    ⟦«B64»\n    «B64»\n    «B64»\n    «B20»==⟧\n    -----END PRIVATE KEY-----
pem-quoted-lines "-----BEGIN RSA PRIVATE KEY-----\\n" +\n"⟦«B64»\\n" +\n"«B64»\\n" +\n"«B30»⟧\\n" +\n"-----END RSA PRIVATE KEY-----"
pem-truncated -----BEGIN RSA PRIVATE KEY-----\n⟦«B64»\n«B64»\n«B64»⟧
pem-cut-diff +-----BEGIN PRIVATE KEY-----\n+⟦«B64»\n+«B64»\n+«B40»⟧\n+-----END PRIVATE KEY-----
pem-spaces -----BEGIN PRIVATE KEY----- ⟦«B64» «B64» «B64»⟧ -----END PRIVATE KEY-----
pem-b64 SSH_KEY_B64=⟦LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQp«B300»⟧
putty PuTTY-User-Key-File-2: ssh-rsa\nEncryption: none\nComment: k\nPublic-Lines: 1\nAAAAB3NzaC1yc2E\nPrivate-Lines: 2\n⟦«B64»\n«B64»⟧\nPrivate-MAC: «h40»
wireguard [Interface]\nPrivateKey = ⟦«E32»⟧\nAddress = 10.0.0.2/24
wireguard-psk [Peer]\nPresharedKey = ⟦«E32»⟧
jwk {"kty":"RSA","n":"«b86»","e":"AQAB","d":"⟦«b342»⟧"}
jwk-oct {"kty":"oct","k":"⟦«b43»⟧","alg":"HS256"}
netrc machine api.example.com login «name» password ⟦«pw»⟧
netrc-lines machine api.heroku.com\n  login «name»@example.com\n  password ⟦«uuid»⟧
pgpass db.internal:5432:app:«name»:⟦«A16»⟧
htpasswd «name»:⟦$apr1$«A8»$«A22»⟧
bcrypt «name»:⟦$2y$10$«A53»⟧
shadow root:⟦$6$«A16»$«A86»⟧:19000:0:99999:7:::
npmrc //registry.npmjs.org/:_authToken=⟦npm_«A36»⟧
npmrc-uuid //registry.npmjs.org/:_authToken=⟦«uuid»⟧
npmrc-auth _auth=⟦«basic»⟧
npmrc-password //npm.acme.dev/:_password=⟦«b64pw»⟧
pypirc [pypi]\nusername = «name»\npassword = ⟦«pw»⟧
gem-cred ---\n:rubygems_api_key: ⟦rubygems_«h48»⟧
cargo [registry]\ntoken = "⟦«A32»⟧"
maven <server><id>nexus</id><username>«name»</username><password>⟦«pw»⟧</password></server>
gradle signing.password=⟦«pw»⟧
nuget-config <add key="ClearTextPassword" value="⟦«pw»⟧" />
docker-auth {"auths": {"https://index.docker.io/v1/": {"auth": "⟦«basic»⟧"}}}
docker-login docker login -u «name» -p ⟦«pw»⟧ registry.acme.dev
docker-login-stdin echo ⟦«pw»⟧ | docker login --username «name» --password-stdin
k8s-secret apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\ndata:\n  password: ⟦«b64pw»⟧
k8s-string kind: Secret\nstringData:\n  DB_PASS: ⟦«pw»⟧
k8s-odd apiVersion: v1\nkind: Secret\ndata:\n  config.ini: ⟦«E48»⟧
kubeconfig-token users:\n- name: admin\n  user:\n    token: ⟦«A64»⟧
kubeconfig-key     client-key-data: ⟦LS0tLS1CRUdJTi«B300»⟧
kubectl-bearer kubectl --token=⟦«A40»⟧ get pods
spring spring.datasource.password=⟦«pw»⟧
spring-mail spring.mail.password = ⟦«pw»⟧
spring-jasypt jasypt.encryptor.password=⟦«pw»⟧
ansible ansible_ssh_pass: ⟦«pw»⟧
ansible-become ansible_become_password=⟦«pw»⟧
ansible-inventory web1 ansible_host=«ip» ansible_user=root ansible_ssh_pass=⟦«pw»⟧
tfvars db_password = "⟦«pw»⟧"
tfstate "master_password": "⟦«pw»⟧",
tf-provider   secret_key = "⟦«B40»⟧"
appsettings "Jwt": { "Key": "⟦«A40»⟧", "Issuer": "acme" }
wp define( 'DB_PASSWORD', '⟦«pw»⟧' );
wp-salt define('AUTH_KEY',         '⟦«y64»⟧');
wp-nonce define('NONCE_SALT', '⟦«y64»⟧');
rails-yml   secret_key_base: ⟦«h128»⟧
django SECRET_KEY = 'django-insecure-⟦«y50»⟧'
django-db         'PASSWORD': '⟦«pw»⟧',
flask app.config['SECRET_KEY'] = '⟦«h32»⟧'
flask-attr app.secret_key = b'⟦«A24»⟧'
express app.use(session({ secret: '⟦«A24»⟧', resave: false }))
jwt-sign jwt.sign({ id: user.id }, '⟦«A32»⟧', { expiresIn: '1h' })
boto boto3.client('s3', aws_access_key_id='AKIA«s16»', aws_secret_access_key='⟦«B40»⟧')
psycopg conn = psycopg2.connect(host="«ip»", user="app", password="⟦«pw»⟧")
mysql-cli mysql -u root -p⟦«A12»⟧ shop < dump.sql
mysql-cli-long mysqldump --user=root --password=⟦«pw»⟧ shop
mysql-sql CREATE USER 'app'@'%' IDENTIFIED BY '⟦«pw»⟧';
pg-sql ALTER USER app WITH PASSWORD '⟦«pw»⟧';
pg-sql-role CREATE ROLE «name» LOGIN ENCRYPTED PASSWORD '⟦«pw»⟧';
mssql-sql CREATE LOGIN crm WITH PASSWORD = N'⟦«pw»⟧';
oracle-sql sqlplus system/⟦«A12»⟧@//«ip»:1521/XE
redis-cli redis-cli -h «ip» -a ⟦«A20»⟧ ping
redis-conf requirepass ⟦«A24»⟧
redis-auth AUTH ⟦«A24»⟧
mongo-cli mongosh --host «ip» -u admin -p ⟦«pw»⟧ --authenticationDatabase admin
psql-env PGPASSWORD=⟦«pw»⟧ psql -h «ip» -U app -d app -c 'select 1'
sshpass sshpass -p '⟦«pw»⟧' ssh root@«ip»
curl-u curl -u «name»:⟦«pw»⟧ https://jenkins.acme.dev/job/x/build
curl-user curl --user '«name»:⟦«pw»⟧' -X POST https://nexus.acme.dev/
curl-u-api curl -s --user 'api:⟦key-«h32»⟧' https://api.mailgun.net/v3/x/messages
curl-basic curl -H "Authorization: Basic ⟦«basic»⟧" https://api.acme.dev
curl-bearer curl -H "Authorization: Bearer ⟦«A40»⟧" https://api.acme.dev
curl-token curl -H 'Authorization: token ⟦«h40»⟧' https://api.github.com/user
curl-xapi curl -H 'X-API-Key: ⟦«A32»⟧' https://api.acme.dev/v1
curl-private curl --header "PRIVATE-TOKEN: ⟦«b20»⟧" https://gitlab.acme.dev/api/v4/projects
curl-vault curl -H "X-Vault-Token: ⟦«uuid»⟧" https://vault:8200/v1/secret
curl-dd curl -H "DD-API-KEY: ⟦«h32»⟧" https://api.datadoghq.com/api/v1/validate
curl-apikey curl -H "apikey: ⟦«A32»⟧" https://x.supabase.co/rest/v1/
curl-xauth curl -H "X-Auth-Token: ⟦«h32»⟧" https://api.acme.dev
curl-sub -H "Ocp-Apim-Subscription-Key: ⟦«h32»⟧"
curl-functions x-functions-key: ⟦«b54»==⟧
curl-digest proxy-authorization: Basic ⟦«basic»⟧
wget wget --user=«name» --password=⟦«pw»⟧ https://files.acme.dev/x.zip
wget-http wget --http-user=«name» --http-password='⟦«pw»⟧' https://x.dev
http-basic Authorization: Basic ⟦«basic»⟧
http-bearer authorization: Bearer ⟦«b48»⟧
http-apikey Authorization: ApiKey ⟦«E40»⟧
http-genie Authorization: GenieKey ⟦«uuid»⟧
http-splunk Authorization: Splunk ⟦«uuid»⟧
http-key Authorization: Key ⟦«A40»⟧
http-aws Authorization: AWS4-HMAC-SHA256 Credential=AKIA«s16»/20240101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=⟦«h64»⟧
http-py headers = {"Authorization": "Bearer ⟦«A40»⟧"}
http-py-token headers={'Authorization': 'Token ⟦«h40»⟧'}
http-js fetch(url, { headers: { 'x-api-key': '⟦«A32»⟧' } })
http-go req.Header.Set("X-Api-Key", "⟦«A32»⟧")
http-go-bearer req.Header.Add("Authorization", "Bearer ⟦«A40»⟧")
http-java .header("Authorization", "Bearer ⟦«A40»⟧")
http-setbasic req.SetBasicAuth("«name»", "⟦«pw»⟧")
http-py-auth requests.get(url, auth=("«name»", "⟦«pw»⟧"))
http-py-authcls auth = HTTPBasicAuth('«name»', '⟦«pw»⟧')
cookie-session Cookie: sessionid=⟦«l32»⟧; theme=dark
cookie-set Set-Cookie: connect.sid=⟦s%3A«b32».«B43»⟧; Path=/; HttpOnly
cookie-php Cookie: PHPSESSID=⟦«l26»⟧; lang=en
cookie-jsession Cookie: JSESSIONID=⟦«H32»⟧; path=/
cookie-laravel Set-Cookie: laravel_session=⟦eyJpdiI6«A180»⟧; expires=Tue
cookie-auth Cookie: auth_token=⟦«b64»⟧; _ga=GA1.2.«d9».«d10»
cookie-aspnet Cookie: .AspNetCore.Cookies=⟦CfDJ8«b160»⟧
cookie-csrf Cookie: csrftoken=«A32»; sessionid=⟦«l32»⟧
query-apikey GET /v1/geo?q=paris&api_key=⟦«A32»⟧ HTTP/1.1
query-key https://maps.example.com/api?address=x&key=⟦«A36»⟧
query-token https://app.example.com/invite?token=⟦«b43»⟧
query-access https://graph.example.com/me?access_token=⟦«A60»⟧&fields=id
query-secret https://x.example.com/hook?secret=⟦«A24»⟧
query-password https://x.example.com/login?user=«name»&password=⟦«A12»⟧
query-reset https://app.example.com/reset-password?reset_token=⟦«b40»⟧&uid=«n»
query-appid https://api.openweathermap.org/data/2.5/weather?q=Oslo&appid=⟦«h32»⟧
query-client grant_type=client_credentials&client_id=«A20»&client_secret=⟦«b40»⟧
query-code https://app.example.com/cb?code=⟦4/0A«b70»⟧&scope=email
query-refresh grant_type=refresh_token&refresh_token=⟦«b60»⟧
query-sessions "GET /ws?sid=«n»&auth=⟦«b40»⟧ HTTP/1.1" 101
query-subkey https://api.x.com/v1?subscription-key=⟦«h32»⟧
chat-db the db password is ⟦«pw»⟧
chat-db-colon db password: ⟦«pw»⟧
chat-pw pw: ⟦«pw»⟧
chat-creds creds are «name» / ⟦«pw»⟧
chat-login login: «name» pass: ⟦«pw»⟧
chat-user-pass user «name», password ⟦«pw»⟧
chat-my My password is "⟦«pw»⟧", can you log in for me?
chat-changed I changed the root password to ⟦«pw»⟧ yesterday
chat-wifi wifi is AcmeGuest, the passphrase is ⟦«pw»⟧
chat-api the api key for staging is ⟦«A32»⟧
chat-use use this api key: ⟦«A32»⟧
chat-token your token is ⟦«h40»⟧ and it expires friday
chat-secret client secret = ⟦«b40»⟧
chat-pls pls use password `⟦«pw»⟧` for the test box
chat-admin admin password for «place»: ⟦«pw»⟧
chat-log-in you can log in with «name»@example.com and password ⟦«pw»⟧
chat-new The new password for the «place» account is ⟦«pw»⟧.
chat-pin-ssh ssh root@«ip» (password: ⟦«pw»⟧)
chat-slash user/pass: «name»/⟦«pw»⟧
chat-slash2 credentials: «name»:⟦«pw»⟧
chat-es la contraseña es ⟦«pw»⟧
chat-es2 Contraseña: ⟦«pw»⟧
chat-fr le mot de passe est ⟦«pw»⟧
chat-fr2 mot de passe : ⟦«pw»⟧
chat-de das Passwort ist ⟦«pw»⟧
chat-de2 Passwort: ⟦«pw»⟧
chat-pt a senha é ⟦«pw»⟧
chat-pt2 senha: ⟦«pw»⟧
chat-it la password è ⟦«pw»⟧
chat-nl wachtwoord: ⟦«pw»⟧
chat-ru пароль: ⟦«pw»⟧
chat-zh 密码:⟦«pw»⟧
chat-zh2 密码是 ⟦«pw»⟧
chat-ja パスワードは⟦«A14»⟧です
chat-remember remember that my bank password is ⟦«pw»⟧
chat-key-here Here's my OpenAI key ⟦sk-«A48»⟧
chat-passcode the passcode is ⟦«pw»⟧
chat-secret-key secret key -> ⟦«A40»⟧
chat-with connect with username=«name» and password=⟦«pw»⟧
chat-multi username: «name»\npassword: ⟦«pw»⟧\nhost: «ip»
chat-md **Password:** ⟦«pw»⟧
chat-md-list - Password: `⟦«pw»⟧`
chat-md-table | password | ⟦«pw»⟧ |
chat-generated Generated password: ⟦«y20»⟧
chat-log Temporary password for user «name»: ⟦«pw»⟧
chat-mysql-log A temporary password is generated for root@localhost: ⟦«y12»⟧
chat-jenkins Please use the following password to proceed to installation:\n\n⟦«h32»⟧
chat-elastic Password for the elastic user (reset with bin/elasticsearch-reset-password):\n  ⟦«A20»⟧
chat-argo initial admin password is ⟦«A16»⟧
chat-recovery Recovery code: ⟦«h8»-«h8»⟧
chat-seed seed phrase: ⟦«word» «word» «word» «word» «word» «word» «word» «word» «word» «word» «word» «word»⟧
powershell $password = ConvertTo-SecureString "⟦«pw»⟧" -AsPlainText -Force
powershell-cred New-Object PSCredential("«name»", (ConvertTo-SecureString '⟦«pw»⟧' -AsPlainText -Force))
netuse net use Z: \\\\srv\\share ⟦«pw»⟧ /user:ACME\\«name»
netuser net user «name» ⟦«pw»⟧ /add
ldapsearch ldapsearch -x -D "cn=admin,dc=acme,dc=org" -w ⟦«pw»⟧ -b dc=acme,dc=org
openssl openssl pkcs12 -in k.p12 -passin pass:⟦«pw»⟧ -nodes
keytool keytool -list -keystore k.jks -storepass ⟦«pw»⟧
zip unzip -P ⟦«A12»⟧ backup.zip
seven 7z x -p⟦«A12»⟧ backup.7z
gpg gpg --batch --passphrase ⟦«pw»⟧ -d x.gpg
rclone pass = ⟦«b30»⟧
chpasswd echo 'root:⟦«pw»⟧' | chpasswd
sudo echo ⟦«pw»⟧ | sudo -S apt update
gha         env:\n          API_TOKEN: ⟦«A32»⟧
gha-with         with:\n          password: ⟦«pw»⟧
compose     environment:\n      MYSQL_PASSWORD: ⟦«pw»⟧
ini [database]\nuser = app\npass = ⟦«pw»⟧
toml [auth]\nsecret = "⟦«A32»⟧"
xml-attr <user name="«name»" password="⟦«pw»⟧" roles="admin"/>
xml-elem <apiToken>⟦«A32»⟧</apiToken>
tomcat <Connector port="8443" keystorePass="⟦«pw»⟧" />
machinekey <machineKey validationKey="⟦«H128»⟧" decryption="AES" />
plist <key>apiSecret</key>\n<string>⟦«A32»⟧</string>
yaml-block private_token: >\n  ⟦«A40»⟧
json-nested {"db": {"user": "app", "password": "⟦«pw»⟧"}}
json-escaped "{\\"user\\":\\"app\\",\\"password\\":\\"⟦«pw»⟧\\"}"
json-creds {"username":"«name»","pwd":"⟦«pw»⟧"}
json-oauth {"access_token":"⟦«b80»⟧","token_type":"bearer","expires_in":3600}
json-refresh "refresh_token": "⟦«b60»⟧",
json-idtoken "id_token":"⟦«jwt»⟧"
python-kw connect(user='app', passwd='⟦«pw»⟧')
python-dict CONFIG = {'api_key': '⟦«A32»⟧'}
python-default def connect(host, password='⟦«pw»⟧'):
python-getenv token = os.getenv("API_TOKEN", "⟦«A40»⟧")
python-compare if password == "⟦«pw»⟧":
js-default const secret = process.env.SECRET || '⟦«A24»⟧';
js-obj firebase.initializeApp({ apiKey: "⟦AIza«b35»⟧", authDomain: "x.firebaseapp.com" })
java-set config.setPassword("⟦«pw»⟧");
java-props props.put("password", "⟦«pw»⟧");
java-ds DriverManager.getConnection(url, "app", "⟦«pw»⟧");
cs-prop Password = "⟦«pw»⟧",
cs-nc new NetworkCredential("«name»", "⟦«pw»⟧")
go-struct Password: "⟦«pw»⟧",
ruby-hash :password => "⟦«pw»⟧",
ruby-sym password: '⟦«pw»⟧'
php-var $db_pass = "⟦«pw»⟧";
php-pdo new PDO('mysql:host=db;dbname=x', 'app', '⟦«pw»⟧');
php-mysqli mysqli_connect("localhost", "root", "⟦«pw»⟧", "shop");
perl my $password = '⟦«pw»⟧';
c-define #define WIFI_PASSWORD "⟦«pw»⟧"
c-const const char* password = "⟦«pw»⟧";
wpa psk="⟦«pw»⟧"
nmcli nmcli dev wifi connect Home password ⟦«pw»⟧
smb username=«name»\npassword=⟦«pw»⟧\ndomain=ACME
fstab //srv/share /mnt cifs username=«name»,password=⟦«A12»⟧,uid=1000 0 0
otpauth otpauth://totp/Acme:«name»?secret=⟦«s32»⟧&issuer=Acme
totp TOTP secret: ⟦«s32»⟧
sasl sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="«name»" password="⟦«pw»⟧";
kafka ssl.keystore.password=⟦«pw»⟧
log-json {"level":"info","msg":"login","password":"⟦«pw»⟧","user":"«name»"}
log-kv level=debug msg="auth ok" user=«name» api_key=⟦«A32»⟧
log-params Parameters: {"user"=>{"email"=>"a@b.c", "password"=>"⟦«pw»⟧"}}
log-form body: username=«name»&password=⟦«A12»⟧&submit=Login
log-header < set-cookie: session=⟦«b60»⟧; Path=/
log-env + export DATABASE_PASSWORD=⟦«pw»⟧
history  1024  export GITHUB_TOKEN=⟦ghp_«A36»⟧
terminal $ read -s TOKEN; echo $TOKEN\n⟦glpat-«b20»⟧
multiline-token token:\n    ⟦«A40»⟧
backslash-cont curl https://api.acme.dev \\\\\n  -H "X-Api-Key: ⟦«A32»⟧"
yaml-quoted-key "api-token": '⟦«A32»⟧'
snowsql snowsql -a ab123 -u «name» --private-key-passphrase ⟦«pw»⟧
helm helm install x ./x --set db.password=⟦«A14»⟧
helm2 helm upgrade x ./x --set-string auth.rootPassword='⟦«pw»⟧'
az az login --service-principal -u «uuid» -p ⟦«b40»⟧ --tenant «uuid»
gcloud gcloud auth activate-refresh-token «name»@x.com ⟦1//0«b60»⟧
terraform-var terraform apply -var 'db_password=⟦«pw»⟧'
vault vault kv put secret/app password=⟦«pw»⟧
vault-login vault login ⟦hvs.«b95»⟧
ansible-vault ansible-playbook x.yml -e "mysql_root_password=⟦«pw»⟧"
winscp open sftp://«name»:⟦«A12»⟧@«ip»/
rdp cmdkey /generic:«ip» /user:«name» /pass:⟦«pw»⟧
sonar-cli sonar-scanner -Dsonar.login=⟦«h40»⟧
mvn mvn deploy -Dgpg.passphrase=⟦«pw»⟧
svn svn co https://svn.acme.dev --username «name» --password ⟦«pw»⟧
composer {"http-basic": {"repo.acme.dev": {"username": "«name»", "password": "⟦«pw»⟧"}}}
composer-oauth {"github-oauth": {"github.com": "⟦ghp_«A36»⟧"}}
s3cfg secret_key = ⟦«B40»⟧
rails-cred config/master.key: ⟦«h32»⟧
firebase-fcm Authorization: key=⟦AAAA«b7»:APA91b«b134»⟧
fcm-server FCM_SERVER_KEY=⟦AAAA«b7»:APA91b«b134»⟧
slack-form token=⟦xoxb-«d12»-«d12»-«A24»⟧&channel=C«u9»
basic-json "auth": {"user": "«name»", "pass": "⟦«pw»⟧"}
nodemailer auth: { user: 'a@b.co', pass: '⟦«pw»⟧' }
smtp-login server.login("«name»@example.com", "⟦«pw»⟧")
paramiko ssh.connect('«ip»', username='root', password='⟦«pw»⟧')
selenium driver.find_element(By.ID, "password").send_keys("⟦«pw»⟧")
cypress cy.get('#password').type('⟦«pw»⟧')
zip2john Archive password = ⟦«pw»⟧
bearer-yaml   bearer_token: "⟦«A40»⟧"
prom   basic_auth:\n    username: prom\n    password: ⟦«pw»⟧
alertmgr   smtp_auth_password: '⟦«pw»⟧'
grafana-ini admin_password = ⟦«pw»⟧
influx INFLUX_TOKEN=⟦«b86»==⟧
nats-nkey ⟦SU«s56»⟧
stellar STELLAR_SECRET=⟦S«s55»⟧
btc-wif wallet key ⟦5«o50»⟧
btc-wif2 WIF: ⟦K«o51»⟧
eth private key: ⟦0x«h64»⟧
sol-keypair "secretKey": "⟦«o88»⟧"
"""

# In the manner of the published test cases of gitleaks, trufflehog, detect-secrets and CredSweeper.
SCANNERS = r"""
gitleaks-ini «service»Token="⟦«A32»⟧"
gitleaks-ini-space «service»Token = "⟦«h40»⟧"
gitleaks-ini-bare «service»Token=⟦«l32»⟧
gitleaks-json {\n    "«service»_token": "⟦«A32»⟧"\n}
gitleaks-json-escaped "{\"«service»_token\":\"⟦«A32»⟧\"}"
gitleaks-json-escaped2 {\\\"«service»_token\\\":\\\"⟦«A32»⟧\\\"}
gitleaks-xml <«service»Token>⟦«l40»⟧</«service»Token>
gitleaks-xml-lines <«service»Token>\n    ⟦«l40»⟧\n</«service»Token>
gitleaks-xml-cdata <«service»Token><![CDATA[⟦«A40»⟧]]></«service»Token>
gitleaks-yaml «service»_token: ⟦«h32»⟧
gitleaks-yaml-single «service»_token: '⟦«h32»⟧'
gitleaks-toml «service»_token = "⟦«h32»⟧"
gitleaks-cs string «service»Token = "⟦«h32»⟧";
gitleaks-go var «service»Token string = "⟦«A32»⟧"
gitleaks-go-short «service»Token := `⟦«A32»⟧`
gitleaks-java String «service»Token = "⟦«A32»⟧";
gitleaks-java-put config.put("«service»Token", "⟦«A32»⟧");
gitleaks-kotlin val «service»Token = "⟦«A32»⟧"
gitleaks-php $«service»Token = "⟦«A32»⟧"
gitleaks-php-arrow $config['«service»_token'] = '⟦«A32»⟧';
gitleaks-php-concat $«service»Token .= "⟦«A32»⟧"
gitleaks-php-coalesce $«service»Token ??= "⟦«A32»⟧"
gitleaks-python «service»Token = '⟦«A32»⟧'
gitleaks-python-bytes «service»_token = b"⟦«A32»⟧"
gitleaks-ruby-or «service»Token ||= "⟦«A32»⟧"
gitleaks-swift let «service»Token = "⟦«A32»⟧"
gitleaks-make «SERVICE»_TOKEN := "⟦«A32»⟧"
gitleaks-make-colons «SERVICE»_TOKEN ::= "⟦«A32»⟧"
gitleaks-make-posix «SERVICE»_TOKEN :::= "⟦«A32»⟧"
gitleaks-make-cond «SERVICE»_TOKEN ?= "⟦«A32»⟧"
gitleaks-make-shell «SERVICE»_TOKEN != "⟦«A32»⟧"
gitleaks-logstash   "«service»Token" => "⟦«A32»⟧"
gitleaks-struct  «service»Token: "⟦«A32»⟧",
gitleaks-comma "«service»Token", "⟦«A32»⟧"
gitleaks-ctor new Client("«service»_token","⟦«A32»⟧")
gitleaks-secret «service»_secret := "⟦«h40»⟧"
gitleaks-key «service»Key = "⟦«l36»⟧"
gitleaks-api-key «service»_api_key="⟦«h32»⟧"
gitleaks-apikey «service»-api-key: ⟦«A40»⟧
gitleaks-client-id-secret «service»ClientSecret = '⟦«A32»⟧'
gitleaks-generic api_Key = "⟦«h32»⟧"
gitleaks-generic2 "client_secret" : "⟦«A24»⟧",
gitleaks-generic3 "client_id" : "«h64»", "client_secret" : "⟦«h64»⟧"
gitleaks-generic4 "awsToken": "⟦«A32»⟧"
gitleaks-generic5 "credentials" : "⟦0«h12»1a2b3c«A12»⟧"
gitleaks-generic6 creds = "⟦«A8»_«A20»⟧"
gitleaks-generic7 some_api_token_123 = "⟦«A24»⟧"
gitleaks-generic8 auth_key = '⟦«A40»⟧'
gitleaks-generic9 Passwd: "⟦«A16»⟧"
gitleaks-hashicorp password = "⟦«A12»⟧"
gitleaks-hashicorp2 administrator_login_password = "⟦thisIsDog«d2»11⟧"
gitleaks-curl curl -u "⟦«h32»⟧:" https://api.example.com
gitleaks-curl-header curl -H 'X-«service»-Token: ⟦«h40»⟧' https://example.com/x
gitleaks-curl-auth curl --header="Authorization: ⟦«h40»⟧" https://example.com
gitleaks-k8s kind: Secret\nmetadata:\n  name: x\ntype: Opaque\ndata:\n  value: ⟦«E24»⟧
gitleaks-k8s-json {"apiVersion": "v1", "kind": "Secret", "data": {"blob": "⟦«E24»⟧"}}
gitleaks-sumo sumologicAccessKey = "⟦«A64»⟧"
gitleaks-sumo-id SUMO_ACCESS_KEY=⟦«A64»⟧
gitleaks-okta oktaApiToken: "⟦00«b40»⟧"
gitleaks-nytimes nytimes_api_key="⟦«l32»⟧"
gitleaks-finicity finicity_client_secret="⟦«l20»⟧"
gitleaks-bitbucket bitbucket_client_secret = "⟦«l64»⟧"
gitleaks-dropbox dropbox_api_secret = "⟦«l15»⟧"
gitleaks-etsy etsyToken = "⟦«l24»⟧"
gitleaks-gitter gitter_access_token="⟦«l40»⟧"
gitleaks-gocardless gocardlessToken = "⟦live_«b40»⟧"
gitleaks-jfrog --set imagePullSecretJfrog.password=⟦«A73»⟧
gitleaks-jfrog2 "artifactory", "⟦«A73»⟧"
gitleaks-kucoin kucoin_secret="⟦«uuid»⟧"
gitleaks-lob lobToken = "⟦live_«h35»⟧"
gitleaks-mattermost mattermost_token = "⟦«l26»⟧"
gitleaks-squarespace squarespaceToken = "⟦«uuid»⟧"
gitleaks-yandex-secret yandexSecret = "⟦YC«w38»⟧"
gitleaks-hash-vault token: ⟦s.«A24»⟧
gitleaks-easypost var _ = "⟦EZAK«A54»⟧"
gitleaks-privateai privateaiToken = "⟦«l32»⟧"
gitleaks-freemius "secret_key"       => "⟦sk_«y29»⟧",
gitleaks-flickr flickrToken = "⟦«l32»⟧"
gitleaks-intra intra42_secret = "⟦s-s4t2ud-«h64»⟧"
gitleaks-settlemint settlemintToken = "⟦sm_pat_«A16»⟧"
gitleaks-clickhouse "⟦4b1d«A38»⟧" // ClickHouse Cloud API Secret
gitleaks-octopus set apikey="⟦API-«u26»⟧"
gitleaks-cisco-meraki cisco_meraki_api_key: ⟦«h40»⟧
gitleaks-looker looker_client_secret = "⟦«l24»⟧"
gitleaks-notion notion_api = "⟦ntn_«d11»«A35»⟧"
trufflehog-pair «service» «h24» ⟦«h40»⟧
trufflehog-context You can find a «service» secret ⟦«h40»⟧ within
trufflehog-context-key You can find a «service» key ⟦«A32»⟧ within
trufflehog-context-token You can find a «service» token ⟦«uuid»⟧ within but not this
trufflehog-aws You can find a aws secret ⟦«B40»⟧ within aws AKIA«s16»
trufflehog-azure You can find a azure secret ⟦«A3»7Q~«b31»⟧ within
trufflehog-uri https://«name»:⟦«A16»⟧@www.httpwatch.com/httpgallery/authentication/
trufflehog-ftp ftp://dlpuser:⟦«A20»⟧@ftp.dlptest.com
trufflehog-jdbc jdbc:postgresql://localhost:5432/foo?user=sultan&password=⟦«A12»⟧
trufflehog-jdbc-mysql jdbc:mysql:localhost:3306:foo:sultan:⟦«A12»⟧
trufflehog-mongo mongodb://myDBReader:⟦«A9»%40«A6»⟧@mongodb0.example.com:27017/?authSource=admin
trufflehog-redis redis://default:⟦«A20»⟧@redis-12345.c1.us-east-1.ec2.cloud.redislabs.com:12345
trufflehog-ldap ldaps://ldap.acme.dev\nuser: cn=admin,dc=example,dc=org\npassword: ⟦«A12»⟧
trufflehog-dsn sql.Open("mysql", "root:⟦«A14»⟧@tcp(127.0.0.1:3306)/db")
trufflehog-sqlserver sqlserver://sa:⟦P%40ssw0rd«d2»⟧@localhost:1433?database=master
trufflehog-sqlserver2 builder.Services.AddDbContext(o => o.UseSqlServer("database=LocalDB;data source=127.0.0.1;user id=sa;password=⟦P@ssw0rd«d3»⟧"))
trufflehog-rabbit amqp://rabbitmq:⟦«A12»⟧@localhost:5672/vhost
trufflehog-snowflake account: tuacoip-zt74995 user: «name» snowflake password = ⟦«A14»⟧
trufflehog-algolia algolia admin key: ⟦«h32»⟧
trufflehog-uuid-key [«service»] api_key = ⟦«uuid»⟧
trufflehog-colon «service»: ⟦«A32»⟧
trufflehog-env # Configuration File: config.yaml\nservice:\n  type: «service»\nauth:\n  type: api_token\n  in: header\n  api_token: "⟦«A40»⟧"
trufflehog-go-const const «service»ApiSecret = "⟦«A32»⟧"
trufflehog-basic-url https://⟦«h32»⟧:@api.chargify.com
trufflehog-box box_token = '⟦«A32»⟧'
trufflehog-deno ⟦ddp_«A36»⟧
trufflehog-cloudflare cloudflare cf token ⟦«b40»⟧
detect-basic ⟦«h32»⟧ password
detect-keyword my_password_secure: '⟦«A10»⟧'
detect-keyword-go my_password := "⟦m{{h}o)p${e]nob(ody[finds>-_$#thisone}}⟧"
detect-keyword-secret  private_key "⟦value«A6»⟧";
detect-keyword-apikey apikey = "⟦m{{h}o)p${e]nob(ody[finds>-_$#thisone}}«A4»⟧"
detect-keyword-service service_pass = "⟦hope«A8»⟧"
detect-keyword-db db_pass = '⟦«A12»⟧'
detect-keyword-aws aws_secret_access_key: "⟦«A12»⟧"
detect-keyword-cmp if (db_pass == "⟦«A12»⟧") {
detect-keyword-cmp2 if ("⟦«A14»⟧" == my_password_secure) {
detect-keyword-cs theapikey: "⟦«A24»⟧",
detect-keyword-at @"password" = @"⟦«A12»⟧"
detect-keyword-brackets private_key[] = "⟦«A20»⟧";
detect-keyword-fixed char secret[25] = "⟦«A20»⟧";
detect-artifactory artif-key:⟦AP6x«A10»⟧
detect-artifactory2 X-JFrog-Art-Api: ⟦AKCp«A69»⟧
detect-ibm softlayer_api_key: ⟦«l64»⟧
detect-ibm-iam ibm-api-key: ⟦«A44»⟧
detect-ibm-cos cos_hmac_secret_access_key = "⟦«h48»⟧"
detect-cloudant https://«name»:⟦«h64»⟧@«name».cloudant.com
detect-twilio twilio = ⟦SK«h32»⟧
detect-mailchimp mc = '⟦«h32»-us«d1»⟧'
detect-square square_oauth = ⟦sq0csp-«b43»⟧
detect-basic-auth https://username:⟦«A12»⟧@yelp.com
detect-basic-auth2 http://«name»:⟦«A10»⟧@localhost:5000/<%= @variable %>
detect-gitlab token: ⟦GR1348941«b20»⟧
detect-telegram ⟦«d9»:AA«b33»⟧
detect-openai ⟦sk-«A20»T3BlbkFJ«A20»⟧
detect-hex-entropy secret = '⟦«h32»⟧'
detect-b64 credentials = '⟦«b64pw»«E18»⟧'
detect-jwt ⟦«jwt»⟧
detect-ini [github]\nkey = ⟦«h40»⟧
detect-ini-named [credentials]\npassword = ⟦value_«A12»⟧
detect-yaml deep:\n  multi_key: x\n  api_key: ⟦«h32»⟧
detect-npm //registry.npmjs.org/:_authToken=⟦«uuid»⟧
detect-softlayer sl_key="⟦«l64»⟧"
credsweeper-py-password password = "⟦Dsdfs«A6»4⟧"
credsweeper-py-cat pass_phrase = "⟦we5345d«A8»⟧"
credsweeper-pw-quoted cackle_pw = "⟦MYPSWRD!@#$«d4»⟧"
credsweeper-key-val gi_reo_gi_key = "⟦«b32»⟧"
credsweeper-salt salt = "⟦«h32»⟧"
credsweeper-salt2 $salt1 = '⟦\x12\x34\x6b«h6»⟧'
credsweeper-nonce nonce = "⟦«h24»⟧"
credsweeper-api var api = '⟦«A32»⟧';
credsweeper-auth AUTH_API_TOKEN = "⟦«h40»⟧"
credsweeper-cred my_credential = "⟦«A20»⟧"
credsweeper-certificate the_certificate_password = "⟦«A12»⟧"
credsweeper-doc-id-pass id:master,pw:⟦dipPr10g«d1»!⟧
credsweeper-doc-id-slash id/pw : master / ⟦dipPr«d2»gg!⟧
credsweeper-doc-login Login: «name» Password: ⟦Kx«A8»!⟧
credsweeper-doc-pw PW: ⟦Iddq«A6»d⟧
credsweeper-doc-ip ip: «ip» id: root pw: ⟦Xdj@«A8»⟧
credsweeper-ko 비밀번호: ⟦«pw»⟧
credsweeper-sql CREATE USER 'haproxy'@'%' IDENTIFIED BY '⟦SqLpa5sW0rD«d1»⟧';
credsweeper-sql-set SET PASSWORD FOR 'root'@'localhost' = PASSWORD('⟦«A12»⟧');
credsweeper-sql-insert ALTER LOGIN mary PASSWORD='⟦«A12»⟧'
credsweeper-json {"password": "⟦«A12»⟧", "id": 1}
credsweeper-xml <password>⟦cackle!«A6»⟧</password>
credsweeper-xml-attr <item key="token">⟦«A32»⟧</item>
credsweeper-tfvars api_token = "⟦«A40»⟧"
credsweeper-cmd cmd --user «name» --password "⟦«A12»⟧"
credsweeper-cmd-tok ./run.sh -token=⟦«A32»⟧
credsweeper-key-multiline key = "⟦«A20»"\n    "«A20»⟧"
credsweeper-url-cred https://«name»:⟦«A12»⟧@example.com/path
credsweeper-url-param https://example.com/api?auth_token=⟦«h32»⟧&x=1
credsweeper-curl curl -X POST -H "Authorization: Bearer ⟦«b40»⟧"
credsweeper-secret-cs SecretKey = "⟦«A32»⟧",
credsweeper-dq secret_looks_like_linux_path="⟦/«A20»/«A20»⟧"
credsweeper-uuid UUID_SECRET = "⟦«uuid»⟧"
credsweeper-github-old git_token = "⟦«h40»⟧"
credsweeper-jira jira_2fa_token = "⟦«A24»⟧"
credsweeper-pem -----BEGIN PRIVATE KEY-----\n⟦MIIEvQIBADANBgkqhkiG9w0BAQEFAASC«B64»⟧\n-----END PRIVATE KEY-----
credsweeper-digital-ocean ⟦dop_v1_«h64»⟧
credsweeper-b64key key = "⟦«E32»⟧"
credsweeper-sshpass sshpass -p ⟦«A12»⟧ ssh «name»@«ip»
"""
SERVICES = [
    "adafruit",
    "adobe",
    "airtable",
    "algolia",
    "asana",
    "beamer",
    "bittrex",
    "clojars",
    "codecov",
    "coinbase",
    "confluent",
    "contentful",
    "datadog",
    "discord",
    "droneci",
    "etsy",
    "fastly",
    "finnhub",
    "flickr",
    "freshbooks",
    "gitter",
    "heroku",
    "kraken",
    "kucoin",
    "launchdarkly",
    "linkedin",
    "mailchimp",
    "mapbox",
    "messagebird",
    "netlify",
    "nytimes",
    "okta",
    "plaid",
    "rapidapi",
    "sendbird",
    "sentry",
    "snyk",
    "squarespace",
    "sumologic",
    "travisci",
    "trello",
    "twitch",
    "twitter",
    "typeform",
    "zendesk",
]
SPECIAL["service"] = lambda r: r.choice(SERVICES)
SPECIAL["SERVICE"] = lambda r: r.choice(SERVICES).upper()

CLEAN = r"""
uuid request id «uuid» finished in «n» ms
uuid-json {"id": "«uuid»", "parent_id": "«uuid»", "kind": "order"}
uuid-url GET /v1/users/«uuid»/orders/«uuid» 200 «n»
sha commit «h40»
sha-short «h8» Fix the «word» parser («name»)
sha-merge Merge: «h7» «h7»
git-log «h40» «date» «name»: rename «word» to «word»
git-index index «h7»..«h7» 100644
sha256sum «h64»  dist/«place»-1.«n».0.tar.gz
md5 MD5 («word».iso) = «h32»
integrity       "integrity": "sha512-«E64»",
integrity-yarn   integrity sha512-«E64»
integrity-html <script src="/«word».js" integrity="sha384-«E48»" crossorigin="anonymous"></script>
pip-hash     --hash=sha256:«h64» \\
poetry-hash     {file = "«word»-1.2.«n»-py3-none-any.whl", hash = "sha256:«h64»"},
cargo-lock checksum = "«h64»"
go-sum github.com/acme/«word» v1.2.«n» h1:«E32»
go-sum-mod github.com/acme/«word» v1.2.«n»/go.mod h1:«E32»
lock-resolved       "resolved": "https://registry.example.org/«word»/-/«word»-1.2.«n».tgz",
lock-requirement "node_modules/«word»": { "version": "1.«n».2", "dev": true }
docker-digest image: acme/«place»@sha256:«h64»
docker-id «h12»   acme/«place»:1.2   "python app.py"   2 hours ago   Up 2 hours
docker-pull Status: Downloaded newer image for acme/«place»:1.«n»
image <img src="data:image/png;base64,iVBORw0KGgo«B200»==">
font src: url(data:font/woff2;base64,d09GMgABAAAA«B200») format("woff2");
svg <path d="M12.5 3.2c-4.1.9-«n».3 2.2-6.5 5.1l«n»-3.3z" fill="#«h6»"/>
minified !function(e,t){"object"==typeof exports?module.exports=t(e):e.«a5»=t(e)}(this,function(e){var n=e.«a4»,r={};return r.«a6»=function(t){return n[t]||0},r});
bundle app.«h8».js    «n» kB │ gzip: «n» kB
chunk import("./chunk-«u8».js")
trace Traceback (most recent call last):\n  File "/srv/«place»/«word».py", line «n», in run\n    raise KeyError(token)
java-trace \tat com.acme.«place».TokenService.refresh(TokenService.java:«n»)
js-trace     at Object.<anonymous> (/srv/«place»/auth/secret-store.js:«n»:17)
go-trace goroutine «n» [running]:\nmain.main.func1(0xc000«h6», 0x«h12»)
hexdump 000000«h2»  «h2» «h2» «h2» «h2» «h2» «h2» «h2» «h2»  «h2» «h2» «h2» «h2» «h2» «h2» «h2» «h2»  |................|
pointer segfault at 0x«h16» ip 0x«h16» error 4
colour color: #«h6»; background: #«h3»; --accent: #«h8»;
ip inet «ip»/24 brd «ip» scope global eth0
ipv6 addr fe80::«h4»:«h4»:«h4»:«h4» dev eth0
mac link/ether «h2»:«h2»:«h2»:«h2»:«h2»:«h2»
isbn ISBN 978-«d1»-«d4»-«d4»-«d1»
iban IBAN DE«d2» «d4» «d4» «d4» «d4» «d2»
order Your order #«d3»-«d7»-«d7» has shipped
tracking Tracking number 1Z«u16» is out for delivery
ticket «U4»-«n»: «word» page fails when «word» is empty
invoice Invoice INV-«d4»-«d6» for «d3».«d2» EUR is due «date»
coords lat=«d2».«d6», lon=-«d2».«d6»
phone call +49 «d3» «d7» or (555) «d3»-«d4»
email write to «name».«word»@example.com about «word»
epoch ts=17«d11» seq=«d8»
version upgraded from 1.«n».0-rc.2 to 2.«n».1+build.«d5»
semver-table | «word» | 1.2.«n» | MIT | «date» |
slug https://blog.example.com/2024/05/how-we-moved-«word»-to-«word»-and-kept-«word»-running
slug-long https://news.example.com/articles/the-long-«word»-«word»-«word»-story-of-a-small-«word»-team-«d8»
utm https://example.com/?utm_source=newsletter&utm_medium=email&utm_campaign=«word»_«d6»&fbclid=IwAR«b50»
gclid https://example.com/landing?gclid=Cj0KCQ«b60»
youtube https://www.youtube.com/watch?v=«b11»
gdoc https://docs.google.com/document/d/1«b43»/edit#heading=h.«l12»
gsheet https://docs.google.com/spreadsheets/d/1«b43»/edit?gid=0#gid=0
notion-url https://www.notion.so/acme/Meeting-notes-«h32»
figma-url https://www.figma.com/file/«A22»/Design-system?node-id=«n»-«n»
drive-id Folder id 1«b32» is shared with the team
s3-url s3://acme-«place»/exports/«date»/part-0000«d1»-«uuid»-c000.snappy.parquet
cdn https://cdn.example.com/assets/«h2»/«h2»/«h32».jpg
gist https://gist.github.com/«name»/«h32»
permalink https://github.com/acme/«place»/blob/«h40»/src/auth/token.py#L«d2»-L«d3»
compare https://github.com/acme/«place»/compare/«h7»...«h7»
actions - uses: actions/checkout@«h40» # v4.1.«d1»
arn arn:aws:iam::«d12»:role/«place»-reader
arn-secret arn:aws:secretsmanager:eu-west-1:«d12»:secret:prod/«place»/db-«A6»
arn-kms arn:aws:kms:us-east-1:«d12»:key/«uuid»
aws-ids instance i-«h17» in subnet-«h17» of vpc-«h17», sg-«h17»
aws-ami ami-«h17» launched with account «d12»
gcp-project projects/acme-prod-«d6»/locations/europe-west1/keyRings/r1/cryptoKeys/k«d1»
gcp-sa «place»@acme-«d6».iam.gserviceaccount.com
azure-id /subscriptions/«uuid»/resourceGroups/«place»/providers/Microsoft.KeyVault/vaults/«word»
azure-tenant AZURE_TENANT_ID=«uuid»
azure-client AZURE_CLIENT_ID=«uuid»
k8s-pod pod/«place»-«h10»-«l5» 1/1 Running 0 3d
k8s-secret-ref         secretKeyRef:\n            name: «place»-db\n            key: password
k8s-secret-name secretName: «place»-tls
k8s-mount - name: token-volume\n  mountPath: /var/run/secrets/kubernetes.io/serviceaccount
helm-ref password: {{ .Values.db.password | quote }}
gha-ref token: ${{ secrets.GITHUB_TOKEN }}
gha-ref-env   NPM_TOKEN: ${{ secrets.NPM_TOKEN }}
env-ref token=${TOKEN}
env-ref2 export DB_PASSWORD=$(pass show prod/db)
env-ref3 PASSWORD="$DB_PASSWORD" ./run.sh
env-ref4 API_KEY=`cat /run/secrets/api_key`
env-empty DB_PASSWORD=
env-empty2 API_TOKEN=""
env-bool ENABLE_PASSWORD_RESET=true
env-num TOKEN_TTL_SECONDS=3600
env-file POSTGRES_PASSWORD_FILE=/run/secrets/postgres_password
env-name SECRET_NAME=prod/«place»/db
env-path SSH_KEY_PATH=/home/«name»/.ssh/id_ed25519
env-url TOKEN_URL=https://auth.example.com/oauth2/token
env-placeholder API_KEY=your-api-key-here
env-placeholder2 OPENAI_API_KEY=<your-token>
env-placeholder3 SECRET_KEY=changeme
env-placeholder4 STRIPE_KEY=sk_test_xxxxxxxxxxxxxxxxxxxxxxxx
env-placeholder5 TOKEN=xxxxxxxxxxxxxxxx
env-placeholder6 password: "********"
env-placeholder7 GITHUB_TOKEN=ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
env-placeholder8 api_key: YOUR_API_KEY
env-placeholder9 "token": "REPLACE_ME",
env-placeholder10 password: [REDACTED]
env-placeholder11 Authorization: Bearer <token>
env-placeholder12 Authorization: Bearer $TOKEN
env-placeholder13 postgres://user:password@localhost:5432/db
env-placeholder14 postgres://${DB_USER}:${DB_PASS}@${DB_HOST}/app
env-placeholder15 mysql://<user>:<password>@<host>/<db>
env-placeholder16 https://username:password@example.com/
py-getpass password = getpass.getpass("Password: ")
py-env token = os.environ["API_TOKEN"]
py-env-get secret = os.getenv("APP_SECRET")
py-attr password=self.settings.database_password,
py-arg def login(username: str, password: str) -> Token:
py-none token: str | None = None
py-cond if not secret:
py-cond2 if token is None or token.expired:
py-call key = derive_key(passphrase, salt, rounds=«n»)
py-hash password_hash = hash_password(password)
py-secrets token = secrets.token_urlsafe(32)
py-import from acme.auth.tokens import TokenStore, refresh_token
py-dict headers = {"Authorization": f"Bearer {token}"}
py-kw client = Client(api_key=config.api_key, timeout=30)
py-param parser.add_argument("--api-key", help="the key to use", default=None)
py-key sorted(items, key=lambda item: item.created_at)
py-key2 cache_key = f"{prefix}:{user_id}:{version}"
py-test assert response.json()["token"] == expected_token
py-enum PASSWORD_RESET = "password_reset"
py-const TOKEN_HEADER = "X-Auth-Token"
py-field password = models.CharField(max_length=128)
py-field2 api_key: SecretStr = Field(..., description="API key")
js-env const token = process.env.API_TOKEN;
js-await const { accessToken } = await getTokens();
js-prop <Input type="password" name="password" placeholder="Enter your password" />
js-key <li key={item.id} className="token-item">
js-fn function validatePassword(password) { return password.length >= 8; }
js-state const [password, setPassword] = useState('');
js-i18n "password.label": "Password", "password.forgot": "Forgot your password?"
js-i18n2   passwordPlaceholder: 'Choose a strong password',
js-import import { tokenize } from './tokenizer';
ts-type type Credentials = { username: string; password: string; token?: string };
java-decl private String password;
java-get String token = request.getHeader("Authorization");
java-ann @Value("${spring.datasource.password}")
go-err return fmt.Errorf("invalid token: %w", err)
go-field Password string `json:"password"`
go-env apiKey := os.Getenv("API_KEY")
cs-conf var secret = Configuration["Jwt:Key"];
rb-env password: <%= ENV['DATABASE_PASSWORD'] %>
php-env 'key' => env('APP_KEY'),
rust-env let token = std::env::var("TOKEN")?;
c-key static const char *KEY_NAMES[] = { "esc", "tab", "enter" };
sql-col   password_hash VARCHAR(255) NOT NULL,
sql-select SELECT id, token_count, key FROM «place» WHERE secret IS NOT NULL LIMIT «n»;
sql-update UPDATE users SET password = ? WHERE id = ?
sql-pk PRIMARY KEY (id), FOREIGN KEY (order_id) REFERENCES orders (id)
sql-insert INSERT INTO «place» VALUES («n», '«word»', '«date»', NULL);
tf-ref   password = var.db_password
tf-ref2   secret_key = data.aws_secretsmanager_secret_version.db.secret_string
tf-res resource "random_password" "«word»" {\n  length = 24\n}
tf-sens   sensitive = true
compose-ref       DB_PASSWORD: ${DB_PASSWORD:?required}
swagger   securitySchemes:\n    ApiKeyAuth:\n      type: apiKey\n      in: header\n      name: X-API-Key
docs-prose Store the API key in the environment and never commit it.
docs-prose2 The password must be at least twelve characters and is hashed with argon2.
docs-prose3 A token is valid for one hour; after that, use the refresh token to get a new one.
docs-prose4 The secret to good bread is patience, and the key is a hot oven.
docs-prose5 Passwords are never logged; keys are rotated every «n» days.
docs-prose6 If the token is missing, the server answers 401 Unauthorized.
docs-prose7 My password is not working, can you reset it?
docs-prose8 The password is required. The token is invalid or has expired.
docs-prose9 I forgot the password: could you send me a reset link?
docs-prose10 Which key is used for signing? The private key is stored in the HSM.
docs-prose11 secret: the recipe my grandmother never wrote down
docs-prose12 Key: value pairs are separated by commas.
docs-prose13 The token count is «n» and the context window is «d6» tokens.
docs-prose14 Password: at least 8 characters, one digit
docs-prose15 - `api_key`: string, required. The key issued to you.
docs-prose16 | `password` | string | The user's password |
docs-prose17 use the token from the dashboard and set it as TOKEN
docs-prose18 password manager: 1Password or Bitwarden, whichever you like
docs-prose19 credentials: see the wiki page about onboarding
docs-prose20 He said the pass is open from June to October.
docs-prose21 the password is stored in vault under prod/«place»
docs-prose22 token: unexpected end of input at line «n»
docs-prose23 error: authentication failed: password expired for user «name»
docs-prose24 your password was changed on «date» at «time»
docs-prose25 secret santa list: «name», «name» and «name»
docs-prose26 API key rotation is planned for «date».
docs-prose27 The secret is called «place»-db-credentials in namespace prod.
docs-prose28 Set password policy to minimum length «n»
docs-prose29 pass: 12, fail: 0, skipped: 3
docs-prose30 auth: handled by the gateway; token: forwarded unchanged
log-token «date» «time» INFO auth: token refreshed for user=«name» ttl=3600
log-token2 level=warn msg="token expired" user_id=«n» request_id=«uuid»
log-key level=info msg="cache miss" key=user:«n»:profile ttl=60
log-key2 cache key: «place»:«n»:«date»
log-session session_id=«n» opened for user «name» by (uid=0)
log-access «ip» - - [12/May/2024:«time» +0000] "GET /login?next=/account HTTP/1.1" 200 «n»
log-trace trace_id=«h32» span_id=«h16» sampled=true
log-traceparent traceparent: 00-«h32»-«h16»-01
log-etag ETag: "«h32»"
log-etag2 ETag: W/"«h3»-«B27»"
log-amz x-amz-request-id: «u16»\nx-amz-id-2: «E48»
log-cf cf-ray: «h16»-FRA
log-ssh Accepted publickey for «name» from «ip» port «d5» ssh2: ED25519 SHA256:«B43»
log-fail Failed password for invalid user «name» from «ip» port «d5» ssh2
log-kafka offset=«d9» partition=«d1» topic=«place».events key=null
log-mem rss=«d6» heap=«d7» gc=«d3»ms
ssh-pub ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQ«B300» «name»@laptop
ssh-ed ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI«B43» «name»@laptop
known-host github.com ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI«B43»
cert -----BEGIN CERTIFICATE-----\nMIID«B60»\n«B64»\n«B64»\n-----END CERTIFICATE-----
pubkey -----BEGIN PUBLIC KEY-----\nMIIB«B60»\n«B64»\n-----END PUBLIC KEY-----
pgp-pub -----BEGIN PGP PUBLIC KEY BLOCK-----\n\n«B64»\n«B64»\n-----END PGP PUBLIC KEY BLOCK-----
pgp-fpr Key fingerprint = «H4» «H4» «H4» «H4» «H4»  «H4» «H4» «H4» «H4» «H4»
wg-pub PublicKey = «E32»
cert-fpr SHA256 Fingerprint=«H2»:«H2»:«H2»:«H2»:«H2»:«H2»:«H2»:«H2»:«H2»:«H2»
age-pub recipient age1«k58»
stripe-pub pk_live_51«A97»
stripe-pub-test const stripe = Stripe('pk_test_«A24»');
stripe-obj customer cus_«A14» subscribed to price_1«A23» via sub_1«A23»
stripe-evt evt_1«A23» charge.succeeded ch_3«A23» pi_3«A23»
slack-ids <@U«u10»> posted in C«u10» at 17«d8».«d6»
discord-ids <@«d18»> in <#«d18»>
telegram-chat chat_id=-100«d10»
btc-address send to bc1q«k38»
eth-address contract 0x«h40» verified
eth-tx tx 0x«h64» mined in block «d8»
ipfs ipfs://bafybei«s52»
ulid 01H«u23»
nanoid id: "«b21»"
ksuid event 2«A26» stored
mongo-id ObjectId("«h24»")
firebase-doc /users/«A28»/posts/«A20»
commit-trailer Co-authored-by: «name» <«name»@users.noreply.github.com>
change-id Change-Id: I«h40»
signed-off Signed-off-by: «name» «word» <«name»@example.com>
numbers | «d4» | «d3».«d2» | «d5» | «d2»% |
csv «d6»,«name»,«word»,«d3».«d2»,«date»,true
matrix [[«d1», «d1», «d1»], [«d1», «d1», «d1»]]
latex \begin{equation} \sum_{i=1}^{n} \alpha_i x_i^2 \leq \frac{\partial f}{\partial x} \end{equation}
css .btn-«word»:hover{transform:translateY(-2px);box-shadow:0 «d1»px 8px rgba(0,0,0,.«d2»)}
tailwind <div class="flex items-center justify-between px-4 py-2 text-sm font-medium rounded-md hover:bg-gray-50">
regex re.compile(r"^(?P<key>[A-Z_]+)=(?P<value>.*)$")
regex2 const TOKEN_RE = /^[A-Za-z0-9_-]{20,}$/;
markdown ## Rotating the «word» key
markdown-link See [the token docs](https://docs.example.com/auth/tokens#refresh).
german Das Passwort wird nie gespeichert, nur sein Hash.
german2 Bitte das Passwort zurücksetzen, danke!
french Le mot de passe doit contenir huit caractères.
french2 La clé est sous le paillasson, comme toujours.
spanish La contraseña es obligatoria y el usuario también.
spanish2 La clave del éxito es la constancia.
italian La chiave di casa è sul tavolo.
portuguese A senha deve ter pelo menos oito caracteres.
russian Пароль не подошёл, попробуй ещё раз.
chinese 请输入密码,然后点击登录。
japanese パスワードを忘れた場合はこちら。
korean 비밀번호를 잊으셨나요?
chat are we still on for «word» at «d2»:30? I can bring «word»
chat2 lol the «word» thing broke again, restarting it now
chat3 can someone review https://github.com/acme/«place»/pull/«n» before lunch?
chat4 meeting moved to «date» «time», same link: https://meet.google.com/«a3»-«a4»-«a3»
chat5 zoom: https://zoom.us/j/«d11»
chat6 thanks! the key point is that users keep one token each
chat7 my favourite password joke is the one about the goldfish
math Let $k$ be a key with $|k| = 256$ bits and $H(k)$ its hash.
dns «word».example.com. 300 IN TXT "v=spf1 include:_spf.example.com ~all"
dkim-pub default._domainkey IN TXT "v=DKIM1; k=rsa; p=MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQ«B160»"
google-verify google-site-verification=«b43»
csp Content-Security-Policy: script-src 'self' 'sha256-«E32»'
user-agent Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/12«d1».0.0.0 Safari/537.36
cron */15 * * * * /usr/local/bin/rotate-keys --quiet
ps root      «d5»  0.0  0.1  «d6» «d5» ?  Ss   10:«d2»   0:00 /usr/sbin/sshd -D
ls -rw-r--r-- 1 «name» staff «d5» May 12 10:«d2» id_ed25519.pub
systemd Started «place».service - «word» worker «d2».
k8s-uid   uid: «uuid»\n  resourceVersion: "«d8»"
openapi-desc description: The API token used to authenticate the request
npm-audit found 0 vulnerabilities in «d3» scanned packages
pytest tests/auth/test_tokens.py::test_refresh_token_is_rotated PASSED [ «d2»%]
pytest-id tests/test_«word».py::test_password[«word»-«word»-None] PASSED
coverage src/auth/password.py      «d3»     «d1»    98%   «d2»-«d2»
diff -    token = load_token()\n+    token = load_token(path)
todo # TODO: move the secret into the vault
commit-msg fix(auth): do not log password on failure (#«n»)
branch git checkout -b feature/«U3»-«n»-api-key-rotation
vin VIN WVWZZZ1JZXW«d6»
flight Flight LH«d4» seat 12A booking «U6»
license SPDX-License-Identifier: Apache-2.0
base32-words AAAA BBBB CCCC «U4» «U4»
long-id build 20240512.«d2»-«h7»-«word»-linux-amd64
jar «word»-core-2.«n».1-SNAPSHOT-20240512.101010-«d2».jar
cookie-consent Set-Cookie: theme=dark; Path=/; Max-Age=31536000
cookie-ga Cookie: _ga=GA1.2.«d9».«d10»; lang=en-US
graphql query { viewer { login repositories(first: «d2») { nodes { nameWithOwner } } } }
graphql-cursor "endCursor": "Y3Vyc29yOnYyOp«A20»=="
page-token-null "next_page_token": null
protobuf string access_token = 1;
proto2 optional bytes secret_key = 2 [deprecated = true];
token-usage "usage": {"prompt_tokens": «n», "completion_tokens": «n», "total_tokens": «n»}
max-tokens max_tokens=4096, temperature=0.«d1», stop_token="</s>"
special-token tokenizer.pad_token = tokenizer.eos_token
model-id claude-3-5-sonnet-20241022 and gpt-4o-2024-08-06 answered in «d3» ms
tokenizer tokens: ["▁the", "▁«word»", "ing", "</s>"]
private-flag "private": true, "keywords": ["auth", "token", "secret"]
public-key-field "public_key": "«E32»"
publishable "publishableKey": "pk_test_«A40»"
client-id client_id=«d12»-«l32».apps.googleusercontent.com
app-id FACEBOOK_APP_ID=«d15»
key-id kid: «h40»
keycode if (event.key === 'Enter' && event.ctrlKey) submit();
key-vault az keyvault secret show --vault-name «word» --name db-password
pass-show pass show email/«name»
op-ref password: op://Prod/«place»/password
vault-ref vault:secret/data/«place»#password
ssm-ref {{resolve:ssm-secure:/«place»/db/password:1}}
sops-meta     lastmodified: "«date»T«time»Z"\n    version: 3.8.1
jsonschema "password": {"type": "string", "minLength": 8, "format": "password"}
yaml-anchor password: *db_password
xml-schema <xs:element name="password" type="xs:string" minOccurs="0"/>
html-label <label for="password">Password</label>
html-csrf-name <input type="hidden" name="csrf_token">
android <string name="password_hint">Enter your password</string>
ios NSLocalizedString("password.title", comment: "Title")
"""


def lines_of(table: str) -> Iterator[tuple[str, str]]:
    for row in table.strip("\n").split("\n"):
        kind, _, template = row.partition(" ")
        yield kind, template


def unescaped(template: str) -> str:
    return re.sub(r"\\(\\|n|t)", lambda m: {"\\": "\\", "n": "\n", "t": "\t"}[m[1]], template)


def marked(r: Random, kind: str, template: str) -> Line:
    text = fill(r, template)
    before, _, rest = text.partition("⟦")
    secret, _, after = rest.partition("⟧")
    return Line(before + secret + after, secret, kind)


def second_corpus(seed: int = 20240607, each: int = 4) -> Iterator[Line]:
    """Secrets of every kind in varied surroundings, then clean lines."""
    r = Random(seed)
    for kind, form in lines_of(TOKENS):
        for _ in range(each):
            inner = form if "⟦" in form else f"⟦{form}⟧"
            yield marked(r, f"token/{kind}", r.choice(BARE).format(inner))
    for kind, rest in lines_of(NAMED):
        name, _, form = rest.partition(" ")
        for _ in range(each):
            value = fill(r, form)
            template = r.choice(ASSIGNED if re.fullmatch(r"[\w.-]+", value) else ASSIGNED[:-1])
            yield Line(fill(r, template).format(n=name, v=value), value, f"named/{kind}")
    for kind, template in lines_of(WHOLE):
        for _ in range(each):
            yield marked(r, f"whole/{kind}", unescaped(template))
    yield from scanner_corpus(seed, each)
    for kind, template in lines_of(CLEAN):
        for _ in range(each * 4):
            yield Line(fill(r, unescaped(template)), None, f"clean/{kind}")


def scanner_corpus(seed: int = 77, each: int = 4) -> Iterator[Line]:
    """Lines in the manner of other scanners' published test cases."""
    r = Random(seed)
    for kind, template in lines_of(SCANNERS):
        for _ in range(each):
            yield marked(r, f"scanner/{kind}", unescaped(template))
