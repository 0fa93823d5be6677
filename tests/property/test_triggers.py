"""The filter in front of the rules loses nothing: wherever a rule finds a secret, its trigger matches."""

from __future__ import annotations

import re
from itertools import chain

import pytest
from bench.redact_corpus import held_out_corpus, main_corpus
from bench.redact_fourth import fourth_corpus
from bench.redact_second import second_corpus
from bench.redact_third import third_corpus
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from tests.examples import examples

from reverie.redact import RULES, Redactor
from reverie.redact.known import encode
from reverie.redact.markers import compiled, spans
from reverie.redact.matches import matches
from reverie.redact.meter import Meter
from reverie.redact.rules.required import FOLDED, all_required, required
from reverie.redact.rules.rule import shortened
from reverie.redact.rules.sample import fill

# The net below the other rules asks for more than its pattern does: a random word of the usual mixture on the line.
NARROW = {"nearby-secret"}
WIDE = [rule for rule in RULES if rule.kind not in NARROW]


@pytest.fixture(scope="module")
def texts():
    """Every text of the corpora, and every example and near miss of every rule."""
    made = (main_corpus, held_out_corpus, second_corpus, third_corpus, fourth_corpus)
    corpora = (line.text for corpus in made for line in corpus())
    templates = (template for rule in RULES for template in rule.examples + rule.near_misses)
    filled = (fill(template, seed) for template in templates for seed in range(3))
    return sorted({encode(text) for text in chain(corpora, filled)})


@pytest.fixture(scope="module")
def lines(texts):
    return b"\n".join(sorted({line for text in texts for line in text.split(b"\n")})) + b"\n"


def found(rule, data):
    everywhere = [(0, len(data))]
    patterns = (spans(pattern.encode()) for pattern in rule.patterns)
    return (span for pattern in patterns for span in matches(rule, pattern, data, everywhere, Meter(1 << 40)))


@pytest.mark.parametrize("rule", [rule for rule in WIDE if not rule.locate], ids=lambda rule: rule.kind)
def test_trigger_matches_on_the_line_of_every_find(rule, lines):
    trigger = compiled(rule.trigger.encode())
    for start, end in found(rule, lines):
        line = lines[lines.rfind(b"\n", 0, start) + 1 : lines.index(b"\n", end) + 1]
        assert trigger.search(line), line


@pytest.mark.parametrize("rule", [rule for rule in WIDE if rule.locate], ids=lambda rule: rule.kind)
def test_trigger_matches_in_every_text_with_a_find(rule, texts):
    trigger = compiled(rule.trigger.encode())
    for text in texts:
        if any(start < end for start, end in rule.locate(text)):
            assert trigger.search(text), text


OWN = [rule for rule in WIDE if not rule.locate and rule.trigger != shortened(rule.pattern)]


@pytest.mark.parametrize("rule", OWN, ids=lambda rule: rule.kind)
def test_trigger_matches_whatever_the_pattern_allows(rule):
    trigger = compiled(rule.trigger.encode())
    pattern = re.compile(rule.pattern, re.ASCII)
    alphabet = st.characters(min_codepoint=9, max_codepoint=126) if rule.pattern.isascii() else None

    @examples(15, database=None, suppress_health_check=list(HealthCheck))
    @given(st.from_regex(pattern, alphabet=alphabet))
    def check(text):
        data = encode(text)
        if not trigger.search(data):
            assert not list(found(rule, data))

    check()


def test_both_ways_of_the_filter_give_the_same_answer(lines, monkeypatch):
    """By the automata of all triggers, and by the strings each trigger needs."""
    redactor = Redactor()
    blocks = [lines[i : i + 20_000] for i in range(0, len(lines), 20_000)]
    by_automata = [redactor._filter.match(block) for block in blocks]
    monkeypatch.setattr(redactor._filter._automata, "match", lambda _: None)
    assert [redactor._filter.match(block) for block in blocks] == by_automata
    assert any(by_automata)


def test_the_stored_strings_are_those_that_the_triggers_need():
    triggers = Redactor().triggers
    assert all_required(triggers) == [required(trigger) for trigger in triggers]
    assert sum(map(bool, all_required(triggers))) > 270


@pytest.mark.parametrize(
    ("pattern", "strings"),
    [
        (rb"(?i:token)[ :]+\w+", {b"token"}),
        (rb"\bgh[pos]_[A-Za-z0-9]{8}", {b"ghp_", b"gho_", b"ghs_"}),
        (rb"(?:pass|word)?key=", {b"key=", b"passkey=", b"wordkey="}),
        (rb"ab*cde", {b"cde"}),
        (rb"(?:secret|[0-9]{4})x", set()),
        (rb"[^a]{3}|token", set()),
        ("п(?i:ароль)".encode(), {"пароль".encode().translate(FOLDED)}),
    ],
)
def test_required_strings_of_a_pattern(pattern, strings):
    assert required(pattern) == strings
