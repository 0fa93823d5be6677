"""A third corpus for the redactor: whole pieces of work (configuration, terminals, tickets, chats, code) and their like.

Written with the templates of `redact_second.py` (guillemets draw characters, hollow brackets mark what must not
survive) but none of its lines; other formats, other surroundings, other near misses. The same for the same seed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

from bench.redact_corpus import Line
from bench.redact_second import fill, lines_of, marked, unescaped

# Formats that say themselves what they are.
TOKENS = """
anyscale esecret_«A32»
apify apify_api_«A36»
voyage pa-«b43»
jina jina_«A60»
firecrawl fc-«h32»
e2b e2b_«h40»
elevenlabs sk_«h48»
llamacloud llx-«A48»
openai-svc sk-svcacct-«b60»
anthropic-session sk-ant-sid01-«b86»AA
github-app ghs_«A36»
github-user ghu_«A36»
gitlab-runner glrt-«b20»
gitlab-trigger glptt-«h40»
gitlab-feed glft-«b20»
sonar-user squ_«h40»
sonar-project sqp_«h40»
sentry-org sntrys_eyJ«A80»_«A43»
honeybadger hbp_«A36»
vercel-blob vercel_blob_rw_«A16»_«A30»
neon napi_«l64»
cloudflare-origin v1.0-«h24»-«h146»
hcp-vault-batch hvb.«b140»
vault-root hvs.CAES«b90»
terraform-cloud «A14».atlasv1.«b67»
databricks dapi«h32»
snyk-new snyk_uat.«h8».«b80»
npm-new npm_«A36»
pypi pypi-AgEIcHlwaS5vcmc«b120»
rubygems rubygems_«h48»
docker-org dckr_oat_«b32»
quay acme+robot:⟦«u64»⟧
slack-legacy xoxs-«d12»-«d12»-«d12»-«h40»
slack-workflow https://hooks.slack.com/triggers/T«u9»/«d13»/⟦«h32»⟧
discord-canary https://canary.discord.com/api/webhooks/«d18»/⟦«b68»⟧
teams-flow https://prod-12.westeurope.logic.azure.com:443/workflows/«h32»/triggers/manual/paths/invoke?api-version=2016-06-01&sig=⟦«b43»⟧
google-chat https://chat.googleapis.com/v1/spaces/AAAA«b7»/messages?key=AIza«b35»&token=⟦«b43»⟧
make-hook https://hook.eu1.make.com/⟦«l32»⟧
ifttt https://maker.ifttt.com/trigger/x/with/key/⟦«b22»⟧
telegram-url https://api.telegram.org/bot⟦«d9»:AA«b33»⟧/sendMessage
discord-old https://discordapp.com/api/webhooks/«d18»/⟦«b68»⟧
fcm AAAA«b7»:APA91b«b134»
aws-session IQoJb3JpZ2lu«B300»
aws-mws amzn.mws.«uuid»
backblaze K00«d1»«B27»
scaleway SCW_SECRET_KEY=⟦«uuid»⟧
adyen AQE«B60»-«B43»=-«A16»
mollie live_«A30»
gocardless live_«b40»
paypal-braintree access_token$sandbox$«l16»$«h32»
stripe-connect rk_live_«A99»
webhook whsec_«A32»
zoho 1000.«h32».«h32»
salesforce 00D«A12»!AQ«A90»
clickup pk_«d8»_«u32»
airtable pat«A14».«h64»
notion ntn_«d11»«A35»
todoist todoist_token=⟦«h40»⟧
asana-pat 2/«d16»/«d16»:«h32»
dropbox sl.«b135»
roblox _|WARNING:-DO-NOT-SHARE-THIS.--|_⟦«H200»⟧
twilio SK«h32»
mailersend mlsn.«h64»
sendinblue xkeysib-«h64»-«A16»
resend re_«A8»_«A24»
mapbox-sk sk.«mapbox»
grafana-sa glsa_«A32»_«h8»
newrelic-user NRAK-«u27»
dynatrace dt0c01.«u24».«u64»
datadog-app ddapp_«A34»
posthog-personal phx_«A43»
launchdarkly sdk-«uuid»
launchdarkly-api api-«uuid»
doppler-service dp.st.prd.«A40»
infisical st.«h24».«h32».«h32»
onepassword ops_eyJ«B250»
bitwarden 0.«uuid».«A30»:«E16»
tailscale-client tskey-client-«A12»CNTRL-«A32»
ngrok authtoken: ⟦2«A26»_«A20»⟧
age AGE-SECRET-KEY-1«u58»
wireguard PrivateKey = ⟦«E32»⟧
xprv xprv«o107»
jwt «jwt»
jwe «jwe»
token-url https://⟦«A40»⟧@git.example.net/team/site.git
mongodb mongodb://root:⟦«A18»⟧@mongo-0.mongo:27017,mongo-1.mongo:27017/app?authSource=admin
celery CELERY_BROKER_URL=amqp://celery:⟦«A14»⟧@mq:5672//
odbc-url mssql+pyodbc://sa:⟦«A14»⟧@sql/shop?driver=ODBC+Driver+18
nats-url nats://svc:⟦«A20»⟧@nats-1:4222
snowflake-url snowflake://etl:⟦«A16»⟧@acct.eu-west-1/db/schema
proxy http://corp%5Cbob:⟦«A12»⟧@proxy.example.net:3128
go-mysql app:⟦«A16»⟧@tcp(db.internal:3306)/shop?parseTime=true
cloudinary cloudinary://«d15»:⟦«b27»⟧@demo
sentry-dsn-secret https://«h32»:⟦«h32»⟧@sentry.example.net/4
"""

BARE = [
    "{0}",
    "I put {0} into the dashboard, as you asked.",
    "> {0}",
    "2025-03-02T09:11:45Z WARN gateway rejected {0}: 403",
    "1. {0}\n2. the other one is still missing",
    'logger.debug("calling with %s", "{0}")',
    "bob [10:42]: {0}\nana [10:43]: got it, thanks",
    "creds.append('{0}')",
    "<td>{0}</td>",
    "{{'input': '{0}'}}",
    "note to self: {0} (expires in June)",
    '["{0}"]',
    "old={0} new=pending",
]

# Names and how they are written down; `«v»` is the value.
NAMES = """
MISTRAL_API_KEY «A32»
WANDB_API_KEY «h40»
DEEPGRAM_KEY «h40»
ASSEMBLYAI_API_KEY «h32»
AZURE_OPENAI_KEY «h32»
TOGETHER_API_KEY «h64»
CF_API_TOKEN «b40»
FASTLY_API_TOKEN «b32»
HCLOUD_TOKEN «A64»
LINODE_CLI_TOKEN «h64»
VULTR_API_KEY «u36»
SNYK_TOKEN «uuid»
CODECOV_TOKEN «uuid»
SEGMENT_WRITE_KEY «A32»
ALGOLIA_ADMIN_KEY «h32»
PAGERDUTY_TOKEN u+«b18»
OKTA_CLIENT_SECRET «b40»
AUTH0_CLIENT_SECRET «b64»
NEXTAUTH_SECRET «E32»
SESSION_SECRET «pw»
APP_SECRET «h32»
DJANGO_SECRET_KEY «y50»
JWT_SIGNING_KEY «E48»
ENCRYPTION_KEY «h64»
DB_PASSWORD «pw»
MYSQL_ROOT_PASSWORD «pw»
RABBITMQ_DEFAULT_PASS «pw»
REDIS_PASSWORD «A24»
GRAFANA_ADMIN_PASSWORD «pw»
KEYSTORE_PASSWORD «pw»
SMTP_PASS «l16»
LDAP_BIND_PASSWORD «pw»
ADMIN_PW «pw»
SPOTIFY_CLIENT_SECRET «h32»
TWITCH_CLIENT_SECRET «l30»
REDDIT_SECRET «b27»
STRAVA_REFRESH_TOKEN «h40»
PLAID_SECRET «h30»
COINBASE_API_SECRET «E64»
ETHERSCAN_KEY «u34»
DEPLOYER_PRIVATE_KEY 0x«h64»
AWS_SECRET_ACCESS_KEY «B40»
GITEA_TOKEN «h40»
SOURCEHUT_TOKEN «B86»
"""

WRITTEN = [
    "{n}={v}",
    'export {n}="{v}"',
    "  {n}: '{v}'",
    '      - "{n}={v}"',
    '{{ "name": "{n}", "value": "{v}" }},',
    "docker run --rm -e {n}={v} acme/app:1.4",
    'fly secrets set {n}="{v}" -a acme',
    "os.environ['{n}'] = '{v}'",
    'process.env.{n} = "{v}";',
    "$env:{n}='{v}'",
    "ENV {n} {v}",
    '<add key="{n}" value="{v}"/>',
    '"{n}" = "{v}"',
    "+{n}={v}",
    "-    {n}: {v}",
    'viper.SetDefault("{n}", "{v}")',
    "{n} is set to {v} on staging",
    'System.setProperty("{n}", "{v}");',
    "please put {n}={v} in the vault",
    'put("{n}", "{v}")',
    "set {n}={v}",
    'cfg.{n} = "{v}"',
    "`{n}`: `{v}`",
    "| {n} | `{v}` |",
]

WHOLE = r"""
compose services:\n  db:\n    image: postgres:16\n    environment:\n      POSTGRES_USER: app\n      POSTGRES_PASSWORD: ⟦«pw»⟧\n
helm-values auth:\n  rootPassword: "⟦«A16»⟧"\n  replicationUser: repl\n
ansible-host web1 ansible_host=«ip» ansible_user=deploy ansible_ssh_pass=⟦«A14»⟧
ansible-vars vault_db_password: "⟦«pw»⟧"\nvault_user: app
tfvars region = "eu-west-1"\ndb_master_password = "⟦«pw»⟧"
tfstate "attributes": { "username": "app", "password": "⟦«A20»⟧", "port": 5432 }
cloud-init chpasswd:\n  list: |\n    root:⟦«A14»⟧\n  expire: false
kubeconfig users:\n- name: admin\n  user:\n    token: ⟦«jwt»⟧
kube-secret apiVersion: v1\nkind: Secret\ntype: Opaque\ndata:\n  session: ⟦«E24»⟧
docker-config {"auths": {"ghcr.io": {"auth": "⟦«basic»⟧"}}}
npmrc @acme:registry=https://npm.example.net/\n//npm.example.net/:_authToken=⟦«uuid»⟧
pypirc [testpypi]\nrepository = https://test.pypi.org/legacy/\nusername = bob\npassword = ⟦«pw»⟧
netrc machine git.example.net\nlogin bob\npassword ⟦«A20»⟧
pgpass analytics.db.internal:5433:warehouse:etl:⟦«A16»⟧
mycnf [mysqldump]\nuser = backup\npassword = "⟦«pw»⟧"
aws-credentials [prod]\naws_access_key_id = AKIA«s16»\naws_secret_access_key = ⟦«B40»⟧
gcp-sa {"type": "service_account", "project_id": "acme", "private_key": "-----BEGIN PRIVATE KEY-----\\n⟦«flat»⟧\\n-----END PRIVATE KEY-----\\n"}
azure-storage AZURE_STORAGE_CONNECTION_STRING=DefaultEndpointsProtocol=https;AccountName=acme;AccountKey=⟦«E64»⟧;EndpointSuffix=core.windows.net
azure-bus Endpoint=sb://acme.servicebus.windows.net/;SharedAccessKeyName=send;SharedAccessKey=⟦«E32»⟧
azure-sas https://acme.blob.core.windows.net/in/a.csv?sp=r&st=2025-01-01T00:00:00Z&sv=2022-11-02&sr=b&sig=⟦«A40»%2F«A2»%3D⟧
rsa -----BEGIN RSA PRIVATE KEY-----\n⟦«body»⟧\n-----END RSA PRIVATE KEY-----
openssh the key was\n-----BEGIN OPENSSH PRIVATE KEY-----\n⟦«body»⟧\n-----END OPENSSH PRIVATE KEY-----\nplease revoke it
pgp -----BEGIN PGP PRIVATE KEY BLOCK-----\n\n⟦«body»⟧\n=«B4»\n-----END PGP PRIVATE KEY BLOCK-----
wg [Interface]\nAddress = 10.8.0.2/24\nPrivateKey = ⟦«E32»⟧\n
wpa network={\n  ssid="Attic"\n  psk="⟦«pw»⟧"\n}
openvpn auth-user-pass inline\n<auth-user-pass>\nbob\n⟦«A14»⟧\n</auth-user-pass>
htpasswd bob:$apr1$«A8»$⟦«A22»⟧
shadow svc:$6$«A16»$⟦«A86»⟧:19700:0:99999:7:::
spring spring.mail.password=⟦«pw»⟧
appsettings "ConnectionStrings": { "Default": "Server=tcp:acme.database.windows.net,1433;User ID=app;Password=⟦«A16»⟧;Encrypt=True;" }
webconfig <add name="Main" connectionString="Data Source=.;Initial Catalog=Shop;User Id=sa;Password=⟦«A14»⟧" />
tomcat <Resource name="jdbc/shop" username="app" password="⟦«pw»⟧" url="jdbc:mysql://db/shop"/>
maven <server>\n  <id>releases</id>\n  <username>ci</username>\n  <password>⟦«A20»⟧</password>\n</server>
gradle signing.password=⟦«pw»⟧\nsigning.keyId=24875D73
rails production:\n  secret_key_base: ⟦«h128»⟧
laravel APP_KEY=base64:⟦«E32»⟧
wordpress define( 'DB_PASSWORD', '⟦«pw»⟧' );
phoenix config :acme, AcmeWeb.Endpoint, secret_key_base: "⟦«B64»⟧"
flask app.config["SECRET_KEY"] = "⟦«pw»⟧"
express app.use(session({ secret: '⟦«A24»⟧', resave: false }))
vue-env VITE_MAPS_TOKEN=⟦pk«d1»x«A40»⟧
gha-env env:\n  DEPLOY_TOKEN: ⟦«A40»⟧
jenkins withEnv(['SONAR_TOKEN=⟦«h40»⟧']) { sh 'make scan' }
circle-log $ export NPM_AUTH=⟦«A36»⟧ && npm publish
travis - secure_token: "⟦«A44»⟧"
postman {"key": "api_token", "value": "⟦«A32»⟧", "enabled": true}
http-file GET https://api.example.net/me\nX-Api-Key: ⟦«A32»⟧\nAccept: application/json
har {"name": "authorization", "value": "Bearer ⟦«A44»⟧"}
curl-bearer curl -sS https://api.example.net/v2/items -H "Authorization: Bearer ⟦«b48»⟧" | jq .
curl-user curl --user ops:⟦«A14»⟧ -X DELETE https://es.example.net/logs-2024
curl-key curl 'https://api.example.net/geo?q=Lyon&apikey=⟦«h32»⟧'
curl-data curl -d 'grant_type=password&username=bob&password=⟦«A14»⟧' https://sso.example.net/token
curl-json curl -XPOST https://x.example.net/login -d '{"user":"bob","password":"⟦«pw»⟧"}'
wget wget --user=bob --password=⟦«A14»⟧ https://files.example.net/a.tgz
httpie http POST example.net/api token==⟦«A32»⟧
git-remote origin\thttps://bob:⟦«A24»⟧@git.example.net/site.git (fetch)
git-config git config --global http.extraheader "AUTHORIZATION: basic ⟦«basic»⟧"
psql-env PGPASSWORD='⟦«A16»⟧' pg_restore -h db -U app -d shop dump.pgc
mysql mysql -h db -u app -p⟦«A14»⟧ shop < fix.sql
mongodump mongodump --host m1 --username root --password ⟦«A14»⟧ --out /b
redis redis-cli -u redis://default:⟦«A24»⟧@cache:6379 ping
sqlcmd sqlcmd -S sql1 -U sa -P ⟦«A14»⟧ -Q "select 1"
sshpass sshpass -p "⟦«A14»⟧" rsync -a ./ bob@«ip»:/srv
ldap ldapwhoami -x -D cn=admin,dc=acme -w ⟦«A14»⟧
openssl openssl pkcs12 -export -in c.pem -inkey k.pem -passout pass:⟦«A12»⟧
zip 7z a -p⟦«A14»⟧ -mhe=on backup.7z data/
smb mount -t cifs //nas/share /mnt -o username=bob,password=⟦«A12»⟧
kubectl-literal kubectl create secret generic smtp --from-literal=user=bob --from-literal=password=⟦«A14»⟧
helm-set helm install db bitnami/postgresql --set auth.postgresPassword=⟦«A14»⟧
vault-kv vault kv put kv/shop api_key=⟦«A32»⟧ env=prod
vault-login vault login -method=userpass username=bob password=⟦«A14»⟧
az az sql server create -n s1 -g rg --admin-user sa --admin-password ⟦«A14»⟧7
gcloud gcloud sql users set-password root --instance=i1 --password=⟦«A14»⟧
heroku heroku config:set STRIPE_WEBHOOK_SECRET=whsec_⟦«A32»⟧ -a shop
npm-login npm config set //npm.example.net/:_authToken ⟦«uuid»⟧
twine twine upload -u bob -p ⟦«A14»⟧ dist/*
ftp lftp -e "put a.zip; bye" -u bob,⟦«A12»⟧7 ftp.example.net
rdp cmdkey /generic:TERMSRV/host /user:bob /pass:⟦«A12»⟧
net-user net user svc_app ⟦«A12»⟧7 /add /y
powershell $cred = New-Object PSCredential('bob', (ConvertTo-SecureString '⟦«A14»⟧' -AsPlainText -Force))
sql-user CREATE USER 'report'@'%' IDENTIFIED BY '⟦«pw»⟧';
sql-role ALTER ROLE etl WITH LOGIN PASSWORD '⟦«pw»⟧' VALID UNTIL '2026-01-01';
sql-insert INSERT INTO api_clients (name, secret) VALUES ('acme', '⟦«A40»⟧');
sql-update UPDATE users SET password = '⟦«pw»⟧' WHERE id = 7;
mssql CREATE LOGIN app WITH PASSWORD = N'⟦«A14»⟧7', CHECK_POLICY = OFF;
redis-conf requirepass ⟦«A32»⟧
mongo-shell db.createUser({ user: "app", pwd: "⟦«pw»⟧", roles: ["readWrite"] })
py-connect conn = psycopg.connect(host="db", user="app", password="⟦«pw»⟧")
py-boto boto3.client("s3", aws_access_key_id="AKIA«s16»", aws_secret_access_key="⟦«B40»⟧")
py-requests requests.get(url, headers={"X-Auth-Token": "⟦«h32»⟧"})
py-auth r = httpx.post(url, auth=("svc", "⟦«pw»⟧"))
py-smtp server.login("bot@example.net", "⟦«l16»⟧")
py-default TOKEN = os.getenv("BOT_TOKEN", "⟦«A40»⟧")
js-client const client = new Acme({ apiKey: "⟦«A40»⟧", region: "eu" });
js-fetch fetch(u, { headers: { Authorization: `Token ⟦«h40»⟧` } })
js-fallback const secret = process.env.JWT_SECRET ?? "⟦«A32»⟧";
ts-field private readonly apiSecret: string = '⟦«A32»⟧';
go-struct Config{User: "app", Password: "⟦«A14»⟧", Host: "db"}
go-const const webhookSecret = "⟦«A32»⟧"
java-field @Value("${smtp.password:⟦«A14»⟧}")
java-ds dataSource.setPassword("⟦«pw»⟧");
kotlin-build buildConfigField("String", "API_KEY", "\"⟦«A32»⟧\"")
swift let clientSecret = "⟦«A40»⟧"
csharp var client = new SmtpClient { Credentials = new NetworkCredential("bob", "⟦«A14»⟧") };
ruby Stripe.api_key = '⟦«A32»⟧'
php $db = new mysqli('localhost', 'app', '⟦«A14»⟧', 'shop');
rust let token = "⟦«A40»⟧".to_string();
elixir config :ex_aws, secret_access_key: "⟦«B40»⟧"
scala val apiToken = "⟦«A32»⟧"
dart final apiKey = '⟦«A32»⟧';
c static const char *wifi_password = "⟦«A12»⟧7";
arduino #define MQTT_PASSWORD "⟦«A12»⟧7"
vim let g:acme_token = "⟦«A40»⟧"
jwt-sign token = jwt.encode(claims, "⟦«A32»⟧", algorithm="HS256")
test-fill await page.fill('input[name="password"]', '⟦«pw»⟧');
selenium driver.findElement(By.id("pass")).sendKeys("⟦«A12»⟧7"); // password
cookie-header Cookie: lang=fr; sid=⟦«A40»⟧; theme=light
set-cookie < set-cookie: session_id=⟦«A43»⟧; Path=/; Secure; HttpOnly
proxy-auth Proxy-Authorization: Basic ⟦«basic»⟧
api-header > x-api-key: ⟦«A40»⟧
amz-sig &X-Amz-Credential=AKIA«s16»%2F20250101%2Feu-west-1%2Fs3%2Faws4_request&X-Amz-Signature=⟦«h64»⟧
oauth-cb https://app.example.net/cb#access_token=⟦«A48»⟧&token_type=bearer&expires_in=3600
reset-link https://app.example.net/password/reset?token=⟦«h64»⟧&email=bob%40example.net
magic-link https://app.example.net/login/verify?auth_token=⟦«b43»⟧
oauth-json {"access_token":"⟦«A64»⟧","token_type":"Bearer","expires_in":3599}
refresh-json "refresh_token": "⟦«b64»⟧", "scope": "read"
log-env ERROR config dump: {DB_HOST=db, DB_PASSWORD=⟦«A16»⟧, DB_PORT=5432}
log-kv level=info msg="login ok" user=bob token=⟦«A32»⟧ ms=12
stack-trace java.sql.SQLException: Access denied for jdbc:mysql://db/shop?user=app&password=⟦«A14»⟧
debug-dump array(2) { ["user"]=> string(3) "app" ["password"]=> string(14) "⟦«A14»⟧" }
py-repr Settings(host='db', secret_key='⟦«A40»⟧', debug=True)
otpauth otpauth://totp/Acme:bob@example.net?secret=⟦«s32»⟧&issuer=Acme
totp-prose the authenticator seed for the shared account is ⟦«s16»2«s15»⟧
seed-phrase wallet seed phrase: ⟦«bip»⟧
eth-key const wallet = new ethers.Wallet("0x⟦«h64»⟧", provider)
hardhat accounts: [`0x⟦«h64»⟧`],
"""

SAID = """
chat-1 the wifi at the cabin is Attic, password ⟦«pw»⟧
chat-2 ok I changed it, new password is ⟦«pw»⟧ - tell nobody
chat-3 can you log in for me? user bob pw ⟦«A12»⟧7
chat-4 here are the creds: bob / ⟦«A12»⟧7
chat-5 my github token is ⟦«A40»⟧, store it please
chat-6 use this api key for now ⟦«A32»⟧
chat-7 passphrase: ⟦«word»-«word»-«word»-«n»⟧
chat-8 The staging admin password got reset to "⟦«pw»⟧" this morning.
chat-9 root password on «ip» = ⟦«A12»⟧7
chat-10 secret key for the payment sandbox: ⟦«h40»⟧
chat-11 I logged in as ops@example.net with ⟦«A12»⟧7 as the password
chat-12 FYI the vpn pre-shared key is ⟦«A24»⟧
ticket-1 Username: bob\\nPassword: ⟦«pw»⟧\\nURL: https://portal.example.net
ticket-2 Steps: 1) open the portal 2) sign in with test@example.net / ⟦«A12»⟧7 3) see the error
ticket-3 Customer sent their API secret in clear: ⟦«A40»⟧. Needs rotation.
ticket-4 **Token:** `⟦«A40»⟧`
ticket-5 - API token ⟦«h40»⟧ (read only)
ticket-6 Access key «u20» and secret ⟦«B40»⟧ were in the bucket policy
memory-1 User's preferred database password for local work is ⟦«pw»⟧.
memory-2 Deploy key passphrase = ⟦«A16»⟧
memory-3 For CI, export the token ⟦«A40»⟧ before running make release.
memory-4 Remembered: Jira API token ⟦«A24»⟧ belongs to the bot account.
german das neue Passwort lautet ⟦«A12»⟧7
french le mot de passe du serveur est ⟦«A12»⟧7
spanish la clave del wifi es ⟦«A12»⟧7
italian la password del router è ⟦«A12»⟧7
portuguese a senha nova é ⟦«A12»⟧7
dutch het wachtwoord is ⟦«A12»⟧7
polish hasło: ⟦«A12»⟧7
recovery-codes Your recovery codes: ⟦«h5»7-«h5»⟧
"""

CLEAN = r"""
git-log commit «h40» (HEAD -> main, tag: v2.«n»)
git-blame ^«h7» (bob 2024-11-02 10:12:01 +0100 41) return token
git-diff index «h7»..«h7» 100644
pr-link see https://git.example.net/acme/site/commit/«h40»
docker-pull Digest: sha256:«h64»
docker-ps «h12»   acme/api:1.9   "uvicorn app"   3 hours ago
k8s-pod pod/token-service-«h10»-«l5» 1/1 Running 0 3d
k8s-ref valueFrom: { secretKeyRef: { name: shop-db, key: password } }
k8s-sa serviceAccountName: secret-reader
lockfile integrity sha512-«E64»
yarn-berry checksum: 10/«h64»
go-sum golang.org/x/crypto v0.21.0 h1:«E32»
pip-hash --hash=sha256:«h64» \\
cargo checksum = "«h64»"
nix sha256 = "sha256-«E32»";
apt SHA256: «h64»
sri <script src="/a.js" integrity="sha384-«E48»" crossorigin></script>
etag etag: W/"«h40»"
trace traceparent: 00-«h32»-«h16»-01
span {"trace_id": "«h32»", "span_id": "«h16»", "name": "auth.verify_token"}
request-id x-request-id: «uuid»
uuid-row | «uuid» | bob | active |
order order «uuid» shipped with tracking 1Z«u16»
objectid {"_id": {"$oid": "«h24»"}, "name": "Ada"}
arn arn:aws:secretsmanager:eu-west-1:123456789012:secret:shop/db-«A6»
arn-kms arn:aws:kms:eu-west-1:123456789012:key/«uuid»
resource /subscriptions/«uuid»/resourceGroups/rg/providers/Microsoft.KeyVault/vaults/kv1
ami ami-0«h16» in eu-west-1
client-id client_id=«d12»-«l32».apps.googleusercontent.com
tenant tenant_id: «uuid»
app-id APP_ID=«d6»
public-key ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI«B43» bob@laptop
public-pem -----BEGIN PUBLIC KEY-----\n«B64»\n«B64»\n-----END PUBLIC KEY-----
certificate -----BEGIN CERTIFICATE-----\n«B64»\n«B64»\n-----END CERTIFICATE-----
wg-public PublicKey = «E32»
fingerprint SHA256:«B43» bob@laptop (ED25519)
gpg-line pub   rsa4096/«H16» 2021-05-03 [SC]
stripe-public STRIPE_PUBLISHABLE_KEY=pk_test_«A24»
recaptcha-site data-sitekey="6L«b38»"
analytics gtag('config', 'G-«u10»');
eth-address sent 0.4 ETH to 0x«h40»
tx-hash https://etherscan.io/tx/0x«h64»
data-url background: url(data:image/png;base64,iVBORw0KGgo«B160»)
svg-path <path d="M12.3 4.5l-3.2 7.1c-1.1 2.2-4.4 0-3.3-2.2z"/>
youtube https://www.youtube.com/watch?v=«A11»
gdoc https://docs.google.com/spreadsheets/d/1«A43»/edit#gid=0
maps-link https://maps.app.goo.gl/«A17»
utm https://shop.example.net/?utm_source=mail&utm_campaign=spring&fbclid=IwAR«b50»
s3-path s3://acme-lake/raw/dt=2025-01-01/part-«d5»-«uuid».c000.parquet
chunk static/js/main.«h8».chunk.js
placeholder-env API_KEY=changeme
placeholder-angle Authorization: Bearer <access-token>
placeholder-stars password: ********
placeholder-your export OPENAI_API_KEY="your-api-key-here"
placeholder-x AWS_SECRET_ACCESS_KEY=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
placeholder-dots sk-proj-...
placeholder-brace password={{ lookup('env', 'DB_PASSWORD') }}
placeholder-gha token: ${{ secrets.DEPLOY_TOKEN }}
placeholder-tf password = var.db_password
placeholder-ssm password: {{resolve:ssm-secure:/shop/db:1}}
placeholder-shell PGPASSWORD="$DB_PASS" psql -h db
placeholder-op DB_PASSWORD=op://shop/db/password
placeholder-url postgres://user:pass@localhost:5432/db
placeholder-none SECRET_KEY=
placeholder-doc curl -u <user>:<token> https://api.example.net
placeholder-redacted token=[REDACTED]
placeholder-todo api_key: TODO
code-getenv token = os.environ["TOKEN"]
code-param def login(user: str, password: str) -> Session:
code-call session = client.login(user, password=read_password())
code-hash user.password_hash = bcrypt.hashpw(password.encode(), bcrypt.gensalt())
code-js const { token, refreshToken } = await auth.refresh(req.cookies.sid);
code-go token, err := parser.ParseUnverified(raw, &claims)
code-java String password = request.getParameter("password");
code-cs var secret = await keyVault.GetSecretAsync("db-password");
code-rust let token: Option<String> = headers.get("x-api-key").map(str::to_owned);
code-sql SELECT id, password_hash, api_key FROM accounts WHERE token = $1
code-ddl ALTER TABLE sessions ADD COLUMN refresh_token varchar(255)
code-schema "password": { "type": "string", "format": "password", "minLength": 12 }
code-html <input type="password" name="password" autocomplete="current-password">
code-css .password-field::placeholder { color: #8a8f98; }
code-proto string access_token = 3;
code-graphql mutation Login($email: String!, $password: String!) { login(email: $email) { token } }
code-enum TOKEN_EXPIRED = "token_expired"
code-i18n "password.too_short": "Password must be at least 12 characters"
code-test expect(screen.getByLabelText("Password")).toBeVisible();
code-lexer case TokenKind::Identifier => self.next_token(),
code-keys for key, value in sorted(config.items()):
code-sort rows.sort(key=lambda row: row["created_at"])
code-map map.put("primaryKey", column.getName());
code-min !function(e,t){var n=t.token,r=e.key;return n&&r?n+r:void 0}(window,document);
code-flag parser.add_argument("--token", help="token to use", default=None)
code-regex TOKEN_RE = re.compile(r"[A-Za-z0-9_-]{20,}")
conf-limit max_tokens: 4096
conf-ttl access_token_ttl_seconds: 900
conf-path ssl_certificate_key /etc/nginx/tls/site.key;
conf-file DB_PASSWORD_FILE=/run/secrets/db_password
conf-auth auth_method: scram-sha-256
conf-bool require_password: true
conf-url token_endpoint: https://sso.example.net/oauth2/token
conf-name secretName: shop-tls
conf-alg jwt_algorithm: RS256
conf-keyid signing_key_id: 2024-11-main
log-auth sshd[«n»]: Failed password for invalid user admin from «ip» port «n» ssh2
log-key sshd[«n»]: Accepted publickey for bob from «ip» port «n» ssh2: ED25519 SHA256:«B43»
log-token INFO token refreshed for user=bob in «n»ms
log-denied WARN invalid api key supplied by «ip»
log-sum usage: prompt_tokens=«n» completion_tokens=«n»
log-uid session opened for user root by (uid=0)
prose-1 The password policy asks for twelve characters, one digit and no birthdays.
prose-2 Please never send passwords or tokens by mail; use the vault.
prose-3 She keeps the spare key under the blue pot.
prose-4 The secret of the sauce is two anchovies and patience.
prose-5 Our token budget per turn is «n» and we used about half.
prose-6 He asked whether the API key rotation could wait until Thursday.
prose-7 I forgot the password again, so I clicked the reset link.
prose-8 The login page shows "wrong password" even when it is right.
prose-9 Secret ballots, open counts: that was the key demand of the union.
prose-10 The private key stays on the hardware token in the safe.
prose-11 Bearer bonds were common until the eighties.
prose-12 The passport office opens at 9:30; bring two photos.
prose-13 My favourite keyboard has brown switches and a German layout.
prose-14 Use the key combination Ctrl+Shift+P to open the palette.
prose-15 Token ring, Ethernet, Wi-Fi: the history of office networks.
prose-16 The credentials committee meets on 12 March in room B204.
prose-17 Ada's phone is +44 20 7946 «d4», her office is 3.14b.
prose-18 Das Passwort muss alle 90 Tage geändert werden.
prose-19 Le mot de passe doit contenir au moins douze caractères.
prose-20 La contraseña se guarda en el gestor de contraseñas.
prose-21 The access token is valid for 15 minutes, the refresh token for 30 days.
prose-22 password: see the team vault, entry "shop-db"
prose-23 The password is the same as last year, ask Ana.
prose-24 We authenticate with OAuth2 and PKCE; no client secret is needed in the app.
prose-25 API keys look like sk-… and are shown once.
prose-26 Backup codes are printed on paper and kept in the safe.
prose-27 The seed phrase has twelve words; write it down, never photograph it.
prose-28 flight LH«d4», booking reference for four, gate B22
prose-29 IBAN and card numbers are masked in the export (****«d4»).
prose-30 Version 3.«n».1-rc2 fixes the session cookie on Safari 17.
version-str app-2025.«n».0+build.«n»
model-name claude-3-7-sonnet-20250219 and gpt-4.1-mini-2025-04-14
file-name AuthenticationTokenProviderFactoryBeanTest.java
test-name test_refresh_token_is_rotated_and_old_token_revoked
css-token --color-token-primary-500: #3366ff;
branch feature/SHOP-«n»-rotate-signing-keys
mac device 3c:22:fb:«h2»:«h2»:«h2» joined
ipv6 listening on [2001:db8::«h4»:«h4»]:8443
isbn ISBN 978-1-4920-5«d4»-«d1»
coords 45.764«d3», 4.835«d3»
"""

BIP = [
    "alpha",
    "amused",
    "basket",
    "canyon",
    "deposit",
    "eager",
    "fiscal",
    "gentle",
    "hazard",
    "income",
    "jungle",
    "kitten",
    "ladder",
    "mammal",
    "nephew",
    "orphan",
    "pistol",
    "quantum",
    "remind",
    "salad",
    "tackle",
    "uncover",
    "velvet",
    "wisdom",
]


def spelled(r: Random, template: str) -> str:
    """`template` with what the second corpus cannot draw: recovery words."""
    return re.sub("«bip»", lambda _: " ".join(r.sample(BIP, 12)), template)


def third_corpus(seed: int = 20250302, each: int = 4) -> Iterator[Line]:
    """Secrets of every kind in varied surroundings, then clean lines."""
    r = Random(seed)
    for kind, form in lines_of(TOKENS):
        for template in r.sample(BARE, each):
            inner = form if "⟦" in form else f"⟦{form}⟧"
            yield marked(r, f"token/{kind}", template.format(inner))
    for name, form in lines_of(NAMES):
        for template in r.sample(WRITTEN, each + 2):
            value = fill(r, form)
            yield Line(template.format(n=name, v=value), value, f"named/{name}")
    for kind, template in [*lines_of(WHOLE), *lines_of(SAID)]:
        for _ in range(each):
            yield marked(r, f"whole/{kind}", unescaped(spelled(r, template)))
    for kind, template in lines_of(CLEAN):
        for _ in range(each * 4):
            yield Line(fill(r, unescaped(template)), None, f"clean/{kind}")
