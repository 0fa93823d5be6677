"""Secrets in tables: columns with a credential word as header, and rows of a name and its value."""

# ruff: noqa: E501 (a pattern is easier to read in one piece)

from __future__ import annotations

import re
from collections.abc import Iterator

from reverie.redact.entropy import word_share, words
from reverie.redact.lazy import lazy
from reverie.redact.markers import spans as all_spans
from reverie.redact.rules.literals import is_random, is_whole
from reverie.redact.rules.names import KEY_HINT, key_strength
from reverie.redact.rules.plausible import is_location, is_placeholder, is_technical
from reverie.redact.rules.prose.languages import KEYS, PASSWORDS
from reverie.redact.rules.rule import Rule, Span
from reverie.redact.rules.values import judge

_BAR = rb"\||\xe2\x94\x82|\xe2\x94\x83|\xe2\x95\x91"
_EDGE = r"(?:[ ](?:[0-9]{1,2}|\([A-Za-z]+\)))?[\"'*`]{0,3}[ ]?(?:[|,;\t\xe2]|[ ]{2}|\r?(?m:$))"
_NAMED = r"(?i:passwo?r?ds?|passphrases?|passcodes?|pwd|secrets?|tokens?|creds|credentials?|keys?|\bcodes?|_pat|wort|contraseña|senha|passe)"
_HEAD = rf"{_NAMED}[0-9]?{_EDGE}|[|,;\t][\"' ]{{0,2}}(?i:pass|pw)[\"' ]{{0,2}}(?:[|,;\t]|\r?(?m:$))|(?:ароль|密码|パスワード)[ ]{{0,2}}[|,;\t]"
_HEADER = _HEAD.encode()
_VALUES = rb"(?i)\b(?:value|val|wert|valeur|valor|content|secret_value)\b"
_PARTS = lazy(rb"[|,;\t\xe2]|[ ]{2}")
_RULER = lazy(rb"[\s|+:=\-\xe2\x94\x95\x80-\xbf]*\Z")
_QUOTED = lazy(rb"[ ]*\"((?:[^\"\n]|\"\")*)\"[ ]*(?=[,;\t]|\r?\Z)|[ ]*'([^'\n]*)'[ ]*(?=[,;\t]|\r?\Z)|([^,;\t\n]*)")
_GAP = lazy(rb"[ ]{2,}|\t+")
_COLUMN_NAME = lazy(r"[\w#][\w #/().'’%-]{0,39}")
_MOST_CELLS = 40

_IS_CODE = lazy(r"(?i)(?:recovery|backup|rescue|scratch|emergency|one[- ]time|2fa|mfa)[ _-]?codes?(?:[ #]*\d{1,2})?")
_A_CODE = lazy(r"[A-Za-z0-9]{3,8}(?:[- ][A-Za-z0-9]{3,8}){1,5}|\d{6,10}|[a-z0-9]{8,16}|[A-Z0-9]{8,16}")
_IS_PIN = lazy(r"(?i)(?:pin|door|access|entry|gate|alarm|lock|unlock)[ _-]?codes?|passcodes?|codes? pin")
_NAMES_SECRET = lazy(
    r"(?i)(?:secrets?|tokens?|credentials?|creds?|(?:[a-z0-9][ _-]|api|secret|access|private)keys?|\bpat|secret[ _]value)(?:[ _]?(?:\d|value|prod|dev|live|test|staging))?$"
)
_FOREIGN_PASSWORD = lazy(rf"(?:{PASSWORDS})\w*", re.I)
_FOREIGN_KEY = lazy(rf"(?:{KEYS})", re.I)
_SAFES = words("1password keepass keepass2 keepassxc lastpass bitwarden vault dashlane enpass keychain passbolt")
_SENTENCE = words(
    "the a an is are was in of to see for and or not no on at by with from your my must same as only set none"
)
_VALUE_COLUMN = words("value val wert valeur valor content secret_value default")
_NAME_COLUMN = words(
    "name key variable var parameter param setting env property field title nom clé nombre nome id option item"
)
_TYPE_COLUMN = words("type kind class category typ tipo")
_SECRET_TYPE = words(
    "secret password securestring sensitive credential credentials token apikey api_key encrypted masked"
)


def _promise(header: str) -> str:
    """Classify the cells below a header: `password`, `secret`, `code`, `pin`, or empty for anything else."""
    text = re.sub(r"[ ]*\([^()]*\)\Z", "", header.strip(" *`_\"'"))
    if not text or len(text) > 40 or text.count(" ") > 3 or text[-1] in ".:!?":
        return ""
    if _IS_CODE.fullmatch(text):
        return "code"
    if _IS_PIN.fullmatch(text):
        return "pin"
    strength = key_strength(text.replace(" ", "_"))
    if strength == "password" or _FOREIGN_PASSWORD.fullmatch(text):
        return "password"
    named = strength == "secret" and _NAMES_SECRET.search(text)
    return "secret" if named or (not text.isascii() and _FOREIGN_KEY.search(text) and "API" in text) else ""


def _is_cell(value: str, promise: str) -> bool:
    """Whether a cell holds the kind of secret that its header names, not a remark about it."""
    if len(value) < 4 or not is_whole(value) or is_placeholder(value) or is_location(value):
        return False
    if promise == "code":
        return any(c.isdigit() for c in value) and _A_CODE.fullmatch(value) is not None
    if promise == "pin":
        return re.fullmatch(r"[\dA-Z#*-]{4,10}", value) is not None and any(c.isdigit() for c in value)
    if value.casefold() in _SAFES:
        return False
    if promise == "password":
        return _is_password(value)
    if " " in value or is_technical(value):
        return False
    return is_random(value) or (len(value) >= 10 and judge(value, "secret", quoted=True, assigned=False))


def _is_password(value: str) -> bool:
    """Whether `value` is a phrase, a password that a person chose, or letters that make no word."""
    if " " in value:
        return _is_phrase(value)
    unreadable = len(value) >= 8 and value.isascii() and value.isalpha() and not word_share(value)
    return unreadable or judge(value, "password", quoted=True, assigned=False)


def _is_phrase(value: str) -> bool:
    """Whether `value` is random words or a password with blanks, not a sentence about passwords."""
    pieces = value.split(" ")
    if any(piece.casefold() in _SENTENCE for piece in pieces) or len(pieces) > 10:
        return False
    if len(pieces) >= 4 and all(re.fullmatch(r"[a-z]{3,10}", piece) for piece in pieces):
        return True
    return len(pieces) <= 3 and re.search(r"\d[^\w\s]|[^\w\s.,:;/()-]\d|[a-z]\d", value) is not None


def _delimiter(line: bytes) -> bytes:
    """Return the delimiter between the cells of a header."""
    if re.search(_BAR, line):
        return b"|"
    if b"\t" in line:
        return b"\t"
    if line.count(b";") >= max(1, line.count(b",")):
        return b";"
    return b"," if b"," in line else b" "


def _cells(data: bytes, start: int, end: int, delimiter: bytes) -> list[Span]:
    """Return the spans of a line's cells, without padding and delimiters."""
    line = data[start:end]
    drawn = delimiter in (b"|", b" ")
    spans = _drawn_cells(line, delimiter) if drawn else _separated_cells(line, delimiter)
    return [_bare(data, start + s, start + e) for s, e in spans]


def _drawn_cells(line: bytes, delimiter: bytes) -> list[Span]:
    """Return the cells between bars or wide gaps."""
    spans: list[Span] = []
    position = len(line) - len(line.lstrip())
    for bar in re.finditer(_BAR, line) if delimiter == b"|" else _GAP.finditer(line, position):
        spans.append((position, bar.start()))
        position = bar.end()
    if delimiter == b"|" and spans and not line[: spans[0][1]].strip():
        spans.pop(0)
    if line[position:].strip() or (delimiter == b"|" and not re.search(rb"(?:%b)\s*\Z" % _BAR, line)):
        spans.append((position, len(line)))
    return spans


def _separated_cells(line: bytes, delimiter: bytes) -> list[Span]:
    """Return the cells of CSV, where a quoted cell may contain the delimiter."""
    spans: list[Span] = []
    position = 0
    if b'"' not in line and b"'" not in line:
        for cell in line.split(delimiter)[: _MOST_CELLS + 1]:
            spans.append((position, position + len(cell)))
            position += len(cell) + 1
        return spans
    while position <= len(line) and len(spans) <= _MOST_CELLS:
        found = _QUOTED.match(line, position)
        if found is None:
            break
        group = next(g for g in (1, 2, 3) if found.start(g) >= 0)
        stop = found.end()
        if group == 3:
            other = line.find(delimiter, position)
            stop = len(line) if other < 0 else other
            spans.append((position, stop))
        else:
            spans.append(found.span(group))
        if line[stop : stop + 1] != delimiter:
            break
        position = stop + 1
    return spans


def _bare(data: bytes, start: int, end: int) -> Span:
    kept = data[start:end].lstrip(b" \t\r")
    start = end - len(kept)
    end = start + len(kept.rstrip(b" \t\r"))
    if not data.startswith((b"**", b"`", b'"', b"'"), start, end):
        return start, end
    for mark in (b"**", b"`", b'"', b"'"):
        if end - start > 2 * len(mark) and data[start:end].startswith(mark) and data[start:end].endswith(mark):
            start, end = start + len(mark), end - len(mark)
    return start, end


def _lines(data: bytes, start: int) -> Iterator[Span]:
    while start < len(data):
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        yield start, end
        start = end + 1


def _rows(data: bytes, start: int, delimiter: bytes, count: int) -> Iterator[list[Span]]:
    """Yield the rows below a header, up to the first with another number of cells."""
    for begin, end in _lines(data, start):
        if _RULER.match(data, begin, end) and end - begin > 2:
            continue
        cells = _cells(data, begin, end, delimiter) if end - begin <= 4_000 else []
        if len(cells) != count:
            return
        yield cells


def _tables(data: bytes) -> Iterator[Span]:
    done = 0
    while (hit := all_spans(_HEADER).after(data, done)) is not None:
        yield hit[0][0], hit[0][0]
        start = data.rfind(b"\n", 0, hit[0][0]) + 1
        end = data.find(b"\n", hit[0][0])
        if end < 0:
            break
        done = end
        if end - start > 600 or _PARTS.search(data, start, end) is None:
            continue
        delimiter = _delimiter(data[start:end])
        headers = [data[s:e].decode("utf-8", "replace") for s, e in _cells(data, start, end, delimiter)]
        if len(headers) < 2 or not _are_names(headers, data[start:end], delimiter):
            continue
        yield from [(start, start)] * len(headers)
        wanted = {i: promise for i, header in enumerate(headers) if (promise := _promise(header))}
        for cells in _rows(data, end + 1, delimiter, len(headers)) if wanted else ():
            done = cells[-1][1]
            yield done, done
            for i, promise in wanted.items():
                s, e = cells[i]
                yield s, e if _is_cell(data[s:e].decode("utf-8", "replace"), promise) else s
    yield from _settings(data)


def _are_names(headers: list[str], line: bytes, delimiter: bytes) -> bool:
    """Whether a line can be a header: short names only, none of them empty except between bars."""
    if delimiter == b"|":
        return all(not header or _COLUMN_NAME.fullmatch(header.strip(" *`_")) for header in headers)
    if line[:1] in b" \t" and delimiter != b" ":
        return False
    return all(_COLUMN_NAME.fullmatch(header) and header.count(" ") <= 3 for header in headers)


def _column(headers: list[str], wanted: frozenset[str]) -> int:
    return next((i for i, header in enumerate(headers) if header.casefold().replace(" ", "_") in wanted), -1)


def _row_strength(name: str, kind: str) -> str:
    """Classify the value of a row by its name or by its type."""
    strength = key_strength(name.replace(" ", "_"))
    if strength in ("", "mention") and kind.casefold() in _SECRET_TYPE:
        return "password" if kind.casefold() == "password" else "secret"
    return strength


def _settings(data: bytes) -> Iterator[Span]:
    """Yield the secrets in tables with a column of names and one of values."""
    done = 0
    while (hit := all_spans(_VALUES).after(data, done)) is not None:
        yield hit[0][0], hit[0][0]
        start, end = data.rfind(b"\n", 0, hit[0][0]) + 1, data.find(b"\n", hit[0][1])
        if end < 0:
            break
        done = end
        if end - start > 200 or _PARTS.search(data, start, end) is None:
            continue
        delimiter = _delimiter(data[start:end])
        headers = [data[s:e].decode("utf-8", "replace") for s, e in _cells(data, start, end, delimiter)]
        name, kind, value = (_column(headers, wanted) for wanted in (_NAME_COLUMN, _TYPE_COLUMN, _VALUE_COLUMN))
        if value < 0 or (name < 0 and kind < 0) or not _are_names(headers, data[start:end], delimiter):
            continue
        for cells in _rows(data, end + 1, delimiter, len(headers)):
            done = cells[-1][1]
            texts = [data[s:e].decode("utf-8", "replace") for s, e in cells]
            strength = _row_strength(texts[name] if name >= 0 else "", texts[kind] if kind >= 0 else "")
            likely = strength and is_whole(texts[value]) and judge(texts[value], strength, quoted=True, assigned=True)
            yield cells[value] if likely else (done, done)


_ROW = rb"(?is)<tr\b[^>]{0,200}>.*?(?:</tr>|<tr\b)"
_PAIR = rb"(?is)<dt\b[^>]{0,200}>[^<]{1,80}</dt>\s{0,40}<dd\b[^>]{0,200}>.*?</dd>"
_ROW_OR_PAIR = _ROW + b"|" + _PAIR
_TAGGED = rb"(?is)<(th|td|dt|dd)\b[^>]{0,200}>\s{0,40}(?:<(?:code|b|strong|span|p|pre|tt|kbd)\b[^>]{0,100}>\s{0,40}){0,3}([^<]{0,300}?)\s{0,40}<"


def _markup_rows(data: bytes) -> Iterator[list[Span]]:
    """Yield the rows of tables and the pairs of definition lists.

    No pair is searched for behind the last `</dd>`: each one opened there would be read up to the end of the text.
    """
    last, position = data.lower().rfind(b"</dd>"), 0
    while (row := all_spans(_ROW_OR_PAIR if position <= last else _ROW).after(data, position)) is not None:
        yield row
        position = row[0][1]


def _markup(data: bytes) -> Iterator[Span]:
    """Yield the secrets in HTML tables and lists: below a header, or next to a name."""
    headers: list[str] = []
    for row in _markup_rows(data):
        yield row[0][0], row[0][0]
        cells = [
            (data[slice(*tag)].lower(), data[slice(*text)].decode("utf-8", "replace").strip(), text)
            for _, tag, text in all_spans(_TAGGED).each(data, *row[0])
        ]
        if _is_header(cells, headers):
            headers = [text for _, text, _ in cells]
            continue
        names = headers
        if len(cells) == 2 and not (len(headers) == 2 and _promise(headers[1])):
            names = ["", cells[0][1].rstrip(" :")]
        if len(cells) != len(names):
            continue
        for name, (_, text, span) in zip(names, cells, strict=True):
            promise = _promise(name)
            yield span if promise and _is_cell(text, promise) else (span[0], span[0])


def _is_header(cells: list[tuple[bytes, str, Span]], headers: list[str]) -> bool:
    """Whether a row is a header: by its tags or, for the first row, by its cells."""
    if not cells:
        return False
    if all(tag == b"th" for tag, _, _ in cells):
        return True
    return not headers and len(cells) > 1 and any(_promise(text) for _, text, _ in cells[1:])


RULES = (
    Rule(
        "table-secret",
        KEY_HINT,
        trigger=_HEAD,
        locate=_tables,
        generic=True,
        price=2,
        examples=(
            "| Service | Owner | API key |\n|---|---|---|\n| Vultr | Ada | ⟨A36⟩ |",
            "service,owner,client_secret\nKeycloak,Bob,⟨w32⟩",
            'name,type,value\nDEPLOY_TOKEN,secret,"⟨h40⟩"',
            "System\tLogin\tPassword\nERP\tada\tMaple-⟨d4⟩!",
            '"title";"user";"password"\n"gym";"ada52";"copper-maple-⟨d2⟩"',
            " login | password \n-------+----------\n ada   | Copper⟨d4⟩! \n(1 row)",
            "USER      TOKEN\nada       ⟨w32⟩\nbob       ⟨w32⟩",
            "| disk | passphrase |\n|---|---|\n| nas | harbor river copper jungle |",
            "| recovery code 1 | recovery code 2 |\n|---|---|\n| ⟨h4⟩1-⟨h5⟩ | ⟨h4⟩2-⟨h5⟩ |",
            "Benutzer;Passwort\nada;Kiefer⟨d3⟩!",
            "| service | user | password |\n|---|---|---|\n| wiki | bob | ⟨w12⟩7 |\n",
            "user,password,role\nbob,⟨w12⟩7,admin\n",
        ),
        near_misses=(
            "| Field | Password |\n|---|---|\n| Length | 12-64 |\n| Storage | bcrypt |",
            "user,password\nada,********\nbob,<redacted-by-ops>\neve,n/a",
            "| Service | Token |\n|---|---|\n| CI | ${CI_TOKEN} |\n| Web | 1Password |",
            "token,count\nhello,120\nworld,15000",
            "| option | token |\n|---|---|\n| limit | 4096 |\n",
            "name, password\nSome more text about them, which follows.\n",
            "| Feature | API key | OAuth |\n|---|---|---|\n| Rotation | every 90 days | automatic |",
            "| Key | Summary |\n|---|---|\n| PROJ-1234 | Fix the token |",
            "name,value\nTOKEN_TTL,3600\nKEY_SIZE,4096-bit",
            "It needs a password, a token, and time.\nNone of it, though, is2 here.",
            "| user | last_password_change |\n|---|---|\n| ada | 2024-05-01T10:00:00Z |",
        ),
    ),
    Rule(
        "markup-table-secret",
        KEY_HINT,
        trigger=r"</(?i:t[hd]|dt)[ >]",
        locate=_markup,
        generic=True,
        examples=(
            "<tr><th>User</th><th>Password</th></tr><tr><td>ada</td><td>Ember⟨d4⟩?!</td></tr>",
            "<table>\n<tr><td>API key</td><td><code>⟨w32⟩</code></td></tr>\n</table>",
            "<dl><dt>Password</dt><dd>Ember⟨d4⟩!</dd></dl>",
        ),
        near_misses=(
            "<tr><th>Field</th><th>Password</th></tr><tr><td>Length</td><td>required</td></tr>",
            "<td>Token</td><td>{{ token }}</td>",
        ),
    ),
)
