from __future__ import annotations

import base64
import json
from urllib.parse import quote

import pytest

from reverie.redact import KnownSecrets, Redactor

REDACTOR = Redactor([])
VALUE = 's3cr/et+va lue&"x"é'
KNOWN = KnownSecrets([("vault-1", VALUE)])


def redact(text, known=KNOWN):
    return REDACTOR.text(text, known)


def test_value_is_replaced_by_its_id():
    redaction = redact(f"it is {VALUE}, twice: {VALUE}")
    assert redaction.text == "it is [REDACTED:vault-1], twice: [REDACTED:vault-1]"
    assert redaction.findings == {"known-secret": 2}


@pytest.mark.parametrize(
    "form", [quote(VALUE), quote(VALUE, safe=""), json.dumps(VALUE)[1:-1], json.dumps(VALUE, ensure_ascii=False)[1:-1]]
)
def test_encoded_forms_are_caught(form):
    assert redact(f"a={form}&b").text == "a=[REDACTED:vault-1]&b"


@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
@pytest.mark.parametrize("before", ["", "u", "us", "use"])
@pytest.mark.parametrize("after", ["", "x", "xy", "xyz"])
def test_base64_in_any_alignment_is_caught(encode, before, after):
    encoded = encode((before + VALUE + after).encode()).decode()
    redacted = redact(f"<{encoded}>").text
    assert "[REDACTED:vault-1]" in redacted
    assert len(redacted) < len("<[REDACTED:vault-1]>") + 14


def test_short_values_are_ignored():
    assert not KnownSecrets([("a", "1234567")])
    assert KnownSecrets([("a", "12345678")])


def test_longest_value_wins():
    known = KnownSecrets([("short", "abcdefgh"), ("long", "abcdefgh-and-more")])
    assert redact("x abcdefgh-and-more y abcdefgh", known).text == "x [REDACTED:long] y [REDACTED:short]"


def test_metacharacters_are_plain_text():
    known = KnownSecrets([("re", "a.*b(c|d)+[e]$")])
    assert redact("aXXb(c|d)+[e]$", known).text == "aXXb(c|d)+[e]$"
    assert redact("a.*b(c|d)+[e]$", known).text == "[REDACTED:re]"


def test_ids_become_plain_identifiers():
    known = KnownSecrets([("tenant/prod key]", "0123456789")])
    assert redact("0123456789", known).text == "[REDACTED:tenant-prod-key]"


def test_an_id_that_contains_its_value_does_not_leak_it():
    known = KnownSecrets([("hunter2hunter2", "hunter2hunter2")])
    assert redact("hunter2hunter2", known).text == "[REDACTED:secret]"


@pytest.mark.parametrize("value", ["REDACTED", "[REDACTED:", "REDACTED:secret", "TED:byok]"])
def test_a_value_that_is_part_of_the_marker_does_not_survive(value):
    known = KnownSecrets([("byok", value), ("other", "0123456789")])
    text = redact(f"{value} 0123456789 [BYOK:x] [REDACTED:byok]", known).text
    assert value not in text
    assert redact(text, known).text == text


def test_a_value_completed_by_a_replacement_does_not_survive():
    known = KnownSecrets([("x", "0123456789"), ("y", "x] hello")])
    text = redact("0123456789 hello hello hello", known).text
    assert "x] hello" not in text


def test_registries_add_up():
    tenant = KnownSecrets([("a", "tenant-secret"), ("b", "shared-secret")])
    run = KnownSecrets([("c", "run-secret-1"), ("d", "shared-secret")])
    both = tenant + run
    assert redact("tenant-secret run-secret-1 shared-secret", both).text == "[REDACTED:a] [REDACTED:c] [REDACTED:b]"
    assert tenant + KnownSecrets.EMPTY is tenant
    assert KnownSecrets.EMPTY + run is run


def test_large_registries_add_up_without_being_rebuilt():
    tenant = KnownSecrets((f"t{i}", f"tenant-value-{i:05}") for i in range(2_000))
    both = tenant + KnownSecrets([("r", "run-secret-1")])
    assert redact("tenant-value-01999 run-secret-1", both).text == "[REDACTED:t1999] [REDACTED:r]"


def test_a_registry_shows_no_value():
    assert "s3cr" not in repr(KNOWN)


def test_disguised_value_is_caught():
    known = KnownSecrets([("a", "correct-horse")])
    assert redact("cor\u200brect-\u00adhorse", known).text == "[REDACTED:a]"
    assert redact("ｃｏｒｒｅｃｔ-horse!", known).text == "[REDACTED:a]!"
