"""One ranking, whatever the store and the order of its answers."""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace

from reverie.search.analysis import Word
from reverie.search.analysis import question as words_of
from reverie.search.currency import overtake, pairs
from reverie.search.dates import periods
from reverie.search.rank import SESSION_GAP_MS, SIGNALS, WEIGHTS, Candidate, Question, rank, worth_widening

MAY_8 = 1683554160000  # 2023-05-08 13:56 UTC


def make_candidate(name: str, **overrides) -> Candidate:
    position = int(name.strip("abcdefghijklmnopqrstuvwxyz") or 0)
    defaults = {"position": position, "created_at": MAY_8, "content": f"content of {name}", "lexical": None}
    found = {**defaults, **overrides}
    return Candidate(id=name, **{"cover": 1.0 if found["lexical"] else 0.0, **found})


def ask(query: str) -> Question:
    return Question(query, words_of(query), periods(query, MAY_8))


def chain(*ids: int) -> dict[int, tuple[int | None, int | None]]:
    return {one: (before, after) for before, one, after in zip((None, *ids), ids, (*ids[1:], None), strict=False)}


def order(query: str, candidates, neighbours=None) -> list[str]:
    return [one.id for one in rank(ask(query), candidates, neighbours=neighbours or {})]


def test_words_and_meaning_both_count():
    candidates = [make_candidate("e1", lexical=1.0, dense=0.1), make_candidate("e2", lexical=2.0, dense=0.1)]
    assert order("x", candidates) == ["e2", "e1"]
    candidates = [make_candidate("e1", dense=0.2), make_candidate("e2", dense=0.8)]
    assert order("x", candidates) == ["e2", "e1"]


def test_an_entry_of_the_time_asked_for_comes_before_one_that_mentions_it():
    candidates = [
        make_candidate("e1", created_at=MAY_8 - 40 * 86_400_000, content="The new rate starts in May.", dense=0.3),
        make_candidate("e2", created_at=MAY_8 - 86_400_000, content="Tried the custard tarts.", dense=0.2),
        make_candidate("e3", created_at=MAY_8 - 9 * 86_400_000, content="Bought a lamp.", dense=0.3),
    ]
    ranked = rank(ask("What did I write on 7 May?"), candidates, neighbours={})
    assert [one.id for one in ranked] == ["e2", "e1", "e3"]
    made, named, other = (one.signals["time"] for one in ranked)
    assert named == pytest.approx(0.7 * made)
    assert other == 0


def test_a_passage_that_says_the_question_in_other_words_rises():
    candidates = [make_candidate("e1", dense=0.4, alike=0.1), make_candidate("e2", dense=0.35, alike=0.6)]
    ranked = rank(ask("x"), candidates, neighbours={})
    assert [one.id for one in ranked] == ["e2", "e1"]
    unknown = rank(replace(ask("x"), known=0.0), candidates, neighbours={})
    assert [one.id for one in unknown] == ["e1", "e2"]


def test_score_is_the_sum_of_its_signals():
    candidates = [make_candidate(f"e{n}", lexical=float(n), dense=n / 10, speaker="Ana") for n in range(6)]
    for one in rank(ask("Ana in May"), candidates, neighbours=chain(*range(6))):
        assert tuple(one.signals) == SIGNALS
        assert one.score == pytest.approx(sum(one.signals.values()), abs=1e-5)


def test_the_answer_after_a_matching_question_rises():
    candidates = [
        make_candidate("e1", content="Which city did you move to?", lexical=5.0, speaker="Ana"),
        make_candidate("e2", content="Lisbon, in the spring. We love it there so far.", speaker="Bob"),
        make_candidate("e3", content="I had soup for lunch and it was fine, thank you.", speaker="Ana"),
        make_candidate("e4", content="I will call the plumber tomorrow about the sink.", speaker="Bob"),
    ]
    ranked = rank(ask("city moved"), candidates, neighbours=chain(1, 2, 3, 4))
    assert [one.id for one in ranked][:2] == ["e1", "e2"]
    assert ranked[1].signals["context"] > 0


def test_context_ends_with_the_session():
    far = MAY_8 + SESSION_GAP_MS + 1
    candidates = [make_candidate("e1", lexical=1.0, speaker="Ana"), make_candidate("e2", created_at=far, speaker="Bo")]
    by_time = rank(ask("x"), candidates, neighbours=chain(1, 2))
    assert by_time[1].signals["context"] == 0
    one_session = [replace(candidate, session="s") for candidate in candidates]
    assert rank(ask("x"), one_session, neighbours=chain(1, 2))[1].signals["context"] > 0
    two_sessions = [replace(candidates[0], session="s"), replace(candidates[1], session="t", created_at=MAY_8)]
    assert rank(ask("x"), two_sessions, neighbours=chain(1, 2))[1].signals["context"] == 0


def test_who_is_named_counts():
    candidates = [
        make_candidate("e1", lexical=1.0, speaker="Bob"),
        make_candidate("e2", lexical=1.0, speaker="Ana Lima"),
    ]
    assert order("what does Ana's sister do", candidates) == ["e2", "e1"]


def test_when_is_named_counts():
    later = MAY_8 + 90 * 86_400_000
    candidates = [make_candidate("e1", lexical=1.0, created_at=later), make_candidate("e2", lexical=1.0)]
    assert order("what happened in May 2023?", candidates) == ["e2", "e1"]
    assert order("what happened?", candidates) == ["e1", "e2"]


def test_length_stops_counting():
    short = make_candidate("e1", lexical=1.0, content="word " * 50)
    long = make_candidate("e2", lexical=1.0, content="word " * 5000)
    one, other = rank(ask("x"), [short, long], neighbours={})
    assert one.score == other.score


def test_notes_are_no_context_of_each_other():
    candidates = [make_candidate("e1", lexical=1.0), make_candidate("e2", dense=0.1)]
    assert all(one.signals["context"] == 0 for one in rank(ask("x"), candidates, neighbours=chain(1, 2)))
    assert worth_widening(ask("x"), candidates) == []


def test_long_turns_are_no_context_of_each_other():
    long = "word " * 150
    candidates = [
        make_candidate("e1", lexical=1.0, speaker="Ana", content=long),
        make_candidate("e2", dense=0.1, speaker="Bo", content=long),
    ]
    assert all(one.signals["context"] == 0 for one in rank(ask("x"), candidates, neighbours=chain(1, 2)))


def test_ties_go_to_the_newest():
    candidates = [make_candidate("b", position=2), make_candidate("c", position=1), make_candidate("a", position=3)]
    assert order("x", [replace(candidate, content="same") for candidate in candidates]) == ["a", "b", "c"]


def said(name: str, content: str, day: int, lexical: float, **more) -> Candidate:
    return make_candidate(name, content=content, created_at=MAY_8 + day * 86_400_000, lexical=lexical, **more)


def test_the_newer_of_two_statements_about_one_matter_comes_first():
    candidates = [
        said("e1", "The weekly sync takes place on Mondays at two", 0, 3.0),
        said("e2", "The weekly sync has been moved to Wednesdays at ten", 30, 2.6),
        said("e3", "The weekly report is due on Fridays", 40, 1.0, cover=0.5),
    ]
    ranked = rank(ask("When is the weekly sync?"), candidates, neighbours={})
    assert [one.id for one in ranked] == ["e2", "e1", "e3"]
    assert ranked[0].signals["currency"] > 0
    assert (ranked[0].older, ranked[1].older, ranked[2].older) == (None, "e2", None)


def test_a_later_line_of_a_dream_that_says_what_changed_comes_first():
    lines = [
        make_candidate("e1", content="The guitar lesson is on Tuesdays at 16:30", number=0, lexical=2.1, dense=0.5),
        make_candidate("e1", content="The guitar lesson moved to Thursdays at 17:00", number=1, lexical=2.0, dense=0.5),
        make_candidate("e1", content="The guitar lesson costs 30 euros", number=2, lexical=2.0, dense=0.4),
    ]
    ranked = rank(ask("When is the guitar lesson?"), lines, neighbours={})
    assert [one.key for one in ranked][:2] == [(1, 1), (1, 0)]
    assert ranked[1].older == "e1"


def test_a_line_of_a_dream_stays_before_a_later_one_that_has_less_than_half_of_its_score():
    """The pull request is fixed and frees boats; how many boats the free plan allows is another matter."""
    plan = make_candidate("e1", content="The free plan allows 5 boats per club", number=0, lexical=4.0, dense=0.7)
    fixed = make_candidate(
        "e1", content="Bug 131 is fixed: cancelling frees the boat of a club", number=1, lexical=1.0, cover=0.4
    )
    (first, second) = rank(ask("how many boats does the free plan allow"), [plan, fixed], neighbours={})
    assert (first.key, first.older, second.older) == (plan.key, None, None)


def test_a_newer_statement_does_not_bury_a_clearly_better_old_one():
    candidates = [
        said("e1", "Anna Bell lives in Leeds, 5 Orchard Row", 0, 4.0),
        said("e2", "Anna has a new bicycle with orchard stickers", 30, 1.0, cover=0.3),
    ]
    assert order("Where does Anna Bell live?", candidates) == ["e1", "e2"]


@pytest.mark.parametrize(
    ("question", "old", "new"),
    [
        (
            "Where will we spend Christmas?",
            "I plan to spend Christmas in Bologna",
            "We decided against Bologna, it is Trieste at Christmas",
        ),
        (
            "Who looks after Brightwater's account?",
            "The account of Brightwater is with Louise",
            "Louise no longer does Brightwater, Henrik does",
        ),
        ("Где находится офис?", "Офис находится на улице Ленина", "Офис переехал на проспект Мира"),
    ],
)
def test_a_change_said_in_other_words_comes_first_and_is_as_sure(question, old, new):
    candidates = [said("e1", old, 0, 4.0, dense=0.6), said("e2", new, 30, 2.6, dense=0.3, cover=0.6)]
    ranked = rank(ask(question), candidates, neighbours={})
    assert [one.id for one in ranked] == ["e2", "e1"]
    assert ranked[0].confidence >= ranked[1].confidence


def test_a_change_with_a_quarter_of_the_score_comes_first():
    """Few words of the question are in it: the note that it replaces had them."""
    old = said("e1", "The vaccines come from Norvet", 0, 4.0, dense=0.6)
    new = said("e2", "Scrap Norvet, the vaccines come from Petmedica", 30, 2.0, dense=0.1, cover=0.3)
    first, second = rank(ask("Who supplies our vaccines?"), [old, new], neighbours={})
    assert (first.id, second.older) == ("e2", "e2")
    assert 0.2 < (first.score - first.signals["currency"]) / second.score < 0.33


@pytest.mark.parametrize(
    ("new", "sign"),
    [
        ("Marta sold the cargo bike", 0.5),  # a word that often means something else
        ("Marta no longer has the cargo bike", 1.0),
        ("Marta NO LONGER has the cargo bike", 1.0),
        ("Marta takes the cargo bike, same day", 1.0),
        ("A bicicleta de Marta passou para as mãos do Rui", 1.0),  # many of its words could be English
        ("Marta has to give up the cargo bike", 1.0),
        ("Marta rides the cargo bike in winter, not the tandem", 0.5),
        ("Marta rides the cargo bike; it is not the newest one", 0.0),
        ("Marta keeps the cargo bike in the shed", 0.0),
    ],
)
def test_some_signs_of_a_change_count_half(new, sign):
    asked = words_of("Which cargo bike does Marta ride? Que bicicleta usa a Marta?")
    old = said("e1", "Marta rides a cargo bike; A bicicleta de Marta", 0, 4.0)
    found = pairs(asked, [old, said("e2", new, 30, 4.0)], [1.0, 0.9], [0, 1])
    assert [features["changes"] for _, _, features in found] == [sign]


@pytest.mark.parametrize(
    ("question", "answer", "old", "new"),
    [
        (
            "What clothes does Freya hate?",
            "Freya refuses to wear anything with a collar",
            "Freya got the part of the fox in the play",
            "Freya swapped parts, she is the badger in the play now",
        ),
        (
            "Which sweets should I take to Oma?",
            "Oma likes the lemon drops, not the mint ones",
            "Oma is on ward Linde, room 3",
            "Oma was moved to ward Ahorn, room 12",
        ),
    ],
)
def test_a_change_of_another_matter_overtakes_nothing(question, answer, old, new):
    """Both are about the same person, and that is all they share."""
    candidates = [
        said("e1", answer, 0, 3.0, dense=0.5, cover=0.5),
        said("e2", old, 1, 2.0, dense=0.3, cover=0.5),
        said("e3", new, 30, 2.9, dense=0.45, cover=0.5),
    ]
    ranked = rank(ask(question), candidates, neighbours={})
    assert {one.id: one.older for one in ranked} == {"e1": None, "e2": "e3", "e3": None}
    assert ranked[0].id == "e1"


def test_a_change_is_about_the_statement_it_shares_most_with():
    candidates = [
        said("e1", "Bakery Lindholm opens at half past four", 0, 3.0, cover=0.5),
        said("e2", "Bakery Lindholm has contract Gold, response within 4 hours", 1, 2.8, cover=0.5),
        said("e3", "Bakery Lindholm has contract Silver now, response within 24 hours", 30, 2.7, cover=0.5),
    ]
    ranked = rank(ask("When does Bakery Lindholm open?"), candidates, neighbours={})
    assert ranked[0].id == "e1"
    assert {one.id: one.older for one in ranked} == {"e1": None, "e2": "e3", "e3": None}


def test_a_word_of_similar_meaning_is_no_news_about_another():
    word = Word("india", (("india", 1.0), ("canada", 0.5)))
    asked = Question("Which continent is India in?", [Word("continent", (("contin", 1.0),)), word])
    candidates = [
        said("e1", "India is in the continent of Africa", 0, 4.0),
        said("e2", "Canada is in the continent of Asia", 9, 3.5),
    ]
    assert [one.id for one in rank(asked, candidates, neighbours={})] == ["e1", "e2"]


def test_one_long_answer_does_not_overtake_another():
    long = "The counter is oak. " * 30
    candidates = [said("e1", long, 0, 4.0), said("e2", f"{long} It is now grey.", 9, 3.9)]
    assert order("Which counter is it?", candidates) == ["e1", "e2"]


def test_what_another_says_later_overtakes_nothing():
    candidates = [
        said("e1", "I ride to work three times a week", 0, 3.0, speaker="user"),
        said("e2", "Riding to work three times a week is healthy", 0, 2.9, speaker="assistant"),
    ]
    assert order("How often do I ride to work each week?", candidates) == ["e1", "e2"]


def test_the_authors_of_a_log_overtake_each_other():
    candidates = [
        said("e1", "Keys of the Kettler house: with the lady at number 14", 0, 3.0, speaker="Malte"),
        said("e2", "Keys of the Kettler house are in the safe now", 9, 2.4, speaker="Ayla"),
    ]
    question = "Where are the keys of the Kettler house?"
    assert order(question, candidates) == ["e2", "e1"]
    assert order(question, candidates, chain(1, 2)) == ["e1", "e2"], "in a conversation each speaks of himself"


def test_a_word_that_all_of_the_best_have_does_not_make_two_notes_one_matter():
    others = ["runs a bakery", "has two sons", "reads novels", "sings alto", "collects stamps", "fears dogs", "skis"]
    candidates = [said(f"e{n}", f"The user {text}", n, 1.0, cover=0.2) for n, text in enumerate(others, 3)]
    candidates += [
        said("e1", "The user pays groceries from a joint account", 0, 4.0),
        said("e2", "The user gave up pottery", 30, 1.5, cover=0.3),
    ]
    ranked = rank(ask("How does the user pay for groceries?"), candidates, neighbours={})
    assert ranked[0].id == "e1"
    assert all(one.older is None for one in ranked)


def test_order_of_candidates_does_not_matter():
    shuffled = [make_candidate(f"e{n}", lexical=n % 7 / 3, dense=n % 5 / 7) for n in range(60)]
    neighbours = chain(*range(60))
    expected = rank(ask("x"), shuffled, neighbours=neighbours)
    for seed in range(5):
        random.Random(seed).shuffle(shuffled)
        assert rank(ask("x"), shuffled, neighbours=neighbours) == expected


def test_limit_only_cuts():
    candidates = [make_candidate(f"e{n}", lexical=float(n)) for n in range(20)]
    everything = rank(ask("x"), candidates, neighbours={})
    assert rank(ask("x"), candidates, neighbours={}, limit=5) == everything[:5]


def test_nothing_to_rank():
    assert rank(ask("x"), [], neighbours={}) == []
    assert order("", [make_candidate("e1")]) == ["e1"]


def test_unknown_neighbours_are_ignored():
    assert order("x", [make_candidate("e1", lexical=1.0)], {1: (0, 2)}) == ["e1"]


def test_worth_widening_takes_the_best():
    candidates = [make_candidate(f"e{n}", lexical=float(n), speaker="Ana") for n in range(10)]
    turns = [*candidates[:5], replace(candidates[5], content="Shall we?"), *candidates[6:]]
    assert worth_widening(ask("x"), turns, 3) == [9, 8, 7]
    assert worth_widening(ask("x"), [], 3) == []
    assert worth_widening(ask("x"), candidates, 3) == [], "nobody asks anything: a log, not a conversation"


def test_weights_are_few_and_positive():
    assert all(getattr(WEIGHTS, name) > 0 for name in WEIGHTS.__slots__)


def test_of_two_changes_the_one_closer_in_meaning_to_the_old_note_comes_first():
    """By shared words alone neither of the two overtakes."""
    old = said("e1", "Marta has her piano lesson on Tuesday", 0, 4.0, dense=0.6)
    other = said("e2", "Marta moved to the blue bedroom", 30, 2.0, dense=0.1, cover=0.3)
    new = said("e3", "Marta now goes to the music teacher on Fridays", 40, 2.0, dense=0.3, cover=0.3)
    likely = [replace(one, alike=share) for one, share in ((old, 1.0), (other, 0.4), (new, 0.8))]
    asked = ask("When is the piano lesson of Marta?")
    near = {old.content: (1.0, 0.2, 0.7), other.content: (0.2, 1.0, 0.3), new.content: (0.7, 0.3, 1.0)}
    column = {text: at for at, text in enumerate(near)}

    def closeness(texts):
        return [[near[one][column[text]] for text in texts] for one in texts]

    assert rank(asked, likely, neighbours={})[0].id == "e1"
    first, second, *_ = rank(asked, likely, neighbours={}, closeness=closeness)
    assert (first.id, second.id, second.older) == ("e3", "e1", "e3")


def test_in_a_conversation_closeness_puts_no_turn_before_another():
    old = said("e1", "Marta has her piano lesson on Tuesday", 0, 4.0, dense=0.6)
    new = said("e2", "Marta now goes to the music teacher on Fridays", 30, 2.0, dense=0.3, cover=0.3)
    asked = ask("When is the piano lesson of Marta?")

    def alike(texts):
        return [[1.0] * len(texts) for _ in texts]

    turns = [replace(old, alike=1.0), replace(new, alike=0.8)]
    found = overtake(asked.words, turns, [3.0, 1.5], [0, 1], closeness=alike)
    assert found[1] == {0: 1}
    assert overtake(asked.words, turns, [3.0, 1.5], [0, 1], closeness=alike, spoken=True) == ({}, {})


def test_closeness_is_not_asked_for_passages_that_cannot_overtake():
    """Whether something changed is read first: it costs a tenth."""
    old = said("e1", "Marta has her piano lesson on Tuesday", 0, 4.0, dense=0.6)
    near = said("e2", "Marta goes to the music teacher on Fridays", 30, 2.0, dense=0.3, cover=0.3)
    asked = ask("When is the piano lesson of Marta?")
    compared = []

    def closeness(texts):
        compared.append(texts)
        return [[1.0] * len(texts) for _ in texts]

    def overtaken(new):
        turns = [replace(old, alike=1.0), replace(new, alike=0.8)]
        return overtake(asked.words, turns, [3.0, 1.5], [0, 1], closeness=closeness)[1]

    assert (overtaken(near), compared) == ({}, [])
    assert overtaken(replace(near, content="Marta now goes to the music teacher on Fridays")) == {0: 1}
    assert len(compared) == 1


def test_a_line_of_a_dream_overtakes_no_line_about_another_author():
    """The author of a line is the name in front of it."""

    def overtaken(older, newer):
        lines = [
            replace(said("e1", older, 0, 4.0, dense=0.6), alike=1.0),
            replace(said("e1", newer, 30, 2.0, dense=0.3, cover=0.3), alike=0.8, number=1),
        ]
        return overtake(ask("Does coffee suit me?").words, lines, [3.0, 2.9], [0, 1])[1]

    assert overtaken("Elena: I stopped drinking coffee", "Elena: I no longer drink coffee after lunch") == {0: 1}
    assert overtaken("Elena: I stopped drinking coffee", "Ayumi: I no longer drink coffee after lunch") == {}
