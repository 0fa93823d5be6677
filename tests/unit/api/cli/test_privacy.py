"""redact, scan, secrets, forget, audit."""

from __future__ import annotations

import base64
import json
import random
from typing import Any

Cli = Any


def made_up_token() -> str:
    """Looks like a token of a source host; made at run time, so that no file holds one."""
    return "ghp_" + "".join(random.Random(7).choices("abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789", k=36))


def made_up_key() -> str:
    body = base64.b64encode(random.Random(7).randbytes(900)).decode()
    lines = "\n".join(body[at : at + 64] for at in range(0, len(body), 64))
    return f"-----BEGIN PRIVATE KEY-----\n{lines}\n-----END PRIVATE KEY-----\n"


def test_redact_is_a_filter_that_needs_no_database(cli: Cli, data: Any) -> None:
    done = cli("redact", "--summary", stdin=f"before\ntoken {made_up_token()} here\nafter\n")
    assert done.out == "before\ntoken [REDACTED:github-token] here\nafter\n"
    assert done.err == "github-token: 1\n"
    assert not data.exists()


def test_redact_says_so_to_scripts(cli: Cli) -> None:
    assert cli("redact", "--check", stdin="all is well\n").code == 0
    found = cli("redact", "--check", "--json", stdin=made_up_token())
    assert found.code == 1
    assert json.loads(found.err) == {"findings": {"github-token": 1}}


def test_redact_passes_what_is_not_text(cli: Cli) -> None:
    assert cli("redact", stdin=b"\xff\xfe\r\n\x00 \xe2\x82").raw == b"\xff\xfe\r\n\x00 \xe2\x82"


def test_what_is_stored_was_redacted(cli: Cli) -> None:
    done = cli("put", f"the token is {made_up_token()}")
    assert "redacted: github-token (1)" in done.err
    assert "[REDACTED:github-token]" in cli("list").out
    assert made_up_token() not in cli("export").out


def test_secrets_come_from_stdin_and_are_never_shown(cli: Cli, data: Any) -> None:
    cli("put", "the door code is swordfish-42, as always")
    assert cli("secrets", "add", "door", stdin="swordfish-42\n").code == 0
    cli("secrets", "add", "short", stdin="abc").failed("8 characters")
    assert cli("secrets", "list", "--json").json == {"items": [{"id": "door"}]}
    assert "[REDACTED:door]" in cli("get", cli("put", "again swordfish-42", "--json").json["id"]).out
    dry = cli("scan", "--dry-run", "--json").json
    assert (dry["affected"], dry["findings"]) == (1, {"known-secret": 1})
    assert "1 redacted" in cli("scan").out
    assert cli("scan", "--all-tenants", "--json").json["items"][0]["affected"] == 0
    assert b"swordfish" not in b"".join(path.read_bytes() for path in data.iterdir())
    assert cli("audit", "verify").code == 0
    assert cli("secrets", "remove", "door").code == 0
    cli("secrets", "remove", "door").failed("not_found")


def test_forget_counts_then_asks(cli: Cli, data: Any) -> None:
    cli("put", "Ana likes tea.", "--subject", "ana")
    cli("put", "Ana moved to Porto.", "--tag", "subject:ana", "--ref", "other")
    cli("put", "Ben likes coffee.", "--subject", "ben")
    assert "2 entries" in cli("forget", "ana", "--preview").out
    asked = cli("forget", "ana")
    assert asked.code == 1
    assert "2 entries" in asked.err
    assert "--yes" in asked.err
    done = cli("forget", "ana", "--yes", "--json").json
    assert (done["forgotten"], done["refs"]) == (2, 2)
    assert "none mentions it" in cli("forget", "ana", "--yes").out


def test_forget_says_who_mentions_the_words_and_takes_them_on_request(cli: Cli, data: Any) -> None:
    for text in ("Ana Lopez called.", "We wrote to ANA LOPEZ.", "Tirana is a city."):
        cli("put", text)
    for command in (("forget", "ana lopez", "--preview"), ("forget", "Ana Lopez", "--yes")):
        assert "2 entries mention the words" in cli(*command).out
    done = cli("forget", " Ana Lopez", "--mentions", "--yes", "--json").json
    assert (done["forgotten"], done["ways"]) == (2, {"mention": 2})
    assert "nothing to do" in cli("forget", "ana lopez", "--yes", "--switch-wal").err
    assert len(cli("list", "--json").json["items"]) == 1
    [certificate] = cli("audit", "export", "--type", "memory.forgotten").out.splitlines()
    assert json.loads(certificate)["seq"] == done["certificate"]
    assert "Ana" not in certificate
    assert len(cli("list", "--json").json["items"]) == 1
    assert cli("audit", "verify", "--json").json["ok"] is True


def test_audit_export_and_tail(cli: Cli) -> None:
    cli("put", "--many", stdin='"one"\n"two"\n"three"\n')
    events = [json.loads(line) for line in cli("audit", "export").out.splitlines()]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert cli("audit", "export", "--actor", "nobody").out == ""
    assert cli("audit", "export", "--until", "1h").out == ""
    assert len(cli("audit", "export", "--after", str(len(events) - 1)).out.splitlines()) == 1
    assert json.loads(cli("audit", "tail", "-n", "1", "--json").out)["seq"] == len(events)
    assert "memory.written" in cli("audit", "tail").out
    assert cli("audit", "tail", "-n", "0").out == ""


def test_tampering_is_found_and_named(cli: Cli, data: Any) -> None:
    import apsw

    cli("put", "the original text")
    db = apsw.Connection(str(data / "reverie.db"))
    db.execute("UPDATE entry SET content = 'another text'")
    db.close()
    verdict = cli("audit", "verify")
    assert verdict.code == 1
    assert "BROKEN" in verdict.out
    assert cli("audit", "verify", "--json").json["broken_at"] is not None
