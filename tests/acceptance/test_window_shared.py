"""A window that others change at the same time, or whose scope is like another: nothing of anyone's is lost or kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from openai import OpenAI
from tests.responses_emulator import MODEL, Emulator, Turn, message, thought

import reverie
from reverie.responses import ResponsesWindow, SyncWindow, WindowPolicy, WindowState
from reverie.window.engine import BackgroundPending
from reverie.window.items import Item

SCOPE = "agent-1/task-4"


def recall(turn: Turn) -> list[dict[str, Any]]:
    return [thought(), message(f"I know {len(turn.facts)}: {' '.join(turn.facts)}")]


@pytest.fixture
def provider() -> Iterator[Emulator]:
    with Emulator(context=6000, model=recall) as emulator:
        yield emulator


def opened(provider: Emulator, memory: reverie.Memory, scope: str = SCOPE, **policy: Any) -> SyncWindow:
    client = OpenAI(api_key=provider.key, base_url=provider.url, max_retries=0)
    given = WindowPolicy(**{"trigger_input_tokens": 3000, **policy})
    return ResponsesWindow.open(client, store=memory, scope=scope, policy=given)


def user(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": text}


def between(patch: pytest.MonkeyPatch, window: SyncWindow, change: Callable[[], object]) -> None:
    """Let `change` happen once, after the window was read and before an item is taken out of it."""
    rewind, left = window.keeper.rewind, [change]

    def delayed(state: WindowState) -> Item | None:
        while left:
            left.pop()()
        return rewind(state)

    patch.setattr(window.keeper, "rewind", delayed)


def contents(window: SyncWindow) -> list[str]:
    return [item["content"] for item in window.items()]


def test_what_another_process_adds_while_an_item_is_taken_back_is_not_lost(
    provider: Emulator, memory: reverie.Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    window, other = opened(provider, memory), opened(provider, memory)
    window.append([user("one"), user("two")])
    between(monkeypatch, window, lambda: other.append([user("three")]))
    assert window.pop()["content"] == "three"
    assert contents(other) == contents(window) == ["one", "two"]


def test_an_item_taken_back_does_not_bring_a_dropped_window_back(
    provider: Emulator, memory: reverie.Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = opened(provider, memory, ledger=False)
    window.append([user("one"), user("two")])
    between(monkeypatch, window, lambda: memory.host.windows.drop(memory.actor, SCOPE))
    assert window.pop() is None
    assert memory.host.windows.all(memory.actor).items == []


def test_a_question_in_the_background_does_not_bring_a_dropped_window_back(
    provider: Emulator, memory: reverie.Memory
) -> None:
    window = opened(provider, memory)
    window.create(model=MODEL, input="fact:one")

    def drop(turn: Turn) -> list[dict[str, Any]]:
        memory.host.windows.drop(memory.actor, SCOPE)
        return recall(turn)

    provider.model = drop
    asked = window.create(model=MODEL, input="fact:two", background=True)
    assert asked.status == "queued"
    provider.model = recall
    assert memory.host.windows.all(memory.actor).items == []


def test_dropping_a_window_leaves_the_passes_of_a_scope_that_begins_like_it(
    provider: Emulator, memory: reverie.Memory
) -> None:
    provider.model = lambda turn: [thought(), message("lorem ipsum " * 800)]
    windows = memory.host.windows
    for scope in ("issue", "issue#7"):
        window = opened(provider, memory, scope, count_tokens="off")
        for number in range(4):
            window.create(model=MODEL, input=f"fact:{number}")
    own = [len(windows.passes(memory.actor, scope)) for scope in ("issue", "issue#7")]
    assert min(own) > 0
    assert {row["scope_id"] for row in windows.passes(memory.actor, "issue")} == {"issue"}
    windows.drop(memory.actor, "issue")
    assert len(windows.passes(memory.actor, "issue#7")) == own[1]


@pytest.mark.parametrize(
    ("work", "line"),
    [
        ({"work_item": "TASK-7"}, "Work item: id TASK-7"),
        ({"plan": "Ship it"}, "- Ship it"),
        ({"constraints": "no new dependency"}, "- no new dependency"),
    ],
)
def test_work_that_is_described_in_another_form_is_still_in_the_checkpoint(
    provider: Emulator, memory: reverie.Memory, work: dict[str, Any], line: str
) -> None:
    window = opened(provider, memory)
    window.note_work(**work)
    window.create(model=MODEL, input="fact:0 " + "lorem ipsum " * 900)
    report = window.compact()
    assert report is not None
    assert report["status"] in ("compacted", "rejected_no_reduction")
    (checkpoint,) = [e for e in memory.ref(SCOPE).list(limit=50).items if e.kind == "checkpoint"][:1]
    assert any(found.startswith(line) for found in checkpoint.content.splitlines())


def test_a_checkpoint_is_made_where_attributes_have_hardly_any_room(provider: Emulator, memory: reverie.Memory) -> None:
    memory.host.rules.set_policy(memory.actor, {"max_attribute_bytes": 600})
    window = opened(provider, memory)
    window.create(model=MODEL, input="fact:0 " + "lorem ipsum " * 900)
    assert window.compact() is not None


def test_a_question_in_the_background_is_known_elsewhere_when_the_quota_is_full(
    provider: Emulator, memory: reverie.Memory
) -> None:
    provider.polls = 0
    window = opened(provider, memory)
    window.create(model=MODEL, input="fact:one")
    memory.host.rules.set_policy(memory.actor, {"max_entries": 1})
    asked = window.create(model=MODEL, input="fact:two", background=True)
    assert window.diagnostics["background_pending"] == asked.id
    other = opened(provider, memory)  # another process
    assert other.create(model=MODEL, input="fact:three").output_text == "I know 3: fact:one fact:two fact:three"


def meanwhile(patch: pytest.MonkeyPatch, keeper: object, name: str, change: Callable[[], object]) -> None:
    """Let `change` happen once, just before the first call of a method of the keeper."""
    method, left = getattr(keeper, name), [change]

    def delayed(*args: Any, **more: Any) -> Any:
        while left:
            left.pop()()
        return method(*args, **more)

    patch.setattr(keeper, name, delayed)


def words(memory: reverie.Memory, scope: str = SCOPE) -> list[str]:
    return [entry.content for entry in memory.ref(scope).list(limit=100).items if entry.kind == "turn"]


@pytest.mark.parametrize("how", ["added", "fetched"])
def test_an_answer_in_the_background_is_taken_once_whatever_others_do_meanwhile(
    provider: Emulator, memory: reverie.Memory, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    provider.polls = 0
    window, other = opened(provider, memory), opened(provider, memory)
    window.create(model=MODEL, input="fact:one")
    asked = window.create(model=MODEL, input="fact:two", background=True)
    changes: dict[str, Callable[[], object]] = {
        "added": lambda: other.append([user("fact:three")]),
        "fetched": lambda: other.responses.retrieve(asked.id),
    }
    meanwhile(monkeypatch, window.keeper, "save_turn", changes[how])
    window.responses.retrieve(asked.id)
    window.create(model=MODEL, input="fact:four")
    assert words(memory).count("I know 2: fact:one fact:two") == 1
    assert str(window.items()).count("I know 2: fact:one fact:two") == 1


def test_a_question_that_ended_elsewhere_does_not_end_the_next_one(
    provider: Emulator, memory: reverie.Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    window, other = opened(provider, memory), opened(provider, memory)
    window.create(model=MODEL, input="fact:one")
    lost = window.create(model=MODEL, input="fact:two", background=True)
    del provider.vault.stored[lost.id]
    asked: list[Any] = []
    meanwhile(
        monkeypatch,
        window.keeper,
        "save_question",
        lambda: asked.append(other.create(model=MODEL, input="fact:three", background=True)),
    )
    provider.polls = 5
    with pytest.raises(BackgroundPending):
        window.create(model=MODEL, input="and?")
    provider.polls = 0
    provider.waiting.clear()
    other.responses.retrieve(asked[0].id)
    assert "I know 2: fact:one fact:three" in words(memory)


def test_a_window_made_of_words_that_are_forgotten_meanwhile_is_not_kept(
    provider: Emulator, memory: reverie.Memory
) -> None:
    window = opened(provider, memory)
    window.create(model=MODEL, input="fact:one Mira lives in Porto.")
    window.create(model=MODEL, input="fact:two")
    memory.host.windows.drop(memory.actor, SCOPE)

    def forget(turn: Turn) -> list[dict[str, Any]]:
        memory.forget("Mira", mentions=True)
        return [message("Noted.")]

    provider.model = forget
    window.create(model=MODEL, input="fact:three")
    provider.model = recall
    assert "Mira" not in str(window.items())
    assert "Mira" not in str(opened(provider, memory).items())
    assert "Mira" not in str([entry.content for entry in memory.ref(SCOPE).list(limit=100).items])
    window.create(model=MODEL, input="fact:four")
    assert "Porto" not in str(provider.requests("create")[-1].body)


def test_the_checkpoint_of_a_pass_does_not_bring_forgotten_words_back(
    provider: Emulator, memory: reverie.Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = opened(provider, memory)
    window.create(model=MODEL, input="fact:one Mira lives in Porto.")
    window.create(model=MODEL, input="fact:two")
    meanwhile(monkeypatch, window.keeper, "begin_pass", lambda: memory.forget("Mira", mentions=True))
    window.compact()
    assert "Porto" not in str([entry.content for entry in memory.ref(SCOPE).list(limit=100).items])


def test_the_checkpoint_of_a_server_compaction_does_not_bring_forgotten_words_back(
    provider: Emulator, memory: reverie.Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = opened(provider, memory, mode="server_side", server_compact_threshold=1500)
    window.create(model=MODEL, input="fact:one Mira lives in Porto.")
    window.create(model=MODEL, input="fact:two " + "lorem ipsum " * 900)
    kept = [entry.kind for entry in memory.ref(SCOPE).list(limit=100).items]
    meanwhile(monkeypatch, window.keeper, "save_turn", lambda: memory.forget("Mira", mentions=True))
    window.create(model=MODEL, input="fact:three " + "dolor sit " * 900)
    assert kept
    assert "Porto" not in str([entry.content for entry in memory.ref(SCOPE).list(limit=100).items])
