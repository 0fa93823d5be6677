"""reverie keys ...: API keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from reverie.api.cli.command import Argument, Group, Option
from reverie.api.cli.session import DEFAULT_TENANT, Data, DatabaseUrl, Json, deadline, pick, session
from reverie.api.cli.terminal import note, print_json, print_table, say

if TYPE_CHECKING:
    from reverie.memory.keys import NewKey

app = Group("API keys: create, list, revoke, rotate. Also while a server runs.")

Id = Annotated[
    str, Argument(metavar="ID", help="The key's id, as `reverie keys list` shows it, or a unique beginning of it.")
]


@app.command("create")
def create(
    tenant: Annotated[str, Option("--tenant", metavar="NAME", help="Tenant of the key.")] = DEFAULT_TENANT,
    rights: Annotated[
        str, Option(metavar="LIST", help="Comma-separated: read, write, dream, admin.")
    ] = "read,write,dream,admin",
    authority: Annotated[int | None, Option(metavar="0..10", help="Default: 10 with the right admin, else 4.")] = None,
    scopes: Annotated[str, Option(metavar="LIST", help="Limit the key to these scopes, comma-separated.")] = "",
    expires: Annotated[str | None, Option(metavar="WHEN", help="90d, a date, or an RFC 3339 time.")] = None,
    name: Annotated[str, Option(metavar="TEXT", help="A note: what the key is for.")] = "",
    data: Data = None,
    database_url: DatabaseUrl = None,
    json: Json = False,
) -> None:
    """Make a key. It is shown once and stored only as a digest.

    \b
    Example:
      reverie keys create --tenant acme --rights read,write --expires 90d
    """
    with session(tenant, data, database_url, create=True, text=False) as opened:
        made = opened.host.keys.create(
            tenant,
            name=name,
            rights=_items(rights),
            authority=authority,
            scopes=_items(scopes),
            expires_at=deadline(expires, "--expires"),
        )
    _print_new(made, json)


@app.command("list")
def list_keys(
    tenant: Annotated[str | None, Option("--tenant", metavar="NAME", help="Only this tenant's.")] = None,
    data: Data = None,
    database_url: DatabaseUrl = None,
    json: Json = False,
) -> None:
    """List keys, oldest first; never the key itself.

    \b
    Example:
      reverie keys list --tenant acme
    """
    from reverie.core.clock import SystemClock, to_iso

    with session(tenant or DEFAULT_TENANT, data, database_url, text=False) as opened:
        found = opened.host.keys.all(tenant)
    now = SystemClock().now()
    shown: list[dict[str, Any]] = []
    for key in found:
        revoked = key.revoked_at is not None and key.revoked_at <= now
        expired = key.expires_at is not None and key.expires_at <= now
        shown.append(
            {
                "id": key.id,
                "tenant": key.tenant,
                "name": key.name,
                "rights": list(key.rights),
                "authority": key.authority,
                "scopes": list(key.scopes),
                "state": "revoked" if revoked else "expired" if expired else "usable",
                "created_at": to_iso(key.created_at),
                "expires_at": None if key.expires_at is None else to_iso(key.expires_at),
                "revoked_at": None if key.revoked_at is None else to_iso(key.revoked_at),
            }
        )
    if json:
        print_json({"items": shown})
        return
    columns = ["id", "tenant", "state", "rights", "authority", "expires_at", "name"]
    rows = [[",".join(key[c]) if c == "rights" else key[c] for c in columns] for key in shown]
    print_table(
        columns, rows, stretch="name", keep=("state",), empty="There are no keys. Make one: reverie keys create"
    )


@app.command("revoke")
def revoke(key_id: Id, data: Data = None, database_url: DatabaseUrl = None, json: Json = False) -> None:
    """Revoke a key, at once, also in a running server.

    \b
    Example:
      reverie keys revoke 4x7k2m9q0r1t
    """
    with session(DEFAULT_TENANT, data, database_url, text=False) as opened:
        key_id = pick(key_id, (key.id for key in opened.host.keys.all(None)))
        opened.host.keys.revoke(key_id)
    if json:
        print_json({"id": key_id, "revoked": True})
        return
    say(f"revoked {key_id}")


@app.command("rotate")
def rotate(
    key_id: Id,
    overlap: Annotated[str, Option(metavar="TIME", help="Time for which the old key stays valid, such as 1h.")] = "0s",
    data: Data = None,
    database_url: DatabaseUrl = None,
    json: Json = False,
) -> None:
    """Replace a key by a new one with the same rights.

    \b
    Example:
      reverie keys rotate 4x7k2m9q0r1t --overlap 24h
    """
    from reverie.core.clock import LATEST, SystemClock, parse_duration
    from reverie.core.errors import Invalid

    overlap_ms = parse_duration(overlap)
    if SystemClock().now() + overlap_ms > LATEST:
        raise Invalid("--overlap: this time is out of range.")
    with session(DEFAULT_TENANT, data, database_url, text=False) as opened:
        key_id = pick(key_id, (key.id for key in opened.host.keys.all(None)))
        made = opened.host.keys.rotate(key_id, overlap_ms=overlap_ms)
    _print_new(made, json)


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def _print_new(made: NewKey, json: bool) -> None:
    from reverie.core.clock import to_iso

    expires = None if made.expires_at is None else to_iso(made.expires_at)
    if json:
        document = {"id": made.id, "tenant": made.tenant, "key": made.key, "rights": list(made.rights)}
        print_json({**document, "authority": made.authority, "scopes": list(made.scopes), "expires_at": expires})
        return
    say(made.key)
    until = f", until {expires}" if expires else ""
    note(f"key {made.id} of {made.tenant}: {', '.join(made.rights)}; authority {made.authority}{until}")
    note("It is not shown again. Send it as: Authorization: Bearer KEY")
