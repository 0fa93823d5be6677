"""The parts of a host: made when asked for, once."""

from __future__ import annotations

import ast
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

from reverie import host as module
from reverie.host import USE_CASES, Host
from reverie.jobs import ports


def test_a_part_is_made_once_however_many_threads_ask_first(make_host: Callable[..., Host]) -> None:
    host, start = make_host(), Barrier(8)

    def first(_: int) -> object:
        start.wait()
        return host.schedules

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(first, range(8)))
    assert all(part is host.schedules for part in found)


def test_no_part_is_made_before_it_is_asked_for(make_host: Callable[..., Host]) -> None:
    host = make_host()
    assert "entries" not in vars(host)
    assert host.entries is host.use_cases()["entries"]
    assert {"entries", "search", "windows", "rules"} <= set(host.use_cases())


def test_every_use_case_is_of_the_type_the_host_declares(make_host: Callable[..., Host]) -> None:
    tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    declared = {
        ast.unparse(node.target): ast.unparse(node.annotation)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in block.body
        if isinstance(node, ast.AnnAssign)
    }
    made = make_host().use_cases()
    assert made.keys() == USE_CASES.keys()
    assert declared.keys() <= made.keys()
    for name, part in made.items():
        wanted = declared.get(name)
        if wanted is None:  # asked for by class, with `host.use`
            assert USE_CASES[name].startswith("reverie.protocols."), name
        elif wanted.endswith("Port"):
            port = getattr(ports, wanted)
            methods = {method for one in port.__mro__ for method in vars(one) if not method.startswith("_")}
            assert methods, wanted
            assert methods <= set(dir(part)), name
        else:
            assert type(part).__name__ == wanted
