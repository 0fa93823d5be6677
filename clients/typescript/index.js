// Written by tools/generate_typescript.py from the OpenAPI document; do not edit.

import { Host, segment } from "./runtime.js";
export { ReverieError } from "./runtime.js";

export class Reverie extends Host {
  putEntries(ref, body, options = {}) {
    return this.request({ method: "POST", path: `/memory/${segment(ref)}/entries`, options, headers: { idempotencyKey: "idempotency-key" }, body, keyed: true });
  }

  listEntries(ref, options = {}) {
    return this.request({ method: "GET", path: `/memory/${segment(ref)}/entries`, options, query: ["limit", "cursor", "tag", "any_tag", "kind", "subject", "actor", "session", "run", "since", "until", "zone", "pinned", "archived", "as_of", "order"] });
  }

  getEntry(ref, id, options = {}) {
    return this.request({ method: "GET", path: `/memory/${segment(ref)}/entries/${segment(id)}`, options, query: ["as_of", "cold"], headers: { ifNoneMatch: "if-none-match" } });
  }

  changeEntry(ref, id, body, options = {}) {
    return this.request({ method: "PATCH", path: `/memory/${segment(ref)}/entries/${segment(id)}`, options, headers: { idempotencyKey: "idempotency-key", ifMatch: "if-match" }, body, keyed: true });
  }

  deleteEntry(ref, id, options = {}) {
    return this.request({ method: "DELETE", path: `/memory/${segment(ref)}/entries/${segment(id)}`, options, query: ["erase"], headers: { idempotencyKey: "idempotency-key", ifMatch: "if-match" }, keyed: true });
  }

  restoreEntry(ref, id, options = {}) {
    return this.request({ method: "POST", path: `/memory/${segment(ref)}/entries/${segment(id)}/restore`, options, headers: { idempotencyKey: "idempotency-key", ifMatch: "if-match" }, keyed: true });
  }

  supersedeEntry(ref, id, body, options = {}) {
    return this.request({ method: "POST", path: `/memory/${segment(ref)}/entries/${segment(id)}/supersede`, options, headers: { ifMatch: "if-match", idempotencyKey: "idempotency-key" }, body, keyed: true });
  }

  entryStates(ref, body, options = {}) {
    return this.request({ method: "POST", path: `/memory/${segment(ref)}/states`, options, body });
  }

  changeEntries(ref, body, options = {}) {
    return this.request({ method: "POST", path: `/memory/${segment(ref)}/changes`, options, headers: { idempotencyKey: "idempotency-key" }, body, keyed: true });
  }

  listIds(ref, options = {}) {
    return this.request({ method: "GET", path: `/memory/${segment(ref)}/ids`, options, query: ["prefix", "limit"] });
  }

  listLinks(ref, id, options = {}) {
    return this.request({ method: "GET", path: `/memory/${segment(ref)}/entries/${segment(id)}/links`, options, query: ["incoming"] });
  }

  search(ref, body, options = {}) {
    return this.request({ method: "POST", path: `/memory/${segment(ref)}/search`, options, body });
  }

  context(ref, body, options = {}) {
    return this.request({ method: "POST", path: `/memory/${segment(ref)}/context`, options, body });
  }

  listMemories(options = {}) {
    return this.request({ method: "GET", path: `/memory`, options, query: ["prefix"] });
  }

  forget(body, options = {}) {
    return this.request({ method: "POST", path: `/memory/forget`, options, headers: { idempotencyKey: "idempotency-key" }, body, keyed: true });
  }

  me(options = {}) {
    return this.request({ method: "GET", path: `/me`, options });
  }

  sweep(options = {}) {
    return this.request({ method: "POST", path: `/sweep`, options, headers: { idempotencyKey: "idempotency-key" }, keyed: true });
  }

  stats(options = {}) {
    return this.request({ method: "GET", path: `/stats`, options });
  }

  getPolicy(options = {}) {
    return this.request({ method: "GET", path: `/policy`, options });
  }

  changePolicy(body, options = {}) {
    return this.request({ method: "PATCH", path: `/policy`, options, headers: { idempotencyKey: "idempotency-key" }, body, keyed: true });
  }

  listSecrets(options = {}) {
    return this.request({ method: "GET", path: `/secrets`, options });
  }

  registerSecret(body, options = {}) {
    return this.request({ method: "POST", path: `/secrets`, options, headers: { idempotencyKey: "idempotency-key" }, body, keyed: true });
  }

  removeSecret(id, options = {}) {
    return this.request({ method: "DELETE", path: `/secrets/${segment(id)}`, options, headers: { idempotencyKey: "idempotency-key" }, keyed: true });
  }

  verifyAudit(options = {}) {
    return this.request({ method: "GET", path: `/audit/verify`, options });
  }

  exportBundle(options = {}) {
    return this.request({ method: "GET", path: `/export`, options, query: ["ref", "events"], reads: "text" });
  }

  importBundle(body, options = {}) {
    return this.request({ method: "POST", path: `/import`, options, query: ["ref"], headers: { idempotencyKey: "idempotency-key" }, body, media: "application/x-ndjson", keyed: true });
  }

  scan(body, options = {}) {
    return this.request({ method: "POST", path: `/scan`, options, headers: { idempotencyKey: "idempotency-key" }, body, keyed: true });
  }

  listEvents(options = {}) {
    return this.request({ method: "GET", path: `/events`, options, query: ["after", "since", "limit", "type"] });
  }

  listEventsStream(options = {}) {
    return this.stream({ method: "GET", path: `/events`, options, query: ["after", "since", "limit", "type"] });
  }

  dream(ref, body, options = {}) {
    return this.request({ method: "POST", path: `/memory/${segment(ref)}/dreams`, options, headers: { idempotencyKey: "idempotency-key" }, body, keyed: true });
  }

  dreamStream(ref, body, options = {}) {
    return this.stream({ method: "POST", path: `/memory/${segment(ref)}/dreams`, options, body });
  }

  listDreams(ref, options = {}) {
    return this.request({ method: "GET", path: `/memory/${segment(ref)}/dreams`, options, query: ["limit"] });
  }

  getDream(ref, id, options = {}) {
    return this.request({ method: "GET", path: `/memory/${segment(ref)}/dreams/${segment(id)}`, options });
  }

  undoDream(ref, id, options = {}) {
    return this.request({ method: "POST", path: `/memory/${segment(ref)}/dreams/${segment(id)}/undo`, options, headers: { idempotencyKey: "idempotency-key" }, keyed: true });
  }

  diffDream(ref, id, options = {}) {
    return this.request({ method: "GET", path: `/memory/${segment(ref)}/dreams/${segment(id)}/diff`, options });
  }

  verifyDream(ref, id, options = {}) {
    return this.request({ method: "GET", path: `/memory/${segment(ref)}/dreams/${segment(id)}/verify`, options });
  }

  memoryIndex(ref, options = {}) {
    return this.request({ method: "GET", path: `/memory/${segment(ref)}/index`, options });
  }

  getArchive(checksum, options = {}) {
    return this.request({ method: "GET", path: `/archives/${segment(checksum)}`, options });
  }

  why(ref, id, options = {}) {
    return this.request({ method: "GET", path: `/memory/${segment(ref)}/entries/${segment(id)}/why`, options });
  }

  derived(ref, id, options = {}) {
    return this.request({ method: "GET", path: `/memory/${segment(ref)}/entries/${segment(id)}/derived`, options });
  }

  consolidate(ref, options = {}) {
    return this.request({ method: "POST", path: `/memory/${segment(ref)}/consolidate`, options, headers: { idempotencyKey: "idempotency-key" }, keyed: true });
  }

  listAllDreams(options = {}) {
    return this.request({ method: "GET", path: `/dreams`, options, query: ["limit", "ref"] });
  }

  getAnyDream(id, options = {}) {
    return this.request({ method: "GET", path: `/dreams/${segment(id)}`, options });
  }

  undoAnyDream(id, options = {}) {
    return this.request({ method: "POST", path: `/dreams/${segment(id)}/undo`, options, headers: { idempotencyKey: "idempotency-key" }, keyed: true });
  }

  diffAnyDream(id, options = {}) {
    return this.request({ method: "GET", path: `/dreams/${segment(id)}/diff`, options });
  }

  verifyAnyDream(id, options = {}) {
    return this.request({ method: "GET", path: `/dreams/${segment(id)}/verify`, options });
  }

  tenantIndex(options = {}) {
    return this.request({ method: "GET", path: `/index`, options, query: ["ref"] });
  }

  listSchedules(options = {}) {
    return this.request({ method: "GET", path: `/schedules`, options });
  }

  addSchedule(body, options = {}) {
    return this.request({ method: "POST", path: `/schedules`, options, headers: { idempotencyKey: "idempotency-key" }, body, keyed: true });
  }

  changeSchedule(id, body, options = {}) {
    return this.request({ method: "PATCH", path: `/schedules/${segment(id)}`, options, headers: { idempotencyKey: "idempotency-key" }, body, keyed: true });
  }

  removeSchedule(id, options = {}) {
    return this.request({ method: "DELETE", path: `/schedules/${segment(id)}`, options, headers: { idempotencyKey: "idempotency-key" }, keyed: true });
  }

  runSchedule(id, options = {}) {
    return this.request({ method: "POST", path: `/schedules/${segment(id)}/run`, options, headers: { idempotencyKey: "idempotency-key" }, keyed: true });
  }
}
