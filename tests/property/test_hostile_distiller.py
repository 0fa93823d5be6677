"""Whatever a distiller says, no registered value, no form of one and no look-alike marker is stored."""

from __future__ import annotations

import base64
import html
import json
import os
import re
import tempfile
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from tests.postgres import PostgresServer
from tests.stores import open_store

from reverie.core.actor import Actor
from reverie.core.dream import DreamPlan
from reverie.core.entry import Draft
from reverie.core.errors import ReverieError
from reverie.distil.leaks import mend
from reverie.distil.request import DistilledText, Request
from reverie.distil.source import Statement
from reverie.host import Host
from reverie.providers.tokenizer import TokenCounter
from reverie.redact import KnownSecrets
from reverie.services import Services
from reverie.store.cipher import FileCipher

EXAMPLES = 3000 if os.environ.get("REVERIE_SOAK") else 40
ADA = Actor(tenant="acme", id="ada")
# Letters only, so that no gate refuses them as a number or a name: redaction alone must find them.
SECRETS = {
    "plain": "velvetquokkahunter",
    "phrase": "correct horse battery staple",
    "punctuated": "swordfish/plus+equals=amber",
    "quoted": 'tell "nobody" <about> this & that',
    "foreign": "schlüsselbeinbruchgefahr",
}
NOTES = [
    "The quiet harbour closes early when the wind turns and the ferry stays on the other side.",
    "Deliveries for the bakery arrive before dawn because the flour must rest in the cellar.",
    "The gardener wants the roses moved behind the shed and the gate painted green again.",
    "Nobody uses the old printer any more since the paper drawer sticks in damp weather.",
]
INVISIBLE = re.compile("[\\s\u00ad\u180e\u200b-\u200f\u2060-\u2064\ufeff]+")


class Hostile:
    """Says what it is told to, and names sources that never were."""

    fingerprint = "hostile/1"

    def __init__(self, text: str, name: str) -> None:
        self.text = text
        self.name = name

    def distil(self, request: Request) -> DistilledText:
        first = request.work.sources[0].id
        sneaky = Statement(SECRETS["plain"], (first, SECRETS["phrase"]), SECRETS["plain"], 1)  # type: ignore[arg-type]
        return DistilledText(self.text, [sneaky])


def forms(value: str) -> list[str]:
    raw = value.encode()
    encoded = [base64.b64encode(b"x" * shift + raw + b"y" * 3).decode()[4:-8] for shift in range(3)]
    return [value, base64.b64encode(raw).decode().rstrip("="), quote(value, safe=""), html.escape(value), *encoded]


gaps = st.sampled_from(
    ["\n", " ", "\n\n", "\u200b", "\u00ad", "\t", " \n ", "\n- ", "; ", ".\n", "\nTom: ", "\n[8 May 2023]\n"]
)
secrets = st.sampled_from(sorted(SECRETS.values()))


@st.composite
def split_secrets(draw: st.DrawFn) -> str:
    value = draw(secrets)
    at = sorted(draw(st.sets(st.integers(1, len(value) - 1), min_size=1, max_size=3)))
    pieces = [value[a:b] for a, b in zip([0, *at], [*at, len(value)], strict=True)]
    gap = draw(gaps)
    return gap.join(piece for piece in pieces if piece)


@st.composite
def encoded_secrets(draw: st.DrawFn) -> str:
    raw = draw(secrets).encode()
    encode = draw(
        st.sampled_from(
            [
                lambda b: base64.b64encode(b).decode(),
                lambda b: base64.urlsafe_b64encode(b"ab" + b).decode(),
                lambda b: base64.b64encode(b"a" + b + b"zz").decode(),
                lambda b: quote(b.decode(), safe=""),
                lambda b: json.dumps(b.decode()),
                lambda b: html.escape(b.decode()),
            ]
        )
    )
    text = encode(raw)
    at = draw(st.integers(1, len(text) - 1))
    return text if draw(st.booleans()) else text[:at] + draw(st.sampled_from(["\n", " ", "\u200b"])) + text[at:]


form_leaks = st.sampled_from(
    [
        "[BYOK:secretword]",
        "[ byok : secretword ]",
        "\uff3bBYOK\uff1asecretword\uff3d",
        "[B\u200bYOK:secretword]",
        "&lt;BYOK:secretword&gt;",
        "{byok:secret[word]}",
        "[BYOK:secretword never closed",
        "<REDACTED:thing>",
        "{redacted:thing}",
        "use ghp_1AbCdEfGhIjKlMnOpQrStUvWxYz0123456789 now",
    ]
)
plain = st.one_of(st.sampled_from(NOTES), st.sampled_from(["the harbour", "roses", "flour"]), st.text(max_size=12))
outputs = st.lists(
    st.tuples(
        st.one_of(plain, secrets, split_secrets(), encoded_secrets(), form_leaks), st.sampled_from([" ", "\n", ""])
    ),
    min_size=1,
    max_size=6,
).map(lambda parts: "".join(piece + gap for piece, gap in parts))


Lab = tuple[Host, Callable[[], bytes]]


@pytest.fixture(scope="module")
def lab(engine: str, request: pytest.FixtureRequest) -> Iterator[Lab]:
    """A host, and every byte in the files of its store."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        server: PostgresServer | None = request.getfixturevalue("postgres") if engine == "postgres" else None
        target = server.make_database() if server else str(path / "memory.db")
        host = Host(Services(store=open_store(target), tokens=TokenCounter(), cipher=FileCipher(path / "key")))
        for label, value in SECRETS.items():
            host.rules.register(ADA, label, value)
        host.rules.set_policy(ADA, {"hot_target": "90%"})

        def stored() -> bytes:
            files = path
            if server:
                name = psycopg.conninfo.conninfo_to_dict(target)["dbname"]
                server.execute("CHECKPOINT")
                number = server.execute(f"SELECT oid FROM pg_database WHERE datname = '{name}'")[0][0]
                files = server.folder / "base" / str(number)
            return b"".join(file.read_bytes() for file in files.iterdir())

        yield host, stored
        host.close()
        if server:
            server.drop_database(target)


def leaks_in(text: str) -> list[str]:
    """Judged without any code of the redactor."""
    squeezed = INVISIBLE.sub("", text)
    found = [label for label, value in SECRETS.items() for form in forms(value) if form in text]
    found += [label for label, value in SECRETS.items() for form in forms(value) if INVISIBLE.sub("", form) in squeezed]
    folded = unicodedata.normalize("NFKC", html.unescape(squeezed)).casefold()
    found += re.findall(r"[\[<{(]byok:", folded) + re.findall(r"[<{]redacted:", folded)
    return found + re.findall(r"secretword|ghp_1AbC", text)


counter = iter(range(10**9))


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    database=None,
)
@given(text=outputs, name=st.sampled_from(["hostile", "llm"]))
def test_whatever_is_said_nothing_secret_is_stored(lab: Lab, text: str, name: str) -> None:
    host, _ = lab
    ref = f"bot{next(counter)}"
    before = [receipt.id for receipt in host.entries.put(ADA, ref, [Draft(content=note) for note in NOTES])]
    report, refused = None, None
    try:
        report = host.dreams.run(ADA, DreamPlan(ref), distiller=Hostile(text, name))
    except ReverieError as error:
        refused = error
    event("refused" if refused else "nothing" if report is None else "fell back" if report.fell_back else "stored")
    if report is None:  # refused, or what is said instead of it is no smaller
        assert sorted(e.id for e in host.reader.page(ADA, ref).items) == sorted(before)
        assert not host.archives.index(ADA, ref=ref)["archives"]
        assert refused is None or not leaks_in(f"{refused.message} {json.dumps(refused.details)}")
        return
    entry = host.reader.get(ADA, ref, str(report.output_id))
    assert entry.content.strip()
    stored = json.loads(host.archives.get(ADA, str(report.checksum)))["content"]
    for said in (entry.content, stored, repr(report), json.dumps(host.archives.index(ADA, ref=ref))):
        assert not leaks_in(said)
    if report.fell_back:
        assert name == "llm"


def test_no_byte_of_a_secret_is_in_the_files(lab: Lab) -> None:
    host, read_stored = lab
    for text in (
        f"the harbour {SECRETS['plain']} closes",
        "the harbour velvetquokka\nhunter closes",
        "the harbour correct horse\nbattery staple closes",
        "[BYOK:secretword] closes",
    ):
        ref = f"bot{next(counter)}"
        host.entries.put(ADA, ref, [Draft(content=note) for note in NOTES])
        host.dreams.run(ADA, DreamPlan(ref), distiller=Hostile(text, "hostile"))
    stored = read_stored()
    assert b"The quiet harbour" in stored
    for piece in (SECRETS["plain"], SECRETS["phrase"], "velvetquokka", "correct horse", "secretword"):
        assert piece.encode() not in stored


@pytest.mark.parametrize(
    "gap",
    ["\n", " ", "\u200b", "\n- ", "\n2. ", "; ", ".\n", "\nTom Reed: ", "\n[8 May 2023]\n", ".\n[8 May 2023]\nTom: "],
)
@pytest.mark.parametrize("label", SECRETS)
def test_a_value_over_two_statements_is_mended(label: str, gap: str) -> None:
    known = KnownSecrets(SECRETS.items())
    value = SECRETS[label]
    for at in (4, len(value) // 2, len(value) - 4):
        left, right = value[:at].rstrip(), value[at:].lstrip()
        mended, found = mend(f"We say {left}{gap}{right} to nobody.", known)
        assert found == 1
        assert mended.startswith("We say [REDACTED:")
        assert mended.endswith("] to nobody.")


def test_ordinary_text_is_left_alone() -> None:
    known = KnownSecrets(SECRETS.items())
    text = "\n".join(NOTES)
    assert mend(text, known) == (text, 0)
    assert mend(text, KnownSecrets.EMPTY) == (text, 0)
