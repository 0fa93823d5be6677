"""Every rule finds its examples, nothing random of them is left, and its near misses stay as they are."""

from __future__ import annotations

from itertools import product

import pytest

from reverie.redact import RULES, Redactor, load_redactor
from reverie.redact.markers import BYOK, CANONICAL, SOURCE
from reverie.redact.rules.loader import random_parts
from reverie.redact.rules.sample import fill

REDACTOR = load_redactor()
SEEDS = range(2)


PIECE = 8


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.kind)
def test_examples_are_found_by_their_rule_and_gone_whole(rule):
    alone = Redactor([rule])
    for example, seed in product(rule.examples, SEEDS):
        text = fill(example, seed)
        assert rule.label in alone.text(text).findings, text
        redacted = REDACTOR.text(text).text
        for part in random_parts(example, seed):
            pieces = {part[i : i + PIECE] for i in range(len(part) - PIECE + 1)}
            assert not [piece for piece in pieces if piece in redacted], (text, redacted)


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.near_misses], ids=lambda rule: rule.kind)
def test_near_misses_are_left_alone(rule):
    for near_miss, seed in product(rule.near_misses, SEEDS):
        text = fill(near_miss, seed)
        assert REDACTOR.text(text).text == text


def test_kinds_are_unique_plain_labels():
    kinds = [rule.kind for rule in RULES]
    assert len(kinds) == len(set(kinds))
    for kind in kinds:
        assert CANONICAL.fullmatch(f"[REDACTED:{kind}]".encode())


def test_there_are_well_over_ninety_kinds():
    assert len(RULES) > 90


def test_our_own_markers_are_stable():
    for label in (*(rule.kind for rule in RULES), BYOK, SOURCE, "told-in-words", "told-pair", "foreign-secret"):
        for text in (
            f"[REDACTED:{label}]",
            f"password=[REDACTED:{label}]",
            f"Bearer [REDACTED:{label}] x",
            f"a://b:[REDACTED:{label}]@c",
        ):
            assert REDACTOR.text(text).text == text


@pytest.mark.parametrize(
    "text",
    [
        "write to ada@example.org or call +44 20 7946 0958",
        "the server is at 192.168.0.12:8080 and 2001:db8::1",
        "commit 3f786850e387550fdab836ed7e6dc881de23001b fixed it",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "trace id 4bf92f3577b34da6a3ce929d0e0e4736",
        "id 123e4567-e89b-12d3-a456-426614174000",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4",
        "color: #ff8800; background: #AABBCC",
        "at 0x00007ffee3b0f8a0 in main()",
        "version 3.11.7, released 2024-12-04T10:15:00Z",
        "Use a strong password and never share your token with anyone.",
        "Her secret ingredient is smoked paprika.",
        "The key insight: tokens are cheap, attention is not.",
        "max_tokens=8000 token_count: 512 total_tokens=1234567",
    ],
)  # fmt: skip
def test_ordinary_text_is_untouched(text):
    assert REDACTOR.text(text).text == text


@pytest.mark.parametrize(
    "template",
    [
        'if password == "Tr0ub4dor&3":',
        "$password = 'Tr0ub4dor&3';",
        "define('DB_PASSWORD', 'Tr0ub4dor&3');",
        "user=bob pass=Tr0ub4dor3",
        "username: bob\npassword: Tr0ub4dor3",
        "Contraseña: Hola2024!",
        "mot de passe : Bonjour77!",
        "пароль: Qwerty12!",
        "密码：Abc12345!",
        "JWT_SECRET=mysupersecretjwtkey⟨d3⟩",
        "https://admin:admin123@192.0.2.1/",
        "kubectl create secret generic x --from-literal=password=S3cr3t!x",
        "softlayer api key: ⟨h64⟩",
        "DATADOG_APP_KEY=⟨h40⟩",
        "Heroku api key ⟨h8⟩-⟨h4⟩-⟨h4⟩-⟨h4⟩-⟨h12⟩",
        "--header 'PRIVATE-TOKEN: ⟨w20⟩'",
        "login ada / password TujOG-ZzUWA-isMJq",
        "SECRET_KEY = 'django-insecure-⟨a50⟩'",
    ],
)
def test_secret_is_known_by_its_surroundings(template):
    text = fill(template)
    assert REDACTOR.text(text).text != text


@pytest.mark.parametrize(
    "text",
    [
        "PWD=/usr/local/bin",
        "token = lexer.nextToken()",
        "api_key=YOUR_API_KEY",
        "api_key=xxxxxxxxxxxxxxxx",
        "password = None",
        "password_hash = sha256(password + salt)",
        "authority: 10",
        "key: ctrl+shift+p",
        "secret_key_base: <%= ENV['SECRET_KEY_BASE'] %>",
        "token: ${{ secrets.GITHUB_TOKEN }}",
        "csrf_token: {{ csrf_token() }}",
        "seed=1234567890",
        "signature = inspect.signature(func1)",
        "label_key=app.kubernetes.io/name",
        "ssh_key: ~/.ssh/id_ed25519",
        "arn:aws:secretsmanager:us-east-1:123456789012:secret:prod/db-AbCdEf",
        "GET /token/9fceb02d0ae598e95dc970b74767f193 HTTP/1.1",
        "password: {type: string, minLength: 8}",
        '<input type="password" name="password" id="login-pw1">',
        "Content-MD5: 1B2M2Y8AsgTpgAmY7PhCfg==",
        "kubectl get secret my-secret-v2",
        "his password is longer than 20chars",
    ],
)
def test_talk_about_secrets_is_untouched(text):
    assert REDACTOR.text(text).text == text
