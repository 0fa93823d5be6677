"""The built-in embedder: same bytes everywhere, near things near, far things far."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import threading
from importlib import resources

import numpy as np
import pytest

from reverie.providers.static import DIMENSIONS, LENGTH, StaticEmbedder
from reverie.providers.static.wordpiece import CACHED_LENGTH, WordPiece

GOLDEN = {
    "": "5341e6b2646979a70e57653007a1f310169421ec9bdd9f1a5648f75ade005af1",
    "The cat sat on the mat.": "6092cd8df77b8db03e616075bf32fa5b1677ae1f26d6c925bd03074dd9882131",
    "Deploy failed with ERR_42 in foo_bar v1.2": "6c3e594aedbac4e1b00ba9fa1f7840540c115cd720162ebf591b0a28091fca0b",
    "naïve café ÉCOLE": "3704c6ed6ab94b79fb23c4c5d9a9e8214782600e420bfd86933021a6c0c23529",
    "日本語のテキスト": "948f0136ef56e8fa77f5b9cb1a5c5f1f45d52282f15a257c285f0f89b32bf0ce",
    "word " * 3000: "a25e5f17b4f2c4508b726b3184cd221aea846c10bc040af263567ca732b0ff17",
}


@pytest.fixture(scope="module")
def embedder() -> StaticEmbedder:
    return StaticEmbedder()


def cosine(embedder: StaticEmbedder, left: str, right: str) -> float:
    a, b = (np.frombuffer(vector, np.int8).astype(np.int64) for vector in embedder.embed([left, right]))
    return int(a @ b) / LENGTH**2


def test_vectors_are_the_golden_bytes(embedder):
    vectors = embedder.embed(list(GOLDEN))
    assert [hashlib.sha256(vector).hexdigest() for vector in vectors] == list(GOLDEN.values())


def test_a_text_has_the_same_vector_alone_and_in_any_batch(embedder):
    texts = [f"note number {n} about topic {n % 7}" for n in range(1200)]
    together = embedder.embed(texts)
    assert together[::97] == [embedder.embed([text])[0] for text in texts[::97]]


def test_a_process_without_numpy_makes_the_same_bytes():
    code = (
        "import hashlib, json, sys; from reverie.providers.static import StaticEmbedder\n"
        "made = [StaticEmbedder().embed([text])[0] for text in json.load(sys.stdin)]\n"
        "print(json.dumps([[hashlib.sha256(one).hexdigest() for one in made], 'numpy' in sys.modules]))"
    )
    short = {text: golden for text, golden in GOLDEN.items() if len(text) < 1000}
    said = subprocess.run(
        [sys.executable, "-c", code], input=json.dumps(list(short)), text=True, capture_output=True, check=True
    )
    assert json.loads(said.stdout) == [list(short.values()), False]


def test_a_process_that_goes_on_storing_imports_numpy():
    code = (
        "import sys; from reverie.providers.static import StaticEmbedder; embedder = StaticEmbedder()\n"
        "print([('numpy' in sys.modules, embedder.embed(['a note of some six words']))[0] for _ in range(100)].index(True))"
    )
    said = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=True)
    assert 10 < int(said.stdout) < 100


def test_name_carries_the_hash_of_the_table(embedder):
    table = resources.files("reverie.providers.static").joinpath("table.npy").read_bytes()
    assert embedder.name == f"static-minilm-256/{hashlib.sha256(table).hexdigest()[:12]}"
    assert embedder.dimensions == DIMENSIONS == 256


def test_manifest_names_licence_source_and_command():
    manifest = json.loads(resources.files("reverie.providers.static").joinpath("MANIFEST.json").read_text("utf-8"))
    assert manifest["licence"] == "Apache-2.0"
    assert "all-MiniLM-L6-v2" in manifest["notice"]
    assert "WordNet 3.0 Copyright 2006 by Princeton University" in manifest["notice"]
    assert "tools/build_embedding_table.py" in manifest["command"]


@pytest.mark.parametrize("text", ["", "   \n\t", "\u200b", "x" * 101])
def test_nothing_known_is_the_zero_vector(embedder, text):
    assert embedder.embed([text]) == [bytes(DIMENSIONS)]


def test_no_texts_no_vectors(embedder):
    assert embedder.embed([]) == []


@pytest.mark.parametrize(
    ("text", "near", "far"),
    [
        ("the dog barked", "a puppy was barking", "quarterly tax report"),
        (
            "my doctor gave me a prescription",
            "the physician prescribed medicine",
            "guitar lessons in the park",
        ),
        ("car", "automobile", "banana"),
    ],
)
def test_meaning_decides_nearness(embedder, text, near, far):
    assert cosine(embedder, text, near) > 0.6
    assert cosine(embedder, text, far) < 0.3


def test_length_is_close_to_127(embedder):
    for vector in embedder.embed(["one", "two words", "a rather longer sentence about nothing much"]):
        length = np.linalg.norm(np.frombuffer(vector, np.int8).astype(float))
        assert length == pytest.approx(LENGTH, rel=0.04)


def test_float32_products_are_exact(embedder):
    texts = [f"{word} {n}" for word in ("alpha", "beta", "server", "holiday") for n in range(50)]
    matrix = np.frombuffer(b"".join(embedder.embed(texts)), np.int8).reshape(-1, DIMENSIONS)
    exact = matrix.astype(np.int64) @ matrix[0].astype(np.int64)
    fast = matrix.astype(np.float32) @ matrix[0].astype(np.float32)
    assert (exact == fast).all()


def test_long_texts_do_not_overflow(embedder):
    once, often = embedder.embed(["memory", "memory " * 50_000])
    assert once == often


def test_threads_share_one_embedder(embedder):
    texts = [f"thread test {n}" for n in range(300)]
    expected = embedder.embed(texts)
    results: list[list[bytes]] = []
    threads = [threading.Thread(target=lambda: results.append(StaticEmbedder.embed(embedder, texts))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 8


class TestWordPiece:
    wordpiece = WordPiece(["[UNK]", "un", "##believ", "##able", "good", "!", "中", "-", "cafe"])

    @pytest.mark.parametrize(
        ("text", "rows"),
        [
            ("unbelievable", [1, 2, 3]),
            ("Good!", [4, 5]),
            ("good-good", [4, 7, 4]),
            ("Café", [8]),
            ("中good中", [6, 4, 6]),
            ("unknown", []),
            ("[UNK]", []),
            ("good\u00adgood", []),
            ("go\u00adod", [4]),
            ("##able", []),
        ],
    )
    def test_pieces(self, text, rows):
        assert self.wordpiece.rows(text) == rows

    def test_long_pieces_are_not_remembered(self):
        wordpiece = WordPiece(["a", "##a"])
        wordpiece.rows("a" * (CACHED_LENGTH + 1) + " aa")
        assert list(wordpiece._cache) == ["aa"]
