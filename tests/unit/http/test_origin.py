"""Who may ask, judged from the headers of a request."""

from __future__ import annotations

from typing import Any

import pytest

from reverie.core.errors import Invalid
from reverie.http.origin import OriginPolicy, is_loopback, split_host


def refused(policy: OriginPolicy, *, port: int = 8484, **headers: str | list[str]) -> str | None:
    """The code of a refusal, or None."""
    sent = [
        (name.replace("_", "-").encode(), value.encode("latin-1"))
        for name, values in headers.items()
        for value in ([values] if isinstance(values, str) else values)
    ]
    scope: dict[str, Any] = {"type": "http", "scheme": "http", "headers": sent, "server": ("127.0.0.1", port)}
    found = policy.refused(scope)
    return found.code if found else None


@pytest.mark.parametrize("listen", ["127.0.0.1", "localhost", "::1", "127.9.9.9"])
def test_on_loopback_only_loopback_names_are_served(listen: str) -> None:
    policy = OriginPolicy.of(listen)
    for host in ("localhost", "LOCALHOST:8484", "localhost.", "127.0.0.1:1", "[::1]", "[::1]:8484", "127.8.8.8"):
        assert refused(policy, host=host) is None, host
    for host in ("evil.example", "0.0.0.0", "10.0.0.1", "localhost.evil.example", "[::2]", "127.0.0.1.nip.example"):
        assert refused(policy, host=host) == "forbidden_host", host
    for odd in (
        "",
        "a b",
        "[::1",
        "[::1]x",
        "localhost:x",
        "localhost:999999",
        "user@localhost",
        "localhost/a",
        "a..b",
    ):
        assert refused(policy, host=odd) == "validation_error", odd
    assert refused(policy) == "validation_error"
    assert refused(policy, host=["localhost", "localhost"]) == "validation_error"


def test_on_another_address_every_name_is_served_until_names_are_listed() -> None:
    policy = OriginPolicy.of("0.0.0.0")
    for host in ("memory.example", "10.0.0.1:8484", "localhost"):
        assert refused(policy, host=host) is None
    assert refused(policy) is None  # HTTP/1.0, as some health checks speak it
    assert refused(policy, host=["a.example", "b.example"]) == "validation_error"
    listed = OriginPolicy.of("0.0.0.0", hosts="memory.example, Other.Example:8443")
    for host in (
        "memory.example",
        "memory.example:99",
        "other.example:8443",
        "10.0.0.1:8484",
        "[fe80::1]",
        "localhost",
    ):
        assert refused(listed, host=host) is None, host
    for host in ("evil.example", "other.example", "sub.memory.example"):
        assert refused(listed, host=host) == "forbidden_host", host
    assert refused(OriginPolicy.of("127.0.0.1", hosts="*"), host="evil.example") is None


def test_pages_of_other_origins_are_refused() -> None:
    policy = OriginPolicy.of("127.0.0.1", origins="https://app.example, http://Localhost:3000/")
    for page in ("https://app.example", "http://localhost:3000", "http://localhost:8484", "https://localhost:8484"):
        assert refused(policy, host="localhost:8484", origin=page, sec_fetch_site="cross-site") is None, page
    for page in (
        "null",
        "http://app.example",
        "https://app.example:444",
        "http://localhost:8485",
        "localhost:8484",
        "",
    ):
        assert refused(policy, host="localhost:8484", origin=page) == "forbidden_origin", page
    assert refused(policy, host="localhost:8484", origin=["http://localhost:8484"] * 2) == "forbidden_origin"
    for site in ("cross-site", "same-site", "anything"):
        assert refused(policy, host="localhost", sec_fetch_site=site) == "forbidden_origin"
    assert refused(policy, host="localhost", sec_fetch_site=["none", "cross-site"]) == "forbidden_origin"


def test_behind_a_proxy_that_ends_tls_own_pages_are_known() -> None:
    policy = OriginPolicy.of("0.0.0.0")
    assert refused(policy, host="memory.example", origin="https://memory.example") is None
    assert refused(policy, host="memory.example:443", origin="https://memory.example") is None
    assert refused(policy, host="memory.example:8443", origin="https://memory.example") == "forbidden_origin"


def test_a_strict_policy_takes_its_own_port_and_no_pages() -> None:
    policy = OriginPolicy(own_port=True, own_pages=False)
    assert refused(policy, host="localhost:8484") is None
    assert refused(policy, host="localhost:80") == "forbidden_host"
    assert refused(policy, host="localhost") == "forbidden_host"
    assert refused(policy, host="localhost", port=80) is None
    assert refused(policy, host="localhost:8484", origin="http://localhost:8484") == "forbidden_origin"


@pytest.mark.parametrize("listed", ["http://a.example", "a.example/x", "a b", "a.example:x"])
def test_a_name_that_no_host_header_can_have_is_refused_at_start(listed: str) -> None:
    with pytest.raises(Invalid, match="REVERIE_ALLOWED_HOSTS"):
        OriginPolicy.of("127.0.0.1", hosts=listed)


@pytest.mark.parametrize("listed", ["*", "a.example", "ftp://a.example", "https://a.example/x", "https://", "null"])
def test_an_origin_that_no_page_can_have_is_refused_at_start(listed: str) -> None:
    with pytest.raises(Invalid, match="REVERIE_ALLOWED_ORIGINS"):
        OriginPolicy.of("127.0.0.1", origins=listed)


def test_hosts_are_read_strictly() -> None:
    assert split_host(b"[2001:DB8::1]:80") == ("2001:db8::1", 80)
    assert split_host(b"Name.Example.:8080") == ("name.example", 8080)
    assert split_host(b"\xff") is None
    assert is_loopback("::1")
    assert not is_loopback("localhost.example")
