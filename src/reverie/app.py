"""The composition root: makes a store, a host and an ASGI application from the settings. Only this file names SQLite
and PostgreSQL."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from reverie.core.clock import SystemClock
from reverie.core.errors import Invalid, StoreCorrupt
from reverie.core.extras import require
from reverie.core.pause import Pausing, unpaused
from reverie.host import Host
from reverie.privacy.ledger import FileLedger
from reverie.providers.tokenizer import TokenCounter
from reverie.redact import Redactor, load_redactor
from reverie.services import FieldOptions, Services
from reverie.settings import Settings
from reverie.store.cipher import FileCipher
from reverie.store.sql import load_migrations
from reverie.store.sqlite import SqliteStore
from reverie.store.sqlite.faults import RESTORE
from reverie.store.sqlite.seal import seal

if TYPE_CHECKING:
    from reverie.core.actor import Actor
    from reverie.core.job import JobQueue
    from reverie.core.ports import Clock, Embedder
    from reverie.distil.request import Distiller
    from reverie.http.application import Application
    from reverie.jobs.worker import Runner
    from reverie.ops.metrics import Metrics
    from reverie.ops.traces import Traces
    from reverie.providers.chat import ChatModel
    from reverie.providers.llm import LlmDistiller
    from reverie.store.contract import Store
    from reverie.window import WindowPolicy


def build_host(
    settings: Settings,
    *,
    create: bool = True,
    embedder: Embedder | None = None,
    distiller: Distiller | None = None,
    clock: Clock | None = None,
) -> Host:
    """A host over the configured store. `create=False` refuses to make a new database.

    `embedder` and `clock` replace the configured ones; `distiller` is added under its own name.
    """
    model = build_distiller(settings)
    distillers: dict[str, Distiller] = {"llm": model} if model else {}
    if distiller is not None:
        if distiller.name in ("extractive", "none"):
            raise Invalid("A distiller of your own has a name of its own: not extractive and not none.")
        distillers[distiller.name] = distiller
    tokens = TokenCounter(settings.tokenizer) if settings.tokenizer != "none" else None
    return Host(
        Services(
            store=build_store(settings, create=create, clock=clock),
            redactor=build_redactor(settings.redact_rules),
            embedder=embedder or build_embedder(settings.embedder),
            tokens=tokens,
            cipher=FileCipher(settings.key_path) if settings.database != ":memory:" or settings.key_file else None,
            ledger=FileLedger(settings.ledger_path) if settings.database != ":memory:" else None,
            distillers=distillers,
            clock=clock or SystemClock(),
            chat=model.chat(tokens.count) if model and tokens else None,
            agent_fixtures=settings.openwop_seams,
            own_secrets={"model-api-key": settings.model_api_key.reveal()} if settings.model_api_key else {},
            jobs=_queue(settings),
            read_only=settings.read_only,
            workspace_files=settings.openwop_workspace,
            agents_folder=settings.agents,
            field=FieldOptions(settings.akashik_ref, settings.akashik_level, settings.akashik_faults),
        )
    )


@cache
def build_redactor(own_rules: str) -> Redactor:
    """The redactor, shared by all hosts of a process: it never changes, and its rules take a tenth of a second to load.

    A file of own rules is read and tested at once. Raises Invalid, naming the fault in it.
    """
    if not own_rules:
        return load_redactor()
    from reverie.redact import RULES
    from reverie.redact.rules.loader import own

    return Redactor((*RULES, *own(Path(own_rules))))


@cache
def build_embedder(name: str) -> Embedder | None:
    """The embedder, shared by all hosts of a process: a model never changes, and takes 16 MB or more.

    Raises MissingExtra with the command that installs the packages it needs.
    """
    if name == "static":
        from reverie.providers.static import StaticEmbedder

        return StaticEmbedder()
    if name == "minilm":
        from reverie.providers.minilm import MiniLmEmbedder

        return MiniLmEmbedder()
    if name == "multilingual":
        from reverie.providers.multilingual import MultilingualEmbedder

        return MultilingualEmbedder()
    return None


def build_store(settings: Settings, *, create: bool = True, clock: Clock | None = None) -> Store:
    """The configured store. Raises MissingExtra when the driver for it is not installed."""
    if settings.postgres:
        for package in ("psycopg", "psycopg_pool", "procrastinate"):
            require(package, extra="postgres", purpose="PostgreSQL")
        from reverie.store.postgres import PostgresStore

        return PostgresStore(
            settings.postgres,
            create=create,
            pool_size=settings.database_pool,
            clock=clock,
            index=settings.index_folder,
        )
    return SqliteStore(settings.database, create=create, read_only=settings.read_only, reserve=True, clock=clock)


def upgrade_store(settings: Settings, *, finish: bool, reseal: bool = False) -> tuple[int, list[int]]:
    """Bring the schema up to this release. Returns its number, and the steps that wait for `finish` (none on SQLite).

    On SQLite, `finish` gives the pages of an older file checksums. `reseal` also renews checksums that do not fit,
    after verifying everything that can be verified without them.
    """
    if not settings.postgres:
        store = SqliteStore(settings.database, create=False, trust_pages=reseal)
        try:
            if finish:
                _verify(Host(Services(store=store)))
        finally:
            store.close()
        if finish:
            seal(settings.database, accept=reseal)
        return len(load_migrations("reverie.store.sqlite")), []
    build_store(settings, create=False).close()
    from reverie.store.postgres.migrate import applied, migrate, pending
    from reverie.store.postgres.pool import connect

    with connect(settings.postgres) as connection:
        if finish:
            migrate(connection, SystemClock().now(), create=False, post=True)
        have = applied(connection)
    return max(have), [number for number, _, _ in pending(have, post=True)]


def _verify(host: Host) -> None:
    host.parts.store.check()
    for name in host.tenants():
        verdict = host.audit.verify(host.system_actor(name))
        if not verdict.ok:
            raise StoreCorrupt(
                f"The log of tenant {name} is broken at {verdict.broken_at}: {verdict.reason}. {RESTORE}"
            )


def build_distiller(settings: Settings) -> LlmDistiller | None:
    """The distiller `llm`; None without a model. Raises Invalid when the provider's client is not installed."""
    if settings.model_provider == "none":
        return None
    from reverie.providers.anthropic import AnthropicModel
    from reverie.providers.llm import LlmDistiller
    from reverie.providers.openai import OpenAiModel

    key, url = settings.model_api_key.reveal(), settings.model_base_url
    model: ChatModel = (
        AnthropicModel(settings.model, api_key=key, base_url=url)
        if settings.model_provider == "anthropic"
        else OpenAiModel(settings.model, api_key=key, base_url=url)
    )
    return LlmDistiller(
        model,
        context=settings.model_context,
        price_in=settings.model_price_in,
        price_out=settings.model_price_out,
    )


def open_store(path: str) -> Store:
    """The store in an existing file, such as a backup. Never makes a file."""
    return SqliteStore(path, create=False)


def _queue(settings: Settings) -> JobQueue | None:
    """The job engine of PostgreSQL; None on SQLite, where jobs wait in the store itself."""
    if not settings.postgres:
        return None
    from reverie.jobs.procrastinate import EngineQueue

    return EngineQueue(settings.postgres, per_tenant=settings.jobs_per_tenant)


def build_worker(
    settings: Settings, host: Host, *, metrics: Metrics | None = None, pausing: Pausing = unpaused
) -> Runner:
    """The worker that runs the jobs of this host, in this process, besides the requests that it serves."""
    from reverie.ops.jobs import JobObserver
    from reverie.ops.metrics import Metrics

    observer = JobObserver(metrics or Metrics())
    if settings.postgres:
        from reverie.jobs.procrastinate import EngineQueue, EngineWorker

        queue = host.parts.jobs
        return EngineWorker(
            host,
            queue if isinstance(queue, EngineQueue) else EngineQueue(settings.postgres),
            settings.postgres,
            concurrency=settings.worker_concurrency,
            every_seconds=settings.sweep_seconds,
            poll_seconds=settings.schedule_seconds,
            observer=observer,
            pausing=pausing,
        )
    from reverie.jobs.worker import Worker

    return Worker(
        host,
        every_seconds=settings.sweep_seconds,
        poll_seconds=settings.schedule_seconds,
        observer=observer,
        pausing=pausing,
    )


def build_app(settings: Settings, host: Host, *, traces: Traces | None = None) -> Application:
    """The HTTP application: every HTTP door, on one host."""
    from reverie import __version__
    from reverie.api import console, mcp, rest
    from reverie.http.application import make_application
    from reverie.protocols import mem0
    from reverie.protocols.akashik import http as akashik
    from reverie.protocols.anthropic import http as anthropic
    from reverie.protocols.openwop import http as openwop

    doors = [rest.door(), openwop.door(settings), akashik.door(settings), mcp.door(), akashik.mcp_door(), mem0.door()]
    if settings.anthropic:
        doors += anthropic.doors()
    app = make_application(settings, host, doors=doors, version=__version__, traces=traces)
    console.mount(app, version=__version__)
    if settings.anthropic:
        from reverie.protocols.anthropic.http.answers import AnthropicAnswers

        app.add_middleware(AnthropicAnswers)
    return app


def serve_tools(host: Host, actor: Actor, profile: str) -> None:
    """Serve MCP tools over standard input and output, until the client closes its end."""
    from reverie import __version__
    from reverie.api.mcp import memory_profile, reference_profile
    from reverie.mcp.stdio import serve
    from reverie.protocols.akashik.http import mcp_profile

    profiles = {"memory": memory_profile, "reference": reference_profile, "akashik": mcp_profile}
    serve(host, actor, profiles[profile](), version=__version__)


def run_proxy(
    settings: Settings, host: Host, tenant: str, *, upstream: str, listen: str, kind: str | None, policy: WindowPolicy
) -> None:
    """Serve the proxy of a Responses or Messages API until SIGTERM or SIGINT."""
    from reverie.core.actor import Actor
    from reverie.http.origin import OriginPolicy
    from reverie.ops import logs
    from reverie.protocols.responses.proxy.application import Proxy
    from reverie.protocols.responses.proxy.listen import address, run
    from reverie.protocols.responses.proxy.relay import Upstream
    from reverie.protocols.responses.proxy.status import Counts
    from reverie.protocols.responses.proxy.turns import WindowTurns
    from reverie.window import Base

    if kind not in (None, "api", "codex", "messages"):
        raise Invalid("--kind is api, codex or messages.", pointer="/kind")
    given = Upstream(upstream)  # raises when it is not valid
    base = Base.of(given.url if given.has_path else f"{given.url}/v1", kind)  # type: ignore[arg-type]
    policy.mode_for(base.kind)  # raises when the mode does not fit
    logs.configure(settings, host.parts.redactor)
    actor = Actor(tenant=tenant, id="local:proxy", door="responses")
    onward, counts = Upstream(base.url), Counts(host.parts.clock.now())
    windows = WindowTurns(host, actor, onward, base=base, policy=policy, counts=counts)
    pages = OriginPolicy.of(
        address(listen)[0],
        hosts=settings.allowed_hosts,
        origins=settings.allowed_origins,
        own_port=True,
        own_pages=False,
    )
    proxy = Proxy(onward, windows, counts=counts, pages=pages, messages=base.kind == "messages")
    run(proxy, listen)
