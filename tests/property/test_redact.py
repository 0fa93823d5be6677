"""What redaction promises whatever the text: nothing registered survives, and doing it twice is doing it once."""

from __future__ import annotations

import base64
import json

from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from reverie.redact import RULES, KnownSecrets, load_redactor
from reverie.redact.rules.sample import fill

REDACTOR = load_redactor()
EXAMPLES = [fill(example) for rule in RULES for example in rule.examples if len(example) < 120]
FRAGMENTS = [
    "[REDACTED:", "[REDACTED:a]", "[REDACTED:secret]", "<REDACTED:x>", "REDACTED", "]", "[", "<", ">", "{", "}", ":", "*",
    "[BYOK:", "[byok : ", "BYOK", "&lt;", "\\u003c", "\n", " ", "\u200b", "\u00ad", "［", "］", "Ｒ", "\ud800", "\x00", "\x1b[0m",
    "password=", "token: ", "Bearer ", "the password is ", "https://u:", "@host/", "é", "你", "'", '"', "\\", "hunter2-Xy9!", "(2)",
]  # fmt: skip

short = st.text(alphabet="ab[]:{}<>REDACTD \n*\u200b", max_size=12)
secret_values = st.one_of(
    st.sampled_from(
        [
            "abababab",
            "babababa",
            "REDACTED",
            "[REDACTED:a",
            "a] hello",
            "D:secret]",
            "********",
            "[BYOK:ab",
            "aaaaaaaaaaaa",
        ]
    ),
    st.text(alphabet="ab", min_size=8, max_size=12),
    st.text(min_size=8, max_size=16),
    short.filter(lambda s: len(s) >= 8),
)
registries = st.lists(
    st.tuples(st.sampled_from(["a", "b", "secret", "byok", "ab/ab", "REDACTED"]), secret_values), max_size=5
)


@st.composite
def cases(draw):
    """A registry, and a text made of its values, pieces of them, markers, near-markers and secret-shaped text."""
    registry = draw(registries)
    values = [value for _, value in registry]
    pieces = [st.sampled_from(FRAGMENTS), short, st.sampled_from(EXAMPLES), st.text(max_size=6)]
    if values:
        pieces.append(st.sampled_from(values))
        pieces.append(st.sampled_from(values).map(lambda v: v[: len(v) // 2]))
        pieces.append(st.sampled_from(values).map(lambda v: v[len(v) // 2 :]))
        pieces.append(st.sampled_from(values).map(lambda v: f"[REDACTED:{v}]"))
        pieces.append(st.sampled_from(values).map(lambda v: f"<redacted:{v}>"))
        pieces.append(
            st.sampled_from(values).map(lambda v: base64.b64encode(v.encode("utf-8", "surrogatepass")).decode())
        )
        pieces.append(st.sampled_from(values).map(json.dumps))
    return KnownSecrets(registry), values, "".join(draw(st.lists(st.one_of(pieces), max_size=12)))


@given(cases())
@examples(150)
def test_no_registered_value_survives_and_twice_is_once(case):
    known, values, text = case
    once = REDACTOR.text(text, known)
    for value in values:
        assert value not in once.text
    again = REDACTOR.text(once.text, known)
    assert again.text == once.text
    assert not again.findings


@given(st.lists(cases(), max_size=8))
@examples(25)
def test_many_equals_text_on_each(drawn):
    known = drawn[0][0] if drawn else KnownSecrets.EMPTY
    texts = [text for _, _, text in drawn]
    assert REDACTOR.many(texts, known) == [REDACTOR.text(text, known) for text in texts]


@given(
    st.lists(
        st.sampled_from([e for e in EXAMPLES if "\n" not in e and "BEGIN" not in e] + ["plain words", "", "[BYOK:a"]),
        max_size=8,
    )
)
@examples(25)
def test_lines_do_not_influence_each_other(lines):
    assert REDACTOR.text("\n".join(lines)).text == "\n".join(REDACTOR.text(line).text for line in lines)


@given(
    cases(),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.sampled_from(EXAMPLES) | short,
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from([*EXAMPLES, "password", "a"]) | short, inner, max_size=4)
        ),
        max_leaves=8,
    ),
)
@examples(40)
def test_values_keep_their_shape_and_are_stable(case, value):
    known, values, text = case
    value = {"text": text, text: value}
    clean, findings = REDACTOR.value(value, known)
    assert shape(clean) == shape(value)
    dumped = strings(clean)
    for secret in values:
        assert not any(secret in s for s in dumped)
    assert REDACTOR.value(clean, known) == (clean, {})
    assert all(isinstance(n, int) for n in findings.values())


def shape(value):
    if isinstance(value, dict):
        return [shape(v) for v in value.values()]
    if isinstance(value, list):
        return [shape(v) for v in value]
    return "text" if isinstance(value, str) else value


def strings(value):
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [*value, *(s for v in value.values() for s in strings(v))]
    return [s for v in value for s in strings(v)] if isinstance(value, list) else []
