from __future__ import annotations

import pytest

from reverie.redact import KnownSecrets, load_redactor

REDACTOR = load_redactor()


def redact(text):
    return REDACTOR.text(text).text


@pytest.mark.parametrize(
    "leak",
    [
        "[BYOK:value]",
        "[byok:value]",
        "[ByOk : value ]",
        "[ BYOK\t:value]",
        "[B\u200bYO\u00adK:value]",
        "[BYOK\ufeff:val\u2060ue]",
        "［ＢＹＯＫ：value］",
        "【BYOK:value】",
        "[ＢＹＯＫ:value]",
        "<BYOK:value>",
        "{BYOK:value}",
        "(BYOK:value)",
        "&lt;BYOK:value&gt;",
        "&#91;BYOK:value&#93;",
        "&#x5B;BYOK:value&#x5D;",
        "&lbrack;BYOK:value&rbrack;",
        "\\u003cBYOK:value\\u003e",
        "\\u005bBYOK:value\\u005D",
        "%5BBYOK:value%5D",
        "[BYOK:va[lu]e]",
        "[BYOK:[[value]]]",
        "[BYOK:va]lue]",
        "[BYOK:]",
        "[\x1b[31mBYOK\x1b[0m:value]",
    ],
)
def test_byok_leak_becomes_a_fixed_marker(leak):
    assert redact(f"before {leak} after") == "before [REDACTED:byok] after"
    assert REDACTOR.text(leak).findings == {"form-leak": 1}


def test_unclosed_byok_reaches_to_the_end_of_its_line():
    assert redact("a [BYOK:value and more\nnext line") == "a [REDACTED:byok]\nnext line"
    assert redact("a [BYOK:value\r\nnext") == "a [REDACTED:byok]\r\nnext"


@pytest.mark.parametrize("text", ["BYOK: bring your own key", "the [BYOKER:x]", "[BYO:k]", "byok"])
def test_talk_about_byok_is_left_alone(text):
    assert redact(text) == text


@pytest.mark.parametrize(
    ("marker", "canonical"),
    [
        ("<REDACTED:db-password>", "[REDACTED:db-password]"),
        ("<redacted:label>", "[REDACTED:label]"),
        ("< Redacted : label >", "[REDACTED:label]"),
        ("{REDACTED:label}", "[REDACTED:label]"),
        ("<REDACTED>", "[REDACTED:source]"),
        ("<REDACTED:>", "[REDACTED:source]"),
        ("{redacted}", "[REDACTED:source]"),
        ("<REDACTED: >", "[REDACTED:source]"),
        ("&lt;REDACTED:label&gt;", "[REDACTED:label]"),
        ("\\u003cREDACTED:label\\u003e", "[REDACTED:label]"),
        ("＜ＲＥＤＡＣＴＥＤ：label＞", "[REDACTED:label]"),
        ("<REDACTED:not a plain id>", "[REDACTED:source]"),
        ("<REDACTED:a<b>c>", "[REDACTED:source]"),
        ("[redacted:label]", "[REDACTED:label]"),
        ("[REDA\u200bCTED:label]", "[REDACTED:label]"),
        ("[REDACTED:" + "x" * 80 + "]", "[REDACTED:source]"),
    ],
)
def test_marker_variant_becomes_canonical(marker, canonical):
    assert redact(f"before {marker} after") == f"before {canonical} after"


@pytest.mark.parametrize(
    "text",
    [
        "[REDACTED:id]",
        "x[REDACTED:a][REDACTED:b_c.d-e]y",
        "[[REDACTED:a]]",
        "[REDACTED]",
        "(redacted)",
        "redacted: yes",
    ],
)
def test_canonical_marker_stays(text):
    redaction = REDACTOR.text(text)
    assert redaction.text == text
    assert not redaction.findings


def test_a_marker_is_no_way_to_smuggle_a_secret():
    known = KnownSecrets([("db", "correct-horse-battery")])
    assert REDACTOR.text("[REDACTED:correct-horse-battery]", known).text == "[REDACTED:db]"
    assert REDACTOR.text("<REDACTED:correct-horse-battery>", known).text == "[REDACTED:db]"
    assert redact("[REDACTED:" + "AKIA" + "QWERTYUIOP234567" + "]") == "[REDACTED:aws-access-key]"
    assert redact("[REDACTED:" + "gh" + "p_" + "a1B2" * 9 + "]") == "[REDACTED:github-token]"


def test_registered_id_is_kept_even_if_it_looks_like_a_token():
    key_id = "key-0123456789abcdef0123456789abcdef"
    known = KnownSecrets([(key_id, "the actual value")])
    assert REDACTOR.text("the actual value", known).text == f"[REDACTED:{key_id}]"
