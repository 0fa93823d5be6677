"""The sample that fills an empty tenant."""

from __future__ import annotations

from pathlib import Path

from tests.unit.api.console.test_pages import Site, token

from reverie.core.dream import DreamPlan
from reverie.demo.corpus import entries


def test_an_empty_tenant_is_filled_once_and_can_be_dreamt(tmp_path: Path) -> None:
    site = Site(tmp_path)
    assert "Load the sample" not in site.browser(site.key("fresh")).get("/").text
    site.app.state.console_sample = entries
    browser = site.browser(site.key("fresh"))
    assert "Load the sample" in browser.get("/").text
    form = {"do": "sample", "token": token(browser)}
    assert browser.post("/", data=form).headers["location"].startswith("/memories?ref=tidebook")
    actor = site.host.system_actor("fresh")
    [(ref, count)] = site.host.reader.refs(actor)
    assert (ref, count) == ("tidebook", 292)
    newest = site.host.reader.page(actor, ref, limit=1).items[0].created_at
    assert 0 < site.host.parts.clock.now() - newest < 3 * 86_400_000
    assert browser.post("/", data=form).status_code == 409
    report = site.host.dreams.run(actor, DreamPlan(ref=ref, budget=8000, fit=True))
    assert report is not None
    assert (len(report.sources), report.left_for_later) == (291, 0)  # all but the pinned entry
    assert report.tokens_before > 2 * report.output_tokens
    assert "Load the sample" not in browser.get("/").text
    assert "Load the sample" not in site.browser(site.key("other", "read")).get("/").text
    site.host.close()
