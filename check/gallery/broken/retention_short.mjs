// Wrong: the record lives half as long as promised, because the answer is stored with the lifetime of the lock.
// Caches where one setting, made for locks, is the TTL of both do this; no test waits for the end of a retention.
import { Idempotency } from "../idempotency.mjs";

export default class extends Idempotency {
  expiry() {
    return Date.now() + this.retention / 2;
  }
}
