"""reverie secrets ...: values that must never be stored."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from reverie.api.cli.session import DEFAULT_TENANT, Data, DatabaseUrl, Json, Tenant, session
from reverie.api.cli.terminal import print_json, print_table, say

app = typer.Typer(help="Known secrets: replaced in everything stored, kept sealed.", no_args_is_help=True)

Id = Annotated[str, typer.Argument(metavar="ID", help="A name for it: it is shown in place of the value.")]
_MAX_VALUE = 1 << 20


@app.command("add")
def add(
    secret_id: Id,
    tenant: Tenant = DEFAULT_TENANT,
    data: Data = None,
    database_url: DatabaseUrl = None,
    json: Json = False,
) -> None:
    """Register a secret. Its value comes from stdin or a hidden prompt, never from the command line.

    \b
    Examples:
      reverie secrets add stripe-live
      pass show stripe | reverie secrets add stripe-live
    """
    value = _value()
    with session(tenant, data, database_url, create=True, text=False) as opened:
        seq = opened.host.rules.register(opened.actor, secret_id, value)
    if json:
        print_json({"id": secret_id, "seq": seq})
        return
    say(f"registered {secret_id}; from now on it is stored as [REDACTED:{secret_id}]")
    say("what was stored before: reverie scan")


@app.command("list")
def list_secrets(
    tenant: Tenant = DEFAULT_TENANT, data: Data = None, database_url: DatabaseUrl = None, json: Json = False
) -> None:
    """List the ids of registered secrets; never a value.

    \b
    Example:
      reverie secrets list
    """
    with session(tenant, data, database_url, text=False) as opened:
        ids = opened.host.rules.secret_ids(opened.actor)
    if json:
        print_json({"items": [{"id": secret_id} for secret_id in ids]})
        return
    print_table(["id"], [(secret_id,) for secret_id in ids], empty="No secrets are registered.")


@app.command("remove")
def remove(
    secret_id: Id,
    tenant: Tenant = DEFAULT_TENANT,
    data: Data = None,
    database_url: DatabaseUrl = None,
    json: Json = False,
) -> None:
    """Remove a secret from the registry. What was redacted stays redacted.

    \b
    Example:
      reverie secrets remove stripe-live
    """
    with session(tenant, data, database_url, text=False) as opened:
        seq = opened.host.rules.remove(opened.actor, secret_id)
    if json:
        print_json({"id": secret_id, "seq": seq})
        return
    say(f"removed {secret_id}")


def _value() -> str:
    from reverie.core.errors import Invalid

    if sys.stdin.isatty():
        value = typer.prompt("Value", hide_input=True, err=True)
        return str(value)
    raw = sys.stdin.buffer.read(_MAX_VALUE + 1)
    try:
        return raw[:_MAX_VALUE].decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise Invalid("The value on stdin is not UTF-8 text.") from None
