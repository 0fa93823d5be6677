"""reverie secrets ...: values that must never be stored."""

from __future__ import annotations

import sys
from typing import Annotated

from reverie.api.cli.command import Argument, Group, ask
from reverie.api.cli.session import HERE, At
from reverie.api.cli.terminal import print_json, print_table, say

app = Group("Registered secrets: replaced in everything stored, kept encrypted.")

Id = Annotated[str, Argument(metavar="ID", help="A name for it: it is shown in place of the value.")]
_MAX_VALUE = 1 << 20


@app.command("add")
def add(secret_id: Id, at: At = HERE) -> None:
    """Register a secret. Its value comes from stdin or a hidden prompt, never from the command line.

    \b
    Examples:
      reverie secrets add stripe-live
      pass show stripe | reverie secrets add stripe-live
    """
    value = _value()
    with at.session(create=True, text=False) as opened:
        seq = opened.host.rules.register(opened.actor, secret_id, value)
    if at.json:
        print_json({"id": secret_id, "seq": seq})
        return
    say(f"registered {secret_id}; from now on it is stored as [REDACTED:{secret_id}]")
    say("to find it in stored text: reverie scan")


@app.command("list")
def list_secrets(at: At = HERE) -> None:
    """List the ids of registered secrets; never a value.

    \b
    Example:
      reverie secrets list
    """
    with at.session(text=False) as opened:
        ids = opened.host.rules.secret_ids(opened.actor)
    if at.json:
        print_json({"items": [{"id": secret_id} for secret_id in ids]})
        return
    print_table(["id"], [(secret_id,) for secret_id in ids], empty="No secrets are registered.")


@app.command("remove")
def remove(secret_id: Id, at: At = HERE) -> None:
    """Remove a secret from the registry. What was redacted stays redacted.

    \b
    Example:
      reverie secrets remove stripe-live
    """
    with at.session(text=False) as opened:
        seq = opened.host.rules.remove(opened.actor, secret_id)
    at.answer({"id": secret_id, "seq": seq}, f"removed {secret_id}")


def _value() -> str:
    from reverie.core.errors import Invalid

    if sys.stdin.isatty():
        return ask("Value: ", hidden=True)
    raw = sys.stdin.buffer.read(_MAX_VALUE + 1)
    if not raw.strip():
        raise Invalid("Stdin was empty. Pipe the value in, or run it in a terminal to be asked for it.")
    try:
        return raw[:_MAX_VALUE].decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise Invalid("The value on stdin is not UTF-8 text.") from None
