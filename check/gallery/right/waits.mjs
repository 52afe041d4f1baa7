// Right. A duplicate of a running request waits for its end, and gets its answer.
import { Idempotency } from "../idempotency.mjs";

export default class extends Idempotency {
  async inFlight(record, exchange, work) {
    await this.settled(record);
    return this.handle(exchange, work); // after a failure one of those who wait runs, and the others wait for it
  }

  settled(record) {
    return new Promise((resolve) => {
      (record.waiters ??= []).push(resolve);
    });
  }

  complete(record, answer) {
    super.complete(record, answer);
    for (const wake of record.waiters ?? []) wake();
  }

  release(record) {
    super.release(record);
    for (const wake of record.waiters ?? []) wake();
  }
}
