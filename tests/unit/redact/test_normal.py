from __future__ import annotations

from reverie.redact.markers import compiled
from reverie.redact.normal import _FOLD, DISGUISE, fold, unfold

PATTERN = compiled(DISGUISE)


def test_every_disguise_is_noticed():
    for code in _FOLD:
        assert PATTERN.search(chr(code).encode()), hex(code)


def test_plain_text_is_its_own_fold():
    text = "plain text, Grüße, 你好 — naïve\t\n"
    assert fold(text) == text


def test_spans_of_the_fold_are_spans_of_the_text():
    text = "a\u200bb\u00ad[\x1b[31mＸ\x1b[0m]c"
    folded = fold(text)
    assert folded == "ab[X]c"
    (span,) = unfold(text, [(2, 5)])
    assert text[slice(*span)] == "[\x1b[31mＸ\x1b[0m]"
