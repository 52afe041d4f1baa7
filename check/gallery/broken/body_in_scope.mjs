// Wrong: what is looked up is a hash of the key and the body, so a key with another body is a new operation, and so is
// the same order with its members in another order. Libraries that hash the payload into the record's id do this;
// then no two requests can ever be in conflict.
import { Idempotency } from "../idempotency.mjs";

export default class extends Idempotency {
  scopeOf(exchange) {
    return [...super.scopeOf(exchange), exchange.body.toString("base64")];
  }
}
