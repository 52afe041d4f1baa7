// Wrong: the answer expires and the row of its key does not, so a late retry finds a record without an answer: 500.
// Keeping the two in two stores, of which one cleans up by itself, does this.
import { Idempotency } from "../idempotency.mjs";

export default class extends Idempotency {
  find(id) {
    return this.records.get(id);
  }

  replay(record) {
    if (Date.now() >= record.expires) throw new Error("the key has a row, and the answer is gone");
    return super.replay(record);
  }
}
