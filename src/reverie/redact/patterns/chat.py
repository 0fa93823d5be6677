"""Chat, mail, and social services."""

from __future__ import annotations

from reverie.redact.entropy import looks_random
from reverie.redact.patterns.plausible import is_joined, is_placeholder
from reverie.redact.patterns.rule import UUID, Rule, Span, token


def _telegram(text: str) -> bool:
    return looks_random(text.split(":", 1)[1])


def _mailgun(data: bytes, _match_start: int, start: int, end: int) -> Span | None:
    """`key-` and a digest by itself; `order-key-` and a digest is somebody's name for something."""
    return None if data[start : start + 4] == b"key-" and is_joined(data, start) else (start, end)


RULES = (
    Rule(
        "slack-token",
        token(
            r"xox[abeoprsc](?:-[A-Za-z0-9]{1,}){1,8}[A-Za-z0-9\-]*|xoxd-[A-Za-z0-9%+/=\-]{20,}|xoxe\.xox[bp]-[A-Za-z0-9\-]{20,}|xapp-[0-9]-[A-Za-z0-9\-]{20,}"
        ),
        check=lambda text: len(text) >= 20,
        examples=("xoxb-⟨d12⟩-⟨d13⟩-⟨w24⟩", "xoxp-⟨d12⟩-⟨d12⟩-⟨d12⟩-⟨h32⟩", "xapp-1-A⟨A10⟩-⟨d13⟩-⟨h64⟩"),
        near_misses=("xoxb-...", "an xoxb- token"),
    ),
    Rule(
        "slack-webhook",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9]{8,}/[A-Za-z0-9]{8,}/[A-Za-z0-9/]{16,})",
        check=lambda text: not is_placeholder(text),
        examples=("https://hooks.slack.com/services/T⟨A9⟩/B⟨A10⟩/⟨w24⟩",),
        near_misses=(
            "https://hooks.slack.com/services/",
            "https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX",
        ),
    ),
    Rule(
        "discord-token",
        token(r"[MNO][A-Za-z0-9_\-]{23,27}\.[A-Za-z0-9_\-]{6,7}\.[A-Za-z0-9_\-]{27,40}|mfa\.[A-Za-z0-9_\-]{80,}"),
        trigger=r"\.[A-Za-z0-9_\-]{6,7}\.[A-Za-z0-9_\-]{12}|mfa\.[A-Za-z0-9_\-]{8}",
        apart=True,
        check=looks_random,
        examples=("M⟨w23⟩.⟨w6⟩.⟨u27⟩", "N⟨w25⟩.⟨w6⟩.⟨u38⟩"),
    ),
    Rule(
        "discord-webhook",
        r"discord(?:app)?\.com/api/(?:v[0-9]+/)?webhooks/([0-9]{15,21}/[A-Za-z0-9_\-]{50,})",
        examples=("https://discord.com/api/webhooks/⟨d18⟩/⟨u68⟩",),
    ),
    Rule(
        "telegram-token",
        r"(?:\b|bot)([0-9]{8,10}:[A-Za-z0-9_\-]{35})(?:[^A-Za-z0-9_\-]|$)",
        trigger=r"[0-9]{8}:[A-Za-z0-9_\-]{8}",
        check=_telegram,
        examples=("1⟨d9⟩:AA⟨u33⟩", "https://api.telegram.org/bot1⟨d9⟩:AA⟨u33⟩/sendMessage"),
    ),
    Rule(
        "teams-webhook",
        r"(?:webhook\.office\.com/webhookb2|outlook\.office(?:365)?\.com/webhook)/([A-Za-z0-9\-@]{36,}/IncomingWebhook/[A-Za-z0-9]{32}/[A-Za-z0-9\-]{36}[A-Za-z0-9/_\-]*)",
        examples=(
            "https://corp.webhook.office.com/webhookb2/⟨h8⟩-⟨h4⟩-⟨h4⟩-⟨h4⟩-⟨h12⟩@⟨h8⟩-⟨h4⟩-⟨h4⟩-⟨h4⟩-⟨h12⟩/IncomingWebhook/⟨h32⟩/⟨h8⟩-⟨h4⟩-⟨h4⟩-⟨h4⟩-⟨h12⟩",
        ),
    ),
    Rule(
        "chat-webhook",
        r"(?:hooks\.zapier\.com/hooks/catch|maker\.ifttt\.com/[^\s]{1,60}/with/key|open\.(?:feishu\.cn|larksuite\.com)/open-apis/bot/v2/hook|hooks\.n8n\.cloud/webhook|hook\.[a-z0-9.]{2,12}\.?make\.com)/([A-Za-z0-9/_\-]{10,})",
        trigger=r"hooks\.zapier\.com/|maker\.ifttt\.com/|/open-apis/bot/v2/hook/|hooks\.n8n\.cloud/|make\.com/",
        examples=(
            "https://hooks.zapier.com/hooks/catch/⟨d7⟩/⟨a7⟩/",
            "https://open.feishu.cn/open-apis/bot/v2/hook/⟨h8⟩-⟨h4⟩-⟨h4⟩-⟨h4⟩-⟨h12⟩",
        ),
    ),
    Rule("twilio-key", token(r"SK[a-fA-F0-9]{32}\b"), examples=("SK⟨h32⟩",)),
    Rule("sendgrid-key", token(r"SG\.[A-Za-z0-9_\-]{16,32}\.[A-Za-z0-9_\-]{16,64}"), examples=("SG.⟨u22⟩.⟨u43⟩",)),
    Rule(
        "mailgun-key",
        token(r"(?:key|pubkey)-[a-f0-9]{32}\b|[a-f0-9]{32}-[a-f0-9]{8}-[a-f0-9]{8}\b"),
        trigger=r"key-[a-f0-9]{8}|[a-f0-9]{8}-[a-f0-9]{8}-[a-f0-9]{8}\b",
        refine=_mailgun,
        examples=("key-⟨h32⟩", "⟨h32⟩-⟨h8⟩-⟨h8⟩"),
        near_misses=("key-value", "⟨h8⟩-⟨h4⟩-⟨h4⟩-⟨h4⟩-⟨h12⟩", "order-key-⟨h32⟩"),
    ),
    Rule("mailchimp-key", token(r"[a-f0-9]{32}-us[0-9]{1,2}\b"), trigger=r"[a-f0-9]-us[0-9]", examples=("⟨h32⟩-us14",)),
    Rule("mandrill-key", token(r"md-[A-Za-z0-9_\-]{22}\b"), check=looks_random, examples=("md-⟨w22⟩",)),
    Rule("brevo-key", token(r"x(?:keysib|smtpsib)-[a-f0-9]{64}-[A-Za-z0-9]{16}"), examples=("xkeysib-⟨h64⟩-⟨w16⟩",)),
    Rule(
        "resend-key",
        token(r"re_[A-Za-z0-9]{6,10}_[A-Za-z0-9]{20,}\b"),
        check=looks_random,
        examples=("re_⟨w8⟩_⟨w24⟩",),
        near_misses=("re_compile_everything_once_and_for_all",),
    ),
    Rule("mailersend-key", token(r"mlsn\.[a-f0-9]{60,}"), examples=("mlsn.⟨h64⟩",)),
    Rule("hubspot-token", token(rf"pat-(?:na|eu|ap)[0-9]-{UUID}"), examples=("pat-na1-⟨h8⟩-⟨h4⟩-⟨h4⟩-⟨h4⟩-⟨h12⟩",)),
    Rule(
        "facebook-token",
        token(
            r"EAA[A-Za-z0-9]{60,}\b|EAACEdEose0cBA[A-Za-z0-9]{10,}|IG(?:QV|QW|AA)[A-Za-z0-9_\-]{60,}|[0-9]{13,17}\|[A-Za-z0-9_\-]{27}\b"
        ),
        trigger=r"EAA[A-Za-z0-9]{8}|IG(?:QV|QW|AA)|[0-9]\|[A-Za-z0-9_\-]{8}",
        examples=("EAA⟨w160⟩", "⟨d15⟩|⟨w27⟩"),
    ),
    Rule(
        "twitter-token",
        token(r"A{20,}[A-Za-z0-9%]{40,}|[0-9]{8,20}-[A-Za-z0-9]{40}\b"),
        trigger=r"A{20}|[0-9]{8}-[A-Za-z0-9]{12}",
        check=looks_random,
        examples=("AAAAAAAAAAAAAAAAAAAAA⟨w20⟩%3D⟨w50⟩", "⟨d18⟩-⟨w40⟩"),
        near_misses=("A" * 80, "20240101-⟨h40⟩".replace("⟨h40⟩", "a" * 40)),
    ),
    Rule(
        "linkedin-token",
        token(r"AQ[UVWX][A-Za-z0-9_\-]{100,}|WPL_AP[01]\.[A-Za-z0-9.=/+]{16,}"),
        examples=("AQV⟨u180⟩", "WPL_AP1.⟨w16⟩.⟨w8⟩=="),
    ),
    Rule("twitch-token", r"\b(?i:oauth:)([a-z0-9]{30})\b", examples=("oauth:⟨a30⟩",)),
    Rule("dropbox-token", token(r"sl\.(?:u\.)?[A-Za-z0-9_\-]{100,}"), examples=("sl.B⟨u130⟩",)),
)
