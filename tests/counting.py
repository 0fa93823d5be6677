"""A store that counts what is asked of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reverie.core.entry import Scope
from reverie.core.query import Page
from reverie.store.contract import Store


class Counted:
    """A store that counts transactions, calls of verbs and the rows they give."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.transactions = self.calls = self.rows = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def read(self, scope: Scope, body: Callable[[Any], Any]) -> Any:
        self.transactions += 1
        return self._store.read(scope, lambda tx: body(CountedTx(tx, self)))

    def write(self, scope: Scope, body: Callable[[Any], Any]) -> Any:
        self.transactions += 1
        return self._store.write(scope, lambda tx: body(CountedTx(tx, self)))


class CountedTx:
    def __init__(self, tx: Any, counted: Counted) -> None:
        object.__setattr__(self, "_tx", tx)
        object.__setattr__(self, "_counted", counted)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._tx, name, value)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._tx, name)
        if not callable(found) or name in ("head", "log_key"):
            return found

        def called(*given: Any, **named: Any) -> Any:
            answer = found(*given, **named)
            self._counted.calls += 1
            self._counted.rows += len(answer.items) if isinstance(answer, Page) else 1
            self._counted.rows += len(answer) - 1 if isinstance(answer, list | dict) else 0
            return answer

        return called
