"""Every operation of the OpenAPI document, asked over a real socket, answers what the document says: no more, no less."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from tests.acceptance.test_server import PATIENCE, Child
from tests.postgres import shared_server
from tests.walk import Walker, walk
from tools.record_examples import differences, record

from reverie.http.openapi import EXAMPLES

SWITCHES = {
    "OPENWOP_TEST_SEAM_ENABLED": "true",
    "OPENWOP_MEMORY_COMPACTION": "true",
    "OPENWOP_TEST_TRIGGER_COMPACTION": "true",
    "REVERIE_AKASHIK_TEST_FAULTS": "true",
}


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def walker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walker]:
    arguments: list[str] = []
    if request.param == "postgres":
        arguments = ["--database-url", shared_server(tmp_path_factory).make_database()]
    child = Child(tmp_path_factory.mktemp("data"), *arguments, **SWITCHES)
    made = Walker(child.url, child.key or "", patience=PATIENCE)
    yield made
    made.close()
    child.kill()


def test_every_operation_answers_as_it_is_described(walker: Walker) -> None:
    walk(walker)


def test_the_examples_of_the_document_are_what_a_host_is_sent_and_answers() -> None:
    kept = json.loads(EXAMPLES.read_text(encoding="utf-8"))
    assert list(differences(kept, record())) == []
