// Written by tools/generate_typescript.py from the OpenAPI document; do not edit.

export interface ReverieOptions {
  url: string;
  key: string;
  retrySeconds?: number;
  fetch?: typeof fetch;
}

/** An answer that is not a success: `code` is one of the codes in docs/errors.md. */
export class ReverieError extends Error {
  code: string;
  status: number;
  details: Record<string, unknown>;
}

export interface StreamMessage {
  event: string;
  id?: string;
  data: unknown;
}

export class Reverie {
  constructor(options: ReverieOptions);
  /** Store one entry, or many in one transaction. */
  putEntries(ref: string, body: EntryIn, options?: { idempotencyKey?: string; signal?: AbortSignal }): Promise<ReceiptOut>;
  /** Store one entry, or many in one transaction. */
  putEntries(ref: string, body: EntriesIn, options?: { idempotencyKey?: string; signal?: AbortSignal }): Promise<ReceiptsOut>;
  /** Entries, newest first. */
  listEntries(ref: string, options?: { limit?: number; cursor?: string | null; tag?: string[]; any_tag?: string[]; kind?: string[]; subject?: string | null; actor?: string | null; session?: string | null; run?: string | null; since?: string | null; until?: string | null; zone?: string | null; pinned?: boolean | null; archived?: boolean; as_of?: number | null; order?: "newest" | "oldest"; signal?: AbortSignal }): Promise<PageOut>;
  /** One entry. */
  getEntry(ref: string, id: string, options?: { as_of?: number | null; cold?: boolean; ifNoneMatch?: string; signal?: AbortSignal }): Promise<EntryOut>;
  /** Pin, archive, hold or retract an entry, undo one of these, or change its expiry. */
  changeEntry(ref: string, id: string, body: ChangeIn, options?: { idempotencyKey?: string; ifMatch?: string; signal?: AbortSignal }): Promise<EntryOut>;
  /** Take an entry out of every read, or destroy it now. */
  deleteEntry(ref: string, id: string, options?: { erase?: boolean; idempotencyKey?: string; ifMatch?: string; signal?: AbortSignal }): Promise<EntryOut | ErasedOut>;
  /** Make an archived, retracted or deleted entry readable again. */
  restoreEntry(ref: string, id: string, options?: { idempotencyKey?: string; ifMatch?: string; signal?: AbortSignal }): Promise<EntryOut>;
  /** Store an entry in place of a readable one, in one transaction. */
  supersedeEntry(ref: string, id: string, body: EntryIn, options?: { ifMatch?: string; idempotencyKey?: string; signal?: AbortSignal }): Promise<ReceiptOut>;
  /** State and version of many entries, readable or not. */
  entryStates(ref: string, body: StatesIn, options?: { signal?: AbortSignal }): Promise<StatesOut>;
  /** Pin, archive, retract or restore many entries in one transaction, each at the version seen. */
  changeEntries(ref: string, body: ChangesIn, options?: { idempotencyKey?: string; signal?: AbortSignal }): Promise<ChangedOut>;
  /** Ids that begin with a prefix, to complete a short one. */
  listIds(ref: string, options?: { prefix?: string; limit?: number; signal?: AbortSignal }): Promise<IdsOut>;
  /** The links from an entry, or to it. */
  listLinks(ref: string, id: string, options?: { incoming?: boolean; signal?: AbortSignal }): Promise<LinksOut>;
  /** The entries that best answer a query. */
  search(ref: string, body: SearchIn, options?: { signal?: AbortSignal }): Promise<SearchOut>;
  /** The best memory for a purpose, packed under a token budget. */
  context(ref: string, body: ContextIn, options?: { signal?: AbortSignal }): Promise<ContextOut>;
  /** The tenant's memories with the number of their entries. */
  listMemories(options?: { prefix?: string; signal?: AbortSignal }): Promise<RefsOut>;
  /** Destroy everything about a subject. */
  forget(body: ForgetIn, options?: { idempotencyKey?: string; signal?: AbortSignal }): Promise<ForgottenOut>;
  /** Identity of the key: its tenant, rights, authority and scopes. */
  me(options?: { signal?: AbortSignal }): Promise<MeOut>;
  /** Destroy what has expired or outlived the undo window. */
  sweep(options?: { idempotencyKey?: string; signal?: AbortSignal }): Promise<SweptOut>;
  /** Counts and sizes. */
  stats(options?: { signal?: AbortSignal }): Promise<StatsOut>;
  /** Limits, retention and quotas. */
  getPolicy(options?: { signal?: AbortSignal }): Promise<PolicyOut>;
  /** Change limits, retention or quotas. */
  changePolicy(body: PolicyIn, options?: { idempotencyKey?: string; signal?: AbortSignal }): Promise<PolicyOut>;
  /** The ids of registered secrets. */
  listSecrets(options?: { signal?: AbortSignal }): Promise<SecretsOut>;
  /** Register a secret: its value is replaced in everything stored from now on. */
  registerSecret(body: SecretIn, options?: { idempotencyKey?: string; signal?: AbortSignal }): Promise<SecretOut>;
  /** Remove a secret from the registry; what was redacted stays redacted. */
  removeSecret(id: string, options?: { idempotencyKey?: string; signal?: AbortSignal }): Promise<SecretOut>;
  /** Verify the log, and that every stored text is the one that was written. */
  verifyAudit(options?: { signal?: AbortSignal }): Promise<VerdictOut>;
  /** The tenant's memory as a bundle of JSON lines. */
  exportBundle(options?: { ref?: string | null; events?: boolean; signal?: AbortSignal }): Promise<string>;
  /** Store a bundle; entries that exist already are left as they are. */
  importBundle(body: string, options?: { ref?: string | null; idempotencyKey?: string; signal?: AbortSignal }): Promise<ImportedOut>;
  /** Apply the current redaction rules to stored text. */
  scan(body: ScanIn, options?: { idempotencyKey?: string; signal?: AbortSignal }): Promise<ScanOut>;
  /** Events, without text: a page, or with `Accept: text/event-stream` a live stream. */
  listEvents(options?: { after?: number | null; since?: string | null; limit?: number; type?: string[]; signal?: AbortSignal }): Promise<EventsOut>;
  /** Events, without text: a page, or with `Accept: text/event-stream` a live stream, as a stream. */
  listEventsStream(options?: { after?: number | null; since?: string | null; limit?: number; type?: string[]; signal?: AbortSignal }): AsyncGenerator<StreamMessage, void, void>;
  /** Distil many entries into one, or (`plan`) only estimate the result. */
  dream(ref: string, body: DreamIn, options?: { idempotencyKey?: string; signal?: AbortSignal }): Promise<EstimateOut | NothingOut | DreamOut>;
  /** Distil many entries into one, or (`plan`) only estimate the result, as a stream. */
  dreamStream(ref: string, body: DreamIn, options?: { signal?: AbortSignal }): AsyncGenerator<StreamMessage, void, void>;
  /** Reports of dreams, newest first. */
  listDreams(ref: string, options?: { limit?: number; signal?: AbortSignal }): Promise<DreamsOut>;
  /** The report of a dream. */
  getDream(ref: string, id: string, options?: { signal?: AbortSignal }): Promise<DreamOut>;
  /** Put the sources back exactly as they were, while the sources exist. */
  undoDream(ref: string, id: string, options?: { idempotencyKey?: string; signal?: AbortSignal }): Promise<DreamOut>;
  /** Fate of every entry a dream took. */
  diffDream(ref: string, id: string, options?: { signal?: AbortSignal }): Promise<DiffOut>;
  /** Dream again from the same sources and compare bytes. */
  verifyDream(ref: string, id: string, options?: { signal?: AbortSignal }): Promise<VerifiedOut>;
  /** Context for the start of the next session; with `Accept: text/markdown` for people. */
  memoryIndex(ref: string, options?: { signal?: AbortSignal }): Promise<IndexOut>;
  /** The archive of a dream, byte for byte: its SHA-256 is its name. */
  getArchive(checksum: string, options?: { signal?: AbortSignal }): Promise<ArchiveOut>;
  /** Sources of an entry, down to the original words. */
  why(ref: string, id: string, options?: { signal?: AbortSignal }): Promise<WhyOut>;
  /** Everything that was made from an entry. */
  derived(ref: string, id: string, options?: { signal?: AbortSignal }): Promise<DerivedOut>;
  /** Merge duplicates and supersede outdated statements. */
  consolidate(ref: string, options?: { idempotencyKey?: string; signal?: AbortSignal }): Promise<ConsolidatedOut>;
  /** Reports of dreams of every memory, newest first. */
  listAllDreams(options?: { limit?: number; ref?: string | null; signal?: AbortSignal }): Promise<DreamsOut>;
  /** The report of a dream, by its id alone. */
  getAnyDream(id: string, options?: { signal?: AbortSignal }): Promise<DreamOut>;
  /** Put the sources of a dream back, by its id alone. */
  undoAnyDream(id: string, options?: { idempotencyKey?: string; signal?: AbortSignal }): Promise<DreamOut>;
  /** Fate of every entry a dream took, by the dream's id alone. */
  diffAnyDream(id: string, options?: { signal?: AbortSignal }): Promise<DiffOut>;
  /** Dream again from the same sources and compare bytes, by its id alone. */
  verifyAnyDream(id: string, options?: { signal?: AbortSignal }): Promise<VerifiedOut>;
  /** MEMORY-INDEX.json of every memory. */
  tenantIndex(options?: { ref?: string | null; signal?: AbortSignal }): Promise<IndexOut>;
  /** Every schedule, with its last run, next run and status. */
  listSchedules(options?: { signal?: AbortSignal }): Promise<SchedulesOut>;
  /** Add a schedule of dreams. */
  addSchedule(body: ScheduleIn, options?: { idempotencyKey?: string; signal?: AbortSignal }): Promise<ScheduleOut>;
  /** Change a schedule: pause it, resume it, or anything else. */
  changeSchedule(id: string, body: ScheduleChangeIn, options?: { idempotencyKey?: string; signal?: AbortSignal }): Promise<ScheduleOut>;
  /** Remove a schedule. */
  removeSchedule(id: string, options?: { idempotencyKey?: string; signal?: AbortSignal }): Promise<RemovedOut>;
  /** Run a schedule now; its next tick stays as it is. */
  runSchedule(id: string, options?: { idempotencyKey?: string; signal?: AbortSignal }): Promise<OutcomeOut>;
}

export interface AnswerOut {
  id: string;
  /** For a dream: the line of its text, from 0. */
  line: number | null;
  cold: boolean;
}

export interface ArchiveOut {
  schema: string;
  sources: ArchivedSourceOut[];
  content: string;
  tokenBudget?: number;
  tokenizerName?: string;
}

export interface ArchivedSourceOut {
  id: string;
  sha256: string;
}

export interface ChangeIn {
  /** true: keep it out of dreams. */
  pinned?: boolean;
  /** true: out of recall, and kept. false: readable again. */
  archived?: boolean;
  /** true: may not be erased until released. Needs the right admin. */
  held?: boolean;
  /** retracted: withdraw it. active: restore it. */
  state?: "active" | "retracted";
  /** The new expiry, in the future. */
  expires_at?: string;
}

export interface ChangedOut {
  changed: number;
  /** Entries left as they were, by reason: changed since, held, not yours ... */
  left: Record<string, number>;
}

export interface ChangesIn {
  change: "archive" | "pin" | "restore" | "retract";
  entries: SeenIn[];
}

export interface ConsolidatedOut {
  ref: string;
  input_count: number;
  output_count: number;
  merged: string[];
  duplicates: number;
  outdated: number;
  /** null when nothing changed. */
  seq: number | null;
}

export interface ContextIn {
  purpose: string;
  /** Tokens, counted with the host's tokenizer. */
  budget?: number;
  /** Number of entries to consider. */
  limit?: number;
  filter?: FilterIn;
  zone?: string | null;
}

export interface ContextOut {
  /** Ready to paste into a prompt, as quoted data. */
  text: string;
  tokens: number;
  budget: number;
  included: string[];
  shortened: string[];
  left_out: LeftOutOut[];
  degraded: string[];
}

export interface DerivedOut {
  derived: string[];
}

export interface DiffOut {
  dream: string;
  output: string | null;
  kept: string[];
  shortened: string[];
  merged: string[];
  rolled: string[];
  outdated: string[];
  chatter: string[];
  retired: string[];
  /** Fate of every statement of an entry. */
  statements: Record<string, StatementDiffOut[]>;
  /** Original words by id, while they rest in cold storage. */
  texts: Record<string, string>;
}

export interface DreamIn {
  /** true: estimate the dream, and change nothing. */
  plan?: boolean;
  /** Tokens, input and output together; the policy is the default and the limit. */
  budget?: number | null;
  /** Take the oldest part that fits; dream again for the rest. */
  fit?: boolean;
  /** `extractive`, `llm`, or `none`; default: the policy's. */
  distiller?: string | null;
  /** Treatment of the sources: moved to cold storage, archived, or destroyed now. */
  after?: "archive" | "cold" | "purge";
  /** Take only entries older than this. */
  older_than?: string | null;
  kinds?: string[] | null;
  /** Only entries with every one of these tags. */
  tags?: string[];
  session?: string | null;
  /** Instructions to a model; the model-free distiller ignores them. */
  instructions?: string | null;
}

export interface DreamOut {
  id: string;
  ref: string;
  position: number;
  seq: number;
  /** An RFC 3339 instant with a zone. */
  created_at: string;
  distiller: string;
  fingerprint: string;
  after: string;
  trigger: string;
  sources: SourceTraceOut[];
  output_id: string | null;
  /** SHA-256 of the archive. */
  checksum: string | null;
  budget: number;
  input_tokens: number;
  output_tokens: number;
  tokens_used: number;
  tokens_before: number;
  bytes_before: number;
  byte_size: number;
  statements: StatementTraceOut[];
  collapsed: string[][];
  /** Keyed hashes of the subjects of each source, for a later forget. */
  about: Record<string, string[]>;
  superseded: string[];
  gates: GatesOut;
  /** Cost of the model; empty without one. */
  spend: Record<string, unknown>;
  fell_back: string | null;
  /** Whether a model read the instructions; null: there were none. */
  instructions_applied: boolean | null;
  reused: boolean;
  changed_meanwhile: number;
  left_for_later: number;
  /** The most tokens the output was allowed. */
  output_limit: number;
  /** Entries left as they were: the text would repeat them, or had no room for what must be kept. */
  stayed: string[];
  hot_before: number;
  /** Tokens of the whole memory after the dream. */
  hot_after: number;
  /** Tokens the policy aims for; 0 where there is no target. */
  hot_target: number;
  /** Why hot memory is above the target: `later`, `must_keep` or `share`. */
  above_target: string | null;
  /** Tokens of the entries that went to cold storage. */
  cold_tokens: number;
  /** By kind of statement: the number that a line of the text answers, and the total. */
  probes: Record<string, [number, number]>;
  /** The first statements that no line answers: entry, number, class. Their sources are cold. */
  unanswered: ([string, number, string])[];
  reclaimed_bytes: number;
  /** Number of distilled texts that are not entries. */
  given: number;
  /** For a dream that changed several entries: all of them. */
  outputs: string[];
  /** `done`, `undone`, `superseded` or `redone`. */
  state: string;
  /** Recorded searches before and after; only in the report of one dream, while they are kept. */
  replay: ReplayOut | null;
}

export interface DreamsOut {
  dreams: DreamOut[];
}

export interface EntriesIn {
  /** Stored in one transaction: all of them, or none. */
  entries: EntryIn[];
}

export interface EntryIn {
  /** Text to remember. Secrets in it are replaced before it is stored. */
  content: string;
  kind?: string;
  tags?: string[];
  /** Person or thing it is about; forget finds entries by it. */
  subject?: string | null;
  /** Plain JSON that belongs to it. */
  attributes?: Record<string, unknown>;
  /** Chosen by the caller. */
  id?: string | null;
  source?: SourceIn;
  created_at?: string | null;
  expires_at?: string | null;
  pinned?: boolean;
  /** One of its tags: readable entries with this tag are deleted in the same transaction. */
  replaces?: string | null;
}

export interface EntryOut {
  ref: string;
  id: string;
  kind: string;
  content: string;
  tags: string[];
  subject: string | null;
  attributes: Record<string, unknown>;
  source: SourceOut;
  state: string;
  archived: boolean;
  pinned: boolean;
  held: boolean;
  /** An RFC 3339 instant with a zone. */
  created_at: string;
  expires_at: string | null;
  version: number;
  /** The log position at which it was written. */
  seq: number;
}

export interface ErasedOut {
  id: string;
  erased_bytes: number;
}

export interface EstimateOut {
  ref: string;
  position: number;
  sources: number;
  /** Number of duplicates among the sources. */
  collapsed: number;
  input_tokens: number;
  /** The limit of the output. */
  output_tokens: number;
  budget: number;
  /** The smallest sufficient budget, exactly. */
  minimum_required: number;
  /** Number of entries left out, by reason. */
  left_out: Record<string, number>;
  left_for_later: number;
  distiller: string;
  feasible: boolean;
  /** Number of sources by fate. */
  fates: Record<string, number>;
  /** Statements that would have no line of their own, with the reason. */
  leaving: LeavingOut[];
  hot_before: number;
  /** Tokens of the memory after the dream. */
  hot_after: number;
}

export interface EventOut {
  seq: number;
  epoch: number;
  /** An RFC 3339 instant with a zone. */
  ts: string;
  type: string;
  operation: string;
  agent_id: string;
  session_id: string | null;
  memory_unit_id: string | null;
  conflict_id: string | null;
  task_id: string | null;
  data: Record<string, unknown>;
  prev_hash: string;
  hash: string;
}

export interface EventsOut {
  events: EventOut[];
  /** Pass it as `after` to continue. */
  next: number;
}

export interface FilterIn {
  /** Every one of these tags. */
  tags?: string[];
  /** At least one of these tags. */
  any_tags?: string[] | null;
  kinds?: string[] | null;
  subject?: string | null;
  actor?: string | null;
  session?: string | null;
  run?: string | null;
  pinned?: boolean | null;
  since?: string | null;
  until?: string | null;
}

export interface ForgetIn {
  subject: string;
  /** Only in this memory; everywhere when left out. */
  ref?: string | null;
  /** OpenWOP's name for `ref`. */
  memoryRef?: string | null;
  /** Also entries that mention the words of the subject without being labelled with it. */
  mentions?: boolean;
  /** Count, and change nothing. */
  preview?: boolean;
}

export interface ForgottenOut {
  forgotten: number;
  /** Dreams made from them, destroyed too. */
  derived: number;
  /** Dreams made again from what remains. */
  redone: number;
  /** Entries readable again because their dream could not be made again. */
  restored: number;
  archives: number;
  bytes: number;
  refs: number;
  held: number;
  preview: boolean;
  /** Number of these that were readable until now. */
  readable: number;
  /** The log position of the certificate. */
  certificate: number | null;
  /** Number reached by `subject`, `tag`, `mention`, and by `lineage` (made from others). */
  ways: Record<string, number>;
  /** When no label matches and mentions are not requested: entries that mention the words. */
  mentioned: number | null;
  /** Files, tasks and other texts outside of entries that mention the words: forgotten with mentions, else counted with `mentioned`. */
  texts: number;
  /** Copies the database server keeps for a while, out of reach of any query: see docs/privacy.md. */
  outside: string[];
}

export interface GateItemOut {
  source: string;
  why: string;
  required: boolean;
  state: string;
}

export interface GatesOut {
  passed?: boolean;
  must_keep?: MustKeepOut;
  items?: GateItemOut[];
  invented?: number;
  negations_flipped?: number;
  smaller?: boolean;
  within_budget?: boolean;
}

export interface HitOut {
  entry: EntryOut;
  passage: PassageOut;
  score: number;
  signals: Record<string, number>;
  /** 0 to 1: the measured share of right answers with this much evidence. */
  confidence: number;
  /** More likely noise than an answer. */
  weak: boolean;
  /** The id of a newer hit that says something else about the same matter. */
  older: string | null;
  /** The id of the entry that replaced this one. */
  superseded_by: string | null;
  /** Whether it rests in cold storage, as a source of a dream. */
  cold: boolean;
  /** For a cold hit: the id of the readable dream made from it. */
  dream: string | null;
  /** For a line of a dream: the ids of the entries it was made from. */
  sources: string[];
}

export interface IdsOut {
  ids: string[];
}

export interface ImportedOut {
  entries: number;
  skipped: number;
  links: number;
  findings: Record<string, number>;
}

export interface IndexOut {
  schema: string;
  archives: IndexedOut[];
}

export interface IndexedOut {
  memoryRef: string;
  outputId: string;
  archiveChecksum: string;
  sourceCount: number;
  byteSize: number;
  tokenBudget: number;
  tokensUsed: number;
  /** An RFC 3339 instant with a zone. */
  createdAt: string;
  tokens: number;
  from: string | null;
  to: string | null;
  topics: string[];
}

export interface LeavingOut {
  id: string;
  text: string;
  reason: string;
}

export interface LeftOutOut {
  id: string;
  reason: string;
}

export interface Limits {
  clarificationRounds: number;
  schemaRounds: number;
  envelopesPerTurn: number;
  maxRequestBodyBytes: number;
}

export interface LinkOut {
  from_id: string;
  to_id: string;
  type: string;
  note: string | null;
}

export interface LinksOut {
  links: LinkOut[];
}

export interface MeOut {
  tenant: string;
  id: string;
  rights: string[];
  authority: number;
  scopes: string[];
  /** Version of the host. */
  version: string;
}

export interface MustKeepOut {
  kept: number;
  quoted: number;
  missing: number;
}

export interface NothingOut {
  state: "nothing";
  /** `too_few`: fewer than two entries can be taken; `cannot_be_smaller`: all must be kept. */
  reason: string;
  message: string;
}

export interface OutcomeOut {
  /** An RFC 3339 instant with a zone. */
  tick: string;
  /** An RFC 3339 instant with a zone. */
  at: string;
  /** `running`, `done`, `nothing` or `failed`. */
  status: string;
  code: string | null;
  dreams: string[];
  attempts: number;
}

export interface PageOut {
  entries: EntryOut[];
  /** Cursor of the next page; null on the last page only. */
  cursor: string | null;
}

export interface PassageOut {
  text: string;
  /** The first character of the passage in the content. */
  start: number;
  end: number;
  /** Number of the passage in the entry, from 1. */
  number: number;
  /** Number of passages in the entry. */
  of: number;
}

export interface PolicyIn {
  max_entry_bytes?: number | null;
  max_tags?: number | null;
  max_attribute_bytes?: number | null;
  max_entries?: number | null;
  max_bytes?: number | null;
  undo_window_ms?: number | null;
  cold_retention_ms?: number | null;
  idempotency_ms?: number | null;
  default_ttl_ms?: number | null;
  zone?: string | null;
  dream_budget?: number | null;
  hot_target?: string | null;
  nightly?: string | null;
  dream_distiller?: string | null;
  dream_trust?: number | null;
  archive_retention_ms?: number | null;
  recorded_searches?: number | null;
  model_tokens_per_day?: number | null;
  model_calls_per_day?: number | null;
  model_cents_per_day?: number | null;
  model_seconds_per_dream?: number | null;
  model_fallback?: string | null;
  max_memory_bytes?: number | null;
  max_memories_per_store?: number | null;
  max_memory_stores?: number | null;
  memory_version_retention_ms?: number | null;
  store_secrets?: string | null;
  workspace_id?: string | null;
}

export interface PolicyOut {
  max_entry_bytes: number;
  max_tags: number;
  max_attribute_bytes: number;
  max_entries: number;
  max_bytes: number;
  undo_window_ms: number;
  cold_retention_ms: number | null;
  idempotency_ms: number;
  default_ttl_ms: number | null;
  zone: string;
  dream_budget: number;
  hot_target: string;
  nightly: string;
  dream_distiller: string;
  dream_trust: number;
  archive_retention_ms: number;
  recorded_searches: number;
  model_tokens_per_day: number;
  model_calls_per_day: number;
  model_cents_per_day: number;
  model_seconds_per_dream: number;
  model_fallback: string;
  max_memory_bytes: number;
  max_memories_per_store: number;
  max_memory_stores: number;
  memory_version_retention_ms: number;
  store_secrets: string;
  workspace_id: string;
}

export interface ReceiptOut {
  id: string;
  ref: string;
  seq: number;
  version: number;
  /** An RFC 3339 instant with a zone. */
  created_at: string;
  /** Redactions, counted by kind. */
  findings: Record<string, number>;
  /** `words`: the vector is still to come. */
  indexed: "ok" | "words";
  /** true: this answers a retry; nothing was written again. */
  replayed: boolean;
}

export interface ReceiptsOut {
  receipts: ReceiptOut[];
}

export interface RefOut {
  ref: string;
  entries: number;
}

export interface RefsOut {
  refs: RefOut[];
}

export interface RemovedOut {
  id: string;
}

export interface ReplayOut {
  dream: string;
  questions: ReplayedOut[];
  /** Questions left out because the time was used up. */
  skipped: number;
  milliseconds: number;
}

export interface ReplayedOut {
  question: string;
  /** Fate of the first answer: `kept`, `cold`, `deep`, `updated` or `lost`; where there was none, `answered` or `unanswered`. */
  outcome: string;
  before: AnswerOut[];
  after: AnswerOut[];
  /** Place of that answer after the dream, from 1. */
  place: number | null;
}

export interface ScanIn {
  /** Report, and change nothing. */
  dry_run?: boolean;
}

export interface ScanOut {
  entries: number;
  affected: number;
  findings: Record<string, number>;
  rules: string;
  dry_run: boolean;
}

export interface ScheduleChangeIn {
  /** One memory; null: all of the tenant's. */
  ref?: string | null;
  /** An IANA zone; default: the policy's. */
  zone?: string;
  kind?: "consolidate" | "dream";
  budget?: number | null;
  fit?: boolean;
  /** A duration: `7d`, `12h`, `P30D`. */
  older_than?: string;
  /** Below this many entries, do nothing. */
  least_entries?: number;
  /** Below this many tokens, do nothing. */
  least_tokens?: number;
  /** Delay each start by a random time up to this; at most a day. */
  jitter?: string;
  /** Run one of the ticks missed without a worker, or none. */
  missed?: "once" | "skip";
  paused?: boolean;
  /** Five fields. */
  cron?: string;
}

export interface ScheduleIn {
  /** One memory; null: all of the tenant's. */
  ref?: string | null;
  /** An IANA zone; default: the policy's. */
  zone?: string;
  kind?: "consolidate" | "dream";
  budget?: number | null;
  fit?: boolean;
  /** A duration: `7d`, `12h`, `P30D`. */
  older_than?: string;
  /** Below this many entries, do nothing. */
  least_entries?: number;
  /** Below this many tokens, do nothing. */
  least_tokens?: number;
  /** Delay each start by a random time up to this; at most a day. */
  jitter?: string;
  /** Run one of the ticks missed without a worker, or none. */
  missed?: "once" | "skip";
  paused?: boolean;
  /** Default: a new id. */
  id?: string | null;
  /** Five fields. Give this or `delay_ms`. */
  cron?: string;
  /** Run once, this long from now. */
  delay_ms?: number | null;
}

export interface ScheduleOut {
  id: string;
  cron: string;
  /** For a single tick: its delay from the creation. */
  delay_ms: number | null;
  zone: string;
  ref: string | null;
  kind: string;
  budget: number | null;
  fit: boolean;
  older_than_ms: number;
  least_entries: number;
  least_tokens: number;
  jitter_ms: number;
  missed: string;
  paused: boolean;
  /** An RFC 3339 instant with a zone. */
  created_at: string;
  last_tick: string | null;
  last: OutcomeOut | null;
  /** The log position up to which nothing was left to do. */
  quiet_seq: number;
  next_at: string | null;
  why_not: string | null;
}

export interface SchedulesOut {
  schedules: ScheduleOut[];
}

export interface SearchIn {
  query: string;
  limit?: number;
  mode?: "hybrid" | "meaning" | "words";
  filter?: FilterIn;
  /** Explain the rank of each hit. */
  explain?: boolean;
  /** Also entries that consolidation replaced, each after its successor. */
  include?: "superseded" | null;
  zone?: string | null;
  /** Whether to search the sources of dreams; auto: when nothing hot answers well. */
  deep?: "always" | "auto" | "never";
}

export interface SearchOut {
  hits: HitOut[];
  mode: string;
  /** Reasons why this answer may be worse than usual; empty when nothing is wrong. */
  degraded: string[];
  explanation?: Record<string, unknown> | null;
}

export interface SecretIn {
  /** Shown in place of the value: `[REDACTED:<id>]`. */
  id: string;
  /** Stored encrypted; never shown again. */
  value: string;
}

export interface SecretOut {
  id: string;
  seq: number;
}

export interface SecretsOut {
  /** Ids; never a value. */
  secrets: string[];
}

export interface SeenIn {
  id: string;
  /** The version the caller saw. */
  version: number;
}

export interface SourceIn {
  /** Author, when it is not the caller. */
  actor?: string;
  role?: string | null;
  session?: string | null;
  run?: string | null;
  node?: string | null;
  trust?: number;
}

export interface SourceOut {
  actor: string;
  role: string | null;
  door: string;
  session: string | null;
  run: string | null;
  node: string | null;
  trust: number;
}

export interface SourceTraceOut {
  id: string;
  version: number;
  state: string;
  archived: boolean;
  /** `kept`, `shortened`, `merged`, `rolled`, `outdated`, `chatter` or `retired`. */
  fate: string;
  /** Fate and class of every statement, in order. */
  statements: ([string, string])[];
}

export interface StateOut {
  id: string;
  state: string;
  version: number;
}

export interface StatementDiffOut {
  text: string;
  fate: string;
  why: string;
  /** The words that were left out. */
  cut: string[];
}

export interface StatementTraceOut {
  line: number;
  sources: string[];
  how: string;
  count: number;
}

export interface StatesIn {
  ids: string[];
}

export interface StatesOut {
  /** States of the entries that exist; other ids are left out. */
  states: StateOut[];
}

export interface StatsOut {
  entries: number;
  cold: number;
  text_bytes: number;
  refs: number;
  events: number;
  epoch: number;
  head: string;
  with_vector: number;
}

export interface SweptOut {
  /** Number of entries. */
  destroyed: number;
}

export interface VerdictOut {
  ok: boolean;
  events: number;
  entries: number;
  head: string;
  broken_at: number | null;
  reason: string | null;
  /** Events whose clock was behind that of an earlier one. */
  backwards: number;
}

export interface VerifiedOut {
  ok: boolean;
  checksum: string | null;
  recomputed: string | null;
  reason: string;
}

export interface WhyOut {
  id: string;
  kind: string;
  state: string;
  /** An RFC 3339 instant with a zone. */
  created_at: string;
  actor: string;
  trust: number;
  /** null when the text was destroyed. */
  content: string | null;
  sources: WhyOut[];
}
