"""The parts that a host is made of. `app` chooses them; the host knows only their roles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from reverie.core.clock import SystemClock
from reverie.core.ids import TimeIds
from reverie.core.job import JobQueue
from reverie.core.ports import Cipher, Clock, Embedder, ForgetLedger, Ids, TokenCounter
from reverie.redact import Redactor, load_redactor

if TYPE_CHECKING:
    from reverie.distil.request import Distiller
    from reverie.providers.llm import PaidChat
    from reverie.store.contract import Store


@dataclass(frozen=True, slots=True)
class FieldOptions:
    """Options of the Akashik Field of each tenant."""

    ref: str = "akashik"
    """The name of the memory that is the Field."""
    level: int = 3
    """Conformance level of the Field: operations above it are refused."""
    faults: bool = False
    """Whether callers may request faults, for tests."""


@dataclass(frozen=True, slots=True)
class Services:
    """The parts of one host."""

    store: Store
    redactor: Redactor = field(default_factory=load_redactor)
    embedder: Embedder | None = None
    tokens: TokenCounter | None = None
    cipher: Cipher | None = None
    ledger: ForgetLedger | None = None
    distillers: Mapping[str, Distiller] = field(default_factory=dict)
    """Distillers in addition to the model-free one, which is always present."""
    chat: PaidChat | None = None
    """The chat model that writes the answers of agents; None: agents quote entries."""
    own_secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The host's own credentials by label, replaced in everything that any tenant stores."""
    jobs: JobQueue | None = None
    """Queue of jobs; None: documents in the store."""
    clock: Clock = field(default_factory=SystemClock)
    ids: Ids = field(default_factory=TimeIds)
    read_only: bool = False
    workspace_files: bool = True
    """Whether OpenWOP workspace files are served. If not, no run writes MEMORY-INDEX.json, which is one of them."""
    agents_folder: str = ""
    """Folder with the manifests of agents that every tenant has."""
    agent_fixtures: bool = False
    """Whether a tenant without agents sees those of the conformance suites."""
    field: FieldOptions = field(default_factory=FieldOptions)
