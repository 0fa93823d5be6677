"""The text printed at the first start: a key, shown once, and lines to paste into another shell."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from reverie.core.actor import ALL_RIGHTS
from reverie.host import Host
from reverie.settings import Settings

TENANT = "default"


def home_tenant(host: Host) -> str:
    """The tenant of the first key and of the one-time link: `default`, unless there are only others."""
    tenants = host.tenants()
    return TENANT if TENANT in tenants or not tenants else tenants[0]


def first_key(host: Host) -> tuple[str, str] | None:
    """Create a key for the home tenant when the database has none. Returns (key, tenant), or None."""
    if host.parts.read_only or host.keys.all():
        return None
    tenant = home_tenant(host)
    return host.keys.create(tenant, name="first", rights=ALL_RIGHTS).key, tenant


def paste(settings: Settings, url: str) -> list[str]:
    """Lines for another shell, after which the command line works on the same data as this server."""
    lines = []
    activate = Path(sys.prefix) / "bin" / "activate"
    if sys.prefix != sys.base_prefix and activate.exists() and shutil.which("reverie") is None:
        lines.append(f". {shlex.quote(str(activate))}")
    if settings.postgres or settings.database == ":memory:":
        lines.append(f"export REVERIE_URL={url}   # and REVERIE_KEY: a key of yours")
    elif settings.database_url:
        lines.append(f"export REVERIE_DATABASE_URL={shlex.quote(f'sqlite:///{Path(settings.database).resolve()}')}")
    else:
        lines.append(f"export REVERIE_DATA={shlex.quote(str(settings.data_folder.resolve()))}")
    return lines


def banner(url: str, key: str, tenant: str, lines: Sequence[str]) -> str:
    """The text of the first start. The key is shown here and nowhere else."""
    named = "" if tenant == TENANT else f" --tenant {tenant}"
    memory = f"{url}/v1/host/reverie/memory/default"
    shell = "\n".join(f"    {line}" for line in lines)
    return f"""\
Reverie has no keys yet. Here is one for the tenant "{tenant}", with all rights. It is shown only this once:

    export REVERIE_KEY={key}

The command line, in another shell, on the same data:

{shell}
    reverie put "The customer prefers e-mail to phone calls."{named}
    reverie search "how should I contact the customer?"{named}

The same over HTTP, and the reference of every operation:

    curl -s {memory}/entries -H "Authorization: Bearer $REVERIE_KEY" -H "Content-Type: application/json" \\
         -d '{{"content": "The customer prefers e-mail to phone calls.", "tags": ["preference"]}}'
    {url}/docs
"""
