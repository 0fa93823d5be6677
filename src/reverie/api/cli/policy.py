"""reverie policy ...: what an operator decides per tenant."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from reverie.api.cli.session import DEFAULT_TENANT, Data, DatabaseUrl, Json, Tenant, session
from reverie.api.cli.terminal import print_fields, print_json

app = typer.Typer(help="Limits, retention and quotas of a tenant.", no_args_is_help=True)


@app.command("show")
def show(
    tenant: Tenant = DEFAULT_TENANT, data: Data = None, database_url: DatabaseUrl = None, json: Json = False
) -> None:
    """Show a tenant's policy.

    \b
    Example:
      reverie policy show --tenant acme
    """
    with session(tenant, data, database_url, text=False) as opened:
        found = opened.host.rules.policy(opened.actor).document()
    _print(found, json)


@app.command("set")
def set_policy(
    changes: Annotated[list[str], typer.Argument(metavar="NAME=VALUE...", help="`none` empties what may be empty.")],
    tenant: Tenant = DEFAULT_TENANT,
    data: Data = None,
    database_url: DatabaseUrl = None,
    json: Json = False,
) -> None:
    """Change a tenant's policy. Names ending in _ms take milliseconds or a duration such as 14d.

    \b
    Example:
      reverie policy set max_entries=500000 undo_window_ms=14d --tenant acme
    """
    parsed = dict(_change(change) for change in changes)
    with session(tenant, data, database_url, create=True, text=False) as opened:
        found = opened.host.rules.set_policy(opened.actor, parsed).document()
    _print(found, json)


def _change(text: str) -> tuple[str, Any]:
    from reverie.core.clock import parse_duration
    from reverie.core.errors import Invalid
    from reverie.core.policy import TenantPolicy

    name, equals, value = text.partition("=")
    if not equals:
        raise Invalid("Write changes as NAME=VALUE. `reverie policy show` lists the names.")
    if value == "none":
        return name, None
    if isinstance(getattr(TenantPolicy(), name, None), str):
        return name, value
    if value.isascii() and value.isdigit() and len(value) < 19:
        return name, int(value)
    return name, parse_duration(value) if name.endswith("_ms") else value


def _print(found: dict[str, Any], json: bool) -> None:
    if json:
        print_json(found)
    else:
        print_fields({name: "none" if value is None else value for name, value in found.items()})
