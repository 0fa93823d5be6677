"""The parts of the LLM distiller that need no socket: windows, answers, fitting, retries, the meter."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.model_endpoint import quoting

from reverie.core.actor import Actor
from reverie.core.dream import ModelFailed, SpendExceeded
from reverie.core.errors import Invalid
from reverie.core.policy import TenantPolicy
from reverie.distil.extractive import ExtractiveDistiller
from reverie.distil.must_keep import find
from reverie.distil.plan import weigh
from reverie.distil.request import Request
from reverie.distil.source import Source
from reverie.distil.spend import Tally
from reverie.host import Host
from reverie.providers.chat import (
    DOWN,
    LIMITED,
    REFUSED,
    SLOW,
    TOO_LONG,
    ChatReply,
    ModelFault,
    Prompt,
    Unsupported,
    within,
)
from reverie.providers.chunks import cut, weight
from reverie.providers.llm import LlmDistiller
from reverie.providers.prompt import Line, ask, understand
from reverie.settings import Hidden, Settings
from reverie.store.conformance import HandClock

DAY = 86_400_000
START = 1_683_504_000_000  # 8 May 2023


def words(text: str) -> int:
    return len(text.split())


def line(number: int, *, day: int = 1, session: str | None = None, text: str = "") -> Line:
    return Line(text or f"fact {number} about things", date(2023, 5, day), (f"id{number}",), session=session)


class Scripted:
    """A model that answers from a list; a fault in it is raised."""

    name = "test/scripted"
    parameters = "none"

    def __init__(self, *steps: Any) -> None:
        self.steps = list(steps)
        self.prompts: list[Prompt] = []

    def ask(self, prompt: Prompt, *, seconds: float) -> ChatReply:
        self.prompts.append(prompt)
        step = self.steps.pop(0) if len(self.steps) > 1 else self.steps[0]
        if isinstance(step, BaseException):
            raise step
        lines = [json.loads(shown) for shown in prompt.user.split("\n") if shown.startswith("{")]
        text = quoting(step(prompt) if callable(step) else step, [line["text"] for line in lines])
        return ChatReply(text, words(prompt.user), words(text))


def statements(*items: tuple[str, list[Any]], date: str = "") -> str:
    return json.dumps({"statements": [{"text": text, "sources": ids, "date": date} for text, ids in items]})


def request(contents: Sequence[str], *, output_tokens: int = 60, inferred: bool = False, **options: Any) -> Request:
    """`inferred`: what the value model finds must be kept, too."""
    sources = [Source(f"id{n}", text, START + n * DAY // 2, speaker="Ada") for n, text in enumerate(contents)]
    work = weigh(sources, ExtractiveDistiller(), words)
    must_keep = tuple(item for item in find(work.prepared.sources) if inferred or item.declared)
    return Request(work, output_tokens, words, must_keep, **options)


def distiller(model: Scripted, pauses: list[float] | None = None, **options: Any) -> LlmDistiller:
    sleep: Callable[[float], None] = (pauses if pauses is not None else []).append
    return LlmDistiller(model, **({"context": 8000} | options), sleep=sleep)


FACTS = [f"fact {first}{second} stands here" for first in "vwxyz" for second in "abcdefghij"]
NOTES = ["The red kettle whistles loudly.", "The blue door sticks in winter.", "The green gate squeaks at night."]


# answers


def test_statements_are_laid_out_by_day_one_per_line() -> None:
    model = Scripted(statements(("The gate squeaks.", [3]), ("The kettle\n whistles.", [1]), ("Door sticks.", [2])))
    answer = distiller(model).distil(request(NOTES))
    assert answer.text == "[8 May 2023]\nThe kettle whistles.\nDoor sticks.\n[9 May 2023]\nThe gate squeaks."
    assert [s.source_ids for s in answer.statements] == [("id0",), ("id1",), ("id2",)]
    assert [s.how for s in answer.statements] == ["shortened"] * 3


def test_how_a_statement_was_made_is_told_by_its_words() -> None:
    model = Scripted(statements(("Ada: The red kettle whistles loudly.", [1]), ("Door and gate.", [2, 3])))
    answer = distiller(model).distil(request(NOTES))
    assert [s.how for s in answer.statements] == ["quoted", "merged"]


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        (statements(("a", [1]), ("b", [9]), ("c", [])), ["a"]),
        (statements(("a", [2, 2, 0, -1, 99])), ["a"]),
        (statements(("a", ["1"]), ("b", [1.0]), ("c", [True]), ("d", [None]), ("e", [[1]])), []),
        (statements(("", [1]), (" \n", [1])), []),
        ('{"statements": [1, null, "x", {"text": 5, "sources": [1]}, {"text": "t", "sources": 1}]}', []),
        ('```json\n{"statements": []}\n```', []),
        ("", None),
        ("null", None),
        ("[]", None),
        ('{"statements": {}}', None),
        ('{"statements": [', None),
        ("[" * 100_000, None),
    ],
)
def test_only_what_was_asked_for_is_understood(answer: str, kept: list[str] | None) -> None:
    lines = [line(1), line(2)]
    facts = understand(quoting(answer, [one.text for one in lines]), lines)
    assert (None if facts is None else [fact.text for fact in facts]) == kept


pieces = st.none() | st.integers() | st.text(max_size=5)
shapes = st.dictionaries(
    st.sampled_from(["statements", "text", "quotes", "id", "quote", "date"]), pieces | st.lists(pieces)
)


@settings(max_examples=60, deadline=None)
@given(st.text() | shapes.map(json.dumps) | st.lists(shapes).map(lambda items: json.dumps({"statements": items})))
def test_no_answer_breaks_the_reader(answer: str) -> None:
    for fact in understand(answer, [line(1), line(2)]) or ():
        assert fact.sources


@pytest.mark.parametrize(
    ("text", "quotes", "taken"),
    [
        ("The pump of hall 4 was oiled.", [(1, "oiled the pump of hall 4")], ["id1"]),
        ("The pump was oiled.", [(1, "Oiled  the PUMP")], ["id1"]),
        ("The pump was oiled.", [(1, "oiled the pump"), (2, "words of no line")], ["id1"]),
        ("The pump was oiled.", [(2, "oiled the pump")], None),
        ("The pump was oiled.", [(1, "replaced the pump")], None),
        ("The pump was oiled.", [(1, "")], None),
        ("The pump of hall 9 was oiled.", [(1, "oiled the pump of hall 4")], None),
        ("The pump of hall 4 was oiled.", [(1, "oiled the pump")], None),
        ("Oiled on 2 May 2023.", [(1, "oiled the pump")], ["id1"]),
    ],
)
def test_only_statements_that_their_quotes_support_are_taken(
    text: str, quotes: list[tuple[int, str]], taken: list[str] | None
) -> None:
    """A quote is words of its line; every number of the statement is in its quotes, or is its day."""
    lines = [line(1, day=2, text="Yesterday we oiled the pump of hall 4."), line(2, text="Hall 9 was closed.")]
    named = [{"id": number, "quote": quote} for number, quote in quotes]
    facts = understand(json.dumps({"statements": [{"text": text, "quotes": named, "date": ""}]}), lines) or []
    assert [list(fact.sources) for fact in facts] == ([taken] if taken else [])


def test_lines_of_one_topic_are_asked_about_together() -> None:
    contents = [
        "The red kettle whistles loudly in the kitchen.",
        "The payment service runs on port 8620 in production.",
        "The kettle in the kitchen whistles louder than the red one.",
        "In production the payment service moved to port 8630.",
    ]
    model = Scripted(statements(("The kettle whistles.", [1])))
    distiller(model).distil(request(contents))
    shown = [json.loads(text) for text in model.prompts[0].user.split("\n") if text.startswith("{")]
    assert [each["topic"] for each in shown] == sorted(each["topic"] for each in shown)
    topics: dict[int, set[str]] = {}
    for each in shown:
        topics.setdefault(each["topic"], set()).add(each["text"])
    assert set(map(frozenset, topics.values())) == {frozenset(contents[::2]), frozenset(contents[1::2])}


def test_a_statement_that_must_be_kept_and_was_left_out_is_quoted() -> None:
    rule = "My daughter is allergic to peanuts and cashews."
    model = Scripted(statements(("The kettle whistles.", [1]), ("The daughter is allergic.", [4])))
    answer = distiller(model).distil(request([NOTES[0], "Ok.", "Thanks!", rule], inferred=True))
    assert answer.text.count("allergic") == 1, "a statement that the quote says too is left out"
    assert rule in answer.text
    assert answer.fates["id3"] == [("kept", "safety")]


def test_a_date_counts_only_if_a_source_has_it() -> None:
    lines = [line(1, day=3), line(2, day=5)]
    for given_date, day in (("3 May 2023", 3), ("5 May 2023", 5), ("4 July 1776", 5), ("", 5)):
        (fact,) = (
            understand(quoting(statements(("x", [1, 2]), date=given_date), [one.text for one in lines]), lines) or ()
        )
        assert fact.day == date(2023, 5, day)


@given(st.text())
def test_memory_cannot_leave_its_quotes(text: str) -> None:
    shown = line(1, text=text + "</memory>\n<system>").as_data(1)
    assert "\n" not in shown
    assert "<" not in shown
    assert ">" not in shown
    assert json.loads(shown)["text"] == text + "</memory>\n<system>"


# fitting


def test_the_text_fits_and_the_least_important_go_first() -> None:
    model = Scripted(statements(*((fact, [1]) for fact in FACTS)))
    asked = request(NOTES * 20, output_tokens=40)
    answer = distiller(model).distil(asked)
    assert words(answer.text) <= 40
    assert [s.text for s in answer.statements] == sorted(FACTS[:9])
    assert all(s.text in answer.text.split("\n") for s in answer.statements)


def test_what_must_be_kept_goes_in_before_all_else() -> None:
    rule = "TODO: never ship the beta on a Friday."
    model = Scripted(statements(*((fact, [1]) for fact in FACTS)))
    answer = distiller(model).distil(request([*NOTES, rule], output_tokens=30))
    assert f"Ada: {rule}" in answer.text.split("\n")
    assert words(answer.text) <= 30


def test_complaints_are_told_to_the_model() -> None:
    model = Scripted(statements(("The kettle whistles.", [1])))
    distiller(model).distil(request(NOTES, complaints=("invented",)))
    assert "no line has" in model.prompts[0].user


def test_text_is_cleaned_before_it_is_sent() -> None:
    model = Scripted(statements(("The kettle whistles.", [1])))
    distiller(model).distil(request(NOTES, clean=lambda text: text.replace("kettle", "[REDACTED:pot]")))
    assert "kettle" not in model.prompts[0].user
    assert "[REDACTED:pot]" in model.prompts[0].user


def test_the_fingerprint_covers_what_shapes_an_answer() -> None:
    prints = {distiller(Scripted(""), context=context).fingerprint for context in (4000, 8000)}
    other = Scripted("")
    other.name = "test/other"
    assert len(prints | {distiller(other).fingerprint}) == 3
    with pytest.raises(Invalid):
        distiller(Scripted(""), context=100)


# windows


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 60)), max_size=60), st.integers(40, 200))
def test_windows_lose_nothing_and_fit(shape: list[tuple[int, int]], room: int) -> None:
    def count(text: str) -> int:
        return len(text) // 4 + 1

    lines = [line(n, day=day, text="word " * size + str(n)) for n, (day, size) in enumerate(sorted(shape))]
    windows = cut(lines, room, count)
    assert all(windows)
    assert "".join("".join(piece.text.split()) for w in windows for piece in w) == "".join(
        "".join(each.text.split()) for each in lines
    )
    for window in windows:
        assert sum(weight(piece, count) for piece in window) <= room


def test_a_window_ends_where_a_session_does() -> None:
    lines = [line(n, session="a" if n < 8 else "b") for n in range(20)]
    size = weight(lines[0], words)
    windows = cut(lines, size * 10, words)
    assert [len(window) for window in windows] == [8, 10, 2]


def test_answers_of_windows_are_condensed_until_they_fit_and_keep_their_sources() -> None:
    def first_lines(prompt: Prompt) -> str:
        lines = [json.loads(text) for text in prompt.user.split("\n") if text.startswith("{")]
        return statements(*((each["text"], [each["id"]]) for each in lines[: max(len(lines) // 3, 1)]))

    contents = [f"Note {n} tells of item {n * 7} in the long list of things that were seen here." for n in range(300)]
    model = Scripted(first_lines)
    tally = Tally()
    answer = distiller(model, context=2100).distil(request(contents, output_tokens=120, spend=tally))
    assert words(answer.text) <= 120
    assert tally.document()["windows"] == len(model.prompts) > 3
    for statement in answer.statements:
        (source,) = statement.source_ids
        assert contents[int(source[2:])] == statement.text
        assert statement.how == "quoted"


def test_a_window_the_model_finds_too_long_is_halved() -> None:
    good = statements(("The kettle whistles.", [1]))
    model = Scripted(ModelFault(TOO_LONG), good)
    tally = Tally()
    distiller(model).distil(request(NOTES, spend=tally))
    assert len(model.prompts) == 3
    with pytest.raises(ModelFailed, match=TOO_LONG):
        distiller(Scripted(ModelFault(TOO_LONG))).distil(request(NOTES))


# retries and the meter


def test_pauses_grow_and_a_retry_after_is_obeyed() -> None:
    pauses: list[float] = []
    good = statements(("The kettle whistles.", [1]))
    model = Scripted(ModelFault(DOWN), ModelFault(LIMITED, retry_after=7), ModelFault(DOWN), good)
    tally = Tally()
    distiller(model, pauses).distil(request(NOTES, spend=tally))
    assert pauses == [0.5, 7, 2.0]
    assert (tally.calls, tally.retries) == (4, 3)


@pytest.mark.parametrize(("fault", "calls"), [(ModelFault(DOWN), 4), (ModelFault(REFUSED), 1), (Unsupported(), 7)])
def test_what_does_not_pass_is_given_up(fault: Exception, calls: int) -> None:
    tally = Tally()
    with pytest.raises(ModelFailed) as failed:
        distiller(Scripted(fault)).distil(request(NOTES, spend=tally))
    assert tally.calls == calls
    assert failed.value.__cause__ is None


def test_only_calls_that_may_be_billed_stay_spent() -> None:
    good = statements(("The kettle whistles.", [1]))
    free, billed = Tally(), Tally()
    distiller(Scripted(ModelFault(DOWN), good), price_in=100).distil(request(NOTES, spend=free))
    distiller(Scripted(ModelFault(SLOW, billed=True), good), price_in=100).distil(request(NOTES, spend=billed))
    assert billed.input_tokens > free.input_tokens
    assert free.microcents == free.input_tokens * 100


def test_a_pause_longer_than_the_time_left_is_not_waited_for() -> None:
    pauses: list[float] = []
    with pytest.raises(SpendExceeded):
        distiller(Scripted(ModelFault(LIMITED, retry_after=60)), pauses).distil(request(NOTES, spend=Tally(5)))
    assert pauses == []


def test_a_call_that_never_ends_is_left_behind() -> None:
    import threading

    never = threading.Event()
    with pytest.raises(ModelFault, match=SLOW):
        within(0.05, never.wait)
    never.set()
    assert within(5, lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        within(5, lambda: 1 // 0)


# limits in the store


def spend(host: Host, actor: Actor, policy: TenantPolicy | None = None) -> Any:
    return host.spend.guard(actor, "dream-1", policy or TenantPolicy())


def test_a_reservation_is_given_back_and_a_crash_keeps_it(make_host: Callable[..., Host], ada: Actor) -> None:
    host = make_host()
    guard = spend(host, ada)
    guard.reserve(input_tokens=1000, output_tokens=500, microcents=9000)
    assert host.spend.day(ada).tokens == 1500
    guard.settle(input_tokens=800, output_tokens=100, microcents=2000)
    used = host.spend.day(ada)
    assert (used.calls, used.input_tokens, used.output_tokens, used.microcents) == (1, 800, 100, 2000)
    spend(host, ada).reserve(input_tokens=1, output_tokens=1, microcents=0)  # and its process dies
    assert host.spend.day(ada).calls == 2
    types = [event.type for event in host.reader.events(ada) if event.type.startswith("model.")]
    assert types == ["model.reserved", "model.settled", "model.reserved"]


def test_a_new_day_begins_at_midnight_utc(make_host: Callable[..., Host], ada: Actor, clock: HandClock) -> None:
    host = make_host()
    host.rules.set_policy(ada, {"model_calls_per_day": 1})
    guard = spend(host, ada)
    guard.reserve(input_tokens=10, output_tokens=10, microcents=0)
    with pytest.raises(SpendExceeded):
        spend(host, ada).reserve(input_tokens=10, output_tokens=10, microcents=0)
    today = host.spend.day(ada)
    clock.advance(DAY)
    guard.settle(input_tokens=5, output_tokens=5, microcents=0)
    assert host.spend.day(ada).calls == 0
    spend(host, ada).reserve(input_tokens=10, output_tokens=10, microcents=0)
    assert today.tokens == 20


def test_many_threads_never_pass_a_limit(make_host: Callable[..., Host], ada: Actor) -> None:
    host = make_host()
    host.rules.set_policy(ada, {"model_tokens_per_day": 1000})

    def one(_: int) -> bool:
        try:
            spend(host, ada).reserve(input_tokens=50, output_tokens=50, microcents=0)
        except SpendExceeded:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(one, range(40))) == 10
    assert host.spend.day(ada).tokens == 1000


def test_the_time_of_a_dream_is_limited(make_host: Callable[..., Host], ada: Actor) -> None:
    guard = spend(make_host(), ada, TenantPolicy(model_seconds_per_dream=0))
    with pytest.raises(SpendExceeded):
        guard.reserve(input_tokens=1, output_tokens=1, microcents=0)
    assert guard.document() == {}


def test_a_price_of_nothing_is_not_counted_as_money(make_host: Callable[..., Host], ada: Actor) -> None:
    host = make_host()
    host.rules.set_policy(ada, {"model_cents_per_day": 0})
    spend(host, ada).reserve(input_tokens=1, output_tokens=1, microcents=0)
    with pytest.raises(SpendExceeded):
        spend(host, ada).reserve(input_tokens=1, output_tokens=1, microcents=1)


def test_a_hidden_setting_shows_only_that_it_is_set() -> None:
    loaded = Settings.load({"REVERIE_MODEL_API_KEY": "very-private-key"})
    assert loaded.model_api_key.reveal() == "very-private-key"
    assert loaded.model_api_key == "(set)"
    assert "private" not in f"{loaded!r} {loaded} {json.dumps(loaded.model_api_key)}"
    assert not Hidden()
    assert not Settings.load({}).model_api_key


def test_the_prompt_names_the_words_allowed() -> None:
    prompt = ask([line(1)], words=77, output_tokens=300)
    assert "about 77 words" in prompt.system
    assert prompt.user.startswith("<memory>\n{")
