"""The documented API under fuzzing: no fault of the host, and no answer the document does not name.

Schemathesis is loaded and works out what to try inside the test: at collection every test process would pay for it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from reverie.app import build_app, build_host
from reverie.core.actor import Actor
from reverie.core.entry import Draft
from reverie.http.application import Application
from reverie.settings import Settings

if TYPE_CHECKING:
    import schemathesis

SOAK = bool(os.environ.get("REVERIE_SOAK"))
EXAMPLES = int(os.environ.get("REVERIE_FUZZ_EXAMPLES") or (1000 if SOAK else 6))
"""Examples of each operation. REVERIE_SOAK tries every operation of every protocol, with the test seams on, on each
store."""


@pytest.fixture(scope="module", params=["sqlite", "postgres"] if SOAK else ["sqlite"])
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Application, str]]:
    """An application on a database of its own, and a key that may do everything."""
    folder = str(tmp_path_factory.mktemp("fuzz"))
    url = request.getfixturevalue("postgres").make_database() if request.param == "postgres" else ""
    seams = dict.fromkeys(("openwop_seams", "openwop_compaction", "openwop_trigger_compaction", "akashik_faults"), SOAK)
    chosen = Settings.load({}, data=folder, database_url=url, rate_per_second=0, allowed_hosts="testserver", **seams)
    host = build_host(chosen)
    key = host.keys.create("fuzzed").key
    actor = Actor(tenant="fuzzed", id="fuzz")
    host.entries.put(actor, "notes", [Draft(content=f"Number {n} is about kites.", id=f"e{n}") for n in range(5)])
    yield build_app(chosen, host), key
    host.close()


@pytest.fixture(scope="module")
def documented(served: tuple[Application, str]) -> Any:
    """The schema. In the quick run the native API; the protocols' own suites look at the rest."""
    import schemathesis

    @schemathesis.serializer("application/x-ndjson")
    def _as_bundle(_: schemathesis.SerializationContext, value: Any) -> bytes:
        """What the document calls a string is sent as it is."""
        return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogateescape")

    schema = schemathesis.openapi.from_asgi("/v1/openapi.json", served[0])
    return schema if SOAK else schema.include(path_regex="^/v1/host/reverie/")


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=not SOAK,
    database=None,
    suppress_health_check=list(HealthCheck),
)
def check(case: schemathesis.Case, key: str) -> None:
    """No fault, and an answer that the document names."""
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

    response = case.call(headers={"Authorization": f"Bearer {key}"})
    assert response.status_code != 421, "the host name of these calls must be an allowed one"
    assert response.status_code < 500 or response.status_code == 501, (
        "501: an operation that this host does not provide"
    )
    case.validate_response(
        response,
        checks=[
            status_code_conformance,
            content_type_conformance,
            response_schema_conformance,
        ],
    )


@pytest.mark.parametrize("change", [False, True], ids=["questions", "changes"])
def test_no_input_gets_a_500_or_an_undocumented_answer(
    documented: Any,
    served: tuple[Application, str],
    subtests: pytest.Subtests,
    monkeypatch: pytest.MonkeyPatch,
    change: bool,
) -> None:
    from schemathesis.checks import load_all_checks
    from schemathesis.pytest.lazy import get_all_tests

    monkeypatch.setenv("NO_PROXY", "*")  # in-process calls go nowhere near a network
    load_all_checks()
    chosen = documented.exclude(method="GET" if change else ["POST", "PUT", "PATCH", "DELETE"])
    tried = 0
    for found in get_all_tests(schema=chosen, test_func=check, settings=None, given_kwargs=None):
        operation, attempt = found.ok()
        with subtests.test(operation.label):
            attempt(key=served[1])
        tried += 1
    assert tried > 15
