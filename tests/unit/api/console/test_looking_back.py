"""From a dream to its original words and back; versions of an entry; a memory's values, and what it was."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from tests.unit.api.console.test_cost import counting
from tests.unit.api.console.test_pages import Site

from reverie.core.dream import DreamPlan, DreamReport
from reverie.core.entry import Draft, Source

CHATTER = ("Good morning everyone!", "Thanks a lot!", "Haha, nice one.")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(tmp_path_factory.mktemp("site"))
    yield made
    made.host.close()


@pytest.fixture(scope="module")
def report(site: Site) -> DreamReport:
    """A dream over statements said twice, and small talk."""
    for n in [*range(40), *range(40)]:
        site.put("acme", f"Mara: berth {n} costs {n + 10} euros a day and is {n + 4} metres long.")
    for words in CHATTER * 4:
        site.put("acme", words)
    made = site.host.dreams.run(site.host.system_actor("acme"), DreamPlan(ref="notes", budget=20_000))
    assert made is not None
    return made


def test_every_statement_has_its_fate(site: Site, report: DreamReport) -> None:
    browser = site.browser(site.key())
    document = browser.get(f"/dreams/{report.id}.json").json()
    fates = {one["name"]: one["count"] for one in document["fates"]}
    assert sum(fates.values()) == document["all_statements"]
    assert fates["chatter"] == 12
    chosen = browser.get(f"/dreams/{report.id}.json?fate=chatter").json()
    assert {one["text"] for one in chosen["statements"]} == set(CHATTER)
    assert {one["line"] for one in chosen["statements"]} == {None}
    seen, at = [], 0
    while at is not None:
        page = browser.get(f"/dreams/{report.id}.json?at={at}").json()
        seen += [(one["source"], one["text"]) for one in page["statements"]]
        at = page["next_statement"]
    assert len(seen) == len(set(seen)) == document["all_statements"]
    assert browser.get(f"/dreams/{report.id}?fate=eaten").status_code == 400


def test_a_line_leads_to_its_words_and_back(site: Site, report: DreamReport) -> None:
    browser = site.browser(site.key())
    every = browser.get(f"/dreams/{report.id}.json?at=0").json()["statements"]
    one = next(one for one in every if one["line"] is not None)
    entry = browser.get(f"/memories/notes/{one['source']}").text
    back = re.search(rf"/dreams/{report.id}\?line=(\d+)#line-(\d+)", entry)
    assert back is not None
    page = browser.get(f"/dreams/{report.id}?line={back[1]}").text
    assert f'id="line-{back[1]}"' in page
    assert f"/memories/notes/{one['source']}" in page


def test_a_page_of_a_dream_reads_only_the_sources_it_shows(
    site: Site, report: DreamReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    actor, one = site.host.system_actor("acme"), report.sources[3].id
    assert set(site.host.lineage.diff(actor, report.id, only={one}).texts) == {one}
    browser = site.browser(site.key())
    with counting(monkeypatch) as read:
        document = browser.get(f"/dreams/{report.id}.json").json()
    shown = [source["id"] for part in document["sections"] for line in part["lines"] for source in line["sources"]]
    must_keep = [item["source"] for item in document["must_keep"]]
    rows = [one["source"] for one in document["statements"]]
    assert read["to_entry"] == len({*shown, *must_keep, *rows}) + 2  # and the text of the dream, for two uses
    assert read["to_entry"] < len(report.sources)


def test_versions_are_compared_word_by_word(site: Site) -> None:
    actor = site.host.system_actor("versions")
    first = site.put("versions", "The launch is on 12 March in Bremen.")
    ids = [first]
    for day in ("19 March", "2 April"):
        draft = Draft(f"The launch is on {day} in Bremen.")
        ids.append(site.host.entries.supersede(actor, "notes", ids[-1], draft).id)
    browser = site.browser(site.key("versions"))
    document = browser.get(f"/memories/notes/{ids[2]}.json").json()
    assert [one["id"] for one in document["versions"]] == ids[::-1]
    assert (document["compared"]["older"]["id"], document["compared"]["newer"]["id"]) == (ids[1], ids[2])
    page = browser.get(f"/memories/notes/{ids[2]}?with={first}").text
    assert "<del>12 March</del>" in page
    assert "<ins>2 April</ins>" in page
    old = browser.get(f"/memories/notes/{first}.json").json()["compared"]
    assert (old["older"]["id"], old["newer"]["id"]) == (first, ids[1])
    assert browser.get(f"/memories/notes/{first}?with={site.put('versions', 'Other.')}").status_code == 404


def test_facets_count_the_whole_memory(site: Site) -> None:
    actor = site.host.system_actor("facets")
    drafts = [
        Draft(f"Boat {n}.", tags=(f"pier-{n % 3}",), kind="decision" if n < 5 else "note", source=Source(actor="mara"))
        for n in range(60)
    ]
    site.host.entries.put(actor, "notes", drafts)
    browser = site.browser(site.key("facets"))
    for path in ("/memories.json", "/memories.json?q=boat+7"):
        found = {one["name"]: one["values"] for one in browser.get(path).json()["facets"]}
        assert found["tag"] == [{"value": f"pier-{n}", "count": 20} for n in range(3)]
        assert found["kind"] == [{"value": "note", "count": 55}, {"value": "decision", "count": 5}]
    assert len(browser.get("/memories.json?kind=decision").json()["items"]) == 5


def test_facets_do_not_name_what_was_just_destroyed(site: Site) -> None:
    actor = site.host.system_actor("destroyed")
    browser = site.browser(site.key("destroyed"))
    ids = [site.put("destroyed", f"{name} rows.", subject=name) for name in ("adalbert", "boniface", "cyrus")]
    assert "adalbert" in browser.get("/memories?ref=notes").text
    site.host.forget.forget(actor, "adalbert")
    assert "adalbert" not in browser.get("/memories?ref=notes").text
    assert "boniface" in browser.get("/memories?ref=notes").text
    site.host.lifecycle.erase(actor, "notes", ids[1])
    assert "boniface" not in browser.get("/memories?ref=notes").text


def test_a_near_miss_that_is_destroyed_meanwhile_costs_no_hit(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    actor = site.host.system_actor("near")
    for n in range(60):
        site.put("near", f"Mara: mooring {n} has {n + 2} rings.")
    browser = site.browser(site.key("near"))
    address = "/memories.json?ref=notes&q=rings+of+mooring+7"
    near = [one["id"] for one in browser.get(address).json()["near"]]
    timed = site.app.state.host.search
    search = timed.search

    def meanwhile(*arguments: Any, **options: Any) -> Any:
        found = search(*arguments, **options)
        site.host.lifecycle.erase(actor, "notes", near[0])
        return found

    monkeypatch.setattr(timed, "search", meanwhile)
    answer = browser.get(address)
    assert answer.status_code == 200
    assert near[0] not in [one["id"] for one in answer.json()["near"]]
    assert answer.json()["hits"]


def test_the_context_lab_looks_back_before_a_dream(site: Site) -> None:
    actor = site.host.system_actor("then")
    for n in [*range(40), *range(40)]:
        site.put("then", f"Mara: mooring {n} has {n + 2} rings and costs {n + 30} euros.")
    before = site.host.reader.snapshot(actor)
    report = site.host.dreams.run(actor, DreamPlan(ref="notes", budget=20_000))
    assert report is not None
    site.put("then", "Mara: mooring 7 has 99 rings since the storm.")
    browser = site.browser(site.key("then"))
    asked = "/context.json?q=how+many+rings+has+mooring+7&budget=400"
    now, then = browser.get(asked).json(), browser.get(f"{asked}&as_of={before}").json()
    assert "99 rings" in now["packed"][0]["text"]
    assert "99 rings" not in then["packed"][0]["text"]
    assert "9 rings" in then["packed"][0]["text"]
    assert report.output_id not in then["packed"][0]["included"]
    assert browser.get(f"{asked}&as_of=0").json()["packed"][0]["text"] == ""
    assert browser.get(f"{asked}&as_of=someday-maybe").status_code == 400
