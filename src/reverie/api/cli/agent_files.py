"""Configuration files of agents: their paths, the entries that Reverie adds, and the removal of these entries.

A plan changes only Reverie's own entries of a file. The text of a file is recorded before it is written; undo restores
that text if nothing else has changed since, and otherwise removes only Reverie's entries.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reverie.api.cli.json_text import rewritten
from reverie.core.errors import Conflict, Invalid, NotFound
from reverie.core.files import open_new

NAME = "reverie"
_BEGIN, _END = "# >>> reverie", "# <<< reverie"


@dataclass(frozen=True, slots=True)
class StartCommand:
    """Command with which an agent starts Reverie."""

    program: str
    options: tuple[str, ...] = ()

    def line(self, *arguments: str) -> str:
        """The command as a line of a shell."""
        return shlex.join([self.program, *arguments, *self.options])

    @property
    def server(self) -> dict[str, Any]:
        """The command as an MCP server that opens the data itself."""
        return {"command": self.program, "args": ["mcp", *self.options]}

    @property
    def address(self) -> str | None:
        """The MCP address of a running host; None when the data is opened here."""
        if "--url" not in self.options:
            return None
        return self.options[self.options.index("--url") + 1].rstrip("/") + "/mcp"


@dataclass(frozen=True, slots=True)
class Plan:
    """One file, before and after the change."""

    path: Path
    before: str | None
    after: str
    added: str

    @property
    def changed(self) -> bool:
        return self.before != self.after


Change = Callable[[dict[str, Any], StartCommand], dict[str, Any]]
"""Function that adds Reverie's entries to a document; returns a description of them for people."""


@dataclass(frozen=True, slots=True)
class Remote:
    """Notation of an agent for a remote MCP server. The key stays in the environment, where the agent reads it.

    An agent without such a notation starts `reverie mcp --url`.
    """

    bearer: str
    field: str = "url"
    typed: bool = False
    """Whether an entry says that it is HTTP."""


@dataclass(frozen=True, slots=True)
class AgentFile:
    """A file of an agent, and what Reverie adds to it."""

    path: Callable[[], Path]
    change: Change | None
    """None: a TOML file, which is changed as text."""
    hooks: bool = False


def _servers(key: str, *, remote: Remote | None, **more: Any) -> Change:
    def change(document: dict[str, Any], command: StartCommand) -> dict[str, Any]:
        servers = _object(document, key)
        address = command.address
        kind = {"type": "http"} if remote is not None and remote.typed else {}
        if address is None or remote is None:
            _set_server(servers, {**more, **command.server})
        else:
            _set_server(servers, {**kind, remote.field: address, "headers": {"Authorization": remote.bearer}})
        return {key: {NAME: servers[NAME]}}

    return change


def _set_server(servers: dict[str, Any], wanted: Mapping[str, Any]) -> None:
    found = servers.get(NAME)
    if found is not None and not (isinstance(found, dict) and _is_server(found)):
        raise Conflict("another entry named reverie is there. Rename it, then connect again.")
    servers[NAME] = dict(wanted)


def _is_server(found: Mapping[str, Any]) -> bool:
    """Whether an entry is one of Reverie's: its command, or the address of a host."""
    addresses = [str(found.get(name) or "") for name in ("url", "httpUrl", "serverUrl")]
    return "mcp" in (found.get("args") or []) or any(address.endswith("/mcp") for address in addresses)


def _object(document: dict[str, Any], key: str) -> dict[str, Any]:
    found = document.setdefault(key, {})
    if not isinstance(found, dict):
        raise Invalid(f"'{key}' is not an object.")
    return found


def _claude_hooks(*, waits: bool = True) -> Change:
    """Hooks as Claude Code and Codex have them. Codex does not wait at the end of a session: it kills after 3 s."""

    def change(document: dict[str, Any], command: StartCommand) -> dict[str, Any]:
        hooks, added = _object(document, "hooks"), {}
        for event, words, seconds in (
            ("SessionStart", ["session-start"], 30),
            ("PreCompact", ["pre-compact"], 30),
            ("SessionEnd", ["session-end"] if waits else ["session-end", "--background"], 30 if waits else 3),
        ):
            rows = hooks.setdefault(event, [])
            if not isinstance(rows, list):
                raise Invalid(f"'hooks.{event}' is not a list.")
            rows[:] = [row for row in rows if not _ours(row)]
            rows.append({"hooks": [{"type": "command", "command": command.line("hook", *words), "timeout": seconds}]})
            added[event] = rows[-1:]
        return {"hooks": added}

    return change


def _cursor_hooks(document: dict[str, Any], command: StartCommand) -> dict[str, Any]:
    document.setdefault("version", 1)
    hooks, added = _object(document, "hooks"), {}
    for event, name in (
        ("sessionStart", "session-start"),
        ("preCompact", "pre-compact"),
        ("sessionEnd", "session-end"),
    ):
        rows = hooks.setdefault(event, [])
        if not isinstance(rows, list):
            raise Invalid(f"'hooks.{event}' is not a list.")
        rows[:] = [row for row in rows if not _ours(row)]
        rows.append({"command": command.line("hook", name)})
        added[event] = rows[-1:]
    return {"version": 1, "hooks": added}


def _ours(row: Any) -> bool:
    """Whether a hook is one of Reverie's."""
    return bool(re.search(r"reverie\S* hook (session-start|pre-compact|session-end)", json.dumps(row)))


def _home(*parts: str) -> Callable[[], Path]:
    return lambda: Path.home().joinpath(*parts)


def _below(variable: str, usual: str, *parts: str) -> Callable[[], Path]:
    """A file below the folder that an agent reads from a variable of the environment, or below its usual one."""
    return lambda: Path(os.environ.get(variable) or Path.home() / usual).joinpath(*parts)


def _claude_servers() -> Path:
    """Return the path of Claude's server file: in the home folder, or in CLAUDE_CONFIG_DIR if that is set."""
    return Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home()) / ".claude.json"


def _applications(*parts: str) -> Callable[[], Path]:
    def path() -> Path:
        if sys.platform == "darwin":
            base = Path.home() / "Library" / "Application Support"
        elif sys.platform == "win32":
            base = Path(os.environ.get("APPDATA") or Path.home() / "AppData" / "Roaming")
        else:
            base = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
        return base.joinpath(*parts)

    return path


_SHELL, _ENV, _PLAIN = "Bearer ${REVERIE_KEY}", "Bearer ${env:REVERIE_KEY}", "Bearer $REVERIE_KEY"

AGENTS: Mapping[str, Sequence[AgentFile]] = {
    "claude-code": (
        AgentFile(_claude_servers, _servers("mcpServers", remote=Remote(_SHELL, typed=True), type="stdio")),
        AgentFile(_below("CLAUDE_CONFIG_DIR", ".claude", "settings.json"), _claude_hooks(), hooks=True),
    ),
    "claude-desktop": (
        AgentFile(_applications("Claude", "claude_desktop_config.json"), _servers("mcpServers", remote=None)),
    ),
    "codex": (
        AgentFile(_below("CODEX_HOME", ".codex", "config.toml"), None),
        AgentFile(_below("CODEX_HOME", ".codex", "hooks.json"), _claude_hooks(waits=False), hooks=True),
    ),
    "cursor": (
        AgentFile(_home(".cursor", "mcp.json"), _servers("mcpServers", remote=Remote(_ENV))),
        AgentFile(_home(".cursor", "hooks.json"), _cursor_hooks, hooks=True),
    ),
    "gemini-cli": (
        AgentFile(_home(".gemini", "settings.json"), _servers("mcpServers", remote=Remote(_PLAIN, "httpUrl"))),
    ),
    "vscode": (
        AgentFile(
            _applications("Code", "User", "mcp.json"),
            _servers("servers", remote=Remote(_ENV, typed=True), type="stdio"),
        ),
    ),
    "windsurf": (
        AgentFile(
            _home(".codeium", "windsurf", "mcp_config.json"), _servers("mcpServers", remote=Remote(_ENV, "serverUrl"))
        ),
    ),
}


def plan_changes(agent: str, command: StartCommand, *, hooks: bool = True) -> list[Plan]:
    """List the changes that would be written for an agent."""
    return [_plan(file, command) for file in _files(agent) if hooks or not file.hooks]


def write_changes(agent: str, plans: Sequence[Plan]) -> None:
    """Write the files. Their earlier text is recorded first, so that a crash in between can be undone."""
    noted = _notes(agent)
    for plan in plans:
        if plan.changed:
            path = str(plan.path)
            first = noted[path]["before"] if path in noted and _was_ours(plan, noted[path]) else plan.before
            noted[path] = {"before": first, "after": _hash(plan.after)}
    _write(_record(agent), json.dumps(noted, indent=2) + "\n")
    for plan in plans:
        if plan.changed:
            _write(plan.path, plan.after)


def disconnect(agent: str) -> list[str]:
    """Remove the entries that were written; return the restored files."""
    _files(agent)
    noted = _notes(agent)
    if not noted:
        raise NotFound(f"{agent} was not connected from here.")
    restored = []
    for name, row in noted.items():
        path, now = Path(name), _read(Path(name))
        if now is None or now == row["before"]:
            continue
        after = row["before"] if _hash(now) == row["after"] else _without(path, now)
        if after is None:
            path.unlink()
        else:
            _write(path, after)
        restored.append(name)
    _record(agent).unlink()
    return restored


def _plan(file: AgentFile, command: StartCommand) -> Plan:
    path = file.path()
    before = _read(path)
    if file.change is None:
        added = _toml(command)
        kept = _without_block(before or "")
        if NAME in (_parse_toml(path, kept).get("mcp_servers") or {}):
            raise Conflict(f"{path} has another entry named reverie. Rename it, then connect again.")
        gap = "" if not kept else "\n" if kept.endswith("\n") else "\n\n"
        after = f"{kept}{gap}{added}"
        _parse_toml(path, after)
        return Plan(path, before, after, added)
    document = _parse(path, before, file.change({}, command))
    try:
        entries = file.change(document, command)
    except (Invalid, Conflict) as fault:
        raise type(fault)(f"{path}: {fault.message} The file was left as it is.", code=fault.reason) from None
    same = before is not None and _parse(path, before) == document
    after = before if same and before is not None else _dump(document, before)
    return Plan(path, before, after, json.dumps(entries, indent=2, ensure_ascii=False))


def _toml(command: StartCommand) -> str:
    server, address = command.server, command.address
    lines = [f"command = {json.dumps(server['command'])}", f"args = {json.dumps(server['args'])}"]
    if address is not None:
        lines = [f"url = {json.dumps(address)}", 'bearer_token_env_var = "REVERIE_KEY"']
    return "\n".join([_BEGIN, f"[mcp_servers.{NAME}]", *lines, _END]) + "\n"


def _without_block(text: str) -> str:
    return re.sub(rf"\n?{_BEGIN}\n.*?{_END}\n", "", text, flags=re.DOTALL)


def _without(path: Path, text: str) -> str:
    """The text of a file that was changed since, without Reverie's entries."""
    if path.suffix == ".toml":
        return _without_block(text)
    document = _parse(path, text)
    for key in ("mcpServers", "servers"):
        if isinstance(document.get(key), dict):
            document[key].pop(NAME, None)
    hooks = document.get("hooks")
    if isinstance(hooks, dict):
        for event in list(hooks):
            if isinstance(hooks[event], list):
                hooks[event] = [row for row in hooks[event] if not _ours(row)]
                if not hooks[event]:
                    del hooks[event]
    return _dump(document, text)


def _parse(path: Path, text: str | None, added: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The document of a file. A refusal shows `added`, so that it can be added by hand."""
    try:
        document = json.loads(text) if text and text.strip() else {}
    except ValueError as fault:
        line = f", line {fault.lineno}" if isinstance(fault, json.JSONDecodeError) else ""
        by_hand = f" Add this by hand: {json.dumps(added, ensure_ascii=False)}" if added else ""
        raise Invalid(
            f"{path}{line}: this is not plain JSON, which has no comments. The file was left as it is.{by_hand}"
        ) from None
    if not isinstance(document, dict):
        raise Invalid(f"{path} is not a JSON object.")
    return document


def _parse_toml(path: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as fault:
        raise Invalid(
            f"{path} is not TOML to which [mcp_servers.{NAME}] can be added: {fault}. The file was left as it is. Mend"
            " it, then connect again."
        ) from None


def _dump(document: Mapping[str, Any], before: str | None) -> str:
    if before and before.strip():
        return rewritten(before, document)
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _files(agent: str) -> Sequence[AgentFile]:
    if agent not in AGENTS:
        from reverie.api.cli.command import near

        raise Invalid(f"There is no agent {agent[:64]}{near(agent, AGENTS) or '.'} Known: {', '.join(sorted(AGENTS))}.")
    return AGENTS[agent]


def _record(agent: str) -> Path:
    return _applications("reverie", "connect", f"{agent}.json")()


def _notes(agent: str) -> dict[str, Any]:
    text = _read(_record(agent))
    return dict(json.loads(text)) if text else {}


def _was_ours(plan: Plan, row: Mapping[str, Any]) -> bool:
    return plan.before is not None and _hash(plan.before) == row["after"]


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _read(path: Path) -> str | None:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise Invalid(f"{path} is not UTF-8 text.") from None


def _write(path: Path, text: str) -> None:
    """Replace a file atomically, through a symbolic link if it is one, and keep its mode."""
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
    beside = path.with_name(f".{path.name}.reverie")
    beside.unlink(missing_ok=True)  # of a run that was cut off
    with os.fdopen(open_new(beside), "w", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    beside.chmod(mode)
    beside.replace(path)
