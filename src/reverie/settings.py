"""Every setting, once: name, environment variable, default, help. `reverie settings` prints this table.

A value comes from an option of the command line, else from the environment, else from `reverie.toml`, which has the
same names: `REVERIE_PORT = 9000`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from reverie.core.entry import valid_ref
from reverie.core.errors import Invalid


def _setting(default: Any, variable: str, text: str) -> Any:
    return field(default=default, metadata={"variable": variable, "help": text})


class Hidden(str):
    """A credential. Printed, logged or encoded, it only says whether it is set; `reveal` gives the value."""

    _value: str

    def __new__(cls, value: str = "") -> Hidden:
        made = super().__new__(cls, "(set)" if value else "")
        made._value = value
        return made

    def reveal(self) -> str:
        """The value."""
        return self._value


_PASSWORD = re.compile(r"(?<=://)([^:@/?]*):.*@")
_QUERY_PASSWORD = re.compile(r"(?<=password=)[^&]*")


class DatabaseUrl(Hidden):
    """Address of the database. Shown without its password."""

    def __new__(cls, value: str = "") -> DatabaseUrl:
        shown = value if value.startswith("sqlite:") else _QUERY_PASSWORD.sub("***", _PASSWORD.sub(r"\1:***@", value))
        made = str.__new__(cls, shown)
        made._value = value
        return made


def default_data() -> str:
    """The default data folder: `$XDG_DATA_HOME/reverie`, else `~/.local/share/reverie`."""
    base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return str(Path(base) / "reverie")


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of this process. Differences between tenants are policy, not settings."""

    data: str = _setting("", "REVERIE_DATA", "folder of the database, its key file and its backups")
    database_url: DatabaseUrl = _setting(  # noqa: RUF009
        DatabaseUrl(),
        "REVERIE_DATABASE_URL",
        "postgresql://... or sqlite:///PATH; empty: reverie.db in the data folder; never shown with its password",
    )
    database_pool: int = _setting(16, "REVERIE_DATABASE_POOL", "connections to PostgreSQL this process may hold")
    host: str = _setting("127.0.0.1", "REVERIE_HOST", "address to listen on")
    port: int = _setting(8484, "REVERIE_PORT", "port to listen on; 0 picks a free one")
    allowed_hosts: str = _setting(
        "",
        "REVERIE_ALLOWED_HOSTS",
        "host names served, comma-separated; empty: on a loopback address loopback names, else every name; *: all",
    )
    allowed_origins: str = _setting(
        "", "REVERIE_ALLOWED_ORIGINS", "other origins whose pages may send requests, such as https://app.example.com"
    )
    key_file: str = _setting(
        "", "REVERIE_KEY_FILE", "key that encrypts registered secrets; empty: reverie.key in the data folder"
    )
    read_only: bool = _setting(False, "REVERIE_READ_ONLY", "refuse every write")
    redact_rules: str = _setting(
        "", "REVERIE_REDACT_RULES", "TOML file with redaction rules of your own, tested at start; see docs/privacy.md"
    )
    tokenizer: str = _setting("o200k_base", "REVERIE_TOKENIZER", "o200k_base, cl100k_base or none")
    embedder: str = _setting(
        "static", "REVERIE_EMBEDDER", "static (built in), minilm, multilingual or none; see docs/recall.md"
    )
    max_request_bytes: int = _setting(8 * 2**20, "REVERIE_MAX_REQUEST_BYTES", "largest request body, in bytes")
    rate_per_second: int = _setting(1000, "REVERIE_RATE_PER_SECOND", "requests per second and key; 0: no limit")
    rate_burst: int = _setting(2000, "REVERIE_RATE_BURST", "requests a key may make at once after a pause")
    max_request_values: int = _setting(
        250_000, "REVERIE_MAX_REQUEST_VALUES", "JSON values in one request body, counted before it is parsed"
    )
    bytes_per_second: int = _setting(
        8 * 2**20, "REVERIE_BYTES_PER_SECOND", "request bytes per second and key, ten times that at once; 0: no limit"
    )
    entries_per_second: int = _setting(
        5000, "REVERIE_ENTRIES_PER_SECOND", "entries stored per second and key, ten times that at once; 0: no limit"
    )
    streams_per_key: int = _setting(
        64, "REVERIE_STREAMS_PER_KEY", "open event streams and sockets of one key; 0: no limit"
    )
    heavy_per_key: int = _setting(
        16, "REVERIE_HEAVY_PER_KEY", "dreams, exports, imports, scans and proofs of one key at once; 0: no limit"
    )
    schedule_seconds: int = _setting(
        5, "REVERIE_SCHEDULE_SECONDS", "pause between checks for due schedules; 0: no scheduler"
    )
    sweep_seconds: int = _setting(60, "REVERIE_SWEEP_SECONDS", "pause between sweeps of expired and retired text")
    print_key: bool = _setting(
        False,
        "REVERIE_PRINT_KEY",
        "print a first key and the sign-in link where the output of `reverie serve` is no terminal",
    )
    worker: bool = _setting(True, "REVERIE_WORKER", "whether `reverie serve` also runs jobs")
    worker_concurrency: int = _setting(4, "REVERIE_WORKER_CONCURRENCY", "jobs at once in one process, on PostgreSQL")
    jobs_per_tenant: int = _setting(2, "REVERIE_JOBS_PER_TENANT", "jobs of one tenant at once, on PostgreSQL")
    model_provider: str = _setting(
        "none", "REVERIE_MODEL_PROVIDER", "none, openai (or a compatible endpoint) or anthropic"
    )
    model: str = _setting("", "REVERIE_MODEL", "name of the model that dreams with the distiller `llm`")
    model_base_url: str = _setting("", "REVERIE_MODEL_BASE_URL", "address of the endpoint; empty: the provider's own")
    model_api_key: Hidden = _setting(  # noqa: RUF009
        Hidden(),
        "REVERIE_MODEL_API_KEY",
        "key for the endpoint; from the environment or a private file, never stored or shown",
    )
    model_context: int = _setting(32_000, "REVERIE_MODEL_CONTEXT", "context window of the model, in tokens")
    model_price_in: int = _setting(0, "REVERIE_MODEL_PRICE_IN", "cents per million input tokens; 0: not counted")
    model_price_out: int = _setting(0, "REVERIE_MODEL_PRICE_OUT", "cents per million output tokens; 0: not counted")
    agents: str = _setting("", "REVERIE_AGENTS", "folder of agent manifests (*.json) installed for every tenant")
    openwop_mirror: bool = _setting(
        True, "REVERIE_OPENWOP_MIRROR", "repeat the families of the discovery document under `capabilities`"
    )
    openwop_durability: str = _setting(
        "long-term-durability",
        "REVERIE_OPENWOP_DURABILITY",
        "the dimension's name in degraded agents: long-term-durability (schema) or long-term (RFC text)",
    )
    production: bool = _setting(False, "REVERIE_PRODUCTION", "refuse to start while a test seam is switched on")
    openwop_workspace: bool = _setting(True, "REVERIE_OPENWOP_WORKSPACE", "serve and advertise OpenWOP workspace files")
    openwop_compaction: bool = _setting(
        False, "OPENWOP_MEMORY_COMPACTION", "with OPENWOP_TEST_TRIGGER_COMPACTION: test seams of compaction; tests only"
    )
    openwop_trigger_compaction: bool = _setting(
        False, "OPENWOP_TEST_TRIGGER_COMPACTION", "with OPENWOP_MEMORY_COMPACTION: test seams of compaction; tests only"
    )
    openwop_seams: bool = _setting(False, "OPENWOP_TEST_SEAM_ENABLED", "the other OpenWOP test seams; tests only")
    akashik_ref: str = _setting("akashik", "REVERIE_AKASHIK_REF", "the memory that is each tenant's Akashik Field")
    akashik_level: int = _setting(3, "REVERIE_AKASHIK_LEVEL", "conformance level of the Field, 0 to 3")
    akashik_port: int = _setting(0, "REVERIE_AKASHIK_PORT", "a second port, with Akashik at its root; 0: none")
    akashik_faults: bool = _setting(False, "REVERIE_AKASHIK_TEST_FAULTS", "Akashik faults on request; tests only")
    anthropic: bool = _setting(True, "REVERIE_ANTHROPIC", "serve Anthropic's memory stores and dreams")
    anthropic_strict: bool = _setting(
        False, "REVERIE_ANTHROPIC_STRICT", "Anthropic's routes demand beta headers, and sessions for a dream"
    )
    anthropic_models: str = _setting(
        "",
        "REVERIE_ANTHROPIC_MODELS",
        "models that Anthropic's dreams may name, as claude-*=llm,...: llm or extractive, the first match",
    )
    anthropic_unknown_model: str = _setting(
        "refuse",
        "REVERIE_ANTHROPIC_UNKNOWN_MODEL",
        "for an Anthropic dream with any other model: refuse, or extractive",
    )
    log_level: str = _setting("info", "REVERIE_LOG_LEVEL", "debug, info, warning or error")
    log_format: str = _setting("text", "REVERIE_LOG_FORMAT", "text or json")

    @classmethod
    def load(cls, environment: Mapping[str, str] | None = None, **given: Any) -> Settings:
        """Settings from the environment, then from the configuration file; `given` values that are not None win."""
        return cls.with_origins(environment, **given)[0]

    @classmethod
    def with_origins(
        cls, environment: Mapping[str, str] | None = None, **given: Any
    ) -> tuple[Settings, dict[str, str]]:
        """Settings, and where each that is not a default comes from: `option`, `environment` or the file's path.

        A given data folder wins over a database URL from the environment, which would hide the folder.
        """
        if given.get("data") is not None and given.get("database_url") is None:
            given["database_url"] = ""
        path, filed = read_file(environment)
        environment = os.environ if environment is None else environment
        values: dict[str, Any] = {}
        origins: dict[str, str] = {}
        for item in fields(cls):
            value, origin = given.pop(item.name, None), "option"
            if value is None:
                name = item.metadata["variable"]
                value, origin = environment.get(name, ""), "environment"
                if value == "" and name in filed:
                    value, origin = filed[name], str(path)
            if value is not None and (value != "" or origin == "option"):
                values[item.name] = _typed(item.name, value, item.default)
                origins[item.name] = origin
        if given:
            raise TypeError(f"no such settings: {sorted(given)}")
        settings = cls(**values)
        settings.check()
        return settings, origins

    def check(self) -> None:
        """Raise Invalid for a value that cannot work, naming the variable."""
        choices = {
            "tokenizer": ("o200k_base", "cl100k_base", "none"),
            "embedder": ("static", "minilm", "multilingual", "none"),
            "model_provider": ("none", "openai", "anthropic"),
            "openwop_durability": ("long-term-durability", "long-term"),
            "anthropic_unknown_model": ("refuse", "extractive"),
            "log_level": ("debug", "info", "warning", "error"),
            "log_format": ("text", "json"),
        }
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise Invalid(f"{variable(name)} is one of {', '.join(allowed)}.")
        for name in ("port", "akashik_port"):
            if not 0 <= getattr(self, name) <= 65535:
                raise Invalid(f"{variable(name)} is 0 to 65535.")
        if not 0 <= self.akashik_level <= 3:
            raise Invalid("REVERIE_AKASHIK_LEVEL is 0 to 3.")
        if not valid_ref(self.akashik_ref):
            raise Invalid("REVERIE_AKASHIK_REF is the name of a memory.")
        if self.production and (on := self.seams):
            raise Invalid(
                f"REVERIE_PRODUCTION is set and so are test seams ({', '.join(on)}). Unset one or the other.",
                details={"seams": list(on)},
            )
        if self.model_provider != "none":
            if not self.model:
                raise Invalid("REVERIE_MODEL names the model to use with REVERIE_MODEL_PROVIDER.")
            if not self.model_api_key and not self.model_base_url:
                raise Invalid(f"Set REVERIE_MODEL_API_KEY to use {self.model_provider}.")

    @property
    def scheduler(self) -> bool:
        """Whether a worker looks for due work: in this process, or on PostgreSQL in any other."""
        return self.schedule_seconds > 0 and (self.worker or self.database_url.startswith("postgres"))

    @property
    def compaction_seams(self) -> bool:
        """Whether the test seams of compaction exist: both of their switches are on."""
        return self.openwop_compaction and self.openwop_trigger_compaction

    @property
    def seams(self) -> tuple[str, ...]:
        """The test seams that are switched on, by group: for the start log, and for production to refuse."""
        groups = (
            ("openwop-compaction", self.compaction_seams),
            ("openwop", self.openwop_seams),
            ("akashik-faults", self.akashik_faults),
        )
        return tuple(name for name, on in groups if on)

    @property
    def data_folder(self) -> Path:
        """The data folder."""
        return Path(self.data or default_data()).expanduser()

    @property
    def index_folder(self) -> Path:
        """Folder for files of the search index on PostgreSQL: in the data folder or, without one, in the cache."""
        if self.data:
            return self.data_folder / "index"
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "reverie" / "index"

    @property
    def postgres(self) -> str | None:
        """The URL of the PostgreSQL database, password and all; None when memory lives in SQLite."""
        url = _revealed(self.database_url)
        return url if url.startswith(("postgresql://", "postgres://")) else None

    @property
    def database(self) -> str:
        """The path of the SQLite file, or `:memory:`; on PostgreSQL the URL as it may be shown."""
        url = _revealed(self.database_url)
        if self.postgres:
            return str(DatabaseUrl(url))
        if not url:
            return str(self.data_folder / "reverie.db")
        if url in ("sqlite://", "sqlite:///:memory:"):
            return ":memory:"
        if url.startswith("sqlite:///"):
            return url.removeprefix("sqlite:///")
        raise Invalid(
            "REVERIE_DATABASE_URL is postgresql://USER@HOST/NAME, or sqlite:///PATH (three slashes, then the path; "
            "four for an absolute one)."
        )

    @property
    def key_path(self) -> Path:
        """The key file."""
        if self.key_file:
            return Path(self.key_file).expanduser()
        if self.database_url and self.database != ":memory:" and not self.postgres:
            return Path(self.database).with_name("reverie.key")
        return self.data_folder / "reverie.key"

    @property
    def ledger_path(self) -> Path:
        """Path of the forget ledger: keyed hashes, next to the database and outside its backups."""
        return self.key_path.with_name("forgotten.jsonl")


CLIENT = ("REVERIE_URL", "REVERIE_KEY")
"""The address of a running host, for the command line and the library, and its key. The file may hold them too."""


def client_setting(name: str) -> str:
    """REVERIE_URL or REVERIE_KEY: from the environment, else from the configuration file; empty when not set."""
    return os.environ.get(name, "") or str(read_file()[1].get(name, ""))


def unknown_names(environment: Mapping[str, str] | None = None) -> dict[str, list[str]]:
    """Variables of the environment that look like settings but are not, with the settings of a similar name."""
    from difflib import get_close_matches

    known = [*(item.metadata["variable"] for item in fields(Settings)), *CLIENT, "REVERIE_CONFIG", "REVERIE_DEBUG"]
    given = os.environ if environment is None else environment
    strange = sorted(name for name in given if name.startswith("REVERIE_") and name not in known)
    return {name: get_close_matches(name, known, n=2, cutoff=0.8) for name in strange}


def config_path(environment: Mapping[str, str] | None = None) -> Path | None:
    """The configuration file: REVERIE_CONFIG, else `reverie/reverie.toml` in `$XDG_CONFIG_HOME`, `~/.config` or `/etc`.

    Never a file of the current folder: a cloned repository must not decide where memory goes. None: no file.
    """
    given = (os.environ if environment is None else environment).get("REVERIE_CONFIG", "")
    if given:
        return Path(given).expanduser()
    if environment is not None:
        return None
    base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    places = (Path(base) / "reverie" / "reverie.toml", Path("/etc/reverie/reverie.toml"))
    return next((place for place in places if place.is_file()), None)


def read_file(environment: Mapping[str, str] | None = None) -> tuple[Path | None, dict[str, Any]]:
    """The configuration file and its values by variable. Raises Invalid, naming the file and the variable."""
    path = config_path(environment)
    if path is None:
        return None, {}
    import tomllib

    try:
        with path.open("rb") as opened:
            values = tomllib.load(opened)
            mode = os.fstat(opened.fileno()).st_mode
    except OSError as fault:
        raise Invalid(f"The configuration file {path} cannot be read: {fault.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as fault:
        where = str(fault).rpartition("(")[2].rstrip(")") if isinstance(fault, tomllib.TOMLDecodeError) else "not UTF-8"
        raise Invalid(f"The configuration file {path} is not TOML ({where}).") from None
    secret = {item.metadata["variable"] for item in fields(Settings) if isinstance(item.default, Hidden)} | {CLIENT[1]}
    known = [item.metadata["variable"] for item in fields(Settings)]
    for name, value in values.items():
        if name not in known and name not in CLIENT:
            meant = f"REVERIE_{name.upper()}"
            hint = f" Did you mean {meant}?" if meant in known else ""
            raise Invalid(f"{path}: there is no setting {name[:64]}.{hint} `reverie settings` lists them.")
        if not isinstance(value, str | int | bool):
            raise Invalid(f"{path}: {name} is a text, a whole number, true or false.")
        if name in secret and mode & 0o077:
            raise Invalid(f"{path} holds {name}, and others may read it. Run: chmod 600 {path}")
    return path, values


def _revealed(url: str) -> str:
    return url.reveal() if isinstance(url, Hidden) else url


def variable(name: str) -> str:
    """The environment variable of a setting."""
    return str(next(item.metadata["variable"] for item in fields(Settings) if item.name == name))


def _typed(name: str, value: Any, default: Any) -> Any:
    if isinstance(default, bool):
        if isinstance(value, bool):
            return value
        word = str(value).strip().lower()
        if word in ("1", "true", "yes", "on"):
            return True
        if word in ("0", "false", "no", "off"):
            return False
        raise Invalid(f"{variable(name)} is true or false.")
    if isinstance(default, Hidden):
        return value if isinstance(value, Hidden) else type(default)(str(value))
    if isinstance(default, int):
        try:
            number = int(str(value))  # also refuses true, which Python counts as 1
        except ValueError:
            raise Invalid(f"{variable(name)} is a whole number.") from None
        if number < 0:
            raise Invalid(f"{variable(name)} is not negative.")
        return number
    return str(value)
