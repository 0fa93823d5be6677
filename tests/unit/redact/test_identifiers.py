"""Ordinary identifiers stay as they are; the same string as the value of a credential does not."""

from __future__ import annotations

import pytest

from reverie.redact import load_redactor
from reverie.redact.rules.sample import fill

REDACTOR = load_redactor()
UUID = "⟨h8⟩-⟨h4⟩-⟨h4⟩-⟨h4⟩-⟨h12⟩"
NAMES = [
    f"WCT1-BLACKBOX-SECRET-{UUID}",
    f"secret-santa-{UUID}",
    f"access-log-{UUID}",
    f"order-key-{UUID}",
    f"token-{UUID}",
    f"client_secret_{UUID}",
    f"auth.{UUID}",
    "ACME-SKU-BLUE-⟨h32⟩",
    "ACME-SKU-BLUE-⟨h12⟩",
    "order-key-⟨h32⟩",
    "acme-key-⟨h32⟩",
    "session-token-⟨h40⟩",
    "access-log-⟨H32⟩",
    "user-key-⟨d20⟩",
    "api-key-⟨h8⟩",
]
PLACES = ["{}", "see {} for it", "the key {} was lost", "id: {}", '{{"id": "{}"}}', "`{}`", "notes/{}.md", "name={}"]
CREDENTIALS = [
    "api_key={}",
    "API_KEY: {}",
    '"client_secret": "{}"',
    "Authorization: Bearer {}",
    "export SECRET_TOKEN={}",
    "curl -H 'X-Api-Key: {}' https://host.example",
    "the token is {}",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_with_a_uuid_or_a_digest_is_left_alone(name):
    for seed, place in enumerate(PLACES):
        text = place.format(fill(name, seed))
        assert REDACTOR.text(text).text == text


@pytest.mark.parametrize("name", [name for name in NAMES if not name.endswith(("⟨h8⟩", "⟨h12⟩", "⟨d20⟩"))])
def test_the_same_name_as_the_value_of_a_credential_is_redacted(name):
    for seed, place in enumerate(CREDENTIALS):
        value = fill(name, seed)
        if name.startswith("auth.") and "is {}" in place:
            continue  # A dotted name in a sentence reads like a member.
        assert value[-12:] not in REDACTOR.text(place.format(value)).text


@pytest.mark.parametrize(
    "token", ["xyz_live_⟨w32⟩", "acme-key-⟨w32⟩", "qxwv-secret-⟨h40⟩", "key-⟨h32⟩", "signkey-prod-⟨h64⟩", "live_⟨w30⟩"]
)
def test_a_token_by_its_prefix_is_still_found(token):
    for seed, place in enumerate(["{}", "see {} for it", "`{}`"]):
        value = fill(token, seed)
        assert value[-12:] not in REDACTOR.text(place.format(value)).text


def test_a_file_or_tag_with_such_a_name_keeps_it():
    value = {"tags": [fill(f"order-key-{UUID}")], "path": fill(f"NAME-SECRET-{UUID}.md")}
    assert REDACTOR.value(value) == (value, {})
