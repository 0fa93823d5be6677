"""Two tabs of the console: what one changed is not taken back by the older page in the other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import Any

import pytest
from tests.unit.api.console.test_pages import Site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(tmp_path_factory.mktemp("site"))
    yield made
    made.host.close()


def policy_form(page: str) -> dict[str, str]:
    """The fields of the policy as a browser would send them back."""
    form = next(part for part in page.split("<form")[1:] if 'value="set_policy"' in part).split("</form>")[0]
    inputs = re.findall(r"<input[^>]*>", form)
    fields = {unescape(re.search(r'name="([^"]*)"', one)[1]): one for one in inputs}  # type: ignore[index]
    sent = {name: re.search(r'value="([^"]*)"', one) for name, one in fields.items()}
    results = {name: unescape(found[1]) if found else "" for name, found in sent.items()}
    for name, options in re.findall(r'<select[^>]*name="([^"]*)"[^>]*>(.*?)</select>', form):
        results[name] = unescape(re.search(r"<option selected>([^<]*)", options)[1])  # type: ignore[index]
    return results


def test_a_policy_changed_in_one_tab_is_not_taken_back_by_another(site: Site) -> None:
    browser, rules = site.browser(site.key("tabs")), site.host.rules
    actor: Any = site.host.system_actor("tabs")
    first = policy_form(browser.get("/operate").text)
    second = dict(first)
    assert browser.post("/operate", data=first | {"max_tags": "7"}).status_code == 303
    assert rules.policy(actor).max_tags == 7
    assert browser.post("/operate", data=second | {"undo_window_ms": "3d"}).status_code == 303
    policy = rules.policy(actor)
    assert (policy.max_tags, policy.undo_window_ms) == (7, 3 * 86_400_000)
