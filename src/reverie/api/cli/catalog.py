"""Every command by purpose: its place as `module:name` in this package, and the first sentence of its help.

The sentences are repeated here so that `reverie --help` imports nothing; a test compares them with the docstrings.
"""

from __future__ import annotations

CATALOG: dict[str, dict[str, tuple[str, str]]] = {
    "Remember": {
        "put": ("put:put", "Store an entry."),
        "entry": ("entry:app", "Change one entry: pin, hold, archive, erase and more."),
        "import": ("imports:import_memory", "Import entries from other products, chats and notes, or from a bundle."),
        "export": ("bundles:export", "Write a tenant's entries as a bundle, as Markdown files or as JSON lines."),
    },
    "Find": {
        "search": ("recall:search", "Find the entries that best answer a query."),
        "context": ("recall:context", "Pack the best entries for a purpose into a token budget."),
        "get": ("entries:get", "Show one entry."),
        "list": ("entries:list_entries", "List the entries of one memory, newest first."),
        "refs": ("entries:refs", "List the memories of a tenant, with their sizes."),
        "tenants": ("entries:tenants", "List the tenants of this host, with the number of their memories."),
        "stats": ("entries:stats", "Count a tenant's entries, bytes, memories and events."),
    },
    "Dream": {
        "dream": ("dream:app", "Distil many entries into few, under a token budget; trace and undo it."),
        "schedules": ("schedules:app", "Schedules of dreams: list, add, pause, resume, run, remove."),
        "consolidate": ("lineage:consolidate", "Merge duplicates and supersede outdated statements."),
        "why": ("lineage:why", "Show the sources of an entry, down to the original words."),
        "derived": ("lineage:derived", "List everything that was made from an entry, directly or through others."),
    },
    "Privacy": {
        "forget": ("privacy:forget", "Destroy everything about a subject."),
        "redact": ("privacy:redact", "Copy stdin to stdout without secrets."),
        "scan": ("privacy:scan", "Apply the current redaction rules to stored text."),
        "secrets": ("secrets:app", "Registered secrets: replaced in everything stored, kept encrypted."),
        "audit": ("audit:app", "The event log: verify, export, tail."),
    },
    "Run": {
        "serve": ("operate:serve", "Start the host."),
        "worker": ("operate:worker", "Run jobs without serving: dreams, retention, vectors."),
        "mcp": ("mcp:mcp", "Serve memory as MCP tools over standard input and output."),
        "proxy": ("window:proxy", "Run a proxy that keeps conversations inside the model's context window."),
        "connect": ("connect:connect", "Connect an agent on this machine: MCP tools, and hooks."),
        "hook": ("hook:app", "Hooks of coding agents (`reverie connect` sets them up)."),
        "window": ("window:app", "Provider windows of conversations: list, show, diff, rebuild, drop."),
        "agents": ("agents:app", "Agents: install, list, show, remove their manifests."),
        "openwop": ("openwop:app", "OpenWOP: read a host's discovery document."),
        "demo": ("demo:demo", "Take the tour: five weeks of a made-up team's memory, dreamt, traced and undone."),
    },
    "Operate": {
        "doctor": ("operate:doctor", "Check the installation, and name the remedy for each problem."),
        "settings": ("operate:settings", "Print every setting, its value and its origin."),
        "policy": ("policy:app", "Limits, retention and quotas of a tenant."),
        "keys": ("keys:app", "API keys: create, list, revoke, rotate."),
        "jobs": ("jobs:app", "Pending, running and failed jobs: list, show, add, retry, discard."),
        "backup": ("backup:app", "Online backups: create, verify."),
        "restore": ("backup:restore", "Restore a backup into a new folder."),
        "migrate-store": ("backup:migrate_store", "Move everything to another store, while it is in use."),
        "upgrade": ("operate:upgrade", "Bring the database's schema up to this release."),
        "sweep": ("operate:sweep", "Destroy expired data, and data past its retention."),
        "completion": ("completion:completion", "Print the completion script of a shell."),
        "version": ("operate:version", "Print the version of Reverie and of its main parts."),
    },
}

COMMANDS = {name: place for group in CATALOG.values() for name, (place, _) in group.items()}
