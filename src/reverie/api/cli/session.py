"""What every command that touches data has in common: its options, and how it opens the host."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from reverie.core.actor import Actor
    from reverie.host import Host
    from reverie.settings import Settings

Tenant = Annotated[str, typer.Option("--tenant", metavar="NAME", help="Whose memory.")]
Data = Annotated[str | None, typer.Option("--data", metavar="DIR", help="Data folder; else REVERIE_DATA.")]
DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        "--database-url", metavar="URL", help="postgresql://... or sqlite:///PATH; else REVERIE_DATABASE_URL."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Answer in JSON.")]
Ref = Annotated[str, typer.Option("--ref", "-r", metavar="REF", help="Which memory of the tenant.")]
AnyRef = Annotated[str | None, typer.Option("--ref", "-r", metavar="REF", help="Only this memory of the tenant.")]
Tags = Annotated[list[str], typer.Option("--tag", "-t", metavar="TAG", help="May be repeated.")]
Subject = Annotated[str | None, typer.Option("--subject", "-s", metavar="WHO", help="Whom it is about.")]
AllTenants = Annotated[bool, typer.Option("--all-tenants", help="Every tenant, one after the other.")]

DEFAULT_TENANT = "default"
DEFAULT_REF = "default"


@dataclass(frozen=True, slots=True)
class Session:
    """A host, opened for one command, and the person at the terminal acting for one tenant."""

    host: Host
    actor: Actor
    settings: Settings

    def acting_for(self, tenant: str) -> Actor:
        """The same person, for another tenant."""
        import dataclasses

        return dataclasses.replace(self.actor, tenant=tenant)


def load_settings(data: str | None, database_url: str | None) -> Settings:
    """Settings with the two options every command has. A folder that is named wins over a URL that is not."""
    from reverie.settings import Settings

    if data is not None and database_url is None:
        database_url = ""
    return Settings.load(data=data, database_url=database_url)


@contextmanager
def session(
    tenant: str, data: str | None, database_url: str | None, *, create: bool = False, text: bool = True
) -> Iterator[Session]:
    """Open the host for the time of one command. Only commands that write make a database (`create`).

    `text=False` leaves embedder and tokenizer out: commands that neither write nor search start sooner without them.
    """
    import dataclasses

    from reverie.app import build_host
    from reverie.core.actor import Actor
    from reverie.core.entry import valid_tenant
    from reverie.core.errors import Invalid, StoreUnavailable

    if not valid_tenant(tenant):
        raise Invalid("A tenant is 1 to 64 lower-case letters, digits and . _ -", pointer="/tenant")
    settings = load_settings(data, database_url)
    if not text:
        settings = dataclasses.replace(settings, embedder="none", tokenizer="none")
    try:
        host = build_host(settings, create=create)
    except StoreUnavailable as fault:
        if create or "There is no database" not in fault.message:
            raise
        raise StoreUnavailable(
            f"{fault.message} Write something first (reverie put TEXT), or name the folder with --data."
        ) from None
    try:
        yield Session(host, Actor(tenant=tenant, id="local:cli", door="cli"), settings)
    finally:
        host.close()


def instant(text: str | None, option: str) -> int | None:
    """Milliseconds of an RFC 3339 time, of an age (`7d` is a week ago), or of words such as `yesterday`."""
    if text is None:
        return None
    from reverie.core.clock import SystemClock
    from reverie.search.dates import instant as named

    words = None if "T" in text[1:] and "-" in text else named(text, SystemClock().now(), end=option == "--until")
    return _time(text, option, -1) if words is None else words


def deadline(text: str | None, option: str) -> int | None:
    """Milliseconds of an RFC 3339 time, or of a duration from now: `30d` is in thirty days."""
    return None if text is None else _time(text, option, 1)


def _time(text: str, option: str, sign: int) -> int:
    from reverie.core.clock import LATEST, SystemClock, from_iso, parse_duration
    from reverie.core.errors import Invalid

    try:
        if "T" in text[1:] and "-" in text:
            return from_iso(text)
        at = SystemClock().now() + sign * parse_duration(text)
    except Invalid as fault:
        raise Invalid(f"{option}: {fault.message}") from None
    if not 0 <= at <= LATEST:
        raise Invalid(f"{option}: the time is out of range.")
    return at
