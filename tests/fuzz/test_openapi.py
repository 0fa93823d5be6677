"""The documented API under fuzzing: no fault of the host, and no answer the document does not name."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from reverie.app import build_app, build_host
from reverie.core.actor import Actor
from reverie.core.entry import Draft
from reverie.http.application import Application
from reverie.settings import Settings

EXAMPLES = 1000 if os.environ.get("REVERIE_SOAK") else 12


def make_app() -> tuple[Application, str]:
    """An application on a database of its own, and a key that may do everything."""
    folder = tempfile.mkdtemp(prefix="reverie-fuzz-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    chosen = Settings.load({}, data=folder, rate_per_second=0, allowed_hosts="testserver")
    host = build_host(chosen)
    key = host.keys.create("fuzzed").key
    actor = Actor(tenant="fuzzed", id="fuzz")
    host.entries.put(actor, "notes", [Draft(content=f"Number {n} is about kites.", id=f"e{n}") for n in range(5)])
    return build_app(chosen, host), key


@schemathesis.serializer("application/x-ndjson")
def _as_bundle(_: schemathesis.SerializationContext, value: Any) -> bytes:
    """What the document calls a string is sent as it is."""
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogateescape")


APP, KEY = make_app()
schema = schemathesis.openapi.from_asgi("/v1/openapi.json", APP)
# In the quick run the native API; the protocols' own suites look at the rest.
chosen = schema if os.environ.get("REVERIE_SOAK") else schema.include(path_regex="^/v1/host/reverie/")


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """In-process calls go nowhere near a network."""
    monkeypatch.setenv("NO_PROXY", "*")


@chosen.parametrize()
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=not os.environ.get("REVERIE_SOAK"),
    database=None,
    suppress_health_check=list(HealthCheck),
)
def test_no_input_gets_a_500_or_an_undocumented_answer(case: schemathesis.Case) -> None:
    response = case.call(headers={"Authorization": f"Bearer {KEY}"})
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
