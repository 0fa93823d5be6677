"""reverie connect: agents' files as people have them, changed only by --write, and restored to the byte."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest

from reverie.api.cli.agent_files import AGENTS
from reverie.api.cli.main import run

CLAUDE = {
    "numStartups": 12,
    "mcpServers": {"github": {"command": "gh-mcp", "args": ["--x"], "env": {"A": "1"}}},
    "projects": {"/home/ann/é": {"allowedTools": []}},
}
SETTINGS = """{
    "model": "opus",
    "hooks": {
        "SessionStart": [{"matcher": "startup", "hooks": [{"type": "command", "command": "echo hi"}]}],
        "PostToolUse": [{"hooks": [{"type": "command", "command": "fmt"}]}]
    }
}"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / ".config"))
    monkeypatch.setattr("sys.platform", "linux")
    for name in ("CODEX_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    return folder


def files(home: Path) -> dict[str, bytes]:
    return {str(path.relative_to(home)): path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("agent", AGENTS)
def test_a_dry_run_writes_nothing_and_undo_restores_everything(
    agent: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["connect", agent]) == 0
    shown = capsys.readouterr()
    assert "reverie" in shown.out
    assert "Nothing was written" in shown.err
    assert files(home) == {}
    assert run(["connect", agent, "--write"]) == 0
    written = files(home)
    assert len(written) == len(AGENTS[agent]) + 1
    assert run(["connect", agent, "--write"]) == 0
    assert files(home) == written
    assert run(["connect", agent, "--undo"]) == 0
    assert files(home) == {}
    assert run(["connect", agent, "--undo"]) == 1


def test_entries_of_others_stay_and_files_are_restored_to_the_byte(home: Path) -> None:
    (home / ".claude").mkdir()
    (home / ".claude.json").write_text(json.dumps(CLAUDE, ensure_ascii=False))
    (home / ".claude" / "settings.json").write_text(SETTINGS)
    (home / ".claude.json").chmod(0o600)
    before = files(home)
    assert run(["connect", "claude-code", "--write", "--tenant", "me", "--data", "memory"]) == 0
    config: dict[str, Any] = json.loads((home / ".claude.json").read_text())
    server = config["mcpServers"].pop("reverie")
    assert config == CLAUDE
    assert server["args"] == ["mcp", "--tenant", "me", "--data", str(Path("memory").absolute())]
    assert (home / ".claude.json").stat().st_mode & 0o777 == 0o600
    hooks = json.loads((home / ".claude" / "settings.json").read_text())["hooks"]
    assert set(hooks) == {"SessionStart", "PostToolUse", "PreCompact", "SessionEnd"}
    assert hooks["SessionStart"][0]["hooks"][0]["command"] == "echo hi"
    assert "hook session-start --tenant me" in hooks["SessionStart"][1]["hooks"][0]["command"]
    assert run(["connect", "claude-code", "--write", "--tenant", "you"]) == 0
    assert len(json.loads((home / ".claude" / "settings.json").read_text())["hooks"]["SessionStart"]) == 2
    assert run(["connect", "claude-code", "--undo"]) == 0
    assert files(home) == before


EXISTING = {
    "cursor": (
        ".cursor/mcp.json",
        """{
  "mcpServers": {
    "linear": { "url": "https://mcp.linear.app/mcp", "headers": { "Authorization": "Bearer ${env:LINEAR}" } },
    "files": { "command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "${userHome}"] }
  }
}
""",
        "mcpServers",
        {"url": "https://memory.example.org/mcp", "headers": {"Authorization": "Bearer ${env:REVERIE_KEY}"}},
    ),
    "vscode": (
        ".config/Code/User/mcp.json",
        """{
\t"inputs": [{ "type": "promptString", "id": "token", "description": "Token", "password": true }],
\t"servers": {
\t\t"github": { "type": "http", "url": "https://api.githubcopilot.com/mcp/" },
\t\t"db": { "type": "stdio", "command": "db-mcp", "env": { "TOKEN": "${input:token}" } }
\t}
}""",
        "servers",
        {
            "type": "http",
            "url": "https://memory.example.org/mcp",
            "headers": {"Authorization": "Bearer ${env:REVERIE_KEY}"},
        },
    ),
    "windsurf": (
        ".codeium/windsurf/mcp_config.json",
        '{"mcpServers": {"figma": {"serverUrl": "https://mcp.figma.com/mcp", "disabledTools": ["x"]}}}',
        "mcpServers",
        {"serverUrl": "https://memory.example.org/mcp", "headers": {"Authorization": "Bearer ${env:REVERIE_KEY}"}},
    ),
}
"""Files as editors have them: the path, the text, where servers are, and how a server elsewhere is written."""


@pytest.mark.parametrize("agent", EXISTING)
def test_editors_get_one_server_in_their_own_format(agent: str, home: Path) -> None:
    name, text, key, elsewhere = EXISTING[agent]
    path = home / name
    path.parent.mkdir(parents=True)
    path.write_text(text)
    before = files(home)
    assert run(["connect", agent]) == 0
    assert files(home) == before
    for options, typed in (
        ([], {"type": "stdio"} if agent == "vscode" else {}),
        (["--url", "https://memory.example.org"], None),
    ):
        assert run(["connect", agent, "--write", "--no-hooks", *options]) == 0
        document = json.loads(path.read_text())
        server = document[key].pop("reverie")
        assert document == json.loads(text)
        if typed is None:
            assert server == elsewhere
        else:
            assert Path(server.pop("command")).name.startswith("reverie")
            assert server == {**typed, "args": ["mcp"]}
    assert run(["connect", agent, "--undo"]) == 0
    assert {name: data for name, data in files(home).items() if "reverie" not in name} == before


@pytest.mark.parametrize(
    ("agent", "variable", "names"),
    [
        ("codex", "CODEX_HOME", {"config.toml", "hooks.json"}),
        ("claude-code", "CLAUDE_CONFIG_DIR", {".claude.json", "settings.json"}),
    ],
)
def test_an_agent_whose_folder_is_elsewhere(
    agent: str, variable: str, names: set[str], home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "elsewhere"
    monkeypatch.setenv(variable, str(folder))
    assert run(["connect", agent, "--write"]) == 0
    assert set(files(folder)) == names
    assert run(["connect", agent, "--undo"]) == 0
    assert files(folder) == {}
    assert files(home) == {}


def test_what_is_not_reveries_stays_as_it_was_written(home: Path) -> None:
    path = home / ".gemini" / "settings.json"
    path.parent.mkdir()
    mine = '{ "theme" : "dark",\r\n\t"list": [1,   2],\r\n\t"mcpServers": {"a": {"command":"x"}} }'
    path.write_bytes(mine.encode())
    assert run(["connect", "gemini-cli", "--write"]) == 0
    text = path.read_bytes().decode()
    start, end = text.index(',\r\n\t\t"reverie"'), text.rindex("} }")
    assert text[:start] + text[end:] == mine
    path.write_bytes(text.replace('"dark"', '"light"').encode())  # changed since
    assert run(["connect", "gemini-cli", "--undo"]) == 0
    assert path.read_bytes().decode() == mine.replace('"dark"', '"light"')


def test_what_was_changed_since_is_kept_by_undo(home: Path) -> None:
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text('{"mcpServers": {"a": {"command": "a"}}}')
    assert run(["connect", "cursor", "--write"]) == 0
    config = json.loads(path.read_text())
    config["mcpServers"]["b"] = {"command": "b"}
    path.write_text(json.dumps(config))
    assert run(["connect", "cursor", "--undo"]) == 0
    assert set(json.loads(path.read_text())["mcpServers"]) == {"a", "b"}


def test_toml_is_added_to_and_its_comments_stay(home: Path) -> None:
    path = home / ".codex" / "config.toml"
    path.parent.mkdir()
    text = '# mine\nmodel = "o5"\n\n[mcp_servers.docs]\ncommand = "docs"  # why\n'
    path.write_text(text)
    assert run(["connect", "codex", "--write"]) == 0
    assert path.read_text().startswith(text)
    servers = tomllib.loads(path.read_text())["mcp_servers"]
    assert set(servers) == {"docs", "reverie"}
    assert servers["reverie"]["args"] == ["mcp"]
    (last,) = json.loads((path.parent / "hooks.json").read_text())["hooks"]["SessionEnd"][0]["hooks"]
    assert last["command"].endswith("hook session-end --background")
    path.write_text(path.read_text() + '\n[tui]\ntheme = "dark"\n')
    assert run(["connect", "codex", "--undo"]) == 0
    assert tomllib.loads(path.read_text()) == {**tomllib.loads(text), "tui": {"theme": "dark"}}
    assert path.read_text().startswith(text.rstrip("\n"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("// mine\n{}", "not plain JSON"),
        ("[1]", "not a JSON object"),
        ('{"mcpServers": 3}', "not an object"),
        ('{"mcpServers": {"reverie": {"command": "other"}}}', "another entry named reverie"),
    ],
)
def test_a_file_that_cannot_be_changed_safely_is_left_alone(
    home: Path, text: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text(text)
    assert run(["connect", "cursor", "--write"]) == 1
    assert message in capsys.readouterr().err
    assert files(home) == {".cursor/mcp.json": text.encode()}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('model = "x\n[broken', "line 1"),
        ('mcp_servers = {other = {command = "x"}}\n', "mcp_servers"),
        ('[mcp_servers]\nreverie = {command = "mine"}\n', "another entry named reverie"),
    ],
)
def test_toml_that_cannot_be_added_to_is_left_alone(
    text: str, said: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = home / ".codex" / "config.toml"
    config.parent.mkdir()
    config.write_text(text)
    assert run(["connect", "codex", "--write"]) == 1
    assert said in capsys.readouterr().err
    assert files(home) == {".codex/config.toml": text.encode()}


def test_a_file_with_comments_gets_the_entry_to_add_by_hand(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text('{\n  // mine\n  "mcpServers": {}\n}\n')
    assert run(["connect", "cursor", "--write"]) == 1
    said = capsys.readouterr().err
    assert "mcp.json, line 2: " in said
    entry = json.loads(said[said.index('{"mcpServers"') : said.rindex("}") + 1])
    assert entry["mcpServers"]["reverie"]["args"][0] == "mcp"


def test_without_hooks_and_for_unknown_agents(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["connect", "claude-code", "--write", "--no-hooks"]) == 0
    assert not (home / ".claude" / "settings.json").exists()
    assert run(["connect", "no-such-agent"]) == 1
    assert "claude-desktop" in capsys.readouterr().err
    assert run(["connect"]) == 0
    assert "windsurf" in capsys.readouterr().out


def test_an_agent_without_addresses_starts_the_tools_of_a_host_elsewhere(home: Path) -> None:
    assert run(["connect", "claude-desktop", "--url", "https://memory.example.org", "--write"]) == 0
    (server,) = json.loads(AGENTS["claude-desktop"][0].path().read_text())["mcpServers"].values()
    assert server["args"] == ["mcp", "--url", "https://memory.example.org"]
    assert run(["connect", "claude-desktop", "--undo"]) == 0
    assert files(home) == {}


@pytest.mark.parametrize("agent", sorted(AGENTS.keys() - {"claude-desktop"}))
def test_a_host_elsewhere_is_reached_over_http_with_the_key_of_the_environment(
    agent: str, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("REVERIE_KEY", "a-key-of-that-host")
    assert run(["connect", agent, "--url", "https://memory.example.org/", "--write"]) == 0
    assert "REVERIE_KEY" in capsys.readouterr().err
    written = files(home)
    assert not [name for name, data in written.items() if b"a-key-of-that-host" in data]
    first = AGENTS[agent][0].path()
    if agent == "codex":
        entry: dict[str, Any] = tomllib.loads(first.read_text())["mcp_servers"]["reverie"]
        assert entry == {"url": "https://memory.example.org/mcp", "bearer_token_env_var": "REVERIE_KEY"}
    else:
        servers = next(iter(json.loads(first.read_text()).values()))
        entry = servers["reverie"]
        assert "https://memory.example.org/mcp" in entry.values()
        assert "REVERIE_KEY" in entry["headers"]["Authorization"]
        assert "command" not in entry
    for file in AGENTS[agent][1:]:
        assert "--url https://memory.example.org/" in file.path().read_text()
    assert run(["connect", agent, "--write"]) == 0  # back to the data on this machine
    assert b"memory.example.org" not in first.read_bytes()
    assert run(["connect", agent, "--undo"]) == 0
    assert files(home) == {}


def test_an_address_that_is_none_is_refused(home: Path) -> None:
    assert run(["connect", "cursor", "--url", "memory.example.org"]) == 1
    assert run(["connect", "cursor", "--url", "https://user:word@memory.example.org"]) == 1
    assert files(home) == {}


@pytest.mark.parametrize("damaged", ['{"mcpServers": []}', '{"mcpServers": {"reverie": 5}}', "[1]", '{"a": '])
def test_a_refusal_names_the_file(damaged: str, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = AGENTS["cursor"][0].path()
    path.parent.mkdir()
    path.write_text(damaged)
    assert run(["connect", "cursor", "--write"]) == 1
    assert str(path) in capsys.readouterr().err
    assert path.read_text() == damaged


def test_an_agent_uses_the_memory_that_this_shell_uses(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Agents are started with another environment: what it names here is written into their command."""
    monkeypatch.setenv("REVERIE_DATA", str(home / "memory"))
    assert run(["connect", "claude-code"]) == 0
    assert str(home / "memory") in capsys.readouterr().out
    monkeypatch.setenv("REVERIE_URL", "http://127.0.0.1:8484")
    assert run(["connect", "claude-code"]) == 0
    shown = capsys.readouterr().out
    assert "http://127.0.0.1:8484/mcp" in shown
    assert str(home / "memory") not in shown


def test_a_database_url_is_never_written(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["connect", "claude-code", "--database-url", "postgresql://me:made-up@db/x", "--write"]) == 1
    assert "REVERIE_DATABASE_URL" in capsys.readouterr().err
    assert files(home) == {}


def test_the_list_of_agents_says_what_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["connect", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"items": sorted(AGENTS)}
    assert run(["connect"]) == 0
    assert "reverie connect AGENT" in capsys.readouterr().err


def test_a_private_file_is_never_readable_by_others_while_it_is_written(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    private = home / ".claude.json"
    private.write_text(json.dumps(CLAUDE))
    private.chmod(0o600)
    modes, sync = [], os.fsync

    def watched(descriptor: int) -> None:
        modes.append(os.fstat(descriptor).st_mode & 0o777)
        sync(descriptor)

    before = os.umask(0o022)
    try:
        monkeypatch.setattr(os, "fsync", watched)
        (home / "..claude.json.reverie").write_text("left over")
        assert run(["connect", "claude-code", "--write"]) == 0
    finally:
        os.umask(before)
    assert set(modes) == {0o600}
