"""Texts made to be expensive for the redactor: `python -m bench.redact --hostile`."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from urllib.parse import quote

from bench.redact_corpus import Random
from reverie.redact import RULES, Redactor
from reverie.redact.rules.required import all_required
from reverie.redact.rules.sample import fill

_REPEATED = (
    "api_key: ", "the password is ", "password=", "token ", "secret: 'x' ", "https://u:p@h/ ", '"password": ', '\\"api_key\\": ',
    "[BYOK:", "<REDACTED:x>", "\u200bpassword ", "export X_TOKEN=", "a_b-", "'\"`", "((((", "%5b", "&lt;", "\\x41", "\\u0041",
    "token\n", "word1\n  word2", "\u0440a", "00:11:", "x" * 30 + " ",
)  # fmt: skip
_TRIGGERS = (
    "api_key: ",
    "password is ",
    "token ",
    "secret=",
    "login ",
    "Bearer ",
    "the key ",
    "export A_KEY=",
    '"token":',
)

_CONTEXTS = (
    "-----BEGIN RSA PRIVATE KEY-----\n", "eyJhbGciOi.", "Authorization: Basic ", "| user | password |\n", "<password>x</password>",
    "password: |\n  a\n", "mysql -u a -pb ", "curl -u a:b h ", "Set-Cookie: sid=1; ", "AccountKey=a;", "DB_PASS=a DB_USER=b ",
    "user: a\npassword: b\n", "kubectl create secret generic x --from-literal=a=b ", "PIN 1234 ", "4111 1111 1111 1111 ",
    "DE89 3704 0044 0532 0130 00 ", "abandon ability able about ", "0x" + "ab" * 20 + " ", "AKIA", "ghp_", "sk-", "xoxb-1-", "my pin is: ",
    "Mein Passwort ist ", "la contrase\u00f1a es ", "\u043f\u0430\u0440\u043e\u043b\u044c ", "\u5bc6\u7801\u662f ", "p\u0430ssw\u043erd ",
    "$PASSWORD ", "${TOKEN} ", "os.environ['KEY'] ", "\x1b[31mtoken\x1b[0m ", "\u200b", "\uff50\uff41\uff53\uff53 ", "[REDACTED:x", "[[[[REDACTED:",
    "a@b:c@", "://", "=", ":", "key key key=", "a.b.c.d.e.", "A1-B2-", "\t", "\n", "\n ", "\r\n\t| ", "\\\\\\n", "&amp;amp;lt;", "%25%32%35", "\\u005cu0041",
    "\\5f ", "=5F=41", "=5F", "token = '", "'a' + 'b", "a1\" + \"b2", "a1b2\"\n    \"c3d4", "a1b2' .\n  'c3d4", "a1b2=\n", "\"+\"", "70006100",
)  # fmt: skip

# What a search by chance found to be dear.
_FOUND = (
    "%20for%20the%20password%20policysee%20https%3A//example.org/d/⟨w40⟩%20for%20the%20password%20policy⟨w32⟩",
    'enter the key, value type int64 or float32⟨h24⟩"\nenter the key, value type int64 or float32secret: \'x\' token := "⟨h40⟩"\n',
    '[REDACTED:x\ntoken := "⟨h40⟩"new DirectoryEntry("LDAP://dc1", "CORPAPIKeysAndTokens\n',
)


def many(unit: str, size: int) -> str:
    """`unit` repeated."""
    return (unit * (size // len(unit) + 1))[:size]


def _nested(text: str, wrap: Callable[[str], str], size: int) -> str:
    while len(text) < size:
        text = wrap(text)
    return text


def _inner(r: Random, size: int) -> Iterator[tuple[str, str]]:
    """Nests, long lines of pairs, long words, short lines."""

    def word(length: int) -> str:
        return "".join(r.choices("abcdefghijkmnpqrstuvwxyz23456789", k=length))

    yield "nested quotes", _nested("password='x'", lambda text: f"\"{text}' `{text}`", size)[:size]
    yield (
        "nested JSON",
        _nested('{"token": "a1b2c3d4"}', lambda text: json.dumps({"secret": text, "key": text}), size)[:size],
    )
    yield (
        "nested base64",
        _nested("token: a1b2c3d4 ", lambda text: base64.b64encode(text.encode()).decode() + " ", size)[:size],
    )
    yield "nested hex", _nested("token: a1b2c3d4 ", lambda text: text.encode().hex() + " ", size)[:size]
    yield "nested percents", _nested("token%3Da1b2", lambda text: text.replace("%", "%25") + "%20" + text, size)[:size]
    yield "pairs on one line", "&".join(f"{word(5)}_key={word(7)}" for _ in range(size // 17))
    yield "pairs of JSON", json.dumps({f"{word(5)}_token": word(9) for _ in range(size // 26)})
    yield (
        "escaped JSON of base64",
        "".join('\\"auth\\": \\"' + base64.b64encode(word(12).encode()).decode() + '\\",' for _ in range(size // 32)),
    )
    yield (
        "base64 of triggers",
        " ".join(base64.b64encode(f"password: {word(8)}".encode()).decode() for _ in range(size // 26)),
    )
    yield "one word", word(size)
    yield "one word of hex", "0123456789abcdef" * (size // 16)
    yield "long words", " ".join(word(2_000) for _ in range(size // 2_000))
    yield "short lines", "\n".join(r.choice(("key", "a1", "pw", "=", ":", "x9z")) for _ in range(size // 3))
    yield "indented parts", "\n".join(f"  {word(8)}" for _ in range(size // 11))
    yield "escapes of letters", "".join(f"\\u{ord(c):04x}" for c in "password is yfn6c5 " * (size // 114))
    yield (
        "letters of two alphabets",
        "".join(
            r.choice(("t\u043eken", "s\u0435cret", "k\u0435y", "p\u0430ss")) + " " + word(6) + " "
            for _ in range(size // 15)
        ),
    )
    yield "blanks that are not seen", "\u200b".join("password is yfn6c5 " * (size // 76))
    yield "columns", "\n".join(f"{word(5)}\t{word(8)}\t{word(8)}" for _ in range(size // 24))
    for end in (" ", "\n"):
        yield (
            f"every example by {end!r}",
            many(end.join(fill(rule.examples[0]) for rule in RULES if rule.examples), size),
        )
        near = end.join(fill(text) for rule in RULES for text in rule.near_misses)
        yield f"every near miss by {end!r}", many(near, size)
    for unit in ("\\x41 a", "\\n a", "\\u0041 a", "&lt; a", "a%20b", base64.b64encode(b"token: a1b2c3d4").decode()):
        yield f"lines of {unit!r}", many(unit + "\n", size)


def _escaped(text: str) -> str:
    return json.dumps(json.dumps(text)[1:-1])[1:-1]


def crossed(size: int) -> Iterator[tuple[str, str]]:
    """Every rule at once: its examples whole, in parts, encoded, disguised, and only what its filter looks for."""
    r = Random(23)
    examples = [fill(rule.examples[0]) for rule in RULES if rule.examples]
    r.shuffle(examples)
    plain = " ".join(examples)
    strings = sorted({text.decode("latin-1") for found in all_required(map(str.encode, _triggers())) for text in found})
    r.shuffle(strings)
    slices = [plain[at : at + r.randint(8, 30)] for at in (r.randrange(len(plain)) for _ in range(size // 16))]
    yield "strings of every filter by ' '", many(" ".join(strings), size)
    yield "strings of every filter by '\\n'", many("\n".join(strings), size)
    yield "strings of every filter in one run", many("".join(strings), size)
    yield "parts of examples by ' '", " ".join(slices)[:size]
    yield "parts of examples by '\\n'", "\n".join(slices)[:size]
    yield "examples in base64", many("\n".join(base64.b64encode(one.encode()).decode() for one in examples), size)
    yield "examples in hex", many(" ".join(one.encode().hex() for one in examples), size)
    yield "examples in percents", many(" ".join(quote(one) for one in examples), size)
    yield "examples in entities", many(" ".join("".join(f"&#{ord(c)};" for c in one) for one in examples), size)
    yield "examples in JSON in JSON", many(",".join(f'\\"{_escaped(one)}\\"' for one in examples), size)
    wrapped = "\n".join(base64.b64encode(quote(_escaped(one)).encode()).decode() for one in examples)
    yield "examples in JSON in percents in base64", many(wrapped, size)
    yield "examples with unseen characters", many(" ".join("\u200b".join(one) for one in examples), size)
    mixed = plain.translate(str.maketrans("aeop", "\u0430\u0435\u043e\u0440"))
    yield "examples in two alphabets", many(mixed, size)
    yield (
        "examples over two lines",
        many("\n".join(f"{x[: len(x) // 2]}\n    {x[len(x) // 2 :]}" for x in examples), size),
    )
    yield "examples in a table", many("".join(f"| {x} | {y} |\n" for x, y in pairwise(examples)), size)
    yield "examples and markers", many(" [REDACTED:x] ".join(examples), size)
    yield "examples among other scripts", many("\u5bc6\u7801\U0001f511".join(examples), size)


def _triggers() -> Iterator[str]:
    return (rule.trigger for rule in RULES)


def hostile(size: int, *, every_rule: bool = False) -> Iterator[tuple[str, str]]:
    """(name, text of about `size` characters): repetitions, mixtures of triggers, encoded words."""
    r = Random(17)

    def word(alphabet: str, length: int) -> str:
        return "".join(r.choices(alphabet, k=length))

    for unit in (*_REPEATED, *_CONTEXTS):
        yield f"repeated {unit[:20]!r}", many(unit, size)
    for template in _FOUND:
        yield f"found by chance {template[:20]!r}", many(fill(template), size)
    if every_rule:
        for rule in RULES:
            for template in (*rule.examples, *rule.near_misses):
                for end in (" ", "\n"):
                    yield f"{rule.kind} {template[:24]!r}", many(fill(template) + end, size)
    lower, mixed = "abcdefghijklmnopqrstuvwxyz", "abcdefghijABCDEFXYZ0123456789"
    for end in (" ", "\n"):
        for alphabet, length in ((lower, 7), (mixed, 6), (mixed, 24)):
            pairs = (r.choice(_TRIGGERS) + word(alphabet, length) + end for _ in range(size // (8 + length)))
            yield f"triggers and words of {length} by {end!r}", "".join(pairs)[:size]
        encoded = (base64.b64encode(r.randbytes(30)).decode() + end for _ in range(size // 41))
        yield f"base64 by {end!r}", "".join(encoded)
        yield f"hex by {end!r}", "".join(r.randbytes(16).hex() + end for _ in range(size // 33))
    yield "one run of base64", base64.b64encode(r.randbytes(size * 3 // 4)).decode()
    yield from _inner(r, size)
    yield from crossed(size)
    yield "noise", word("".join(map(chr, range(32, 127))), size)


_WRAPS: tuple[Callable[[str], str], ...] = (
    lambda text: base64.b64encode(text.encode()).decode(),
    lambda text: text.encode().hex(),
    quote,
    _escaped,
    lambda text: "\u200b".join(text),
    lambda text: text.replace(" ", "\n"),
    lambda text: f'{{"{text[:9]}": "{text}"}}',
    lambda text: f"| {text} |\n",
)


def search(redactor: Redactor, rounds: int, seed: int = 1, size: int = 40_000) -> list[tuple[float, str]]:
    """The most expensive repeated texts of a random search, which joins, cuts and wraps the best round after round."""
    r = Random(seed)
    units = [*_REPEATED, *_CONTEXTS, *(fill(text) for rule in RULES for text in (*rule.examples, *rule.near_misses))]
    best = [(0.0, unit) for unit in r.sample(units, 24)]
    for _ in range(rounds):
        one, other = r.choice(best)[1], r.choice((r.choice(best)[1], r.choice(units)))
        at = r.randrange(len(one))
        unit = r.choice(
            (
                one + other,
                one[:at] + other,
                one + " " + other,
                one + "\n" + other,
                r.choice(_WRAPS)(one),
                one[at:] + one,
            )
        )[:400]
        best = sorted({*best, (price(redactor, many(unit, size)), unit)}, reverse=True)[:24]
    return best


def price(redactor: Redactor, text: str) -> float:
    """Seconds of processor time per megabyte. Patterns are compiled at their first use, once in a process; a look at
    the beginning of the text sees to that."""
    redactor.text(text[:20_000])
    started = time.process_time()
    redactor.text(text)
    return round((time.process_time() - started) / (len(text.encode()) / 1e6), 2)


def prices(redactor: Redactor, size: int = 100_000, *, every_rule: bool = False) -> dict[str, float]:
    """The price of each hostile text, the most expensive first."""
    found = {name: price(redactor, text) for name, text in hostile(size, every_rule=every_rule)}
    return dict(sorted(found.items(), key=lambda item: -item[1]))
