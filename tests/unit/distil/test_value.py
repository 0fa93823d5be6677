"""The value of statements."""

from __future__ import annotations

import pytest

from reverie.distil.must_keep import matters
from reverie.distil.value import FIGURE, MUST_KEEP, Value, language_of, model


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
        "build ok (14.2 s)",
        "CI ok",
        "tests 88/88",
        "Reading src/http/client.py.",
        "Morning all, coffee is ready in the kitchen.",
        "Let me check the next file.",
    ],
)
def test_terse_reports_and_small_talk_need_not_be_kept(text: str) -> None:
    verdict = model().judge([text])[0]
    assert not matters(text, verdict)
    assert verdict.chatter


@pytest.mark.parametrize(
    "text", ["port 7443", "no deploys after 16:00", "hazelnut allergy: Mika", "lease ends 30 June"]
)
def test_terse_notes_that_matter_must_be_kept(text: str) -> None:
    assert model().judge([text])[0].must_keep


@pytest.mark.parametrize("text", ["build ok (14.2 s)", "sync ok", "compile ok 31.0 s"])
def test_a_report_without_words_of_a_language_is_read_as_english(text: str) -> None:
    assert language_of(text) == "english"


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


def test_a_change_of_a_value_must_be_kept() -> None:
    texts = ["Raised the import job's timeout to 40 minutes.", "Lowered the quota of the archive to 2 TB"]
    assert all(matters(text, verdict) for text, verdict in zip(texts, model().judge(texts), strict=True))


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


def test_a_figure_alone_is_never_must_keep() -> None:
    """Single digits have vectors of their own, and one of them was taken for a setting."""
    bare = [*map(str, range(10)), "42.", "(311)", "- 7 -"]
    assert not any(value.must_keep for value in model().judge(bare))
    assert all(value is FIGURE for value in model().judge(bare))
