"""Source hosts, package registries, build services and developer tools."""

from __future__ import annotations

from reverie.redact.entropy import looks_random
from reverie.redact.patterns.plausible import is_told_value
from reverie.redact.patterns.rule import UUID, Rule, token

RULES = (
    Rule(
        "github-token",
        token(r"gh[pousr]_[A-Za-z0-9_]{30,}"),
        examples=("ghp_⟨w36⟩", "gho_⟨w36⟩", "ghs_⟨w36⟩", r"x\nghr_⟨w36⟩", "https://ghp_⟨w36⟩@github.com/o/r.git"),
        near_misses=("ghp_ tokens", "ghp_short"),
    ),
    Rule("github-pat", token(r"github_pat_[A-Za-z0-9_]{36,}"), examples=("github_pat_⟨w22⟩_⟨w59⟩",)),
    Rule("github-app-token", token(r"v1\.[0-9a-f]{40}\b"), examples=("v1.⟨h40⟩",)),
    Rule(
        "gitlab-token",
        token(
            r"gl(?:pat|dt|rt|rtr|cbt|ptt|ft|imt|agent|oas|soat|ffct|wt)-[A-Za-z0-9_\-.=]{18,}|GR1348941[A-Za-z0-9_\-]{20,}"
        ),
        examples=("glpat-⟨w20⟩", "gldt-⟨w20⟩", "glptt-⟨h40⟩", "GR1348941⟨w20⟩"),
        near_misses=("glpat-xxx",),
    ),
    Rule(
        "bitbucket-token",
        token(r"ATBB[A-Za-z0-9]{24,40}\b|BBDC-[A-Za-z0-9+/]{40,}"),
        examples=("ATBB⟨w32⟩", "BBDC-⟨w44⟩"),
    ),
    Rule(
        "atlassian-token",
        token(r"AT[ACS]TT3[A-Za-z0-9_\-=]{40,}|ATTA[a-f0-9]{60,}"),
        examples=("ATATT3xFfGF0⟨u160⟩=⟨H8⟩", "ATTA⟨h72⟩"),
    ),
    Rule(
        "npm-token",
        token(r"npm_[A-Za-z0-9]{36,}\b"),
        examples=("npm_⟨w36⟩",),
        near_misses=("npm_config_registry", "npm_lifecycle_event"),
    ),
    Rule(
        "npmrc-auth",
        r"(?:^|[\s:])_(?:authToken|auth|password)[ \t]{0,3}[= ][ \t]{0,3}[\"']?([A-Za-z0-9_+/=.\-]{8,})",
        trigger=r"(?m:^|[\s:])_(?:authToken|auth|password)[ \t]*[= ]",
        check=is_told_value,
        examples=("//registry.example.org/:_authToken=⟨h8⟩-⟨h4⟩-⟨h4⟩-⟨h4⟩-⟨h12⟩", "_auth=⟨w24⟩=="),
        near_misses=("//registry.example.org/:_authToken=${NPM_TOKEN}", "x._auth = self._auth", "_auth = get_auth()"),
    ),
    Rule(
        "pypi-token",
        token(r"pypi-[A-Za-z0-9_\-]{40,}"),
        check=looks_random,
        examples=("pypi-AgEIcHlwaS5vcmc⟨u150⟩",),
        near_misses=("pypi-publish-action-for-releases-of-packages-v1",),
    ),
    Rule("rubygems-key", token(r"rubygems_[a-f0-9]{40,}\b"), examples=("rubygems_⟨h48⟩",)),
    Rule("nuget-key", token(r"oy2[a-z0-9]{43}\b"), examples=("oy2⟨a43⟩",)),
    Rule("docker-token", token(r"dckr_(?:pat|oat)_[A-Za-z0-9_\-]{20,}"), examples=("dckr_pat_⟨u27⟩",)),
    Rule(
        "docker-config-auth",
        r"\"auth\"[ \t]{0,3}:[ \t]{0,3}\"([A-Za-z0-9+/]{12,}={0,2})\"",
        examples=('"auth": "⟨w28⟩=="',),
    ),
    Rule("crates-token", token(r"cio[A-Za-z0-9]{32}\b"), check=looks_random, examples=("cio⟨w32⟩",)),
    Rule(
        "artifactory-token",
        token(r"AKCp[A-Za-z0-9]{10,}\b|cmVmdGtu[A-Za-z0-9+/=]{40,}"),
        examples=("AKCp8⟨w64⟩", "cmVmdGtuO⟨w55⟩"),
    ),
    Rule("circleci-token", token(r"CCI(?:PAT|PRJ)_[A-Za-z0-9]{16,}_[a-f0-9]{40}"), examples=("CCIPAT_⟨w22⟩_⟨h40⟩",)),
    Rule("buildkite-token", token(r"bk(?:ua|pi|aj|pt|rt|ct)_[A-Za-z0-9]{20,}\b"), examples=("bkua_⟨h40⟩",)),
    Rule("sonar-token", token(r"sq[upa]_[a-f0-9]{40}\b"), examples=("squ_⟨h40⟩", "sqp_⟨h40⟩")),
    Rule(
        "snyk-token",
        token(r"snyk_(?:uat|sat)\.[a-z0-9]{4,12}\.[A-Za-z0-9_\-.]{30,}"),
        examples=("snyk_uat.⟨a8⟩.⟨u60⟩",),
    ),
    Rule(
        "sentry-token",
        token(r"sntrys_eyJ[A-Za-z0-9_+/=\-]{40,}|sntry[usi]_[a-f0-9]{64}"),
        examples=("sntryu_⟨h64⟩", "sntrys_eyJ⟨w120⟩"),
    ),
    Rule(
        "sentry-dsn",
        r"https?://([a-f0-9]{32}(?::[a-f0-9]{32})?)@[A-Za-z0-9.\-]{3,100}/[0-9]",
        examples=("https://⟨h32⟩@o12345.ingest.sentry.io/67890",),
        near_misses=("https://o12345.ingest.sentry.io/67890",),
    ),
    Rule(
        "newrelic-key",
        token(
            r"NRAK-[A-Z0-9]{27}\b|NR(?:II|IQ|SP|RA|BR|JS)-[A-Za-z0-9_\-]{19,}|[a-f0-9]{32,36}(?:FF|NR)+NRAL\b|[a-f0-9]{36}NRAL\b"
        ),
        trigger=r"NR[A-Z]{2}-[A-Za-z0-9_\-]{8}|NRAL\b",
        examples=("NRAK-⟨A27⟩", "NRII-⟨w32⟩", "⟨h36⟩NRAL", "⟨h32⟩FFFFNRAL"),
    ),
    Rule(
        "grafana-token",
        token(r"glsa_[A-Za-z0-9]{32}_[a-fA-F0-9]{8}|glc_[A-Za-z0-9+/]{32,}={0,2}|eyJrIjoi[A-Za-z0-9+/=]{40,}"),
        examples=("glsa_⟨w32⟩_⟨h8⟩", "glc_⟨w120⟩"),
    ),
    Rule("pagerduty-key", token(r"pdus\+_?[A-Za-z0-9_+\-]{20,}"), examples=("pdus+_⟨w40⟩",)),
    Rule("dynatrace-token", token(r"dt0[a-z][0-9]{2}\.[A-Z0-9]{24}\.[A-Z0-9]{64}"), examples=("dt0c01.⟨A24⟩.⟨A64⟩",)),
    Rule("honeycomb-key", token(r"hc[a-z][a-z0-9]{2}_[a-z0-9]{50,}"), examples=("hcaik_⟨a58⟩",)),
    Rule(
        "databricks-token",
        token(r"d(?:api|ose|kea|oid|sapi)[a-f0-9]{32}(?:-[0-9])?\b"),
        examples=("dapi⟨h32⟩", "dapi⟨h32⟩-2"),
    ),
    Rule("postman-key", token(r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}|PMAT-[A-Z0-9]{26}"), examples=("PMAK-⟨h24⟩-⟨h34⟩",)),
    Rule("figma-token", token(r"fig[dourp]{1,2}_[A-Za-z0-9_\-]{30,}"), examples=("figd_⟨u40⟩",)),
    Rule("linear-key", token(r"lin_(?:api|oauth|wh)_[A-Za-z0-9]{32,}"), examples=("lin_api_⟨w40⟩", "lin_wh_⟨w40⟩")),
    Rule(
        "notion-token",
        token(r"ntn_[A-Za-z0-9]{40,}\b|secret_[A-Za-z0-9]{43}\b"),
        examples=("ntn_⟨w46⟩", "secret_⟨w43⟩"),
    ),
    Rule(
        "airtable-token",
        token(r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}") + r"|(?i:airtable)[^\n]{0,30}?[ =:\"'](key[A-Za-z0-9]{14})\b",
        trigger=r"pat[A-Za-z0-9]{14}\.[a-f0-9]{8}|\bkey[A-Za-z0-9]{14}\b",
        examples=("pat⟨w14⟩.⟨h64⟩", "AIRTABLE_API_KEY=key⟨w14⟩"),
    ),
    Rule(
        "asana-token",
        token(r"[012]/[0-9]{15,20}(?:/[0-9]{15,20})?:[a-f0-9]{32}\b"),
        examples=("1/⟨d16⟩:⟨h32⟩", "2/⟨d16⟩/⟨d16⟩:⟨h32⟩"),
    ),
    Rule("clickup-token", token(r"pk_[0-9]{6,10}_[A-Z0-9]{32}\b"), examples=("pk_⟨d8⟩_⟨A32⟩",)),
    Rule("prefect-key", token(r"pn[ub]_[A-Za-z0-9]{36}\b"), examples=("pnu_⟨a36⟩",)),
    Rule("readme-key", token(r"rdme_[A-Za-z0-9]{40,}"), examples=("rdme_⟨a70⟩",)),
    Rule("launchdarkly-key", token(rf"(?:sdk|api|mob)-{UUID}"), examples=("sdk-⟨h8⟩-⟨h4⟩-⟨h4⟩-⟨h4⟩-⟨h12⟩",)),
    Rule("contentful-token", token(r"CFPAT-[A-Za-z0-9_\-]{40,}"), examples=("CFPAT-⟨u43⟩",)),
    Rule("typeform-token", token(r"tfp_[A-Za-z0-9_\-.]{40,}"), examples=("tfp_⟨w44⟩_⟨w14⟩",)),
    Rule(
        "okta-token",
        r"(?i:okta|ssws)[^\n]{0,30}?[ =:\"'](00[A-Za-z0-9_\-]{40})\b",
        trigger=r"\b00[A-Za-z0-9_\-]{12}",
        check=looks_random,
        examples=("Authorization: SSWS 00⟨w40⟩", "OKTA_API_TOKEN=00⟨w40⟩"),
    ),
    Rule("adafruit-key", token(r"aio_[A-Za-z0-9]{28}\b"), check=looks_random, examples=("aio_⟨w28⟩",)),
    Rule(
        "mapbox-token",
        token(r"[sp]k\.eyJ[A-Za-z0-9_\-]{20,}\.[A-Za-z0-9_\-]{16,}"),
        examples=("sk.eyJ1Ijoi⟨w60⟩.⟨u22⟩",),
    ),
    Rule(
        "tailscale-key",
        token(r"tskey-(?:auth|api|client|scim|webhook)?-?[A-Za-z0-9]{8,}-[A-Za-z0-9]{20,}"),
        examples=("tskey-auth-⟨w17⟩-⟨w32⟩",),
    ),
    Rule("age-secret-key", r"(?i)(AGE-SECRET-KEY-1[A-Z0-9]{50,})", examples=("AGE-SECRET-KEY-1⟨A58⟩",)),
)
