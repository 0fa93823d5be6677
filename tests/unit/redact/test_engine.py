from __future__ import annotations

import time

import pytest

from reverie.redact import RULES, KnownSecrets, Redaction, Redactor
from reverie.redact.entropy import looks_random
from reverie.redact.rules.plausible import is_placeholder, is_scramble
from reverie.redact.rules.sample import fill

REDACTOR = Redactor()
KNOWN = KnownSecrets([("db", "correct-horse-battery"), ("api", "0123456789abcdef-api")])
TOKEN = "gh" + "p_" + "a1B2c3D4e5F6" * 3


def test_clean_text_is_returned_as_it_is():
    text = "nothing to see"
    assert REDACTOR.text(text) == Redaction(text, {})
    assert REDACTOR.text(text).text is text


def test_findings_hold_counts_by_kind():
    redaction = REDACTOR.text(f"{TOKEN} [BYOK:x] correct-horse-battery", KNOWN)
    assert redaction.findings == {"github-token": 1, "form-leak": 1, "known-secret": 1}


def test_findings_cannot_be_changed():
    with pytest.raises(TypeError):
        REDACTOR.text(TOKEN).findings["x"] = 1


def test_specific_rule_names_the_marker():
    assert REDACTOR.text(f"token={TOKEN}").text == "token=[REDACTED:github-token]"


def test_known_secret_inside_a_larger_find_keeps_its_id():
    assert REDACTOR.text("https://u:correct-horse-battery@h/", KNOWN).text == "https://u:[REDACTED:db]@h/"


def test_version_follows_the_rules():
    assert Redactor().version == REDACTOR.version
    assert Redactor(RULES[:-1]).version != REDACTOR.version


def test_long_text_is_redacted_the_same_as_its_parts():
    lines = [f"line {i} of ordinary text" for i in range(4_000)]
    lines[10] = f"token={TOKEN}"
    lines[2_000] = "it was correct-horse-battery all along"
    lines[3_999] = "[BYOK:never closed"
    whole = REDACTOR.text("\n".join(lines), KNOWN).text.split("\n")
    assert whole == [REDACTOR.text(line, KNOWN).text for line in lines]


def test_private_key_across_blocks_is_redacted_whole():
    body = "\n".join(fill("⟨b64⟩", seed) for seed in range(700))
    text = "x\n" * 8_000 + f"-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----\nafter"
    redacted = REDACTOR.text(text).text
    assert redacted == "x\n" * 8_000 + "[REDACTED:private-key]\nafter"


def test_known_value_over_several_lines():
    value = "first line of it\nsecond line of it\n"
    known = KnownSecrets([("multi", value)])
    assert REDACTOR.text(f"a {value} b", known).text == "a [REDACTED:multi] b"
    assert REDACTOR.text("first line of it\\nsecond line of it\\n", known).text == "[REDACTED:multi]"


def test_many_is_text_on_each():
    texts = [
        "",
        "plain",
        TOKEN,
        "",
        "correct-horse-battery",
        "\n",
        "[BYOK:a",
        "zero\u200bwidth",
        "password=hunter2-Xy9!",
        "last",
    ] * 30
    assert REDACTOR.many(texts, KNOWN) == [REDACTOR.text(text, KNOWN) for text in texts]
    assert REDACTOR.many([]) == []


def test_many_does_not_join_a_secret_out_of_two_texts():
    assert [r.text for r in REDACTOR.many(["correct-horse", "-battery"], KNOWN)] == ["correct-horse", "-battery"]


class TestValue:
    def test_every_string_is_redacted(self):
        value = {"a": [f"x {TOKEN}", 1, None, True, 2.5], "correct-horse-battery": {"b": "[BYOK:x]"}}
        clean, findings = REDACTOR.value(value, KNOWN)
        assert clean == {
            "a": ["x [REDACTED:github-token]", 1, None, True, 2.5],
            "[REDACTED:db]": {"b": "[REDACTED:byok]"},
        }
        assert findings == {"github-token": 1, "known-secret": 1, "form-leak": 1}

    def test_keys_that_collide_lose_nothing(self):
        value = {
            "correct-horse-battery": 1,
            "[REDACTED:db]": 2,
            "correct-horse-battery correct-horse-battery": 3,
            "<REDACTED:db>": 4,
        }
        clean, _ = REDACTOR.value(value, KNOWN)
        assert sorted(clean.values()) == [1, 2, 3, 4]
        assert clean["[REDACTED:db]"] == 2
        assert REDACTOR.value(clean, KNOWN)[0] == clean

    def test_a_value_is_judged_with_its_key(self):
        clean, findings = REDACTOR.value({"password": "hunter2-Xy9!", "note": "hunter2-Xy9!", "token_type": "bearer"})
        assert clean == {"password": "[REDACTED:generic-secret]", "note": "hunter2-Xy9!", "token_type": "bearer"}
        assert findings == {"generic-secret": 1}
        assert REDACTOR.value(clean) == (clean, {})

    def test_a_redacted_key_is_no_context(self):
        clean, _ = REDACTOR.value({"[REDACTED:private-key]": "hunter2-Xy9!", f"{TOKEN} password": "hunter2-Xy9!"})
        assert clean == {"[REDACTED:private-key]": "hunter2-Xy9!", "[REDACTED:github-token] password": "hunter2-Xy9!"}

    def test_the_original_is_not_changed(self):
        value = {"a": [TOKEN]}
        REDACTOR.value(value)
        assert value == {"a": [TOKEN]}

    def test_deep_nesting(self):
        value = TOKEN
        for _ in range(50_000):
            value = [value]
        clean, findings = REDACTOR.value(value)
        assert findings == {"github-token": 1}
        for _ in range(50_000):
            clean = clean[0]
        assert clean == "[REDACTED:github-token]"


@pytest.mark.parametrize(
    "text",
    [
        "[" * 1_000_000,
        "[BYOK:" * 100_000,
        "<REDACTED:" * 100_000,
        "<REDACTED:x>" * 15_000,
        "[REDACTED:x]" * 15_000,
        "password=" * 100_000,
        "password: a " * 50_000,
        "ghp_" * 200_000,
        "sk-" * 300_000,
        "AKIA" * 200_000,
        "eyJ." * 200_000,
        "-----BEGIN RSA PRIVATE KEY-----\n" * 20_000,
        "https://a:b" * 80_000,
        "\u200b[" * 200_000,
        "\ud800" * 100_000,
        "\x00" * 500_000,
        "\u202e[BYOK:\u202c" * 50_000,
        "a" * 1_000_000,
        "A1b2-" * 200_000,
        "cookie: a=b; " * 60_000,
        "{\"token\":" * 100_000,
    ],
    ids=[str(i) for i in range(21)],
)  # fmt: skip
def test_hostile_text_is_fast_and_never_raises(text):
    started = time.process_time()
    once = REDACTOR.text(text, KNOWN)
    assert time.process_time() - started < 5
    if len(text) < 700_000:
        assert REDACTOR.text(once.text, KNOWN).text == once.text


def test_a_token_at_the_start_of_any_line_of_a_long_text_is_found() -> None:
    """Long texts are read in pieces: a pattern that begins with the line end before it sees it at every piece."""
    lines = [f"{'harbour ' * (40 + n % 60)}\n{fill('AP6x⟨w14⟩', n)} was here\n" for n in range(120)]
    assert Redactor().text("".join(lines)).findings == {"artifactory-password": 120}


@pytest.mark.parametrize("shift", range(3))
def test_a_long_line_of_unseen_characters_around_a_secret_is_read_again_in_whole_characters(shift: int) -> None:
    """Around a change only a part of a long line is read; a part that cut a character raised."""
    secret = "\u200b".join(fill("⟨w12⟩"))
    text = "x" * shift + "\u200b" * 3_000 + f"password is {secret}" + "\u200b" * 3_000
    redaction = REDACTOR.text(text)
    assert redaction.findings == {"password-in-text": 1}
    assert secret not in redaction.text


def test_values_under_their_keys_are_filtered_together(monkeypatch):
    redactor, sizes = Redactor(), []
    match = redactor._filter.match
    monkeypatch.setattr(redactor._filter, "match", lambda data, **how: sizes.append(len(data)) or match(data, **how))
    counts = []
    for number in (2, 40):
        sizes.clear()
        redactor.value({f"field {n}": f"plain words, number {n}" for n in range(number)})
        counts.append(len(sizes))
    assert counts == [2, 2]


def test_no_candidate_stays_in_the_process_after_its_text():
    judges = [looks_random, is_scramble, is_placeholder]
    for judge in judges:
        judge("Zq8vT3mK9xR2bW7nP4cL6")
    assert [judge.cache_info().currsize for judge in judges] == [1, 1, 1]
    assert REDACTOR.text("password: Zq8vT3mK9xR2bW7nP4cL6").findings
    assert [judge.cache_info().currsize for judge in judges] == [0, 0, 0]
