"""Common parts of the commands that use data: their options, and the opening of the host.

A command takes groups of options as parameters: `at: At = HERE`. `expand` gives it --tenant, --data, --database-url,
--url and --json in place of that parameter, and hands them over as one object.
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, cast

from reverie.api.cli.command import Option

if TYPE_CHECKING:
    from reverie.core.actor import Actor
    from reverie.host import Host
    from reverie.settings import Settings

Tenant = Annotated[str, Option("--tenant", metavar="NAME", help="The tenant.")]
Data = Annotated[str | None, Option("--data", metavar="DIR", help="Data folder; else REVERIE_DATA.")]
DatabaseUrl = Annotated[
    str | None,
    Option("--database-url", metavar="URL", help="postgresql://... or sqlite:///PATH; else REVERIE_DATABASE_URL."),
]
AnyTenant = Annotated[
    str | None, Option("--tenant", metavar="NAME", help="The tenant: `default`, or the key's own.", show_default=False)
]
Url = Annotated[
    str | None,
    Option(
        "--url",
        metavar="URL",
        help="A running host, with its key in REVERIE_KEY; else REVERIE_URL.",
        show_default=False,
    ),
]
Json = Annotated[bool, Option("--json", help="Answer in JSON.")]
Ref = Annotated[str, Option("--ref", "-r", metavar="REF", help="Name of the memory.")]
AnyRef = Annotated[str | None, Option("--ref", "-r", metavar="REF", help="Only this memory.")]
Tags = Annotated[list[str], Option("--tag", "-t", metavar="TAG", help="Only entries with this tag; may be repeated.")]
Subject = Annotated[
    str | None, Option("--subject", "-s", metavar="WHO", help="Only entries about this person or thing.")
]
AllTenants = Annotated[bool, Option("--all-tenants", help="Every tenant, one after the other.")]

DEFAULT_TENANT = "default"
DEFAULT_REF = "default"
LAST = "last"
"""Instead of the id of a dream: the newest."""
ID_LENGTH = 26
LEAST_PREFIX = 4
_LATER = "a duration (30d), a day (2027-01-31), an instant (2027-01-31T09:00:00Z), or words such as next friday"
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


@dataclass(frozen=True, slots=True)
class CommandSession:
    """A host, opened for one command, and the person at the terminal acting for one tenant."""

    host: Host
    actor: Actor
    settings: Settings

    def entry_id(self, ref: str, given: str) -> str:
        """The id that is `given` or begins with it. Raises Invalid when several do."""
        if len(given) >= ID_LENGTH:
            return given
        return _only(given, self.host.reader.ids(self.actor, ref, given)) if len(given) >= LEAST_PREFIX else given

    def dream_id(self, given: str, ref: str | None = None) -> str:
        """The id of the dream that is `given` or begins with it; for `last`, of the newest dream (of the memory)."""
        from reverie.core.errors import NotFound

        if given == LAST:
            newest = self.host.lineage.reports(self.actor, ref=ref, limit=1)
            if not newest:
                raise NotFound("There are no dreams yet. Make one: reverie dream run")
            return newest[0].id
        if not LEAST_PREFIX <= len(given) < ID_LENGTH:
            return given
        return _only(given, self.host.lineage.ids(self.actor, given, ref=ref))

    def position(self, given: str | None) -> int | None:
        """The log position of `--as-of`: the number itself, or the last position at a time. Raises Invalid."""
        if given is None or (given.isascii() and given.isdigit() and len(given) < 16):
            return None if given is None else int(given)
        at = instant(given, "--as-of")
        low, high = 0, self.host.reader.snapshot(self.actor)
        while at is not None and low < high:  # the log is in the order of time
            middle = (low + high + 1) // 2
            event = self.host.reader.events(self.actor, after=middle - 1, limit=1)
            low, high = (middle, high) if event and event[0].at < at else (low, middle - 1)
        return low

    def check_tenant(self) -> None:
        """Refuse a tenant that this host does not have, naming those with a similar name. Raises NotFound."""
        known = self.host.tenants()
        if self.actor.tenant not in known:
            self._none("tenant", self.actor.tenant, known, "reverie tenants")

    def check_ref(self, ref: str) -> None:
        """Refuse a memory that the tenant does not have, naming those with a similar name. Raises NotFound."""
        if not any(name == ref for name, _ in self.host.reader.refs(self.actor, ref)) and ref != DEFAULT_REF:
            self._none("memory", ref, [name for name, _ in self.host.reader.refs(self.actor)], "reverie refs")

    def _none(self, noun: str, name: str, known: list[str], listing: str) -> NoReturn:
        from reverie.api.cli.command import near
        from reverie.core.errors import NotFound

        raise NotFound(f"There is no {noun} named {name[:64]}{near(name, known) or '.'} {listing} lists them.")

    def acting_for(self, tenant: str) -> Actor:
        """The same person, for another tenant."""
        import dataclasses

        return dataclasses.replace(self.actor, tenant=tenant)


class Options:
    """Base of a group of options: a dataclass whose fields are declared like the parameters of a command."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class At(Options):
    """Target and output format of a command."""

    tenant: AnyTenant = None
    data: Data = None
    database_url: DatabaseUrl = None
    url: Url = None
    json: Json = False

    def answer(self, document: Any, line: str) -> None:
        """Print the document under --json, the line otherwise."""
        from reverie.api.cli.terminal import print_json, say

        print_json(document) if self.json else say(line)

    @contextmanager
    def session(self, *, create: bool = False, text: bool = True, ref: str | None = None) -> Iterator[CommandSession]:
        """Open the host for one command: a running one, or the data itself.

        A tenant that does not exist is refused unless the command writes (`create`). A NotFound of the command says
        whether the memory `ref` exists.
        """
        from reverie.core.errors import NotFound

        with self._open(create=create, text=text) as opened:
            if self.tenant is not None and not create:
                opened.check_tenant()
            try:
                yield opened
            except NotFound as fault:
                if ref is None:
                    raise
                opened.check_ref(ref)
                where = f"in the memory {ref}. `reverie list --ref {ref}` shows what it has, `reverie refs` the others."
                raise NotFound(fault.message.replace("in this memory.", where), code=fault.reason) from None

    def _open(self, *, create: bool, text: bool) -> AbstractContextManager[CommandSession]:
        url = self.host_url
        if url is not None:
            return remote_session(url, self.tenant, quiet=self.json)
        place = (self.data, self.database_url)
        return session(self.tenant or DEFAULT_TENANT, *place, create=create, text=text, local=True)

    @property
    def host_url(self) -> str | None:
        """The address of the running host; None: the data is opened here. Options win over the environment."""
        from reverie.core.errors import Invalid

        if self.url is not None:
            if self.data is not None or self.database_url is not None:
                raise Invalid("Give --url, or --data or --database-url: not both.")
            return self.url
        from reverie.settings import client_setting

        return (client_setting("REVERIE_URL") or None) if self.data is None and self.database_url is None else None


HERE = At()


def expand(command: Callable[..., None]) -> Callable[..., None]:
    """The command with its groups replaced by their options; a command without groups is returned as it is."""
    signature = inspect.signature(command, eval_str=True)
    groups: dict[str, tuple[Any, list[str]]] = {}
    parameters: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        group = parameter.annotation
        if not (isinstance(group, type) and issubclass(group, Options)):
            parameters.append(parameter)
            continue
        hints = typing.get_type_hints(group, include_extras=True)
        groups[name] = group, list(hints)
        parameters += [
            inspect.Parameter(
                option, inspect.Parameter.KEYWORD_ONLY, default=getattr(parameter.default, option), annotation=hint
            )
            for option, hint in hints.items()
        ]
    if not groups:
        return command

    @functools.wraps(command)
    def run(**values: Any) -> None:
        made = {name: group(**{one: values.pop(one) for one in options}) for name, (group, options) in groups.items()}
        command(**values, **made)

    del run.__wrapped__  # or its parameters would be shown
    ordered = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    run.__signature__ = signature.replace(parameters=ordered)  # type: ignore[attr-defined]
    run.__annotations__ = {**{parameter.name: parameter.annotation for parameter in ordered}, "return": None}
    return run


class _Patience:
    """Sleeps between two attempts to reach a host, and says so once after a second unless `quiet`."""

    def __init__(self, url: str, *, quiet: bool) -> None:
        self._url = url
        self._slept = 0.0
        self._said = quiet

    def __call__(self, seconds: float) -> None:
        import time

        from reverie.api.cli.terminal import note

        self._slept += seconds
        if self._slept > 1 and not self._said:
            self._said = True
            note(f"Waiting for {self._url} ...")
        time.sleep(seconds)


@contextmanager
def remote_session(url: str, tenant: str | None, *, quiet: bool = False) -> Iterator[CommandSession]:
    """Open a running host for one command."""
    from reverie.client import connect
    from reverie.settings import Settings, client_setting

    remote = connect(url, key=client_setting("REVERIE_KEY"), tenant=tenant, sleep=_Patience(url, quiet=quiet))
    try:
        yield CommandSession(cast("Host", remote), remote.actor, Settings.load())
    finally:
        remote.close()


def load_settings(data: str | None, database_url: str | None) -> Settings:
    """Settings with the two options that every command has."""
    from reverie.settings import Settings

    return Settings.load(data=data, database_url=database_url)


@contextmanager
def session(
    tenant: str,
    data: str | None,
    database_url: str | None,
    *,
    create: bool = False,
    text: bool = True,
    local: bool = False,
) -> Iterator[CommandSession]:
    """Open the host for one command. Only commands that write make a database (`create`).

    `text=False` leaves embedder and tokenizer out: commands that neither write nor search start sooner without them.
    Unless `local`, REVERIE_URL is refused: a person who set it does not mean the data on this machine.
    """
    import dataclasses

    from reverie.app import build_host
    from reverie.core.actor import Actor
    from reverie.core.entry import valid_tenant
    from reverie.core.errors import Invalid, StoreUnavailable
    from reverie.settings import client_setting

    if not local and client_setting("REVERIE_URL") and data is None and database_url is None:
        raise Invalid(
            "This works on a data folder or a database only, and REVERIE_URL names a running host. Name the folder "
            "with --data, or unset REVERIE_URL.",
            code="not_remote",
        )
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
        yield CommandSession(host, Actor(tenant=tenant, id="local:cli", door="cli"), settings)
    finally:
        host.close()


def instant(text: str | None, option: str) -> int | None:
    """Milliseconds of an RFC 3339 time, of an age (`7d` is a week ago), or of words such as `yesterday`.

    Days are those of this machine's time zone. A day or longer period given as `--until` or `--as-of` is included.
    """
    if text is None:
        return None
    from reverie.core.clock import SystemClock, local_zone
    from reverie.core.errors import Invalid
    from reverie.search.dates import when

    try:
        return when(text, SystemClock().now(), zone=local_zone(), end=option in ("--until", "--as-of"))
    except Invalid as fault:
        raise Invalid(f"{option}: {fault.message}") from None


def deadline(text: str | None, option: str) -> int | None:
    """Milliseconds of a duration from now (`30d` is in thirty days), of an RFC 3339 time, of a day or of words."""
    if text is None:
        return None
    from reverie.core.clock import LATEST, SystemClock, parse_duration
    from reverie.core.errors import Invalid

    now = SystemClock().now()
    try:
        at = now + parse_duration(text)
    except Invalid:
        try:
            at = _next_weekday(text, now) or instant(text, option) or 0
        except Invalid:
            at = -1
    if at < 0:
        raise Invalid(f"{option}: this cannot be read as a time. Write {_LATER}.")
    if not now < at <= LATEST:
        raise Invalid(
            f"{option}: {'this time is out of range' if at > now else 'this time has passed'}. Write {_LATER}."
        )
    return at


def _next_weekday(text: str, now: int) -> int | None:
    """The beginning of the next such day for `friday`, `on friday` or `next friday`; None for anything else."""
    from datetime import datetime, timedelta
    from zoneinfo import ZoneInfo

    from reverie.core.clock import local_zone

    word = text.strip().lower().removeprefix("on ").removeprefix("next ")
    if word not in _WEEKDAYS:
        return None
    here = datetime.fromtimestamp(now / 1000, ZoneInfo(local_zone()))
    today = here.replace(hour=0, minute=0, second=0, microsecond=0)
    ahead = (_WEEKDAYS.index(word) - today.weekday() - 1) % 7 + 1
    return int((today + timedelta(days=ahead)).timestamp() * 1000)


def age(text: str | None, option: str) -> int:
    """Milliseconds of an age: `7d`, or how long ago a day, a time or words such as `last monday` are."""
    if text is None:
        return 0
    from reverie.core.clock import SystemClock, parse_duration
    from reverie.core.errors import Invalid

    try:
        return parse_duration(text)
    except Invalid:
        at = instant(text, option)
    now = SystemClock().now()
    if at is None or at > now:
        raise Invalid(f"{option}: this is not in the past.")
    return now - at


def _only(given: str, found: Sequence[str]) -> str:
    """The one id found for a prefix; the prefix itself when there is none, for the command to refuse."""
    from reverie.core.errors import Invalid

    if given in found or not found:
        return given
    if len(found) > 1:
        raise Invalid(
            f"{given} begins more than one id: {', '.join(found[:5])}. Write more of it.", code="ambiguous_id"
        )
    return found[0]


def pick(given: str, known: Iterable[str]) -> str:
    """The id among `known` that is `given` or begins with it. Raises Invalid when several do."""
    ids = list(known)
    return given if given in ids else _only(given, [one for one in ids if one.startswith(given)])
