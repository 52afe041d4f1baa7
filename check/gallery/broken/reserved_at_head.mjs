// Wrong: the key is reserved when the head has come. A request that is cut in its body never runs, and its key is
// blocked for ever. Middlewares that run before the body is read do this: a key is all that a reservation needs.
import { Idempotency } from "../idempotency.mjs";

export default class extends Idempotency {
  onHead(exchange) {
    const { key } = this.readKey(exchange);
    const id = key && JSON.stringify([this.scopeOf(exchange), key]);
    if (id && !this.find(id)) exchange.early = this.reserve(id);
  }

  claim(id, fingerprint, { early }) {
    if (!early) return super.claim(id, fingerprint);
    early.fingerprint = fingerprint;
    return { record: early, fresh: true };
  }

  same(record, fingerprint) {
    return record.fingerprint === undefined || super.same(record, fingerprint);
  }
}
