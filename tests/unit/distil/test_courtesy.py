"""Courtesies say nothing, in any language; a word more and they do."""

from __future__ import annotations

import pytest

from reverie.distil.courtesy import is_courtesy
from reverie.distil.value import model


@pytest.mark.parametrize(
    "text",
    [
        "Good morning!",
        "Thanks, Ines!",
        "Wow, Theo, that's great!",
        "Guten Morgen zusammen!",
        "Merci beaucoup !",
        "¡Muchas gracias!",
        "Спасибо большое!",
        "صباح الخير، شكراً جزيلاً!",
        "नमस्ते, बहुत धन्यवाद!",
        "了解しました。ありがとうございます。",
        "谢谢大家！",
        "감사합니다!",
        "ขอบคุณมากครับ",
    ],
)
def test_courtesies_are_chatter(text: str) -> None:
    assert is_courtesy(text)
    verdict = model().judge([text])[0]
    assert verdict.chatter
    assert not verdict.must_keep


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Yes, Rotterdam.",
        "Thanks, Monday.",
        "Danke, die Rechnung 4711 ist bezahlt.",
        "我对花生过敏。",
        "ピーナッツアレルギーがあります。",
        "أنا مصاب بالسكري.",
        "Good morning! The alarm code changed.",
    ],
)
def test_a_word_more_is_a_statement(text: str) -> None:
    assert not is_courtesy(text)


def test_a_statement_in_another_language_must_be_kept() -> None:
    texts = ["我对花生过敏。", "ピーナッツアレルギーがあります。", "أنا مصاب بالسكري ولا آكل السكر."]
    assert all(verdict.must_keep for verdict in model().judge(texts))
