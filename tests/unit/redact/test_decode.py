"""Secrets in another notation are found and cut out whole; ordinary encoded text stays."""

from __future__ import annotations

import base64
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reverie.redact import KnownSecrets, load_redactor
from reverie.redact.decode import continued, decode, runs
from reverie.redact.rules.sample import fill

REDACTOR = load_redactor()
TOKENS = [fill("gh" + "p_⟨w36⟩"), fill("AK" + "IA⟨A16⟩"), fill("xox" + "b-⟨d12⟩-⟨d13⟩-⟨w24⟩")]
VALUE = "Quiet.Otter/Lane_42-again"
KNOWN = KnownSecrets([("door", VALUE)])
NOTATIONS: dict[str, Callable[[str], str]] = {
    "base64": lambda v: base64.b64encode(v.encode()).decode(),
    "base64 of more": lambda v: base64.b64encode(f"export X={v} # for now".encode()).decode(),
    "base64 for addresses": lambda v: base64.urlsafe_b64encode(v.encode()).decode().rstrip("="),
    "hex": lambda v: v.encode().hex(),
    "capital hex": lambda v: v.encode().hex().upper(),
    "hex in pairs": lambda v: ":".join(f"{byte:02x}" for byte in v.encode()),
    "one percent sign": lambda v: v[:3] + f"%{ord(v[3]):02X}" + v[4:],
    "percent signs": lambda v: "".join(f"%{byte:02x}" for byte in v.encode()),
    "escapes": lambda v: "".join(f"\\x{byte:02x}" for byte in v.encode()),
    "one escape": lambda v: v[:2] + f"\\x{ord(v[2]):02x}" + v[3:],
    "unicode escapes": lambda v: "".join(f"\\u{byte:04x}" for byte in v.encode()),
    "unicode escapes in braces": lambda v: "".join(f"\\u{{{byte:x}}}" for byte in v.encode()),
    "entities": lambda v: "".join(f"&#{byte};" for byte in v.encode()),
    "hex entities": lambda v: "".join(f"&#x{byte:x};" for byte in v.encode()),
    "a named entity": lambda v: v.replace("_", "&lowbar;").replace("-", "&#45;").replace("A", "&#65;"),
    "look-alike letters": lambda v: v.translate(str.maketrans("peoxaAKy", "реохаАКу")),
    "an indented line": lambda v: f"{v[:11]}\n    {v[11:]}",
    "indented lines": lambda v: f"{v[:8]}\n  {v[8:14]}\n  {v[14:]}",
    "wide percent signs": lambda v: "".join(f"%u{byte:04x}" for byte in v.encode()),
    "a list of bytes": lambda v: ", ".join(f"0x{byte:02x}" for byte in v.encode()),
    "a soft line break": lambda v: f"{v[:11]}=\n{v[11:]}",
    "CSS escapes": lambda v: "".join(f"\\{byte:x} " for byte in v.encode()),
    "one CSS escape": lambda v: v[:3] + f"\\{ord(v[3]):x} " + v[4:],
    "long CSS escapes": lambda v: "".join(f"\\{byte:06x}" for byte in v.encode()),
    "quoted-printable": lambda v: "".join(f"={byte:02X}" for byte in v.encode()),
    "signs in quoted-printable": lambda v: "".join(
        f"={ord(c):02X}" if f"{ord(c):02X}"[1] in "ABCDEF" else c for c in v
    ),
    "quoted-printable on two lines": lambda v: f"{v[:2]}={ord(v[2]):02X}={ord(v[3]):02X}{v[4:9]}=\n{v[9:]}",
    "a sum of strings": lambda v: f'{v[:7]}" + "{v[7:]}',
    "a sum of three": lambda v: f"{v[:7]}' . '{v[7:12]}' . '{v[12:]}",
    "a sum on two lines": lambda v: f'{v[:11]}" +\n    "{v[11:]}',
    "a sum that begins with its sign": lambda v: f"{v[:11]}'\n        + '{v[11:]}",
    "strings below each other": lambda v: f'{v[:11]}"\n    "{v[11:]}',
    "a sum in JSON": lambda v: f'{v[:7]}\\" + \\"{v[7:]}',
    "UTF-16 in hex": lambda v: v.encode("utf-16-le").hex(),
    "UTF-16 in base64": lambda v: base64.b64encode(v.encode("utf-16")).decode(),
    "UTF-16, high bytes first, in hex": lambda v: v.encode("utf-16-be").hex(),
    "base64 in percent signs": lambda v: quote(base64.b64encode(f"token={v}==".encode()).decode(), safe=""),
}


@pytest.mark.parametrize("notation", NOTATIONS)
@pytest.mark.parametrize("frame", ["see {} here", "X={}", "{}", '{{"a": "{}"}}'])
def test_a_secret_in_another_notation_is_found_whole(notation: str, frame: str) -> None:
    for value in (*TOKENS, VALUE):
        text = frame.format(NOTATIONS[notation](value))
        clean = REDACTOR.text(text, KNOWN)
        assert clean.findings, text
        before, _, after = frame.replace("{{", "{").replace("}}", "}").partition("{}")
        left = clean.text.removeprefix(before).removesuffix(after)
        assert left.startswith("[REDACTED:"), clean.text
        assert left.endswith("]"), clean.text
        assert REDACTOR.text(clean.text, KNOWN).text == clean.text


_PAIRED = ["base64", "hex", "percent signs", "escapes", "unicode escapes", "entities"]


@pytest.mark.parametrize("outer", _PAIRED)
@pytest.mark.parametrize("inner", _PAIRED)
def test_a_secret_in_two_notations_is_found_whole(inner: str, outer: str) -> None:
    for value in TOKENS[:2]:
        text = NOTATIONS[outer](NOTATIONS[inner](value))
        clean = REDACTOR.text(f"see {text} here").text
        assert clean.startswith("see [REDACTED:")
        assert clean.endswith("] here")


def test_wrapped_base64_is_decoded_as_one() -> None:
    encoded = base64.b64encode(TOKENS[0].encode()).decode()
    assert encoded[20:] not in REDACTOR.text(f"value: {encoded[:20]}\n    {encoded[20:]}\n").text


@pytest.mark.parametrize("value", [VALUE.upper(), VALUE.lower(), VALUE.swapcase()])
def test_a_registered_value_is_found_in_any_case(value: str) -> None:
    assert REDACTOR.text(f"it is {value}.", KNOWN).text == "it is [REDACTED:door]."


@pytest.mark.parametrize(
    "text",
    [
        "https://shop.example/search?q=blue%20kettle%2C%20large&page=2",
        "Tom &amp; Jerry &lt;tom@example.org&gt; said &quot;hello&quot; &#8211; twice",
        r"path = C:\users\x41\new\table",
        r'{"name": "Zo\u00eb", "city": "K\u00f6ln"}',
        "data: " + base64.b64encode(b"The kettle is blue and stands on the second shelf.").decode(),
        "digest " + "0f" * 32,
        "mac 00:1a:2b:3c:4d:5e:6f:70:81:92",
        "Кабель USB3.0 и провод 3х2.5, API-ключ не нужен",
        "    first line\n    second line2\n        third line",
        "def f(value1):\n    return value1\n\n\nclass Thing2:\n    name3 = 'x'",
        "naïve café: 50% off, 100%",
        "a { content: '\\201C'; width: 50\\25 ; }  .\\31 0 { margin: 1px }",
        "Das Hotel kostet 120=E2=82=AC, Fr=C3=BChst=C3=BCck inbegriffen=\n und Parkplatz.",
        'message = "the harbour was " + "quiet at " + str(9) + "\\n" + "and so on"',
        '    "first line of a text "\n    "second line 2 of it"\n',
        "C:\\5f\\data\\20 files\\2f",
        "text " + "the valve is closed".encode("utf-16-le").hex(),
    ],
)
def test_ordinary_encoded_text_is_left_alone(text: str) -> None:
    assert REDACTOR.text(text, KNOWN).text == text


PIECES = [
    "%41",
    "%e4%bd%a0",
    "%zz",
    "\\x41",
    "\\u0041",
    "\\u{1F600}",
    "&#65;",
    "&lt;",
    "&bogus;",
    "а",
    "p",
    "ab",
    " ",
    "é",
    "\\",
    "%",
]


@given(st.lists(st.sampled_from(PIECES), max_size=12))
@settings(max_examples=150, deadline=None)
def test_a_span_of_the_copy_covers_what_it_was_made_from(parts: list[str]) -> None:
    line = "".join(parts).encode()
    copy = decode(line)
    assert copy.original(0, len(copy.plain)) == (0, len(line))
    for start in range(len(copy.plain)):
        begin, end = copy.original(start, start + 1)
        assert 0 <= begin < end <= len(line)
        if end - begin == 1:
            assert line[begin:end] == copy.plain[start : start + 1]


@given(st.binary(max_size=200))
@settings(max_examples=100, deadline=None)
def test_whatever_the_bytes_nothing_is_raised_and_runs_are_in_order(data: bytes) -> None:
    decode(data)
    for start, end, text in runs(data):
        assert 0 <= start < end <= len(data)
        assert text
    places = [start for start, _ in continued(data)]
    assert places == sorted(places)
