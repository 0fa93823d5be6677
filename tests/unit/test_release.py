"""A release: one version everywhere, checksums that fit, and a bill of every package that is installed."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from pathlib import Path

import pytest
from tools import release

ROOT = Path(__file__).resolve().parents[2]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]


@pytest.fixture
def dist(tmp_path: Path) -> Path:
    for name in (f"reverie-{VERSION}-py3-none-any.whl", f"reverie-{VERSION}.tar.gz"):
        (tmp_path / name).write_bytes(name.encode())
    return tmp_path


def test_the_version_is_the_same_everywhere_and_files_are_summed(dist: Path) -> None:
    assert release.main(str(dist)) == 0
    lines = (dist / "SHA256SUMS").read_text().splitlines()
    assert len(lines) == 3
    for line in lines:
        digest, name = line.split("  ")
        assert hashlib.sha256((dist / name).read_bytes()).hexdigest() == digest
    before = {path.name: path.read_bytes() for path in dist.iterdir()}
    assert release.main(str(dist)) == 0
    assert before == {path.name: path.read_bytes() for path in dist.iterdir()}


def test_the_bill_lists_what_the_core_pins(dist: Path) -> None:
    release.main(str(dist))
    bill = json.loads((dist / f"reverie-{VERSION}.cdx.json").read_text())
    pinned = set(re.findall(r"^([\w.-]+)==", (ROOT / "requirements/core.txt").read_text(), re.MULTILINE))
    assert {component["name"] for component in bill["components"]} == pinned
    assert all(component["hashes"] for component in bill["components"])
    assert [component["name"] for component in bill["components"] if "licenses" not in component] in (
        [],
        ["httpx2-jsfetch"],
    )
    graph = {node["ref"]: node["dependsOn"] for node in bill["dependencies"]}
    assert set(graph) == {*(component["bom-ref"] for component in bill["components"]), f"pkg:pypi/reverie@{VERSION}"}
    assert any(one.startswith("pkg:pypi/starlette@") for one in graph[f"pkg:pypi/reverie@{VERSION}"])
    [starlette] = [ref for ref in graph if ref.startswith("pkg:pypi/starlette@")]
    assert any(one.startswith("pkg:pypi/anyio@") for one in graph[starlette])
    assert (bill["bomFormat"], bill["metadata"]["component"]["version"]) == ("CycloneDX", VERSION)


def test_another_version_is_refused(dist: Path) -> None:
    with pytest.raises(SystemExit, match=r"CHANGELOG\.md"):
        release.check("9.9.9", "## 0.2.0", "{}", "")
    (dist / f"reverie-{VERSION}.tar.gz").unlink()
    with pytest.raises(SystemExit, match="one wheel and one sdist"):
        release.main(str(dist))


def test_every_migration_is_in_the_changelog() -> None:
    """Each step of both stores is named in the release that brought it."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    sections = re.split(r"^PostgreSQL ", text.partition("### Migrations")[2], flags=re.MULTILINE)
    for store, section in zip(("sqlite", "postgres"), sections, strict=True):
        for path in sorted((ROOT / "src/reverie/store" / store / "migrations").glob("*.sql")):
            assert re.search(rf"\b{path.name[:4]}\b", section), path.name
