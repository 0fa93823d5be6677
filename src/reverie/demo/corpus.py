"""The corpus of the tour, written for it. Names are first names; the product, the clubs and the team do not exist.

Some memories hold a secret. The file names only its kind; the value is made up when the corpus is loaded, the same each
time, so that no file of this project holds anything that looks like a secret.
"""

from __future__ import annotations

import base64
import random
import string
from functools import cache
from importlib import resources
from typing import Any

import orjson

FILE = "team.jsonl"
_LETTERS = string.ascii_letters + string.digits
_UPPER = string.ascii_uppercase + string.digits


@cache
def fakes() -> dict[str, str]:
    """A made-up secret of every kind that the corpus names."""
    chance = random.Random("tidebook")  # noqa: S311  (nothing here is secret)

    def some(count: int, alphabet: str = _LETTERS) -> str:
        return "".join(chance.choices(alphabet, k=count))

    claims = base64.urlsafe_b64encode(b'{"sub":"demo","iat":1757000000}').decode().rstrip("=")
    header = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').decode().rstrip("=")
    return {
        "source-host-token": "gh" + "p_" + some(36),
        "database-url": "postgresql" + "://tidebook:" + some(14) + "@reed-2:5432/tidebook",
        "payment-key": "sk" + "_live_" + some(24),
        "chat-webhook": "https://hooks.sl"
        + "ack.com/services/T"
        + some(8, _UPPER)
        + "/B"
        + some(8, _UPPER)
        + "/"
        + some(24),
        "told-password": some(12),
        "cloud-key": "AK" + "IA" + some(16, string.ascii_uppercase + "234567"),
        "session-token": f"{header}.{claims}.{some(43)}",
        "model-key": "sk" + "-proj-" + some(48),
    }


def entries() -> list[dict[str, Any]]:
    """The memories, oldest first, as `put_many` takes them; secrets in place."""
    lines = resources.files(__package__).joinpath(FILE).read_bytes().splitlines()
    return [_entry(orjson.loads(line)) for line in lines]


def _entry(row: dict[str, Any]) -> dict[str, Any]:
    fake, actor = row.pop("fake", None), row.pop("actor")
    content = row["content"].replace("{secret}", fakes()[fake]) if fake else row["content"]
    return {**row, "content": content, "source": {"actor": actor}}
