"""The value of statements."""

from __future__ import annotations

import pytest

from reverie.distil.must_keep import matters
from reverie.distil.value import MUST_KEEP, Value, model


@pytest.mark.parametrize(
    "text",
    [
        "My son is allergic to eggs.",
        "Never edit the generated files.",
        "I would rather get a text message than a call.",
        "The passport expires in September.",
        "We decided to keep the old supplier because of the price.",
        "Remember to call the insurance company.",
        "Biscuit must not have cheese.",
        "Call the plumber if it happens a third time.",
    ],
)
def test_what_matters_must_be_kept(text: str) -> None:
    verdict = model().judge([text])[0]
    assert verdict.must_keep
    assert not verdict.chatter


@pytest.mark.parametrize(
    "text", ["Good morning!", "Thanks, that helps a lot.", "Haha, so true.", "Sounds great to me!"]
)
def test_chatter_is_chatter(text: str) -> None:
    verdict = model().judge([text])[0]
    assert verdict.chatter
    assert not verdict.must_keep


@pytest.mark.parametrize(
    "text",
    [
        "Jonas burnt the pancakes.",
        "The train back was late and I slept in the station.",
        "Ticket 3101 opened by Café Aurora.",
        "Weather for Bremen today: 17 degrees, light wind.",
        "Gestern war die Leitung bis neun Uhr gestört.",
    ],
)
def test_events_and_reports_need_not_be_kept(text: str) -> None:
    assert not matters(text, model().judge([text])[0])


def test_a_prohibition_must_be_kept_whatever_else_is_said() -> None:
    text = "Biscuit must not have cheese, she was sick all night"
    assert matters(text, model().judge([text])[0])


def test_verdicts_do_not_depend_on_the_company() -> None:
    texts = ["Good morning!", "My son is allergic to eggs.", "", "日本語のメモ", "x" * 5000]
    together = model().judge(texts)
    assert [model().judge([text])[0] for text in texts] == together
    assert together[1].kind in MUST_KEEP


@pytest.mark.parametrize(
    "text",
    [
        "Ich bin gegen Haselnüsse allergisch.",
        "Bitte niemals am Freitag ausliefern.",
        "Je préfère travailler le matin.",
        "La reunión se ha aplazado al 12 de junio.",
        "私はえびアレルギーです。",
        "次の会議は5月12日の15時からです。",
        "我对海鲜过敏。",
        "موعد الطبيب يوم الثلاثاء الساعة العاشرة.",
        "У меня аллергия на орехи.",
    ],
)
def test_what_matters_is_kept_in_other_languages(text: str) -> None:
    verdict = model().judge([text])[0]
    assert verdict.must_keep
    assert not verdict.chatter


@pytest.mark.parametrize(
    "text",
    [
        "Schönes Wetter heute!",
        "Bonne question !",
        "今日はいい天気ですね。",
        "الجو جميل اليوم.",
    ],
)
def test_chatter_in_other_languages_may_leave(text: str) -> None:
    assert not model().judge([text])[0].must_keep


def test_a_language_without_labels_is_kept() -> None:
    texts = ["Olen allerginen pähkinöille ja kalalle, mutta en muulle.", "Я живу у Львові й їжджу на роботу."]
    assert all(verdict.must_keep for verdict in model().judge(texts))


@pytest.mark.parametrize("text", ["Is it in the contract?", "Do we have a Turkish speaker?", "So what happens in May?"])
def test_a_question_alone_is_not_kept(text: str) -> None:
    assert not matters(text, model().judge([text])[0])


def test_a_request_in_the_form_of_a_question_is_kept() -> None:
    text = "Could you always answer with the sources at the end?"
    assert matters(text, Value("instruction", must_keep=True, chatter=False, weight=1800))
