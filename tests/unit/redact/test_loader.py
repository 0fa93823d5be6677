"""An operator's own rules: used when they are right, refused at start with the rule's name when they are not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import reverie
from reverie.app import build_host
from reverie.core.actor import Actor
from reverie.core.errors import Invalid
from reverie.importers.run import Importer
from reverie.redact import RULES, Redactor
from reverie.redact.rules.checks import CHECKS
from reverie.redact.rules.compiled import compiled
from reverie.redact.rules.loader import own
from reverie.redact.rules.sample import fill
from reverie.settings import Settings

COMMAND = "import sys; from reverie.api.cli.main import run; sys.exit(run(sys.argv[1:]))"
GOOD = """
[[rule]]
kind = "acme-badge"
token = 'acb_[a-z0-9]{24}'
check = ["random", "filled"]
examples = ['acb_⟨a24⟩', 'badge acb_⟨a24⟩.']
near_misses = ['acb_short', 'acb_thisisonlyaverylongword']
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "rules.toml"
    path.write_text(text, "utf-8")
    return path


def test_own_rule_is_used_and_changes_the_version(tmp_path: Path) -> None:
    rules = own(written(tmp_path, GOOD))
    redactor = Redactor((*RULES, *rules))
    assert redactor.text(fill("see acb_⟨a24⟩ there")).text == "see [REDACTED:acme-badge] there"
    assert redactor.version != Redactor().version
    assert redactor.text("see [REDACTED:acme-badge]").text == "see [REDACTED:acme-badge]"


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('kind = "acme-badge"', 'kind = "acme badge"', "'acme badge': a kind has"),
        ('kind = "acme-badge"', 'kind = "github-token"', "'github-token': this kind exists already"),
        ('kind = "acme-badge"', "", "number 1"),
        ("token = 'acb_[a-z0-9]{24}'", "", "'acme-badge': give either token or pattern"),
        ("token = 'acb_[a-z0-9]{24}'", "token = 'acb_[a-z'", "'acme-badge': token: not an RE2 pattern"),
        ("token = 'acb_[a-z0-9]{24}'", "token = 'acb_⟨nothing⟩'", "⟨nothing⟩ is not known"),
        ("token = 'acb_[a-z0-9]{24}'", "pattern = '[a-z]*'", "matches the empty text"),
        ("token = 'acb_[a-z0-9]{24}'", "token = 'acb_[a-z0-9]{12}'", "is not redacted whole"),
        ("token = 'acb_[a-z0-9]{24}'", "token = 'xyz_[a-z0-9]{24}'", "is not found"),
        ('check = ["random", "filled"]', 'check = "lucky"', "there is no check 'lucky'"),
        ('check = ["random", "filled"]', "cheque = 1", "'acme-badge'"),
        ('check = ["random", "filled"]', "check = 3", "'acme-badge'"),
        ("'acb_thisisonlyaverylongword'", "'acb_⟨a24⟩'", "near miss"),
        ("examples = ['acb_⟨a24⟩', 'badge acb_⟨a24⟩.']", "", "give at least one example"),
        ('check = ["random", "filled"]', 'code = "os"', "only rules that come with Reverie have code"),
        ("[[rule]]", "[rule]", "expected [[rule]] tables"),
        ("[[rule]]", "[[rule", "not TOML"),
    ],
)
def test_a_wrong_rule_is_refused_with_its_name(old: str, new: str, problem: str, tmp_path: Path) -> None:
    assert old in GOOD
    with pytest.raises(Invalid) as refused:
        own(written(tmp_path, GOOD.replace(old, new)))
    assert problem in str(refused.value)
    assert "rules.toml" in str(refused.value)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="cannot be read"):
        own(tmp_path / "none.toml")


def test_own_rules_reach_what_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REVERIE_REDACT_RULES", str(written(tmp_path, GOOD)))
    assert Settings.load(data=str(tmp_path / "data")).redact_rules.endswith("rules.toml")
    with reverie.open(str(tmp_path / "data")) as memory:
        entry = memory.ref("notes").put(fill("the badge is acb_⟨a24⟩"))
        assert "acme-badge" in memory.ref("notes").get(entry.id).content


def test_own_rules_reach_what_a_dry_run_of_an_import_counts(tmp_path: Path) -> None:
    source = tmp_path / "notes.jsonl"
    source.write_text(json.dumps({"text": fill("the badge is acb_⟨a24⟩")}))
    host = build_host(
        Settings.load({"REVERIE_REDACT_RULES": str(written(tmp_path, GOOD))}, data=str(tmp_path / "data"))
    )
    try:
        actor = Actor(tenant="default", id="local:library", door="library")
        assert Importer(host, actor, source, format="jsonl").look().findings == {"acme-badge": 1}
    finally:
        host.close()


def test_wrong_rules_stop_a_command_with_a_message(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD.replace("random", "lucky"))
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, "put", "x", "--data", str(tmp_path / "data")],
        env={"REVERIE_REDACT_RULES": str(path), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "there is no check 'lucky'" in done.stderr
    assert "Traceback" not in done.stderr


def test_every_check_is_used_by_a_rule() -> None:
    asked = {name for rule in RULES for name in rule.asked.split()}
    assert asked == set(CHECKS)


def test_words_are_there_once() -> None:
    for language, words in compiled().languages.items():
        for kind in ("name", "password", "key", "pin", "joins", "to"):
            listed = getattr(words, kind)
            assert len(listed) == len(set(listed)), language
