// Against a real host: REVERIE_URL and REVERIE_KEY.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Reverie, ReverieError } from "../index.js";

const { REVERIE_URL: url, REVERIE_KEY: key } = process.env;
const memory = new Reverie({ url, key });

test("an entry is stored, read, found and changed", async () => {
  const receipt = await memory.putEntries("team/notes", { content: "Ana prefers e-mail.", tags: ["é"], subject: "ana" });
  const entry = await memory.getEntry("team/notes", receipt.id);
  assert.deepEqual([entry.content, entry.tags, entry.subject], ["Ana prefers e-mail.", ["é"], "ana"]);
  const found = await memory.search("team/notes", { query: "how to reach Ana" });
  assert.equal(found.hits[0].entry.id, receipt.id);
  assert.equal((await memory.changeEntry("team/notes", receipt.id, { pinned: true })).pinned, true);
  const listed = await memory.listEntries("team/notes", { tag: ["é"], limit: 5 });
  assert.equal(listed.entries.length, 1);
  assert.equal(listed.cursor, null);
});

test("a retry does nothing twice", async () => {
  const first = await memory.putEntries("retries", { content: "Once." }, { idempotencyKey: "k1" });
  const second = await memory.putEntries("retries", { content: "Once." }, { idempotencyKey: "k1" });
  assert.equal(second.id, first.id);
  assert.equal(second.replayed, true);
});

test("a lost answer is asked for again with the same key", async () => {
  const keys = [];
  const losing = async (address, request) => {
    const response = await fetch(address, request);
    keys.push(request.headers.get("idempotency-key"));
    if (keys.length === 1) throw new TypeError("the line broke");
    return response;
  };
  const flaky = new Reverie({ url, key, fetch: losing });
  await flaky.putEntries("flaky", { content: "Stored once." });
  assert.equal(keys.length, 2);
  assert.equal(keys[0], keys[1]);
  assert.equal((await memory.listEntries("flaky")).entries.length, 1);
  keys.length = 0;
  await flaky.forget({ subject: "flaky" });
  assert.equal(keys.length, 2);
  assert.equal(keys[0], keys[1]);
});

test("a request that may have been carried out is not repeated", async () => {
  let calls = 0;
  const flaky = new Reverie({
    url,
    key,
    fetch: async () => {
      calls += 1;
      throw new TypeError("the line broke");
    },
  });
  await assert.rejects(flaky.dreamStream("clubs", { budget: 4000 }).next(), { code: "host_unreachable" });
  assert.equal(calls, 1);
});

test("a dream is streamed, shown and undone", async () => {
  const entries = Array.from({ length: 12 }, (_, n) => ({ content: `Club ${n} pays ${n + 3} euros for its berth at pier ${n}.` }));
  await memory.putEntries("clubs", { entries });
  const names = [];
  let report;
  for await (const message of memory.dreamStream("clubs", { budget: 4000 })) {
    names.push(message.event);
    if (message.event === "report") report = message.data;
  }
  assert.ok(names.includes("step"));
  assert.equal((await memory.getAnyDream(report.id)).checksum, report.checksum);
  assert.equal((await memory.undoAnyDream(report.id)).state, "undone");
  assert.equal((await memory.dream("empty", { budget: 4000 })).state, "nothing");
});

test("events are followed as they happen", async () => {
  const seen = [];
  const leaving = new AbortController();
  const { events } = await memory.stats();
  const reading = (async () => {
    for await (const message of memory.listEventsStream({ after: events, type: ["memory.written"], signal: leaving.signal })) {
      seen.push(message.data.memory_unit_id);
      if (seen.length === 2) return;
    }
  })();
  const first = await memory.putEntries("events", { content: "One." });
  const second = await memory.putEntries("events", { content: "Two." });
  await reading;
  leaving.abort();
  assert.deepEqual(seen, [first.id, second.id]);
});

test("a refusal says why", async () => {
  await assert.rejects(memory.getEntry("team/notes", "nothing"), (error) => {
    assert.ok(error instanceof ReverieError);
    assert.deepEqual([error.code, error.status], ["not_found", 404]);
    return true;
  });
  await assert.rejects(memory.search("team/notes", { query: "" }), { code: "validation_error", status: 400 });
  await assert.rejects(new Reverie({ url, key: "no" }).me(), { code: "unauthenticated", status: 401 });
});

test("a host that is away", async () => {
  const away = new Reverie({ url: "http://127.0.0.1:1", key: "k", retrySeconds: 0.3 });
  await assert.rejects(away.me(), (error) => error.code === "host_unreachable" && /tried \d+ times/.test(error.message));
});

test("a bundle is text, and an address is checked", async () => {
  const bundle = await memory.exportBundle({ ref: "retries", events: false });
  assert.match(bundle, /"type":"manifest"/);
  assert.equal((await memory.importBundle(bundle)).skipped, 1);
  assert.throws(() => new Reverie({ url: "ftp://x", key: "k" }), TypeError);
  assert.throws(() => new Reverie({ url, key: "" }), TypeError);
});
