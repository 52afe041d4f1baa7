// Wrong: it looks for the key, waits, and reserves only then; all who look in between run. Middlewares with a
// SELECT before their INSERT, or a cache's GET before its SET, do this. One request after the other is right,
// and tests send one after the other.
import { setImmediate as turn, setTimeout as sleep } from "node:timers/promises";

import { Idempotency } from "../idempotency.mjs";

const queryMs = 15;

export default class extends Idempotency {
  async claim(id, fingerprint) {
    const found = this.find(id);
    await sleep(queryMs);
    await turn(); // on a busy machine the timer is due before the sockets were looked at
    if (found) return { record: found, fresh: false };
    return { record: this.reserve(id, fingerprint), fresh: true };
  }
}
