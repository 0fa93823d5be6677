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
    """Tests of theirs, below SOURCES; the first folder is a release or a checkout."""
    plugin: str = ""
    """The pytest plugin that puts our adapter where their tests make one of theirs."""
    options: tuple[str, ...] = ("-o", "asyncio_mode=auto")
    select: str = ""
    """Which of the tests are about what we implement, as pytest's -k takes it; the others are not run, not counted."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Names of their tests that do not apply, each with the reason."""


_COSINE = "expects the order or cosines of a made-up embedding of letters; Reverie ranks by words and its own vectors"
_FIELDS = "expects the best of one vector for each field as the score; Reverie scores the text of an item as a whole"
_QUERIES = "compares the scores of two queries; Reverie's scores order the hits of one query"
_INDEX = "inspects their connections, tables, migrations or embedding configuration"
_LOOP = "expects synchronous calls in an event loop to be refused; ours work there"
_SQL = "expects an error for a filter key that would break SQL; here a key never becomes SQL and matches nothing"
_TTL = "expects reads not to renew unless configured, against the interface's documented default"
_ROWS = "changes or reads times in rows of their database; expired items are never returned here"

_TURNS = "gives the store a fixed number of turns of the event loop; ours works in a thread"

_SQLITE = "inspects their SQLite file, its connections, locks or damaged rows"
_WORDS = "expects the text of their error; ours says that the window is closed"

_WRAPPED = "inspects the list or the connections of the session that theirs wraps, or calls its private methods"
_AS_STORED = "expects ids and statuses as they were stored; ours returns items in the form in which they are sent"

_TIES = "expects memories that share equally many words in the order they were added; Reverie ranks by meaning too"

_FILES = "inspects the file of their provider, its name, format or serializer"
_STATE = "expects messages in the session's state; ours are in the store"
_PIECES = "joins the pieces of a call as an earlier release did; it fails with their own provider too"

_DISK = "is about modes and links on a disk"

_JSONL = "reads the file of the reference server; ours are entries"

_LOCAL = "reads or writes the JSON file of their store, its path, its lock or its id generator"
_COUNT = "expects every text that shares a word, scored by their number; ours returns answers, scored by confidence"

_ACCESS = "expects a recall to write the time of the last access; reads write nothing here"

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
            "langgraph_checkpoint-*/tests/test_store.py",
            "langgraph_checkpoint_sqlite-*/tests/test_store.py",
            "langgraph_checkpoint_sqlite-*/tests/test_async_store.py",
            "langgraph_checkpoint_sqlite-*/tests/test_ttl.py",
            "langgraph_checkpoint_postgres-*/tests/test_store.py",
            "langgraph_checkpoint_postgres-*/tests/test_async_store.py",
        ),
        plugin="tools.compat.langgraph_plugin",
        left_out={
            "test_scores": _COSINE,
            "test_embed_with_path": _FIELDS,
            "test_embed_with_path_operation_config": _FIELDS,
            "test_embed_with_path_sync": _FIELDS,
            "test_vector_search_edge_cases": _QUERIES,
            "test_vector_store_initialization": _INDEX,
            "test_abatch_uses_single_pool_checkout": _INDEX,
            "test_sql_injection_vulnerability": _SQL,
            "test_no_running_loop": _LOOP,
            "test_ttl_override_default": _TTL,
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
        needs=("anyio[trio]",),
        own=("tools/compat/claude_agent.py", "examples/claude_agent_sessions.py"),
        theirs=(
            "claude_agent_sdk-*/tests/test_session_store_conformance.py",
            "claude_agent_sdk-*/tests/test_session_helpers_store.py",
            "claude_agent_sdk-*/tests/test_session_import.py",
            "claude_agent_sdk-*/tests/test_session_resume.py",
            "claude_agent_sdk-*/tests/test_session_summary.py",
            "claude_agent_sdk-*/tests/test_transcript_mirror.py",
        ),
        plugin="tools.compat.claude_plugin",
        options=("-p", "no:asyncio"),
        left_out={
            "test_load_concurrency_is_bounded": _TURNS,
            "test_gap_fill_bounded_concurrency": _TURNS,
            "test_cancelled_after_mkdtemp_cleans_temp_dir": _TURNS,
            "test_eager_flush_mode_appends_per_frame_before_result": _TURNS,
        },
    ),
    Suite(
        "Anthropic",
        "anthropic",
        "anthropic",
        needs=(
            "anthropic[aiohttp]",
            "pytest-asyncio",
            "respx",
            "dirty-equals",
            "inline-snapshot",
            "http-snapshot",
            "rich",
            "nest_asyncio",
        ),
        theirs=(
            "anthropic-*/tests/lib/tools/memory_tools/test_filesystem.py",
            "anthropic-*/tests/api_resources/beta/test_memory_stores.py",
            "anthropic-*/tests/api_resources/beta/test_dreams.py",
            "anthropic-*/tests/api_resources/beta/memory_stores/test_memories.py",
            "anthropic-*/tests/api_resources/beta/memory_stores/test_memory_versions.py",
        ),
        plugin="tools.compat.anthropic_plugin",
        options=("-p", "tests._alias_httpx", "-o", "addopts=", "-o", "filterwarnings=default"),
        left_out={
            "test_mkdir_parents_not_world_writable_under_permissive_umask": _DISK,
            "test_validate_path_returns_resolved_path_not_symlink_target": _DISK,
            "test_symlink_validation_reject_symlink_pointing_outside_memories": _DISK,
            "test_symlink_validation_reject_creating_files_through_symlink_pointing_outside": _DISK,
            "test_symlink_validation_reject_parent_directory_that_is_symlink_pointing_outside": _DISK,
            "test_read_rejects_symlink_created_after_validation": _DISK,
            "test_read_rejects_file_replaced_with_symlink_before_open": _DISK,
            "test_view_rejects_directory_symlink_created_after_validation": _DISK,
            "test_view_lists_symlinks_only_when_they_stay_inside_memories": _DISK,
        },
    ),
    Suite(
        "Reference MCP server",
        "mcp",
        "mcp",
        theirs=("servers/src/memory/__tests__/knowledge-graph.test.ts",),
        left_out={
            "should handle JSONL format correctly": _JSONL,
            "should strip type field from entities when loading from file": _JSONL,
        },
    ),
    Suite(
        "OpenAI Agents",
        "agents",
        "openai-agents",
        needs=("pytest-asyncio", "pytest-mock", "inline-snapshot", "sqlalchemy", "aiosqlite", "cryptography"),
        theirs=(
            "openai_agents-*/tests/memory/test_session.py",
            "openai_agents-*/tests/memory/test_session_limit.py",
            "openai_agents-*/tests/memory/test_openai_responses_compaction_session.py",
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
            "test_automatic_compaction_rollback_budget": _WRAPPED,
            "test_settled_pop_failure_invalidates_response_chain": _WRAPPED,
            "test_settled_clear_failure_invalidates_response_chain": _WRAPPED,
            "test_run_compaction_restores_history_when_cancelled_again_during_restore": _WRAPPED,
            "test_run_compaction_preserves_history_when_output_normalization_fails": _AS_STORED,
            "test_deferred_compaction_persists_across_tool_turns": _AS_STORED,
        },
    ),
    Suite(
        "Google ADK",
        "adk",
        "google-adk",
        needs=("pytest-asyncio",),
        own=("tools/compat/adk.py", "examples/adk_memory.py"),
        theirs=("adk-python/tests/unittests/memory/test_in_memory_memory_service.py",),
        plugin="tools.compat.adk_plugin",
        left_out={"test_search_memory_returns_at_most_ten_memories": _TIES},
    ),
    Suite(
        "Agent Framework",
        "agent-framework",
        "agent-framework-core",
        needs=("pytest-asyncio", "opentelemetry-sdk"),
        own=("tools/compat/agent_framework.py", "examples/agent_framework_memory.py"),
        theirs=("agent-framework/python/packages/core/tests/core/test_sessions.py",),
        plugin="tools.compat.agent_framework_plugin",
        select="HistoryProvider or TestContextProvider",
        left_out={
            "test_state_is_serializable": _STATE,
            "test_after_run_stores_coalesced_code_interpreter_chunks": _PIECES,
            "test_is_marked_experimental": _FILES,
            "test_uses_msgspec_json_by_default": _FILES,
            "test_stores_and_loads_length_prefixed_msgpack": _FILES,
            "test_msgpack_rejects_custom_json_codecs": _FILES,
            "test_custom_json_codecs_are_deprecated": _FILES,
            "test_stores_and_loads_messages": _FILES,
            "test_reads_existing_stdlib_non_finite_json": _FILES,
            "test_creates_storage_directory": _FILES,
            "test_uses_encoded_filename_for_unsafe_session_id": _FILES,
            "test_allows_custom_serializers_returning_bytes": _FILES,
            "test_invalid_jsonl_line_raises": _FILES,
            "test_truncated_msgpack_record_raises": _FILES,
            "test_none_session_id_uses_default_jsonl_file": _FILES,
            "test_non_mapping_jsonl_line_raises": _FILES,
            "test_serializer_must_return_single_line_json": _FILES,
            "test_concurrent_writes_for_same_session_are_locked": _FILES,
        },
    ),
    Suite(
        "Pydantic AI",
        "pydantic-ai",
        "pydantic-ai-slim",
        own=("examples/pydantic_ai_memory.py",),
    ),
    Suite(
        "LlamaIndex",
        "llama-index",
        "llama-index-core",
        own=("tools/compat/llama_index.py", "examples/llama_index_memory.py"),
    ),
    Suite(
        "Strands Agents",
        "strands",
        "strands-agents",
        needs=("pytest-asyncio", "moto[server]", "boto3"),
        own=("tools/compat/strands.py", "examples/strands_memory.py"),
        theirs=("strands_agents-*/tests/strands/vended_memory_stores/test_memory_store/test_store.py",),
        plugin="tools.compat.strands_plugin",
        left_out={
            "test_raises_when_explicit_path_is_empty": _LOCAL,
            "test_defaults_to_a_sanitized_path_under_the_home_memory_dir": _LOCAL,
            "test_uses_the_monkeypatchable_id_generator": _LOCAL,
            "test_raises_clear_error_on_corrupt_file": _LOCAL,
            "test_raises_clear_error_on_wrong_shape_file": _LOCAL,
            "test_raises_clear_error_on_malformed_record": _LOCAL,
            "test_raises_clear_error_on_non_object_metadata": _LOCAL,
            "test_accepts_null_metadata_as_absent": _LOCAL,
            "test_reused_across_separate_event_loops": _LOCAL,
            "test_raises_clear_error_when_path_is_unreachable": _LOCAL,
            "test_loads_a_file_written_in_the_shared_camelcase_format": _LOCAL,
            "test_ranks_higher_overlap_first_with_relevance_score": _COUNT,
        },
    ),
    Suite(
        "CrewAI",
        "crewai",
        "crewai",
        needs=("pytest-asyncio",),
        own=("tools/compat/crewai.py", "examples/crewai_memory.py"),
        theirs=(
            "crewai-*/tests/memory/test_unified_memory.py",
            "crewai-*/tests/memory/test_memory_root_scope.py",
        ),
        plugin="tools.compat.crewai_plugin",
        left_out={
            "test_recall_does_not_refresh_access_time_when_read_only": _ACCESS,
        },
    ),
)
