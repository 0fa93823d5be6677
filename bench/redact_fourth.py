"""A fourth corpus for the redactor: shapes rather than formats, each plain and inside a string of JSON.

The shapes come from two larger corpora that were written without sight of the rules (`docs/benchmarks-details.md`).
Here every shape occurs once, with other services, languages and wording. Placeholders are those of the rules' own examples
(`sample.py`), hollow brackets mark what must not survive, an arrow down and left ends a line. The same seed gives the
same corpus.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from bench.redact_corpus import Line
from reverie.redact.rules.sample import fill

SHAPES = r"""
- OpenWeather API key rotated 2024-01-02, now `⟦⟨h32⟩⟧`
Stripe webhook secret changed yesterday (ticket 221): ⟦⟨w32⟩⟧
rotated the deploy token on 2024-03-03 -> ⟦⟨h40⟩⟧
old password revoked 12 Mar, new one: ⟦Walnut47.Tundra2⟧
API token (expires 2026-01-01): ⟦⟨h40⟩⟧
Session key as of 2024-05-01 is ⟦⟨w32⟩⟧
The API key for billing was rotated on Monday; the new value is ⟦⟨h32⟩⟧
client := twilio.NewRestClient("⟦⟨h32⟩⟧") // auth token
api = Client("⟦⟨h32⟩⟧")  # api key
$client = new Client('⟦⟨a32⟩⟧'); // API key
connect("db.example.org", "⟦⟨w14⟩⟧")  # host, password
let c = Client::new("⟦⟨h40⟩⟧"); // token
Mailgun.new("⟦⟨h32⟩⟧") # secret key
new DirectoryEntry("LDAP://dc1", "CORP\\svc", "⟦⟨w5⟩%⟨w7⟩22⟧", AuthenticationTypes.Secure)
new NetworkCredential(user, "⟦⟨w5⟩%⟨w7⟩22⟧")
PrincipalContext(ContextType.Domain, "corp.local", "svc_ad", "⟦⟨w5⟩%⟨w7⟩22⟧")
WiFi.begin("lab", "⟦1⟨w10⟩.⟨w8⟩7⟧");
WiFi.softAP("esp", "⟦mud-Kettle44⟧");
client.connect("dev1", "mqttuser", "⟦Zebra.Maple77⟧")
ldap.simple_bind_s("cn=admin,dc=x", "⟦Zebra.Maple77⟧")
conn = ldap3.Connection(server, "cn=admin", "⟦Zebra.Maple77⟧")
ftp.login(user="bob", passwd="⟦Zebra.Maple77⟧")
paramiko.connect(host, username="bob", password="⟦Zebra.Maple77⟧")
InitialLdapContext env.put(Context.SECURITY_CREDENTIALS, "⟦Zebra.Maple77⟧");
PasswordCredential("bob", "⟦Zebra.Maple77⟧")
smtp.Auth("bob@x.org", "⟦Zebra.Maple77⟧")
smtp.PlainAuth("", "bob@x.org", "⟦Zebra.Maple77⟧", "smtp.x.org")
mail.login('bob@x.org', '⟦Zebra.Maple77⟧')
sftp.auth_password("bob", "⟦Zebra.Maple77⟧")
ssh2_auth_password($c, 'bob', '⟦Zebra.Maple77⟧');
new UserPasswordCredential("bob", "⟦Zebra.Maple77⟧")
curl_setopt($ch, CURLOPT_USERPWD, "bob:⟦Zebra.Maple77⟧");
imap_open("{mail.x.org:993}", "bob", "⟦Zebra.Maple77⟧");
Backup codes (each works once):⏎⟦1a1136a289⟧, ⟦9ca8204108⟧
Here are your recovery codes. Keep them safe:⏎⏎⟦4f2a-91bc⟧⏎⟦aa10-77fe⟧
GitHub recovery codes⏎=====⏎⟦1a113-6a289⟧⏎⟦9ca82-04108⟧
2FA backup codes for bob@x.org: ⟦1234 5678⟧, ⟦9876 5432⟧
Recovery codes for the Okta admin account -> ⟦KX7F-99QP⟧ ⟦ZZ12-AB3D⟧
one-time codes⏎  * ⟦48291734⟧⏎  * ⟦99128374⟧
Google backup codes (unused): ⟦1234 5678⟧ ⟦3456 7890⟧
the printed backup codes read ⟦77aa-12bc-98de⟧
restic passphrase: "⟦castle marmalade shadow badger⟧"
RESTIC_PASSWORD='⟦castle marmalade shadow badger⟧'
luks passphrase is ⟦castle marmalade shadow badger⟧
export GPG_PASSPHRASE="⟦phoenix purple silver gravel castle⟧"
master password is 'pickle-autumn-guitar-soccer-tiger'
1Password master password: ⟦correct-battery-9-staple⟧
password = ⟦Tundra69.Juniper0⟧
spring.mail.password=⟦Walnut.Tundra.2024⟧
rabbitmq.password: ⟦Walnut425.Puffin3⟧
"password": "⟦Barley.Ember77⟧"
passwd = String::from("⟦penguin.guitar.6572⟧");
DB_PASS=⟦maple.winter.horse77⟧
bindpw ⟦6⟨w3⟩-2⟨w5⟩.⟨w4⟩72⟧
rootbinddn cn=x⏎bindpw ⟦Maple.Horse8⟧
ldap_bind_pw: ⟦Maple.Horse8⟧
BindPassword ⟦Maple.Horse8⟧
olcRootPW: ⟦Maple.Horse8⟧
userPassword: ⟦Maple.Horse8⟧
java.naming.security.credentials=⟦Clover891-Cobalt9⟧
Ldap password    ----   ⟦Barley69%Ember0⟧
admin password   =>  ⟦Barley69.Ember0⟧
SMTP password ........ ⟦Barley69%Ember0⟧
db.internal:5432:app:svc:⟦⟨w26⟩7⟧
put this in ~/.pgpass: db.internal:5432:app:svc:⟦Barley69Ember0⟧
echo "db.internal:5432:*:svc:⟦Barley69Ember0⟧" >> ~/.pgpass
{"content":"*:*:*:postgres:⟦⟨w26⟩7⟧"}
net use Z: \\fs01\share /user:CORP\ci ⟦⟨w19⟩7⟧
net use \\fs01\share ⟦⟨w19⟩7⟧ /user:CORP\ci
net use * \\fs01\share /USER:bob ⟦Barley69Ember0⟧ /persistent:yes
cmdkey /add:fs01 /user:CORP\ci /pass:⟦⟨w19⟩7⟧
psexec \\host -u CORP\bob -p ⟦Barley69Ember0⟧ cmd
vault operator unseal ⟦⟨b44⟩⟧
vault operator unseal -address=https://v:8200 ⟦⟨b44⟩⟧
Unseal Key 1: ⟦⟨b44⟩⟧
Recovery Key 3: ⟦⟨b44⟩⟧
vault login ⟦s.⟨w24⟩⟧
vault write auth/approle/login role_id=⟨h8⟩-⟨h4⟩-⟨h4⟩-⟨h4⟩-⟨h12⟩ secret_id=⟦⟨h8⟩-⟨h4⟩-⟨h4⟩-⟨h4⟩-⟨h12⟩⟧
secret_id: ⟦⟨h8⟩-⟨h4⟩-⟨h4⟩-⟨h4⟩-⟨h12⟩⟧
VAULT_SECRET_ID=⟦⟨h8⟩-⟨h4⟩-⟨h4⟩-⟨h4⟩-⟨h12⟩⟧
wg set wg0 private-key <(echo ⟦⟨b43⟩=⟧)
wg set wg0 peer ABC preshared-key <(echo ⟦⟨b43⟩=⟧)
PresharedKey = ⟦⟨b43⟩=⟧
10.1.1.1 10.2.2.2 : PSK "⟦⟨b43⟩=⟧"
%any : PSK "⟦Barley69Ember0⟧"
: XAUTH bob "⟦Barley69Ember0⟧"
bob : EAP "⟦Barley69Ember0⟧"
: RSA key.pem "⟦Barley69Ember0⟧"
VPN_IPSEC_PSK=⟦⟨w14⟩7⟧
psk=⟦Barley69Ember0⟧
wpa_psk=⟦Barley69Ember0⟧
PSK for the office tunnel: ⟦Barley69Ember0⟧
ethers.Wallet.fromMnemonic("⟦hand midnight wire canvas cement robot outdoor design wage dwarf latin ozone⟧")
Wallet backup (12 words): ⟦hand midnight wire canvas cement robot outdoor design wage dwarf latin ozone⟧
Account.from_mnemonic('⟦hand midnight wire canvas cement robot outdoor design wage dwarf latin ozone⟧')
seed phrase (metamask)⏎⟦hand midnight wire canvas cement robot outdoor design wage dwarf latin ozone⟧
my 12 words are ⟦hand midnight wire canvas cement robot outdoor design wage dwarf latin ozone⟧
MNEMONIC="⟦hand midnight wire canvas cement robot outdoor design wage dwarf latin ozone⟧"
mnemonicToSeedSync("⟦hand midnight wire canvas cement robot outdoor design wage dwarf latin ozone⟧")
HDWalletProvider("⟦hand midnight wire canvas cement robot outdoor design wage dwarf latin ozone⟧", url)
const phrase = "⟦hand midnight wire canvas cement robot outdoor design wage dwarf latin ozone⟧";
secret recovery phrase below⏎⏎⟦hand midnight wire canvas cement robot outdoor design wage dwarf latin ozone⟧
cat ~/.config/solana/id.json⏎[⟦155,4,82,51,111,212,109,101,190,211,202,6,185,0,26,46,209,128,23,217,95,154,133,198,198,66,252,97,133,20,90,153,161,11,205,21,198,182,158,22,171,87,63,170,85,54,126,34,179,4,214,222,209,121,214,3,58,89,110,104,235,1,218,219⟧]
echo '[⟦155,4,82,51,111,212,109,101,190,211,202,6,185,0,26,46,209,128,23,217,95,154,133,198,198,66,252,97,133,20,90,153,161,11,205,21,198,182,158,22,171,87,63,170,85,54,126,34,179,4,214,222,209,121,214,3,58,89,110,104,235,1,218,219⟧]' > id.json
Keypair.fromSecretKey(Uint8Array.from([⟦155, 4, 82, 51, 111, 212, 109, 101, 190, 211, 202, 6, 185, 0, 26, 46, 209, 128, 23, 217, 95, 154, 133, 198, 198, 66, 252, 97, 133, 20, 90, 153, 161, 11, 205, 21, 198, 182, 158, 22, 171, 87, 63, 170, 85, 54, 126, 34, 179, 4, 214, 222, 209, 121, 214, 3, 58, 89, 110, 104, 235, 1, 218, 219⟧]))
waka_⟦⟨h8⟩-⟨h4⟩-⟨h4⟩-⟨h4⟩-⟨h12⟩⟧
dnkey-⟦⟨A26⟩-⟨A52⟩⟧
hawk.⟦⟨w20⟩.⟨w20⟩⟧
p8e-⟦⟨h32⟩⟧
APP_USR-⟦⟨d16⟩-⟨d6⟩-⟨h32⟩-⟨d9⟩⟧
access_token$production$⟦⟨a16⟩$⟨h32⟩⟧
x="github_pat_⟦⟨w22⟩_⟨w59⟩⟧"
github_pat="github_pat_⟦⟨w22⟩_⟨w59⟩⟧"
npm_token = "npm_⟦⟨w36⟩⟧"
glpat = "glpat-⟦⟨w20⟩⟧"
pscale_oauth = 'pscale_oauth_⟦⟨u43⟩⟧'
00D⟦⟨w12⟩!AQ⟨w40⟩.⟨w20⟩-⟨w20⟩⟧
PLAID=access-production-⟦⟨h8⟩-⟨h4⟩-⟨h4⟩-⟨h4⟩-⟨h12⟩⟧
- PLAID_ACCESS_TOKEN=access-production-⟦⟨h8⟩-⟨h4⟩-⟨h4⟩-⟨h4⟩-⟨h12⟩⟧
rclone config create box webdav url https://x user pedro pass ⟦⟨w21⟩8⟧
gpg --batch --passphrase ⟦Rqz@r7.⟨w4⟩6_W⟧ --output x y
tool --password ⟦Maple.Horse8⟧ run
nmcli dev wifi connect "acme" password "⟦m34d0w_Harbor99⟧"
nmcli dev wifi connect \"acme\" password \"⟦m34d0w_Harbor99⟧\"
tacacs-server key 0 ⟦⟨w26⟩7⟧
{"content":" radius-server key 7 ⟦⟨w26⟩7⟧"}
Wi-Fi password for the Kraków office: ⟦SaturnSilver30!⟧
Le mot de passe du café est ⟦SaturnSilver30!⟧
Gmail app password for lucy@b.net: ⟦zgbxkplekbnjkazs⟧
MAIL_PASSWORD=⟦ytrl dadu aiva jxon⟧
SMTP_PASS="⟦ytrl dadu aiva jxon⟧"
app password (Outlook): ⟦zgbxkplekbnjkazs⟧
BUNDLE_ENTERPRISE__CONTRIBSYS__COM=⟦9aff0cc7:43dc70ad⟧
BUNDLE_GEMS__EXAMPLE__COM: ⟦bob:9aff0cc743dc70ad⟧
use svc_orders / ⟦n=⟨w5⟩!⟨w3⟩++⟨w3⟩0⟧ to get into the console
azureDevopsPat := "⟦⟨a52⟩⟧"
ADO_PAT=⟦⟨a52⟩⟧
my pat: ⟦⟨a52⟩⟧
machine x.org login bob password ⟦Maple.Horse8⟧
default login bob⏎ password ⟦Maple.Horse8⟧
user bob with password "⟦Maple.Horse8⟧"
ALTER USER bob WITH PASSWORD '⟦Maple.Horse8⟧';
mysql -u bob -p⟦Maple.Horse8⟧ shop
sshpass -p ⟦Maple.Horse8⟧ ssh x
ConvertTo-SecureString -String '⟦Indigo356.Walnut0⟧' -AsPlainText
ansible_ssh_pass=⟦Maple.Horse8⟧
ansible_become_password: ⟦Maple.Horse8⟧
<password>⟦Maple.Horse8⟧</password>
https://bob:⟦Maple.Horse8⟧@git.example.org/x.git
proxy = http://bob:⟦Maple.Horse8⟧@proxy:3128
Enter password: ⟦Maple.Horse8⟧
Login: bob  Password: ⟦Maple.Horse8⟧
bob's password is ⟦Maple.Horse8⟧
PASSWORD ⇒ ⟦Maple.Horse8⟧
| service | user | password |⏎|---|---|---|⏎| grafana | admin | ⟦Maple!Horse8x⟧ |
user,password⏎bob,⟦Maple!Horse8x⟧
sudo password on web-3 → ⟦Maple!Horse8x⟧
creds for jenkins → admin:⟦Maple!Horse8x⟧
creds: admin@example.org / ⟦Maple!Horse8x⟧
cloudflare global key, account ops@x.org: ⟦⟨h37⟩⟧
JWT signing secret = ⟦⟨b43⟩=⟧
ENCRYPTION_KEY=base64:⟦⟨b43⟩=⟧
APP_KEY=base64:⟦⟨b43⟩=⟧
Fernet key: ⟦⟨u43⟩=⟧
X-Vault-Token: ⟦s.⟨w24⟩⟧
curl -H "X-Auth-Token: ⟦⟨h32⟩⟧" x
curl -H 'apikey: ⟦⟨h32⟩⟧' x
docker login -u bob -p ⟦Maple.Horse8⟧ r.x.org
export PGPASSWORD='⟦Maple.Horse8⟧'
Set-ADAccountPassword -NewPassword (ConvertTo-SecureString "⟦Maple.Horse8⟧" -AsPlainText -Force)
$env:API_KEY = "⟦⟨h32⟩⟧"
os.environ["API_KEY"] = "⟦⟨h32⟩⟧"
ENV["API_KEY"] ||= "⟦⟨h32⟩⟧"
System.setProperty("javax.net.ssl.keyStorePassword", "⟦Maple.Horse8⟧");
System.setProperty("API_TOKEN", "⟦⟨h32⟩⟧")
props.put("mail.smtp.password", "⟦Maple.Horse8⟧");
conf.set("fs.s3a.secret.key", "⟦⟨b40⟩⟧")
session.setPassword("⟦Maple.Horse8⟧");
config.setPassword("⟦Maple.Horse8⟧")
ds.setApiKey("⟦⟨h32⟩⟧")
.password("⟦Maple.Horse8⟧")
.withApiKey("⟦⟨h32⟩⟧")
builder.apiKey("⟦⟨h32⟩⟧")
.header("X-Api-Key", "⟦⟨h32⟩⟧")
password => "⟦Maple.Horse8⟧"
:password => '⟦Maple.Horse8⟧'
(setq api-token "⟦⟨h40⟩⟧")
password "⟦Maple.Horse8⟧"
[smtp.x.org]:587 bob@x.org:⟦Maple!Horse8x⟧
bob:⟦Maple!Horse8x⟧@tcp(10.0.0.1:3306)/db
amqp://svc:⟦Maple!Horse8x⟧@mq/v
Data Source=db;User ID=sa;Pwd=⟦Maple.Horse8⟧;
AccountKey=⟦⟨b86⟩==⟧;
kubectl create secret generic x --from-literal=key=⟦⟨h32⟩⟧
helm install x --set auth.password=⟦Maple.Horse8⟧
terraform apply -var="db_password=⟦Maple.Horse8⟧"
TF_VAR_db_password=⟦Maple.Horse8⟧
htpasswd -bc f bob ⟦Maple.Horse8⟧
openssl enc -aes-256-cbc -k ⟦Maple.Horse8⟧ -in x
openssl pkcs12 -export -password pass:⟦Maple.Horse8⟧
7z a -p⟦Maple.Horse8⟧ x.7z d
zip -P ⟦Maple.Horse8⟧ x.zip d
mount -t cifs //fs/s /m -o username=bob,password=⟦Maple.Horse8⟧
username=bob⏎password=⟦Maple.Horse8⟧⏎domain=CORP
ldapsearch -D cn=x -w ⟦Maple.Horse8⟧ -b dc=x
kinit bob <<< "⟦Maple.Horse8⟧"
echo "⟦Maple.Horse8⟧" | sudo -S ls
echo '⟦Maple.Horse8⟧' | passwd --stdin bob
printf '⟦Maple.Horse8⟧\n⟦Maple.Horse8⟧\n' | passwd bob
echo -n "bob:⟦Maple.Horse8⟧" | base64
expect "assword:" { send "⟦Maple.Horse8⟧\r" }
"""

CLEAN = r"""
certificate-authority-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk⟨b120⟩
client-certificate-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk⟨b120⟩
ca_bundle_token_auth: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk⟨b120⟩
tls_auth_cert = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk⟨b120⟩"
signing_public_key: LS0tLS1CRUdJTiBQVUJMSUMgS0VZLS0tLS0K⟨b120⟩
SLACK_TOKEN=xoxb-your-token-here
SLACK_TOKEN=xoxp-replace-me-with-real-token
GITHUB_TOKEN=ghp_your_personal_access_token_goes_here1
STRIPE=sk_test_your_stripe_key_here
OPENAI_API_KEY=sk-your-openai-key-here
ANTHROPIC_API_KEY=sk-ant-your-key-goes-here-please
HF_TOKEN=hf_yourtokenhereyourtokenhereyourtoken
glpat-YOUR_TOKEN_HERE_PLEASE
postgres://<user>:<password>@db.example.org:5432/app
mongodb+srv://<username>:<password>@marble.mongodb.net/accounts
https://<token>@github.com/o/r.git
amqp://[user]:[password]@host/vhost
mysql://{user}:{password}@{host}/db
redis://:%s@%s:%d/0
f"postgres://{user}:{password}@{host}:5432/{db}"
password: !vault-ref secret/catalog#password
password: !vault secret/catalog
password: !Ref DbPassword
password: !GetAtt Db.Password
password: !Sub "${DbPassword}"
password: !env DB_PASSWORD
password: !secret wifi_password
api_key: !env_var API_KEY_2
password: !include secrets.yaml
password: !!str null
SECRET_MANAGER_REGION=us-east-1
SECRETS_REGION: eu-central-1
TOKEN_ISSUER=https://auth.example.org
TOKEN_BUCKET_NAME=my-bucket-2024
SECRET_NAME=prod/db/v2
API_KEY_HEADER=X-Api-Key-2
PASSWORD_RESET_URL=https://x.org/reset2
TOKEN_AUDIENCE=api-v2
KEY_VAULT_NAME=kv-prod-weu-001
AUTH_HOST=auth-7.internal
keyVaultToStoreSecrets: monsoon-qat-552409041348
secretsBackend: vault-prod-2
credentialsId: 'jenkins-github-2024'
secretKeyRef: db-creds-v2
secretProviderClass: azure-kv-9
tokenSecretName: grafana-token-7x
vaultSecretPath: kv/data/prod2
auth_backend_mount: approle-2
token_service_account: svc-runner-01
"//localhost:3559/:_password = "+new Buffer(pepper).toString("base64")
password = "prefix-" + base64(x1)
token = "Bearer " + get_token(user1)
github_private_key = keyring.get_password('openai', user)
x = keyring.get_password("svc2", "bob1")
secret = client.get_secret('prod/db2')
pw = getpass.getpass('Password for db1: ')
token = vault.read("secret/data/app2")["data"]
db_password = ssm.get_parameter(Name='/prod/db2/password')
password = input("Enter password: ")
password='$DB_PASSWORD2'
password="$1"
--password '$VAR1'
token = f"{prefix}{suffix1}"
password = f"{user}-{uid}"
token="${{ steps.x.outputs.token1 }}"
this.addGarnetPassword = "#add-password";
const passwordField = "#login-password2";
passwordInput: '.form .password-2'
passwordSelector = "input[name=password]"
password_xpath = "//input[@id='pw1']"
txtPassword = driver.find_element("id2")
Heroku password expired on 2025-09-09T18:18:27Z
password last changed on 2025-09-09
token issued at 2025-09-09T18:18:27Z by auth2
password changed to comply with ISO27001
API key created 2024-01-02, last used 2024-05-06
the token expires 2025-01-01T00:00:00Z
parser.add_argument('--github-password', required=True, help='Slack token')
parser.add_argument("--token", default=None, help="API token2")
@click.option('--password', prompt=True, hide_input=True)
flag.String("password", "", "password for db1")
x-amz-request-id: YX17IA5Q5AZGFTX2
x-amz-id-2: ⟨b76⟩=
etag: "⟨h32⟩"
password: must contain 8 chars, 1 digit
password policy: min12 upper lower
"password": {"type": "string", "minLength": 8}
password VARCHAR(255) NOT NULL
token VARCHAR(64) DEFAULT NULL
ALTER TABLE users ADD COLUMN api_token2 TEXT
SELECT password FROM users WHERE id = 12345
password = models.CharField(max_length=128)
password_hash = bcrypt.hashpw(pw, salt1)
secret = secrets.token_urlsafe(32)
token = uuid.uuid4().hex
API_KEY = os.getenv("API_KEY_2")
const token = await getToken({ id: 12 })
token := os.Getenv("TOKEN1")
password: "{{ vault_db_password2 }}"
password: "{{ lookup('env','PW1') }}"
secret: projects/p1/secrets/db/versions/3
secret: op://vault1/item2/password
password: ENC(abc)
password: ********
password: changeme
Password: [hidden]
token: <paste token>
api_key=insert-your-api-key-here
api_key = "REPLACE_ME_123"
apiKey: "your_api_key_1"
key = "user:12345:profile"
cache_key = f"tok:{uid}"
public_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI⟨b43⟩"
ssh-rsa AAAAB3NzaC1yc2E⟨b100⟩ bob@host
commit ⟨h40⟩
sha512-⟨b86⟩==
token count: 12345
prompt_tokens=8192 completion_tokens=1024
"max_tokens": 16384
secret santa is on 2024-12-06
the password is the name of his first dog
unlock code for spring break: see wiki
authentication succeeded for user svc_2
recovery codes were regenerated on 2024-03-03
backup codes: see 1Password vault item 2231
wallet backup finished in 24 words per minute
PSK is negotiated by IKEv2
vault operator unseal
vault operator unseal -migrate
net use Z: \\fs01\share /persistent:yes
10.0.0.1:5432:app:svc:*
main.py:120:5: E501 line too long
src/a.py:12:34:error:unused1
12:30:45:10:11abc
client = Client("eu-west-1") # token refreshed in background
x = load("⟨h40⟩")  # commit of the token fix
assert digest("⟨h64⟩")  # no secret in here
id = "⟨h8⟩-⟨h4⟩-⟨h4⟩-⟨h4⟩-⟨h12⟩"  # request id
DirectoryEntry("LDAP://dc1", user, password)
new NetworkCredential(user, password)
WiFi.begin(ssid, password);
WiFi.begin("YOUR_SSID", "YOUR_PASSWORD");
ldap.bind("cn=admin", password)
fromMnemonic("your twelve word phrase goes here")
[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32]
MAIL_PASSWORD=from the vault
password is "the usual one"
passphrase "must be four words"
app password settings page
the passphrase is four random words
user-⟨h8⟩-⟨h4⟩-⟨h4⟩-⟨h4⟩-⟨h12⟩
session_⟨h8⟩-⟨h4⟩-⟨h4⟩-⟨h4⟩-⟨h12⟩
req-⟨h8⟩-⟨h4⟩-⟨h4⟩-⟨h4⟩-⟨h12⟩
task_⟨h8⟩-⟨h4⟩-⟨h4⟩-⟨h4⟩-⟨h12⟩
name: auth-service-7d9f8b6c5d-x2x9q
password = config.db.password2
password = settings.DATABASES.default
password = user.password.v2
token = request.headers.authorization
password: app.db.password
password_file = secrets.txt
password.txt
password.reset.v2
passwordEncoder.encode2
auth.token.v1
password.minLength = 12
password: user.credentials.password
key: foo.bar.baz2
message key errors.password.too_short
t('login.password.label2')
"password.placeholder": "Enter8"
secret_key = Rails.application.secrets.secret_key_base
token = ctx.state.jwt2
the login page moved to /auth/v2/login
login as root on web-12
log in with SSO-2
logged in as bob, 12 unread
password authentication failed for user "svc_2"
token refresh took 231ms
key rotation every 90d
FATAL: password authentication failed for user "app1"
AuthToken(user_id=42, scope="read:all2")
{"auth": {"type": "oauth2", "scope": "s3:read"}}
auth: oauth2
token_endpoint: /oauth2/token
Authorization: Bearer {token}
Authorization: Bearer ${API_TOKEN2}
Authorization: Basic base64(user:pass)
Signature: keyId="k1",algorithm="rsa-sha256"
"credential_type": "x509-2"
secret_version = 7f3a
salt rounds = 12
signature_version = s3v4
AWS_PROFILE=prod2 KEY_PAIR=deploy-2024
key_name = "deploy-key-2024"
ssh_key_name: bob-laptop-2023
EC2 key pair: my-keypair-01
license key file: /etc/lic2.key
partition key = user#12345
primary key (id, tenant2)
hotkey: Ctrl+Shift+F12
keyboard: us-intl-2
api: v2beta1
apiVersion: v1beta2
"""


def fourth_corpus(seed: int = 0, each: int = 3) -> Iterator[Line]:
    """Every shape `each` times, plain and in JSON; then the clean lines."""
    for number, template in enumerate(SHAPES.strip("\n").split("\n")):
        for i in range(each):
            text = fill(template.replace("⏎", "\n"), seed + i)
            secrets = re.findall("⟦(.*?)⟧", text)
            plain = re.sub("[⟦⟧]", "", text)
            for secret in secrets:
                yield Line(plain, secret, f"shape/{number + 1}")
                yield Line(wrapped(plain), json.dumps(secret, ensure_ascii=False)[1:-1], f"wrapped/{number + 1}")
    for number, template in enumerate(CLEAN.strip("\n").split("\n")):
        for i in range(each):
            plain = fill(template.replace("⏎", "\n"), seed + i)
            yield Line(plain, None, f"clean/{number + 1}")
            yield Line(wrapped(plain), None, f"clean-wrapped/{number + 1}")


def wrapped(text: str) -> str:
    """`text` as what a tool returned."""
    return json.dumps({"role": "tool", "content": f"ok\n{text}\ndone"}, ensure_ascii=False)
