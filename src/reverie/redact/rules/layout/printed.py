"""Secrets that a command prints or takes: the line after `vault kv get -field=password`, the data of a manifest."""

# ruff: noqa: E501 (a pattern is easier to read in one piece)

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator

from reverie.redact.lazy import lazy
from reverie.redact.markers import Lazy
from reverie.redact.rules.literals import is_argument, is_literal, is_whole
from reverie.redact.rules.names import key_strength
from reverie.redact.rules.plausible import is_location, is_placeholder, is_random_value, is_scramble, is_term
from reverie.redact.rules.prose.languages import passes_for_key, passes_for_password
from reverie.redact.rules.rule import Rule, Span

# Commands that print the value of the name given as their argument, and commands that print only secrets.
_BY_NAME = lazy(
    rb"(?:\bconfig[: ]get|\bprintenv|\becho[ ][\"']?\$\{?|-field[= ]|\bterraform output(?: -raw)?|\bpulumi config get|\btofu output(?: -raw)?|\bgit config(?: --[a-z-]+)*|\bcat[ ]\S*/)"
    rb"[ ]?[\"']?([A-Za-z0-9_.\-]{2,80})\}?[\"']?(?:[ ][^\n]{0,80})?\s*\Z"
)
_ALWAYS = lazy(
    rb"\bop (?:read|item get)\b|\bpass show [A-Za-z0-9_.-]+/|find-generic-password\b[^\n]*-w|find-internet-password\b[^\n]*-w|with-decryption|get-secret-value\b|secrets versions access\b|get secrets?\b[^\n]*(?:jsonpath|base64|go-template)"
    rb"|dumpprivkey\b|\bgh auth token\b|print-(?:access|identity)-token|get-access-token\b|\bopenssl rand\b|\bpwgen\b|\bapg\b|keyvault secret show\b|\bsecret-tool lookup\b|\bkeyring get\b|\bbw get password\b|\bdescribe\b[^\n]*\| *base64 -d"
    rb"|\bcat [^\n]*(?:/run/secrets/|/secrets/|password|passwd\.txt|token|\.secret|initialAdminPassword|authtoken)[^\n/]*\s*\Z|\bvault token (?:create|lookup)[^\n]*-field|\bcreate token\b|\btoken:?create\b|\bgenerate-?(?:password|secret|key)\b"
)
_PRINTING = (
    r"config[: ]get|printenv|echo [\"']?\$|-field[= ]|(?:terraform|tofu) output|git config|\bop (?:read|item get)|pass show [A-Za-z0-9_.-]+/|find-(?:generic|internet)-password|with-decryption|get-secret-value|"
    r"secrets versions access|get secrets? |dumpprivkey|gh auth token|print-(?:access|identity)-token|get-access-token|openssl rand|pwgen|keyvault secret show|secret-tool|keyring get|bw get password|"
    r"cat [^\n ]*(?:secret|passw|Passw|token)|base64 -d|create token|token:?create"
)
_PRINTS = Lazy(_PRINTING.encode())
_LINE = lazy(rb"[ \t]*[\"']?([^\s\"']{6,2048})[\"']?[ \t]*\r?\Z")
_SALT = lazy(r"(?i)(?:AUTH|SECURE_AUTH|LOGGED_IN|NONCE)_(?:KEY|SALT)")


def _printed(data: bytes) -> Iterator[Span]:
    """Yield values that are alone on the line below such a command."""
    end = 0
    while (hit := _PRINTS.search(data, end)) is not None:
        yield hit.start(), hit.start()
        start, end = data.rfind(b"\n", 0, hit.start()) + 1, data.find(b"\n", hit.start())
        if end < 0:
            break
        if end - start > 500:
            continue
        command = data[start:end]
        named = _BY_NAME.search(command)
        name = named.group(1).decode("ascii") if named else ""
        strength = "secret" if _SALT.fullmatch(name) else key_strength(name)
        if not _ALWAYS.search(command) and not strength:
            continue
        stop = data.find(b"\n", end + 1)
        stop = len(data) if stop < 0 else stop
        line = _LINE.match(data[end + 1 : stop])
        if line is None:
            continue
        value = line.group(1).decode("utf-8", "replace")
        likely = (
            passes_for_key(value)
            or is_scramble(value)
            or (passes_for_password(value) and not value.endswith((":", ">", "$")))
        )
        if (likely or _text_of(value)) and is_whole(value):
            yield end + 1 + line.start(1), end + 1 + line.end(1)


def _text_of(value: str) -> bool:
    """Whether `value` is base64 of readable text."""
    if len(value) < 8 or len(value) % 4 or not re.fullmatch(r"[A-Za-z0-9+/]+={0,2}", value):
        return False
    try:
        plain = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return False
    return len(plain) >= 4 and all(0x20 <= c < 0x7F or c in b"\r\n\t" for c in plain)


_DATA = Lazy(rb"(?m:^)[ \t]{0,20}(?:data|stringData):[ \t]{0,3}(\{[^\n{}]+\}|\r?\n(?:[ \t]+[^\n]+(?:\n|\z))+)")
_ENTRY = Lazy(
    rb"([A-Za-z0-9_.\-]{1,80})[\"']?:[ \t]{1,3}[\"']?([A-Za-z0-9+/]{4,}={0,2})[\"']?[ \t]{0,3}(?:[,}\r\n]|\z)"
)
_KIND = lazy(rb"(?m)kind:[ \t]*[\"']?Secret\b")


def _data(data: bytes) -> Iterator[Span]:
    """Yield encoded values below `data:`: all of a Secret, elsewhere those with a credential word as name."""
    for block in _DATA.finditer(data):
        yield block.start(), block.start()
        around = data[max(0, block.start() - 600) : block.end() + 300]
        secret = _KIND.search(around) is not None
        for entry in _ENTRY.finditer(data, *block.span(1)):
            value = entry.group(2).decode("ascii")
            strength = key_strength(entry.group(1).decode("ascii"))
            named = strength in ("password", "secret")
            likely = (secret or named) and not is_placeholder(value)
            likely = likely and (_text_of(value) or (named and is_random_value(value)))
            yield entry.span(2) if likely else (entry.start(), entry.start())


def _phrase(text: str) -> bool:
    return is_literal(text) and not is_location(text) and (" " in text or not is_term(text))


def _configured(data: bytes, match_start: int, start: int, end: int) -> Span | None:
    """Find the value of `git config --global service.apiToken ...`, judged by the last part of its name."""
    words = data[match_start:start].decode("utf-8", "replace").strip(" =\"'").split()
    name = words[-1] if words else ""
    value = data[start:end].decode("utf-8", "replace")
    strength = key_strength(name.rsplit(".", 1)[-1].rsplit(":", 1)[-1])
    if strength not in ("password", "secret"):
        return None
    return (start, end) if passes_for_key(value) or (strength == "password" and passes_for_password(value)) else None


RULES = (
    Rule(
        "printed-secret",
        r"get",
        trigger=_PRINTING,
        locate=_printed,
        generic=True,
        examples=(
            'kubectl get secret db -o jsonpath="{.data.password}"\nQ29wcGVy⟨d2⟩Ck',
            "$ vault kv get -field=password secret/db\nHarbor#⟨d4⟩x",
            "$ wp config get AUTH_KEY\n0sI9^^⟨w20⟩)MS-wNic%og*(oU^*",
            "$ bitcoin-cli dumpprivkey bc1q\nK⟨w51⟩",
            "ada@box:~$ echo $DEPLOY_TOKEN\n⟨h40⟩",
            "$ cat /run/secrets/db_password\nHarbor#⟨d4⟩x",
            "$ heroku config:get API_TOKEN\n⟨h8⟩-⟨h4⟩-⟨h4⟩-⟨h4⟩-⟨h12⟩",
        ),
        near_misses=(
            "$ git config user.email\nada@example.org",
            "$ terraform output -raw cluster_name\nprod-eu-cluster-12",
            "$ echo $HOME\n/home/ada/work",
            "$ cat token_count.txt\n128000",
            "$ kubectl get secrets\nNAME   TYPE   DATA   AGE",
            "$ printenv DB_PASSWORD\n$",
        ),
    ),
    Rule(
        "manifest-data",
        r"data:",
        trigger=r"(?m:^)[ \t]*(?:data|stringData):[ \t]*(?:\{|\r?(?m:$))",
        locate=_data,
        examples=(
            "data:\n  username: YWRtaW4=\n  password: Q29wcGVyMTIh",
            "kind: Secret\nmetadata: {name: x}\ndata: {admin-password: Q29wcGVyMTIh}",
        ),
        near_misses=(
            "data:\n  region: eu-west-1\n  title: Overview",
            "kind: ConfigMap\ndata: {greeting: aGVsbG8gd29ybGQ=}",
            "data:\n  password:\n    valueFrom: vault",
        ),
    ),
    Rule(
        "stdin-password",
        r"\bpasswd[ ](?:[^\n]{0,40}[ ])?--stdin(?:[ ][A-Za-z0-9_.\-]{1,40})?[ ]{0,2}<<<[ ]{0,2}[\"']?([^\s\"'$][^\s\"']{3,128})"
        r"|\b(?:docker|podman|helm|oras|crane|skopeo|nerdctl)\b[^\n]{1,120}--password-stdin[^\n<]{0,80}<<<[ ]{0,2}[\"']?([^\s\"'$][^\s\"']{3,512})",
        trigger=r"stdin[^\n<]*<<<",
        check=lambda text: is_argument(text) and len(text) >= 5,
        examples=("passwd --stdin ada <<< 'Trumpet_⟨d4⟩'", 'docker login -u ada --password-stdin <<< "Trumpet_⟨d4⟩"'),
        near_misses=('passwd --stdin ada <<< "$PASSWORD"',),
    ),
    Rule(
        "keygen-phrase",
        r"\bssh-keygen\b[^\n]{0,160}?[ ]-[NP][ ]?(?:\"([^\"$\n]{5,128})\"|'([^'\n]{5,128})'|([^\s\"'\-$][^\s\"']{4,128}))",
        trigger=r"\bssh-keygen\b",
        check=_phrase,
        examples=(
            'ssh-keygen -t ed25519 -N "harbor river copper jungle" -f id_work',
            "ssh-keygen -p -P oldMaple⟨d2⟩ -f k",
        ),
        near_misses=("ssh-keygen -t ed25519 -N '' -f id_work", 'ssh-keygen -N "$PHRASE" -f id_work'),
    ),
    Rule(
        "configured-secret",
        r"\b(?:git|npm|yarn|pnpm|composer|poetry|pip|conda|gcloud|aws|pulumi|doctl|flyctl|firebase)[ ](?:functions:)?config(?:ure)?(?::set)?(?:[ ](?:set|add))?(?:[ ]--?[a-z\-]{1,20}){0,3}[ ][A-Za-z0-9_./:@][A-Za-z0-9_.\-/:@]{1,119}[ =][\"']?([^\s\"'\-$<][^\s\"']{7,512})",
        trigger=r"[ ](?:functions:)?config(?:ure)?(?::set)?[ ]",
        refine=_configured,
        generic=True,
        examples=(
            "git config --global jenkins.jenkinsApiToken ⟨h34⟩",
            "npm config set //registry.example.org/:_authToken ⟨w36⟩",
            "pulumi config set db:password Copper⟨d4⟩!",
        ),
        near_misses=(
            "git config --global credential.helper cache-daemon-2",
            "git config core.sshCommand /usr/bin/ssh2",
        ),
    ),
)
