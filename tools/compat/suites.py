"""The suites: which framework, which tests of theirs or ours, and why some of theirs do not apply."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Suite:
    """A framework with its extra, and the tests that are run with it."""

    name: str
    extra: str
    package: str
    """The distribution whose release is recorded."""
    needs: tuple[str, ...] = ()
    """What the tests need besides."""
    own: tuple[str, ...] = ()
    """Tests of ours, and examples, below the repository."""
    theirs: tuple[str, ...] = ()
    """Tests of theirs, below SOURCES."""
    plugin: str = ""
    too_long: tuple[str, ...] = ()
    """Names of their tests that would take many minutes; they are not run and not counted."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Names of their tests that do not apply, each with the reason."""


_COSINE = "checks the cosine of a made-up embedding of letters; Reverie ranks by words and its own vectors"
_INDEX = "looks at the store's own tables, migrations or embedding configuration"
_LOOP = "wants synchronous calls in an event loop to be refused; ours work there"
_SQL = "wants an error for a filter key that would break SQL; no SQL is made of keys here, it matches nothing"
_TTL = "wants reads not to renew unless configured, against the interface's documented default"
_ROWS = "looks at expired rows in their database; expired items are never returned here"

_SQLITE = "looks into their SQLite file, its connections, locks or damaged rows"
_WORDS = "wants the words of their error; ours says that the window is closed"

SUITES = (
    Suite(
        "LangGraph",
        "langgraph",
        "langgraph",
        needs=(
            "langgraph-checkpoint-sqlite",
            "langgraph-checkpoint-postgres",
            "pytest-asyncio",
            "pytest-mock",
            "pytest-retry",
        ),
        own=("examples/langgraph_store.py",),
        theirs=(
            "langgraph/libs/checkpoint/tests/test_store.py",
            "langgraph/libs/checkpoint-sqlite/tests/test_store.py",
            "langgraph/libs/checkpoint-sqlite/tests/test_async_store.py",
            "langgraph/libs/checkpoint-sqlite/tests/test_ttl.py",
            "langgraph/libs/checkpoint-postgres/tests/test_store.py",
            "langgraph/libs/checkpoint-postgres/tests/test_async_store.py",
        ),
        plugin="tools.compat.langgraph_plugin",
        too_long=("test_large_batches_async",),  # 10,000 puts, gets and searches at once, each of them durable
        left_out={
            "test_vector_search_with_filters": _COSINE,
            "test_async_vector_search_with_filters": _COSINE,
            "test_embed_with_path": _COSINE,
            "test_embed_with_path_sync": _COSINE,
            "test_embed_with_path_async": _COSINE,
            "test_embed_with_path_operation_config": _COSINE,
            "test_vector_update_with_embedding": _COSINE,
            "test_search_sorting": _COSINE,
            "test_scores": _COSINE,
            "test_vector_store_initialization": _INDEX,
            "test_nonnull_migrations": _INDEX,
            "test_sql_injection_vulnerability": _SQL,
            "test_no_running_loop": _LOOP,
            "test_ttl_override_default": _TTL,
            "test_store_ttl": _ROWS,
            "test_omit_expired_filters_read_paths": _ROWS,
            "test_omit_expired_disabled_preserves_expired_rows": _ROWS,
            "test_omit_expired_refresh_ttl_only_refreshes_live_rows": _ROWS,
            "test_omit_expired_search_pagination": _ROWS,
        },
    ),
    Suite(
        "Claude Agent SDK",
        "claude-agent",
        "claude-agent-sdk",
        own=("tools/compat/claude_agent.py", "examples/claude_agent_sessions.py"),
    ),
    Suite(
        "OpenAI Agents",
        "agents",
        "openai-agents",
        needs=("pytest-asyncio", "pytest-mock", "inline-snapshot", "sqlalchemy", "aiosqlite"),
        theirs=(
            "openai-agents/tests/memory/test_session.py",
            "openai-agents/tests/memory/test_session_limit.py",
        ),
        plugin="tools.compat.agents_plugin",
        left_out={
            "test_sqlite_session_close_closes_worker_thread_connections": _SQLITE,
            "test_sqlite_session_reaps_connections_from_exited_worker_threads": _SQLITE,
            "test_sqlite_session_closes_retired_connections_before_the_next_allocation": _SQLITE,
            "test_sqlite_session_keeps_connections_of_live_worker_threads": _SQLITE,
            "test_sqlite_session_closed_rejects_empty_add_items": _WORDS,
            "test_sqlite_session_pop_item_skips_corrupt_most_recent": _SQLITE,
            "test_sqlite_session_pop_item_returns_none_after_dropping_only_corrupt_rows": _SQLITE,
            "test_sqlite_session_get_items_limit_skips_corrupt_newest_rows": _SQLITE,
            "test_sqlite_session_get_items_session_settings_limit_skips_corrupt_rows": _SQLITE,
            "test_sqlite_session_file_lock_is_shared_across_instances": _SQLITE,
            "test_sqlite_session_failed_add_items_releases_write_lock": _SQLITE,
            "test_sqlite_session_failed_clear_session_rolls_back": _SQLITE,
            "test_sqlite_session_failed_pop_item_releases_write_lock": _SQLITE,
            "test_sqlite_session_rollback_failure_evicts_connection": _SQLITE,
            "test_sqlite_session_close_retries_quarantined_connection": _SQLITE,
            "test_sqlite_session_post_commit_cancellation_propagates_after_known_outcome": _SQLITE,
        },
    ),
    Suite("Google ADK", "adk", "google-adk", own=("tools/compat/adk.py", "examples/adk_memory.py")),
    Suite(
        "Agent Framework",
        "agent-framework",
        "agent-framework-core",
        own=("tools/compat/agent_framework.py", "examples/agent_framework_memory.py"),
    ),
    Suite(
        "Pydantic AI",
        "pydantic-ai",
        "pydantic-ai-slim",
        own=("examples/pydantic_ai_memory.py",),
    ),
)
