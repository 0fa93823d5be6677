"""Files hold memory: whatever the umask, only their owner has rights on them, and on the folders made for them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from tests.unit.api.cli.conftest import Cli

from reverie.core.files import make_folder, narrow, others_may
from reverie.store.sqlite import SqliteStore


@pytest.fixture(params=[0o000, 0o022], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    return {
        str(path.relative_to(folder)): stat.S_IMODE(path.stat().st_mode)
        for path in sorted(folder.rglob("*"))
        if not path.is_symlink()
    }


def assert_private(folder: Path, *names: str) -> None:
    found = modes(folder)
    assert set(names) <= set(found), found
    for name, mode in found.items():
        assert mode == (0o700 if (folder / name).is_dir() else 0o600), (name, oct(mode))


def test_everything_a_host_makes_is_private(cli: Cli, tmp_path: Path, data: Path, umask: int) -> None:
    cli("put", "the kettle is blue", "--subject", "ada")
    cli("secrets", "add", "db", stdin="not-a-real-value-4711\n")
    assert cli("forget", "ada", "--yes").code == 0
    make_folder(tmp_path / "kept" / "safe")
    assert cli("backup", "create", str(tmp_path / "kept" / "safe" / "one.db"), "--with-key").code == 0
    assert cli("export", "-o", str(tmp_path / "kept" / "bundle.jsonl")).code == 0
    assert cli("restore", str(tmp_path / "kept" / "safe" / "one.db"), "--into", str(tmp_path / "back")).code == 0
    store = SqliteStore(data / "reverie.db")  # its log and shared memory exist while it is open
    store.control(lambda tx: tx.set_setting("here", b"1"), write=True)
    assert_private(
        tmp_path,
        "data",
        "data/reverie.db",
        "data/reverie.db-wal",
        "data/reverie.db-shm",
        "data/reverie.key",
        "data/forgotten.jsonl",
        "kept/safe/one.db",
        "kept/safe/one.db.json",
        "kept/safe/one.db.key",
        "kept/bundle.jsonl",
        "back/reverie.db",
        "back/reverie.key",
        "back/forgotten.jsonl",
    )
    store.close()


@pytest.mark.usefixtures("umask")
def test_an_export_as_markdown_is_private(cli: Cli, tmp_path: Path) -> None:
    cli("put", "the kettle is blue", "--ref", "team/kitchen")
    assert cli("export", "--to", "markdown", "-o", str(tmp_path / "kept" / "notes")).code == 0
    assert_private(tmp_path, "kept", "kept/notes")
    assert any(name.endswith(".md") for name in modes(tmp_path))


def test_wider_files_of_ours_are_narrowed_when_they_are_opened(cli: Cli, data: Path) -> None:
    cli("put", "the kettle is blue")
    cli("secrets", "add", "db", stdin="not-a-real-value-4711\n")
    held = apsw.Connection(str(data / "reverie.db"))  # keeps the log and the shared memory in place
    held.execute("SELECT count(*) FROM entry").fetchall()
    for path in (data, *data.iterdir()):
        path.chmod(0o777 if path.is_dir() else 0o666)
    cli("put", "and the pot is red")
    held.close()
    assert others_may(data) is None
    assert_private(data, "reverie.db", "reverie.key")


def test_a_folder_with_other_files_is_left_alone_and_reported(cli: Cli, data: Path) -> None:
    cli("put", "the kettle is blue")
    (data / "holiday.jpg").write_bytes(b"not ours")
    data.chmod(0o755)
    found = cli("doctor", "--json")
    assert stat.S_IMODE(data.stat().st_mode) == 0o755
    assert found.code == 1
    failed = [check for check in found.json["checks"] if check["status"] == "fail"]
    assert [check["name"] for check in failed] == ["permissions"]
    assert "chmod 700" in failed[0]["next_step"]
    data.chmod(0o700)
    assert cli("doctor").code == 0


def test_files_of_another_user_are_not_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "theirs"
    path.write_bytes(b"x")
    path.chmod(0o644)
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)
    assert not narrow(path)
    assert others_may(path) == 0o644
