"""REVERIE_READ_ONLY=1 serves memory from where nothing can be written: a mounted snapshot, a folder of another user."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reverie.app import build_host
from reverie.core.actor import Actor
from reverie.core.entry import Draft
from reverie.host import Host
from reverie.settings import Settings

ADA = Actor(tenant="acme", id="ada")

CHILD = textwrap.dedent(
    """
    import json, os, sys
    from pathlib import Path
    from reverie.app import build_host
    from reverie.core.actor import Actor
    from reverie.core.entry import Draft
    from reverie.core.errors import ReverieError
    from reverie.ops.doctor import examine
    from reverie.ops.health import Health
    from reverie.settings import Settings

    ADA = Actor(tenant="acme", id="ada")

    def look(data):
        settings = Settings.load({}, data=data, read_only=True)
        try:
            host = build_host(settings)
        except ReverieError as error:
            return {"refused": error.message}
        found = {"hit": host.search.search(ADA, "notes", "kettle").hits[0].entry.content}
        page = host.reader.page(ADA, "notes", limit=1)
        found["two"] = [e.content for e in (*page.items, *host.reader.page(ADA, "notes", cursor=page.cursor).items)]
        found["sound"] = host.audit.verify(ADA).ok
        found["ready"] = Health(settings, host).ready().document()
        found["doctor"] = {check.name: check.status for check in examine(host, settings)}
        try:
            host.entries.put(ADA, "notes", [Draft("no")])
        except ReverieError as error:
            found["put"] = error.code
        host.close()
        return found

    look(sys.argv[1])  # imports everything, while it may
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    assert not os.access(sys.argv[2], os.W_OK)
    print(json.dumps(look(sys.argv[2])))
    """
)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that another user can reach."""
    made = Path(tempfile.mkdtemp(prefix="reverie-read-only-"))
    made.chmod(0o755)
    yield made
    for path in (made, *made.rglob("*")):
        if path.is_dir():
            path.chmod(0o700)
    shutil.rmtree(made)


def fill(data: Path) -> Host:
    host = build_host(Settings.load({}, data=str(data)))
    host.entries.put(ADA, "notes", [Draft("The kettle is blue."), Draft("The pot is red.")])
    return host


def look(folder: Path, data: Path) -> Any:
    """What another user sees of a folder that only its owner may write."""
    warm = folder / "warm"
    if not warm.exists():
        fill(warm).close()
    for path in data.iterdir():
        path.chmod(0o444)
    data.chmod(0o555)
    before = {path.name: path.stat().st_mtime_ns for path in data.iterdir()}
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(warm), str(data)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert {path.name: path.stat().st_mtime_ns for path in data.iterdir()} == before
    return json.loads(done.stdout)


def assert_served(found: Any) -> None:
    assert found["hit"] == "The kettle is blue."
    assert sorted(found["two"]) == ["The kettle is blue.", "The pot is red."]
    assert found["sound"] is True
    assert found["put"] == "read_only"
    assert found["ready"]["status"] == "degraded"
    assert found["ready"]["checks"]["write"] == {"status": "degraded", "detail": "read-only"}
    failed = [name for name, status in found["doctor"].items() if status == "fail"]
    assert failed == ["permissions"]  # other users can read it: this test made it so


def test_a_snapshot_is_served(folder: Path) -> None:
    data = folder / "data"
    fill(data).close()
    assert_served(look(folder, data))
    assert not (data / "reverie.db-wal").exists()


def test_next_to_a_writer_its_latest_writes_are_seen(folder: Path) -> None:
    data = folder / "data"
    writer = fill(data)
    assert (data / "reverie.db-wal").stat().st_size
    try:
        assert_served(look(folder, data))
    finally:
        data.chmod(0o700)
        for path in data.iterdir():
            path.chmod(0o600)
        writer.close()


def test_a_log_that_cannot_be_read_is_not_passed_over(folder: Path) -> None:
    """Immutable, SQLite would serve the database without the writes in its log: an older memory than the real one."""
    data, copy = folder / "data", folder / "copy"
    writer = fill(data)
    copy.mkdir()
    for name in ("reverie.db", "reverie.db-wal"):
        shutil.copy(data / name, copy / name)
    writer.close()
    found = look(folder, copy)
    assert "holds writes that are not in the database yet" in found["refused"]


def test_a_missing_file_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="There is no database"):
        build_host(Settings.load({}, data=str(tmp_path / "none"), read_only=True))
    assert not (tmp_path / "none").exists()


def test_an_old_schema_is_not_upgraded(tmp_path: Path) -> None:
    golden = Path(__file__).parents[3] / "upgrade" / "v1.db"
    shutil.copy(golden, tmp_path / "reverie.db")
    before = (tmp_path / "reverie.db").read_bytes()
    with pytest.raises(Exception, match="cannot be upgraded"):
        build_host(Settings.load({}, data=str(tmp_path), read_only=True))
    assert (tmp_path / "reverie.db").read_bytes() == before
