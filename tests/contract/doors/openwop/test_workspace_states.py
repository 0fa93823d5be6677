"""Workspace files against a model of them: any order of writes, deletes and conditions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from tests.contract.doors.openwop.test_workspace import FILES, put, url

PATHS = st.sampled_from(["a.md", "a/b.md", "A.md"])
TEXTS = st.sampled_from(["", "one", "two"])


def machine(server: Any) -> type[RuleBasedStateMachine]:
    """The states of one tenant's workspace."""

    class Files(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.caller = server.caller()
            self.versions: dict[str, int] = {}  # the count, which goes on across deletes
            self.there: dict[str, tuple[str, str]] = {}  # path: content and etag
            self.kept: dict[tuple[str, int], str] = {}

        @rule(path=PATHS, text=TEXTS)
        def write(self, path: str, text: str) -> None:
            self.stored(path, text, put(self.caller, path, text))

        @rule(path=PATHS, text=TEXTS, stale=st.booleans())
        def write_if(self, path: str, text: str, stale: bool) -> None:
            etag = '"v0"' if stale or path not in self.there else self.there[path][1]
            answer = put(self.caller, path, text, match=etag)
            if stale or path not in self.there:
                assert answer.status_code == 409
                current = self.versions[path] if path in self.there else 0
                assert answer.json()["details"]["currentVersion"] == current
            else:
                self.stored(path, text, answer)

        @rule(path=PATHS)
        def delete(self, path: str) -> None:
            answer = self.caller.delete(url(path))
            assert answer.status_code == (204 if path in self.there else 404)
            if self.there.pop(path, None):
                self.versions[path] += 1

        @rule(path=PATHS, version=st.integers(1, 8))
        def look_back(self, path: str, version: int) -> None:
            answer = self.caller.get(f"{url(path)}?version={version}")
            wanted = self.kept.get((path, version))
            assert answer.status_code == (404 if wanted is None else 200)
            if wanted is not None:
                assert (answer.json()["content"], answer.json()["version"]) == (wanted, version)

        def stored(self, path: str, text: str, answer: Any) -> None:
            assert answer.status_code == 200
            self.versions[path] = self.versions.get(path, 0) + 1
            file = answer.json()
            assert (file["path"], file["content"], file["version"]) == (path, text, self.versions[path])
            assert file["etag"] not in {etag for _, etag in [self.there.get(path, ("", ""))]}
            self.there[path] = (text, file["etag"])
            self.kept[(path, file["version"])] = text

        @invariant()
        def what_is_there_is_listed(self) -> None:
            listed = {file["path"]: file["version"] for file in self.caller.get(FILES).json()["files"]}
            assert listed == {path: self.versions[path] for path in self.there}

    return Files


@pytest.mark.usefixtures("server")
def test_files_follow_their_model(server: Any) -> None:
    run_state_machine_as_test(machine(server), settings=settings(max_examples=5, stateful_step_count=10, deadline=None))
