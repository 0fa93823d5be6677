from __future__ import annotations

import random
import string

import pytest

from reverie.redact.entropy import is_hex, is_uuid, is_wordy, looks_random, luhn, mod97, shannon, word_share


def test_shannon_counts_bits():
    assert shannon("") == 0
    assert shannon("aaaa") == 0
    assert shannon("abcd") == 2


@pytest.mark.parametrize(
    "word", ["connection", "password", "description", "kubernetes", "background", "international", "handler"]
)
def test_words_are_wordy(word):
    assert is_wordy(word)
    assert not looks_random(word)


def test_random_letters_are_seldom_wordy():
    source = random.Random(1)
    made = ["".join(source.choices(string.ascii_lowercase, k=12)) for _ in range(500)]
    assert sum(map(is_wordy, made)) < 20


def test_random_tokens_look_random():
    source = random.Random(2)
    for length in (16, 24, 32, 40, 64):
        for alphabet in (
            string.ascii_letters + string.digits,
            "0123456789abcdef",
            string.ascii_lowercase + string.digits,
        ):
            made = ["".join(source.choices(alphabet, k=length)) for _ in range(200)]
            assert sum(map(looks_random, made)) >= 196


@pytest.mark.parametrize(
    "name",
    [
        "my-service-account-name-v2",
        "com.example.project.Handler",
        "2024-12-04T10:15:00",
        "user_profile_picture_2",
        "aaaaaaaaaaaaaaaa1",
    ],
)
def test_names_do_not_look_random(name):
    assert not looks_random(name)


def test_word_share_is_a_share():
    assert word_share("") == 0
    assert word_share("something hidden") == 1
    assert word_share("12345") == 0


def test_shapes():
    assert is_hex("00ff")
    assert not is_hex("00fF")
    assert is_uuid("123e4567-e89b-12d3-a456-426614174000")
    assert not is_uuid("123e4567")


def test_check_digits():
    assert luhn("4242 4242 4242 4242")
    assert not luhn("4242 4242 4242 4241")
    assert not luhn("0000 0000")
    assert mod97("DE89 3704 0044 0532 0130 00")
    assert not mod97("DE88 3704 0044 0532 0130 00")
    assert not mod97("Ä")
