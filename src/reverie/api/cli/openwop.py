"""reverie openwop ...: the capabilities that any OpenWOP host advertises."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

from reverie.api.cli.command import Argument, Group
from reverie.api.cli.session import Json
from reverie.api.cli.terminal import print_json, print_table, say

if TYPE_CHECKING:
    from reverie.protocols.openwop.capabilities import CapabilityVerdict

app = Group("OpenWOP: read a host's discovery document.")
WELL_KNOWN = "/.well-known/openwop"
MOST_BYTES = 4 * 2**20
SECONDS = 15.0


@app.command("profile")
def profile(
    url: Annotated[str, Argument(metavar="URL", help="The host, or its discovery document.")], json: Json = False
) -> None:
    """Show the eight memory dimensions and the profiles of a host, each with its reason.

    \b
    Example:
      reverie openwop profile http://127.0.0.1:8484
    """
    from reverie.protocols.openwop.capabilities import dimensions
    from reverie.protocols.openwop.profiles import profiles

    address = discovery_url(url)
    document = fetch(address)
    found, derived = dimensions(document), profiles(document)
    if json:
        print_json({"url": address, "dimensions": _rows(found), "profiles": _rows(derived)})
        return
    say(f"{address}\n")
    _print("dimension", found)
    say("")
    _print("profile", derived)


def discovery_url(url: str) -> str:
    """The address of a host's discovery document."""
    from reverie.core.errors import Invalid

    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
    except ValueError:
        raise Invalid("This is not an address. Name a host: http://127.0.0.1:8484") from None
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise Invalid("Name a host: http://127.0.0.1:8484")
    path = parts.path.rstrip("/")
    path = path if path.endswith(WELL_KNOWN) else path + WELL_KNOWN
    return f"{parts.scheme}://{parts.netloc}{path}"


def fetch(address: str) -> dict[str, Any]:
    """Fetch the document. Refuses one that is too large, too slow or not a JSON object: its author is not trusted."""
    import time

    import httpx2

    from reverie.core.errors import Invalid, ReverieError
    from reverie.http.parsing import parse

    until = time.monotonic() + SECONDS
    body = bytearray()
    try:
        with (
            httpx2.Client(timeout=SECONDS, follow_redirects=True, max_redirects=5) as client,
            client.stream("GET", address, headers={"Accept": "application/json"}) as answer,
        ):
            if answer.status_code != 200:
                raise ReverieError(f"The host answered {answer.status_code}, not 200.", code="unreachable")
            for chunk in answer.iter_bytes():
                body += chunk
                if len(body) > MOST_BYTES or time.monotonic() > until:
                    raise ReverieError("The document is too large or comes too slowly.", code="unreachable")
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, OSError) as fault:
        message = f"{address} does not answer ({type(fault).__name__}). Is it running, and is this its address?"
        raise ReverieError(message, code="unreachable") from None
    document = parse(bytes(body))
    if not isinstance(document, dict):
        raise Invalid("The document is not a JSON object.")
    return document


def _print(noun: str, verdicts: Iterable[CapabilityVerdict]) -> None:
    rows = [(verdict.name, "yes" if verdict.holds else "no", verdict.reason) for verdict in verdicts]
    print_table([noun, "holds", "because"], rows, stretch="because", keep=("holds",), lines=None)


def _rows(verdicts: Iterable[CapabilityVerdict]) -> list[dict[str, Any]]:
    return [{"name": v.name, "holds": v.holds, "reason": v.reason} for v in verdicts]
