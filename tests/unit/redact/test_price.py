"""What hostile text costs, counted in calls and verdicts: in proportion to its length, and bounded per byte."""

from __future__ import annotations

import base64
import gc
import json
import re
import sys
import time
from collections.abc import Iterator
from functools import cache
from itertools import chain, repeat
from pathlib import Path
from random import Random
from types import FrameType, SimpleNamespace
from typing import Any

import pytest
from bench.redact_hostile import crossed, hostile

import reverie.redact
from reverie.core.pause import PAUSE, Pauses
from reverie.redact import RULES, Redactor
from reverie.redact.automata import Automata
from reverie.redact.filter import PatternFilter
from reverie.redact.markers import Presence, Spans
from reverie.redact.meter import LEAST_STEPS, STEPS_PER_KILOBYTE, Meter
from reverie.redact.rules import names
from reverie.redact.rules.assignment import generic
from reverie.redact.rules.rule import Rule
from reverie.redact.rules.sample import fill
from reverie.redact.rules.values import judge

FOLDER = Path(reverie.redact.__file__).parent
REDACTOR = Redactor()
SIZE = 8_000
SHAPES = [name for name, _ in hostile(100)]
texts = cache(lambda size: dict(hostile(size)))
MOST_CALLS = 30
"""Per byte, of Python and of C functions together. Prose causes a hundredth of one; words not seen before a few more."""
MOST_VERDICTS = 160
"""Per kilobyte: how often a rule is asked whether what its pattern found is a secret."""


def work(text: str, monkeypatch: pytest.MonkeyPatch, credit: int) -> tuple[int, int]:
    """Calls and verdicts that redacting `text` takes with this credit of the automata, which no clock lowers."""
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
        patched.setattr("reverie.redact.automata.time", SimpleNamespace(thread_time_ns=lambda: 0))
        patched.setattr(REDACTOR._filter._automata, "_credit", credit)
        gc.disable()  # a collection would call finalizers of what earlier tests left
        sys.setprofile(seen)
        try:
            REDACTOR.text(text)
        finally:
            sys.setprofile(None)
            gc.enable()
    return calls, verdicts


@pytest.mark.parametrize("credit", [10**12, -(10**12)], ids=["by automata", "by strings"])
@pytest.mark.parametrize("name", SHAPES)
def test_the_work_is_bounded_and_grows_as_the_text_does(
    name: str, credit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    short, long = texts(SIZE)[name], texts(2 * SIZE)[name]
    REDACTOR.text(long)  # patterns are compiled at their first use
    small, verdicts = work(short, monkeypatch, credit)
    assert small <= MOST_CALLS * len(short)
    assert verdicts <= MOST_VERDICTS * len(short) // 1024
    large, verdicts = work(long, monkeypatch, credit)
    assert large <= 3 * small + 3 * len(long)  # a find by chance makes a second pass
    assert verdicts <= MOST_VERDICTS * len(long) // 1024


@cache
def dense(size: int = 48_000) -> dict[str, str]:
    """Texts in which every rule has something to look at."""
    every = {name: text for name, text in hostile(size) if name.startswith(("every example", "every near miss"))}
    return dict(crossed(size)) | every


@pytest.mark.parametrize("name", dense(100))
def test_a_text_of_every_rule_takes_the_steps_it_is_worth_and_stays_as_it_is_then(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps are taken before they are made, so the last place of each pass may go beyond."""
    steps = 0
    work = Meter.work

    def counted(meter: Meter, taken: int, *, generic: bool = False) -> bool:
        nonlocal steps
        steps += 0 if meter.spent else taken
        return work(meter, taken, generic=generic)

    with monkeypatch.context() as patched:
        patched.setattr(Meter, "work", counted)
        redacted = REDACTOR.text(dense()[name]).text
    allowed = LEAST_STEPS + len(dense()[name].encode()) * STEPS_PER_KILOBYTE // 1024
    assert steps <= 2.5 * allowed
    assert REDACTOR.text(redacted).text == redacted


@pytest.mark.parametrize("end", [" ", "\n"])
def test_what_is_not_judged_in_a_text_of_every_rule_is_taken_out(end: str) -> None:
    """Each value that goes from an example by itself goes from a text too full of them to judge them one by one."""
    examples = [fill(example, seed) for seed in range(5) for rule in RULES for example in rule.examples[:1]]
    values: set[str] = set()
    for example in examples:
        redacted = REDACTOR.text(example).text
        values |= {word for word in re.findall(r"[A-Za-z0-9]{12,}", example) if word not in redacted}
    assert len(values) > 1_000
    text = REDACTOR.text(end.join(examples)).text
    assert not [value for value in values if value in text]


@cache
def ordinary() -> dict[str, str]:
    """Texts of every day that are full of words for secrets, names and numbers."""
    r = Random(5)
    names = ["Ada Stone", "Bob Lake", "Eve Moss"]
    log = (
        f"2031-05-0{i % 9 + 1} 12:10:{i % 50 + 10} INFO [{r.getrandbits(64):016x}] auth.service: login user=ada"
        f" session={r.getrandbits(32):08x} token validated in {i % 99} ms from 10.0.7.{i % 255}\n"
        for i in range(2_000)
    )
    records = [
        {
            "id": f"{r.getrandbits(128):032x}",
            "user": {"name": r.choice(names), "session_id": str(r.getrandbits(60))},
            "tokens": r.randrange(4_000),
            "prompt_tokens": r.randrange(999),
            "text": "We met again on Monday and talked at length about the harbour, the boats and the key to the shed.",
            "url": f"https://example.org/a/{r.randrange(10**6)}?page=2&key=name",
        }
        for _ in range(600)
    ]
    rows = (
        f"{i},{r.choice(names)},ada{i}@example.org,ORD-{r.randrange(10**8):08},{i % 97}.50\n" for i in range(10_000)
    )
    services = (
        f"service_{i}:\n  host: svc{i}.internal\n  port: {8000 + i}\n  password: ${{SVC_{i}_PASSWORD}}\n"
        f"  api_key_ref: vault/svc{i}/key\n  timeout: 30s\n"
        for i in range(500)
    )
    variables = (f"SERVICE_{i}_URL=https://svc{i}.example.org\nSERVICE_{i}_TOKEN=changeme\n" for i in range(900))
    source = "".join(path.read_text("utf-8") for path in sorted(FOLDER.parent.joinpath("store").rglob("*.py")))
    return {
        "a log of logins": "".join(log),
        "a log of logins as JSON": json.dumps([{"role": "tool", "content": json.dumps(one)} for one in records]),
        "records on one line": json.dumps(records),
        "records on many lines": json.dumps(records, indent=2),
        "rows of CSV": "id,name,mail,order,key\n" + "".join(rows),
        "source code": source[:250_000],
        "a configuration with placeholders": "".join(services),
        "an environment file with placeholders": "".join(variables),
    }


@pytest.mark.parametrize(
    "name",
    [
        "a log of logins",
        "a log of logins as JSON",
        "records on one line",
        "records on many lines",
        "rows of CSV",
        "source code",
        "a configuration with placeholders",
        "an environment file with placeholders",
    ],
)
def test_a_text_of_every_day_stays_within_its_steps(name: str) -> None:
    assert REDACTOR.text(ordinary()[name]).findings == {}


LABELS = (
    "Passwort", "Mot de passe", "Jeton expiré", "API-Schlüssel", "Zugangsschlüssel", "Código de acceso", "Senha", "Пароль",
    "パスワード", "密码", "Neues Passwort eingeben", "Clé secrète", "Kennwort vergessen?", "Κωδικός πρόσβασης", "Şifre",
)  # fmt: skip


def test_a_long_text_of_translations_keeps_its_lines() -> None:
    """Pairs that are refused use up the steps: what was not judged again after a find went with the lines around it."""
    r = Random(4)
    keys = ("password", "password_label", "new_password", "token", "api_key", "secret", "passphrase", "forgot_password")
    lines = [f'  "{r.choice(keys)}": "{r.choice(LABELS)}",' for _ in range(2_800)]
    found = [fill('  "token": "⟨w32⟩",', seed) for seed in range(60)]
    text = "\n".join(line for n, pair in enumerate(lines) for line in [pair, *found[n // 40 : n // 40 + (n % 40 == 0)]])
    redacted = REDACTOR.text(text).text
    assert len(text.encode()) > 95_000
    assert not [line for line in found if line in redacted]
    assert [line for line in redacted.split("\n") if "[REDACTED:" not in line] == lines


def test_every_row_of_a_long_table_is_read() -> None:
    rows = [fill("Ada Lake,ada@example.org,⟨w12⟩,member", seed) for seed in range(6_000)]
    redacted = REDACTOR.text("user,mail,password,role\n" + "\n".join(rows)).text
    assert redacted.count("Ada Lake,ada@example.org,[REDACTED:table-secret],member") > 5_980


def test_a_dense_beginning_does_not_stop_the_rules_for_what_follows() -> None:
    """A table behind a part that took more than it was worth is read as a table."""
    dense = "".join(fill("| token | ⟨w24⟩ | secret |\n", seed) for seed in range(4_000))
    prose = "We met again on Monday and talked at length about the harbour.\n" * 2_000
    table = "\n| disk | passphrase |\n|---|---|\n| nas | harbor river copper jungle |\n"
    redacted = REDACTOR.text(dense + prose + table).text
    assert "river copper" not in redacted
    assert redacted.count("about the harbour") == 2_000


def test_text_full_of_words_for_secrets_loses_its_secrets_and_keeps_its_words() -> None:
    """Past the allowance each word is judged by itself: values go, words and identifiers stay."""
    text = "".join(fill("token: ⟨w24⟩ the key is kettle\n", seed) for seed in range(3_000))
    redacted = REDACTOR.text(text).text
    assert redacted.count("[REDACTED:") == 3_000
    assert redacted.count("the key is kettle") == 3_000
    assert REDACTOR.text(redacted).text == redacted


def test_a_text_made_of_finds_gets_few_markers_and_is_stable() -> None:
    """With a secret in every few words, what is between them goes too: the text must not grow with its markers."""
    values = [fill("⟨w24⟩", seed) for seed in range(4_000)]
    redacted = REDACTOR.text(" ".join(f"token: {value}" for value in values)).text
    assert not any(value[:10] in redacted for value in values)
    assert redacted.count("[REDACTED:") < 10
    assert REDACTOR.text(redacted).text == redacted


def test_the_same_finds_among_words_get_a_marker_each() -> None:
    text = "".join(fill("We met again on Monday and talked at length. token: ⟨w24⟩\n", seed) for seed in range(1_000))
    redacted = REDACTOR.text(text).text
    assert redacted.count("[REDACTED:") == 1_000
    assert redacted.count("talked at length. token: ") == 1_000


@pytest.mark.parametrize(
    "unit",
    [base64.b64encode(b"the valve is closed").decode() + "\n", "caf&eacute; %20\n", "\\\\n a\n"],
    ids=["base64", "entities", "escapes"],
)
def test_copies_of_many_lines_are_looked_at_together(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0
    match = PatternFilter.match

    def counted(*arguments: Any, **named: Any) -> Any:
        nonlocal looks
        looks += 1
        return match(*arguments, **named)

    monkeypatch.setattr(PatternFilter, "match", counted)
    REDACTOR.text(unit * 500)
    assert looks < 12


def read(text: str, monkeypatch: pytest.MonkeyPatch) -> float:
    """How many bytes the patterns of rules and triggers were searched for in, per byte of `text`."""
    total = 0
    after, within = Spans.after, Presence.within

    def counted_after(pattern: Spans, data: bytes, position: int, end: int | None = None) -> Any:
        nonlocal total
        found = after(pattern, data, position, end)
        total += (found[0][1] if found else len(data) if end is None else end) - position
        return found

    def counted_within(pattern: Presence, data: bytes, start: int, end: int) -> bool:
        nonlocal total
        total += end - start
        return within(pattern, data, start, end)

    with monkeypatch.context() as patched:
        patched.setattr(Spans, "after", counted_after)
        patched.setattr(Presence, "within", counted_within)
        REDACTOR.text(text)
    return total / len(text.encode())


def test_a_rule_is_searched_for_where_its_trigger_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line of every kind of secret in a long text of plain lines costs those lines, not the text once a rule."""
    plain = "the harbour was quiet and the boats lay still\n" * 40
    templates = [rule.examples[0] for rule in RULES if rule.examples and not rule.locate]
    text = "".join(plain + fill(template) + "\n" for template in templates[::3])
    assert read(text, monkeypatch) < 60


@pytest.mark.parametrize("blank", [" ", "\n"])
def test_noise_is_read_a_few_times_whatever_its_length(blank: str, monkeypatch: pytest.MonkeyPatch) -> None:
    noise = texts(60_000)["noise"].replace("~", blank)
    assert read(noise, monkeypatch) < 200


def test_what_was_read_in_part_is_not_taken_for_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """The price of a text is judged by pieces of it: never the same ones twice, for those are known by then."""
    patterns = Automata([[(0, rb"token \w+"), (1, b"secret=")]])
    seen: list[bytes] = []
    search = patterns.search

    def watched(data: bytes) -> list[int]:
        seen.append(data)
        return search(data)

    monkeypatch.setattr(patterns, "search", watched)
    text = "".join(f"{n:07}\n" for n in range(16_384)).encode()
    for _ in range(8):
        assert patterns.match(text) == []
    pieces = [data for data in seen if len(data) < len(text)]
    assert len(pieces) == 16
    assert len(set(pieces)) == 16


def _priced(monkeypatch: pytest.MonkeyPatch, costs: Iterator[int]) -> Automata:
    """Automata whose searches take these nanoseconds."""
    now, started = 0, False

    def clock() -> int:
        nonlocal now, started
        started = not started
        now += 0 if started else next(costs)
        return now

    monkeypatch.setattr("reverie.redact.automata.time", SimpleNamespace(thread_time_ns=clock))
    return Automata([[(0, rb"token \w+")]])


def test_the_first_texts_of_a_process_do_not_send_the_next_ones_the_slow_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """New automata learn from a few hundred ordinary notes, at half a millisecond each."""
    patterns = _priced(monkeypatch, chain(repeat(500_000, 200), repeat(10_000)))
    assert all(patterns.match(b"The ferry leaves at nine.") == [] for _ in range(2000))


def test_the_fast_way_comes_back_when_noise_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    patterns = _priced(monkeypatch, chain(repeat(5_000_000, 41), repeat(10_000)))
    ways = [patterns.match(b"The ferry leaves at nine.") for _ in range(2000)]
    assert None in ways
    assert ways[-1500:] == [[]] * 1500


def test_noise_spends_no_more_than_the_credit(monkeypatch: pytest.MonkeyPatch) -> None:
    patterns = _priced(monkeypatch, repeat(5_000_000))
    ways = [patterns.match(b"qX7 Zk0 vB3") for _ in range(20_000)]
    assert sum(way is not None for way in ways) < 41 + 20_000 // 200


def test_short_texts_on_a_busy_machine_do_not_use_up_the_credit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A short text takes longer when other work has emptied the processor's cache. That is no sign of noise."""
    clock = iter(range(0, 10**12, 60_000))
    monkeypatch.setattr("reverie.redact.automata.time", SimpleNamespace(thread_time_ns=lambda: next(clock)))
    patterns = Automata([[(0, rb"token \w+")]])
    assert all(patterns.match(b"The ferry leaves at nine.") == [] for _ in range(2000))


def test_of_a_long_name_only_the_end_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long run of percent signs was taken for a name of 256 characters and searched by eight patterns, 90 us each."""
    sizes: list[int] = []
    strength = names._strength

    def watched(key: str) -> str:
        sizes.append(len(key))
        return strength(key)

    monkeypatch.setattr(names, "_strength", watched)
    REDACTOR.text(next(text for name, text in hostile(40_000) if name.startswith("found by chance '%20")))
    assert 48 < max(sizes) <= 96
    assert names.key_strength("a_" * 300 + "password") == "password"


def test_values_that_are_judged_in_vain_use_up_the_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many pairs that turn out to be no secrets: asking every question about each took more than the text is worth."""
    asked = 0

    def counted(*arguments: Any, **named: Any) -> bool:
        nonlocal asked
        asked += 1
        return judge(*arguments, **named)

    monkeypatch.setattr(generic, "judge", counted)
    text = texts(96_000)["pairs on one line"]
    REDACTOR.text(text)
    assert 0 < asked < 14 * len(text) // 1024


def test_a_long_line_is_searched_in_parts_with_pauses_between_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """While the automata read, no other thread computes: 5 MB at one go kept every tenant waiting for 140 ms."""
    sizes: list[int] = []
    match = Automata.match

    def watched(automata: Automata, data: bytes) -> list[int] | None:
        sizes.append(len(data))
        return match(automata, data)

    monkeypatch.setattr(Automata, "match", watched)
    pauses: list[None] = []
    token = PAUSE.set(Pauses(lambda: pauses.append(None)))
    try:
        REDACTOR.many(["the pump was checked, and the valve is closed; " * 20_000])
    finally:
        PAUSE.reset(token)
    assert max(sizes) < 80_000
    assert len(pauses) >= len(sizes) - 1 > 10


WORDS = "We met again on Monday and talked at length about the harbour and the boats. "
LONG_LINES = {
    "literals with a remark each": lambda size: f'"abcdefg1234hij" // token" {WORDS}' * (size // 104),
    "assignments behind a long word": lambda size: "a" * (size // 2) + f" password=xk7!abQ9zz<{WORDS}" * (size // 200),
    "headers of keys in a comment": lambda size: "-----BEGIN PRIVATE KEY----- Comment:" * (size // 36),
    "items of a list that is never closed": lambda size: f"<dt>x</dt><dd><tr></tr>{WORDS}" * (size // 101),
}


@pytest.mark.parametrize("name", LONG_LINES)
def test_a_long_line_is_not_read_again_for_every_candidate(name: str) -> None:
    """A line of 500 KB took over a minute: what follows each candidate on its line was searched up to the end."""

    def cost(size: int) -> float:
        text = LONG_LINES[name](size)
        began = time.thread_time()
        REDACTOR.text(text)
        return time.thread_time() - began

    cost(4_000)  # patterns are compiled at their first use
    small = max(cost(32_000), 0.002)
    assert cost(512_000) < 80 * small


def test_keys_that_become_equal_are_numbered_without_counting_from_one_each_time() -> None:
    """An object of 8,000 keys that are tokens took three seconds, most of them for numbers that were taken."""
    secrets = {fill("AKIA⟨A16⟩", seed): seed for seed in range(400)}
    steps = 0

    def watched(frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal steps
        steps += event == "line"
        return watched if frame.f_code is Redactor._fresh.__code__ else None

    sys.settrace(watched)
    try:
        redacted, _ = REDACTOR.value(secrets)
    finally:
        sys.settrace(None)
    assert isinstance(redacted, dict)
    assert list(redacted)[-1].endswith("(400)")
    assert 0 < steps < 20 * len(secrets)
