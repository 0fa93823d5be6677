"""Names of other frameworks as refs, documents as entries, and frameworks that are missing or too old."""

from __future__ import annotations

import importlib
from importlib import metadata
from pathlib import Path

import pytest

import reverie
from reverie.core.entry import valid_ref
from reverie.core.errors import MissingExtra
from reverie.core.extras import require_release
from reverie.core.names import decode, encode, segment
from reverie.integrations.transcript import documents, drafts, oldest_first


@pytest.mark.parametrize(
    "label", ["ann", "a@b.c", "", "..", ".", "a/b", "é", "名前", "🦉", "\n", "-x", "_", "A.40", "u00e9"]
)
def test_a_label_comes_back_from_its_segment(label: str) -> None:
    assert decode(encode(label)) == label
    assert valid_ref(f"root/{encode(label)}")


def test_long_labels_are_cut_and_told_apart() -> None:
    first, second = segment("x" * 300), segment("x" * 301)
    assert first != second
    assert len(first) <= 80
    assert valid_ref(f"root/{first}/{second}")


def test_documents_come_back_whole_and_in_order(tmp_path: Path) -> None:
    given = [{"n": 1}, {"n": 2, "text": "long " * 30_000}, {"n": 3, "deep": [None, True, {"x": 1.5}]}]
    with reverie.open(tmp_path) as memory:
        ref = memory.ref("lines")
        for document in given:
            ref.put_many(drafts(document, "a line", kind="line"))
        ref.put("A note of somebody else.")
        assert [document for _, document in documents(oldest_first(ref))] == given


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), 2**70, "broken \ud800 text"])
def test_documents_that_are_not_plain_json_come_back_too(tmp_path: Path, value: object) -> None:
    with reverie.open(tmp_path) as memory:
        ref = memory.ref("lines")
        ref.put_many(drafts({"value": value}, "a \ud800 line", kind="line"))
        ref.put_many(drafts({"value": 1}, "another", kind="line"))
        assert [document["value"] for _, document in documents(oldest_first(ref))] == [value, 1]


@pytest.mark.parametrize("before", range(9_960, 10_001, 8))
def test_a_secret_that_lies_on_the_cut_of_a_large_document_is_not_stored(tmp_path: Path, before: int) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    with reverie.open(tmp_path) as memory:
        ref = memory.ref("lines")
        ref.put_many(drafts({"log": "x" * before + "=" + secret + "=" + "y" * 40_000}, "a line", kind="line"))
        ((_, document),) = documents(oldest_first(ref))
    assert "[REDACTED:" in document["log"]
    assert secret[:20] not in document["log"]
    assert secret[-20:] not in document["log"]


def test_a_framework_that_is_missing_or_too_old_is_named_with_the_version_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(MissingExtra, match=r"needs no-such-framework 9\.1 or newer: pip install 'reverie\[x\]'"):
        require_release("no-such-framework", "9.1", extra="x", purpose="It")
    monkeypatch.setattr(metadata, "version", lambda _: "1.9.9")
    with pytest.raises(MissingExtra, match=r"2\.66 or newer, and 1\.9\.9 is installed"):
        require_release("pydantic-ai-slim", "2.66", extra="x", purpose="It")
    assert require_release("anything", "1.9", extra="x", purpose="It") == "1.9.9"


@pytest.mark.parametrize("name", ["adk", "agent_framework"])
def test_adapters_of_frameworks_that_are_not_installed_say_so(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(distribution: str) -> str:
        raise metadata.PackageNotFoundError(distribution)

    monkeypatch.setattr(metadata, "version", missing)
    with pytest.raises(MissingExtra, match="pip install 'reverie"):
        importlib.import_module(f"reverie.integrations.{name}")


def test_the_package_imports_no_framework() -> None:
    import subprocess
    import sys

    code = "import sys, reverie.integrations; print([m for m in ('langgraph', 'pydantic_ai') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
