// Wrong: every request releases the lock at its end, also one that never got it. So the first duplicate is refused
// and frees the key of the request that still runs, and the second duplicate runs. A `finally { unlock(key) }`
// around the whole handler does this; it was written so that no path forgets the unlock.
import { Idempotency } from "../idempotency.mjs";

export default class extends Idempotency {
  known(record, ...rest) {
    const answer = super.known(record, ...rest);
    if (record.state === "running") this.release(record);
    return answer;
  }

  holds() {
    return true; // without a token, every attempt counts as the owner
  }

  complete(record, answer) {
    this.records.set(record.id, record);
    super.complete(record, answer);
  }
}
