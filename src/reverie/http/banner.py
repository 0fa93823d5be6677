"""What the first run shows: a key, once, and three things to try."""

from __future__ import annotations

from reverie.core.actor import ALL_RIGHTS
from reverie.host import Host

TENANT = "default"


def first_key(host: Host) -> str | None:
    """A key for the default tenant when the database has none yet; None otherwise."""
    if host.parts.read_only or host.keys.all():
        return None
    return host.keys.create(TENANT, name="first", rights=ALL_RIGHTS).key


def banner(url: str, key: str) -> str:
    """The text. The key is shown here and nowhere else."""
    memory = f"{url}/v1/host/reverie/memory/demo"
    return f"""\
Reverie has no keys yet. Here is one for the tenant "{TENANT}", with all rights. It is shown only this once:

    export REVERIE_KEY={key}

Three things to try:

  1. store a memory
     curl -s {memory}/entries -H "Authorization: Bearer $REVERIE_KEY" -H "Content-Type: application/json" \\
          -d '{{"content": "The customer prefers e-mail to phone calls.", "tags": ["preference"]}}'

  2. find it again
     curl -s {memory}/search -H "Authorization: Bearer $REVERIE_KEY" -H "Content-Type: application/json" \\
          -d '{{"query": "how should I contact the customer?"}}'

  3. see everything the API can do
     {url}/v1/openapi.json
"""
