// A small payments API: HTTP, its ledger, and its work. What a retry may do is the middleware's.
import { randomUUID } from "node:crypto";
import http from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

import { Digits, parse } from "./json.mjs";
import { json } from "./idempotency.mjs";

const bodyBytesMax = 1 << 20;
const workMs = 20; // so that requests which come together overlap
const workMsMax = 60_000;

/** One request, as the middleware sees it. */
class Exchange {
  constructor(incoming, outgoing) {
    const [path, ...query] = incoming.url.split("?");
    this.incoming = incoming;
    this.outgoing = outgoing;
    this.method = incoming.method;
    this.path = path;
    this.query = query.join("?");
    this.body = Buffer.alloc(0);
    this.tenant = this.lines("x-tenant-id")[0] ?? "default";
    this.gone = false; // the client left before its answer
  }

  /** The values of all lines of a header; node would join them. */
  lines(name) {
    const raw = this.incoming.rawHeaders;
    return raw.filter((_, at) => at % 2 === 1 && raw[at - 1].toLowerCase() === name);
  }

  /** False: the request was cut, and nothing may come of it. */
  async readBody() {
    const parts = [];
    let bytes = 0;
    try {
      for await (const part of this.incoming) {
        bytes += part.length;
        if (bytes <= bodyBytesMax) parts.push(part);
      }
    } catch {
      return false;
    }
    this.tooLarge = bytes > bodyBytesMax;
    this.body = Buffer.concat(parts);
    return this.incoming.complete;
  }

  write({ status, headers, body }) {
    this.outgoing.writeHead(status, { "Content-Length": body.length, ...headers });
    this.outgoing.end(body);
  }
}

export class Api {
  constructor(journal, idempotency) {
    this.journal = journal;
    this.idempotency = idempotency;
    this.ledger = new Map();
    for (const { event, payment } of journal.entries) {
      if (event === "payment") this.ledger.set(payment.id, payment.body);
    }
    this.server = http.createServer((incoming, outgoing) => this.serve(incoming, outgoing));
    this.server.keepAliveTimeout = 60_000; // a tester's pooled connection must not die under its next request
  }

  async serve(incoming, outgoing) {
    const exchange = new Exchange(incoming, outgoing);
    outgoing.on("close", () => this.closed(exchange));
    outgoing.on("error", () => {});
    try {
      const works = /^(POST|PUT)$/.test(exchange.method) && /^\/(payments|refunds)$/.test(exchange.path);
      if (works) this.idempotency.onHead(exchange);
      if (!(await exchange.readBody())) return;
      await this.answer(exchange, works);
    } catch (error) {
      console.error(error);
      if (!outgoing.headersSent) exchange.write(json(500, { error: "internal" }));
      else outgoing.destroy();
    }
  }

  async answer(exchange, works) {
    if (exchange.tooLarge) return exchange.write(json(413, { error: "too large" }));
    if (!works) return exchange.write(this.read(exchange));
    const answer = await this.idempotency.handle(exchange, (one) => this.work(one));
    await this.idempotency.send(exchange, answer);
    return this.idempotency.onSent(exchange, answer);
  }

  closed(exchange) {
    if (exchange.outgoing.writableFinished) return;
    exchange.gone = true;
    this.idempotency.onDisconnect(exchange);
  }

  read({ method, path }) {
    if (method === "GET" && path === "/healthz") return json(200, { ok: true });
    if (method === "GET" && path === "/ledger") return json(200, { count: this.ledger.size });
    const body = method === "GET" && this.ledger.get(/^\/payments\/([^/]+)$/.exec(path)?.[1]);
    if (!body) return json(404, { error: "not found" });
    return { status: 200, headers: { "Content-Type": "application/json" }, body: Buffer.from(body) };
  }

  /** The effect. A failure that X-Fail asks for comes before the ledger, so a retry may run. */
  async work(exchange) {
    const order = read(exchange.body);
    if (!order) return json(422, { error: "invalid" });
    const asked = Number(exchange.lines("x-delay-ms")[0] ?? workMs);
    const ms = asked >= 0 && asked <= workMsMax ? asked : workMs;
    await sleep(ms / 2);
    const fail = Number(exchange.lines("x-fail")[0]);
    if (fail >= 500 && fail <= 599) return json(fail, { error: "failed" });
    const id = `pay_${this.ledger.size + 1}`;
    const body = `{"id":"${id}","amount":${order.amount},"order":${JSON.stringify(order.order)}}`;
    this.journal.append({ event: "payment", payment: { id, body } });
    this.ledger.set(id, body);
    await sleep(ms / 2); // a crash here has paid, and answers nobody
    const headers = {
      "Content-Type": "application/json",
      Location: `/payments/${id}`,
      "Set-Cookie": `visit=${randomUUID()}`,
    };
    return { status: 201, headers, body: Buffer.from(body) };
  }
}

/** {amount: digits, order}, or nothing. */
function read(body) {
  try {
    const value = parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
    const [amount, order] = [value.get("amount"), value.get("order")];
    return amount instanceof Digits && typeof order === "string" && { amount: amount.text, order };
  } catch {
    return undefined;
  }
}
