"""Status of the proxy: counts and windows, as JSON and as a page. No text, no payload, no credential."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from reverie.core.clock import to_iso
from reverie.ops.metrics import CONTENT_TYPE, Metrics
from reverie.protocols.responses.proxy.relay import Header, Send, header, start

PATH = b"/reverie/status"
METRICS = b"/reverie/metrics"
SHOWN = 200


@dataclass
class Counts:
    """Counters since the start."""

    started_at: int
    metrics: Metrics = field(default_factory=Metrics)
    """The same counts for Prometheus."""
    requests: Counter[str] = field(default_factory=Counter)
    """By outcome: passed_through, windowed, client_managed_chain, upstream_fault, and the reasons of refusals."""
    statuses: Counter[str] = field(default_factory=Counter)
    passes: Counter[str] = field(default_factory=Counter)
    cache_loss: Counter[str] = field(default_factory=Counter)
    tokens: Counter[str] = field(default_factory=Counter)

    def turn(self, diagnostics: Mapping[str, Any]) -> None:
        """Count a turn of a window."""
        self.metrics.window(diagnostics)
        if diagnostics["incremental_continuation"]:
            self.statuses[diagnostics["incremental_continuation"]["status"]] += 1
        if diagnostics["remote_compaction"]:
            self.passes[diagnostics["remote_compaction"]["status"]] += 1
        cache = diagnostics["cache"] or {}
        if cache.get("cache_loss"):
            self.cache_loss[cache["cache_loss"]] += 1
        for name in ("input_tokens", "cached_tokens"):
            if isinstance(cache.get(name), int):
                self.tokens[name] += cache[name]

    def document(self, upstream: str, windows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The status as JSON."""
        return {
            "name": "reverie proxy",
            "upstream": upstream,
            "startedAt": to_iso(self.started_at),
            "requests": dict(self.requests),
            "continuation": dict(self.statuses),
            "remoteCompaction": dict(self.passes),
            "cacheLoss": dict(self.cache_loss),
            "tokens": dict(self.tokens),
            "windows": list(windows),
        }


async def show(send: Send, headers: Sequence[Header], document: Mapping[str, Any], *, as_json: bool) -> int:
    """Answer the status route: a page for browsers, JSON for everyone else."""
    page = not as_json and b"text/html" in (header(headers, b"accept") or b"")
    if page:
        return await _send(send, _page(document).encode(), b"text/html; charset=utf-8")
    return await _send(send, orjson.dumps(document), b"application/json")


async def show_metrics(send: Send, counts: Counts) -> int:
    """Answer the metrics route."""
    return await _send(send, counts.metrics.render(), CONTENT_TYPE.encode())


async def _send(send: Send, data: bytes, kind: bytes) -> int:
    answered: list[Header] = [
        (b"content-type", kind),
        (b"content-length", str(len(data)).encode()),
        (b"cache-control", b"no-store"),
        (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'"),
        (b"x-content-type-options", b"nosniff"),
    ]
    await send(start(200, answered))
    await send({"type": "http.response.body", "body": data})
    return 200


_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:64rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}
table{border-collapse:collapse;margin:.5rem 0 1.5rem}
td,th{padding:.2rem .8rem .2rem 0;text-align:left;border-bottom:1px solid #ddd}
td.n{text-align:right}
@media(prefers-color-scheme:dark){body{background:#16181c;color:#ddd}td,th{border-color:#333}}
"""
_TITLES = {
    "requests": "Requests",
    "continuation": "Continuation",
    "remoteCompaction": "Compaction passes",
    "cacheLoss": "Cache loss",
    "tokens": "Tokens",
}
_COLUMNS = ("scope", "generation", "items", "compactionItems", "updatedAt")


def _page(document: Mapping[str, Any]) -> str:
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><title>Reverie proxy</title>",
        f"<style>{_STYLE}</style><h1>Reverie proxy</h1>",
        f"<p>Upstream {_text(document['upstream'])}, since {_text(document['startedAt'])}.</p>",
    ]
    for name, title in _TITLES.items():
        counted = document[name]
        if counted:
            rows = "".join(f"<tr><td>{_text(key)}<td class=n>{_text(value)}" for key, value in sorted(counted.items()))
            parts.append(f"<h2>{title}</h2><table>{rows}</table>")
    parts.append("<h2>Windows</h2>")
    windows = document["windows"]
    if windows:
        head = "".join(f"<th>{name}" for name in _COLUMNS)
        rows = "".join(
            "<tr>" + "".join(f"<td>{_text(shown[name])}" for name in _COLUMNS)
            for shown in ({**window, "updatedAt": to_iso(window["updatedAt"])} for window in windows[:SHOWN])
        )
        parts.append(f"<table><tr>{head}{rows}</table>")
    else:
        parts.append("<p>None yet. Send requests with the header x-reverie-scope, or with a prompt_cache_key.</p>")
    return "".join(parts)


def _text(value: Any) -> str:
    return html.escape("" if value is None else str(value))
