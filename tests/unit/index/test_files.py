"""Segments in files: the same ranking, one process after another, whatever happens to the files."""

from __future__ import annotations

import math
import os
import random
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.rows import KEY, MEMORY, Rows

from reverie.core.query import Filter
from reverie.index import vectors, words
from reverie.index.cache import IndexCache, PrivateIndexes
from reverie.index.files import SMALLEST, Files
from reverie.index.parts import Part, Parts
from reverie.index.postings import K1, RECORD, B, ask, hashed
from reverie.index.segment import build

COMMON, MANY = [f"c{n}" for n in range(40)], SMALLEST + 500
ASKED = ("c3", "c17", "r77", "c30", "zz")


def entry(chance: random.Random) -> tuple[list[str], bytes]:
    chosen = [chance.choice(COMMON) for _ in range(12)] + [f"r{chance.randrange(3000)}"]
    return chosen, bytes(chance.randrange(256) for _ in range(16))


@pytest.fixture(scope="module")
def filled() -> Rows:
    chance, tx = random.Random(4), Rows()
    for position in range(1, MANY + 1):
        own, vector = entry(chance)
        tx.put(position, *own, vector=vector)
    return tx


@pytest.fixture
def tx(filled: Rows) -> Rows:
    own = Rows()
    own.seq, own.rows, own.left = filled.seq, dict(filled.rows), dict(filled.left)
    return own


def answers(cache: IndexCache, tx: Rows) -> object:
    by_words = cache.match(tx, MEMORY, ask(ASKED, KEY), Filter(), 40)
    by_meaning = cache.nearest(tx, MEMORY, ("m", bytes(range(16))), Filter(), 40)
    return (
        [(one.entry.position, one.number, one.score, one.cover) for one in by_words],
        [(one.entry.position, one.score) for one in by_meaning],
        cache.known(tx, MEMORY, [hashed("c3", KEY), hashed("nothing", KEY)]),
        cache.cosines(tx, MEMORY, ("m", bytes(range(16))), [5, 4000, 10**6]),
    )


def change(tx: Rows) -> None:
    chance = random.Random(9)
    for position in (3, 700, 4100):
        tx.take(position)
    for position in (8, 901, MANY + 1, MANY + 2):
        own, vector = entry(chance)
        tx.put(position, *own, vector=vector)


def held_by(folder: Path, needle: bytes) -> bool:
    return any(needle in path.read_bytes() for path in folder.iterdir())


def test_a_new_process_reads_only_what_came_since(tx: Rows, tmp_path: Path) -> None:
    first = answers(IndexCache(files=Files(tmp_path / "i")), tx)
    assert first == answers(IndexCache(), tx)
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in (tmp_path / "i").iterdir())
    assert stat.S_IMODE((tmp_path / "i").stat().st_mode) == 0o700
    tx.read.clear()
    cache = IndexCache(files=Files(tmp_path / "i"))
    assert answers(cache, tx) == first
    assert tx.read == [0]
    change(tx)
    tx.read.clear()
    assert answers(cache, tx) == answers(IndexCache(), tx)
    assert tx.read[0] == 4
    assert answers(IndexCache(files=Files(tmp_path / "i", read_only=True)), tx) == answers(cache, tx)


def test_what_comes_later_is_filed_too_and_put_in_order(tx: Rows, tmp_path: Path) -> None:
    cache = IndexCache(files=Files(tmp_path))
    answers(cache, tx)
    chance = random.Random(2)
    for position in range(MANY + 1, MANY + SMALLEST + 2):
        own, vector = entry(chance)
        tx.put(position, *own, vector=vector)
    answers(cache, tx)
    assert len(list(tmp_path.glob("*.segment"))) == 2
    last = MANY + SMALLEST + 1
    for _ in range(2):
        for position in range(last + 1, last + SMALLEST + 1):
            tx.put(position, "c3", f"r{position}")
        last += SMALLEST
        answers(cache, tx)
    assert len(list(tmp_path.glob("*.segment"))) == 1, "four small ones are merged"
    tx.read.clear()
    assert answers(IndexCache(files=Files(tmp_path)), tx) == answers(IndexCache(), tx)
    assert tx.read[0] == 0


def test_a_worn_index_gets_smaller_by_itself(tx: Rows, tmp_path: Path) -> None:
    cache = IndexCache(files=Files(tmp_path))
    answers(cache, tx)
    (whole,) = tmp_path.glob("*.segment")
    size = whole.stat().st_size
    for position in range(1, MANY // 4):
        tx.take(position)
    answers(cache, tx)
    assert list(tmp_path.glob("*.segment")) == [whole], "less than a quarter is out of use"
    for position in range(MANY // 4, MANY // 3):
        tx.take(position)
    found = answers(cache, tx)
    (rest,) = tmp_path.glob("*.segment")
    assert rest.stat().st_size < size * 3 // 4
    assert found == answers(IndexCache(), tx)
    tx.read.clear()
    assert answers(IndexCache(files=Files(tmp_path)), tx) == found
    assert tx.read == [0]


def test_an_index_that_is_not_worn_is_not_written_again(
    tx: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = IndexCache(files=Files(tmp_path))
    answers(cache, tx)
    written: list[str] = []
    monkeypatch.setattr(Files, "_put", lambda _, name, __: written.append(name))
    for position in range(MANY + 1, MANY + 1 + SMALLEST // 2):
        tx.put(position, "c3")
        if position % 100 == 0:
            tx.take(position - MANY)
            answers(cache, tx)
    assert written == []


def test_a_segment_whose_passages_all_left_is_removed(tx: Rows, tmp_path: Path) -> None:
    cache = IndexCache(files=Files(tmp_path))
    answers(cache, tx)
    for position in range(1, MANY + 1):
        tx.take(position)
    answers(cache, tx)
    assert list(tmp_path.glob("*.segment")) == []
    tx.put(MANY + 1, "c3")
    assert answers(IndexCache(files=Files(tmp_path)), tx) == answers(cache, tx) == answers(IndexCache(), tx)


def test_files_that_come_later_are_read_by_the_next_process_and_not_made_again(tx: Rows, tmp_path: Path) -> None:
    answers(IndexCache(files=Files(tmp_path)), tx)
    chance = random.Random(2)
    for position in range(MANY + 1, MANY + SMALLEST + 2):
        own, vector = entry(chance)
        tx.put(position, *own, vector=vector)
    whole = answers(IndexCache(files=Files(tmp_path)), tx)
    names = sorted(path.name for path in tmp_path.iterdir())
    tx.read.clear()
    assert answers(IndexCache(files=Files(tmp_path)), tx) == whole
    assert tx.read == [0]
    assert sorted(path.name for path in tmp_path.iterdir()) == names


def test_a_small_memory_has_no_files(tmp_path: Path) -> None:
    tx = Rows()
    tx.put(1, "kettle")
    IndexCache(files=Files(tmp_path / "i")).match(tx, MEMORY, ask(["kettle"], KEY), Filter(), 5)
    assert not (tmp_path / "i").exists()


def flipped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    for at in range(4096, len(data), 512):
        data[at] ^= 0xFF
    path.write_bytes(bytes(data))


DAMAGE: dict[str, Callable[[Path], object]] = {
    "flipped": flipped,
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-4096]),
    "empty": lambda path: path.write_bytes(b""),
    "zeroed": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "missing": lambda path: path.unlink(),
}


@pytest.mark.parametrize("kind", DAMAGE)
@pytest.mark.parametrize("which", ["*.manifest", "*.segment"])
@pytest.mark.parametrize("read_only", [False, True])
def test_damage_is_noticed_and_costs_nothing_but_time(
    tx: Rows, tmp_path: Path, kind: str, which: str, read_only: bool
) -> None:
    whole = answers(IndexCache(files=Files(tmp_path)), tx)
    (path,) = tmp_path.glob(which)
    DAMAGE[kind](path)
    assert answers(IndexCache(files=Files(tmp_path, read_only=read_only)), tx) == whole
    if not read_only:
        tx.read.clear()
        assert answers(IndexCache(files=Files(tmp_path)), tx) == whole
        assert tx.read == [0], "it was written again"


def test_damaged_files_that_cannot_be_removed_do_not_hang_a_search(
    tx: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = answers(IndexCache(files=Files(tmp_path)), tx)
    (path,) = tmp_path.glob("*.segment")
    flipped(path)
    tries: list[Path] = []

    def refused(path: Path, *, missing_ok: bool = False) -> None:
        tries.append(path)
        assert len(tries) < 9, "the search goes on for ever"
        raise PermissionError

    monkeypatch.setattr(Path, "unlink", refused)
    assert answers(IndexCache(files=Files(tmp_path)), tx) == whole


def test_damage_found_while_files_are_put_in_order_is_mended(tx: Rows, tmp_path: Path) -> None:
    answers(IndexCache(files=Files(tmp_path)), tx)
    for position in range(1, MANY // 3):
        tx.take(position)
    (damaged,) = tmp_path.glob("*.segment")
    data = bytearray(damaged.read_bytes())
    data[len(data) * 2 // 3] ^= 0xFF  # not in a column that is read before they are merged
    damaged.write_bytes(bytes(data))
    assert answers(IndexCache(files=Files(tmp_path)), tx) == answers(IndexCache(), tx)
    assert not damaged.exists()


def test_a_note_outlasts_files_that_are_written_while_it_is_made(
    tx: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, files = IndexCache(files=Files(tmp_path)), Files(tmp_path)
    answers(cache, tx)
    for position in range(1, MANY // 3):
        tx.take(position)
    before, real = set(tmp_path.glob("*.segment")), os.fsync

    def meanwhile(descriptor: int) -> None:
        monkeypatch.setattr(os, "fsync", real)
        answers(cache, tx)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", meanwhile)
    name = files.name(MEMORY, KEY)
    assert files.note(name)
    assert set(tmp_path.glob("*.segment")).isdisjoint(before)
    assert files.load(name) is None


@pytest.mark.parametrize("ended", ["scrubbed", "undone"])
def test_a_note_of_another_process_stays_when_one_is_done(tx: Rows, tmp_path: Path, ended: str) -> None:
    """What the other has yet to scrub must not be used if it dies."""
    tx.put(77, "onlyhere")
    one, other = Files(tmp_path), Files(tmp_path)
    answers(IndexCache(files=one), tx)
    name = one.name(MEMORY, KEY)
    assert one.note(name)
    tx.take(700)
    assert other.note(name)
    tx.take(77)
    if ended == "scrubbed":
        one.scrub(name, [700], tx.seq - 1)
    else:
        one.unnote(name)
    other.leave(name)  # it dies after its commit
    assert one.load(name) is None
    assert answers(IndexCache(files=Files(tmp_path)), tx) == answers(IndexCache(), tx)
    assert not held_by(tmp_path, hashed("onlyhere", KEY).to_bytes(8, "little", signed=True))
    assert not list(tmp_path.glob("*.scrub"))


@pytest.mark.parametrize("committed", [True, False])
def test_a_note_of_a_dead_process_is_not_taken_for_ones_own(tx: Rows, tmp_path: Path, committed: bool) -> None:
    tx.put(77, "onlyhere")
    dead, files = Files(tmp_path), Files(tmp_path)
    answers(IndexCache(files=dead), tx)
    name = files.name(MEMORY, KEY)
    dead.note(name)
    tx.take(77)
    dead.leave(name)
    assert files.note(name)
    if committed:
        tx.take(700)
        files.scrub(name, [700], tx.seq)
    else:
        files.unnote(name)
    assert files.load(name) is None
    assert answers(IndexCache(files=files), tx) == answers(IndexCache(), tx)
    assert not held_by(tmp_path, hashed("onlyhere", KEY).to_bytes(8, "little", signed=True))


def test_a_search_does_not_remove_the_note_of_a_process_that_is_about_to_commit(tx: Rows, tmp_path: Path) -> None:
    tx.put(77, "onlyhere")
    writer, reader = Files(tmp_path), Files(tmp_path)
    answers(IndexCache(files=writer), tx)
    name = writer.name(MEMORY, KEY)
    writer.note(name)
    answers(IndexCache(files=reader), tx)  # before the commit: what it writes has the text
    assert reader.load(name) is None
    tx.take(77)
    writer.leave(name)
    Files(tmp_path).recover()
    assert not held_by(tmp_path, hashed("onlyhere", KEY).to_bytes(8, "little", signed=True))
    assert not list(tmp_path.glob("*.scrub"))


def test_memories_without_files_are_not_looked_for_among_the_files_of_others(
    tx: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, listed = IndexCache(files=Files(tmp_path)), list[str]()
    answers(cache, tx)
    real = Path.glob

    def counted(path: Path, pattern: str) -> object:
        listed.append(pattern)
        return real(path, pattern)

    monkeypatch.setattr(Path, "glob", counted)
    small = Rows()
    small.put(1, "kettle")
    for number in range(50):
        memory = (1, f"small{number}")
        assert cache.match(small, memory, ask(["kettle"], KEY), Filter(), 5)
        assert cache.note(memory, KEY) == []
    assert listed == []


def test_a_segment_that_no_manifest_lists_is_scrubbed(tx: Rows, tmp_path: Path) -> None:
    """A process died between the two."""
    files = Files(tmp_path)
    name = files.name(MEMORY, KEY)
    files.store(name, build([(77, tx.rows[77][2], b"secretsecretsecr", "m")]))
    assert held_by(tmp_path, b"secretsecretsecr")
    assert files.note(name)
    files.scrub(name, [77], tx.seq)
    assert not held_by(tmp_path, b"secretsecretsecr")


def test_files_of_another_history_are_not_used(tx: Rows, tmp_path: Path) -> None:
    answers(IndexCache(files=Files(tmp_path)), tx)
    other = Rows()
    other.put(1, "c3")
    other.seq = tx.seq
    other.hash_at = other_hash  # type: ignore[method-assign]
    other.put(2, "c3")
    found = IndexCache(files=Files(tmp_path)).match(other, MEMORY, ask(["c3"], KEY), Filter(), 9)
    assert [one.entry.position for one in found] == [1, 2]


def other_hash(seq: int) -> str:
    return f"other{seq}"


def test_what_is_destroyed_leaves_the_files(tx: Rows, tmp_path: Path) -> None:
    tx.put(77, "onlyhere", vector=b"secretsecretsecr")
    cache = IndexCache(files=Files(tmp_path))
    answers(cache, tx)
    word = hashed("onlyhere", KEY).to_bytes(8, "little", signed=True)
    assert held_by(tmp_path, word)
    assert held_by(tmp_path, b"secretsecretsecr")
    (name,) = cache.note(MEMORY, KEY)
    tx.take(77)
    cache.scrub(name, [77], tx.seq)
    assert not held_by(tmp_path, word)
    assert not held_by(tmp_path, b"secretsecretsecr")
    tx.read.clear()
    assert answers(IndexCache(files=Files(tmp_path)), tx) == answers(cache, tx) == answers(IndexCache(), tx)
    assert tx.read[0] == 0


def test_files_that_could_not_be_cleared_of_text_destroyed_elsewhere_are_not_used(
    tx: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tx.put(77, "onlyhere", vector=b"secretsecretsecr")
    answers(IndexCache(files=Files(tmp_path)), tx)
    tx.take(77)
    tx.scrubbed[77] = tx.seq

    def fails(*_: object) -> None:
        raise OSError

    monkeypatch.setattr(Files, "_publish", fails)
    monkeypatch.setattr(Files, "_remove", fails)
    whole = answers(IndexCache(), tx)
    assert answers(IndexCache(files=Files(tmp_path)), tx) == whole
    assert Files(tmp_path).load(Files(tmp_path).name(MEMORY, KEY)) is None
    monkeypatch.undo()
    assert answers(IndexCache(files=Files(tmp_path)), tx) == whole
    assert not held_by(tmp_path, b"secretsecretsecr")


def test_an_index_read_before_a_scrub_is_not_written_after_it(tx: Rows, tmp_path: Path) -> None:
    files = Files(tmp_path)
    tx.put(77, "onlyhere")
    old = IndexCache()
    answers(old, tx)
    slow = old.peek(tx, MEMORY)
    answers(IndexCache(files=files), tx)
    name, before = files.name(MEMORY, KEY), tx.seq
    files.note(name)
    tx.take(77)
    files.scrub(name, [77], tx.seq)
    files.drop(name)
    assert files.save(name, slow, f"h{before}") is slow
    assert not held_by(tmp_path, hashed("onlyhere", KEY).to_bytes(8, "little", signed=True))


def test_a_process_that_died_before_it_scrubbed_leaves_files_that_are_removed(tx: Rows, tmp_path: Path) -> None:
    files = Files(tmp_path)
    answers(IndexCache(files=files), tx)
    dead = Files(tmp_path)
    dead.note(dead.name(MEMORY, KEY))
    dead.leave(dead.name(MEMORY, KEY))
    Files(tmp_path).recover()
    assert not list(tmp_path.glob("*.segment"))
    assert not list(tmp_path.glob("*.scrub"))
    assert answers(IndexCache(files=files), tx) == answers(IndexCache(), tx)


def test_a_write_transaction_sees_its_own_work_and_shares_none_of_it(tx: Rows, tmp_path: Path) -> None:
    shared = IndexCache(files=Files(tmp_path))
    answers(shared, tx)
    inside = Rows()
    inside.seq, inside.rows, inside.left = tx.seq, dict(tx.rows), dict(tx.left)
    change(inside)
    assert answers(PrivateIndexes(shared), inside) == answers(IndexCache(), inside)
    assert inside.read[:1] == [4]
    assert answers(shared, tx) == answers(IndexCache(), tx)


def test_codes_find_what_an_exact_search_finds(tx: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exact = answers(IndexCache(), tx)
    monkeypatch.setattr(vectors, "CODED", 1000)
    monkeypatch.setattr(vectors, "LOOKED_AT", 2500)
    monkeypatch.setattr(vectors, "_ROUGH", 1)
    cache = IndexCache(files=Files(tmp_path))
    coded = answers(cache, tx)
    assert [one[0] for one in coded[1][:5]] == [one[0] for one in exact[1][:5]]  # type: ignore[index]
    change(tx)
    gone = {3, 700, 4100}
    assert not gone & {one[0] for one in answers(cache, tx)[1]}  # type: ignore[index]


def test_near_neighbours_are_found_at_the_first_look(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = np.random.default_rng(3)
    near = chance.normal(0, 40, 256) + chance.normal(0, 12, (60, 256))
    data = np.clip(np.concatenate([chance.normal(0, 40, (20_000, 256)), near]), -127, 127).astype(np.int8)
    own = [(position, None, vector.tobytes(), "m") for position, vector in enumerate(data[chance.permutation(20_060)])]
    looked_at: list[int] = []
    monkeypatch.setattr(vectors, "_products", counted(vectors._products, looked_at))
    parts = [Part(build(own))]
    exact = vectors.Meaning(parts, ("m", near[0].astype(np.int8).tobytes())).best(60)
    looked_at.clear()
    monkeypatch.setattr(vectors, "CODED", 1000)
    assert vectors.Meaning(parts, ("m", near[0].astype(np.int8).tobytes())).best(60) == exact
    assert sum(looked_at) < vectors.LOOKED_AT // 3
    looked_at.clear()
    vectors.Meaning(parts, ("m", chance.integers(-127, 127, 256, dtype=np.int8).tobytes())).best(60)
    assert sum(looked_at) > vectors.LOOKED_AT // 3, "where all are about as near, more are looked at"


def counted(products: Callable[..., object], sizes: list[int]) -> Callable[..., object]:
    def call(data: np.ndarray, query: np.ndarray) -> object:
        sizes.append(len(data))
        return products(data, query)

    return call


BESIDES = 60  # passages without the word, so that few notes make no word common


def test_scores_do_not_depend_on_how_a_memory_is_cut(tx: Rows) -> None:
    """Bit for bit: summed word by word in the order of the question, in one segment or in many."""
    many = Parts()
    rows = [(position, packed, vector, "m") for position, (_, _, packed, vector) in tx.rows.items()]
    for at in range(0, len(rows), 1000):
        many = replace(many, parts=(*many.parts, Part(build(rows[at : at + 1000]))))
    question = ask(ASKED, KEY)
    live = len(rows)
    sums: dict[int, float] = {}
    packed = {position: np.frombuffer(own, dtype=RECORD) for position, own, _, _ in rows}
    total = float(sum(int(own["times"].sum()) for own in packed.values()))
    for telling, ((word, share),) in question:
        having = {position: own["times"][own["word"] == word] for position, own in packed.items()}
        having = {position: times for position, times in having.items() if len(times)}
        weight = share * math.log(1 + (live + BESIDES - len(having) + 0.5) / (len(having) + 0.5))
        for position, times in having.items():
            length = float(packed[position]["times"].sum()) * (K1 * B * live / total) + K1 * (1 - B) + float(times[0])
            value = float(times[0]) * (weight * (K1 + 1)) / length
            sums[position] = sums.get(position, 0.0) + telling * value
    wanted = sorted(sums.items(), key=lambda one: (-one[1], one[0]))[:40]
    for parts in (many.parts, (Part(build(rows)),)):
        assert [(one.position, one.score) for one in words.best(parts, question, 40)] == wanted
