"""Text in a string of JSON or code is read as what it stands for."""

from __future__ import annotations

import json

import pytest

from reverie.redact import load_redactor
from reverie.redact.escapes import escaped, unescape
from reverie.redact.rules.sample import fill

REDACTOR = load_redactor()


def test_positions_lead_back_to_the_original():
    line = rb'{"a": "one\n\"two\"\\three\tfour"}'
    plain, at = unescape(line)
    assert plain == b'{"a": "one\n"two"\\three\tfour"}'
    for word in (b"one", b"two", b"three", b"four"):
        start = plain.index(word)
        assert line[escaped(at, start) : escaped(at, start + len(word))] == word


@pytest.mark.parametrize(
    "template",
    [
        "bindpw Zebra.Maple77",
        'WiFi.begin("attic", "⟨w12⟩7");',
        "vault operator unseal ⟨b44⟩",
        "127.0.0.1:6379> AUTH ⟨w24⟩",
        "| service | password |\n|---|---|\n| wiki | ⟨w12⟩7 |",
        "2FA backup codes:\n1⟨h9⟩\n2⟨h9⟩",
        "password: Walnut47.Tundra2",
    ],
)
@pytest.mark.parametrize("depth", [1, 2])
def test_secret_in_a_string_is_found_and_the_string_stays_whole(template, depth):
    text = "before\n" + fill(template) + "\nafter"
    assert REDACTOR.text(text).text != text
    wrapped = text
    for _ in range(depth):
        wrapped = json.dumps({"role": "tool", "content": wrapped})
    clean = REDACTOR.text(wrapped).text
    assert clean != wrapped
    for _ in range(depth):
        clean = json.loads(clean)["content"]
    assert clean.startswith("before\n")
    assert clean.endswith("\nafter")


@pytest.mark.parametrize(
    "text",
    [
        'password = input("Enter password: ")',
        "password expired on 2031-09-09T18:18:27Z",
        "password: app.db.password",
        "SELECT password FROM users WHERE id = 12345",
    ],
)
def test_what_follows_a_line_end_is_no_part_of_a_value(text):
    wrapped = json.dumps({"content": f"ok\n{text}\ndone"})
    assert REDACTOR.text(wrapped).text == wrapped
