// Wrong: the answer is collected while it streams to the client, and dropped with the reservation if the client goes
// away in its middle; the retry pays again. Middlewares that wrap the response's stream do this: half of an answer
// cannot be stored, and the rest had nowhere to go.
import { setTimeout as sleep } from "node:timers/promises";

import { Idempotency } from "../idempotency.mjs";

const partMs = 200;

export default class extends Idempotency {
  complete(record, answer, exchange) {
    if (exchange.gone) return super.complete(record, answer); // nothing streams: the answer is whole
    exchange.streams = true;
  }

  async send(exchange, answer) {
    if (!exchange.streams) return super.send(exchange, answer);
    const { status, headers, body } = answer;
    exchange.outgoing.writeHead(status, { ...headers, "Content-Length": body.length });
    exchange.outgoing.write(body.subarray(0, 1));
    await sleep(partMs);
    if (exchange.gone) return this.release(exchange.record);
    super.complete(exchange.record, answer);
    exchange.outgoing.end(body.subarray(1));
  }
}
