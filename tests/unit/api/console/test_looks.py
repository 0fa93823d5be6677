"""What pages draw and say: lineage in words, bars of comparable length, plans that cannot run, marks that pile up."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.unit.api.console.test_pages import Site, token

from reverie.api.console import diff
from reverie.api.console.text import visible
from reverie.core.dream import DreamPlan
from reverie.core.errors import Invalid
from reverie.core.policy import TenantPolicy


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(Path(tmp_path_factory.mktemp("looks")))
    yield made
    made.host.close()


def opened(site: Site, tenant: str) -> TestClient:
    return site.browser(site.key(tenant))


def test_the_lineage_of_an_entry_is_drawn_with_words_in_both_directions(site: Site) -> None:
    for words in ("Mara: berth 4 costs 14 euros a day.", "Jonas: the slipway carries 12 tons.") * 3:
        site.put("drawn", words)
    source = site.host.reader.page(site.host.system_actor("drawn"), "notes", limit=1).items[0]
    report = site.host.dreams.run(site.host.system_actor("drawn"), DreamPlan(ref="notes", budget=4000, fit=True))
    assert report is not None
    client = opened(site, "drawn")
    text = str(client.get(f"/memories/notes/{report.output_id}").text)
    drawing = text[text.index('<svg class="lineage') : text.index("</svg>")]
    assert "berth 4 costs 14 euros" in drawing
    assert "slipway" in drawing
    assert "<dt>Tags</dt>" not in text, "the marks of a dream are no tags, and no tags need no heading"
    text = str(client.get(f"/memories/notes/{source.id}").text)
    drawing = text[text.index('<svg class="lineage') : text.index("</svg>")]
    assert "Made from it" in drawing
    assert source.content.split(": ")[1][:20] in drawing


def test_the_longest_bar_of_the_context_lab_is_that_of_the_best_score(site: Site) -> None:
    for words in ("The launch is on 13 October.", "The launch party needs a band.", "Boats are blue."):
        site.put("bars", words)
    client = opened(site, "bars")
    candidates = client.get("/context.json?q=when+is+the+launch&budget=300").json()["candidates"]
    ends = []
    for one in candidates:
        rects = [(float(x), float(w)) for x, w in re.findall(r'x="([\d.]+)" y="0" width="([\d.]+)"', one["bar"])][1:]
        ends.append(max((x + w for x, w in rects), default=0.0))
    totals = [sum(value for value in one["signals"].values() if value > 0) for one in candidates]
    assert max(ends) == pytest.approx(100, abs=0.1)
    assert len(set(ends)) > 1
    assert [end / 100 for end in ends] == pytest.approx([total / max(totals) for total in totals], abs=0.01)


def test_a_plan_that_cannot_run_says_which_of_two_things_is_wrong(site: Site) -> None:
    site.put("planned", "Berth 4 costs 14 euros a day.")
    site.put("planned", "The slipway carries 12 tons.")
    client = opened(site, "planned")
    asked = {"token": token(client), "do": "plan", "ref": "notes"}
    said = client.post("/dreams", data=asked, headers={"sec-fetch-site": "same-origin"}).text
    assert "These entries would not get smaller" in said
    assert re.search(r'<button class="main" disabled>Run this dream', said)
    said = client.post("/dreams", data={**asked, "budget": "9"}, headers={"sec-fetch-site": "same-origin"}).text
    assert "Fewer than two entries fit into this budget" in said


def test_a_plan_says_what_would_stay_and_what_would_leave(site: Site) -> None:
    for number in range(12):
        site.put("forecast", f"Decision: berth {number} costs {number + 14} euros a day.")
        site.put("forecast", "Good morning, everyone!")
    site.host.lifecycle.pin(site.host.system_actor("forecast"), "notes", site.put("forecast", "Call Mara first."))
    client = opened(site, "forecast")
    asked = {"token": token(client), "do": "plan", "ref": "notes"}
    said = client.post("/dreams", data=asked, headers={"sec-fetch-site": "same-origin"}).text
    assert "1 pinned" in said
    assert "must_keep" not in said
    assert "What would leave hot memory" in said
    assert said.count("Good morning, everyone!") == 1
    assert "Tokens afterwards<br>now:" in said


def test_a_question_without_an_answer_is_offered_to_the_other_memories(site: Site) -> None:
    site.put("elsewhere", "The launch is on 13 October.", ref="plans")
    site.put("elsewhere", "Boats are blue.", ref="boats")
    said = opened(site, "elsewhere").get("/memories?ref=boats&q=when+is+the+launch").text
    assert re.search(r"The same question in <a href=\"/memories\?[^\"]*ref=plans", said)
    assert "The same question in" not in opened(site, "elsewhere").get("/memories?ref=plans&q=when+is+the+launch").text


def test_entries_are_listed_by_state_and_states_of_cold_storage_only_there(site: Site) -> None:
    actor = site.host.system_actor("states")
    site.put("states", "Boats are blue.")
    site.host.lifecycle.retract(actor, "notes", site.put("states", "Boats are green."))
    client = opened(site, "states")
    assert "state=contested" in client.get("/memories").text
    assert "state=retracted" not in client.get("/memories").text
    cold = client.get("/memories?where=cold").text
    assert re.search(r'href="/memories\?where=cold&amp;state=retracted"', cold)
    items = client.get("/memories.json?where=cold&state=retracted").json()["items"]
    assert [item["content"] for item in items] == ["Boats are green."]


def test_a_policy_of_few_values_is_a_choice(site: Site) -> None:
    said = opened(site, "chosen").get("/operate").text
    for name in ("nightly", "store_secrets", "model_fallback"):
        assert f'<select id="policy-{name}"' in said
    with pytest.raises(Invalid, match="extractive, refuse"):
        TenantPolicy().changed({"model_fallback": "hope"})


def test_our_own_operations_come_before_those_of_protocols(site: Site) -> None:
    groups = re.findall(r'<section class="panel" id="tag-(\w+)"', site.browser().get("/docs").text)
    assert groups.index("entries") < groups.index("akashik")
    assert groups[-5:] == ["akashik", "anthropic", "mcp", "mem0", "openwop"]


def test_marks_that_pile_up_are_counted_instead_of_drawn() -> None:
    assert visible("Z" + "\u0300" * 20 + "!") == "Z" + "\u0300" * 3 + "[+17 marks]!"
    vietnamese = "Nguye\u0302\u0303n a\u030a\u0323"
    assert visible(vietnamese) == vietnamese


def test_a_count_of_repetitions_is_one_mark() -> None:
    assert str(diff.after("Rent is due (×2)", ["Rent is due"])) == "Rent is due (<ins>×2</ins>)"
