"""Cloud providers and platforms."""

# ruff: noqa: E501 (a pattern is easier to read in one piece)

from __future__ import annotations

from reverie.redact.entropy import looks_random
from reverie.redact.patterns.rule import LEFT, UUID, Rule, token


def _mixed(text: str) -> bool:
    """Letters of both cases and a digit: what forty random characters of base64 always have."""
    return any(c.islower() for c in text) and any(c.isupper() for c in text) and any(c.isdigit() for c in text)


RULES = (
    Rule(
        "aws-access-key",
        token(r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b"),
        examples=("AKIA⟨k16⟩", "key id ASIA⟨k16⟩.", r"line\nAKIA⟨k16⟩\n"),
        near_misses=("AKIA", "AKIAshort", "the AKIA prefix marks a long-term key", "AIDA⟨k17⟩"),
    ),
    Rule(
        "aws-secret-key",
        r"(?i:aws|amazon|secret|s3)[A-Za-z0-9_ .\-]{0,32}(?:\[[A-Za-z0-9*]{0,32}\])?[\"']?[ \t]{0,4}(?:[:=]|=>|\bis\b)[ \t]{0,4}[\"']?([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+=]|$)"
        r"|(?:AKIA|ASIA)[A-Z0-9]{16}(?:[^A-Za-z0-9/+\n]{1,16}|[ \t]{1,3}/[ \t]{1,3})(?:(?i:secret|aws)[A-Za-z_ ]{0,24}[:= \"']{1,4})?([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+=]|$)",
        trigger=r"(?:AKIA|ASIA)[A-Z0-9]{4}|(?i:aws|amazon|secret|s3)[A-Za-z0-9_ .\-]*(?:\[[A-Za-z0-9*]*\])?[\"']?[ \t]*(?:[:=]|\bis\b)>?[ \t]*[\"']?[A-Za-z0-9/+]{8}",
        check=_mixed,
        examples=("aws_secret_access_key = ⟨b40⟩", 'AWS_SECRET_ACCESS_KEY="⟨b40⟩"', "AKIA⟨k16⟩:⟨b40⟩"),
        near_misses=("aws s3 etag ⟨h32⟩",),
    ),
    Rule(
        "aws-session-token",
        token(r"(?:IQoJb3JpZ2lu|FwoGZXIvYXdz|FQoGZXIvYXdz)[A-Za-z0-9/+=%]{40,}"),
        examples=("IQoJb3JpZ2lu⟨b300⟩", "aws_session_token=FwoGZXIvYXdz⟨b200⟩"),
    ),
    Rule(
        "aws-signature",
        r"X-Amz-(?:Signature|Security-Token)=([A-Za-z0-9%/+=]{32,})",
        examples=("https://b.s3.amazonaws.com/k?X-Amz-Expires=60&X-Amz-Signature=⟨h64⟩",),
        near_misses=("X-Amz-Signature is computed last",),
    ),
    Rule(
        "aws-bedrock-key",
        token(r"(?:ABSK[A-Za-z0-9+/]{90,}={0,2}|bedrock-api-key-[A-Za-z0-9+/]{40,}={0,2})"),
        examples=("ABSK⟨b128⟩",),
    ),
    Rule(
        "aws-mws-key",
        token(rf"amzn\.mws\.{UUID}|amzn1\.oa2-cs\.v1\.[a-f0-9]{{64}}|Atz[ar]\|[A-Za-z0-9_+/=-]{{60,}}"),
        examples=("amzn.mws.⟨h8⟩-⟨h4⟩-⟨h4⟩-⟨h4⟩-⟨h12⟩", "Atza|⟨w120⟩"),
    ),
    Rule(
        "google-api-key",
        token(r"AIza[0-9A-Za-z_\-]{35}"),
        examples=("AIza⟨u35⟩", "https://maps.googleapis.com/maps/api/js?key=AIza⟨u35⟩&v=3"),
        near_misses=("AIza is how they begin",),
    ),
    Rule("google-ai-key", token(r"AQ\.Ab8RN6[A-Za-z0-9_\-]{30,}"), examples=("AQ.Ab8RN6⟨u44⟩",)),
    Rule("google-oauth-secret", token(r"GOCSPX-[A-Za-z0-9_\-]{20,}"), examples=("GOCSPX-⟨u28⟩",)),
    Rule(
        "google-access-token",
        token(r"ya29\.[A-Za-z0-9_\-.]{20,}"),
        examples=("ya29.a0⟨u120⟩",),
        near_misses=("ya29.",),
    ),
    Rule("google-refresh-token", token(r"1//0[A-Za-z0-9_\-]{30,}"), examples=("1//0⟨u60⟩",), near_misses=("1//0",)),
    Rule("google-hmac-key", token(r"GOOG(?:1E)?[A-Z0-9]{20,58}\b"), check=looks_random, examples=("GOOG1E⟨A55⟩",)),
    Rule("firebase-server-key", token(r"AAAA[A-Za-z0-9_\-]{7}:[A-Za-z0-9_\-]{130,}"), examples=("AAAA⟨u7⟩:⟨u140⟩",)),
    Rule(
        "recaptcha-secret",
        r"(?i:recaptcha)[A-Za-z0-9_ ]{0,20}(?i:secret|private)[A-Za-z0-9_]{0,12}[^\nA-Za-z0-9]{1,8}(6L[0-9A-Za-z_\-]{38})",
        trigger=r"\b6L[0-9A-Za-z_\-]{8}",
        examples=("RECAPTCHA_SECRET_KEY=6L⟨u38⟩",),
    ),
    Rule(
        "azure-storage-key",
        r"(?i:AccountKey|SharedAccessKey|SharedSecret|storage[_-]?(?:account[_-]?)?key)[\"']?[ \t]{0,3}[=:][ \t]{0,3}[\"']?([A-Za-z0-9+/%]{40,}={0,2})"
        r"|\b([A-Za-z0-9+/]{36,84}(?:\+ASt|\+ACDb|\+ABa|\+AMC|\+ARm|\+AEh|AzCa|AzSe|AzFu|ACDb|AIoT|ACR)[A-Za-z0-9+/]{4,10}={1,2})",
        trigger=r"(?i:AccountKey|SharedAccessKey|SharedSecret|storage[_-]?(?:account[_-]?)?key)[\"']?[ \t]*[=:]|(?:\+ASt|\+ACDb|\+ABa|\+AMC|\+ARm|\+AEh|AzCa|AzSe|AzFu|ACDb|AIoT|ACR)[A-Za-z0-9+/]{4,10}=",
        examples=(
            "DefaultEndpointsProtocol=https;AccountName=acct;AccountKey=⟨b86⟩==;EndpointSuffix=core.windows.net",
            "Endpoint=sb://ns.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=⟨b43⟩=",
            "key ⟨b76⟩+ASt⟨b6⟩==",
        ),
        near_misses=('integrity="sha512-⟨b86⟩=="',),
    ),
    Rule(
        "azure-sas",
        r"(?i:[?&;]sig=|\bsig=)([A-Za-z0-9%+/]{30,}(?:%3[dD]|=){0,2})",
        examples=("https://acct.blob.core.windows.net/c/b?sv=2022-11-02&se=2030-01-01&sr=b&sp=r&sig=⟨w43⟩%3D",),
        near_misses=("sig=short",),
    ),
    Rule(
        "azure-client-secret",
        r"(?:^|[^A-Za-z0-9_~.\-])([A-Za-z0-9_~.\-]{3}[0-9]Q~[A-Za-z0-9_~.\-]{31,34})(?:\.?[^A-Za-z0-9_~.\-]|\.?$)",
        trigger=r"[0-9]Q~[A-Za-z0-9_~.\-]{8}",
        examples=("AZURE_CLIENT_SECRET=⟨w3⟩8Q~⟨w34⟩",),
    ),
    Rule(
        "azure-service-key",
        token(r"[A-Za-z0-9]{44,60}JQQJ9[A-Za-z0-9]{20,40}\b|[A-Za-z0-9]{70,80}AZDO[A-Za-z0-9]{4}\b"),
        trigger=r"JQQJ9|AZDO[A-Za-z0-9]{4}\b",
        examples=("⟨w52⟩JQQJ99⟨w26⟩", "⟨w76⟩AZDO⟨w4⟩"),
    ),
    Rule("digitalocean-token", token(r"do[opr]_v1_[a-f0-9]{40,}"), examples=("dop_v1_⟨h64⟩", "doo_v1_⟨h64⟩")),
    Rule("digitalocean-spaces-key", token(r"DO(?:00|801)[A-Z0-9]{16,17}\b"), examples=("DO00⟨A16⟩",)),
    Rule(
        "cloudflare-token",
        token(r"v1\.0-[a-f0-9]{24}-[a-f0-9]{100,}|cf(?:ut|at|k)_[A-Za-z0-9]{40,}"),
        examples=("v1.0-⟨h24⟩-⟨h146⟩", "cfut_⟨w48⟩"),
        near_misses=("v1.0-beta",),
    ),
    Rule("heroku-key", token(r"HRKU-[A-Za-z0-9_\-]{30,}"), examples=("HRKU-AA⟨u58⟩",)),
    Rule(
        "fly-token",
        token(r"fo1_[A-Za-z0-9_\-]{40,}|fm[12][ar]?_[A-Za-z0-9+/=_\-]{60,}"),
        examples=("fo1_⟨u43⟩", "FlyV1 fm2_⟨b200⟩"),
    ),
    Rule("vercel-token", token(r"vc[pcirka]_[A-Za-z0-9]{24,}\b"), check=looks_random, examples=("vcp_⟨w56⟩",)),
    Rule("netlify-token", token(r"nf[pcu]_[A-Za-z0-9]{36,}"), examples=("nfp_⟨w36⟩",)),
    Rule("render-key", token(r"rnd_[A-Za-z0-9]{28,}"), examples=("rnd_⟨w32⟩",)),
    Rule(
        "alibaba-access-key",
        token(r"LTAI[A-Za-z0-9]{12,24}\b"),
        examples=("LTAI⟨w20⟩",),
        near_misses=("LTAI",),
    ),
    Rule("tencent-secret-id", token(r"AKID[A-Za-z0-9]{28,36}\b"), examples=("AKID⟨w32⟩",)),
    Rule("scaleway-access-key", token(r"SCW[A-Z0-9]{17}\b"), check=looks_random, examples=("SCW⟨A17⟩",)),
    Rule(
        "yandex-cloud-key",
        token(r"AQVN[A-Za-z0-9_\-]{35,38}\b|t1\.[A-Z0-9a-z_\-]{20,}={0,2}\.[A-Za-z0-9_\-]{86}"),
        examples=("AQVN⟨u36⟩",),
    ),
    Rule("backblaze-key", token(r"K00[0-9][A-Za-z0-9/+]{27}\b"), check=looks_random, examples=("K005⟨w27⟩",)),
    Rule(
        "terraform-token",
        token(r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_\-=]{40,}"),
        trigger=r"\.atlasv1\.",
        examples=("⟨w14⟩.atlasv1.⟨w67⟩",),
    ),
    Rule("vault-token", token(r"hv[sbr]\.[A-Za-z0-9_\-]{20,}"), examples=("hvs.⟨u90⟩", "hvb.⟨u120⟩")),
    Rule(
        "vault-legacy-token",
        r"(?:^|[^A-Za-z0-9_.])([sbr]\.[A-Za-z0-9]{24})(?:[^A-Za-z0-9_.(]|$)",
        check=looks_random,
        examples=("VAULT_TOKEN=s.⟨w24⟩",),
        near_misses=("s.getAttributeValueForName",),
    ),
    Rule(
        "planetscale-token",
        token(r"pscale_(?:tkn|pw|oauth|secret)_[A-Za-z0-9_\-.=]{30,}"),
        examples=("pscale_tkn_⟨u43⟩", "pscale_pw_⟨u43⟩"),
    ),
    Rule(
        "supabase-key",
        token(r"sbp_[a-f0-9]{40}\b|sb_(?:secret|publishable)_[A-Za-z0-9_\-]{20,}"),
        examples=("sbp_⟨h40⟩", "sb_secret_⟨u31⟩"),
    ),
    Rule(
        "neon-key", token(r"napi_[a-z0-9]{40,}\b|npg_[A-Za-z0-9]{12,}\b"), check=looks_random, examples=("napi_⟨a64⟩",)
    ),
    Rule("mongodb-atlas-key", token(r"mdb_sa_sk_[A-Za-z0-9_\-]{30,}"), examples=("mdb_sa_sk_⟨u40⟩",)),
    Rule("confluent-secret", token(r"cflt[A-Za-z0-9/+]{60}"), examples=("cflt⟨w60⟩",)),
    Rule("clickhouse-key", token(r"4b1d[A-Za-z0-9]{38}\b"), check=looks_random, examples=("4b1d⟨w38⟩",)),
    Rule("pulumi-token", token(r"pul-[a-f0-9]{40}\b"), examples=("pul-⟨h40⟩",)),
    Rule(
        "doppler-token",
        token(r"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_\-]{2,35}\.)?[A-Za-z0-9]{40,}"),
        examples=("dp.pt.⟨w43⟩", "dp.st.prd.⟨w43⟩"),
    ),
    Rule("onepassword-token", token(r"ops_eyJ[A-Za-z0-9_\-=+/]{60,}"), examples=("ops_eyJ⟨u250⟩",)),
    Rule(
        "onepassword-secret-key",
        token(r"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){2,3}\b"),
        examples=("A3-⟨A6⟩-⟨A6⟩-⟨A5⟩-⟨A5⟩-⟨A5⟩-⟨A5⟩",),
    ),
    Rule(
        "infisical-token",
        token(r"st\.[a-f0-9]{8}[a-f0-9-]{16,28}\.[a-f0-9]{32}\.[a-f0-9]{32}"),
        examples=("st.⟨h24⟩.⟨h32⟩.⟨h32⟩",),
    ),
    Rule(
        "aws-appsync-key",
        rf"{LEFT}(da2-[a-z0-9]{{26}})\b",
        examples=("da2-⟨a26⟩",),
    ),
)
