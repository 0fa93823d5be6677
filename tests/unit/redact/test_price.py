"""What hostile text costs, counted in calls and verdicts: in proportion to its length, and bounded per byte."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from bench.redact_hostile import hostile

from reverie.redact import Redactor
from reverie.redact.filter import Filter
from reverie.redact.rules.rule import Rule
from reverie.redact.rules.sample import fill

REDACTOR = Redactor()
SIZE = 8_000
SMALL = dict(hostile(SIZE))
LARGE = dict(hostile(2 * SIZE))
MOST_CALLS = 30
"""Per byte, of Python and of C functions together. Prose causes a hundredth of one; words not seen before a few more."""
MOST_VERDICTS = 150
"""Per kilobyte: how often a rule is asked whether what its pattern found is a secret."""


def work(text: str, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """Calls and verdicts that redacting `text` takes."""
    calls = verdicts = 0
    judge = Rule.judge

    def judged(rule: Rule, *arguments: Any) -> Any:
        nonlocal verdicts
        verdicts += 1
        return judge(rule, *arguments)

    def seen(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    with monkeypatch.context() as patched:
        patched.setattr(Rule, "judge", judged)
        sys.setprofile(seen)
        try:
            REDACTOR.text(text)
        finally:
            sys.setprofile(None)
    return calls, verdicts


@pytest.mark.parametrize("name", SMALL)
def test_the_work_is_bounded_and_grows_as_the_text_does(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    REDACTOR.text(LARGE[name])  # patterns are compiled at their first use
    small, verdicts = work(SMALL[name], monkeypatch)
    assert small <= MOST_CALLS * len(SMALL[name])
    assert verdicts <= MOST_VERDICTS * len(SMALL[name]) // 1024
    large, verdicts = work(LARGE[name], monkeypatch)
    assert large <= 3 * small + 2 * len(LARGE[name])  # a find by chance makes a second pass
    assert verdicts <= MOST_VERDICTS * len(LARGE[name]) // 1024


def test_text_full_of_words_for_secrets_loses_its_secrets_and_keeps_its_words() -> None:
    """Past the allowance each word is judged by itself: values go, words and identifiers stay."""
    text = "".join(fill("token: ⟨w24⟩ the key is kettle\n", seed) for seed in range(3_000))
    redacted = REDACTOR.text(text).text
    assert redacted.count("[REDACTED:") == 3_000
    assert redacted.count("the key is kettle") == 3_000
    assert REDACTOR.text(redacted).text == redacted


def test_what_was_read_in_part_is_not_taken_for_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """The price of a text is judged by pieces of it: never the same ones twice, for those are known by then."""
    patterns = Filter([[(0, rb"token \w+"), (1, b"secret=")]])
    seen: list[bytes] = []
    search = patterns._search

    def watched(data: bytes) -> list[int]:
        seen.append(data)
        return search(data)

    monkeypatch.setattr(patterns, "_search", watched)
    text = "".join(f"{n:07}\n" for n in range(16_384)).encode()
    for _ in range(8):
        assert patterns.match(text) == []
    pieces = [data for data in seen if len(data) < len(text)]
    assert len(pieces) == 16
    assert len(set(pieces)) == 16
