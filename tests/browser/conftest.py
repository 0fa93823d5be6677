"""One browser, and a server for each module, over a store that has something of everything.

Collected only where a Chromium is installed: `make test` says when there is none, and `.ci/run` installs one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, sync_playwright

from reverie.app import build_app, build_host
from reverie.core.entry import Draft
from reverie.host import Host
from reverie.http.run import bind
from reverie.settings import Settings

CHROMIUM = next(
    (
        path
        for path in ("/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome")
        if Path(path).exists()
    ),
    "",
)
SECRET = "Velvet.Walrus-" + "q7x" * 5
"""Made up here; registered as a secret and written into memory."""


@dataclass
class Site:
    """A running host and its address."""

    host: Host
    url: str
    app: Any = None
    keys: dict[str, str] = field(default_factory=dict)

    def key(self, *rights: str, tenant: str = "acme") -> str:
        return self.host.keys.create(tenant, rights=rights or ("read", "write", "dream", "admin")).key

    def put(self, content: str, *, ref: str = "notes", tenant: str = "acme", **fields: Any) -> str:
        return self.host.entries.put(self.host.system_actor(tenant), ref, [Draft(content, **fields)])[0].id


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A host with memories, a dream, a secret, a schedule and an agent, served from a thread."""
    settings = Settings.load({}, data=tmp_path_factory.mktemp("site"), worker=False, rate_per_second=0)
    host = build_host(settings)
    listener = bind("127.0.0.1", 0)
    app = build_app(settings, host)
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    made = Site(host, f"http://127.0.0.1:{listener.getsockname()[1]}", app)
    _fill(made)
    thread.start()
    yield made
    server.should_exit = True
    thread.join(20)
    listener.close()
    host.close()


def _fill(site: Site) -> None:
    actor = site.host.system_actor("acme")
    site.host.rules.register(actor, "pet", SECRET)
    site.put(f"The pet of the office answers to {SECRET} only.")
    for n in [*range(14), *range(14)]:  # said twice: a small memory loses nothing else
        site.put(
            f"Mara: berth {n} costs {n + 10} euros a day and is {n + 4} metres long.",
            tags=("berth",),
            subject="harbour",
        )
    from reverie.core.dream import DreamPlan

    site.host.dreams.run(actor, DreamPlan(ref="notes", budget=4000, fit=True))
    for n in range(30):
        site.put(f"Jonas: boat {n} was checked; the hull is dry and the {n + 3} oars are complete.", tags=("boat",))
    site.host.schedules.save(actor, {"cron": "0 3 * * *"})
    site.host.agents.install(
        actor,
        {
            "agentId": "desk",
            "label": "Desk",
            "persona": "calm",
            "modelClass": "small",
            "memoryShape": {"longTerm": True},
        },
    )


@pytest.fixture(scope="module")
def playwright() -> Iterator[Playwright]:
    """For this module alone: its event loop runs in the thread of the tests, where others start loops of their own."""
    with sync_playwright() as play:
        yield play


@pytest.fixture(scope="module")
def browser(playwright: Playwright) -> Iterator[Browser]:
    """Debian's Chromium. `rebound.test` is a name of another site that resolves to this machine."""
    rules = "--host-resolver-rules=MAP rebound.test 127.0.0.1"
    made = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", rules])
    yield made
    made.close()


class Tab:
    """A page of a browser that is signed in, with everything it complained about."""

    def __init__(self, context: BrowserContext, url: str) -> None:
        self.context = context
        self.page: Page = context.new_page()
        self.url = url
        self.complaints: list[str] = []
        self.page.on("console", lambda message: self._note(message.type, message.text))
        self.page.on("pageerror", lambda fault: self.complaints.append(str(fault)))
        self.page.on("dialog", lambda dialog: (self.complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()))

    def _note(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.complaints.append(text)

    def go(self, path: str) -> Page:
        self.page.goto(self.url + path)
        return self.page

    def sign_in(self, key: str) -> Page:
        self.go("/sign-in")
        self.page.fill("#key", key)
        self.page.click("button:has-text('Sign in')")
        return self.page


Open = Callable[..., Tab]


@pytest.fixture
def tab(browser: Browser, site: Site) -> Iterator[Open]:
    """Opens a tab; with `key`, signed in. Fails when a page complained, unless the test took the complaints."""
    opened: list[Tab] = []

    def make(key: str | None = None, **options: Any) -> Tab:
        made = Tab(browser.new_context(viewport={"width": 1280, "height": 860}, **options), site.url)
        made.page.set_default_timeout(15_000)
        opened.append(made)
        if key is not None:
            made.sign_in(key)
        return made

    yield make
    complaints = [complaint for one in opened for complaint in one.complaints]
    for one in opened:
        one.context.close()
    assert complaints == []
