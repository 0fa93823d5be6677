from __future__ import annotations

import pytest

from reverie.distil.must_keep import find, inferred
from reverie.distil.source import Source


@pytest.mark.parametrize(
    ("sentence", "why"),
    [
        ("Backups must run nightly.", "rule"),
        ("We agreed on blue.", "decision"),
        ("The report is due by Friday.", "commitment"),
        ("Must it run nightly?", None),
        ("The sky is blue.", None),
    ],
)
def test_sentences_that_read_like_a_rule_a_decision_or_a_commitment(sentence: str, why: str | None) -> None:
    assert inferred(sentence) == why


def test_declared_items_come_from_pins_kinds_and_markers() -> None:
    found = find(
        [
            Source("a", "Anything at all.", 0, pinned=True),
            Source("b", "Use tabs. Not spaces.", 0, kind="human_directive"),
            Source("c", "Done. TODO: clean up. todo: and test. The todo list is long.", 0),
        ]
    )
    assert [(m.source_id, m.text, m.why) for m in found if m.declared] == [
        ("a", "Anything at all.", "pinned"),
        ("b", "Use tabs.", "kind"),
        ("b", "Not spaces.", "kind"),
        ("c", "TODO: clean up.", "marker"),
        ("c", "todo: and test.", "marker"),
    ]


_ANSWER = (
    "A first week can be a mix of excitement and nerves. Walk the route together a few times beforehand. Pack his bag"
    " together the evening before. Agree on a small goodbye ritual. Keep the afternoons calm and free of appointments."
    " Listen to his stories at dinner, and ask about his new friends. I booked the visit for 9 February at 8:30."
    " Never leave the medicine in the bag. Ask Mrs. Albers for the timetable. You will see that all in all it takes a little patience."
)


def test_general_advice_in_a_long_answer_of_an_assistant_need_not_be_kept() -> None:
    kept = {item.text for item in find([Source("b", _ANSWER, 2, "assistant")])}
    assert kept == {
        "I booked the visit for 9 February at 8:30.",
        "Never leave the medicine in the bag.",
        "Ask Mrs. Albers for the timetable.",
    }


def test_figures_of_general_advice_are_facts_like_others() -> None:
    figure = "The compartment costs 289 euros in addition to the seats."
    advice = Source("b", f"{_ANSWER} {figure}", 2, "assistant")
    assert figure not in {item.text for item in find([advice])}
    assert figure in {item.text for item in find([Source("a", figure, 1)])}


def test_instructions_that_an_assistant_noted_for_no_one_are_kept() -> None:
    note = _ANSWER.replace("You will see that a", "A")
    kept = {item.text for item in find([Source("b", note, 2, "assistant")])}
    assert "Keep the afternoons calm and free of appointments." in kept


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("I get carsick easily, so could you plan it by train?", "I get carsick easily"),
        ("I find group tours exhausting, can you help me plan my own?", "I find group tours exhausting"),
        ("I've been off dairy since spring, what can I bake for the party?", "I've been off dairy since spring"),
        ("I'm more of a tea person these days, any shops you know?", "I'm more of a tea person these days"),
    ],
)
def test_a_preference_before_a_request_is_kept(said: str, kept: str) -> None:
    assert [item.text for item in find([Source("a", said, 1, "user")])] == [kept]


def test_a_question_after_an_event_need_not_be_kept() -> None:
    assert find([Source("a", "I went to the market yesterday, do you know when it closes?", 1, "user")]) == ()


@pytest.mark.parametrize(
    "text",
    [
        "Smoking is prohibited in the barn.",
        "Der Hund darf auf keinen Fall nicht angeleint sein, das ist verboten.",
        "Mama darf keine Grapefruit essen.",
        "Il est interdit de fumer dans la cour.",
        "Está prohibido aparcar en el patio.",
        "Vietato usare il forno dopo le dieci.",
        "Nie wolno parkować w bramie.",
        "Собаке нельзя шоколад.",
        "Avluda top oynamak yasaktır.",
        "金曜日はデプロイしないでください。",
        "仓库内禁止吸烟。",
        "금요일에는 배포하지 마세요.",
        "ممنوع التدخين في المخزن.",
        "Ania jest uczulona na orzechy.",
    ],
)
def test_prohibitions_and_health_must_be_kept_in_many_languages(text: str) -> None:
    assert [item.text for item in find([Source("a", text, 0)])] == [text]
