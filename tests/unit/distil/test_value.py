"""The value of statements."""

from __future__ import annotations

import pytest

from reverie.distil.value import MUST_KEEP, model


@pytest.mark.parametrize(
    "text",
    [
        "My son is allergic to eggs.",
        "Never edit the generated files.",
        "I would rather get a text message than a call.",
        "The passport expires in September.",
        "We decided to keep the old supplier because of the price.",
        "Remember to call the insurance company.",
    ],
)
def test_what_matters_must_be_kept(text: str) -> None:
    verdict = model().judge([text])[0]
    assert verdict.must_keep
    assert not verdict.chatter


@pytest.mark.parametrize(
    "text", ["Good morning!", "Thanks, that helps a lot.", "Haha, so true.", "Sounds great to me!"]
)
def test_chatter_is_chatter(text: str) -> None:
    verdict = model().judge([text])[0]
    assert verdict.chatter
    assert not verdict.must_keep


def test_verdicts_do_not_depend_on_the_company() -> None:
    texts = ["Good morning!", "My son is allergic to eggs.", "", "日本語のメモ", "x" * 5000]
    together = model().judge(texts)
    assert [model().judge([text])[0] for text in texts] == together
    assert together[1].kind in MUST_KEEP
