// Wrong: the reservation is a lock with a lifetime that nobody renews, so slow work runs twice. Locks in a cache
// (SET NX with a TTL) do this; the TTL is there to survive a crash, and looked far longer than any request.
import { Idempotency } from "../idempotency.mjs";

const lifetimeMs = 1000;

export default class extends Idempotency {
  claim(id, fingerprint) {
    const record = this.find(id);
    if (record?.state === "running" && Date.now() - record.since > lifetimeMs) this.release(record);
    return super.claim(id, fingerprint);
  }
}
