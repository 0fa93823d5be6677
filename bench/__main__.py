"""Write the page of figures, or run the measurements named.

    python -m bench                    the page: docs/measured.md, a table for every question, peers next to Reverie
    python -m bench all                every measurement
    python -m bench store --quick      one, with fewer rounds
    python -m bench store --json       its figures as JSON
    python -m bench store --only floor one, with options of its own (`python -m bench.store --help` lists them)

A measurement is a module of this folder with a `main`, or a package. Each runs in its own process, so none warms
another's caches. --quick and --json reach the measurements that have them.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent


def measurements() -> list[str]:
    """The names of the measurements that exist."""
    modules = [path for path in FOLDER.glob("*.py") if not path.name.startswith("_")]
    found = [path.stem for path in modules if "def main(" in path.read_text("utf-8")]
    return sorted([*found, *(path.parent.name for path in FOLDER.glob("*/__main__.py"))])


def _source(name: str) -> str:
    """The text of a measurement: a module, or the main module of a package."""
    path = FOLDER / f"{name}.py"
    return (path if path.exists() else FOLDER / name / "__main__.py").read_text("utf-8")


def main() -> int:
    known = measurements()
    parser = argparse.ArgumentParser(
        prog="python -m bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"all, or of: {', '.join(known)}")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, for a first look")
    parser.add_argument("--json", action="store_true", help="figures as JSON")
    given, own = parser.parse_known_args()
    everything = [name for name in known if name != "page"]
    names = everything if given.names == ["all"] else given.names or ["page"]
    for name in names:
        if name not in known:
            parser.error(f"there is no measurement '{name}'. Known: {', '.join(known)}")
    if own and (len(given.names) != 1 or given.names == ["all"]):
        parser.error(f"name one measurement for the options {' '.join(own)}")
    failed = []
    for name in names:
        source = _source(name)
        options = [option for option in ("--quick", "--json") if getattr(given, option[2:]) and option in source]
        if not given.json:
            print(f"\n== {name} ==\n", flush=True)
        done = subprocess.run([sys.executable, "-m", f"bench.{name}", *options, *own], cwd=FOLDER.parent, check=False)
        if done.returncode:
            failed.append(name)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
