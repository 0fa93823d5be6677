"""Payment services, shops, coins, and the numbers money moves by."""

# ruff: noqa: E501 (a pattern is easier to read in one piece)

from __future__ import annotations

import hashlib

from reverie.redact.entropy import looks_random, luhn, mod97
from reverie.redact.patterns.plausible import is_joined, is_named_id
from reverie.redact.patterns.rule import LEFT, UUID, Rule, Span, token

_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def _base58check(text: str) -> bool:
    """The last four bytes are the double SHA-256 of the others, as in a wallet's exported key."""
    number = 0
    for c in text:
        number = number * 58 + _BASE58.index(c)
    raw = number.to_bytes((number.bit_length() + 7) // 8, "big")
    return hashlib.sha256(hashlib.sha256(raw[:-4]).digest()).digest()[:4] == raw[-4:]


def _card(text: str) -> bool:
    return luhn(text) and len({c for c in text if c.isdigit()}) > 1


# How long an IBAN is, by country.
_IBAN = {
    country: int(line.split()[0])
    for line in """
    15 NO
    16 BE
    18 DK FO FI GL NL SD
    19 MK SI
    20 AT BA EE KZ LT LU XK MN
    21 CH HR LI LV
    22 BG BH CR DE GB GE IE ME RS VA
    23 AE GI IL IQ OM SO TL
    24 AD CZ ES MD PK RO SA SE SK TN VG
    25 LY PT ST
    26 IS TR
    27 FR GR IT MC MR SM BI DJ
    28 AL AZ BY CY DO GT HU LB NI PL SV
    29 BR EG PS QA UA
    30 JO KW MU YE
    31 MT SC
    32 LC
    33 RU
    """.strip().splitlines()
    for country in line.split()[1:]
}


def _iban(text: str) -> bool:
    """The length of its country, and the check digits."""
    plain = "".join(text.split())
    return _IBAN.get(plain[:2]) == len(plain) and mod97(plain)


def _bare_mode(data: bytes, _match_start: int, start: int, end: int) -> Span | None:
    """`live_` by itself, not the middle of a publishable key or of a name that ends in a digest."""
    text = data[start:end].decode("ascii", "replace")
    if data[max(0, start - 3) : start] == b"pk_" or not looks_random(text):
        return None
    return None if is_joined(data, start) and is_named_id(text) else (start, end)


RULES = (
    Rule(
        "stripe-key",
        token(r"(?:sk|rk)_(?:live|test|prod)_[A-Za-z0-9]{10,}"),
        examples=("sk_live_⟨w24⟩", "rk_test_⟨w99⟩"),
        near_misses=("sk_live_", "sk_test_...", "sk_test_" + "x" * 24, "pk_live_⟨w24⟩", "pk_test_⟨w99⟩"),
    ),
    Rule("webhook-secret", token(r"whsec_[A-Za-z0-9+/=]{24,}"), examples=("whsec_⟨w32⟩",)),
    Rule(
        "square-token",
        token(r"sq[0O][a-z]{3}-[A-Za-z0-9_\-]{20,}|EAAA[A-Za-z0-9_\-]{58,64}\b"),
        examples=("sq0atp-⟨u22⟩", "sq0csp-⟨u43⟩", "EAAA⟨w60⟩"),
    ),
    Rule(
        "braintree-token",
        r"(access_token\$(?:production|sandbox)\$[a-z0-9]{16}\$[a-f0-9]{32})",
        examples=("access_token$production$⟨a16⟩$⟨h32⟩",),
    ),
    Rule(
        "shopify-token", token(r"shp(?:at|ca|pa|ss|tka|rt|ua)_[a-fA-F0-9]{32}"), examples=("shpat_⟨h32⟩", "shpss_⟨h32⟩")
    ),
    Rule(
        "plaid-token",
        token(rf"(?:access|public|link)-(?:sandbox|development|production)-{UUID}"),
        examples=("access-sandbox-⟨h8⟩-⟨h4⟩-⟨h4⟩-⟨h4⟩-⟨h12⟩",),
    ),
    Rule(
        "adyen-key",
        token(r"AQ[EF][a-zA-Z0-9+/]{40,}={0,2}(?:-[A-Za-z0-9+/=]{20,}){1,2}(?:-[^\s\"',;]{8,})?"),
        examples=("AQEyhmfx⟨w60⟩-⟨w44⟩=-⟨w16⟩",),
    ),
    Rule("razorpay-key", token(r"rzp_(?:live|test)_[A-Za-z0-9]{14,}"), examples=("rzp_live_⟨w14⟩",)),
    Rule(
        "flutterwave-key",
        token(r"FLW(?:SECK|PUBK)(?:_TEST)?-[A-Za-z0-9]{12,}(?:-X)?"),
        examples=("FLWSECK_TEST-⟨h32⟩-X",),
    ),
    Rule(
        "mollie-key",
        token(r"(?:live|test)_[A-Za-z0-9]{30,}\b"),
        refine=_bare_mode,
        examples=("live_⟨w30⟩", "test_⟨w40⟩"),
        near_misses=("test_that_redaction_keeps_everything_else", "test_parametrizedexamplesofeverykind1"),
    ),
    Rule("shippo-token", token(r"shippo_(?:live|test)_[a-f0-9]{40}"), examples=("shippo_live_⟨h40⟩",)),
    Rule("easypost-key", token(r"EZ[AT]K[A-Za-z0-9]{54}\b"), examples=("EZAK⟨w54⟩",)),
    Rule("duffel-token", token(r"duffel_(?:live|test)_[A-Za-z0-9_\-]{40,}"), examples=("duffel_test_⟨u43⟩",)),
    Rule(
        "wallet-private-key",
        token(r"[5KL][1-9A-HJ-NP-Za-km-z]{50,51}\b"),
        trigger=rf"(?:{LEFT}[5KL][1-9A-HJ-NP-Za-km-z]{{50}})",
        check=_base58check,
        near_misses=("K⟨w51⟩",),
    ),
    Rule(
        "wallet-master-key",
        token(r"[xyztuv]prv[1-9A-HJ-NP-Za-km-z]{100,112}\b"),
        examples=("xprv9s21⟨w20⟩".replace("⟨w20⟩", "K3" * 51),),
    ),
    Rule(
        "wallet-named-key",
        r"(?i:\bwif\b|bitcoin|btc|wallet|private)[^\n]{0,24}?[ :=\"']([5KL][1-9A-HJ-NP-Za-km-z]{50,51})\b",
        trigger=r"[ :=\"'][5KL][1-9A-HJ-NP-Za-km-z]{50}",
        check=looks_random,
        near_misses=("L⟨h51⟩",),
    ),
    Rule(
        "ethereum-private-key",
        r"(?i:priv(?:ate)?[_ -]?key|wallet[_ -]?key|eth[_ -]?key|secret|deployer|mnemonic)[^\n0-9a-fx]{1,24}((?:0x)?[0-9a-fA-F]{64})\b",
        trigger=r"(?i:priv(?:ate)?[_ -]?key|wallet[_ -]?key|eth[_ -]?key|secret|deployer|mnemonic)[^\n0-9a-fx]+(?:0x)?[0-9a-fA-F]{8}",
        examples=("PRIVATE_KEY=0x⟨h64⟩", "wallet key: ⟨h64⟩"),
        near_misses=("sha256: ⟨h64⟩", "tx 0x⟨h64⟩"),
    ),
    Rule(
        "seed-phrase",
        r"(?i:seed|mnemonic|recovery|backup)[ _-]?(?i:phrase|words|seed)?(?:[ \t]{0,3}[:=]|[ \t]is)[ \t\"'\[]{0,4}((?:[a-z]{3,8}[ ,]{1,2}){11,23}[a-z]{3,8})\b",
        examples=('mnemonic: "abandon ability able about above absent absorb abstract absurd abuse access accident"',),
        near_misses=("the seed phrase is a list of words",),
        trigger=r"(?i:seed|mnemonic|recovery|backup)[ _-]?(?i:phrase|words|seed)?(?:[ \t]{0,3}[:=]|[ \t]is)",
    ),
    Rule(
        "card-number",
        r"(?:^|[^0-9A-Za-z_.+/\-])((?:4[0-9]{3}|5[1-5][0-9]{2}|2(?:2[2-9]|[3-6][0-9]|7[01])[0-9]|6011|65[0-9]{2}|35[2-8][0-9])(?:[ -]?[0-9]{4}){3}|3[47][0-9]{2}[ -]?[0-9]{6}[ -]?[0-9]{5})(?:[^0-9A-Za-z_\-]|$)",
        trigger=r"[2-6][0-9]{3}[ -]?[0-9]{4}[ -]?[0-9]{4}[ -]?[0-9]{4}|3[47][0-9]{2}[ -]?[0-9]{6}[ -]?[0-9]{5}",
        check=_card,
        apart=True,
        examples=("card 4242 4242 4242 4242", "4111-1111-1111-1111", "amex 378282246310005."),
        near_misses=("order 4242424242424241", "id 4000000000000000123"),
    ),
    Rule(
        "iban",
        r"\b([A-Z]{2}[0-9]{2}(?:[ ]?[A-Z0-9]{4}){2,7}(?:[ ]?[A-Z0-9]{1,4})?)\b",
        trigger=r"\b[A-Z]{2}[0-9]{2}[ ]?[A-Z0-9]{4}[ ]?[A-Z0-9]{4}",
        check=_iban,
        examples=("IBAN DE89 3704 0044 0532 0130 00", "GB82WEST12345698765432"),
        near_misses=("DE88370400440532013000", "x-amz-request-id: YX17IA5Q5AZGFTX2"),
    ),
)
