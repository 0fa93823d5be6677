"""put, get, list, search, context, entry ...: in and out again."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

Cli = Any


def test_what_is_put_is_got(cli: Cli) -> None:
    receipt = cli(
        "put", "The customer prefers e-mail.", "-t", "preference", "-s", "customer-7", "-a", "rank:=3", "-a", "by=phone"
    )
    assert receipt.code == 0
    assert receipt.out.startswith("stored ")
    listed = cli("list", "--json").json
    assert listed["cursor"] is None
    [entry] = listed["items"]
    assert entry["content"] == "The customer prefers e-mail."
    assert entry["tags"] == ["preference"]
    assert entry["subject"] == "customer-7"
    assert entry["attributes"] == {"rank": 3, "by": "phone"}
    assert entry["source"]["actor"] == "local:cli"
    shown = cli("get", entry["id"])
    assert "The customer prefers e-mail." in shown.out
    assert cli("get", entry["id"], "--json").json == entry


def test_text_from_stdin_loses_its_last_line_end_only(cli: Cli) -> None:
    entry_id = cli("put", "--json", stdin="first\n\nsecond\n").json["id"]
    assert cli("get", entry_id, "--json").json["content"] == "first\n\nsecond"
    entry_id = cli("put", "-", "--json", stdin="from a dash").json["id"]
    assert cli("get", entry_id, "--json").json["content"] == "from a dash"


def test_a_retry_with_the_same_key_stores_nothing_twice(cli: Cli) -> None:
    first = cli("put", "once", "--idempotency-key", "k1", "--json").json
    again = cli("put", "once", "--idempotency-key", "k1", "--json").json
    assert (again["id"], again["replayed"]) == (first["id"], True)
    cli("put", "twice", "--idempotency-key", "k1").failed("idempotency_key_reused")
    assert len(cli("list", "--json").json["items"]) == 1


def test_many_lines(cli: Cli) -> None:
    lines = "\n".join([json.dumps("plain text"), json.dumps({"content": "with a tag", "tags": ["x"]}), ""])
    done = cli("put", "--many", "--ref", "bulk", "--tag", "all", "--json", stdin=lines)
    assert done.json == {"stored": 2, "ref": "bulk", "findings": {}}
    assert cli("refs", "--json").json == {"items": [{"ref": "bulk", "entries": 2}]}
    items = cli("list", "--ref", "bulk", "--json").json["items"]
    assert sorted(item["tags"] for item in items) == [["all"], ["x"]]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("not json\n", "Line 1 is not JSON"),
        ('"fine"\n[1]\n', "Line 2 is neither"),
        ('{"content": "x", "colour": 1}\n', "Line 1: Unknown field: colour"),
        ('{"content": 7}\n', "Line 1: content is text"),
        ('{"content": "x", "subject": 5}\n', "subject is text"),
        ('{"content": "x", "attributes": [1]}\n', "Line 1"),
        ("[" * 100_000 + "\n", "Line 1 is not JSON"),
        ("", "nothing to store"),
    ],
)
def test_a_bad_line_is_named(cli: Cli, lines: str, words: str) -> None:
    cli("put", "--many", stdin=lines).failed(words)


def test_list_filters_and_pages(cli: Cli) -> None:
    lines = "\n".join(
        json.dumps({"content": f"entry {n}", "tags": ["even" if n % 2 == 0 else "odd"]}) for n in range(7)
    )
    cli("put", "--many", stdin=lines)
    assert len(cli("list", "--tag", "even", "--json").json["items"]) == 4
    page = cli("list", "--limit", "5", "--json").json
    rest = cli("list", "--limit", "5", "--cursor", page["cursor"], "--json").json
    assert len({item["id"] for item in page["items"] + rest["items"]}) == 7
    assert len(cli("list", "--all", "--json").json["items"]) == 7
    assert "There is more" in cli("list", "--limit", "2").err
    assert cli("list", "--since", "1h", "--json").json["items"] != []
    assert cli("list", "--until", "1h", "--json").json["items"] == []
    assert cli("list", "--since", "yesterday", "--until", "today", "--json").json["items"] != []
    assert cli("list", "--until", "letzte Woche", "--json").json["items"] == []
    cli("list", "--since", "some day").failed("--since: This cannot be read as a time")


def test_search_and_context(cli: Cli) -> None:
    cli("put", "--many", stdin='"The customer prefers e-mail."\n"The invoice is due in March."\n')
    table = cli("search", "how to reach the customer", "--explain")
    assert "The customer prefers e-mail." in table.out.splitlines()[1]
    assert "words looked for: reach, custom" in table.out
    found = cli("search", "customer", "--explain", "--json").json
    assert found["hits"][0]["entry"]["content"] == "The customer prefers e-mail."
    assert found["explanation"]["hits"][0]["rank"] == 1
    assert found["degraded"] == []
    packed = cli("context", "write to the customer", "--budget", "300")
    assert "prefers e-mail" in packed.out
    assert "tokens" in packed.err
    assert cli("context", "write to the customer", "--budget", "300", "--json").json["tokens"] <= 300


def test_the_life_of_an_entry(cli: Cli) -> None:
    entry_id = cli("put", "to be changed", "--json").json["id"]
    assert cli("entry", "pin", entry_id, "--json").json["pinned"] is True
    cli("entry", "unpin", entry_id, "--expected", "1").failed("version")
    assert cli("entry", "unpin", entry_id, "--expected", "2", "--json").json["pinned"] is False
    assert cli("entry", "archive", entry_id).out.startswith("archived ")
    cli("get", entry_id).failed("not_found")
    assert [item["id"] for item in cli("list", "--archived", "--json").json["items"]] == [entry_id]
    cli("entry", "restore", entry_id)
    cli("entry", "hold", entry_id)
    cli("entry", "erase", entry_id, "--yes").failed("held")
    cli("entry", "release", entry_id)
    cli("entry", "erase", entry_id).failed("--yes")
    assert cli("entry", "erase", entry_id, "--yes", "--json").json["bytes"] == len("to be changed")
    cli("entry", "restore", entry_id).failed("not_found")
    assert cli("entry", "links", entry_id, "--json").json == {"items": []}


def test_tenants_do_not_see_each_other(cli: Cli) -> None:
    entry_id = cli("put", "ours", "--tenant", "acme", "--json").json["id"]
    cli("get", entry_id, "--tenant", "globex").failed("not_found")
    cli("list", "--tenant", "globex", "--json").failed("no tenant named globex")
    cli("put", "theirs", "--tenant", "globex")
    cli("get", entry_id, "--tenant", "globex").failed("not_found")
    assert [item["content"] for item in cli("list", "--tenant", "globex", "--json").json["items"]] == ["theirs"]


def test_stats(cli: Cli) -> None:
    cli("put", "one")
    assert cli("stats", "--json").json["entries"] == 1
    assert "entries" in cli("stats").out


def test_export_import(cli: Cli, tmp_path: Any) -> None:
    cli("put", "--many", stdin='"one"\n"two"\n')
    bundle = tmp_path / "bundle.jsonl"
    assert cli("export", "-o", str(bundle), "--json").json["lines"] == 6
    cli("export", "-o", str(bundle)).failed("exists already")
    assert cli("export").raw.splitlines()[1:3] == bundle.read_bytes().splitlines()[1:3]
    assert cli("import", str(bundle), "--check").out.startswith("sound: 2 entries")
    done = cli("import", str(bundle), "--tenant", "other", "--json").json
    assert (done["entries"], done["skipped"]) == (2, 0)
    again = cli("import", "-", "--tenant", "other", "--json", stdin=bundle.read_bytes()).json
    assert (again["entries"], again["skipped"]) == (0, 2)
    damaged = bundle.read_bytes().replace(b"two", b"TWO")
    cli("import", "-", "--tenant", "third", stdin=damaged).failed("SHA-256")
    cli("import", "-", "--tenant", "third", stdin=b"".join(damaged.splitlines(True)[:-1])).failed("cut short")
    cli("list", "--tenant", "third", "--json").failed("no tenant named third")
    assert not list(tmp_path.glob(".*partial"))


@pytest.mark.parametrize("change", ["delete", "retract", "archive"])
def test_an_entry_as_of_then_has_the_state_it_had_then(cli: Cli, change: str) -> None:
    entry_id = cli("put", "The first plan.", "--json").json["id"]
    cli("entry", change, entry_id)
    then = cli("get", entry_id, "--as-of", "1", "--json").json
    assert (then["state"], then["archived"], then["content"]) == ("active", False, "The first plan.")
    [listed] = cli("list", "--as-of", "1", "--json").json["items"]
    assert listed == then
    cli("get", entry_id, "--as-of", "2").failed("not_found")


def test_as_of_takes_times(cli: Cli) -> None:
    entry_id = cli("put", "Here today.", "--json").json["id"]
    assert cli("get", entry_id, "--as-of", "today", "--json").json["id"] == entry_id
    assert cli("list", "--as-of", "yesterday", "--json").json["items"] == []
    cli("get", entry_id, "--as-of", "2d").failed("not_found")
    assert "cannot be read as a time" in cli("list", "--as-of", "soon").failed("validation_error").err


@pytest.mark.parametrize("words", ["next monday", "on monday", "Monday"])
def test_an_expiry_may_be_a_day_of_the_week(cli: Cli, words: str) -> None:
    entry_id = cli("put", "Until then.", "--expires", words, "--json").json["id"]
    expires = datetime.fromisoformat(cli("get", entry_id, "--json").json["expires_at"])
    assert expires.astimezone().weekday() == 0
    assert timedelta(0) < expires - datetime.now(UTC) <= timedelta(days=7)


@pytest.mark.parametrize("option", ["--kind", "--subject", "--tag"])
def test_an_empty_option_is_refused(cli: Cli, option: str) -> None:
    assert "empty" in cli("put", "x", option, " ").failed("validation_error").err


def test_a_new_tenant_is_announced(cli: Cli) -> None:
    assert "acme is a new tenant" in cli("put", "x", "--tenant", "acme").err
    assert "new tenant" not in cli("put", "y", "--tenant", "acme").err


def test_a_missing_entry_names_its_memory_and_the_next_step(cli: Cli) -> None:
    cli("put", "x", "--ref", "notes")
    message = cli("get", "01K9ZJ4V7B3M8Q2X5N6R1T0WAC", "--ref", "notes").failed("not_found").err
    assert "in the memory notes" in message
    assert "reverie list" in message


def test_a_long_hit_begins_with_the_sentence_that_answers(cli: Cli) -> None:
    cli("put", f"The kitchen. {'The fitter measures the room. ' * 4}The oven is picked up by the council. No rush.")
    assert "… The oven is picked up by the council." in cli("search", "who picks up the oven?").out
