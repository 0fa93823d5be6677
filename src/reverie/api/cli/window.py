"""reverie window ...: the provider windows of conversations, without their encrypted content. reverie proxy."""

from __future__ import annotations

from typing import Annotated, Any

from reverie.api.cli.command import Abort, Argument, Group, Option, confirm
from reverie.api.cli.session import DEFAULT_TENANT, HERE, AnyRef, At, Data, DatabaseUrl, Tenant, session
from reverie.api.cli.terminal import many, note, print_fields, print_json, print_table, say

app = Group("Provider windows of conversations: list, show, diff, rebuild, drop. The turns themselves are in memory.")

ScopeId = Annotated[str, Argument(metavar="SCOPE", help="Name of the conversation, such as agent-1/task-7.")]


@app.command("list")
def list_windows(
    limit: Annotated[int, Option("--limit", "-n", metavar="N", least=1, most=1000, help="Number of windows.")] = 100,
    at: At = HERE,
) -> None:
    """List the windows: generation, items, compaction items.

    \b
    Example:
      reverie window list
    """
    from reverie.core.clock import to_iso

    with at.session(text=False) as opened:
        page = opened.host.windows.all(opened.actor, limit=limit)
    results = [
        {
            "scope": window.scope,
            "ref": window.ref,
            "generation": window.generation,
            "items": window.items,
            "compaction_items": window.compactions,
            "updated_at": to_iso(window.updated_at),
        }
        for window in page.items
    ]
    if at.json:
        print_json({"items": results, "more": page.cursor is not None})
        return
    columns = ["scope", "generation", "items", "compactions", "updated"]
    rows = [
        (item["scope"], item["generation"], item["items"], item["compaction_items"], item["updated_at"])
        for item in results
    ]
    print_table(columns, rows, stretch="scope", empty="No windows. They are made by reverie proxy and ResponsesWindow.")
    if page.cursor is not None:
        note(f"There are more. Try: reverie window list --limit {min(1000, limit * 10)}")


@app.command("show")
def show(scope: ScopeId, at: At = HERE) -> None:
    """Show one window: its figures, the kinds and sizes of its items, its passes. Payloads: hash and length only.

    \b
    Example:
      reverie window show agent-1/task-7
    """
    with at.session(text=False) as opened:
        shown = opened.host.windows.show(opened.actor, scope)
    if at.json:
        print_json(shown)
        return
    lists = ("items", "attempts", "compactions")
    print_fields({name: value for name, value in shown.items() if name not in lists and value is not None})
    items = shown.get("items", [])
    rows = [
        (number, item["type"], item.get("role", ""), item["bytes"], item.get("encrypted_sha256", "")[:16])
        for number, item in enumerate(items)
    ]
    print_table(["", "item", "role", "bytes", "payload"], rows, stretch="item", empty="No items.")
    passes = [_pass(row) for row in shown.get("compactions", [])]
    if passes:
        print_table(["when", "why", "how", "items", "generations", "checkpoint"], passes, stretch="checkpoint")
    failed = [row for row in shown.get("attempts", []) if row.get("state") not in ("committed", "in_flight")]
    if failed:
        note(
            f"{many(len(failed), 'pass', 'passes')} changed nothing: " + ", ".join(str(r.get("status")) for r in failed)
        )


@app.command("diff")
def diff(
    scope: ScopeId,
    before: Annotated[int | None, Option("--from", metavar="VERSION", help="Default: the one before.")] = None,
    after: Annotated[int | None, Option("--to", metavar="VERSION", help="Default: the newest.")] = None,
    at: At = HERE,
) -> None:
    """Show what the last change did to a window: items gone, kept, new. The two newest versions are kept.

    \b
    Example:
      reverie window diff agent-1/task-7
    """
    from difflib import SequenceMatcher

    with at.session(text=False) as opened:
        windows, actor = opened.host.windows, opened.actor
        newest = windows.show(actor, scope)["version"]
        after = newest if after is None else after
        before = after - 1 if before is None else before
        old = windows.texts(actor, scope, version=before)
        new = windows.texts(actor, scope, version=after)
    changes: list[dict[str, Any]] = []
    for kind, a, b, c, d in SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes():
        if kind != "equal":
            changes += [{"change": "gone", "index": a + n, "text": text} for n, text in enumerate(old[a:b])]
            changes += [{"change": "new", "index": c + n, "text": text} for n, text in enumerate(new[c:d])]
    if at.json:
        counted = {"from": before, "to": after, "items_before": len(old), "items_after": len(new)}
        print_json({"scope": scope, **counted, "changes": changes})
        return
    say(f"version {before}: {many(len(old), 'item')}; version {after}: {many(len(new), 'item')}")
    for change in changes:
        say(f"{'-' if change['change'] == 'gone' else '+'} {change['index']:>4}  {change['text'][:160]}")


@app.command("rebuild")
def rebuild(
    scope: ScopeId,
    tokens: Annotated[int, Option(metavar="N", least=100, help="Most tokens of the result, estimated.")] = 40_000,
    ref: AnyRef = None,
    at: At = HERE,
) -> None:
    """Rebuild a conversation from what can be read: checkpoints and turns, as input items for any model.

    \b
    Example:
      reverie window rebuild agent-1/task-7 --tokens 20000 --json > input.json
    """
    with at.session(text=False) as opened:
        items = opened.host.windows.rebuild(opened.actor, scope, most_tokens=tokens, ref=ref)
    if at.json:
        print_json(items)
        return
    for item in items:
        content = item.get("content", item.get("output", item.get("arguments", item.get("input", ""))))
        text = content if isinstance(content, str) else " ".join(str(part.get("text", "")) for part in content)
        say(f"{item.get('role') or item['type']}: {text}")


@app.command("drop")
def drop(
    scope: ScopeId,
    yes: Annotated[bool, Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    at: At = HERE,
) -> None:
    """Remove a window with everything the provider gave. What was said stays in the memory.

    \b
    Example:
      reverie window drop agent-1/task-7 --yes
    """
    if not yes and not at.json and not confirm("Drop this window? The next turn begins a new one."):
        raise Abort
    with at.session(text=False) as opened:
        dropped = opened.host.windows.drop(opened.actor, scope)
    at.answer({"scope": scope, "dropped": dropped}, "dropped" if dropped else "There is no window of that scope.")


def proxy(
    upstream: Annotated[str, Option(metavar="URL", help="The provider's address: https://api.openai.com/v1")],
    listen: Annotated[str, Option(metavar="HOST:PORT", help="Loopback only; port 0 picks one.")] = "127.0.0.1:8485",
    kind: Annotated[str | None, Option(metavar="api|codex|messages", help="Default: from the address.")] = None,
    mode: Annotated[
        str | None, Option(metavar="MODE", help="standalone, trigger, on_demand, server_side, off.")
    ] = None,
    trigger_tokens: Annotated[
        int | None, Option(metavar="N", help="Compact a window from this many input tokens on.")
    ] = None,
    context_window: Annotated[
        int | None, Option(metavar="N", help="Size of the model's context window, in tokens.")
    ] = None,
    inject_checkpoint: Annotated[
        str, Option(metavar="off|brief", help="Add the checkpoint to the input after a compaction.")
    ] = "off",
    tenant: Tenant = DEFAULT_TENANT,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Run a proxy that keeps conversations inside the model's context window. For the Responses and Messages APIs.

    A request to /v1/responses belongs to the window that its header x-reverie-scope names, else its prompt_cache_key; a
    request to /v1/messages to the window that the header names. All other traffic passes through unchanged. See
    /reverie/status. SIGTERM ends the proxy when the work at hand is done.

    \b
    Example:
      reverie proxy --upstream https://api.openai.com/v1
      reverie proxy --upstream https://api.anthropic.com
    """
    from reverie.app import run_proxy
    from reverie.window import WindowPolicy

    policy = WindowPolicy(
        mode=mode,  # type: ignore[arg-type]
        trigger_input_tokens=trigger_tokens,
        context_window=context_window,
        inject_checkpoint=inject_checkpoint,  # type: ignore[arg-type]
    )
    with session(tenant, data, database_url, create=True) as opened:
        run_proxy(opened.settings, opened.host, tenant, upstream=upstream, listen=listen, kind=kind, policy=policy)


def _pass(row: dict[str, Any]) -> tuple[Any, ...]:
    generations = f"{row.get('generation_before')} to {row.get('generation_after')}"
    made = (row.get("created_at"), row.get("trigger_reason"), row.get("endpoint_kind"))
    return (*made, row.get("covered_items"), generations, row.get("checkpoint_ref") or "")
