// What goes over the wire: requests with retries, streams, and errors. The methods are in index.js.

const API = "/v1/host/reverie";
const FIRST_PAUSE = 100;
const LONGEST_PAUSE = 2000;
const NOTHING_DONE = new Set(["rate_limited", "store_busy"]);
const NEVER_SENT = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "UND_ERR_CONNECT_TIMEOUT"]);

/** An answer that is not a success, or no answer at all. */
export class ReverieError extends Error {
  constructor(code, message, status = 0, details = {}) {
    super(message);
    this.name = "ReverieError";
    this.code = code;
    this.status = status;
    this.details = details;
  }
}

/** A ref or an id as one segment of a path. */
export function segment(name) {
  return encodeURIComponent(name).replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);
}

export class Host {
  #url;
  #key;
  #retry;
  #fetch;

  constructor({ url, key, retrySeconds = 15, fetch: own = globalThis.fetch }) {
    if (!/^https?:\/\/[^/?#@]+(\/[^?#]*)?$/.test(url)) throw new TypeError("url is http://HOST:PORT or https://HOST");
    if (!key) throw new TypeError("key is missing: `reverie keys create` makes one");
    this.#url = url.replace(/\/+$/, "");
    this.#key = key;
    this.#retry = retrySeconds * 1000;
    this.#fetch = own;
  }

  /** One answer. Repeated only when that cannot do anything twice. */
  async request(call) {
    const response = await this.#send(call);
    const text = await response.text();
    if (call.reads === "text") return text;
    return text === "" ? null : JSON.parse(text);
  }

  /** The messages of an answer that goes on. */
  async *stream(call) {
    const response = await this.#send(call, { accept: "text/event-stream" });
    let rest = "";
    let message = { event: "message", data: [] };
    for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + piece).split("\n");
      rest = lines.pop();
      for (const raw of lines) {
        const line = raw.endsWith("\r") ? raw.slice(0, -1) : raw;
        if (line === "") {
          if (message.data.length) yield { ...message, data: JSON.parse(message.data.join("\n")) };
          message = { event: "message", data: [] };
          continue;
        }
        const colon = line.indexOf(":");
        const field = colon < 0 ? line : line.slice(0, colon);
        const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
        if (field === "data") message.data.push(value);
        else if (field === "event" || field === "id") message[field] = value;
      }
    }
  }

  async #send(call, more = {}) {
    const { method, path, options = {}, query = [], headers = {}, body, media = "application/json", keyed } = call;
    const sent = new Headers({ authorization: `Bearer ${this.#key}`, accept: "application/json", ...more });
    for (const [name, header] of Object.entries(headers)) {
      if (options[name] !== undefined) sent.set(header, options[name]);
    }
    if (keyed && !sent.has("idempotency-key")) sent.set("idempotency-key", crypto.randomUUID());
    if (body !== undefined) sent.set("content-type", media);
    const wanted = new URLSearchParams();
    for (const name of query) {
      for (const value of [options[name]].flat()) {
        if (value !== undefined && value !== null) wanted.append(name, String(value));
      }
    }
    const asked = wanted.size ? `?${wanted}` : "";
    const content = body === undefined ? undefined : media === "application/json" ? JSON.stringify(body) : body;
    const again = method === "GET" || keyed === true;
    const begun = Date.now();
    for (let tries = 1; ; tries += 1) {
      const pause = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (tries - 1)) * (0.5 + Math.random() / 2);
      let fault;
      let wait = pause;
      try {
        const response = await this.#fetch(`${this.#url}${API}${path}${asked}`, {
          method,
          headers: sent,
          body: content,
          redirect: "error",
          signal: options.signal,
        });
        if (response.ok) return response;
        fault = await problem(response);
        if (!NOTHING_DONE.has(fault.code) && !(again && [502, 504].includes(response.status))) throw fault;
        wait = Math.max(pause, 1000 * Number(response.headers.get("retry-after") ?? 0));
      } catch (error) {
        if (error instanceof ReverieError || options.signal?.aborted) throw error;
        fault = error;
        if (!again && !NEVER_SENT.has(error.cause?.code)) {
          throw new ReverieError("host_unreachable", `${this.#url} did not answer; the request may have been carried out`);
        }
      }
      if (Date.now() - begun + wait > this.#retry) {
        if (fault instanceof ReverieError) throw fault;
        const seconds = ((Date.now() - begun) / 1000).toFixed(1);
        const message = `${this.#url} does not answer: tried ${tries} times in ${seconds} s. Is \`reverie serve\` running?`;
        throw new ReverieError("host_unreachable", message);
      }
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }
}

async function problem(response) {
  const text = await response.text();
  try {
    const { error, message, details } = JSON.parse(text);
    if (typeof error === "string") return new ReverieError(error, message, response.status, details ?? {});
  } catch {
    // not one of ours
  }
  return new ReverieError("not_a_host", `The address answered ${response.status}, and not as Reverie does`, response.status);
}
