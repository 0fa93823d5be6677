"""What a newcomer meets: the tenant of the first key and link, changed lines of a dream, and what it left for later."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.api.console.test_pages import Site

from reverie.api.cli.report import say_report
from reverie.core.dream import DreamPlan
from reverie.core.entry import Draft, Source
from reverie.http.banner import banner, first_key, home_tenant


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    made.host.close()


def test_the_first_key_and_the_link_are_for_the_tenant_that_has_the_data(site: Site) -> None:
    assert home_tenant(site.host) == "default"
    site.put("acme", "The slipway carries 12 tons.")
    made = first_key(site.host)
    assert made is not None
    key, tenant = made
    assert site.host.keys.authenticate(key, door="rest").tenant == tenant == "acme"
    assert first_key(site.host) is None
    assert 'search "how should I contact the customer?" --tenant acme' in banner("http://x", key, tenant, [])
    assert "--tenant" not in banner("http://x", key, "default", [])
    browser = site.browser()
    browser.get(f"/sign-in?once={site.app.state.console_links.make()}")
    assert "<strong>acme</strong>" in browser.get("/").text


def test_changed_lines_of_a_dream_are_shown_alone(site: Site) -> None:
    actor = site.host.system_actor("acme")
    said = ["Decision: the slipway carries 12 tons.", *(f"Berth {n} costs {n * 7 + 10} euros a day." for n in range(9))]
    site.host.entries.put(actor, "notes", [Draft(text) for text in (*said, *said[1:3])])
    report = site.host.dreams.run(actor, DreamPlan(ref="notes", budget=8000))
    assert report is not None
    browser = site.browser(site.key("acme"))
    whole = browser.get(f"/dreams/{report.id}.json").json()
    some = browser.get(f"/dreams/{report.id}.json?lines=changed").json()
    lines = {line["number"]: line for section in whole["sections"] for line in section["lines"]}
    changed = [line["number"] for section in some["sections"] for line in section["lines"]]
    assert 0 < len(changed) == whole["changed_lines"] < whole["lines"] == len(lines)
    for number, line in lines.items():
        plain = len(line["sources"]) == 1 and line["how"] == ["quoted"] and line["times"] == 1
        assert (number in changed) is not plain, line
    page = browser.get(f"/dreams/{report.id}?lines=changed").text
    assert re.search(r'aria-current="true">\d+ changed<', page)


def test_a_dream_that_took_a_part_says_what_is_left(site: Site) -> None:
    actor = site.host.system_actor("acme")
    said = [Draft(f"Berth {n // 2} costs {n // 2 * 7 + 10} euros a day.") for n in range(160)]
    site.host.entries.put(actor, "notes", said)
    report = site.host.dreams.run(actor, DreamPlan(ref="notes", budget=900, fit=True))
    assert report is not None
    assert report.left_for_later > 0
    page = site.browser(site.key("acme")).get(f"/dreams/{report.id}").text
    assert "did not fit into the budget of 900 tokens" in page.replace("\u2009", "")
    assert "/dreams?ref=notes#run" in page


def test_a_dream_says_in_words_why_its_memory_is_above_the_target(site: Site) -> None:
    actor = site.host.system_actor("acme")
    site.host.rules.set_policy(actor, {"hot_target": "20"})
    rules = [f"Never open valve {n} while pump {n + 7} is running." for n in range(12)]
    site.host.entries.put(actor, "notes", [Draft(text) for text in (*rules, *["Thanks a lot, see you soon!"] * 3)])
    report = site.host.dreams.run(actor, DreamPlan(ref="notes", fit=True))
    assert report is not None
    page = site.browser(site.key("acme")).get(f"/dreams/{report.id}").text
    assert "above its target of 20 tokens because nearly all that is left must be kept" in page


def test_a_dream_has_the_same_figures_in_the_console_and_on_the_command_line(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    actor, speaker = site.host.system_actor("acme"), Source(actor="Mara")
    said = [Draft(f"Berth {n // 2} costs {n // 2 * 7 + 10} euros a day.", source=speaker) for n in range(60)]
    site.host.entries.put(actor, "notes", said)
    report = site.host.dreams.run(actor, DreamPlan(ref="notes", budget=8000))
    assert report is not None
    assert report.tokens_before > report.taken_tokens > report.output_tokens
    shown = site.browser(site.key("acme")).get("/dreams.json").json()["dreams"][0]
    assert (shown["tokens_before"], shown["tokens_after"]) == (report.taken_tokens, report.output_tokens)
    say_report(report)
    assert f"60 entries, {report.taken_tokens} tokens" in capsys.readouterr().out
    assert f"60 entries, {report.taken_tokens} to {report.output_tokens} tokens" in repr(report)
