"""Finish a release in dist/: check its version, and write SHA256SUMS and a bill of materials (CycloneDX JSON).

    python tools/release.py dist

`make release` builds and tries the distributions first. The bill lists what `requirements/core.txt` pins: the packages
that an installation without extras has, with the hashes that were locked, the licence each declares and what each
needs. Equal inputs give equal bytes.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, metadata, requires
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
_PINNED = re.compile(r"^([\w.-]+)==([^\s;\\]+)(?:\s*;\s*([^\\\n]+?))?\s*\\?$")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def packages(lock: str) -> list[dict[str, Any]]:
    """The packages of a lock file as components of a bill of materials."""
    found: list[dict[str, Any]] = []
    for line in lock.splitlines():
        if pinned := _PINNED.match(line):
            name, version, marker = pinned.groups()
            reference = f"pkg:pypi/{name.lower()}@{version}"
            found.append({"type": "library", "bom-ref": reference, "name": name, "version": version, "purl": reference})
            if marker:
                found[-1]["properties"] = [{"name": "marker", "value": marker.strip()}]
            found[-1]["hashes"] = []
        found_hashes = _HASH.findall(line)
        if found and found_hashes:
            found[-1]["hashes"] += [{"alg": "SHA-256", "content": content} for content in found_hashes]
    return found


def licence(name: str) -> list[dict[str, Any]]:
    """The licence of an installed package as it declares it: an expression, or the name of a classifier."""
    try:
        declared = metadata(name)
    except PackageNotFoundError:  # one for another platform
        return []
    if expression := declared.get("License-Expression"):
        return [{"expression": expression}]
    classifiers = declared.get_all("Classifier") or []
    names = [one.rpartition(" :: ")[2] for one in classifiers if one.startswith("License :: ")]
    plain = (declared.get("License") or "").strip()
    names = [one for one in names if one != "OSI Approved"] or [plain if "\n" not in plain else ""]
    return [{"license": {"name": one}} for one in names if one]


def needs(reference: str, lines: list[str], known: dict[str, list[str]]) -> dict[str, Any]:
    """Which of the known packages these requirements name, leaving out extras."""
    wanted = [Requirement(line) for line in lines]
    names = {canonicalize_name(one.name) for one in wanted if "extra" not in str(one.marker)}
    return {"ref": reference, "dependsOn": sorted(ref for name in names for ref in known.get(name, []))}


def bill(version: str, lock: str, direct: list[str]) -> dict[str, Any]:
    """The bill of materials of a release. `direct`: what the project itself asks for."""
    components = packages(lock)
    known: dict[str, list[str]] = {}
    for component in components:
        known.setdefault(canonicalize_name(component["name"]), []).append(component["bom-ref"])
        if licences := licence(component["name"]):
            component["licenses"] = licences
    reference = f"pkg:pypi/reverie@{version}"
    itself = {"type": "application", "bom-ref": reference, "name": "reverie", "version": version, "purl": reference}
    itself["licenses"] = [{"license": {"id": "Apache-2.0"}}]  # type: ignore[assignment]
    graph = [needs(reference, direct, known)]
    for component in components:
        try:
            asked = requires(component["name"]) or []
        except PackageNotFoundError:
            asked = []
        graph.append(needs(component["bom-ref"], asked, known))
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": itself},
        "components": components,
        "dependencies": graph,
    }


def check(version: str, changelog: str, package: str, module: str) -> None:
    """Refuse a release whose version is not the same everywhere, or that the changelog does not describe."""
    newest = re.search(r"^## (\S+)", changelog, re.MULTILINE)
    if newest is None or newest[1] != version:
        raise SystemExit(f"CHANGELOG.md begins with {newest[1] if newest else 'nothing'}, not with {version}")
    if json.loads(package)["version"] != version:
        raise SystemExit(f"clients/typescript/package.json is not at {version}")
    if f'__version__ = "{version}"' not in module:
        raise SystemExit(f"reverie.__version__ is not {version}")


def main(folder: str) -> int:
    dist = Path(folder)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version = project["version"]
    texts = [ROOT / "CHANGELOG.md", ROOT / "clients/typescript/package.json", ROOT / "src/reverie/__init__.py"]
    check(version, *(path.read_text(encoding="utf-8") for path in texts))
    made = sorted(path for path in dist.iterdir() if path.name.startswith(f"reverie-{version}"))
    if [path.suffix for path in made if path.suffix in (".whl", ".gz")] != [".whl", ".gz"]:
        raise SystemExit(f"{dist} does not hold one wheel and one sdist of {version}")
    lock = (ROOT / "requirements/core.txt").read_text(encoding="utf-8")
    materials = dist / f"reverie-{version}.cdx.json"
    materials.write_text(
        json.dumps(bill(version, lock, project["dependencies"]), indent=1, sort_keys=True) + "\n", encoding="utf-8"
    )
    made = sorted({*made, materials})
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}" for path in made]
    (dist / "SHA256SUMS").write_text("\n".join(sums) + "\n", encoding="utf-8")
    print("\n".join(sums))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
