"""Take pictures of the console: every page, wide and phone, light and dark. `make screenshots` runs it.

python tools/screenshots.py --out docs/images                 its own server, over the demo's store
python tools/screenshots.py --link URL --only dreams,home     a server that runs already, by its one-time link
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
CHROMIUM = next(
    (p for p in ("/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome") if Path(p).exists()), ""
)
WIDTHS = {"wide": (1280, 860), "phone": (390, 844)}
PAGES = {
    "home": "/",
    "memories": "/memories",
    "search": "/memories?q=how+many+boats+does+the+free+plan+allow",
    "memory": "first:/memories:.rows a.content",
    "dreams": "/dreams",
    "dream": "first:/dreams:tr[data-item] + tr[data-item] td a",
    "diff": "first:/dreams:tr[data-item] + tr[data-item] td a@?lines=changed#before-and-after",
    "context": "/context?q=What+did+we+decide+about+the+launch%3F&budget=600",
    "windows": "/windows",
    "agents": "/agents",
    "field": "/field",
    "forget": "/forget",
    "audit": "/audit",
    "operate": "/operate",
    "docs": "/docs",
}


SHOWN = {("light", "wide"): ("home", "memories", "dream", "diff", "context")}
"""The pictures in docs/images."""


def main() -> None:
    """Take the pictures."""
    asked = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    asked.add_argument("--out", type=Path, default=ROOT / "docs" / "images")
    asked.add_argument("--only", default="")
    asked.add_argument("--schemes", default="light,dark")
    asked.add_argument("--widths", default="wide,phone")
    asked.add_argument("--link", default="")
    asked.add_argument("--docs", action="store_true", help="only the pictures that README and docs show")
    asked.add_argument("--full", action="store_true", help="the whole page, not one screen of it")
    given = asked.parse_args()
    if not CHROMIUM:
        sys.exit("No Chromium is installed: apt-get install chromium")
    given.out.mkdir(parents=True, exist_ok=True)
    names = [name for name in given.only.split(",") if name] or list(PAGES)
    with server(given.link) as link, sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        cookies = signed_in(browser, link)
        for scheme in given.schemes.split(","):
            for width in given.widths.split(","):
                if given.docs and (scheme, width) not in SHOWN:
                    continue
                names = list(SHOWN[scheme, width]) if given.docs else names
                take(browser, cookies, link, names, scheme, width, given.out, full=given.full)
        browser.close()


def signed_in(browser: Browser, link: str) -> list[dict[str, object]]:
    """The cookies after following the link."""
    context = browser.new_context()
    context.new_page().goto(link)
    found = context.cookies()
    context.close()
    return [dict(cookie) for cookie in found]


def take(
    browser: Browser,
    cookies: list[dict[str, object]],
    link: str,
    names: list[str],
    scheme: str,
    width: str,
    out: Path,
    *,
    full: bool,
) -> None:
    """One scheme at one width."""
    base, (wide, high) = link.split("/sign-in")[0], WIDTHS[width]
    context = browser.new_context(viewport={"width": wide, "height": high}, color_scheme=scheme, device_scale_factor=1)  # type: ignore[arg-type]
    context.add_cookies(cookies)  # type: ignore[arg-type]
    page = context.new_page()
    page.on("console", lambda message: print("console:", message.text) if message.type == "error" else None)
    page.on("pageerror", lambda fault: print("page error:", fault))
    for name in names:
        if go(page, base, PAGES[name]):
            page.wait_for_timeout(250)
            file = out / f"{name}-{width}-{scheme}.png"
            page.screenshot(path=str(file), full_page=full)
            print(file)
    context.close()


def go(page: Page, base: str, where: str) -> bool:
    """Open a page, or the first link of one; after an `@`, what is added to its address."""
    where, _, part = where.partition("@")
    if where.startswith("first:"):
        _, path, selector = where.split(":", 2)
        page.goto(base + path)
        found = page.locator(selector).first
        if not found.count():
            return False
        page.goto(base + str(found.get_attribute("href")) + part)
        return True
    answer = page.goto(base + where)
    return answer is not None and answer.status < 400


@contextmanager
def server(link: str) -> Iterator[str]:
    """The one-time link of a server: the one given, or of a new one over the demo's store."""
    if link:
        yield link
        return
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "REVERIE_DATA": f"{folder}/tour", "REVERIE_PORT": "0", "REVERIE_DATABASE_URL": ""}
        reverie = [sys.executable, "-m", "reverie.api.cli.main"]
        subprocess.run(
            [*reverie, "demo", "--keep", f"{folder}/tour"], env=environment, check=True, stdout=subprocess.DEVNULL
        )
        process = subprocess.Popen(
            [*reverie, "serve"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        try:
            assert process.stdout is not None
            yield next(line.split()[-1] for line in process.stdout if "/sign-in?once=" in line)
        finally:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    main()
