"""The public names, and the ports that a program can bring."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

import reverie
from reverie.distil.request import DistilledText, Request


class First:
    """A distiller that keeps the first source only."""

    name = "first"
    fingerprint = "first/1"

    def distil(self, request: Request) -> DistilledText:
        return DistilledText(request.work.sources[0].content)


class Stopped:
    """A clock that always tells the same time."""

    def now(self) -> int:
        return 1_700_000_000_000


class Letters:
    """An embedder that counts letters."""

    name = "letters/1"
    dimensions = 26

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        return [bytes(min(127, text.lower().count(chr(97 + n)) * 9 + 1) for n in range(26)) for text in texts]


def test_every_public_name_can_be_had() -> None:
    for name in reverie.__all__:
        assert getattr(reverie, name) is not None
    assert set(reverie.__all__) - {"__version__"} == set(reverie._HOMES)
    with pytest.raises(AttributeError):
        reverie.nothing  # noqa: B018


def test_everything_the_library_returns_is_exported() -> None:
    """Every struct named in a return annotation of Memory, Dreams and Ref."""
    import ast
    import builtins

    from reverie import library

    tree = ast.parse(Path(library.__file__).read_text(encoding="utf-8"))
    returned: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            for child in node.body:
                if isinstance(child, ast.FunctionDef) and not child.name.startswith("_") and child.returns:
                    returned |= {part.id for part in ast.walk(child.returns) if isinstance(part, ast.Name)}
    plain = {"Any", "Iterator", "Mapping", "Sequence", "Literal", "None"}
    assert {name for name in returned if not hasattr(builtins, name)} - plain <= set(reverie.__all__)


def test_a_distiller_of_ones_own_dreams(tmp_path: Path) -> None:
    with reverie.open(tmp_path, distiller=First()) as memory:
        notes = memory.ref("notes")
        notes.put_many(
            [
                "The lamp in the hall is green and stays on at night.",
                "Somebody said hello to somebody else.",
                "It rained a little in the afternoon, then the sun came out.",
            ]
        )
        assert notes.plan_dream(4000).distiller == "first"
        assert notes.plan_dream(4000, distiller="extractive").distiller == "extractive"


def test_a_distiller_cannot_take_a_known_name(tmp_path: Path) -> None:
    class Imposter(First):
        name = "extractive"

    with pytest.raises(reverie.Invalid, match="name of its own"):
        reverie.open(tmp_path, distiller=Imposter())


def test_an_embedder_of_ones_own_makes_the_vectors(tmp_path: Path) -> None:
    with reverie.open(tmp_path, embedder=Letters()) as memory:
        notes = memory.ref("notes")
        assert notes.put("zzz zebra").indexed == "ok"
        assert memory.stats()["with_vector"] == 1
        assert notes.search("zzz", mode="meaning")[0].entry.content == "zzz zebra"


def test_a_clock_of_ones_own_tells_the_time(tmp_path: Path) -> None:
    with reverie.open(tmp_path, clock=Stopped()) as memory:
        assert memory.ref("notes").put("Then.").created_at == 1_700_000_000_000
        assert memory.events()[-1].at == 1_700_000_000_000


def test_what_is_returned_says_what_it_is_and_when(tmp_path: Path) -> None:
    memory = reverie.open(tmp_path, clock=Stopped())
    ref = memory.ref("notes")
    receipt = ref.put("Ada moved to Lisbon\nin October 2023, and her studio is above the bakery in the Rua das Flores.")
    (entry,) = ref.entries()
    instant = datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
    assert (entry.created, receipt.created, entry.expires) == (instant, instant, None)
    assert next(iter(memory.events())).time == instant
    assert repr(entry) == f"<Entry {entry.id} (note): 'Ada moved to Lisbon in October 2023, and her studio is abov…'>"
    found = ref.search("where does Ada live?")
    assert repr(found) == f"<SearchResult of 1: [{found[0]!r}]>"
    assert repr(found[0]).startswith("<Hit 0.")
    memory.close()


def test_the_public_modules_need_no_import_of_their_own() -> None:
    script = "import reverie; reverie.aio.open, reverie.akashik, reverie.anthropic, reverie.responses; print('ok')"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "ok\n"


def test_an_entry_that_was_dreamt_names_its_dream(tmp_path: Path) -> None:
    memory = reverie.open(tmp_path)
    ref = memory.ref("notes")
    old = ref.put("Ada prefers tea over coffee.")
    ref.put("Thanks a lot, talk to you soon!")
    ref.dream()
    (dream,) = ref.entries()
    for attempt in (ref.get, ref.delete, lambda entry_id: ref.supersede(entry_id, "Ada prefers coffee.")):
        with pytest.raises(reverie.NotFound, match=f"the dream {dream.id} holds its statements"):
            attempt(old.id)
    memory.close()
