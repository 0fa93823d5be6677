"""Token counts, frozen. A change here means that a dependency counts differently: find out why before accepting it."""

from __future__ import annotations

import threading

import pytest

from reverie.providers.tokenizer import ENCODINGS, TokenCounter

GOLDEN = [
    # text, o200k_base, cl100k_base
    ("", 0, 0),
    ("a", 1, 1),
    (" ", 1, 1),
    ("\n", 1, 1),
    ("Hello, world!", 4, 4),
    ("hello world", 2, 2),
    ("The quick brown fox jumps over the lazy dog.", 10, 10),
    ("    indented", 3, 3),
    ("a  b   c", 5, 5),
    ("tabs\tand\nnewlines\r\n", 6, 6),
    ("1234567890", 4, 4),
    ("3.14159", 4, 4),
    ("2023-05-08T13:56:00Z", 13, 13),
    ("don't can't won't I'm we've", 5, 10),
    ("caf\xe9 na\xefve", 4, 4),
    ("\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440", 4, 6),
    ("\u65e5\u672c\u8a9e\u306e\u30c6\u30ad\u30b9\u30c8\u3067\u3059\u3002", 8, 10),
    ("\uc548\ub155\ud558\uc138\uc694 \uc138\uacc4", 3, 9),
    ("\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645", 4, 10),
    ("\U0001f600\U0001f603\U0001f469\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466\U0001f1e9\U0001f1ea", 18, 28),
    ("\ufeffbom", 2, 3),
    ("<|im_start|>system<|im_end|>", 13, 13),
    ("<|endoftext|>", 7, 7),
    ("def f(x: int) -> int:\n    return x + 1\n", 16, 16),
    ('{"key": [1, 2, {"nested": null}]}', 15, 15),
    ("https://example.org/path?query=1&x=%20y", 14, 14),
    ("user@example.com", 3, 3),
    ("ERR_CONNECTION_REFUSED 0xDEADBEEF", 10, 10),
    ("CamelCaseIdentifier snake_case_identifier", 6, 7),
    ("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 4, 4),
    ("----------------", 1, 1),
    ("!!!???...", 3, 3),
    ("a\u0301e\u0301", 4, 4),
    ("\u200b\u200d", 2, 3),
    ("x\x00y", 3, 3),
    ("\ud800", 1, 1),
    ("ok \udfff ok", 3, 3),
    ("\U0001d518\U0001d52b\U0001d526\U0001d520\U0001d52c\U0001d521\U0001d522", 21, 21),
    ("\u017ftra\xdfe \u0152UVRE", 7, 8),
    ("SELECT * FROM entries WHERE id = 'x';", 10, 10),
    ("lorem ipsum dolor sit amet " * 20, 102, 102),
    ("ANTIDISESTABLISHMENTARIANISM", 10, 10),
]


@pytest.mark.parametrize(("text", "o200k", "cl100k"), GOLDEN)
def test_counts(text, o200k, cl100k):
    assert TokenCounter().count(text) == o200k
    assert TokenCounter("cl100k_base").count(text) == cl100k


def test_default_is_advertised_by_name():
    assert TokenCounter().name == "o200k_base"
    assert [TokenCounter(name).name for name in ENCODINGS] == list(ENCODINGS)


def test_unknown_encodings_are_refused():
    with pytest.raises(ValueError, match="o200k_base"):
        TokenCounter("p50k_base")


def test_special_tokens_in_text_are_text():
    assert TokenCounter().count("<|endoftext|>") > 1


def test_lone_surrogates_count_as_replacement_characters():
    counter = TokenCounter()
    assert counter.encode("a\ud800b") == counter.encode("a\ufffdb")


def test_threads_agree():
    counter = TokenCounter()
    counts: list[int] = []
    threads = [threading.Thread(target=lambda: counts.append(counter.count("one two three " * 50))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [counter.count("one two three " * 50)] * 8
