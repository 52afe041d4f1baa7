// The right middleware. The broken ones override one step of it.
import { createHash } from "node:crypto";

import { canonical, parse } from "./json.mjs";

export const keyCharactersMax = 255;

/** An answer whose body is JSON. */
export function json(status, value, headers = {}) {
  const type = status >= 400 && value.title ? "application/problem+json" : "application/json";
  return { status, headers: { "Content-Type": type, ...headers }, body: Buffer.from(JSON.stringify(value)) };
}

/** A body as one text for all its spellings; what is no JSON stays as its bytes. */
export function meaning(body, number) {
  try {
    return canonical(parse(new TextDecoder("utf-8", { fatal: true }).decode(body)), number);
  } catch {
    return body.toString("base64");
  }
}

export class Idempotency {
  /** `journal` keeps the records over a restart; finished ones expire `retention` ms after their end. */
  constructor({ journal, retention = Infinity }) {
    this.journal = journal;
    this.retention = retention;
    this.records = new Map();
    this.restore(journal.entries);
  }

  /** The answer for a request; `work` makes it, at most once for each key. */
  async handle(exchange, work) {
    const { key, refusal } = this.readKey(exchange);
    if (refusal) return refusal;
    if (key === undefined) return work(exchange);
    const id = JSON.stringify([this.scopeOf(exchange), key]);
    const fingerprint = this.fingerprint(exchange);
    // Right only because claim() finds and reserves without a wait between: no other request can come in.
    const { record, fresh } = await this.claim(id, fingerprint, exchange);
    if (!fresh) return this.known(record, fingerprint, exchange, work);
    exchange.record = record;
    return this.run(record, exchange, work);
  }

  async run(record, exchange, work) {
    const answer = await work(exchange);
    if (this.keeps(answer)) this.complete(record, answer, exchange);
    else this.release(record);
    return answer;
  }

  // --- the key -----------------------------------------------------------------------------------------------

  /** {key} or {refusal}; {key: undefined} runs the work without a record. */
  readKey(exchange) {
    const lines = exchange.lines("idempotency-key");
    if (lines.length === 0) return this.withoutKey(exchange);
    if (lines.length > 1) return this.wrongKey("two Idempotency-Key lines");
    return this.parseKey(lines[0]);
  }

  parseKey(text) {
    const quoted = /^"((?:[ !#-[\]-~]|\\["\\])*)"$/.exec(text); // a String of RFC 9651
    const bare = /^[!#-+\--~]+$/.test(text) ? text : undefined; // visible, without quote and comma
    const key = quoted ? quoted[1].replace(/\\(.)/g, "$1") : bare;
    if (!key) return this.wrongKey(text === "" ? "the Idempotency-Key is empty" : "no Idempotency-Key");
    if (key.length > this.longest()) return this.wrongKey("the Idempotency-Key is too long");
    return { key };
  }

  longest() {
    return keyCharactersMax;
  }

  withoutKey() {
    return this.wrongKey("an Idempotency-Key is required");
  }

  wrongKey(title) {
    return { refusal: json(400, { title, status: 400 }) };
  }

  // --- the request -------------------------------------------------------------------------------------------

  /** Within which a key names one operation. */
  scopeOf({ tenant, method, path }) {
    return [tenant, method, path];
  }

  /** Equal for equal requests, whatever the spelling of their JSON. */
  fingerprint(exchange) {
    return createHash("sha256").update(JSON.stringify(this.identity(exchange))).digest("hex");
  }

  identity({ method, path, query, body }) {
    return [method, path, query, meaning(body)];
  }

  // --- records -----------------------------------------------------------------------------------------------

  find(id) {
    const record = this.records.get(id);
    if (record?.state === "done" && Date.now() >= record.expires) {
      this.records.delete(id);
      return undefined;
    }
    return record;
  }

  claim(id, fingerprint) {
    const record = this.find(id);
    return record ? { record, fresh: false } : { record: this.reserve(id, fingerprint), fresh: true };
  }

  reserve(id, fingerprint) {
    const record = { id, fingerprint, state: "running", since: Date.now() };
    this.records.set(id, record);
    this.persist("reserve", record);
    return record;
  }

  /** The object is the fence: an attempt that lost its record to another one changes nothing. */
  holds(record) {
    return this.records.get(record.id) === record;
  }

  /** Whether an answer ends the operation. A failure does not: nothing ran, and a retry may. */
  keeps({ status }) {
    return status < 500;
  }

  complete(record, answer) {
    if (!this.holds(record)) return;
    record.answer = answer;
    record.expires = this.expiry(record);
    record.state = "done";
    this.persist("done", record);
  }

  expiry() {
    return Date.now() + this.retention;
  }

  release(record) {
    if (!this.holds(record)) return;
    this.records.delete(record.id);
    this.persist("release", record);
  }

  // --- answers for a key that is known -------------------------------------------------------------------------

  known(record, fingerprint, exchange, work) {
    if (!this.same(record, fingerprint)) return this.misuse();
    if (record.state === "done") return this.replay(record);
    return record.state === "unknown" ? this.outcomeUnknown() : this.inFlight(record, exchange, work);
  }

  same(record, fingerprint) {
    return record.fingerprint === fingerprint;
  }

  misuse() {
    return json(422, { title: "the Idempotency-Key belongs to another request", status: 422 });
  }

  inFlight() {
    return json(409, { title: "the first request still runs", status: 409 }, { "Retry-After": "1" });
  }

  /** The process died within the work: perhaps it had its effect, so it never runs again. */
  outcomeUnknown() {
    return json(409, { title: "outcome unknown", status: 409 }, { "Retry-After": "60" });
  }

  replay({ answer: { status, headers, body } }) {
    return { status, headers: { ...this.replayHeaders(headers), ...this.marker() }, body };
  }

  /** What describes the stored body. Set-Cookie and Date belong to one answer, not to the operation. */
  replayHeaders(headers) {
    const kept = Object.entries(headers).filter(([name]) => /^(content-type|location)$/i.test(name));
    return Object.fromEntries(kept);
  }

  marker() {
    return { "Idempotency-Replayed": "true" };
  }

  // --- events of a connection: nothing depends on them ---------------------------------------------------------

  /** The head has come, the body has not. */
  onHead() {}

  /** The client went away before its answer. */
  onDisconnect() {}

  /** The answer left this process. */
  onSent() {}

  /** Writes the answer to the client. */
  async send(exchange, answer) {
    exchange.write(answer);
  }

  // --- durability ----------------------------------------------------------------------------------------------

  persist(event, { id, fingerprint, answer, since, expires }) {
    const stored = event === "done" && { ...answer, body: answer.body.toString("base64") };
    this.journal.append({ event, id, fingerprint, since, ...(stored && { answer: stored, expires }) });
  }

  restore(entries) {
    for (const { event, id, fingerprint, since, answer, expires } of entries) {
      if (event === "reserve") this.records.set(id, { id, fingerprint, since, state: this.afterCrash() });
      if (event === "release") this.records.delete(id);
      if (event !== "done") continue;
      const body = Buffer.from(answer.body, "base64");
      const end = expires ?? Infinity; // JSON has no Infinity
      this.records.set(id, { id, fingerprint, since, state: "done", expires: end, answer: { ...answer, body } });
    }
  }

  /** What a reservation without an end is after a start. */
  afterCrash() {
    return "unknown";
  }
}
