"""Control: tenants, keys and settings, above every scope."""

from __future__ import annotations

from reverie.core.query import Key
from reverie.store.conformance.lab import Lab, refuses
from reverie.store.contract import ControlTx, WriteTx


def _key(key_id: str, tenant: str = "acme", created_at: int = 5) -> Key:
    return Key(key_id, tenant, b"digest", "laptop", ("read", "write"), 4, ("mem:*",), created_at, 1_000)


def keys_come_back_as_stored(lab: Lab) -> None:
    """Keys are found by id, and listed by tenant, oldest first."""
    keys = [_key("b", created_at=1), _key("a", created_at=2), _key("c", "rival", created_at=0)]
    for key in keys:
        lab.store.control(lambda tx, key=key: tx.add_key(key), write=True)  # type: ignore[misc]
    assert lab.store.control(lambda tx: tx.key("a")) == keys[1]
    assert lab.store.control(lambda tx: tx.key("nobody")) is None
    assert lab.store.control(lambda tx: tx.keys("acme")) == keys[:2]
    assert [k.id for k in lab.store.control(lambda tx: tx.keys())] == ["c", "b", "a"]


def a_key_is_revoked_at_an_instant(lab: Lab) -> None:
    """A key is revoked now or later; False for an unknown key."""
    lab.store.control(lambda tx: tx.add_key(_key("a")), write=True)
    assert lab.store.control(lambda tx: tx.revoke_key("a", at=77), write=True)
    assert not lab.store.control(lambda tx: tx.revoke_key("nobody", at=77), write=True)
    assert lab.store.control(lambda tx: tx.revoke_key("a", at=99), write=True)  # the earlier revocation stays
    key = lab.store.control(lambda tx: tx.key("a"))
    assert key is not None
    assert key.revoked_at == 77


def settings_are_kept_and_replaced(lab: Lab) -> None:
    """Settings are bytes by name."""
    assert lab.store.control(lambda tx: tx.setting("conformance")) is None
    for value in (b"1", bytes(range(256))):
        lab.store.control(lambda tx, value=value: tx.set_setting("conformance", value), write=True)  # type: ignore[misc]
        assert lab.store.control(lambda tx: tx.setting("conformance")) == value
    assert lab.store.control(lambda tx: tx.take_setting("conformance"), write=True) == bytes(range(256))
    assert lab.store.control(lambda tx: tx.take_setting("conformance"), write=True) is None
    assert lab.store.control(lambda tx: tx.setting("conformance")) is None


def a_body_that_fails_leaves_nothing(lab: Lab) -> None:
    """A body above tenants is one transaction too, and the next one works."""

    def body(tx: ControlTx) -> None:
        tx.set_setting("conformance", b"1")
        tx.add_key(_key("a"))
        raise KeyError

    with refuses(KeyError):
        lab.store.control(body, write=True)
    assert lab.store.control(lambda tx: (tx.setting("conformance"), tx.keys())) == (None, [])
    lab.store.control(lambda tx: tx.add_key(_key("a")), write=True)
    with refuses(Exception):
        lab.store.control(lambda tx: tx.add_key(_key("a")), write=True)
    assert len(lab.store.control(lambda tx: tx.keys())) == 1


def tenants_are_made_by_their_first_write(lab: Lab) -> None:
    """Neither a read nor a write that fails makes a tenant."""

    def fails(_: object) -> None:
        raise KeyError

    lab.get("x", tenant="reader")
    with refuses(KeyError):
        lab.write(fails, tenant="failed")
    lab.put(tenant="b")
    lab.put(tenant="a")
    with refuses(KeyError):
        lab.write(fails, tenant="a")
    assert lab.store.control(lambda tx: tx.tenants()) == ["a", "b"]


def tenants_are_awake_when_their_instant_has_come(lab: Lab) -> None:
    """A new tenant wakes at once; then at the earliest instant requested, until one is set with `exactly`."""

    def awake() -> list[str]:
        return lab.store.control(lambda tx: tx.awake())

    def wake(tenant: str, at: int | None, *, exactly: bool = False) -> None:
        lab.write(lambda tx: tx.wake(at, exactly=exactly), tenant=tenant)

    now = lab.clock.now()
    lab.put(tenant="acme")
    lab.put(tenant="rival")
    assert sorted(awake()) == ["acme", "rival"]
    wake("acme", None, exactly=True)
    wake("rival", now + 10, exactly=True)
    assert awake() == []
    wake("acme", now + 20)
    wake("acme", now + 5)
    wake("acme", now + 30)
    lab.clock.advance(5)
    assert awake() == ["acme"]
    wake("acme", now + 15, exactly=True)
    assert awake() == []
    lab.clock.advance(5)
    assert awake() == ["rival"]
    lab.clock.advance(5)
    assert awake() == ["rival", "acme"]
    wake("rival", None, exactly=True)
    wake("rival", None)
    assert awake() == ["acme"]


def waking_is_undone_with_the_transaction(lab: Lab) -> None:
    """An instant that was set in a transaction that fails is not kept."""

    def fails(tx: WriteTx) -> None:
        tx.wake(tx.now)
        raise KeyError

    lab.write(lambda tx: tx.wake(None, exactly=True))
    with refuses(KeyError):
        lab.write(fails)
    assert lab.store.control(lambda tx: tx.awake()) == []


def the_store_can_be_checked(lab: Lab) -> None:
    """The check of a sound store succeeds, and returns its size."""
    lab.put()
    report = lab.store.check()
    assert report["schema"]
    assert report["bytes"] > 0
