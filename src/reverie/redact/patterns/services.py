"""Tokens of further services, known by their first characters."""

from __future__ import annotations

from reverie.redact.entropy import looks_random
from reverie.redact.patterns.rule import UUID, Rule, token


def _mixed(text: str) -> bool:
    """Random, with both letter cases and digits."""
    return (
        any(c.islower() for c in text)
        and any(c.isupper() for c in text)
        and any(c.isdigit() for c in text)
        and looks_random(text)
    )


RULES = (
    Rule(
        "zoho-token",
        token(r"1000\.[a-f0-9]{32}\.[a-f0-9]{32}\b"),
        trigger=r"1000\.[a-f0-9]{8}",
        examples=("1000.⟨h32⟩.⟨h32⟩",),
        near_misses=("1000.50 euros",),
    ),
    Rule(
        "salesforce-session",
        token(r"00D[A-Za-z0-9]{12,15}![A-Za-z0-9_.\-]{40,}"),
        trigger=r"00D[A-Za-z0-9]{12,15}!",
        examples=("00D⟨w12⟩!AQ⟨w90⟩",),
    ),
    Rule("inngest-key", token(r"signkey-(?:prod|test|branch|env)-[a-f0-9]{32,64}\b"), examples=("signkey-prod-⟨h64⟩",)),
    Rule("wakatime-key", token(rf"waka_{UUID}"), examples=("waka_⟨h8⟩-⟨h4⟩-⟨h4⟩-⟨h4⟩-⟨h12⟩",)),
    Rule("defined-key", token(r"dnkey-[A-Z0-9]{26}-[A-Z0-9]{52}\b"), examples=("dnkey-⟨A26⟩-⟨A52⟩",)),
    Rule("stackhawk-key", token(r"hawk\.[A-Za-z0-9_\-]{20}\.[A-Za-z0-9_\-]{20}\b"), examples=("hawk.⟨w20⟩.⟨w20⟩",)),
    Rule("adobe-secret", token(r"p8e-[A-Za-z0-9_\-]{32}\b"), check=looks_random, examples=("p8e-⟨h32⟩",)),
    Rule(
        "mercadopago-token",
        token(r"(?:APP_USR|TEST)-[0-9]{12,20}-[0-9]{6}-[a-f0-9]{32}(?:__[A-Z_]{2,8}__)?-[0-9]{6,12}"),
        examples=("APP_USR-⟨d16⟩-⟨d6⟩-⟨h32⟩-⟨d9⟩",),
    ),
    Rule(
        "ghost-key",
        token(r"[a-f0-9]{24}:[a-f0-9]{64}\b"),
        trigger=r"[a-f0-9]:[a-f0-9]{16}",
        examples=("⟨h24⟩:⟨h64⟩",),
    ),
    Rule("paseto", token(r"v[1-4]\.local\.[A-Za-z0-9_\-]{60,}"), examples=("v4.local.⟨u120⟩",)),
    Rule("infracost-key", token(r"ico-[A-Za-z0-9]{32}\b"), check=looks_random, examples=("ico-⟨w32⟩",)),
    Rule("ory-token", token(r"ory_(?:at|rt|ac|st|pat|apikey)_[A-Za-z0-9_\-.]{30,}"), examples=("ory_at_⟨u43⟩.⟨u43⟩",)),
    Rule("frameio-token", token(r"fio-u-[A-Za-z0-9_\-=]{60,}"), examples=("fio-u-⟨u64⟩",)),
    Rule(
        "roblox-cookie",
        r"_\|WARNING:-DO-NOT-SHARE-THIS[^|\n]{0,200}\|_([A-Fa-f0-9]{60,})",
        trigger=r"_\|WARNING:-DO-NOT-SHARE-THIS",
        examples=("_|WARNING:-DO-NOT-SHARE-THIS.--|_⟨H200⟩",),
    ),
    Rule(
        "bitwarden-token",
        r"\b(0\.[0-9a-f]{8}-[0-9a-f\-]{27}\.[A-Za-z0-9]{30}:[A-Za-z0-9+/=]{20,24})",
        trigger=r"\b0\.[0-9a-f]{8}-",
        examples=("0.⟨h8⟩-⟨h4⟩-⟨h4⟩-⟨h4⟩-⟨h12⟩.⟨w30⟩:⟨b22⟩==",),
    ),
    Rule(
        "sourcegraph-token",
        token(r"sgp_(?:[a-fA-F0-9]{16}_|local_)?[a-fA-F0-9]{40}\b|slk_[a-f0-9]{64}\b"),
        examples=("sgp_⟨h16⟩_⟨h40⟩", "sgp_⟨h40⟩", "slk_⟨h64⟩"),
        near_misses=("sgp_1234",),
    ),
    Rule(
        "dynatrace-platform-token",
        token(r"dt0[a-z][0-9]{2}\.[A-Z0-9]{8}\.[A-Z0-9]{64}\b"),
        examples=("dt0s16.⟨k8⟩.⟨k64⟩",),
    ),
    Rule(
        "axiom-token",
        token(rf"xa(?:at|pt)-{UUID}"),
        examples=("xaat-⟨h8⟩-⟨h4⟩-⟨h4⟩-⟨h4⟩-⟨h12⟩",),
    ),
    Rule("aiven-password", token(r"AVNS_[A-Za-z0-9_\-]{15,}"), examples=("AVNS_⟨u19⟩",), near_misses=("AVNS_NAME",)),
    Rule("telnyx-key", token(r"KEY0[A-F0-9]{24,32}_[A-Za-z0-9]{20,24}\b"), examples=("KEY0⟨H32⟩_⟨w22⟩",)),
    Rule("rootly-key", token(r"rootly_[a-f0-9]{64}\b"), examples=("rootly_⟨h64⟩",)),
    Rule(
        "maxmind-key",
        token(r"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk\b"),
        trigger=r"[A-Za-z0-9]_mmk\b",
        examples=("⟨w6⟩_⟨w29⟩_mmk",),
    ),
    Rule(
        "authress-key",
        token(
            r"(?:sc|ext|scauth|authress)_[A-Za-z0-9]{5,30}\.[A-Za-z0-9]{4,6}\.acc[_-][a-z0-9-]{10,32}\.[A-Za-z0-9+/_=-]{30,120}|(?:sc|ext|scauth|authress)_[A-Za-z0-9]{5,30}\.acc[_-][a-z0-9-]{10,32}\.[A-Za-z0-9+/_=-]{30,120}"
        ),
        trigger=r"\.acc[_-][a-z0-9-]{8}",
        examples=("sc_⟨w5⟩.⟨w4⟩.acc-⟨a12⟩.⟨w40⟩", "sc_⟨w5⟩.acc_⟨a12⟩.⟨w40⟩"),
    ),
    Rule(
        "harness-token",
        token(r"(?:pat|sat)\.[A-Za-z0-9_\-]{22}\.[a-f0-9]{24}\.[A-Za-z0-9]{20}\b"),
        examples=("pat.⟨u22⟩.⟨h24⟩.⟨w20⟩",),
    ),
    Rule(
        "databento-key", token(r"db-[A-Za-z0-9]{29}\b"), check=_mixed, examples=("db-⟨w29⟩",), near_misses=("db-⟨h29⟩",)
    ),
    Rule("checkly-key", token(r"cu_[a-f0-9]{32}\b"), examples=("cu_⟨h32⟩",)),
    Rule("clojars-token", token(r"(?i:CLOJARS)_[a-z0-9]{60}\b"), examples=("CLOJARS_⟨a60⟩",)),
    Rule(
        "deepl-key",
        token(rf"{UUID}:(?:fx|dp)\b"),
        trigger=r"[0-9a-fA-F]:(?:fx|dp)\b",
        examples=("⟨h8⟩-⟨h4⟩-⟨h4⟩-⟨h4⟩-⟨h12⟩:fx",),
    ),
    Rule(
        "coinbase-key-name",
        token(rf"organizations/{UUID}/apiKeys/{UUID}"),
        examples=("organizations/⟨h8⟩-⟨h4⟩-⟨h4⟩-⟨h4⟩-⟨h12⟩/apiKeys/⟨h8⟩-⟨h4⟩-⟨h4⟩-⟨h4⟩-⟨h12⟩",),
    ),
    Rule(
        "openshift-token",
        token(r"sha256~[A-Za-z0-9_\-]{43}"),
        examples=("sha256~⟨u43⟩",),
        near_misses=("sha256:⟨h64⟩",),
    ),
    Rule("intercom-token", token(r"dG9rO[A-Za-z0-9+/]{50,}={0,2}"), examples=("dG9rOj⟨w54⟩=",)),
    Rule(
        "convex-deploy-key",
        token(r"(?:prod|dev|preview|project):[a-z0-9-]{3,60}(?::[a-z0-9-]{3,60})?\|[A-Za-z0-9+/=]{40,}"),
        examples=("prod:calm-fox-123|⟨b96⟩",),
    ),
    Rule(
        "artifactory-password",
        r"(?:^|[\s=:\"'])(AP[0-9A-F][A-Za-z0-9]{8,}|AKC[A-Za-z0-9]{40,})(?:[\s\"']|$)",
        trigger=r"\b(?:AP[0-9A-F]|AKC)[A-Za-z0-9]{8}",
        check=_mixed,
        examples=("artif-key:AP6x⟨w14⟩", "X-JFrog-Art-Api: AKCx⟨w69⟩"),
        near_misses=("APIKeysAndTokens", "APACHE2LICENSE"),
    ),
    Rule(
        "okta-bare-token",
        r"(?:^|[^A-Za-z0-9_\-./+])(00[A-Za-z0-9_\-]{40})(?:[^A-Za-z0-9_\-/+=]|$)",
        trigger=r"00[A-Za-z0-9_\-]{40}",
        check=_mixed,
        examples=("my token: 00⟨w40⟩ ok",),
        near_misses=("00⟨h40⟩", "00-⟨h32⟩-⟨h16⟩-01"),
    ),
    Rule(
        "nkey-seed",
        token(r"S[UAONCX][A-Z2-7]{56}\b"),
        check=lambda text: sum(c.isdigit() for c in text) >= 3,
        examples=("SU⟨k56⟩",),
    ),
    Rule(
        "gocardless-token",
        token(r"sandbox_[A-Za-z0-9_\-]{40}\b") + r"|(?:^|[^A-Za-z0-9_])(live_[A-Za-z0-9_\-]{40})\b",
        check=looks_random,
        examples=("live_⟨u40⟩",),
    ),
    Rule("settlemint-token", token(r"sm_(?:aat|pat|sat)_[A-Za-z0-9]{16}\b"), examples=("sm_pat_⟨w16⟩",)),
    Rule(
        "octopus-key",
        token(r"API-[A-Z0-9]{26}\b"),
        check=looks_random,
        examples=("API-⟨A26⟩",),
        near_misses=("API-V2",),
    ),
    Rule("intra42-secret", token(r"s-s4t2(?:ud|af)-[a-f0-9]{64}\b"), examples=("s-s4t2ud-⟨h64⟩",)),
    Rule("deno-token", token(r"dd[pow]_[A-Za-z0-9]{36}\b"), check=looks_random, examples=("ddp_⟨w36⟩",)),
    Rule("yandex-secret-key", token(r"YC[A-Za-z0-9_\-]{38}\b"), check=_mixed, examples=("YC⟨w38⟩",)),
    Rule("scalingo-token", token(r"tk-us-[A-Za-z0-9_\-]{48}"), examples=("tk-us-⟨u48⟩",)),
    Rule("polar-token", token(r"polar_(?:oat|pat|at|rt|whs|cst)_[A-Za-z0-9_]{30,}"), examples=("polar_oat_⟨w43⟩",)),
    Rule(
        "oauth-code",
        r"[?&]code=(4(?:/|%2F)0A[A-Za-z0-9_\-]{30,})",
        examples=("https://a.example/cb?code=4/0A⟨u70⟩&scope=x",),
    ),
    Rule(
        "stellar-seed",
        r"(?i:stellar|xlm|seed|secret)[^\n]{0,20}?[ :=\"'](S[A-Z2-7]{55})\b",
        trigger=r"\bS[A-Z2-7]{55}\b",
        examples=("STELLAR_SECRET=S⟨k55⟩",),
    ),
)
